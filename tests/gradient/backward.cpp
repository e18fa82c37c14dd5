// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_backward(): against plain loops in double, finite differences and hand values; ties, infinities, NaN, rows far apart, broadcast
// factors, extents of 0, workspaces, bad input.
#include <rigel/contract_backward.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/numbers.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>

using support::batch_of, support::caught, support::get, support::matrix, support::Numbers, support::put, support::unit;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Shape {
  int batches, m, n, k, batches_a, batches_b;
};
std::size_t place(int l, int i, int j, int batches, int rows, int columns) {
  return static_cast<std::size_t>(((batches == 1 ? 0 : l) * rows + i) * columns + j);
}

// The gradients of a call, and the sums of their terms' magnitudes.
struct Expected {
  Numbers da, db, sizes_a, sizes_b;
};
template <class Term>
Expected expected(const Shape& s, const Numbers& a, const Numbers& b, const Term& term) {
  Expected e{Numbers(a.size()), Numbers(b.size()), Numbers(a.size()), Numbers(b.size())};
  for (int l = 0; l < s.batches; ++l)
    for (int m = 0; m < s.m; ++m)
      for (int n = 0; n < s.n; ++n)
        for (int k = 0; k < s.k; ++k) {
          const std::size_t of_a = place(l, m, k, s.batches_a, s.m, s.k), of_b = place(l, k, n, s.batches_b, s.k, s.n);
          const auto [by_a, by_b] = term(l, m, n, k, a[of_a], b[of_b]);
          e.da[of_a] += by_a;
          e.db[of_b] += by_b;
          e.sizes_a[of_a] += std::fabs(by_a);
          e.sizes_b[of_b] += std::fabs(by_b);
        }
  return e;
}

// Whether results are within `units` roundoffs of the terms' sum, `absolute`, and a rounding to U.
template <class U>
void check_near(const Numbers& got, const Numbers& want, const Numbers& sizes, double units, double absolute) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound = units * sizes[i] + absolute + (sizeof(U) == 2 ? 0x1p-8 * std::fabs(want[i]) + 0x1p-24 : 0);
    worst = support::larger(worst, got[i] == want[i] ? 0 : std::fabs(got[i] - want[i]) / bound);
  }
  CHECK(worst <= 1);
}

// Multiples of 1/4 between −4 and 4, of which many sums, products and differences are equal and all are exact.
Numbers quarters(support::Random& random, std::size_t count, bool positive) {
  Numbers values(count);
  for (double& v : values) v = std::floor(random.uniform(positive ? 1 : -16, 17)) / 4;
  return values;
}

template <class Exec, class Layout, class S, class U, class Make, class Terms>
void compare(const S& semiring, const Shape& s, const Make& make, double extra, const Terms& terms) {
  using E = typename S::element;
  using T = rigel::accumulator_for<E>;
  const Exec exec;
  support::Random random(7);
  const Numbers a_values = make(random, static_cast<std::size_t>(s.batches_a * s.m * s.k)),
                b_values = make(random, static_cast<std::size_t>(s.batches_b * s.k * s.n)),
                dc_values = quarters(random, static_cast<std::size_t>(s.batches * s.m * s.n), false);
  const auto a = batch_of<E, Exec, Layout>(s.batches_a, s.m, s.k);
  const auto b = batch_of<E, Exec, Layout>(s.batches_b, s.k, s.n);
  const auto c = batch_of<T, Exec, Layout>(s.batches, s.m, s.n);
  const auto dc = batch_of<U, Exec, Layout>(s.batches, s.m, s.n);
  const auto da = batch_of<U, Exec, Layout>(s.batches_a, s.m, s.k);
  const auto db = batch_of<U, Exec, Layout>(s.batches_b, s.k, s.n);
  put(a, a_values);
  put(b, b_values);
  put(dc, dc_values);
  rigel::contract(exec, semiring, a, b, c);
  exec.fence();
  const Numbers c_values = get(c);
  const Expected e = terms(s, a_values, b_values, c_values, dc_values);
  const double units = (s.batches * std::max(s.m, s.n) + extra) * unit<T>;
  const double absolute = 0x1p-56 * s.batches * std::max(s.m, s.n) * 4;
  put(da, Numbers(a_values.size(), not_a_number));
  put(db, Numbers(b_values.size(), not_a_number));
  rigel::contract_backward(exec, semiring, a, b, c, dc, da, db);
  exec.fence();
  check_near<U>(get(da), e.da, e.sizes_a, units, absolute);
  check_near<U>(get(db), e.db, e.sizes_b, units, absolute);
  // One of them; sums that go on; the caller's workspace.
  const Numbers once = get(da);
  rigel::ContractBackwardOptions options{.accumulate = true, .precision = rigel::Precision::accumulator};
  const std::size_t bytes =
      rigel::contract_backward_workspace_size(exec, semiring, a, b, c, dc, da, rigel::no_gradient, options);
  const Kokkos::View<double*, typename Exec::memory_space> memory("workspace", bytes / sizeof(double) + 32);
  options.workspace = {.data = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256),
                       .bytes = bytes};
  rigel::contract_backward(exec, semiring, a, b, c, dc, da, rigel::no_gradient, options);
  exec.fence();
  Numbers twice = e.da, sizes = e.sizes_a;
  for (double& v : twice) v *= 2;
  for (double& v : sizes) v *= 3;
  check_near<U>(get(da), twice, sizes, units, 2 * absolute);
}

template <class Exec, class S, class Make, class Terms>
void compare_all(const S& semiring, const Make& make, double extra, const Terms& terms) {
  using T = typename S::accumulator;
  using Number = std::conditional_t<std::is_arithmetic_v<T>, T, rigel::accumulator_for<typename S::element>>;
  compare<Exec, Kokkos::LayoutRight, S, Number>(semiring, {1, 19, 150, 70, 1, 1}, make, extra, terms);
  compare<Exec, Kokkos::LayoutLeft, S, Number>(semiring, {3, 9, 11, 5, 3, 3}, make, extra, terms);
  compare<Exec, Kokkos::LayoutStride, S, Number>(semiring, {3, 9, 11, 5, 1, 3}, make, extra, terms);
  compare<Exec, Kokkos::LayoutRight, S, typename S::element>(semiring, {2, 6, 5, 3, 2, 1}, make, extra, terms);
}

const auto any_quarters = [](support::Random& random, std::size_t count) { return quarters(random, count, false); };
const auto positive_quarters = [](support::Random& random, std::size_t count) { return quarters(random, count, true); };

// Sums over k of terms with a slope: a slope takes its own factor first.
template <class Exec, template <class...> class S, class Make>
void check_sums(const Make& make, double extra, const auto& slope, const auto& set) {
  const auto terms = [&](const Shape& s, const Numbers& a, const Numbers& b, const Numbers&, const Numbers& dc) {
    return expected(s, a, b, [&](int l, int m, int n, int, double x, double y) {
      const double g = dc[place(l, m, n, s.batches, s.m, s.n)];
      return std::pair(g * slope(x, y), g * slope(y, x));
    });
  };
  compare_all<Exec>(set(S<float>{}), make, extra, terms);
  compare_all<Exec>(set(S<double>{}), make, extra, terms);
  compare_all<Exec>(set(S<rigel::bfloat16>{}), make, extra, terms);
}
const auto as_it_is = [](auto semiring) { return semiring; };

// The smallest k of the best product has the derivative.
template <class Exec, template <class...> class S, class Make>
void check_winners(const Make& make, const auto& multiply, bool least, const auto& slope) {
  const auto terms = [&](const Shape& s, const Numbers& a, const Numbers& b, const Numbers&, const Numbers& dc) {
    int winner = 0;
    return expected(s, a, b, [&](int l, int m, int n, int k, double x, double y) {
      const auto product = [&](int j) {
        return multiply(a[place(l, m, j, s.batches_a, s.m, s.k)], b[place(l, j, n, s.batches_b, s.k, s.n)]);
      };
      if (k == 0) winner = 0;
      for (int j = 1; k == 0 && j < s.k; ++j)
        if (least ? product(j) < product(winner) : product(j) > product(winner)) winner = j;
      if (k != winner) return std::pair(0., 0.);
      const double g = dc[place(l, m, n, s.batches, s.m, s.n)];
      return std::pair(g * slope(x, y, true), g * slope(y, x, false));
    });
  };
  compare_all<Exec>(S<float>{}, make, 1, terms);
  compare_all<Exec>(S<double>{}, make, 1, terms);
  // So many k that a device's scratch memory holds the sums of some rows, of one, and of none.
  for (const int k : {1500, 9000, 11000})
    compare<Exec, Kokkos::LayoutRight, S<float>, float>(S<float>{}, {2, 11, 6, k, 1, 2}, make, 1, terms);
}

}  // namespace

TEST_CASE_TEMPLATE("contract_backward: sums of products and differences", Exec, RIGEL_TEST_SPACES) {
  check_sums<Exec, rigel::plus_times>(any_quarters, 8, [](double, double y) { return y; }, as_it_is);
  check_sums<Exec, rigel::l1>(any_quarters, 8, [](double x, double y) { return x > y ? 1. : x < y ? -1. : 0.; }, as_it_is);
  check_sums<Exec, rigel::l2_squared>(any_quarters, 8, [](double x, double y) { return 2 * (x - y); }, as_it_is);
}

TEST_CASE_TEMPLATE("contract_backward: sums of powers", Exec, RIGEL_TEST_SPACES) {
  for (const double p : {1.5, 3.25})
    check_sums<Exec, rigel::lp>(
        any_quarters, 64, [p](double x, double y) { return p * std::copysign(std::pow(std::fabs(x - y), p - 1), x - y); },
        [p](auto semiring) {
          semiring.p = static_cast<decltype(semiring.p)>(p);
          return semiring;
        });
}

// Each semiring brings kernels of its own, which take long to compile for GPUs: there two stand for all.
TEST_CASE_TEMPLATE("contract_backward: the smallest k that wins", Exec, RIGEL_TEST_SPACES) {
  const auto plus = [](double x, double y) { return x + y; };
  const auto one = [](double, double, bool) { return 1.; };
  check_winners<Exec, rigel::min_plus>(any_quarters, plus, true, one);
  check_winners<Exec, rigel::max_min>(
      any_quarters, [](double x, double y) { return std::min(x, y); }, false,
      [](double x, double y, bool first) { return x < y || (first && x == y) ? 1. : 0.; });
  if constexpr (support::on_host<Exec>) {
    check_winners<Exec, rigel::max_plus>(any_quarters, plus, false, one);
    check_winners<Exec, rigel::min_max>(
        any_quarters, [](double x, double y) { return std::max(x, y); }, true,
        [](double x, double y, bool first) { return x > y || (first && x == y) ? 1. : 0.; });
  }
}

TEST_CASE_TEMPLATE("contract_backward: the smallest k that wins, of products and distances", Exec, RIGEL_TEST_SPACES) {
  if constexpr (support::on_host<Exec>) {
    const auto times = [](double x, double y) { return x * y; };
    const auto other = [](double, double y, bool) { return y; };
    check_winners<Exec, rigel::max_times>(positive_quarters, times, false, other);
    check_winners<Exec, rigel::min_times>(positive_quarters, times, true, other);
    check_winners<Exec, rigel::linf>(
        any_quarters, [](double x, double y) { return std::fabs(x - y); }, false,
        [](double x, double y, bool) { return x > y   ? 1.
                                              : x < y ? -1.
                                                      : 0.; });
  }
}

TEST_CASE_TEMPLATE("contract_backward: log_plus at every distance of its terms", Exec, RIGEL_TEST_SPACES) {
  // Up to 30, all elements are products of exponentials, but for some of float; at 1000 and 20000, most are sums of terms.
  for (const double width : {1., 30., 1000., 20000.}) {
    const auto make = [width](support::Random& random, std::size_t count) {
      Numbers values = support::random_numbers<float>(random, static_cast<std::int64_t>(count));
      for (double& v : values) v = std::ldexp(std::round(std::ldexp(v * width, 3)), -3);
      return values;
    };
    const auto terms = [&](const Shape& s, const Numbers& a, const Numbers& b, const Numbers& c, const Numbers& dc) {
      return expected(s, a, b, [&](int l, int m, int n, int, double x, double y) {
        const std::size_t at = place(l, m, n, s.batches, s.m, s.n);
        const double term = dc[at] * std::exp(x + y - c[at]);
        return std::pair(term, term);
      });
    };
    // Exponents are exact but for a few roundings of double, which the exponential makes relative errors of.
    compare_all<Exec>(rigel::log_plus<float>{}, make, 16, terms);
    compare_all<Exec>(rigel::log_plus<double>{}, make, 16 + 8 * width, terms);
    if (width < 1000)
      compare<Exec, Kokkos::LayoutRight, rigel::log_plus<rigel::half>, float>(
          {}, {2, 6, 5, 3, 2, 1}, [&](support::Random& random, std::size_t count) { return quarters(random, count, false); },
          16, terms);
  }
}

TEST_CASE_TEMPLATE("contract_backward: finite differences", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 4, n = 5, k = 6;
  constexpr double step = 1e-5;
  const Exec exec;
  const auto check = [&](const auto& semiring) {
    support::Random random(3);
    Numbers a_values = support::random_numbers<double>(random, m * k),
            b_values = support::random_numbers<double>(random, k * n);
    const Numbers dc_values = support::random_numbers<double>(random, m * n);
    const auto a = matrix<double, Exec>(m, k, a_values), b = matrix<double, Exec>(k, n, b_values),
               c = matrix<double, Exec>(m, n), dc = matrix<double, Exec>(m, n, dc_values), da = matrix<double, Exec>(m, k),
               db = matrix<double, Exec>(k, n);
    const auto loss = [&] {
      put(a, a_values);
      put(b, b_values);
      rigel::contract(exec, semiring, a, b, c);
      exec.fence();
      const Numbers values = get(c);
      double sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i) sum += dc_values[i] * values[i];
      return sum;
    };
    loss();
    rigel::contract_backward(exec, semiring, a, b, c, dc, da, db);
    exec.fence();
    const auto compared = [&](Numbers& values, const Numbers& gradient) {
      double worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = values[i];
        values[i] = value + step;
        const double above = loss();
        values[i] = value - step;
        const double below = loss();
        values[i] = value;
        worst = support::larger(worst, std::fabs((above - below) / (2 * step) - gradient[i]));
      }
      return worst;
    };
    // Of the difference quotient, third derivatives of sums of at most 6 terms below 100 by step²/6, and roundings of sums by 1/step.
    CHECK(compared(a_values, get(da)) < 1e-7);
    CHECK(compared(b_values, get(db)) < 1e-7);
  };
  check(rigel::plus_times<double>{});
  check(rigel::log_plus<double>{});
  check(rigel::min_plus<double>{});
  check(rigel::max_min<double>{});
  check(rigel::l1<double>{});
  check(rigel::l2_squared<double>{});
  check(rigel::lp<double>{.p = 3.5});
}

TEST_CASE_TEMPLATE("contract_backward: infinities and NaN of log_plus", Exec, RIGEL_TEST_SPACES) {
  const auto check = [&]<class T>(T) {
    const auto run = [](const Numbers& a_values, const Numbers& b_values, const Numbers& c_values, const Numbers& dc_values,
                        const Numbers& da_values, const Numbers& db_values) {
      const Exec exec;
      const auto a = matrix<T, Exec>(2, 2, a_values), b = matrix<T, Exec>(2, 2, b_values), c = matrix<T, Exec>(2, 2),
                 dc = matrix<T, Exec>(2, 2, dc_values), da = matrix<T, Exec>(2, 2), db = matrix<T, Exec>(2, 2);
      rigel::contract(exec, rigel::log_plus<T>{}, a, b, c);
      rigel::contract_backward(exec, rigel::log_plus<T>{}, a, b, c, dc, da, db);
      exec.fence();
      const auto same = [](const Numbers& got, const Numbers& want) {
        for (std::size_t i = 0; i < want.size(); ++i)
          if (!(got[i] == want[i] || (got[i] != got[i] && want[i] != want[i]))) return false;
        return true;
      };
      CHECK(same(get(c), c_values));
      CAPTURE(a_values[0]);
      CAPTURE(dc_values[0]);
      CHECK(same(get(da), da_values));
      CHECK(same(get(db), db_values));
    };
    const double none = -infinity;
    // One path for each element; then a row without any.
    run({0, none, none, 0}, {1, 2, 1, 2}, {1, 2, 1, 2}, {5, 6, 7, 8}, {11, 0, 0, 15}, {5, 6, 7, 8});
    run({none, none, none, 0}, {1, 2, 3, 4}, {none, none, 3, 4}, {5, 6, 7, 8}, {0, 0, 0, 15}, {0, 0, 7, 8});
    run({none, none, none, none}, {none, 2, none, 4}, {none, none, none, none}, {5, infinity, not_a_number, 8}, {0, 0, 0, 0},
        {0, 0, 0, 0});
    // What −∞ multiplies is 0, even of infinite dC.
    run({0, none, none, 0}, {1, 2, 3, 4}, {1, 2, 3, 4}, {infinity, 6, 7, not_a_number}, {infinity, 0, 0, not_a_number},
        {infinity, 6, 7, not_a_number});
    // +∞ and NaN.
    run({infinity, 0, none, 0}, {1, 2, 3, 4}, {infinity, infinity, 3, 4}, {5, 6, 7, 8}, {not_a_number, 0, 0, 15},
        {not_a_number, not_a_number, 7, 8});
    run({not_a_number, 0, none, 0}, {1, 2, 3, 4}, {not_a_number, not_a_number, 3, 4}, {5, 6, 7, 8},
        {not_a_number, not_a_number, 0, 15}, {not_a_number, not_a_number, not_a_number, not_a_number});
    // Terms far below the maxima of their row and column.
    run({0, -1e6, -1e6, -1e6}, {-1e6, 0, -1e3, -1e6}, {-1e6, 0, -1e6 - 1e3, -1e6}, {2, 4, 0, 0}, {6, 0, 0, 0}, {2, 4, 0, 0});
  };
  SUBCASE("double") { check(double{}); }
  SUBCASE("float, but for the rounded logarithm") {
    const Exec exec;
    const auto a = matrix<float, Exec>(1, 2, {0, -3e38}), b = matrix<float, Exec>(2, 1, {-3e38, 0}),
               c = matrix<float, Exec>(1, 1), dc = matrix<float, Exec>(1, 1, {3e38}), da = matrix<float, Exec>(1, 2),
               db = matrix<float, Exec>(2, 1);
    rigel::contract(exec, rigel::log_plus<float>{}, a, b, c);
    rigel::contract_backward(exec, rigel::log_plus<float>{}, a, b, c, dc, da, db);
    exec.fence();
    CHECK(get(c) == Numbers{double(-3e38f)});
    CHECK(get(da) == Numbers{double(3e38f), double(3e38f)});  // log 2 is lost in C
    CHECK(get(db) == get(da));
  }
}

TEST_CASE_TEMPLATE("contract_backward: ties, infinities and NaN of winners", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto run = [&](const auto& semiring, const Numbers& a_values, const Numbers& b_values, const Numbers& dc_values,
                       const Numbers& da_values, const Numbers& db_values) {
    using T = typename std::decay_t<decltype(semiring)>::element;
    const auto a = matrix<T, Exec>(2, 3, a_values), b = matrix<T, Exec>(3, 2, b_values), c = matrix<T, Exec>(2, 2),
               dc = matrix<T, Exec>(2, 2, dc_values), da = matrix<T, Exec>(2, 3), db = matrix<T, Exec>(3, 2);
    rigel::contract_backward(exec, semiring, a, b, c, dc, da, db);
    exec.fence();
    CHECK(get(da) == da_values);
    CHECK(get(db) == db_values);
  };
  const double none = infinity;
  run(rigel::min_plus<float>{}, {1, 1, 1, 0, 5, 0}, {1, 2, 1, 2, 1, 0}, {1, 2, 3, 4}, {1, 0, 2, 3, 0, 4},
      {4, 0, 0, 0, 0, 6});
  // No path to the first column, none from the first row; NaN wins, the first one.
  run(rigel::min_plus<double>{}, {none, none, none, 0, 1, 2}, {none, 2, none, 1, none, 1}, {1, 2, 3, 4}, {0, 0, 0, 4, 0, 0},
      {0, 4, 0, 0, 0, 0});
  run(rigel::min_plus<float>{}, {0, not_a_number, 0, 0, 0, 0}, {1, 2, 1, 1, 1, not_a_number}, {1, 2, 3, 4},
      {0, 3, 0, 3, 0, 4}, {3, 0, 1, 2, 0, 4});
  run(rigel::max_min<double>{}, {1, 2, 3, -none, -none, -none}, {2, 1, 2, 5, 1, 3}, {1, 2, 3, 4}, {0, 1, 2, 0, 0, 0},
      {0, 0, 0, 0, 0, 0});
}

TEST_CASE_TEMPLATE("contract_backward: extents of 0", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto run = [&](const auto& semiring, int batches, int m, int n, int k) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    using T = typename std::decay_t<decltype(semiring)>::element;
    const auto a = matrix<T, Exec>(m, k), b = matrix<T, Exec>(k, n);
    const auto c = support::batch<T, Exec>(batches, m, n), dc = support::batch<T, Exec>(batches, m, n);
    const auto da = matrix<T, Exec>(m, k, Numbers(static_cast<std::size_t>(m * k), 7)),
               db = matrix<T, Exec>(k, n, Numbers(static_cast<std::size_t>(k * n), 7));
    rigel::contract_backward(exec, semiring, a, b, c, dc, da, db, {.accumulate = true});
    exec.fence();
    CHECK(get(da) == Numbers(static_cast<std::size_t>(m * k), 7));
    CHECK(get(db) == Numbers(static_cast<std::size_t>(k * n), 7));
    rigel::contract_backward(exec, semiring, a, b, c, dc, da, db);
    exec.fence();
    CHECK(get(da) == Numbers(static_cast<std::size_t>(m * k), 0));
    CHECK(get(db) == Numbers(static_cast<std::size_t>(k * n), 0));
  };
  const auto all = [&](const auto& semiring) {
    run(semiring, 1, 0, 3, 4);
    run(semiring, 1, 2, 0, 4);
    run(semiring, 1, 2, 3, 0);
    run(semiring, 0, 2, 3, 4);
  };
  all(rigel::plus_times<float>{});
  all(rigel::log_plus<double>{});
  all(rigel::min_plus<float>{});
  all(rigel::l1<double>{});
  all(rigel::l2_squared<rigel::half>{});
}

TEST_CASE_TEMPLATE("contract_backward refuses bad input", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = matrix<float, Exec>(4, 7, {}, "left"), b = matrix<float, Exec>(7, 3, {}, "right"),
             c = matrix<float, Exec>(4, 3, {}, "result"), dc = matrix<float, Exec>(4, 3, {}, "upstream");
  const auto da = matrix<float, Exec>(4, 7, Numbers(28, -7), "left's"), db = matrix<float, Exec>(7, 3, Numbers(21, -7));
  const rigel::log_plus<float> s;
  const auto refused = [&](std::initializer_list<const char*> texts, const auto& call) {
    const support::Caught error = caught(call);
    CHECK(error.code == rigel::Code::invalid_argument);
    CHECK(error.lacks(texts) == "");
    CHECK(get(da) == Numbers(28, -7));
    CHECK(get(db) == Numbers(21, -7));
  };
  const auto of = [&](const auto& a_, const auto& b_, const auto& c_, const auto& dc_, const auto& da_, const auto& db_) {
    return [=] { rigel::contract_backward(exec, s, a_, b_, c_, dc_, da_, db_); };
  };
  refused({"contract_backward: B", "is 6x3, expected 7 rows to match the columns of A 'left' 4x7"},
          of(a, matrix<float, Exec>(6, 3), c, dc, da, db));
  refused({"dC", "is 5x3, expected 4 rows to match A 'left' 4x7"}, of(a, b, c, matrix<float, Exec>(5, 3), da, db));
  refused({"dC", "is 4x2, expected 3 columns to match B 'right' 7x3"}, of(a, b, c, matrix<float, Exec>(4, 2), da, db));
  refused({"C", "is 3x4, expected 4x3 (M x N) to match dC 'upstream' 4x3"}, of(a, b, matrix<float, Exec>(3, 4), dc, da, db));
  refused({"dA", "is 4x6, expected 4x7 (as A) to match A 'left' 4x7"}, of(a, b, c, dc, matrix<float, Exec>(4, 6), db));
  refused({"dB", "is 2x7x3, expected 7x3 (as B)"}, of(a, b, c, dc, da, support::batch<float, Exec>(2, 7, 3)));
  refused({"A", "is 2x4x7, expected 1 batches or one"}, of(support::batch<float, Exec>(2, 4, 7), b, c, dc, da, db));
  refused({"dA 'left' 4x7 overlaps A 'left' 4x7, expected distinct elements"}, of(a, b, c, dc, a, db));
  refused(
      {"dB", "overlaps dA 'left's' 4x7"},
      of(a, b, c, dc, da,
         Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(da.data(), 7, 3)));
  const Kokkos::View<float**, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged> folded(
      da.data(), Kokkos::LayoutStride(4, 1, 7, 1));
  refused({"dA 4x7 overlaps itself"}, of(a, b, c, dc, folded, db));
  refused({"p is -1", "expected a finite number above 0"},
          [&] { rigel::contract_backward(exec, rigel::lp<float>{.p = -1}, a, b, c, dc, da, db); });
  const std::size_t bytes = rigel::contract_backward_workspace_size(exec, s, a, b, c, dc, da, db);
  CHECK(bytes > 0);
  const Kokkos::View<double*, typename Exec::memory_space> memory("workspace", bytes / sizeof(double) + 32);
  auto* const aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256);
  refused({"the workspace has", "bytes, expected "}, [&] {
    rigel::contract_backward(exec, s, a, b, c, dc, da, db, {.workspace = {.data = aligned, .bytes = bytes - 1}});
  });
  CHECK(rigel::explain_contract_backward(exec, s, a, b, c, dc, da, db).find("dA: ") != std::string::npos);
}

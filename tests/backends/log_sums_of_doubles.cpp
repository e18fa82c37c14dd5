// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// log_plus of doubles by every kernel, against long double and within its stated bound: terms of any size, sums that products of
// exponentials lose and that are recomputed, infinities and NaN, accumulation, a row alone.
#include <rigel/contract.hpp>

#include <tests/backends/special_data.hpp>
#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace {

using Values = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Row-major operands. If c is empty, the call does not accumulate.
struct Product {
  int m, n, k;
  Values a, b, c = {};

  Product(int rows, int columns, int length, double spread, std::uint64_t seed = 1) : m(rows), n(columns), k(length) {
    support::Random random(seed);
    for (Values* list : {&a, &b}) {
      list->resize(static_cast<std::size_t>(list == &a ? m : n) * k);
      for (double& v : *list) v = random.uniform(-spread, spread);
    }
  }
  /// Puts the maxima of rows at k = 0 and those of columns at the last k, `gap` above the rest.
  Product& part(double gap) {
    for (int i = 0; i < m; ++i) a[i * k] = gap;
    for (int j = 0; j < n; ++j) b[(k - 1) * n + j] = gap;
    return *this;
  }
  Product& accumulated() {
    support::Random random(5);
    c.resize(static_cast<std::size_t>(m) * n);
    for (double& v : c) v = random.uniform(-2, 2);
    return *this;
  }

  long double exact(int i, int j) const {
    const long double start = c.empty() ? -infinity : c[i * n + j];
    const auto term = [&](int l) { return static_cast<long double>(a[i * k + l]) + b[l * n + j]; };
    long double largest = start;
    for (int l = 0; l < k; ++l) {
      if (std::isnan(term(l))) return term(l);
      largest = std::max(largest, term(l));
    }
    if (std::isinf(largest)) return largest;
    long double sum = std::exp(start - largest);
    for (int l = 0; l < k; ++l) sum += std::exp(term(l) - largest);
    return largest + std::log(sum);
  }

  template <class Exec>
  Values by(const rigel::KernelInfo& info, bool transposed_operands) const {
    const auto result = support::matrix<double, Exec>(m, n, c);
    const rigel::ContractOptions options{.accumulate = !c.empty(), .precision = info.precision, .kernel = info.name};
    const auto call = [&](const auto& x, const auto& y) {
      rigel::contract(Exec{}, rigel::log_plus<double>{}, x, y, result, rigel::epilogue::Program{}, options);
    };
    if (transposed_operands) {
      Values of_a(a.size()), of_b(b.size());
      for (int l = 0; l < k; ++l) {
        for (int i = 0; i < m; ++i) of_a[l * m + i] = a[i * k + l];
        for (int j = 0; j < n; ++j) of_b[j * k + l] = b[l * n + j];
      }
      call(rigel::transposed(support::matrix<double, Exec>(k, m, of_a)),
           rigel::transposed(support::matrix<double, Exec>(n, k, of_b)));
    } else {
      call(support::matrix<double, Exec>(m, k, a), support::matrix<double, Exec>(k, n, b));
    }
    return support::values(result);
  }
};

/// Calls use(info) for every kernel of log_plus on doubles.
template <class Exec, class Use>
void for_each_kernel(const Use& use) {
  for (const auto& info : support::kernels_on(Exec{}, "log_plus", rigel::Scalar::f64)) {
    CAPTURE(info.name);
    use(info);
  }
}

// On a GPU with tensor cores, each case must find their kernels.
template <class Exec>
void check_met() {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return support::skip("tensor cores: a host has none");
  int found = 0;
  for_each_kernel<Exec>([&](const rigel::KernelInfo& info) { found += info.family == "cuda.mma"; });
  CHECK(found == 2);
}

// docs/numerics.md: the default admits these kernels from K = 779 on.
template <class Exec>
void check_admission() {
  for_each_kernel<Exec>([&](const rigel::KernelInfo& info) {
    if (info.family != "cuda.mma") return;
    CHECK(info.accuracy.of(779) <= 779 + 2);
    CHECK(info.accuracy.of(778) > 778 + 2);
  });
}

// docs/numerics.md: relative to 1 and the largest numbers of both operands, and of C.
template <class Exec>
void check_errors(const Product& p, bool transposed_operands = false) {
  long double scale = 1;
  for (const Values* list : {&p.a, &p.b, &p.c}) {
    double largest = 0;
    for (const double v : *list)
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    scale += largest;
  }
  std::vector<long double> all_exact;
  for (int i = 0; i < p.m; ++i)
    for (int j = 0; j < p.n; ++j) {
      const long double exact = p.exact(i, j);
      all_exact.push_back(std::fabs(exact) > std::numeric_limits<double>::max() ? std::copysign(infinity, exact) : exact);
    }
  for_each_kernel<Exec>([&](const rigel::KernelInfo& info) {
    Values actual;
    if (!support::ran(info, [&] { actual = p.by<Exec>(info, transposed_operands); })) return;
    const long double bound = info.accuracy.of(p.k) * 0x1p-53 * scale;
    for (int i = 0; i < p.m; ++i)
      for (int j = 0; j < p.n; ++j) {
        const long double exact = all_exact[i * p.n + j];
        const double found = actual[i * p.n + j];
        const bool good =
            std::isfinite(exact) ? std::fabs(found - exact) <= bound : support::same(found, static_cast<double>(exact));
        if (good) continue;
        CAPTURE(i);
        CAPTURE(j);
        CAPTURE(static_cast<double>(exact));
        CHECK_MESSAGE(good, found);
        return;
      }
  });
}

}  // namespace

TEST_CASE_TEMPLATE("log sums of doubles: errors", Exec, Kokkos::DefaultExecutionSpace) {
  check_met<Exec>();
  check_admission<Exec>();
  for (const double spread : {1., 30., 1000.})
    for (const int k : {0, 1, 3, 15, 33, 130}) {
      CAPTURE(spread);
      CAPTURE(k);
      check_errors<Exec>(Product(70, 67, k, spread));
      check_errors<Exec>(Product(70, 67, k, spread), true);
      check_errors<Exec>(Product(130, 5, k, spread).accumulated());
    }
  check_errors<Exec>(Product(3, 130, 5000, 5));
}

// The sums of all outputs are about exp(−gap): 2^-900 is exp(−623.8).
TEST_CASE_TEMPLATE("log sums of doubles: maxima at different k", Exec, Kokkos::DefaultExecutionSpace) {
  check_met<Exec>();
  for (const double gap : {40., 300., 600., 623., 625., 700., 740., 5000., 1e12}) {
    CAPTURE(gap);
    check_errors<Exec>(Product(70, 67, 100, 1).part(gap));
    check_errors<Exec>(Product(70, 67, 100, 1).part(gap), true);
    check_errors<Exec>(Product(65, 64, 301, 1).part(gap).accumulated());
  }
}

TEST_CASE_TEMPLATE("log sums of doubles: some outputs are recomputed", Exec, Kokkos::DefaultExecutionSpace) {
  check_met<Exec>();
  for (const int columns : {1, 7, 60}) {
    CAPTURE(columns);
    Product p(90, 100, 400, 1);
    for (int i = 0; i < p.m; i += 3) p.a[i * p.k + 5] = 5000;
    for (int j = 0; j < columns; ++j) p.b[5 * p.n + j] = -7000;
    check_errors<Exec>(p);
    check_errors<Exec>(p.accumulated());
  }
}

TEST_CASE_TEMPLATE("log sums of doubles: infinities and NaN", Exec, Kokkos::DefaultExecutionSpace) {
  check_met<Exec>();
  Product p(70, 66, 90, 2);
  support::Random random(7);
  for (Values* list : {&p.a, &p.b})
    for (double& v : *list)
      if (random.chance(0.6)) v = -infinity;
  std::fill(p.a.begin() + 3 * p.k, p.a.begin() + 5 * p.k, -infinity);
  check_errors<Exec>(p);
  // One +∞, which meets −∞ in most columns; a NaN of either sign, which no −∞ hides.
  p.a[9 * p.k + 8] = infinity;
  p.b[11 * p.n + 10] = infinity;
  p.a[20 * p.k] = not_a_number;
  p.a[21 * p.k + 7] = -not_a_number;
  check_errors<Exec>(p);
  check_errors<Exec>(p, true);
  // The largest doubles: exponents and maxima overflow.
  Product q(2, 2, 2, 0);
  q.a = {1.7e308, -1.7e308, 1.7e308, 0};
  q.b = {0, 1.7e308, 1.7e308, 0};
  for_each_kernel<Exec>([&](const rigel::KernelInfo& info) {
    Values c;
    const Values expected = {1.7e308, infinity, 1.7e308, infinity};
    if (support::ran(info, [&] { c = q.by<Exec>(info, false); }))
      CHECK_MESSAGE(support::same(c, expected), c[0], " ", c[1], " ", c[2], " ", c[3]);
  });
}

TEST_CASE_TEMPLATE("log sums of doubles: data that is not finite, or overflows", Exec, Kokkos::DefaultExecutionSpace) {
  check_met<Exec>();
  for (const special::Data& data : special::all())
    for (const auto& [m, n, k, gap] :
         std::vector<std::tuple<int, int, int, double>>{{70, 67, 33, 0}, {130, 70, 101, 0}, {70, 67, 101, 700}}) {
      CAPTURE(data.name);
      CAPTURE(k);
      CAPTURE(gap);
      Product p(m, n, k, 2);
      if (gap > 0) p.part(gap);
      Values columns(p.b.size());
      const auto copy = [&](bool back) {
        for (int j = 0; j < n; ++j)
          for (int l = 0; l < k; ++l)
            (back ? p.b[l * n + j] : columns[j * k + l]) = back ? columns[j * k + l] : p.b[l * n + j];
      };
      copy(false);
      support::Random random(11);
      data.change({p.a, m, k}, {columns, n, k}, 1.7e308, random);
      copy(true);
      check_errors<Exec>(p);
      check_errors<Exec>(p, true);
      check_errors<Exec>(p.accumulated());
    }
}

TEST_CASE_TEMPLATE("log sums of doubles: a row alone has the same bits", Exec, Kokkos::DefaultExecutionSpace) {
  check_met<Exec>();
  for (const double gap : {0., 300., 700.}) {
    CAPTURE(gap);
    const Product p = Product(100, 75, 203, 3).part(gap);
    for_each_kernel<Exec>([&](const rigel::KernelInfo& info) {
      if (!covers(info.promises, rigel::Promise::batch_invariant)) return;
      Values c;
      if (!support::ran(info, [&] { c = p.by<Exec>(info, false); })) return;
      CHECK(p.by<Exec>(info, false) == c);
      for (const int row : {0, 17, 99}) {
        Product one = p;
        one.m = 1;
        one.a.assign(p.a.begin() + row * p.k, p.a.begin() + (row + 1) * p.k);
        Values alone;
        if (support::ran(info, [&] { alone = one.by<Exec>(info, false); }))
          CHECK(alone == Values(c.begin() + row * p.n, c.begin() + (row + 1) * p.n));
      }
    });
  }
}

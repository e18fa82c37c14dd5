// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// log_plus of floats as products of exponentials on tensor cores: outputs that lose digits because the maxima of a row and of
// a column are at different k, and are recomputed; infinities; bits that do not depend on other rows. The zoo's trials and
// verify() cover all shapes and layouts.
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
#include <map>
#include <tuple>
#include <utility>

namespace {

using rigel::Precision;
using Values = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double u = 0x1p-24;

template <class Exec>
std::vector<rigel::KernelInfo> log_sum_kernels() {
  std::vector<rigel::KernelInfo> list;
  for (const auto& info : support::kernels_on(Exec{}, "log_plus", rigel::Scalar::f32))
    if (info.family == "cuda.mma") list.push_back(info);
  return list;
}

// On a GPU with tensor cores, each case must find their kernels.
template <class Exec>
void check_met() {
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda)
    CHECK(log_sum_kernels<Exec>().size() >= 4);
  else
    support::skip("tensor cores: a host has none");
}

/// Row-major operands, rounded to float. If c is empty, the call does not accumulate.
struct Product {
  int m, n, k;
  Values a, b, c = {};

  Product(int rows, int columns, int length, double spread, std::uint64_t seed = 1) : m(rows), n(columns), k(length) {
    support::Random random(seed);
    for (Values* list : {&a, &b}) {
      list->resize(static_cast<std::size_t>(list == &a ? m : n) * k);
      for (double& v : *list) v = static_cast<float>(random.uniform(-spread, spread));
    }
  }
  /// Puts the maxima of rows at k = 0 and those of columns at the last k, `gap` above the rest.
  Product& part(double gap) {
    for (int i = 0; i < m; ++i) a[i * k] = static_cast<float>(gap);
    for (int j = 0; j < n; ++j) b[(k - 1) * n + j] = static_cast<float>(gap);
    return *this;
  }

  double exact(int i, int j) const {
    const double start = c.empty() ? -infinity : c[i * n + j];
    double largest = start;
    for (int l = 0; l < k; ++l) {
      const double t = a[i * k + l] + b[l * n + j];
      if (t != t) return t;
      largest = std::fmax(largest, t);
    }
    if (std::isinf(largest)) return largest;
    double sum = std::exp(start - largest);
    for (int l = 0; l < k; ++l) sum += std::exp(a[i * k + l] + b[l * n + j] - largest);
    return largest + std::log(sum);
  }

  template <class Exec>
  Values by(const rigel::KernelInfo& info, bool column_major_a, bool column_major_b) const {
    const auto result = support::matrix<float, Exec>(m, n, c);
    const rigel::ContractOptions options{.accumulate = !c.empty(), .precision = info.precision, .kernel = info.name};
    const auto call = [&](const auto& x, const auto& y) {
      rigel::contract(Exec{}, rigel::log_plus<float>{}, x, y, result, rigel::epilogue::Program{}, options);
    };
    const auto with_a = [&](const auto& x) {
      if (column_major_b)
        call(x, rigel::transposed(support::matrix<float, Exec>(n, k, columns_of_b())));
      else
        call(x, support::matrix<float, Exec>(k, n, b));
    };
    if (column_major_a) {
      Values of_a(a.size());
      for (int l = 0; l < k; ++l)
        for (int i = 0; i < m; ++i) of_a[l * m + i] = a[i * k + l];
      with_a(rigel::transposed(support::matrix<float, Exec>(k, m, of_a)));
    } else {
      with_a(support::matrix<float, Exec>(m, k, a));
    }
    return support::values(result);
  }
  template <class Exec>
  Values by(const rigel::KernelInfo& info, bool transposed_operands = false) const {
    return by<Exec>(info, transposed_operands, transposed_operands);
  }

  Values columns_of_b() const {
    Values of_b(b.size());
    for (int l = 0; l < k; ++l)
      for (int j = 0; j < n; ++j) of_b[j * k + l] = b[l * n + j];
    return of_b;
  }
};

// Errors in u, as docs/numerics.md derives them:
//   products        3 for each product of an instruction, which takes 16 k-steps. Promoted sums span 32 k; floats in two parts,
//                   with three products each, always have promoted sums. Products in two parts: 28.
//   exponentials    4 each
//   sums            K/32 for those of slabs; for those relative to a running maximum, a sum and a weight for every eight k
//   maxima          their sum is rounded once. Differences from them are rounded three times, 2.25 in all; their mean, weighted
//                   by terms, is at most log K less the logarithm of the sum.
//   the logarithm   2 of itself. It is at most 16·max(1, |result|) if promoted, else twice the sum of the largest a and b.
template <class Exec>
void check_errors(const Product& p, bool transposed_operands = false) {
  double largest = 1;
  for (const Values* list : {&p.a, &p.b, &p.c})
    for (const double v : *list)
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  for (const auto& info : log_sum_kernels<Exec>()) {
    CAPTURE(info.name);
    const Values actual = p.by<Exec>(info, transposed_operands);
    const double of_k = info.precision == Precision::promoted ? 5. / 8 : 3;
    const double of_sum = 3 * 32 * 3 + 2 + 28 + 8 + of_k * p.k + 2.25 * std::log(std::max(p.k, 1));
    for (int i = 0; i < p.m; ++i)
      for (int j = 0; j < p.n; ++j) {
        const double exact = p.exact(i, j), error = std::fabs(actual[i * p.n + j] - exact);
        const double own = std::max(1., std::fabs(exact));
        const double bound = info.precision == Precision::promoted ? of_sum + (17 + 4.25 * 16 + 1) * own
                                                                   : of_sum + (2 + 4.25 * 4 + 2) * largest;
        const bool good = std::isfinite(exact) ? error <= bound * u : support::same(actual[i * p.n + j], exact);
        if (good) continue;
        CAPTURE(i);
        CAPTURE(j);
        CAPTURE(exact);
        CHECK_MESSAGE(good, actual[i * p.n + j]);
        return;
      }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("log sums on tensor cores: errors", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  for (const double spread : {1., 10., 100.})
    for (const int k : {1, 31, 32, 33, 300}) {
      CAPTURE(spread);
      CAPTURE(k);
      check_errors<Exec>(Product(70, 67, k, spread));
      check_errors<Exec>(Product(70, 67, k, spread), true);
    }
  check_errors<Exec>(Product(3, 130, 5000, 5));
}

// Terms have factors as small as exp(−gap): too small for two halves from a gap of 20 on, for two tf32 numbers from 90 on.
TEST_CASE_TEMPLATE("log sums on tensor cores: maxima at different k", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  for (const double gap : {10., 20., 40., 80., 90., 200., 5000.}) {
    CAPTURE(gap);
    check_errors<Exec>(Product(70, 67, 100, 1).part(gap));
    check_errors<Exec>(Product(70, 67, 100, 1).part(gap), true);
    // Accumulation: the initial value of C must survive until the output is recomputed.
    Product p = Product(65, 64, 300, 1).part(gap);
    support::Random random(5);
    p.c.resize(65 * 64);
    for (double& v : p.c) v = static_cast<float>(random.uniform(-2, 2));
    check_errors<Exec>(p);
  }
}

// Warps recompute a cell's outputs if they are few, the threads of a tile if they are many.
TEST_CASE_TEMPLATE("log sums on tensor cores: some outputs are computed anew", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  for (const int columns : {1, 7, 60}) {
    CAPTURE(columns);
    Product p(90, 100, 400, 1);
    for (int i = 0; i < p.m; i += 3) p.a[i * p.k + 5] = 500;
    for (int j = 0; j < columns; ++j) p.b[5 * p.n + j] = -700;
    check_errors<Exec>(p);
  }
}

TEST_CASE_TEMPLATE("log sums on tensor cores: the same bits in every tile and for a row alone", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  for (const double gap : {0., 20., 40., 200.}) {
    CAPTURE(gap);
    Product p = Product(100, 75, 203, 3).part(gap);
    // One row far from its neighbours: only its outputs are recomputed.
    for (int l = 0; l < p.k; ++l) p.a[17 * p.k + l] = l == 3 ? 300 : 0;
    for (int j = 0; j < p.n; ++j) p.b[3 * p.n + j] = -400;
    std::map<Precision, Values> of;
    for (const auto& info : log_sum_kernels<Exec>()) {
      CAPTURE(info.name);
      CHECK(covers(info.promises, rigel::Promise::batch_invariant | rigel::Promise::repeatable));
      const Values c = p.by<Exec>(info);
      CHECK(p.by<Exec>(info) == c);
      CHECK(c == of.emplace(info.precision, c).first->second);
      for (const int row : {0, 17, 99}) {
        Product one = p;
        one.m = 1;
        one.a.assign(p.a.begin() + row * p.k, p.a.begin() + (row + 1) * p.k);
        CHECK(one.by<Exec>(info) == Values(c.begin() + row * p.n, c.begin() + (row + 1) * p.n));
      }
    }
  }
}

TEST_CASE_TEMPLATE("log sums on tensor cores: infinities and NaN", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  // Entries of −∞, and rows of only −∞.
  Product p(70, 66, 90, 2);
  support::Random random(7);
  for (Values* list : {&p.a, &p.b})
    for (double& v : *list)
      if (random.chance(0.6)) v = -infinity;
  std::fill(p.a.begin() + 3 * p.k, p.a.begin() + 5 * p.k, -infinity);
  check_errors<Exec>(p);
  // One +∞, which meets −∞ in most columns; a NaN, which no −∞ hides.
  p.a[9 * p.k + 8] = infinity;
  p.b[11 * p.n + 10] = infinity;
  p.a[20 * p.k] = not_a_number;
  check_errors<Exec>(p);
  check_errors<Exec>(p, true);
  // The largest floats: exponents and maxima overflow.
  Product q(2, 2, 2, 0);
  q.a = {3e38f, -3e38f, 3e38f, 0};
  q.b = {0, 3e38f, 3e38f, 0};
  for (const auto& info : log_sum_kernels<Exec>()) {
    CAPTURE(info.name);
    const Values c = q.by<Exec>(info), expected = {3e38f, infinity, 3e38f, infinity};
    CHECK_MESSAGE(support::same(c, expected), c[0], " ", c[1], " ", c[2], " ", c[3]);
  }
}

// Every kernel, within the bound it states, relative to 1 and the largest finite numbers of both operands. Sums beyond the largest
// float are infinite.
TEST_CASE_TEMPLATE("log sums: data that is not finite, or overflows", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  constexpr double largest_float = std::numeric_limits<float>::max();
  for (const special::Data& data : special::all())
    for (const auto& [m, n, k, gap] : std::vector<std::tuple<int, int, int, float>>{
             {70, 67, 33, 0}, {130, 70, 101, 0}, {65, 64, 300, 0}, {70, 67, 101, 40}, {70, 67, 101, 200}}) {
      CAPTURE(data.name);
      CAPTURE(k);
      CAPTURE(gap);
      Product p(m, n, k, 2);
      if (gap > 0) p.part(gap);
      support::Random random(11);
      Values columns = p.columns_of_b();
      data.change({p.a, m, k}, {columns, n, k}, 3e38, random);
      for (int j = 0; j < n; ++j)
        for (int l = 0; l < k; ++l) p.b[l * n + j] = columns[j * k + l];
      for (Values* list : {&p.a, &p.b})
        for (double& v : *list) v = static_cast<float>(v);
      for (const bool accumulated : {false, true}) {
        CAPTURE(accumulated);
        if (accumulated) p.c.assign(static_cast<std::size_t>(m) * n, 2.5);
        double scale = 1;
        for (const Values* list : {&p.a, &p.b, &p.c}) {
          double largest = 0;
          for (const double v : *list)
            if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
          scale += largest;
        }
        Values expected;
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            const double exact = p.exact(i, j);
            expected.push_back(std::fabs(exact) > largest_float ? std::copysign(infinity, exact) : exact);
          }
        for (const auto& info : support::kernels_on(Exec{}, "log_plus", rigel::Scalar::f32)) {
          CAPTURE(info.name);
          const double bound = info.accuracy.of(k + 1) * u * scale;
          for (const auto& [column_major_a, column_major_b] :
               {std::pair{false, false}, {true, true}, {false, true}, {true, false}}) {
            Values found;
            if (!support::ran(info, [&] { found = p.template by<Exec>(info, column_major_a, column_major_b); })) continue;
            int wrong = 0, first = -1;
            for (int e = 0; e < m * n; ++e) {
              const bool good = std::isfinite(expected[e]) ? std::fabs(found[e] - expected[e]) <= bound
                                                           : support::same(found[e], expected[e]);
              if (!good && wrong++ == 0) first = e;
            }
            CHECK_MESSAGE(wrong == 0, wrong, " of ", m * n, ", first ", first, ": ", found[std::max(first, 0)], " for ",
                          expected[std::max(first, 0)]);
          }
        }
      }
    }
}

TEST_CASE_TEMPLATE("log sums on tensor cores: infinities have the same bits for a row alone", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  for (const special::Data& data : special::all()) {
    CAPTURE(data.name);
    Product p = Product(100, 75, 203, 3).part(200);
    Values columns = p.columns_of_b();
    support::Random random(12);
    data.change({p.a, p.m, p.k}, {columns, p.n, p.k}, 3e38, random);
    for (int j = 0; j < p.n; ++j)
      for (int l = 0; l < p.k; ++l) p.b[l * p.n + j] = columns[j * p.k + l];
    for (const auto& info : log_sum_kernels<Exec>()) {
      CAPTURE(info.name);
      const Values c = p.template by<Exec>(info);
      for (const int row : {0, 17, 99}) {
        Product one = p;
        one.m = 1;
        one.a.assign(p.a.begin() + row * p.k, p.a.begin() + (row + 1) * p.k);
        CHECK(support::same(one.template by<Exec>(info), Values(c.begin() + row * p.n, c.begin() + (row + 1) * p.n)));
      }
    }
  }
}

TEST_CASE_TEMPLATE("log sums on tensor cores: no k, and one", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  Product none(70, 3, 0, 1), one(70, 3, 1, 50);
  check_errors<Exec>(none);
  check_errors<Exec>(one);
  none.c.assign(210, 2.5);
  check_errors<Exec>(none);
}

TEST_CASE_TEMPLATE("log sums on tensor cores are asked for", Exec, RIGEL_TEST_SPACES) {
  check_met<Exec>();
  const auto kernels = log_sum_kernels<Exec>();
  const auto one = support::matrix<float, Exec>(1, 1, {1}), c = support::matrix<float, Exec>(1, 1);
  const auto call = [&](const rigel::ContractOptions& options) {
    rigel::contract(Exec{}, rigel::log_plus<float>{}, one, one, c, rigel::epilogue::Program{}, options);
  };
  for (const auto& info : kernels) {
    CAPTURE(info.name);
    support::check_asked_for<rigel::ContractOptions>(info, call);
    CHECK(support::values(c) == Values{2});
  }
}

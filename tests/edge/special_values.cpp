// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NaN and infinities among the operands, by every kernel: they must reach exactly the outputs that depend on them.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/formulas.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <cmath>
#include <functional>

using support::matrix;

namespace {

constexpr int m = 21, n = 35, depth = 19;  // not multiples of a vector or a tile
constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

using Values = std::vector<double>;
using Run = std::function<Values(const std::string& kernel, const Values& a, const Values& b)>;

// The result of an output from one special product a ⊗ b and products of ones.
double expected(const support::Formula& f, double a, double b) {
  const double* const hyperparameters = f.hyperparameters.data();
  double x = f.multiply(a, b, hyperparameters);
  for (int k = 1; k < depth; ++k) x = f.add(x, f.multiply(1, 1, hyperparameters));
  return x;
}

// Checks operands of ones, except A(4, k) = a and B(k, 9) = b.
void check(const rigel::SemiringInfo& facts, const std::vector<rigel::KernelInfo>& kernels, const Run& run) {
  const support::Formula& formula = support::formula(facts.name);
  const bool non_negative = facts.domain == rigel::Domain::non_negative;
  for (const auto& info : kernels) {
    if (info.family == "user") continue;
    CAPTURE(info.name);
    for (const int k : {0, 7, depth - 1}) {
      for (const double a : {not_a_number, infinity, -infinity, 1.}) {
        for (const double b : {not_a_number, infinity, -infinity}) {
          if (non_negative && (a < 0 || b < 0)) continue;
          CAPTURE(k);
          CAPTURE(a);
          CAPTURE(b);
          Values x(m * depth, 1), y(depth * n, 1);
          x[4 * depth + k] = a;
          y[k * n + 9] = b;
          Values actual;
          if (!support::ran(info, [&] { actual = run(info.name, x, y); })) continue;
          int wrong = 0;
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
              const double e = expected(formula, i == 4 ? a : 1, j == 9 ? b : 1);
              const bool near = support::kind(e) == 0 && std::fabs(actual[i * n + j] - e) <= 1e-5 * std::fabs(e);
              wrong += !(near || support::same(actual[i * n + j], e));
            }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

template <class S, class Exec>
void check_semiring() {
  using T = typename S::element;
  const Run run = [](const std::string& kernel, const Values& a, const Values& b) {
    const auto c = matrix<T, Exec>(m, n);
    rigel::contract(Exec{}, support::with_hyperparameters<S>(), matrix<T, Exec>(m, depth, a), matrix<T, Exec>(depth, n, b),
                    c, rigel::epilogue::Program{}, {.precision = rigel::Precision::operands, .kernel = kernel});
    return support::values(c);
  };
  check(rigel::semiring_info<S>(),
        support::kernels_on(Exec{}, S::name, rigel::scalar_of<T>, rigel::scalar_of<typename S::accumulator>), run);
}

// Two instantiations per semiring are enough: f32 and f64 use different instructions.
template <class Exec, class... S>
void check_both(rigel::type_list<S...>) {
  const auto one = []<class T>(rigel::type_list<T>) {
    if constexpr (std::is_floating_point_v<typename T::element>) check_semiring<T, Exec>();
  };
  (one(rigel::type_list<S>{}), ...);
}

}  // namespace

TEST_CASE_TEMPLATE("special values: through every kernel", Exec, RIGEL_TEST_SPACES) {
  rigel::detail::for_each_of_zoo([]<class List>() { check_both<Exec>(List{}); });
}

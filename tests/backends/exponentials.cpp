// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exponentials of distances by every kernel for float: exp(rate · d) of the same kernel's own distances d, within the error of an
// exponential. C has rows, columns, or rows that no vector fits, whole tiles and parts, and holds a value to continue or not.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

// `self`: the distances of X from itself, which tensor cores mirror. The first rows are equal: their distances of 0 cancel.
template <class S, class Exec>
void check_semiring(const S& semiring, bool self = false) {
  using Space = typename Exec::memory_space;
  constexpr int m = 300, equal_rows = 20;
  const int n = self ? m : 268;
  constexpr double rate = -0.03125;
  for (const int k : {64, 37}) {
    support::Random random(15);
    std::vector<double> x(m * k), z(n * k);
    for (std::vector<double>* list : {&x, &z})
      for (double& v : *list) v = static_cast<float>(random.uniform(-1, 1));
    for (int i = 0; i < equal_rows * k; ++i) x[i] = z[i] = x[i % k];
    const auto a = support::matrix<float, Exec>(m, k, x), b = self ? a : support::matrix<float, Exec>(n, k, z);
    const auto check = [&](const auto& c, bool accumulate) {
      for (const auto& info : support::kernels_on(Exec{}, semiring.name, rigel::Scalar::f32)) {
        CAPTURE(info.name);
        CAPTURE(k);
        CAPTURE(self);
        CAPTURE(accumulate);
        const auto values = [&](const rigel::epilogue::Program& last) {
          Kokkos::deep_copy(Exec{}, c, 2);
          rigel::contract(Exec{}, semiring, a, rigel::transposed(b), c, last,
                          {.accumulate = accumulate, .precision = info.precision, .kernel = info.name});
          const Kokkos::View<float**, Kokkos::LayoutRight, Space> copy("copy", m, n);
          Kokkos::deep_copy(Exec{}, copy, c);
          return support::values(copy);
        };
        std::vector<double> plain, actual;
        if (!support::ran(info, [&] { plain = values({}); })) continue;
        if (!support::ran(info, [&] { actual = values(rigel::epilogue::exponential(rate)); })) continue;
        double worst = 0;
        for (int i = 0; i < m * n; ++i) {
          const double exact = std::exp(static_cast<double>(static_cast<float>(plain[i]) * static_cast<float>(rate)));
          worst = support::larger(worst, std::fabs(actual[i] - exact) / exact);
        }
        CHECK(worst <= 4 * 0x1p-24);  // an exponential is within 2 units in the last place
      }
    };
    for (const bool accumulate : {false, true}) {
      check(Kokkos::View<float**, Kokkos::LayoutRight, Space>("rows", m, n), accumulate);
      check(Kokkos::View<float**, Kokkos::LayoutLeft, Space>("columns", m, n), accumulate);
      const Kokkos::View<float**, Kokkos::LayoutRight, Space> larger("larger", m, n + 3);
      check(Kokkos::subview(larger, Kokkos::ALL, Kokkos::pair<int, int>(1, n + 1)), accumulate);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("exponentials of distances by every kernel", Exec, Kokkos::DefaultExecutionSpace) {
  check_semiring<rigel::l1<float>, Exec>({});
  check_semiring<rigel::linf<float>, Exec>({});
  check_semiring<rigel::l2_squared<float>, Exec>({});
  check_semiring<rigel::l2_squared<float>, Exec>({}, true);
  check_semiring<rigel::lp<float>, Exec>({{}, 1.3f});
  check_semiring<rigel::min_plus<float>, Exec>({});
}

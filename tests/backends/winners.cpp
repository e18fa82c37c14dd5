// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// with_argument over floats: the zoo's, and a user's.
#include "winners.hpp"

#include <doctest/doctest.h>

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// C(m,n) = min_k w·A(m,k) − B(k,n). This ⊕ drops a NaN on its left side.
struct weighted {
  using element = float;
  using accumulator = float;
  static constexpr bool selective = true, exact = true;
  float w = 1;
  KOKKOS_FUNCTION static float identity() { return std::numeric_limits<float>::infinity(); }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return w * a - b; }
  KOKKOS_FUNCTION float add(float x, float y) const { return x < y ? x : y; }
};

// C(m,n) = max_k A(m,k) · B(k,n), and 0 if all products are negative: the identity is then larger than each of them.
struct positive_part {
  using element = float;
  using accumulator = float;
  static constexpr bool selective = true, exact = true;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return -(a * b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x > y ? x : y; }
};

}  // namespace

TEST_CASE_TEMPLATE("with_argument: sums, minima and NaN of floats", Exec, RIGEL_TEST_SPACES) {
  winners::check<rigel::min_plus<float>, Exec>(inf, -0.5);
  winners::check<rigel::linf<float>, Exec>(3, 2);
}

TEST_CASE_TEMPLATE("with_argument: a user's selective semirings", Exec, RIGEL_TEST_SPACES) {
  winners::check<weighted, Exec>(inf, -0.5);  // ∞ − ∞: NaN
  winners::check<positive_part, Exec>(2, -0.25);
  // An object for each batch, in a view.
  using W = rigel::with_argument<weighted>;
  const std::vector<weighted> objects = {{1}, {-2}};
  const Kokkos::View<W*, typename Exec::memory_space> view("objects", 2);
  support::copy_in<Exec>(view.data(), objects.data(), 2 * sizeof(W));
  for (const int k : {24, 43})
    winners::check_call<weighted, Exec>(view, objects, 68, 36, k, {true, true, true, 0}, winners::Fill::nan, inf, -0.5);
}

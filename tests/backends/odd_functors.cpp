// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functors of unusual kinds, by the kernels of every family.
#include "functors.hpp"

namespace {

// Σ_k |w(a) − w(b)|, where w is a table with one entry per valid element. Any other value would read out of bounds.
struct Weighed {
  using element = std::uint8_t;
  using accumulator = float;
  static constexpr int first = 251;
  [[maybe_unused]] static constexpr int entries = 5;
  Kokkos::View<const float*, Kokkos::AnonymousSpace, Kokkos::MemoryUnmanaged> weight;  // in host memory for expected results
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(std::uint8_t a, std::uint8_t b) const {
    return Kokkos::abs(weight(a - first) - weight(b - first));
  }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

// Σ_k of products of remainders. The operand is a class, to which elements convert.
struct Residue {
  int value = 0;
  Residue() = default;
  KOKKOS_FUNCTION explicit Residue(std::int8_t v) : value(v % 3) {}
};
struct Residues {
  using element = std::int8_t;
  using operand = Residue;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(Residue a, Residue b) { return static_cast<float>(a.value * b.value); }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

// Has the name of one of Rigel's semirings, but is another one: the largest difference.
namespace rigel_alike {
template <class T>
struct min_plus {
  using element = T;
  using accumulator = T;
  KOKKOS_FUNCTION static T identity() { return -1000; }
  KOKKOS_FUNCTION static T multiply(T a, T b) { return a - b; }
  KOKKOS_FUNCTION static T add(T x, T y) { return x < y ? y : x; }
};
}  // namespace rigel_alike

// Inherits members that do not describe it, such as the shorter forms of ⊗ and ⊕.
struct MaxSum : rigel::max_min<float> {
  static constexpr const char* name = "max_sum";
  static constexpr bool takes_lanes = false;
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a + b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x < y ? y : x; }
};

#if RIGEL_BACKEND_HOST
static_assert((rigel::detail::has_ordered_form<rigel::max_min<float>> || rigel::math::minimum_is_instruction) &&
              !rigel::detail::has_ordered_form<MaxSum>);
#endif

}  // namespace

TEST_CASE_TEMPLATE("a table by value that has no other entries", Exec, RIGEL_TEST_SPACES) {
  const std::vector<float> weights = {0, 0.5f, 3, -2, 8};
  const auto table = support::on_device<float, Exec>(weights);
  const Weighed s{{table.data(), weights.size()}};
  support::Listed<Weighed, float> elements{{251, 252, 253, 254, 255}, s};
  elements.host.weight = {weights.data(), weights.size()};
  support::check_functor<Weighed, float, Exec>(s, rigel::epilogue::Program{}, 31, elements);
}
TEST_CASE_TEMPLATE("operands of a class", Exec, RIGEL_TEST_SPACES) {
  support::check_listed<Residues, float, Exec>({}, {-4, 1, 2, 5, 9}, 32);
}
TEST_CASE_TEMPLATE("a semiring with the name of one of Rigel's", Exec, RIGEL_TEST_SPACES) {
  support::check_listed<rigel_alike::min_plus<float>, float, Exec>({}, {-4, 1, 2.5f, 5, 9}, 33);
}
TEST_CASE_TEMPLATE("a semiring that inherits from one of Rigel's", Exec, RIGEL_TEST_SPACES) {
  support::check_listed<MaxSum, float, Exec>({}, {-4, 1, 2.5f, 5, 9}, 34);
}

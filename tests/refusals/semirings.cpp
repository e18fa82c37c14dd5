// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A functor that is no semiring gets one message for each member that it lacks, and nothing else.
#include <rigel/contract.hpp>

#include <vector>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<float**, Kokkos::HostSpace>;

struct NoAccumulator {
  using element = float;
};
struct NoIdentity {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION float multiply(float a, float b) const { return a * b; }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};
struct NoMultiply {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) { return a * b; }  // not const
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};
struct NoAdd {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return a * b; }
};
struct Weighted {
  using element = float;
  using accumulator = float;
  std::vector<float> weights;
  static float identity() { return 0; }
  float multiply(float a, float b, std::int64_t k) const { return weights[static_cast<std::size_t>(k)] * a * b; }
  float add(float x, float y) const { return x + y; }
};

}  // namespace

// expected-error@rigel/contract.hpp:* 2 {{A lambda cannot be a semiring: write a struct}}
void no_struct(const Matrix& a, const Matrix& b, const Matrix& c) {
  rigel::contract(Exec(), [](float x, float y) { return x * y; }, a, b, c);
  rigel::contract(Exec(), 1.f, a, b, c, rigel::epilogue::scale(2));
}

// expected-error@rigel/contract.hpp:* 1 {{the semiring lacks a type `accumulator`}}
// expected-error@rigel/contract.hpp:* 1 {{the semiring lacks `static accumulator identity()`}}
// expected-error@rigel/contract.hpp:* 1 {{the semiring lacks `accumulator multiply(element a, element b) const`}}
// expected-error@rigel/contract.hpp:* 1 {{the semiring lacks `accumulator add(accumulator x, accumulator y) const`}}
// expected-error@rigel/contract.hpp:* 1 {{no std::vector and no managed view}}
void members(const Matrix& a, const Matrix& b, const Matrix& c, const Kokkos::View<NoIdentity*, Kokkos::HostSpace>& view) {
  rigel::contract(Exec(), NoAccumulator{}, a, b, c);
  rigel::contract(Exec(), NoIdentity{}, a, b, c);
  rigel::contract(Exec(), view, a, b, c, {.accumulate = true});
  rigel::contract(Exec(), NoMultiply{}, a, b, c);
  rigel::contract(Exec(), NoAdd{}, a, b, c);
  rigel::contract(Exec(), Weighted{{1}}, a, b, c);
}

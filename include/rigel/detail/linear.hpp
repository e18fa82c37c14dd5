// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The linear layer on operands: what its front end hands to the compiled driver, src/operations/linear.cpp.
#pragma once

#include <rigel/activation.hpp>
#include <rigel/registry.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace rigel {

/// What a linear layer promises of its bits (docs/numerics.md).
enum class Tier : std::uint8_t {
  scalar,  // one chain of fused multiply-adds per output, k ascending: the same bits on every host and every GPU
  tensor   // tensor cores: bits that depend neither on M, nor on other rows, nor on the run
};
constexpr const char* name(Tier t) { return t == Tier::scalar ? "scalar" : "tensor"; }

namespace detail {

/// A pass over a matrix (detail/elementwise.hpp). `from` and `kept` have no data if they are absent.
struct ElementwisePass {
  Operand from = {}, to = {}, kept = {};
  const void* functor = nullptr;
};
using LaunchElementwise = void (*)(const Execution&, const ElementwisePass&);

/// The passes for the functors that the driver knows: a Program, the value and the derivative of an activation, and ones.
struct LinearPasses {
  LaunchElementwise program, value, derivative, ones;
};

/// What the three calls have. For an execution space that the library is not compiled for, `passes` and `instantiated` (kernels for a C
/// of f32) come from the caller's translation unit.
struct Linear {
  Contraction product;  // with the names that messages use, the semiring, and the options
  Tier tier = Tier::scalar;
  const LinearPasses* passes = nullptr;
  std::span<const Kernel<Contraction>> instantiated = {};
};

/// Y = epilogue(X W + bias): `product` is X W into Y. The epilogue is an activation, steps of the closed set or a functor; product
/// has the functor, after the bias, unless there is a preactivation to keep.
struct LinearForward : Linear {
  std::optional<Operand> bias;           // 1 × N
  std::optional<Operand> preactivation;  // X W + bias, kept
  Activation activation = Activation::none;
  epilogue::Program steps = {};
  const void* functor = nullptr;
  LaunchElementwise pass = nullptr;  // for the functor
};

/// dW += Xᵀ dY and db(n) += Σ_m dY(m,n), or = if `product` does not accumulate: it is transposed X times dY into dW, its A still X.
/// `instantiated` are kernels for a C of the bias's type.
struct LinearWeight : Linear {
  std::optional<Operand> bias;
};

/// dX = (dY Wᵀ) ⊙ act'(Z): `product` is dY times transposed W into dX, its B still W.
struct LinearInput : Linear {
  std::optional<Operand> preactivation;
  Activation activation = Activation::none;
};

/// The step that adds the bias, or no step. It checks the call's extents first.
epilogue::Program bias_of(const LinearForward& call);

void run_linear(const LinearForward& call);
void run_linear(const LinearWeight& call);
void run_linear(const LinearInput& call);
std::string explain_linear(const LinearForward& call);
std::string explain_linear(const LinearWeight& call);
std::string explain_linear(const LinearInput& call);
std::size_t linear_bytes(const LinearForward& call);
std::size_t linear_bytes(const LinearWeight& call);
std::size_t linear_bytes(const LinearInput& call);

}  // namespace detail
}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_gradient() with a functor from text: Out(l,o,n,m) = ⊕_k accumulate(C(l,o,k), multiply(D(l,n,m), B(l,n,k), A(l,k,m))).
// docs/runtime.md describes the language and the limits.
#pragma once

#include <rigel/gradient.hpp>
#include <rigel/runtime.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rigel::runtime {

/// A functor of contract_gradient() as text. Each text is an expression, or statements that end with `return`.
struct DerivativeTexts {
  std::string name = "text";     // in explain_gradient() and in messages: letters, digits and '_'
  Scalar element = Scalar::f32;  // of A, B, C and D: f32, f64, i32, i64, f16 or bf16
  Scalar accumulator =
      Scalar::other;  // of Out and of all else; other: f32 for 16-bit elements, else the element's type, as it must be
  std::string multiply = {};    // the derivative of one distance by one coordinate, times a weight: over d, b and a
  std::string accumulate = {};  // x ⊕ c·v, over x, c and v, a value of multiply; empty: fma(c, v, x)
  std::string add =
      {};  // x ⊕ y, which joins the sums of parts of K: over x and y. Empty: x + y if accumulate is, too; else no kernel cuts K
  std::string identity =
      {};  // the identity of ⊕, a constant; may be empty if accumulate and add are, or if add is x + y, min(x, y) or max(x, y)
  std::string result = {};  // what Out receives of a sum x; empty: x
  std::vector<Hyperparameter> hyperparameters =
      {};  // at most 16, in the accumulator's type, which all but identity may read
};

class Derivative;
namespace detail {
/// Makes a derivative the functor of a problem whose operands are set. Throws Error(invalid_argument) if their types are not those of the
/// derivative, or if a view that is a hyperparameter does not go with the problem.
void set_derivative(Gradient& p, const Derivative& derivative);
Verification verify(const Derivative& derivative, unsigned seed);
}  // namespace detail

/// A functor of contract_gradient() from text. Copies are cheap; each has its own values of the hyperparameters.
///
///     const rigel::runtime::Derivative l1({.multiply = "auto t = d - b; return abs(t) < epsilon || t == 0 ? 0 : a * copysign(1, t);",
///                                          .hyperparameters = {{"epsilon", 1e-6}}});
///     rigel::contract_gradient(exec, l1, a, b, c, d, out);
class Derivative {
 public:
  /// Reads and checks the texts; nothing is compiled yet. Throws Error(invalid_argument) with the line, the column and a
  /// caret under the place in the text if one is not a text of the language, or if types, names or numbers are not as described.
  explicit Derivative(const DerivativeTexts& texts);

  /// As in Semiring. A view has one number, or one for each batch of Out.
  void set(std::string_view name, double value);
  template <class View>
    requires Kokkos::is_view_v<View>
  void set(std::string_view name, const View& view) {
    set_view(name, rigel::detail::scalar_of_value<typename View::non_const_value_type>(), detail::text_view(view));
  }
  double get(std::string_view name) const;
  std::vector<std::string> hyperparameters() const;

  const std::string& name() const;
  Scalar element() const;
  Scalar accumulator() const;

  /// Compiles it for an execution space, so that no call has to: of a GPU, all kernels that calls may need. Throws Error(unsupported) if the
  /// space is neither one of the host nor CUDA, or if librigel_runtime.so is missing.
  template <class Exec>
  void compile(const Exec& exec = {}) const {
    compile(rigel::detail::execution_of(exec));
  }
  void compile(const Execution& execution) const;

  struct Program;  // what all copies share

  /// The kernels for a space: of the host compiled if they are not yet, of CUDA each when a call first runs it.
  std::span<const Kernel<Gradient>> kernels(Space space) const;

 private:
  friend void detail::set_derivative(Gradient&, const Derivative&);
  friend Verification detail::verify(const Derivative&, unsigned);
  void set_view(std::string_view name, Scalar type, rigel::detail::TextView view);
  std::shared_ptr<Program> program_;
  rigel::detail::TextValues values_;  // numbers of the accumulator's type
};

}  // namespace rigel::runtime

namespace rigel {

/// The problem of a call of contract_gradient() with a functor from text. It points to `exec`, `derivative` and options.kernel, which outlive
/// it.
template <class Exec, class A, class B, class C, class D, class Out>
Gradient gradient_problem(const Exec& exec, const runtime::Derivative& derivative, const A& a, const B& b, const C& c,
                          const D& d, const Out& out, const GradientOptions& options = {}) {
  Gradient p = detail::gradient_of_views(exec, a, b, c, d, out, options, "contract_gradient");
  runtime::detail::set_derivative(p, derivative);
  return p;
}

/// contract_gradient() with a functor from text, and explain_gradient() and gradient_workspace_size() of such a call. Views have the
/// derivative's types: A, B, C and D its elements, Out its accumulators. Throws Error(invalid_argument) if they do not;
/// Error(unsupported) if librigel_runtime.so is missing, or if a kernel would have to be compiled while a stream is captured; the rest as
/// contract_gradient() with a functor of C++ does.
template <class Exec, class A, class B, class C, class D, class Out>
void contract_gradient(const Exec& exec, const runtime::Derivative& derivative, const A& a, const B& b, const C& c,
                       const D& d, const Out& out, const GradientOptions& options = {}) {
  run(gradient_problem(exec, derivative, a, b, c, d, out, options));
}
template <class Exec, class A, class B, class C, class D, class Out>
std::string explain_gradient(const Exec& exec, const runtime::Derivative& derivative, const A& a, const B& b, const C& c,
                             const D& d, const Out& out, const GradientOptions& options = {}) {
  return explain(gradient_problem(exec, derivative, a, b, c, d, out, options));
}
template <class Exec, class A, class B, class C, class D, class Out>
std::size_t gradient_workspace_size(const Exec& exec, const runtime::Derivative& derivative, const A& a, const B& b,
                                    const C& c, const D& d, const Out& out, const GradientOptions& options = {}) {
  return workspace_size(gradient_problem(exec, derivative, a, b, c, d, out, options)).bytes;
}

/// Holds the kernels of a derivative from text to their promises, on the problems of verify() of registered kernels: those of the host, and of a
/// GPU those that promise the reference's bits. Results must have the bits of the same text computed output by output on the host, from
/// the operands as they lie in memory. The hyperparameters are those of the object. Throws as contract_gradient() does, and
/// Error(invalid_argument) if a hyperparameter is a view of several numbers.
inline Verification verify(const runtime::Derivative& derivative, unsigned seed = 1) {
  return runtime::detail::verify(derivative, seed);
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings from text, compiled in process when a call first needs them: contract() on host execution spaces and on CUDA.
// docs/runtime.md describes the language and the limits.
#pragma once

#include <rigel/contract.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rigel::runtime {

/// A hyperparameter: a name that texts may read, and its first value.
struct Hyperparameter {
  std::string name;
  double value = 0;
};

/// A semiring as text. Each text is an expression, or statements that end with `return`.
struct Texts {
  std::string name = "text";           // in explain() and in messages: letters, digits and '_'
  Scalar element = Scalar::f32;        // f32, f64, i32, i64, f16 or bf16
  Scalar accumulator = Scalar::other;  // that of the element; other: f32 for 16-bit elements, else the element's type
  std::string multiply = {};           // a ⊗ b, over a and b
  std::string add = {};                // x ⊕ y, over x and y
  std::string identity = {};           // the identity of ⊕, a constant; may be empty if add is x + y, min(x, y) or max(x, y)
  std::string step = {};               // x ⊕ (a ⊗ b) in one, over x, a and b; empty: add of multiply
  std::string result = {};             // what C receives of an accumulator x; empty: x
  std::vector<Hyperparameter> hyperparameters = {};  // at most 16, in the accumulator's type
  bool commutative = false;                          // whether a ⊗ b = b ⊗ a, which lets kernels compute the transpose
};

/// How texts became kernels since the program started.
struct Statistics {
  std::uint64_t compiled = 0;     // by Clang and LLVM
  std::uint64_t from_disk = 0;    // read from the disk cache
  std::uint64_t from_memory = 0;  // found compiled in this process, by an equal text
};
Statistics statistics();

/// Forgets the kernels that this process has compiled. Semirings and calls that use one keep it. What a GPU has loaded stays there, as
/// graphs may run it.
void release_kernels();

/// Whether librigel_runtime.so, which compiles texts, can be opened. Else `reason` receives why not.
bool is_available(std::string* reason = nullptr);

/// A semiring from text. Copies are cheap; each has its own values of the hyperparameters.
///
///     const rigel::runtime::Semiring s({.multiply = "power(abs(a - b), p)", .add = "x + y", .hyperparameters = {{"p", 3}}});
///     rigel::contract(exec, s, a, b, c);
class Semiring {
 public:
  /// Reads and checks the texts; nothing is compiled yet. Throws Error(invalid_argument) with the line, the column and a
  /// caret under the place in the text if one is not a text of the language, or if types, names or numbers are not as described.
  explicit Semiring(const Texts& texts);

  /// Sets a hyperparameter. No value makes anything be compiled again. Must not run during a call with the same object, which
  /// reads the values; copies have their own. Throws Error(invalid_argument) if there is none of that
  /// name, or if the accumulator is an integer and cannot hold the value.
  void set(std::string_view name, double value);
  double get(std::string_view name) const;
  std::vector<std::string> hyperparameters() const;

  const std::string& name() const;
  Scalar element() const;
  Scalar accumulator() const;

  /// Compiles it for an execution space, so that no call has to: of a GPU, all kernels that calls may need, which takes seconds.
  /// Throws Error(unsupported) if the space is neither one of the host nor CUDA, or if librigel_runtime.so is missing.
  template <class Exec>
  void compile(const Exec& exec = {}) const {
    compile(rigel::detail::execution_of(exec));
  }
  void compile(const Execution& execution) const;

  struct Program;  // what all copies share

  /// The kernels for a space: of the host compiled if they are not yet, of CUDA each when a call first runs it; and where the values of the hyperparameters lie.
  std::span<const Kernel<Contraction>> kernels(Space space) const;
  const void* object() const { return values_; }
  SemiringId id() const;

 private:
  std::shared_ptr<Program> program_;
  alignas(64) std::byte values_[128] = {};  // sixteen numbers of the accumulator's type
};

namespace detail {

/// Throws Error(invalid_argument) unless a view holds elements of the semiring.
void require_elements(const Semiring& semiring, const Operand& operand);

/// The problem of a call with a semiring from text. It points to all arguments, which outlive it.
template <class Exec, class A, class B, class C>
Contraction contraction_of(const Exec& exec, const Semiring& semiring, const A& a, const B& b, const C& c,
                           const epilogue::Program& epilogue, const ContractOptions& options) {
  namespace own = rigel::detail;
  using CView = own::view_t<C>;
  static_assert(Kokkos::is_execution_space_v<Exec>, "contract: the first argument is a Kokkos execution space instance");
  static_assert(!std::is_const_v<typename CView::value_type>, "contract: C is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename own::view_t<A>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename own::view_t<B>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename CView::memory_space>::accessible,
                "contract: the execution space cannot access A, B or C");
  Contraction p;
  p.execution = own::execution_of(exec);
  p.require = options.require;
  p.precision = options.precision;
  p.kernel = options.kernel;
  p.workspace = options.workspace;
  p.a = own::operand_of(a, options.batch, "A");
  p.b = own::operand_of(b, options.batch, "B");
  p.c = own::operand_of(c, options.batch, "C");
  p.c.type = own::scalar_of_written<typename CView::non_const_value_type>;
  require_elements(semiring, p.a);
  require_elements(semiring, p.b);
  p.batch = p.c.batches;
  p.m = p.c.rows;
  p.n = p.c.columns;
  p.k = p.a.columns;
  p.accumulate = options.accumulate;
  p.may_cancel = options.may_cancel;
  p.semiring = semiring.id();
  p.element = semiring.element();
  p.accumulator = semiring.accumulator();
  p.semiring_object = semiring.object();
  p.program = &epilogue;
  p.epilogue_object = &epilogue;
  p.instantiated = semiring.kernels(p.execution.space);
  return p;
}

}  // namespace detail

}  // namespace rigel::runtime

namespace rigel {

/// contract() with a semiring from text, and explain() and workspace_size() of such a call. The epilogue is of the closed set. Throws
/// as contract() does; Error(invalid_argument) if A's or B's elements are not the semiring's; and, if a kernel has to be compiled,
/// Error(unsupported) if librigel_runtime.so is missing.
template <class Exec, class A, class B, class C>
void contract(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
              const epilogue::Program& epilogue = {}, const ContractOptions& options = {}) {
  run(runtime::detail::contraction_of(exec, semiring, a, b, c, epilogue, options));
}
template <class Exec, class A, class B, class C>
void contract(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
              const ContractOptions& options) {
  contract(exec, semiring, a, b, c, epilogue::Program{}, options);
}
template <class Exec, class A, class B, class C>
std::string explain(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
                    const epilogue::Program& epilogue = {}, const ContractOptions& options = {}) {
  return explain(runtime::detail::contraction_of(exec, semiring, a, b, c, epilogue, options));
}
template <class Exec, class A, class B, class C>
std::size_t workspace_size(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
                           const epilogue::Program& epilogue = {}, const ContractOptions& options = {}) {
  return workspace_size(runtime::detail::contraction_of(exec, semiring, a, b, c, epilogue, options)).bytes;
}

}  // namespace rigel

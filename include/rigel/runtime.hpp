// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings and epilogues from text, compiled in process when a call first needs them: contract() on host execution spaces and on CUDA.
// docs/runtime.md describes the language and the limits.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/text.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rigel::runtime {

class Semiring;
class Epilogue;
namespace detail {
struct EpilogueCall;
/// plus_times as a text, whose kernels call epilogues from text where others do not. They have the bits of the zoo's kernels that promise the
/// reference's.
const Semiring& product_of(Scalar element);
/// Gives a problem of plus_times on a GPU the kernels for an epilogue from text.
void set_products(Contraction& p, const Epilogue& epilogue);
/// Puts a semiring into a problem whose operands are set. Throws Error(invalid_argument) if their types are not those of the semiring.
void set_semiring(Contraction& p, const Semiring& semiring);
Verification verify(const Semiring& semiring, unsigned seed);
/// A view as a hyperparameter.
template <class View>
rigel::detail::TextView text_view(const View& view) {
  static_assert(View::rank() <= 1, "a hyperparameter is a number, or a view of rank 0 or 1");
  std::int64_t stride = 0;
  if constexpr (View::rank() == 1) stride = static_cast<std::int64_t>(view.stride(0));
  return {0,
          view.data(),
          static_cast<std::int64_t>(view.size()),
          stride,
          epilogue::detail::spaces_with<typename View::memory_space>(),
          std::make_shared<const View>(view)};
}
}  // namespace detail

/// A hyperparameter: a name that texts may read, and its first value.
struct Hyperparameter {
  std::string name;
  double value = 0;
};

/// A field of an accumulator.
struct Field {
  std::string name;
  Scalar type = Scalar::f32;
};

/// The accumulator of a semiring from text: a number, or 2 to 4 of them, as in {{"value", Scalar::f32}, {"index", Scalar::i32}}.
struct Accumulator {
  Accumulator(Scalar of = Scalar::other) : type(of) {}
  Accumulator(std::initializer_list<Field> of) : fields(of) {}
  explicit Accumulator(std::vector<Field> of) : fields(std::move(of)) {}
  Scalar type = Scalar::other;
  std::vector<Field> fields;
};

/// A semiring as text. Each text is an expression, or statements that end with `return`.
struct Texts {
  std::string name = "text";     // in explain() and in messages: letters, digits and '_'
  Scalar element = Scalar::f32;  // f32, f64, i32, i64, f16 or bf16
  // Other: f32 for 16-bit elements, else the element's type. Fields have as many bytes as that: f32 and i32, or f64 and i64.
  Accumulator accumulator = {};
  std::string multiply = {};           // a ⊗ b, over a, b and the summation index k
  std::string add = {};                // x ⊕ y, over x and y
  std::string identity = {};           // the identity of ⊕, a constant; may be empty if add is x + y, min(x, y) or max(x, y)
  std::string step = {};               // x ⊕ (a ⊗ b) in one, over x, a, b and k; empty: add of multiply
  std::string result = {};             // what C receives of an accumulator x; empty: x, if that is a number
  Scalar result_type = Scalar::other;  // of result; other: what a number as accumulator has
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
  /// The same with a view of rank 0 or 1 of the accumulator's type (of several fields: of a number's), which each call reads when its
  /// kernel runs: one number, or one for each matrix of C. The object keeps the view.
  template <class View>
    requires Kokkos::is_view_v<View>
  void set(std::string_view name, const View& view) {
    set_view(name, rigel::detail::scalar_of_value<typename View::non_const_value_type>(), detail::text_view(view));
  }
  /// The same of memory with elements of a type.
  void set_view(std::string_view name, Scalar type, rigel::detail::TextView view);
  /// The number that a hyperparameter is, now.
  double get(std::string_view name) const;
  std::vector<std::string> hyperparameters() const;

  const std::string& name() const;
  Scalar element() const;
  Scalar accumulator() const;  // other: one of several fields
  Scalar result() const;       // the type of what C receives

  /// Compiles it for an execution space, so that no call has to: of a GPU, all kernels that calls without an epilogue from text may need,
  /// or those with this one, which takes seconds. Throws Error(unsupported) if the space is neither one of the host nor CUDA, or if
  /// librigel_runtime.so is missing.
  template <class Exec>
  void compile(const Exec& exec = {}) const {
    compile(rigel::detail::execution_of(exec));
  }
  template <class Exec>
  void compile(const Exec& exec, const Epilogue& epilogue) const {
    compile(rigel::detail::execution_of(exec), &epilogue);
  }
  void compile(const Execution& execution, const Epilogue* epilogue = nullptr) const;

  struct Program;  // what all copies share

  /// The kernels for a space: of the host compiled if they are not yet, of CUDA each when a call first runs it; and where the values of the hyperparameters lie.
  std::span<const Kernel<Contraction>> kernels(Space space) const;
  const void* object() const { return &values_; }
  SemiringId id() const;

 private:
  friend void detail::set_semiring(Contraction&, const Semiring&);
  friend Verification detail::verify(const Semiring&, unsigned);
  std::shared_ptr<Program> program_;
  rigel::detail::TextValues values_;  // numbers of the accumulator's type
};

/// An epilogue as text.
struct EpilogueTexts {
  std::string name = "text";  // in messages: letters, digits and '_'
  Scalar argument =
      Scalar::f32;  // the type of x, the semiring's results: f32, f64, i32 or i64; f32 also stands for 16-bit ones
  Scalar result = Scalar::other;  // the type of C's elements: f32, f64, f16, bf16, i32 or i64; other: that of x
  std::string body = {};          // over x, and m, n and batch, where x is in C
  std::vector<Hyperparameter> hyperparameters = {};  // at most 16, of the wider of both types
};

/// An epilogue from text: C(l,m,n) = body of x = ⊕_k A(l,m,k) ⊗ B(l,k,n). Copies are cheap; each has its own values.
///
///     const rigel::runtime::Epilogue leaky({.body = "x > 0 ? x : slope * x", .hyperparameters = {{"slope", 0.01}}});
///     rigel::contract(exec, rigel::plus_times<float>{}, a, b, c, leaky);
class Epilogue {
 public:
  /// Throws as Semiring's constructor does.
  explicit Epilogue(const EpilogueTexts& texts);

  /// As in Semiring.
  void set(std::string_view name, double value);
  template <class View>
    requires Kokkos::is_view_v<View>
  void set(std::string_view name, const View& view) {
    set_view(name, rigel::detail::scalar_of_value<typename View::non_const_value_type>(), detail::text_view(view));
  }
  void set_view(std::string_view name, Scalar type, rigel::detail::TextView view);
  double get(std::string_view name) const;
  std::vector<std::string> hyperparameters() const;

  const std::string& name() const;
  Scalar argument() const;
  Scalar result() const;
  /// The type of numbers without a suffix and of hyperparameters.
  Scalar number() const;

  /// Compiles it for an execution space of the host. (A GPU's kernels are compiled with it: Semiring::compile(), and compile() below.)
  template <class Exec>
  void compile() const {
    static_cast<void>(function(rigel::detail::space_of<Exec>));
  }

  /// Compiles what a GPU needs for products of `element`, so that no call of contract() with plus_times has to: the kernels of tensor cores, or
  /// those of cuda.simt if there are none for elements of C.
  template <class Exec>
  void compile(const Exec& exec, Scalar element) const {
    compile_products(rigel::detail::execution_of(exec), element);
  }

  struct Program;  // what all copies share

  /// The compiled function for a space of the host, compiled if it is not yet; and what a GPU's kernels are compiled with.
  rigel::detail::TextEpilogue::Function function(Space space) const;
  const rigel::detail::TextSource& source() const;
  /// The kernels of GPUs for plus_times of an element type, each compiled when a call first runs it.
  std::span<const Kernel<Contraction>> products(Scalar element) const;

 private:
  friend struct detail::EpilogueCall;
  void compile_products(const Execution& execution, Scalar element) const;
  std::shared_ptr<Program> program_;
  rigel::detail::TextValues values_;
};

namespace detail {

/// An epilogue of a call: what kernels call, and the values of its hyperparameters at that time.
struct EpilogueCall {
  /// Throws Error(invalid_argument) unless it takes numbers of type `argument` to elements of C.
  EpilogueCall(const Epilogue& epilogue, Space space, Scalar argument, const Operand& c, const char* function);
  rigel::detail::TextEpilogue text;
  std::vector<std::byte> parameters;
};

/// It as a functor, for kernels of semirings that are known when the program is compiled. V: the type of their results.
template <class V, class R>
struct EpilogueFunctor {
  rigel::detail::TextEpilogue text;
  template <class X>
  R operator()(X value, std::int64_t m, std::int64_t n, std::int64_t batch) const {
    const auto x = static_cast<V>(value);
    R y;
    text.function(&x, 1, &y, {m, n, 0, 0, batch}, text.parameters + batch * text.stride);
    return y;
  }
};

/// What an epilogue makes of numbers of type V for elements of C of type T: 16-bit ones are rounded once.
template <class V, class T>
using made_of_t = std::conditional_t<rigel::detail::scalar_of_written<T> == Scalar::f16 ||
                                         rigel::detail::scalar_of_written<T> == Scalar::bf16,
                                     std::conditional_t<std::is_same_v<V, double>, double, float>, T>;

/// What messages call a function and its operands.
struct Names {
  const char *function = "contract", *a = "A", *b = "B", *c = "C";
};

/// The problem of a call with a semiring from text, or with another one and an epilogue from text, on operands. It points to all arguments,
/// which outlive it. Without an `epilogue`, the caller sets one from text.
template <class Exec, class S>
Contraction contraction_on(const Exec& exec, const S& semiring, Operand a, Operand b, Operand c,
                           const epilogue::Program* epilogue, const ContractOptions& options, const char* function) {
  Contraction p;
  p.function = function;
  p.execution = rigel::detail::execution_of(exec);
  p.require = options.require;
  p.precision = options.precision;
  p.kernel = options.kernel;
  p.workspace = options.workspace;
  p.a = std::move(a);
  p.b = std::move(b);
  p.c = std::move(c);
  p.batch = p.c.batches;
  p.m = p.c.rows;
  p.n = p.c.columns;
  p.k = p.a.columns;
  p.accumulate = options.accumulate;
  p.may_cancel = options.may_cancel;
  p.program = epilogue;
  p.epilogue_object = epilogue;
  if constexpr (std::is_same_v<S, Semiring>)
    set_semiring(p, semiring);
  else
    rigel::detail::set_semiring<Exec>(p, semiring);
  return p;
}

/// The compile-time checks of operands, and those that are read as Operands.
template <class Exec, class View>
Operand read_operand(const View& view, Batch batch, const char* name) {
  static_assert(Kokkos::is_execution_space_v<Exec>, "contract: the first argument is a Kokkos execution space instance");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename rigel::detail::view_t<View>::memory_space>::accessible,
                "contract: the execution space cannot access A, B or C");
  return rigel::detail::operand_of(view, batch, name);
}

/// The same on views.
template <class Exec, class S, class A, class B, class C>
Contraction contraction_of(const Exec& exec, const S& semiring, const A& a, const B& b, const C& c,
                           const epilogue::Program* epilogue, const ContractOptions& options, const Names& names = {}) {
  using CView = rigel::detail::view_t<C>;
  static_assert(!std::is_const_v<typename CView::value_type>, "contract: C is written, its elements cannot be const");
  Operand written = read_operand<Exec>(c, options.batch, names.c);
  written.type = rigel::detail::scalar_of_written<typename CView::non_const_value_type>;
  return contraction_on(exec, semiring, read_operand<Exec>(a, options.batch, names.a),
                        read_operand<Exec>(b, options.batch, names.b), std::move(written), epilogue, options,
                        names.function);
}

/// Hands the problem of a call with an epilogue from text to `use`.
template <class Exec, class A, class B, class C, class Use>
auto with_problem(const Exec& exec, const Semiring& semiring, const A& a, const B& b, const C& c, const Epilogue& epilogue,
                  const ContractOptions& options, const Use& use, const Names& names = {}) {
  Contraction p = contraction_of(exec, semiring, a, b, c, nullptr, options, names);
  const EpilogueCall call(epilogue, p.execution.space, semiring.result(), p.c, names.function);
  p.epilogue_object = &call.text;
  return use(p);
}

/// Hands it to `use` as a functor: the epilogue of a semiring S that is known when the program is compiled.
template <class Exec, class S, class C, class Use>
auto with_functor(const Exec&, const C& c, const Epilogue& epilogue, Batch batch, const Use& use) {
  namespace own = rigel::detail;
  using Value = typename own::view_t<C>::non_const_value_type;
  using Result = result_t<typename own::semiring_argument<S>::type>;
  using V = std::conditional_t<ShortFloat<Result>, float, Result>;
  static_assert((bit(own::space_of<Exec>) & host_spaces) != 0,
                "contract: an epilogue from text runs on host execution spaces and on CUDA");
  static_assert(own::scalar_of_written<Value> != Scalar::other && std::is_arithmetic_v<V>,
                "contract: an epilogue from text makes numbers of numbers");
  Operand operand = own::operand_of(c, batch, "C");
  operand.type = own::scalar_of_written<Value>;
  const EpilogueCall call(epilogue, own::space_of<Exec>, scalar_of<V>, operand, "contract");
  return use(EpilogueFunctor<V, made_of_t<V, Value>>{call.text});
}

/// The products that have kernels with epilogues from text on GPUs.
template <class S>
inline constexpr bool is_product = false;
template <class E>
inline constexpr bool is_product<plus_times<E>> =
    ShortFloat<E> || std::is_floating_point_v<E> || std::is_same_v<E, std::int32_t> || std::is_same_v<E, std::int64_t>;

/// Hands the problem of such a call on a GPU to `use`.
template <class Exec, class SemiringOrView, class A, class B, class C, class Use>
auto with_gpu_problem(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                      const Epilogue& epilogue, const ContractOptions& options, const Use& use) {
  namespace own = rigel::detail;
  using Value = typename own::view_t<C>::non_const_value_type;
  using S = typename own::semiring_argument<SemiringOrView>::type;
  using V = std::conditional_t<ShortFloat<result_t<S>>, float, result_t<S>>;
  static_assert(in_zoo<S> && own::scalar_of_written<Value> != Scalar::other && std::is_arithmetic_v<V>,
                "contract: on GPUs an epilogue from text makes numbers of those of a semiring from text or of Rigel's own");
  own::check_types<Exec, SemiringOrView, A, B, C, EpilogueFunctor<V, made_of_t<V, Value>>>();
  Contraction p = contraction_of(exec, semiring, a, b, c, nullptr, options);
  const EpilogueCall call(epilogue, p.execution.space, scalar_of<V>, p.c, "contract");
  p.epilogue_object = &call.text;
  if constexpr (is_product<S>) set_products(p, epilogue);
  return use(p);
}

/// Hands a call with a semiring that is known when the program is compiled to `on_host` as a functor, or to `on_gpu` as a problem.
template <class Exec, class SemiringOrView, class A, class B, class C, class OnHost, class OnGpu>
auto with_epilogue(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                   const Epilogue& epilogue, const ContractOptions& options, const OnHost& on_host, const OnGpu& on_gpu) {
  if constexpr (rigel::detail::space_of<Exec> == Space::cuda)
    return with_gpu_problem(exec, semiring, a, b, c, epilogue, options, on_gpu);
  else
    return with_functor<Exec, SemiringOrView>(exec, c, epilogue, options.batch, on_host);
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
  run(runtime::detail::contraction_of(exec, semiring, a, b, c, &epilogue, options));
}
template <class Exec, class A, class B, class C>
void contract(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
              const ContractOptions& options) {
  contract(exec, semiring, a, b, c, epilogue::Program{}, options);
}
template <class Exec, class A, class B, class C>
std::string explain(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
                    const epilogue::Program& epilogue = {}, const ContractOptions& options = {}) {
  return explain(runtime::detail::contraction_of(exec, semiring, a, b, c, &epilogue, options));
}
template <class Exec, class A, class B, class C>
std::size_t workspace_size(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
                           const epilogue::Program& epilogue = {}, const ContractOptions& options = {}) {
  return workspace_size(runtime::detail::contraction_of(exec, semiring, a, b, c, &epilogue, options)).bytes;
}

/// The same with an epilogue from text. Throws Error(invalid_argument) if the epilogue takes other numbers than the semiring's results, or
/// makes others than C's elements.
template <class Exec, class A, class B, class C>
void contract(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
              const runtime::Epilogue& epilogue, const ContractOptions& options = {}) {
  runtime::detail::with_problem(exec, semiring, a, b, c, epilogue, options, [](const Contraction& p) { run(p); });
}
template <class Exec, class A, class B, class C>
std::string explain(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
                    const runtime::Epilogue& epilogue, const ContractOptions& options = {}) {
  return runtime::detail::with_problem(exec, semiring, a, b, c, epilogue, options,
                                       [](const Contraction& p) { return explain(p); });
}
template <class Exec, class A, class B, class C>
std::size_t workspace_size(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const C& c,
                           const runtime::Epilogue& epilogue, const ContractOptions& options = {}) {
  return runtime::detail::with_problem(exec, semiring, a, b, c, epilogue, options,
                                       [](const Contraction& p) { return workspace_size(p).bytes; });
}

/// The same with a semiring that is known when the program is compiled. On hosts kernels are instantiated where the call stands, and call the
/// epilogue for each output. On GPUs products (plus_times) have kernels that are compiled with the text.
template <class Exec, class SemiringOrView, class A, class B, class C>
  requires(!std::is_same_v<SemiringOrView, runtime::Semiring>)
void contract(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
              const runtime::Epilogue& epilogue, const ContractOptions& options = {}) {
  runtime::detail::with_epilogue(
      exec, semiring, a, b, c, epilogue, options,
      [&](const auto& functor) { contract(exec, semiring, a, b, c, functor, options); },
      [](const Contraction& p) { run(p); });
}
template <class Exec, class SemiringOrView, class A, class B, class C>
  requires(!std::is_same_v<SemiringOrView, runtime::Semiring>)
std::string explain(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                    const runtime::Epilogue& epilogue, const ContractOptions& options = {}) {
  return runtime::detail::with_epilogue(
      exec, semiring, a, b, c, epilogue, options,
      [&](const auto& functor) { return explain(exec, semiring, a, b, c, functor, options); },
      [](const Contraction& p) { return explain(p); });
}
template <class Exec, class SemiringOrView, class A, class B, class C>
  requires(!std::is_same_v<SemiringOrView, runtime::Semiring>)
std::size_t workspace_size(const Exec& exec, const SemiringOrView& semiring, const A& a, const B& b, const C& c,
                           const runtime::Epilogue& epilogue, const ContractOptions& options = {}) {
  return runtime::detail::with_epilogue(
      exec, semiring, a, b, c, epilogue, options,
      [&](const auto& functor) { return workspace_size(exec, semiring, a, b, c, functor, options); },
      [](const Contraction& p) { return workspace_size(p).bytes; });
}

/// Holds the kernel of a semiring from text to its promises, on the problems of verify() of registered kernels. Its results must have the bits
/// of the same text computed output by output, from the operands as they lie in memory. The hyperparameters are those of the object. Throws
/// as contract() does, and Error(invalid_argument) if a hyperparameter is a view of several numbers.
inline Verification verify(const runtime::Semiring& semiring, unsigned seed = 1) {
  return runtime::detail::verify(semiring, seed);
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A linear layer and its gradients, as drivers over contract() whose bits are part of the contract (docs/numerics.md):
//
//     linear_forward           Y = epilogue(X W + bias)
//     linear_backward_weight   dW += Xᵀ dY,  db(n) += Σ_m dY(m,n), or = in place of +=
//     linear_backward_input    dX = (dY Wᵀ) ⊙ act'(Z)
//
// X is M × K, W is K × N and Y is M × N. A matrix N × K, as nn.Linear of PyTorch stores its weights, is passed as transposed(W).
#pragma once

#include <rigel/activation.hpp>
#include <rigel/contract.hpp>
#include <rigel/detail/elementwise.hpp>
#include <rigel/detail/linear.hpp>

namespace rigel {

/// The options of the three calls. A call whose epilogue is a functor spells the type: `LinearOptions{.epilogue = f}`.
template <class E = Activation>
struct LinearOptions {
  Tier tier = Tier::scalar;
  E epilogue = {};  // forward only: an Activation, steps of rigel/epilogue.hpp, or a functor (value, m, n, batch) → value
  Batch batch = Batch::first;
  Precision precision =
      Precision::automatic;      // Tier::tensor: the least precise terms that the call accepts, as in contract()
  std::string_view kernel = {};  // a kernel's name or its leading part
  Workspace workspace = {};      // linear_…_workspace_size() bytes; else from Rigel's pool
  bool overwrite = false;        // backward_weight only: dW and db become the sums, whatever they hold
};

/// Stands for an operand that a call does not have: for a bias, or for its gradient.
struct Absent {};
inline constexpr Absent no_bias;

namespace detail {

template <class View>
inline constexpr bool is_matrix = Kokkos::is_view_v<view_t<View>>;

// The types of a layer: X (or dY) and W hold f32, f16 or bf16; what is written is one of these.
template <class Exec, class A, class B, class C>
constexpr auto linear_element() {
  using T = typename view_t<A>::non_const_value_type;
  using Value = typename view_t<C>::non_const_value_type;
  constexpr Scalar type = scalar_of_value<T>();
  static_assert(type <= Scalar::f32, "linear: X, W and dY hold f32, f16 or bf16");
  using Element = std::conditional_t<type == Scalar::f16, half, std::conditional_t<type == Scalar::bf16, bfloat16, float>>;
  static_assert(scalar_of_value<Value>() <= Scalar::f32, "linear: results are f32, f16 or bf16");
  check_types<Exec, plus_times<Element>, A, B, C, epilogue::Program>();
  return std::type_identity<Element>{};
}

// The operand of a bias: a view of rank 1 as one row, of rank 2 as one row for each batch.
template <class Exec, class View>
std::optional<Operand> bias_operand(const View& v, const char* argument) {
  if constexpr (std::is_same_v<View, Absent>) {
    return {};
  } else {
    static_assert(Kokkos::is_view_v<View> && (View::rank() == 1 || View::rank() == 2),
                  "linear: a bias is a view of rank 1, of rank 2 with a leading batch index, or no_bias");
    using Value = typename View::non_const_value_type;
    static_assert(scalar_of_value<Value>() <= Scalar::f32, "linear: a bias and its gradient hold f32, f16 or bf16");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename View::memory_space>::accessible,
                  "linear: the execution space cannot access the bias");
    constexpr int i = View::rank() - 1;
    Operand o{.data = const_cast<Value*>(v.data()),
              .type = scalar_of_value<Value>(),
              .size = sizeof(Value),
              .rows = 1,
              .columns = static_cast<std::int64_t>(v.extent(i)),
              .column_stride = static_cast<std::int64_t>(v.stride(i)),
              .argument = argument,
              .label = v.label()};
    if constexpr (View::rank() == 2) {
      o.batches = static_cast<std::int64_t>(v.extent(0));
      if (o.batches != 1) o.batch_stride = static_cast<std::int64_t>(v.stride(0));
    }
    return o;
  }
}

// The operand of the values before an activation.
template <class Exec, bool is_written, class View>
std::optional<Operand> preactivation_operand(const View& v, Batch batch) {
  if constexpr (std::is_same_v<View, Absent>) {
    return {};
  } else {
    using Inner = view_t<View>;
    static_assert(scalar_of_value<typename Inner::non_const_value_type>() <= Scalar::f32,
                  "linear: Z holds f32, f16 or bf16");
    static_assert(!is_written || !std::is_const_v<typename Inner::value_type>,
                  "linear: Z is written, its elements cannot be const");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename Inner::memory_space>::accessible,
                  "linear: the execution space cannot access Z");
    return operand_of(v, batch, "Z");
  }
}

template <class E>
ContractOptions contract_options(const LinearOptions<E>& options) {
  return {.batch = options.batch, .precision = options.precision, .kernel = options.kernel, .workspace = options.workspace};
}
// The same where results are written anyway.
template <class E>
ContractOptions contract_options(const LinearOptions<E>& options, const char* function, const char* result) {
  if (options.overwrite)
    throw Error(Code::invalid_argument, std::string(function) +
                                            ": options.overwrite is true, expected false: it is for dW and db, and " +
                                            result + " is written whatever it holds");
  return contract_options(options);
}

// What an execution space needs that the library is not compiled for; kernels for a C of `Value`.
template <class Exec, class S, class Value>
void set_instantiated(Linear& call) {
  if constexpr (space_of<Exec> == Space::other) {
    static constexpr LinearPasses passes = linear_passes<type_list<Exec>>();
    call.passes = &passes;
    call.instantiated = instantiated_kernels<Exec, S, epilogue::Program, Value>();
  }
}

template <class Exec, class X, class W, class B, class Y, class Z, class E, class Use>
auto with_forward(const Exec& exec, const X& x, const W& w, const B& bias, const Y& y, const Z& z,
                  const LinearOptions<E>& options, const Use& use) {
  using Element = typename decltype(linear_element<Exec, X, W, Y>())::type;
  using S = plus_times<Element>;
  using Value = typename view_t<Y>::non_const_value_type;
  constexpr bool is_closed = std::is_same_v<E, Activation> || std::is_same_v<E, epilogue::Program>;
  constexpr bool keeps = !std::is_same_v<Z, Absent>;
  static_assert(
      std::is_same_v<E, Activation> || Epilogue<E, float>,
      "linear: options.epilogue is an Activation, a program of rigel/epilogue.hpp, or a trivially copyable functor "
      "(value, m, n, batch) → value");
  const S semiring;
  LinearForward call;
  call.tier = options.tier;
  call.bias = bias_operand<Exec>(bias, "bias");
  call.preactivation = preactivation_operand<Exec, true>(z, options.batch);
  set_instantiated<Exec, S, float>(call);
  const auto with_functor = [&](auto& functor) {
    call.product = contraction_on<Value>(exec, semiring, operand_of(x, options.batch, "X"),
                                         operand_of(w, options.batch, "W"), operand_of(y, options.batch, "Y"), functor, {},
                                         contract_options(options, "linear_forward", "Y"), "linear_forward");
  };
  if constexpr (is_closed || keeps) {
    epilogue::Program none;
    with_functor(none);
    if constexpr (std::is_same_v<E, Activation>)
      call.activation = options.epilogue;
    else if constexpr (is_closed)
      call.steps = options.epilogue;
    else {
      Contraction with_z = call.product;  // what steps read overlaps neither Y nor Z
      if (const auto& kept = call.preactivation) with_z.indices = &*kept;
      epilogue::for_each_program(options.epilogue, [&](const epilogue::Program& p) { with_z.check_sources(p); });
      call.functor = &options.epilogue;
      call.pass = launch_functor<type_list<Exec>, E>;
    }
    return use(call);
  } else {
    epilogue::Composed<epilogue::Program, E> composed{{}, options.epilogue};
    with_functor(composed);
    composed.first = bias_of(call);
    call.functor = &composed;
    return use(call);
  }
}

template <class Exec, class X, class DY, class DW, class DB, class E, class Use>
auto with_weight(const Exec& exec, const X& x, const DY& dy, const DW& dw, const DB& db, const LinearOptions<E>& options,
                 const Use& use) {
  using Element = typename decltype(linear_element<Exec, X, DY, DW>())::type;
  using S = plus_times<Element>;
  using Value = typename view_t<DW>::non_const_value_type;
  static_assert(std::is_same_v<E, Activation>, "linear_backward_weight: there is no epilogue");
  const S semiring;
  const epilogue::Program none;
  LinearWeight call;
  call.tier = options.tier;
  call.bias = bias_operand<Exec>(db, "db");
  if constexpr (std::is_same_v<DB, Absent>)
    set_instantiated<Exec, S, Value>(call);
  else
    set_instantiated<Exec, S, typename DB::non_const_value_type>(call);
  ContractOptions contraction = contract_options(options);
  contraction.accumulate = !options.overwrite;
  call.product =
      contraction_on<Value>(exec, semiring, operand_of(x, options.batch, "X"), operand_of(dy, options.batch, "dY"),
                            operand_of(dw, options.batch, "dW"), none, {}, contraction, "linear_backward_weight");
  return use(call);
}

template <class Exec, class DY, class W, class DX, class Z, class E, class Use>
auto with_input(const Exec& exec, const DY& dy, const W& w, const DX& dx, const Z& z, Activation activation,
                const LinearOptions<E>& options, const Use& use) {
  using Element = typename decltype(linear_element<Exec, DY, W, DX>())::type;
  using S = plus_times<Element>;
  static_assert(std::is_same_v<E, Activation>, "linear_backward_input: the epilogue is the derivative of an activation");
  const S semiring;
  const epilogue::Program none;
  LinearInput call;
  call.tier = options.tier;
  call.activation = activation;
  call.preactivation = preactivation_operand<Exec, false>(z, options.batch);
  set_instantiated<Exec, S, float>(call);
  call.product = contraction_on<typename view_t<DX>::non_const_value_type>(
      exec, semiring, operand_of(dy, options.batch, "dY"), operand_of(w, options.batch, "W"),
      operand_of(dx, options.batch, "dX"), none, {}, contract_options(options, "linear_backward_input", "dX"),
      "linear_backward_input");
  return use(call);
}

inline constexpr auto run_it = [](const auto& call) { run_linear(call); };
inline constexpr auto explain_it = [](const auto& call) { return explain_linear(call); };
inline constexpr auto bytes_of_it = [](const auto& call) { return linear_bytes(call); };

}  // namespace detail

/// Y(l,m,n) = epilogue( Σ_k X(l,m,k)·W(l,k,n) + bias(n) ), asynchronously on `exec`.
///
/// exec     any execution space instance that can access every view
/// x, w, y  views of rank 2, or 3 with a batch index, of any layout, or transposed() ones: x is M × K, w is K × N, y is M × N. A batch
///          extent of 1, or rank 2, broadcasts x or w. x and w hold one type, f32, f16 or bf16; y any of these.
/// bias     N numbers of f32, f16 or bf16, a view of rank 1, of rank 2 (L × N) with a row for each batch; or no_bias
/// The sum is f32; the bias is added once, after the sum, in f32. The epilogue sees their sum; its result is rounded once to
/// y's type. options.epilogue is an Activation, steps of the closed set, or a functor of yours.
///
/// Tier::scalar: one chain of fused multiply-adds per output, k ascending. With an Activation, every host and every GPU gives the same
/// bits. Activations with an exponential are then a pass of their own over sums of f32, in y itself if y is f32, else in the workspace.
/// Tier::tensor: tensor cores. Bits depend neither on M, nor on other rows, nor on the run, nor on the size of the GPU.
///
/// K = 0 gives epilogue(bias); M = 0, N = 0 or no batches is a no-op.
/// Throws Error(invalid_argument) if extents do not match, or y overlaps an operand; Error(unsupported) if the tier does not cover the
/// call, with the reason: Tier::tensor needs the execution space Cuda, and takes f32 only if options.precision admits it
/// (docs/numerics.md); else as contract() does. y is untouched when it throws.
template <class Exec, class X, class W, class B, class Y, class E = Activation>
void linear_forward(const Exec& exec, const X& x, const W& w, const B& bias, const Y& y,
                    const LinearOptions<E>& options = {}) {
  detail::with_forward(exec, x, w, bias, y, no_bias, options, detail::run_it);
}

/// The same, and Z(l,m,n) = Σ_k X(l,m,k)·W(l,k,n) + bias(n), the value before the epilogue, which the backward pass needs: a second
/// output of y's extents, f32, f16 or bf16, rounded once. It overlaps no other operand. y still comes from the unrounded value, so
/// rounding z does not change y. The epilogue is a pass of its own over the sums, which are in z if z is f32, else in the workspace.
template <class Exec, class X, class W, class B, class Y, class Z, class E = Activation>
  requires detail::is_matrix<Z>
void linear_forward(const Exec& exec, const X& x, const W& w, const B& bias, const Y& y, const Z& z,
                    const LinearOptions<E>& options = {}) {
  detail::with_forward(exec, x, w, bias, y, z, options, detail::run_it);
}

/// dW(l,k,n) += Σ_m X(l,m,k)·dY(l,m,n) and db(n) += Σ_m dY(l,m,n), asynchronously on `exec`.
///
/// x, dy   as X and Y in linear_forward(): M × K and M × N, of one type, f32, f16 or bf16
/// dw      K × N of f32: the master accumulator
/// db      N numbers of f32, or L × N; or no_bias
/// With options.overwrite, dw and db become the sums, = in place of +=, and what they held is not read. Then each may hold f32, f16 or
/// bf16, to which its sums are rounded once.
/// If dw (or db) has one matrix (or row) and dy has L, the sum runs over all L·M rows, in ascending l, then m.
///
/// Tier::scalar: each chain starts with what dw or db holds and takes m in ascending order. So a batch that is cut into consecutive
/// micro-batches, one call each in order, gives the bits of one call with the whole batch.
/// Tier::tensor: the sum over m comes first and is then added to dw, so such cuts change bits. L batches that one dw sums must follow
/// each other at equal distances (batch stride = M · row stride, as in a contiguous tensor), else Error(unsupported).
/// db is the product of a row of ones and dY by the same tier; the ones take M elements of the workspace.
/// M = 0 leaves dw and db as they are, or overwrites them with zeros. L batches that do not follow each other so are added one after the
/// other, which takes a dw and db of f32. Throws as linear_forward() does.
template <class Exec, class X, class DY, class DW, class DB, class E = Activation>
void linear_backward_weight(const Exec& exec, const X& x, const DY& dy, const DW& dw, const DB& db,
                            const LinearOptions<E>& options = {}) {
  detail::with_weight(exec, x, dy, dw, db, options, detail::run_it);
}

/// dX(l,m,k) = Σ_n dY(l,m,n)·W(l,k,n), asynchronously on `exec`. dy is M × N, w is K × N, dx is M × K; types, layouts, batches and
/// errors are as in linear_forward().
template <class Exec, class DY, class W, class DX, class E = Activation>
void linear_backward_input(const Exec& exec, const DY& dy, const W& w, const DX& dx, const LinearOptions<E>& options = {}) {
  detail::with_input(exec, dy, w, dx, no_bias, Activation::none, options, detail::run_it);
}

/// dX(l,m,k) = act'(Z(l,m,k)) · Σ_n dY(l,m,n)·W(l,k,n), where Z, of dx's extents, is what the activation of the layer before was
/// applied to. The factor act' is computed in f32 (rigel/activation.hpp) by a pass into the workspace; the product with it is rounded
/// once to f32, then to dx's type. z holds f32, f16 or bf16, and may overlap dx.
template <class Exec, class DY, class W, class DX, class Z, class E = Activation>
  requires detail::is_matrix<Z>
void linear_backward_input(const Exec& exec, const DY& dy, const W& w, const DX& dx, const Z& z, Activation activation,
                           const LinearOptions<E>& options = {}) {
  detail::with_input(exec, dy, w, dx, z, activation, options, detail::run_it);
}

/// What the same call would run: its passes, its bytes of workspace, and for each product every kernel that could compute it, with its
/// predicted time or the reason why not; '*' marks the choice.
template <class Exec, class X, class W, class B, class Y, class E = Activation>
std::string explain_linear_forward(const Exec& exec, const X& x, const W& w, const B& bias, const Y& y,
                                   const LinearOptions<E>& options = {}) {
  return detail::with_forward(exec, x, w, bias, y, no_bias, options, detail::explain_it);
}
template <class Exec, class X, class W, class B, class Y, class Z, class E = Activation>
  requires detail::is_matrix<Z>
std::string explain_linear_forward(const Exec& exec, const X& x, const W& w, const B& bias, const Y& y, const Z& z,
                                   const LinearOptions<E>& options = {}) {
  return detail::with_forward(exec, x, w, bias, y, z, options, detail::explain_it);
}
template <class Exec, class X, class DY, class DW, class DB, class E = Activation>
std::string explain_linear_backward_weight(const Exec& exec, const X& x, const DY& dy, const DW& dw, const DB& db,
                                           const LinearOptions<E>& options = {}) {
  return detail::with_weight(exec, x, dy, dw, db, options, detail::explain_it);
}
template <class Exec, class DY, class W, class DX, class E = Activation>
std::string explain_linear_backward_input(const Exec& exec, const DY& dy, const W& w, const DX& dx,
                                          const LinearOptions<E>& options = {}) {
  return detail::with_input(exec, dy, w, dx, no_bias, Activation::none, options, detail::explain_it);
}
template <class Exec, class DY, class W, class DX, class Z, class E = Activation>
  requires detail::is_matrix<Z>
std::string explain_linear_backward_input(const Exec& exec, const DY& dy, const W& w, const DX& dx, const Z& z,
                                          Activation activation, const LinearOptions<E>& options = {}) {
  return detail::with_input(exec, dy, w, dx, z, activation, options, detail::explain_it);
}

/// Bytes of workspace, in memory of the execution space, that the same call needs.
template <class Exec, class X, class W, class B, class Y, class E = Activation>
std::size_t linear_forward_workspace_size(const Exec& exec, const X& x, const W& w, const B& bias, const Y& y,
                                          const LinearOptions<E>& options = {}) {
  return detail::with_forward(exec, x, w, bias, y, no_bias, options, detail::bytes_of_it);
}
template <class Exec, class X, class W, class B, class Y, class Z, class E = Activation>
  requires detail::is_matrix<Z>
std::size_t linear_forward_workspace_size(const Exec& exec, const X& x, const W& w, const B& bias, const Y& y, const Z& z,
                                          const LinearOptions<E>& options = {}) {
  return detail::with_forward(exec, x, w, bias, y, z, options, detail::bytes_of_it);
}
template <class Exec, class X, class DY, class DW, class DB, class E = Activation>
std::size_t linear_backward_weight_workspace_size(const Exec& exec, const X& x, const DY& dy, const DW& dw, const DB& db,
                                                  const LinearOptions<E>& options = {}) {
  return detail::with_weight(exec, x, dy, dw, db, options, detail::bytes_of_it);
}
template <class Exec, class DY, class W, class DX, class E = Activation>
std::size_t linear_backward_input_workspace_size(const Exec& exec, const DY& dy, const W& w, const DX& dx,
                                                 const LinearOptions<E>& options = {}) {
  return detail::with_input(exec, dy, w, dx, no_bias, Activation::none, options, detail::bytes_of_it);
}
template <class Exec, class DY, class W, class DX, class Z, class E = Activation>
  requires detail::is_matrix<Z>
std::size_t linear_backward_input_workspace_size(const Exec& exec, const DY& dy, const W& w, const DX& dx, const Z& z,
                                                 Activation activation, const LinearOptions<E>& options = {}) {
  return detail::with_input(exec, dy, w, dx, z, activation, options, detail::bytes_of_it);
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How reduce()'s arguments become a problem.
#pragma once

#include <rigel/config.hpp>
#include <rigel/contract.hpp>
#include <rigel/detail/reduction.hpp>
#include <rigel/reduction_problem.hpp>

#if RIGEL_BACKEND_REFERENCE
#include <rigel/backends/reference/reduce.hpp>
#endif
#if RIGEL_BACKEND_PORTABLE
#include <rigel/backends/portable/monoid.hpp>
#include <rigel/backends/portable/weighted.hpp>
#endif

#include <type_traits>

namespace rigel::detail {

/// A functor as epilogue of a part of the scores: it sees places in the whole. The first three members are those that ScorePart
/// (rigel/detail/reduction.hpp) sets.
template <class F>
struct Placed {
  std::int64_t batch = 0, row = 0, column = 0;
  F functor;
  template <class Value>
  RIGEL_MEMBER auto operator()(Value v, std::int64_t m, std::int64_t n, std::int64_t l) const
      -> decltype(functor(v, m, n, l)) {
    return functor(v, m + row, n + column, l + batch);
  }
};

/// The epilogue as kernels of parts take it.
inline const epilogue::Program& placed(const epilogue::Program& program) { return program; }
template <class F>
Placed<F> placed(const F& functor) {
  static_assert(alignof(Placed<F>) <= ScorePart::functor_alignment, "reduce: the epilogue is aligned to more than 64 bytes");
  return {.functor = functor};
}

/// The type in which scores of V are kept: f32 or f64, of integers the narrowest of i32, i64 and u64 that holds them.
template <class V>
using score_t = std::conditional_t<
    std::is_integral_v<V>,
    std::conditional_t<sizeof(V) == 8, std::conditional_t<std::is_signed_v<V>, std::int64_t, std::uint64_t>,
                       std::conditional_t<sizeof(V) == 4 && std::is_unsigned_v<V>, std::int64_t, std::int32_t>>,
    std::conditional_t<std::is_same_v<V, double>, double, float>>;

/// Calls use(std::type_identity<Score>) with the type of the scores of a semiring after an epilogue.
template <class S, class E, class Use>
auto with_score_type(const E& epilogue, const Use& use) {
  using Result = result_t<S>;
  if constexpr (std::is_same_v<E, epilogue::Program>) {
    if constexpr (std::is_integral_v<Result>)
      if (epilogue.size() > epilogue.bit_steps()) return use(std::type_identity<double>{});
    return use(std::type_identity<score_t<Result>>{});
  } else if constexpr (TakesResults<E, S>) {
    return use(std::type_identity<score_t<std::decay_t<decltype(epilogue(std::declval<Result>(), 0, 0, 0))>>>{});
  } else {
    return use(std::type_identity<float>{});  // the checks refuse it
  }
}

/// The scores as an operand without memory.
template <class Score>
Operand score_operand(std::int64_t batches, std::int64_t rows, std::int64_t columns) {
  return {.type = scalar_of<Score>,
          .size = sizeof(Score),
          .batches = batches,
          .rows = rows,
          .columns = columns,
          .argument = "the scores"};
}

/// The Operand of results: `many` for each row, or one.
template <bool many, class View>
Operand result_operand(const View& view, Batch batch, const char* argument) {
  if constexpr (many) {
    return operand_of(view, batch, argument);
  } else {
    static_assert(Kokkos::is_view_v<View>,
                  "reduce: values and indices with one result for each row are views, not transposed() ones");
    static_assert(View::rank() == 1 || View::rank() == 2,
                  "reduce: one result for each row goes to a view of rank 1, or of rank 2 if there are batches");
    static_assert(!View::memory_traits::is_atomic, "reduce: views with the Atomic memory trait are not supported");
    using T = typename View::non_const_value_type;
    Operand o;
    o.data = const_cast<T*>(view.data());
    o.type = scalar_of_value<T>();
    o.size = sizeof(T);
    o.argument = argument;
    o.label = view.label();
    o.columns = 1;
    o.column_stride = 1;
    constexpr bool batched = View::rank() == 2;
    const std::size_t l = batch == Batch::first ? 0 : 1, i = batched ? 1 - l : 0;
    if constexpr (batched) {
      o.batches = static_cast<std::int64_t>(view.extent(l));
      if (o.batches != 1) o.batch_stride = static_cast<std::int64_t>(view.stride(l));
    }
    o.rows = static_cast<std::int64_t>(view.extent(i));
    o.row_stride = static_cast<std::int64_t>(view.stride(i));
    return o;
  }
}

/// Whether a reducer has a matrix V.
template <class R>
inline constexpr bool has_weights = is_weighted(R::kind);
template <class R>
using weights_view = std::decay_t<decltype(std::declval<R>().v)>;

/// The type in which a reducer takes scores: floating-point numbers for weighted ones, doubles if V holds such.
template <class R, class Score>
constexpr auto kept_score() {
  if constexpr (has_weights<R>) {
    constexpr bool doubles = std::is_integral_v<Score> || std::is_same_v<Score, double> ||
                             std::is_same_v<typename view_t<weights_view<R>>::non_const_value_type, double>;
    return std::type_identity<std::conditional_t<doubles, double, float>>{};
  } else {
    return std::type_identity<Score>{};
  }
}

/// The kernels of an execution space that the library is not compiled for.
template <class Exec>
std::span<const Kernel<Reduction>> instantiated_reductions() {
  static const std::span<const Kernel<Reduction>> kernels = keep([] {
    std::vector<Kernel<Reduction>> list;
#if RIGEL_BACKEND_REFERENCE
    list.push_back(backends::reference::reduction_kernel<type_list<Exec>>());
#endif
#if RIGEL_BACKEND_PORTABLE
    backends::portable::add_reductions<type_list<Exec>>([&](Kernel<Reduction> k) { list.push_back(std::move(k)); });
#endif
    return list;
  }());
  return kernels;
}

/// On such a space, they and what they take of contract().
template <class Exec>
void set_instantiated([[maybe_unused]] Reduction& p) {
  if constexpr (space_of<Exec> == Space::other) {
    p.instantiated = instantiated_reductions<Exec>();
    if (!is_weighted(p.reducer)) return;
    p.products = p.scores.type == Scalar::f32 ? instantiated_kernels<Exec, plus_times<float>, epilogue::Program, float>()
                                              : instantiated_kernels<Exec, plus_times<double>, epilogue::Program, double>();
  }
}

/// The kernels of a user's monoid over scores of a type.
template <class Exec, class M, class Score>
std::span<const Kernel<Reduction>> monoid_kernels() {
  static const std::span<const Kernel<Reduction>> kernels = keep([] {
    std::vector<Kernel<Reduction>> list;
#if RIGEL_BACKEND_REFERENCE
    list.push_back(backends::reference::monoid_kernel<type_list<Exec>, Score, M>());
#endif
#if RIGEL_BACKEND_PORTABLE
    list.push_back(backends::portable::MonoidStripsKernel<type_list<Exec>, Score, M>::make());
#endif
    return list;
  }());
  return kernels;
}
template <class Exec, class Score, class R>
void set_monoid([[maybe_unused]] Reduction& p, const R& reducer) {
  if constexpr (requires { reducer.functor; })
    p.instantiated = monoid_kernels<Exec, std::decay_t<decltype(reducer.functor)>, Score>();
  else if constexpr (R::kind == Reducer::monoid)
    reducer.set_in(p);  // one from text
}

/// What follows from the scores' contraction, of which `functor` is the epilogue as kernels take it.
template <class Exec, class S, class E, class F>
void set_scores(Reduction& p, const E& epilogue, const F&) {
  p.semiring_bytes = sizeof(S);
  if constexpr (!std::is_same_v<F, epilogue::Program>) {
    p.functor_bytes = sizeof(F);
    epilogue::for_each_program(epilogue, [&](const epilogue::Program& program) { p.check_sources(program); });
  }
  set_instantiated<Exec>(p);
}

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() with a semiring from text: ⊞_n of the scores epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) of each row m.
#pragma once

#include <rigel/reduce.hpp>
#include <rigel/runtime.hpp>

#include <optional>

namespace rigel::runtime::detail {

/// The type of scores: that of results, of an epilogue from text what it makes, and what weights need of them.
inline Scalar score_type(const Semiring& semiring, const epilogue::Program& program) {
  return semiring.result() != Scalar::f32 && semiring.result() != Scalar::f64 && program.size() > program.bit_steps()
             ? Scalar::f64
             : semiring.result();
}
inline Scalar score_type(const Semiring&, const Epilogue& epilogue) {
  return epilogue.result() == Scalar::f16 || epilogue.result() == Scalar::bf16 ? Scalar::f32 : epilogue.result();
}
template <class R>
Scalar kept_score(Scalar type) {
  if constexpr (rigel::detail::has_weights<R>) {
    constexpr bool doubles =
        std::is_same_v<typename rigel::detail::view_t<rigel::detail::weights_view<R>>::non_const_value_type, double>;
    return type == Scalar::f32 && !doubles ? Scalar::f32 : Scalar::f64;
  }
  return type;
}

/// Hands the problem of reduce() to `use`. E: a Program, or an Epilogue from text.
template <class Exec, class A, class B, class R, class V, class I, class E, class Use>
auto with_reduction(const Exec& exec, const Semiring& semiring, const A& a, const B& b, const R& reducer, const V& values,
                    const I& indices, const E& epilogue, const ReduceOptions& options, const Use& use) {
  namespace own = rigel::detail;
  own::check_reducer<Exec, R, V, I>();
  static_assert(
      !requires { reducer.functor; }, "reduce: a functor of yours takes scores of a semiring that the compiler knows");
  Reduction p;
  p.function = "reduce";
  own::set_reducer(exec, p, reducer, options);
  own::set_outputs<R>(p, values, indices, options.batch);
  const Operand& output = p.values.size > 0 ? p.values : p.indices;
  Operand of_a = read_operand<Exec>(a, options.batch, "A"), of_b = read_operand<Exec>(b, options.batch, "B");
  Operand scores = own::score_operand<float>(output.batches, of_a.rows, of_b.columns);
  scores.type = kept_score<R>(score_type(semiring, epilogue));
  scores.size = size_of(scores.type);
  const epilogue::Program* program = nullptr;
  if constexpr (std::is_same_v<E, epilogue::Program>) program = &epilogue;
  p.set_contraction(contraction_on(exec, semiring, std::move(of_a), std::move(of_b), scores, program,
                                   own::options_of_scores(options), "reduce"));
  std::optional<EpilogueCall> call;
  if constexpr (std::is_same_v<E, Epilogue>)
    p.epilogue_object = &call.emplace(epilogue, p.execution.space, semiring.result(), p.scores, "reduce").text;
  // Objects of a view are found by places in the whole, so semiring_bytes stays 0.
  own::set_instantiated<Exec>(p);
  own::set_monoid<Exec, float>(p, reducer);
  return use(p);
}

/// The epilogues that a semiring from text takes.
template <class E>
concept TextEpilogueOrProgram = std::is_same_v<E, Epilogue> || std::is_same_v<E, epilogue::Program>;

}  // namespace rigel::runtime::detail

namespace rigel {

/// reduce() with scores of a semiring from text. `epilogue` is one of the closed set or one from text, which then makes scores of f32, f64, i32
/// or i64. Any reducer but a functor of yours, reducer::monoid. Throws as reduce() and as contract() with a semiring from text do.
template <class Exec, class A, class B, class R, class V, class I, runtime::detail::TextEpilogueOrProgram E>
void reduce(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const R& reducer, const V& values,
            const I& indices, const E& epilogue, const ReduceOptions& options = {}) {
  runtime::detail::with_reduction(exec, semiring, a, b, reducer, values, indices, epilogue, options,
                                  [](const Reduction& p) { run(p); });
}
template <class Exec, class A, class B, class R, class V, class I>
  requires(detail::is_output<I>)
void reduce(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const R& reducer, const V& values,
            const I& indices, const ReduceOptions& options = {}) {
  reduce(exec, semiring, a, b, reducer, values, indices, epilogue::Program{}, options);
}
template <class Exec, class A, class B, class R, class V>
void reduce(const Exec& exec, const runtime::Semiring& semiring, const A& a, const B& b, const R& reducer, const V& values,
            const ReduceOptions& options = {}) {
  reduce(exec, semiring, a, b, reducer, values, no_output, epilogue::Program{}, options);
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the gradient kernels of all families share: typed pointers and strides, facts, and counts of operations. No Kokkos here.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/gradient_of.hpp>
#include <rigel/gradient_problem.hpp>

#include <string>

namespace rigel::detail {

/// The arguments of a kernel.
template <class G>
struct GradientArguments {
  using element = typename G::element;
  using accumulator = typename G::accumulator;

  std::int64_t batch, outputs, n, m, k;
  Strided<const element> a, b, c, d;
  Strided<accumulator> out;  // of one o
  std::int64_t out_stride;   // from o to o
  G functor;
  bool accumulate;

  RIGEL_MEMBER accumulator& out_at(std::int64_t l, std::int64_t o, std::int64_t i, std::int64_t j) const {
    return out.data[out.offset(l, i, j) + o * out_stride];
  }
  /// The value with which the sum of output (l, o, n, m) starts.
  RIGEL_MEMBER accumulator start(const G& g, std::int64_t l, std::int64_t o, std::int64_t i, std::int64_t j) const {
    return accumulate ? out_at(l, o, i, j) : accumulator(g.identity());
  }
  RIGEL_MEMBER void store(const G& g, accumulator x, std::int64_t l, std::int64_t o, std::int64_t i, std::int64_t j) const {
    out_at(l, o, i, j) = gradient_result(g, x);
  }
};

template <class G>
GradientArguments<G> gradient_arguments(const Gradient& p) {
  using E = typename G::element;
  using A = typename G::accumulator;
  return {p.batch,
          p.outputs,
          p.n,
          p.m,
          p.k,
          strided<E>(p.a),
          strided<E>(p.b),
          strided<E>(p.c),
          strided<E>(p.d),
          {static_cast<A*>(p.out.data), p.out.batch_stride, p.out.row_stride, p.out.column_stride},
          p.out_stride,
          *static_cast<const G*>(p.functor_object),
          p.accumulate};
}

/// Whether multiply() of one of Rigel's functors takes a power.
template <class G>
inline constexpr bool takes_powers = false;
template <class E>
inline constexpr bool takes_powers<gradient_of::minkowski<E>> = true;

/// The roundings of one term c·v in addition to those of the sum, for p ≤ 8; 1 for multiply() of a user's functor, which is unknown.
template <class G>
constexpr Accuracy gradient_accuracy() {
  if constexpr (takes_powers<G>)
    return {12, 1};  // the difference's, p − 1 times; a power, 2 units of the last place; the product
  else
    return {2, 1};
}

/// A KernelInfo with functor, types and name: "family.functor.type[.variant]".
template <class G>
KernelInfo gradient_info(std::string_view family, std::string_view variant, Spaces spaces) {
  KernelInfo info;
  info.family = family;
  info.variant = variant;
  info.semiring = gradient_name<G>();
  info.semiring_type = gradient_type<G>();
  info.element = scalar_of<typename G::element>;
  info.accumulator = scalar_of<typename G::accumulator>;
  info.spaces = spaces;
  info.accuracy = gradient_accuracy<G>();
  info.name = info.family + '.' + info.semiring + '.' + rigel::name(info.element);
  if (!variant.empty()) info.name += '.' + info.variant;
  return info;
}

/// Whether a kernel's bound is relative to distances from the mean point, Σ_k |C·A|·(|D − mean| + |B − mean|), instead of Σ_k |C·v|.
inline bool is_of_points(const KernelInfo& info) { return info.variant.starts_with("of_points"); }

/// Evaluations of multiply(), if each is used for all o, and of accumulate().
inline double evaluations(const Gradient& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.n) * static_cast<double>(p.m) * static_cast<double>(p.k);
}

}  // namespace rigel::detail

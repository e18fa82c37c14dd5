// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernel records of all families have in common.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/semirings.hpp>

namespace rigel::detail {

/// Calls visit.operator()<T>() for each type of the list.
template <class... T, class Visit>
void for_each(type_list<T...>, const Visit& visit) {
  (visit.template operator()<T>(), ...);
}

/// A semiring object with typical hyperparameters, the same number in float and double.
template <class S>
inline const S sample{};
template <class E, class A>
inline constexpr lp<E, A> sample<lp<E, A>> = {{}, A(1.3125)};

/// Semiring, types and name of a kernel: "family.semiring.type" and, where there is one, ".tile". The type is the
/// element's; with an accumulator of half or bfloat16, which is not the usual one, it is both: "f16_f16".
KernelInfo make_info(std::string_view family, std::string_view tile, Spaces spaces, std::string_view semiring, Scalar element,
                     Scalar accumulator, const void* sample);
template <class S>
KernelInfo info_of(std::string_view family, std::string_view tile, Spaces spaces) {
  const void* object = nullptr;
  if constexpr (std::is_default_constructible_v<S>) object = &sample<S>;
  KernelInfo info = make_info(family, tile, spaces, semiring_name<S>(), scalar_of<typename S::element>,
                              scalar_of<typename S::accumulator>, object);
  info.accumulates = can_accumulate<S>;
  return info;
}

/// The a-priori bound of one ascending chain (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
/// section 3.1): K·u, and two roundings in ⊗ itself.
template <class S>
constexpr Accuracy chain_accuracy() {
  if constexpr (is_exact<S>) return {0, 0};
  else return {2, 1};
}

/// Indices first, first + 1, …, of which there are `count`.
struct Range {
  std::int64_t first = 0, count = 0;
};

/// The outputs of some rows and columns, in some matrices of a batch with one semiring object, as a problem of its own: places
/// in C count from its first output.
inline Problem part_of(Problem p, Range matrices, Range rows, Range columns) {
  const auto cut = [&](Operand& o, Range of_rows, Range of_columns) {
    const std::int64_t elements =
        matrices.first * o.batch_stride + of_rows.first * o.row_stride + of_columns.first * o.column_stride;
    o.data = static_cast<std::byte*>(o.data) + elements * static_cast<std::int64_t>(o.size);
    if (o.batches > 1) o.batches = matrices.count;
    o.rows = of_rows.count;
    o.columns = of_columns.count;
  };
  const Range along_k{0, p.k};
  cut(p.a, rows, along_k);
  cut(p.b, along_k, columns);
  cut(p.c, rows, columns);
  p.batch = matrices.count;
  p.m = rows.count;
  p.n = columns.count;
  return p;
}

/// Whether the way into C covers the problem: compiled kernels take epilogues of the closed set and a C of known type.
template <class Finish>
Status finish_supports(const KernelInfo&, const Problem& p) {
  if constexpr (std::is_same_v<Finish, ProgramFinish>) {
    if (!p.program) return {Code::unsupported, "the epilogue is a functor; this kernel takes those of the closed set"};
    if (p.c.type == Scalar::other) return {Code::unsupported, "C's element type is not one of Rigel's scalars"};
  }
  return {};
}

/// A launch, then pairs at a rate: per thread on a host; on a GPU for the whole card at its full width, where a chain of K
/// steps takes its time however few there are, and a launch through Kokkos takes longer than a raw one.
inline double predicted_seconds(const Problem& p, double host_pairs_per_second, double device_pairs_per_second) {
  const double pairs = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(p.k < 1 ? 1 : p.k);
  if (p.execution.space == Space::cuda) return 2e-5 + 1e-7 * static_cast<double>(p.k) + pairs / device_pairs_per_second;
  return 1e-6 + pairs / (host_pairs_per_second * p.execution.concurrency);
}

/// Name under which Kokkos Tools see a kernel.
inline std::string label_of(const KernelInfo& info) { return "rigel::contract/" + info.name; }

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernels of all families have in common: names, bounds, and parts of problems.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/semiring_info.hpp>

namespace rigel::detail {

/// Calls visit.operator()<T>() for each type of the list.
template <class... T, class Visit>
void for_each(type_list<T...>, const Visit& visit) {
  (visit.template operator()<T>(), ...);
}

/// A KernelInfo with semiring, types and name: "family.semiring.type" and, if there are any, ".variant" and ".tile". The type
/// is the element's. If the accumulator is half or bfloat16, the name has both types: "f16_f16".
KernelInfo make_info(std::string_view family, std::string_view variant, std::string_view tile, Spaces spaces,
                     const SemiringInfo& facts);
/// Sets the name that follows from the other facts and the tile.
void set_name(KernelInfo& info, std::string_view tile);
/// Sets the variant, and the name without a tile.
void set_variant(KernelInfo& info, std::string_view variant);
template <class S>
KernelInfo info_of(std::string_view family, std::string_view variant, std::string_view tile, Spaces spaces) {
  KernelInfo info = make_info(family, variant, tile, spaces, semiring_info<S>());
  info.accumulates = can_accumulate<S>;
  return info;
}

/// The a-priori bound of one chain in ascending k: K·u for the additions (N. J. Higham, Accuracy and Stability of Numerical
/// Algorithms, 2nd ed., section 3.1), and 2·u for at most two roundings inside ⊗.
template <class S>
constexpr Accuracy chain_accuracy() {
  if constexpr (is_exact<S>)
    return {0, 0};
  else
    return {2, 1};
}

/// The largest K up to which any order gives the same count of a semiring that counts in floating point, from 0 on; 0 for other
/// semirings. An accumulated C may start from any number: then only the reference's order gives exactly its result.
template <class S>
inline constexpr std::int64_t exact_counts = 0;
template <class E, std::floating_point A>
inline constexpr std::int64_t exact_counts<hamming<E, A>> = std::int64_t{1} << std::numeric_limits<A>::digits;

/// Whether a kernel that sums parts of K apart counts as the reference does.
template <class S>
Status counts_exactly(const Product& p) {
  if (exact_counts<S> > 0 && p.k > exact_counts<S>)
    return {Decline::extents, "counts above " + std::to_string(exact_counts<S>) + " depend on the order of k"};
  return {};
}

/// The indices first, first + 1, …, first + count − 1.
struct Range {
  std::int64_t first = 0, count = 0;
};

/// A part of a problem as a problem of its own: the outputs of some rows and columns, in some matrices of a batch with one
/// semiring object. Steps of a Program see places in the whole; a functor would see those in the part.
inline Contraction part_of(Contraction p, Range matrices, Range rows, Range columns) {
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
  p.first = {p.first.batch + matrices.first, p.first.row + rows.first, p.first.column + columns.first};
  p.batch = matrices.count;
  p.m = rows.count;
  p.n = columns.count;
  return p;
}

/// Whether the Finish covers the problem: compiled kernels take epilogues of the closed set and a C whose type is a Scalar.
template <class Finish>
Status finish_supports(const Contraction& p) {
  if constexpr (std::is_same_v<Finish, ProgramFinish>) {
    if (!p.program) return {Decline::epilogue, "the epilogue is a functor; this kernel takes those of the closed set"};
    if (p.c.type == Scalar::other) return {Decline::result, "C's element type is not one of Rigel's scalars"};
  }
  return {};
}

/// The name under which Kokkos Tools see a kernel.
inline std::string label_of(const KernelInfo& info) { return "rigel::contract/" + info.name; }

/// Adapters for a Kernel without state and plan: they make its functions from functions of the problem.
template <Status (*function)(const Contraction&)>
Status supports_by(const Kernel<Contraction>&, const Contraction& p) {
  return function(p);
}
template <double (*function)(const Contraction&)>
double cost_by(const Kernel<Contraction>&, const Contraction& p, Plan&) {
  return function(p);
}
template <std::size_t (*function)(const Product&)>
WorkspaceSize workspace_by(const Kernel<Contraction>&, const Contraction& p, const Plan&) {
  return {.bytes = function(p)};
}
template <void (*function)(const KernelInfo&, const Contraction&, void*)>
void run_by(const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
  function(kernel.info, p, workspace.data);
}

}  // namespace rigel::detail

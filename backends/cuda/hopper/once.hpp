// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The single-tile kernels of once_kernel.hpp: their facts and their launch. With split-K, sums that round do not have the
// bits of the other kernels. So these kernels are registered separately, as split_k2 and split_k4.
#pragma once

#include <rigel/backends/cuda/hopper/contract.hpp>
#include <rigel/backends/cuda/hopper/once_kernel.hpp>

namespace rigel::backends::hopper {

template <class Element, class Shape>
double once_cost(const Contraction& p) {
  constexpr costs::OnceTile tile{.m = Shape::m,
                                 .n = Shape::n,
                                 .columns = Shape::columns,
                                 .cluster = Shape::cluster,
                                 .parts = Shape::parts,
                                 .tiles = Shape::tiles,
                                 .groups = Shape::groups,
                                 .depth = 128 / static_cast<int>(sizeof(Element))};
  return costs::once_seconds(p, tile, p.batch * rows_of<typename Shape::Tile>(p) * columns_of<typename Shape::Tile>(p),
                             tensor::pass_bytes(p, workspace_of<Parts<1, 1, false>>));
}

/// Elements along K in the longest slice, in whole slabs.
template <class S, class Shape>
std::int64_t terms_of_slice(const Product& p) {
  constexpr std::int64_t depth = 128 / sizeof(typename S::element);
  const std::int64_t slabs = (p.k + depth - 1) / depth;
  return (slabs + Shape::parts - 1) / Shape::parts * depth;
}

template <class S, class Element, class Shape>
void run_grid(const KernelInfo& info, const Contraction& p, void* workspace) {
  using Whole = Parts<1, 1, false>;
  const cuda::Launches launches(p, info.name);
  const dim3 grid(static_cast<unsigned>(rows_of<typename Shape::Tile>(p) * Shape::cluster),
                  static_cast<unsigned>(columns_of<typename Shape::Tile>(p)), static_cast<unsigned>(p.batch));
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;

  auto arguments = detail::arguments_of<S, detail::ProgramFinish>(p);
  const auto run_as = [&]<tile::Direction of_a, tile::Direction of_b, bool as_they_are>() {
    constexpr int bytes = sizeof(OnceStorage<Shape, typename arch::WgmmaTypes<Element>::Accumulator>);
    static cuda::LaunchFacts facts;
    const auto function =
        reinterpret_cast<const void*>(&multiply_once<S, Element, detail::ProgramFinish, Shape, of_a, of_b, as_they_are>);
    facts.find(function, bytes, launches);  // before anything is enqueued
    Operands operands = operands_of<Element, Whole, Shape, Shape::tiles, 1>(p, workspace, launches);
    void* list[] = {&operands, &arguments};
    launches(function, grid, Shape::threads, bytes, list, true, Shape::cluster);
  };
  with_directions<Element, Whole>(p, [&]<tile::Direction of_a, tile::Direction of_b>() {
    // The shorter kernel saves 0.3 µs; for larger tiles and long sums it saves nothing.
    if constexpr (Shape::tiles > 1 && !Shape::long_sums && !std::is_same_v<Element, float>)
      if (supports_short_store<S, typename Shape::Tile, false, true>(p))
        return run_as.template operator()<of_a, of_b, true>();
    run_as.template operator()<of_a, of_b, false>();
  });
}

/// One grid, or several if C has more columns or matrices than one holds.
template <class S, class Element, class Shape>
void run_once(const KernelInfo& info, const Contraction& p, void* workspace) {
  constexpr std::int64_t columns = cuda::max_grid_yz * Shape::Tile::n;
  if (p.batch <= cuda::max_grid_yz && p.n <= columns) return run_grid<S, Element, Shape>(info, p, workspace);
  cuda::for_each_launch(p.batch, cuda::max_grid_yz, [&](std::int64_t l, std::int64_t batches) {
    cuda::for_each_launch(p.n, columns, [&](std::int64_t n, std::int64_t count) {
      run_grid<S, Element, Shape>(info, detail::part_of(p, {l, batches}, {0, p.m}, {n, count}), workspace);
    });
  });
}

/// supports() and run() of a tile whose kernel for long sums is `Long`.
template <class S, class Shape, class Long>
Status supports_once(const Contraction& p) {
  if (Status status = supports_cut_sums<S>(p.k); !status) return status;
  if constexpr (std::is_void_v<Long>)
    if (Status status = supports_short_sums(terms_of_slice<S, Shape>(p)); !status) return status;
  return supports<typename Shape::Tile, detail::ProgramFinish>(p);
}
template <class S, class Element, class Shape, class Long>
void run_once_with(const KernelInfo& info, const Contraction& p, void* workspace) {
  if constexpr (!std::is_void_v<Long> && !std::is_same_v<Shape, Long>)
    if (terms_of_slice<S, Shape>(p) > sum_k) return run_once<S, Element, Long>(info, p, workspace);
  run_once<S, Element, Shape>(info, p, workspace);
}

/// A kernel of S; floats are cut to tf32. Long sums of 16-bit numbers have a kernel of their own, `Long`, or none (void).
template <class S, Precision precision, class Shape, class Long = std::conditional_t<cuts_sums<S>, void, Shape>>
Kernel<Contraction> once_kernel() {
  using Element = typename S::element;
  constexpr int size = static_cast<int>(sizeof(Element)), depth = 128 / size, terms = 32 / size;
  Kernel<Contraction> k;
  k.info = tensor::info_of_tile<S, Shape>("cuda.hopper", precision, depth, {},
                                          Shape::parts > 1 ? "split_k" + std::to_string(Shape::parts) : "once");
  k.info.min_compute_capability = k.info.max_compute_capability = 90;
  k.info.shared_memory = sizeof(OnceStorage<Shape, typename arch::WgmmaTypes<Element>::Accumulator>);
  // If ⊕ is exact, slices do not change bits.
  if constexpr (is_exact<S>)
    k.info.promises = Promise::repeatable | Promise::batch_invariant | Promise::reference_bits;
  else
    k.info.promises = Shape::parts > 1 ? Promise::repeatable : Promise::repeatable | Promise::batch_invariant;
  if constexpr (Shape::parts > 1) k.info.bit_class.clear();
  if constexpr (!is_exact<S>) {
    constexpr double joined = Shape::parts > 1 ? Shape::parts : 0;  // the slices' sums, added in float
    if constexpr (cuts_sums<S>)
      k.info.accuracy = accuracy_of_cut_sums(joined);
    else
      k.info.accuracy = tensor::truncating_accuracy(terms, 1, tensor::cut_to_tf32 + joined);
  }
  k.info.transposes = Transposes::with_same_bits;
  k.supports = detail::supports_by<supports_once<S, Shape, Long>>;
  k.cost = detail::cost_by<once_cost<Element, Shape>>;
  k.workspace = detail::workspace_by<workspace<Parts<1, 1, false>>>;
  k.run = detail::run_by<run_once_with<S, Element, Shape, Long>>;
  return k;
}

/// The kernels of a semiring.
template <class S, Precision precision = Precision::accumulator>
std::vector<Kernel<Contraction>> once_kernels() {
  constexpr bool cuts = cuts_sums<S>;
  return {once_kernel<S, precision, Once<128, 1, 1, 6>>(),
          once_kernel<S, precision, Once<64, 1, 2, 8>, Once<64, 1, 2, 8, cuts>>(),
          once_kernel<S, precision, Once<64, 1, 1, 13, false, 1>, Once<64, 1, 1, 13, cuts, 1>>(),
          once_kernel<S, precision, Once<64, 2, 1, 8>, Once<64, 2, 1, 8, cuts>>(),
          once_kernel<S, precision, Once<128, 4, 1, 5>, Once<128, 4, 1, 5, cuts>>()};
}

}  // namespace rigel::backends::hopper

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of cuda.gradient for a functor: one chain for each output, one that cuts K into slices for few outputs, and of Rigel's own
// functors of floats products on tensor cores.
#pragma once

#include <rigel/backends/cuda/costs/gradient.hpp>
#include <rigel/backends/cuda/gradient/kernel.hpp>
#include <rigel/backends/cuda/gradient/products.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/tensor/accuracy.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <vector>

namespace rigel::backends::gradient {

/// Calls visit(Cut) with the first of a list that has no more than twice as many o as there are, or the last one.
template <class Visit, class First, class... Rest>
auto with_cut_of(type_list<First, Rest...>, std::int64_t outputs, const Visit& visit) {
  if constexpr (sizeof...(Rest) == 0)
    return visit(First{});
  else
    return outputs > First::outputs / 2 ? visit(First{}) : with_cut_of(type_list<Rest...>{}, outputs, visit);
}
/// Calls visit(Cut) for a number of o.
template <class G, class Visit>
auto with_cut(std::int64_t outputs, const Visit& visit) {
  return with_cut_of(Cuts<G>{}, outputs, visit);
}

/// The blocks of a problem. Slices depend on the problem's extents only, not on the card, so that a problem's bits do neither: as
/// many as fill 396 blocks, of 256 k or more.
template <class C>
Grid grid_of(const Gradient& p, bool split) {
  const auto ceil = [](std::int64_t x, std::int64_t y) { return (x + y - 1) / y; };
  Grid grid{ceil(p.m, C::tile_m), ceil(p.n, C::tile_n), ceil(p.outputs, C::outputs), 1, p.k, 0};
  if (split) {
    constexpr std::int64_t blocks = 396, shortest = 256;
    const std::int64_t wanted = blocks / std::max<std::int64_t>(1, p.batch * grid.tiles_m * grid.tiles_n * grid.tiles_o);
    const std::int64_t slices = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, p.k / shortest));
    grid.slice = std::max<std::int64_t>(1, ceil(ceil(p.k, slices), C::depth)) * C::depth;
    grid.slices = std::max<std::int64_t>(1, ceil(p.k, grid.slice));
  }
  grid.steps = static_cast<int>(ceil(grid.slice, C::depth));
  return grid;
}
inline std::int64_t blocks_of(const Gradient& p, const Grid& grid) {
  return p.batch * grid.tiles_m * grid.tiles_n * grid.tiles_o * grid.slices;
}

template <class G>
std::size_t bytes_of_parts(const Gradient& p, std::int64_t slices) {
  return static_cast<std::size_t>(slices * p.batch * p.outputs * p.n * p.m) * sizeof(typename G::accumulator);
}

template <class G, bool split>
Status supports(const Kernel<Gradient>&, const Gradient& p) {
  return with_cut<G>(p.outputs, [&]<class C>(C) -> Status {
    const Grid grid = grid_of<C>(p, split);
    if (p.k >= std::int64_t{1} << 35) return {Decline::extents, "takes K below 2^35"};
    if (blocks_of(p, grid) > cuda::max_grid) return {Decline::extents, "needs more blocks than a launch can have"};
    if (split && grid.slices == 1) return {Decline::extents, "takes few outputs and long K, which it cuts into slices"};
    if (split && (p.batch * p.outputs * p.n * p.m + 255) / 256 > cuda::max_grid)
      return {Decline::extents, "needs more blocks than a launch can have"};
    return {};
  });
}

template <class G, bool split>
double cost(const Kernel<Gradient>&, const Gradient& p, Plan&) {
  return with_cut<G>(p.outputs, [&]<class C>(C) {
    constexpr costs::Cut cut{C::rows,
                             C::columns,
                             C::outputs,
                             C::threads,
                             C::blocks,
                             detail::takes_powers<G>,
                             sizeof(typename G::accumulator) > 4};
    const Grid grid = grid_of<C>(p, split);
    return costs::tiles_seconds(p.execution, cut, static_cast<double>(blocks_of(p, grid)), static_cast<double>(grid.slice),
                                split ? static_cast<double>(bytes_of_parts<G>(p, 2 * grid.slices)) : 0);
  });
}

template <class G, bool split>
void run(const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace& workspace) {
  using A = typename G::accumulator;
  const cuda::CurrentDevice device(p.execution.device);
  const auto stream = static_cast<cudaStream_t>(p.execution.stream);
  const detail::GradientArguments<G> arguments = detail::gradient_arguments<G>(p);
  with_cut<G>(p.outputs, [&]<class C>(C) {
    const Grid grid = grid_of<C>(p, split);
    A* const parts = split ? static_cast<A*>(workspace.data) : nullptr;
    contract_gradient_tile<G, C>
        <<<static_cast<unsigned>(blocks_of(p, grid)), C::threads, 0, stream>>>(arguments, grid, parts);
    cuda::check(cudaGetLastError(), std::string(p.function) + ": launch of " + kernel.info.name);
    if (!split) return;
    const auto blocks = static_cast<unsigned>((p.batch * p.outputs * p.n * p.m + 255) / 256);
    join_gradient_parts<G><<<blocks, 256, 0, stream>>>(arguments, grid.slices, parts);
    cuda::check(cudaGetLastError(), std::string(p.function) + ": launch of " + kernel.info.name);
  });
}

template <class G, bool split>
Kernel<Gradient> kernel() {
  Kernel<Gradient> k;
  k.info = detail::gradient_info<G>("cuda.gradient", split ? "split_k" : "tiles", bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.timed_on = 90;
  k.info.raw_launch = true;
  k.info.promises = Promise::repeatable;
  constexpr bool approximates = detail::takes_powers<G> && sizeof(typename G::accumulator) <= 4;
  if (approximates) k.info.accuracy = {120, 1};  // power_approximately() for p ≤ 8
  if (!split) k.info.promises = k.info.promises | Promise::batch_invariant;
  if (!split && !approximates) k.info.promises = k.info.promises | Promise::reference_bits;
  if (split) k.info.accuracy.constant += 2;  // the sums of slices are added to each other: at most K + 1 additions in a row
  k.supports = supports<G, split>;
  k.cost = cost<G, split>;
  if (split)
    k.workspace = [](const Kernel<Gradient>&, const Gradient& p, const Plan&) {
      return with_cut<G>(
          p.outputs, [&]<class C>(C) { return WorkspaceSize{.bytes = bytes_of_parts<G>(p, grid_of<C>(p, true).slices)}; });
    };
  k.run = run<G, split>;
  return k;
}

/// Whether accumulate() is known to be an fma in float: that of Rigel's own functors. A type that derives from one may have its own.
template <class G>
inline constexpr bool sums_products = detail::is_compiled_gradient<G> && std::is_same_v<typename G::accumulator, float>;

template <class G, class Visit>
auto with_product_cut(std::int64_t outputs, const Visit& visit) {
  return outputs > 8 ? visit(ProductCut<G, 2>{}) : visit(ProductCut<G, 1>{});
}

/// Whether powers may be so large, and the weights of a distance's gradient so small, that products of C and A underflow: δ^(1−p) and
/// |t|^(p−1) for p > 2, or for a p that only kernels see.
template <class G>
bool may_underflow(const G& functor) {
  if constexpr (detail::takes_powers<G>)
    return functor.powers || functor.exponent > 1;
  else
    return false;
}

template <class G>
Status supports_products(const Kernel<Gradient>&, const Gradient& p) {
  if (p.precision == Precision::automatic && may_underflow(*static_cast<const G*>(p.functor_object)))
    return {Decline::precision, "multiplies C by A first, which may underflow where p is above 2"};
  return with_product_cut<G>(p.outputs, [&]<class C>(C) -> Status {
    constexpr std::int64_t most = 1 << 30;
    if (p.m > most || p.n > most || p.outputs > most || p.k > most) return {Decline::extents, "takes extents of up to 2^30"};
    if (blocks_of(p, grid_of<C>(p, false)) > cuda::max_grid)
      return {Decline::extents, "needs more blocks than a launch can have"};
    return {};
  });
}

template <class G>
double cost_of_products(const Kernel<Gradient>&, const Gradient& p, Plan&) {
  using costs::Weights;
  return with_product_cut<G>(p.outputs, [&]<class C>(C) {
    constexpr Weights weights = detail::takes_powers<G> ? Weights::powers
                                : has_signs<G>          ? Weights::signs
                                                        : Weights::distances;
    const Grid grid = grid_of<C>(p, false);
    return costs::products_seconds(p.execution, weights, C::tiles == 2, C::blocks, static_cast<double>(blocks_of(p, grid)),
                                   grid.steps);
  });
}

template <class G>
void run_products(const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace&) {
  const cuda::CurrentDevice device(p.execution.device);
  const auto arguments = detail::gradient_arguments<G>(p);
  with_product_cut<G>(p.outputs, [&]<class C>(C) {
    const Grid grid = grid_of<C>(p, false);
    // Without an epsilon only signs and powers compare: differences themselves are 0 if they are.
    constexpr bool always = has_signs<G> || detail::takes_powers<G>;
    const auto function = always || arguments.functor.least > G{}.least ? contract_gradient_products<G, C, true>
                                                                        : contract_gradient_products<G, C, always>;
    function<<<static_cast<unsigned>(blocks_of(p, grid)), C::threads, 0, static_cast<cudaStream_t>(p.execution.stream)>>>(
        arguments, grid);
    cuda::check(cudaGetLastError(), std::string(p.function) + ": launch of " + kernel.info.name);
  });
}

template <class G>
Kernel<Gradient> products_kernel() {
  constexpr int promoted = ProductCut<G, 1>::promoted;
  // Floats are two numbers of tf32, eight k an instruction. Weights of signs are three of bfloat16, and lose nothing.
  constexpr tensor::Decomposition parts =
      has_signs<G> ? tensor::Decomposition{3, 3, promoted} : tensor::Decomposition{1, 3, promoted};
  // Of a term: the product of C and A, the difference's rounding, and a power's 4 + 2.8·7 + 3.5·128 for p ≤ 8 (Terms::of).
  constexpr double of_value = 1 + (has_signs<G> ? 0 : 1) + (detail::takes_powers<G> ? 7 + 472 : 0);
  Kernel<Gradient> k;
  k.info = detail::gradient_info<G>("cuda.gradient", "promoted", bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.timed_on = 90;
  k.info.raw_launch = true;
  k.info.precision = Precision::promoted;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = tensor::accuracy_of(parts, has_signs<G> ? 16 : 8);
  k.info.accuracy.constant += of_value;
  k.supports = supports_products<G>;
  k.cost = cost_of_products<G>;
  k.run = run_products<G>;
  return k;
}

/// All kernels of a functor.
template <class G>
std::vector<Kernel<Gradient>> kernels() {
  std::vector<Kernel<Gradient>> all{kernel<G, false>(), kernel<G, true>()};
  if constexpr (sums_products<G>) all.push_back(products_kernel<G>());
  return all;
}

}  // namespace rigel::backends::gradient

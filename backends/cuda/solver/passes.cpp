// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes before and after the kernels of large systems. Blocks of 256 threads take tiles of 32 × 32 elements through shared
// memory, so that a warp reads and writes neighbours whatever the layouts.
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/solver/divisor.hpp>
#include <rigel/backends/cuda/solver/passes.hpp>

#include <algorithm>

namespace rigel::backends::solver {
namespace {

constexpr int threads = 256, edge = 32;
constexpr std::int64_t most_blocks = 1024;

template <class T>
__device__ bool by_rows(const detail::Strided<T>& s) {
  return s.column < s.row;
}

template <class T>
using Tile = T[edge][edge + 1];

/// write(i, j, read(i, j)) for all elements of a matrix, shared by a system's blocks.
template <class T, class Read, class Write>
__device__ __forceinline__ void copy(Tile<T>& tile, std::int64_t rows, std::int64_t columns, std::int64_t blocks,
                                     bool reads_rows, const Read& read, bool writes_rows, const Write& write) {
  const int x = static_cast<int>(threadIdx.x) % edge, y = static_cast<int>(threadIdx.x) / edge;
  const std::int64_t down = (rows + edge - 1) / edge, tiles = down * ((columns + edge - 1) / edge);
  for (std::int64_t t = blockIdx.x % blocks; t < tiles; t += blocks) {
    const std::int64_t first_row = t % down * edge, first_column = t / down * edge;
    const auto each = [&](bool along_rows, const auto& visit) {
#pragma unroll
      for (int z = y; z < edge; z += threads / edge) {
        const int i = along_rows ? z : x, j = along_rows ? x : z;
        if (first_row + i < rows && first_column + j < columns) visit(i, j);
      }
    };
    each(reads_rows, [&](int i, int j) { tile[i][j] = read(first_row + i, first_column + j); });
    __syncthreads();
    each(writes_rows, [&](int i, int j) { write(first_row + i, first_column + j, tile[i][j]); });
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(threads, 1) pack_systems(const __grid_constant__ detail::SolveArguments<T> g,
                                                           const __grid_constant__ Packed<T> to, std::int64_t blocks) {
  __shared__ Tile<T> tile;
  const std::int64_t l = blockIdx.x / blocks;
  const bool all = g.factorisation == Factorisation::lu;
  copy<T>(
      tile, g.n, g.n, blocks, by_rows(g.a),
      [&](std::int64_t i, std::int64_t j) { return all || i >= j ? g.a.at(l, i, j) : T(0); }, by_rows(to.factors),
      [&](std::int64_t i, std::int64_t j, T value) { to.factors.at(l, i, j) = value; });
  if (g.task != Solve::Task::factor)
    copy<T>(
        tile, g.n, g.m, blocks, by_rows(g.b), [&](std::int64_t i, std::int64_t j) { return g.b.at(l, i, j); },
        by_rows(to.sides), [&](std::int64_t i, std::int64_t j, T value) { to.sides.at(l, i, j) = value; });
  if (blockIdx.x % blocks != 0 || threadIdx.x != 0) return;
  to.infos[l] = 0;
  if (!to.of_factors) return;
  to.of_factors[l] = &to.factors.at(l, 0, 0);
  to.of_sides[l] = &to.sides.at(l, 0, 0);
}

template <class T>
__global__ void __launch_bounds__(threads, 1) unpack_systems(const __grid_constant__ detail::SolveArguments<T> g,
                                                             const __grid_constant__ Packed<T> from, std::int64_t blocks) {
  const std::int64_t l = blockIdx.x / blocks, n = g.n, m = g.m;
  const T* const w = from.values + l * n;
  const bool eigen = g.factorisation == Factorisation::eigen;
  __shared__ Tile<T> tile;
  __shared__ int first;  // the first pivot that cannot be divided by, among all threads
  if (threadIdx.x == 0) first = from.infos[l] > 0 ? from.infos[l] : static_cast<int>(n) + 1;
  __syncthreads();
  for (std::int64_t k = threadIdx.x; k < n; k += threads) {
    bool good = eigen ? w[k] - w[k] == 0 : detail::is_pivot(g.factorisation, from.factors.at(l, k, k));
    if (from.by_reciprocals && !eigen) good = good && serves(T(1) / from.factors.at(l, k, k));
    if (!good) atomicMin(&first, static_cast<int>(k) + 1);
  }
  __syncthreads();
  const bool failed = first <= n;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto store = [&](std::int64_t i, std::int64_t j, T value) { g.x.at(l, i, j) = value; };
  if (g.task == Solve::Task::factor)
    copy<T>(
        tile, n, n, blocks, by_rows(from.factors),
        [&](std::int64_t i, std::int64_t j) { return failed            ? nan
                                                     : eigen || i >= j ? from.factors.at(l, i, j)
                                                                       : T(0); },
        by_rows(g.x), store);
  else
    copy<T>(
        tile, n, m, blocks, by_rows(from.sides),
        [&](std::int64_t i, std::int64_t j) { return failed ? nan : from.sides.at(l, i, j); }, by_rows(g.x), store);
  if (eigen)
    for (std::int64_t i = blockIdx.x % blocks * threads + threadIdx.x; i < n; i += blocks * threads)
      g.values.at(l, i, 0) = failed ? nan : w[i];
  if (g.infos.data && blockIdx.x % blocks == 0 && threadIdx.x == 0) g.infos.at(l, 0, 0) = failed ? eigen ? 1 : first : 0;
}

/// How many blocks share a system: one for four tiles, if the batch leaves room for them.
template <class T>
std::int64_t blocks_for(const detail::SolveArguments<T>& g) {
  return std::clamp<std::int64_t>(g.n * std::max(g.n, g.m) / (4 * edge * edge), 1,
                                  std::max<std::int64_t>(1, most_blocks / std::max<std::int64_t>(1, g.batch)));
}

}  // namespace

template <class T>
void pack(const detail::SolveArguments<T>& g, const Packed<T>& packed, cudaStream_t stream) {
  const std::int64_t blocks = blocks_for(g);
  pack_systems<T><<<static_cast<unsigned>(g.batch * blocks), threads, 0, stream>>>(g, packed, blocks);
  cuda::check(cudaGetLastError(), "solve: launch of the pass that packs systems");
}

template <class T>
void unpack(const detail::SolveArguments<T>& g, const Packed<T>& packed, cudaStream_t stream) {
  const std::int64_t blocks = blocks_for(g);
  unpack_systems<T><<<static_cast<unsigned>(g.batch * blocks), threads, 0, stream>>>(g, packed, blocks);
  cuda::check(cudaGetLastError(), "solve: launch of the pass that stores solutions");
}

template void pack(const detail::SolveArguments<float>&, const Packed<float>&, cudaStream_t);
template void pack(const detail::SolveArguments<double>&, const Packed<double>&, cudaStream_t);
template void unpack(const detail::SolveArguments<float>&, const Packed<float>&, cudaStream_t);
template void unpack(const detail::SolveArguments<double>&, const Packed<double>&, cudaStream_t);

}  // namespace rigel::backends::solver

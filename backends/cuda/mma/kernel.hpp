// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( Σ_k A(l,m,k)·B(l,k,n) ) on tensor cores by mma.sync. A block computes tile after tile of C, a warp a part of
// it in registers; slabs of A and B come to shared memory while those before them are worked on, those of the next tile while
// this one is stored. Every output is summed in ascending steps of 32 bytes of k, whatever the tile.
#pragma once

#include <backends/cuda/mma/store.hpp>
#include <backends/cuda/tile/matrix_slab.hpp>
#include <backends/cuda/tile/raster.hpp>
#include <rigel/detail/arguments.hpp>

namespace rigel::backends::mma {

/// A block of WarpsM × WarpsN warps with OutputsM × OutputsN outputs each, `Stages` slabs of 128 bytes of k in shared memory.
/// `Blocks` is how many blocks a multiprocessor must be able to hold.
template <int WarpsM, int WarpsN, int OutputsM, int OutputsN, int Stages, int Blocks>
struct Shape {
  static constexpr int warps_n = WarpsN, warps = WarpsM * WarpsN, threads = 32 * warps;
  static constexpr int outputs_m = OutputsM, outputs_n = OutputsN;  // of a warp
  static constexpr int m = WarpsM * OutputsM, n = WarpsN * OutputsN;
  static constexpr int stages = Stages, blocks = Blocks;
  static_assert(OutputsM % 16 == 0 && OutputsN % 16 == 0 && Stages >= 2);
};

/// Bytes of shared memory that a kernel asks for.
template <class Shape>
inline constexpr int shared_bytes = Shape::stages*(Shape::m + Shape::n) * 128 + Shape::warps * StoreBuffer<Shape::outputs_n>::bytes;

template <class S, class Finish, class Shape, tile::Direction of_a, tile::Direction of_b>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    multiply(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ tile::Raster raster,
             unsigned tiles) {
  using Element = typename S::element;
  using Mma = arch::Mma<Element>;
  using SlabA = tile::MatrixSlab<Element, of_a, Shape::m, Shape::threads>;
  using SlabB = tile::MatrixSlab<Element, of_b, Shape::n, Shape::threads>;
  constexpr int stages = Shape::stages, stage_bytes = SlabA::bytes + SlabB::bytes, steps = SlabA::steps;
  constexpr int rows = Shape::outputs_m / 16, columns = Shape::outputs_n / 8;
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  const auto slabs = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / Shape::warps_n * Shape::outputs_m, warp_n = warp % Shape::warps_n * Shape::outputs_n;
  const typename SlabA::template Reader<SlabA::Order::rows> reader_a(warp_m, lane);
  const typename SlabB::template Reader<SlabB::Order::columns> reader_b(warp_n, lane);
  const std::int64_t slabs_of_tile = (g.k + SlabA::depth - 1) / SlabA::depth;

  // The copies run ahead of the products, from one tile into the next.
  const auto origin = [&](unsigned index) { return raster.origin(index, Shape::m, Shape::n); };
  const auto source_a = [&](tile::Origin o) {
    return typename SlabA::Source(&g.a.at(o.batch, o.m, 0), of_a == tile::Direction::along_k ? g.a.row : g.a.column, g.m - o.m);
  };
  const auto source_b = [&](tile::Origin o) {
    return typename SlabB::Source(&g.b.at(o.batch, 0, o.n), of_b == tile::Direction::along_k ? g.b.column : g.b.row, g.n - o.n);
  };
  unsigned copied = blockIdx.x;
  std::int64_t k_left = g.k;  // of the tile that is being copied; 0 behind the last
  const tile::Origin first = origin(copied);
  typename SlabA::Source a = source_a(first);
  typename SlabB::Source b = source_b(first);
  // One of `parts` parts of a slab's copies.
  const auto start_copies = [&](int stage, int part, int parts) __attribute__((always_inline)) {
    const std::uint32_t to = slabs + stage * stage_bytes;
    const int left = static_cast<int>(std::min<std::int64_t>(k_left, SlabA::depth));
    constexpr int all = SlabA::copies + SlabB::copies;
#pragma unroll
    for (int e = all * part / parts; e < all * (part + 1) / parts; ++e)
      if (e < SlabA::copies)
        a.copy(e, to, left);
      else
        b.copy(e - SlabA::copies, to + SlabA::bytes, left);
    if (part == parts - 1) arch::commit_copies();
  };
  const auto advance = [&]() __attribute__((always_inline)) {
    a.advance();
    b.advance();
    k_left -= SlabA::depth;
    if (k_left <= 0) {
      k_left = 0;
      copied += gridDim.x;
      if (copied < tiles) {
        const tile::Origin next = origin(copied);
        a = source_a(next);
        b = source_b(next);
        k_left = g.k;
      }
    }
  };
  std::uint32_t fragment_a[2][rows][4], fragment_b[2][columns / 2][4];
  const auto read = [&](int which, int stage, int step) __attribute__((always_inline)) {
    const std::uint32_t from = slabs + stage * stage_bytes;
#pragma unroll
    for (int i = 0; i < rows; ++i) reader_a.read(from, 16 * i, step, fragment_a[which][i]);
#pragma unroll
    for (int j = 0; j < columns / 2; ++j) reader_b.read(from + SlabA::bytes, 16 * j, step, fragment_b[which][j]);
  };

  int stage = 0;
  if (slabs_of_tile > 0) {
#pragma unroll 1
    for (int s = 0; s < stages - 1; ++s) {
      start_copies(s, 0, 1);
      advance();
    }
    arch::wait_for_copies<stages - 2>();
    __syncthreads();
    read(0, 0, 0);
  }
#pragma unroll 1
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    typename Mma::Accumulator x[rows][columns][4] = {};
#pragma unroll 1
    for (std::int64_t slab = 0; slab < slabs_of_tile; ++slab) {
      const int next = stage + 1 == stages ? 0 : stage + 1, free = stage == 0 ? stages - 1 : stage - 1;
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
          read((step + 1) % 2, stage, step + 1);
        } else {
          arch::wait_for_copies<stages - 2>();
          __syncthreads();
          read(0, next, 0);
        }
        if (step + 1 < steps) start_copies(free, step, steps - 1);
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
          for (int turn = 0; turn < columns; ++turn) {
            const int j = i % 2 == 0 ? turn : columns - 1 - turn;
            const auto& of_column = fragment_b[step % 2][j / 2];
            Mma::add(x[i][j], fragment_a[step % 2][i], of_column[j % 2 * 2], of_column[j % 2 * 2 + 1]);
          }
      }
      advance();
      stage = next;
    }
    const tile::Origin o = origin(index);
    store_tile<Shape::outputs_n>(g, x, o.batch, o.m + warp_m, o.n + warp_n,
                                 shared + stages * stage_bytes + warp * StoreBuffer<Shape::outputs_n>::bytes, lane);
  }
  arch::wait_for_copies<0>();
}

}  // namespace rigel::backends::mma

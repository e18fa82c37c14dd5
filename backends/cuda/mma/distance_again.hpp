// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Σ_k (x_k − z_k)² anew, by differences, for outputs whose |x|² + |z|² − 2x·z has cancelled: by a warp each where a tile has few of
// them; where it has many, the tile as a whole, each output one chain in ascending k.
#pragma once

#include <backends/cuda/arch/copy_async.hpp>
#include <backends/cuda/mma/distance_kernel.hpp>

namespace rigel::backends::mma {

/// A tile of tile_m × tile_n outputs by tile_m·tile_n/64 threads with 8 × 8 each, slabs of 16 values of k.
template <int tile_m, int tile_n>
class DirectTile {
  static constexpr int outputs = 8, threads_m = tile_m / outputs, threads_n = tile_n / outputs;
  static constexpr int warp_n = threads_n < 8 ? threads_n : 8, warp_m = 32 / warp_n;
  static constexpr int depth = 16, pitch = depth + 4, lines = tile_m + tile_n;  // eight lines then meet 32 banks
  static_assert(threads_n == warp_n && threads_m % warp_m == 0);

 public:
  static constexpr int threads = threads_m * threads_n, stages = 2;
  static constexpr int size = stages * lines * pitch;  // floats of shared memory

  /// use(value, row, column) for each output of the tile that exists; all threads of the block call it.
  template <class Use>
  __device__ __forceinline__ static void compute(const detail::Strided<const float>& a,
                                                 const detail::Strided<const float>& b, tile::Origin o, int last_m,
                                                 int last_n, std::int64_t k, bool in_vectors, float* slabs, const Use& use) {
    const int thread = static_cast<int>(threadIdx.x);
    const int place_m = thread / 32 * warp_m + thread % 32 / warp_n, place_n = thread % warp_n;
    const float* const first_a = &a.at(o.batch, o.m, 0);
    const float* const first_b = &b.at(o.batch, 0, o.n);
    // Lines beyond the last repeat it; their outputs are not used. Values beyond K are 0 in both.
    const auto address = [&](int line, std::int64_t at) {
      return line < tile_m ? first_a + std::min(line, last_m - 1) * a.row + at * a.column
                           : first_b + std::min(line - tile_m, last_n - 1) * b.column + at * b.row;
    };
    const auto start = [&](int stage, std::int64_t k0) __attribute__((always_inline)) {
      float* const slab = slabs + stage * lines * pitch;
      if (k0 < k && in_vectors) {
        constexpr int in_line = depth / 4;
#pragma unroll
        for (int e = 0; e < lines * in_line / threads; ++e) {
          const int line = thread / in_line + e * (threads / in_line), piece = thread % in_line * 4;
          arch::copy_async_or_zero(static_cast<std::uint32_t>(__cvta_generic_to_shared(slab + line * pitch + piece)),
                                   address(line, k0 + piece), k0 + piece < k);
        }
      } else if (k0 < k) {
#pragma unroll 4
        for (int e = 0; e < lines * depth / threads; ++e) {
          const int line = thread / depth + e * (threads / depth), at = thread % depth;
          float* const to = slab + line * pitch + at;
          if (k0 + at < k)
            arch::copy_async<4>(to, address(line, k0 + at));
          else
            *to = 0;
        }
      }
      arch::commit_copies();
    };

    float x[outputs][outputs] = {};
    start(0, 0);
    int stage = 0;
#pragma unroll 1
    for (std::int64_t k0 = 0; k0 < k; k0 += depth, stage ^= 1) {
      arch::wait_for_copies<0>();
      __syncthreads();
      start(stage ^ 1, k0 + depth);
      const float* const slab = slabs + stage * lines * pitch;
#pragma unroll
      for (int q = 0; q < depth; q += 4) {
        tile::Chunk<float, 4> of_a[outputs];
#pragma unroll
        for (int i = 0; i < outputs; ++i)
          of_a[i] = tile::Chunk<float, 4>::load(slab + (place_m + i * threads_m) * pitch + q);
#pragma unroll
        for (int j = 0; j < outputs; ++j) {
          const auto of_b = tile::Chunk<float, 4>::load(slab + (tile_m + place_n + j * threads_n) * pitch + q);
#pragma unroll
          for (int v = 0; v < 4; ++v)
#pragma unroll
            for (int i = 0; i < outputs; ++i) x[i][j] = l2_squared<float>::step(x[i][j], of_a[i].value[v], of_b.value[v]);
        }
      }
    }
    arch::wait_for_copies<0>();
    __syncthreads();
    // One place for the code of an output: through shared memory, a row of each thread's outputs at a time.
#pragma unroll 1
    for (int row = 0; row < outputs; ++row) {
#pragma unroll
      for (int i = 0; i < outputs; ++i)
        if (i == row)
#pragma unroll
          for (int j = 0; j < outputs; ++j) slabs[place_m * (tile_n + 1) + place_n + j * threads_n] = x[i][j];
      __syncthreads();
#pragma unroll 1
      for (int e = thread; e < threads_m * tile_n; e += threads) {
        const int i = e / tile_n + row * threads_m, j = e % tile_n;
        if (i < last_m && j < last_n) use(slabs[e / tile_n * (tile_n + 1) + j], i, j);
      }
      __syncthreads();
    }
  }
};

/// Threads on a multiprocessor, which leaves each enough registers.
inline constexpr int resident_threads = 256;

/// Blocks go from tile to tile of the list, then warps from output to output. Tiles are of warps_m × warps_n warps with
/// outputs_m × outputs_n outputs each.
template <class S, class Finish, int warps_m, int warps_n, int outputs_m, int outputs_n>
__global__ void __launch_bounds__(DirectTile<outputs_m, outputs_n>::threads,
                                  resident_threads / DirectTile<outputs_m, outputs_n>::threads)
    compute_rejected(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ Rejected rejected,
                     const __grid_constant__ DistanceRaster raster, bool in_vectors) {
  using Tile = DirectTile<outputs_m, outputs_n>;
  constexpr int warps_of_tile = warps_m * warps_n;
  __shared__ __attribute__((aligned(16))) float slabs[Tile::size];
  const unsigned few = rejected.counters[0], many = rejected.counters[1];
  if (few == 0 && many == 0) return;
  const auto origin = [&](unsigned number) {
    const int warp = static_cast<int>(number % warps_of_tile);
    tile::Origin o = raster.origin(number / warps_of_tile, warps_m * outputs_m, warps_n * outputs_n);
    o.m += warp / warps_n * outputs_m;
    o.n += warp % warps_n * outputs_n;
    return o;
  };
  const bool root = g.finish.template power<float>() == 0.5;
  const bool plain = (root || g.finish.template is_copy<float>()) && !g.accumulate;
  const auto store = [&](const tile::Origin& o, float value, int row, int column) {
    const std::int64_t i = o.m + row, j = o.n + column;
    if (raster.mirrored && j < i) return;
    const S s = g.semiring(o.batch);
#pragma unroll 1
    for (int both = 0; both <= (raster.mirrored && i != j); ++both) {
      const std::int64_t row_of_c = both ? j : i, column_of_c = both ? i : j;
      if (plain) {
        static_cast<float*>(g.c)[g.c_offset(o.batch, row_of_c, column_of_c)] =
            root ? __builtin_elementwise_sqrt(value) : value;
        continue;
      }
      const float sum = g.accumulate ? s.add(g.start(s, o.batch, row_of_c, column_of_c), value) : value;
      g.store(s, sum, o.batch, row_of_c, column_of_c);
    }
  };
#pragma unroll 1
  for (unsigned entry = blockIdx.x; entry < many; entry += gridDim.x) {
    const tile::Origin o = origin(rejected.many[entry]);
    const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - o.m, outputs_m));
    const int last_n = static_cast<int>(std::min<std::int64_t>(g.n - o.n, outputs_n));
    Tile::compute(g.a, g.b, o, last_m, last_n, g.k, in_vectors, slabs,
                  [&](float value, int row, int column) { store(o, value, row, column); });
  }

  constexpr unsigned warps = Tile::threads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint64_t last = std::uint64_t{few} * Rejected::most;
#pragma unroll 1
  for (std::uint64_t i = blockIdx.x * warps + threadIdx.x / 32; i < last; i += gridDim.x * warps) {
    const unsigned number = rejected.few[i / Rejected::most];
    const std::uint16_t* const places = rejected.places_of(number);
    const auto which = static_cast<unsigned>(i % Rejected::most);
    if (which >= places[0]) continue;
    const tile::Origin o = origin(number);
    const int row = places[1 + which] / outputs_n, column = places[1 + which] % outputs_n;
    const float* x = &g.a.at(o.batch, o.m + row, lane);
    const float* z = &g.b.at(o.batch, lane, o.n + column);
    float sum = 0;
#pragma unroll 8
    for (std::int64_t k = lane; k < g.k; k += 32, x += 32 * g.a.column, z += 32 * g.b.row)
      sum = l2_squared<float>::step(sum, *x, *z);
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) sum = math::add(sum, __shfl_xor_sync(~0u, sum, apart));
    if (lane == 0) store(o, sum, row, column);
  }
}

}  // namespace rigel::backends::mma

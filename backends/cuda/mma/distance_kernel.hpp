// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( |x_m|² + |z_n|² − 2 Σ_k x_m(k)·z_n(k) ) on tensor cores by mma.sync, x and z as distance_pass.hpp leaves
// them. Doubles are multiplied by kernel.hpp's main loop, for which this is a way into C; halves here, three products of them for
// each of floats: every 16 values of k are summed by themselves and added to those before in float, since tensor cores cut where they
// add. What cancels is noted and left to distance_again.hpp.
#pragma once

#include <backends/cuda/mma/distance_tiles.hpp>
#include <backends/cuda/mma/kernel.hpp>

namespace rigel::backends::mma {

/// Slabs whose sums a tile of two levels adds up before it adds them to those before.
inline constexpr int slabs_of_level = 16;

/// √x as IEEE 754 rounds it, of a distance that is kept: simt::rounded_root() without what small numbers need.
__device__ __forceinline__ float root_of_kept(float x) {
  const float r = __nvvm_rsqrt_approx_ftz_f(fmaxf(x, 0x1p-126f)), y = math::multiply(x, r);
  return math::fma(math::fma(-y, y, x), math::multiply(0.5f, r), y);
}
/// The same within .501 units of the last place: what the instruction gives, 20 bits, doubled twice (P. W. Markstein, Computation of
/// elementary functions on the IBM RISC System/6000 processor, 1990).
__device__ __forceinline__ double root_of_kept(double x) {
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x > 0 ? x : 1));
  double y = math::multiply(x, r), h = math::multiply(0.5, r);
  const double e = math::fma(-y, h, 0.5);
  y = math::fma(y, e, y), h = math::fma(h, e, h);
  return math::fma(math::fma(-y, y, x), h, y);
}

/// What a warp has in shared memory for its outputs' way into C: its lines' norms, and eight rows.
template <class Shape, class Line>
struct DistanceBuffer {
  static constexpr int lines = (Shape::outputs_m + Shape::outputs_n) * static_cast<int>(sizeof(Line));
  static constexpr int bytes = lines + StoreBuffer<Shape::outputs_n, decltype(Line::norm)>::bytes;
};
template <class Shape, class Line>
inline constexpr int distance_shared_bytes =
    Shape::stages * (Shape::m + Shape::n) * 128 + Shape::warps * DistanceBuffer<Shape, Line>::bytes;

/// The way into C.
template <class Line>
struct Distances {
  Guard<Line> guard;
  Rejected rejected;
  bool mirrored;

  template <class Shape>
  static constexpr int bytes = DistanceBuffer<Shape, Line>::bytes;

  /// Starts to copy what is known of a warp's lines, from (l, m) and (l, n) on, as far as they exist.
  template <class Shape>
  __device__ __forceinline__ void begin(std::int64_t l, std::int64_t m, std::int64_t n, std::int64_t last_m,
                                        std::int64_t last_n, unsigned char* shared, int lane) const {
    Line* const to = reinterpret_cast<Line*>(shared);
    const auto copy = [&](Line* place, const Line* from, int count, std::int64_t left) __attribute__((always_inline)) {
#pragma unroll
      for (int e = 0; e < count; e += 32)
        if (e + lane < left && (count - e >= 32 || lane < count - e))
          arch::copy_async<sizeof(Line)>(place + e + lane, from + e + lane);
    };
    copy(to, guard.x + l * guard.batch_x + m, Shape::outputs_m, last_m - m);
    copy(to + Shape::outputs_m, guard.z + l * guard.batch_z + n, Shape::outputs_n, last_n - n);
  }

  /// A warp's outputs; `number` is that of its tile.
  template <class Shape, class S, class Finish, int rows, int columns>
  __device__ __forceinline__ void store(const detail::Arguments<S, Finish>& g,
                                        const typename Guard<Line>::Sum (&sums)[rows][columns][4], std::int64_t l,
                                        std::int64_t m, std::int64_t n, unsigned number, unsigned char* shared,
                                        int lane) const;
};

template <class Line>
template <class Shape, class S, class Finish, int rows, int columns>
__device__ __forceinline__ void Distances<Line>::store(const detail::Arguments<S, Finish>& g,
                                                       const typename Guard<Line>::Sum (&sums)[rows][columns][4],
                                                       std::int64_t l, std::int64_t m, std::int64_t n, unsigned number,
                                                       unsigned char* shared, int lane) const {
  using Sum = typename Guard<Line>::Sum;
  using Value = typename S::accumulator;
  constexpr int outputs_m = Shape::outputs_m, outputs_n = Shape::outputs_n, pieces = outputs_m / 8;
  constexpr int pitch = StoreBuffer<outputs_n, Sum>::pitch;

  const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - m, outputs_m));
  const int last_n = static_cast<int>(std::min<std::int64_t>(g.n - n, outputs_n));
  // How far the first column lies behind the diagonal, or further than any tile: what lies before it is not computed.
  const int behind =
      mirrored ? static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(n - m, -outputs_n), outputs_m)) : outputs_m;
  if (last_m <= 0 || last_n <= 0 || behind == -outputs_n) return;
  const Line *const lines_x = reinterpret_cast<const Line*>(shared), *const lines_z = lines_x + outputs_m;
  Sum* const buffer = reinterpret_cast<Sum*>(shared + DistanceBuffer<Shape, Line>::lines);
  const S s = g.semiring(l);
  const bool along_n = g.c_strides.column <= g.c_strides.row;

  // Eight rows of outputs to shared memory.
  const auto to_buffer = [&](int piece) __attribute__((always_inline)) {
    __syncwarp();
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (p != piece) continue;
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        struct alignas(2 * sizeof(Sum)) Two {
          Sum first, second;
        };
        *reinterpret_cast<Two*>(buffer + lane / 4 * pitch + 8 * j + lane % 4 * 2) = {sums[p / 2][j][p % 2 * 2],
                                                                                     sums[p / 2][j][p % 2 * 2 + 1]};
      }
    }
    __syncwarp();
  };
  // An output of the buffer; on the diagonal of a matrix against itself, 0 where the line is finite.
  const auto distance = [&](int row, int column, int piece) __attribute__((always_inline)) {
    const Line of_x = lines_x[8 * piece + row];
    typename Guard<Line>::Distance d = guard(buffer[row * pitch + column], of_x, lines_z[column]);
    if (8 * piece + row == behind + column && of_x.norm <= std::numeric_limits<Sum>::max()) d = {0, true};
    return d;
  };
  const auto exists = [&](int row, int column, int piece) {
    return 8 * piece + row < last_m && column < last_n && 8 * piece + row <= behind + column;
  };

  // A row's outputs in vectors: C of the accumulator's type by rows, aligned, not added to, without an epilogue or with the root
  // alone, off the diagonal.
  constexpr int width = 16 / static_cast<int>(sizeof(Value));
  constexpr int in_piece = 16 / static_cast<int>(sizeof(Sum));
  using Vector = tile::Chunk<Value, width>;
  using Piece = tile::Chunk<Sum, in_piece>;
  Value* const c = static_cast<Value*>(g.c) + g.c_offset(l, m, n);
  const bool root = g.finish.template power<Value>() == 0.5;
  const bool in_vectors = (root || g.finish.template is_copy<Value>()) && g.c_strides.column == 1 && last_n % width == 0 &&
                          g.c_strides.row % width == 0 && reinterpret_cast<std::uintptr_t>(c) % 16 == 0 &&
                          behind == outputs_m && !g.accumulate;
  const auto store = [&]() __attribute__((always_inline)) {
    bool kept = true;
    if (in_vectors) {
      constexpr int in_row = outputs_n / width, rows_at_once = 32 / in_row;
      const int column = lane % in_row * width, row_of_lane = lane / in_row % rows_at_once;
      const bool present = column < last_n && lane < rows_at_once * in_row;
      Line of_z[width];
#pragma unroll
      for (int v = 0; v < width; ++v) of_z[v] = lines_z[column + v];
#pragma unroll 1
      for (int piece = 0; piece < pieces; ++piece) {
        to_buffer(piece);
        // Two vectors of each lane at a time, since each takes long by itself.
#pragma unroll 1
        for (int first = row_of_lane; first < 8; first += 2 * rows_at_once) {
          Sum* const from = buffer + first * pitch + column;
          Vector values[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const int row = 8 * piece + first + r * rows_at_once;
            const Line of_x = lines_x[row];
            Piece in_buffer[width / in_piece];
#pragma unroll
            for (int v = 0; v < width; v += in_piece)
              in_buffer[v / in_piece] = Piece::load(from + r * rows_at_once * pitch + v);
            bool all_kept = true;
#pragma unroll
            for (int v = 0; v < width; ++v) {
              const typename Guard<Line>::Distance d = guard(in_buffer[v / in_piece].value[v % in_piece], of_x, of_z[v]);
              all_kept = all_kept && d.kept;
              const Value value = static_cast<Value>(d.value);
              values[r].value[v] = root ? root_of_kept(value) : value;
            }
            kept = kept && (all_kept || !present || row >= last_m);
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const int row = 8 * piece + first + r * rows_at_once;
            if (present && row < last_m) values[r].store(c + row * g.c_strides.row + column);
            if (!mirrored) continue;
            // Each takes the place of its sum.
            Sum* const to = from + r * rows_at_once * pitch;
            if constexpr (std::is_same_v<Value, Sum>) {
              values[r].store(to);
            } else {
#pragma unroll
              for (int v = 0; v < width; ++v) *reinterpret_cast<Value*>(to + v) = values[r].value[v];
            }
          }
        }
        if (!mirrored) continue;
        __syncwarp();
        // The same as columns, by whole sectors: M = N is a multiple of `width` as well.
        Value* const mirror = static_cast<Value*>(g.c) + g.c_offset(l, n, m + 8 * piece);
#pragma unroll 1
        for (int e = lane; e < 8 / width * outputs_n; e += 32) {
          const int row = e % (8 / width) * width, mirrored_row = e / (8 / width);
          Vector of_column;
#pragma unroll
          for (int v = 0; v < width; ++v)
            of_column.value[v] = *reinterpret_cast<const Value*>(buffer + (row + v) * pitch + mirrored_row);
          if (8 * piece + row < last_m && mirrored_row < last_n)
            of_column.store(mirror + mirrored_row * g.c_strides.row + row);
        }
      }
    } else {
#pragma unroll 1
      for (int piece = 0; piece < pieces; ++piece) {
        to_buffer(piece);
#pragma unroll 1
        for (int e = lane; e < 8 * outputs_n; e += 32) {
          const int row = along_n ? e / outputs_n : e % 8, column = along_n ? e % outputs_n : e / 8;
          if (!exists(row, column, piece)) continue;
          const std::int64_t i = m + 8 * piece + row, j = n + column;
          const typename Guard<Line>::Distance d = distance(row, column, piece);
          kept = kept && d.kept;
          if (g.accumulate && !d.kept) continue;
#pragma unroll 1
          for (int both = 0; both <= (mirrored && i != j); ++both) {
            const std::int64_t row_of_c = both ? j : i, column_of_c = both ? i : j;
            const auto distance = static_cast<Value>(d.value);
            const Value value = g.accumulate ? s.add(g.start(s, l, row_of_c, column_of_c), distance) : distance;
            g.store(s, value, l, row_of_c, column_of_c);
          }
        }
      }
    }
    return __all_sync(~0u, kept) != 0;
  };
  // Notes what is not kept; whether that is little.
  const auto note = [&]() __attribute__((always_inline)) {
    std::uint16_t* const places = rejected.places_of(number) + 1;
    int count = 0;
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      to_buffer(piece);
#pragma unroll 1
      for (int e = lane; e < 8 * outputs_n; e += 32) {
        const int row = e / outputs_n, column = e % outputs_n;
        const bool out = exists(row, column, piece) && !distance(row, column, piece).kept;
        const unsigned all_out = __ballot_sync(~0u, out);
        const int place = count + __popc(all_out & ((1u << lane) - 1));
        if (out && place < Rejected::most) places[place] = static_cast<std::uint16_t>(8 * outputs_n * piece + e);
        count += __popc(all_out);
      }
    }
    const bool few = count <= Rejected::most;
    if (lane == 0 && few && count > 0) {
      places[-1] = static_cast<std::uint16_t>(count);
      rejected.few[atomicAdd(rejected.counters, 1u)] = number;
    }
    if (lane == 0 && !few) rejected.many[atomicAdd(rejected.counters + 1, 1u)] = number;
    return few;
  };
  // What C held is needed still where outputs are not kept: they are then found before any is stored.
#pragma unroll 1
  for (int turn = g.accumulate ? 0 : 1;; ++turn) {
    if (turn == 1) {
      if (store() || g.accumulate) return;
    } else if (!note() || turn > 1) {
      return;
    }
  }
}

/// `levels`: 1, or 2 where the sums of slabs_of_level slabs are added up by themselves first.
template <class S, int levels, class Finish, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    distances(const __grid_constant__ Operands<half> operands, const __grid_constant__ detail::Arguments<S, Finish> g,
              const __grid_constant__ Distances<ScaledLine> result, const __grid_constant__ DistanceRaster raster,
              unsigned tiles) {
  using Mma = arch::Mma<half>;
  using tile::Direction;
  using SlabA = tile::MatrixSlab<half, Direction::along_k, Shape::m, Shape::threads>;
  using SlabB = tile::MatrixSlab<half, Direction::along_k, Shape::n, Shape::threads>;
  constexpr int stages = Shape::stages, stage_bytes = SlabA::bytes + SlabB::bytes;
  constexpr int steps = SlabA::steps / 2;  // the upper parts of all, then the lower ones
  constexpr int rows = Shape::outputs_m / 16, columns = Shape::outputs_n / 8;
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  const auto slabs = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / Shape::warps_n * Shape::outputs_m, warp_n = warp % Shape::warps_n * Shape::outputs_n;
  const typename SlabA::template Reader<SlabA::Order::rows> reader_a(warp_m, lane);
  const typename SlabB::template Reader<SlabB::Order::columns> reader_b(warp_n, lane);

  // The copies run ahead of the products, from one tile into the next.
  const auto origin = [&](unsigned index) { return raster.origin(index, Shape::m, Shape::n); };
  const auto source_a = [&](tile::Origin o) {
    const auto& from = operands.a;
    return typename SlabA::Source(from.data + o.batch * from.batch + o.m * from.stride, from.stride, g.m - o.m);
  };
  const auto source_b = [&](tile::Origin o) {
    const auto& from = operands.b;
    return typename SlabB::Source(from.data + o.batch * from.batch + o.n * from.stride, from.stride, g.n - o.n);
  };
  const auto stride = static_cast<std::uint32_t>(operands.a.stride);
  unsigned copied = blockIdx.x;
  int k_left = operands.k;  // of the tile that is being copied; 0 behind the last
  const tile::Origin first = origin(copied);
  typename SlabA::Source a = source_a(first);
  typename SlabB::Source b = source_b(first);
  // One of `parts` parts of a slab's copies.
  const auto start_copies = [&](int stage, int part, int parts) __attribute__((always_inline)) {
    const std::uint32_t to = slabs + stage * stage_bytes;
    constexpr int all = SlabA::copies + SlabB::copies;
#pragma unroll
    for (int e = all * part / parts; e < all * (part + 1) / parts; ++e)
      if (e < SlabA::copies)
        a.copy(e, to, stride, k_left);
      else
        b.copy(e - SlabA::copies, to + SlabA::bytes, stride, k_left);
    if (part == parts - 1) arch::commit_copies();
  };
  const auto advance = [&]() __attribute__((always_inline)) {
    k_left -= SlabA::depth;
    if (k_left <= 0) {
      k_left = 0;
      copied += gridDim.x;
      if (copied < tiles) {
        const tile::Origin next = origin(copied);
        a = source_a(next);
        b = source_b(next);
        k_left = operands.k;
      }
    }
  };
  // The slab that is multiplied next is there, and nobody reads the one before.
  const auto wait_for_slab = []() __attribute__((always_inline)) {
    arch::wait_for_copies<stages - 2>();
    __syncthreads();
  };

  int stage = 0;
  if (operands.k > 0) {
#pragma unroll 1
    for (int s = 0; s < stages - 1; ++s) {
      start_copies(s, 0, 1);
      advance();
    }
  }
#pragma unroll 1
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    // A warp's place in the tile, its lane and its part of shared memory; found anew each time, so that they take no registers while
    // products are summed.
    const auto with_warp = [&](const auto& use) __attribute__((always_inline)) {
      int thread = static_cast<int>(threadIdx.x);
      asm volatile("" : "+r"(thread));
      const int number = thread / 32;
      tile::Origin o = origin(index);
      o.m += number / Shape::warps_n * Shape::outputs_m;
      o.n += number % Shape::warps_n * Shape::outputs_n;
      use(o, number, shared + stages * stage_bytes + number * DistanceBuffer<Shape, ScaledLine>::bytes, thread % 32);
    };
    __syncwarp();
    with_warp([&](tile::Origin o, int, unsigned char* buffer, int l)
                  __attribute__((always_inline)) { result.template begin<Shape>(o.batch, o.m, o.n, g.m, g.n, buffer, l); });
    float sums[rows][columns][4] = {};
    float of_level[rows][columns][4] = {};
#pragma unroll 1
    for (int k0 = 0; k0 < operands.k; k0 += SlabA::depth) {
      wait_for_slab();
      const std::uint32_t from = slabs + stage * stage_bytes;
      const int free = stage == 0 ? stages - 1 : stage - 1;
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        std::uint32_t upper_a[rows][4], lower_a[rows][4];
#pragma unroll
        for (int i = 0; i < rows; ++i) {
          reader_a.read(from, 16 * i, step, upper_a[i]);
          reader_a.read(from, 16 * i, steps + step, lower_a[i]);
        }
        std::uint32_t upper_b[2][4], lower_b[2][4];  // of two columns, and of the next two
        const auto read_b = [&](int j) __attribute__((always_inline)) {
          reader_b.read(from + SlabA::bytes, 8 * j, step, upper_b[j / 2 % 2]);
          reader_b.read(from + SlabA::bytes, 8 * j, steps + step, lower_b[j / 2 % 2]);
        };
        read_b(0);
        if (step == 0) start_copies(free, 0, 1);
#pragma unroll
        for (int j = 0; j < columns; j += 2) {
          if (j + 2 < columns) read_b(j + 2);
          float x[rows][2][4] = {};
          const auto add = [&](const std::uint32_t (&of_a)[rows][4], const std::uint32_t (&of_b)[4])
                               __attribute__((always_inline)) {
#pragma unroll
                                 for (int i = 0; i < rows; ++i)
#pragma unroll
                                   for (int c = 0; c < 2; ++c) Mma::add(x[i][c], of_a[i], of_b[2 * c], of_b[2 * c + 1]);
                               };
          add(lower_a, upper_b[j / 2 % 2]);
          add(upper_a, lower_b[j / 2 % 2]);
          add(upper_a, upper_b[j / 2 % 2]);
#pragma unroll
          for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int c = 0; c < 2; ++c)
#pragma unroll
              for (int r = 0; r < 4; ++r) {
                float& to = levels > 1 ? of_level[i][j + c][r] : sums[i][j + c][r];
                to = math::add(to, x[i][c][r]);
                asm volatile("" : "+f"(to));  // added here, not behind advance()'s branches, where all of x would live
              }
        }
      }
      advance();
      stage = stage + 1 == stages ? 0 : stage + 1;
      if constexpr (levels > 1)
        if (const int next = k0 + SlabA::depth; next % (slabs_of_level * SlabA::depth) == 0 || next == operands.k)
#pragma unroll
          for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int j = 0; j < columns; ++j)
#pragma unroll
              for (int r = 0; r < 4; ++r) {
                sums[i][j][r] = math::add(sums[i][j][r], of_level[i][j][r]);
                of_level[i][j][r] = 0;
              }
    }
    // With the copies that follow them the lines' own have ended too, unless the tile is so short.
    if (operands.k < stages * SlabA::depth) {
      arch::commit_copies();
      arch::wait_for_copies<0>();
    }
    __syncwarp();
    with_warp([&](tile::Origin o, int number, unsigned char* buffer, int l) __attribute__((always_inline)) {
      result.template store<Shape>(g, sums, o.batch, o.m, o.n, index * Shape::warps + number, buffer, l);
    });
  }
  arch::wait_for_copies<0>();
}

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( |x_m|² + |z_n|² − 2 Σ_k x_m(k)·z_n(k) ) on tensor cores: the epilogue and the store, from sums of
// products of x and z as distance_pass.hpp prepares them. Outputs that cancel are listed and left to distance_again.hpp.
#pragma once

#include <rigel/backends/cuda/mma/distance_tiles.hpp>
#include <rigel/backends/cuda/mma/kernel.hpp>

namespace rigel::backends::mma {

/// √x of a kept distance, rounded as IEEE 754 requires: simt::rounded_root() without what small numbers need.
__device__ __forceinline__ float root_of_kept(float x) {
  const float r = __nvvm_rsqrt_approx_ftz_f(fmaxf(x, 0x1p-126f)), y = math::multiply(x, r);
  return math::fma(math::fma(-y, y, x), math::multiply(0.5f, r), y);
}
/// The same for a normal double, within .501 ulp: the instruction's 20 bits, doubled twice (P. W. Markstein, Computation of
/// elementary functions on the IBM RISC System/6000 processor, 1990). `normal` is the number whose reciprocal root is taken.
__device__ __forceinline__ double root_of_normal(double x, double normal) {
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(normal));
  double y = math::multiply(x, r), h = math::multiply(0.5, r);
  const double e = math::fma(-y, h, 0.5);
  y = math::fma(y, e, y), h = math::fma(h, e, h);
  return math::fma(math::fma(-y, y, x), h, y);
}
__device__ __forceinline__ double root_of_normal(double x) { return root_of_normal(x, x); }
__device__ __forceinline__ float root_of_normal(float x) { return root_of_kept(x); }
/// The same for double, also if x is small or 0.
__device__ __forceinline__ double root_of_kept(double x) { return root_of_normal(x, x > 0x1p-1000 ? x : 0x1p-1000); }

/// The upper 32 bits of a number, and the largest number that has them. For non-negative numbers they are in the same order
/// as the numbers, with NaN after infinity.
__device__ __forceinline__ unsigned upper_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned upper_of(double x) { return static_cast<unsigned>(__double2hiint(x)); }
template <class T>
__device__ __forceinline__ T largest_of(unsigned upper) {
  if constexpr (sizeof(T) == 4)
    return __uint_as_float(upper);
  else
    return __hiloint2double(static_cast<int>(upper), -1);
}

/// A warp's shared memory for its store: the norms of its rows and columns, and eight rows of outputs.
template <class Shape, class Line>
struct DistanceBuffer {
  static constexpr int lines = (Shape::outputs_m + Shape::outputs_n) * static_cast<int>(sizeof(Line));
  using Sum = decltype(Line::norm);
  // Rows of eight columns use all banks; so do, for float, columns of eight rows, as mirrored tiles are read.
  static constexpr int pitch = Shape::outputs_n + (sizeof(Sum) == 8 ? 8 : 12);
  static constexpr int bytes = lines + 8 * pitch * static_cast<int>(sizeof(Sum));
};
template <class Shape, class Line>
inline constexpr int distance_shared_bytes =
    Shape::stages * (Shape::m + Shape::n) * 128 + Shape::warps * DistanceBuffer<Shape, Line>::bytes;

/// The epilogue and the store of distances.
template <class Line>
struct Distances {
  Guard<Line> guard;
  Rejected rejected;
  bool mirrored;

  template <class Shape>
  static constexpr int bytes = DistanceBuffer<Shape, Line>::bytes;

  /// Starts to copy the norms of a warp's rows and columns, from (l, m) and (l, n) on, as far as they exist.
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

  /// Stores a warp's outputs; `number` is that of its tile.
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
  constexpr int pitch = DistanceBuffer<Shape, Line>::pitch;

  const int last_m = static_cast<int>(std::min<std::int64_t>(g.m - m, outputs_m));
  const int last_n = static_cast<int>(std::min<std::int64_t>(g.n - n, outputs_n));
  // How far the first column is right of the diagonal; outputs left of the diagonal are not computed. Without mirroring,
  // further than any tile reaches.
  const int behind =
      mirrored ? static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(n - m, -outputs_n), outputs_m)) : outputs_m;
  const bool empty = last_m <= 0 || last_n <= 0 || behind == -outputs_n;
  const Line *const lines_x = reinterpret_cast<const Line*>(shared), *const lines_z = lines_x + outputs_m;
  Sum* const buffer = reinterpret_cast<Sum*>(shared + DistanceBuffer<Shape, Line>::lines);
  const S s = g.semiring(l);
  const bool along_n = g.c_strides.column <= g.c_strides.row;

  // Writes eight rows of outputs to shared memory.
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
  // An output of the buffer. On the diagonal of a matrix against itself it is 0 if the row is finite.
  const auto distance = [&](int row, int column, int piece) __attribute__((always_inline)) {
    const Line of_x = lines_x[8 * piece + row];
    typename Guard<Line>::Distance d = guard(buffer[row * pitch + column], of_x, lines_z[column]);
    if (8 * piece + row == behind + column && of_x.norm <= std::numeric_limits<Sum>::max()) d = {0, true};
    return d;
  };
  const auto exists = [&](int row, int column, int piece) {
    return 8 * piece + row < last_m && column < last_n && 8 * piece + row <= behind + column;
  };

  // Rows are stored in vectors if C has the accumulator's type, is row-major, aligned and not accumulated into, if the
  // epilogue is empty, a square root or (of floats) short steps, and off the diagonal.
  constexpr int width = 16 / static_cast<int>(sizeof(Value));
  using Vector = tile::Chunk<Value, width>;
  Value* const c = static_cast<Value*>(g.c) + g.c_offset(l, m, n);
  const bool root = g.finish.template power<Value>() == 0.5;
  const bool plain = (root || g.finish.template is_copy<Value>()) && !g.accumulate;
  // Steps in registers, after a root if that is the first one. What they make of an output holds for its mirror image, too.
  const bool steps = std::is_same_v<Sum, float> && !plain && g.finish.template runs_short<Value>() && !g.accumulate &&
                     !(mirrored && g.finish.reads_place);
  const bool begins_with_root = root || (steps && g.finish.program.begins_with_root());
  const bool in_vectors = (plain || steps) && g.c_strides.column == 1 && last_n % width == 0 &&
                          g.c_strides.row % width == 0 && reinterpret_cast<std::uintptr_t>(c) % 16 == 0 &&
                          behind == outputs_m;
  // Stores in vectors. Returns whether one test shows that all outputs are kept; otherwise they are tested one by one.
  const auto store_vectors = [&]() __attribute__((always_inline)) {
    if constexpr (std::is_same_v<Sum, double>) {
      // Doubles: sums are stored straight from registers, four lanes to two sectors of a row, or eight lanes to those of a
      // column. The test takes the smallest distance and the largest norms of a lane, by their upper words alone.
      const int row = lane / 4, column = lane % 4 * 2, left_m = last_m - row, left_n = last_n - column;
      using Two = tile::Chunk<Value, 2>;
      constexpr double smallest = 0x1p-900;  // the smallest that root_of_normal() takes
      int lowest = std::numeric_limits<int>::max();
      unsigned most_x = 0, most_z = 0;
      std::int64_t stride = g.c_strides.row;
      asm volatile("" : "+l"(stride));  // its multiples, computed before the loop below, would take too many registers
      constexpr int together = 4;       // rows of a lane at a time, as registers allow
      static_assert(pieces % together == 0);
#pragma unroll
      for (int first = 0; first < pieces; first += together) {
        Line of_x[together];
        Value* const to = c + (8 * first + row) * stride + column;
        Value* mirror = static_cast<Value*>(g.c) + g.c_offset(l, n + column, m + 8 * first + row);
#pragma unroll
        for (int r = 0; r < together; ++r) {
          of_x[r] = lines_x[8 * (first + r) + row];
          if (8 * (first + r) < left_m) most_x = max(most_x, upper_of(of_x[r].norm));
        }
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          const Line of_z[2] = {lines_z[8 * j + column], lines_z[8 * j + column + 1]};
          Two values[together];
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            if (8 * j < left_n) most_z = max(most_z, upper_of(of_z[v].norm));
#pragma unroll
            for (int r = 0; r < together; ++r) {
              const int piece = first + r;
              const Sum value = distance_of(sums[piece / 2][j][piece % 2 * 2 + v], of_x[r], of_z[v],
                                            math::add(of_x[r].norm, of_z[v].norm));
              if (8 * piece < left_m && 8 * j < left_n) lowest = min(lowest, static_cast<int>(upper_of(value)));
              values[r].value[v] = static_cast<Value>(value);
            }
          }
          asm volatile("" : "+r"(lowest), "+r"(most_z));  // computed here: after all columns, all values would be live
          if (root)
#pragma unroll
            for (int r = 0; r < together; ++r)
#pragma unroll
              for (int v = 0; v < 2; ++v) values[r].value[v] = root_of_normal(values[r].value[v]);
#pragma unroll
          for (int r = 0; r < together; ++r)
            if (8 * (first + r) < left_m && 8 * j < left_n) values[r].store(to + 8 * r * stride + 8 * j);
          if (mirrored) {
#pragma unroll
            for (int v = 0; v < 2; ++v)
#pragma unroll
              for (int r = 0; r < together; ++r)
                if (8 * (first + r) < left_m && 8 * j < left_n) mirror[v * stride + 8 * r] = values[r].value[v];
            mirror += 8 * stride;
          }
        }
      }
      const Sum norms = math::add(largest_of<Sum>(most_x), largest_of<Sum>(most_z));
      const Sum least = larger(math::fma(guard.threshold, norms, guard.least), smallest);
      return 4 * norms <= guard.most && lowest > static_cast<int>(upper_of(least));
    } else {
      // Floats go through shared memory, several vectors of each lane at a time to hide latency. The test takes the smallest
      // excess over the threshold, which must be more than its rounding, and the largest norms.
      constexpr int in_row = outputs_n / width, of_lane = 8 * in_row / 32, vectors = 2;
      static_assert(32 % in_row == 0 && of_lane % vectors == 0);
      constexpr Sum rounding = 0x1p-20;
      const int column = lane % in_row * width;
      Sum lowest = std::numeric_limits<Sum>::infinity();
      unsigned most_x = 0, most_z = 0;
      Line of_z[width];
#pragma unroll
      for (int v = 0; v < width; ++v) {
        of_z[v] = lines_z[column + v];
        if (column < last_n) most_z = max(most_z, upper_of(of_z[v].norm));
      }
#pragma unroll 1
      for (int piece = 0; piece < pieces; ++piece) {
        to_buffer(piece);
#pragma unroll 1
        for (int first = 0; first < of_lane; first += vectors) {
          Vector values[vectors];
#pragma unroll
          for (int r = 0; r < vectors; ++r) {
            const int row = lane / in_row + (first + r) * (32 / in_row);
            const Line of_x = lines_x[8 * piece + row];
            const auto in_buffer = tile::Chunk<Sum, width>::load(buffer + row * pitch + column);
            Sum above[width];
#pragma unroll
            for (int v = 0; v < width; ++v) {
              const Sum norms = math::add(of_x.norm, of_z[v].norm);
              const Sum value = larger(distance_of(in_buffer.value[v], of_x, of_z[v], norms), guard.floor);
              above[v] = math::fma(guard.threshold, -norms, value);
              values[r].value[v] = begins_with_root ? root_of_kept(value) : value;
            }
            if (column < last_n && 8 * piece + row < last_m) {
              most_x = max(most_x, upper_of(of_x.norm));
#pragma unroll
              for (int v = 0; v < width; ++v) lowest = fminf(lowest, above[v]);
            }
          }
          if (const int row = 8 * piece + lane / in_row + first * (32 / in_row); steps && column < last_n && row < last_m) {
            Value results[vectors][width];
#pragma unroll
            for (int r = 0; r < vectors; ++r)
#pragma unroll
              for (int v = 0; v < width; ++v) results[r][v] = values[r].value[v];
            const int apart = row + 32 / in_row < last_m ? 32 / in_row : 0;  // a row beyond the last one repeats the first
            g.finish.run_short(results, begins_with_root, l, m + row, n + column, apart, 0);
#pragma unroll
            for (int r = 0; r < vectors; ++r)
#pragma unroll
              for (int v = 0; v < width; ++v) values[r].value[v] = results[r][v];
          }
#pragma unroll
          for (int r = 0; r < vectors; ++r) {
            const int row = lane / in_row + (first + r) * (32 / in_row);
            if (column < last_n && 8 * piece + row < last_m)
              values[r].store(c + (8 * piece + row) * g.c_strides.row + column);
            if (mirrored) values[r].store(buffer + row * pitch + column);  // in place of their sums
          }
        }
        if (!mirrored) continue;
        __syncwarp();
        // The mirrored outputs, by whole sectors. All rows of a tile that is mirrored exist.
        Value* const mirror = static_cast<Value*>(g.c) + g.c_offset(l, n, m + 8 * piece);
#pragma unroll 1
        for (int e = lane; e < 8 / width * outputs_n; e += 32) {
          const int row = e % (8 / width) * width, mirrored_row = e / (8 / width);
          Vector of_column;
#pragma unroll
          for (int v = 0; v < width; ++v) of_column.value[v] = buffer[(row + v) * pitch + mirrored_row];
          if (8 * piece + row < last_m && mirrored_row < last_n)
            of_column.store(mirror + mirrored_row * g.c_strides.row + row);
        }
      }
      const Sum norms = math::add(largest_of<Sum>(most_x), largest_of<Sum>(most_z));
      return 4 * norms <= guard.most &&
             math::subtract(lowest, guard.least) > math::fma(guard.threshold, rounding * norms, guard.least);
    }
  };
  const auto store = [&]() __attribute__((always_inline)) {
    bool kept = true;
    const bool vectors = std::is_same_v<Sum, float> && in_vectors;
    if constexpr (std::is_same_v<Sum, float>)
      if (vectors) kept = store_vectors();
#pragma unroll 1
    for (int piece = 0; piece < pieces && !vectors; ++piece) {
      to_buffer(piece);
#pragma unroll 1
      for (int e = lane; e < 8 * outputs_n; e += 32) {
        const int row = along_n ? e / outputs_n : e % 8, column = along_n ? e % outputs_n : e / 8;
        if (!exists(row, column, piece)) continue;
        const std::int64_t i = m + 8 * piece + row, j = n + column;
        const typename Guard<Line>::Distance d = distance(row, column, piece);
        kept = kept && d.kept;
        if (plain) {
          const auto sum = static_cast<Value>(d.value), value = root ? root_of_kept(sum) : sum;
          static_cast<Value*>(g.c)[g.c_offset(l, i, j)] = value;
          if (mirrored) static_cast<Value*>(g.c)[g.c_offset(l, j, i)] = value;
          continue;
        }
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
    return __all_sync(~0u, kept) != 0;
  };
  // Lists rejected outputs; returns whether they are few.
  const auto note = [&]() __attribute__((always_inline)) {
    std::uint16_t* const places = rejected.places_of(number) + 1;
    int count = 0;
#pragma unroll 1
    for (int piece = 0; piece < pieces && count <= Rejected::most; ++piece) {
      to_buffer(piece);
#pragma unroll 1
      for (int first = 0; first < 8 * outputs_n && count <= Rejected::most; first += 32) {
        const int e = first + lane, row = e / outputs_n, column = e % outputs_n;
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
    if (lane == 0 && !few) rejected.note_many(number, Shape::warps);
    return few;
  };
  // Outputs are tested before any is stored if C is accumulated into, because recomputing rejected ones needs C's old
  // values. They also are if most of the first ones are rejected, since then probably none has to be stored; kernels of
  // doubles have no registers left for that. Branches around what a warp does together are votes, so that ptxas knows that
  // its lanes stay together; otherwise it would move nothing past the products.
  constexpr bool asks = std::is_same_v<Sum, float>;
  const int row = lane / 4, column = lane % 4 * 2;  // of the lane's first sum
  const bool rejected_one = asks && exists(row, column, 0) && !guard(sums[0][0][0], lines_x[row], lines_z[column]).kept;
  const bool noted_first = g.accumulate || (asks && __popc(__ballot_sync(~0u, rejected_one)) > 16);
  enum { nothing, storing, noting };
  int next = empty ? nothing : noted_first ? noting : storing;
  if constexpr (std::is_same_v<Sum, double>)
    if (__any_sync(~0u, next == storing && in_vectors)) {
      if (__all_sync(~0u, store_vectors()))
        next = nothing;
      else if (guard.least > 0)
        next = noting;
    }
#pragma unroll 1
  while (__any_sync(~0u, next != nothing)) {
    if (__any_sync(~0u, next == storing))
      next = store() || noted_first ? nothing : noting;
    else
      next = note() && noted_first ? storing : nothing;
  }
}

}  // namespace rigel::backends::mma

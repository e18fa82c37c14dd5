// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The short store from wgmma's accumulators to C, for sums that become elements of C as they are or after a Layer, or are added to
// elements of their own type. Neighbouring lanes exchange pairs of columns, so that each has four neighbours of a row, and store
// them. Everything else uses tensor::store_tile().
#pragma once

#include <rigel/backends/cuda/arch/convert.hpp>
#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/arch/load.hpp>
#include <rigel/backends/cuda/tensor/store.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>

#include <algorithm>

namespace rigel::backends::hopper {

/// Tiles of so many slabs, 2048 16-bit numbers along K, ask for what their stores read. With more, dW of 4096³ took 3 % longer.
inline constexpr int most_slabs_to_prefetch = 32;

/// Asks for what the store of a warp's outputs will read, before their products: numbers of a row-major C, if the sums are added to them,
/// and a Layer's matrix. The store, a few groups of outputs at a time, then waits for the L2 cache and not for memory. `origin` gives the
/// first output; x[i][j] will be those of rows 64·i and columns 8·j on. Only of 16-bit numbers: in kernels of floats the mere code cost
/// up to 8 %. `slabs`: of the tile.
template <int rows, int columns, class S, class Finish, class Origin>
__device__ __forceinline__ void prefetch_for_store(const detail::Arguments<S, Finish>& g, int slabs, const Origin& origin,
                                                   int lane) {
  if constexpr (ShortFloat<typename S::element>) {
    if (slabs > most_slabs_to_prefetch) return;
    const auto ask = [&]<class Value>(const Value* data, std::int64_t batch_stride, std::int64_t row_stride) {
      constexpr int in_row =
          8 * columns * static_cast<int>(sizeof(Value)) / arch::line_bytes + 1;  // one more if it is not aligned
      const tile::Origin o = origin();
      const auto bytes = std::min<std::int64_t>(g.n - o.n, 8 * columns) * static_cast<std::int64_t>(sizeof(Value));
      if (bytes <= 0) return;
#pragma unroll 1
      for (int i = lane; i < 16 * rows * in_row; i += 32) {
        const int row = i / in_row / 16 * 64 + i / in_row % 16;
        const auto first = reinterpret_cast<std::uintptr_t>(data + o.batch * batch_stride + (o.m + row) * row_stride + o.n);
        const std::uintptr_t line = first / arch::line_bytes * arch::line_bytes + i % in_row * arch::line_bytes;
        if (o.m + row < g.m && static_cast<std::int64_t>(line - first) < bytes)
          arch::prefetch_line(reinterpret_cast<const void*>(line));
      }
    };
    const auto ask_for_c = [&]<class Value>() {
      if (g.finish.template is_copy<Value>()) ask(static_cast<const Value*>(g.c), g.c_strides.batch, g.c_strides.row);
    };
    if (g.accumulate && g.c_strides.column == 1) {
      ask_for_c.template operator()<typename S::element>();
      if constexpr (!std::is_same_v<typename S::element, typename S::accumulator>)
        ask_for_c.template operator()<typename S::accumulator>();
    }
    if constexpr (std::is_same_v<Finish, detail::ProgramFinish>)
      if (g.finish.is_layer && g.finish.layer.has_matrix()) {
        const epilogue::Source& matrix = g.finish.layer.matrix;
        if (matrix.type == Scalar::f32)
          ask(static_cast<const float*>(matrix.data), matrix.batch_stride, matrix.row_stride);
        else
          ask(static_cast<const half*>(matrix.data), matrix.batch_stride, matrix.row_stride);
      }
  }
}

/// Two sums as neighbours in C.
template <class Value, class Sum>
__device__ __forceinline__ auto two_of(Sum first, Sum second) {
  if constexpr (ShortFloat<Value>) {
    return arch::two_of<Value>(first, second);
  } else {
    struct Two {
      Value first, second;
    };
    return __builtin_bit_cast(std::uint64_t, Two{detail::convert<Value>(first), detail::convert<Value>(second)});
  }
}

/// Stores a lane's outputs of row 8·half + lane/4 of x whose columns are below `left`; the first goes to `to`. After the
/// exchange an even lane has four columns of each 8-column block with even j, its neighbour four of each block with odd j.
/// `accumulates`: they are added to what C holds, which has the type of sums, and of which so many groups of four are loaded at a time:
/// one after the other, each would wait for memory. 0: they are not.
template <class Value, int accumulates, class Sum, int columns>
__device__ __forceinline__ void store_row(Value* to, const Sum (&x)[columns][4], int half, int left, bool odd) {
  using Word = decltype(two_of<Value>(Sum{}, Sum{}));
  struct alignas(2 * sizeof(Word)) Four {
    Word low, high;
  };
  using Values = tile::Chunk<Value, 4>;
  constexpr int together = std::max(accumulates, 1);
  static_assert(columns / 2 % together == 0);
#pragma unroll
  for (int part = 0; part < columns; part += 2 * together) {
    [[maybe_unused]] const auto load = [&](int j) { return Values::load(to + 8 * j); };
    [[maybe_unused]] Values before[together];
    if constexpr (together > 1)
#pragma unroll
      for (int i = 0; i < together; ++i)
        if (8 * (part + 2 * i) < left) before[i] = load(part + 2 * i);
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const int j = part + 2 * i;
      const Word first = two_of<Value>(x[j][2 * half], x[j][2 * half + 1]);
      const Word second = two_of<Value>(x[j + 1][2 * half], x[j + 1][2 * half + 1]);
      const Word kept = odd ? second : first, other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
      if (8 * j >= left) continue;
      Four four = odd ? Four{other, kept} : Four{kept, other};
      if constexpr (accumulates) {
        static_assert(std::is_same_v<Value, Sum>);
        auto values = __builtin_bit_cast(Values, four);
        if constexpr (together == 1) before[0] = load(j);
#pragma unroll
        for (int v = 0; v < 4; ++v) values.value[v] = math::add(before[i].value[v], values.value[v]);
        four = __builtin_bit_cast(Four, values);
      }
      *reinterpret_cast<Four*>(to + 8 * j) = four;
    }
  }
}
/// The first of those columns. In each block a lane's own are 2·(lane mod 4) and the next one. An even lane gets the two
/// after its own in the first of two blocks, its neighbour the two before its own in the second.
__device__ __forceinline__ int first_of_fours(int lane) { return 8 * (lane & 1) + 2 * (lane & 2); }

/// Stores a warp's outputs, the first of which is C(l, m, n), as far as they exist. x[i][j] holds those of rows 64·i and
/// columns 8·j on, as arch::wgmma does. C's elements are of type Value; every group of four columns is aligned.
template <class Value, int accumulates, class S, class Finish, class Sum, int rows, int columns>
__device__ __forceinline__ void store_fours(const detail::Arguments<S, Finish>& g, const Sum (&x)[rows][columns][4],
                                            std::int64_t l, std::int64_t m, std::int64_t n, int lane) {
  const int column = first_of_fours(lane);
  const auto left_n = static_cast<int>(std::min<std::int64_t>(g.n - n, 8 * columns)) - column;
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = m + 64 * i + 8 * half + lane / 4;
      auto* const to = static_cast<Value*>(g.c) + g.c_offset(l, row, n + column);
      store_row<Value, accumulates>(to, x[i], half, row < g.m ? left_n : 0, lane % 2 != 0);
    }
}

/// Stores the outputs if nothing else is to be done, and returns whether it did: no epilogue, no accumulation (or with `accumulates`
/// one into a C of sums), a row-major C, groups of four elements aligned.
template <bool accumulates, class S, class Finish, class Sum, int rows, int columns>
__device__ __forceinline__ bool stored_as_they_are(const detail::Arguments<S, Finish>& g, const Sum (&x)[rows][columns][4],
                                                   std::int64_t l, std::int64_t m, std::int64_t n, int lane) {
  const auto fits = [&]<class Value>() {
    const auto address = reinterpret_cast<std::uintptr_t>(static_cast<Value*>(g.c) + g.c_offset(l, 0, n));
    return g.finish.template is_copy<Value>() && address % (4 * sizeof(Value)) == 0;
  };
  if ((g.accumulate && !accumulates) || g.c_strides.column != 1 || g.c_strides.row % 4 != 0 || g.n % 4 != 0) return false;
  if (fits.template operator()<typename S::accumulator>()) {
    if constexpr (accumulates)
      if (g.accumulate) {
        // As registers allow.
        constexpr int together = std::is_same_v<typename S::element, float> ? 1 : rows * columns < 32 ? 4 : 2;
        store_fours<typename S::accumulator, together>(g, x, l, m, n, lane);
        return true;
      }
    store_fours<typename S::accumulator, 0>(g, x, l, m, n, lane);
    return true;
  }
  if constexpr (ShortFloat<typename S::element>)
    if (!g.accumulate && fits.template operator()<typename S::element>()) {
      store_fours<typename S::element, 0>(g, x, l, m, n, lane);
      return true;
    }
  return false;
}

/// What a warp needs of shared memory to store outputs after a Layer: the shifts of its columns.
template <int columns>
struct LayerShifts {
  alignas(16) float of_columns[columns];
};

/// Reads the Layer's shifts of a warp's columns from n on.
template <int columns, class S, class Finish>
__device__ __forceinline__ void read_shifts(const detail::Arguments<S, Finish>& g, std::int64_t l, std::int64_t n,
                                            LayerShifts<columns>& shifts, int lane) {
  using Four = tile::Chunk<float, 4>;
  __syncwarp();
#pragma unroll
  for (int first = 0; first < columns; first += 128) {
    const int column = first + 4 * lane;
    if (column >= columns || n + column >= g.n) continue;
    Four four;
    g.finish.layer.read_shift(four.value, l, n + column);
    four.store(shifts.of_columns + column);
  }
  __syncwarp();
}

/// Whether the outputs of such a kernel after a Layer leave straight from registers, if C is such that they can. With 256 columns a lane
/// would move sums for longer than the way by shared memory takes.
template <class S, class Finish, int columns>
inline constexpr bool stores_layers =
    ShortFloat<typename S::element> && std::is_same_v<Finish, detail::ProgramFinish> && columns <= 24;

/// Stores a warp's outputs after a Layer as store_fours() does, and returns whether it did: to a row-major C of 16-bit elements whose
/// groups of four columns are aligned. A lane takes 16 outputs at a time, or 8 where registers are few. Code for them exists once: then
/// the other sums move to their registers.
template <class S, class Finish, int rows, int columns>
__device__ __forceinline__ bool stored_after_layer(const detail::Arguments<S, Finish>& g, float (&x)[rows][columns][4],
                                                   LayerShifts<8 * columns>& shifts, std::int64_t l, std::int64_t m,
                                                   std::int64_t n, int lane) {
  using Value = typename S::element;
  using Two = tile::Chunk<float, 2>;
  if (!g.finish.is_layer || g.finish.layer.has_matrix() || g.finish.type != scalar_of<Value> || g.accumulate ||
      g.c_strides.column != 1 || !tensor::fours_of<Value>(g, l, 0, n))
    return false;
  constexpr bool few = rows * columns > 32,
                 again = rows * columns >= 32;  // registers; what depends on the lane is computed again
  constexpr int blocks = few ? 2 : std::min(columns, 4), together = few ? 1 : 2;  // of eight columns; halves of their rows
  static_assert(columns % blocks == 0 && blocks % 2 == 0);
  if constexpr (again) lane = arch::lane_index();
  read_shifts(g, l, n, shifts, lane);
  const int column = first_of_fours(lane);
  const auto left_n = static_cast<int>(std::min<std::int64_t>(g.n - n, 8 * columns)) - column;
  auto left_m = static_cast<int>(std::min<std::int64_t>(g.m - m, 64 * rows)) - lane / 4;
  Value* to = static_cast<Value*>(g.c) + g.c_offset(l, m + lane / 4, n + column);
#pragma unroll 1
  for (int i = 0; i < rows; ++i) {
#pragma unroll 1
    for (int first = 0; first < columns; first += blocks) {
      if constexpr (again) lane = arch::lane_index();
      float values[2][2 * blocks], shift[2 * blocks];
#pragma unroll
      for (int b = 0; b < blocks; ++b) {
        const Two two = Two::load(shifts.of_columns + 8 * (first + b) + lane % 4 * 2);
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          shift[2 * b + v] = two.value[v];
          values[0][2 * b + v] = x[0][b][v];
          values[1][2 * b + v] = x[0][b][2 + v];
        }
      }
#pragma unroll
      for (int half = 0; half < 2; half += together)
        g.finish.layer.apply(reinterpret_cast<float (&)[together][2 * blocks]>(values[half]), shift);
#pragma unroll
      for (int b = 0; b < blocks; ++b)
#pragma unroll
        for (int r = 0; r < 4; ++r) x[0][b][r] = values[r / 2][2 * b + r % 2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        store_row<Value, 0>(to + 8 * half * g.c_strides.row + 8 * first, reinterpret_cast<float (&)[blocks][4]>(x[0]), half,
                            8 * half < left_m ? left_n - 8 * first : 0, lane % 2 != 0);
#pragma unroll
      for (int j = 0; j + blocks < columns; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) x[0][j][r] = x[0][j + blocks][r];
    }
#pragma unroll
    for (int next = 1; next < rows; ++next)
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) x[next - 1][j][r] = x[next][j][r];
    left_m -= 64;
    to += 64 * g.c_strides.row;
  }
  return true;
}

/// stored_as_they_are() for 16 rows of a warp, in two steps. What it depends on is computed before there are outputs, while slabs are in
/// flight, because a kernel's arguments are slow to fetch at first use.
template <class S, class Finish>
class FoundPlace {
  using Accumulator = typename S::accumulator;
  using Element = typename S::element;
  enum Kind : int { elsewhere, sums, elements, added };

 public:
  __device__ __forceinline__ FoundPlace(const detail::Arguments<S, Finish>& g, int columns, std::int64_t l, std::int64_t m,
                                        std::int64_t n, int lane) {
    const std::int64_t row = m + lane / 4, column = n + first_of_fours(lane);
    const auto left = static_cast<int>(std::max<std::int64_t>(std::min<std::int64_t>(g.n - column, columns), 0));
    left_[0] = row < g.m ? left : 0;
    left_[1] = row + 8 < g.m ? left : 0;
    const std::int64_t offset = g.c_offset(l, row, column);
    const auto fits = [&]<class Value>() {
      first_ = reinterpret_cast<std::uintptr_t>(static_cast<Value*>(g.c) + offset);
      second_ = first_ + 8 * g.c_strides.row * sizeof(Value);
      return g.finish.template is_copy<Value>() && first_ % (4 * sizeof(Value)) == 0;
    };
    kind_ = elsewhere;
    if (g.c_strides.column == 1 && g.c_strides.row % 4 == 0 && g.n % 4 == 0) {
      if (fits.template operator()<Accumulator>())
        kind_ = g.accumulate ? added : sums;
      else if constexpr (ShortFloat<Element>)
        if (!g.accumulate && fits.template operator()<Element>()) kind_ = elements;
    }
    // Forces the computation here, not at the first use.
    asm volatile("" : "+l"(first_), "+l"(second_), "+r"(left_[0]), "+r"(left_[1]), "+r"(kind_));
  }

  /// Stores the outputs and returns whether it did; all lanes of the warp return the same.
  template <class Sum, int columns>
  __device__ __forceinline__ bool store(const Sum (&x)[1][columns][4], int lane) const {
    if (__all_sync(0xffffffffu, kind_ == sums)) {
      store_as<Accumulator, 0>(x, lane);
      return true;
    }
    if (__all_sync(0xffffffffu, kind_ == added)) {
      store_as<Accumulator, columns % 8 == 0 ? 4 : columns / 2>(x, lane);
      return true;
    }
    if constexpr (ShortFloat<Element>)
      if (__all_sync(0xffffffffu, kind_ == elements)) {
        store_as<Element, 0>(x, lane);
        return true;
      }
    return false;
  }

 private:
  template <class Value, int accumulates, class Sum, int columns>
  __device__ __forceinline__ void store_as(const Sum (&x)[1][columns][4], int lane) const {
    store_row<Value, accumulates>(reinterpret_cast<Value*>(first_), x[0], 0, left_[0], lane % 2 != 0);
    store_row<Value, accumulates>(reinterpret_cast<Value*>(second_), x[0], 1, left_[1], lane % 2 != 0);
  }

  std::uintptr_t first_ = 0, second_ = 0;  // where the lane's first outputs of its two rows go
  int left_[2];                            // columns that exist from there on
  int kind_;
};

}  // namespace rigel::backends::hopper

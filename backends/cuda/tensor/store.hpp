// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store to C from accumulators as mma.sync and wgmma leave them. Eight rows of a warp's outputs at a time pass through
// shared memory of the warp's own, so that neighbouring lanes get neighbours in C and the code for one output exists once.
#pragma once

#include <rigel/backends/cuda/arch/convert.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/semirings.hpp>

#include <algorithm>

namespace rigel::backends::tensor {

/// Eight rows of `columns` outputs.
template <int columns, class Sum>
struct StoreBuffer {
  static constexpr int pitch = columns + 8;  // four rows of eight numbers each use all 32 banks
  static constexpr int bytes = 8 * pitch * static_cast<int>(sizeof(Sum));
};

/// Whether the words of S are bits along K, which an epilogue joins.
template <class S>
inline constexpr bool joins_bits =
    std::is_same_v<S, or_and<typename S::element>> || std::is_same_v<S, xor_and<typename S::element>>;

/// ⊕ over all k, from what the instruction sums: the sum itself; for words of bits, 1 if any product, or an odd number of
/// them, is 1.
template <class S, class Sum>
__device__ __forceinline__ typename S::accumulator accumulator_of(Sum sum) {
  if constexpr (std::is_same_v<S, or_and<typename S::element>>)
    return sum != 0;
  else if constexpr (std::is_same_v<S, xor_and<typename S::element>>)
    return static_cast<typename S::accumulator>(sum & 1);
  else
    return sum;
}

/// Stores a warp's doubles straight from its registers, in pieces of 16 bytes of C's rows: four lanes write two sectors of a
/// row.
template <class S, class Finish, int rows, int columns>
__device__ __forceinline__ void store_doubles(const detail::Arguments<S, Finish>& g, const double (&x)[rows][columns][4],
                                              std::int64_t l, std::int64_t m, std::int64_t n, int lane) {
  using Two = tile::Chunk<double, 2>;
  const int row = lane / 4, column = lane % 4 * 2;
  const int left_m = static_cast<int>(std::min<std::int64_t>(g.m - m, 16 * rows)) - row;
  const int left_n = static_cast<int>(std::min<std::int64_t>(g.n - n, 8 * columns)) - column;
  double* const c = static_cast<double*>(g.c) + g.c_offset(l, m + row, n + column);
#pragma unroll
  for (int r = 0; r < 2 * rows; ++r) {
    double* const of_row = c + 8 * r * g.c_strides.row;
    const auto exists = [&](int j) { return 8 * r < left_m && 8 * j < left_n; };
    // All of a row's loads, then its stores: C may be what a later load reads, so loads do not pass stores.
    Two before[columns];
    if (g.accumulate)
#pragma unroll
      for (int j = 0; j < columns; ++j)
        if (exists(j)) before[j] = Two::load(of_row + 8 * j);
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      if (!exists(j)) continue;
      Two two{{x[r / 2][j][r % 2 * 2], x[r / 2][j][r % 2 * 2 + 1]}};
      if (g.accumulate) two = {{math::add(before[j].value[0], two.value[0]), math::add(before[j].value[1], two.value[1])}};
      two.store(of_row + 8 * j);
    }
  }
}

/// A lane's outputs among eight rows of a warp's in shared memory: groups of neighbours, as Program::run_on() takes them.
template <int outputs_n, int pitch>
struct Groups {
  static constexpr int width = 4, in_row = outputs_n / width, next_m = 32 / in_row, of_lane = 8 / next_m;
  static constexpr int apart_m = 0, apart_n = 1, next_n = 0;
  static_assert(32 % in_row == 0 && 8 % next_m == 0);
  // References, and places computed when they are asked for: large tiles have few registers left.
  const std::int64_t &l, &m, &n;
  const int &row0, &column0, &lane;
  int first, groups;  // the first group, and how many exist from there on

  /// Those of the eight rows from C(l, m + row0, n + column0) on; `last_m` rows and `last_n` columns of C are left.
  __device__ __forceinline__ Groups(const std::int64_t& l, const std::int64_t& m, const std::int64_t& n, const int& row0,
                                    const int& column0, std::int64_t last_m, int last_n, const int& lane)
      : l(l), m(m), n(n), row0(row0), column0(column0), lane(lane), first(0) {
    const int left = static_cast<int>(std::min<std::int64_t>(last_m - row0, 8)) - lane / in_row;
    groups = column0 + lane % in_row * width < last_n && left > 0 ? (left + next_m - 1) / next_m : 0;
  }
  /// The place of a group's first output in the eight rows.
  __device__ __forceinline__ int row(int group) const { return lane / in_row + (first + group) * next_m; }
  __device__ __forceinline__ int column() const { return lane % in_row * width; }
  __device__ __forceinline__ int slot(int group) const {
    int slot = row(group) * pitch + column();
    asm volatile("" : "+r"(slot));  // computed here: a pointer that the loop advances would take two registers more
    return slot;
  }
  __device__ __forceinline__ epilogue::Place place(int group) const {
    return {l, m + (row0 + row(group)), n + (column0 + column())};
  }
  /// Leaves out the first groups.
  __device__ __forceinline__ void advance(int count) {
    first += count;
    groups -= count;
  }
};

/// The two halves of a group, as Program::run_on() takes them where registers are few.
template <class Outputs>
struct Halves {
  static constexpr int width = Outputs::width / 2, groups = 2;
  static constexpr int apart_m = 0, apart_n = 1, next_m = 0, next_n = width;
  const Outputs& outputs;
  __device__ __forceinline__ epilogue::Place place(int half) const {
    const epilogue::Place at = outputs.place(0);
    return {at.l, at.m, at.n + half * width};
  }
};

/// Stores a lane's outputs in vectors after an epilogue of short steps, `together` groups at a time. `to_elements`: C has the
/// type of 16-bit elements, else that of sums.
template <bool accumulates, int together, class S, class Finish, class Outputs>
__device__ __forceinline__ void store_steps(const detail::Arguments<S, Finish>& g, const S& s, Outputs& outputs,
                                            const float* sums, bool to_elements) {
  constexpr int width = Outputs::width;
  const bool reads = accumulates && g.accumulate;
  // use(c, a row's stride) for the first output, with C's type.
  const auto with_c = [&](const auto& use) __attribute__((always_inline)) {
    const epilogue::Place at = outputs.place(0);
    const std::int64_t offset = g.c_offset(at.l, at.m, at.n), next = Outputs::next_m * g.c_strides.row;
    if constexpr (ShortFloat<typename S::element>)
      if (to_elements) return use(static_cast<typename S::element*>(g.c) + offset, next);
    use(static_cast<float*>(g.c) + offset, next);
  };
#pragma unroll 1
  for (; outputs.groups > 0; outputs.advance(together)) {
    float values[together][width];
    const auto exists = [&](int t) { return t == 0 || t < outputs.groups; };
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const auto chunk = tile::Chunk<float, width>::load(sums + outputs.slot(t));
#pragma unroll
      for (int v = 0; v < width; ++v) values[t][v] = exists(t) ? chunk.value[v] : 0;
    }
    if (reads)
      with_c([&]<class Value>(const Value* c, std::int64_t next) __attribute__((always_inline)) {
#pragma unroll
        for (int t = 0; t < together; ++t) {
          if (!exists(t)) continue;
          const auto before = tile::Chunk<Value, width>::load(c + t * next);
#pragma unroll
          for (int v = 0; v < width; ++v) values[t][v] = s.add(static_cast<float>(before.value[v]), values[t][v]);
        }
      });
    if constexpr (accumulates)
      g.finish.run_on(values, outputs);
    else
      g.finish.run_on(reinterpret_cast<float (&)[2][width / 2]>(values), Halves<Outputs>{outputs});
    with_c([&]<class Value>(Value* c, std::int64_t next) __attribute__((always_inline)) {
#pragma unroll
      for (int t = 0; t < together; ++t) {
        if (!exists(t)) continue;
        tile::Chunk<Value, width> chunk;
        arch::convert(chunk.value, values[t]);
        chunk.store(c + t * next);
      }
    });
  }
}

/// Writes a piece of a warp's sums to shared memory: rows 8·half + lane/4 of x[i], and the columns from 8·first on.
template <int outputs_n, class Sum, int columns>
__device__ __forceinline__ void write_piece(const Sum (&x)[columns][4], int half, int first, Sum* sums, int lane) {
  constexpr int pitch = StoreBuffer<outputs_n, Sum>::pitch;
#pragma unroll
  for (int j = 0; j < outputs_n / 8; ++j) {
    Sum* const to = sums + lane / 4 * pitch + 8 * j + lane % 4 * 2;
    struct alignas(2 * sizeof(Sum)) Two {
      Sum first, second;
    };
    *reinterpret_cast<Two*>(to) = {x[first + j][2 * half], x[first + j][2 * half + 1]};
  }
}

/// Pieces of eight rows and `outputs_n` columns of a warp's sums: all rows of the same columns follow each other. Sums x[i][j] are those
/// of rows `apart`·i and columns 8·j on, as arch::Mma has them.
template <int outputs_n, int apart, int rows, int columns>
struct Pieces {
  static constexpr int parts = 8 * columns / outputs_n, halves = 2 * rows, count = halves * parts;
  static_assert(parts * outputs_n == 8 * columns);
  __device__ __forceinline__ static int row(int piece) { return piece % halves / 2 * apart + piece % 2 * 8; }
  __device__ __forceinline__ static int column(int piece) { return piece / halves * outputs_n; }
};

/// use(piece) for each piece while `sums`, in shared memory, holds it. The code of use() exists once.
template <int outputs_n, int apart, class Sum, int rows, int columns, class Use>
__device__ __forceinline__ void for_each_piece(const Sum (&x)[rows][columns][4], Sum* sums, int lane, const Use& use) {
  using Pieces = Pieces<outputs_n, apart, rows, columns>;
#pragma unroll 1
  for (int piece = 0; piece < Pieces::count; ++piece) {
    __syncwarp();
#pragma unroll
    for (int p = 0; p < Pieces::count; ++p)
      if (p == piece)
        write_piece<outputs_n>(x[p % Pieces::halves / 2], p % 2, p / Pieces::halves * (outputs_n / 8), sums, lane);
    __syncwarp();
    use(piece);
  }
}

/// Whether groups of four elements of a row-major C, from C(l, m, n) on, are aligned and exist as a whole.
template <class Value, class S, class Finish>
__device__ __forceinline__ bool fours_of(const detail::Arguments<S, Finish>& g, std::int64_t l, std::int64_t m,
                                         std::int64_t n) {
  const auto address = reinterpret_cast<std::uintptr_t>(static_cast<Value*>(g.c) + g.c_offset(l, m, n));
  return address % (4 * sizeof(Value)) == 0 && g.c_strides.row % 4 == 0 && g.n % 4 == 0;
}

/// The shifts of four neighbours (l, ·, n + i), if not all of them need exist: no number beyond the last column, N − 1, is read. N is
/// at least 4.
template <class S, class Finish>
__device__ __forceinline__ void read_shift_at_edge(const detail::Arguments<S, Finish>& g, float (&shift)[4], std::int64_t l,
                                                   std::int64_t n) {
  const int beyond = static_cast<int>(std::max<std::int64_t>(n + 4 - g.n, 0));
  g.finish.layer.read_shift(shift, l, n - beyond);
#pragma unroll
  for (int step = 0; step < 3; ++step)
#pragma unroll
    for (int v = 0; v < 3; ++v) shift[v] = step < beyond ? shift[v + 1] : shift[v];
}

/// Stores a warp's outputs, the first of which is C(l, m, n), as far as they exist, after the epilogue's short form, a Layer. C is
/// row-major with elements of type Value. With `fours`, every group of four columns exists or not as a whole, and is aligned; without,
/// N is at least 4. `matrix`: whether the Layer has one. A lane takes four neighbours in some of a piece's rows, always in the same columns,
/// `together` rows at a time. `x`, `sums`: as in for_each_piece().
template <class Value, bool fours, bool matrix, int outputs_n, int apart, int together, class S, class Finish, int rows,
          int columns>
__device__ __forceinline__ void store_layer(const detail::Arguments<S, Finish>& g, const float (&x)[rows][columns][4],
                                            std::int64_t l, std::int64_t m, std::int64_t n, float* sums, int lane) {
  using Pieces = Pieces<outputs_n, apart, rows, columns>;
  constexpr int pitch = StoreBuffer<outputs_n, float>::pitch, in_row = outputs_n / 4, next = 32 / in_row, groups = 8 / next;
  static_assert(32 % in_row == 0 && 8 % next == 0 && groups % together == 0);
  const int r = lane / in_row, c = lane % in_row * 4;
  float shift[4] = {};
  for_each_piece<outputs_n, apart>(x, sums, lane, [&](int piece) __attribute__((always_inline)) {
    const std::int64_t at_m = m + Pieces::row(piece) + r, at_n = n + Pieces::column(piece) + c;
    if (at_n >= g.n) return;
    if (Pieces::row(piece) == 0) {
      if constexpr (fours)
        g.finish.layer.read_shift(shift, l, at_n);
      else
        read_shift_at_edge(g, shift, l, at_n);
    }
    [[maybe_unused]] float numbers[groups][4] = {};  // of the matrix
    if constexpr (matrix)
      if (at_m < g.m) g.finish.layer.matrix.read_fours(numbers, l, at_m, at_n, next, g.m - at_m);
    Value* const to = static_cast<Value*>(g.c) + g.c_offset(l, at_m, at_n);
    const std::int64_t apart_c = next * g.c_strides.row;
#pragma unroll 1
    for (int first = 0; first < groups; first += together) {
      float values[together][4];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const auto four = tile::Chunk<float, 4>::load(sums + (r + (first + i) * next) * pitch + c);
#pragma unroll
        for (int v = 0; v < 4; ++v) values[i][v] = four.value[v];
      }
      g.finish.layer.apply(values, shift);
      if constexpr (matrix) {
#pragma unroll
        for (int i = 0; i < together; ++i)
#pragma unroll
          for (int v = 0; v < 4; ++v) values[i][v] = g.finish.layer.with_matrix(values[i][v], numbers[i][v]);
        // Registers have no index.
#pragma unroll
        for (int i = 0; i + together < groups; ++i)
#pragma unroll
          for (int v = 0; v < 4; ++v) numbers[i][v] = numbers[i + together][v];
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        if (at_m + (first + i) * next >= g.m) continue;
        tile::Chunk<Value, 4> four;
        arch::convert(four.value, values[i]);
        Value* const place = to + (first + i) * apart_c;
        if constexpr (fours) {
          four.store(place);
        } else {
#pragma unroll
          for (int v = 0; v < 4; ++v)
            if (at_n + v < g.n) place[v] = four.value[v];
        }
      }
    }
  });
}

/// Stores a warp's outputs after a Layer if C, whose columns are neighbours and at least 4, has the type of elements or of sums, and
/// aligned groups of four if the Layer has a matrix; returns whether it did. `layers`: groups of four that a lane takes at a time, for 64
/// outputs of a row. Without `elements`, no aligned groups of 16-bit elements come but for a matrix.
template <int outputs_n, int apart, int layers, bool elements = true, class S, class Finish, class Sum, int rows,
          int columns>
__device__ __forceinline__ bool stored_after_layer(const detail::Arguments<S, Finish>& g, const Sum (&x)[rows][columns][4],
                                                   std::int64_t l, std::int64_t m, std::int64_t n, Sum* sums, int lane) {
  const auto store = [&]<class Value>() __attribute__((always_inline)) {
    if (!g.finish.template runs_short<Value>()) return false;
    constexpr int together = std::max(layers * outputs_n / 64, 1);
    const bool fours = fours_of<Value>(g, l, m, n);
    if (g.finish.layer.has_matrix()) {
      if (!fours) return false;
      store_layer<Value, true, true, outputs_n, apart, std::min(together, 2)>(g, x, l, m, n, sums, lane);
    } else if (fours && (elements || !ShortFloat<Value>)) {
      if constexpr (elements || !ShortFloat<Value>)
        store_layer<Value, true, false, outputs_n, apart, together>(g, x, l, m, n, sums, lane);
    } else {
      store_layer<Value, false, false, outputs_n, apart, 1>(g, x, l, m, n, sums, lane);
    }
    return true;
  };
  if constexpr (ShortFloat<typename S::element>)
    if (store.template operator()<typename S::element>()) return true;
  return store.template operator()<typename S::accumulator>();
}

/// How a kernel stores a warp's outputs, as its registers allow.
struct StorePolicy {
  int outputs_n;            // columns that pass through the buffer at a time
  int apart;                // rows from x[i] to x[i + 1]
  int together;             // groups of four neighbours that a lane takes at a time after short steps; 0: no steps
  bool accumulates = true;  // takes steps after a sum with C, too
  int layers = 4;           // groups that a lane takes at a time after a Layer, for 64 outputs of a row; 0: no Layer
  bool all_layers = true;   // takes those of elements in aligned groups of four (stored_after_layer()), too
};

/// Stores a warp's outputs, the first of which is C(l, m, n), as far as they exist. x[i][j] holds those of rows `apart`·i
/// and columns 8·j on, as arch::Mma does.
template <StorePolicy policy, class S, class Finish, class Sum, int rows, int columns>
__device__ __forceinline__ void store_tile(const detail::Arguments<S, Finish>& g, const Sum (&x)[rows][columns][4],
                                           std::int64_t l, std::int64_t m, std::int64_t n, unsigned char* buffer, int lane) {
  constexpr int outputs_n = policy.outputs_n, apart = policy.apart, pitch = StoreBuffer<outputs_n, Sum>::pitch;
  Sum* const sums = reinterpret_cast<Sum*>(buffer);
  const S s = g.semiring(l);
  const bool along_n = g.c_strides.column <= g.c_strides.row;
  const int last_n = static_cast<int>(std::min<std::int64_t>(g.n - n, 8 * columns));
  // Stores eight rows in vectors, if C has the accumulator's type or that of 16-bit elements, is row-major and aligned, and
  // there is no epilogue.
  const auto in_vectors = [&]<class Value>(Value* c, int row, int before) __attribute__((always_inline)) {
    constexpr int width = 16 / sizeof(Value), in_row = outputs_n / width, rows_at_once = 32 / in_row;
    static_assert(8 % rows_at_once == 0);
    using Chunk = tile::Chunk<Value, width>;
    const int column = lane % in_row * width;
    const auto exists = [&](int r) { return lane < rows_at_once * in_row && m + row + r < g.m && before + column < last_n; };
    const auto at = [&](int r) { return c + (m + row + r) * g.c_strides.row + before + column; };
    // All loads, then the stores, which no load passes. (cuda.hopper's kernels of floats have no registers left for that.)
    constexpr bool loads_first = apart == 16 || !std::is_same_v<typename S::element, float>;
    Chunk values[8 / rows_at_once] = {};
    if (loads_first && g.accumulate)
#pragma unroll
      for (int first = 0; first < 8; first += rows_at_once)
        if (exists(first + lane / in_row)) values[first / rows_at_once] = Chunk::load(at(first + lane / in_row));
#pragma unroll
    for (int first = 0; first < 8; first += rows_at_once) {
      const int r = first + lane / in_row;
      if (!exists(r)) continue;
      Chunk& of_row = values[first / rows_at_once];
      if (!loads_first && g.accumulate) of_row = Chunk::load(at(r));
#pragma unroll
      for (int v = 0; v < width; ++v) {
        const auto value = accumulator_of<S>(sums[r * pitch + column + v]);
        of_row.value[v] = detail::convert<Value>(
            g.accumulate ? s.add(static_cast<typename S::accumulator>(of_row.value[v]), value) : value);
      }
      of_row.store(at(r));
    }
  };
  const auto vectors_of = [&]<class Value>() {
    const auto address = reinterpret_cast<std::uintptr_t>(static_cast<Value*>(g.c) + g.c_offset(l, m, n));
    return g.c_strides.column == 1 && address % 16 == 0 && g.c_strides.row * sizeof(Value) % 16 == 0 &&
           last_n % (16 / static_cast<int>(sizeof(Value))) == 0;
  };
  using Own = typename S::accumulator;
  constexpr bool takes_elements = ShortFloat<typename S::element>;
  constexpr bool takes_own = !joins_bits<S> && std::is_arithmetic_v<Own>;  // a struct is no type of C
  bool own = false;
  if constexpr (takes_own) own = g.finish.template is_copy<Own>() && vectors_of.template operator()<Own>();
  bool elements = false, steps_to_own = false, steps_to_elements = false;
  // The largest tiles of floats have no registers left for steps.
  constexpr bool takes_steps = policy.together > 0 && std::is_same_v<Own, float> && (takes_elements || rows * columns <= 24);
  if constexpr (takes_elements) {
    const bool vectors = vectors_of.template operator()<typename S::element>();
    elements = g.finish.template is_copy<typename S::element>() && vectors;
    steps_to_elements = !elements && g.finish.template runs_short<typename S::element>() && vectors;
  }
  if constexpr (takes_steps)
    steps_to_own = !own && g.finish.template runs_short<Own>() && vectors_of.template operator()<Own>();
  const bool in_steps = (steps_to_own || steps_to_elements) && (policy.accumulates || !g.accumulate);

  if constexpr (std::is_same_v<Sum, double>)
    if (own) return store_doubles(g, x, l, m, n, lane);  // C receives sums as they are
  if constexpr (takes_steps && policy.layers > 0 && std::is_same_v<Finish, detail::ProgramFinish>)
    if (!own && !elements && g.finish.is_layer && !g.accumulate && g.c_strides.column == 1 && g.n >= 4)
      if (stored_after_layer<outputs_n, apart, policy.layers, policy.all_layers>(g, x, l, m, n, sums, lane)) return;

  for_each_piece<outputs_n, apart>(x, sums, lane, [&](int piece) __attribute__((always_inline)) {
    using Pieces = Pieces<outputs_n, apart, rows, columns>;
    const int row0 = Pieces::row(piece), before = Pieces::column(piece);
    if constexpr (takes_own)
      if (own) return in_vectors(static_cast<Own*>(g.c) + g.c_offset(l, 0, n), row0, before);
    if constexpr (ShortFloat<typename S::element>)
      if (elements) return in_vectors(static_cast<typename S::element*>(g.c) + g.c_offset(l, 0, n), row0, before);
    if constexpr (takes_steps)
      if (in_steps) {
        using Outputs = Groups<outputs_n, pitch>;
        constexpr int at_once = std::min(policy.together, Outputs::of_lane);
        Outputs outputs(l, m, n, row0, before, g.m - m, last_n, lane);
        return store_steps<policy.accumulates, at_once>(g, s, outputs, sums, steps_to_elements);
      }
#pragma unroll 1
    for (int e = lane; e < 8 * outputs_n; e += 32) {
      const int row = along_n ? e / outputs_n : e % 8, column = along_n ? e % outputs_n : e / 8;
      const std::int64_t i = m + row0 + row, j = n + before + column;
      if (i >= g.m || j >= g.n) continue;
      auto value = accumulator_of<S>(sums[row * pitch + column]);
      if (g.accumulate) value = s.add(g.start(s, l, i, j), value);
      g.store(s, value, l, i, j);
    }
  });
}

}  // namespace rigel::backends::tensor

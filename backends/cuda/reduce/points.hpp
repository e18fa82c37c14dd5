// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weighted sums and log-sum-exp of functions of Euclidean distances in few dimensions, on CUDA cores. A thread has some rows of X in registers.
// Columns come to shared memory, a tile at a time, as records that all threads read: a row of Z, its bias and its rows of V. So a score of three
// dimensions takes nine instructions, one of which is an exponential, which keeps the special-function unit busy for eight cycles.
//
// Sums of a chunk of columns are in the scores' type T, float or double, those of chunks are added in double.
//
// With ranges a block has some rows of one interval, and its columns are those of the interval's list one after the other: column number
// `position` of the list. Without, the position is the column.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/detail/range_table.hpp>
#include <rigel/detail/reduction.hpp>

namespace rigel::backends::points {

/// What a value is a function of: the squared distance, or the distance.
enum class Of : std::uint8_t { square, root };

/// Threads of a block, columns of a tile, and those that are added in T.
inline constexpr int threads = 128, tile_columns = threads, chunk_columns = 64;
/// Rows of a thread, and of a block: doubles take twice the registers.
template <class T>
inline constexpr int rows_of_thread = std::is_same_v<T, float> ? 4 : 2;
template <class T>
inline constexpr int rows_of_block = threads * rows_of_thread<T>;
static_assert(detail::RangeTable::part_rows % rows_of_block<float> == 0);

/// Elements of a matrix of points: f32, f16 or bf16, which become floats, or f64.
struct Coordinates {
  const void* data;
  Scalar type;
  std::int64_t batch, point, coordinate;  // strides in elements

  /// x[k] of point i: its coordinates, and 0 beyond them.
  template <int dimensions, class T>
  __device__ __forceinline__ void load(T (&x)[dimensions], std::int64_t l, std::int64_t i, int count) const {
    const auto all = [&]<class Given>(const Given* numbers) __attribute__((always_inline)) {
      const Given* const from = numbers + (l * batch + i * point);
#pragma unroll
      for (int k = 0; k < dimensions; ++k) x[k] = k < count ? static_cast<T>(from[k * coordinate]) : T(0);
    };
    if constexpr (std::is_same_v<T, double>) return all(static_cast<const double*>(data));
    switch (type) {
      case Scalar::f16: return all(static_cast<const half*>(data));
      case Scalar::bf16: return all(static_cast<const bfloat16*>(data));
      default: return all(static_cast<const float*>(data));
    }
  }
};

/// A call. With s the squared distance or the distance, the values of a weighted sum are 2^(factor·s), of a distance
/// 2^(factor·u)·(1 + first·u + second·u²), u = rate·s; of doubles e^(factor·s) and the like. The scores of a softmax or log-sum-exp are
/// factor·s + bias(n).
template <class T>
struct CallOf {
  Coordinates x, z;
  std::int32_t dimensions;  // D at most
  T factor;
  T rate, first, second;
  T root;  // of −factor, by which points may be multiplied; 0: they are not
  bool has_bias;
  epilogue::Source bias;  // of column n, times bias_factor; plus `added`
  double bias_factor, added;
  detail::WeightReader v;
  std::int32_t rights;  // columns of V, R at most
  detail::ReducedOutputs outputs;
  std::int64_t m, n;
  std::uint32_t row_blocks, units;  // of a matrix, of all
  std::int32_t slices, slice_tiles;
  double* states;  // of several slices: state_numbers() for each row of each unit, slice by slice
  bool exclude_self;
  const detail::RowInterval* parts;         // with ranges, the rows in parts, each of so many blocks as its rows may fill;
  const detail::ColumnInterval* intervals;  // and the columns; else null
};
using Call = CallOf<float>;

/// The rows of a block, and the columns that they meet: so many, of intervals from `list` on.
struct BlockRows {
  std::int64_t first, end, columns, list, list_end;
};
template <bool some, class T>
__device__ __forceinline__ BlockRows block_rows(const CallOf<T>& g, unsigned block) {
  if (!some || !g.parts) {
    const std::int64_t first = std::int64_t{block} * rows_of_block<T>;
    return {first, g.m, g.n, 0, 0};
  }
  constexpr unsigned blocks = detail::RangeTable::part_rows / rows_of_block<T>;
  const detail::RowInterval& part = g.parts[block / blocks];
  return {part.first + block % blocks * rows_of_block<T>, part.end, part.columns, part.list, part.list_end};
}

/// What a row keeps of a slice: its sums, and with a softmax the score that they are relative to and the weights' sum before them.
constexpr int state_numbers(bool softmax, int rights) { return rights + (softmax ? 2 : 0); }

inline constexpr double log2_e = 1.44269504088896340736;

/// A record of a column in shared memory: D coordinates, a bias if there can be one, R numbers of V, in vectors of 16 bytes.
template <int D, int R, bool softmax, class T>
struct Record {
  static constexpr int vector = 16 / sizeof(T), bias = D, v = D + (softmax ? 1 : 0),
                       words = (v + R + vector - 1) / vector * vector;
};

template <int D, int words, class T>
__device__ __forceinline__ T square_of(const T (&x)[D], const T (&record)[words]) {
  const T first = math::subtract(x[0], record[0]);
  T s = math::multiply(first, first);
#pragma unroll
  for (int k = 1; k < D; ++k) {
    const T difference = math::subtract(x[k], record[k]);
    s = math::fma(difference, difference, s);
  }
  return s;
}
/// The square or its root, within 2 units of roundoff (PTX ISA, sqrt).
template <Of of>
__device__ __forceinline__ float taken(float square) {
  return of == Of::root ? __nvvm_sqrt_approx_ftz_f(square) : square;
}
template <Of of>
__device__ __forceinline__ double taken(double square) {
  return of == Of::root ? __builtin_elementwise_sqrt(square) : square;
}

/// Value of a weighted sum. If points are multiplied by the factor's root, so is the square by the factor.
template <Of of, bool scaled>
__device__ __forceinline__ double value_of(const CallOf<double>& g, double square) {
  const double s = taken<of>(square);
  if constexpr (of == Of::square) return math::exponential(s * g.factor);
  const double u = math::minimum(s * g.rate, 1000.);  // as below
  return math::exponential(u * g.factor) * math::fma(u, math::fma(u, g.second, g.first), 1.);
}
template <Of of, bool scaled>
__device__ __forceinline__ float value_of(const Call& g, float square) {
  if constexpr (scaled) return math::exp2(-square);
  const float s = taken<of>(square);
  if constexpr (of == Of::square) return math::exp2(math::multiply(s, g.factor));
  const float u = math::minimum(math::multiply(s, g.rate), 1000.f);  // its square is finite: exp(−1000) is 0
  const float e = math::exp2(math::multiply(u, g.factor));
  return math::multiply(e, math::fma(u, math::fma(u, g.second, g.first), 1.f));
}

template <int words>
__device__ __forceinline__ void load_record(float (&record)[words], const float* from) {
#pragma unroll
  for (int i = 0; i < words; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + i);
    record[i] = four.x;
    record[i + 1] = four.y;
    record[i + 2] = four.z;
    record[i + 3] = four.w;
  }
}
template <int words>
__device__ __forceinline__ void load_record(double (&record)[words], const double* from) {
#pragma unroll
  for (int i = 0; i < words; i += 2) {
    const double2 two = *reinterpret_cast<const double2*>(from + i);
    record[i] = two.x;
    record[i + 1] = two.y;
  }
}
__device__ __forceinline__ void store_vector(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
__device__ __forceinline__ void store_vector(double* to, const double* from) {
  *reinterpret_cast<double2*>(to) = make_double2(from[0], from[1]);
}

/// Points multiplied by the factor's root are rounded once more, which makes an exponent t wrong by 2u·√t·(|x'| + |z'|): at most 128u·√t if
/// neither is longer than this.
inline constexpr float most_length = 32;

/// Multiplies a point; whether it is too long then, or NaN.
template <int D, class T>
__device__ __forceinline__ bool scale_point(T (&x)[D], T scale) {
  T square = 0;
#pragma unroll
  for (int k = 0; k < D; ++k) {
    x[k] = math::multiply(x[k], scale);
    square = math::fma(x[k], x[k], square);
  }
  return !(square <= most_length * most_length);
}

/// Copies the record of column n to shared memory, its point multiplied by `scale`, if that is not 0; whether it is too long then. A thread
/// copies one of each tile.
template <int D, int R, bool softmax, class T>
__device__ __forceinline__ bool copy_record(const CallOf<T>& g, T* to, std::int64_t l, std::int64_t n, T scale) {
  using Layout = Record<D, R, softmax, T>;
  T z[D];
  g.z.load(z, l, n, g.dimensions);
  const bool is_long = scale != 0 && scale_point(z, scale);
  T record[Layout::words] = {};
#pragma unroll
  for (int k = 0; k < D; ++k) record[k] = z[k];
  if constexpr (softmax) {
    const double own = g.has_bias ? g.bias.template at<double>(l, 0, n) * g.bias_factor : 0.;
    record[Layout::bias] = static_cast<T>(own + g.added);
  }
#pragma unroll
  for (int d = 0; d < R; ++d) record[Layout::v + d] = d < g.rights ? static_cast<T>(g.v(l, n, d)) : T(0);
#pragma unroll
  for (int i = 0; i < Layout::words; i += Layout::vector) store_vector(to + i, record + i);
  return is_long;
}

/// What a thread keeps of a row: with a softmax Σ exp(score − reference), and the same times V; else the latter alone. The reference is one
/// of the scores, or −∞ before the first. If a chunk's sum exceeds `most_of_chunk`, or times V is not finite, its largest score becomes the
/// reference.
template <int R, class T>
struct Row {
  T reference = -std::numeric_limits<T>::infinity();
  double total = 0;
  double sums[R > 0 ? R : 1] = {};
};
inline constexpr float most_of_chunk = 0x1p60f;

template <Of of, int D, int words, class T>
__device__ __forceinline__ T score_of(const CallOf<T>& g, const T (&x)[D], const T (&record)[words]) {
  return math::fma(taken<of>(square_of(x, record)), g.factor, record[D]);
}

/// exp(score − reference).
__device__ __forceinline__ float weight_of(float score, float reference) {
  return math::exp2(math::multiply(math::subtract(score, reference), static_cast<float>(log2_e)));
}
__device__ __forceinline__ double weight_of(double score, double reference) { return math::exponential(score - reference); }

/// Where the columns of a chunk are among the block's rows, if they are: what a row leaves out. Without `self`, nothing.
template <bool self>
struct Selves {
  const std::int32_t* rows;
  /// Whether column j of the chunk is row r of a thread.
  __device__ __forceinline__ bool leave_out(int j, int r) const {
    return self && rows[j] == r * threads + static_cast<int>(threadIdx.x);
  }
};

/// Adds a chunk to row r of a thread whose reference does not suit it: first finds the largest score, then the sums.
template <Of of, bool self, int D, int R, class T>
__device__ __forceinline__ void add_carefully(const CallOf<T>& g, Row<R, T>& row, int r, const T (&x)[D], const T* records,
                                              int columns, const Selves<self>& selves) {
  using Layout = Record<D, R, true, T>;
  constexpr T least = -std::numeric_limits<T>::infinity();
  T most = row.reference;
#pragma unroll 1
  for (int j = 0; j < columns; ++j) {
    if (selves.leave_out(j, r)) continue;
    T record[Layout::words];
    load_record(record, records + j * Layout::words);
    const T score = score_of<of>(g, x, record);
    most = score > most ? score : most;
  }
  if (most > row.reference) {
    const auto factor = static_cast<double>(weight_of(row.reference, most));
    row.total *= factor;
#pragma unroll
    for (int d = 0; d < R; ++d) row.sums[d] *= factor;
    row.reference = most;
  }
  T total = 0, sums[R > 0 ? R : 1] = {};
#pragma unroll 1
  for (int j = 0; j < columns; ++j) {
    if (selves.leave_out(j, r)) continue;
    T record[Layout::words];
    load_record(record, records + j * Layout::words);
    const T score = score_of<of>(g, x, record);
    const T w = score == most ? (most == least ? T(0) : T(1)) : weight_of(score, most);
    total = math::add(total, w);
#pragma unroll
    for (int d = 0; d < R; ++d) sums[d] = math::fma(w, record[Layout::v + d], sums[d]);
  }
  row.total += static_cast<double>(total);
#pragma unroll
  for (int d = 0; d < R; ++d) row.sums[d] += static_cast<double>(sums[d]);
}

/// Columns of which a loop has copies: those that leave out rows are few, and an exponential of double is long.
template <bool self, class T>
inline constexpr int unrolled = self                        ? 1
                                : std::is_same_v<T, double> ? 2
                                                            : 8;

template <Of of, bool self, int D, int R, int Rows, class T>
__device__ __forceinline__ void add_softmax(const CallOf<T>& g, Row<R, T> (&rows)[Rows], const T (&x)[Rows][D],
                                            const T* records, int columns, const Selves<self>& selves) {
  using Layout = Record<D, R, true, T>;
  T total[Rows] = {}, sums[Rows][R > 0 ? R : 1] = {};
#pragma unroll unrolled < self, T>
  for (int j = 0; j < columns; ++j) {
    T record[Layout::words];
    load_record(record, records + j * Layout::words);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const T w = weight_of(score_of<of>(g, x[r], record), rows[r].reference);
      if (selves.leave_out(j, r)) continue;
      total[r] = math::add(total[r], w);
#pragma unroll
      for (int d = 0; d < R; ++d) sums[r][d] = math::fma(w, record[Layout::v + d], sums[r][d]);
    }
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    bool fits = total[r] <= static_cast<T>(most_of_chunk);
#pragma unroll
    for (int d = 0; d < R; ++d) fits = fits && math::abs(sums[r][d]) < std::numeric_limits<T>::infinity();
    if (fits) {
      rows[r].total += static_cast<double>(total[r]);
#pragma unroll
      for (int d = 0; d < R; ++d) rows[r].sums[d] += static_cast<double>(sums[r][d]);
    } else {
      add_carefully<of>(g, rows[r], r, x[r], records, columns, selves);
    }
  }
}

template <Of of, bool scaled, bool self, int D, int R, int Rows, class T>
__device__ __forceinline__ void add_weighted(const CallOf<T>& g, Row<R, T> (&rows)[Rows], const T (&x)[Rows][D],
                                             const T* records, int columns, const Selves<self>& selves) {
  using Layout = Record<D, R, false, T>;
  // With more columns to choose from, ptxas spreads the exponentials better.
  constexpr int most = unrolled<self, T>, copies = most == 8 && of == Of::square && D <= 3 && R == 1 ? 16 : most;
  T sums[Rows][R] = {};
#pragma unroll copies
  for (int j = 0; j < columns; ++j) {
    T record[Layout::words];
    load_record(record, records + j * Layout::words);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const T value = value_of<of, scaled>(g, square_of(x[r], record));
      if (selves.leave_out(j, r)) continue;
#pragma unroll
      for (int d = 0; d < R; ++d) sums[r][d] = math::fma(value, record[Layout::v + d], sums[r][d]);
    }
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int d = 0; d < R; ++d) rows[r].sums[d] += static_cast<double>(sums[r][d]);
}

/// Stores the results of row m: of a log-sum-exp the sum's logarithm, of a softmax quotients.
template <class T, class Sums>
__device__ __forceinline__ void store(const CallOf<T>& g, bool softmax, std::int64_t l, std::int64_t m, double reference,
                                      double total, const Sums& sums) {
  if (softmax && g.rights == 0)
    return g.outputs.store(total == 0 ? -std::numeric_limits<double>::infinity() : reference + math::logarithm(total), l, m);
  for (int d = 0; d < g.rights; ++d) g.outputs.store(softmax ? sums(d) / total : sums(d), l, m, d);
}

/// Blocks that registers leave room for.
template <int D, int R, class T>
inline constexpr int blocks = D > 5 || R > 1             ? 2
                              : std::is_same_v<T, float> ? 4
                                                         : 3;

/// What a block knows of the columns of this tile and the next: their place among its rows, or −1, and the last tile that has one of its
/// rows; and the interval of each thread's column.
struct Marks {
  std::int32_t selves[2][tile_columns], tile_with_self[2], interval[threads];
};

/// A thread that copies columns to shared memory, from a slice that ends at a position of the block's.
template <int D, int R, bool softmax, class T, bool some>
struct Copier {
  static constexpr int words = Record<D, R, softmax, T>::words;
  T* records;  // two tiles
  Marks& marks;
  const CallOf<T>& g;
  unsigned l, block;
  std::int64_t end, columns;

  __device__ __forceinline__ void begin() const {
    if (!some) return;
    marks.interval[threadIdx.x] = -1;
    if (threadIdx.x < 2) marks.tile_with_self[threadIdx.x] = -1;
    __syncthreads();
  }
  /// The column at a position.
  __device__ __forceinline__ std::int64_t column_at(std::int64_t position) const {
    const BlockRows rows = block_rows<some>(g, block);
    std::int64_t at = marks.interval[threadIdx.x];
    const auto has = [&](const detail::ColumnInterval& interval) {
      return position >= interval.before && position - interval.before < interval.end - interval.first;
    };
    if (at < 0 || !has(g.intervals[at])) at = detail::interval_at(g.intervals, rows.list, rows.list_end, position);
    marks.interval[threadIdx.x] = static_cast<std::int32_t>(at);
    return g.intervals[at].first + (position - g.intervals[at].before);
  }
  /// Copies a thread's column of a tile; whether its point is too long to be multiplied.
  __device__ __forceinline__ bool operator()(int stage, std::int64_t first, T scale) const {
    const auto thread = static_cast<int>(threadIdx.x);
    const std::int64_t position = first + thread;
    if (first >= end || position >= columns) return false;
    const std::int64_t n = some && g.parts ? column_at(position) : position;
    if (some && g.exclude_self) {
      const std::int64_t row = n - block_rows<some>(g, block).first;
      const bool is_self = row >= 0 && row < rows_of_block<T>;
      marks.selves[stage][thread] = is_self ? static_cast<std::int32_t>(row) : -1;
      if (is_self) marks.tile_with_self[stage] = tile_of(first);
    }
    return copy_record<D, R, softmax>(g, records + (stage * tile_columns + thread) * words, l, n, scale);
  }
  /// Whether a tile in shared memory has a column that is a row of the block, after a barrier.
  __device__ __forceinline__ bool has_self(int stage, std::int64_t first) const {
    return some && g.exclude_self && marks.tile_with_self[stage] == tile_of(first);
  }
  __device__ __forceinline__ static std::int32_t tile_of(std::int64_t first) {
    return static_cast<std::int32_t>(first / tile_columns);
  }
};

/// Stores the results of a thread's rows, which are from m0 on and before `end`; of several slices their sums.
template <bool softmax, int R, int Rows, class T>
__device__ __forceinline__ void store_rows(const CallOf<T>& g, const Row<R, T> (&rows)[Rows], std::int64_t l,
                                           std::int64_t m0, std::int64_t end) {
  const auto thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    const std::int64_t m = m0 + r * threads + thread;
    if (m >= end) return;
    const auto reference = static_cast<double>(rows[r].reference);
    const auto sum = [&](int d) {
      double s = 0;
#pragma unroll
      for (int i = 0; i < R; ++i) s = i == d ? rows[r].sums[i] : s;
      return s;
    };
    if (g.slices == 1) {
      store(g, softmax, l, m, reference, rows[r].total, sum);
      continue;
    }
    const int numbers = state_numbers(softmax, g.rights);
    double* to = g.states + (std::int64_t{blockIdx.x} * rows_of_block<T> + r * threads + thread) * numbers;
    if (softmax) {
      *to++ = reference;
      *to++ = rows[r].total;
    }
    for (int d = 0; d < g.rights; ++d) to[d] = sum(d);
  }
}

/// Up to D dimensions and R columns of V; R = 0 is a log-sum-exp. `some`: if there are ranges, or rows leave out themselves.
template <int D, int R, bool softmax, Of of, class T, bool some>
__global__ void __launch_bounds__(threads, blocks<D, R, T>) add_points(const __grid_constant__ CallOf<T> g) {
  constexpr int words = Record<D, R, softmax, T>::words;
  __shared__ __attribute__((aligned(16))) T records[2][tile_columns * words];
  __shared__ Marks marks;
  const unsigned slice = blockIdx.x / g.units, unit = blockIdx.x - slice * g.units, l = unit / g.row_blocks,
                 block = unit - l * g.row_blocks;
  const BlockRows of_block = block_rows<some>(g, block);
  const std::int64_t m0 = of_block.first;
  if (some && m0 >= of_block.end) return;
  const int thread = static_cast<int>(threadIdx.x);

  T x[rows_of_thread<T>][D];
  Row<R, T> rows[rows_of_thread<T>];
  const auto load_rows = [&](T scale) __attribute__((always_inline)) {
    bool is_long = false;
#pragma unroll
    for (int r = 0; r < rows_of_thread<T>; ++r) {
      g.x.load(x[r], l, std::min<std::int64_t>(m0 + r * threads + thread, of_block.end - 1), g.dimensions);
      if (scale != 0) is_long |= scale_point(x[r], scale);
    }
    return is_long;
  };
  constexpr bool may_scale = !softmax && of == Of::square && std::is_same_v<T, float>;
  T scale = may_scale ? g.root : 0;
  const bool is_long = load_rows(scale);
  if (may_scale && __syncthreads_or(is_long) != 0) {
    scale = 0;
    load_rows(0);
  }

  std::int64_t n = std::int64_t{slice} * g.slice_tiles * tile_columns;
  const std::int64_t end = std::min(n + std::int64_t{g.slice_tiles} * tile_columns, of_block.columns);
  const Copier<D, R, softmax, T, some> copy{records[0], marks, g, l, block, end, of_block.columns};
  copy.begin();
  int stage = 0;
  const auto for_each_chunk = [&](int columns, const auto& use) __attribute__((always_inline)) {
#pragma unroll 1
    for (int first = 0; first < columns; first += chunk_columns)
      use(records[stage] + first * words, std::min(columns - first, chunk_columns), marks.selves[stage] + first);
  };
  bool tile_is_long = __syncthreads_or(copy(0, n, scale)) != 0;
#pragma unroll 1
  for (; n < end; n += tile_columns) {
    const bool next_is_long = copy(1 - stage, n + tile_columns, scale);
    const int columns = static_cast<int>(std::min<std::int64_t>(end - n, tile_columns));
    const bool has_self = copy.has_self(stage, n);
    if constexpr (softmax) {
      const auto add = [&]<bool self>() __attribute__((always_inline)) {
        for_each_chunk(columns, [&](const T* chunk, int count, const std::int32_t* selves) __attribute__((always_inline)) {
          add_softmax<of>(g, rows, x, chunk, count, Selves<self>{selves});
        });
      };
      if (some && has_self)
        add.template operator()<some>();
      else
        add.template operator()<false>();
    } else {
      const auto add = [&]<bool scaled, bool self>() __attribute__((always_inline)) {
        for_each_chunk(columns, [&](const T* chunk, int count, const std::int32_t* selves) __attribute__((always_inline)) {
          add_weighted<of, scaled>(g, rows, x, chunk, count, Selves<self>{selves});
        });
      };
      const bool scaled = may_scale && scale != 0 && !tile_is_long;
      const bool as_they_are = may_scale && (tile_is_long || (some && scaled && has_self));
      if (as_they_are) {  // points, for this tile
        __syncthreads();
        copy(stage, n, 0);
        load_rows(0);
        __syncthreads();
      }
      if (some && has_self)
        add.template operator()<false, some>();
      else if (scaled)
        add.template operator()<may_scale, false>();
      else
        add.template operator()<false, false>();
      if (as_they_are) load_rows(scale);
    }
    tile_is_long = __syncthreads_or(next_is_long) != 0;
    stage = 1 - stage;
  }

  store_rows<softmax>(g, rows, l, m0, of_block.end);
}

/// What a slice's sums are multiplied by, if its reference becomes another one.
__device__ __forceinline__ double factor_of(double reference, double most) {
  return reference == most ? 1. : math::exponential(reference - most);
}

/// Joins slices in ascending order: a thread for each row of each unit.
template <bool softmax, class T>
__global__ void __launch_bounds__(threads) join_points(const __grid_constant__ CallOf<T> g) {
  const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const auto unit = static_cast<unsigned>(row / rows_of_block<T>), l = unit / g.row_blocks;
  const BlockRows of_block = block_rows<true>(g, unit - l * g.row_blocks);
  const std::int64_t m = of_block.first + row % rows_of_block<T>;
  if (m >= of_block.end) return;
  const int numbers = state_numbers(softmax, g.rights);
  const std::int64_t apart = std::int64_t{g.units} * rows_of_block<T> * numbers;
  const double* const first = g.states + row * numbers;
  double most = -std::numeric_limits<double>::infinity(), total = 0;
  if (softmax)
    for (int i = 0; i < g.slices; ++i) most = first[i * apart] > most ? first[i * apart] : most;
  const auto joined = [&](int at) {
    double sum = 0;
    for (int i = 0; i < g.slices; ++i) {
      const double* const of_slice = first + i * apart;
      sum += softmax ? of_slice[at] * factor_of(of_slice[0], most) : of_slice[at];
    }
    return sum;
  };
  if (softmax) total = joined(1);
  store(g, softmax, l, m, most, total, [&](int d) { return joined((softmax ? 2 : 0) + d); });
}

}  // namespace rigel::backends::points

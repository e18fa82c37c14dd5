// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weighted sums and log-sum-exp of functions of Euclidean distances in few dimensions, on CUDA cores. A thread has some rows of X in registers.
// Columns come to shared memory, a tile at a time, as records that all threads read: a row of Z, its bias and its rows of V. So a score of three
// dimensions takes nine instructions, one of which is an exponential, which keeps the special-function unit busy for eight cycles.
//
// Sums of a chunk of columns are in float, those of chunks are added in double.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/detail/reduction.hpp>

namespace rigel::backends::points {

/// What a value is a function of: the squared distance, or the distance.
enum class Of : std::uint8_t { square, root };

/// Threads of a block, rows of each, columns of a tile, and those that are added in float.
inline constexpr int threads = 128, rows_of_thread = 4, rows_of_block = threads * rows_of_thread, tile_columns = threads,
                     chunk_columns = 64;

/// Elements of a matrix of points, f32, f16 or bf16, as floats.
struct Coordinates {
  const void* data;
  Scalar type;
  std::int64_t batch, point, coordinate;  // strides in elements

  /// x[k] of point i: its coordinates, and 0 beyond them.
  template <int dimensions>
  __device__ __forceinline__ void load(float (&x)[dimensions], std::int64_t l, std::int64_t i, int count) const {
    const auto all = [&]<class T>(const T* numbers) __attribute__((always_inline)) {
      const T* const from = numbers + (l * batch + i * point);
#pragma unroll
      for (int k = 0; k < dimensions; ++k) x[k] = k < count ? static_cast<float>(from[k * coordinate]) : 0.f;
    };
    switch (type) {
      case Scalar::f16: return all(static_cast<const half*>(data));
      case Scalar::bf16: return all(static_cast<const bfloat16*>(data));
      default: return all(static_cast<const float*>(data));
    }
  }
};

/// A call. With s the squared distance or the distance, the values of a weighted sum are 2^(factor·s), of a distance
/// 2^(factor·u)·(1 + first·u + second·u²), u = rate·s; and the scores of a softmax or log-sum-exp are factor·s + bias(n).
struct Call {
  Coordinates x, z;
  std::int32_t dimensions;  // D at most
  float factor;
  float rate, first, second;
  float root;  // of −factor, by which points may be multiplied; 0: they are not
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
};

/// What a row keeps of a slice: its sums, and with a softmax the score that they are relative to and the weights' sum before them.
constexpr int state_numbers(bool softmax, int rights) { return rights + (softmax ? 2 : 0); }

inline constexpr double log2_e = 1.44269504088896340736;

/// A record of a column in shared memory: D coordinates, a bias if there can be one, R numbers of V.
template <int D, int R, bool softmax>
struct Record {
  static constexpr int bias = D, v = D + (softmax ? 1 : 0), words = (v + R + 3) / 4 * 4;
};

template <int D, int words>
__device__ __forceinline__ float square_of(const float (&x)[D], const float (&record)[words]) {
  const float first = math::subtract(x[0], record[0]);
  float s = math::multiply(first, first);
#pragma unroll
  for (int k = 1; k < D; ++k) {
    const float difference = math::subtract(x[k], record[k]);
    s = math::fma(difference, difference, s);
  }
  return s;
}
/// The square or its root, within 2 units of roundoff (PTX ISA, sqrt).
template <Of of>
__device__ __forceinline__ float taken(float square) {
  return of == Of::root ? __nvvm_sqrt_approx_ftz_f(square) : square;
}

/// Value of a weighted sum. If points are multiplied by the factor's root, so is the square by the factor.
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

/// Points multiplied by the factor's root are rounded once more, which makes an exponent t wrong by 2u·√t·(|x'| + |z'|): at most 128u·√t if
/// neither is longer than this.
inline constexpr float most_length = 32;

/// Multiplies a point; whether it is too long then, or NaN.
template <int D>
__device__ __forceinline__ bool scale_point(float (&x)[D], float scale) {
  float square = 0;
#pragma unroll
  for (int k = 0; k < D; ++k) {
    x[k] = math::multiply(x[k], scale);
    square = math::fma(x[k], x[k], square);
  }
  return !(square <= most_length * most_length);
}

/// Copies the record of column n to shared memory, its point multiplied by `scale`, if that is not 0; whether it is too long then. A thread
/// copies one of each tile.
template <int D, int R, bool softmax>
__device__ __forceinline__ bool copy_record(const Call& g, float* to, std::int64_t l, std::int64_t n, float scale) {
  using Layout = Record<D, R, softmax>;
  if (n >= g.n) return false;
  float z[D];
  g.z.load(z, l, n, g.dimensions);
  const bool is_long = scale != 0 && scale_point(z, scale);
  float record[Layout::words] = {};
#pragma unroll
  for (int k = 0; k < D; ++k) record[k] = z[k];
  if constexpr (softmax) {
    const double own = g.has_bias ? g.bias.at<double>(l, 0, n) * g.bias_factor : 0.;
    record[Layout::bias] = static_cast<float>(own + g.added);
  }
#pragma unroll
  for (int d = 0; d < R; ++d) record[Layout::v + d] = d < g.rights ? static_cast<float>(g.v(l, n, d)) : 0.f;
#pragma unroll
  for (int i = 0; i < Layout::words; i += 4)
    *reinterpret_cast<float4*>(to + i) = make_float4(record[i], record[i + 1], record[i + 2], record[i + 3]);
  return is_long;
}

/// What a thread keeps of a row: with a softmax Σ exp(score − reference), and the same times V; else the latter alone. The reference is one
/// of the scores, or −∞ before the first. If a chunk's sum exceeds `most_of_chunk`, or times V is not finite, its largest score becomes the
/// reference.
template <int R>
struct Row {
  float reference = -std::numeric_limits<float>::infinity();
  double total = 0;
  double sums[R > 0 ? R : 1] = {};
};
inline constexpr float most_of_chunk = 0x1p60f;

template <Of of, int D, int words>
__device__ __forceinline__ float score_of(const Call& g, const float (&x)[D], const float (&record)[words]) {
  return math::fma(taken<of>(square_of(x, record)), g.factor, record[D]);
}

/// exp(score − reference).
__device__ __forceinline__ float weight_of(float score, float reference) {
  return math::exp2(math::multiply(math::subtract(score, reference), static_cast<float>(log2_e)));
}

/// Adds a chunk to a row whose reference does not suit it: first finds the largest score, then the sums.
template <Of of, int D, int R>
__device__ __forceinline__ void add_carefully(const Call& g, Row<R>& row, const float (&x)[D], const float* records,
                                              int columns) {
  using Layout = Record<D, R, true>;
  constexpr float least = -std::numeric_limits<float>::infinity();
  float most = row.reference;
#pragma unroll 1
  for (int j = 0; j < columns; ++j) {
    float record[Layout::words];
    load_record(record, records + j * Layout::words);
    const float score = score_of<of>(g, x, record);
    most = score > most ? score : most;
  }
  if (most > row.reference) {
    const auto factor = static_cast<double>(weight_of(row.reference, most));
    row.total *= factor;
#pragma unroll
    for (int d = 0; d < R; ++d) row.sums[d] *= factor;
    row.reference = most;
  }
  float total = 0, sums[R > 0 ? R : 1] = {};
#pragma unroll 1
  for (int j = 0; j < columns; ++j) {
    float record[Layout::words];
    load_record(record, records + j * Layout::words);
    const float score = score_of<of>(g, x, record);
    const float w = score == most ? (most == least ? 0.f : 1.f) : weight_of(score, most);
    total = math::add(total, w);
#pragma unroll
    for (int d = 0; d < R; ++d) sums[d] = math::fma(w, record[Layout::v + d], sums[d]);
  }
  row.total += static_cast<double>(total);
#pragma unroll
  for (int d = 0; d < R; ++d) row.sums[d] += static_cast<double>(sums[d]);
}

template <Of of, int D, int R, int Rows>
__device__ __forceinline__ void add_softmax(const Call& g, Row<R> (&rows)[Rows], const float (&x)[Rows][D],
                                            const float* records, int columns) {
  using Layout = Record<D, R, true>;
  float total[Rows] = {}, sums[Rows][R > 0 ? R : 1] = {};
#pragma unroll 8
  for (int j = 0; j < columns; ++j) {
    float record[Layout::words];
    load_record(record, records + j * Layout::words);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const float w = weight_of(score_of<of>(g, x[r], record), rows[r].reference);
      total[r] = math::add(total[r], w);
#pragma unroll
      for (int d = 0; d < R; ++d) sums[r][d] = math::fma(w, record[Layout::v + d], sums[r][d]);
    }
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    bool fits = total[r] <= most_of_chunk;
#pragma unroll
    for (int d = 0; d < R; ++d) fits = fits && math::abs(sums[r][d]) < std::numeric_limits<float>::infinity();
    if (fits) {
      rows[r].total += static_cast<double>(total[r]);
#pragma unroll
      for (int d = 0; d < R; ++d) rows[r].sums[d] += static_cast<double>(sums[r][d]);
    } else {
      add_carefully<of>(g, rows[r], x[r], records, columns);
    }
  }
}

template <Of of, bool scaled, int D, int R, int Rows>
__device__ __forceinline__ void add_weighted(const Call& g, Row<R> (&rows)[Rows], const float (&x)[Rows][D],
                                             const float* records, int columns) {
  using Layout = Record<D, R, false>;
  float sums[Rows][R] = {};
#pragma unroll 8
  for (int j = 0; j < columns; ++j) {
    float record[Layout::words];
    load_record(record, records + j * Layout::words);
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const float value = value_of<of, scaled>(g, square_of(x[r], record));
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
template <class Sums>
__device__ __forceinline__ void store(const Call& g, bool softmax, std::int64_t l, std::int64_t m, double reference,
                                      double total, const Sums& sums) {
  if (softmax && g.rights == 0)
    return g.outputs.store(total == 0 ? -std::numeric_limits<double>::infinity() : reference + math::logarithm(total), l, m);
  for (int d = 0; d < g.rights; ++d) g.outputs.store(softmax ? sums(d) / total : sums(d), l, m, d);
}

/// Blocks that registers leave room for.
template <int D, int R>
inline constexpr int blocks = D <= 5 && R <= 1 ? 4 : 2;

/// Up to D dimensions and R columns of V; R = 0 is a log-sum-exp.
template <int D, int R, bool softmax, Of of>
__global__ void __launch_bounds__(threads, blocks<D, R>) add_points(const __grid_constant__ Call g) {
  using Layout = Record<D, R, softmax>;
  constexpr int words = Layout::words;
  __shared__ __attribute__((aligned(16))) float records[2][tile_columns * words];
  const unsigned slice = blockIdx.x / g.units, unit = blockIdx.x - slice * g.units, l = unit / g.row_blocks;
  const std::int64_t m0 = std::int64_t{unit - l * g.row_blocks} * rows_of_block;
  const int thread = static_cast<int>(threadIdx.x);

  float x[rows_of_thread][D];
  Row<R> rows[rows_of_thread];
  const auto load_rows = [&](float scale) __attribute__((always_inline)) {
    bool is_long = false;
#pragma unroll
    for (int r = 0; r < rows_of_thread; ++r) {
      g.x.load(x[r], l, std::min<std::int64_t>(m0 + r * threads + thread, g.m - 1), g.dimensions);
      if (scale != 0) is_long |= scale_point(x[r], scale);
    }
    return is_long;
  };
  constexpr bool may_scale = !softmax && of == Of::square;
  float scale = may_scale ? g.root : 0;
  const bool is_long = load_rows(scale);
  if (may_scale && __syncthreads_or(is_long) != 0) {
    scale = 0;
    load_rows(0);
  }

  std::int64_t n = std::int64_t{slice} * g.slice_tiles * tile_columns;
  const std::int64_t end = std::min(n + std::int64_t{g.slice_tiles} * tile_columns, g.n);
  int stage = 0;
  const auto copy = [&](int to, std::int64_t first, float by) __attribute__((always_inline)) {
    return first < end && copy_record<D, R, softmax>(g, records[to] + thread * words, l, first + thread, by);
  };
  const auto for_each_chunk = [&](int columns, const auto& use) __attribute__((always_inline)) {
#pragma unroll 1
    for (int first = 0; first < columns; first += chunk_columns)
      use(records[stage] + first * words, std::min(columns - first, chunk_columns));
  };
  bool tile_is_long = __syncthreads_or(copy(0, n, scale)) != 0;
#pragma unroll 1
  for (; n < end; n += tile_columns) {
    const bool next_is_long = copy(1 - stage, n + tile_columns, scale);
    const int columns = static_cast<int>(std::min<std::int64_t>(end - n, tile_columns));
    if constexpr (softmax) {
      for_each_chunk(columns, [&](const float* chunk, int count)
                                  __attribute__((always_inline)) { add_softmax<of>(g, rows, x, chunk, count); });
    } else {
      const bool scaled = may_scale && scale != 0 && !tile_is_long;
      if (may_scale && tile_is_long) {  // points as they are, for this tile
        __syncthreads();
        copy(stage, n, 0);
        load_rows(0);
        __syncthreads();
      }
      if (scaled)
        for_each_chunk(columns, [&](const float* chunk, int count) __attribute__((always_inline)) {
          add_weighted<of, may_scale>(g, rows, x, chunk, count);
        });
      else
        for_each_chunk(columns, [&](const float* chunk, int count)
                                    __attribute__((always_inline)) { add_weighted<of, false>(g, rows, x, chunk, count); });
      if (may_scale && tile_is_long) load_rows(scale);
    }
    tile_is_long = __syncthreads_or(next_is_long) != 0;
    stage = 1 - stage;
  }

#pragma unroll
  for (int r = 0; r < rows_of_thread; ++r) {
    const std::int64_t m = m0 + r * threads + thread;
    if (m >= g.m) return;
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
    double* to = g.states + (std::int64_t{blockIdx.x} * rows_of_block + r * threads + thread) * numbers;
    if (softmax) {
      *to++ = reference;
      *to++ = rows[r].total;
    }
    for (int d = 0; d < g.rights; ++d) to[d] = sum(d);
  }
}

/// What a slice's sums are multiplied by, if its reference becomes another one.
__device__ __forceinline__ double factor_of(double reference, double most) {
  return reference == most ? 1. : math::exponential(reference - most);
}

/// Joins slices in ascending order: a thread for each row of each unit.
template <bool softmax>
__global__ void __launch_bounds__(threads) join_points(const __grid_constant__ Call g) {
  const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const auto unit = static_cast<unsigned>(row / rows_of_block), l = unit / g.row_blocks;
  const std::int64_t m = std::int64_t{unit - l * g.row_blocks} * rows_of_block + row % rows_of_block;
  if (m >= g.m) return;
  const int numbers = state_numbers(softmax, g.rights);
  const std::int64_t apart = std::int64_t{g.units} * rows_of_block * numbers;
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

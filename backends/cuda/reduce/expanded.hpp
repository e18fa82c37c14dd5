// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weighted sums and log-sum-exp of squared Euclidean distances of floats, 16 < K ≤ 64, with products on tensor cores:
//
//     factor·|x − z|² = factor·|x'|² + factor·|z'|² − 2·factor·x'z',      x' = x − c, z' = z − c,
//
// where c is in the middle of some rows of Z. x' and z' are scaled by a power of two and split in two halves each, of which three products are added, the small
// ones first. So in bits, f = |factor|·log₂ e, an exponent is off by less than 165·u·(f|x'|² + f|z'|²) (docs/numerics.md). Where that is more
// than 336·u of the exponent and 512·u, the square is computed by subtraction.
//
// Three launches: prepare_points makes tiles of 64 columns, expand_points adds them to the rows of a slice, join_points (points.hpp) joins slices.
#pragma once

#include <rigel/backends/cuda/arch/convert.hpp>
#include <rigel/backends/cuda/arch/copy_async.hpp>
#include <rigel/backends/cuda/arch/mma.hpp>
#include <rigel/backends/cuda/reduce/points.hpp>

#include <cmath>

namespace rigel::backends::points {

/// What a thread's registers and a tile in memory hold: 64 numbers of each point, in halves; a record of each column.
struct Expanded {
  static constexpr int numbers = 64, steps = numbers / 16, columns = 64, warps = 4, threads = 32 * warps, rows = 16 * warps,
                       stages = 2;
  static constexpr int line = numbers * 2, part = columns * line;  // bytes of a column's halves, and of all columns'
  static constexpr int most_rights = 4;
  static constexpr int copy_pitch = 33;
  static constexpr int record_words(int rights) { return rights == 0 ? 2 : rights == 1 ? 4 : 8; }
  static constexpr int tile_bytes(int rights) { return 2 * part + columns * record_words(rights) * 4; }
  static constexpr int shared_bytes(int rights) { return stages * tile_bytes(rights) + threads * copy_pitch * 4; }
};

/// A call of these kernels. `given` has factor as of its values: of a weighted sum in bits.
struct ExpandedCall {
  Call given;
  float scale;          // of x' and z', a power of two
  float of_products;    // −2·factor/scale²
  float guard;          // 2·f/scale²
  float bits;           // f
  const float* centre;  // K numbers
  unsigned char* tiles;
  std::int64_t first_column;  // of the tiles in memory
  std::int32_t tiles_in_memory, slice_tiles, first_slice;
};

/// What does not depend on memory: factor·d² with |factor|·log₂ e = bits.
inline ExpandedCall expanded_call_of(const Call& given, double factor, double bits) {
  ExpandedCall g{};
  g.given = given;
  g.scale = static_cast<float>(std::exp2(std::floor(std::log2(bits) / 2) + 5));
  const double square = static_cast<double>(g.scale) * static_cast<double>(g.scale);
  g.of_products = static_cast<float>(-2 * factor / square);
  g.guard = static_cast<float>(2 * bits / square);
  g.bits = static_cast<float>(bits);
  return g;
}

/// Of the bound above: 165·S ≤ 336·(S − D) + 512 if D ≤ share·S + spare, with D = 2·f·x'z' in bits.
inline constexpr float share = 0.508f, spare = 1.52f;

/// What the guard has of a point whose squared norm, relative to the centre, is `norm`: half of it. NaN, so that it holds for no pair, if halves
/// may overflow.
__device__ __forceinline__ float guard_of(const ExpandedCall& g, double norm) {
  constexpr double most_half = 60000;
  const double scaled = norm * g.scale * g.scale;
  if (!(scaled <= most_half * most_half)) return std::numeric_limits<float>::quiet_NaN();
  return share * static_cast<float>(norm * g.bits) + spare / 2;
}

/// The median of each coordinate of fifteen rows of Z, or 0 where it is not finite: rows far away do not move it.
template <int = 0>
__global__ void __launch_bounds__(Expanded::numbers) find_middle(const __grid_constant__ ExpandedCall g, float* centre) {
  constexpr int samples = 15;
  const int k = static_cast<int>(threadIdx.x);
  const Call& call = g.given;
  float sorted[samples];
#pragma unroll
  for (int i = 0; i < samples; ++i)
    sorted[i] = k < call.dimensions
                    ? static_cast<const float*>(call.z.data)[call.n * i / samples * call.z.point + k * call.z.coordinate]
                    : 0.f;
#pragma unroll
  for (int last = samples - 1; last > 0; --last)
#pragma unroll
    for (int i = 0; i < last; ++i) {
      const float smaller = fminf(sorted[i], sorted[i + 1]), larger = fmaxf(sorted[i], sorted[i + 1]);
      sorted[i] = smaller;
      sorted[i + 1] = larger;
    }
  const float median = sorted[samples / 2];
  centre[k] = __builtin_fabsf(median) < 0x1p100f ? median : 0.f;
}

/// Two numbers as two halves each.
__device__ __forceinline__ void split(float first, float second, unsigned& high, unsigned& low) {
  high = arch::two_of<half>(first, second);
  struct Two {
    half first, second;
  };
  const auto two = __builtin_bit_cast(Two, high);
  low = arch::two_of<half>(math::subtract(first, static_cast<float>(two.first)),
                           math::subtract(second, static_cast<float>(two.second)));
}

/// Numbers k and k + 1 of a point relative to the centre; 0 beyond K.
__device__ __forceinline__ void load_two(const ExpandedCall& g, const Coordinates& of, std::int64_t i, int k, float& first,
                                         float& second) {
  const float* const from = static_cast<const float*>(of.data) + i * of.point;
  first = k < g.given.dimensions ? math::subtract(from[k * of.coordinate], g.centre[k]) : 0.f;
  second = k + 1 < g.given.dimensions ? math::subtract(from[(k + 1) * of.coordinate], g.centre[k + 1]) : 0.f;
}

/// A column's part of its scores.
__device__ __forceinline__ double bias_of(const Call& g, std::int64_t n) {
  return g.added + (g.has_bias ? g.bias.at<double>(0, 0, n) * g.bias_factor : 0.);
}

/// Tiles of columns: halves of z', upper and lower ones, 16 bytes each in an order that spreads them over banks, and records. A record has
/// what a column adds to its scores' products and to the guard, and its numbers of V. Columns beyond N weigh nothing. Eight threads make a column.
template <int R, bool softmax>
__global__ void __launch_bounds__(256) prepare_columns(const __grid_constant__ ExpandedCall g) {
  using E = Expanded;
  constexpr int words = E::record_words(R);
  const Call& call = g.given;
  const std::int64_t index = std::int64_t{blockIdx.x} * 256 + threadIdx.x, column = index / 8;
  const int chunk = static_cast<int>(index % 8), in_tile = static_cast<int>(column % E::columns);
  if (column >= std::int64_t{g.tiles_in_memory} * E::columns) return;
  const std::int64_t n = g.first_column + column;
  unsigned char* const tile = g.tiles + column / E::columns * E::tile_bytes(R);
  unsigned high[4], low[4];
  double norm = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float first = 0, second = 0;
    if (n < call.n) load_two(g, call.z, n, chunk * 8 + 2 * i, first, second);
    norm += static_cast<double>(first) * first + static_cast<double>(second) * second;
    split(math::multiply(first, g.scale), math::multiply(second, g.scale), high[i], low[i]);
  }
  const int at = in_tile * E::line + (chunk ^ (in_tile & 7)) * 16;
  *reinterpret_cast<uint4*>(tile + at) = make_uint4(high[0], high[1], high[2], high[3]);
  *reinterpret_cast<uint4*>(tile + E::part + at) = make_uint4(low[0], low[1], low[2], low[3]);
#pragma unroll
  for (int apart = 1; apart < 8; apart *= 2) norm += __shfl_xor_sync(~0u, norm, apart);
  if (chunk != 0) return;
  float record[words] = {};
  double bias = 0;
  if (softmax && n < call.n) bias = bias_of(call, n);
  record[0] = n < call.n ? static_cast<float>(bias + norm * static_cast<double>(call.factor))
                         : -std::numeric_limits<float>::infinity();
  record[1] = -guard_of(g, norm);
#pragma unroll
  for (int d = 0; d < R; ++d) record[2 + d] = n < call.n && d < call.rights ? static_cast<float>(call.v(0, n, d)) : 0.f;
  auto* const to = reinterpret_cast<float*>(tile + 2 * E::part) + in_tile * words;
#pragma unroll
  for (int i = 0; i < words; ++i) to[i] = record[i];
}

/// The score of row m and column n by subtraction, −∞ beyond the last column.
template <bool softmax>
__device__ __forceinline__ float score_again(const Call& g, std::int64_t m, std::int64_t n) {
  if (n >= g.n) return -std::numeric_limits<float>::infinity();
  const float* const x = static_cast<const float*>(g.x.data) + m * g.x.point;
  const float* const z = static_cast<const float*>(g.z.data) + n * g.z.point;
  float sum = 0;
#pragma unroll 4
  for (int k = 0; k < g.dimensions; ++k) {
    const float difference = math::subtract(x[k * g.x.coordinate], z[k * g.z.coordinate]);
    sum = math::fma(difference, difference, sum);
  }
  const float score = math::multiply(sum, g.factor);
  return softmax ? math::add(score, static_cast<float>(bias_of(g, n))) : score;
}

/// A warp's sixteen rows as operands, upper and lower halves, and what scores and the guard have of them. A lane has rows lane/4 and
/// lane/4 + 8, and of eight columns two.
struct Operands {
  unsigned high[Expanded::steps][4], low[Expanded::steps][4];
  float score[2], limit[2];
};
__device__ __forceinline__ void load_operands(const ExpandedCall& g, std::int64_t first_row, Operands& own) {
  const Call& call = g.given;
  double norms[2] = {};
#pragma unroll
  for (int k = 0; k < Expanded::steps; ++k)
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const std::int64_t row = first_row + q % 2 * 8;
      float first, second;
      load_two(g, call.x, row < call.m ? row : call.m - 1, k * 16 + static_cast<int>(threadIdx.x) % 4 * 2 + q / 2 * 8, first,
               second);
      norms[q % 2] += static_cast<double>(first) * first + static_cast<double>(second) * second;
      split(math::multiply(first, g.scale), math::multiply(second, g.scale), own.high[k][q], own.low[k][q]);
    }
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    norms[q] += __shfl_xor_sync(~0u, norms[q], 1);
    norms[q] += __shfl_xor_sync(~0u, norms[q], 2);
    own.score[q] = static_cast<float>(norms[q] * static_cast<double>(call.factor));
    own.limit[q] = guard_of(g, norms[q]);
  }
}

/// scores += x'z' of a tile, whose halves are at `base`: small products first.
template <int groups>
__device__ __forceinline__ void multiply_points(float (&scores)[groups][4], const Operands& own, std::uint32_t base,
                                                int lane) {
  using E = Expanded;
#pragma unroll
  for (int n = 0; n < groups; n += 2) {
    const int column = n * 8 + (lane & 7) + (lane >> 4 & 1) * 8, upper = lane >> 3 & 1;
    unsigned z_high[E::steps][4];
#pragma unroll
    for (int k = 0; k < E::steps; ++k) {
      const std::uint32_t at = base + column * E::line + ((k * 2 + upper) ^ (column & 7)) * 16;
      unsigned z_low[4];
      arch::load_matrix<false>(z_high[k], at);
      arch::load_matrix<false>(z_low, at + E::part);
#pragma unroll
      for (int j = 0; j < 2; ++j) arch::Mma<half>::add(scores[n + j], own.high[k], z_low[2 * j], z_low[2 * j + 1]);
#pragma unroll
      for (int j = 0; j < 2; ++j) arch::Mma<half>::add(scores[n + j], own.low[k], z_high[k][2 * j], z_high[k][2 * j + 1]);
    }
#pragma unroll
    for (int k = 0; k < E::steps; ++k)
#pragma unroll
      for (int j = 0; j < 2; ++j) arch::Mma<half>::add(scores[n + j], own.high[k], z_high[k][2 * j], z_high[k][2 * j + 1]);
  }
}

/// Makes scores of products, and computes again those that lost too many digits, in a thread's `copies` in shared memory, which has an index. Records
/// begin with a column's score and what the guard has of it.
template <bool softmax, int words, int groups>
__device__ __forceinline__ void finish_scores(const ExpandedCall& g, float (&scores)[groups][4], const Operands& own,
                                              const float* records, float* copies, std::int64_t first_row,
                                              std::int64_t first_column, int lane) {
  unsigned lost = 0;
#pragma unroll
  for (int j = 0; j < groups; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const record = records + (j * 8 + lane % 4 * 2 + i % 2) * words;
      float& score = scores[j][i];
      lost |= static_cast<unsigned>(!(math::fma(score, g.guard, record[1]) <= own.limit[i / 2])) << (j * 4 + i);
      score = math::add(math::fma(score, g.of_products, record[0]), own.score[i / 2]);
    }
  if (!__any_sync(~0u, lost != 0)) return;
#pragma unroll
  for (int j = 0; j < groups; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) copies[j * 4 + i] = scores[j][i];
#pragma unroll 1
  for (unsigned left = lost; left != 0; left &= left - 1) {
    const int at = __ffs(static_cast<int>(left)) - 1, i = at % 4;
    const std::int64_t m = first_row + i / 2 * 8;
    if (m < g.given.m) copies[at] = score_again<softmax>(g.given, m, first_column + at / 4 * 8 + lane % 4 * 2 + i % 2);
  }
#pragma unroll
  for (int j = 0; j < groups; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[j][i] = copies[j * 4 + i];
}

/// Raises the references of a lane's rows to the largest of a tile's scores, and scales the rows' sums to match. Where a
/// reference is infinite, scores of +∞ become 0 and all other numbers −∞. A row has four lanes.
template <int R, int groups>
__device__ __forceinline__ void raise_references(Row<R, float> (&rows)[2], float (&scores)[groups][4]) {
  constexpr float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    float largest = rows[q].reference;
#pragma unroll
    for (int j = 0; j < groups; ++j) largest = fmaxf(largest, fmaxf(scores[j][2 * q], scores[j][2 * q + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    if (largest != rows[q].reference) {
      const auto factor = static_cast<double>(weight_of(rows[q].reference, largest));
      rows[q].total *= factor;
#pragma unroll
      for (int d = 0; d < R; ++d) rows[q].sums[d] *= factor;
      rows[q].reference = largest;
    }
    if (largest == most || largest == least) {  // weights are 1 of what is +∞, 0 of −∞
#pragma unroll
      for (int j = 0; j < groups; ++j)
#pragma unroll
        for (int i = 2 * q; i < 2 * q + 2; ++i)
          if (scores[j][i] == scores[j][i]) scores[j][i] = scores[j][i] == most ? 0.f : least;
    }
  }
}

/// Adds a tile's weights, and their products with numbers of V, to a lane's rows. Within the tile these are sums of floats.
template <bool softmax, int words, int R, int groups>
__device__ __forceinline__ void add_weights(Row<R, float> (&rows)[2], const float (&scores)[groups][4], const float* records,
                                            int lane) {
  constexpr float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
  float totals[2] = {}, sums[2][R > 0 ? R : 1] = {};
  const float from[2] = {softmax && rows[0].reference != most && rows[0].reference != least ? rows[0].reference : 0.f,
                         softmax && rows[1].reference != most && rows[1].reference != least ? rows[1].reference : 0.f};
#pragma unroll
  for (int j = 0; j < groups; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const record = records + (j * 8 + lane % 4 * 2 + i % 2) * words;
      const float weight = softmax ? weight_of(scores[j][i], from[i / 2]) : math::exp2(scores[j][i]);
      if (softmax) totals[i / 2] = math::add(totals[i / 2], weight);
#pragma unroll
      for (int d = 0; d < R; ++d) sums[i / 2][d] = math::fma(weight, record[2 + d], sums[i / 2][d]);
    }
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    if (softmax) rows[q].total += static_cast<double>(totals[q]);
#pragma unroll
    for (int d = 0; d < R; ++d) rows[q].sums[d] += static_cast<double>(sums[q][d]);
  }
}

/// A block has 64 rows, a warp 16 of them. A tile's scores are in registers.
template <int R, bool softmax>
__global__ void __launch_bounds__(Expanded::threads, (R > 1 ? 2 : 3)) expand_points(const __grid_constant__ ExpandedCall g) {
  using E = Expanded;
  constexpr int words = E::record_words(R), bytes = E::tile_bytes(R), groups = E::columns / 8;
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  auto* const copies = reinterpret_cast<float*>(shared + E::stages * bytes) + threadIdx.x * E::copy_pitch;
  const Call& call = g.given;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const auto row_blocks = static_cast<unsigned>((call.m + E::rows - 1) / E::rows);
  const unsigned slice = blockIdx.x / row_blocks, block = blockIdx.x - slice * row_blocks;
  const std::int64_t m0 = std::int64_t{block} * E::rows + warp * 16;
  const auto row_of = [&](int q) __attribute__((always_inline)) { return m0 + lane / 4 + q * 8; };

  Operands own;
  load_operands(g, row_of(0), own);

  const int first = static_cast<int>(slice) * g.slice_tiles,
            last = first + g.slice_tiles < g.tiles_in_memory ? first + g.slice_tiles : g.tiles_in_memory;
  const auto copy = [&](int stage, int tile) {
    const unsigned char* const from = g.tiles + std::int64_t{tile} * bytes;
    for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += E::threads * 16)
      arch::copy_async<16>(shared + stage * bytes + i, from + i);
  };
  if (first < last) copy(0, first);
  arch::commit_copies();

  Row<R, float> rows[2];
  int stage = 0;
#pragma unroll 1
  for (int tile = first; tile < last; ++tile) {
    if (tile + 1 < last) copy(1 - stage, tile + 1);
    arch::commit_copies();
    arch::wait_for_copies<1>();
    __syncthreads();
    const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + stage * bytes));
    const auto* const records = reinterpret_cast<const float*>(shared + stage * bytes + 2 * E::part);
    float scores[groups][4] = {};
    multiply_points(scores, own, base, lane);
    finish_scores<softmax, words>(g, scores, own, records, copies, row_of(0),
                                  g.first_column + std::int64_t{tile} * E::columns, lane);

    if constexpr (softmax) raise_references(rows, scores);
    add_weights<softmax, words>(rows, scores, records, lane);
    __syncthreads();
    stage = 1 - stage;
  }

  const int numbers = state_numbers(softmax, call.rights);
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const auto joined = [&](double x) __attribute__((always_inline)) {
      x += __shfl_xor_sync(~0u, x, 1);
      return x + __shfl_xor_sync(~0u, x, 2);
    };
    const double total = joined(rows[q].total);
    double all[R > 0 ? R : 1];
#pragma unroll
    for (int d = 0; d < R; ++d) all[d] = joined(rows[q].sums[d]);
    const std::int64_t m = row_of(q);
    if (lane % 4 != 0 || m >= call.m) continue;
    double* to = call.states +
                 (std::int64_t{g.first_slice + static_cast<int>(slice)} * call.units * rows_of_block<float> + m) * numbers;
    if (softmax) {
      *to++ = static_cast<double>(rows[q].reference);
      *to++ = total;
    }
#pragma unroll
    for (int d = 0; d < R; ++d)
      if (d < call.rights) to[d] = all[d];
  }
}

}  // namespace rigel::backends::points

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weighted sums and softmax-weighted sums of 5 to 64 columns of V over squared Euclidean distances of floats, K ≤ 64. Scores are those of
// expanded.hpp, relative to the row's largest so far. Weights, times 2^14, are two halves each, and so are V's numbers, whose columns are scaled by
// powers of two: three products again, the weights' registers being operands as they are. A tile's products are added to sums in float.
//
// Columns come in parts, one after the other; a row's sums are in memory from part to part. Columns of V that hold infinities or NaN are computed
// one by one.
#pragma once

#include <rigel/backends/cuda/reduce/expanded.hpp>

namespace rigel::backends::points {

struct Wide {
  static constexpr int most_rights = 64, threads = Expanded::threads, rows = Expanded::rows, columns = Expanded::columns,
                       stages = 2;
  static constexpr int of_weights = 2 * Expanded::part, records = 4 * Expanded::part, tile_bytes = records + columns * 8;
  static constexpr int shared_bytes = stages * tile_bytes + threads * Expanded::copy_pitch * 4;
  static constexpr float raised = 14;  // weights times 2^14
};

/// What a row keeps: its largest score, the sum of weights relative to it, and these times V.
struct WideRow {
  double largest, total;
  float sums[Wide::most_rights];
};

struct WideCall {
  ExpandedCall expanded;
  unsigned* largest;  // of V's columns, magnitudes as bits
  WideRow* states;
  std::int64_t first_row, row_count;  // of the states in memory
  bool is_first;                      // of the parts
};

/// The power of two that brings the largest number of a column to 2^14 … 2^15; 0 if it is not finite.
__device__ __forceinline__ float scale_of_column(unsigned largest) {
  const int exponent = static_cast<int>(largest >> 23);  // biased
  if (exponent == 255) return 0;
  const int scale = 127 + 14 - (exponent - 127);
  return __builtin_bit_cast(float, static_cast<unsigned>(scale > 254 ? 254 : scale) << 23);
}

/// The largest magnitudes of V's columns, which must be 0 before.
template <int = 0>
__global__ void __launch_bounds__(256) find_largest(const __grid_constant__ WideCall g) {
  const Call& call = g.expanded.given;
  const int d = static_cast<int>(threadIdx.x % Wide::most_rights), apart = static_cast<int>(gridDim.x * 4);
  if (d >= call.rights) return;
  unsigned largest = 0;
  for (std::int64_t n = blockIdx.x * 4 + threadIdx.x / Wide::most_rights; n < call.n; n += apart) {
    const unsigned bits = __builtin_bit_cast(unsigned, static_cast<float>(call.v(0, n, d))) & 0x7fffffffU;
    largest = bits > largest ? bits : largest;
  }
  atomicMax(g.largest + d, largest);
}

/// Tiles as in prepare_columns(), and V's rows as halves in the same order.
template <bool softmax>
__global__ void __launch_bounds__(256) prepare_wide(const __grid_constant__ WideCall g) {
  using E = Expanded;
  const ExpandedCall& e = g.expanded;
  const Call& call = e.given;
  const std::int64_t index = std::int64_t{blockIdx.x} * 256 + threadIdx.x, column = index / 8;
  const int chunk = static_cast<int>(index % 8), in_tile = static_cast<int>(column % E::columns);
  if (column >= std::int64_t{e.tiles_in_memory} * E::columns) return;
  const std::int64_t n = e.first_column + column;
  const bool exists = n < call.n;
  unsigned char* const tile = e.tiles + column / E::columns * Wide::tile_bytes;
  unsigned high[4], low[4], v_high[4], v_low[4];
  double norm = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float first = 0, second = 0, weights[2] = {};
    if (exists) load_two(e, call.z, n, chunk * 8 + 2 * i, first, second);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int d = chunk * 8 + 2 * i + j;
      const float scale = d < call.rights ? scale_of_column(g.largest[d]) : 0.f;
      if (exists && scale != 0) weights[j] = math::multiply(static_cast<float>(call.v(0, n, d)), scale);
    }
    norm += static_cast<double>(first) * first + static_cast<double>(second) * second;
    split(math::multiply(first, e.scale), math::multiply(second, e.scale), high[i], low[i]);
    split(weights[0], weights[1], v_high[i], v_low[i]);
  }
  const int at = in_tile * E::line + (chunk ^ (in_tile & 7)) * 16;
  *reinterpret_cast<uint4*>(tile + at) = make_uint4(high[0], high[1], high[2], high[3]);
  *reinterpret_cast<uint4*>(tile + E::part + at) = make_uint4(low[0], low[1], low[2], low[3]);
  *reinterpret_cast<uint4*>(tile + 2 * E::part + at) = make_uint4(v_high[0], v_high[1], v_high[2], v_high[3]);
  *reinterpret_cast<uint4*>(tile + 3 * E::part + at) = make_uint4(v_low[0], v_low[1], v_low[2], v_low[3]);
#pragma unroll
  for (int apart = 1; apart < 8; apart *= 2) norm += __shfl_xor_sync(~0u, norm, apart);
  if (chunk != 0) return;
  auto* const record = reinterpret_cast<float*>(tile + Wide::records) + in_tile * 2;
  record[0] = exists ? static_cast<float>((softmax ? bias_of(call, n) : 0.) + norm * static_cast<double>(call.factor))
                     : -std::numeric_limits<float>::infinity();
  record[1] = -guard_of(e, norm);
}

/// Raises rows' largest scores to a tile's, by which `sums` and `total` shrink, and gives in `from` what the tile's weights are relative to.
template <int groups>
__device__ __forceinline__ void raise_largest(float (&sums)[groups][4], float (&largest)[2], double (&total)[2],
                                              float (&scores)[groups][4], float (&from)[2]) {
  constexpr float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    float now = largest[q];
#pragma unroll
    for (int j = 0; j < groups; ++j) now = fmaxf(now, fmaxf(scores[j][2 * q], scores[j][2 * q + 1]));
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
    if (now != largest[q]) {
      const float factor = weight_of(largest[q], now);
      total[q] *= static_cast<double>(factor);
#pragma unroll
      for (int j = 0; j < groups; ++j) {
        sums[j][2 * q] = math::multiply(sums[j][2 * q], factor);
        sums[j][2 * q + 1] = math::multiply(sums[j][2 * q + 1], factor);
      }
      largest[q] = now;
    }
    from[q] = now;
    if (now == most || now == least) {  // weights are 1 of what is +∞, 0 of −∞
      from[q] = 0;
#pragma unroll
      for (int j = 0; j < groups; ++j)
#pragma unroll
        for (int i = 2 * q; i < 2 * q + 2; ++i)
          if (scores[j][i] == scores[j][i]) scores[j][i] = scores[j][i] == most ? 0.f : least;
    }
  }
}

/// totals += weights of a tile's scores, products += weights times V, whose halves are at `base`: small products first.
template <int groups>
__device__ __forceinline__ void multiply_weights(float (&products)[groups][4], float (&totals)[2],
                                                 const float (&scores)[groups][4], const float (&from)[2],
                                                 std::uint32_t base, int lane) {
  using E = Expanded;
#pragma unroll
  for (int k = 0; k < E::steps; ++k) {
    unsigned high[4], low[4];
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        float w[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float exponent =
              math::multiply(math::subtract(scores[2 * k + j][2 * q + i], from[q]), static_cast<float>(log2_e));
          w[i] = math::exp2(math::add(exponent, Wide::raised));
          totals[q] = math::add(totals[q], w[i]);
        }
        split(w[0], w[1], high[2 * j + q], low[2 * j + q]);
      }
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      const int line = k * 16 + (lane & 7) + (lane >> 3 & 1) * 8, chunk = 2 * d + (lane >> 4 & 1);
      const std::uint32_t at = base + line * E::line + (chunk ^ (line & 7)) * 16;
      unsigned v_high[4], v_low[4];
      arch::load_matrix<true>(v_high, at);
      arch::load_matrix<true>(v_low, at + E::part);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float (&to)[4] = products[2 * d + j];
        arch::Mma<half>::add(to, high, v_low[2 * j], v_low[2 * j + 1]);
        arch::Mma<half>::add(to, low, v_high[2 * j], v_high[2 * j + 1]);
        arch::Mma<half>::add(to, high, v_high[2 * j], v_high[2 * j + 1]);
      }
    }
  }
}

/// A block has 64 rows, a warp 16. `softmax`: scores have a bias.
template <bool softmax>
__global__ void __launch_bounds__(Wide::threads, 2) add_wide(const __grid_constant__ WideCall g) {
  using E = Expanded;
  constexpr int groups = E::columns / 8;
  constexpr float least = -std::numeric_limits<float>::infinity();
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  auto* const copies = reinterpret_cast<float*>(shared + Wide::stages * Wide::tile_bytes) + threadIdx.x * E::copy_pitch;
  const ExpandedCall& e = g.expanded;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t r0 = std::int64_t{blockIdx.x} * Wide::rows + warp * 16 + lane / 4;  // in the states
  const auto row_of = [&](int q) __attribute__((always_inline)) { return g.first_row + r0 + q * 8; };
  Operands own;
  load_operands(e, row_of(0), own);

  const auto copy = [&](int stage, int tile) {
    const unsigned char* const from = e.tiles + std::int64_t{tile} * Wide::tile_bytes;
    for (int i = static_cast<int>(threadIdx.x) * 16; i < Wide::tile_bytes; i += Wide::threads * 16)
      arch::copy_async<16>(shared + stage * Wide::tile_bytes + i, from + i);
  };
  copy(0, 0);
  arch::commit_copies();

  float sums[groups][4] = {}, largest[2] = {least, least};
  float before[2] = {least, least};  // the largest scores of former parts
  double total[2] = {};
  if (!g.is_first) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      if (r0 + q * 8 >= g.row_count) continue;
      const WideRow& state = g.states[r0 + q * 8];
      largest[q] = before[q] = static_cast<float>(state.largest);
      total[q] = lane % 4 == 0 ? state.total : 0;
    }
  }
  int stage = 0;
#pragma unroll 1
  for (int tile = 0; tile < e.tiles_in_memory; ++tile) {
    if (tile + 1 < e.tiles_in_memory) copy(1 - stage, tile + 1);
    arch::commit_copies();
    arch::wait_for_copies<1>();
    __syncthreads();
    const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + stage * Wide::tile_bytes));
    const auto* const records = reinterpret_cast<const float*>(shared + stage * Wide::tile_bytes + Wide::records);
    float scores[groups][4] = {};
    multiply_points(scores, own, base, lane);
    finish_scores<softmax, 2>(e, scores, own, records, copies, row_of(0), e.first_column + std::int64_t{tile} * E::columns,
                              lane);

    float from[2];
    raise_largest(sums, largest, total, scores, from);
    float totals[2] = {}, products[groups][4] = {};
    multiply_weights(products, totals, scores, from, base + Wide::of_weights, lane);
#pragma unroll
    for (int q = 0; q < 2; ++q) total[q] += static_cast<double>(totals[q]);
#pragma unroll
    for (int j = 0; j < groups; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[j][i] = math::add(sums[j][i], products[j][i]);
    __syncthreads();
    stage = 1 - stage;
  }

#pragma unroll
  for (int q = 0; q < 2; ++q) {
    double all = total[q];
    all += __shfl_xor_sync(~0u, all, 1);
    all += __shfl_xor_sync(~0u, all, 2);
    if (r0 + q * 8 >= g.row_count) continue;
    WideRow& state = g.states[r0 + q * 8];
    const float factor = before[q] == largest[q] ? 1.f : weight_of(before[q], largest[q]);
#pragma unroll
    for (int j = 0; j < groups; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& sum = state.sums[j * 8 + lane % 4 * 2 + i];
        sum = g.is_first ? sums[j][2 * q + i] : math::fma(sum, factor, sums[j][2 * q + i]);
      }
    if (lane % 4 == 0) {
      state.largest = static_cast<double>(largest[q]);
      state.total = all;
    }
  }
}

/// Stores the results of the rows in memory: a thread for each row and column of V.
template <bool softmax>
__global__ void __launch_bounds__(256) store_wide(const __grid_constant__ WideCall g) {
  const Call& call = g.expanded.given;
  const std::int64_t index = std::int64_t{blockIdx.x} * 256 + threadIdx.x, row = index / Wide::most_rights;
  const int d = static_cast<int>(index % Wide::most_rights);
  if (row >= g.row_count || d >= call.rights) return;
  const WideRow& state = g.states[row];
  const std::int64_t m = g.first_row + row;
  const float scale = scale_of_column(g.largest[d]);
  double result = static_cast<double>(state.sums[d]) / static_cast<double>(scale);  // relative to 2^14 and the largest
  if (scale == 0) {                                                                 // V's column is not finite
    result = 0;
    for (std::int64_t n = 0; n < call.n; ++n) {
      const auto score = static_cast<double>(score_again<softmax>(call, m, n));
      const double weight =
          score == state.largest ? (score < 0 && 2 * score == score ? 0. : 1.) : math::exponential(score - state.largest);
      result += weight * call.v(0, n, d);
    }
    result *= 0x1p14;
  }
  if (softmax)
    result /= state.total;
  else
    result *= 0x1p-14 * math::exponential(state.largest);
  call.outputs.store(result, 0, m, d);
}

}  // namespace rigel::backends::points

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ceilings of cdist()'s metrics on a GPU: what a term takes of the unit that it keeps busiest, by the method of the metric's kernels,
// on the units of bench/cuda/floor.hpp, whose rates are measured in the same run.
//
//     floor = max(bytes / bandwidth of a copy, terms · instructions / rate of the unit) + the time of a call
#pragma once

#include <bench/cuda/floor.hpp>

#include <string_view>

namespace bench {

struct MetricWork {
  std::string_view metric;
  Unit unit;
  double instructions;  // of a term: of one coordinate or one word of two rows
  int bytes = 4;        // of an element
};

inline constexpr MetricWork metric_work[] = {
    // FADD, twice
    {"manhattan", Unit::fp32, 2},
    // |x|² + |z|² − 2x·z, of pairs of halves in three products
    {"squared_euclidean", Unit::mma_16, 3},
    {"euclidean", Unit::mma_16, 3},
    {"mahalanobis", Unit::mma_16, 3},
    {"cosine", Unit::mma_16, 3},
    {"correlation", Unit::mma_16, 3},
    // FADD, FMUL by itself, FMUL by the weight, FADD: products are rounded, as on the host
    {"seuclidean", Unit::fp32, 4},
    // FADD elsewhere, FMNMX
    {"chebyshev", Unit::alu, 1},
    // a table and a polynomial: ten instructions; the weight's FMUL
    {"minkowski, p = 1.3", Unit::fp32, 10},
    {"weighted_minkowski, p = 1.3", Unit::fp32, 11},
    // FADD, FMUL, FFMA
    {"minkowski, p = 3", Unit::fp32, 3},
    // as minkowski; a comparison and a selection run elsewhere
    {"minkowski_with_epsilon", Unit::fp32, 10},
    // tf32 in three products
    {"inner_product", Unit::wgmma_tf32, 3},
    // MUFU.RCP; the correction of the quotient and the sums take as long on fp32
    {"canberra", Unit::special, 1},
    // FADD, four times
    {"braycurtis", Unit::fp32, 4},
    {"hellinger", Unit::mma_16, 3},
    // what a scheduler issues, at as many lanes as fp32 has: of fp32 15, the rest for the exponent and for zeros
    {"kl_divergence", Unit::fp32, 21},
    // the same: of fp32 16, MUFU.RCP, MUFU.LG2, a minimum, a comparison and a selection
    {"jensenshannon", Unit::fp32, 21},
    // two sines of a dozen instructions each, and an arcsine and its root of as many together, for two terms
    {"haversine", Unit::fp32, 18},
    // FSET, which gives 0 or 1; FADD elsewhere
    {"hamming", Unit::alu, 1},
    // bits that are set in both rows, of truth values in bytes or of words
    {"jaccard", Unit::mma_bits, 1, 1},
    {"dice", Unit::mma_bits, 1, 1},
    {"rogerstanimoto", Unit::mma_bits, 1, 1},
    {"russellrao", Unit::mma_bits, 1, 1},
    {"sokalsneath", Unit::mma_bits, 1, 1},
    {"yule", Unit::mma_bits, 1, 1},
    {"bit_hamming", Unit::mma_bits, 32},
    {"bit_jaccard", Unit::mma_bits, 32},
    {"bit_dice", Unit::mma_bits, 32},
    {"bit_rogerstanimoto", Unit::mma_bits, 32},
    {"bit_russellrao", Unit::mma_bits, 32},
    {"bit_sokalsneath", Unit::mma_bits, 32},
    {"bit_yule", Unit::mma_bits, 32},
};

/// Seconds of points × points distances with K terms. Throws if the table has no such metric.
inline double metric_floor(const Exec& exec, std::string_view metric, double points, double k) {
  static const Rates rates(exec);
  static const double bandwidth = copy_bandwidth(exec);
  for (const MetricWork& work : metric_work) {
    if (work.metric != metric) continue;
    const double bytes = 2 * points * k * work.bytes + sizeof(float) * points * points;
    return std::max(bytes / bandwidth, points * points * k * work.instructions / rates.of(work.unit)) + call_seconds;
  }
  throw std::runtime_error("the table of ceilings has no metric " + std::string(metric));
}

}  // namespace bench

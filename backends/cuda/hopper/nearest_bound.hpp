// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points of 16-bit floats by wgmma: what a product p of a row and a column, which is exact but for the sums that tensor cores
// truncate, says of their squared distance D = |x − z|² for certain. With
//
//     bound(m,n) = h(n) − p(m,n),  h(n) = (1 − ε)·|z|²/2,
//
// D ≥ 2·bound(m,n) + (1 − ε)·|x|² − slack, whatever was rounded (docs/numerics.md). Points are neither moved nor scaled.
#pragma once

#include <rigel/macros.hpp>

#include <cstdint>

namespace rigel::backends::hopper::nearest {

/// The bound of a column that does not exist, and the largest |x|² and |z|² with which all bounds are below half of it.
inline constexpr float absent = 0x1p100f, largest_square = 0x1p96f;

/// ε of rows of so many numbers, rounded up to a multiple of 16.
constexpr double margin(int numbers) { return (3. * numbers + 53) * 0x1p-24; }

/// The last bits of a bound that a position has replaced.
inline constexpr int position_bits = 6;

/// What turns bounds into distances, of one row.
struct Certainty {
  float square;    // |x|², summed in float
  int k, numbers;  // numbers along K, and with those that fill up

  /// At least the squared distance, as the chain computes it, of each column whose bound is at least this.
  RIGEL_MEMBER double least(float bound) const {
    constexpr double u = 0x1p-24, smallest = 0x1p-148, slack = 0x1p-122;
    const double b = bound, size = b < 0 ? -b : b;
    const double lowered = b - size * ((1 << position_bits) * 0x1p-22);
    const double distance =
        2 * lowered + static_cast<double>(square) * (1 - margin(numbers) - (k + 1) * u) - numbers * slack;
    return distance * (1 - (k + 4) * u) - k * smallest;
  }
  /// Whether all of these columns are farther than one at a distance of `nearest`, also after a square root that is rounded.
  RIGEL_MEMBER bool excludes(float bound, float nearest) const {
    return least(bound) > static_cast<double>(nearest) * (1 + 0x1p-19);
  }
};

}  // namespace rigel::backends::hopper::nearest

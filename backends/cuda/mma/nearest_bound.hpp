// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: what one product of halves says of a squared distance D = |x − z|² for certain.
//
// Rows become x' = S·(x − c) and z' = S·(z − c), with one power of two S and one centre c for all of them, and then halves, which lose dx and
// dz of them. Tensor cores compute
//
//     bound(m,n) = (1 − ε)·|z'|² − w·|dz|² − 2·x'·z',
//
// and S²·D ≥ bound(m,n) + (1 − ε)·|x'|² − w·|dx|² − slack, whatever was rounded. docs/numerics.md derives ε and w. So what a row's other
// columns have at least is known when its best one has been computed by subtraction, and most rows need no other column.
#pragma once

#include <rigel/macros.hpp>

#include <cstdint>

namespace rigel::backends::mma::nearest {

/// The bound of a column that does not exist. Bounds of others are below it.
inline constexpr float absent = 0x1p100f;
/// The largest |x'|² that a row may have: its halves are finite then. Rows beyond it are searched by subtraction, as are those with NaN.
inline constexpr float largest_square = 0x1p29f;
/// max |z'(k)| is at least half of it.
inline constexpr int exponent_of_largest = 5;

/// ε of rows of so many numbers, rounded up to a multiple of 16, and w.
constexpr double margin(int numbers) {
  constexpr double u = 0x1p-24;
  return 0x1p-12 + (7. * numbers + 120) * u;
}
inline constexpr double weight_of_lost = 0x1p12 + 4;

/// What turns bounds into distances, of one row.
struct Certainty {
  double square, lost;  // |x'|², |dx|²
  double margin;        // ε
  double unscale;       // S^-2
  int k, numbers;       // numbers along K, and with those that fill up
  int position_bits;    // of a bound, replaced by a position

  /// At least the squared distance, as the chain computes it, of each column whose bound is at least this.
  RIGEL_MEMBER double least(float bound) const {
    constexpr double u = 0x1p-24, smallest = 0x1p-148;
    const double b = bound, size = b < 0 ? -b : b;
    const double lowered = b - size * (position_bits > 0 ? static_cast<double>(1 << position_bits) * 0x1p-22 : 0.);
    const double scaled = lowered + square * (1 - margin) - lost * weight_of_lost - numbers * 0x1p-33;
    return scaled * unscale * (1 - (k + 4) * u) - k * smallest;
  }
  /// The bound up to which a column may be one of the k nearest, if k columns have bounds up to this one.
  RIGEL_MEMBER float limit(float bound_of_kth) const {
    constexpr double u = 0x1p-24, smallest = 0x1p-148, largest = absent / 2;
    // A distance is at most (bound + …) / (1 − 2·κ), since what its column adds is at most κ·|z'|², and |z'|² ≤ 2·|x'|² + 2·S²·D.
    const double of_column = 2 * margin + 0x1p-9 * (1 + 0x1p-8) + 0x1p-20;
    const double scaled =
        bound_of_kth + square * (1 + 2 * margin + 2 * of_column) + lost * weight_of_lost + numbers * 0x1p-33;
    const double distance =
        (scaled > 0 ? scaled : 0) * unscale / (1 - 2 * of_column) * (1 + (k + 5) * u) * (1 + 0x1p-18) + 3 * k * smallest;
    if (!(distance < 0x1p127)) return static_cast<float>(largest);  // chains may be infinite, and then equal
    const double bound =
        distance / (unscale * (1 - (k + 5) * u)) - square * (1 - margin) + lost * weight_of_lost + numbers * 0x1p-33;
    const double size = bound < 0 ? -bound : bound, raised = bound + size * 0x1p-22;
    return raised < largest ? static_cast<float>(raised) : static_cast<float>(largest);
  }
  /// Whether all of these columns are farther than one at a distance of `nearest`, also after a square root that is rounded.
  RIGEL_MEMBER bool excludes(float bound, float nearest) const {
    return least(bound) > static_cast<double>(nearest) * (1 + 0x1p-19);
  }
};

}  // namespace rigel::backends::mma::nearest

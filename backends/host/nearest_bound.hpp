// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on hosts: what one product of floats says of a squared distance D = |x − z|² for certain.
//
// Rows become x' = S·(x − c) and z' = S·(z − c) with one power of two S and one centre c, rounded to float. The product is a chain in float
//
//     score(m,n) = (1 − 2ε)·|z'|² − 2·x'·z',
//
// and S²·D is from score + (1 − ε)·|x'|² − slack up to (score + (1 + 12ε)·|x'|² + slack) / (1 − 10.5ε), whatever was rounded.
// docs/numerics.md derives it.
#pragma once

#include <rigel/macros.hpp>

#include <cstdint>
#include <limits>

namespace rigel::backends::host::nearest {

/// The score of a column that is not filtered, and a limit that all scores of others are below.
inline constexpr float absent = 0x1p110f, no_limit = 0x1p100f;
/// A limit that all scores exceed.
inline constexpr float nothing = -0x1p110f;
/// The largest |x'(k)| or |z'(k)| that the filter takes.
inline constexpr double largest_coordinate = 0x1p40;
/// The most numbers of a row, and the most results, for which there is a filter.
inline constexpr std::int64_t most_numbers = 1024, most_results = 256;

/// ε for rows of so many numbers.
constexpr double margin(int k) { return (2. * k + 20) * 0x1p-24; }
/// What subnormal numbers lose, even if a processor takes them for 0.
constexpr double slack(int k) { return k * 0x1p-80; }

/// What turns scores into limits of distances and back, of one row. T is the type of the exact chains.
template <class T>
struct Certainty {
  static constexpr double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2,
                          smallest = static_cast<double>(std::numeric_limits<T>::denorm_min()),
                          largest = static_cast<double>(std::numeric_limits<T>::max()) / 2;
  double square;  // |x'|²
  double scale;   // S
  int k;

  /// The score up to which a column may be one of the nearest, if as many columns as are wanted have distances up to this one, as chains
  /// compute them, or roots up to its root.
  RIGEL_MEMBER float limit_of_distance(double distance) const {
    const double reached = distance * (1 + 16 * u);
    if (!(reached < largest)) return no_limit;  // chains may be infinite, and then equal, or NaN
    const double scaled = (reached + k * smallest) * (1 + 2 * (k + 5) * u) * scale * scale;
    const double limit = scaled - (1 - margin(k)) * square + slack(k), size = limit < 0 ? -limit : limit;
    const double raised = limit + size * 0x1p-22;
    return raised < static_cast<double>(no_limit) ? static_cast<float>(raised) : no_limit;
  }
  /// The same if as many columns have scores up to this one.
  RIGEL_MEMBER float limit_of_score(float score) const {
    const double above = static_cast<double>(score) + (1 + 12 * margin(k)) * square + slack(k);
    const double scaled = (above > 0 ? above : 0) / (1 - 10.5 * margin(k));
    return limit_of_distance(scaled / scale / scale * (1 + 2 * (k + 5) * u) + k * smallest);
  }
};

}  // namespace rigel::backends::host::nearest

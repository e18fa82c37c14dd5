// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When two results count as equal (docs/numerics.md): values are equal, any NaN equals any NaN, and so do zeros of either sign.
#pragma once

#include <vector>

namespace support {

template <class T>
bool same(T x, T y) {
  return x == y || (x != x && y != y);
}

inline bool same(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!same(x[i], y[i])) return false;
  return true;
}

/// The larger one of two errors, or NaN if one of them is, which std::max() and std::fmax() lose.
inline double larger(double x, double y) { return y > x || y != y ? y : x; }

/// The class of a number: finite, NaN, +∞ or −∞.
template <class T>
int kind(T x) {
  return x != x ? 2 : x - x != 0 ? (x > 0 ? 1 : -1) : 0;
}

/// The unit roundoff of a type with this many bits of significand.
constexpr double roundoff(int bits) {
  double u = 1;
  for (int i = 0; i < bits; ++i) u /= 2;
  return u;
}

}  // namespace support

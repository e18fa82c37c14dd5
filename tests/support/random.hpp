// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reproducible random numbers: splitmix64 (S. Vigna, https://prng.di.unimi.it/splitmix64.c). The same seed gives the same
// numbers on every machine; tests print it when they fail.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace support {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// From low to high, both included.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[integer(0, static_cast<std::int64_t>(list.size()) - 1)];
  }

 private:
  std::uint64_t state_;
};

}  // namespace support

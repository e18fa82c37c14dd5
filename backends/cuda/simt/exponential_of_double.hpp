// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// e^x of doubles for sums of exponentials: a table in shared memory and a polynomial, eight instructions in double and the
// product with the table's entry, which the caller adds to its sum by one more.
#pragma once

#include <rigel/numeric.hpp>

#include <algorithm>

namespace rigel::backends::simt {

/// e^x = 2^(n/32) · e^r, n the integer nearest to 32·x/ln 2, |r| ≤ h = ln 2/64 and a little. The table holds 2^(j/32) for j from 0
/// to 31 in 32-bit words, so different entries are in different banks. The polynomial of degree 5 is Taylor's of degree 6 with
/// r⁶ replaced: with t = (r/h)², t³ − α·t² + β·t is Chebyshev's polynomial, stretched to vanish at 0, divided by its leading
/// coefficient, and at most 1/26. So the polynomial is within 0.8 u of e^r, and e^x within 5 u with the argument x·(1 ± u/3).
/// Anything below −708 counts as about −708: e^x is never less than 2^-1022. x is at most 700, or +NaN, which stays.
class ExponentialOfDouble {
 public:
  struct Table {
    unsigned low[32], high[32];  // of 2^(j/32), high less j·2^15: adding n·2^15 adds n div 32 to the exponent
  };

  /// The block's threads have filled the table, and met since.
  __device__ __forceinline__ explicit ExponentialOfDouble(const Table& table) : table_(table) {}
  __device__ __forceinline__ static void fill(Table& table, int thread) {
    if (thread >= 32) return;
    const double power = ::exp2(thread / 32.);
    table.low[thread] = __double2loint(power);
    table.high[thread] = __double2hiint(power) - (thread << 15);
  }

  /// sum + e^x.
  __device__ __forceinline__ double add(double x, double sum) const {
    constexpr double magic = 0x1.8p52, per_unit = 46.166241308446828384, unit = 0.021660849392498290;  // 32/ln 2, ln 2/32
    const unsigned high = std::min(static_cast<unsigned>(__double2hiint(x)), 0xc0862000u);  // larger ones are below −708
    x = __hiloint2double(static_cast<int>(high), __double2loint(x));
    const double shifted = math::fma(x, per_unit, magic);
    const unsigned n = __double2loint(shifted), place = (n & 31) * 4;
    const double r = math::fma(math::subtract(shifted, magic), -unit, x);
    constexpr double h = unit / 2, h2 = h * h;
    constexpr double coefficient[] = {
        1. / 120, 1. / 24 + 1.3923048454132638 / 720 * h2, 1. / 6, 0.5 - 0.43078061834694711 / 720 * h2 * h2, 1, 1};
    double power = coefficient[0];
#pragma unroll
    for (int i = 1; i < 6; ++i) power = math::fma(power, r, coefficient[i]);
    const double scale =
        __hiloint2double(static_cast<int>(at(table_.high, place) + (n << 15)), static_cast<int>(at(table_.low, place)));
    return math::fma(scale, power, sum);
  }
  __device__ __forceinline__ double operator()(double x) const { return add(x, 0); }

 private:
  __device__ __forceinline__ static unsigned at(const unsigned* entries, unsigned place) {
    const void* const entry = reinterpret_cast<const char*>(entries) + place;
    return *static_cast<const unsigned*>(__builtin_assume_aligned(entry, sizeof(unsigned)));
  }

  const Table& table_;
};

}  // namespace rigel::backends::simt

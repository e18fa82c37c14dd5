// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ceilings of the host (bench/floor.hpp).
#pragma once

#include <bench/floor.hpp>
#include <bench/host/ceiling.hpp>

#include <map>

namespace bench {

/// The units are loops on vectors of floats (ceiling.hpp); a row counts pairs of the loop for one of the problem. Lanes of 64
/// bits count twice. Bytes and 16-bit floats are widened to 32 bits first, once per operand.
enum class Unit {
  fma,       // x + a·b: one instruction
  minimum,   // min(x, a + b): two instructions
  distance,  // x + |a − b|: three instructions
};

/// Seconds of a call: selection, and a launch on all threads.
inline constexpr double call_seconds = 2e-6;

inline constexpr Work<Unit> work[] = {
    // one fma
    {{"plus_times"}, floats | halves, Unit::fma, 1},
    {{"plus_times"}, doubles, Unit::fma, 2},
    // a product of integers, which takes two turns, and a sum
    {{"plus_times"}, ints | bytes, Unit::fma, 3},
    // a product of 64-bit integers, which takes three turns, and a sum
    {{"plus_times"}, longs, Unit::fma, 8},
    // a sum or product, and a minimum
    {{"min_plus", "max_plus", "max_times", "min_times"}, floats | halves, Unit::minimum, 1},
    {{"min_plus", "max_plus", "max_times", "min_times"}, doubles, Unit::minimum, 2},
    {{"min_plus", "max_plus"}, ints | bytes, Unit::minimum, 1},
    {{"min_plus", "max_plus"}, longs, Unit::minimum, 2},
    // a product of integers, which takes two turns, and a minimum
    {{"max_times", "min_times"}, ints | bytes, Unit::minimum, 1.5},
    // a product of 64-bit integers, which takes three turns, and a minimum
    {{"max_times", "min_times"}, longs, Unit::minimum, 4},
    // 16-bit floats are computed as floats
    {{"min_plus", "max_plus", "max_min", "min_max"}, short_halves, Unit::minimum, 1},
    // lanes of 16 bits
    {{"min_plus", "max_plus", "max_min", "min_max"}, short_ints, Unit::minimum, 0.5},
    // a minimum and a maximum
    {{"max_min", "min_max"}, floats | halves | ints | bytes, Unit::minimum, 1},
    {{"max_min", "min_max"}, doubles | longs, Unit::minimum, 2},
    // two instructions of logic on all bits of a vector
    {{"or_and", "xor_and"}, bytes, Unit::minimum, 0.25},
    {{"or_and", "xor_and"}, words32, Unit::minimum, 1},
    {{"or_and", "xor_and"}, words64, Unit::minimum, 2},
    // an exponential of about a dozen instructions, and the running maximum
    {{"log_plus"}, floats | halves, Unit::fma, 15},
    // the same with a polynomial of twice the degree
    {{"log_plus"}, doubles, Unit::fma, 40},
    // a difference, its absolute value, a sum
    {{"l1"}, floats | halves | ints | bytes, Unit::distance, 1},
    {{"l1"}, doubles | longs, Unit::distance, 2},
    // a difference and an fma
    {{"l2_squared"}, floats | halves, Unit::fma, 2},
    {{"l2_squared"}, doubles, Unit::fma, 4},
    // a difference, a product of integers in two turns, a sum
    {{"l2_squared"}, ints | bytes, Unit::fma, 4},
    // the same in three turns
    {{"l2_squared"}, longs, Unit::fma, 10},
    // a logarithm and an exponential, about a dozen instructions each
    {{"lp"}, floats | halves, Unit::fma, 25},
    // the same with polynomials of twice the degree
    {{"lp"}, doubles, Unit::fma, 80},
    // a difference, its absolute value, a maximum
    {{"linf"}, floats | halves | ints | bytes, Unit::distance, 1},
    {{"linf"}, doubles | longs, Unit::distance, 2},
    // a comparison and a conditional sum
    {{"hamming"}, floats | halves | ints | bytes, Unit::minimum, 1},
    {{"hamming"}, doubles | longs, Unit::minimum, 2},
    // logic, bits counted by two tables of half bytes and their sums, a sum: ten instructions
    {{"bit_hamming"}, bytes | words32, Unit::fma, 10},
    {{"bit_hamming"}, words64, Unit::fma, 20},
    // the same twice
    {{"bit_jaccard"}, bytes | words32, Unit::fma, 20},
    {{"bit_jaccard"}, words64, Unit::fma, 40},
    // a sum, three minima and maxima: the functor's lanes as one vector
    {{"second_least"}, floats, Unit::minimum, 2},
    // a sum, a comparison, selections of the value and of an index of two lanes
    {{"with_argument(min_plus)"}, floats, Unit::minimum, 2.5},
};

/// The measured rates of the loops on all threads, in pairs per second.
class Rates {
 public:
  explicit Rates(const Exec& exec)
      : rates_{{Unit::fma, rate(exec, ceilings().plus_times_f32)},
               {Unit::minimum, rate(exec, ceilings().min_plus_f32)},
               {Unit::distance, rate(exec, ceilings().l1_f32)}} {}

  double of(Unit unit) const { return rates_.at(unit); }

 private:
  static double rate(const Exec& exec, double (*loop)()) {
    double pairs = 0;
    const double seconds = seconds_of(Stopwatch(exec), [&] { pairs = on_all_threads(exec, loop); });
    return pairs / seconds;
  }

  std::map<Unit, double> rates_;
};

}  // namespace bench

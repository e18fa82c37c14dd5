// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ceilings of a GPU (bench/floor.hpp).
#pragma once

#include <bench/cuda/mma_ceiling.hpp>
#include <bench/floor.hpp>

#include <map>

namespace bench {

/// The units, with lanes per clock and multiprocessor of compute capability 9.0.
enum class Unit {
  fp32,        // 128: additions, products and fma of floats
  alu,         // 64: minima, maxima, comparisons, selections, logic, integers; products of integers have as many elsewhere
  fp64,        // 64: doubles on CUDA cores
  special,     // 16: exponentials, logarithms, square roots
  mma_16,      // products of 16-bit floats by mma.sync, whose rate is not documented; so the next two
  mma_64,      // products of doubles
  mma_bits,    // bits that are set in both operands
  wgmma_16,    // 2048: products of 16-bit floats by wgmma; before 9.0 by mma.sync, and so the next two
  wgmma_tf32,  // 1024: products of floats
  wgmma_8      // 4096: products of bytes
};

/// Seconds of a call: a launch, and the host's work for it.
inline constexpr double call_seconds = 4e-6;

inline constexpr Work<Unit> work[] = {
    // tf32 in three products, admitted from K = 107 on
    {{"plus_times"}, floats, Unit::wgmma_tf32, 3, {.least_k = 107}},
    // FFMA
    {{"plus_times"}, floats, Unit::fp32, 1},
    // one product each, exact in the accumulator
    {{"plus_times"}, halves, Unit::wgmma_16, 1},
    {{"plus_times"}, doubles, Unit::mma_64, 1},
    {{"plus_times"}, bytes, Unit::wgmma_8, 1},
    // IMAD
    {{"plus_times"}, ints, Unit::alu, 1},
    // IMAD.WIDE, which takes two turns, and two IMAD
    {{"plus_times"}, longs, Unit::alu, 4},
    // FADD or FMUL on fp32, FMNMX
    {{"min_plus", "max_plus", "max_times", "min_times"}, floats | halves, Unit::alu, 1},
    // DADD or DMUL, DSETP; the two selections run on the ALU meanwhile
    {{"min_plus", "max_plus", "max_times", "min_times"}, doubles, Unit::fp64, 2},
    // VIADDMNMX
    {{"min_plus", "max_plus"}, ints | bytes, Unit::alu, 1},
    // IMAD elsewhere, VIMNMX
    {{"max_times", "min_times"}, ints | bytes, Unit::alu, 1},
    // the sum takes two additions, the minimum two comparisons and two selections
    {{"min_plus", "max_plus"}, longs, Unit::alu, 6},
    // the product runs elsewhere in four turns; the minimum as above
    {{"max_times", "min_times"}, longs, Unit::alu, 4},
    // two pairs at a time: VIADDMNMX.16x2; HADD2 elsewhere and HMNMX2
    {{"min_plus", "max_plus"}, short_ints | short_halves, Unit::alu, 0.5},
    // FMNMX or VIMNMX, twice
    {{"max_min", "min_max"}, floats | halves | ints | bytes, Unit::alu, 2},
    // two selections for each of two comparisons, which run on fp64
    {{"max_min", "min_max"}, doubles, Unit::alu, 4},
    // two comparisons and two selections, twice
    {{"max_min", "min_max"}, longs, Unit::alu, 8},
    // HMNMX2 or VIMNMX.16x2 twice, for two pairs
    {{"max_min", "min_max"}, short_ints | short_halves, Unit::alu, 1},
    // packed along K, as many bits as the word has
    {{"or_and", "xor_and"}, words32, Unit::mma_bits, 32, {.joined = true}},
    {{"or_and", "xor_and"}, words64, Unit::mma_bits, 64, {.joined = true}},
    // LOP3, for two halves of a long word, or one byte
    {{"or_and", "xor_and"}, bytes | words32, Unit::alu, 1},
    {{"or_and", "xor_and"}, words64, Unit::alu, 2},
    // exponentials as pairs of halves in three products, admitted from K = 892 on
    {{"log_plus"}, floats, Unit::mma_16, 3, {.least_k = 892}},
    // MUFU.EX2
    {{"log_plus"}, floats | halves, Unit::special, 1},
    // an exponential: a reduction in three steps, a polynomial of degree ten, the sum
    {{"log_plus"}, doubles, Unit::fp64, 14},
    // FADD, twice
    {{"l1"}, floats | halves, Unit::fp32, 2},
    // DADD, twice
    {{"l1"}, doubles, Unit::fp64, 2},
    // subtraction, absolute value, addition, one of them as IMAD elsewhere
    {{"l1"}, ints, Unit::alu, 2},
    // two subtractions, two conditional negations, two additions; a comparison elsewhere as IMAD
    {{"l1"}, longs, Unit::alu, 6},
    // VABSDIFF4 with a sum: four pairs
    {{"l1"}, bytes, Unit::alu, 0.25},
    // in double, where the guard of the next row does not admit a tile
    {{"l2_squared"}, floats, Unit::mma_64, 1, {.least_k = 54273}},
    // |x|² + |z|² − 2x·z, of pairs of halves in three products
    {{"l2_squared"}, floats, Unit::mma_16, 3},
    // FADD, FFMA
    {{"l2_squared"}, halves, Unit::fp32, 2},
    // DADD, DFMA
    {{"l2_squared"}, doubles, Unit::fp64, 2},
    // a subtraction; IMAD elsewhere
    {{"l2_squared"}, ints, Unit::alu, 1},
    // two subtractions; the product runs elsewhere in four turns
    {{"l2_squared"}, longs, Unit::alu, 4},
    // VABSDIFF4 for four pairs; IDP4A elsewhere
    {{"l2_squared"}, bytes, Unit::alu, 0.25},
    // FADD, FMUL, FFMA
    {{"lp"}, floats, Unit::fp32, 3, {.p = 3}},
    // MUFU.SQRT, the products on fp32
    {{"lp"}, floats, Unit::special, 1, {.p = 1.5}},
    // a table and a polynomial, for exponents from 1 to 3.5: ten instructions
    {{"lp"}, floats, Unit::fp32, 10, {.p = 1.3}},
    // MUFU.LG2, MUFU.EX2
    {{"lp"}, floats | halves, Unit::special, 2},
    // a logarithm and an exponential, in two polynomials of degree ten with their reductions
    {{"lp"}, doubles, Unit::fp64, 30},
    // FADD elsewhere, FMNMX
    {{"linf"}, floats | halves, Unit::alu, 1},
    // DADD, DSETP
    {{"linf"}, doubles, Unit::fp64, 2},
    // subtraction elsewhere as IMAD, absolute value, VIMNMX
    {{"linf"}, ints | bytes, Unit::alu, 2},
    // as l1, with two comparisons and two selections instead of the last two additions
    {{"linf"}, longs, Unit::alu, 8},
    // FSET, which gives 0 or 1; FADD elsewhere
    {{"hamming"}, floats | halves, Unit::alu, 1},
    // DSETP, DADD
    {{"hamming"}, doubles, Unit::fp64, 2},
    // ISETP; the conditional addition elsewhere as IMAD
    {{"hamming"}, ints | bytes, Unit::alu, 1},
    // two comparisons, two additions
    {{"hamming"}, longs, Unit::alu, 4},
    // bits that are set in both words; the number in each comes from a pass over the operands
    {{"bit_hamming", "bit_jaccard"}, bytes, Unit::mma_bits, 8},
    {{"bit_hamming", "bit_jaccard"}, words32, Unit::mma_bits, 32},
    {{"bit_hamming", "bit_jaccard"}, words64, Unit::mma_bits, 64},
    // FADD elsewhere, three FMNMX
    {{"second_least"}, floats, Unit::alu, 3},
    // FADD elsewhere, FMNMX; two comparisons and a selection for eight pairs
    {{"with_argument(min_plus)"}, floats, Unit::alu, 1.375},
};

/// The measured rates of the units, in instructions per second; of tensor cores in products or bits.
class Rates {
 public:
  explicit Rates(const Exec& exec)
      : rates_{
            {Unit::fp32, 2 * ceiling<pair::l1_f32>(exec)},      // two additions in each of its pairs
            {Unit::alu, ceiling<pair::or_and_b32>(exec) / 32},  // one instruction for 32 of its pairs
            {Unit::fp64, ceiling<pair::tensor_f64>(exec) / 2},  // half of the tensor cores' rate since 8.0
            {Unit::special, ceiling<pair::exp2_f32>(exec)},        {Unit::mma_16, ceiling<pair::tensor_f16>(exec)},
            {Unit::mma_64, ceiling<pair::tensor_f64>(exec)},       {Unit::mma_bits, ceiling<pair::tensor_b1>(exec)},
            {Unit::wgmma_16, wgmma<pair::tensor_f16>(exec, 2048)}, {Unit::wgmma_tf32, wgmma<pair::tensor_tf32>(exec, 1024)},
            {Unit::wgmma_8, wgmma<pair::tensor_s8>(exec, 4096)}} {}

  double of(Unit unit) const { return rates_.at(unit); }

 private:
  // The lanes of wgmma at the clock under the load of mma.sync, on a GPU that has it.
  template <class Pair>
  static double wgmma(const Exec& exec, double lanes) {
    const auto& device = exec.cuda_device_prop();
    if (device.major != 9 || device.minor != 0) return ceiling<Pair>(exec);
    return lanes * device.multiProcessorCount * clock_rate<Pair>(exec);
  }

  std::map<Unit, double> rates_;
};

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a thread continues the chain of an output: in which type it sums, how the operands lie in scratch memory, and one step.
// Each form has the bits of the reference, but for PowerChain.
#pragma once

#include <rigel/backends/portable/shape.hpp>

#include <cstdint>

namespace rigel::backends::portable {

/// The semiring whose steps continue a chain of S: S itself, or for the zoo's selective semirings of 16-bit floats the same one in
/// float. The 16-bit ⊗ is that of floats, rounded to 16 bits; rounding is monotone, so min_k round(x_k) = round(min_k x_k), and
/// likewise for maxima.
template <class S>
struct chain_semiring {
  using type = S;
};
template <template <class, class> class S, ShortFloat T>
  requires(in_zoo<S<T, T>> && is_selective<S<T, T>>)
struct chain_semiring<S<T, T>> {
  using type = S<T, float>;
};

/// A chain as the reference continues it.
template <class S>
struct ReferenceChain {
  using Semiring = typename chain_semiring<S>::type;
  using Operand = operand_t<Semiring>;
  using Stored = word_of<Operand>;
  using Sum = typename Semiring::accumulator;
  using Accumulator = typename S::accumulator;
  static constexpr int packed = 1;  // elements along K in a Stored
  static constexpr bool counts_lines = false;

  static RIGEL_FUNCTION Sum start(const Accumulator& x) { return converted<Sum>(x); }
  static RIGEL_FUNCTION Accumulator result(const Sum& x) { return converted<Accumulator>(x); }
  static RIGEL_FUNCTION Sum step(const S& s, const Sum& x, const Operand& a, const Operand& b, std::int64_t k) {
    return rigel::step(semiring(s), x, a, b, k);
  }
  static RIGEL_FUNCTION const Semiring& semiring(const S& s)
    requires std::is_same_v<Semiring, S>
  {
    return s;
  }
  static RIGEL_FUNCTION Semiring semiring(const S&) { return {}; }

 private:
  template <class To, class From>
  static RIGEL_FUNCTION To converted(const From& x) {
    if constexpr (std::is_same_v<To, From>)
      return x;
    else
      return static_cast<To>(x);
  }
};

/// Powers of floats by math::power_approximately(), a tenth of the instructions of the platform's power on GPUs that have a
/// special-function unit which Rigel knows.
template <class S>
struct PowerChain : ReferenceChain<S> {
  static RIGEL_FUNCTION float step(const S& s, float x, float a, float b, std::int64_t) {
    return math::add(x, math::power_approximately(math::abs(math::subtract(a, b)), s.p));
  }
};

/// The number of set bits in a row of words, by a carry-save adder: it counts the bits of two words of 32 bits by one population
/// count of their carries (the first stage of the method of R. Harley and D. Seal; H. S. Warren, Hacker's Delight, 2nd ed.,
/// section 5-1). A GPU counts bits at a quarter of the rate of logic. The number is 2·carries + the bits of `ones`, modulo 2^32.
struct BitCount {
  std::uint32_t ones, carries;

  static RIGEL_FUNCTION BitCount from(std::int32_t count) {
    const auto n = static_cast<std::uint32_t>(count);
    return {n & 1, n >> 1};
  }
  RIGEL_FUNCTION BitCount plus(std::uint64_t word) const {
    const auto low = static_cast<std::uint32_t>(word), high = static_cast<std::uint32_t>(word >> 32);
    const std::uint32_t differ = low ^ high, carry = (low & high) | (ones & differ);
    return {ones ^ differ, carries + static_cast<std::uint32_t>(math::population_count(carry))};
  }
  RIGEL_FUNCTION std::int32_t value() const {
    return static_cast<std::int32_t>(2 * carries + static_cast<std::uint32_t>(math::population_count(ones)));
  }
};

/// Codes whose bits are counted: elements along K are packed into words of 64 bits, the last one filled up with zeros.
template <class S>
struct CountChain;

template <class Word>
struct CountChain<bit_hamming<Word>> {
  using Operand = std::uint64_t;
  using Stored = std::uint64_t;
  using Sum = BitCount;
  using Accumulator = std::int32_t;
  static constexpr int packed = 64 / (8 * static_cast<int>(sizeof(Word)));
  static constexpr bool counts_lines = false;

  static RIGEL_FUNCTION Sum start(Accumulator x) { return BitCount::from(x); }
  static RIGEL_FUNCTION Accumulator result(Sum x) { return x.value(); }
  static RIGEL_FUNCTION Sum step(const bit_hamming<Word>&, Sum x, Operand a, Operand b, std::int64_t) {
    return x.plus(a ^ b);
  }
};

/// It counts |a ∧ b|. The kernel counts |a| and |b| once for each row and column, and |a ∨ b| = |a| + |b| − |a ∧ b|.
template <class Word>
struct CountChain<bit_jaccard<Word>> {
  using Operand = std::uint64_t;
  using Stored = std::uint64_t;
  using Sum = BitCount;
  using Accumulator = bit_counts<std::int32_t>;
  static constexpr int packed = 64 / (8 * static_cast<int>(sizeof(Word)));
  static constexpr bool counts_lines = true;

  static RIGEL_FUNCTION Sum start(Accumulator) { return {0, 0}; }
  static RIGEL_FUNCTION Accumulator result(Sum x) { return {x.value(), 0}; }
  static RIGEL_FUNCTION Sum step(const bit_jaccard<Word>&, Sum x, Operand a, Operand b, std::int64_t) {
    return x.plus(a & b);
  }
  /// The sum of an output whose lines have `a` and `b` set bits.
  static RIGEL_FUNCTION Accumulator of_lines(Accumulator x, std::int32_t a, std::int32_t b) {
    return {x.both, math::subtract(math::add(a, b), x.both)};
  }
};

template <class S>
struct tile_chain {
  using type = ReferenceChain<S>;
};
template <class S>
  requires counts_bits<S>
struct tile_chain<S> {
  using type = CountChain<S>;
};
/// The chain of the kernel `tiles`.
template <class S>
using TileChain = typename tile_chain<S>::type;

}  // namespace rigel::backends::portable

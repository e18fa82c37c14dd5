// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings whose operands and accumulator have 16 bits, computed two outputs at a time: neighbours along n share a
// register, and one instruction works on both halves (VIADDMNMX.S16x2; HADD2 and HMNMX2).
#pragma once

#include <rigel/semirings.hpp>

namespace rigel::backends::simt {

/// use(value, i, j) for all values of an array in registers.
template <class T, int M, int N, class Use>
__device__ __forceinline__ void for_each_value(T (&values)[M][N], const Use& use) {
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int j = 0; j < N; ++j) use(values[i][j], i, j);
}

/// Two 16-bit numbers in a register, as a Clang vector: for these the compiler has the paired instructions.
template <class T>
struct pair {};
template <> struct pair<std::int16_t> {
  typedef std::int16_t type __attribute__((ext_vector_type(2)));
};
template <> struct pair<half> {
  typedef _Float16 type __attribute__((ext_vector_type(2)));
};
template <> struct pair<bfloat16> {
  typedef __bf16 type __attribute__((ext_vector_type(2)));
};
template <class T> using pair_t = typename pair<T>::type;

/// (x, y), and its halves.
template <class T>
RIGEL_FUNCTION pair_t<T> paired(T x, T y) {
  struct {
    T first, second;
  } const both{x, y};
  return __builtin_bit_cast(pair_t<T>, both);
}
template <class T>
RIGEL_FUNCTION T half_of(pair_t<T> pair, int which) {
  const auto bits = __builtin_bit_cast(std::uint32_t, pair);
  return __builtin_bit_cast(T, static_cast<std::uint16_t>(bits >> (16 * which)));
}

/// S on pairs: ⊕ and ⊗ for each half. Both halves of `a` hold the same number.
template <class S>
struct Packed {
  using element = typename S::element;
  using accumulator = pair_t<typename S::accumulator>;
  using operand = accumulator;
  /// Whether the GPU lacks the instructions: those for integers came with sm_90.
  static constexpr bool emulated =
#if RIGEL_ON_DEVICE && __CUDA_ARCH__ < 900
      std::is_integral_v<element>;
#else
      false;
#endif
  /// Whether ⊗ adds floats. Additions then broadcast the low half of `a`. HADD2 can do that and HFMA2.MMA cannot, so ptxas
  /// does not use HFMA2.MMA for every second addition; with HADD2 alone there is more room for minima.
  static constexpr bool adds = !std::is_integral_v<element> && (std::is_same_v<S, min_plus<element, element>> ||
                                                                std::is_same_v<S, max_plus<element, element>>);
  S semiring;
  RIGEL_MEMBER static accumulator identity() { return paired<element>(S::identity(), S::identity()); }
  RIGEL_MEMBER accumulator multiply(operand a, operand b) const { return semiring.multiply(a, b); }
  RIGEL_MEMBER accumulator add(accumulator x, accumulator y) const { return semiring.add(x, y); }
  RIGEL_MEMBER accumulator step(accumulator x, operand a, operand b) const {
    if constexpr (emulated) {
      // In the upper half of a word, sums wrap around and compare as 16-bit numbers do.
      const std::int32_t high = rigel::step(semiring, upper(x), upper(a), upper(b), 0);
      const std::int32_t low = rigel::step(semiring, raised(x), upper(a), raised(b), 0);
      return __builtin_bit_cast(accumulator, __byte_perm(low, high, 0x7632));
    } else if constexpr (adds) {
      return rigel::step(semiring, x, __builtin_shufflevector(a, a, 0, 0), b, 0);
    } else {
      return rigel::step(semiring, x, a, b, 0);
    }
  }

 private:
  RIGEL_MEMBER static std::int32_t upper(operand p) { return __builtin_bit_cast(std::uint32_t, p) & 0xffff0000u; }
  RIGEL_MEMBER static std::int32_t raised(operand p) { return __builtin_bit_cast(std::uint32_t, p) << 16; }
};

/// Whether S is computed on pairs.
template <class S> inline constexpr bool is_packed = false;
template <template <class, class> class S, class T>
  requires(requires { typename pair_t<T>; } &&
           (std::is_same_v<S<T, T>, min_plus<T, T>> || std::is_same_v<S<T, T>, max_plus<T, T>> ||
            std::is_same_v<S<T, T>, max_min<T, T>> || std::is_same_v<S<T, T>, min_max<T, T>>))
inline constexpr bool is_packed<S<T, T>> = true;

/// What a thread computes with: S, or its form on pairs.
template <class S> using OnPairs = std::conditional_t<is_packed<S>, Packed<S>, S>;
/// Outputs, along n, of an accumulator of `OnPairs<S>`.
template <class S> inline constexpr int outputs_of = is_packed<S> ? 2 : 1;
/// Whether the halves are computed one by one.
template <class S> inline constexpr bool is_emulated = false;
template <class S>
  requires is_packed<S>
inline constexpr bool is_emulated<S> = Packed<S>::emulated;

}  // namespace rigel::backends::simt

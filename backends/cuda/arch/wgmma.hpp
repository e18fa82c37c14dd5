// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", sm_90a): x += A·B by the 128 threads of a warpgroup. A
// has 64 rows, B has N columns, both have 32 bytes along K and are in shared memory, where descriptors give their layout
// (tile/swizzled_slab.hpp). Warp w holds rows 16·w to 16·w + 15 of x in mma.sync's layout (arch/mma.hpp); x[j] has its
// numbers in the eight columns from 8·j on.
#pragma once

#include <rigel/numeric.hpp>

#include <cstddef>
#include <cstdint>

namespace rigel::arch {

/// Whether the code that is being compiled may use wgmma. Files of users are compiled for other architectures, too, whose kernels
/// for sm_90a are never launched.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool has_wgmma = true;
#else
inline constexpr bool has_wgmma = false;
#endif

/// A product's types in PTX's words, with the number of k in 32 bytes.
template <class Element>
struct WgmmaTypes;
template <> struct WgmmaTypes<half> {
  using Accumulator = float;
  static constexpr const char* name = "k16.f32.f16.f16";
};
template <> struct WgmmaTypes<bfloat16> {
  using Accumulator = float;
  static constexpr const char* name = "k16.f32.bf16.bf16";
};
/// f32 read as tf32: the lower 13 bits of a mantissa are ignored.
template <> struct WgmmaTypes<float> {
  using Accumulator = float;
  static constexpr const char* name = "k8.f32.tf32.tf32";
};
/// Bytes in 32-bit integers that wrap around.
template <> struct WgmmaTypes<std::int8_t> {
  using Accumulator = std::int32_t;
  static constexpr const char* name = "k32.s32.s8.s8";
};
template <> struct WgmmaTypes<std::uint8_t> {
  using Accumulator = std::int32_t;
  static constexpr const char* name = "k32.s32.u8.u8";
};

namespace detail {

/// The text of an asm statement, assembled at compile time.
class AsmText {
 public:
  constexpr AsmText& operator<<(const char* text) {
    while (*text) text_[size_++] = *text++;
    return *this;
  }
  constexpr AsmText& operator<<(int number) {
    if (number >= 10) *this << number / 10;
    text_[size_++] = static_cast<char>('0' + number % 10);
    return *this;
  }
  constexpr const char* data() const { return text_; }
  constexpr std::size_t size() const { return size_; }

 private:
  char text_[1024] = {};
  std::size_t size_ = 0;
};

template <class Element, int n, bool a_by_lines, bool b_by_lines>
constexpr AsmText wgmma_text() {
  AsmText text;
  text << "{.reg .pred keep; setp.ne.b32 keep, %[keep], 0; wgmma.mma_async.sync.aligned.m64n" << n
       << WgmmaTypes<Element>::name << " {%0";
  for (int i = 1; i < n / 2; ++i) text << ",%" << i;
  text << "}, %[a], %[b], keep";
  if (std::is_floating_point_v<typename WgmmaTypes<Element>::Accumulator>) text << ", 1, 1";  // signs of A and B
  if (sizeof(Element) == 2) text << ", " << a_by_lines << ", " << b_by_lines;
  return text << ";}";
}

/// A number that an asm statement reads and writes.
template <class Accumulator>
constexpr AsmText in_out() {
  AsmText text;
  return text << (std::is_floating_point_v<Accumulator> ? "+f" : "+r");
}

}  // namespace detail

#define RIGEL_FOUR(j) (io)(x[j][0]), (io)(x[j][1]), (io)(x[j][2]), (io)(x[j][3])
#define RIGEL_32(j)                                                                                             \
  RIGEL_FOUR(j), RIGEL_FOUR(j + 1), RIGEL_FOUR(j + 2), RIGEL_FOUR(j + 3), RIGEL_FOUR(j + 4), RIGEL_FOUR(j + 5), \
      RIGEL_FOUR(j + 6), RIGEL_FOUR(j + 7)
#define RIGEL_WGMMA(...) asm volatile((text) : __VA_ARGS__ : [a] "l"(a), [b] "l"(b), [keep] "r"(static_cast<int>(keep)))

/// x = A·B, plus the previous x if `keep`; valid when the instruction's group is complete. `by_lines`: the operand is M- or
/// N-major (16-bit numbers only).
template <class Element, bool a_by_lines, bool b_by_lines, int columns>
__device__ __forceinline__ void wgmma(typename WgmmaTypes<Element>::Accumulator (&x)[columns][4], std::uint64_t a,
                                      std::uint64_t b, bool keep = true) {
  static_assert(sizeof(Element) == 2 || (!a_by_lines && !b_by_lines));
  static_assert(columns == 8 || columns == 16 || columns == 24 || columns == 32);
  constexpr detail::AsmText text = detail::wgmma_text<Element, 8 * columns, a_by_lines, b_by_lines>();
  constexpr detail::AsmText io = detail::in_out<typename WgmmaTypes<Element>::Accumulator>();
  if constexpr (columns == 8)
    RIGEL_WGMMA(RIGEL_32(0));
  else if constexpr (columns == 16)
    RIGEL_WGMMA(RIGEL_32(0), RIGEL_32(8));
  else if constexpr (columns == 24)
    RIGEL_WGMMA(RIGEL_32(0), RIGEL_32(8), RIGEL_32(16));
  else
    RIGEL_WGMMA(RIGEL_32(0), RIGEL_32(8), RIGEL_32(16), RIGEL_32(24));
}

#undef RIGEL_WGMMA
#undef RIGEL_32
#undef RIGEL_FOUR

/// Required before a warpgroup's first wgmma, and after any other instruction has written its registers.
__device__ __forceinline__ void fence_wgmma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Ends a group of the warpgroup's products.
__device__ __forceinline__ void commit_wgmma() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most `groups` of the warpgroup's groups are in flight.
template <int groups>
__device__ __forceinline__ void wait_for_wgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(groups) : "memory");
}

/// Makes the compiler assume that x is written here, so that reads of x stay after a wait.
template <class Accumulator, int columns>
__device__ __forceinline__ void hold(Accumulator (&x)[columns][4]) {
  constexpr detail::AsmText io = detail::in_out<Accumulator>();
#pragma unroll
  for (int j = 0; j < columns; ++j)
#pragma unroll
    for (int r = 0; r < 4; ++r) asm volatile("" : (io)(x[j][r]) : : "memory");
}

/// Sets the registers per thread of this warpgroup, a multiple of 8. Those beyond the launch's count come from warpgroups
/// that gave up some of theirs.
template <int count>
__device__ __forceinline__ void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(count));
}
template <int count>
__device__ __forceinline__ void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));
}

}  // namespace rigel::arch

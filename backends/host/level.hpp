// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instruction sets (levels) for which one library holds the loops. Every function in this family's Kokkos-free headers is a
// template on its level or always inlined. So translation units that are compiled for different instruction sets share no
// symbol.
#pragma once

// The attributes of an innermost loop. On AArch64 it is scheduled for Neoverse V2: Clang's generic schedule loads so early that
// accumulators leave their registers.
#if defined(__aarch64__)
#define RIGEL_HOST_LOOP [[gnu::noinline, gnu::target("tune=neoverse-v2")]]
#else
#define RIGEL_HOST_LOOP [[gnu::noinline, clang::min_vector_width(512)]]
#endif

// What calls innermost loops: there are hundreds of copies of it, and it takes little of the time.
#define RIGEL_HOST_OUTER [[gnu::noinline, clang::minsize]]

namespace rigel::backends::host {

// A level also says whether fma, and conversions from and to half, are instructions; library functions take many times as long.

/// x86-64-v2: SSE4.2.
struct v2 {
  static constexpr const char *name = "v2", *needs = "instructions of x86-64-v2";
  static constexpr int vector_bytes = 16, registers = 16;
  static constexpr bool has_fma = false, has_half = false;
};
/// x86-64-v3: AVX2 and FMA.
struct v3 {
  static constexpr const char *name = "v3", *needs = "instructions of x86-64-v3";
  static constexpr int vector_bytes = 32, registers = 16;
  static constexpr bool has_fma = true, has_half = true;
};
/// x86-64-v4: AVX-512 F, BW, CD, DQ and VL.
struct v4 {
  static constexpr const char *name = "v4", *needs = "instructions of x86-64-v4";
  static constexpr int vector_bytes = 64, registers = 32;
  static constexpr bool has_fma = true, has_half = true;
};

/// AArch64: NEON, which every such processor has.
struct neon {
  static constexpr const char *name = "neon", *needs = "NEON";
  static constexpr int vector_bytes = 16, registers = 32;
  static constexpr bool has_fma = true, has_half = true;
};
/// AArch64 with SVE vectors of exactly 256 bits.
struct sve256 {
  static constexpr const char *name = "sve256", *needs = "SVE vectors of 256 bits";
  static constexpr int vector_bytes = 32, registers = 32;
  static constexpr bool has_fma = true, has_half = true;
};
/// AArch64 with SVE vectors of exactly 512 bits.
struct sve512 {
  static constexpr const char *name = "sve512", *needs = "SVE vectors of 512 bits";
  static constexpr int vector_bytes = 64, registers = 32;
  static constexpr bool has_fma = true, has_half = true;
};

/// The instruction set of the translation unit: for users' functors, and for processors without a level of their own.
template <int Bytes, int Registers, bool Fma = true, bool Half = true>
struct native_level {
  static constexpr const char *name = "native", *needs = "instructions for which Rigel was compiled";
  static constexpr int vector_bytes = Bytes, registers = Registers;
  static constexpr bool has_fma = Fma, has_half = Half;
};
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
using native = native_level<64, 32>;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
using native = native_level<32, 16>;
#elif defined(__AVX2__)
using native = native_level<32, 16, false, false>;
#elif defined(__x86_64__)
using native = native_level<16, 16, false, false>;
#elif defined(__ARM_FEATURE_SVE_BITS) && (__ARM_FEATURE_SVE_BITS == 256 || __ARM_FEATURE_SVE_BITS == 512)
using native = native_level<__ARM_FEATURE_SVE_BITS / 8, 32>;
#else
using native = native_level<16, 32>;
#endif

}  // namespace rigel::backends::host

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much shared memory a multiprocessor has (CUDA C++ Programming Guide, Compute Capabilities), and stores to it under a
// condition. These are predicated: a branch would cut the code around it in two, for each of which registers are assigned.
#pragma once

#include <cstdint>

namespace rigel::arch {

inline constexpr int shared_memory_of_sm_80 = 164 * 1024, shared_memory_of_sm_86 = 100 * 1024,
                     shared_memory_of_sm_90 = 228 * 1024;  // bytes

/// Whether a multiprocessor that has so much holds `blocks` blocks with `bytes` each; every block takes 1 KB more.
constexpr bool holds(int shared_memory, int blocks, int bytes) { return blocks * (bytes + 1024) <= shared_memory; }

__device__ __forceinline__ void store_if(bool condition, float* shared, float value) {
  asm volatile("{.reg .pred does; setp.ne.b32 does, %0, 0; @does st.shared.f32 [%1], %2;}"
               :
               : "r"(static_cast<unsigned>(condition)), "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
                 "f"(value)
               : "memory");
}
__device__ __forceinline__ void store_if(bool condition, float* shared, const float (&values)[4]) {
  asm volatile("{.reg .pred does; setp.ne.b32 does, %0, 0; @does st.shared.v4.f32 [%1], {%2, %3, %4, %5};}"
               :
               : "r"(static_cast<unsigned>(condition)), "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
                 "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}

}  // namespace rigel::arch

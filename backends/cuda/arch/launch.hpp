// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programmatic dependent launch: a launch starts before the previous one in the stream ends, and waits before it touches
// memory (PTX ISA, "griddepcontrol", sm_90; CUDA C++ Programming Guide, "Programmatic Dependent Launch"). The first function
// does nothing unless this launch has the attribute, the second nothing unless the next launch has it. Code for older architectures
// has neither, so its launches must not have the attribute: LaunchFacts tells.
#pragma once

namespace rigel::arch {

/// Waits until the previous launches are complete and their writes are visible.
__device__ __forceinline__ void wait_for_launches_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets blocks of the next launch start as soon as all blocks of this one have started and called this. The next launch must
/// wait itself.
__device__ __forceinline__ void allow_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace rigel::arch

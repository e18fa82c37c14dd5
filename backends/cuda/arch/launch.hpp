// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A launch that need not wait for the one before it in the stream until it touches memory (PTX ISA, "griddepcontrol", sm_90; CUDA C++
// Programming Guide, "Programmatic Dependent Launch"). Without that attribute of this launch the first does nothing, without it of the next one the second.
#pragma once

namespace rigel::arch {

/// Waits until the launches before this one are complete and what they wrote can be seen.
__device__ __forceinline__ void wait_for_launches_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// Blocks of the next launch, where it waits itself, may begin when all blocks of this one have begun and have said this.
__device__ __forceinline__ void allow_next_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace rigel::arch

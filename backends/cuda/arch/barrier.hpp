// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mbarrier and the barrier of a cluster (PTX ISA, "Parallel Synchronization and Communication Instructions", sm_90). A phase
// of an mbarrier completes when as many threads have arrived as it was initialised for and all announced bytes have come.
#pragma once

#include <cstdint>

namespace rigel::arch {

__device__ __forceinline__ void initialize_barrier(std::uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}

/// Makes initialised barriers visible to the other blocks of the cluster and to copies.
__device__ __forceinline__ void fence_initialized_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Arrives, and announces the bytes that copies bring in this phase.
__device__ __forceinline__ void arrive_and_expect(std::uint32_t barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}

/// Arrives at the same barrier of block `rank` of the cluster.
__device__ __forceinline__ void arrive_at(std::uint32_t barrier, unsigned rank) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there];}"
      :
      : "r"(barrier), "r"(rank)
      : "memory");
}

/// Waits until the phase of the given parity is complete.
__device__ __forceinline__ void wait(std::uint32_t barrier, unsigned parity) {
  asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again;}"
               :
               : "r"(barrier), "r"(parity)
               : "memory");
}

/// The same, and acquires what other blocks of the cluster have written.
__device__ __forceinline__ void wait_for_others(std::uint32_t barrier, unsigned parity) {
  asm volatile(
      "{.reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1; @!done bra again;}"
      :
      : "r"(barrier), "r"(parity)
      : "memory");
}

/// The rank of this block in its cluster.
__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// The cluster's barrier in two steps; work between them overlaps the wait. Of memory it orders initialised barriers only:
/// with `.release`, ptxas would wait until all that the thread has written is visible GPU-wide.
__device__ __forceinline__ void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// Waits for all threads of the cluster.
__device__ __forceinline__ void synchronize_cluster() {
  arrive_in_cluster();
  wait_for_cluster();
}

/// The address, in block `rank` of the cluster, of what this block has at `shared`.
__device__ __forceinline__ std::uint32_t address_at(std::uint32_t shared, unsigned rank) {
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared), "r"(rank));
  return there;
}

struct FourWords {
  std::uint32_t word[4];
};
/// Stores 16 bytes in the shared memory of a block of the cluster; that block's `barrier` counts them.
__device__ __forceinline__ void store_at(std::uint32_t to, const FourWords& x, std::uint32_t barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
               :
               : "r"(to), "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(barrier)
               : "memory");
}

}  // namespace rigel::arch

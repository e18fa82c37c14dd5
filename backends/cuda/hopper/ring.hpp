// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ring of slabs in shared memory. A producer thread waits until a place is empty and enqueues the tensor copies of the next
// slab. Consumer warpgroups wait until it is full, multiply it, and release it. Each place has a barrier for either wait.
#pragma once

#include <rigel/backends/cuda/arch/barrier.hpp>
#include <rigel/backends/cuda/arch/tensor_copy.hpp>
#include <rigel/backends/cuda/arch/wgmma.hpp>
#include <rigel/backends/cuda/tile/swizzled_slab.hpp>

#include <algorithm>

namespace rigel::backends::hopper {

/// Elements along K whose products of 16-bit numbers are summed on tensor cores at most; longer sums are cut into parts of part_k.
/// Part of the bits of every kernel, and multiples of a slab's depth.
inline constexpr int sum_k = 4096, part_k = 2048;

/// A place in the ring of slabs, and the phase parity of its barriers.
template <int stages>
struct Place {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  /// Skips slabs that the other warpgroup multiplies.
  __device__ __forceinline__ void advance(int slabs) {
    const unsigned to = static_cast<unsigned>(stage + slabs);
    stage = static_cast<int>(to % stages);
    parity ^= to / stages % 2;
  }
};

/// What a ring has in shared memory besides its slabs.
template <int stages>
struct RingBarriers {
  std::uint64_t full[stages], empty[stages];
};

/// A ring by the address of its barriers.
template <int stages>
struct Ring {
  using Barriers = RingBarriers<stages>;
  std::uint32_t barriers;

  __device__ __forceinline__ std::uint32_t full(int stage) const { return barriers + stage * 8; }
  __device__ __forceinline__ std::uint32_t empty(int stage) const {
    return barriers + static_cast<std::uint32_t>(offsetof(Barriers, empty)) + stage * 8;
  }
  __device__ __forceinline__ void wait_for_full(Place<stages> p) const { arch::wait(full(p.stage), p.parity); }
  /// The phase before the first one counts as complete: all places are empty at first.
  __device__ __forceinline__ void wait_for_empty(Place<stages> p) const { arch::wait(empty(p.stage), p.parity ^ 1); }
};

/// Each number is the sum of `Planes` numbers, one in each plane. `Products` of their products are computed: all, or those
/// of planes p and q with p + q < Planes. With `Promoted`, a slab's products are summed by themselves, then added to the
/// previous sums in float.
template <int Planes, int Products, bool Promoted>
struct Parts {
  static constexpr int planes = Planes, products = Products;
  static constexpr int smallest =
      Products == Planes * Planes ? 2 * (Planes - 1) : Planes - 1;  // p + q of the smallest products
  static constexpr bool promoted = Promoted;
  static constexpr int row_bytes = Planes == 1 ? 128 : 64;  // of a slab
};

/// The slabs of a ring by their address: for each place the planes of A, then those of B.
template <class OfElement, class OfParts, class Shape, tile::Direction of_a, tile::Direction of_b>
struct Slabs {
  using Element = OfElement;
  using Parts = OfParts;
  using Accumulator = typename arch::WgmmaTypes<Element>::Accumulator;
  using A = tile::SwizzledSlab<Element, of_a, Shape::m, Parts::row_bytes>;
  using B = tile::SwizzledSlab<Element, of_b, Shape::n, Parts::row_bytes>;
  static constexpr int stages = Shape::stages, bytes = Parts::planes * (A::bytes + B::bytes);  // of a place
  static constexpr bool long_sums = Shape::long_sums;
  std::uint32_t first;

  __device__ __forceinline__ std::uint32_t a(int stage, int plane) const { return first + stage * bytes + plane * A::bytes; }
  __device__ __forceinline__ std::uint32_t b(int stage, int plane) const {
    return first + stage * bytes + Parts::planes * A::bytes + plane * B::bytes;
  }
  static constexpr int count(int k) { return (k + A::depth - 1) / A::depth; }
};

/// Enqueues the copies of one of `shares` shares of a slab, which is that from `line` and `k` on of matrix z. `Blocks` is a
/// set of the cluster's blocks, shifted by `shift`, that get them; if it is empty, only this block does.
template <class Slab, int shares, unsigned Blocks = 0>
__device__ __forceinline__ void copy_share(const CUtensorMap& map, std::uint32_t to, int share, int line, int k, int z,
                                           std::uint32_t barrier, int shift = 0) {
#pragma unroll
  for (int copy = 0; copy < Slab::template copies<shares>; ++copy) {
    const int of_line = line + Slab::template line_of<shares>(share, copy), of_k = k + Slab::template k_of<shares>(share);
    const std::uint32_t at = to + Slab::template place_of<shares>(share, copy);
    const int x = Slab::by_lines ? of_line : of_k, y = Slab::by_lines ? of_k : of_line;
    if constexpr (Blocks != 0)
      arch::copy_tensor_to(static_cast<std::uint16_t>(Blocks << shift), at, &map, x, y, z, barrier);
    else
      arch::copy_tensor(at, &map, x, y, z, barrier);
  }
}

/// x += y.
template <class Sum, int rows, int columns>
__device__ __forceinline__ void add_sums(Sum (&x)[rows][columns][4], const Sum (&y)[rows][columns][4]) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) x[i][j][r] = math::add(x[i][j][r], y[i][j][r]);
}

/// Waits for the warpgroup's products.
template <class Sum, int rows, int columns>
__device__ __forceinline__ void complete(Sum (&x)[rows][columns][4]) {
  arch::wait_for_wgmma<0>();
#pragma unroll
  for (int row = 0; row < rows; ++row) arch::hold(x[row]);
}

/// What a consumer warpgroup knows of the ring. `group_m`: its first row in the slabs of A.
template <class Slabs>
struct Consumer {
  using Parts = typename Slabs::Parts;
  Ring<Slabs::stages> ring;
  Slabs slabs;
  int group_m;
  Place<Slabs::stages> place = {};
  int before = 0;  // the stage of the previous slab, still in use while the next one is multiplied

  /// Enqueues the products of the slab at `place`, the smallest first, to be added to x; if promoted, to nothing.
  template <class Sum, int rows, int columns>
  __device__ __forceinline__ void multiply_slab(Sum (&x)[rows][columns][4]) const {
    using A = typename Slabs::A;
    using B = typename Slabs::B;
#pragma unroll
    for (int both = Parts::smallest; both >= 0; --both)
#pragma unroll
      for (int plane = std::max(0, both - Parts::planes + 1); plane <= std::min(both, Parts::planes - 1); ++plane)
#pragma unroll
        for (int step = 0; step < A::steps; ++step) {
          const bool begins = both == Parts::smallest && plane == std::max(0, both - Parts::planes + 1) && step == 0;
#pragma unroll
          for (int row = 0; row < rows; ++row)
            arch::wgmma<typename Slabs::Element, A::by_lines, B::by_lines>(
                x[row], A::descriptor(slabs.a(place.stage, plane), group_m + 64 * row, step),
                B::descriptor(slabs.b(place.stage, both - plane), 0, step), !Parts::promoted || !begins);
        }
  }

  /// Adds the products of slabs from `first` to `end` to `sums`. release(slab, stage) marks a slab as empty; if sums are not
  /// promoted, the last one's products are still in flight, and it is not released.
  template <class Sum, int rows, int columns, class Release>
  __device__ __forceinline__ void multiply_slabs(Sum (&sums)[rows][columns][4], int first, int end, const Release& release) {
#pragma unroll 1
    for (int slab = first; slab < end; ++slab) {
      ring.wait_for_full(place);
      arch::fence_wgmma();
      if constexpr (Parts::promoted) {
        Sum of_slab[rows][columns][4];
        multiply_slab(of_slab);
        arch::commit_wgmma();
        arch::wait_for_wgmma<0>();
        release(slab, place.stage);
#pragma unroll
        for (int row = 0; row < rows; ++row) arch::hold(of_slab[row]);
        add_sums(sums, of_slab);
      } else {
        multiply_slab(sums);
        arch::commit_wgmma();
        arch::wait_for_wgmma<1>();
        if (slab > 0) release(slab - 1, before);
        before = place.stage;
      }
      place.advance();
    }
  }

  /// The same for all slabs of a tile, long sums in parts. The last part's products may be in flight.
  template <class Sum, int rows, int columns, class Release>
  __device__ __forceinline__ void multiply_tile(Sum (&sums)[rows][columns][4], int count, const Release& release) {
    if constexpr (Slabs::long_sums) {
      constexpr int depth = Slabs::A::depth;
      static_assert(!Parts::promoted && sum_k % depth == 0 && part_k % depth == 0);
      const int of_part = count > sum_k / depth ? part_k / depth : sum_k / depth;
#pragma unroll 1
      for (int slab = 0; slab < count; slab += of_part) {
        Sum part[rows][columns][4] = {};
        multiply_slabs(part, slab, std::min(slab + of_part, count), release);
        complete(part);
        add_sums(sums, part);
      }
    } else {
      multiply_slabs(sums, 0, count, release);
    }
  }

  /// For a warpgroup without rows of C: releases each slab as it comes, and leaves the tensor cores to the other one.
  template <class Release>
  __device__ __forceinline__ void skip_tile(int count, const Release& release) {
#pragma unroll 1
    for (int slab = 0; slab < count; ++slab, place.advance()) {
      ring.wait_for_full(place);
      release(slab, place.stage);
    }
  }
};

}  // namespace rigel::backends::hopper

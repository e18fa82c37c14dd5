// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A main loop whose sums are short: those of a few slabs, a level, are summed by themselves, then added to the previous sums in
// the accumulator's type.
#pragma once

#include <rigel/backends/cuda/mma/products.hpp>
#include <rigel/backends/cuda/mma/slabs.hpp>

namespace rigel::backends::mma {

/// `Loop` adds the products of a slab. A level has `k` elements along K.
template <class Loop, class Slabs, int k>
class LevelLoop {
  using Sums = typename Slabs::Sums;
  static constexpr int rows = Slabs::rows, columns = Slabs::columns, slabs_of_level = k / Slabs::depth;
  static_assert(k % Slabs::depth == 0);

 public:
  __device__ __forceinline__ void begin(const Slabs& slabs) { loop_.begin(slabs); }
  __device__ __forceinline__ void begin_tile(const Slabs& slabs, int stage, int slabs_of_tile) {
    loop_.begin_tile(slabs, stage, slabs_of_tile);
    for_each_accumulator<rows, columns>([&](int i, int j, int r) { of_level_[i][j][r] = 0; });
  }
  template <class Copies>
  __device__ __forceinline__ void add_slab(Sums&, const Slabs& slabs, Copies& copies, Stages at) {
    loop_.add_slab(of_level_, slabs, copies, at);
  }
  __device__ __forceinline__ void end_slab(Sums& sums, int slab, int slabs_of_tile) {
    if ((slab + 1) % slabs_of_level == 0 || slab + 1 == slabs_of_tile)
      for_each_accumulator<rows, columns>([&](int i, int j, int r) {
        sums[i][j][r] = math::add(sums[i][j][r], of_level_[i][j][r]);
        of_level_[i][j][r] = 0;
      });
  }
  __device__ __forceinline__ void end_tile(Sums&) {}

 private:
  Loop loop_;
  Sums of_level_;
};

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main loop for numbers as they are in memory, step by step. Fragments of the next step are read while the current ones
// are multiplied; if floats are split in registers, no registers are left for that.
#pragma once

#include <rigel/backends/cuda/mma/products.hpp>
#include <rigel/backends/cuda/mma/slabs.hpp>

namespace rigel::backends::mma {

template <class Slabs>
class FragmentLoop : public LoopDefaults {
  using Sums = typename Slabs::Sums;
  using Mma = typename Slabs::Mma;
  static constexpr int steps = Slabs::steps;
  static constexpr bool split = Slabs::decomposition.products > 1, ahead = !split;
  static constexpr bool promoted = Slabs::decomposition.promoted == Slabs::depth;  // slab by slab

 public:
  __device__ __forceinline__ void begin(const Slabs& slabs) {
    Slabs::wait();
    if constexpr (ahead) read(slabs, 0, 0, 0);
  }

  template <class Copies>
  __device__ __forceinline__ void add_slab(Sums& sums, const Slabs& slabs, Copies& copies, Stages at) {
    if constexpr (promoted) {
      Sums of_slab = {};
      add_products_of(of_slab, slabs, copies, at);
      add_sums(sums, of_slab);
    } else {
      add_products_of(sums, slabs, copies, at);
    }
  }

 private:
  __device__ __forceinline__ void read(const Slabs& slabs, int which, int stage, int step) {
    slabs.read_a(a_[which], stage, step);
    slabs.read_b(b_[which], stage, step);
  }

  template <class Copies>
  __device__ __forceinline__ void add_products_of(Sums& x, const Slabs& slabs, Copies& copies, Stages at) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      if (!ahead) {
        read(slabs, 0, at.now, step);
      } else if (step + 1 < steps) {
        read(slabs, (step + 1) % 2, at.now, step + 1);
      } else {
        Slabs::wait();
        read(slabs, 0, at.next, 0);
      }
      if (step + 1 < steps) copies.start(slabs, at.free, step, steps - 1);
      if constexpr (split)
        add_split_products<Mma>(x, a_[0], b_[0]);
      else
        add_products<Mma>(x, a_[step % 2], b_[step % 2]);
    }
    if (!ahead) Slabs::wait();
  }

  typename Slabs::FragmentsA a_[1 + ahead];
  typename Slabs::FragmentsB b_[1 + ahead];
};

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main loop for doubles. A fragment is replaced by that of the next step as soon as its last product is issued, so
// fragments take half the registers.
#pragma once

#include <rigel/backends/cuda/mma/slabs.hpp>

namespace rigel::backends::mma {

template <class Slabs>
class DoubleLoop : public LoopDefaults {
  using Sums = typename Slabs::Sums;
  using Mma = typename Slabs::Mma;
  static constexpr int rows = Slabs::rows, columns = Slabs::columns, steps = Slabs::steps;
  static_assert(Slabs::planes == 1 && Slabs::decomposition.products == 1);
  static_assert(rows > 1, "B's fragments of the next slab are read after Slabs::wait()");

 public:
  __device__ __forceinline__ void begin(const Slabs&) { Slabs::wait(); }

  /// Reads the first fragments again, so that they take no registers during the previous store.
  __device__ __forceinline__ void begin_tile(const Slabs& slabs, int stage, int slabs_of_tile) {
    if (!(slabs_of_tile > 0)) return;
    slabs.read_a(a_, stage, 0);
    slabs.read_b(b_, stage, 0);
  }

  template <class Copies>
  __device__ __forceinline__ void add_slab(Sums& sums, const Slabs& slabs, Copies& copies, Stages at) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const bool last = step + 1 == steps;
      const std::uint32_t from = slabs.address(last ? at.next : at.now);
      const int step_read = last ? 0 : step + 1;
#pragma unroll
      for (int i = 0; i < rows; ++i) {
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          Mma::add(sums[i][j], a_[i], b_[j / 2][j % 2 * 2], b_[j / 2][j % 2 * 2 + 1]);
          if (i + 1 == rows && j % 2 == 1) slabs.read_columns(b_[j / 2], j / 2, from, step_read);
        }
        if (i == 0 && last) Slabs::wait();
        if (i == 0 && step == 0) copies.start(slabs, at.free);
        slabs.read_rows(a_[i], i, from, step_read);
      }
    }
  }

 private:
  typename Slabs::FragmentsA a_;
  typename Slabs::FragmentsB b_;
};

}  // namespace rigel::backends::mma

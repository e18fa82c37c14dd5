// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main loop for pairs of halves whose sums are short: a step's products are summed by themselves, a few columns at a time,
// then added to the previous sums in float.
#pragma once

#include <rigel/backends/cuda/mma/products.hpp>
#include <rigel/backends/cuda/mma/slabs.hpp>

namespace rigel::backends::mma {

/// Floats as pairs of halves, the second one the rest itself. Sums of steps of 16 k are added to the previous sums, or first to
/// those of the same 512 k.
inline constexpr Decomposition pairs_by_steps{2, 3, 16}, pairs_by_levels{2, 3, 16, 512};

template <class Slabs>
class StepLoop : public LoopDefaults {
  using Sums = typename Slabs::Sums;
  using Mma = typename Slabs::Mma;
  static constexpr int rows = Slabs::rows, columns = Slabs::columns, steps = Slabs::steps;
  static_assert(Slabs::planes == 2 && Slabs::decomposition.products == 3 &&
                Slabs::decomposition.promoted == Slabs::depth / steps);

 public:
  __device__ __forceinline__ void begin(const Slabs&) {}

  template <class Copies>
  __device__ __forceinline__ void add_slab(Sums& sums, const Slabs& slabs, Copies& copies, Stages at) {
    Slabs::wait();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      slabs.read_a(a_[0], at.now, step, 0);
      slabs.read_a(a_[1], at.now, step, 1);
      read_two(slabs, 0, at.now, step);
      if (step == 0) copies.start(slabs, at.free);
#pragma unroll
      for (int j = 0; j < columns / 2; ++j) {
        if (j + 1 < columns / 2) read_two(slabs, j + 1, at.now, step);
        typename Mma::Accumulator of_step[rows][2][4] = {};
        add(of_step, a_[1], b_[0][j % 2]);
        add(of_step, a_[0], b_[1][j % 2]);
        add(of_step, a_[0], b_[0][j % 2]);
        for_each_accumulator<rows, 2>([&](int i, int c, int r) __attribute__((always_inline)) {
          auto& sum = sums[i][2 * j + c][r];
          sum = math::add(sum, of_step[i][c][r]);
          asm volatile("" : "+f"(sum));  // added here: after the branches of Copies::advance(), all of a step would be live
        });
      }
    }
  }

 private:
  using Register = typename Slabs::Register;

  /// Reads both parts of two blocks of eight columns; the next two are read ahead.
  __device__ __forceinline__ void read_two(const Slabs& slabs, int j, int stage, int step) {
    const std::uint32_t from = slabs.address(stage);
    slabs.read_columns(b_[0][j % 2], j, from, step, 0);
    slabs.read_columns(b_[1][j % 2], j, from, step, 1);
  }
  __device__ __forceinline__ static void add(typename Mma::Accumulator (&x)[rows][2][4], const Register (&a)[rows][4],
                                             const Register (&b)[4]) {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int c = 0; c < 2; ++c) Mma::add(x[i][c], a[i], b[2 * c], b[2 * c + 1]);
  }

  typename Slabs::FragmentsA a_[2];  // of both parts
  Register b_[2][2][4];
};

}  // namespace rigel::backends::mma

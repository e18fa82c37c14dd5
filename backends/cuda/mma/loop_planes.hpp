// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main loop for floats in two or three planes: the products of a slab in the order of a table, the smallest first. A
// fragment is read one product before its first use and stays until it has met all others of its step.
#pragma once

#include <rigel/backends/cuda/mma/products.hpp>
#include <rigel/backends/cuda/mma/slabs.hpp>

#include <array>
#include <type_traits>
#include <utility>

namespace rigel::backends::mma {

/// Floats as pairs of halves, the second `rest_scale` times the rest. Products with a rest have sums of their own; if promoted,
/// they are scaled down in the sums of a slab before the third product is added.
inline constexpr Decomposition pairs{2, 3}, promoted_pairs{2, 3, 32};
inline constexpr float rest_scale = 0x1p11f;

/// A product of a slab's fragments, of plane a of A and plane b of B in a step, and whether it is the first use of either
/// fragment.
struct Turn {
  int step, a, b;
  bool first_of_a, first_of_b;
};
/// The products of a slab in their order: step by step, plane by plane of A, the smallest first. With `largest_last`, those
/// of both first planes come after all others.
template <int planes, int of_step, int steps, bool largest_last>
constexpr auto turns_of_slab() {
  std::array<Turn, steps * of_step> list{};
  int count = 0;
  bool seen_a[steps][planes] = {}, seen_b[steps][planes] = {};
  const auto append = [&](int step, int a, int b) {
    list[count++] = {step, a, b, !seen_a[step][a], !seen_b[step][b]};
    seen_a[step][a] = seen_b[step][b] = true;
  };
  for (int step = 0; step < steps; ++step)
    for (int a = planes - 1; a >= 0; --a)
      for (int b = of_step == planes * planes ? planes - 1 : planes - 1 - a; b >= 0; --b)
        if (!largest_last || a + b > 0) append(step, a, b);
  if (largest_last)
    for (int step = 0; step < steps; ++step) append(step, 0, 0);
  return list;
}
template <int planes, int of_step, int steps, bool largest_last>
inline constexpr auto turns = turns_of_slab<planes, of_step, steps, largest_last>();

template <class Slabs>
class PlaneLoop : public LoopDefaults {
  using Sums = typename Slabs::Sums;
  using Mma = typename Slabs::Mma;
  static constexpr int planes = Slabs::planes, steps = Slabs::steps, of_step = Slabs::decomposition.products;
  static constexpr bool promoted = Slabs::decomposition.promoted > 0;
  static_assert(planes > 1 && (!promoted || Slabs::decomposition.promoted == Slabs::depth));
  static constexpr int all_turns = steps * of_step;
  template <int turn>
  static constexpr Turn turn_of_slab = turns<planes, of_step, steps, promoted>[turn];
  /// With two stages, the other slab is awaited at the end of this one: its copies start early.
  static constexpr int copying_turns = Slabs::stages == 2 ? all_turns / 2 : all_turns - 1;
  static constexpr bool scaled = std::is_same_v<typename Slabs::Element, half>;
  static constexpr auto of_rest = static_cast<typename Mma::Accumulator>(1 / rest_scale);

 public:
  __device__ __forceinline__ void begin(const Slabs& slabs) {
    Slabs::wait();
    read<0>(slabs, 0);
  }

  __device__ __forceinline__ void begin_tile(const Slabs&, int, int) {
    if constexpr (scaled && !promoted)
      for_each_accumulator<Slabs::rows, Slabs::columns>([&](int i, int j, int r) { with_rests_[i][j][r] = 0; });
  }

  template <class Copies>
  __device__ __forceinline__ void add_slab(Sums& sums, const Slabs& slabs, Copies& copies, Stages at) {
    if constexpr (promoted) {
      Sums of_slab = {};
      add_products_of(of_slab, of_slab, slabs, copies, at);
      add_sums(sums, of_slab);
    } else if constexpr (scaled) {
      add_products_of(sums, with_rests_, slabs, copies, at);
    } else {
      add_products_of(sums, sums, slabs, copies, at);
    }
  }

  __device__ __forceinline__ void end_tile(Sums& sums) {
    if constexpr (scaled && !promoted)
      for_each_accumulator<Slabs::rows, Slabs::columns>(
          [&](int i, int j, int r) { sums[i][j][r] = math::fma(with_rests_[i][j][r], of_rest, sums[i][j][r]); });
  }

 private:
  /// Reads what the product `turn` needs for the first time.
  template <int turn>
  __device__ __forceinline__ void read(const Slabs& slabs, int stage) {
    constexpr Turn now = turn_of_slab<turn>;
    if constexpr (now.first_of_a) slabs.read_a(a_[now.step * planes + now.a], stage, now.step, now.a);
    if constexpr (now.first_of_b) slabs.read_b(b_[now.step * planes + now.b], stage, now.step, now.b);
  }

  template <class Copies>
  __device__ __forceinline__ void add_products_of(Sums& x, Sums& of_rests, const Slabs& slabs, Copies& copies, Stages at) {
    [&]<int... turn>(std::integer_sequence<int, turn...>) __attribute__((always_inline)) {
      (add_turn<turn>(x, of_rests, slabs, copies, at), ...);
    }(std::make_integer_sequence<int, all_turns>{});
  }

  template <int turn, class Copies>
  __device__ __forceinline__ void add_turn(Sums& x, Sums& of_rests, const Slabs& slabs, Copies& copies, Stages at) {
    constexpr Turn now = turn_of_slab<turn>;
    if constexpr (turn + 1 < all_turns) {
      read<turn + 1>(slabs, at.now);
    } else {
      Slabs::wait();
      read<0>(slabs, at.next);
    }
    if constexpr (turn < copying_turns) copies.start(slabs, at.free, turn, copying_turns);
    if constexpr (scaled && promoted && turn == all_turns - steps)
      for_each_accumulator<Slabs::rows, Slabs::columns>(
          [&](int i, int j, int r) { x[i][j][r] = math::multiply(x[i][j][r], of_rest); });
    add_products<Mma>(now.a + now.b > 0 ? of_rests : x, a_[now.step * planes + now.a], b_[now.step * planes + now.b]);
  }

  typename Slabs::FragmentsA a_[steps * planes];
  typename Slabs::FragmentsB b_[steps * planes];
  Sums with_rests_;  // of products with a rest, if their scale differs from the others'
};

}  // namespace rigel::backends::mma

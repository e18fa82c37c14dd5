// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outlets of minimum, maximum and count_below: each thread has its own result of the rows that it sees. They are joined at the end, and
// those of slices by a later launch.
#pragma once

#include <rigel/backends/cuda/reduce/outlet.hpp>

namespace rigel::backends::reduce {

/// A score and its column, in 32 bits; −1: none.
template <class T>
struct Kept {
  T value;
  std::int32_t n;
  RIGEL_MEMBER detail::Found<T> found() const { return {value, n}; }
};
/// The extremum of two, as detail::extremum() says.
template <bool largest, class T>
RIGEL_FUNCTION Kept<T> extremum(const Kept<T>& x, const Kept<T>& y) {
  const bool of_y = detail::value_replaces<largest>(y.value, x.value),
             of_x = detail::value_replaces<largest>(x.value, y.value);
  const bool second = x.n < 0 || (y.n >= 0 && (of_y || (!of_x && y.n < x.n)));
  return {second ? y.value : x.value, second ? y.n : x.n};
}

template <class T, bool largest, int rows_of_tile, int threads, int groups>
struct Extremum {
  using State = Kept<T>;
  static constexpr int shared_bytes = groups * threads * static_cast<int>(sizeof(State));
  State* states;  // of the threads

  template <class Block>
  RIGEL_MEMBER void begin(const Block& block) const {
#pragma unroll
    for (int g = 0; g < groups; ++g) states[g * threads + block.thread()] = {T(0), -1};
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block& block, const Part<T, most>& part) const {
    State& mine = states[part.group * threads + block.thread()];
    State best = mine;
    if (best.n >= 0 && best.value != best.value) return;  // the first NaN stays
    const T value = best.value;
    if (best.n >= 0 && !part.any([&](T score) { return largest ? !(score <= value) : !(score >= value); })) return;
#pragma unroll 1
    for (int i = 0; i < part.count; ++i) {
      const T score = part(i);
      if (!part.is_self(i) && (best.n < 0 || detail::value_replaces<largest>(score, best.value)))
        best = {score, part.n + i * part.step};
    }
    mine = best;
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at, int group_rows) const {
    block.sync();
    for (int row = block.thread(); row < at.rows; row += threads) {
      const State* const of_row = states + row / group_rows * threads + row % group_rows;
      State best = of_row[0];
      for (int other = group_rows; other < threads; other += group_rows) best = extremum<largest>(best, of_row[other]);
      if (launch.slices == 1)
        launch.outputs.template store<largest>(best.found(), at.l, at.m + row);
      else
        reinterpret_cast<State*>(launch.states)[at.state + row] = best;
    }
  }

  /// Joins the slices of one row, which are `apart` states apart, by a warp, and stores the result.
  template <class Block>
  RIGEL_MEMBER static void join(const Block& block, const Launch<T>& launch, std::int64_t state, std::int64_t apart,
                                std::int64_t l, std::int64_t m, State* shared) {
    const State* const states = reinterpret_cast<const State*>(launch.states) + state;
    const int lane = block.thread() % 32;
    State* const of_warp = shared + block.thread() - lane;
    State best{T(0), -1};
#pragma unroll 4
    for (int s = lane; s < launch.slices; s += 32) best = extremum<largest>(best, states[s * apart]);
    of_warp[lane] = best;
    block.sync_warp();
    if (lane != 0) return;
    for (int other = 1; other < 32; ++other) best = extremum<largest>(best, of_warp[other]);
    launch.outputs.template store<largest>(best.found(), l, m);
  }
};

template <class T, int rows_of_tile, int threads, int groups>
struct Counter {
  using State = std::int32_t;
  static constexpr int shared_bytes = groups * threads * static_cast<int>(sizeof(State));
  State* states;

  template <class Block>
  RIGEL_MEMBER void begin(const Block& block) const {
#pragma unroll
    for (int g = 0; g < groups; ++g) states[g * threads + block.thread()] = 0;
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block& block, const Part<T, most>& part, const detail::Below<T>& below) const {
    State counted = 0;
#pragma unroll 4
    for (int i = 0; i < part.count; ++i) counted += !part.is_self(i) && below(part(i));
    states[part.group * threads + block.thread()] += counted;
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at, int group_rows) const {
    block.sync();
    for (int row = block.thread(); row < at.rows; row += threads) {
      const State* const of_row = states + row / group_rows * threads + row % group_rows;
      State counted = 0;
      for (int other = 0; other < threads; other += group_rows) counted += of_row[other];
      if (launch.slices == 1)
        launch.outputs.store(std::int64_t{counted}, at.l, at.m + row);
      else
        reinterpret_cast<State*>(launch.states)[at.state + row] = counted;
    }
  }

  template <class Block>
  RIGEL_MEMBER static void join(const Block& block, const Launch<T>& launch, std::int64_t state, std::int64_t apart,
                                std::int64_t l, std::int64_t m, State* shared) {
    const State* const states = reinterpret_cast<const State*>(launch.states) + state;
    const int lane = block.thread() % 32;
    State* const of_warp = shared + block.thread() - lane;
    State counted = 0;
#pragma unroll 4
    for (int s = lane; s < launch.slices; s += 32) counted += states[s * apart];
    of_warp[lane] = counted;
    block.sync_warp();
    if (lane != 0) return;
    for (int other = 1; other < 32; ++other) counted += of_warp[other];
    launch.outputs.store(std::int64_t{counted}, l, m);
  }
};

}  // namespace rigel::backends::reduce

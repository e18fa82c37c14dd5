// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of cdist() that transforms rows: to(l,i,r) = Σ_k from(l,i,k)·L(k,r), in double with k ascending, rounded once. The order does
// not depend on the execution space, so that a row has the same bits on all of them. A number beyond the largest one of its type
// becomes another one near that, so that equal rows stay equal, and rows that differ are infinitely far apart.
#pragma once

#include <rigel/detail/call.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rigel::detail {

/// The rows of one operand that a pass reads and writes.
template <class Element, class Row>
struct RowsToPrepare {
  Strided<const Element> from;
  Strided<Row> to;  // contiguous along its columns
  std::int64_t batches = 0, rows = 0;
  RIGEL_MEMBER std::int64_t count() const { return batches * rows; }
};

/// One of both operands. Each number is chosen by itself: a choice between two structs would have a device copy both to local memory, byte
/// by byte.
template <class Element, class Row>
RIGEL_FUNCTION RowsToPrepare<Element, Row> operand_of(const RowsToPrepare<Element, Row> (&of)[2], bool second) {
  const auto matrix = [&](const auto& a, const auto& b) -> std::decay_t<decltype(a)> {
    return {second ? b.data : a.data, second ? b.batch : a.batch, second ? b.row : a.row, second ? b.column : a.column};
  };
  return {matrix(of[0].from, of[1].from), matrix(of[0].to, of[1].to), second ? of[1].batches : of[0].batches,
          second ? of[1].rows : of[0].rows};
}
/// The operand of row r of both, whose rows count one after the other; r becomes the row's number in it.
template <class Element, class Row>
RIGEL_FUNCTION RowsToPrepare<Element, Row> operand_of(const RowsToPrepare<Element, Row> (&of)[2], std::int64_t& r) {
  const bool second = r >= of[0].count();
  if (second) r -= of[0].count();
  return operand_of(of, second);
}

/// A number of X or Z.
template <class Element>
RIGEL_FUNCTION double row_number(Element x) {
  if constexpr (ShortFloat<Element>)
    return static_cast<float>(x);
  else
    return static_cast<double>(x);
}

/// Stands for a number beyond the type's range: one from max/2 to max, with the sign of s, picked by the bits of s. Where
/// two differ, the square of their difference is infinite; of sums that differ, one pair in 2^23 (double: 2^52) becomes equal.
template <class Row>
RIGEL_FUNCTION Row beyond_range(double s) {
  constexpr int digits = std::numeric_limits<Row>::digits - 1;
  constexpr Row half = 2 / std::numeric_limits<Row>::min(), spacing = half * std::numeric_limits<Row>::epsilon();
  const auto bits = __builtin_bit_cast(std::uint64_t, s) << 1;  // without the sign
  const auto hash = (bits ^ bits >> 32) * 0x9e3779b97f4a7c15u >> (64 - digits);
  const Row size = half + static_cast<Row>(hash) * spacing;
  return s < 0 ? -size : size;
}

template <class T>
RIGEL_FUNCTION bool is_in_range(T x) {
  return math::abs(x) <= std::numeric_limits<T>::max();
}

/// Whether a transformed row may hold another number than the sum s, rounded. That of floats is finite, if they are.
template <class Row>
RIGEL_FUNCTION bool is_beyond_range(double s) {
  return !is_in_range(static_cast<Row>(s)) && (std::is_same_v<Row, double> || is_in_range(s));
}

/// That number, where it is the sum so far, which is computed again from terms times 2^-1080, among which nothing overflows.
template <class Element, class Row>
RIGEL_FUNCTION Row number_beyond(const RowsToPrepare<Element, Row>& g, const Strided<const Row>& factor, std::int64_t k,
                                 std::int64_t batch, std::int64_t row, std::int64_t column) {
  double scaled = 0;
#pragma clang loop unroll(disable) vectorize(disable)
  for (std::int64_t i = 0; i < k; ++i) {
    const double x = row_number(g.from.at(batch, row, i)), y = static_cast<double>(factor.at(0, i, column));
    scaled = math::add(scaled, math::multiply(x * 0x1p-540, y * 0x1p-540));
    if (!is_in_range(scaled)) return g.to.at(batch, row, column);  // what is not finite itself
  }
  const auto in_range = static_cast<Row>(scaled * 0x1p540 * 0x1p540);
  return is_in_range(in_range) ? in_range : beyond_range<Row>(scaled);
}

/// The kernel on a host: a work item computes neighbouring columns of a row, whose sums stay in vectors.
template <class Exec, class Element, class Row>
struct TransformRows {
  static constexpr int columns_together = 32;

  RowsToPrepare<Element, Row> of[2];
  Strided<const Row> factor;
  std::int64_t k, columns;

  RIGEL_MEMBER std::int64_t items_of_row() const { return (columns + columns_together - 1) / columns_together; }

  void launch(const Exec& exec) const {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("rigel::cdist/transformed rows",
                         by_argument(Policy(exec, 0, (of[0].count() + of[1].count()) * items_of_row())), *this);
  }

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t column = item % items_of_row() * columns_together;
    std::int64_t r = item / items_of_row();
    const RowsToPrepare<Element, Row> g = operand_of(of, r);
    const std::int64_t batch = r / g.rows, row = r % g.rows;
    const int width = static_cast<int>(columns - column < columns_together ? columns - column : columns_together);
    double sums[columns_together] = {};
    for (std::int64_t i = 0; i < k; ++i) {
      const double x = row_number(g.from.at(batch, row, i));
      for (int c = 0; c < width; ++c)
        sums[c] = math::add(sums[c], math::multiply(x, static_cast<double>(factor.at(0, i, column + c))));
    }
    for (int c = 0; c < width; ++c) {
      Row& number = g.to.at(batch, row, column + c);
      number = static_cast<Row>(sums[c]);
      if (is_beyond_range<Row>(sums[c])) number = number_beyond(g, factor, k, batch, row, column + c);
    }
  }
};

/// The kernel on a device: a team computes a tile of rows and columns from slabs of X and L in scratch memory, which hold doubles, so
/// that a number is converted once. While one slab is multiplied, the numbers of the next are on their way to registers.
template <class Exec, class Element, class Row>
struct TransformTiles {
  static constexpr int threads = 256, across = 16;  // threads of a team, and next to each other in a row
  static constexpr int rows_of_thread = 8, columns_of_thread = 4, depth = 16;  // k of a slab
  static constexpr int height = threads / across * rows_of_thread, width = across * columns_of_thread;
  static constexpr int pitch_x = height + 1, pitch_y = width;  // numbers between neighbouring k
  static constexpr int loads_x = height * depth / threads, loads_y = width * depth / threads;
  static constexpr int scratch_bytes = depth * (pitch_x + pitch_y) * static_cast<int>(sizeof(double));
  // By one instruction if double holds the product of two numbers.
  static constexpr int digits = ShortFloat<Element> ? 11 : std::numeric_limits<Element>::digits;
  static constexpr bool exact = digits + std::numeric_limits<Row>::digits <= std::numeric_limits<double>::digits;
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<threads, 1>>;
  using Team = typename Policy::member_type;

  RowsToPrepare<Element, Row> of[2];
  Strided<const Row> factor;
  std::int64_t k, columns;

  RIGEL_MEMBER std::int64_t tiles_of_row() const { return (columns + width - 1) / width; }
  RIGEL_MEMBER static std::int64_t tiles_of_batch(const RowsToPrepare<Element, Row>& g) {
    return (g.rows + height - 1) / height;
  }
  RIGEL_MEMBER std::int64_t tiles() const {
    return (of[0].batches * tiles_of_batch(of[0]) + of[1].batches * tiles_of_batch(of[1])) * tiles_of_row();
  }

  void launch(const Exec& exec) const {
    const auto league = static_cast<int>(std::min<std::int64_t>(tiles(), std::numeric_limits<int>::max()));
    Policy policy(exec, league, threads);
    Kokkos::parallel_for("rigel::cdist/transformed rows",
                         by_argument(policy.set_scratch_size(0, Kokkos::PerTeam(scratch_bytes))), *this);
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    auto* const slab_x = static_cast<double*>(team.team_shmem().get_shmem(scratch_bytes));
    for (std::int64_t tile = team.league_rank(); tile < tiles(); tile += team.league_size())
      compute(team, tile, slab_x, slab_x + depth * pitch_x);
  }

 private:
  RIGEL_MEMBER void compute(const Team& team, std::int64_t tile, double* slab_x, double* slab_y) const {
    std::int64_t t = tile / tiles_of_row();
    const std::int64_t of_first = of[0].batches * tiles_of_batch(of[0]);
    const RowsToPrepare<Element, Row> g = operand_of(of, t >= of_first);
    if (t >= of_first) t -= of_first;
    const std::int64_t batch = t / tiles_of_batch(g), row = t % tiles_of_batch(g) * height,
                       column = tile % tiles_of_row() * width;
    const int thread = team.team_rank();
    // Neighbouring threads read neighbours in memory. Rows and columns beyond the last are read as the last.
    const bool x_by_rows = g.from.column == 1, y_by_columns = factor.column == 1;
    const auto place_x = [&](int i, int& at_row, int& at_k) {
      const int number = thread + i * threads;
      at_row = x_by_rows ? number / depth : number % height;
      at_k = x_by_rows ? number % depth : number / height;
    };
    const auto place_y = [&](int i, int& at_k, int& at_column) {
      const int number = thread + i * threads;
      at_k = y_by_columns ? number / width : number % depth;
      at_column = y_by_columns ? number % width : number / depth;
    };
    Element next_x[loads_x];
    Row next_y[loads_y];
    const auto load = [&](std::int64_t first) {
      int r, c, i;
#pragma unroll
      for (int p = 0; p < loads_x; ++p) {
        place_x(p, r, i);
        next_x[p] = first + i < k ? g.from.at(batch, row + r < g.rows ? row + r : g.rows - 1, first + i) : Element{};
      }
#pragma unroll
      for (int p = 0; p < loads_y; ++p) {
        place_y(p, i, c);
        next_y[p] = first + i < k ? factor.at(0, first + i, column + c < columns ? column + c : columns - 1) : Row{};
      }
    };
    const int first_row = thread / across * rows_of_thread, first_column = thread % across;
    double sums[rows_of_thread][columns_of_thread] = {};
    if (k > 0) load(0);
    for (std::int64_t first = 0; first < k; first += depth) {
      int r, c, i;
#pragma unroll
      for (int p = 0; p < loads_x; ++p) {
        place_x(p, r, i);
        slab_x[i * pitch_x + r] = row_number(next_x[p]);
      }
#pragma unroll
      for (int p = 0; p < loads_y; ++p) {
        place_y(p, i, c);
        slab_y[i * pitch_y + c] = static_cast<double>(next_y[p]);
      }
      team.team_barrier();
      if (first + depth < k) load(first + depth);
      const int count = static_cast<int>(k - first < depth ? k - first : depth);
      for (int j = 0; j < count; ++j) {
        double x[rows_of_thread], y[columns_of_thread];
#pragma unroll
        for (int p = 0; p < rows_of_thread; ++p) x[p] = slab_x[j * pitch_x + first_row + p];
#pragma unroll
        for (int q = 0; q < columns_of_thread; ++q) y[q] = slab_y[j * pitch_y + first_column + q * across];
#pragma unroll
        for (int p = 0; p < rows_of_thread; ++p)
#pragma unroll
          for (int q = 0; q < columns_of_thread; ++q)
            sums[p][q] = exact ? math::fma(x[p], y[q], sums[p][q]) : math::add(sums[p][q], math::multiply(x[p], y[q]));
      }
      team.team_barrier();
    }
    bool all_in_range = true;
#pragma unroll
    for (int p = 0; p < rows_of_thread; ++p)
#pragma unroll
      for (int q = 0; q < columns_of_thread; ++q)
        if (row + first_row + p < g.rows && column + first_column + q * across < columns) {
          g.to.at(batch, row + first_row + p, column + first_column + q * across) = static_cast<Row>(sums[p][q]);
          all_in_range = all_in_range && !is_beyond_range<Row>(sums[p][q]);
        }
    if (all_in_range) [[likely]]
      return;
#pragma unroll 1
    for (int i = 0; i < rows_of_thread * columns_of_thread; ++i) {
      const std::int64_t at_row = row + first_row + i / columns_of_thread,
                         at_column = column + first_column + i % columns_of_thread * across;
      if (at_row >= g.rows || at_column >= columns) continue;
      Row& number = g.to.at(batch, at_row, at_column);
      if (!is_in_range(number)) number = number_beyond(g, factor, k, batch, at_row, at_column);
    }
  }
};

/// Enqueues the pass.
template <class Exec, class Element, class Row>
void transform_rows(const Exec& exec, const RowsToPrepare<Element, Row> (&of)[2], const Strided<const Row>& factor,
                    std::int64_t k, std::int64_t columns) {
  if constexpr (runs_on_host<Exec>)
    TransformRows<Exec, Element, Row>{{of[0], of[1]}, factor, k, columns}.launch(exec);
  else
    TransformTiles<Exec, Element, Row>{{of[0], of[1]}, factor, k, columns}.launch(exec);
}

}  // namespace rigel::detail

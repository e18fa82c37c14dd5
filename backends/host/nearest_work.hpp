// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of nearest points at one level, without Kokkos. A product of floats in registers is compared with what each row is
// known to have; the few columns that may be among a row's nearest are listed, and computed by subtraction, in the reference's chains.
// Rows for which that excludes little are searched by subtraction alone.
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/backends/host/nearest_search.hpp>
#include <rigel/detail/heap.hpp>

namespace rigel::backends::host::nearest {

/// The product: a block of scores for `rows` rows, interleaved in `a`, and a panel.
template <class Level>
struct Product {
  static constexpr int lanes = Level::vector_bytes / static_cast<int>(sizeof(float));
  static constexpr int rows = Level::registers == 32 ? 12 : 6, vectors = 2, columns = vectors * lanes;
  using Vector = vector<float, lanes>;

  /// Whether a score is at most its row's limit. If so, `scores` receives all of them.
  RIGEL_HOST_LOOP static bool run(int k, const float* __restrict__ a, const float* __restrict__ panel,
                                  const float* __restrict__ limits, float* __restrict__ scores) {
    Vector x[rows][vectors];
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < vectors; ++j) x[i][j] = load<Vector>(panel + j * lanes);
    panel += columns;
    for (int step = 0; step < k; ++step) {
      Vector row[vectors];
#pragma unroll
      for (int j = 0; j < vectors; ++j) row[j] = load<Vector>(panel + step * columns + j * lanes);
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < vectors; ++j) {
          const Vector each = splat<Vector>(a[step * rows + i]);
          if constexpr (Level::has_fma)
            x[i][j] = __builtin_elementwise_fma(each, row[j], x[i][j]);
          else
            x[i][j] += each * row[j];
        }
    }
    auto reached = x[0][0] <= splat<Vector>(limits[0]);
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < vectors; ++j) reached |= x[i][j] <= splat<Vector>(limits[i]);
    if (!any(reached)) return false;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < vectors; ++j) store(scores + i * columns + j * lanes, x[i][j]);
    return true;
  }

  template <class Mask>
  RIGEL_MEMBER static bool any(Mask mask) {
    return __builtin_reduce_or(mask) != 0;
  }
};

/// The bits of a comparison's lanes.
template <int lanes, class Mask>
RIGEL_FUNCTION std::uint64_t bits_of(Mask mask) {
  using Bits = bool __attribute__((ext_vector_type(lanes)));
  if constexpr (lanes < 8) {
    std::uint64_t bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= static_cast<std::uint64_t>(mask[i] != 0) << i;
    return bits;
  } else {
    using Integer =
        std::conditional_t<lanes == 8, std::uint8_t, std::conditional_t<lanes == 16, std::uint16_t, std::uint32_t>>;
    return __builtin_bit_cast(Integer, __builtin_convertvector(mask, Bits));
  }
}

template <class Element>
RIGEL_FUNCTION chain_t<Element> number(Element x) {
  return static_cast<chain_t<Element>>(x);
}

/// S·(x − c) of a number, and whether the filter takes it.
template <class Element>
RIGEL_FUNCTION bool place(const Search& g, Element x, int k, float& placed) {
  const double coordinate = (static_cast<double>(number(x)) - g.centre[k]) * g.scale;
  placed = static_cast<float>(coordinate);
  return coordinate <= largest_coordinate && coordinate >= -largest_coordinate;
}

template <class Level, class Element>
struct Worker {
  using T = chain_t<Element>;
  using P = Product<Level>;
  using Found = detail::Found<T>;

  const Search& g;

  RIGEL_MEMBER const Element* x(std::int64_t m) const { return static_cast<const Element*>(g.x) + m * g.of_x.row; }
  RIGEL_MEMBER const Element* z(std::int64_t n) const { return static_cast<const Element*>(g.z) + n * g.of_z.row; }
  RIGEL_MEMBER Found* heap(std::int64_t r) const { return static_cast<Found*>(g.best) + r * g.count; }

  // ---- packing ---------------------------------------------------------------------------------------------------

  RIGEL_HOST_LOOP static void pack(const Search& g, std::int64_t panel) {
    const Worker w{g};
    constexpr int width = P::columns;
    float* const to = g.panels + panel * g.panel_floats(width);
    const double epsilon = margin(g.k);
    for (int j = 0; j < width; ++j) {
      const std::int64_t column = panel * width + j;
      float* const numbers = to + width + j;
      bool taken = column < g.columns;
      double square = 0;
      if (taken) {
        const Element* const from = w.z(g.first_column + column);
        for (int k = 0; k < g.k; ++k) {
          float& placed = numbers[k * width];
          taken &= place(g, from[k * g.of_z.column], k, placed);
          square += static_cast<double>(placed) * static_cast<double>(placed);
        }
      }
      if (!taken)
        for (int k = 0; k < g.k; ++k) numbers[k * width] = 0;
      to[j] = taken ? static_cast<float>(square * (1 - 2 * epsilon - 0x1p-22)) : absent;
    }
  }

  // Packs rows of a block: −2·x', interleaved; and begins their states, if the part of the columns is the first.
  RIGEL_HOST_LOOP void pack_rows(std::int64_t first, int count, float* packed) const {
    for (int i = 0; i < count; ++i) {
      float* const to = packed + std::ptrdiff_t{i / P::rows * P::rows} * g.k + i % P::rows;
      const std::int64_t r = first + i;
      bool taken = r < g.rows;
      double square = 0;
      if (taken) {
        const Element* const from = x(g.first_row + r);
        for (int k = 0; k < g.k; ++k) {
          float placed;
          taken &= place(g, from[k * g.of_x.column], k, placed);
          square += static_cast<double>(placed) * static_cast<double>(placed);
          to[k * P::rows] = -2 * placed;
        }
      }
      if (!taken)
        for (int k = 0; k < g.k; ++k) to[k * P::rows] = 0;
      if (!g.is_first) continue;
      g.limits[r] = taken ? no_limit : nothing;
      g.states[r] = {square, 0, 0, !taken};
      if (r < g.rows)
        for (int best = 0; best < g.count; ++best) heap(r)[best] = {0, detail::no_place};
    }
  }

  // ---- exact distances -------------------------------------------------------------------------------------------

  RIGEL_MEMBER void insert(Found* best, Found found) const {
    if (g.minimum)
      *best = detail::extremum<false>(*best, found);
    else if (detail::precedes<false>(found, *best))
      detail::replace_root<false>(best, g.count, found);
  }
  template <class V>
  RIGEL_MEMBER V finished(V chain) const {
    return g.root ? __builtin_elementwise_sqrt(chain) : chain;
  }

  static constexpr int chains = 8;  // that are computed at a time

  /// Computes the distances of row m to some columns, and keeps the best.
  RIGEL_HOST_LOOP void look(std::int64_t r, const T* row, const std::int32_t* places, std::int64_t count) const {
    Found* const best = heap(r);
    const std::int64_t stride = g.of_z.column;
    for (std::int64_t i = 0; i < count; i += chains) {
      const Element* from[chains];
      T sum[chains] = {};
#pragma unroll
      for (int j = 0; j < chains; ++j) from[j] = z(places[i + j < count ? i + j : i]);
      for (int k = 0; k < g.k; ++k)
#pragma unroll
        for (int j = 0; j < chains; ++j) {
          const T d = row[k] - number(from[j][k * stride]);
          sum[j] = __builtin_elementwise_fma(d, d, sum[j]);
        }
      for (int j = 0; j < chains && i + j < count; ++j) insert(best, {finished(sum[j]), places[i + j]});
    }
  }

  RIGEL_MEMBER void read_row(std::int64_t r, T* row) const {
    const Element* const from = x(g.first_row + r);
    for (int k = 0; k < g.k; ++k) row[k] = number(from[k * g.of_x.column]);
  }

  // ---- candidates ------------------------------------------------------------------------------------------------

  using V = typename P::Vector;

  RIGEL_MEMBER static int count_up_to(const float* scores, int size, float limit) {
    int count = 0, i = 0;
    for (; i + P::lanes <= size; i += P::lanes)
      count += __builtin_popcountll(bits_of<P::lanes>(load<V>(scores + i) <= splat<V>(limit)));
    for (; i < size; ++i) count += scores[i] <= limit;
    return count;
  }

  /// A number that `wanted` of the scores are up to, if not many more are.
  RIGEL_MEMBER static float bound_of(const float* scores, int size, int wanted) {
    float low = scores[0], high = scores[0];
    for (int i = 1; i < size; ++i) {
      low = scores[i] < low ? scores[i] : low;
      high = scores[i] > high ? scores[i] : high;
    }
    for (int step = 0; step < 16; ++step) {
      const float middle = low + (high - low) * 0.5f;
      if (!(middle < high)) break;
      const int count = count_up_to(scores, size, middle);
      if (count < wanted) {
        low = middle;
      } else {
        high = middle;
        if (count == wanted) break;
      }
    }
    return high;
  }

  RIGEL_MEMBER Certainty<T> certainty(std::int64_t r) const { return {g.states[r].square, g.scale, g.k}; }

  RIGEL_MEMBER void lower_limit(std::int64_t r, float limit) const {
    if (limit < g.limits[r]) g.limits[r] = limit;
  }

  /// Drops listed columns of a row that are not among its nearest.
  RIGEL_HOST_LOOP void drop(std::int64_t r) const {
    Row& row = g.states[r];
    float* const scores = g.scores + r * g.capacity;
    std::int32_t* const places = g.places + r * g.capacity;
    if (row.waiting >= g.count) lower_limit(r, certainty(r).limit_of_score(bound_of(scores, row.waiting, g.count)));
    const float limit = g.limits[r];
    int kept = 0;
    for (int i = 0; i < row.waiting; ++i) {
      const float score = scores[i];
      const std::int32_t column = places[i];
      scores[kept] = score;
      places[kept] = column;
      kept += score <= limit;
    }
    row.waiting = kept;
  }

  /// Computes all that a row has listed.
  RIGEL_HOST_LOOP void settle(std::int64_t r, T* buffer) const {
    Row& row = g.states[r];
    read_row(r, buffer);
    look(r, buffer, g.places + r * g.capacity, row.waiting);
    row.looked += row.waiting;
    row.waiting = 0;
    const Found worst = heap(r)[0];
    if (worst.n >= 0) {
      const auto value = static_cast<double>(worst.value);
      lower_limit(r, certainty(r).limit_of_distance(g.root ? value * value : value));
    }
  }

  /// Lists what a block of scores has below the limits of its rows.
  RIGEL_HOST_LOOP void list(std::int64_t first_row, std::int64_t first_column, const float* block, T* buffer) const {
    for (int i = 0; i < P::rows; ++i) {
      const std::int64_t r = first_row + i;
      float* const scores = g.scores + r * g.capacity;
      std::int32_t* const places = g.places + r * g.capacity;
      for (int j = 0; j < P::vectors; ++j) {
        const float* const part = block + i * P::columns + j * P::lanes;
        std::uint64_t bits = bits_of<P::lanes>(load<V>(part) <= splat<V>(g.limits[r]));
        for (; bits != 0; bits &= bits - 1) {
          const int lane = __builtin_ctzll(bits);
          const std::int64_t n = first_column + j * P::lanes + lane;
          if (!(part[lane] <= g.limits[r]) || (g.exclude_self && n == g.first_row + r)) continue;
          Row& row = g.states[r];
          scores[row.waiting] = part[lane];
          places[row.waiting++] = static_cast<std::int32_t>(n);
          if (row.waiting < g.capacity) continue;
          drop(r);
          if (row.waiting <= g.capacity / 4 * 3) continue;
          settle(r, buffer);
          if (row.looked <= 4 * g.capacity + g.n / 64) continue;
          row.plain = true;
          g.limits[r] = nothing;
        }
      }
    }
  }

  // ---- rows that are searched by subtraction ---------------------------------------------------------------------

  static constexpr int exact_lanes = Level::vector_bytes / static_cast<int>(sizeof(T)), exact_rows = 4;
  using Exact = vector<T, exact_lanes>;

  /// Distances of some rows, interleaved, to two vectors of columns.
  RIGEL_HOST_LOOP static void distances(int k, const T* rows, const T* columns, T* out) {
    Exact sum[exact_rows][2] = {};
    for (int step = 0; step < k; ++step) {
      Exact column[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) column[j] = load<Exact>(columns + (2 * step + j) * exact_lanes);
#pragma unroll
      for (int i = 0; i < exact_rows; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const Exact d = splat<Exact>(rows[step * exact_rows + i]) - column[j];
          sum[i][j] = __builtin_elementwise_fma(d, d, sum[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < exact_rows; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) store(out + (2 * i + j) * exact_lanes, sum[i][j]);
  }

  /// Keeps the best of a row's distances to two vectors of columns.
  RIGEL_HOST_LOOP void keep(std::int64_t r, std::int64_t first_column, const T* distances) const {
    Found* const best = heap(r);
    for (int j = 0; j < 2 * exact_lanes && first_column + j < g.n; j += exact_lanes) {
      const Exact values = finished(load<Exact>(distances + j));
      // All that may enter, NaN included.
      std::uint64_t bits = best->n < 0 ? ~std::uint64_t{0} >> (64 - exact_lanes)
                                       : bits_of<exact_lanes>(~(values >= splat<Exact>(best->value)));
      for (; bits != 0; bits &= bits - 1) {
        const int lane = __builtin_ctzll(bits);
        const std::int64_t n = first_column + j + lane;
        if (n < g.n && !(g.exclude_self && n == g.first_row + r)) insert(best, {values[lane], n});
      }
    }
  }

  /// Searches `count` rows of the group, which are listed at `rows`, by subtraction.
  RIGEL_HOST_LOOP void search_plain(const std::int32_t* rows, int count, T* scratch) const {
    constexpr int width = 2 * exact_lanes;
    T* const columns = scratch;
    T* const packed = columns + std::ptrdiff_t{width} * g.k;
    for (int i = 0; i < count; ++i) {
      Found* const best = heap(rows[i]);
      for (int j = 0; j < g.count; ++j) best[j] = {0, detail::no_place};
      const Element* const from = x(g.first_row + rows[i]);
      T* const to = packed + std::ptrdiff_t{i / exact_rows * exact_rows} * g.k + i % exact_rows;
      for (int k = 0; k < g.k; ++k) to[k * exact_rows] = number(from[k * g.of_x.column]);
    }
    T out[exact_rows * width];
    for (std::int64_t first = 0; first < g.n; first += width) {
      for (int j = 0; j < width; ++j) {
        const Element* const from = z(first + j < g.n ? first + j : first);
        for (int k = 0; k < g.k; ++k) columns[k * width + j] = number(from[k * g.of_z.column]);
      }
      for (int i = 0; i < count; i += exact_rows) {
        distances(g.k, packed + std::ptrdiff_t{i} * g.k, columns, out);
        for (int j = 0; j < exact_rows && i + j < count; ++j) keep(rows[i + j], first, out + j * width);
      }
    }
  }

  /// Whether the filter is of use to one of the rows that the product takes at a time.
  RIGEL_MEMBER bool is_filtered(std::int64_t first) const {
    bool filtered = false;
    for (int i = 0; i < P::rows; ++i) filtered |= g.limits[first + i] > nothing;
    return filtered;
  }

  // ---- a block ---------------------------------------------------------------------------------------------------

  /// Sorts a row's best and stores them.
  RIGEL_MEMBER void store_row(std::int64_t r) const {
    Found* const best = heap(r);
    detail::sort_heap<false>(best, g.count);
    for (int i = 0; i < g.count; ++i) g.outputs.template store<false>(best[i], 0, g.first_row + r, i);
  }

  /// Ends a part of the columns for some rows: the columns that the filter does not take, and after the last part all that is listed.
  RIGEL_HOST_LOOP void end(std::int64_t first, int count, void* scratch) const {
    const bool many = g.specials > 64 + g.columns / 16;
    auto* const buffer = static_cast<T*>(scratch);
    for (std::int64_t r = first; r < first + count; ++r) {
      Row& row = g.states[r];
      if (many) row.plain = true;
      if (row.plain) {
        g.limits[r] = nothing;
        continue;
      }
      if (g.specials > 0) {
        read_row(r, buffer);
        for (std::int64_t i = 0; i < g.specials; ++i)
          if (!g.exclude_self || g.special[i] != g.first_row + r) look(r, buffer, g.special + i, 1);
      }
      if (!g.is_last) continue;
      drop(r);
      settle(r, buffer);
      store_row(r);
    }
    if (!g.is_last) return;
    std::int32_t rows[most_plain];
    int listed = 0;
    for (std::int64_t r = first; r < first + count; ++r) {
      if (g.states[r].plain) rows[listed++] = static_cast<std::int32_t>(r);
      if (listed == most_plain || (r + 1 == first + count && listed > 0)) {
        search_plain(rows, listed, buffer);
        for (int i = 0; i < listed; ++i) store_row(rows[i]);
        listed = 0;
      }
    }
  }

  RIGEL_HOST_LOOP static void search(const Search& g, std::int64_t block, void* scratch) {
    const Worker w{g};
    const std::int64_t first = block * g.block_rows, rest = g.rows - first;
    const int count = static_cast<int>(rest < g.block_rows ? rest : g.block_rows);
    const int padded = (count + P::rows - 1) / P::rows * P::rows;
    auto* const packed = static_cast<float*>(scratch);
    auto* const buffer = reinterpret_cast<T*>(packed + std::ptrdiff_t{2} * g.block_rows * g.k);
    w.pack_rows(first, padded, packed);
    alignas(64) float scores[P::rows * P::columns];
    const std::int64_t floats = g.panel_floats(P::columns);
    for (std::int64_t column = 0; column < g.columns; column += P::columns) {
      const float* const panel = g.panels + column / P::columns * floats;
      for (int i = 0; i < padded; i += P::rows)
        if (w.is_filtered(first + i) && P::run(g.k, packed + std::ptrdiff_t{i} * g.k, panel, g.limits + first + i, scores))
          w.list(first + i, g.first_column + column, scores, buffer);
    }
    w.end(first, count, scratch);
  }
};

template <class Level, class Element>
inline constexpr Loop loop = {
    &Worker<Level, Element>::pack, &Worker<Level, Element>::search, {Product<Level>::rows, Product<Level>::columns}};

}  // namespace rigel::backends::host::nearest

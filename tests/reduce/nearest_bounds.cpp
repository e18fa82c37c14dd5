// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores without a GPU: the bounds, the states and the choice of cuda.mma.nearest, with halves, truncating sums and
// lanes as a GPU has them. A row that find_nearest() calls certain must have the minimum of the chains of all columns, and its place.
#include <rigel/backends/cuda/mma/nearest_layout.hpp>
#include <rigel/backends/cuda/mma/nearest_memory.hpp>
#include <rigel/backends/cuda/mma/nearest_state.hpp>

#include <tests/reduce/truncating.hpp>
#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace nearest = rigel::backends::mma::nearest;
using namespace reduced;

float as_half(float v) { return static_cast<float>(rigel::half(v)); }

struct Data {
  int m, n, k;
  std::vector<float> x, z;
  bool exclude_self = false, root = false;
  int count = 7;
};
struct Outcome {
  int certain = 0, wrong = 0, examined = 0;
  int beyond = 0, within = 0;  // of the `count` smallest chains, those beyond the limit; columns within it
};

/// A search with the tiles of so many steps along K.
template <int steps>
class Search {
  using L = nearest::Layout<steps>;

 public:
  Search(const Data& data, int block) : d(data), block_(block), centre_(k) {}

  Outcome operator()() {
    find_centre();
    if (!find_scale()) return outcome_;
    prepare_columns();
    for (std::size_t row = 0; row < m; ++row)
      if (const Row of_row = prepare(row); of_row.square <= nearest::largest_square) search(of_row);
    return outcome_;
  }

 private:
  struct Row {
    std::size_t number;
    float a[L::numbers] = {}, square = 0, lost = 0;
  };

  void find_centre() {
    for (std::size_t i = 0; i < k; ++i) {
      float samples[8];
      const std::size_t count = std::min<std::size_t>(n, 8), apart = n / count;
      for (std::size_t j = 0; j < 8; ++j) samples[j] = d.z[std::min(j, count - 1) * apart * k + i];
      std::sort(samples, samples + 8);
      centre_[i] = std::abs(samples[4]) < 0x1p126f ? samples[4] : 0;
    }
  }

  /// Whether a difference from the centre is finite.
  bool find_scale() {
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < n * k; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(std::abs(d.z[i] - centre_[i % k])));
    scale_ = nearest::power_of_two_of(nearest::exponent_of_scale(largest));
    return largest < 0x7f800000;
  }

  /// Halves and norms of Z, block by block of eight columns.
  void prepare_columns() {
    halves_.resize(tiles * L::columns * L::numbers);
    norms_.resize(tiles * L::columns);
    for (std::size_t b = 0; b < tiles * L::columns / 8; ++b)
      for (int g = 0; g < 8; ++g) {
        const std::size_t column = b / 4 * L::chunk + static_cast<std::size_t>(L::column(static_cast<int>(b % 4), g));
        double squares = 0, lost = 0;
        for (std::size_t i = 0; i < k && column < n; ++i) {
          const float v = (d.z[column * k + i] - centre_[i]) * scale_;
          squares += static_cast<double>(v) * v;
          halves_[(b * 8 + static_cast<std::size_t>(g)) * L::numbers + i] = as_half(v);
          lost += static_cast<double>(v - as_half(v)) * static_cast<double>(v - as_half(v));
        }
        const double norm = squares * (1 - nearest::margin(L::numbers)) - lost * nearest::weight_of_lost;
        auto lowered = static_cast<float>(norm);
        if (static_cast<double>(lowered) > norm) lowered = std::nextafter(lowered, -1e30f);
        norms_[b * 8 + static_cast<std::size_t>(g)] = column < n ? lowered : nearest::absent;
      }
  }

  Row prepare(std::size_t number) const {
    Row row{number};
    float of_lane[4] = {};
    for (std::size_t i = 0; i < k; ++i) {
      const float v = (d.x[number * k + i] - centre_[i]) * scale_;
      of_lane[i / 4 % 4] = std::fma(v, v, of_lane[i / 4 % 4]);
      row.a[i] = as_half(-2 * v);
      row.lost = std::fma(row.a[i] / 2 + v, row.a[i] / 2 + v, row.lost);
    }
    row.square = (of_lane[0] + of_lane[1]) + (of_lane[2] + of_lane[3]);
    return row;
  }

  void search(const Row& row) {
    std::vector<float> bounds(n);
    const nearest::RowLeast all = sweep(row, bounds);
    const nearest::Certainty c{
        row.square, row.lost,   nearest::margin(L::numbers), 1 / (static_cast<double>(scale_) * scale_),
        d.k,        L::numbers, nearest::position_bits};
    if (d.count <= d.n && !d.exclude_self) compare_with_limit(row, bounds, c);
    nearest::Nearest found{0, 0, -1};
    const bool certain = nearest::find_nearest(all, c, found, [&](int q, std::uint32_t group, nearest::Nearest& best) {
      ++outcome_.examined;
      const std::int64_t first = L::first_of_group(group, q);
      for (std::int64_t column = first; column < first + L::group && column < d.n; ++column)
        if (!is_self(row, static_cast<std::size_t>(column))) {
          const float distance = distance_of(row, static_cast<std::size_t>(column));
          best.take(distance, score(distance), column);
        }
    });
    if (!certain) return;
    ++outcome_.certain;
    nearest::Nearest expected{0, 0, -1};
    for (std::size_t column = 0; column < n; ++column) {
      if (is_self(row, column)) continue;
      const float distance = distance_of(row, column);
      if (expected.n < 0 || score(distance) < expected.score)
        expected = {distance, score(distance), static_cast<std::int64_t>(column)};
    }
    outcome_.wrong += found.n != expected.n || found.score != expected.score;
  }

  /// What the lanes of a row keep after all columns, whose bounds it notes.
  nearest::RowLeast sweep(const Row& row, std::vector<float>& bounds) const {
    nearest::RowLeast all{};
    all.second = nearest::Least::none;
    all.square = row.square;
    all.lost = row.lost;
    for (int q = 0; q < 4; ++q) {
      nearest::Least least;
      for (std::size_t chunk = 0; chunk < tiles * L::chunks; ++chunk) {
        if (chunk > 0 && chunk * L::groups % nearest::groups_of_run == 0)
          least.end_run(static_cast<std::uint32_t>(chunk * L::groups / nearest::groups_of_run - 1));
        for (int span = 0; span < L::groups; ++span)
          least.take(
              least_bound(row, q, chunk, span, bounds),
              static_cast<std::uint32_t>((chunk * L::groups + static_cast<std::size_t>(span)) % nearest::groups_of_run));
      }
      least.end_run(static_cast<std::uint32_t>((tiles * L::chunks * L::groups - 1) / nearest::groups_of_run));
      all.first[q] = least.first;
      all.group[q] = least.group();
      all.second = nearest::least_of(all.second, least.second);
    }
    return all;
  }

  /// The least bound of a group of columns.
  float least_bound(const Row& row, int q, std::size_t chunk, int span, std::vector<float>& bounds) const {
    float group = nearest::Least::none;
    for (int c = 0; c < L::group; ++c) {
      const int j = span * (L::group / 2) + c / 2, of_block = 2 * q + c % 2;
      const std::size_t at = (chunk * 4 + static_cast<std::size_t>(j)) * 8 + static_cast<std::size_t>(of_block);
      float bound = norms_[at];
      for (int i = 0; i < L::numbers; i += block_)
        bound = truncating_sum(bound, row.a + i, &halves_[at * L::numbers] + i, block_);
      const std::size_t column = chunk * L::chunk + static_cast<std::size_t>(L::column(j, of_block));
      if (is_self(row, column)) bound = nearest::absent;
      if (column < n) bounds[column] = bound;
      group = nearest::least_of(group, bound);
    }
    return group;
  }

  /// What find_limits() does with these bounds, if `count` columns of other parts have the least ones.
  void compare_with_limit(const Row& row, const std::vector<float>& bounds, nearest::Certainty of_bounds) {
    const auto kth = [&](std::vector<float> list) {
      std::ranges::sort(list);
      return list[static_cast<std::size_t>(d.count) - 1];
    };
    of_bounds.position_bits = 0;
    const float limit = of_bounds.limit(kth(bounds));
    std::vector<float> chains(n);
    for (std::size_t column = 0; column < n; ++column) chains[column] = distance_of(row, column);
    const float last = kth(chains);
    for (std::size_t column = 0; column < n; ++column) {
      // Roots of unlike numbers may be equal.
      outcome_.beyond += std::sqrt(chains[column]) <= std::sqrt(last) && !(bounds[column] <= limit);
      outcome_.within += bounds[column] <= limit;
    }
  }

  bool is_self(const Row& row, std::size_t column) const { return d.exclude_self && column == row.number; }
  float distance_of(const Row& row, std::size_t column) const { return chain(&d.x[row.number * k], &d.z[column * k], d.k); }
  float score(float distance) const { return d.root ? std::sqrt(distance) : distance; }

  const Data& d;
  int block_;
  std::size_t m = static_cast<std::size_t>(d.m), n = static_cast<std::size_t>(d.n), k = static_cast<std::size_t>(d.k),
              tiles = static_cast<std::size_t>(L::tiles(d.n));
  std::vector<float> centre_, halves_, norms_;
  float scale_ = 0;
  Outcome outcome_;
};

Outcome search(const Data& d, int block) {
  return d.k <= 16   ? Search<1>(d, block)()
         : d.k <= 32 ? Search<2>(d, block)()
         : d.k <= 64 ? Search<4>(d, block)()
                     : Search<8>(d, block)();
}

double gaussian(support::Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform(0, 1);
  return sum;
}

enum class Kind { ordinary, far_away, scaled, large, huge, tiny, duplicates, constant, lattice, outlier, close_pairs, last };
const char* const names[] = {"ordinary",   "far away", "scaled",  "large",   "huge",       "tiny",
                             "duplicates", "constant", "lattice", "outlier", "close pairs"};

Data data_of(Kind kind, int m, int n, int k, std::uint64_t seed) {
  support::Random random(seed);
  Data d{m, n, k, std::vector<float>(static_cast<std::size_t>(m * k)), std::vector<float>(static_cast<std::size_t>(n * k))};
  for (auto* points : {&d.x, &d.z}) {
    for (float& v : *points) {
      double g = gaussian(random);
      if (kind == Kind::far_away) g = 100 + 1e-3 * g;
      if (kind == Kind::scaled) g *= std::exp2(random.uniform(-30, 30));
      if (kind == Kind::large) g *= 1e19;
      if (kind == Kind::huge) g *= 0x1p120;
      if (kind == Kind::tiny) g *= 1e-22;
      if (kind == Kind::constant) g = 3;
      if (kind == Kind::lattice) g = static_cast<double>(random.integer(-1, 1));
      v = static_cast<float>(g);
    }
    const auto rows = static_cast<int>(points->size()) / k;
    const auto at = [&](int row) { return points->begin() + static_cast<std::ptrdiff_t>(row) * k; };
    for (int row = 1; row < rows; ++row) {
      if (kind == Kind::duplicates && random.chance(0.3))
        std::copy_n(at(static_cast<int>(random.integer(0, row - 1))), k, at(row));
      if (kind == Kind::close_pairs && random.chance(0.5)) {
        std::copy_n(at(row - 1), k, at(row));
        float& v = *(at(row) + random.integer(0, k - 1));
        v = std::nextafter(v, 9.f);
      }
    }
    if (kind == Kind::outlier) std::fill_n(at(rows / 2), k, 1e6f);
  }
  return d;
}

TEST_CASE("nearest bounds: certain rows have the chain's minimum and its place") {
  for (int kind = 0; kind < static_cast<int>(Kind::last); ++kind)
    for (const int k : {1, 2, 3, 15, 16, 17, 32, 33, 64, 65, 128})
      for (const int n : {1, 2, 31, 33, 300}) {
        Data d = data_of(static_cast<Kind>(kind), 24, n, k,
                         std::uint64_t{1000} * static_cast<std::uint64_t>(k) + static_cast<std::uint64_t>(n));
        const std::string what = names[kind];
        CAPTURE(what);
        CAPTURE(k);
        CAPTURE(n);
        for (const int block : {4, 8, 16})
          for (const bool root : {false, true}) {
            d.root = root;
            const Outcome outcome = search(d, block);
            CHECK(outcome.wrong == 0);
            CHECK(outcome.beyond == 0);
          }
        d.exclude_self = true;
        CHECK(search(d, 16).wrong == 0);
      }
}

TEST_CASE("nearest bounds: points of any magnitude have finite halves") {
  // The distance of the last column is infinite, but it exists.
  for (int exponent = -149; exponent <= 127; ++exponent) {
    Data d{1, 10, 1, {0}, {0, 1, 2, 3, 4, 5, 6, 7, 8, std::ldexp(1.f, exponent)}};
    d.count = 10;
    CAPTURE(exponent);
    const Outcome outcome = search(d, 16);
    CHECK(outcome.beyond == 0);
    CHECK(outcome.wrong == 0);
  }
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    const float largest = std::bit_cast<float>(exponent << 23 | 0x7fffff),
                scaled = nearest::power_of_two_of(nearest::exponent_of_scale(exponent << 23)) * largest;
    CAPTURE(exponent);
    CHECK(scaled < 64);
    CHECK(scaled >= (exponent < 32 ? 0 : 32));
  }
}

TEST_CASE("nearest bounds: strips have each column once, and neighbours in different runs") {
  const auto check = []<int steps>(std::integral_constant<int, steps>, std::int64_t n, std::int64_t tiles, unsigned runs) {
    using L = nearest::Layout<steps>;
    const nearest::Strips strips{n, static_cast<unsigned>(tiles * L::chunks), L::chunks, runs};
    CAPTURE(steps);
    CAPTURE(n);
    CAPTURE(tiles);
    CAPTURE(runs);
    std::vector<int> seen(static_cast<std::size_t>(n));
    int wrong = 0, near = 0;
    std::vector<bool> filled(std::size_t{4} * runs);
    for (unsigned strip = 0; strip < strips.count(); ++strip) {
      const nearest::Order order = strips.order(strip);
      REQUIRE(order.chunks <= strips.chunks);
      REQUIRE(order.chunks % L::chunks == 0);
      std::vector<unsigned> run_of_column(static_cast<std::size_t>(order.columns));
      for (unsigned chunk = 0; chunk < order.chunks; ++chunk) {
        const unsigned run = order.run_of(chunk);
        wrong += run >= order.runs || chunk < order.begin_of_run(run) || chunk >= order.begin_of_run(run + 1);
        for (int w = 0; w < 32; ++w) {
          const std::int64_t column = order.column(chunk, w);
          if (column >= order.columns) continue;
          ++seen[static_cast<std::size_t>(order.first + column)];
          run_of_column[static_cast<std::size_t>(column)] = run;
          if (strip == 0) filled[run * 4 + static_cast<unsigned>(w / L::group % 4)] = true;
          wrong += strips.column((strip * strips.chunks + chunk) * 32 + static_cast<unsigned>(w)) != order.first + column;
        }
      }
      for (std::size_t i = 1; i < run_of_column.size(); ++i)
        near += order.runs > 1 && i % order.chunks != 0 && run_of_column[i] == run_of_column[i - 1];
    }
    CHECK(wrong == 0);
    CHECK(near == 0);
    CHECK(std::ranges::all_of(seen, [](int count) { return count == 1; }));
    CHECK(strips.filled_parts(L::group) == std::ranges::count(filled, true));
  };
  const auto for_tiles_of = [&](auto steps) {
    for (const std::int64_t n : {1, 2, 3, 8, 9, 31, 32, 33, 65, 127, 256, 257, 290, 1000, 1025, 5000, 20011})
      for (const unsigned runs : {16u, 33u, 128u})
        for (const std::int64_t tiles : {1, 2, 3, 7, 500}) check(steps, n, tiles, runs);
  };
  for_tiles_of(std::integral_constant<int, 1>{});
  for_tiles_of(std::integral_constant<int, 2>{});
  for_tiles_of(std::integral_constant<int, 4>{});
  for_tiles_of(std::integral_constant<int, 8>{});
}

TEST_CASE("nearest bounds: what a call keeps is within the limit, and rows and columns are of use") {
  for (const std::int64_t m : {0, 1, 127, 129, 10000, 3000000})  // none: explain() asks, too
    for (const std::int64_t n : {1, 300, 5000, 1000000, 2147483647})
      for (const std::int64_t k : {1, 17, 64, 128})
        for (const std::int64_t count : {0, 1, 32, 33, 100, 128})
          for (const std::size_t limit : {std::size_t{1} << 19, std::size_t{64} << 20, std::size_t{1} << 33}) {
            const nearest::Memory at = nearest::Memory::of(m, n, k, count, false, limit);
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(count);
            CAPTURE(limit);
            CHECK(at.bytes <= limit);
            CHECK(at.rows >= std::min<std::int64_t>(m, 128));
            if (!at.many || at.lists.all) continue;
            CHECK(at.rows % 128 == 0);
            CHECK(at.lists.capacity >= count);
            CHECK(at.lists.pitch >= std::max(at.lists.capacity, at.lists.parts));
            CHECK(std::int64_t{at.lists.strips.chunks} * 32 * at.lists.strips.count() >= n);
            CHECK(at.words + static_cast<std::size_t>(at.rows) * static_cast<std::size_t>(at.lists.pitch) * 4 <= at.bytes);
          }
  // 10 nearest of 10^6 columns: strips that are worth their launches.
  CHECK(nearest::Memory::of(10000, 1000000, 128, 10, false, std::size_t{64} << 20).lists.strips.count() == 5);
  CHECK(nearest::Memory::of(100000, 100000, 64, 100, false, std::size_t{64} << 20).lists.strips.count() == 1);
}

TEST_CASE("nearest bounds: blocks that share columns fill rounds") {
  CHECK(nearest::slices_of(79, 3125, 264) == 10);
  CHECK(nearest::slices_of(196, 782, 396) == 2);
  CHECK(nearest::slices_of(264, 782, 264) == 1);
  for (const std::int64_t tiles : {1, 3}) CHECK(nearest::slices_of(1, tiles, 264) == tiles);
}

TEST_CASE("nearest bounds: rows of ordinary data are mostly certain") {
  for (const int k : {16, 32, 64, 128}) {
    const Outcome all = search(data_of(Kind::ordinary, 200, 1500, k, 5), 16),
                  far = search(data_of(Kind::far_away, 200, 1500, k, 5), 16);
    CAPTURE(k);
    MESSAGE("certain " << all.certain << " and " << far.certain << " of 200, groups " << all.examined << ", "
                       << far.examined);
    MESSAGE("columns within the limit " << all.within / 200. << ", " << far.within / 200.);
    CHECK(all.within <= 200 * 14);
    CHECK(all.certain >= 190);
    CHECK(all.examined <= 240);
    CHECK(far.certain >= 190);
  }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points of 16-bit floats by wgmma without a GPU: the bounds, the states and the choice of cuda.hopper.nearest, with truncating sums
// and lanes as a GPU has them. A row that find_nearest() calls certain must have the minimum of the chains of all columns, and its place.
#include <rigel/backends/cuda/hopper/nearest_bound.hpp>
#include <rigel/backends/cuda/hopper/nearest_state.hpp>

#include <tests/reduce/truncating.hpp>
#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace {

namespace nearest = rigel::backends::hopper::nearest;
using namespace reduced;
using L = nearest::Layout;
using rigel::backends::mma::nearest::find_nearest;
using rigel::backends::mma::nearest::Nearest;

struct Data {
  int m, n, k;
  std::vector<float> x, z;
  bool root = false;
};
struct Outcome {
  int certain = 0, wrong = 0, examined = 0, above = 0;  // above: bounds that are not below the chain
  bool refused = false;
};
struct Row {
  float first[4];
  std::uint32_t group[4];
  float second;
};

float lowered(double v) {
  const auto f = static_cast<float>(v);
  return static_cast<double>(f) > v ? std::nextafter(f, -1e38f) : f;
}

Outcome search(const Data& d, int block) {
  Outcome outcome;
  const int numbers = d.k <= 64 ? 64 : 128;
  const auto m = static_cast<std::size_t>(d.m), n = static_cast<std::size_t>(d.n), k = static_cast<std::size_t>(d.k),
             pitch = static_cast<std::size_t>(numbers), tiles = static_cast<std::size_t>(L::tiles(d.n));
  std::vector<float> columns(tiles * L::columns * pitch), norms(tiles * L::columns, nearest::absent);
  for (std::size_t column = 0; column < n; ++column) {
    double square = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const float v = columns[column * pitch + i] = d.z[column * k + i];
      square += static_cast<double>(v) * v;
    }
    outcome.refused |= !(square <= static_cast<double>(nearest::largest_square));
    norms[column] = lowered(square * (0.5 * (1 - nearest::margin(numbers))));
  }
  if (outcome.refused) return outcome;
  const auto score = [&](float distance) { return d.root ? std::sqrt(distance) : distance; };
  for (std::size_t row = 0; row < m; ++row) {
    std::vector<float> x(pitch);
    nearest::Certainty c{0, d.k, numbers};
    for (std::size_t i = 0; i < k; ++i) {
      x[i] = d.x[row * k + i];
      c.square = std::fma(x[i], x[i], c.square);
    }
    if (!(c.square <= nearest::largest_square)) continue;
    Row all{};
    all.second = nearest::Least::none;
    for (int q = 0; q < 4; ++q) {
      nearest::LaneRow lane;
      lane.begin();
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        if (tile > 0 && tile % L::tiles_of_run == 0)
          lane.groups.end_run(static_cast<std::uint32_t>(tile / L::tiles_of_run - 1));
        for (int group = 0; group < L::groups; ++group) {
          const auto number = static_cast<std::uint32_t>(tile * L::groups) + static_cast<std::uint32_t>(group);
          float least = nearest::Least::none;
          for (int of_class = 0; of_class < L::classes; ++of_class) {
            const std::size_t column = L::column(number, of_class, q);
            float product = 0;
            for (int i = 0; i < numbers; i += block)
              product = truncating_sum(product, x.data() + i, &columns[column * pitch] + i, block);
            const float bound = norms[column] - product;
            lane.take(bound, of_class);
            least = nearest::least_of(least, bound);
            if (column < n)
              outcome.above += !(c.least(bound) <= static_cast<double>(chain(&d.x[row * k], &d.z[column * k], d.k)));
          }
          lane.groups.take(least, number % nearest::groups_of_run);
        }
      }
      float second;
      lane.end(static_cast<unsigned>((tiles - 1) / L::tiles_of_run), q, all.first[q], all.group[q], second);
      all.second = nearest::least_of(all.second, second);
    }
    Nearest found{0, 0, -1};
    const bool certain = find_nearest(all, c, found, [&](int, std::uint32_t column, Nearest& best) {
      if (column >= n) return;
      ++outcome.examined;
      const float distance = chain(&d.x[row * k], &d.z[column * k], d.k);
      best.take(distance, score(distance), column);
    });
    if (!certain) continue;
    ++outcome.certain;
    Nearest expected{0, 0, -1};
    for (std::size_t column = 0; column < n; ++column) {
      const float distance = chain(&d.x[row * k], &d.z[column * k], d.k);
      if (expected.n < 0 || score(distance) < expected.score)
        expected = {distance, score(distance), static_cast<std::int64_t>(column)};
    }
    outcome.wrong += found.n != expected.n || found.score != expected.score;
  }
  return outcome;
}

enum class Kind { ordinary, far_away, scaled, large, huge, tiny, duplicates, constant, lattice, outlier, last };
const char* const names[] = {"ordinary", "far away",   "scaled",   "large",   "huge",
                             "tiny",     "duplicates", "constant", "lattice", "outlier"};

template <class T>
Data data_of(Kind kind, int m, int n, int k, std::uint64_t seed) {
  support::Random random(seed);
  Data d{m, n, k, std::vector<float>(static_cast<std::size_t>(m * k)), std::vector<float>(static_cast<std::size_t>(n * k))};
  constexpr bool narrow = std::is_same_v<T, rigel::half>;
  for (auto* points : {&d.x, &d.z}) {
    for (float& v : *points) {
      double g = random.uniform(-1, 1) + random.uniform(-1, 1) + random.uniform(-1, 1);
      if (kind == Kind::far_away) g = 100 + g;
      if (kind == Kind::scaled) g *= std::exp2(random.uniform(narrow ? -10 : -30, narrow ? 10 : 30));
      if (kind == Kind::large) g *= narrow ? 20000 : 1e13;  // squares of halves above the largest half
      if (kind == Kind::huge) g *= narrow ? 20000 : 1e25;
      if (kind == Kind::tiny) g *= narrow ? 1e-6 : 1e-22;
      if (kind == Kind::constant) g = 3;
      if (kind == Kind::lattice) g = static_cast<double>(random.integer(-1, 1));
      v = static_cast<float>(T(static_cast<float>(g)));
    }
    const auto rows = static_cast<int>(points->size()) / k;
    const auto at = [&](int row) { return points->begin() + static_cast<std::ptrdiff_t>(row) * k; };
    for (int row = 1; row < rows; ++row)
      if (kind == Kind::duplicates && random.chance(0.3))
        std::copy_n(at(static_cast<int>(random.integer(0, row - 1))), k, at(row));
    if (kind == Kind::outlier) std::fill_n(at(rows / 2), k, 5e4f);
  }
  return d;
}

template <class T>
void check_kinds() {
  for (int kind = 0; kind < static_cast<int>(Kind::last); ++kind)
    for (const int k : {1, 3, 16, 64, 65, 128})
      for (const int n : {1, 2, 127, 129, 300}) {
        Data d = data_of<T>(static_cast<Kind>(kind), 8, n, k,
                            std::uint64_t{1000} * static_cast<std::uint64_t>(k) + static_cast<std::uint64_t>(n));
        const std::string what = names[kind];
        CAPTURE(what);
        CAPTURE(k);
        CAPTURE(n);
        for (const int block : {4, 8, 16}) {
          d.root = block == 8;
          const Outcome outcome = search(d, block);
          CHECK(outcome.wrong == 0);
          CHECK(outcome.above == 0);
          const bool too_large = static_cast<Kind>(kind) == Kind::huge && std::is_same_v<T, rigel::bfloat16>;
          if (!too_large) CHECK(!outcome.refused);
          if (n == 1 && k > 3 && !too_large && static_cast<Kind>(kind) != Kind::tiny) CHECK(outcome.certain == 8);
        }
      }
}

TEST_CASE("nearest by wgmma: bounds are below the chains, and certain rows have the minimum and its place") {
  check_kinds<rigel::bfloat16>();
  check_kinds<rigel::half>();
}

TEST_CASE("nearest by wgmma: more columns than a run of groups") {
  const Data d = data_of<rigel::bfloat16>(Kind::ordinary, 6, 4500, 5, 3);
  const Outcome outcome = search(d, 16);
  CHECK(outcome.wrong == 0);
  CHECK(outcome.above == 0);
  CHECK(outcome.certain >= 5);
}

TEST_CASE("nearest by wgmma: each column has one place") {
  std::vector<int> seen(3 * L::columns), places(L::columns);
  for (std::uint32_t group = 0; group < 3 * L::groups; ++group)
    for (int of_class = 0; of_class < L::classes; ++of_class)
      for (int q = 0; q < 4; ++q) ++seen[L::column(group, of_class, q)];
  CHECK(std::ranges::count(seen, 1) == 3 * L::columns);
  for (int column = 0; column < L::columns; ++column) ++places[static_cast<std::size_t>(L::place_of_norm(column))];
  CHECK(std::ranges::count(places, 1) == L::columns);
}

TEST_CASE("nearest by wgmma: nearly all rows of ordinary data are certain after one distance") {
  for (const int k : {64, 128}) {
    const Outcome outcome = search(data_of<rigel::bfloat16>(Kind::ordinary, 100, 1500, k, 5), 16);
    CAPTURE(k);
    MESSAGE("certain " << outcome.certain << " of 100, distances " << outcome.examined);
    CHECK(outcome.wrong == 0);
    CHECK(outcome.certain >= 98);
    CHECK(outcome.examined <= 105);
  }
}

}  // namespace

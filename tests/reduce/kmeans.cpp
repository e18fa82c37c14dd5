// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kmeans(): what its definition says of its results, the same seeds everywhere, and sets that are hard: one centre, as many as points,
// equal points, centres without points.
#include <rigel/kmeans.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace {

using namespace reduced;

struct Clusters {
  Values centres, labels;
  rigel::KMeansResult result;
};
template <class T, class Exec>
Clusters clusters(const Exec& exec, const Values& points, int dimensions, int k, const rigel::KMeansOptions& options = {},
                  const Values& start = {}) {
  const int m = static_cast<int>(points.size()) / dimensions;
  const auto x = support::matrix<T, Exec>(m, dimensions, points, "points"),
             centres = support::matrix<T, Exec>(k, dimensions, start);
  const auto labels = vector<int, Exec>(m);
  Clusters all;
  all.result = rigel::kmeans(exec, x, k, centres, labels, options);
  all.centres = support::values(centres);
  all.labels = support::values(labels);
  return all;
}

double square(const Values& points, const Values& centres, int dimensions, int i, int c) {
  double sum = 0;
  for (int d = 0; d < dimensions; ++d) {
    const double t = points[at(i, dimensions, d)] - centres[at(c, dimensions, d)];
    sum += t * t;
  }
  return sum;
}

/// Small integers round some centres.
Values blobs(int m, int dimensions, int count, std::uint64_t seed) {
  support::Random random(seed);
  Values points;
  for (int i = 0; i < m; ++i)
    for (int d = 0; d < dimensions; ++d)
      points.push_back(static_cast<double>(40 * ((i % count) >> d & 1) + random.integer(-4, 4)));
  return points;
}

TEST_CASE_TEMPLATE("kmeans: labels, inertia and means", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 3000, dimensions = 3, k = 8;
  const Values points = blobs(m, dimensions, k, 5);
  const auto check = [&]<class T>(T) {
    const Clusters c = clusters<T>(exec, points, dimensions, k, {.tolerance = 0});
    CHECK(c.result.converged);
    double inertia = 0;
    int wrong = 0;
    Values sums(k * dimensions, 0), counts(k, 0);
    for (int i = 0; i < m; ++i) {
      const int label = static_cast<int>(c.labels[static_cast<std::size_t>(i)]);
      const double own = square(points, c.centres, dimensions, i, label);
      for (int other = 0; other < k; ++other) wrong += square(points, c.centres, dimensions, i, other) < own;
      inertia += own;
      ++counts[static_cast<std::size_t>(label)];
      for (int d = 0; d < dimensions; ++d) sums[at(label, dimensions, d)] += points[at(i, dimensions, d)];
    }
    CHECK(wrong == 0);  // no two centres are nearly as far
    CHECK(std::abs(c.result.inertia - inertia) <= 1e-5 * inertia);
    // Blobs are 40 apart and 8 wide: seeds in each, so that Lloyd's iteration ends with their means, whose sums are exact.
    for (int e = 0; e < k; ++e)
      for (int d = 0; d < dimensions; ++d)
        CHECK(c.centres[at(e, dimensions, d)] ==
              static_cast<double>(static_cast<T>(sums[at(e, dimensions, d)] / counts[static_cast<std::size_t>(e)])));
    CHECK(std::set<double>(c.labels.begin(), c.labels.begin() + k).size() == k);
    for (int i = k; i < m; ++i) wrong += c.labels[static_cast<std::size_t>(i)] != c.labels[static_cast<std::size_t>(i % k)];
    CHECK(wrong == 0);
  };
  check(float());
  check(double());
}

TEST_CASE_TEMPLATE("kmeans: a seed chooses the same points everywhere", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 500, k = 6;
  support::Random random(11);
  Values points;
  for (int i = 0; i < 2 * m; ++i) points.push_back(static_cast<double>(random.integer(-1000, 1000)));
  // The seeds alone, as a plain program chooses them from the definition: random numbers of splitmix64, the sum of distances over the points
  // i = 0, 1024, …, 1, 1025, …, which is that of ascending i here.
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{12345678901234567890u}}) {
    support::Random numbers(seed);
    const auto uniform = [&] { return static_cast<double>(numbers.next() >> 11) * 0x1p-53; };
    std::vector<int> chosen{static_cast<int>(uniform() * m)};
    Values nearest(m, infinity);
    while (static_cast<int>(chosen.size()) < k) {
      double total = 0;
      for (int i = 0; i < m; ++i) {
        double& d = nearest[static_cast<std::size_t>(i)];
        d = std::min(d, square(points, points, 2, i, chosen.back()));
        total += d;
      }
      const double target = uniform() * total;
      int i = 0;
      double sum = nearest[0];
      while (sum <= target) sum += nearest[static_cast<std::size_t>(++i)];
      chosen.push_back(i);
    }
    const Clusters c = clusters<double>(exec, points, 2, k, {.seed = seed, .iterations = 0});
    CHECK(c.result.iterations == 0);
    for (int e = 0; e < k; ++e)
      for (int d = 0; d < 2; ++d) CHECK(c.centres[at(e, 2, d)] == points[at(chosen[static_cast<std::size_t>(e)], 2, d)]);
  }
  // Another layout, the same results.
  const auto by_rows = support::matrix<double, Exec>(m, 2, points), centres = support::matrix<double, Exec>(k, 2);
  const Kokkos::View<double**, Kokkos::LayoutLeft, typename Exec::memory_space> by_columns("points", m, 2);
  Kokkos::deep_copy(by_columns, by_rows);
  const auto labels = vector<std::int64_t, Exec>(m);
  rigel::kmeans(exec, by_columns, k, centres, labels, {.require = rigel::Promise::reference_bits});
  const Clusters c = clusters<double>(exec, points, 2, k, {.require = rigel::Promise::reference_bits});
  CHECK(support::values(centres) == c.centres);
  CHECK(support::values(labels) == c.labels);
}

TEST_CASE_TEMPLATE("kmeans: one centre, as many as points, equal points", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Values points{0, 1, 2, 3, 4, 8};
  const Clusters one = clusters<double>(exec, points, 1, 1);
  CHECK(one.centres == Values{3});
  CHECK(one.labels == Values(6, 0));
  CHECK(one.result.inertia == 9 + 4 + 1 + 0 + 1 + 25);
  CHECK(one.result.converged);

  const Clusters each = clusters<float>(exec, points, 1, 6);
  CHECK(each.result.inertia == 0);
  CHECK(std::set<double>(each.labels.begin(), each.labels.end()).size() == 6);
  Values sorted = each.centres;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == points);

  const Clusters same = clusters<double>(exec, Values(20, 7), 2, 4);
  CHECK(same.result.inertia == 0);
  CHECK(same.result.converged);
  CHECK(same.centres == Values(8, 7));
  CHECK(same.labels == Values(10, 0));

  // Two different points: all centres but two are copies.
  const Clusters two = clusters<double>(exec, {1, 5, 1, 5, 1, 5}, 1, 3);
  CHECK(two.result.inertia == 0);
  CHECK(std::count(two.labels.begin(), two.labels.end(), two.labels[0]) == 3);
}

TEST_CASE_TEMPLATE("kmeans: centres without points take the farthest ones", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // All points are nearest to centre 0. After the first update 0 has their mean, 1 and 2 have points 5 and 4, the farthest ones.
  const Values points{0, 1, 2, 3, 10, 20}, start{1, 1000, 2000};
  const Clusters c = clusters<double>(exec, points, 1, 3, {.iterations = 1, .from_centres = true}, start);
  CHECK(c.centres == Values{6, 20, 10});
  CHECK(c.labels == Values{0, 0, 0, 0, 2, 1});
  CHECK(c.result.iterations == 1);
  CHECK(c.result.inertia == 36 + 25 + 16 + 9);
  const Clusters end = clusters<double>(exec, points, 1, 3, {.tolerance = 0, .from_centres = true}, start);
  CHECK(end.centres == Values{1.5, 20, 10});
  CHECK(end.result.inertia == 5);
  // Those with NaN distances come last.
  const Clusters nan = clusters<double>(exec, {5, not_a_number, 0, not_a_number, 1, 20}, 1, 3,
                                        {.iterations = 1, .from_centres = true}, {0, 1000, 2000});
  CHECK(nan.centres[1] == 20);
  CHECK(nan.centres[2] == 5);
  // Of equally far ones the first.
  const Clusters ties = clusters<double>(exec, {-4, 4, -4, 4}, 1, 2, {.iterations = 1, .from_centres = true}, {0, 100});
  CHECK(ties.centres == Values{0, -4});
}

TEST_CASE("kmeans: errors and workspace") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto x = support::matrix<float, Exec>(5, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "points"),
             centres = support::matrix<float, Exec>(3, 2, Values(6, -7), "means");
  const auto labels = vector<int, Exec>(5);
  const auto check = [&](const auto& call, std::initializer_list<const char*> texts) {
    const auto e = support::caught(call);
    CHECK(e.code == rigel::Code::invalid_argument);
    CHECK(e.lacks(texts) == "");
  };
  check([&] { rigel::kmeans(exec, x, 6, centres, labels); },
        {"kmeans: k is 6, expected 1 to 5, the rows of X 'points' 5x2"});
  check([&] { rigel::kmeans(exec, x, 0, centres, labels); }, {"kmeans: k is 0, expected 1 to 5"});
  check([&] { rigel::kmeans(exec, x, 2, centres, labels); }, {"centres 'means' is 3x2, expected k = 2 rows"});
  check([&] { rigel::kmeans(exec, x, 3, support::matrix<float, Exec>(3, 1, {}, "means"), labels); },
        {"centres 'means' is 3x1, expected 2 columns to match X 'points' 5x2"});
  check([&] { rigel::kmeans(exec, x, 3, centres, vector<int, Exec>(4)); }, {"labels 'vector' is 4x1, expected 5 numbers"});
  check([&] { rigel::kmeans(exec, x, 3, centres, labels, {.tolerance = 1}); }, {"options.tolerance is 1"});
  const Kokkos::View<float**, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged> inside(x.data() + 2, 3, 2);
  check([&] { rigel::kmeans(exec, x, 3, inside, labels); }, {"centres", "overlaps X 'points' 5x2"});
  for (const double bad : {infinity, not_a_number})
    check([&] { rigel::kmeans(exec, support::matrix<float, Exec>(5, 2, {bad, 1, 2}), 3, centres, labels); },
          {"kmeans: X holds infinities or NaN"});
  CHECK(support::values(labels) == Values(5, -7));
  CHECK(support::values(centres) == Values(6, -7));
  // Squares of floats overflow: nothing converges.
  const auto far = support::matrix<float, Exec>(2, 1, {1e20, -1e20});
  const auto result = rigel::kmeans(exec, far, 1, support::matrix<float, Exec>(1, 1), vector<int, Exec>(2));
  CHECK(!(result.inertia < infinity));
  CHECK(!result.converged);
  const std::size_t bytes = rigel::kmeans_workspace_size(exec, x, centres, labels);
  const Kokkos::View<char*, Exec> memory("memory", bytes + 256);
  const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  rigel::KMeansOptions options{.workspace = {.data = reinterpret_cast<void*>(address), .bytes = bytes}};
  rigel::kmeans(exec, x, 3, centres, labels, options);
  using Values = Kokkos::View<float**, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged>;
  using Labels = Kokkos::View<int*, Exec, Kokkos::MemoryUnmanaged>;
  const auto in_workspace = reinterpret_cast<float*>(address);
  check([&] { rigel::kmeans(exec, x, 3, Values(in_workspace, 3, 2), labels, options); },
        {"kmeans: the workspace", "overlaps centres"});
  check([&] { rigel::kmeans(exec, x, 3, centres, Labels(reinterpret_cast<int*>(address + bytes) - 5, 5), options); },
        {"kmeans: the workspace", "overlaps labels"});
  check([&] { rigel::kmeans(exec, Values(in_workspace, 5, 2), 3, centres, labels, options); },
        {"kmeans: the workspace", "overlaps X"});
  options.workspace.bytes = bytes - 1;
  check([&] { rigel::kmeans(exec, x, 3, centres, labels, options); }, {"kmeans: the workspace has", "expected"});
}

}  // namespace

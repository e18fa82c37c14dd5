// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of pairs of row and column intervals, against plain loops in double over the pairs that ranges have, and what ranges refuse.
#include <rigel/kernel_matvec.hpp>
#include <rigel/neighbors.hpp>
#include <rigel/outside_kernels.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#ifdef KOKKOS_ENABLE_CUDA
#include <rigel/presize.hpp>

#include <tests/support/stream.hpp>
#else
#include <tests/support/skip.hpp>
#endif

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;
namespace metric = rigel::metric;

/// Ranges as a test writes them down.
struct Given {
  std::vector<std::array<std::int64_t, 2>> rows;
  std::vector<std::int64_t> slices;
  std::vector<std::array<std::int64_t, 2>> columns;

  bool has(std::int64_t m, std::int64_t n) const {
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (rows[r][0] <= m && m < rows[r][1])
        for (auto i = static_cast<std::size_t>(r == 0 ? 0 : slices[r - 1]); i < static_cast<std::size_t>(slices[r]); ++i)
          if (columns[i][0] <= n && n < columns[i][1]) return true;
    return false;
  }
  template <class Exec, class Index = std::int64_t>
  rigel::Ranges on(const Exec& exec, std::int64_t m, std::int64_t n) const {
    const auto pairs = [](const auto& list) {
      Kokkos::View<Index**, Kokkos::LayoutLeft, Kokkos::HostSpace> view("pairs", list.size(), 2);
      for (std::size_t i = 0; i < list.size(); ++i)
        for (std::size_t j = 0; j < 2; ++j) view(i, j) = static_cast<Index>(list[i][j]);
      return view;
    };
    Kokkos::View<Index*, Kokkos::HostSpace> ends("slices", slices.size());
    for (std::size_t i = 0; i < slices.size(); ++i) ends(i) = static_cast<Index>(slices[i]);
    return rigel::Ranges(exec, m, n, pairs(rows), ends, pairs(columns));
  }
};

/// Intervals in no order, with gaps, empty ones, neighbours that touch, and rows that meet nothing.
Given random_ranges(support::Random& random, std::int64_t m, std::int64_t n, std::int64_t longest) {
  const auto intervals = [&](std::int64_t extent) {
    std::vector<std::array<std::int64_t, 2>> list;
    for (std::int64_t at = random.integer(0, longest); at <= extent;) {
      const std::int64_t end = std::min(extent, at + random.integer(0, longest));
      list.push_back({at, end});
      at = end + (random.chance(0.5) ? random.integer(0, longest) : 0);
      if (at >= extent) break;
    }
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
    return list;
  };
  Given given{intervals(m), {}, {}};
  for (std::size_t r = 0; r < given.rows.size(); ++r) {
    if (!random.chance(0.2))
      for (const auto& interval : intervals(n)) given.columns.push_back(interval);
    given.slices.push_back(static_cast<std::int64_t>(given.columns.size()));
  }
  return given;
}

/// Points of few integers, so that distances are exact and many of them equal.
struct Scores {
  int m, n, k, batches;
  Values x, z;

  Scores(support::Random& random, int m, int n, int k, int batches) : m(m), n(n), k(k), batches(batches) {
    for (int i = 0; i < batches * m * k; ++i) x.push_back(static_cast<double>(random.integer(-3, 3)));
    for (int i = 0; i < batches * n * k; ++i) z.push_back(static_cast<double>(random.integer(-3, 3)));
  }
  double operator()(int l, int row, int column) const {
    double sum = 0;
    for (int i = 0; i < k; ++i)
      sum += std::abs(x[static_cast<std::size_t>((l * m + row) * k + i)] -
                      z[static_cast<std::size_t>((l * n + column) * k + i)]);
    return sum;
  }
};

/// Calls use(n, score) for what row m of matrix l meets.
template <class Use>
void for_each(const Scores& scores, const Given& given, bool exclude_self, int l, int m, const Use& use) {
  for (int n = 0; n < scores.n; ++n)
    if (given.has(m, n) && !(exclude_self && n == m)) use(n, scores(l, m, n));
}

struct Case {
  Given given;
  Scores scores;
  bool exclude_self;
};

/// Cases of one or two matrices, sets with themselves, and intervals of many lengths.
template <class Use>
void for_each_case(const Use& use) {
  support::Random random(51);
  for (const auto& [m, n, longest, batches, self] :
       {std::tuple{37, 41, 5, 1, false}, std::tuple{64, 64, 30, 2, true}, std::tuple{3, 2100, 1500, 1, false},
        std::tuple{700, 130, 400, 2, false}, std::tuple{130, 130, 1, 1, true}}) {
    const Given given = random_ranges(random, m, n, longest);
    use(Case{given, Scores(random, m, n, 3, batches), self});
  }
}

/// What reduce_distances() makes of a case: values and indices of `count` columns.
template <class Exec, class R>
Results results_of(const Exec& exec, const Case& c, const R& reducer, int count, rigel::ReduceOptions options) {
  const Scores& s = c.scores;
  options.exclude_self = c.exclude_self;
  options.ranges = c.given.template on<Exec>(exec, s.m, s.n);
  const auto x = support::batch<float, Exec>(s.batches, s.m, s.k, s.x),
             z = support::batch<float, Exec>(s.batches, s.n, s.k, s.z);
  const auto all = static_cast<std::size_t>(s.batches * s.m * count);
  if constexpr (R::kind == rigel::Reducer::smallest || R::kind == rigel::Reducer::largest) {
    const auto values = support::batch<double, Exec>(s.batches, s.m, count, Values(all, -7));
    const auto indices = support::batch<std::int64_t, Exec>(s.batches, s.m, count, Values(all, -7));
    rigel::reduce_distances(exec, x, z, metric::manhattan{}, reducer, values, indices, {}, options);
    exec.fence();
    return {support::values(values), support::values(indices)};
  } else if constexpr (R::kind == rigel::Reducer::minimum || R::kind == rigel::Reducer::maximum) {
    const auto values = support::matrix<double, Exec>(s.batches, s.m, Values(all, -7));
    const auto indices = support::matrix<std::int32_t, Exec>(s.batches, s.m, Values(all, -7));
    rigel::reduce_distances(exec, x, z, metric::manhattan{}, reducer, values, indices, {}, options);
    exec.fence();
    return {support::values(values), support::values(indices)};
  } else if constexpr (R::kind == rigel::Reducer::histogram) {
    const auto values = support::batch<std::int64_t, Exec>(s.batches, s.m, count, Values(all, -7));
    rigel::reduce_distances(exec, x, z, metric::manhattan{}, reducer, values, rigel::no_output, {}, options);
    exec.fence();
    return {support::values(values), {}};
  } else {
    const auto values = support::matrix<double, Exec>(s.batches, s.m, Values(all, -7));
    rigel::reduce_distances(exec, x, z, metric::manhattan{}, reducer, values, rigel::no_output, {}, options);
    exec.fence();
    return {support::values(values), {}};
  }
}

/// check(results) for each case, kernel and limit of the workspace: the least makes strips of 64 columns.
template <class Exec, class R, class Check>
void with_results(const R& reducer, int count, const Check& check) {
  const Exec exec;
  for_each_case([&](const Case& c) {
    for (const std::string& kernel : kernels)
      for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
        if (kernel == "reference" && limit == 1) continue;
        CAPTURE(kernel);
        CAPTURE(limit);
        CAPTURE(c.scores.m);
        check(c, results_of(exec, c, reducer, count, {.kernel = kernel, .workspace_limit = limit}));
      }
  });
}

template <bool largest, class Exec, class R>
void check_ordered(const R& reducer, int count) {
  with_results<Exec>(reducer, count, [&](const Case& c, const Results& got) {
    int wrong = 0;
    for (int l = 0; l < c.scores.batches; ++l)
      for (int m = 0; m < c.scores.m; ++m) {
        std::vector<std::pair<double, int>> list;
        for_each(c.scores, c.given, c.exclude_self, l, m,
                 [&](int n, double score) { list.push_back({largest ? -score : score, n}); });
        std::sort(list.begin(), list.end());
        for (int i = 0; i < count; ++i) {
          const auto place = static_cast<std::size_t>((l * c.scores.m + m) * count + i), at = static_cast<std::size_t>(i);
          const bool has = at < list.size();
          const double value = has ? list[at].first : infinity, n = has ? list[at].second : -1;
          wrong += got.values[place] != (largest ? -value : value) || got.indices[place] != n;
        }
      }
    CHECK(wrong == 0);
  });
}

TEST_CASE_TEMPLATE("ranges: the best, with ties", Exec, RIGEL_TEST_SPACES) {
  check_ordered<false, Exec>(reducer::minimum{}, 1);
  check_ordered<true, Exec>(reducer::maximum{}, 1);
  check_ordered<false, Exec>(reducer::smallest{7}, 7);
  check_ordered<true, Exec>(reducer::largest{200}, 200);
}

/// Values of one number a row against add(sum, score), begun with 0 and finished by end(sum), within a bound relative to `scale`.
template <class Exec, class R>
void check_sums(const R& reducer, const std::function<double(const Values&)>& expected, double bound) {
  with_results<Exec>(reducer, 1, [&](const Case& c, const Results& got) {
    int wrong = 0;
    for (int l = 0; l < c.scores.batches; ++l)
      for (int m = 0; m < c.scores.m; ++m) {
        Values row;
        for_each(c.scores, c.given, c.exclude_self, l, m, [&](int, double score) { row.push_back(score); });
        const double want = expected(row), own = got.values[static_cast<std::size_t>(l * c.scores.m + m)];
        wrong += !(own == want || std::abs(own - want) <= bound * std::abs(want));
      }
    CHECK(wrong == 0);
  });
}

struct SumOfSquares {
  RIGEL_MEMBER double identity() const { return 0; }
  RIGEL_MEMBER double of(float score, std::int64_t) const { return static_cast<double>(score) * static_cast<double>(score); }
  RIGEL_MEMBER double join(double x, double y) const { return x + y; }
  RIGEL_MEMBER double result(double x) const { return x; }
};

TEST_CASE_TEMPLATE("ranges: sums, counts and monoids", Exec, RIGEL_TEST_SPACES) {
  const auto total = [](const Values& row) {
    double sum = 0;
    for (const double score : row) sum += score;
    return sum;
  };
  check_sums<Exec>(reducer::sum{}, total, 0);
  check_sums<Exec>(
      reducer::count_below{5, true},
      [](const Values& row) {
        return static_cast<double>(std::count_if(row.begin(), row.end(), [](double s) { return s <= 5; }));
      },
      0);
  check_sums<Exec>(
      reducer::monoid{SumOfSquares{}},
      [](const Values& row) {
        double sum = 0;
        for (const double score : row) sum += score * score;
        return sum;
      },
      0);
  // Σ exp of up to 2100 scores: lanes of 66 terms and 5 levels, each term within 2 units, twice.
  check_sums<Exec>(
      reducer::log_sum_exp{},
      [](const Values& row) {
        double sum = 0;
        for (const double score : row) sum += std::exp(score);
        return std::log(sum);
      },
      256 * 0x1p-53);
}

TEST_CASE_TEMPLATE("ranges: histograms and lists", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto edges = vector<double, Exec>(4);
  support::fill(edges, {0, 3, 6, 9});
  with_results<Exec>(reducer::histogram{edges}, 3, [&](const Case& c, const Results& got) {
    int wrong = 0;
    for (int l = 0; l < c.scores.batches; ++l)
      for (int m = 0; m < c.scores.m; ++m) {
        double bins[3] = {};
        for_each(c.scores, c.given, c.exclude_self, l, m, [&](int, double s) {
          if (s <= 9) ++bins[s == 9 ? 2 : static_cast<int>(s / 3)];
        });
        for (int b = 0; b < 3; ++b) wrong += got.values[static_cast<std::size_t>((l * c.scores.m + m) * 3 + b)] != bins[b];
      }
    CHECK(wrong == 0);
  });
  for_each_case([&](const Case& c) {
    const Scores& s = c.scores;
    if (s.batches > 1) return;
    const auto x = support::matrix<float, Exec>(s.m, s.k, s.x), z = support::matrix<float, Exec>(s.n, s.k, s.z);
    Values offsets{0}, indices, distances;
    for (int m = 0; m < s.m; ++m) {
      for_each(s, c.given, c.exclude_self, 0, m, [&](int n, double score) {
        if (score > 4) return;
        indices.push_back(n);
        distances.push_back(score);
      });
      offsets.push_back(static_cast<double>(indices.size()));
    }
    const int length = static_cast<int>(indices.size());
    for (const std::string& kernel : kernels) {
      CAPTURE(kernel);
      const rigel::ReduceOptions options{
          .exclude_self = c.exclude_self, .ranges = c.given.on(exec, s.m, s.n), .kernel = kernel};
      const auto of_rows = vector<std::int64_t, Exec>(s.m + 1), of_columns = vector<std::int64_t, Exec>(length);
      const auto values = vector<float, Exec>(length);
      rigel::radius_offsets(exec, x, z, metric::manhattan{}, 4, of_rows, options);
      rigel::radius_neighbors(exec, x, z, metric::manhattan{}, 4, of_rows, of_columns, values, options);
      exec.fence();
      CHECK(support::values(of_rows) == offsets);
      CHECK(support::values(of_columns) == indices);
      CHECK(support::values(values) == distances);
    }
  });
}

/// Sums over ranges of a kernel or a softmax, of random points of T.
template <class T, bool softmax, class Exec>
void check_weighted(const Exec& exec, int k, int rights, bool exclude_self, const std::vector<std::string>& names) {
  support::Random random(static_cast<std::uint64_t>(k * 8 + rights));
  const int m = 530, n = exclude_self ? m : 300;
  const Given given = random_ranges(random, m, n, k % 2 == 0 ? 40 : 400);
  const auto numbers = [&](int count) {
    Values list;
    for (int i = 0; i < count; ++i) list.push_back(support::to_double(static_cast<T>(random.uniform(-1, 1))));
    return list;
  };
  const Values x = numbers(m * k), z = exclude_self ? x : numbers(n * k), v = numbers(n * rights);
  Values sums(static_cast<std::size_t>(m * rights)), sizes(sums);
  for (int row = 0; row < m; ++row) {
    double total = 0;
    for (int column = 0; column < n; ++column) {
      if (!given.has(row, column) || (exclude_self && row == column)) continue;
      double square = 0;
      for (int i = 0; i < k; ++i) {
        const double difference = x[at(row, k, i)] - z[at(column, k, i)];
        square += difference * difference;
      }
      const double u = std::sqrt(5 * square) / 0.75;
      const double weight = softmax ? std::exp(-2 * square) : (1 + u + u * u / 3) * std::exp(-u);
      total += weight;
      for (int d = 0; d < rights; ++d) {
        sums[at(row, rights, d)] += weight * v[at(column, rights, d)];
        sizes[at(row, rights, d)] += weight * std::abs(v[at(column, rights, d)]);
      }
    }
    for (int d = 0; softmax && d < rights; ++d) {
      sums[at(row, rights, d)] /= total;
      sizes[at(row, rights, d)] /= total;
    }
  }
  const auto of_x = support::matrix<T, Exec>(m, k, x), of_z = support::matrix<T, Exec>(n, k, z),
             of_v = support::matrix<T, Exec>(n, rights, v);
  for (const std::string& kernel : names) {
    const rigel::ReduceOptions options{.exclude_self = exclude_self, .ranges = given.on(exec, m, n), .kernel = kernel};
    const auto out = support::matrix<double, Exec>(m, rights, Values(static_cast<std::size_t>(m * rights), -7));
    if constexpr (softmax)
      rigel::softmax_matvec(exec, of_x, of_z, of_v, metric::squared_euclidean{}, out, rigel::epilogue::scale(-2), options);
    else
      rigel::kernel_matvec(exec, of_x, of_z, of_v, metric::euclidean{}, rigel::kernel::matern52{0.75}, out, options);
    exec.fence();
    const Values got = support::values(out);
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      // Values within 256 u of their magnitude (docs/numerics.md, few dimensions), chains of K terms, sums of at most 1024 in T.
      const double bound = (1280 + 4 * k) * (sizeof(T) == 8 ? 0x1p-53 : 0x1p-24) * sizes[i];
      wrong += sums[i] != sums[i] ? got[i] == got[i] : !(std::abs(got[i] - sums[i]) <= bound);
    }
    CAPTURE(k);
    CAPTURE(rights);
    CAPTURE(kernel);
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("ranges: kernels times vectors and softmax", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const int k : {3, 6, 16, 20})
    for (const int rights : {1, 3, 6}) {
      std::vector<std::string> names{"", "reference", "portable.weighted_strips"};
      if (!support::on_host<Exec> && k <= 16 && rights <= 4) names.push_back("cuda.points");
      const bool exclude_self = k % 4 == 0;
      check_weighted<float, false>(exec, k, rights, exclude_self, names);
      check_weighted<float, true>(exec, k, rights, exclude_self, names);
      check_weighted<double, false>(exec, k, rights, exclude_self, names);
      check_weighted<double, true>(exec, k, rights, exclude_self, names);
    }
}

/// Pairs of eight clusters of 32 rows with two of 50 columns each, of which the middle ones touch; all others have one score.
struct Clusters {
  static constexpr int count = 8, rows = 32, columns = 50;
  float outside;

  RIGEL_MEMBER float operator()(float score, std::int64_t m, std::int64_t n, std::int64_t) const {
    const std::int64_t cluster = m / rows, own = n / columns;
    return own == cluster || own == count - 1 - cluster ? score : outside;
  }
  static Given given() {
    Given ranges;
    for (std::int64_t c = 0; c < count; ++c) {
      ranges.rows.push_back({c * rows, (c + 1) * rows});
      for (const std::int64_t own : {count - 1 - c, c}) ranges.columns.push_back({own * columns, (own + 1) * columns});
      ranges.slices.push_back(2 * (c + 1));
    }
    return ranges;
  }
};

/// check(of ranges, of the mask) for each kernel: what a reducer makes of the same scores, where the mask has scores that add nothing.
template <class Exec, class R, class Check>
void check_mask(const R& reducer, int count, bool has_indices, double outside, const std::vector<std::string>& names,
                const Check& check) {
  constexpr int m = Clusters::count * Clusters::rows, n = Clusters::count * Clusters::columns, k = 2;
  const Exec exec;
  support::Random random(9);
  const Scores s(random, m, n, k, 1);
  const auto a = support::matrix<float, Exec>(m, k, s.x), z = support::matrix<float, Exec>(n, k, s.z);
  const auto b = rigel::transposed(z);
  const Clusters mask{static_cast<float>(outside)};
  const auto results = [&](const auto& last, const rigel::ReduceOptions& options) {
    const Values untouched(static_cast<std::size_t>(m * count), -7);
    const auto values = support::matrix<double, Exec>(m, count, untouched);
    const auto indices = support::matrix<int, Exec>(m, count, untouched);
    const auto row_values = vector<double, Exec>(m);
    const auto row_indices = vector<int, Exec>(m);
    if constexpr (R::kind == rigel::Reducer::minimum)
      rigel::reduce(exec, rigel::l1<float>{}, a, b, reducer, row_values, row_indices, last, options);
    else if constexpr (R::kind == rigel::Reducer::smallest || R::kind == rigel::Reducer::largest)
      rigel::reduce(exec, rigel::l1<float>{}, a, b, reducer, values, indices, last, options);
    else if constexpr (R::kind == rigel::Reducer::weighted_sum || R::kind == rigel::Reducer::histogram)
      rigel::reduce(exec, rigel::l1<float>{}, a, b, reducer, values, rigel::no_output, last, options);
    else
      rigel::reduce(exec, rigel::l1<float>{}, a, b, reducer, row_values, rigel::no_output, last, options);
    exec.fence();
    const bool one = R::kind == rigel::Reducer::minimum;
    const Values list = support::values(values), of_rows = support::values(row_values);
    Values found = has_indices ? (one ? support::values(row_indices) : support::values(indices)) : Values{};
    return Results{list[0] == -7 ? of_rows : list, std::move(found)};
  };
  const rigel::Ranges ranges = Clusters::given().on(exec, m, n);
  for (const std::string& kernel : names)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      if (kernel == "reference" && limit == 1) continue;
      CAPTURE(kernel);
      CAPTURE(limit);
      const Results of_mask = results(mask, {.kernel = kernel, .workspace_limit = limit});
      check(results(rigel::epilogue::Program{}, {.ranges = ranges, .kernel = kernel, .workspace_limit = limit}), of_mask);
      check(results(mask, {.ranges = ranges, .kernel = kernel, .workspace_limit = limit}), of_mask);
    }
}

TEST_CASE_TEMPLATE("ranges are a mask of scores that add nothing", Exec, RIGEL_TEST_SPACES) {
  const auto same = [](const Results& got, const Results& expected) {
    CHECK(got.values == expected.values);
    CHECK(got.indices == expected.indices);
  };
  check_mask<Exec>(reducer::minimum{}, 1, true, infinity, kernels, same);
  check_mask<Exec>(reducer::smallest{100}, 100, true, infinity, kernels, same);
  check_mask<Exec>(reducer::largest{9}, 9, true, -infinity, kernels, same);
  check_mask<Exec>(reducer::sum{}, 1, false, 0, kernels, same);
  check_mask<Exec>(reducer::count_below{4}, 1, false, infinity, kernels, same);
  const auto edges = vector<double, Exec>(3);
  support::fill(edges, {0, 2, 7});
  check_mask<Exec>(reducer::histogram{edges}, 2, false, infinity, kernels, same);
  constexpr int n = Clusters::count * Clusters::columns;
  Values of_v;
  for (int i = 0; i < 2 * n; ++i) of_v.push_back(i * 5 % 7 - 3);
  const auto v = support::matrix<float, Exec>(n, 2, of_v);
  check_mask<Exec>(reducer::weighted_sum{v}, 2, false, 0, {"", "reference", "portable.weighted_strips"}, same);
  // 13 terms in a lane, log N < 6 (docs/numerics.md, reductions), of both.
  check_mask<Exec>(reducer::log_sum_exp{}, 1, false, -infinity, kernels, [](const Results& got, const Results& expected) {
    int wrong = 0;
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      const double of_mask = expected.values[i];
      wrong += !(std::abs(got.values[i] - of_mask) <= 2 * (7 * 13 + 42 + 6 * 6 + std::abs(of_mask)) * 0x1p-53);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE_TEMPLATE("ranges: nothing, NaN outside, rows that are not covered", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<float, Exec>(5, 1, {0, 1, 2, 3, 4}),
             z = support::matrix<float, Exec>(4, 1, {0, not_a_number, 10, infinity});
  const auto v = vector<float, Exec>(4);
  support::fill(v, {1, infinity, 2, not_a_number});
  const Given some{{{1, 3}, {4, 5}}, {2, 2}, {{2, 3}, {0, 1}}}, none{{}, {}, {}}, empty{{{0, 5}}, {1}, {{2, 2}}};
  const auto nearest_of = [&](const Given& given, const std::string& kernel) {
    const auto indices = vector<std::int32_t, Exec>(5);
    const auto distances = vector<float, Exec>(5);
    rigel::assign(exec, x, z, metric::manhattan{}, indices, distances,
                  {.ranges = given.on<Exec, int>(exec, 5, 4), .kernel = kernel});
    exec.fence();
    return std::pair{support::values(indices), support::values(distances)};
  };
  for (const std::string& kernel : kernels) {
    CAPTURE(kernel);
    CHECK(nearest_of(some, kernel) == std::pair{Values{-1, 0, 0, -1, -1}, Values{infinity, 1, 2, infinity, infinity}});
    for (const Given* given : {&none, &empty})
      CHECK(nearest_of(*given, kernel) == std::pair{Values(5, -1), Values(5, infinity)});
  }
  for (const std::string kernel : {"", "reference", "portable.weighted_strips"}) {
    CAPTURE(kernel);
    const auto out = vector<float, Exec>(5);
    rigel::kernel_matvec(exec, x, z, v, metric::manhattan{}, rigel::kernel::gaussian{1.}, out,
                         {.ranges = some.on(exec, 5, 4), .kernel = kernel});
    exec.fence();
    const Values got = support::values(out);
    CHECK(got[0] == 0);
    CHECK(std::abs(got[1] - std::exp(-0.5)) <= 64 * 0x1p-24);
    CHECK(got[3] == 0);
    CHECK(got[4] == 0);
  }
}

TEST_CASE_TEMPLATE("ranges of all pairs are none", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  support::Random random(7);
  const int m = 70, n = 300;
  const auto points = [&](int count) {
    Values values;
    for (int i = 0; i < count * 5; ++i) values.push_back(random.uniform(-1, 1));
    return support::matrix<float, Exec>(count, 5, values);
  };
  const auto x = points(m), z = points(n);
  const Given all{{{0, 70}}, {1}, {{0, 300}}};
  const auto sums = [&](const rigel::Ranges& ranges) {
    const auto out = vector<double, Exec>(m);
    rigel::reduce_distances(exec, x, z, metric::euclidean{}, reducer::sum{}, out, rigel::no_output, {},
                            {.ranges = ranges, .require = rigel::Promise::reference_bits});
    exec.fence();
    return support::values(out);
  };
  const rigel::Ranges ranges = all.on(exec, m, n), default_ranges;
  CHECK(ranges.pairs() == m * n);
  CHECK(static_cast<bool>(ranges));
  CHECK(!static_cast<bool>(default_ranges));
  CHECK(sums(ranges) == sums(default_ranges));
}

TEST_CASE("ranges: what is refused") {
  const Kokkos::DefaultHostExecutionSpace exec;
  using Texts = std::initializer_list<const char*>;
  const auto refused = [&](const Given& given, Texts texts) {
    const support::Caught caught = support::caught([&] { (void)given.on(exec, 10, 20); });
    CHECK(caught.code == rigel::Code::invalid_argument);
    CHECK(caught.lacks(texts) == "");
  };
  refused({{{0, 11}}, {0}, {}}, {"Ranges: rows[0] from 0 to 11", "expected 0 <= first <= end <= 10"});
  refused({{{3, 2}}, {0}, {}}, {"rows[0] from 3 to 2", "first <= end"});
  refused({{{-1, 2}}, {0}, {}}, {"rows[0] from -1 to 2"});
  refused({{{0, 4}, {3, 5}}, {0, 0}, {}}, {"rows[1] from 3 to 5 overlaps rows[0] from 0 to 4"});
  refused({{{0, 4}}, {1}, {{5, 21}}}, {"columns[0] from 5 to 21", "<= 20"});
  refused({{{0, 4}}, {2}, {{5, 9}, {5, 9}}}, {"columns[1] from 5 to 9 overlaps columns[0] from 5 to 9, of the same rows"});
  refused({{{4, 4}}, {2}, {{5, 9}, {8, 9}}}, {"overlaps"});  // rows without extent are checked, too
  refused({{{0, 4}}, {}, {}}, {"slices has 0 numbers, expected 1"});
  refused({{{0, 4}, {4, 5}}, {1, 0}, {{0, 1}}}, {"slices[1] is 0, expected at least 1"});
  refused({{{0, 4}}, {1}, {{0, 1}, {2, 3}}}, {"slices ends with 1, expected 2"});
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  refused({{{0, most}}, {0}, {}}, {"rows[0] from 0 to 9223372036854775807"});
  refused({{{least, most}}, {0}, {}}, {"rows[0] from -9223372036854775808"});
  refused({{{most, least}}, {0}, {}}, {"rows[0] from 9223372036854775807"});
  refused({{{0, 4}}, {most}, {{0, 1}}}, {"slices ends with 9223372036854775807, expected 1"});
  refused({{{0, 4}}, {least}, {{0, 1}}}, {"slices[0] is -9223372036854775808, expected at least 0"});
  refused({{{0, 4}, {2, 2}}, {1, 3}, {{0, 1}, {4, 9}, {8, 9}}}, {"columns[2] from 8 to 9 overlaps columns[1] from 4 to 9"});
  const auto of_extents = [&](std::int64_t m, std::int64_t n) {
    return support::caught([&] { (void)Given{}.on(exec, m, n); });
  };
  CHECK(of_extents(-1, 5).lacks({"the scores are -1x5"}) == "");
  CHECK(of_extents(std::int64_t{1} << 32, std::int64_t{1} << 31).lacks({"4294967296x2147483648", "2^63"}) == "");
  const Kokkos::View<int**, Kokkos::HostSpace> three("three", 2, 3), none("none", 0, 0);
  const Kokkos::View<int*, Kokkos::HostSpace> ends("ends", 2);
  CHECK(support::caught([&] {
          (void)rigel::Ranges(exec, 10, 20, three, ends, none);
        }).lacks({"rows 'three' is 2x3", "expected two columns"}) == "");
  // Neither two rows with the same columns nor intervals that touch overlap.
  CHECK(Given{{{0, 4}, {4, 5}}, {2, 3}, {{0, 1}, {1, 2}, {0, 2}}}.on(exec, 10, 20).pairs() == 10);

  const auto a = support::matrix<float, Kokkos::DefaultHostExecutionSpace>(10, 2),
             b = support::matrix<float, Kokkos::DefaultHostExecutionSpace>(2, 20);
  const auto values = vector<float, Kokkos::DefaultHostExecutionSpace>(10);
  const support::Caught other = support::caught(
      [&] { rigel::reduce(exec, rigel::l1<float>{}, a, b, reducer::sum{}, values, {.ranges = Given{}.on(exec, 10, 19)}); });
  CHECK(other.lacks({"reduce: options.ranges are of 10x19 scores, expected", "10x20"}) == "");
}

TEST_CASE("ranges of one GPU are refused on another") {
  const Kokkos::DefaultHostExecutionSpace exec;
  const rigel::Ranges ranges = Given{}.on(exec, 10, 20);
  using Host = Kokkos::DefaultHostExecutionSpace;
  CHECK(rigel::detail::ranges_on<Host>(ranges, -1, "reduce") == ranges.table());
  CHECK(rigel::detail::ranges_on<Host>(rigel::Ranges{}, 1, "reduce") == nullptr);
  const support::Caught other = support::caught([&] { rigel::detail::ranges_on<Host>(ranges, 1, "reduce"); });
  CHECK(other.code == rigel::Code::invalid_argument);
  CHECK(other.lacks({"reduce: options.ranges are on GPU -1, expected GPU 1, that of the execution space"}) == "");
#ifdef KOKKOS_ENABLE_CUDA
  int count = 0, current = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) {
    support::skip("this machine has fewer than two GPUs");
    return;
  }
  REQUIRE(cudaGetDevice(&current) == cudaSuccess);
  const Kokkos::Cuda first;
  const rigel::Ranges of_first = Given{{{0, 10}}, {1}, {{0, 20}}}.on(first, 10, 20);
  CHECK(of_first.table()->device == first.cuda_device());
  const auto a = support::matrix<float, Kokkos::Cuda>(10, 2), b = support::matrix<float, Kokkos::Cuda>(2, 20);
  const auto values = vector<float, Kokkos::Cuda>(10);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaSetDevice(1 - first.cuda_device()) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    const Kokkos::Cuda second(stream);
    const support::Caught mixed = support::caught(
        [&] { rigel::reduce(second, rigel::l1<float>{}, a, b, reducer::sum{}, values, {.ranges = of_first}); });
    CHECK(mixed.code == rigel::Code::invalid_argument);
    CHECK(mixed.lacks({"reduce: options.ranges are on GPU", "expected GPU", "that of the execution space"}) == "");
  }
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaSetDevice(current) == cudaSuccess);
#endif
}

/// A kernel that adds products of floats. It takes ranges, and heeds them or not.
rigel::Kernel<rigel::Reduction> adds(bool heeds_ranges) {
  using Kernel = rigel::Kernel<rigel::Reduction>;
  Kernel k;
  k.info.name = k.info.family = heeds_ranges ? "heeds_ranges" : "ignores_ranges";
  k.info.semiring = "plus_times";
  k.info.element = k.info.accumulator = rigel::Scalar::f32;
  k.info.facts = &rigel::semiring_info<rigel::plus_times<float>>();
  k.info.spaces = rigel::host_spaces;
  k.info.promises = rigel::Promise::repeatable;
  k.supports = [](const Kernel&, const rigel::Reduction& p) -> rigel::Status {
    if (p.reducer != rigel::Reducer::sum || p.batch != 1) return {rigel::Decline::other, "adds up single matrices only"};
    return {};
  };
  k.cost = [](const Kernel&, const rigel::Reduction&, rigel::Plan&) { return 1e6; };
  k.run = [](const Kernel& own, const rigel::Reduction& p, const rigel::Plan&, const rigel::Workspace&) {
    const auto at = [](const rigel::Operand& o, std::int64_t i, std::int64_t j) {
      return static_cast<const float*>(o.data)[i * o.row_stride + j * o.column_stride];
    };
    for (std::int64_t m = 0; m < p.m; ++m) {
      double sum = 0;
      const auto add = [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t n = first; n < end; ++n)
          for (std::int64_t i = 0; i < p.k && !(p.exclude_self && n == m); ++i)
            sum += static_cast<double>(at(p.a, m, i)) * static_cast<double>(at(p.b, i, n));
      };
      if (p.ranges && own.info.name == "heeds_ranges") {
        const rigel::detail::RowInterval& rows = rigel::detail::interval_of_row(p.ranges->parts, p.ranges->part_count, m);
        for (std::int64_t i = rows.list; i < rows.list_end; ++i)
          add(p.ranges->part_columns[i].first, p.ranges->part_columns[i].end);
      } else {
        add(0, p.n);
      }
      static_cast<double*>(p.values.data)[m * p.values.row_stride] = sum;
    }
  };
  return k;
}

TEST_CASE("ranges: verify() finds kernels that ignore them") {
  const auto heeds = rigel::verify(adds(true), 3);
  CHECK(heeds.report == "");
  CHECK(heeds.ok);
  const auto ignores = rigel::verify(adds(false), 3);
  CHECK_FALSE(ignores.ok);
  CHECK(ignores.report.find("with ranges") != std::string::npos);
  CHECK(ignores.report.find("is not what a plain loop makes of its scores") != std::string::npos);
}

TEST_CASE_TEMPLATE("ranges: kernels of all pairs decline them", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 40, n = 300;
  const auto x = support::matrix<float, Exec>(m, 4), z = support::matrix<float, Exec>(n, 4);
  const auto distances = support::matrix<float, Exec>(m, 3);
  const auto indices = support::matrix<int, Exec>(m, 3);
  rigel::ReduceOptions options{.ranges = Given{{{0, 40}}, {1}, {{10, 90}}}.on(exec, m, n)};
  const auto explained = [&] {
    return rigel::explain_reduce_distances(exec, x, z, metric::euclidean{}, reducer::smallest{3}, distances, indices, {},
                                           options);
  };
  const std::string text = explained();
  const auto chosen = text.find("* ");
  CAPTURE(text);
  CHECK(text.find("3200 pairs in ranges") != std::string::npos);
  CHECK(text.find("takes all pairs of rows and columns, the call has ranges") != std::string::npos);
  REQUIRE(chosen != std::string::npos);
  CHECK(text.compare(chosen, 17, "* portable.strips") == 0);
  const std::string name = support::on_host<Exec> ? "host.l2_squared.f32.nearest" : "cuda.mma.l2_squared.f32.nearest";
  if (rigel::kernels({.name = name, .operation = "reduce"}).empty()) return;
  options.kernel = name;
  const support::Caught named =
      support::caught([&] { rigel::nearest(exec, x, z, metric::euclidean{}, 3, indices, distances, options); });
  CHECK(named.code == rigel::Code::unsupported);
  CHECK(named.lacks({"takes all pairs of rows and columns"}) == "");
}

TEST_CASE("ranges: made before a capture, and taken by a captured call") {
#ifdef KOKKOS_ENABLE_CUDA
  const support::Stream stream;
  {
    const Kokkos::Cuda exec(stream);
    const Given given{{{0, 4}, {6, 9}}, {1, 2}, {{3, 8}, {0, 20}}};
    const auto a = support::matrix<float, Kokkos::Cuda>(10, 1, Values(10, 1)),
               b = support::matrix<float, Kokkos::Cuda>(1, 20, Values(20, 3));
    const auto values = vector<float, Kokkos::Cuda>(10);
    const rigel::Ranges ranges = given.on(exec, 10, 20);
    const auto call = [&] { rigel::reduce(exec, rigel::l1<float>{}, a, b, reducer::sum{}, values, {.ranges = ranges}); };
    call();
    exec.fence();
    rigel::presize(exec, std::size_t{1} << 20);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    const auto refused = support::caught([&] { (void)given.on(exec, 10, 20); });
    const auto taken = support::caught(call);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);  // what is refused leaves the capture as it was
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(refused.code == rigel::Code::invalid_argument);
    CHECK(refused.lacks({"Ranges: ", "captured", "expected ranges that were made before"}) == "");
    CHECK(taken.code == rigel::Code::ok);
    Kokkos::deep_copy(values, -7.f);
    cudaGraphExec_t replay = nullptr;
    REQUIRE(cudaGraphInstantiateWithFlags(&replay, graph, 0) == cudaSuccess);
    CHECK(cudaGraphLaunch(replay, stream) == cudaSuccess);
    exec.fence();
    CHECK(support::values(values) == Values{10, 10, 10, 10, 0, 0, 40, 40, 40, 0});
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
  }
#else
  support::skip("ranges: made before a capture: no CUDA in this build");
#endif
}

}  // namespace

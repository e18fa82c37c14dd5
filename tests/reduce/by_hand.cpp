// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reducers on rows that are written down, with the results that follow from their definitions: ties, NaN, infinities, fewer scores than
// results, no scores, and integers at the ends of their range.
#include <tests/reduce/call.hpp>

#include <cmath>
#include <utility>

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;

template <class T, class Value, class Exec, class R>
void check(const Exec& exec, const Values& row, const R& reducer, const Values& values, const Values& indices = {},
           const rigel::ReduceOptions& given = {}) {
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      rigel::ReduceOptions options = given;
      options.kernel = kernel;
      options.workspace_limit = limit;
      CAPTURE(kernel);
      CAPTURE(limit);
      const Results r = of_row<T, Value>(exec, row, reducer, options, static_cast<int>(values.size()));
      CHECK(support::same(r.values, values));
      CHECK(support::same(r.indices, indices));
    }
}

// A row longer than a chunk, with few scores that matter.
Values long_row(double all, const std::vector<std::pair<int, double>>& others, int size = 1000) {
  Values row(static_cast<std::size_t>(size), all);
  for (const auto& [n, score] : others) row[static_cast<std::size_t>(n)] = score;
  return row;
}

TEST_CASE_TEMPLATE("reduce: minimum and maximum, of equal ones the first, NaN before numbers", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check<float, float>(exec, {3, 1, 2, 1}, reducer::minimum{}, {1}, {1});
  check<float, float>(exec, {3, 1, 3, 1}, reducer::maximum{}, {3}, {0});
  check<float, float>(exec, {3, not_a_number, -infinity, not_a_number}, reducer::minimum{}, {not_a_number}, {1});
  check<float, float>(exec, {3, not_a_number, infinity, not_a_number}, reducer::maximum{}, {not_a_number}, {1});
  check<float, float>(exec, {infinity, infinity}, reducer::minimum{}, {infinity}, {0});
  check<float, float>(exec, {}, reducer::minimum{}, {infinity}, {-1});
  check<float, float>(exec, {}, reducer::maximum{}, {-infinity}, {-1});
  check<double, double>(exec, long_row(5, {{70, 4}, {500, 4}, {999, 6}}), reducer::minimum{}, {4}, {70});
  check<double, double>(exec, long_row(5, {{999, 6}}), reducer::maximum{}, {6}, {999});
  check<double, double>(exec, long_row(5, {{3, 7}, {600, not_a_number}, {601, not_a_number}}), reducer::maximum{},
                        {not_a_number}, {600});
  check<double, double>(exec, Values(1000, not_a_number), reducer::minimum{}, {not_a_number}, {0});
  check<double, double>(exec, Values(1000, 2), reducer::maximum{}, {2}, {0});
}

TEST_CASE_TEMPLATE("reduce: the smallest and the largest, sorted, NaN after numbers", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check<float, float>(exec, {3, 1, 2, 1}, reducer::smallest{3}, {1, 1, 2}, {1, 3, 2});
  check<float, float>(exec, {3, 1, 3, 1}, reducer::largest{3}, {3, 3, 1}, {0, 2, 1});
  check<float, float>(exec, {3, 1}, reducer::smallest{4}, {1, 3, infinity, infinity}, {1, 0, -1, -1});
  check<float, float>(exec, {3, 1}, reducer::largest{4}, {3, 1, -infinity, -infinity}, {0, 1, -1, -1});
  check<float, float>(exec, {}, reducer::smallest{2}, {infinity, infinity}, {-1, -1});
  check<float, float>(exec, {not_a_number, 1, infinity, not_a_number}, reducer::smallest{4},
                      {1, infinity, not_a_number, not_a_number}, {1, 2, 0, 3});
  check<float, float>(exec, {2, not_a_number, infinity, not_a_number}, reducer::largest{4},
                      {not_a_number, not_a_number, infinity, 2}, {1, 3, 2, 0});
  check<float, float>(exec, {infinity, not_a_number}, reducer::smallest{3}, {infinity, not_a_number, infinity}, {0, 1, -1});
  check<float, float>(exec, {5}, reducer::smallest{1}, {5}, {0});
  check<double, double>(exec, long_row(5, {{70, 4}, {500, 4}, {999, 3}}), reducer::smallest{5}, {3, 4, 4, 5, 5},
                        {999, 70, 500, 0, 1});
  check<double, double>(exec, long_row(not_a_number, {{70, 4}, {500, 4}, {999, 3}}), reducer::smallest{5},
                        {3, 4, 4, not_a_number, not_a_number}, {999, 70, 500, 0, 1});
  check<double, double>(exec, long_row(not_a_number, {{0, 4}, {1, 4}}), reducer::largest{2}, {not_a_number, not_a_number},
                        {2, 3});
  Values descending(300), sorted(300), places(300);
  for (int n = 0; n < 300; ++n) {
    descending[n] = 300 - n;
    sorted[n] = n + 1;
    places[n] = 299 - n;
  }
  check<float, double>(exec, descending, reducer::smallest{300}, sorted, places);
  check<float, double>(exec, sorted, reducer::smallest{1}, {1}, {0});
}

TEST_CASE_TEMPLATE("reduce: sums, log-sum-exp and counts", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check<float, float>(exec, {1, 2, 4}, reducer::sum{}, {7});
  check<float, float>(exec, {}, reducer::sum{}, {0});
  check<float, double>(exec, long_row(0.5, {{0, 1e30}, {999, -1e30}}, 1026), reducer::sum{},
                       {0});  // below the 53 bits of 1e30
  check<float, float>(exec, {1, infinity}, reducer::sum{}, {infinity});
  check<float, float>(exec, {-infinity, infinity}, reducer::sum{}, {not_a_number});
  // 2^24 + 1 twice: a float would lose both ones.
  check<float, double>(exec, {16777216, 1, 16777216, 1}, reducer::sum{}, {33554434});

  check<float, float>(exec, {}, reducer::log_sum_exp{}, {-infinity});
  check<float, float>(exec, {-infinity, -infinity}, reducer::log_sum_exp{}, {-infinity});
  check<float, float>(exec, {-infinity, 3}, reducer::log_sum_exp{}, {3});
  check<float, float>(exec, {3, infinity, -infinity}, reducer::log_sum_exp{}, {infinity});
  check<float, float>(exec, {3, infinity, not_a_number}, reducer::log_sum_exp{}, {not_a_number});
  check<float, float>(exec, {1000, 1000}, reducer::log_sum_exp{}, {static_cast<float>(1000.6931471805599453)});
  check<float, float>(exec, Values(1024, -2000), reducer::log_sum_exp{}, {static_cast<float>(-1993.0685281944005469)});

  check<float, float>(exec, {1, 2, 3, not_a_number, -infinity}, reducer::count_below{2}, {2});
  check<float, std::int32_t>(exec, {1, 2, 3, not_a_number, infinity}, reducer::count_below{2, true}, {2});
  check<float, std::int64_t>(exec, long_row(1, {{5, 9}, {700, not_a_number}}), reducer::count_below{2}, {998});
  check<float, std::int64_t>(exec, {}, reducer::count_below{2}, {0});
  // 0.1f is above 0.1 and 0.3f is as well: a threshold is not rounded to a float.
  check<float, std::int64_t>(exec, {0.1f, 0.3f}, reducer::count_below{0.1, true}, {0});
  check<float, std::int64_t>(exec, {0.1f, 0.3f}, reducer::count_below{0.15}, {1});
  check<float, std::int64_t>(exec, {1, 2}, reducer::count_below{not_a_number}, {0});
  check<float, std::int64_t>(exec, {1, infinity, 3e38}, reducer::count_below{1e300}, {2});
}

TEST_CASE_TEMPLATE("reduce: integers", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr double half = 1073741823;  // Rigel's infinity in 32 bits
  check<std::int32_t, std::int32_t>(exec, {half, -half, 7}, reducer::minimum{}, {-half}, {1});
  check<std::int32_t, std::int32_t>(exec, {}, reducer::minimum{}, {half}, {-1});
  check<std::int32_t, std::int64_t>(exec, {}, reducer::maximum{}, {-4611686018427387903.}, {-1});
  check<std::int32_t, std::int64_t>(exec, Values(1000, half), reducer::sum{}, {1000 * half});
  check<std::int32_t, double>(exec, {3, 1, 1, 2}, reducer::smallest{2}, {1, 1}, {1, 2});
  check<std::int32_t, float>(exec, {3, 1, 1, 2}, reducer::largest{2}, {3, 2}, {0, 3});
  check<std::int32_t, std::int64_t>(exec, {3, 1, 1, 2}, reducer::count_below{2.5}, {3});
  check<std::int32_t, std::int64_t>(exec, {3, 1, 1, 2}, reducer::count_below{2}, {2});
  check<std::int32_t, std::int64_t>(exec, {3, 1, 1, 2}, reducer::count_below{2, true}, {3});
  check<std::int32_t, std::int64_t>(exec, {3, 1, 1, 2}, reducer::count_below{1e30}, {4});
  check<std::int32_t, std::int64_t>(exec, {3, 1, 1, 2}, reducer::count_below{-1e30}, {0});
  check<std::int64_t, std::int64_t>(exec, {3, -2, 1, 2}, reducer::minimum{}, {-2}, {1});
  check<std::int16_t, std::int32_t>(exec, {3, -2, 1, 2}, reducer::minimum{}, {-2}, {1});
  check<std::int32_t, double>(exec, {0, 0}, reducer::log_sum_exp{}, {std::log(2.)});
}

TEST_CASE_TEMPLATE("reduce: all scores below a threshold", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // Scores m + n, for n = 0 … 199, of which 2 − m, or 3 − m with the threshold itself, are below 2.
  Values row;
  for (int n = 0; n < 200; ++n) row.push_back(n);
  const auto a = support::matrix<float, Exec>(3, 1, {0, 1, 2}), b = support::matrix<float, Exec>(1, 200, row);
  const auto offsets = vector<std::int64_t, Exec>(4);
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      CAPTURE(kernel);
      CAPTURE(limit);
      const auto listed = [&](const Values& at, double threshold, bool or_equal, int length) {
        support::fill(offsets, at);
        const auto values = vector<float, Exec>(length);
        const auto indices = vector<int, Exec>(length);
        rigel::reduce(exec, rigel::max_plus<float>{}, a, b,
                      reducer::all_below<decltype(offsets)>{threshold, offsets, or_equal}, values, indices,
                      {.kernel = kernel, .workspace_limit = limit});
        exec.fence();
        return std::pair{support::values(values), support::values(indices)};
      };
      CHECK(listed({0, 2, 3, 3}, 2, false, 3) == std::pair{Values{0, 1, 1}, Values{0, 1, 0}});
      CHECK(listed({0, 3, 5, 6}, 2, true, 6) == std::pair{Values{0, 1, 2, 1, 2, 2}, Values{0, 1, 2, 0, 1, 0}});
      // Gaps stay, what does not fit is left out.
      CHECK(listed({1, 2, 5, 9}, 2, true, 7) == std::pair{Values{-7, 0, 1, 2, -7, 2, -7}, Values{-7, 0, 0, 1, -7, 0, -7}});
      CHECK(listed({-2, 4, 3, 9}, 2, true, 2) == std::pair{Values{-7, -7}, Values{-7, -7}});
      const auto [values, indices] = listed({0, 200, 400, 600}, 1000, false, 600);
      int wrong = 0;
      for (int i = 0; i < 600; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int m = i / 200, n = i % 200;
        wrong += values[at] != m + n || indices[at] != n;
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE_TEMPLATE("reduce: a set with itself without each one itself", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // Points 0, 2, 3 and 7 on a line: squared distances.
  const auto x = support::matrix<float, Exec>(4, 1, {0, 2, 3, 7}, "x");
  for (const std::string& kernel : kernels) {
    CAPTURE(kernel);
    const rigel::ReduceOptions options{.exclude_self = true, .kernel = kernel};
    const rigel::l2_squared<float> s;
    const auto values = support::matrix<float, Exec>(4, 4);
    const auto indices = support::matrix<int, Exec>(4, 4);
    rigel::reduce(exec, s, x, rigel::transposed(x), reducer::smallest{4}, values, indices, options);
    exec.fence();
    CHECK(support::same(support::values(values),
                        {4, 9, 49, infinity, 1, 4, 25, infinity, 1, 9, 16, infinity, 16, 25, 49, infinity}));
    CHECK(support::same(support::values(indices), {1, 2, 3, -1, 2, 0, 3, -1, 1, 0, 3, -1, 2, 1, 0, -1}));
    const auto one = vector<float, Exec>(4);
    rigel::reduce(exec, s, x, rigel::transposed(x), reducer::minimum{}, one, options);
    exec.fence();
    CHECK(support::same(support::values(one), {4, 1, 1, 16}));
    rigel::reduce(exec, s, x, rigel::transposed(x), reducer::sum{}, one, options);
    exec.fence();
    CHECK(support::same(support::values(one), {62, 30, 26, 90}));
    rigel::reduce(exec, s, x, rigel::transposed(x), reducer::count_below{10}, one, options);
    exec.fence();
    CHECK(support::same(support::values(one), {2, 2, 2, 0}));
  }
}

}  // namespace

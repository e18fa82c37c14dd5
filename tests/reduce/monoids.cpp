// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Monoids of users as reducers, on every kernel, in one and in several chunks, over scores of several types.
#include <rigel/neighbors.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <cmath>

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;

struct SumOfSquares {
  RIGEL_MEMBER double identity() const { return 0; }
  RIGEL_MEMBER double of(double score, std::int64_t) const { return score * score; }
  RIGEL_MEMBER double join(double x, double y) const { return x + y; }
  RIGEL_MEMBER double result(double x) const { return x; }
};

/// The variance of the scores, by parts (T. F. Chan, G. H. Golub and R. J. LeVeque, 1979).
struct Variance {
  struct State {
    double count, mean, squares;
  };
  RIGEL_MEMBER State identity() const { return {0, 0, 0}; }
  RIGEL_MEMBER State of(float score, std::int64_t) const { return {1, score, 0}; }
  RIGEL_MEMBER State join(State x, State y) const {
    const double count = x.count + y.count, difference = y.mean - x.mean;
    if (count == 0) return x;
    return {count, x.mean + difference * y.count / count,
            x.squares + y.squares + difference * difference * x.count * y.count / count};
  }
  RIGEL_MEMBER double result(State x) const { return x.squares / x.count; }
};

/// The last place of an even score, in integers.
struct LastEven {
  std::int64_t none = -1;
  RIGEL_MEMBER std::int64_t identity() const { return none; }
  RIGEL_MEMBER std::int64_t of(std::int32_t score, std::int64_t n) const { return score % 2 == 0 ? n : none; }
  RIGEL_MEMBER std::int64_t join(std::int64_t x, std::int64_t y) const { return x > y ? x : y; }
  RIGEL_MEMBER std::int64_t result(std::int64_t x) const { return x; }
};

template <class T, class Value, class Exec, class M>
double of_scores(const Exec& exec, const Values& row, const M& monoid, const rigel::ReduceOptions& options) {
  const auto a = support::matrix<T, Exec>(1, 1, {0}), b = support::matrix<T, Exec>(1, static_cast<int>(row.size()), row);
  const auto values = vector<Value, Exec>(1);
  rigel::reduce(exec, rigel::max_plus<T>{}, a, b, reducer::monoid{monoid}, values, options);
  exec.fence();
  return support::values(values)[0];
}

TEST_CASE_TEMPLATE("monoids of users", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  Values row;
  for (int n = 0; n < 2500; ++n) row.push_back(n % 7 - 3);
  double squares = 0, sum = 0;
  for (const double x : row) {
    squares += x * x;
    sum += x;
  }
  const double mean = sum / 2500;
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      CAPTURE(kernel);
      CAPTURE(limit);
      const rigel::ReduceOptions options{.kernel = kernel, .workspace_limit = limit};
      CHECK(of_scores<float, float>(exec, row, SumOfSquares{}, options) == squares);
      CHECK(of_scores<double, double>(exec, {}, SumOfSquares{}, options) == 0);
      // A chain of 80 joins and 5 more, each of a few roundings of numbers up to the result.
      CHECK(std::abs(of_scores<float, double>(exec, row, Variance{}, options) - (squares / 2500 - mean * mean)) <=
            85 * 6 * squares / 2500 * 0x1p-53);
      CHECK(of_scores<std::int32_t, std::int64_t>(exec, row, LastEven{}, options) ==
            2497);  // 2497 % 7 - 3 = 2; 3 and -3 follow
      CHECK(of_scores<std::int32_t, int>(exec, {1, 3}, LastEven{-5}, options) == -5);
    }
}

TEST_CASE_TEMPLATE("monoids of users: distances, batches, a set with itself; the same bits on every kernel", Exec,
                   RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int batches = 2, m = 70, dimensions = 3;
  support::Random random(9);
  Values numbers(batches * m * dimensions);
  for (double& x : numbers) x = random.uniform(-1, 1);
  const auto x = support::batch<float, Exec>(batches, m, dimensions, numbers);
  Values first;
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      const auto values = support::matrix<double, Exec>(batches, m);
      rigel::reduce_distances(
          exec, x, x, rigel::metric::euclidean{}, reducer::monoid{SumOfSquares{}}, values, rigel::no_output,
          rigel::epilogue::Program{},
          {.exclude_self = true, .kernel = kernel, .score_kernel = "reference", .workspace_limit = limit});
      exec.fence();
      const Values v = support::values(values);
      if (first.empty()) first = v;
      CHECK(v == first);
    }
  for (int row = 0; row < batches * m; ++row) {
    double sum = 0;
    for (int j = 0; j < m; ++j)
      for (int d = 0; d < dimensions; ++d) {
        const auto number = [&](int i) {
          return static_cast<double>(static_cast<float>(numbers[at(row / m * m + i, dimensions, d)]));
        };
        sum += (number(row % m) - number(j)) * (number(row % m) - number(j));
      }
    CHECK(std::abs(first[static_cast<std::size_t>(row)] - sum) <= 10 * 0x1p-24 * sum);
  }
}

TEST_CASE("monoids of users: results and values") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const auto e = support::caught([&] { of_scores<std::int32_t, int>(Exec{}, {1, 2}, SumOfSquares{}, {}); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"values 'vector' 1x1 of i32, expected f16, bf16, f32 or f64"}) == "");
}

}  // namespace

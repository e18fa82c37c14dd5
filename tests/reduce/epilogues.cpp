// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues of scores that are computed in strips and chunks: they read what they would read of a whole C. Functors of the user's, and
// semirings of the user's and in views.
#include <tests/reduce/call.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;
namespace epilogue = rigel::epilogue;

constexpr int batches = 3, rows = 7, columns = 200, depth = 3;

template <class Exec>
struct Operands {
  support::Batch<float, Exec> a = support::batch<float, Exec>(batches, rows, depth, numbers(batches * rows * depth, 7)),
                              b = support::batch<float, Exec>(batches, depth, columns,
                                                              numbers(batches * depth * columns, 11));
  static Values numbers(int count, int modulus) {
    Values v;
    for (int i = 0; i < count; ++i) v.push_back(i * 5 % modulus);
    return v;
  }
};

/// The smallest 4 of the scores, and the same of a C that contract() stored with this epilogue.
template <class Exec, class S, class E>
void check(const Exec& exec, const S& semiring, const E& last) {
  const Operands<Exec> of;
  const auto stored = support::batch<double, Exec>(batches, rows, columns);
  rigel::contract(exec, semiring, of.a, of.b, stored, last, {.kernel = "reference"});
  exec.fence();
  const Values c = support::values(stored);
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{10000}, std::size_t{1}}) {
      CAPTURE(kernel);
      CAPTURE(limit);
      const auto values = support::batch<double, Exec>(batches, rows, 4);
      const auto indices = support::batch<int, Exec>(batches, rows, 4);
      rigel::reduce(exec, semiring, of.a, of.b, reducer::smallest{4}, values, indices, last,
                    {.kernel = kernel, .workspace_limit = limit});
      exec.fence();
      const Values v = support::values(values), n = support::values(indices);
      int wrong = 0;
      for (int row = 0; row < batches * rows; ++row) {
        std::vector<std::pair<double, int>> scores;
        for (int j = 0; j < columns; ++j) scores.push_back({static_cast<float>(c[reduced::at(row, columns, j)]), j});
        std::sort(scores.begin(), scores.end());
        for (int i = 0; i < 4; ++i) {
          const auto at = reduced::at(row, 4, i);
          wrong += v[at] != scores[static_cast<std::size_t>(i)].first || n[at] != scores[static_cast<std::size_t>(i)].second;
        }
      }
      CHECK(wrong == 0);
    }
}

/// A bias by place, and a mask that hides every third column.
struct Places {
  RIGEL_MEMBER float operator()(float v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return n % 3 == 1 ? INFINITY : v + static_cast<float>(((m + 2) * (n + 3) * (l + 5)) % 13);
  }
};

/// The k that won, of with_argument.
struct Winner {
  RIGEL_MEMBER float operator()(rigel::argument<float> x, std::int64_t, std::int64_t, std::int64_t) const {
    return static_cast<float>(x.index);
  }
};

/// l1 with a factor, by a user.
struct Scaled {
  using self = Scaled;
  using element = float;
  using accumulator = float;
  float factor = 2;
  RIGEL_MEMBER static constexpr float identity() { return 0; }
  RIGEL_MEMBER float multiply(float a, float b) const { return factor * (a > b ? a - b : b - a); }
  RIGEL_MEMBER static float add(float x, float y) { return x + y; }
};

TEST_CASE_TEMPLATE("reduce: programs that read rows, columns, batches and places", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const rigel::plus_times<float> s;
  const auto row = vector<float, Exec>(columns), column = vector<float, Exec>(rows);
  support::fill(row, Operands<Exec>::numbers(columns, 17));
  support::fill(column, Operands<Exec>::numbers(rows, 5));
  const auto all =
      support::batch<float, Exec>(batches, rows, columns, Operands<Exec>::numbers(batches * rows * columns, 19));
  const auto each = vector<float, Exec>(batches);
  support::fill(each, {1, 3, 2});
  check(exec, s, epilogue::scale(0.5) | epilogue::add_row(row));
  check(exec, s, epilogue::add_column(column) | epilogue::scale(each));
  check(exec, s, epilogue::residual(all));
  check(exec, s, epilogue::add_diagonal(100, 2, 1));
}

TEST_CASE_TEMPLATE("reduce: functors see places in the whole", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check(exec, rigel::plus_times<float>{}, Places{});
  const auto row = vector<float, Exec>(columns);
  support::fill(row, Operands<Exec>::numbers(columns, 17));
  check(exec, rigel::plus_times<float>{}, epilogue::functor(Places{}) | epilogue::add_row(row));
}

TEST_CASE_TEMPLATE("reduce: a user's semiring, and one for each batch", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check(exec, Scaled{3}, epilogue::Program{});
  const Kokkos::View<Scaled*, typename Exec::memory_space> semirings("semirings", batches);
  const auto host = Kokkos::create_mirror_view(semirings);
  for (int l = 0; l < batches; ++l) host(l).factor = static_cast<float>(3 - l);
  Kokkos::deep_copy(semirings, host);
  check(exec, semirings, epilogue::scale(2));
}

TEST_CASE_TEMPLATE("reduce: results that are no numbers, by a functor", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // Sums 1 + 5, 4 + 1 and 1 + 0, 4 + 9: the winners are k = 1 and 0.
  const auto a = support::matrix<float, Exec>(1, 2, {1, 4}), b = support::matrix<float, Exec>(2, 2, {5, 0, 1, 9});
  const auto values = support::matrix<float, Exec>(1, 2);
  const auto indices = support::matrix<int, Exec>(1, 2);
  rigel::reduce(exec, rigel::with_argument<rigel::min_plus<float>>{}, a, b, reducer::smallest{2}, values, indices, Winner{});
  exec.fence();
  CHECK(support::values(values) == Values{0, 1});
  CHECK(support::values(indices) == Values{1, 0});
}

TEST_CASE_TEMPLATE("reduce: the batch index last", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // Two matrices: A is (1, 2)ᵀ and (3, 4)ᵀ, B is (5 6 7) and (9 8 7).
  const auto a = support::batch<float, Exec>(2, 1, 2, {1, 3, 2, 4}),
             b = support::batch<float, Exec>(1, 3, 2, {5, 9, 6, 8, 7, 7});
  const auto least = support::matrix<float, Exec>(2, 2);
  const auto where = support::matrix<int, Exec>(2, 2);
  const auto best = support::batch<float, Exec>(2, 2, 2);
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      const rigel::ReduceOptions options{.batch = rigel::Batch::last, .kernel = kernel, .workspace_limit = limit};
      rigel::reduce(exec, rigel::max_plus<float>{}, a, b, reducer::minimum{}, least, where, options);
      rigel::reduce(exec, rigel::max_plus<float>{}, a, b, reducer::largest{2}, best, options);
      exec.fence();
      CHECK(support::values(least) == Values{6, 10, 7, 11});
      CHECK(support::values(where) == Values{0, 2, 0, 2});
      CHECK(support::values(best) == Values{8, 12, 7, 11, 9, 13, 8, 12});
    }
}

TEST_CASE_TEMPLATE("reduce: integers after an epilogue are numbers of double", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = support::matrix<std::int32_t, Exec>(1, 1, {1}), b = support::matrix<std::int32_t, Exec>(1, 3, {3, 1, 2});
  const auto least = vector<double, Exec>(1);
  rigel::reduce(exec, rigel::plus_times<std::int32_t>{}, a, b, reducer::minimum{}, least, rigel::no_output,
                epilogue::scale(0.25));
  exec.fence();
  CHECK(support::values(least) == Values{0.25});
}

TEST_CASE_TEMPLATE("reduce: K = 0 makes scores of the identity", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = support::matrix<float, Exec>(2, 0), b = support::matrix<float, Exec>(0, 5);
  for (const std::string& kernel : kernels) {
    const auto values = vector<float, Exec>(2);
    rigel::reduce(exec, rigel::plus_times<float>{}, a, b, reducer::sum{}, values, rigel::no_output, epilogue::add(3),
                  {.kernel = kernel});
    exec.fence();
    CHECK(support::values(values) == Values{15, 15});
  }
}

}  // namespace

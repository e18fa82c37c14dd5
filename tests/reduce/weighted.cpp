// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weighted sums and softmax-weighted sums of the rows of V: by hand, against a loop over scores that contract() stores, and what they refuse.
#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;
namespace epilogue = rigel::epilogue;

/// One row of scores and V of one column.
template <class T, template <class> class Weighted, class Exec>
double of_row(const Exec& exec, const Values& row, const Values& v, const rigel::ReduceOptions& options = {}) {
  const auto a = support::matrix<T, Exec>(1, 1, {0}), b = support::matrix<T, Exec>(1, static_cast<int>(row.size()), row);
  const auto weights = vector<T, Exec>(static_cast<int>(v.size()));
  support::fill(weights, v);
  const auto result = vector<double, Exec>(1);
  rigel::reduce(exec, rigel::max_plus<T>{}, a, b, Weighted<Vector<T, Exec>>{weights}, result, options);
  exec.fence();
  return support::values(result)[0];
}

const std::vector<std::string> of_both = {"", "reference", "portable.weighted_strips"};

TEST_CASE_TEMPLATE("weighted sums by hand", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const std::string& kernel : of_both) {
    CAPTURE(kernel);
    const rigel::ReduceOptions options{.kernel = kernel};
    CHECK(of_row<float, reducer::weighted_sum>(exec, {1, 2, 3}, {10, 20, 30}, options) == 140);
    CHECK(of_row<double, reducer::weighted_sum>(exec, {}, {}, options) == 0);
    // e^0·5 + e^(log 3)·1 over 1 + 3.
    CHECK(std::abs(of_row<double, reducer::softmax_weighted>(exec, {0, std::log(3)}, {5, 1}, options) - 2) <= 16 * 0x1p-53);
    // All that overflows is relative to the maximum.
    CHECK(of_row<float, reducer::softmax_weighted>(exec, {1e30, 1e30, -1e30}, {4, 8, 1}, options) == 6);
    const double none = of_row<double, reducer::softmax_weighted>(exec, {}, {}, options);
    CHECK(none != none);
  }
}

TEST_CASE_TEMPLATE("softmax: infinities and NaN", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int chunks = 1500;  // columns: two chunks
  for (const std::string& kernel : of_both)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      CAPTURE(kernel);
      CAPTURE(limit);
      const rigel::ReduceOptions options{.kernel = kernel, .workspace_limit = limit};
      const auto softmax = [&](const Values& row, double v_of_last = 1) {
        Values v(row.size(), 1);
        v.back() = v_of_last;
        return of_row<float, reducer::softmax_weighted>(exec, row, v, options);
      };
      const Values none(chunks, -infinity);
      Values last = none, nan = none, first(chunks, 0), plus(chunks, 3);
      last.back() = 7;
      nan[0] = not_a_number;
      first[0] = infinity;
      plus.back() = infinity;
      CHECK(softmax(last, 5) == 5);  // −∞ in all chunks but the last
      CHECK(softmax(first) == 1);
      CHECK(softmax(plus, 5) == 5);
      for (const Values& row : {none, nan}) {
        const double result = softmax(row);
        CHECK(result != result);
      }
      // The maximum grows from chunk to chunk: only the last score counts.
      Values growing;
      for (int n = 0; n < chunks; ++n) growing.push_back(n * 200.);
      CHECK(softmax(growing, 9) == 9);
    }
}

template <class View>
std::vector<double> all(const View& v) {
  return support::values(v);
}

/// Random operands, of which the reducer of one call is held to loops in double over stored scores. u: of the scores' type.
template <class T, class V, class Value, class Exec, class S, class E>
void check(const Exec& exec, const S& semiring, const E& last, double u, bool batched_v, bool exclude_self) {
  constexpr int batches = 2, n = 1100, k = 3, columns = 5;
  const int m = exclude_self ? n : 6;
  support::Random random(7);
  const auto numbers = [&](int count, int most) {
    Values v(static_cast<std::size_t>(count));
    for (double& x : v) x = static_cast<double>(random.integer(-most, most)) / 4;
    return v;
  };
  const auto a = support::batch<T, Exec>(batches, m, k, numbers(batches * m * k, 6)),
             b = support::batch<T, Exec>(1, k, n, numbers(k * n, 6));
  // V by columns, each number in the second of two places.
  const int of_v = batched_v ? batches : 1;
  const Kokkos::View<V****, Kokkos::LayoutRight, typename Exec::memory_space> places("V", of_v, columns, n, 2);
  support::fill(places, numbers(of_v * columns * n * 2, 40));
  const auto v = Kokkos::subview(places, Kokkos::ALL, Kokkos::ALL, Kokkos::ALL, 1);
  const auto stored = support::batch<double, Exec>(batches, m, n);
  rigel::contract(exec, semiring, a, b, stored, last, {.kernel = "reference"});
  exec.fence();
  const Values s = all(stored), w = all(places);
  for (const std::string& kernel : of_both)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{30000}}) {
      CAPTURE(kernel);
      CAPTURE(limit);
      const rigel::ReduceOptions options{
          .exclude_self = exclude_self, .kernel = kernel, .score_kernel = "reference", .workspace_limit = limit};
      const auto sums = support::batch<Value, Exec>(batches, m, columns),
                 means = support::batch<Value, Exec>(batches, m, columns);
      rigel::reduce(exec, semiring, a, b, reducer::weighted_sum{rigel::transposed(v)}, sums, rigel::no_output, last,
                    options);
      rigel::reduce(exec, semiring, a, b, reducer::softmax_weighted{rigel::transposed(v)}, means, rigel::no_output, last,
                    options);
      exec.fence();
      const Values sum = all(sums), mean = all(means);
      const double u_v = std::is_same_v<Value, float> ? 0x1p-24 : 0x1p-53;
      int wrong = 0;
      for (int row = 0; row < batches * m; row += exclude_self ? 97 : 1) {
        double most = -infinity;
        const auto score = [&](int j) { return s[at(row, n, j)]; };
        const auto is_out = [&](int j) { return exclude_self && j == row % m; };
        for (int j = 0; j < n; ++j)
          if (!is_out(j)) most = std::max(most, score(j));
        for (int d = 0; d < columns; ++d) {
          double expected = 0, size = 0, numerator = 0, total = 0, largest = 0;
          for (int j = 0; j < n; ++j) {
            if (is_out(j)) continue;
            const int l = batched_v ? row / m : 0;
            const double value = support::to_double(support::number<V>(w[at((l * columns + d) * n + j, 2, 1)]));
            expected += score(j) * value;
            size += std::abs(score(j) * value);
            const double weight = std::exp(score(j) - most);
            numerator += weight * value;
            total += weight;
            largest = std::max(largest, std::abs(value));
          }
          const auto place = at(row, columns, d);
          // The loops here are in double, too: twice their part.
          const double log_n = std::log(n);
          wrong += !(std::abs(sum[place] - expected) <= (1026 * u + 2 * n * 0x1p-53) * size + u_v * std::abs(expected));
          wrong += !(std::abs(mean[place] - numerator / total) <=
                     largest * ((1034 + 2 * log_n) * u + (2 * log_n + 13 * 2 + 39 + 4 * n) * 0x1p-53) +
                         u_v * std::abs(numerator / total));
        }
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE_TEMPLATE("weighted sums: types, layouts, batches", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr double u32 = 0x1p-24, u64 = 0x1p-53;
  check<float, float, float>(exec, rigel::plus_times<float>{}, epilogue::Program{}, u32, false, false);
  check<float, rigel::bfloat16, double>(exec, rigel::plus_times<float>{}, epilogue::scale(0.5), u32, true, false);
  check<rigel::half, rigel::half, float>(exec, rigel::l2_squared<rigel::half>{}, epilogue::scale(-1), u32, false, false);
  check<float, double, double>(exec, rigel::l1<float>{}, epilogue::scale(-1), u64, true, false);
  check<double, float, double>(exec, rigel::max_plus<double>{}, epilogue::Program{}, u64, false, false);
}

TEST_CASE("weighted sums: scores of integers, and a set with itself") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  check<std::int32_t, float, double>(exec, rigel::l1<std::int32_t>{}, epilogue::Program{}, 0x1p-53, false, false);
  check<float, rigel::half, double>(exec, rigel::plus_times<float>{}, epilogue::scale(0.5), 0x1p-24, true, true);
}

TEST_CASE_TEMPLATE("weighted sums: what is left out may be infinite or NaN", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<float, Exec>(3, 1, {1, 2, 4}), z = support::matrix<float, Exec>(1, 3, {1, 2, 4});
  const auto v = vector<float, Exec>(3), result = vector<float, Exec>(3);
  support::fill(v, {infinity, 10, 20});
  for (const std::string& kernel : of_both) {
    const rigel::ReduceOptions options{.exclude_self = true, .kernel = kernel};
    rigel::reduce(exec, rigel::plus_times<float>{}, x, z, reducer::weighted_sum{v}, result, options);
    exec.fence();
    CHECK(support::values(result) == Values{100, infinity, infinity});  // 1·2·10 + 1·4·20
    rigel::reduce(exec, rigel::l1<float>{}, x, z, reducer::softmax_weighted{v}, result, options);
    exec.fence();
    const Values r = support::values(result);  // differences 1 and 3 of the first row
    CHECK(std::abs(r[0] - 18.807970779778823) <= 20 * 20 * 0x1p-24);
    CHECK(r[1] == infinity);
    CHECK(r[2] == infinity);
  }
}

TEST_CASE_TEMPLATE("weighted sums repeat, and rows alone have the same bits", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 40, n = 3000, k = 4, columns = 8;
  support::Random random(3);
  const auto numbers = [&](int count) {
    Values v(static_cast<std::size_t>(count));
    for (double& x : v) x = random.uniform(-1, 1);
    return v;
  };
  const auto a = support::matrix<float, Exec>(m, k, numbers(m * k)), b = support::matrix<float, Exec>(k, n, numbers(k * n)),
             v = support::matrix<float, Exec>(n, columns, numbers(n * columns));
  const rigel::ReduceOptions options{.require = rigel::Promise::batch_invariant | rigel::Promise::repeatable};
  const auto result = [&](int rows) {
    const auto values = support::matrix<double, Exec>(rows, columns);
    rigel::reduce(exec, rigel::plus_times<float>{}, Kokkos::subview(a, Kokkos::pair(0, rows), Kokkos::ALL), b,
                  reducer::softmax_weighted{v}, values, options);
    exec.fence();
    return support::values(values);
  };
  const Values whole = result(m), alone = result(1);
  CHECK(whole == result(m));
  CHECK(Values(whole.begin(), whole.begin() + columns) == alone);
}

TEST_CASE("weighted sums: messages name the argument and what was expected") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const rigel::plus_times<float> s;
  const auto a = support::matrix<float, Exec>(4, 3), b = support::matrix<float, Exec>(3, 6, {}, "right");
  const auto refused = [&](const auto& v, const auto& values, const rigel::ReduceOptions& options = {}) {
    return support::caught([&] { rigel::reduce(exec, s, a, b, reducer::weighted_sum{v}, values, options); });
  };
  const auto v = support::matrix<float, Exec>(6, 2, {}, "weights");
  const auto values = support::matrix<float, Exec>(4, 2, {}, "sums");
  CHECK(refused(v, values).code == rigel::Code::ok);
  const auto check = [](const support::Caught& e, std::initializer_list<const char*> texts) {
    CHECK(e.code == rigel::Code::invalid_argument);
    CHECK(e.lacks(texts) == "");
  };
  check(refused(support::matrix<float, Exec>(5, 2, {}, "weights"), values),
        {"reduce: V 'weights' is 5x2, expected 6 rows to match the columns of the scores 4x6"});
  check(refused(v, support::matrix<float, Exec>(4, 3, {}, "sums")),
        {"values 'sums' is 4x3, expected 2 columns to match V 'weights' 6x2"});
  check(refused(support::matrix<float, Exec>(6, 513, {}, "weights"), support::matrix<float, Exec>(4, 513)),
        {"V 'weights' is 6x513, expected 1 to 512 columns"});
  check(refused(support::matrix<float, Exec>(6, 0, {}, "weights"), support::matrix<float, Exec>(4, 0)),
        {"V 'weights' is 6x0, expected 1 to 512 columns"});
  check(refused(v, support::matrix<int, Exec>(4, 2, {}, "sums")), {"of i32, expected f16, bf16, f32 or f64"});
  const Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> same(v.data() + 3, 4, 2);
  check(refused(v, same), {"values", "overlaps V 'weights' 6x2, expected distinct elements"});
  const auto e = refused(v, values, {.kernel = "portable.strips"});
  CHECK(e.code == rigel::Code::unsupported);
  CHECK(e.lacks({"portable.strips", "not rows of V"}) == "");
  const std::string text = rigel::explain_reduce(exec, s, a, b, reducer::weighted_sum{v}, values);
  CHECK(text.find("weighted_sum of plus_times f32, 4x6x3, 2 columns of f32") != std::string::npos);
  const std::size_t bytes = rigel::reduce_workspace_size(exec, s, a, b, reducer::weighted_sum{v}, values);
  CHECK(bytes > 0);
  CHECK(bytes < 100000);
}

}  // namespace

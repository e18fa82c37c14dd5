// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Histograms of rows that are written down, and what they refuse.
#include <tests/reduce/call.hpp>

#include <algorithm>

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;

template <class T, class Exec>
Values bins(const Exec& exec, const Values& row, const Values& edges, const rigel::ReduceOptions& options = {}) {
  const auto a = support::matrix<T, Exec>(1, 1, {0}), b = support::matrix<T, Exec>(1, static_cast<int>(row.size()), row);
  const auto of_edges = vector<double, Exec>(static_cast<int>(edges.size()));
  support::fill(of_edges, edges);
  const auto counts = support::matrix<std::int64_t, Exec>(1, static_cast<int>(edges.size()) - 1);
  rigel::reduce(exec, rigel::max_plus<T>{}, a, b, reducer::histogram{of_edges}, counts, options);
  exec.fence();
  return support::values(counts);
}

TEST_CASE_TEMPLATE("histogram: NumPy's bins", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
      CAPTURE(kernel);
      CAPTURE(limit);
      const rigel::ReduceOptions options{.kernel = kernel, .workspace_limit = limit};
      // Edges belong to the bin that they begin, the last one to the last bin. What is beyond them, and NaN, is in none.
      CHECK(bins<float>(exec, {-1, 0, 0.5, 1, 2, 2.5, 3, 3.5, not_a_number}, {0, 1, 2, 3}, options) == Values{2, 1, 3});
      CHECK(bins<double>(exec, {1, 1, 2}, {0, 1, 1, 2}, options) == Values{0, 0, 3});  // an empty bin of no width
      CHECK(bins<float>(exec, {infinity, -infinity, 1e30, -1e30}, {-infinity, 0, infinity}, options) == Values{2, 2});
      CHECK(bins<std::int32_t>(exec, {-5, 0, 5, 5, 7}, {-5, 5, 6}, options) == Values{2, 2});
      CHECK(bins<float>(exec, {}, {0, 1, 2}, options) == Values{0, 0});
      CHECK(bins<float>(exec, {0.1f, 0.1f}, {0, 0.1, 1}, options) ==
            Values{0, 2});  // a float's 0.1 is larger than a double's
      // Many scores in several chunks, and bins beyond those of one team.
      Values row, edges, expected(100, 30);
      for (int n = 0; n < 3000; ++n) row.push_back(n * 7 % 3000);
      for (int e = 0; e <= 100; ++e) edges.push_back(30 * e);
      CHECK(bins<float>(exec, row, edges, options) == expected);
    }
}

TEST_CASE_TEMPLATE("histogram: distances of a set with itself", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = support::matrix<float, Exec>(4, 1, {0, 3, 4, 10}), z = support::matrix<float, Exec>(1, 4, {0, 3, 4, 10});
  const auto edges = vector<double, Exec>(3);
  support::fill(edges, {0, 4, 8});
  const auto counts = support::matrix<float, Exec>(4, 2);
  for (const std::string& kernel : kernels) {
    rigel::reduce(exec, rigel::l1<float>{}, x, z, reducer::histogram{edges}, counts,
                  {.exclude_self = true, .kernel = kernel});
    exec.fence();
    CHECK(support::values(counts) == Values{1, 1, 2, 1, 1, 2, 0, 2});
  }
}

TEST_CASE("histogram: messages") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto a = support::matrix<float, Exec>(4, 3), b = support::matrix<float, Exec>(3, 300);
  const auto edges = vector<double, Exec>(3);
  const auto refused = [&](const auto& of, const auto& counts) {
    return support::caught([&] { rigel::reduce(exec, rigel::plus_times<float>{}, a, b, reducer::histogram{of}, counts); });
  };
  CHECK(refused(edges, support::matrix<int, Exec>(4, 2)).code == rigel::Code::ok);
  CHECK(refused(edges, support::matrix<int, Exec>(4, 3, {}, "counts"))
            .lacks({"values 'counts' is 4x3, expected 2 columns, one for each of the 2 bins"}) == "");
  CHECK(refused(vector<double, Exec>(1), support::matrix<int, Exec>(4, 0))
            .lacks({"edges 'vector' is 1x1, expected 2 to 4097 rows"}) == "");
  CHECK(refused(edges, support::matrix<std::int8_t, Exec>(4, 2))
            .lacks({"of i8, expected numbers that hold counts up to N = 300"}) == "");
  const Kokkos::View<double**, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged> same(edges.data(), 1, 2);
  CHECK(support::caught([&] {
          rigel::reduce(exec, rigel::plus_times<float>{}, Kokkos::subview(a, Kokkos::pair(0, 1), Kokkos::ALL), b,
                        reducer::histogram{edges}, same);
        }).lacks({"values", "overlaps edges"}) == "");
}

}  // namespace

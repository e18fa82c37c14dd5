// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() against scores that contract() stores, reduced on the host in double: element types, layouts, batches that broadcast, outputs
// with gaps, chunks and strips of every size.
#include <tests/reduce/call.hpp>

#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;

/// The elements of a view of rank 3, in the order of its indices.
template <class View>
Values elements(const View& v) {
  using T = typename View::non_const_value_type;
  const Kokkos::View<T***, Kokkos::LayoutRight, typename View::memory_space> packed("packed", v.extent(0), v.extent(1),
                                                                                    v.extent(2));
  const typename View::execution_space exec;
  Kokkos::parallel_for(
      Kokkos::RangePolicy<typename View::execution_space>(exec, 0, static_cast<int>(v.size())), KOKKOS_LAMBDA(int i) {
        const int k = i % static_cast<int>(v.extent(2)), j = i / static_cast<int>(v.extent(2));
        packed(j / static_cast<int>(v.extent(1)), j % static_cast<int>(v.extent(1)), k) =
            v(j / static_cast<int>(v.extent(1)), j % static_cast<int>(v.extent(1)), k);
      });
  exec.fence();
  return support::values(packed);
}

struct Shape {
  int batches, m, n, k, count;
};

/// One call of smallest, largest, sum and count_below on random operands; `transposes` says which operand's memory is by columns.
template <class S, class Value, class Exec>
void check(const Exec& exec, Shape e, int transposes, const rigel::ReduceOptions& options) {
  using T = typename S::element;
  INFO(S::name, " of ", rigel::name(rigel::scalar_of<T>), ", ", e.batches, " x ", e.m, " x ", e.n, " x ", e.k, ", ", e.count,
       ", transposes ", transposes, ", limit ", options.workspace_limit, ", kernel '", std::string(options.kernel), "'");
  support::Random random(static_cast<std::uint64_t>(e.m * e.n + e.count));
  const auto numbers = [&](int count) {
    Values v(static_cast<std::size_t>(count));
    for (double& x : v) x = static_cast<double>(random.integer(-5, 5));
    return v;
  };
  const auto a = support::batch<T, Exec>(e.batches, transposes & 1 ? e.k : e.m, transposes & 1 ? e.m : e.k,
                                         numbers(e.batches * e.m * e.k), "a");
  const auto b = support::matrix<T, Exec>(transposes & 2 ? e.n : e.k, transposes & 2 ? e.k : e.n, numbers(e.n * e.k), "b");
  const auto stored = support::batch<double, Exec>(e.batches, e.m, e.n);
  using Strided = Kokkos::View<Value***, Kokkos::LayoutStride, typename Exec::memory_space>;
  const Kokkos::View<Value****, Kokkos::LayoutRight, typename Exec::memory_space> room("room", e.batches, e.count, 2,
                                                                                       e.m + 1);
  const Strided values(room.data(), Kokkos::LayoutStride(e.batches, room.stride(0), e.m, 1, e.count, room.stride(1)));
  const auto indices = support::batch<int, Exec>(e.batches, e.m, e.count);
  const auto sums = support::matrix<double, Exec>(e.batches, e.m), counts = support::matrix<double, Exec>(e.batches, e.m);
  const S semiring{};
  const auto with_operands = [&](const auto& use) {
    const auto with_b = [&](const auto& of_a) {
      if (transposes & 2)
        use(of_a, rigel::transposed(b));
      else
        use(of_a, b);
    };
    if (transposes & 1)
      with_b(rigel::transposed(a));
    else
      with_b(a);
  };
  constexpr double threshold = 3;
  for (const bool largest : {false, true}) {
    with_operands([&](const auto& of_a, const auto& of_b) {
      rigel::contract(exec, semiring, of_a, of_b, stored, {.kernel = "reference"});
      if (largest)
        rigel::reduce(exec, semiring, of_a, of_b, reducer::largest{e.count}, values, indices, options);
      else
        rigel::reduce(exec, semiring, of_a, of_b, reducer::smallest{e.count}, values, indices, options);
      rigel::reduce(exec, semiring, of_a, of_b, reducer::sum{}, sums, options);
      rigel::reduce(exec, semiring, of_a, of_b, reducer::count_below{threshold}, counts, options);
    });
    exec.fence();
    const Values c = support::values(stored), v = elements(values), i = support::values(indices), s = support::values(sums),
                 t = support::values(counts);
    int wrong = 0;
    for (int row = 0; row < e.batches * e.m; ++row) {
      const double* const scores = c.data() + static_cast<std::ptrdiff_t>(row) * e.n;
      std::vector<int> order(static_cast<std::size_t>(e.n));
      double sum = 0, count = 0;
      for (int n = 0; n < e.n; ++n) {
        order[static_cast<std::size_t>(n)] = n;
        sum += scores[n];
        count += scores[n] < threshold;
      }
      std::ranges::sort(order, [&](int x, int y) {
        if (scores[x] == scores[y]) return x < y;
        return largest ? scores[x] > scores[y] : scores[x] < scores[y];
      });
      for (int j = 0; j < e.count; ++j) {
        const auto at = reduced::at(row, e.count, j);
        const int n = order[static_cast<std::size_t>(j)];
        wrong += i[at] != n || v[at] != scores[n];
      }
      wrong += s[static_cast<std::size_t>(row)] != sum || t[static_cast<std::size_t>(row)] != count;
    }
    CHECK(wrong == 0);
  }
}

template <class S, class Value, class Exec>
void check_all(const Exec& exec) {
  for (const std::string& kernel : kernels)
    for (const std::size_t limit : {std::size_t{0}, std::size_t{20000}, std::size_t{1}}) {
      const rigel::ReduceOptions options{.kernel = kernel, .workspace_limit = limit};
      check<S, Value>(exec, {1, 5, 130, 3, 1}, 0, options);
      check<S, Value>(exec, {3, 9, 67, 4, 67}, 1, options);
      check<S, Value>(exec, {2, 17, 1100, 2, 10}, 3, options);
    }
}

TEST_CASE_TEMPLATE("reduce: sorted scores of floating-point numbers", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check_all<rigel::plus_times<float>, float>(exec);
  check_all<rigel::l2_squared<double>, double>(exec);
  check_all<rigel::l1<rigel::half>, float>(exec);
  check_all<rigel::min_plus<rigel::bfloat16>, rigel::bfloat16>(exec);
  check_all<rigel::max_min<rigel::half, rigel::half>, rigel::half>(exec);
}

TEST_CASE_TEMPLATE("reduce: sorted scores of integers", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check_all<rigel::plus_times<std::int8_t>, std::int32_t>(exec);
  check_all<rigel::max_plus<std::int16_t>, std::int16_t>(exec);
  check_all<rigel::l1<std::int64_t>, std::int64_t>(exec);
}

TEST_CASE_TEMPLATE("reduce: scores that are never stored, on CUDA cores", Exec, RIGEL_TEST_SPACES) {
  if constexpr (rigel::detail::space_of<Exec> == rigel::Space::cuda) {
    const Exec exec;
    const auto check_types = [&](Shape shape, int transposes, std::size_t limit) {
      const rigel::ReduceOptions options{.kernel = "cuda.reduce", .workspace_limit = limit};
      check<rigel::l2_squared<float>, float>(exec, shape, transposes, options);
      check<rigel::l1<rigel::half>, float>(exec, shape, transposes, options);
      check<rigel::min_plus<double>, double>(exec, shape, transposes, options);
    };
    // Operands in every layout, of which some come in vectors; tiles at edges, slices, and rows in several launches.
    for (int transposes = 0; transposes < 4; ++transposes) {
      check_types({1, 300, 1000, 16, 10}, transposes, 0);
      check_types({3, 130, 260, 24, 100}, transposes, 1);
      check_types({2, 65, 1101, 7, 33}, transposes, 0);
      check_types({1, 256, 384, 32, 128}, transposes, 0);
    }
    for (const int rows : {1, 2, 9, 64}) check_types({2, rows, 5000, 32, 16}, 2, 0);
  }
}

TEST_CASE_TEMPLATE("reduce: the k best keep the sign of zeros", Exec, RIGEL_TEST_SPACES) {
  // Zeros are equal. Sums of max_plus are −0 only if both terms are.
  const Exec exec;
  std::vector<std::string> all = kernels;
  if constexpr (rigel::detail::space_of<Exec> == rigel::Space::cuda) all.push_back("cuda.reduce");
  const auto a = support::matrix<float, Exec>(1, 1, {-0.});
  const auto b = support::matrix<float, Exec>(1, 5, {0, -0., 1, -0., 0});
  const auto values = support::matrix<float, Exec>(1, 4);
  const auto indices = support::matrix<int, Exec>(1, 4);
  for (const std::string& kernel : all) {
    CAPTURE(kernel);
    const auto check = [&](const auto& reducer, const Values& expected, const Values& places) {
      rigel::reduce(exec, rigel::max_plus<float>{}, a, b, reducer, values, indices, {.kernel = kernel});
      exec.fence();
      const Values found = support::values(values);
      CHECK(found == expected);
      CHECK(support::values(indices) == places);
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::signbit(found[i]) == std::signbit(expected[i]));
    };
    check(reducer::smallest{4}, {0, -0., -0., 0}, {0, 1, 3, 4});
    check(reducer::largest{4}, {1, 0, -0., -0.}, {2, 0, 1, 3});
  }
}

TEST_CASE_TEMPLATE("reduce: few rows without columns do not read A", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  using Matrix = Kokkos::View<const float**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Matrix a(nullptr, 3, 32), b(nullptr, 0, 32);
  rigel::ReduceOptions options;
  if constexpr (rigel::detail::space_of<Exec> == rigel::Space::cuda) options.kernel = "cuda.reduce.l2_squared.f32.few";
  const auto values = vector<float, Exec>(3);
  const auto counts = vector<int, Exec>(3);
  const auto best = support::matrix<float, Exec>(3, 2);
  const rigel::l2_squared<float> s;
  rigel::reduce(exec, s, a, rigel::transposed(b), reducer::minimum{}, values, options);
  rigel::reduce(exec, s, a, rigel::transposed(b), reducer::count_below{1}, counts, options);
  rigel::reduce(exec, s, a, rigel::transposed(b), reducer::smallest{2}, best, options);
  exec.fence();
  CHECK(support::values(values) == Values(3, infinity));
  CHECK(support::values(counts) == Values(3, 0));
  CHECK(support::values(best) == Values(6, infinity));
}

TEST_CASE_TEMPLATE("reduce: the best 4096 of 5000", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  check<rigel::l2_squared<float>, float>(exec, {1, 2, 5000, 2, 4096}, 0, {.kernel = "portable.strips"});
}

TEST_CASE_TEMPLATE("reduce: words with bits along K", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  // Rows 0b11 and 0b100 against columns 0b1, 0b110, 0: parities, and whether a bit is common.
  const auto a = support::matrix<std::uint64_t, Exec>(2, 1, {3, 4}),
             b = support::matrix<std::uint64_t, Exec>(1, 3, {1, 6, 0});
  const auto counts = vector<std::uint32_t, Exec>(2);
  rigel::reduce(exec, rigel::or_and<std::uint64_t>{}, a, b, reducer::sum{}, counts, rigel::no_output,
                rigel::epilogue::any_bit());
  exec.fence();
  CHECK(support::values(counts) == Values{2, 1});
  const auto most = vector<std::uint64_t, Exec>(2);
  rigel::reduce(exec, rigel::or_and<std::uint64_t>{}, a, b, reducer::maximum{}, most);
  exec.fence();
  CHECK(support::values(most) == Values{2, 4});
}

}  // namespace

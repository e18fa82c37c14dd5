// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// with_argument: which k won. The epilogue passes the value to C and writes the index elsewhere: epilogue::arguments(), or a
// functor that holds a view.
#include "call.hpp"

#include <numeric>

using by_hand::contracted, by_hand::Values;
using support::matrix;

namespace {

template <class Exec>
struct KeepIndex {
  Kokkos::View<std::int64_t**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged> index;
  template <class T>
  KOKKOS_FUNCTION T operator()(rigel::argument<T> x, std::int64_t m, std::int64_t n, std::int64_t) const {
    index(m, n) = x.index;
    return x.value;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("with_argument: the value goes to C, the index to another matrix", Exec, RIGEL_TEST_SPACES) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  using S = rigel::with_argument<rigel::min_plus<float>>;
  // Row 0: a tie of k = 1 and k = 2. Row 1: NaN at k = 1 and 2, the first one wins. Row 2: all infinite, k = 0.
  const auto a = matrix<float, Exec>(3, 4, {9, 1, 1, 5, 0, nan, nan, -7, inf, inf, inf, inf});
  const auto b = matrix<float, Exec>(4, 1, {1, 1, 1, 1}), c = matrix<float, Exec>(3, 1);
  const auto index = matrix<std::int64_t, Exec>(3, 1, {-5, -5, -5});
  const auto arguments = rigel::epilogue::arguments(index);
  CHECK(support::same(contracted(Exec{}, S{}, a, b, c, arguments), Values{2, nan, inf}));
  CHECK(support::values(index) == Values{1, 1, 0});
  // K = 0: no index.
  CHECK(contracted(Exec{}, S{}, matrix<float, Exec>(3, 0), matrix<float, Exec>(0, 1), c, arguments) ==
        Values{inf, inf, inf});
  CHECK(support::values(index) == Values{-1, -1, -1});
}

TEST_CASE_TEMPLATE("with_argument: by a functor", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::with_argument<rigel::max_min<std::int32_t>>;
  const auto a = matrix<std::int32_t, Exec>(1, 3, {1, 4, 2}), b = matrix<std::int32_t, Exec>(3, 2, {5, 9, 3, 1, 7, 2});
  const auto c = matrix<std::int32_t, Exec>(1, 2);
  // min: 1 3 2 → k = 1; 1 1 2 → k = 2.
  const auto index = matrix<std::int64_t, Exec>(1, 2);
  CHECK(contracted(Exec{}, S{}, a, b, c, KeepIndex<Exec>{index}) == Values{3, 2});
  CHECK(support::values(index) == Values{1, 2});
}

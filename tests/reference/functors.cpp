// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Users' functors: semirings with hyperparameters and with multiply(a, b, k), epilogues that compose or write a second result,
// and one semiring object for each batch.
#include "call.hpp"

using by_hand::contracted, by_hand::Values, by_hand::accumulating;
using support::matrix;

namespace {

// Σ_k w·(k+1)·|a − b|.
struct Weighted {
  using element = float;
  using accumulator = float;
  float w;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b, std::int64_t k) const {
    return w * static_cast<float>(k + 1) * Kokkos::abs(a - b);
  }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

// The mean of the products: the accumulator counts, result() divides, lift() starts a chain from a mean of one.
struct Mean {
  using element = double;
  struct accumulator {
    double sum;
    int count;
  };
  KOKKOS_FUNCTION static accumulator identity() { return {0, 0}; }
  KOKKOS_FUNCTION static accumulator multiply(double a, double b) { return {a * b, 1}; }
  KOKKOS_FUNCTION static accumulator add(accumulator x, accumulator y) { return {x.sum + y.sum, x.count + y.count}; }
  KOKKOS_FUNCTION static double result(accumulator x) { return x.count ? x.sum / x.count : 0; }
  KOKKOS_FUNCTION static accumulator lift(double c) { return {c, 1}; }
};

struct Place {  // v + 100·m + 10·n + 1000·batch
  template <class V>
  KOKKOS_FUNCTION V operator()(V v, std::int64_t m, std::int64_t n, std::int64_t batch) const {
    return v + static_cast<V>(100 * m + 10 * n + 1000 * batch);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a user's semiring: members, and the summation index", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(1, 3, {1, 2, 3}), b = matrix<float, Exec>(3, 2, {2, 1, 0, 3, 5, 4});
  const auto c = matrix<float, Exec>(1, 2);
  // |1−2| + 2·|2−0| + 3·|3−5| = 11 and 0 + 2·1 + 3·1 = 5, half of them.
  CHECK(contracted(Exec{}, Weighted{0.5f}, a, b, c) == Values{5.5, 2.5});
  CHECK(contracted(Exec{}, Weighted{2}, a, b, c, rigel::epilogue::scale(10)) == Values{220, 100});
  CHECK(contracted(Exec{}, Weighted{1}, a, b, matrix<float, Exec>(1, 2, {1, 2}), rigel::epilogue::Program{}, accumulating) ==
        Values{12, 7});
}

TEST_CASE_TEMPLATE("a user's semiring: a struct that becomes a number on its way into C", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<double, Exec>(1, 3, {1, 2, 3}), b = matrix<double, Exec>(3, 1, {2, 0, 5});
  const auto c = matrix<double, Exec>(1, 1, {3});
  CHECK(contracted(Exec{}, Mean{}, a, b, c) == Values{17. / 3});
  CHECK(contracted(Exec{}, Mean{}, a, b, matrix<double, Exec>(1, 1, {3}), rigel::epilogue::Program{}, accumulating) ==
        Values{5});
  CHECK(contracted(Exec{}, Mean{}, matrix<double, Exec>(1, 0), matrix<double, Exec>(0, 1), c) == Values{0});
}

TEST_CASE_TEMPLATE("a user's epilogue, alone and composed on either side", Exec, RIGEL_TEST_SPACES) {
  namespace epilogue = rigel::epilogue;
  const rigel::plus_times<float> s;
  const auto a = support::batch<float, Exec>(2, 2, 1, {1, 2, 3, 4});
  const auto b = matrix<float, Exec>(1, 2, {1, 5});
  const auto c = support::batch<float, Exec>(2, 2, 2);
  CHECK(contracted(Exec{}, s, a, b, c, Place{}) == Values{1, 15, 102, 120, 1003, 1025, 1104, 1130});
  CHECK(contracted(Exec{}, s, a, b, c, epilogue::scale(2) | epilogue::functor(Place{})) ==
        Values{2, 20, 104, 130, 1006, 1040, 1108, 1150});
  CHECK(contracted(Exec{}, s, a, b, c, epilogue::functor(Place{}) | epilogue::add_diagonal(0.5) | epilogue::scale(2)) ==
        Values{3, 30, 204, 241, 2007, 2050, 2208, 2261});
}

TEST_CASE_TEMPLATE("a view of semirings: one object for each batch", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::lp<double>;
  const Kokkos::View<S*, typename Exec::memory_space> semirings(Kokkos::view_alloc("semirings", Kokkos::WithoutInitializing),
                                                                3);
  S host[3];
  for (int l = 0; l < 3; ++l) host[l].p = l + 1;
  support::copy_in<Exec>(semirings.data(), host, sizeof host);
  // Differences 1, 2, 3: sums of their first, second and third powers.
  const auto a = matrix<double, Exec>(1, 3, {1, 2, 3}), b = matrix<double, Exec>(3, 1, {2, 0, 6});
  const auto actual = contracted(Exec{}, semirings, a, b, support::batch<double, Exec>(3, 1, 1));
  CHECK(actual[0] == doctest::Approx(6).epsilon(1e-14));
  CHECK(actual[1] == doctest::Approx(14).epsilon(1e-14));
  CHECK(actual[2] == doctest::Approx(36).epsilon(1e-14));
}

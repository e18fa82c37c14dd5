// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// with_argument: the laws of its ⊕ on (value, index) pairs, ties, NaN.
#include <rigel/semirings.hpp>

#include <tests/support/compare.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace {

template <class T>
bool same(rigel::argument<T> x, rigel::argument<T> y) {
  return support::same(x.value, y.value) && x.index == y.index;
}

template <class S>
void check_laws(const std::vector<typename S::element>& values) {
  using A = rigel::with_argument<S>;
  const A s{};
  std::vector<typename A::accumulator> list = {A::identity()};
  std::int64_t k = 0;
  for (const auto v : values) list.push_back({v, (k++ * 5) % 7});
  int wrong = 0;
  for (const auto x : list) {
    wrong += !same(s.add(x, A::identity()), x) + !same(s.add(A::identity(), x), x) + !same(s.add(x, x), x);
    for (const auto y : list) {
      const auto z = s.add(x, y);
      wrong += !same(z, s.add(y, x)) + !(same(z, x) || same(z, y));
      for (const auto w : list) wrong += !same(s.add(z, w), s.add(x, s.add(y, w)));
    }
  }
  CHECK(wrong == 0);
}

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("with_argument: laws") {
  check_laws<rigel::min_plus<float>>({1, 2, 1, -3, inf, -inf, not_a_number, not_a_number, 0.f, -0.f});
  check_laws<rigel::max_plus<float>>({1, 2, 1, -3, inf, -inf, not_a_number, not_a_number, 0.f, -0.f});
  check_laws<rigel::max_min<double>>({1, 2, 1, -3, 5});
  check_laws<rigel::min_max<std::int32_t>>({1, 2, 1, -3, 5});
  check_laws<rigel::linf<float>>({1, 2, 1, 3, inf, not_a_number});
}

TEST_CASE("with_argument: ties go to the smaller index, in either order") {
  using A = rigel::with_argument<rigel::min_plus<float>>;
  const A s{};
  CHECK(same(s.add({2, 3}, {2, 1}), {2, 1}));
  CHECK(same(s.add({2, 1}, {2, 3}), {2, 1}));
  CHECK(same(s.add({2, 1}, {1, 3}), {1, 3}));
  CHECK(same(s.add({0.f, 4}, {-0.f, 2}), {0, 2}));
}

TEST_CASE("with_argument: an index of its own even where the value is the identity's") {
  using A = rigel::with_argument<rigel::min_plus<float>>;
  CHECK(same(A{}.add(A::identity(), {inf, 0}), {inf, 0}));
  CHECK(A::identity().index == -1);
}

TEST_CASE("with_argument: NaN wins, the first of several") {
  using A = rigel::with_argument<rigel::max_plus<float>>;
  const A s{};
  CHECK(same(s.add({5, 0}, {not_a_number, 3}), {not_a_number, 3}));
  CHECK(same(s.add({not_a_number, 3}, {5, 0}), {not_a_number, 3}));
  CHECK(same(s.add({not_a_number, 3}, {not_a_number, 1}), {not_a_number, 1}));
  CHECK(same(s.add({not_a_number, 1}, {not_a_number, 3}), {not_a_number, 1}));
}

TEST_CASE("with_argument: flags follow the semiring") {
  using A = rigel::with_argument<rigel::max_min<float>>;
  static_assert(rigel::Semiring<A>);
  static_assert(rigel::is_selective<A> && rigel::is_idempotent<A> && rigel::is_exact<A> && rigel::is_commutative<A>);
  static_assert(!rigel::can_accumulate<A>);
  CHECK(A{}.multiply(3, 2, 7).value == 2);
  CHECK(A{}.multiply(3, 2, 7).index == 7);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// compose<>, names and flags.
#include "checker.hpp"

#include <rigel/semirings.hpp>

#include <doctest/doctest.h>

namespace {

struct Sum {
  static constexpr bool commutative = true;
  template <class T>
  RIGEL_MEMBER static T apply(T a, T b) {
    return rigel::math::add(a, b);
  }
};
struct Least {
  static constexpr bool idempotent = true, selective = true;
  template <class T>
  RIGEL_MEMBER static T identity() {
    return rigel::infinity<T>();
  }
  template <class T>
  RIGEL_MEMBER static T apply(T x, T y) {
    return rigel::math::minimum(x, y);
  }
};
using Shortest = rigel::compose<Sum, Least, float>;

struct Named {
  using element = float;
  using accumulator = float;
  static constexpr const char* name = "named";
  static float identity() { return 0; }
  float multiply(float a, float b) const { return a * b; }
  float add(float x, float y) const { return x + y; }
};
struct l1 : Named {};  // a type of the same name as one of Rigel's, in another namespace
struct Unnamed {
  using element = float;
  using accumulator = float;
  static float identity() { return 0; }
  float multiply(float a, float b, std::int64_t k) const { return a * b * static_cast<float>(k); }
  float add(float x, float y) const { return x + y; }
};
struct NoIdentity {
  using element = float;
  using accumulator = float;
  float multiply(float a, float b) const { return a * b; }
  float add(float x, float y) const { return x + y; }
};

}  // namespace

TEST_CASE("compose: a semiring from its halves is the zoo's") {
  static_assert(rigel::Semiring<Shortest>);
  static_assert(rigel::is_commutative<Shortest> && rigel::is_idempotent<Shortest> && rigel::is_selective<Shortest>);
  CHECK(laws::broken_laws(Shortest{}, {0, 1, -2.5f, 1e30f, rigel::infinity<float>()}) == "");
  using Zoo = rigel::min_plus<float>;
  CHECK(Shortest::identity() == Zoo::identity());
  for (const float a : {1.f, -3.f, .1f})
    for (const float b : {2.f, .7f}) {
      CHECK(Shortest::multiply(a, b) == Zoo::multiply(a, b));
      CHECK(Shortest::add(a, b) == Zoo::add(a, b));
    }
}

TEST_CASE("compose: 16-bit elements with a float accumulator") {
  using Half = rigel::compose<Sum, Least, rigel::half, float>;
  static_assert(rigel::Semiring<Half>);
  static_assert(std::is_same_v<rigel::operand_t<Half>, float>);
  CHECK(rigel::step(Half{}, 5.f, 1.f, 2.f, 0) == 3.f);
}

TEST_CASE("concepts tell semirings from other functors") {
  static_assert(rigel::Semiring<Named> && rigel::Semiring<Unnamed>);
  static_assert(!rigel::Semiring<NoIdentity>);
  static_assert(!rigel::MultipliesPairs<Unnamed> && rigel::MultipliesWithIndex<Unnamed>);
  static_assert(!rigel::is_exact<Unnamed> && !rigel::is_commutative<Unnamed>);
  CHECK(rigel::step(Unnamed{}, 1.f, 2.f, 3.f, 4) == 25.f);
}

TEST_CASE("names: a user's functor is never taken for Rigel's") {
  CHECK(rigel::semiring_name<Named>() == "named");
  CHECK(rigel::semiring_name<rigel::min_plus<float>>() == "min_plus");
  CHECK(rigel::semiring_name<Unnamed>().starts_with("::"));
  CHECK(rigel::semiring_name<Unnamed>().find("Unnamed") != std::string_view::npos);
  static_assert(rigel::in_zoo<rigel::l1<float>> && !rigel::in_zoo<l1> && !rigel::in_zoo<Unnamed>);
  static_assert(!rigel::in_zoo<rigel::plus_times<float, double>>);
}

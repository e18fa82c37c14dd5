// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checker catches semirings with false claims: each of these is wrong in one way.
#include "checker.hpp"

#include <doctest/doctest.h>

namespace {

struct Plus {
  using element = float;
  using accumulator = float;
  static float identity() { return 0; }
  static float multiply(float a, float b) { return a * b; }
  static float add(float x, float y) { return x + y; }
};
struct Minimum {
  using element = int;
  using accumulator = int;
  static int identity() { return 1 << 30; }
  static int multiply(int a, int b) { return a + b; }
  static int add(int x, int y) { return x < y ? x : y; }
};

struct WrongIdentity : Minimum {
  static int identity() { return 0; }
};
struct Difference : Minimum {
  static int identity() { return 0; }
  static int add(int x, int y) { return x - y; }
};
struct Midpoint : Minimum {  // commutative, idempotent, not associative
  static constexpr bool idempotent = true;
  static int add(int x, int y) { return static_cast<int>((std::int64_t{x} + y) / 2); }
};
struct NotCommutative : Plus {
  static constexpr bool commutative = true;
  static float multiply(float a, float b) { return a - b; }
};
struct NotIdempotent : Plus {
  static constexpr bool idempotent = true;
};
struct NotSelective : Plus {
  static constexpr bool selective = true;
};
struct NotExact : Plus {
  static constexpr bool exact = true;
};
struct WrongOne : Plus {
  static float one() { return 2; }
};
struct WrongAnnihilator : Minimum {
  static int annihilator() { return 5; }
};
struct WrongNoPath : Minimum {
  static int one() { return 0; }
  static bool is_no_path(int x) { return x == 0; }
};
struct NotDistributive : Minimum {  // min over products of negative numbers
  static int one() { return 1; }
  static int multiply(int a, int b) { return a * b; }
};
struct WrongStep : Plus {
  static float step(float x, float a, float b) { return x + a * b * 1.000001f; }
};
struct WrongErrors : Plus {
  static constexpr rigel::ErrorModel errors = rigel::ErrorModel::non_negative_terms;
};
struct WrongProducts : Plus {
  static constexpr rigel::ErrorModel errors = rigel::ErrorModel::products;
  static float multiply(float a, float b) { return a - b; }
};
struct WrongJoin : rigel::or_and<std::uint32_t> {
  using self = WrongJoin;
  static constexpr rigel::Join join = rigel::Join::parity;
};

const std::vector<float> floats = {0, 1, -1, .1f, 3, 1e6f, -2.5f};
const std::vector<int> integers = {0, 1, -1, 2, 5, 100};

bool catches(const std::string& text, const char* law) { return text.find(law) != std::string::npos; }

}  // namespace

TEST_CASE("laws: honest functors pass") {
  CHECK(laws::broken_laws(Plus{}, floats) == "");
  CHECK(laws::broken_laws(Minimum{}, integers) == "");
}

TEST_CASE("laws: a false claim is caught") {
  CHECK(catches(laws::broken_laws(WrongIdentity{}, integers), "identity"));
  CHECK(catches(laws::broken_laws(Difference{}, integers), "commutativity of add"));
  CHECK(catches(laws::broken_laws(Difference{}, integers), "associativity of add"));
  CHECK(catches(laws::broken_laws(Midpoint{}, integers), "associativity of add"));
  CHECK(laws::broken_laws(NotCommutative{}, floats) == "commutative");
  CHECK(laws::broken_laws(NotIdempotent{}, floats) == "idempotent");
  CHECK(laws::broken_laws(NotSelective{}, floats) == "selective");
  CHECK(catches(laws::broken_laws(NotExact{}, floats), "associativity of add"));
  CHECK(laws::broken_laws(WrongOne{}, floats) == "one");
  CHECK(laws::broken_laws(WrongAnnihilator{}, integers) == "annihilator");
  CHECK(laws::broken_laws(WrongNoPath{}, integers) == "is_no_path");
  CHECK(catches(laws::broken_laws(NotDistributive{}, integers), "distributivity"));
  CHECK(laws::broken_laws(WrongStep{}, floats) == "step");
  CHECK(laws::broken_laws(WrongErrors{}, floats) == "errors");
  CHECK(catches(laws::broken_laws(WrongProducts{}, floats), "errors"));
  CHECK(laws::broken_laws(WrongJoin{}, {1, 2, 3, 0xffff}) == "join");
}

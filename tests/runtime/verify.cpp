// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() of semirings from text: each form of the loops against the text output by output.
#include "texts.hpp"

using rigel::Scalar, rigel::runtime::Semiring, rigel::runtime::Texts;
using texts::Host;

namespace {

void holds(const Texts& text) {
  CAPTURE(text.multiply);
  CAPTURE(text.add);
  const Semiring semiring(text);
  const rigel::Verification first = rigel::verify(semiring, 1), again = rigel::verify(semiring, 1);
  CHECK(first.report == "");
  CHECK(first.ok);
  CHECK(first.problems >= 25);
  CHECK(first.digest == again.digest);
}

}  // namespace

TEST_CASE("text verify: each form of the loops, and each element type") {
  if (!texts::can_compile()) return;
  holds({.multiply = "abs(a - b)", .add = "x + y", .commutative = true});
  holds({.element = Scalar::f16, .multiply = "a * b", .add = "x + y", .step = "fma(a, b, x)"});
  holds({.element = Scalar::i64, .multiply = "a + b", .add = "min(x, y)", .commutative = true});
  holds({.element = Scalar::f64, .multiply = "a * b", .add = "x + y", .result = "sqrt(abs(x))"});
  holds({.multiply = "max(a, b)", .add = "min(x, y)", .commutative = true});
  holds({.multiply = "a * b * (k % 3)", .add = "x + y"});
  for (const double p : {3., 1.75})
    holds({.multiply = "power(abs(a - b), p)", .add = "x + y", .hyperparameters = {{"p", p}}, .commutative = true});
  holds({.element = Scalar::bf16, .multiply = "exp(-abs(a - b))", .add = "x + y", .result = "log(1 + x)"});
  holds({.accumulator = {{"value", Scalar::f32}, {"index", Scalar::i32}},
         .multiply = "{a + b, k}",
         .add = "y.value < x.value ? y : x",
         .identity = "{infinity, -1}",
         .result = "x.index",
         .result_type = Scalar::i32});
  holds({.element = Scalar::i32,
         .accumulator = {{"u", Scalar::i32}, {"v", Scalar::f32}, {"w", Scalar::i32}},
         .multiply = "{a, b, k}",
         .add = "{x.u ^ y.u, max(x.v, y.v), x.w + y.w}",
         .identity = "{0, 0, 0}",
         .result = "x.u + int(x.v) + x.w"});
  holds({.element = Scalar::f64,
         .accumulator = {{"u", Scalar::f64}, {"v", Scalar::f64}, {"w", Scalar::f64}, {"z", Scalar::i64}},
         .multiply = "{a * b, a, b, k}",
         .add = "{x.u + y.u, min(x.v, y.v), max(x.w, y.w), x.z + y.z}",
         .identity = "{0, infinity, -infinity, 0}",
         .result = "x.u * 0.5 + x.v - x.w + x.z"});
}

TEST_CASE("text verify: hyperparameters are those of the object; several numbers are refused") {
  if (!texts::can_compile()) return;
  Semiring text({.name = "mine", .multiply = "a * b * p", .add = "x + y", .hyperparameters = {{"p", 2}}});
  const rigel::Verification two = rigel::verify(text);
  const Kokkos::View<float, Host::memory_space> p("p");
  p() = 3;
  text.set("p", p);
  const rigel::Verification three = rigel::verify(text);
  CHECK(two.ok);
  CHECK(three.ok);
  CHECK(two.digest != three.digest);
  text.set("p", Kokkos::View<float*, Host::memory_space>("many", 3));
  const support::Caught caught = support::caught([&] { static_cast<void>(rigel::verify(text)); });
  CHECK(caught.code == rigel::Code::invalid_argument);
  CHECK(caught.lacks({"verify: 'mine' has a view of several numbers"}) == "");
}

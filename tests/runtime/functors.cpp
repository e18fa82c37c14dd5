// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RIGEL_SEMIRING: the functor that the compiler makes of a body, and what its text becomes, give the same bits.
#include "texts.hpp"

#include <rigel/runtime_semiring.hpp>

#include <cmath>
#include <limits>

using texts::Batch, texts::Host, texts::Matrix;

namespace {

// clang-format off
RIGEL_SEMIRING(soft_l1, float, (auto d = a - b; return sqrt(d * d + eps);), (return x + y;), (0), (eps, 1e-6));
RIGEL_SEMIRING(capped, double,
               (double d = abs(a - b);  // a comment
                if (d > most) d = most; else d *= scale;
                for (int i = 0; i < 3; ++i) d = d * 0.5 + i;
                return select(d < 0.25, 0, fma(d, d, min(a, b)));),
               (return max(x, y);), (-infinity), (most, 4), (scale, 0.75));
RIGEL_SEMIRING(bits, std::int32_t, (return (a & b) ^ (a << 2) | ~b % 7;), (return x + y;), (0));
RIGEL_SEMIRING(wide, std::int64_t, (return a < b ? a : b - 1;), (return min(x, y);), (infinity), (p, 1));
RIGEL_SEMIRING(halves, rigel::half, (return max(a, 0.5f) * -b;), (return x + y;), (0));
RIGEL_SEMIRING(tests, float, (return isnan(a) ? 1 : isinf(b) ? 2 : isfinite(a - b) ? copysign(3.f, a) : 4;), (return x + y;), (0));
RIGEL_SEMIRING(powers, float, (return power(abs(a - b), p) + exp(-abs(a)) + rsqrt(2.f + tanh(b));), (return x + y;), (0), (p, 1.5));
RIGEL_SEMIRING(many, double,
               (return a * p1 + b * p2 + p3 - p4 + p5 - p6 + p7 - p8 + p9 - p10 + p11 - p12 + p13 - p14 + p15 - p16;),
               (return x + y;), (0), (p1, 1), (p2, 2), (p3, 3), (p4, 5), (p5, 7), (p6, 11), (p7, 13), (p8, 17), (p9, 19),
               (p10, 23), (p11, 29), (p12, 31), (p13, 37), (p14, 41), (p15, 43), (p16, 47));
// clang-format on

// The largest difference of both, relative to the sum of absolute values.
template <class S, class T = typename S::element>
double difference(const S& functor) {
  const rigel::runtime::Semiring text = functor.semiring();
  double worst = 0;
  for (const auto [m, n, k] : {std::array{1, 1, 1}, std::array{13, 37, 50}, std::array{5, 3, 0}}) {
    const Matrix<T> a("a", m, k), b("b", k, n);
    const Matrix<T> c("c", m, n), expected("expected", m, n);
    texts::fill(a, 1);
    texts::fill(b, 2);
    rigel::contract(Host{}, text, a, b, c);
    rigel::contract(Host{}, functor, a, b, expected, {.require = rigel::Promise::reference_bits});
    for (std::size_t i = 0; i < c.size(); ++i) {
      const auto u = static_cast<double>(c.data()[i]), v = static_cast<double>(expected.data()[i]);
      if (u != v) worst = std::max(worst, std::abs(u - v) / std::abs(v));
    }
  }
  return worst;
}

using rigel::runtime::language::has_plain_reals;
static_assert(has_plain_reals("a * 0.1") && has_plain_reals("1e3") && has_plain_reals(".5") && has_plain_reals("a*1.") &&
              has_plain_reals("0x1p3"));
static_assert(!has_plain_reals("a * 0.1f + 1e-3f - .5f") && !has_plain_reals("e1 + x2e3 + 17 - 0x1e") &&
              !has_plain_reals(""));

}  // namespace

TEST_CASE("RIGEL_SEMIRING: the functor and the text have the same bits") {
  if (!texts::can_compile()) return;
  CHECK(difference(soft_l1{}) == 0);
  CHECK(difference(soft_l1{.eps = 0.25f}) == 0);
  CHECK(difference(capped{}) == 0);
  CHECK(difference(capped{.most = 2, .scale = -1}) == 0);
  CHECK(difference(bits{}) == 0);
  CHECK(difference(wide{}) == 0);
  CHECK(difference(halves{}) == 0);
  CHECK(difference(tests{}) == 0);
  CHECK(difference(many{}) == 0);
  // K sums of three terms, each of a function of at most 8 units.
  CHECK(difference(powers{}) <= (50 + 30) * 0x1p-24);
  CHECK(difference(powers{.p = 2.25f}) <= (50 + 30) * 0x1p-24);
}

TEST_CASE("RIGEL_SEMIRING: NaN and infinities") {
  if (!texts::can_compile()) return;
  const float values[] = {0.f, -1.f, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  const Matrix<float> a("a", 5, 1), b("b", 1, 5), c("c", 5, 5), expected("expected", 5, 5);
  for (int i = 0; i < 5; ++i) a(i, 0) = b(0, i) = values[i];
  rigel::contract(Host{}, rigel::runtime::Semiring(tests::texts()), a, b, c);
  rigel::contract(Host{}, tests{}, a, b, expected);
  CHECK(texts::different(c, expected) == 0);
  rigel::contract(Host{}, rigel::runtime::Semiring(soft_l1::texts()), a, b, c);
  rigel::contract(Host{}, soft_l1{}, a, b, expected);
  CHECK(texts::different(c, expected) == 0);
}

TEST_CASE("RIGEL_SEMIRING: its texts") {
  const rigel::runtime::Texts all = capped::texts();
  CHECK(all.name == "capped");
  CHECK(all.element == rigel::Scalar::f64);
  CHECK(all.add == "return max(x, y);");
  CHECK(all.identity == "-infinity");
  REQUIRE(all.hyperparameters.size() == 2);
  CHECK(all.hyperparameters[1].name == "scale");
  CHECK(all.hyperparameters[1].value == 0.75);
  CHECK(many::texts().hyperparameters.size() == 16);
  CHECK(bits::texts().hyperparameters.empty());
  CHECK(soft_l1{.eps = 0.5f}.semiring().get("eps") == 0.5);
}

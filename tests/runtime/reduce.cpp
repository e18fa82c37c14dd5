// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores of semirings from text in reduce(), against the compiled semirings and formulas.
#include "texts.hpp"

#include <rigel/runtime_reduce.hpp>

#include <cmath>

using rigel::Scalar, rigel::runtime::Epilogue, rigel::runtime::Semiring;
using texts::Batch, texts::Host, texts::Matrix;

namespace {

template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, texts::Memory>;

Semiring l1_of(Scalar element) {
  return Semiring({.element = element, .multiply = "abs(a - b)", .add = "x + y", .commutative = true});
}

}  // namespace

TEST_CASE_TEMPLATE("text scores: minima with places, the smallest, sums, counts and weighted sums", T, float, double,
                   std::int32_t) {
  if (!texts::can_compile()) return;
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Semiring text = l1_of(rigel::scalar_of<T>);
  const rigel::l1<T> compiled;
  const Matrix<T> a("a", 30, 9), b("b", 9, 500);
  texts::fill(a, 1);
  texts::fill(b, 2);
  const rigel::ReduceOptions by_strips{.require = rigel::Promise::reference_bits, .workspace_limit = 1 << 16};
  const Vector<T> least("least", 30), least_c("least", 30);
  const Vector<std::int64_t> at("at", 30), at_c("at", 30), below("below", 30), below_c("below", 30);
  rigel::reduce(Host{}, text, a, b, rigel::reducer::minimum{}, least, at, {.workspace_limit = 1 << 16});
  rigel::reduce(Host{}, compiled, a, b, rigel::reducer::minimum{}, least_c, at_c, by_strips);
  CHECK(texts::different(least, least_c) == 0);
  CHECK(texts::different(at, at_c) == 0);
  const Matrix<T> few("few", 30, 7), few_c("few", 30, 7);
  const Matrix<std::int32_t> places("places", 30, 7), places_c("places", 30, 7);
  rigel::reduce(Host{}, text, a, b, rigel::reducer::smallest{7}, few, places);
  rigel::reduce(Host{}, compiled, a, b, rigel::reducer::smallest{7}, few_c, places_c, by_strips);
  CHECK(texts::different(few, few_c) == 0);
  CHECK(texts::different(places, places_c) == 0);
  rigel::reduce(Host{}, text, a, b, rigel::reducer::count_below{30.0}, below);
  rigel::reduce(Host{}, compiled, a, b, rigel::reducer::count_below{30.0}, below_c, by_strips);
  CHECK(texts::different(below, below_c) == 0);
  // Sums of 500 terms in another order, or as weights.
  const Vector<Real> sums("sums", 30), weighted("weighted", 30);
  const Vector<Real> weights("weights", 500);
  texts::fill(weights, 3);
  rigel::reduce(Host{}, text, a, b, rigel::reducer::sum{}, sums);
  rigel::reduce(Host{}, text, a, b, rigel::reducer::weighted_sum<Vector<Real>>{weights}, weighted);
  double worst = 0;
  for (int i = 0; i < 30; ++i) {
    double sum = 0, product = 0, magnitude = 0;
    for (int j = 0; j < 500; ++j) {
      double score = 0;
      for (int k = 0; k < 9; ++k) score += std::abs(double(a(i, k)) - double(b(k, j)));
      sum += score;
      product += score * double(weights(j));
      magnitude += score * std::abs(double(weights(j)));
    }
    const double unit = std::is_same_v<Real, float> ? 0x1p-24 : 0x1p-53;
    worst = std::max({worst, std::abs(sums(i) - sum) / (unit * (500 + 9) * sum),
                      std::abs(weighted(i) - product) / (unit * (500 + 12) * magnitude)});
  }
  CHECK(worst <= 1);
}

TEST_CASE_TEMPLATE("text scores: on each space, with an epilogue of the closed set", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring text({.multiply = "abs(a - b) * p", .add = "x + y", .hyperparameters = {{"p", 2}}});
  const Batch<float> a("a", 2, 100, 9), b("b", 2, 9, 300);
  texts::fill(a, 1);
  texts::fill(b, 2);
  const Matrix<float> least("least", 2, 100);
  const Matrix<std::int64_t> at("at", 2, 100);
  const Exec exec;
  rigel::reduce(exec, text, a, b, rigel::reducer::minimum{}, least, at, rigel::epilogue::scale(0.5),
                {.workspace_limit = 1 << 17});
  exec.fence();
  int wrong = 0;
  for (int l = 0; l < 2; ++l)
    for (int i = 0; i < 100; ++i) {
      double best = INFINITY;
      std::int64_t place = -1;
      for (int j = 0; j < 300; ++j) {
        double score = 0;  // exact: differences of sixteenths
        for (int k = 0; k < 9; ++k) score += std::abs(double(a(l, i, k)) - double(b(l, k, j)));
        if (score < best) best = score, place = j;
      }
      wrong += least(l, i) != best || at(l, i) != place;
    }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("text scores: an epilogue from text sees places in the whole, batches their own hyperparameters", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  // Strips of at most 64 KiB.
  Semiring text({.element = Scalar::f64, .multiply = "abs(a - b) * p", .add = "x + y", .hyperparameters = {{"p", 1}}});
  Epilogue e({.argument = Scalar::f64, .body = "m == n ? infinity : x + 1000 * batch + q", .hyperparameters = {{"q", 0}}});
  const Vector<double> p("p", 2), q("q", 2);
  p(0) = 1, p(1) = 3, q(0) = 0.5, q(1) = -0.5;
  text.set("p", p);
  e.set("q", q);
  const Batch<double> a("a", 2, 200, 3), b("b", 2, 3, 200);
  texts::fill(a, 4);
  for (int l = 0; l < 2; ++l)
    for (int i = 0; i < 200; ++i)
      for (int k = 0; k < 3; ++k) b(l, k, i) = a(l, i, k);
  const Matrix<double> least("least", 2, 200);
  const Matrix<std::int64_t> at("at", 2, 200);
  const Exec exec;
  rigel::reduce(exec, text, a, b, rigel::reducer::minimum{}, least, at, e, {.workspace_limit = 1 << 16});
  exec.fence();
  int wrong = 0;
  for (int l = 0; l < 2; ++l)
    for (int i = 0; i < 200; ++i) {
      double best = INFINITY;
      std::int64_t place = -1;
      for (int j = 0; j < 200; ++j) {
        double score = 0;
        for (int k = 0; k < 3; ++k) score += std::abs(a(l, i, k) - b(l, k, j)) * p(l);
        score += 1000 * l + q(l);
        if (i != j && score < best) best = score, place = j;
      }
      wrong += least(l, i) != best || at(l, i) != place;
    }
  CHECK(wrong == 0);
}

TEST_CASE("text scores: the closed set, a set with itself, the arguments of sums, and no scores") {
  if (!texts::can_compile()) return;
  const Semiring text = l1_of(Scalar::f32);
  const Matrix<float> a("a", 20, 5), none("none", 5, 0);
  texts::fill(a, 5);
  const Vector<float> least("least", 20), expected("expected", 20);
  const Vector<std::int32_t> at("at", 20), at_expected("at", 20);
  rigel::reduce(Host{}, text, a, rigel::transposed(a), rigel::reducer::minimum{}, least, at, rigel::epilogue::scale(-2),
                {.exclude_self = true});
  rigel::reduce(Host{}, rigel::l1<float>{}, a, rigel::transposed(a), rigel::reducer::minimum{}, expected, at_expected,
                rigel::epilogue::scale(-2), {.exclude_self = true});
  CHECK(texts::different(least, expected) == 0);
  CHECK(texts::different(at, at_expected) == 0);
  rigel::reduce(Host{}, text, a, none, rigel::reducer::minimum{}, least, at);
  CHECK(least(19) == INFINITY);
  CHECK(at(0) == -1);
  // An accumulator of several fields: the k of the least sum is the score.
  const Semiring winner({.accumulator = {{"value", Scalar::f32}, {"index", Scalar::i32}},
                         .multiply = "{a + b, k}",
                         .add = "y.value < x.value ? y : x",
                         .identity = "{infinity, -1}",
                         .result = "x.index",
                         .result_type = Scalar::i32});
  const Vector<std::int32_t> most("most", 20);
  rigel::reduce(Host{}, winner, a, rigel::transposed(a), rigel::reducer::maximum{}, most);
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    int largest = -1;
    for (int j = 0; j < 20; ++j) {
      int index = 0;
      for (int k = 1; k < 5; ++k)
        if (a(i, k) + a(j, k) < a(i, index) + a(j, index)) index = k;
      largest = std::max(largest, index);
    }
    wrong += most(i) != largest;
  }
  CHECK(wrong == 0);
}

TEST_CASE("text scores: calls that are refused") {
  if (!texts::can_compile()) return;
  const Matrix<float> a("a", 4, 5), b("b", 5, 6);
  const Matrix<double> wide("wide", 5, 6);
  const Vector<float> least("least", 4);
  const auto refuses = [](const auto& call, std::initializer_list<const char*> says) {
    const support::Caught caught = support::caught(call);
    CHECK(caught.code == rigel::Code::invalid_argument);
    CHECK(caught.lacks(says) == "");
  };
  refuses([&] { rigel::reduce(Host{}, l1_of(Scalar::f32), a, wide, rigel::reducer::minimum{}, least); },
          {"reduce: B ('wide') holds elements of type f64, expected f32"});
  refuses(
      [&] {
        rigel::reduce(Host{}, l1_of(Scalar::f32), a, b, rigel::reducer::minimum{}, least, rigel::no_output,
                      Epilogue({.argument = Scalar::f64, .body = "x"}));
      },
      {"reduce: the epilogue 'text' takes numbers of type f64, expected f32"});
  refuses(
      [&] {
        rigel::reduce(Host{}, l1_of(Scalar::f32), a, b, rigel::reducer::minimum{}, least, rigel::no_output,
                      Epilogue({.result = Scalar::f16, .body = "x"}));
      },
      {"reduce: the epilogue 'text' makes elements of type f16, expected f32"});
}

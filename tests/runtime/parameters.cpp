// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hyperparameters in views: read when a kernel runs, one for all matrices or one for each.
#include "texts.hpp"

using rigel::Scalar, rigel::runtime::Epilogue, rigel::runtime::Semiring;
using texts::Batch, texts::Host, texts::Matrix;

namespace {

template <class T>
using Number = Kokkos::View<T, texts::Memory>;
template <class T, class Layout = Kokkos::LayoutRight>
using Numbers = Kokkos::View<T*, Layout, texts::Memory>;

template <class C>
bool are(const C& c, int l, double value) {
  for (std::size_t i = 0; i < c.extent(1); ++i)
    for (std::size_t j = 0; j < c.extent(2); ++j)
      if (static_cast<double>(c(l, i, j)) != value) return false;
  return true;
}

}  // namespace

TEST_CASE_TEMPLATE("text views: a number in memory is read at each call, by semirings and epilogues", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Number<float> p("p");
  Semiring text({.multiply = "a * b * p + q", .add = "x + y", .hyperparameters = {{"p", 1}, {"q", 0}}});
  Epilogue e({.body = "x - p", .hyperparameters = {{"p", 0}}});
  const Batch<float> a("a", 2, 3, 4), b("b", 2, 4, 5), c("c", 2, 3, 5);
  Kokkos::deep_copy(a, 1.f);
  Kokkos::deep_copy(b, 1.f);
  text.set("p", p);
  text.set("q", 2);
  e.set("p", p);
  for (const float value : {3.f, -7.f}) {
    p() = value;
    texts::contract<Exec>(text, a, b, c);
    CHECK(are(c, 0, 4 * value + 8));
    CHECK(are(c, 1, 4 * value + 8));
    texts::contract<Exec>(text, a, b, c, e);
    CHECK(are(c, 1, 3 * value + 8));
    CHECK(text.get("p") == value);
    CHECK(e.get("p") == value);
  }
  const Semiring copy = text;  // keeps the view, and its own values
  text.set("p", 5);
  texts::contract<Exec>(text, a, b, c);
  CHECK(are(c, 0, 28));
  texts::contract<Exec>(copy, a, b, c);
  CHECK(are(c, 0, -20));
}

TEST_CASE_TEMPLATE("text views: one number for each matrix, of blocks and of small matrices in lanes", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  for (const auto [batches, m, n, k] : {std::array{3, 30, 40, 50}, std::array{100, 2, 3, 4}, std::array{1, 2, 3, 4}}) {
    CAPTURE(batches);
    const Numbers<double> p("p", batches), even("even", 2 * batches);
    Semiring text({.element = Scalar::f64, .multiply = "a * b * p", .add = "x + y", .hyperparameters = {{"p", 1}}});
    Epilogue e({.argument = Scalar::f64, .body = "x + p", .hyperparameters = {{"p", 1}}});
    for (int l = 0; l < batches; ++l) {
      p(l) = l + 1;
      even(2 * l) = 1000 * l;
      even(2 * l + 1) = -1;
    }
    text.set("p", p);
    const Kokkos::View<double*, Kokkos::LayoutStride, texts::Memory> strided(even.data(), Kokkos::LayoutStride(batches, 2));
    e.set("p", strided);
    const Batch<double> a("a", batches, m, k), c("c", batches, m, n);
    const Matrix<double> b("b", k, n);
    Kokkos::deep_copy(a, 1.);
    Kokkos::deep_copy(b, 1.);
    texts::contract<Exec>(text, a, b, c);
    for (int l = 0; l < batches; ++l) REQUIRE(are(c, l, k * (l + 1)));
    texts::contract<Exec>(text, a, b, c, e);
    for (int l = 0; l < batches; ++l) REQUIRE(are(c, l, k * (l + 1) + 1000 * l));
    rigel::contract(Host{}, rigel::plus_times<double>{}, a, b, c, e);
    for (int l = 0; l < batches; ++l) REQUIRE(are(c, l, k + 1000 * l));
  }
}

TEST_CASE_TEMPLATE("text views: accumulators of several fields and integers read them, too", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Numbers<std::int32_t> p("p", 2);
  p(0) = 3, p(1) = -3;
  Semiring text({.element = Scalar::i32,
                 .accumulator = {{"sum", Scalar::i32}, {"count", Scalar::i32}},
                 .multiply = "{a * b * p, 1}",
                 .add = "{x.sum + y.sum, x.count + y.count}",
                 .identity = "{0, 0}",
                 .result = "x.sum + x.count",
                 .hyperparameters = {{"p", 1}}});
  text.set("p", p);
  const Batch<std::int32_t> a("a", 2, 3, 4), b("b", 2, 4, 5), c("c", 2, 3, 5);
  Kokkos::deep_copy(a, 2);
  Kokkos::deep_copy(b, 1);
  texts::contract<Exec>(text, a, b, c);
  CHECK(are(c, 0, 28));
  CHECK(are(c, 1, -20));
}

TEST_CASE_TEMPLATE("text views: views that are refused", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  Semiring text({.name = "mine", .multiply = "a * b * p", .add = "x + y", .hyperparameters = {{"p", 1}}});
  const auto refuses = [](const auto& call, std::initializer_list<const char*> says) {
    const support::Caught caught = support::caught(call);
    CHECK(caught.code == rigel::Code::invalid_argument);
    CHECK(caught.lacks(says) == "");
  };
  const Numbers<double> wide("wide", 3);
  const Numbers<float> three("three", 3), none("none", 0);
  refuses([&] { text.set("q", three); }, {"'mine' has no hyperparameter 'q', expected one of p"});
  refuses([&] { text.set("p", wide); }, {"hyperparameter 'p' of 'mine' holds elements of type f64, expected f32"});
  refuses([&] { text.set("p", none); }, {"hyperparameter 'p' of 'mine' has 0 elements"});
  refuses([&] { text.set("p", Numbers<float>()); }, {"has 0 elements and no data"});
  CHECK(text.get("p") == 1);  // nothing was set
  text.set("p", three);
  refuses([&] { static_cast<void>(text.get("p")); }, {"is a view of 3 numbers, expected one to get"});
  const Batch<float> a("a", 2, 3, 4), b("b", 2, 4, 5), c("c", 2, 3, 5);
  refuses([&] { texts::contract<Exec>(text, a, b, c); },
          {"hyperparameter 'p' of 'mine' has 3 elements, expected 2, one for each matrix of C, or one for all"});
  Epilogue e({.name = "own", .body = "x + p", .hyperparameters = {{"p", 1}}});
  refuses([&] { e.set("p", wide); },
          {"runtime::Epilogue", "hyperparameter 'p' of 'own' holds elements of type f64, expected f32"});
  e.set("p", three);
  text.set("p", 1);
  refuses([&] { texts::contract<Exec>(text, a, b, c, e); }, {"hyperparameter 'p' of 'own' has 3 elements, expected 2"});
  refuses([&] { rigel::contract(Host{}, rigel::min_plus<float>{}, a, b, c, e); }, {"'own' has 3 elements, expected 2"});
}

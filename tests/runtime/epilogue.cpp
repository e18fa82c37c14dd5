// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues from text: with semirings from text and with compiled ones, against the same formula in plain C++.
#include "texts.hpp"

#include <cmath>
#include <cstring>
#include <limits>

using rigel::Scalar, rigel::runtime::Epilogue, rigel::runtime::EpilogueTexts, rigel::runtime::Semiring;
using texts::Batch, texts::Host, texts::Matrix;

namespace {

Semiring product_of(Scalar element) {
  return Semiring({.element = element, .multiply = "a * b", .add = "x + y", .step = "fma(a, b, x)", .commutative = true});
}

std::string message(const EpilogueTexts& texts) {
  const support::Caught caught = support::caught([&] { const Epilogue one(texts); });
  CHECK(caught.code == rigel::Code::invalid_argument);
  return caught.message;
}
void refuses(const EpilogueTexts& texts, const char* says) {
  const std::string text = message(texts);
  CAPTURE(text);
  CAPTURE(texts.body);
  CHECK(text.find(says) != std::string::npos);
}

}  // namespace

TEST_CASE_TEMPLATE("text epilogue: a formula of x, places and hyperparameters, on a text and on a compiled semiring", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  Epilogue e({.body = "x * scale + 100 * m + 10000 * n - batch", .hyperparameters = {{"scale", 0.5}}});
  const Semiring text = product_of(Scalar::f32);
  for (const auto [batches, m, n, k] :
       {std::array{1, 37, 45, 19}, std::array{3, 5, 140, 300}, std::array{70, 4, 3, 5}, std::array{2, 3, 4, 0}}) {
    CAPTURE(batches);
    for (const double scale : {0.5, -2.0}) {
      e.set("scale", scale);
      const Batch<float> a("a", batches, m, k), sums("sums", batches, m, n), c("c", batches, m, n), d("d", batches, m, n);
      const Matrix<float> b("b", k, n);
      texts::fill(a, 1);
      texts::fill(b, 2);
      texts::contract<Exec>(text, a, b, sums);
      texts::contract<Exec>(text, a, b, c, e);
      rigel::contract(Host{}, rigel::plus_times<float>{}, a, b, d, e, {.require = rigel::Promise::reference_bits});
      int wrong = 0, wrong_compiled = 0;
      for (int l = 0; l < batches; ++l)
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            const float scaled = sums(l, i, j) * static_cast<float>(scale);
            const float expected =
                scaled + static_cast<float>(100 * i) + static_cast<float>(10000 * j) - static_cast<float>(l);
            wrong += c(l, i, j) != expected;
            wrong_compiled += d(l, i, j) != expected;
          }
      CHECK(wrong == 0);
      CHECK(wrong_compiled == 0);
    }
  }
}

TEST_CASE_TEMPLATE("text epilogue: places of a column-major C, a strided one, and a transposed product", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Epilogue e({.body = "x + 1000 * m + n"});
  for (const bool commutative : {true, false}) {
    const Semiring text({.multiply = "a * b", .add = "x + y", .commutative = commutative});
    const Matrix<float> a("a", 40, 30), b("b", 30, 50), sums("sums", 40, 50);
    texts::fill(a, 3);
    texts::fill(b, 4);
    texts::contract<Exec>(text, a, b, sums);
    const Matrix<float, Kokkos::LayoutLeft> c("c", 40, 50);
    texts::contract<Exec>(text, a, b, c, e);
    const Matrix<float> large("large", 80, 150);
    const auto strided = Kokkos::subview(large, std::pair(3, 43), std::pair(7, 57));
    texts::contract<Exec>(text, a, b, strided, e);
    int wrong = 0;
    for (int i = 0; i < 40; ++i)
      for (int j = 0; j < 50; ++j) {
        const float expected = sums(i, j) + static_cast<float>(1000 * i) + static_cast<float>(j);
        wrong += c(i, j) != expected;
        wrong += strided(i, j) != expected;
      }
    CHECK(wrong == 0);
    CHECK(large(2, 7) == 0);
    CHECK(large(3, 57) == 0);
  }
}

TEST_CASE_TEMPLATE("text epilogue: accumulate adds before it", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Epilogue e({.body = "2 * x"});
  const Matrix<float> a("a", 3, 4), b("b", 4, 5), c("c", 3, 5);
  Kokkos::deep_copy(a, 1.f);
  Kokkos::deep_copy(b, 1.f);
  Kokkos::deep_copy(c, 10.f);
  texts::contract<Exec>(product_of(Scalar::f32), a, b, c, e, rigel::ContractOptions{.accumulate = true});
  CHECK(c(2, 4) == 28);
}

TEST_CASE_TEMPLATE("text epilogue: elements of C of other types", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const auto check = [&]<class T, class U>(T, U, const EpilogueTexts& texts, const auto& expected) {
    CAPTURE(texts.body);
    CAPTURE(rigel::name(texts.result));
    const Matrix<T> a("a", 9, 20), b("b", 20, 33), sums("sums", 9, 33);
    const Matrix<U> c("c", 9, 33), d("d", 9, 33);
    texts::fill(a, 5);
    texts::fill(b, 6);
    const Epilogue e(texts);
    texts::contract<Exec>(product_of(rigel::scalar_of<T>), a, b, sums);
    texts::contract<Exec>(product_of(rigel::scalar_of<T>), a, b, c, e);
    rigel::contract(Host{}, rigel::plus_times<T>{}, a, b, d, e, {.require = rigel::Promise::reference_bits});
    int wrong = 0;
    for (int i = 0; i < 9; ++i)
      for (int j = 0; j < 33; ++j) {
        const U value = expected(sums(i, j));
        wrong += std::memcmp(&c(i, j), &value, sizeof value) != 0;
        wrong += std::memcmp(&d(i, j), &value, sizeof value) != 0;
      }
    CHECK(wrong == 0);
  };
  check(float{}, double{}, {.result = Scalar::f64, .body = "x * 0.1"}, [](float x) { return double{x} * 0.1; });
  check(float{}, rigel::half{}, {.result = Scalar::f16, .body = "x * 0.125"},
        [](float x) { return rigel::half(x * 0.125f); });
  check(float{}, rigel::bfloat16{}, {.result = Scalar::bf16, .body = "max(x, 0)"},
        [](float x) { return rigel::bfloat16(x > 0 ? x : 0.f); });
  check(float{}, std::int32_t{}, {.result = Scalar::i32, .body = "floor(x)"},
        [](float x) { return static_cast<std::int32_t>(std::floor(x)); });
  check(double{}, std::int64_t{}, {.argument = Scalar::f64, .result = Scalar::i64, .body = "x > 0 ? 1 : -1"},
        [](double x) { return std::int64_t{x > 0 ? 1 : -1}; });
  check(std::int32_t{}, float{}, {.argument = Scalar::i32, .result = Scalar::f32, .body = "x * 0.25"},
        [](std::int32_t x) { return static_cast<float>(x) * 0.25f; });
  check(std::int64_t{}, std::int32_t{}, {.argument = Scalar::i64, .result = Scalar::i32, .body = "int(x & 255)"},
        [](std::int64_t x) { return static_cast<std::int32_t>(x & 255); });
  check(double{}, rigel::half{}, {.argument = Scalar::f64, .result = Scalar::f16, .body = "x + 0.00048828125000001"},
        [](double x) { return rigel::half(rigel::detail::rounded_to_odd(x + 0.00048828125000001)); });
}

TEST_CASE_TEMPLATE("text epilogue: elements of 16 bits in A and B, and functions of x", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Epilogue e({.body = "1 / (1 + exp(-x))"});
  const Matrix<rigel::half> a("a", 20, 10), b("b", 10, 30);
  const Matrix<float> sums("sums", 20, 30), c("c", 20, 30);
  texts::fill(a, 7);
  texts::fill(b, 8);
  const Semiring text = product_of(Scalar::f16);
  texts::contract<Exec>(text, a, b, sums);
  texts::contract<Exec>(text, a, b, c, e);
  double worst = 0;  // in units of the bound: an exponential of 2 units, a sum, a quotient
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 30; ++j) {
      const double exact = 1 / (1 + std::exp(-double{sums(i, j)}));
      if (exact > 1e-30) worst = std::max(worst, std::abs(c(i, j) - exact) / (4 * 0x1p-24 * exact));
    }
  CHECK(worst <= 1);
}

TEST_CASE_TEMPLATE("text epilogue: NaN and infinities reach it", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Epilogue e({.body = "isnan(x) ? -1 : isinf(x) ? -2 : x"});
  const Matrix<float> a("a", 1, 1), b("b", 1, 5), c("c", 1, 5);
  a(0, 0) = 1;
  const float values[] = {nan, inf, -inf, 0, 7};
  for (int j = 0; j < 5; ++j) b(0, j) = values[j];
  texts::contract<Exec>(product_of(Scalar::f32), a, b, c, e);
  CHECK(c(0, 0) == -1);
  CHECK(c(0, 1) == -2);
  CHECK(c(0, 2) == -2);
  CHECK(c(0, 3) == 0);
  CHECK(c(0, 4) == 7);
}

TEST_CASE_TEMPLATE("text epilogue: equal texts compile once, new values compile nothing, and explain() takes it", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  Epilogue e({.body = "x * 3.0625 + p", .hyperparameters = {{"p", 1}}});
  const Matrix<float> a("a", 2, 2), c("c", 2, 2);
  const Semiring text = product_of(Scalar::f32);
  texts::contract<Exec>(text, a, a, c, e);
  const auto before = rigel::runtime::statistics();
  for (int i = 0; i < 100; ++i) {
    e.set("p", i);
    texts::contract<Exec>(text, a, a, c, e);
    REQUIRE(c(1, 1) == static_cast<float>(i));
  }
  const Epilogue other({.name = "other", .body = "x*3.0625+q // the same", .hyperparameters = {{"q", 2}}});
  texts::contract<Exec>(text, a, a, c, other);
  CHECK(c(0, 0) == 2);
  const auto after = rigel::runtime::statistics();
  CHECK(after.compiled == before.compiled);
  CHECK(after.from_disk == before.from_disk);
  CHECK(after.from_memory == before.from_memory + 1);
  const char* const chosen = support::on_host<Exec> ? "* host.text.f32." : "* cuda.simt.text.f32.";
  CHECK(rigel::explain(Exec{}, text, a, a, c, e).find(chosen) != std::string::npos);
  CHECK(rigel::explain(Host{}, rigel::min_plus<float>{}, a, a, c, e).find("min_plus") != std::string::npos);
  static_cast<void>(rigel::workspace_size(Exec{}, text, a, a, c, e));
  CHECK(e.get("p") == 99);
  CHECK(e.hyperparameters() == std::vector<std::string>{"p"});
}

TEST_CASE_TEMPLATE("text epilogue: types of the call that do not suit it are named", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Matrix<float> a("a", 2, 2), c("c", 2, 2);
  const Matrix<double> d("d", 2, 2), g("g", 2, 2);
  const auto says = [&](const auto& call, const char* first, const char* second) {
    const support::Caught caught = support::caught(call);
    CAPTURE(caught.message);
    CHECK(caught.code == rigel::Code::invalid_argument);
    CHECK(caught.message.find(first) != std::string::npos);
    CHECK(caught.message.find(second) != std::string::npos);
  };
  const Epilogue single({.body = "x"}), wide({.argument = Scalar::f64, .body = "x"});
  says([&] { texts::contract<Exec>(product_of(Scalar::f32), a, a, d, single); }, "f32", "f64");
  says([&] { texts::contract<Exec>(product_of(Scalar::f32), a, a, c, wide); }, "f64", "f32");
  says([&] { rigel::contract(Host{}, rigel::plus_times<double>{}, d, d, g, single); }, "f32", "f64");
  // Without an epilogue that makes integers, floating-point results have no place in integers.
  const Matrix<std::int32_t> whole("whole", 2, 2);
  const support::Caught caught = support::caught([&] { texts::contract<Exec>(product_of(Scalar::f32), a, a, whole); });
  CHECK(caught.code == rigel::Code::unsupported);
  CHECK(caught.lacks({"C ('whole') holds i32", "expected f16, bf16, f32 or f64"}) == "");
}

TEST_CASE("text epilogue: texts that are refused, with their places") {
  const std::string text = message({.body = "x +\n  bias[n]"});
  CHECK(text.find("runtime::Epilogue: body, line 2, column 7: '[' is no sign of the language") != std::string::npos);
  CHECK(text.find("\n    bias[n]\n        ^") != std::string::npos);
  refuses({.body = ""}, "line 1, column 1: expected an expression");
  refuses({.body = "a"}, "'a' is not known here, expected a constant, a function's call, or one of batch, m, n, x");
  refuses({.body = "k * x"}, "'k' is not known here");
  refuses({.body = "x.value"}, "column 2: '.' takes an accumulator of several fields");
  refuses({.body = "{x}"}, "column 2: 'x' cannot be assigned");
  refuses({.body = "x < 0"}, "bool");
  refuses({.body = "x % 2"}, "'%' takes whole numbers, not float and int");
  refuses({.body = "m = 3; return x;"}, "'m' cannot be assigned");
  refuses({.body = "float batch = 1; return x;"}, "'batch' is declared already");
  refuses({.argument = Scalar::f16, .body = "x"}, "the argument type is f16, expected f32, f64, i32 or i64");
  refuses({.result = Scalar::u8, .body = "x"}, "the result type is u8, expected f32, f64, i32, i64, f16 or bf16");
  refuses({.name = "no name", .body = "x"}, "the name 'no name' is none");
  refuses({.body = "x", .hyperparameters = {{"m", 1}}}, "hyperparameter 1 is called 'm'");
  refuses({.body = "x", .hyperparameters = {{"p", 1}, {"p", 2}}}, "two hyperparameters are called 'p'");
  refuses({.argument = Scalar::i32, .body = "x", .hyperparameters = {{"p", 0.5}}}, "cannot be 0.5");
  const std::string nested = std::string(60, '(') + "x" + std::string(60, ')');
  refuses({.body = nested}, "more than 48 constructs inside each other");
  Epilogue e({.body = "x * p", .hyperparameters = {{"p", 1}}});
  CHECK(support::caught([&] { e.set("q", 1); }).message.find("has no hyperparameter 'q', expected one of p") !=
        std::string::npos);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings from text whose accumulators have several fields, and texts that read k: against the same loops in plain C++.
#include "texts.hpp"

#include <cmath>
#include <limits>
#include <vector>

using rigel::Scalar, rigel::runtime::Semiring, rigel::runtime::Texts;
using texts::Batch, texts::Matrix;

namespace {

// batches, m, n, k: whole blocks and edges, K in several blocks, lanes of a batch, no K at all, whole tiles.
const std::array<int, 4> shapes[] = {{1, 1, 1, 1},  {1, 7, 5, 3},  {1, 33, 65, 40}, {2, 20, 37, 600},
                                     {70, 3, 4, 6}, {9, 1, 1, 30}, {2, 3, 5, 0},    {1, 64, 128, 24}};

template <class T>
constexpr Scalar index_type = sizeof(rigel::accumulator_for<T>) == 8 ? Scalar::i64 : Scalar::i32;

template <class T>
Texts winner() {
  using A = rigel::accumulator_for<T>;
  return {.name = "winner",
          .element = rigel::scalar_of<T>,
          .accumulator = {{"value", rigel::scalar_of<A>}, {"index", index_type<T>}},
          .multiply = "{a + b, k}",
          .add = "y.value < x.value ? y : x",
          .identity = "{infinity, -1}",
          .result = "x.index",
          .result_type = index_type<T>,
          .commutative = true};
}

// Runs a text on all shapes, in two layouts of C, on each space, if `by_all` by each of its kernels. `chain(a, b)` gives the result
// of the products of pairs.
template <class T, class U, class Chain>
void agrees(const Texts& text, const Chain& chain, bool by_all = false) {
  CAPTURE(text.name);
  CAPTURE(rigel::name(text.element));
  const Semiring semiring(text);
  for (const auto [batches, m, n, k] : shapes) {
    CAPTURE(batches);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    const Batch<T> a("a", batches, m, k), b("b", batches, k, n);
    texts::fill(a, 1);
    texts::fill(b, 2);
    const Batch<U> expected("expected", batches, m, n);
    std::vector<T> u(static_cast<std::size_t>(k)), v(static_cast<std::size_t>(k));
    for (int l = 0; l < batches; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          for (int q = 0; q < k; ++q) {
            u[static_cast<std::size_t>(q)] = a(l, i, q);
            v[static_cast<std::size_t>(q)] = b(l, q, j);
          }
          expected(l, i, j) = chain(u, v);
        }
    texts::for_each_space([&]<class Exec>() {
      for (const std::string& kernel : texts::kernels_of<Exec>(semiring, by_all)) {
        CAPTURE(kernel);
        const rigel::ContractOptions by{.kernel = kernel};
        const Batch<U> c("c", batches, m, n);
        const Batch<U, Kokkos::LayoutLeft> left("left", batches, m, n);
        texts::contract<Exec>(semiring, a, b, c, by);
        texts::contract<Exec>(semiring, a, b, left, by);
        int wrong = 0;
        for (int l = 0; l < batches; ++l)
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
              wrong += c(l, i, j) != expected(l, i, j);
              wrong += left(l, i, j) != expected(l, i, j);
            }
        CHECK(wrong == 0);
      }
    });
  }
}

void refuses(const Texts& texts, std::initializer_list<const char*> says) {
  CAPTURE(texts.multiply);
  const support::Caught caught = support::caught([&] { const Semiring one(texts); });
  CHECK(caught.code == rigel::Code::invalid_argument);
  CHECK(caught.lacks(says) == "");
}

Texts pair_of(const char* multiply, const char* add = "x", const char* identity = "{0, 0}", const char* result = "x.u") {
  return {.accumulator = {{"u", Scalar::f32}, {"w", Scalar::i32}},
          .multiply = multiply,
          .add = add,
          .identity = identity,
          .result = result};
}

}  // namespace

TEST_CASE_TEMPLATE("text fields: the argument of a minimum, for each element type", T, float, double, rigel::half,
                   rigel::bfloat16, std::int32_t, std::int64_t) {
  if (!texts::can_compile()) return;
  using A = rigel::accumulator_for<T>;
  using Index = std::conditional_t<sizeof(A) == 8, std::int64_t, std::int32_t>;
  const auto chain = [](const std::vector<T>& a, const std::vector<T>& b) {
    Index index = -1;
    A best = rigel::infinity<A>();
    for (std::size_t k = 0; k < a.size(); ++k) {
      const A sum = static_cast<A>(a[k]) + static_cast<A>(b[k]);
      if (sum < best) {
        best = sum;
        index = static_cast<Index>(k);
      }
    }
    return index;
  };
  agrees<T, Index>(winner<T>(), chain, std::is_floating_point_v<T>);
  Texts other = winner<T>();  // the same by names, assignments and branches
  other.multiply = "{.index = k, .value = a + b}";
  other.add = "auto z = x; if (y.value < x.value) { z.value = y.value; z.index = y.index; } return z;";
  agrees<T, Index>(other, chain);
  other.add = "if (y.value < x.value) return y; return x;";
  other.step = "auto s = a + b; if (s < x.value) return {s, k}; return x;";
  agrees<T, Index>(other, chain);
}

TEST_CASE_TEMPLATE("text fields: best and second best", T, float, std::int32_t, double, std::int64_t) {
  if (!texts::can_compile()) return;
  Texts text{.name = "second",
             .element = rigel::scalar_of<T>,
             .accumulator = {{"best", rigel::scalar_of<T>}, {"second", rigel::scalar_of<T>}},
             .multiply = "{a * b, infinity}",
             .add = "{min(x.best, y.best), min(max(x.best, y.best), min(x.second, y.second))}",
             .identity = "{infinity, infinity}",
             .result = "x.second + x.best * p",
             .hyperparameters = {{"p", 2}}};
  agrees<T, T>(text, [](const std::vector<T>& a, const std::vector<T>& b) {
    T best = rigel::infinity<T>(), second = best;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const T product = a[k] * b[k];
      second = std::min(second, std::max(best, product));
      best = std::min(best, product);
    }
    if constexpr (std::is_integral_v<T>)  // integers wrap
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(second) + 2 * static_cast<std::make_unsigned_t<T>>(best));
    else
      return second + best * 2;
  });
}

TEST_CASE("text fields: three and four of them") {
  if (!texts::can_compile()) return;
  agrees<float, float>({.name = "three",
                        .accumulator = {{"count", Scalar::i32}, {"sum", Scalar::f32}, {"most", Scalar::f32}},
                        .multiply = "auto d = abs(a - b); return {d > limit ? 1 : 0, d, d};",
                        .add = "{x.count + y.count, x.sum + y.sum, max(x.most, y.most)}",
                        .identity = "{0, 0, 0}",
                        .result = "x.sum + 1000 * x.count + 0.5 * x.most",
                        .hyperparameters = {{"limit", 3}},
                        .commutative = true},
                       [](const std::vector<float>& a, const std::vector<float>& b) {
                         int count = 0;
                         float sum = 0, most = 0;
                         for (std::size_t k = 0; k < a.size(); ++k) {
                           const float d = std::abs(a[k] - b[k]);
                           count += d > 3;
                           sum += d;
                           most = std::max(most, d);
                         }
                         return sum + static_cast<float>(1000 * count) + 0.5f * most;
                       });
  agrees<double, std::int64_t>(
      {.name = "four",
       .element = Scalar::f64,
       .accumulator = {{"low", Scalar::f64}, {"at_low", Scalar::i64}, {"high", Scalar::f64}, {"at_high", Scalar::i64}},
       .multiply = "{a - b, k, a - b, k}",
       .add = "auto z = x;\n"
              "if (y.low < x.low) { z.low = y.low; z.at_low = y.at_low; }\n"
              "if (y.high > x.high) { z.high = y.high; z.at_high = y.at_high; }\n"
              "return z;",
       .identity = "{infinity, -1, -infinity, -1}",
       .result = "x.at_low * 1000 + x.at_high",
       .result_type = Scalar::i64},
      [](const std::vector<double>& a, const std::vector<double>& b) {
        double low = INFINITY, high = -INFINITY;
        std::int64_t at_low = -1, at_high = -1;
        for (std::size_t k = 0; k < a.size(); ++k) {
          const double d = a[k] - b[k];
          if (d < low) low = d, at_low = static_cast<std::int64_t>(k);
          if (d > high) high = d, at_high = static_cast<std::int64_t>(k);
        }
        return at_low * 1000 + at_high;
      },
      true);
}

TEST_CASE_TEMPLATE("text fields: a logarithm of a sum of exponentials by maximum and sum", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring text({.accumulator = {{"most", Scalar::f32}, {"sum", Scalar::f32}},
                       .multiply = "{a + b, 1}",
                       .add = "auto m = max(x.most, y.most);\n"
                              "return {m, x.sum * exp(x.most - m) + y.sum * exp(y.most - m)};",
                       .identity = "{-infinity, 0}",
                       .result = "x.most + log(x.sum)",
                       .commutative = true});
  const Matrix<float> a("a", 30, 50), b("b", 50, 40), c("c", 30, 40);
  texts::fill(a, 3);
  texts::fill(b, 4);
  texts::contract<Exec>(text, a, b, c);
  double worst = 0;  // in units of the bound: K sums, each of two exponentials, products and a sum; and a logarithm
  for (int i = 0; i < 30; ++i)
    for (int j = 0; j < 40; ++j) {
      double sum = 0;
      for (int k = 0; k < 50; ++k) sum += std::exp(double{a(i, k)} + b(k, j));
      worst =
          std::max(worst, std::abs(c(i, j) - std::log(sum)) / (0x1p-24 * (4 * 50 * 2 + 2 * (1 + std::abs(std::log(sum))))));
    }
  CHECK(worst <= 1);
}

TEST_CASE_TEMPLATE("text fields: NaN goes where the text sends it", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring text(winner<float>());
  const Matrix<float> a("a", 1, 4), b("b", 4, 1);
  const Matrix<std::int32_t> c("c", 1, 1);
  a(0, 0) = 3, a(0, 1) = std::numeric_limits<float>::quiet_NaN(), a(0, 2) = 1, a(0, 3) = 2;
  texts::contract<Exec>(text, a, b, c);
  CHECK(c(0, 0) == 2);  // a comparison with NaN is false
}

TEST_CASE_TEMPLATE("text fields: integers as results in C of other types, an epilogue, broadcasting, and no accumulate",
                   Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring text(winner<float>());
  const Batch<float> a("a", 3, 10, 20);
  const Matrix<float> b("b", 20, 30);
  texts::fill(a, 5);
  texts::fill(b, 6);
  const Batch<std::int32_t> c("c", 3, 10, 30), doubled("doubled", 3, 10, 30);
  const Batch<double> wide("wide", 3, 10, 30);
  const Batch<std::uint8_t> bytes("bytes", 3, 10, 30);
  texts::contract<Exec>(text, a, b, c);
  texts::contract<Exec>(text, a, b, wide);
  texts::contract<Exec>(text, a, b, bytes);
  texts::contract<Exec>(text, a, b, doubled, rigel::runtime::Epilogue({.argument = Scalar::i32, .body = "2 * x + batch"}));
  int wrong = 0;
  for (int l = 0; l < 3; ++l)
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 30; ++j) {
        wrong += wide(l, i, j) != c(l, i, j);
        wrong += bytes(l, i, j) != c(l, i, j);
        wrong += doubled(l, i, j) != 2 * c(l, i, j) + l;
      }
  CHECK(wrong == 0);
  const support::Caught caught =
      support::caught([&] { texts::contract<Exec>(text, a, b, c, rigel::ContractOptions{.accumulate = true}); });
  CHECK(caught.code == rigel::Code::invalid_argument);
  CHECK(caught.lacks({"accumulate is not defined", "'winner'", "several fields"}) == "");
  // Floating-point results do not fit into integers.
  Texts value = winner<float>();
  value.result = "x.value";
  value.result_type = Scalar::other;
  CHECK(support::caught([&] { texts::contract<Exec>(Semiring(value), a, b, c); }).lacks({"'c'", "i32", "f32"}) == "");
}

TEST_CASE_TEMPLATE("text: multiply may read k", T, float, double, std::int32_t, std::int64_t) {
  if (!texts::can_compile()) return;
  const auto chain = [](const std::vector<T>& a, const std::vector<T>& b) {
    T sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * static_cast<T>(k % 5);
    return sum;
  };
  Texts text{.name = "weighted", .element = rigel::scalar_of<T>, .multiply = "(a - b) * (k % 5)", .add = "x + y"};
  agrees<T, T>(text, chain);
  text.step = "x + (a - b) * (k % 5)";
  agrees<T, T>(text, chain);
  text.step = "";
  text.result = "-x";
  agrees<T, T>(text, [&](const std::vector<T>& a, const std::vector<T>& b) { return -chain(a, b); });
  text.result = "";
  const Matrix<T> a("a", 9, 8), b("b", 8, 20), c("c", 9, 20), twice("twice", 9, 20);
  texts::fill(a, 7);
  texts::fill(b, 8);
  texts::for_each_space([&]<class Exec>() {
    texts::contract<Exec>(Semiring(text), a, b, c);
    texts::contract<Exec>(Semiring(text), a, b, twice);
    texts::contract<Exec>(Semiring(text), a, b, twice, rigel::ContractOptions{.accumulate = true});
    int wrong = 0;
    for (std::size_t i = 0; i < c.size(); ++i)
      wrong += twice.data()[i] != 2 * c.data()[i];  // exact: small multiples of 1/16
    CHECK(wrong == 0);
  });
}

TEST_CASE("text fields: texts that are refused, with their places") {
  refuses(pair_of("a * b"), {"multiply, line 1, column 3: expected an accumulator, as {u, w}, not float"});
  refuses(pair_of("{a}"), {"multiply, line 1, column 1: expected a value for each of u, w: 'w' has none"});
  refuses(pair_of("{}"), {"'u' has none"});
  refuses(pair_of("{a, b, 1}"), {"line 1, column 8: expected 2 values in braces, one for each of u, w"});
  refuses(pair_of("{a, }"), {"line 1, column 5: expected a value, not '}'"});
  refuses(pair_of("{a, 1"), {"line 1, column 6: expected '}'"});
  refuses(pair_of("{.u = a}"), {"'w' has none"});
  refuses(pair_of("{.u = a, .u = b}"), {"column 10: 'u' has a value already"});
  refuses(pair_of("{.u = a, 1}"), {"column 10: expected names of fields for all values in braces, or for none"});
  refuses(pair_of("{a, .w = 1}"), {"column 5: expected names of fields for all values in braces, or for none"});
  refuses(pair_of("{.v = a, .w = 1}"), {"column 3: expected the name of a field, one of u, w, not 'v'"});
  refuses(pair_of("{.u a}"), {"column 5: expected '=' after the name of a field"});
  refuses(pair_of("{a < b, 1}"), {"expected a number, not bool"});
  refuses(pair_of("{{a, 1}, 1}"), {"column 2: expected float, not an accumulator of several fields"});
  refuses(pair_of("return {a, 1}"), {"not known here"});
  refuses(pair_of("{a, 1};"), {"line 1, column 2: 'a' cannot be assigned"});
  refuses(pair_of("auto z = {a, 1}; z = a; return z;"), {"expected an accumulator, as {u, w}, not float"});
  refuses(pair_of("auto z = {a, 1}; z.v = a; return z;"), {"column 20: expected the name of a field, one of u, w, not 'v'"});
  refuses(pair_of("auto z = {a, 1}; z.u.u = a; return z;"),
          {"column 21: '.' takes an accumulator of several fields on its left: float has no members"});
  refuses(pair_of("const auto z = {a, 1}; z.u = a; return z;"), {"'z' cannot be assigned"});
  refuses(pair_of("float z = {a, 1}; return {z, 1};"),
          {"expected float, not an accumulator of several fields: name one of u, w"});
  refuses(pair_of("auto z = {a, 1}; z += {a, 1}; return z;"), {"takes numbers, not an accumulator of several fields"});
  refuses(pair_of("auto z = {a, 1}; return {float(z), 1};"), {"expected float, not an accumulator"});
  refuses(pair_of("auto z = {a, 1}; return {bool(z) ? a : b, 1};"), {"expected a number or a bool, not an accumulator"});
  refuses(pair_of("auto z = {a, 1}; if (z) return z; return z;"), {"expected a number or a bool, not an accumulator"});
  refuses(pair_of("auto z = {a, 1}; return -z;"), {"'-' takes numbers, not an accumulator"});
  refuses(pair_of("auto z = {a, 1}; return {abs(z), 1};"), {"'abs' takes numbers, not an accumulator"});
  refuses(pair_of("auto z = {a, 1}; return {power(z, 2), 1};"), {"'power' takes numbers, not an accumulator"});
  refuses(pair_of("a < b ? {a, 1} : b"), {"takes numbers, not an accumulator"});
  refuses(pair_of("{a, 1}.x"), {"column 8: expected the name of a field"});
  refuses(pair_of("{a, k.w}"), {"column 6: '.' takes an accumulator of several fields on its left: long has no members"});
  refuses(pair_of("{a, 1}", "x + y"), {"add, line 1, column 3: '+' takes numbers, not an accumulator"});
  refuses(pair_of("{a, 1}", "x == y ? x : y"), {"'==' takes numbers, not an accumulator"});
  refuses(pair_of("{a, 1}", "min(x, y)"), {"'min' takes numbers, not an accumulator"});
  refuses(pair_of("{a, 1}", "x.value"), {"column 3: expected the name of a field, one of u, w, not 'value'"});
  refuses(pair_of("{a, 1}", "x."), {"column 3: expected the name of a field, one of u, w, not the end of the text"});
  refuses(pair_of("{a, 1}", "x.u"), {"expected an accumulator, as {u, w}, not float"});
  refuses(pair_of("{a, 1}", "x.u = y.u; return x;"), {"'x' cannot be assigned"});
  refuses(pair_of("{a, 1}", "k < 1 ? x : y"), {"add, line 1, column 1: 'k' is not known here"});
  refuses(pair_of("{a, 1}", "x", "0"), {"identity, line 1, column 1: expected an accumulator, as {u, w}, not int"});
  refuses(pair_of("{a, 1}", "x", ""), {"identity, line 1, column 1: expected the identity of add"});
  refuses(pair_of("{a, 1}", "x", "{k, 1}"), {"identity, line 1, column 2: 'k' is not known here"});
  refuses(pair_of("{a, 1}", "x", "{0, 0}", ""), {"result is empty"});
  refuses(pair_of("{a, 1}", "x", "{0, 0}", "x"), {"result, line 1, column 1: expected float, not an accumulator"});
  refuses(pair_of("{a, 1}", "x", "{0, 0}", "k"), {"result, line 1, column 1: 'k' is not known here"});
  std::string deep = "a";
  for (int i = 0; i < 60; ++i) deep = "{" + deep + ", 1}.u";
  refuses(pair_of(("{" + deep + ", 1}").c_str()), {"more than 48 constructs inside each other"});
}

TEST_CASE("text fields: accumulators that are refused") {
  const auto with = [](rigel::runtime::Accumulator accumulator) {
    Texts text = pair_of("{a, 1}");
    text.accumulator = std::move(accumulator);
    return text;
  };
  using Fields = std::vector<rigel::runtime::Field>;
  refuses(with(rigel::runtime::Accumulator(Fields{{"u", Scalar::f32}})), {"the accumulator has 1 field, expected 2 to 4"});
  refuses(with({{"a", Scalar::f32}, {"b", Scalar::f32}, {"c", Scalar::f32}, {"d", Scalar::f32}, {"e", Scalar::f32}}),
          {"the accumulator has 5 fields, expected 2 to 4"});
  refuses(with({{"u", Scalar::f32}, {"u", Scalar::i32}}), {"two fields of the accumulator are called 'u'"});
  refuses(with({{"u", Scalar::f32}, {"no name", Scalar::i32}}), {"field 2 of the accumulator is called 'no name'"});
  refuses(with({{"u", Scalar::f32}, {"", Scalar::i32}}), {"field 2 of the accumulator is called ''"});
  refuses(with({{"u", Scalar::f32}, {"w", Scalar::i64}}),
          {"field 'w' of the accumulator has type i64, expected f32 or i32 for elements of f32"});
  refuses(with({{"u", Scalar::f16}, {"w", Scalar::i32}}), {"field 'u' of the accumulator has type f16"});
  refuses(with({{"u", Scalar::f32}, {"w", Scalar::other}}), {"field 'w' of the accumulator has type"});
  Texts text = pair_of("{a, 1}");
  text.result_type = Scalar::f64;
  refuses(text, {"the result type is f64, expected f32 or i32"});
  refuses({.multiply = "a", .add = "x + y", .result_type = Scalar::i32}, {"the result type is i32, expected f32"});
  refuses({.multiply = "a * b", .add = "x + y", .hyperparameters = {{"k", 1}}}, {"hyperparameter 1 is called 'k'"});
  refuses({.multiply = "float k = a; return k;", .add = "x + y"}, {"'k' is declared already"});
}

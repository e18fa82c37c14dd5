// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_gradient() with functors from text: the bits of compiled functors, bounds against a reference in double, hyperparameters.
#include "texts.hpp"

#include <tests/gradient/problems.hpp>

#include <rigel/runtime_gradient.hpp>

#include <cmath>
#include <limits>

using gradient::Extents, gradient::Inputs, gradient::Numbers;
using rigel::Scalar, rigel::runtime::Derivative, rigel::runtime::DerivativeTexts;
using texts::Host;

namespace {

constexpr const char* of_manhattan = "auto t = d - b; return abs(t) < epsilon ? 0 : a * copysign(1, t);";
constexpr const char* of_euclidean = "auto t = d - b; return abs(t) < epsilon || t == 0 || (a == 0 && t == t) ? 0 : a * t;";
constexpr const char* of_minkowski =
    "auto t = d - b;\n"
    "return abs(t) < epsilon || t == 0 || (a == 0 && t == t) ? 0 : a * copysign(power(abs(t), q), t);";

// Texts that stand for functors, with the epsilon and the exponent of these.
template <class T>
DerivativeTexts text_of(const rigel::gradient_of::manhattan<T>& g) {
  return {.name = "one",
          .element = rigel::scalar_of<T>,
          .multiply = of_manhattan,
          .hyperparameters = {{"epsilon", static_cast<double>(g.least)}}};
}
template <class T>
DerivativeTexts text_of(const rigel::gradient_of::euclidean<T>& g) {
  return {.name = "two",
          .element = rigel::scalar_of<T>,
          .multiply = of_euclidean,
          .accumulate = "fma(c, v, x)",
          .add = "x + y",
          .hyperparameters = {{"epsilon", static_cast<double>(g.least)}}};
}
template <class T>
DerivativeTexts text_of(const rigel::gradient_of::minkowski<T>& g) {
  return {.name = "any",
          .element = rigel::scalar_of<T>,
          .multiply = of_minkowski,
          .hyperparameters = {{"epsilon", static_cast<double>(g.least)}, {"q", static_cast<double>(g.exponent)}}};
}

// The derivative of Σ d·b by d.
template <class T>
struct Product : rigel::detail::gradient_sum<T> {
  static constexpr const char* name = "product";
  template <rigel::Number V>
  RIGEL_MEMBER V multiply(V, V b, V a) const {
    return rigel::math::multiply(a, b);
  }
};
template <class T>
DerivativeTexts text_of(const Product<T>&) {
  return {.name = "product", .element = rigel::scalar_of<T>, .multiply = "a * b", .identity = "0"};
}

// The largest |c|·(|d − b| + a), plus 1.
struct Largest {
  using element = std::int32_t;
  using accumulator = std::int32_t;
  static constexpr const char* name = "largest";
  RIGEL_MEMBER static accumulator identity() { return -1000000; }
  RIGEL_MEMBER static accumulator multiply(accumulator d, accumulator b, accumulator a) {
    return (d < b ? b - d : d - b) + a;
  }
  RIGEL_MEMBER static accumulator accumulate(accumulator x, accumulator c, accumulator v) {
    return add(x, (c < 0 ? -c : c) * v);
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) { return x < y ? y : x; }
  RIGEL_MEMBER static accumulator result(accumulator x) { return x + 1; }
};
DerivativeTexts text_of(const Largest&) {
  return {.name = "largest",
          .element = Scalar::i32,
          .multiply = "abs(d - b) + a",
          .accumulate = "max(x, abs(c) * v)",
          .add = "max(x, y)",
          .identity = "-1000000",
          .result = "x + 1"};
}

// The same bits, or NaN twice.
template <class View>
int different(const View& found, const View& expected) {
  const Numbers x = gradient::get(found), y = gradient::get(expected);
  int count = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    count += (x[i] == y[i] && std::signbit(x[i]) == std::signbit(y[i])) || (x[i] != x[i] && y[i] != y[i]) ? 0 : 1;
  return count;
}

// What makes sums NaN or infinite, and what coincides.
void make_hostile(Inputs& in) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto at = [](Numbers& v, std::size_t i) -> double& { return v[i % v.size()]; };
  if (in.a.empty() || in.c.empty() || in.d.empty()) return;
  for (std::size_t i = 0; i < in.d.size(); i += 3) in.d[i] = at(in.b, i);  // points that coincide
  at(in.d, 1) = inf;
  at(in.d, 5) = nan;
  at(in.d, 7) = -0.0;
  at(in.b, 2) = -inf;
  at(in.b, 11) = nan;
  at(in.b, 13) = 0x1p-140;
  at(in.a, 3) = inf;
  at(in.a, 8) = nan;
  at(in.a, 17) = 0;
  at(in.a, 19) = -0.0;
  at(in.c, 4) = -inf;
  at(in.c, 9) = 0;
}

// A problem's views, in layouts of their own.
template <class Exec, class T, class A, class LayoutIn, class LayoutOut>
struct Views {
  explicit Views(const Inputs& in, int shared = 0)
      : e(in.e),
        a(gradient::batch_of<T, Exec, LayoutIn>(shared ? shared : e.batch, e.k, e.m)),
        b(gradient::batch_of<T, Exec, LayoutOut>(e.batch, e.n, e.k)),
        c(gradient::batch_of<T, Exec, LayoutIn>(shared ? shared : e.batch, e.outputs, e.k)),
        d(gradient::batch_of<T, Exec, LayoutOut>(e.batch, e.n, e.m)),
        out(gradient::outputs_of<A, Exec, LayoutOut>(e.batch, e.outputs, e.n, e.m)),
        expected(gradient::outputs_of<A, Exec, LayoutOut>(e.batch, e.outputs, e.n, e.m)) {
    const auto first = [](Numbers numbers, std::size_t count) {
      numbers.resize(count);
      return numbers;
    };
    gradient::put(a, first(in.a, a.size()));
    gradient::put(b, in.b);
    gradient::put(c, first(in.c, c.size()));
    gradient::put(d, in.d);
  }
  void start() const {
    Numbers numbers(out.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 17) - 8;
    gradient::put(out, numbers);
    gradient::put(expected, numbers);
  }
  Extents e;
  decltype(gradient::batch_of<T, Exec, LayoutIn>(1, 1, 1)) a;
  decltype(gradient::batch_of<T, Exec, LayoutOut>(1, 1, 1)) b;
  decltype(gradient::batch_of<T, Exec, LayoutIn>(1, 1, 1)) c;
  decltype(gradient::batch_of<T, Exec, LayoutOut>(1, 1, 1)) d;
  decltype(gradient::outputs_of<A, Exec, LayoutOut>(1, 1, 1, 1)) out, expected;
};

// Each kernel of the text must give the bits of the functor's kernel of the same variant. Returns how many ran.
template <class Exec, class G, class LayoutIn, class LayoutOut>
int agrees(const Derivative& text, const G& functor, const Inputs& in, int shared) {
  const Exec exec;
  const Views<Exec, typename G::element, typename G::accumulator, LayoutIn, LayoutOut> v(in, shared);
  int ran = 0;
  for (const auto& kernel : text.kernels(rigel::detail::space_of<Exec>)) {
    CAPTURE(kernel.info.name);
    const std::string type = rigel::name(rigel::scalar_of<typename G::element>),
                      compiled = kernel.info.family + '.' + G::name + '.' + type +
                                 (kernel.info.family == "host" ? "" : '.' + kernel.info.variant);
    for (const bool accumulate : {false, true}) {
      rigel::GradientOptions options{.accumulate = accumulate, .kernel = kernel.info.name};
      const rigel::Gradient problem = rigel::gradient_problem(exec, text, v.a, v.b, v.c, v.d, v.out, options);
      if (!problem.is_empty() && !rigel::supports(kernel, problem)) continue;
      v.start();
      rigel::contract_gradient(exec, text, v.a, v.b, v.c, v.d, v.out, options);
      options.kernel = compiled;
      rigel::contract_gradient(exec, functor, v.a, v.b, v.c, v.d, v.expected, options);
      exec.fence();
      CHECK(different(v.out, v.expected) == 0);
      ++ran;
    }
  }
  return ran;
}

const Extents shapes[] = {{1, 1, 1, 1, 1},    {2, 3, 5, 7, 4},     {1, 17, 6, 70, 65}, {3, 9, 2, 33, 31},
                          {1, 2, 3, 4, 1000}, {2, 5, 1, 129, 513}, {1, 4, 3, 2, 0},    {2, 0, 3, 3, 3}};

// On each space, for inputs that are tame or hostile, in layouts of all kinds.
template <class G>
void agrees(const G& functor) {
  using T = typename G::element;
  const Derivative text(text_of(functor));
  CAPTURE(text.name());
  CAPTURE(rigel::name(text.element()));
  support::Random random(7);
  int number = 0;
  for (const Extents& e : shapes) {
    CAPTURE(number);
    for (const bool hostile : {false, true}) {
      if (hostile && std::is_integral_v<T>) continue;
      CAPTURE(hostile);
      Inputs in = gradient::random_inputs<T>(random, e);
      if constexpr (std::is_integral_v<T>)
        for (Numbers* const list : {&in.a, &in.b, &in.c, &in.d})
          for (double& x : *list) x = static_cast<double>(random.integer(-100, 100));
      if (hostile) make_hostile(in);
      texts::for_each_space([&]<class Exec>() {
        using Right = Kokkos::LayoutRight;
        using Left = Kokkos::LayoutLeft;
        using Gaps = Kokkos::LayoutStride;
        const int ran = number % 3 == 0   ? agrees<Exec, G, Right, Left>(text, functor, in, 0)
                        : number % 3 == 1 ? agrees<Exec, G, Gaps, Right>(text, functor, in, e.batch > 1 ? 1 : 0)
                                          : agrees<Exec, G, Left, Gaps>(text, functor, in, 0);
        CHECK(ran >= 2);
      });
    }
    ++number;
  }
}

}  // namespace

TEST_CASE_TEMPLATE("text gradient: the bits of compiled functors", T, float, double) {
  if (!texts::can_compile()) return;
  for (const T epsilon : {T(0), T(0.25)}) {
    agrees(rigel::gradient_of::manhattan<T>(epsilon));
    agrees(rigel::gradient_of::euclidean<T>(epsilon));
    for (const double p : {0.75, 1.5, 3.}) agrees(rigel::gradient_of::minkowski<T>(p, epsilon));
  }
  agrees(Product<T>());
}

TEST_CASE("text gradient: the bits of functors of 16-bit elements and of integers") {
  if (!texts::can_compile()) return;
  agrees(rigel::gradient_of::manhattan<rigel::half>(0.125f));
  agrees(rigel::gradient_of::euclidean<rigel::bfloat16>());
  agrees(Largest{});
}

TEST_CASE_TEMPLATE("text gradient: bounds against sums in double", T, float, double) {
  if (!texts::can_compile()) return;
  const Extents e{2, 3, 4, 35, 50};
  support::Random random(11);
  const Inputs in = gradient::random_inputs<T>(random, e);
  constexpr double u = std::numeric_limits<T>::epsilon() / 2;
  texts::for_each_space([&]<class Exec>() {
    const Exec exec;
    const Views<Exec, T, T, Kokkos::LayoutRight, Kokkos::LayoutLeft> v(in);
    Derivative text(
        {.element = rigel::scalar_of<T>, .multiply = of_minkowski, .hyperparameters = {{"epsilon", 0}, {"q", 0}}});
    for (const double p : {1., 1.3125, 2., 3.5}) {
      CAPTURE(p);
      text.set("q", p - 1);
      rigel::contract_gradient(exec, text, v.a, v.b, v.c, v.d, v.out);
      exec.fence();
      // K + 1 roundings of a sum, those of a difference and a product, and 120 of a power (docs/numerics.md).
      CHECK(gradient::worst_ratio(gradient::get(v.out), gradient::sums_of(in, [&](int) { return p; }), 124 + e.k, u, e.k) <=
            1);
    }
    // Gauss's kernel exp(−t²/2): −t·exp(−t²/2). On |t| ≤ 2 the argument is at most 2, with two roundings, and the exponential within 4.
    const Derivative gauss(
        {.element = rigel::scalar_of<T>, .multiply = "auto t = d - b; return -(a * t * exp(t * t / -2));"});
    rigel::contract_gradient(exec, gauss, v.a, v.b, v.c, v.d, v.out);
    exec.fence();
    const Numbers found = gradient::get(v.out);
    std::size_t i = 0;
    double worst = 0;
    for (int l = 0; l < e.batch; ++l)
      for (int o = 0; o < e.outputs; ++o)
        for (int n = 0; n < e.n; ++n)
          for (int m = 0; m < e.m; ++m) {
            double sum = 0, size = 0;
            for (int k = 0; k < e.k; ++k) {
              const double t = in.point(l, n, m) - in.known(l, n, k),
                           term = -in.coefficient(l, o, k) * in.weight(l, k, m) * t * std::exp(-t * t / 2);
              sum += term;
              size += std::abs(term);
            }
            worst = std::max(worst, std::abs(found[i++] - sum) / ((e.k + 16) * u * size));
          }
    CHECK(worst <= 1);
  });
}

TEST_CASE("text gradient: batches are last, views of rank 2 broadcast, and Out has rank 3") {
  if (!texts::can_compile()) return;
  const Derivative text(text_of(rigel::gradient_of::euclidean<float>()));
  texts::for_each_space([&]<class Exec>() {
    const Exec exec;
    // One k: c·a·(d − b).
    const Kokkos::View<float***, texts::Memory> d("d", 2, 3, 4);
    const texts::Matrix<float> a("a", 1, 3), b("b", 2, 1), c("c", 5, 1);
    const Kokkos::View<float****, texts::Memory> out("out", 5, 2, 3, 4);
    Kokkos::deep_copy(a, 3.f);
    Kokkos::deep_copy(b, 1.f);
    for (int o = 0; o < 5; ++o) c(o, 0) = static_cast<float>(o);
    for (int n = 0; n < 2; ++n)
      for (int m = 0; m < 3; ++m)
        for (int l = 0; l < 4; ++l) d(n, m, l) = static_cast<float>(100 * n + 10 * m + l);
    rigel::contract_gradient(exec, text, a, b, c, d, out, {.batch = rigel::Batch::last});
    exec.fence();
    for (int o = 0; o < 5; ++o)
      for (int n = 0; n < 2; ++n)
        for (int m = 0; m < 3; ++m)
          for (int l = 0; l < 4; ++l)
            CHECK(out(o, n, m, l) == 3 * static_cast<float>(o) * (static_cast<float>(100 * n + 10 * m + l) - 1));
    const Kokkos::View<float***, texts::Memory> one("one", 5, 2, 3);
    const texts::Matrix<float> of_one("of_one", 2, 3);
    Kokkos::deep_copy(of_one, 5.f);
    rigel::contract_gradient(exec, text, rigel::transposed(texts::Matrix<float>("at", 3, 1)), b, c, of_one, one);
    exec.fence();
    CHECK(one(4, 1, 2) == 0);  // weights of 0
  });
}

TEST_CASE("text gradient: a thousand values of hyperparameters compile nothing again") {
  if (!texts::can_compile()) return;
  Derivative text({.name = "scaled",
                   .element = Scalar::f64,
                   .multiply = "a * (d - b) * scale + shift",
                   .hyperparameters = {{"scale", 1}, {"shift", 0}}});
  texts::for_each_space([&]<class Exec>() {
    const Exec exec;
    const texts::Matrix<double> a("a", 1, 1), b("b", 1, 1), c("c", 1, 1), d("d", 1, 1);
    const texts::Batch<double> out("out", 1, 1, 1);
    a(0, 0) = 2, b(0, 0) = 1, c(0, 0) = 3, d(0, 0) = 6;
    rigel::contract_gradient(exec, text, a, b, c, d, out);
    exec.fence();
    const auto before = rigel::runtime::statistics();
    int wrong = 0;
    for (int i = 0; i < 1000; ++i) {
      text.set("scale", i);
      text.set("shift", -i);
      rigel::contract_gradient(exec, text, a, b, c, d, out);
      exec.fence();
      wrong += out(0, 0, 0) != 3 * (10 * i - i);
    }
    CHECK(wrong == 0);
    const auto after = rigel::runtime::statistics();
    CHECK(after.compiled == before.compiled);
    CHECK(after.from_disk == before.from_disk);
    CHECK(after.from_memory == before.from_memory);
    CHECK(text.get("scale") == 999);
  });
  CHECK(text.hyperparameters() == std::vector<std::string>{"scale", "shift"});
}

TEST_CASE("text gradient: hyperparameters in views, one for all batches or one for each") {
  if (!texts::can_compile()) return;
  const Kokkos::View<float*, texts::Memory> scales("scales", 3);
  const Kokkos::View<float, texts::Memory> shift("shift");
  for (int l = 0; l < 3; ++l) scales(l) = static_cast<float>(l + 1);
  Derivative text({.multiply = "a * b * scale + shift", .hyperparameters = {{"shift", 0}, {"scale", 1}}});
  text.set("scale", scales);
  text.set("shift", shift);
  const Derivative copy = text;
  text.set("scale", 10);
  texts::for_each_space([&]<class Exec>() {
    const Exec exec;
    const texts::Matrix<float> a("a", 700, 2), b("b", 3, 700), c("c", 2, 700), d("d", 3, 2);
    const Kokkos::View<float****, texts::Memory> out("out", 3, 2, 3, 2);
    for (const auto& view : {a, b, c}) Kokkos::deep_copy(view, 1.f);
    for (const float value : {0.f, 5.f}) {
      shift() = value;
      for (const auto& kernel : copy.kernels(rigel::detail::space_of<Exec>)) {
        CAPTURE(kernel.info.name);
        rigel::contract_gradient(exec, copy, a, b, c, d, out, {.kernel = kernel.info.name});
        exec.fence();
        for (int l = 0; l < 3; ++l) CHECK(out(l, 1, 2, 1) == 700 * (static_cast<float>(l + 1) + value));
        rigel::contract_gradient(exec, text, a, b, c, d, out, {.kernel = kernel.info.name});
        exec.fence();
        for (int l = 0; l < 3; ++l) CHECK(out(l, 1, 2, 1) == 700 * (10 + value));
      }
    }
    const Kokkos::View<float****, texts::Memory> two("two", 2, 2, 3, 2);
    const auto refused = support::caught([&] { rigel::contract_gradient(exec, copy, a, b, c, d, two); });
    CHECK(refused.code == rigel::Code::invalid_argument);
    CHECK(refused.lacks({"hyperparameter 'scale' of 'text' has 3 elements, expected 2, one for each batch of Out"}) == "");
  });
}

TEST_CASE("text gradient: sums whose parts are not joined, and results") {
  if (!texts::can_compile()) return;
  const Derivative text({.multiply = "abs(d - b) + a",
                         .accumulate = "x + c * v",
                         .identity = "0",
                         .result = "x > limit ? sqrt(x) : -x",
                         .hyperparameters = {{"limit", 1}}});
  texts::for_each_space([&]<class Exec>() {
    const Exec exec;
    const texts::Matrix<float> a("a", 900, 1), b("b", 1, 900), c("c", 1, 900), d("d", 1, 1);
    const texts::Batch<float> out("out", 1, 1, 1);
    Kokkos::deep_copy(c, 1.f);
    d(0, 0) = 1;
    rigel::contract_gradient(exec, text, a, b, c, d, out);
    exec.fence();
    CHECK(out(0, 0, 0) == 30);  // √900
    d(0, 0) = 0x1p-20f;
    rigel::contract_gradient(exec, text, a, b, c, d, out);
    exec.fence();
    CHECK(out(0, 0, 0) == -900 * 0x1p-20f);
    CHECK(text.kernels(rigel::detail::space_of<Exec>).size() == 1);
  });
}

namespace {

void holds(const DerivativeTexts& text) {
  CAPTURE(text.multiply);
  const Derivative derivative(text);
  const rigel::Verification first = rigel::verify(derivative, 1), again = rigel::verify(derivative, 1);
  CHECK(first.report == "");
  CHECK(first.ok);
  CHECK(first.problems >= 24);
  CHECK(first.digest == again.digest);
}

}  // namespace

TEST_CASE("text gradient verify: each element type, functions, results; hyperparameters are those of the object") {
  if (!texts::can_compile()) return;
  holds({.multiply = of_euclidean, .hyperparameters = {{"epsilon", 0.125}}});
  holds({.element = Scalar::f64, .multiply = of_minkowski, .hyperparameters = {{"epsilon", 0}, {"q", 0.3125}}});
  holds({.element = Scalar::f16, .multiply = "a * exp(-abs(d - b))", .accumulate = "x + c * v", .add = "x + y"});
  holds({.element = Scalar::bf16, .multiply = "a * (d - b)", .result = "sqrt(abs(x))"});
  holds({.element = Scalar::i64, .multiply = "a * (d % 3) + b", .accumulate = "max(x, c * v)", .add = "max(x, y)"});
  holds(text_of(Largest{}));
  Derivative text({.name = "mine", .multiply = "a * p", .hyperparameters = {{"p", 2}}});
  const rigel::Verification two = rigel::verify(text);
  text.set("p", 3);
  CHECK(rigel::verify(text).digest != two.digest);
  const Kokkos::View<float*, texts::Memory> several("several", 2);
  text.set("p", several);
  const auto refused = support::caught([&] { static_cast<void>(rigel::verify(text)); });
  CHECK(refused.code == rigel::Code::invalid_argument);
  CHECK(refused.lacks({"verify: 'mine' has a view of several numbers as hyperparameter"}) == "");
}

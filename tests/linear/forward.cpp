// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// linear_forward() by Tier::scalar: the chain in plain C++ bit for bit, and double within the a-priori bound. Every type, layout, bias,
// activation, with and without the value before the activation.
#include "layer.hpp"

#include <tests/support/compare.hpp>
#include <tests/support/spaces.hpp>

#include <type_traits>

namespace {

using layer::Activation, layer::Stored, layer::Tensor, layer::Values;
using rigel::bfloat16;

struct Case {
  std::size_t batches, m, n, k;
  Stored x, w, y;
  int biases;  // rows of the bias: 0, 1 or `batches`
};

template <class T>
constexpr double unit = std::is_same_v<T, bfloat16>      ? 0x1p-8
                        : std::is_same_v<T, rigel::half> ? 0x1p-11
                                                         : 0x1p-24;
// Half of the last place of the smallest numbers.
template <class T>
constexpr double tiny = std::is_same_v<T, rigel::half> ? 0x1p-25 : 0x1p-134;

struct Expected {
  Values y, z, exact, bound;  // y and z: the chain's; exact: y in double
};
template <class T, class Y, class Z>
Expected expected(const Case& c, Activation a, const Values& x, const Values& w, const Values& bias) {
  constexpr double u = 0x1p-24;
  Expected e;
  layer::Product{c.batches, c.m, c.n, c.k}.chains(
      [&](auto l, auto i, auto k) { return x[(l * c.m + i) * c.k + k]; },
      [&](auto, auto k, auto j) { return w[k * c.n + j]; }, [](auto, auto, auto) { return 0.; },
      [&](std::size_t at, float chain, double exact, double magnitude) {
        const std::size_t l = at / (c.m * c.n), j = at % c.n;
        const double b = c.biases == 0 ? 0 : bias[(c.biases == 1 ? 0 : l) * c.n + j];
        const float z = c.biases == 0 ? chain : chain + static_cast<float>(b);
        e.z.push_back(layer::rounded<Z>(z));
        e.y.push_back(layer::rounded<Y>(rigel::activation::with(a, [&]<class A>() { return A::value(z); })));
        const double off = (2 + static_cast<double>(c.k)) * u * magnitude, of_z = off + u * (std::fabs(exact + b) + off);
        const layer::Exact act = layer::exact(a, exact + b);
        const double value = std::fabs(act.value) + act.lipschitz * of_z;
        e.exact.push_back(act.value);
        e.bound.push_back(act.lipschitz * of_z + layer::value_units(a, std::fabs(exact + b) + of_z) * u * value +
                          2 * unit<Y> * value + tiny<Y>);
      });
  return e;
}

template <class T, class Y, class Z, class Exec>
void check(const Case& c, std::uint64_t seed) {
  const Exec exec;
  const Values x = layer::random<T>(c.batches * c.m * c.k, seed), w = layer::random<T>(c.k * c.n, seed + 1),
               bias = layer::random<float>(static_cast<std::size_t>(c.biases) * c.n, seed + 2);
  const Tensor<T, Exec> of_x(c.batches, c.m, c.k, c.x, "x", x), of_w(1, c.k, c.n, c.w, "w", w);
  const auto of_bias = layer::rows<Exec>(static_cast<std::size_t>(c.biases), c.n, bias);
  for (const Activation a : layer::activations) {
    const Expected e = expected<T, Y, std::conditional_t<std::is_void_v<Z>, float, Z>>(c, a, x, w, bias);
    Tensor<Y, Exec> y(c.batches, c.m, c.n, c.y, "y");
    const rigel::LinearOptions options{.epilogue = a};
    const auto call = [&](const auto& b) {
      if constexpr (std::is_void_v<Z>) {
        rigel::linear_forward(exec, of_x.view(), of_w.view(), b, y.view(), options);
      } else {
        const Tensor<Z, Exec> z(c.batches, c.m, c.n, c.y == Stored::by_rows ? Stored::with_gaps : Stored::by_rows, "z");
        rigel::linear_forward(exec, of_x.view(), of_w.view(), b, y.view(), z.view(), options);
        CHECK(support::same(z.values(), e.z));
      }
    };
    if (c.biases == 0)
      call(rigel::no_bias);
    else
      call(of_bias);
    const std::string activation = rigel::name(a);
    CAPTURE(activation);
    const Values actual = y.values();
    CHECK(support::same(actual, e.y));
    int wrong = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) wrong += !(std::fabs(actual[i] - e.exact[i]) <= e.bound[i]);
    CHECK(wrong == 0);
  }
}

template <class T, class Y, class Z, class Exec>
void check_all() {
  const Stored rows = Stored::by_rows, columns = Stored::by_columns, gaps = Stored::with_gaps;
  const Case cases[] = {{1, 5, 7, 9, rows, rows, rows, 1},      {1, 33, 18, 40, rows, columns, rows, 0},
                        {3, 17, 6, 21, gaps, rows, columns, 3}, {2, 1, 65, 130, columns, columns, gaps, 1},
                        {1, 1, 1, 1, rows, rows, rows, 1},      {1, 4, 3, 0, rows, rows, rows, 1},
                        {2, 0, 3, 4, rows, rows, rows, 0},      {1, 3, 0, 4, rows, rows, rows, 1},
                        {0, 3, 2, 4, rows, rows, rows, 0},      {1, 70, 64, 33, rows, columns, columns, 1}};
  std::uint64_t seed = 1;
  for (const Case& c : cases) {
    CAPTURE(seed);
    check<T, Y, Z, Exec>(c, seed += 3);
  }
}

struct Halved {
  KOKKOS_FUNCTION float operator()(float v, std::int64_t m, std::int64_t n, std::int64_t) const {
    return v / 2 + static_cast<float>(m - n);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("linear_forward: worked out by hand", T, float, rigel::half, bfloat16) {
  using Exec = Kokkos::DefaultExecutionSpace;
  const auto x = support::matrix<T, Exec>(2, 2, {1, 2, 3, 4}), w = support::matrix<T, Exec>(2, 3, {1, 0, -1, 2, 1, 0});
  const auto y = support::matrix<T, Exec>(2, 3), z = support::matrix<T, Exec>(2, 3);
  const Kokkos::View<float*, typename Exec::memory_space> bias("bias", 3);
  support::fill(bias, {0.5, -10, 0});
  rigel::linear_forward(Exec{}, x, w, bias, y, z, {.epilogue = Activation::relu});
  CHECK(support::values(z) == Values{5.5, -8, -1, 11.5, -6, -3});
  CHECK(support::values(y) == Values{5.5, 0, 0, 11.5, 0, 0});
  // A bias of the layer's type.
  const Kokkos::View<T*, typename Exec::memory_space> same("same", 3);
  support::fill(same, {0.5, -10, 0});
  support::fill(y, {});
  rigel::linear_forward(Exec{}, x, w, same, y, z, {.epilogue = Activation::relu});
  CHECK(support::values(y) == Values{5.5, 0, 0, 11.5, 0, 0});
  support::fill(y, {});
  rigel::linear_forward(Exec{}, x, w, same, y);
  CHECK(support::values(y) == Values{5.5, -8, -1, 11.5, -6, -3});
  // W as nn.Linear stores it.
  const auto stored = support::matrix<T, Exec>(3, 2, {1, 2, 0, 1, -1, 0});
  rigel::linear_forward(Exec{}, x, rigel::transposed(stored), rigel::no_bias, y);
  CHECK(support::values(y) == Values{5, 2, -1, 11, 4, -3});
  // Steps of the closed set, and a functor, after the bias; with and without the value before them.
  const rigel::LinearOptions<rigel::epilogue::Program> steps{.epilogue =
                                                                 rigel::epilogue::scale(2) | rigel::epilogue::clamp(-3, 12)};
  rigel::linear_forward(Exec{}, x, w, bias, y, steps);
  CHECK(support::values(y) == Values{11, -3, -2, 12, -3, -3});
  support::fill(y, {});
  rigel::linear_forward(Exec{}, x, w, bias, y, z, steps);
  CHECK(support::values(y) == Values{11, -3, -2, 12, -3, -3});
  CHECK(support::values(z) == Values{5.5, -8, -1, 11.5, -6, -3});
  rigel::linear_forward(Exec{}, x, w, bias, y, rigel::LinearOptions{.epilogue = Halved{}});
  CHECK(support::values(y) == Values{2.75, -5, -2.5, 6.75, -3, -2.5});
  support::fill(y, {});
  rigel::linear_forward(Exec{}, x, w, bias, y, z, rigel::LinearOptions{.epilogue = Halved{}});
  CHECK(support::values(y) == Values{2.75, -5, -2.5, 6.75, -3, -2.5});
}

TEST_CASE_TEMPLATE("linear_forward: the scalar tier is the chain", Exec, RIGEL_TEST_SPACES) {
  check_all<float, float, void, Exec>();
  check_all<float, float, float, Exec>();
  check_all<float, bfloat16, bfloat16, Exec>();
  check_all<bfloat16, bfloat16, void, Exec>();
  check_all<bfloat16, bfloat16, bfloat16, Exec>();
  check_all<bfloat16, float, rigel::half, Exec>();
  check_all<rigel::half, rigel::half, void, Exec>();
  check_all<rigel::half, rigel::half, float, Exec>();
}

TEST_CASE_TEMPLATE("linear_forward: the batch index last, and a residual that is y", Exec, RIGEL_TEST_SPACES) {
  using View = Kokkos::View<float***, Kokkos::LayoutRight, typename Exec::memory_space>;
  const View x("x", 2, 2, 3), w("w", 2, 1, 3), y("y", 2, 1, 3), z("z", 2, 1, 3);
  support::fill(x, {1, 2, 3, 1, 1, 1, 2, 2, 2, 0, 1, 0});
  support::fill(w, {1, 1, 1, 2, 3, 4});
  support::fill(y, {10, 20, 30, 40, 50, 60});
  // Batch l: x(m,k) = x(m,k,l), so rows (1,1) and (2,0), then (2,1) and (2,1), then (3,1) and (2,0).
  const rigel::LinearOptions<rigel::epilogue::Program> options{.epilogue = rigel::epilogue::residual(y, rigel::Batch::last),
                                                               .batch = rigel::Batch::last};
  rigel::linear_forward(Exec{}, x, w, rigel::no_bias, y, options);
  CHECK(support::values(y) == Values{13, 25, 37, 42, 55, 62});
  support::fill(y, {10, 20, 30, 40, 50, 60});
  rigel::linear_forward(Exec{}, x, w, rigel::no_bias, y, z, options);
  CHECK(support::values(y) == Values{13, 25, 37, 42, 55, 62});
  CHECK(support::values(z) == Values{3, 5, 7, 2, 5, 2});
}

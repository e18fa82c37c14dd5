// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tier::tensor against double, within the a-priori bound of products on tensor cores (docs/numerics.md): shapes that fill no tile,
// unaligned and transposed operands, batches that one dW sums.
#include "layer.hpp"

#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <type_traits>

namespace {

using layer::Activation, layer::Stored, layer::Tensor, layer::Values;
using rigel::bfloat16;

constexpr double u = 0x1p-24;
template <class T>
constexpr double unit = std::is_same_v<T, bfloat16>      ? 0x1p-8
                        : std::is_same_v<T, rigel::half> ? 0x1p-11
                                                         : 0x1p-24;
// Half of the last place of the smallest numbers.
template <class T>
constexpr double tiny = std::is_same_v<T, rigel::half> ? 0x1p-25 : 0x1p-134;

/// Of a sum of K products: of 16-bit numbers that of truncated sums, of floats that of one chain.
template <class T>
double units_of_sum(std::size_t k) {
  const auto terms = static_cast<double>((k + 15) / 16 * 16);
  return sizeof(T) == 2 ? 50 + 3 * terms : 2 + static_cast<double>(k);
}

struct Case {
  std::size_t batches, m, n, k;
  Stored x, w, y;
};

/// Gradients in place of what dW and db hold, of T: sums that are rounded once.
template <class T, class X, class DY, class Exec>
void check_overwritten(const Case& c, const X& of_x, const DY& of_dy, const Exec& exec, const Values& x, const Values& dy) {
  const std::size_t rows = c.batches * c.m;
  const auto dw = support::matrix<T, Exec>(static_cast<int>(c.k), static_cast<int>(c.n), Values(c.k * c.n, NAN));
  const auto db = support::matrix<T, Exec>(1, static_cast<int>(c.n), Values(c.n, NAN));
  const rigel::LinearOptions options{.tier = rigel::Tier::tensor, .overwrite = true};
  rigel::linear_backward_weight(exec, of_x, of_dy, dw, db, options);
  const Values of_weight = support::values(dw), of_bias = support::values(db);
  int wrong = 0;
  const auto within = [&](double value, double exact, double magnitude) {
    const double off = units_of_sum<T>(rows) * u * magnitude;
    wrong += !(std::fabs(value - exact) <= off + (u + unit<T>)*(std::fabs(exact) + off) * 1.01 + tiny<T>);
  };
  const auto zero = [](auto, auto, auto) { return 0.; };
  layer::Product{1, c.k, c.n, rows}.chains(
      [&](auto, auto i, auto m) { return x[m * c.k + i]; }, [&](auto, auto m, auto j) { return dy[m * c.n + j]; }, zero,
      [&](std::size_t at, float, double exact, double magnitude) { within(of_weight[at], exact, magnitude); });
  layer::Product{1, 1, c.n, rows}.chains(
      [](auto, auto, auto) { return 1.; }, [&](auto, auto m, auto j) { return dy[m * c.n + j]; }, zero,
      [&](std::size_t at, float, double exact, double magnitude) { within(of_bias[at], exact, magnitude); });
  CHECK(wrong == 0);
}

template <class T, class Exec>
void check(const Case& c, std::uint64_t seed) {
  const Exec exec;
  const Values x = layer::random<T>(c.batches * c.m * c.k, seed), w = layer::random<T>(c.k * c.n, seed + 1),
               dy = layer::random<T>(c.batches * c.m * c.n, seed + 2), z = layer::random<T>(c.batches * c.m * c.k, seed + 3),
               bias = layer::random<float>(c.n, seed + 4);
  const Tensor<T, Exec> of_x(c.batches, c.m, c.k, c.x, "x", x), of_w(1, c.k, c.n, c.w, "w", w),
      of_dy(c.batches, c.m, c.n, c.y, "dy", dy), of_z(c.batches, c.m, c.k, c.x, "z", z);
  const auto of_bias = layer::rows<Exec>(1, c.n, bias);
  int wrong = 0;
  for (const Activation a : layer::activations) {
    const Tensor<T, Exec> y(c.batches, c.m, c.n, c.y, "y"), kept(c.batches, c.m, c.n, Stored::by_rows, "z"),
        dx(c.batches, c.m, c.k, c.x, "dx");
    const rigel::LinearOptions options{.tier = rigel::Tier::tensor, .epilogue = a};
    rigel::linear_forward(exec, of_x.view(), of_w.view(), of_bias, y.view(), options);
    const Values alone = y.values();
    rigel::linear_forward(exec, of_x.view(), of_w.view(), of_bias, y.view(), kept.view(), options);
    const Values with_z = y.values(), actual_z = kept.values();
    layer::Product{c.batches, c.m, c.n, c.k}.chains(
        [&](auto l, auto i, auto k) { return x[(l * c.m + i) * c.k + k]; },
        [&](auto, auto k, auto j) { return w[k * c.n + j]; }, [](auto, auto, auto) { return 0.; },
        [&](std::size_t at, float, double exact, double magnitude) {
          const double before = exact + bias[at % c.n], off = units_of_sum<T>(c.k) * u * magnitude,
                       of_z = off + u * (std::fabs(before) + off);
          const layer::Exact act = layer::exact(a, before);
          const double value = std::fabs(act.value) + act.lipschitz * of_z;
          // A platform's exponential is within 4u, too; tanh-GELU's argument is rounded once more.
          const double bound = act.lipschitz * of_z + (4 + 2 * layer::value_units(a, std::fabs(before) + of_z)) * u * value +
                               2 * unit<T> * value + tiny<T>;
          wrong += !(std::fabs(alone[at] - act.value) <= bound);
          wrong += !(std::fabs(with_z[at] - act.value) <= bound);
          wrong += !(std::fabs(actual_z[at] - before) <= of_z + unit<T> * (std::fabs(before) + of_z) + tiny<T>);
        });
    rigel::linear_backward_input(exec, of_dy.view(), of_w.view(), dx.view(), of_z.view(), a,
                                 rigel::LinearOptions{.tier = rigel::Tier::tensor});
    const Values actual = dx.values();
    layer::Product{c.batches, c.m, c.k, c.n}.chains(
        [&](auto l, auto i, auto n) { return dy[(l * c.m + i) * c.n + n]; },
        [&](auto, auto n, auto j) { return w[j * c.n + n]; }, [](auto, auto, auto) { return 0.; },
        [&](std::size_t at, float, double exact, double magnitude) {
          const double factor =
              rigel::activation::with(a, [&]<class A>() { return A::derivative(static_cast<float>(z[at])); });
          const double off = std::fabs(factor) * units_of_sum<T>(c.n) * u * magnitude, value = exact * factor;
          wrong += !(std::fabs(actual[at] - value) <= off + (u + unit<T>)*(std::fabs(value) + off) * 1.01 + tiny<T>);
        });
  }
  CHECK(wrong == 0);
  // All batches' rows into one dW, on top of what it holds.
  if (c.x == Stored::with_gaps || c.x == Stored::by_columns || c.y == Stored::with_gaps || c.y == Stored::by_columns) return;
  const Values before = layer::random<float>(c.k * c.n, seed + 5);
  const Tensor<float, Exec> dw(1, c.k, c.n, Stored::by_rows, "dw", before);
  const auto db = layer::rows<Exec>(1, c.n, bias);
  rigel::linear_backward_weight(exec, of_x.view(), of_dy.view(), dw.view(), db,
                                rigel::LinearOptions{.tier = rigel::Tier::tensor});
  const Values actual = dw.values(), of_db = support::values(db);
  const std::size_t rows = c.batches * c.m;
  const auto within = [&](double value, double exact, double start, double magnitude) {
    const double off = units_of_sum<T>(rows) * u * (magnitude - std::fabs(start));
    wrong += !(std::fabs(value - exact) <= off + u * (std::fabs(exact) + off));
  };
  layer::Product{1, c.k, c.n, rows}.chains(
      [&](auto, auto i, auto m) { return x[m * c.k + i]; }, [&](auto, auto m, auto j) { return dy[m * c.n + j]; },
      [&](auto, auto i, auto j) { return before[i * c.n + j]; },
      [&](std::size_t at, float, double exact, double magnitude) { within(actual[at], exact, before[at], magnitude); });
  layer::Product{1, 1, c.n, rows}.chains(
      [](auto, auto, auto) { return 1.; }, [&](auto, auto m, auto j) { return dy[m * c.n + j]; },
      [&](auto, auto, auto j) { return bias[j]; },
      [&](std::size_t at, float, double exact, double magnitude) { within(of_db[at], exact, bias[at], magnitude); });
  CHECK(wrong == 0);
  check_overwritten<T>(c, of_x.view(), of_dy.view(), exec, x, dy);
}

constexpr Stored rows = Stored::by_rows, columns = Stored::by_columns, gaps = Stored::with_gaps;

}  // namespace

TEST_CASE_TEMPLATE("linear: the tensor tier is within the bound of tensor cores", Exec, RIGEL_TEST_SPACES) {
  if (support::on_host<Exec>) return support::skip("Tier::tensor runs on GPUs");
  std::uint64_t seed = 1;
  for (const Case& c : {Case{1, 5, 7, 9, rows, rows, rows},
                        {1, 1, 128, 64, rows, columns, rows},
                        {3, 17, 6, 21, gaps, rows, columns},
                        {2, 64, 72, 136, rows, rows, rows},
                        {4, 33, 40, 200, rows, columns, rows},
                        {1, 3, 2, 0, rows, rows, rows},
                        {2, 130, 256, 100, columns, columns, gaps},
                        {1, 1, 1, 1, rows, rows, rows},
                        {2, 0, 8, 8, rows, rows, rows}}) {
    CAPTURE(seed);
    check<bfloat16, Exec>(c, seed += 6);
    check<rigel::half, Exec>(c, seed += 6);
  }
  // Floats take tensor cores by default if all three sums are of at least 107 products.
  check<float, Exec>({2, 100, 130, 140, rows, columns, rows}, 1000);
  check<float, Exec>({1, 128, 256, 192, rows, rows, rows}, 1001);
}

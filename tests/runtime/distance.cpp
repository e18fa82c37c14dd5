// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metrics from text in cdist(), against the compiled ones and formulas.
#include "texts.hpp"

#include <rigel/runtime_distance.hpp>

#include <cmath>

using rigel::Scalar, rigel::runtime::Epilogue, rigel::runtime::Metric, rigel::runtime::Semiring;
using texts::Batch, texts::Host, texts::Matrix;

TEST_CASE("text metric: the bits of Manhattan and Euclidean distances, batches, layouts and rows of a view") {
  if (!texts::can_compile()) return;
  const Metric manhattan{Semiring({.multiply = "abs(a - b)", .add = "x + y", .commutative = true})};
  const Metric euclidean{Semiring({.multiply = "(a - b) * (a - b)",
                                   .add = "x + y",
                                   .step = "auto d = a - b; return fma(d, d, x);",
                                   .commutative = true}),
                         Epilogue({.body = "sqrt(x)"})};
  const rigel::CdistOptions exact{.require = rigel::Promise::reference_bits};
  const Batch<float> x("x", 3, 40, 17), d("d", 3, 40, 30), expected("expected", 3, 40, 30);
  const Matrix<float, Kokkos::LayoutLeft> all("all", 60, 17);
  texts::fill(x, 1);
  texts::fill(all, 2);
  const auto z = Kokkos::subview(all, std::pair(11, 41), Kokkos::ALL);
  rigel::cdist(Host{}, x, z, d, manhattan);
  rigel::cdist(Host{}, x, z, expected, rigel::metric::manhattan{}, exact);
  CHECK(texts::different(d, expected) == 0);
  rigel::cdist(Host{}, x, z, d, euclidean);
  rigel::cdist(Host{}, x, z, expected, rigel::metric::euclidean{}, exact);
  CHECK(texts::different(d, expected) == 0);
  rigel::cdist(Host{}, x, z, d, euclidean, {.skip_epilogue = true});
  rigel::cdist(Host{}, x, z, expected, rigel::metric::squared_euclidean{}, exact);
  CHECK(texts::different(d, expected) == 0);
  CHECK(rigel::explain_cdist(Host{}, x, z, d, euclidean).find("* host.text.f32.") != std::string::npos);
  CHECK(rigel::cdist_workspace_size(Host{}, x, z, d, manhattan) > 0);
}

TEST_CASE_TEMPLATE("text metric: on each space", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Metric metric{Semiring({.multiply = "abs(a - b) * p", .add = "x + y", .hyperparameters = {{"p", 2}}}),
                      Epilogue({.body = "x + 1000 * batch + n"})};
  const Batch<float> x("x", 2, 40, 17), z("z", 2, 30, 17), d("d", 2, 40, 30);
  texts::fill(x, 1);
  texts::fill(z, 2);
  const Exec exec;
  rigel::cdist(exec, x, z, d, metric);
  exec.fence();
  int wrong = 0;
  for (int l = 0; l < 2; ++l)
    for (int i = 0; i < 40; ++i)
      for (int j = 0; j < 30; ++j) {
        double sum = 0;  // exact: differences of sixteenths
        for (int k = 0; k < 17; ++k) sum += 2 * std::abs(double(x(l, i, k)) - double(z(l, j, k)));
        wrong += d(l, i, j) != sum + 1000 * l + j;
      }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("text metric: a kernel function of it, with a length in memory for each matrix", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  Epilogue gauss({.argument = Scalar::f64,
                  .body = "exp(-x / (2 * length * length)) + (m == n ? noise : 0)",
                  .hyperparameters = {{"length", 1}, {"noise", 0.5}}});
  const Kokkos::View<double*, texts::Memory> lengths("lengths", 2);
  lengths(0) = 3, lengths(1) = 5;
  gauss.set("length", lengths);
  const Metric metric{
      Semiring({.element = Scalar::f64, .multiply = "(a - b) * (a - b)", .add = "x + y", .commutative = true}), gauss};
  const Batch<double> x("x", 2, 20, 4), d("d", 2, 20, 20);
  texts::fill(x, 3);
  const Exec exec;
  rigel::cdist(exec, x, x, d, metric);
  exec.fence();
  double worst = 0;  // in units of the bound: exponents of 4 sums, an exponential, a sum
  for (int l = 0; l < 2; ++l)
    for (int i = 0; i < 20; ++i)
      for (int j = 0; j < 20; ++j) {
        double sum = 0;
        for (int k = 0; k < 4; ++k) sum += (x(l, i, k) - x(l, j, k)) * (x(l, i, k) - x(l, j, k));
        const double exponent = sum / (2 * lengths(l) * lengths(l)), value = std::exp(-exponent);
        worst = std::max(worst, std::abs(d(l, i, j) - value - (i == j ? 0.5 : 0)) / (0x1p-53 * (4 + 8 * exponent * value)));
      }
  CHECK(worst <= 1);
}

TEST_CASE("text metric: no coordinates, and calls that are refused by the names of cdist()") {
  if (!texts::can_compile()) return;
  const Metric metric{Semiring({.name = "mine", .multiply = "abs(a - b)", .add = "x + y"}), Epilogue({.body = "x + 2"})};
  const Matrix<float> none("none", 3, 0), d("d", 3, 3), x("x", 3, 4), z("z", 3, 5);
  rigel::cdist(Host{}, none, none, d, metric);
  CHECK(d(2, 1) == 2);
  const auto refuses = [&](const auto& call, std::initializer_list<const char*> says) {
    const support::Caught caught = support::caught(call);
    CHECK(caught.code == rigel::Code::invalid_argument);
    CHECK(caught.lacks(says) == "");
  };
  refuses([&] { rigel::cdist(Host{}, x, z, d, metric); }, {"cdist: Z", "4"});
  const Matrix<double> wide("wide", 3, 4), wide_d("wide_d", 3, 3);
  refuses([&] { rigel::cdist(Host{}, wide, x, d, metric); }, {"cdist: X ('wide') holds elements of type f64, expected f32"});
  refuses([&] { rigel::cdist(Host{}, x, x, wide_d, metric); },
          {"cdist: the epilogue 'text' makes elements of type f32", "D ('wide_d')"});
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels and their derivatives in long double, and the gradients of kernel matrices with a-priori bounds of what T computes.
#pragma once

#include "points.hpp"

#include <rigel/kernel_matrix_gradient.hpp>

#include <functional>

namespace kernel_matrix {

using Real = long double;
using Reals = std::vector<Real>;

/// k(v), k'(v), and ∂k/∂θ for each hyperparameter θ of h, of one distance or product v.
struct Slopes {
  std::function<Real(Real, const Reals&)> value, slope;
  std::vector<std::function<Real(Real, const Reals&)>> by;
};

inline const Slopes of_laplace = {[](Real d, const Reals& h) { return std::exp(-d / h[0]); },
                                  [](Real d, const Reals& h) { return -std::exp(-d / h[0]) / h[0]; },
                                  {[](Real d, const Reals& h) { return std::exp(-d / h[0]) * d / (h[0] * h[0]); }}};
inline const Slopes of_gaussian = {
    [](Real d, const Reals& h) { return std::exp(-d * d / (2 * h[0] * h[0])); },
    [](Real d, const Reals& h) { return -d / (h[0] * h[0]) * std::exp(-d * d / (2 * h[0] * h[0])); },
    {[](Real d, const Reals& h) { return d * d / (h[0] * h[0] * h[0]) * std::exp(-d * d / (2 * h[0] * h[0])); }}};
inline const Slopes of_matern32 = {
    [](Real d, const Reals& h) { return (1 + std::sqrt(3.L) * d / h[0]) * std::exp(-std::sqrt(3.L) * d / h[0]); },
    [](Real d, const Reals& h) { return -3 * d / (h[0] * h[0]) * std::exp(-std::sqrt(3.L) * d / h[0]); },
    {[](Real d, const Reals& h) { return 3 * d * d / (h[0] * h[0] * h[0]) * std::exp(-std::sqrt(3.L) * d / h[0]); }}};
inline const Slopes of_matern52 = {[](Real d, const Reals& h) {
                                     const Real u = std::sqrt(5.L) * d / h[0];
                                     return (1 + u + u * u / 3) * std::exp(-u);
                                   },
                                   [](Real d, const Reals& h) {
                                     const Real u = std::sqrt(5.L) * d / h[0];
                                     return -5 * d / (3 * h[0] * h[0]) * (1 + u) * std::exp(-u);
                                   },
                                   {[](Real d, const Reals& h) {
                                     const Real u = std::sqrt(5.L) * d / h[0];
                                     return 5 * d * d / (3 * h[0] * h[0] * h[0]) * (1 + u) * std::exp(-u);
                                   }}};
inline const Slopes of_rational_quadratic = {
    [](Real d, const Reals& h) { return std::pow(1 + d * d / (2 * h[1] * h[0] * h[0]), -h[1]); },
    [](Real d, const Reals& h) { return -d / (h[0] * h[0]) * std::pow(1 + d * d / (2 * h[1] * h[0] * h[0]), -h[1] - 1); },
    {[](Real d, const Reals& h) {
       return d * d / (h[0] * h[0] * h[0]) * std::pow(1 + d * d / (2 * h[1] * h[0] * h[0]), -h[1] - 1);
     },
     [](Real d, const Reals& h) {
       const Real ratio = d * d / (2 * h[1] * h[0] * h[0]), base = 1 + ratio;
       return std::pow(base, -h[1]) * (ratio / base - std::log1p(ratio));
     }}};
/// Degree, scale, offset.
inline const Slopes of_polynomial = {
    [](Real v, const Reals& h) { return std::pow(h[1] * v + h[2], h[0]); },
    [](Real v, const Reals& h) { return h[0] * h[1] * std::pow(h[1] * v + h[2], h[0] - 1); },
    {[](Real v, const Reals& h) { return std::pow(h[1] * v + h[2], h[0]) * std::log(h[1] * v + h[2]); },
     [](Real v, const Reals& h) { return h[0] * v * std::pow(h[1] * v + h[2], h[0] - 1); },
     [](Real v, const Reals& h) { return h[0] * std::pow(h[1] * v + h[2], h[0] - 1); }}};
/// Scale, offset.
inline const Slopes of_sigmoid = {[](Real v, const Reals& h) { return std::tanh(h[0] * v + h[1]); },
                                  [](Real v, const Reals& h) { return h[0] / std::pow(std::cosh(h[0] * v + h[1]), 2.L); },
                                  {[](Real v, const Reals& h) { return v / std::pow(std::cosh(h[0] * v + h[1]), 2.L); },
                                   [](Real v, const Reals& h) { return 1 / std::pow(std::cosh(h[0] * v + h[1]), 2.L); }}};

/// Minkowski's distance for p > 0, or the product for p = 0.
template <class Number>
Real distance(double p, const Number* x, const Number* z, int k) {
  Real sum = 0;
  for (int i = 0; i < k; ++i)
    sum +=
        p == 0 ? static_cast<Real>(x[i]) * z[i] : std::pow(std::fabs(static_cast<Real>(x[i]) - z[i]), static_cast<Real>(p));
  return p == 0 || p == 1 ? sum : std::pow(sum, 1 / static_cast<Real>(p));
}

/// The roundings of a power and what goes with it: on CUDA cores floats take special functions (docs/numerics.md).
template <class T>
inline constexpr double roundings_of_power = std::is_same_v<T, float> ? 120 : 30;

/// The same, and how far that of T may be off.
template <class T>
Bounded bounded_distance(double p, const double* x, const double* z, int k) {
  if (p == 0) return product<T>(x, z, k);
  if (p == 1) return manhattan<T>(x, z, k);
  if (p == 2) return euclidean<T>(x, z, k);
  const Real d = distance(p, x, z, k);
  return {d, (k + roundings_of_power<T>)*unit<T> * d};
}

/// The kernel and metric of a test, with the hyperparameters of one batch.
struct Case {
  double p;
  const Slopes& slopes;
  Reals h;
};

/// A gradient and its bounds.
struct Gradients {
  std::vector<Bounded> x, z, h;
};

/// f at a value that is off by its bound, off by `roundings` units of its own.
template <class T, class F>
Bounded at(const F& f, Bounded v, double roundings) {
  const Real value = f(v.value), low = f(v.value - v.error), high = f(v.value + v.error);
  return {value, 1.01L * std::max(std::fabs(low - value), std::fabs(high - value)) + roundings * unit<T> * std::fabs(value)};
}

/// The gradients of one batch by the formulas. The pass computes in double, and rounds weights once.
template <class T>
Gradients gradients(const Case& c, const double* x, const double* z, const double* g, int m, int n, int k) {
  constexpr double roundings = std::is_same_v<T, float> ? 2 : 64;
  Gradients all{std::vector<Bounded>(m * k), std::vector<Bounded>(n * k), std::vector<Bounded>(c.slopes.by.size())};
  const double of_term = c.p == 0 || c.p == 1 || c.p == 2 ? 3 : roundings_of_power<T>;
  const auto add = [&](Bounded& sum, Real upstream, Bounded weight, Real factor, int count) {
    const Real term = upstream * weight.value * factor;
    sum.value += term;
    sum.error += std::fabs(upstream * factor) * weight.error + (of_term + count) * unit<T> * std::fabs(term);
  };
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const Bounded d = bounded_distance<T>(c.p, x + i * k, z + j * k, k);
      const Real upstream = g[i * n + j];
      const auto weight = [&](Real v) {
        const Real slope = c.slopes.slope(v, c.h);
        return c.p == 0 || c.p == 1 ? slope : slope * std::pow(v, 1 - static_cast<Real>(c.p));
      };
      const Bounded w = at<T>(weight, d, roundings);
      for (int a = 0; a < k; ++a) {
        const Real from = x[i * k + a], to = z[j * k + a], t = from - to;
        const Real power = c.p == 0 ? 0 : std::copysign(std::pow(std::fabs(t), static_cast<Real>(c.p) - 1), t);
        add(all.x[i * k + a], upstream, w, c.p == 0 ? to : power, n);
        add(all.z[j * k + a], upstream, w, c.p == 0 ? from : -power, m);
      }
      // Sums are in double, and rounded once.
      for (std::size_t h = 0; h < all.h.size(); ++h)
        add(all.h[h], upstream, at<T>([&](Real v) { return c.slopes.by[h](v, c.h); }, d, roundings), 1,
            std::is_same_v<T, float> ? 0 : m * n);
    }
  return all;
}

/// How many numbers are off by more than their bound.
inline int off_bounds(const Values& found, const std::vector<Bounded>& expected, std::size_t from = 0) {
  int bad = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(found[from + i] - expected[i].value) <= expected[i].error)) ++bad;
  return bad;
}

/// Calls use(metric, p, make, slopes, h) for every pair of a kernel and a metric; make(a, b, c) is the kernel with these
/// hyperparameters, numbers or views, of which h are numbers for three batches.
template <class Use>
void for_each_pair(const Use& use) {
  const auto of_distances = [&](const auto& metric, double p, double unit_of_length) {
    const auto one = [&](const auto& make, const Slopes& slopes) {
      use(metric, p, make, slopes,
          std::vector<Reals>{{1.5L * unit_of_length}, {Real(unit_of_length)}, {2.25L * unit_of_length}});
    };
    one([](const auto& a, const auto&, const auto&) { return kernel::laplace{a}; }, of_laplace);
    one([](const auto& a, const auto&, const auto&) { return kernel::gaussian{a}; }, of_gaussian);
    one([](const auto& a, const auto&, const auto&) { return kernel::matern12{a}; }, of_laplace);
    one([](const auto& a, const auto&, const auto&) { return kernel::matern32{a}; }, of_matern32);
    one([](const auto& a, const auto&, const auto&) { return kernel::matern52{a}; }, of_matern52);
    use(
        metric, p, [](const auto& a, const auto& b, const auto&) { return kernel::rational_quadratic{a, b}; },
        of_rational_quadratic,
        std::vector<Reals>{{1.5L * unit_of_length, 0.75L}, {Real(unit_of_length), 2}, {2 * unit_of_length, 1.25L}});
  };
  of_distances(metric::euclidean{}, 2, 1);
  of_distances(metric::manhattan{}, 1, 2);
  of_distances(metric::minkowski{1.5}, 1.5, 1.25);
  of_distances(metric::minkowski{3}, 3, 1);
  of_distances(metric::minkowski{2}, 2, 1);
  use(
      metric::inner_product{}, 0, [](const auto& a, const auto& b, const auto& c) { return kernel::polynomial{a, b, c}; },
      of_polynomial, std::vector<Reals>{{3, 0.25L, 3}, {2, 0.125L, 2.5L}, {1.5L, 0.5L, 4}});
  use(
      metric::inner_product{}, 0, [](const auto& a, const auto& b, const auto&) { return kernel::sigmoid{a, b}; },
      of_sigmoid, std::vector<Reals>{{0.25L, 0.5L}, {-0.5L, 0}, {0.75L, -0.25L}});
}

}  // namespace kernel_matrix

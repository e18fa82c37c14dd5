// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random points, and their distances and kernels in long double with a-priori bounds of what T computes (docs/numerics.md).
#pragma once

#include <rigel/kernel_matrix.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/numbers.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kernel_matrix {

namespace kernel = rigel::kernel;
namespace metric = rigel::metric;
using Values = std::vector<double>;

using support::unit;

/// Numbers in [−1, 1] that T holds exactly.
template <class T>
Values random_points(int count, int k, std::uint64_t seed) {
  support::Random random(seed);
  return support::random_numbers<T>(random, std::int64_t{count} * k);
}

/// A view of rank 1, or of rank 0, with given numbers.
template <class Exec>
auto numbers(const Values& values) {
  const Kokkos::View<double*, typename Exec::memory_space> v("numbers", values.size());
  support::fill(v, values);
  return v;
}
template <class Exec>
auto number(double value) {
  const Kokkos::View<double, typename Exec::memory_space> v("number");
  support::fill(v, {value});
  return v;
}

/// cdist() of x and z, rows of k numbers of T, into doubles.
template <class T, class Exec, class M>
Values distances(const Values& x, const Values& z, int k, const M& metric, const rigel::CdistOptions& options = {}) {
  const int m = static_cast<int>(x.size()) / k, n = static_cast<int>(z.size()) / k;
  const auto d = support::matrix<double, Exec>(m, n);
  rigel::cdist(Exec(), support::matrix<T, Exec>(m, k, x), support::matrix<T, Exec>(n, k, z), d, metric, options);
  return support::values(d);
}

/// The largest error relative to expected numbers, absolute where they are 0; infinite where only one of both is NaN, or infinite.
inline double error_of(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (support::same(found[i], expected[i])) continue;
    const double error = std::fabs(found[i] - expected[i]) / (expected[i] == 0 ? 1 : std::fabs(expected[i]));
    worst = error <= worst ? worst : std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return worst;
}

/// Calls call(family) for each family of kernels, whose Errors say that it has none for the call; one has.
template <class Call>
void with_each_family(const Call& call) {
  int families = 0;
  for (const char* family : {"reference", "portable", "host", "cuda.simt", "cuda.mma"}) {
    const support::Caught caught = support::caught([&] { call(family); });
    const bool has_none = caught.code == rigel::Code::not_found || caught.code == rigel::Code::unsupported;
    CHECK_MESSAGE((caught.code == rigel::Code::ok || has_none), caught.message);
    families += caught.code == rigel::Code::ok;
  }
  CHECK(families >= 1);
}

/// A number and how far a computed one may be off.
struct Bounded {
  long double value, error;
};

template <class T>
Bounded manhattan(const double* x, const double* z, int k) {
  long double sum = 0;
  for (int i = 0; i < k; ++i) sum += std::fabs(static_cast<long double>(x[i]) - z[i]);
  return {sum, (k + 2) * unit<T> * sum};
}

/// The wider one of two bounds: that of a chain and a root, and that of tensor cores.
template <class T>
Bounded euclidean(const double* x, const double* z, int k) {
  long double sum = 0;
  for (int i = 0; i < k; ++i) sum += std::pow(static_cast<long double>(x[i]) - z[i], 2);
  const long double d = std::sqrt(sum);
  return {d, d * ((k + 4) * unit<T> + (std::is_same_v<T, float> ? 1.01e-5 : (200 + 17 * k) * unit<T>))};
}

template <class T>
Bounded product(const double* x, const double* z, int k) {
  long double sum = 0, magnitude = 0;
  for (int i = 0; i < k; ++i) {
    sum += static_cast<long double>(x[i]) * z[i];
    magnitude += std::fabs(static_cast<long double>(x[i]) * z[i]);
  }
  return {sum, (k + 2) * unit<T> * magnitude};
}

/// A function of a computed distance that falls with it, itself off by `roundings` units of its value.
template <class T, class F>
Bounded falling(const F& f, Bounded d, double roundings) {
  const long double value = f(d.value);
  return {value, f(std::max(d.value - d.error, 0.L)) - f(d.value + d.error) + roundings * unit<T> * value +
                     std::numeric_limits<T>::min()};
}

/// The kernels. Arguments of exponentials are rounded up to four times, powers are off by few units for each unit of their exponent.
template <class T>
Bounded laplace(Bounded d, double length) {
  return falling<T>([=](long double v) { return std::exp(-v / length); }, d, 8 + 4 * static_cast<double>(d.value) / length);
}
template <class T>
Bounded gaussian(Bounded d, double width) {
  const auto argument = [=](long double v) { return v * v / (2 * width * static_cast<long double>(width)); };
  return falling<T>([=](long double v) { return std::exp(-argument(v)); }, d,
                    8 + 4 * static_cast<double>(argument(d.value)));
}
template <class T>
Bounded matern32(Bounded d, double length) {
  const auto argument = [=](long double v) { return std::sqrt(3.L) * v / length; };
  return falling<T>([=](long double v) { return (1 + argument(v)) * std::exp(-argument(v)); }, d,
                    12 + 4 * static_cast<double>(argument(d.value)));
}
template <class T>
Bounded matern52(Bounded d, double length) {
  const auto argument = [=](long double v) { return std::sqrt(5.L) * v / length; };
  return falling<T>(
      [=](long double v) { return (1 + argument(v) + argument(v) * argument(v) / 3) * std::exp(-argument(v)); }, d,
      12 + 4 * static_cast<double>(argument(d.value)));
}
/// exp(−t), t = alpha·ln(1 + r), r = d²/(2·alpha·length²): seven roundings of r change t by alpha·r/(1 + r) each, alpha, the logarithm
/// and their product are four of t.
template <class T>
Bounded rational_quadratic(Bounded d, double length, double alpha) {
  const auto ratio = [=](long double v) { return v * v / (2.L * alpha * length * length); };
  const auto argument = [=](long double v) { return alpha * std::log1p(ratio(v)); };
  const long double r = ratio(d.value);
  return falling<T>([=](long double v) { return std::exp(-argument(v)); }, d,
                    static_cast<double>(8 + 7 * alpha * r / (1 + r) + 4 * argument(d.value)));
}
/// scale·v + offset: two roundings.
template <class T>
Bounded affine(Bounded v, double scale, double offset) {
  const long double value = scale * v.value + offset;
  return {value,
          std::fabs(scale) * v.error * (1 + 2 * unit<T>)+2 * unit<T> * (std::fabs(scale * v.value) + std::fabs(offset))};
}
template <class T>
Bounded polynomial(Bounded v, double degree, double scale, double offset) {
  const Bounded base = affine<T>(v, scale, offset);
  const long double value = std::pow(base.value, static_cast<long double>(degree));
  return {value, degree * std::pow(std::fabs(base.value) + base.error, static_cast<long double>(degree) - 1) * base.error +
                     (16 + 16 * degree) * unit<T> * std::fabs(value)};
}
template <class T>
Bounded sigmoid(Bounded v, double scale, double offset) {
  const Bounded base = affine<T>(v, scale, offset);
  return {std::tanh(base.value), base.error + 4 * unit<T>};  // |tanh′| ≤ 1
}

}  // namespace kernel_matrix

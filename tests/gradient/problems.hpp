// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random gradients in any layout, and their sums in double by plain loops.
#pragma once

#include <rigel/gradient.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/numbers.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace gradient {

using support::Numbers, support::batch_of, support::get, support::number, support::put, support::random_numbers,
    support::unit;

/// Outputs of a batch, a view of rank 4, in a layout; LayoutStride as in batch_of().
template <class T, class Exec, class Layout>
auto outputs_of(int batches, int outputs, int rows, int columns) {
  using Space = typename Exec::memory_space;
  if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride>)
    return Kokkos::subview(
        Kokkos::View<T******, Kokkos::LayoutRight, Space>("larger", batches, outputs, rows, 2, columns, 3), Kokkos::ALL,
        Kokkos::ALL, Kokkos::ALL, 1, Kokkos::ALL, 2);
  else
    return Kokkos::View<T****, Layout, Space>("outputs", batches, outputs, rows, columns);
}

struct Extents {
  int batch, outputs, n, m, k;
};

/// The inputs of a problem, row by row; an input with one matrix serves all batches.
struct Inputs {
  Extents e;
  Numbers a, b, c, d;
  double at(const Numbers& v, int l, int i, int j, int rows, int columns) const {
    const std::size_t one = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    return v[(v.size() == one ? 0 : static_cast<std::size_t>(l) * one) + static_cast<std::size_t>(i * columns + j)];
  }
  double weight(int l, int k, int m) const { return at(a, l, k, m, e.k, e.m); }
  double known(int l, int n, int k) const { return at(b, l, n, k, e.n, e.k); }
  double coefficient(int l, int o, int k) const { return at(c, l, o, k, e.outputs, e.k); }
  double point(int l, int n, int m) const { return at(d, l, n, m, e.n, e.m); }
};

template <class T>
Inputs random_inputs(support::Random& random, const Extents& e) {
  const auto numbers = [&](int rows, int columns) {
    return random_numbers<T>(random, std::int64_t{e.batch} * rows * columns);
  };
  return {e, numbers(e.k, e.m), numbers(e.n, e.k), numbers(e.outputs, e.k), numbers(e.n, e.m)};
}

/// Σ_k c·a·sign(t)·|t|^(p−1) of all outputs, and Σ_k of the terms' magnitudes. Differences below epsilon, and 0, count as 0.
/// `of_points`: Σ_k |c·a|·(|d − mean| + |b − mean|) with the mean of b over all k, by which products of points are measured (p = 2).
struct Sums {
  Numbers values, sizes, of_points;
  const Numbers& sizes_of(const rigel::KernelInfo& info) const {
    return rigel::detail::is_of_points(info) ? of_points : sizes;
  }
};
template <class Power>
Sums sums_of(const Inputs& in, const Power& power, double epsilon = 0) {
  Sums sums;
  for (int l = 0; l < in.e.batch; ++l)
    for (int o = 0; o < in.e.outputs; ++o)
      for (int n = 0; n < in.e.n; ++n)
        for (int m = 0; m < in.e.m; ++m) {
          double sum = 0, size = 0, of_points = 0, mean = 0;
          for (int k = 0; k < in.e.k; ++k) mean += in.known(l, n, k) / in.e.k;
          for (int k = 0; k < in.e.k; ++k) {
            const double t = in.point(l, n, m) - in.known(l, n, k);
            const double weight = in.coefficient(l, o, k) * in.weight(l, k, m);
            if (std::isfinite(weight))
              of_points += std::abs(weight) * (std::abs(in.point(l, n, m) - mean) + std::abs(in.known(l, n, k) - mean));
            if (t == 0 || std::abs(t) < epsilon) continue;
            const double term = weight * std::copysign(std::pow(std::abs(t), power(l) - 1), t);
            sum += term;
            size += std::abs(term);
          }
          sums.values.push_back(sum);
          sums.sizes.push_back(size);
          sums.of_points.push_back(of_points);
        }
  return sums;
}

/// The largest |actual − value| over its bound, (units·u + (K + 4)·2^-53)·size, where the last term is that of the sums in double.
inline double worst_ratio(const Numbers& actual, const Sums& sums, const Numbers& sizes, double units, double u, int k) {
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] - sums.values[i]);
    const double bound = (units * u + (k + 4) * 0x1p-53) * sizes[i];
    const double ratio = error == 0 ? 0 : error / bound;
    worst = support::larger(worst, ratio);
  }
  return worst;
}

inline double worst_ratio(const Numbers& actual, const Sums& sums, double units, double u, int k) {
  return worst_ratio(actual, sums, sums.sizes, units, u, k);
}

/// The kernels of a functor that run on Exec, by name.
template <class G, class Exec>
std::vector<std::string> kernels_of() {
  std::vector<std::string> names;
  for (const rigel::KernelInfo& info : rigel::kernels({.operation = "gradient",
                                                       .semiring = G::name,
                                                       .element = rigel::scalar_of<typename G::element>,
                                                       .spaces = rigel::bit(rigel::detail::space_of<Exec>)}))
    names.push_back(info.name);
  return names;
}

/// The candidate of a problem's kernel by name, if it covers the problem.
inline const rigel::Kernel<rigel::Gradient>* covering(const rigel::Gradient& problem, const std::string& name) {
  for (const auto& candidate : rigel::candidates(problem))
    if (candidate.kernel->info.name == name && candidate.status) return candidate.kernel;
  return nullptr;
}

}  // namespace gradient

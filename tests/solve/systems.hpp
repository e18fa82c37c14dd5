// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random batches of systems in any layout, and what the tests measure of their solutions, in double.
#pragma once

#include <rigel/linalg.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/numbers.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace solve {

using support::Numbers, support::batch_of, support::get, support::put, support::random_numbers, support::unit;

/// γ_k = k·u / (1 − k·u) (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1).
template <class T>
double gamma(double k) {
  return k * unit<T> / (1 - k * unit<T>);
}

/// Symmetric positive definite: M·Mᵀ/n + 1/4.
template <class T>
Numbers random_definite(support::Random& random, int n) {
  const Numbers m = random_numbers<T>(random, std::int64_t{n} * n);
  Numbers a(m.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) {
      double sum = i == j ? 0.25 : 0;
      for (int k = 0; k < n; ++k) sum += m[i * n + k] * m[j * n + k] / n;
      a[i * n + j] = a[j * n + i] = static_cast<T>(sum);
    }
  return a;
}

template <class T>
Numbers random_symmetric(support::Random& random, int n) {
  Numbers a = random_numbers<T>(random, std::int64_t{n} * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j) a[j * n + i] = a[i * n + j];
  return a;
}

/// One matrix of a batch.
inline Numbers part(const Numbers& all, int l, int size) {
  return Numbers(all.begin() + std::ptrdiff_t{l} * size, all.begin() + (std::ptrdiff_t{l} + 1) * size);
}

/// The largest |A·X − B| over its bound, `scale`·bound(i,k)·|X|: at most 1 if X keeps the bound.
inline double residual(const Numbers& a, const Numbers& x, const Numbers& b, int n, int m, const Numbers& bound,
                       double scale) {
  double worst = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) {
      double rest = b[i * m + j], most = 0;
      for (int k = 0; k < n; ++k) {
        rest -= a[i * n + k] * x[k * m + j];
        most += bound[i * n + k] * std::abs(x[k * m + j]);
      }
      const double ratio = rest == 0 ? 0 : std::abs(rest) / (scale * most);
      worst = support::larger(worst, ratio);
    }
  return worst;
}

/// |L||Lᵀ| ≤ √(a_ii·a_jj) / (1 − γ_{n+1}): for Cholesky's factor of A (Higham, proof of theorem 10.4).
template <class T>
Numbers factor_bound(const Numbers& a, int n) {
  Numbers bound(a.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) bound[i * n + j] = std::sqrt(a[i * n + i] * a[j * n + j]) / (1 - gamma<T>(n + 4));
  return bound;
}

/// Pᵀ|L||U| of A by elimination with partial pivoting in double, twice: nearly equal pivots may be chosen otherwise.
inline Numbers elimination_bound(Numbers a, int n) {
  std::vector<int> row;
  for (int i = 0; i < n; ++i) row.push_back(i);
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    std::swap(row[k], row[pivot]);
    for (int j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
    for (int i = k + 1; i < n; ++i) {
      a[i * n + k] /= a[k * n + k];
      for (int j = k + 1; j < n; ++j) a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
  }
  Numbers bound(a.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k <= std::min(i, j); ++k)
        bound[row[i] * n + j] += 2 * (k == i ? 1 : std::abs(a[i * n + k])) * std::abs(a[k * n + j]);
  return bound;
}

/// ‖A − V·diag(w)·Vᵀ‖_F / (n·ε·‖A‖_F) and ‖VᵀV − 1‖_F / (n·ε), whichever is larger: what LAPACK's tests of eigenvectors measure and
/// require to be below 50 (E. Anderson et al., LAPACK Working Note 41, section 6.3 and its sep.in).
template <class T>
double eigen_error(const Numbers& a, const Numbers& w, const Numbers& v, int n) {
  double norm = 0, residual = 0, orthogonality = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double rest = a[i * n + j], product = i == j ? -1 : 0;
      norm += rest * rest;
      for (int k = 0; k < n; ++k) {
        rest -= v[i * n + k] * w[k] * v[j * n + k];
        product += v[k * n + i] * v[k * n + j];
      }
      residual += rest * rest;
      orthogonality += product * product;
    }
  const double one = n * std::numeric_limits<T>::epsilon();
  return std::max(std::sqrt(residual / norm), std::sqrt(orthogonality)) / one;
}
/// A fifth of that here: rotations by rounded cosines, which stretch vectors, would pass the threshold of 50 up to n = 250.
inline constexpr double eigen_threshold = 10;

/// The kernels of a factorisation and type that run on Exec, by name.
template <class T, class Exec>
std::vector<std::string> kernels_of(rigel::Factorisation f) {
  std::vector<std::string> names;
  for (const rigel::KernelInfo& info : rigel::kernels({.operation = "solve",
                                                       .semiring = name(f),
                                                       .element = rigel::scalar_of<T>,
                                                       .spaces = rigel::bit(rigel::detail::space_of<Exec>)}))
    names.push_back(info.name);
  return names;
}

/// Whether the kernel that the problem names covers it; a call would throw otherwise.
inline bool covered(const rigel::Solve& problem) {
  for (const auto& candidate : rigel::candidates(problem))
    if (candidate.kernel->info.name == problem.kernel) return static_cast<bool>(candidate.status);
  return false;
}

}  // namespace solve

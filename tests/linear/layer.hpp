// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of the linear layer share: batches of matrices whose strides are chosen at run time, and the chains of
// Tier::scalar in plain C++.
#pragma once

#include <rigel/linear.hpp>

#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace layer {

using rigel::Activation;
using Values = std::vector<double>;  // in the order (l, m, n)
inline constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                             Activation::silu};

enum class Stored { by_rows, by_columns, with_gaps };

/// A batch of matrices; gaps hold 7.
template <class T, class Exec>
class Tensor {
  using Space = typename Exec::memory_space;

 public:
  using View = Kokkos::View<T***, Kokkos::LayoutStride, Space>;

  Tensor(std::size_t l, std::size_t m, std::size_t n, Stored stored, const std::string& label)
      : l_(l), m_(m), n_(n), stored_(stored), memory_(label, l * batch_stride() + 1) {
    Kokkos::deep_copy(memory_, T(7));
  }
  Tensor(std::size_t l, std::size_t m, std::size_t n, Stored stored, const std::string& label, const Values& values)
      : Tensor(l, m, n, stored, label) {
    set(values);
  }

  View view() const {
    return View(memory_.data(), Kokkos::LayoutStride(l_, batch_stride(), m_, row_stride(), n_, column_stride()));
  }
  void set(const Values& values) {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, memory_);
    for_each([&](std::size_t at, std::size_t in_memory) { host(in_memory) = support::number<T>(values[at]); });
    Kokkos::deep_copy(memory_, host);
  }
  /// Its elements. It waits for all work.
  Values values() const {
    Kokkos::fence();
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, memory_);
    Values list(l_ * m_ * n_);
    for_each([&](std::size_t at, std::size_t in_memory) { list[at] = support::to_double(host(in_memory)); });
    return list;
  }

 private:
  std::size_t row_stride() const { return stored_ == Stored::by_rows ? n_ : stored_ == Stored::by_columns ? 1 : 2 * n_ + 3; }
  std::size_t column_stride() const { return stored_ == Stored::by_rows ? 1 : stored_ == Stored::by_columns ? m_ : 2; }
  std::size_t batch_stride() const { return stored_ == Stored::with_gaps ? m_ * (2 * n_ + 3) + 5 : m_ * n_; }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t l = 0; l < l_; ++l)
      for (std::size_t i = 0; i < m_; ++i)
        for (std::size_t j = 0; j < n_; ++j)
          visit((l * m_ + i) * n_ + j, l * batch_stride() + i * row_stride() + j * column_stride());
  }

  std::size_t l_, m_, n_;
  Stored stored_;
  Kokkos::View<T*, Space> memory_;
};

/// N numbers for each batch, or for all.
template <class Exec>
Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> rows(std::size_t l, std::size_t n,
                                                                             const Values& values) {
  return support::matrix<float, Exec>(static_cast<int>(l), static_cast<int>(n), values, "bias");
}

/// Random numbers in [−2, 2], as T holds them.
template <class T>
Values random(std::size_t count, std::uint64_t seed) {
  support::Random random(seed);
  Values list;
  while (list.size() < count) list.push_back(support::to_double(support::number<T>(random.uniform(-2, 2))));
  return list;
}

/// A value rounded once to T.
template <class T>
double rounded(float v) {
  return support::to_double(support::number<T>(v));
}

/// The matrix product of one batch, or of each: element (l, i, j) is the chain of fma over x(l,i,k)·w(l,k,j), k ascending, from
/// start(l, i, j) on.
struct Product {
  std::size_t batches, m, n, k;
  template <class X, class W, class Start, class Use>
  void chains(const X& x, const W& w, const Start& start, const Use& use) const {
    for (std::size_t l = 0; l < batches; ++l)
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          float chain = static_cast<float>(start(l, i, j));
          double exact = start(l, i, j), magnitude = std::fabs(exact);
          for (std::size_t kk = 0; kk < k; ++kk) {
            const double a = x(l, i, kk), b = w(l, kk, j);
            chain = std::fma(static_cast<float>(a), static_cast<float>(b), chain);
            exact += a * b;
            magnitude += std::fabs(a * b);
          }
          use((l * m + i) * n + j, chain, exact, magnitude);
        }
  }
};

/// The value of an activation at z, its derivative, and a bound of |derivative|, in double.
struct Exact {
  double value, derivative, lipschitz;
};
inline Exact exact(Activation a, double z) {
  const auto logistic = [](double q) { return 1 / (1 + std::exp(-q)); };
  switch (a) {
    case Activation::relu: return {z < 0 ? 0 : z, z > 0 ? 1. : 0., 1};
    case Activation::gelu: {
      const double normal = std::erfc(-z * std::sqrt(0.5)) / 2, density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
      return {z * normal, normal + z * density, 1.13};
    }
    case Activation::gelu_tanh: {
      const double scale = 2 * std::sqrt(2 / M_PI), q = scale * (z + 0.044715 * z * z * z), s = logistic(q);
      return {z * s, s + z * scale * (1 + 3 * 0.044715 * z * z) * s * logistic(-q), 1.13};
    }
    case Activation::silu: return {z * logistic(z), logistic(z) + z * logistic(z) * logistic(-z), 1.1};
    default: return {z, 1, 1};
  }
}

/// How far the computed value may be from the exact one, and the derivative, in units of u (rigel/activation.hpp: each operation rounds
/// once, the exponential is within 4u, and rounding its argument by δ changes it by δ of itself).
inline double value_units(Activation a, double z) {
  const double q = std::fabs(2 * std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z));
  switch (a) {
    case Activation::gelu: return 14 + z * z;
    case Activation::gelu_tanh: return 12 + 5 * q;
    case Activation::silu: return 10;
    default: return 0;
  }
}

/// A digest of values as floats, of which zeros of either sign count as one (FNV-1a).
inline std::uint64_t digest(const Values& values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const double v : values) {
    const auto bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(v) + 0.f);
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ ((bits >> (8 * byte)) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace layer

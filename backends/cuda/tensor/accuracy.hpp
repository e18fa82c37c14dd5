// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A-priori bounds of sums on tensor cores.
#pragma once

#include <rigel/backends/cuda/tensor/decomposition.hpp>
#include <rigel/registry.hpp>

namespace rigel::backends::tensor {

/// The a-priori bound of sums by mma.sync into f32. An instruction aligns its accumulator and a block of n ≥ 4 exact
/// products to the largest of them, truncates each at 2^-23 of it or later, and so their sum (M. Fasi, N. J. Higham, M.
/// Mikaitis, S. Pranesh, Numerical behavior of NVIDIA tensor cores, 2021): at most (n + 2)·2u of Σ|a·b|, 3u for each
/// product. `terms`: products per instruction, absent ones included. `products`: instructions in which an element takes
/// part. `rounding`: of the operands, relative to a product, in u.
constexpr Accuracy truncating_accuracy(int terms, int products = 1, double rounding = 0) {
  const double of_term = 3.0 * products;
  return {of_term * terms + 2 + rounding, of_term};
}

/// The error of a product of two operands truncated to 11 bits, in u.
inline constexpr double cut_to_tf32 = 2 * 0x1p14 + 0x1p4;

/// The bound of sums in f32 by instructions of `terms` products. `rounding`: of a product of undivided elements, in u.
///
/// What a product of divided elements loses, relative to it: in two parts of tf32 2^-20 with the product of both rests, and two
/// bits of each rest; of three planes x₁y₂ and x₂y₁, at most 2^-25 each, and x₂y₂; of two planes x₁y₁, 2^-16, and 2^-17 of
/// each of x and y; with nine products nothing. If sums are promoted, the products of both first planes come last. The others,
/// each about 2^-8 of Σ|x·y| at most and all together little more than 2^-7, are truncated while nothing larger is in the
/// sum.
constexpr Accuracy accuracy_of(Decomposition d, int terms, double rounding = 0) {
  const double lost = d.products == 1   ? rounding
                      : d.planes == 1   ? 16 + 2 * 6
                      : d.products == 9 ? 0
                      : d.planes == 3   ? 1 + 0x1p-8
                                        : 0x1p9 + 2;
  if (d.promoted == 0) return truncating_accuracy(terms, d.products, lost);
  const double of_term = d.planes == 1 ? truncating_accuracy(terms, d.products).per_term
                                       : truncating_accuracy(terms).per_term * (1 + (d.products + 2) * 0x1p-7);
  return {d.promoted * of_term + 2 + lost, 1.0 / d.promoted};
}

}  // namespace rigel::backends::tensor

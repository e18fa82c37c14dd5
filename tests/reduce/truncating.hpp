// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of products as tensor cores form them, and the chain of a squared distance, for tests without a GPU.
#pragma once

#include <rigel/semirings.hpp>

#include <algorithm>
#include <cmath>

namespace reduced {

/// The squared distance of two rows in the order of the reference.
inline float chain(const float* x, const float* z, int k) {
  float sum = 0;
  for (int i = 0; i < k; ++i) sum = rigel::l2_squared<float>::step(sum, x[i], z[i]);
  return sum;
}

/// A sum of products as a tensor core forms it: each is cut at 2^-23 of the largest of them and of the sum so far, and so is the sum.
inline float truncating_sum(float sum, const float* a, const float* b, int count) {
  double terms[17] = {sum}, largest = std::abs(sum);
  for (int i = 0; i < count; ++i) {
    terms[i + 1] = static_cast<double>(a[i]) * b[i];
    largest = std::max(largest, std::abs(terms[i + 1]));
  }
  if (largest == 0) return 0;
  const auto cut = [](double v, int exponent) {
    return std::ldexp(std::trunc(std::ldexp(v, 23 - exponent)), exponent - 23);
  };
  double all = 0;
  for (int i = 0; i <= count; ++i) all += cut(terms[i], std::ilogb(largest));
  return static_cast<float>(all == 0 ? 0 : cut(all, std::ilogb(all)));
}

}  // namespace reduced

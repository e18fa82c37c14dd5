// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What src/runtime and a backend tell each other about monoids from text.
#pragma once

#include <rigel/registry.hpp>

#include <cstdint>
#include <memory>

namespace rigel::detail {

/// A monoid from text, compiled. A row of scores has the states of `lanes` (rigel/detail/reduction.hpp) chains, number n in that of lane
/// n mod lanes.
struct TextMonoid {
  /// Joins the states of a row with `count` scores, those of n to n + count - 1, n a multiple of the lanes, but for number `left_out`. If
  /// `is_first`, the states are made first.
  void (*add)(const void* scores, std::int64_t count, std::int64_t n, std::int64_t left_out, bool is_first, void* states,
              const void* parameters) = nullptr;
  /// Joins the states of a row, and writes what `result` makes of theirs: a number of type `type`.
  void (*finish)(const void* states, void* to, const void* parameters) = nullptr;
  std::shared_ptr<const void> code;
  Scalar type = Scalar::f32;
  std::size_t state_bytes = 0;   // of a row
  std::size_t number_bytes = 0;  // of a hyperparameter; a Reduction's monoid points to their TextValues
};

}  // namespace rigel::detail

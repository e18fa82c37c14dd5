// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What reduce() by strips knows of a row of scores, on every space.
#pragma once

#include <rigel/detail/reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rigel::backends::portable {

constexpr bool finds_one(Reducer r) { return r == Reducer::minimum || r == Reducer::maximum; }
constexpr bool finds_many(Reducer r) { return r == Reducer::smallest || r == Reducer::largest; }
constexpr bool counts(Reducer r) { return r == Reducer::count_below || r == Reducer::all_below; }
constexpr bool finds_largest(Reducer r) { return r == Reducer::maximum || r == Reducer::largest; }

template <class T, Reducer reducer>
using LaneOf = std::conditional_t<reducer == Reducer::log_sum_exp, detail::LaneExponentials<T>, detail::LaneSum<T>>;

/// What both ways know of a call.
template <class T, Reducer reducer>
struct Reduced {
  static constexpr bool largest = finds_largest(reducer);
  using Found = detail::Found<T>;
  using Lane = LaneOf<T, reducer>;

  detail::ReducedOutputs outputs;
  detail::Below<T> below;
  std::int64_t count;
  bool exclude_self;
  detail::Strip strip;
  const T* scores;
  std::byte* states;        // of the strip's rows,
  std::size_t state_bytes;  // so many for each
  detail::Bins bins = {};

  /// Bytes that a row keeps from one chunk to the next, if a work item reduces it.
  static std::size_t bytes(std::int64_t count) {
    if constexpr (finds_one(reducer))
      return sizeof(Found);
    else if constexpr (finds_many(reducer))
      return sizeof(Found) * static_cast<std::size_t>(count);
    else if constexpr (counts(reducer))
      return sizeof(std::int64_t);
    else if constexpr (reducer == Reducer::histogram)
      return sizeof(std::int64_t) * static_cast<std::size_t>(count);
    else
      return sizeof(Lane) * detail::lanes;
  }

  RIGEL_MEMBER std::int64_t matrix(std::int64_t r) const { return strip.l + r / strip.rows; }
  RIGEL_MEMBER std::int64_t row(std::int64_t r) const { return strip.m + r % strip.rows; }
  RIGEL_MEMBER const T* scores_of(std::int64_t r) const { return scores + r * strip.pitch; }
  template <class State>
  RIGEL_MEMBER State* state_of(std::int64_t r) const {
    return reinterpret_cast<State*>(states + static_cast<std::size_t>(r) * state_bytes);
  }
  /// The column of the strip that row r leaves out, or −1.
  RIGEL_MEMBER std::int64_t self_of(std::int64_t r) const {
    const std::int64_t self = row(r) - strip.n;
    return exclude_self && self >= 0 && self < strip.columns ? self : -1;
  }
  /// Whether a score may become one of the k best, of which `last` is the last, and all of which have smaller n.
  RIGEL_MEMBER static bool enters(T score, Found last) {
    return last.n < 0 || detail::value_precedes<largest>(score, last.value);
  }
};

}  // namespace rigel::backends::portable

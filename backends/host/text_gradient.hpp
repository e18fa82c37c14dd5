// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's loop of contract_gradient() for functors that are known at run time only: a functor whose operations are declared functions.
// The loop becomes LLVM bitcode when Rigel is built (text_gradient.cpp.in); src/runtime defines the functions from a text.
#pragma once

#include <rigel/backends/host/gradient_work.hpp>
#include <rigel/backends/host/lanes.hpp>
#include <rigel/detail/text_gradient.hpp>

namespace rigel::backends::host {

/// A functor from text. Only the bitcode defines its functions, by calls of what the text says; elsewhere they are never called.
template <class Level, class Element>
struct TextFunctor {
  using element = Element;
  using accumulator = accumulator_for<Element>;
  static constexpr const char* name = "text";
  using Row = vector<accumulator, Level::vector_bytes / static_cast<int>(sizeof(accumulator))>;
  const accumulator* parameters;  // of the first batch
  std::int64_t stride;            // from batch to batch

  RIGEL_MEMBER TextFunctor at(std::int64_t l) const { return {parameters + l * stride, 0}; }
  RIGEL_MEMBER static accumulator identity();
  RIGEL_MEMBER Row multiply(Row d, Row b, Row a) const;
  RIGEL_MEMBER Row accumulate(Row x, Row c, Row v) const;
  RIGEL_MEMBER accumulator result(accumulator x) const;
};

/// Tells whether the library and the loop agree on what passes between them.
template <class Level, class G>
inline constexpr std::uint64_t text_gradient_layout =
    std::uint64_t{sizeof(detail::GradientArguments<G>)} << 32 | std::uint64_t{sizeof(GradientGrid)} << 16 |
    std::uint64_t{Level::registers};

}  // namespace rigel::backends::host

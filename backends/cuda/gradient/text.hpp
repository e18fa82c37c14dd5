// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of cuda.gradient for functors that are known at run time only: a functor whose operations are declared functions, and which
// kernels it has. They become LLVM bitcode for NVPTX when Rigel is built (text.cpp.in). src/runtime defines the functions from a text, and
// compiles the one kernel that a call needs.
#pragma once

#include <rigel/backends/cuda/gradient/kernel.hpp>
#include <rigel/backends/cuda/text_lists.hpp>
#include <rigel/detail/text.hpp>

namespace rigel::backends::gradient {

using detail::most_text_parameters;

/// A functor from text with the values of its hyperparameters. Only the bitcode defines its functions, by calls of what the text says;
/// elsewhere they are never called. `calls`: it calls powers or other functions of dozens of instructions.
template <class Element, bool calls>
struct TextFunctor {
  using element = Element;
  using accumulator = accumulator_for<Element>;
  static constexpr const char* name = "text";
  accumulator numbers[most_text_parameters];
  const accumulator* memory[most_text_parameters];  // null: a number
  std::int64_t stride[most_text_parameters];        // of memory, from batch to batch

  RIGEL_MEMBER TextFunctor at(std::int64_t l) const {
    TextFunctor one = *this;
#pragma unroll
    for (int i = 0; i < most_text_parameters; ++i)
      if (memory[i]) one.numbers[i] = memory[i][l * stride[i]];
    return one;
  }
  RIGEL_MEMBER static accumulator identity();
  RIGEL_MEMBER accumulator multiply(accumulator d, accumulator b, accumulator a) const;
  RIGEL_MEMBER accumulator accumulate(accumulator x, accumulator c, accumulator v) const;
  RIGEL_MEMBER accumulator add(accumulator x, accumulator y) const;
  RIGEL_MEMBER accumulator result(accumulator x) const;
};

}  // namespace rigel::backends::gradient

namespace rigel::detail {
template <class Element>
inline constexpr bool takes_powers<backends::gradient::TextFunctor<Element, true>> = true;
}  // namespace rigel::detail

namespace rigel::backends::gradient {

/// Where the tile of a cut stands in the bitcode's table, and the kernel that joins slices: those of short texts come first, and of each the
/// tiles in the order of Cuts, then the join.
template <class... All>
constexpr int count_of(type_list<All...>) {
  return sizeof...(All);
}
template <class G>
inline constexpr int text_kernel_count = count_of(Cuts<G>{}) + 1;
template <class G>
inline constexpr int first_text_kernel =
    detail::takes_powers<G> ? text_kernel_count<TextFunctor<typename G::element, false>> : 0;
template <class G, class C>
inline constexpr int text_tile = first_text_kernel<G> + cuda::text_place<C>(Cuts<G>{});
template <class G>
inline constexpr int text_join = first_text_kernel<G> + count_of(Cuts<G>{});

/// Tells whether the library and the bitcode of an element type agree on what passes between them.
template <class G>
inline constexpr std::uint64_t text_layout = std::uint64_t{sizeof(detail::GradientArguments<G>)} << 32 |
                                             std::uint64_t{sizeof(Grid)} << 16 | std::uint64_t{sizeof(Marks)};

}  // namespace rigel::backends::gradient

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues that are known at run time only, in the tiles of tensor cores: a functor that calls a declared function. The tiles become LLVM
// bitcode for NVPTX when Rigel is built ({mma,hopper}/text.cpp.in). src/runtime defines the function from a text, and compiles the one
// kernel that a call needs.
#pragma once

#include <rigel/backends/cuda/text_code.hpp>
#include <rigel/backends/cuda/text_lists.hpp>
#include <rigel/backends/cuda/tile/direction.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/text.hpp>
#include <rigel/semirings.hpp>

#include <cstring>
#include <vector>

namespace rigel::backends::tensor {

using cuda::operator+, cuda::text_place;

/// An epilogue from text with the values of its hyperparameters. Only the bitcode defines the function that it calls.
struct TextFunctor {
  struct View {
    const float* data;  // null: the hyperparameter is a number
    std::int64_t stride;
  };
  float numbers[detail::most_text_parameters];
  View views[detail::most_text_parameters];

  RIGEL_MEMBER float operator()(float x, std::int64_t m, std::int64_t n, std::int64_t batch) const;
};
template <class Value>
using TextFinish = detail::FunctorFinish<TextFunctor, Value, true>;

/// A kernel of the bitcode: of a tile, for a C of `Of`, with operands in these directions.
template <class OfTile, class Of, tile::Direction direction_a, tile::Direction direction_b>
struct TextKernel {
  using Tile = OfTile;
  using Value = Of;
  static constexpr tile::Direction of_a = direction_a, of_b = direction_b;
};

/// The kernels of a tile for a C of `Value`: `lines`, whether it takes M- and N-major operands as they are.
template <class Tile, class Value, bool lines>
constexpr auto text_kernels_of() {
  using enum tile::Direction;
  constexpr type_list<TextKernel<Tile, Value, along_k, along_k>> packed{};
  if constexpr (lines)
    return packed + type_list<TextKernel<Tile, Value, along_k, along_lines>, TextKernel<Tile, Value, along_lines, along_k>,
                              TextKernel<Tile, Value, along_lines, along_lines>>{};
  else
    return packed;
}
/// The same for a C of sums and for one of elements.
template <class Tile, class Element, bool lines>
constexpr auto text_kernels_of_tile() {
  if constexpr (ShortFloat<Element>)
    return text_kernels_of<Tile, float, lines>() + text_kernels_of<Tile, Element, lines>();
  else
    return text_kernels_of<Tile, float, lines>();
}

/// Numbers and shared memory of the kernels of a list for a C of type `c`.
template <class... All>
std::vector<cuda::TextFunctions::Need> text_needs(type_list<All...> list, Scalar c) {
  std::vector<cuda::TextFunctions::Need> needs;
  detail::for_each(list, [&]<class Kernel>() {
    if (scalar_of<typename Kernel::Value> == c) needs.push_back({text_place<Kernel>(list), Kernel::Tile::bytes});
  });
  return needs;
}
/// Tells whether the library and the bitcode agree on what passes between them.
template <class S, class... All>
constexpr std::uint64_t text_layout(type_list<All...>) {
  return std::uint64_t{sizeof(detail::Arguments<S, TextFinish<float>>)} << 32 | sizeof...(All);
}

/// Whether a kernel of products of `Element` has code for a problem's epilogue and its C.
template <class Element>
Status text_supports(const Contraction& p) {
  if (p.program) return {Decline::epilogue, "the epilogue is one of the closed set; this kernel takes those from text"};
  if (p.c.type == Scalar::f32 || (ShortFloat<Element> && p.c.type == scalar_of<Element>)) return {};
  return {Decline::result, p.c.argument + (p.c.label.empty() ? "" : " ('" + p.c.label + "')") + " holds " + name(p.c.type) +
                               ", expected f32" +
                               (ShortFloat<Element> ? std::string(" or ") + name(scalar_of<Element>) : std::string()) +
                               " of an epilogue from text on tensor cores"};
}

/// The arguments of a problem whose epilogue is a TextEpilogue.
template <class S, class Value>
detail::Arguments<S, TextFinish<Value>> text_arguments(const Contraction& p) {
  using Element = typename S::element;
  const detail::TextValues& values = *static_cast<const detail::TextEpilogue*>(p.epilogue_object)->values;
  TextFunctor functor{};
  std::memcpy(functor.numbers, values.numbers.data(), sizeof functor.numbers);
  for (const detail::TextView& view : values.views)
    functor.views[view.index] = {static_cast<const float*>(view.data), view.count > 1 ? view.stride : 0};
  return {{p.batch, p.m, p.n, p.k, detail::strided<Element>(p.a), detail::strided<Element>(p.b)},
          p.c.data,
          {nullptr, p.c.batch_stride, p.c.row_stride, p.c.column_stride},
          S{},
          nullptr,
          {functor, p.of_transpose},
          p.accumulate,
          true};
}

}  // namespace rigel::backends::tensor

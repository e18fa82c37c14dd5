// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tiles of semirings that are known at run time only: a semiring whose operations are declared functions, and which kernels it has.
// They become LLVM bitcode for NVPTX when Rigel is built (text.cpp.in). src/runtime defines the functions from a text, and compiles
// the one kernel that a call needs.
#pragma once

#include <rigel/backends/cuda/simt/contract.hpp>
#include <rigel/backends/cuda/simt/narrow.hpp>
#include <rigel/backends/cuda/simt/small.hpp>
#include <rigel/detail/text.hpp>

namespace rigel::backends::simt {

using detail::most_text_parameters;

/// A semiring from text with these types. Only the bitcode defines its functions, by calls of what the text says; elsewhere they are
/// never called. `calls`: it calls exponentials or other functions of dozens of instructions.
template <class Element, class Accumulator, bool calls>
struct TextSemiring : scalar_semiring<Element, Accumulator> {
  using self = TextSemiring;
  static constexpr const char* name = "text";
  static constexpr bool transcendental = calls;
  Accumulator parameters[most_text_parameters];

  RIGEL_MEMBER static Accumulator identity();
  RIGEL_MEMBER Accumulator multiply(Accumulator a, Accumulator b) const;
  RIGEL_MEMBER Accumulator add(Accumulator x, Accumulator y) const;
  RIGEL_MEMBER Accumulator step(Accumulator x, Accumulator a, Accumulator b) const;
  RIGEL_MEMBER Accumulator result(Accumulator x) const;
};

/// Stores results as they are, or rounded to 16-bit elements: most calls have no epilogue, and the code of one takes as long to compile
/// as the rest of a kernel.
template <class S>
struct CopyFinish {
  static constexpr bool takes_transpose = true;
  static constexpr bool is_layer = false;
  Scalar type;  // of C

  static bool supports(const Contraction& p) {
    return p.program && p.program->empty() &&
           (p.c.type == scalar_of<result_t<S>> || (shortens<S> && p.c.type == scalar_of<typename S::element>));
  }

  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return shortens<S> ? type == scalar_of<T> : std::is_same_v<T, result_t<S>>;
  }
  template <class T>
  RIGEL_MEMBER bool runs_short() const {
    return false;
  }
  template <int groups, int width, class Outputs>
  RIGEL_MEMBER void run_on(float (&)[groups][width], const Outputs&, int = 0) const {}
  RIGEL_MEMBER bool begins_with_root() const { return false; }
  template <class T>
  RIGEL_MEMBER double power() const {
    return 0;
  }
  RIGEL_MEMBER void store(const S& s, typename S::accumulator x, void* c, std::int64_t offset, std::int64_t, std::int64_t,
                          std::int64_t) const {
    const auto value = rigel::result(s, x);
    if (is_copy<result_t<S>>())
      static_cast<result_t<S>*>(c)[offset] = value;
    else
      static_cast<typename S::element*>(c)[offset] = detail::convert<typename S::element>(value);
  }
  RIGEL_MEMBER typename S::accumulator load(const S& s, const void* c, std::int64_t offset) const {
    return is_copy<result_t<S>>() ? rigel::lift(s, static_cast<const result_t<S>*>(c)[offset])
                                  : rigel::lift(s, static_cast<float>(static_cast<const typename S::element*>(c)[offset]));
  }
};

/// The arguments of a problem whose results are copied.
template <class S>
detail::Arguments<S, CopyFinish<S>> copy_arguments(const Contraction& p) {
  const auto g = detail::arguments_of<S, detail::ProgramFinish>(p);
  return {g, g.c, g.c_strides, g.one_semiring, g.semirings, {p.c.type}, g.accumulate, g.shares_semiring};
}

/// A kernel in tiles, the one for small matrices, and the one for few outputs.
template <class Of, class Ends, tile::Way way_of_a, tile::Way way_of_b>
struct TextTile {
  using Shape = Of;
  using Finish = Ends;
  static constexpr Ways ways{way_of_a, way_of_b};
};
struct TextSmall {};
struct TextNarrow {};

template <class... X, class... Y>
constexpr type_list<X..., Y...> operator+(type_list<X...>, type_list<Y...>) {
  return {};
}

/// The kernels of a tile: those among which with_function() chooses.
template <class S, class Shape, class Finish>
constexpr auto text_tiles_of() {
  using tile::Way;
  constexpr type_list<TextTile<Shape, Finish, Way::single, Way::single>> single{};
  if constexpr (!takes_vectors<S, Shape>) {
    return single;
  } else if constexpr (widens<S>) {
    return single + type_list<TextTile<Shape, Finish, Way::either, Way::either>>{};
  } else {
    constexpr auto vectors = single + type_list<TextTile<Shape, Finish, Way::along_k, Way::along_k>,
                                                TextTile<Shape, Finish, Way::along_k, Way::along_lines>,
                                                TextTile<Shape, Finish, Way::along_lines, Way::along_k>>{};
    if constexpr (takes_lines<S, Shape>)
      return vectors + type_list<TextTile<Shape, Finish, Way::along_lines, Way::along_lines>>{};
    else
      return vectors;
  }
}

/// The ways in which a tile's kernel brings a problem's operands.
template <class S, class Shape>
Ways text_ways(const Contraction& p) {
  const Ways ways = ways_for<S, Shape>(p);
  if (widens<S> && ways.a != tile::Way::single) return {tile::Way::either, tile::Way::either};
  return ways;
}

template <class S, class... Shape>
constexpr auto text_kernels_of(type_list<Shape...>) {
  return ((text_tiles_of<S, Shape, CopyFinish<S>>() + text_tiles_of<S, Shape, detail::ProgramFinish>()) + ... +
          type_list<TextSmall, TextNarrow>{});
}
/// All kernels of S, in the order of the bitcode's table.
template <class S>
using TextKernels = decltype(text_kernels_of<S>(Tiles<S>{}));

/// Where a kernel stands in the table, in which those for texts that call no functions come first.
template <class S, class Kernel, class... All>
constexpr int text_place(type_list<All...>) {
  int place = 0, found = -1;
  ((std::is_same_v<All, Kernel> ? void(found = place) : void(), ++place), ...);
  return found;
}
template <class... All>
constexpr int count_of(type_list<All...>) {
  return sizeof...(All);
}
template <class E, class A, bool calls>
constexpr int first_text_kernel(const TextSemiring<E, A, calls>*) {
  return calls ? count_of(TextKernels<TextSemiring<E, A, false>>{}) : 0;
}
template <class S, class Kernel>
inline constexpr int text_kernel_index =
    first_text_kernel(static_cast<const S*>(nullptr)) + text_place<S, Kernel>(TextKernels<S>{});

/// Tells whether the library and the bitcode of an element type agree on what passes between them.
template <class E, class Plain = TextSemiring<E, accumulator_for<E>, false>,
          class Calling = TextSemiring<E, accumulator_for<E>, true>>
inline constexpr std::uint64_t text_layout =
    std::uint64_t{sizeof(detail::Arguments<Plain, detail::ProgramFinish>)} << 32 | std::uint64_t{sizeof(SmallShape)} << 16 |
    (count_of(TextKernels<Plain>{}) + count_of(TextKernels<Calling>{}));

/// The kernels of a semiring from text. Each compiles its CUDA kernels when a call first needs them.
std::vector<Kernel<Contraction>> text_kernels(const detail::TextFacts& facts, const detail::TextCompiler& compile);
/// Compiles all CUDA kernels of which `kernel` is one, for a device.
void compile_text_kernels(const Kernel<Contraction>& kernel, const Execution& execution);

}  // namespace rigel::backends::simt

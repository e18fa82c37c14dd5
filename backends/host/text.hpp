// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's loops for semirings that are known at run time only: a semiring whose operations are declared functions. The
// loops become LLVM bitcode when Rigel is built (text.cpp.in). src/runtime defines the functions from a text, links them in,
// and compiles both. What the loops call in the library they find in a table, as no names are shared.
#pragma once

#include <rigel/backends/host/work.hpp>
#include <rigel/detail/text.hpp>

namespace rigel::backends::host {

/// The most hyperparameters of a semiring from text.
inline constexpr int most_text_parameters = 16;

using detail::TextForm;

/// A semiring from text with these types. Only the bitcode defines its functions, by calls of what the text says; elsewhere
/// they are never called.
template <class Level, class Element, class Accumulator, TextForm form>
struct TextSemiring : scalar_semiring<Element, Accumulator> {
  using self = TextSemiring;
  static constexpr const char* name = "text";
  using Row = vector<Accumulator, Level::vector_bytes / static_cast<int>(sizeof(Accumulator))>;
  Accumulator parameters[most_text_parameters];

  RIGEL_MEMBER static Accumulator identity();
  RIGEL_MEMBER Accumulator multiply(Accumulator a, Accumulator b) const;
  RIGEL_MEMBER Row multiply(Row a, Row b) const;
  RIGEL_MEMBER Accumulator add(Accumulator x, Accumulator y) const;
  RIGEL_MEMBER Accumulator step(Accumulator x, Accumulator a, Accumulator b) const;
  RIGEL_MEMBER Row step(Row x, Row a, Row b) const;
  RIGEL_MEMBER Accumulator result(Accumulator x) const
    requires(form == TextForm::result);
  RIGEL_MEMBER Row result(Row x) const
    requires(form == TextForm::result);
  RIGEL_MEMBER Accumulator add_if_ordered(Accumulator x, Accumulator y) const
    requires(form == TextForm::ordered);
  RIGEL_MEMBER Row add_if_ordered(Row x, Row y) const
    requires(form == TextForm::ordered);
};

/// The functions of the library that the loops of S call.
template <class Level, class S>
struct TextSupport {
  using From = typename S::element;
  using To = operand_t<S>;
  using Value = row_t<S>;
  using M = microkernel_for<Level, S>;
  static constexpr int lanes = Lanewise<Level, S>::lanes;
  decltype(&host::pack<Level, M::rows, From, To>) pack_rows;
  decltype(&host::pack<Level, M::columns, From, To>) pack_columns;
  decltype(&host::interleave<Level, lanes, From, To>) interleave;
  decltype(&host::store_values<Level, Value>) store_values;
  decltype(&host::store_batch<Level, Value>) store_batch;
  decltype(&host::read_row<Level, Value>) read_row;
  decltype(&host::read_row<Level, double>) read_row_f64;
  decltype(&host::apply_in_place<Level, float>) apply_in_place_f32;
  decltype(&host::apply_in_place<Level, double>) apply_in_place_f64;
  detail::Specials (*specials_of)(const To*, std::int64_t);  // null for integers
};

/// Tells whether the library and the loops agree on what passes between them.
template <class Level, class S>
inline constexpr std::uint64_t text_layout = std::uint64_t{sizeof(detail::Arguments<S, detail::ProgramFinish>)} << 32 |
                                             std::uint64_t{sizeof(Grid)} << 16 | sizeof(TextSupport<Level, S>);

}  // namespace rigel::backends::host

namespace rigel {
/// As those of the zoo, the shorter form is what the semiring means: src/runtime sees to that.
template <class Level, class Element, class Accumulator>
inline constexpr bool in_zoo<backends::host::TextSemiring<Level, Element, Accumulator, backends::host::TextForm::ordered>> =
    true;
}  // namespace rigel

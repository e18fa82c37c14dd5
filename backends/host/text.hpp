// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's loops for semirings that are known at run time only: a semiring whose operations are declared functions. The
// loops become LLVM bitcode when Rigel is built (text.cpp.in). src/runtime defines the functions from a text, links them in,
// and compiles both. What the loops call in the library they find in a table, as no names are shared.
#pragma once

#include <rigel/backends/host/work.hpp>
#include <rigel/detail/text.hpp>

namespace rigel::backends::host {

using detail::TextForm, detail::most_text_parameters;

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

/// The same for texts that call functions. Vectors may have any number of registers; the text computes four at a time, which are as many
/// chains of dependent instructions.
template <class Level, class Element, class Accumulator>
struct TextGroupedSemiring : scalar_semiring<Element, Accumulator> {
  using self = TextGroupedSemiring;
  static constexpr const char* name = "text";
  static constexpr bool transcendental = true;
  using Block = vector<Accumulator, 4 * Level::vector_bytes / static_cast<int>(sizeof(Accumulator))>;
  Accumulator parameters[most_text_parameters];

  RIGEL_MEMBER static Accumulator identity();
  RIGEL_MEMBER Accumulator multiply(Accumulator a, Accumulator b) const;
  RIGEL_MEMBER Accumulator add(Accumulator x, Accumulator y) const;
  template <class X>
  RIGEL_MEMBER X step(X x, X a, X b) const;
  template <class X>
  RIGEL_MEMBER X step_by_short_powers(X x, X a, X b) const;
  template <class X>
  RIGEL_MEMBER X result(X x) const;
  /// Whether all exponents of its powers have a short_power().
  RIGEL_MEMBER bool has_short_powers() const;
};

/// Fields of an accumulator, or of those of a row: numbers of the operand's size. Of what type they are only the text knows.
template <class T, int fields>
struct TextFields {
  T field[fields];
};
template <class T, int fields>
struct text_accumulator {
  using accumulator = TextFields<T, fields>;
  template <class V>
  using lanes_accumulator = TextFields<V, fields>;
};
template <class T>
struct text_accumulator<T, 1> {
  using accumulator = T;
};

/// The factors of a product, which is computed as it is added.
template <class T>
struct TextProduct {
  T a, b;
  std::int64_t k;
};

/// The same for texts that read k, or whose accumulator has several fields.
template <class Level, class Element, class Operand, int fields>
struct TextFieldsSemiring : text_accumulator<Operand, fields> {
  using self = TextFieldsSemiring;
  using element = Element;
  using operand = Operand;
  using typename text_accumulator<Operand, fields>::accumulator;
  static constexpr const char* name = "text";
  static constexpr bool takes_lanes = true;
  using Row = vector<Operand, Level::vector_bytes / static_cast<int>(sizeof(Operand))>;
  using Sums = std::conditional_t<fields == 1, Row, TextFields<Row, fields>>;
  Operand parameters[most_text_parameters];

  RIGEL_MEMBER static accumulator identity();
  RIGEL_MEMBER accumulator multiply(Operand a, Operand b, std::int64_t k) const;
  RIGEL_MEMBER accumulator add(accumulator x, accumulator y) const;
  RIGEL_MEMBER Operand result(accumulator x) const;
  RIGEL_MEMBER TextProduct<Row> multiply(Row a, Row b, std::int64_t k) const { return {a, b, k}; }
  RIGEL_MEMBER Sums add(Sums x, const TextProduct<Row>& product) const;
  RIGEL_MEMBER Row result(Sums x) const;
};

/// The semiring of a form.
template <class Level, class Element, TextForm form>
constexpr auto text_semiring() {
  using A = accumulator_for<Element>;
  if constexpr (form == TextForm::grouped)
    return std::type_identity<TextGroupedSemiring<Level, Element, A>>{};
  else if constexpr (form == TextForm::indexed)
    return std::type_identity<TextFieldsSemiring<Level, Element, A, 1>>{};
  else if constexpr (form == TextForm::two_fields)
    return std::type_identity<TextFieldsSemiring<Level, Element, A, 2>>{};
  else if constexpr (form == TextForm::three_fields)
    return std::type_identity<TextFieldsSemiring<Level, Element, A, 3>>{};
  else if constexpr (form == TextForm::four_fields)
    return std::type_identity<TextFieldsSemiring<Level, Element, A, 4>>{};
  else
    return std::type_identity<TextSemiring<Level, Element, A, form>>{};
}
template <class Level, class Element, TextForm form>
using text_semiring_t = typename decltype(text_semiring<Level, Element, form>())::type;

/// The Finish of texts: an epilogue of the closed set, or one from text. Results have type `result`, whatever the loops take them for.
struct TextFinish : detail::ProgramFinish {
  Scalar result;
  detail::TextEpilogue epilogue;                      // without a function: the program
  std::int64_t first_batch, first_row, first_column;  // where C's first output lies in what the epilogue sees

  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return !epilogue.function && result == scalar_of<T> && ProgramFinish::is_copy<T>();
  }
};
template <class T>
RIGEL_FUNCTION bool holds_results(const TextFinish& finish, const void* c) {
  return !finish.epilogue.function && holds_results<T>(static_cast<const detail::ProgramFinish&>(finish), c);
}
template <class Level, class Value>
void store_values(const TextFinish& finish, Value* v, int count, void* c, const Place& at);
template <class Level, class Value>
void store_batch(const TextFinish& finish, Value* results, Value* values, void* c, const BatchOutputs& outputs);

/// The functions of the library that the loops of S call.
template <class Level, class S>
struct TextSupport {
  using From = typename S::element;
  using To = operand_t<S>;
  using Value = row_t<S>;
  using M = microkernel_for<Level, S>;
  static constexpr int lanes = Lanewise<Level, S>::lanes;
  static constexpr int few_rows = Level::registers == 32 ? 4 : 2;  // of accumulators with several fields, and of groups
  void (*pack_rows)(const From*, std::int64_t, std::int64_t, int, int, To*);
  void (*pack_few_rows)(const From*, std::int64_t, std::int64_t, int, int, To*);
  void (*pack_columns)(const From*, std::int64_t, std::int64_t, int, int, To*);
  void (*interleave)(const From*, std::int64_t, int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, To*);
  void (*interleave_groups)(const From*, std::int64_t, int, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                            To*);  // null for integers
  void (*store_values)(const TextFinish&, Value*, int, void*, const Place&);
  void (*store_batch)(const TextFinish&, Value*, Value*, void*, const BatchOutputs&);
  void (*read_row)(Scalar, const void*, Value*, int, const Place&);
  void (*read_row_f64)(Scalar, const void*, double*, int, const Place&);
  void (*apply_in_place_f32)(const detail::ProgramFinish&, float*, std::int64_t, std::int64_t, int, const Place&);
  void (*apply_in_place_f64)(const detail::ProgramFinish&, double*, std::int64_t, std::int64_t, int, const Place&);
  detail::Specials (*specials_of)(const To*, std::int64_t);  // null for integers
};

/// Tells whether the library and the loops agree on what passes between them.
template <class Level, class S>
inline constexpr std::uint64_t text_layout = std::uint64_t{sizeof(detail::Arguments<S, TextFinish>)} << 32 |
                                             std::uint64_t{sizeof(Grid)} << 16 | sizeof(TextSupport<Level, S>);

}  // namespace rigel::backends::host

namespace rigel {
/// As those of the zoo, the shorter form is what the semiring means: src/runtime sees to that.
template <class Level, class Element, class Accumulator>
inline constexpr bool in_zoo<backends::host::TextSemiring<Level, Element, Accumulator, backends::host::TextForm::ordered>> =
    true;
}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings and epilogues from text.
#pragma once

#include "calls.hpp"

namespace rigel::python {

/// The semiring of a call, for elements of a type: sets `semiring` of a str, or `from_text` of a _core.Text, either of which lives as long as
/// `given` does.
void set_semiring(rigel_contract_args& args, nb::handle given, rigel_type type);

/// The type of the results of a semiring from text, of elements of a type, in arrays that are made for them; 0 if `given` is no _core.Text.
rigel_type text_result_type(nb::handle given, rigel_type element);

/// The number that stands for results of a type while they are computed: f32 of 16-bit ones.
inline rigel_type number_type(rigel_type type) { return type == RIGEL_F16 || type == RIGEL_BF16 ? RIGEL_F32 : type; }

/// An epilogue from text: (_core.TextEpilogue, parameters).
class TextEpilogueCall {
 public:
  static bool is(nb::handle given);
  explicit TextEpilogueCall(nb::handle given);
  /// Sets what args have of it, for a semiring's results of a type and elements of `out`.
  void set(rigel_contract_args& args, rigel_type argument, rigel_type out) const;

 private:
  nb::object epilogue_;
  Parameters parameters_;
};

/// Defines _core.Text, _core.TextEpilogue and what goes with them.
void define_texts(nb::module_& m);

}  // namespace rigel::python

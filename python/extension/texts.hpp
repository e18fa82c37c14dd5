// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings and epilogues from text.
#pragma once

#include "calls.hpp"

#include <span>

namespace rigel::python {

/// The semiring of a call, for elements of a type: sets `semiring` of a str, or `from_text` of a _core.Text, either of which lives as long as
/// `given` does.
void set_semiring(rigel_contract_args& args, nb::handle given, rigel_type type);

/// Whether an object is a semiring from text.
bool is_text(nb::handle given);

/// Hyperparameters of a text, from a dict or None: numbers, and arrays of one, or of one for each matrix of a batch, with which they broadcast.
class TextParameters {
 public:
  explicit TextParameters(nb::handle given);
  void broadcast(Batch& batch) const;
  void add_to(Matrices& matrices);
  const Parameters& numbers() const { return numbers_; }
  /// Those in memory, of the part of the batch that the matrices are at.
  std::span<const rigel_parameter_view> views();

 private:
  Parameters numbers_;
  std::deque<std::string> names_;  // of arrays
  std::vector<Array> arrays_;
  std::vector<const rigel_matrix*> matrices_;
  std::vector<rigel_parameter_view> views_;
};

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
  TextParameters& parameters() { return parameters_; }

 private:
  nb::object epilogue_;
  TextParameters parameters_;
};

/// Defines _core.Text, _core.TextEpilogue and what goes with them.
void define_texts(nb::module_& m);

}  // namespace rigel::python

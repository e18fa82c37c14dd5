// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings from text.
#pragma once

#include "calls.hpp"

namespace rigel::python {

/// The semiring of a call, for elements of a type: sets `semiring` of a str, or `from_text` of a _core.Text, either of which lives as long as
/// `given` does.
void set_semiring(rigel_contract_args& args, nb::handle given, rigel_type type);

/// Defines _core.Text and what goes with it.
void define_texts(nb::module_& m);

}  // namespace rigel::python

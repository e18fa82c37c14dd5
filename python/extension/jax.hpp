// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers of jax.ffi.
#pragma once

#include <nanobind/nanobind.h>

namespace rigel::python {

/// Defines what rigel_semirings.jax calls: jax_handlers(), nowhere(), keep_text().
void define_jax(nanobind::module_& m);

}  // namespace rigel::python

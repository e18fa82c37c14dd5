// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nanobind/nanobind.h>

namespace rigel::python {

/// Defines kernel_matvec() and the like, and the iterations over reductions.
void define_drivers(nanobind::module_& m);

}  // namespace rigel::python

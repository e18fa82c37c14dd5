// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nanobind/nanobind.h>

namespace rigel::python {

/// Adds kernel_matvec() and the like, the iterations over reductions, and the gradient of kernel matrices.
void define_drivers(nanobind::module_& m);

}  // namespace rigel::python

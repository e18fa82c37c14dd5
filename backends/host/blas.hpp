// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::host {

/// Adds host.blas.plus_times.f32 and .f64, if the library was built with a BLAS.
void add_blas(Registry<Contraction>& registry);

}  // namespace rigel::backends::host

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::hopper {

/// Add the cuda.hopper kernels, a translation unit each: products of floats, of 16-bit ones, and of bytes.
void add_floats(Registry& registry);
void add_short_floats(Registry& registry);
void add_bytes(Registry& registry);

}  // namespace rigel::backends::hopper

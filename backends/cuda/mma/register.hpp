// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::mma {

/// Add the cuda.mma kernels, a translation unit each: products of doubles, of floats, of 16-bit ones, of bytes, and of bits; distances of
/// codes, and of points; sums of exponentials.
void add_doubles(Registry& registry);
void add_floats(Registry& registry);
void add_short_floats(Registry& registry);
void add_bytes(Registry& registry);
void add_bits(Registry& registry);
void add_codes(Registry& registry);
void add_distances(Registry& registry);
void add_log_sums(Registry& registry);

}  // namespace rigel::backends::mma

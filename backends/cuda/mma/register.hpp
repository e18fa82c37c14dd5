// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::mma {

/// Add the cuda.mma kernels, one translation unit each: products of doubles, floats, halves, bfloat16, bytes and bits; distances of codes, and of points; sums of exponentials in float, and in double.
void add_doubles(Registry<Contraction>& registry);
void add_floats(Registry<Contraction>& registry);
void add_halves(Registry<Contraction>& registry);
void add_bfloat16s(Registry<Contraction>& registry);
void add_bytes(Registry<Contraction>& registry);
void add_bits(Registry<Contraction>& registry);
void add_codes(Registry<Contraction>& registry);
void add_distances(Registry<Contraction>& registry);
void add_log_sums(Registry<Contraction>& registry);
void add_log_sums_of_doubles(Registry<Contraction>& registry);

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::backends::hopper {

/// Add the cuda.hopper kernels, one translation unit each: products of floats, of half, of bfloat16, and of bytes; of half and
/// bfloat16 the single-tile kernels take as long to compile as the others.
void add_floats(Registry<Contraction>& registry);
void add_halves(Registry<Contraction>& registry);
void add_halves_once(Registry<Contraction>& registry);
void add_bfloat16s(Registry<Contraction>& registry);
void add_bfloat16s_once(Registry<Contraction>& registry);
void add_bytes(Registry<Contraction>& registry);

}  // namespace rigel::backends::hopper

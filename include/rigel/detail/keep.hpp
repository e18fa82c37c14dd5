// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Storage for kernels that are in no registry.
#pragma once

#include <rigel/registry.hpp>

#include <span>
#include <vector>

namespace rigel::detail {

/// Keeps kernels until the program ends or the shared object that contains Rigel is unloaded. That is longer than any static
/// object lives, so their destructors may call contract().
std::span<const Kernel<Contraction>> keep(std::vector<Kernel<Contraction>> kernels);

/// Whether the library keeps kernels for S, a semiring outside the zoo, that take epilogues of the closed set.
template <class S>
inline constexpr bool in_library = false;
/// Those kernels.
template <class S>
std::span<const Kernel<Contraction>> kernels_in_library();

}  // namespace rigel::detail

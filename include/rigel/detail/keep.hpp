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

}  // namespace rigel::detail

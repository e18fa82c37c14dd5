// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that no registry has, for as long as calls may come.
#pragma once

#include <rigel/registry.hpp>

#include <span>
#include <vector>

namespace rigel::detail {

/// Keeps kernels until the program ends, or the shared object that holds Rigel is unloaded: longer than any static object, whose
/// destructor may call contract().
std::span<const Kernel> keep(std::vector<Kernel> kernels);

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/backends/host/grid.hpp>
#include <rigel/registry.hpp>

#include <vector>

namespace rigel::backends::host {

/// The loops of a list of semirings at a level, in the list's order. instantiate.cpp.in defines it for one list of the zoo and level each,
/// differences.cpp.in for detail::compiled_integer_differences.
template <class Level, class List>
const Loop* loops();

/// Appends the kernels of detail::compiled_integer_differences of one semiring S at all levels of this build.
template <class S>
void add_differences(std::vector<Kernel<Contraction>>& kernels);

}  // namespace rigel::backends::host

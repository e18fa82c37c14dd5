// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/registry.hpp>

namespace rigel::detail {

/// The supported kernel with the least predicted time, or null. The earlier one wins a tie.
const Kernel* choose(const Problem& problem);

}  // namespace rigel::detail

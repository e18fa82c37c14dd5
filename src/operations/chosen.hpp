// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A contraction's kernel, chosen once by a driver that needs its workspace before it runs.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/outside_kernels.hpp>

#include <cstddef>

namespace rigel::detail {

/// A kernel that a problem gets, and its plan. Both serve the problem with operands at other places of the same alignment, too.
struct Chosen {
  KernelOwner kernel;  // null: there is nothing to run
  Plan plan = {};
  std::size_t bytes = 0;  // of scratch memory
};
/// The kernel that run() would choose, of a problem whose operands are not placed yet: unchecked. Empty problems get none.
Chosen choose(const Contraction& problem);
/// Checks a problem and runs it by that kernel.
void run(const Chosen& chosen, const Contraction& problem);

}  // namespace rigel::detail

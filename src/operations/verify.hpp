// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() of one kernel, for each operation: its grid of problems, and what its results are held to.
#pragma once

#include <rigel/gradient_problem.hpp>
#include <rigel/registry.hpp>
#include <rigel/solve.hpp>

namespace rigel::engine {

Verification verify(const Kernel<Contraction>& kernel, unsigned seed);
Verification verify(const Kernel<Solve>& kernel, unsigned seed);
Verification verify(const Kernel<Gradient>& kernel, unsigned seed);

}  // namespace rigel::engine

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() of one kernel, for each operation: its grid of problems, and what its results are held to.
#pragma once

#include <rigel/gradient_problem.hpp>
#include <rigel/reduction_problem.hpp>
#include <rigel/registry.hpp>
#include <rigel/solve.hpp>

#include <string>

namespace rigel::engine {

/// Adds a broken promise to a verification's report, unless that is long already. `problem`: the failed one in words.
void fail(Verification& result, const KernelInfo& info, Space space, unsigned seed, const std::string& problem,
          const std::string& what);

/// `reference`: what it is held to, in all bits, in place of a registered reference; its facts are the kernel's.
Verification verify(const Kernel<Contraction>& kernel, unsigned seed, const Kernel<Contraction>* reference = nullptr);
Verification verify(const Kernel<Solve>& kernel, unsigned seed);
Verification verify(const Kernel<Gradient>& kernel, unsigned seed);
/// The same of a functor from text, which `of` has with its types, added to `result`. `reference`: what the kernel is held to, in all bits, on
/// the host.
void verify_text(const Kernel<Gradient>& kernel, const Kernel<Gradient>& reference, const Gradient& of, unsigned seed,
                 Verification& result);
Verification verify(const Kernel<Reduction>& kernel, unsigned seed);

}  // namespace rigel::engine

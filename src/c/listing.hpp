// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels and candidates as JSON.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/registry.hpp>

#include <string>
#include <vector>

namespace rigel::c {

/// What explain() says of a problem with this summary, "problem" and "candidates". `part`: of a call of several, its name, "part".
template <class Problem>
std::string json_of(const std::string& summary, const std::vector<Candidate<Problem>>& candidates,
                    const char* part = nullptr);

/// A copy that rigel_free() frees.
char* text_of(const std::string& text);

}  // namespace rigel::c

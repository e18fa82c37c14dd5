// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels and candidates as JSON.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/registry.hpp>

#include <string>
#include <vector>

namespace rigel::c {

/// What explain() says, for a problem with this summary.
std::string json_of(const std::string& summary, const std::vector<Candidate<Contraction>>& candidates);

/// A copy that rigel_free() frees.
char* text_of(const std::string& text);

}  // namespace rigel::c

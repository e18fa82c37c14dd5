// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled code of texts: from memory, then from disk, then from the compiler.
#pragma once

#include <rigel/detail/text.hpp>
#include <rigel/runtime.hpp>

#include <utility>

namespace rigel::runtime {

/// What is compiled, and what messages call it.
struct Work {
  const char* owner;  // "runtime::Semiring"
  std::string name;
  std::string source;                                             // source_of() for the loops
  Scalar element;                                                 // of the loops
  std::vector<std::pair<const char*, const std::string*>> texts;  // by the names that their #line directives have
};

/// The code of a source, linked with loops. Throws Error(unsupported) if librigel_runtime.so is missing.
rigel::detail::TextCode code_of(const Work& work, const rigel::detail::TextLoops& loops);

/// The loops of this processor, or an Error(unsupported).
rigel::detail::TextLoops loops_for(const char* owner, const std::string& name, Scalar element, rigel::detail::TextForm form);

}  // namespace rigel::runtime

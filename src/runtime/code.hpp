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
  std::string source;                                             // source_of() for the loops or kernels
  Scalar element;                                                 // of these
  std::vector<std::pair<const char*, const std::string*>> texts;  // by the names that their #line directives have
  std::string store = {};  // of a GPU: a source that defines what stores results, if there is one
};

/// The code of a source, linked with loops. Throws Error(unsupported) if librigel_runtime.so is missing.
rigel::detail::TextCode code_of(const Work& work, const rigel::detail::TextRoots& loops);
/// The same in kernel number `kernel` of a GPU's, whose table in the bitcode has this layout.
rigel::detail::TextCode code_of(const Work& work, std::size_t kernel, std::uint64_t layout,
                                const rigel::detail::TextGpu& gpu);

/// Throws Error(unsupported): this build has no loops for this processor.
[[noreturn]] void refuse_processor(const char* owner, const std::string& name);
/// Throws Error(unsupported): `what` from text, such as "kernels", runs on hosts and on CUDA, not on this space.
[[noreturn]] void refuse_space(const char* owner, const std::string& name, const char* what, Space space);
/// The loops of this processor, or an Error(unsupported).
rigel::detail::TextLoops loops_for(const char* owner, const std::string& name, Scalar element, rigel::detail::TextForm form);

}  // namespace rigel::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The PTX that librigel_runtime.so makes of a source, where there need be no GPU.
#pragma once

#include "texts.hpp"

#include <src/runtime/library.hpp>

#include <string>

namespace texts {

/// What the compiler makes of a source, and what it says.
struct Ptx {
  bool failed;
  std::string text, messages;
};

/// The PTX of kernel number `kernel` in the bitcode of `element`, "f32" or "gradient_f32", at an architecture, "sm_80". `layout`: of the
/// bitcode's table; 0: any. `store`: a source of what stores results; empty: none.
inline Ptx ptx_of_source(const std::string& source, const std::string& element, const char* level, std::size_t kernel,
                         std::uint64_t layout = 0, const std::string& store = "") {
  std::string reason;
  const RigelRuntime& runtime = *rigel::runtime::library(reason);
  const RigelSource request{.text = source.data(),
                            .size = source.size(),
                            .element = element.c_str(),
                            .level = level,
                            .roots = nullptr,
                            .root_count = 0,
                            .kernel = kernel,
                            .layout = layout,
                            .store = store.empty() ? nullptr : store.data(),
                            .store_size = store.size()};
  RigelBytes bytes = {}, said = {};
  const bool failed = runtime.compile(&request, &bytes, &said) != 0;
  Ptx result{failed, {bytes.data ? bytes.data : "", bytes.size}, {said.data ? said.data : "", said.size}};
  runtime.release(&bytes);
  runtime.release(&said);
  return result;
}

inline bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }
inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Whether this librigel_runtime.so has kernels for GPUs; else the test is skipped.
inline bool compiles_for_gpus() {
  if (!can_compile()) return false;
  // A library without kernels says so before it reads the source, which is no C++.
  const bool can = !has(ptx_of_source("?", "f32", "sm_80", 0).messages, "no kernels for GPUs");
  if (!can) support::skip("librigel_runtime.so was built where no CUDA toolkit is");
  return can;
}

}  // namespace texts

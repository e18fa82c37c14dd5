// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What src/runtime and a backend tell each other about semirings from text.
#pragma once

#include <rigel/registry.hpp>
#include <rigel/semiring_info.hpp>

#include <array>
#include <memory>

namespace rigel::detail {

/// Which loops a text gets.
enum class TextForm {
  plain,
  result,  // C receives what the text's result makes of accumulators
  ordered  // ⊕ is a minimum or maximum, and ⊗ of finite numbers is not NaN: the shorter forms of rigel/detail/ordered.hpp
};

/// What a backend needs to know about a semiring from text.
struct TextFacts {
  const SemiringInfo* info = nullptr;
  bool calls_functions = false;  // whose last bits differ between platforms
};

/// The loops of a semiring from text, compiled. `functions` are those of TextLoops::roots, and `code` keeps them in memory.
struct TextCode {
  std::array<void*, 2> functions = {};
  std::shared_ptr<const void> code;
};

/// Loops whose bitcode librigel_runtime.so has.
struct TextLoops {
  const char* level;                 // of the processor
  int lanes;                         // of a vector of accumulators
  std::array<const char*, 2> roots;  // the functions of a kernel
  const void* support;               // what the variable rigel_text_support points to once the code is loaded
  std::uint64_t layout;              // what the constant rigel_text_layout of the code must be
  Kernel<Contraction> (*kernel)(const TextFacts&, const TextCode&);
};

}  // namespace rigel::detail

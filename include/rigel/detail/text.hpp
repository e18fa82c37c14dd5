// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What src/runtime and a backend tell each other about semirings from text.
#pragma once

#include <rigel/detail/kernel.hpp>
#include <rigel/registry.hpp>
#include <rigel/semiring_info.hpp>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace rigel::detail {

/// Which loops a text gets.
enum class TextForm {
  plain,
  result,  // C receives what the text's result makes of accumulators
  ordered  // ⊕ is a minimum or maximum, and ⊗ of finite numbers is not NaN: the shorter forms of rigel/detail/ordered.hpp
};

/// Whether C's type is one that kernels from text write: what they make of floating-point numbers is such a number, and what an epilogue
/// makes of integers may also be rounded to i8, u8 and i32.
inline Status text_finish_supports(const Contraction& p) {
  const auto is_integer = [](Scalar type) { return type > Scalar::f64 && type != Scalar::other; };
  const bool of_integers = is_integer(p.accumulator), stays = p.program->size() == p.program->bit_steps();
  const bool rounds = p.c.type == Scalar::i8 || p.c.type == Scalar::u8 || p.c.type == Scalar::i32;
  if (is_integer(p.c.type) && !(of_integers && (stays || rounds)))
    return {Decline::result,
            std::string("C holds ") + name(p.c.type) + ", expected f16, bf16, f32 or f64 for results that are " +
                (of_integers ? "what an epilogue makes of integers, or i8, u8 or i32, to which these are rounded"
                             : "floating-point numbers")};
  return finish_supports<ProgramFinish>(p);
}

/// What a backend needs to know about a semiring from text.
struct TextFacts {
  const SemiringInfo* info = nullptr;
  bool calls_functions = false;      // whose last bits differ between platforms
  bool has_long_operations = false;  // whose code takes dozens of instructions, or which are many
};

/// The loops of a semiring from text, compiled. `functions` are those of TextLoops::roots, or a kernel of a GPU; `code` keeps them in
/// memory, if they do not stay there.
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

/// How a GPU takes kernels.
struct TextGpu {
  const char* level;     // the architecture for which PTX is made
  std::string platform;  // all that an image depends on in addition to the PTX
  std::string (*link)(const std::string& ptx);
  std::optional<TextCode> (*load)(const std::string& image);  // nothing if it is no image for this GPU
};

/// Compiles kernel number `kernel` of those in the bitcode, whose table has this layout.
using TextCompiler = std::function<TextCode(std::size_t kernel, std::uint64_t layout, const TextGpu& gpu)>;

}  // namespace rigel::detail

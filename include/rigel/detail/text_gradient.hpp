// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What src/runtime and a backend tell each other about functors of contract_gradient() from text.
#pragma once

#include <rigel/detail/gradient.hpp>
#include <rigel/detail/text.hpp>

namespace rigel::detail {

/// What a backend needs to know about such a functor.
struct TextGradientFacts {
  std::string name;
  const void* type = nullptr;  // which kernels and problems have in common
  Scalar element = Scalar::f32, accumulator = Scalar::f32;
  bool calls_functions = false;      // whose last bits differ between platforms
  bool has_long_operations = false;  // whose code takes dozens of instructions, or which are many
  bool joins = false;                // the text says how sums of parts of K become one
};

/// The loop of the host, compiled for one level.
struct TextGradientLoops : TextRoots {
  Kernel<Gradient> (*kernel)(const TextGradientFacts&, const TextCode&);
  // What verify() holds it to: the root, which is both of the code's functions, and the kernel.
  const char* reference_root;
  Kernel<Gradient> (*reference)(const TextGradientFacts&, const TextCode&);
};

/// The info of a kernel whose functor G stands for a text.
template <class G>
KernelInfo text_gradient_info(const TextGradientFacts& facts, std::string_view family, std::string_view variant,
                              Spaces spaces) {
  KernelInfo info = gradient_info<G>(family, variant, spaces);
  info.semiring = facts.name;
  info.semiring_type = facts.type;
  set_name(info, {});
  info.promises = Promise::repeatable;
  return info;
}

}  // namespace rigel::detail

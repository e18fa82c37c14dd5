// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What src/runtime and a backend tell each other about semirings and epilogues from text.
#pragma once

#include <rigel/registry.hpp>
#include <rigel/semiring_info.hpp>

#include <array>
#include <memory>
#include <vector>

namespace rigel::detail {

/// The most hyperparameters of a semiring or an epilogue from text.
inline constexpr int most_text_parameters = 16;
/// The most fields of an accumulator.
inline constexpr int most_text_fields = 4;

/// Which loops a text gets.
enum class TextForm {
  plain,
  result,   // C receives what the text's result makes of accumulators
  ordered,  // ⊕ is a minimum or maximum, and ⊗ of finite numbers is not NaN: the shorter forms of rigel/detail/ordered.hpp
  grouped,  // the text calls functions of dozens of instructions: the loops of rigel/backends/host/grouped.hpp, of floating-point numbers
  indexed,  // the text reads k
  two_fields,
  three_fields,
  four_fields  // the accumulator has so many fields; the text may read k
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
  // What verify() holds it to: the root, which is both of the code's functions, and the kernel.
  const char* reference_root;
  Kernel<Contraction> (*reference)(const TextFacts&, const TextCode&);
};

/// A hyperparameter in memory: `count` numbers, one for each matrix of a batch, or one for all.
struct TextView {
  std::size_t index = 0;  // of the hyperparameter
  const void* data = nullptr;
  std::int64_t count = 0, stride = 0;
  std::shared_ptr<const void> owner;
};

/// The values of hyperparameters. The numbers come first, so that its address is that of the numbers.
struct TextValues {
  alignas(64) std::array<std::byte, most_text_parameters * 8> numbers = {};
  std::vector<TextView> views;

  /// Whether matrices of a batch have values of their own.
  bool differ() const {
    for (const TextView& view : views)
      if (view.count > 1) return true;
    return false;
  }
  /// The numbers of `batches` matrices from `first` on, `bytes` each, with what the views hold now; those of one if none differ.
  std::vector<std::byte> read(std::size_t bytes, std::int64_t first, std::int64_t batches) const;
};

/// Where a row of results is in C: result j is that of (m + j·m_step, n + j·n_step) of a matrix.
struct TextPlace {
  std::int64_t m, n, m_step, n_step, batch;
};

/// An epilogue from text, as kernels call it: `function` makes `count` numbers of type `result` of as many of type `argument`.
struct TextEpilogue {
  using Function = void (*)(const void* from, int count, void* to, const TextPlace& place, const void* parameters);
  Function function = nullptr;
  Scalar argument = Scalar::f32, result = Scalar::f32;
  const std::byte* parameters = nullptr;
  std::int64_t stride = 0;  // bytes from matrix to matrix
};

}  // namespace rigel::detail

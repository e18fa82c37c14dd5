// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What src/runtime and a backend tell each other about semirings and epilogues from text.
#pragma once

#include <rigel/detail/kernel.hpp>
#include <rigel/registry.hpp>
#include <rigel/semiring_info.hpp>

#include <array>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
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

/// Whether C's type is one that kernels from text write, whose results have type `result`: what they make of floating-point numbers is
/// such a number, and what an epilogue of the closed set makes of integers may also be rounded to i8, u8 and i32. An epilogue from text
/// makes C's elements.
inline Status text_finish_supports(const Contraction& p, Scalar result) {
  if (p.c.type == Scalar::other) return {Decline::result, "C's element type is not one of Rigel's scalars"};
  if (!p.program) return {};
  const auto is_integer = [](Scalar type) { return type > Scalar::f64 && type != Scalar::other; };
  const bool of_integers = is_integer(result), stays = p.program->size() == p.program->bit_steps();
  const bool rounds = p.c.type == Scalar::i8 || p.c.type == Scalar::u8 || p.c.type == Scalar::i32;
  if (is_integer(p.c.type) && !(of_integers && (stays || rounds)))
    return {Decline::result,
            p.c.argument + (p.c.label.empty() ? "" : " ('" + p.c.label + "')") + " holds " + name(p.c.type) +
                ", expected f16, bf16, f32 or f64 for results that are " +
                (of_integers ? "what an epilogue makes of integers, or i8, u8 or i32, to which these are rounded"
                             : "floating-point numbers")};
  return {};
}

/// How sums over parts of K become one: ⊕ is that of a compiled semiring, with the same identity, and C receives the sum as it is.
enum class TextJoin : std::uint8_t { none, sum, minimum, maximum };

/// An exponent: a number, or a hyperparameter.
struct TextExponent {
  float number = 0;
  int hyperparameter = -1;
};

/// What a backend needs to know about a semiring from text.
struct TextFacts {
  const SemiringInfo* info = nullptr;
  TextForm form = TextForm::plain;
  bool calls_functions = false;               // whose last bits differ between platforms
  bool has_long_operations = false;           // whose code takes dozens of instructions, or which are many
  std::optional<TextExponent> exponent = {};  // of all powers, if there are no other long operations
  TextJoin join = TextJoin::none;
};

/// The loops of a semiring from text, compiled. `functions` are those of TextLoops::roots, or a kernel of a GPU; `code` keeps them in
/// memory, if they do not stay there.
struct TextCode {
  std::array<void*, 2> functions = {};
  std::shared_ptr<const void> code;
};

/// Loops whose bitcode librigel_runtime.so has.
struct TextRoots {
  const char* level;                 // of the processor
  int lanes;                         // of a vector of accumulators
  std::array<const char*, 2> roots;  // the functions of a kernel
  const void* support;               // what the variable rigel_text_support points to once the code is loaded
  std::uint64_t layout;              // what the constant rigel_text_layout of the code must be
  const char* family = "";           // which bitcode of an element type: "" of contract(), "gradient_"
};
/// Those of contract().
struct TextLoops : TextRoots {
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
  Spaces spaces = 0;  // that can read it
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

/// The C++ that a text became, and its digest.
struct TextSource {
  std::string text;
  std::array<std::uint8_t, 32> digest;
};

/// An epilogue from text, as kernels call it. On hosts `function` makes `count` numbers of type `result` of as many of type `argument`; a
/// GPU's kernels are compiled with `source`.
struct TextEpilogue {
  using Function = void (*)(const void* from, int count, void* to, const TextPlace& place, const void* parameters);
  Function function = nullptr;
  Scalar argument = Scalar::f32, result = Scalar::f32;
  const std::byte* parameters = nullptr;
  std::int64_t stride = 0;  // bytes from matrix to matrix
  const TextSource* source = nullptr;
  const TextValues* values = nullptr;  // numbers of type `number`
  Scalar number = Scalar::f32;
};

/// How a GPU takes kernels.
struct TextGpu {
  const char* level;            // the architecture for which PTX is made
  std::string platform;         // all that an image depends on in addition to the PTX
  std::future<void> (*open)();  // opens the driver's compiler on a thread, while LLVM works
  std::string (*link)(const std::string& ptx);
  std::optional<TextCode> (*load)(const std::string& image);  // nothing if it is no image for this GPU
  std::string family = {};  // which bitcode of an element type: "" of cuda.simt, "mma_", "hopper_", "gradient_"
};

/// Compiles kernel number `kernel` of those in the bitcode, whose table has this layout, with an epilogue from text or none (null).
using TextCompiler =
    std::function<TextCode(std::size_t kernel, std::uint64_t layout, const TextGpu& gpu, const TextSource* epilogue)>;

/// The same of the kernels for products of an element type on tensor cores, with an epilogue from text.
using TextTileCompiler =
    std::function<TextCode(Scalar element, std::size_t kernel, std::uint64_t layout, const TextGpu& gpu)>;

}  // namespace rigel::detail

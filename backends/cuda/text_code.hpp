// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of texts on GPUs: PTX of kernels in the bitcode of librigel_runtime.so becomes machine code by the driver.
#pragma once

#include <rigel/detail/text.hpp>

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace rigel::backends::cuda {

/// What the driver makes of PTX. `linked`: machine code by its linker, which the disk keeps. `loaded`: PTX is kept, and compiled where it is
/// loaded; the driver then looks for machine code in a cache of its own. The linker takes PTX for a part of a program: a function of
/// another part might need the registers that setmaxnreg moves, so it ignores that, and kernels that need it spill.
enum class TextImage : std::uint8_t { linked, loaded };

/// The code of a text's kernels on each device that has used it.
class TextCodes {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  /// `what`: the text's owner in messages. `family`: as in detail::TextGpu. `level`: the architecture for which PTX is made; empty: sm_90 or
  /// sm_80, whatever the device has.
  explicit TextCodes(std::string what, std::string family = {}, std::string level = {}, TextImage image = TextImage::linked)
      : what_(std::move(what)), family_(std::move(family)), level_(std::move(level)), image_(image) {}

  /// The function of a kernel, with the epilogue of a digest (zeros: none); code = compile(gpu) has it if there is none yet. Throws
  /// Error(unsupported) if that would have to be while the stream is captured.
  template <class Compile>
  const void* function(int number, const Digest& epilogue, const Execution& execution, const Compile& compile) {
    const Key key(number, execution.device, epilogue);
    const void* const known = find(key);
    return known ? known : add(key, execution, compile);
  }

  const std::string& what() const { return what_; }

 private:
  using Key = std::tuple<int, int, Digest>;  // the kernel's number, the device, the epilogue
  const void* find(const Key& key);
  const void* add(const Key& key, const Execution& execution,
                  const std::function<detail::TextCode(const detail::TextGpu&)>& compile);
  void require_no_capture(const Execution& execution) const;

  std::string what_, family_, level_;
  TextImage image_;
  std::mutex mutex_;
  std::map<Key, detail::TextCode> codes_;
};

/// work(i) for i from 0 to `count`, on at most 16 threads, since a kernel takes a thread half a second.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

/// What an epilogue from text became in the kernels of a family, on each device that has used it.
class TextFunctions {
 public:
  /// `what`, `family`, `level` and `image`: as TextCodes has them.
  TextFunctions(std::string what, detail::TextTileCompiler compile, Scalar element, std::uint64_t layout, std::string family,
                std::string level = {}, TextImage image = TextImage::linked)
      : compile_(std::move(compile)),
        element_(element),
        layout_(layout),
        codes_(std::move(what), std::move(family), std::move(level), image) {}

  /// The function of a kernel, which may take `bytes` of shared memory; compiled if it is not yet. Throws as TextCodes does.
  const void* operator()(int number, const Execution& execution, int bytes);

  /// A kernel's number, and the shared memory that it may take.
  struct Need {
    int number, bytes;
  };
  /// Compiles kernels, on several threads, and returns how many.
  int compile(std::span<const Need> needs, const Execution& execution);

 private:
  detail::TextTileCompiler compile_;
  Scalar element_;
  std::uint64_t layout_;
  TextCodes codes_;
};

/// Those of a kernel whose state they are.
inline TextFunctions& text_functions_of(const Kernel<Contraction>& kernel) {
  return *static_cast<TextFunctions*>(const_cast<void*>(kernel.state.get()));
}

}  // namespace rigel::backends::cuda

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>

namespace rigel::runtime {

/// The bitcode of the loops for one element type at one level, as it was embedded when Rigel was built. At level "gpu" it is that of
/// kernels, and for the element "functions" that of functions that texts call. The bytes are a frame of zstd,
/// whose header has the size.
struct Bitcode {
  const char *element, *level, *begin, *end;
};
std::span<const Bitcode> bitcodes();

}  // namespace rigel::runtime

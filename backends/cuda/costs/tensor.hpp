// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of the passes before kernels on tensor cores.
#pragma once

#include <rigel/call.hpp>

#include <cstdint>

namespace rigel::backends::tensor::costs {

/// What a pass writes: words as they are, shorter elements as they are, or planes.
enum class Pass : std::uint8_t { words, elements, planes };

/// Seconds of a pass that reads and writes so many bytes together; 0 bytes: there is none.
double pass_seconds(const Execution& execution, double bytes, Pass pass);

}  // namespace rigel::backends::tensor::costs

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace support {

/// Counts a test, or a part of one, that cannot run here. The program prints the count and the reasons at its end.
void skip(const std::string& reason);

}  // namespace support

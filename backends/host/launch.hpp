// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/backends/host/grid.hpp>

#include <string>

namespace rigel::backends::host {

/// Runs workers on the threads of a host execution space instance. `arguments` points to the loop's Arguments.
void launch(const Execution& execution, const std::string& label, Work work, const void* arguments, const Grid& grid,
            void* workspace);

}  // namespace rigel::backends::host

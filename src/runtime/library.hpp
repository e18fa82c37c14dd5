// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/interface.hpp"

#include <string>

namespace rigel::runtime {

/// librigel_runtime.so, opened when this is first called: the first of this build in the folder of the program or
/// shared object that holds Rigel, in ../lib next to that, in the folder of libraries that Rigel was configured to be installed in, or where
/// the loader looks. Null, with a reason for each place, if there is none.
const RigelRuntime* library(std::string& reason);

}  // namespace rigel::runtime

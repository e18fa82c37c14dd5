// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/interface.hpp"

#include <string>

namespace rigel::runtime {

/// librigel_runtime.so, opened when this is first called: from the folder of the program or shared object that holds Rigel, from where it was
/// built, or from where the loader finds it. Null, with the reason, if it is missing or of another build.
const RigelRuntime* library(std::string& reason);

}  // namespace rigel::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A shared object that contains Rigel and uses the Kokkos of the program that loads it.
#include "call.hpp"

extern "C" bool plugin_is_right() { return lifetime::is_right(Kokkos::DefaultHostExecutionSpace()); }

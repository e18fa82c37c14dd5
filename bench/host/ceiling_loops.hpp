// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of ceilings, in object files of their own for each level. No Kokkos here: they would share its functions.
#pragma once

namespace bench {

/// Each function runs its loop for about a millisecond and returns how many pairs it computed.
struct Ceilings {
  double (*l1_f32)();
  double (*l1_f64)();
  double (*min_plus_f32)();
  double (*plus_times_f32)();
};

// Of the levels of x86-64 (ceiling_loops.cpp).
Ceilings ceilings_v2();
Ceilings ceilings_v3();
Ceilings ceilings_v4();

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The benchmarks' loops link and run in a program of any instruction set.
#include <bench/host/ceiling.hpp>

#include <doctest/doctest.h>

TEST_CASE("processors: loops of ceilings") {
  const bench::Ceilings loops = bench::ceilings();
  for (double (*const loop)() : {loops.l1_f32, loops.l1_f64, loops.min_plus_f32, loops.plus_times_f32}) CHECK(loop() > 0);
}

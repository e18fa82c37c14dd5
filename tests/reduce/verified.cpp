// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() of every kernel of reduce(): plain loops, the laws of the monoids, promises.
#include <rigel/registry.hpp>

#include <doctest/doctest.h>

TEST_CASE("reduce: every kernel keeps its promises") {
  const auto list = rigel::kernels({.operation = "reduce"});
  CHECK(list.size() >= 3);
  for (const auto& info : list) {
    if (info.family == "user") continue;  // another test's
    CAPTURE(info.name);
    const rigel::Verification v = rigel::verify(info.name);
    CHECK(v.problems > 0);
    CHECK_MESSAGE(v.ok, v.report);
  }
}

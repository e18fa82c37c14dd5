// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every registered kernel keeps its promises: verify() on its grid of sizes, layouts, batches and special values.
#include <rigel/detail/execution.hpp>

#include <tests/support/error.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

namespace {

// Prints on failure which kernels ran, so that a missing family is seen.
constexpr unsigned seed = 20250;

bool runs_here(const rigel::KernelInfo& info) {
  if (info.spaces & rigel::host_spaces) return true;
#ifdef KOKKOS_ENABLE_CUDA
  const int capability = rigel::detail::execution_of(Kokkos::Cuda{}).compute_capability;
  return capability >= info.min_compute_capability &&
         (info.max_compute_capability == 0 || capability <= info.max_compute_capability);
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("verify: every registered kernel") {
  int checked = 0;
  for (const auto& info : rigel::kernels()) {
    if (!runs_here(info)) {
      support::skip("kernels that need another GPU than this machine's");
      continue;
    }
    CAPTURE(info.name);
    const rigel::Verification v = rigel::verify(info.name, seed);
    CHECK(v.report == "");
    CHECK(v.ok);
    CHECK(v.problems > 20);
    ++checked;
  }
  CHECK(checked >= 100);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main program of every test executable: runs doctest between Kokkos's initialize and finalize, then prints what was
// skipped and why.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "gpu.hpp"
#include "skip.hpp"

#include <Kokkos_Core.hpp>

#include <cstdio>
#include <map>
#include <mutex>

namespace {

std::mutex skipped_mutex;
std::map<std::string, int> skipped;

}  // namespace

void support::skip(const std::string& reason) {
  const std::lock_guard lock(skipped_mutex);
  ++skipped[reason];
}

// CTest's SKIP_RETURN_CODE for these programs.
constexpr int all_skipped = 77;

int main(int argc, char** argv) {
  if (!support::has_gpu()) {
    std::printf("skipped: all tests of this program, built for CUDA: no GPU is visible, and Kokkos needs one to start\n");
    return all_skipped;
  }
  const Kokkos::ScopeGuard kokkos(argc, argv);
  doctest::Context context(argc, argv);
  const int result = context.run();
  for (const auto& [reason, count] : skipped) std::printf("skipped %d: %s\n", count, reason.c_str());
  return result;
}

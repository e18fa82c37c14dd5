// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every registered kernel of contract() keeps its promises: verify() on its grid of sizes, layouts, batches and special values.
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

TEST_CASE("verify: every registered kernel of contract()") {
  int checked = 0;
  for (const auto& info : rigel::kernels({.operation = "contract"})) {
    if (!runs_here(info)) {
      support::skip("kernels that need another GPU than this machine's");
      continue;
    }
    CAPTURE(info.name);
    rigel::Verification v;
    const auto e = support::caught([&] { v = rigel::verify(info.name, seed); });
    if (e.code == rigel::Code::unsupported && info.family.starts_with("host")) {  // the kernel declined every problem
      support::skip("kernels that need another processor than this machine's");
      continue;
    }
    if (e.code == rigel::Code::unsupported && info.variant == "skinny") {  // few_rows.cpp has problems for it
      support::skip("kernels for neighbours in memory, which no random problem of bits has");
      continue;
    }
    if (e.code == rigel::Code::unsupported && info.variant == "small_split_k") {  // few_outputs.cpp has problems for it
      support::skip("kernels for longer K than random problems have");
      continue;
    }
    CHECK(e.message == "nothing was thrown");
    CHECK(v.report == "");
    CHECK(v.ok);
    if (info.family == "host" && v.problems < 10) {  // only problems without outputs, which every processor covers
      support::skip("kernels that need another processor than this machine's");
      continue;
    }
    // Some kernels decline many problems: BLAS takes contiguous matrices without an epilogue, split_k single products,
    // skinny a few rows or columns, small_split_k few outputs and long K, and hopper's widest tiles only a C that stores sums
    // without conversion and has a multiple of four columns.
    const bool as_they_are = info.family == "cuda.hopper" && info.operands[2].layout == rigel::Layout::row_major;
    const bool takes_few = info.family == "host.blas" || info.variant == "skinny" || info.variant == "small_split_k";
    CHECK(v.problems > (takes_few ? 0 : as_they_are ? 4 : info.variant == "split_k" ? 15 : 20));
    ++checked;
  }
  CHECK(checked >= 100);
}

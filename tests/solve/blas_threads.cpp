// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The number of threads that OpenBLAS uses, which calls of several host threads set.
#include <rigel/backends/host/blas_threads.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

using rigel::backends::host::BlasThreads;

TEST_CASE("solve: OpenBLAS has one number of threads at a time") {
  if (!openblas_set_num_threads || !openblas_get_num_threads) {
    MESSAGE("skipped: the BLAS is not OpenBLAS");
    return;
  }
  const int before = openblas_get_num_threads();
  auto first = std::make_unique<BlasThreads>(1);
  std::thread([] {
    const BlasThreads equal(1);
    CHECK(openblas_get_num_threads() == 1);
  }).join();

  std::atomic<int> found = 0, found_later = 0;
  std::thread other([&] {
    const BlasThreads two(2);
    found = openblas_get_num_threads();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(found == 0);  // it waits
  CHECK(openblas_get_num_threads() == 1);
  std::thread later([&] {
    const BlasThreads one(1);
    found_later = openblas_get_num_threads();
  });
  first.reset();
  other.join();
  later.join();
  CHECK(found == 2);
  CHECK(found_later == 1);
  CHECK(openblas_get_num_threads() == before);
}

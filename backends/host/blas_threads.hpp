// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mutex>

// The functions that set the number of threads, if the BLAS is OpenBLAS.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int);
__attribute__((weak)) int openblas_get_num_threads(void);
}

namespace rigel::backends::host {

/// While an object lives, OpenBLAS uses this many threads. Several may live at a time, on several host threads: the first one's
/// number then holds for all.
class BlasThreads {
 public:
  explicit BlasThreads(int count) {
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    const std::lock_guard lock(mutex_);
    if (users_++ > 0) return;
    before_ = openblas_get_num_threads();
    openblas_set_num_threads(count);
  }
  ~BlasThreads() {
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) openblas_set_num_threads(before_);
  }
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  inline static std::mutex mutex_;
  inline static int users_ = 0, before_ = 1;
};

}  // namespace rigel::backends::host

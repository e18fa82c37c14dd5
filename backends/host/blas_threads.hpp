// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

// The functions that set the number of threads and name the processor that the loops are for, if the BLAS is OpenBLAS.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) char* openblas_get_corename(void);
}

namespace rigel::backends::host {

/// While an object lives, OpenBLAS uses this many threads. The number is one for the whole process, and results depend on it. So
/// objects of several host threads live at the same time only if their numbers are equal; others wait, in the order in which they
/// came. A host thread has one object at a time.
class BlasThreads {
 public:
  explicit BlasThreads(int count) {
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    State& s = state();
    std::unique_lock lock(s.mutex);
    const std::uint64_t ticket = s.arrived++;
    s.changed.wait(lock, [&] { return ticket == s.admitted && (s.users == 0 || s.count == count); });
    if (s.users == 0) {
      s.before = openblas_get_num_threads();
      openblas_set_num_threads(count);
      s.count = count;
    }
    ++s.users;
    ++s.admitted;
    s.changed.notify_all();
  }
  ~BlasThreads() {
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    State& s = state();
    const std::lock_guard lock(s.mutex);
    if (--s.users > 0) return;
    openblas_set_num_threads(s.before);
    s.changed.notify_all();
  }
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t arrived = 0, admitted = 0;
    int users = 0, count = 1, before = 1;
  };
  static State& state() {
    static State* const one = new State;  // never destroyed: calls may come from static destructors
    return *one;
  }
};

}  // namespace rigel::backends::host

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/runtime_compile.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace rigel::runtime {

void detail::compile_all(std::span<const Semiring> semirings, const std::function<void(const Semiring&)>& compile,
                         const Progress& progress, int threads) {
  if (threads < 0)
    throw Error(Code::invalid_argument,
                "runtime::compile: threads is " + std::to_string(threads) + ", expected a number of threads, or 0");
  std::vector<std::exception_ptr> failures(semirings.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < semirings.size(); i = next++) {
      try {
        compile(semirings[i]);
        const std::lock_guard lock(mutex);
        ++done;
        if (progress) progress(done, semirings.size(), semirings[i]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 1u);
  std::size_t count = std::min(threads > 0 ? static_cast<std::size_t>(threads) : processors, semirings.size());
  std::vector<std::thread> others;
  while (others.size() + 1 < count) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      count = 0;  // those that there are do it
    }
  }
  work();
  for (std::thread& one : others) one.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace rigel::runtime

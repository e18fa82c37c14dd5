// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/detail/shared_work.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace rigel::detail {

void share_work(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 1u);
  const std::size_t most = std::min(threads > 0 ? static_cast<std::size_t>(threads) : processors, count);
  std::vector<std::thread> others;
  const auto start = [&] {
    try {
      others.emplace_back(take);
      return true;
    } catch (const std::exception&) {  // no thread, or no memory for one
      return false;                    // those that began do it, and this one
    }
  };
  while (others.size() + 1 < most && start()) continue;
  take();
  for (std::thread& one : others) one.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/detail/shared_work.hpp>
#include <rigel/runtime_compile.hpp>

#include <mutex>

namespace rigel::runtime {

void detail::compile_all(std::span<const Semiring> semirings, const std::function<void(const Semiring&)>& compile,
                         const Progress& progress, int threads) {
  if (threads < 0)
    throw Error(Code::invalid_argument,
                "runtime::compile: threads is " + std::to_string(threads) + ", expected a number of threads, or 0");
  std::mutex mutex;
  std::size_t done = 0;
  rigel::detail::share_work(semirings.size(), threads, [&](std::size_t i) {
    compile(semirings[i]);
    const std::lock_guard lock(mutex);
    ++done;
    if (progress) progress(done, semirings.size(), semirings[i]);
  });
}

}  // namespace rigel::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/solve.hpp>

#include <string>

namespace rigel::backends::solver {

/// Launches of a call. Each throws if it fails.
class Launches {
 public:
  Launches(const Kernel<Solve>& kernel, const Solve& p) : kernel_(kernel), p_(p) {}

  template <class... Parameters, class... Arguments>
  void operator()(void (*function)(Parameters...), std::int64_t blocks, int threads, int shared,
                  const Arguments&... arguments) const {
    // All that the device has: the attribute is the function's, whose calls on other threads may need more.
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(function), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               p_.execution.shared_memory),
          ": shared memory of ");
    function<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(shared), stream()>>>(arguments...);
    check(cudaGetLastError(), ": launch of ");
  }

  cudaStream_t stream() const { return static_cast<cudaStream_t>(p_.execution.stream); }

 private:
  void check(cudaError_t status, const char* what) const {
    cuda::check(status, std::string(p_.function) + what + kernel_.info.name);
  }
  const Kernel<Solve>& kernel_;
  const Solve& p_;
};

}  // namespace rigel::backends::solver

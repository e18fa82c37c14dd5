// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registered kernels that can run on an execution space of this machine.
#pragma once

#include <rigel/detail/execution.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace support {

template <class Exec>
std::vector<rigel::KernelInfo> kernels_on(const Exec& exec, std::string_view semiring, rigel::Scalar element) {
  const rigel::Execution e = rigel::detail::execution_of(exec);
  return rigel::kernels(
      {.semiring = semiring, .element = element, .spaces = rigel::bit(e.space), .compute_capability = e.compute_capability});
}

}  // namespace support

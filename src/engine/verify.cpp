// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify(): finds the kernel of a name, whatever its operation, and runs the operation's own verify().
#include "../operations/verify.hpp"
#include "registry.hpp"

#include <rigel/detail/execution.hpp>

#include <Kokkos_Core.hpp>

#include <optional>

namespace rigel {

void engine::fail(Verification& result, const KernelInfo& info, Space space, unsigned seed, const std::string& problem,
                  const std::string& what) {
  result.ok = false;
  constexpr std::size_t enough = 2000;  // characters of report
  if (result.report.size() < enough)
    result.report += info.name + " on " + name(space) + ", seed " + std::to_string(seed) + ", problem " +
                     std::to_string(result.problems) + ", " + problem + ": " + what + '\n';
}

Verification verify(std::string_view name, unsigned seed) {
  // In any space, Kokkos allocates and fills the operands, and may launch on the host for that.
  const auto held = [&](const auto& kernel) {
    detail::require_launch("verify", detail::execution_of(Kokkos::DefaultHostExecutionSpace{}));
    Verification result = engine::verify(kernel, seed);
    if (result.problems == 0)
      throw Error(Code::unsupported,
                  "verify: '" + std::string(name) + "' covers no problem in any of this machine's spaces");
    return result;
  };
  std::optional<Verification> result;
  engine::for_each_operation([&]<Problem P>(engine::OperationRegistry<P>&) {
    if (result) return;
    if (const Kernel<P>* kernel = engine::find_kernel<P>(name)) result = held(*kernel);
  });
  if (!result) throw Error(Code::not_found, "verify: no kernel is named '" + std::string(name) + "'");
  return *result;
}

}  // namespace rigel

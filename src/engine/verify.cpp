// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify(): runs the own one of an operation, for the kernel of a name, or for a kernel from outside.
#include "../operations/verify.hpp"
#include "registry.hpp"

#include <rigel/detail/execution.hpp>
#include <rigel/outside_kernels.hpp>

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

namespace {

template <Problem P>
Verification held(const Kernel<P>& kernel, unsigned seed) {
  // In any space, Kokkos allocates and fills the operands, and may launch on the host for that.
  detail::require_launch("verify", detail::execution_of(Kokkos::DefaultHostExecutionSpace{}));
  Verification result = engine::verify(kernel, seed);
  if (result.problems == 0)
    throw Error(Code::unsupported, "verify: '" + kernel.info.name + "' covers no problem in any of this machine's spaces");
  return result;
}

// Of a kernel that perhaps nobody has checked.
template <Problem P>
Verification held_from_outside(const Kernel<P>& kernel, unsigned seed) {
  if (!kernel.info.facts) {
    const Kernel<P> complete = engine::completed(kernel, "verify");
    engine::check_kernel(complete, "verify");
    return held(complete, seed);
  }
  engine::check_kernel(kernel, "verify");
  return held(kernel, seed);
}

}  // namespace

Verification verify(std::string_view name, unsigned seed) {
  std::optional<Verification> result;
  engine::for_each_operation([&]<Problem P>(engine::OperationRegistry<P>&) {
    if (result) return;
    if (const Kernel<P>* kernel = engine::find_kernel<P>(name)) result = held(*kernel, seed);
  });
  if (!result) throw Error(Code::not_found, "verify: no kernel is named '" + std::string(name) + "'");
  return *result;
}

Verification verify(const Kernel<Contraction>& kernel, unsigned seed) { return held_from_outside(kernel, seed); }
Verification verify(const Kernel<Solve>& kernel, unsigned seed) { return held_from_outside(kernel, seed); }
Verification verify(const Kernel<Gradient>& kernel, unsigned seed) { return held_from_outside(kernel, seed); }
Verification verify(const Kernel<Reduction>& kernel, unsigned seed) { return held_from_outside(kernel, seed); }

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registered kernels of contract() that can run on an execution space of this machine.
#pragma once

#include "error.hpp"

#include <rigel/detail/execution.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace support {

template <class Exec>
std::vector<rigel::KernelInfo> kernels_on(const Exec& exec, std::string_view semiring, rigel::Scalar element,
                                          rigel::Scalar accumulator = rigel::Scalar::other) {
  const rigel::Execution e = rigel::detail::execution_of(exec);
  return rigel::kernels({.operation = "contract",
                         .semiring = semiring,
                         .element = element,
                         .accumulator = accumulator,
                         .spaces = rigel::bit(e.space),
                         .compute_capability = e.compute_capability});
}

/// The families with loops for users' functors on an execution space, and "" for the chosen one.
template <class Exec>
std::vector<std::string> families_on(const Exec& exec) {
  std::vector<std::string> list = {""};
  for (const char* family : {"reference", "portable", "host", "cuda.simt"})
    for (const auto& info : kernels_on(exec, "plus_times", rigel::Scalar::f32))
      if (info.family == family && list.back() != family) list.push_back(family);
  return list;
}

/// Runs `call` of a named kernel; false if the kernel declines the problem. Only these kernels may decline:
///   - BLAS, which takes contiguous matrices and no epilogue;
///   - code for another processor;
///   - split_k, which takes single products;
///   - kernels that say in KernelInfo that they do not accumulate;
///   - skinny, which takes a few rows or columns, and a larger operand with neighbours in memory;
///   - small_split_k, which takes single products of few outputs and long K;
///   - tensor-core kernels that count bits along K, or store sums without conversion into aligned rows of C.
template <class Call>
bool ran(const rigel::KernelInfo& info, const Call& call) {
  try {
    call();
    return true;
  } catch (const rigel::Error& e) {
    using rigel::Decline;
    const Decline why = e.decline();
    const bool on_tensor_cores = info.family == "cuda.mma" || info.family == "cuda.hopper";
    const bool may_decline =
        (info.family == "host.blas" &&
         (why == Decline::layout || why == Decline::epilogue || why == Decline::result || why == Decline::extents)) ||
        (info.family == "host" && why == Decline::processor) || (info.variant == "split_k" && why == Decline::batches) ||
        (!info.accumulates && why == Decline::accumulate) ||
        (info.variant == "skinny" && (why == Decline::layout || why == Decline::extents)) ||
        (info.variant == "small_split_k" && (why == Decline::batches || why == Decline::extents)) ||
        (on_tensor_cores &&
         (why == Decline::epilogue || why == Decline::layout || why == Decline::result || why == Decline::accumulate));
    if (!may_decline || e.code() != rigel::Code::unsupported) throw;
    return false;
  }
}

/// Checks that a kernel that rounds terms is refused, with a message that says why, until options.precision admits it.
/// `call(options)` calls contract() or another function with these options, which name the kernel.
template <class Options, class Call>
void check_asked_for(const rigel::KernelInfo& info, const Call& call) {
  CHECK(info.precision > rigel::Precision::accumulator);
  for (auto p = rigel::Precision::accumulator; p != info.precision; p = rigel::Precision(int(p) + 1)) {
    CAPTURE(rigel::name(p));
    const auto e = caught([&] { call(Options{.precision = p, .kernel = info.name}); });
    CHECK(e.code == rigel::Code::unsupported);
    CHECK(e.lacks({info.name.c_str(), "options.precision", "(precision ", rigel::name(info.precision)}) == "");
  }
  call(Options{.precision = info.precision, .kernel = info.name});
}

}  // namespace support

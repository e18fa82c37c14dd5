// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registered kernels that can run on an execution space of this machine.
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
  return rigel::kernels({.semiring = semiring,
                         .element = element,
                         .accumulator = accumulator,
                         .spaces = rigel::bit(e.space),
                         .compute_capability = e.compute_capability});
}

/// The families whose loops a user's functor gets on an execution space, and "" for whichever is chosen.
template <class Exec>
std::vector<std::string> families_on(const Exec& exec) {
  std::vector<std::string> list = {""};
  for (const char* family : {"reference", "portable", "host", "cuda.simt"})
    for (const auto& info : kernels_on(exec, "plus_times", rigel::Scalar::f32))
      if (info.family == family && list.back() != family) list.push_back(family);
  return list;
}

/// Runs `call` of a named kernel; false where the kernel declines the problem. Only six may: a BLAS, which takes unit strides
/// and stores results as they are; code for processors other than this one; split_k, which cuts single products; tensor
/// cores, which count bits along k; their tiles whose sums go into C as they are; and those whose grids number C's columns anew.
template <class Call>
bool ran(const rigel::KernelInfo& info, const Call& call) {
  try {
    call();
    return true;
  } catch (const rigel::Error& e) {
    const std::string_view why = e.what();
    const bool may_decline = info.family == "host.blas" || why.find("this processor") != std::string_view::npos ||
                             why.find("a batch of products has no need of parts") != std::string_view::npos ||
                             why.find("tensor cores count the bits along k") != std::string_view::npos ||
                             why.find("C is not the sums as they are") != std::string_view::npos ||
                             why.find("four columns of C do not lie together") != std::string_view::npos ||
                             why.find("C has more columns than a grid holds") != std::string_view::npos;
    if (!may_decline || e.code() != rigel::Code::unsupported) throw;
    return false;
  }
}

/// A kernel that rounds terms is refused, by a message that says why, until options.precision allows what it does.
/// `call(options)`, of contract()'s or another function's options, names the kernel as these do.
template <class Options, class Call>
void check_asked_for(const rigel::KernelInfo& info, const Call& call) {
  CHECK(info.precision != rigel::Precision::accumulator);
  for (auto p = rigel::Precision::accumulator; p != info.precision; p = rigel::Precision(int(p) + 1)) {
    CAPTURE(rigel::name(p));
    const auto e = caught([&] { call(Options{.precision = p, .kernel = info.name}); });
    CHECK(e.code == rigel::Code::unsupported);
    CHECK(e.lacks({info.name.c_str(), "options.precision", "(precision ", rigel::name(info.precision)}) == "");
  }
  call(Options{.precision = info.precision, .kernel = info.name});
}

}  // namespace support

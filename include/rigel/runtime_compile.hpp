// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles many semirings from text at once, ahead of their first calls.
#pragma once

#include <rigel/runtime.hpp>

#include <cstddef>
#include <functional>
#include <span>

namespace rigel::runtime {

/// What is called after each semiring of a list: how many are done, of how many, and which one it was.
using Progress = std::function<void(std::size_t done, std::size_t count, const Semiring& semiring)>;

namespace detail {
void compile_all(std::span<const Semiring> semirings, const std::function<void(const Semiring&)>& compile,
                 const Progress& progress, int threads);
}  // namespace detail

/// Semiring::compile<Exec>() of each semiring, on several threads (0: as many as the processor has). `progress` is called from any of them, by
/// one at a time. If some fail, the others are compiled nevertheless; then throws what the first of the list that failed has thrown.
///
///     rigel::runtime::compile<Exec>(semirings, [](std::size_t done, std::size_t count, const auto& s) { ... });
template <class Exec>
void compile(std::span<const Semiring> semirings, const Progress& progress = {}, int threads = 0) {
  detail::compile_all(semirings, [](const Semiring& semiring) { semiring.compile<Exec>(); }, progress, threads);
}

}  // namespace rigel::runtime

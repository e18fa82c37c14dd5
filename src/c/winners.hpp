// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The k that won, as contract_backward() takes it, for semirings of the zoo: instantiated once for the spaces of handles. Each semiring is
// compiled in a file of its own.
#pragma once

#include "handle.hpp"

#include <rigel/contract_backward.hpp>

#include <functional>
#include <span>

namespace rigel::c {

/// One semiring: elements of f16 and bf16 are widened to its f32, which changes no winner.
struct Winners {
  std::string_view semiring;
  Scalar element;
  detail::WinnerSlope slope;
  /// use(pattern) with the problem whose results are the winning k.
  void (*with)(const rigel_handle&, const char* function, const std::function<void(const Contraction&)>& use);
};
std::span<const Winners> least_sums();      // min_plus
std::span<const Winners> largest_sums();    // max_plus
std::span<const Winners> largest_minima();  // max_min
std::span<const Winners> least_maxima();    // min_max

template <class S>
constexpr Winners winners() {
  return {S::name, rigel::scalar_of<typename S::element>, detail::Backward<S>::slope,
          [](const rigel_handle& handle, const char* function, const std::function<void(const Contraction&)>& use) {
            with_instance(handle, [&](const auto& exec) { detail::with_winners(exec, S{}, function, use); });
          }};
}

}  // namespace rigel::c

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure() for the semirings of the zoo that have closures, instantiated once for the spaces of handles: the default host space and
// CUDA. Each list is compiled in a file of its own.
#pragma once

#include "handle.hpp"

#include <rigel/closure.hpp>

#include <span>

namespace rigel::c {

/// closure() of one semiring on operands; P has no data if predecessors are not kept.
struct Closed {
  std::string_view semiring;
  Scalar element;
  ClosureReport (*run)(const rigel_handle&, const Operand& d, const Operand& p, const ClosureOptions&);
  std::size_t (*bytes)(const rigel_handle&, const Operand& d, const Operand& p, const ClosureOptions&);
};

/// Without predecessors.
std::span<const Closed> sums_of_paths();         // min_plus, max_plus
std::span<const Closed> bottlenecks();           // max_min, min_max
std::span<const Closed> products_along_paths();  // max_times, or_and
std::span<const Closed> least_products();  // min_times, whose tiles are compiled for closure() (rigel/detail/absorbing.hpp)
/// With predecessors of i32.
std::span<const Closed> with_predecessors();

template <class S, class Index, class Use>
auto on_space(const rigel_handle& handle, const Operand& d, const Operand& p, const ClosureOptions& options,
              const Use& use) {
  return with_instance(handle,
                       [&](const auto& exec) { return detail::with_closure_on<Index>(exec, S{}, d, p, options, use); });
}

template <class S, class Index = detail::no_index>
constexpr Closed closed() {
  static_assert(ClosedSemiring<S> && in_zoo<S>);
  return {S::name, rigel::scalar_of<typename S::element>,
          [](const rigel_handle& handle, const Operand& d, const Operand& p, const ClosureOptions& options) {
            return on_space<S, Index>(handle, d, p, options, detail::run_closure);
          },
          [](const rigel_handle& handle, const Operand& d, const Operand& p, const ClosureOptions& options) {
            return on_space<S, Index>(handle, d, p, options, detail::closure_bytes);
          }};
}

}  // namespace rigel::c

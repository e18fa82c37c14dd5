// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of semirings that the library holds none for, those of rigel/dissimilarities.hpp, on the spaces of handles: compiled here,
// into a D of each type in results_of<S>.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/dissimilarities.hpp>

#include <span>

namespace rigel::c {

template <class S>
struct results {
  using type = type_list<result_t<S>>;
};
template <class Measure>
using measure_of_codes = truth_measure<std::uint32_t, Measure>;
template <class Measure>
struct results<measure_of_codes<Measure>> {
  using type = type_list<float, double>;
};
template <class S>
using results_of = typename results<S>::type;

/// The kernels of one semiring. The list lives as long as the program.
template <class S, class Value>
std::span<const Kernel<Contraction>> compiled_kernels(Space space);

}  // namespace rigel::c

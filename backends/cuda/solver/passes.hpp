// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/detail/solve.hpp>

#include <cuda_runtime_api.h>

namespace rigel::backends::solver {

/// The systems in the workspace, as a library's routines or blocked.hpp's kernels take them.
template <class T>
struct Packed {
  detail::Strided<T> factors, sides;  // n × n, of Cholesky the lower triangle and zeros; n × m
  T* values;                          // n for each system
  std::int32_t* infos;
  T **of_factors, **of_sides;   // pointers to each of them, for batched routines; null: not wanted
  bool by_reciprocals = false;  // of pivots: those whose reciprocal is infinite cannot be divided by
};

/// Packs A and B, clears the infos, and sets the pointers.
template <class T>
void pack(const detail::SolveArguments<T>& g, const Packed<T>& packed, cudaStream_t stream);
/// Stores the results and the infos. What failed gets NaN: an info that is not 0, or a pivot that cannot be divided by.
template <class T>
void unpack(const detail::SolveArguments<T>& g, const Packed<T>& packed, cudaStream_t stream);

}  // namespace rigel::backends::solver

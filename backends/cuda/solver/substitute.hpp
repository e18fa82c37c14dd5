// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Triangular systems whose factors lie in shared memory, column-major. A warp takes a right side: lane i holds rows i, i + 32, …,
// and the unknown that is solved goes to all lanes by a shuffle. No barrier is needed.
#pragma once

#include <rigel/backends/cuda/solver/divisor.hpp>
#include <rigel/detail/solve.hpp>

namespace rigel::backends::solver {

/// A factor in shared memory: element (i, j) at data[j·leading + i], and the reciprocals of its diagonal.
template <class T>
struct Factor {
  const T* data;
  const T* reciprocals;
  int n, leading;
  __device__ T operator()(int i, int j) const { return data[j * leading + i]; }
};

/// Solves with a triangle, in ascending or descending order of the unknowns. `unit`: its diagonal is 1. `turned`: the triangle is
/// that of the transpose. `slots` ≥ n / 32 rows for each lane. `all_serve`: the reciprocals of all pivots.
template <bool ascending, bool unit, bool turned, bool all_serve, int slots, class T>
__device__ __forceinline__ void solve_triangle(const Factor<T>& f, T (&x)[slots], int lane) {
#pragma unroll
  for (int step = 0; step < slots; ++step) {
    const int slot = ascending ? step : slots - 1 - step;
    for (int i = 0; i < 32; ++i) {
      const int owner = ascending ? i : 31 - i, k = 32 * slot + owner;
      if (k >= f.n) continue;
      T value = __shfl_sync(~0u, x[slot], owner);
      if constexpr (!unit && all_serve)
        value *= f.reciprocals[k];
      else if constexpr (!unit)
        value = Divisor<T>(f(k, k), f.reciprocals[k]).divide(value);
      if (lane == owner) x[slot] = value;
#pragma unroll
      for (int s = 0; s < slots; ++s) {
        if (ascending ? s < slot : s > slot) continue;
        const int row = 32 * s + lane;
        const bool left = ascending ? row > k && row < f.n : row < k;
        if (left) x[s] = fma(-(turned ? f(k, row) : f(row, k)), value, x[s]);
      }
    }
  }
}

template <bool lu, bool all_serve, int slots, class T>
__device__ __forceinline__ void substitute_with(const detail::SolveArguments<T>& g, std::int64_t l, const Factor<T>& f,
                                                const int* rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warps = static_cast<int>(blockDim.x) / 32;
  for (std::int64_t j = threadIdx.x / 32; j < g.m; j += warps) {
    T x[slots];
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int row = 32 * s + lane;
      x[s] = row < f.n ? g.b.at(l, lu ? rows[row] : row, j) : T(0);
    }
    solve_triangle<true, lu, false, all_serve, slots>(f, x, lane);
    solve_triangle<false, false, !lu, all_serve, slots>(f, x, lane);
    __syncwarp();  // X may be B: all lanes have read their rows
#pragma unroll
    for (int s = 0; s < slots; ++s) {
      const int row = 32 * s + lane;
      if (row < f.n) g.x.at(l, row, j) = x[s];
    }
  }
}

/// X(l) from B(l) by the warps of a block. Row i of the factor belongs to row rows[i] of B, or to row i if there are no `rows`.
template <bool lu, int slots, class T>
__device__ __forceinline__ void substitute(const detail::SolveArguments<T>& g, std::int64_t l, const Factor<T>& f,
                                           const int* rows) {
  bool serve = true;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < f.n; i += 32) serve = serve && serves(f.reciprocals[i]);
  if (__all_sync(~0u, serve))
    substitute_with<lu, true, slots>(g, l, f, rows);
  else
    substitute_with<lu, false, slots>(g, l, f, rows);
}

}  // namespace rigel::backends::solver

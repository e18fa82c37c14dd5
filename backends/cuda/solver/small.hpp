// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small systems: a block factorises one matrix and solves with it, in one launch, whatever the strides. The matrix is cut
// cyclically: of grid × grid threads, thread (y, x) holds in registers the elements (y + grid·r, x + grid·c), tiles × tiles of them.
// A step of the right-looking factorisation passes one column (for LU one row, too) through shared memory, in two buffers, so that
// one barrier (for LU two) ends it. The factor then goes to shared memory, and warps substitute.
#pragma once

#include <rigel/backends/cuda/solver/substitute.hpp>

#include <limits>

namespace rigel::backends::solver {

/// How a matrix of order up to grid · tiles is cut.
template <int edge, int of_thread>
struct Cut {
  static constexpr int grid = edge, tiles = of_thread, threads = edge * edge, most = edge * of_thread;
  static constexpr int slots = (most + 31) / 32;  // rows of a lane while a warp substitutes
  /// Columns in shared memory begin in different banks.
  static constexpr int leading(int n) { return n | 1; }
  template <class T>
  static constexpr int shared_bytes(int n, bool with_factor = true) {
    return static_cast<int>(sizeof(T)) * ((with_factor ? leading(n) * n : 0) + n + 3 * most) +
           static_cast<int>(sizeof(int)) * (n + 2);
  }
};

/// A block's shared memory, with or without a place for the factor.
template <class T, class Cut>
struct Shared {
  T *factor, *reciprocals, *columns, *row;
  int *rows, *info;  // rows[k]: which row of A is the k-th of the factor
  __device__ explicit Shared(int n, bool with_factor = true) {
    extern __shared__ __align__(16) unsigned char bytes[];
    factor = reinterpret_cast<T*>(bytes);
    reciprocals = factor + (with_factor ? Cut::leading(n) * n : 0);
    columns = reciprocals + n;
    row = columns + 2 * Cut::most;
    rows = reinterpret_cast<int*>(row + Cut::most);
    info = rows + n;
  }
};

template <class Cut>
struct Place {
  int y = static_cast<int>(threadIdx.x) % Cut::grid, x = static_cast<int>(threadIdx.x) / Cut::grid;
  __device__ int row(int r) const { return y + Cut::grid * r; }
  __device__ int column(int c) const { return x + Cut::grid * c; }
};

/// The lower triangle of L·Lᵀ = A, in the registers that held A's. Returns the info, which is the same in all threads.
template <class Cut, class T>
__device__ __forceinline__ int factor_cholesky(T (&a)[Cut::tiles][Cut::tiles], int n, const Place<Cut>& at,
                                               const Shared<T, Cut>& shared) {
  constexpr int tiles = Cut::tiles;
#pragma unroll
  for (int kt = 0; kt < tiles; ++kt) {
    for (int kk = 0; kk < Cut::grid; ++kk) {
      const int k = kt * Cut::grid + kk;
      if (k >= n) return 0;
      T* const column = shared.columns + k % 2 * Cut::most;
      if (at.x == kk)
#pragma unroll
        for (int r = kt; r < tiles; ++r) column[at.row(r)] = a[r][kt];
      __syncthreads();
      const T pivot = column[k];
      if (!detail::is_pivot(Factorisation::cholesky, pivot)) return k + 1;
      const T root = sqrt(pivot), reciprocal = T(1) / root;
      if (threadIdx.x == 0) shared.reciprocals[k] = reciprocal;
      T left[tiles], right[tiles];
#pragma unroll
      for (int t = kt; t < tiles; ++t) {
        left[t] = column[at.row(t)] * reciprocal;
        right[t] = column[at.column(t)] * reciprocal;
      }
      if (at.x == kk)
#pragma unroll
        for (int r = kt; r < tiles; ++r) a[r][kt] = at.row(r) == k ? root : left[r];
      // What lies above the diagonal is computed as well, and never read.
#pragma unroll
      for (int c = kt; c < tiles; ++c)
        if (c > kt || at.x > kk)
#pragma unroll
          for (int r = c; r < tiles; ++r) a[r][c] = fma(-left[r], right[c], a[r][c]);
    }
  }
  return 0;
}

/// P·A = L·U by rows that stay where they are: at step k the largest element of column k among the rows that were no pivot yet
/// names the pivot row; the first one of equally large ones. Returns the info.
template <class Cut, class T>
__device__ __forceinline__ int factor_lu(T (&a)[Cut::tiles][Cut::tiles], int (&position)[Cut::tiles], int n,
                                         const Place<Cut>& at, const Shared<T, Cut>& shared) {
  constexpr int tiles = Cut::tiles;
#pragma unroll
  for (int kt = 0; kt < tiles; ++kt) {
    for (int kk = 0; kk < Cut::grid; ++kk) {
      const int k = kt * Cut::grid + kk;
      if (k >= n) return 0;
      T* const column = shared.columns + k % 2 * Cut::most;
      // Each group of `grid` neighbouring lanes looks at a column of its own; only that of column k counts.
      T largest = -1;
      int pivot_row = -1;
#pragma unroll
      for (int r = 0; r < tiles; ++r)
        if (position[r] < 0 && at.row(r) < n && abs(a[r][kt]) > largest) {
          largest = abs(a[r][kt]);
          pivot_row = at.row(r);
        }
#pragma unroll
      for (int distance = Cut::grid / 2; distance > 0; distance /= 2) {
        const T other = __shfl_xor_sync(~0u, largest, distance);
        const int other_row = __shfl_xor_sync(~0u, pivot_row, distance);
        if (other > largest || (other == largest && other_row < pivot_row)) {
          largest = other;
          pivot_row = other_row;
        }
      }
      if (at.x == kk) {
#pragma unroll
        for (int r = 0; r < tiles; ++r) column[at.row(r)] = a[r][kt];
        if (at.y == 0) shared.info[k % 2] = pivot_row;
      }
      __syncthreads();
      const int p = shared.info[k % 2];
      if (p < 0 || !detail::is_pivot(Factorisation::lu, column[p])) return k + 1;
#pragma unroll
      for (int r = 0; r < tiles; ++r)
        if (at.row(r) == p) {
          position[r] = k;
#pragma unroll
          for (int c = 0; c < tiles; ++c) shared.row[at.column(c)] = a[r][c];
        }
      __syncthreads();
      const Divisor<T> pivot(column[p]);
      if (threadIdx.x == 0) {
        shared.reciprocals[k] = pivot.divide(T(1));
        shared.rows[k] = p;
      }
      T factor[tiles];
#pragma unroll
      for (int r = 0; r < tiles; ++r) {
        factor[r] = position[r] < 0 ? pivot.divide(column[at.row(r)]) : T(0);
        if (at.x == kk && position[r] < 0) a[r][kt] = factor[r];
      }
#pragma unroll
      for (int c = kt; c < tiles; ++c)
        if (c > kt || at.x > kk) {
          const T of_pivot = shared.row[at.column(c)];
#pragma unroll
          for (int r = 0; r < tiles; ++r) a[r][c] = fma(-factor[r], of_pivot, a[r][c]);
        }
    }
  }
  return 0;
}

/// One system of g, by a block.
template <class T, class Cut, Factorisation factorisation>
__global__ void __launch_bounds__(Cut::threads, 1) solve_small(const __grid_constant__ detail::SolveArguments<T> g) {
  constexpr int tiles = Cut::tiles;
  constexpr bool lu = factorisation == Factorisation::lu;
  const std::int64_t l = blockIdx.x;
  const int n = static_cast<int>(g.n), leading = Cut::leading(n);
  const Shared<T, Cut> shared(n);
  const Place<Cut> at;
  T a[tiles][tiles];
  int position[tiles], info = 0;  // of a thread's rows among the pivots of LU; −1: none yet
#pragma unroll
  for (int r = 0; r < tiles; ++r) {
    position[r] = -1;
#pragma unroll
    for (int c = 0; c < tiles; ++c)
      a[r][c] =
          at.row(r) < n && at.column(c) < n && (lu || at.column(c) <= at.row(r)) ? g.a.at(l, at.row(r), at.column(c)) : T(0);
  }
  if constexpr (lu) {
    info = factor_lu<Cut>(a, position, n, at, shared);
  } else if (g.task != Solve::Task::substitute) {
    info = factor_cholesky<Cut>(a, n, at, shared);
  } else {
    // The first element of the diagonal that cannot be divided by, among all threads.
    if (threadIdx.x == 0) *shared.info = n + 1;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < tiles; ++r)
      if (at.x == at.y && at.row(r) < n) {
        shared.reciprocals[at.row(r)] = T(1) / a[r][r];
        if (!detail::is_pivot(factorisation, a[r][r])) atomicMin(shared.info, at.row(r) + 1);
      }
    __syncthreads();
    info = *shared.info > n ? 0 : *shared.info;
  }
  if (g.infos.data && threadIdx.x == 0) g.infos.at(l, 0, 0) = info;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  if (g.task == Solve::Task::factor) {
#pragma unroll
    for (int r = 0; r < tiles; ++r)
#pragma unroll
      for (int c = 0; c < tiles; ++c)
        if (at.row(r) < n && at.column(c) < n)
          g.x.at(l, at.row(r), at.column(c)) = info != 0 ? nan : at.column(c) <= at.row(r) ? a[r][c] : T(0);
    return;
  }
  if (info != 0) {
    for (std::int64_t i = threadIdx.x; i < n * g.m; i += Cut::threads) g.x.at(l, i / g.m, i % g.m) = nan;
    return;
  }
#pragma unroll
  for (int r = 0; r < tiles; ++r)
#pragma unroll
    for (int c = 0; c < tiles; ++c)
      if (at.row(r) < n && at.column(c) < n)
        shared.factor[at.column(c) * leading + (lu ? position[r] : at.row(r))] = a[r][c];
  __syncthreads();
  substitute<lu, Cut::slots>(g, l, Factor<T>{shared.factor, shared.reciprocals, n, leading}, shared.rows);
}

}  // namespace rigel::backends::solver

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What factorisations by blocks share: rows that are solved with a triangle, and updates, which are contract()'s operation.
#pragma once

#include <rigel/backends/cuda/inner_products.hpp>
#include <rigel/backends/cuda/solver/divisor.hpp>
#include <rigel/backends/cuda/solver/launches.hpp>
#include <rigel/detail/solve.hpp>
#include <rigel/semirings.hpp>

#include <utility>

namespace rigel::backends::solver {

using detail::Strided;

/// The largest triangle of RowSolver.
constexpr int block_width = 128;

/// A triangle that rows are solved with: rows·L⁻ᵀ in ascending, rows·L⁻¹ in descending order of the unknowns. In the kind
/// `unit_ascending` L's diagonal is 1, and its order at most 32.
enum class Triangular { ascending, unit_ascending, descending };

/// A triangle in shared memory, and warps that solve rows with it. Lane i holds a row's unknowns i, i + 32, …; the one that is known
/// goes to all lanes by a shuffle, and what it leaves of the others is the same memory for all rows of the warp.
template <class T, Triangular kind>
struct RowSolver {
  static constexpr bool descending = kind == Triangular::descending;
  static constexpr int warps = 8, threads = 32 * warps, rows_of_warp = 8, rows_of_block = warps * rows_of_warp;
  static constexpr int width = kind == Triangular::unit_ascending ? 32 : block_width;  // of the largest triangle
  static constexpr int slots = width / 32, leading = width + 1, pitch = 36;
  static constexpr int shared_bytes = static_cast<int>(sizeof(T)) * (width * (leading + 1) + warps * rows_of_warp * pitch);

  T* steps;  // row k: what step k subtracts from the unknowns after it, for each unit of its own; the pivot; zeros elsewhere
  T* reciprocals;  // of the pivots
  T* own;          // of a warp: a slot of its rows

  __device__ explicit RowSolver(int warp) {
    extern __shared__ __align__(16) unsigned char bytes[];
    steps = reinterpret_cast<T*>(bytes);
    reciprocals = steps + width * leading;
    own = reciprocals + width + warp * rows_of_warp * pitch;
  }

  /// visit(row, unknown, element of `own`) for what a lane copies of a slot: eight rows, which lie together in memory, of four unknowns
  /// at a time.
  template <class Visit>
  __device__ __forceinline__ void for_each_copied(int slot, int lane, const Visit& visit) const {
#pragma unroll
    for (int t = 0; t < 32; t += 4) {
      const int row = lane % rows_of_warp, unknown = t + lane / rows_of_warp;
      visit(row, 32 * slot + unknown, own[row * pitch + unknown]);
    }
  }

  /// Reads the lower triangle L(l) of order n, filled up with zeros; in descending order steps and unknowns are numbered from the last one.
  /// Returns whether all of this thread's reciprocals serve.
  __device__ __forceinline__ bool load(const Strided<const T>& triangle, std::int64_t l, int n) const {
    const bool by_rows = triangle.column < triangle.row;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    constexpr int together = 8;  // loads of a thread that are on their way at a time
    for (int x = lane; x < width; x += 32)
      for (int y = static_cast<int>(threadIdx.x) / 32; y < width; y += together * warps) {
        T values[together];
        const auto each = [&](const auto& visit) __attribute__((always_inline)) {
#pragma unroll
          for (int t = 0; t < together; ++t) {
            const int z = y + t * warps, i = by_rows ? z : x, j = by_rows ? x : z;
            if (z < width) visit(i, j, i < n && j < n, values[t]);
          }
        };
        each([&](int i, int j, bool inside, T& value) { value = inside && j <= i ? triangle.at(l, i, j) : T(0); });
        each([&](int i, int j, bool inside, T value) {
          const int step = descending && inside ? n - 1 - i : j, unknown = descending && inside ? n - 1 - j : i;
          steps[step * leading + unknown] = value;
        });
      }
    bool all_serve = true;
    for (int i = static_cast<int>(threadIdx.x); i < width; i += threads) {
      const T reciprocal = kind == Triangular::unit_ascending ? T(1) : i < n ? T(1) / triangle.at(l, i, i) : T(0);
      reciprocals[descending && i < n ? n - 1 - i : i] = reciprocal;
      all_serve = all_serve && serves(reciprocal);
    }
    return all_serve;
  }

  /// The unknowns of a warp's rows. `all_serve`: the reciprocals of all pivots.
  template <bool all_serve>
  __device__ __forceinline__ void solve(T (&x)[rows_of_warp][slots], int lane) const {
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) {
#pragma unroll 4
      for (int i = 0; i < 32; ++i) {
        const int k = 32 * slot + i;
        const T reciprocal = reciprocals[k];
        const Divisor<T> pivot(all_serve ? T(1) : steps[k * leading + k], reciprocal);
        T factors[slots], known[rows_of_warp];
#pragma unroll
        for (int s = slot; s < slots; ++s) factors[s] = steps[k * leading + 32 * s + lane];
#pragma unroll
        for (int r = 0; r < rows_of_warp; ++r) {
          const T value = __shfl_sync(~0u, x[r][slot], i);
          known[r] = all_serve ? value * reciprocal : pivot.divide(value);
        }
        // Selections, no branches: rows are to overlap.
#pragma unroll
        for (int r = 0; r < rows_of_warp; ++r) {
          const T left = fma(-known[r], factors[slot], x[r][slot]);
          x[r][slot] = lane > i ? left : lane == i ? known[r] : x[r][slot];
        }
#pragma unroll
        for (int s = slot + 1; s < slots; ++s)
#pragma unroll
          for (int r = 0; r < rows_of_warp; ++r) x[r][s] = fma(-known[r], factors[s], x[r][s]);
      }
    }
  }
};

/// `count` rows of `width` unknowns, in place, with the triangle of this order; and `negated` ← −rows.
template <class T, Triangular kind>
__global__ void __launch_bounds__(RowSolver<T, kind>::threads, 1)
    solve_rows(const __grid_constant__ Strided<const T> triangle, const __grid_constant__ Strided<T> rows,
               const __grid_constant__ Strided<T> negated, int width, std::int64_t count, std::int64_t blocks) {
  using R = RowSolver<T, kind>;
  const std::int64_t l = blockIdx.x / blocks;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first = blockIdx.x % blocks * R::rows_of_block + warp * R::rows_of_warp;
  const R solver(warp);
  const auto column = [&](int unknown) { return R::descending ? width - 1 - unknown : unknown; };
  T x[R::rows_of_warp][R::slots] = {};
#pragma unroll
  for (int s = 0; s < R::slots; ++s) {
    solver.for_each_copied(s, lane, [&](int row, int unknown, T& element) {
      element = first + row < count && unknown < width ? rows.at(l, first + row, column(unknown)) : T(0);
    });
    __syncwarp();
#pragma unroll
    for (int r = 0; r < R::rows_of_warp; ++r) x[r][s] = solver.own[r * R::pitch + lane];
    __syncwarp();
  }
  const bool all_serve = __syncthreads_and(solver.load(triangle, l, width)) != 0;
  if (kind == Triangular::unit_ascending || all_serve)
    solver.template solve<true>(x, lane);
  else
    solver.template solve<false>(x, lane);
#pragma unroll
  for (int s = 0; s < R::slots; ++s) {
#pragma unroll
    for (int r = 0; r < R::rows_of_warp; ++r) solver.own[r * R::pitch + lane] = x[r][s];
    __syncwarp();
    solver.for_each_copied(s, lane, [&](int row, int unknown, T element) {
      if (first + row >= count || unknown >= width) return;
      rows.at(l, first + row, column(unknown)) = element;
      negated.at(l, first + row, column(unknown)) = -element;
    });
    __syncwarp();
  }
}

/// The matrices that begin at an element.
template <class T>
Strided<T> from(Strided<T> s, std::int64_t row, std::int64_t column) {
  s.data += s.offset(0, row, column);
  return s;
}
template <class T>
Strided<T> transpose(Strided<T> s) {
  std::swap(s.row, s.column);
  return s;
}

/// Enqueues solve_rows().
template <Triangular kind, class T>
void launch_solve_rows(const Launches& launch, const Solve& p, const Strided<T>& triangle, const Strided<T>& rows,
                       const Strided<T>& negated, std::int64_t width, std::int64_t count) {
  using R = RowSolver<T, kind>;
  const std::int64_t blocks = (count + R::rows_of_block - 1) / R::rows_of_block;
  launch(solve_rows<T, kind>, p.batch * blocks, R::threads, R::shared_bytes,
         Strided<const T>{triangle.data, triangle.batch, triangle.row, triangle.column}, rows, negated,
         static_cast<int>(width), count, blocks);
}

/// The matrices of rows × columns of all systems that begin at an element, as an operand.
template <class T>
Operand part(const Solve& p, const Strided<T>& s, std::int64_t row, std::int64_t column, std::int64_t rows,
             std::int64_t columns) {
  return cuda::part_of_workspace(s, p.batch, row, column, rows, columns);
}

inline Operand transpose(Operand o) {
  std::swap(o.rows, o.columns);
  std::swap(o.row_stride, o.column_stride);
  return o;
}

/// C += A·B.
template <class T>
Contraction product(const Solve& p, const Operand& a, const Operand& b, const Operand& c) {
  Contraction q = cuda::inner_product<T>(p, a, b, c);
  q.accumulate = true;
  return q;
}

/// The facts of a blocked kernel, without its functions.
inline Kernel<Solve> blocked_kernel(Factorisation factorisation, Scalar element) {
  Kernel<Solve> k;
  k.info = detail::solve_info("cuda.solver", "blocked", factorisation, element, bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.timed_on = 90;
  k.info.promises = Promise::repeatable;
  return k;
}

}  // namespace rigel::backends::solver

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.solver.lu.*.blocked: P·A = L·U by panels of 32 columns (G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed.,
// section 3.4.6). A block of threads factorises a panel in its shared memory; rows are moved, U's rows are solved for, and products update
// the rest. The right sides are columns right of A: the factorisation solves with L for them, and blocks of U in descending order do
// the rest. What is left of a panel is not needed any more, so its rows are not moved.
#include <rigel/backends/cuda/costs/solver.hpp>
#include <rigel/backends/cuda/solver/blocked.hpp>
#include <rigel/backends/cuda/solver/divisor.hpp>
#include <rigel/backends/cuda/solver/passes.hpp>
#include <rigel/backends/cuda/solver/register.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>

namespace rigel::backends::solver {
namespace {

constexpr int panel_width = 32, panel_threads = 512;

/// Rows that change their places: row source[i] goes to row target[i].
struct Moves {
  static constexpr int most = 2 * panel_width;
  int count;
  int source[most], target[most];
};

/// A panel in shared memory, by rows that begin in different banks.
template <class T>
struct Panel {
  static constexpr int leading = panel_width + 1, warps = panel_threads / 32;
  T* values;
  T* largest;    // per warp that of a column, twice
  int* origins;  // where a row was
  int* found;    // per warp the row of `largest`, twice
  int* moved;    // how many rows are elsewhere
  __device__ explicit Panel(int rows) {
    extern __shared__ __align__(16) unsigned char bytes[];
    values = reinterpret_cast<T*>(bytes);
    largest = values + rows * leading;
    origins = reinterpret_cast<int*>(largest + 2 * warps);
    found = origins + rows;
    moved = found + 2 * warps;
  }
  static constexpr std::int64_t shared_bytes(std::int64_t rows) {
    return static_cast<std::int64_t>(sizeof(T)) * (rows * leading + 2 * warps) +
           static_cast<std::int64_t>(sizeof(int)) * (rows + 2 * warps + 1);
  }
  __device__ T& at(int i, int j) const { return values[i * leading + j]; }

  struct Pivot {
    T size;
    int row;  // −1 if there is no number
  };
  /// The largest element at or below k of column k, the first one of equally large ones. All threads meet at a barrier in it.
  __device__ __forceinline__ Pivot pivot(int k, int rows) const {
    T most = -1;
    int row = -1;
    for (int i = k + static_cast<int>(threadIdx.x); i < rows; i += panel_threads)
      if (const T size = abs(at(i, k)); size > most) {
        most = size;
        row = i;
      }
    const auto reduce = [&](int lanes) {
      for (int distance = lanes / 2; distance > 0; distance /= 2) {
        const T other = __shfl_xor_sync(~0u, most, distance);
        const int other_row = __shfl_xor_sync(~0u, row, distance);
        if (other > most || (other == most && other_row < row)) {
          most = other;
          row = other_row;
        }
      }
    };
    reduce(32);
    const int buffer = k % 2 * warps, warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
      largest[buffer + warp] = most;
      found[buffer + warp] = row;
    }
    __syncthreads();
    most = largest[buffer + lane % warps];
    row = found[buffer + lane % warps];
    reduce(warps);
    return {most, row};
  }
};

/// L and U of the panels, in place, and the rows that are to be moved in the columns right of them. The first pivot that cannot be divided by
/// goes into the system's info, unless an earlier one is there. One block of threads a system.
template <class T>
__global__ void __launch_bounds__(panel_threads, 1)
    factor_panel(const __grid_constant__ Strided<T> panels, int rows, int width, std::int64_t first, std::int32_t* infos,
                 Moves* moves) {
  const std::int64_t l = blockIdx.x;
  const Panel<T> panel(rows);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = warp; i < rows; i += panel_threads / 32)
    if (lane < width) panel.at(i, lane) = panels.at(l, i, lane);
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += panel_threads) panel.origins[i] = i;
  if (threadIdx.x == 0) *panel.moved = 0;
  __syncthreads();
  for (int k = 0; k < width; ++k) {
    const auto [size, p] = panel.pivot(k, rows);
    if (p < 0 || !detail::is_pivot(Factorisation::lu, size)) {
      if (threadIdx.x == 0 && infos[l] == 0) infos[l] = static_cast<std::int32_t>(first) + k + 1;
      break;
    }
    if (p != k && warp == 0) {
      if (lane < width) {
        const T value = panel.at(k, lane);
        panel.at(k, lane) = panel.at(p, lane);
        panel.at(p, lane) = value;
      }
      if (lane == 0) {
        const int origin = panel.origins[k];
        panel.origins[k] = panel.origins[p];
        panel.origins[p] = origin;
      }
    }
    __syncthreads();
    const Divisor<T> pivot(panel.at(k, k));
    // The rows that this thread looks at for the next pivot, too.
    for (int i = k + 1 + static_cast<int>(threadIdx.x); i < rows; i += panel_threads) {
      const T factor = pivot.divide(panel.at(i, k));
      panel.at(i, k) = factor;
#pragma unroll 4
      for (int j = k + 1; j < width; ++j) panel.at(i, j) = fma(-factor, panel.at(k, j), panel.at(i, j));
    }
  }
  __syncthreads();
  for (int i = warp; i < rows; i += panel_threads / 32)
    if (lane < width) panels.at(l, i, lane) = panel.at(i, lane);
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += panel_threads)
    if (panel.origins[i] != i) {
      const int place = atomicAdd(panel.moved, 1);  // their order has no effect
      moves[l].source[place] = panel.origins[i];
      moves[l].target[place] = i;
    }
  __syncthreads();
  if (threadIdx.x == 0) moves[l].count = *panel.moved;
}

constexpr int move_threads = 128;

/// A thread moves the rows of a column.
template <class T>
__global__ void __launch_bounds__(move_threads, 1)
    move_rows(const __grid_constant__ Strided<T> matrices, std::int64_t columns, const Moves* moves, std::int64_t blocks) {
  const std::int64_t l = blockIdx.x / blocks, column = blockIdx.x % blocks * move_threads + threadIdx.x;
  if (column >= columns) return;
  const Moves& m = moves[l];
  T values[Moves::most];
#pragma unroll
  for (int i = 0; i < Moves::most; ++i) values[i] = i < m.count ? matrices.at(l, m.source[i], column) : T(0);
#pragma unroll
  for (int i = 0; i < Moves::most; ++i)
    if (i < m.count) matrices.at(l, m.target[i], column) = values[i];
}

/// The workspace: [A B] of each system by rows, rows of it negated, moves and infos; then what products need.
template <class T>
struct Memory {
  Strided<T> factors, negated;
  Moves* moves;
  std::int32_t* infos;
  std::size_t own_bytes;

  Memory(const Solve& p, const void* data) {
    const std::int64_t leading = (p.n + p.right_sides + 31) / 32 * 32;
    detail::WorkspaceLayout layout;
    const auto take = [&](std::int64_t count, std::size_t size) {
      return reinterpret_cast<std::uintptr_t>(data) + layout.add(count, size);
    };
    factors = {reinterpret_cast<T*>(take(p.batch * leading * p.n, sizeof(T))), leading * p.n, leading, 1};
    negated = {reinterpret_cast<T*>(take(p.batch * leading * block_width, sizeof(T))), leading * block_width, leading, 1};
    moves = reinterpret_cast<Moves*>(take(p.batch, sizeof(Moves)));
    infos = reinterpret_cast<std::int32_t*>(take(p.batch, sizeof(std::int32_t)));
    own_bytes = layout.bytes();
  }
  Packed<T> packed(const Solve& p) const { return {factors, from(factors, 0, p.n), nullptr, infos, nullptr, nullptr}; }
};

/// All steps in their order: factor(first, width) of a panel, right(first, width) of it, solve(first, width) of the right sides with a block
/// of U, and update(Contraction).
template <class T, class Factor, class Right, class Substitute, class Update>
void for_each_step(const Solve& p, const Memory<T>& w, const Factor& factor, const Right& right, const Substitute& solve,
                   const Update& update) {
  const std::int64_t n = p.n, m = p.right_sides, all = n + m;
  for (std::int64_t j = 0; j < n; j += panel_width) {
    const std::int64_t next = std::min<std::int64_t>(j + panel_width, n), width = next - j;
    factor(j, width);
    if (next < all) right(j, width);
    if (next < n)
      update(product<T>(p, part(p, w.factors, next, j, n - next, width), part(p, w.negated, 0, next, width, all - next),
                        part(p, w.factors, next, next, n - next, all - next)));
  }
  for (std::int64_t j = (n - 1) / block_width * block_width; m > 0 && j >= 0; j -= block_width) {
    const std::int64_t width = std::min<std::int64_t>(block_width, n - j);
    solve(j, width);
    if (j > 0)
      update(product<T>(p, part(p, w.factors, 0, j, j, width), part(p, w.negated, 0, n, width, m),
                        part(p, w.factors, 0, n, j, m)));
  }
}

template <class T>
WorkspaceSize workspace(const Kernel<Solve>&, const Solve& p, const Plan&) {
  const Memory<T> w(p, reinterpret_cast<void*>(detail::workspace_alignment));  // aligned as real memory is
  const auto nothing = [](auto...) {};
  std::size_t most = 0;
  for_each_step(p, w, nothing, nothing, nothing,
                [&](const Contraction& q) { most = std::max(most, workspace_size(q).bytes); });
  return {.bytes = w.own_bytes + most};
}

template <class T>
void run(const Kernel<Solve>& kernel, const Solve& p, const Plan&, const Workspace& workspace) {
  const cuda::CurrentDevice device(p.execution.device);
  const detail::SolveArguments<T> g = detail::solve_arguments<T>(p);
  const Memory<T> w(p, workspace.data);
  const Launches launch(kernel, p);
  pack(g, w.packed(p), launch.stream());
  for_each_step(
      p, w,
      [&](std::int64_t j, std::int64_t width) {
        launch(factor_panel<T>, p.batch, panel_threads, static_cast<int>(Panel<T>::shared_bytes(p.n - j)),
               from(w.factors, j, j), static_cast<int>(p.n - j), static_cast<int>(width), j, w.infos, w.moves);
      },
      [&](std::int64_t j, std::int64_t width) {
        const std::int64_t next = j + width, columns = p.n + p.right_sides - next,
                           blocks = (columns + move_threads - 1) / move_threads;
        launch(move_rows<T>, p.batch * blocks, move_threads, 0, from(w.factors, j, next), columns,
               static_cast<const Moves*>(w.moves), blocks);
        launch_solve_rows<Triangular::unit_ascending>(launch, p, from(w.factors, j, j), transpose(from(w.factors, j, next)),
                                                      transpose(from(w.negated, 0, next)), width, columns);
      },
      [&](std::int64_t j, std::int64_t width) {
        launch_solve_rows<Triangular::descending>(launch, p, transpose(from(w.factors, j, j)),
                                                  transpose(from(w.factors, j, p.n)), transpose(from(w.negated, 0, p.n)),
                                                  width, p.right_sides);
      },
      [&](const Contraction& q) { cuda::run_in(workspace, w.own_bytes, q); });
  unpack(g, w.packed(p), launch.stream());
}

template <class T>
Status supports(const Kernel<Solve>&, const Solve& p) {
  if (p.n <= block_width) return {Decline::extents, "takes n from " + std::to_string(block_width + 1)};
  using R = RowSolver<T, Triangular::descending>;
  if ((p.n + p.right_sides) / R::rows_of_block + 1 > cuda::max_grid / std::max<std::int64_t>(p.batch, 1))
    return {Decline::batches, "takes a block for 64 columns of each system, and a launch that many"};
  const std::int64_t bytes = std::max<std::int64_t>(Panel<T>::shared_bytes(p.n), R::shared_bytes);
  if (bytes > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(bytes) + " bytes of shared memory"};
  return {};
}

template <class T>
double cost(const Kernel<Solve>&, const Solve& p, Plan&) {
  const auto n = static_cast<double>(p.n);
  return costs::lu_seconds(p, n / panel_width, n / block_width, sizeof(T) == 8);
}

template <class T>
Kernel<Solve> kernel() {
  Kernel<Solve> k = blocked_kernel(Factorisation::lu, scalar_of<T>);
  k.supports = supports<T>;
  k.cost = cost<T>;
  k.workspace = workspace<T>;
  k.run = run<T>;
  return k;
}

}  // namespace

void add_blocked_lu(Registry<Solve>& registry) {
  registry.add(kernel<float>());
  registry.add(kernel<double>());
}

}  // namespace rigel::backends::solver

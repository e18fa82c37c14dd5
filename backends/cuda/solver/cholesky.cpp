// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.solver.cholesky.*.blocked: L by blocks of 128 columns (J. J. Dongarra, I. S. Duff, D. C. Sorensen and H. A. van der Vorst,
// Numerical Linear Algebra for High-Performance Computers, 1998, section 5.4). A block of threads factorises a block of the diagonal,
// the rows below are solved with it, and products update the rest. The right sides are rows below A: the factorisation solves
// with L for them, and the blocks in the opposite order solve with Lᵀ.
#include <rigel/backends/cuda/costs/solver.hpp>
#include <rigel/backends/cuda/solver/blocked.hpp>
#include <rigel/backends/cuda/solver/passes.hpp>
#include <rigel/backends/cuda/solver/register.hpp>
#include <rigel/backends/cuda/solver/small.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <cmath>

namespace rigel::backends::solver {
namespace {

/// Columns of a panel. The columns right of one are updated by it at once, with a long sum; those within it block by block.
constexpr std::int64_t panel_width = 1024;

using DiagonalCut = Cut<16, 8>;
static_assert(DiagonalCut::most == block_width);

/// The block of the diagonal whose first element is number `first` of the diagonal: `block` becomes its factor, in the lower triangle. A
/// pivot that cannot be divided by goes into the system's info, unless an earlier one is there. One block of threads a system.
template <class T>
__global__ void __launch_bounds__(DiagonalCut::threads, 1)
    factor_diagonal(const __grid_constant__ Strided<T> block, int width, std::int64_t first, std::int32_t* infos) {
  using C = DiagonalCut;
  const std::int64_t l = blockIdx.x;
  const Shared<T, C> shared(width, false);
  const Place<C> at;
  T a[C::tiles][C::tiles];
#pragma unroll
  for (int r = 0; r < C::tiles; ++r)
#pragma unroll
    for (int c = 0; c < C::tiles; ++c)
      a[r][c] = at.row(r) < width && at.column(c) <= at.row(r) ? block.at(l, at.row(r), at.column(c)) : T(0);
  const int info = factor_cholesky<C>(a, width, at, shared);
  if (info != 0 && threadIdx.x == 0 && infos[l] == 0) infos[l] = static_cast<std::int32_t>(first) + info;
#pragma unroll
  for (int r = 0; r < C::tiles; ++r)
#pragma unroll
    for (int c = 0; c < C::tiles; ++c)
      if (at.row(r) < width && at.column(c) <= at.row(r)) block.at(l, at.row(r), at.column(c)) = a[r][c];
}

/// Rows of the matrix [A; Bᵀ].
std::int64_t rows_of(const Solve& p) { return p.n + (p.task == Solve::Task::factor ? 0 : p.right_sides); }

/// The workspace: [A; Bᵀ] of each system by columns, a panel of it negated, infos; then what products need.
template <class T>
struct Memory {
  Strided<T> factors, negated;
  std::int32_t* infos;
  std::size_t own_bytes;

  Memory(const Solve& p, const void* data) {
    const std::int64_t leading = (rows_of(p) + 31) / 32 * 32, panel = std::min(p.n, panel_width);
    detail::WorkspaceLayout layout;
    const auto take = [&](std::int64_t count, std::size_t size) {
      return reinterpret_cast<std::uintptr_t>(data) + layout.add(count, size);
    };
    factors = {reinterpret_cast<T*>(take(p.batch * leading * p.n, sizeof(T))), leading * p.n, 1, leading};
    negated = {reinterpret_cast<T*>(take(p.batch * leading * panel, sizeof(T))), leading * panel, 1, leading};
    infos = reinterpret_cast<std::int32_t*>(take(p.batch, sizeof(std::int32_t)));
    own_bytes = layout.bytes();
  }
  Packed<T> packed(const Solve& p) const {
    return {factors, transpose(from(factors, p.n, 0)), nullptr, infos, nullptr, nullptr};
  }
};

/// Rows that a step solves: `count` ones from `row` on, with the triangle of order `width` at `first` of the diagonal. Their negatives go to
/// the columns of the panel from `negated` on.
struct Rows {
  std::int64_t first, width, row, count, negated;
};

/// The right sides with L, if `forward`, and with Lᵀ: calls ascending(Rows) and descending(Rows), and update(Contraction).
template <class T, class Ascending, class Descending, class Update>
void substitute(const Solve& p, const Memory<T>& w, bool forward, const Ascending& ascending, const Descending& descending,
                const Update& update) {
  const std::int64_t n = p.n, m = rows_of(p) - n;
  if (m == 0) return;
  const auto subtract = [&](std::int64_t width, const Operand& factor, std::int64_t column) {
    update(product<T>(p, part(p, w.negated, n, 0, m, width), factor, part(p, w.factors, n, column, m, factor.columns)));
  };
  for (std::int64_t j = 0; forward && j < n; j += block_width) {
    const std::int64_t next = std::min<std::int64_t>(j + block_width, n);
    ascending(Rows{j, next - j, n, m, 0});
    if (next < n) subtract(next - j, transpose(part(p, w.factors, next, j, n - next, next - j)), next);
  }
  for (std::int64_t j = (n - 1) / block_width * block_width; j >= 0; j -= block_width) {
    const std::int64_t width = std::min<std::int64_t>(block_width, n - j);
    descending(Rows{j, width, n, m, 0});
    if (j > 0) subtract(width, part(p, w.factors, j, 0, width, j), 0);
  }
}

/// All steps in their order: factor(first, width) of a block of the diagonal, and those of substitute().
template <class T, class Factor, class Ascending, class Descending, class Update>
void for_each_step(const Solve& p, const Memory<T>& w, const Factor& factor, const Ascending& ascending,
                   const Descending& descending, const Update& update) {
  const std::int64_t n = p.n, all = rows_of(p);
  if (p.task == Solve::Task::substitute) return substitute(p, w, true, ascending, descending, update);
  // From the columns [c, c + columns): what the columns [begin, end) of the panel that begins at `first` take.
  const auto subtract = [&](std::int64_t first, std::int64_t begin, std::int64_t end, std::int64_t c, std::int64_t columns) {
    const Operand left = part(p, w.factors, c, begin, all - c, end - begin),
                  right = part(p, w.negated, c, begin - first, columns, end - begin);
    update(product<T>(p, left, transpose(right), part(p, w.factors, c, c, all - c, columns)));
  };
  for (std::int64_t first = 0; first < n; first += panel_width) {
    const std::int64_t last = std::min(first + panel_width, n);
    for (std::int64_t j = first; j < last; j += block_width) {
      const std::int64_t next = std::min<std::int64_t>(j + block_width, last);
      factor(j, next - j);
      if (next < all) ascending(Rows{j, next - j, next, all - next, j - first});
      if (next < last) subtract(first, j, next, next, last - next);
    }
    for (std::int64_t c = last; c < n; c += panel_width) subtract(first, first, last, c, std::min(panel_width, n - c));
  }
  substitute(p, w, false, ascending, descending, update);
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
  const auto solve_rows = [&]<Triangular kind>(const Rows& r) {
    launch_solve_rows<kind>(launch, p, from(w.factors, r.first, r.first), from(w.factors, r.row, r.first),
                            from(w.negated, r.row, r.negated), r.width, r.count);
  };
  pack(g, w.packed(p), launch.stream());
  for_each_step(
      p, w,
      [&](std::int64_t j, std::int64_t width) {
        const int size = static_cast<int>(width);
        launch(factor_diagonal<T>, p.batch, DiagonalCut::threads, DiagonalCut::shared_bytes<T>(size, false),
               from(w.factors, j, j), size, j, w.infos);
      },
      [&](const Rows& r) { solve_rows.template operator()<Triangular::ascending>(r); },
      [&](const Rows& r) { solve_rows.template operator()<Triangular::descending>(r); },
      [&](const Contraction& q) { cuda::run_in(workspace, w.own_bytes, q); });
  unpack(g, w.packed(p), launch.stream());
}

template <class T>
Status supports(const Kernel<Solve>&, const Solve& p) {
  using R = RowSolver<T, Triangular::ascending>;
  if (p.n <= block_width) return {Decline::extents, "takes n from " + std::to_string(block_width + 1)};
  if (rows_of(p) / R::rows_of_block + 1 > cuda::max_grid / std::max<std::int64_t>(p.batch, 1))
    return {Decline::batches, "takes a block for 64 rows of each system, and a launch that many"};
  if (R::shared_bytes > p.execution.shared_memory)
    return {Decline::memory, "needs " + std::to_string(R::shared_bytes) + " bytes of shared memory"};
  return {};
}

template <class T>
double cost(const Kernel<Solve>&, const Solve& p, Plan&) {
  return costs::cholesky_seconds(p, std::ceil(static_cast<double>(p.n) / block_width), rows_of(p) != p.n, sizeof(T) == 8);
}

template <class T>
Kernel<Solve> kernel() {
  Kernel<Solve> k = blocked_kernel(Factorisation::cholesky, scalar_of<T>);
  k.supports = supports<T>;
  k.cost = cost<T>;
  k.workspace = workspace<T>;
  k.run = run<T>;
  return k;
}

}  // namespace

void add_blocked_cholesky(Registry<Solve>& registry) {
  registry.add(kernel<float>());
  registry.add(kernel<double>());
}

}  // namespace rigel::backends::solver

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference of the solves. One team takes one system: right-looking Cholesky, Gaussian elimination with partial pivoting on
// [A | B], and the cyclic Jacobi method for eigenvectors (G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., sections
// 4.2, 3.4 and 8.5). It defines the right result on every execution space, and is not meant to be fast.
#pragma once

#include <rigel/card.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/solve.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>

namespace rigel::backends::reference {

using detail::MatrixOf;

/// Calls visit(i) for i in [first, last), shared by the threads of a team.
template <class Team, class Visit>
RIGEL_FUNCTION void each(const Team& team, std::int64_t first, std::int64_t last, const Visit& visit) {
  for (std::int64_t i = first + team.team_rank(); i < last; i += team.team_size()) visit(i);
}

/// A = L·Lᵀ in the lower triangle. Returns 0, or k if the leading minor of order k is not positive.
template <class Team, class T>
RIGEL_FUNCTION int cholesky(const Team& team, const MatrixOf<T>& a, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    const T pivot = a(k, k);
    team.team_barrier();
    if (!detail::is_pivot(Factorisation::cholesky, pivot)) return static_cast<int>(k) + 1;
    const T root = Kokkos::sqrt(pivot);
    each(team, k, k + 1, [&](std::int64_t i) { a(i, i) = root; });
    each(team, k + 1, n, [&](std::int64_t i) { a(i, k) = a(i, k) / root; });
    team.team_barrier();
    each(team, k + 1, n, [&](std::int64_t i) {
      for (std::int64_t j = k + 1; j <= i; ++j) a(i, j) = a(i, j) - a(i, k) * a(j, k);
    });
    team.team_barrier();
  }
  return 0;
}

/// X = (L·Lᵀ)⁻¹·X. A column of X is the work of one thread.
template <class Team, class T>
RIGEL_FUNCTION void substitute(const Team& team, const MatrixOf<const T>& l, const MatrixOf<T>& x, std::int64_t n,
                               std::int64_t m) {
  each(team, 0, m, [&](std::int64_t j) {
    for (std::int64_t k = 0; k < n; ++k) {
      x(k, j) = x(k, j) / l(k, k);
      for (std::int64_t i = k + 1; i < n; ++i) x(i, j) = x(i, j) - l(i, k) * x(k, j);
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
      x(k, j) = x(k, j) / l(k, k);
      for (std::int64_t i = 0; i < k; ++i) x(i, j) = x(i, j) - l(k, i) * x(k, j);
    }
  });
}

/// X = A⁻¹·X by elimination in A. Returns 0, or k if the k-th pivot cannot be divided by.
template <class Team, class T>
RIGEL_FUNCTION int eliminate(const Team& team, const MatrixOf<T>& a, const MatrixOf<T>& x, std::int64_t n, std::int64_t m) {
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t row = k;  // the first of the largest elements, which every thread finds
    for (std::int64_t i = k + 1; i < n; ++i)
      if (Kokkos::abs(a(i, k)) > Kokkos::abs(a(row, k))) row = i;
    const T pivot = a(row, k);
    team.team_barrier();
    if (!detail::is_pivot(Factorisation::lu, pivot)) return static_cast<int>(k) + 1;
    const auto exchange = [&](const MatrixOf<T>& of, std::int64_t j) {
      const T upper = of(k, j);
      of(k, j) = of(row, j);
      of(row, j) = upper;
    };
    each(team, k, n, [&](std::int64_t j) { exchange(a, j); });
    each(team, 0, m, [&](std::int64_t j) { exchange(x, j); });
    team.team_barrier();
    each(team, k + 1, n, [&](std::int64_t i) {
      const T factor = a(i, k) / pivot;
      for (std::int64_t j = k + 1; j < n; ++j) a(i, j) = a(i, j) - factor * a(k, j);
      for (std::int64_t j = 0; j < m; ++j) x(i, j) = x(i, j) - factor * x(k, j);
    });
    team.team_barrier();
  }
  each(team, 0, m, [&](std::int64_t j) {
    for (std::int64_t k = n - 1; k >= 0; --k) {
      x(k, j) = x(k, j) / a(k, k);
      for (std::int64_t i = 0; i < k; ++i) x(i, j) = x(i, j) - a(i, k) * x(k, j);
    }
  });
  return 0;
}

/// The rotation that makes a(p,q) zero, by the smaller angle φ: its sine, and sin φ/(1 + cos φ), by which it is applied as a change
/// (H. Rutishauser, The Jacobi Method for Real Symmetric Matrices, Numerische Mathematik 9, 1966). With a rounded cosine thousands of
/// small rotations would stretch the vectors.
template <class T>
struct Rotation {
  T sine, ratio;
  RIGEL_MEMBER Rotation(T pp, T pq, T qq) {
    const T cotangent = (qq - pp) / (2 * pq);
    const T tangent = (cotangent < 0 ? T(-1) : T(1)) / (Kokkos::abs(cotangent) + Kokkos::sqrt(1 + cotangent * cotangent));
    const T cosine = 1 / Kokkos::sqrt(1 + tangent * tangent);
    sine = tangent * cosine;
    ratio = sine / (1 + cosine);
  }
  RIGEL_MEMBER void apply(T& x, T& y) const {
    const T old = x;
    x -= sine * (y + ratio * x);
    y += sine * (old - ratio * y);
  }
};

/// Turns a symmetric A into a diagonal matrix, and multiplies V by the rotations. Returns 0, or 1 if A is not finite or sweeps
/// do not end. A sweep of rotations by angles up to 45° converges quadratically in the end; elements below u·‖A‖/n are left. In
/// the meantime A is scaled by a power of two, so that nothing but an eigenvalue can overflow.
template <class Team, class T>
RIGEL_FUNCTION int diagonalise(const Team& team, const MatrixOf<T>& a, const MatrixOf<T>& v, std::int64_t n) {
  constexpr int max_sweeps = 60;
  T squares = 0, largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      if (!(a(i, j) - a(i, j) == 0)) return 1;
      largest = largest < Kokkos::abs(a(i, j)) ? Kokkos::abs(a(i, j)) : largest;
    }
  if (largest == 0) return 0;
  const T scale = detail::scale_to_one(largest);
  team.team_barrier();
  each(team, 0, n, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < n; ++j) a(i, j) *= scale;
  });
  team.team_barrier();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) squares += a(i, j) * a(i, j);
  const T small = std::numeric_limits<T>::epsilon() / 2 * Kokkos::sqrt(squares) / static_cast<T>(n);
  team.team_barrier();
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    bool rotated = false;
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t q = p + 1; q < n; ++q) {
        const T pq = a(p, q);
        if (Kokkos::abs(pq) <= small) continue;
        const Rotation<T> rotation(a(p, p), pq, a(q, q));
        rotated = true;
        team.team_barrier();
        each(team, 0, n, [&](std::int64_t i) {
          rotation.apply(a(i, p), a(i, q));
          rotation.apply(v(i, p), v(i, q));
        });
        team.team_barrier();
        each(team, 0, n, [&](std::int64_t i) {
          rotation.apply(a(p, i), a(q, i));
          // What rounding leaves of them could keep sweeps from ending.
          if (i == q) a(p, i) = 0;
          if (i == p) a(q, i) = 0;
        });
        team.team_barrier();
      }
    if (!rotated) {
      each(team, 0, n, [&](std::int64_t i) { a(i, i) /= scale; });
      return 0;
    }
  }
  return 1;
}

/// Orders the diagonal of A, and with it the columns of V.
template <class Team, class T>
RIGEL_FUNCTION void sort(const Team& team, const MatrixOf<T>& a, const MatrixOf<T>& v, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t least = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (a(i, i) < a(least, least)) least = i;
    const T value = a(least, least), other = a(k, k);
    team.team_barrier();
    each(team, 0, n, [&](std::int64_t i) {
      const T moved = v(i, k);
      v(i, k) = v(i, least);
      v(i, least) = moved;
    });
    each(team, 0, 1, [&](std::int64_t) {
      a(least, least) = other;
      a(k, k) = value;
    });
    team.team_barrier();
  }
}

/// One system. `f` is where its matrix is factorised.
template <class Team, class T>
RIGEL_FUNCTION int compute(const Team& team, const detail::SolveArguments<T>& g, std::int64_t l, const MatrixOf<T>& f) {
  const MatrixOf<const T> a = detail::matrix_of(g.a, l), b = detail::matrix_of(g.b, l);
  const MatrixOf<T> x = detail::matrix_of(g.x, l), w = detail::matrix_of(g.values, l);
  const std::int64_t n = g.n, m = g.m;
  const bool factors = g.task == Solve::Task::factor, lu = g.factorisation == Factorisation::lu;
  // A's lower triangle, mirrored for eigenvectors; all of it for LU. f may be A itself.
  if (g.task != Solve::Task::substitute)
    each(team, 0, n, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < (lu ? n : i + 1); ++j) f(i, j) = a(i, j);
      if (g.factorisation == Factorisation::eigen)
        for (std::int64_t j = 0; j < i; ++j) f(j, i) = a(i, j);
    });
  if (!factors)
    each(team, 0, n, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < m; ++j) x(i, j) = b(i, j);
    });
  team.team_barrier();
  int info = 0;
  if (g.factorisation == Factorisation::eigen) {
    each(team, 0, n, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < n; ++j) x(i, j) = i == j ? 1 : 0;
    });
    team.team_barrier();
    info = diagonalise(team, f, x, n);
    team.team_barrier();
    if (info == 0) sort(team, f, x, n);
    each(team, 0, n, [&](std::int64_t i) { w(i, 0) = f(i, i); });
  } else if (lu) {
    info = eliminate(team, f, x, n, m);
  } else {
    if (g.task != Solve::Task::substitute) info = cholesky(team, f, n);
    const MatrixOf<const T> factor = g.task == Solve::Task::substitute ? a : MatrixOf<const T>{f.data, f.row, f.column};
    for (std::int64_t k = n - 1; k >= 0 && g.task == Solve::Task::substitute; --k)
      if (!detail::is_pivot(g.factorisation, a(k, k))) info = static_cast<int>(k) + 1;
    if (!factors && info == 0) substitute(team, factor, x, n, m);
    if (factors)
      each(team, 0, n, [&](std::int64_t i) {
        for (std::int64_t j = i + 1; j < n; ++j) x(i, j) = 0;
      });
  }
  team.team_barrier();
  if (info == 0) return 0;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  each(team, 0, n, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < (factors ? n : m); ++j) x(i, j) = nan;
    if (g.factorisation == Factorisation::eigen) w(i, 0) = nan;
  });
  return info;
}

template <class T, class Exec>
void solve(const Exec& exec, const std::string& label, const detail::SolveArguments<T>& g, const detail::Strided<T>& f) {
  constexpr int team_size = detail::runs_on_host<Exec> ? 1 : 256;
  constexpr std::int64_t max_league = 1 << 30;
  using Policy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<team_size, 1>>;
  Kokkos::parallel_for(
      label, detail::by_argument(Policy(exec, static_cast<int>(std::min(g.batch, max_league)), team_size)),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        for (std::int64_t l = team.league_rank(); l < g.batch; l += team.league_size()) {
          const int info = compute(team, g, l, detail::matrix_of(f, l));
          if (g.infos.data && team.team_rank() == 0) g.infos.at(l, 0, 0) = info;
          team.team_barrier();
        }
      });
}

/// Where matrices are factorised: in X for Cholesky factors, in A if it may be overwritten (and does not receive eigenvectors), else
/// in the workspace, column-major.
inline bool factors_in_workspace(const Solve& p) {
  if (p.task == Solve::Task::substitute) return false;
  if (p.factorisation == Factorisation::eigen) return !p.overwrite_a || p.x.data == p.a.data;
  return p.task == Solve::Task::solve && !p.overwrite_a;
}
template <class T>
detail::Strided<T> place_of_factors(const Solve& p, const detail::SolveArguments<T>& g, void* workspace) {
  if (factors_in_workspace(p)) return {static_cast<T*>(workspace), p.n * p.n, 1, p.n};
  if (p.task == Solve::Task::factor && p.factorisation == Factorisation::cholesky) return g.x;
  return {const_cast<T*>(g.a.data), g.a.batch, g.a.row, g.a.column};
}

/// The reference of one factorisation and type, on the spaces of the list.
template <class T, class Spaces>
Kernel<Solve> solve_kernel(Factorisation factorisation) {
  Kernel<Solve> k;
  k.info = detail::solve_info("reference", {}, factorisation, scalar_of<T>, detail::bits_of(Spaces{}));
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.cost = [](const Kernel<Solve>&, const Solve& p, Plan&) {
    // Jacobi takes about six times the operations of a method by tridiagonal matrices.
    const double operations = detail::solve_operations(p) * (p.factorisation == Factorisation::eigen ? 6 : 1);
    const bool host = p.execution.space != Space::cuda;
    const double teams = host ? p.execution.concurrency : p.execution.multiprocessors;
    const double parallel = std::max(1., std::min(teams, static_cast<double>(p.batch)));
    if (host) {
      constexpr double launches = 5, operation = 4;  // cycles
      const Cpu& cpu = cpu_of(p.execution);
      return launches * cpu.launch_seconds + cpu.seconds(operation * operations / parallel);
    }
    // On a GPU a team waits for memory several times in each step.
    constexpr double begin = 2.3e-6, step = 5e-6;  // seconds after a launch, on an H200
    constexpr detail::Unit unit = sizeof(T) > 4 ? detail::Unit::of_doubles : detail::Unit::of_floats;
    const double steps = static_cast<double>(p.n) * (p.factorisation == Factorisation::eigen ? static_cast<double>(p.n) : 1);
    return card_of(p.execution).launch_seconds + (begin + step * steps) * detail::slowness(p.execution) +
           operations / parallel / 2e9 * detail::slowness(p.execution, unit);
  };
  k.workspace = [](const Kernel<Solve>&, const Solve& p, const Plan&) {
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(p.batch * p.n * p.n);
    return WorkspaceSize{.bytes = factors_in_workspace(p) ? bytes : 0};
  };
  k.run = [](const Kernel<Solve>& kernel, const Solve& p, const Plan&, const Workspace& workspace) {
    const detail::SolveArguments<T> g = detail::solve_arguments<T>(p);
    detail::with_instance(Spaces{}, p.execution, [&](const auto& exec) {
      solve(exec, "rigel::solve/" + kernel.info.name, g, place_of_factors(p, g, workspace.data));
    });
  };
  return k;
}

/// The references of all factorisations.
template <class T, class Spaces>
std::vector<Kernel<Solve>> solve_kernels() {
  return {solve_kernel<T, Spaces>(Factorisation::cholesky), solve_kernel<T, Spaces>(Factorisation::lu),
          solve_kernel<T, Spaces>(Factorisation::eigen)};
}

}  // namespace rigel::backends::reference

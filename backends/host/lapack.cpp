// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The solves by the machine's LAPACK: potrf and potrs, getrf and getrs, syevd. Systems of a batch are shared by the threads of the
// execution space instance, each solved by one thread; a batch smaller than that is solved one by one, with the BLAS's own threads.
#include <rigel/backends/host/blas_threads.hpp>
#include <rigel/config.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/solve.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#if RIGEL_HAS_LAPACK

// LAPACK in Fortran, whose characters and integers are passed by address. Lengths of characters follow, as compilers pass them.
extern "C" {
#define RIGEL_LAPACK(letter, T)                                                                                         \
  void letter##potrf_(const char*, const int*, T*, const int*, int*, std::size_t);                                      \
  void letter##potrs_(const char*, const int*, const int*, const T*, const int*, T*, const int*, int*, std::size_t);    \
  void letter##getrf_(const int*, const int*, T*, const int*, int*, int*);                                              \
  void letter##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*,      \
                      std::size_t);                                                                                     \
  void letter##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*, \
                      std::size_t, std::size_t);
RIGEL_LAPACK(s, float)
RIGEL_LAPACK(d, double)
#undef RIGEL_LAPACK
}

namespace rigel::backends::host {
namespace {

using detail::MatrixOf;

// LAPACK's routines of one type, of column-major matrices without gaps between columns. They return the info.
template <class T>
struct Lapack;
#define RIGEL_LAPACK(letter, T)                                                                                           \
  template <>                                                                                                             \
  struct Lapack<T> {                                                                                                      \
    using Number = T;                                                                                                     \
    static int factor_cholesky(int n, Number* a) {                                                                        \
      int info = 0;                                                                                                       \
      letter##potrf_("L", &n, a, &n, &info, 1);                                                                           \
      return info;                                                                                                        \
    }                                                                                                                     \
    static void substitute_cholesky(int n, int m, const Number* a, Number* x) {                                           \
      int info = 0;                                                                                                       \
      letter##potrs_("L", &n, &m, a, &n, x, &n, &info, 1);                                                                \
    }                                                                                                                     \
    static int factor_lu(int n, Number* a, int* pivots) {                                                                 \
      int info = 0;                                                                                                       \
      letter##getrf_(&n, &n, a, &n, pivots, &info);                                                                       \
      return info;                                                                                                        \
    }                                                                                                                     \
    static void substitute_lu(int n, int m, const Number* a, const int* pivots, Number* x) {                              \
      int info = 0;                                                                                                       \
      letter##getrs_("N", &n, &m, a, &n, pivots, x, &n, &info, 1);                                                        \
    }                                                                                                                     \
    static int eigenvectors(int n, Number* a, Number* values, Number* work, int size, int* integers, int integers_size) { \
      int info = 0;                                                                                                       \
      letter##syevd_("V", "L", &n, a, &n, values, work, &size, integers, &integers_size, &info, 1, 1);                    \
      return info;                                                                                                        \
    }                                                                                                                     \
  };
RIGEL_LAPACK(s, float)
RIGEL_LAPACK(d, double)
#undef RIGEL_LAPACK

/// The workspace of one worker: a matrix and right sides, both column-major, what syevd needs (LAPACK Users' Guide), pivots.
template <class T>
struct Worker {
  T *matrix, *sides, *values, *work;
  int *integers, work_size, integers_size;

  Worker(const Solve& p, std::byte* base, std::size_t& bytes) {
    const std::int64_t n = p.n;
    const bool eigen = p.factorisation == Factorisation::eigen;
    detail::WorkspaceLayout layout;
    const std::int64_t of_work = eigen ? std::max<std::int64_t>(1, 1 + 6 * n + 2 * n * n) : 0;
    const std::int64_t of_integers = eigen ? 3 + 5 * n : n;
    const std::size_t m = layout.add(n * n, sizeof(T)), s = layout.add(n * p.right_sides, sizeof(T)),
                      v = layout.add(eigen ? n : 0, sizeof(T)), w = layout.add(of_work, sizeof(T)),
                      i = layout.add(of_integers, sizeof(int));
    bytes = layout.bytes();
    const auto at = [&](std::size_t offset) { return reinterpret_cast<std::uintptr_t>(base) + offset; };  // base may be null
    matrix = reinterpret_cast<T*>(at(m));
    sides = reinterpret_cast<T*>(at(s));
    values = reinterpret_cast<T*>(at(v));
    work = reinterpret_cast<T*>(at(w));
    integers = reinterpret_cast<int*>(at(i));
    work_size = static_cast<int>(of_work);
    integers_size = static_cast<int>(of_integers);
  }
};

int workers_of(const Solve& p) {
  return static_cast<int>(std::clamp<std::int64_t>(p.batch, 1, std::max(p.execution.concurrency, 1)));
}
template <class T>
std::size_t bytes_of_worker(const Solve& p) {
  std::size_t bytes = 0;
  Worker<T>(p, nullptr, bytes);
  return bytes;
}

// Copies rows × columns elements to or from a column-major array; `triangle`: those on and below the diagonal.
template <class To, class From>
void copy(const To& to, const From& from, std::int64_t rows, std::int64_t columns, bool triangle = false) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = triangle ? j : 0; i < rows; ++i) to(i, j) = from(i, j);
}

// LAPACKs multiply by the reciprocals of pivots, which are infinite for the least subnormal numbers, or take these for 0. Where a pivot
// is subnormal, eliminate() and divide() take their place.
template <class T>
bool is_subnormal(T pivot) {
  return pivot != 0 && std::abs(pivot) < std::numeric_limits<T>::min();
}

// P·A = L·U in place, by Gaussian elimination: at step k row pivots[k] goes to row k. Returns the info.
template <class T>
int eliminate(const MatrixOf<T>& a, std::int64_t n, int* pivots) {
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t row = k;  // the first of the largest elements
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(row, k))) row = i;
    pivots[k] = static_cast<int>(row);
    if (!detail::is_pivot(Factorisation::lu, a(row, k))) return static_cast<int>(k) + 1;
    for (std::int64_t j = 0; row != k && j < n; ++j) std::swap(a(k, j), a(row, j));
    for (std::int64_t i = k + 1; i < n; ++i) a(i, k) /= a(k, k);
    for (std::int64_t j = k + 1; j < n; ++j)
      for (std::int64_t i = k + 1; i < n; ++i) a(i, j) -= a(i, k) * a(k, j);
  }
  return 0;
}

// X = F⁻¹·X for a triangle of F, lower if `ascending`, else upper. `unit`: its diagonal is 1.
template <bool ascending, bool unit, class T>
void solve_triangle(const MatrixOf<T>& f, const MatrixOf<T>& x, std::int64_t n, std::int64_t m) {
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t k = ascending ? step : n - 1 - step;
      if constexpr (!unit) x(k, j) /= f(k, k);
      for (std::int64_t i = ascending ? k + 1 : 0; i < (ascending ? n : k); ++i) x(i, j) -= f(i, k) * x(k, j);
    }
}

// X from the right sides, with a factor of cholesky or of eliminate().
template <class T>
void divide(Factorisation factorisation, const MatrixOf<T>& f, const MatrixOf<T>& x, std::int64_t n, std::int64_t m,
            const int* pivots) {
  if (factorisation == Factorisation::cholesky) {
    solve_triangle<true, false>(f, x, n, m);
    solve_triangle<false, false>(MatrixOf<T>{f.data, f.column, f.row}, x, n, m);
    return;
  }
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t j = 0; pivots[k] != k && j < m; ++j) std::swap(x(k, j), x(pivots[k], j));
  solve_triangle<true, true>(f, x, n, m);
  solve_triangle<false, false>(f, x, n, m);
}

struct Factored {
  int info;
  bool divides = false;  // whether divide() takes the factor, instead of LAPACK
};

// Factorises A(l), of which w.matrix is a copy, there.
template <class T>
Factored factorise(const detail::SolveArguments<T>& g, std::int64_t l, const Worker<T>& w) {
  const auto n = static_cast<int>(g.n);
  const MatrixOf<T> f{w.matrix, 1, g.n};
  int info = 0;
  if (g.factorisation == Factorisation::eigen) {
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = j; i < g.n; ++i)
        if (f(i, j) - f(i, j) != 0) return {1};  // NaN or infinite
    return {Lapack<T>::eigenvectors(n, w.matrix, w.values, w.work, w.work_size, w.integers, w.integers_size) == 0 ? 0 : 1};
  }
  if (g.task != Solve::Task::substitute)
    info = g.factorisation == Factorisation::cholesky ? Lapack<T>::factor_cholesky(n, w.matrix)
                                                      : Lapack<T>::factor_lu(n, w.matrix, w.integers);
  bool divides = false;
  // Not every LAPACK stops at NaN.
  for (std::int64_t k = 0; k < g.n && (info == 0 || k < info); ++k) {
    divides = divides || is_subnormal(f(k, k));
    if (divides && g.factorisation == Factorisation::lu) {
      copy(f, detail::matrix_of(g.a, l), g.n, g.n);
      return {eliminate(f, g.n, w.integers), true};
    }
    if (!detail::is_pivot(g.factorisation, f(k, k))) return {static_cast<int>(k) + 1};
  }
  return {info, divides};
}

template <class T>
void solve_one(const detail::SolveArguments<T>& g, std::int64_t l, const Worker<T>& w) {
  const auto n = static_cast<int>(g.n), m = static_cast<int>(g.m);
  const bool factors = g.task == Solve::Task::factor, eigen = g.factorisation == Factorisation::eigen;
  const MatrixOf<T> f{w.matrix, 1, g.n}, sides{w.sides, 1, g.n}, x = detail::matrix_of(g.x, l);
  copy(f, detail::matrix_of(g.a, l), g.n, g.n, g.factorisation != Factorisation::lu);
  const auto [info, divides] = factorise(g, l, w);
  if (g.infos.data) g.infos.at(l, 0, 0) = info;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  if (info != 0) {
    copy(x, [nan](std::int64_t, std::int64_t) { return nan; }, g.n, factors ? g.n : g.m);
  } else if (factors) {
    if (!eigen) copy(x, [](std::int64_t, std::int64_t) { return T(0); }, g.n, g.n);
    copy(x, f, g.n, g.n, !eigen);
  } else {
    copy(sides, detail::matrix_of(g.b, l), g.n, g.m);
    if (divides)
      divide(g.factorisation, f, sides, g.n, g.m, w.integers);
    else if (g.factorisation == Factorisation::cholesky)
      Lapack<T>::substitute_cholesky(n, m, w.matrix, w.sides);
    else
      Lapack<T>::substitute_lu(n, m, w.matrix, w.integers, w.sides);
    copy(x, sides, g.n, g.m);
  }
  for (std::int64_t i = 0; eigen && i < g.n; ++i) g.values.at(l, i, 0) = info == 0 ? w.values[i] : nan;
}

Status supports(const Kernel<Solve>&, const Solve& p) {
  if (p.n == 0) return {Decline::extents, "n is 0"};
  // 2n² + 6n + 1 elements of syevd's workspace are counted by an int, too.
  const std::int64_t most = p.factorisation == Factorisation::eigen ? 32000 : std::numeric_limits<int>::max();
  if (p.n > most || p.right_sides > std::numeric_limits<int>::max())
    return {Decline::extents, "an extent is beyond LAPACK's int"};
  return {};
}

template <class T>
Kernel<Solve> kernel(Factorisation factorisation) {
  Kernel<Solve> k;
  k.info =
      detail::solve_info("host.lapack", {}, factorisation, scalar_of<T>, detail::bits_of(detail::compiled_host_spaces{}));
  k.info.promises = Promise::repeatable;
  k.supports = supports;
  k.cost = [](const Kernel<Solve>&, const Solve& p, Plan&) {
    // Cycles of each system, and operations per cycle of a thread.
    constexpr double begin = 4000, of_eigen = 0.3;
    const double operations = 40. / sizeof(T) * (p.factorisation == Factorisation::eigen ? of_eigen : 1);
    return cpu_of(p.execution)
        .seconds(begin * static_cast<double>(p.batch) / workers_of(p) +
                 detail::solve_operations(p) / operations / p.execution.concurrency);
  };
  k.workspace = [](const Kernel<Solve>&, const Solve& p, const Plan&) {
    return WorkspaceSize{.bytes = bytes_of_worker<T>(p) * static_cast<std::size_t>(workers_of(p))};
  };
  k.run = [](const Kernel<Solve>& kernel, const Solve& p, const Plan&, const Workspace& workspace) {
    const detail::SolveArguments<T> g = detail::solve_arguments<T>(p);
    const int workers = workers_of(p);
    const bool one_by_one = p.batch < p.execution.concurrency;
    const BlasThreads threads(one_by_one ? p.execution.concurrency : 1);
    const auto compute = [&](int worker) {
      std::size_t bytes = bytes_of_worker<T>(p);
      const Worker<T> w(p, static_cast<std::byte*>(workspace.data) + bytes * static_cast<std::size_t>(worker), bytes);
      for (std::int64_t l = worker; l < p.batch; l += one_by_one ? 1 : workers) solve_one(g, l, w);
    };
    if (one_by_one) return compute(0);
    detail::with_instance(detail::compiled_host_spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
      // A host launch is complete when Kokkos returns from it, so the pointer stays valid.
      Kokkos::parallel_for("rigel::solve/" + kernel.info.name, Policy(exec, 0, workers, Kokkos::ChunkSize(1)),
                           [run = &compute](const int worker) { (*run)(worker); });
    });
  };
  return k;
}

}  // namespace
}  // namespace rigel::backends::host

#endif

namespace rigel::backends {

void register_host(Registry<Solve>& registry);
void register_host([[maybe_unused]] Registry<Solve>& registry) {
#if RIGEL_HAS_LAPACK
  for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu, Factorisation::eigen}) {
    registry.add(host::kernel<float>(f));
    registry.add(host::kernel<double>(f));
  }
#endif
}

}  // namespace rigel::backends

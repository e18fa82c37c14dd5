// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernel_solve(): (K + λI)·α = y for a kernel matrix K that is never stored, by conjugate gradients (M. R. Hestenes and E. Stiefel, Methods of
// conjugate gradients for solving linear systems, 1952) with kernel_matvec(), preconditioned by a pivoted partial Cholesky factor of K (H.
// Harbrecht, M. Peters and R. Schneider, On the low-rank approximation by the pivoted Cholesky decomposition, 2012).
#pragma once

#include <rigel/detail/iteration.hpp>
#include <rigel/kernel_matvec.hpp>
#include <rigel/linalg.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace rigel {

/// Options of kernel_solve().
struct KernelSolveOptions {
  double tolerance = 1e-6;  // of |y − (K + λI)·α| / |y|, Euclidean norms, for each right side
  int iterations = 1000;    // at most so many steps
  int rank = 100;           // of the preconditioner: 8·rank·M bytes; 0: none. It is smaller if K's rank is.
  std::function<bool(int iteration, double residual)> progress =
      {};                                      // after each step: its number from 1, the largest residual; whether to go on
  Promise require = Promise::none;             // of the kernels' values, as in ReduceOptions
  Precision precision = Precision::automatic;  // the same
  bool may_cancel = false;                     // the same
  std::string_view score_kernel = {};          // the same
  std::size_t workspace_limit = 0;             // the same
  Workspace workspace = {};                    // kernel_solve_workspace_size() bytes; else from Rigel's pool
};

/// What kernel_solve() found.
struct KernelSolveResult {
  int iterations = 0;
  double residual = 0;     // the largest |y − (K + λI)·α| / |y| of a right side, of α as it is stored
  int rank = 0;            // of the preconditioner
  bool converged = false;  // residual ≤ tolerance
};

namespace detail {

/// What kernel_solve() asks of K, for points of a metric and a kernel: products, the diagonal and rows, and the bytes of workspace for each.
template <class Exec, class X, class M, class K, class T>
class PointKernels {
  using Element = typename view_t<X>::non_const_value_type;
  using Space = typename Exec::memory_space;
  using Points = Kokkos::View<const Element**, Kokkos::LayoutStride, Space, Kokkos::MemoryUnmanaged>;
  using PointBatch = Kokkos::View<const Element***, Kokkos::LayoutStride, Space, Kokkos::MemoryUnmanaged>;
  using Row = typename ArraysAt<Exec>::template Matrix<T>;
  using Sums = typename ArraysAt<Exec>::template Matrix<double>;

 public:
  PointKernels(const Exec& exec, const Operand& x, const M& metric, const K& kernel, const KernelSolveOptions& options)
      : exec_(exec), x_(x), metric_(metric), kernel_(kernel), options_(options) {}

  /// product = K·v
  void multiply(const Row& v, const Sums& product, const Workspace& workspace) const {
    kernel_matvec(exec_, points(), points(), v, metric_, kernel_, product, options_of_products(workspace));
  }
  std::size_t multiply_bytes(const Row& v, const Sums& product) const {
    return kernel_matvec_workspace_size(exec_, points(), points(), v, metric_, kernel_, product, options_of_products({}));
  }
  /// row(0, m) = K(m,m)
  void diagonal(const Row& row, const Workspace& workspace) const {
    kernel_matrix(exec_, each_point(), each_point(), of_each_point(row), metric_, kernel_, options_of_rows(workspace));
  }
  std::size_t diagonal_bytes(const Row& row) const {
    return kernel_matrix_workspace_size(exec_, each_point(), each_point(), of_each_point(row), metric_, kernel_,
                                        options_of_rows({}));
  }
  /// row(0, :) = K(i, :)
  void row(std::int64_t i, const Row& row, const Workspace& workspace) const {
    kernel_matrix(exec_, point(i), points(), row, metric_, kernel_, options_of_rows(workspace));
  }
  std::size_t row_bytes(std::int64_t i, const Row& row) const {
    return kernel_matrix_workspace_size(exec_, point(i), points(), row, metric_, kernel_, options_of_rows({}));
  }

 private:
  Points points() const {
    return Points(static_cast<const Element*>(x_.data), layout(x_.rows, x_.row_stride, x_.columns, x_.column_stride));
  }
  Points point(std::int64_t i) const {
    return Points(static_cast<const Element*>(x_.data) + i * x_.row_stride,
                  layout(1, x_.row_stride, x_.columns, x_.column_stride));
  }
  /// A batch of matrices of one point each.
  PointBatch each_point() const {
    return PointBatch(static_cast<const Element*>(x_.data),
                      Kokkos::LayoutStride(size(x_.rows), size(x_.row_stride), 1, size(x_.row_stride), size(x_.columns),
                                           size(x_.column_stride)));
  }
  Kokkos::View<T***, Kokkos::LayoutRight, Space, Kokkos::MemoryUnmanaged> of_each_point(const Row& row) const {
    return {row.data(), size(x_.rows), 1, 1};
  }
  static std::size_t size(std::int64_t number) { return static_cast<std::size_t>(number); }
  static Kokkos::LayoutStride layout(std::int64_t rows, std::int64_t row, std::int64_t columns, std::int64_t column) {
    return Kokkos::LayoutStride(size(rows), size(row), size(columns), size(column));
  }
  ReduceOptions options_of_products(const Workspace& workspace) const {
    return {.require = options_.require,
            .precision = options_.precision,
            .may_cancel = options_.may_cancel,
            .score_kernel = options_.score_kernel,
            .workspace_limit = options_.workspace_limit,
            .workspace = workspace};
  }
  KernelMatrixOptions<> options_of_rows(const Workspace& workspace) const {
    return {.require = options_.require,
            .precision = options_.precision,
            .may_cancel = options_.may_cancel,
            .kernel = options_.score_kernel,
            .workspace = workspace};
  }

  const Exec& exec_;
  const Operand& x_;
  const M& metric_;
  const K& kernel_;
  const KernelSolveOptions& options_;
};

/// One call: its arrays and its steps. T: the type of α, in which directions are multiplied by K.
template <class Exec, class Kernels, class T>
class KernelSolveCall {
  using Arrays = ArraysAt<Exec>;
  template <class Value>
  using Vector = typename Arrays::template Vector<Value>;
  template <class Value>
  using Matrix = typename Arrays::template Matrix<Value>;

 public:
  KernelSolveCall(const Exec& exec, const Kernels& kernels, std::int64_t points, std::int64_t right_sides,
                  double regularisation, const KernelSolveOptions& options, std::uintptr_t base, std::size_t inner)
      : exec_(exec),
        kernels_(kernels),
        options_(options),
        regularisation_(regularisation),
        m_(points),
        right_sides_(right_sides),
        most_rank_(std::min<std::int64_t>(options.rank, points)),
        arrays_(base) {
    for (Matrix<double>* v : {&solution_, &residual_, &preconditioned_, &product_})
      *v = arrays_.template matrix<double>(m_, right_sides_);
    direction_ = arrays_.template matrix<T>(m_, right_sides_);
    factor_ = arrays_.template matrix<double>(most_rank_, m_);
    small_ = arrays_.template matrix<double>(most_rank_, most_rank_);
    coordinates_ = arrays_.template matrix<double>(most_rank_, right_sides_);
    row_ = arrays_.template matrix<T>(1, m_);
    diagonal_ = arrays_.template vector<double>(m_);
    coefficients_ = arrays_.template vector<double>(right_sides_);
    parts_ = arrays_.template vector<double>(2 * ordered_parts * right_sides_);
    places_ = arrays_.template vector<std::int64_t>(ordered_parts);
    scales_ = arrays_.template vector<double>(right_sides_);
    info_ = arrays_.template vector<int>(1);
    inner_ = arrays_.rest(inner);
  }

  std::size_t bytes() const { return arrays_.bytes(); }
  /// What the operations that it calls need in addition.
  std::size_t inner_bytes() const {
    std::size_t most = kernels_.multiply_bytes(direction_, product_);
    if (most_rank_ == 0) return aligned(most);
    const auto take = [&](std::size_t bytes) { most = std::max(most, bytes); };
    take(kernels_.diagonal_bytes(row_));
    // Any point can be a pivot; these have all alignments that points have.
    for (std::int64_t i = 0; i < std::min<std::int64_t>(m_, 16); ++i) take(kernels_.row_bytes(i, row_));
    const SolveOptions options{.overwrite_a = true, .overwrite_b = true};
    take(rigel::workspace_size(exec_, plus_times<double>{}, factor_, rigel::transposed(factor_), small_,
                               epilogue::add_diagonal(1.)));
    take(rigel::workspace_size(exec_, plus_times<double>{}, factor_, residual_, coordinates_));
    take(rigel::workspace_size(exec_, plus_times<double>{}, rigel::transposed(factor_), coordinates_, preconditioned_));
    take(rigel::workspace_size(cholesky_factor_problem(exec_, small_, small_, info_, options)).bytes);
    take(rigel::workspace_size(cholesky_solve_factored_problem(exec_, small_, coordinates_, coordinates_, NoInfo{}, options))
             .bytes);
    return aligned(most);
  }

  KernelSolveResult run(const Strided<const T>& y) {
    KernelSolveResult result;
    double* const solution = solution_.data();
    for_each_index(
        exec_, "rigel::kernel_solve/start", m_ * right_sides_, KOKKOS_LAMBDA(const std::int64_t i) { solution[i] = 0; });
    find_scales(y);
    const double* const scales = scales_.data();
    norms_ = dots(KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) {
      const double value = scales[c] * static_cast<double>(y.at(0, i, c));
      return value * value;
    });
    for (double& norm : norms_) norm = std::sqrt(norm);
    find_factor();
    result.rank = static_cast<int>(rank_);
    // Each turn starts from the residual itself, not from what the steps made of it, until that reduces none of them.
    std::vector<double> before(norms_.size(), std::numeric_limits<double>::infinity());
    while (true) {
      const std::vector<double> residuals = true_residuals(y);
      result.residual = largest(residuals);
      result.converged = result.residual <= options_.tolerance;
      std::vector<bool> goes_on(residuals.size());
      for (std::size_t c = 0; c < residuals.size(); ++c)
        goes_on[c] = residuals[c] > options_.tolerance && residuals[c] <= before[c] / 2;  // not of NaN
      if (std::ranges::find(goes_on, true) == goes_on.end() || result.iterations >= options_.iterations || stopped_) break;
      before = residuals;
      iterate(result, residuals, goes_on);
    }
    return result;
  }

  void store(const Strided<T>& alpha) const {
    const T* const from = direction_.data();  // the solution, rounded, since the last true_residuals()
    const double* const scales = scales_.data();
    const std::int64_t columns = right_sides_;
    for_each_index(
        exec_, "rigel::kernel_solve/solution", m_ * columns, KOKKOS_LAMBDA(const std::int64_t i) {
          alpha.at(0, i / columns, i % columns) = static_cast<T>(static_cast<double>(from[i]) / scales[i % columns]);
        });
    exec_.fence("rigel::kernel_solve");
  }

 private:
  static double largest(const std::vector<double>& numbers) {
    double most = 0;
    for (const double number : numbers) most = Largest{}(most, number);
    return most;
  }

  // ---- operations ----------------------------------------------------------------------------------------------------

  static std::size_t size(std::int64_t number) { return static_cast<std::size_t>(number); }

  /// Powers of two that bring each right side's largest number to 1 … 2, so that squares neither overflow nor underflow: it is solved for
  /// y times these. They are exact, and so are results divided by them, unless α itself is out of T's range.
  void find_scales(const Strided<const T>& y) const {
    std::vector<double> scales = ordered_reduction(
        exec_, "rigel::kernel_solve/scales", m_, right_sides_, parts_,
        KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) { return math::abs(static_cast<double>(y.at(0, i, c))); },
        0, Largest{});
    for (double& scale : scales)
      scale = scale > 0 && scale < std::numeric_limits<double>::infinity()
                  ? std::ldexp(1., -std::clamp(std::ilogb(scale), -1000, 1000))
                  : 1;
    to_space(exec_, scales, scales_);
  }

  /// Sums over rows i of term(i, c), for c < right_sides, or twice as many.
  template <class Term>
  std::vector<double> dots(const Term& term, int times = 1) const {
    return ordered_sums(exec_, "rigel::kernel_solve/dots", m_, times * right_sides_, parts_, term);
  }

  /// product = (K + λI)·direction.
  void multiply() const {
    kernels_.multiply(direction_, product_, inner_);
    if (regularisation_ == 0) return;
    double* const product = product_.data();
    const T* const direction = direction_.data();
    const double lambda = regularisation_;
    for_each_index(
        exec_, "rigel::kernel_solve/regularisation", m_ * right_sides_,
        KOKKOS_LAMBDA(const std::int64_t i) { product[i] += lambda * static_cast<double>(direction[i]); });
  }

  /// residual = y − (K + λI)·solution, of scaled right sides, with the solution rounded to T, and its norms relative to y's.
  std::vector<double> true_residuals(const Strided<const T>& y) const {
    double *const solution = solution_.data(), *const residual = residual_.data();
    const double *const product = product_.data(), *const scales = scales_.data();
    T* const direction = direction_.data();
    const std::int64_t columns = right_sides_;
    for_each_index(
        exec_, "rigel::kernel_solve/residual", m_ * columns, KOKKOS_LAMBDA(const std::int64_t i) {
          direction[i] = static_cast<T>(solution[i]);
          solution[i] = static_cast<double>(direction[i]);
        });
    multiply();
    for_each_index(
        exec_, "rigel::kernel_solve/residual", m_ * columns, KOKKOS_LAMBDA(const std::int64_t i) {
          residual[i] = scales[i % columns] * static_cast<double>(y.at(0, i / columns, i % columns)) - product[i];
        });
    return relative(dots(KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) {
      return residual[i * columns + c] * residual[i * columns + c];
    }));
  }
  std::vector<double> relative(std::vector<double> squares) const {
    for (std::size_t c = 0; c < squares.size(); ++c) squares[c] = norms_[c] == 0 ? 0 : std::sqrt(squares[c]) / norms_[c];
    return squares;
  }

  // ---- the preconditioner --------------------------------------------------------------------------------------------

  /// L of rank r with L·Lᵀ ≈ K, whose pivots are the largest numbers on the diagonal of what is left of K, and the Cholesky factor of
  /// Lᵀ·L + σI, σ = λ + the mean of that diagonal or a least value: the preconditioner is L·Lᵀ + σI. L's columns are the first rows of
  /// factor_; the others are 0, so that products have the same extents whatever the rank is.
  void find_factor() {
    if (most_rank_ == 0) return;
    kernels_.diagonal(row_, inner_);
    double* const diagonal = diagonal_.data();
    const T* const row = row_.data();
    for_each_index(
        exec_, "rigel::kernel_solve/diagonal", m_,
        KOKKOS_LAMBDA(const std::int64_t i) { diagonal[i] = static_cast<double>(row[i]); });
    const double trace = sum_of_diagonal();
    double first = 0;
    for (rank_ = 0; rank_ < most_rank_; ++rank_) {
      const auto [pivot, value] = largest_on_diagonal();
      if (rank_ == 0) first = value;
      if (!(value > 4 * std::numeric_limits<T>::epsilon() * first)) break;
      add_column(pivot, value);
    }
    // A smaller one is outweighed by roundings of sums with L, which the preconditioner divides by σ.
    const double least = 16 * std::numeric_limits<double>::epsilon() * trace;
    sigma_ = std::max(regularisation_ + sum_of_diagonal() / static_cast<double>(m_), least);
    if (!(sigma_ > 0)) rank_ = 0;
    while (rank_ > 0 && !factorise()) {}
  }
  double sum_of_diagonal() const {
    const double* const diagonal = diagonal_.data();
    return ordered_sums(
        exec_, "rigel::kernel_solve/diagonal", m_, 1, parts_,
        KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) { return diagonal[i]; })[0];
  }
  /// The factor of Lᵀ·L + σI. If a leading minor is not positive definite in double, the rank becomes that of the minor before it, and the
  /// result is false.
  bool factorise() {
    double* const factor = factor_.data();
    const std::int64_t used = rank_ * m_;
    for_each_index(
        exec_, "rigel::kernel_solve/factor", most_rank_ * m_ - used,
        KOKKOS_LAMBDA(const std::int64_t i) { factor[used + i] = 0; });
    contract(exec_, plus_times<double>{}, factor_, rigel::transposed(factor_), small_, epilogue::add_diagonal(sigma_),
             {.workspace = inner_});
    cholesky_factor(exec_, small_, small_, info_, {.overwrite_a = true, .workspace = inner_});
    const int info = to_host(exec_, info_)[0];
    if (info == 0) return true;
    rank_ = std::min<std::int64_t>(rank_, info) - 1;
    return false;
  }

  /// Of equal ones the first.
  std::pair<std::int64_t, double> largest_on_diagonal() const {
    const double* const diagonal = diagonal_.data();
    double* const values = parts_.data();
    std::int64_t* const places = places_.data();
    const std::int64_t m = m_;
    for_each_index(
        exec_, "rigel::kernel_solve/pivot", ordered_parts, KOKKOS_LAMBDA(const std::int64_t part) {
          std::int64_t best = -1;
          for (std::int64_t i = part; i < m; i += ordered_parts)
            if (best < 0 || diagonal[i] > diagonal[best]) best = i;
          places[part] = best;
          values[part] = best < 0 ? 0 : diagonal[best];
        });
    const std::vector<std::int64_t> at = to_host(exec_, places_);
    const std::vector<double> largest = to_host(exec_, Vector<double>(values, size(ordered_parts)));
    std::size_t best = 0;
    for (std::size_t part = 1; part < at.size() && at[part] >= 0; ++part)
      if (largest[part] > largest[best] || (largest[part] == largest[best] && at[part] < at[best])) best = part;
    return {at[best], largest[best]};
  }
  void add_column(std::int64_t pivot, double value) const {
    kernels_.row(pivot, row_, inner_);
    const std::int64_t m = m_, rank = rank_;
    const T* const row = row_.data();
    double *const factor = factor_.data(), *const diagonal = diagonal_.data();
    const double root = std::sqrt(value);
    for_each_index(
        exec_, "rigel::kernel_solve/column", m, KOKKOS_LAMBDA(const std::int64_t i) {
          auto rest = static_cast<double>(row[i]);
          for (std::int64_t t = 0; t < rank; ++t) rest -= factor[t * m + pivot] * factor[t * m + i];
          const double number = i == pivot ? root : rest / root;
          factor[rank * m + i] = number;
          const double left = diagonal[i] - number * number;
          diagonal[i] = i == pivot || left < 0 ? 0 : left;
        });
  }

  /// preconditioned = (L·Lᵀ + σI)⁻¹·residual = (residual − L·(Lᵀ·L + σI)⁻¹·Lᵀ·residual) / σ.
  void precondition() const {
    const double* const residual = residual_.data();
    double* const preconditioned = preconditioned_.data();
    if (rank_ > 0) {
      contract(exec_, plus_times<double>{}, factor_, residual_, coordinates_, epilogue::Program{}, {.workspace = inner_});
      cholesky_solve_factored(exec_, small_, coordinates_, coordinates_, {.overwrite_b = true, .workspace = inner_});
      contract(exec_, plus_times<double>{}, rigel::transposed(factor_), coordinates_, preconditioned_, epilogue::Program{},
               {.workspace = inner_});
    }
    const double sigma = sigma_;
    const bool has_factor = rank_ > 0;
    for_each_index(
        exec_, "rigel::kernel_solve/preconditioner", m_ * right_sides_, KOKKOS_LAMBDA(const std::int64_t i) {
          preconditioned[i] = has_factor ? (residual[i] - preconditioned[i]) / sigma : residual[i];
        });
  }

  // ---- the steps -----------------------------------------------------------------------------------------------------

  /// Steps of the right sides that go on, until the residuals that they keep are small enough, or none can go on.
  void iterate(KernelSolveResult& result, std::vector<double> residuals, std::vector<bool> goes_on) {
    const std::int64_t columns = right_sides_;
    double *const solution = solution_.data(), *const residual = residual_.data(), *const product = product_.data(),
                  *const preconditioned = preconditioned_.data(), *const coefficients = coefficients_.data();
    T* const direction = direction_.data();
    const auto residual_times_preconditioned = [&] {
      return dots(KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) {
        return residual[i * columns + c] * preconditioned[i * columns + c];
      });
    };
    precondition();
    for_each_index(
        exec_, "rigel::kernel_solve/direction", m_ * columns,
        KOKKOS_LAMBDA(const std::int64_t i) { direction[i] = static_cast<T>(preconditioned[i]); });
    std::vector<double> lengths = residual_times_preconditioned();
    while (result.iterations < options_.iterations) {
      multiply();
      // Since a direction is rounded, the step along it is that of the least error for it as it is.
      const std::vector<double> both = dots(
          KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) {
            const std::int64_t at = i * columns + c % columns;
            return static_cast<double>(direction[at]) * (c < columns ? product[at] : residual[at]);
          },
          2);
      std::vector<double> steps(residuals.size(), 0);
      bool any = false;
      for (std::size_t c = 0; c < steps.size(); ++c) {
        goes_on[c] = goes_on[c] && both[c] > 0;  // else K + λI is not positive definite
        if (goes_on[c]) steps[c] = both[steps.size() + c] / both[c];
        any = any || goes_on[c];
      }
      if (!any) return;
      to_space(exec_, steps, coefficients_);
      for_each_index(
          exec_, "rigel::kernel_solve/step", m_ * columns, KOKKOS_LAMBDA(const std::int64_t i) {
            const double step = coefficients[i % columns];
            if (step == 0) return;
            solution[i] += step * static_cast<double>(direction[i]);
            residual[i] -= step * product[i];
          });
      residuals = relative(dots(KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) {
        return residual[i * columns + c] * residual[i * columns + c];
      }));
      ++result.iterations;
      any = false;
      for (std::size_t c = 0; c < residuals.size(); ++c) {
        goes_on[c] = goes_on[c] && residuals[c] > options_.tolerance / 2;
        any = any || goes_on[c];
      }
      if (options_.progress && !options_.progress(result.iterations, largest(residuals))) stopped_ = true;
      if (stopped_ || !any) return;
      precondition();
      const std::vector<double> next = residual_times_preconditioned();
      std::vector<double> factors(next.size(), 0);
      for (std::size_t c = 0; c < next.size(); ++c) factors[c] = goes_on[c] ? next[c] / lengths[c] : 0;
      lengths = next;
      to_space(exec_, factors, coefficients_);
      for_each_index(
          exec_, "rigel::kernel_solve/direction", m_ * columns, KOKKOS_LAMBDA(const std::int64_t i) {
            direction[i] = static_cast<T>(preconditioned[i] + coefficients[i % columns] * static_cast<double>(direction[i]));
          });
    }
  }

  const Exec& exec_;
  const Kernels& kernels_;
  const KernelSolveOptions& options_;
  double regularisation_, sigma_ = 1;
  std::int64_t m_, right_sides_, most_rank_, rank_ = 0;
  Arrays arrays_;
  Matrix<double> solution_, residual_, preconditioned_, product_, factor_, small_, coordinates_;
  Matrix<T> direction_, row_;
  Vector<double> diagonal_, coefficients_, parts_, scales_;
  Vector<std::int64_t> places_;
  Vector<int> info_;
  Workspace inner_;
  std::vector<double> norms_;
  bool stopped_ = false;
};

/// The matrices of a call.
struct KernelSolveOperands {
  Operand x, y, alpha;
  Operand of_metric = {};  // what the metric reads when it runs, if it is known
  void check(const Call& call, double regularisation, const KernelSolveOptions& options) const {
    if (x.batches != 1) refuse(call, describe_argument(x, " is ") + ", expected a single matrix");
    require_extent(call, y, "rows", y.rows, x.rows, x);
    require_extent(call, alpha, "rows", alpha.rows, x.rows, x);
    require_extent(call, alpha, "columns", alpha.columns, y.columns, y);
    if (y.columns < 1 || y.columns > Reduction::most_columns)
      refuse(call,
             describe_argument(y, " is ") + ", expected 1 to " + std::to_string(Reduction::most_columns) + " right sides");
    const auto require_number = [&](double number, const char* what) {
      if (!(number >= 0 && number < std::numeric_limits<double>::infinity()))
        refuse(call, std::string(what) + " is " + std::to_string(number) + ", expected a finite number, 0 or more");
    };
    require_number(regularisation, "regularisation");
    require_number(options.tolerance, "options.tolerance");
    require_number(options.iterations, "options.iterations");
    require_number(options.rank, "options.rank");
    if (x.rows == 0) return;
    require_data(call, y);
    require_data(call, alpha);
    require_distinct(call, alpha);
    if (x.columns > 0) {
      require_data(call, x);
      require_disjoint(call, alpha, x);
    }
    require_disjoint(call, alpha, y);
    if (of_metric.size > 0) require_disjoint(call, alpha, of_metric);
  }
};

inline Call kernel_solve_call(const Execution& execution, const KernelSolveOptions& options) {
  Call call;
  call.function = "kernel_solve";
  call.execution = execution;
  call.workspace = options.workspace;
  return call;
}

/// A checked call, and the bytes that it needs.
template <class T, class Exec, class Kernels>
std::size_t kernel_solve_bytes(const Exec& exec, const Kernels& kernels, const KernelSolveOperands& operands,
                               double regularisation, const KernelSolveOptions& options) {
  if (operands.x.rows == 0) return 0;
  const KernelSolveCall<Exec, Kernels, T> nominal(exec, kernels, operands.x.rows, operands.y.columns, regularisation,
                                                  options, nominal_workspace, 0);
  return nominal.bytes() + nominal.inner_bytes();
}
template <class T, class Exec, class Kernels>
KernelSolveResult run_kernel_solve(const Exec& exec, const Call& call, const Kernels& kernels,
                                   const KernelSolveOperands& operands, double regularisation,
                                   const KernelSolveOptions& options) {
  require_waiting(call);
  if (operands.x.rows == 0) return {.converged = true};
  const auto at = [&](std::uintptr_t base, std::size_t inner) {
    return KernelSolveCall<Exec, Kernels, T>(exec, kernels, operands.x.rows, operands.y.columns, regularisation, options,
                                             base, inner);
  };
  const auto nominal = at(nominal_workspace, 0);
  const std::size_t inner = nominal.inner_bytes();
  const CallMemory memory(call.function, call.execution, call.workspace, nominal.bytes() + inner,
                          {&operands.x, &operands.y, &operands.alpha, &operands.of_metric});
  auto placed = at(memory.address(), inner);
  const KernelSolveResult result = placed.run(strided_in<const T>(operands.y));
  placed.store(strided_in<T>(operands.alpha));
  return result;
}

/// Checks a call, and hands use.operator()<T>() the call, its kernels and its operands.
template <class Exec, class X, class Y, class M, class K, class Alpha, class Use>
auto with_kernel_solve(const Exec& exec, const X& x, const Y& y, const M& metric, const K& kernel, double regularisation,
                       const Alpha& alpha, const KernelSolveOptions& options, const Use& use) {
  using T = typename view_t<Alpha>::value_type;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "kernel_solve: alpha is of float or double, and written");
  static_assert(std::is_same_v<typename view_t<Y>::non_const_value_type, T>, "kernel_solve: y and alpha hold the same type");
  static_assert(view_t<Y>::rank() == view_t<Alpha>::rank() && view_t<Y>::rank() <= 2,
                "kernel_solve: y and alpha are views of rank 1, or of rank 2 with a column for each right side");
  constexpr bool many = view_t<Y>::rank() == 2;
  const Call call = kernel_solve_call(execution_of(exec), options);
  const KernelSolveOperands operands{operand_of(x, Batch::first, "X"), result_operand<many>(y, Batch::first, "y"),
                                     result_operand<many>(alpha, Batch::first, "alpha")};
  operands.check(call, regularisation, options);
  const PointKernels<Exec, X, M, K, T> kernels(exec, operands.x, metric, kernel, options);
  return use.template operator()<T>(call, kernels, operands);
}

}  // namespace detail

/// alpha with (K + λI)·alpha = y, K(m,n) = k(X(m,:), X(n,:)), without K: kernel ridge regression, and the means of Gaussian processes.
///
/// exec, x, metric, kernel   as in kernel_matrix(): x is M × K, a single matrix. K + λI has to be positive definite.
/// y, alpha  M × R numbers of float or double, R ≤ 512 right sides; or both of rank 1. They do not overlap.
/// regularisation   λ ≥ 0
/// options   A step is a kernel_matvec() of all right sides. Directions are in alpha's type, sums of them and the preconditioner in double. If x
///           holds floats and alpha doubles, kernels are those of floats, and products with them in double.
/// The preconditioner L·Lᵀ + σI has L of options.rank columns, for which as many rows of K are computed, and σ is λ plus the mean of what
/// L leaves on K's diagonal, at least 2^-48 times K's trace. The result's residual is that of alpha as it is stored; if the steps' own one is
/// smaller, right sides go on from the former, as long as that helps them. With alpha of float it does not get much below
/// 2^-24·|K||alpha|/|y|: then, and if K + λI is not positive definite or something is NaN, converged is false, and alpha is where the steps
/// ended. A NaN in one right side leaves the others as they are without it.
/// Its error is at most residual·|y| / (λ + the least eigenvalue of K).
/// It waits for the space in each step, and refuses a stream that is being captured. Sums have one order on every space.
/// Throws Error(invalid_argument) if extents do not fit, alpha overlaps, or a number is out of its range; and as kernel_matvec() does.
template <class Exec, class X, class Y, class M, class K, class Alpha>
KernelSolveResult kernel_solve(const Exec& exec, const X& x, const Y& y, const M& metric, const K& kernel,
                               double regularisation, const Alpha& alpha, const KernelSolveOptions& options = {}) {
  return detail::with_kernel_solve(
      exec, x, y, metric, kernel, regularisation, alpha, options,
      [&]<class T>(const Call& call, const auto& kernels, const detail::KernelSolveOperands& operands) {
        return detail::run_kernel_solve<T>(exec, call, kernels, operands, regularisation, options);
      });
}
/// Bytes of workspace that the same call of kernel_solve() needs.
template <class Exec, class X, class Y, class M, class K, class Alpha>
std::size_t kernel_solve_workspace_size(const Exec& exec, const X& x, const Y& y, const M& metric, const K& kernel,
                                        double regularisation, const Alpha& alpha, const KernelSolveOptions& options = {}) {
  return detail::with_kernel_solve(
      exec, x, y, metric, kernel, regularisation, alpha, options,
      [&]<class T>(const Call&, const auto& kernels, const detail::KernelSolveOperands& operands) {
        return detail::kernel_solve_bytes<T>(exec, kernels, operands, regularisation, options);
      });
}

}  // namespace rigel

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

/// One call: its arrays and its steps. T: the type of α, in which directions are multiplied by K.
template <class Exec, class X, class M, class K, class T>
class KernelSolveCall {
  using Arrays = ArraysAt<Exec>;
  template <class Value>
  using Vector = typename Arrays::template Vector<Value>;
  template <class Value>
  using Matrix = typename Arrays::template Matrix<Value>;
  using Element = typename view_t<X>::non_const_value_type;
  using Space = typename Exec::memory_space;
  using Points = Kokkos::View<const Element**, Kokkos::LayoutStride, Space, Kokkos::MemoryUnmanaged>;
  using PointBatch = Kokkos::View<const Element***, Kokkos::LayoutStride, Space, Kokkos::MemoryUnmanaged>;

 public:
  KernelSolveCall(const Exec& exec, const Operand& x, const M& metric, const K& kernel, std::int64_t right_sides,
                  double regularisation, const KernelSolveOptions& options, std::uintptr_t base, std::size_t inner)
      : exec_(exec),
        metric_(metric),
        kernel_(kernel),
        options_(options),
        regularisation_(regularisation),
        x_(x),
        m_(x.rows),
        right_sides_(right_sides),
        most_rank_(std::min<std::int64_t>(options.rank, x.rows)),
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
    inner_ = arrays_.rest(inner);
  }

  std::size_t bytes() const { return arrays_.bytes(); }
  /// What the operations that it calls need in addition.
  std::size_t inner_bytes() const {
    std::size_t most = kernel_matvec_workspace_size(exec_, points(), points(), direction_, metric_, kernel_, product_,
                                                    options_of_products({}));
    if (most_rank_ == 0) return aligned(most);
    const auto take = [&](std::size_t bytes) { most = std::max(most, bytes); };
    take(kernel_matrix_workspace_size(exec_, each_point(), each_point(), diagonal_values(), metric_, kernel_,
                                      options_of_rows({})));
    // Any point can be a pivot; these have all alignments that points have.
    for (std::int64_t i = 0; i < std::min<std::int64_t>(m_, 16); ++i)
      take(kernel_matrix_workspace_size(exec_, point(i), points(), row_, metric_, kernel_, options_of_rows({})));
    // The rank is found later, and each may have other kernels.
    const SolveOptions options{.overwrite_a = true, .overwrite_b = true};
    for (std::int64_t rank = 1; rank <= most_rank_; ++rank) {
      const Matrix<double> factor = factor_of(rank), small = small_of(rank), coordinates = coordinates_of(rank);
      take(rigel::workspace_size(exec_, plus_times<double>{}, factor, rigel::transposed(factor), small,
                                 epilogue::add_diagonal(1.)));
      take(rigel::workspace_size(exec_, plus_times<double>{}, factor, residual_, coordinates));
      take(rigel::workspace_size(exec_, plus_times<double>{}, rigel::transposed(factor), coordinates, preconditioned_));
      take(rigel::workspace_size(cholesky_factor_problem(exec_, small, small, NoInfo{}, options)).bytes);
      take(rigel::workspace_size(cholesky_solve_factored_problem(exec_, small, coordinates, coordinates, NoInfo{}, options))
               .bytes);
    }
    return aligned(most);
  }

  KernelSolveResult run(const Call& call, const Strided<const T>& y) {
    KernelSolveResult result;
    double* const solution = solution_.data();
    for_each_index(
        exec_, "rigel::kernel_solve/start", m_ * right_sides_, KOKKOS_LAMBDA(const std::int64_t i) { solution[i] = 0; });
    norms_ = dots(KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) {
      const auto value = static_cast<double>(y.at(0, i, c));
      return value * value;
    });
    const std::vector<double> magnitudes = dots(KOKKOS_LAMBDA(const std::int64_t i, const std::int64_t c) {
      const auto value = static_cast<double>(y.at(0, i, c));
      return value < 0 ? -value : value;
    });
    for (std::size_t c = 0; c < norms_.size(); ++c) {
      if (norms_[c] < std::numeric_limits<double>::min() && magnitudes[c] != 0)
        refuse(call, "y's column " + std::to_string(c) + " has numbers whose squares underflow, expected larger ones");
      norms_[c] = std::sqrt(norms_[c]);
    }
    find_factor();
    result.rank = static_cast<int>(rank_);
    // Each turn starts from the residual itself, not from what the steps made of it, until that reduces it no more.
    for (double before = std::numeric_limits<double>::infinity();;) {
      const std::vector<double> residuals = true_residuals(y);
      result.residual = largest(residuals);
      result.converged = result.residual <= options_.tolerance;
      if (result.converged || !(result.residual <= before / 2) || result.iterations >= options_.iterations || stopped_)
        break;
      before = result.residual;
      iterate(result, residuals);
    }
    return result;
  }

  void store(const Strided<T>& alpha) const {
    const T* const from = direction_.data();  // the solution, rounded, since the last true_residuals()
    const std::int64_t columns = right_sides_;
    for_each_index(
        exec_, "rigel::kernel_solve/solution", m_ * columns,
        KOKKOS_LAMBDA(const std::int64_t i) { alpha.at(0, i / columns, i % columns) = from[i]; });
    exec_.fence("rigel::kernel_solve");
  }

 private:
  static double largest(const std::vector<double>& numbers) {
    double most = 0;
    for (const double number : numbers)
      if (!(number <= most)) most = number;  // NaN stays
    return most;
  }

  // ---- operations ----------------------------------------------------------------------------------------------------

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
  Kokkos::View<T***, Kokkos::LayoutRight, Space, Kokkos::MemoryUnmanaged> diagonal_values() const {
    return {row_.data(), size(m_), 1, 1};
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

  /// Sums over rows i of term(i, c), for c < right_sides, or twice as many.
  template <class Term>
  std::vector<double> dots(const Term& term, int times = 1) const {
    return ordered_sums(exec_, "rigel::kernel_solve/dots", m_, times * right_sides_, parts_, term);
  }

  /// product = (K + λI)·direction.
  void multiply() const {
    kernel_matvec(exec_, points(), points(), direction_, metric_, kernel_, product_, options_of_products(inner_));
    if (regularisation_ == 0) return;
    double* const product = product_.data();
    const T* const direction = direction_.data();
    const double lambda = regularisation_;
    for_each_index(
        exec_, "rigel::kernel_solve/regularisation", m_ * right_sides_,
        KOKKOS_LAMBDA(const std::int64_t i) { product[i] += lambda * static_cast<double>(direction[i]); });
  }

  /// residual = y − (K + λI)·solution, with the solution rounded to T, and its norms relative to y's.
  std::vector<double> true_residuals(const Strided<const T>& y) const {
    double *const solution = solution_.data(), *const residual = residual_.data();
    const double* const product = product_.data();
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
          residual[i] = static_cast<double>(y.at(0, i / columns, i % columns)) - product[i];
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
  /// Lᵀ·L + σI, σ = λ + the mean of that diagonal: the preconditioner is L·Lᵀ + σI. L's columns are the rows of factor_.
  void find_factor() {
    if (most_rank_ == 0) return;
    kernel_matrix(exec_, each_point(), each_point(), diagonal_values(), metric_, kernel_, options_of_rows(inner_));
    double* const diagonal = diagonal_.data();
    const T* const row = row_.data();
    for_each_index(
        exec_, "rigel::kernel_solve/diagonal", m_,
        KOKKOS_LAMBDA(const std::int64_t i) { diagonal[i] = static_cast<double>(row[i]); });
    double first = 0;
    for (rank_ = 0; rank_ < most_rank_; ++rank_) {
      const auto [pivot, value] = largest_on_diagonal();
      if (rank_ == 0) first = value;
      if (!(value > 4 * std::numeric_limits<T>::epsilon() * first)) break;
      add_column(pivot, value);
    }
    const double rest = ordered_sums(
        exec_, "rigel::kernel_solve/diagonal", m_, 1, parts_,
        KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) { return diagonal[i]; })[0];
    sigma_ = regularisation_ + rest / static_cast<double>(m_);
    if (!(sigma_ > 0)) rank_ = 0;
    if (rank_ == 0) return;
    const Matrix<double> factor = factor_of(rank_), small = small_of(rank_);
    contract(exec_, plus_times<double>{}, factor, rigel::transposed(factor), small, epilogue::add_diagonal(sigma_),
             {.workspace = inner_});
    cholesky_factor(exec_, small, small, {.overwrite_a = true, .workspace = inner_});
  }
  Matrix<double> factor_of(std::int64_t rank) const { return {factor_.data(), size(rank), size(m_)}; }
  Matrix<double> small_of(std::int64_t rank) const { return {small_.data(), size(rank), size(rank)}; }
  Matrix<double> coordinates_of(std::int64_t rank) const { return {coordinates_.data(), size(rank), size(right_sides_)}; }

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
    kernel_matrix(exec_, point(pivot), points(), row_, metric_, kernel_, options_of_rows(inner_));
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
      const Matrix<double> factor = factor_of(rank_), coordinates = coordinates_of(rank_);
      contract(exec_, plus_times<double>{}, factor, residual_, coordinates, epilogue::Program{}, {.workspace = inner_});
      cholesky_solve_factored(exec_, small_of(rank_), coordinates, coordinates, {.overwrite_b = true, .workspace = inner_});
      contract(exec_, plus_times<double>{}, rigel::transposed(factor), coordinates, preconditioned_, epilogue::Program{},
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

  /// Steps until the residuals that they keep are small enough, or no right side can go on.
  void iterate(KernelSolveResult& result, std::vector<double> residuals) {
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
    std::vector<bool> goes_on(residuals.size());
    for (std::size_t c = 0; c < residuals.size(); ++c) goes_on[c] = residuals[c] > options_.tolerance;
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
  const M& metric_;
  const K& kernel_;
  const KernelSolveOptions& options_;
  double regularisation_, sigma_ = 1;
  Operand x_;
  std::int64_t m_, right_sides_, most_rank_, rank_ = 0;
  Arrays arrays_;
  Matrix<double> solution_, residual_, preconditioned_, product_, factor_, small_, coordinates_;
  Matrix<T> direction_, row_;
  Vector<double> diagonal_, coefficients_, parts_;
  Vector<std::int64_t> places_;
  Workspace inner_;
  std::vector<double> norms_;
  bool stopped_ = false;
};

/// Checks a call, and hands `use` a function (address, bytes for inner calls) → KernelSolveCall, and its operands.
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
  Call call;
  call.function = "kernel_solve";
  call.execution = execution_of(exec);
  call.workspace = options.workspace;
  const Operand of_x = operand_of(x, Batch::first, "X"), of_y = result_operand<many>(y, Batch::first, "y"),
                of_alpha = result_operand<many>(alpha, Batch::first, "alpha");
  if (of_x.batches != 1) refuse(call, describe_argument(of_x, " is ") + ", expected a single matrix");
  require_extent(call, of_y, "rows", of_y.rows, of_x.rows, of_x);
  require_extent(call, of_alpha, "rows", of_alpha.rows, of_x.rows, of_x);
  require_extent(call, of_alpha, "columns", of_alpha.columns, of_y.columns, of_y);
  if (of_y.columns < 1 || of_y.columns > Reduction::most_columns)
    refuse(call,
           describe_argument(of_y, " is ") + ", expected 1 to " + std::to_string(Reduction::most_columns) + " right sides");
  const auto require_number = [&](double number, const char* what) {
    if (!(number >= 0 && number < std::numeric_limits<double>::infinity()))
      refuse(call, std::string(what) + " is " + std::to_string(number) + ", expected a finite number, 0 or more");
  };
  require_number(regularisation, "regularisation");
  require_number(options.tolerance, "options.tolerance");
  require_number(options.iterations, "options.iterations");
  require_number(options.rank, "options.rank");
  if (of_x.rows > 0) {
    require_data(call, of_y);
    require_data(call, of_alpha);
    require_distinct(call, of_alpha);
    if (of_x.columns > 0) {
      require_data(call, of_x);
      require_disjoint(call, of_alpha, of_x);
    }
    require_disjoint(call, of_alpha, of_y);
  }
  const auto at = [&](std::uintptr_t base, std::size_t inner) {
    return KernelSolveCall<Exec, X, M, K, T>(exec, of_x, metric, kernel, of_y.columns, regularisation, options, base, inner);
  };
  return use(call, at, strided<T>(of_y), strided_in<T>(of_alpha), of_x.rows == 0);
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
/// L leaves on K's diagonal. The result's residual is that of alpha as it is stored; if the steps' own one is smaller, they go on from the
/// former, as long as that helps. With alpha of float it does not get much below 2^-24·|K||alpha|/|y|: then, and if K + λI is not positive
/// definite or something is NaN, converged is false, and alpha is where the steps ended.
/// Its error is at most residual·|y| / (λ + the least eigenvalue of K).
/// It waits for the space in each step, and is not for captured streams. Sums have one order on every space.
/// Throws Error(invalid_argument) if extents do not fit, alpha overlaps, a number is out of its range, or the squares of a column of y
/// underflow; and as kernel_matvec() does.
template <class Exec, class X, class Y, class M, class K, class Alpha>
KernelSolveResult kernel_solve(const Exec& exec, const X& x, const Y& y, const M& metric, const K& kernel,
                               double regularisation, const Alpha& alpha, const KernelSolveOptions& options = {}) {
  return detail::with_kernel_solve(
      exec, x, y, metric, kernel, regularisation, alpha, options,
      [&](const Call& call, const auto& at, const auto& of_y, const auto& of_alpha, bool is_empty) {
        if (is_empty) return KernelSolveResult{.converged = true};
        const auto nominal = at(detail::nominal_workspace, 0);
        const std::size_t inner = nominal.inner_bytes();
        const detail::IterationMemory memory(call, nominal.bytes() + inner);
        auto placed = at(memory.address(), inner);
        const KernelSolveResult result = placed.run(call, of_y);
        placed.store(of_alpha);
        return result;
      });
}
/// Bytes of workspace that the same call of kernel_solve() needs.
template <class Exec, class X, class Y, class M, class K, class Alpha>
std::size_t kernel_solve_workspace_size(const Exec& exec, const X& x, const Y& y, const M& metric, const K& kernel,
                                        double regularisation, const Alpha& alpha, const KernelSolveOptions& options = {}) {
  return detail::with_kernel_solve(exec, x, y, metric, kernel, regularisation, alpha, options,
                                   [&](const Call&, const auto& at, const auto&, const auto&, bool is_empty) {
                                     if (is_empty) return std::size_t{0};
                                     const auto nominal = at(detail::nominal_workspace, 0);
                                     return nominal.bytes() + nominal.inner_bytes();
                                   });
}

}  // namespace rigel

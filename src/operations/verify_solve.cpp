// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() of a kernel that solves: random systems, some of which have no solution, held to a-priori backward errors. Residuals
// are computed in double on the host; for kernels of double their own rounding, n·u of the same terms, is part of the bound.
#include "verify.hpp"

#include <rigel/detail/execution.hpp>
#include <rigel/solve.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace rigel {
namespace {

using Numbers = std::vector<double>;  // a batch of matrices, row by row

struct Case {
  std::int64_t batch, n, m;
  Solve::Task task;
  Triangle triangle;
  int layout;      // 0: by rows, 1: by columns, 2: with gaps
  bool one_fails;  // the last matrix of the batch
  std::string text() const {
    constexpr const char* tasks[] = {"factor", "substitute", "solve"};
    return std::string(tasks[int(task)]) + ", batch " + std::to_string(batch) + ", n " + std::to_string(n) + ", " +
           std::to_string(m) + " right sides, layout " +
           (layout == 0   ? "right"
            : layout == 1 ? "left"
                          : "strided") +
           (triangle == Triangle::upper ? ", upper" : ", lower") + (one_fails ? ", the last fails" : "");
  }
};

// Equal values; any NaN equals any NaN.
bool same(const Numbers& x, const Numbers& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
}

// γ_k = k·u / (1 − k·u).
double gamma(double k, double u) { return k * u / (1 - k * u); }

/// A batch of matrices in memory of an execution space, in one of three layouts; gaps hold NaN.
template <class T, class Exec>
class Placed {
 public:
  Placed(int layout, std::int64_t batch, std::int64_t rows, std::int64_t columns)
      : batch_(batch), rows_(rows), columns_(columns) {
    const std::int64_t gap = layout == 2 ? 3 : 1;
    operand_.type = scalar_of<T>;
    operand_.size = sizeof(T);
    operand_.batches = batch;
    operand_.rows = rows;
    operand_.columns = columns;
    operand_.row_stride = layout == 1 ? 1 : gap * columns + gap - 1;
    operand_.column_stride = layout == 1 ? rows + 1 : gap;
    const std::int64_t matrix = layout == 1 ? (rows + 1) * columns : operand_.row_stride * rows + 1;
    if (batch != 1) operand_.batch_stride = matrix;
    host_.assign(static_cast<std::size_t>(matrix * batch + 1), std::numeric_limits<T>::quiet_NaN());
    memory_ = Memory("rigel::verify", host_.size());
    operand_.data = memory_.data() + 1;
    put(Numbers(static_cast<std::size_t>(batch * rows * columns), -7));
  }
  const Operand& operand() const { return operand_; }
  void put(const Numbers& values) {
    for_each([&](std::size_t place, std::size_t i) { host_[place] = static_cast<T>(values[i]); });
    Kokkos::deep_copy(memory_, Host(host_.data(), host_.size()));
  }
  /// The elements; `gaps_kept` tells whether memory between them is as it was.
  Numbers get(bool& gaps_kept) {
    std::vector<T> now(host_.size());
    Kokkos::deep_copy(Host(now.data(), now.size()), memory_);
    Numbers values(static_cast<std::size_t>(batch_ * rows_ * columns_));
    std::vector<bool> element(now.size());
    for_each([&](std::size_t place, std::size_t i) {
      values[i] = static_cast<double>(now[place]);
      element[place] = true;
    });
    for (std::size_t i = 0; i < now.size(); ++i) gaps_kept = gaps_kept && (element[i] || now[i] != now[i]);
    return values;
  }

 private:
  using Memory = Kokkos::View<T*, typename Exec::memory_space>;
  using Host = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  template <class Visit>
  void for_each(const Visit& visit) const {
    std::size_t i = 0;
    for (std::int64_t l = 0; l < batch_; ++l)
      for (std::int64_t r = 0; r < rows_; ++r)
        for (std::int64_t c = 0; c < columns_; ++c)
          visit(
              static_cast<std::size_t>(1 + l * operand_.batch_stride + r * operand_.row_stride + c * operand_.column_stride),
              i++);
  }
  std::int64_t batch_, rows_, columns_;
  Operand operand_;
  std::vector<T> host_;
  Memory memory_;
};

template <class T, class Exec>
class Verifier {
  static constexpr double u = std::numeric_limits<T>::epsilon() / 2;

 public:
  Verifier(const Kernel<Solve>& kernel, Verification& result, unsigned seed)
      : kernel_(kernel), result_(result), seed_(seed) {}

  void check(const Case& c) {
    const Factorisation factorisation = factorisation_of(kernel_.info);
    std::mt19937_64 random(seed_ + static_cast<unsigned>(result_.problems));
    const Numbers a = matrices(c, factorisation, random);
    Numbers b(static_cast<std::size_t>(c.batch * c.n * c.m));
    for (double& v : b) v = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
    const bool factors = c.task == Solve::Task::factor;
    Placed<T, Exec> of_a(c.layout, c.batch, c.n, c.n), of_b((c.layout + 1) % 3, c.batch, c.n, c.m),
        of_x((c.layout + 2) % 3, c.batch, c.n, factors ? c.n : c.m), of_w(0, c.batch, c.n, 1);
    of_a.put(a);
    of_b.put(b);
    const Kokkos::View<std::int32_t*, typename Exec::memory_space> infos("rigel::verify", static_cast<std::size_t>(c.batch));
    Kokkos::deep_copy(infos, -1);
    const Exec exec{};
    Solve p;
    p.function = "verify";
    p.execution = detail::execution_of(exec);
    p.factorisation = factorisation;
    p.task = c.task;
    p.triangle = c.triangle;
    p.element = scalar_of<T>;
    p.batch = c.batch;
    p.n = c.n;
    p.right_sides = factors ? 0 : c.m;
    const auto named = [](Operand o, const char* argument) {
      o.argument = argument;
      return o;
    };
    p.a = named(of_a.operand(), "A");
    if (!factors) p.b = named(of_b.operand(), "B");
    p.x = named(of_x.operand(), "X");
    if (factorisation == Factorisation::eigen) p.values = named(of_w.operand(), "W");
    p.infos.data = infos.data();
    p.infos.type = Scalar::i32;
    p.infos.size = sizeof(std::int32_t);
    p.infos.batches = c.batch;
    p.infos.rows = p.infos.columns = 1;
    p.infos.batch_stride = c.batch == 1 ? 0 : 1;
    if (!supports(kernel_, p)) return;
    run(kernel_, p);
    exec.fence("rigel::verify");
    ++result_.problems;
    bool kept = true;
    const Numbers x = of_x.get(kept), w = of_w.get(kept);
    if (!kept) fail(c, "memory between the elements of the results was written");
    if (!same(of_a.get(kept), a) || !same(of_b.get(kept), b)) fail(c, "an input was written");
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, infos);
    for (std::int64_t l = 0; l < c.batch; ++l) {
      const auto at = [&](const Numbers& of, std::int64_t size) { return of.data() + l * size; };
      const bool failed = c.one_fails && l == c.batch - 1;
      if ((host(static_cast<std::size_t>(l)) != 0) != failed)
        fail(c, "the info of matrix " + std::to_string(l) + " is " + std::to_string(host(static_cast<std::size_t>(l))));
      const std::int64_t columns = factors ? c.n : c.m;
      if (failed) {
        for (std::int64_t i = 0; i < c.n * columns; ++i)
          if (!std::isnan(at(x, c.n * columns)[i])) return fail(c, "a result of the matrix that fails is not NaN");
        continue;
      }
      require_bound(c, l, at(a, c.n * c.n), at(b, c.n * c.m), at(x, c.n * columns), at(w, c.n));
    }
    add_to_digest(x);
    if (!covers(kernel_.info.promises, Promise::repeatable)) return;
    run(kernel_, p);
    exec.fence("rigel::verify");
    if (!same(of_x.get(kept), x)) fail(c, "two runs gave different bits");
  }

 private:
  static Factorisation factorisation_of(const KernelInfo& info) {
    for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu})
      if (info.semiring == name(f)) return f;
    return Factorisation::eigen;
  }

  // Random matrices; the triangle that is not read holds NaN. Positive definite ones are M·Mᵀ/n + 1/4. The last one has a zero
  // column or row (LU), a negative element on its diagonal (Cholesky), or a NaN (eigenvectors) if it is to fail.
  Numbers matrices(const Case& c, Factorisation f, std::mt19937_64& random) const {
    std::uniform_real_distribution<double> uniform(-1, 1);
    const std::int64_t n = c.n;
    Numbers all;
    for (std::int64_t l = 0; l < c.batch; ++l) {
      Numbers m(static_cast<std::size_t>(n * n)), a(m.size());
      for (double& v : m) v = uniform(random);
      const auto at = [n](Numbers& of, std::int64_t i, std::int64_t j) -> double& {
        return of[static_cast<std::size_t>(i * n + j)];
      };
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = i == j ? 0.25 : 0;
          for (std::int64_t k = 0; k < n; ++k) sum += at(m, i, k) * at(m, j, k) / static_cast<double>(n);
          at(a, i, j) = f == Factorisation::cholesky ? sum
                        : f == Factorisation::lu     ? at(m, i, j)
                                                     : (at(m, i, j) + at(m, j, i)) / 2;
        }
      const std::int64_t bad = n / 2;
      if (c.one_fails && l == c.batch - 1) {
        if (f == Factorisation::cholesky) at(a, bad, bad) = -1;
        if (f == Factorisation::eigen) at(a, bad, bad) = std::numeric_limits<double>::quiet_NaN();
        for (std::int64_t i = 0; i < n && f == Factorisation::lu; ++i) at(a, i, bad) = 0;
      }
      if (f == Factorisation::cholesky && c.task == Solve::Task::substitute) factor_in_double(a, n);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const bool read = f == Factorisation::lu || (c.triangle == Triangle::lower ? j <= i : j >= i);
          const bool from_lower = f != Factorisation::lu && j > i;
          const double value = from_lower ? at(a, j, i) : at(a, i, j);
          all.push_back(read ? static_cast<double>(static_cast<T>(value)) : std::numeric_limits<double>::quiet_NaN());
        }
    }
    return all;
  }

  static void factor_in_double(Numbers& a, std::int64_t n) {
    const auto at = [&](std::int64_t i, std::int64_t j) -> double& { return a[static_cast<std::size_t>(i * n + j)]; };
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = j; i < n; ++i) {
        for (std::int64_t k = 0; k < j; ++k) at(i, j) -= at(i, k) * at(j, k);
        at(i, j) = i == j ? std::sqrt(at(j, j)) : at(i, j) / at(j, j);
      }
  }

  void require_bound(const Case& c, std::int64_t l, const double* a, const double* b, const double* x, const double* w) {
    const std::int64_t n = c.n, m = c.m;
    const bool lower = c.triangle == Triangle::lower;
    const auto symmetric = [&](std::int64_t i, std::int64_t j) { return (i >= j) == lower ? a[i * n + j] : a[j * n + i]; };
    const Factorisation f = factorisation_of(kernel_.info);
    double worst = 0;
    const auto require = [&](double error, double bound) {
      if (!(error <= bound)) worst = std::max(worst, std::isfinite(error) && bound > 0 ? error / bound : 1e300);
    };
    const auto terms = static_cast<double>(n);
    if (f == Factorisation::eigen) {
      // The acceptance of LAPACK's own tests: 50 units in the last place of n·‖A‖ (Anderson et al., LAPACK Working Note 41).
      double norm = 0, residual = 0, orthogonality = 0;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double rest = symmetric(i, j), product = i == j ? -1 : 0;
          norm += rest * rest;
          for (std::int64_t k = 0; k < n; ++k) {
            rest -= x[i * n + k] * w[k] * x[j * n + k];
            product += x[k * n + i] * x[k * n + j];
          }
          residual += rest * rest;
          orthogonality += product * product;
        }
      require(std::sqrt(residual), 100 * terms * u * std::sqrt(norm));
      require(std::sqrt(orthogonality), 100 * terms * u);
      for (std::int64_t k = 1; k < n; ++k) require(w[k - 1], w[k]);
    } else if (c.task == Solve::Task::factor) {
      // Higham, theorem 10.3, with |L||Lᵀ| ≤ √(a_ii·a_jj) / (1 − γ).
      const double g = gamma(terms + 4, u);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
          const auto factor = [&](std::int64_t r, std::int64_t k) { return lower ? x[r * n + k] : x[k * n + r]; };
          double rest = symmetric(i, j);
          for (std::int64_t k = 0; k <= j; ++k) rest -= factor(i, k) * factor(j, k);
          require(std::abs(rest), g / (1 - g) * std::sqrt(symmetric(i, i) * symmetric(j, j)));
          if (j < i) require(std::abs(factor(j, i)), 0);
        }
    } else {
      const Numbers product = magnitudes(c, f, a);  // |L||U|, or |L||Lᵀ|
      const double g = gamma((c.task == Solve::Task::substitute ? 2 : 3) * terms + 4, u);
      for (std::int64_t j = 0; j < m; ++j)
        for (std::int64_t i = 0; i < n; ++i) {
          double rest = b[i * m + j], bound = 0;
          for (std::int64_t k = 0; k < n; ++k) {
            double element = f == Factorisation::lu ? a[i * n + k] : symmetric(i, k);
            if (c.task == Solve::Task::substitute) {
              element = 0;
              for (std::int64_t t = 0; t <= std::min(i, k); ++t)
                element += (lower ? a[i * n + t] : a[t * n + i]) * (lower ? a[k * n + t] : a[t * n + k]);
            }
            rest -= element * x[k * m + j];
            bound += product[static_cast<std::size_t>(i * n + k)] * std::abs(x[k * m + j]);
          }
          require(std::abs(rest), g * bound);
        }
    }
    if (worst > 0) fail(c, "matrix " + std::to_string(l) + " is out of bound, " + std::to_string(worst) + " times");
  }

  // The matrix that γ multiplies: √(a_ii·a_jj) / (1 − γ) bounds |L||Lᵀ| for Cholesky, which is computed if L is given. For LU it is
  // Pᵀ|L||U| of an elimination in double, twice, since nearly equal pivots may be chosen otherwise.
  Numbers magnitudes(const Case& c, Factorisation f, const double* a) const {
    const std::int64_t n = c.n;
    Numbers out(static_cast<std::size_t>(n * n));
    const auto at = [n](Numbers& of, std::int64_t i, std::int64_t j) -> double& {
      return of[static_cast<std::size_t>(i * n + j)];
    };
    const bool lower = c.triangle == Triangle::lower;
    if (f == Factorisation::cholesky) {
      const double g = gamma(static_cast<double>(n) + 4, u);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t k = 0; k < n; ++k) {
          if (c.task != Solve::Task::substitute) at(out, i, k) = std::sqrt(a[i * n + i] * a[k * n + k]) / (1 - g);
          for (std::int64_t t = 0; t <= std::min(i, k) && c.task == Solve::Task::substitute; ++t)
            at(out, i, k) += std::abs(lower ? a[i * n + t] : a[t * n + i]) * std::abs(lower ? a[k * n + t] : a[t * n + k]);
        }
      return out;
    }
    Numbers e(a, a + n * n);
    std::vector<std::int64_t> row(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::int64_t>(i);
    for (std::int64_t k = 0; k < n; ++k) {
      std::int64_t pivot = k;
      for (std::int64_t i = k + 1; i < n; ++i)
        if (std::abs(at(e, i, k)) > std::abs(at(e, pivot, k))) pivot = i;
      std::swap(row[static_cast<std::size_t>(k)], row[static_cast<std::size_t>(pivot)]);
      for (std::int64_t j = 0; j < n; ++j) std::swap(at(e, k, j), at(e, pivot, j));
      for (std::int64_t i = k + 1; i < n; ++i) {
        at(e, i, k) /= at(e, k, k);
        for (std::int64_t j = k + 1; j < n; ++j) at(e, i, j) -= at(e, i, k) * at(e, k, j);
      }
    }
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t t = 0; t <= std::min(i, k); ++t)
          at(out, row[static_cast<std::size_t>(i)], k) += 2 * (t == i ? 1 : std::abs(at(e, i, t))) * std::abs(at(e, t, k));
    return out;
  }

  void add_to_digest(const Numbers& x) {
    for (const double value : x) {
      const std::uint64_t bits = std::isnan(value) ? ~std::uint64_t(0) : std::bit_cast<std::uint64_t>(value + 0.0);
      for (int byte = 0; byte < 8; ++byte) result_.digest = (result_.digest ^ (bits >> 8 * byte & 0xff)) * 0x100000001b3;
    }
  }

  void fail(const Case& c, const std::string& what) {
    engine::fail(result_, kernel_.info, detail::space_of<Exec>, seed_, c.text(), what);
  }

  const Kernel<Solve>& kernel_;
  Verification& result_;
  unsigned seed_;
};

std::vector<Case> cases_for(const KernelInfo& info) {
  const bool eigen = info.semiring == name(Factorisation::eigen), lu = info.semiring == name(Factorisation::lu);
  std::vector<Solve::Task> tasks = {Solve::Task::solve};
  if (!lu) tasks = {Solve::Task::factor};
  if (!lu && !eigen) tasks = {Solve::Task::solve, Solve::Task::factor, Solve::Task::substitute};
  std::vector<Case> cases;
  int count = 0;
  for (const Solve::Task task : tasks) {
    const auto add = [&](std::int64_t n, std::int64_t m) {
      const bool fails = count % 3 == 1 && n > 0 && task != Solve::Task::substitute;
      cases.push_back({count % 2 ? 3 : 1, n, task == Solve::Task::factor ? 0 : m, task,
                       count % 4 < 2 ? Triangle::lower : Triangle::upper, count % 3, fails});
      ++count;
    };
    constexpr std::int64_t sides[] = {3, 1, 16, 17, 0};
    for (const std::int64_t n : {0, 1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 64, 65, 100}) add(n, sides[count % 5]);
    // For kernels that begin at 129: each of their blocks, and each of the other choices.
    if (eigen)
      add(129, 0);
    else
      for (const std::int64_t n : {129, 160, 257})
        for (const std::int64_t m : {0, 1, 3, 17}) add(n, m);
  }
  return cases;
}

template <class T, class... Exec>
void verify_on(type_list<Exec...>, const Kernel<Solve>& kernel, unsigned seed, Verification& result) {
  const auto on = [&]<class E>(type_list<E>) {
    if ((kernel.info.spaces & bit(detail::space_of<E>)) == 0) return;
    Verifier<T, E> verifier(kernel, result, seed);
    for (const Case& c : cases_for(kernel.info)) verifier.check(c);
  };
  (on(type_list<Exec>{}), ...);
}

}  // namespace

Verification engine::verify(const Kernel<Solve>& kernel, unsigned seed) {
  Verification result;
  if (kernel.info.element == Scalar::f32)
    verify_on<float>(detail::compiled_spaces{}, kernel, seed, result);
  else
    verify_on<double>(detail::compiled_spaces{}, kernel, seed, result);
  return result;
}

}  // namespace rigel

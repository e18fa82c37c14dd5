// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernel_matrix(): D(l,m,n) = k(X(l,m,:), Z(l,n,:)) for the kernels of machine learning, as one cdist() whose epilogue makes a kernel of
// each distance before it is stored.
#pragma once

#include <rigel/distance.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

namespace rigel {

/// Kernels. One is a struct with of(own), which returns all steps that make a kernel of what a metric accumulates; `own` are the
/// metric's own, which make a distance of it. `takes` says what it is a kernel of. Others of the same form are as good.
/// A hyperparameter is a number, or a view of rank 0, or of rank 1 with 1 or L numbers, which is read when the kernel runs
/// (rigel/epilogue_views.hpp). Its type follows from the argument: kernel::gaussian{0.5}, kernel::gaussian{bandwidths}.
/// Sources: [RW] C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, chapter 4; [SS] B. Schölkopf and
/// A. J. Smola, Learning with Kernels, 2002, chapter 2.
namespace kernel {

/// What a kernel is one of: distances d ≥ 0, inner products, or 1 less a cosine.
enum class Takes { distance, product, cosine };

namespace detail {

template <class P>
concept Hyperparameter = std::is_arithmetic_v<P> || Kokkos::is_view_v<P>;

/// A number in a message: "1e-09".
inline std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

/// What distances, or their squares, are multiplied by; at least so much.
inline double no_rate(double) { return 0; }
inline double rate(double length) { return 3 / length; }  // √5 at most
inline double rate_of_square(double length) { return 1 / (length * length); }

/// A number as a double, a view as it is. Throws Error(invalid_argument) if a number is not positive and finite, or so small that
/// rate(number) is infinite: the distance 0 would become NaN.
template <Hyperparameter P, class Rate = double (*)(double)>
auto positive(const P& given, const char* name, const Rate& rate = no_rate) {
  if constexpr (Kokkos::is_view_v<P>) {
    return given;
  } else {
    const auto number = static_cast<double>(given);
    if (!(number > 0 && std::isfinite(number)))
      throw Error(Code::invalid_argument, std::string("kernel_matrix: the kernel's ") + name + " is " + text_of(number) +
                                              ", expected a positive number");
    if (!std::isfinite(rate(number)))
      throw Error(Code::invalid_argument, std::string("kernel_matrix: the kernel's ") + name + " is " + text_of(number) +
                                              ", expected a larger number: distances divided by it overflow");
    return number;
  }
}
/// The same for any finite number.
template <Hyperparameter P>
auto finite(const P& given, const char* name) {
  if constexpr (Kokkos::is_view_v<P>) {
    return given;
  } else {
    const auto number = static_cast<double>(given);
    if (!std::isfinite(number))
      throw Error(Code::invalid_argument,
                  std::string("kernel_matrix: the ") + name + " is " + text_of(number) + ", expected a finite number");
    return number;
  }
}

/// The steps that make d² where `own` make d: if they are a root, none.
inline epilogue::Program squared(const epilogue::Program& own) {
  const double power = own.power();
  if (power == 0.5) return {};
  return power > 0 ? epilogue::pow(2 * power) : own | epilogue::pow(2);
}

}  // namespace detail

/// exp(−d / length) ([RW] 4.18; of manhattan the Laplace kernel, of euclidean the exponential one).
template <detail::Hyperparameter Length = double>
struct laplace {
  static constexpr Takes takes = Takes::distance;
  Length length;
  epilogue::Program of(const epilogue::Program& own) const {
    return own | epilogue::laplace(detail::positive(length, "length", detail::rate));
  }
};

/// exp(−d² / (2·bandwidth²)), the squared exponential or RBF kernel ([RW] 4.9). Of euclidean no root is taken.
template <detail::Hyperparameter Bandwidth = double>
struct gaussian {
  static constexpr Takes takes = Takes::distance;
  Bandwidth bandwidth;
  epilogue::Program of(const epilogue::Program& own) const {
    return detail::squared(own) | epilogue::gaussian(detail::positive(bandwidth, "bandwidth", detail::rate_of_square));
  }
};

/// The Matérn kernel for ν = 1/2, which is laplace ([RW] 4.18).
template <detail::Hyperparameter Length = double>
struct matern12 {
  static constexpr Takes takes = Takes::distance;
  Length length;
  epilogue::Program of(const epilogue::Program& own) const { return laplace<Length>{length}.of(own); }
};

/// (1 + u)·exp(−u), u = √3·d / length: for ν = 3/2 ([RW] 4.17).
template <detail::Hyperparameter Length = double>
struct matern32 {
  static constexpr Takes takes = Takes::distance;
  Length length;
  epilogue::Program of(const epilogue::Program& own) const {
    return own | epilogue::matern32(detail::positive(length, "length", detail::rate));
  }
};

/// (1 + u + u²/3)·exp(−u), u = √5·d / length: for ν = 5/2 ([RW] 4.17).
template <detail::Hyperparameter Length = double>
struct matern52 {
  static constexpr Takes takes = Takes::distance;
  Length length;
  epilogue::Program of(const epilogue::Program& own) const {
    return own | epilogue::matern52(detail::positive(length, "length", detail::rate));
  }
};

/// (1 + d² / (2·alpha·length²))^−alpha, a mixture of Gaussians ([RW] 4.19). With a view of lengths 2·length² / d² is formed first: that
/// takes five of the eight steps of an epilogue for euclidean, six for metrics whose distance is squared by a step, seven for hamming; and
/// two of its four views, three if alpha is a view.
template <detail::Hyperparameter Length = double, detail::Hyperparameter Alpha = double>
struct rational_quadratic {
  static constexpr Takes takes = Takes::distance;
  Length length;
  Alpha alpha;
  epilogue::Program of(const epilogue::Program& own) const {
    constexpr bool reads_length = Kokkos::is_view_v<Length>;
    const auto l = detail::positive(length, "length", detail::rate_of_square);
    const auto a = detail::positive(alpha, "alpha", [&](double number) {
      if constexpr (reads_length)
        return 1 / number;
      else
        return 1 / (2 * number * l * l);
    });
    epilogue::Program half_square;  // of d/length
    if constexpr (reads_length)
      half_square = epilogue::reciprocal(0, 2) | epilogue::scale(l) | epilogue::scale(l) | epilogue::reciprocal();
    else
      half_square = epilogue::scale(1 / (2 * l * l));
    return detail::squared(own) | half_square | epilogue::rational_quadratic(a);
  }
};

/// (scale·x·z + offset)^degree ([SS] 2.1; positive definite for whole degrees and offset ≥ 0).
template <detail::Hyperparameter Degree = double, detail::Hyperparameter Scale = double,
          detail::Hyperparameter Offset = double>
struct polynomial {
  static constexpr Takes takes = Takes::product;
  Degree degree;
  Scale scale = 1;
  Offset offset = 1;
  epilogue::Program of(const epilogue::Program& own) const {
    return own | epilogue::scale(detail::finite(scale, "kernel's scale")) |
           epilogue::add(detail::finite(offset, "kernel's offset")) | epilogue::pow(detail::positive(degree, "degree"));
  }
};

/// tanh(scale·x·z + offset) ([SS] section 2.3; not positive definite).
template <detail::Hyperparameter Scale = double, detail::Hyperparameter Offset = double>
struct sigmoid {
  static constexpr Takes takes = Takes::product;
  Scale scale;
  Offset offset = 0;
  epilogue::Program of(const epilogue::Program& own) const {
    return own | epilogue::scale(detail::finite(scale, "kernel's scale")) |
           epilogue::add(detail::finite(offset, "kernel's offset")) | epilogue::tanh();
  }
};

/// x·z / (|x||z|) of metric::cosine, Pearson's correlation of metric::correlation: 1 less the distance, from −1 to 1.
struct cosine {
  static constexpr Takes takes = Takes::cosine;
  epilogue::Program of(const epilogue::Program& own) const { return own | epilogue::scale(-1) | epilogue::add(1); }
};

}  // namespace kernel

/// With views of hyperparameters: KernelMatrixOptions{.regularisation = ridge}.
template <kernel::detail::Hyperparameter Regularisation = double, kernel::detail::Hyperparameter Threshold = double>
struct KernelMatrixOptions {
  Regularisation regularisation = 0;  // is added to the outputs on the diagonal,
  std::int64_t m0 = 0, n0 = 0;        // m + m0 = n + n0: where D lies in a larger matrix
  Threshold threshold = 0;            // kernels of a smaller magnitude become 0, before regularisation
  Batch batch = Batch::first;
  Promise require = Promise::none;             // as in CdistOptions
  Precision precision = Precision::automatic;  // the same
  bool may_cancel = false;                     // the same
  std::string_view kernel = {};                // a kernel's name or the leading part of it
  Workspace workspace = {};                    // kernel_matrix_workspace_size() bytes; else from Rigel's pool
};

namespace detail {

// A metric whose last steps are a kernel, and what follows it.
template <class M, class K>
struct WithKernel : M {
  K kernel;
  epilogue::Program after;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    return M::template with<Element>(k, [&]<class Own>(const auto& semiring, const Own& own) {
      // Kernels of distances take a cosine distance beyond 2 by roundings as it is: the clamp would be one step more.
      constexpr bool needs_no_clamp = std::is_base_of_v<metric::cosine, M> && K::takes == kernel::Takes::distance;
      if constexpr (std::is_same_v<Own, epilogue::Program>)
        return use(semiring, steps(needs_no_clamp && k > 0 ? epilogue::Program{} : own));
      else
        return use(semiring, epilogue::Composed<Own, epilogue::Program>{own, steps({})});
    });
  }

 private:
  epilogue::Program steps(const epilogue::Program& own) const {
    try {
      return kernel.of(own) | after;
    } catch (const Error& e) {
      if (!std::string_view(e.what()).starts_with("epilogue: more than")) throw;
      throw Error(Code::invalid_argument,
                  "kernel_matrix: metric, kernel, threshold and regularisation take more than 8 steps or 4 views; give "
                  "hyperparameters as numbers, or leave threshold or regularisation to a pass over D");
    }
  }
};

template <class M, class K>
constexpr void check_kernel() {
  constexpr bool is_product = std::is_base_of_v<metric::inner_product, M>, is_cosine = std::is_base_of_v<metric::cosine, M>,
                 is_square = std::is_base_of_v<metric::squared_euclidean, M>;
  static_assert(K::takes != kernel::Takes::product || is_product,
                "kernel_matrix: this kernel is one of inner products, expected metric::inner_product");
  static_assert(K::takes != kernel::Takes::cosine || is_cosine,
                "kernel_matrix: kernel::cosine takes metric::cosine or metric::correlation");
  static_assert(
      K::takes != kernel::Takes::distance || !(is_product || is_square),
      "kernel_matrix: this kernel is one of distances, not of their squares or of products: with metric::euclidean, "
      "kernels of its square take no root");
}

// What follows the kernel: threshold and regularisation, where there are any.
template <class R, class T>
epilogue::Program after_kernel(const KernelMatrixOptions<R, T>& options) {
  const auto is_zero = [](const auto& given) {
    if constexpr (std::is_same_v<std::decay_t<decltype(given)>, double>)
      return given == 0;
    else
      return false;
  };
  const auto threshold = kernel::detail::finite(options.threshold, "options.threshold");
  const auto regularisation = kernel::detail::finite(options.regularisation, "options.regularisation");
  epilogue::Program steps;
  if (!is_zero(threshold)) steps = epilogue::threshold(threshold);
  if (!is_zero(regularisation)) steps = steps | epilogue::add_diagonal(regularisation, options.m0, options.n0);
  return steps;
}

// Hands `use` the Cdist of a call, as with_cdist() does.
template <class Exec, class X, class Z, class D, class M, class K, class R, class T, class Use>
auto with_kernel_matrix(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const K& kernel,
                        const KernelMatrixOptions<R, T>& options, const Use& use) {
  check_kernel<M, K>();
  using Value = typename view_t<D>::non_const_value_type;
  static_assert(std::is_floating_point_v<Value> || scalar_of_value<Value>() <= Scalar::bf16,
                "kernel_matrix: D holds floating-point numbers");
  const CdistOptions of_distances{.batch = options.batch,
                                  .require = options.require,
                                  .precision = options.precision,
                                  .may_cancel = options.may_cancel,
                                  .kernel = options.kernel,
                                  .workspace = options.workspace};
  return with_cdist(exec, x, z, d, WithKernel<M, K>{metric, kernel, after_kernel(options)}, epilogue::Program{},
                    of_distances, use, "kernel_matrix");
}

template <class V>
concept MatrixArgument = Kokkos::is_view_v<view_t<V>>;

// Of X with itself, a block on the diagonal.
template <class R, class T>
void check_self(const KernelMatrixOptions<R, T>& options) {
  if (options.m0 != options.n0)
    throw Error(Code::invalid_argument, "kernel_matrix: options.m0 is " + std::to_string(options.m0) +
                                            " and options.n0 is " + std::to_string(options.n0) +
                                            ", expected equal ones for X with itself");
}

}  // namespace detail

/// D(l,m,n) = k(X(l,m,:), Z(l,n,:)), then threshold and regularisation, asynchronously on `exec`.
///
/// exec      any execution space instance; every view must be accessible from it
/// x, z, d   as in cdist(): x is M × K, z is N × K, d is M × N, of floating-point numbers; views of rank 3 have a batch index in
///           addition. d says how many batches L there are: x and z may have one for all.
/// metric    one of rigel::metric, of which `kernel` is one: kernels of distances take any but inner_product and
///           squared_euclidean (of euclidean they take no root where they square it), polynomial and sigmoid inner_product, cosine
///           cosine and correlation
/// kernel    one of rigel::kernel
/// It is a call of cdist() and has its kernels, precision and errors; docs/numerics.md has what kernels add. The eight steps and four
/// views of an epilogue hold the metric's steps, the kernel's, threshold and regularisation together.
/// Throws as cdist() does, and Error(invalid_argument) if a hyperparameter that is a number is out of its range or so small that
/// distances divided by it (by its square) overflow in double, a view of them has neither 1 nor L numbers, or the steps are too many.
template <class Exec, class X, class Z, detail::MatrixArgument D, class M, class K, class R = double, class T = double>
void kernel_matrix(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const K& kernel,
                   const KernelMatrixOptions<R, T>& options = {}) {
  detail::with_kernel_matrix(exec, x, z, d, metric, kernel, options,
                             [](detail::Cdist call) { detail::run_cdist(std::move(call)); });
}
/// The kernel matrix of x with itself: exactly symmetric (but under batch_invariant for products on tensor cores), and 1 +
/// regularisation on the diagonal if `kernel` is one of distances and rows are finite. The diagonal has NaN for rows of zeros of
/// cosine and of one value of correlation, for lengths so small that distances divided by them overflow in the type of the epilogue, as
/// those of floats below the smallest normal number do;
/// and 0 instead of 1 if threshold > 1. Where it is faster, only the lower triangle is computed, see cdist(). options.m0 and
/// options.n0 are equal.
template <class Exec, class X, detail::MatrixArgument D, class M, class K, class R = double, class T = double>
  requires(!detail::MatrixArgument<M>)
void kernel_matrix(const Exec& exec, const X& x, const D& d, const M& metric, const K& kernel,
                   const KernelMatrixOptions<R, T>& options = {}) {
  detail::check_self(options);
  kernel_matrix(exec, x, x, d, metric, kernel, options);
}

/// What explain_cdist() says of the same call of kernel_matrix(); x and z may be the same.
template <class Exec, class X, class Z, class D, class M, class K, class R = double, class T = double>
std::string explain_kernel_matrix(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const K& kernel,
                                  const KernelMatrixOptions<R, T>& options = {}) {
  return detail::with_kernel_matrix(exec, x, z, d, metric, kernel, options,
                                    [](detail::Cdist call) { return detail::explain_cdist(std::move(call)); });
}

/// Bytes of workspace that the same call of kernel_matrix() needs; x and z may be the same.
template <class Exec, class X, class Z, class D, class M, class K, class R = double, class T = double>
std::size_t kernel_matrix_workspace_size(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric,
                                         const K& kernel, const KernelMatrixOptions<R, T>& options = {}) {
  return detail::with_kernel_matrix(exec, x, z, d, metric, kernel, options,
                                    [](detail::Cdist call) { return detail::cdist_bytes(std::move(call)); });
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A weight for each pixel, learned by gradient descent on the leave-one-out error of kernel ridge classification. With weighted images
// x·s, K(i,j) = exp(−|x_i·s − x_j·s|² / (2·width²)), H = K + α·1, and W = H⁻¹·Y, the score that image i would get without itself is off
// from Y by e(i,c) = W(i,c) / H⁻¹(i,i) (README.md), so the error and its gradient need one inverse and no retraining:
//
//     loss      L = Σ e² / n
//     ∂L/∂K     = H⁻¹·diag(q)·H⁻¹ − (H⁻¹·P)·Wᵀ,  P = 2e / (n·H⁻¹(i,i)),  q(i) = Σ_c e·P
//     ∂L/∂(x·s) = cdist_gradient() with A = −(∂L/∂K + its transpose)·K / width²
//     ∂L/∂log s = s·Σ_i x_i·∂L/∂(x_i·s)
#include <examples/digits/data.hpp>
#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;
using HostMatrix = Matrix::HostMirror;
using digits::features;

constexpr int classes = 10, steps = 80, apart = 4;  // every 4th image is one to learn from, the others test
constexpr double regularisation = 1e-2, width = 5;  // α, and the kernel's width in standard deviations
constexpr double rate = 2, momentum = 0.9;          // of the descent in log s

HostMatrix on_host(const Matrix& matrix) { return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, matrix); }

/// Images as rows, and their digits.
struct Images {
  std::vector<double> pixels;
  std::vector<int> digits;
  int size() const { return static_cast<int>(digits.size()); }
};

/// Those to learn from, or the others.
Images selected(const digits::Data& data, bool to_learn) {
  Images list;
  for (int i = 0; i < data.size(); ++i) {
    if ((i % apart == 0) != to_learn) continue;
    list.digits.push_back(data.digits[i]);
    for (int k = 0; k < features; ++k) list.pixels.push_back(data.pixels[i * features + k]);
  }
  return list;
}

/// The images' pixels times the weights.
Matrix weighted(const Images& images, const std::vector<double>& weights) {
  const Matrix x("weighted images", images.size(), features);
  const auto host = Kokkos::create_mirror_view(x);
  for (int i = 0; i < images.size(); ++i)
    for (int k = 0; k < features; ++k) host(i, k) = images.pixels[i * features + k] * weights[k];
  Kokkos::deep_copy(x, host);
  return x;
}

/// 1 / standard deviation of each pixel, 0 if it is the same in all images.
std::vector<double> standardising(const Images& images) {
  std::vector<double> weights(features);
  for (int k = 0; k < features; ++k) {
    double sum = 0, squares = 0;
    for (int i = 0; i < images.size(); ++i) sum += images.pixels[i * features + k];
    const double mean = sum / images.size();
    for (int i = 0; i < images.size(); ++i) squares += std::pow(images.pixels[i * features + k] - mean, 2);
    weights[k] = squares > 0 ? 1 / std::sqrt(squares / images.size()) : 0;
  }
  return weights;
}

/// How many rows have their largest score at the digit.
int right(const HostMatrix& scores, const std::vector<int>& digits) {
  int count = 0;
  for (std::size_t i = 0; i < digits.size(); ++i)
    count += std::max_element(&scores(i, 0), &scores(i, 0) + classes) - &scores(i, 0) == digits[i];
  return count;
}

/// Kernel ridge classification with one set of weights.
class Model {
 public:
  Model(const Images& images, const std::vector<double>& weights)
      : n_(images.size()),
        x_(weighted(images, weights)),
        kernel_("kernel", n_, n_),
        inverse_("inverse", n_, n_),
        w_("W", n_, classes) {
    const Matrix h("H", n_, n_), y("Y", n_, classes);
    const auto indicators = Kokkos::create_mirror_view(y);
    const auto unit = Kokkos::create_mirror_view(inverse_);
    for (int i = 0; i < n_; ++i) {
      indicators(i, images.digits[i]) = 1;
      unit(i, i) = 1;
    }
    Kokkos::deep_copy(y, indicators);
    Kokkos::deep_copy(inverse_, unit);
    rigel::kernel_matrix(exec_, x_, kernel_, rigel::metric::euclidean{}, rigel::kernel::gaussian{width});
    rigel::kernel_matrix(exec_, x_, h, rigel::metric::euclidean{}, rigel::kernel::gaussian{width},
                         {.regularisation = regularisation});
    rigel::cholesky_solve(exec_, h, inverse_, inverse_, {.overwrite_a = true, .overwrite_b = true, .check = true});
    rigel::contract(exec_, rigel::plus_times<double>{}, inverse_, y, w_);

    const HostMatrix inverse = on_host(inverse_), w = on_host(w_);
    errors_ = HostMatrix("errors", n_, classes);
    scores_ = HostMatrix("leave-one-out scores", n_, classes);
    diagonal_.resize(n_);
    for (int i = 0; i < n_; ++i) {
      diagonal_[i] = inverse(i, i);
      for (int c = 0; c < classes; ++c) {
        errors_(i, c) = w(i, c) / diagonal_[i];
        scores_(i, c) = indicators(i, c) - errors_(i, c);
        loss_ += errors_(i, c) * errors_(i, c) / n_;
      }
    }
  }

  double loss() const { return loss_; }
  const HostMatrix& leave_one_out_scores() const { return scores_; }

  /// The scores of other images.
  HostMatrix scores(const Matrix& z) const {
    const Matrix kernel("kernel", z.extent(0), n_), scores("scores", z.extent(0), classes);
    rigel::kernel_matrix(exec_, z, x_, kernel, rigel::metric::euclidean{}, rigel::kernel::gaussian{width});
    rigel::contract(exec_, rigel::plus_times<double>{}, kernel, w_, scores);
    return on_host(scores);
  }

  /// The derivatives of the loss by the coordinates of the weighted images: features × n.
  HostMatrix gradient() const {
    // The second term is added, so P and q have the opposite sign in it: of_kernel = H⁻¹·(−P)·Wᵀ + H⁻¹·(diag(q)·H⁻¹).
    const Matrix p("-P", n_, classes), inverse_p("-inverse * P", n_, classes);
    const Kokkos::View<double*, Exec> q("q", n_);
    const auto host_p = Kokkos::create_mirror_view(p);
    const auto host_q = Kokkos::create_mirror_view(q);
    for (int i = 0; i < n_; ++i)
      for (int c = 0; c < classes; ++c) {
        host_p(i, c) = -2 * errors_(i, c) / (n_ * diagonal_[i]);
        host_q(i) -= errors_(i, c) * host_p(i, c);
      }
    Kokkos::deep_copy(p, host_p);
    Kokkos::deep_copy(q, host_q);
    const rigel::plus_times<double> product;
    const Matrix inverse = inverse_, kernel = kernel_, scaled("diag(q) * inverse", n_, n_), of_kernel("dL/dK", n_, n_);
    rigel::contract(exec_, product, inverse, p, inverse_p);
    rigel::contract(exec_, product, inverse_p, rigel::transposed(w_), of_kernel);
    const Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>> all(exec_, {0, 0}, {n_, n_});
    Kokkos::parallel_for(
        "feature_weights::diag(q) * inverse", all, KOKKOS_LAMBDA(int i, int j) { scaled(i, j) = q(i) * inverse(i, j); });
    rigel::contract(exec_, product, inverse, scaled, of_kernel, rigel::epilogue::Program{}, {.accumulate = true});

    const Matrix a("A", n_, n_), ones("C", 1, n_);
    Kokkos::deep_copy(exec_, ones, 1);
    Kokkos::parallel_for(
        "feature_weights::A", all,
        KOKKOS_LAMBDA(int i, int j) { a(i, j) = -(of_kernel(i, j) + of_kernel(j, i)) * kernel(i, j) / (width * width); });
    const Matrix gradient("gradient", features, n_);  // owns the memory: on_host() of a host's matrix is the same matrix
    const Kokkos::View<double***, Kokkos::LayoutRight, Exec> out(gradient.data(), 1, features, n_);
    rigel::cdist_gradient(exec_, 2, a, rigel::transposed(x_), ones, rigel::transposed(x_), out);
    exec_.fence();
    return on_host(gradient);
  }

 private:
  Exec exec_;
  int n_;
  Matrix x_, kernel_, inverse_, w_;
  HostMatrix errors_, scores_;
  std::vector<double> diagonal_;  // of the inverse
  double loss_ = 0;
};

/// What a step of the descent prints.
struct Progress {
  double loss;
  int leave_one_out, tests;  // classified right
};

Progress progress_of(const Model& model, const Images& learned, const Images& tests, const std::vector<double>& weights) {
  return {model.loss(), right(model.leave_one_out_scores(), learned.digits),
          right(model.scores(weighted(tests, weights)), tests.digits)};
}

/// The weights, from those of standardised pixels on; `first` and `last` are the progress before and after.
std::vector<double> descend(const Images& learned, const Images& tests, Progress& first, Progress& last) {
  std::vector<double> weights = standardising(learned), velocity(features);
  const Kokkos::Timer timer;
  for (int step = 0;; ++step) {
    const Model model(learned, weights);
    if (step % 10 == 0) {
      last = progress_of(model, learned, tests, weights);
      if (step == 0) first = last;
      std::printf("step %2d: loss %.5f, leave-one-out %d of %d (%.1f %%), tests %d of %d (%.1f %%), %.2f s\n", step,
                  last.loss, last.leave_one_out, learned.size(), 100. * last.leave_one_out / learned.size(), last.tests,
                  tests.size(), 100. * last.tests / tests.size(), timer.seconds());
      std::fflush(stdout);
    }
    if (step == steps) return weights;
    const HostMatrix gradient = model.gradient();
    for (int k = 0; k < features; ++k) {
      double slope = 0;  // ∂L/∂log s
      for (int i = 0; i < learned.size(); ++i) slope += weights[k] * learned.pixels[i * features + k] * gradient(k, i);
      velocity[k] = momentum * velocity[k] - rate * slope;
      weights[k] *= std::exp(velocity[k]);
    }
  }
}

bool run(const digits::Options& options) {
  const digits::Data data = digits::read(options.data);
  const Images learned = selected(data, true), tests = selected(data, false);
  Progress first{}, last{};
  const std::vector<double> weights = descend(learned, tests, first, last);

  std::printf("by how much the descent has stretched each pixel; - where all images have the same value\n");
  const std::vector<double> before = standardising(learned);
  for (int k = 0; k < features; ++k) {
    if (before[k] > 0)
      std::printf("%6.2f", weights[k] / before[k]);
    else
      std::printf("%6s", "-");
    if (k % 8 == 7) std::printf("\n");
  }

  const std::map<std::string, double> figures = {
      {"loss0", first.loss}, {"leave_one_out0", first.leave_one_out}, {"tests0", first.tests},
      {"loss", last.loss},   {"leave_one_out", last.leave_one_out},   {"tests", last.tests}};
  bool good = last.leave_one_out > first.leave_one_out;
  if (!good) std::printf("FAILS: the descent has not improved the leave-one-out accuracy\n");
  for (const auto& [name, value] : options.expected) {
    const auto figure = figures.find(name);
    const double wanted = std::stod(value);
    if (figure != figures.end() && std::fabs(figure->second - wanted) <= 1e-6 * wanted) continue;  // exact for counts
    std::printf("FAILS: %s is %s, expected %s\n", name.c_str(),
                figure == figures.end() ? "no figure" : std::to_string(figure->second).c_str(), value.c_str());
    good = false;
  }
  return good;
}

constexpr const char* usage =
    "feature_weights [--data <digits.csv>] [--expect <figure>=<value>]...\n"
    "Learns a weight for each pixel of handwritten digits by gradient descent on the leave-one-out error of kernel ridge\n"
    "classification. The data lies next to the program or is named. Ends with 1 where a figure is not as expected, or the\n"
    "accuracy has not improved.\n";

}  // namespace

int main(int argc, char** argv) { return digits::run_program(argc, argv, usage, run); }

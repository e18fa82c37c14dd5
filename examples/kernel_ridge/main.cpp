// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel ridge classification of handwritten digits with the Laplace kernel, for several bandwidths in one batch of calls:
// K(l,i,j) = exp(−‖x_i − x_j‖₁ / width_l) + α·[i = j], W(l) = K(l)⁻¹·Y by Cholesky, and the digit of an image z is the class c of
// the largest score Σ_i exp(−‖z − x_i‖₁ / width_l)·W(l,i,c). README.md defines the figures.
#include <examples/digits/images.hpp>
#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
template <class Data>
using View = Kokkos::View<Data, Kokkos::LayoutRight, Exec>;

constexpr int classes = 10;
constexpr double regularisation = 1e-3;                           // α
constexpr double widths[] = {6.25, 12.5, 25, 50, 100, 200, 400};  // of the kernel, in pixel values
constexpr int count = sizeof widths / sizeof *widths;

// How many of the images after the first `n` are classified right by the first n, for each width.
std::vector<int> classify(const Exec& exec, const digits::Data& data, int n) {
  const int tests = data.size() - n;
  const View<double**> x = digits::images<Exec>(data, 0, n), z = digits::images<Exec>(data, n, tests);
  const View<double*> bandwidths("bandwidths", count);
  const View<double***> weights("weights", count, n, classes);
  const auto host_bandwidths = Kokkos::create_mirror_view(bandwidths);
  const auto host_weights = Kokkos::create_mirror_view(weights);
  for (int l = 0; l < count; ++l) {
    host_bandwidths(l) = widths[l];
    for (int i = 0; i < n; ++i) host_weights(l, i, data.digits[i]) = 1;
  }
  Kokkos::deep_copy(bandwidths, host_bandwidths);
  Kokkos::deep_copy(weights, host_weights);

  const View<double***> kernel("kernel", count, n, n);
  const rigel::kernel::laplace laplace{bandwidths};
  rigel::kernel_matrix(exec, x, kernel, rigel::metric::manhattan{}, laplace, {.regularisation = regularisation});
  rigel::cholesky_solve(exec, kernel, weights, weights, {.overwrite_a = true, .overwrite_b = true, .check = true});

  const View<double***> to_tests("to_tests", count, tests, n), scores("scores", count, tests, classes);
  rigel::kernel_matrix(exec, z, x, to_tests, rigel::metric::manhattan{}, laplace);
  rigel::contract(exec, rigel::plus_times<double>{}, to_tests, weights, scores);

  const auto host_scores = Kokkos::create_mirror_view(scores);
  Kokkos::deep_copy(exec, host_scores, scores);
  exec.fence();
  std::vector<int> right(count);
  for (int l = 0; l < count; ++l)
    for (int i = 0; i < tests; ++i) {
      int best = 0;
      for (int c = 1; c < classes; ++c)
        if (host_scores(l, i, c) > host_scores(l, i, best)) best = c;
      right[l] += best == data.digits[n + i];
    }
  return right;
}

bool run(const digits::Options& options) {
  const digits::Data data = digits::read(options.data);
  const int n = 3 * data.size() / 4, tests = data.size() - n;
  const Exec exec;
  const Kokkos::Timer timer;
  const std::vector<int> right = classify(exec, data, n);
  std::printf("%d images to learn from, %d to classify, %.3f s\n", n, tests, timer.seconds());
  std::map<std::string, std::string> expected = options.expected;
  bool good = true;
  for (int l = 0; l < count; ++l) {
    char width[16];
    std::snprintf(width, sizeof width, "%g", widths[l]);
    std::printf("width %6s: %d right, %.2f %%\n", width, right[l], 100. * right[l] / tests);
    if (const auto entry = expected.extract(width); entry && std::stoi(entry.mapped()) != right[l]) {
      std::printf("FAILS: %s are expected\n", entry.mapped().c_str());
      good = false;
    }
  }
  for (const auto& [width, digits] : expected) {
    std::printf("FAILS: there is no width %s\n", width.c_str());
    good = false;
  }
  return good;
}

constexpr const char* usage =
    "kernel_ridge [--data <digits.csv>] [--expect <width>=<digits>]...\n"
    "Classifies handwritten digits by kernel ridge regression with several widths of the Laplace kernel. The data lies next "
    "to\n"
    "the program or is named. Ends with 1 where the number of digits that are classified right is not as expected.\n";

}  // namespace

int main(int argc, char** argv) { return digits::run_program(argc, argv, usage, run); }

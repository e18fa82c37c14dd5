// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A search for the kernel of kernel ridge classification, over the p of a Minkowski distance and the width of the kernel
// exp(−‖x − z‖_p / width), where each pair (p, width) is a batch of the same calls: K(l,i,j) = exp(−‖x_i − x_j‖_p / width) + α·[i = j],
// W(l) = K(l)⁻¹·Y by Cholesky, scores k(l,z,x)·W(l). Held-out images choose the pair, further ones test it. README.md defines the figures.
#include <examples/digits/images.hpp>
#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
template <class Data>
using View = Kokkos::View<Data, Kokkos::LayoutRight, Exec>;

constexpr int classes = 10;
constexpr double regularisation = 1e-3;              // α
constexpr double powers[] = {1, 1.25, 1.5, 2};       // p; the kernel is positive definite for 1 ≤ p ≤ 2
constexpr double widths[] = {16, 32, 64, 128, 256};  // of the kernel, in pixel values
constexpr int columns = sizeof widths / sizeof *widths, rows = sizeof powers / sizeof *powers, count = rows * columns;

/// Kernel ridge classifiers that have learned from the first n images, one for each pair.
class Classifiers {
 public:
  Classifiers(const digits::Data& data, int n)
      : data_(data),
        n_(n),
        x_(digits::images<Exec>(data, 0, n)),
        powers_("p", count),
        widths_("widths", count),
        weights_("weights", count, n, classes) {
    const auto p = Kokkos::create_mirror_view(powers_), width = Kokkos::create_mirror_view(widths_);
    const auto indicators = Kokkos::create_mirror_view(weights_);
    for (int l = 0; l < count; ++l) {
      p(l) = powers[l / columns];
      width(l) = widths[l % columns];
      for (int i = 0; i < n; ++i) indicators(l, i, data.digits[i]) = 1;
    }
    Kokkos::deep_copy(powers_, p);
    Kokkos::deep_copy(widths_, width);
    Kokkos::deep_copy(weights_, indicators);

    const View<double***> kernel("kernel", count, n, n);
    rigel::kernel_matrix(exec_, x_, kernel, rigel::metric::minkowski{powers_}, rigel::kernel::laplace{widths_},
                         {.regularisation = regularisation});
    rigel::cholesky_solve(exec_, kernel, weights_, weights_, {.overwrite_a = true, .overwrite_b = true, .check = true});
  }

  /// How many of the images [first, first + tests) each pair classifies right.
  std::vector<int> right(int first, int tests) const {
    const View<double**> z = digits::images<Exec>(data_, first, tests);
    const View<double***> kernel("kernel", count, tests, n_), scores("scores", count, tests, classes);
    rigel::kernel_matrix(exec_, z, x_, kernel, rigel::metric::minkowski{powers_}, rigel::kernel::laplace{widths_});
    rigel::contract(exec_, rigel::plus_times<double>{}, kernel, weights_, scores);
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, scores);
    std::vector<int> list(count);
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < tests; ++i) {
        const double* const score = &host(l, i, 0);
        list[l] += std::max_element(score, score + classes) - score == data_.digits[first + i];
      }
    return list;
  }

 private:
  const digits::Data& data_;
  int n_;
  Exec exec_;
  View<double**> x_;
  View<double*> powers_, widths_;  // of each pair
  View<double***> weights_;
};

/// "1.25/32".
std::string name_of(int l) {
  char name[32];
  std::snprintf(name, sizeof name, "%g/%g", powers[l / columns], widths[l % columns]);
  return name;
}

bool run(const digits::Options& options) {
  const digits::Data data = digits::read(options.data);
  const int n = data.size() / 2, held_out = data.size() / 4, tests = data.size() - n - held_out;
  const Kokkos::Timer timer;
  const Classifiers classifiers(data, n);
  const std::vector<int> chosen_by = classifiers.right(n, held_out), tested = classifiers.right(n + held_out, tests);
  std::printf("%d pairs of p and width, %d images to learn from, %.3f s\n\n", count, n, timer.seconds());

  std::printf("right, of %d held-out images\n%8s", held_out, "width");
  for (const double width : widths) std::printf("%10g", width);
  for (int i = 0; i < rows; ++i) {
    std::printf("\np = %4g", powers[i]);
    for (int j = 0; j < columns; ++j)
      std::printf("%4d%5.1f%%", chosen_by[i * columns + j], 100. * chosen_by[i * columns + j] / held_out);
  }
  const int best = static_cast<int>(std::max_element(chosen_by.begin(), chosen_by.end()) - chosen_by.begin());
  std::printf("\n\nchosen: p = %g, width %g; %d right of %d further images, %.1f %%\n", powers[best / columns],
              widths[best % columns], tested[best], tests, 100. * tested[best] / tests);

  std::map<std::string, int> figures = {{"test", tested[best]}};
  for (int l = 0; l < count; ++l) figures[name_of(l)] = chosen_by[l];
  bool good = true;
  for (const auto& [name, value] : options.expected) {
    const auto figure = figures.find(name);
    if (figure != figures.end() && figure->second == std::stoi(value)) continue;
    std::printf("FAILS: %s is %s, expected %s\n", name.c_str(),
                figure == figures.end() ? "no figure" : std::to_string(figure->second).c_str(), value.c_str());
    good = false;
  }
  return good;
}

constexpr const char* usage =
    "bandwidth_search [--data <digits.csv>] [--expect <p>/<width>=<images>]... [--expect test=<images>]\n"
    "Chooses the p and the width of a kernel that classifies handwritten digits by kernel ridge regression. The data lies "
    "next\n"
    "to the program or is named. Ends with 1 where a number of images that are classified right is not as expected.\n";

}  // namespace

int main(int argc, char** argv) { return digits::run_program(argc, argv, usage, run); }

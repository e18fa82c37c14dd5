// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// k-means of handwritten digits: ten centres by kmeans(), and a picture of them, kmeans.svg. README.md defines the figures.
#include <examples/digits/images.hpp>
#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;

constexpr int clusters = 10, side = 8;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// The centres as images, each over the commonest digit among its points.
void write_picture(const char* path, const Matrix::HostMirror& centres, const std::vector<int>& commonest) {
  const std::unique_ptr<std::FILE, Close> owner(std::fopen(path, "w"));
  std::FILE* const file = owner.get();
  if (!file) throw std::runtime_error(std::string("cannot write '") + path + "'");
  constexpr int pixel = 12, gap = 24, across = clusters / 2, width = side * pixel + gap, height = side * pixel + 2 * gap;
  std::fprintf(
      file,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"16\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      across * width + gap, 2 * height + gap);
  for (int c = 0; c < clusters; ++c) {
    const int left = gap + c % across * width, top = gap + c / across * height;
    for (int p = 0; p < side * side; ++p) {
      const int grey = 255 - static_cast<int>(std::lround(centres(c, p) / 16 * 255));
      std::fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,%d)\"/>\n",
                   left + p % side * pixel, top + p / side * pixel, pixel, pixel, grey, grey, grey);
    }
    std::fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", left + side * pixel / 2,
                 top + side * pixel + 18, commonest[c]);
  }
  std::fprintf(file, "</svg>\n");
}

bool run(const digits::Options& options) {
  const digits::Data data = digits::read(options.data);
  const int n = data.size();
  const Exec exec;
  const Matrix x = digits::images<Exec>(data, 0, n), centres("centres", clusters, digits::features);
  const Kokkos::View<int*, Exec> labels("labels", n);
  const Kokkos::Timer timer;
  const rigel::KMeansResult result = rigel::kmeans(exec, x, clusters, centres, labels, {.seed = 1, .tolerance = 0});
  std::printf("%d images, %d updates: %.3f s\n", n, result.iterations, timer.seconds());

  const auto of = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, labels);
  std::vector<std::array<int, 10>> counts(clusters, std::array<int, 10>{});
  for (int i = 0; i < n; ++i) ++counts[of(i)][data.digits[i]];
  std::vector<int> commonest;
  int right = 0;
  for (const auto& of_cluster : counts) {
    const auto most = std::max_element(of_cluster.begin(), of_cluster.end());
    commonest.push_back(static_cast<int>(most - of_cluster.begin()));
    right += *most;
  }
  write_picture("kmeans.svg", Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, centres), commonest);
  std::printf("wrote kmeans.svg\n");

  const digits::Figure figures[] = {{"inertia", result.inertia, 1e-10, "the sum of squared distances from the centres"},
                                    {"updates", static_cast<double>(result.iterations), 0, "updates of the centres"},
                                    {"right", static_cast<double>(right), 0, "images of their cluster's commonest digit"}};
  const bool good = digits::are_as_expected(figures, options.expected, 48, 12);
  return good && result.converged;
}

constexpr const char* usage =
    "kmeans [--data <digits.csv>] [--expect <figure>=<value>]...\n"
    "Finds ten centres of 1797 handwritten digits, and draws them in kmeans.svg. The data lies next to the program or is\n"
    "named. Ends with 1 where a figure is not as expected.\n";

}  // namespace

int main(int argc, char** argv) { return digits::run_program(argc, argv, usage, run); }

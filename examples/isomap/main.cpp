// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Isomap of handwritten digits (J. B. Tenenbaum, V. de Silva and J. C. Langford, A global geometric framework for nonlinear
// dimensionality reduction, 2000): the graph of 10 nearest neighbours, its geodesic distances by closure() of min_plus, and classical
// scaling of these into the plane by eigh(). It writes isomap.svg. README.md defines the figures.
#include "plot.hpp"

#include <examples/digits/images.hpp>
#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;
using HostMatrix = Matrix::HostMirror;

constexpr int images = 1000, neighbours = 10;
constexpr double infinity = std::numeric_limits<double>::infinity();

HostMatrix on_host(const Matrix& matrix) { return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, matrix); }

/// Euclidean distances between the images, infinite on the diagonal.
Matrix distances(const Exec& exec, const digits::Data& data, int n) {
  const Matrix x = digits::images<Exec>(data, 0, n), d("distances", n, n);
  rigel::cdist(exec, x, x, d, rigel::metric::euclidean{}, rigel::epilogue::add_diagonal(infinity));
  exec.fence();
  return d;
}

/// The lengths of edges: i and j are joined if one is among the 10 nearest of the other (the smallest indices win ties).
Matrix neighbour_graph(const Matrix& d) {
  const int n = static_cast<int>(d.extent(0));
  const HostMatrix lengths = on_host(d);
  const Matrix graph("graph", n, n);
  const auto host = Kokkos::create_mirror_view(graph);
  Kokkos::deep_copy(host, infinity);
  std::vector<int> order(n);
  for (int i = 0; i < n; ++i) {
    std::iota(order.begin(), order.end(), 0);
    const auto nearer = [&](int a, int b) { return lengths(i, a) != lengths(i, b) ? lengths(i, a) < lengths(i, b) : a < b; };
    std::partial_sort(order.begin(), order.begin() + neighbours, order.end(), nearer);
    for (int e = 0; e < neighbours; ++e) host(i, order[e]) = host(order[e], i) = lengths(i, order[e]);
  }
  Kokkos::deep_copy(graph, host);
  return graph;
}

/// −½·J·(d²)·J with J = 1 − 1/n: the inner products of centred points that have these distances.
Matrix inner_products(const HostMatrix& d) {
  const int n = static_cast<int>(d.extent(0));
  std::vector<double> mean(n);  // of the squares in a row
  for (int i = 0; i < n; ++i) {
    if (*std::max_element(&d(i, 0), &d(i, 0) + n) == infinity) throw std::runtime_error("the graph is not connected");
    for (int j = 0; j < n; ++j) mean[i] += d(i, j) * d(i, j) / n;
  }
  const double all = std::accumulate(mean.begin(), mean.end(), 0.) / n;
  const Matrix products("inner products", n, n);
  const auto host = Kokkos::create_mirror_view(products);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) host(i, j) = -0.5 * (d(i, j) * d(i, j) - mean[i] - mean[j] + all);
  Kokkos::deep_copy(products, host);
  return products;
}

/// Points in the plane, and the two largest eigenvalues.
struct Embedding {
  std::vector<isomap::Point> points;
  double eigenvalues[2];
};

/// V·√w of the two largest eigenvalues w. Of each eigenvector the largest component is made positive.
Embedding embed(const Exec& exec, const Matrix& products) {
  const int n = static_cast<int>(products.extent(0));
  const Kokkos::View<double*, Exec> w("eigenvalues", n);
  rigel::eigh(exec, products, w, products, {.overwrite_a = true, .check = true});
  const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, w);
  const HostMatrix vectors = on_host(products);
  Embedding e{std::vector<isomap::Point>(n), {}};
  for (const int axis : {0, 1}) {
    const int column = n - 1 - axis;
    int largest = 0;
    for (int i = 1; i < n; ++i)
      if (std::fabs(vectors(i, column)) > std::fabs(vectors(largest, column))) largest = i;
    e.eigenvalues[axis] = values(column);
    const double scale = std::copysign(std::sqrt(values(column)), vectors(largest, column));
    for (int i = 0; i < n; ++i) (axis == 0 ? e.points[i].x : e.points[i].y) = scale * vectors(i, column);
  }
  return e;
}

double distance(isomap::Point a, isomap::Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

/// 1 − R², R the correlation of geodesic distances and of those in the plane, over all ordered pairs.
double residual_variance(const HostMatrix& geodesics, const std::vector<isomap::Point>& points) {
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  const auto n = points.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double a = geodesics(i, j), b = distance(points[i], points[j]);
      x += a;
      y += b;
      xx += a * a;
      yy += b * b;
      xy += a * b;
    }
  const auto pairs = static_cast<double>(n * n);
  const double covariance = xy - x * y / pairs;
  return 1 - covariance * covariance / ((xx - x * x / pairs) * (yy - y * y / pairs));
}

/// How many images have the same digit as their nearest neighbour in the plane.
int nearest_are_right(const std::vector<isomap::Point>& points, const std::vector<int>& labels) {
  int right = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::size_t nearest = i;
    double least = infinity;
    for (std::size_t j = 0; j < points.size(); ++j)
      if (j != i && distance(points[i], points[j]) < least) least = distance(points[i], points[nearest = j]);
    right += labels[nearest] == labels[i];
  }
  return right;
}

bool run(const digits::Options& options) {
  const digits::Data data = digits::read(options.data);
  const int n = std::min(images, data.size());
  const Exec exec;
  const Kokkos::Timer timer;
  const Matrix graph = neighbour_graph(distances(exec, data, n));
  rigel::closure(exec, rigel::min_plus<double>{}, graph);
  const HostMatrix geodesics = on_host(graph);
  std::printf("%d images, geodesic distances: %.3f s\n", n, timer.seconds());
  const Embedding e = embed(exec, inner_products(geodesics));
  std::printf("embedding: %.3f s\n", timer.seconds());
  isomap::write_plot("isomap.svg", e.points, data.digits);
  std::printf("wrote isomap.svg\n");

  const digits::Figure figures[] = {
      {"first", e.eigenvalues[0], 1e-10, "the largest eigenvalue"},
      {"second", e.eigenvalues[1], 1e-10, "the next one"},
      {"variance", residual_variance(geodesics, e.points), 1e-8, "residual variance of the distances"},
      {"right", static_cast<double>(nearest_are_right(e.points, data.digits)), 0, "nearest in the plane has the digit"}};
  return digits::are_as_expected(figures, options.expected, 36, 10);
}

constexpr const char* usage =
    "isomap [--data <digits.csv>] [--expect <figure>=<value>]...\n"
    "Draws 1000 handwritten digits in the plane, by geodesic distances, in isomap.svg. The data lies next to the program or "
    "is\n"
    "named. Ends with 1 where a figure is not as expected.\n";

}  // namespace

int main(int argc, char** argv) { return digits::run_program(argc, argv, usage, run); }

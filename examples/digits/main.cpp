// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 1797 handwritten digits: nearest neighbours by four metrics, geodesic distances and components of the neighbour graph. Every
// family of kernels computes every figure. README.md defines the figures.
#include <examples/digits/data.hpp>
#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace {

using digits::Data, digits::features;

constexpr int neighbours = 10;

struct Figure {
  std::string name;
  double value;
  double seconds;
  double tolerance;  // relative; 0 for counts
};
using Figures = std::vector<Figure>;

/// The figures on one execution space, by the kernels of one family, or of all if `family` is empty.
template <class Exec>
class Study {
  using Space = typename Exec::memory_space;
  template <class T>
  using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Space>;
  using Labels = Kokkos::View<int*, Space>;
  using Range = Kokkos::RangePolicy<Exec>;

 public:
  explicit Study(const Data& data)
      : n_(data.size()), single_("pixels", n_, features), double_("pixels", n_, features), labels_("digits", n_) {
    const auto pixels = Kokkos::create_mirror_view(single_);
    const auto labels = Kokkos::create_mirror_view(labels_);
    for (int i = 0; i < n_; ++i) {
      for (int k = 0; k < features; ++k) pixels(i, k) = static_cast<float>(data.pixels[i * features + k]);
      labels(i) = data.digits[i];
    }
    Kokkos::deep_copy(single_, pixels);
    Kokkos::deep_copy(double_, single_);
    Kokkos::deep_copy(labels_, labels);
  }

  Figures figures(const std::string& family) const {
    Figures list;
    // Computes a figure; skips it if the family lacks a kernel for it.
    const auto add = [&](const char* name, double tolerance, const auto& compute) {
      try {
        exec_.fence();
        const Kokkos::Timer timer;
        const double value = compute();
        list.push_back({name, value, timer.seconds(), tolerance});
      } catch (const rigel::Error& e) {
        if (e.code() != rigel::Code::unsupported) throw;
      }
    };
    const double infinity = std::numeric_limits<double>::infinity();
    add("p=1", 0, [&] { return nearest_are_right(1, family); });
    add("p=2", 0, [&] { return nearest_are_right(2, family); });
    add("p=1.3", 0, [&] { return nearest_are_right(1.3, family); });
    add("p=inf", 0, [&] { return nearest_are_right(infinity, family); });
    const Matrix<double> graph("graph", n_, n_);
    const Matrix<unsigned char> reachable("reachable", n_, n_);
    double mean = 0;
    add("edges", 0, [&] { return build(graph, reachable, family); });
    add("longest", 1e-12, [&] { return geodesics(graph, mean, family); });
    if (!list.empty() && list.back().name == "longest") list.push_back({"mean", mean, 0, 1e-12});
    add("components", 0, [&] { return components(reachable, family); });
    return list;
  }

 private:
  // The number of images whose nearest other image (the first one of a tie) shows the same digit.
  double nearest_are_right(double p, const std::string& family) const {
    const Matrix<float> distance("distance", n_, n_);
    rigel::cdist(exec_, single_, single_, distance, rigel::metric::minkowski{p},
                 rigel::epilogue::add_diagonal(std::numeric_limits<double>::infinity()), {.kernel = family});
    const int n = n_;
    const Labels labels = labels_;
    int right = 0;
    Kokkos::parallel_reduce(
        "digits::nearest", Range(exec_, 0, n),
        KOKKOS_LAMBDA(const int i, int& count) {
          int nearest = 0;
          for (int j = 1; j < n; ++j)
            if (distance(i, j) < distance(i, nearest)) nearest = j;
          count += labels(nearest) == labels(i);
        },
        right);
    return right;
  }

  // Builds the neighbour graph: the lengths of its edges (infinity if there is none), and which edges exist. Returns their
  // number.
  double build(const Matrix<double>& graph, const Matrix<unsigned char>& reachable, const std::string& family) const {
    const Matrix<double> distance("distance", n_, n_);
    rigel::cdist(exec_, double_, double_, distance, rigel::metric::euclidean{},
                 rigel::epilogue::add_diagonal(std::numeric_limits<double>::infinity()), {.kernel = family});
    Kokkos::deep_copy(exec_, graph, std::numeric_limits<double>::infinity());
    Kokkos::deep_copy(exec_, reachable, 0);
    const int n = n_;
    Kokkos::parallel_for(
        "digits::neighbours", Range(exec_, 0, n), KOKKOS_LAMBDA(const int i) {
          int nearest[neighbours];
          int found = 0;
          for (int j = 0; j < n; ++j) {
            if (j == i || (found == neighbours && !(distance(i, j) < distance(i, nearest[found - 1])))) continue;
            // Inserts j in order of distance, after neighbours that are as near.
            int at = found < neighbours ? found++ : found - 1;
            for (; at > 0 && distance(i, j) < distance(i, nearest[at - 1]); --at) nearest[at] = nearest[at - 1];
            nearest[at] = j;
          }
          for (int e = 0; e < found; ++e) {
            const int j = nearest[e];
            Kokkos::atomic_store(&graph(i, j), distance(i, j));
            Kokkos::atomic_store(&graph(j, i), distance(i, j));
            Kokkos::atomic_store(&reachable(i, j), static_cast<unsigned char>(1));
            Kokkos::atomic_store(&reachable(j, i), static_cast<unsigned char>(1));
          }
        });
    long long arcs = 0;
    Kokkos::parallel_reduce(
        "digits::edges", Range(exec_, 0, n),
        KOKKOS_LAMBDA(const int i, long long& count) {
          for (int j = 0; j < n; ++j) count += reachable(i, j);
        },
        arcs);
    return static_cast<double>(arcs) / 2;
  }

  // The length of the longest shortest path; `mean` is that of all of them.
  double geodesics(const Matrix<double>& graph, double& mean, const std::string& family) const {
    rigel::closure(exec_, rigel::min_plus<double>{}, graph, {.kernel = family});
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double longest = 0, sum = 0;
    long long pairs = 0;
    const int n = n_;
    Kokkos::parallel_reduce(
        "digits::geodesics", Range(exec_, 0, n),
        KOKKOS_LAMBDA(const int i, double& most, double& total, long long& count) {
          for (int j = 0; j < n; ++j) {
            const double length = graph(i, j);
            if (length == infinity) continue;
            most = length > most ? length : most;
            total += length;
            ++count;
          }
        },
        Kokkos::Max<double>(longest), sum, pairs);
    mean = sum / static_cast<double>(pairs);
    return longest;
  }

  // The number of images that reach no earlier one, of which each component has one.
  double components(const Matrix<unsigned char>& reachable, const std::string& family) const {
    rigel::closure(exec_, rigel::or_and<std::uint8_t>{}, reachable, {.kernel = family});
    int first = 0;
    Kokkos::parallel_reduce(
        "digits::components", Range(exec_, 0, n_),
        KOKKOS_LAMBDA(const int i, int& count) {
          int j = 0;
          while (!reachable(i, j)) ++j;
          count += j == i;
        },
        first);
    return first;
  }

  Exec exec_;
  int n_;
  Matrix<float> single_;
  Matrix<double> double_;
  Labels labels_;
};

/// One column of the result: a family of kernels on an execution space.
struct Column {
  std::string space, family;
  Figures figures;
};

// The families with kernels for the execution space, in the order of the registry.
template <class Exec>
std::vector<std::string> families() {
  constexpr bool on_host = Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible;
  std::vector<std::string> list;
  for (const auto& kernel :
       rigel::kernels({.semiring = "min_plus", .spaces = on_host ? rigel::host_spaces : rigel::bit(rigel::Space::cuda)}))
    if (std::find(list.begin(), list.end(), kernel.family) == list.end()) list.push_back(kernel.family);
  return list;
}

template <class Exec>
void compute(const Data& data, const std::vector<std::string>& families, std::vector<Column>& columns) {
  const Study<Exec> study(data);
  for (const auto& family : families) columns.push_back({Exec::name(), family, study.figures(family)});
}

bool equal(double x, double y, double tolerance) { return std::abs(x - y) <= tolerance * std::abs(y); }

// Prints the figures side by side. Returns how many differ between columns, or from what is expected.
int report(const std::vector<Column>& columns, const std::map<std::string, double>& expected) {
  std::map<std::string, const Figure*> first;
  std::vector<std::string> names;
  for (const auto& column : columns)
    for (const auto& figure : column.figures)
      if (first.emplace(figure.name, &figure).second) names.push_back(figure.name);

  std::printf("%-12s", "");
  for (const auto& column : columns)
    std::printf("  %-24s", (column.space + (column.family.empty() ? ", chosen" : ", " + column.family)).c_str());
  std::printf("\n");
  int wrong = 0, left_out = 0;
  for (const auto& name : names) {
    const Figure& common = *first[name];
    const auto wanted = expected.find(name);
    std::printf("%-12s", name.c_str());
    for (const auto& column : columns) {
      const auto found =
          std::find_if(column.figures.begin(), column.figures.end(), [&](const Figure& f) { return f.name == name; });
      if (found == column.figures.end()) {
        std::printf("  %-24s", "no kernel");
        ++left_out;
        continue;
      }
      char text[64], time[32] = "";
      if (found->seconds > 0) std::snprintf(time, sizeof time, "%8.3f s", found->seconds);
      std::snprintf(text, sizeof text, common.tolerance == 0 ? "%.0f" : "%.6f", found->value);
      const bool good = equal(found->value, common.value, common.tolerance) &&
                        (wanted == expected.end() || equal(found->value, wanted->second, common.tolerance));
      std::printf("  %-10s%10s%s", text, time, good ? "    " : " !!!");
      wrong += !good;
    }
    if (wanted != expected.end()) std::printf("  expected %.15g", wanted->second);
    std::printf("\n");
  }
  for (const auto& [name, value] : expected)
    if (!first.contains(name)) {
      std::printf("%s: expected %.15g, but there is no such figure\n", name.c_str(), value);
      ++wrong;
    }
  if (left_out > 0) std::printf("%d figures are left out: the family has no kernel for them\n", left_out);
  if (wrong == 0)
    std::printf("all %zu agree on every figure%s\n", columns.size(), expected.empty() ? "" : ", and all are as expected");
  else
    std::printf("%d values (!!!) differ from the first column or from what is expected\n", wrong);
  return wrong;
}

bool run(const digits::Options& options) {
  using Device = Kokkos::DefaultExecutionSpace;
  using Host = Kokkos::DefaultHostExecutionSpace;
  const Data data = digits::read(options.data);
  std::printf("%d handwritten digits, %d features; %s, %d host threads\n", data.size(), features, Device::name(),
              Host().concurrency());
  std::vector<Column> columns;
  compute<Device>(data, families<Device>(), columns);
  if constexpr (!std::is_same_v<Device, Host>) compute<Host>(data, {""}, columns);
  std::map<std::string, double> expected;
  for (const auto& [name, value] : options.expected) expected[name] = std::stod(value);
  return report(columns, expected) == 0;
}

constexpr const char* usage =
    "digits [--data <digits.csv>] [--expect <figure>=<value>]...\n"
    "Figures of the neighbour graph of handwritten digits, by every family of kernels. The data lies beside the program\n"
    "or is named. Ends with 1 where families differ, or a figure is not as expected.\n";

}  // namespace

int main(int argc, char** argv) { return digits::run_program(argc, argv, usage, run); }

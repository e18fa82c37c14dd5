// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times cdist() with every metric, by the kernel that Rigel chooses with default options: on a GPU 4096² × 512 of floats, compared
// with the ceilings of the instructions (cuda/metric_ceilings.hpp); on a host 2048² × 256 of doubles (host/compare_metrics.py compares
// with SciPy). Boolean rows are bytes; packed ones u32 words, 512 of them on a GPU and 8 on a host. haversine has K = 2.
//
//     bench_metrics [--metric <leading part of a name>] [--threads <of a host>] [--json <file>] [--commit <hash>]
//
// A pair is one term of one distance, of packed rows one word's. The exit status is 1 if a call fails, 77 if Kokkos is built for a GPU
// and there is none.
#include <bench/machine.hpp>
#include <rigel/dissimilarities.hpp>
#ifdef KOKKOS_ENABLE_CUDA
#include <bench/cuda/device.hpp>
#include <bench/cuda/metric_ceilings.hpp>
#endif

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using bench::Exec;
namespace metric = rigel::metric;

#ifdef KOKKOS_ENABLE_CUDA
using Number = float;
constexpr int points = 4096, coordinates = 512, words = 512;
#else
using Number = double;
constexpr int points = 2048, coordinates = 256, words = 8;
#endif

template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Exec::memory_space>;
using Vector = Kokkos::View<Number*, Exec::memory_space>;

struct Row {
  std::string metric, type, kernel, error;
  int k = 0;
  double seconds = 0, of_ceiling = 0;
  double pairs() const { return static_cast<double>(points) * points * k; }
};

/// Fills with random numbers: of (0, 1), truth values, or words of random bits.
template <class View>
void fill(const View& view, std::uint32_t seed) {
  using T = typename View::non_const_value_type;
  T* const to = view.data();
  Kokkos::parallel_for(
      "bench::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, static_cast<std::int64_t>(view.span())),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const std::uint32_t bits = bench::random_bits(static_cast<std::uint32_t>(i), seed);
        if constexpr (std::is_floating_point_v<T>)
          to[i] = (static_cast<T>(bits >> 8) + T(0.5)) * T(0x1p-24);
        else
          to[i] = sizeof(T) == 1 ? static_cast<T>(bits >> 31) : static_cast<T>(bits);
      });
}

class Bench {
 public:
  Bench(const Exec& exec, std::string wanted) : exec_(exec), watch_(exec), wanted_(std::move(wanted)) {}

  /// Times one metric of rows of T.
  template <class T = Number, class Metric>
  void time(const char* name, const Metric& metric, int k = coordinates) {
    if (!std::string_view(name).starts_with(wanted_)) return;
    Row row;
    row.metric = name;
    row.type = rigel::name(rigel::scalar_of<T>);
    row.k = k;
    try {
      measure<T>(row, metric);
    } catch (const std::exception& e) {
      row.error = e.what();
    }
    rows.push_back(row);
    std::printf("%-28s %-4s %10.4f ms %9.4g G pairs/s", name, row.type.c_str(), 1e3 * row.seconds,
                row.seconds > 0 ? 1e-9 * row.pairs() / row.seconds : 0);
    if (row.of_ceiling > 0) std::printf("  %.3f of the ceiling", row.of_ceiling);
    std::printf("  %s%s\n", row.kernel.c_str(), row.error.c_str());
    std::fflush(stdout);
  }

  std::vector<Row> rows;

 private:
  template <class T, class Metric>
  void measure(Row& row, const Metric& metric) {
    const Matrix<T> x("X", points, row.k), z("Z", points, row.k);
    const Matrix<Number> d("D", points, points);
    fill(x, 1);
    fill(z, 2);
    rigel::CdistOptions options;
    const Kokkos::View<std::byte*, Exec::memory_space> memory("memory",
                                                              rigel::cdist_workspace_size(exec_, x, z, d, metric) + 256);
    options.workspace.data = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256);
    options.workspace.bytes = memory.size() - 256;
    rigel::detail::with_cdist(exec_, x, z, d, metric, rigel::epilogue::Program{}, options, [&](rigel::detail::Cdist call) {
      for (const auto& candidate : rigel::detail::cdist_candidates(std::move(call)))
        if (candidate.chosen) row.kernel = candidate.kernel->info.name;
    });
    row.seconds = bench::seconds_of(watch_, [&] { rigel::cdist(exec_, x, z, d, metric, options); });
#ifdef KOKKOS_ENABLE_CUDA
    row.of_ceiling = bench::metric_floor(exec_, row.metric, points, row.k) / row.seconds;
#endif
  }

  Exec exec_;
  bench::Stopwatch watch_;
  std::string wanted_;
};

void time_all(const Exec& exec, Bench& bench) {
  const Vector weights("weights", coordinates);
  const Matrix<Number> factor("factor", coordinates, coordinates);
  fill(weights, 3);
  fill(factor, 4);
  // Near the identity, as a factor for data that are scaled. A matrix of positive numbers would make rows nearly parallel, and all distances
  // cancel.
  Kokkos::parallel_for(
      "bench::factor", Kokkos::RangePolicy<Exec>(exec, 0, coordinates * coordinates), KOKKOS_LAMBDA(const int e) {
        Number& number = factor(e / coordinates, e % coordinates);
        number = (number - Number(0.5)) / 16 + (e % (coordinates + 1) == 0 ? 1 : 0);
      });
  exec.fence();
  using Byte = std::uint8_t;
  using Word = std::uint32_t;
  bench.time("manhattan", metric::manhattan{});
  bench.time("squared_euclidean", metric::squared_euclidean{});
  bench.time("euclidean", metric::euclidean{});
  bench.time("seuclidean", metric::seuclidean<Vector>{weights});
  bench.time("mahalanobis", metric::mahalanobis<Matrix<Number>>{factor});
  bench.time("chebyshev", metric::chebyshev{});
  bench.time("minkowski, p = 1.3", metric::minkowski{1.3});
  bench.time("minkowski, p = 3", metric::minkowski{3.});
  bench.time("weighted_minkowski, p = 1.3", metric::weighted_minkowski<Vector>{1.3, weights});
  bench.time("minkowski_with_epsilon", metric::minkowski_with_epsilon{1.3, 1e-3});
  bench.time("inner_product", metric::inner_product{});
  bench.time("cosine", metric::cosine{});
  bench.time("correlation", metric::correlation{});
  bench.time("canberra", metric::canberra{});
  bench.time("braycurtis", metric::braycurtis{});
  bench.time("hellinger", metric::hellinger{});
  bench.time("kl_divergence", metric::kl_divergence{});
  bench.time("jensenshannon", metric::jensenshannon{});
  bench.time("haversine", metric::haversine{}, 2);
  bench.time("hamming", metric::hamming{});
  bench.time<Byte>("jaccard", metric::jaccard{});
  bench.time<Byte>("dice", metric::dice{});
  bench.time<Byte>("rogerstanimoto", metric::rogerstanimoto{});
  bench.time<Byte>("russellrao", metric::russellrao{});
  bench.time<Byte>("sokalsneath", metric::sokalsneath{});
  bench.time<Byte>("yule", metric::yule{});
  bench.time<Word>("bit_hamming", metric::bit_hamming{}, words);
  bench.time<Word>("bit_jaccard", metric::bit_jaccard{}, words);
  bench.time<Word>("bit_dice", metric::bit_dice{}, words);
  bench.time<Word>("bit_rogerstanimoto", metric::bit_rogerstanimoto{}, words);
  bench.time<Word>("bit_russellrao", metric::bit_russellrao{}, words);
  bench.time<Word>("bit_sokalsneath", metric::bit_sokalsneath{}, words);
  bench.time<Word>("bit_yule", metric::bit_yule{}, words);
}

void write_json(const std::string& path, const std::string& commit, const Exec& exec, const std::vector<Row>& rows) {
  std::ofstream file(path);
  file << "{\"context\": {\"program\": \"bench_metrics\", \"commit\": " << bench::quoted(commit) << ", "
       << bench::machine(exec) << "},\n\"metrics\": [";
  const char* separator = "\n";
  for (const Row& row : rows) {
    file << separator << "{\"metric\": " << bench::quoted(row.metric) << ", \"type\": " << bench::quoted(row.type)
         << ", \"m\": " << points << ", \"n\": " << points << ", \"k\": " << row.k
         << ", \"kernel\": " << bench::quoted(row.kernel);
    if (row.error.empty()) file << ", \"seconds\": " << row.seconds << ", \"pairs/s\": " << row.pairs() / row.seconds;
    if (row.of_ceiling > 0) file << ", \"of ceiling\": " << row.of_ceiling;
    if (!row.error.empty()) file << ", \"error\": " << bench::quoted(row.error);
    file << '}';
    separator = ",\n";
  }
  file << "\n]}\n";
  if (!file.flush()) throw std::runtime_error("the file '" + path + "' cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  std::string wanted, file, commit;
  Kokkos::InitializationSettings settings;
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const int number = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    if (word == "--metric" && !value.empty()) {
      wanted = value;
    } else if (word == "--threads" && number > 0) {
      settings.set_num_threads(number);
    } else if (word == "--json" && !value.empty()) {
      file = value;
    } else if (word == "--commit" && !value.empty()) {
      commit = value;
    } else {
      std::fputs(
          "bench_metrics [--metric <leading part of a name>] [--threads <of a host>] [--json <file>] [--commit <hash>]\n",
          stderr);
      return 2;
    }
  }
#ifdef KOKKOS_ENABLE_CUDA
  if (!bench::has_gpu("bench_metrics")) return 77;
#endif
  try {
    const Kokkos::ScopeGuard kokkos(settings);
    const Exec exec;
    Bench bench(exec, wanted);
    time_all(exec, bench);
    if (!file.empty()) write_json(file, commit, exec, bench.rows);
    return std::ranges::any_of(bench.rows, [](const Row& row) { return !row.error.empty(); }) ? 1 : 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_metrics: %s\n", e.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the host and portable kernels in pairs (m, n, k) per second, 2048 × 2048 × 256 on two threads, and the ceilings of the machine:
// loops of the same operations that touch no memory. compare.py compares them with other libraries.
#include <bench/host/ceiling.hpp>
#include <bench/machine.hpp>
#include <rigel/contract.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <string>

namespace {

constexpr std::int64_t m = 2048, n = 2048, k = 256;
constexpr double p = 1.3;

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::HostSpace>;

template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, unsigned seed) {
  Matrix<T> a(Kokkos::view_alloc("a", Kokkos::WithoutInitializing), static_cast<std::size_t>(rows),
              static_cast<std::size_t>(columns));
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<T> uniform(0, 1);
  for (std::int64_t i = 0; i < rows * columns; ++i) a.data()[i] = uniform(generator);
  return a;
}

void set_rate(benchmark::State& state, double pairs) {
  state.counters["pairs/s"] = benchmark::Counter(pairs, benchmark::Counter::kIsIterationInvariantRate);
}

/// Measures C = epilogue(X ⊗ Zᵀ); X and Z have one point per row, as in cdist.
template <class S>
void contraction(benchmark::State& state, S semiring, const std::string& kernel,
                 const rigel::epilogue::Program& epilogue = {}) {
  using T = typename S::element;
  const auto x = random_matrix<T>(m, k, 1), z = random_matrix<T>(n, k, 2), c = random_matrix<T>(m, n, 3);
  const Exec exec;
  rigel::ContractOptions options;
  options.kernel = kernel;
  const auto run = [&] {
    rigel::contract(exec, semiring, x, rigel::transposed(z), c, epilogue, options);
    exec.fence();
  };
  run();
  for (auto _ : state) run();
  set_rate(state, double(m) * n * k);

  if constexpr (std::is_same_v<S, rigel::lp<T>>) {
    // The largest relative error of a sample of the distances, compared with sums in extended precision.
    double worst = 0;
    for (std::int64_t i = 0; i < m; i += 61)
      for (std::int64_t j = 0; j < n; j += 67) {
        long double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += std::pow(std::abs(static_cast<long double>(x(i, l)) - z(j, l)), static_cast<long double>(semiring.p));
        const long double distance = std::pow(sum, 1 / static_cast<long double>(semiring.p));
        worst = std::max(worst, static_cast<double>(std::abs(c(i, j) - distance) / distance));
      }
    state.counters["relative error"] = worst;
  }
}

/// Measures a ceiling: `loop` on every thread returns how many pairs it computed.
void ceiling(benchmark::State& state, double (*loop)()) {
  const Exec exec;
  double pairs = 0;
  for (auto _ : state) pairs = bench::on_all_threads(exec, loop);
  set_rate(state, pairs);
}

void add(const std::string& name, auto function) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMillisecond);
}

void add_all() {
  using benchmark::State;
  const bench::Ceilings top = bench::ceilings();
  add("ceiling/l1/f32", [=](State& s) { ceiling(s, top.l1_f32); });
  add("ceiling/l1/f64", [=](State& s) { ceiling(s, top.l1_f64); });
  add("ceiling/min_plus/f32", [=](State& s) { ceiling(s, top.min_plus_f32); });
  add("ceiling/plus_times/f32", [=](State& s) { ceiling(s, top.plus_times_f32); });
  add("host/l1/f32", [](State& s) { contraction(s, rigel::l1<float>{}, "host"); });
  add("host/l1/f64", [](State& s) { contraction(s, rigel::l1<double>{}, "host"); });
  add("host/min_plus/f32", [](State& s) { contraction(s, rigel::min_plus<float>{}, "host"); });
  add("host/plus_times/f32", [](State& s) { contraction(s, rigel::plus_times<float>{}, "host.plus_times"); });
  if (!rigel::kernels({.name = "host.blas"}).empty())
    add("host.blas/plus_times/f32", [](State& s) { contraction(s, rigel::plus_times<float>{}, "host.blas"); });
  add("portable/l1/f32", [](State& s) { contraction(s, rigel::l1<float>{}, "portable"); });
  add("portable/min_plus/f32", [](State& s) { contraction(s, rigel::min_plus<float>{}, "portable"); });
  add("portable/plus_times/f32", [](State& s) { contraction(s, rigel::plus_times<float>{}, "portable"); });
  add("host/lp/f32", [](State& s) { contraction(s, rigel::lp<float>{{}, float(p)}, "host", rigel::epilogue::pow(1 / p)); });
  add("host/lp/f64", [](State& s) { contraction(s, rigel::lp<double>{{}, p}, "host", rigel::epilogue::pow(1 / p)); });
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::InitializationSettings settings;
  settings.set_num_threads(2);
  const Kokkos::ScopeGuard kokkos(settings);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("processor", bench::processor());
  benchmark::AddCustomContext("compiler", __VERSION__);
  benchmark::AddCustomContext("threads", std::to_string(Exec().concurrency()));
  add_all();
  benchmark::RunSpecifiedBenchmarks();
}

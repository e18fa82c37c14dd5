// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of cdist_gradient() on the default CUDA device: every kernel that covers a task, and the one that Rigel chooses.
//
//     bench_gradient [<leading part of a kernel's name>]
//
// Prints lines of JSON: first the machine, then one for each task and kernel, with the median device seconds of 11 calls after 3
// others, the predicted seconds, evaluations of multiply() and fused multiply-adds per second, and the largest error over
// Σ_k |c·a|·|t|^(p−1) of 4096 outputs against sums in double. Exit status 1 if that is above the kernel's bound, which stands next to it.
// Products of points have a bound by another measure, Σ_k |c·a|·(|d − mean| + |b − mean|): its error stands there as "of_points".
#include <bench/cuda/device.hpp>
#include <bench/machine.hpp>
#include <rigel/gradient.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using bench::Exec;
template <class T>
using Outputs = Kokkos::View<T***, Kokkos::LayoutRight, Kokkos::CudaSpace>;

struct Task {
  int m, n, outputs, k;
};
constexpr Task tasks[] = {{1024, 512, 16, 8192}, {10000, 256, 8, 10000}, {1000, 1000, 16, 64}, {256, 16, 1, 60000}};
constexpr double powers[] = {1, 2, 1.3};

// The largest error of 4096 outputs, spread over all of them, over the sum of their terms' magnitudes; `of_points`: over what products
// of points are measured by.
template <class T>
double error_of(const Exec& exec, const Task& task, double p, const bench::Matrix<T>& a, const bench::Matrix<T>& b,
                const bench::Matrix<T>& c, const bench::Matrix<T>& d, const Outputs<T>& out, bool of_points) {
  const std::int64_t all = std::int64_t{task.outputs} * task.n * task.m, step = std::max<std::int64_t>(1, all / 4096 | 1);
  double worst = 0;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Kokkos::parallel_reduce(
      "bench::error", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, (all + step - 1) / step),
      KOKKOS_LAMBDA(const std::int64_t sample, double& most) {
        const std::int64_t i = sample * step, m = i % task.m, n = i / task.m % task.n, o = i / task.m / task.n;
        double sum = 0, size = 0, mean = 0;
        for (int k = 0; of_points && k < task.k; ++k) mean += static_cast<double>(b(n, k)) / task.k;
        for (int k = 0; k < task.k; ++k) {
          const double t = static_cast<double>(d(n, m)) - static_cast<double>(b(n, k));
          if (t == 0) continue;
          const double term = static_cast<double>(c(o, k)) * static_cast<double>(a(k, m)) *
                              Kokkos::copysign(Kokkos::pow(Kokkos::abs(t), p - 1), t);
          sum += term;
          size += of_points ? Kokkos::abs(term / t) * (Kokkos::abs(static_cast<double>(d(n, m)) - mean) +
                                                       Kokkos::abs(static_cast<double>(b(n, k)) - mean))
                            : Kokkos::abs(term);
        }
        const double error = Kokkos::abs(static_cast<double>(out(o, n, m)) - sum);
        const double ratio = error == 0 ? 0 : error < infinity ? error / size : infinity;  // not NaN
        most = ratio > most ? ratio : most;
      },
      Kokkos::Max<double>(worst));
  exec.fence();
  return worst;
}

// Whether all kernels keep their bounds.
template <class T>
bool measure(const Exec& exec, const Task& task, double p, const std::string& wanted) {
  const auto a = bench::uninitialized<T>(task.k, task.m), b = bench::uninitialized<T>(task.n, task.k),
             c = bench::uninitialized<T>(task.outputs, task.k), d = bench::uninitialized<T>(task.n, task.m);
  const Outputs<T> out(Kokkos::view_alloc("out", Kokkos::WithoutInitializing), task.outputs, task.n, task.m);
  std::uint32_t seed = 1;
  for (const auto& view : {a, b, c, d}) bench::fill(exec, view, seed++, bench::Numbers::normal);
  const double evaluations = static_cast<double>(task.m) * task.n * task.k;
  bool kept = true;
  rigel::detail::with_gradient_of<Exec, T>(p, 0, 1, [&](const auto& functor) {
    const rigel::GradientOptions all{.precision = rigel::Precision::bf16x3, .may_cancel = true};
    const std::string chosen = rigel::select(rigel::gradient_problem(exec, functor, a, b, c, d, out)).info.name;
    for (const auto& candidate : rigel::candidates(rigel::gradient_problem(exec, functor, a, b, c, d, out, all))) {
      const std::string& name = candidate.kernel->info.name;
      // The reference takes seconds.
      if (!candidate.status || !name.starts_with(wanted) || name.starts_with("reference")) continue;
      rigel::GradientOptions options = all;
      options.kernel = name;
      const Kokkos::View<std::byte*, Kokkos::CudaSpace> memory("memory", candidate.workspace.bytes + 256);
      options.workspace.data = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256);
      options.workspace.bytes = candidate.workspace.bytes;
      const double seconds =
          bench::median_seconds(exec, [&] { rigel::contract_gradient(exec, functor, a, b, c, d, out, options); });
      const bool of_points = rigel::detail::is_of_points(candidate.kernel->info);
      const double error = error_of<T>(exec, task, p, a, b, c, d, out, false),
                   measured = of_points ? error_of<T>(exec, task, p, a, b, c, d, out, true) : error;
      const double bound =
          candidate.kernel->info.accuracy.of(task.k) * std::numeric_limits<T>::epsilon() / 2 + (task.k + 4) * 0x1p-53;
      kept = kept && measured <= bound;
      std::printf(
          "{\"m\": %d, \"n\": %d, \"outputs\": %d, \"k\": %d, \"p\": %g, \"type\": \"%s\", \"kernel\": \"%s\", \"chosen\": "
          "%s, "
          "\"seconds\": %.4g, \"predicted\": %.3g, \"evaluations_per_second\": %.4g, \"fmas_per_second\": %.4g, "
          "\"error\": %.3g, \"of_points\": %.3g, \"bound\": %.3g}\n",
          task.m, task.n, task.outputs, task.k, p, sizeof(T) == 4 ? "f32" : "f64", name.c_str(),
          name == chosen ? "true" : "false", seconds, candidate.seconds, evaluations / seconds,
          evaluations * task.outputs / seconds, error, measured, bound);
      std::fflush(stdout);
    }
  });
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::has_gpu("bench_gradient")) return 77;
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Exec exec;
  std::printf("{%s}\n", bench::machine(exec).c_str());
  bool kept = true;
  for (const Task& task : tasks)
    for (const double p : powers) {
      kept = measure<float>(exec, task, p, argc > 1 ? argv[1] : "") && kept;
      if (task.k < 1000) kept = measure<double>(exec, task, p, argc > 1 ? argv[1] : "") && kept;
    }
  return kept ? 0 : 1;
}

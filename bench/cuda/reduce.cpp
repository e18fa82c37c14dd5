// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of reductions of distances on the default CUDA device: every kernel of reduce() that covers a task, and the one that Rigel chooses.
//
//     bench_reduce [<leading part of a task's name> [<leading part of a kernel's name>]]
//
// Prints lines of JSON: first the machine, then one for each task and kernel, with the median device seconds of up to 11 calls after
// others, the predicted seconds and pairs per second. Tasks are reductions to the best scores, weighted sums, and updates of sinkhorn().
// Best scores are compared with those of strips of scores with the reference's bits: how many values and indices differ, and the largest
// relative difference of values. Exit status 1 if a kernel that promises these bits has others.
#include <bench/cuda/device.hpp>
#include <bench/machine.hpp>
#include <rigel/kernel_matvec.hpp>
#include <rigel/neighbors.hpp>
#include <rigel/sinkhorn.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using bench::Exec;

enum class Call { nearest, assign, logsumexp, kernel_matvec, softmax_matvec, sinkhorn };
struct Task {
  const char* name;
  Call call;
  int m, n, k, count;
};

/// The median device seconds of 11 calls after 3 others; of fewer, if they take long.
template <class Enqueue>
double median(const Exec& exec, const Enqueue& enqueue) {
  const bench::Stopwatch watch(exec);
  const double first = watch.seconds(enqueue);
  const int calls = first > 0.5 ? 1 : first > 0.05 ? 5 : 11;
  for (int i = 0; i < (calls > 1 ? 2 : 0); ++i) watch.seconds(enqueue);
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) times.push_back(watch.seconds(enqueue));
  std::ranges::sort(times);
  return times[times.size() / 2];
}

/// Whether all kernels keep their promises.
template <class T, class Metric>
bool measure(const Exec& exec, const Task& task, const Metric& metric, const std::string& wanted) {
  const auto x = bench::uninitialized<T>(task.m, task.k), z = bench::uninitialized<T>(task.n, task.k);
  bench::fill(exec, x, 1, bench::Numbers::normal);
  bench::fill(exec, z, 2, bench::Numbers::normal);
  const bench::Matrix<float> values = bench::uninitialized<float>(task.m, task.count);
  const bench::Matrix<int> indices = bench::uninitialized<int>(task.m, task.count);
  const auto values_of_row = Kokkos::subview(values, Kokkos::ALL, 0);
  const auto indices_of_row = Kokkos::subview(indices, Kokkos::ALL, 0);
  const rigel::epilogue::Program last = rigel::epilogue::scale(-0.5f);
  const auto with_arguments = [&](const auto& use) {
    switch (task.call) {
      case Call::nearest: return use(rigel::reducer::smallest{task.count}, values, indices, rigel::epilogue::Program{});
      case Call::assign: return use(rigel::reducer::minimum{}, values_of_row, indices_of_row, rigel::epilogue::Program{});
      default: return use(rigel::reducer::log_sum_exp{}, values_of_row, rigel::no_output, last);
    }
  };
  const auto call = [&](const rigel::ReduceOptions& options) {
    with_arguments([&](const auto& reducer, const auto& v, const auto& i, const rigel::epilogue::Program& program) {
      rigel::reduce_distances(exec, x, z, metric, reducer, v, i, program, options);
    });
  };
  std::vector<rigel::Candidate<rigel::Reduction>> candidates;
  with_arguments([&](const auto& reducer, const auto& v, const auto& i, const rigel::epilogue::Program& program) {
    rigel::detail::with_points(
        exec, x, z, metric, reducer, v, i, program, rigel::ReduceOptions{}, "reduce_distances",
        [&](const rigel::Reduction& p, const rigel::detail::RowPass*) { candidates = rigel::candidates(p); });
  });

  const auto host_values = Kokkos::create_mirror_view(values);
  const auto host_indices = Kokkos::create_mirror_view(indices);
  const auto results = [&] {
    Kokkos::deep_copy(host_values, values);
    Kokkos::deep_copy(host_indices, indices);
  };
  Kokkos::deep_copy(indices, 0);
  call({.require = rigel::Promise::reference_bits, .kernel = "portable.strips_of_chains"});
  exec.fence();
  results();
  const std::size_t size = values.size();
  const std::vector<float> right(host_values.data(), host_values.data() + size);
  const std::vector<int> right_indices(host_indices.data(), host_indices.data() + size);

  bool kept = true;
  for (const auto& candidate : candidates) {
    const std::string& name = candidate.kernel->info.name;
    // The reference takes seconds.
    if (!candidate.status || !name.starts_with(wanted) || name.starts_with("reference")) continue;
    Kokkos::deep_copy(values, -7);
    const double seconds = median(exec, [&] { call({.kernel = name}); });
    exec.fence();
    results();
    std::size_t other_values = 0, other_indices = 0;
    double worst = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double a = right[i], b = host_values.data()[i];
      other_values += a != b;
      other_indices += right_indices[i] != host_indices.data()[i];
      worst = std::max(worst, a == b ? 0 : std::abs(a - b) <= std::abs(a) ? std::abs(a - b) / std::abs(a) : 1.);
    }
    if (covers(candidate.kernel->info.promises, rigel::Promise::reference_bits))
      kept = kept && other_values + other_indices == 0;
    std::printf(
        "{\"task\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"results\": %d, \"kernel\": \"%s\", \"chosen\": %s, "
        "\"seconds\": %.4g, "
        "\"predicted\": %.3g, \"pairs_per_second\": %.4g, \"workspace\": %zu, \"other_values\": %zu, \"other_indices\": "
        "%zu, "
        "\"difference\": %.3g}\n",
        task.name, task.m, task.n, task.k, task.count, name.c_str(), candidate.chosen ? "true" : "false", seconds,
        candidate.seconds, double(task.m) * task.n * task.k / seconds, candidate.workspace.bytes, other_values,
        other_indices, worst);
    std::fflush(stdout);
  }
  return kept;
}

/// Sums of rows weighted by a Gaussian kernel, or softmax-weighted means, with `count` right sides. The first rows are compared with those
/// of doubles: `difference` is the largest one of a value, divided by the largest value.
void measure_sums(const Exec& exec, const Task& task, const std::string& wanted) {
  const auto x = bench::uninitialized<float>(task.m, task.k), z = bench::uninitialized<float>(task.n, task.k);
  const auto v = bench::uninitialized<float>(task.n, task.count), out = bench::uninitialized<float>(task.m, task.count);
  bench::fill(exec, x, 1, bench::Numbers::normal);
  bench::fill(exec, z, 2, bench::Numbers::normal);
  bench::fill(exec, v, 3, bench::Numbers::normal);
  const bool softmax = task.call == Call::softmax_matvec;
  const double bandwidth = std::sqrt(double(task.k));
  constexpr rigel::metric::squared_euclidean squares;
  constexpr rigel::metric::euclidean euclidean;
  const rigel::kernel::gaussian gaussian{bandwidth};
  const rigel::epilogue::Program last = rigel::epilogue::scale(float(-0.5 / task.k));
  const auto call = [&](const auto& a, const auto& b, const auto& weights, const auto& result,
                        const rigel::ReduceOptions& options) {
    if (softmax)
      rigel::softmax_matvec(exec, a, b, weights, squares, result, last, options);
    else
      rigel::kernel_matvec(exec, a, b, weights, euclidean, gaussian, result, options);
  };
  std::vector<rigel::Candidate<rigel::Reduction>> candidates;
  const auto list = [&](const rigel::Reduction& p, const rigel::detail::RowPass*) { candidates = rigel::candidates(p); };
  if (softmax)
    rigel::detail::with_softmax_matvec(exec, x, z, v, squares, out, last, rigel::ReduceOptions{}, list);
  else
    rigel::detail::with_kernel_matvec(exec, x, z, v, euclidean, gaussian, out, rigel::ReduceOptions{}, list);

  const int rows = std::min(task.m, 256);
  const auto first = bench::uninitialized<double>(rows, task.k), all = bench::uninitialized<double>(task.n, task.k);
  const auto weights = bench::uninitialized<double>(task.n, task.count),
             right = bench::uninitialized<double>(rows, task.count);
  Kokkos::deep_copy(exec, first, Kokkos::subview(x, std::pair(0, rows), Kokkos::ALL));
  Kokkos::deep_copy(exec, all, z);
  Kokkos::deep_copy(exec, weights, v);
  call(first, all, weights, right, {});
  exec.fence();
  const auto expected = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), right);
  for (const auto& candidate : candidates) {
    const std::string& name = candidate.kernel->info.name;
    const bool is_large = double(task.m) * task.n * task.k > 1e12;
    // The reference takes minutes, and strips of large tasks seconds.
    if (!candidate.status || !name.starts_with(wanted) || name.starts_with("reference") ||
        (is_large && !name.starts_with("cuda")))
      continue;
    Kokkos::deep_copy(out, -7);
    const double seconds = median(exec, [&] { call(x, z, v, out, {.kernel = name}); });
    const auto found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), out);
    double difference = 0, largest = 0;
    for (int m = 0; m < rows; ++m) {
      for (int d = 0; d < task.count; ++d) {
        difference = std::max(difference, std::abs(found(m, d) - expected(m, d)));
        largest = std::max(largest, std::abs(expected(m, d)));
      }
    }
    std::printf(
        "{\"task\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"results\": %d, \"kernel\": \"%s\", \"chosen\": %s, "
        "\"seconds\": %.4g, \"predicted\": %.3g, \"pairs_per_second\": %.4g, \"workspace\": %zu, \"difference\": "
        "%.3g}\n",
        task.name, task.m, task.n, task.k, task.count, name.c_str(), candidate.chosen ? "true" : "false", seconds,
        candidate.seconds, double(task.m) * task.n * task.k / seconds, candidate.workspace.bytes, difference / largest);
    std::fflush(stdout);
  }
}

/// Host seconds of an update of both potentials by sinkhorn().
void measure_sinkhorn(const Exec& exec, const Task& task) {
  const auto x = bench::uninitialized<float>(task.m, task.k), z = bench::uninitialized<float>(task.n, task.k);
  bench::fill(exec, x, 1, bench::Numbers::normal);
  bench::fill(exec, z, 2, bench::Numbers::normal);
  const Kokkos::View<float*, Exec> a("a", task.m), b("b", task.n), f("f", task.m), g("g", task.n);
  Kokkos::deep_copy(a, 1.f);
  Kokkos::deep_copy(b, 1.f);
  const auto seconds = [&](int iterations) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      exec.fence();
      const Kokkos::Timer timer;
      rigel::sinkhorn(exec, x, z, a, b, rigel::metric::squared_euclidean{}, f, g,
                      {.epsilon = double(task.k) / 10, .tolerance = 0, .iterations = iterations, .scaling = 1});
      best = std::min(best, timer.seconds());
    }
    return best;
  };
  const double few = seconds(2), many = seconds(12);
  std::printf("{\"task\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"kernel\": \"sinkhorn\", \"seconds\": %.4g}\n",
              task.name, task.m, task.n, task.k, (many - few) / 10);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::has_gpu("bench_reduce")) return 77;
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Exec exec;
  std::printf("{%s}\n", bench::machine(exec).c_str());
  const std::string task = argc > 1 ? argv[1] : "", kernel = argc > 2 ? argv[2] : "";
  bool kept = true;
  const auto run = [&]<class T, class Metric>(const Task& t, const Metric& metric) {
    if (std::string(t.name).starts_with(task)) kept = measure<T>(exec, t, metric, kernel) && kept;
  };
  constexpr rigel::metric::squared_euclidean squares;
  constexpr rigel::metric::euclidean euclidean;
  constexpr rigel::metric::manhattan manhattan;
  run.operator()<float>(Task{"nearest_10_manhattan", Call::nearest, 100000, 100000, 64, 10}, manhattan);
  run.operator()<float>(Task{"nearest_10_squares", Call::nearest, 100000, 100000, 64, 10}, squares);
  run.operator()<float>(Task{"nearest_10_euclidean", Call::nearest, 100000, 100000, 64, 10}, euclidean);
  run.operator()<float>(Task{"nearest_100_manhattan", Call::nearest, 100000, 100000, 64, 100}, manhattan);
  run.operator()<float>(Task{"nearest_100_squares", Call::nearest, 100000, 100000, 64, 100}, squares);
  run.operator()<float>(Task{"nearest_10_of_million", Call::nearest, 10000, 1000000, 128, 10}, squares);
  run.operator()<float>(Task{"one_query_f32", Call::nearest, 1, 1000000, 128, 10}, euclidean);
  run.operator()<rigel::half>(Task{"one_query_f16", Call::nearest, 1, 1000000, 128, 10}, euclidean);
  run.operator()<float>(Task{"assign_128", Call::assign, 1000000, 1024, 128, 1}, squares);
  run.operator()<rigel::bfloat16>(Task{"assign_128_bf16", Call::assign, 1000000, 1024, 128, 1}, squares);
  run.operator()<float>(Task{"assign_16", Call::assign, 1000000, 8192, 16, 1}, squares);
  run.operator()<float>(Task{"assign_manhattan", Call::assign, 100000, 1024, 128, 1}, manhattan);
  run.operator()<float>(Task{"logsumexp", Call::logsumexp, 100000, 100000, 64, 1}, squares);
  for (const Task& t : {Task{"gaussian_3", Call::kernel_matvec, 1000000, 1000000, 3, 1},
                        Task{"gaussian_64", Call::kernel_matvec, 100000, 100000, 64, 1},
                        Task{"gaussian_64_of_64", Call::kernel_matvec, 100000, 100000, 64, 64},
                        Task{"softmax_64_of_64", Call::softmax_matvec, 100000, 100000, 64, 64}})
    if (std::string(t.name).starts_with(task)) measure_sums(exec, t, kernel);
  if (const Task t{"sinkhorn", Call::sinkhorn, 50000, 50000, 64, 1}; std::string(t.name).starts_with(task))
    measure_sinkhorn(exec, t);
  return kept ? 0 : 1;
}

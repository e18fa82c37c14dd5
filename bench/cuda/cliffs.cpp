// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cliffs that depend on the data: times of products, distances, log-sums, codes and gradients on the default CUDA device with each kind of
// special data (Data in problems.hpp), by the chosen kernel and by that on CUDA cores.
//
//     bench_cliffs [--task <part of a task's text>] [--data <name>] [--kernel <family>] [--problem <problem>]… [--json <file>] [--commit <hash>]
//
// --kernel   takes cuda.mma, for instance, instead of the chosen kernel, in tasks that are problems
// --problem  measures this problem, as problems.hpp writes it, instead of the tasks
//
// It prints a line for each task and kind of data: us of the kernel, of CUDA cores with these data, and of the kernel with ordinary data, and
//
//     cliff = us / (1.3 · us of CUDA cores + us with ordinary data)
//
// which no data should bring above 1. The exit status is 1 if a call fails, 77 if there is no GPU.
#include <bench/cuda/device.hpp>
#include <bench/runner.hpp>
#include <rigel/distance.hpp>
#include <rigel/gradient.hpp>

#include <functional>

namespace {

using bench::Data, bench::Exec, bench::Side;

struct Options {
  std::string task, data, family, json, commit;
  std::vector<std::string> problems;
};

Options read(int argc, char** argv) {
  Options o;
  const bench::Option options[] = {
      {"--task", &o.task},     {"--data", [&](const std::string& name) { o.data = bench::name(bench::data_of(name)); }},
      {"--kernel", &o.family}, {"--problem", &o.problems},
      {"--json", &o.json},     {"--commit", &o.commit}};
  bench::read_options(argc, argv, options);
  return o;
}

struct Time {
  std::string kernel;
  double seconds = 0;
};

/// What is measured: with data, by the kernel of a call with default options, or by the one on CUDA cores.
struct Task {
  std::string text;
  bool floats;  // whether its data may be NaN
  std::function<Time(Data, bool on_cuda_cores)> time;
};

/// Fills a matrix, by rows or by columns.
template <class T, class Layout>
void fill(const Exec& exec, const bench::Matrix<T, Layout>& view, Side side, std::uint32_t seed, Data data) {
  rigel::Operand o;
  o.type = rigel::scalar_of<T>;
  o.size = sizeof(T);
  o.data = view.data();
  o.batches = 1;
  o.rows = static_cast<std::int64_t>(view.extent(0));
  o.columns = static_cast<std::int64_t>(view.extent(1));
  o.row_stride = static_cast<std::int64_t>(view.stride(0));
  o.column_stride = static_cast<std::int64_t>(view.stride(1));
  bench::fill(exec, o, side, seed, false, data);
}

Task problem(bench::Runner& runner, const std::string& text, const std::vector<bench::Subject>& zoo,
             const std::string& family) {
  const bench::Spec spec = bench::parse(text, zoo);
  return {text, spec.subject.reference.element <= rigel::Scalar::f64,
          [&runner, spec, family](Data data, bool on_cuda_cores) {
            bench::Spec s = spec;
            s.data = data;
            const auto o =
                runner.run(s, bench::Which::chosen, on_cuda_cores ? "cuda.simt" : family, bench::Clock::time_point::max());
            if (o->rows.empty()) throw std::runtime_error("no kernel covers " + o->problem);
            const bench::Row& row = o->rows[o->chosen];
            if (!row.error.empty()) throw std::runtime_error(row.kernel->info.name + ": " + row.error);
            return Time{row.kernel->info.name, row.seconds};
          }};
}

Task cosines(bench::Runner& runner, const Exec& exec, int n, int k) {
  return {"cosine,f32," + std::to_string(n) + ',' + std::to_string(n) + ',' + std::to_string(k), true,
          [&runner, exec, n, k](Data data, bool on_cuda_cores) {
            const auto x = bench::uninitialized<float>(n, k), z = bench::uninitialized<float>(n, k),
                       d = bench::uninitialized<float>(n, n);
            fill(exec, x, Side::a, 1, data);
            // Transposed, since B of the product is Z by columns.
            fill(exec, bench::Matrix<float, Kokkos::LayoutLeft>(z.data(), k, n), Side::b, 2, data);
            const rigel::metric::cosine metric;
            rigel::CdistOptions options;
            if (on_cuda_cores) options.kernel = "cuda.simt";
            Time time;
            rigel::detail::with_cdist(exec, x, z, d, metric, rigel::epilogue::Program{}, options,
                                      [&](rigel::detail::Cdist call) {
                                        for (const auto& candidate : rigel::detail::cdist_candidates(std::move(call)))
                                          if (candidate.chosen) time.kernel = candidate.kernel->info.name;
                                      });
            time.seconds = bench::seconds_of(runner.watch(), [&] { rigel::cdist(exec, x, z, d, metric, options); });
            return time;
          }};
}

Task gradient(bench::Runner& runner, const Exec& exec, int m, int n, int outputs, int k, double p, bool may_cancel) {
  std::ostringstream text;
  text << "gradient,f32," << outputs << ',' << n << ',' << m << ',' << k << ",p=" << p << (may_cancel ? "+may_cancel" : "");
  return {text.str(), true, [=, &runner](Data data, bool on_cuda_cores) {
            const auto a = bench::uninitialized<float>(k, m), b = bench::uninitialized<float>(n, k),
                       c = bench::uninitialized<float>(outputs, k), d = bench::uninitialized<float>(n, m);
            const Kokkos::View<float***, Kokkos::LayoutRight, Kokkos::CudaSpace> out(
                Kokkos::view_alloc("out", Kokkos::WithoutInitializing), outputs, n, m);
            fill(exec, a, Side::a, 1, data);
            fill(exec, b, Side::b, 2, data);
            fill(exec, c, Side::neither, 3, data);
            fill(exec, d, Side::neither, 4, data);
            Time time;
            rigel::detail::with_gradient_of<Exec, float>(p, 0, 1, [&](const auto& functor) {
              rigel::GradientOptions options{.may_cancel = may_cancel};
              const std::string on_cores = std::string("cuda.gradient.") + functor.name + ".f32.tiles";
              if (on_cuda_cores) options.kernel = on_cores;
              time.kernel = rigel::select(rigel::gradient_problem(exec, functor, a, b, c, d, out, options)).info.name;
              time.seconds = bench::seconds_of(runner.watch(),
                                               [&] { rigel::contract_gradient(exec, functor, a, b, c, d, out, options); });
            });
            return time;
          }};
}

std::vector<Task> tasks_of(bench::Runner& runner, const Exec& exec, const Options& options) {
  const std::vector<bench::Subject> zoo = bench::zoo();
  std::vector<Task> tasks;
  for (const std::string& text : options.problems) tasks.push_back(problem(runner, text, zoo, options.family));
  if (!tasks.empty()) return tasks;
  for (const char* text :
       {"plus_times,f32,1,1024,1024,1024,r/r/r,automatic", "plus_times,f32,1,4096,4096,4096,r/r/r,automatic",
        "plus_times,f32,1,4096,4096,4096,r/r/r,tf32", "plus_times,f16,1,4096,4096,4096,r/r/r,automatic",
        "plus_times,f64,1,2048,2048,2048,r/r/r,automatic", "log_plus,f32,1,1024,1024,1024,r/c/r,promoted",
        "log_plus,f32,1,4096,4096,4096,r/c/r,promoted", "log_plus,f64,1,1024,1024,1024,r/c/r,promoted",
        "l2_squared,f32,1,4096,4096,1024,r/c/r,automatic+root",
        "l2_squared,f32,1,4096,4096,1024,r/c/r,automatic+may_cancel+root",
        "l2_squared,f64,1,2048,2048,512,r/c/r,promoted+root", "bit_hamming,u32,1,8192,8192,256,r/c/r,automatic",
        "bit_jaccard,u32,1,8192,8192,256,r/c/r,automatic"})
    tasks.push_back(problem(runner, text, zoo, options.family));
  tasks.push_back(cosines(runner, exec, 4096, 1024));
  for (const double p : {1., 2., 1.3}) tasks.push_back(gradient(runner, exec, 1024, 512, 16, 8192, p, false));
  tasks.push_back(gradient(runner, exec, 1024, 512, 16, 8192, 2, true));
  for (const double p : {1., 2.}) tasks.push_back(gradient(runner, exec, 10000, 256, 8, 2000, p, false));
  return tasks;
}

/// Returns how many calls failed.
int measure(const Options& options) {
  const Exec exec;
  bench::Runner runner(exec);
  std::printf("{%s}\n%8s %12s %12s %12s  %-16s %-52s %s\n", bench::machine(exec).c_str(), "cliff", "us", "CUDA cores",
              "ordinary", "data", "task", "kernel");
  std::ostringstream rows;
  const char* separator = "\n";
  int failed = 0;
  for (const Task& task : tasks_of(runner, exec, options)) {
    if (task.text.find(options.task) == std::string::npos) continue;
    double ordinary = 0;
    for (std::size_t i = 0; i < bench::data_names.size(); ++i) {
      const auto data = static_cast<Data>(i);
      const bool of_all = data == Data::ordinary || data == Data::zeros || data == Data::constants;
      if (!of_all && task.floats == (data == Data::extremes)) continue;
      if (data != Data::ordinary && !options.data.empty() && options.data != bench::name(data)) continue;
      try {
        const Time chosen = task.time(data, false), on_cores = task.time(data, true);
        if (data == Data::ordinary) ordinary = chosen.seconds;
        const double cliff = chosen.seconds / (1.3 * on_cores.seconds + ordinary);
        std::printf("%8.2f %12.1f %12.1f %12.1f  %-16s %-52s %s\n", cliff, 1e6 * chosen.seconds, 1e6 * on_cores.seconds,
                    1e6 * ordinary, bench::name(data), task.text.c_str(), chosen.kernel.c_str());
        rows << separator << "{\"task\": " << bench::quoted(task.text) << ", \"data\": " << bench::quoted(bench::name(data))
             << ", \"kernel\": " << bench::quoted(chosen.kernel) << ", \"seconds\": " << chosen.seconds
             << ", \"kernel_on_cuda_cores\": " << bench::quoted(on_cores.kernel)
             << ", \"seconds_on_cuda_cores\": " << on_cores.seconds << ", \"seconds_of_ordinary\": " << ordinary << '}';
        separator = ",\n";
      } catch (const std::exception& e) {
        ++failed;
        std::printf("failed: %s, %s: %s\n", task.text.c_str(), bench::name(data), e.what());
      }
      std::fflush(stdout);
    }
  }
  if (options.json.empty()) return failed;
  std::ofstream file(options.json);
  file << "{\"context\": {\"program\": \"bench_cliffs\", \"commit\": " << bench::quoted(options.commit) << ", "
       << bench::machine(exec) << "},\n\"cliffs\": [" << rows.str() << "\n]}\n";
  if (!file.flush()) throw std::runtime_error("the file '" + options.json + "' cannot be written");
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::has_gpu("bench_cliffs")) return 77;
  try {
    const Options options = read(argc, argv);
    const Kokkos::ScopeGuard kokkos;
    return measure(options) == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_cliffs: %s\n", e.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of the solves on the default CUDA device: every kernel that covers a task, and the one that Rigel chooses; each as a call,
// and captured in a CUDA graph.
//
//     bench_solve [--operation cholesky|lu|eigen] [--kernel <leading part of a name>] [--json <file>] [--commit <hash>]
//
// Prints lines of JSON: first the machine, then one for each task and kernel, with the median device seconds of up to 11 calls, those
// of the replayed graph (null if it cannot be captured), the predicted seconds, and the largest info. Calls and replays take about
// half a second a kernel: slow kernels get fewer repetitions; one that takes a second gets a single call and no graph; kernels whose
// prediction is far above the least one are left out (is_too_slow()).
#include <bench/cuda/device.hpp>
#include <bench/machine.hpp>
#include <rigel/linalg.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

using bench::Exec;
template <class T>
using Batch = Kokkos::View<T***, Kokkos::LayoutRight, Kokkos::CudaSpace>;

struct Task {
  rigel::Factorisation factorisation;
  int batch, n, sides;
};

constexpr rigel::Factorisation cholesky = rigel::Factorisation::cholesky, lu = rigel::Factorisation::lu,
                               eigen = rigel::Factorisation::eigen;
constexpr Task tasks[] = {
    {cholesky, 256, 32, 16}, {cholesky, 64, 128, 16},  {cholesky, 16, 512, 16}, {cholesky, 1, 8192, 16}, {lu, 256, 32, 16},
    {lu, 64, 128, 16},       {lu, 16, 512, 16},        {lu, 1, 8192, 16},       {eigen, 64, 128, 0},     {eigen, 16, 512, 0},
    {cholesky, 10000, 8, 1}, {cholesky, 10000, 64, 1}, {lu, 10000, 64, 1},      {eigen, 1000, 32, 0}};

constexpr double unknown = -1;

// The median of as many calls as take a quarter of a second, at most 11; `first` is the time of one that was.
template <class Call>
double median_after(const Exec& exec, double first, const Call& call) {
  constexpr double budget = 0.25;
  std::vector<double> times(static_cast<std::size_t>(std::clamp(budget / first, 1., 11.)));
  const bench::Stopwatch watch(exec);
  for (double& seconds : times) seconds = watch.seconds(call);
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// The median of replays of a graph that the call is captured in; unknown if it cannot be.
template <class Call>
double seconds_in_graph(const Exec& exec, const Call& call) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  cudaStreamBeginCapture(exec.cuda_stream(), cudaStreamCaptureModeThreadLocal);
  std::string error;
  try {
    call();
  } catch (const rigel::Error& e) {
    error = e.what();
  }
  const bool captured = cudaStreamEndCapture(exec.cuda_stream(), &graph) == cudaSuccess && error.empty() &&
                        cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess;
  double seconds = unknown;
  const auto launch = [&] { bench::require(cudaGraphLaunch(replay, exec.cuda_stream())); };
  if (captured) seconds = median_after(exec, bench::Stopwatch(exec).seconds(launch), launch);
  if (replay) cudaGraphExecDestroy(replay);
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  return seconds;
}

// Seconds as JSON: null if there are none.
std::string text_of(double seconds) {
  char text[32] = "null";
  if (seconds >= 0) std::snprintf(text, sizeof text, "%.4g", seconds);
  return text;
}

// The options of the command line.
struct Wanted {
  std::string operation, kernel, file, commit;
};

template <class T>
class Systems {
 public:
  Systems(const Exec& exec, const Task& task)
      : exec_(exec),
        task_(task),
        a_("a", task.batch, task.n, task.n),
        v_("v", task.batch, task.n, task.n),
        b_("b", task.batch, task.n, task.sides),
        x_("x", task.batch, task.n, task.sides),
        w_("w", task.batch, task.n),
        info_("info", task.batch) {}

  void fill() const {
    // Symmetric with a dominant diagonal.
    const int n = task_.n;
    const Batch<T> a = a_;
    Kokkos::parallel_for(
        "bench::fill", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<3>>(exec_, {0, 0, 0}, {task_.batch, n, n}),
        KOKKOS_LAMBDA(int l, int i, int j) {
          const int low = i < j ? i : j, high = i < j ? j : i;
          const auto bits = bench::random_bits(static_cast<std::uint32_t>(l * 7919 + low * 8192 + high), 5);
          a(l, i, j) = static_cast<T>(static_cast<float>(bits >> 8) * 0x1p-24f) + (i == j ? T(n) : T(0));
        });
    Kokkos::deep_copy(exec_, b_, T(1));
  }

  rigel::Solve problem(const rigel::SolveOptions& options) const {
    switch (task_.factorisation) {
      case cholesky: return rigel::cholesky_solve_problem(exec_, a_, b_, x_, info_, options);
      case lu: return rigel::lu_solve_problem(exec_, a_, b_, x_, info_, options);
      default: return rigel::eigh_problem(exec_, a_, w_, v_, info_, options);
    }
  }

  std::int32_t largest_info() const {
    std::int32_t worst = 0;
    const auto info = info_;
    Kokkos::parallel_reduce(
        "bench::infos", Kokkos::RangePolicy<Exec>(exec_, 0, task_.batch),
        KOKKOS_LAMBDA(int l, std::int32_t& most) { most = info(l) > most ? info(l) : most; },
        Kokkos::Max<std::int32_t>(worst));
    exec_.fence();
    return worst;
  }

 private:
  Exec exec_;
  Task task_;
  Batch<T> a_, v_, b_, x_;
  Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::CudaSpace> w_;
  Kokkos::View<std::int32_t*, Kokkos::CudaSpace> info_;
};

// A kernel's row.
template <class T>
std::string row_of(const Exec& exec, const Task& task, const Systems<T>& systems,
                   const rigel::Candidate<rigel::Solve>& candidate) {
  const std::string& name = candidate.kernel->info.name;
  rigel::SolveOptions options{.kernel = name};
  const rigel::WorkspaceSize size = rigel::workspace_size(systems.problem(options));
  const Kokkos::View<std::byte*, Kokkos::CudaSpace> memory("memory", size.bytes + 256);
  const Kokkos::View<std::byte*, Kokkos::HostSpace> host("host", size.host_bytes + 64);
  const auto aligned = [](void* data, std::uintptr_t to) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(data) + to - 1) / to * to);
  };
  options.workspace = {aligned(memory.data(), 256), size.bytes, aligned(host.data(), 64), size.host_bytes};
  const auto run = [&] { rigel::run(systems.problem(options)); };
  constexpr double slow = 1;
  double seconds = bench::Stopwatch(exec).seconds(run), in_graph = unknown;
  if (seconds < slow) {
    seconds = median_after(exec, bench::Stopwatch(exec).seconds(run), run);  // the first call loads code
    in_graph = seconds_in_graph(exec, run);
  }
  char row[512];
  std::snprintf(row, sizeof row,
                "{\"operation\": \"%s\", \"type\": \"%s\", \"batch\": %d, \"n\": %d, \"sides\": %d, \"kernel\": \"%s\", "
                "\"chosen\": %s, \"seconds\": %.4g, \"graph_seconds\": %s, \"predicted\": %.3g, \"info\": %d}",
                rigel::name(task.factorisation), sizeof(T) == 4 ? "f32" : "f64", task.batch, task.n, task.sides,
                name.c_str(), candidate.chosen ? "true" : "false", seconds, text_of(in_graph).c_str(), candidate.seconds,
                systems.largest_info());
  return row;
}

template <class T>
void measure(const Exec& exec, const Task& task, const Wanted& wanted, std::vector<std::string>& rows) {
  const Systems<T> systems(exec, task);
  systems.fill();
  std::vector<rigel::Candidate<rigel::Solve>> candidates;
  for (const auto& candidate : rigel::candidates(systems.problem({})))
    if (candidate.status && candidate.kernel->info.name.starts_with(wanted.kernel)) candidates.push_back(candidate);
  double least = std::numeric_limits<double>::infinity();
  for (const auto& candidate : candidates) least = std::min(least, candidate.seconds);
  for (const auto& candidate : candidates) {
    if (bench::is_too_slow(candidate.seconds, least)) continue;
    rows.push_back(row_of(exec, task, systems, candidate));
    std::printf("%s\n", rows.back().c_str());
    std::fflush(stdout);
  }
}

void write_json(const std::string& file, const std::string& context, const std::vector<std::string>& rows) {
  std::ofstream out(file);
  out << "{\"context\": {" << context << "},\n\"rows\": [";
  const char* separator = "\n";
  for (const std::string& row : rows) {
    out << separator << row;
    separator = ",\n";
  }
  out << "\n]}\n";
  if (!out.flush()) throw std::runtime_error("the file '" + file + "' cannot be written");
}

void run(const Wanted& wanted) {
  const Exec exec;
  const std::string context =
      bench::machine(exec) + ", \"program\": \"bench_solve\", \"commit\": " + bench::quoted(wanted.commit);
  std::printf("{%s}\n", context.c_str());
  std::vector<std::string> rows;
  for (const Task& task : tasks) {
    if (!wanted.operation.empty() && rigel::name(task.factorisation) != wanted.operation) continue;
    measure<float>(exec, task, wanted, rows);
    measure<double>(exec, task, wanted, rows);
  }
  if (!wanted.file.empty()) write_json(wanted.file, context, rows);
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const bool is_operation =
        std::ranges::any_of(tasks, [&](const Task& t) { return value == rigel::name(t.factorisation); });
    if (word == "--operation" && is_operation) {
      wanted.operation = value;
    } else if (word == "--kernel" && !value.empty()) {
      wanted.kernel = value;
    } else if (word == "--json" && !value.empty()) {
      wanted.file = value;
    } else if (word == "--commit" && !value.empty()) {
      wanted.commit = value;
    } else {
      std::fputs(
          "bench_solve [--operation cholesky|lu|eigen] [--kernel <leading part of a name>] [--json <file>] "
          "[--commit <hash>]\n",
          stderr);
      return 2;
    }
  }
  if (!bench::has_gpu("bench_solve")) return 77;
  const Kokkos::ScopeGuard kokkos;
  try {
    run(wanted);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_solve: %s\n", e.what());
    return 1;
  }
  return 0;
}

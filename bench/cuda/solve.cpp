// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of the solves on the default CUDA device: every kernel that covers a task, and the one that Rigel chooses; each as a call,
// and captured in a CUDA graph.
//
//     bench_solve [<leading part of a kernel's name>]
//
// Prints lines of JSON: first the machine, then one for each task and kernel, with the median device seconds of 11 calls after 3
// others, those of the replayed graph (null if it cannot be captured), the predicted seconds, and the largest info.
#include <bench/cuda/device.hpp>
#include <bench/machine.hpp>
#include <rigel/linalg.hpp>

#include <cstdio>
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

// bench::median_seconds() of a graph that the call is captured in; negative if it cannot be.
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
  double seconds = -1;
  if (captured) seconds = bench::median_seconds(exec, [&] { cudaGraphLaunch(replay, exec.cuda_stream()); });
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

template <class T>
void measure(const Exec& exec, const Task& task, const std::string& wanted) {
  const Batch<T> a("a", task.batch, task.n, task.n), v("v", task.batch, task.n, task.n),
      b("b", task.batch, task.n, task.sides), x("x", task.batch, task.n, task.sides);
  const Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::CudaSpace> w("w", task.batch, task.n);
  const Kokkos::View<std::int32_t*, Kokkos::CudaSpace> info("info", task.batch);
  // Symmetric with a dominant diagonal.
  const int n = task.n;
  Kokkos::parallel_for(
      "bench::fill", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<3>>(exec, {0, 0, 0}, {task.batch, n, n}),
      KOKKOS_LAMBDA(int l, int i, int j) {
        const int low = i < j ? i : j, high = i < j ? j : i;
        const auto bits = bench::random_bits(static_cast<std::uint32_t>(l * 7919 + low * 8192 + high), 5);
        a(l, i, j) = static_cast<T>(static_cast<float>(bits >> 8) * 0x1p-24f) + (i == j ? T(n) : T(0));
      });
  Kokkos::deep_copy(exec, b, T(1));
  const auto problem = [&](const rigel::SolveOptions& options) {
    switch (task.factorisation) {
      case cholesky: return rigel::cholesky_solve_problem(exec, a, b, x, info, options);
      case lu: return rigel::lu_solve_problem(exec, a, b, x, info, options);
      default: return rigel::eigh_problem(exec, a, w, v, info, options);
    }
  };
  const rigel::Solve call = problem({});
  for (const auto& candidate : rigel::candidates(call)) {
    const std::string& name = candidate.kernel->info.name;
    // A reference of large matrices takes minutes.
    if (!candidate.status || !name.starts_with(wanted) || (name.starts_with("reference") && n > 128)) continue;
    rigel::SolveOptions options{.kernel = name};
    const rigel::WorkspaceSize size = rigel::workspace_size(problem(options));
    const Kokkos::View<std::byte*, Kokkos::CudaSpace> memory("memory", size.bytes + 256);
    const Kokkos::View<std::byte*, Kokkos::HostSpace> host("host", size.host_bytes + 64);
    const auto aligned = [](void* data, std::uintptr_t to) {
      return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(data) + to - 1) / to * to);
    };
    options.workspace = {aligned(memory.data(), 256), size.bytes, aligned(host.data(), 64), size.host_bytes};
    const auto run = [&] { rigel::run(problem(options)); };
    const double seconds = bench::median_seconds(exec, run), in_graph = seconds_in_graph(exec, run);
    std::int32_t worst = 0;
    Kokkos::parallel_reduce(
        "bench::infos", Kokkos::RangePolicy<Exec>(exec, 0, task.batch),
        KOKKOS_LAMBDA(int l, std::int32_t& most) { most = info(l) > most ? info(l) : most; },
        Kokkos::Max<std::int32_t>(worst));
    exec.fence();
    std::printf(
        "{\"operation\": \"%s\", \"type\": \"%s\", \"batch\": %d, \"n\": %d, \"sides\": %d, \"kernel\": \"%s\", \"chosen\": "
        "%s, "
        "\"seconds\": %.4g, \"graph_seconds\": %s, \"predicted\": %.3g, \"info\": %d}\n",
        rigel::name(task.factorisation), sizeof(T) == 4 ? "f32" : "f64", task.batch, n, task.sides, name.c_str(),
        candidate.chosen ? "true" : "false", seconds, text_of(in_graph).c_str(), candidate.seconds, worst);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::has_gpu("bench_solve")) return 77;
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Exec exec;
  std::printf("{%s}\n", bench::machine(exec).c_str());
  for (const Task& task : tasks) {
    measure<float>(exec, task, argc > 1 ? argv[1] : "");
    measure<double>(exec, task, argc > 1 ? argv[1] : "");
  }
  return 0;
}

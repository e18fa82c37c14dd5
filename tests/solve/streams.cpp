// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches that cuSOLVER solves system by system on several streams: the bits of systems solved alone, on streams that come and go, and
// in CUDA graphs; and the blocked kernels in CUDA graphs.
#include <tests/solve/systems.hpp>
#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#ifdef KOKKOS_ENABLE_CUDA
#include <tests/support/stream.hpp>

using rigel::Factorisation;
using solve::Numbers;
using support::batch;
using support::Stream;
using support::values;

namespace {

using Exec = Kokkos::Cuda;

/// Seven systems of order n with three right sides, and their solutions.
struct Systems {
  static constexpr int count = 7, m = 3;
  int n;
  using Batch = decltype(batch<double, Exec>(count, n, n));
  Factorisation factorisation;
  std::string kernel;
  Batch a, b, x;
  Kokkos::View<std::int32_t*, Exec::memory_space> info{"info", count};

  Systems(Factorisation f, std::string name, int order = 40)
      : n(order),
        factorisation(f),
        kernel(std::move(name)),
        a(batch<double, Exec>(count, n, n)),
        b(batch<double, Exec>(count, n, m)),
        x(batch<double, Exec>(count, n, m)) {
    support::Random random(3);
    Numbers all;
    for (int l = 0; l < count; ++l) {
      const Numbers one = solve::random_definite<double>(random, n);
      all.insert(all.end(), one.begin(), one.end());
    }
    support::fill(a, all);
    fill_sides(1);
  }
  void fill_sides(double factor) const {
    support::Random random(4);
    Numbers sides = solve::random_numbers<double>(random, count * n * m);
    for (double& side : sides) side *= factor;
    support::fill(b, sides);
  }

  rigel::Solve problem(const Exec& exec, const Batch& of_a, const Batch& of_b, const Batch& of_x,
                       const rigel::Workspace& workspace = {}) const {
    const rigel::SolveOptions options{.kernel = kernel, .workspace = workspace};
    const auto infos = Kokkos::subview(info, std::pair<std::size_t, std::size_t>(0, of_a.extent(0)));
    return factorisation == Factorisation::lu ? rigel::lu_solve_problem(exec, of_a, of_b, of_x, infos, options)
                                              : rigel::cholesky_solve_problem(exec, of_a, of_b, of_x, infos, options);
  }
  rigel::Solve problem(const Exec& exec, const rigel::Workspace& workspace = {}) const {
    return problem(exec, a, b, x, workspace);
  }

  /// Every system by a call of its own.
  Numbers alone() const {
    const Exec exec;
    const auto y = batch<double, Exec>(count, n, m);
    for (std::size_t l = 0; l < count; ++l) {
      const auto one = [&](const Batch& v) {
        return Batch(Kokkos::subview(v, std::pair(l, l + 1), Kokkos::ALL, Kokkos::ALL));
      };
      rigel::run(problem(exec, one(a), one(b), one(y)));
    }
    exec.fence();
    return values(y);
  }
};

using Memory = Kokkos::View<std::byte*, Exec::memory_space>;
rigel::Workspace aligned(const Memory& memory) {
  const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  return {.data = reinterpret_cast<void*>(address), .bytes = memory.size() - 256};
}

/// check(systems) for the kernels that take one system after the other.
template <class Check>
void with_kernels(const Check& check) {
  for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu})
    for (const std::string& name : solve::kernels_of<double, Exec>(f)) {
      if (!name.starts_with("cuda.cusolver") || name.ends_with("batched")) continue;
      CAPTURE(name);
      const Systems systems(f, name);
      const rigel::Solve problem = systems.problem(Exec());
      if (solve::covered(problem))
        check(systems);
      else
        support::skip("solve: cuSOLVER cannot be used here");
    }
}

/// Two calls captured in a graph: replays have the expected bits, and read new right sides.
void check_graph(const Systems& systems, const Numbers& expected) {
  const Stream stream(cudaStreamNonBlocking);
  const Exec exec(stream);
  const rigel::WorkspaceSize size = rigel::workspace_size(systems.problem(exec));
  if (size.host_bytes > 0) return support::skip("solve: this version of cuSOLVER needs host memory");
  const Memory memory("memory", size.bytes + 256);
  const rigel::Workspace workspace = aligned(memory);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  rigel::run(systems.problem(exec, workspace));
  rigel::run(systems.problem(exec, workspace));  // the streams of the first call are joined
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
  for (const double factor : {1., 2.}) {  // multiplication by 2 rounds nothing
    systems.fill_sides(factor);
    REQUIRE(cudaGraphLaunch(replay, stream) == cudaSuccess);
    exec.fence();
    Numbers scaled = expected;
    for (double& x : scaled) x *= factor;
    CHECK(values(systems.x) == scaled);
  }
  CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

}  // namespace

TEST_CASE("solve: systems on several streams have the bits of systems alone") {
  with_kernels([](const Systems& systems) {
    const Numbers expected = systems.alone();
    // Streams that come and go: addresses of destroyed ones are used again.
    for (int round = 0; round < 4; ++round) {
      const Stream first(cudaStreamNonBlocking), second(cudaStreamNonBlocking);
      for (const cudaStream_t stream : {cudaStream_t(first), cudaStream_t(second)}) {
        const Exec exec(stream);
        Kokkos::deep_copy(exec, systems.x, 7.);
        rigel::run(systems.problem(exec));
        exec.fence();
        CHECK(values(systems.x) == expected);
      }
    }
  });
}

TEST_CASE("solve: systems on several streams in a graph") {
  with_kernels([](const Systems& systems) { check_graph(systems, systems.alone()); });
}

TEST_CASE("solve: blocked kernels in a graph") {
  for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu}) {
    const std::string name = std::string("cuda.solver.") + rigel::name(f) + ".f64.blocked";
    CAPTURE(name);
    const Systems systems(f, name, 300);
    const Exec exec;
    if (!solve::covered(systems.problem(exec))) {
      support::skip("solve: " + name + " needs more shared memory than this GPU has");
      continue;
    }
    rigel::run(systems.problem(exec));
    exec.fence();
    check_graph(systems, values(systems.x));
  }
}

// A call that throws leaves nothing in the capture, which ends as usual.
TEST_CASE("solve: a captured stream without handles") {
  with_kernels([](const Systems& systems) {
    const Numbers expected = systems.alone();
    const Stream stream(cudaStreamNonBlocking);
    const Exec exec(stream);
    const Memory memory("memory", 1 << 24);
    const rigel::Workspace workspace = aligned(memory);
    std::size_t nodes = 1;
    cudaGraph_t graph = nullptr;
    // Handles of an address that was used before stay, so this stream may have some.
    bool refused = false;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    try {
      rigel::run(systems.problem(exec, workspace));
    } catch (const rigel::Error& e) {
      refused = true;
      CHECK(e.code() == rigel::Code::unsupported);
    }
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
    if (refused) CHECK(nodes == 0);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    rigel::run(systems.problem(exec));
    exec.fence();
    CHECK(values(systems.x) == expected);
  });
}

#endif

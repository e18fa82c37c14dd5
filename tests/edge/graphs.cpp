// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// presize(), and calls that are captured in a CUDA graph: replayed bits equal those of the same calls as usual, parameters in
// views show their new values, and reserved memory lives until it is released.
#include <rigel/closure.hpp>
#include <rigel/distance.hpp>
#include <rigel/presize.hpp>
#include <rigel/transitive_closure.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/recorder.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <array>
#include <latch>
#include <set>
#include <thread>

using rigel::detail::execution_of, rigel::detail::lease;

TEST_CASE("presize: on a host the next call allocates nothing") {
  const Kokkos::DefaultHostExecutionSpace exec;
  rigel::release_workspaces();
  constexpr std::size_t bytes = 100000;
  rigel::presize(exec, 0);
  rigel::presize(exec, bytes);
  {
    const support::Recorder recorder;
    rigel::presize(exec, bytes);
    rigel::presize(exec, bytes / 2);
    for (const std::size_t wanted : {bytes, bytes / 2, std::size_t{1}})
      CHECK(lease("test", execution_of(exec), wanted).data() != nullptr);
    CHECK(recorder.events().allocations.empty());
    CHECK(recorder.events().deallocations.empty());
    rigel::release_presized(exec);  // of streams only
    CHECK(recorder.events().deallocations.empty());
  }
  const support::Recorder recorder;
  rigel::release_workspaces();
  CHECK(recorder.events().deallocations == std::vector<std::string>{"rigel::workspace"});
}

TEST_CASE("presize: more than there is") {
  const auto e = support::caught([] { rigel::presize(Kokkos::DefaultHostExecutionSpace(), ~std::size_t{0}); });
  CHECK(e.code == rigel::Code::out_of_memory);
  CHECK(e.lacks({"presize: workspace of ", "out of memory"}) == "");
}

TEST_CASE("presize: none for execution spaces that Rigel does not know") {
  rigel::Execution execution = execution_of(Kokkos::DefaultHostExecutionSpace());
  execution.space = rigel::Space::other;
  const auto e = support::caught([&] { rigel::detail::presize(execution, 1000); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"presize: workspace of 1000 bytes: ", "execution space"}) == "");
  rigel::detail::presize(execution, 0);
}

#ifdef KOKKOS_ENABLE_CUDA
#include <tests/support/stream.hpp>

namespace {

using support::Stream;
using Exec = Kokkos::Cuda;
using Bytes = std::vector<unsigned char>;

/// A graph of what `call` enqueues on a stream.
class Graph {
 public:
  template <class Call>
  Graph(cudaStream_t stream, const Call& call) : stream_(stream) {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    try {
      call();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);
      cudaGraphDestroy(graph_);
      throw;
    }
    REQUIRE(cudaStreamEndCapture(stream, &graph_) == cudaSuccess);
    REQUIRE(cudaGraphInstantiateWithFlags(&replay_, graph_, 0) == cudaSuccess);
  }
  ~Graph() {
    CHECK(cudaGraphExecDestroy(replay_) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph_) == cudaSuccess);
  }
  Graph(const Graph&) = delete;
  void replay() const {
    REQUIRE(cudaGraphLaunch(replay_, stream_) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream_) == cudaSuccess);
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_{};
  cudaGraphExec_t replay_{};
};

template <class View>
Bytes bytes_of(const View& v) {
  Bytes all(v.size() * sizeof(typename View::non_const_value_type));
  support::copy_out<Exec>(all.data(), v.data(), all.size());
  return all;
}

std::vector<double> numbers(std::size_t count, double low, double high, unsigned seed) {
  support::Random random(seed);
  std::vector<double> list(count);
  for (double& x : list) x = random.uniform(low, high);
  return list;
}

/// Runs `call` with each of the factors as usual, then captures it and replays it with each of them. `reset` restores what the
/// call changes in place.
template <class View, class Factor, class Reset, class Call>
void check_replays(const Exec& exec, std::size_t workspace, const View& result, const Factor& factor, const Reset& reset,
                   const Call& call) {
  const std::vector<double> factors = {0.75, -1.5};
  std::vector<Bytes> expected;
  for (const double f : factors) {
    support::fill(factor, {f});
    reset();
    call();
    exec.fence();
    expected.push_back(bytes_of(result));
  }
  rigel::presize(exec, workspace);
  reset();
  const Graph graph(exec.cuda_stream(), call);
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < factors.size(); ++i) {
      support::fill(factor, {factors[i]});
      reset();
      Kokkos::fence();
      graph.replay();
      CHECK(bytes_of(result) == expected[i]);
    }
  CHECK(cudaGetLastError() == cudaSuccess);
}

using FactorView = Kokkos::View<float, Kokkos::CudaSpace>;

/// One kernel of each family and variant, in products of m × k and k × n; returns the families.
template <class S>
std::set<std::string> check_contractions(const S& s, int m, int n, int k) {
  const Stream stream;
  std::set<std::string> families, seen;
  {
    const Exec exec(stream);
    using Element = typename S::element;
    const bool floats = !std::is_integral_v<Element>;
    const auto a = support::matrix<Element, Exec>(m, k, numbers(m * k, floats ? -1 : 0, floats ? 1 : 100, 1)),
               b = support::matrix<Element, Exec>(k, n, numbers(k * n, floats ? -1 : 0, floats ? 1 : 100, 2));
    const auto c = support::matrix<float, Exec>(m, n);
    const FactorView factor("factor");
    const rigel::epilogue::Program scaled = rigel::epilogue::scale(factor);
    for (const auto& info : support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<Element>)) {
      if (info.accumulator != rigel::scalar_of<typename S::accumulator> || !seen.insert(info.family + info.variant).second)
        continue;
      CAPTURE(info.name);
      const rigel::ContractOptions options{.precision = info.precision, .kernel = info.name};
      std::size_t workspace = 0;
      if (!support::ran(info, [&] { workspace = rigel::workspace_size(exec, s, a, b, c, scaled, options); })) {
        seen.erase(info.family + info.variant);
        continue;
      }
      families.insert(info.family);
      check_replays(
          exec, workspace, c, factor, [&] { support::fill(c, {}); },
          [&] { rigel::contract(exec, s, a, b, c, scaled, options); });
    }
    rigel::release_presized(exec);
  }
  return families;
}

}  // namespace
#endif

TEST_CASE("graphs: contract() by every family") {
#ifdef KOKKOS_ENABLE_CUDA
  std::set<std::string> captured;
  const auto check = [&](const auto& s, int longest = 4000) {
    for (const auto [m, n, k] : {std::array{33, 35, 41}, std::array{128, 128, 256}, std::array{4, 8, longest}})
      captured.merge(check_contractions(s, m, n, k));
  };
  check(rigel::plus_times<float>{});
  check(rigel::plus_times<rigel::bfloat16>{});
  check(rigel::plus_times<std::int8_t>{});
  check(rigel::min_plus<float>{});
  check(rigel::l2_squared<float>{}, 1000);  // for more, promoted kernels would recompute most distances
  check(rigel::log_plus<float>{});
  std::vector<std::string> families = {"reference", "portable", "cuda.simt", "cuda.mma"};
  if (execution_of(Exec()).compute_capability == 90) families.emplace_back("cuda.hopper");
  for (const std::string& family : families) {
    CAPTURE(family);
    CHECK(captured.contains(family));
  }
#else
  support::skip("graphs: contract() by every family: no CUDA in this build");
#endif
}

TEST_CASE("graphs: cdist() by every family, with prepared rows and without") {
#ifdef KOKKOS_ENABLE_CUDA
  const Stream stream;
  {
    const Exec exec(stream);
    const auto x = support::matrix<float, Exec>(70, 33, numbers(70 * 33, -1, 1, 3)),
               z = support::matrix<float, Exec>(50, 33, numbers(50 * 33, -1, 1, 4)),
               d = support::matrix<float, Exec>(70, 50);
    const FactorView factor("factor");
    const rigel::epilogue::Program scaled = rigel::epilogue::scale(factor);
    for (const std::string family : {"reference", "portable", "cuda.simt", "cuda.mma", ""}) {
      CAPTURE(family);
      const auto check = [&](const auto& metric) {
        const rigel::CdistOptions options{
            .precision = family == "cuda.mma" ? rigel::Precision::promoted : rigel::Precision::automatic, .kernel = family};
        check_replays(
            exec, rigel::cdist_workspace_size(exec, x, z, d, metric, scaled, options), d, factor,
            [&] { support::fill(d, {}); }, [&] { rigel::cdist(exec, x, z, d, metric, scaled, options); });
      };
      check(rigel::metric::euclidean{});
      check(rigel::metric::cosine{});
      check(rigel::metric::correlation{});
      if (family != "cuda.mma") check(rigel::metric::minkowski{1.3});
    }
    rigel::release_presized(exec);
  }
#else
  support::skip("graphs: cdist() by every family: no CUDA in this build");
#endif
}

TEST_CASE("graphs: closure() without a report, with predecessors and without") {
#ifdef KOKKOS_ENABLE_CUDA
  const Stream stream;
  {
    const Exec exec(stream);
    constexpr int n = 150;  // two blocks and a part of one
    const auto d = support::matrix<float, Exec>(n, n);
    const auto p = support::matrix<std::int32_t, Exec>(n, n);
    const std::vector<double> arcs = numbers(n * n, 0.5, 10, 5);
    const FactorView unused("unused");
    const rigel::min_plus<float> s;
    for (const std::string family : {"reference", "portable", "cuda.simt", ""}) {
      CAPTURE(family);
      const rigel::ClosureOptions options{.report = false, .kernel = family};
      const auto reset = [&] { support::fill(d, arcs); };
      check_replays(exec, rigel::closure_workspace_size(exec, s, d, options), d, unused, reset,
                    [&] { rigel::closure(exec, s, d, options); });
      const std::size_t workspace = rigel::closure_workspace_size(exec, s, d, p, options);
      const auto with_predecessors = [&] { rigel::closure(exec, s, d, p, options); };
      check_replays(exec, workspace, d, unused, reset, with_predecessors);
      check_replays(exec, workspace, p, unused, reset, with_predecessors);
    }
    const auto small = support::matrix<float, Exec>(100, 100);
    const std::vector<double> few = numbers(100 * 100, 0.5, 10, 5);
    check_replays(
        exec, 0, small, unused, [&] { support::fill(small, few); },
        [&] { rigel::closure(exec, s, small, {.report = false, .kernel = "closure.small"}); });
    rigel::release_presized(exec);
  }
#else
  support::skip("graphs: closure(): no CUDA in this build");
#endif
}

TEST_CASE("graphs: transitive_closure() by every family") {
#ifdef KOKKOS_ENABLE_CUDA
  const Stream stream;
  {
    const Exec exec(stream);
    constexpr int n = 333, words = (n + 31) / 32;
    const auto d = support::matrix<std::uint32_t, Exec>(n, words);
    std::vector<double> arcs(n * words, 0);
    support::Random random(6);
    for (int i = 0; i < n; ++i) arcs[i * words + static_cast<int>(random.integer(0, n / 32 - 1))] = 1u << (i % 32);
    const FactorView unused("unused");
    for (const std::string family : {"reference", "portable", "cuda.simt", ""}) {
      CAPTURE(family);
      const rigel::TransitiveClosureOptions options{.block = 64, .kernel = family};
      check_replays(
          exec, rigel::transitive_closure_workspace_size(exec, d, options), d, unused, [&] { support::fill(d, arcs); },
          [&] { rigel::transitive_closure(exec, d, options); });
    }
    rigel::release_presized(exec);
  }
#else
  support::skip("graphs: transitive_closure(): no CUDA in this build");
#endif
}

TEST_CASE("graphs: reserved memory, from presize() to release_presized()") {
#ifdef KOKKOS_ENABLE_CUDA
  const Stream stream;
  {
    const Exec exec(stream), other;
    constexpr int n = 60, k = 37;
    const auto x = support::matrix<float, Exec>(n, k, numbers(n * k, -1, 1, 7)),
               y = support::matrix<float, Exec>(n, k, numbers(n * k, -1, 1, 8));
    const auto dx = support::matrix<float, Exec>(n, n), dy = support::matrix<float, Exec>(n, n);
    const rigel::metric::cosine metric;
    const auto call = [&](const auto& of, const auto& d) { rigel::cdist(exec, of, of, d, metric); };
    call(x, dx);
    call(y, dy);
    exec.fence();
    const Bytes of_x = bytes_of(dx), of_y = bytes_of(dy);
    const std::size_t bytes = rigel::cdist_workspace_size(exec, x, x, dx, metric);
    REQUIRE(bytes > 0);

    const auto refused = [&](const auto& action) { return support::caught([&] { const Graph graph(stream, action); }); };
    const auto nothing = refused([&] { call(x, dx); });
    CHECK(nothing.code == rigel::Code::invalid_argument);
    CHECK(nothing.lacks({"cdist: workspace of ", "captured", "presize() has reserved 0 bytes", "options.workspace"}) == "");
    rigel::presize(exec, bytes - 1);
    const auto too_little = refused([&] { call(x, dx); });
    CHECK(too_little.code == rigel::Code::invalid_argument);
    CHECK(too_little.lacks({std::to_string(bytes).c_str(), std::to_string(bytes - 1).c_str(), "presize()"}) == "");
    const auto growth = refused([&] { rigel::presize(exec, bytes); });
    CHECK(growth.code == rigel::Code::invalid_argument);
    CHECK(growth.lacks({"presize: workspace of ", "captured", "before the capture"}) == "");
    const auto release = refused([&] { rigel::release_presized(exec); });
    CHECK(release.code == rigel::Code::invalid_argument);
    CHECK(release.lacks({"release_presized: ", "captured"}) == "");

    // Two calls share the memory in stream order; more for one call is not asked for.
    rigel::presize(exec, bytes);
    const auto both = [&] {
      rigel::presize(exec, bytes);  // enough already
      call(x, dx);
      call(y, dy);
    };
    const Graph first(stream, both);
    rigel::presize(exec, 2 * bytes);  // the graph keeps the memory that it has
    const Graph second(stream, both);
    for (const Graph* graph : {&first, &second, &first}) {
      support::fill(dx, {});
      support::fill(dy, {});
      // Calls that are not captured have other memory.
      rigel::cdist(other, y, y, dx, metric);
      call(y, dx);
      Kokkos::fence();
      graph->replay();
      CHECK(bytes_of(dx) == of_x);
      CHECK(bytes_of(dy) == of_y);
    }
    rigel::release_presized(exec);
    rigel::release_presized(exec);
    CHECK(refused([&] { call(x, dx); }).code == rigel::Code::invalid_argument);
    call(x, dx);
    exec.fence();
    CHECK(bytes_of(dx) == of_x);
  }
#else
  support::skip("graphs: reserved memory: no CUDA in this build");
#endif
}

TEST_CASE("graphs: a new stream has none of the memory of one that is gone") {
#ifdef KOKKOS_ENABLE_CUDA
  for (int i = 0; i < 20; ++i) {
    const Stream stream;
    const Exec exec(stream);
    (void)lease("test", execution_of(exec), 1000);  // a call before the capture, by which the stream is known
    const auto e =
        support::caught([&] { const Graph graph(stream, [&] { (void)lease("test", execution_of(exec), 1000); }); });
    CHECK(e.code == rigel::Code::invalid_argument);
    rigel::presize(exec, 1000);
    const Graph graph(stream, [&] { CHECK(lease("test", execution_of(exec), 1000).data() != nullptr); });
    if (i % 2 == 0) rigel::release_presized(exec);
  }
#else
  support::skip("graphs: a new stream has no reserved memory: no CUDA in this build");
#endif
}

// The handle is the same in all threads, the stream is not. Each thread reserves memory before either captures.
TEST_CASE("graphs: the default stream of each thread has memory of its own") {
#ifdef KOKKOS_ENABLE_CUDA
  auto execution = execution_of(Exec());
  execution.stream = cudaStreamPerThread;
  constexpr std::size_t bytes = 1000;
  std::array<void*, 2> parts{};
  std::array<support::Caught, 2> caught;
  std::latch second_reserved(1), first_captured(1);
  const auto capture = [&](std::size_t i) {
    caught[i] = support::caught([&] {
      cudaGraph_t graph{};
      CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      parts[i] = lease("test", execution, bytes).data();
      CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph) == cudaSuccess);
      CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    });
  };
  std::thread first([&] {
    rigel::detail::presize(execution, bytes);
    std::thread second([&] {
      rigel::detail::presize(execution, bytes);
      second_reserved.count_down();
      first_captured.wait();
      capture(1);
      rigel::detail::release_presized(execution);
    });
    second_reserved.wait();
    capture(0);
    first_captured.count_down();
    second.join();
    rigel::detail::release_presized(execution);
  });
  first.join();
  CHECK(caught[0].code == rigel::Code::ok);
  CHECK(caught[1].code == rigel::Code::ok);
  CHECK(parts[0] != nullptr);
  CHECK(parts[1] != nullptr);
  CHECK(parts[0] != parts[1]);
#else
  support::skip("graphs: default streams of threads: no CUDA in this build");
#endif
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pool of workspaces: what it leases, what it keeps, what it refuses.
#include <rigel/contract.hpp>
#include <rigel/detail/pool.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/recorder.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

using rigel::detail::execution_of, rigel::detail::lease;

namespace {

std::atomic<std::size_t> wanted = 0;

rigel::Kernel<rigel::Contraction> kernel_on(rigel::Space space) {
  rigel::Kernel<rigel::Contraction> k;
  k.info.name = k.info.family = "writer";
  k.info.semiring = "test";
  k.info.element = k.info.accumulator = rigel::Scalar::f32;
  k.info.spaces = rigel::bit(space);
  k.cost = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction&, rigel::Plan&) { return 1e-9; };
  k.workspace = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction&,
                   const rigel::Plan&) -> rigel::WorkspaceSize { return {.bytes = wanted}; };
  k.run = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, const rigel::Plan&,
             const rigel::Workspace& workspace) {
    if (wanted == 0) return;
#ifdef KOKKOS_ENABLE_CUDA
    if (p.execution.space == rigel::Space::cuda) {
      const auto stream = static_cast<cudaStream_t>(p.execution.stream);
      CHECK(cudaMemsetAsync(workspace.data, 0xff, wanted, stream) == cudaSuccess);
      return;
    }
#endif
    (void)p;
    std::memset(workspace.data, 0xff, wanted);
  };
  return k;
}

// A call whose kernel only writes `bytes` bytes of workspace.
void write(const rigel::Execution& execution, std::size_t bytes, rigel::Workspace given = {}) {
  static float numbers[3];
  const rigel::Kernel<rigel::Contraction> kernel = kernel_on(execution.space);
  const auto one = [](float& x) {
    return rigel::Operand{.data = &x, .type = rigel::Scalar::f32, .size = sizeof x, .rows = 1, .columns = 1};
  };
  rigel::Contraction p;
  p.semiring = {"test"};
  p.element = p.accumulator = rigel::Scalar::f32;
  p.m = p.n = p.k = 1;
  p.a = one(numbers[0]);
  p.b = one(numbers[1]);
  p.c = one(numbers[2]);
  p.execution = execution;
  p.instantiated = {&kernel, 1};
  p.function = "write";
  wanted = bytes;
  p.workspace = given;
  rigel::run(p);
}
template <class Exec>
void write(const Exec& exec, std::size_t bytes) {
  write(execution_of(exec), bytes);
}

// The number of workspaces allocated and not yet released since the recorder was created.
std::ptrdiff_t outstanding(const support::Recorder& recorder) {
  const auto events = recorder.events();
  return std::ranges::count(events.allocations, "rigel::workspace") -
         std::ranges::count(events.deallocations, "rigel::workspace");
}

// The first address in a view of at least 256 bytes that is aligned as workspaces are.
[[maybe_unused]] char* aligned(char* data) { return data + (256 - reinterpret_cast<std::uintptr_t>(data) % 256) % 256; }
bool is_aligned(const void* memory) { return memory && reinterpret_cast<std::uintptr_t>(memory) % 256 == 0; }

#ifdef KOKKOS_ENABLE_CUDA
constexpr std::size_t mebi = 1 << 20;

std::size_t free_memory() {
  std::size_t available = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&available, &total) == cudaSuccess);
  return available;
}
#endif

}  // namespace

TEST_CASE_TEMPLATE("pool: leases are aligned, apart and movable", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto execution = execution_of(exec);
  CHECK(lease("test", execution, 0).data() == nullptr);
  for (const std::size_t bytes : {1, 100, 255, 257, 4097, 3000001}) {
    auto x = lease("test", execution, bytes);
    auto y = lease("test", execution, bytes);
    char* const of_x = static_cast<char*>(x.data());
    char* const of_y = static_cast<char*>(y.data());
    CHECK(is_aligned(of_x));
    CHECK(is_aligned(of_y));
    CHECK((of_x + bytes <= of_y || of_y + bytes <= of_x));
    rigel::detail::PoolLease moved(std::move(x));
    CHECK(moved.data() == of_x);
    CHECK(x.data() == nullptr);
    y = std::move(moved);
    CHECK(y.data() == of_x);
    x = std::move(y);
    CHECK(x.data() == of_x);
  }
}

TEST_CASE_TEMPLATE("pool: several host threads at once", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto execution = execution_of(exec);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t bytes = (i * 7919 + t) % 5000 + 1;
        const auto x = lease("test", execution, bytes);
        if constexpr (support::on_host<Exec>) {
          auto* const data = static_cast<unsigned char*>(x.data());
          std::memset(data, t, bytes);
          std::this_thread::yield();
          wrong += std::count(data, data + bytes, t) != static_cast<std::ptrdiff_t>(bytes);
        } else {
          wrong += !is_aligned(x.data());
        }
      }
    });
  for (auto& thread : threads) thread.join();
  exec.fence();
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("pool: a call that throws returns its workspace", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  rigel::release_workspaces();
  const support::Recorder recorder;
  const auto execution = execution_of(exec);
  const auto failing = [&] {
    const auto x = lease("test", execution, 1000);
    throw rigel::Error(rigel::Code::device, "on purpose");
  };
  for (int i = 0; i < 5; ++i) CHECK(support::caught(failing).message == "on purpose");
  CHECK(outstanding(recorder) == (support::on_host<Exec> ? 1 : 0));  // the host's buffer is idle
}

TEST_CASE_TEMPLATE("pool: it grows and shrinks without waiting for other work", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const support::Recorder recorder;
  for (std::size_t bytes = 1000; bytes < 1000000; bytes *= 2) write(exec, bytes);
  rigel::release_workspaces();
  CHECK(recorder.events().fences == 0);
}

TEST_CASE_TEMPLATE("pool: short-lived instances leave nothing behind", Exec, RIGEL_TEST_SPACES) {
  if constexpr (support::on_host<Exec>) {
    rigel::release_workspaces();
    const support::Recorder recorder;
    for (std::size_t i = 0; i < 10000;) {
      std::vector<Exec> instances;
      for (int n = 0; n < 100; ++n)
        instances.push_back(Kokkos::Experimental::partition_space(Exec{}, std::vector<int>{1})[0]);
      for (const Exec& instance : instances) {
        write(instance, i < 5000 ? i * 7919 % 20000 + 1 : 4 * i);
        ++i;
      }
    }
    CHECK(outstanding(recorder) == 1);
  } else {
#ifdef KOKKOS_ENABLE_CUDA
    // 40 of 320 instances live at a time. They need 8.5 MiB on average, 340 MiB in all. 128 MiB are allowed for rounding by the
    // driver and the pool.
    constexpr std::size_t rounds = 8, most = 16, allowed = 128 * mebi;
    write(Exec{}, most * mebi);
    Kokkos::fence();
    const std::size_t before = free_memory();
    for (std::size_t i = 0; i < rounds; ++i) {
      std::vector<cudaStream_t> streams(40);
      for (auto& stream : streams) REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
      {
        const std::vector<Exec> instances(streams.begin(), streams.end());
        for (std::size_t n = 0; n < instances.size(); ++n) {
          write(instances[n], ((n + 3 * i) % most + 1) * mebi);
          instances[n].fence();
        }
      }
      for (const auto stream : streams) REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
    }
    CHECK(free_memory() + allowed >= before);
#endif
  }
}

TEST_CASE_TEMPLATE("pool: release_workspaces() gives back what no call is using", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto execution = execution_of(exec);
  if constexpr (support::on_host<Exec>) {
    rigel::release_workspaces();
    const support::Recorder recorder;
    {
      const auto held = lease("test", execution, 1000);
      for (const std::size_t bytes : {100, 1000, 5000}) write(exec, bytes);
      CHECK(outstanding(recorder) == 2);  // the pool released the smaller ones
      rigel::release_workspaces();
      CHECK(outstanding(recorder) == 1);
      std::memset(held.data(), 1, 1000);
    }
    CHECK(outstanding(recorder) == 1);
    rigel::release_workspaces();
    rigel::release_workspaces();
    CHECK(outstanding(recorder) == 0);
    // More concurrent leases than the pool should keep memory for.
    {
      std::vector<rigel::detail::PoolLease> many;
      for (int i = 0; i < 100; ++i) many.push_back(lease("test", execution, 1000));
      CHECK(outstanding(recorder) == 100);
    }
    CHECK(outstanding(recorder) == 16);
    rigel::release_workspaces();
    CHECK(outstanding(recorder) == 0);
  } else {
#ifdef KOKKOS_ENABLE_CUDA
    constexpr std::size_t bytes = 512 * mebi;
    write(exec, bytes);
    Kokkos::fence();
    const std::size_t before = free_memory();
    write(exec, bytes);  // from the pool
    Kokkos::fence();
    CHECK(free_memory() + 32 * mebi >= before);
    rigel::release_workspaces();
    CHECK(free_memory() + 32 * mebi >= before + bytes);
    write(exec, bytes);
    exec.fence();
#endif
  }
}

TEST_CASE_TEMPLATE("pool: more than there is", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  std::vector<std::size_t> sizes;
  if (support::on_host<Exec>) sizes.push_back(std::numeric_limits<std::size_t>::max());
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  if (support::on_host<Exec>)
    support::skip("pool: more than there is: the address sanitizer ends a program that asks for so much");
  else
#endif
    sizes.push_back(std::size_t{1} << (support::on_host<Exec> ? 60 : 46));  // more than an address space; than a GPU
  for (const std::size_t bytes : sizes) {
    const auto e = support::caught([&] { write(exec, bytes); });
    CHECK(e.code == rigel::Code::out_of_memory);
    CHECK(e.lacks({"write: workspace of ", std::to_string(bytes).c_str(), " bytes: out of memory"}) == "");
    write(exec, 1000);
    exec.fence();
  }
}

TEST_CASE("pool: none for execution spaces that Rigel does not know") {
  rigel::Execution execution = execution_of(Kokkos::DefaultHostExecutionSpace());
  execution.space = rigel::Space::other;
  const auto e = support::caught([&] { write(execution, 1000); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"write: workspace of 1000 bytes: ", "execution space", "options.workspace"}) == "");
  alignas(256) static char memory[1000];
  write(execution, 1000, {memory, sizeof memory});
  CHECK(memory[999] == char(0xff));
  write(execution, 0);
}

TEST_CASE("pool: none for a stream that is being captured") {
#ifdef KOKKOS_ENABLE_CUDA
  cudaStream_t stream{};
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    const Kokkos::Cuda exec(stream), legacy(static_cast<cudaStream_t>(nullptr)), other;
    const Kokkos::View<char*, Kokkos::CudaSpace> own("own", 4096);
    write(exec, 1000);
    Kokkos::fence();
    std::size_t grown = 64 * mebi;
    for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
      CAPTURE(static_cast<int>(mode));
      rigel::release_workspaces();
      REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
      const auto e = support::caught([&] { write(exec, 1234); });
      CHECK(e.code == rigel::Code::invalid_argument);
      CHECK(e.lacks({"write: workspace of 1234 bytes: ", "captured", "presize()", "options.workspace"}) == "");
      // Work on the legacy stream would end the capture.
      const auto f = support::caught([&] { write(legacy, 1234); });
      CHECK(f.code == rigel::Code::invalid_argument);
      CHECK(f.lacks({"write: ", "legacy stream", "captured"}) == "");
      write(exec, 0);
      write(execution_of(exec), 1000, {aligned(own.data()), 1000});
      // Other streams work as usual, and the pool may grow.
      write(other, grown);
      grown *= 2;
      cudaGraph_t graph{};
      CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      std::size_t nodes = 0;
      CHECK(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
      CHECK(nodes == 1);
      CHECK(cudaGraphDestroy(graph) == cudaSuccess);
      CHECK(cudaGetLastError() == cudaSuccess);
      write(exec, 1234);
    }
    Kokkos::fence();
  }
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
#else
  support::skip("pool: none for a stream that is being captured: no CUDA in this build");
#endif
}

TEST_CASE("pool: a captured call with a workspace of the caller's is replayed after the pool has grown") {
#ifdef KOKKOS_ENABLE_CUDA
  using Exec = Kokkos::Cuda;
  cudaStream_t stream{};
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  int captured = 0;
  {
    const Exec exec(stream);
    // All of A is 2, all of B is 3. K is odd: kernels that copy 16 bytes at a time pack such operands into the workspace.
    constexpr int m = 33, n = 35, k = 41;
    const auto a = support::matrix<float, Exec>(m, k, std::vector<double>(m * k, 2)),
               b = support::matrix<float, Exec>(k, n, std::vector<double>(k * n, 3)), c = support::matrix<float, Exec>(m, n);
    const std::vector<double> expected(m * n, 2 * 3 * k);
    const rigel::plus_times<float> s;
    const rigel::epilogue::Program none;
    std::size_t grown = 64 * mebi;
    for (const auto& info : support::kernels_on(exec, "plus_times", rigel::Scalar::f32)) {
      if (!info.family.starts_with("cuda.")) continue;
      CAPTURE(info.name);
      rigel::ContractOptions options{.precision = info.precision, .kernel = info.name};
      std::size_t bytes = 0;
      if (!support::ran(info, [&] { bytes = rigel::workspace_size(exec, s, a, b, c, none, options); })) continue;
      if (bytes == 0) continue;
      rigel::contract(exec, s, a, b, c, none, options);
      CHECK(support::values(c) == expected);
      const Kokkos::View<char*, Kokkos::CudaSpace> own("own", bytes + 256);
      options.workspace = {aligned(own.data()), bytes};
      support::fill(c, {});
      REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
      rigel::contract(exec, s, a, b, c, none, options);
      cudaGraph_t graph{};
      REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      cudaGraphExec_t replay{};
      REQUIRE(cudaGraphInstantiateWithFlags(&replay, graph, 0) == cudaSuccess);
      CHECK(support::values(c) == std::vector<double>(m * n, 0));
      write(exec, grown);
      write(Exec{}, grown);
      grown += 8 * mebi;
      Kokkos::fence();
      for (int round = 0; round < 2; ++round) {
        CHECK(cudaGraphLaunch(replay, stream) == cudaSuccess);
        CHECK(support::values(c) == expected);
        support::fill(c, {});
      }
      CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);
      CHECK(cudaGraphDestroy(graph) == cudaSuccess);
      ++captured;
    }
    Kokkos::fence();
  }
  CHECK(captured > 0);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
#else
  support::skip("pool: a captured call is replayed: no CUDA in this build");
#endif
}

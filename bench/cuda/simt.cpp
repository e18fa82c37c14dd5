// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures cuda.simt on the default CUDA device, compared with the ceilings of the card's instructions (program.hpp).
//
//     bench_simt --benchmark_out=simt.json --benchmark_context=commit=$(git rev-parse --short HEAD)
#include <bench/cuda/check.hpp>
#include <bench/cuda/program.hpp>
#include <rigel/closure.hpp>
#include <rigel/distance.hpp>
#include <rigel/transitive_closure.hpp>

#include <chrono>

namespace {

using bench::add, bench::add_ceilings, bench::add_products, bench::set_rate;
using bench::B, bench::Exec, bench::Matrix, bench::State;
namespace pair = bench::pair;

/// A user's functor with the formula of l1.
struct manhattan {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return Kokkos::abs(a - b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

/// All-pairs shortest paths in place, in `graphs` graphs of n vertices; the kernel as options.kernel has it. The copy that restores the
/// weights is not timed.
void paths(State& state, const Exec& exec, int graphs, int n, std::string_view kernel = {}) {
  const auto weights = bench::uninitialized<float>(graphs * n, n), paths = bench::uninitialized<float>(graphs * n, n);
  bench::fill(exec, weights, 5);
  using Graphs = Kokkos::View<float***, Kokkos::LayoutRight, Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Graphs d(paths.data(), graphs, n, n);
  const bench::Stopwatch watch(exec);
  double sum = 0;
  const auto once = [&] {
    Kokkos::deep_copy(exec, paths, weights);
    return watch.seconds([&] { rigel::closure(exec, rigel::min_plus<float>{}, d, {.report = false, .kernel = kernel}); });
  };
  once();
  for (auto _ : state) {
    const double seconds = once();
    state.SetIterationTime(seconds);
    sum += seconds;
  }
  set_rate<pair::min_plus_f32>(state, exec, double(graphs) * n * n * n * static_cast<double>(state.iterations()) / sum);
}

/// 16 × (4000 × 4000 × 256) powers with the exponents from 1.3 to 2.8 in a view, or with p = 1.3 by value.
void batched_powers(State& state, const Exec& exec, bool from_view) {
  using S = rigel::lp<float>;
  constexpr int batches = 16, m = 4000, k = 256;
  const auto x = bench::uninitialized<float>(batches * m, k), z = bench::uninitialized<float>(batches * m, k),
             d = bench::uninitialized<float>(batches * m, m);
  bench::fill(exec, x, 1);
  bench::fill(exec, z, 2);
  using Batch = Kokkos::View<float***, Kokkos::LayoutRight, Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const Batch a(x.data(), batches, m, k), b(z.data(), batches, m, k), c(d.data(), batches, m, m);
  const Kokkos::View<S*, Exec::memory_space> exponents("exponents", batches);
  Kokkos::parallel_for(
      "bench::exponents", Kokkos::RangePolicy<Exec>(exec, 0, batches),
      KOKKOS_LAMBDA(const int l) { exponents(l).p = 1.3f + 0.1f * static_cast<float>(l); });
  const double seconds = bench::time_calls(state, exec, [&](std::int64_t) {
    if (from_view)
      rigel::contract(exec, exponents, a, rigel::transposed(b), c);
    else
      rigel::contract(exec, S{{}, 1.3f}, a, rigel::transposed(b), c);
  });
  set_rate<pair::lp_f32>(state, exec, double(batches) * m * m * k / seconds);
}

/// L1 distances of 30,000 points with K = 1024 and themselves.
void self_distances(State& state, const Exec& exec) {
  constexpr int m = 30000, k = 1024;
  const auto x = bench::uninitialized<float>(m, k), d = bench::uninitialized<float>(m, m);
  bench::fill(exec, x, 1);
  const double seconds =
      bench::time_calls(state, exec, [&](std::int64_t) { rigel::cdist(exec, x, x, d, rigel::metric::manhattan{}); });
  set_rate<pair::l1_f32>(state, exec, double(m) * m * k / seconds);
}

/// The head of arc `which` of vertex i in a random graph of n vertices.
KOKKOS_FUNCTION std::int64_t random_head(std::int64_t i, int which, std::int64_t n) {
  std::uint64_t x = static_cast<std::uint64_t>(2 * i + which + 1) * 0x9e3779b97f4a7c15u;  // splitmix64's output function
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<std::int64_t>((x ^ (x >> 31)) % static_cast<std::uint64_t>(n));
}

/// Row i of the closure of random_head()'s graph, by a search from vertex i.
std::vector<std::uint32_t> reached_from(std::int64_t i, std::int64_t n) {
  std::vector<std::uint32_t> row((n + 31) / 32);
  std::vector<std::int64_t> open;
  const auto reach = [&](std::int64_t j) {
    if (row[j / 32] >> j % 32 & 1) return;
    row[j / 32] |= 1u << j % 32;
    open.push_back(j);
  };
  reach(i);
  while (!open.empty()) {
    const std::int64_t at = open.back();
    open.pop_back();
    for (const int which : {0, 1}) reach(random_head(at, which, n));
  }
  return row;
}

/// Checks some rows of the closure of random_head()'s graph; throws if one is wrong.
void check_reachability(const Matrix<std::uint32_t>& d) {
  const auto n = static_cast<std::int64_t>(d.extent(0));
  for (const std::int64_t i : {std::int64_t(0), n / 2 + 1, n - 1}) {
    const auto expected = reached_from(i, n);
    const auto row = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Kokkos::subview(d, i, Kokkos::ALL));
    if (!std::equal(expected.begin(), expected.end(), row.data()))
      throw std::runtime_error("transitive_closure: row " + std::to_string(i) + " is wrong");
  }
}

/// Reachability in place on packed bits, in a graph with two arcs per vertex. A pair here is one of single bits.
void reachability(State& state, const Exec& exec, int n) {
  const auto arcs = Matrix<std::uint32_t>("arcs", n, (n + 31) / 32);
  const auto d = bench::uninitialized<std::uint32_t>(n, (n + 31) / 32);
  Kokkos::parallel_for(
      "bench::arcs", Kokkos::RangePolicy<Exec>(exec, 0, n), KOKKOS_LAMBDA(const int i) {
        for (const int which : {0, 1}) {
          const std::int64_t j = random_head(i, which, n);
          arcs(i, j / 32) |= 1u << j % 32;
        }
      });
  const bench::Stopwatch watch(exec);
  double sum = 0;
  const auto once = [&] {
    Kokkos::deep_copy(exec, d, arcs);
    return watch.seconds([&] { rigel::transitive_closure(exec, d); });
  };
  once();
  check_reachability(d);
  for (auto _ : state) {
    const double seconds = once();
    state.SetIterationTime(seconds);
    sum += seconds;
  }
  set_rate<pair::or_and_b32>(state, exec, double(n) * n * n * static_cast<double>(state.iterations()) / sum);
}

/// min_plus of n × n matrices with the winning k.
void winners(State& state, const Exec& exec, int n, int k) {
  const auto a = bench::uninitialized<float>(n, k), b = bench::uninitialized<float>(k, n),
             c = bench::uninitialized<float>(n, n);
  const auto indices = bench::uninitialized<std::int32_t>(n, n);
  bench::fill(exec, a, 1);
  bench::fill(exec, b, 2);
  const auto use = [&](const auto& call) {
    call(exec, rigel::with_argument<rigel::min_plus<float>>{}, a, b, c, rigel::epilogue::arguments(indices));
  };
  use([&](const auto&... arguments) { state.SetLabel(rigel::select(rigel::problem_of(arguments...)).info.name); });
  const double seconds = bench::time_calls(
      state, exec, [&](std::int64_t) { use([](const auto&... arguments) { rigel::contract(arguments...); }); });
  set_rate<pair::min_plus_f32>(state, exec, double(n) * n * k / seconds);
}

/// The host time of a call. Batches of calls are small enough to fit into the launch queue.
template <class Call>
void host(State& state, const Exec& exec, const Call& call) {
  constexpr int calls = 200;
  call();
  while (state.KeepRunningBatch(calls)) {
    exec.fence();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  exec.fence();
}

__global__ void empty() {}

void add_batched_powers(const Exec& exec) {
  for (const bool from_view : {false, true})
    add(std::string("lp/f32/") + (from_view ? "p per batch" : "one p") + "/16x4000x4000x256", benchmark::kMillisecond,
        [=](State& state) { batched_powers(state, exec, from_view); });
}

void add_self_distances(const Exec& exec) {
  add("l1/f32/self/30000x30000x1024", benchmark::kMillisecond, [=](State& state) { self_distances(state, exec); });
}

void add_winners(const Exec& exec) {
  for (const int k : {8192, 1024, 1000})
    add("min_plus with arguments/f32/8192x8192x" + std::to_string(k) + "/rows", benchmark::kMillisecond,
        [=](State& state) { winners(state, exec, 8192, k); });
}

void add_closures(const Exec& exec, const std::vector<int>& extents) {
  for (const int n : extents)
    add("closure of min_plus/f32/" + std::to_string(n), benchmark::kMillisecond,
        [=](State& state) { paths(state, exec, 1, n); });
}

/// Small graphs in one launch, and by contractions.
void add_small_closures(const Exec& exec) {
  struct Batch {
    int graphs, n;
  };
  for (const auto [graphs, n] :
       {Batch{4096, 32}, Batch{1024, 64}, Batch{256, 128}, Batch{32, 128}, Batch{1, 128}, Batch{1, 64}})
    for (const std::string_view kernel : {"closure.small", "cuda.simt"})
      add("closure of min_plus/f32/" + std::to_string(graphs) + "x" + std::to_string(n) + "/" + std::string(kernel),
          benchmark::kMicrosecond, [=](State& state) { paths(state, exec, graphs, n, kernel); });
}

void add_transitive_closures(const Exec& exec, const std::vector<int>& extents) {
  for (const int n : extents)
    add("transitive_closure/u32/" + std::to_string(n), benchmark::kMillisecond,
        [=](State& state) { reachability(state, exec, n); });
}

void add_host(const Exec& exec) {
  constexpr int n = 64;
  const auto a = bench::uninitialized<float>(n, n), b = bench::uninitialized<float>(n, n),
             c = bench::uninitialized<float>(n, n);
  bench::fill(exec, a, 1);
  bench::fill(exec, b, 2);
  const auto contract = [=](std::string_view kernel) {
    rigel::ContractOptions options;
    options.kernel = kernel;
    rigel::contract(exec, rigel::l1<float>{}, a, b, c, rigel::epilogue::Program{}, options);
  };
  const auto time = [&](const char* name, const auto& call) {
    add(name, benchmark::kMicrosecond, [=](State& s) { host(s, exec, call); });
  };
  time("host/launch", [=] { empty<<<1, 128, 0, exec.cuda_stream()>>>(); });
  time("host/contract/64x64x64", [=] { contract({}); });
  time("host/contract/64x64x64/named", [=] { contract("cuda.simt"); });
}

// clang-format off
void add_tasks(const Exec& exec) {
  using namespace rigel;
  constexpr B rows = B::by_rows, columns = B::by_columns;
  constexpr bool unaligned = false;
  const bench::Setting setting{exec, "cuda.simt"};
  const auto power = [](float p) { return lp<float>{{}, p}; };

  add_ceilings<pair::plus_times_f32, pair::plus_times_f64, pair::l1_f32, pair::l2_squared_f32, pair::l3_f32, pair::min_plus_f32,
               pair::max_min_f32, pair::l1_u8x4, pair::l2_squared_u8x4, pair::or_and_b32, pair::min_plus_s32,
               pair::min_plus_s16x2, pair::min_plus_f16x2, pair::lp_f32, pair::sqrt_f32, pair::exp2_f32>(exec);

  // Distances between rows: the limiting pair, the semiring, M, N and K.
  add_products<pair::l1_f32>(setting, "l1/f32", l1<float>{}, {
      {30000, 30000, 1024, columns},
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, columns, unaligned},
      {8192, 8192, 64, columns},
      {2048, 2048, 256, columns},
      {1000, 1000, 1000, columns},
      {1024, 1024, 1024, columns},
      {1024, 1024, 1024, columns, true, "cuda.simt.l1.f32.128x128x8"},
      {14898, 8139, 18, columns},
      {20000, 1, 20000, columns},
      {94, 14, 227, columns}});
  add_products<pair::l1_f32>(setting, "l1/f32/laplace", l1<float>{}, {{30000, 30000, 1024, columns}}, epilogue::laplace(500));
  add_products<pair::l1_f32>(setting, "l1 of a user/f32", manhattan{}, {{8192, 8192, 8192, columns}});
  add_products<pair::l1_f32>(setting, "l1/f16", l1<rigel::half>{}, {
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, columns, unaligned},
      {8192, 8192, 8192, columns, true, nullptr, Precision::operands}});
  add_products<pair::l1_u8x4>(setting, "l1/u8", l1<std::uint8_t>{}, {
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, columns, unaligned},
      {8192, 8192, 8192, rows},
      {2048, 2048, 256, columns}});
  add_products<pair::l2_squared_u8x4>(setting, "l2_squared/s8", l2_squared<std::int8_t>{}, {{8192, 8192, 8192, columns}});
  add_products<pair::l2_squared_f32>(setting, "l2_squared/bf16", l2_squared<bfloat16>{}, {{8192, 8192, 8192, columns}});
  add_products<pair::or_and_b32>(setting, "or_and/b32", or_and<std::uint32_t>{}, {{8192, 8192, 8192, rows}});
  add_products<pair::l2_squared_f32>(setting, "l2_squared/f32", l2_squared<float>{}, {{30000, 30000, 1024, columns}});
  add_products<pair::lp_f32>(setting, "lp/f32/p=1.3", power(1.3f), {{30000, 30000, 1024, columns}});
  add_products<pair::sqrt_f32>(setting, "lp/f32/p=1.5", power(1.5f), {{30000, 30000, 1024, columns}});
  add_products<pair::l3_f32>(setting, "lp/f32/p=3", power(3), {{30000, 30000, 1024, columns}});

  // Products of matrices.
  add_products<pair::min_plus_f32>(setting, "min_plus/f32", min_plus<float>{}, {
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, rows, unaligned},
      {8192, 8192, 8192, columns},
      {4096, 4096, 4096, rows},
      {1024, 1024, 1024, rows}});
  add_products<pair::min_plus_f32>(setting, "min_plus/f16", min_plus<rigel::half>{}, {
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, rows, unaligned}});
  add_products<pair::min_plus_s32>(setting, "min_plus/s32", min_plus<std::int32_t>{}, {{8192, 8192, 8192, rows}});
  add_products<pair::min_plus_s16x2>(setting, "min_plus/s16", min_plus<std::int16_t>{}, {
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, rows, unaligned},
      {8192, 8192, 8192, columns}});
  add_products<pair::min_plus_f16x2>(setting, "min_plus/f16 in f16", min_plus<rigel::half, rigel::half>{}, {
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, rows, unaligned},
      {8192, 8192, 8192, columns}});
  add_products<pair::min_plus_f32>(setting, "max_plus/f32", max_plus<float>{}, {{8192, 8192, 8192, rows}});
  add_products<pair::max_min_f32>(setting, "max_min/f32", max_min<float>{}, {{8192, 8192, 8192, rows}});
  add_products<pair::plus_times_f32>(setting, "plus_times/f32", plus_times<float>{}, {
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, columns}});
  add_products<pair::exp2_f32>(setting, "log_plus/f32", log_plus<float>{}, {
      {1024, 1024, 1024, rows},
      {4096, 4096, 4096, rows}});
  add_products<pair::plus_times_f64>(setting, "log_plus/f64", log_plus<double>{}, {{4096, 4096, 4096, rows}});
  add_products<pair::plus_times_f64>(setting, "linf/f64", rigel::linf<double>{}, {{4096, 4096, 4096, rows}});

  // A few rows against a large matrix.
  for (const int m : {1, 7, 32, 100}) {
    add_products<pair::min_plus_f32>(setting, "min_plus/f32", min_plus<float>{}, {{m, 4096, 4096, rows}});
    add_products<pair::plus_times_f32>(setting, "plus_times/f32", plus_times<float>{}, {
        {m, 4096, 4096, rows, true, "cuda.simt.plus_times.f32"}});
  }

  // What Kokkos alone gives.
  constexpr const char* portable = "portable";
  add_products<pair::min_plus_f32>(setting, "min_plus/f32", min_plus<float>{}, {{4096, 4096, 4096, rows, true, portable}});
  add_products<pair::l1_f32>(setting, "l1/f32", l1<float>{}, {{4096, 4096, 4096, columns, true, portable}});
  add_products<pair::plus_times_f32>(setting, "plus_times/f32", plus_times<float>{}, {{4096, 4096, 4096, rows, true, portable}});
  add_products<pair::plus_times_f64>(setting, "plus_times/f64", plus_times<double>{}, {{4096, 4096, 4096, rows, true, portable}});
  add_products<pair::min_plus_s32>(setting, "min_plus/s32", min_plus<std::int32_t>{}, {{4096, 4096, 4096, rows, true, portable}});
  add_products<pair::or_and_b32>(setting, "or_and/b32", or_and<std::uint32_t>{}, {{4096, 4096, 4096, rows, true, portable}});
  add_products<pair::lp_f32>(setting, "lp/f32/p=1.3", power(1.3f), {{4096, 4096, 4096, columns, true, portable}});

  add_batched_powers(exec);
  add_self_distances(exec);
  add_winners(exec);
  add_closures(exec, {4096, 16384});
  add_small_closures(exec);
  add_transitive_closures(exec, {16384, 65536});
  add_host(exec);
}
// clang-format on

int wrong_checks(const Exec& exec) {
  bench::Checks check(exec);
  for (const char* tile : {".128x128x8", ".64x64x8"}) {
    check.kernel(rigel::l1<float>{}, std::string("cuda.simt.l1.f32") + tile);
    check.kernel(rigel::min_plus<float>{}, std::string("cuda.simt.min_plus.f32") + tile);
    check.kernel(rigel::plus_times<float>{}, std::string("cuda.simt.plus_times.f32") + tile);
    check.kernel(rigel::plus_times<rigel::half>{}, std::string("cuda.simt.plus_times.f16") + tile);
  }
  for (const char* tile : {".128x256x8", ".64x128x16"}) {
    check.kernel(rigel::min_plus<std::int16_t>{}, std::string("cuda.simt.min_plus.i16") + tile);
    check.kernel(rigel::min_plus<rigel::half, rigel::half>{}, std::string("cuda.simt.min_plus.f16_f16") + tile);
  }
  for (const char* tile : {".128x128x8", ".32x32x16"})
    check.kernel(rigel::max_min<double>{}, std::string("cuda.simt.max_min.f64") + tile);
  return check.wrong();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program<pair::plus_times_f32>("bench_simt", argc, argv, wrong_checks, add_tasks);
}

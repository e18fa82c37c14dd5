// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that measures kernels on the default CUDA device: it checks them against the reference, then prints Google
// Benchmark's table of its tasks and of their ceilings. Times are device time, by events around back-to-back calls. If the
// matrices of a call fit into the L2 cache, calls cycle through copies of them. The median of several repetitions counts.
//
// --no-checks skips the checks. The exit status is 1 if a check or a benchmark fails, 77 if there is no GPU.
#pragma once

#include <bench/cuda/ceiling.hpp>
#include <rigel/contract.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

using benchmark::State;

/// What the products of a program share.
struct Setting {
  Exec exec;
  const char* kernels;  // the leading part of their names
  Numbers numbers = Numbers::uniform;
};

/// The layout of B. by_columns: if A is row-major, both operands are K-major, as in distances between rows.
enum class B { by_rows, by_columns };
/// Which of the other matrices are column-major, as Kokkos::LayoutLeft makes them.
enum class Left { none, c, a_and_c };

struct Task {
  int m, n, k;
  B b;
  bool aligned = true;           // false: one element off, odd leading dimensions
  const char* kernel = nullptr;  // a kernel by name, instead of the one that is chosen
  rigel::Precision precision = rigel::Precision::accumulator;
  Left left = Left::none;
};

inline std::string describe(const Task& t) {
  std::string text = std::to_string(t.m) + 'x' + std::to_string(t.n) + 'x' + std::to_string(t.k);
  text += t.b == B::by_rows ? "/rows" : "/columns";
  if (!t.aligned) text += "/unaligned";
  if (t.kernel) text += std::string("/") + t.kernel;
  if (t.precision == rigel::Precision::operands)
    text += "/precision of the operands";
  else if (t.precision != rigel::Precision::accumulator)
    text += std::string("/") + name(t.precision);
  if (t.left != Left::none) text += t.left == Left::c ? "/C by columns" : "/A and C by columns";
  return text;
}

// Reports pairs per second, also as a share of the ceiling in this run and, if it is known, of what the units can issue at
// this clock.
template <class Pair>
void set_rate(State& state, const Exec& exec, double rate) {
  state.counters["pairs/s"] = rate;
  state.counters["of ceiling"] = rate / ceiling<Pair>(exec);
  const auto& device = exec.cuda_device_prop();
  if constexpr (requires { Pair::lanes; })
    if (device.major == 9 && device.minor == 0)
      state.counters["of issue limit"] = rate / (Pair::lanes * device.multiProcessorCount * clock_rate(exec));
}

// Runs all iterations of a repetition between two events; call(i) enqueues the i-th one. Returns the seconds per iteration.
template <class Call>
double time_calls(State& state, const Exec& exec, const Call& call) {
  const Stopwatch watch(exec);
  const auto calls = state.max_iterations;
  double seconds = 0;
  call(0);
  while (state.KeepRunningBatch(calls)) {
    seconds = watch.seconds([&] {
      for (benchmark::IterationCount i = 0; i < calls; ++i) call(i);
    });
    state.SetIterationTime(seconds);
  }
  return seconds / static_cast<double>(calls);
}

/// The pairs of one ⊗: one, or for words one per bit.
template <class S>
constexpr double pairs_of() {
  using Word = std::uint32_t;
  constexpr bool of_bits = std::is_same_v<S, rigel::or_and<Word>> || std::is_same_v<S, rigel::bit_hamming<Word>> ||
                           std::is_same_v<S, rigel::bit_jaccard<Word>>;
  return of_bits ? 32 : 1;
}

/// A matrix that lies in memory as it is, or as its transpose.
template <class View>
auto lying(const View& memory, bool is_transpose) {
  const std::size_t i = is_transpose ? 1 : 0, j = 1 - i;
  return Kokkos::View<typename View::value_type**, Kokkos::LayoutStride, typename View::memory_space,
                      Kokkos::MemoryUnmanaged>(
      memory.data(), Kokkos::LayoutStride(memory.extent(i), memory.stride(i), memory.extent(j), memory.stride(j)));
}

/// Measures C = epilogue(A ⊗ B) on random matrices, with a C of type Value. The label names the kernel.
template <class Pair, class Value, class S, class Epilogue>
void product(State& state, const Setting& setting, const S& s, const Task& t, const Epilogue& epilogue) {
  using T = typename S::element;
  const Exec& exec = setting.exec;
  const std::int64_t off = t.aligned ? 0 : 1;
  const double bytes = sizeof(T) * (double(t.m) * t.k + double(t.k) * t.n) + sizeof(Value) * double(t.m) * t.n;
  const int copies = std::min(32, 1 + static_cast<int>(2 * exec.cuda_device_prop().l2CacheSize / bytes));
  struct Call {
    Matrix<T> a, b;
    Matrix<Value> c;
  };
  std::vector<Call> calls(copies);
  const bool left_a = t.left == Left::a_and_c, left_b = t.b == B::by_columns, left_c = t.left != Left::none;
  const auto made = [](auto type, bool left, std::int64_t rows, std::int64_t columns) {
    return uninitialized<decltype(type)>(left ? columns : rows, left ? rows : columns);
  };
  for (Call& call : calls) {
    call = {made(T{}, left_a, t.m + off, t.k + off), made(T{}, left_b, t.k + off, t.n + off),
            made(Value{}, left_c, t.m, t.n)};
    fill(exec, call.a, 1, setting.numbers);
    fill(exec, call.b, 2, setting.numbers);
  }
  const auto inner = [&](const Matrix<T>& x) {
    return Kokkos::subview(x, std::pair(off, std::int64_t(x.extent(0))), std::pair(off, std::int64_t(x.extent(1))));
  };
  rigel::ContractOptions options;
  options.kernel = t.kernel ? t.kernel : setting.kernels;
  options.precision = t.precision;
  const auto with_arguments = [&](const Call& call, const auto& use) {
    use(exec, s, lying(inner(call.a), left_a), lying(inner(call.b), left_b), lying(call.c, left_c), epilogue, options);
  };
  with_arguments(calls[0], [&](const auto&... arguments) {
    rigel::detail::with_problem(arguments...,
                                [&](const rigel::Contraction& p) { state.SetLabel(rigel::select(p).info.name); });
  });
  const double seconds = time_calls(state, exec, [&](std::int64_t i) {
    with_arguments(calls[i % copies], [](const auto&... arguments) { rigel::contract(arguments...); });
  });
  set_rate<Pair>(state, exec, pairs_of<S>() * double(t.m) * t.n * t.k / seconds);
}

inline bool failed = false;

// Registers a benchmark; an exception becomes its error.
void add(const std::string& name, benchmark::TimeUnit unit, const auto& run) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](State& state) {
                                 try {
                                   run(state);
                                 } catch (const std::exception& e) {
                                   failed = true;
                                   state.SkipWithError(e.what());
                                 }
                               })
      ->UseManualTime()
      ->Unit(unit);
}

/// Registers products of one semiring. C has the result's type unless another one is given.
template <class Pair, class C = void, class S>
void add_products(const Setting& setting, const std::string& name, const S& s, const std::vector<Task>& tasks,
                  const rigel::epilogue::Program& epilogue = {}) {
  using Value = std::conditional_t<std::is_void_v<C>, rigel::result_t<S>, C>;
  for (const Task& t : tasks)
    add(name + '/' + describe(t), benchmark::kMillisecond,
        [=](State& state) { product<Pair, Value>(state, setting, s, t, epilogue); });
}

/// Registers the loops of ceilings.
template <class... Pairs>
void add_ceilings(const Exec& exec) {
  const auto& device = exec.cuda_device_prop();
  const auto one = [&]<class Pair>(Pair) {
    if (10 * device.major + device.minor < Pair::capability) return;
    add(std::string("ceiling/") + Pair::name, benchmark::kMillisecond, [=](State& state) {
      const Ceiling<Pair> loop(exec);
      const double seconds = time_calls(state, exec, [&](std::int64_t) { loop.enqueue(); });
      set_rate<Pair>(state, exec, loop.pairs() / seconds);
    });
  };
  (one(Pairs{}), ...);
}

template <class Load>
void add_context(const Exec& exec) {
  const auto& device = exec.cuda_device_prop();
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  const auto add = [](const char* key, const std::string& value) { benchmark::AddCustomContext(key, value); };
  add("compiler", __VERSION__);
  add("gpu", device.name);
  add("multiprocessors", std::to_string(device.multiProcessorCount));
  add("sm_clock_mhz", std::to_string(static_cast<int>(clock_rate<Load>(exec) * 1e-6 + 0.5)));
  add("l2_bytes", std::to_string(device.l2CacheSize));
  add("cuda_runtime", std::to_string(runtime));
  add("cuda_driver", std::to_string(driver));
}

/// The body of main(): wrong_checks(exec) runs the checks and returns how many failed; add_tasks(exec) registers the
/// benchmarks. The reported clock is the one under Load's loop.
template <class Load, class WrongChecks, class AddTasks>
int run_program(const char* name, int argc, char** argv, const WrongChecks& wrong_checks, const AddTasks& add_tasks) {
  if (!has_gpu(name)) return 77;
  // Defaults, which the command line overrides.
  std::vector<char*> arguments{argv[0]};
  std::string defaults[] = {"--benchmark_repetitions=5", "--benchmark_min_time=0.05",
                            "--benchmark_display_aggregates_only=true", "--benchmark_counters_tabular=true"};
  for (std::string& option : defaults) arguments.push_back(option.data());
  bool checks = true;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--no-checks")
      checks = false;
    else
      arguments.push_back(argv[i]);
  }
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  const Kokkos::ScopeGuard kokkos;
  try {
    const Exec exec;
    const int wrong = checks ? wrong_checks(exec) : 0;
    add_context<Load>(exec);
    benchmark::AddCustomContext("wrong_checks", checks ? std::to_string(wrong) : "not run");
    add_tasks(exec);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::ClearRegisteredBenchmarks();  // they hold views
    return wrong == 0 && !failed ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 1;
  }
}

}  // namespace bench

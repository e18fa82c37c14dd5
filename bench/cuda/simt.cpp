// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.simt on the default CUDA device: a check against the reference on odd sizes, the rates of light semirings (device
// time by events, random data, median), and what contract() costs the host beyond a raw launch. Prints JSON; returns 1
// where a result is wrong, 77 where there is no GPU.
//
// usage: bench_simt [--commit <hash>] [--no-checks]
#include <rigel/closure.hpp>
#include <rigel/contract.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

using Exec = Kokkos::Cuda;
template <class T, class Layout = Kokkos::LayoutRight>
using Matrix = Kokkos::View<T**, Layout, Kokkos::CudaSpace>;

// Uniform in [0, 1), integers in [0, 1000), the same in every run.
template <class View>
void fill(const Exec& exec, const View& view, std::uint32_t seed) {
  constexpr float range = std::is_integral_v<typename View::value_type> ? 1000 : 1;
  Kokkos::parallel_for(
      "bench::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, view.extent(0) * view.extent(1)),
      KOKKOS_LAMBDA(const std::int64_t i) {
        std::uint32_t x = static_cast<std::uint32_t>(i) * 747796405u + seed * 2891336453u + 1u;  // PCG output function
        x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
        view(i / view.extent(1), i % view.extent(1)) = range * (static_cast<float>(((x >> 22) ^ x) >> 8) * 0x1p-24f);
      });
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Seconds of one call, by events around it.
template <class Call>
double device_seconds(const Exec& exec, const Call& call) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  cudaEventRecord(begin, exec.cuda_stream());
  call();
  cudaEventRecord(end, exec.cuda_stream());
  cudaEventSynchronize(end);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 1e-3 * milliseconds;
}

// Median of `repeats` calls, after one more.
template <class Call>
double device_seconds(const Exec& exec, int repeats, const Call& call) {
  std::vector<double> seconds;
  call();
  for (int r = 0; r < repeats; ++r) seconds.push_back(device_seconds(exec, call));
  return median(seconds);
}

// Median seconds that the host spends in one call; few enough calls at a time for the launch queue to hold them.
template <class Call>
double host_seconds(const Exec& exec, const Call& call) {
  constexpr int calls = 200, repeats = 31;
  std::vector<double> seconds;
  for (int r = 0; r < repeats; ++r) {
    exec.fence();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const auto end = std::chrono::steady_clock::now();
    seconds.push_back(std::chrono::duration<double>(end - begin).count() / calls);
  }
  exec.fence();
  return median(seconds);
}

int wrong = 0;

// The named kernel's bits against the reference's, C starting with the same values.
template <class LayoutA, class LayoutB, class LayoutC, class S, class E = rigel::epilogue::Program>
void check(const Exec& exec, const S& s, int m, int n, int k, const char* kernel, bool accumulate, const E& epilogue = {}) {
  using T = typename S::element;
  Matrix<T, LayoutA> a("a", m, k);
  Matrix<T, LayoutB> b("b", k, n);
  Matrix<rigel::result_t<S>, LayoutC> c("c", m, n), expected("expected", m, n);
  fill(exec, a, 1);
  fill(exec, b, 2);
  fill(exec, c, 3);
  Kokkos::deep_copy(exec, expected, c);
  rigel::ContractOptions options;
  options.accumulate = accumulate;
  options.kernel = kernel;
  rigel::contract(exec, s, a, b, c, epilogue, options);
  options.kernel = "reference";
  rigel::contract(exec, s, a, b, expected, epilogue, options);
  long differences = 0;
  Kokkos::parallel_reduce(
      "bench::compare", Kokkos::RangePolicy<Exec>(exec, 0, m * n),
      KOKKOS_LAMBDA(const int i, long& sum) {
        const auto x = c(i / n, i % n), y = expected(i / n, i % n);
        sum += !(x == y || (x != x && y != y));
      },
      differences);
  exec.fence();
  if (differences == 0) return;
  ++wrong;
  std::fprintf(stderr, "%s, %s: %ld of %dx%d results differ from the reference, K = %d, accumulate %d\n", kernel,
               std::string(rigel::semiring_name<S>()).c_str(), differences, m, n, k, accumulate);
}

template <class S>
void check_all(const Exec& exec, const S& s, const std::string& kernel) {
  using Right = Kokkos::LayoutRight;
  using Left = Kokkos::LayoutLeft;
  const auto epilogue = rigel::epilogue::scale(0.5) | rigel::epilogue::add_diagonal(1);
  const char* const name = kernel.c_str();
  for (const int m : {1, 127, 256, 300})
    for (const int n : {3, 256, 301})
      for (const int k : {0, 1, 7, 16, 65}) {
        check<Right, Right, Right>(exec, s, m, n, k, name, false);
        check<Left, Left, Left>(exec, s, m, n, k, name, false);
        check<Right, Left, Right>(exec, s, m, n, k, name, true);
        check<Left, Right, Left>(exec, s, m, n, k, name, true, epilogue);
        check<Right, Left, Left>(exec, s, m, n, k, name, false, epilogue);
      }
}

// A functor of the user's, with the formula of l1.
struct manhattan {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return Kokkos::abs(a - b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

struct Task {
  const char* name;
  int m, n, k, repeats;
  const char* kernel = "cuda.simt";
  int offset = 0;  // of the operands, in elements: 1 forbids vectors
};

// A is LayoutRight; B is LayoutLeft for distances (both operands K-major), LayoutRight for products of matrices.
template <class LayoutB, class S>
void rate(const Exec& exec, const S& s, const Task& t) {
  const auto part = [&](int i) { return std::pair{t.offset, i + t.offset}; };
  using T = typename S::element;
  const Matrix<T> whole_a("a", t.m + t.offset, t.k + t.offset);
  const Matrix<rigel::result_t<S>> c("c", t.m, t.n);
  const Matrix<T, LayoutB> whole_b("b", t.k + t.offset, t.n + t.offset);
  fill(exec, whole_a, 1);
  fill(exec, whole_b, 2);
  const auto a = Kokkos::subview(whole_a, part(t.m), part(t.k));
  const auto b = Kokkos::subview(whole_b, part(t.k), part(t.n));
  rigel::ContractOptions options;
  options.kernel = t.kernel;
  const double seconds =
      device_seconds(exec, t.repeats, [&] { rigel::contract(exec, s, a, b, c, rigel::epilogue::Program{}, options); });
  const double pairs = static_cast<double>(t.m) * t.n * t.k;
  std::printf(
      "    {\"name\": \"%s\", \"kernel\": \"%s\", \"layouts\": \"%s%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"seconds\": "
      "%.6g, "
      "\"pairs_per_second\": %.5g},\n",
      t.name, t.kernel, std::is_same_v<LayoutB, Kokkos::LayoutLeft> ? "K-major" : "right", t.offset ? ", unaligned" : "",
      t.m, t.n, t.k, seconds, pairs / seconds);
}

// All-pairs shortest paths of a graph with random weights, in place; the copy that restores D is outside of the clock.
void paths(const Exec& exec, int n, int repeats) {
  const Matrix<float> weights("weights", n, n), d("d", n, n);
  fill(exec, weights, 5);
  std::vector<double> seconds;
  for (int r = 0; r < repeats; ++r) {
    Kokkos::deep_copy(exec, d, weights);
    seconds.push_back(device_seconds(exec, [&] { rigel::closure(exec, rigel::min_plus<float>{}, d, {.report = false}); }));
  }
  const double time = median(seconds), pairs = static_cast<double>(n) * n * n;
  std::printf("    {\"name\": \"closure min_plus\", \"n\": %d, \"seconds\": %.6g, \"pairs_per_second\": %.5g},\n", n, time,
              pairs / time);
}

__global__ void empty() {}

void host_overhead(const Exec& exec) {
  constexpr int n = 64;
  Matrix<float> a("a", n, n), b("b", n, n), c("c", n, n);
  fill(exec, a, 1);
  fill(exec, b, 2);
  rigel::ContractOptions options;
  options.kernel = "cuda.simt";
  const double named =
      host_seconds(exec, [&] { rigel::contract(exec, rigel::l1<float>{}, a, b, c, rigel::epilogue::Program{}, options); });
  const double chosen = host_seconds(exec, [&] { rigel::contract(exec, rigel::l1<float>{}, a, b, c); });
  const double raw = host_seconds(exec, [&] { empty<<<1, 128, 0, exec.cuda_stream()>>>(); });
  std::printf(
      "    {\"name\": \"host\", \"n\": %d, \"raw_launch_seconds\": %.4g, \"contract_seconds\": %.4g, "
      "\"contract_named_seconds\": %.4g}\n",
      n, raw, chosen, named);
}

void check_kernels(const Exec& exec) {
  for (const char* tile : {".128x128x8", ".64x64x16"}) {
    check_all(exec, rigel::l1<float>{}, std::string("cuda.simt.l1.f32") + tile);
    check_all(exec, rigel::min_plus<float>{}, std::string("cuda.simt.min_plus.f32") + tile);
    check_all(exec, rigel::plus_times<float>{}, std::string("cuda.simt.plus_times.f32") + tile);
  }
  for (const char* tile : {".128x256x8", ".64x64x16"})
    check_all(exec, rigel::plus_times<rigel::half>{}, std::string("cuda.simt.plus_times.f16") + tile);
  for (const char* tile : {".128x256x8", ".64x128x16"}) {
    check_all(exec, rigel::min_plus<std::int16_t>{}, std::string("cuda.simt.min_plus.i16") + tile);
    check_all(exec, rigel::min_plus<rigel::half, rigel::half>{}, std::string("cuda.simt.min_plus.f16_f16") + tile);
  }
  for (const char* tile : {".128x128x8", ".32x32x16"})
    check_all(exec, rigel::max_min<double>{}, std::string("cuda.simt.max_min.f64") + tile);
}

int run(const std::string& commit, bool checks) {
  const Exec exec;
  if (checks) check_kernels(exec);

  const auto& device = exec.cuda_device_prop();
  int kilohertz = 0, runtime = 0, driver = 0;
  cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, exec.cuda_device());
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  std::printf(
      "{\n  \"commit\": \"%s\",\n  \"compiler\": \"%s\",\n  \"cuda_runtime\": %d,\n  \"cuda_driver\": %d,\n  \"gpu\": "
      "\"%s\",\n"
      "  \"multiprocessors\": %d,\n  \"sm_clock_mhz\": %d,\n  \"wrong_checks\": %d,\n  \"results\": [\n",
      commit.c_str(), __VERSION__, runtime, driver, device.name, device.multiProcessorCount, kilohertz / 1000, wrong);
  using Left = Kokkos::LayoutLeft;
  using Right = Kokkos::LayoutRight;
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 8192, 8192, 8192, 7});
  rate<Left>(exec, manhattan{}, {"l1, user's functor", 8192, 8192, 8192, 7});
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 8192, 8192, 8192, 7, "cuda.simt", 1});
  rate<Right>(exec, rigel::min_plus<float>{}, {"min_plus", 8192, 8192, 8192, 7});
  rate<Left>(exec, rigel::min_plus<float>{}, {"min_plus", 8192, 8192, 8192, 7});
  rate<Right>(exec, rigel::plus_times<float>{}, {"plus_times", 8192, 8192, 8192, 7});
  rate<Left>(exec, rigel::plus_times<float>{}, {"plus_times", 8192, 8192, 8192, 7});
  rate<Right>(exec, rigel::max_min<float>{}, {"max_min", 8192, 8192, 8192, 5});
  rate<Right>(exec, rigel::min_plus<float>{}, {"min_plus", 4096, 4096, 4096, 15});
  rate<Right>(exec, rigel::min_plus<std::int16_t>{}, {"min_plus, int16", 8192, 8192, 8192, 7});
  rate<Left>(exec, rigel::min_plus<std::int16_t>{}, {"min_plus, int16", 8192, 8192, 8192, 7});
  rate<Left>(exec, rigel::min_plus<std::int16_t>{}, {"min_plus, int16", 8192, 8192, 8192, 7, "cuda.simt", 1});
  rate<Right>(exec, rigel::min_plus<rigel::half, rigel::half>{}, {"min_plus, half in half", 8192, 8192, 8192, 7});
  rate<Left>(exec, rigel::min_plus<rigel::half, rigel::half>{}, {"min_plus, half in half", 8192, 8192, 8192, 7});
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 30000, 30000, 1024, 5});
  rate<Left>(exec, rigel::l2_squared<float>{}, {"l2_squared", 30000, 30000, 1024, 5});
  rigel::lp<float> fractional;
  fractional.p = 1.3f;
  rate<Left>(exec, fractional, {"lp, p = 1.3", 30000, 30000, 1024, 3});
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 8192, 8192, 64, 31});
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 2048, 2048, 256, 31});
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 1000, 1000, 1000, 31});
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 1024, 1024, 1024, 31});
  rate<Left>(exec, rigel::l1<float>{}, {"l1", 1024, 1024, 1024, 31, "cuda.simt.l1.f32.128x128x8"});
  rate<Right>(exec, rigel::min_plus<float>{}, {"min_plus", 1024, 1024, 1024, 31});
  rate<Right>(exec, rigel::log_plus<float>{}, {"log_plus", 1024, 1024, 1024, 11});
  rate<Right>(exec, rigel::log_plus<float>{}, {"log_plus", 4096, 4096, 4096, 3});
  paths(exec, 4096, 5);
  paths(exec, 16384, 3);
  host_overhead(exec);
  std::printf("  ]\n}\n");
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "bench_simt: no GPU\n");
    return 77;
  }
  const Kokkos::ScopeGuard guard(argc, argv);
  std::string commit = "not given";
  bool checks = true;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-checks") == 0)
      checks = false;
    else if (std::strcmp(argv[i], "--commit") == 0 && i + 1 < argc)
      commit = argv[++i];
  }
  return run(commit, checks);
}

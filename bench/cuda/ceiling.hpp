// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ceilings: the rate that the card's instructions allow. Outer products X(i,j) ⊕= a(i) ⊗ b(j) of fragments in registers run
// without a load, a barrier or a store. That is the inner loop of a SIMT kernel, alone.
#pragma once

#include <bench/cuda/device.hpp>

#include <algorithm>
#include <vector>

namespace bench {

/// The pairs whose ceilings are measured. Each has a step x ← x ⊕ (a ⊗ b), the number of pairs that a step computes, and
/// `lanes`, the pairs per clock that a multiprocessor of compute capability 9.0 can issue: 128 FP32 instructions, 64 minima,
/// maxima or integer instructions, 16 special functions.
namespace pair {

/// x + a·b
struct plus_times_f32 {
  using type = float;
  static constexpr const char* name = "plus_times/f32";
  static constexpr int pairs = 1, lanes = 128, capability = 0;
  static __device__ void step(float& x, float a, float b) { x = __builtin_fmaf(a, b, x); }
};

/// x + a·b of doubles, with half the lanes
struct plus_times_f64 {
  using type = double;
  static constexpr const char* name = "plus_times/f64";
  static constexpr int pairs = 1, lanes = 64, capability = 80;
  static __device__ void step(double& x, double a, double b) { x = __builtin_fma(a, b, x); }
};

/// x + |a − b|
struct l1_f32 {
  using type = float;
  static constexpr const char* name = "l1/f32";
  static constexpr int pairs = 1, lanes = 64, capability = 0;
  static __device__ void step(float& x, float a, float b) { x += __builtin_fabsf(a - b); }
};

/// x + (a − b)²
struct l2_squared_f32 {
  using type = float;
  static constexpr const char* name = "l2_squared/f32";
  static constexpr int pairs = 1, lanes = 64, capability = 0;
  static __device__ void step(float& x, float a, float b) {
    const float d = a - b;
    x = __builtin_fmaf(d, d, x);
  }
};

/// x + |a − b|³
struct l3_f32 {
  using type = float;
  static constexpr const char* name = "lp/f32/p=3";
  static constexpr int pairs = 1, capability = 0;
  static constexpr double lanes = 128. / 3;
  static __device__ void step(float& x, float a, float b) {
    const float d = a - b;
    x = __builtin_fmaf(d * __builtin_fabsf(d), d, x);
  }
};

/// min(x, a + b), NaN if either is
struct min_plus_f32 {
  using type = float;
  static constexpr const char* name = "min_plus/f32";
  static constexpr int pairs = 1, lanes = 64, capability = 80;
  static __device__ void step(float& x, float a, float b) { asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(a + b)); }
};

/// max(x, min(a, b)), NaN if any of them is
struct max_min_f32 {
  using type = float;
  static constexpr const char* name = "max_min/f32";
  static constexpr int pairs = 1, lanes = 32, capability = 80;
  static __device__ void step(float& x, float a, float b) {
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(smaller));
  }
};

/// min(x, a + b) of integers: one instruction
struct min_plus_s32 {
  using type = int;
  static constexpr const char* name = "min_plus/s32";
  static constexpr int pairs = 1, lanes = 64, capability = 90;
  static __device__ void step(int& x, int a, int b) {
    const int sum = static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
    x = sum < x ? sum : x;
  }
};

/// The same for the two 16-bit integers of a word
struct min_plus_s16x2 {
  using type = unsigned;
  static constexpr const char* name = "min_plus/s16x2";
  static constexpr int pairs = 2, lanes = 128, capability = 90;
  static __device__ void step([[maybe_unused]] unsigned& x, [[maybe_unused]] unsigned a, [[maybe_unused]] unsigned b) {
#if __CUDA_ARCH__ >= 900
    unsigned sum;
    asm("add.s16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    asm("min.s16x2 %0, %0, %1;" : "+r"(x) : "r"(sum));
#endif
  }
};

/// The same for the two halves of a word, NaN if either is. Both sums take the low half of `a`, as those of the kernel do
/// (simt/packed.hpp).
struct min_plus_f16x2 {
  using type = unsigned;
  static constexpr const char* name = "min_plus/f16x2";
  static constexpr int pairs = 2, lanes = 128, capability = 80;
  static __device__ void step(unsigned& x, unsigned a, unsigned b) {
    unsigned sum;
    asm("{.reg .b16 low, high; .reg .b32 both; mov.b32 {low, high}, %1; mov.b32 both, {low, low}; add.rn.f16x2 %0, both, "
        "%2;}"
        : "=r"(sum)
        : "r"(a), "r"(b));
    asm("min.NaN.f16x2 %0, %0, %1;" : "+r"(x) : "r"(sum));
  }
};

/// x + Σ |a − b| over the four bytes of a word: one instruction
struct l1_u8x4 {
  using type = unsigned;
  static constexpr const char* name = "l1/u8x4";
  static constexpr int pairs = 4, lanes = 256, capability = 80;
  static __device__ void step(unsigned& x, unsigned a, unsigned b) {
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %0;" : "+r"(x) : "r"(a), "r"(b));
  }
};

/// x + Σ (a − b)² over the four bytes of a word: two instructions
struct l2_squared_u8x4 {
  using type = unsigned;
  static constexpr const char* name = "l2_squared/u8x4";
  static constexpr int pairs = 4, lanes = 256, capability = 80;
  static __device__ void step(unsigned& x, unsigned a, unsigned b) {
    unsigned d;
    asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0));
    asm("dp4a.u32.u32 %0, %1, %1, %0;" : "+r"(x) : "r"(d));
  }
};

/// x ∨ (a ∧ b) on the 32 bits of a word: one instruction
struct or_and_b32 {
  using type = unsigned;
  static constexpr const char* name = "or_and/b32";
  static constexpr int pairs = 32, lanes = 2048, capability = 80;
  static __device__ void step(unsigned& x, unsigned a, unsigned b) { x |= a & b; }
};

/// x + exp2(1.3·log2|a − b|): two special functions
struct lp_f32 {
  using type = float;
  static constexpr const char* name = "lp/f32";
  static constexpr int pairs = 1, lanes = 8, capability = 0;
  static __device__ void step(float& x, float a, float b) {
    x += __nvvm_ex2_approx_ftz_f(1.3f * __nvvm_lg2_approx_ftz_f(__builtin_fabsf(a - b)));
  }
};

/// x + √|a − b|: one special function
struct sqrt_f32 {
  using type = float;
  static constexpr const char* name = "sqrt/f32";
  static constexpr int pairs = 1, lanes = 16, capability = 0;
  static __device__ void step(float& x, float a, float b) { x += __nvvm_sqrt_approx_ftz_f(__builtin_fabsf(a - b)); }
};

/// x + exp2(a + b): one special function
struct exp2_f32 {
  using type = float;
  static constexpr const char* name = "exp2/f32";
  static constexpr int pairs = 1, lanes = 16, capability = 0;
  static __device__ void step(float& x, float a, float b) { x += __nvvm_ex2_approx_ftz_f(a + b); }
};

}  // namespace pair

namespace detail {

// How many pairs of fragments a thread holds: four, or one of doubles.
template <class T>
inline constexpr int slabs_of = sizeof(T) > 4 ? 1 : 4;

// The loop: `slabs` pairs of fragments, one outer product each. The branch that would read other fragments is never taken. The
// compiler does not know this, so it can neither move work out of the loop nor merge outer products.
template <class Pair>
__global__ void __launch_bounds__(128, 3)
    ceiling_loop(int steps, int never, const typename Pair::type* operands, typename Pair::type* results) {
  using T = typename Pair::type;
  constexpr int rows = 8, columns = 8, slabs = slabs_of<T>, fragment = rows + columns;
  T x[rows][columns], f[slabs][fragment];
  const auto read = [&](int from) {
#pragma unroll
    for (int s = 0; s < slabs; ++s)
#pragma unroll
      for (int i = 0; i < fragment; ++i) f[s][i] = operands[from + s * fragment + i];
  };
  read(0);
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) x[i][j] = operands[i * columns + j];
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (step == never) read(step);
#pragma unroll
    for (int s = 0; s < slabs; ++s)
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int i = 0; i < rows; ++i) {
          const int r = j % 2 ? rows - 1 - i : i;  // back and forth, so that consecutive steps share an operand
          Pair::step(x[r][j], f[s][r], f[s][rows + j]);
        }
  }
  T* const to = results + (blockIdx.x * blockDim.x + threadIdx.x) * (rows * columns);
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) to[i * columns + j] = x[i][j];
}

/// The loop of a pair and its launch: threads per block, `operands` values read, `results` values stored per thread, pairs per
/// thread and step, and enough steps for some milliseconds, in which the stores do not matter.
template <class Pair>
struct Loop {
  using Operand = typename Pair::type;
  using Result = typename Pair::type;
  static constexpr int slabs = slabs_of<Operand>, threads = 128, operands = 16 * slabs, results = 64,
                       steps = Pair::lanes < 32 ? 1 << 11 : 1 << 13;
  static constexpr double pairs = double(slabs) * results * Pair::pairs;
  static constexpr Numbers numbers = Numbers::uniform;
  static auto kernel() { return ceiling_loop<Pair>; }
};

// Measures the clocks of the multiprocessor and the nanoseconds that `steps` dependent additions take.
static __global__ void clock_loop(int steps, long long* clocks, long long* nanoseconds, float* result) {
  float x = *result;
  const auto now = [] {
    long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
  };
  const long long clock_begin = clock64(), time_begin = now();
  for (int i = 0; i < steps; ++i) x += 1.f;
  *result = x;
  __threadfence();
  *clocks = clock64() - clock_begin;
  *nanoseconds = now() - time_begin;
}

}  // namespace detail

/// A launch of a pair's loop that keeps every multiprocessor busy.
template <class Pair>
class Ceiling {
  using Loop = detail::Loop<Pair>;

 public:
  explicit Ceiling(const Exec& exec) : exec_(exec), operands_(uninitialized<typename Loop::Operand>(1, 2 * Loop::operands)) {
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Loop::kernel(), Loop::threads, 0);
    blocks_ = std::max(blocks, 1) * exec.cuda_device_prop().multiProcessorCount;
    results_ = uninitialized<typename Loop::Result>(std::int64_t{blocks_} * Loop::threads, Loop::results);
    fill(exec, operands_, 1, Loop::numbers);
  }
  void enqueue() const {
    const auto kernel = Loop::kernel();
    kernel<<<blocks_, Loop::threads, 0, exec_.cuda_stream()>>>(Loop::steps, -1, operands_.data(), results_.data());
  }
  /// The pairs of one launch.
  double pairs() const { return Loop::pairs * Loop::steps * blocks_ * Loop::threads; }

 private:
  Exec exec_;
  int blocks_;
  Matrix<typename Loop::Operand> operands_;
  Matrix<typename Loop::Result> results_;
};

/// Pairs per second that the instructions allow, without memory: the median of a few launches, measured once per run.
template <class Pair>
double ceiling(const Exec& exec) {
  static const double rate = [&] {
    const Ceiling<Pair> loop(exec);
    const Stopwatch watch(exec);
    std::vector<double> seconds(7);
    loop.enqueue();
    for (double& s : seconds) s = watch.seconds([&] { loop.enqueue(); });
    std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
    return loop.pairs() / seconds[3];
  }();
  return rate;
}

/// The clock of the multiprocessors under load, in Hz: measured after a pair's loop has run on all of them for a while.
template <class Load = pair::plus_times_f32>
double clock_rate(const Exec& exec) {
  static const double rate = [&] {
    const Ceiling<Load> load(exec);
    Kokkos::View<long long*, Kokkos::CudaSpace> times("times", 2);
    Kokkos::View<float*, Kokkos::CudaSpace> result("result", 1);
    for (int i = 0; i < 20; ++i) load.enqueue();
    detail::clock_loop<<<1, 1, 0, exec.cuda_stream()>>>(1 << 20, times.data(), times.data() + 1, result.data());
    long long host[2];
    cudaMemcpyAsync(host, times.data(), sizeof host, cudaMemcpyDeviceToHost, exec.cuda_stream());
    exec.fence();
    return 1e9 * static_cast<double>(host[0]) / static_cast<double>(host[1]);
  }();
  return rate;
}

}  // namespace bench

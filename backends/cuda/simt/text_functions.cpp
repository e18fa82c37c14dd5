// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that texts may call on a GPU, as bitcode for NVPTX: those of compiled semirings, and of compiled stores.
#include <rigel/backends/cuda/simt/powers.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/elementary.hpp>

// On both types.
#define RIGEL_UNARY(name, function)                                                             \
  extern "C" __device__ float rigel_text_##name##_f32(float x) noexcept;                        \
  extern "C" __device__ float rigel_text_##name##_f32(float x) noexcept { return function(x); } \
  extern "C" __device__ double rigel_text_##name##_f64(double x) noexcept;                      \
  extern "C" __device__ double rigel_text_##name##_f64(double x) noexcept { return function(x); }

RIGEL_UNARY(exp, rigel::math::exponential)
RIGEL_UNARY(exp2, ::exp2)
RIGEL_UNARY(expm1, ::expm1)
RIGEL_UNARY(log, rigel::math::logarithm)
RIGEL_UNARY(log2, ::log2)
RIGEL_UNARY(log1p, ::log1p)
RIGEL_UNARY(sin, rigel::math::sine)
RIGEL_UNARY(cos, rigel::math::cosine)
RIGEL_UNARY(tanh, ::tanh)

extern "C" {
__device__ float rigel_text_pow_f32(float x, float p) noexcept;
__device__ float rigel_text_pow_f32(float x, float p) noexcept { return ::pow(x, p); }
__device__ double rigel_text_pow_f64(double x, double p) noexcept;
__device__ double rigel_text_pow_f64(double x, double p) noexcept { return ::pow(x, p); }
/// By special functions within (6 + 3.5·p) u if p is positive and at most 4, and the same for all outputs.
__device__ float rigel_text_power_f32(float x, float p) noexcept;
__device__ float rigel_text_power_f32(float x, float p) noexcept {
  return p > 0 && p <= 4 ? rigel::math::power_by_parts(x, p) : rigel::math::power(x, p);
}
/// The same as a function that is called: in tiles its code would stand once for each output.
__device__ __attribute__((noinline)) float rigel_text_called_power_f32(float x, float p) noexcept;
__device__ __attribute__((noinline)) float rigel_text_called_power_f32(float x, float p) noexcept {
  return rigel_text_power_f32(x, p);
}
__device__ double rigel_text_power_f64(double x, double p) noexcept;
__device__ double rigel_text_power_f64(double x, double p) noexcept { return rigel::math::power(x, p); }
/// |x|^p by the table and the coefficients of PowersByTable. Its last product may be fused with a sum.
__device__ float rigel_text_power_by_table_f32(float x, const void* table, const float* coefficients) noexcept;
__device__ float rigel_text_power_by_table_f32(float x, const void* table, const float* coefficients) noexcept {
#pragma clang fp contract(fast)
  using Powers = rigel::backends::simt::PowersByTable<rigel::lp<float>>;
  const Powers::Parts parts(x, static_cast<const Powers::Entry*>(table));
  float power = coefficients[Powers::terms - 1];
  for (int i = Powers::terms - 2; i >= 0; --i) power = rigel::math::fma(power, parts.m, coefficients[i]);
  return parts.scale * power;
}
/// Those of compiled gradients: of a float by two special functions, within (4 + 3·|p| + 0.7·|log2 x^p|) u; a subnormal x counts as 2^-127,
/// and a subnormal result is 0.
__device__ float rigel_text_power_in_gradient_f32(float x, float p) noexcept;
__device__ float rigel_text_power_in_gradient_f32(float x, float p) noexcept {
  const float of_zero = p > 0 ? 0 : p < 0 ? __builtin_inff() : p + 1;
  return x == 0 ? of_zero : rigel::math::power_approximately_of_any(x, p);
}
__device__ double rigel_text_power_in_gradient_f64(double x, double p) noexcept;
__device__ double rigel_text_power_in_gradient_f64(double x, double p) noexcept { return rigel::math::power(x, p); }
}

namespace {

// A semiring whose results are accumulators of type T.
template <class T>
struct Results {
  using accumulator = T;
};

}  // namespace

// Stores what a detail::ProgramFinish makes of a result.
#define RIGEL_STORE(type, T)                                                                                   \
  extern "C" __device__ void rigel_text_store_##type(T x, void* c, long offset, long m, long n, long batch,    \
                                                     const void* program) noexcept;                            \
  extern "C" __device__ void rigel_text_store_##type(T x, void* c, long offset, long m, long n, long batch,    \
                                                     const void* program) noexcept {                           \
    static_cast<const rigel::detail::ProgramFinish*>(program)->store(Results<T>{}, x, c, offset, m, n, batch); \
  }
RIGEL_STORE(f32, float)
RIGEL_STORE(f64, double)
RIGEL_STORE(i32, int)
RIGEL_STORE(i64, long)

// The bits of 16-bit elements.
#define RIGEL_ROUND(element, Element, type, T)                                          \
  extern "C" __device__ unsigned short rigel_text_##element##_of_##type(T x) noexcept;  \
  extern "C" __device__ unsigned short rigel_text_##element##_of_##type(T x) noexcept { \
    return __builtin_bit_cast(unsigned short, rigel::detail::convert<Element>(x));      \
  }
RIGEL_ROUND(f16, rigel::half, f32, float)
RIGEL_ROUND(f16, rigel::half, f64, double)
RIGEL_ROUND(bf16, rigel::bfloat16, f32, float)
RIGEL_ROUND(bf16, rigel::bfloat16, f64, double)

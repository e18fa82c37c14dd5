// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that semirings from text may call on a GPU, as bitcode for NVPTX: those of compiled semirings.
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
__device__ double rigel_text_power_f64(double x, double p) noexcept;
__device__ double rigel_text_power_f64(double x, double p) noexcept { return rigel::math::power(x, p); }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How kernels store outputs in C: whole tiles straight from registers, and single outputs.
#pragma once

#include <rigel/backends/cuda/simt/tiles.hpp>
#include <rigel/backends/cuda/tile/shape.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>

#include <limits>

namespace rigel::backends::simt {

/// Stores a tile that is inside of C straight from registers, a chunk at a time along n or along m. result(x, c) is what C
/// receives, from an accumulator and C's previous value, which is read only if `reads`.
template <bool along_n, int chunk, class Shape, class Accumulator, class Value, class Result>
__device__ __forceinline__ void copy_out(const Accumulator (&x)[Shape::outputs_m][Shape::outputs_n], Value* c,
                                         std::int64_t stride, tile::Place<Shape> place, bool reads, const Result& result) {
  constexpr int outer = along_n ? Shape::outputs_m : Shape::outputs_n, inner = along_n ? Shape::outputs_n : Shape::outputs_m;
  constexpr int outer_threads = along_n ? Shape::threads_m : Shape::threads_n;
  constexpr int inner_threads = along_n ? Shape::threads_n : Shape::threads_m;
  const int outer_place = along_n ? place.m : place.n, inner_place = along_n ? place.n : place.m;
#pragma unroll
  for (int o = 0; o < outer; ++o) {
    Value* const line = c + tile::line_of<outer_threads, chunk>(o, outer_place) * stride;
#pragma unroll
    for (int i = 0; i < inner; i += chunk) {
      Value* const at = line + tile::line_of<inner_threads, chunk>(i, inner_place);
      auto values = reads ? tile::Chunk<Value, chunk>::load(at) : tile::Chunk<Value, chunk>{};
#pragma unroll
      for (int v = 0; v < chunk; ++v) values.value[v] = result(along_n ? x[o][i + v] : x[i + v][o], values.value[v]);
      values.store(at);
    }
  }
}

/// What C receives: an output itself, its square root, or its power with an exponent below 1.
enum class Output { copy, root, power };
/// Whether a semiring's kernels have a short path for `power`: sums of powers, whose roots are distances.
template <class S> inline constexpr bool has_roots = sums_powers<S> && std::is_same_v<result_t<S>, float>;

/// Whether its square roots are distances. rounded_root() takes them for all outputs of a thread before the store in aligned
/// tiles inside of C, rounded_roots() row by row in other tiles.
template <class S> inline constexpr bool has_square_roots = std::is_same_v<S, l2_squared<float>>;

/// √x rounded as IEEE 754 requires, without a branch (P. Markstein, IA-64 and Elementary Functions, 2000, chapter 9): r is
/// the special-function unit's reciprocal root, y = x·r, and √x = y + (x − y²)·r/2. Small x are scaled by 2^64 to avoid
/// underflow.
__device__ __forceinline__ float rounded_root(float x) {
  const bool small = x < 0x1p-64f;
  const float scaled = x * (small ? 0x1p64f : 1.f);
  const float r = __nvvm_rsqrt_approx_ftz_f(scaled);  // inline assembly would keep loops around it from being unrolled
  const float y = scaled * r, rest = math::fma(-y, y, scaled);
  const float root = math::fma(rest, 0.5f * r, y) * (small ? 0x1p-32f : 1.f);
  return x == 0 || x == std::numeric_limits<float>::infinity() ? x : root;
}

/// The same for several numbers, in fewer instructions. Returns false if any of them is below 2^-101, as zeros are, or not
/// finite: the caller then needs rounded_root().
template <int M, int N>
__device__ __forceinline__ bool rounded_roots(float (&x)[M][N]) {
  constexpr std::uint32_t least = 0x0d000000,
                          normal = 0x7f800000 - least;  // bits of 2^-101; how many there are from there up to infinity
  bool are_normal = true;
  for_each_value(x, [&](float& value, int, int) {
    are_normal &= __builtin_bit_cast(std::uint32_t, value) - least < normal;
    const float r = __nvvm_rsqrt_approx_ftz_f(value), y = value * r;
    value = math::fma(math::fma(-y, y, value), 0.5f * r, y);
  });
  return are_normal;
}

/// Whether results are floats of 16-bit elements, which C may receive rounded to that type.
template <class S> inline constexpr bool shortens = ShortFloat<typename S::element> && std::is_same_v<result_t<S>, float>;

/// Whether its square roots are distances that C may receive rounded so.
template <class S> inline constexpr bool has_short_roots = shortens<S> && std::is_same_v<S, l2_squared<typename S::element>>;

/// Stores results in C. The three cases of Output, and rounded copies and roots, skip the per-output dispatch on epilogue and type.
template <class S, class Finish>
class Store {
 public:
  using Accumulator = typename S::accumulator;
  using Value = result_t<S>;

  __device__ __forceinline__ explicit Store(const detail::Arguments<S, Finish>& g)
      : g_(g),
        roots_(g.finish.template power<Value>() == 0.5),
        powers_(has_roots<S> && g.finish.template power<Value>() > 0 && g.finish.template power<Value>() < 1),
        plain_(roots_ || powers_ || g.finish.template is_copy<Value>()),
        short_roots_(takes_short_roots(g.finish)),
        shortens_(short_roots_ || (shortens<S> && g.finish.template is_copy<typename S::element>())) {}

  __device__ __forceinline__ bool is_plain() const { return plain_; }
  __device__ __forceinline__ bool is_power() const { return powers_ && !roots_; }
  /// Whether C receives results, or their square roots, rounded to the elements' type.
  __device__ __forceinline__ bool is_rounded() const { return shortens_; }
  __device__ __forceinline__ typename S::element rounded(const S& s, const Accumulator& x) const {
    if constexpr (has_short_roots<S>)
      if (short_roots_) return detail::convert<typename S::element>(rounded_root(rigel::result(s, x)));
    return detail::convert<typename S::element>(rigel::result(s, x));
  }
  /// use.template operator()<output>() with the case that applies, if is_plain().
  template <class Use>
  __device__ __forceinline__ void with_output(const Use& use) const {
    if (std::is_floating_point_v<Value> && roots_) return use.template operator()<Output::root>();
    if constexpr (has_roots<S>)
      if (powers_) return use.template operator()<Output::power>();
    return use.template operator()<Output::copy>();
  }
  /// What C receives in that case.
  template <Output output>
  __device__ __forceinline__ Value plain(const S& s, const Accumulator& x) const {
    const Value value = rigel::result(s, x);
    if constexpr (output == Output::root && has_square_roots<S>)
      return rounded_root(value);
    else if constexpr (output == Output::root && std::is_floating_point_v<Value>)
      return __builtin_elementwise_sqrt(value);
    else if constexpr (output == Output::power)
      return value < 0 ? std::numeric_limits<Value>::quiet_NaN()
                       : math::power_by_parts(value, static_cast<float>(g_.finish.template power<Value>()));
    else
      return value;
  }
  __device__ __forceinline__ void operator()(const S& s, const Accumulator& x, std::int64_t l, std::int64_t m,
                                             std::int64_t n) const {
    if constexpr (Number<Value>)
      if (plain_) [[likely]] {
        Value& to = static_cast<Value*>(g_.c)[g_.c_offset(l, m, n)];
        return with_output([&]<Output output>() __attribute__((always_inline)) { to = plain<output>(s, x); });
      }
    if constexpr (shortens<S>)
      if (shortens_) {
        static_cast<typename S::element*>(g_.c)[g_.c_offset(l, m, n)] = rounded(s, x);
        return;
      }
    g_.store(s, x, l, m, n);
  }

 private:
  __device__ __forceinline__ static bool takes_short_roots([[maybe_unused]] const Finish& finish) {
    if constexpr (has_short_roots<S> && std::is_same_v<Finish, detail::ProgramFinish>)
      return finish.type == scalar_of<typename S::element> && finish.program.power() == 0.5;
    else
      return false;
  }

  const detail::Arguments<S, Finish>& g_;
  bool roots_, powers_, plain_, short_roots_, shortens_;
};

}  // namespace rigel::backends::simt

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues: what a kernel applies to each result before it stores it in C. An epilogue is a functor (value, m, n, batch) →
// value. Those of the closed set below are data (a Program), so compiled kernels take them without a template. `|` composes;
// the left one runs first.
#pragma once

#include <rigel/error.hpp>
#include <rigel/numeric.hpp>

#include <concepts>
#include <utility>

namespace rigel {

/// A trivially copyable functor (value, m, n, batch) → value. It may write further results through views that it holds.
template <class E, class Value>
concept Epilogue = std::is_trivially_copyable_v<E> && requires(const E e, Value v, std::int64_t i) { e(v, i, i, i); };

namespace epilogue {

enum class Kind : std::int32_t {
  scale,
  power,
  exponential,
  reciprocal,
  clamp,
  diagonal,
  relu,
  sigmoid,
  tanh,
  any_bit,
  parity
};

/// One step of a Program, with its parameters x and y.
struct Step {
  Kind kind;
  double x, y;
};

namespace detail {

// The value of `v` after one step. Floating-point values keep their type.
template <class T>
RIGEL_FUNCTION T apply(const Step& step, T v, std::int64_t m, std::int64_t n) {
  using std::exp, std::pow, std::tanh;
  const T x = static_cast<T>(step.x), y = static_cast<T>(step.y);
  switch (step.kind) {
    case Kind::scale: return v * x;
    case Kind::power: return x == T(0.5) ? __builtin_elementwise_sqrt(v) : x == T(1) ? v : x == T(2) ? v * v : pow(v, x);
    case Kind::exponential: return exp(v * x);
    case Kind::reciprocal: return y / (x + v);
    case Kind::clamp: return v < x ? x : v > y ? y : v;
    case Kind::diagonal: return m == n ? v + x : v;
    case Kind::relu: return v < T(0) ? T(0) : v;
    case Kind::sigmoid: return T(1) / (T(1) + exp(-v));
    case Kind::tanh: return tanh(v);
    case Kind::any_bit: return v != T(0) ? T(1) : T(0);
    case Kind::parity: return v;
  }
  return v;
}

}  // namespace detail

/// Up to eight steps of the closed set, applied one after the other. Floating-point values are computed in their own type, half
/// and bfloat16 in float. Integers are computed in double, except for a leading any_bit or parity, which stays exact.
class Program {
 public:
  static constexpr int capacity = 8;
  Program() = default;
  constexpr Program(Step step) : size_(1), steps_{step} {}

  RIGEL_MEMBER constexpr bool empty() const { return size_ == 0; }
  RIGEL_MEMBER constexpr int size() const { return size_; }
  RIGEL_MEMBER constexpr const Step& operator[](int i) const { return steps_[i]; }
  /// The exponent if the program is a single pow(exponent), else 0.
  RIGEL_MEMBER constexpr double power() const { return size_ == 1 && steps_[0].kind == Kind::power ? steps_[0].x : 0; }
  /// Whether a step reads an output's position in C. A kernel cannot compute such a C as several smaller ones.
  constexpr bool reads_place() const {
    for (int i = 0; i < size_; ++i)
      if (steps_[i].kind == Kind::diagonal) return true;
    return false;
  }

  /// The steps of `f`, then those of `g`. Throws Error(invalid_argument) if they are more than eight.
  friend constexpr Program operator|(Program f, const Program& g) {
    if (f.size_ + g.size_ > capacity)
      throw Error(Code::invalid_argument, "epilogue: more than 8 steps of the closed set; use a functor of your own");
    for (int i = 0; i < g.size_; ++i) f.steps_[f.size_++] = g.steps_[i];
    return f;
  }

  template <std::floating_point T>
  RIGEL_MEMBER T operator()(T v, std::int64_t m, std::int64_t n, std::int64_t) const {
    return run(v, 0, m, n);
  }
  template <ShortFloat T>
  RIGEL_MEMBER float operator()(T v, std::int64_t m, std::int64_t n, std::int64_t) const {
    return run(static_cast<float>(v), 0, m, n);
  }
  template <std::integral T>
  RIGEL_MEMBER double operator()(T v, std::int64_t m, std::int64_t n, std::int64_t) const {
    return run(static_cast<double>(bits(v)), bit_steps(), m, n);
  }

  /// The number of leading steps that operate on the bits of an integer: 0 or 1.
  RIGEL_MEMBER constexpr int bit_steps() const {
    return size_ > 0 && (steps_[0].kind == Kind::any_bit || steps_[0].kind == Kind::parity) ? 1 : 0;
  }
  /// The value of an integer after these leading steps.
  template <std::integral T>
  RIGEL_MEMBER T bits(T v) const {
    if (bit_steps() == 0) return v;
    if (steps_[0].kind == Kind::any_bit) return v != 0;
    return static_cast<T>(__builtin_popcountll(static_cast<std::uint64_t>(v)) &
                          1);  // sign extension adds an even number of bits
  }

  // The value of `v` after the steps from `first` on.
  template <std::floating_point T>
  RIGEL_MEMBER T run(T v, int first, std::int64_t m, std::int64_t n) const {
    for (int i = first; i < size_; ++i) v = detail::apply(steps_[i], v, m, n);
    return v;
  }

 private:
  int size_ = 0;
  Step steps_[capacity] = {};
};

/// v · factor.
constexpr Program scale(double factor) { return Step{Kind::scale, factor, 0}; }
/// v^exponent, rounded once if the exponent is 1/2, 1 or 2. If this is the only step and the exponent is another number below
/// 1, cuda.simt's kernels for sums of powers use math::power_by_parts().
constexpr Program pow(double exponent) { return Step{Kind::power, exponent, 0}; }
/// exp(rate · v).
constexpr Program exponential(double rate) { return Step{Kind::exponential, rate, 0}; }
/// numerator / (offset + v).
constexpr Program reciprocal(double offset = 0, double numerator = 1) { return Step{Kind::reciprocal, offset, numerator}; }
/// min(max(v, low), high); NaN stays NaN.
constexpr Program clamp(double low, double high) { return Step{Kind::clamp, low, high}; }
/// v + value if m = n, else v.
constexpr Program add_diagonal(double value) { return Step{Kind::diagonal, value, 0}; }
/// max(v, 0); NaN stays NaN.
constexpr Program relu() { return Step{Kind::relu, 0, 0}; }
/// 1 / (1 + exp(−v)).
constexpr Program sigmoid() { return Step{Kind::sigmoid, 0, 0}; }
/// tanh v.
constexpr Program tanh() { return Step{Kind::tanh, 0, 0}; }
/// The Laplacian kernel of a distance: exp(−v / bandwidth).
constexpr Program laplace(double bandwidth) { return exponential(-1 / bandwidth); }
/// The Gaussian kernel of a squared distance: exp(−v / (2·bandwidth²)).
constexpr Program gaussian(double bandwidth) { return exponential(-1 / (2 * bandwidth * bandwidth)); }
/// 1 if any bit of the word is set, else 0: joins the packed entries of or_and.
constexpr Program any_bit() { return Step{Kind::any_bit, 0, 0}; }
/// The number of set bits modulo 2: joins the packed entries of xor_and. It must be the first step, and applies to integers.
constexpr Program parity() { return Step{Kind::parity, 0, 0}; }

/// g(f(value)): the result of `f | g` if one of them is a user's functor.
template <class F, class G>
struct Composed {
  F first;
  G second;
  template <class Value>
  RIGEL_MEMBER auto operator()(Value v, std::int64_t m, std::int64_t n, std::int64_t batch) const {
    return second(first(v, m, n, batch), m, n, batch);
  }
};

/// Makes a functor composable with `|`: `epilogue::functor(f) | epilogue::scale(2)`.
template <class F>
struct functor {
  F f;
  constexpr functor(F g) : f(g) {}
  template <class Value>
  RIGEL_MEMBER auto operator()(Value v, std::int64_t m, std::int64_t n, std::int64_t batch) const {
    return f(v, m, n, batch);
  }
};

template <class T>
inline constexpr bool is_composable = std::is_same_v<T, Program>;
template <class F>
inline constexpr bool is_composable<functor<F>> = true;
template <class F, class G>
inline constexpr bool is_composable<Composed<F, G>> = true;

template <class F, class G>
  requires(is_composable<F> && is_composable<G> && !(std::is_same_v<F, Program> && std::is_same_v<G, Program>))
constexpr Composed<F, G> operator|(F f, G g) {
  return {f, g};
}

}  // namespace epilogue
}  // namespace rigel

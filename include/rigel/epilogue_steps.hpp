// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps that epilogues of the closed set consist of: their kinds, their parameters, and what each does to a value.
#pragma once

#include <rigel/numeric.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace rigel::epilogue {

enum class Kind : std::int32_t {
  scale,
  add,
  power,
  exponential,  // from here on, an exponential of the value,
  laplace,
  gaussian,
  matern32,  // its product with a polynomial,
  matern52,
  rational_quadratic,  // one of a logarithm,
  sigmoid,             // up to here, and its quotient with 1 + an exponential
  reciprocal,
  clamp,
  threshold,
  diagonal,
  relu,
  tanh,
  silu,
  gelu,
  gelu_tanh,
  any_bit,
  parity
};

/// Calls use.template operator()<kind>() with a kind that is known at run time only.
template <class Use>
RIGEL_FUNCTION constexpr void with_kind(Kind kind, const Use& use) {
  switch (kind) {
    case Kind::scale: return use.template operator()<Kind::scale>();
    case Kind::add: return use.template operator()<Kind::add>();
    case Kind::power: return use.template operator()<Kind::power>();
    case Kind::exponential: return use.template operator()<Kind::exponential>();
    case Kind::laplace: return use.template operator()<Kind::laplace>();
    case Kind::gaussian: return use.template operator()<Kind::gaussian>();
    case Kind::matern32: return use.template operator()<Kind::matern32>();
    case Kind::matern52: return use.template operator()<Kind::matern52>();
    case Kind::rational_quadratic: return use.template operator()<Kind::rational_quadratic>();
    case Kind::sigmoid: return use.template operator()<Kind::sigmoid>();
    case Kind::reciprocal: return use.template operator()<Kind::reciprocal>();
    case Kind::clamp: return use.template operator()<Kind::clamp>();
    case Kind::threshold: return use.template operator()<Kind::threshold>();
    case Kind::diagonal: return use.template operator()<Kind::diagonal>();
    case Kind::relu: return use.template operator()<Kind::relu>();
    case Kind::tanh: return use.template operator()<Kind::tanh>();
    case Kind::silu: return use.template operator()<Kind::silu>();
    case Kind::gelu: return use.template operator()<Kind::gelu>();
    case Kind::gelu_tanh: return use.template operator()<Kind::gelu_tanh>();
    case Kind::any_bit: return use.template operator()<Kind::any_bit>();
    case Kind::parity: return use.template operator()<Kind::parity>();
  }
}

/// The indices of an output on which a step's result depends, besides the value.
struct Reads {
  bool row = false, column = false, batch = false;
  /// Whether the result depends on the output's position in its matrix.
  constexpr bool place() const { return row || column; }
};

/// Whether steps of a kind have a second parameter, y.
RIGEL_FUNCTION constexpr bool takes_second(Kind kind) { return kind == Kind::reciprocal || kind == Kind::clamp; }

/// What a step of a kind reads by itself. Its parameters may read more, if they are in memory.
constexpr Reads reads_of(Kind kind) {
  Reads reads;
  with_kind(kind, [&]<Kind k>() {
    if constexpr (k == Kind::diagonal) reads = {.row = true, .column = true};
  });
  return reads;
}

/// Numbers in memory of the execution space, which a step reads when the kernel runs: that of output (l, m, n) is element
/// l·batch_stride + m·row_stride + n·column_stride. A stride is 0 if one number serves all.
struct Source {
  const void* data = nullptr;
  std::int64_t batch_stride = 0, row_stride = 0, column_stride = 0;
  std::int64_t batches = 1, rows = 1, columns = 1;  // extents; 1 where one number serves all
  const char* argument = "";                        // the function that took the view, for messages
  unsigned spaces = 0;                              // rigel::Spaces that can read it
  Scalar type = Scalar::other;

  /// Whether the outputs of a matrix read different numbers.
  RIGEL_MEMBER constexpr bool varies() const { return row_stride != 0 || column_stride != 0; }
  /// x[i] = the number of output (l, m + i·apart_m, n + i·apart_n).
  template <int outputs, class T>
  RIGEL_MEMBER void read(T (&x)[outputs], std::int64_t l, std::int64_t m, std::int64_t n, int apart_m, int apart_n) const {
    const std::int64_t first = l * batch_stride + m * row_stride + n * column_stride;
    const std::int64_t apart = apart_m * row_stride + apart_n * column_stride;
    const auto all = [&](const auto* numbers) __attribute__((always_inline)) {
      using From = std::remove_cvref_t<decltype(*numbers)>;
#pragma unroll
      for (int i = 0; i < outputs; ++i) {
        const From number = numbers[first + i * apart];
        if constexpr (ShortFloat<From>)
          x[i] = static_cast<T>(static_cast<float>(number));
        else
          x[i] = static_cast<T>(number);
      }
    };
    switch (type) {
      case Scalar::f16: return all(static_cast<const half*>(data));
      case Scalar::bf16: return all(static_cast<const bfloat16*>(data));
      case Scalar::f32: return all(static_cast<const float*>(data));
      case Scalar::f64: return all(static_cast<const double*>(data));
      default: return all(static_cast<const std::int32_t*>(data));
    }
  }
  /// Whether read_fours() can read this matrix, four numbers at a time, for each n that is a multiple of 4.
  RIGEL_MEMBER bool is_in_fours() const {
    const std::int64_t size = type == Scalar::f32 ? 4 : type == Scalar::f16 || type == Scalar::bf16 ? 2 : 0;
    return size != 0 && column_stride == 1 && row_stride % 4 == 0 && batch_stride % 4 == 0 &&
           reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(4 * size) == 0;
  }
  /// x[i][v] = number (l, m + min(i·apart, left − 1), n + v); left > 0.
  template <int rows>
  RIGEL_MEMBER void read_fours(float (&x)[rows][4], std::int64_t l, std::int64_t m, std::int64_t n, int apart,
                               std::int64_t left) const {
    const std::int64_t first = l * batch_stride + m * row_stride + n;
    const auto all = [&]<class From>(const From* numbers) __attribute__((always_inline)) {
      struct alignas(4 * sizeof(From)) Four {
        From value[4];
      };
      Four fours[rows];  // all loads, then the conversions, which wait for them
#pragma unroll
      for (int i = 0; i < rows; ++i)
        fours[i] = *reinterpret_cast<const Four*>(numbers + first + (i * apart < left ? i * apart : left - 1) * row_stride);
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int v = 0; v < 4; ++v) x[i][v] = static_cast<float>(fours[i].value[v]);
    };
    switch (type) {
      case Scalar::f16: return all(static_cast<const half*>(data));
      case Scalar::bf16: return all(static_cast<const bfloat16*>(data));
      default: return all(static_cast<const float*>(data));
    }
  }
  template <class T>
  RIGEL_MEMBER T at(std::int64_t l, std::int64_t m, std::int64_t n) const {
    T x[1];
    read(x, l, m, n, 0, 0);
    return x[0];
  }
};

/// Where an output lies: its batch, row and column.
struct Place {
  std::int64_t l, m, n;
};

/// One step of a Program, with its parameters x and y. `x_from` and `y_from` say which of the program's sources holds a
/// parameter; it is the number here if they are negative. y is in memory only if x is.
struct Step {
  Kind kind{};
  std::int16_t x_from = -1, y_from = -1;
  double x = 0, y = 0;
  std::int64_t offset = 0;  // diagonal: n − m

  constexpr Step() = default;
  constexpr Step(Kind k, double first = 0, double second = 0) : kind(k), x(first), y(second) {}
  RIGEL_MEMBER constexpr bool reads_memory() const { return x_from >= 0 || y_from >= 0; }
};

namespace detail {

// Whether a step of this kind takes an exponential of the value, as run() and run_on() know it.
RIGEL_FUNCTION constexpr bool takes_exponential(Kind kind) { return kind >= Kind::exponential && kind <= Kind::sigmoid; }
// Whether it takes code that is too long for run_on(), whatever its parameters.
RIGEL_FUNCTION constexpr bool is_long(Kind kind) {
  return kind == Kind::rational_quadratic || kind == Kind::any_bit || kind == Kind::parity;
}
// What a Matérn kernel's value is multiplied by; and its argument, −u, which stays so small that its square is finite: exp(−1000) is 0.
template <class T>
RIGEL_FUNCTION T rate_of_matern(Kind kind, T length) {
  return static_cast<T>(kind == Kind::matern32 ? -1.73205080756887729353 : -2.23606797749978969641) / length;
}
template <class T>
RIGEL_FUNCTION T argument_of_matern(T v, T rate) {
  const T argument = v * rate;
#if RIGEL_ON_DEVICE
  if constexpr (std::is_same_v<T, float>) return math::maximum(argument, -1000.f);  // one instruction
#endif
  return argument < T(-1000) ? T(-1000) : argument;
}
#if RIGEL_ON_DEVICE
// ln (1 + x), a function of its own: in line that of floats makes the kernel of Euclidean distances spill.
__host__ __device__ __attribute__((noinline)) inline float log1p_apart(float x) { return ::log1pf(x); }
#endif
// The argument of the rational quadratic kernel, −ln (1 + v/alpha)^alpha. Beyond 2^100 an alpha is as good as infinite, and its product
// with 0 would be NaN if it were.
template <class T>
RIGEL_FUNCTION T argument_of_rational_quadratic(T v, T alpha) {
  using std::log1p;
  const T limited = alpha > T(0x1p100) ? T(0x1p100) : alpha;
#if RIGEL_ON_DEVICE
  if constexpr (std::is_same_v<T, float>) return -limited * log1p_apart(v / limited);
#endif
  return -limited * log1p(v / limited);
}
// The argument of a step's exponential.
template <Kind kind, class T>
RIGEL_FUNCTION T exponent(T v, T x) {
  if constexpr (kind == Kind::exponential)
    return v * x;
  else if constexpr (kind == Kind::laplace)
    return v * (T(-1) / x);
  else if constexpr (kind == Kind::gaussian)
    return v * (T(-0.5) / (x * x));
  else if constexpr (kind == Kind::matern32 || kind == Kind::matern52)
    return argument_of_matern(v, rate_of_matern(kind, x));
  else if constexpr (kind == Kind::rational_quadratic)
    return argument_of_rational_quadratic(v, x);
  else
    return -v;
}
// The value that follows from the argument and its exponential e.
template <class T>
RIGEL_FUNCTION T with_exponential(Kind kind, T e, T argument) {
  if (kind == Kind::matern32) return e * (T(1) - argument);
  if (kind == Kind::matern52) return e * (T(1) - argument + argument * argument * static_cast<T>(1. / 3));
  return kind == Kind::sigmoid ? T(1) / (T(1) + e) : e;
}

// Activations of several floats take all of them through each stage, because a thread would otherwise wait for one long chain of
// instructions after the other.

// The argument u of the sigmoid σ(u) = 1/(1 + exp(−u)) in v·σ(u).
template <Kind kind, class T>
RIGEL_FUNCTION T argument_of_sigmoid(T v) {
  constexpr auto scale = static_cast<T>(1.59576912160573071176);  // 2·√(2/π): 1 + tanh t = 2·σ(2t)
  if constexpr (kind == Kind::gelu_tanh)
    return scale * v * math::fma(T(0.044715) * v, v, T(1));
  else
    return v;
}
// Whether v·σ(u) is v·exp(u/2)·exp(u/2) to the last bit, and taken so: exp(u) may be subnormal or 0 where v·exp(u) is not. Floats on
// a device have no instructions to spare for that.
template <class T>
RIGEL_FUNCTION bool takes_halves(T u) {
#if RIGEL_ON_DEVICE
  if constexpr (std::is_same_v<T, float>) return false;
#endif
  return u < (std::is_same_v<T, float> ? T(-87) : T(-709));
}
// v·σ(u): of floats by e = exp(−|u|), so that 1 + e is from 1 to 2 and needs no division that serves all numbers.
template <Kind kind, int size>
RIGEL_FUNCTION void multiply_by_sigmoid(float (&v)[size]) {
  using std::exp, std::fabs;
  float u[size], e[size];
#pragma unroll
  for (int i = 0; i < size; ++i) {
    u[i] = argument_of_sigmoid<kind>(v[i]);
    e[i] = exp(takes_halves(u[i]) ? u[i] / 2 : -fabs(u[i]));
  }
#pragma unroll
  for (int i = 0; i < size; ++i) {
    v[i] *= (u[i] < 0 ? e[i] : 1.f) * math::reciprocal(1 + e[i]);
    if (takes_halves(u[i])) v[i] *= e[i];
  }
}

// v·Φ(v) = max(v, 0) − |v|·Φ(−|v|), where Φ is the distribution function of the standard normal distribution: without a branch, unlike the
// platform's erfc. For z ≥ 0, Φ(−z) = exp(−z²/2)·G(z), and G(z) is a polynomial in (z − 27/8)/(z + 27/8), lowest power first, fitted up
// to z = 13.2, relative error 3.7e-8. Beyond, Φ(−z) is below all normal floats.
template <int size>
RIGEL_FUNCTION void gelu(float (&v)[size]) {
  using std::fabs, std::fmax, std::fmin;
  constexpr float half_in_bits = -0.721347520f;  // −log₂(e)/2
  constexpr float middle = 3.375f;
  constexpr float fitted[]{0.109789670f,     -0.191714406f,   0.125684306f,    -0.0583361462f, 0.0158658866f,
                           -0.000122830126f, -0.00148636044f, 0.000180663032f, 0.000153807967f};
  float s[size], g[size];
#pragma unroll
  for (int i = 0; i < size; ++i) {
    s[i] = math::fma(math::reciprocal(fabs(v[i]) + middle), -2 * middle, 1.f);
    g[i] = fitted[8];
  }
#pragma unroll
  for (int term = 7; term >= 0; --term)
#pragma unroll
    for (int i = 0; i < size; ++i) g[i] = math::fma(g[i], s[i], fitted[term]);
#pragma unroll
  for (int i = 0; i < size; ++i) {
    const float tail = g[i] * math::exp2(half_in_bits * v[i] * v[i]);
    const float z = fmax(-v[i], fmin(v[i], 20.f));  // |v|, but finite where v = ∞ and the tail is 0
    v[i] = math::fma(-z, tail, v[i] < 0 ? 0.f : v[i]);
  }
}
// The activation of this kind, of several floats, or of one number.
template <Kind kind, int size>
RIGEL_FUNCTION void activate(float (&v)[size]) {
  if constexpr (kind == Kind::gelu)
    gelu(v);
  else
    multiply_by_sigmoid<kind>(v);
}
template <Kind kind, class T>
RIGEL_FUNCTION T activated(T v) {
  using std::erfc, std::exp;
  if constexpr (std::is_same_v<T, float>) {
    float x[1] = {v};
    activate<kind>(x);
    return x[0];
  } else if constexpr (kind == Kind::gelu) {
    return T(0.5) * v * erfc(v * static_cast<T>(-0.70710678118654752440));
  } else {
    const T u = argument_of_sigmoid<kind>(v);
    const bool halves = takes_halves(u);
    const T e = exp(halves ? u / 2 : -u);
    return halves ? v * e * e : v / (T(1) + e);
  }
}

// The value of `v` after one step. Floating-point values keep their type. `on_diagonal`: whether the output is on the step's
// diagonal.
template <Kind kind, class T>
RIGEL_FUNCTION T apply(T v, T x, T y, bool on_diagonal) {
  using std::exp, std::fabs, std::pow, std::tanh;
  if constexpr (takes_exponential(kind)) {
    const T argument = exponent<kind>(v, x);
    return with_exponential(kind, exp(argument), argument);
  } else if constexpr (kind == Kind::scale)
    return v * x;
  else if constexpr (kind == Kind::add)
    return v + x;
  else if constexpr (kind == Kind::power)
    return x == T(0.5) ? __builtin_elementwise_sqrt(v) : x == T(1) ? v : x == T(2) ? v * v : pow(v, x);
  else if constexpr (kind == Kind::reciprocal)
    return y / (x + v);
  else if constexpr (kind == Kind::clamp) {
    const T above = v < x ? x : v;
    return above > y ? y : above;
  } else if constexpr (kind == Kind::threshold)
    return fabs(v) < x ? T(0) : v;
  else if constexpr (kind == Kind::diagonal)
    return on_diagonal ? v + x : v;
  else if constexpr (kind == Kind::relu)
    return v < T(0) ? T(0) : v;
  else if constexpr (kind == Kind::tanh)
    return tanh(v);
  else if constexpr (kind >= Kind::silu && kind <= Kind::gelu_tanh)
    return activated<kind>(v);
  else if constexpr (kind == Kind::any_bit)
    return v != T(0) ? T(1) : T(0);
  else
    return v;  // parity, which applies to integers
}

/// Moves all groups of a thread's values forward by `together` and puts `group` in the last places: registers have no index, so
/// groups rotate through the first places, which one copy of code reads.
template <int together, int groups, int width>
RIGEL_FUNCTION void rotate(float (&values)[groups][width], const float (&group)[together][width]) {
#pragma unroll
  for (int i = 0; i < groups; ++i)
#pragma unroll
    for (int j = 0; j < width; ++j)
      values[i][j] = i + together < groups ? values[i + together][j] : group[i + together - groups][j];
}
/// use(number, group) for `together` of a thread's groups of values at a time, in one copy of its code.
template <int together, int groups, int width, class Use>
RIGEL_FUNCTION void for_each_group(float (&values)[groups][width], const Use& use) {
  static_assert(groups % together == 0);
#pragma unroll 1
  for (int number = 0; number < groups; number += together) {
    float group[together][width];
#pragma unroll
    for (int i = 0; i < together; ++i)
#pragma unroll
      for (int j = 0; j < width; ++j) group[i][j] = values[i][j];
    use(number, group);
    rotate(values, group);
  }
}
/// use(value, its number in its group) for each of them.
template <int groups, int width, class Use>
RIGEL_FUNCTION void for_each_value(float (&values)[groups][width], const Use& use) {
#pragma unroll
  for (int i = 0; i < groups; ++i)
#pragma unroll
    for (int j = 0; j < width; ++j) use(values[i][j], j);
}

/// Applies a step that takes an instruction or two to all values, if it is one and its parameter x is that of every group; returns
/// whether it did.
template <int groups, int width>
RIGEL_FUNCTION bool apply_at_once(Kind kind, float (&values)[groups][width], const float (&x)[width]) {
  const auto to_all = [&]<Kind k>() __attribute__((always_inline)) {
    for_each_value(values,
                   [&](float& value, int j) __attribute__((always_inline)) { value = apply<k>(value, x[j], 0.f, false); });
    return true;
  };
  if (kind == Kind::scale) return to_all.template operator()<Kind::scale>();
  if (kind == Kind::add) return to_all.template operator()<Kind::add>();
  return kind == Kind::relu && to_all.template operator()<Kind::relu>();
}

}  // namespace detail

}  // namespace rigel::epilogue

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues: what a kernel applies to each result before it stores it in C. An epilogue is a functor (value, m, n, batch) →
// value. Those of the closed set below are data (a Program), so compiled kernels take them without a template. `|` composes;
// the left one runs first.
#pragma once

#include <rigel/error.hpp>
#include <rigel/numeric.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>

namespace rigel {

/// A trivially copyable functor (value, m, n, batch) → value. It may write further results through views that it holds.
template <class E, class Value>
concept Epilogue = std::is_trivially_copyable_v<E> && requires(const E e, Value v, std::int64_t i) { e(v, i, i, i); };

namespace epilogue {

enum class Kind : std::int32_t {
  scale,
  add,
  power,
  exponential,  // from here on, an exponential of the value,
  laplace,
  gaussian,
  matern,   // and a polynomial times it,
  sigmoid,  // up to here, and its quotient with 1 + an exponential
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
    case Kind::matern: return use.template operator()<Kind::matern>();
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
  Scalar type = Scalar::other;
  std::int64_t batch_stride = 0, row_stride = 0, column_stride = 0;
  std::int64_t batches = 1, rows = 1, columns = 1;  // extents; 1 where one number serves all
  const char* argument = "";                        // the function that took the view, for messages
  unsigned spaces = 0;                              // rigel::Spaces that can read it

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
// Its argument. That of a Matérn kernel, whose y is 3 or 5, stays so small that its square is finite: exp(−1000) is 0.
template <Kind kind, class T>
RIGEL_FUNCTION T exponent(T v, T x, [[maybe_unused]] T y) {
  if constexpr (kind == Kind::exponential)
    return v * x;
  else if constexpr (kind == Kind::laplace)
    return v * (T(-1) / x);
  else if constexpr (kind == Kind::gaussian)
    return v * (T(-0.5) / (x * x));
  else if constexpr (kind == Kind::matern) {
    const T argument = v * (static_cast<T>(y == T(5) ? -2.23606797749978969641 : -1.73205080756887729353) / x);
    return argument < T(-1000) ? T(-1000) : argument;
  } else
    return -v;
}
// The value that follows from the argument and its exponential e.
template <class T>
RIGEL_FUNCTION T with_exponential(Kind kind, T e, T argument, T y) {
  if (kind == Kind::matern) {
    const T square = y == T(5) ? argument * argument * static_cast<T>(1. / 3) : T(0);
    return e * (T(1) - argument + square);
  }
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
// v·σ(u): of floats by e = exp(−|u|), so that 1 + e is from 1 to 2 and needs no division that serves all numbers.
template <Kind kind, int size>
RIGEL_FUNCTION void multiply_by_sigmoid(float (&v)[size]) {
  using std::exp, std::fabs;
  float u[size], e[size];
#pragma unroll
  for (int i = 0; i < size; ++i) {
    u[i] = argument_of_sigmoid<kind>(v[i]);
    e[i] = exp(-fabs(u[i]));
  }
#pragma unroll
  for (int i = 0; i < size; ++i) v[i] *= (u[i] < 0 ? e[i] : 1.f) * math::reciprocal(1 + e[i]);
}

// v·Φ(v) by Φ(−z) = exp(−z²/2)·G(z) for z ≥ 0: (z + 7/2)·G(z) is a polynomial in (z − 7/2)/(z + 7/2), fitted up to z = 14.5 in
// double, relative error 8e-9. So there is no branch, unlike in the platform's erfc.
template <int size>
RIGEL_FUNCTION void gelu(float (&v)[size]) {
  using std::fabs;
  constexpr float half_in_bits = -0.721347520f;  // −log₂(e)/2
  constexpr float fitted[] = {0.744416058f,  -0.565561771f,   0.315425038f,     -0.116053037f,   0.0174063779f,
                              0.0064931158f, -0.00317530939f, -0.000494943059f, 0.000421896199f, 0.000110688228f};
  float inverse[size], s[size], beyond[size], g[size];
#pragma unroll
  for (int i = 0; i < size; ++i) {
    const float magnitude = fabs(v[i]), z = magnitude < 20 ? magnitude : 20.f;  // exp(−200) is 0
    inverse[i] = math::reciprocal(z + 3.5f);
    s[i] = (z - 3.5f) * inverse[i];
    beyond[i] = math::exp2(half_in_bits * (z * z));
    g[i] = fitted[9];
  }
#pragma unroll
  for (int term = 8; term >= 0; --term)
#pragma unroll
    for (int i = 0; i < size; ++i) g[i] = math::fma(g[i], s[i], fitted[term]);
#pragma unroll
  for (int i = 0; i < size; ++i) {
    const float tail = g[i] * inverse[i] * beyond[i];
    v[i] *= v[i] < 0 ? tail : 1 - tail;
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
    return v / (T(1) + exp(-argument_of_sigmoid<kind>(v)));
  }
}

// The value of `v` after one step. Floating-point values keep their type. `on_diagonal`: whether the output is on the step's
// diagonal.
template <Kind kind, class T>
RIGEL_FUNCTION T apply(T v, T x, T y, bool on_diagonal) {
  using std::exp, std::fabs, std::pow, std::tanh;
  if constexpr (takes_exponential(kind)) {
    const T argument = exponent<kind>(v, x, y);
    return with_exponential(kind, exp(argument), argument, y);
  } else if constexpr (kind == Kind::scale)
    return v * x;
  else if constexpr (kind == Kind::add)
    return v + x;
  else if constexpr (kind == Kind::power)
    return x == T(0.5) ? __builtin_elementwise_sqrt(v) : x == T(1) ? v : x == T(2) ? v * v : pow(v, x);
  else if constexpr (kind == Kind::reciprocal)
    return y / (x + v);
  else if constexpr (kind == Kind::clamp)
    return v < x ? x : v > y ? y : v;
  else if constexpr (kind == Kind::threshold)
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

/// Up to eight steps of the closed set, applied one after the other; up to four of their parameters are in memory.
/// Floating-point values are computed in their own type, half and bfloat16 in float. Integers are computed in double, except
/// for a leading any_bit or parity, which stays exact.
class Program {
 public:
  static constexpr int capacity = 8, most_sources = 4;
  Program() = default;
  constexpr Program(Step step) : size_(1), steps_{step} {}
  /// One step whose parameter x is in memory; y is a number, or in memory as well.
  constexpr Program(Step step, Source x) : size_(1), sources_size_(1), steps_{step}, sources_{x} { steps_[0].x_from = 0; }
  constexpr Program(Step step, Source x, Source y) : Program(step, x) {
    steps_[0].y_from = 1;
    sources_[1] = y;
    sources_size_ = 2;
  }

  RIGEL_MEMBER constexpr bool empty() const { return size_ == 0; }
  RIGEL_MEMBER constexpr int size() const { return size_; }
  RIGEL_MEMBER constexpr const Step& operator[](int i) const { return steps_[i]; }
  RIGEL_MEMBER constexpr const Source& source(int i) const { return sources_[i]; }
  /// The exponent if the program is a single pow(exponent) of a number, else 0.
  RIGEL_MEMBER constexpr double power() const {
    return size_ == 1 && steps_[0].kind == Kind::power && !steps_[0].reads_memory() ? steps_[0].x : 0;
  }
  /// Whether the first step is a square root.
  RIGEL_MEMBER constexpr bool begins_with_root() const {
    return size_ > 0 && steps_[0].kind == Kind::power && steps_[0].x_from < 0 && steps_[0].x == 0.5;
  }
  /// The factor if the program is a single scale(factor) by a number, 1 if it is empty, else NaN.
  constexpr double factor() const {
    if (size_ == 0) return 1;
    const bool scales = size_ == 1 && steps_[0].kind == Kind::scale && !steps_[0].reads_memory();
    return scales ? steps_[0].x : std::numeric_limits<double>::quiet_NaN();
  }
  /// What the steps and their parameters read.
  constexpr Reads reads() const {
    Reads reads;
    const auto join = [&](bool row, bool column, bool batch) {
      reads.row |= row;
      reads.column |= column;
      reads.batch |= batch;
    };
    for (int i = 0; i < size_; ++i) {
      const Reads own = reads_of(steps_[i].kind);
      join(own.row, own.column, own.batch);
      for (const int from : {int{steps_[i].x_from}, int{steps_[i].y_from}})
        if (from >= 0)
          join(sources_[from].row_stride != 0, sources_[from].column_stride != 0, sources_[from].batch_stride != 0);
    }
    return reads;
  }

  /// The steps of `f`, then those of `g`. Throws Error(invalid_argument) if they are more than eight, or if more than four of
  /// their parameters are in memory.
  friend constexpr Program operator|(Program f, const Program& g) {
    if (f.size_ + g.size_ > capacity)
      throw Error(Code::invalid_argument, "epilogue: more than 8 steps of the closed set; use a functor of your own");
    if (f.sources_size_ + g.sources_size_ > most_sources)
      throw Error(Code::invalid_argument,
                  "epilogue: more than 4 parameters of the closed set in memory; use a functor of your own");
    const auto moved = [&](std::int16_t from) {
      return static_cast<std::int16_t>(from < 0 ? from : from + f.sources_size_);
    };
    for (int i = 0; i < g.size_; ++i) {
      Step step = g.steps_[i];
      step.x_from = moved(step.x_from);
      step.y_from = moved(step.y_from);
      f.steps_[f.size_++] = step;
    }
    for (int i = 0; i < g.sources_size_; ++i) f.sources_[f.sources_size_++] = g.sources_[i];
    return f;
  }

  /// The program as a part of C sees it whose first output is (l, m, n) of the whole.
  Program of_part(std::int64_t l, std::int64_t m, std::int64_t n) const {
    Program part = *this;
    for (int i = 0; i < size_; ++i) part.steps_[i].offset += m - n;
    for (int i = 0; i < sources_size_; ++i) {
      Source& s = part.sources_[i];
      s.data = static_cast<const std::byte*>(s.data) +
               (l * s.batch_stride + m * s.row_stride + n * s.column_stride) * static_cast<std::int64_t>(size_of(s.type));
    }
    return part;
  }

  /// The program as the transpose of C sees it.
  Program transposed() const {
    Program t = *this;
    for (int i = 0; i < size_; ++i) t.steps_[i].offset = -steps_[i].offset;
    for (int i = 0; i < sources_size_; ++i) {
      std::swap(t.sources_[i].row_stride, t.sources_[i].column_stride);
      std::swap(t.sources_[i].rows, t.sources_[i].columns);
    }
    return t;
  }

  template <std::floating_point T>
  RIGEL_MEMBER T operator()(T v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return run(v, 0, l, m, n);
  }
  template <ShortFloat T>
  RIGEL_MEMBER float operator()(T v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return run(static_cast<float>(v), 0, l, m, n);
  }
  template <std::integral T>
  RIGEL_MEMBER double operator()(T v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return run(static_cast<double>(bits(v)), bit_steps(), l, m, n);
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
  RIGEL_MEMBER T run(T v, int first, std::int64_t l, std::int64_t m, std::int64_t n) const {
#pragma unroll 1
    for (int i = first; i < size_; ++i) {
      const Step& step = steps_[i];
      T x[1] = {static_cast<T>(step.x)}, y = static_cast<T>(step.y), argument = 0;
      read(step, x, y, l, m, n, 0, 0);
      // Each exponential exists once, since kernels carry this code.
      with_kind(step.kind, [&]<Kind k>() __attribute__((always_inline)) {
        if constexpr (detail::takes_exponential(k))
          argument = detail::exponent<k>(v, x[0], y);
        else
          v = detail::apply<k>(v, x[0], y, n - m == step.offset);
      });
      using std::exp;
      if (detail::takes_exponential(step.kind)) v = detail::with_exponential(step.kind, exp(argument), argument, y);
    }
    return v;
  }

  /// The same for outputs that a thread holds, if is_short(), in groups of `width` neighbours: a step is decoded once for all of
  /// them. `outputs` says where they lie:
  ///
  ///     int groups;               // that exist
  ///     int apart_m, apart_n;     // from one output to the next in a group
  ///     int next_m, next_n;       // from group to group
  ///     Place place(int group) const;  // of its first output
  template <int groups, int width, class Outputs>
  RIGEL_MEMBER void run_on(float (&values)[groups][width], const Outputs& outputs, int first) const {
#pragma unroll 1
    for (int i = first; i < size_; ++i) run_step(steps_[i], values, outputs);
  }

  /// Whether all steps are short enough for kernels to unroll them over the values that a thread holds: all but pow() with an
  /// exponent other than 1/2, 1 and 2, any_bit() and parity().
  constexpr bool is_short() const {
    for (int i = 0; i < size_; ++i) {
      const Step& step = steps_[i];
      const bool long_power = step.reads_memory() || (step.x != 0.5 && step.x != 1 && step.x != 2);
      if (step.kind == Kind::any_bit || step.kind == Kind::parity || (step.kind == Kind::power && long_power)) return false;
    }
    return true;
  }

 private:
  // A step's parameters, if they are in memory.
  template <int outputs, class T>
  RIGEL_MEMBER __attribute__((always_inline)) void read(const Step& step, T (&x)[outputs], T& y, std::int64_t l,
                                                        std::int64_t m, std::int64_t n, int apart_m, int apart_n) const {
    for (int from = step.y_from >= 0 ? step.y_from : step.x_from; from >= 0;) {
      sources_[from].read(x, l, m, n, apart_m, apart_n);
      if (from == step.x_from) break;
      y = x[0];
      from = step.x_from;
    }
  }

  // Steps of all kinds share one loop, which takes a group at a time, since reading parameters takes long code. Frequent steps
  // have code of their own: the short ones for all values, exponentials for several groups, so that latencies overlap.
  template <int groups, int width, class Outputs>
  RIGEL_MEMBER void run_step(const Step& step, float (&values)[groups][width], const Outputs& outputs) const {
    using std::exp;
    constexpr int together = groups % 2 == 0 ? 2 : 1;
    const auto activate = [&]<Kind kind>() __attribute__((always_inline)) {
      detail::for_each_group<1>(values, [](int, auto& group) __attribute__((always_inline)) {
        detail::activate<kind>(group[0]);  // of all, values would take registers that many tiles lack
      });
    };
    switch (step.kind) {
      case Kind::silu: return activate.template operator()<Kind::silu>();
      case Kind::gelu: return activate.template operator()<Kind::gelu>();
      case Kind::gelu_tanh: return activate.template operator()<Kind::gelu_tanh>();
      default: break;
    }
    float x[width], y = static_cast<float>(step.y);
#pragma unroll
    for (int j = 0; j < width; ++j) x[j] = static_cast<float>(step.x);
    if (!step.reads_memory()) {
      if (step.kind == Kind::exponential)
        return detail::for_each_group<together>(values, [&](int, auto& group) __attribute__((always_inline)) {
          detail::for_each_value(group,
                                 [&](float& value, int) __attribute__((always_inline)) { value = exp(value * x[0]); });
        });
      if (detail::apply_at_once(step.kind, values, x)) return;
    }
    const bool varies = groups > 1 && step_varies(step, outputs);
#pragma unroll 1
    for (int number = 0; number < groups; ++number) {
      if (step.reads_memory() && number < outputs.groups && (number == 0 || varies)) {
        const Place at = outputs.place(number);
        read(step, x, y, at.l, at.m, at.n, outputs.apart_m, outputs.apart_n);
      }
      if (!varies && detail::apply_at_once(step.kind, values, x)) return;
      float group[1][width];
#pragma unroll
      for (int j = 0; j < width; ++j) group[0][j] = values[0][j];
      run_step_on(step, group[0], x, y, outputs, number);
      detail::rotate(values, group);
    }
  }

  // The same for one group, whose parameters are x and y.
  template <int width, class Outputs>
  RIGEL_MEMBER __attribute__((always_inline)) void run_step_on(const Step& step, float (&group)[width],
                                                               const float (&x)[width], float y, const Outputs& outputs,
                                                               int number) const {
    using std::exp;
    // Steps that take an exponential differ in its argument alone.
    float arguments[width] = {};
    with_kind(step.kind, [&]<Kind kind>() __attribute__((always_inline)) {
      [[maybe_unused]] const Place at = outputs.place(number);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if constexpr (detail::takes_exponential(kind))
          arguments[j] = detail::exponent<kind>(group[j], x[j], y);
        else if constexpr (kind == Kind::power)
          group[j] = step.x == 0.5 ? __builtin_elementwise_sqrt(group[j]) : step.x == 2 ? group[j] * group[j] : group[j];
        else if constexpr (kind < Kind::silu)  // later ones are not short, or have code of their own
          group[j] =
              detail::apply<kind>(group[j], x[j], y, at.n - at.m + j * (outputs.apart_n - outputs.apart_m) == step.offset);
      }
    });
    if (detail::takes_exponential(step.kind))
#pragma unroll
      for (int j = 0; j < width; ++j) group[j] = detail::with_exponential(step.kind, exp(arguments[j]), arguments[j], y);
  }

  // Whether a parameter in memory is not the same for all groups.
  template <class Outputs>
  RIGEL_MEMBER bool step_varies(const Step& step, const Outputs& outputs) const {
    const auto moves = [&](int from) {
      return from >= 0 && outputs.next_m * sources_[from].row_stride + outputs.next_n * sources_[from].column_stride != 0;
    };
    return moves(step.x_from) || moves(step.y_from);
  }

  int size_ = 0, sources_size_ = 0;
  Step steps_[capacity] = {};
  Source sources_[most_sources] = {};
};

/// What layers of neural networks and kernel matrices apply to each output, v ↦ φ(v·factor + shift(n)): a short form of some
/// programs, for kernels that can then do without decoding steps.
struct Layer {
  bool scales = false, shifts = false, shift_in_memory = false;
  float factor = 1, number = 0;   // number: a shift that is not in memory
  Source shift;                   // the same for all rows
  Kind activation = Kind::scale;  // scale: there is none
  float rate = 0;                 // of Kind::exponential

  /// The layer that gives what a program gives, if there is one: at most a scale() by a number, an add(), and one of relu(), silu(),
  /// gelu(), gelu_tanh() and exponential() by a number, in this order. `of_one_row`: a shift that differs by rows counts as one.
  static constexpr std::optional<Layer> of(const Program& program, bool of_one_row = false) {
    Layer layer;
    int i = 0;
    const auto next_is = [&](Kind kind) { return i < program.size() && program[i].kind == kind; };
    if (next_is(Kind::scale) && !program[i].reads_memory()) {
      layer.scales = true;
      layer.factor = static_cast<float>(program[i++].x);
    }
    if (next_is(Kind::add)) {
      const Step& step = program[i++];
      layer.shifts = true;
      layer.shift_in_memory = step.reads_memory();
      layer.number = static_cast<float>(step.x);
      if (step.reads_memory()) layer.shift = program.source(step.x_from);
      if (layer.shift.row_stride != 0 && !of_one_row) return std::nullopt;
    }
    if (next_is(Kind::relu) || next_is(Kind::silu) || next_is(Kind::gelu) || next_is(Kind::gelu_tanh) ||
        (next_is(Kind::exponential) && !program[i].reads_memory())) {
      layer.activation = program[i].kind;
      layer.rate = static_cast<float>(program[i++].x);
    }
    return i == program.size() ? std::optional(layer) : std::nullopt;
  }

  /// The shifts of outputs (l, ·, n + i).
  template <int width>
  RIGEL_MEMBER void read_shift(float (&x)[width], std::int64_t l, std::int64_t n) const {
#pragma unroll
    for (int i = 0; i < width; ++i) x[i] = number;
    if (shift_in_memory) shift.read(x, l, 0, n, 0, 1);
  }

  /// Applies it to groups of neighbours in a row, all with the same shifts.
  template <int groups, int width>
  RIGEL_MEMBER void apply(float (&values)[groups][width], const float (&x)[width]) const {
    if (scales) detail::for_each_value(values, [&](float& v, int) __attribute__((always_inline)) { v *= factor; });
    if (shifts) detail::for_each_value(values, [&](float& v, int i) __attribute__((always_inline)) { v += x[i]; });
    activate(values);
  }
  /// The same without shifts.
  template <int groups, int width>
  RIGEL_MEMBER void apply(float (&values)[groups][width]) const {
    if (scales) detail::for_each_value(values, [&](float& v, int) __attribute__((always_inline)) { v *= factor; });
    activate(values);
  }

 private:
  template <int groups, int width>
  RIGEL_MEMBER void activate(float (&values)[groups][width]) const {
    const auto to_all = [&](const auto& use) __attribute__((always_inline)) { detail::for_each_value(values, use); };
    auto& all = reinterpret_cast<float (&)[groups * width]>(values);
    switch (activation) {
      case Kind::relu: return to_all([](float& v, int) __attribute__((always_inline)) { v = v < 0 ? 0 : v; });
      case Kind::silu: return detail::activate<Kind::silu>(all);
      case Kind::gelu: return detail::activate<Kind::gelu>(all);
      case Kind::gelu_tanh: return detail::activate<Kind::gelu_tanh>(all);
      case Kind::exponential: return to_all([&](float& v, int) __attribute__((always_inline)) { v = std::exp(v * rate); });
      default: return;
    }
  }
};

/// v · factor.
constexpr Program scale(double factor) { return Step{Kind::scale, factor}; }
/// v + value.
constexpr Program add(double value) { return Step{Kind::add, value}; }
/// v^exponent, rounded once if the exponent is 1/2, 1 or 2. If this is the only step and the exponent is another number below
/// 1, cuda.simt's kernels for sums of powers use math::power_by_parts().
constexpr Program pow(double exponent) { return Step{Kind::power, exponent}; }
/// exp(rate · v).
constexpr Program exponential(double rate) { return Step{Kind::exponential, rate}; }
/// numerator / (offset + v).
constexpr Program reciprocal(double offset = 0, double numerator = 1) { return Step{Kind::reciprocal, offset, numerator}; }
/// min(max(v, low), high); NaN stays NaN.
constexpr Program clamp(double low, double high) { return Step{Kind::clamp, low, high}; }
/// 0 if |v| < least, else v; NaN stays NaN.
constexpr Program threshold(double least) { return Step{Kind::threshold, least}; }
/// v + value if m + m0 = n + n0, else v: (m0, n0) is where C lies in a larger matrix, whose diagonal this is.
constexpr Program add_diagonal(double value, std::int64_t m0 = 0, std::int64_t n0 = 0) {
  Step step{Kind::diagonal, value};
  step.offset = m0 - n0;
  return step;
}
/// max(v, 0); NaN stays NaN.
constexpr Program relu() { return Step{Kind::relu}; }
/// 1 / (1 + exp(−v)).
constexpr Program sigmoid() { return Step{Kind::sigmoid}; }
/// tanh v.
constexpr Program tanh() { return Step{Kind::tanh}; }
/// v / (1 + exp(−v)) (D. Hendrycks and K. Gimpel, Gaussian error linear units, 2016, section 2).
constexpr Program silu() { return Step{Kind::silu}; }
/// v · Φ(v), where Φ is the distribution function of the standard normal distribution (the same paper).
constexpr Program gelu() { return Step{Kind::gelu}; }
/// v/2 · (1 + tanh(√(2/π)·(v + 0.044715·v³))), the approximation of gelu() in the same paper.
constexpr Program gelu_tanh() { return Step{Kind::gelu_tanh}; }
/// The Laplacian kernel of a distance: exp(−v / bandwidth).
constexpr Program laplace(double bandwidth) { return exponential(-1 / bandwidth); }
/// The Gaussian kernel of a squared distance: exp(−v / (2·bandwidth²)).
constexpr Program gaussian(double bandwidth) { return exponential(-1 / (2 * bandwidth * bandwidth)); }
/// The Matérn kernel of a distance for ν = 3/2: (1 + u)·exp(−u), u = √3·v / length (C. E. Rasmussen and C. K. I. Williams, Gaussian
/// Processes for Machine Learning, 2006, equation 4.17). For ν = 1/2 it is laplace().
constexpr Program matern32(double length) { return Step{Kind::matern, length, 3}; }
/// The same for ν = 5/2: (1 + u + u²/3)·exp(−u), u = √5·v / length.
constexpr Program matern52(double length) { return Step{Kind::matern, length, 5}; }
/// 1 if any bit of the word is set, else 0: joins the packed entries of or_and.
constexpr Program any_bit() { return Step{Kind::any_bit}; }
/// The number of set bits modulo 2: joins the packed entries of xor_and. It must be the first step, and applies to integers.
constexpr Program parity() { return Step{Kind::parity}; }

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

/// Calls use(program) for each Program that an epilogue is made of.
template <class E, class Use>
void for_each_program(const E&, const Use&) {}
template <class Use>
void for_each_program(const Program& program, const Use& use) {
  use(program);
}
template <class F, class G, class Use>
void for_each_program(const Composed<F, G>& both, const Use& use) {
  for_each_program(both.first, use);
  for_each_program(both.second, use);
}

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues: what a kernel applies to each result before it stores it in C. An epilogue is a functor (value, m, n, batch) →
// value. Those of the closed set below are data (a Program), so compiled kernels take them without a template. `|` composes;
// the left one runs first.
#pragma once

#include <rigel/epilogue_steps.hpp>
#include <rigel/error.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace rigel {

/// A trivially copyable functor (value, m, n, batch) → value. It may write further results through views that it holds.
template <class E, class Value>
concept Epilogue = std::is_trivially_copyable_v<E> && requires(const E e, Value v, std::int64_t i) { e(v, i, i, i); };

namespace epilogue {

/// Up to eight steps of the closed set, applied one after the other; up to four of their parameters are in memory.
/// Floating-point values are computed in their own type, half and bfloat16 in float. Integers are computed in double, except
/// for a leading any_bit or parity, which stays exact.
class Program {
 public:
  static constexpr int capacity = 8, most_sources = 4;
  /// Room for what an operation does before a caller's program: a metric's own steps, or a bias.
  static constexpr int own_steps = 2, own_sources = 1;
  Program() = default;
  constexpr Program(Step step) : size_(1), steps_{step} {}
  /// One step whose parameter x is in memory; y is a number, or in memory as well.
  constexpr Program(Step step, Source x) : size_(1), sources_size_(1), steps_{step}, sources_{x} { steps_[0].x_from = 0; }
  constexpr Program(Step step, Source x, Source y) : Program(step, x) {
    steps_[0].y_from = 1;
    sources_[1] = y;
    sources_size_ = 2;
  }
  /// Steps that share sources: their x_from and y_from are below `sources_count`.
  constexpr Program(const Step* steps, int count, const Source* sources, int sources_count)
      : size_(count), sources_size_(sources_count) {
    for (int i = 0; i < count; ++i) steps_[i] = steps[i];
    for (int i = 0; i < sources_count; ++i) sources_[i] = sources[i];
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
    }
    for_each_source(
        [&](const Source& source) { join(source.row_stride != 0, source.column_stride != 0, source.batch_stride != 0); });
    return reads;
  }
  /// use(source) for each parameter, x or y, that is in memory.
  template <class Use>
  constexpr void for_each_source(const Use& use) const {
    for (int i = 0; i < size_; ++i)
      for (const int from : {int{steps_[i].x_from}, int{steps_[i].y_from}})
        if (from >= 0) use(sources_[from]);
  }
  /// Whether a step's y, read from memory, is not one number for all outputs of a matrix.
  constexpr bool second_varies(const Step& step) const { return step.y_from >= 0 && sources_[step.y_from].varies(); }

  /// The steps of `f`, then those of `g`. Throws Error(invalid_argument) if they are more than eight, or if more than four of
  /// their parameters are in memory.
  friend constexpr Program operator|(const Program& f, const Program& g) { return joined(f, g, capacity, most_sources); }
  /// The same for an operation's own steps, which have room of their own.
  static constexpr Program joined(const Program& own, const Program& program) {
    return joined(own, program, capacity + own_steps, most_sources + own_sources);
  }
  static constexpr Program joined(Program f, const Program& g, int most_steps, int most) {
    if (f.size_ + g.size_ > most_steps)
      throw Error(Code::invalid_argument, "epilogue: more than " + std::to_string(most_steps) +
                                              " steps of the closed set; use a functor of your own");
    if (f.sources_size_ + g.sources_size_ > most)
      throw Error(Code::invalid_argument, "epilogue: more than " + std::to_string(most) +
                                              " parameters of the closed set in memory; use a functor of your own");
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
          argument = detail::exponent<k>(v, x[0]);
        else
          v = detail::apply<k>(v, x[0], y, n - m == step.offset);
      });
      using std::exp;
      if (detail::takes_exponential(step.kind)) v = detail::with_exponential(step.kind, exp(argument), argument);
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
  /// exponent other than 1/2, 1 and 2, rational_quadratic(), any_bit() and parity(). A step is not if its y varies: a group has one.
  constexpr bool is_short() const {
    for (int i = 0; i < size_; ++i) {
      const Step& step = steps_[i];
      const bool long_power = step.reads_memory() || (step.x != 0.5 && step.x != 1 && step.x != 2);
      if (detail::is_long(step.kind) || (step.kind == Kind::power && long_power) || second_varies(step)) return false;
    }
    return true;
  }

 private:
  // A step's parameters, if they are in memory; y is that of the first output.
  template <int outputs, class T>
  RIGEL_MEMBER __attribute__((always_inline)) void read(const Step& step, T (&x)[outputs], T& y, std::int64_t l,
                                                        std::int64_t m, std::int64_t n, int apart_m, int apart_n) const {
    for (int from = step.y_from >= 0 ? step.y_from : step.x_from; from >= 0;) {
      sources_[from].read(x, l, m, n, apart_m, apart_n);
      if (from == step.x_from) break;
      y = x[0];
      from = step.x_from;
    }
    if (step.y_from >= 0 && step.y_from == step.x_from) y = x[0];
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
      const auto to_groups = [&](const auto& use) __attribute__((always_inline)) {
        detail::for_each_group<together>(values, [&](int, auto& group) __attribute__((always_inline)) {
          detail::for_each_value(group, [&](float& value, int) __attribute__((always_inline)) { value = use(value); });
        });
      };
      if (step.kind == Kind::exponential)
        return to_groups([&](float value) __attribute__((always_inline)) { return exp(value * x[0]); });
      if (step.kind == Kind::matern32 || step.kind == Kind::matern52) {
        const float rate = detail::rate_of_matern(step.kind, x[0]);
        const Kind kind = step.kind == Kind::matern32 ? Kind::matern32 : Kind::matern52;
        return to_groups([&](float value) __attribute__((always_inline)) {
          const float argument = detail::argument_of_matern(value, rate);
          return detail::with_exponential(kind, exp(argument), argument);
        });
      }
      if (detail::apply_at_once(step.kind, values, x)) return;
    }
    const bool varies = groups > 1 && first_varies(step, outputs);
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
        if constexpr (detail::takes_exponential(kind) && !detail::is_long(kind))
          arguments[j] = detail::exponent<kind>(group[j], x[j]);
        else if constexpr (kind == Kind::power)
          group[j] = step.x == 0.5 ? __builtin_elementwise_sqrt(group[j]) : step.x == 2 ? group[j] * group[j] : group[j];
        else if constexpr (kind < Kind::silu && !detail::is_long(kind))  // later ones have code of their own
          group[j] =
              detail::apply<kind>(group[j], x[j], y, at.n - at.m + j * (outputs.apart_n - outputs.apart_m) == step.offset);
      }
    });
    if (detail::takes_exponential(step.kind))
#pragma unroll
      for (int j = 0; j < width; ++j) group[j] = detail::with_exponential(step.kind, exp(arguments[j]), arguments[j]);
  }

  // Whether x in memory is not the same for all groups. (y is, or is_short() would be false.)
  template <class Outputs>
  RIGEL_MEMBER bool first_varies(const Step& step, const Outputs& outputs) const {
    const int from = step.x_from;
    return from >= 0 && outputs.next_m * sources_[from].row_stride + outputs.next_n * sources_[from].column_stride != 0;
  }

  int size_ = 0, sources_size_ = 0;
  Step steps_[capacity + own_steps] = {};
  Source sources_[most_sources + own_sources] = {};
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
/// min(max(v, low), high), `high` if low > high; NaN stays NaN.
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
constexpr Program matern32(double length) { return Step{Kind::matern32, length}; }
/// The same for ν = 5/2: (1 + u + u²/3)·exp(−u), u = √5·v / length.
constexpr Program matern52(double length) { return Step{Kind::matern52, length}; }
/// (1 + v / alpha)^−alpha = exp(−alpha·ln(1 + v / alpha)) of v ≥ 0, the rational quadratic kernel of v = d² / (2·length²) (the same book,
/// equation 4.19). It comes near exp(−v) as alpha grows.
constexpr Program rational_quadratic(double alpha) { return Step{Kind::rational_quadratic, alpha}; }
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

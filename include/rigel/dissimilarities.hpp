// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Further metrics of cdist(), each with a semiring of its own: of abundances and distributions, and of Boolean rows. The library holds no
// kernels for them: a file that calls cdist() with one instantiates the tiles that it needs, as for a functor of yours.
#pragma once

#include <rigel/distance.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace rigel {

/// Σ_k |a − b| / (|a| + |b|), where 0/0 counts 0.
template <class Element>
struct canberra {
  using element = Element;
  using operand = accumulator_for<Element>;
  using accumulator = operand;
  static_assert(std::is_floating_point_v<accumulator>, "canberra: floating-point numbers");
  RIGEL_MEMBER static accumulator identity() { return 0; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    const operand sum = math::add(math::abs(a), math::abs(b));
    return sum == 0 ? operand(0) : math::abs(math::subtract(a, b)) / sum;
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) { return math::add(x, y); }
};

/// Σ_k |a − b| / Σ_k |a + b|; of integers in double.
template <class Element>
struct braycurtis {
  using element = Element;
  using operand = accumulator_for<Element>;
  struct accumulator {
    operand differences, sums;
  };
  RIGEL_MEMBER static accumulator identity() { return {0, 0}; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    return {math::abs(math::subtract(a, b)), math::abs(math::add(a, b))};
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) {
    return {math::add(x.differences, y.differences), math::add(x.sums, y.sums)};
  }
  RIGEL_MEMBER static auto result(accumulator x) {
    using Result = std::conditional_t<std::is_floating_point_v<operand>, operand, double>;
    return static_cast<Result>(x.differences) / static_cast<Result>(x.sums);
  }
};

/// Σ_k (√a − √b)².
template <class Element>
struct squared_roots {
  using element = Element;
  using operand = accumulator_for<Element>;
  using accumulator = operand;
  static_assert(std::is_floating_point_v<accumulator>, "squared_roots: floating-point numbers");
  RIGEL_MEMBER static accumulator identity() { return 0; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    const operand d = math::subtract(__builtin_elementwise_sqrt(a), __builtin_elementwise_sqrt(b));
    return math::multiply(d, d);
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) { return math::add(x, y); }
};

/// Σ_k a·ln(a/b), where a = 0 counts 0.
template <class Element>
struct relative_entropy {
  using element = Element;
  using operand = accumulator_for<Element>;
  using accumulator = operand;
  static_assert(std::is_floating_point_v<accumulator>, "relative_entropy: floating-point numbers");
  static constexpr bool transcendental = true;
  RIGEL_MEMBER static accumulator identity() { return 0; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    using std::log;
    return a == 0 ? operand(0) : math::multiply(a, log(a / b));
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) { return math::add(x, y); }
};

/// How many entries are true in both of two rows, and in one of them only.
struct TruthCounts {
  std::int32_t both, first, second;
};

/// Measure::of(both, first only, second only, neither) of Boolean rows of `entries`: numbers that are 0 or not, or the bits of words.
/// Counts wrap beyond 2^31 − 1; they are exact, and the measure is computed in double, so that every backend has the same bits.
template <class Element, class Measure, bool packed>
struct truth_measure {
  using element = Element;
  using operand =
      typename std::conditional_t<packed, std::type_identity<counted_word<Element>>, std::type_identity<Element>>::type;
  using accumulator = TruthCounts;
  static constexpr bool exact = true;
  using self = truth_measure;
  double entries = 0;
  RIGEL_MEMBER static accumulator identity() { return {0, 0, 0}; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    if constexpr (packed) {
      return {math::population_count(a & b), math::population_count(a & ~b), math::population_count(b & ~a)};
    } else {
      const bool x = a != operand{}, y = b != operand{};
      return {x && y, x && !y, y && !x};
    }
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) {
    return {math::add(x.both, y.both), math::add(x.first, y.first), math::add(x.second, y.second)};
  }
  RIGEL_MEMBER double result(accumulator x) const {
    const double both = x.both, first = x.first, second = x.second;
    return Measure::of(both, first, second, entries - both - first - second);
  }
};

namespace metric {

/// Σ_k |x_k − z_k| / (|x_k| + |z_k|), where 0/0 counts 0 (G. N. Lance and W. T. Williams, Mixed-data classificatory programs, 1967).
/// Of floating-point numbers. |error| ≤ (K + 3)·u of it.
struct canberra {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(rigel::canberra<Element>{}, epilogue::Program{});
  }
};

/// Σ_k |x_k − z_k| / Σ_k |x_k + z_k|, NaN as 0/0 (J. R. Bray and J. T. Curtis, An ordination of the upland forest communities of
/// southern Wisconsin, 1957). |error| ≤ (2K + 3)·u of it.
struct braycurtis {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(rigel::braycurtis<Element>{}, epilogue::Program{});
  }
};

/// (Σ_k (√x_k − √z_k)² / 2)^½ of distributions (E. Hellinger, Neue Begründung der Theorie quadratischer Formen von unendlichvielen
/// Veränderlichen, 1909), NaN if a number is negative. skip_epilogue leaves the sum of squares.
struct hellinger {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(squared_roots<Element>{}, epilogue::scale(0.5) | epilogue::pow(0.5));
  }
};

/// Σ_k x_k·ln(x_k / z_k) of distributions, not symmetric; x_k = 0 counts 0, and it is infinite if z_k = 0 elsewhere (S. Kullback and
/// R. A. Leibler, On information and sufficiency, 1951). |error| ≤ (K + 4)·u·Σ_k |x_k·ln(x_k / z_k)| + 2u·Σ_k x_k.
struct kl_divergence {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(relative_entropy<Element>{}, epilogue::Program{});
  }
};

/// Measures of Boolean rows: t both true, f the first alone, s the second alone, n neither.
namespace measure {

/// (f + s) / (t + f + s), 0 of two rows without any (P. Jaccard, The distribution of the flora in the alpine zone, 1912).
struct jaccard {
  RIGEL_MEMBER static double of(double t, double f, double s, double) {
    const double any = t + f + s;
    return any == 0 ? 0. : (f + s) / any;
  }
};
/// (f + s) / (2t + f + s), NaN as 0/0 (L. R. Dice, Measures of the amount of ecologic association between species, 1945).
struct dice {
  RIGEL_MEMBER static double of(double t, double f, double s, double) { return (f + s) / (2 * t + f + s); }
};
/// 2(f + s) / (t + n + 2(f + s)) (D. J. Rogers and T. T. Tanimoto, A computer program for classifying plants, 1960).
struct rogerstanimoto {
  RIGEL_MEMBER static double of(double t, double f, double s, double n) { return 2 * (f + s) / (t + n + 2 * (f + s)); }
};
/// (f + s + n) / (t + f + s + n) (P. F. Russell and T. R. Rao, On habitat and association of species of anopheline larvae, 1940).
struct russellrao {
  RIGEL_MEMBER static double of(double t, double f, double s, double n) { return (f + s + n) / (t + f + s + n); }
};
/// 2(f + s) / (t + 2(f + s)), NaN as 0/0 (R. R. Sokal and P. H. A. Sneath, Principles of Numerical Taxonomy, 1963).
struct sokalsneath {
  RIGEL_MEMBER static double of(double t, double f, double s, double) { return 2 * (f + s) / (t + 2 * (f + s)); }
};
/// 2fs / (tn + fs), 0 if f or s is (G. U. Yule, On the methods of measuring association between two attributes, 1912).
struct yule {
  RIGEL_MEMBER static double of(double t, double f, double s, double n) {
    const double half = f * s;
    return half == 0 ? 0. : 2 * half / (t * n + half);
  }
};

}  // namespace measure

/// A measure of Boolean rows: of numbers, where all but 0 is true; with `packed`, of the bits of words of 8, 32 or 64 bits.
template <class Measure, bool packed>
struct boolean {
  static constexpr bool takes_words = packed;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    truth_measure<Element, Measure, packed> s;
    s.entries = static_cast<double>(k) * (packed ? 8.0 * sizeof(Element) : 1.0);
    return use(s, epilogue::Program{});
  }
};
using jaccard = boolean<measure::jaccard, false>;
using dice = boolean<measure::dice, false>;
using rogerstanimoto = boolean<measure::rogerstanimoto, false>;
using russellrao = boolean<measure::russellrao, false>;
using sokalsneath = boolean<measure::sokalsneath, false>;
using yule = boolean<measure::yule, false>;
using bit_dice = boolean<measure::dice, true>;
using bit_rogerstanimoto = boolean<measure::rogerstanimoto, true>;
using bit_russellrao = boolean<measure::russellrao, true>;
using bit_sokalsneath = boolean<measure::sokalsneath, true>;
using bit_yule = boolean<measure::yule, true>;

}  // namespace metric
}  // namespace rigel

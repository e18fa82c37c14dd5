// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The zoo: the semirings for which Rigel carries compiled kernels, one short struct each, its formula in the first line.
//
// Element types are float, double, half and bfloat16 (the last two accumulated in float), and int32, int64, int8 and uint8 (the
// last two accumulated in int32). Boolean semirings and those of codes take packed words. min_plus, max_plus, max_min and
// min_max also take int16, half and bfloat16 accumulated in the same type.
#pragma once

#include <rigel/elementary.hpp>
#include <rigel/semiring.hpp>

namespace rigel {

namespace detail {
template <class T>
struct wide {
  using type = T;
};
// clang-format off
template <> struct wide<half> { using type = float; };
template <> struct wide<bfloat16> { using type = float; };
template <> struct wide<std::int8_t> { using type = std::int32_t; };
template <> struct wide<std::uint8_t> { using type = std::int32_t; };
// clang-format on
}  // namespace detail

/// The accumulator of an element type: float for 16-bit floats, int32 for 8-bit integers, else the type itself.
template <class Element>
using accumulator_for = typename detail::wide<Element>::type;

/// The types of a semiring whose operands and accumulator have one type.
template <class Element, class Accumulator>
struct scalar_semiring {
  using element = Element;
  using operand = Accumulator;
  using accumulator = Accumulator;
  static constexpr bool takes_lanes = true;
};

/// C(m,n) = Σ_k A(m,k) · B(k,n): the matrix product, one fma per step. Integers wrap.
template <class Element, class Accumulator = accumulator_for<Element>>
struct plus_times : scalar_semiring<Element, Accumulator> {
  using self = plus_times;
  static constexpr const char* name = "plus_times";
  static constexpr bool commutative = true, exact = std::is_integral_v<Accumulator>;
  static constexpr ErrorModel errors = ErrorModel::products;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  RIGEL_MEMBER static constexpr Accumulator one() { return 1; }
  RIGEL_MEMBER static constexpr Accumulator annihilator() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::multiply(a, b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
  template <Number T> RIGEL_MEMBER static T step(T x, T a, T b) { return math::fma(a, b, x); }
};

/// C(m,n) = min_k A(m,k) + B(k,n): shortest paths. −∞ + +∞ is NaN, as IEEE 754 says.
template <class Element, class Accumulator = accumulator_for<Element>>
struct min_plus : scalar_semiring<Element, Accumulator> {
  using self = min_plus;
  static constexpr const char* name = "min_plus";
  static constexpr bool commutative = true, idempotent = true, selective = true, exact = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return infinity<Accumulator>(); }
  RIGEL_MEMBER static constexpr Accumulator one() { return 0; }
  RIGEL_MEMBER static constexpr Accumulator annihilator()
    requires(!std::is_integral_v<Accumulator>)
  {
    return infinity<Accumulator>();
  }
  /// Integer infinity does not absorb under ⊗. Values nearer to it than to 0 count as derived from it.
  RIGEL_MEMBER static constexpr bool is_no_path(Accumulator x)
    requires(std::is_integral_v<Accumulator>)
  {
    return x > infinity<Accumulator>() / 2;
  }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::add(a, b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::minimum(x, y); }
  template <Number T> RIGEL_MEMBER static T add_if_ordered(T x, T y) { return math::minimum_if_ordered(y, x); }
};

/// C(m,n) = max_k A(m,k) + B(k,n): longest paths, Viterbi scores.
template <class Element, class Accumulator = accumulator_for<Element>>
struct max_plus : scalar_semiring<Element, Accumulator> {
  using self = max_plus;
  static constexpr const char* name = "max_plus";
  static constexpr bool commutative = true, idempotent = true, selective = true, exact = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return negative_infinity<Accumulator>(); }
  RIGEL_MEMBER static constexpr Accumulator one() { return 0; }
  RIGEL_MEMBER static constexpr Accumulator annihilator()
    requires(!std::is_integral_v<Accumulator>)
  {
    return negative_infinity<Accumulator>();
  }
  /// Integer infinity does not absorb under ⊗. Values nearer to it than to 0 count as derived from it.
  RIGEL_MEMBER static constexpr bool is_no_path(Accumulator x)
    requires(std::is_integral_v<Accumulator>)
  {
    return x < negative_infinity<Accumulator>() / 2;
  }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::add(a, b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::maximum(x, y); }
  template <Number T> RIGEL_MEMBER static T add_if_ordered(T x, T y) { return math::maximum_if_ordered(y, x); }
};

/// C(m,n) = max_k min(A(m,k), B(k,n)): widest paths.
template <class Element, class Accumulator = accumulator_for<Element>>
struct max_min : scalar_semiring<Element, Accumulator> {
  using self = max_min;
  static constexpr const char* name = "max_min";
  static constexpr bool commutative = true, idempotent = true, selective = true, exact = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return negative_infinity<Accumulator>(); }
  RIGEL_MEMBER static constexpr Accumulator one() { return infinity<Accumulator>(); }
  RIGEL_MEMBER static constexpr Accumulator annihilator() { return negative_infinity<Accumulator>(); }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::minimum(a, b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::maximum(x, y); }
  template <Number T> RIGEL_MEMBER static T multiply_if_ordered(T a, T b) { return math::minimum_if_ordered(a, b); }
  template <Number T> RIGEL_MEMBER static T add_if_ordered(T x, T y) { return math::maximum_if_ordered(y, x); }
};

/// C(m,n) = min_k max(A(m,k), B(k,n)): minimax paths.
template <class Element, class Accumulator = accumulator_for<Element>>
struct min_max : scalar_semiring<Element, Accumulator> {
  using self = min_max;
  static constexpr const char* name = "min_max";
  static constexpr bool commutative = true, idempotent = true, selective = true, exact = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return infinity<Accumulator>(); }
  RIGEL_MEMBER static constexpr Accumulator one() { return negative_infinity<Accumulator>(); }
  RIGEL_MEMBER static constexpr Accumulator annihilator() { return infinity<Accumulator>(); }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::maximum(a, b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::minimum(x, y); }
  template <Number T> RIGEL_MEMBER static T multiply_if_ordered(T a, T b) { return math::maximum_if_ordered(a, b); }
  template <Number T> RIGEL_MEMBER static T add_if_ordered(T x, T y) { return math::minimum_if_ordered(y, x); }
};

/// C(m,n) = max_k A(m,k) · B(k,n), for non-negative numbers: most reliable paths. Integers wrap.
template <class Element, class Accumulator = accumulator_for<Element>>
struct max_times : scalar_semiring<Element, Accumulator> {
  using self = max_times;
  static constexpr const char* name = "max_times";
  static constexpr bool commutative = true, idempotent = true, selective = true, exact = true;
  static constexpr Domain domain = Domain::non_negative;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  RIGEL_MEMBER static constexpr Accumulator one() { return 1; }
  RIGEL_MEMBER static constexpr Accumulator annihilator() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::multiply(a, b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::maximum(x, y); }
  template <Number T> RIGEL_MEMBER static T add_if_ordered(T x, T y) { return math::maximum_if_ordered(y, x); }
};

/// C(m,n) = min_k A(m,k) · B(k,n), for non-negative numbers. Integers wrap.
template <class Element, class Accumulator = accumulator_for<Element>>
struct min_times : scalar_semiring<Element, Accumulator> {
  using self = min_times;
  static constexpr const char* name = "min_times";
  static constexpr bool commutative = true, idempotent = true, selective = true, exact = true;
  static constexpr Domain domain = Domain::non_negative;
  RIGEL_MEMBER static constexpr Accumulator identity() { return infinity<Accumulator>(); }
  RIGEL_MEMBER static constexpr Accumulator one() { return 1; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::multiply(a, b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::minimum(x, y); }
  template <Number T> RIGEL_MEMBER static T add_if_ordered(T x, T y) { return math::minimum_if_ordered(y, x); }
};

/// C(m,n) = ⋁_k A(m,k) ∧ B(k,n): reachability.
///
/// Operands of type uint8 are the bytes 0 and 1, no others. Words of 32 or 64 bits are combined bit by bit, each bit being a product of its own. If
/// bits are packed along K (K words hold 32·K or 64·K entries), the epilogue `any_bit()` joins the bits of a word into one.
template <class Word>
struct or_and {
  using element = Word;
  using accumulator = Word;
  using self = or_and;
  static constexpr const char* name = "or_and";
  static constexpr bool commutative = true, idempotent = true, exact = true;
  static constexpr bool selective = sizeof(Word) == 1, takes_lanes = true;
  static constexpr Domain domain = sizeof(Word) == 1 ? Domain::truth_values : Domain::words;
  static constexpr Join join = Join::any_bit;
  RIGEL_MEMBER static constexpr Word identity() { return 0; }
  RIGEL_MEMBER static constexpr Word one() { return sizeof(Word) == 1 ? Word(1) : static_cast<Word>(~Word(0)); }
  RIGEL_MEMBER static constexpr Word annihilator() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return static_cast<T>(a & b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return static_cast<T>(x | y); }
};

/// C(m,n) = ⊻_k A(m,k) ∧ B(k,n): products over GF(2). It takes words as or_and does; for bits packed along K the epilogue is
/// `parity()`.
template <class Word>
struct xor_and {
  using element = Word;
  using accumulator = Word;
  using self = xor_and;
  static constexpr const char* name = "xor_and";
  static constexpr bool commutative = true, exact = true, takes_lanes = true;
  static constexpr Domain domain = sizeof(Word) == 1 ? Domain::truth_values : Domain::words;
  static constexpr Join join = Join::parity;
  RIGEL_MEMBER static constexpr Word identity() { return 0; }
  RIGEL_MEMBER static constexpr Word one() { return sizeof(Word) == 1 ? Word(1) : static_cast<Word>(~Word(0)); }
  RIGEL_MEMBER static constexpr Word annihilator() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return static_cast<T>(a & b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return static_cast<T>(x ^ y); }
};

/// The accumulator of log_plus: Σ exp(t) = exp(maximum) · sum.
template <class T>
struct log_sum {
  T maximum, sum;
};

/// C(m,n) = log Σ_k exp(A(m,k) + B(k,n)). A running maximum keeps exponentials from overflowing, with one exponential per step
/// (M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, 2018). −∞ is the identity.
template <class Element, class Accumulator = accumulator_for<Element>>
struct log_plus {
  using element = Element;
  using operand = Accumulator;
  using accumulator = log_sum<Accumulator>;
  template <class V> using lanes_accumulator = log_sum<V>;
  using self = log_plus;
  static constexpr const char* name = "log_plus";
  static constexpr bool commutative = true, takes_lanes = true, transcendental = true;
  static constexpr ErrorModel errors = ErrorModel::logarithmic;
  RIGEL_MEMBER static constexpr accumulator identity() { return {-infinity<Accumulator>(), 0}; }
  RIGEL_MEMBER static constexpr Accumulator one() { return 0; }
  RIGEL_MEMBER static constexpr Accumulator annihilator() { return -infinity<Accumulator>(); }
  RIGEL_MEMBER static accumulator multiply(Accumulator a, Accumulator b) { return lift(math::add(a, b)); }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) {
    const Accumulator larger = math::maximum(x.maximum, y.maximum);
    return {larger,
            math::add(math::multiply(x.sum, weight(x.maximum, larger)), math::multiply(y.sum, weight(y.maximum, larger)))};
  }
  template <Lanes T> RIGEL_MEMBER static log_sum<T> add(log_sum<T> x, log_sum<T> y) {
    const T larger = math::maximum(x.maximum, y.maximum);
    return {larger,
            math::add(math::multiply(x.sum, weight(x.maximum, larger)), math::multiply(y.sum, weight(y.maximum, larger)))};
  }
  template <Number T> RIGEL_MEMBER static log_sum<T> step(log_sum<T> x, T a, T b) {
    const T t = math::add(a, b), larger = math::maximum(x.maximum, t);
    // The exponential of the smaller exponent relative to the larger one. Equal exponents, infinite ones included, give 1.
    const T gap = math::subtract(math::minimum(x.maximum, t), larger);
    const T e = math::exponential(math::select(x.maximum == t, T{}, noticed(gap)));
    const T one = T{} + 1;
    const auto keeps = x.maximum >= t;
    const T grown = math::select(keeps, math::add(x.sum, e), math::fma(x.sum, e, one));
    return {larger, math::select(t == T{} + -infinity<lane_t<T>>(), x.sum, grown)};
  }
  RIGEL_MEMBER static Accumulator result(accumulator x) {
    return x.sum == 0 ? x.maximum : math::add(x.maximum, math::logarithm(x.sum));
  }
  template <Lanes T> RIGEL_MEMBER static T result(log_sum<T> x) {
    return math::select(x.sum == T{}, x.maximum, math::add(x.maximum, math::logarithm(x.sum)));
  }
  RIGEL_MEMBER static constexpr accumulator lift(Accumulator c) { return {c, c == -infinity<Accumulator>() ? 0.f : 1.f}; }

 private:
  // The sum is at least 1, so it does not notice the exponential of less than this. A host takes as long for a subnormal result as for
  // a hundred others.
  template <class T> RIGEL_MEMBER static T noticed(T gap) {
    if constexpr (Lanes<T>) {
      constexpr lane_t<T> least = sizeof(lane_t<T>) == 4 ? -87 : -708;
      return math::select(gap < T{} + least, T{} + least, gap);
    } else {
      return gap;
    }
  }
  RIGEL_MEMBER static Accumulator weight(Accumulator of, Accumulator against) {
    return of == against ? 1 : math::exponential(math::subtract(of, against));
  }
  template <Lanes T> RIGEL_MEMBER static T weight(T of, T against) {
    return math::select(of == against, T{} + 1, math::exponential(noticed(math::subtract(of, against))));
  }
};

/// D(m,n) = Σ_k |A(m,k) − B(k,n)|: Manhattan distance. Integers wrap.
template <class Element, class Accumulator = accumulator_for<Element>>
struct l1 : scalar_semiring<Element, Accumulator> {
  using self = l1;
  static constexpr const char* name = "l1";
  static constexpr bool commutative = true, exact = std::is_integral_v<Accumulator>;
  static constexpr ErrorModel errors = ErrorModel::non_negative_terms;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::abs(math::subtract(a, b)); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
};

/// D(m,n) = Σ_k (A(m,k) − B(k,n))², by subtraction, one fma per step. Integers wrap.
template <class Element, class Accumulator = accumulator_for<Element>>
struct l2_squared : scalar_semiring<Element, Accumulator> {
  using self = l2_squared;
  static constexpr const char* name = "l2_squared";
  static constexpr bool commutative = true, exact = std::is_integral_v<Accumulator>;
  static constexpr ErrorModel errors = ErrorModel::non_negative_terms;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) {
    const T d = math::subtract(a, b);
    return math::multiply(d, d);
  }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
  template <Number T> RIGEL_MEMBER static T step(T x, T a, T b) {
    const T d = math::subtract(a, b);
    return math::fma(d, d, x);
  }
};

/// D(m,n) = Σ_k |A(m,k) − B(k,n)|^p, p > 0: the p-th power of the Minkowski distance. Powers beyond the accumulator's type are 0 or ∞.
template <class Element, class Accumulator = accumulator_for<Element>>
struct lp : scalar_semiring<Element, Accumulator> {
  using self = lp;
  static constexpr const char* name = "lp";
  static constexpr bool commutative = true, transcendental = true;
  static constexpr ErrorModel errors = ErrorModel::non_negative_terms;
  Accumulator p = 2;
  static auto hyperparameters() { return std::array{hyperparameter("p", &lp::p)}; }
  static constexpr lp sample() { return {{}, Accumulator(1.3125)}; }  // the same number in float and double
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER T multiply(T a, T b) const { return math::power(math::abs(math::subtract(a, b)), p); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
};

/// D(m,n) = max_k |A(m,k) − B(k,n)|: Chebyshev distance. Integers wrap.
template <class Element, class Accumulator = accumulator_for<Element>>
struct linf : scalar_semiring<Element, Accumulator> {
  using self = linf;
  static constexpr const char* name = "linf";
  static constexpr bool commutative = true, idempotent = true, selective = true, exact = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::abs(math::subtract(a, b)); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::maximum(x, y); }
  template <Number T> RIGEL_MEMBER static T add_if_ordered(T x, T y) { return math::maximum_if_ordered(y, x); }
};

/// D(m,n) = #{k : A(m,k) ≠ B(k,n)}: Hamming distance, counted in the accumulator's type (in float exact up to 2^24; metric::hamming
/// counts on).
template <class Element, class Accumulator = accumulator_for<Element>>
struct hamming : scalar_semiring<Element, Accumulator> {
  using self = hamming;
  static constexpr const char* name = "hamming";
  static constexpr bool commutative = true, exact = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) { return math::select(a != b, T{} + 1, T{}); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
};

/// The type in which the bits of a word are counted: bytes are widened to 32 bits.
template <class Word>
using counted_word = std::conditional_t<sizeof(Word) == 8, std::uint64_t, std::uint32_t>;

/// D(m,n) = Σ_k |A(m,k) ⊻ B(k,n)|, where |·| is the number of set bits: Hamming distance of codes whose bits are packed along
/// K in words of 8, 32 or 64 bits (R. W. Hamming, Error detecting and error correcting codes, 1950). The count wraps beyond
/// 2^31 − 1.
template <class Word>
struct bit_hamming {
  using element = Word;
  using operand = counted_word<Word>;
  using accumulator = std::int32_t;
  using self = bit_hamming;
  static constexpr const char* name = "bit_hamming";
  static constexpr bool commutative = true, exact = true, takes_lanes = true;
  static constexpr Domain domain = Domain::words;
  RIGEL_MEMBER static constexpr accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static auto multiply(T a, T b) { return math::population_count(a ^ b); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
};

/// The accumulator of bit_jaccard: how many bits are set in both codes, and how many in either.
template <class T>
struct bit_counts {
  T both, either;
};

/// D(m,n) = 1 − Σ_k |A(m,k) ∧ B(k,n)| / Σ_k |A(m,k) ∨ B(k,n)|, words as in bit_hamming: Jaccard distance of sets (P. Jaccard,
/// The distribution of the flora in the alpine zone, 1912), 0 for two empty sets.
///
/// The result is (either − both) / either in float. It is rounded once if the counts are at most 2^24, and within 3u above
/// that, since the counts are then rounded too. Both counts are exact, so it has the same bits on every backend. They wrap
/// beyond 2^31 − 1. A value of C does not determine the two counts, so accumulate is not defined.
template <class Word>
struct bit_jaccard {
  using element = Word;
  using operand = counted_word<Word>;
  using accumulator = bit_counts<std::int32_t>;
  using self = bit_jaccard;
  static constexpr const char* name = "bit_jaccard";
  static constexpr bool commutative = true, exact = true;
  static constexpr Domain domain = Domain::words;
  RIGEL_MEMBER static constexpr accumulator identity() { return {0, 0}; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    return {math::population_count(a & b), math::population_count(a | b)};
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) {
    return {math::add(x.both, y.both), math::add(x.either, y.either)};
  }
  RIGEL_MEMBER static float result(accumulator x) {
    const auto one_only = static_cast<float>(math::subtract(x.either, x.both));
    return x.either == 0 ? 0.f : one_only / static_cast<float>(x.either);
  }
};

/// above / below.
template <class T>
struct Quotient {
  T above, below;
};

/// How many entries are true in both of two rows, and in one of them only.
struct TruthCounts {
  std::int32_t both, first, second;
};

/// A distance of Boolean rows of `entries` truth values, the bits of words, of which no row has more that are set: the quotient Measure::of(both, first only, second only, neither),
/// and Measure::undefined where that is 0/0. Counts wrap beyond 2^31 − 1; they are exact, and the quotient is computed in double, so that
/// every backend has the same bits. A Measure (those of Rigel are in rigel/dissimilarities.hpp) is a struct of static members:
///
///   of(both, first, second, neither)   Quotient<T> of whole numbers, not negative, for T double or float; 0/0 if its lower number is 0
///   undefined                          what 0/0 counts as
///   largest_below(entries)             a bound of the lower number, and of half the upper one, in double
///   symmetric                          whether first and second may be swapped
template <class Word, class Measure>
struct truth_measure {
  using element = Word;
  using operand = counted_word<Word>;
  using accumulator = TruthCounts;
  using measure = Measure;
  using self = truth_measure;
  static constexpr bool exact = true, commutative = Measure::symmetric;
  static constexpr Domain domain = Domain::words;
  double entries = 0;
  RIGEL_MEMBER static accumulator identity() { return {0, 0, 0}; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    return {math::population_count(a & b), math::population_count(a & ~b), math::population_count(b & ~a)};
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) {
    return {math::add(x.both, y.both), math::add(x.first, y.first), math::add(x.second, y.second)};
  }
  RIGEL_MEMBER double result(accumulator x) const {
    const double both = x.both, first = x.first, second = x.second;
    const Quotient<double> q = Measure::of(both, first, second, entries - both - first - second);
    return q.below == 0 ? Measure::undefined : q.above / q.below;
  }
};

/// A value, and the summation index k that it came from.
template <class T>
struct argument {
  T value;
  std::int64_t index;
};

/// The selective semiring S, which also keeps the k that won. The smallest k wins a tie. A NaN wins over any number, the first
/// NaN over later ones. The index is −1 if K = 0.
template <Semiring S>
  requires is_selective<S> && MultipliesPairs<S>
struct with_argument {
  using self = with_argument;
  using element = typename S::element;
  using operand = operand_t<S>;
  using accumulator = argument<typename S::accumulator>;
  static constexpr bool commutative = is_commutative<S>, idempotent = true, selective = true, exact = is_exact<S>;
  static constexpr Domain domain = domain_of<S>;
  S semiring = {};
  RIGEL_MEMBER static constexpr accumulator identity() { return {S::identity(), -1}; }
  RIGEL_MEMBER accumulator multiply(operand a, operand b, std::int64_t k) const { return {semiring.multiply(a, b), k}; }
  RIGEL_MEMBER accumulator add(accumulator x, accumulator y) const {
    const bool x_is_nan = x.value != x.value, y_is_nan = y.value != y.value;
    const auto best = semiring.add(x.value, y.value);
    const bool x_wins = x_is_nan || best == x.value, y_wins = y_is_nan || best == y.value;
    // As an unsigned number, −1 (the index of the identity) is the largest index.
    const bool x_first = static_cast<std::uint64_t>(x.index) <= static_cast<std::uint64_t>(y.index);
    const bool take_x = x_wins && y_wins ? (x_is_nan == y_is_nan ? x_first : x_is_nan) : x_wins;
    return {take_x ? x.value : y.value, take_x ? x.index : y.index};  // member by member, which keeps it in registers
  }
};

/// A list of types.
template <class... T>
struct type_list {};

/// The element types with compiled kernels, by kind of semiring.
using number_elements = type_list<float, double, half, bfloat16, std::int32_t, std::int64_t, std::int8_t, std::uint8_t>;
using floating_elements = type_list<float, double, half, bfloat16>;
using word_elements = type_list<std::uint8_t, std::uint32_t, std::uint64_t>;
using packed_elements = type_list<std::int16_t, half, bfloat16>;  // with accumulators of the same type

namespace detail {
template <template <class...> class S, class List, class Packed = type_list<>>
struct members;
template <template <class...> class S, class... T, class... Packed>
struct members<S, type_list<T...>, type_list<Packed...>> {
  using type = type_list<S<T>..., S<Packed, Packed>...>;
};
template <class, class... T>
struct list_after {
  using type = type_list<T...>;
};
template <class S, class List>
inline constexpr bool contains = false;
template <class S, class... T>
inline constexpr bool contains<S, type_list<T...>> = (std::is_same_v<S, T> || ...);
}  // namespace detail

/// The zoo: X(name, element types[, element types that are accumulated in their own type]). This is its only list. Types,
/// registries and tests follow it, and so does the build: cmake/semirings.cmake reads these lines.
#define RIGEL_ZOO(X)                            \
  X(plus_times, number_elements)                \
  X(min_plus, number_elements, packed_elements) \
  X(max_plus, number_elements, packed_elements) \
  X(max_min, number_elements, packed_elements)  \
  X(min_max, number_elements, packed_elements)  \
  X(max_times, number_elements)                 \
  X(min_times, number_elements)                 \
  X(or_and, word_elements)                      \
  X(xor_and, word_elements)                     \
  X(log_plus, floating_elements)                \
  X(l1, number_elements)                        \
  X(l2_squared, number_elements)                \
  X(lp, floating_elements)                      \
  X(linf, number_elements)                      \
  X(hamming, number_elements)                   \
  X(bit_hamming, word_elements)                 \
  X(bit_jaccard, word_elements)

/// The compiled semirings of one name: `zoo::min_plus` lists min_plus<float>, min_plus<double>, …
namespace zoo {
#define RIGEL_ZOO_MEMBERS(name, ...) using name = detail::members<rigel::name, __VA_ARGS__>::type;
RIGEL_ZOO(RIGEL_ZOO_MEMBERS)
#undef RIGEL_ZOO_MEMBERS

/// The list of all these lists.
#define RIGEL_ZOO_NAME(name, ...) , name
using every = detail::list_after<void RIGEL_ZOO(RIGEL_ZOO_NAME)>::type;
#undef RIGEL_ZOO_NAME
}  // namespace zoo

namespace detail {
template <class S, class Lists>
inline constexpr bool contained_in_any = false;
template <class S, class... List>
inline constexpr bool contained_in_any<S, type_list<List...>> = (contains<S, List> || ...);

/// Calls visit.template operator()<List>() for each list of semirings in the zoo.
template <class Visit>
void for_each_of_zoo(const Visit& visit) {
  [&]<class... List>(type_list<List...>) { (visit.template operator()<List>(), ...); }(zoo::every{});
}
}  // namespace detail

/// Whether the library carries compiled kernels for S.
template <class S>
inline constexpr bool in_zoo = detail::contained_in_any<S, zoo::every>;

namespace detail {
template <class First, class... Rest>
constexpr std::string_view name_of(type_list<First, Rest...>) {
  return First::name;
}
constexpr bool is_name_of_zoo(std::string_view name) {
  return [&]<class... List>(type_list<List...>) { return ((name_of(List{}) == name) || ...); }(zoo::every{});
}
}  // namespace detail

/// The identity of a semiring's type in the registry: for a user's semiring an address that is unique to the type, whatever its
/// name; for the zoo, which goes by name, null. A shared object that hides its symbols has addresses of its own.
template <class S>
const void* semiring_type() {
  if constexpr (in_zoo<S>)
    return nullptr;
  else
    return &detail::type_tag<S>;
}

/// The name of a semiring in messages: S::name; or "::" and the type's own name, if S has no name or has one of the zoo's.
template <class S>
constexpr std::string_view semiring_name() {
  if constexpr (requires { std::string_view(S::name); })
    if (in_zoo<S> || !detail::is_name_of_zoo(S::name)) return S::name;
  return detail::qualified_name<S>;
}

}  // namespace rigel

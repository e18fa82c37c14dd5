// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Further metrics of cdist(), each with a semiring of its own: with a weight for each coordinate, of positions on a sphere, of abundances
// and distributions, and of Boolean rows. The library holds no kernels for them: a file that calls cdist() with one instantiates the tiles
// that it needs, as for a functor of yours.
#pragma once

#include <rigel/detail/wide_difference.hpp>
#include <rigel/distance.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace rigel {

/// A number for each coordinate, in memory that kernels read.
template <class Number>
struct PerCoordinate {
  const Number* data = nullptr;
  std::int64_t stride = 0;
  RIGEL_MEMBER Number operator[](std::int64_t k) const { return data[k * stride]; }
};

namespace detail {

/// Whether a condition holds, in one lane of vectors at least.
template <class Condition>
RIGEL_FUNCTION bool any(Condition condition) {
  if constexpr (std::is_integral_v<Condition>)
    return condition != 0;
  else
    return __builtin_reduce_or(condition) != 0;
}

/// t^p for t ≥ 0. A p of 1, 2 or 3 takes no power.
template <Number T>
RIGEL_FUNCTION T power_of(T t, lane_t<T> p) {
  if (p == 1) return t;
  const T square = math::multiply(t, t);
  return p == 2 ? square : p == 3 ? math::multiply(square, t) : math::power(t, p);
}

}  // namespace detail

/// Σ_k (a − b)² / variances_k. Where a variance is far from 1, differences are divided by its root before they are squared: of a subnormal
/// variance only that has a reciprocal. Elsewhere a root for each k would take half as long as all else.
template <class Element>
struct variance_squares : scalar_semiring<Element, accumulator_for<Element>> {
  using Accumulator = accumulator_for<Element>;
  using self = variance_squares;
  static_assert(std::is_floating_point_v<Accumulator>, "variance_squares: floating-point numbers");
  PerCoordinate<Accumulator> variances;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER T multiply(T a, T b, std::int64_t k) const {
    const Accumulator variance = variances[k];
    const T d = math::subtract(a, b);
    if (variance >= 1 / far && variance <= far) [[likely]]
      return math::multiply(math::multiply(d, d), T{} + 1 / variance);
    const T deviations = math::multiply(d, T{} + 1 / __builtin_elementwise_sqrt(variance));
    return math::multiply(deviations, deviations);
  }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }

 private:
  static constexpr Accumulator far = sizeof(Accumulator) == sizeof(float) ? Accumulator(0x1p60) : Accumulator(0x1p500);
};

/// Σ_k weights_k·|a − b|^p.
template <class Element>
struct weighted_lp : scalar_semiring<Element, accumulator_for<Element>> {
  using Accumulator = accumulator_for<Element>;
  using self = weighted_lp;
  static_assert(std::is_floating_point_v<Accumulator>, "weighted_lp: floating-point numbers");
  static constexpr bool transcendental = true;
  Accumulator p = 2;
  PerCoordinate<Accumulator> weights;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER T multiply(T a, T b, std::int64_t k) const {
    return math::multiply(detail::power_of(math::abs(math::subtract(a, b)), p), T{} + weights[k]);
  }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
};

/// Σ_k |a − b|^p, where differences below epsilon count 0.
template <class Element>
struct lp_with_epsilon : scalar_semiring<Element, accumulator_for<Element>> {
  using Accumulator = accumulator_for<Element>;
  using self = lp_with_epsilon;
  static_assert(std::is_floating_point_v<Accumulator>, "lp_with_epsilon: floating-point numbers");
  static constexpr bool transcendental = true;
  Accumulator p = 2, epsilon = 0;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER T multiply(T a, T b) const {
    const T d = math::abs(math::subtract(a, b));
    return math::select(d < T{} + epsilon, T{}, detail::power_of(d, p));
  }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
};

/// sin²(Δφ/2), cos φ·cos φ' and sin²(Δλ/2) of two positions.
template <class T>
struct half_angles {
  T latitudes, cosines, longitudes;
};

/// The half-angle formula of the great circle between two positions, of a latitude (k = 0) and a longitude (k = 1), in radians.
template <class Element>
struct great_circle {
  using element = Element;
  using operand = accumulator_for<Element>;
  using accumulator = half_angles<operand>;
  template <class V> using lanes_accumulator = half_angles<V>;
  using self = great_circle;
  static_assert(std::is_floating_point_v<operand>, "great_circle: floating-point numbers");
  static constexpr bool takes_lanes = true, transcendental = true;
  RIGEL_MEMBER static constexpr accumulator identity() { return {0, 0, 0}; }
  template <Number T> RIGEL_MEMBER static half_angles<T> multiply(T a, T b, std::int64_t k) {
    if (k != 0) {
      const T s = math::sine_of_half_difference(a, b);
      return {T{}, T{}, math::multiply(s, s)};
    }
    const T s = math::sine(math::multiply(T{} + operand(0.5), math::subtract(a, b)));
    return {math::multiply(s, s), math::multiply(math::cosine(a), math::cosine(b)), T{}};
  }
  template <class T> RIGEL_MEMBER static half_angles<T> add(half_angles<T> x, half_angles<T> y) {
    return {math::add(x.latitudes, y.latitudes), math::add(x.cosines, y.cosines), math::add(x.longitudes, y.longitudes)};
  }
  RIGEL_MEMBER static operand result(accumulator x) {
    const operand h = math::add(x.latitudes, math::multiply(x.cosines, x.longitudes));
    return 2 * math::arcsine_of_root(h > 1 ? operand(1) : h);  // antipodes are rounded beyond 1
  }
};

/// Σ_k |a − b| / (|a| + |b|), where 0/0 counts 0.
template <class Element>
struct canberra : scalar_semiring<Element, accumulator_for<Element>> {
  using Accumulator = accumulator_for<Element>;
  using self = canberra;
  static_assert(std::is_floating_point_v<Accumulator>, "canberra: floating-point numbers");
  static constexpr bool divides = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) {
    T sum = math::add(math::abs(a), math::abs(b));
    const auto overflows = sum > T{} + std::numeric_limits<Accumulator>::max();
    if (detail::any(overflows)) [[unlikely]] {  // a quotient of halves is the same
      a = math::select(overflows, a * Accumulator(0.5), a);
      b = math::select(overflows, b * Accumulator(0.5), b);
      sum = math::add(math::abs(a), math::abs(b));
    }
    return math::select(sum == T{}, T{}, math::abs(math::subtract(a, b)) / sum);
  }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }

  /// Whether x is 0, or so far from the limits of its type that step_if_regular() takes it.
  template <Lanes T> RIGEL_MEMBER static auto is_regular(T x) {
    constexpr bool single = std::is_same_v<Accumulator, float>;
    constexpr Accumulator least = single ? Accumulator(0x1p-100) : Accumulator(0x1p-900),
                          most = single ? Accumulator(0x1p125) : Accumulator(0x1p1000);
    const T size = math::abs(x);
    return (x == T{}) | ((size >= T{} + least) & (size <= T{} + most));
  }
  /// add(x, multiply(a, b)), where vectors have reciprocals with one instead of a division, which takes three times as long. The least
  /// normal number keeps the sum from 0, and changes no other.
  template <Lanes T> RIGEL_MEMBER static T step_if_regular(T x, T a, T b) {
    const T sum = math::add(math::abs(a), math::add(math::abs(b), T{} + std::numeric_limits<Accumulator>::min()));
    const T difference = math::abs(math::subtract(a, b));
    if constexpr (math::has_reciprocal<T>)
      return math::fma(difference, math::reciprocal(sum), x);
    else
      return math::add(x, difference / sum);
  }
  /// Whether that rounds otherwise than multiply() and add().
  template <Lanes T>
  static constexpr bool rounds_otherwise = math::has_reciprocal<T>;
  template <Lanes T>
    requires math::has_reciprocal<T>
  RIGEL_MEMBER static T step(T x, T a, T b) {
    return math::select(is_regular(a) & is_regular(b), step_if_regular(x, a, b), add(x, multiply(a, b)));
  }
};

/// Σ_k |a − b| / Σ_k |a + b|; of integers in double, of int64 with terms that are rounded once.
template <class Element>
struct braycurtis {
  using element = Element;
  using operand = accumulator_for<Element>;
  using Sum = std::conditional_t<std::is_same_v<operand, std::int64_t>, double, operand>;
  struct accumulator {
    Sum differences, sums;
  };
  RIGEL_MEMBER static accumulator identity() { return {0, 0}; }
  RIGEL_MEMBER static accumulator multiply(operand a, operand b) {
    if constexpr (std::is_same_v<operand, std::int64_t>)
      return {detail::wide_distance(a, b), detail::wide_sum(a, b)};
    else
      return {math::abs(math::subtract(a, b)), math::abs(math::add(a, b))};
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) {
    return {math::add(x.differences, y.differences), math::add(x.sums, y.sums)};
  }
  RIGEL_MEMBER static auto result(accumulator x) {
    using Result = std::conditional_t<std::is_floating_point_v<Sum>, Sum, double>;
    return static_cast<Result>(x.differences) / static_cast<Result>(x.sums);
  }
};

/// Σ_k a·ln(a/b), where a = 0 counts 0 unless b is NaN.
template <class Element>
struct relative_entropy : scalar_semiring<Element, accumulator_for<Element>> {
  using Accumulator = accumulator_for<Element>;
  using self = relative_entropy;
  static_assert(std::is_floating_point_v<Accumulator>, "relative_entropy: floating-point numbers");
  static constexpr bool transcendental = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) {
    using math::detail::to_bits;
    const T quotient = a / b;
    // Positive normal quotients, and those of a = 0, need no care.
    const auto beyond = to_bits(quotient) - to_bits(least) > math::detail::bits_t<T>{} + (to_bits(most) - to_bits(least));
    const auto is_special = beyond & ((a != T{}) | (b != b));
    const T term = math::select(a == T{}, T{}, math::multiply(a, math::positive_logarithm(quotient)));
    if (!detail::any(is_special)) [[likely]]
      return term;
    return math::select(is_special, math::select(a == T{}, b, math::multiply(a, logarithm(a, b))), term);
  }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }

 private:
  static constexpr Accumulator least = std::numeric_limits<Accumulator>::min(),
                               most = std::numeric_limits<Accumulator>::max();

  /// ln(a/b), a ≠ 0. Of m·2^e and n·2^f it is ln(m/n) + (e − f)·ln 2: quotients beyond the type's range have logarithms within it.
  template <Number T> RIGEL_MEMBER static T logarithm(T a, T b) {
    const T x = math::abs(a), y = math::abs(b), one = T{} + 1;
    const auto finite = (x <= T{} + most) & (y <= T{} + most) & (y != T{});
    const auto [m, e] = math::detail::split(math::select(finite, x, one));
    const auto [n, f] = math::detail::split(math::select(finite, y, one));
    const T log =
        math::add(math::logarithm(m / n), math::multiply(math::subtract(e, f), T{} + Accumulator(0.69314718055994531)));
    const auto signs_differ = (a < T{}) != (b < T{});
    return math::select(finite, math::select(signs_differ, T{} + std::numeric_limits<Accumulator>::quiet_NaN(), log),
                        math::logarithm(a / b));
  }
};

namespace detail {

// Coefficients of divergence_from_mean, by the Remez exchange algorithm in 60 digits.

/// Σ_j t^2j / (2(j + 1)(2j + 1)) as a polynomial in w = t² ≤ 0.36: relative error 6.1e-9, for double 3.5e-17.
template <Number T>
RIGEL_FUNCTION T divergence_of_near(T w) {
  if constexpr (std::is_same_v<lane_t<T>, float>) {
    constexpr float c[] = {0.5f, 0.0833329558f, 0.0333493985f, 0.0176028572f, 0.0129917813f, 0.000710884167f, 0.0167054199f};
    return math::detail::polynomial(w, c);
  } else {
    constexpr double c[] = {0.5,
                            0.083333333333323684,
                            0.033333333335292661,
                            0.017857142700221981,
                            0.011111117679644525,
                            0.0075755924507750249,
                            0.0054972047100754805,
                            0.0041365649821237587,
                            0.0035035230556672414,
                            0.001321076338610583,
                            0.0073459149464588439,
                            -0.012510963553012053,
                            0.028131972066722261,
                            -0.029086160908256928,
                            0.018274859997820872};
    return math::detail::polynomial(w, c);
  }
}

/// ln 2 + (1 − y)·ln(1 − y), 0 ≤ y ≤ 0.2: off by 5.6e-8 of h below, for double 6.4e-17.
template <Number T>
RIGEL_FUNCTION T divergence_of_far(T y) {
  if constexpr (std::is_same_v<lane_t<T>, float>) {
    constexpr float c[] = {0.693147182f, -0.999998987f, 0.499951303f, 0.167572841f, 0.0756702796f, 0.078927137f};
    return math::detail::polynomial(y, c);
  } else {
    constexpr double c[] = {0.69314718055994529,  -0.9999999999999698,  0.4999999999935234,     0.166666667218766,
                            0.083333308794677693, 0.050000647168548441, 0.033322485625198198,   0.02392910501505225,
                            0.016982876763403817, 0.018050473139549425, -0.0010393958313974949, 0.027674456065245878};
    return math::detail::polynomial(y, c);
  }
}

}  // namespace detail

/// Σ_k a·ln(a/m) + b·ln(b/m), m = (a + b)/2, where a = 0 (b = 0) makes its part 0, and ∞ for a negative number.
/// With s = a + b, t = (a − b)/s and y = min(a, b)/s a term is s·h. Its two parts cancel for small t:
///
///   h = t²·(1/2 + t²/12 + t⁴/30 + …)              if |t| < 0.6
///   h = ln 2 + (1 − y)·ln(1 − y) + y·ln y         else
template <class Element>
struct divergence_from_mean : scalar_semiring<Element, accumulator_for<Element>> {
  using Accumulator = accumulator_for<Element>;
  using self = divergence_from_mean;
  static_assert(std::is_floating_point_v<Accumulator>, "divergence_from_mean: floating-point numbers");
  static constexpr bool transcendental = true;
  RIGEL_MEMBER static constexpr Accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T multiply(T a, T b) {
    const T sum = math::add(a, b), size = math::abs(math::subtract(a, b));
    const auto far = size >= math::multiply(T{} + Accumulator(0.6), sum);
    const T v = math::select(far, math::select(a < b, a, b), size) / math::select(sum == T{}, T{} + 1, sum);
    // The logarithm sees no 0. What it sees instead of a tiny y changes nothing.
    constexpr Accumulator tiny = Accumulator(0x1p-100);
    const T log = math::positive_logarithm(math::select(v > T{} + tiny, v, T{} + tiny)), square = math::multiply(v, v);
    const T h = math::select(far, math::detail::multiply_add(v, log, detail::divergence_of_far(v)),
                             math::multiply(square, detail::divergence_of_near(square)));
    return math::select((a < T{}) | (b < T{}), T{} + infinity<Accumulator>(), math::multiply(sum, h));
  }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }
};

namespace detail {

/// The numbers of a metric's view, one for each of the K coordinates. Throws Error(invalid_argument) if there are not K of them.
template <class Number, class View>
PerCoordinate<Number> per_coordinate(const View& view, std::int64_t k, const char* what) {
  static_assert(View::rank() == 1 && std::is_same_v<typename View::non_const_value_type, Number>,
                "cdist: a metric's view of rank 1 holds floats, doubles where X holds doubles");
  if (static_cast<std::int64_t>(view.extent(0)) != k)
    throw Error(Code::invalid_argument, std::string("cdist: ") + what + " '" + view.label() + "' are " +
                                            std::to_string(view.extent(0)) + " numbers, expected " + std::to_string(k) +
                                            ", one for each column of X");
  if (k > 0 && !view.data())
    throw Error(Code::invalid_argument, std::string("cdist: ") + what + " '" + view.label() + "' have no data");
  return {view.data(), static_cast<std::int64_t>(view.stride(0))};
}

}  // namespace detail

namespace metric {

/// (Σ_k (x_k − z_k)² / variances_k)^½, the standardised Euclidean distance. `variances`: a view of K floats, of doubles where X holds
/// doubles. Of floating-point numbers. |error| ≤ (K/2 + 5)·u of it. A variance of 0 gives ∞, or NaN where x_k = z_k.
/// skip_epilogue leaves the square. Variances may be subnormal. They are read for each k, and no product on tensor cores takes part: where a rounding of each
/// coordinate is harmless, columns divided by the standard deviations beforehand, and euclidean, are faster.
template <class View>
struct seuclidean {
  using memory_space = typename View::memory_space;
  View variances;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    variance_squares<Element> s;
    s.variances = rigel::detail::per_coordinate<accumulator_for<Element>>(variances, k, "seuclidean's variances");
    return use(s, epilogue::pow(0.5));
  }
};

/// minkowski for a finite p > 0, where differences |x_k − z_k| below epsilon ≥ 0 count 0, as in cdist_gradient(). Of floating-point numbers.
/// It has no tuned kernels. For p and epsilon of each batch: minkowski of a view of lp_with_epsilon<Element>.
struct minkowski_with_epsilon {
  double p, epsilon;
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    rigel::detail::require_power("minkowski_with_epsilon", p);
    if (!(epsilon >= 0 && std::isfinite(epsilon)))
      throw Error(Code::invalid_argument, "minkowski_with_epsilon's epsilon is " + std::to_string(epsilon) +
                                              ", expected a finite number, 0 or more");
    lp_with_epsilon<Element> s;
    s.p = static_cast<accumulator_for<Element>>(p);
    s.epsilon = static_cast<accumulator_for<Element>>(epsilon);
    return use(s, p == 1 ? epilogue::Program{} : epilogue::pow(1 / p));
  }
};

/// (Σ_k weights_k·|x_k − z_k|^p)^(1/p) for a finite p > 0. `weights`: a view as seuclidean's, of numbers that are not negative. Of
/// floating-point numbers. |error| ≤ ((K + p + 2)·u + e)/p of it, and the root's; e, the error of a power, is u for p = 1 and 2, else at most
/// (8 + 2p)·u. skip_epilogue leaves the sum.
template <class View>
struct weighted_minkowski {
  using memory_space = typename View::memory_space;
  double p;
  View weights;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    rigel::detail::require_power("weighted_minkowski", p);
    weighted_lp<Element> s;
    s.p = static_cast<accumulator_for<Element>>(p);
    s.weights = rigel::detail::per_coordinate<accumulator_for<Element>>(weights, k, "weighted_minkowski's weights");
    return use(s, p == 1 ? epilogue::Program{} : epilogue::pow(1 / p));
  }
};

/// 2·arcsin (sin²((φ − φ')/2) + cos φ·cos φ'·sin²((λ − λ')/2))^½: the angle between positions (φ, λ) on a sphere, latitude and
/// longitude in radians, the two columns of X and Z (as scikit-learn's haversine; R. W. Sinnott, Virtues of the haversine, 1984). Of
/// floating-point numbers. Near points keep their relative accuracy, also across the antimeridian, and around 0 of longitudes from 0 to
/// 2π; near antipodes it is off by up to √u.
struct haversine {
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    if (k != 2)
      throw Error(Code::invalid_argument, "cdist: X has " + std::to_string(k) +
                                              " columns, expected haversine's 2: latitude and longitude, in radians");
    return use(great_circle<Element>{}, epilogue::Program{});
  }
};

/// (½·Σ_k p_k·ln(p_k/m_k) + q_k·ln(q_k/m_k))^½, p and q the rows divided by their sums, m = (p + q)/2 (J. Lin, Divergence measures based
/// on the Shannon entropy, 1991; the root: D. M. Endres and J. E. Schindelin, A new metric for probability distributions, 2003). ∞ if a
/// number is negative or a row has the sum 0, as SciPy's cdist has it. Rows are prepared, as for cosine; numbers may be counts. Rows that
/// are nearly equal do not cancel. With S = D², and u that of row<Element>,
///     |error of S| ≤ (K + K/16 + 50)·u·S + 3·u·√S + ((K/32 + 8)·u)²      (docs/numerics.md)
/// skip_epilogue leaves 2·S.
struct jensenshannon {
  static constexpr Preparation preparation = {.sums_to_one = true};
  template <class Element>
  using row = prepared_row<Element>;
  template <class Row, class Use>
  auto with(std::int64_t k, const Use& use) const {
    return use(divergence_from_mean<Row>{},
               k > 0 ? epilogue::scale(0.5) | epilogue::pow(0.5) : epilogue::add(std::numeric_limits<double>::infinity()));
  }
};

/// Σ_k |x_k − z_k| / (|x_k| + |z_k|), where 0/0 counts 0 (G. N. Lance and W. T. Williams, Mixed-data classificatory programs, 1967).
/// Of floating-point numbers. |error| ≤ (K + 4)·u of it.
struct canberra {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(rigel::canberra<Element>{}, epilogue::Program{});
  }
};

/// Σ_k |x_k − z_k| / Σ_k |x_k + z_k|, NaN as 0/0 (J. R. Bray and J. T. Curtis, An ordination of the upland forest communities of
/// southern Wisconsin, 1957). |error| ≤ (2K + 3)·u of it.
struct braycurtis {
  template <class Element>
  static constexpr std::int64_t most_columns =
      std::is_same_v<Element, std::int64_t> ? std::numeric_limits<std::int64_t>::max()
                                            : rigel::detail::terms_that_fit<Element>(510);
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(rigel::braycurtis<Element>{}, epilogue::Program{});
  }
};

/// (Σ_k (√x_k − √z_k)² / 2)^½ of distributions (E. Hellinger, Neue Begründung der Theorie quadratischer Formen von unendlichvielen
/// Veränderlichen, 1909), NaN if a number is negative. A pass takes the roots, once for each number; all else is as with euclidean of those.
/// With S the sum, and e the relative error of squared_euclidean's, |error of S| ≤ e·S + 2.1·u·Σ_k |√x_k − √z_k|·(√x_k + √z_k).
/// skip_epilogue leaves the sum of squares.
struct hellinger {
  static constexpr Preparation preparation = {.roots = true};
  template <class Element>
  using row = prepared_row<Element>;
  template <class Row, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(l2_squared<Row>{}, epilogue::scale(0.5) | epilogue::pow(0.5));
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

/// Measures of Boolean rows, t both true, f the first alone, s the second alone, n neither: quotients of whole numbers, for truth_measure.
namespace measure {

/// (f + s) / (t + f + s), 0 of two rows without any (P. Jaccard, The distribution of the flora in the alpine zone, 1912).
struct jaccard {
  static constexpr bool symmetric = true;
  static constexpr double undefined = 0;
  static constexpr double largest_below(double entries) { return entries; }
  template <class T> RIGEL_MEMBER static Quotient<T> of(T t, T f, T s, T) { return {f + s, t + f + s}; }
};
/// (f + s) / (2t + f + s), NaN as 0/0 (L. R. Dice, Measures of the amount of ecologic association between species, 1945).
struct dice {
  static constexpr bool symmetric = true;
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  static constexpr double largest_below(double entries) { return 2 * entries; }
  template <class T> RIGEL_MEMBER static Quotient<T> of(T t, T f, T s, T) { return {f + s, 2 * t + f + s}; }
};
/// 2(f + s) / (t + n + 2(f + s)), NaN of rows without entries (D. J. Rogers and T. T. Tanimoto, A computer program for classifying
/// plants, 1960).
struct rogerstanimoto {
  static constexpr bool symmetric = true;
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  static constexpr double largest_below(double entries) { return 2 * entries; }
  template <class T> RIGEL_MEMBER static Quotient<T> of(T t, T f, T s, T n) { return {2 * (f + s), t + n + 2 * (f + s)}; }
};
/// (f + s + n) / (t + f + s + n), NaN of rows without entries (P. F. Russell and T. R. Rao, On habitat and association of species of
/// anopheline larvae, 1940).
struct russellrao {
  static constexpr bool symmetric = true;
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  static constexpr double largest_below(double entries) { return entries; }
  template <class T> RIGEL_MEMBER static Quotient<T> of(T t, T f, T s, T n) { return {f + s + n, t + f + s + n}; }
};
/// 2(f + s) / (t + 2(f + s)), NaN as 0/0 (R. R. Sokal and P. H. A. Sneath, Principles of Numerical Taxonomy, 1963).
struct sokalsneath {
  static constexpr bool symmetric = true;
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  static constexpr double largest_below(double entries) { return 2 * entries; }
  template <class T> RIGEL_MEMBER static Quotient<T> of(T t, T f, T s, T) { return {2 * (f + s), t + 2 * (f + s)}; }
};
/// 2fs / (tn + fs), 0 if f or s is (G. U. Yule, On the methods of measuring association between two attributes, 1912).
struct yule {
  static constexpr bool symmetric = true;
  static constexpr double undefined = 0;
  // Of t and n, or of f and s, each half of the entries.
  static constexpr double largest_below(double entries) { return entries * entries / 4; }
  template <class T> RIGEL_MEMBER static Quotient<T> of(T t, T f, T s, T n) { return {2 * (f * s), t * n + f * s}; }
};

}  // namespace measure

/// A measure of Boolean rows, the bits of words of 8, 32 or 64 bits.
template <class Measure>
struct bit_boolean {
  static constexpr bool takes_words = true;
  template <class Word, class Use>
  auto with(std::int64_t k, const Use& use) const {
    rigel::detail::require_countable_bits<Word>("a measure of bits", k);
    truth_measure<Word, Measure> s;
    s.entries = static_cast<double>(k) * 8.0 * sizeof(Word);
    return use(s, epilogue::Program{});
  }
};
/// A measure of Boolean rows of numbers, where all but 0 is true. A pass packs their truth values first.
template <class Measure>
struct boolean {
  static constexpr Preparation preparation = {.packed = true};
  template <class>
  using row = std::uint32_t;
  template <class Row, class Use>
  auto with(std::int64_t k, const Use& use) const {
    rigel::detail::require_countable_bits<Row>("a Boolean measure", rigel::detail::packed_words(k));
    truth_measure<Row, Measure> s;
    s.entries = static_cast<double>(k);
    return use(s, epilogue::Program{});
  }
};
using jaccard = boolean<measure::jaccard>;
using dice = boolean<measure::dice>;
using rogerstanimoto = boolean<measure::rogerstanimoto>;
using russellrao = boolean<measure::russellrao>;
using sokalsneath = boolean<measure::sokalsneath>;
using yule = boolean<measure::yule>;
using bit_dice = bit_boolean<measure::dice>;
using bit_rogerstanimoto = bit_boolean<measure::rogerstanimoto>;
using bit_russellrao = bit_boolean<measure::russellrao>;
using bit_sokalsneath = bit_boolean<measure::sokalsneath>;
using bit_yule = bit_boolean<measure::yule>;

}  // namespace metric
}  // namespace rigel

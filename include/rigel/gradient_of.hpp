// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functors of contract_gradient() (rigel/gradient.hpp): what one is, and Rigel's own, the derivatives of Minkowski's distances. No
// Kokkos here.
#pragma once

#include <rigel/elementary.hpp>
#include <rigel/semirings.hpp>

#include <concepts>
#include <limits>
#include <type_traits>

namespace rigel {

/// A functor of contract_gradient(): trivially copyable, with
///
///     using element      the type of A, B, C and D
///     using accumulator  the arithmetic type of everything else, and of Out
///     identity()         of ⊕
///     multiply(d, b, a)  the derivative of one distance by one coordinate, times a weight
///     accumulate(x, c, v)  x ⊕ c·v, v a value of multiply()
///     add(x, y)          x ⊕ y, which joins the sums of parts of K
///
/// Optional members:
///
///     at(l)      the functor for batch l, for hyperparameters in memory that kernels can read
///     result(x)  what Out receives: the epilogue, applied once to each result
///     name       a static text, for kernels' names
///
/// Members that are templates on the number type take vectors on hosts, if they use the operations of rigel::math.
template <class G>
concept GradientFunctor = std::is_trivially_copyable_v<G> && std::is_arithmetic_v<typename G::accumulator> &&
                          requires(const G g, typename G::element e, typename G::accumulator x) {
                            { static_cast<typename G::accumulator>(e) };
                            { g.identity() } -> std::convertible_to<typename G::accumulator>;
                            { g.multiply(x, x, x) } -> std::convertible_to<typename G::accumulator>;
                            { g.accumulate(x, x, x) } -> std::convertible_to<typename G::accumulator>;
                            { g.add(x, x) } -> std::convertible_to<typename G::accumulator>;
                          };

namespace detail {

/// The functor of one batch.
template <class G>
RIGEL_FUNCTION G functor_at(const G& g, std::int64_t l) {
  if constexpr (requires { g.at(l); })
    return g.at(l);
  else
    return g;
}

/// What Out receives.
template <class G>
RIGEL_FUNCTION typename G::accumulator gradient_result(const G& g, typename G::accumulator x) {
  if constexpr (requires { g.result(x); })
    return g.result(x);
  else
    return x;
}

/// Sums Σ_k c·v, and differences that are small or none.
template <class Element>
struct gradient_sum {
  using element = Element;
  using accumulator = accumulator_for<Element>;
  /// Differences smaller than this have no derivative, 0 and NaN-free, whatever the weight: the subgradient 0 of points that coincide.
  accumulator least = smallest;

  gradient_sum() = default;
  explicit gradient_sum(accumulator epsilon) : least(epsilon > smallest ? epsilon : smallest) {}
  RIGEL_MEMBER static constexpr accumulator identity() { return 0; }
  template <Number T> RIGEL_MEMBER static T accumulate(T x, T c, T v) { return math::fma(c, v, x); }
  template <Number T> RIGEL_MEMBER static T add(T x, T y) { return math::add(x, y); }

 protected:
  static constexpr accumulator smallest = std::numeric_limits<accumulator>::denorm_min();
  template <Number T> RIGEL_MEMBER T unless_small(T difference, T value) const {
    return math::select(math::abs(difference) < T{} + least, T{}, value);
  }
  /// The same for a value with the factor a: 0, too, if a is 0, although the other factor may be infinite. NaN stays.
  template <Number T> RIGEL_MEMBER T unless_small(T difference, T a, T value) const {
    const accumulator below = math::detail::from_bits<accumulator>(math::detail::to_bits(least) - 1);
    return math::select(math::abs(difference) <= math::select(a == T{}, T{} + infinity<accumulator>(), T{} + below), T{},
                        value);
  }
};

}  // namespace detail

/// The derivative of (1/p)·Σ|d − b|^p by one coordinate d, times a weight a: a·sign(d − b)·|d − b|^(p−1), and 0 if |d − b| < epsilon,
/// d = b, or a = 0. Where d or b is NaN it is NaN, but manhattan's is ±a by the sign bit. The derivative of (Σ|d − b|^p)^(1/p) is that
/// with the weight over the (p−1)-th power of the distance.
namespace gradient_of {

/// p = 1: a·sign(d − b).
template <class Element>
struct manhattan : detail::gradient_sum<Element> {
  using detail::gradient_sum<Element>::gradient_sum;
  static constexpr const char* name = "manhattan";
  template <Number T> RIGEL_MEMBER T multiply(T d, T b, T a) const {
    const T difference = math::subtract(d, b);
    return multiply_by(difference, a * __builtin_elementwise_copysign(T{} + 1, difference));
  }
  /// The same with a·sign(d − b) from the caller.
  template <Number T> RIGEL_MEMBER T multiply_by(T difference, T value) const {
    return this->unless_small(difference, value);
  }
};

/// p = 2: a·(d − b).
template <class Element>
struct euclidean : detail::gradient_sum<Element> {
  using detail::gradient_sum<Element>::gradient_sum;
  static constexpr const char* name = "euclidean";
  template <Number T> RIGEL_MEMBER T multiply(T d, T b, T a) const {
    const T difference = math::subtract(d, b);
    return this->unless_small(difference, a, math::multiply(a, difference));
  }
};

/// Any p > 0: one for all batches, or one for each.
template <class Element>
struct minkowski : detail::gradient_sum<Element> {
  using base = detail::gradient_sum<Element>;
  using accumulator = typename base::accumulator;
  static constexpr const char* name = "minkowski";
  accumulator exponent = 1;             // p − 1
  const accumulator* powers = nullptr;  // p of each batch, in memory that kernels read; null: the exponent above
  std::int64_t stride = 0;              // of powers, from batch to batch

  minkowski() = default;
  explicit minkowski(double p, accumulator epsilon = 0) : base(epsilon), exponent(static_cast<accumulator>(p - 1)) {}
  minkowski(const accumulator* p, std::int64_t p_stride, accumulator epsilon = 0)
      : base(epsilon), powers(p), stride(p_stride) {}
  RIGEL_MEMBER minkowski at(std::int64_t l) const {
    minkowski one = *this;
    if (powers) one.exponent = powers[l * stride] - 1;
    one.powers = nullptr;
    return one;
  }
  template <Number T> RIGEL_MEMBER T multiply(T d, T b, T a) const {
    const T difference = math::subtract(d, b);
    return multiply_by(difference, math::power(math::abs(difference), exponent), a);
  }
  /// The same with |d − b|^(p−1) from the caller.
  template <Number T> RIGEL_MEMBER T multiply_by(T difference, T power, T a) const {
    return this->unless_small(difference, a, math::multiply(a, __builtin_elementwise_copysign(power, difference)));
  }
};

}  // namespace gradient_of

namespace detail {

using gradient_functors =
    type_list<gradient_of::manhattan<float>, gradient_of::manhattan<double>, gradient_of::euclidean<float>,
              gradient_of::euclidean<double>, gradient_of::minkowski<float>, gradient_of::minkowski<double>>;
template <class G, class List>
inline constexpr bool is_in = false;
template <class G, class... List>
inline constexpr bool is_in<G, type_list<List...>> = (std::is_same_v<G, List> || ...);

/// Whether the library carries compiled kernels for a functor.
template <class G>
inline constexpr bool is_compiled_gradient = is_in<G, gradient_functors>;

}  // namespace detail

/// The identity of a functor's type: as semiring_type() and semiring_name().
template <class G>
const void* gradient_type() {
  if constexpr (detail::is_compiled_gradient<G>)
    return nullptr;
  else
    return &detail::type_tag<G>;
}
template <class G>
constexpr std::string_view gradient_name() {
  if constexpr (requires { std::string_view(G::name); })
    return G::name;
  else
    return detail::qualified_name<G>;
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles by semiring, from the sizes of its types: as many outputs per thread as 255 registers allow next to the operands,
// without a spill. If ⊗ takes dozens of instructions (an exponential, a power), reading operands is cheap in comparison and
// unrolled code would be long, so threads hold few outputs.
#pragma once

#include <rigel/backends/cuda/simt/packed.hpp>
#include <rigel/backends/cuda/tile/shape.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/ordered.hpp>
#include <rigel/semirings.hpp>

#include <string_view>
#include <type_traits>

namespace rigel {
template <class Element>
struct canberra;
template <class Element>
struct divergence_from_mean;
template <class Element>
struct relative_entropy;
template <class Element>
struct weighted_lp;
template <class Element>
struct lp_with_epsilon;
}  // namespace rigel

namespace rigel::backends::simt {

/// Instructions of a term in steps that are made for a GPU (metrics.hpp); 0 if a metric has none. Tiles then compute sums differently
/// than the semiring's definition does.
template <class S>
inline constexpr double instructions_of_metric = 0;
template <>
inline constexpr double instructions_of_metric<canberra<float>> = 8;
template <>
inline constexpr double instructions_of_metric<divergence_from_mean<float>> = 22;
template <>
inline constexpr double instructions_of_metric<relative_entropy<float>> = 21;
template <>
inline constexpr double instructions_of_metric<weighted_lp<float>> = 12;
template <>
inline constexpr double instructions_of_metric<lp_with_epsilon<float>> = 12;
template <class S>
inline constexpr bool has_steps_of_metric = instructions_of_metric<S> > 0;

/// Whether ptxas keeps temporaries for many outputs while it evaluates ⊗. It does so for comparisons that are then counted
/// (except of floats, where one instruction gives 1 or 0), for counts of bits, and for products of 64-bit integers.
template <class S>
inline constexpr bool needs_temporaries = false;
template <class E, class A>
inline constexpr bool needs_temporaries<hamming<E, A>> = !std::is_same_v<A, float>;
template <class W>
inline constexpr bool needs_temporaries<bit_hamming<W>> = true;
template <class W>
inline constexpr bool needs_temporaries<bit_jaccard<W>> = true;
template <class E, class A>
inline constexpr bool needs_temporaries<l2_squared<E, A>> = std::is_integral_v<A> && sizeof(A) == 8;

/// Sums of powers and of exponentials in float and double, which have steps of their own in powers.hpp and steps.hpp.
template <class S>
inline constexpr bool sums_powers = false;
template <class E>
inline constexpr bool sums_powers<lp<E, float>> = true;
template <class E>
inline constexpr bool sums_powers<lp<E, double>> = true;
/// Whether special functions can give the powers: those of floats.
template <class S>
inline constexpr bool has_special_powers = sums_powers<S> && std::is_same_v<typename S::accumulator, float>;
/// Whether exponents that are multiples of 1/2 have kernels of their own: for floats and doubles, but not again for each
/// user's epilogue.
template <class S, class Finish>
inline constexpr bool powers_by_products =
    std::is_floating_point_v<typename S::element> && std::is_same_v<typename S::element, typename S::accumulator> &&
    std::is_same_v<Finish, detail::ProgramFinish>;
template <class S>
inline constexpr bool sums_exponentials = false;
template <class E>
inline constexpr bool sums_exponentials<log_plus<E, float>> = true;
template <class E>
inline constexpr bool sums_exponentials<log_plus<E, double>> = true;

/// Whether ⊕ or ⊗ is a minimum or maximum of doubles. No instruction has these. If no product is NaN, a comparison and two
/// selections of 32 bits give one; else it takes two comparisons.
template <class S>
inline constexpr bool compares_doubles =
    std::is_same_v<typename S::element, double> && std::is_same_v<typename S::accumulator, double> && in_zoo<S> &&
    (detail::has_ordered_add<S> || detail::has_ordered_multiply<S>);

/// 32-bit population counts per ⊗; a GPU has a quarter of the units for them.
template <class S>
inline constexpr int bit_counts_of = 0;
template <class W>
inline constexpr int bit_counts_of<bit_hamming<W>> = sizeof(W) == 8 ? 2 : 1;
template <class W>
inline constexpr int bit_counts_of<bit_jaccard<W>> = sizeof(W) == 8 ? 4 : 2;

/// Registers per value.
template <class T>
inline constexpr int registers_of = (static_cast<int>(sizeof(T)) + 3) / 4;

/// Whether steps are a few instructions, without temporaries.
template <class S>
inline constexpr bool is_light = !is_transcendental<S> && !needs_temporaries<S> && !has_steps_of_metric<S>;

/// Whether ⊗ takes 32-bit elements without conversion, so that they can come in vectors.
template <class S>
inline constexpr bool in_vectors =
    (std::is_same_v<typename S::element, float> || std::is_same_v<typename S::element, std::int32_t> ||
     std::is_same_v<typename S::element, std::uint32_t>) &&
    std::is_same_v<operand_t<S>, typename S::element> && registers_of<typename S::accumulator> == 1 && is_light<S>;

/// Light semirings of floats, users' functors among them. Predicted times were fitted to six of the zoo's.
template <class S>
inline constexpr bool is_light_float = in_vectors<S> && std::is_same_v<typename S::element, float>;

/// Light semirings of 16-bit floats that sum in float: their operands are converted on the way to shared memory.
template <class S>
inline constexpr bool widens = ShortFloat<typename S::element> && std::is_same_v<operand_t<S>, float> &&
                               std::is_same_v<typename S::accumulator, float> && is_light<S>;

/// Light semirings whose slabs hold floats, and one of the zoo on floats.
template <class S>
inline constexpr bool computes_floats = is_light_float<S> || widens<S>;
template <class S>
struct on_floats {
  using type = S;
};
template <template <class, class> class Semiring, class E>
  requires(in_zoo<Semiring<E, float>> && widens<Semiring<E, float>>)
struct on_floats<Semiring<E, float>> {
  using type = Semiring<float, float>;
};
template <class S>
using OnFloats = typename on_floats<S>::type;

/// Whether ⊗ is a user's, and must see elements of A and B only: rows and columns of a tile beyond C's then repeat others.
/// The zoo's takes any bits.
template <class S>
inline constexpr bool sees_elements_alone = !in_zoo<S>;

/// Semirings whose operands always come element by element. They are a tenth slower; library and build stay small.
template <class S>
inline constexpr bool singles_only = false;
template <class E, class A>
inline constexpr bool singles_only<hamming<E, A>> = true;
template <class E, class A>
inline constexpr bool singles_only<max_times<E, A>> = true;
template <class E, class A>
inline constexpr bool singles_only<min_times<E, A>> = true;
template <class A>
inline constexpr bool singles_only<l2_squared<std::int32_t, A>> = true;
template <class A>
inline constexpr bool singles_only<linf<std::int32_t, A>> = true;

/// The steps of a slab at which a kernel in vectors starts to copy a later slab, and at which it finishes the next one.
struct Schedule {
  int start, turn;
};
/// As measured: ptxas's register allocation depends on it, and with it up to 7 % of the time.
template <class S>
inline constexpr Schedule schedule = {1, 4};
template <class E, class A>
inline constexpr Schedule schedule<min_plus<E, A>> = {1, 6};
template <class E, class A>
inline constexpr Schedule schedule<max_plus<E, A>> = {1, 6};
template <class A>
inline constexpr Schedule schedule<min_plus<float, A>> = {2, 6};
template <class A>
inline constexpr Schedule schedule<max_plus<float, A>> = {2, 6};
template <class T>
  requires is_packed<min_plus<T, T>>
inline constexpr Schedule schedule<min_plus<T, T>> = {1, 7};
template <class T>
  requires is_packed<max_plus<T, T>>
inline constexpr Schedule schedule<max_plus<T, T>> = {1, 7};
template <class E, class A>
inline constexpr Schedule schedule<plus_times<E, A>> = {5, 7};
template <>
inline constexpr Schedule schedule<plus_times<float>> = {0, 7};
template <>
inline constexpr Schedule schedule<l1<float>> = {1, 6};
template <>
inline constexpr Schedule schedule<l2_squared<float>> = {0, 4};
template <class E, class A>
inline constexpr Schedule schedule<max_min<E, A>> = {0, 4};
template <class E, class A>
inline constexpr Schedule schedule<lp<E, A>> = {1, 4};
template <class E, class A>
inline constexpr Schedule schedule<min_max<E, A>> = {0, 4};
/// That of tiles whose loop counts_down (sum.hpp).
template <class S>
inline constexpr Schedule schedule_of_counted = {1, 4};
template <>
inline constexpr Schedule schedule_of_counted<plus_times<float>> = {0, 3};
/// That of 16-bit floats that are converted: the one without a spill, on sm_80 too, if ⊗ is light.
inline constexpr Schedule schedule_of_widened = {0, 7};

/// The tile of a semiring, in accumulators of `OnPairs<S>`: S::LargeTile if S has one (argument.hpp).
template <class S>
constexpr auto large_tile() {
  constexpr int x = registers_of<typename S::accumulator>, operand = registers_of<tile::stored_t<operand_t<S>>>;
  if constexpr (requires { typename S::LargeTile; })
    return typename S::LargeTile{};
  else if constexpr (x > 4 || operand > 4)
    return tile::Shape<16, 16, 2, 2, 8, 1, false>{};
  else if constexpr (sums_powers<S> || has_steps_of_metric<S>)
    return tile::Shape<16, 16, 4, x == 1 ? 8 : 4, 8, 2, true>{};
  else if constexpr (sums_exponentials<S> && std::is_same_v<typename S::element, float>)
    return tile::Shape<16, 16, 4, 4, 16, 2, false>{};
  else if constexpr (sums_exponentials<S> && operand == 2)
    return tile::Shape<16, 16, 2, 4, 8, 2, false>{};
  else if constexpr (is_transcendental<S> || x > 2 || operand > 2)
    return tile::Shape<16, 16, 4, 4, 8, 1, false>{};
  else if constexpr ((x == 2 || operand == 2) && needs_temporaries<S>)
    return tile::Shape<16, 16, 4, 8, 8, 1, false>{};
  else if constexpr (x == 2 || operand == 2)
    return tile::Shape<16, 16, 8, 8, 8, 1, compares_doubles<S>>{};
  else if constexpr (needs_temporaries<S>)
    return tile::Shape<16, 16, 8, 8, 8, 1, true>{};
  else if constexpr (in_vectors<S> || is_packed<S> || widens<S>)
    return tile::Shape<16, 8, 8, 16, 8, 2, true>{};
  else
    return tile::Shape<16, 16, 8, 16, 8, 1, true>{};
}

/// For problems whose large tiles would leave multiprocessors idle.
template <class S>
constexpr auto small_tile() {
  constexpr int x = registers_of<typename S::accumulator>, operand = registers_of<tile::stored_t<operand_t<S>>>;
  if constexpr (requires { typename S::SmallTile; })
    return typename S::SmallTile{};
  else if constexpr (x > 4 || operand > 4)
    return tile::Shape<8, 8, 2, 2, 16, 4, false>{};
  else if constexpr (sums_powers<S> && x == 2)
    return tile::Shape<8, 8, 4, 4, 8, 4, false>{};  // half as deep, next to a table of 17 KB
  else if constexpr (sums_exponentials<S> && operand == 2)
    return tile::Shape<8, 8, 4, 2, 16, 6, false>{};
  else if constexpr (is_transcendental<S> || has_steps_of_metric<S> || x > 1 || operand > 1)
    return tile::Shape<8, 8, 4, 4, 16, 4, false>{};
  else if constexpr (computes_floats<S>)
    return tile::Shape<8, 8, 8, 8, 8, 6, true>{};
  else
    return tile::Shape<8, 16, 8, 4, 16, 4, true>{};
}

/// For Σ |a − b|³ and Σ |a − b|⁴ of float, which need no special function.
using WholePowersTile = tile::Shape<8, 16, 16, 8, 8, 2, true>;
template <class S, class Shape>
inline constexpr bool is_whole_powers_tile = has_special_powers<S> && std::is_same_v<Shape, WholePowersTile>;

template <class S>
using LargeTile = decltype(large_tile<S>());
template <class S>
using SmallTile = decltype(small_tile<S>());

/// The small tile of light semirings of floats with twice the threads. Its operands cost more. But the two warps of the small tile
/// leave schedulers idle if a multiprocessor gets an odd number of tiles, most of all if it gets one.
using WideTile = tile::Shape<8, 16, 8, 4, 8, 4, true>;
template <class S>
inline constexpr bool has_wide_tile = is_light_float<S> && !singles_only<S>;

/// Whether accumulators are structs; and those of a user's functor, whose tiles have no shape of their own.
template <class S>
inline constexpr bool is_of_structs = std::is_class_v<typename S::accumulator> && !ShortFloat<typename S::accumulator>;
template <class S>
inline constexpr bool is_of_user_structs = is_of_structs<S> && !in_zoo<S> && !requires { typename S::LargeTile; };

/// What tells apart kernels in tiles, in their names.
template <class S, class Shape>
inline constexpr std::string_view variant_of = computes_floats<S> && std::is_same_v<Shape, WideTile> ? "wide" : "";

/// The tiles of a semiring, the large one first; each has kernels of its own.
template <class S>
using Tiles = std::conditional_t<has_wide_tile<S>, type_list<LargeTile<S>, SmallTile<S>, WideTile>,
                                 type_list<LargeTile<S>, SmallTile<S>>>;

/// The schedule of a kernel whose operands come element by element.
template <class S, class Shape>
inline constexpr Schedule schedule_of_singles = is_packed<S> ? Schedule{1, 5} : Schedule{0, 6};
template <class Shape>
  requires std::is_same_v<Shape, SmallTile<l1<float>>>
inline constexpr Schedule schedule_of_singles<l1<float>, Shape> = {3, 7};
template <class Shape>
  requires std::is_same_v<Shape, SmallTile<l2_squared<float>>>
inline constexpr Schedule schedule_of_singles<l2_squared<float>, Shape> = {3, 7};

/// Whether a = b = 0 makes a term of 0, which leaves every sum as it is. Slabs may then hold zeros after the last k.
template <class S>
inline constexpr bool has_zero_terms = false;
template <>
inline constexpr bool has_zero_terms<l1<float>> = true;
template <>
inline constexpr bool has_zero_terms<l2_squared<float>> = true;

/// The schedule of a kernel in shifted vectors: the fastest without a spill.
template <class S, class Shape>
inline constexpr Schedule schedule_of_shifted = std::is_same_v<Shape, LargeTile<S>> ? Schedule{0, 4} : Schedule{0, 6};

/// Whether the unrolled slabs of such a kernel also start copies of incomplete vectors. If that spills, slabs that start
/// them are not unrolled.
template <class S, class Shape>
inline constexpr bool unrolls_parts = !std::is_same_v<Shape, LargeTile<S>>;

/// Whether kernels whose operands come element by element unroll whole slabs: if that does not spill.
template <class S>
inline constexpr bool unrolls_singles = is_packed<S> || is_light_float<S>;
template <class E>
  requires widens<plus_times<E, float>>
inline constexpr bool unrolls_singles<plus_times<E, float>> = true;
template <>
inline constexpr bool unrolls_singles<max_min<std::int16_t>> = false;
template <>
inline constexpr bool unrolls_singles<min_max<std::int16_t>> = false;

/// Whether a tile also has kernels that bring operands in vectors: the large one, and the smaller ones that compute floats.
template <class S, class Shape>
inline constexpr bool takes_vectors =
    std::is_same_v<Shape, LargeTile<S>> ? ((in_vectors<S> || widens<S>) && !singles_only<S>) || is_packed<S>
                                        : computes_floats<S> && !singles_only<S>;

/// Whether a tile has a kernel in vectors for operands that both lie along M and N.
template <class S, class Shape>
inline constexpr bool takes_lines = std::is_same_v<Shape, LargeTile<S>> || widens<S> || std::is_same_v<S, plus_times<float>>;

/// How a kernel in vectors brings B if A is K-major, and an operand is unaligned or K no multiple of a slab; `single`: not
/// at all. It takes kernels of its own, so only the commonest semirings of floats have it. In the large tile, minima and
/// maxima with N-major B spill.
template <class S, class Shape>
inline constexpr tile::Way shifted_way_of_b = tile::Way::single;
template <class Shape>
  requires(!std::is_same_v<Shape, WideTile>)
inline constexpr tile::Way shifted_way_of_b<l1<float>, Shape> = tile::Way::shifted_k;
template <class Shape>
  requires(!std::is_same_v<Shape, WideTile>)
inline constexpr tile::Way shifted_way_of_b<l2_squared<float>, Shape> = tile::Way::shifted_k;
template <>
inline constexpr tile::Way shifted_way_of_b<min_plus<float>, SmallTile<min_plus<float>>> = tile::Way::shifted_lines;
template <>
inline constexpr tile::Way shifted_way_of_b<max_plus<float>, SmallTile<max_plus<float>>> = tile::Way::shifted_lines;

}  // namespace rigel::backends::simt

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles by semiring, from the sizes of its types: as many outputs per thread as 255 registers allow next to the operands,
// without a spill. If ⊗ takes dozens of instructions (an exponential, a power), reading operands is cheap in comparison and
// unrolled code would be long, so threads hold few outputs.
#pragma once

#include <rigel/backends/cuda/simt/tuning.hpp>
#include <rigel/backends/cuda/tile/shape.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/ordered.hpp>
#include <rigel/semirings.hpp>

#include <type_traits>

namespace rigel::backends::simt {

/// Whether exponents that are multiples of 1/2 have kernels of their own: for floats and doubles, but not again for each
/// user's epilogue.
template <class S, class Finish>
inline constexpr bool powers_by_products =
    std::is_floating_point_v<typename S::element> && std::is_same_v<typename S::element, typename S::accumulator> &&
    std::is_same_v<Finish, detail::ProgramFinish>;

/// Whether ⊕ or ⊗ is a minimum or maximum of doubles. No instruction has these. If no product is NaN, a comparison and two
/// selections of 32 bits give one; else it takes two comparisons.
template <class S>
inline constexpr bool compares_doubles =
    std::is_same_v<typename S::element, double> && std::is_same_v<typename S::accumulator, double> && in_zoo<S> &&
    (detail::has_ordered_add<S> || detail::has_ordered_multiply<S>);

/// Registers per value.
template <class T> inline constexpr int registers_of = (static_cast<int>(sizeof(T)) + 3) / 4;

/// Whether steps are a few instructions, without temporaries.
template <class S>
inline constexpr bool is_light = !is_transcendental<S> && !tuning<S>.temporaries && !has_steps_of_metric<S>;

/// Whether ⊗ takes 32-bit elements without conversion, so that they can come in vectors.
template <class S>
inline constexpr bool in_vectors =
    (std::is_same_v<typename S::element, float> || std::is_same_v<typename S::element, std::int32_t> ||
     std::is_same_v<typename S::element, std::uint32_t>) &&
    std::is_same_v<operand_t<S>, typename S::element> && registers_of<typename S::accumulator> == 1 && is_light<S>;

/// Light semirings of floats, users' functors among them. Predicted times were fitted to six of the zoo's.
template <class S> inline constexpr bool is_light_float = in_vectors<S> && std::is_same_v<typename S::element, float>;

/// Light semirings of 16-bit floats that sum in float: their operands are converted on the way to shared memory.
template <class S>
inline constexpr bool widens = ShortFloat<typename S::element> && std::is_same_v<operand_t<S>, float> &&
                               std::is_same_v<typename S::accumulator, float> && is_light<S>;

/// Light semirings whose slabs hold floats, and one of the zoo on floats.
template <class S> inline constexpr bool computes_floats = is_light_float<S> || widens<S>;
template <class S>
struct on_floats {
  using type = S;
};
template <template <class, class> class Semiring, class E>
  requires(in_zoo<Semiring<E, float>> && widens<Semiring<E, float>>)
struct on_floats<Semiring<E, float>> {
  using type = Semiring<float, float>;
};
template <class S> using OnFloats = typename on_floats<S>::type;

/// Whether ⊗ is a user's, and must see elements of A and B only: rows and columns of a tile beyond C's then repeat others.
/// The zoo's takes any bits.
template <class S> inline constexpr bool sees_elements_alone = !in_zoo<S>;

/// The shape of a semiring's large or small tile.
template <auto... numbers> using Large = tile::Shape<numbers..., tile::Role::large>;
template <auto... numbers> using Small = tile::Shape<numbers..., tile::Role::small>;

/// The tile of a semiring, in accumulators of `OnPairs<S>`: S::LargeTile if S has one (argument.hpp).
template <class S>
constexpr auto large_tile() {
  constexpr int x = registers_of<typename S::accumulator>, operand = registers_of<tile::stored_t<operand_t<S>>>;
  if constexpr (requires { typename S::LargeTile; })
    return typename S::LargeTile{};
  else if constexpr (x > 4 || operand > 4)
    return Large<16, 16, 2, 2, 8, 1, false>{};
  else if constexpr (sums_powers<S> || has_steps_of_metric<S>)
    return Large<16, 16, 4, x == 1 ? 8 : 4, 8, 2, true>{};
  else if constexpr (sums_exponentials<S> && std::is_same_v<typename S::element, float>)
    return Large<16, 16, 4, 4, 16, 2, false>{};
  else if constexpr (sums_exponentials<S> && operand == 2)
    return Large<16, 16, 2, 4, 8, 2, false>{};
  else if constexpr (is_transcendental<S> || x > 2 || operand > 2)
    return Large<16, 16, 4, 4, 8, 1, false>{};
  else if constexpr ((x == 2 || operand == 2) && tuning<S>.temporaries)
    return Large<16, 16, 4, 8, 8, 1, false>{};
  else if constexpr (x == 2 || operand == 2)
    return Large<16, 16, 8, 8, 8, 1, compares_doubles<S>>{};
  else if constexpr (tuning<S>.temporaries)
    return Large<16, 16, 8, 8, 8, 1, true>{};
  else if constexpr (in_vectors<S> || is_packed<S> || widens<S>)
    return Large<16, 8, 8, 16, 8, 2, true>{};
  else
    return Large<16, 16, 8, 16, 8, 1, true>{};
}

/// For problems whose large tiles would leave multiprocessors idle.
template <class S>
constexpr auto small_tile() {
  constexpr int x = registers_of<typename S::accumulator>, operand = registers_of<tile::stored_t<operand_t<S>>>;
  if constexpr (requires { typename S::SmallTile; })
    return typename S::SmallTile{};
  else if constexpr (x > 4 || operand > 4)
    return Small<8, 8, 2, 2, 16, 4, false>{};
  else if constexpr (sums_powers<S> && x == 2)
    return Small<8, 8, 4, 4, 8, 4, false>{};  // half as deep, next to a table of 17 KB
  else if constexpr (sums_exponentials<S> && operand == 2)
    return Small<8, 8, 4, 2, 16, 6, false>{};
  else if constexpr (is_transcendental<S> || has_steps_of_metric<S> || x > 1 || operand > 1)
    return Small<8, 8, 4, 4, 16, 4, false>{};
  else if constexpr (computes_floats<S>)
    return Small<8, 8, 8, 8, 8, 6, true>{};
  else
    return Small<8, 16, 8, 4, 16, 4, true>{};
}

/// For Σ |a − b|³ and Σ |a − b|⁴ of float, which need no special function.
using WholePowersTile = tile::Shape<8, 16, 16, 8, 8, 2, true, tile::Role::whole_powers>;

template <class S> using LargeTile = decltype(large_tile<S>());
template <class S> using SmallTile = decltype(small_tile<S>());

/// Whether accumulators are structs; and those of a user's functor, whose tiles have no shape of their own.
template <class S>
inline constexpr bool is_of_structs = std::is_class_v<typename S::accumulator> && !ShortFloat<typename S::accumulator>;
template <class S>
inline constexpr bool is_of_user_structs = is_of_structs<S> && !in_zoo<S> && !requires { typename S::LargeTile; };

/// The tiles of a semiring, the large one first; each has kernels of its own. Sums of exponentials in double are faster in small tiles,
/// whatever the extents.
template <class S>
using Tiles =
    std::conditional_t<std::is_same_v<S, log_plus<double>>, type_list<SmallTile<S>>, type_list<LargeTile<S>, SmallTile<S>>>;

/// Whether kernels whose operands come element by element unroll whole slabs: if that does not spill.
template <class S>
inline constexpr bool unrolls_singles =
    !tuning<S>.singles_spill && (is_packed<S> || is_light_float<S> || (widens<S> && tuning<S>.unrolls_widened));

/// Whether a tile also has kernels that bring operands in vectors: the large one, and the small one that computes floats.
template <class S, class Shape>
inline constexpr bool takes_vectors =
    Shape::role == tile::Role::large ? ((in_vectors<S> || widens<S>) && !tuning<S>.singles_only) || is_packed<S>
                                     : computes_floats<S> && !tuning<S>.singles_only;

/// Whether a tile has a kernel in vectors for operands that both lie along M and N.
template <class S, class Shape>
inline constexpr bool takes_lines = Shape::role == tile::Role::large || widens<S> || tuning<S>.small_lines;

/// How a kernel in vectors brings B if A is K-major, and an operand is unaligned or K no multiple of a slab; `single`: not at all.
template <class S, class Shape>
inline constexpr tile::Way shifted_way_of_b =
    Shape::role == tile::Role::small ? tuning<S>.shifted_b_of_small : tuning<S>.shifted_b;

/// Whether the unrolled slabs of a kernel in shifted vectors also start copies of incomplete vectors. If that spills, slabs that start
/// them are not unrolled.
template <class Shape> inline constexpr bool unrolls_parts = Shape::role != tile::Role::large;

/// Whether a tile's loop counts what is left of K in a register of its own. Clang otherwise computes it from K and the step, and ptxas
/// then copies the loop's body to peel the first slab off: longer code, which costs small K up to 9 %, though its registers are at
/// times assigned better. As measured.
template <class S, class Shape, tile::Way WayA, tile::Way WayB>
inline constexpr bool counts_down =
    WayA == tile::Way::along_k && Shape::role == tile::Role::large &&
    (std::is_same_v<S, l2_squared<float>> || (std::is_same_v<S, plus_times<float>> && WayB == tile::Way::along_lines));

/// The schedule of a tile's unrolled slabs.
template <class S, class Shape, tile::Way WayA, tile::Way WayB>
constexpr Schedule schedule_of() {
  constexpr Tuning t = tuning<S>;
  if (counts_down<S, Shape, WayA, WayB>) return t.counted;
  if (WayA == tile::Way::single || WayB == tile::Way::single)
    return is_packed<S> ? Schedule{1, 5} : Shape::role == tile::Role::small ? t.singles_of_small : Schedule{0, 6};
  if (widens<S>) return {0, 7};  // the one without a spill, on sm_80 too, if ⊗ is light
  // The fastest without a spill.
  if (WayA == tile::Way::shifted_k) return unrolls_parts<Shape> ? Schedule{0, 6} : Schedule{0, 4};
  return t.schedule;
}

}  // namespace rigel::backends::simt

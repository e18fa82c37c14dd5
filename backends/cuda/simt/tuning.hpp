// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tiles need to know of each semiring and cannot derive from its types: a record each, where it differs from the usual one.
#pragma once

#include <rigel/backends/cuda/costs/simt.hpp>
#include <rigel/backends/cuda/simt/packed.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/semirings.hpp>

namespace rigel {
template <class E> struct canberra;
template <class E> struct divergence_from_mean;
template <class E> struct relative_entropy;
template <class E> struct weighted_lp;
template <class E> struct lp_with_epsilon;
}  // namespace rigel

namespace rigel::backends::simt {

/// The steps of a slab at which a kernel in vectors starts to copy a later slab, and at which it finishes the next one.
struct Schedule {
  int start, turn;
};

/// The usual values are those of a short ⊗ whose kernels come without surprises.
struct Tuning {
  /// Under which name predicted times know ⊕ and ⊗.
  costs::Work work = costs::Work::other;
  /// Instructions of a term in steps that are made for a GPU (metrics.hpp); 0 if a metric has none. Tiles then compute sums
  /// differently than the semiring's definition does.
  double instructions_of_metric = 0;
  /// Whether ptxas keeps temporaries for many outputs while it evaluates ⊗. It does so for comparisons that are then counted
  /// (except of floats, where one instruction gives 1 or 0), for counts of bits, and for products of 64-bit integers.
  bool temporaries = false;
  /// 32-bit population counts per ⊗; a GPU has a quarter of the units for them.
  int bit_counts = 0;
  /// Sums of powers and of exponentials in float and double, which have steps of their own in powers.hpp and steps.hpp.
  bool sums_powers = false, sums_exponentials = false;
  /// Whether a = b = 0 makes a term of 0, which leaves every sum as it is. Slabs may then hold zeros after the last k.
  bool zero_terms = false;
  /// Whether steps of an epilogue are applied to several outputs of a thread at a time: of sums of products and of distances in float.
  /// (Other kernels would grow by 9 KB each; the large tiles of l2_squared would spill.)
  bool runs_steps = false;

  /// Operands always come element by element. They are a tenth slower; library and build stay small.
  bool singles_only = false;
  /// Whether slabs that come element by element spill if they are unrolled; and whether they do not although they are converted.
  bool singles_spill = false, unrolls_widened = false;
  /// Whether the small tile of floats, too, has a kernel for operands that both lie along M and N.
  bool small_lines = false;
  /// How B comes in shifted vectors, in the large tile and in the small one. It takes kernels of its own, so only the commonest
  /// semirings of floats have it. In the large tile, minima and maxima with N-major B spill.
  tile::Way shifted_b = tile::Way::single, shifted_b_of_small = tile::Way::single;

  /// In vectors; in tiles whose loop counts_down; in small tiles whose operands come element by element. As measured: ptxas's register
  /// allocation depends on it, and with it up to 7 % of the time.
  Schedule schedule = {1, 4}, counted = {1, 4}, singles_of_small = {0, 6};
};

template <class S> inline constexpr Tuning tuning = {};

template <class E, class A>
inline constexpr Tuning tuning<plus_times<E, A>> = {.work = costs::Work::plus_times,
                                                    .runs_steps = std::is_same_v<A, float>,
                                                    .unrolls_widened = std::is_same_v<A, float>,
                                                    .schedule = {5, 7}};
template <>
inline constexpr Tuning tuning<plus_times<float>> = {
    .work = costs::Work::plus_times, .runs_steps = true, .small_lines = true, .schedule = {0, 7}, .counted = {0, 3}};

/// Minima and maxima of sums.
template <class S>
inline constexpr Tuning tuning_of_sums = {.work = costs::Work::min_plus,
                                          .schedule = is_packed<S>                                 ? Schedule{1, 7}
                                                      : std::is_same_v<typename S::element, float> ? Schedule{2, 6}
                                                                                                   : Schedule{1, 6}};
template <class E, class A> inline constexpr Tuning tuning<min_plus<E, A>> = tuning_of_sums<min_plus<E, A>>;
template <class E, class A> inline constexpr Tuning tuning<max_plus<E, A>> = tuning_of_sums<max_plus<E, A>>;
template <>
inline constexpr Tuning tuning<min_plus<float>> = {
    .work = costs::Work::min_plus, .shifted_b_of_small = tile::Way::shifted_lines, .schedule = {2, 6}};
template <> inline constexpr Tuning tuning<max_plus<float>> = tuning<min_plus<float>>;

/// Minima of maxima and maxima of minima.
template <class S>
inline constexpr Tuning tuning_of_minima = {.work = costs::Work::max_min,
                                            .singles_spill = is_packed<S> && std::is_integral_v<typename S::element>,
                                            .schedule = {0, 4}};
template <class E, class A> inline constexpr Tuning tuning<max_min<E, A>> = tuning_of_minima<max_min<E, A>>;
template <class E, class A> inline constexpr Tuning tuning<min_max<E, A>> = tuning_of_minima<min_max<E, A>>;

template <class E, class A> inline constexpr Tuning tuning<max_times<E, A>> = {.work = costs::Work::max_times,
                                                                               .singles_only = true};
template <class E, class A> inline constexpr Tuning tuning<min_times<E, A>> = tuning<max_times<E, A>>;

template <class E, class A> inline constexpr Tuning tuning<l1<E, A>> = {.work = costs::Work::l1,
                                                                        .runs_steps = std::is_same_v<A, float>};
template <>
inline constexpr Tuning tuning<l1<float>> = {.work = costs::Work::l1,
                                             .zero_terms = true,
                                             .runs_steps = true,
                                             .shifted_b = tile::Way::shifted_k,
                                             .shifted_b_of_small = tile::Way::shifted_k,
                                             .schedule = {1, 6},
                                             .singles_of_small = {3, 7}};
template <class E, class A>
inline constexpr Tuning tuning<l2_squared<E, A>> = {.work = costs::Work::l2_squared,
                                                    .temporaries = std::is_integral_v<A> && sizeof(A) == 8,
                                                    .singles_only = std::is_same_v<E, std::int32_t>};
template <>
inline constexpr Tuning tuning<l2_squared<float>> = {.work = costs::Work::l2_squared,
                                                     .zero_terms = true,
                                                     .shifted_b = tile::Way::shifted_k,
                                                     .shifted_b_of_small = tile::Way::shifted_k,
                                                     .schedule = {0, 4},
                                                     .singles_of_small = {3, 7}};
template <class E, class A>
inline constexpr Tuning tuning<linf<E, A>> = {
    .work = costs::Work::linf, .runs_steps = std::is_same_v<A, float>, .singles_only = std::is_same_v<E, std::int32_t>};
template <class E, class A>
inline constexpr Tuning tuning<lp<E, A>> = {.sums_powers = std::is_floating_point_v<A>,
                                            .runs_steps = std::is_same_v<A, float>};
template <class E, class A>
inline constexpr Tuning tuning<log_plus<E, A>> = {.sums_exponentials = std::is_floating_point_v<A>};

template <class E, class A>
inline constexpr Tuning tuning<hamming<E, A>> = {
    .work = costs::Work::hamming, .temporaries = !std::is_same_v<A, float>, .singles_only = true};
template <class W>
inline constexpr Tuning tuning<bit_hamming<W>> = {.temporaries = true, .bit_counts = sizeof(W) == 8 ? 2 : 1};
template <class W>
inline constexpr Tuning tuning<bit_jaccard<W>> = {.temporaries = true, .bit_counts = sizeof(W) == 8 ? 4 : 2};

template <class S> inline constexpr Tuning tuning<with_argument<S>> = {.work = costs::Work::arguments};

template <> inline constexpr Tuning tuning<canberra<float>> = {.instructions_of_metric = 8};
template <> inline constexpr Tuning tuning<divergence_from_mean<float>> = {.instructions_of_metric = 22};
template <> inline constexpr Tuning tuning<relative_entropy<float>> = {.instructions_of_metric = 21};
template <> inline constexpr Tuning tuning<weighted_lp<float>> = {.instructions_of_metric = 12};
template <> inline constexpr Tuning tuning<lp_with_epsilon<float>> = {.instructions_of_metric = 12};

template <class S> inline constexpr double instructions_of_metric = tuning<S>.instructions_of_metric;
template <class S> inline constexpr bool has_steps_of_metric = instructions_of_metric<S> > 0;
template <class S> inline constexpr int bit_counts_of = tuning<S>.bit_counts;
template <class S> inline constexpr bool sums_exponentials = tuning<S>.sums_exponentials;
template <class S> inline constexpr bool sums_powers = tuning<S>.sums_powers;
/// Whether special functions can give the powers: those of floats.
template <class S>
inline constexpr bool has_special_powers = sums_powers<S> && std::is_same_v<typename S::accumulator, float>;

}  // namespace rigel::backends::simt

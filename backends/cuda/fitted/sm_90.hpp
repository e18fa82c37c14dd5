// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What only measurements tell of kernels' times: fitted to random problems on cards of sm_90 (NOTES.md of the families; an H200 where
// nothing else is said), and taken for other architectures, too. A cycle is one of Card::clock. A slot is a lane of a unit for a cycle:
// an H200's multiprocessor has 128 slots of float per cycle. A share is one of a rate of Card: a memory share of 0.875 is that part of
// memory_bytes_per_second.
#pragma once

namespace rigel::backends::cuda::fitted::sm_90 {

// What the terms of all families below mean:
//   prologue      cycles of a launch in addition to Card::launch_seconds: instructions that blocks fetch, parameters, first waits
//   next_prologue the same of a launch after another, in addition to Card::next_launch_seconds
//   fill          cycles to fill a tile's first slabs
//   output        cycles of a multiprocessor for an output
//   clock         the share of Card::clock at which the family runs

/// cuda.simt: tiles.
namespace tiles {

/// Cycles: of a launch, with the first tiles' wait for instructions; to fill the first slabs, of tiles that start at once and of later
/// ones, which overlap partly if they are small; and to write an output.
struct Times {
  double prologue, first_fill, later_fill, output;
};
/// Light semirings of floats whose operands come one by one, and in vectors.
struct FloatTimes {
  Times singles, in_vectors;
};
inline constexpr FloatTimes small = {{2376, 2970, 4752, 0.2376}, {3762, 5940, 1980, 0.1386}},
                            large = {{2574, 1188, 5346, 0.2178}, {9504, 5940, 5940, 0.1386}},
                            widened = {{2574, 4356, 7920, 0.0594}, {9504, 5940, 5940, 0.1386}};
/// Others: with small tiles, and with large ones; `prologue` includes the first fill. Those of powers write an output in so many cycles a
/// byte.
inline constexpr Times packed_small = {3168, 0, 2970, 0.594}, packed_large = {6534, 0, 1386, 0.792},
                       exponentials_small = {4950, 0, 6138, 0.1584}, exponentials_large = {7524, 0, 7920, 0.099},
                       powers_small = {2178, 0, 1584, 0.2178}, powers_large = {4356, 0, 3564, 0.0594},
                       user_structs_large = {4158, 0, 5148, 1.584}, other_small = {2574, 0, 1782, 0.2178},
                       other_large = {4554, 0, 3564, 0.099}, other_large_8_bytes = {2178, 0, 1782, 0.297};

/// Slots of a step's unit. Of floats: of |a - b|, on float lanes, and of minima, on integer lanes. Of others: for each register of a
/// value, of the lightest semirings.
inline constexpr double whole_powers = 3.62057142857, exponentials_of_doubles = 17.3589041096, special = 1.584,
                        special_exponentials_large = 1.34808510638, powers_of_doubles = 14.08,
                        powers_of_short_in_doubles = 26.9617021277, instruction_of_metric = 1.2672, transcendental = 25.344,
                        transcendental_of_doubles = 46.9333333333, bit_count = 1.17333333333, step_of_floats = 2.304,
                        step_of_minima = 1.152, step_of_register = 2.5344, step_of_integer_register = 1.2672,
                        step_of_double_register = 1.2672;

/// Light semirings of floats. `step`: time of a step relative to |a − b|'s. `alone`, `alone_after_others`: the share of its speed that a
/// multiprocessor reaches with one large tile, at first and after others. `lost`: the time, in tiles, that two large tiles lose if they
/// start together and wait for the same units, of which minima have half as many as sums. `two_after_others`: the share with two small
/// tiles, after others.
struct Pace {
  double step = 1, alone = 0.53, alone_after_others = 0.53, lost = 0, two_after_others = 0.65;
};
inline constexpr Pace pace_of_products = {.step = 0.58, .alone = 0.85}, pace_of_minima = {1.03, 0.55, 0.7, 0.2, 0.88},
                      pace_of_two_minima = {1.55, 0.76, 1, 0.2}, pace_of_winners = {.step = 1.35}, pace_of_others = {};
/// The share with one small tile of these.
inline constexpr double alone_small = 0.43;

/// Speed relative to the lightest semirings on as many registers, by the type of sums: double, 64-bit integers, 32-bit integers (16-bit
/// ones in pairs too), floats of 16-bit elements. Doubles have half the lanes. Minima of 64-bit integers are several instructions;
/// products and absolute values of 32-bit integers are two. A user's struct takes about twice as long as its registers say.
struct Speeds {
  double f64, i64, i32, of_f16;
};
inline constexpr Speeds plus_times = {1.6, 0.45, 1.2, 1.3}, min_plus = {0.77, 0.5, 1.1, 0.8},
                        max_min = {0.57, 0.35, 0.66, 0.62}, max_times = {0.76, 0.4, 0.93, 0.82},
                        l1 = {1.05, 0.43, 0.65, 0.95}, l2_squared = {1.05, 0.45, 0.63, 1}, linf = {0.64, 0.3, 0.6, 0.82},
                        hamming = {0.85, 0.6, 0.47, 0.93};
inline constexpr double user_struct = 0.55, user_struct_alone = 1.5;  // the latter: how much longer a single block waits
/// Of winners, estimates from the instructions, not measured.
inline constexpr double winners = 2.2, wide_winners = 1.3;

/// The share of a tile's speed that copies of single elements and of shifted vectors leave, in large and in other tiles.
inline constexpr double singles_of_floats_large = 0.88, singles_of_floats = 0.93, singles_widened_large = 0.87,
                        singles_widened = 0.8, singles_large = 0.82, singles = 0.9, shifted_large = 0.965, shifted = 0.947;
/// Speed relative to the steps above: of powers as products, in float and in double (of whole exponents and of halves), and by definition;
/// of small tiles of 16-bit floats, of 64-bit integers in small and in other tiles, of small tiles of bytes and of other short elements.
inline constexpr double float_products = 2.4, whole_products = 3.7, half_products = 1.5, by_definition = 0.09,
                        small_widened = 0.9, small_i64 = 1.1, other_i64 = 0.94, small_bytes = 0.86, small_others = 0.88;
/// The share of its speed that a multiprocessor reaches with up to four warps: a part, and one for each warp; of doubles.
inline constexpr double first_share = 0.2, share_of_warp = 0.17, first_share_of_doubles = 0.02,
                        share_of_warp_of_doubles = 0.15;
/// Outputs whose time a step's reads take, and of transcendental steps; the speed of the latter with few warps.
inline constexpr double reads = 4, reads_of_transcendental = 0.5, few_warps = 0.95;

/// Cycles of a multiprocessor for a byte of C that is added to.
inline constexpr double added_byte_large = 0.2574, added_byte = 0.0792;
/// The share of the L2 cache's rate at which C's bytes take time that nothing hides.
inline constexpr double unhidden_c = 1;
/// The general epilogue: the wait for its instructions, and cycles of an output for steps on bits.
inline constexpr double detour = 7920, bits_large = 1.485, bits = 0.6336;
/// Cycles of an output's root: the few warps of small tiles wait longer for the special-function unit.
inline constexpr double root_large = 0.099, root_small = 0.2772, root = 0.1188;

}  // namespace tiles

/// cuda.simt.*.split_k: what of a launch's time a launch before it hides; cycles of a scattered output; the launch that joins slices;
/// shares at which slices come and go, if the L2 cache holds them and if not; the share of it that holds them.
namespace split {
inline constexpr double hidden = 4554, scattered = 2.376, join_light = 0, join = 13860, cached = 0.9375,
                        uncached = 0.416666666667, held = 0.572204589844;
}

/// Arguments of winners: cycles to find a winner in its slab; the launch that joins slices, and cycles of an output's slice.
namespace winners {
inline constexpr double winner = 13.86, join = 7920, slice = 3.96;
}

/// cuda.simt on words: packing, by memory shares of operands along K and of others; and how much longer an H100 takes, the median.
namespace words {
inline constexpr double next_prologue = 1980, along_k = 0.145833333333, across = 0.0833333333333, over = 1.3;
}

/// cuda.simt.*.few: joining; a warp's step, and from one step of a thread to its next, in cycles.
namespace few {
inline constexpr double prologue = 1683, join = 792;
inline constexpr double powers = 35.64, next_power = 118.8, transcendental = 53.46, next_transcendental = 158.4,
                        step_of_register = 24.75, next_step = 59.4;
}  // namespace few

/// cuda.simt.*.narrow: cycles of a thread's first wait and of each later slab; an output.
namespace narrow {
inline constexpr double prologue = 0, clock = 0.909090909091, wait = 1980, slab = 1524.6, output = 0.792, memory = 0.875;
/// At this clock, cycles of a multiprocessor for a warp's step, and of a thread from one step to the next.
struct Step {
  double cycles, next;
};
inline constexpr Step transcendental = {8, 80}, transcendental_of_users = {30, 400}, arguments = {6, 75},
                      structs = {4.1, 29}, users_structs = {4.1, 50}, wide = {4.9, 4}, through_registers = {1.07, 23},
                      floats = {2.3, 7};
/// The same for a copied element, asynchronous or through registers.
inline constexpr Step copy = {0.14, 110}, copy_through_registers = {0.39, 270};
inline constexpr double block = 180;
}  // namespace narrow

/// cuda.simt.*.small: of a block's chunks the first wait, and each later one if copies are asynchronous or not; the share of the
/// instructions that a multiprocessor can issue at Card::clock; a byte of C that is added to.
namespace small {
inline constexpr double prologue = 0, clock = 0.803489439853, wait = 3484.8, chunk_async = 2613.6, chunk = 3354.12,
                        issued = 1.06749311295, added_byte = 0.3267, memory = 0.785984848485;
/// Slots of double for a step of powers and of exponentials. Relative to tiles: powers, exponentials of float, counts of bits in structs,
/// arguments, users' structs; 16-bit sums, floats, other light ones.
inline constexpr double powers_of_doubles = 132.754285715, exponentials_of_doubles = 32.0441379311, powers = 0.863636363636,
                        exponentials = 1.16363636364, bit_counts = 1.49090909091, arguments = 0.3367003367,
                        user_structs = 0.727272727273, of_short_sums = 2.45454545455, of_floats = 1,
                        of_others = 1.22727272727;
/// A thread's cycles for a step by itself, at this clock.
inline constexpr double alone_powers_of_doubles = 441, alone_powers = 116, alone_exponentials_of_doubles = 196,
                        alone_exponentials = 65, alone_transcendental = 400, alone_bit_counts = 90, alone_wide = 102,
                        alone_user_structs = 75, alone = 53;
/// Instructions of a thread, of a copy, asynchronous or not, and of a store, in vectors and by any epilogue.
inline constexpr double thread = 250, move_async = 27, move = 52, output = 35, general_output = 118;
}  // namespace small

/// cuda.simt.*.small_split_k: the launch that joins slices: its first round, each later one, and what the last k add; the memory share at
/// which slices come.
namespace small_split_k {
inline constexpr double next_prologue = 1188, round = 4752, rest = 1089, memory = 0.229166666667;
}

/// cuda.simt.*.narrow_split_k: cycles of a multiprocessor for a warp's step of floats, of shorter elements and with more registers, with a
/// transcendental function, and for each two registers of a struct; for a round of a thread, with operands that the L2 cache holds and
/// others; to start a block and a warp; for a line of 128 bytes and a sector of 32; for an output; and for the long code of exponentials.
namespace narrow_split_k {
inline constexpr double prologue = 1584, step = 3.861, step_of_short = 5.4054, step_of_registers = 5.346,
                        transcendental = 10.89, uncached_round = 891, cached_round = 742.5, start = 138.6,
                        start_warp = 35.64, line = 1.1088, sector = 1.485, output = 0.6534, long_code = 1980,
                        memory = 0.833333333333, held = 0.762939453125;
}

/// cuda.simt.*.skinny: bytes that a multiprocessor gets per cycle; on an H100, and of floats, the clock and memory shares, and C's.
namespace skinny {
inline constexpr double prologue = 1188, bytes = 25.2525252525, clock = 0.883838383838, memory = 0.583333333333,
                        clock_of_floats = 0.858585858586, memory_of_floats = 0.729166666667, c_of_floats = 0.416666666667;
/// Cycles at this clock: of a tile, of a store as outputs are and in general, of a slab on others' way, and of what copying warps do to
/// vectors that are shifted and to elements that come one by one.
inline constexpr double tile = 900, output = 50, general_output = 250, shift = 80, element = 55, round_trip = 1200;
/// Of a semiring that does not compute floats: of a k, whatever it computes; of an output, in addition to a part by relative speed; of a
/// conversion; of a chain's step, of values of one and of two registers; how much longer doubles take; the share of it that a block alone
/// waits for, of bytes and others; of a slab, alone and next to others; the share that multiprocessors full of blocks take.
inline constexpr double k = 4, step = 1.5, step_by_speed = 0.96, conversion = 0.6, chain = 5, chain_of_two = 10,
                        doubles = 1.5, alone_bytes = 1.8, alone = 0.6, slab_alone = 250, slab = 150, full = 0.87;
/// Of floats: of a step, of a slab, of a copied vector and of its conversion; how much of a read's time steps wait for, of tiles with many
/// outputs (and a part over rows), of two columns, and of one.
inline constexpr double step_of_floats = 1.95, slab_of_floats = 120, copy = 5, copy_converted = 12, overlap_many = 1.15,
                        overlap_of_rows = 0.7, overlap_two = 1.5, overlap_one = 1.1;
}  // namespace skinny

/// Passes of tensor cores' families that bring operands: as packed words, packed short elements, and planes, by memory shares.
namespace passes {
inline constexpr double next_prologue = 1980, words = 0.5, elements = 0.25, planes = 0.645833333333;
}

/// cuda.mma: shares of tensor_products, by the area of a tile; and cycles of outputs, by their way to C.
namespace mma {
inline constexpr double prologue = 1584, fill = 2970;
inline constexpr double deep = 0.67077020202, split_128x128 = 0.852272727273, area_128x256 = 0.962752525253,
                        area_128x128 = 0.907512626263, area_128x64 = 0.773358585859, smaller = 0.591856060606;
inline constexpr double as_they_are = 0.198, pairs_of_doubles = 0.099, doubles = 0.9306, bits = 1.386, fours = 0.0792,
                        short_fours = 0.198, singles = 1.089, short_singles = 0.495, activation = 0.3564, layer = 0.2178,
                        layer_singles = 1.5, matrix = 0.0594;
/// The share of its speed that a multiprocessor reaches: a part, and one for each warp.
inline constexpr double first_share = 0.3, share_of_warp = 0.1;
/// The shape for a few rows: the memory share at which B streams, and bytes per cycle that a multiprocessor gets.
inline constexpr double stream = 0.666666666667, stream_bytes = 30.303030303;

/// Codes: the pass that counts; cycles of the card for an output, in vectors (with one block on a multiprocessor, and several) or one by
/// one.
inline constexpr double count_prologue = 990, counted = 0.520833333333, codes_alone = 0.001188, codes = 0.000792,
                        codes_one_by_one = 0.00891;
}  // namespace mma

/// Euclidean distances: three launches after the first, one for the pass; memory shares of the pass; an output of floats, of doubles, and
/// one that is computed again; shares of the products that tensor cores reach, for halves at one and two levels (of products, two for a
/// pair at a level) and doubles.
namespace distances {
inline constexpr double prologue = 6534, fill = 2970, pass = 0.416666666667, output_of_floats = 0.198,
                        output_of_doubles = 0.297, again = 2.772;
inline constexpr double halves = 0.236742424242, halves_of_two_levels = 0.197285353535, doubles = 0.907512626263;
/// The share of its speed that a multiprocessor reaches with no tile; and how few k make most outputs computed again.
inline constexpr double first_share = 0.5, few_terms = 16;
}  // namespace distances

/// Sums of exponentials: two launches after the first; memory shares of the passes; an output; and shares of the products that tensor
/// cores reach, of floats (promoted, by large tiles and by others) and of doubles.
namespace log_sums {
inline constexpr double prologue = 4554;
inline constexpr double fill = 2970, output = 0.0792, pass = 0.729166666667, promoted = 0.221946022727,
                        large = 0.246606691919, smaller = 0.226878156566;
inline constexpr double fill_of_doubles = 3960, output_of_doubles = 0.594, pass_of_doubles = 0.520833333333,
                        doubles = 0.868055555556;
}  // namespace log_sums

/// cuda.hopper: shares of warpgroup_products, by a tile's area, of planes and of single numbers; cycles of outputs, by their way to C, and
/// of those that are added to.
namespace hopper {
inline constexpr double prologue = 1584, fill = 3762;
inline constexpr double planes_128x192 = 0.67077020202, planes_128x128 = 0.651041666667, three_planes = 0.532670454545,
                        planes = 0.473484848485, one_128x192 = 0.828598484848, one_128x128 = 0.749684343434,
                        one = 0.540561868687, promoted = 0.9;
inline constexpr double as_it_is = 0.15246, accumulated = 0.2376, matrix = 0.198, short_layer = 0.297, layer = 0.4356,
                        short_activation = 0.5742, activation = 0.6732, unaligned_bytes = 1.188, unaligned = 0.396,
                        general_fours = 1.188, general = 2.178, singles = 1.5, added_large = 2.574, added = 0.6336;
/// The share of an epilogue's time of two warpgroups that store at once; and what of products an epilogue next to them slows down, with
/// few registers and otherwise.
inline constexpr double at_once = 0.8, slowed_few_registers = 0.9, slowed = 0.5;
/// Single tiles: each round after the first; bytes per cycle of other slices' sums, and of slabs, with several tiles of a block and one;
/// the share of warpgroup_products.
inline constexpr double once_prologue = 5148, once_again = 1980, once_sum_bytes = 6.56565656566,
                        once_slab_bytes_of_tiles = 55.5555555556, once_slab_bytes = 49.4949494949,
                        once_steps = 0.718118686869, once_at_once = 0.85, once_singles = 1.8;
}  // namespace hopper

/// cuda.gradient: the clock share of loops and the share of instructions that they issue; the launch that joins slices, and the memory
/// share at which it reads them; of products on tensor cores the clock; and passes of points.
namespace gradient {
inline constexpr double prologue = 4554, clock = 0.858585858586, issued = 0.72, join = 3960, slices = 0.416666666667,
                        products_clock = 1, points_prologue = 1980, points = 0.520833333333;
/// Of the time of as many blocks as a multiprocessor holds: what one alone takes, and what rounds of them take; the former of products.
inline constexpr double alone = 0.75, rounds = 0.9, products_alone = 0.55;
/// Cycles of products: for a slab of one tile of outputs and of two, of powers, signs and distances; to begin a block and store.
inline constexpr double slab_of_powers = 3000, slab_of_powers_2 = 3500, slab_of_signs = 1570, slab_of_signs_2 = 2010,
                        slab_of_distances = 1660, slab_of_distances_2 = 2330, begin_and_store = 4200;
}  // namespace gradient

/// cuda.solver and cuda.cusolver. Cholesky and LU: their passes; for each block or panel of the diagonal, the wait of its kernels in
/// cycles; operations per second over the card's products on tensor cores.
namespace solver {
inline constexpr double small_prologue = 2574, clock = 0.858585858586, jacobi_prologue = 4554;
inline constexpr double passes = 30294, diagonal_f32 = 89100, diagonal_f64 = 138600, diagonal_launches = 69300,
                        substituted = 99000, solved = 49500, cholesky_f32 = 0.186823251454, cholesky_f64 = 1.19566880931;
inline constexpr double panel = 29700, panel_row = 29.7, panel_launches = 63360, upper_block = 49500,
                        lu_f32 = 0.0747293005816, lu_f64 = 0.448375803489;
/// Of the library's routines, on an H100: the passes around them; a batch's and a system's begin, and each
/// column of a panel, in cycles; operations per second over the card's fmas; and the share of them by batched routines.
inline constexpr double library_passes = 14454, batch_begin = 59400, system_begin = 118800, eigen_column = 49500,
                        lu_column = 7920, cholesky_column = 2376, eigen_operations = 0.0597834404653,
                        operations = 0.597834404653, batched = 0.2;
/// Eigenvectors by the batched routine, which takes other algorithms from n = 129 and 257 on: cycles of the batch, of each unknown, and
/// of the card for n³.
inline constexpr double eigen_begin = 198000, eigen_unknown_f32 = 8910, eigen_unknown_f64 = 11880, eigen_middle_f32 = 23760,
                        eigen_middle_f64 = 23760000, eigen_large = 39600000, eigen_large_f32 = 39600,
                        eigen_large_f64 = 63360, eigen_cube_f32 = 0.0099, eigen_cube_f64 = 0.01584;
}  // namespace solver

}  // namespace rigel::backends::cuda::fitted::sm_90

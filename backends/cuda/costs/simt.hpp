// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicted times of the cuda.simt kernels. A kernel's headers say what it is, as data; the functions here, plain C++ of the library,
// say what it takes on a Card. So other rates rebuild no kernel.
#pragma once

#include <rigel/backends/cuda/tile/role.hpp>
#include <rigel/contraction.hpp>
#include <rigel/registry.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace rigel::backends::simt {

inline std::int64_t blocks_of(std::int64_t extent, int bits) { return ((extent - 1) >> bits) + 1; }
inline int bits_of(std::int64_t extent) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1) - 1)));
}

/// A block of narrow_split_k computes 2^columns columns by some rows, with 2^parts threads for each column. `swapped`: the columns are
/// rows of C; the arguments' A is then Bᵀ, their B is Aᵀ.
struct SplitKShape {
  int columns = 0, parts = 0;
  bool k_first = true;  // neighbouring threads take neighbouring k, else neighbouring columns
  bool swapped = false;
  bool flipped = false;                   // the grid's x counts blocks along the columns, else along the rows
  unsigned first_y = 0, first_batch = 0;  // of this launch's blocks

  int threads() const { return columns + parts; }  // of a block, as a binary logarithm
};

namespace costs {

/// What ⊕ and ⊗ do, among those whose speed is known, and the type of their sums. `winners`: those of argument.hpp;
/// `arguments`: ⊕ compares values and arguments, which takes some ten instructions.
enum class Work : std::uint8_t {
  other,
  plus_times,
  min_plus,
  max_min,
  max_times,
  l1,
  l2_squared,
  linf,
  hamming,
  winners,
  wide_winners,
  arguments
};
enum class Sums : std::uint8_t { f64, i64, i32, other };

/// A semiring's facts on which its kernels' times depend.
struct Semiring {
  Work work = Work::other;
  Sums sums = Sums::other;
  int element = 4, operand = 4, accumulator = 4;  // bytes
  bool of_integers = false, of_doubles = false;   // operands
  bool is_of_zoo = true;
  bool computes_floats = false, is_light_float = false, widens = false;  // see tiles.hpp
  bool is_packed = false, is_of_float = false, has_short_sums = false;   // pairs of 16 bits; elements are float; 16-bit sums
  bool is_of_structs = false, is_of_user_structs = false;
  bool sums_powers = false, has_special_powers = false, sums_exponentials = false, is_transcendental = false;
  bool has_square_roots = false;
  int bit_counts = 0;                 // of 32 bits, in a step
  double instructions_of_metric = 0;  // of a step that is made for a GPU; 0: none
  Scalar result = Scalar::other;      // as C receives it without an epilogue

  int registers() const { return (std::max(accumulator, operand) + 3) / 4; }
  int registers_of_element() const { return (element + 3) / 4; }
};

/// A tile of accumulators.
using tile::Role;
struct Tile {
  Role role = Role::only;
  int m = 0, n = 0, blocks = 0, threads = 0, outputs = 0;  // blocks of a multiprocessor; outputs of a thread
  bool takes_vectors = false;
};

/// How both operands come to shared memory. `free`: as if that took no time, so that a time depends on extents alone.
enum class Copies : std::uint8_t { singles, shifted, vectors, free };
/// How steps compute powers: in the usual way, as products of a whole exponent or of a multiple of 1/2, or as the semiring defines them.
enum class Powers : std::uint8_t { usual, whole_products, half_products, by_definition };

/// A problem in tiles: all tiles of C, and how they are computed.
struct TileCall {
  std::int64_t tiles = 0, k = 0;
  Copies copies = Copies::singles;
  Powers powers = Powers::usual;
};

/// Predicted seconds of tiles of results that are not stored, and of a kernel that stores them.
double score_seconds(const Product& p, const Semiring& s, const Tile& t, const TileCall& call);
double tile_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call);

/// How K is cut: `whole` slices of `length` and one of `rest`, if that is not 0.
struct Slices {
  std::int64_t length = 0, whole = 0, rest = 0;
  int count() const { return static_cast<int>(whole + (rest > 0)); }
};
/// Predicted seconds of all slices in small tiles, `call` being the whole problem, and of joining them. The slice of `rest` is a launch of
/// its own. Most of a launch's overhead overlaps the previous launch.
double split_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call, const Slices& slices);

/// Of kernels that find winners (argument.hpp): one for all tiles, and one for slices of K.
double winners_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call);
double split_winners_seconds(const Contraction& p, const Semiring& s, const Tile& t, const TileCall& call,
                             const Slices& slices);

/// An operand that is packed to words: the bytes of words that are written; 0: none.
struct Packing {
  double bytes;
  bool along_k;
};
/// `work`: how much longer the steps on words take than those of `s`. `call`, `q`: in words.
double words_seconds(const Contraction& p, const Contraction& q, const Semiring& s, const Tile& t, const TileCall& call,
                     double work, Packing a, Packing b);

/// Predicted seconds of few.hpp's kernel with 2^parts threads for an output, which take `rounds` k each; 0 if threads with more outputs are
/// faster.
double few_seconds(const Product& p, const Semiring& s, int parts, int rounds);

/// Blocks of narrow.hpp: of how many threads, with how many rows and columns, and k of a slab.
struct NarrowCall {
  double blocks;
  int threads, lines, depth;
};
double narrow_seconds(const Contraction& p, const Semiring& s, const NarrowCall& call);

/// Blocks of small.hpp, and what each has: matrices; threads that compute one; k of a box; threads; bytes of boxes; copies of A and B and
/// stores of C of a thread's; whether C takes results in vectors; outputs of a thread, along m and n.
struct SmallCall {
  double blocks;
  int matrices;
  unsigned threads_of_matrix;
  int depth, threads;
  std::int64_t bytes;
  double copies, stores;
  bool c_in_vectors, copies_are_async;
  int outputs;
};
double small_seconds(const Contraction& p, const Semiring& s, const Tile& small_tile, const SmallCall& call);
/// What joining its slices adds: `blocks` blocks join them, and take the `rest` of K.
double small_join_seconds(const Product& p, double blocks, double bytes, bool has_rest);

/// Of narrow_split_k: rows of a thread, k at a time, and the most threads of a block, the first and last as binary logarithms.
struct SplitKThreads {
  int row_bits, depth, most_bits;
};
/// The shape of least predicted time, and that time, among shapes whose neighbouring threads read neighbours in memory.
std::pair<SplitKShape, double> split_k_choice(const Contraction& p, const Semiring& s, const SplitKThreads& threads);

/// A tile of skinny_plan.hpp, whose threads have `count` rows of C each, as SkinnyShape says; the last: how many blocks a multiprocessor
/// holds.
struct SkinnyTile {
  int size, columns, of_thread, lanes, groups, computing, copying, depth, width;
  bool has_many_outputs, converts, gathers_async;
  int count, resident;
};
/// The problem as these kernels see it: `m` rows against `n` columns. B's vectors are shifted; A comes element by element.
struct SkinnyCall {
  std::int64_t batch, m, n, k;
  double bytes_of_b;  // of an element
  bool shifts, gathers;
};
double skinny_seconds(const Contraction& p, const Semiring& s, const SkinnyTile& t, const SkinnyCall& call);

}  // namespace costs
}  // namespace rigel::backends::simt

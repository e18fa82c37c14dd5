// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tiles of semirings that are known at run time only: a semiring whose operations are declared functions, and which kernels it has.
// They become LLVM bitcode for NVPTX when Rigel is built (text.cpp.in). src/runtime defines the functions from a text, and compiles
// the one kernel that a call needs.
#pragma once

#include <rigel/backends/cuda/simt/contract.hpp>
#include <rigel/backends/cuda/simt/narrow.hpp>
#include <rigel/backends/cuda/simt/skinny.hpp>
#include <rigel/backends/cuda/simt/small.hpp>
#include <rigel/backends/cuda/text_lists.hpp>
#include <rigel/detail/text.hpp>

namespace rigel::backends::simt {

using cuda::operator+, cuda::text_place, detail::most_text_parameters;

/// Fields of an accumulator: numbers of the operand's size. Of what type they are only the text knows.
template <class T, int count>
struct TextFields {
  T field[count];
};
template <class T, int count>
struct text_accumulator {
  using type = TextFields<T, count>;
};
template <class T>
struct text_accumulator<T, 1> {
  using type = T;
};

/// The factors of a product, which is computed as it is added. (As a Semiring has it, it is an accumulator.)
template <class T>
struct TextProduct {
  T a, b;
  std::int64_t k;
  template <class Accumulator>
  RIGEL_MEMBER operator Accumulator() const;
};

/// What a text's ⊗ and ⊕ take: few instructions; calls of exponentials or other functions, dozens each; or no such function but powers of
/// one exponent, which its tiles compute by products or by a table (text_powers.hpp).
enum class TextWork { light, calls, powers };

/// The large tile of a text, where it is none of its types'.
template <TextWork>
struct TextTiles {};
template <>
struct TextTiles<TextWork::powers> {
  using LargeTile = Large<16, 16, 8, 8, 8, 2, true>;
};

/// A semiring from text on operands of type `Operand`, whose accumulators have so many fields; 1: they are numbers. Only the bitcode
/// defines its functions, by calls of what the text says; elsewhere they are never called. Results are operands, or have as many bits.
/// `whole`: its kernels only serve calls that goes_out_whole() tells of.
template <class Element, class Operand, int fields, TextWork work_of, bool whole = false>
struct TextSemiring : TextTiles<work_of> {
  using self = TextSemiring;
  using Whole = TextSemiring<Element, Operand, fields, work_of, true>;
  static constexpr bool is_whole = whole;
  static constexpr TextWork work = work_of;
  using element = Element;
  using operand = Operand;
  using accumulator = typename text_accumulator<Operand, fields>::type;
  static constexpr const char* name = "text";
  static constexpr bool transcendental = work != TextWork::light;
  Operand parameters[most_text_parameters];

  RIGEL_MEMBER static accumulator identity();
  RIGEL_MEMBER TextProduct<Operand> multiply(Operand a, Operand b, std::int64_t k) const { return {a, b, k}; }
  RIGEL_MEMBER accumulator add(accumulator x, const TextProduct<Operand>& product) const;
  RIGEL_MEMBER accumulator add(accumulator x, accumulator y) const;
  RIGEL_MEMBER Operand result(accumulator x) const;
};
template <class S>
inline constexpr bool has_fields = !Number<typename S::accumulator>;

}  // namespace rigel::backends::simt

namespace rigel {
template <class E, class A, int fields, backends::simt::TextWork work>
inline constexpr bool can_accumulate<backends::simt::TextSemiring<E, A, fields, work, true>> = false;
}

namespace rigel::backends::simt {

template <class E, class A, int fields, bool whole = false>
constexpr auto text_semirings_with() {
  constexpr type_list<TextSemiring<E, A, fields, TextWork::light, whole>> plain{};
  // Tiles of larger accumulators are those of texts that call functions.
  if constexpr (fields * sizeof(A) <= 8)
    return plain + type_list<TextSemiring<E, A, fields, TextWork::calls, whole>>{};
  else
    return plain;
}
/// Those that sum powers: of floats.
template <class E, class A>
constexpr auto text_powers_of() {
  if constexpr (std::is_same_v<E, float>)
    return type_list<TextSemiring<E, A, 1, TextWork::powers>, TextSemiring<E, A, 1, TextWork::powers, true>>{};
  else
    return type_list<>{};
}
template <class E, class A = accumulator_for<E>>
constexpr auto text_semirings_of() {
  static_assert(detail::most_text_fields == 4);
  return text_semirings_with<E, A, 1>() + text_semirings_with<E, A, 2>() + text_semirings_with<E, A, 3>() +
         text_semirings_with<E, A, 4>() + text_semirings_with<E, A, 1, true>() + text_semirings_with<E, A, 2, true>() +
         text_powers_of<E, A>();
}
/// The semirings from text of an element type, in the order of the bitcode's table.
template <class E>
using TextSemirings = decltype(text_semirings_of<E>());

/// Whether there are kernels of whole tiles. Accumulators of more than two fields have none: those take room in the library, and are rare.
template <class S>
inline constexpr bool has_whole = text_place<typename S::Whole>(TextSemirings<typename S::element>{}) >= 0;

/// The large tile of powers brings operands that lie along K in vectors: copies of elements would take a seventh of its instructions. Its
/// slabs are not unrolled, since the loops for all exponents stand in one kernel.
template <class E, class A, bool whole, class Shape>
inline constexpr bool takes_vectors<TextSemiring<E, A, 1, TextWork::powers, whole>, Shape> =
    Shape::role == tile::Role::large;
template <class E, class A, bool whole>
inline constexpr bool is_emulated<TextSemiring<E, A, 1, TextWork::powers, whole>> = true;

/// The bits of a result.
template <class T>
using TextWord = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// What those that store results have in common: no step of an epilogue is known before.
struct TextStore {
  static constexpr bool takes_transpose = true;
  static constexpr bool is_layer = false;
  template <class T>
  RIGEL_MEMBER bool runs_short() const {
    return false;
  }
  template <int groups, int width, class Outputs>
  RIGEL_MEMBER void run_on(float (&)[groups][width], const Outputs&, int = 0) const {}
  RIGEL_MEMBER bool begins_with_root() const { return false; }
  template <class T>
  RIGEL_MEMBER double power() const {
    return 0;
  }
};

/// Stores results as they are, or rounded to 16-bit elements: most calls have no epilogue, and the code of one takes as long to compile
/// as the rest of a kernel.
template <class S>
struct CopyFinish : TextStore {
  Scalar type;  // of C

  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return shortens<S> ? type == scalar_of<T> : std::is_same_v<T, result_t<S>>;
  }
  RIGEL_MEMBER void store(const S& s, typename S::accumulator x, void* c, std::int64_t offset, std::int64_t, std::int64_t,
                          std::int64_t) const {
    const auto value = rigel::result(s, x);
    if (is_copy<result_t<S>>())
      static_cast<result_t<S>*>(c)[offset] = value;
    else
      static_cast<typename S::element*>(c)[offset] = detail::convert<typename S::element>(value);
  }
  RIGEL_MEMBER typename S::accumulator load(const S& s, const void* c, std::int64_t offset) const {
    return is_copy<result_t<S>>() ? rigel::lift(s, static_cast<const result_t<S>*>(c)[offset])
                                  : rigel::lift(s, static_cast<float>(static_cast<const typename S::element*>(c)[offset]));
  }
};

/// Whether C receives results of this type as they are, or rounded to 16-bit elements. `type` becomes how kernels then see C's: they take
/// results for operands, and copy their bits.
template <class S>
bool copies_results(const Contraction& p, Scalar result, Scalar& type) {
  type = p.c.type == result ? scalar_of<result_t<S>> : p.c.type;
  return p.program && p.program->empty() &&
         (p.c.type == result || (shortens<S> && result == Scalar::f32 && p.c.type == scalar_of<typename S::element>));
}

/// Stores what an epilogue from text makes of results, or an epilogue of the closed set of results that are no operands: what is linked
/// with the kernel says which. `may_copy`: the kernel also stores results as they are.
template <bool may_copy>
struct TextFinish : TextStore {
  detail::ProgramFinish program;
  Scalar type;  // of C, as copies_results() has it
  bool copies;
  std::int64_t first_batch, first_row, first_column;  // where C's first output lies in what the epilogue sees
  std::uint64_t numbers[most_text_parameters];        // the epilogue's hyperparameters,
  const std::uint64_t* memory;                        // or where they are, if some are views,
  std::int64_t stride;                                // and from matrix to matrix

  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return may_copy && copies && type == scalar_of<T>;
  }
  template <class S>
  RIGEL_MEMBER void store(const S& s, typename S::accumulator x, void* c, std::int64_t offset, std::int64_t m,
                          std::int64_t n, std::int64_t l) const {
    const auto value = rigel::result(s, x);
    using Value = std::remove_const_t<decltype(value)>;
    if constexpr (may_copy) {
      if (is_copy<Value>()) {
        static_cast<Value*>(c)[offset] = value;
        return;
      }
      if constexpr (shortens<S>)
        if (is_copy<typename S::element>()) {
          static_cast<typename S::element*>(c)[offset] = detail::convert<typename S::element>(value);
          return;
        }
    }
    put(__builtin_bit_cast(TextWord<Value>, value), c, offset, m, n, l);
  }
  template <class S>
  RIGEL_MEMBER typename S::accumulator load(const S& s, const void* c, std::int64_t offset) const {
    return program.load(s, c, offset);
  }

 private:
  template <class Word>
  RIGEL_MEMBER void put(Word result, void* c, std::int64_t offset, std::int64_t m, std::int64_t n, std::int64_t l) const;
};

/// Whether a call that copies results stores whole tiles of one row-major C in vectors, and adds to nothing. Its kernel in small tiles is a
/// whole one, which a first call compiles in less time: it has no other store, no C to add to, and no batches.
template <class S, class Shape>
bool goes_out_whole(const Contraction& p) {
  const auto size = static_cast<std::int64_t>(size_of(p.c.type));
  const auto places = reinterpret_cast<std::uintptr_t>(p.c.data) | static_cast<std::uintptr_t>(p.c.row_stride * size);
  return p.batch == 1 && !p.accumulate && p.c.column_stride == 1 && p.c.row_stride >= p.n && places % 16 == 0 &&
         p.m % Shape::m == 0 && p.n % Shape::n == 0;
}
/// The store of such a tile.
template <class S, class Shape, class Sum>
class WholeStore {
  using Finish = CopyFinish<S>;
  using Value = result_t<S>;

 public:
  static constexpr bool joins_late = false;

  __device__ __forceinline__ WholeStore(const detail::Arguments<S, Finish>& g, const tile::Raster& raster, const S& s,
                                        tile::Place<Shape> place, int, bool, void*)
      : g_(g), s_(s), place_(place), origin_(origin(raster)) {}

  __device__ static tile::Origin origin(const tile::Raster& raster) {
    const unsigned block = arch::block_index();
    __builtin_assume(block < raster.rows * raster.columns);
    return tile::Raster{0, raster.rows, raster.columns}.origin(block, Shape::m, Shape::n);
  }

  __device__ __forceinline__ void operator()(typename Sum::Registers& x) const {
    if constexpr (shortens<S>)
      if (g_.finish.template is_copy<typename S::element>()) return store<typename S::element>(x);
    store<Value>(x);
  }

 private:
  template <class To>
  __device__ __forceinline__ void store(typename Sum::Registers& x) const {
    static_assert(Sum::chunk * sizeof(To) <= 16);
    To* const c = static_cast<To*>(g_.c) + g_.c_offset(origin_.batch, origin_.m, origin_.n);
    copy_out<true, Sum::chunk, Shape>(x, c, g_.c_strides.row, place_, false, [&](const typename S::accumulator& value, To) {
      const Value result = rigel::result(s_, value);
      if constexpr (std::is_same_v<To, Value>)
        return result;
      else
        return detail::convert<To>(result);
    });
  }

  const detail::Arguments<S, Finish>& g_;
  const S& s_;
  tile::Place<Shape> place_;
  tile::Origin origin_;
};
template <class E, class A, int fields, TextWork work, class Shape, class Sum, tile::Way WayA, tile::Way WayB>
class TileStore<TextSemiring<E, A, fields, work, true>, CopyFinish<TextSemiring<E, A, fields, work, true>>, Shape, Sum, WayA,
                WayB> : public WholeStore<TextSemiring<E, A, fields, work, true>, Shape, Sum> {
 public:
  using WholeStore<TextSemiring<E, A, fields, work, true>, Shape, Sum>::WholeStore;
};

/// A kernel in tiles, the one for small matrices, the one for few outputs, and those for a few rows against a large matrix.
template <class Of, class Ends, tile::Way way_of_a, tile::Way way_of_b>
struct TextTile {
  using Shape = Of;
  using Finish = Ends;
  static constexpr Ways ways{way_of_a, way_of_b};
};
template <class Ends>
struct TextSmall {
  using Finish = Ends;
};
template <class Ends>
struct TextNarrow {
  using Finish = Ends;
};
/// The one in which threads share an output's K.
template <class Ends>
struct TextNarrowSplit {
  using Finish = Ends;
};
template <class Of, class Ends, bool along_k>
struct TextSkinny {
  using Skinny = Of;
  using Finish = Ends;
  static constexpr bool k_major = along_k;
};

/// The kernels of a tile: those that bring operands in vectors, and all among which with_function() chooses.
template <class S, class Shape, class Finish>
constexpr auto text_vectors_of() {
  using tile::Way;
  if constexpr (S::work == TextWork::powers) {
    return type_list<TextTile<Shape, Finish, Way::along_k, Way::along_k>>{};
  } else if constexpr (widens<S>) {
    return type_list<TextTile<Shape, Finish, Way::either, Way::either>>{};
  } else {
    constexpr type_list<TextTile<Shape, Finish, Way::along_k, Way::along_k>,
                        TextTile<Shape, Finish, Way::along_k, Way::along_lines>,
                        TextTile<Shape, Finish, Way::along_lines, Way::along_k>>
        vectors{};
    if constexpr (takes_lines<S, Shape>)
      return vectors + type_list<TextTile<Shape, Finish, Way::along_lines, Way::along_lines>>{};
    else
      return vectors;
  }
}
template <class S, class Shape, class Finish>
constexpr auto text_tiles_of() {
  constexpr type_list<TextTile<Shape, Finish, tile::Way::single, tile::Way::single>> single{};
  if constexpr (takes_vectors<S, Shape>)
    return single + text_vectors_of<S, Shape, Finish>();
  else
    return single;
}

/// The small tiles of texts that bring vectors count down: ptxas otherwise peels the first slab off, and takes half as long again. (The large
/// tile would be 2 to 4 % slower.)
template <class E, class A, int fields, TextWork work, bool whole, class Shape, tile::Way WayA, tile::Way WayB>
inline constexpr bool counts_down<TextSemiring<E, A, fields, work, whole>, Shape, WayA, WayB> =
    Shape::role == tile::Role::small && WayA != tile::Way::single && WayB != tile::Way::single;
/// The schedules with the fewest spills.
template <class E, class A, int fields, TextWork work, bool whole>
inline constexpr Tuning tuning<TextSemiring<E, A, fields, work, whole>> = {.counted = ShortFloat<E> ? Schedule{0, 7}
                                                                                                    : Schedule{0, 4}};

/// The ways in which a tile's kernel brings a problem's operands.
template <class S, class Shape>
Ways text_ways(const Contraction& p) {
  const Ways ways = ways_for<S, Shape>(p);
  if (widens<S> && ways.a != tile::Way::single) return {tile::Way::either, tile::Way::either};
  if (S::work == TextWork::powers && ways != Ways{tile::Way::along_k, tile::Way::along_k}) return {};
  return ways;
}

template <class S, class Finish, class... Shape>
constexpr auto text_kernels_of(type_list<Shape...>) {
  return (text_tiles_of<S, Shape, Finish>() + ... + type_list<>{});
}
/// Whether a semiring from text has kernels for a few rows: as in has_skinny, if ⊗ is short.
template <class S>
inline constexpr bool has_text_skinny = !has_fields<S> && !is_transcendental<S>;

template <class S, class Finish>
constexpr auto text_skinny_of() {
  const auto of_shape = []<class Shape>(Shape) {
    if constexpr (Shape::m > 0)
      return type_list<TextSkinny<Shape, Finish, true>, TextSkinny<Shape, Finish, false>>{};
    else
      return type_list<>{};
  };
  if constexpr (has_text_skinny<S>)
    return of_shape(wide_skinny_shape<S>()) + of_shape(low_skinny_shape<S>()) + of_shape(high_skinny_shape<S>());
  else
    return type_list<>{};
}

/// Whether slices of K can be joined: accumulators are numbers.
template <class S>
inline constexpr bool has_text_slices = !has_fields<S>;

template <class S, class Finish>
constexpr auto text_narrow_split_of() {
  if constexpr (has_text_slices<S>)
    return type_list<TextNarrowSplit<Finish>>{};
  else
    return type_list<>{};
}

/// The dynamic shared memory that a kernel may take.
template <class S, class Kernel>
constexpr int text_shared_memory() {
  if constexpr (requires { typename Kernel::Skinny; })
    return Kernel::Skinny::template shared<typename S::accumulator>(Kernel::Skinny::rows, Kernel::k_major);
  else
    return 0;
}

/// The kernels of S for calls without an epilogue from text.
template <class S>
constexpr auto plain_text_kernels_of() {
  using Finish = std::conditional_t<has_fields<S>, TextFinish<true>, detail::ProgramFinish>;
  using OfTiles = std::conditional_t<has_fields<S>, TextFinish<false>, detail::ProgramFinish>;
  return text_kernels_of<S, CopyFinish<S>>(Tiles<S>{}) + text_kernels_of<S, OfTiles>(Tiles<S>{}) +
         type_list<TextSmall<Finish>, TextNarrow<Finish>>{} + text_skinny_of<S, Finish>() +
         text_narrow_split_of<S, Finish>();
}
/// The kernels of whole tiles. Where operands may come in vectors, others are the general kernels': of floats theirs would spill.
template <class S, class Shape>
constexpr auto whole_text_kernels_of() {
  if constexpr (takes_vectors<S, Shape>)
    return text_vectors_of<S, Shape, CopyFinish<S>>();
  else
    return text_tiles_of<S, Shape, CopyFinish<S>>();
}
/// All kernels of S, in the order of the bitcode's table.
template <class S>
constexpr auto all_text_kernels_of() {
  using Finish = TextFinish<false>;
  if constexpr (S::is_whole)
    return whole_text_kernels_of<S, SmallTile<S>>();
  else if constexpr (has_fields<S>)
    return plain_text_kernels_of<S>();
  else
    return plain_text_kernels_of<S>() + text_kernels_of<S, Finish>(Tiles<S>{}) +
           type_list<TextSmall<Finish>, TextNarrow<Finish>>{} + text_skinny_of<S, Finish>() +
           text_narrow_split_of<S, Finish>();
}
template <class S>
using PlainTextKernels = decltype(plain_text_kernels_of<S>());
template <class S>
using TextKernels = decltype(all_text_kernels_of<S>());

template <class... All>
constexpr int count_of(type_list<All...>) {
  return sizeof...(All);
}
/// How many kernels the table has for the semirings of a list that stand before number `end`.
template <class... S>
constexpr int text_kernels_before(int end, type_list<S...>) {
  int place = 0, count = 0;
  ((count += place++ < end ? count_of(TextKernels<S>{}) : 0), ...);
  return count;
}
/// Where a kernel stands in the table.
template <class S, class Kernel>
inline constexpr int text_kernel_index =
    text_kernels_before(text_place<S>(TextSemirings<typename S::element>{}), TextSemirings<typename S::element>{}) +
    text_place<Kernel>(TextKernels<S>{});

/// Tells whether the library and the bitcode of an element type agree on what passes between them.
template <class E, class S = TextSemiring<E, accumulator_for<E>, 1, TextWork::light>>
inline constexpr std::uint64_t text_layout =
    std::uint64_t{sizeof(detail::Arguments<S, detail::ProgramFinish>)} << 48 |
    std::uint64_t{sizeof(detail::Arguments<S, TextFinish<false>>)} << 32 | std::uint64_t{sizeof(SmallShape)} << 16 |
    text_kernels_before(count_of(TextSemirings<E>{}), TextSemirings<E>{});

/// The kernels of a semiring from text. Each compiles its CUDA kernels when a call first needs them.
std::vector<Kernel<Contraction>> text_kernels(const detail::TextFacts& facts, const detail::TextCompiler& compile);
/// Compiles all CUDA kernels of which `kernel` is one, for a device: those for calls with an epilogue from text, or those for all others (null).
void compile_text_kernels(const Kernel<Contraction>& kernel, const Execution& execution, const detail::TextSource* epilogue);

}  // namespace rigel::backends::simt

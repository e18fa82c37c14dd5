// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// x ⊕ Σ_k A(m,k) ⊗ B(k,n) for a tile whose outputs are in registers. Slabs of A and B are prefetched to shared memory. Each
// output is one chain in ascending k.
#pragma once

#include <rigel/backends/cuda/simt/tiles.hpp>
#include <rigel/backends/cuda/tile/exchange.hpp>
#include <rigel/backends/cuda/tile/pair_loader.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>

namespace rigel::backends::simt {

/// All outputs of a thread, back and forth: consecutive steps share an operand, which is then read from the register file
/// only once.
template <class Step, class Accumulator, class Operand, int M, int N>
__device__ __forceinline__ void step_all(const Step& step, Accumulator (&x)[M][N], const Operand (&a)[M],
                                         const Operand (&b)[N], std::int64_t k) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int turn = 0; turn < M; ++turn) {
      const int i = j % 2 == 0 ? turn : M - 1 - turn;
      x[i][j] = step(x[i][j], a[i], b[j], k);
    }
}

/// The same for `count` k at a time, from k on.
template <class Step, class Accumulator, class Operand, int count, int M, int N>
__device__ __forceinline__ void step_chunk(const Step& step, Accumulator (&x)[M][N], const Operand (&a)[count][M],
                                           const Operand (&b)[count][N], [[maybe_unused]] std::int64_t k) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int i = 0; i < M; ++i) {
      Operand a_values[count], b_values[count];
#pragma unroll
      for (int c = 0; c < count; ++c) a_values[c] = a[c][i], b_values[c] = b[c][j];
      if constexpr (requires { step(x[i][j], a_values, b_values, k); })
        x[i][j] = step(x[i][j], a_values, b_values, k);
      else
        x[i][j] = step(x[i][j], a_values, b_values);
    }
}

/// Forces whole words into registers here, whatever part of them is used.
template <class Word, int count>
__device__ __forceinline__ void whole(Word (&words)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    auto word = __builtin_bit_cast(std::uint32_t, words[i]);
    asm volatile("" : "+r"(word));
    words[i] = __builtin_bit_cast(Word, word);
  }
}

/// The loader of an operand with `lines` rows or columns per slab; of pairs, with `values` = 1 for A and 2 for B. A user's
/// functor sees elements of A and B only, whichever way they come.
template <class S, tile::Way way, int values, int lines, class Shape>
using LoaderFor =
    std::conditional_t<is_packed<S>,
                       tile::PairLoader<way, operand_t<OnPairs<S>>, values, lines, Shape::depth, Shape::threads>,
                       tile::Loader<way, typename S::element, operand_t<S>, lines, Shape::depth, Shape::threads,
                                    sees_elements_alone<S> && way == tile::Way::single>>;

/// The loaders of a kernel, and its number of slabs in shared memory: three if copies are asynchronous and 48 KB hold them.
template <class S, class Shape, tile::Way WayA, tile::Way WayB>
struct Slabs {
  using Element = typename S::element;
  using Operand = operand_t<OnPairs<S>>;
  using A = tile::Slab<Operand, Shape::m, Shape::depth>;
  using B = tile::Slab<Operand, Shape::n, Shape::depth>;
  using LoaderA = LoaderFor<S, WayA, 1, Shape::m, Shape>;
  using LoaderB = LoaderFor<S, WayB, 2, Shape::n, Shape>;
  static constexpr int size = A::size + B::size;  // of a stage, in elements
  static constexpr int bytes = size * static_cast<int>(sizeof(typename A::Stored));
  static constexpr int staging = LoaderA::staging_size + LoaderB::staging_size;
  static constexpr int stages = LoaderA::async && 3 * bytes <= 48 * 1024 ? 3 : 2;
  static_assert(staging == 0 || stages == 3);
  static constexpr bool repeat_lines(tile::Way way) {
    return way != tile::Way::shifted_k && way != tile::Way::shifted_lines;
  }
  static_assert(!sees_elements_alone<S> || (repeat_lines(WayA) && repeat_lines(WayB)));
};

/// The sum of a tile, and the shared memory that it takes. `Count` counts k; 32 bits, if they suffice, save a register.
template <
    class S, class Shape, class Step, tile::Way WayA, tile::Way WayB, Schedule when = schedule_of<S, Shape, WayA, WayB>(),
    class Count = std::conditional_t<WayA == tile::Way::single || WayB == tile::Way::single, std::int64_t, std::int32_t>>
class TileSum {
 public:
  static constexpr bool singly = WayA == tile::Way::single || WayB == tile::Way::single;

 private:
  using W = OnPairs<S>;
  using Memory = Slabs<S, Shape, WayA, WayB>;
  static constexpr bool shifted = WayA == tile::Way::shifted_k;
  static constexpr int stage_size = Memory::size, stages = Memory::stages;
  static constexpr int ahead = stages - 1;  // slabs in flight while one is worked on
  // Whole slabs are unrolled. If K may be any number, the last slab is not, unless it is mostly whole and may end in zeros.
  // If registers are scarce, neither are slabs that start copies of incomplete vectors.
  static constexpr bool unrolled = Step::chunk == 1 && !is_emulated<S> && (!singly || unrolls_singles<S>);
  static_assert(!unrolled || Shape::depth >= 8, "a schedule's steps are those of a slab");

 public:
  using Accumulator = typename W::accumulator;
  using Operand = operand_t<W>;
  using SlabA = typename Memory::A;
  using SlabB = typename Memory::B;
  using LoaderA = typename Memory::LoaderA;
  using LoaderB = typename Memory::LoaderB;
  using Stored = typename SlabA::Stored;
  static constexpr int chunk = SlabA::template chunk_for<Shape::outputs_m, Shape::outputs_n>;
  using Exchange = tile::Exchange<Accumulator, Shape, chunk>;
  using Registers = typename Exchange::Registers;
  using FragmentA = Operand[2][Shape::outputs_m];
  using FragmentB = Operand[2][Shape::outputs_n];
  static constexpr int slabs_size = stages * stage_size;  // in elements; the loaders' staging follows
  static constexpr int slab_bytes = stages * Memory::bytes + Memory::staging * static_cast<int>(sizeof(Stored));
  static constexpr int exchange_bytes = Exchange::size * static_cast<int>(sizeof(Accumulator));
  static constexpr int bytes = slab_bytes > exchange_bytes ? slab_bytes : exchange_bytes;  // of shared memory
  static_assert(!shifted || exchange_bytes <= stages * Memory::bytes,
                "zeros may still arrive behind the slabs when outputs leave");

  /// x = x ⊕ Σ for the outputs of the thread at `place`; K is not 0. Callers declare loaders and fragments after x: ptxas's
  /// register allocation, and with it speed, depends on the order in which Clang sees them.
  __device__ __forceinline__ static void add(Registers& x, LoaderA& a, LoaderB& b, FragmentA& fragment_a,
                                             FragmentB& fragment_b, const detail::ProductArguments<typename S::element>& g,
                                             const Step& step, tile::Place<Shape>& place, Stored* slabs) {
    constexpr int least = [] {  // k that must be left for a slab to be unrolled
      if constexpr (starts_whole) return ahead * Shape::depth + LoaderA::whole;
      return shifted && tuning<S>.zero_terms ? Shape::depth / 2 + 1 : Shape::depth;
    }();

    const Copies copies{a, b, slabs};
    const Reads reads{slabs, place};
    if constexpr (shifted) a.start_heads(copies.of_a(0), g.k);
    if constexpr (WayB == tile::Way::shifted_k) b.start_heads(copies.of_b(0), g.k);
#pragma unroll
    for (int stage = 0; stage < ahead; ++stage) copies.start(stage, g.k - stage * Shape::depth);
    copies.finish(0);
    [[maybe_unused]] bool special = false;
    if constexpr (tests)
      special = copies.synchronize(0, g.k);
    else
      __syncthreads();
    if constexpr (tests) for_each_value(x, [](Accumulator& value, int, int) { value = Step::begin(value); });
    if constexpr (unrolled) reads.read(0, 0, fragment_a[0], fragment_b[0]);
    int current = 0, free = ahead;
    constexpr bool counts = counts_down<S, Shape, WayA, WayB>;
    auto left = static_cast<Count>(g.k);
    if constexpr (counts) asm volatile("" : "+r"(left));  // of its own
    const auto count_down = [&] {
      if constexpr (counts) left -= Shape::depth;
    };
#pragma unroll 1
    for (Count k0 = 0;; k0 += Shape::depth, count_down()) {
      if constexpr (!counts) left = static_cast<Count>(g.k) - k0;
      if (unrolled && (!any_k || left >= least)) {
        if constexpr (unrolled) add_unrolled(x, copies, reads, fragment_a, fragment_b, step, current, free, left, k0);
      } else if constexpr (any_k || !unrolled) {
        copies.start(free, left - ahead * Shape::depth);
        // Declared even if it is not used: the order in which Clang sees variables decides about registers.
        [[maybe_unused]] const int count = any_k && left < Shape::depth ? static_cast<int>(left) : Shape::depth;
        if constexpr (Step::chunk > 1) {
          add_by_chunks(x, reads, step, current, left, k0);
        } else {
          const auto add_slab = [&](const auto& step) __attribute__((always_inline)) {
            add_by_steps(x, reads, fragment_a, fragment_b, step, current, count, k0);
          };
          if constexpr (tests) {
            if (special)
              add_slab([&](Accumulator x, Operand a, Operand b, std::int64_t k) { return step.exactly(x, a, b, k); });
            else
              add_slab(step);
          } else if constexpr (requires { step.choose(add_slab); }) {
            static_assert(!unrolled);
            step.choose(add_slab);
          } else {
            add_slab(step);
          }
        }
        copies.finish(next(current));
        if constexpr (tests)
          special = copies.synchronize(next(current), left - Shape::depth);
        else
          __syncthreads();
      }
      if (left <= Shape::depth) break;
      free = current;
      current = next(current);
    }
    if constexpr (tests) for_each_value(x, [](Accumulator& value, int, int) { value = Step::end(value); });
  }

 private:
  static constexpr bool tests = requires { &Step::exactly; };  // see OrderedSteps
  static constexpr bool any_k = singly || shifted;
  static constexpr bool starts_whole = shifted && !unrolls_parts<Shape>;

  static __device__ __forceinline__ int next(int stage) { return stage + 1 == stages ? 0 : stage + 1; }

  /// Fills the slabs in shared memory: each stage holds one of A and one of B.
  struct Copies {
    LoaderA& a;
    LoaderB& b;
    Stored* slabs;

    __device__ __forceinline__ Stored* of_a(int stage) const { return slabs + stage * stage_size; }
    __device__ __forceinline__ Stored* of_b(int stage) const { return slabs + stage * stage_size + SlabA::size; }

    /// Starts the copies of a slab, of which `left` k exist; of a whole one.
    __device__ __forceinline__ void start(int stage, std::int64_t left) const {
      a.start(of_a(stage), left);
      b.start(of_b(stage), left);
      arch::commit_copies();
    }
    __device__ __forceinline__ void start_whole(int stage) const {
      a.start_whole(of_a(stage));
      b.start_whole(of_b(stage));
      arch::commit_copies();
    }
    /// Waits for the thread's own copies of a slab, and completes them.
    __device__ __forceinline__ void finish(int stage) const {
      arch::wait_for_copies<ahead - 1>();
      if constexpr (shifted)
        a.finish(of_a(stage), of_a(next(stage)));
      else
        a.finish(of_a(stage));
      if constexpr (WayB == tile::Way::shifted_k)
        b.finish(of_b(stage), of_b(next(stage)));
      else
        b.finish(of_b(stage));
    }
    /// Waits for all threads' copies of a slab. Returns whether any of its elements is special.
    __device__ __forceinline__ bool synchronize(int stage, std::int64_t left) const {
      const auto is_special = [](const Operand& value) { return Step::is_special(value); };
      const bool in_a = a.any(of_a(stage), left, is_special), in_b = b.any(of_b(stage), left, is_special);
      return __syncthreads_or(in_a || in_b) != 0;
    }
  };

  /// Reads a thread's operands of one k from them.
  struct Reads {
    const Stored* slabs;
    tile::Place<Shape>& place;

    __device__ __forceinline__ void read(int stage, int k, Operand (&a)[Shape::outputs_m],
                                         Operand (&b)[Shape::outputs_n]) const {
      const Stored* const slab = slabs + stage * stage_size;
      SlabA::template read<Shape::threads_m, chunk>(slab, k, place.m, a);
      SlabB::template read<Shape::threads_n, chunk>(slab + SlabA::size, k, place.n, b);
      // Otherwise words of which one half is used are read as halves, one by one.
      if constexpr (is_packed<S>)
        if constexpr (W::adds) whole(a);
    }
  };

  /// Adds slab `current`, whose first operands have been read, by unrolled steps. On schedule it starts the copies to stage `free`, and
  /// finishes those of the next slab, whose first operands it reads.
  __device__ __forceinline__ static void add_unrolled(Registers& x, const Copies& copies, const Reads& reads,
                                                      FragmentA& fragment_a, FragmentB& fragment_b, const Step& step,
                                                      int current, int free, Count left, Count k0) {
#pragma unroll
    for (int k = 0; k < Shape::depth; ++k) {
      if (k == when.start) {
        if constexpr (starts_whole)
          copies.start_whole(free);
        else
          copies.start(free, left - ahead * Shape::depth);
      }
      if (k == when.turn) copies.finish(next(current));
      if (k + 1 < Shape::depth) {
        reads.read(current, k + 1, fragment_a[(k + 1) % 2], fragment_b[(k + 1) % 2]);
      } else {
        __syncthreads();
        reads.read(next(current), 0, fragment_a[0], fragment_b[0]);
      }
      step_all(step, x, fragment_a[k % 2], fragment_b[k % 2], k0 + k);
    }
  }

  /// Adds slab `current`, of which `left` k exist: as many at a time as a step takes, and then one by one.
  __device__ __forceinline__ static void add_by_chunks(Registers& x, const Reads& reads, const Step& step, int current,
                                                       Count left, Count k0) {
    // Computed again, since Clang optimises this function before it is inlined, and need not unroll for any count.
    const int count = any_k && left < Shape::depth ? static_cast<int>(left) : Shape::depth;
    Operand chunk_a[Step::chunk][Shape::outputs_m], chunk_b[Step::chunk][Shape::outputs_n];
    int k = 0;
#pragma unroll 1
    for (; k + Step::chunk <= count; k += Step::chunk) {
#pragma unroll
      for (int c = 0; c < Step::chunk; ++c) reads.read(current, k + c, chunk_a[c], chunk_b[c]);
      step_chunk(step, x, chunk_a, chunk_b, k0 + k);
    }
    Operand single_a[1][Shape::outputs_m], single_b[1][Shape::outputs_n];
#pragma unroll 1
    for (; k < count; ++k) {
      reads.read(current, k, single_a[0], single_b[0]);
      step_chunk(step, x, single_a, single_b, k0 + k);
    }
  }

  /// Adds `count` k of slab `current` one by one. A tile that reads ahead reads a step's operands during the step before it.
  template <class OneStep>
  __device__ __forceinline__ static void add_by_steps(Registers& x, const Reads& reads, FragmentA& fragment_a,
                                                      FragmentB& fragment_b, const OneStep& step, int current, int count,
                                                      Count k0) {
    if constexpr (Shape::ahead && !is_emulated<S>) {
      reads.read(current, 0, fragment_a[0], fragment_b[0]);
#pragma unroll 1
      for (int k = 0; k < count; k += 2) {
        // Otherwise this loop's addresses are kept in registers, or spilled, throughout the unrolled loop.
        if constexpr (shifted) asm volatile("" : "+r"(reads.place.m), "+r"(reads.place.n));
        reads.read(current, k + 1, fragment_a[1], fragment_b[1]);
        step_all(step, x, fragment_a[0], fragment_b[0], k0 + k);
        if (k + 1 == count) break;
        reads.read(current, k + 2, fragment_a[0], fragment_b[0]);
        step_all(step, x, fragment_a[1], fragment_b[1], k0 + k + 1);
      }
    } else {
#pragma unroll 1
      for (int k = 0; k < count; ++k) {
        reads.read(current, k, fragment_a[0], fragment_b[0]);
        step_all(step, x, fragment_a[0], fragment_b[0], k0 + k);
      }
    }
  }
};

}  // namespace rigel::backends::simt

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What becomes of a row of scores whose tiles one block computes after the other, in place of a store. An outlet has
//
//     begin(block)        before the first tile
//     take(block, part)   some scores of one row, for each thread: tiles in ascending order of columns, and in a tile a row's columns, too
//     end(block, …)       after the last one: results, or what a later launch joins to those of other slices of the columns
//
// A thread always takes the same columns of a row, modulo how many threads share the row. `Block` is a block of threads: that of a GPU,
// or one that a test emulates.
//
//   Extremum      minimum and maximum: the best of each thread, joined at the end
//   Counter       count_below, likewise
//   Lanes         sum and log_sum_exp: the lanes of detail::lanes in shared memory, in the reference's order
//   Best          smallest and largest: scores that precede a row's k-th are gathered in shared memory. When a row's place is full, warps
//                 merge what has been gathered with the rows' sorted lists in global memory.
#pragma once

#include <rigel/detail/reduction.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rigel::backends::reduce {

/// One launch of a call. Its units are tiles of rows, of all matrices, and the columns of each are cut into slices.
template <class T>
struct Launch {
  detail::ReducedOutputs outputs;
  detail::Below<T> below;
  Reducer reducer;
  bool exclude_self;
  std::int32_t count;          // results of a row
  std::int32_t slices;         // of the columns,
  std::int32_t slice_tiles;    // of so many tiles each; the last one may have fewer
  std::int64_t rows;           // of a matrix,
  std::uint32_t row_tiles;     // in so many tiles
  std::uint32_t first, units;  // of this launch
  std::byte* states;           // of slices: results of each unit's rows, slice by slice; of Best always
};

/// Scores of one row of a tile that a thread takes: `count` of at most `most` in shared memory, every `apart`-th. Their columns in the matrix
/// are n, n + step, …; `self` is the one that is left out, or −1.
template <class T, int most>
struct Part {
  const T* first;
  int apart, count;
  int group, row;  // number among the thread's rows, and in the tile
  std::int32_t n, step;
  std::int64_t self;

  RIGEL_MEMBER T operator()(int i) const { return first[i * apart]; }
  RIGEL_MEMBER bool is_self(int i) const { return n + i * step == self; }
  /// Whether is(score) holds for any score, without a branch for each.
  template <class Is>
  RIGEL_MEMBER bool any(const Is& is) const {
    bool found = false;
    if (count == most) {
#pragma unroll
      for (int i = 0; i < most; ++i) found |= is((*this)(i));
    } else {
#pragma unroll 1
      for (int i = 0; i < count; ++i) found |= is((*this)(i));
    }
    return found;
  }
};

/// A score and its column, in 32 bits; −1: none.
template <class T>
struct Kept {
  T value;
  std::int32_t n;
  RIGEL_MEMBER detail::Found<T> found() const { return {value, n}; }
};
/// The extremum of two, as detail::extremum() says.
template <bool largest, class T>
RIGEL_FUNCTION Kept<T> extremum(const Kept<T>& x, const Kept<T>& y) {
  const bool of_y = detail::value_replaces<largest>(y.value, x.value),
             of_x = detail::value_replaces<largest>(x.value, y.value);
  const bool second = x.n < 0 || (y.n >= 0 && (of_y || (!of_x && y.n < x.n)));
  return {second ? y.value : x.value, second ? y.n : x.n};
}

/// Whether a reducer has an outlet.
constexpr bool has_outlet(Reducer r) {
  switch (r) {
    case Reducer::minimum:
    case Reducer::maximum:
    case Reducer::smallest:
    case Reducer::largest:
    case Reducer::sum:
    case Reducer::log_sum_exp:
    case Reducer::count_below: return true;
    default: return false;
  }
}

/// The block's rows in the outputs: matrix l, from row m on, `rows` of them; and in the states of this slice.
struct Rows {
  std::int64_t l, m;
  int rows;
  std::int64_t state;  // number of the first row's, among those of all slices
};

// ---- minimum and maximum ---------------------------------------------------------------------------------------------

template <class T, bool largest, int rows_of_tile, int threads, int groups>
struct Extremum {
  using State = Kept<T>;
  static constexpr int shared_bytes = groups * threads * static_cast<int>(sizeof(State));
  State* states;  // of the threads

  template <class Block>
  RIGEL_MEMBER void begin(const Block& block) const {
#pragma unroll
    for (int g = 0; g < groups; ++g) states[g * threads + block.thread()] = {T(0), -1};
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block& block, const Part<T, most>& part) const {
    State& mine = states[part.group * threads + block.thread()];
    State best = mine;
    if (best.n >= 0 && best.value != best.value) return;  // the first NaN stays
    const T value = best.value;
    if (best.n >= 0 && !part.any([&](T score) { return largest ? !(score <= value) : !(score >= value); })) return;
#pragma unroll 1
    for (int i = 0; i < part.count; ++i) {
      const T score = part(i);
      if (!part.is_self(i) && (best.n < 0 || detail::value_replaces<largest>(score, best.value)))
        best = {score, part.n + i * part.step};
    }
    mine = best;
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at, int group_rows) const {
    block.sync();
    for (int row = block.thread(); row < at.rows; row += threads) {
      const State* const of_row = states + row / group_rows * threads + row % group_rows;
      State best = of_row[0];
      for (int other = group_rows; other < threads; other += group_rows) best = extremum<largest>(best, of_row[other]);
      if (launch.slices == 1)
        launch.outputs.template store<largest>(best.found(), at.l, at.m + row);
      else
        reinterpret_cast<State*>(launch.states)[at.state + row] = best;
    }
  }

  /// Joins the slices of one row, which are `apart` states apart, by a warp, and stores the result.
  template <class Block>
  RIGEL_MEMBER static void join(const Block& block, const Launch<T>& launch, std::int64_t state, std::int64_t apart,
                                std::int64_t l, std::int64_t m, State* shared) {
    const State* const states = reinterpret_cast<const State*>(launch.states) + state;
    const int lane = block.thread() % 32;
    State* const of_warp = shared + block.thread() - lane;
    State best{T(0), -1};
#pragma unroll 4
    for (int s = lane; s < launch.slices; s += 32) best = extremum<largest>(best, states[s * apart]);
    of_warp[lane] = best;
    block.sync_warp();
    if (lane != 0) return;
    for (int other = 1; other < 32; ++other) best = extremum<largest>(best, of_warp[other]);
    launch.outputs.template store<largest>(best.found(), l, m);
  }
};

// ---- counts ----------------------------------------------------------------------------------------------------------

template <class T, int rows_of_tile, int threads, int groups>
struct Counter {
  using State = std::int32_t;
  static constexpr int shared_bytes = groups * threads * static_cast<int>(sizeof(State));
  State* states;

  template <class Block>
  RIGEL_MEMBER void begin(const Block& block) const {
#pragma unroll
    for (int g = 0; g < groups; ++g) states[g * threads + block.thread()] = 0;
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block& block, const Part<T, most>& part, const detail::Below<T>& below) const {
    State counted = 0;
#pragma unroll 4
    for (int i = 0; i < part.count; ++i) counted += !part.is_self(i) && below(part(i));
    states[part.group * threads + block.thread()] += counted;
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at, int group_rows) const {
    block.sync();
    for (int row = block.thread(); row < at.rows; row += threads) {
      const State* const of_row = states + row / group_rows * threads + row % group_rows;
      State counted = 0;
      for (int other = 0; other < threads; other += group_rows) counted += of_row[other];
      if (launch.slices == 1)
        launch.outputs.store(std::int64_t{counted}, at.l, at.m + row);
      else
        reinterpret_cast<State*>(launch.states)[at.state + row] = counted;
    }
  }

  template <class Block>
  RIGEL_MEMBER static void join(const Block& block, const Launch<T>& launch, std::int64_t state, std::int64_t apart,
                                std::int64_t l, std::int64_t m, State* shared) {
    const State* const states = reinterpret_cast<const State*>(launch.states) + state;
    const int lane = block.thread() % 32;
    State* const of_warp = shared + block.thread() - lane;
    State counted = 0;
#pragma unroll 4
    for (int s = lane; s < launch.slices; s += 32) counted += states[s * apart];
    of_warp[lane] = counted;
    block.sync_warp();
    if (lane != 0) return;
    for (int other = 1; other < 32; ++other) counted += of_warp[other];
    launch.outputs.store(std::int64_t{counted}, l, m);
  }
};

// ---- sums ------------------------------------------------------------------------------------------------------------

/// Lane j takes the columns j, j + lanes, … in ascending order. Columns are not cut into slices: the order is the reference's.
template <class T, class Lane, int rows_of_tile, int threads>
struct Lanes {
  static constexpr int lanes = detail::lanes;
  static constexpr int shared_bytes = lanes * rows_of_tile * static_cast<int>(sizeof(Lane));
  Lane* sums;  // lane by lane, those of all rows

  template <class Block>
  RIGEL_MEMBER void begin(const Block& block) const {
    for (int i = block.thread(); i < lanes * rows_of_tile; i += threads) sums[i] = Lane();
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block&, const Part<T, most>& part) const {
    constexpr int unrolled = sizeof(Lane) == sizeof(double) ? 4 : 1;  // an exponential is long
#pragma unroll unrolled
    for (int i = 0; i < part.count; ++i)
      if (!part.is_self(i)) {
        Lane& lane = sums[(part.n + i * part.step) % lanes * rows_of_tile + part.row];
        Lane sum = lane;
        sum.add(part(i));
        lane = sum;
      }
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at) const {
    block.sync();
    for (int row = block.thread(); row < at.rows; row += threads) {
      Lane* const of_row = sums + row;
#pragma unroll 1
      for (int half = lanes / 2; half > 0; half /= 2)
#pragma unroll 1
        for (int j = 0; j < half; ++j) {
          Lane sum = of_row[j * rows_of_tile];
          sum.add(of_row[(j + half) * rows_of_tile]);
          of_row[j * rows_of_tile] = sum;
        }
      launch.outputs.store(of_row[0].result(), at.l, at.m + row);
    }
  }
};

// ---- the k best ------------------------------------------------------------------------------------------------------

/// Numbers as unsigned keys in the order of results: ascending, or descending if `largest`. NaN, which counts as larger than all numbers, is
/// last or first; zeros are equal, and +0 is the value of their key.
template <class T>
struct Order {
  using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr Key none = std::numeric_limits<Key>::max();  // after all numbers and NaN
  static constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
  bool largest;

  RIGEL_MEMBER Key key_of_nan() const { return largest ? 0 : none - 1; }
  RIGEL_MEMBER Key key(T value) const {
    if (value != value) return key_of_nan();
    const Key bits = __builtin_bit_cast(Key, value + T(0));
    const Key ascending = bits & sign ? ~bits : bits | sign;
    return largest ? ~ascending : ascending;
  }
  RIGEL_MEMBER T value(Key key) const {
    if (key == key_of_nan()) return std::numeric_limits<T>::quiet_NaN();
    const Key ascending = largest ? ~key : key;
    return __builtin_bit_cast(T, ascending & sign ? ascending ^ sign : ~ascending);
  }
};

/// A key and its column, below 2^31, ordered by both. The sign of a zero, which its key does not have, is the last bit of `place`: columns
/// differ, so it changes no order.
template <class Key>
struct alignas(2 * sizeof(Key)) Entry {
  Key key;
  std::uint32_t place;
  /// No score.
  RIGEL_MEMBER static constexpr Entry none() {
    return {std::numeric_limits<Key>::max(), std::numeric_limits<std::uint32_t>::max()};
  }
  RIGEL_MEMBER bool precedes(const Entry& other) const {
    return key < other.key || (key == other.key && place < other.place);
  }
  RIGEL_MEMBER std::int64_t n() const { return place >> 1; }
  RIGEL_MEMBER bool exists() const { return key != none().key; }
  /// What this entry, and all that precede it, precede. It is not none().
  RIGEL_MEMBER Entry after() const { return {key, place + 1}; }
  template <class T>
  RIGEL_MEMBER static Entry of(const Order<T>& order, T value, std::int32_t n) {
    const bool negative_zero = __builtin_bit_cast(Key, value) == Order<T>::sign;
    return {order.key(value), static_cast<std::uint32_t>(n) << 1 | std::uint32_t{negative_zero}};
  }
  template <class T>
  RIGEL_MEMBER T value(const Order<T>& order) const {
    const T v = order.value(key);
    return v == 0 && (place & 1) ? -v : v;
  }
};

/// Lowers `bound` to what follows the count-th of the threads' first entries, so that at least `count` entries precede it. `firsts` has room for
/// one of each thread, whose own is none() if it has no entry. All threads call it.
template <int threads, class Block, class Key>
RIGEL_FUNCTION void lower(Entry<Key>& bound, const Block& block, const Entry<Key>& own, Entry<Key>* firsts, int count) {
  firsts[block.thread()] = own;
  block.sync();
  int before = 0;
#pragma unroll 8
  for (int i = 0; i < threads; ++i) before += firsts[i].precedes(own);
  if (own.exists() && before == count - 1 && own.after().precedes(bound)) bound = own.after();
  block.sync();
}

/// How many entries of a row wait in shared memory: one for each lane of a warp, which merges them.
inline constexpr int waiting_entries = 32;
/// The largest k.
inline constexpr int most_best = 128;

/// list = the first `count` of what the sorted list and `waiting` entries hold, at most as many as `members`, the threads that call it together: a
/// warp's or a block's, of which the caller is `member`, and for which sync() is a barrier. An entry's place is how many entries precede it: a
/// waiting one finds its place in the list by bisection, and each is compared with all that wait.
template <int members, class Sync, class Key>
RIGEL_FUNCTION void merge(int member, const Sync& sync, Entry<Key>* list, int count, const Entry<Key>* waiting,
                          int waiting_count) {
  using One = Entry<Key>;
  constexpr int each = (most_best + members - 1) / members;  // entries of the list
  constexpr int unrolled = each > 1 ? 2 : 4;                 // steps
  const One own = member < waiting_count ? waiting[member] : One::none();
  One listed[each];
  int places[each];
#pragma unroll
  for (int j = 0; j < each; ++j) {
    const int at = member + members * j;
    listed[j] = at < count ? list[at] : One::none();
    places[j] = at;
  }
  int own_place = 0, end = count;
#pragma unroll 1
  while (own_place < end) {
    const int middle = (own_place + end) / 2;
    if (list[middle].precedes(own))
      own_place = middle + 1;
    else
      end = middle;
  }
#pragma unroll unrolled
  for (int i = 0; i < waiting_count; ++i) {
    const One next = waiting[i];
    own_place += next.precedes(own);
#pragma unroll
    for (int j = 0; j < each; ++j)
      if (each == 1 || members * j < count) places[j] += next.precedes(listed[j]);
  }
  sync();  // all have read
#pragma unroll
  for (int j = 0; j < each; ++j)
    if (member + members * j < count && places[j] < count) list[places[j]] = listed[j];
  if (member < waiting_count && own_place < count) list[own_place] = own;
  sync();
}

template <class T, int rows_of_tile, int threads, int capacity = waiting_entries>
struct Best {
  using Key = typename Order<T>::Key;
  using One = Entry<Key>;
  static constexpr int warps = threads / 32;
  static constexpr int shared_bytes =
      rows_of_tile * ((capacity + 1) * static_cast<int>(sizeof(One)) + static_cast<int>(sizeof(int)));

  Order<T> order;
  One* waiting;  // of each row, `capacity`
  One* last;     // of each row's list, or what else the k best precede
  int* counts;   // how many wait, or more: then some found no place
  One* lists;    // of each row, `count` in order
  int count;

  RIGEL_MEMBER Best(bool largest, void* shared, One* of_rows, int most) : order{largest}, lists(of_rows), count(most) {
    waiting = static_cast<One*>(shared);
    last = waiting + rows_of_tile * capacity;
    counts = reinterpret_cast<int*>(last + rows_of_tile);
  }

  template <class Block>
  RIGEL_MEMBER void begin(const Block& block) const {
    for (int row = block.thread(); row < rows_of_tile; row += threads) {
      last[row] = One::none();
      counts[row] = 0;
    }
    for (int i = block.thread(); i < rows_of_tile * count; i += threads) lists[i] = One::none();
    block.sync();
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block& block, const Part<T, most>& part) const {
    const auto merge_full = [&](int, std::uint32_t) {
      merge_rows(block, capacity / 2);
      block.sync();
    };
    gather(block, part.row, pending_of(part), [&](int i) { return entry(part, i); }, merge_full);
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at) const {
    block.sync();
    merge_rows(block, 1);
    block.sync();
    if (launch.slices > 1) return;  // the lists are what is joined
    for (int i = block.thread(); i < at.rows * count; i += threads)
      store(launch, lists[i], at.l, at.m + i / count, i % count);
  }

 protected:
  template <int most>
  RIGEL_MEMBER One entry(const Part<T, most>& part, int i) const {
    return One::of(order, part(i), part.n + i * part.step);
  }

  /// Which of a thread's scores precede the last one of the row's list.
  template <int most>
  RIGEL_MEMBER std::uint32_t pending_of(const Part<T, most>& part) const {
    static_assert(most <= 32);
    std::uint32_t pending = 0;
    if (part.count > 0) {
      const One bound = last[part.row];
      const bool is_number = bound.key < One::none().key - 1 && bound.key > 0;
      const T value = order.value(bound.key);
      const bool largest = order.largest;
      if (!is_number || part.any([&](T score) { return largest ? !(score <= value) : score < value; }))
#pragma unroll 1
        for (int i = 0; i < part.count; ++i)
          if (!part.is_self(i) && entry(part, i).precedes(bound)) pending |= std::uint32_t{1} << i;
    }
    return pending;
  }

  /// Gathers the `pending` ones of a thread's entries that precede the last one of the row's list. When a row's place is full, and so many threads
  /// have entries left, merge(threads, pending) makes room, with a barrier at its end. All threads call it.
  template <class Block, class EntryOf, class Merge>
  RIGEL_MEMBER void gather(const Block& block, int row, std::uint32_t pending, const EntryOf& entry_of,
                           const Merge& merge) const {
    while (true) {
      for (std::uint32_t rest = pending; rest != 0; rest &= rest - 1) {
        const int i = std::countr_zero(rest);
        const One next = entry_of(i);
        if (next.precedes(last[row])) {
          const int place = block.add_one(counts + row);
          if (place >= capacity) break;
          waiting[row * capacity + place] = next;
        }
        pending &= ~(std::uint32_t{1} << i);
      }
      const int left = block.count(pending != 0);
      if (left == 0) return;
      merge(left, pending);
    }
  }

  /// Merges the lists of rows for which at least so many entries wait. Each warp has rows of its own.
  template <class Block>
  RIGEL_MEMBER void merge_rows(const Block& block, int least) const {
    constexpr int of_warp = (rows_of_tile + warps - 1) / warps;
    const int thread = block.thread(), lane = thread % 32, begin = thread / 32 * of_warp;
#pragma unroll 1
    for (int first = 0; first < of_warp; first += 32) {
      const int mine = first + lane;
      const bool merges = mine < of_warp && begin + mine < rows_of_tile && counts[begin + mine] >= least;
#pragma unroll 1
      for (std::uint32_t rest = block.ballot(merges); rest != 0; rest &= rest - 1) {
        const int row = begin + first + std::countr_zero(rest), gathered = counts[row];
        One* const list = lists + std::int64_t{row} * count;
        merge<32>(
            block.thread() % 32, [&] { block.sync_warp(); }, list, count, waiting + row * capacity,
            gathered < capacity ? gathered : capacity);
        const One bound = list[count - 1];
        if (lane == 0) {
          if (bound.precedes(last[row])) last[row] = bound;
          counts[row] = 0;
        }
      }
    }
  }

  RIGEL_MEMBER void store(const Launch<T>& launch, const One& e, std::int64_t l, std::int64_t m, std::int64_t i) const {
    const bool exists = e.exists();
    const detail::Found<T> found{exists ? e.value(order) : T(0), exists ? e.n() : detail::no_place};
    if (order.largest)
      launch.outputs.template store<true>(found, l, m, i);
    else
      launch.outputs.template store<false>(found, l, m, i);
  }
};

/// The same where all threads share each row, and merge it together. Lists are in shared memory. Before more than a few entries enter a list, the first ones of all
/// threads tell which need not: without that, most scores of a block's first tiles, and all that come in descending order, would be merged.
template <class T, int rows_of_tile, int threads>
struct BestOfBlock : Best<T, rows_of_tile, threads, threads> {
  using Base = Best<T, rows_of_tile, threads, threads>;
  using typename Base::One;
  static constexpr int bytes_before_lists = (Base::shared_bytes + 15) / 16 * 16 + threads * static_cast<int>(sizeof(One));
  static constexpr int shared_bytes(int count) {
    return bytes_before_lists + (rows_of_tile * count * static_cast<int>(sizeof(One)) + 15) / 16 * 16;
  }

  One* firsts;  // of the threads

  RIGEL_MEMBER BestOfBlock(bool largest, void* shared, int most)
      : Base(largest, shared, reinterpret_cast<One*>(static_cast<std::byte*>(shared) + bytes_before_lists), most) {
    firsts = this->lists - threads;
  }

  template <class Block, int most>
  RIGEL_MEMBER void take(const Block& block, const Part<T, most>& part) const {
    take(block, part.row, this->pending_of(part), [&](int i) { return this->entry(part, i); });
  }

  template <class Block>
  RIGEL_MEMBER void end(const Block& block, const Launch<T>& launch, const Rows& at) const {
    merge_all(block);
    const int all = at.rows * this->count;
    if (launch.slices > 1) {
      One* const states = reinterpret_cast<One*>(launch.states) + at.state * this->count;
      for (int i = block.thread(); i < all; i += threads) states[i] = this->lists[i];
    } else {
      for (int i = block.thread(); i < all; i += threads)
        this->store(launch, this->lists[i], at.l, at.m + i / this->count, i % this->count);
    }
  }

  /// Joins the slices of one row, which are `apart` rows' states apart, by a block, and stores the results.
  template <class Block>
  RIGEL_MEMBER static void join(const Block& block, const Launch<T>& launch, std::int64_t state, std::int64_t apart,
                                std::int64_t l, std::int64_t m, void* shared) {
    constexpr int at_a_time = 64 / static_cast<int>(sizeof(One)), lists_at_a_time = at_a_time / 2;
    const int thread = block.thread(), most = launch.count, slices = launch.slices;
    const One* const states = reinterpret_cast<const One*>(launch.states) + state * most;
    const std::int64_t lists_apart = apart * most;
    const BestOfBlock outlet(launch.reducer == Reducer::largest, shared, most);
    outlet.begin(block);
    // A thread has every threads-th list. Bounds are the k-th of their threads' first entries, and the least last one.
    One first = One::none(), last = One::none();
#pragma unroll 1
    for (int s = thread; s < slices; s += lists_at_a_time * threads) {
      One firsts[lists_at_a_time], lasts[lists_at_a_time];
#pragma unroll
      for (int i = 0; i < lists_at_a_time; ++i) {
        const One* const list = states + (s + i * threads < slices ? s + i * threads : s) * lists_apart;
        firsts[i] = list[0];
        lasts[i] = list[most - 1];
      }
#pragma unroll
      for (int i = 0; i < lists_at_a_time; ++i) {
        if (firsts[i].precedes(first)) first = firsts[i];
        if (lasts[i].precedes(last)) last = lasts[i];
      }
    }
    lower<threads>(outlet.last[0], block, first, outlet.firsts, most);
    lower<threads>(outlet.last[0], block, last, outlet.firsts, 1);

    // It takes some entries of one of its lists at a time, as long as they precede the bound.
    int s = thread, place = 0;
    do {
      const One bound = outlet.last[0];
      if (place == 0)
        while (s < slices && !states[s * lists_apart].precedes(bound)) s += threads;
      const One* const entries = states + (s < slices ? s * lists_apart + place : 0);
      const int left = s < slices ? most - place : 0;
      One next[at_a_time];
#pragma unroll
      for (int i = 0; i < at_a_time; ++i) next[i] = entries[i < left ? i : 0];
      std::uint32_t pending = 0;
#pragma unroll
      for (int i = 0; i < at_a_time; ++i) pending |= std::uint32_t{i < left && next[i].precedes(bound)} << i;
      outlet.take(block, 0, pending, [&](int i) { return entries[i]; });
      const bool goes_on = left > at_a_time && pending >> (at_a_time - 1) != 0;
      place = goes_on ? place + at_a_time : 0;
      s = goes_on ? s : s + threads;
    } while (block.count(s < slices) > 0);
    outlet.merge_all(block);
    for (int i = thread; i < most; i += threads) outlet.store(launch, outlet.lists[i], l, m, i);
  }

 private:
  template <class Block, class EntryOf>
  RIGEL_MEMBER void take(const Block& block, int row, std::uint32_t pending, const EntryOf& entry_of) const {
    this->gather(block, row, pending, entry_of, [&](int left, std::uint32_t mine) {
      if (left >= this->count) {
        One first = One::none();
        for (; mine != 0; mine &= mine - 1)
          if (const One next = entry_of(std::countr_zero(mine)); next.precedes(first)) first = next;
        lower<threads>(this->last[row], block, first, firsts, this->count);
      }
      merge_row(block, row);
    });
  }

  /// Merges what waits of a row with its list. All threads call it after a barrier, and it ends with one.
  template <class Block>
  RIGEL_MEMBER void merge_row(const Block& block, int row) const {
    const int thread = block.thread(), gathered = this->counts[row], waits = gathered < threads ? gathered : threads;
    if (waits == 0) return;
    One* const list = this->lists + row * this->count;
    merge<threads>(thread, [&] { block.sync(); }, list, this->count, this->waiting + row * threads, waits);
    if (thread == 0) {
      const One bound = list[this->count - 1];
      if (bound.precedes(this->last[row])) this->last[row] = bound;
      this->counts[row] = 0;
    }
    block.sync();
  }

  template <class Block>
  RIGEL_MEMBER void merge_all(const Block& block) const {
    block.sync();
#pragma unroll 1
    for (int row = 0; row < rows_of_tile; ++row) merge_row(block, row);
  }
};

}  // namespace rigel::backends::reduce

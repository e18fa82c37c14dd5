// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outlets of smallest and largest: sorted lists of each row's k best, and what waits to be merged with them.
#pragma once

#include <rigel/backends/cuda/reduce/entries.hpp>
#include <rigel/backends/cuda/reduce/outlet.hpp>

#include <bit>

namespace rigel::backends::reduce {

/// How many entries of a row wait in shared memory: one for each lane of a warp, which merges them.
inline constexpr int waiting_entries = 32;

/// Lists of a tile's rows in global memory, each merged by one warp.
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

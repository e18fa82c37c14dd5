// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores as entries of the sorted lists of the k best: their order, and how threads bound and merge them.
#pragma once

#include <rigel/macros.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace rigel::backends::reduce {

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

}  // namespace rigel::backends::reduce

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ⊗ that detects invalid pairs: each element carries its side and its k. ⊗ counts in memory every pair that is not an
// element of A and one of B with the same k < K, whether or not it reaches an output.
#pragma once

#pragma clang diagnostic ignored "-Wpass-failed"  // the compiler does not unroll loops with atomics

#include "functors.hpp"

namespace support {

/// The code of k: 1 … 251. 0, which fresh and padded memory holds, is not a code.
KOKKOS_INLINE_FUNCTION int code_of(std::int64_t k) { return 1 + static_cast<int>(k % 251); }

/// An element of any size and alignment: the code of its k, and bytes that distinguish A's elements from B's.
template <int size, int alignment>
struct alignas(alignment) Marked {
  std::uint8_t bytes[size];
  KOKKOS_FUNCTION static Marked of(std::int64_t k, int side) {
    Marked e = {};
    e.bytes[0] = static_cast<std::uint8_t>(code_of(k));
    for (int i = 1; i < size; ++i) e.bytes[i] = static_cast<std::uint8_t>(100 * side + i);
    return e;
  }
  /// The code, if the element is intact and of that side, else 0.
  KOKKOS_FUNCTION int code(int side) const {
    for (int i = 1; i < size; ++i)
      if (bytes[i] != static_cast<std::uint8_t>(100 * side + i)) return 0;
    return bytes[0];
  }
};
template <class T>
KOKKOS_INLINE_FUNCTION T marked(std::int64_t k, int side) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(code_of(k) + 1000 * side);
  else
    return T::of(k, side);
}
template <class T>
KOKKOS_INLINE_FUNCTION int code_of_marked(T e, int side) {
  if constexpr (std::is_arithmetic_v<T>)
    return e > 1000 * side && e < 1000 * side + 252 && e == static_cast<T>(static_cast<int>(e))
               ? static_cast<int>(e) - 1000 * side
               : 0;
  else
    return e.code(side);
}

/// Counts the pairs of a chain, in a struct with padding. An invalid pair leaves its mark.
struct Tally {
  std::int8_t stray;
  std::int64_t count;
  std::int16_t largest;
};

/// Counts pairs: with `indexed` multiply(a, b, k), else multiply(a, b).
template <class Element, class Accumulator, bool indexed>
struct Pairs {
  using element = Element;
  using accumulator = Accumulator;
  static constexpr bool exact = true;
  static constexpr bool in_number = std::is_arithmetic_v<Accumulator>;
  int* strays;       // in memory of the execution space
  std::int64_t end;  // K

  KOKKOS_FUNCTION explicit Pairs(int* memory, std::int64_t k) : strays(memory), end(k) {}
  KOKKOS_FUNCTION static accumulator identity() {
    if constexpr (in_number)
      return 0;
    else
      return {0, 0, 0};
  }
  KOKKOS_FUNCTION accumulator multiply(element a, element b) const
    requires(!indexed)
  {
    return pair(a, b, 0);
  }
  KOKKOS_FUNCTION accumulator multiply(element a, element b, std::int64_t k) const
    requires indexed
  {
    return pair(a, b, k);
  }
  KOKKOS_FUNCTION accumulator add(accumulator x, accumulator y) const {
    if constexpr (in_number)
      return x + y;
    else
      return {static_cast<std::int8_t>(x.stray | y.stray), x.count + y.count, x.largest > y.largest ? x.largest : y.largest};
  }
  KOKKOS_FUNCTION static std::int32_t result(accumulator x) {
    if constexpr (in_number)
      return static_cast<std::int32_t>(x);
    else
      return x.stray ? -1 : static_cast<std::int32_t>(x.count * 1000 + x.largest);
  }
  KOKKOS_FUNCTION static accumulator lift(std::int32_t c) {
    if constexpr (in_number)
      return static_cast<accumulator>(c);
    else
      return {0, c / 1000, static_cast<std::int16_t>(c % 1000)};
  }

 private:
  KOKKOS_FUNCTION accumulator pair(element a, element b, std::int64_t k) const {
    const int code = code_of_marked(a, 0);
    const bool stray = code == 0 || code != code_of_marked(b, 1) || (indexed && (k < 0 || k >= end || code != code_of(k)));
    if (stray) Kokkos::atomic_inc(strays);
    if constexpr (in_number)
      return stray ? 1000000 : 1;
    else
      return {static_cast<std::int8_t>(stray), 1, static_cast<std::int16_t>(code)};
  }
};

struct Kept {
  template <class T>
  KOKKOS_FUNCTION T operator()(T value, std::int64_t, std::int64_t, std::int64_t) const {
    return value;
  }
};

template <class T, class Exec>
struct MarkedElements {
  Kokkos::View<int*, typename Exec::memory_space> strays{"strays", 1};
  mutable int on_host_strays = 0;

  static T a(Random&, std::int64_t, std::int64_t, std::int64_t k) { return marked<T>(k, 0); }
  static T b(Random&, std::int64_t, std::int64_t k, std::int64_t) { return marked<T>(k, 1); }
  static std::int32_t c(Random& random) { return static_cast<std::int32_t>(random.integer(0, 99)); }
  template <class S>
  S on_host(const S& s) const {
    return S(&on_host_strays, s.end);
  }
  void check() const {
    int count = 0;
    copy_out<Exec>(&count, strays.data(), sizeof count);
    CHECK(count == 0);
    count = 0;
    copy_in<Exec>(strays.data(), &count, sizeof count);
  }
};

/// Shapes around tiles: those of the covering design, and shapes that loaders read in vectors, K-major or not.
inline std::vector<Trial> marked_trials() {
  std::vector<Trial> list;
  for (const Trial& t : trials(21))
    if (t.seed % 4 == 0) list.push_back(t);
  const auto add = [&](std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, Order a, Order b) {
    list.push_back({batch, m, n, k, a, b, Order::right, Share::none, rigel::Batch::first, false, 0, Special::none, 1});
  };
  for (const Order a : {Order::right, Order::left})
    for (const Order b : {Order::right, Order::left}) {
      add(1, 132, 68, 16, a, b);
      add(2, 20, 140, 8, a, b);
      add(1, 65, 129, 9, a, b);
    }
  add(1, 1, 1, 3, Order::right, Order::right);
  add(1, 2, 1, 300, Order::right, Order::left);
  add(1, 1, 5, 259, Order::right, Order::right);
  add(3, 127, 7, 1, Order::left, Order::right);
  return list;
}

template <class T, class Accumulator, bool indexed, class Exec>
void check_pairs() {
  using S = Pairs<T, Accumulator, indexed>;
  const MarkedElements<T, Exec> elements;
  for (const Trial& t : marked_trials())
    check_trial<S, std::int32_t, Exec>(S(elements.strays.data(), t.k), Kept{}, t, elements);
  CHECK(elements.on_host_strays == 0);
}

}  // namespace support

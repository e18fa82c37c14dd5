// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A box of an operand: some matrices of a batch by some rows by some columns. In global memory it has any strides; in shared
// memory it is packed. A block's threads sweep it in the order of global memory, whatever the layout, so that neighbouring
// threads move neighbours: in vectors if strides, alignment and extents allow it, else element by element.
#pragma once

#include <rigel/call.hpp>
#include <rigel/numeric.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace rigel::backends::simt {

/// An axis of a box on the host: matrices, rows or columns. `extent`: of the whole operand; `box`: of a block's box; strides in
/// elements.
struct BoxAxis {
  std::int64_t extent;
  int box;
  std::int64_t global;
  int shared;
};

/// How many matrices, rows and columns of a box exist; the last ones of an operand have fewer.
struct Present {
  int along[3];
};

/// The sweep of a box. Its axes are sorted, the one with neighbours in global memory first and those of extent 1 last. Move i
/// is that of the element (or vector) i0 + e0·(i1 + e1·i2), where e0 and e1 are the first two extents.
struct Sweep {
  unsigned count = 0;     // of moves
  unsigned over[2];       // ⌈2^32 / e0⌉ and ⌈2^32 / e1⌉: quotients are the upper halves of products
  int extent[3];          // e0, e1, e2
  int global[3];          // the offset of move i is i·[0] + ⌊i / e0⌋·[1] + ⌊i / e0·e1⌋·[2], in elements
  int shared[3];          // the same in shared memory
  int next;               // in shared memory, from an element of a vector to the next
  unsigned char axis[3];  // the box's axes (0: matrices, 1: rows, 2: columns) in this order
  unsigned char bits;     // binary logarithm of a vector's elements; 0: element by element
  unsigned char along;    // the place, in this order, of the axis that vectors run along

  /// One move: offsets in elements, and the three indices in this order.
  struct Move {
    int global, shared, index[3];
    bool exists;
  };

  /// The extents that exist, in this order and in moves.
  __device__ __forceinline__ Present sorted(const Present& present) const {
    Present p{};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int one = axis[i] == 0 ? present.along[0] : axis[i] == 1 ? present.along[1] : present.along[2];
      p.along[i] = along == i ? one >> bits : one;
    }
    return p;
  }
  __device__ __forceinline__ bool is_whole(const Present& sorted) const {
    return sorted.along[0] >= extent[0] && sorted.along[1] >= extent[1] && sorted.along[2] >= extent[2];
  }

  __device__ __forceinline__ Move move(unsigned i, const Present& sorted, bool whole) const {
    const unsigned first = __umulhi(i, over[0]), second = __umulhi(first, over[1]);
    Move m;
    m.global = static_cast<int>(i * global[0] + first * global[1] + second * global[2]);
    m.shared = static_cast<int>(i * shared[0] + first * shared[1] + second * shared[2]);
    m.index[0] = static_cast<int>(i - first * extent[0]);
    m.index[1] = static_cast<int>(first - second * extent[1]);
    m.index[2] = static_cast<int>(second);
    m.exists = i < count;
    if (!whole)
      m.exists = m.exists && m.index[0] < sorted.along[0] && m.index[1] < sorted.along[1] && m.index[2] < sorted.along[2];
    return m;
  }
};

/// Whether offsets within a box fit 32 bits.
inline bool is_near(const std::array<BoxAxis, 3>& axes) {
  std::int64_t span = 0;
  for (const BoxAxis& a : axes) {
    if (a.box <= 1) continue;
    if (std::abs(a.global) > std::numeric_limits<std::int32_t>::max()) return false;
    span += std::abs(a.global) * (a.box - 1);
  }
  return span <= std::numeric_limits<std::int32_t>::max();
}

/// The sweep of a box of these axes. `size`: of an element, in bytes. `bits`: binary logarithm of the elements of a vector, or 0
/// if there are no vectors.
[[gnu::noinline]] inline Sweep sweep_of(const std::array<BoxAxis, 3>& axes, const void* data, int size, int bits) {
  std::array<int, 3> order = {0, 1, 2};
  const auto sort = [&](const auto& box) {
    std::ranges::sort(order, [&](int x, int y) {
      const auto key = [&](int i) {
        const std::int64_t stride = std::abs(axes[i].global);
        return std::array<std::int64_t, 4>{box(i) == 1, stride == 0, stride, i};
      };
      return key(x) < key(y);
    });
  };
  sort([&](int i) { return axes[i].box; });
  const int inner = order[0], width = 1 << bits;
  bool vectors = bits > 0 && axes[inner].global == 1 && axes[inner].box % width == 0 && axes[inner].extent % width == 0 &&
                 reinterpret_cast<std::uintptr_t>(data) % (static_cast<std::size_t>(size) << bits) == 0;
  for (int i = 0; i < 3; ++i) vectors = vectors && (i == inner || axes[i].extent == 1 || axes[i].global % width == 0);
  const auto moves = [&](int i) { return vectors && i == inner ? axes[i].box / width : axes[i].box; };
  if (vectors) sort(moves);

  Sweep s;
  s.bits = static_cast<unsigned char>(vectors ? bits : 0);
  s.next = axes[inner].shared;
  std::int64_t global[3], shared[3];
  s.count = 1;
  for (int i = 0; i < 3; ++i) {
    const BoxAxis& a = axes[order[i]];
    const int step = vectors && order[i] == inner ? width : 1;
    s.axis[i] = static_cast<unsigned char>(order[i]);
    s.extent[i] = moves(order[i]);
    s.count *= static_cast<unsigned>(s.extent[i]);
    global[i] = a.global * step;
    shared[i] = std::int64_t{a.shared} * step;
    if (order[i] == inner) s.along = static_cast<unsigned char>(i);
  }
  // Modulo 2^32, as the sums are formed; they fit.
  const auto differences = [&](int (&to)[3], const std::int64_t (&stride)[3]) {
    to[0] = static_cast<int>(stride[0]);
    to[1] = static_cast<int>(stride[1] - s.extent[0] * stride[0]);
    to[2] = static_cast<int>(stride[2] - s.extent[1] * stride[1]);
  };
  differences(s.global, global);
  differences(s.shared, shared);
  for (int i = 0; i < 2; ++i)
    s.over[i] = static_cast<unsigned>(((std::uint64_t{1} << 32) + static_cast<std::uint64_t>(s.extent[i]) - 1) /
                                      static_cast<std::uint64_t>(s.extent[i]));
  return s;
}

}  // namespace rigel::backends::simt

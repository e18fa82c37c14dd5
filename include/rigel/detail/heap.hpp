// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A heap of a row's best results, whose root is the last of them in their order.
#pragma once

#include <rigel/detail/reduction.hpp>

namespace rigel::detail {

/// Puts an element into the place of the heap's root, and elements that are later in the order above others.
template <bool largest, class Size, class T>
RIGEL_FUNCTION void replace_root(Found<T>* heap, Size size, Found<T> by) {
  Size at = 0;
  while (true) {
    Size child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && precedes<largest>(heap[child], heap[child + 1])) ++child;
    if (!precedes<largest>(by, heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = by;
}

/// Sorts a heap: its first element is then the first in the order.
template <bool largest, class Size, class T>
RIGEL_FUNCTION void sort_heap(Found<T>* heap, Size size) {
  for (Size end = size - 1; end > 0; --end) {
    const Found<T> last = heap[0];
    replace_root<largest>(heap, end, heap[end]);
    heap[end] = last;
  }
}

}  // namespace rigel::detail

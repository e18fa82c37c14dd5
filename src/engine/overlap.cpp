// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two strided sets of elements overlap if  lo ≤ Σ a_i·v_i ≤ hi  has an integer solution with 0 ≤ v_i ≤ u_i: a bounded linear
// Diophantine problem in at most six variables. The search goes from the largest coefficient down, and tries for each variable
// only the few values for which the smaller coefficients can still make up the difference.
#include "overlap.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace rigel::detail {
namespace {

using Wide = __int128;

struct Term {
  Wide coefficient, bound;  // a_i ≥ 0 and u_i
};

struct Terms {
  std::array<Term, 6> list;
  int size = 0;

  void add(Wide coefficient, Wide bound) {
    if (coefficient == 0 || bound == 0) return;
    for (int i = 0; i < size; ++i)
      if (list[i].coefficient == coefficient) {
        list[i].bound += bound;
        return;
      }
    list[size++] = {coefficient, bound};
  }
  void sort() {
    std::sort(list.begin(), list.begin() + size, [](const Term& x, const Term& y) { return x.coefficient > y.coefficient; });
  }
};

Wide floor_divide(Wide x, Wide y) { return x >= 0 ? x / y : -((-x + y - 1) / y); }
Wide ceil_divide(Wide x, Wide y) { return -floor_divide(-x, y); }

Wide gcd(Wide x, Wide y) { return y == 0 ? x : gcd(y, x % y); }

// Pathological strides could make the search long. After this many nodes the sets count as overlapping.
constexpr int max_nodes = 1 << 20;

// Whether Σ_{i ≥ first} a_i·v_i can fall into [lo, hi].
bool reaches(const Terms& t, int first, Wide lo, Wide hi, int& nodes) {
  if (++nodes > max_nodes) return true;
  Wide reach = 0, divisor = 0;
  for (int i = first; i < t.size; ++i) {
    reach += t.list[i].coefficient * t.list[i].bound;
    divisor = gcd(t.list[i].coefficient, divisor);
  }
  lo = std::max<Wide>(lo, 0);
  hi = std::min(hi, reach);
  if (lo > hi) return false;
  if (lo == 0 || hi == reach) return true;
  if (ceil_divide(lo, divisor) > floor_divide(hi, divisor)) return false;
  const auto [a, u] = t.list[first];
  if (first + 1 == t.size) return true;  // a multiple of a lies in [lo, hi], and hi ≤ a·u
  const Wide rest = reach - a * u;
  const Wide begin = std::max<Wide>(ceil_divide(lo - rest, a), 0), end = std::min(floor_divide(hi, a), u);
  for (Wide v = begin; v <= end; ++v)
    if (reaches(t, first + 1, lo - a * v, hi - a * v, nodes)) return true;
  return false;
}

struct Axes {
  std::array<Wide, 3> stride, last;  // bytes; largest index
  Wide begin, size;                  // address of the first byte; bytes of an element
  Wide end() const {
    Wide e = begin + size;
    for (int i = 0; i < 3; ++i) e += stride[i] * last[i];
    return e;
  }
};

Axes axes_of(const Operand& x) {
  const Wide size = static_cast<Wide>(x.size);
  return {{x.batch_stride * size, x.row_stride * size, x.column_stride * size},
          {x.batches - 1, x.rows - 1, x.columns - 1},
          static_cast<Wide>(reinterpret_cast<std::uintptr_t>(x.data)),
          size};
}

bool is_empty(const Operand& x) { return x.batches == 0 || x.rows == 0 || x.columns == 0; }

}  // namespace

bool overlap(const Operand& x, const Operand& y) {
  if (is_empty(x) || is_empty(y)) return false;
  const Axes p = axes_of(x), q = axes_of(y);
  if (p.end() <= q.begin || q.end() <= p.begin) return false;
  // Elements at p + Σ s·v and q + Σ t·w share a byte if −(size of x's) < (p + Σ s·v) − (q + Σ t·w) < (size of y's).
  // Substituting w = last − w' makes all coefficients positive.
  Terms terms;
  Wide shift = q.begin - p.begin;
  for (int i = 0; i < 3; ++i) {
    terms.add(p.stride[i], p.last[i]);
    terms.add(q.stride[i], q.last[i]);
    shift += q.stride[i] * q.last[i];
  }
  terms.sort();
  int nodes = 0;
  return reaches(terms, 0, shift - p.size + 1, shift + q.size - 1, nodes);
}

bool overlaps_itself(const Operand& x) {
  if (is_empty(x)) return false;
  const Axes p = axes_of(x);
  // The difference of two distinct index triples has a first nonzero component i, which may be taken as positive. The
  // components after it are anything from −last to last.
  for (int i = 0; i < 3; ++i) {
    if (p.last[i] == 0) continue;
    Terms terms;
    Wide shift = -p.stride[i];
    terms.add(p.stride[i], p.last[i] - 1);
    for (int j = i + 1; j < 3; ++j) {
      terms.add(p.stride[j], 2 * p.last[j]);
      shift += p.stride[j] * p.last[j];
    }
    terms.sort();
    int nodes = 0;
    if (reaches(terms, 0, shift - p.size + 1, shift + p.size - 1, nodes)) return true;
  }
  return false;
}

bool same_elements(const Operand& x, const Operand& y) {
  const auto same_step = [](std::int64_t extent, std::int64_t a, std::int64_t b) { return extent <= 1 || a == b; };
  return x.data == y.data && x.type == y.type && same_step(x.batches, x.batch_stride, y.batch_stride) &&
         same_step(x.rows, x.row_stride, y.row_stride) && same_step(x.columns, x.column_stride, y.column_stride) &&
         x.batches == y.batches && x.rows == y.rows && x.columns == y.columns;
}

}  // namespace rigel::detail

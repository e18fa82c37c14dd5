// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What contract() checks before anything runs.
#include "overlap.hpp"

namespace rigel {
namespace {

// "A 'x' 64x1024", or with batches "A 'x' 3x64x1024".
std::string describe(const char* name, const Operand& o) {
  std::string text = name;
  text += " '" + o.label + "' ";
  if (o.batches != 1) text += std::to_string(o.batches) + 'x';
  return text + std::to_string(o.rows) + 'x' + std::to_string(o.columns);
}

[[noreturn]] void refuse(const std::string& message) { throw Error(Code::invalid_argument, "contract: " + message); }

void require_extent(const char* name, const Operand& o, const char* what, std::int64_t actual, std::int64_t expected,
                    const char* match_name, const Operand& match) {
  if (actual != expected)
    refuse(describe(name, o) + ", expected " + std::to_string(expected) + ' ' + what + " to match " +
           describe(match_name, match));
}

void require_batches(const char* name, const Operand& o, const Problem& p) {
  if (o.batches != p.batch && o.batches != 1)
    refuse(describe(name, o) + ", expected " + std::to_string(p.batch) + " batches or one to match " + describe("C", p.c));
}

// A broadcast batch is one matrix read over and over.
Operand without_broadcast(Operand o) {
  if (o.batch_stride == 0) o.batches = o.batches == 0 ? 0 : 1;
  return o;
}

}  // namespace

void validate(const Problem& p) {
  require_extent("B", p.b, "rows", p.b.rows, p.k, "A", p.a);
  require_extent("C", p.c, "rows", p.c.rows, p.a.rows, "A", p.a);
  require_extent("C", p.c, "columns", p.c.columns, p.b.columns, "B", p.b);
  require_batches("A", p.a, p);
  require_batches("B", p.b, p);
  const bool writes = p.batch > 0 && p.m > 0 && p.n > 0;
  if (!writes) return;
  if (!p.c.data) refuse(describe("C", p.c) + " has no data");
  if (p.k > 0 && !p.a.data) refuse(describe("A", p.a) + " has no data");
  if (p.k > 0 && !p.b.data) refuse(describe("B", p.b) + " has no data");
  if (detail::overlap(p.c, without_broadcast(p.a)))
    refuse(describe("C", p.c) + " overlaps " + describe("A", p.a) + ", expected distinct elements");
  if (detail::overlap(p.c, without_broadcast(p.b)))
    refuse(describe("C", p.c) + " overlaps " + describe("B", p.b) + ", expected distinct elements");
  if (detail::overlaps_itself(p.c))
    refuse(describe("C", p.c) + " overlaps itself (strides " + std::to_string(p.c.batch_stride) + ", " +
           std::to_string(p.c.row_stride) + ", " + std::to_string(p.c.column_stride) + "), expected distinct elements");
}

}  // namespace rigel

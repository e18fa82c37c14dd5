// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is checked before anything runs.
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

[[noreturn]] void refuse(const Problem& p, const std::string& message) {
  throw Error(Code::invalid_argument, std::string(p.names.call) + ": " + message);
}

void require_extent(const Problem& p, const char* name, const Operand& o, const char* what, std::int64_t actual,
                    std::int64_t expected, const char* match_name, const Operand& match) {
  if (actual != expected)
    refuse(p, describe(name, o) + ", expected " + std::to_string(expected) + ' ' + what + " to match " +
                  describe(match_name, match));
}

bool is_integer(Scalar type) { return type > Scalar::f64 && type != Scalar::other; }

void require_batches(const char* name, const Operand& o, const Problem& p) {
  if (o.batches != p.batch && o.batches != 1)
    refuse(p, describe(name, o) + ", expected " + std::to_string(p.batch) + " batches or one to match " +
                  describe(p.names.c, p.c));
}

}  // namespace

void validate(const Problem& p) {
  const auto [call, a, b, c] = p.names;
  require_extent(p, b, p.b, "rows", p.b.rows, p.k, a, p.a);
  require_extent(p, c, p.c, "rows", p.c.rows, p.a.rows, a, p.a);
  require_extent(p, c, p.c, "columns", p.c.columns, p.b.columns, b, p.b);
  require_batches(a, p.a, p);
  require_batches(b, p.b, p);
  if (p.program && p.program->size() > p.program->bit_steps() && is_integer(p.accumulator) && is_integer(p.c.type))
    refuse(p, describe(c, p.c) + " of " + name(p.c.type) +
                  ", expected f16, bf16, f32 or f64, which hold what epilogues other than any_bit() and parity() give");
  const bool writes = p.batch > 0 && p.m > 0 && p.n > 0;
  if (!writes) return;
  if (!p.c.data) refuse(p, describe(c, p.c) + " has no data");
  if (p.k > 0 && !p.a.data) refuse(p, describe(a, p.a) + " has no data");
  if (p.k > 0 && !p.b.data) refuse(p, describe(b, p.b) + " has no data");
  if (detail::overlap(p.c, p.a))
    refuse(p, describe(c, p.c) + " overlaps " + describe(a, p.a) + ", expected distinct elements");
  if (detail::overlap(p.c, p.b))
    refuse(p, describe(c, p.c) + " overlaps " + describe(b, p.b) + ", expected distinct elements");
  if (detail::overlaps_itself(p.c))
    refuse(p, describe(c, p.c) + " overlaps itself (strides " + std::to_string(p.c.batch_stride) + ", " +
                  std::to_string(p.c.row_stride) + ", " + std::to_string(p.c.column_stride) +
                  "), expected distinct elements");
}

}  // namespace rigel

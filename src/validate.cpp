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

// Compiled kernels write floating-point numbers where results are such, or an epilogue makes such of integers.
void require_held(const Problem& p) {
  if (!p.program) return;
  for (int i = 0; i < p.program->size(); ++i)
    if ((*p.program)[i].kind == epilogue::Kind::parity && (i > 0 || !is_integer(p.accumulator)))
      refuse(p, "the epilogue's step " + std::to_string(i + 1) + " is parity(), expected as the first one, of integers");
  const bool integers = is_integer(p.accumulator) && p.program->size() == p.program->bit_steps();
  if (p.instantiated.empty() && is_integer(p.c.type) && !integers)
    throw Error(Code::unsupported,
                std::string(p.names.call) + ": " + describe(p.names.c, p.c) + " of " + name(p.c.type) +
                    ", expected f16, bf16, f32 or f64 for results that are floating-point numbers, as those of integers are "
                    "behind an epilogue of the closed set, but for one any_bit() or parity()");
}

void require_apart(const Problem& p, const char* name, const Operand& written, const char* other_name,
                   const Operand& other) {
  if (detail::overlap(written, other))
    refuse(p, describe(name, written) + " overlaps " + describe(other_name, other) + ", expected distinct elements");
}

void require_distinct(const Problem& p, const char* name, const Operand& written) {
  if (detail::overlaps_itself(written))
    refuse(p, describe(name, written) + " overlaps itself (strides " + std::to_string(written.batch_stride) + ", " +
                  std::to_string(written.row_stride) + ", " + std::to_string(written.column_stride) +
                  "), expected distinct elements");
}

constexpr const char* indices_name = "the view of arguments()";

void require_indices_fit(const Problem& p) {
  const Operand& i = *p.indices;
  if (i.batches != p.batch || i.rows != p.m || i.columns != p.n)
    refuse(p, describe(indices_name, i) + ", expected the extents of " + describe(p.names.c, p.c));
  const int value_bits = 8 * static_cast<int>(i.size) - 1;
  if (value_bits < 63 && (p.k - 1) >> value_bits > 0)
    refuse(p, describe(indices_name, i) + " of integers of " + std::to_string(8 * i.size) +
                  " bits, expected such that hold K - 1 = " + std::to_string(p.k - 1));
}

}  // namespace

void validate(const Problem& p) {
  const auto [call, a, b, c] = p.names;
  require_extent(p, b, p.b, "rows", p.b.rows, p.k, a, p.a);
  require_extent(p, c, p.c, "rows", p.c.rows, p.a.rows, a, p.a);
  require_extent(p, c, p.c, "columns", p.c.columns, p.b.columns, b, p.b);
  require_batches(a, p.a, p);
  require_batches(b, p.b, p);
  require_held(p);
  if (p.indices) require_indices_fit(p);
  const bool writes = p.batch > 0 && p.m > 0 && p.n > 0;
  if (!writes) return;
  if (!p.c.data) refuse(p, describe(c, p.c) + " has no data");
  if (p.k > 0 && !p.a.data) refuse(p, describe(a, p.a) + " has no data");
  if (p.k > 0 && !p.b.data) refuse(p, describe(b, p.b) + " has no data");
  require_apart(p, c, p.c, a, p.a);
  require_apart(p, c, p.c, b, p.b);
  require_distinct(p, c, p.c);
  if (!p.indices) return;
  if (!p.indices->data) refuse(p, describe(indices_name, *p.indices) + " has no data");
  require_apart(p, indices_name, *p.indices, a, p.a);
  require_apart(p, indices_name, *p.indices, b, p.b);
  require_apart(p, indices_name, *p.indices, c, p.c);
  require_distinct(p, indices_name, *p.indices);
}

}  // namespace rigel

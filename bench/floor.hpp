// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floors: the least time that a problem can take on this machine.
//
//     floor = max(bytes / bandwidth of a copy, pairs / ceiling) + the time of a call
//
// A pair is one ⊗ and one ⊕ of elements, of words one of words. Bytes are those of A, B and C, each element once, and of one
// matrix if it serves the whole batch. A ceiling is the rate of a unit, measured in the same run, over the instructions of a
// pair on that unit: the busiest one, by the fastest method that some kernel has and the default options admit. Operands that
// stay in a cache may be faster than the bandwidth.
#pragma once

#include <bench/problems.hpp>

#include <span>

namespace bench {

/// Element types with equal ceilings, as a set of bits.
enum Types : unsigned {
  floats = 1,
  halves = 2,  // f16 and bf16, accumulated in f32
  doubles = 4,
  ints = 8,           // 32 bits
  longs = 16,         // 64 bits
  bytes = 32,         // accumulated in 32 bits, or truth values
  short_halves = 64,  // f16 and bf16, accumulated in themselves
  short_ints = 128,   // 16 bits, accumulated in themselves
  words32 = 256,
  words64 = 512
};
constexpr Types operator|(Types x, Types y) { return Types(unsigned(x) | unsigned(y)); }

inline Types kind_of_types(const rigel::KernelInfo& info) {
  using enum rigel::Scalar;
  switch (info.element) {
    case f32: return floats;
    case f64: return doubles;
    case f16:
    case bf16: return info.accumulator == info.element ? short_halves : halves;
    case i16: return short_ints;
    case i32: return ints;
    case i64: return longs;
    case u32: return words32;
    case u64: return words64;
    default: return bytes;
  }
}

/// What a pair takes: so many instructions of a unit. The first row that matches a problem counts.
template <class Unit>
struct Work {
  std::array<std::string_view, 4> semirings;
  Types types;
  Unit unit;
  double instructions;
  struct Only {  // the problems that the row holds for: all, or those with these properties
    std::int64_t least_k = 0;
    double p = 0;
    bool joined = false;  // with the epilogue any_bit() or parity()
  } only = {};
};

template <class Unit>
bool matches(const Work<Unit>& row, const Spec& s) {
  const bool joined = s.step == Step::any_bit || s.step == Step::parity;
  return std::ranges::find(row.semirings, s.subject.semiring) != row.semirings.end() &&
         (row.types & kind_of_types(s.subject.reference)) && s.k >= row.only.least_k &&
         (row.only.p == 0 || (!s.hyperparameters.empty() && s.hyperparameters[0] == row.only.p)) &&
         (joined || !row.only.joined);
}

/// Throws if the table has no row.
template <class Unit>
const Work<Unit>& work_of(std::span<const Work<Unit>> table, const Spec& s) {
  for (const Work<Unit>& row : table)
    if (matches(row, s)) return row;
  throw std::runtime_error("no row of the table of ceilings matches " + text(s));
}

inline double pairs(const Spec& s) {
  return static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}

}  // namespace bench

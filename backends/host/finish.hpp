// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogue and store, and loads of C, for one row of a block at a time. For epilogues of the closed set the outer loop runs
// over the steps and the inner one over the row's values.
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/detail/arguments.hpp>

namespace rigel::backends::host {

/// The position of a row of outputs in C. If `transposed`, the loops compute the transposed problem, so the epilogue's m and n
/// are the loops' column and row.
struct Place {
  std::int64_t batch, row, column;  // of the first output, in the loops' terms
  std::int64_t offset, stride;      // in C, of the first output, and from one output to the next
  bool transposed;
};

/// Applies steps first … size − 1 of a program to `count` floating-point values. finish_loops.hpp defines it and the next three.
template <class Level, class T>
void apply_steps(const epilogue::Program& program, int first, T* v, int count, const Place& at);

/// Converts a row of values to C's type and stores it.
template <class Level, class T>
void write_row(Scalar type, void* c, const T* v, int count, const Place& at);

/// The same for what steps made of integers: integers of C are rounded to (detail::quantised).
template <class Level>
void write_quantised_row(Scalar type, void* c, const double* v, int count, const Place& at);

/// Reads values of C, for `accumulate`.
template <class Level, class T>
void read_row(Scalar type, const void* c, T* v, int count, const Place& at);

/// The type in which the epilogue of a row is computed: float for half and bfloat16, else the result's own.
template <class S>
using row_t = std::conditional_t<ShortFloat<result_t<S>>, float, result_t<S>>;

/// Applies the epilogue to `count` ≤ Columns accumulators and stores them.
template <class Level, int Columns, class S, class Finish>
RIGEL_FUNCTION void store_row(const S& s, const Finish& finish, const typename S::accumulator* x, int count, void* c,
                              const Place& at) {
  if constexpr (std::is_same_v<Finish, detail::ProgramFinish>) {
    using Value = row_t<S>;
    const epilogue::Program& program = finish.program;
    Value v[Columns];
    for (int j = 0; j < count; ++j) v[j] = rigel::result(s, x[j]);
    if constexpr (std::is_floating_point_v<Value>) {
      if (!program.empty()) apply_steps<Level>(program, 0, v, count, at);
      write_row<Level>(finish.type, c, v, count, at);
    } else {
      if (program.bit_steps() > 0)
        for (int j = 0; j < count; ++j) v[j] = program.bits(v[j]);
      if (program.size() == program.bit_steps()) return write_row<Level>(finish.type, c, v, count, at);
      double wide[Columns];
      for (int j = 0; j < count; ++j) wide[j] = static_cast<double>(v[j]);
      apply_steps<Level>(program, program.bit_steps(), wide, count, at);
      write_quantised_row<Level>(finish.type, c, wide, count, at);
    }
  } else {
    for (int j = 0; j < count; ++j) {
      const std::int64_t m = at.transposed ? at.column + j : at.row, n = at.transposed ? at.row : at.column + j;
      finish.store(s, x[j], c, at.offset + j * at.stride, m, n, at.batch);
    }
  }
}

/// The accumulators with which the chains of `count` ≤ Columns outputs start, read from C.
template <class Level, int Columns, class S, class Finish>
RIGEL_FUNCTION void start_row(const S& s, const Finish& finish, typename S::accumulator* x, int count, const void* c,
                              const Place& at) {
  if constexpr (!can_accumulate<S>) {
    for (int j = 0; j < count; ++j) x[j] = S::identity();
  } else if constexpr (std::is_same_v<Finish, detail::ProgramFinish>) {
    row_t<S> v[Columns];
    read_row<Level>(finish.type, c, v, count, at);
    for (int j = 0; j < count; ++j) x[j] = lift(s, v[j]);
  } else {
    for (int j = 0; j < count; ++j) x[j] = finish.load(s, c, at.offset + j * at.stride);
  }
}

}  // namespace rigel::backends::host

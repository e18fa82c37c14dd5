// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogue and store, and loads of C, for one row of a block at a time. For epilogues of the closed set the outer loop runs
// over the steps and the inner one over the row's values.
#pragma once

#include <rigel/backends/host/lanes.hpp>
#include <rigel/backends/host/level.hpp>
#include <rigel/detail/arguments.hpp>

namespace rigel::backends::host {

/// The position of a row of outputs in C. If `transposed`, the loops compute the transposed problem, so the epilogue's m and n
/// are the loops' column and row.
struct Place {
  std::int64_t batch, row, column;  // of the first output, in the loops' terms
  std::int64_t offset, stride;      // in C, of the first output, and from one output to the next
  bool transposed;
};

/// Whether a kernel's Finish knows the epilogue and C's type at run time only, so that rows of results go to functions of the library.
template <class Finish>
inline constexpr bool is_program_finish = std::is_base_of_v<detail::ProgramFinish, Finish>;

/// The most values that go through an epilogue at once.
inline constexpr int most_values = 128;

/// Applies the epilogue to `count` ≤ most_values results, which it overwrites, and stores them. finish_loops.hpp defines it and the next
/// two functions.
template <class Level, class Value>
void store_values(const detail::ProgramFinish& finish, Value* v, int count, void* c, const Place& at);

/// Applies the epilogue to `rows` × `count` values that lie in C: rows are `row_stride` apart, values of a row are neighbours; `at` is the
/// place of the first.
template <class Level, class Value>
void apply_in_place(const detail::ProgramFinish& finish, Value* first, std::int64_t rows, std::int64_t row_stride, int count,
                    const Place& at);

/// Whether C holds results of type T before their epilogue is applied as well as after it: it has their type, there are no steps or T is a
/// floating-point type, and no step reads the elements of C, which residual() may.
template <class T>
RIGEL_FUNCTION bool holds_results(const detail::ProgramFinish& finish, const void* c) {
  if (!std::is_floating_point_v<T>) return finish.template is_copy<T>();
  if (finish.type != scalar_of<T>) return false;
  for (int i = 0; i < finish.program.size(); ++i) {
    const epilogue::Step& step = finish.program[i];
    if (step.x_from >= 0 && finish.program.source(step.x_from).data == c) return false;
    if (step.y_from >= 0 && finish.program.source(step.y_from).data == c) return false;
  }
  return true;
}

/// Interleaved outputs of several matrices, and where they go in C: output j of line i of lane l is at [(i·length + j)·lanes + l]. Lines are
/// rows of C, or columns if `transposed`.
struct BatchOutputs {
  std::int64_t batch;  // the matrix of the first lane
  int lanes, matrices;
  std::int64_t lines, length;
  std::int64_t batch_stride, line_stride, stride;  // of C
  bool transposed;
  bool steps_differ;  // what a step of the epilogue does depends on the output's place or matrix
};

/// Applies the epilogue to the results of a batch and stores them. `values` has room for all of them and for as many elements of C.
template <class Level, class Value>
void store_batch(const detail::ProgramFinish& finish, Value* results, Value* values, void* c, const BatchOutputs& outputs);

/// Reads values of C, for `accumulate`.
template <class Level, class T>
void read_row(Scalar type, const void* c, T* v, int count, const Place& at);

/// The type in which the epilogue of a row is computed: float for half and bfloat16, else the result's own.
template <class S>
using row_t = std::conditional_t<ShortFloat<result_t<S>>, float, result_t<S>>;

/// Whether S has a result of whole vectors: a logarithm (log_plus), or a rounding (Widened).
template <class Level, class S>
inline constexpr bool has_lanes_result = false;
template <class Level, class S>
  requires(mode_of<S>() == Mode::vectors)
inline constexpr bool has_lanes_result<Level, S> =
    requires(const S s, sums_t<S, vector<operand_t<S>, Level::vector_bytes / sizeof(operand_t<S>)>> x) { s.result(x); };

/// Computes them.
template <class Level, class S>
[[gnu::noinline, clang::min_vector_width(512)]] void lanes_results(const S& s, const typename S::accumulator* x, int count,
                                                                   row_t<S>* v) {
  constexpr int lanes = Level::vector_bytes / sizeof(operand_t<S>);
  using Lanes = SumsOf<S, vector<operand_t<S>, lanes>>;
  int j = 0;
  for (; j + lanes <= count; j += lanes) store(v + j, s.result(Lanes::load(x + j)));
  if (j == count) return;
  auto rest = Lanes::all(S::identity());
  for (int i = j; i < count; ++i) Lanes::set(rest, i - j, x[i]);
  const auto results = s.result(rest);
  for (int i = j; i < count; ++i) v[i] = results[i - j];
}

/// The results of `count` accumulators.
template <class Level, class S>
RIGEL_FUNCTION void results(const S& s, const typename S::accumulator* x, int count, row_t<S>* v) {
  if constexpr (has_lanes_result<Level, S>)
    lanes_results<Level>(s, x, count, v);
  else
    for (int j = 0; j < count; ++j) v[j] = rigel::result(s, x[j]);
}

/// Applies the epilogue to `count` ≤ most_values accumulators and stores them.
template <class Level, class S, class Finish>
[[gnu::noinline]] void store_row(const S& s, const Finish& finish, const typename S::accumulator* x, int count, void* c,
                                 const Place& at) {
  if constexpr (is_program_finish<Finish>) {
    row_t<S> v[most_values];
    results<Level>(s, x, count, v);
    store_values<Level>(finish, v, count, c, at);
  } else {
    for (int j = 0; j < count; ++j) {
      const std::int64_t m = at.transposed ? at.column + j : at.row, n = at.transposed ? at.row : at.column + j;
      finish.store(s, x[j], c, at.offset + j * at.stride, m, n, at.batch);
    }
  }
}

/// Reads values of C for S: of 16-bit results so that these round once, though lift() or the result rounds what is a float here.
template <class Level, class S>
RIGEL_FUNCTION void read_values(Scalar type, const void* c, row_t<S>* v, int count, const Place& at) {
  if constexpr (ShortFloat<result_t<S>>)
    if (type == Scalar::f64) {
      double wide[most_values];
      read_row<Level>(type, c, wide, count, at);
      for (int j = 0; j < count; ++j) v[j] = detail::rounded_to_odd(wide[j]);
      return;
    }
  read_row<Level>(type, c, v, count, at);
}

/// The accumulators with which the chains of `count` ≤ most_values outputs start, read from C.
template <class Level, class S, class Finish>
RIGEL_HOST_OUTER void start_row(const S& s, const Finish& finish, typename S::accumulator* x, int count, const void* c,
                                const Place& at) {
  if constexpr (!can_accumulate<S>) {
    for (int j = 0; j < count; ++j) x[j] = S::identity();
  } else if constexpr (is_program_finish<Finish>) {
    row_t<S> v[most_values];
    read_values<Level, S>(finish.type, c, v, count, at);
    for (int j = 0; j < count; ++j) x[j] = lift(s, v[j]);
  } else {
    for (int j = 0; j < count; ++j) x[j] = finish.load(s, c, at.offset + j * at.stride);
  }
}

}  // namespace rigel::backends::host

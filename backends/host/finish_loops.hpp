// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues of the closed set and conversions, on rows of values.
#pragma once

#include <rigel/backends/host/finish.hpp>
#include <rigel/backends/host/pack.hpp>
#include <rigel/backends/host/widened.hpp>

namespace rigel::backends::host {

/// Applies steps first … size − 1 of a program to `count` floating-point values.
template <class Level, class T>
[[gnu::noinline]] void apply_steps(const epilogue::Program& program, int first, T* v, int count, const Place& at) {
  using epilogue::Kind;
  const auto row = [&](int j) { return at.transposed ? at.column + j : at.row; };
  const auto column = [&](int j) { return at.transposed ? at.row : at.column + j; };
  for (int i = first; i < program.size(); ++i) {
    const epilogue::Step step = program[i];
    const auto number = [&](std::int16_t from, double constant, int j) {
      return from < 0 ? static_cast<T>(constant) : program.source(from).template at<T>(at.batch, row(j), column(j));
    };
    const T x = step.x_from < 0 ? static_cast<T>(step.x) : T(0), y = number(step.y_from, step.y, 0);
    // `f` receives the value: two ways to the row would be two pointers for the compiler, and no loop of vectors.
    const auto each = [&]<Kind kind>(const auto& f) __attribute__((always_inline)) {
      if constexpr (epilogue::takes_second(kind))
        if (program.second_varies(step)) {
          for (int j = 0; j < count; ++j) v[j] = f(v[j], j, number(step.x_from, step.x, j), number(step.y_from, 0, j));
          return;
        }
      if (step.x_from < 0)
        for (int j = 0; j < count; ++j) v[j] = f(v[j], j, x, y);
      else
        for (int j = 0; j < count; ++j) v[j] = f(v[j], j, number(step.x_from, 0, j), y);
    };
    epilogue::with_kind(step.kind, [&]<Kind kind>() {
      if constexpr (kind == Kind::power)
        if (!step.reads_memory() && step.x == 0.5)
          return each.template operator()<kind>([](T value, int, T, T) { return __builtin_elementwise_sqrt(value); });
      each.template operator()<kind>([&](T value, int j, T first_parameter, T second_parameter) {
        const bool on_diagonal = kind == Kind::diagonal && column(j) - row(j) == step.offset;
        return epilogue::detail::apply<kind>(value, first_parameter, second_parameter, on_diagonal);
      });
    });
  }
}

/// Converts a row of values to C's type and stores it.
template <class Level, class T>
[[gnu::noinline]] void write_row(Scalar type, void* c, const T* v, int count, const Place& at) {
  detail::with_type<T>(type, c, [&](auto* typed) {
    using To = std::remove_cvref_t<decltype(*typed)>;
    auto* const row = typed + at.offset;
    if constexpr (!std::is_same_v<T, float>)
      if constexpr (ShortFloat<To>) {
        float odd[most_values];  // round once to C's type, and in vectors
        for (int j = 0; j < count; ++j) odd[j] = detail::rounded_to_odd(v[j]);
        return write_row<Level>(type, c, odd, count, at);
      }
    int j = 0;
    if constexpr (ShortFloat<To> && std::is_same_v<T, float>) {
      constexpr int lanes = Level::vector_bytes / sizeof(float);
      if (at.stride == 1)
        for (; j + lanes <= count; j += lanes) store(row + j, shortened<To>(load<vector<float, lanes>>(v + j)));
    }
    if (at.stride == 1)
      for (; j < count; ++j) row[j] = detail::convert<To>(v[j]);
    else
      for (; j < count; ++j) row[j * at.stride] = detail::convert<To>(v[j]);
  });
}

/// The same for what steps made of integers: integers of C are rounded to (detail::quantised).
template <class Level>
[[gnu::noinline]] void write_quantised_row(Scalar type, void* c, const double* v, int count, const Place& at) {
  detail::with_type<double, true>(type, c, [&](auto* typed) {
    for (int j = 0; j < count; ++j)
      typed[at.offset + j * at.stride] = detail::quantised<std::remove_cvref_t<decltype(*typed)>>(v[j]);
  });
}

template <class Level, class Value>
[[gnu::noinline]] void store_values(const detail::ProgramFinish& finish, Value* v, int count, void* c, const Place& at) {
  const epilogue::Program& program = finish.program;
  if constexpr (std::is_floating_point_v<Value>) {
    if (!program.empty()) apply_steps<Level>(program, 0, v, count, at);
    write_row<Level>(finish.type, c, v, count, at);
  } else {
    if (program.bit_steps() > 0) {
      if (program[0].kind == epilogue::Kind::any_bit)  // a loop of vectors
        for (int j = 0; j < count; ++j) v[j] = v[j] != 0;
      else
        for (int j = 0; j < count; ++j) v[j] = program.bits(v[j]);
    }
    if (program.size() == program.bit_steps()) return write_row<Level>(finish.type, c, v, count, at);
    double wide[most_values];
    for (int j = 0; j < count; ++j) wide[j] = static_cast<double>(v[j]);
    apply_steps<Level>(program, program.bit_steps(), wide, count, at);
    write_quantised_row<Level>(finish.type, c, wide, count, at);
  }
}

template <class Level, class Value>
[[gnu::noinline]] void apply_in_place(const detail::ProgramFinish& finish, Value* first, std::int64_t rows,
                                      std::int64_t row_stride, int count, const Place& at) {
  if (row_stride == count && !finish.reads_place)  // one line
    return apply_steps<Level>(finish.program, 0, first, static_cast<int>(rows) * count, at);
  Place row = at;
  for (std::int64_t i = 0; i < rows; ++i, ++row.row)
    apply_steps<Level>(finish.program, 0, first + i * row_stride, count, row);
}

template <class Level, class Value>
[[gnu::noinline]] void store_batch(const detail::ProgramFinish& finish, Value* results, Value* values, void* c,
                                   const BatchOutputs& o) {
  const std::int64_t count = o.lines * o.length;
  const auto part = [](std::int64_t left)
                        __attribute__((always_inline)) { return static_cast<int>(left < most_values ? left : most_values); };
  if (o.steps_differ) {
    using Word = word_t<sizeof(Value)>;
    static_assert(sizeof(Word) == sizeof(Value));
    deinterleave<Level>(reinterpret_cast<const Word*>(results), o.lanes, o.lines, o.length, o.matrices,
                        Matrices<Word>{reinterpret_cast<Word*>(values), count, o.length, 1});
    // Without a step that reads places, a dense matrix is one line.
    const bool one_line = !finish.reads_place && o.stride == 1 && (o.lines == 1 || o.line_stride == o.length);
    const std::int64_t lines = one_line ? 1 : o.lines, length = one_line ? count : o.length;
    for (int lane = 0; lane < o.matrices; ++lane)
      for (std::int64_t line = 0; line < lines; ++line)
        for (std::int64_t j = 0; j < length; j += most_values) {
          const std::int64_t l = o.batch + lane, offset = l * o.batch_stride + line * o.line_stride + j * o.stride;
          store_values<Level>(finish, values + lane * count + line * length + j, part(length - j), c,
                              {l, line, j, offset, o.stride, o.transposed});
        }
    return;
  }
  // All outputs take the same steps, so they become elements of C before they leave their lanes.
  const void* elements = results;
  if (!finish.template is_copy<Value>()) {
    for (std::int64_t e = 0; e < count * o.lanes; e += most_values)
      store_values<Level>(finish, results + e, part(count * o.lanes - e), values,
                          {.batch = 0, .row = 0, .column = 0, .offset = e, .stride = 1, .transposed = false});
    elements = values;
  }
  const auto scatter = [&]<class Word>() {
    deinterleave<Level>(
        static_cast<const Word*>(elements), o.lanes, o.lines, o.length, o.matrices,
        Matrices<Word>{static_cast<Word*>(c) + o.batch * o.batch_stride, o.batch_stride, o.line_stride, o.stride});
  };
  switch (size_of(finish.type)) {
    case 1: return scatter.template operator()<std::uint8_t>();
    case 2: return scatter.template operator()<std::uint16_t>();
    case 4: return scatter.template operator()<std::uint32_t>();
    case 8: return scatter.template operator()<std::uint64_t>();
    default: return;
  }
}

template <class Level, class T>
RIGEL_HOST_OUTER void read_row(Scalar type, const void* c, T* v, int count, const Place& at) {
  detail::with_type<T>(type, const_cast<void*>(c), [&](auto* typed) {
    using From = std::remove_cvref_t<decltype(*typed)>;
    const auto* const row = typed + at.offset;
    for (int j = 0; j < count; ++j) {
      if constexpr (ShortFloat<From>)
        v[j] = static_cast<T>(static_cast<float>(row[j * at.stride]));
      else
        v[j] = static_cast<T>(row[j * at.stride]);
    }
  });
}

}  // namespace rigel::backends::host

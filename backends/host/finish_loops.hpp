// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues of the closed set and conversions, on rows of values.
#pragma once

#include <rigel/backends/host/finish.hpp>

namespace rigel::backends::host {

template <class Level, class T>
[[gnu::noinline]] void apply_steps(const epilogue::Program& program, int first, T* v, int count, const Place& at) {
  for (int i = first; i < program.size(); ++i) {
    const epilogue::Step step = program[i];
    if (step.kind == epilogue::Kind::power && step.x == 0.5) {
      for (int j = 0; j < count; ++j) v[j] = __builtin_elementwise_sqrt(v[j]);
    } else if (step.kind == epilogue::Kind::scale) {
      for (int j = 0; j < count; ++j) v[j] *= static_cast<T>(step.x);
    } else if (at.transposed) {
      for (int j = 0; j < count; ++j) v[j] = epilogue::detail::apply(step, v[j], at.column + j, at.row);
    } else {
      for (int j = 0; j < count; ++j) v[j] = epilogue::detail::apply(step, v[j], at.row, at.column + j);
    }
  }
}

template <class Level, class T>
[[gnu::noinline]] void write_row(Scalar type, void* c, const T* v, int count, const Place& at) {
  detail::with_type<T>(type, c, [&](auto* typed) {
    using To = std::remove_cvref_t<decltype(*typed)>;
    auto* const row = typed + at.offset;
    if (at.stride == 1)
      for (int j = 0; j < count; ++j) row[j] = detail::convert<To>(v[j]);
    else
      for (int j = 0; j < count; ++j) row[j * at.stride] = detail::convert<To>(v[j]);
  });
}

template <class Level, class T>
[[gnu::noinline]] void read_row(Scalar type, const void* c, T* v, int count, const Place& at) {
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

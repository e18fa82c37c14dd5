// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernels of all families receive for a batch of systems: typed pointers and strides. No Kokkos here.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/solve.hpp>

#include <cmath>
#include <limits>

namespace rigel::detail {

/// One matrix of a batch.
template <class T>
struct MatrixOf {
  T* data;
  std::int64_t row, column;  // strides in elements
  RIGEL_MEMBER T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
};
template <class T>
RIGEL_FUNCTION MatrixOf<T> matrix_of(const Strided<T>& s, std::int64_t l) {
  return {s.data + l * s.batch, s.row, s.column};
}
template <class T>
RIGEL_FUNCTION Strided<T> transposed(const Strided<T>& s) {
  return {s.data, s.batch, s.column, s.row};
}

/// The arguments of a kernel. A problem with the upper triangle is the one with the lower triangle of transposed matrices, so
/// kernels know only the latter.
template <class T>
struct SolveArguments {
  Factorisation factorisation;
  Solve::Task task;
  std::int64_t batch, n, m;  // m right sides
  Strided<const T> a, b;
  Strided<T> x, values;
  Strided<std::int32_t> infos;  // no data: not wanted
};

template <class T>
Strided<T> typed(const Operand& o) {
  return {static_cast<T*>(o.data), o.batch_stride, o.row_stride, o.column_stride};
}

template <class T>
SolveArguments<T> solve_arguments(const Solve& p) {
  SolveArguments<T> g{p.factorisation,
                      p.task,
                      p.batch,
                      p.n,
                      p.right_sides,
                      typed<const T>(p.a),
                      typed<const T>(p.b),
                      typed<T>(p.x),
                      typed<T>(p.values),
                      typed<std::int32_t>(p.infos)};
  if (p.triangle == Triangle::upper && p.factorisation != Factorisation::lu) {
    g.a = transposed(g.a);
    if (p.factorisation == Factorisation::cholesky && p.task == Solve::Task::factor) g.x = transposed(g.x);
  }
  return g;
}

/// Whether a pivot can be divided by: positive (Cholesky) or not 0 (LU), and finite.
template <class T>
RIGEL_FUNCTION bool is_pivot(Factorisation f, T value) {
  return value - value == 0 && (f == Factorisation::lu ? value != 0 : value > 0);
}

/// The power of two that brings a positive, finite number to [1/2, 1), or close to it if the number is so large or small that the
/// power or its inverse would not be a normal number. Multiplying by it is exact, and so is dividing by it.
template <class T>
RIGEL_FUNCTION T scale_to_one(T number) {
  constexpr T least = 4 * std::numeric_limits<T>::min();
  T scale = 1;
  while (number * scale >= 1 && scale > least) scale /= 2;
  while (number * scale < T(0.5) && scale < 1 / least) scale *= 2;
  return scale;
}

}  // namespace rigel::detail

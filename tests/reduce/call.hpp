// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() of rows that a test writes down: with K = 1, A = 0 and B = the row, the score of max_plus is B.
#pragma once

#include <rigel/reduce.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace reduced {

using Values = std::vector<double>;
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(),
                        infinity = std::numeric_limits<double>::infinity();

/// What a call may name: its own choice and each kernel that runs everywhere.
inline const std::vector<std::string> kernels = {"", "reference", "portable.strips"};

template <class T, class Exec>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, typename Exec::memory_space>;

template <class T, class Exec>
Vector<T, Exec> vector(int size, double value = -7) {
  const Vector<T, Exec> v(Kokkos::view_alloc("vector", Kokkos::WithoutInitializing), size);
  support::fill(v, Values(static_cast<std::size_t>(size), value));
  return v;
}

/// Where element (row, column) of a matrix of `columns` is.
constexpr std::size_t at(int row, int columns, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

/// Values, and the indices of reducers that have them.
struct Results {
  Values values, indices;
};

/// One row of scores reduced to `count` results of type Value.
template <class T, class Value, class Exec, class R>
Results of_row(const Exec& exec, const Values& row, const R& reducer, const rigel::ReduceOptions& options, int count = 1) {
  const auto a = support::matrix<T, Exec>(1, 1, {0}, "a");
  const auto b = support::matrix<T, Exec>(1, static_cast<int>(row.size()), row, "b");
  const rigel::max_plus<T> semiring;
  if constexpr (R::kind == rigel::Reducer::smallest || R::kind == rigel::Reducer::largest) {
    const auto values = support::matrix<Value, Exec>(1, count, Values(static_cast<std::size_t>(count), -7));
    const auto indices = support::matrix<std::int64_t, Exec>(1, count, Values(static_cast<std::size_t>(count), -7));
    rigel::reduce(exec, semiring, a, b, reducer, values, indices, options);
    exec.fence();
    return {support::values(values), support::values(indices)};
  } else if constexpr (R::kind == rigel::Reducer::minimum || R::kind == rigel::Reducer::maximum) {
    const auto values = vector<Value, Exec>(1);
    const auto indices = vector<std::int32_t, Exec>(1);
    rigel::reduce(exec, semiring, a, b, reducer, values, indices, options);
    exec.fence();
    return {support::values(values), support::values(indices)};
  } else {
    const auto values = vector<Value, Exec>(1);
    rigel::reduce(exec, semiring, a, b, reducer, values, options);
    exec.fence();
    return {support::values(values), {}};
  }
}

}  // namespace reduced

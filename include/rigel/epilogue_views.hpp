// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues that read memory. Their parameters are views of f16, bf16, f32, f64 or i32 numbers of any layout, in memory that the
// execution space can access. A kernel reads them when it runs, and computes with them in the type of the epilogue: a captured
// graph that is replayed sees their new values. A Program keeps pointers, not views: the memory lives until the call's work is
// complete.
#pragma once

#include <rigel/detail/execution.hpp>
#include <rigel/epilogue.hpp>

namespace rigel {

/// Which index of a rank-3 view counts the batches.
enum class Batch { first, last };

namespace epilogue {
namespace detail {

/// The spaces of Rigel that can access memory of this kind.
template <class Memory>
constexpr unsigned spaces_with() {
  using Host = Kokkos::DefaultHostExecutionSpace;
  using Device = Kokkos::DefaultExecutionSpace;
  unsigned spaces = Kokkos::SpaceAccessibility<Host, Memory>::accessible ? host_spaces : 0;
  if (Kokkos::SpaceAccessibility<Device, Memory>::accessible) spaces |= bit(rigel::detail::space_of<Device>);
  return spaces;
}

/// The numbers of a view; `dimensions`: the strides and extents of its indices, in the view's order.
template <class View>
Source source_of(const View& view, const char* argument) {
  using T = typename View::non_const_value_type;
  constexpr Scalar type = scalar_of<T>;
  static_assert(type <= Scalar::f64 || type == Scalar::i32,
                "epilogue: a parameter is a view of rigel::half, rigel::bfloat16, float, double or std::int32_t");
  return {.data = view.data(), .argument = argument, .spaces = spaces_with<typename View::memory_space>(), .type = type};
}

/// A parameter: a view of rank 0, or of rank 1 with one number for each batch, or one for all.
template <class View>
Source parameter(const View& view, const char* argument) {
  static_assert(View::rank() <= 1, "epilogue: a parameter is a number, or a view of rank 0 or 1");
  Source s = source_of(view, argument);
  if constexpr (View::rank() == 1) {
    s.batches = static_cast<std::int64_t>(view.extent(0));
    if (s.batches != 1) s.batch_stride = static_cast<std::int64_t>(view.stride(0));
  }
  return s;
}

/// A vector: a view of rank 1, or of rank 2 with one vector for each batch, or one for all.
enum class Lying { along_row, along_column };
template <class View>
Source vector(const View& view, Lying lying, const char* argument) {
  static_assert(View::rank() == 1 || View::rank() == 2,
                "epilogue: a vector is a view of rank 1, or 2 with a leading batch index");
  constexpr int i = View::rank() - 1;
  Source s = source_of(view, argument);
  if constexpr (View::rank() == 2) {
    s.batches = static_cast<std::int64_t>(view.extent(0));
    if (s.batches != 1) s.batch_stride = static_cast<std::int64_t>(view.stride(0));
  }
  const auto extent = static_cast<std::int64_t>(view.extent(i)), stride = static_cast<std::int64_t>(view.stride(i));
  (lying == Lying::along_row ? s.columns : s.rows) = extent;
  if (extent != 1) (lying == Lying::along_row ? s.column_stride : s.row_stride) = stride;
  return s;
}

}  // namespace detail

template <class View>
concept Parameter = Kokkos::is_view_v<View>;

/// The steps of rigel/epilogue.hpp with parameters in memory: views of rank 0, or of rank 1 with 1 or L numbers, one per batch.
template <Parameter View>
Program scale(const View& factor) {
  return {Step{Kind::scale}, detail::parameter(factor, "scale()")};
}
template <Parameter View>
Program add(const View& value) {
  return {Step{Kind::add}, detail::parameter(value, "add()")};
}
template <Parameter View>
Program pow(const View& exponent) {
  return {Step{Kind::power}, detail::parameter(exponent, "pow()")};
}
template <Parameter View>
Program exponential(const View& rate) {
  return {Step{Kind::exponential}, detail::parameter(rate, "exponential()")};
}
template <Parameter View>
Program laplace(const View& bandwidth) {
  return {Step{Kind::laplace}, detail::parameter(bandwidth, "laplace()")};
}
template <Parameter View>
Program gaussian(const View& bandwidth) {
  return {Step{Kind::gaussian}, detail::parameter(bandwidth, "gaussian()")};
}
template <Parameter View>
Program matern32(const View& length) {
  return {Step{Kind::matern32}, detail::parameter(length, "matern32()")};
}
template <Parameter View>
Program matern52(const View& length) {
  return {Step{Kind::matern52}, detail::parameter(length, "matern52()")};
}
template <Parameter View>
Program rational_quadratic(const View& alpha) {
  return {Step{Kind::rational_quadratic}, detail::parameter(alpha, "rational_quadratic()")};
}
template <Parameter View>
Program reciprocal(const View& offset, double numerator = 1) {
  return {Step{Kind::reciprocal, 0, numerator}, detail::parameter(offset, "reciprocal()")};
}
template <Parameter View, Parameter Numerator>
Program reciprocal(const View& offset, const Numerator& numerator) {
  return {Step{Kind::reciprocal}, detail::parameter(offset, "reciprocal()"), detail::parameter(numerator, "reciprocal()")};
}
template <Parameter Low, Parameter High>
Program clamp(const Low& low, const High& high) {
  return {Step{Kind::clamp}, detail::parameter(low, "clamp()"), detail::parameter(high, "clamp()")};
}
template <Parameter View>
Program threshold(const View& least) {
  return {Step{Kind::threshold}, detail::parameter(least, "threshold()")};
}
template <Parameter View>
Program add_diagonal(const View& value, std::int64_t m0 = 0, std::int64_t n0 = 0) {
  Step step{Kind::diagonal};
  step.offset = m0 - n0;
  return {step, detail::parameter(value, "add_diagonal()")};
}

/// v + row(n): adds a row of N numbers to every row of C, as a bias does. With batches the view may have rank 2: L × N, or 1 × N.
template <Parameter View>
Program add_row(const View& row) {
  return {Step{Kind::add}, detail::vector(row, detail::Lying::along_row, "add_row()")};
}
/// v + column(m): adds a column of M numbers to every column of C.
template <Parameter View>
Program add_column(const View& column) {
  return {Step{Kind::add}, detail::vector(column, detail::Lying::along_column, "add_column()")};
}
/// v · row(n): multiplies every row of C by a row of N numbers, element by element.
template <Parameter View>
Program scale_row(const View& row) {
  return {Step{Kind::scale}, detail::vector(row, detail::Lying::along_row, "scale_row()")};
}
/// v · column(m): multiplies every column of C by a column of M numbers, element by element.
template <Parameter View>
Program scale_column(const View& column) {
  return {Step{Kind::scale}, detail::vector(column, detail::Lying::along_column, "scale_column()")};
}
/// v + R(l,m,n): adds a matrix as large as C, a view of rank 2, or of rank 3 with batches (`batch` says which index counts
/// them). It may be C itself, the same elements at the same places; else it shares no element with C.
template <Parameter View>
Program residual(const View& r, Batch batch = Batch::first) {
  static_assert(View::rank() == 2 || View::rank() == 3,
                "epilogue: residual() takes a view of rank 2, or 3 with a batch index");
  Source s = detail::source_of(r, "residual()");
  const auto extent = [&](int i) { return static_cast<std::int64_t>(r.extent(i)); };
  const auto stride = [&](int i) { return r.extent(i) == 1 ? 0 : static_cast<std::int64_t>(r.stride(i)); };
  constexpr bool batched = View::rank() == 3;
  const int l = batch == Batch::first ? 0 : 2, i = batched && batch == Batch::first ? 1 : 0;
  if constexpr (batched) {
    s.batches = extent(l);
    s.batch_stride = stride(l);
  }
  s.rows = extent(i);
  s.row_stride = stride(i);
  s.columns = extent(i + 1);
  s.column_stride = stride(i + 1);
  return {Step{Kind::add}, s};
}

}  // namespace epilogue
}  // namespace rigel

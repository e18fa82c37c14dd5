// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of the linear layer: to(l,m,n) = f(from(l,m,n), m, n, l) and kept(l,m,n) = from(l,m,n), computed in float and rounded
// once to the type of each. A work item takes four neighbours of a row, or of a column if `to` is column-major.
#pragma once

#include <rigel/activation.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/linear.hpp>

namespace rigel::detail {

/// A matrix of f16, bf16, f32 or f64, whose type is known at run time; without data it is absent.
struct Floats {
  Scalar type;
  Strided<char> strides;  // in elements; the data are of `type`
  RIGEL_MEMBER bool exists() const { return strides.data != nullptr; }
};

template <class F>
struct Elementwise {
  static constexpr int width = 4;

  F f;
  Floats from, to, kept;
  std::int64_t rows, columns;
  bool along_rows;  // neighbours are of one row

  RIGEL_MEMBER void operator()(std::int64_t l, std::int64_t line, std::int64_t group) const {
    const std::int64_t first = group * width, left = (along_rows ? columns : rows) - first;
    const int count = static_cast<int>(left < width ? left : width);
    const std::int64_t m = along_rows ? line : first, n = along_rows ? first : line;
    float v[width] = {};
    visit(from, l, m, n, count,
          [&]<class T>(int i, const T& x, std::int64_t, std::int64_t) { v[i] = static_cast<float>(x); });
    visit(kept, l, m, n, count, [&]<class T>(int i, T& x, std::int64_t, std::int64_t) { x = convert<T>(v[i]); });
    visit(to, l, m, n, count,
          [&]<class T>(int i, T& x, std::int64_t row, std::int64_t column) { x = convert<T>(f(v[i], row, column, l)); });
  }

 private:
  // use(number, element, row, column) for the neighbours from (l, m, n) on.
  template <class Use>
  RIGEL_MEMBER void visit(const Floats& g, std::int64_t l, std::int64_t m, std::int64_t n, int count, const Use& use) const {
    if (!g.exists()) return;
    const std::int64_t offset = g.strides.offset(l, m, n), step = along_rows ? g.strides.column : g.strides.row;
    with_type<float>(g.type, g.strides.data, [&](auto* typed) {
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (i < count) use(i, typed[offset + i * step], along_rows ? m : m + i, along_rows ? n + i : n);
    });
  }
};

/// Enqueues the pass, if the execution space is one of the list.
template <class Spaces, class F>
void launch_elementwise(const Execution& execution, const ElementwisePass& pass) {
  const auto floats = [](const Operand& o) {
    return Floats{o.type, {static_cast<char*>(o.data), o.batch_stride, o.row_stride, o.column_stride}};
  };
  const Operand& to = pass.to;
  const bool along_rows = to.column_stride <= to.row_stride || to.rows <= 1;
  const Elementwise<F> kernel{*static_cast<const F*>(pass.functor),
                              floats(pass.from),
                              floats(to),
                              floats(pass.kept),
                              to.rows,
                              to.columns,
                              along_rows};
  const std::int64_t lines = along_rows ? to.rows : to.columns, length = along_rows ? to.columns : to.rows;
  const std::int64_t groups = (length + kernel.width - 1) / kernel.width;
  with_instance(Spaces{}, execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::MDRangePolicy<Exec, Kokkos::Rank<3, Kokkos::Iterate::Right, Kokkos::Iterate::Right>,
                                         Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("rigel::linear/elementwise", Policy(exec, {0, 0, 0}, {to.batches, lines, groups}, {1, 4, 32}),
                         kernel);
  });
}

/// The functors of the library's own passes.
struct ActivationValue {
  Activation kind;
  RIGEL_MEMBER float operator()(float z, std::int64_t, std::int64_t, std::int64_t) const {
    return activation::with(kind, [&]<class A>() { return A::value(z); });
  }
};
struct ActivationDerivative {
  Activation kind;
  RIGEL_MEMBER float operator()(float z, std::int64_t, std::int64_t, std::int64_t) const {
    return activation::with(kind, [&]<class A>() { return A::derivative(z); });
  }
};
struct One {
  RIGEL_MEMBER float operator()(float, std::int64_t, std::int64_t, std::int64_t) const { return 1; }
};

template <class Spaces>
constexpr LinearPasses linear_passes() {
  return {launch_elementwise<Spaces, epilogue::Program>, launch_elementwise<Spaces, ActivationValue>,
          launch_elementwise<Spaces, ActivationDerivative>, launch_elementwise<Spaces, One>};
}

}  // namespace rigel::detail

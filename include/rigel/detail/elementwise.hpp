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
  std::int64_t rows, columns, lines, groups;  // groups of neighbours in each of the lines
  bool along_rows;                            // a line is a row

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t of_all = quotient(item, groups), group = item - of_all * groups;
    const std::int64_t l = quotient(of_all, lines), line = of_all - l * lines, first = group * width,
                       left = (along_rows ? columns : rows) - first;
    const int count = static_cast<int>(left < width ? left : width);
    const std::int64_t m = along_rows ? line : first, n = along_rows ? first : line;
    float v[width] = {};
    visit(from, l, m, n, count, [&](int i, auto& x) __attribute__((always_inline)) { v[i] = static_cast<float>(x); });
    visit(kept, l, m, n, count, [&]<class T>(int i, T& x) __attribute__((always_inline)) { x = convert<T>(v[i]); });
#pragma unroll
    for (int i = 0; i < width; ++i)
      if (i < count) v[i] = convert<float>(f(v[i], along_rows ? m : m + i, along_rows ? n + i : n, l));
    visit(to, l, m, n, count, [&]<class T>(int i, T& x) __attribute__((always_inline)) { x = convert<T>(v[i]); });
  }

 private:
  // i / n; a division of 32 bits, which is shorter on a GPU, if both fit.
  RIGEL_MEMBER static std::int64_t quotient(std::int64_t i, std::int64_t n) {
    if (((i | n) >> 32) == 0) return static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(n);
    return i / n;
  }

  // use(number, element) for the neighbours from (l, m, n) on.
  template <class Use>
  RIGEL_MEMBER void visit(Floats g, std::int64_t l, std::int64_t m, std::int64_t n, int count, const Use& use) const {
    if (!g.exists()) return;
    const std::int64_t offset = g.strides.offset(l, m, n), step = along_rows ? g.strides.column : g.strides.row;
    with_type<float>(g.type, g.strides.data, [&](auto* typed) __attribute__((always_inline)) {
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (i < count) use(i, typed[offset + i * step]);
    });
  }
};

/// Enqueues the pass with a functor, if the execution space is one of the list. Of internal linkage, as are then Kokkos's functions
/// for the lambda: Clang inlines those that are called once. Otherwise each thread of a GPU would copy a Program to local memory.
template <class Spaces, class F>
static void launch_elementwise(const Execution& execution, const ElementwisePass& pass, const F& f) {
  const auto floats = [](const Operand& o) {
    return Floats{o.type, {static_cast<char*>(o.data), o.batch_stride, o.row_stride, o.column_stride}};
  };
  const Operand& to = pass.to;
  const bool along_rows = to.column_stride <= to.row_stride || to.rows <= 1;
  const std::int64_t lines = along_rows ? to.rows : to.columns, length = along_rows ? to.columns : to.rows;
  constexpr int width = Elementwise<F>::width;
  const Elementwise<F> kernel{.f = f,
                              .from = floats(pass.from),
                              .to = floats(to),
                              .kept = floats(pass.kept),
                              .rows = to.rows,
                              .columns = to.columns,
                              .lines = lines,
                              .groups = (length + width - 1) / width,
                              .along_rows = along_rows};
  with_instance(Spaces{}, execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for(
        "rigel::linear/elementwise", by_argument(Policy(exec, 0, to.batches * lines * kernel.groups)),
        KOKKOS_LAMBDA(const std::int64_t i) { kernel(i); });
  });
}

/// The functors of the library's own passes. Activations are types here, since a GPU would keep the arguments of a kernel that
/// distinguishes them in its threads' local memory.
template <class A>
struct ValueOf {
  RIGEL_MEMBER float operator()(float z, std::int64_t, std::int64_t, std::int64_t) const { return A::value(z); }
};
template <class A>
struct DerivativeOf {
  RIGEL_MEMBER float operator()(float z, std::int64_t, std::int64_t, std::int64_t) const { return A::derivative(z); }
};
struct One {
  RIGEL_MEMBER float operator()(float, std::int64_t, std::int64_t, std::int64_t) const { return 1; }
};

/// The passes as LinearPasses has them; pass.functor points to an F or to an Activation.
template <class Spaces, class F>
void launch_functor(const Execution& execution, const ElementwisePass& pass) {
  launch_elementwise<Spaces>(execution, pass, *static_cast<const F*>(pass.functor));
}
template <class Spaces, template <class A> class F>
void launch_activation(const Execution& execution, const ElementwisePass& pass) {
  activation::with(*static_cast<const Activation*>(pass.functor),
                   [&]<class A>() { launch_elementwise<Spaces>(execution, pass, F<A>{}); });
}
template <class Spaces>
constexpr LinearPasses linear_passes() {
  return {launch_functor<Spaces, epilogue::Program>, launch_activation<Spaces, ValueOf>,
          launch_activation<Spaces, DerivativeOf>, launch_functor<Spaces, One>};
}

}  // namespace rigel::detail

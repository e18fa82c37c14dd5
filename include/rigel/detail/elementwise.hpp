// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of the linear layer: to(l,m,n) = f(from(l,m,n), m, n, l) and kept(l,m,n) = from(l,m,n), computed in float and rounded
// once to the type of each. A work item takes four neighbours of a row, or of a column if `to` is column-major.
#pragma once

#include <rigel/activation.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/linear.hpp>
#include <rigel/detail/quotient.hpp>

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
    with_neighbours(from, l, m, n, count,
                    [&]<class T>(const T* x, std::int64_t step, bool whole) __attribute__((always_inline)) {
                      if (whole) {
                        const auto all = *reinterpret_cast<const Neighbours<T>*>(x);
#pragma unroll
                        for (int i = 0; i < width; ++i) v[i] = static_cast<float>(all.value[i]);
                      } else {
#pragma unroll
                        for (int i = 0; i < width; ++i)
                          if (i < count) v[i] = static_cast<float>(x[i * step]);
                      }
                    });
    write(kept, l, m, n, count, v);
#pragma unroll
    for (int i = 0; i < width; ++i)
      if (i < count) v[i] = convert<float>(f(v[i], along_rows ? m : m + i, along_rows ? n + i : n, l));
    write(to, l, m, n, count, v);
  }

 private:
  template <class T>
  struct alignas(width * sizeof(T)) Neighbours {
    T value[width];
  };

  // use(the element (l, m, n), from one neighbour to the next, whether all exist and lie as Neighbours do).
  template <class Use>
  RIGEL_MEMBER void with_neighbours(Floats g, std::int64_t l, std::int64_t m, std::int64_t n, int count,
                                    const Use& use) const {
    if (!g.exists()) return;
    const std::int64_t step = along_rows ? g.strides.column : g.strides.row;
    with_type<float>(g.type, g.strides.data, [&]<class T>(T* typed) __attribute__((always_inline)) {
      T* const x = typed + g.strides.offset(l, m, n);
      use(x, step, step == 1 && count == width && reinterpret_cast<std::uintptr_t>(x) % sizeof(Neighbours<T>) == 0);
    });
  }

  RIGEL_MEMBER void write(Floats g, std::int64_t l, std::int64_t m, std::int64_t n, int count,
                          const float (&v)[width]) const {
    with_neighbours(g, l, m, n, count, [&]<class T>(T* x, std::int64_t step, bool whole) __attribute__((always_inline)) {
      if (whole) {
        Neighbours<T> all;
#pragma unroll
        for (int i = 0; i < width; ++i) all.value[i] = convert<T>(v[i]);
        *reinterpret_cast<Neighbours<T>*>(x) = all;
      } else {
#pragma unroll
        for (int i = 0; i < width; ++i)
          if (i < count) x[i * step] = convert<T>(v[i]);
      }
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel template receives: typed pointers and strides, the semiring, and the Finish, which stores results in C. No
// Kokkos here.
#pragma once

#include <rigel/epilogue_layer.hpp>
#include <rigel/registry.hpp>
#include <rigel/semiring.hpp>

#include <array>
#include <bit>
#include <cstddef>

namespace rigel::detail {

/// A batch of strided matrices: at(l, i, j) is element (i, j) of matrix l.
template <class T>
struct Strided {
  T* data;
  std::int64_t batch, row, column;  // strides in elements
  RIGEL_MEMBER std::int64_t offset(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return l * batch + i * row + j * column;
  }
  RIGEL_MEMBER T& at(std::int64_t l, std::int64_t i, std::int64_t j) const { return data[offset(l, i, j)]; }
};

// Calls `visit` with a typed pointer, for the types in which C can hold a result of type Value: floating-point results go to
// floating-point types, integers to any. `quantised`: results of integers that steps turned into double also go to i8, u8 and i32.
template <class Value, bool quantised = false, class Visit>
RIGEL_FUNCTION void with_type(Scalar type, void* data, Visit visit) {
  switch (type) {
    case Scalar::f16: return visit(static_cast<half*>(data));
    case Scalar::bf16: return visit(static_cast<bfloat16*>(data));
    case Scalar::f32: return visit(static_cast<float*>(data));
    case Scalar::f64: return visit(static_cast<double*>(data));
    default: break;
  }
  if constexpr (quantised) {
    switch (type) {
      case Scalar::i8: return visit(static_cast<std::int8_t*>(data));
      case Scalar::u8: return visit(static_cast<std::uint8_t*>(data));
      case Scalar::i32: return visit(static_cast<std::int32_t*>(data));
      default: break;
    }
  }
  if constexpr (std::is_integral_v<Value>) {
    switch (type) {
      case Scalar::i8: return visit(static_cast<std::int8_t*>(data));
      case Scalar::u8: return visit(static_cast<std::uint8_t*>(data));
      case Scalar::i16: return visit(static_cast<std::int16_t*>(data));
      case Scalar::i32: return visit(static_cast<std::int32_t*>(data));
      case Scalar::i64: return visit(static_cast<std::int64_t*>(data));
      case Scalar::u32: return visit(static_cast<std::uint32_t*>(data));
      case Scalar::u64: return visit(static_cast<std::uint64_t*>(data));
      default: break;
    }
  }
}

// The conversion to C's type, rounded once.
template <class To, class From>
RIGEL_FUNCTION To convert(From v) {
  if constexpr (ShortFloat<To> && !std::is_arithmetic_v<From>)
    return To(static_cast<float>(v));
  else
    return static_cast<To>(v);
}

/// The same for what steps made of integers: the nearest integer, of two equally near ones the even one, and the least or the
/// largest number of the type if it is beyond these. NaN becomes 0.
template <class To>
RIGEL_FUNCTION To quantised(double v) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    using std::rint;
    const double least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max(), nearest = rint(v);
    return nearest <= least     ? std::numeric_limits<To>::min()
           : nearest >= most    ? std::numeric_limits<To>::max()
           : nearest == nearest ? static_cast<To>(nearest)
                                : To(0);
  } else {
    return convert<To>(v);
  }
}

/// Epilogue and store of compiled kernels: the epilogue is a Program, and C's type is known at run time.
struct ProgramFinish {
  static constexpr bool takes_transpose = true;
  epilogue::Program program;
  Scalar type;
  bool is_short, reads_place;  // what the program says of itself
  bool is_layer;               // whether it has the short form `layer`
  epilogue::Layer layer;

  /// Whether the store is a plain copy of values of type T. Kernels then skip the dispatch on epilogue and type.
  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return program.empty() && type == scalar_of<T>;
  }
  /// Whether a thread may apply the epilogue to several floats at a time, by run_on(), before it stores them as T.
  template <class T>
  RIGEL_MEMBER bool runs_short() const {
    return is_short && type == scalar_of<T>;
  }
  /// Applies the epilogue's steps from `first` on to what Program::run_on() takes.
  template <int groups, int width, class Outputs>
  RIGEL_MEMBER void run_on(float (&values)[groups][width], const Outputs& outputs, int first = 0) const {
    program.run_on(values, outputs, first);
  }
  RIGEL_MEMBER bool begins_with_root() const { return program.begins_with_root(); }
  /// The exponent if the store is a copy of powers of values of type T, else 0.
  template <class T>
  RIGEL_MEMBER double power() const {
    return std::is_floating_point_v<T> && type == scalar_of<T> ? program.power() : 0;
  }

  template <class S>
  RIGEL_MEMBER void store(const S& s, typename S::accumulator x, void* c, std::int64_t offset, std::int64_t m,
                          std::int64_t n, std::int64_t l) const {
    auto v = rigel::result(s, x);
    using Value = decltype(v);
    const auto write = [&](auto value) {
      with_type<decltype(value)>(
          type, c, [&](auto* typed) { typed[offset] = convert<std::remove_cvref_t<decltype(*typed)>>(value); });
    };
    if constexpr (math::is_floating<Value>) {
      write(program(v, m, n, l));
    } else {
      if (program.size() == program.bit_steps()) return write(program.bits(v));
      const double value = program(v, m, n, l);
      with_type<double, true>(type, c,
                              [&](auto* typed) { typed[offset] = quantised<std::remove_cvref_t<decltype(*typed)>>(value); });
    }
  }

  template <class S>
  RIGEL_MEMBER typename S::accumulator load(const S& s, const void* c, std::int64_t offset) const {
    using Value = result_t<S>;
    if constexpr (!can_accumulate<S>) {
      return S::identity();
    } else {
      Value v{};
      with_type<Value>(type, const_cast<void*>(c), [&](auto* typed) {
        using T = std::remove_cvref_t<decltype(*typed)>;
        if constexpr (ShortFloat<T>)
          v = static_cast<Value>(static_cast<float>(typed[offset]));
        else
          v = static_cast<Value>(typed[offset]);
      });
      return rigel::lift(s, v);
    }
  }
};

/// Epilogue and store of kernels instantiated in the user's translation unit: the epilogue and C's type are known at compile
/// time. `transposes`: the kernel may get a transposed problem; the functor still gets the m and n of the caller's C.
template <class E, class Value, bool transposes>
struct FunctorFinish {
  E functor;
  bool of_transpose;
  static constexpr bool takes_transpose = transposes;
  static constexpr bool is_layer = false;

  /// What the functor makes of an output.
  template <class V>
  RIGEL_MEMBER auto applied(V v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    if constexpr (transposes)
      return functor(v, of_transpose ? n : m, of_transpose ? m : n, l);
    else
      return functor(v, m, n, l);
  }

  /// Whether the functor makes floats of floats, so that a thread may apply it to several at a time.
  static constexpr bool takes_floats = requires(const E e, float v, std::int64_t i) {
    { e(v, i, i, i) } -> std::same_as<float>;
  };

  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return false;
  }
  template <class T>
  RIGEL_MEMBER bool runs_short() const {
    return takes_floats && std::is_same_v<T, Value>;
  }
  /// As in ProgramFinish; each output is computed once, since the functor may write further results.
  template <int groups, int width, class Outputs>
  RIGEL_MEMBER void run_on(float (&values)[groups][width], const Outputs& outputs, int = 0) const {
    if constexpr (takes_floats)
      epilogue::detail::for_each_group<1>(values, [&](int number, float (&group)[1][width]) __attribute__((always_inline)) {
        if (number >= outputs.groups) return;
        const epilogue::Place at = outputs.place(number);
        epilogue::detail::for_each_value(group, [&](float& value, int j) __attribute__((always_inline)) {
          value = applied(value, at.m + j * outputs.apart_m, at.n + j * outputs.apart_n, at.l);
        });
      });
  }
  RIGEL_MEMBER bool begins_with_root() const { return false; }
  template <class T>
  RIGEL_MEMBER double power() const {
    return 0;
  }

  template <class S>
  RIGEL_MEMBER void store(const S& s, typename S::accumulator x, void* c, std::int64_t offset, std::int64_t m,
                          std::int64_t n, std::int64_t l) const {
    const auto v = rigel::result(s, x);
    if constexpr (std::is_same_v<E, epilogue::Program> && std::is_integral_v<result_t<S>>)  // as in ProgramFinish
      static_cast<Value*>(c)[offset] =
          functor.size() == functor.bit_steps() ? convert<Value>(functor.bits(v)) : quantised<Value>(applied(v, m, n, l));
    else
      static_cast<Value*>(c)[offset] = convert<Value>(applied(v, m, n, l));
  }

  template <class S>
  RIGEL_MEMBER typename S::accumulator load(const S& s, const void* c, std::int64_t offset) const {
    if constexpr (can_accumulate<S>)
      return rigel::lift(s, static_cast<const Value*>(c)[offset]);
    else
      return S::identity();
  }
};

/// Those of a product: all that loaders and sums need.
template <class Element>
struct ProductArguments {
  std::int64_t batch, m, n, k;
  Strided<const Element> a, b;  // a: m × k, b: k × n
};

/// The arguments of a contraction kernel.
template <class S, class F>
struct Arguments : ProductArguments<typename S::element> {
  using Semiring = S;
  using Finish = F;
  using element = typename S::element;
  using accumulator = typename S::accumulator;

  void* c;
  Strided<char> c_strides;  // strides of c, in its own elements
  S one_semiring;
  const S* semirings;  // the objects of a view, in memory of the execution space, or null
  Finish finish;
  bool accumulate;
  bool shares_semiring;  // semirings[0] serves all batches

  RIGEL_MEMBER S semiring(std::int64_t l) const { return semirings ? semirings[shares_semiring ? 0 : l] : one_semiring; }
  RIGEL_MEMBER std::int64_t c_offset(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return c_strides.offset(l, i, j);
  }
  /// The accumulator with which the chain of output (l, i, j) starts.
  RIGEL_MEMBER accumulator start(const S& s, std::int64_t l, std::int64_t i, std::int64_t j) const {
    return accumulate ? finish.load(s, c, c_offset(l, i, j)) : accumulator(S::identity());
  }
  RIGEL_MEMBER void store(const S& s, accumulator x, std::int64_t l, std::int64_t i, std::int64_t j) const {
    finish.store(s, x, c, c_offset(l, i, j), i, j, l);
  }
};

template <class T>
Strided<const T> strided(const Operand& o) {
  return {static_cast<const T*>(o.data), o.batch_stride, o.row_stride, o.column_stride};
}

/// The Finish of a product whose results are stored in elements of `type`.
template <class Finish>
Finish finish_of(const Product& p, Scalar type) {
  if constexpr (std::is_same_v<Finish, ProgramFinish>) {
    const epilogue::Program program = p.program->of_part(p.first.batch, p.first.row, p.first.column);
    const auto layer = epilogue::Layer::of(program);
    return {
        program, type, program.is_short(), program.reads().place(), layer.has_value(), layer.value_or(epilogue::Layer{})};
  } else {
    return {*static_cast<const decltype(Finish::functor)*>(p.epilogue_object), p.of_transpose};
  }
}

// The object, if it is in host memory. If it is in a view, the host may not be able to read it; this one is then zero bytes,
// and no kernel reads it.
template <class S>
S semiring_of(const Product& p) {
  if (p.semiring_in_view) return std::bit_cast<S>(std::array<std::byte, sizeof(S)>{});
  return *static_cast<const S*>(p.semiring_object);
}

/// The typed arguments of a problem whose semiring is S.
template <class S, class Finish>
Arguments<S, Finish> arguments_of(const Contraction& p) {
  const S* objects = static_cast<const S*>(p.semiring_object);
  return {{p.batch, p.m, p.n, p.k, strided<typename S::element>(p.a), strided<typename S::element>(p.b)},
          p.c.data,
          {nullptr, p.c.batch_stride, p.c.row_stride, p.c.column_stride},
          semiring_of<S>(p),
          p.semiring_in_view ? objects : nullptr,
          finish_of<Finish>(p, p.c.type),
          p.accumulate,
          p.semiring_stride == 0};
}

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel template receives: typed pointers and strides, the semiring, and the way into C. No Kokkos here.
#pragma once

#include <rigel/registry.hpp>
#include <rigel/semiring.hpp>

#include <array>
#include <bit>
#include <cstddef>

namespace rigel::detail {

/// Element (l, i, j) of a batch of strided matrices.
template <class T>
struct Strided {
  T* data;
  std::int64_t batch, row, column;  // strides in elements
  RIGEL_MEMBER std::int64_t offset(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return l * batch + i * row + j * column;
  }
  RIGEL_MEMBER T& at(std::int64_t l, std::int64_t i, std::int64_t j) const { return data[offset(l, i, j)]; }
};

// `visit` on a typed pointer, for the types that a result of type Value may be stored as: floating-point results as
// floating-point numbers, integers as any number.
template <class Value, class Visit>
RIGEL_FUNCTION void with_type(Scalar type, void* data, Visit visit) {
  switch (type) {
    case Scalar::f16: return visit(static_cast<half*>(data));
    case Scalar::bf16: return visit(static_cast<bfloat16*>(data));
    case Scalar::f32: return visit(static_cast<float*>(data));
    case Scalar::f64: return visit(static_cast<double*>(data));
    default: break;
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

// C's conversion: to the 16-bit types by way of float.
template <class To, class From>
RIGEL_FUNCTION To convert(From v) {
  if constexpr (ShortFloat<To>)
    return To(static_cast<float>(v));
  else
    return static_cast<To>(v);
}

/// The way into C for compiled kernels: a Program, and a type known at run time.
struct ProgramFinish {
  epilogue::Program program;
  Scalar type;

  /// True where storing is a plain copy of values of type T: kernels then take their shortest way.
  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return program.empty() && type == scalar_of<T>;
  }
  /// The exponent where it is a copy of powers, else 0.
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
      with_type<decltype(value)>(type, c, [&](auto* typed) {
        typed[offset] = convert<std::remove_cvref_t<decltype(*typed)>>(value);
      });
    };
    if constexpr (math::is_floating<Value>) {
      write(program(v, m, n, l));
    } else {
      if (program.size() == program.bit_steps()) write(program.bits(v));
      else write(program(v, m, n, l));
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

/// The way into C for kernels instantiated in the user's translation unit: the epilogue and C's type are known.
template <class E, class Value>
struct FunctorFinish {
  E functor;

  template <class T>
  RIGEL_MEMBER bool is_copy() const {
    return false;
  }
  template <class T>
  RIGEL_MEMBER double power() const {
    return 0;
  }

  template <class S>
  RIGEL_MEMBER void store(const S& s, typename S::accumulator x, void* c, std::int64_t offset, std::int64_t m,
                          std::int64_t n, std::int64_t l) const {
    const auto v = rigel::result(s, x);
    if constexpr (std::is_same_v<E, epilogue::Program> && std::is_integral_v<result_t<S>>)
      if (functor.size() == functor.bit_steps()) {  // integers stay integers, as in ProgramFinish
        static_cast<Value*>(c)[offset] = convert<Value>(functor.bits(v));
        return;
      }
    static_cast<Value*>(c)[offset] = convert<Value>(functor(v, m, n, l));
  }

  template <class S>
  RIGEL_MEMBER typename S::accumulator load(const S& s, const void* c, std::int64_t offset) const {
    if constexpr (can_accumulate<S>)
      return rigel::lift(s, static_cast<const Value*>(c)[offset]);
    else
      return S::identity();
  }
};

/// Everything that a contraction kernel reads.
template <class S, class F>
struct Arguments {
  using Semiring = S;
  using Finish = F;
  using element = typename S::element;
  using accumulator = typename S::accumulator;

  std::int64_t batch, m, n, k;
  Strided<const element> a, b;  // a: m × k, b: k × n
  void* c;
  Strided<char> c_strides;  // strides of c, in its own elements
  S one_semiring;
  const S* semirings;  // one for each batch, or null
  Finish finish;
  bool accumulate;

  RIGEL_MEMBER S semiring(std::int64_t l) const { return semirings ? semirings[l] : one_semiring; }
  RIGEL_MEMBER std::int64_t c_offset(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return c_strides.offset(l, i, j);
  }
  /// Where the chain of output (l, i, j) starts.
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

template <class Finish>
Finish finish_of(const Problem& p) {
  if constexpr (std::is_same_v<Finish, ProgramFinish>)
    return {*p.program, p.c.type};
  else
    return {*static_cast<const decltype(Finish::functor)*>(p.epilogue_object)};
}

// The object of all batches. If every batch has its own, the host may not read them and no kernel reads this one: zero bytes.
template <class S>
S semiring_of(const Problem& p) {
  if (p.semiring_per_batch) return std::bit_cast<S>(std::array<std::byte, sizeof(S)>{});
  return *static_cast<const S*>(p.semiring_object);
}

/// The typed arguments of a problem whose semiring is S.
template <class S, class Finish>
Arguments<S, Finish> arguments_of(const Problem& p) {
  const S* objects = static_cast<const S*>(p.semiring_object);
  return {p.batch, p.m, p.n, p.k, strided<typename S::element>(p.a), strided<typename S::element>(p.b),
          p.c.data, {nullptr, p.c.batch_stride, p.c.row_stride, p.c.column_stride},
          semiring_of<S>(p), p.semiring_per_batch ? objects : nullptr, finish_of<Finish>(p), p.accumulate};
}

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of packing. K-major operands are transposed in registers, in square blocks; M-major and N-major ones are copied in
// vectors; other strides are copied element by element.
#pragma once

#include <rigel/backends/host/pack.hpp>

namespace rigel::backends::host {

/// Loads `Lanes` consecutive elements and converts them.
template <class To, int Lanes, class From>
RIGEL_FUNCTION vector<To, Lanes> load_converted(const From* p) {
  if constexpr (std::is_same_v<From, half>) {
    return __builtin_convertvector((load<vector<_Float16, Lanes>>(p)), vector<To, Lanes>);
  } else if constexpr (std::is_same_v<From, bfloat16>) {
    const auto bits = __builtin_convertvector((load<vector<std::uint16_t, Lanes>>(p)), vector<std::uint32_t, Lanes>) << 16;
    return __builtin_convertvector((__builtin_bit_cast(vector<float, Lanes>, bits)), vector<To, Lanes>);
  } else {
    return __builtin_convertvector((load<vector<From, Lanes>>(p)), vector<To, Lanes>);
  }
}

template <class From, class To>
inline constexpr bool converts_in_vectors = (std::is_arithmetic_v<From> || ShortFloat<From>) && std::is_arithmetic_v<To> &&
                                            !std::is_same_v<From, bool> && !std::is_same_v<To, bool>;

/// The number of lanes of the vectors that copy a panel: a power of two that divides its width.
template <class Level, int Width, class To>
constexpr int packed_lanes() {
  constexpr int widest = Level::vector_bytes / sizeof(To) < 16 ? Level::vector_bytes / sizeof(To) : 16;
  constexpr int divisor = Width & -Width;
  return divisor < widest ? divisor : widest;
}

/// Packs one panel whose source is contiguous along K, by transposing square blocks in registers.
template <class Level, int Width, class From, class To>
RIGEL_FUNCTION void pack_transposed(const From* source, std::int64_t stride, int steps, To* panel) {
  constexpr int lanes = packed_lanes<Level, Width, To>();
  int k = 0;
  for (; k + lanes <= steps; k += lanes)
    for (int i0 = 0; i0 < Width; i0 += lanes) {
      vector<To, lanes> block[lanes];
#pragma unroll
      for (int i = 0; i < lanes; ++i) block[i] = load_converted<To, lanes>(source + (i0 + i) * stride + k);
      transpose(block);
#pragma unroll
      for (int i = 0; i < lanes; ++i) store(panel + (k + i) * Width + i0, block[i]);
    }
  for (; k < steps; ++k)
    for (int i = 0; i < Width; ++i) panel[k * Width + i] = static_cast<To>(source[i * stride + k]);
}

template <class Level, int Width, class From, class To>
[[gnu::noinline, clang::min_vector_width(512)]] void pack(const From* source, std::int64_t row_stride, std::int64_t k_stride,
                                                          int count, int steps, To* panel) {
  for (int i0 = 0; i0 < count; i0 += Width, panel += steps * Width, source += Width * row_stride) {
    if (count - i0 < Width) {
      for (int k = 0; k < steps; ++k)
        for (int i = 0; i < Width; ++i)
          panel[k * Width + i] = static_cast<To>(source[(i < count - i0 ? i : count - i0 - 1) * row_stride + k * k_stride]);
      continue;
    }
    if constexpr (converts_in_vectors<From, To> && Width > 1) {
      if (k_stride == 1) {
        pack_transposed<Level, Width>(source, row_stride, steps, panel);
        continue;
      }
      if (row_stride == 1) {
        constexpr int lanes = packed_lanes<Level, Width, To>();
        for (int k = 0; k < steps; ++k)
#pragma unroll
          for (int i = 0; i < Width; i += lanes)
            store(panel + k * Width + i, load_converted<To, lanes>(source + k * k_stride + i));
        continue;
      }
    }
    for (int k = 0; k < steps; ++k)
      for (int i = 0; i < Width; ++i) panel[k * Width + i] = static_cast<To>(source[i * row_stride + k * k_stride]);
  }
}

template <class Level, class T>
[[gnu::noinline, clang::min_vector_width(512)]] detail::Specials specials_of(const T* values, std::int64_t count) {
  using V = vector<T, Level::vector_bytes / sizeof(T)>;
  constexpr int lanes = Level::vector_bytes / sizeof(T);
  // The largest and the smallest value tell whether there are infinities.
  V largest = splat<V>(T(0)), smallest = splat<V>(T(0));
  auto unordered = largest != largest;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V v = load<V>(values + i);
    unordered |= v != v;
    largest = math::maximum_if_ordered(v, largest);
    smallest = math::minimum_if_ordered(v, smallest);
  }
  detail::Specials found;
  const auto note = [&](T v) {
    found.nan |= v != v;
    found.infinite |= v == infinity<T>();
    found.negative_infinite |= v == -infinity<T>();
  };
  for (; i < count; ++i) note(values[i]);
  for (int j = 0; j < lanes; ++j) {
    found.nan |= unordered[j] != 0;
    note(largest[j]);
    note(smallest[j]);
  }
  return found;
}

template <class Level, class S>
[[gnu::noinline, clang::min_vector_width(512)]] bool are_regular(const operand_t<S>* values, std::int64_t count) {
  using T = operand_t<S>;
  constexpr int lanes = Level::vector_bytes / sizeof(T);
  using V = vector<T, lanes>;
  auto regular = V{} == V{};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) regular &= S::is_regular(load<V>(values + i));
  V rest = {};
  for (; i < count; ++i) rest[static_cast<int>(i % lanes)] = values[i];
  regular &= S::is_regular(rest);
  return __builtin_reduce_and(regular) != 0;
}

}  // namespace rigel::backends::host

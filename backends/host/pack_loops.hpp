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
inline constexpr bool converts_in_vectors = (is_lane<From> || ShortFloat<From>) && is_lane<To>;

/// The number of lanes of the vectors that copy a panel or lanes, so many at a time: a power of two that divides the width.
template <class Level, int Width, class To>
constexpr int packed_lanes() {
  constexpr int widest = Level::vector_bytes / sizeof(To) < 16 ? Level::vector_bytes / sizeof(To) : 16;
  constexpr int divisor = Width & -Width;
  return divisor < widest ? divisor : widest;
}

/// Converts elements in vectors: to[i] = element(i), i < count. They lie apart in memory, so they are gathered first.
template <class To, int Lanes, class Element>
RIGEL_FUNCTION void convert_each(const Element& element, int count, To* to) {
  using From = std::remove_cvref_t<decltype(element(0))>;
  int i = 0;
  if constexpr (converts_in_vectors<From, To> && !std::is_same_v<From, To> && Lanes > 1)
    for (; i + Lanes <= count; i += Lanes) {
      From gathered[Lanes];
#pragma unroll
      for (int j = 0; j < Lanes; ++j) gathered[j] = element(i + j);
      store(to + i, load_converted<To, Lanes>(gathered));
    }
  for (; i < count; ++i) to[i] = static_cast<To>(element(i));
}

/// Packs `count` ≤ Width rows whose source is contiguous along K, by transposing square blocks in registers.
template <class Level, int Width, class From, class To>
RIGEL_FUNCTION void pack_transposed(const From* source, std::int64_t stride, int count, int steps, To* panel) {
  constexpr int lanes = packed_lanes<Level, Width, To>();
  const auto row = [=](int i) __attribute__((always_inline)) { return source + (i < count ? i : count - 1) * stride; };
  int k = 0;
  for (; k + lanes <= steps; k += lanes)
    for (int i0 = 0; i0 < Width; i0 += lanes) {
      vector<To, lanes> block[lanes];
#pragma unroll
      for (int i = 0; i < lanes; ++i) block[i] = load_converted<To, lanes>(row(i0 + i) + k);
      transpose(block);
#pragma unroll
      for (int i = 0; i < lanes; ++i) store(panel + (k + i) * Width + i0, block[i]);
    }
  for (; k < steps; ++k)
    convert_each<To, lanes>([&](int i) __attribute__((always_inline)) { return row(i)[k]; }, Width, panel + k * Width);
}

/// Packs one k of `count` < Width rows that are contiguous.
template <class Level, int Width, class From, class To>
RIGEL_FUNCTION void pack_part(const From* source, int count, To* to) {
  constexpr int lanes = packed_lanes<Level, Width, To>();
  int i = 0;
  for (; i + lanes <= count; i += lanes) store(to + i, load_converted<To, lanes>(source + i));
  for (int j = i; j < Width; j += lanes) store(to + j, splat<vector<To, lanes>>(static_cast<To>(source[count - 1])));
  if (i == count) return;
  if (count >= lanes)  // a vector that overlaps the one before it
    store(to + count - lanes, load_converted<To, lanes>(source + count - lanes));
  else
    for (; i < count; ++i) to[i] = static_cast<To>(source[i]);
}

/// Packs rows that are neighbours in memory: all of them for each k, so that the source is read in long lines, those of the next k ahead.
/// The rows of a panel alone would be a few cache lines of each page.
template <class Level, int Width, class From, class To>
RIGEL_FUNCTION void pack_lines(const From* source, std::int64_t k_stride, int count, int steps, To* panels) {
  constexpr int lanes = packed_lanes<Level, Width, To>(), line = 64 / static_cast<int>(sizeof(From));
  const int whole = count / Width * Width;
  for (int k = 0; k < steps; ++k, source += k_stride, panels += Width) {
    if (k + 2 < steps)
      for (int i = 0; i < whole; i += line) __builtin_prefetch(source + 2 * k_stride + i);
    To* panel = panels;
    for (int i0 = 0; i0 < whole; i0 += Width, panel += steps * Width)
#pragma unroll
      for (int i = 0; i < Width; i += lanes) store(panel + i, load_converted<To, lanes>(source + i0 + i));
    if (whole < count) pack_part<Level, Width>(source + whole, count - whole, panel);
  }
}

template <class Level, int Width, class From, class To>
[[gnu::noinline, clang::min_vector_width(512)]] void pack(const From* source, std::int64_t row_stride, std::int64_t k_stride,
                                                          int count, int steps, To* panel) {
  constexpr int lanes = packed_lanes<Level, Width, To>();
  constexpr bool in_vectors = converts_in_vectors<From, To> && Width > 1;
  if constexpr (in_vectors)
    if (row_stride == 1 && k_stride != 1) return pack_lines<Level, Width>(source, k_stride, count, steps, panel);
  for (int i0 = 0; i0 < count; i0 += Width, panel += steps * Width, source += Width * row_stride) {
    const int rows = count - i0 < Width ? count - i0 : Width;
    if constexpr (in_vectors)
      if (k_stride == 1) {
        pack_transposed<Level, Width>(source, row_stride, rows, steps, panel);
        continue;
      }
    for (int k = 0; k < steps; ++k)
      convert_each<To, lanes>(
          [&](int i)
              __attribute__((always_inline)) { return source[(i < rows ? i : rows - 1) * row_stride + k * k_stride]; },
          Width, panel + k * Width);
  }
}

/// Calls use.operator()<block>() for the largest block, the widest or 4, that fits into a line, and returns whether there is one.
template <int widest, class Use>
RIGEL_FUNCTION bool with_block(std::int64_t length, const Use& use) {
  if (length >= widest) {
    use.template operator()<widest>();
    return true;
  }
  if constexpr (widest > 4)
    if (length >= 4) {
      use.template operator()<4>();
      return true;
    }
  return false;
}

template <class Level, int Lanes, class From, class To>
[[gnu::noinline, clang::min_vector_width(512)]] void interleave(const From* source, std::int64_t batch_stride, int matrices,
                                                                std::int64_t outer, std::int64_t outer_stride,
                                                                std::int64_t inner, std::int64_t inner_stride, To* to) {
  if (inner_stride == 1 && outer_stride == inner) {  // one line
    inner *= outer;
    outer = 1;
  }
  const From* first[Lanes];
  for (int l = 0; l < Lanes; ++l) first[l] = source + (l < matrices ? l : matrices - 1) * batch_stride;
  constexpr int widest = packed_lanes<Level, Lanes, To>();
  for (std::int64_t i = 0; i < outer; ++i, to += inner * Lanes) {
    if constexpr (converts_in_vectors<From, To> && Lanes > 1) {
      if (batch_stride == 1 && matrices == Lanes) {
        for (std::int64_t j = 0; j < inner; ++j)
#pragma unroll
          for (int l = 0; l < Lanes; l += widest)
            store(to + j * Lanes + l, load_converted<To, widest>(source + i * outer_stride + j * inner_stride + l));
        continue;
      }
      const auto by_blocks = [&]<int block>() __attribute__((always_inline)) {
        for (std::int64_t at = 0; at < inner; at += block) {
          const std::int64_t j = at + block <= inner ? at : inner - block;  // the last block overlaps the one before it
          for (int l = 0; l < Lanes; l += block) {
            vector<To, block> x[block];
#pragma unroll
            for (int k = 0; k < block; ++k) x[k] = load_converted<To, block>(first[l + k] + i * outer_stride + j);
            transpose(x);
#pragma unroll
            for (int k = 0; k < block; ++k) store(to + (j + k) * Lanes + l, x[k]);
          }
        }
      };
      if (inner_stride == 1 && with_block<widest>(inner, by_blocks)) continue;
    }
    for (std::int64_t j = 0; j < inner; ++j)
      convert_each<To, widest>([&](int l)
                                   __attribute__((always_inline)) { return first[l][i * outer_stride + j * inner_stride]; },
                               Lanes, to + j * Lanes);
  }
}

template <class Level, class Word>
[[gnu::noinline, clang::min_vector_width(512)]] void deinterleave(const Word* from, int lanes, std::int64_t lines,
                                                                  std::int64_t length, int matrices,
                                                                  const Matrices<Word>& to) {
  constexpr int widest = packed_lanes<Level, 16, Word>();
  if (to.stride == 1 && to.line_stride == length) {  // one line
    length *= lines;
    lines = 1;
  }
  for (std::int64_t i = 0; i < lines; ++i, from += length * lanes) {
    Word* const line = to.first + i * to.line_stride;
    if (to.batch_stride == 1 && matrices == lanes && lanes >= 4) {
      for (std::int64_t j = 0; j < length; ++j)
        for (int l = 0; l < lanes; l += 4) store(line + j * to.stride + l, load<vector<Word, 4>>(from + j * lanes + l));
      continue;
    }
    const auto by_blocks = [&]<int block>() __attribute__((always_inline)) {
      for (std::int64_t at = 0; at < length; at += block) {
        const std::int64_t j = at + block <= length ? at : length - block;
        for (int l = 0; l < matrices; l += block) {
          vector<Word, block> x[block];
#pragma unroll
          for (int k = 0; k < block; ++k) x[k] = load<vector<Word, block>>(from + (j + k) * lanes + l);
          transpose(x);
#pragma unroll
          for (int k = 0; k < block; ++k)
            if (l + k < matrices) store(line + (l + k) * to.batch_stride + j, x[k]);
        }
      }
    };
    if (to.stride == 1 && with_block<widest>(length < lanes ? length : lanes, by_blocks)) continue;
    for (int l = 0; l < matrices; ++l)
      for (std::int64_t j = 0; j < length; ++j)
        __builtin_memcpy(line + l * to.batch_stride + j * to.stride, from + j * lanes + l, sizeof(Word));
  }
}

template <class Level, class From, class To>
[[gnu::noinline, clang::min_vector_width(512)]] void copy_lines(const From* source, std::int64_t line_stride,
                                                                std::int64_t k_stride, int count, int steps, To* to,
                                                                std::int64_t to_stride) {
  if constexpr (converts_in_vectors<From, To>) {
    constexpr int block = packed_lanes<Level, 16, To>();
    if (k_stride == 1) {
      for (int i = 0; i < count; ++i) {
        int k = 0;
        for (; k + block <= steps; k += block)
          store(to + i * to_stride + k, load_converted<To, block>(source + i * line_stride + k));
        for (; k < steps; ++k) to[i * to_stride + k] = static_cast<To>(source[i * line_stride + k]);
      }
      return;
    }
    if (line_stride == 1 && count >= block && steps >= block) {
      for (int at = 0; at < count; at += block) {
        const int i = at + block <= count ? at : count - block;
        for (int from = 0; from < steps; from += block) {
          const int k = from + block <= steps ? from : steps - block;
          vector<To, block> x[block];
#pragma unroll
          for (int j = 0; j < block; ++j) x[j] = load_converted<To, block>(source + (k + j) * k_stride + i);
          transpose(x);
#pragma unroll
          for (int j = 0; j < block; ++j) store(to + (i + j) * to_stride + k, x[j]);
        }
      }
      return;
    }
  }
  for (int i = 0; i < count; ++i)
    convert_each<To, packed_lanes<Level, 16, To>()>(
        [&](int k) __attribute__((always_inline)) { return source[i * line_stride + k * k_stride]; }, steps,
        to + i * to_stride);
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.mma kernels of packed codes, whose bits are K-major. mma.sync counts the bits that are set in both codes. With
// |x| and |z|, the bits set in each, |x ⊻ z| = |x| + |z| − 2|x ∧ z|, |x ∨ z| = |x| + |z| − |x ∧ z| and
// |x ∧ ¬z| = |x| − |x ∧ z|. A small pass counts the bits of every code, which is a row of A or a column of B.
#pragma once

#include <rigel/backends/cuda/arch/launch.hpp>
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/store_results.hpp>
#include <rigel/detail/workspace.hpp>

#include <bit>

namespace rigel::backends::mma {

/// The bits set in each code of an operand; those of matrix l start at data + l·batch.
struct LineCounts {
  const std::int32_t* data;
  std::int64_t batch;
  __device__ __forceinline__ const std::int32_t* at(std::int64_t l, std::int64_t line) const {
    return data + l * batch + line;
  }
};

/// What that pass reads and writes: `matrices` times `lines` codes of `pieces` times 16 bytes, with 2^threads threads each.
struct Counting {
  Source<std::uint32_t> from;
  std::int64_t matrices, lines;
  std::int32_t pieces, threads;
  std::int32_t* to;

  static constexpr int block = 256;
  std::int64_t blocks() const { return ((matrices * lines << threads) + block - 1) / block; }
};

/// Counts the codes of A where blockIdx.y = 0, else those of B.
template <int threads>
__global__ void __launch_bounds__(threads)
    count_lines(const __grid_constant__ Counting a, const __grid_constant__ Counting b) {
  arch::allow_next_launch();
  __shared__ std::int32_t sums[threads / 32];
  const Counting& g = blockIdx.y == 0 ? a : b;
  const int thread = static_cast<int>(threadIdx.x), of_line = 1 << g.threads, mine = thread & (of_line - 1);
  const std::int64_t line = (std::int64_t{blockIdx.x} * threads + thread) >> g.threads;
  const bool present = line < g.matrices * g.lines;
  std::int32_t count = 0;
  if (present) {
    const std::int64_t matrix = line / g.lines;
    const auto* const from =
        reinterpret_cast<const uint4*>(g.from.data + matrix * g.from.batch + (line - matrix * g.lines) * g.from.stride);
#pragma unroll 4
    for (int i = mine; i < g.pieces; i += of_line) {
      const uint4 piece = from[i];
      count += __popc(piece.x) + __popc(piece.y) + __popc(piece.z) + __popc(piece.w);
    }
  }
  for (int apart = std::min(of_line, 32) / 2; apart > 0; apart /= 2) count += __shfl_xor_sync(~0u, count, apart);
  if (of_line > 32) {
    if (thread % 32 == 0) sums[thread / 32] = count;
    __syncthreads();
    for (int warp = 1; mine == 0 && warp < of_line / 32; ++warp) count += sums[thread / 32 + warp];
  }
  if (present && mine == 0) g.to[line] = count;
}

/// Whether S is a truth_measure.
template <class S>
inline constexpr bool measures_truth = false;
template <class Word, class Measure>
inline constexpr bool measures_truth<truth_measure<Word, Measure>> = true;

/// S's accumulator of two codes, of which a and b bits are set, `both` of them in both.
template <class S>
__device__ __forceinline__ typename S::accumulator joined(std::int32_t both, std::int32_t a, std::int32_t b) {
  if constexpr (measures_truth<S>)
    return {both, math::subtract(a, both), math::subtract(b, both)};
  else if constexpr (std::is_same_v<S, bit_jaccard<typename S::element>>)
    return {both, math::subtract(math::add(a, b), both)};
  else
    return math::subtract(math::add(a, b), math::multiply(2, both));
}

/// Turns a sum into S's accumulator.
template <class S>
struct FromCounts : StoresResults {
  LineCounts of_a, of_b;
  __device__ __forceinline__ std::int32_t a(std::int64_t l, std::int64_t m) const { return *of_a.at(l, m); }
  __device__ __forceinline__ std::int32_t b(std::int64_t l, std::int64_t n) const { return *of_b.at(l, n); }
  __device__ __forceinline__ typename S::accumulator operator()(std::int32_t both, std::int32_t in_a, std::int32_t in_b,
                                                                std::int64_t, std::int64_t, std::int64_t) const {
    return joined<S>(both, in_a, in_b);
  }

  template <class Shape>
  static constexpr int bytes = StoreBuffer<Shape::outputs_n, std::int32_t>::bytes;
  template <class Shape, class Finish, int rows, int columns>
  __device__ __forceinline__ void store(const detail::Arguments<S, Finish>& arguments,
                                        std::int32_t (&sums)[rows][columns][4], std::int64_t l, std::int64_t m,
                                        std::int64_t n, unsigned, unsigned char* shared, int lane) const {
    store_results<Shape>(arguments, sums, *this, l, m, n, shared, lane);
  }
};
/// What a row-major C of 32-bit numbers receives straight from registers: counts; `factor` times a count (in float, if that
/// is as exact as in double); or S's results. `otherwise`: the general epilogue.
enum class Stored : std::uint8_t { otherwise, counts, multiples, float_multiples, results };
/// The same for kernels that have no other store.
template <class S>
struct FromCountsInRegisters : StoresResults {
  LineCounts a, b;
  Stored stored;
  bool vectors;   // every fourth element of C has a 16-byte aligned address
  double number;  // the factor, or the entries of a truth_measure

  template <class Shape>
  static constexpr int bytes = StoreBuffer<Shape::outputs_n, std::int32_t>::bytes;
  template <class Shape, class Finish, int rows, int columns>
  __device__ __forceinline__ void store(const detail::Arguments<S, Finish>& g, const std::int32_t (&sums)[rows][columns][4],
                                        std::int64_t l, std::int64_t m, std::int64_t n, unsigned, unsigned char*,
                                        int lane) const;
};

/// The largest divisor for which short_quotient() is correctly rounded.
inline constexpr std::int64_t short_divisor = std::int64_t{1} << 18;
/// n / d rounded as IEEE 754 requires, for integers 0 < d ≤ short_divisor and 0 ≤ n ≤ 2·short_divisor: a product with the
/// special-function unit's reciprocal, which is off by 1 ulp, and one correction (P. Markstein, IA-64 and Elementary Functions, 2000,
/// chapter 8).
/// The product is within 3 ulp of the quotient and the remainder is exact, so the sum before rounding is within 2^-21 ulp of
/// the quotient. But every midpoint between two floats is at least 1/(2d) = 2^-19 ulp away from it. For the same reason, a quotient that
/// is rounded to double first becomes the same float.
__device__ __forceinline__ float short_quotient(float n, float d) {
  const float r = __nvvm_rcp_approx_ftz_f(d), q = math::multiply(n, r);
  return math::fma(math::fma(-d, q, n), r, q);
}

/// x as a double, by an addition: a GPU has four times as many units for additions as for conversions.
__device__ __forceinline__ double double_of(std::int32_t x) {
  constexpr int exponent_of_2_52 = 0x43300000;
  constexpr std::uint32_t sign = 0x80000000u;
  return __dadd_rn(__hiloint2double(exponent_of_2_52, static_cast<int>(static_cast<std::uint32_t>(x) ^ sign)),
                   -(0x1p52 + 0x1p31));
}

/// The 32 bits that C receives for an output.
template <class S, Stored stored>
__device__ __forceinline__ float value_of(std::int32_t both, std::int32_t a, std::int32_t b,
                                          [[maybe_unused]] double number) {
  const auto x = joined<S>(both, a, b);
  if constexpr (measures_truth<S>) {
    using Measure = typename S::measure;
    const auto t = static_cast<float>(x.both), f = static_cast<float>(x.first), s = static_cast<float>(x.second);
    const Quotient<float> q = Measure::of(t, f, s, static_cast<float>(number) - t - f - s);
    const float value = short_quotient(q.above, std::max(q.below, 1.f));
    return q.below == 0 ? static_cast<float>(Measure::undefined) : value;
  } else if constexpr (stored == Stored::results) {
    return short_quotient(static_cast<float>(x.either - x.both), static_cast<float>(std::max(x.either, 1)));
  } else if constexpr (stored == Stored::multiples) {
    return static_cast<float>(math::multiply(double_of(x), number));
  } else if constexpr (stored == Stored::float_multiples) {
    return math::multiply(static_cast<float>(x), static_cast<float>(number));
  } else {
    return __int_as_float(x);
  }
}

/// Stores a warp's outputs, all of which exist, straight from mma.sync's registers. In two neighbouring blocks of eight
/// columns, a lane and the next exchange pairs, so that each has four neighbours of one block; 64 bytes of a row are stored
/// at a time. (Whole lines of 128 bytes, by another exchange between two rows, were slower.)
template <Stored stored, class S, class Finish, int rows, int columns>
__device__ __forceinline__ void store_from_registers(const detail::Arguments<S, Finish>& g,
                                                     const std::int32_t (&x)[rows][columns][4],
                                                     const FromCountsInRegisters<S>& result, std::int64_t l, std::int64_t m,
                                                     std::int64_t n, int lane) {
  constexpr int width = 4;
  const bool odd = lane % 2 != 0;
  const int row = lane / 4, column = lane % 4 / 2 * width + (odd ? 8 : 0);
  const std::int32_t* const counts_a = result.a.at(l, m + row);
  const std::int32_t* const counts_b = result.b.at(l, n + column);
  std::int32_t of_a[2 * rows], of_b[columns / 2][width];
#pragma unroll
  for (int p = 0; p < 2 * rows; ++p) of_a[p] = counts_a[8 * p];
#pragma unroll
  for (int j = 0; j < columns / 2; ++j)
#pragma unroll
    for (int v = 0; v < width; ++v) of_b[j][v] = counts_b[16 * j + v];
  auto* c = static_cast<float*>(g.c) + g.c_offset(l, m + row, n + column);
#pragma unroll
  for (int p = 0; p < 2 * rows; ++p) {
#pragma unroll
    for (int j = 0; j < columns / 2; ++j) {
      std::int32_t both[width];
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const std::int32_t lower = x[p / 2][2 * j][p % 2 * 2 + v], upper = x[p / 2][2 * j + 1][p % 2 * 2 + v];
        const std::int32_t other = __shfl_xor_sync(~0u, odd ? lower : upper, 1);
        both[v] = odd ? other : lower;
        both[2 + v] = odd ? upper : other;
      }
      tile::Chunk<float, width> values;
#pragma unroll
      for (int v = 0; v < width; ++v) values.value[v] = value_of<S, stored>(both[v], of_a[p], of_b[j][v], result.number);
      values.store(c + 16 * j);
    }
    c += 8 * g.c_strides.row;
  }
}

/// The same for outputs that may not exist, one by one.
template <Stored stored, class S, class Finish, int rows, int columns>
__device__ __forceinline__ void store_some(const detail::Arguments<S, Finish>& g, const std::int32_t (&x)[rows][columns][4],
                                           const FromCountsInRegisters<S>& result, std::int64_t l, std::int64_t m,
                                           std::int64_t n, int lane) {
  const int row = lane / 4, column = lane % 4 * 2;
  const int rows_left = static_cast<int>(std::min<std::int64_t>(g.m - m, 16 * rows)) - row;
  const int columns_left = static_cast<int>(std::min<std::int64_t>(g.n - n, 8 * columns)) - column;
  const std::int32_t* const counts_a = result.a.at(l, m + row);
  const std::int32_t* const counts_b = result.b.at(l, n + column);
  auto* c = static_cast<float*>(g.c) + g.c_offset(l, m + row, n + column);
  std::int32_t of_b[columns][2];
#pragma unroll
  for (int j = 0; j < columns; ++j)
#pragma unroll
    for (int v = 0; v < 2; ++v) of_b[j][v] = 8 * j + v < columns_left ? counts_b[8 * j + v] : 0;
#pragma unroll
  for (int p = 0; p < 2 * rows; ++p) {
    if (8 * p >= rows_left) break;
    const std::int32_t of_a = counts_a[8 * p];
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int v = 0; v < 2; ++v)
        if (8 * j + v < columns_left)
          c[8 * j + v] = value_of<S, stored>(x[p / 2][j][p % 2 * 2 + v], of_a, of_b[j][v], result.number);
    c += 8 * g.c_strides.row;
  }
}

/// With short codes a call mostly stores C. So a row-major C of 32-bit numbers, without an epilogue or with a factor alone
/// (metric::bit_hamming), has kernels of its own, which have no other epilogue.
template <class S>
template <class Shape, class Finish, int rows, int columns>
__device__ __forceinline__ void FromCountsInRegisters<S>::store(const detail::Arguments<S, Finish>& g,
                                                                const std::int32_t (&x)[rows][columns][4], std::int64_t l,
                                                                std::int64_t m, std::int64_t n, unsigned, unsigned char*,
                                                                int lane) const {
  const FromCountsInRegisters& result = *this;
  const auto store = [&]<Stored stored>() __attribute__((always_inline)) {
    if (result.vectors && g.m - m >= 16 * rows && g.n - n >= 8 * columns)
      store_from_registers<stored>(g, x, result, l, m, n, lane);
    else
      store_some<stored>(g, x, result, l, m, n, lane);
  };
  if constexpr (std::is_same_v<typename S::accumulator, std::int32_t>) {
    if (result.stored == Stored::counts) return store.template operator()<Stored::counts>();
    if (result.stored == Stored::float_multiples) return store.template operator()<Stored::float_multiples>();
    store.template operator()<Stored::multiples>();
  } else {
    store.template operator()<Stored::results>();
  }
}

/// Whether kernels of a Finish may have a C of 32-bit numbers without an epilogue.
template <class Finish>
inline constexpr bool stores_in_registers = std::is_same_v<Finish, detail::ProgramFinish>;
template <bool transposes>
inline constexpr bool stores_in_registers<detail::FunctorFinish<epilogue::Program, float, transposes>> = true;

/// How outputs are stored. A product of a count below 2^24 and a float is exact in double.
template <class S>
Stored stored_as(const Contraction& p) {
  constexpr std::int64_t exact_in_float = std::int64_t{1} << 24;
  if (p.c.column_stride != 1 || p.accumulate || !p.program) return Stored::otherwise;
  const epilogue::Program& program = *p.program;
  const std::int64_t bits = p.k * static_cast<std::int64_t>(8 * p.a.size);
  const auto results = [&](bool short_ones) {
    return p.c.type == Scalar::f32 && program.empty() && short_ones ? Stored::results : Stored::otherwise;
  };
  if constexpr (measures_truth<S>) {
    // Entries end in the last word, or there are more of them than bits.
    const double entries = p.semiring_in_view ? -1 : detail::semiring_of<S>(p).entries,
                 largest = std::max(entries, static_cast<double>(bits));
    constexpr auto most = static_cast<double>(short_divisor);
    return results(entries >= 0 && entries > static_cast<double>(bits) - 8. * static_cast<double>(p.a.size) &&
                   entries == std::floor(entries) && largest <= most && S::measure::largest_below(largest) <= most);
  } else if constexpr (!std::is_same_v<typename S::accumulator, std::int32_t>) {
    return results(bits <= short_divisor);
  }
  if (p.c.type == Scalar::i32 && program.empty()) return Stored::counts;
  const double factor = program.factor();
  if (p.c.type != Scalar::f32 || std::isnan(factor)) return Stored::otherwise;
  const bool is_float = static_cast<double>(static_cast<float>(factor)) == factor;
  return is_float && bits < exact_in_float ? Stored::float_multiples : Stored::multiples;
}
inline bool takes_vectors(const Operand& c) {
  constexpr std::int64_t width = 4;
  return reinterpret_cast<std::uintptr_t>(c.data) % 16 == 0 && c.row_stride % width == 0 && c.batch_stride % width == 0;
}

/// The semiring that a kernel computes: one of the zoo's on 32-bit words, whatever the operands' words are.
template <class S>
struct on_words {
  using type = S;
};
template <template <class> class S, class Word>
struct on_words<S<Word>> {
  using type = S<std::uint32_t>;
};

/// Bytes of an operand's counts.
inline std::size_t counts_bytes(const Lines& g) {
  return detail::aligned(static_cast<std::size_t>(matrices_of(*g.operand) * g.lines) * sizeof(std::int32_t));
}
inline std::size_t codes_workspace(const Product& p) {
  return workspace<false>(p) + counts_bytes(lines_of_a(p)) + counts_bytes(lines_of_b(p));
}

/// The pass over an operand whose codes are at `from`; neighbouring threads share a code, 16 bytes each.
inline Counting counting_of(const Lines& g, Source<std::uint32_t> from, std::int32_t* to) {
  constexpr int most = 8;  // a block per code
  const std::int64_t pieces = pitch_of(g.k, g.operand->size) * static_cast<std::int64_t>(g.operand->size) / 16;
  const int threads = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(pieces, 1) - 1));
  return {from, matrices_of(*g.operand), g.lines, static_cast<std::int32_t>(pieces), std::min(threads, most), to};
}

template <class S, class Shape, class Finish>
Status codes_support(const Contraction& p) {
  for (const Lines& g : {lines_of_a(p), lines_of_b(p)})
    if (counting_of(g, {}, nullptr).blocks() > max_grid)
      return {Decline::extents, "an operand has too many lines for one pass that counts their bits"};
  return supports<S, std::uint32_t, Shape, Decomposition{}, Finish>(p);
}

/// cost() of the product, the pass that counts, and the store.
template <class S, class Shape>
double codes_cost(const Contraction& p) {
  const bool vectors = takes_vectors(p.c) && stored_as<S>(p) != Stored::otherwise;
  double bytes = 0;
  for (const Lines& g : {lines_of_a(p), lines_of_b(p)}) bytes += static_cast<double>(packed_bytes(*g.operand, g.lines, g.k));
  return cost<Shape, 1, false>(p) + costs::codes_seconds(p, tile_of<Shape>(), bytes, vectors);
}

template <class S, class Shape, class Finish>
void run_codes(const KernelInfo& info, const Contraction& p, void* workspace) {
  using Counted = typename on_words<S>::type;
  constexpr auto size = static_cast<std::int64_t>(sizeof(typename S::element)), word = std::int64_t{4};
  tile::Raster raster{0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<Shape>(p))};
  auto tiles = static_cast<unsigned>(p.batch * raster.rows * raster.columns);
  if (tiles == 0) return;
  const cuda::Launches launches(p, info.name);
  auto* memory = static_cast<std::byte*>(workspace);
  tensor::Passes passes;
  // Strides are multiples of 16 bytes, those of packed operands and of operands that are read as they are.
  const auto source = [&](const Lines& g) {
    const Operand& o = *g.operand;
    if (direction_of(g, false))
      return Source<std::uint32_t>{static_cast<const std::uint32_t*>(o.data), o.batch_stride * size / word,
                                   g.line_stride * size / word};
    return packed_source<std::uint32_t>(g, memory, passes);
  };
  const auto counting = [&](const Lines& g, const Source<std::uint32_t>& from) {
    const Counting pass = counting_of(g, from, reinterpret_cast<std::int32_t*>(memory));
    memory += counts_bytes(g);
    return pass;
  };
  const Lines lines_a = lines_of_a(p), lines_b = lines_of_b(p);
  const Source<std::uint32_t> source_a = source(lines_a), source_b = source(lines_b);
  tensor::pack_operands(passes, launches);
  const Counting a = counting(lines_a, source_a), b = counting(lines_b, source_b);
  const dim3 grid(static_cast<unsigned>(std::max(a.blocks(), b.blocks())), 2);
  launches(count_lines<Counting::block>, grid, Counting::block, 0, a, b);

  Operands<std::uint32_t> operands{source_a, source_b, static_cast<int>((p.k * size + word - 1) / word)};
  const LineCounts of_a{a.to, a.matrices > 1 ? a.lines : 0}, of_b{b.to, b.matrices > 1 ? b.lines : 0};
  auto arguments = detail::arguments_of<Counted, Finish>(p);
  const auto launch = [&]<class Result>(Result result) {
    constexpr int bytes = shared_bytes<Shape, std::int32_t>;
    static cuda::LaunchFacts facts;
    const auto function = reinterpret_cast<const void*>(
        &multiply<Counted, std::uint32_t, Decomposition{}, Finish, Shape, Direction::along_k, Direction::along_k, Result>);
    facts.find(function, bytes, launches);
    void* list[] = {&operands, &arguments, &result, &raster, &tiles};
    launch_tiles<Shape>(function, tiles, bytes, list, p, facts.waits(p.execution.device), launches);
  };
  if constexpr (stores_in_registers<Finish>) {
    if (const Stored stored = stored_as<Counted>(p); stored != Stored::otherwise) {
      double number = p.program->factor();
      if constexpr (measures_truth<S>) number = arguments.one_semiring.entries;
      return launch(FromCountsInRegisters<Counted>{{}, of_a, of_b, stored, takes_vectors(p.c), number});
    }
  }
  launch(FromCounts<Counted>{{}, of_a, of_b});
}

template <class S, class Shape, class Finish = detail::ProgramFinish>
Kernel<Contraction> codes_kernel() {
  constexpr int depth = 128 / static_cast<int>(sizeof(typename S::element));
  Kernel<Contraction> k;
  k.info = info_of_tile<S, Shape>("cuda.mma", Precision::accumulator, depth);
  k.info.shared_memory = shared_bytes<Shape, std::int32_t>;
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.transposes = Transposes::with_same_bits;
  k.supports = detail::supports_by<codes_support<S, Shape, Finish>>;
  k.cost = detail::cost_by<codes_cost<S, Shape>>;
  k.workspace = detail::workspace_by<codes_workspace>;
  k.run = detail::run_by<run_codes<S, Shape, Finish>>;
  return k;
}

/// The kernels of a semiring of codes, the largest tile first.
template <class S>
std::vector<Kernel<Contraction>> codes_kernels() {
  return {codes_kernel<S, Shape<2, 4, 64, 64, 3, 1>>(), codes_kernel<S, Shape<2, 2, 64, 64, 3, 2>>(),
          codes_kernel<S, Shape<2, 2, 64, 32, 3, 2>>(), codes_kernel<S, Shape<2, 2, 32, 32, 3, 3>>()};
}

/// The kernels for measures of Boolean rows, which are instantiated in the user's translation unit: few tiles, since it compiles them all.
template <class S, class Finish>
void add_functor_codes(std::vector<Kernel<Contraction>>& list) {
  if constexpr (measures_truth<S> && is_commutative<S>) {
    list.push_back(codes_kernel<S, Shape<2, 2, 64, 64, 3, 2>, Finish>());
    list.push_back(codes_kernel<S, Shape<2, 2, 32, 32, 3, 3>, Finish>());
  }
}

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums that one instruction computes for several neighbours along K: of differences of bytes, and of 16-bit floats if the
// caller allows terms in the operands' own precision. A pass packs both operands into the workspace as words of neighbours
// along K, whatever their strides, alignment and K; then the tiles of contract.hpp work on words. The pass reads and writes
// (M + N)·K elements, compared with M·N·K pairs. An operand that has such words as it is needs no pass.
#pragma once

#include <rigel/backends/cuda/arch/bytes.hpp>
#include <rigel/backends/cuda/simt/contract.hpp>
#include <rigel/backends/cuda/tile/words.hpp>
#include <rigel/detail/workspace.hpp>

namespace rigel::backends::simt {

/// Σ |a − b| or Σ (a − b)² of unsigned bytes, four at a time. Differences are below 256, so their squares are products of
/// bytes.
template <bool squares>
class ByteSums : public PlainSteps {
 public:
  using Semiring = l1<std::int32_t>;  // on words; what the tiles are told
  using Accumulator = std::int32_t;
  using Operand = std::int32_t;
  static constexpr double work = squares ? 0.66 : 0.55;  // of a step, relative to l1 of integers, measured on sm_90

  __device__ __forceinline__ ByteSums(const Semiring&, const Parameters&, Table&, int, int) {}

  __device__ __forceinline__ std::int32_t operator()(std::int32_t x, std::int32_t a, std::int32_t b, std::int64_t) const {
    if constexpr (squares) {
      const std::uint32_t d = arch::byte_distances(a, b);
      return arch::add_byte_products(x, d, d);
    } else {
      return arch::add_byte_distances(x, a, b);
    }
  }
};

/// Σ |a − b| of halves in pairs: four words are summed in halves, then in float. The relative error of such a partial sum, of a
/// difference and three additions, is at most 4u / (1 − 4u), u = 2^-11. Σ (a − b)² has none: squares of halves underflow, and those of
/// bfloat16 are faster on tensor cores. Nor has Σ |a − b| of bfloat16, whose addition does not take absolute values.
class PairSums : public PlainSteps {
 public:
  using Semiring = l1<float>;
  using Accumulator = float;
  using Operand = float;  // its bits are a pair
  static constexpr int chunk = 4;
  static constexpr double roundings = 4 * 0x1p-11;
  static constexpr double constant = roundings / (1 - roundings) * 0x1p24 + 2;  // in units of 2^-24, float's own too
  static constexpr double work = 1.4;

  __device__ __forceinline__ PairSums(const Semiring&, const Parameters&, Table&, int, int) {}

  template <int count>
  __device__ __forceinline__ float operator()(float x, const float (&a)[count], const float (&b)[count]) const {
    using Pair = pair_t<half>;
    Pair sum;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Pair d = __builtin_bit_cast(Pair, a[i]) - __builtin_bit_cast(Pair, b[i]);
      sum = i == 0 ? __builtin_elementwise_abs(d) : sum + __builtin_elementwise_abs(d);
    }
    return math::add(x, math::add(static_cast<float>(sum[0]), static_cast<float>(sum[1])));
  }
};

/// The steps that sum a semiring by words; `void` if it has none.
template <class S>
constexpr auto word_steps() {
  constexpr bool of_bytes = sizeof(typename S::element) == 1;
  if constexpr (of_bytes && std::is_same_v<S, l1<typename S::element>>)
    return std::type_identity<ByteSums<false>>{};
  else if constexpr (of_bytes && std::is_same_v<S, l2_squared<typename S::element>>)
    return std::type_identity<ByteSums<true>>{};
  else
    return std::type_identity<std::conditional_t<std::is_same_v<S, l1<half>>, PairSums, void>>{};
}
template <class S> using WordSteps = typename decltype(word_steps<S>())::type;

/// The small tile of ByteSums, and the one of PairSums, in outputs and words.
using SmallWordsTile = tile::Shape<8, 8, 8, 8, 8, 6, true, tile::Role::words>;
using PairTile = tile::Shape<16, 8, 8, 8, 8, 2, false>;

/// An operand, and the words that it becomes: K-major, `pitch` words per row or column, zeros after the last element. `blocks` pack it.
struct ToWords {
  const void* from;
  std::int64_t batch_stride, line_stride, k_stride, lines, blocks;
  std::uint32_t* to;
};
/// Rows or columns, and words of each, that a block packs.
inline constexpr int packed_lines = 64, packed_words = 32;
inline std::int64_t packing_blocks(std::int64_t matrices, std::int64_t lines, std::int64_t pitch) {
  return matrices * ((lines + packed_lines - 1) / packed_lines) * ((pitch + packed_words - 1) / packed_words);
}

/// Words pass through shared memory, so that neighbouring threads read neighbours in memory, whatever the layout, and write neighbours.
/// `flip` is added to each word without carries: 128 in each byte makes signed bytes unsigned and keeps their differences.
template <class Bits, unsigned flip>
__global__ void __launch_bounds__(256)
    pack_words(const __grid_constant__ ToWords a, const __grid_constant__ ToWords b, std::int64_t k, int pitch) {
  constexpr int values = 4 / sizeof(Bits), threads = 256;
  __shared__ std::uint32_t words[packed_lines][packed_words + 1];
  const ToWords& g = blockIdx.y == 0 ? a : b;
  if (blockIdx.x >= g.blocks) return;
  const auto across = static_cast<unsigned>(pitch + packed_words - 1) / packed_words;
  const auto down = static_cast<unsigned>((g.lines + packed_lines - 1) / packed_lines);
  const int first_word = static_cast<int>(blockIdx.x % across * packed_words);
  const std::int64_t batch = blockIdx.x / across / down,
                     first_line = std::int64_t{blockIdx.x / across % down} * packed_lines;
  const int lines = static_cast<int>(std::min<std::int64_t>(g.lines - first_line, packed_lines));
  const Bits* const from = static_cast<const Bits*>(g.from) + batch * g.batch_stride + first_line * g.line_stride;
  const std::int64_t first_k = values * std::int64_t{first_word};
  tile::load_words<threads>(
      words, tile::Elements<Bits>{from + first_k * g.k_stride, g.line_stride, g.k_stride, lines, k - first_k});
  __syncthreads();
  std::uint32_t* const to = g.to + (batch * g.lines + first_line) * pitch + first_word;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < packed_lines * packed_words; i += threads) {
    const int line = i / packed_words, word = i % packed_words;
    if (line < lines && first_word + word < pitch) to[std::int64_t{line} * pitch + word] = words[line][word] ^ flip;
  }
}

/// The semiring on words that the tiles are told to compute.
template <class S> using WordSemiring = typename WordSteps<S>::Semiring;

/// Elements in a word.
template <class S> inline constexpr int in_word = 4 / static_cast<int>(sizeof(typename S::element));

/// Words along K, in whole slabs.
template <class S, class Shape>
std::int64_t word_pitch(std::int64_t k) {
  constexpr std::int64_t slab = in_word<S> * Shape::depth;
  return (k + slab - 1) / slab * Shape::depth;
}

/// What is added to each word: 128 in each signed byte.
template <class S> inline constexpr unsigned flip_of = std::is_same_v<typename S::element, std::int8_t> ? 0x80808080 : 0;

/// Whether an operand has its words as it is: K-major and aligned, in whole slabs, and nothing to add.
template <class S, class Shape>
bool has_words(const Lines& o) {
  return flip_of<S> == 0 && o.k % (in_word<S> * Shape::depth) == 0 && way_of<S, Shape>(o) == tile::Way::along_k;
}

/// Bytes of the workspace that an operand's words take.
template <class S, class Shape>
std::size_t bytes_of_words(const Lines& o) {
  if (has_words<S, Shape>(o)) return 0;
  return detail::aligned(static_cast<std::size_t>(4 * matrices_of(*o.operand) * o.lines * word_pitch<S, Shape>(o.k)));
}

/// The problem on words. The workspace holds those of both operands, one after the other.
template <class S, class Shape>
Contraction on_words(const Contraction& p, void* workspace) {
  const std::int64_t pitch = word_pitch<S, Shape>(p.k);
  const auto operand = [&](const Lines& o, std::size_t first, bool by_rows) {
    const bool as_it_is = has_words<S, Shape>(o);
    const std::int64_t stride = as_it_is ? o.line_stride / in_word<S> : pitch;
    Operand words;
    words.data = as_it_is ? o.operand->data : static_cast<std::byte*>(workspace) + first;
    words.type = scalar_of<typename WordSemiring<S>::element>;
    words.size = 4;
    words.batches = o.operand->batches;
    words.batch_stride = matrices_of(*o.operand) == 1 ? 0
                         : as_it_is                   ? o.operand->batch_stride / in_word<S>
                                                      : o.lines * pitch;
    words.rows = by_rows ? o.lines : pitch;
    words.columns = by_rows ? pitch : o.lines;
    words.row_stride = by_rows ? stride : 1;
    words.column_stride = by_rows ? 1 : stride;
    return words;
  };
  Contraction q = p;
  q.k = pitch;
  q.a = operand(lines_of_a(p), 0, true);
  q.b = operand(lines_of_b(p), bytes_of_words<S, Shape>(lines_of_a(p)), false);
  return q;
}

template <class S, class Shape>
std::size_t words_workspace(const Product& p) {
  return bytes_of_words<S, Shape>(lines_of_a(p)) + bytes_of_words<S, Shape>(lines_of_b(p));
}

template <class S, class Shape>
Status words_supports(const Contraction& p) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const std::int64_t pitch = word_pitch<S, Shape>(p.k);
  if (pitch > most - Shape::depth) return {Decline::extents, "K has more than 2^31 - 1 words of values"};
  for (const Operand* o : {&p.a, &p.b})
    if (packing_blocks(matrices_of(*o), o == &p.a ? p.m : p.n, pitch) > max_grid)
      return {Decline::extents, "packing an operand takes more than 2^31 - 1 blocks"};
  return supports<WordSemiring<S>, detail::ProgramFinish, Shape>(p);
}

template <class S, class Shape>
double words_cost(const Contraction& p) {
  using Words = WordSemiring<S>;
  const auto packing = [](const Lines& o) {
    return costs::Packing{static_cast<double>(bytes_of_words<S, Shape>(o)), o.k_stride < o.line_stride};
  };
  const Contraction q = on_words<S, Shape>(p, nullptr);
  return costs::words_seconds(p, q, semiring_facts<Words>, tile_facts<Words, Shape>, tile_call<Words, Shape>(q),
                              WordSteps<S>::work, packing(lines_of_a(p)), packing(lines_of_b(p)));
}

template <class S, class Shape>
void words_run(const KernelInfo& info, const Contraction& p, void* workspace) {
  using tile::Way;
  using Words = WordSemiring<S>;
  const Contraction q = on_words<S, Shape>(p, workspace);
  const auto packing = [&](const Lines& o, void* to) {
    const std::int64_t blocks = has_words<S, Shape>(o) ? 0 : packing_blocks(matrices_of(*o.operand), o.lines, q.k);
    return ToWords{o.operand->data, o.operand->batch_stride,        o.line_stride, o.k_stride, o.lines,
                   blocks,          static_cast<std::uint32_t*>(to)};
  };
  const ToWords a = packing(lines_of_a(p), q.a.data), b = packing(lines_of_b(p), q.b.data);
  if (const std::int64_t blocks = std::max(a.blocks, b.blocks); blocks > 0) {
    using Bits = std::conditional_t<sizeof(typename S::element) == 1, std::uint8_t, std::uint16_t>;
    cuda::Launches(p, info.name)(pack_words<Bits, flip_of<S>>, dim3(static_cast<unsigned>(blocks), 2), 256, 0, a, b, p.k,
                                 static_cast<int>(q.k));
  }
  launch_tiles(info, q,
               reinterpret_cast<const void*>(
                   &contract<Words, detail::ProgramFinish, Shape, WordSteps<S>, Way::along_k, Way::along_k>),
               raster_of<Words, Shape>(q), Shape::threads, detail::arguments_of<Words, detail::ProgramFinish>(q),
               NoParameters{});
}

template <class S, class Shape>
Kernel<Contraction> words_kernel() {
  Kernel<Contraction> k;
  k.info = tile_info<S, Shape>("words", in_word<S>);
  k.info.stages = 3;
  k.info.shared_memory = TileSum<WordSemiring<S>, Shape, WordSteps<S>, tile::Way::along_k, tile::Way::along_k>::bytes;
  k.supports = detail::supports_by<words_supports<S, Shape>>;
  k.cost = detail::cost_by<words_cost<S, Shape>>;
  k.workspace = detail::workspace_by<words_workspace<S, Shape>>;
  k.run = detail::run_by<words_run<S, Shape>>;
  return k;
}

/// Adds the kernels on words of a semiring that has them.
template <class S>
void add_words_kernels(std::vector<Kernel<Contraction>>& list) {
  using Steps = WordSteps<S>;
  if constexpr (std::is_same_v<Steps, void>) {
    return;
  } else if constexpr (sizeof(typename S::element) == 1) {
    list.push_back(words_kernel<S, LargeTile<WordSemiring<S>>>());
    list.push_back(words_kernel<S, SmallWordsTile>());
  } else {
    Kernel<Contraction> k = words_kernel<S, PairTile>();
    k.info.precision = Precision::operands;
    k.info.promises = Promise::repeatable | Promise::batch_invariant;
    k.info.bit_class = "cuda.simt.words";
    k.info.accuracy = {Steps::constant, 1};
    list.push_back(k);
  }
}

}  // namespace rigel::backends::simt

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What infinities decide of marked outputs. log Σ exp(a + b) is NaN if +∞ meets −∞ anywhere, else +∞ if an operand has it, and −∞ if
// there is no k at which neither is −∞. Where a and b are infinite takes two bits for each k, which 64 lines of either operand
// share: a thirtieth of the time of sums.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/mma/log_sums.hpp>

namespace rigel::backends::mma {

/// A thread's share of reading slabs of 64 lines (rows of A, columns of B) × 32 k; neighbouring threads read neighbours in
/// memory. What does not exist is −∞.
template <class T, int threads>
class Loader {
 public:
  static constexpr int lines = Marks::edge, depth = 32, each = lines * depth / threads;

  __device__ __forceinline__ Loader(const T* first, std::int64_t line_stride, std::int64_t k_stride, std::int64_t lines_left)
      : along_k_(k_stride <= line_stride),
        from_(first + line() * line_stride + k() * k_stride),
        k_stride_(k_stride),
        apart_(along_k_ ? threads / depth * line_stride : threads / lines * k_stride),
        left_(static_cast<int>(std::min<std::int64_t>(lines_left, lines))) {}

  /// Reads the slab from k0 on.
  __device__ __forceinline__ void operator()(T (&x)[each], int k0, int all_k) const {
    // How many of this thread's numbers exist.
    const int lines_left = left_ - static_cast<int>(line()), k_left = all_k - k0 - static_cast<int>(k()),
              apart = threads / (along_k_ ? depth : lines),
              count = lines_left <= 0 || k_left <= 0 ? 0 : ((along_k_ ? lines_left : k_left) + apart - 1) / apart;
    const T* from = from_ + k0 * k_stride_;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      x[i] = i < count ? *from : -infinity<T>();
      from += apart_;
    }
  }
  /// visit(i, line, k) for every number i of the thread's share, with its place in the slab.
  template <class Visit>
  __device__ __forceinline__ void for_each(const Visit& visit) const {
    const unsigned first_line = line(), first_k = k();
    if (along_k_)
#pragma unroll
      for (int i = 0; i < each; ++i) visit(i, first_line + threads / depth * i, first_k);
    else
#pragma unroll
      for (int i = 0; i < each; ++i) visit(i, first_line, first_k + threads / lines * i);
  }

  /// Whether neighbouring threads have neighbours along K of a line: thread t has k = t mod `depth`. Otherwise they have lines, and
  /// thread t has `each` k of one, from t / `lines` on.
  __device__ __forceinline__ bool along_k() const { return along_k_; }

 private:
  // Recomputed in each slab: values derived from them would take too many registers.
  __device__ __forceinline__ unsigned line() const {
    return along_k_ ? arch::thread_index() / depth : arch::thread_index() % lines;
  }
  __device__ __forceinline__ unsigned k() const {
    return along_k_ ? arch::thread_index() % depth : arch::thread_index() / lines;
  }

  bool along_k_;
  const T* from_;
  std::int64_t k_stride_, apart_;
  int left_;
};

/// The work on a cell of 64 × 64 outputs by all threads of a block.
template <class T, int threads>
class InfiniteTerms {
  static constexpr int edge = Marks::edge, depth = Loader<T, threads>::depth, each = Loader<T, threads>::each;
  static constexpr int threads_n = 16, outputs = edge / threads_n;  // of a row; of a thread along m and n
  static_assert(threads == threads_n * threads_n && depth == 32 && each == 8);

 public:
  using Load = Loader<T, threads>;

  /// Where numbers of a line are +∞, and where −∞ (or do not exist): for each k of a slab, a bit.
  struct Words {
    std::uint32_t most, least;
  };
  struct Storage {
    Words of[2][edge];
  };
  /// Which lines have +∞ as their maximum, and which have −∞: a bit each.
  struct Facts {
    std::uint32_t infinite[2][edge / 32], has_least[2][edge / 32];

    /// The first 2·edge threads set them: each of A's rows, then B's columns.
    template <class Line>
    __device__ __forceinline__ void set(unsigned thread, const Line& x) {
      const unsigned all_infinite = __ballot_sync(~0u, x.maximum == infinity<T>()),
                     all_least = __ballot_sync(~0u, x.has_least());
      if (thread % 32 != 0) return;
      infinite[thread / edge][thread % edge / 32] = all_infinite;
      has_least[thread / edge][thread % edge / 32] = all_least;
    }
    __device__ __forceinline__ bool is_infinite(int o, unsigned line) const { return is_set(infinite[o], line); }
    __device__ __forceinline__ bool is_least(int o, unsigned line) const { return is_set(has_least[o], line); }

   private:
    __device__ __forceinline__ static bool is_set(const std::uint32_t (&words)[edge / 32], unsigned line) {
      return (words[line / 32] >> line % 32 & 1) != 0;
    }
  };

  /// Calls decided(row, column, value) for outputs of the cell for which wanted(row, column) and that infinities decide. All threads of
  /// the block call it.
  template <class Wanted, class Decided>
  __device__ __forceinline__ static void find(const Load (&load)[2], int all_k, Storage& shared, const Facts& facts,
                                              const Wanted& wanted, const Decided& decided) {
    const unsigned row = arch::thread_index() / threads_n, column = arch::thread_index() % threads_n;
    // Bits of those outputs. Of infinite ones −∞ and +∞ are wanted at one k, of others two numbers that are not −∞.
    unsigned asked = 0, infinite = 0;
    std::uint32_t of_infinite_row[outputs], of_infinite_column[outputs];
#pragma unroll
    for (int i = 0; i < outputs; ++i) {
      of_infinite_row[i] = facts.is_infinite(0, row + threads_n * i) ? ~0u : 0;
      of_infinite_column[i] = facts.is_infinite(1, column + threads_n * i) ? ~0u : 0;
    }
    std::uint32_t met[outputs][outputs];
#pragma unroll
    for (int i = 0; i < outputs; ++i)
#pragma unroll
      for (int j = 0; j < outputs; ++j) {
        const unsigned m = row + threads_n * i, n = column + threads_n * j, bit = 1u << (outputs * i + j);
        const bool is_infinite = (of_infinite_row[i] | of_infinite_column[j]) != 0;
        const bool asks = wanted(m, n) && (is_infinite || (facts.is_least(0, m) && facts.is_least(1, n)));
        asked |= asks ? bit : 0;
        infinite |= is_infinite ? bit : 0;
        met[i][j] = asks ? 0 : ~0u;
      }
    T x[2][each];
    bool open = asked != 0;
    if (__syncthreads_or(open) == 0) return;
#pragma unroll
    for (int o = 0; o < 2; ++o) load[o](x[o], 0, all_k);
#pragma unroll 1
    for (int k0 = 0; k0 < all_k; k0 += depth) {
#pragma unroll
      for (int o = 0; o < 2; ++o) stage(load[o], x[o], shared.of[o]);
      __syncthreads();
#pragma unroll
      for (int o = 0; o < 2; ++o) load[o](x[o], k0 + depth, all_k);
      Words b[outputs];
#pragma unroll
      for (int j = 0; j < outputs; ++j) b[j] = shared.of[1][column + threads_n * j];
#pragma unroll
      for (int i = 0; i < outputs; ++i) {
        const Words a = shared.of[0][row + threads_n * i];
#pragma unroll
        for (int j = 0; j < outputs; ++j)
          met[i][j] |= (a.most & b[j].least) | (a.least & b[j].most) |
                       ~(a.least | of_infinite_row[i] | b[j].least | of_infinite_column[j]);
      }
      std::uint32_t fewest = ~0u;
#pragma unroll
      for (int i = 0; i < outputs; ++i)
#pragma unroll
        for (int j = 0; j < outputs; ++j) fewest = min(fewest, met[i][j]);
      open = fewest == 0;
      if (__syncthreads_or(open) == 0) break;
    }
    unsigned together = 0;
#pragma unroll
    for (int i = 0; i < outputs; ++i)
#pragma unroll
      for (int j = 0; j < outputs; ++j) together |= static_cast<unsigned>(met[i][j] != 0) << (outputs * i + j);
    // One copy of what decided() does.
#pragma unroll 1
    for (unsigned left = asked & (infinite | ~together); left != 0; left &= left - 1) {
      const unsigned bit = left & (0 - left), which = static_cast<unsigned>(__ffs(static_cast<int>(left))) - 1;
      const T value = (infinite & bit) == 0   ? -infinity<T>()
                      : (together & bit) != 0 ? std::numeric_limits<T>::quiet_NaN()
                                              : infinity<T>();
      decided(row + threads_n * (which / outputs), column + threads_n * (which % outputs), value);
    }
  }

 private:
  /// Bit 8q + i of a word is k = q + 4i of the slab, whichever way the operand is read.
  __device__ __forceinline__ static void stage(const Load& load, const T (&x)[each], Words (&to)[edge]) {
    const unsigned thread = arch::thread_index(), lane = thread % 32;
    unsigned most = 0, least = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      most |= static_cast<unsigned>(x[i] == infinity<T>()) << i;
      least |= static_cast<unsigned>(x[i] == -infinity<T>()) << i;
    }
    if (load.along_k()) {
      // Eight lines, of each of which the lanes have one k.
      const unsigned both = __shfl_sync(~0u, most | least << each, static_cast<int>(lane / 8 + lane % 8 * 4));
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const Words words{__ballot_sync(~0u, both >> i & 1), __ballot_sync(~0u, both >> (each + i) & 1)};
        if (lane == 0) to[thread / depth + threads / depth * i] = words;
      }
    } else {
      auto* const bytes = reinterpret_cast<std::uint8_t*>(&to[thread % edge]) + thread / edge;
      bytes[0] = static_cast<std::uint8_t>(most);
      bytes[sizeof(std::uint32_t)] = static_cast<std::uint8_t>(least);
    }
  }
};

}  // namespace rigel::backends::mma

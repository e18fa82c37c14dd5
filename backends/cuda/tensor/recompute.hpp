// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recomputes sums of products of floats on CUDA cores where tensor cores found no finite number: a part of a cut operand may be
// infinite or NaN, or a partial sum too large, while the sum itself is not. Each such sum is one chain of fma in ascending k, as
// cuda.simt computes it, so its bits depend on its row and column alone.
//
// A team, a warp or the four warps of a warpgroup one above the other, recomputes some rows and columns of its outputs at a time, as a
// small product: some numbers along K of each row and column pass through shared memory, k after k, while the next ones are loaded. A lane
// sums 4 × 8 outputs, say, for which it reads 12 numbers for each k; 2 × 16, which tensor cores leave it, would be 18. In the end sums
// pass through shared memory to the lanes that have them.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/arch/named_barrier.hpp>
#include <rigel/backends/cuda/tensor/store.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>
#include <rigel/backends/cuda/tile/slab.hpp>
#include <rigel/detail/arguments.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rigel::backends::tensor {

/// The warps that recompute together, one above the other. `barrier`: the number of the block's barrier at which four wait.
template <int Warps>
struct Team {
  static constexpr int warps = Warps, threads = 32 * Warps;
  int warp, barrier;

  __device__ __forceinline__ void wait() const {
    if constexpr (warps == 1)
      __syncwarp();
    else
      arch::wait_at<threads>(barrier);
  }
  /// Whether `x` holds for all threads, which wait for each other.
  __device__ __forceinline__ bool all(bool x) const {
    if constexpr (warps == 1)
      return __all_sync(~0u, x);
    else
      return arch::all_at<threads>(barrier, x);
  }
};

/// How a team of `warps`, whose warps have [rows][columns] blocks of 16 × 8 sums each, recomputes them: [tall][wide] blocks of each warp
/// at a time, at most `most` sums of a lane, as registers allow. Warps of a team have one block above the other in a part.
template <int warps, int rows, int columns, int most>
struct RecomputedPart {
  static constexpr int tall = warps == 1 && most >= 32 ? std::min(rows, 2) : 1, wide = std::min(columns, most / (4 * tall));
  static constexpr int parts_n = columns / wide, parts = rows / tall * parts_n;
  static_assert(rows % tall == 0 && columns % wide == 0);

  /// Sums of a lane: `of_m` neighbouring rows, and columns in chunks of neighbours, `columns_of_chunks` from one chunk to the next. Shared
  /// memory gives a lane a number in the time of 32 sums of the multiprocessor's four.
  static constexpr int of_m = tall * wide >= 16 ? 8 : tall * wide >= 4 ? 4 : 2, of_n = 4 * tall * wide / of_m;
  static constexpr int chunk_m = std::min(of_m, 4), chunk = std::min(of_n, 4);
  static constexpr int lanes_n = 8 * wide / of_n, columns_of_chunks = lanes_n * chunk;

  static constexpr int m = 16 * tall * warps, n = 8 * wide, depth = warps == 1 ? 4 : 8;
  static constexpr int threads = 32 * warps;
};

/// Lines of an operand, rows of A or columns of B, of which a team brings `depth` numbers along K at a time to shared memory.
template <int lines, int depth, int threads>
class LinesOfSlab {
 public:
  /// From one k to the next in shared memory: neither way to store has bank conflicts.
  static constexpr int pitch = lines == 8 ? 8 : lines + 32 / depth;

  __device__ __forceinline__ LinesOfSlab(const float* data, std::int64_t line_stride, std::int64_t k_stride, int thread)
      : along_k_(k_stride <= line_stride), k_stride_(k_stride) {
    const int line = along_k_ ? thread / depth : thread % at_once, own = along_k_ ? thread % depth : thread / at_once;
    step_ = along_k_ ? line_step * line_stride : k_step * k_stride;
    data_ = data + line * line_stride + own * k_stride;
    place_ = own * pitch + line;
  }
  /// Loads the next `depth` numbers.
  __device__ __forceinline__ void load() {
    const float* from = data_;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      numbers_[i] = __ldg(from);
      from = later(from, step_);
    }
    data_ += depth * k_stride_;
  }
  /// The same where `last` lines and `left` numbers of each exist; 0 for those that do not.
  __device__ __forceinline__ void load(int last, int left) {
    const float* from = data_;
    const int line = place_ % pitch, own = place_ / pitch;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const bool exists = along_k_ ? line + i * line_step < last && own < left : line < last && own + i * k_step < left;
      numbers_[i] = exists ? __ldg(from) : 0;
      from = later(from, step_);
    }
    data_ += depth * k_stride_;
  }
  /// Stores them, k after k.
  __device__ __forceinline__ void store(float* slab) const {
    if (along_k_) {
#pragma unroll
      for (int i = 0; i < count; ++i) slab[place_ + i * line_step] = numbers_[i];
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) slab[place_ + i * k_step * pitch] = numbers_[i];
    }
  }

 private:
  /// from + step, added when it is needed: multiples of the step would take registers for the whole loop.
  __device__ __forceinline__ static const float* later(const float* from, std::int64_t step) {
    asm volatile("" : "+l"(from));
    return from + step;
  }

  static constexpr int count = lines * depth / threads;     // numbers of a thread
  static constexpr int at_once = std::min(lines, threads);  // lines, if neighbouring threads take different ones
  static constexpr int line_step = threads / depth, k_step = threads / at_once;  // from one of its numbers to the next
  const bool along_k_;                                                           // whether they take neighbours along K
  const float* data_;
  const std::int64_t k_stride_;
  std::int64_t step_;
  int place_;
  float numbers_[count];
};

/// Shared memory of a team, in floats: a slab; or, for each warp, the sums of a column of blocks.
template <class Part>
struct RecomputeBuffer {
  static constexpr int pitch_a = LinesOfSlab<Part::m, Part::depth, Part::threads>::pitch;
  static constexpr int pitch_b = LinesOfSlab<Part::n, Part::depth, Part::threads>::pitch;
  static constexpr int slab = Part::depth * (pitch_a + pitch_b), sums = Part::tall * 16 * 8;
};

/// sums = Σ_k A(l, m + …, k)·B(l, k, n + …), one chain each, for a team's rows from m and columns from n on: a lane's are laid out as Part
/// says. C(l, m, n) exists; rows and columns outside of C get 0.
template <class Part, class Team, class S, class Finish>
__device__ __forceinline__ void sum_chains(const detail::Arguments<S, Finish>& g, float (&sums)[Part::of_m][Part::of_n],
                                           std::int64_t l, std::int64_t m, std::int64_t n, float* buffer, Team team) {
  using Buffer = RecomputeBuffer<Part>;
  const auto last_k = static_cast<int>(g.k);
  const int lane = arch::lane_index(), thread = team.warp * 32 + lane;
  LinesOfSlab<Part::m, Part::depth, Part::threads> a(&g.a.at(l, m, 0), g.a.row, g.a.column, thread);
  LinesOfSlab<Part::n, Part::depth, Part::threads> b(&g.b.at(l, 0, n), g.b.column, g.b.row, thread);
  // How many lines exist, in one register.
  constexpr int whole = Part::m * 256 + Part::n;
  const int lines = static_cast<int>(g.m - m < Part::m ? g.m - m : Part::m) * 256 +
                    static_cast<int>(g.n - n < Part::n ? g.n - n : Part::n);
  const auto load = [&](int left) __attribute__((always_inline)) {
    if (lines == whole && left >= Part::depth) {
      a.load();
      b.load();
    } else {
      a.load(lines / 256, left);
      b.load(lines % 256, left);
    }
  };
  float* const slab_b = buffer + Part::depth * Buffer::pitch_a;
  const float* const own_a = buffer + team.warp * 16 * Part::tall + lane / Part::lanes_n * Part::of_m;
  const float* const own_b = slab_b + lane % Part::lanes_n * Part::chunk;
  load(last_k);
#pragma unroll 1
  for (int left = last_k; left > 0;) {
    team.wait();
    a.store(buffer);
    b.store(slab_b);
    team.wait();
    left -= Part::depth;
    load(left);
#pragma unroll
    for (int step = 0; step < Part::depth; ++step) {
      using OfA = tile::Chunk<float, Part::chunk_m>;
      using OfB = tile::Chunk<float, Part::chunk>;
      OfA x[Part::of_m / Part::chunk_m];
#pragma unroll
      for (int i = 0; i < Part::of_m; i += Part::chunk_m)
        x[i / Part::chunk_m] = OfA::load(own_a + step * Buffer::pitch_a + i);
#pragma unroll
      for (int first = 0; first < Part::of_n; first += Part::chunk) {
        const OfB y = OfB::load(own_b + step * Buffer::pitch_b + first * Part::lanes_n);
#pragma unroll
        for (int j = 0; j < Part::chunk; ++j)
#pragma unroll
          for (int i = 0; i < Part::of_m; ++i)
            sums[i][first + j] = math::fma(x[i / Part::chunk_m].value[i % Part::chunk_m], y.value[j], sums[i][first + j]);
      }
    }
  }
}

/// The sums of a warp's `block`-th column of blocks, from where sum_chains() leaves them to arch::Mma's layout, through `buffer` of the
/// warp's own.
template <class Part, int block>
__device__ __forceinline__ void exchange(const float (&from)[Part::of_m][Part::of_n], float (&to)[Part::tall][4],
                                         float* buffer, int lane) {
  constexpr int per_chunk = Part::columns_of_chunks / 8, first = block / per_chunk * Part::chunk;
  using OfB = tile::Chunk<float, Part::chunk>;
  using Two = tile::Chunk<float, 2>;
  const int column = lane % Part::lanes_n * Part::chunk;  // in the chunk
  __syncwarp();
  if (column / 8 == block % per_chunk) {
#pragma unroll
    for (int i = 0; i < Part::of_m; ++i) {
      OfB x;
#pragma unroll
      for (int j = 0; j < Part::chunk; ++j) x.value[j] = from[i][first + j];
      x.store(buffer + (lane / Part::lanes_n * Part::of_m + i) * 8 + column % 8);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < Part::tall; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Two x = Two::load(buffer + (16 * i + 8 * half + lane / 4) * 8 + lane % 4 * 2);
      to[i][2 * half] = x.value[0];
      to[i][2 * half + 1] = x.value[1];
    }
}

/// Whether all of a lane's sums in [tall][wide] blocks from [top][left] on are finite.
template <int top, int left, int tall, int wide, int rows, int columns>
__device__ __forceinline__ bool are_finite(const float (&x)[rows][columns][4]) {
  float nothing = 0;  // or NaN
#pragma unroll
  for (int i = top; i < top + tall; ++i)
#pragma unroll
    for (int j = left; j < left + wide; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) nothing = math::fma(x[i][j][r], 0.f, nothing);
  return nothing == 0;
}

/// use.operator()<p>() for p from 0 to count - 1.
template <int count, int p = 0, class Use>
__device__ __forceinline__ void for_each_part(const Use& use) {
  if constexpr (p < count) {
    use.template operator()<p>();
    for_each_part<count, p + 1>(use);
  }
}

/// Recomputes those of a team's sums that are not finite. x[i][j] are a warp's of rows `apart`·i and columns 8·j on, as arch::Mma has
/// them. `origin()` finds the team's first output; a lane has no registers to keep it. `buffer` is of the team, with `of_warp` floats for each warp, which nobody else uses after this.
template <int apart, int most, int of_warp, class Team, class FindOrigin, class S, class Finish, int rows, int columns>
__device__ __forceinline__ void recompute_non_finite(const detail::Arguments<S, Finish>& g, float (&x)[rows][columns][4],
                                                     const FindOrigin& origin, float* buffer, Team team) {
  using Part = RecomputedPart<Team::warps, rows, columns, most>;
  static_assert(RecomputeBuffer<Part>::slab <= Team::warps * of_warp && RecomputeBuffer<Part>::sums <= of_warp);
  static_assert(Part::tall == 1 || apart == 16);  // a part's rows are neighbours
  constexpr int tall = Part::tall, wide = Part::wide;
  if (team.all(are_finite<0, 0, rows, columns>(x))) return;
#pragma unroll 1
  for (int part = 0; part < Part::parts; ++part) {
    bool finite = true;
    for_each_part<Part::parts>([&]<int p>() __attribute__((always_inline)) {
      if (p == part) finite = are_finite<p / Part::parts_n * tall, p % Part::parts_n * wide, tall, wide>(x);
    });
    if (team.all(finite)) continue;
    tile::Origin o = origin();
    o.m += part / Part::parts_n * tall * apart;
    o.n += part % Part::parts_n * wide * 8;
    if (o.m >= g.m || o.n >= g.n) continue;  // NaN·0, of nothing that exists
    float sums[Part::of_m][Part::of_n] = {};
    sum_chains<Part>(g, sums, o.batch, o.m, o.n, buffer, team);
    team.wait();
    const int lane = arch::lane_index();
    for_each_part<wide>([&]<int j>() __attribute__((always_inline)) {
      float own[tall][4];
      exchange<Part, j>(sums, own, buffer + team.warp * of_warp, lane);
      for_each_part<Part::parts>([&]<int p>() __attribute__((always_inline)) {
        if (p != part) return;
#pragma unroll
        for (int i = 0; i < tall; ++i)
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            float& sum = x[p / Part::parts_n * tall + i][p % Part::parts_n * wide + j][r];
            sum = math::abs(sum) <= std::numeric_limits<float>::max() ? sum : own[i][r];
          }
      });
    });
  }
}

}  // namespace rigel::backends::tensor

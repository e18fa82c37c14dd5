// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a warp stores distances: in vectors, or one by one; and how it lists those that cancel.
#pragma once

#include <rigel/backends/cuda/mma/distance_tiles.hpp>
#include <rigel/backends/cuda/mma/kernel.hpp>

namespace rigel::backends::mma {

/// √x of a kept distance, rounded as IEEE 754 requires: simt::rounded_root() without what small numbers need.
__device__ __forceinline__ float root_of_kept(float x) {
  const float r = __nvvm_rsqrt_approx_ftz_f(fmaxf(x, 0x1p-126f)), y = math::multiply(x, r);
  return math::fma(math::fma(-y, y, x), math::multiply(0.5f, r), y);
}
/// The same for a normal double, within .501 ulp: the instruction's 20 bits, doubled twice (P. W. Markstein, Computation of
/// elementary functions on the IBM RISC System/6000 processor, 1990). `normal` is the number whose reciprocal root is taken.
__device__ __forceinline__ double root_of_normal(double x, double normal) {
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(normal));
  double y = math::multiply(x, r), h = math::multiply(0.5, r);
  const double e = math::fma(-y, h, 0.5);
  y = math::fma(y, e, y), h = math::fma(h, e, h);
  return math::fma(math::fma(-y, y, x), h, y);
}
__device__ __forceinline__ double root_of_normal(double x) { return root_of_normal(x, x); }
__device__ __forceinline__ float root_of_normal(float x) { return root_of_kept(x); }
/// The same for double, also if x is small or 0.
__device__ __forceinline__ double root_of_kept(double x) { return root_of_normal(x, x > 0x1p-1000 ? x : 0x1p-1000); }

/// The upper 32 bits of a number, and the largest number that has them. For non-negative numbers they are in the same order
/// as the numbers, with NaN after infinity.
__device__ __forceinline__ unsigned upper_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned upper_of(double x) { return static_cast<unsigned>(__double2hiint(x)); }
template <class T>
__device__ __forceinline__ T largest_of(unsigned upper) {
  if constexpr (sizeof(T) == 4)
    return __uint_as_float(upper);
  else
    return __hiloint2double(static_cast<int>(upper), -1);
}

/// A warp's shared memory for its store: the norms of its rows and columns, and eight rows of outputs.
template <class Shape, class Line>
struct DistanceBuffer {
  static constexpr int lines = (Shape::outputs_m + Shape::outputs_n) * static_cast<int>(sizeof(Line));
  using Sum = decltype(Line::norm);
  // Rows of eight columns use all banks; so do, for float, columns of eight rows, as mirrored tiles are read.
  static constexpr int pitch = Shape::outputs_n + (sizeof(Sum) == 8 ? 8 : 12);
  static constexpr int bytes = lines + 8 * pitch * static_cast<int>(sizeof(Sum));
};
/// The store of a warp's tile of `rows` × `columns` blocks of 16 × 8 outputs.
template <class Line, class Shape, class S, class Finish, int rows, int columns>
class DistanceStore {
  using Sum = typename Guard<Line>::Sum;
  using Distance = typename Guard<Line>::Distance;
  using Value = typename S::accumulator;
  using Sums = Sum[rows][columns][4];
  static constexpr int outputs_m = Shape::outputs_m, outputs_n = Shape::outputs_n, pieces = outputs_m / 8;
  /// A user's functor is called once for each output, with the final result: it may read C or write further results.
  static constexpr bool once = !std::is_same_v<Finish, detail::ProgramFinish>;
  static constexpr int pitch = DistanceBuffer<Shape, Line>::pitch;
  // Values in a vector, vectors in a row, and vectors of floats that a lane takes at a time.
  static constexpr int width = 16 / static_cast<int>(sizeof(Value)), in_row = outputs_n / width, vectors = 2;
  using Vector = tile::Chunk<Value, width>;

 public:
  /// `number` is that of the warp's tile, which starts at (l, m, n).
  __device__ __forceinline__ DistanceStore(const Guard<Line>& guard, const Rejected& rejected, bool mirrored,
                                           const detail::Arguments<S, Finish>& g, const Sums& sums, std::int64_t l,
                                           std::int64_t m, std::int64_t n, unsigned number, unsigned char* shared, int lane)
      : guard_(guard),
        rejected_(rejected),
        mirrored_(mirrored),
        g_(g),
        sums_(sums),
        s_(g.semiring(l)),
        l_(l),
        m_(m),
        n_(n),
        number_(number),
        lane_(lane),
        last_m_(static_cast<int>(std::min<std::int64_t>(g.m - m, outputs_m))),
        last_n_(static_cast<int>(std::min<std::int64_t>(g.n - n, outputs_n))),
        behind_(mirrored ? static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(n - m, -outputs_n), outputs_m))
                         : outputs_m),
        lines_x_(reinterpret_cast<const Line*>(shared)),
        lines_z_(lines_x_ + outputs_m),
        buffer_(reinterpret_cast<Sum*>(shared + DistanceBuffer<Shape, Line>::lines)),
        c_(static_cast<Value*>(g.c) + g.c_offset(l, m, n)),
        root_(g.finish.template power<Value>() == 0.5),
        plain_((root_ || g.finish.template is_copy<Value>()) && !g.accumulate),
        steps_(std::is_same_v<Sum, float> && !plain_ && g.finish.template runs_short<Value>() && !g.accumulate &&
               !(mirrored && reads_place())),
        begins_with_root_(root_ || (steps_ && g.finish.begins_with_root())),
        in_vectors_((plain_ || steps_) && g.c_strides.column == 1 && last_n_ % width == 0 && g.c_strides.row % width == 0 &&
                    reinterpret_cast<std::uintptr_t>(c_) % 16 == 0 && behind_ == outputs_m) {}

  /// Outputs are tested before any is stored if C is accumulated into, because recomputing rejected ones needs C's old
  /// values, or if the epilogue is a functor. They also are if most of the first ones are rejected, since then probably none has to be stored; kernels of
  /// doubles have no registers left for that. Branches around what a warp does together are votes, so that ptxas knows that
  /// its lanes stay together; otherwise it would move nothing past the products.
  __device__ __forceinline__ void run() const {
    constexpr bool asks = std::is_same_v<Sum, float>;
    const bool empty = last_m_ <= 0 || last_n_ <= 0 || behind_ == -outputs_n;
    const int row = lane_ / 4, column = lane_ % 4 * 2;  // of the lane's first sum
    const bool rejected_one =
        asks && exists(row, column, 0) && !guard_(sums_[0][0][0], lines_x_[row], lines_z_[column]).kept;
    const bool noted_first = g_.accumulate || once || (asks && __popc(__ballot_sync(~0u, rejected_one)) > 16);
    bool all_kept = !once;
    enum { nothing, storing, noting };
    int next = empty ? nothing : noted_first ? noting : storing;
    if constexpr (std::is_same_v<Sum, double>)
      if (__any_sync(~0u, next == storing && in_vectors_)) {
        if (__all_sync(~0u, store_doubles()))
          next = nothing;
        else if (guard_.least > 0)
          next = noting;
      }
#pragma unroll 1
    while (__any_sync(~0u, next != nothing)) {
      if (__any_sync(~0u, next == storing)) {
        next = store(all_kept) || noted_first ? nothing : noting;
      } else {
        const int rejected = note();
        all_kept = !once || rejected == 0;
        next = rejected <= rejected_.limit && noted_first ? storing : nothing;
      }
    }
  }

 private:
  // Whether what the epilogue makes of an output depends on where it lies.
  __device__ __forceinline__ bool reads_place() const {
    if constexpr (once)
      return true;
    else
      return g_.finish.reads_place;
  }
  // Writes eight rows of outputs to shared memory.
  __device__ __forceinline__ void to_buffer(int piece) const {
    __syncwarp();
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (p != piece) continue;
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        struct alignas(2 * sizeof(Sum)) Two {
          Sum first, second;
        };
        *reinterpret_cast<Two*>(buffer_ + lane_ / 4 * pitch + 8 * j + lane_ % 4 * 2) = {sums_[p / 2][j][p % 2 * 2],
                                                                                        sums_[p / 2][j][p % 2 * 2 + 1]};
      }
    }
    __syncwarp();
  }
  // An output of the buffer. On the diagonal of a matrix against itself it is 0 if the row is finite.
  __device__ __forceinline__ Distance distance(int row, int column, int piece) const {
    const Line of_x = lines_x_[8 * piece + row];
    Distance d = guard_(buffer_[row * pitch + column], of_x, lines_z_[column]);
    if (8 * piece + row == behind_ + column && of_x.norm <= std::numeric_limits<Sum>::max()) d = {0, true};
    return d;
  }
  __device__ __forceinline__ bool exists(int row, int column, int piece) const {
    return 8 * piece + row < last_m_ && column < last_n_ && 8 * piece + row <= behind_ + column;
  }

  // Stores all outputs, or only kept ones if there is something to add to or to be called once. Returns whether all are kept.
  __device__ __forceinline__ bool store(bool all) const {
    bool kept = true;
    if constexpr (std::is_same_v<Sum, float>) {
      if (in_vectors_ && all)
        kept = !loops_apart || steps_ ? store_floats<true>() : store_floats<!loops_apart>();
      else
        kept = store_singly();
    } else {
      kept = store_singly();
    }
    return __all_sync(~0u, kept) != 0;
  }

  // Stores in vectors. Returns whether one test shows that all outputs are kept; otherwise they are tested one by one.
  //
  // Doubles: straight from registers, four lanes to two sectors of a row, or eight lanes to those of a column. The test takes
  // the smallest distance and the largest norms of a lane, by their upper words alone.
  __device__ __forceinline__ bool store_doubles() const {
    const int row = lane_ / 4, column = lane_ % 4 * 2, left_m = last_m_ - row, left_n = last_n_ - column;
    using Two = tile::Chunk<Value, 2>;
    constexpr double smallest = 0x1p-900;  // the smallest that root_of_normal() takes
    int lowest = std::numeric_limits<int>::max();
    unsigned most_x = 0, most_z = 0;
    std::int64_t stride = g_.c_strides.row;
    asm volatile("" : "+l"(stride));  // its multiples, computed before the loop below, would take too many registers
    constexpr int together = 4;       // rows of a lane at a time, as registers allow
    static_assert(pieces % together == 0);
#pragma unroll
    for (int first = 0; first < pieces; first += together) {
      Line of_x[together];
      Value* const to = c_ + (8 * first + row) * stride + column;
      Value* mirror = static_cast<Value*>(g_.c) + g_.c_offset(l_, n_ + column, m_ + 8 * first + row);
#pragma unroll
      for (int r = 0; r < together; ++r) {
        of_x[r] = lines_x_[8 * (first + r) + row];
        if (8 * (first + r) < left_m) most_x = max(most_x, upper_of(of_x[r].norm));
      }
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        const Line of_z[2] = {lines_z_[8 * j + column], lines_z_[8 * j + column + 1]};
        Two values[together];
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          if (8 * j < left_n) most_z = max(most_z, upper_of(of_z[v].norm));
#pragma unroll
          for (int r = 0; r < together; ++r) {
            const int piece = first + r;
            const Sum value =
                distance_of(sums_[piece / 2][j][piece % 2 * 2 + v], of_x[r], of_z[v], math::add(of_x[r].norm, of_z[v].norm));
            if (8 * piece < left_m && 8 * j < left_n) lowest = min(lowest, static_cast<int>(upper_of(value)));
            values[r].value[v] = static_cast<Value>(value);
          }
        }
        asm volatile("" : "+r"(lowest), "+r"(most_z));  // computed here: after all columns, all values would be live
        if (root_)
#pragma unroll
          for (int r = 0; r < together; ++r)
#pragma unroll
            for (int v = 0; v < 2; ++v) values[r].value[v] = root_of_normal(values[r].value[v]);
#pragma unroll
        for (int r = 0; r < together; ++r)
          if (8 * (first + r) < left_m && 8 * j < left_n) values[r].store(to + 8 * r * stride + 8 * j);
        if (mirrored_) {
#pragma unroll
          for (int v = 0; v < 2; ++v)
#pragma unroll
            for (int r = 0; r < together; ++r)
              if (8 * (first + r) < left_m && 8 * j < left_n) mirror[v * stride + 8 * r] = values[r].value[v];
          mirror += 8 * stride;
        }
      }
    }
    const Sum norms = math::add(largest_of<Sum>(most_x), largest_of<Sum>(most_z));
    const Sum least = larger(math::fma(guard_.threshold, norms, guard_.least), smallest);
    return 4 * norms <= guard_.most && lowest > static_cast<int>(upper_of(least));
  }

  // Floats: through shared memory, several vectors of each lane at a time to hide latency. The test takes the smallest excess
  // over the threshold, which must be more than its rounding, and the largest norms.
  struct Extremes {
    Sum lowest = std::numeric_limits<Sum>::infinity();
    unsigned most_x = 0, most_z = 0;
  };
  // Outputs without steps have a loop of their own in large tiles: with the code of steps in the middle of it they wait for instructions.
  // (On sm_80 these tiles have no registers for two.)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  static constexpr bool loops_apart = outputs_m * outputs_n >= 64 * 64;
#else
  static constexpr bool loops_apart = false;
#endif
  template <bool steps>  // whether there may be some
  __device__ __forceinline__ bool store_floats() const {
    constexpr int of_lane = 8 * in_row / 32;
    static_assert(32 % in_row == 0 && of_lane % vectors == 0);
    constexpr Sum rounding = 0x1p-20;
    const int column = lane_ % in_row * width;
    Extremes extremes;
    Value* const mirror =
        static_cast<Value*>(g_.c) + g_.c_offset(l_, n_, m_);  // of the first output; C's columns are neighbours
    Line of_z[width];
#pragma unroll
    for (int v = 0; v < width; ++v) {
      of_z[v] = lines_z_[column + v];
      if (column < last_n_) extremes.most_z = max(extremes.most_z, upper_of(of_z[v].norm));
    }
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      to_buffer(piece);
#pragma unroll 1
      for (int first = 0; first < of_lane; first += vectors) {
        Vector values[vectors];
        compute_vectors<steps>(values, piece, first, column, of_z, extremes);
        if (steps && steps_) run_steps(values, 8 * piece + row_of(first), column);
#pragma unroll
        for (int r = 0; r < vectors; ++r) {
          const int row = row_of(first + r);
          if (column < last_n_ && 8 * piece + row < last_m_)
            values[r].store(c_ + (8 * piece + row) * g_.c_strides.row + column);
          if (mirrored_) values[r].store(buffer_ + row * pitch + column);  // in place of their sums
        }
      }
      if (!mirrored_) continue;
      __syncwarp();
      mirror_piece(piece, mirror);
    }
    const Sum norms = math::add(largest_of<Sum>(extremes.most_x), largest_of<Sum>(extremes.most_z));
    return 4 * norms <= guard_.most &&
           math::subtract(extremes.lowest, guard_.least) > math::fma(guard_.threshold, rounding * norms, guard_.least);
  }
  // The row of a piece of a lane's vector.
  __device__ __forceinline__ int row_of(int vector) const { return lane_ / in_row + vector * (32 / in_row); }

  // Distances of a lane's vectors from the one `first` on.
  template <bool steps>
  __device__ __forceinline__ void compute_vectors(Vector (&values)[vectors], int piece, int first, int column,
                                                  const Line (&of_z)[width], Extremes& extremes) const {
#pragma unroll
    for (int r = 0; r < vectors; ++r) {
      const int row = row_of(first + r);
      const Line of_x = lines_x_[8 * piece + row];
      const auto in_buffer = tile::Chunk<Sum, width>::load(buffer_ + row * pitch + column);
      Sum above[width];
#pragma unroll
      for (int v = 0; v < width; ++v) {
        const Sum norms = math::add(of_x.norm, of_z[v].norm);
        const Sum value = larger(distance_of(in_buffer.value[v], of_x, of_z[v], norms), guard_.floor);
        above[v] = math::fma(guard_.threshold, -norms, value);
        values[r].value[v] = (steps ? begins_with_root_ : root_) ? root_of_kept(value) : value;
      }
      if (column < last_n_ && 8 * piece + row < last_m_) {
        extremes.most_x = max(extremes.most_x, upper_of(of_x.norm));
#pragma unroll
        for (int v = 0; v < width; ++v) extremes.lowest = fminf(extremes.lowest, above[v]);
      }
    }
  }
  // Where a lane's vectors lie, as Program::run_on() takes them.
  struct Outputs {
    static constexpr int apart_m = 0, apart_n = 1, next_m = 32 / in_row, next_n = 0;
    const DistanceStore& store;
    const int &row, &column, groups;  // of the first output in the tile
    __device__ __forceinline__ epilogue::Place place(int group) const {
      return {store.l_, store.m_ + (row + group * next_m), store.n_ + column};
    }
  };
  __device__ __forceinline__ void run_steps(Vector (&values)[vectors], int row, int column) const {
    auto& groups = reinterpret_cast<float (&)[vectors][width]>(values);
    if constexpr (!once)
      if (g_.finish.is_layer && !g_.finish.layer.shifts && !g_.finish.layer.has_matrix())
        return g_.finish.layer.apply(groups);
    const int left = last_m_ - row;
    const Outputs outputs{*this, row, column, column >= last_n_ || left <= 0 ? 0 : left <= Outputs::next_m ? 1 : vectors};
    g_.finish.run_on(groups, outputs, begins_with_root_);
  }
  // The mirrored outputs of the buffer, by whole sectors. All rows of a tile that is mirrored exist.
  __device__ __forceinline__ void mirror_piece(int piece, Value* mirror) const {
#pragma unroll 1
    for (int e = lane_; e < 8 / width * outputs_n; e += 32) {
      const int row = e % (8 / width) * width, mirrored_row = e / (8 / width);
      Vector of_column;
#pragma unroll
      for (int v = 0; v < width; ++v) of_column.value[v] = buffer_[(row + v) * pitch + mirrored_row];
      if (8 * piece + row < last_m_ && mirrored_row < last_n_)
        of_column.store(mirror + mirrored_row * g_.c_strides.row + (8 * piece + row));
    }
  }

  // Stores outputs one by one. Returns whether this lane's are kept.
  __device__ __forceinline__ bool store_singly() const {
    const bool along_n = g_.c_strides.column <= g_.c_strides.row;
    bool kept = true;
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      to_buffer(piece);
#pragma unroll 1
      for (int e = lane_; e < 8 * outputs_n; e += 32) {
        const int row = along_n ? e / outputs_n : e % 8, column = along_n ? e % outputs_n : e / 8;
        if (!exists(row, column, piece)) continue;
        const std::int64_t i = m_ + 8 * piece + row, j = n_ + column;
        const Distance d = distance(row, column, piece);
        kept = kept && d.kept;
        if (plain_) {
          const auto sum = static_cast<Value>(d.value), value = root_ ? root_of_kept(sum) : sum;
          static_cast<Value*>(g_.c)[g_.c_offset(l_, i, j)] = value;
          if (mirrored_) static_cast<Value*>(g_.c)[g_.c_offset(l_, j, i)] = value;
          continue;
        }
        if ((g_.accumulate || once) && !d.kept) continue;
#pragma unroll 1
        for (int both = 0; both <= (mirrored_ && i != j); ++both) {
          const std::int64_t row_of_c = both ? j : i, column_of_c = both ? i : j;
          const auto value = static_cast<Value>(d.value);
          g_.store(s_, g_.accumulate ? s_.add(g_.start(s_, l_, row_of_c, column_of_c), value) : value, l_, row_of_c,
                   column_of_c);
        }
      }
    }
    return kept;
  }

  // Lists rejected outputs, if they are few. Returns how many there are, or more than `limit`.
  __device__ __forceinline__ int note() const {
    std::uint16_t* const places = rejected_.places_of(number_) + 1;
    int count = 0;
#pragma unroll 1
    for (int piece = 0; piece < pieces && count <= rejected_.limit; ++piece) {
      to_buffer(piece);
#pragma unroll 1
      for (int first = 0; first < 8 * outputs_n && count <= rejected_.limit; first += 32) {
        const int e = first + lane_, row = e / outputs_n, column = e % outputs_n;
        const bool out = exists(row, column, piece) && !distance(row, column, piece).kept;
        const unsigned all_out = __ballot_sync(~0u, out);
        const int place = count + __popc(all_out & ((1u << lane_) - 1));
        if (out && place < rejected_.limit) places[place] = static_cast<std::uint16_t>(8 * outputs_n * piece + e);
        count += __popc(all_out);
      }
    }
    const bool few = count <= rejected_.limit;
    if (lane_ == 0 && few && count > 0) {
      places[-1] = static_cast<std::uint16_t>(count);
      rejected_.few[atomicAdd(rejected_.counters, 1u)] = number_;
    }
    if (lane_ == 0 && !few) rejected_.note_many(number_, Shape::warps);
    return count;
  }

  const Guard<Line>& guard_;
  const Rejected& rejected_;
  bool mirrored_;
  const detail::Arguments<S, Finish>& g_;
  const Sums& sums_;
  S s_;
  std::int64_t l_, m_, n_;
  unsigned number_;
  int lane_;
  int last_m_, last_n_;  // how many rows and columns exist
  // How far the first column is right of the diagonal; outputs left of the diagonal are not computed. Without mirroring,
  // further than any tile reaches.
  int behind_;
  const Line *lines_x_, *lines_z_;
  Sum* buffer_;
  Value* c_;
  // What C receives: square roots; roots or results as they are; results of steps in registers, after a root if that is the
  // first one. What steps make of an output holds for its mirror image, too.
  bool root_, plain_, steps_, begins_with_root_;
  // Rows are stored in vectors if C has the accumulator's type, is row-major, aligned and not accumulated into, if the
  // epilogue is empty, a square root or (of floats) short steps, and off the diagonal.
  bool in_vectors_;
};

}  // namespace rigel::backends::mma

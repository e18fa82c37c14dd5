// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slabs of A and B: a ring of them in shared memory, what a warp reads of them, and the copies that bring them.
#pragma once

#include <rigel/backends/cuda/tensor/decomposition.hpp>
#include <rigel/backends/cuda/tile/matrix_slab.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>

#include <cstdint>

namespace rigel::backends::mma {

using namespace tensor;  // what cuda.mma and cuda.hopper share

/// Where an operand's elements are: `batch` elements from matrix to matrix; `stride` from row to row (of A) or column to
/// column (of B) if it is K-major, else from k to k + 1.
template <class Element>
struct Source {
  const Element* data;
  std::int64_t batch, stride;
};
/// Both operands, and the number of their elements along K.
template <class Element>
struct Operands {
  Source<Element> a, b;
  int k;
};

/// Places in the ring: of the slab that is multiplied, of the next one, and of the previous one, whose place is free.
struct Stages {
  int now, next, free;
};

/// The ring of slabs. A warp reads fragments of 16 rows of A, and of 16 columns of B, over a step of a plane along K.
template <class Number, Decomposition how, class Shape, tile::Direction of_a, tile::Direction of_b>
class Slabs {
 public:
  using Element = Number;
  static constexpr Decomposition decomposition = how;
  static constexpr int planes = how.planes, apart = planes == 3 ? planes : 1;  // two planes are the halves of a row
  using A = tile::MatrixSlab<Element, of_a, Shape::m, Shape::threads, apart>;
  using B = tile::MatrixSlab<Element, of_b, Shape::n, Shape::threads, apart>;
  using Register = typename A::Register;
  static constexpr tile::Direction direction_a = of_a, direction_b = of_b;
  static constexpr int m = Shape::m, n = Shape::n;
  static constexpr int stages = Shape::stages, stage_bytes = A::bytes + B::bytes, bytes = stages * stage_bytes;
  static constexpr int steps = A::steps * apart / planes, depth = A::depth * apart / planes;  // of a plane

  /// The products of a warp: 16 rows by 8 columns of outputs each.
  using Mma = arch::Mma<Element>;
  static constexpr int rows = Shape::outputs_m / 16, columns = Shape::outputs_n / 8;
  using Sums = typename Mma::Accumulator[rows][columns][4];
  using FragmentsA = Register[rows][4];
  using FragmentsB = Register[columns / 2][4];

  /// `warp_m`, `warp_n`: the first outputs of the warp in the tile.
  __device__ __forceinline__ Slabs(const unsigned char* shared, int warp_m, int warp_n, int lane)
      : shared_(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
        reader_a_(warp_m, lane),
        reader_b_(warp_n, lane) {}

  __device__ __forceinline__ std::uint32_t address(int stage) const { return shared_ + stage * stage_bytes; }
  __device__ __forceinline__ static Stages around(int stage) {
    return {stage, stage + 1 == stages ? 0 : stage + 1, stage == 0 ? stages - 1 : stage - 1};
  }

  /// Waits until the next slab is full and no thread reads the previous one.
  __device__ __forceinline__ static void wait() {
    arch::wait_for_copies<stages - 2>();
    __syncthreads();
  }

  /// Fragment i of A, fragment j of B, of the slab at `from`.
  __device__ __forceinline__ void read_rows(Register (&to)[4], int i, std::uint32_t from, int step, int plane = 0) const {
    reader_a_.read(plane_of_a(from, plane), 16 * i, step_of_row(step, plane), to);
  }
  __device__ __forceinline__ void read_columns(Register (&to)[4], int j, std::uint32_t from, int step, int plane = 0) const {
    reader_b_.read(plane_of_b(from, plane), 16 * j, step_of_row(step, plane), to);
  }
  /// All fragments of the warp.
  __device__ __forceinline__ void read_a(FragmentsA& to, int stage, int step, int plane = 0) const {
    const std::uint32_t from = plane_of_a(address(stage), plane);
#pragma unroll
    for (int i = 0; i < rows; ++i) reader_a_.read(from, 16 * i, step_of_row(step, plane), to[i]);
  }
  __device__ __forceinline__ void read_b(FragmentsB& to, int stage, int step, int plane = 0) const {
    const std::uint32_t from = plane_of_b(address(stage), plane);
#pragma unroll
    for (int j = 0; j < columns / 2; ++j) reader_b_.read(from, 16 * j, step_of_row(step, plane), to[j]);
  }

 private:
  __device__ __forceinline__ static std::uint32_t plane_of_a(std::uint32_t slab, int plane) {
    return slab + (apart > 1 ? plane * A::plane_bytes : 0);
  }
  __device__ __forceinline__ static std::uint32_t plane_of_b(std::uint32_t slab, int plane) {
    return slab + A::bytes + (apart > 1 ? plane * B::plane_bytes : 0);
  }
  __device__ __forceinline__ static int step_of_row(int step, int plane) { return apart > 1 ? step : plane * steps + step; }

  std::uint32_t shared_;
  typename A::template Reader<A::Order::rows> reader_a_;
  typename B::template Reader<B::Order::columns> reader_b_;
};

/// Asynchronous copies of successive slabs, across the tiles of a block.
template <class Slabs, class Arguments, class Raster>
class Copies {
  using A = typename Slabs::A;
  using B = typename Slabs::B;
  using Element = typename Slabs::Element;

 public:
  __device__ __forceinline__ Copies(const Operands<Element>& operands, const Arguments& g, const Raster& raster,
                                    unsigned tiles)
      : operands_(operands),
        g_(g),
        raster_(raster),
        tiles_(tiles),
        stride_a_(static_cast<std::uint32_t>(operands.a.stride)),
        stride_b_(static_cast<std::uint32_t>(operands.b.stride)),
        tile_(blockIdx.x),
        k_left_(operands.k),
        origin_(raster.origin(tile_, Slabs::m, Slabs::n)),
        a_(source_a()),
        b_(source_b()) {}

  /// Starts the copies of a slab to `stage`; calls share `part` of `parts` of them.
  __device__ __forceinline__ void start(const Slabs& slabs, int stage, int part = 0, int parts = 1) {
    const std::uint32_t to = slabs.address(stage);
    constexpr int all = A::copies + B::copies;
#pragma unroll
    for (int e = all * part / parts; e < all * (part + 1) / parts; ++e)
      if (e < A::copies)
        a_.copy(e, to, stride_a_, k_left_);
      else
        b_.copy(e - A::copies, to + A::bytes, stride_b_, k_left_);
    if (part == parts - 1) arch::commit_copies();
  }
  /// Goes on to the next slab, of the next tile if need be.
  __device__ __forceinline__ void advance() {
    k_left_ -= A::depth;
    if (k_left_ <= 0) {
      k_left_ = 0;
      tile_ += gridDim.x;
      if (tile_ < tiles_) {
        origin_ = raster_.origin(tile_, Slabs::m, Slabs::n);
        a_ = source_a();
        b_ = source_b();
        k_left_ = operands_.k;
      }
    }
  }

 private:
  __device__ __forceinline__ typename A::Source source_a() const {
    const auto& from = operands_.a;
    const std::int64_t first = Slabs::direction_a == tile::Direction::along_k ? origin_.m * from.stride : origin_.m;
    return typename A::Source(from.data + origin_.batch * from.batch + first, from.stride, g_.m - origin_.m);
  }
  __device__ __forceinline__ typename B::Source source_b() const {
    const auto& from = operands_.b;
    const std::int64_t first = Slabs::direction_b == tile::Direction::along_k ? origin_.n * from.stride : origin_.n;
    return typename B::Source(from.data + origin_.batch * from.batch + first, from.stride, g_.n - origin_.n);
  }

  const Operands<Element>& operands_;
  const Arguments& g_;
  const Raster& raster_;
  unsigned tiles_;
  std::uint32_t stride_a_, stride_b_;
  unsigned tile_;        // the one that is being copied
  int k_left_;           // of that tile; 0 after the last
  tile::Origin origin_;  // of that tile
  typename A::Source a_;
  typename B::Source b_;
};

/// What most main loops have nothing to do for. A loop keeps fragments, and sums that are not C's. Its functions are called in
/// this order: begin() when the first slab is on its way; for each tile begin_tile(), for each slab add_slab() and, when its
/// place in the ring is free, end_slab(); then end_tile().
struct LoopDefaults {
  template <class Slabs>
  __device__ __forceinline__ void begin_tile(const Slabs&, int, int) {}
  template <class Sums>
  __device__ __forceinline__ void end_slab(Sums&, int, int) {}
  template <class Sums>
  __device__ __forceinline__ void end_tile(Sums&) {}
};

}  // namespace rigel::backends::mma

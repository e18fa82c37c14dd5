// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( Σ_k A(l,m,k)·B(l,k,n) ) on tensor cores by mma.sync. Persistent blocks compute tile after tile of C,
// each warp a part of it in registers. Slabs of A and B are prefetched to shared memory, those of the next tile while this
// one is stored. Every output is summed in ascending steps of 32 bytes along K (64 for double), whatever the tile.
#pragma once

#include <rigel/backends/cuda/arch/shared_memory.hpp>
#include <rigel/backends/cuda/tensor/decomposition.hpp>
#include <rigel/backends/cuda/tensor/store.hpp>
#include <rigel/backends/cuda/tile/matrix_slab.hpp>
#include <rigel/backends/cuda/tile/raster.hpp>
#include <rigel/detail/arguments.hpp>

#include <array>
#include <utility>

namespace rigel::backends::mma {

using namespace tensor;  // what cuda.mma and cuda.hopper share

/// A block of WarpsM × WarpsN warps with OutputsM × OutputsN outputs each, `Stages` slabs in shared memory: of 128 bytes
/// along K, or of 64 for each of several planes. `Blocks` is the number of blocks that a multiprocessor must be able to
/// hold.
template <int WarpsM, int WarpsN, int OutputsM, int OutputsN, int Stages, int Blocks>
struct Shape {
  static constexpr int warps_m = WarpsM, warps_n = WarpsN, warps = WarpsM * WarpsN, threads = 32 * warps;
  static constexpr int outputs_m = OutputsM, outputs_n = OutputsN;  // of a warp
  static constexpr int m = WarpsM * OutputsM, n = WarpsN * OutputsN;
  static constexpr int stages = Stages, blocks = Blocks;
  static_assert(OutputsM % 16 == 0 && OutputsN % 16 == 0 && Stages >= 2);
};

/// A result with an epilogue and a store of its own, which use bytes<Shape> of shared memory per warp. begin() comes before
/// a tile's products and may start asynchronous copies, which are complete when the products are. store() comes after the
/// products, with the number of the warp's tile. All other results go through store_tile().
template <class Result, class Shape>
concept OwnWay = requires { Result::template bytes<Shape>; };
template <class Result, class Shape, class Accumulator>
constexpr int bytes_of_warp() {
  if constexpr (OwnWay<Result, Shape>)
    return Result::template bytes<Shape>;
  else
    return StoreBuffer<Shape::outputs_n, Accumulator>::bytes;
}

/// Bytes of shared memory that a kernel needs.
template <class Shape, class Accumulator, int planes = 1>
inline constexpr int shared_bytes = Shape::stages * (Shape::m + Shape::n) * (planes == 1 ? 128 : 64 * planes) +
                                    Shape::warps * StoreBuffer<Shape::outputs_n, Accumulator>::bytes;

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

/// What tf32 does not see of a float: x less its upper 11 bits, which leaves 13 bits, of which tf32 then sees 11. Upper
/// parts are truncated, so that no product of them overflows before that of the floats does.
__device__ __forceinline__ std::uint32_t rest_of(std::uint32_t bits) {
  return __float_as_uint(math::subtract(__uint_as_float(bits), __uint_as_float(bits & 0xffffe000u)));
}

/// visit(i, j, r) for all accumulators of a thread.
template <int rows, int columns, class Visit>
__device__ __forceinline__ void for_each_accumulator(const Visit& visit) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) visit(i, j, r);
}

/// x += A·B for all fragments of a step, back and forth: consecutive instructions share a fragment.
template <class Mma, class Register, int rows, int columns>
__device__ __forceinline__ void add_products(typename Mma::Accumulator (&x)[rows][columns][4], const Register (&a)[rows][4],
                                             const Register (&b)[columns / 2][4]) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int turn = 0; turn < columns; ++turn) {
      const int j = i % 2 == 0 ? turn : columns - 1 - turn;
      Mma::add(x[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

/// The same for floats in two parts, without the products of both rests. (The instruction takes the floats themselves as
/// upper parts.)
template <class Mma, int rows, int columns>
__device__ __forceinline__ void add_split_products(typename Mma::Accumulator (&x)[rows][columns][4],
                                                   const std::uint32_t (&a)[rows][4],
                                                   const std::uint32_t (&b)[columns / 2][4]) {
  std::uint32_t rest_b[columns / 2][4];
#pragma unroll
  for (int j = 0; j < columns / 2; ++j)
#pragma unroll
    for (int r = 0; r < 4; ++r) rest_b[j][r] = rest_of(b[j][r]);
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    std::uint32_t rest_a[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) rest_a[r] = rest_of(a[i][r]);
    const auto add = [&](const std::uint32_t (&of_a)[4], const std::uint32_t (&of_b)[columns / 2][4]) {
#pragma unroll
      for (int j = 0; j < columns; ++j) Mma::add(x[i][j], of_a, of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]);
    };
    add(rest_a, b);
    add(a[i], rest_b);
    add(a[i], b);
  }
}

/// Floats as pairs of halves. `pairs`: the second half is `rest_scale` times the rest; their products have sums of their own.
/// `promoted_pairs`: these are scaled down in the sums of a slab before the third product is added. `pairs_by_steps`: the
/// second half is the rest itself; a step's products are summed by themselves, a few columns at a time. `pairs_by_levels` adds
/// the steps of 512 k first.
inline constexpr Decomposition pairs{2, 3}, promoted_pairs{2, 3, 32}, pairs_by_steps{2, 3, 16},
    pairs_by_levels{2, 3, 16, 512};
inline constexpr float rest_scale = 0x1p11f;

/// A product of a slab's fragments, of plane a of A and plane b of B in a step, and whether it is the first use of either
/// fragment.
struct Turn {
  int step, a, b;
  bool first_of_a, first_of_b;
};
/// The products of a slab in their order: step by step, plane by plane of A, the smallest first. With `largest_last`, those
/// of both first planes come after all others.
template <int planes, int of_step, int steps, bool largest_last>
constexpr auto turns_of_slab() {
  std::array<Turn, steps * of_step> list{};
  int count = 0;
  bool seen_a[steps][planes] = {}, seen_b[steps][planes] = {};
  const auto append = [&](int step, int a, int b) {
    list[count++] = {step, a, b, !seen_a[step][a], !seen_b[step][b]};
    seen_a[step][a] = seen_b[step][b] = true;
  };
  for (int step = 0; step < steps; ++step)
    for (int a = planes - 1; a >= 0; --a)
      for (int b = of_step == planes * planes ? planes - 1 : planes - 1 - a; b >= 0; --b)
        if (!largest_last || a + b > 0) append(step, a, b);
  if (largest_last)
    for (int step = 0; step < steps; ++step) append(step, 0, 0);
  return list;
}
template <int planes, int of_step, int steps, bool largest_last>
inline constexpr auto turns = turns_of_slab<planes, of_step, steps, largest_last>();

/// A step multiplies numbers of type `Element`. S's accumulator of an output is result(sum, l, m, n). store_tile() stores
/// it, unless the result has an OwnWay.
template <class S, class Element, Decomposition decomposition, class Finish, class Shape, tile::Direction of_a,
          tile::Direction of_b, class Result, class Raster = tile::Raster>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    multiply(const __grid_constant__ Operands<Element> operands, const __grid_constant__ detail::Arguments<S, Finish> g,
             const __grid_constant__ Result result, const __grid_constant__ Raster raster, unsigned tiles) {
  using Mma = arch::Mma<Element>;
  constexpr int planes = decomposition.planes, apart = planes == 3 ? planes : 1;  // two planes are the halves of a row
  using SlabA = tile::MatrixSlab<Element, of_a, Shape::m, Shape::threads, apart>;
  using SlabB = tile::MatrixSlab<Element, of_b, Shape::n, Shape::threads, apart>;
  constexpr int stages = Shape::stages, stage_bytes = SlabA::bytes + SlabB::bytes;
  constexpr int steps = SlabA::steps * apart / planes, depth = SlabA::depth * apart / planes;  // of a plane
  constexpr int of_warp = bytes_of_warp<Result, Shape, typename Mma::Accumulator>();
  constexpr int bytes = stages * stage_bytes + Shape::warps * of_warp;
  static_assert(arch::holds(arch::shared_memory_of_sm_90, Shape::blocks, bytes) &&
                arch::holds(arch::shared_memory_of_sm_80, 1, bytes));
  constexpr int rows = Shape::outputs_m / 16, columns = Shape::outputs_n / 8;
  extern __shared__ __attribute__((aligned(128))) unsigned char shared[];
  const auto slabs = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / Shape::warps_n * Shape::outputs_m, warp_n = warp % Shape::warps_n * Shape::outputs_n;
  const typename SlabA::template Reader<SlabA::Order::rows> reader_a(warp_m, lane);
  const typename SlabB::template Reader<SlabB::Order::columns> reader_b(warp_n, lane);
  const int slabs_of_tile = (operands.k + SlabA::depth - 1) / SlabA::depth;

  // Copies are prefetched, also across tiles.
  const auto origin = [&](unsigned index) { return raster.origin(index, Shape::m, Shape::n); };
  const auto source_a = [&](tile::Origin o) {
    const auto& from = operands.a;
    const std::int64_t first = of_a == tile::Direction::along_k ? o.m * from.stride : o.m;
    return typename SlabA::Source(from.data + o.batch * from.batch + first, from.stride, g.m - o.m);
  };
  const auto source_b = [&](tile::Origin o) {
    const auto& from = operands.b;
    const std::int64_t first = of_b == tile::Direction::along_k ? o.n * from.stride : o.n;
    return typename SlabB::Source(from.data + o.batch * from.batch + first, from.stride, g.n - o.n);
  };
  const auto stride_a = static_cast<std::uint32_t>(operands.a.stride),
             stride_b = static_cast<std::uint32_t>(operands.b.stride);
  unsigned copied = blockIdx.x;
  int k_left = operands.k;  // of the tile that is being copied; 0 after the last
  const tile::Origin first = origin(copied);
  typename SlabA::Source a = source_a(first);
  typename SlabB::Source b = source_b(first);
  // Starts share `part` of `parts` of a slab's copies.
  const auto start_copies = [&](int stage, int part, int parts) __attribute__((always_inline)) {
    const std::uint32_t to = slabs + stage * stage_bytes;
    constexpr int all = SlabA::copies + SlabB::copies;
#pragma unroll
    for (int e = all * part / parts; e < all * (part + 1) / parts; ++e)
      if (e < SlabA::copies)
        a.copy(e, to, stride_a, k_left);
      else
        b.copy(e - SlabA::copies, to + SlabA::bytes, stride_b, k_left);
    if (part == parts - 1) arch::commit_copies();
  };
  const auto advance = [&]() __attribute__((always_inline)) {
    k_left -= SlabA::depth;
    if (k_left <= 0) {
      k_left = 0;
      copied += gridDim.x;
      if (copied < tiles) {
        const tile::Origin next = origin(copied);
        a = source_a(next);
        b = source_b(next);
        k_left = operands.k;
      }
    }
  };
  // Fragments of the next step, or turn, are read while the current ones are multiplied; if floats are split, no registers
  // are left for that. Fragments of doubles replace those of their own step, each as soon as its last product is issued.
  // Fragments of planes stay until they have met all others of their step.
  constexpr bool rolling = std::is_same_v<Element, double>;
  constexpr bool ahead = decomposition.products == 1 && !rolling, by_slabs = decomposition.promoted == depth;
  constexpr bool by_steps = decomposition.promoted == depth / steps, by_levels = decomposition.grouping > 0;
  constexpr bool by_planes = planes > 1 && !by_steps;
  static_assert(decomposition.promoted == 0 || by_slabs || (by_steps && planes == 2));
  static_assert(!by_levels || (by_steps && decomposition.grouping % depth == 0));
  constexpr int held = by_planes ? steps * planes : by_steps ? 2 : 1 + ahead;
  typename SlabA::Register fragment_a[held][rows][4], fragment_b[held][columns / 2][4];
  const auto read_a = [&](int which, int stage, int step, int plane) __attribute__((always_inline)) {
    const std::uint32_t from = slabs + stage * stage_bytes + (apart > 1 ? plane * SlabA::plane_bytes : 0);
    const int of_row = apart > 1 ? step : plane * steps + step;
#pragma unroll
    for (int i = 0; i < rows; ++i) reader_a.read(from, 16 * i, of_row, fragment_a[which][i]);
  };
  const auto read_b = [&](int which, int stage, int step, int plane) __attribute__((always_inline)) {
    const std::uint32_t from = slabs + stage * stage_bytes + SlabA::bytes + (apart > 1 ? plane * SlabB::plane_bytes : 0);
    const int of_row = apart > 1 ? step : plane * steps + step;
#pragma unroll
    for (int j = 0; j < columns / 2; ++j) reader_b.read(from, 16 * j, of_row, fragment_b[which][j]);
  };
  const auto read = [&](int which, int stage, int step) __attribute__((always_inline)) {
    read_a(which, stage, step, 0);
    read_b(which, stage, step, 0);
  };
  // Planes: smaller products come first. Halves have two planes, the second one scaled.
  constexpr bool scaled = by_planes && std::is_same_v<Element, half>, largest_last = by_slabs && by_planes;
  constexpr auto of_rest = static_cast<typename Mma::Accumulator>(1 / rest_scale);
  constexpr int of_step = planes == 1 ? 1 : decomposition.products;
  constexpr int all_turns = static_cast<int>(turns<planes, of_step, steps, largest_last>.size());
  const auto read_of_turn = [&]<int turn>(int stage) __attribute__((always_inline)) {
    constexpr Turn now = turns<planes, of_step, steps, largest_last>[turn];
    if constexpr (now.first_of_a) read_a(now.step * planes + now.a, stage, now.step, now.a);
    if constexpr (now.first_of_b) read_b(now.step * planes + now.b, stage, now.step, now.b);
  };

  // Waits until the next slab is full and no thread reads the previous one.
  const auto wait_for_slab = []() __attribute__((always_inline)) {
    arch::wait_for_copies<stages - 2>();
    __syncthreads();
  };

  int stage = 0;
  if (slabs_of_tile > 0) {
#pragma unroll 1
    for (int s = 0; s < stages - 1; ++s) {
      start_copies(s, 0, 1);
      advance();
    }
    if constexpr (!by_steps) wait_for_slab();
    if constexpr (by_planes)
      read_of_turn.template operator()<0>(0);
    else if (ahead)
      read(0, 0, 0);
  }
#pragma unroll 1
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    // use(origin, number, shared memory, lane) for a warp's part of a tile. These are recomputed each time, so that they
    // take no registers while products are summed.
    [[maybe_unused]] const auto with_warp = [&](const auto& use) __attribute__((always_inline)) {
      int thread = static_cast<int>(threadIdx.x);
      asm volatile("" : "+r"(thread));
      const int number = thread / 32;
      tile::Origin o = origin(index);
      o.m += number / Shape::warps_n * Shape::outputs_m;
      o.n += number % Shape::warps_n * Shape::outputs_n;
      use(o, index * Shape::warps + number, shared + stages * stage_bytes + number * of_warp, thread % 32);
    };
    if constexpr (OwnWay<Result, Shape>) {
      __syncwarp();
      with_warp([&](tile::Origin o, unsigned, unsigned char* buffer, int l) __attribute__((always_inline)) {
        result.template begin<Shape>(o.batch, o.m, o.n, g.m, g.n, buffer, l);
      });
    }
    typename Mma::Accumulator sums[rows][columns][4] = {}, with_rests[rows][columns][4] = {},
                              of_level[rows][columns][4] = {};
    if constexpr (rolling)  // read again, so that they take no registers during the previous store
      if (slabs_of_tile > 0) read(0, stage, 0);
#pragma unroll 1
    for (int slab = 0; slab < slabs_of_tile; ++slab) {
      typename Mma::Accumulator of_slab[rows][columns][4] = {};
      auto& x = by_slabs ? of_slab : sums;
      const int next = stage + 1 == stages ? 0 : stage + 1, free = stage == 0 ? stages - 1 : stage - 1;
      if constexpr (by_planes) {
        auto& of_rests = scaled && !by_slabs ? with_rests : x;
        // With two stages, the other slab is awaited at the end of this one: its copies start early.
        constexpr int copying_turns = stages == 2 ? all_turns / 2 : all_turns - 1;
        const auto multiply_turn = [&]<int turn>() __attribute__((always_inline)) {
          constexpr Turn now = turns<planes, of_step, steps, largest_last>[turn];
          if constexpr (turn + 1 < all_turns) {
            read_of_turn.template operator()<turn + 1>(stage);
          } else {
            wait_for_slab();
            read_of_turn.template operator()<0>(next);
          }
          if constexpr (turn < copying_turns) start_copies(free, turn, copying_turns);
          if constexpr (scaled && by_slabs && turn == all_turns - steps)
            for_each_accumulator<rows, columns>(
                [&](int i, int j, int r) { x[i][j][r] = math::multiply(x[i][j][r], of_rest); });
          add_products<Mma>(now.a + now.b > 0 ? of_rests : x, fragment_a[now.step * planes + now.a],
                            fragment_b[now.step * planes + now.b]);
        };
        [&]<int... turn>(std::integer_sequence<int, turn...>) __attribute__((always_inline)) {
          (multiply_turn.template operator()<turn>(), ...);
        }(std::make_integer_sequence<int, all_turns>{});
      }
      if constexpr (by_steps) {
        wait_for_slab();
        auto& to = by_levels ? of_level : sums;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
          read_a(0, stage, step, 0);
          read_a(1, stage, step, 1);
          // Reads two blocks of eight columns; the next two are read ahead.
          const auto read_two = [&](int j) __attribute__((always_inline)) {
            const std::uint32_t from = slabs + stage * stage_bytes + SlabA::bytes;
            reader_b.read(from, 16 * j, step, fragment_b[0][j % 2]);
            reader_b.read(from, 16 * j, steps + step, fragment_b[1][j % 2]);
          };
          read_two(0);
          if (step == 0) start_copies(free, 0, 1);
#pragma unroll
          for (int j = 0; j < columns / 2; ++j) {
            if (j + 1 < columns / 2) read_two(j + 1);
            typename Mma::Accumulator of_step[rows][2][4] = {};
            const auto add = [&](int part_a, int part_b) __attribute__((always_inline)) {
#pragma unroll
              for (int i = 0; i < rows; ++i)
#pragma unroll
                for (int c = 0; c < 2; ++c)
                  Mma::add(of_step[i][c], fragment_a[part_a][i], fragment_b[part_b][j % 2][2 * c],
                           fragment_b[part_b][j % 2][2 * c + 1]);
            };
            add(1, 0);
            add(0, 1);
            add(0, 0);
            for_each_accumulator<rows, 2>([&](int i, int c, int r) __attribute__((always_inline)) {
              auto& sum = to[i][2 * j + c][r];
              sum = math::add(sum, of_step[i][c][r]);
              asm volatile("" : "+f"(sum));  // added here: after advance()'s branches, all of a step would be live
            });
          }
        }
      }
      if constexpr (rolling) {
        static_assert(rows > 1, "B's fragments of the next slab are read behind wait_for_slab()");
#pragma unroll
        for (int step = 0; step < steps; ++step) {
          const bool last = step + 1 == steps;
          const std::uint32_t from = slabs + (last ? next : stage) * stage_bytes;
          const int step_read = last ? 0 : step + 1;
#pragma unroll
          for (int i = 0; i < rows; ++i) {
#pragma unroll
            for (int j = 0; j < columns; ++j) {
              Mma::add(sums[i][j], fragment_a[0][i], fragment_b[0][j / 2][j % 2 * 2], fragment_b[0][j / 2][j % 2 * 2 + 1]);
              if (i + 1 == rows && j % 2 == 1)
                reader_b.read(from + SlabA::bytes, 8 * (j - 1), step_read, fragment_b[0][j / 2]);
            }
            if (i == 0 && last) wait_for_slab();
            if (i == 0 && step == 0) start_copies(free, 0, 1);
            reader_a.read(from, 16 * i, step_read, fragment_a[0][i]);
          }
        }
      }
#pragma unroll
      for (int step = 0; step < (planes > 1 || rolling ? 0 : steps); ++step) {
        if (!ahead) {
          read(0, stage, step);
        } else if (step + 1 < steps) {
          read((step + 1) % 2, stage, step + 1);
        } else {
          wait_for_slab();
          read(0, next, 0);
        }
        if (step + 1 < steps) start_copies(free, step, steps - 1);
        if constexpr (decomposition.products > 1)
          add_split_products<Mma>(x, fragment_a[ahead * step % 2], fragment_b[ahead * step % 2]);
        else
          add_products<Mma>(x, fragment_a[ahead * step % 2], fragment_b[ahead * step % 2]);
      }
      if (!ahead && !rolling && planes == 1) wait_for_slab();
      if constexpr (by_slabs)
        for_each_accumulator<rows, columns>(
            [&](int i, int j, int r) { sums[i][j][r] = math::add(sums[i][j][r], of_slab[i][j][r]); });
      advance();
      stage = next;
      if constexpr (by_levels)
        if ((slab + 1) % (decomposition.grouping / depth) == 0 || slab + 1 == slabs_of_tile)
          for_each_accumulator<rows, columns>([&](int i, int j, int r) {
            sums[i][j][r] = math::add(sums[i][j][r], of_level[i][j][r]);
            of_level[i][j][r] = 0;
          });
    }
    if constexpr (scaled && !by_slabs)
      for_each_accumulator<rows, columns>(
          [&](int i, int j, int r) { sums[i][j][r] = math::fma(with_rests[i][j][r], of_rest, sums[i][j][r]); });
    if constexpr (OwnWay<Result, Shape>) {
      // begin()'s copies are complete with those of the slabs after them, unless the tile has too few slabs.
      if (slabs_of_tile < stages) {
        arch::commit_copies();
        arch::wait_for_copies<0>();
      }
      __syncwarp();
      with_warp([&](tile::Origin o, unsigned number, unsigned char* buffer, int l) __attribute__((always_inline)) {
        result.template store<Shape>(g, sums, o.batch, o.m, o.n, number, buffer, l);
      });
    } else {
      const tile::Origin o = origin(index);
      store_tile<Shape::outputs_n>(g, sums, result, o.batch, o.m + warp_m, o.n + warp_n,
                                   shared + stages * stage_bytes + warp * of_warp, lane);
    }
  }
  arch::wait_for_copies<0>();
}

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops on GPUs, in CUDA: a block of 16 × 16 threads computes a tile, each thread one output or 2 × 2, from slabs of 16 k in shared memory.
#include "loops.hpp"

#include <rigel/semirings.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <string>

namespace {

using rigel::Contraction, rigel::Kernel, rigel::Layout;

constexpr int side = 16, depth = 16;  // threads along a side of the block; k of a slab

// A batch of matrices, of which one stride is 1; `stride` is the other one.
struct Matrices {
  double* data;
  std::int64_t batch_stride, stride;
};

template <Layout layout>
__device__ double& element(const Matrices& x, std::int64_t l, std::int64_t i, std::int64_t j) {
  double* const data = x.data + l * x.batch_stride;
  return layout == Layout::row_major ? data[i * x.stride + j] : data[i + j * x.stride];
}

struct Arguments {
  Matrices a, b, c;
  std::int64_t batch, m, n, k, columns;  // columns: of tiles
  bool accumulate;
};

// Blocks are tiles (x), of several matrices (y). Each output is one chain in ascending k, as in the reference.
template <int tile, Layout of_a, Layout of_b, Layout of_c>
__global__ __launch_bounds__(side* side) void compute(const Arguments p) {
  constexpr int each = tile / side;  // outputs of a thread along a side
  __shared__ double a[depth][tile + 1], b[depth][tile + 1];
  const rigel::plus_times<double> s;
  const int thread = static_cast<int>(threadIdx.x), row = thread / side, column = thread % side;
  const std::int64_t m0 = blockIdx.x / p.columns * tile, n0 = blockIdx.x % p.columns * tile;
  for (std::int64_t l = blockIdx.y; l < p.batch; l += gridDim.y) {
    double sums[each][each] = {};
    const auto for_each_output = [&](const auto& visit) {
#pragma unroll
      for (int i = 0; i < each; ++i)
#pragma unroll
        for (int j = 0; j < each; ++j) {
          const std::int64_t m = m0 + row + i * side, n = n0 + column + j * side;
          if (m < p.m && n < p.n) visit(sums[i][j], element<of_c>(p.c, l, m, n));
        }
    };
    if (p.accumulate) for_each_output([](double& sum, double& c) { sum = c; });
    for (std::int64_t k0 = 0; k0 < p.k; k0 += depth) {
      const int terms = static_cast<int>(p.k - k0 < depth ? p.k - k0 : depth);
      // Neighbouring threads read neighbours in memory.
      for (int e = thread; e < depth * tile; e += side * side) {
        const int k_of_a = of_a == Layout::row_major ? e % depth : e / tile,
                  m = of_a == Layout::row_major ? e / depth : e % tile;
        const int k_of_b = of_b == Layout::row_major ? e / tile : e % depth,
                  n = of_b == Layout::row_major ? e % tile : e / depth;
        a[k_of_a][m] = k_of_a < terms && m0 + m < p.m ? element<of_a>(p.a, l, m0 + m, k0 + k_of_a) : 0;
        b[k_of_b][n] = k_of_b < terms && n0 + n < p.n ? element<of_b>(p.b, l, k0 + k_of_b, n0 + n) : 0;
      }
      __syncthreads();
      for (int k = 0; k < terms; ++k)
#pragma unroll
        for (int i = 0; i < each; ++i)
#pragma unroll
          for (int j = 0; j < each; ++j) sums[i][j] = s.step(sums[i][j], a[k][row + i * side], b[k][column + j * side]);
      __syncthreads();
    }
    for_each_output([](double& sum, double& c) { c = sum; });
  }
}

Matrices matrices(const rigel::Operand& o, Layout layout) {
  return {static_cast<double*>(o.data), o.batch_stride, layout == Layout::row_major ? o.row_stride : o.column_stride};
}

template <int tile, Layout of_a, Layout of_b, Layout of_c>
struct Loops {
  static void run(const Kernel<Contraction>& kernel, const Contraction& p, const rigel::Plan&, const rigel::Workspace&) {
    const std::int64_t rows = (p.m + tile - 1) / tile, columns = (p.n + tile - 1) / tile;
    const Arguments arguments{matrices(p.a, of_a), matrices(p.b, of_b), matrices(p.c, of_c), p.batch, p.m, p.n, p.k, columns,
                              p.accumulate};
    constexpr std::int64_t most_blocks_along_y = 65535;
    const dim3 blocks(static_cast<unsigned>(rows * columns), static_cast<unsigned>(std::min(p.batch, most_blocks_along_y)));
    compute<tile, of_a, of_b, of_c><<<blocks, side * side, 0, static_cast<cudaStream_t>(p.execution.stream)>>>(arguments);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
      throw rigel::Error(rigel::Code::device, kernel.info.name + ": " + cudaGetErrorString(error));
  }
};

}  // namespace

tiles::Run tiles::loop(int tile, const Layouts& layouts) {
  return tile == 16 ? loop_of<Loops, 16>(layouts) : loop_of<Loops, 32>(layouts);
}

rigel::Spaces tiles::spaces() { return rigel::bit(rigel::Space::cuda); }

// As measured on an H200. A larger tile loads less for each step.
double tiles::steps_per_second(int tile, const rigel::Execution& execution) {
  return (tile == 32 ? 3.1e10 : 1.7e10) * execution.multiprocessors;
}

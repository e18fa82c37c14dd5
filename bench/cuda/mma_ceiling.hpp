// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ceilings of tensor cores by mma.sync: products of fragments in registers, without a load, a barrier or a store. That is the
// inner loop of a cuda.mma kernel, alone.
#pragma once

#include <bench/cuda/ceiling.hpp>
#include <rigel/backends/cuda/arch/mma.hpp>

namespace bench {
namespace pair {

/// x + a·b for numbers of one type; for bits, x + 1 if both are set. Floats in two parts take three products per pair. The
/// issue rate of mma.sync is not documented, so these pairs have no `lanes`.
template <class Element, int products = 1>
struct tensor {
  using element = Element;
  static constexpr int products_of_pair = products, capability = 80;
  /// The elements along K of an instruction: 32 bytes, of doubles 64.
  static constexpr int k = std::is_same_v<Element, std::uint32_t> ? 256
                           : sizeof(Element) == 8                 ? 8
                                                                  : 32 / static_cast<int>(sizeof(Element));
};
struct tensor_f16 : tensor<rigel::half> {
  static constexpr const char* name = "mma/f16";
};
struct tensor_halves : tensor<rigel::half, 3> {
  static constexpr const char* name = "mma/f16/three products a pair";
};
struct tensor_bf16 : tensor<rigel::bfloat16> {
  static constexpr const char* name = "mma/bf16";
};
struct tensor_tf32 : tensor<float> {
  static constexpr const char* name = "mma/tf32";
};
struct tensor_split : tensor<float, 3> {
  static constexpr const char* name = "mma/tf32/three products a pair";
};
struct tensor_s8 : tensor<std::int8_t> {
  static constexpr const char* name = "mma/s8";
};
struct tensor_f64 : tensor<double> {
  static constexpr const char* name = "mma/f64";
};
struct tensor_b1 : tensor<std::uint32_t> {
  static constexpr const char* name = "mma/b1";
};

}  // namespace pair

namespace detail {

// A warp has 64 × 64 outputs, or 32 × 32 doubles, and reads `slabs` pairs of fragments, each as long along K as an
// instruction. A register of a fragment is a word, or a double.
template <class Element>
constexpr int tensor_rows = sizeof(Element) == 8 ? 2 : 4;
template <class Element>
constexpr int tensor_columns = 2 * tensor_rows<Element>;
template <class Element>
constexpr int tensor_registers = 4 * tensor_rows<Element> + 2 * tensor_columns<Element>;
template <class Element>
using tensor_register = std::conditional_t<sizeof(Element) == 8, double, std::uint32_t>;
constexpr int tensor_slabs = 2;

// The loop. As in ceiling_loop, the compiler can move nothing out of it. Each instruction adds to other sums than the 31
// before it.
template <class Element, int products>
__global__ void __launch_bounds__(256, 1)
    tensor_loop(int steps, int never, const Element* operands, typename rigel::arch::Mma<Element>::Accumulator* results) {
  using Mma = rigel::arch::Mma<Element>;
  using Register = tensor_register<Element>;
  constexpr int rows = tensor_rows<Element>, columns = tensor_columns<Element>, slabs = tensor_slabs;
  typename Mma::Accumulator x[rows][columns][4] = {};
  Register a[slabs][rows][4], b[slabs][columns][2];
  const auto read = [&](int from) {
    const auto* word = reinterpret_cast<const Register*>(operands) + from + threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < slabs; ++s) {
#pragma unroll
      for (int i = 0; i < 4 * rows; ++i, word += 32) a[s][i / 4][i % 4] = *word;
#pragma unroll
      for (int j = 0; j < 2 * columns; ++j, word += 32) b[s][j / 2][j % 2] = *word;
    }
  };
  read(0);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if (step == never) read(step);
#pragma unroll
    for (int s = 0; s < slabs; ++s)
#pragma unroll
      for (int p = 0; p < products; ++p)
#pragma unroll
        for (int i = 0; i < rows; ++i)
#pragma unroll
          for (int turn = 0; turn < columns; ++turn) {
            const int j = i % 2 ? columns - 1 - turn : turn;  // back and forth, as the kernels do
            Mma::add(x[i][j], a[s][i], b[s][j][0], b[s][j][1]);
          }
  }
  auto* to = results + (blockIdx.x * blockDim.x + threadIdx.x) * (rows * columns * 4);
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) *to++ = x[i][j][r];
}

template <class Pair>
  requires(Pair::products_of_pair > 0)
struct Loop<Pair> {
  using Operand = typename Pair::element;
  using Result = typename rigel::arch::Mma<Operand>::Accumulator;
  static constexpr int threads = 256;  // eight warps, one block per multiprocessor
  static constexpr int operands =
      tensor_slabs * tensor_registers<Operand> * 32 * static_cast<int>(sizeof(tensor_register<Operand>) / sizeof(Operand));
  static constexpr int results = 4 * tensor_rows<Operand> * tensor_columns<Operand>,
                       steps = (1 << 12) / Pair::products_of_pair;
  static constexpr double pairs = double(tensor_slabs) * results * Pair::k;
  static constexpr Numbers numbers = Numbers::normal;
  static auto kernel() { return tensor_loop<Operand, Pair::products_of_pair>; }
};

}  // namespace detail
}  // namespace bench

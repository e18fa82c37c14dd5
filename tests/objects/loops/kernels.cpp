// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two loops with the names of microkernels that scripts/check_loops.py must refuse: one works on numbers, the other has more
// accumulators than there are registers.
namespace rigel {

template <class, class>
struct plus_times;
template <class, class>
struct min_plus;

namespace backends::host {

struct neon;
using Row = float __attribute__((ext_vector_type(4)));

template <class Level, class S>
struct Microkernel {
  template <bool Ordered>
  static void run(int steps, const float* a, const Row* b, Row* out);
};

template <>
template <>
void Microkernel<neon, plus_times<float, float>>::run<false>(int steps, const float* a, const Row*, Row* out) {
  float x = 0;
#pragma clang loop vectorize(disable) unroll(disable)
  for (int k = 0; k < steps; ++k) x = __builtin_fmaf(a[2 * k], a[2 * k + 1], x);
  (*out)[0] = x;
}

template <>
template <>
void Microkernel<neon, min_plus<float, float>>::run<false>(int steps, const float* a, const Row* b, Row* out) {
  constexpr int rows = 40;
  Row x[rows] = {};
  for (int k = 0; k < steps; ++k)
#pragma unroll
    for (int i = 0; i < rows; ++i) x[i] = __builtin_elementwise_minimum(x[i], a[k * rows + i] + b[k]);
#pragma unroll
  for (int i = 0; i < rows; ++i) out[i] = x[i];
}

}  // namespace backends::host
}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: Hamming and Jaccard distances of packed codes, from counts of bits set in both: exact.
#include <rigel/backends/cuda/mma/codes.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_codes(Registry<Contraction>& registry) {
  const auto add = [&]<class S>() {
    for (const Kernel<Contraction>& k : codes_kernels<S>()) registry.add(k);
  };
  detail::for_each(zoo::bit_hamming{}, add);
  detail::for_each(zoo::bit_jaccard{}, add);
}

}  // namespace rigel::backends::mma

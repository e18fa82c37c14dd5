// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: Hamming and Jaccard distances of packed codes, by counts of where both have a bit: exact.
#include <rigel/backends/cuda/mma/codes.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_codes(Registry& registry) {
  const auto add = [&]<class S>() {
    for (const Kernel& k : codes_kernels<S>()) registry.add(k);
  };
  detail::for_each(zoo::bit_hamming{}, add);
  detail::for_each(zoo::bit_jaccard{}, add);
}

}  // namespace rigel::backends::mma

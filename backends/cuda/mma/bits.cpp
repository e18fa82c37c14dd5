// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: words of bits along K, joined by any_bit() or parity(), from counts of bits set in both.
#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_bits(Registry<Contraction>& registry) {
  using Words = type_list<or_and<std::uint32_t>, or_and<std::uint64_t>, xor_and<std::uint32_t>, xor_and<std::uint64_t>>;
  detail::for_each(Words{}, [&]<class S>() {
    for (const Kernel<Contraction>& k : kernels<S, std::uint32_t>()) registry.add(k);
  });
}

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.mma: words whose bits lie along k, joined by any_bit() or parity(): what is counted is where both are set.
#include <backends/cuda/mma/contract.hpp>
#include <backends/cuda/mma/register.hpp>

namespace rigel::backends::mma {

void add_bits(Registry& registry) {
  const auto add = [&]<class... S>(type_list<S...>) {
    const auto one = [&](const std::vector<Kernel>& list) {
      for (const Kernel& k : list) registry.add(k);
    };
    (one(kernels<S, std::uint32_t>()), ...);
  };
  add(type_list<or_and<std::uint32_t>, or_and<std::uint64_t>, xor_and<std::uint32_t>, xor_and<std::uint64_t>>{});
}

}  // namespace rigel::backends::mma

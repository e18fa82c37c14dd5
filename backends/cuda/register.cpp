// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the CUDA backend offers.
#include <rigel/backends/cuda/hopper/register.hpp>
#include <rigel/backends/cuda/mma/register.hpp>
#include <rigel/backends/cuda/simt/register.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends {

void register_cuda(Registry<Contraction>& registry) {
  detail::for_each_of_zoo([&]<class List>() { simt::add<List>(registry); });
  mma::add_doubles(registry);
  mma::add_floats(registry);
  mma::add_halves(registry);
  mma::add_bfloat16s(registry);
  mma::add_bytes(registry);
  mma::add_bits(registry);
  mma::add_codes(registry);
  mma::add_distances(registry);
  mma::add_log_sums(registry);
  mma::add_log_sums_of_doubles(registry);
#ifdef RIGEL_CUDA_HOPPER
  hopper::add_floats(registry);
  hopper::add_halves(registry);
  hopper::add_halves_once(registry);
  hopper::add_bfloat16s(registry);
  hopper::add_bfloat16s_once(registry);
  hopper::add_bytes(registry);
#endif
}

}  // namespace rigel::backends

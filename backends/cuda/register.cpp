// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the CUDA backend offers.
#include <backends/cuda/hopper/register.hpp>
#include <backends/cuda/mma/register.hpp>
#include <backends/cuda/simt/register.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends {

void register_cuda(Registry& registry) {
  simt::add<zoo::plus_times>(registry);
  simt::add<zoo::min_plus>(registry);
  simt::add<zoo::max_plus>(registry);
  simt::add<zoo::max_min>(registry);
  simt::add<zoo::min_max>(registry);
  simt::add<zoo::max_times>(registry);
  simt::add<zoo::min_times>(registry);
  simt::add<zoo::or_and>(registry);
  simt::add<zoo::xor_and>(registry);
  simt::add<zoo::log_plus>(registry);
  simt::add<zoo::l1>(registry);
  simt::add<zoo::l2_squared>(registry);
  simt::add<zoo::lp>(registry);
  simt::add<zoo::linf>(registry);
  simt::add<zoo::hamming>(registry);
  simt::add<zoo::bit_hamming>(registry);
  simt::add<zoo::bit_jaccard>(registry);
  mma::add_doubles(registry);
  mma::add_floats(registry);
  mma::add_short_floats(registry);
  mma::add_bytes(registry);
  mma::add_bits(registry);
  mma::add_codes(registry);
  mma::add_distances(registry);
  mma::add_log_sums(registry);
#ifdef RIGEL_CUDA_HOPPER
  hopper::add_floats(registry);
  hopper::add_short_floats(registry);
  hopper::add_bytes(registry);
#endif
}

}  // namespace rigel::backends

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the CUDA backend offers for reduce().
#include <rigel/backends/cuda/mma/register_reduce.hpp>
#include <rigel/backends/cuda/reduce/register.hpp>
#include <rigel/semirings.hpp>

namespace rigel::backends {

void register_cuda(Registry<Reduction>& registry);
void register_cuda(Registry<Reduction>& registry) {
  detail::for_each_of_zoo([&]<class List>() { reduce::add<List>(registry); });
  mma::add_nearest_floats(registry);
  mma::add_nearest_halves(registry);
  mma::add_nearest_bfloat16s(registry);
  points::add_weighted_sums(registry);
  points::add_softmax(registry);
  points::add_doubles(registry);
  points::add_expanded(registry);
  points::add_wide_sums(registry);
  best::add(registry);
}

}  // namespace rigel::backends

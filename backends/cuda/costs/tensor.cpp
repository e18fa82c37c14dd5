// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/costs/tensor.hpp>

#include <rigel/backends/cuda/fitted/sm_90.hpp>
#include <rigel/card.hpp>

namespace rigel::backends::tensor::costs {

double pass_seconds(const Execution& execution, double bytes, Pass pass) {
  namespace fit = cuda::fitted::sm_90::passes;
  if (bytes == 0) return 0;
  const Card& card = card_of(execution);
  const double share = pass == Pass::planes ? fit::planes : pass == Pass::words ? fit::words : fit::elements;
  return card.next_launch_seconds + fit::next_prologue / card.clock + bytes / (share * card.memory_bytes_per_second);
}

}  // namespace rigel::backends::tensor::costs

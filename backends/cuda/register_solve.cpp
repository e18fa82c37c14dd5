// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the CUDA backend offers for the solves.
#include <rigel/backends/cuda/solver/register.hpp>

namespace rigel::backends {

void register_cuda(Registry<Solve>& registry);
void register_cuda(Registry<Solve>& registry) {
  solver::add_small(registry);
  solver::add_blocked_cholesky(registry);
  solver::add_blocked_lu(registry);
  solver::add_jacobi(registry);
#ifdef RIGEL_CUDA_CUSOLVER
  solver::add_cusolver(registry);
#endif
}

}  // namespace rigel::backends

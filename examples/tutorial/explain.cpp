// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/rigel.hpp>

#include <cstdio>

// Which kernels could compute a product with the reference's bits, and why the others do not.
int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  Kokkos::DefaultHostExecutionSpace exec;

  Kokkos::View<float**, Kokkos::HostSpace> x("x", 1000, 64), c("c", 1000, 1000);
  const rigel::plus_times<float> sum;
  const rigel::ContractOptions options{.require = rigel::Promise::reference_bits};

  // The same arguments as contract(). For reading:
  std::printf("%s\n", rigel::explain(exec, sum, x, rigel::transposed(x), c, {}, options).c_str());

  // The same as data, for programs:
  const auto problem = rigel::problem_of(exec, sum, x, rigel::transposed(x), c, rigel::epilogue::Program{}, options);
  for (const auto& candidate : rigel::candidates(problem))
    if (candidate.chosen)
      std::printf("chosen: family %s; it promises the reference's bits: %s\n", candidate.kernel->info.family.c_str(),
                  covers(candidate.kernel->info.promises, options.require) ? "yes" : "no");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/rigel.hpp>

#include <cstdio>

#ifndef KOKKOS_ENABLE_CUDA
int main() { std::printf("skipped: CUDA graphs need Kokkos::Cuda\n"); }
#else
// Captures a product and its epilogue once; replays it with another factor, which the epilogue reads from a view.
int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  Kokkos::Cuda exec(stream);

  using View = Kokkos::View<float**, Kokkos::Cuda>;
  View a("a", 64, 4096), b("b", 4096, 64), c("c", 64, 64);
  Kokkos::View<float, Kokkos::Cuda> factor("factor");
  Kokkos::deep_copy(a, 1), Kokkos::deep_copy(b, 1), Kokkos::deep_copy(factor, 1);
  const auto call = [&] { rigel::contract(exec, rigel::plus_times<float>{}, a, b, c, rigel::epilogue::scale(factor)); };

  call();  // once as usual: loads the kernel
  rigel::presize(exec, rigel::workspace_size(exec, rigel::plus_times<float>{}, a, b, c, rigel::epilogue::scale(factor)));
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  call();
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&replay, graph, 0);

  for (const float value : {1.0F, 0.5F}) {
    Kokkos::deep_copy(exec, factor, value);
    cudaGraphLaunch(replay, stream);
    std::printf("factor %g: c(0,0) = %g\n", value, Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c)(0, 0));
  }
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
}
#endif

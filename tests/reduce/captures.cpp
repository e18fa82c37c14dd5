// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that wait for their stream, while it is being captured in a CUDA graph.
#include <tests/support/error.hpp>
#include <tests/support/skip.hpp>

#include <doctest/doctest.h>

#include <Kokkos_Core.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <rigel/closure.hpp>
#include <rigel/kernel_solve.hpp>
#include <rigel/kmeans.hpp>
#include <rigel/linalg.hpp>
#include <rigel/sinkhorn.hpp>

#include <tests/support/stream.hpp>
#endif

TEST_CASE("captures: calls that wait are refused, and the capture goes on") {
#ifdef KOKKOS_ENABLE_CUDA
  const support::Stream stream;
  {
    const Kokkos::Cuda exec(stream);
    using Matrix = Kokkos::View<double**, Kokkos::Cuda>;
    using Vector = Kokkos::View<double*, Kokkos::Cuda>;
    const Matrix x("x", 20, 3), square("square", 20, 20), right("right", 20, 1);
    const Vector a("a", 20), f("f", 20), g("g", 20);
    const Kokkos::View<int*, Kokkos::Cuda> labels("labels", 20);
    const Matrix centres("centres", 2, 3);
    Kokkos::fence();
    const rigel::metric::euclidean metric;
    const auto refused = [&](const char* function, const auto& call) {
      CAPTURE(function);
      cudaGraph_t graph = nullptr;
      REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
      const auto caught = support::caught(call);
      CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      std::size_t nodes = 1;
      CHECK(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
      CHECK(nodes == 0);
      cudaGraphDestroy(graph);
      CHECK(cudaGetLastError() == cudaSuccess);
      CHECK(caught.code == rigel::Code::invalid_argument);
      CHECK(caught.lacks({function, "the stream of the execution space is being captured"}) == "");
    };
    refused("kmeans: ", [&] { rigel::kmeans(exec, x, 2, centres, labels); });
    refused("sinkhorn: ",
            [&] { rigel::sinkhorn(exec, x, x, a, a, rigel::metric::squared_euclidean{}, f, g, {.epsilon = 0.1}); });
    refused("kernel_solve: ", [&] { rigel::kernel_solve(exec, x, a, metric, rigel::kernel::gaussian{1}, 1e-2, f); });
    refused("closure: ", [&] { rigel::closure(exec, rigel::min_plus<double>{}, square); });
    refused("cholesky_solve: ",
            [&] { rigel::cholesky_solve(exec, square, right, right, {.overwrite_b = true, .check = true}); });
  }
#else
  support::skip("captures: calls that wait: no CUDA in this build");
#endif
}

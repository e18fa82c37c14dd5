// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bad input: each message names the argument, its extents and what was expected, and nothing is written. Workspaces and kernels by
// name.
#include <tests/gradient/problems.hpp>
#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>

using support::caught;
using support::matrix;
using Values = std::vector<double>;

TEST_CASE_TEMPLATE("gradients refuse bad input", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = matrix<float, Exec>(4, 7, {}, "weights"), b = matrix<float, Exec>(3, 4, {}, "known"),
             c = matrix<float, Exec>(2, 4, {}, "coefficients"), d = matrix<float, Exec>(3, 7, {}, "points");
  const auto out = support::batch<float, Exec>(2, 3, 7, Values(42, -7), "grad");
  const auto refused = [&](std::initializer_list<const char*> texts, const auto& call) {
    const support::Caught error = caught(call);
    CHECK(error.code == rigel::Code::invalid_argument);
    CHECK(error.lacks(texts) == "");
    CHECK(support::values(out) == Values(42, -7));
  };
  const auto gradient = [&](const auto& a_, const auto& b_, const auto& c_, const auto& d_) {
    return [&] { rigel::cdist_gradient(exec, 1, a_, b_, c_, d_, out); };
  };
  SUBCASE("extents") {
    refused({"cdist_gradient: A 'weights' is 4x6", "expected 4x7 (K x M) to match Out 'grad' 2x3x7"},
            gradient(matrix<float, Exec>(4, 6, {}, "weights"), b, c, d));
    refused({"B 'known' is 3x5", "expected 3x4 (N x K)"}, gradient(a, matrix<float, Exec>(3, 5, {}, "known"), c, d));
    refused({"C 'coefficients' is 3x4", "expected 2x4 (O x K)"},
            gradient(a, b, matrix<float, Exec>(3, 4, {}, "coefficients"), d));
    refused({"D 'points' is 2x7", "expected 3x7 (N x M)"}, gradient(a, b, c, matrix<float, Exec>(2, 7, {}, "points")));
  }
  SUBCASE("batches") {
    const auto many = support::batch<float, Exec>(3, 4, 7, {}, "weights");
    refused({"A 'weights' is 3x4x7", "expected 1 batches or one to match Out 'grad' 2x3x7"}, gradient(many, b, c, d));
  }
  SUBCASE("overlap") {
    const auto all = Kokkos::View<float***, Kokkos::LayoutRight, typename Exec::memory_space>("all", 2, 3, 7);
    const auto first = Kokkos::subview(all, 0, Kokkos::ALL, Kokkos::ALL);
    refused({"Out 'all' 2x3x7 overlaps D 'all' 3x7", "expected distinct elements"},
            [&] { rigel::cdist_gradient(exec, 2, a, b, c, first, all); });
    const Kokkos::View<float***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged> folded(
        all.data(), Kokkos::LayoutStride(2, 20, 3, 7, 7, 1));
    refused({"Out", "2x3x7 overlaps itself (strides 0, 20, 7, 1)"},
            [&] { rigel::cdist_gradient(exec, 2, a, b, c, d, folded); });
    // Batches and outputs that no single index counts.
    const Kokkos::View<float****, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged> crossed(
        all.data(), Kokkos::LayoutStride(2, 1, 2, 11, 3, 4, 2, 2));
    const auto small = matrix<float, Exec>(4, 2), coefficients = matrix<float, Exec>(2, 4),
               points = matrix<float, Exec>(3, 2);
    refused({"overlaps itself"}, [&] { rigel::cdist_gradient(exec, 2, small, b, coefficients, points, crossed); });
  }
  SUBCASE("p and epsilon") {
    for (const double p : {0., -1., std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
      refused({"cdist_gradient: p is", "expected a finite number above 0"},
              [&] { rigel::cdist_gradient(exec, p, a, b, c, d, out); });
    refused({"epsilon is -1", "0 or more"}, [&] { rigel::cdist_gradient(exec, 1, a, b, c, d, out, -1); });
    const Kokkos::View<float*, typename Exec::memory_space> p("powers", 2);
    refused({"the view of p 'powers' has 2 numbers, expected 1"}, [&] { rigel::cdist_gradient(exec, p, a, b, c, d, out); });
  }
  SUBCASE("no data") {
    const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged> nothing(nullptr,
                                                                                                                   4, 7);
    refused({"A 4x7 has no data"}, gradient(nothing, b, c, d));
  }
  SUBCASE("kernels by name, and workspaces") {
    const auto missing = caught([&] { rigel::cdist_gradient(exec, 1, a, b, c, d, out, {.kernel = "nobody"}); });
    CHECK(missing.code == rigel::Code::not_found);
    CHECK(missing.lacks({"gradient: no kernel is named 'nobody'"}) == "");
    for (const std::string& name : gradient::kernels_of<rigel::gradient_of::manhattan<float>, Exec>()) {
      CAPTURE(name);
      const rigel::gradient_of::manhattan<float> functor;
      rigel::GradientOptions options;
      options.kernel = name;
      if (!gradient::covering(rigel::gradient_problem(exec, functor, a, b, c, d, out, options), name)) continue;
      const std::size_t bytes = rigel::gradient_workspace_size(exec, functor, a, b, c, d, out, options);
      if (bytes == 0) continue;
      const Kokkos::View<std::byte*, typename Exec::memory_space> memory("memory", bytes + 256);
      auto* const base = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
      options.workspace = {.data = base, .bytes = bytes - 1};
      refused({"contract_gradient: the workspace has", name.c_str()},
              [&] { rigel::contract_gradient(exec, functor, a, b, c, d, out, options); });
      options.workspace.bytes = bytes;
      rigel::contract_gradient(exec, functor, a, b, c, d, out, options);
      CHECK(support::values(out) == Values(42, 0));
      support::fill(out, Values(42, -7));
    }
  }
}

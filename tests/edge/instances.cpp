// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several host threads, each on an instance of its own, at once.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <atomic>
#include <thread>

using support::matrix;

TEST_CASE_TEMPLATE("instances: several host threads on several instances at once", Exec, RIGEL_TEST_SPACES) {
  constexpr int threads = 2, rounds = 20, m = 40, n = 33, depth = 50;
  const std::vector<Exec> instances = Kokkos::Experimental::partition_space(Exec{}, std::vector<int>(threads, 1));
  for (const auto& info : support::kernels_on(Exec{}, "min_plus", rigel::Scalar::f32)) {
    CAPTURE(info.name);
    const auto tiny = matrix<float, Exec>(1, 1), result = matrix<float, Exec>(1, 1);
    const auto once = [&] {
      rigel::contract(Exec{}, rigel::min_plus<float>{}, tiny, tiny, result, rigel::epilogue::Program{},
                      {.kernel = info.name});
    };
    if (!support::ran(info, once)) continue;
    // Thread t: A(m, k) = m + t, B(k, n) = |k − n|: the minimum is m + t.
    std::vector<support::Matrix<float, Exec>> a, b, c;
    for (int t = 0; t < threads; ++t) {
      std::vector<double> x, y;
      for (int i = 0; i < m * depth; ++i) x.push_back(i / depth + t);
      for (int i = 0; i < depth * n; ++i) y.push_back(std::abs(i / n - i % n));
      a.push_back(matrix<float, Exec>(m, depth, x));
      b.push_back(matrix<float, Exec>(depth, n, y));
      c.push_back(matrix<float, Exec>(m, n));
    }
    std::atomic<int> thrown = 0;
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        try {
          const rigel::ContractOptions options{.kernel = info.name};
          for (int r = 0; r < rounds; ++r)
            rigel::contract(instances[t], rigel::min_plus<float>{}, a[t], b[t], c[t], rigel::epilogue::scale(2), options);
          instances[t].fence();
        } catch (...) {
          ++thrown;
        }
      });
    for (auto& thread : running) thread.join();
    CHECK(thrown == 0);
    for (int t = 0; t < threads; ++t) {
      const auto actual = support::values(c[t]);
      int wrong = 0;
      for (int i = 0; i < m * n; ++i) wrong += actual[i] != 2 * (i / n + t);
      CHECK(wrong == 0);
    }
  }
}

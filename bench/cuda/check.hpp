// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels on the card that is about to be measured, against the reference, on odd extents: a fast wrong result is none.
#pragma once

#include <bench/cuda/device.hpp>
#include <rigel/contract.hpp>

#include <cstdio>
#include <string>

namespace bench {

/// How many calls gave other bits than the reference; each one is named on stderr.
class Checks {
 public:
  explicit Checks(const Exec& exec) : exec_(exec) {}

  /// One kernel of a semiring on sixty extents and five combinations of layouts, C starting with random values.
  template <class S>
  void kernel(const S& s, const std::string& name) {
    using Right = Kokkos::LayoutRight;
    using Left = Kokkos::LayoutLeft;
    const auto epilogue = rigel::epilogue::scale(0.5) | rigel::epilogue::add_diagonal(1);
    for (const int m : {1, 127, 256, 300})
      for (const int n : {3, 256, 301})
        for (const int k : {0, 1, 7, 16, 65}) {
          call<Right, Right, Right>(s, m, n, k, name, false);
          call<Left, Left, Left>(s, m, n, k, name, false);
          call<Right, Left, Right>(s, m, n, k, name, true);
          call<Left, Right, Left>(s, m, n, k, name, true, epilogue);
          call<Right, Left, Left>(s, m, n, k, name, false, epilogue);
        }
  }

  int wrong() const { return wrong_; }

 private:
  template <class LayoutA, class LayoutB, class LayoutC, class S>
  void call(const S& s, int m, int n, int k, const std::string& name, bool accumulate,
            const rigel::epilogue::Program& epilogue = {}) {
    using T = typename S::element;
    const auto a = uninitialized<T, LayoutA>(m, k);
    const auto b = uninitialized<T, LayoutB>(k, n);
    const auto c = uninitialized<rigel::result_t<S>, LayoutC>(m, n),
               expected = uninitialized<rigel::result_t<S>, LayoutC>(m, n);
    fill(exec_, a, 1);
    fill(exec_, b, 2);
    fill(exec_, c, 3);
    Kokkos::deep_copy(exec_, expected, c);
    rigel::ContractOptions options;
    options.accumulate = accumulate;
    options.kernel = name;
    rigel::contract(exec_, s, a, b, c, epilogue, options);
    options.kernel = "reference";
    rigel::contract(exec_, s, a, b, expected, epilogue, options);
    long differences = 0;
    Kokkos::parallel_reduce(
        "bench::compare", Kokkos::RangePolicy<Exec>(exec_, 0, m * n),
        KOKKOS_LAMBDA(const int i, long& sum) {
          const auto x = c(i / n, i % n), y = expected(i / n, i % n);
          sum += !(x == y || (x != x && y != y));
        },
        differences);
    exec_.fence();
    if (differences == 0) return;
    ++wrong_;
    std::fprintf(stderr, "%s: %ld of %d x %d results differ from the reference, K = %d, accumulate %d\n", name.c_str(),
                 differences, m, n, k, accumulate);
  }

  Exec exec_;
  int wrong_ = 0;
};

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks kernels against the reference, on odd extents and on the card that is about to be measured, since the speed of a wrong
// result means nothing.
#pragma once

#include <bench/cuda/device.hpp>
#include <rigel/contract.hpp>

#include <cstdio>
#include <string>
#include <string_view>

namespace bench {

/// Counts wrong calls: those whose bits differ from the reference's or, for kernels that do not promise its bits, whose results
/// differ by more than both kernels' bounds allow. It prints each one to stderr.
class Checks {
 public:
  explicit Checks(const Exec& exec, Numbers numbers = Numbers::uniform) : exec_(exec), numbers_(numbers) {}

  /// Checks one kernel of a semiring on 72 extents and five combinations of layouts, with random initial values in C.
  /// `precision` is the one that admits the kernel; every epilogue begins with `first`. C has the result's type unless another
  /// one is given.
  template <class C = void, class S>
  void kernel(const S& s, const std::string& name, rigel::Precision precision = rigel::Precision::accumulator,
              const rigel::epilogue::Program& first = {}) {
    using Value = std::conditional_t<std::is_void_v<C>, rigel::result_t<S>, C>;
    // A type of C that holds the results of all epilogues. Numbers that are not whole cannot start a chain of integers.
    using Number = std::conditional_t<std::is_integral_v<Value>, double, Value>;
    using Right = Kokkos::LayoutRight;
    using Left = Kokkos::LayoutLeft;
    rigel::ContractOptions options;
    options.kernel = name;
    options.precision = precision;
    rigel::ContractOptions accumulating = options;
    accumulating.accumulate = true;
    const auto epilogue = first | rigel::epilogue::scale(0.5) | rigel::epilogue::add_diagonal(1);
    for (const int m : {1, 127, 256, 300})
      for (const int n : {3, 256, 301})
        for (const int k : {0, 1, 7, 16, 65, 192}) {
          call<Right, Right, Right, Value>(s, m, n, k, options, first);
          call<Left, Left, Left, Value>(s, m, n, k, options, first);
          if constexpr (rigel::can_accumulate<S>) {
            call<Right, Left, Right, Value>(s, m, n, k, accumulating, first);
            if constexpr (std::is_same_v<Number, Value>) call<Left, Right, Left, Value>(s, m, n, k, accumulating, epilogue);
          }
          call<Right, Left, Left, Number>(s, m, n, k, options, epilogue);
        }
  }

  int wrong() const { return wrong_; }

 private:
  template <class LayoutA, class LayoutB, class LayoutC, class C, class S>
  void call(const S& s, int m, int n, int k, rigel::ContractOptions options, const rigel::epilogue::Program& epilogue) {
    using T = typename S::element;
    const auto a = uninitialized<T, LayoutA>(m, k);
    const auto b = uninitialized<T, LayoutB>(k, n);
    const auto c = uninitialized<C, LayoutC>(m, n), expected = uninitialized<C, LayoutC>(m, n);
    fill(exec_, a, 1, numbers_);
    fill(exec_, b, 2, numbers_);
    fill(exec_, c, 3, numbers_);
    Kokkos::deep_copy(exec_, expected, c);
    const std::string name(options.kernel);
    const auto chosen = [&](const auto& to) {
      return rigel::detail::with_problem(exec_, s, a, b, to, epilogue, options,
                                         [](const rigel::Contraction& p) { return rigel::select(p).info; });
    };
    rigel::KernelInfo info;
    try {
      info = chosen(c);
    } catch (const rigel::Error& e) {  // tiles that store sums as they are take no other C
      using enum rigel::Decline;
      const rigel::Decline why = e.decline();
      if (why != epilogue && why != layout && why != accumulate && why != result) throw;
      return;
    }
    rigel::contract(exec_, s, a, b, c, epilogue, options);
    options.kernel = "reference";
    Matrix<double> sizes;
    double tolerance = 0;
    if (!covers(info.promises, rigel::Promise::reference_bits)) {
      sizes = absolute_sums(s, a, b, expected, epilogue, options.accumulate);
      const rigel::Accuracy other = chosen(expected).accuracy;
      const double units = info.accuracy.of(k) + other.of(k);
      tolerance = units * unit<typename S::accumulator> + 2 * unit<C>;
    }
    rigel::contract(exec_, s, a, b, expected, epilogue, options);
    long differences = 0;
    Kokkos::parallel_reduce(
        "bench::compare", Kokkos::RangePolicy<Exec>(exec_, 0, m * n),
        KOKKOS_LAMBDA(const int i, long& sum) {
          const auto x = c(i / n, i % n), y = expected(i / n, i % n);
          const bool equal = x == y || (x != x && y != y);
          const double difference = Kokkos::abs(static_cast<double>(x) - static_cast<double>(y));
          const bool near = tolerance > 0 && difference <= tolerance * sizes(i / n, i % n);
          sum += !equal && !near;
        },
        differences);
    exec_.fence();
    if (differences == 0) return;
    ++wrong_;
    std::fprintf(stderr, "%s: %ld of %d x %d results differ from the reference, K = %d, accumulate %d\n", name.c_str(),
                 differences, m, n, k, options.accumulate);
  }

  /// Unit roundoff.
  template <class T>
  static constexpr double unit = std::is_same_v<T, rigel::bfloat16> ? 0x1p-8
                                 : std::is_same_v<T, rigel::half>   ? 0x1p-11
                                 : std::is_same_v<T, double>        ? 0x1p-53
                                                                    : 0x1p-24;

  // The scale of errors, if the epilogue grows with its argument: epilogue(Σ_k |a ⊗ b|), with |C| among the terms if C starts
  // the chain. For logarithms it is 1 + |C| + max_k |a| + max_k |b| instead of the sum.
  template <class S, class AView, class BView, class CView>
  Matrix<double> absolute_sums(const S& s, const AView& a, const BView& b, const CView& c,
                               const rigel::epilogue::Program& epilogue, bool accumulate) const {
    using Operand = rigel::operand_t<S>;
    const auto n = static_cast<int>(c.extent(1)), k = static_cast<int>(a.extent(1));
    const auto sizes = uninitialized<double>(c.extent(0), n);
    Kokkos::parallel_for(
        "bench::absolute_sums", Kokkos::RangePolicy<Exec>(exec_, 0, sizes.size()), KOKKOS_LAMBDA(const int i) {
          const int row = i / n, column = i % n;
          double sum = accumulate ? Kokkos::abs(static_cast<double>(c(row, column))) : 0;
          if constexpr (rigel::Number<typename S::accumulator>) {
            for (int j = 0; j < k; ++j)
              sum += Kokkos::abs(
                  static_cast<double>(s.multiply(static_cast<Operand>(a(row, j)), static_cast<Operand>(b(j, column)))));
          } else {
            double largest_a = 0, largest_b = 0;
            for (int j = 0; j < k; ++j) {
              largest_a = Kokkos::max(largest_a, Kokkos::abs(static_cast<double>(a(row, j))));
              largest_b = Kokkos::max(largest_b, Kokkos::abs(static_cast<double>(b(j, column))));
            }
            sum += 1 + largest_a + largest_b;
          }
          sizes(row, column) = epilogue(sum, row, column, 0);
        });
    return sizes;
  }

  Exec exec_;
  Numbers numbers_;
  int wrong_ = 0;
};

}  // namespace bench

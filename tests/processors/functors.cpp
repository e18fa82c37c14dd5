// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's functors, whose host kernels are compiled here with this program's instructions: vectors of their width, and conversions
// and fused operations where they are instructions. Numbers are small integers, so that every sum is exact.
#include <rigel/contract.hpp>

#include <tests/support/matrix.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class T>
struct Products : rigel::plus_times<T> {
  using self = Products;
};
template <class T>
struct Paths : rigel::min_plus<T> {
  using self = Paths;
};

int a_value(int i, int k) { return (7 * i + 3 * k) % 5 - 2; }
int b_value(int k, int j) { return (5 * j + 2 * k) % 7 - 3; }

/// Every kernel of a functor of T on the host: whole vectors and rests along each extent.
template <class S, class Combine>
void check(int start, const Combine& combine) {
  using T = typename S::element;
  constexpr int m = 37, n = 45, k = 19;
  const auto a = support::matrix<T, Exec>(m, k), b = support::matrix<T, Exec>(k, n), c = support::matrix<T, Exec>(m, n);
  for (int l = 0; l < k; ++l) {
    for (int i = 0; i < m; ++i) a(i, l) = static_cast<T>(static_cast<float>(a_value(i, l)));
    for (int j = 0; j < n; ++j) b(l, j) = static_cast<T>(static_cast<float>(b_value(l, j)));
  }
  for (const std::string kernel : {"", "reference", "portable", "host"}) {
    CAPTURE(kernel);
    rigel::contract(Exec{}, S{}, a, b, c, rigel::epilogue::Program{}, {.kernel = kernel});
    int wrong = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        int sum = start;
        for (int l = 0; l < k; ++l) sum = combine(sum, a_value(i, l), b_value(l, j));
        wrong += static_cast<float>(c(i, j)) != static_cast<float>(sum);
      }
    CHECK(wrong == 0);
  }
}

constexpr auto add_product = [](int sum, int a, int b) { return sum + a * b; };
constexpr auto least_sum = [](int sum, int a, int b) { return std::min(sum, a + b); };

}  // namespace

TEST_CASE("processors: kernels of functors") {
  check<Products<float>>(0, add_product);
  check<Products<double>>(0, add_product);
  check<Products<rigel::half>>(0, add_product);
  check<Products<rigel::bfloat16>>(0, add_product);
  check<Paths<std::int32_t>>(1000, least_sum);
}

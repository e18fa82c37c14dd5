// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls whose kernels are instantiated here: with a semiring, an epilogue and a metric of the user's, and with results as bools.
#include <rigel/rigel.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Matrix = Kokkos::View<T**, Exec>;

struct WeightedL1 {
  using element = float;
  using accumulator = float;
  float w;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return w * Kokkos::abs(a - b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

struct Moments {
  double sum, squares;
};
struct SumsOfProducts {
  using element = double;
  using accumulator = Moments;
  KOKKOS_FUNCTION static Moments identity() { return {0, 0}; }
  KOKKOS_FUNCTION static Moments multiply(double a, double b) { return {a * b, a * a * b * b}; }
  KOKKOS_FUNCTION static Moments add(Moments x, Moments y) { return {x.sum + y.sum, x.squares + y.squares}; }
  KOKKOS_FUNCTION static double result(Moments x) { return x.squares - x.sum * x.sum; }
};

struct Doubled {
  KOKKOS_FUNCTION float operator()(float value, std::int64_t, std::int64_t, std::int64_t) const { return 2 * value; }
};

}  // namespace

void contract(const Exec& exec, const Matrix<float>& a, const Matrix<float>& c, const Matrix<bool>& near);
void contract(const Exec& exec, const Matrix<float>& a, const Matrix<float>& c, const Matrix<bool>& near) {
  rigel::contract(exec, WeightedL1{0.5f}, a, rigel::transposed(a), c, {.accumulate = true});
  rigel::contract(exec, WeightedL1{0.5f}, a, rigel::transposed(a), c, Doubled{});
  rigel::contract(exec, rigel::l1<float>{}, a, rigel::transposed(a), near, rigel::epilogue::threshold(1));
  rigel::cdist(exec, a, a, c, rigel::metric::minkowski{1.5}, Doubled{});
}

void moments(const Exec& exec, const Matrix<double>& a, const Matrix<double>& c);
void moments(const Exec& exec, const Matrix<double>& a, const Matrix<double>& c) {
  rigel::contract(exec, SumsOfProducts{}, a, rigel::transposed(a), c);
  rigel::closure(exec, rigel::min_plus<double>{}, c);
}

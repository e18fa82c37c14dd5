// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract() gives one clear message if an epilogue is missing or does not take the semiring's results, and if bytes are
// passed for bools.
#include <rigel/contract.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::HostSpace>;

struct Pair {
  float largest, sum;
};
struct Pairs {
  using element = float;
  using accumulator = Pair;
  KOKKOS_FUNCTION static Pair identity() { return {0, 0}; }
  KOKKOS_FUNCTION static Pair multiply(float a, float b) { return {a * b, a + b}; }
  KOKKOS_FUNCTION static Pair add(Pair x, Pair y) { return {x.largest > y.largest ? x.largest : y.largest, x.sum + y.sum}; }
};
struct Halved {
  KOKKOS_FUNCTION float operator()(float v, std::int64_t, std::int64_t, std::int64_t) const { return v / 2; }
};
struct Either {
  using element = bool;
  using accumulator = bool;
  KOKKOS_FUNCTION static bool identity() { return false; }
  KOKKOS_FUNCTION static bool multiply(bool a, bool b) { return a && b; }
  KOKKOS_FUNCTION static bool add(bool x, bool y) { return x || y; }
};

}  // namespace

// expected-error@rigel/contract.hpp:* 4 {{Results that are no numbers, as those of with_argument, need an epilogue}}
void results(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c, const Matrix<int>& indices) {
  const rigel::with_argument<rigel::min_plus<float>> least;
  rigel::contract(Exec(), least, a, b, c);
  rigel::contract(Exec(), Pairs{}, a, b, c);
  rigel::contract(Exec(), Pairs{}, a, b, c, Halved{});
  rigel::contract(Exec(), rigel::min_plus<float>{}, a, b, c, rigel::epilogue::arguments(indices));
  rigel::contract(Exec(), least, a, b, c, rigel::epilogue::arguments(indices));
}

// expected-error@rigel/contract.hpp:* 2 {{epilogue::arguments() takes a view of signed integers that can be written}}
void indices(const Matrix<float>& a, const Matrix<float>& c, const Matrix<unsigned>& words,
             const Matrix<const int>& constant) {
  const rigel::with_argument<rigel::min_plus<float>> least;
  rigel::contract(Exec(), least, a, a, c, rigel::epilogue::arguments(words));
  rigel::contract(Exec(), least, a, a, c, rigel::epilogue::arguments(constant));
}

// expected-error@rigel/contract.hpp:* 1 {{A and B hold the semiring's element type}}
void operands(const Matrix<std::uint8_t>& bytes, const Matrix<bool>& c) {
  rigel::contract(Exec(), Either{}, bytes, bytes, c);
}

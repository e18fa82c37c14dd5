// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Users' functors, by the kernels of every family that this translation unit instantiates.
#include "functors.hpp"

namespace {

// Σ_k w·(k+1)·|a − b|: a hyperparameter, and the summation index.
struct Weighted {
  using element = float;
  using accumulator = float;
  float w = 0.75f;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b, std::int64_t k) const {
    return w * static_cast<float>(k + 1) * Kokkos::abs(a - b);
  }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

// Σ_k |a − b| of floats that are read as doubles.
struct Wide {
  using element = float;
  using operand = double;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(double a, double b) { return static_cast<float>(Kokkos::abs(a - b)); }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

// Complex numbers: an element that is none of Rigel's scalars, and so are the accumulator and C.
struct Complex {
  struct element {
    double re, im;
    bool operator==(const element&) const = default;
  };
  using accumulator = element;
  KOKKOS_FUNCTION static element identity() { return {0, 0}; }
  KOKKOS_FUNCTION static element multiply(element a, element b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  KOKKOS_FUNCTION static element add(element x, element y) { return {x.re + y.re, x.im + y.im}; }
  KOKKOS_FUNCTION static element lift(element c) { return c; }
};

// The smallest sum and its index in one number, for the test: 1000·value + index.
struct Joined {
  KOKKOS_FUNCTION double operator()(rigel::argument<float> x, std::int64_t, std::int64_t, std::int64_t) const {
    return 1000 * static_cast<double>(x.value) + static_cast<double>(x.index);
  }
};
struct Kept {
  KOKKOS_FUNCTION float operator()(float v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return v + static_cast<float>(m - 2 * n + 5 * l);
  }
};
struct Same {
  KOKKOS_FUNCTION Complex::element operator()(Complex::element v, std::int64_t, std::int64_t, std::int64_t) const {
    return v;
  }
};

template <class T>
T draw(support::Random& random) {
  if constexpr (std::is_same_v<T, Complex::element>)
    return {static_cast<double>(random.integer(-9, 9)), static_cast<double>(random.integer(-9, 9))};
  else if constexpr (rigel::ShortFloat<T>)
    return T(static_cast<float>(random.integer(-20, 20)) / 4);
  else
    return static_cast<T>(random.integer(-20, 20)) / 4;  // ties occur; sums are exact
}

// Random numbers for the elements of A, B and C.
template <class S, class C>
struct Drawn {
  using T = typename S::element;
  static T a(support::Random& random, std::int64_t, std::int64_t, std::int64_t) { return draw<T>(random); }
  static T b(support::Random& random, std::int64_t, std::int64_t, std::int64_t) { return draw<T>(random); }
  static C c(support::Random& random) { return draw<C>(random); }
  static const S& on_host(const S& s) { return s; }
  static void check() {}
};

template <class S, class C, class Exec, class E>
void check(const S& s, const E& epilogue, std::uint64_t seed) {
  support::check_functor<S, C, Exec>(s, epilogue, seed, Drawn<S, C>{});
}

}  // namespace

// Sums of multiples of a quarter are exact in any order, so fused multiply-adds in a user's file make no difference.
TEST_CASE_TEMPLATE("a user's semiring through every family", Exec, RIGEL_TEST_SPACES) {
  check<Weighted, float, Exec>(Weighted{}, rigel::epilogue::Program{}, 11);
}
TEST_CASE_TEMPLATE("operands wider than their elements", Exec, RIGEL_TEST_SPACES) {
  check<Wide, float, Exec>(Wide{}, rigel::epilogue::Program{}, 15);
}
TEST_CASE_TEMPLATE("elements and accumulators that are structs", Exec, RIGEL_TEST_SPACES) {
  check<Complex, Complex::element, Exec>(Complex{}, Same{}, 12);
}
TEST_CASE_TEMPLATE("with_argument through every family", Exec, RIGEL_TEST_SPACES) {
  check<rigel::with_argument<rigel::min_plus<float>>, double, Exec>({}, Joined{}, 13);
}
TEST_CASE_TEMPLATE("a user's epilogue on one of the zoo, through every family", Exec, RIGEL_TEST_SPACES) {
  check<rigel::max_plus<float>, float, Exec>({}, rigel::epilogue::scale(0.5) | rigel::epilogue::functor(Kept{}), 14);
}

// On tensor cores, if the GPU has them. All sums are exact there, too.
TEST_CASE_TEMPLATE("a user's epilogue of products and distances, through every family", Exec, RIGEL_TEST_SPACES) {
  using rigel::plus_times;
  const auto kept = rigel::epilogue::functor(Kept{});
  check<plus_times<rigel::bfloat16>, float, Exec>({}, kept, 16);
  check<plus_times<rigel::half>, rigel::half, Exec>({}, rigel::epilogue::scale(0.25) | kept, 17);
  check<plus_times<std::int8_t>, float, Exec>({}, kept, 18);
  check<plus_times<float>, float, Exec>({}, kept, 19);
  check<plus_times<double>, float, Exec>({}, kept, 20);
  check<rigel::l2_squared<float>, float, Exec>({}, kept, 21);
}

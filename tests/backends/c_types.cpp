// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types of C: any floating-point type for floating-point results, any type for integers, and bool for whether a result is
// not 0; also with accumulation, which reads C.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/nearest.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <limits>
#include <string>

namespace {

constexpr int m = 13, n = 37, depth = 21;

template <class T>
std::vector<double> random_values(int count, std::uint64_t seed) {
  support::Random random(seed);
  std::vector<double> list;
  for (int i = 0; i < count; ++i)
    list.push_back(std::is_floating_point_v<T> ? random.uniform(-2, 2) : static_cast<double>(random.integer(-100, 100)));
  return list;
}

// Every kernel against the reference, with and without accumulation and an epilogue.
template <class S, class C, class Exec>
void check() {
  using T = typename S::element;
  const Exec exec;
  const auto a = support::matrix<T, Exec>(m, depth, random_values<T>(m * depth, 1)),
             b = support::matrix<T, Exec>(depth, n, random_values<T>(depth * n, 2));
  const auto before = random_values<std::int8_t>(m * n, 3);
  CAPTURE(std::string(rigel::name(rigel::scalar_of<C>)));
  for (const bool accumulate : {false, true}) {
    for (const auto& program :
         {rigel::epilogue::Program{}, rigel::epilogue::scale(0.25) | rigel::epilogue::add_diagonal(2)}) {
      constexpr bool rounds =
          std::is_same_v<C, std::int8_t> || std::is_same_v<C, std::uint8_t> || std::is_same_v<C, std::int32_t>;
      if (std::is_integral_v<C> && !rounds && !program.empty()) continue;  // refused (tests/edge/messages.cpp)
      std::vector<double> expected;
      for (const auto& info : support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<T>,
                                                  rigel::scalar_of<typename S::accumulator>)) {
        CAPTURE(info.name);
        CAPTURE(accumulate);
        CAPTURE(program.size());
        const auto c = support::matrix<C, Exec>(m, n, before);
        const bool ran = support::ran(info, [&] {
          rigel::contract(exec, S{}, a, b, c, program,
                          {.accumulate = accumulate, .require = rigel::Promise::reference_bits, .kernel = info.name});
        });
        if (!ran) continue;
        const auto actual = support::values(c);
        if (info.family == "reference") {
          expected = actual;
          int changed = 0;
          for (std::size_t i = 0; i < actual.size(); ++i) changed += actual[i] != before[i];
          CHECK(changed > m * n / 2);
        } else {
          CHECK(actual == expected);
        }
      }
    }
  }
}

template <class S, class Exec, class... C>
void check_all() {
  (check<S, C, Exec>(), ...);
}

// Checks the bytes of a C of bool after a call by every family that this file instantiates.
template <class S, class Exec, class A, class B, class E = rigel::epilogue::Program>
void check_bools(const A& a, const B& b, const std::vector<int>& expected, const E& epilogue = {}, bool accumulate = false) {
  const Exec exec;
  for (const std::string& family : support::families_on(exec)) {
    CAPTURE(family);
    const auto c = support::matrix<bool, Exec>(static_cast<int>(a.extent(0)), static_cast<int>(b.extent(1)));
    // Old values alternate if the call accumulates; else they are bytes that no bool has, and must go.
    std::vector<unsigned char> bytes(c.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = accumulate ? i % 2 : 0xee;
    support::copy_in<Exec>(c.data(), bytes.data(), bytes.size());
    rigel::contract(exec, S{}, a, b, c, epilogue, {.accumulate = accumulate, .kernel = family});
    support::copy_out<Exec>(bytes.data(), c.data(), bytes.size());
    CHECK(std::vector<int>(bytes.begin(), bytes.end()) == expected);
  }
}

// ⋁_k a ∧ b: a user's semiring of bools.
struct Either {
  using element = bool;
  using accumulator = bool;
  KOKKOS_FUNCTION static bool identity() { return false; }
  KOKKOS_FUNCTION static bool multiply(bool a, bool b) { return a && b; }
  KOKKOS_FUNCTION static bool add(bool x, bool y) { return x || y; }
};

struct Minus {
  double subtrahend;
  template <class T>
  KOKKOS_FUNCTION double operator()(T v, std::int64_t, std::int64_t, std::int64_t) const {
    return static_cast<double>(v) - subtrahend;
  }
};

/// 1·b of plus_times, 0 + b of others, for each b of a list, by every kernel, and a step that leaves it as it is: C of T rounds b once.
template <class S, class T, class Exec, class E>
void check_rounding(const std::vector<E>& b, const rigel::epilogue::Program& step = {}) {
  const Exec exec;
  const int count = static_cast<int>(b.size());
  const bool multiplies = std::is_same_v<S, rigel::plus_times<E>>;
  const auto a_view = support::matrix<E, Exec>(1, 1, {multiplies ? 1. : 0.});
  const support::Matrix<E, Exec> b_view("b", 1, count);
  support::copy_in<Exec>(b_view.data(), b.data(), b.size() * sizeof(E));
  for (const auto& info :
       support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<E>, rigel::scalar_of<typename S::accumulator>))
    for (const bool by_rows : {true, false}) {
      CAPTURE(info.name);
      const auto c = support::matrix<T, Exec>(1, count);
      const Kokkos::View<T**, Kokkos::LayoutStride, typename Exec::memory_space> other("c",
                                                                                       Kokkos::LayoutStride(1, 1, count, 2));
      std::vector<double> actual;
      const bool ran = support::ran(info, [&] {
        const auto call = [&](const auto& view) {
          rigel::contract(exec, S{}, a_view, b_view, view, step, {.precision = info.precision, .kernel = info.name});
        };
        by_rows ? call(c) : call(other);
        exec.fence();
        if (!by_rows) Kokkos::deep_copy(c, other);
        actual = support::values(c);
      });
      if (!ran) continue;
      int wrong = 0;
      for (int i = 0; i < count; ++i) wrong += !support::same<double>(actual[i], support::nearest<T>(b[i]));
      CHECK(wrong == 0);
    }
}

/// C of doubles that is continued: min(∞, c) in T.
template <class T, class Exec>
void check_rounding_of_c() {
  const Exec exec;
  const std::vector<double> before = support::doubles_near_ties();
  const int count = static_cast<int>(before.size());
  const double infinity = std::numeric_limits<double>::infinity();
  const auto a = support::matrix<T, Exec>(1, 1, {infinity}),
             b = support::matrix<T, Exec>(1, count, std::vector<double>(before.size(), infinity));
  using S = rigel::min_plus<T, T>;
  for (const auto& info : support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<T>, rigel::scalar_of<T>)) {
    CAPTURE(info.name);
    const auto c = support::matrix<double, Exec>(1, count, before);
    const bool ran =
        support::ran(info, [&] { rigel::contract(exec, S{}, a, b, c, {}, {.accumulate = true, .kernel = info.name}); });
    if (!ran) continue;
    const auto actual = support::values(c);
    int wrong = 0;
    for (int i = 0; i < count; ++i) wrong += actual[i] != support::nearest<T>(before[i]);
    CHECK(wrong == 0);
  }
}

template <class T, class Exec>
void check_all_roundings() {
  const auto doubles = support::doubles_near_ties();
  check_rounding<rigel::min_plus<double>, T, Exec>(doubles);
  check_rounding<rigel::min_plus<double>, T, Exec>(doubles, rigel::epilogue::scale(1));
  check_rounding<rigel::plus_times<double>, T, Exec>(doubles);
  check_rounding<rigel::plus_times<double>, T, Exec>(doubles, rigel::epilogue::add_diagonal(0));
  const auto integers = support::integers_near_ties<std::int32_t>();
  check_rounding<rigel::plus_times<std::int32_t>, T, Exec>(integers);
  check_rounding<rigel::plus_times<std::int32_t>, T, Exec>(integers, rigel::epilogue::scale(1));
  check_rounding<rigel::plus_times<std::int64_t>, T, Exec>(support::integers_near_ties<std::int64_t>());
  check_rounding_of_c<T, Exec>();
}

/// What a functor makes of a number.
struct Widen {
  template <class T>
  KOKKOS_FUNCTION double operator()(T v, std::int64_t, std::int64_t, std::int64_t) const {
    return static_cast<double>(v);
  }
};

template <class T, class Exec>
void check_functors() {
  const auto doubles = support::doubles_near_ties();
  const int count = static_cast<int>(doubles.size());
  const auto a = support::matrix<double, Exec>(1, 1, {0}), b = support::matrix<double, Exec>(1, count, doubles);
  for (const std::string& family : support::families_on(Exec{})) {
    CAPTURE(family);
    const auto c = support::matrix<T, Exec>(1, count);
    rigel::contract(Exec{}, rigel::min_plus<double>{}, a, b, c, Widen{}, {.kernel = family});
    const auto actual = support::values(c);
    int wrong = 0;
    for (int i = 0; i < count; ++i) wrong += actual[i] != support::nearest<T>(doubles[i]);
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("C of half and bfloat16: doubles and integers round once", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("half") { check_all_roundings<rigel::half, Exec>(); }
  SUBCASE("bfloat16") { check_all_roundings<rigel::bfloat16, Exec>(); }
}

TEST_CASE_TEMPLATE("C of half and bfloat16: doubles of a functor round once", Exec, RIGEL_TEST_SPACES) {
  check_functors<rigel::half, Exec>();
  check_functors<rigel::bfloat16, Exec>();
}

// The sum 256 is not 0, but its last byte is.
TEST_CASE_TEMPLATE("C of bool: whether a result is not 0", Exec, RIGEL_TEST_SPACES) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using support::matrix;
  const std::vector<double> rows = {16, 0, 1, 1}, columns = {16, 3, 0, 0, 0, 0}, small = {1, 0, 1, 1};
  const std::vector<int> set = {1, 1, 0, 1, 1, 0};  // 256 48 0; 16 3 0
  check_bools<rigel::plus_times<std::int32_t>, Exec>(matrix<std::int32_t, Exec>(2, 2, rows),
                                                     matrix<std::int32_t, Exec>(2, 3, columns), set);
  check_bools<rigel::plus_times<std::int8_t>, Exec>(matrix<std::int8_t, Exec>(2, 2, rows),
                                                    matrix<std::int8_t, Exec>(2, 3, columns), set);
  // Floats: 0.25 and less, NaN, and a zero of either sign.
  const std::vector<double> fractions = {0.5, nan, -0.0, 0.5, 0, 0};
  check_bools<rigel::plus_times<float>, Exec>(matrix<float, Exec>(2, 2, {0.5, 0, 0, 1}),
                                              matrix<float, Exec>(2, 3, fractions), {1, 1, 0, 1, 1, 0});
  check_bools<rigel::plus_times<rigel::half>, Exec>(matrix<rigel::half, Exec>(2, 2, {0.5, 0, 0, 1}),
                                                    matrix<rigel::half, Exec>(2, 3, fractions), {1, 1, 0, 1, 1, 0});
  check_bools<rigel::min_plus<rigel::bfloat16, rigel::bfloat16>, Exec>(
      matrix<rigel::bfloat16, Exec>(1, 1, {0.25}), matrix<rigel::bfloat16, Exec>(1, 2, {-0.25, 0.5}), {0, 1});
  check_bools<rigel::log_plus<float>, Exec>(matrix<float, Exec>(1, 1, {0.25}), matrix<float, Exec>(1, 2, {-0.25, 0.5}),
                                            {0, 1});
  // Bytes, words, and the epilogues that join their bits. The result 3 becomes true, too.
  check_bools<rigel::or_and<std::uint8_t>, Exec>(matrix<std::uint8_t, Exec>(2, 2, {3, 0, 1, 1}),
                                                 matrix<std::uint8_t, Exec>(2, 3, {3, 2, 0, 0, 0, 0}), {1, 1, 0, 1, 0, 0});
  check_bools<rigel::or_and<std::uint8_t>, Exec>(matrix<bool, Exec>(2, 2, small),
                                                 matrix<bool, Exec>(2, 3, {1, 1, 0, 0, 0, 0}), {1, 1, 0, 1, 1, 0});
  const auto words = matrix<std::uint32_t, Exec>(1, 1, {768}),
             masks = matrix<std::uint32_t, Exec>(1, 4, {256, 768, 1792, 1});
  check_bools<rigel::or_and<std::uint32_t>, Exec>(words, masks, {1, 1, 1, 0});
  check_bools<rigel::or_and<std::uint32_t>, Exec>(words, masks, {1, 1, 1, 0}, rigel::epilogue::any_bit());
  check_bools<rigel::xor_and<std::uint32_t>, Exec>(words, masks, {1, 0, 0, 0}, rigel::epilogue::parity());
  check_bools<Either, Exec>(matrix<bool, Exec>(2, 2, small), matrix<bool, Exec>(2, 3, {0, 1, 0, 1, 1, 0}),
                            {0, 1, 0, 1, 1, 0});
}

TEST_CASE_TEMPLATE("C of bool: with epilogues, and continued", Exec, RIGEL_TEST_SPACES) {
  using support::matrix;
  const auto a = matrix<std::int32_t, Exec>(2, 1, {16, 1}),
             b = matrix<std::int32_t, Exec>(1, 3, {16, 3, 0});  // 256 48 0; 16 3 0
  using S = rigel::plus_times<std::int32_t>;
  check_bools<S, Exec>(a, b, {1, 1, 0, 1, 1, 0}, rigel::epilogue::scale(0.001));
  check_bools<S, Exec>(a, b, {1, 1, 0, 0, 0, 0}, rigel::epilogue::clamp(16, 1e9) | rigel::epilogue::functor(Minus{16}));
  check_bools<S, Exec>(a, b, {1, 1, 1, 1, 0, 1}, Minus{3});
  // A bool of C counts as 1: 256 49 0; 17 3 1, less 1.
  check_bools<S, Exec>(a, b, {1, 1, 1, 1, 1, 0}, Minus{1}, true);
  const auto f = matrix<float, Exec>(2, 1, {0, 1}), g = matrix<float, Exec>(1, 3, {-1, 0, 2});
  check_bools<rigel::plus_times<float>, Exec>(f, g, {0, 1, 0, 0, 0, 1}, {}, true);  // 0 1 0; 0 0 3
}

TEST_CASE_TEMPLATE("C holds any floating-point type for floating-point results", Exec, RIGEL_TEST_SPACES) {
  check_all<rigel::min_plus<float>, Exec, rigel::half, rigel::bfloat16, float, double>();
  check_all<rigel::max_min<double>, Exec, rigel::half, float, double>();
  check_all<rigel::min_plus<rigel::half, rigel::half>, Exec, rigel::half, rigel::bfloat16, float, double>();
}

TEST_CASE_TEMPLATE("C holds any type for integer results", Exec, RIGEL_TEST_SPACES) {
  check_all<rigel::max_plus<std::int16_t>, Exec, std::int8_t, std::int16_t, float>();
  check_all<rigel::plus_times<std::int8_t>, Exec, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t,
            std::uint32_t, rigel::half, float, double>();
}

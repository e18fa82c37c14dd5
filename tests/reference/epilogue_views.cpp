// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues that read memory, on outer products: 3 1/2; −6 −1, and in a batch also 6 1; 12 2.
#include "call.hpp"

#include <tests/support/layouts.hpp>

#include <cstdint>
#include <limits>

using by_hand::contracted, by_hand::Values;
using support::batch, support::matrix;
namespace epilogue = rigel::epilogue;

namespace {

const rigel::plus_times<float> product;
const Values plain = {3, 0.5, -6, -1}, plain_batch = {3, 0.5, -6, -1, 6, 1, 12, 2};

/// A view of rank 1 or 0 with given numbers.
template <class T, class Exec>
auto numbers(const Values& values) {
  const Kokkos::View<T*, typename Exec::memory_space> v("numbers", values.size());
  support::fill(v, values);
  return v;
}
template <class T, class Exec>
auto one(double value) {
  const Kokkos::View<T, typename Exec::memory_space> v("one");
  support::fill(v, {value});
  return v;
}

template <class Exec, class E>
Values applied(const E& program, const Values& before = {}, const rigel::ContractOptions& options = by_hand::reference) {
  return contracted(Exec{}, product, matrix<float, Exec>(2, 1, {1, -2}), matrix<float, Exec>(1, 2, {3, 0.5}),
                    matrix<float, Exec>(2, 2, before), program, options);
}
template <class Exec>
Values applied_to_batch(const epilogue::Program& program) {
  return contracted(Exec{}, product, batch<float, Exec>(2, 2, 1, {1, -2, 2, 4}), matrix<float, Exec>(1, 2, {3, 0.5}),
                    batch<float, Exec>(2, 2, 2), program);
}

/// Vectors of numbers of type T: one, and one for each batch or for all.
template <class T, class Exec>
void check_vectors() {
  const auto tens = numbers<T, Exec>({10, 20}), twos = numbers<T, Exec>({2, 4});
  CHECK(applied<Exec>(epilogue::add_row(tens)) == Values{13, 20.5, 4, 19});
  CHECK(applied<Exec>(epilogue::add_column(tens)) == Values{13, 10.5, 14, 19});
  CHECK(applied<Exec>(epilogue::scale_row(twos)) == Values{6, 2, -12, -4});
  CHECK(applied<Exec>(epilogue::scale_column(twos)) == Values{6, 1, -24, -4});
  const auto sums = matrix<T, Exec>(2, 2, {10, 20, 30, 40}), factors = matrix<T, Exec>(2, 2, {2, 4, 8, 1});
  CHECK(applied_to_batch<Exec>(epilogue::add_row(sums)) == Values{13, 20.5, 4, 19, 36, 41, 42, 42});
  CHECK(applied_to_batch<Exec>(epilogue::add_column(sums)) == Values{13, 10.5, 14, 19, 36, 31, 52, 42});
  CHECK(applied_to_batch<Exec>(epilogue::scale_row(factors)) == Values{6, 2, -12, -4, 48, 1, 96, 2});
  CHECK(applied_to_batch<Exec>(epilogue::scale_column(factors)) == Values{6, 1, -24, -4, 48, 8, 12, 2});
  const auto sum = matrix<T, Exec>(1, 2, {10, 20}), factor = matrix<T, Exec>(1, 2, {2, 4});
  const Values by_rows = {13, 20.5, 4, 19, 16, 21, 22, 22}, by_columns = {13, 10.5, 14, 19, 16, 11, 32, 22};
  CHECK(applied_to_batch<Exec>(epilogue::add_row(sum)) == by_rows);
  CHECK(applied_to_batch<Exec>(epilogue::add_row(tens)) == by_rows);
  CHECK(applied_to_batch<Exec>(epilogue::add_column(sum)) == by_columns);
  CHECK(applied_to_batch<Exec>(epilogue::add_column(tens)) == by_columns);
  CHECK(applied_to_batch<Exec>(epilogue::scale_row(factor)) == Values{6, 2, -12, -4, 12, 4, 24, 8});
  CHECK(applied_to_batch<Exec>(epilogue::scale_column(factor)) == Values{6, 1, -24, -4, 12, 2, 48, 8});
}

/// Matrices of numbers of type T.
template <class T, class Exec>
void check_residuals() {
  const std::vector<T> hundreds = {support::number<T>(100), support::number<T>(200), support::number<T>(300),
                                   support::number<T>(400)};
  const auto check = [&]<class Layout>(Layout) {
    const auto r = support::laid_out<T, Exec, Layout>(2, 2);
    support::upload(r, hundreds);
    CHECK(applied<Exec>(epilogue::residual(r)) == Values{103, 200.5, 294, 399});
    CHECK(applied_to_batch<Exec>(epilogue::residual(r)) == Values{103, 200.5, 294, 399, 106, 201, 312, 402});
  };
  check(Kokkos::LayoutRight{});
  check(Kokkos::LayoutLeft{});
  check(Kokkos::LayoutStride{});
  const Values first = {100, 200, 300, 400, 500, 600, 700, 800}, last = {100, 500, 200, 600, 300, 700, 400, 800};
  const Values expected = {103, 200.5, 294, 399, 506, 601, 712, 802};
  CHECK(applied_to_batch<Exec>(epilogue::residual(batch<T, Exec>(2, 2, 2, first))) == expected);
  CHECK(applied_to_batch<Exec>(epilogue::residual(batch<T, Exec>(2, 2, 2, last), rigel::Batch::last)) == expected);
}

/// A parameter of type T, of all batches or one for each, against f(v, parameter) in double.
template <class T, class Exec, class Make, class F>
void check_parameter(double first, double second, const Make& make, const F& f) {
  const auto check = [&](const epilogue::Program& program, double of_second) {
    const Values actual = applied_to_batch<Exec>(program);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double exact = f(plain_batch[i], i < 4 ? first : of_second, i % 4 == 0 || i % 4 == 3);
      CAPTURE(i);
      CHECK(std::fabs(actual[i] - exact) <= 0x1p-20 * std::fabs(exact));
    }
  };
  check(make(one<T, Exec>(first)), first);
  check(make(numbers<T, Exec>({first})), first);
  check(make(numbers<T, Exec>({first, second})), second);
}

template <class T, class Exec>
void check_parameters() {
  const auto check = [](double first, double second, const auto& make, const auto& f) {
    check_parameter<T, Exec>(first, second, make, f);
  };
  check(2, 3, [](const auto& x) { return epilogue::scale(x); }, [](double v, double x, bool) { return v * x; });
  check(2, -7, [](const auto& x) { return epilogue::add(x); }, [](double v, double x, bool) { return v + x; });
  check(2, 3, [](const auto& x) { return epilogue::pow(x); }, [](double v, double x, bool) { return std::pow(v, x); });
  check(
      -1, 2, [](const auto& x) { return epilogue::exponential(x); },
      [](double v, double x, bool) { return std::exp(v * x); });
  check(2, 4, [](const auto& x) { return epilogue::laplace(x); }, [](double v, double x, bool) { return std::exp(-v / x); });
  check(
      2, 4, [](const auto& x) { return epilogue::gaussian(x); },
      [](double v, double x, bool) { return std::exp(-v / (2 * x * x)); });
  // No v is near the zeros of the polynomials.
  check(
      3, 5, [](const auto& x) { return epilogue::matern32(x); },
      [](double v, double x, bool) { return (1 + std::sqrt(3.) * v / x) * std::exp(-std::sqrt(3.) * v / x); });
  check(
      3, 5, [](const auto& x) { return epilogue::matern52(x); },
      [](double v, double x, bool) {
        return (1 + std::sqrt(5.) * v / x + 5 * v * v / (3 * x * x)) * std::exp(-std::sqrt(5.) * v / x);
      });
  check(
      8, 16, [](const auto& x) { return epilogue::rational_quadratic(x); },
      [](double v, double x, bool) { return std::pow(1 + v / x, -x); });
  check(8, 16, [](const auto& x) { return epilogue::reciprocal(x); }, [](double v, double x, bool) { return 1 / (x + v); });
  check(
      8, 16, [](const auto& x) { return epilogue::reciprocal(x, 3); }, [](double v, double x, bool) { return 3 / (x + v); });
  check(
      8, 16, [](const auto& x) { return epilogue::reciprocal(x, x); }, [](double v, double x, bool) { return x / (x + v); });
  check(
      1, 3, [](const auto& x) { return epilogue::threshold(x); },
      [](double v, double x, bool) { return std::fabs(v) < x ? 0 : v; });
  check(
      5, 9, [](const auto& x) { return epilogue::add_diagonal(x); },
      [](double v, double x, bool diagonal) { return diagonal ? v + x : v; });
  // Bounds: the lower one of each batch, the upper one of all; and the reverse.
  const auto low = numbers<T, Exec>({-4, 2}), high = numbers<T, Exec>({1, 6});
  CHECK(applied_to_batch<Exec>(epilogue::clamp(low, one<T, Exec>(5))) == Values{3, 0.5, -4, -1, 5, 2, 5, 2});
  CHECK(applied_to_batch<Exec>(epilogue::clamp(one<T, Exec>(-2), high)) == Values{1, 0.5, -2, -1, 6, 1, 6, 2});
}

struct Negate {
  template <class T>
  KOKKOS_FUNCTION T operator()(T v, std::int64_t, std::int64_t, std::int64_t) const {
    return -v;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("epilogues in memory: rows and columns", Exec, RIGEL_TEST_SPACES) {
  check_vectors<float, Exec>();
  check_vectors<double, Exec>();
  check_vectors<rigel::half, Exec>();
  check_vectors<rigel::bfloat16, Exec>();
  check_vectors<std::int32_t, Exec>();
}

TEST_CASE_TEMPLATE("epilogues in memory: strided rows, and columns of a matrix", Exec, RIGEL_TEST_SPACES) {
  const auto m = matrix<float, Exec>(2, 2, {10, 20, 30, 40});
  const auto column = Kokkos::subview(m, Kokkos::ALL, 1);
  const auto row = Kokkos::subview(m, 1, Kokkos::ALL);
  CHECK(applied<Exec>(epilogue::add_row(column)) == Values{23, 40.5, 14, 39});
  CHECK(applied<Exec>(epilogue::add_column(row)) == Values{33, 30.5, 34, 39});
  const Kokkos::View<const float*, typename Exec::memory_space> constant = row;
  CHECK(applied<Exec>(epilogue::add_row(constant)) == Values{33, 40.5, 24, 39});
}

TEST_CASE_TEMPLATE("epilogues in memory: residuals", Exec, RIGEL_TEST_SPACES) {
  check_residuals<float, Exec>();
  check_residuals<double, Exec>();
  check_residuals<rigel::half, Exec>();
  check_residuals<rigel::bfloat16, Exec>();
  check_residuals<std::int32_t, Exec>();
}

TEST_CASE_TEMPLATE("epilogues in memory: C as its own residual", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(2, 1, {1, -2}), b = matrix<float, Exec>(1, 2, {3, 0.5});
  auto c = matrix<float, Exec>(2, 2, {1, 2, 3, 4});
  CHECK(contracted(Exec{}, product, a, b, c, epilogue::residual(c)) == Values{4, 2.5, -3, 3});
  c = matrix<float, Exec>(2, 2, {1, 2, 3, 4});
  CHECK(contracted(Exec{}, product, a, b, c, epilogue::residual(c), by_hand::accumulating) == Values{5, 4.5, 0, 7});
  // By columns and in batches.
  const auto d = batch<float, Exec>(2, 2, 2, {100, 200, 300, 400, 500, 600, 700, 800});
  CHECK(contracted(Exec{}, product, batch<float, Exec>(2, 2, 1, {1, -2, 2, 4}), b, d, epilogue::residual(d)) ==
        Values{103, 200.5, 294, 399, 506, 601, 712, 802});
  const Kokkos::View<float**, Kokkos::LayoutLeft, typename Exec::memory_space> left("left", 2, 2);
  support::fill(left, {1, 3, 2, 4});
  CHECK(contracted(Exec{}, product, a, b, left, epilogue::residual(left)) == Values{4, -3, 2.5, 3});
}

TEST_CASE_TEMPLATE("epilogues in memory: parameters", Exec, RIGEL_TEST_SPACES) {
  check_parameters<float, Exec>();
  check_parameters<double, Exec>();
  check_parameters<rigel::half, Exec>();
  check_parameters<rigel::bfloat16, Exec>();
  check_parameters<std::int32_t, Exec>();
}

TEST_CASE_TEMPLATE("epilogues in memory: parameters have the type of the epilogue", Exec, RIGEL_TEST_SPACES) {
  const double third = 1. / 3;
  const auto factor = one<double, Exec>(third);
  const auto whole = one<std::int32_t, Exec>((1 << 24) + 1);
  const auto program = epilogue::scale(factor);
  CHECK(applied<Exec>(program) == Values{3 * static_cast<float>(third), 0.5f * static_cast<float>(third),
                                         -6 * static_cast<float>(third), -static_cast<float>(third)});
  CHECK(contracted(Exec{}, rigel::plus_times<double>{}, matrix<double, Exec>(1, 1, {5}), matrix<double, Exec>(1, 1, {1}),
                   matrix<double, Exec>(1, 1), program) == Values{5 * third});
  // Integers are computed in double, those in views as well.
  CHECK(contracted(Exec{}, rigel::plus_times<std::int32_t>{}, matrix<std::int32_t, Exec>(1, 1, {5}),
                   matrix<std::int32_t, Exec>(1, 1, {1}), matrix<double, Exec>(1, 1),
                   program | epilogue::add(whole)) == Values{5 * third + ((1 << 24) + 1)});
}

TEST_CASE_TEMPLATE("epilogues in memory: several in one program, and a functor", Exec, RIGEL_TEST_SPACES) {
  const auto tens = numbers<float, Exec>({10, 20});
  const auto factors = numbers<rigel::bfloat16, Exec>({2, 4});
  const auto small = matrix<double, Exec>(2, 2, {1, 2, 3, 4});
  const auto two = one<std::int32_t, Exec>(2);
  const auto rows = epilogue::add_row(tens), columns = epilogue::scale_column(factors), matrices = epilogue::residual(small),
             twice = epilogue::scale(two);
  CHECK(applied<Exec>(columns | rows | matrices | twice) == Values{34, 46, -22, 40});
  CHECK(applied<Exec>(rows | columns | epilogue::relu() | twice | epilogue::add_diagonal(1)) == Values{53, 82, 32, 153});
  const auto negate = epilogue::functor(Negate{});
  CHECK(applied<Exec>(negate | rows) == Values{7, 19.5, 16, 21});
  CHECK(applied<Exec>(rows | negate | columns) == Values{-26, -41, -16, -76});
  CHECK(applied<Exec>(rows | columns, {1, 1, -1, -1}, by_hand::accumulating) == Values{28, 43, 12, 72});
  CHECK(applied<Exec>(rows | negate, {1, 1, -1, -1}, by_hand::accumulating) == Values{-14, -21.5, -3, -18});
}

TEST_CASE_TEMPLATE("epilogues in memory: kernels read them when they run", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = matrix<float, Exec>(2, 1, {1, -2}), b = matrix<float, Exec>(1, 2, {3, 0.5}), c = matrix<float, Exec>(2, 2);
  const auto row = numbers<float, Exec>({10, 20});
  const auto factor = one<float, Exec>(2);
  const auto problem =
      rigel::problem_of(exec, product, a, b, c, epilogue::add_row(row) | epilogue::scale(factor), by_hand::reference);
  rigel::run(problem);
  CHECK(support::values(c) == Values{26, 41, 8, 38});
  support::fill(row, {1, 0});
  support::fill(factor, {-1});
  rigel::run(problem);
  CHECK(support::values(c) == Values{-4, -0.5, 5, 1});
}

namespace {

/// The row (1) times `b` by an epilogue, in a C of integers of type T.
template <class T, class Exec>
Values rounded(const Values& b, const epilogue::Program& program) {
  const int n = static_cast<int>(b.size());
  return contracted(Exec{}, rigel::plus_times<std::int8_t>{}, matrix<std::int8_t, Exec>(1, 1, {1}),
                    matrix<std::int8_t, Exec>(1, n, b), matrix<T, Exec>(1, n), program);
}

template <class T, class Exec>
void check_rounding() {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const double least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  const bool has_sign = std::is_signed_v<T>;
  const auto expected = [&](const Values& v) { return has_sign ? v : Values{v[0], v[1], v[2], v[3], 0, 0, 0}; };
  const Values ties = {1, 3, 5, 7, -1, -3, -5};
  CHECK(rounded<T, Exec>(ties, epilogue::scale(0.5)) == expected({0, 2, 2, 4, 0, -2, -2}));
  CHECK(rounded<T, Exec>(ties, epilogue::scale(0.25)) == expected({0, 1, 1, 2, 0, -1, -1}));
  // A factor in double: 0.3 in float is 0.30000001.
  CHECK(rounded<T, Exec>({5}, epilogue::scale(0.3)) == Values{2});  // 1.5
  CHECK(rounded<T, Exec>({1, 2, -1}, epilogue::add_row(numbers<float, Exec>({0.5, 0.5, 1.75})) |
                                         epilogue::scale(one<double, Exec>(2))) == Values{3, 5, 2});
  CHECK(rounded<T, Exec>({1, 2, -2}, epilogue::scale(1e10)) == Values{most, most, least});
  CHECK(rounded<T, Exec>({1, -1}, epilogue::scale(infinity)) == Values{most, least});
  CHECK(rounded<T, Exec>({1}, epilogue::scale(nan)) == Values{0});
  CHECK(rounded<T, Exec>({100, -100}, epilogue::scale(3) | epilogue::clamp(10.4, 90.6)) == Values{91, 10});
  // The last value that rounds to the largest number, and the first that is beyond it.
  CHECK(rounded<T, Exec>({0}, epilogue::add(most + 0.25)) == Values{most});
  CHECK(rounded<T, Exec>({0}, epilogue::add(most + 0.5)) == Values{most});
  CHECK(rounded<T, Exec>({0}, epilogue::add(most - 1)) == Values{most - 1});
  CHECK(rounded<T, Exec>({0}, epilogue::add(least - 0.5)) == Values{least});
  CHECK(rounded<T, Exec>({0}, epilogue::add(least + 1)) == Values{least + 1});
}

}  // namespace

TEST_CASE_TEMPLATE("epilogues: integers rounded to integers", Exec, RIGEL_TEST_SPACES) {
  check_rounding<std::int8_t, Exec>();
  check_rounding<std::uint8_t, Exec>();
  check_rounding<std::int32_t, Exec>();
}

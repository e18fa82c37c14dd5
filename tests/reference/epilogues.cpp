// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The closed set of epilogues and its composition, on the outer product of (1, −2) and (3, 1/2).
#include "call.hpp"

#include <array>
#include <cstring>
#include <limits>

using by_hand::contracted, by_hand::Values;
using support::matrix;
namespace epilogue = rigel::epilogue;

namespace {

// Two groups of neighbours, one in each row, as Program::run_on() takes them.
struct TwoGroups {
  static constexpr int apart_m = 0, apart_n = 1, next_m = 1, next_n = 0, groups = 2;
  epilogue::Place place(int group) const { return {0, group, 0}; }
};

const Values plain = {3, 0.5, -6, -1};

template <class T, class Exec>
Values applied(const epilogue::Program& program) {
  return contracted(Exec{}, rigel::plus_times<T>{}, matrix<T, Exec>(2, 1, {1, -2}), matrix<T, Exec>(1, 2, {3, 0.5}),
                    matrix<T, Exec>(2, 2), program);
}

template <class T, class Exec>
void check(const epilogue::Program& program, const Values& expected) {
  CHECK(support::same(applied<T, Exec>(program), expected));
}

// Checks functions that round: results are within eight units of those in double, and `more(v)` further ones.
template <class T, class Exec, class F, class More>
void check_function(const epilogue::Program& program, const F& f, const More& more) {
  const Values actual = applied<T, Exec>(program);
  for (int i = 0; i < 4; ++i) {
    const double exact = f(plain[i]);
    CAPTURE(exact);
    CHECK(std::fabs(actual[i] - exact) <= (8 + more(plain[i])) * std::numeric_limits<T>::epsilon() * std::fabs(exact));
  }
}
template <class T, class Exec, class F>
void check_function(const epilogue::Program& program, const F& f) {
  check_function<T, Exec>(program, f, [](double) { return 0.; });
}

// The Matérn kernels of v for length 2.
double matern32(double v) { return (1 + std::sqrt(3.) * v / 2) * std::exp(-std::sqrt(3.) * v / 2); }
double matern52(double v) { return (1 + std::sqrt(5.) * v / 2 + 5 * v * v / 12) * std::exp(-std::sqrt(5.) * v / 2); }

// √(2/π)·(v + 0.044715·v³)
double argument_of_tanh(double v) { return std::sqrt(2 / std::acos(-1.)) * (v + 0.044715 * v * v * v); }

template <class T, class Exec>
void check_all() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check<T, Exec>({}, plain);
  check<T, Exec>(epilogue::scale(2), {6, 1, -12, -2});
  check<T, Exec>(epilogue::pow(1), plain);
  check<T, Exec>(epilogue::pow(2), {9, 0.25, 36, 1});
  check<T, Exec>(epilogue::scale(3) | epilogue::pow(0.5), {3, std::sqrt(T(1.5)), nan, nan});
  check<T, Exec>(epilogue::reciprocal(), {1 / T(3), 2, -1 / T(6), -1});
  check<T, Exec>(epilogue::reciprocal(2, 6), {T(6) / T(5), T(6) / T(2.5), -1.5, 6});
  check<T, Exec>(epilogue::clamp(-1, 2), {2, 0.5, -1, -1});
  check<T, Exec>(epilogue::clamp(2, -1), {-1, -1, -1, -1});  // min(max(v, 2), −1)
  check<T, Exec>(epilogue::add_diagonal(10), {13, 0.5, -6, 9});
  check<T, Exec>(epilogue::relu(), {3, 0.5, 0, 0});
  check_function<T, Exec>(epilogue::exponential(-1), [](double v) { return std::exp(-v); });
  check_function<T, Exec>(epilogue::sigmoid(), [](double v) { return 1 / (1 + std::exp(-v)); });
  check_function<T, Exec>(epilogue::tanh(), [](double v) { return std::tanh(v); });
  check_function<T, Exec>(epilogue::laplace(2), [](double v) { return std::exp(-v / 2); });
  check_function<T, Exec>(epilogue::gaussian(2), [](double v) { return std::exp(-v / 8); });
  // Roundings of the argument, at most 1.12·|v|, count that often; where v < 0, terms of the polynomial cancel to a seventh.
  check_function<T, Exec>(epilogue::matern32(2), matern32, [](double v) { return v < 0 ? 64 : 4 * v; });
  check_function<T, Exec>(epilogue::matern52(2), matern52, [](double v) { return v < 0 ? 64 : 4 * v; });
  // The quotient v/8 and the logarithm's value are rounded; 1 + v/8 is 1/4 at least.
  check_function<T, Exec>(
      epilogue::rational_quadratic(8), [](double v) { return std::pow(1 + v / 8, -8); },
      [](double v) { return 4 * std::fabs(8 * std::log1p(v / 8)) + std::fabs(v) / (1 + v / 8); });
  check<T, Exec>(epilogue::add(-1), {2, -0.5, -7, -2});
  check<T, Exec>(epilogue::threshold(1), {3, 0, -6, -1});
  check<T, Exec>(epilogue::add_diagonal(10, 4, 3), {3, 10.5, -6, -1});  // C lies one row below the diagonal
  check<T, Exec>(epilogue::add_diagonal(10, 3, 4), {3, 0.5, 4, -1});
  check<T, Exec>(epilogue::add_diagonal(10, 7, 7), {13, 0.5, -6, 9});
  check<T, Exec>(epilogue::add_diagonal(10, 0, 2), plain);
  check_function<T, Exec>(epilogue::silu(), [](double v) { return v / (1 + std::exp(-v)); });
  // Roundings of the arguments of erfc and exp count there v² and |argument| times.
  check_function<T, Exec>(
      epilogue::gelu(), [](double v) { return v / 2 * std::erfc(-v / std::sqrt(2.)); }, [](double v) { return v * v; });
  check_function<T, Exec>(
      epilogue::gelu_tanh(), [](double v) { return v / (1 + std::exp(-2 * argument_of_tanh(v))); },
      [](double v) { return 4 * std::fabs(argument_of_tanh(v)); });
  // The left step runs first.
  check<T, Exec>(epilogue::scale(2) | epilogue::add_diagonal(1), {7, 1, -12, -1});
  check<T, Exec>(epilogue::add_diagonal(1) | epilogue::scale(2), {8, 1, -12, 0});
  check<T, Exec>(epilogue::relu() | epilogue::add_diagonal(0.25) | epilogue::pow(0.5) | epilogue::scale(4),
                 {4 * std::sqrt(T(3.25)), 4 * std::sqrt(T(0.5)), 0, 2});
}

}  // namespace

TEST_CASE_TEMPLATE("epilogues: the closed set and its composition", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("float") { check_all<float, Exec>(); }
  SUBCASE("double") { check_all<double, Exec>(); }
}

TEST_CASE_TEMPLATE("epilogues: NaN stays NaN", Exec, RIGEL_TEST_SPACES) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto a = matrix<float, Exec>(1, 1, {nan}), b = matrix<float, Exec>(1, 1, {1}), c = matrix<float, Exec>(1, 1);
  for (const auto& program :
       {epilogue::clamp(0, 1), epilogue::relu(), epilogue::sigmoid(), epilogue::tanh(), epilogue::pow(0.5),
        epilogue::scale(2), epilogue::add(1), epilogue::threshold(1), epilogue::gelu(), epilogue::gelu_tanh(),
        epilogue::silu(), epilogue::matern32(1), epilogue::matern52(1), epilogue::rational_quadratic(1)})
    CHECK(std::isnan(contracted(Exec{}, rigel::plus_times<float>{}, a, b, c, program)[0]));
}

TEST_CASE_TEMPLATE("epilogues: gelu over all arguments whose results are normal floats", Exec, RIGEL_TEST_SPACES) {
  constexpr int per_unit = 64, highest = 12, count = 2 * highest * per_unit + 1;
  Values v(count);
  for (int i = 0; i < count; ++i) v[i] = static_cast<double>(i) / per_unit - highest;
  const auto a = matrix<float, Exec>(1, 1, {1}), b = matrix<float, Exec>(1, count, v), c = matrix<float, Exec>(1, count);
  const Values results = contracted(Exec{}, rigel::plus_times<float>{}, a, b, c, epilogue::gelu());
  for (int i = 0; i < count; ++i) {
    const double exact = v[i] / 2 * std::erfc(-v[i] / std::sqrt(2.));
    CAPTURE(v[i]);
    CHECK(std::fabs(results[i] - exact) <= (16 + 2 * v[i] * v[i]) * 0x1p-24 * std::fabs(exact));
  }
}

TEST_CASE_TEMPLATE("epilogues: activations of infinities", Exec, RIGEL_TEST_SPACES) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto a = matrix<float, Exec>(1, 1, {1}), b = matrix<float, Exec>(1, 2, {infinity, -infinity}),
             c = matrix<float, Exec>(1, 2);
  for (const auto& program : {epilogue::gelu(), epilogue::gelu_tanh(), epilogue::silu()}) {
    const Values results = contracted(Exec{}, rigel::plus_times<float>{}, a, b, c, program);
    CHECK(results[0] == infinity);
    CHECK(std::isnan(results[1]));
  }
}

TEST_CASE_TEMPLATE("epilogues: activations far from zero", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(1, 1, {1}), b = matrix<float, Exec>(1, 3, {1e30, -1e30, 0}),
             c = matrix<float, Exec>(1, 3);
  for (const auto& program : {epilogue::gelu(), epilogue::gelu_tanh(), epilogue::silu()})
    CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, c, program) == Values{1e30f, 0, 0});
}

namespace {

/// silu() and gelu_tanh() where exponentials are subnormal or 0 and products with them are normal. Their arguments, v of silu() and about
/// 2t of gelu_tanh(), go from `first` to `last` by 1/64.
template <class T, class Exec>
void check_tails(double first, double last) {
  // On a GPU the exponential of floats is subnormal, off by the smallest number.
  const double least = std::is_same_v<T, float> && !rigel::detail::runs_on_host<Exec> ? 0x1p-149 : 0;
  Values silu, gelu;
  for (double v = first; v >= last; v -= 1. / 64) {
    silu.push_back(v);
    double w = -1;  // 2t = v there
    while (2 * argument_of_tanh(w) > v) w -= 1. / 256;
    gelu.push_back(static_cast<double>(static_cast<T>(w)));
  }
  const auto check = [&](const Values& values, const epilogue::Program& program, const auto& argument) {
    const int count = static_cast<int>(values.size());
    const auto a = matrix<T, Exec>(1, 1, {1}), b = matrix<T, Exec>(1, count, values), c = matrix<T, Exec>(1, count);
    const Values results = contracted(Exec{}, rigel::plus_times<T>{}, a, b, c, program);
    for (int i = 0; i < count; ++i) {
      const long double v = values[i], u = argument(v), exact = v * std::exp(u) / (1 + std::exp(u));
      if (std::fabs(exact) < std::numeric_limits<T>::min()) continue;
      CAPTURE(values[i]);
      const long double units = program[0].kind == epilogue::Kind::silu ? 8 : 8 + 4 * std::fabs(u);
      const long double error = units * std::numeric_limits<T>::epsilon() / 2 * std::fabs(exact) + std::fabs(v) * least;
      CHECK(std::fabs(results[i] - exact) <= error);
    }
  };
  check(silu, epilogue::silu(), [](long double v) { return v; });
  check(gelu, epilogue::gelu_tanh(),
        [](long double v) { return 2 * std::sqrt(2 / std::acos(-1.L)) * (v + 0.044715L * v * v * v); });
}

}  // namespace

TEST_CASE_TEMPLATE("epilogues: activations whose exponentials are subnormal", Exec, RIGEL_TEST_SPACES) {
  check_tails<float, Exec>(-85, -92);
  check_tails<double, Exec>(-705, -716);
  const auto one = matrix<double, Exec>(1, 1, {1}), b = matrix<double, Exec>(1, 1, {-710}), c = matrix<double, Exec>(1, 1);
  // −710·exp(−710), in 50 digits
  CHECK(contracted(Exec{}, rigel::plus_times<double>{}, one, b, c, epilogue::silu())[0] ==
        doctest::Approx(-3.178163220229342268819044e-306).epsilon(8 * 0x1p-53));
}

TEST_CASE_TEMPLATE("epilogues: the rational quadratic kernel of zero, of no number, and of a large alpha", Exec,
                   RIGEL_TEST_SPACES) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto check = [&]<class T>(T, double alpha, double of_half) {
    const auto a = matrix<T, Exec>(1, 1, {1}), b = matrix<T, Exec>(1, 3, {0, infinity, 0.5}), c = matrix<T, Exec>(1, 3);
    const Values results = contracted(Exec{}, rigel::plus_times<T>{}, a, b, c, epilogue::rational_quadratic(alpha));
    CHECK(results[0] == 1);
    CHECK(results[1] == 0);
    CHECK(std::fabs(results[2] - of_half) <= 8 * std::numeric_limits<T>::epsilon() * of_half);
  };
  // (1 + 1/(2·alpha))^−alpha, in 50 digits; of the last ones exp(−1/2) to the last digit.
  const double most = 0.6065306597126334236037995;
  for (const auto& [alpha, of_half] : {std::pair{1e6, 0.6065307355289453540994506},
                                       {1e8, 0.6065306604707967461912323},
                                       {1e30, most},
                                       {1e60, most},
                                       {infinity, most}}) {
    CAPTURE(alpha);
    check(0.f, alpha, of_half);
    check(0., alpha, of_half);
  }
}

TEST_CASE_TEMPLATE("epilogues: Matérn kernels of zero and of distances beyond all numbers", Exec, RIGEL_TEST_SPACES) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto a = matrix<float, Exec>(1, 1, {1}), b = matrix<float, Exec>(1, 3, {0, 1e30, infinity}),
             c = matrix<float, Exec>(1, 3);
  for (const auto& program : {epilogue::matern32(1e-3), epilogue::matern52(1e-3)})
    CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, c, program) == Values{1, 0, 0});
}

TEST_CASE("epilogues: a thread's outputs at a time have the bits of one output") {
  const TwoGroups outputs;
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& program : {epilogue::exponential(-0.3), epilogue::matern32(0.7), epilogue::matern52(0.7),
                              epilogue::pow(0.5) | epilogue::matern32(3), epilogue::pow(0.5) | epilogue::matern52(3),
                              epilogue::matern52(1e-3) | epilogue::threshold(0.1) | epilogue::add_diagonal(1),
                              epilogue::sigmoid() | epilogue::matern52(1)})
    for (const float largest : {1.f, 30.f, infinity, nan}) {
      const std::array<std::array<float, 4>, 2> given{{{0, 1e-30f, 0.1f, 0.37f}, {1, 2.5f, 77.7f, largest}}};
      float values[2][4];
      std::memcpy(values, given.data(), sizeof values);
      program.run_on(values, outputs, 0);
      for (int m = 0; m < 2; ++m)
        for (int n = 0; n < 4; ++n) {
          const float expected = program(given[m][n], m, n, 0);
          CHECK((values[m][n] == expected || (std::isnan(values[m][n]) && std::isnan(expected))));
        }
    }
}

TEST_CASE("epilogues: a group of outputs has one second parameter, or goes one by one") {
  const float low[8] = {-1, -2, -3, -4, 1, 2, 3, 4}, high = 2;
  const epilogue::Source one{.data = &high, .type = rigel::Scalar::f32},
      row{.data = low, .column_stride = 1, .columns = 4, .type = rigel::Scalar::f32},
      column{.data = low, .row_stride = 1, .rows = 2, .type = rigel::Scalar::f32},
      matrix{.data = low, .row_stride = 4, .column_stride = 1, .rows = 2, .columns = 4, .type = rigel::Scalar::f32};
  for (const auto kind : {epilogue::Kind::clamp, epilogue::Kind::reciprocal})
    for (const epilogue::Source& x : {one, row, column, matrix}) {
      for (const epilogue::Source& y : {row, column, matrix})
        CHECK_FALSE(epilogue::Program(epilogue::Step(kind), x, y).is_short());
      const epilogue::Program program(epilogue::Step(kind), x, one);
      CHECK(program.is_short());
      const float given[2][4] = {{-9, -2.5f, 0.5f, 9}, {-7, 0.25f, 8, 1.5f}};
      float values[2][4];
      std::memcpy(values, given, sizeof values);
      program.run_on(values, TwoGroups{}, 0);
      for (int m = 0; m < 2; ++m)
        for (int n = 0; n < 4; ++n) CHECK(values[m][n] == program(given[m][n], m, n, 0));
    }
}

TEST_CASE_TEMPLATE("epilogues: the diagonal of each batch", Exec, RIGEL_TEST_SPACES) {
  const auto a = support::batch<float, Exec>(2, 2, 1, {1, 2, 3, 4});
  const auto b = matrix<float, Exec>(1, 2, {1, 1});
  const auto c = support::batch<float, Exec>(2, 2, 2);
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, c, epilogue::add_diagonal(10)) ==
        Values{11, 1, 2, 12, 13, 3, 4, 14});
}

TEST_CASE_TEMPLATE("epilogues: integer results in double", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<std::int32_t, Exec>(1, 1, {7}), b = matrix<std::int32_t, Exec>(1, 2, {1, 3});
  const rigel::plus_times<std::int32_t> s;
  CHECK(contracted(Exec{}, s, a, b, matrix<double, Exec>(1, 2), epilogue::scale(0.5)) == Values{3.5, 10.5});
  CHECK(contracted(Exec{}, s, a, b, matrix<float, Exec>(1, 2), epilogue::scale(0.5) | epilogue::add_diagonal(1)) ==
        Values{4.5, 10.5});
  // A product beyond 2^24, where float would round.
  const auto big = matrix<std::int64_t, Exec>(1, 1, {0x1p26 + 1}), one = matrix<std::int64_t, Exec>(1, 1, {1});
  CHECK(contracted(Exec{}, rigel::plus_times<std::int64_t>{}, big, one, matrix<double, Exec>(1, 1), epilogue::scale(2)) ==
        Values{0x1p27 + 2});
}

TEST_CASE("epilogues: eight steps, no more") {
  epilogue::Program p;
  for (int i = 0; i < 8; ++i) p = p | epilogue::scale(2);
  CHECK(p.size() == 8);
  CHECK(p(1.f, 0, 0, 0) == 256);
  CHECK_THROWS_AS(p | epilogue::scale(2), rigel::Error);
  try {
    p | epilogue::scale(2);
  } catch (const rigel::Error& e) {
    CHECK(e.code() == rigel::Code::invalid_argument);
    CHECK(std::string(e.what()).find("more than 8 steps") != std::string::npos);
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The elementary operations inside kernels: every execution space must give the same values as the host, which uses other
// instructions.
#include <rigel/elementary.hpp>
#include <rigel/semirings.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <cmath>
#include <limits>

namespace {

// The operations that round at most once, by number. The host and a device must agree on them bit for bit.
constexpr int operations = 9;
template <class T>
KOKKOS_FUNCTION T apply(int operation, T x, T y) {
  namespace math = rigel::math;
  switch (operation) {
    case 0: return math::add(x, y);
    case 1: return math::subtract(x, y);
    case 2: return math::multiply(x, y);
    case 3: return math::fma(x, y, T(1));
    case 4: return math::minimum(x, y);
    case 5: return math::maximum(x, y);
    case 6: return math::abs(x);
    case 7: return math::select(x < y, x, y);
    default: return math::add(math::multiply(x, y), T(-1));  // must not become an fma
  }
}

template <class T>
std::vector<double> operands() {
  std::vector<double> list;
  support::Random random(3);
  if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    for (const T v : {T(0), T(-0.), T(1), T(-1), Limits::denorm_min(), Limits::min(), Limits::max(), Limits::lowest(),
                      Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), T(1) + Limits::epsilon()})
      list.push_back(v);
    for (int i = 0; i < 40; ++i) list.push_back(static_cast<T>(std::exp2(random.uniform(-40, 40)) * (i % 2 ? 1 : -1)));
    for (int i = 0; i < 12; ++i) list.push_back(static_cast<T>(random.uniform(-1.5, 1.5)));
  } else {
    for (const std::int64_t v : {0, 1, -1, 7, -100, 0x7fffffff, -0x7fffffff - 1}) list.push_back(static_cast<double>(v));
    for (int i = 0; i < 20; ++i) list.push_back(static_cast<double>(static_cast<std::int32_t>(random.next())));
  }
  return list;
}

template <class T, class Exec>
void check_operations() {
  const auto list = operands<T>();
  const int size = static_cast<int>(list.size());
  const auto x = support::matrix<T, Exec>(1, size, list);
  const auto y = support::matrix<T, Exec>(operations, size * size);
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Exec>(0, size * size), KOKKOS_LAMBDA(int i) {
        for (int o = 0; o < operations; ++o) y(o, i) = apply<T>(o, x(0, i / size), x(0, i % size));
      });
  const auto actual = support::values(y);
  for (int o = 0; o < operations; ++o) {
    int wrong = 0;
    for (int i = 0; i < size * size; ++i)
      wrong +=
          !support::same(actual[o * size * size + i],
                         static_cast<double>(apply<T>(o, static_cast<T>(list[i / size]), static_cast<T>(list[i % size]))));
    CAPTURE(o);
    CHECK(wrong == 0);
  }
}

template <class T, class Exec>
void check_conversions() {
  constexpr int count = 0x10000;
  const Kokkos::View<std::uint16_t*, typename Exec::memory_space> back("back", count);
  const Kokkos::View<float*, typename Exec::memory_space> wide("wide", count);
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Exec>(0, count), KOKKOS_LAMBDA(int i) {
        const T v = __builtin_bit_cast(T, static_cast<std::uint16_t>(i));
        wide(i) = v;
        // A value between this number and its neighbour, above the midpoint for odd i, so that it tests rounding too.
        const float f = v;
        back(i) = __builtin_bit_cast(std::uint16_t, T(f + f * (i % 2 ? 0.0015f : 0.0001f)));
      });
  Kokkos::fence();
  const auto host_back = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, back);
  const auto host_wide = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, wide);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    const T v = __builtin_bit_cast(T, static_cast<std::uint16_t>(i));
    const float f = v;
    wrong += !support::same(host_wide(i), f);
    const T expected(f + f * (i % 2 ? 0.0015f : 0.0001f));
    wrong += !support::same(float(__builtin_bit_cast(T, host_back(i))), float(expected));
  }
  CHECK(wrong == 0);
}

// Sums and others of 16-bit floats, of every number and 32 more: half of them differ in the last bits of their fractions and a little in
// their exponents.
constexpr int short_operations = 6, others = 32;
template <class T>
KOKKOS_FUNCTION T apply_short(int operation, T x, T y) {
  switch (operation) {
    case 0: return rigel::math::add(x, y);
    case 1: return rigel::math::subtract(x, y);
    case 2: return rigel::math::multiply(x, y);
    case 3: return rigel::math::add(rigel::math::multiply(x, y), T(-1));  // must not become an fma
    case 4: return rigel::math::minimum(x, y);
    default: return rigel::math::maximum(x, y);
  }
}
template <class T>
KOKKOS_FUNCTION T short_number(std::uint32_t bits) {
  return __builtin_bit_cast(T, static_cast<std::uint16_t>(bits));
}
template <class T>
KOKKOS_FUNCTION T other_number(std::uint32_t number, int i) {
  constexpr std::uint32_t of_exponent = std::is_same_v<T, rigel::half> ? 0x400 : 0x80;
  const auto n = static_cast<std::uint32_t>(i);
  if (i % 2 == 0) return short_number<T>((number + 0x10000 - n / 4 * of_exponent) ^ (number >> 3 & 7) ^ (n / 2 % 2 << 15));
  return short_number<T>((number * 0x9e3779b1u + n * 0x85ebca6bu) >> 9);
}

template <class T, class Exec>
void check_short_operations() {
  constexpr int count = 0x10000;
  const Kokkos::View<T***, typename Exec::memory_space> results("results", short_operations, others, count);
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Exec>(0, count), KOKKOS_LAMBDA(int n) {
        for (int o = 0; o < short_operations; ++o)
          for (int i = 0; i < others; ++i)
            results(o, i, n) = apply_short(o, short_number<T>(static_cast<std::uint32_t>(n)),
                                           other_number<T>(static_cast<std::uint32_t>(n), i));
      });
  Kokkos::fence();
  const auto actual = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, results);
  for (int o = 0; o < short_operations; ++o) {
    int wrong = 0, numbers = 0;
    for (int i = 0; i < others; ++i)
      for (int n = 0; n < count; ++n) {
        const float expected = apply_short(o, short_number<T>(static_cast<std::uint32_t>(n)),
                                           other_number<T>(static_cast<std::uint32_t>(n), i));
        const float value = actual(o, i, n);
        wrong += !support::same(value, expected);
        if (o < 4 && expected == 0)
          wrong += std::signbit(value) != std::signbit(expected);  // of minima either zero may come
        numbers += expected == expected;
      }
    CAPTURE(o);
    CHECK(wrong == 0);
    CHECK(numbers > count * others / 2);
  }
}

// Transcendental functions differ in the last places between a host and a device; both are within 4 units.
template <class T, class Exec>
void check_functions() {
  constexpr int count = 2000;
  std::vector<double> list;
  support::Random random(5);
  for (int i = 0; i < count; ++i) list.push_back(static_cast<T>(random.uniform(0, 20)));
  const auto x = support::matrix<T, Exec>(1, count, list);
  const auto y = support::matrix<T, Exec>(3, count);
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Exec>(0, count), KOKKOS_LAMBDA(int i) {
        y(0, i) = rigel::math::exponential(-x(0, i));
        y(1, i) = rigel::math::logarithm(x(0, i));
        y(2, i) = rigel::math::power(x(0, i), T(1.3));
      });
  const auto actual = support::values(y);
  const long double p = T(1.3);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    const long double exact[] = {std::exp(-static_cast<long double>(list[i])), std::log(static_cast<long double>(list[i])),
                                 std::pow(static_cast<long double>(list[i]), p)};
    for (int f = 0; f < 3; ++f)
      wrong += !(std::fabs(actual[f * count + i] - exact[f]) <= 4 * std::numeric_limits<T>::epsilon() * std::fabs(exact[f]));
  }
  CHECK(wrong == 0);
}

struct ByPower {
  KOKKOS_FUNCTION float operator()(float x, float p) const { return rigel::math::power_approximately(x, p); }
};
struct ByParts {
  KOKKOS_FUNCTION float operator()(float x, float p) const { return rigel::math::power_by_parts(x, p); }
};

// Checks a power by the special-function unit, function(x, p), against the power in double, within bound_of(p, x^p), over the
// normal floats whose power is normal too.
template <class Exec, class Function, class Bound>
void check_approximate_power(std::initializer_list<float> exponents, const Function& function, const Bound& bound_of) {
  constexpr int count = 20000;
  const auto normal = [](double v) {
    return v > std::numeric_limits<float>::min() && v < std::numeric_limits<float>::max();
  };
  for (const float p : exponents) {
    CAPTURE(p);
    support::Random random(6);
    std::vector<double> list;
    while (list.size() < count) {
      const float x = static_cast<float>(std::exp2(random.uniform(-126, 128)));
      if (std::isfinite(x) && normal(std::pow(x, static_cast<double>(p)))) list.push_back(x);
    }
    constexpr float infinity = std::numeric_limits<float>::infinity();
    list[0] = 0, list[1] = infinity, list[2] = std::numeric_limits<float>::quiet_NaN(), list[3] = 1;
    const auto x = support::matrix<float, Exec>(1, count, list), y = support::matrix<float, Exec>(1, count);
    Kokkos::parallel_for(Kokkos::RangePolicy<Exec>(0, count), KOKKOS_LAMBDA(int i) { y(0, i) = function(x(0, i), p); });
    const auto actual = support::values(y);
    CHECK(actual[0] == 0);
    CHECK(actual[1] == infinity);
    CHECK(std::isnan(actual[2]));
    CHECK(actual[3] == 1);
    int wrong = 0;
    double worst = 0;
    for (int i = 4; i < count; ++i) {
      const double exact = std::pow(list[i], static_cast<double>(p));
      const double bound = bound_of(p, exact) * 0x1p-24;
      const double error = std::fabs(actual[i] - exact) / exact;
      if (!(error <= bound)) ++wrong, worst = list[i];
    }
    CAPTURE(worst);
    CHECK(wrong == 0);
  }
}

// Sines, cosines and arcsines of roots within 4u of long double: angles up to 2π and tiny ones, and beyond the range of the polynomials;
// at zeros of the functions by absolute errors, since long double's own arguments are exact.
template <class T, class Exec>
void check_circular() {
  constexpr int count = 30000;
  support::Random random(8);
  std::vector<double> angles(count), squares(count);
  for (int i = 0; i < count; ++i) {
    const double drawn[] = {random.uniform(-6.28, 6.28), std::exp2(random.uniform(-120, 0)),
                            -std::exp2(random.uniform(8, 40)), random.uniform(-255, 255)};
    angles[i] = static_cast<T>(drawn[i % 4]);
    squares[i] = static_cast<T>(i % 3 == 0 ? random.uniform(0, 1) : i % 3 == 1 ? drawn[1] : 1 - drawn[1]);
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  angles[0] = 0, angles[1] = infinity, angles[2] = std::numeric_limits<double>::quiet_NaN();
  squares[0] = 0, squares[1] = 1, squares[2] = std::numeric_limits<double>::quiet_NaN();
  const auto x = support::matrix<T, Exec>(1, count, angles), v = support::matrix<T, Exec>(1, count, squares),
             y = support::matrix<T, Exec>(3, count);
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Exec>(0, count), KOKKOS_LAMBDA(int i) {
        y(0, i) = rigel::math::sine(x(0, i));
        y(1, i) = rigel::math::cosine(x(0, i));
        y(2, i) = rigel::math::arcsine_of_root(v(0, i));
      });
  const auto actual = support::values(y);
  CHECK(actual[0] == 0);
  CHECK(actual[count] == 1);
  CHECK(actual[2 * count] == 0);
  CHECK(actual[2 * count + 1] == std::asin(T(1)));
  for (const int i : {1, 2, count + 1, count + 2, 2 * count + 2}) CHECK(std::isnan(actual[i]));
  const double bound = 4 * std::numeric_limits<T>::epsilon() / 2;
  int wrong[3] = {};
  for (int i = 3; i < count; ++i) {
    const long double a = angles[i], root = std::sqrt(static_cast<long double>(squares[i]));
    const long double exact[] = {std::sin(a), std::cos(a),
                                 std::atan2(root, std::sqrt(1 - static_cast<long double>(squares[i])))};
    for (int f = 0; f < 3; ++f) {
      const bool absolute = f < 2 && std::fabs(a) > 6.28L;
      wrong[f] += !(std::fabs(actual[f * count + i] - exact[f]) <= bound * (absolute ? 1 : std::fabs(exact[f])));
    }
  }
  for (const int number : wrong) CHECK(number == 0);
}

// Roots of subnormal numbers, which are normal.
template <class Exec>
void check_subnormal_roots() {
  constexpr int count = 149 - 126;
  for (const float q : {0.01f, 0.25f, 1 / 1.3f}) {
    CAPTURE(q);
    const auto x = support::matrix<float, Exec>(1, count), y = support::matrix<float, Exec>(1, count);
    std::vector<double> list(count);
    for (int i = 0; i < count; ++i) list[i] = std::ldexp(1, -149 + i) + (i > 2 ? 0x1p-149 : 0);
    support::fill(x, list);
    Kokkos::parallel_for(
        Kokkos::RangePolicy<Exec>(0, count), KOKKOS_LAMBDA(int i) { y(0, i) = rigel::math::power_by_parts(x(0, i), q); });
    const auto actual = support::values(y);
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
      const double exact = std::pow(list[i], static_cast<double>(q));
      wrong += !(std::fabs(actual[i] - exact) <= 10 * 0x1p-24 * exact);
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("powers by the special-function unit: within their bound", Exec, RIGEL_TEST_SPACES) {
  check_approximate_power<Exec>({0.3f, 1.3f, 1.5f, 2.7f, 8.f}, ByPower{},
                                [](double p, double exact) { return 4 + 3 * p + 0.7 * std::fabs(std::log2(exact)); });
  check_approximate_power<Exec>({0.01f, 0.3f, 1 / 3.f, 1 / 1.3f, 1.f, 1.3f, 2.7f, 8.f}, ByParts{},
                                [](double p, double) { return 6 + 3.5 * p; });
  check_subnormal_roots<Exec>();
}

TEST_CASE_TEMPLATE("elementary operations: the same on every execution space", Exec, RIGEL_TEST_SPACES) {
  check_operations<float, Exec>();
  check_operations<double, Exec>();
  check_operations<std::int32_t, Exec>();
}

TEST_CASE_TEMPLATE("16-bit conversions: the same on every execution space", Exec, RIGEL_TEST_SPACES) {
  check_conversions<rigel::half, Exec>();
  check_conversions<rigel::bfloat16, Exec>();
}

TEST_CASE_TEMPLATE("sums and minima of 16-bit floats: the same on every execution space", Exec, RIGEL_TEST_SPACES) {
  check_short_operations<rigel::half, Exec>();
  check_short_operations<rigel::bfloat16, Exec>();
}

TEST_CASE_TEMPLATE("transcendental functions: within four units on every execution space", Exec, RIGEL_TEST_SPACES) {
  check_functions<float, Exec>();
  check_functions<double, Exec>();
}

TEST_CASE_TEMPLATE("sines, cosines and arcsines within their bounds", Exec, RIGEL_TEST_SPACES) {
  check_circular<float, Exec>();
  check_circular<double, Exec>();
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What texts mean: operators, types, statements and functions, on numbers worked out by hand.
#include "texts.hpp"

#include <clocale>
#include <cmath>
#include <limits>
#include <string>

namespace {

// a ⊗ b of a text on the host. Other execution spaces must give the same number; if the text calls exponentials, logarithms, powers, sines,
// cosines or hyperbolic tangents, one within 16 units of its last place.
template <class T>
T product(const rigel::runtime::Semiring& semiring, T a, T b, bool calls_functions = false) {
  const T expected = texts::product(semiring, a, b);
  texts::for_each_space([&]<class Exec>() {
    if (support::on_host<Exec>) return;
    const T found = texts::product<Exec>(semiring, a, b);
    bool agrees = found == expected;
    if constexpr (std::is_floating_point_v<T>)
      agrees =
          agrees || (found != found && expected != expected) ||
          (calls_functions && std::abs(found - expected) <= 16 * std::numeric_limits<T>::epsilon() * std::abs(expected));
    CAPTURE(found);
    CAPTURE(expected);
    CHECK(agrees);
  });
  return expected;
}
template <class T>
T product(const char* text, T a, T b) {
  CAPTURE(text);
  const std::string all = text;
  bool calls = false;
  for (const char* name : {"exp", "log", "sin", "cos", "tanh", "pow"}) calls = calls || all.find(name) != all.npos;
  return product(rigel::runtime::Semiring({.element = rigel::scalar_of<T>, .multiply = text, .add = "x + y"}), a, b, calls);
}

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("text: operators and their precedence") {
  if (!texts::can_compile()) return;
  CHECK(product("a + b * 2 - 6 / a", 3.f, 5.f) == 11);
  CHECK(product("-(a - b) * -1.5", 3.f, 5.f) == -3);
  CHECK(product("a < b ? 1 : a == b ? 2 : 3", 3.f, 5.f) == 1);
  CHECK(product("a < b ? 1 : a == b ? 2 : 3", 5.f, 5.f) == 2);
  CHECK(product("a < b ? 1 : a == b ? 2 : 3", 6.f, 5.f) == 3);
  CHECK(product("a > 1 && b > 1 || !(a != b) ? 7 : 8", 0.f, 0.f) == 7);
  CHECK(product("a > 1 && b > 1 || !(a != b) ? 7 : 8", 0.f, 2.f) == 8);
  CHECK(product("a ? 1 : b ? 2 : 3", 0.f, 0.f) == 3);
  CHECK(product("(a < b) == (b > a) ? 1 : 0", 4.f, 2.f) == 1);
  CHECK(product("(a < 3) != true ? 1 : 0", 4.f, 2.f) == 1);
  CHECK(product("2 + 3 * a << 1 | 1 & b", 2, 3) == 17);
  CHECK(product("a ^ b & 6 | 1", 8, 7) == 15);
  CHECK(product("~a - -b", 5, 3) == -3);
  CHECK(product("a % b * 10 + a / b", -7, 2) == -13);
}

TEST_CASE("text: whole numbers wrap, and nothing traps") {
  if (!texts::can_compile()) return;
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(), most = std::numeric_limits<std::int32_t>::max();
  CHECK(product("a + b", most, 1) == least);
  CHECK(product("a * b", 1 << 20, 1 << 13) == 0);
  CHECK(product("a / b", 7, 0) == 0);
  CHECK(product("a % b", 7, 0) == 0);
  CHECK(product("a / b", least, -1) == least);
  CHECK(product("a % b", least, -1) == 0);
  CHECK(product("a / b", std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(product("a << b", 1, 33) == 2);
  CHECK(product("a >> b", -16, 2) == -4);
  CHECK(product("abs(a)", least, 0) == least);
  CHECK(product("9000000000 + a", std::int64_t{1}, std::int64_t{0}) == 9000000001);
  CHECK(product("0x7f + a", 1, 0) == 128);
}

TEST_CASE("text: conversions") {
  if (!texts::can_compile()) return;
  CHECK(product("int(a) / 2 * b", 7.75f, 1.f) == 3);
  CHECK(product("(int)a + (float)1", -7.75f, 1.f) == -6);
  CHECK(product("int(a)", 3e9f, 1.f) == static_cast<float>(std::numeric_limits<std::int32_t>::max()));
  CHECK(product("int(a) == -2147483647 - 1 ? 1 : 0", -3e9f, 1.f) == 1);
  CHECK(product("int(a)", not_a_number, 1.f) == 0);
  CHECK(product("long(a) == 9223372036854775807 ? 1 : 0", inf, 1.f) == 1);
  CHECK(product("int(a < b) + int(true)", 1.f, 2.f) == 2);
  CHECK(product("bool(a) ? 3 : 4", 0.f, 2.f) == 4);
  CHECK(product("float(double(a) + 1e-12 * double(b))", 1.f, 1.f) == 1);
  // A number without a suffix has the accumulator's type: in double, 0.1 is another number.
  CHECK(product("a * 0.1", 3.f, 1.f) == 3.f * 0.1f);
  CHECK(product("a * 0.1", 3., 1.) == 3. * 0.1);
  CHECK(product("a * 0.1f", 3., 1.) == 3. * 0.1f);
  CHECK(product("a * 0.5 + 0.75", 3, 1) == 2);
  CHECK(product("infinity", 1, 1) == std::numeric_limits<std::int32_t>::max() / 2);
  CHECK(product("-infinity", 1., 1.) == -inf);
}

TEST_CASE("text: statements") {
  if (!texts::can_compile()) return;
  const char* const clamped = R"(
    float d = a - b;   // the difference
    if (d < 0) d = -d;
    else if (d > 100) return 100;
    const float half = 0.5;
    { float twice = 2 * d; d = twice; }
    if (d > 10) { d -= 10; d *= half; } else { d += 1; d /= 4; }
    return d;)";
  CHECK(product(clamped, 1.f, 3.f) == 1.25f);
  CHECK(product(clamped, 30.f, 3.f) == 22);
  CHECK(product(clamped, 300.f, 3.f) == 100);
  const char* const horner = "float s = 1; for (int i = 0; i < 4; ++i) s = s * a + i; return s;";
  CHECK(product(horner, 2.f, 0.f) == 27);  // 2, 5, 12, 27
  const char* const nested =
      "int s = 0; for (int i = 1; i <= 3; i++) for (int j = 0; j < 4; ++j) { if (j == 2) s += i * j; } return s + a;";
  CHECK(product(nested, 1, 0) == 13);
  const char* const early = "for (int i = 0; i < 10; ++i) { if (i * i > a) return i; } return -1;";
  CHECK(product(early, 10, 0) == 4);
  CHECK(product(early, 1000, 0) == -1);
  CHECK(product("if (a < b) { return 1; } else { if (a > b) return 2; else return 3; }", 2.f, 1.f) == 2);
  CHECK(product("bool less = a < b; auto n = 3; return less ? n : n + 1;", 2.f, 1.f) == 4);
  CHECK(product("for (int i = 5; i < 2; ++i) return 1; return 0;", 2.f, 1.f) == 0);
}

TEST_CASE("text: the first return of a loop's rounds counts, with and without a condition") {
  if (!texts::can_compile()) return;
  CHECK(product("for (int i = 0; i < 3; ++i) return a + i; return b;", 2.f, 7.f) == 2);
  CHECK(product("for (int i = 0; i < 3; ++i) { if (i == 1) return a; } return b;", 2.f, 7.f) == 2);
  CHECK(product("for (int i = 0; i < 3; ++i) for (int j = 1; j < 3; ++j) return a + 10 * i + j; return b;", 2.f, 7.f) == 3);
  CHECK(product("for (int i = 0; i < 3; ++i) { if (a < b) return i; else return i + 5; } return b;", 2.f, 7.f) == 0);
  CHECK(product("if (a < b) for (int i = 0; i < 3; ++i) return a + i; return b;", 2.f, 7.f) == 2);
  CHECK(product("if (a > b) for (int i = 0; i < 3; ++i) return a + i; return b;", 2.f, 7.f) == 7);
  CHECK(product("for (int i = 0; i < 0; ++i) return a + i; for (int i = 1; i < 3; ++i) return b + i; return a;", 2.f, 7.f) ==
        8);
}

TEST_CASE("text: numbers are read alike whatever sign the program separates digits with") {
  if (!texts::can_compile()) return;
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  bool is_set = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "ru_RU.UTF-8"})
    is_set = is_set || std::setlocale(LC_NUMERIC, name);
  if (!is_set) support::skip("no locale with a comma is installed");
  CHECK(product("a * 1.5 + 0x1.8p1 + 2.5e-1f", 2.f, 1.f) == 6.25f);
  CHECK(product("a * 1.5 + 0x1.8p1 + 2.5e-1f", 2., 1.) == 6.25);
  std::setlocale(LC_NUMERIC, before.c_str());
}

TEST_CASE("text: the power of a number that was made of a magnitude") {
  if (!texts::can_compile()) return;
  for (const char* one : {"power(float(bool(abs(a))), 3)", "power((float)(bool)abs(a), 2.5)",
                          "power(float(int(abs(a))), 3) / 8", "power(float(abs(a) > 1), 3)", "power((abs(a) - 1.5), 3)"}) {
    CAPTURE(one);
    CHECK(std::abs(product(one, -2.5f, 0.f) - 1) <= 24 * 0x1p-24f);
  }
  CHECK(product("power(bool(abs(a)) ? 1.0 : 0.0, 3)", -2.5f, 0.f) == 1);
  CHECK(product("power(abs(a), int(2.5))", -3.f, 0.f) == 9);
}

TEST_CASE("text: power keeps what an argument in double has") {
  if (!texts::can_compile()) return;
  // (1 + 2^-40)^(2^20) is exp(2^-20) but for 2^-61, here with 2^-40 in two factors; in float the base would be 1.
  CHECK(std::abs(product("power(double(1) + 1e-12 * double(a), double(1048576.0))", 0.9094947017729282f, 0.f) -
                 1.00000095367f) <= 0x1p-23f);
  // As floats, both powers would be infinite.
  CHECK(product("power(double(a), double(20)) / power(double(a), double(19))", 1000.f, 0.f) == 1000);
  CHECK(product("power(double(a), 20) / power(double(a), 19)", 1000.f, 0.f) == 1000);
}

TEST_CASE("text: if is a selection lane by lane") {
  if (!texts::can_compile()) return;
  const rigel::runtime::Semiring s(
      {.multiply = "float r = 0; if (a > b) { if (a > 2 * b) return 2; r = 1; } else r = -1; return r;", .add = "x + y"});
  const texts::Matrix<float> a("a", 1, 1), b("b", 1, 40), c("c", 1, 40);
  a(0, 0) = 20;
  for (int j = 0; j < 40; ++j) b(0, j) = static_cast<float>(j);
  rigel::contract(texts::Host{}, s, a, b, c);
  for (int j = 0; j < 40; ++j) CHECK(c(0, j) == (20 > 2 * j ? 2 : 20 > j ? 1 : -1));
}

TEST_CASE("text: functions") {
  if (!texts::can_compile()) return;
  CHECK(product("abs(a) + min(a, b) * max(a, 1)", -3.f, 5.f) == 0);
  CHECK(product("fma(a, b, 0.5)", 3.f, 5.f) == 15.5f);
  CHECK(product("fma(a, b, -1.0)", 1 + 0x1p-12f, 1 - 0x1p-12f) == -0x1p-24f);
  CHECK(product("sqrt(a) + rsqrt(b) + fast::sqrt(a) + fast::rsqrt(b)", 9.f, 4.f) == 7);
  CHECK(product("floor(a) + 10 * ceil(a) + 100 * trunc(b)", 1.5f, -1.5f) == -79);
  CHECK(product("copysign(a, b)", 3.f, -0.f) == -3);
  CHECK(product("select(a < b, a, 2 * b)", 3.f, 1.f) == 2);
  CHECK(product("(isnan(a) ? 1 : 0) + (isinf(b) ? 2 : 0) + (isfinite(a) ? 4 : 0)", not_a_number, inf) == 3);
  CHECK(product("(isnan(a) ? 1 : 0) + (isinf(b) ? 2 : 0) + (isfinite(a) ? 4 : 0)", 1.f, -inf) == 6);
  CHECK(std::isnan(product("min(a, b)", not_a_number, 1.f)));
  CHECK(std::isnan(product("min(a, b)", 1.f, not_a_number)));
  CHECK(std::isnan(product("max(a, b)", not_a_number, 1.f)));
  CHECK(std::isnan(product("max(a, b)", 1.f, not_a_number)));
  CHECK(product("sqrt(a)", 16, 0) == 4);
}

TEST_CASE("text: exponentials, logarithms, powers and the like") {
  if (!texts::can_compile()) return;
  const struct {
    const char* text;
    double expected;  // for the floats a = 0.7 and b = 1.9, from 50 digits
  } cases[] = {
      {"exp(a)", 2.0137526834646737},         {"exp2(a)", 1.6245047792892557},
      {"fast::exp2(a)", 1.6245047792892557},  {"expm1(a)", 1.0137526834646737},
      {"log(b)", 0.64185387362404843},        {"log2(b)", 0.9259994004527861},
      {"fast::log2(b)", 0.9259994004527861},  {"log1p(a)", 0.53062824404985922},
      {"sin(a)", 0.64421767812006163},        {"cos(a)", 0.76484219496416165},
      {"tanh(a)", 0.60436776955047788},       {"pow(a, b)", 0.50779248074367283},
      {"power(a, 2.5)", 0.40996339554760895}, {"rigel::power(a, 2.5)", 0.40996339554760895},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(std::string(text));
    CHECK(std::abs(double{product(text, 0.7f, 1.9f)} - expected) <= 10 * 0x1p-24 * std::abs(expected));
  }
}

TEST_CASE("text: many long operations, which are then functions of their own, give what few do") {
  if (!texts::can_compile()) return;
  const auto repeated = [](const std::string& first, const std::string& between, const std::string& part,
                           const std::string& last) {
    std::string text = first;
    for (int i = 0; i < 12; ++i) text += (i ? between : "") + part;
    return text + last;
  };
  CHECK(product(repeated("", " + ", "a / b", "").c_str(), 17, 5) == 12 * 3);
  CHECK(product(repeated("", " + ", "a % b", "").c_str(), 17, 5) == 12 * 2);
  CHECK(product(repeated("", " + ", "int(a)", "").c_str(), 17.5f, 5.f) == 12 * 17);
  for (const std::string one : {"exp(a)", "log(a)", "power(a, 1.7)", "exp2(a)", "tanh(a)", "pow(a, b)"}) {
    CAPTURE(one);
    const float expected = product(one.c_str(), 0.7f, 1.9f);
    CHECK(product(repeated("float m = 0; ", "", "m = max(m, " + one + "); ", "return m;").c_str(), 0.7f, 1.9f) ==
          (expected < 0 ? 0 : expected));
  }
}

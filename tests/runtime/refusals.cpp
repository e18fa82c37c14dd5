// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are refused, each with the place that the message names. None of them reaches the compiler.
#include "texts.hpp"

#include <string>

namespace {

struct Refused {
  const char* text;
  int line, column;
  const char* says;
};

const Refused refused[] = {
    // Nothing but the language reaches the compiler.
    {"#include <cstdlib>", 1, 1, "preprocessor"},
    {"a +\n#define b 1\nb", 2, 1, "preprocessor"},
    {"system(\"rm\")", 1, 8, "'\"' is no sign"},
    {"'a'", 1, 1, "is no sign"},
    {"asm(a)", 1, 1, "'asm' is no function"},
    {"__builtin_trap()", 1, 1, "is no function"},
    {"::abort()", 1, 1, "not ':'"},
    {"std::exp(a)", 1, 1, "'std' is not known here"},
    {"rigel::contract(a)", 1, 1, "is no function"},
    {"fast::exp(a)", 1, 1, "is no function"},
    {"rigel::", 1, 8, "expected a function's name"},
    {"exit(0)", 1, 1, "is no function"},
    {"a.b", 1, 2, "no members"},
    {"a->b", 1, 3, "not '>'"},
    {"a[0]", 1, 2, "neither arrays nor lambdas"},
    {"[]{ return a; }()", 1, 1, "neither arrays nor lambdas"},
    {"[[noreturn]] a", 1, 1, "nor attributes"},
    {"@a", 1, 1, "is no sign"},
    {"a $ b", 1, 3, "is no sign"},
    {"a \\ b", 1, 3, "is no sign"},
    {"`a`", 1, 1, "is no sign"},
    {"a + \xc3\xa9", 1, 5, "outside ASCII"},
    {"a\x01", 1, 2, "cannot be printed"},
    {"a /* c */ * b", 1, 3, "comments begin with '//'"},
    // No pointers, globals or functions.
    {"*a", 1, 1, "no pointers"},
    {"&a", 1, 1, "no pointers"},
    {"a + *b", 1, 5, "no pointers"},
    {"float* p = a; return a;", 1, 6, "expected a name"},
    {"float& p = a; return a;", 1, 6, "expected a name"},
    {"(float*)a", 1, 7, "expected '('"},
    {"static int i = 0; return a;", 1, 1, "is no variable"},
    {"extern int i; return a;", 1, 1, "is no variable"},
    {"volatile float v = a; return v;", 1, 1, "is no variable"},
    {"struct S { int i; }; return a;", 1, 1, "is no variable"},
    {"float f(float z) { return z; } return a;", 1, 8, "expected '='"},
    {"return new int;", 1, 8, "'new' is not known here"},
    {"return this;", 1, 8, "'this' is not known here"},
    {"return sizeof(a);", 1, 8, "is no function"},
    {"throw a;", 1, 1, "is no variable"},
    {"goto l; return a;", 1, 1, "is no variable"},
    {"using T = int; return a;", 1, 1, "is no variable"},
    {"parameters + a", 1, 1, "'parameters' is not known here"},
    {"result_", 1, 1, "is not known here"},
    {"u0_ + a", 1, 1, "is not known here"},
    // Loops are bounded.
    {"while (true) {} return a;", 1, 1, "is no variable"},
    {"do { } while (true); return a;", 1, 1, "is no variable"},
    {"for (;;) {} return a;", 1, 6, "expected 'int'"},
    {"for (int i = 0; i < b; ++i) {} return a;", 1, 21, "whole number"},
    {"for (int i = 0; i < 2000; ++i) {} return a;", 1, 21, "at most 1024"},
    {"for (int i = 0; i < 010; ++i) {} return a;", 1, 21, "begin with 0"},
    {"for (int i = 00; i < 3; ++i) {} return a;", 1, 14, "begin with 0"},
    {"for (int i = 0; i < 99999999999999; ++i) {} return a;", 1, 21, "whole number"},
    {"for (int i = 0; i < 1000; ++i)\n  for (int j = 0; j < 2; ++j) {}\nreturn a;", 2, 3, "more than 1024 times"},
    {"for (int i = 0; i < 4; --i) {} return a;", 1, 24, "expected 'i'"},
    {"for (int i = 0; j < 4; ++i) {} return a;", 1, 17, "expected 'i'"},
    {"for (int i = 0; i < 4; i += 1) {} return a;", 1, 26, "expected '++'"},
    {"for (int i = 0; i < 4; ++i) i = 0; return a;", 1, 29, "cannot be assigned"},
    {"for (float i = 0; i < 4; ++i) {} return a;", 1, 6, "expected 'int'"},
    // Grammar.
    {"", 1, 1, "expected an expression"},
    {"   ", 1, 4, "expected an expression"},
    {"a +", 1, 4, "the end of the text"},
    {"(a + b", 1, 7, "expected ')'"},
    {"a + b)", 1, 6, "expected the end of the expression"},
    {"a b", 1, 3, "expected the end of the expression"},
    {"a ? b", 1, 6, "expected ':'"},
    {"a, b", 1, 2, "expected the end of the expression"},
    {"a = b", 1, 3, "expected the end of the expression"},
    {"return a", 1, 1, "'return' is not known here"},
    {"return a; return b;", 1, 11, "nothing may follow"},
    {"{ return a; return b; }", 1, 13, "nothing may follow"},
    {"float d = a;", 1, 13, "without `return`"},
    {"if (a < b) return a;", 1, 21, "without `return`"},
    {"if (a < b) return a; else b;", 1, 27, "cannot be assigned"},
    {"if a < b return a; return b;", 1, 4, "expected '('"},
    {"{ return a;", 1, 12, "expected '}'"},
    {"float d; return a;", 1, 8, "expected '='"},
    {"float d = a return d;", 1, 13, "expected ';'"},
    {"float a = b; return a;", 1, 7, "declared already"},
    {"float d = a; float d = b; return d;", 1, 20, "declared already"},
    {"float exp = a; return a;", 1, 7, "meaning of its own"},
    {"float fast::exp2 = a; return a;", 1, 7, "meaning of its own"},
    {"const float d = a; d = b; return d;", 1, 20, "cannot be assigned"},
    {"a = b; return a;", 1, 1, "cannot be assigned"},
    {"{ float d = a; } return d;", 1, 25, "'d' is not known here"},
    {"if (a < b) { float d = a; } return d;", 1, 36, "'d' is not known here"},
    {"float d = a; d == b; return d;", 1, 16, "expected '='"},
    {"float d = a; d %= b; return d;", 1, 16, "expected '='"},
    {"a + c", 1, 5, "'c' is not known here, expected a constant, a function's call, or one of a, b"},
    {"x + a", 1, 1, "'x' is not known here"},
    // Types.
    {"a < b", 1, 3, "bool"},
    {"a < b < a", 1, 7, "takes numbers, not bool"},
    {"a + (a < b)", 1, 3, "takes numbers, not bool"},
    {"-(a < b)", 1, 1, "takes numbers, not bool"},
    {"abs(a < b)", 1, 1, "takes numbers, not bool"},
    {"a % b", 1, 3, "takes whole numbers"},
    {"a << 1", 1, 3, "takes whole numbers"},
    {"a & b", 1, 3, "takes whole numbers"},
    {"~a", 1, 1, "takes a whole number"},
    {"int i = true; return i;", 1, 9, "not bool"},
    {"exp(a, b)", 1, 1, "takes 1 argument, not 2"},
    {"min(a)", 1, 1, "takes 2 arguments, not 1"},
    {"fma(a, b)", 1, 1, "takes 3 arguments"},
    {"select(a < b, a)", 1, 1, "takes 3 arguments"},
    {"power(a)", 1, 1, "takes 2 arguments"},
    {"min(a, )", 1, 8, "expected a value"},
    {"float()", 1, 7, "expected a value"},
    // Numbers.
    {"1e999", 1, 1, "too large"},
    {"1e39", 1, 1, "too large for float"},
    {"99999999999999999999", 1, 1, "63 bits"},
    {"017 + a", 1, 1, "begin with 0"},
    {"1.5.2", 1, 1, "is no number"},
    {"1e + a", 1, 3, "digits of an exponent"},
    {"1u + a", 1, 2, "does not belong"},
    {"0x + a", 1, 1, "is no number"},
    {"2a", 1, 2, "does not belong"},
};

std::string repeated(const std::string& part, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += part;
  return all;
}

}  // namespace

TEST_CASE("text: what is not of the language is refused, with its line, column and a caret") {
  static_assert(std::size(refused) >= 60);
  for (const Refused& one : refused) {
    CAPTURE(std::string(one.text));
    const auto thrown = support::caught([&] { rigel::runtime::Semiring({.multiply = one.text, .add = "x + y"}); });
    CHECK(thrown.code == rigel::Code::invalid_argument);
    const std::string place = "multiply, line " + std::to_string(one.line) + ", column " + std::to_string(one.column) + ": ";
    CHECK(thrown.lacks({place.c_str(), one.says}) == "");
    const std::string caret = "\n  " + std::string(static_cast<std::size_t>(one.column - 1), ' ') + "^";
    CHECK(thrown.message.ends_with(caret));
  }
}

TEST_CASE("text: length, depth and the number of variables are limited") {
  const auto message = [](const std::string& text) {
    return support::caught([&] { rigel::runtime::Semiring({.multiply = text, .add = "x + y"}); }).message;
  };
  const auto says = [&](const std::string& text, const char* what) { return message(text).find(what) != std::string::npos; };
  CHECK(says(repeated(" ", 5000) + "a", "at most 4096"));
  CHECK(says(repeated("(", 2000) + "a", "constructs inside each other"));
  CHECK(says(repeated("-", 2000) + "a", "constructs inside each other"));
  CHECK(says(repeated("a?", 1000) + "a", "constructs inside each other"));
  CHECK(says(repeated("abs(", 900) + "a", "constructs inside each other"));
  CHECK(says(repeated("{", 2000), "constructs inside each other"));
  CHECK(says(repeated("if(a<b)", 500) + ";", "constructs inside each other"));
  CHECK(says(repeated("a+", 1500) + "a", "too many operators"));
  std::string variables;
  for (int i = 0; i < 100; ++i) variables += "int v" + std::to_string(i) + " = 0; ";
  CHECK(says(variables + "return a;", "more than 64 variables"));
  CHECK(message(repeated("(", 10) + "a" + repeated(")", 10)) == "nothing was thrown");
  CHECK(message(repeated("a+", 100) + "a") == "nothing was thrown");
}

TEST_CASE("text: of a long line, a message quotes what is near") {
  const auto message = [](const std::string& text) {
    return support::caught([&] { rigel::runtime::Semiring({.multiply = text, .add = "x + y"}); }).message;
  };
  const std::string caret = "\n  " + std::string(63, ' ') + "^";
  CHECK(message(repeated("a+b+", 40) + "c" + repeated("+a+b", 40))
            .ends_with("\n  ..." + repeated("a+b+", 15) + "c" + repeated("+a+b", 14) + "+a+..." + caret));
  CHECK(message(repeated("a+b+", 40) + "c").ends_with("\n  ..." + repeated("a+b+", 15) + "c" + caret));
  CHECK(message("c" + repeated("+a+b", 40)).ends_with("\n  c" + repeated("+a+b", 14) + "+a+...\n  ^"));
}

TEST_CASE("text: each part names itself, and reads its own names only") {
  using rigel::runtime::Semiring, rigel::runtime::Texts;
  const auto refuses = [](const Texts& texts, std::initializer_list<const char*> what) {
    const auto thrown = support::caught([&] { const Semiring semiring(texts); });
    CHECK(thrown.code == rigel::Code::invalid_argument);
    CHECK(thrown.lacks(what) == "");
  };
  refuses({.multiply = "a * b", .add = "a + b"}, {"add, line 1, column 1", "one of x, y"});
  refuses({.multiply = "a * b", .add = "x * y"}, {"identity", "may be empty only if add is"});
  refuses({.multiply = "a * b", .add = "x * y", .identity = "x"}, {"identity, line 1, column 1", "expected a constant"});
  refuses({.multiply = "a * b", .add = "x * y", .identity = "p", .hyperparameters = {{"p", 1}}},
          {"identity", "'p' is not known here"});
  refuses({.multiply = "a * b", .add = "x + y", .step = "x + y"}, {"step, line 1, column 5", "one of a, b, k, x"});
  refuses({.multiply = "a * b", .add = "x + y", .result = "\n y"}, {"result, line 2, column 2"});
  refuses({.element = rigel::Scalar::i8, .multiply = "a * b", .add = "x + y"}, {"element type is i8", "f16 or bf16"});
  refuses({.accumulator = rigel::Scalar::f64, .multiply = "a * b", .add = "x + y"},
          {"accumulator type is f64", "expected f32"});
  refuses({.name = "no name", .multiply = "a * b", .add = "x + y"}, {"'no name'"});
  refuses({.multiply = "a * b", .add = "x + y", .hyperparameters = {{"a", 1}}}, {"hyperparameter 1 is called 'a'"});
  refuses({.multiply = "a * b", .add = "x + y", .hyperparameters = {{"exp", 1}}}, {"'exp'"});
  refuses({.multiply = "a * b", .add = "x + y", .hyperparameters = {{"p;", 1}}}, {"'p;'"});
  refuses({.multiply = "a * b", .add = "x + y", .hyperparameters = {{"p", 1}, {"p", 2}}},
          {"two hyperparameters are called 'p'"});
  refuses(
      {.multiply = "a * b", .add = "x + y", .hyperparameters = std::vector<rigel::runtime::Hyperparameter>(17, {"p", 1})},
      {"17 hyperparameters", "at most 16"});
  refuses({.element = rigel::Scalar::i32, .multiply = "a * p", .add = "x + y", .hyperparameters = {{"p", 0.5}}},
          {"'p'", "cannot be 0.5", "whole number that i32 holds"});
}

TEST_CASE("text: hyperparameters go by name") {
  rigel::runtime::Semiring s({.multiply = "p * a + q * b", .add = "x + y", .hyperparameters = {{"p", 2}, {"q", 0.5}}});
  CHECK(s.hyperparameters() == std::vector<std::string>{"p", "q"});
  CHECK(s.get("p") == 2);
  const rigel::runtime::Semiring copy = s;
  s.set("p", 3);
  CHECK(s.get("p") == 3);
  CHECK(copy.get("p") == 2);
  CHECK(support::caught([&] { s.set("r", 1); }).lacks({"no hyperparameter 'r'", "one of p, q"}) == "");
}

TEST_CASE("text: views of other elements are refused, and both types are named") {
  const rigel::runtime::Semiring s({.name = "mine", .multiply = "a * b", .add = "x + y"});
  const texts::Matrix<double> a("left", 2, 2);
  const texts::Matrix<float> b("right", 2, 2), c("c", 2, 2);
  CHECK(support::caught([&] {
          rigel::contract(texts::Host{}, s, a, b, c);
        }).lacks({"A ('left')", "f64", "expected f32", "'mine'"}) == "");
  CHECK(support::caught([&] { rigel::contract(texts::Host{}, s, b, a, c); }).lacks({"B ('left')", "f64", "expected f32"}) ==
        "");
}

TEST_CASE_TEMPLATE("text: a C that cannot hold results is refused, and left as it is", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const auto refused = [](const auto& semiring, const auto& a, const auto& c, const rigel::epilogue::Program& epilogue) {
    c(0, 0) = 77;
    const auto thrown = support::caught([&] { texts::contract<Exec>(semiring, a, a, c, epilogue); });
    CHECK(thrown.code == rigel::Code::unsupported);
    CHECK(c(0, 0) == 77);
    return thrown.lacks({"expected f16, bf16, f32 or f64"});
  };
  const rigel::runtime::Semiring floats({.multiply = "a * b", .add = "x + y"});
  const rigel::runtime::Semiring integers({.element = rigel::Scalar::i64, .multiply = "a * b", .add = "x + y"});
  const texts::Matrix<float> f("f", 1, 1);
  const texts::Matrix<std::int64_t> i("i", 1, 1), c("c", 1, 1);
  const texts::Matrix<std::int32_t> rounded("rounded", 1, 1);
  CHECK(refused(floats, f, rounded, {}) == "");
  CHECK(refused(integers, i, c, rigel::epilogue::scale(2)) == "");
  i(0, 0) = 3;
  texts::contract<Exec>(integers, i, i, c);
  CHECK(c(0, 0) == 9);
  texts::contract<Exec>(integers, i, i, rounded, rigel::epilogue::scale(0.5));
  CHECK(rounded(0, 0) == 4);  // of 4.5
}

TEST_CASE_TEMPLATE("text: without librigel_runtime.so, the call says what is missing", Exec, RIGEL_TEST_SPACES) {
  if (rigel::runtime::is_available()) return;
  const rigel::runtime::Semiring s({.name = "mine", .multiply = "a * b", .add = "x + y"});
  const texts::Matrix<float> a("a", 2, 2), c("c", 2, 2);
  const auto thrown = support::caught([&] { rigel::contract(Exec{}, s, a, a, c); });
  CHECK(thrown.code == rigel::Code::unsupported);
  CHECK(thrown.lacks({"'mine'", "librigel_runtime.so", "RIGEL_RUNTIME=ON", "llvm-22-dev", "libclang-22-dev"}) == "");
}

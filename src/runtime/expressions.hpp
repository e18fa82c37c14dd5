// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions of the language: the parser's half that reads values, checks their types, and writes them as C++ on vectors.
#pragma once

#include "lexer.hpp"
#include "text.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <locale.h>

namespace rigel::runtime {

// Limits of one text.
constexpr int most_depth = 48;  // of parentheses, operators and blocks inside each other

constexpr const char* words[] = {"bool", "int", "long", "float", "double", "an accumulator of several fields"};
inline const char* word(Type t) { return words[static_cast<int>(t)]; }
inline bool is_floating(Type t) { return t == Type::f32 || t == Type::f64; }

// In which a point separates the digits of a number, whatever the program has chosen.
inline locale_t plain_locale() {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return plain;
}

// What a function of the language takes and gives.
enum class Takes {
  numbers,   // numbers of one type, which it gives
  floating,  // floating-point numbers of one type, which it gives
  platform,  // the same, by a function whose last bits differ between platforms
  test       // a floating-point number; it gives a bool
};
struct Function {
  int arity;
  Takes takes;
  const char* emitted;
};
inline const std::map<std::string, Function, std::less<>>& functions() {
  static const std::map<std::string, Function, std::less<>> all = {
      {"abs", {1, Takes::numbers, "absolute"}},
      {"min", {2, Takes::numbers, "minimum"}},
      {"max", {2, Takes::numbers, "maximum"}},
      {"fma", {3, Takes::numbers, "fused"}},
      {"sqrt", {1, Takes::floating, "root"}},
      {"rsqrt", {1, Takes::floating, "inverse_root"}},
      {"floor", {1, Takes::floating, "floor_of"}},
      {"ceil", {1, Takes::floating, "ceil_of"}},
      {"trunc", {1, Takes::floating, "trunc_of"}},
      {"copysign", {2, Takes::floating, "with_sign"}},
      {"exp", {1, Takes::platform, "exp_of"}},
      {"exp2", {1, Takes::platform, "exp2_of"}},
      {"expm1", {1, Takes::platform, "expm1_of"}},
      {"log", {1, Takes::platform, "log_of"}},
      {"log2", {1, Takes::platform, "log2_of"}},
      {"log1p", {1, Takes::platform, "log1p_of"}},
      {"sin", {1, Takes::platform, "sin_of"}},
      {"cos", {1, Takes::platform, "cos_of"}},
      {"tanh", {1, Takes::platform, "tanh_of"}},
      {"pow", {2, Takes::platform, "pow_of"}},
      {"isnan", {1, Takes::test, "is_nan"}},
      {"isinf", {1, Takes::test, "is_infinite"}},
      {"isfinite", {1, Takes::test, "is_finite"}},
      {"fast::sqrt", {1, Takes::floating, "root"}},
      {"fast::rsqrt", {1, Takes::floating, "inverse_root"}},
      {"fast::exp2", {1, Takes::platform, "fast_exp2_of"}},
      {"fast::log2", {1, Takes::platform, "fast_log2_of"}},
  };
  return all;
}

// Words that are no names: those of the language, and what a reader may take for something that it is not.
inline bool is_reserved(std::string_view name) {
  static const std::set<std::string_view> all = {"bool",   "int",    "long",  "float",    "double", "auto",
                                                 "const",  "if",     "else",  "for",      "true",   "false",
                                                 "return", "select", "power", "infinity", "rigel",  "fast"};
  return all.contains(name) || functions().contains(name);
}

// An expression: its type, its C++, and whether all lanes have the same value.
struct Expression {
  Type type = Type::i32;
  std::string code;
  bool uniform = false;
  Token at;
  bool is_known = false;  // a number or a hyperparameter, so that its C++ has a meaning outside of the text's functions
  std::optional<double> value = {};  // of a number that stands in the text
  std::string magnitude_of = {};     // of |x|: the C++ of x
  int hyperparameter = -1;           // the number of one
};

struct Variable {
  Type type;
  std::string code;
  bool uniform = false, assignable = false;
  bool is_known = false;    // a hyperparameter,
  int hyperparameter = -1;  // of this number
};
/// What the texts of a semiring or an epilogue are about.
struct Subject {
  const char* owner;               // in messages: "runtime::Semiring"
  Type number;                     // of hyperparameters, of numbers without a suffix, and of `infinity`
  std::vector<TypedField> fields;  // of the accumulator; none: it is a number
};

class Expressions {
 public:
  Expressions(const Subject& subject, std::string_view function, std::string_view text, Counts& counts)
      : owner_(subject.owner),
        function_(function),
        text_(text),
        number_(subject.number),
        fields_(subject.fields),
        counts_(counts),
        tokens_(tokens_of(function, text, subject.owner)) {}

  void declare(std::string_view name, Variable variable) {
    variables_.insert_or_assign(std::string(name), std::move(variable));
  }
  /// Whether a name stands in the text.
  bool names(std::string_view name) const {
    for (const Token& token : tokens_)
      if (token.kind == Kind::name && token.text == name) return true;
    return false;
  }

 protected:
  // ---- tokens ----

  const Token& now(std::size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  Token take() {
    Token token = now();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is_end() const { return now().kind == Kind::end; }
  bool is(std::string_view sign, std::size_t ahead = 0) const {
    const Token& t = now(ahead);
    return (t.kind == Kind::sign || t.kind == Kind::name) && t.text == sign;
  }
  bool take_if(std::string_view sign) {
    if (!is(sign)) return false;
    take();
    return true;
  }
  void expect(std::string_view sign, const char* where) {
    if (!take_if(sign)) refuse(now(), "expected '" + std::string(sign) + "' " + where + ", not " + described(now()));
  }
  static std::string described(const Token& t) { return t.kind == Kind::end ? "the end of the text" : "'" + t.text + "'"; }
  [[noreturn]] void refuse(const Token& at, const std::string& message) const {
    refuse_text(function_, text_, at.line, at.column, message, owner_);
  }
  // The #line directive of an operation, which it counts.
  std::string mark(const Token& at) {
    count_operations(1);
    return "\n#line " + std::to_string(at.line * columns_per_line + at.column) + " \"" + std::string(function_) + "\"\n";
  }

  void count_operations(int count) {
    operations_ += count;
    work_ += repeats_ * count;
  }

  // Counts how deep constructs lie inside each other.
  class Level {
   public:
    explicit Level(Expressions& parser) : parser_(parser) {
      if (++parser_.depth_ > most_depth)
        parser_.refuse(parser_.now(), "more than " + std::to_string(most_depth) + " constructs inside each other");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Expressions& parser_;
  };

  // ---- expressions ----

  Expression expression() {
    const Level level(*this);
    Expression condition = binary(0);
    if (!is("?")) return condition;
    const Token at = take();
    condition = truth(condition);
    const Expression x = expression();
    expect(":", "of `condition ? x : y`");
    return selected(at, condition, x, expression());
  }
  Expression selected(const Token& at, const Expression& condition, const Expression& x, const Expression& y) {
    const Type type = x.type == y.type ? x.type : common(at, x, y);
    return {type,
            mark(at) + "select(" + condition.code + ", " + converted(x, type).code + ", " + converted(y, type).code + ")",
            condition.uniform && x.uniform && y.uniform, at};
  }

  static int rank(const Token& t) {
    static const std::map<std::string_view, int> ranks = {{"||", 0}, {"&&", 1}, {"|", 2},  {"^", 3}, {"&", 4},  {"==", 5},
                                                          {"!=", 5}, {"<", 6},  {"<=", 6}, {">", 6}, {">=", 6}, {"<<", 7},
                                                          {">>", 7}, {"+", 8},  {"-", 8},  {"*", 9}, {"/", 9},  {"%", 9}};
    const auto found = ranks.find(t.text);
    return t.kind == Kind::sign && found != ranks.end() ? found->second : -1;
  }

  Expression binary(int least) {
    const Level level(*this);
    Expression x = unary();
    for (;;) {
      const int own = rank(now());
      if (own < least) return x;
      const Token at = take();
      x = combined(x, at, binary(own + 1));
    }
  }

  Expression combined(const Expression& x, const Token& at, const Expression& y) {
    switch (rank(at)) {
      case 0:
      case 1:
        count_operations(1);
        return {Type::boolean, "(" + truth(x).code + (at.text == "&&" ? " & " : " | ") + truth(y).code + ")",
                x.uniform && y.uniform, at};
      case 5:
      case 6: {
        if (at.text.size() == 2 && at.text[1] == '=' && at.text[0] != '<' && at.text[0] != '>' && x.type == Type::boolean &&
            y.type == Type::boolean)
          return {Type::boolean, std::string(at.text == "==" ? "(~" : "(") + "(" + x.code + " ^ " + y.code + "))",
                  x.uniform && y.uniform, at};
        const Type type = common(at, x, y);
        return {Type::boolean,
                mark(at) + "mask(" + converted(x, type).code + " " + at.text + " " + converted(y, type).code + ")",
                x.uniform && y.uniform, at};
      }
      default: return arithmetic(x, at, y);
    }
  }

  Expression arithmetic(const Expression& x, const Token& at, const Expression& y) {
    const Type type = common(at, x, y);
    const bool of_bits = rank(at) == 7 || (rank(at) >= 2 && rank(at) <= 4) || at.text == "%";
    if (of_bits && is_floating(type))
      refuse(at, "'" + at.text + "' takes whole numbers, not " + word(x.type) + " and " + word(y.type));
    const std::string u = converted(x, type).code, v = converted(y, type).code;
    std::string code;
    if (!is_floating(type) && (at.text == "/" || at.text == "%")) ++counts_.long_operations;
    if (!is_floating(type) && (at.text == "/" || at.text == "%"))
      code = (at.text == "/" ? "quotient(" : "remainder(") + u + ", " + v + ")";
    else if (at.text == "<<" || at.text == ">>")
      code = (at.text == "<<" ? "left(" : "right(") + u + ", " + v + ")";
    else
      code = "(" + u + " " + at.text + " " + v + ")";
    return {type, mark(at) + code, x.uniform && y.uniform, at};
  }

  Expression unary() {
    const Level level(*this);
    const Token at = now();
    if (at.kind == Kind::sign && (at.text == "-" || at.text == "+" || at.text == "!" || at.text == "~")) {
      take();
      count_operations(1);
      Expression x = unary();
      if (at.text == "!") return {Type::boolean, "(~" + truth(x).code + ")", x.uniform, at};
      require_number(at, x);
      if (at.text == "~" && is_floating(x.type)) refuse(at, "'~' takes a whole number, not " + std::string(word(x.type)));
      return {x.type, "(" + at.text + x.code + ")", x.uniform, at};
    }
    const std::optional<Type> type = type_word(now(1));
    if (is("(") && type && is(")", 2)) {
      take(), take(), take();
      return cast(at, unary(), *type);
    }
    return primary();
  }

  Expression primary() {
    const Token at = take();
    if (at.kind == Kind::integer) return integer(at);
    if (at.kind == Kind::real) return real(at);
    if (at.kind == Kind::sign && at.text == "(") {
      Expression x = expression();
      expect(")", "after the expression");
      x.code = "(" + x.code + ")";
      return member(x);
    }
    if (at.kind == Kind::sign && at.text == "{") return member(braces(at));
    if (at.kind == Kind::sign && (at.text == "&" || at.text == "*"))
      refuse(at, "'" + at.text + "' takes a value on its left: the language has no pointers");
    if (at.kind != Kind::name) refuse(at, "expected a value, not " + described(at));
    if (at.text == "true" || at.text == "false") return {Type::boolean, at.text == "true" ? "(~M{})" : "(M{})", true, at};
    if (at.text == "infinity") return infinite(at);
    if (const std::optional<Type> type = type_word(at)) {
      expect("(", "after a type, around the value that is converted");
      const Expression x = expression();
      expect(")", "after the value that is converted");
      return cast(at, x, *type);
    }
    if (is("(")) return call(at);
    const auto found = variables_.find(at.text);
    if (found == variables_.end()) refuse(at, "'" + at.text + "' is not known here, expected " + known());
    const Variable& variable = found->second;
    Expression x{variable.type, variable.code, variable.uniform, at, variable.is_known};
    x.hyperparameter = variable.hyperparameter;
    return member(x);
  }

  // ---- accumulators of several fields ----

  // The field of an accumulator, if one is named after it.
  Expression member(Expression x) {
    while (is(".")) {
      const Token dot = take();
      if (x.type != Type::fields)
        refuse(dot,
               "'.' takes an accumulator of several fields on its left: " + std::string(word(x.type)) + " has no members");
      const std::size_t field = field_index();
      x = {fields_[field].type, "(" + x.code + ").f" + std::to_string(field), x.uniform, dot};
    }
    return x;
  }
  std::size_t field_index() {
    const Token name = take();
    for (std::size_t i = 0; i < fields_.size(); ++i)
      if (name.kind == Kind::name && fields_[i].name == name.text) return i;
    refuse(name, "expected the name of a field, one of " + field_names() + ", not " + described(name));
  }
  std::string field_names() const {
    std::string names;
    for (const TypedField& field : fields_) names += (names.empty() ? "" : ", ") + field.name;
    return names;
  }

  // An accumulator in braces: values in the order of its fields, or each with its name.
  Expression braces(const Token& at) {
    if (fields_.empty()) refuse(at, "braces make an accumulator of several fields, and this one is a number");
    std::vector<std::string> codes(fields_.size());  // empty: no value yet
    const bool named = is(".");
    bool uniform = true;
    std::size_t count = 0;
    if (!is("}")) do {
        const Token first = now();
        if (is(".") != named) refuse(first, "expected names of fields for all values in braces, or for none");
        if (named) take();
        if (!named && count == fields_.size())
          refuse(first, "expected " + std::to_string(count) + " values in braces, one for each of " + field_names());
        const std::size_t field = named ? field_index() : count;
        if (!codes[field].empty()) refuse(first, "'" + fields_[field].name + "' has a value already");
        if (named) expect("=", "after the name of a field");
        const Expression value = converted(expression(), fields_[field].type);
        codes[field] = value.code;
        uniform = uniform && value.uniform;
        ++count;
      } while (take_if(","));
    expect("}", "after the values of an accumulator");
    std::string code;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (codes[i].empty())
        refuse(at, "expected a value for each of " + field_names() + ": '" + fields_[i].name + "' has none");
      code += (i ? ", " : "X{") + codes[i];
    }
    return {Type::fields, code + "}", uniform, at};
  }

  std::string known() const {
    std::string names;
    for (const auto& [name, variable] : variables_) names += (names.empty() ? "" : ", ") + name;
    return names.empty() ? "a constant" : "a constant, a function's call, or one of " + names;
  }

  void require_no_octal(const Token& at) const {
    if (at.kind == Kind::integer && at.text.size() > 1 && at.text[0] == '0' && is_digit(at.text[1]))
      refuse(at, "expected a number that does not begin with 0");
  }

  Expression integer(const Token& at) {
    unsigned long long value = 0;
    errno = 0;
    char* end = nullptr;
    require_no_octal(at);
    value = std::strtoull(at.text.c_str(), &end, 0);
    if (*end != '\0') refuse(at, "'" + at.text + "' is no number");
    if (errno != 0 || value > static_cast<unsigned long long>(std::numeric_limits<long long>::max()))
      refuse(at, "a whole number has at most 63 bits");
    const bool wide = value > static_cast<unsigned long long>(std::numeric_limits<int>::max());
    return {wide ? Type::i64 : Type::i32,
            std::string(wide ? "(LV)(" : "(IV)(") + std::to_string(value) + (wide ? "l)" : ")"),
            true,
            at,
            true,
            static_cast<double>(value)};
  }

  // A number without a suffix has the accumulator's type.
  Expression real(const Token& at) {
    const bool suffix =
        at.text.back() == 'f' && at.text.find('x') == std::string::npos && at.text.find('X') == std::string::npos;
    const Type type = suffix || number_ == Type::f32 ? Type::f32 : Type::f64;
    const std::string digits = suffix ? at.text.substr(0, at.text.size() - 1) : at.text;
    char* end = nullptr;
    const double value = type == Type::f32 ? static_cast<double>(strtof_l(digits.c_str(), &end, plain_locale()))
                                           : strtod_l(digits.c_str(), &end, plain_locale());
    if (*end != '\0') refuse(at, "'" + at.text + "' is no number");
    if (!std::isfinite(value))
      refuse(at, "'" + at.text + "' is too large for " + std::string(word(type)) + ": expected `infinity`, or less");
    char written[64];
    const auto [last, error] = std::to_chars(written, written + sizeof written, value, std::chars_format::hex);
    return {type, std::string("(") + vector(type) + ")(0x" + std::string(written, last) + (type == Type::f32 ? "f)" : ")"),
            true, at,
            true, value};
  }

  Expression infinite(const Token& at) {
    switch (number_) {
      case Type::i32: return {Type::i32, "(IV)(" + std::to_string(rigel::infinity<std::int32_t>()) + ")", true, at};
      case Type::i64: return {Type::i64, "(LV)(" + std::to_string(rigel::infinity<std::int64_t>()) + "l)", true, at};
      case Type::f64: return {Type::f64, "(DV)(__builtin_inf())", true, at};
      default: return {Type::f32, "(FV)(__builtin_inff())", true, at};
    }
  }

  Expression call(const Token& at) {
    std::string name = at.text;
    if (name.starts_with("rigel::")) name.erase(0, 7);
    take();
    std::vector<Expression> arguments;
    if (!is(")")) {
      do arguments.push_back(expression());
      while (take_if(","));
    }
    expect(")", "after the arguments of a function");
    const auto require = [&](std::size_t count) {
      if (arguments.size() != count)
        refuse(at, "'" + at.text + "' takes " + std::to_string(count) + (count == 1 ? " argument" : " arguments") +
                       ", not " + std::to_string(arguments.size()));
    };
    if (name == "select") {
      require(3);
      return selected(at, truth(arguments[0]), arguments[1], arguments[2]);
    }
    if (name == "power") {
      require(2);
      return power(at, arguments[0], arguments[1]);
    }
    const auto found = functions().find(name);
    if (found == functions().end()) {
      std::string all = "power, select";
      for (const auto& [one, function] : functions()) all += ", " + one;
      refuse(at, "'" + at.text + "' is no function of the language, expected one of " + all);
    }
    const Function& function = found->second;
    require(static_cast<std::size_t>(function.arity));
    Type type = arguments[0].type;
    bool uniform = true;
    for (const Expression& x : arguments) {
      require_number(at, x);
      if (x.type != type) type = common(at, {type, {}, false, at}, x);
      uniform = uniform && x.uniform;
    }
    if (function.takes != Takes::numbers) type = floating(type);
    if (function.takes == Takes::platform) count_call();
    std::string code = mark(at) + function.emitted + "(";
    for (std::size_t i = 0; i < arguments.size(); ++i) code += (i ? ", " : "") + converted(arguments[i], type).code;
    Expression result{function.takes == Takes::test ? Type::boolean : type, code + ")", uniform, at};
    if (name == "abs") result.magnitude_of = converted(arguments[0], type).code;
    return result;
  }

  void count_call() {
    counts_.calls_functions = true;
    ++counts_.long_operations;
  }

  // By Rigel's power if the exponent is the same for all lanes and the accumulator is a floating-point number that holds both.
  Expression power(const Token& at, const Expression& x, const Expression& p) {
    require_number(at, x);
    require_number(at, p);
    count_call();
    const bool uniform = x.uniform && p.uniform;
    const Type type = floating(common(at, x, p));
    if (!is_floating(number_) || !p.uniform || type > number_) {
      return {type, mark(at) + "pow_of(" + converted(x, type).code + ", " + converted(p, type).code + ")", uniform, at};
    }
    const Expression exponent = converted(p, number_);
    if (exponent.is_known)
      counts_.exponents.push_back({exponent.code, exponent.value, exponent.hyperparameter});
    else
      counts_.powers_vary = true;
    const bool of_magnitude = !x.magnitude_of.empty() && x.type == number_;
    return {number_,
            mark(at) + (of_magnitude ? "power_of_magnitude(" + x.magnitude_of : "power_of(" + converted(x, number_).code) +
                ", first(" + exponent.code + "))",
            uniform, at};
  }

  // ---- types ----

  static std::optional<Type> type_word(const Token& t) {
    if (t.kind == Kind::name)
      for (int i = 0; i < 5; ++i)
        if (t.text == words[i]) return static_cast<Type>(i);
    return std::nullopt;
  }
  Type floating(Type t) const { return is_floating(t) ? t : is_floating(number_) ? number_ : Type::f64; }
  void require_number(const Token& at, const Expression& x) const {
    if (x.type == Type::fields)
      refuse(at, "'" + at.text + "' takes numbers, not an accumulator of several fields: name one of " + field_names());
    if (x.type == Type::boolean)
      refuse(at, "'" + at.text + "' takes numbers, not bool: write int(…) or `condition ? 1 : 0`");
  }
  // The type in which two numbers meet: the larger kind, then the wider.
  Type common(const Token& at, const Expression& x, const Expression& y) const {
    require_number(at, x);
    require_number(at, y);
    if (is_floating(x.type) != is_floating(y.type)) return is_floating(x.type) ? x.type : y.type;
    return x.type > y.type ? x.type : y.type;
  }
  Expression truth(const Expression& x) const {
    if (x.type == Type::boolean) return x;
    if (x.type == Type::fields)
      refuse(x.at, "expected a number or a bool, not an accumulator of several fields: name one of " + field_names());
    return {Type::boolean, "mask(" + x.code + " != 0)", x.uniform, x.at};
  }
  Expression cast(const Token& at, Expression x, Type to) const {
    if (to == Type::boolean) return truth(x);
    if (x.type == Type::boolean)
      return {to, std::string("select(") + x.code + ", (" + vector(to) + ")(1), (" + vector(to) + ")(0))", x.uniform, x.at};
    x.at = at;
    return converted(std::move(x), to);
  }
  // Conversions that happen without a cast.
  Expression converted(Expression x, Type to) const {
    if (x.type == to) return x;
    if (x.type == Type::fields)
      refuse(x.at,
             std::string("expected ") + word(to) + ", not an accumulator of several fields: name one of " + field_names());
    if (to == Type::fields) refuse(x.at, "expected an accumulator, as {" + field_names() + "}, not " + word(x.type));
    if (x.type == Type::boolean) refuse(x.at, "expected a number, not bool: write int(…) or `condition ? 1 : 0`");
    if (to == Type::boolean) return truth(x);
    if (is_floating(x.type) && !is_floating(to)) {
      ++counts_.long_operations;
      x.value.reset();
    }
    x.magnitude_of.clear();
    x.code = std::string(is_floating(x.type) && !is_floating(to) ? "whole<" : "to<") + vector(to) + ">(" + x.code + ")";
    x.type = to;
    return x;
  }

  const char* owner_;
  std::string_view function_, text_;
  Type number_;
  const std::vector<TypedField>& fields_;
  Counts& counts_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::map<std::string, Variable, std::less<>> variables_;
  int depth_ = 0;
  long long repeats_ = 1;  // of the statement that is read
  long long operations_ = 0;
  long long work_ = 0;  // operations, each in all rounds of its loops
};

}  // namespace rigel::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parser and checker of the language. The parser writes C++ on vectors as it reads: `if` becomes selections by a mask of
// lanes, so that all lanes take one path. No operation traps, so lanes that are masked out may compute anything.
#include "text.hpp"
#include "lexer.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <locale.h>

namespace rigel::runtime {
namespace {

// Limits of one text.
constexpr int most_depth = 48;         // of parentheses, operators and blocks inside each other
constexpr int most_parentheses = 200;  // inside each other in the C++ of an expression
constexpr int most_locals = 64;
constexpr long long most_repeats = 1024;  // of the innermost statement of loops inside each other
constexpr int loop_operations = 4;        // that a loop itself counts as

// The operations of a text, in all rounds of its loops, that the compiler may write out; what is beyond stays a loop.
constexpr long long most_unrolled = 256;
// A function of more operations is compiled once and called: in each of some twenty places of the loops it would take seconds.
constexpr long long most_inlined = 64;

enum class Type { boolean, i32, i64, f32, f64 };
constexpr const char* words[] = {"bool", "int", "long", "float", "double"};
constexpr const char* vectors[] = {"M", "IV", "LV", "FV", "DV"};
const char* word(Type t) { return words[static_cast<int>(t)]; }
const char* vector(Type t) { return vectors[static_cast<int>(t)]; }
bool is_floating(Type t) { return t >= Type::f32; }

// In which a point separates the digits of a number, whatever the program has chosen.
locale_t plain_locale() {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return plain;
}

Type type_of(Scalar s) {
  return s == Scalar::f64 ? Type::f64 : s == Scalar::i32 ? Type::i32 : s == Scalar::i64 ? Type::i64 : Type::f32;
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
const std::map<std::string, Function, std::less<>>& functions() {
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
bool is_reserved(std::string_view name) {
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
};

struct Variable {
  Type type;
  std::string code;
  bool uniform = false, assignable = false;
};

class Parser {
 public:
  Parser(std::string_view function, std::string_view text, Scalar accumulator, Parsed& parsed)
      : function_(function),
        text_(text),
        accumulator_(type_of(accumulator)),
        tokens_(tokens_of(function, text)),
        parsed_(parsed) {}

  void declare(std::string_view name, Variable variable) {
    variables_.insert_or_assign(std::string(name), std::move(variable));
  }

  // The function's body.
  Body body() {
    bool statements = false;
    for (const Token& t : tokens_) statements = statements || (t.kind == Kind::sign && (t.text == ";" || t.text == "{"));
    out_ = std::string("  ") + vector(accumulator_) + " result_ = {};\n  M live_ = ~M{};\n";
    if (statements) {
      bool returns = false;
      while (!is_end()) {
        if (returns) refuse(now(), "nothing may follow a `return` that every lane reaches");
        returns = statement();
      }
      if (!returns) refuse(now(), "the text ends without `return`");
    } else {
      if (is_end()) refuse(now(), "expected an expression");
      emit_return(expression());
      if (!is_end()) refuse(now(), "expected the end of the expression, or an operator");
    }
    return {out_ + "  return result_;\n", operations_ + unrolled_ > most_inlined};
  }

 private:
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
    refuse_text(function_, text_, at.line, at.column, message);
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
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > most_depth)
        parser_.refuse(parser_.now(), "more than " + std::to_string(most_depth) + " constructs inside each other");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // ---- statements; each returns whether every lane that reaches it returns ----

  bool statement() {
    const Level level(*this);
    const Token at = now();
    if (take_if(";")) return false;
    if (is("{")) return block();
    if (is("if")) return if_statement();
    if (is("for")) return for_statement();
    if (take_if("return")) {
      emit_return(expression());
      expect(";", "after the value of `return`");
      return true;
    }
    if (is("const") || is("auto") || type_word(now())) {
      declaration();
    } else if (at.kind == Kind::name) {
      assignment();
    } else {
      refuse(at, "expected a statement, not " + described(at));
    }
    expect(";", "after the statement");
    return false;
  }

  bool block() {
    take();
    const auto outer = variables_;
    bool returns = false;
    while (!is("}")) {
      if (is_end()) refuse(now(), "expected '}' before the end of the text");
      if (returns) refuse(now(), "nothing may follow a `return` that every lane reaches");
      returns = statement();
    }
    take();
    variables_ = outer;
    return returns;
  }

  bool if_statement() {
    take();
    expect("(", "after `if`");
    const Expression condition = truth(expression());
    expect(")", "after the condition of `if`");
    count_operations(1);
    const std::string outer = mask_, name = "mask" + std::to_string(count_++) + "_";
    line("const M " + name + " = " + condition.code + ";");
    mask_ = outer.empty() ? name : "(" + outer + " & " + name + ")";
    const bool first = branch();
    bool second = false;
    if (take_if("else")) {
      mask_ = outer.empty() ? "(~" + name + ")" : "(" + outer + " & ~" + name + ")";
      second = branch();
    }
    mask_ = outer;
    return first && second;
  }
  bool branch() {
    const auto outer = variables_;
    const bool returns = statement();
    variables_ = outer;
    return returns;
  }

  bool for_statement() {
    const Token at = take();
    const char* const form = "of `for (int i = 0; i < 4; ++i)`, whose limits are whole numbers";
    expect("(", form);
    expect("int", form);
    const Token name = new_name();
    expect("=", form);
    const long long first = limit();
    expect(";", form);
    same_name(name, form);
    const bool inclusive = is("<=");
    if (!take_if("<=")) expect("<", form);
    const long long last = limit() + (inclusive ? 1 : 0);
    expect(";", form);
    if (take_if("++")) {
      same_name(name, form);
    } else {
      same_name(name, form);
      expect("++", form);
    }
    expect(")", form);
    const long long repeats = last > first ? last - first : 0, outer_repeats = repeats_;
    if (repeats_ * repeats > most_repeats)
      refuse(at, "the loop's statements would run more than " + std::to_string(most_repeats) + " times");
    repeats_ *= repeats > 0 ? repeats : 1;
    const auto outer = variables_;
    const std::string counter = "i" + std::to_string(count_++) + "_";
    declare(name.text, {Type::i32, "(IV)(" + counter + ")", true, false});
    count_operations(loop_operations);
    const std::size_t begin = out_.size();
    const long long work = work_;
    line("for (int " + counter + " = " + std::to_string(first) + "; " + counter + " < " + std::to_string(last) + "; ++" +
         counter + ") {");
    statement();
    line("}");
    variables_ = outer;
    repeats_ = outer_repeats;
    const long long written_out = (work_ - work) / outer_repeats;
    if (unrolled_ + written_out > most_unrolled)
      out_.insert(begin, "  _Pragma(\"clang loop unroll(disable)\")\n");
    else
      unrolled_ += written_out;
    return false;
  }
  long long limit() {
    const Token at = take();
    int value = 0;
    require_no_octal(at);
    const auto [end, error] = std::from_chars(at.text.data(), at.text.data() + at.text.size(), value);
    if (at.kind != Kind::integer || error != std::errc() || end != at.text.data() + at.text.size() || value > most_repeats)
      refuse(at, "expected a whole number of at most " + std::to_string(most_repeats) + " as the limit of the loop");
    return value;
  }
  void same_name(const Token& name, const char* form) {
    if (now().kind != Kind::name || now().text != name.text)
      refuse(now(), "expected '" + name.text + "' " + form + ", not " + described(now()));
    take();
  }

  void declaration() {
    const bool constant = take_if("const");
    const Token of_type = take();
    std::optional<Type> type = type_word(of_type);
    if (!type && of_type.text != "auto") refuse(of_type, "expected bool, int, long, float, double or auto");
    const Token name = new_name();
    expect("=", "and a value after the name of a variable");
    Expression value = expression();
    value = converted(value, type.value_or(value.type));
    const std::string code = "u" + std::to_string(count_++) + "_";
    line(std::string(vector(value.type)) + " " + code + " = " + value.code + ";");
    declare(name.text, {value.type, code, constant && value.uniform, !constant});
  }
  Token new_name() {
    const Token name = take();
    if (name.kind != Kind::name) refuse(name, "expected a name, not " + described(name));
    if (is_reserved(name.text) || name.text.find(':') != std::string::npos)
      refuse(name, "'" + name.text + "' has a meaning of its own, expected another name");
    if (variables_.contains(name.text)) refuse(name, "'" + name.text + "' is declared already");
    if (++locals_ > most_locals) refuse(name, "more than " + std::to_string(most_locals) + " variables");
    return name;
  }

  void assignment() {
    const Token name = take();
    const auto found = variables_.find(name.text);
    if (found == variables_.end()) refuse(name, "'" + name.text + "' is no variable");
    if (!found->second.assignable)
      refuse(name, "'" + name.text + "' cannot be assigned: it is no variable of the text, or const");
    const Variable to = found->second;
    const Token sign = take();
    if (sign.kind != Kind::sign || (sign.text != "=" && (sign.text.size() != 2 || sign.text[1] != '=' || sign.text == "==" ||
                                                         sign.text == "!=" || sign.text == "<=" || sign.text == ">=")))
      refuse(sign, "expected '=', '+=', '-=', '*=' or '/=' after the name of a variable, not " + described(sign));
    count_operations(1);
    Expression value = expression();
    if (sign.text != "=") {
      Token of = sign;
      of.text = sign.text.substr(0, 1);
      value = arithmetic({to.type, to.code, false, name}, of, value);
    }
    value = converted(value, to.type);
    line(to.code + " = " + (mask_.empty() ? value.code : "select(" + mask_ + ", " + value.code + ", " + to.code + ")") +
         ";");
  }

  void emit_return(const Expression& value) {
    const std::string code = converted(value, accumulator_).code;
    line("result_ = select(live_" + (mask_.empty() ? "" : " & " + mask_) + ", " + code + ", result_);");
    line(mask_.empty() ? "live_ = M{};" : "live_ = live_ & ~" + mask_ + ";");
  }

  // Adds a line of C++. Clang, too, has a limit of parentheses inside each other.
  void line(const std::string& code) {
    int depth = 0;
    for (const char c : code) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (depth > most_parentheses)
        refuse(now(), "the expression that ends here has too many operators, expected a variable for a part of it");
    }
    out_ += "  " + code + "\n";
  }

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
    if (!is_floating(type) && (at.text == "/" || at.text == "%")) ++parsed_.long_operations;
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
      return x;
    }
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
    return {variable.type, variable.code, variable.uniform, at};
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
            std::string(wide ? "(LV)(" : "(IV)(") + std::to_string(value) + (wide ? "l)" : ")"), true, at};
  }

  // A number without a suffix has the accumulator's type.
  Expression real(const Token& at) {
    const bool suffix =
        at.text.back() == 'f' && at.text.find('x') == std::string::npos && at.text.find('X') == std::string::npos;
    const Type type = suffix || accumulator_ == Type::f32 ? Type::f32 : Type::f64;
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
            true, at};
  }

  Expression infinite(const Token& at) {
    switch (accumulator_) {
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
    return {function.takes == Takes::test ? Type::boolean : type, code + ")", uniform, at};
  }

  void count_call() {
    parsed_.calls_functions = true;
    ++parsed_.long_operations;
  }

  // By Rigel's power if the exponent is the same for all lanes and the accumulator is a floating-point number that holds both.
  Expression power(const Token& at, const Expression& x, const Expression& p) {
    require_number(at, x);
    require_number(at, p);
    count_call();
    const bool uniform = x.uniform && p.uniform;
    const Type type = floating(common(at, x, p));
    if (!is_floating(accumulator_) || !p.uniform || type > accumulator_) {
      return {type, mark(at) + "pow_of(" + converted(x, type).code + ", " + converted(p, type).code + ")", uniform, at};
    }
    return {accumulator_,
            mark(at) + "power_of(" + converted(x, accumulator_).code + ", first(" + converted(p, accumulator_).code + "))",
            uniform, at};
  }

  // ---- types ----

  static std::optional<Type> type_word(const Token& t) {
    if (t.kind == Kind::name)
      for (int i = 0; i < 5; ++i)
        if (t.text == words[i]) return static_cast<Type>(i);
    return std::nullopt;
  }
  Type floating(Type t) const { return is_floating(t) ? t : is_floating(accumulator_) ? accumulator_ : Type::f64; }
  void require_number(const Token& at, const Expression& x) const {
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
  Expression truth(Expression x) const {
    if (x.type == Type::boolean) return x;
    x.code = "mask(" + x.code + " != 0)";
    x.type = Type::boolean;
    return x;
  }
  Expression cast(const Token& at, Expression x, Type to) const {
    if (to == Type::boolean) return truth(std::move(x));
    if (x.type == Type::boolean) {
      x.code = std::string("select(") + x.code + ", (" + vector(to) + ")(1), (" + vector(to) + ")(0))";
      x.type = to;
      return x;
    }
    x.at = at;
    return converted(std::move(x), to);
  }
  // Conversions that happen without a cast.
  Expression converted(Expression x, Type to) const {
    if (x.type == to) return x;
    if (x.type == Type::boolean) refuse(x.at, "expected a number, not bool: write int(…) or `condition ? 1 : 0`");
    if (to == Type::boolean) return truth(std::move(x));
    if (is_floating(x.type) && !is_floating(to)) ++parsed_.long_operations;
    x.code = std::string(is_floating(x.type) && !is_floating(to) ? "whole<" : "to<") + vector(to) + ">(" + x.code + ")";
    x.type = to;
    return x;
  }

  std::string_view function_, text_;
  Type accumulator_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::map<std::string, Variable, std::less<>> variables_;
  std::string out_, mask_;
  int depth_ = 0, count_ = 0, locals_ = 0;
  long long repeats_ = 1;  // of the statement that is read
  long long operations_ = 0;
  long long work_ = 0;      // operations, each in all rounds of its loops
  long long unrolled_ = 0;  // those of loops that the compiler may write out
  Parsed& parsed_;
};

}  // namespace

bool is_reserved_name(std::string_view name) {
  return is_reserved(name) || name == "a" || name == "b" || name == "x" || name == "y";
}

Parsed parse(const Texts& texts, Scalar accumulator) {
  Parsed parsed;
  const Type type = type_of(accumulator);
  const auto one = [&](const char* function, const std::string& text, std::initializer_list<const char*> arguments,
                       bool constant) {
    Parser parser(function, text, accumulator, parsed);
    for (const char* argument : arguments) parser.declare(argument, {type, argument, false, false});
    for (std::size_t i = 0; !constant && i < texts.hyperparameters.size(); ++i)
      parser.declare(texts.hyperparameters[i].name,
                     {type, std::string("(") + vector(type) + ")(parameters[" + std::to_string(i) + "])", true, false});
    return parser.body();
  };
  parsed.multiply = one("multiply", texts.multiply, {"a", "b"}, false);
  parsed.add = one("add", texts.add, {"x", "y"}, false);
  if (!texts.step.empty()) parsed.step = one("step", texts.step, {"x", "a", "b"}, false);
  if (!texts.result.empty()) parsed.result = one("result", texts.result, {"x"}, false);
  const std::string add = joined_tokens(texts.add), multiply = joined_tokens(texts.multiply);
  const bool is_minimum = add == "min(x,y)" || add == "min(y,x)", is_maximum = add == "max(x,y)" || add == "max(y,x)";
  std::string identity = texts.identity;
  if (identity.empty()) {
    if (add != "x+y" && add != "y+x" && !is_minimum && !is_maximum)
      refuse_text(
          "identity", identity, 1, 1,
          "expected the identity of add, a constant; it may be empty only if add is `x + y`, `min(x, y)` or `max(x, y)`");
    identity = is_minimum ? "infinity" : is_maximum ? "-infinity" : "0";
  }
  // One operation that rounds makes no NaN of finite numbers; two can, as ∞ − ∞.
  static const std::set<std::string_view> single = {"a+b",      "b+a",      "a-b",      "b-a",      "a*b",      "b*a",
                                                    "min(a,b)", "min(b,a)", "max(a,b)", "max(b,a)", "abs(a-b)", "abs(b-a)"};
  if (!texts.result.empty())
    parsed.form = rigel::detail::TextForm::result;
  else if ((is_minimum || is_maximum) && texts.step.empty() && single.contains(multiply))
    parsed.form = rigel::detail::TextForm::ordered;
  parsed.is_minimum = is_minimum;
  parsed.identity = one("identity", identity, {}, true);
  return parsed;
}

}  // namespace rigel::runtime

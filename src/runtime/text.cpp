// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parser and checker of the language. The parser writes C++ on vectors as it reads: `if` becomes selections by a mask of
// lanes, so that all lanes take one path. No operation traps, so lanes that are masked out may compute anything.
#include "text.hpp"
#include "expressions.hpp"

#include <rigel/runtime_gradient.hpp>

namespace rigel::runtime {
namespace {

// Limits of one text.
constexpr int most_parentheses = 200;  // inside each other in the C++ of an expression
constexpr int most_locals = 64;
constexpr long long most_repeats = 1024;  // of the innermost statement of loops inside each other
constexpr int loop_operations = 4;        // that a loop itself counts as

// The operations of a text, in all rounds of its loops, that the compiler may write out; what is beyond stays a loop.
constexpr long long most_unrolled = 256;
// A function of more operations is compiled once and called: in each of some twenty places of the loops it would take seconds.
constexpr long long most_inlined = 64;
Type type_of(Scalar s) {
  return s == Scalar::f64 ? Type::f64 : s == Scalar::i32 ? Type::i32 : s == Scalar::i64 ? Type::i64 : Type::f32;
}

class Parser : public Expressions {
 public:
  /// `returns`: the type of what the text gives.
  Parser(const Subject& subject, std::string_view function, std::string_view text, Type returns, Counts& counts)
      : Expressions(subject, function, text, counts), returns_(returns) {}

  // The function's body.
  Body body() {
    bool statements = false;
    for (const Token& t : tokens_)
      statements = statements || (t.kind == Kind::sign && (t.text == ";" || (t.text == "{" && fields_.empty())));
    out_ = std::string("  ") + vector(returns_) + " result_ = {};\n  M live_ = ~M{};\n";
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
    Variable to = found->second;
    if (is(".")) {
      const Expression field = member({to.type, to.code, false, name});
      to.type = field.type;
      to.code = field.code;
    }
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
    const std::string code = converted(value, returns_).code;
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

  Type returns_;
  std::string out_, mask_;
  int count_ = 0, locals_ = 0;
  long long unrolled_ = 0;  // operations of loops that the compiler may write out
};

}  // namespace

bool is_reserved_name(std::string_view name, std::initializer_list<std::string_view> more) {
  for (const std::string_view one : more)
    if (name == one) return true;
  return is_reserved(name);
}

namespace {

// The variables that hyperparameters are.
void declare(Parser& parser, const std::vector<Hyperparameter>& hyperparameters, Type type) {
  for (std::size_t i = 0; i < hyperparameters.size(); ++i)
    parser.declare(hyperparameters[i].name,
                   {type, std::string("(") + vector(type) + ")(parameters[" + std::to_string(i) + "])", true, false, true,
                    static_cast<int>(i)});
}

// Integers of 64 bits that are the same in all lanes, or differ.
Variable uniform_index(const char* name) { return {Type::i64, std::string("(LV)(") + name + ")", true, false}; }
Variable index_of_lanes(const char* name) { return {Type::i64, name, false, false}; }

bool is_minimum_of(const std::string& tokens) { return tokens == "min(x,y)" || tokens == "min(y,x)"; }
bool is_maximum_of(const std::string& tokens) { return tokens == "max(x,y)" || tokens == "max(y,x)"; }
bool is_sum_of(const std::string& tokens) { return tokens == "x+y" || tokens == "y+x"; }

// The identity of a sum, a minimum or a maximum, which the text `function` is; else that of the text.
std::string identity_of(const char* owner, const std::string& identity, const std::string& function,
                        const std::string& tokens) {
  if (!identity.empty()) return identity;
  if (!is_sum_of(tokens) && !is_minimum_of(tokens) && !is_maximum_of(tokens))
    refuse_text("identity", identity, 1, 1,
                "expected the identity of " + function + ", a constant; it may be empty only if " + function +
                    " is `x + y`, `min(x, y)` or `max(x, y)`",
                owner);
  return is_minimum_of(tokens) ? "infinity" : is_maximum_of(tokens) ? "-infinity" : "0";
}

// The one exponent of all powers of a term of floats that are not known to be products, if nothing else in the term is as long. (1 if roots
// are all there is.)
Exponent exponent_of(const Parsed& term) {
  Exponent exponent;
  int count = 0;
  for (const Exponent& one : term.exponents) {
    if (one.is_whole()) continue;
    ++count;
    if (one.is_short()) continue;
    if (!exponent.code.empty() && one.code != exponent.code) return {};
    exponent = one;
  }
  const bool is_large = term.multiply.is_large || term.add.is_large || term.step.is_large;
  if (count == 0 || term.powers_vary || is_large || term.long_operations_on_gpus() > count) return {};
  return exponent.code.empty() ? Exponent{"(FV)(1)", 1} : exponent;
}

}  // namespace

Parsed parse(const Texts& texts, Scalar accumulator) {
  using rigel::detail::TextForm, rigel::detail::TextJoin;
  Parsed parsed;
  const Type number = type_of(accumulator);
  Subject subject{"runtime::Semiring", number, {}};
  for (const Field& field : texts.accumulator.fields) subject.fields.push_back({field.name, type_of(field.type)});
  const Type sum = subject.fields.empty() ? number : Type::fields;
  parsed.fields = subject.fields;
  parsed.result_type = texts.result_type == Scalar::other ? number : type_of(texts.result_type);
  Counts of_result;
  const auto one = [&](const char* function, const std::string& text, Type returns,
                       std::initializer_list<std::pair<const char*, Type>> arguments, bool reads_k = false,
                       Counts* counts = nullptr) {
    Parser parser(subject, function, text, returns, counts ? *counts : parsed);
    for (const auto& [name, type] : arguments) parser.declare(name, {type, name, false, false});
    if (arguments.size() > 0) declare(parser, texts.hyperparameters, number);
    if (reads_k) parser.declare("k", uniform_index("k"));
    parsed.reads_k = parsed.reads_k || (reads_k && parser.names("k"));
    return parser.body();
  };
  parsed.multiply = one("multiply", texts.multiply, sum, {{"a", number}, {"b", number}}, true);
  parsed.add = one("add", texts.add, sum, {{"x", sum}, {"y", sum}});
  if (!texts.step.empty()) parsed.step = one("step", texts.step, sum, {{"x", sum}, {"a", number}, {"b", number}}, true);
  if (accumulator == Scalar::f32 && texts.element == Scalar::f32 && parsed.fields.empty())
    parsed.exponent = exponent_of(parsed);
  if (!texts.result.empty())
    parsed.result = one("result", texts.result, parsed.result_type, {{"x", sum}}, false, &of_result);
  parsed.Counts::add(of_result);
  const std::string add = joined_tokens(texts.add), multiply = joined_tokens(texts.multiply);
  const bool is_minimum = is_minimum_of(add), is_maximum = is_maximum_of(add);
  // One operation that rounds makes no NaN of finite numbers; two can, as ∞ − ∞.
  static const std::set<std::string_view> single = {"a+b",      "b+a",      "a-b",      "b-a",      "a*b",      "b*a",
                                                    "min(a,b)", "min(b,a)", "max(a,b)", "max(b,a)", "abs(a-b)", "abs(b-a)"};
  static constexpr TextForm of_fields[] = {TextForm::indexed, TextForm::two_fields, TextForm::three_fields,
                                           TextForm::four_fields};
  if (!parsed.fields.empty())
    parsed.form = of_fields[parsed.fields.size() - 1];
  else if (parsed.reads_k)
    parsed.form = TextForm::indexed;
  else if (parsed.calls_functions && is_floating(number))
    parsed.form = TextForm::grouped;
  else if (!texts.result.empty())
    parsed.form = TextForm::result;
  else if ((is_minimum || is_maximum) && texts.step.empty() && single.contains(multiply))
    parsed.form = TextForm::ordered;
  parsed.is_minimum = is_minimum;
  parsed.identity = one("identity", identity_of(subject.owner, texts.identity, "add", add), sum, {});
  const bool is_sum = parsed.is_sum = is_sum_of(add);
  const std::string usual = is_sum ? "0" : is_minimum ? "infinity" : "-infinity", own = joined_tokens(texts.identity);
  if (parsed.fields.empty() && !parsed.reads_k && texts.result.empty() && (is_sum || is_minimum || is_maximum) &&
      (own.empty() || own == usual))
    parsed.join = is_sum ? TextJoin::sum : is_minimum ? TextJoin::minimum : TextJoin::maximum;
  return parsed;
}

ParsedDerivative parse(const DerivativeTexts& texts, Scalar accumulator) {
  ParsedDerivative parsed;
  const Type number = type_of(accumulator);
  const Subject subject{"runtime::Derivative", number, {}};
  const auto one = [&](const char* function, const std::string& text, std::initializer_list<const char*> arguments) {
    Parser parser(subject, function, text, number, parsed);
    for (const char* const name : arguments) parser.declare(name, {number, name, false, false});
    if (arguments.size() > 0) declare(parser, texts.hyperparameters, number);
    return parser.body();
  };
  const bool is_usual = texts.accumulate.empty();
  const std::string add = is_usual && texts.add.empty() ? "x + y" : texts.add;
  parsed.multiply = one("multiply", texts.multiply, {"d", "b", "a"});
  parsed.accumulate = one("accumulate", is_usual ? "fma(c, v, x)" : texts.accumulate, {"x", "c", "v"});
  if (!add.empty()) parsed.add = one("add", add, {"x", "y"});
  if (!texts.result.empty()) parsed.result = one("result", texts.result, {"x"});
  parsed.identity = one("identity", identity_of(subject.owner, texts.identity, "add", joined_tokens(add)), {});
  return parsed;
}

ParsedEpilogue parse(const EpilogueTexts& texts, Scalar number, Scalar result, Scalar element) {
  ParsedEpilogue parsed;
  parsed.element = element;
  parsed.argument = type_of(texts.argument);
  parsed.result = type_of(result);
  const Subject subject{"runtime::Epilogue", type_of(number), {}};
  Parser parser(subject, "body", texts.body, parsed.result, parsed);
  parser.declare("x", {parsed.argument, "x", false, false});
  parser.declare("m", index_of_lanes("m"));
  parser.declare("n", index_of_lanes("n"));
  parser.declare("batch", uniform_index("batch"));
  declare(parser, texts.hyperparameters, subject.number);
  parsed.body = parser.body();
  return parsed;
}

ParsedMonoid parse(const MonoidTexts& texts) {
  ParsedMonoid parsed;
  const Type number = type_of(texts.score);
  Subject subject{"runtime::Monoid", number, {}};
  for (const Field& field : texts.state.fields) subject.fields.push_back({field.name, type_of(field.type)});
  const Type state = subject.fields.empty() ? number : Type::fields;
  parsed.fields = subject.fields;
  parsed.result_type = texts.result_type == Scalar::other ? number : type_of(texts.result_type);
  const auto one = [&](const char* function, const std::string& text, Type returns,
                       std::initializer_list<std::pair<const char*, Type>> arguments, bool reads_n = false) {
    Parser parser(subject, function, text, returns, parsed);
    for (const auto& [name, type] : arguments) parser.declare(name, {type, name, false, false});
    if (arguments.size() > 0) declare(parser, texts.hyperparameters, number);
    if (reads_n) parser.declare("n", index_of_lanes("n"));
    return parser.body();
  };
  parsed.of = one("of", texts.of, state, {{"score", number}}, true);
  parsed.join = one("join", texts.join, state, {{"x", state}, {"y", state}});
  if (!texts.result.empty()) parsed.result = one("result", texts.result, parsed.result_type, {{"x", state}});
  parsed.identity =
      one("identity", identity_of(subject.owner, texts.identity, "join", joined_tokens(texts.join)), state, {});
  return parsed;
}

}  // namespace rigel::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel::runtime::Monoid: checked texts, and from compiled code a kernel of reduce() on hosts.
#include "code.hpp"
#include "parameters.hpp"
#include "text.hpp"

#include <rigel/config.hpp>
#include <rigel/detail/text_monoid.hpp>

#include <atomic>
#include <mutex>

#if RIGEL_BACKEND_PORTABLE
namespace rigel::backends::portable {
Kernel<Reduction> text_monoid_kernel(const detail::TextMonoid& monoid);
}  // namespace rigel::backends::portable
#endif

namespace rigel::runtime {
namespace {

constexpr const char* monoid_owner = "runtime::Monoid";

[[noreturn]] void refuse(const std::string& message) { rigel::runtime::refuse(monoid_owner, message); }

}  // namespace

struct Monoid::Program {
  MonoidTexts texts;
  ParsedMonoid parsed;
  std::mutex mutex;
  std::atomic<bool> is_compiled = false;
  std::vector<Kernel<Reduction>> kernels;

  void compile();  // once
  Owner owner() const { return {monoid_owner, texts.name, texts.hyperparameters, texts.score}; }
  Scalar result() const { return texts.result_type == Scalar::other ? texts.score : texts.result_type; }
};

void Monoid::Program::compile() {
  if (is_compiled) return;
  const std::lock_guard lock(mutex);
  if (is_compiled) return;
  rigel::detail::TextLoops loops = loops_for(monoid_owner, texts.name, texts.score, rigel::detail::TextForm::plain);
  loops.roots = {"rigel_text_monoid_add", "rigel_text_monoid_finish"};
  const rigel::detail::TextCode code =
      code_of({monoid_owner,
               texts.name,
               source_of(parsed, texts.score, loops.lanes),
               texts.score,
               {{"of", &texts.of}, {"join", &texts.join}, {"identity", &texts.identity}, {"result", &texts.result}}},
              loops);
  rigel::detail::TextMonoid made;
  made.add = reinterpret_cast<decltype(made.add)>(code.functions[0]);
  made.finish = reinterpret_cast<decltype(made.finish)>(code.functions[1]);
  made.code = code.code;
  made.type = result();
  made.number_bytes = size_of(texts.score);
  made.state_bytes = rigel::detail::lanes * made.number_bytes * std::max<std::size_t>(parsed.fields.size(), 1);
#if RIGEL_BACKEND_PORTABLE
  kernels = {backends::portable::text_monoid_kernel(made)};
#endif
  is_compiled = true;
}

Monoid::Monoid(const MonoidTexts& texts) {
  auto program = std::make_shared<Program>();
  program->texts = texts;
  if (texts.score != Scalar::f32 && texts.score != Scalar::f64 && texts.score != Scalar::i32 && texts.score != Scalar::i64)
    refuse(std::string("the score type is ") + rigel::name(texts.score) + ", expected f32, f64, i32 or i64");
  const FieldWords words = {"state", "scores"};
  check_fields(monoid_owner, words, texts.state.fields, texts.score, texts.score);
  check_result_type(monoid_owner, words, texts.result_type, texts.score, texts.score);
  if (texts.state.fields.empty()) {
    for (const auto& [type, what] : {std::pair(texts.state.type, "state"), std::pair(texts.result_type, "result")})
      if (type != Scalar::other && type != texts.score)
        refuse(std::string("the ") + what + " type is " + rigel::name(type) + ", expected " + rigel::name(texts.score) +
               ", that of scores");
  } else if (texts.result.empty()) {
    refuse("result is empty, expected what values receive of a state of several fields");
  }
  if (!is_name(texts.name)) refuse("the name '" + texts.name + "' is none, expected at most 64 letters, digits and '_'");
  check_hyperparameters(monoid_owner, texts.hyperparameters, {"score", "n", "x", "y"});
  program->parsed = parse(texts);
  program_ = std::move(program);
  for (const Hyperparameter& one : texts.hyperparameters) set(one.name, one.value);
}

void Monoid::set(std::string_view name, double value) { set_number(program_->owner(), values_, name, value); }
void Monoid::set_view(std::string_view name, Scalar type, rigel::detail::TextView view) {
  runtime::set_view(program_->owner(), values_, name, type, std::move(view));
}
double Monoid::get(std::string_view name) const { return number_of(program_->owner(), values_, name); }
std::vector<std::string> Monoid::hyperparameters() const { return names_of(program_->texts.hyperparameters); }
const std::string& Monoid::name() const { return program_->texts.name; }
Scalar Monoid::score() const { return program_->texts.score; }
Scalar Monoid::result() const { return program_->result(); }
void Monoid::compile() const { program_->compile(); }

void Monoid::set_in(Reduction& p) const {
  const std::string begin = std::string(p.function) + ": monoid '" + name() + "' ";
  if ((bit(p.execution.space) & host_spaces) == 0)
    throw Error(Code::unsupported, begin + "is a text, which runs on the host, not on space " +
                                       rigel::name(p.execution.space) + ", expected a functor there: reducer::monoid");
  if (p.scores.type != score())
    throw Error(Code::invalid_argument, begin + "takes scores of type " + rigel::name(score()) + ", but these are of type " +
                                            rigel::name(p.scores.type));
  require_views(program_->owner(), values_, p.execution.space, p.batch, "matrix of the batch");
  program_->compile();
  p.monoid = &values_;
  p.whole_results = result() == Scalar::i32 || result() == Scalar::i64;
  p.instantiated = program_->kernels;
}

}  // namespace rigel::runtime

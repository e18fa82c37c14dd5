// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel::runtime::Semiring: checked texts, and from compiled code kernels.
#include "code.hpp"
#include "library.hpp"
#include "parameters.hpp"
#include "text.hpp"

#include "../operations/verify.hpp"

#include <rigel/config.hpp>
#include <rigel/detail/text.hpp>

#include <atomic>
#include <mutex>

#if RIGEL_BACKEND_CUDA_SIMT
namespace rigel::backends::simt {
std::vector<Kernel<Contraction>> text_kernels(const detail::TextFacts& facts, const detail::TextCompiler& compile);
void compile_text_kernels(const Kernel<Contraction>& kernel, const Execution& execution, const detail::TextSource* epilogue);
}  // namespace rigel::backends::simt
#endif

namespace rigel::runtime {
namespace {

constexpr const char* semiring_owner = "runtime::Semiring";

[[noreturn]] void refuse(const std::string& message) { rigel::runtime::refuse(semiring_owner, message); }

}  // namespace

struct Semiring::Program {
  Texts texts;
  Parsed parsed;
  Scalar accumulator;
  SemiringInfo info;
  std::mutex mutex;
  std::atomic<bool> is_compiled = false;
  std::vector<Kernel<Contraction>> kernels;
  std::once_flag has_gpu_kernels;
  std::vector<Kernel<Contraction>> gpu_kernels;

  void compile();  // once
  Work work(int lanes) const;
  Owner owner() const { return {semiring_owner, texts.name, texts.hyperparameters, accumulator}; }
  rigel::detail::TextFacts facts() const {
    rigel::detail::TextFacts all{&info, parsed.form, parsed.calls_functions};
    all.has_long_operations =
        parsed.long_operations_on_gpus() > 0 || parsed.multiply.is_large || parsed.add.is_large || parsed.step.is_large;
    if (const Exponent& one = parsed.exponent; !one.code.empty())
      all.exponent = {static_cast<float>(one.value.value_or(0)), one.hyperparameter};
    all.join = parsed.join;
    return all;
  }
};

// What is compiled for vectors of `lanes` accumulators, or, of 0 lanes, for GPUs.
Work Semiring::Program::work(int lanes) const {
  return {semiring_owner,
          texts.name,
          source_of(parsed, accumulator, lanes),
          texts.element,
          {{"multiply", &texts.multiply},
           {"add", &texts.add},
           {"identity", &texts.identity},
           {"step", &texts.step},
           {"result", &texts.result}}};
}

void Semiring::Program::compile() {
  const std::lock_guard lock(mutex);
  if (is_compiled) return;
  const rigel::detail::TextLoops loops = loops_for(semiring_owner, texts.name, texts.element, parsed.form);
  kernels = {loops.kernel(facts(), code_of(work(loops.lanes), loops))};
  is_compiled = true;
}

namespace {

// Refuses fields of an accumulator, or the type of results, if loops of numbers of type `number` cannot hold them.
void check_accumulator(const Texts& texts, Scalar number) {
  const std::vector<Field>& fields = texts.accumulator.fields;
  const FieldWords words = {"accumulator", "elements"};
  check_fields(semiring_owner, words, fields, number, texts.element);
  if (fields.empty()) {
    if (texts.accumulator.type != Scalar::other && texts.accumulator.type != number)
      refuse(std::string("the accumulator type is ") + rigel::name(texts.accumulator.type) + ", expected " +
             rigel::name(number) + " for elements of " + rigel::name(texts.element));
    if (texts.result_type != Scalar::other && texts.result_type != number)
      refuse(std::string("the result type is ") + rigel::name(texts.result_type) + ", expected " + rigel::name(number) +
             ", that of the accumulator");
    return;
  }
  if (texts.result.empty()) refuse("result is empty, expected what C receives of an accumulator of several fields");
  check_result_type(semiring_owner, words, texts.result_type, number, texts.element);
}

}  // namespace

Semiring::Semiring(const Texts& texts) {
  auto program = std::make_shared<Program>();
  program->texts = texts;
  const Scalar of_element = accumulator_of(texts.element);
  if (of_element != Scalar::f32 && of_element != Scalar::f64 && of_element != Scalar::i32 && of_element != Scalar::i64)
    refuse(std::string("the element type is ") + rigel::name(texts.element) + ", expected f32, f64, i32, i64, f16 or bf16");
  check_accumulator(texts, of_element);
  if (!is_name(texts.name)) refuse("the name '" + texts.name + "' is none, expected at most 64 letters, digits and '_'");
  check_hyperparameters(semiring_owner, texts.hyperparameters, {"a", "b", "x", "y", "k"});
  program->accumulator = of_element;
  program->parsed = parse(texts, of_element);
  program->info = {.name = program->texts.name,
                   .type = program.get(),
                   .element = texts.element,
                   .operand = of_element,
                   .accumulator = texts.accumulator.fields.empty() ? of_element : Scalar::other,
                   .result = texts.result_type == Scalar::other ? of_element : texts.result_type,
                   .commutative = texts.commutative,
                   .transcendental = program->parsed.calls_functions};
  program_ = std::move(program);
  for (const Hyperparameter& one : texts.hyperparameters) set(one.name, one.value);
}

void Semiring::set(std::string_view name, double value) { set_number(program_->owner(), values_, name, value); }
void Semiring::set_view(std::string_view name, Scalar type, rigel::detail::TextView view) {
  runtime::set_view(program_->owner(), values_, name, type, std::move(view));
}
double Semiring::get(std::string_view name) const { return number_of(program_->owner(), values_, name); }

std::vector<std::string> Semiring::hyperparameters() const { return names_of(program_->texts.hyperparameters); }

const std::string& Semiring::name() const { return program_->texts.name; }
Scalar Semiring::element() const { return program_->texts.element; }
Scalar Semiring::accumulator() const { return program_->info.accumulator; }
Scalar Semiring::result() const { return program_->info.result; }
SemiringId Semiring::id() const { return {program_->texts.name, program_.get()}; }

std::span<const Kernel<Contraction>> Semiring::kernels(Space space) const {
#if RIGEL_BACKEND_CUDA_SIMT
  if (space == Space::cuda) {
    std::call_once(program_->has_gpu_kernels, [&] {
      const Program* const program = program_.get();  // which outlives its kernels
      program_->gpu_kernels = backends::simt::text_kernels(
          program->facts(), [program](std::size_t kernel, std::uint64_t layout, const rigel::detail::TextGpu& gpu,
                                      const rigel::detail::TextSource* epilogue) {
            Work work = program->work(0);
            if (epilogue)
              work.store = epilogue->text;
            else if (!program->parsed.fields.empty())
              work.source += store_of_results(program->parsed.result_type);
            return code_of(work, kernel, layout, gpu);
          });
    });
    return program_->gpu_kernels;
  }
#endif
  if ((bit(space) & host_spaces) == 0) refuse_space(semiring_owner, name(), "kernels", space);
  if (!program_->is_compiled) program_->compile();
  return program_->kernels;
}

void Semiring::compile(const Execution& execution, const Epilogue* epilogue) const {
  [[maybe_unused]] const std::span<const Kernel<Contraction>> all = kernels(execution.space);
#if RIGEL_BACKEND_CUDA_SIMT
  if (execution.space == Space::cuda) {
    backends::simt::compile_text_kernels(all.front(), execution, epilogue ? &epilogue->source() : nullptr);
    return;
  }
#endif
  if (epilogue) static_cast<void>(epilogue->function(execution.space));
}

namespace {

std::string described(const Operand& operand) {
  return std::string(operand.argument) + (operand.label.empty() ? "" : " ('" + operand.label + "')");
}

void require_elements(const char* function, const Semiring& semiring, const Operand& operand) {
  if (operand.type != semiring.element())
    throw Error(Code::invalid_argument, std::string(function) + ": " + described(operand) + " holds elements of type " +
                                            rigel::name(operand.type) + ", expected " + rigel::name(semiring.element()) +
                                            ", that of the semiring '" + semiring.name() + "'");
}

}  // namespace

void detail::set_semiring(Contraction& p, const Semiring& semiring) {
  require_elements(p.function, semiring, p.a);
  require_elements(p.function, semiring, p.b);
  if (p.accumulate && semiring.accumulator() == Scalar::other)
    throw Error(Code::invalid_argument, std::string(p.function) + ": accumulate is not defined for semiring '" +
                                            semiring.name() +
                                            "', whose accumulator has several fields that no value of C can be lifted into");
  require_views(semiring.program_->owner(), semiring.values_, p.execution.space, p.batch);
  p.semiring = semiring.id();
  p.element = semiring.element();
  p.accumulator = semiring.accumulator();
  p.semiring_object = &semiring.values_;
  if (semiring.values_.differ()) {
    p.semiring_in_view = true;
    p.semiring_stride = 1;
  }
  p.instantiated = semiring.kernels(p.execution.space);
}

Verification detail::verify(const Semiring& semiring, unsigned seed) {
  const Semiring::Program& program = *semiring.program_;
  if (semiring.values_.differ())
    refuse("verify: '" + semiring.name() + "' has a view of several numbers as hyperparameter, expected one number for all");
  constexpr Space host = rigel::detail::space_of<Kokkos::DefaultHostExecutionSpace>;
  require_views(program.owner(), semiring.values_, host, 1);
  SemiringInfo facts = program.info;
  facts.sample = &semiring.values_;
  Kernel<Contraction> kernel = semiring.kernels(host).front();
  rigel::detail::TextLoops loops = loops_for(semiring_owner, semiring.name(), program.texts.element, program.parsed.form);
  loops.roots = {loops.reference_root, loops.reference_root};
  rigel::detail::TextFacts own = program.facts();
  own.info = &facts;
  Kernel<Contraction> reference = loops.reference(own, code_of(program.work(loops.lanes), loops));
  kernel.info.facts = reference.info.facts = &facts;
  return engine::verify(kernel, seed, &reference);
}

bool is_available(std::string* reason) {
  std::string why;
  const bool available = library(why) != nullptr;
  if (!available && reason) *reason = why;
  return available;
}

}  // namespace rigel::runtime

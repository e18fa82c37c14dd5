// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel::runtime::Derivative: checked texts, and from compiled code kernels of contract_gradient().
#include "code.hpp"
#include "parameters.hpp"
#include "text.hpp"

#include "../operations/verify.hpp"

#include <rigel/config.hpp>
#include <rigel/detail/checks.hpp>
#include <rigel/detail/text_gradient.hpp>
#include <rigel/runtime_gradient.hpp>

#include <atomic>
#include <mutex>
#include <optional>

#if RIGEL_BACKEND_HOST
namespace rigel::backends::host {
std::optional<detail::TextGradientLoops> text_gradient_loops(Scalar element);
}
#endif
#if RIGEL_BACKEND_CUDA_SIMT
namespace rigel::backends::gradient {
std::vector<Kernel<Gradient>> text_kernels(const detail::TextGradientFacts& facts, const detail::TextCompiler& compile);
void compile_text_kernels(const Kernel<Gradient>& kernel, const Execution& execution);
}  // namespace rigel::backends::gradient
#endif

namespace rigel::runtime {
namespace {

constexpr const char* derivative_owner = "runtime::Derivative";

}  // namespace

struct Derivative::Program {
  DerivativeTexts texts;
  ParsedDerivative parsed;
  rigel::detail::TextGradientFacts facts;
  std::mutex mutex;
  std::atomic<bool> is_compiled = false;
  std::vector<Kernel<Gradient>> kernels;
  std::once_flag has_gpu_kernels;
  std::vector<Kernel<Gradient>> gpu_kernels;

  void compile();  // once
  // What is compiled for vectors of `lanes` accumulators, or, of 0 lanes, for GPUs.
  Work work(int lanes) const {
    return {derivative_owner,
            texts.name,
            source_of(parsed, facts.accumulator, lanes),
            texts.element,
            {{"multiply", &texts.multiply},
             {"accumulate", &texts.accumulate},
             {"add", &texts.add},
             {"identity", &texts.identity},
             {"result", &texts.result}}};
  }
  Owner owner() const { return {derivative_owner, texts.name, texts.hyperparameters, facts.accumulator}; }
};

namespace {

// The loop of this processor, or an Error(unsupported).
rigel::detail::TextGradientLoops loops_for(const DerivativeTexts& texts) {
  std::optional<rigel::detail::TextGradientLoops> loops;
#if RIGEL_BACKEND_HOST
  loops = backends::host::text_gradient_loops(texts.element);
#endif
  if (!loops) refuse_processor(derivative_owner, texts.name);
  return *loops;
}

}  // namespace

void Derivative::Program::compile() {
  const std::lock_guard lock(mutex);
  if (is_compiled) return;
  const rigel::detail::TextGradientLoops loops = loops_for(texts);
  kernels = {loops.kernel(facts, code_of(work(loops.lanes), loops))};
  is_compiled = true;
}

Derivative::Derivative(const DerivativeTexts& texts) {
  auto program = std::make_shared<Program>();
  program->texts = texts;
  const Scalar number = accumulator_of(texts.element);
  if (number != Scalar::f32 && number != Scalar::f64 && number != Scalar::i32 && number != Scalar::i64)
    refuse(derivative_owner,
           std::string("the element type is ") + rigel::name(texts.element) + ", expected f32, f64, i32, i64, f16 or bf16");
  if (texts.accumulator != Scalar::other && texts.accumulator != number)
    refuse(derivative_owner, std::string("the accumulator type is ") + rigel::name(texts.accumulator) + ", expected " +
                                 rigel::name(number) + " for elements of " + rigel::name(texts.element));
  if (!is_name(texts.name))
    refuse(derivative_owner, "the name '" + texts.name + "' is none, expected at most 64 letters, digits and '_'");
  check_hyperparameters(derivative_owner, texts.hyperparameters, {"a", "b", "c", "d", "v", "x", "y"});
  const ParsedDerivative& parsed = program->parsed = parse(texts, number);
  program->facts = {texts.name,
                    program.get(),
                    texts.element,
                    number,
                    parsed.calls_functions,
                    parsed.long_operations > 0 || parsed.multiply.is_large || parsed.accumulate.is_large,
                    !parsed.add.code.empty()};
  program_ = std::move(program);
  for (const Hyperparameter& one : texts.hyperparameters) set(one.name, one.value);
}

void Derivative::set(std::string_view name, double value) { set_number(program_->owner(), values_, name, value); }
void Derivative::set_view(std::string_view name, Scalar type, rigel::detail::TextView view) {
  runtime::set_view(program_->owner(), values_, name, type, std::move(view));
}
double Derivative::get(std::string_view name) const { return number_of(program_->owner(), values_, name); }
std::vector<std::string> Derivative::hyperparameters() const { return names_of(program_->texts.hyperparameters); }
const std::string& Derivative::name() const { return program_->texts.name; }
Scalar Derivative::element() const { return program_->texts.element; }
Scalar Derivative::accumulator() const { return program_->facts.accumulator; }

std::span<const Kernel<Gradient>> Derivative::kernels(Space space) const {
#if RIGEL_BACKEND_CUDA_SIMT
  if (space == Space::cuda) {
    std::call_once(program_->has_gpu_kernels, [&] {
      const Program* const program = program_.get();  // which outlives its kernels
      program_->gpu_kernels = backends::gradient::text_kernels(
          program->facts,
          [program](std::size_t kernel, std::uint64_t layout, const rigel::detail::TextGpu& gpu,
                    const rigel::detail::TextSource*) { return code_of(program->work(0), kernel, layout, gpu); });
    });
    return program_->gpu_kernels;
  }
#endif
  if ((bit(space) & host_spaces) == 0) refuse_space(derivative_owner, name(), "kernels", space);
  if (!program_->is_compiled) program_->compile();
  return program_->kernels;
}

void Derivative::compile(const Execution& execution) const {
  [[maybe_unused]] const std::span<const Kernel<Gradient>> all = kernels(execution.space);
#if RIGEL_BACKEND_CUDA_SIMT
  if (execution.space == Space::cuda) backends::gradient::compile_text_kernels(all.front(), execution);
#endif
}

void detail::set_derivative(Gradient& p, const Derivative& derivative) {
  const auto require = [&](const Operand& operand, Scalar type, const char* what) {
    if (operand.type == type) return;
    rigel::detail::refuse(p, std::string(operand.argument) + (operand.label.empty() ? "" : " ('" + operand.label + "')") +
                                 " holds elements of type " + rigel::name(operand.type) + ", expected " + rigel::name(type) +
                                 ", that of " + what + " '" + derivative.name() + "'");
  };
  for (const Operand* const operand : {&p.a, &p.b, &p.c, &p.d}) require(*operand, derivative.element(), "the derivative");
  require(p.out, derivative.accumulator(), "the accumulators of the derivative");
  require_views(derivative.program_->owner(), derivative.values_, p.execution.space, p.batch, "batch of Out");
  p.functor = {derivative.name(), derivative.program_.get()};
  p.element = derivative.element();
  p.accumulator = derivative.accumulator();
  p.functor_object = &derivative.values_;
  p.instantiated = derivative.kernels(p.execution.space);
}

Verification detail::verify(const Derivative& derivative, unsigned seed) {
  const Derivative::Program& program = *derivative.program_;
  if (derivative.values_.differ())
    refuse(derivative_owner, "verify: '" + derivative.name() +
                                 "' has a view of several numbers as hyperparameter, expected one number for all");
  constexpr Space host = rigel::detail::space_of<Kokkos::DefaultHostExecutionSpace>;
  require_views(program.owner(), derivative.values_, host, 1);
  rigel::detail::TextGradientLoops loops = loops_for(program.texts);
  loops.roots = {loops.reference_root, loops.reference_root};
  const Kernel<Gradient> reference = loops.reference(program.facts, code_of(program.work(loops.lanes), loops));
  Gradient of;
  of.functor = {derivative.name(), &program};
  of.element = derivative.element();
  of.accumulator = derivative.accumulator();
  of.functor_object = &derivative.values_;
  Verification result;
  engine::verify_text(derivative.kernels(host).front(), reference, of, seed, result);
#if RIGEL_BACKEND_CUDA_SIMT
  require_views(program.owner(), derivative.values_, Space::cuda, 1);
  for (const Kernel<Gradient>& kernel : derivative.kernels(Space::cuda))
    if (covers(kernel.info.promises, Promise::reference_bits)) engine::verify_text(kernel, reference, of, seed, result);
#endif
  return result;
}

}  // namespace rigel::runtime

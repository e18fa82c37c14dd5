// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel::runtime::Epilogue: a checked text, and from it a function of rows of results, which no loops are compiled with, or, for GPUs, a source
// that kernels are compiled with; those of products belong to it.
#include "code.hpp"
#include "digest.hpp"
#include "parameters.hpp"
#include "text.hpp"

#include <rigel/config.hpp>

#include <atomic>
#include <map>
#include <mutex>

#if RIGEL_BACKEND_CUDA_SIMT
namespace rigel::backends {
namespace mma {
std::vector<Kernel<Contraction>> text_kernels(Scalar element, const std::string& epilogue,
                                              const detail::TextTileCompiler& compile);
int compile_text_kernels(const Kernel<Contraction>& kernel, Scalar c, const Execution& execution);
}  // namespace mma
namespace hopper {
std::vector<Kernel<Contraction>> text_kernels(Scalar element, const std::string& epilogue,
                                              const detail::TextTileCompiler& compile);
int compile_text_kernels(const Kernel<Contraction>& kernel, Scalar c, const Execution& execution);
}  // namespace hopper
}  // namespace rigel::backends
#endif

namespace rigel::runtime {
namespace {

constexpr const char* epilogue_owner = "runtime::Epilogue";

bool is_floating(Scalar type) { return type == Scalar::f32 || type == Scalar::f64; }

// The type in which numbers of both types meet: a floating-point one if there is one, then the wider.
Scalar common(Scalar x, Scalar y) {
  if (is_floating(x) != is_floating(y)) return is_floating(x) ? x : y;
  return size_of(x) >= size_of(y) ? x : y;
}

bool is_number(Scalar type) {
  return type == Scalar::f32 || type == Scalar::f64 || type == Scalar::i32 || type == Scalar::i64;
}

// The kernels for products with an epilogue from text: those of tensor cores by families, and then those of cuda.simt.
struct Products {
  struct Family {
    std::size_t first;  // of its kernels
    int (*compile)(const Kernel<Contraction>& kernel, Scalar c, const Execution& execution);
  };
  std::vector<Kernel<Contraction>> kernels;
  std::vector<Family> families;
};

}  // namespace

struct Epilogue::Program {
  EpilogueTexts texts;
  Scalar result = Scalar::f32, made = Scalar::f32, number = Scalar::f32;
  ParsedEpilogue parsed;
  std::mutex mutex;
  std::atomic<bool> is_compiled = false;
  rigel::detail::TextCode code;
  std::once_flag has_source;
  rigel::detail::TextSource source;  // for GPUs
  std::mutex products_mutex;
  std::map<Scalar, Products> products;  // of GPUs, by the element type

  std::span<const Products::Family> families_of(Scalar element) {
    const std::lock_guard lock(products_mutex);
    return products[element].families;
  }
  const rigel::detail::TextSource& gpu_source() {
    std::call_once(has_source, [this] {
      source.text = source_of(parsed, number, 0);
      source.digest = digest_of(source.text);
    });
    return source;
  }
  Owner owner() const { return {epilogue_owner, texts.name, texts.hyperparameters, number}; }
};

Epilogue::Epilogue(const EpilogueTexts& texts) {
  auto program = std::make_shared<Program>();
  program->texts = texts;
  program->result = texts.result == Scalar::other ? texts.argument : texts.result;
  if (!is_number(texts.argument))
    refuse(epilogue_owner,
           std::string("the argument type is ") + rigel::name(texts.argument) + ", expected f32, f64, i32 or i64");
  const Scalar made = accumulator_of(program->result);
  if (!is_number(made))
    refuse(epilogue_owner,
           std::string("the result type is ") + rigel::name(program->result) + ", expected f32, f64, i32, i64, f16 or bf16");
  // Of f64, 16-bit elements are rounded once.
  program->made = program->result != made && texts.argument == Scalar::f64 ? Scalar::f64 : made;
  program->number = common(texts.argument, program->made);
  if (!is_name(texts.name))
    refuse(epilogue_owner, "the name '" + texts.name + "' is none, expected at most 64 letters, digits and '_'");
  check_hyperparameters(epilogue_owner, texts.hyperparameters, {"x", "m", "n", "batch"});
  program->parsed = parse(texts, program->number, program->made, program->result);
  program_ = std::move(program);
  for (const Hyperparameter& one : texts.hyperparameters) set(one.name, one.value);
}

void Epilogue::set(std::string_view name, double value) { set_number(program_->owner(), values_, name, value); }
void Epilogue::set_view(std::string_view name, Scalar type, rigel::detail::TextView view) {
  runtime::set_view(program_->owner(), values_, name, type, std::move(view));
}
double Epilogue::get(std::string_view name) const { return number_of(program_->owner(), values_, name); }
std::vector<std::string> Epilogue::hyperparameters() const { return names_of(program_->texts.hyperparameters); }
const std::string& Epilogue::name() const { return program_->texts.name; }
Scalar Epilogue::argument() const { return program_->texts.argument; }
Scalar Epilogue::result() const { return program_->result; }
Scalar Epilogue::number() const { return program_->number; }

rigel::detail::TextEpilogue::Function Epilogue::function(Space space) const {
  if (space == Space::cuda)
    throw Error(Code::unsupported, std::string(epilogue_owner) + " '" + name() +
                                       "': on GPUs it is compiled with a semiring's kernels, expected "
                                       "Semiring::compile(exec, epilogue)");
  if ((bit(space) & host_spaces) == 0) refuse_space(epilogue_owner, name(), "epilogues", space);
  Program& own = *program_;
  if (!own.is_compiled) {
    const std::lock_guard lock(own.mutex);
    if (!own.is_compiled) {
      rigel::detail::TextLoops loops = loops_for(epilogue_owner, own.texts.name, own.number, rigel::detail::TextForm::plain);
      loops.roots = {"rigel_text_epilogue", "rigel_text_epilogue"};
      own.code = code_of({epilogue_owner,
                          own.texts.name,
                          source_of(own.parsed, own.number, loops.lanes),
                          own.number,
                          {{"body", &own.texts.body}}},
                         loops);
      own.is_compiled = true;
    }
  }
  return reinterpret_cast<rigel::detail::TextEpilogue::Function>(own.code.functions[0]);
}

const rigel::detail::TextSource& Epilogue::source() const { return program_->gpu_source(); }

const Semiring& detail::product_of(Scalar element) {
  static std::mutex mutex;
  static auto* const all = new std::map<Scalar, Semiring>;  // never destroyed: calls may come from static destructors
  const std::lock_guard lock(mutex);
  if (const auto found = all->find(element); found != all->end()) return found->second;
  const Semiring product({.name = "plus_times",
                          .element = element,
                          .multiply = "a * b",
                          .add = "x + y",
                          .step = "fma(a, b, x)",
                          .commutative = true});
  return all->emplace(element, product).first->second;
}

std::span<const Kernel<Contraction>> Epilogue::products([[maybe_unused]] Scalar element) const {
#if RIGEL_BACKEND_CUDA_SIMT
  Program* const own = program_.get();  // which outlives its kernels
  const std::lock_guard lock(own->products_mutex);
  Products& all = own->products[element];
  std::vector<Kernel<Contraction>>& list = all.kernels;
  if (!list.empty()) return list;
  const auto compile = [own](Scalar of, std::size_t kernel, std::uint64_t layout, const rigel::detail::TextGpu& gpu) {
    return code_of({epilogue_owner, own->texts.name, own->gpu_source().text, of, {{"body", &own->texts.body}}}, kernel,
                   layout, gpu);
  };
  const auto add = [&](std::vector<Kernel<Contraction>> kernels) {
    for (Kernel<Contraction>& kernel : kernels) list.push_back(std::move(kernel));
  };
  if (own->texts.argument == Scalar::f32 && own->number == Scalar::f32) {  // what tensor cores sum in
    const std::string what = std::string(epilogue_owner) + " '" + name() + "'";
    const auto add_family = [&](std::vector<Kernel<Contraction>> kernels, auto* compile_kernels) {
      if (!kernels.empty()) all.families.push_back({list.size(), compile_kernels});
      add(std::move(kernels));
    };
    add_family(backends::hopper::text_kernels(element, what, compile), &backends::hopper::compile_text_kernels);
    add_family(backends::mma::text_kernels(element, what, compile), &backends::mma::compile_text_kernels);
  }
  const std::span<const Kernel<Contraction>> others = detail::product_of(element).kernels(Space::cuda);
  add({others.begin(), others.end()});
  for (Kernel<Contraction>& kernel : list) {
    kernel.info.semiring = "plus_times";
    kernel.info.semiring_type = nullptr;
  }
  return list;
#else
  return {};
#endif
}

void Epilogue::compile_products([[maybe_unused]] const Execution& execution, [[maybe_unused]] Scalar element) const {
#if RIGEL_BACKEND_CUDA_SIMT
  if (execution.space == Space::cuda) {
    const std::span<const Kernel<Contraction>> kernels = products(element);  // which fills the families
    int count = 0;
    for (const Products::Family& family : program_->families_of(element)) {
      const KernelInfo& info = kernels[family.first].info;  // all of a family run on the same GPUs
      if (execution.compute_capability >= info.min_compute_capability &&
          (info.max_compute_capability == 0 || execution.compute_capability <= info.max_compute_capability))
        count += family.compile(kernels[family.first], program_->result, execution);
    }
    if (count == 0) detail::product_of(element).compile(execution, this);
    return;
  }
#endif
  throw Error(Code::unsupported, std::string(epilogue_owner) + " '" + name() +
                                     "': it has kernels for products on CUDA, not on space " + rigel::name(execution.space));
}

void detail::set_products(Contraction& p, const Epilogue& epilogue) {
  static const rigel::detail::TextValues none;  // the product has no hyperparameters
  p.semiring_object = &none;
  p.semiring_in_view = false;
  p.semiring_stride = 0;
  p.instantiated = epilogue.products(p.element);
}

detail::EpilogueCall::EpilogueCall(const Epilogue& epilogue, Space space, Scalar argument, const Operand& c,
                                   const char* function) {
  const Epilogue::Program& own = *epilogue.program_;
  const std::string begin = std::string(function) + ": the epilogue '" + epilogue.name() + "' ";
  if (argument != own.texts.argument)
    throw Error(Code::invalid_argument, begin + "takes numbers of type " + rigel::name(own.texts.argument) + ", expected " +
                                            rigel::name(argument) + ", that of the semiring's results");
  if (c.type != own.result)
    throw Error(Code::invalid_argument, begin + "makes elements of type " + rigel::name(own.result) + ", expected " +
                                            rigel::name(c.type) + ", that of " + c.argument +
                                            (c.label.empty() ? "" : " ('" + c.label + "')"));
  require_views(own.owner(), epilogue.values_, space, c.batches);
  text.argument = own.texts.argument;
  text.result = own.made;
  if (space == Space::cuda) {
    text.source = &epilogue.source();
    text.values = &epilogue.values_;
    text.number = own.number;
    return;
  }
  text.function = epilogue.function(space);
  const std::size_t bytes = rigel::detail::most_text_parameters * size_of(own.number);
  parameters = epilogue.values_.read(bytes, 0, c.batches);
  text.parameters = parameters.data();
  text.stride = epilogue.values_.differ() ? static_cast<std::int64_t>(bytes) : 0;
}

}  // namespace rigel::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel::runtime::Semiring: checked texts, and from them compiled loops (memory, then disk, then the compiler) and kernels.
#include "cache.hpp"
#include "code.hpp"
#include "library.hpp"
#include "parameters.hpp"
#include "text.hpp"

#include "../operations/verify.hpp"

#include <rigel/config.hpp>
#include <rigel/detail/text.hpp>

#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>

#if RIGEL_BACKEND_HOST
namespace rigel::backends::host {
std::optional<detail::TextLoops> text_loops(Scalar element, detail::TextForm form);
}
#endif

namespace rigel::runtime {
namespace {

// What is in a digest in addition to the source. It changes with the form of sources and of cached files.
constexpr const char* schema = "rigel text 1";

struct Counters {
  std::atomic<std::uint64_t> compiled = 0, from_disk = 0, from_memory = 0;
};
Counters& counters() {
  static Counters all;
  return all;
}

constexpr const char* semiring_owner = "runtime::Semiring";

[[noreturn]] void refuse(const std::string& message) { rigel::runtime::refuse(semiring_owner, message); }

Scalar accumulator_of(Scalar element) { return element == Scalar::f16 || element == Scalar::bf16 ? Scalar::f32 : element; }

// A source without its #line directives, which say where in the text things stand.
std::string normalised(std::string_view source) {
  std::string rest;
  while (!source.empty()) {
    const auto end = std::min(source.find('\n'), source.size() - 1);
    if (!source.starts_with("#line ")) rest += source.substr(0, end + 1);
    source.remove_prefix(end + 1);
  }
  return rest;
}

// Compiled loops, by the digest of all that they depend on. Whoever wants loops that another thread compiles waits for it.
struct Slot {
  std::mutex mutex;
  std::optional<rigel::detail::TextCode> code;
};
struct Memory {
  std::mutex mutex;
  std::map<Digest, std::unique_ptr<Slot>> slots;
};
Memory& memory() {
  static Memory* const one = new Memory;  // never destroyed: calls may come from static destructors
  return *one;
}

// A loaded object, which is unloaded when no kernel needs it.
struct Loaded {
  const RigelRuntime* runtime;
  void* handle;
  Loaded(const RigelRuntime* of, void* what) : runtime(of), handle(what) {}
  ~Loaded() { runtime->unload(handle); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
};

std::string taken(const RigelRuntime& runtime, RigelBytes& bytes) {
  std::string text(bytes.data ? bytes.data : "", bytes.size);
  runtime.release(&bytes);
  return text;
}

// What is looked up in compiled code.
std::array<const char*, 4> names_of(const rigel::detail::TextLoops& loops) {
  return {loops.roots[0], loops.roots[1], "rigel_text_support", "rigel_text_layout"};
}

std::optional<rigel::detail::TextCode> load(const RigelRuntime& runtime, const std::string& object,
                                            const rigel::detail::TextLoops& loops, std::string& messages) {
  const auto names = names_of(loops);
  void* addresses[4] = {};
  void* handle = nullptr;
  RigelBytes bytes = {};
  if (runtime.load(object.data(), object.size(), names.data(), names.size(), addresses, &handle, &bytes) != 0) {
    messages = taken(runtime, bytes);
    return std::nullopt;
  }
  rigel::detail::TextCode code{{addresses[0], addresses[1]}, std::make_shared<const Loaded>(&runtime, handle)};
  if (*static_cast<const std::uint64_t*>(addresses[3]) != loops.layout) {
    messages = "its loops are of another build of Rigel";
    return std::nullopt;
  }
  *static_cast<const void**>(addresses[2]) = loops.support;
  return code;
}

// An Error of what the compiler says: its first message, about a place in one of the texts if it has one.
[[noreturn]] void refuse_compiled(const Work& work, const std::string& messages) {
  const auto first = messages.find(':'), second = messages.find(':', first + 1);
  const std::string message = messages.substr(second + 1, messages.find('\n') - second - 1);
  const std::string begin = std::string(work.owner) + " '" + work.name + "': the text does not compile: ";
  if (first == messages.npos || second == messages.npos) throw Error(Code::unsupported, begin + messages);
  const std::string function = messages.substr(0, first);
  int line = 0;
  std::from_chars(messages.data() + first + 1, messages.data() + second, line);
  for (const auto& [name, text] : work.texts)
    if (function == name) refuse_text(name, *text, line / columns_per_line, line % columns_per_line, message, work.owner);
  throw Error(Code::unsupported, begin + message);
}

}  // namespace

struct Semiring::Program {
  Texts texts;
  Parsed parsed;
  Scalar accumulator;
  SemiringInfo info;
  std::mutex mutex;
  std::atomic<bool> is_compiled = false;
  std::vector<Kernel<Contraction>> kernels;

  void compile();  // once
  Work work(const rigel::detail::TextLoops& loops) const;
  Owner owner() const { return {semiring_owner, texts.name, texts.hyperparameters, accumulator}; }
};

rigel::detail::TextCode code_of(const Work& work, const rigel::detail::TextLoops& loops) {
  std::string reason;
  const RigelRuntime* const runtime = library(reason);
  const std::string begin = std::string(work.owner) + " '" + work.name + "': ";
  if (!runtime) throw Error(Code::unsupported, begin + reason);
  const std::string& source = work.source;
  std::string key = schema;
  for (const std::string& part : {std::string(runtime->build), std::string(rigel::name(work.element)),
                                  std::string(loops.level), std::string(loops.roots[0]), normalised(source)})
    key += '\0' + part;
  const Digest digest = digest_of(key);
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(memory().mutex);
    auto& own = memory().slots[digest];
    if (!own) own = std::make_unique<Slot>();
    slot = own.get();
  }
  const std::lock_guard lock(slot->mutex);
  if (slot->code) {
    ++counters().from_memory;
    return *slot->code;
  }
  std::string messages;
  if (const std::optional<std::string> object = read_cached(digest)) {
    slot->code = load(*runtime, *object, loops, messages);
    if (slot->code) {
      ++counters().from_disk;
      return *slot->code;
    }
  }
  const auto roots = names_of(loops);
  const RigelSource request{source.data(), source.size(), rigel::name(work.element),
                            loops.level,   roots.data(),  roots.size()};
  RigelBytes bytes = {}, said = {};
  const int failed = runtime->compile(&request, &bytes, &said);
  messages = taken(*runtime, said);
  if (failed) refuse_compiled(work, messages);
  const std::string object = taken(*runtime, bytes);
  slot->code = load(*runtime, object, loops, messages);
  if (!slot->code) throw Error(Code::unsupported, begin + "the compiled text cannot be loaded: " + messages);
  ++counters().compiled;
  write_cached(digest, object);
  return *slot->code;
}

rigel::detail::TextLoops loops_for(const char* owner, const std::string& name, Scalar element,
                                   rigel::detail::TextForm form) {
  std::optional<rigel::detail::TextLoops> loops;
#if RIGEL_BACKEND_HOST
  loops = backends::host::text_loops(element, form);
#endif
  if (!loops)
    throw Error(Code::unsupported,
                std::string(owner) + " '" + name + "': this build of Rigel has no loops for this processor");
  return *loops;
}

Work Semiring::Program::work(const rigel::detail::TextLoops& loops) const {
  return {semiring_owner,
          texts.name,
          source_of(parsed, accumulator, loops.lanes),
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
  kernels = {loops.kernel({&info, parsed.calls_functions}, code_of(work(loops), loops))};
  is_compiled = true;
}

namespace {

// Refuses fields of an accumulator, or the type of results, if loops of numbers of type `number` cannot hold them.
void check_accumulator(const Texts& texts, Scalar number) {
  const auto fits = [&](Scalar type) {
    return size_of(number) == 4 ? type == Scalar::f32 || type == Scalar::i32 : type == Scalar::f64 || type == Scalar::i64;
  };
  const std::string expected =
      std::string(size_of(number) == 4 ? "f32 or i32" : "f64 or i64") + " for elements of " + rigel::name(texts.element);
  const std::vector<Field>& fields = texts.accumulator.fields;
  if (fields.size() == 1 || fields.size() > rigel::detail::most_text_fields)
    refuse("the accumulator has " + std::to_string(fields.size()) + (fields.size() == 1 ? " field" : " fields") +
           ", expected 2 to 4, or a type in their place");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!is_name(fields[i].name))
      refuse("field " + std::to_string(i + 1) + " of the accumulator is called '" + fields[i].name +
             "', expected at most 64 letters, digits and '_'");
    if (!fits(fields[i].type))
      refuse("field '" + fields[i].name + "' of the accumulator has type " + rigel::name(fields[i].type) + ", expected " +
             expected);
    for (std::size_t j = 0; j < i; ++j)
      if (fields[j].name == fields[i].name) refuse("two fields of the accumulator are called '" + fields[i].name + "'");
  }
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
  if (texts.result_type != Scalar::other && !fits(texts.result_type))
    refuse(std::string("the result type is ") + rigel::name(texts.result_type) + ", expected " + expected);
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

std::vector<std::string> Semiring::hyperparameters() const {
  std::vector<std::string> names;
  for (const Hyperparameter& one : program_->texts.hyperparameters) names.push_back(one.name);
  return names;
}

const std::string& Semiring::name() const { return program_->texts.name; }
Scalar Semiring::element() const { return program_->texts.element; }
Scalar Semiring::accumulator() const { return program_->info.accumulator; }
Scalar Semiring::result() const { return program_->info.result; }
SemiringId Semiring::id() const { return {program_->texts.name, program_.get()}; }

std::span<const Kernel<Contraction>> Semiring::kernels(Space space) const {
  if ((bit(space) & host_spaces) == 0)
    throw Error(Code::unsupported,
                "runtime::Semiring '" + name() + "': kernels from text run on the host, not on space " + rigel::name(space));
  if (!program_->is_compiled) program_->compile();
  return program_->kernels;
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

bool is_floating(Scalar type) {
  return type == Scalar::f16 || type == Scalar::bf16 || type == Scalar::f32 || type == Scalar::f64;
}

}  // namespace

void detail::set_semiring(Contraction& p, const Semiring& semiring) {
  require_elements(p.function, semiring, p.a);
  require_elements(p.function, semiring, p.b);
  if (p.program && is_floating(semiring.result()) && !is_floating(p.c.type) && p.c.type != Scalar::other)
    throw Error(Code::invalid_argument, std::string(p.function) + ": " + described(p.c) + " holds elements of type " +
                                            rigel::name(p.c.type) + ", expected f16, bf16, f32 or f64 for results of type " +
                                            rigel::name(semiring.result()) + ", those of the semiring '" + semiring.name() +
                                            "'");
  if (p.accumulate && semiring.accumulator() == Scalar::other)
    throw Error(Code::invalid_argument, "contract: accumulate is not defined for semiring '" + semiring.name() +
                                            "', whose accumulator has several fields that no value of C can be lifted into");
  require_batches(semiring.program_->owner(), semiring.values_, p.batch);
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
  SemiringInfo facts = program.info;
  facts.sample = &semiring.values_;
  Kernel<Contraction> kernel = semiring.kernels(rigel::detail::space_of<Kokkos::DefaultHostExecutionSpace>).front();
  rigel::detail::TextLoops loops = loops_for(semiring_owner, semiring.name(), program.texts.element, program.parsed.form);
  loops.roots = {loops.reference_root, loops.reference_root};
  Kernel<Contraction> reference =
      loops.reference({&facts, program.parsed.calls_functions}, code_of(program.work(loops), loops));
  kernel.info.facts = reference.info.facts = &facts;
  return engine::verify(kernel, seed, &reference);
}

Statistics statistics() { return {counters().compiled, counters().from_disk, counters().from_memory}; }

void release_kernels() {
  std::vector<Slot*> all;  // slots stay; whoever compiles into one is waited for without keeping others from theirs
  {
    const std::lock_guard lock(memory().mutex);
    for (const auto& [digest, slot] : memory().slots) all.push_back(slot.get());
  }
  for (Slot* const slot : all) {
    const std::lock_guard lock(slot->mutex);
    slot->code.reset();
  }
}

bool is_available(std::string* reason) {
  std::string why;
  const bool available = library(why) != nullptr;
  if (!available && reason) *reason = why;
  return available;
}

}  // namespace rigel::runtime

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel::runtime::Semiring: checked texts, and from them compiled loops (memory, then disk, then the compiler) and kernels.
#include "cache.hpp"
#include "debug.hpp"
#include "library.hpp"
#include "text.hpp"

#include <rigel/config.hpp>
#include <rigel/detail/text.hpp>

#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#if RIGEL_BACKEND_HOST
namespace rigel::backends::host {
std::optional<detail::TextLoops> text_loops(Scalar element, detail::TextForm form);
}
#endif
#if RIGEL_BACKEND_CUDA_SIMT
namespace rigel::backends::simt {
std::vector<Kernel<Contraction>> text_kernels(const detail::TextFacts& facts, const detail::TextCompiler& compile);
void compile_text_kernels(const Kernel<Contraction>& kernel, const Execution& execution);
}  // namespace rigel::backends::simt
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

[[noreturn]] void refuse(const std::string& message) {
  throw Error(Code::invalid_argument, "runtime::Semiring: " + message);
}

Scalar accumulator_of(Scalar element) { return element == Scalar::f16 || element == Scalar::bf16 ? Scalar::f32 : element; }

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

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
[[noreturn]] void refuse_compiled(const Texts& texts, const std::string& messages) {
  const auto first = messages.find(':'), second = messages.find(':', first + 1);
  const std::string message = messages.substr(second + 1, messages.find('\n') - second - 1);
  if (first == messages.npos || second == messages.npos)
    throw Error(Code::unsupported, "runtime::Semiring '" + texts.name + "': the text does not compile: " + messages);
  const std::string function = messages.substr(0, first);
  int line = 0;
  std::from_chars(messages.data() + first + 1, messages.data() + second, line);
  const std::pair<const char*, const std::string*> all[] = {{"multiply", &texts.multiply},
                                                            {"add", &texts.add},
                                                            {"identity", &texts.identity},
                                                            {"step", &texts.step},
                                                            {"result", &texts.result}};
  for (const auto& [name, text] : all)
    if (function == name) refuse_text(name, *text, line / columns_per_line, line % columns_per_line, message);
  throw Error(Code::unsupported, "runtime::Semiring '" + texts.name + "': the text does not compile: " + message);
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
  std::once_flag has_gpu_kernels;
  std::vector<Kernel<Contraction>> gpu_kernels;

  const RigelRuntime& runtime() const;
  std::string compiled(const RigelRuntime& runtime, const RigelSource& request) const;
  template <class Make, class Load>
  rigel::detail::TextCode code(const std::string& level, std::initializer_list<std::string> parts, const Make& make,
                               const Load& load) const;
  rigel::detail::TextCode code(const rigel::detail::TextLoops& loops) const;
  rigel::detail::TextCode code(std::size_t kernel, std::uint64_t layout, const rigel::detail::TextGpu& gpu) const;
  rigel::detail::TextFacts facts() const {
    return {&info, parsed.calls_functions,
            parsed.long_operations > 0 || parsed.multiply.is_large || parsed.add.is_large || parsed.step.is_large};
  }
  void compile();  // once
};

const RigelRuntime& Semiring::Program::runtime() const {
  std::string reason;
  const RigelRuntime* const runtime = library(reason);
  if (!runtime) throw Error(Code::unsupported, "runtime::Semiring '" + texts.name + "': " + reason);
  return *runtime;
}

// What the compiler makes of a source.
std::string Semiring::Program::compiled(const RigelRuntime& runtime, const RigelSource& request) const {
  RigelBytes bytes = {}, said = {};
  const int failed = runtime.compile(&request, &bytes, &said);
  const std::string messages = taken(runtime, said);
  if (failed) refuse_compiled(texts, messages);
  return taken(runtime, bytes);
}

// Code for a level that depends on `parts`, from memory, the disk, or `make`, which gives what the disk keeps.
template <class Make, class Load>
rigel::detail::TextCode Semiring::Program::code(const std::string& level, std::initializer_list<std::string> parts,
                                                const Make& make, const Load& load) const {
  std::string key = std::string(schema) + '\0' + level;
  for (const std::string& part : parts) key += '\0' + part;
  const Digest digest = digest_of(key);
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(memory().mutex);
    auto& own = memory().slots[digest];
    if (!own) own = std::make_unique<Slot>();
    slot = own.get();
  }
  const std::lock_guard lock(slot->mutex);
  const std::string what =
      texts.name + " (" + rigel::name(texts.element) + ", " + level + "), " + hexadecimal(digest).substr(0, 12) + ": ";
  if (slot->code) {
    ++counters().from_memory;
    say(what + "from memory");
    return *slot->code;
  }
  std::string messages;
  const auto from_disk = [&]() -> std::optional<rigel::detail::TextCode> {
    const Stopwatch time;
    const std::optional<std::string> object = read_cached(digest);
    if (!object) return std::nullopt;
    slot->code = load(*object, messages);
    if (!slot->code) return std::nullopt;
    ++counters().from_disk;
    say(what + "from disk in " + time.text());
    return slot->code;
  };
  static_cast<void>(cache_limit());  // throws before anything is compiled
  if (const auto found = from_disk()) return *found;
  const Stopwatch waiting;
  const CacheLock turn(digest);  // of processes that want it at one time, one compiles it
  const std::string waited = waiting.text();
  if (const auto found = from_disk()) return *found;
  const Stopwatch compiling;
  const std::string object = make();
  slot->code = load(object, messages);
  if (!slot->code)
    throw Error(Code::unsupported,
                "runtime::Semiring '" + texts.name + "': the compiled text cannot be loaded: " + messages);
  ++counters().compiled;
  say(what + "compiled in " + compiling.text() + ", " + std::to_string(object.size()) + " bytes" +
      (turn.is_held() ? ", after " + waited : std::string(", without the lock, after ") + waited));
  write_cached(digest, object);
  return *slot->code;
}

rigel::detail::TextCode Semiring::Program::code(const rigel::detail::TextLoops& loops) const {
  const RigelRuntime& library = runtime();
  const std::string source = source_of(parsed, accumulator, loops.lanes);
  const auto roots = names_of(loops);
  const char* const element = rigel::name(texts.element);
  const RigelSource request{source.data(), source.size(), element, loops.level, roots.data(), roots.size(), 0, 0};
  return code(
      loops.level, {library.build, element, loops.roots[0], normalised(source)}, [&] { return compiled(library, request); },
      [&](const std::string& object, std::string& messages) { return load(library, object, loops, messages); });
}

rigel::detail::TextCode Semiring::Program::code(std::size_t kernel, std::uint64_t layout,
                                                const rigel::detail::TextGpu& gpu) const {
  const RigelRuntime& library = runtime();
  const std::string source = source_of(parsed, accumulator, 0);
  const char* const element = rigel::name(texts.element);
  const RigelSource request{source.data(), source.size(), element, gpu.level, nullptr, 0, kernel, layout};
  return code(
      gpu.level, {library.build, element, gpu.platform, std::to_string(kernel), normalised(source)},
      [&] { return gpu.link(compiled(library, request)); },
      [&](const std::string& object, std::string& messages) {
        std::optional<rigel::detail::TextCode> loaded = gpu.load(object);
        if (!loaded) messages = "the CUDA driver refuses it";
        return loaded;
      });
}

void Semiring::Program::compile() {
  const std::lock_guard lock(mutex);
  if (is_compiled) return;
  std::optional<rigel::detail::TextLoops> loops;
#if RIGEL_BACKEND_HOST
  loops = backends::host::text_loops(texts.element, parsed.form);
#endif
  if (!loops)
    throw Error(Code::unsupported,
                "runtime::Semiring '" + texts.name + "': this build of Rigel has no loops for this processor");
  kernels = {loops->kernel(facts(), code(*loops))};
  is_compiled = true;
}

Semiring::Semiring(const Texts& texts) {
  auto program = std::make_shared<Program>();
  program->texts = texts;
  const Scalar of_element = accumulator_of(texts.element);
  if (of_element != Scalar::f32 && of_element != Scalar::f64 && of_element != Scalar::i32 && of_element != Scalar::i64)
    refuse(std::string("the element type is ") + rigel::name(texts.element) + ", expected f32, f64, i32, i64, f16 or bf16");
  if (texts.accumulator != Scalar::other && texts.accumulator != of_element)
    refuse(std::string("the accumulator type is ") + rigel::name(texts.accumulator) + ", expected " +
           rigel::name(of_element) + " for elements of " + rigel::name(texts.element));
  if (!is_name(texts.name)) refuse("the name '" + texts.name + "' is none, expected at most 64 letters, digits and '_'");
  if (texts.hyperparameters.size() > 16)
    refuse(std::to_string(texts.hyperparameters.size()) + " hyperparameters, expected at most 16");
  program->accumulator = of_element;
  for (std::size_t i = 0; i < texts.hyperparameters.size(); ++i) {
    const std::string& name = texts.hyperparameters[i].name;
    if (!is_name(name) || is_reserved_name(name))
      refuse("hyperparameter " + std::to_string(i + 1) + " is called '" + name +
             "', expected letters, digits and '_', and no name that has a meaning in texts");
    for (std::size_t j = 0; j < i; ++j)
      if (texts.hyperparameters[j].name == name) refuse("two hyperparameters are called '" + name + "'");
  }
  program->parsed = parse(texts, of_element);
  program->info = {.name = program->texts.name,
                   .type = program.get(),
                   .element = texts.element,
                   .operand = of_element,
                   .accumulator = of_element,
                   .result = of_element,
                   .commutative = texts.commutative,
                   .transcendental = program->parsed.calls_functions};
  program_ = std::move(program);
  for (const Hyperparameter& one : texts.hyperparameters) set(one.name, one.value);
}

namespace {

std::size_t index_of(const Texts& texts, std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < texts.hyperparameters.size(); ++i) {
    if (texts.hyperparameters[i].name == name) return i;
    names += (i ? ", " : "") + texts.hyperparameters[i].name;
  }
  refuse("'" + texts.name + "' has no hyperparameter '" + std::string(name) + "', expected " +
         (names.empty() ? "none, as it has none" : "one of " + names));
}

// Reads and writes a number of a type.
template <class T>
double read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}
template <class T>
bool write(std::byte* to, double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double limit = sizeof(T) == 4 ? 0x1p31 : 0x1p63;
    if (!(value >= -limit && value < limit && value == std::floor(value))) return false;
  }
  const T converted = static_cast<T>(value);
  std::memcpy(to, &converted, sizeof converted);
  return true;
}

}  // namespace

void Semiring::set(std::string_view name, double value) {
  std::byte* const to = values_ + index_of(program_->texts, name) * size_of(program_->accumulator);
  bool held = false;
  switch (program_->accumulator) {
    case Scalar::f64: held = write<double>(to, value); break;
    case Scalar::i32: held = write<std::int32_t>(to, value); break;
    case Scalar::i64: held = write<std::int64_t>(to, value); break;
    default: held = write<float>(to, value); break;
  }
  if (held) return;
  char digits[64];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  refuse("hyperparameter '" + std::string(name) + "' of '" + program_->texts.name + "' cannot be " +
         std::string(digits, end) + ", expected a whole number that " + rigel::name(program_->accumulator) + " holds");
}

double Semiring::get(std::string_view name) const {
  const std::byte* const from = values_ + index_of(program_->texts, name) * size_of(program_->accumulator);
  switch (program_->accumulator) {
    case Scalar::f64: return read<double>(from);
    case Scalar::i32: return read<std::int32_t>(from);
    case Scalar::i64: return read<std::int64_t>(from);
    default: return read<float>(from);
  }
}

std::vector<std::string> Semiring::hyperparameters() const {
  std::vector<std::string> names;
  for (const Hyperparameter& one : program_->texts.hyperparameters) names.push_back(one.name);
  return names;
}

const std::string& Semiring::name() const { return program_->texts.name; }
Scalar Semiring::element() const { return program_->texts.element; }
Scalar Semiring::accumulator() const { return program_->accumulator; }
SemiringId Semiring::id() const { return {program_->texts.name, program_.get()}; }

std::span<const Kernel<Contraction>> Semiring::kernels(Space space) const {
#if RIGEL_BACKEND_CUDA_SIMT
  if (space == Space::cuda) {
    std::call_once(program_->has_gpu_kernels, [&] {
      const Program* const program = program_.get();  // which outlives its kernels
      program_->gpu_kernels = backends::simt::text_kernels(
          program->facts(), [program](std::size_t kernel, std::uint64_t layout, const rigel::detail::TextGpu& gpu) {
            return program->code(kernel, layout, gpu);
          });
    });
    return program_->gpu_kernels;
  }
#endif
  if ((bit(space) & host_spaces) == 0)
    throw Error(Code::unsupported, "runtime::Semiring '" + name() +
                                       "': kernels from text run on the host and on CUDA, not on space " +
                                       rigel::name(space));
  if (!program_->is_compiled) program_->compile();
  return program_->kernels;
}

void Semiring::compile(const Execution& execution) const {
  [[maybe_unused]] const std::span<const Kernel<Contraction>> all = kernels(execution.space);
#if RIGEL_BACKEND_CUDA_SIMT
  if (execution.space == Space::cuda) backends::simt::compile_text_kernels(all.front(), execution);
#endif
}

void detail::require_elements(const Semiring& semiring, const Operand& operand) {
  if (operand.type != semiring.element())
    throw Error(Code::invalid_argument,
                std::string("contract: ") + operand.argument + (operand.label.empty() ? "" : " ('" + operand.label + "')") +
                    " holds elements of type " + rigel::name(operand.type) + ", expected " +
                    rigel::name(semiring.element()) + ", that of the semiring '" + semiring.name() + "'");
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

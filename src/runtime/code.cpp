// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "code.hpp"

#include "cache.hpp"
#include "debug.hpp"
#include "library.hpp"
#include "text.hpp"

#include <rigel/config.hpp>

#include <atomic>
#include <charconv>
#include <future>
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
constexpr const char* schema = "rigel text 2";

struct Counters {
  std::atomic<std::uint64_t> compiled = 0, from_disk = 0, from_memory = 0;
};
Counters& counters() {
  static Counters all;
  return all;
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
std::array<const char*, 4> names_of(const rigel::detail::TextRoots& loops) {
  return {loops.roots[0], loops.roots[1], "rigel_text_support", "rigel_text_layout"};
}

std::optional<rigel::detail::TextCode> load(const RigelRuntime& runtime, const std::string& object,
                                            const rigel::detail::TextRoots& loops, std::string& messages) {
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

const RigelRuntime& library_for(const std::string& begin) {
  std::string reason;
  const RigelRuntime* const runtime = library(reason);
  if (!runtime) throw Error(Code::unsupported, begin + reason);
  return *runtime;
}

// What the compiler makes of a source.
std::string compiled(const RigelRuntime& runtime, const Work& work, const RigelSource& request) {
  RigelBytes bytes = {}, said = {};
  const int failed = runtime.compile(&request, &bytes, &said);
  const std::string messages = taken(runtime, said);
  if (failed) refuse_compiled(work, messages);
  return taken(runtime, bytes);
}

// Code for a level and for `target`, which says all else that it depends on, from memory, the disk, or make(runtime, steps), which gives
// what the disk keeps and `load` takes.
template <class Make, class Load>
rigel::detail::TextCode code_of(const Work& work, const std::string& level, const std::string& target, const Make& make,
                                const Load& load) {
  const std::string begin = std::string(work.owner) + " '" + work.name + "': ";
  const RigelRuntime& runtime = library_for(begin);
  std::string key = schema;
  for (const std::string& part : {level, std::string(runtime.build), std::string(rigel::name(work.element)), target,
                                  normalised(work.source), normalised(work.store)})
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
  const std::string what =
      work.name + " (" + rigel::name(work.element) + ", " + level + "), " + hexadecimal(digest).substr(0, 12) + ": ";
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
    slot->code = load(runtime, *object, messages);
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
  Steps steps;
  const std::string object = make(runtime, steps);
  slot->code = load(runtime, object, messages);
  steps.end("loading");
  if (!slot->code) throw Error(Code::unsupported, begin + "the compiled text cannot be loaded: " + messages);
  ++counters().compiled;
  say(what + "compiled in " + compiling.text() + " (" + steps.text() + "), " + std::to_string(object.size()) + " bytes" +
      (turn.is_held() ? ", after " + waited : std::string(", without the lock, after ") + waited));
  write_cached(digest, object);
  return *slot->code;
}

}  // namespace

rigel::detail::TextCode code_of(const Work& work, const rigel::detail::TextRoots& loops) {
  return code_of(
      work, loops.level, loops.roots[0],
      [&](const RigelRuntime& runtime, Steps& steps) {
        const auto roots = names_of(loops);
        const std::string element = std::string(loops.family) + rigel::name(work.element);
        std::string object = compiled(runtime, work,
                                      {work.source.data(), work.source.size(), element.c_str(), loops.level, roots.data(),
                                       roots.size(), 0, 0, nullptr, 0});
        steps.end("LLVM");
        return object;
      },
      [&](const RigelRuntime& runtime, const std::string& object, std::string& messages) {
        return load(runtime, object, loops, messages);
      });
}

rigel::detail::TextCode code_of(const Work& work, std::size_t kernel, std::uint64_t layout,
                                const rigel::detail::TextGpu& gpu) {
  return code_of(
      work, gpu.level, gpu.platform + '\0' + gpu.family + std::to_string(kernel),
      [&](const RigelRuntime& runtime, Steps& steps) {
        const std::string element = gpu.family + rigel::name(work.element);
        std::future<void> opening = gpu.open();
        const std::string ptx =
            compiled(runtime, work,
                     {work.source.data(), work.source.size(), element.c_str(), gpu.level, nullptr, 0, kernel, layout,
                      work.store.empty() ? nullptr : work.store.data(), work.store.size()});
        steps.end("LLVM");
        if (opening.valid()) opening.wait();
        std::string image = gpu.link(ptx);
        steps.end("driver");
        return image;
      },
      [&](const RigelRuntime&, const std::string& image, std::string& messages) {
        std::optional<rigel::detail::TextCode> loaded = gpu.load(image);
        if (!loaded) messages = "the CUDA driver refuses it";
        return loaded;
      });
}

void refuse_processor(const char* owner, const std::string& name) {
  throw Error(Code::unsupported,
              std::string(owner) + " '" + name + "': this build of Rigel has no loops for this processor");
}

void refuse_space(const char* owner, const std::string& name, const char* what, Space space) {
  throw Error(Code::unsupported, std::string(owner) + " '" + name + "': " + what +
                                     " from text run on the host and on CUDA, not on space " + rigel::name(space));
}

rigel::detail::TextLoops loops_for(const char* owner, const std::string& name, Scalar element,
                                   rigel::detail::TextForm form) {
  std::optional<rigel::detail::TextLoops> loops;
#if RIGEL_BACKEND_HOST
  loops = backends::host::text_loops(element, form);
#endif
  if (!loops) refuse_processor(owner, name);
  return *loops;
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

}  // namespace rigel::runtime

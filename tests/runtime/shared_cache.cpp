// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The disk cache among processes: what is removed from it, who compiles, and what is said about it.
#include "folder.hpp"
#include "texts.hpp"

#include <rigel/runtime_cache.hpp>
#include <src/runtime/cache.hpp>

#include <csignal>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using rigel::runtime::Semiring, rigel::runtime::statistics, rigel::runtime::CacheLock;
using std::chrono::milliseconds;

namespace {

namespace fs = std::filesystem;

rigel::runtime::Digest key_of(std::uint8_t byte) {
  rigel::runtime::Digest key = {};
  key.fill(byte);
  return key;
}

// Makes a file as old as an hour times `hours`.
void age(const fs::path& path, int hours) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
}

std::string name_of(std::uint8_t byte) { return rigel::runtime::hexadecimal(key_of(byte)); }

// Sets a variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// What a process writes to stderr while `run` runs.
template <class Run>
std::string stderr_of(const Run& run) {
  const fs::path path = fs::temp_directory_path() / ("rigel-test-" + std::to_string(getpid()) + "-stderr");
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO), file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  dup2(file, STDERR_FILENO);
  run();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  close(file);
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  fs::remove(path);
  return text;
}

void compile(const Semiring& semiring) { semiring.compile<texts::Host>(); }

}  // namespace

TEST_CASE("text cache: the file that was used longest ago is removed first") {
  const texts::CacheFolder folder("oldest");
  const Variable size("RIGEL_CACHE_SIZE", "4K");
  const std::string object(1000, 'x');  // files of 1040 bytes: three have room
  for (const std::uint8_t byte : {1, 2, 3}) {
    rigel::runtime::write_cached(key_of(byte), object);
    age(folder.path() / name_of(byte), 10 - byte);
  }
  CHECK(rigel::runtime::read_cached(key_of(1)) == object);  // used now
  rigel::runtime::write_cached(key_of(4), object);
  CHECK(rigel::runtime::read_cached(key_of(1)) == object);
  CHECK(rigel::runtime::read_cached(key_of(2)) == std::nullopt);
  CHECK(rigel::runtime::read_cached(key_of(3)) == object);
  CHECK(rigel::runtime::read_cached(key_of(4)) == object);
  const auto state = rigel::runtime::cache_state();
  CHECK(state.folder == folder.path());
  CHECK(state.unused.empty());
  CHECK(state.entries == 3);
  CHECK(state.bytes == 3 * 1040);
  CHECK(state.limit == 4096);
  // One that has no room by itself removes nothing.
  rigel::runtime::write_cached(key_of(5), std::string(4096, 'x'));
  CHECK(rigel::runtime::cache_state().entries == 3);
}

TEST_CASE("text cache: what processes left is removed, other files stay") {
  const texts::CacheFolder folder("left");
  rigel::runtime::write_cached(key_of(1), "object");
  const auto make = [&](const std::string& name, int hours) {
    std::ofstream(folder.path() / name) << "bytes";
    age(folder.path() / name, hours);
  };
  make(name_of(2) + ".123", 2);
  make(name_of(2) + ".lock", 2);
  make(name_of(3) + ".123", 0);
  make(name_of(3) + ".lock", 0);
  make("notes", 100);
  make(name_of(4) + ".notes", 100);
  rigel::runtime::write_cached(key_of(5), "object");
  CHECK(!fs::exists(folder.path() / (name_of(2) + ".123")));
  CHECK(!fs::exists(folder.path() / (name_of(2) + ".lock")));
  CHECK(fs::exists(folder.path() / (name_of(3) + ".123")));
  CHECK(fs::exists(folder.path() / (name_of(3) + ".lock")));
  CHECK(rigel::runtime::clear_cache() == 2);
  CHECK(rigel::runtime::cache_state().entries == 0);
  CHECK(folder.files().size() == 2);  // those of nobody's
  CHECK(fs::exists(folder.path() / "notes"));
}

TEST_CASE("text cache: RIGEL_CACHE_SIZE is bytes with a suffix, or refused before anything is compiled") {
  const texts::CacheFolder folder("size");
  const auto limit = [](const char* text) {
    const Variable size("RIGEL_CACHE_SIZE", text);
    return rigel::runtime::cache_limit();
  };
  CHECK(rigel::runtime::cache_limit() == 268435456);
  CHECK(limit("") == 268435456);
  CHECK(limit("0") == 0);
  CHECK(limit("1000") == 1000);
  CHECK(limit("3K") == 3072);
  CHECK(limit("5M") == 5242880);
  CHECK(limit("2G") == 2147483648);
  for (const char* const bad : {"-1", "M", "1T", "1.5M", "1 M", "1MB", "18014398509481984K", "99999999999999999999"}) {
    const support::Caught refusal = support::caught([&] { limit(bad); });
    CHECK(refusal.code == rigel::Code::invalid_argument);
    CHECK(refusal.message == std::string("RIGEL_CACHE_SIZE is '") + bad +
                                 "', expected a number of bytes, or one of K, M or G bytes such as 256M");
  }
  if (!texts::can_compile()) return;
  rigel::runtime::release_kernels();
  const Variable size("RIGEL_CACHE_SIZE", "many");
  const auto before = statistics().compiled;
  CHECK_THROWS_AS(compile(Semiring({.multiply = "a * b * 7.5", .add = "x + y"})), rigel::Error);
  CHECK(statistics().compiled == before);
}

TEST_CASE("text cache: of sixteen processes that want one kernel, one compiles it") {
  if (!texts::can_compile()) return;
  const texts::CacheFolder folder("sixteen");
  rigel::runtime::release_kernels();
  const Semiring semiring({.name = "sixteen", .multiply = "abs(a - b) * 3.25", .add = "max(x, y)"});
  constexpr int count = 16;
  int start[2] = {};
  REQUIRE(pipe(start) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      close(start[1]);
      char byte = 0;
      while (read(start[0], &byte, 1) > 0) {}  // until the parent has started all
      const auto before = statistics();
      int status = 100;
      try {
        compile(semiring);
        const auto after = statistics();
        status = static_cast<int>(10 * (after.compiled - before.compiled) + (after.from_disk - before.from_disk));
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
      _exit(status);
    }
    REQUIRE(child > 0);
    children.push_back(child);
  }
  close(start[0]);
  close(start[1]);
  int compiled = 0, from_disk = 0;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    compiled += WEXITSTATUS(status) == 10;
    from_disk += WEXITSTATUS(status) == 1;
  }
  CHECK(compiled == 1);
  CHECK(from_disk == count - 1);
  CHECK(folder.files().size() == 1);  // no lock is left
}

TEST_CASE("text cache: a lock is one process's, until it ends or its time is up") {
  const texts::CacheFolder folder("lock");
  const fs::path file = folder.path() / (name_of(1) + ".lock");
  {
    const CacheLock first(key_of(1));
    CHECK(first.is_held());
    CHECK(fs::exists(file));
    CHECK(!CacheLock(key_of(1), milliseconds(1)).is_held());  // waits for a millisecond
    CHECK(CacheLock(key_of(2)).is_held());
    age(file, 1);
    CHECK(!CacheLock(key_of(1)).is_held());  // its holder has had it for too long
    CHECK(fs::exists(file));
  }
  CHECK(!fs::exists(file));
  // A holder that ends without a word.
  int ready[2] = {};
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const CacheLock lock(key_of(1));
    const char byte = lock.is_held() ? 1 : 0;
    if (write(ready[1], &byte, 1) == 1) pause();
    _exit(0);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  CHECK(byte == 1);
  CHECK(!CacheLock(key_of(1), milliseconds(1)).is_held());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(fs::exists(file));
  CHECK(CacheLock(key_of(1)).is_held());
  CHECK(!fs::exists(file));
  // Where there is no folder there is no lock, and nobody waits.
  setenv("RIGEL_CACHE", "off", 1);
  CHECK(!CacheLock(key_of(1)).is_held());
}

TEST_CASE("text cache: a kernel is compiled although its lock is held for too long") {
  if (!texts::can_compile()) return;
  const texts::CacheFolder folder("hung");
  rigel::runtime::release_kernels();
  const Semiring semiring({.multiply = "a * b * 8.5", .add = "x + y"});
  compile(semiring);
  const fs::path entry = folder.files().at(0), file = entry.string() + ".lock";
  fs::remove(entry);
  const int held = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(flock(held, LOCK_EX) == 0);
  age(file, 1);
  rigel::runtime::release_kernels();
  const auto before = statistics().compiled;
  compile(Semiring({.multiply = "a * b * 8.5", .add = "x + y"}));
  CHECK(statistics().compiled == before + 1);
  CHECK(fs::exists(entry));
  close(held);
}

TEST_CASE("text cache: RIGEL_DEBUG=runtime says what became of a text, and nothing else does") {
  if (!texts::can_compile()) return;
  const texts::CacheFolder folder("debug");
  rigel::runtime::release_kernels();
  const auto make = [] { compile(Semiring({.name = "loud", .multiply = "a * b * 9.5", .add = "x + y"})); };
  {
    const Variable debug("RIGEL_DEBUG", "other,runtime");
    const std::string first = stderr_of(make), second = stderr_of(make);
    CHECK(first.find("rigel runtime: loud (f32, ") == 0);
    CHECK(first.find(": compiled in ") != first.npos);
    CHECK(first.find(" (LLVM ") != first.npos);
    CHECK(first.find(", loading ") != first.npos);
    CHECK(first.find(" ms") != first.npos);
    CHECK(second.find(": from memory\n") != second.npos);
    rigel::runtime::release_kernels();
    const std::string third = stderr_of(make);
    CHECK(third.find(": from disk in ") != third.npos);
  }
  const Variable debug("RIGEL_DEBUG", "runtimes");
  rigel::runtime::release_kernels();
  CHECK(stderr_of(make).empty());
}

TEST_CASE("text cache: its state names the folder, and why it is not used") {
  const texts::CacheFolder folder("state");
  auto state = rigel::runtime::cache_state();
  CHECK(state.folder == folder.path());
  CHECK(state.unused.empty());  // it will be made
  CHECK(state.entries == 0);
  CHECK(rigel::runtime::clear_cache() == 0);
  fs::create_directory(folder.path());
  chmod(folder.path().c_str(), 0777);
  state = rigel::runtime::cache_state();
  CHECK(state.unused == "others than this user can write it");
  chmod(folder.path().c_str(), 0700);
  setenv("RIGEL_CACHE", "off", 1);
  state = rigel::runtime::cache_state();
  CHECK(state.folder.empty());
  CHECK(state.unused == "RIGEL_CACHE is off");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// librigel_runtime.so: where it is looked for, and what compiling asks of the thread that calls.
#include "texts.hpp"

#include <src/runtime/compiler/interface.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

// librigel_runtime.so next to this program; empty if there is none.
fs::path built_library() {
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "librigel_runtime.so";
  return fs::exists(path) ? path : fs::path();
}

// A library that is none of Rigel's.
fs::path foreign_library() {
  Dl_info info = {};
  void* const math = dlopen("libm.so.6", RTLD_NOW);
  return math && dladdr(dlsym(math, "cbrt"), &info) ? fs::canonical(info.dli_fname) : fs::path();
}

// A folder with a copy of this program in bin, and an empty folder `elsewhere` that has a foreign librigel_runtime.so.
class Copy {
 public:
  Copy() : path_(fs::temp_directory_path() / ("rigel-test-" + std::to_string(getpid()) + "-library")) {
    fs::remove_all(path_);
    for (const char* folder : {"bin", "lib", "elsewhere"}) fs::create_directories(path_ / folder);
    fs::copy_file("/proc/self/exe", path_ / "bin" / "program");
    const fs::path openmp = fs::read_symlink("/proc/self/exe").parent_path() / "libomp.so.5";
    if (fs::exists(openmp)) fs::copy_file(openmp, path_ / "bin" / "libomp.so.5");
    fs::copy_file(foreign_library(), path_ / "elsewhere" / "librigel_runtime.so");
  }
  ~Copy() { fs::remove_all(path_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  const fs::path& path() const { return path_; }

  // Whether the copy finds its library, when it is started by a name in a folder, with variables of the environment.
  bool finds(const std::string& folder, const std::string& name,
             const std::vector<std::pair<std::string, std::string>>& variables = {}) const {
    const pid_t child = fork();
    if (child == 0) {
      std::string all = name, test = "--test-case=text: a build with librigel_runtime.so finds it";
      char* const arguments[] = {all.data(), test.data(), nullptr};
      setenv("RIGEL_TEST_RUNTIME", "1", 1);
      for (const auto& [variable, value] : variables) setenv(variable.c_str(), value.c_str(), 1);
      dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
      dup2(STDOUT_FILENO, STDERR_FILENO);
      if (chdir((path_ / folder).c_str()) == 0) execvp(arguments[0], arguments);
      _exit(2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("text: a build with librigel_runtime.so finds it") {
  if (const char* const folder = std::getenv("RIGEL_TEST_FOLDER")) fs::current_path(folder);
  std::string reason;
  if (std::getenv("RIGEL_TEST_RUNTIME")) CHECK_MESSAGE(rigel::runtime::is_available(&reason), reason);
}

TEST_CASE("text: librigel_runtime.so is found next to the program however that was started, never in the current folder") {
  if (built_library().empty() || foreign_library().empty()) return support::skip("librigel_runtime.so is not built");
  const Copy copy;
  const fs::path own = copy.path() / "bin" / "librigel_runtime.so";
  fs::create_symlink(built_library(), own);
  const std::pair<std::string, std::string> elsewhere = {"RIGEL_TEST_FOLDER", (copy.path() / "elsewhere").string()};
  CHECK(copy.finds("bin", "./program"));
  CHECK(copy.finds("bin", "./program", {elsewhere}));
  CHECK(copy.finds("elsewhere", "program", {{"PATH", (copy.path() / "bin").string()}}));
  CHECK(copy.finds("elsewhere", "../bin/program"));
  // One of another build ends the search as little as one that is missing.
  fs::remove(own);
  fs::create_symlink(built_library(), copy.path() / "lib" / "librigel_runtime.so");
  CHECK(copy.finds("bin", "./program"));
  fs::copy_file(foreign_library(), own);
  CHECK(copy.finds("bin", "./program"));
}

TEST_CASE("text: a library of other sources is refused, and each place is named") {
  if (built_library().empty()) return support::skip("librigel_runtime.so is not built");
  void* const library = dlopen(built_library().c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto get = reinterpret_cast<const RigelRuntime* (*)()>(dlsym(library, "rigel_runtime"));
  REQUIRE(static_cast<bool>(get));
  const std::string build = get()->build;
  const auto at = build.find(", sources ");
  REQUIRE(at != build.npos);
  CHECK(build.find(',', at + 2) == at + 10 + 64);
  const auto contents = build.find(", contents ");
  REQUIRE(contents != build.npos);
  CHECK(build.size() == contents + 11 + 40);  // SHA-1
  // The library with one digit of that digest changed.
  std::ifstream file(built_library(), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string digest = build.substr(at + 10, 64);
  const auto place = bytes.find(digest);
  REQUIRE(place != bytes.npos);
  bytes[place] = bytes[place] == '0' ? '1' : '0';
  const Copy copy;
  if (copy.finds("bin", "./program")) return support::skip("an installed librigel_runtime.so is found");
  std::ofstream(copy.path() / "bin" / "librigel_runtime.so", std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  CHECK_FALSE(copy.finds("bin", "./program"));
}

TEST_CASE("text: the compiler prints nothing, and gives back what it says") {
  if (built_library().empty()) return support::skip("librigel_runtime.so is not built");
  const auto get =
      reinterpret_cast<const RigelRuntime* (*)()>(dlsym(dlopen(built_library().c_str(), RTLD_NOW), "rigel_runtime"));
  REQUIRE(static_cast<bool>(get));
  const RigelRuntime& runtime = *get();
  const std::string text = "int f() { return one; }\nint g() { return two; }\n";
  const char* const root = "f";
  const RigelSource source{text.data(), text.size(), "f32", "v3", &root, 1, 0, 0, nullptr, 0};
  RigelBytes object = {}, messages = {};
  std::FILE* const printed = std::tmpfile();
  REQUIRE(printed != nullptr);
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(printed), STDERR_FILENO);
  const int failed = runtime.compile(&source, &object, &messages);
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  CHECK(failed == 1);
  CHECK(lseek(fileno(printed), 0, SEEK_END) == 0);
  const std::string said(messages.data ? messages.data : "", messages.size);
  CHECK(said.find("text.cpp:1:use of undeclared identifier 'one'") == 0);
  CHECK(said.find("text.cpp:2:use of undeclared identifier 'two'") != said.npos);
  runtime.release(&object);
  runtime.release(&messages);
  std::fclose(printed);
}

TEST_CASE("text: a thread with little stack can compile") {
  if (!texts::can_compile()) return;
  std::string text = "auto d = a - b; for (int i = 0; i < 3; ++i) d = exp(d) * 0.375";
  for (int i = 0; i < 150; ++i) text += " + 0";  // operators inside each other
  rigel::runtime::Semiring semiring({.multiply = text + "; return d;", .add = "x + y"});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 << 10) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(
              &thread, &attributes,
              [](void* s) -> void* {
                static_cast<rigel::runtime::Semiring*>(s)->compile<texts::Host>();
                return nullptr;
              },
              &semiring) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  double d = -1;
  for (int i = 0; i < 3; ++i) d = std::exp(d) * 0.375;
  CHECK(std::abs(texts::product(semiring, 1.f, 2.f) - d) <= 0x1p-20);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The disk cache: what it gives back, and what it never loads. Each test has a folder of its own.
#include "folder.hpp"
#include "texts.hpp"

#include <fstream>
#include <string>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

using rigel::runtime::Semiring, rigel::runtime::statistics;
using Folder = texts::CacheFolder;

namespace {

namespace fs = std::filesystem;

// Kernels of other tests are neither read from the user's cache nor written to it.
[[maybe_unused]] const int off = setenv("RIGEL_CACHE", "off", 1);

struct Made {
  std::uint64_t compiled, from_disk;
  bool operator==(const Made&) const = default;
};

// Makes the kernel of a·b·factor as a new process would, checks what it computes, and says where it came from.
Made make(const char* factor) {
  rigel::runtime::release_kernels();
  const auto before = statistics();
  const Semiring s({.multiply = std::string("a * b * ") + factor, .add = "x + y"});
  CHECK(texts::product(s, 2.f, 3.f) == 6 * std::stof(factor));
  const auto after = statistics();
  return {after.compiled - before.compiled, after.from_disk - before.from_disk};
}

constexpr Made compiled{1, 0}, from_disk{0, 1};

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

TEST_CASE("text cache: a kernel is written once, as a file that only the user can write, and read again") {
  if (!texts::can_compile()) return;
  const Folder folder("again");
  CHECK(make("1.5") == compiled);
  REQUIRE(folder.files().size() == 1);
  struct stat s = {};
  REQUIRE(stat(folder.files()[0].c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  REQUIRE(stat(folder.path().c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0700);
  CHECK(make("1.5") == from_disk);
  CHECK(make("2.5") == compiled);
  CHECK(folder.files().size() == 2);
  CHECK(make("1.5") == from_disk);
}

TEST_CASE("text cache: truncated, changed, foreign and empty files are compiled again, and replaced") {
  if (!texts::can_compile()) return;
  const Folder folder("tampered");
  CHECK(make("1.5") == compiled);
  const fs::path file = folder.files().at(0);
  const std::string good = contents(file);
  REQUIRE(good.size() > 1000);
  const auto flipped = [&](std::size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  for (const std::string& bad :
       {std::string(), good.substr(0, 7), good.substr(0, 40), good.substr(0, good.size() - 1), good + '\0', flipped(0),
        flipped(8), flipped(39), flipped(40), flipped(good.size() / 2), flipped(good.size() - 1),
        std::string("\x7f"
                    "ELF") +
            good.substr(4)}) {
    write(file, bad);
    CHECK(make("1.5") == compiled);
    CHECK(make("1.5") == from_disk);
  }
  // The file of another kernel under this one's name.
  CHECK(make("2.5") == compiled);
  for (const fs::path& other : folder.files())
    if (other != file) fs::copy_file(other, file, fs::copy_options::overwrite_existing);
  CHECK(make("1.5") == compiled);
  // No regular file.
  fs::remove(file);
  fs::create_directory(file);
  CHECK(make("1.5") == compiled);
  fs::remove_all(file);
  write(folder.path() / "elsewhere", good);
  fs::create_symlink(folder.path() / "elsewhere", file);
  CHECK(make("1.5") == compiled);
}

TEST_CASE("text cache: a folder or a file that others can write is not used") {
  if (!texts::can_compile()) return;
  const Folder folder("open");
  CHECK(make("1.5") == compiled);
  chmod(folder.path().c_str(), 0770);
  CHECK(make("1.5") == compiled);
  CHECK(make("2.5") == compiled);
  CHECK(folder.files().size() == 1);
  chmod(folder.path().c_str(), 0707);
  CHECK(make("1.5") == compiled);
  chmod(folder.path().c_str(), 0700);
  CHECK(make("1.5") == from_disk);
  chmod(folder.files()[0].c_str(), 0666);
  CHECK(make("1.5") == compiled);
}

TEST_CASE("text cache: folders on the way are made, may be open to a group, and may be links") {
  if (!texts::can_compile()) return;
  const Folder folder("base");
  unsetenv("RIGEL_CACHE_DIR");
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  const fs::path base = folder.path() / "caches";
  setenv("XDG_CACHE_HOME", base.c_str(), 1);
  fs::create_directories(base / "rigel");
  chmod((base / "rigel").c_str(), 0775);  // as another program may have made it
  CHECK(make("1.5") == compiled);
  CHECK(make("1.5") == from_disk);
  struct stat s = {};
  REQUIRE(stat((base / "rigel" / "texts").c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0700);
  if (before)
    setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
  // Parents of a folder of the user's choice.
  setenv("RIGEL_CACHE_DIR", (folder.path() / "some" / "where").c_str(), 1);
  CHECK(make("1.5") == compiled);
  CHECK(make("1.5") == from_disk);
  // A link to a folder.
  fs::create_directory_symlink(folder.path() / "some" / "where", folder.path() / "link");
  setenv("RIGEL_CACHE_DIR", (folder.path() / "link").c_str(), 1);
  CHECK(make("1.5") == from_disk);
  CHECK(make("2.5") == compiled);
  CHECK(make("2.5") == from_disk);
}

TEST_CASE("text cache: what cannot be written is no error, and RIGEL_CACHE=off neither reads nor writes") {
  if (!texts::can_compile()) return;
  const Folder folder("off");
  write(folder.path(), "a file in the folder's place");
  CHECK(make("1.5") == compiled);
  CHECK(make("1.5") == compiled);
  fs::remove(folder.path());
  CHECK(make("1.5") == compiled);
  setenv("RIGEL_CACHE", "off", 1);
  CHECK(make("1.5") == compiled);
  CHECK(make("2.5") == compiled);
  CHECK(folder.files().size() == 1);
}

TEST_CASE("text cache: what a long text says is in its object once, and its loops stay loops") {
  if (!texts::can_compile()) return;
  const auto size_of = [](const std::string& multiply, float expected) {
    const Folder folder("size");
    rigel::runtime::release_kernels();
    CHECK(texts::product(Semiring({.multiply = multiply, .add = "x + y"}), 3.f, 1.f) == expected);
    return fs::file_size(folder.files().at(0));
  };
  const auto repeated = [](const std::string& first, const std::string& part, int count) {
    std::string text = first;
    for (int i = 0; i < count; ++i) text += part;
    return text + "return d;";
  };
  const std::uintmax_t small = size_of("a * b", 3);
  // Bytes of machine code for each operation, and not for each of the twenty places that call it.
  const std::uintmax_t divisions = 600, bytes = 16;
  CHECK(size_of(repeated("auto d = a; ", "d=d/b;", 600), 3) <= small + divisions * bytes);
  const std::uintmax_t loops = 60, bytes_of_loop = 256;
  CHECK(size_of(repeated("auto d = a; ", "for(int i=0;i<32;++i)d=d/b+i*(b-1);", 60), 3) <= small + loops * bytes_of_loop);
}

TEST_CASE("text cache: a kernel outlives release_kernels() while a semiring has it") {
  if (!texts::can_compile()) return;
  const Semiring s({.multiply = "a * b * 5.5", .add = "x + y"});
  CHECK(texts::product(s, 1.f, 2.f) == 11);
  rigel::runtime::release_kernels();
  CHECK(texts::product(s, 2.f, 2.f) == 22);
}

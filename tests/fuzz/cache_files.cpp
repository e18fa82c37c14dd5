// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The disk cache, with files that anyone may have written. The first byte of an input says what the rest is: a file, an object whose file has one bit
// changed or is cut, a file's name, or RIGEL_CACHE_SIZE.
#include "fuzz.hpp"

#include <rigel/error.hpp>
#include <rigel/runtime_cache.hpp>
#include <src/runtime/cache.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using rigel::runtime::Digest, rigel::runtime::hexadecimal;

// A folder of this process's.
const fs::path& folder() {
  static const fs::path path = [] {
    std::string name = (fs::temp_directory_path() / "rigel-fuzz-XXXXXX").string();
    fuzz::require(mkdtemp(name.data()) != nullptr, "a folder can be made");
    setenv("RIGEL_CACHE_DIR", name.c_str(), 1);
    unsetenv("RIGEL_CACHE");
    unsetenv("RIGEL_CACHE_SIZE");
    unsetenv("RIGEL_DEBUG");
    static const struct Removal {
      fs::path path;
      ~Removal() { fs::remove_all(path); }
    } removal{name};
    return fs::path(name);
  }();
  return path;
}

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Digest some_key() {
  Digest key = {};
  key.fill(0x5a);
  return key;
}

// Bytes that no digest belongs to.
void read_foreign(std::string_view bytes) {
  const fs::path file = folder() / hexadecimal(some_key());
  write(file, bytes);
  fuzz::require(!rigel::runtime::object_in(bytes, some_key()), "no foreign bytes are an object");
  fuzz::require(!rigel::runtime::read_cached(some_key()), "no foreign file is loaded");
  fs::remove(file);
}

// A file as the cache writes it, which `damage` then changes.
void read_damaged(std::string_view damage, std::string_view object) {
  const fs::path file = folder() / hexadecimal(some_key());
  rigel::runtime::write_cached(some_key(), std::string(object));
  fuzz::require(rigel::runtime::read_cached(some_key()) == std::string(object), "what was written is read");
  std::string bytes = contents(file);
  const std::size_t place =
      (static_cast<unsigned char>(damage[0]) << 8 | static_cast<unsigned char>(damage[1])) % bytes.size();
  const int bit = damage[2] & 15;
  if (bit < 8)
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << bit));
  else
    bytes.resize(place);
  write(file, bytes);
  fuzz::require(!rigel::runtime::read_cached(some_key()), "no damaged file is loaded");
  fs::remove(file);
}

// Whether clear_cache() removes a file of this name: only one that the cache may have written.
void clear(std::string_view name) {
  if (name.empty() || name.size() > 200 || name == "." || name == ".." || name.find('/') != name.npos ||
      name.find('\0') != name.npos)
    return;
  const fs::path file = folder() / name;
  write(file, "bytes");
  const std::string_view digits = name.substr(0, 64), rest = name.size() > 64 ? name.substr(64) : std::string_view();
  const bool is_object = name.size() == 64 && digits.find_first_not_of("0123456789abcdef") == digits.npos;
  const bool is_other = name.size() > 64 && digits.find_first_not_of("0123456789abcdef") == digits.npos &&
                        (rest == ".lock" || (rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == rest.npos));
  fuzz::require(rigel::runtime::cache_state().entries == (is_object ? 1 : 0), "objects are counted");
  fuzz::require(rigel::runtime::clear_cache() == (is_object ? 1 : 0), "objects are removed");
  fuzz::require(fs::exists(file) == !(is_object || is_other), "files of others stay");
  fs::remove(file);
}

void set_limit(const std::string& text) {
  setenv("RIGEL_CACHE_SIZE", text.c_str(), 1);
  try {
    const std::uint64_t limit = rigel::runtime::cache_limit();
    fuzz::require(rigel::runtime::cache_state().limit == limit, "the limit is shown");
    rigel::runtime::write_cached(some_key(), "object");
    const fs::path file = folder() / hexadecimal(some_key());
    fuzz::require(fs::exists(file) == (limit >= 46), "a file is written if there is room");
    fs::remove(file);
  } catch (const rigel::Error& e) {
    fuzz::require(e.code() == rigel::Code::invalid_argument, "a limit that is none is an invalid argument");
  }
  unsetenv("RIGEL_CACHE_SIZE");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  folder();
  if (size < 5) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: read_foreign(rest); break;
    case 1: read_damaged(rest.substr(0, 3), rest.substr(3)); break;
    case 2: clear(rest); break;
    default: set_limit(std::string(rest.substr(0, rest.find('\0')))); break;
  }
  return 0;
}

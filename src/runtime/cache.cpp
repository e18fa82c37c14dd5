// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rigel::runtime {
namespace {

// A file is these bytes, the digest of the key and the object, and the object.
constexpr std::string_view magic = "RIGELRT1";
constexpr std::size_t head_bytes = magic.size() + sizeof(Digest);
constexpr off_t most_bytes = off_t{64} << 20;

// Only the user writes there: code that this program will run comes from it.
bool is_own(const struct stat& s) { return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

// An open file or folder.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

// The folder's path; empty if there is none.
std::string path_of_folder() {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value ? value : "";
  };
  if (variable("RIGEL_CACHE") == "off") return {};
  if (std::string path = variable("RIGEL_CACHE_DIR"); !path.empty()) return path;
  std::string base = variable("XDG_CACHE_HOME");
  if (base.empty() || base[0] != '/') {
    base = variable("HOME");
    if (base.empty()) return {};
    base += "/.cache";
  }
  return base + "/rigel/texts";
}

// The folder, made with those that it is in if `make`; nothing if there is none that may be used. What is read and written in it goes by
// the open folder, as a path may come to mean another.
File folder(bool make) {
  const std::string path = path_of_folder();
  if (path.empty()) return File(-1);
  for (std::size_t end = 0; make && end != path.npos;) {
    end = path.find('/', end + 1);
    mkdir(path.substr(0, end).c_str(), 0700);
  }
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat s = {};
  if (descriptor < 0 || (fstat(descriptor, &s) == 0 && is_own(s))) return File(descriptor);
  ::close(descriptor);
  return File(-1);
}

Digest digest_with(const Digest& key, std::string_view object) {
  std::string all(reinterpret_cast<const char*>(key.data()), key.size());
  all += object;
  return digest_of(all);
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::optional<std::string> read_cached(const Digest& key) {
  const File in = folder(false);
  if (!in) return std::nullopt;
  const File file(openat(in.get(), hexadecimal(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return std::nullopt;
  std::string bytes;
  struct stat s = {};
  if (fstat(file.get(), &s) == 0 && S_ISREG(s.st_mode) && is_own(s) && s.st_size > static_cast<off_t>(head_bytes) &&
      s.st_size <= most_bytes) {
    bytes.resize(static_cast<std::size_t>(s.st_size));
    std::size_t have = 0;
    while (have < bytes.size()) {
      const ssize_t got = read(file.get(), bytes.data() + have, bytes.size() - have);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
  }
  if (bytes.size() <= head_bytes || !bytes.starts_with(magic)) return std::nullopt;
  const std::string_view object = std::string_view(bytes).substr(head_bytes);
  const Digest expected = digest_with(key, object);
  if (std::memcmp(bytes.data() + magic.size(), expected.data(), expected.size()) != 0) return std::nullopt;
  return std::string(object);
}

void write_cached(const Digest& key, const std::string& object) {
  const File in = folder(true);
  std::uint64_t number = 0;
  if (!in || getentropy(&number, sizeof number) != 0) return;
  // Processes that share the folder may have the same number, so the name is random.
  const std::string name = hexadecimal(key), temporary = name + '.' + std::to_string(number);
  File file(openat(in.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return;
  const Digest digest = digest_with(key, object);
  const bool whole = write_all(file.get(), magic) &&
                     write_all(file.get(), {reinterpret_cast<const char*>(digest.data()), digest.size()}) &&
                     write_all(file.get(), object);
  if (!file.close() || !whole || renameat(in.get(), temporary.c_str(), in.get(), name.c_str()) != 0)
    unlinkat(in.get(), temporary.c_str(), 0);
}

}  // namespace rigel::runtime

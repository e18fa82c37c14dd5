// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

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

// The folder, made if `make`; empty if there is none that may be used.
std::string folder(bool make) {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value ? value : "";
  };
  if (variable("RIGEL_CACHE") == "off") return {};
  std::string path = variable("RIGEL_CACHE_DIR");
  if (path.empty()) {
    std::string base = variable("XDG_CACHE_HOME");
    if (base.empty() || base[0] != '/') {
      const std::string home = variable("HOME");
      if (home.empty()) return {};
      base = home + "/.cache";
    }
    if (make) mkdir(base.c_str(), 0700);
    path = base + "/rigel";
  }
  if (make) mkdir(path.c_str(), 0700);
  struct stat s = {};
  if (lstat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || !is_own(s)) return {};
  return path;
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
  const std::string path = folder(false);
  if (path.empty()) return std::nullopt;
  const int file = open((path + '/' + hexadecimal(key)).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  std::string bytes;
  struct stat s = {};
  if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && is_own(s) && s.st_size > static_cast<off_t>(head_bytes) &&
      s.st_size <= most_bytes) {
    bytes.resize(static_cast<std::size_t>(s.st_size));
    std::size_t have = 0;
    while (have < bytes.size()) {
      const ssize_t got = read(file, bytes.data() + have, bytes.size() - have);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
  }
  close(file);
  if (bytes.size() <= head_bytes || !bytes.starts_with(magic)) return std::nullopt;
  const std::string_view object = std::string_view(bytes).substr(head_bytes);
  const Digest expected = digest_with(key, object);
  if (std::memcmp(bytes.data() + magic.size(), expected.data(), expected.size()) != 0) return std::nullopt;
  return std::string(object);
}

void write_cached(const Digest& key, const std::string& object) {
  static std::atomic<unsigned> count = 0;
  const std::string path = folder(true);
  if (path.empty()) return;
  const std::string name = path + '/' + hexadecimal(key),
                    temporary = name + '.' + std::to_string(getpid()) + '.' + std::to_string(count++);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  const Digest digest = digest_with(key, object);
  const bool whole = write_all(file, magic) &&
                     write_all(file, {reinterpret_cast<const char*>(digest.data()), digest.size()}) &&
                     write_all(file, object);
  if (close(file) != 0 || !whole || std::rename(temporary.c_str(), name.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace rigel::runtime

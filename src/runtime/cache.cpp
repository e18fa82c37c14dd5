// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache.hpp"

#include "debug.hpp"

#include <rigel/error.hpp>
#include <rigel/runtime_cache.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rigel::runtime {
namespace {

// A file is these bytes, the digest of the key and the object, and the object.
constexpr std::string_view magic = "RIGELRT1";
constexpr std::size_t head_bytes = magic.size() + sizeof(Digest);
constexpr off_t most_bytes = off_t{64} << 20;
constexpr std::string_view lock_ending = ".lock";
// What is neither an object nor a lock that someone holds is left from a process that ended early, if it is older.
constexpr auto longest_write = std::chrono::hours(1);

using Time = std::chrono::system_clock::time_point;
Time time_of(const struct timespec& t) {
  return Time(
      std::chrono::duration_cast<Time::duration>(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec)));
}

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
  int release() { return std::exchange(descriptor_, -1); }
  explicit operator bool() const { return descriptor_ >= 0; }
  bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// The folder's path; empty if there is none.
std::string path_of_folder() {
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

// A file of the cache.
struct Entry {
  enum class Kind { object, lock, temporary } kind;
  std::string name;
  std::uint64_t bytes;
  Time used;
};

// What a file's name says that it is; nothing if the cache has none of that name.
std::optional<Entry::Kind> kind_of(std::string_view name) {
  constexpr std::size_t digits = 2 * std::tuple_size_v<Digest>;
  if (name.size() < digits || name.substr(0, digits).find_first_not_of("0123456789abcdef") != name.npos) return std::nullopt;
  const std::string_view rest = name.substr(digits);
  if (rest.empty()) return Entry::Kind::object;
  if (rest == lock_ending) return Entry::Kind::lock;
  if (rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == rest.npos) return Entry::Kind::temporary;
  return std::nullopt;
}

std::vector<Entry> entries_of(const File& in) {
  std::vector<Entry> all;
  File again(openat(in.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const listing = again ? fdopendir(again.get()) : nullptr;
  if (!listing) return all;
  again.release();  // closedir() closes it
  while (const dirent* const one = readdir(listing)) {
    const auto kind = kind_of(one->d_name);
    struct stat s = {};
    if (kind && fstatat(in.get(), one->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode))
      all.push_back({*kind, one->d_name, static_cast<std::uint64_t>(s.st_size), time_of(s.st_mtim)});
  }
  closedir(listing);
  return all;
}

// Removes what others have left, and the objects that were used longest ago while there are more bytes than the limit.
void evict(const File& in, std::uint64_t limit) {
  std::vector<Entry> all = entries_of(in);
  std::sort(all.begin(), all.end(), [](const Entry& x, const Entry& y) { return x.used < y.used; });
  const Time now = std::chrono::system_clock::now();
  std::uint64_t bytes = 0;
  for (const Entry& one : all)
    if (one.kind == Entry::Kind::object) bytes += one.bytes;
  for (const Entry& one : all) {
    const bool is_object = one.kind == Entry::Kind::object;
    if (is_object ? bytes <= limit : now - one.used < longest_write) continue;
    if (is_object) bytes -= one.bytes;
    if (unlinkat(in.get(), one.name.c_str(), 0) == 0) say("removed " + one.name + " from the cache");
  }
}

}  // namespace

std::uint64_t cache_limit() {
  const std::string text = variable("RIGEL_CACHE_SIZE");
  if (text.empty()) return std::uint64_t{256} << 20;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  const int shift = suffix.empty() ? 0 : suffix == "K" ? 10 : suffix == "M" ? 20 : suffix == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || number > std::numeric_limits<std::uint64_t>::max() >> shift)
    throw Error(Code::invalid_argument,
                "RIGEL_CACHE_SIZE is '" + text + "', expected a number of bytes, or one of K, M or G bytes such as 256M");
  return number << shift;
}

std::optional<std::string_view> object_in(std::string_view bytes, const Digest& key) {
  if (bytes.size() <= head_bytes || !bytes.starts_with(magic)) return std::nullopt;
  const std::string_view object = bytes.substr(head_bytes);
  const Digest expected = digest_with(key, object);
  if (std::memcmp(bytes.data() + magic.size(), expected.data(), expected.size()) != 0) return std::nullopt;
  return object;
}

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
  const std::optional<std::string_view> object = object_in(bytes, key);
  if (!object) return std::nullopt;
  futimens(file.get(), nullptr);  // its time of modification says when it was used
  return std::string(*object);
}

void write_cached(const Digest& key, const std::string& object) {
  const std::uint64_t limit = cache_limit();
  if (head_bytes + object.size() > limit) return;
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
  evict(in, limit);
}

// A lock is a file that someone has locked, and removes before unlocking it. Whoever then has its lock has one that no name leads to, and
// begins again. A process that ends has its locks no more, whatever it left.
CacheLock::CacheLock(const Digest& key, std::chrono::milliseconds limit) : name_(hexadecimal(key)) {
  name_ += lock_ending;
  File in = folder(true);
  if (!in) return;
  const auto first = std::chrono::steady_clock::now();
  for (;;) {
    File file(openat(in.get(), name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    struct stat s = {}, named = {};
    if (!file || fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || !is_own(s)) return;
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (fstatat(in.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 || named.st_ino != s.st_ino) continue;
      futimens(file.get(), nullptr);  // when the holder began
      folder_ = in.release();
      file_ = file.release();
      return;
    }
    if (std::chrono::steady_clock::now() - first >= limit || std::chrono::system_clock::now() - time_of(s.st_mtim) >= limit)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

CacheLock::~CacheLock() {
  if (!is_held()) return;
  unlinkat(folder_, name_.c_str(), 0);
  close(file_);
  close(folder_);
}

CacheState cache_state() {
  CacheState state;
  state.folder = path_of_folder();
  state.limit = cache_limit();
  const File in = folder(false);
  struct stat s = {};
  if (state.folder.empty())
    state.unused = variable("RIGEL_CACHE") == "off" ? "RIGEL_CACHE is off" : "neither HOME nor RIGEL_CACHE_DIR is set";
  else if (!in && stat(state.folder.c_str(), &s) == 0)
    state.unused = !S_ISDIR(s.st_mode) ? "it is no folder"
                   : is_own(s)         ? "it cannot be read"
                                       : "others than this user can write it";
  if (!in) return state;
  for (const Entry& one : entries_of(in))
    if (one.kind == Entry::Kind::object) {
      ++state.entries;
      state.bytes += one.bytes;
    }
  return state;
}

std::uint64_t clear_cache() {
  const File in = folder(false);
  std::uint64_t count = 0;
  if (!in) return count;
  for (const Entry& one : entries_of(in))
    if (unlinkat(in.get(), one.name.c_str(), 0) == 0 && one.kind == Entry::Kind::object) ++count;
  return count;
}

}  // namespace rigel::runtime

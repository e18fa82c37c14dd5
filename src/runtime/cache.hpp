// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The disk cache: one file for each object, named by the digest of all that the object depends on; those used longest ago are removed when
// there are too many bytes. RIGEL_CACHE=off switches it off; RIGEL_CACHE_DIR names its folder, which is else $XDG_CACHE_HOME/rigel/texts or
// ~/.cache/rigel/texts; RIGEL_CACHE_SIZE is its limit.
#pragma once

#include "digest.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rigel::runtime {

/// The most bytes that the files may have. Throws Error(invalid_argument) if RIGEL_CACHE_SIZE is no number of bytes.
std::uint64_t cache_limit();

/// The object of a key, which is used now; nothing if there is no file for it, or if the file is truncated, changed, of another key, or not
/// the user's own.
std::optional<std::string> read_cached(const Digest& key);

/// The object in the bytes of a file; nothing if they are not those of a whole file of this key.
std::optional<std::string_view> object_in(std::string_view bytes, const Digest& key);

/// Writes it, and removes files while there are more bytes than the limit. That this fails, or that the folder is one that others can write,
/// is no error.
void write_cached(const Digest& key, const std::string& object);

/// While it lives, others who want the lock of this key wait, in this process and in others. Waiting ends when the holder has had the lock
/// for `limit`, or this one has waited so long: then it does not hold the lock, nor if there is no folder to lock in.
class CacheLock {
 public:
  explicit CacheLock(const Digest& key, std::chrono::milliseconds limit = std::chrono::seconds(20));
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;
  bool is_held() const { return file_ >= 0; }

 private:
  std::string name_;
  int folder_ = -1, file_ = -1;
};

}  // namespace rigel::runtime

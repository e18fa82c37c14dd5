// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder of its own for the disk cache of a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace texts {

/// A new folder for the cache while an object lives.
class CacheFolder {
 public:
  explicit CacheFolder(const char* name)
      : path_(std::filesystem::temp_directory_path() / ("rigel-test-" + std::to_string(getpid()) + "-" + name)) {
    std::filesystem::remove_all(path_);
    setenv("RIGEL_CACHE_DIR", path_.c_str(), 1);
    unsetenv("RIGEL_CACHE");
  }
  ~CacheFolder() {
    setenv("RIGEL_CACHE", "off", 1);
    unsetenv("RIGEL_CACHE_DIR");
    std::error_code none;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, none);
    std::filesystem::remove_all(path_);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    if (std::filesystem::exists(path_))
      for (const auto& entry : std::filesystem::directory_iterator(path_)) all.push_back(entry.path());
    return all;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace texts

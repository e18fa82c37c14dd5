// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "library.hpp"

#include <rigel/config.hpp>

#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>

#include <dlfcn.h>
#ifdef __GLIBC__
#include <link.h>
#endif

namespace rigel::runtime {
namespace {

constexpr const char* file = "librigel_runtime.so";

// The folder of the object file that holds this function; empty if it is not known. The loader calls the program "", and dladdr() what the
// caller of the program wrote, which may be relative to another folder.
std::filesystem::path own_folder() {
#ifdef __GLIBC__
  Dl_info info = {};
  const link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&own_folder), &info, reinterpret_cast<void**>(const_cast<link_map**>(&map)),
              RTLD_DL_LINKMAP) == 0 ||
      !map)
    return {};
  std::filesystem::path path = map->l_name;
  std::error_code error;
  if (path.empty()) path = std::filesystem::read_symlink("/proc/self/exe", error);
  return path.is_absolute() ? path.parent_path() : std::filesystem::path();
#else
  return {};
#endif
}

// A library of this build; null, with the reason, if there is none at `path`.
const RigelRuntime* open_at(const std::string& path, std::string& reason) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const error = dlerror();
    reason = error ? error : path + ": no reason given";
    return nullptr;
  }
  const auto get = reinterpret_cast<const RigelRuntime* (*)()>(dlsym(handle, "rigel_runtime"));
  const RigelRuntime* const found = get ? get() : nullptr;
  const std::string expected = std::string("Rigel ") + RIGEL_VERSION_STRING + ", sources " + rigel_text_sources;
  if (found && found->interface == rigel_runtime_interface && std::string_view(found->build).starts_with(expected + ","))
    return found;
  reason = path + " is of another build: " +
           (!found                                        ? "it has no interface"
            : found->interface != rigel_runtime_interface ? "its interface is " + std::to_string(found->interface)
                                                          : std::string(found->build)) +
           ", expected " + expected + " with interface " + std::to_string(rigel_runtime_interface);
  dlclose(handle);
  return nullptr;
}

const RigelRuntime* open(std::string& reason) {
  const std::filesystem::path own = own_folder();
  std::string reasons;
  for (const std::string& path : {own.empty() ? std::string() : (own / file).string(),
                                  own.empty() ? std::string() : (own.parent_path() / "lib" / file).string(),
                                  std::string(RIGEL_RUNTIME_PLACE), std::string(file)}) {
    if (path.empty()) continue;
    std::string one;
    if (const RigelRuntime* const found = open_at(path, one)) return found;
    reasons += (reasons.empty() ? "" : "; ") + one;
  }
  reason = std::string(file) + ", which compiles texts, cannot be opened (" + reasons +
           "). Rigel builds it with -DRIGEL_RUNTIME=ON where LLVM 22 and Clang 22 are installed as libraries (Debian: "
           "llvm-22-dev, libclang-22-dev)";
  return nullptr;
}

}  // namespace

const RigelRuntime* library(std::string& reason) {
  static std::mutex mutex;
  static const RigelRuntime* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (!opened) opened = open(reason);  // a missing file may be there at the next call
  return opened;
}

}  // namespace rigel::runtime

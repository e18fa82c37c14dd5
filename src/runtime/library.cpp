// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "library.hpp"

#include <rigel/config.hpp>

#include <mutex>
#include <string_view>

#include <dlfcn.h>

namespace rigel::runtime {
namespace {

constexpr const char* file = "librigel_runtime.so";

// The folder of the object file that holds this function, which ends with '/'.
std::string own_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || !info.dli_fname) return {};
  const std::string_view path = info.dli_fname;
  const auto end = path.rfind('/');
  return end == path.npos ? std::string() : std::string(path.substr(0, end + 1));
}

const RigelRuntime* open(std::string& reason) {
  const std::string own = own_folder();
  void* handle = nullptr;
  for (const std::string& path :
       {own.empty() ? std::string() : own + file, own.empty() ? std::string() : own + "../lib/" + file,
        std::string(RIGEL_RUNTIME_PLACE), std::string(file)}) {
    if (!path.empty()) handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) break;
  }
  if (!handle) {
    const char* const error = dlerror();
    reason = std::string(file) + ", which compiles texts, cannot be opened (" + (error ? error : "no reason given") +
             "). Rigel builds it with -DRIGEL_RUNTIME=ON where LLVM 22 and Clang 22 are installed as libraries (Debian: "
             "llvm-22-dev, "
             "libclang-22-dev)";
    return nullptr;
  }
  const auto get = reinterpret_cast<const RigelRuntime* (*)()>(dlsym(handle, "rigel_runtime"));
  const RigelRuntime* const found = get ? get() : nullptr;
  const std::string version = std::string("Rigel ") + RIGEL_VERSION_STRING + ",";
  if (!found || found->interface != rigel_runtime_interface || !std::string_view(found->build).starts_with(version)) {
    reason = std::string(file) + " is of another build: " + (found ? found->build : "it has no interface") +
             ", expected Rigel " + RIGEL_VERSION_STRING + " with interface " + std::to_string(rigel_runtime_interface);
    return nullptr;
  }
  return found;
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

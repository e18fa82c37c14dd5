// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads the plugin named on the command line, lets it call Rigel and unloads it, twice; then finalizes Kokkos. Nothing may
// leak.
#include <Kokkos_Core.hpp>

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace {

int workspaces = 0;  // allocated and not yet released

void count(int change, const char* label) {
  if (std::strcmp(label, "rigel::workspace") == 0) workspaces += change;
}

// Whether the plugin was right, is unloaded, and has released its workspaces.
bool runs_and_goes(const char* path) {
  void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) {
    std::printf("%s\n", dlerror());
    return false;
  }
  const auto is_right = reinterpret_cast<bool (*)()>(dlsym(plugin, "plugin_is_right"));
  const bool right = is_right && is_right();
  std::printf("right: %d, workspaces: %d\n", right, workspaces);
  const bool pooled = workspaces > 0;
  const bool closed = dlclose(plugin) == 0;
  const bool gone = dlopen(path, RTLD_NOW | RTLD_NOLOAD) == nullptr;
  std::printf("unloaded: %d, workspaces: %d\n", gone, workspaces);
  return right && pooled && closed && gone && workspaces == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  Kokkos::initialize();
  namespace tools = Kokkos::Tools::Experimental;
  tools::set_allocate_data_callback(
      [](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t) { count(1, label); });
  tools::set_deallocate_data_callback(
      [](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t) { count(-1, label); });
  const bool good = runs_and_goes(argv[1]) && runs_and_goes(argv[1]);
  Kokkos::finalize();
  return !good;
}

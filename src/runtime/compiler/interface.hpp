// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface of librigel_runtime.so, which holds LLVM, Clang and the bitcode of the loops. librigel opens it when it
// compiles its first text. Nothing else passes between the two, so neither sees the other's symbols.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// The version of this interface.
inline constexpr unsigned rigel_runtime_interface = 3;

/// Bytes that the compiler allocated; release() frees them.
struct RigelBytes {
  char* data;
  std::size_t size;
};

/// A C++ source that defines the functions of the bitcode of one element type and level, and which of its loops are kept.
struct RigelSource {
  const char* text;
  std::size_t size;
  const char* element;  // "f32"; of a GPU's tensor cores "mma_bf16", "hopper_bf16"
  const char* level;    // "v3"; of a GPU the least architecture, "sm_80", "sm_90" or "sm_90a"
  const char* const* roots;
  std::size_t root_count;
  // Of a GPU, in place of roots: which kernel of the bitcode's table becomes `rigel_text_kernel`, and the table's layout; 0: any.
  std::size_t kernel;
  std::uint64_t layout;
  // Of a GPU: a second source, which defines what stores results; or null.
  const char* store;
  std::size_t store_size;
};

struct RigelRuntime {
  unsigned interface;
  const char*
      build;  // versions of Rigel, its sources, LLVM and the bitcode: what an object depends on in addition to its source
  /// Compiles a source into an object file; for a GPU into PTX. Returns 0; or 1 and the messages, of which those of Clang begin with "file:line:", as #line
  /// directives of the source say.
  int (*compile)(const RigelSource* source, RigelBytes* object, RigelBytes* messages);
  /// Loads an object file, and finds the addresses of `count` names. Returns 0, or 1 and a message.
  int (*load)(const char* object, std::size_t size, const char* const* names, std::size_t count, void** addresses,
              void** handle, RigelBytes* messages);
  void (*unload)(void* handle);
  void (*release)(RigelBytes* bytes);
};

/// The digest of the sources that both sides are compiled from, in hexadecimal digits: each side has its own.
extern __attribute__((visibility("hidden"))) const char rigel_text_sources[];

/// The only symbol that librigel_runtime.so exports.
const RigelRuntime* rigel_runtime();

}  // extern "C"

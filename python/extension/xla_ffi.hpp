// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What handlers of jax.ffi need of XLA's foreign function interface, by its documented C ABI: xla/ffi/api/c_api.h, versions 0.1 to 0.3, whose
// structs begin with their sizes and grow at their ends. XLA's own header is in jaxlib, which the wheel is built without.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rigel::python::xla {

/// The newest version that these declarations follow. A minor version adds members, a major one changes them.
inline constexpr int major_version = 0, minor_version = 3;

struct Error;    // XLA_FFI_Error
struct Context;  // XLA_FFI_ExecutionContext

struct Extension {
  std::size_t size;
  std::int32_t type;
  Extension* next;
};
inline constexpr std::int32_t metadata_extension = 1;

struct Version {
  std::size_t size;
  Extension* extensions;
  int major, minor;
};

/// What a handler says of itself when XLA registers it.
struct Metadata {
  std::size_t size;
  Version version;
  std::uint32_t traits;
  std::int64_t state_type;  // since 0.2
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct ErrorArgs {
  std::size_t size;
  Extension* extensions;
  const char* message;
  std::int32_t code;  // of absl::Status
};
struct StreamArgs {
  std::size_t size;
  Extension* extensions;
  Context* context;
  void* stream;  // out: a cudaStream_t
};
struct DeviceArgs {
  std::size_t size;
  Extension* extensions;
  Context* context;
  std::int32_t device;  // out
};

/// XLA's functions.
struct Api {
  std::size_t size;
  Extension* extensions;
  Version version;
  const void* internal;
  Error* (*create_error)(ErrorArgs*);
  void* others[3];  // XLA_FFI_Error_GetMessage, XLA_FFI_Error_Destroy, XLA_FFI_Handler_Register
  Error* (*get_stream)(StreamArgs*);
  void* more[12];  // from XLA_FFI_Type_Register to XLA_FFI_RunId_Get
  Error* (*get_device)(DeviceArgs*);
};

/// Types of elements that Rigel knows: values of XLA_FFI_DataType.
enum DataType : std::int32_t {
  pred = 1,
  s8 = 2,
  s16 = 3,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  u32 = 8,
  u64 = 9,
  f16 = 10,
  f32 = 11,
  f64 = 12,
  bf16 = 16
};

/// An array, contiguous in the order of its dimensions.
struct Buffer {
  std::size_t size;
  Extension* extensions;
  DataType type;
  void* data;
  std::int64_t rank;
  const std::int64_t* extents;
};

struct Span {
  const char* data;
  std::size_t size;
};
struct Scalar {
  DataType type;
  const void* value;
};

struct Buffers {  // XLA_FFI_Args and XLA_FFI_Rets
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  const std::int32_t* types;  // 1: a Buffer
  Buffer** list;
};

/// Attributes, sorted by name: a Scalar, a Span or, of a dictionary, Attributes.
enum AttributeType : std::int32_t { dictionary = 2, scalar = 3, string = 4 };
struct Attributes {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  const AttributeType* types;
  Span** names;
  const void** list;
};

/// What a handler is called with.
struct Frame {
  std::size_t size;
  Extension* extensions;
  const Api* api;
  Context* context;
  std::int32_t stage;
  Buffers operands, results;
  Attributes attributes;
};
inline constexpr std::int32_t execute_stage = 3;

/// NULL if the call succeeds.
using Handler = Error*(Frame*);

}  // namespace rigel::python::xla

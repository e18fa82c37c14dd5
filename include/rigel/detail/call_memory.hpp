// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of a call of several launches: of compiled drivers (src/operations), and of iterations (detail/iteration.hpp).
#pragma once

#include <rigel/detail/checks.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/pool.hpp>
#include <rigel/detail/workspace.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace rigel::detail {

/// The caller's workspace as an operand, of which a call uses so many bytes.
inline Operand workspace_operand(const void* data, std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  return {.data = const_cast<void*>(data),
          .type = Scalar::u8,
          .size = 1,
          .rows = 1,
          .columns = size,
          .row_stride = size,
          .column_stride = 1,
          .argument = "the workspace"};
}

/// Requires that the first bytes of a workspace overlap none of the operands. Null and one without memory stand for an operand that the
/// call lacks.
inline void require_workspace_apart(const Call& call, const void* workspace, std::size_t bytes,
                                    std::initializer_list<const Operand*> operands) {
  if (!workspace) return;
  const Operand memory = workspace_operand(workspace, bytes);
  for (const Operand* o : operands)
    if (o && o->data && o->size > 0) require_disjoint(call, memory, *o);
}

/// The memory of one call: the caller's, which must not overlap the operands, or for as long as this object lives the pool's. It is taken
/// before the first launch, and only where there can be one.
class CallMemory {
 public:
  CallMemory(const char* call, const Execution& execution, Workspace given, std::size_t bytes,
             std::initializer_list<const Operand*> operands)
      : data_(given.data) {
    require_launch(call, execution);
    if (!data_) {
      pooled_ = lease(call, execution, bytes);
      data_ = pooled_.data();
      return;
    }
    if (bytes > 0 && reinterpret_cast<std::uintptr_t>(data_) % workspace_alignment != 0)
      throw Error(Code::invalid_argument, std::string(call) + ": the workspace is not aligned to 256 bytes");
    if (given.bytes < bytes)
      throw Error(Code::invalid_argument, std::string(call) + ": the workspace has " + std::to_string(given.bytes) +
                                              " bytes, expected " + std::to_string(bytes));
    require_workspace_apart(Call{.function = call}, data_, bytes, operands);
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }

 private:
  PoolLease pooled_;
  void* data_;
};

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the structs of rigel.h to what the engine takes.
#pragma once

#include "handle.hpp"

#include <rigel/contraction.hpp>

namespace rigel::c {

/// The operand of a matrix, which must be well formed: extents and strides in range, a type, memory aligned to it. `argument` is its
/// name in messages.
Operand operand_of(const rigel_matrix* matrix, const char* argument);

/// Requires that an operand holds f32 or f64.
void require_f32_or_f64(const Operand& o);

/// The options that a Call has.
Call call_of(const rigel_handle& handle, const rigel_options& options, const char* function);

/// The type that a code stands for.
Scalar scalar_of(rigel_type type, const std::string& name);

/// The epilogue on memory of `space`.
epilogue::Program program_of(const rigel_program& given, Space space);

/// A problem of the caller's options, in the words of `function`, without operands. It accumulates nothing, and has no epilogue.
Contraction problem_of(const rigel_handle& handle, const rigel_options& options, const char* function);

/// Requires that an operand has the type of another one.
void require_same_type(const Operand& o, const Operand& as);

}  // namespace rigel::c

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of a call's operands. Each throws Error(invalid_argument) if its condition does not hold; the message names the
// function, the argument with its label and extents, and what was expected.
#pragma once

#include <rigel/call.hpp>

namespace rigel::detail {

/// "A 'x' 64x1024", with batches "A 'x' 3x64x1024", without a label "A 64x1024". With `verb` " is " it begins a sentence: "A 'x' is 64x1024".
std::string describe_argument(const Operand& o, const char* verb = " ");

/// Throws Error(invalid_argument): "contract: <message>".
[[noreturn]] void refuse(const Call& call, const std::string& message);

/// Requires that `actual`, the number of `what` ("rows") of an operand, is `expected`, which matches `match` or `part` ("the
/// rows of ") of it.
void require_extent(const Call& call, const Operand& o, const char* what, std::int64_t actual, std::int64_t expected,
                    const Operand& match, const char* part = "");

/// Requires that an operand has as many batches as `match`, or one.
void require_batches(const Call& call, const Operand& o, const Operand& match);

/// Requires that an operand has memory.
void require_data(const Call& call, const Operand& o);

/// Requires that no element of `written` overlaps one of `other`.
void require_disjoint(const Call& call, const Operand& written, const Operand& other);

/// Requires that the elements of an operand do not overlap each other.
void require_distinct(const Call& call, const Operand& written);

}  // namespace rigel::detail

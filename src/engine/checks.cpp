// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/detail/checks.hpp>

#include "overlap.hpp"

namespace rigel::detail {

std::string describe_argument(const Operand& o, const char* verb) {
  std::string text = o.argument;
  if (!o.label.empty()) text += " '" + o.label + '\'';
  text += verb;
  if (o.batches != 1) text += std::to_string(o.batches) + 'x';
  return text + std::to_string(o.rows) + 'x' + std::to_string(o.columns);
}

void refuse(const Call& call, const std::string& message) {
  throw Error(Code::invalid_argument, std::string(call.function) + ": " + message);
}

void require_extent(const Call& call, const Operand& o, const char* what, std::int64_t actual, std::int64_t expected,
                    const Operand& match, const char* part) {
  if (actual != expected)
    refuse(call, describe_argument(o, " is ") + ", expected " + std::to_string(expected) + ' ' + what + " to match " + part +
                     describe_argument(match));
}

void require_batches(const Call& call, const Operand& o, const Operand& match) {
  if (o.batches != match.batches && o.batches != 1)
    refuse(call, describe_argument(o, " is ") + ", expected " + std::to_string(match.batches) + " batches or one to match " +
                     describe_argument(match));
}

void require_data(const Call& call, const Operand& o) {
  if (!o.data) refuse(call, describe_argument(o) + " has no data");
}

void require_disjoint(const Call& call, const Operand& written, const Operand& other) {
  if (overlap(written, other))
    refuse(call, describe_argument(written) + " overlaps " + describe_argument(other) + ", expected distinct elements");
}

void require_distinct(const Call& call, const Operand& written) {
  if (overlaps_itself(written))
    refuse(call, describe_argument(written) + " overlaps itself (strides " + std::to_string(written.batch_stride) + ", " +
                     std::to_string(written.row_stride) + ", " + std::to_string(written.column_stride) +
                     "), expected distinct elements");
}

}  // namespace rigel::detail

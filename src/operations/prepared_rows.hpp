// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of X and Z that a metric has prepared, in a call's workspace: for cdist() and for reductions of distances.
#pragma once

#include "driver.hpp"

#include <rigel/detail/cdist.hpp>
#include <rigel/detail/rows.hpp>
#include <rigel/detail/workspace.hpp>

#include <string>
#include <utility>

namespace rigel::detail {

/// The library's own pass for rows of these types.
LaunchRows compiled_pass(Scalar element, Scalar row);

/// The pass over X and Z of one call, and where its rows are. It takes X and transposed Z out of a contraction, and puts prepared rows in.
class PreparedRows {
 public:
  /// Stands in for memory that is aligned as workspaces are. No operand lies there, so that checks find no overlap with it.
  static constexpr std::uintptr_t nominal_address = (std::uintptr_t{1} << 62) + workspace_alignment;

  PreparedRows(Product& p, const RowPass& pass) : pass_(pass) {
    Operand &x = pass_.from[0], &z = pass_.from[1];
    x = std::exchange(p.a, {});
    z = transpose(std::exchange(p.b, {}), "Z");
    if (pass_.transformed) require_extent(p, pass_.factor, "rows", pass_.factor.rows, x.columns, x, "the columns of ");
    is_self_ = x.data == z.data && x.batches == z.batches && x.rows == z.rows && x.batch_stride == z.batch_stride &&
               x.row_stride == z.row_stride && x.column_stride == z.column_stride;
    pass_.to[0] = prepared(x, p.element);
    pass_.to[1] = prepared(z, p.element);
    p.k = pass_.to[0].columns;
    if (!pass_.launch) pass_.launch = compiled_pass(x.type, p.element);
    place(p, nominal_address);
  }

  const Operand& x() const { return pass_.from[0]; }
  const Operand& z() const { return pass_.from[1]; }
  const Operand& factor() const { return pass_.factor; }

  /// All that can be wrong with X, Z and the factor themselves, given what the call writes.
  void check(const Product& p, const Operand& written) const {
    for (const Operand& o : pass_.from) {
      if (p.k > 0) require_data(p, o);
      require_disjoint(p, written, o);
    }
    if (pass_.transformed && pass_.factor.rows > 0 && pass_.factor.columns > 0) {
      require_data(p, pass_.factor);
      require_disjoint(p, written, pass_.factor);
    }
  }

  std::size_t bytes() const { return bytes_of(pass_.to[0]) + (is_self_ ? 0 : bytes_of(pass_.to[1])); }

  /// Makes prepared rows that are at `base` the operands of the product.
  void place(Product& p, std::uintptr_t base) {
    pass_.to[0].data = reinterpret_cast<void*>(base);
    pass_.to[1].data = reinterpret_cast<void*>(is_self_ ? base : base + bytes_of(pass_.to[0]));
    p.a = pass_.to[0];
    p.b = transpose(pass_.to[1], "transposed Z");
  }

  /// Enqueues the pass, once for X and Z that are one.
  void launch(const Product& p) {
    if (is_self_) pass_.from[1] = pass_.to[1] = {};
    if (p.k > 0) pass_.launch(p.execution, pass_);
  }

  std::string explanation(const Product& p) const {
    return std::string("rows prepared: ") +
           (pass_.widened       ? "widened, "
            : pass_.centred     ? "centred, "
            : pass_.sums_to_one ? "divided by their sums, "
            : pass_.transformed ? "transformed, "
            : pass_.packed      ? "packed, "
            : pass_.roots       ? "square roots, "
                                : "") +
           name(p.element) + ", " + std::to_string(bytes()) + " bytes of workspace\n";
  }

 private:
  // Rows to be written contiguous along k, each aligned to 16 bytes.
  Operand prepared(const Operand& from, Scalar element) const {
    const std::size_t size = size_of(element);
    const std::int64_t columns = pass_.transformed ? pass_.factor.columns
                                 : pass_.packed    ? packed_words(from.columns)
                                                   : from.columns;
    const std::int64_t vector = 16 / static_cast<std::int64_t>(size), pitch = (columns + vector - 1) / vector * vector;
    return {.type = element,
            .size = size,
            .batches = from.batches,
            .rows = from.rows,
            .columns = columns,
            .batch_stride = from.batches == 1 ? 0 : from.rows * pitch,
            .row_stride = pitch,
            .column_stride = 1,
            .argument = from.argument};
  }
  static std::size_t bytes_of(const Operand& rows) {
    return aligned(rows.size * static_cast<std::size_t>(rows.batches * rows.rows * rows.row_stride));
  }

  RowPass pass_;
  bool is_self_;
};

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist() on operands: one contraction; of some metrics after a pass over the rows, into the workspace.
#include "driver.hpp"
#include "symmetric.hpp"

#include <rigel/detail/cdist.hpp>
#include <rigel/detail/checks.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/rows.hpp>
#include <rigel/detail/workspace.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <utility>

namespace rigel::detail {
namespace {

constexpr std::uintptr_t nominal_address = workspace_alignment;  // stands in for memory that is aligned as workspaces are

Operand transpose(Operand o, const char* argument) {
  std::swap(o.rows, o.columns);
  std::swap(o.row_stride, o.column_stride);
  o.argument = argument;
  return o;
}

void check_extents(const Contraction& p) {
  const Operand &x = p.a, &d = p.c, z = transpose(p.b, "Z");
  require_extent(p, z, "columns", z.columns, x.columns, x);
  require_extent(p, d, "rows", d.rows, x.rows, x, "the rows of ");
  require_extent(p, d, "columns", d.columns, z.rows, z, "the rows of ");
  require_batches(p, x, d);
  require_batches(p, z, d);
}

// The library's own pass for rows of these types.
LaunchRows compiled_pass(Scalar element, Scalar row) {
  LaunchRows launch = nullptr;
  using Elements = type_list<half, bfloat16, float, double, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>;
  for_each(Elements{}, [&]<class Element>() {
    if (element != scalar_of<Element>) return;
    launch = row == Scalar::u32   ? launch_rows<compiled_spaces, Element, std::uint32_t>
             : row == Scalar::f32 ? launch_rows<compiled_spaces, Element, float>
                                  : launch_rows<compiled_spaces, Element, double>;
  });
  return launch;
}

// A call whose metric has rows prepared: the pass over X and Z, then the contraction of what it wrote.
class PreparedCdist {
 public:
  PreparedCdist(Contraction p, const RowPass& pass)
      : pass_(pass), given_(std::exchange(p.workspace, {})), inner_(std::move(p)) {
    Operand &x = pass_.from[0], &z = pass_.from[1];
    x = std::exchange(inner_.a, {});
    z = transpose(std::exchange(inner_.b, {}), "Z");
    if (pass_.transformed) require_extent(inner_, pass_.factor, "rows", pass_.factor.rows, x.columns, x, "the columns of ");
    if (!inner_.is_empty()) check_data();
    is_self_ = x.data == z.data && x.batches == z.batches && x.rows == z.rows && x.batch_stride == z.batch_stride &&
               x.row_stride == z.row_stride && x.column_stride == z.column_stride;
    pass_.to[0] = prepared(x);
    pass_.to[1] = prepared(z);
    inner_.k = pass_.to[0].columns;
    if (!pass_.launch) pass_.launch = compiled_pass(x.type, inner_.element);
    place(nominal_address);
  }

  void run() {
    if (inner_.is_empty()) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::cdist");
    const CallMemory memory(inner_.function, inner_.execution, given_, bytes(), {&pass_.from[0], &pass_.from[1], &inner_.c});
    place(memory.address());
    if (is_self_) pass_.from[1] = pass_.to[1] = {};
    if (inner_.k > 0) pass_.launch(inner_.execution, pass_);
    run_symmetric(inner_);
  }
  std::string explanation() const {
    return std::string("rows prepared: ") +
           (pass_.widened       ? "widened, "
            : pass_.centred     ? "centred, "
            : pass_.sums_to_one ? "divided by their sums, "
            : pass_.transformed ? "transformed, "
            : pass_.packed      ? "packed, "
            : pass_.roots       ? "square roots, "
                                : "") +
           name(inner_.element) + ", " + std::to_string(row_bytes()) + " bytes of workspace\n" + listing_symmetric(inner_) +
           legend(inner_);
  }
  std::vector<Candidate<Contraction>> candidates() const { return rigel::candidates(inner_); }
  std::size_t bytes() {
    if (inner_.is_empty()) return 0;
    inner_.workspace.bytes = bytes_symmetric(inner_);
    return row_bytes() + inner_.workspace.bytes;
  }

 private:
  // All that can be wrong with X, Z, the factor and D themselves; the contraction sees copies.
  void check_data() const {
    for (const Operand& o : pass_.from) {
      if (inner_.k > 0) require_data(inner_, o);
      require_disjoint(inner_, inner_.c, o);
    }
    if (pass_.transformed && pass_.factor.rows > 0 && pass_.factor.columns > 0) {
      require_data(inner_, pass_.factor);
      require_disjoint(inner_, inner_.c, pass_.factor);
    }
    require_data(inner_, inner_.c);
    require_distinct(inner_, inner_.c);
  }

  // Rows to be written contiguous along k, each aligned to 16 bytes.
  Operand prepared(const Operand& from) const {
    const std::size_t size = size_of(inner_.element);
    const std::int64_t columns = pass_.transformed ? pass_.factor.columns
                                 : pass_.packed    ? packed_words(from.columns)
                                                   : from.columns;
    const std::int64_t vector = 16 / static_cast<std::int64_t>(size), pitch = (columns + vector - 1) / vector * vector;
    return {.type = inner_.element,
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
  std::size_t row_bytes() const { return bytes_of(pass_.to[0]) + (is_self_ ? 0 : bytes_of(pass_.to[1])); }

  void place(std::uintptr_t base) {
    pass_.to[0].data = reinterpret_cast<void*>(base);
    pass_.to[1].data = reinterpret_cast<void*>(is_self_ ? base : base + bytes_of(pass_.to[0]));
    inner_.a = pass_.to[0];
    inner_.b = transpose(pass_.to[1], "transposed Z");
    inner_.workspace.data = reinterpret_cast<void*>(base + row_bytes());
  }

  RowPass pass_;
  Workspace given_;
  Contraction inner_;
  bool is_self_;
};

}  // namespace

void run_cdist(Contraction p, const RowPass* pass) {
  check_extents(p);
  if (pass)
    PreparedCdist(std::move(p), *pass).run();
  else
    run_symmetric(p);
}

std::string explain_cdist(Contraction p, const RowPass* pass) {
  check_extents(p);
  return pass ? PreparedCdist(std::move(p), *pass).explanation() : listing_symmetric(p) + legend(p);
}

std::vector<Candidate<Contraction>> cdist_candidates(Contraction p, const RowPass* pass) {
  check_extents(p);
  return pass ? PreparedCdist(std::move(p), *pass).candidates() : candidates(p);
}

std::size_t cdist_bytes(Contraction p, const RowPass* pass) {
  check_extents(p);
  if (pass) return PreparedCdist(std::move(p), *pass).bytes();
  p.check();
  return bytes_symmetric(p);
}

}  // namespace rigel::detail

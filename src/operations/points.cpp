// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of distances on operands: one reduction; of some metrics after a pass over the rows, into the workspace.
#include "driver.hpp"
#include "prepared_rows.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/detail/points.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <utility>
#include <vector>

namespace rigel::detail {
namespace {

void check_extents(const Reduction& p) {
  const Operand &x = p.a, z = transpose(p.b, "Z");
  require_extent(p, z, "columns", z.columns, x.columns, x);
  require_batches(p, x, p.scores);
  require_batches(p, z, p.scores);
}

// A call whose metric has rows prepared: the pass over X and Z, then the reduction of what it wrote.
class PreparedReduction {
 public:
  PreparedReduction(Reduction p, const RowPass& pass)
      : given_(std::exchange(p.workspace, {})), inner_(std::move(p)), rows_(inner_, pass) {
    if (inner_.is_empty() || inner_.n == 0) return;
    for (const Operand* written : {&inner_.values, &inner_.indices})
      if (written->size > 0) rows_.check(inner_, *written);
  }

  void run() {
    inner_.check();
    if (inner_.is_empty()) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::reduce_distances");
    const std::size_t own = rows_.bytes(), all = bytes();
    const CallMemory memory(inner_.function, inner_.execution, given_, all,
                            {&rows_.x(), &rows_.z(), &rows_.factor(), &inner_.values, &inner_.indices, &inner_.offsets,
                             &inner_.weights, &inner_.edges});
    rows_.place(inner_, memory.address());
    inner_.workspace = {.data = reinterpret_cast<void*>(memory.address() + own), .bytes = all - own};
    if (inner_.n > 0) rows_.launch(inner_);
    rigel::run(inner_);
  }
  std::string explanation() const { return rows_.explanation(inner_) + explain(inner_); }
  std::vector<Candidate<Reduction>> list() const {
    inner_.check();
    return candidates(inner_);
  }
  std::size_t bytes() const { return inner_.is_empty() ? 0 : rows_.bytes() + workspace_size(inner_).bytes; }

 private:
  Workspace given_;
  Reduction inner_;
  PreparedRows rows_;
};

}  // namespace

void run_points(Reduction p, const RowPass* pass) {
  check_extents(p);
  if (pass)
    PreparedReduction(std::move(p), *pass).run();
  else
    run(p);
}

void run_offsets(Reduction p, const RowPass* pass) {
  check_extents(p);
  Operand first = p.values;
  first.argument = "offsets";
  first.data = static_cast<char*>(p.values.data) - p.values.row_stride * static_cast<std::int64_t>(p.values.size);
  first.rows = 1;
  require_disjoint(p, first, p.a);
  require_disjoint(p, first, transpose(p.b, "Z"));
  run_points(std::move(p), pass);
}

std::string explain_points(Reduction p, const RowPass* pass) {
  check_extents(p);
  return pass ? PreparedReduction(std::move(p), *pass).explanation() : explain(p);
}

std::size_t points_bytes(Reduction p, const RowPass* pass) {
  check_extents(p);
  return pass ? PreparedReduction(std::move(p), *pass).bytes() : workspace_size(p).bytes;
}

std::vector<Candidate<Reduction>> points_candidates(Reduction p, const RowPass* pass) {
  check_extents(p);
  if (pass) return PreparedReduction(std::move(p), *pass).list();
  p.check();
  return candidates(p);
}

}  // namespace rigel::detail

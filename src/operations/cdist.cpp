// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist() on operands: one contraction; of some metrics after a pass over the rows, into the workspace.
#include "driver.hpp"
#include "prepared_rows.hpp"
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

void check_extents(const Contraction& p) {
  const Operand &x = p.a, &d = p.c, z = transpose(p.b, "Z");
  require_extent(p, z, "columns", z.columns, x.columns, x);
  require_extent(p, d, "rows", d.rows, x.rows, x, "the rows of ");
  require_extent(p, d, "columns", d.columns, z.rows, z, "the rows of ");
  require_batches(p, x, d);
  require_batches(p, z, d);
}

// A call whose metric has rows prepared: the pass over X and Z, then the contraction of what it wrote.
class PreparedCdist {
 public:
  PreparedCdist(Contraction distances, const RowPass& pass)
      : given_(std::exchange(distances.workspace, {})), inner_(std::move(distances)), rows_(inner_, pass) {
    if (!inner_.is_empty()) {
      rows_.check(inner_, inner_.c);
      require_data(inner_, inner_.c);
      require_distinct(inner_, inner_.c);
    }
    place(PreparedRows::nominal_address);
  }

  void run() {
    if (inner_.is_empty()) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::cdist");
    const CallMemory memory(inner_.function, inner_.execution, given_, bytes(), {&rows_.x(), &rows_.z(), &inner_.c});
    place(memory.address());
    rows_.launch(inner_);
    run_symmetric(inner_);
  }
  std::string explanation() const { return rows_.explanation(inner_) + listing_symmetric(inner_) + legend(inner_); }
  std::vector<Candidate<Contraction>> candidates() const { return rigel::candidates(inner_); }
  std::size_t bytes() {
    if (inner_.is_empty()) return 0;
    inner_.workspace.bytes = bytes_symmetric(inner_);
    return rows_.bytes() + inner_.workspace.bytes;
  }

 private:
  void place(std::uintptr_t base) {
    rows_.place(inner_, base);
    inner_.workspace.data = reinterpret_cast<void*>(base + rows_.bytes());
  }

  Workspace given_;
  Contraction inner_;
  PreparedRows rows_;
};

}  // namespace

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

void run_cdist(Cdist call) {
  check_extents(call.distances);
  if (call.pass)
    PreparedCdist(std::move(call.distances), *call.pass).run();
  else
    run_symmetric(call.distances);
}

std::string explain_cdist(Cdist call) {
  check_extents(call.distances);
  if (call.pass) return PreparedCdist(std::move(call.distances), *call.pass).explanation();
  return listing_symmetric(call.distances) + legend(call.distances);
}

std::vector<Candidate<Contraction>> cdist_candidates(Cdist call) {
  check_extents(call.distances);
  return call.pass ? PreparedCdist(std::move(call.distances), *call.pass).candidates() : candidates(call.distances);
}

std::size_t cdist_bytes(Cdist call) {
  check_extents(call.distances);
  if (call.pass) return PreparedCdist(std::move(call.distances), *call.pass).bytes();
  call.distances.check();
  return bytes_symmetric(call.distances);
}

}  // namespace rigel::detail

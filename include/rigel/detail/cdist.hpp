// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist() on operands: what its front end hands to the compiled driver, src/operations/cdist.cpp.
#pragma once

#include <rigel/registry.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rigel::detail {

struct RowPass;
/// Enqueues the pass.
using LaunchRows = void (*)(const Execution&, const RowPass&);

/// The pass that prepares the rows of X and Z (detail/rows.hpp, detail/transformed_rows.hpp, detail/root_rows.hpp,
/// detail/packed_rows.hpp, detail/widened_rows.hpp).
struct RowPass {
  bool centred = false;
  double squared_length = 1;
  bool sums_to_one = false;
  bool transformed = false;
  bool packed = false;
  bool roots = false;
  bool widened = false;
  Operand factor = {};          // K × R numbers of the type of prepared rows, if they are transformed
  LaunchRows launch = nullptr;  // for an execution space that the library is not compiled for; else null
  // The driver's: where rows are and where they go, of X and of Z; no rows of Z if they are those of X.
  Operand from[2] = {}, to[2] = {};
};

/// A call. What `distances` points to (the semiring, the epilogue) is the front end's.
struct Cdist {
  Contraction distances;  // of X and transposed Z, with the names that messages use, and the options
  std::optional<RowPass> pass =
      {};  // if the metric has rows prepared; the semiring's element is then their type: f32, f64 or, packed, u32
};

void run_cdist(Cdist call);
std::string explain_cdist(Cdist call);
std::size_t cdist_bytes(Cdist call);
std::vector<Candidate<Contraction>> cdist_candidates(Cdist call);

}  // namespace rigel::detail

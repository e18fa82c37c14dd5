// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist() on operands: what its front end hands to the compiled driver, src/operations/cdist.cpp.
#pragma once

#include <rigel/registry.hpp>

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

/// `p`: the contraction of X and transposed Z, with the names that messages use. `pass`: null if the metric takes rows as they are;
/// else the semiring's element is the type of prepared rows: f32 or f64, of packed ones u32.
void run_cdist(Contraction p, const RowPass* pass);
std::string explain_cdist(Contraction p, const RowPass* pass);
std::size_t cdist_bytes(Contraction p, const RowPass* pass);
std::vector<Candidate<Contraction>> cdist_candidates(Contraction p, const RowPass* pass);

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of a contraction's C that another operation's kernel has computed into its workspace, by the kernel that the engine chooses.
// The operation has checked the whole; a part is not checked again.
#pragma once

#include <rigel/registry.hpp>

#include <cstddef>

namespace rigel::detail {

/// What the kernel that a part would get says of it; or why no kernel covers the part.
struct PartNeeds {
  Status status;
  double seconds = 0;
  std::size_t bytes = 0;
};
PartNeeds needs_of_part(const Contraction& part);

/// Chooses a kernel and enqueues the part. Its workspace is the problem's: if the kernel of the least predicted time needs more, as it may
/// where a part's operands are aligned less than the first one's, another one is chosen.
void run_part(const Contraction& part);

/// Throws Error(invalid_argument) as Contraction::check() does, for all but what it requires of C's memory.
void check_product(const Contraction& p);

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions of X and its own transpose, as cdist() makes them: their results are symmetric matrices.
#pragma once

#include <rigel/registry.hpp>

#include <cstddef>
#include <string>

namespace rigel::detail {

/// What run(), listing() and the size of the workspace are to other contractions; where B is A transposed, D(l,m,n) and D(l,n,m) get the
/// same bits. Long calls are computed in block rows of the lower triangle, which a pass then mirrors, if that is predicted to be faster.
void run_symmetric(const Contraction& p);
std::string listing_symmetric(const Contraction& p);
std::size_t bytes_symmetric(const Contraction& p);

}  // namespace rigel::detail

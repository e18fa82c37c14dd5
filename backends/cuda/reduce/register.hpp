// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/reduction_problem.hpp>

namespace rigel::backends::reduce {

/// Adds the cuda.reduce kernels of the semirings of a zoo list. instantiate.cu.in defines it, one list each.
template <class List>
void add(Registry<Reduction>& registry);

}  // namespace rigel::backends::reduce

namespace rigel::backends::points {

/// cuda.points.*: weighted sums, softmax and log-sum-exp of Euclidean distances in few dimensions.
void add_weighted_sums(Registry<Reduction>& registry);
void add_softmax(Registry<Reduction>& registry);
void add_doubles(Registry<Reduction>& registry);
void add_expanded(Registry<Reduction>& registry);
void add_wide_sums(Registry<Reduction>& registry);

}  // namespace rigel::backends::points

namespace rigel::backends::best {

/// cuda.best: the k smallest sums of absolute differences.
void add(Registry<Reduction>& registry);

}  // namespace rigel::backends::best

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <rigel/gradient_problem.hpp>

namespace rigel::backends::gradient {

/// cuda.gradient.*: the gradients by p = 1, by p = 2, and by any p; and those by p = 2 as products of points.
void add_manhattan(Registry<Gradient>& registry);
void add_euclidean(Registry<Gradient>& registry);
void add_minkowski(Registry<Gradient>& registry);
void add_of_points(Registry<Gradient>& registry);

}  // namespace rigel::backends::gradient

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: what other families' searches leave to cuda.mma's objects, which have code for all architectures.
#pragma once

#include <rigel/backends/cuda/mma/nearest_sweep.hpp>
#include <rigel/backends/cuda/runtime.hpp>

namespace rigel::backends::mma::nearest {

/// Enqueues the search by subtraction of the rows that are listed, and stores what it finds. Instantiated where the kernels of minima are.
template <class Element>
void enqueue_listed(const Search<Element>& g, int multiprocessors, const cuda::Launches& launches);

}  // namespace rigel::backends::mma::nearest

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the problems that the searches of all families take, and what is true of all their kernels.
#pragma once

#include <rigel/detail/kernel.hpp>
#include <rigel/detail/reduction.hpp>

#include <cstdint>
#include <string>

namespace rigel::backends::mma::nearest {

/// What keeps a search of at most `largest_k` numbers from a problem's scores: squares of distances, or their roots.
inline Status takes_scores(const Reduction& p, std::int64_t largest_k) {
  if (const Status status = detail::computes_scores(p); !status) return status;
  const bool root = p.program->size() == 1 && p.program->begins_with_root();
  if (!(p.program->empty() || root)) return {Decline::epilogue, "takes scores as they are, or their square roots"};
  if (p.batch != 1) return {Decline::batches, "takes single matrices"};
  if (p.k < 1 || p.k > largest_k) return {Decline::extents, "takes K from 1 to " + std::to_string(largest_k)};
  return {};
}

/// A family's search for elements of a type, without its functions, on GPUs of compute capability `least` to `largest`; 0: any newer one.
template <class Element>
Kernel<Reduction> search_of(const char* family, int least, int largest) {
  Kernel<Reduction> k;
  k.info = detail::info_of<l2_squared<Element>>(family, "nearest", "", bit(Space::cuda));
  k.info.min_compute_capability = least;
  k.info.max_compute_capability = largest;
  k.info.promises = Promise::repeatable | Promise::batch_invariant | Promise::reference_bits;
  k.info.raw_launch = true;
  return k;
}

}  // namespace rigel::backends::mma::nearest

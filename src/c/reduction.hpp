// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What rigel_reduce() and the reductions of distances share: a reducer with its own numbers, and outputs.
#pragma once

#include "operands.hpp"

#include <rigel/ranges.hpp>
#include <rigel/reduction_problem.hpp>

struct rigel_ranges {
  int device;
  rigel::Ranges ranges;
};

namespace rigel::c {

/// Where results go, NULL: not wanted; and V of weighted reducers.
struct Outputs {
  const rigel_matrix* values;
  const rigel_matrix* indices;
  const char* values_name = "values";
  const char* indices_name = "indices";
  const rigel_matrix* weights = nullptr;
};

/// What rigel.h calls a reducer, of those that have functions of their own.
enum : std::int32_t { weighted_sum = int(Reducer::weighted_sum) + 1, softmax_weighted = int(Reducer::softmax_weighted) + 1 };

/// Sets what the caller says of the reducer, the outputs and the call's options. The reducer is `chosen`, or if that is 0 the caller's.
void set_reduction(Reduction& p, const rigel_handle& handle, const rigel_options& options, const rigel_reduction& given,
                   std::int32_t chosen, const rigel_ranges* ranges, const Outputs& outputs, const char* function);

/// The batches of a call: those of its outputs, one if there are none.
std::int64_t batches_of(const Reduction& p);

/// The options of the contraction that computes the scores.
rigel_options options_of_scores(const rigel_options& options, const rigel_reduction& reduction);

}  // namespace rigel::c

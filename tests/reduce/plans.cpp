// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which problems the kernels of reduce() on CUDA take, and in how much workspace, on cards of several kinds. Nothing runs.
#include <tests/selection/problems.hpp>

#include <rigel/reduction_problem.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace {

using rigel::Decline, rigel::Reducer, rigel::Reduction;

struct Shape {
  std::int64_t batch, m, n, k;
};

/// Rows of A and columns of B are contiguous along K.
Reduction call_of_shape(Shape e, Reducer reducer, std::int64_t count, std::size_t limit, int shared_memory = 227 << 10) {
  static const rigel::epilogue::Program none;
  selection::Call call = selection::on_hopper("l2_squared", rigel::Scalar::f32, e.n, e.k);
  call.batch = e.batch;
  call.execution.shared_memory = shared_memory;
  Reduction p;
  p.function = "reduce";
  p.execution = call.execution;
  p.reducer = reducer;
  p.count = count;
  p.workspace_limit = limit;
  p.set_contraction(selection::problem(call, e.m));
  p.program = &none;
  p.epilogue_object = &none;
  p.values = selection::operand(rigel::Scalar::f32, selection::Layout::right, std::int64_t{5} << 40, e.batch, e.m, count);
  return p;
}

/// The kernels of CUDA for scores that are never stored.
std::vector<const rigel::Kernel<Reduction>*> kernels_of(const char* family) {
  std::vector<const rigel::Kernel<Reduction>*> list;
  if (rigel::kernels({.name = family, .operation = "reduce"}).empty()) return list;  // this build has none
  for (const auto& candidate : rigel::candidates(call_of_shape({1, 100, 1000, 32}, Reducer::smallest, 10, 0)))
    if (candidate.kernel->info.family == family) list.push_back(candidate.kernel);
  return list;
}

TEST_CASE("reduce: kernels on CUDA cores decline reducers that they do not have, by name") {
  for (const auto* kernel : kernels_of("cuda.reduce"))
    for (int i = 0; i <= static_cast<int>(Reducer::monoid); ++i) {
      const auto reducer = static_cast<Reducer>(i);
      CAPTURE(kernel->info.name);
      CAPTURE(rigel::name(reducer));
      const rigel::Status status = kernel->supports(*kernel, call_of_shape({1, 60, 1000, 32}, reducer, 1, 0));
      const bool sums = reducer == Reducer::sum || reducer == Reducer::log_sum_exp;
      CHECK(bool(status) == (reducer <= Reducer::count_below && !(sums && kernel->info.variant == "few")));
      if (reducer > Reducer::count_below) {
        CHECK(status.decline == Decline::other);
        CHECK(status.reason.find(rigel::name(reducer)) != std::string::npos);
      }
    }
}

TEST_CASE("reduce: kernels on CUDA cores keep the workspace within the limit") {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  for (const auto* kernel : kernels_of("cuda.reduce"))
    for (const Shape e : {Shape{1, 1, 10'000'000, 32}, Shape{1, 64, 1'000'000, 32}, Shape{5000, 8, 300, 32},
                          Shape{200'000, 64, 300, 32}, Shape{1, 1000, 100'000, 16}, Shape{3, 100'000, 700, 8}})
      for (const auto& [reducer, count] :
           {std::pair{Reducer::minimum, 1}, {Reducer::count_below, 1}, {Reducer::smallest, 10}, {Reducer::largest, 128}})
        for (const std::size_t limit : {std::size_t{1}, std::size_t{10'000}, mebibyte / 4, mebibyte, 64 * mebibyte}) {
          const Reduction p = call_of_shape(e, reducer, count, limit);
          if (!kernel->supports(*kernel, p)) continue;
          rigel::Plan plan;
          const double seconds = kernel->cost(*kernel, p, plan);
          CAPTURE(kernel->info.name);
          CAPTURE(rigel::name(reducer));
          CAPTURE(e.batch);
          CAPTURE(e.m);
          CAPTURE(e.n);
          CAPTURE(limit);
          CHECK((seconds > 0 && seconds < 1000));
          // The lists of one tile's rows, at most 128, are the least that the k best need.
          const std::size_t least = reducer == Reducer::minimum || reducer == Reducer::count_below
                                        ? 0
                                        : std::size_t{128} * static_cast<std::size_t>(count) * 8;
          CHECK(kernel->workspace(*kernel, p, plan).bytes <= std::max(limit, least));
        }
}

TEST_CASE("reduce: few rows of more than 2^31 - 1 blocks are declined") {
  for (const auto* kernel : kernels_of("cuda.reduce"))
    if (kernel->info.variant == "few") {
      const auto takes = [&](std::int64_t batch) {
        return kernel->supports(*kernel, call_of_shape({batch, 64, 100, 32}, Reducer::minimum, 1, 0));
      };
      CHECK(takes(std::numeric_limits<std::int32_t>::max() / 8));
      CHECK(takes(std::numeric_limits<std::int32_t>::max() / 8 + 1).decline == Decline::extents);
    }
}

TEST_CASE("nearest: what a card's shared memory and a row's parts are too small for is declined") {
  for (const auto* kernel : kernels_of("cuda.mma")) {
    const auto declined = [&](Shape e, Reducer reducer, int count, int shared_memory, bool exclude_self = false) {
      Reduction p = call_of_shape(e, reducer, count, 0, shared_memory);
      p.exclude_self = exclude_self;
      return kernel->supports(*kernel, p).decline;
    };
    // With K > 64 the k smallest take 71744 bytes: four tiles of 16896, and what waits to be listed, 1040 for each of four warps.
    CHECK(declined({1, 100, 1000, 128}, Reducer::smallest, 10, 71743) == Decline::memory);
    CHECK(declined({1, 100, 1000, 128}, Reducer::smallest, 10, 71744) == Decline::none);
    CHECK(declined({1, 100, 1000, 128}, Reducer::minimum, 1, 4 * 16896) == Decline::none);
    CHECK(declined({1, 100, 1000, 128}, Reducer::minimum, 1, 4 * 16896 - 1) == Decline::memory);
    // For K ≤ 16 a tile has 256 columns in eight chunks. 1281 columns are 48 chunks with four parts each, which suffice for 128 results.
    CHECK(declined({1, 300, 1281, 16}, Reducer::smallest, 128, 227 << 10) == Decline::none);
    CHECK(declined({1, 1281, 1281, 16}, Reducer::smallest, 128, 227 << 10, true) == Decline::extents);
    CHECK(declined({1, 300, 1280, 16}, Reducer::smallest, 128, 227 << 10) == Decline::extents);
    // All of 320 columns are listed.
    CHECK(declined({1, 300, 320, 16}, Reducer::smallest, 128, 0) == Decline::none);
    CHECK(declined({1, 300, 5000, 16}, Reducer::smallest, 129, 227 << 10) == Decline::extents);
    // Lists and columns beyond 64 MiB.
    CHECK(declined({1, 100000, 100000, 64}, Reducer::smallest, 100, 227 << 10) == Decline::none);
    CHECK(declined({1, 10000, 1000000, 128}, Reducer::smallest, 10, 227 << 10) == Decline::none);
    CHECK(declined({1, 10000, 1000000, 128}, Reducer::minimum, 1, 227 << 10) == Decline::none);
  }
}

}  // namespace

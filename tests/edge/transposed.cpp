// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that compute a column-major C as the transposed problem: what the engine hands them, what it asks of them, and what
// users see of it. tests/backends/column_major.cpp checks results.
#include "host_kernel.hpp"

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

using rigel::Code, rigel::Decline, rigel::Promise, rigel::Transposes;
using support::matrix;
using Values = std::vector<double>;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
const rigel::plus_times<float> s;
const rigel::epilogue::Program none;

/// A kernel that takes a row-major C alone, in fours, and predicts and needs what shows the extents that it sees.
rigel::Kernel<rigel::Contraction> transposing(const std::string& name, Transposes transposes) {
  using Kernel = rigel::Kernel<rigel::Contraction>;
  Kernel k = edge::host_kernel(name);
  k.info.transposes = transposes;
  k.info.operands[2] = {rigel::Layout::row_major, 4};
  k.cost = [](const Kernel&, const rigel::Contraction& p, rigel::Plan& plan) {
    plan.keep(p.n);
    return 1e-9 * static_cast<double>(p.m);
  };
  k.workspace = [](const Kernel&, const rigel::Contraction& p, const rigel::Plan& plan) {
    return rigel::WorkspaceSize{.bytes = static_cast<std::size_t>(100 * p.m + plan.get<std::int64_t>())};
  };
  return k;
}

struct Call {
  support::Matrix<float, Exec> a = matrix<float, Exec>(4, 2, {1, 2, 3, 4, 5, 6, 7, 8}),
                               b = matrix<float, Exec>(2, 3, {1, 0, 2, 0, 1, 3}),
                               c = matrix<float, Exec>(3, 4, Values(12, -1));  // C by columns
  std::string kernel;
  auto problem(Promise require = Promise::none) const {
    return rigel::problem_of(Exec{}, s, a, b, rigel::transposed(c), rigel::epilogue::add_diagonal(100, 1, 0),
                             {.require = require, .kernel = kernel});
  }
};
// A·B, and 100 at (0, 1), (1, 2): the rows {1, 2, 8}, {3, 4, 18}, {5, 6, 28}, {7, 8, 38}, here by columns.
const Values by_hand = {1, 3, 5, 7, 102, 4, 6, 8, 8, 118, 28, 38};

}  // namespace

TEST_CASE("transposed problems: extents, predicted times and workspace are the kernel's") {
  rigel::register_kernel(transposing("turned.same", Transposes::with_same_bits));
  Call call{.kernel = "user.turned.same"};
  rigel::run(call.problem());
  CHECK(support::values(call.c) == by_hand);
  const rigel::Kernel<rigel::Contraction>& kernel = rigel::select(call.problem());
  CHECK(supports(kernel, call.problem()));
  CHECK(predicted_seconds(kernel, call.problem()) == 1e-9 * 3);  // rows of the transpose
  CHECK(rigel::workspace_size(call.problem()).bytes == 304);
  for (const auto& one : rigel::candidates(call.problem()))
    if (one.chosen) {
      CHECK(one.seconds == 1e-9 * 3);
      CHECK(one.workspace.bytes == 304);
    }
  Kokkos::deep_copy(call.c, -1);
  rigel::run(kernel, call.problem());
  CHECK(support::values(call.c) == by_hand);
  // The caller's extents in messages.
  CHECK(rigel::explain(call.problem()).find("contract plus_times f32, 4x3x2") == 0);
  // A row-major C is not turned.
  const auto rows = matrix<float, Exec>(4, 4);
  const auto as_it_is = rigel::problem_of(Exec{}, s, call.a, matrix<float, Exec>(2, 4), rows, none, {.kernel = call.kernel});
  CHECK(predicted_seconds(kernel, as_it_is) == 1e-9 * 4);
}

TEST_CASE("transposed problems: batch_invariant excludes those with other bits") {
  rigel::register_kernel(transposing("turned.other", Transposes::with_other_bits));
  Call call{.kernel = "user.turned.other"};
  rigel::run(call.problem());
  CHECK(support::values(call.c) == by_hand);
  const auto e = support::caught([&] { rigel::run(call.problem(Promise::batch_invariant)); });
  CHECK(e.decline == Decline::layout);
  CHECK(e.lacks({"user.turned.other: needs C of layout row_major"}) == "");
  call.kernel = "user.turned.same";
  Kokkos::deep_copy(call.c, -1);
  rigel::run(call.problem(Promise::batch_invariant));
  CHECK(support::values(call.c) == by_hand);
}

TEST_CASE("transposed problems: a layout that the transpose lacks, too") {
  rigel::register_kernel(transposing("turned.never", Transposes::no));
  const auto a = matrix<float, Exec>(3, 2), b = matrix<float, Exec>(2, 4), c = matrix<float, Exec>(4, 3);
  const auto refused = [&](const char* kernel) {
    return support::caught([&] { rigel::contract(Exec{}, s, a, b, rigel::transposed(c), none, {.kernel = kernel}); });
  };
  const auto e = refused("user.turned.same"), f = refused("user.turned.never");
  CHECK(e.decline == Decline::layout);
  CHECK(e.lacks({"3x4x2", "user.turned.same: needs the transpose of C of layout row_major", "multiples of 4"}) == "");
  CHECK(f.lacks({"user.turned.never: needs C of layout row_major"}) == "");
}

TEST_CASE("transposed problems: verify() holds kernels to their promises") {
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel("turned.right");
  k.info.transposes = Transposes::with_same_bits;
  rigel::register_kernel(k);
  const auto right = rigel::verify("user.turned.right", 5);
  CHECK(right.report == "");
  CHECK(right.ok);
}

namespace {

struct Ordered : rigel::plus_times<float> {
  using self = Ordered;
  static constexpr bool commutative = false;
};

}  // namespace

TEST_CASE("transposed problems: the semiring has to commute") {
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel("turned.ordered");
  k.info.transposes = Transposes::with_same_bits;
  k.info.semiring = "ordered";
  k.info.semiring_type = rigel::semiring_type<Ordered>();
  const auto refused = [&] { return support::caught([&] { rigel::register_kernel(k); }); };
  CHECK(refused().code == Code::invalid_argument);
  k.info.facts = &rigel::semiring_info<Ordered>();
  CHECK(refused().code == Code::invalid_argument);
  CHECK(refused().lacks({"user.turned.ordered", "does not say that it commutes"}) == "");
}

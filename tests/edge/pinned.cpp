// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pinned: a kernel that is chosen once for a problem, and what each run does and does not do.
#include "host_kernel.hpp"

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/recorder.hpp>
#include <tests/support/spaces.hpp>

#include <rigel/pinned.hpp>

#include <doctest/doctest.h>

#include <optional>

using support::matrix, support::values;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using rigel::Contraction, rigel::Kernel, rigel::Pinned;
const rigel::plus_times<float> s;

int asked = 0;    // how often the kernel was asked whether it covers a problem, or what it costs
int planned = 0;  // what the plan of its last run held

// A kernel that counts, whose plan holds a number.
const Kernel<Contraction>& counting() {
  static const Kernel<Contraction> kernel = [] {
    Kernel<Contraction> k = edge::host_kernel("pinned");
    k.supports = [](const Kernel<Contraction>& own, const Contraction& p) -> rigel::Status {
      ++asked;
      return edge::host_kernel("pinned").supports(own, p);
    };
    k.cost = [](const Kernel<Contraction>&, const Contraction&, rigel::Plan& plan) {
      ++asked;
      plan.keep(42);
      return 1e-9;
    };
    k.workspace = [](const Kernel<Contraction>&, const Contraction& p, const rigel::Plan&) -> rigel::WorkspaceSize {
      return {.bytes = static_cast<std::size_t>(p.m)};
    };
    k.run = [](const Kernel<Contraction>& own, const Contraction& p, const rigel::Plan& plan, const rigel::Workspace& w) {
      planned = plan.get<int>();
      CHECK(w.bytes >= static_cast<std::size_t>(p.m));
      edge::run_host_kernel<edge::Bug::none>(own, p, plan, w);
    };
    rigel::register_kernel(k);
    return k;
  }();
  return kernel;
}

}  // namespace

TEST_CASE("pinned: a kernel is chosen and planned once, and runs on what the operands then hold") {
  const std::string name = counting().info.name;
  const auto a = matrix<float, Exec>(1, 2, {1, 2}), b = matrix<float, Exec>(2, 1, {3, 4}), c = matrix<float, Exec>(1, 1);
  const auto problem = rigel::problem_of(Exec{}, s, a, b, c, {.kernel = name});
  const Pinned pinned(problem);
  REQUIRE(pinned.kernel() != nullptr);
  CHECK(pinned.kernel()->info.name == name);
  CHECK(pinned.workspace_size().bytes == 1);
  CHECK(asked > 0);
  asked = 0;
  planned = 0;
  pinned.run();
  Exec{}.fence();
  CHECK(values(c) == std::vector<double>{11});
  CHECK(planned == 42);
  a(0, 1) = 10;
  pinned.run();
  Exec{}.fence();
  CHECK(values(c) == std::vector<double>{43});
  Pinned moved = Pinned(problem);
  asked = 0;
  moved = Pinned(problem);
  const Pinned other(std::move(moved));
  asked = 0;
  other.run();
  CHECK(asked == 0);
}

TEST_CASE("pinned: the choice is contract()'s, with the same bits") {
  const auto a = matrix<float, Exec>(33, 47), b = matrix<float, Exec>(47, 21);
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = 1 / (1 + static_cast<float>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b.data()[i] = 1 / (3 + static_cast<float>(i));
  const auto expected = matrix<float, Exec>(33, 21), actual = matrix<float, Exec>(33, 21);
  const Kokkos::View<float**, Kokkos::LayoutLeft, Exec::memory_space> column_major("column-major", 33, 21);
  const auto epilogue = rigel::epilogue::scale(0.5) | rigel::epilogue::relu();
  rigel::contract(Exec{}, s, a, b, expected, epilogue);
  const auto problem = rigel::problem_of(Exec{}, s, a, b, actual, epilogue);
  const Pinned pinned(problem);
  CHECK(pinned.kernel() == &rigel::select(problem));
  CHECK(pinned.workspace_size().bytes == rigel::workspace_size(problem).bytes);
  pinned.run();
  Exec{}.fence();
  CHECK(values(actual) == values(expected));

  // A column-major C, whose transposed problem kernels get.
  rigel::contract(Exec{}, s, a, b, column_major, epilogue);
  Exec{}.fence();
  std::vector<float> kept(column_major.data(), column_major.data() + column_major.size());
  Kokkos::deep_copy(column_major, -1.f);
  const auto transposed = rigel::problem_of(Exec{}, s, a, b, column_major, epilogue);
  Pinned(transposed).run();
  Exec{}.fence();
  CHECK(std::equal(kept.begin(), kept.end(), column_major.data()));

  // A kernel of one's own choice.
  for (const auto& one : rigel::candidates(problem)) {
    if (!one.status) continue;
    const Pinned of_candidate(*one.kernel, problem);
    CHECK(of_candidate.kernel() == one.kernel);
    of_candidate.run();
  }
}

TEST_CASE("pinned: what is refused, and an empty problem") {
  const auto a = matrix<float, Exec>(1, 2, {1, 2}), b = matrix<float, Exec>(2, 1, {3, 4}),
             c = matrix<float, Exec>(1, 1, {7});
  const auto wrong = matrix<float, Exec>(3, 1);
  const auto misfit = rigel::problem_of(Exec{}, s, a, wrong, c);
  CHECK(support::caught([&] { const Pinned pinned(misfit); }).code == rigel::Code::invalid_argument);
  const auto problem = rigel::problem_of(Exec{}, s, a, b, c);
  const auto refused =
      support::caught([&] { const Pinned pinned(counting(), problem); });  // it covers only calls that name it
  CHECK(refused.code == rigel::Code::unsupported);
  CHECK(refused.lacks({"contract: kernel 'user.pinned' does not cover", "C has another label"}) == "");
  const auto unknown = rigel::problem_of(Exec{}, s, a, b, c, {.kernel = "nothing"});
  CHECK(support::caught([&] { const Pinned pinned(unknown); }).code == rigel::Code::not_found);

  alignas(256) static char memory[256];
  const auto small = rigel::problem_of(Exec{}, s, a, b, c, {.kernel = counting().info.name, .workspace = {memory, 0}});
  const Pinned without_memory(small);
  const auto too_small = support::caught([&] { without_memory.run(); });
  CHECK(too_small.code == rigel::Code::invalid_argument);
  CHECK(too_small.lacks({"contract: the workspace has 0 bytes", "needs 1"}) == "");
  CHECK(values(c) == std::vector<double>{7});

  const auto none = matrix<float, Exec>(0, 2), nothing = matrix<float, Exec>(0, 1);
  const auto empty = rigel::problem_of(Exec{}, s, none, b, nothing);
  const Pinned of_empty(empty);
  CHECK(of_empty.kernel() == nullptr);
  CHECK(of_empty.workspace_size().bytes == 0);
  of_empty.run();
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engine as callers see it: problems that own what they point to, candidates as data, a kernel of the caller's choice;
// kernels with state, plans, workspace on the host, layouts of operands; and what Precision::automatic admits.
#include "host_kernel.hpp"

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <cstring>
#include <memory>

using rigel::Code, rigel::Contraction, rigel::Decline, rigel::Kernel, rigel::Plan, rigel::Precision, rigel::Workspace;
using rigel::WorkspaceSize;
using support::matrix;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Values = std::vector<double>;
const rigel::plus_times<float> s;

/// A kernel that covers only calls whose C has its name as label; `run` does its work.
Kernel<Contraction> kernel(const std::string& name,
                           void (*run)(const Kernel<Contraction>&, const Contraction&, const Plan&, const Workspace&)) {
  Kernel<Contraction> k = edge::host_kernel(name);
  k.run = run;
  return k;
}

float& first_of_c(const Contraction& p) { return *static_cast<float*>(p.c.data); }

/// The candidate of that name, which must exist.
rigel::Candidate<Contraction> candidate(const Contraction& p, const std::string& name) {
  for (const auto& one : rigel::candidates(p))
    if (one.kernel->info.name == name) return one;
  FAIL("no candidate is named " << name);
  return {};
}

}  // namespace

TEST_CASE_TEMPLATE("problem_of: it owns what it points to, and any candidate runs it", Execution, RIGEL_TEST_SPACES) {
  const auto c = matrix<float, Execution>(2, 2);
  {
    // The views of A, B and indices, the functors and the kernel's name end with the scope that makes the problem; what follows
    // takes memory of the same sizes and fills it.
    using S = rigel::with_argument<rigel::min_plus<float>>;
    using Indices = Kokkos::View<int**, Kokkos::LayoutRight, typename Execution::memory_space>;
    Indices seen;
    const auto problem = [&] {
      const auto x = matrix<float, Execution>(2, 3, {1, 2, 3, 4, 5, 6}),
                 y = matrix<float, Execution>(2, 3, {1, 0, 1, 0, 1, 1});
      const Indices indices("indices", 2, 2);
      seen = indices;
      const auto last = rigel::epilogue::arguments(indices);
      const std::string kernel = "portable";
      using Problem = decltype(rigel::problem_of(Execution{}, S{}, x, rigel::transposed(y), c, last));
      return std::make_unique<Problem>(Execution{}, S{}, x, rigel::transposed(y), c, last,
                                       rigel::ContractOptions{.kernel = kernel});
    }();
    CHECK(seen.use_count() == 2);
    const auto x = matrix<float, Execution>(2, 3, {9, 9, 9, 9, 9, 9}),
               y = matrix<float, Execution>(2, 3, {9, 9, 9, 9, 9, 9});
    const std::string other(8, 'x');
    CHECK(rigel::select(*problem).info.family == "portable");
    rigel::run(*problem);
    // min_k X(m,k) + Y(n,k): {min(2, 2, 4), min(1, 3, 4)}, {min(5, 5, 7), min(4, 6, 7)}; of equals the first k.
    CHECK(support::values(c) == Values{2, 1, 5, 4});
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, seen);
    CHECK(std::vector<int>(host.data(), host.data() + 4) == std::vector<int>{0, 0, 0, 0});
    static_assert(!std::is_copy_assignable_v<std::decay_t<decltype(*problem)>>);
  }

  const auto a = matrix<float, Execution>(2, 3, {1, 2, 3, 4, 5, 6}), b = matrix<float, Execution>(3, 2, {1, 0, 0, 1, 1, 1});
  const auto fits = rigel::problem_of(Execution{}, rigel::min_plus<float>{}, a, b, c, rigel::epilogue::scale(2));
  int ran = 0, chosen = 0;
  for (const auto& one : rigel::candidates(fits)) {
    CAPTURE(one.kernel->info.name);
    chosen += one.chosen;
    CHECK(one.chosen == (one.kernel == &rigel::select(fits)));
    CHECK(bool(one.status) == (one.status.decline == Decline::none));
    CHECK(one.status.reason.empty() == bool(one.status));
    if (!one.status) {
      const auto refused = support::caught([&] { rigel::run(*one.kernel, fits); });
      CHECK(refused.code == Code::unsupported);
      CHECK(refused.decline == one.status.decline);
      continue;
    }
    CHECK(one.seconds > 0);
    Kokkos::deep_copy(c, -1);
    rigel::run(*one.kernel, fits);
    // 2·min_k A(m,k) + B(k,n): {min(2, 2, 4), min(1, 3, 4)}, {min(5, 5, 7), min(4, 6, 7)}.
    CHECK(support::values(c) == Values{4, 2, 10, 8});
    ++ran;
  }
  CHECK(chosen == 1);
  CHECK(ran >= 2);
  Kokkos::deep_copy(c, -1);
  rigel::run(fits);
  CHECK(support::values(c) == Values{4, 2, 10, 8});
}

TEST_CASE("kernels: state is handed to every function, and lives as long as the kernel") {
  struct State {
    float value;
    bool supported;
    double seconds;
    std::size_t bytes;
  };
  std::weak_ptr<const State> watched;
  {
    Kernel<Contraction> k = edge::host_kernel("stateful");
    const auto state = std::make_shared<const State>(State{42, true, 1e-12, 300});
    watched = state;
    k.state = state;
    k.supports = [](const Kernel<Contraction>& self, const Contraction& p) -> rigel::Status {
      if (p.c.label != self.info.name) return {Decline::other, "C has another label"};
      return static_cast<const State*>(self.state.get())->supported ? rigel::Status{} : rigel::Status{Decline::other, "no"};
    };
    k.cost = [](const Kernel<Contraction>& self, const Contraction&, Plan&) {
      return static_cast<const State*>(self.state.get())->seconds;
    };
    k.workspace = [](const Kernel<Contraction>& self, const Contraction&, const Plan&) -> WorkspaceSize {
      return {.bytes = static_cast<const State*>(self.state.get())->bytes};
    };
    k.run = [](const Kernel<Contraction>& self, const Contraction& p, const Plan&, const Workspace& workspace) {
      std::memset(workspace.data, 1, workspace.bytes);
      CHECK(workspace.bytes == static_cast<const State*>(self.state.get())->bytes);
      first_of_c(p) = static_cast<const State*>(self.state.get())->value;
    };
    rigel::register_kernel(k);
  }
  CHECK(!watched.expired());
  const auto a = matrix<float, Exec>(1, 1, {1}), c = matrix<float, Exec>(1, 1, {}, "user.stateful");
  rigel::contract(Exec{}, s, a, a, c);
  CHECK(support::values(c) == Values{42});
  CHECK(rigel::workspace_size(Exec{}, s, a, a, c) == 300);
}

TEST_CASE("kernels: workspace() and run() get the plan of cost(), which is asked once") {
  static int asked = 0;
  Kernel<Contraction> k = kernel("planner", [](const Kernel<Contraction>&, const Contraction& p, const Plan& plan,
                                               const Workspace&) { first_of_c(p) = plan.get<float>(); });
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
    ++asked;
    plan.keep(static_cast<float>(10 * p.k));
    return 1e-12;
  };
  k.workspace = [](const Kernel<Contraction>&, const Contraction&, const Plan& plan) -> WorkspaceSize {
    return {.bytes = static_cast<std::size_t>(plan.get<float>())};
  };
  rigel::register_kernel(k);
  const auto a = matrix<float, Exec>(1, 7), b = matrix<float, Exec>(7, 1), c = matrix<float, Exec>(1, 1, {}, "user.planner");
  rigel::contract(Exec{}, s, a, b, c);
  CHECK(asked == 1);
  CHECK(support::values(c) == Values{70});
  CHECK(rigel::workspace_size(Exec{}, s, a, b, c) == 70);
}

TEST_CASE("kernels: a workspace has a part on the host, from the pool or of the caller") {
  static void* seen = nullptr;
  Kernel<Contraction> k =
      kernel("hosted", [](const Kernel<Contraction>&, const Contraction& p, const Plan&, const Workspace& workspace) {
        std::memset(workspace.host_data, 3, 1000);
        seen = workspace.host_data;
        first_of_c(p) = workspace.bytes == 0 && workspace.host_bytes == 1000 ? 5.f : -1.f;
      });
  k.workspace = [](const Kernel<Contraction>&, const Contraction&, const Plan&) -> WorkspaceSize {
    return {.host_bytes = 1000};
  };
  rigel::register_kernel(k);
  const auto a = matrix<float, Exec>(1, 1, {1}), c = matrix<float, Exec>(1, 1, {}, "user.hosted");
  auto problem = rigel::problem_of(Exec{}, s, a, a, c);
  CHECK(rigel::workspace_size(problem).host_bytes == 1000);
  rigel::run(problem);
  CHECK(support::values(c) == Values{5});
  alignas(64) static unsigned char memory[1064];
  problem.workspace.host_data = memory;
  problem.workspace.host_bytes = 1000;
  rigel::run(problem);
  CHECK(seen == memory);
  problem.workspace.host_bytes = 999;
  CHECK(support::caught([&] { rigel::run(problem); }).lacks({"host part", "999 bytes", "user.hosted", "1000"}) == "");
  problem.workspace = {.host_data = memory + 1, .host_bytes = 1063};
  CHECK(support::caught([&] { rigel::run(problem); }).lacks({"host part", "64 bytes"}) == "");
}

TEST_CASE("kernels: operands in other layouts than a kernel asks for are declined") {
  using Left = Kokkos::View<float**, Kokkos::LayoutLeft, Exec>;
  using Right = Kokkos::View<float**, Kokkos::LayoutRight, Exec>;
  Kernel<Contraction> k = kernel(
      "rows", [](const Kernel<Contraction>&, const Contraction& p, const Plan&, const Workspace&) { first_of_c(p) = 9; });
  k.info.operands[0] = {rigel::Layout::row_major, 4};
  rigel::register_kernel(k);
  const auto declined = [&](const auto& a) {
    const Left b("B", a.extent(1), 2);
    const Right c("user.rows", a.extent(0), 2);
    const auto one = candidate(rigel::problem_of(Exec{}, s, a, b, c), "user.rows");
    CHECK(one.status.reason.empty() == bool(one.status));
    return one.status.decline;
  };
  CHECK(declined(Right("A", 4, 8)) == Decline::none);
  CHECK(declined(Left("A", 4, 8)) == Decline::layout);
  CHECK(declined(Right("A", 4, 6)) == Decline::layout);  // K is not a multiple of 4
  CHECK(declined(Kokkos::subview(Right("A", 4, 9), Kokkos::ALL, Kokkos::pair(0, 8))) == Decline::layout);  // rows 9 apart
  CHECK(declined(Kokkos::subview(Right("A", 4, 16), Kokkos::ALL, Kokkos::pair(1, 9))) ==
        Decline::layout);  // starts at 4 bytes
  CHECK(declined(Kokkos::subview(Right("A", 4, 16), Kokkos::ALL, Kokkos::pair(4, 12))) == Decline::none);
  CHECK(declined(Left("A", 1, 8)) == Decline::none);  // one row has both layouts: 8 elements of it lie together
  CHECK(declined(Right("A", 4, 1)) == Decline::layout);
}

TEST_CASE("kernels: run() of a kernel keeps to the bit class of a batch_invariant call") {
  const auto run = [](const Kernel<Contraction>&, const Contraction& p, const Plan&, const Workspace&) {
    first_of_c(p) = 3;
  };
  Kernel<Contraction> fast = kernel("classes", run), slow = kernel("classes.slow", run);
  fast.info.promises = slow.info.promises = rigel::Promise::repeatable | rigel::Promise::batch_invariant;
  slow.cost = [](const Kernel<Contraction>&, const Contraction&, Plan&) { return 1e-3; };
  slow.supports = fast.supports = [](const Kernel<Contraction>&, const Contraction& p) -> rigel::Status {
    return p.c.label == "user.classes" ? rigel::Status{} : rigel::Status{Decline::other, "C has another label"};
  };
  rigel::register_kernel(fast);
  rigel::register_kernel(slow);
  const auto a = matrix<float, Exec>(1, 1, {1}), c = matrix<float, Exec>(1, 1, {}, "user.classes");
  const auto free = rigel::problem_of(Exec{}, s, a, a, c),
             invariant = rigel::problem_of(Exec{}, s, a, a, c, rigel::epilogue::Program{},
                                           {.require = rigel::Promise::batch_invariant});
  const Kernel<Contraction>& other = *candidate(free, "user.classes.slow").kernel;
  rigel::run(other, free);
  CHECK(support::values(c) == Values{3});
  CHECK(rigel::supports(other, invariant).decline == Decline::none);  // the class is the engine's business
  CHECK(support::caught([&] { rigel::run(other, invariant); }).decline == Decline::bit_class);
}

TEST_CASE("kernels: one that is asked for by name, of another semiring, says so") {
  const auto a = matrix<float, Exec>(1, 1, {1}), c = matrix<float, Exec>(1, 1);
  const auto e = support::caught(
      [&] { rigel::contract(Exec{}, s, a, a, c, rigel::epilogue::Program{}, {.kernel = "reference.min_plus.f32"}); });
  CHECK(e.code == Code::unsupported);
  CHECK(e.decline == Decline::key);
}

TEST_CASE("Precision::automatic admits kernels whose bound for this K is no larger than a chain's") {
  // The chain's bound is K + 2, this kernel's 102 + K/2: no larger from K = 200 on.
  Kernel<Contraction> k = kernel(
      "rounds", [](const Kernel<Contraction>&, const Contraction& p, const Plan&, const Workspace&) { first_of_c(p) = 1; });
  k.info.promises = rigel::Promise::repeatable;
  k.info.precision = Precision::tf32;
  k.info.accuracy = {102, 0.5};
  rigel::register_kernel(k);
  const auto answer = [](int terms, const rigel::ContractOptions& options = {}) {
    const auto a = matrix<float, Exec>(1, terms), b = matrix<float, Exec>(terms, 1),
               c = matrix<float, Exec>(1, 1, {}, "user.rounds");
    return candidate(rigel::problem_of(Exec{}, s, a, b, c, rigel::epilogue::Program{}, options), "user.rounds");
  };
  CHECK(answer(199).status.decline == Decline::precision);
  CHECK(answer(200).status.decline == Decline::none);
  CHECK(answer(200).chosen);
  CHECK(answer(200).admission ==
        "rounds terms (precision tf32), but its bound of 202 u is no larger than the 202 u of one chain");
  CHECK(answer(5000, {.precision = Precision::accumulator}).status.decline == Decline::precision);
  CHECK(answer(5000, {.precision = Precision::promoted}).status.decline == Decline::precision);
  CHECK(answer(5, {.precision = Precision::tf32}).status.decline == Decline::none);
  CHECK(answer(5000, {.require = rigel::Promise::reference_bits}).status.decline == Decline::promises);
}

TEST_CASE("Precision::automatic admits kernels of floats that state a small error of each result") {
  const auto decline = [](const std::string& name, double relative_error) {
    Kernel<Contraction> k =
        kernel(name, [](const Kernel<Contraction>&, const Contraction&, const Plan&, const Workspace&) {});
    k.info.precision = Precision::promoted;
    k.info.accuracy = {1000, 1};
    k.info.relative_error = relative_error;
    rigel::register_kernel(k);
    const auto a = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(1, 1, {}, "user." + name);
    const auto asked = [&](bool accumulate) {
      return candidate(rigel::problem_of(Exec{}, s, a, a, c, rigel::epilogue::Program{}, {.accumulate = accumulate}),
                       "user." + name)
          .status.decline;
    };
    CHECK(asked(true) == Decline::precision);  // the sum may cancel
    return asked(false);
  };
  CHECK(decline("guarded", 2e-5) == Decline::none);
  CHECK(decline("guarded loosely", 2.1e-5) == Decline::precision);
  CHECK(decline("unguarded", 0) == Decline::precision);
}

TEST_CASE("kernels: of one operation, listed and refused by name") {
  const auto contract = rigel::kernels({.operation = "contract"}), solve = rigel::kernels({.operation = "solve"}),
             gradient = rigel::kernels({.operation = "gradient"}), reduce = rigel::kernels({.operation = "reduce"});
  CHECK(contract.size() + solve.size() + gradient.size() + reduce.size() == rigel::kernels().size());
  for (const auto& info : contract) CHECK(info.operation == "contract");
  for (const auto& info : solve) CHECK(info.operation == "solve");
  for (const auto& info : gradient) CHECK(info.operation == "gradient");
  for (const auto& info : reduce) CHECK(info.operation == "reduce");
  Kernel<Contraction> k = edge::host_kernel("refused");
  k.info.precision = Precision::automatic;
  CHECK(support::caught([&] { rigel::register_kernel(k); }).lacks({"user.refused", "precision automatic"}) == "");
  k = edge::host_kernel("refused");
  k.info.operands[1].alignment = 0;
  CHECK(support::caught([&] { rigel::register_kernel(k); }).lacks({"user.refused", "alignment"}) == "");
}

TEST_CASE_TEMPLATE("calls: options without an epilogue", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(2, 2, {1, 2, 3, 4}), b = matrix<float, Exec>(2, 2, {5, 6, 7, 8}),
             c = matrix<float, Exec>(2, 2, {1, 1, 1, 1});
  rigel::contract(Exec{}, s, a, b, c, {.accumulate = true});
  CHECK(support::values(c) == Values{20, 23, 44, 51});
  rigel::contract(Exec{}, s, a, b, c, {});
  CHECK(support::values(c) == Values{19, 22, 43, 50});
  const rigel::ContractOptions by_reference{.kernel = "reference"};
  CHECK(rigel::explain(Exec{}, s, a, b, c, by_reference).find("* reference.plus_times.f32") != std::string::npos);
  CHECK(rigel::workspace_size(Exec{}, s, a, b, c, by_reference) ==
        rigel::workspace_size(Exec{}, s, a, b, c, rigel::epilogue::Program{}, by_reference));
  CHECK(rigel::select(rigel::problem_of(Exec{}, s, a, b, c, by_reference)).info.family == "reference");
}

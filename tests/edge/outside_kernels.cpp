// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels from outside: providers that make them for a problem, hostile ones too; candidates under a predicate; verify() of kernels that are not
// registered; and how long all of these live.
#include "host_kernel.hpp"

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>

#include <rigel/gradient_problem.hpp>
#include <rigel/outside_kernels.hpp>
#include <rigel/pinned.hpp>
#include <rigel/reduction_problem.hpp>
#include <rigel/solve.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

using rigel::Code, rigel::Contraction, rigel::Decline, rigel::Kernel, rigel::KernelInfo, rigel::KernelOwner;
using rigel::KernelPredicate, rigel::Pinned, rigel::Provider, rigel::Status;
using support::caught, support::matrix, support::values;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Values = std::vector<double>;
using Kernels = std::vector<KernelOwner>;
const rigel::plus_times<float> s;

// A provider for the time of a test.
class Registered {
 public:
  Registered(const std::string& name, Provider provider) : name_(name) {
    rigel::register_provider(name, std::move(provider));
  }
  ~Registered() { rigel::unregister_provider(name_); }
  Registered(const Registered&) = delete;

 private:
  std::string name_;
};

// A kernel of a provider's family, which covers whatever its facts say and C's of floats.
template <edge::Bug bug = edge::Bug::none>
Kernel<Contraction> kernel_of(const std::string& family, const std::string& name, int rows = 16) {
  Kernel<Contraction> k = edge::host_kernel<bug>("any");
  k.info.family = family;
  k.info.name = family + '.' + name;
  k.info.tile = {rows, rows, 1};
  k.supports = [](const Kernel<Contraction>&, const Contraction& p) -> Status {
    if (!p.program || p.c.type != rigel::Scalar::f32) return {Decline::other, "C is no f32, or the epilogue a functor"};
    return {};
  };
  k.cost = [](const Kernel<Contraction>& own, const Contraction&, rigel::Plan&) { return 1e-12 * own.info.tile.m; };
  return k;
}

// A provider of kernels that are made when they are first wanted, and counted.
struct Tiles {
  std::string family;
  std::vector<int> rows = {16, 32};
  std::mutex mutex = {};
  std::map<int, KernelOwner> made = {};
  std::atomic<int> asked = 0;

  Kernels operator()(const Contraction&, const KernelPredicate& wanted) {
    ++asked;
    Kernels list;
    for (const int one : rows) {
      const Kernel<Contraction> kernel = kernel_of(family, std::to_string(one), one);
      if (!wanted(kernel.info)) continue;
      const std::lock_guard lock(mutex);
      if (!made[one]) made[one] = rigel::make_kernel(kernel);
      list.push_back(made[one]);
    }
    return list;
  }
  std::size_t count() const { return made.size(); }
};

Provider by_reference(Tiles& tiles) {
  return [&](const Contraction& p, const KernelPredicate& wanted) { return tiles(p, wanted); };
}

struct Matrices {
  decltype(matrix<float, Exec>(1, 1)) a = matrix<float, Exec>(2, 3, {1, 2, 3, 4, 5, 6}),
                                      b = matrix<float, Exec>(3, 2, {1, 0, 0, 1, 1, 1}), c = matrix<float, Exec>(2, 2);
};
// A·B: {1 + 3, 2 + 3; 4 + 6, 5 + 6}.
const Values product = {4, 5, 10, 11};

// An epilogue that these kernels do not take.
struct Same {
  KOKKOS_FUNCTION float operator()(float value, std::int64_t, std::int64_t, std::int64_t) const { return value; }
};

support::Caught refused(const Provider& provider, const rigel::ContractOptions& options = {}) {
  const Registered registered("hostile", provider);
  const Matrices x;
  Kokkos::deep_copy(x.c, -1);
  const support::Caught e = caught([&] { rigel::contract(Exec{}, s, x.a, x.b, x.c, options); });
  CHECK(values(x.c) == Values{-1, -1, -1, -1});  // nothing is written
  return e;
}

}  // namespace

TEST_CASE("providers: contract() takes their kernels, which are made when they are wanted, once") {
  Tiles tiles{.family = "lazy"};
  const Registered registered("lazy", by_reference(tiles));
  CHECK(std::ranges::count(rigel::providers(), "lazy") == 1);
  const Matrices x;
  rigel::contract(Exec{}, rigel::min_plus<float>{}, x.a, x.b, x.c);  // of another key
  CHECK(tiles.asked == 1);
  CHECK(tiles.count() == 0);
  rigel::contract(Exec{}, s, x.a, x.b, x.c, {.kernel = "reference"});  // names another family
  rigel::contract(Exec{}, s, x.a, x.b, x.c, {.kernel = "reference|host"});
  CHECK(tiles.asked == 1);
  Kokkos::deep_copy(x.c, -1);
  rigel::contract(Exec{}, s, x.a, x.b, x.c, {.kernel = "lazy.32"});
  CHECK(values(x.c) == product);
  CHECK(tiles.count() == 1);
  CHECK(tiles.made.begin()->first == 32);
  const auto problem = rigel::problem_of(Exec{}, s, x.a, x.b, x.c);
  CHECK(rigel::select(problem).info.name == "lazy.16");  // its predicted time is the least of all
  CHECK(&rigel::select(problem) == tiles.made[16].get());
  CHECK(tiles.count() == 2);
  const std::string text = rigel::explain(problem);
  CHECK(text.find("* lazy.16: ") != std::string::npos);
  CHECK(text.find("  lazy.32: ") != std::string::npos);
  for (const KernelOwner& one : {tiles.made[16], tiles.made[32]}) {
    CHECK(one->info.operation == "contract");
    CHECK(one->info.facts != nullptr);
  }
}

TEST_CASE("providers: what a call names, and what none has") {
  Tiles tiles{.family = "named.tiles"};
  const Registered registered("named.tiles", by_reference(tiles));
  const Matrices x;
  const auto run = [&](const char* name) { rigel::contract(Exec{}, s, x.a, x.b, x.c, {.kernel = name}); };
  for (const char* name : {"named", "named.tiles", "named.tiles.16", "nobody|named.tiles.32"}) {
    CAPTURE(name);
    Kokkos::deep_copy(x.c, -1);
    run(name);
    CHECK(values(x.c) == product);
  }
  const auto unknown = caught([&] { run("named.tiles.64"); });
  CHECK(unknown.code == Code::not_found);
  CHECK(unknown.lacks({"no kernel is named 'named.tiles.64'", "named.tiles"}) == "");
  const auto declined = caught([&] { rigel::contract(Exec{}, s, x.a, x.b, x.c, Same{}, {.kernel = "named.tiles.16"}); });
  CHECK(declined.code == Code::unsupported);
  CHECK(declined.decline == Decline::other);
  CHECK(declined.lacks({"named.tiles.16: C is no f32, or the epilogue a functor"}) == "");
}

TEST_CASE("providers: kernels of a batch_invariant call, and the class of a provider's own") {
  // Two tiles of one class, which do not promise the reference's bits. The one for many rows wins the nominal problem.
  const Registered registered("classes", [](const Contraction& p, const KernelPredicate& wanted) {
    Kernels list;
    for (const int rows : {16, 1024}) {
      Kernel<Contraction> k = kernel_of("classes", std::to_string(rows), rows);
      k.info.promises = rigel::Promise::repeatable | rigel::Promise::batch_invariant;
      k.info.bit_class = "a class whose name is too long to be kept in a string itself";
      k.supports = [](const Kernel<Contraction>& own, const Contraction& of) -> Status {
        return (of.m >= 1024) == (own.info.tile.m == 1024) ? Status{} : Status{Decline::extents, "another M"};
      };
      if (p.k == 3 && wanted(k.info)) list.push_back(rigel::make_kernel(k));
    }
    return list;
  });
  const Matrices x;
  const rigel::ContractOptions invariant = {.require = rigel::Promise::batch_invariant};
  const auto problem = rigel::problem_of(Exec{}, s, x.a, x.b, x.c, rigel::epilogue::Program{}, invariant);
  CHECK(rigel::select(problem).info.name == "classes.16");
  Kokkos::deep_copy(x.c, -1);
  rigel::run(problem);
  CHECK(values(x.c) == product);
  const auto found = rigel::candidates(problem, [](const KernelInfo& info) { return info.family != "classes"; });
  REQUIRE(!found.kernels.empty());
  for (const auto& one : found.kernels) CHECK(!one.status);
}

TEST_CASE("providers: one that fails is named, and nothing is written") {
  const auto error = refused([](const auto&...) -> Kernels { throw rigel::Error(Code::device, "no device"); });
  CHECK(error.code == Code::device);
  CHECK(error.lacks({"contract: provider 'hostile' failed: no device"}) == "");
  const auto standard = refused([](const auto&...) -> Kernels { throw std::runtime_error("the compiler crashed"); });
  CHECK(standard.code == Code::unsupported);
  CHECK(standard.lacks({"provider 'hostile' failed: the compiler crashed"}) == "");
  CHECK(refused([](const auto&...) -> Kernels { throw 42; }).lacks({"provider 'hostile' failed: "}) == "");
  const Registered registered("hostile", [](const auto&...) -> Kernels { throw std::runtime_error("never works"); });
  const Matrices x;
  rigel::contract(Exec{}, s, x.a, x.b, x.c, {.kernel = "reference|portable|host"});  // which do not ask it
  CHECK(values(x.c) == product);
}

TEST_CASE("providers: null pointers, duplicates, and kernels that are not in order") {
  const auto yields = [](const Kernel<Contraction>& kernel) {
    return refused([=](const auto&...) { return Kernels{std::make_shared<const Kernel<Contraction>>(kernel)}; });
  };
  const auto null = refused([](const auto&...) { return Kernels{nullptr}; });
  CHECK(null.code == Code::invalid_argument);
  CHECK(null.lacks({"provider 'hostile' yields a null pointer"}) == "");
  const KernelOwner one = rigel::make_kernel(kernel_of("hostile", "one"));
  const auto twice = refused([=](const auto&...) { return Kernels{one, one}; });
  CHECK(twice.code == Code::duplicate);
  CHECK(twice.lacks({"provider 'hostile' yields 'hostile.one', a name that another kernel has already"}) == "");
  {
    const Kernel<Contraction> taken = edge::host_kernel("taken");
    rigel::register_kernel(taken);
    const Registered registered("user", [=](const auto&...) { return Kernels{rigel::make_kernel(taken)}; });
    const Matrices x;
    CHECK(caught([&] {
            rigel::contract(Exec{}, s, x.a, x.b, x.c);
          }).lacks({"provider 'user' yields 'user.taken', a name that another kernel has already"}) == "");
  }
  CHECK(yields(kernel_of("foreign", "one"))
            .lacks({"'foreign.one' is of the family 'foreign', expected the provider's name"}) == "");
  Kernel<Contraction> without_run = kernel_of("hostile", "none");
  without_run.run = nullptr;
  CHECK(yields(without_run).lacks({"provider 'hostile': 'hostile.none' has no run function"}) == "");
  CHECK(caught([&] { rigel::make_kernel(without_run); }).lacks({"make_kernel: 'hostile.none' has no run function"}) == "");
  Kernel<Contraction> unknown = kernel_of("hostile", "unknown");
  unknown.info.semiring = "nothing_of_the_kind";
  CHECK(caught([&] {
          rigel::make_kernel(unknown);
        }).lacks({"make_kernel: ", "nothing_of_the_kind", "none of Rigel's own"}) == "");
  const auto make_no = [&](const std::string& name, const Provider& provider) {
    return caught([&] { rigel::register_provider(name, provider); });
  };
  const Provider empty = [](const auto&...) { return Kernels{}; };
  CHECK(make_no("", empty).code == Code::invalid_argument);
  CHECK(make_no("a|b", empty).code == Code::invalid_argument);
  CHECK(make_no("hostile", nullptr).lacks({"register_provider: 'hostile' has no function"}) == "");
  const Registered registered("hostile", empty);
  CHECK(make_no("hostile", empty).code == Code::duplicate);
  CHECK_FALSE(rigel::unregister_provider("nobody"));
}

TEST_CASE("providers: calls that one makes do not ask it again; it may register others") {
  int depth = 0, deepest = 0;
  const Matrices x, y;
  const Registered registered("recursive", [&](const Contraction& p, const KernelPredicate&) {
    deepest = std::max(deepest, ++depth);
    if (p.c.data == x.c.data()) {
      rigel::contract(Exec{}, s, y.a, y.b, y.c);
      rigel::register_provider("recursive.other", [](const auto&...) { return Kernels{}; });
      rigel::unregister_provider("recursive.other");
    }
    --depth;
    return Kernels{};
  });
  rigel::contract(Exec{}, s, x.a, x.b, x.c);
  CHECK(deepest == 1);
  CHECK(values(y.c) == product);
  CHECK(values(x.c) == product);
}

TEST_CASE("providers: kernels live as long as anything uses them") {
  std::weak_ptr<const Kernel<Contraction>> pinned_one, found_one, selected_one;
  const auto registered = std::make_unique<Registered>("mortal", [&](const Contraction& p, const KernelPredicate& wanted) {
    const KernelOwner fresh = rigel::make_kernel(kernel_of("mortal", "fresh"));
    if (!wanted(fresh->info)) return Kernels{};
    (p.c.label == "pinned" ? pinned_one : p.c.label == "found" ? found_one : selected_one) = fresh;
    return Kernels{fresh};
  });
  const Matrices x;
  const auto c = [](const char* label) { return matrix<float, Exec>(2, 2, {}, label); };
  const auto of_pinned = c("pinned"), of_found = c("found"), of_selected = c("selected"), other = c("other");
  rigel::contract(Exec{}, s, x.a, x.b, other, {.kernel = "mortal"});
  CHECK(values(other) == product);
  CHECK(selected_one.expired());  // nothing uses it after the call
  const auto first = rigel::problem_of(Exec{}, s, x.a, x.b, of_pinned);
  auto pinned = std::make_unique<Pinned>(first);
  CHECK(pinned->kernel()->info.name == "mortal.fresh");
  const auto second = rigel::problem_of(Exec{}, s, x.a, x.b, of_found);
  auto found = rigel::candidates(second, [](const KernelInfo& info) { return info.family == "mortal"; });
  const Kernel<Contraction>& selected = rigel::select(rigel::problem_of(Exec{}, s, x.a, x.b, of_selected));
  CHECK(rigel::unregister_provider("mortal"));
  pinned->run();
  CHECK(values(of_pinned) == product);
  REQUIRE(found.kernels.size() == 1);
  auto kept = std::make_unique<Pinned>(found.kernels[0].owner, second);
  found = {};
  CHECK_FALSE(found_one.expired());
  kept->run();
  CHECK(values(of_found) == product);
  rigel::run(selected, rigel::problem_of(Exec{}, s, x.a, x.b, of_selected));
  CHECK(values(of_selected) == product);
  const auto none = caught([&] { Pinned(KernelOwner{}, second); });
  CHECK(none.code == Code::invalid_argument);
  CHECK(none.lacks({"Pinned: the kernel is a null pointer"}) == "");
  pinned = nullptr;
  kept = nullptr;
  CHECK(pinned_one.expired());
  CHECK(found_one.expired());
  CHECK_FALSE(selected_one.expired());  // select() returned a reference to it
  CHECK(rigel::select(second).info.family != "mortal");
}

TEST_CASE("providers: threads call while others come and go") {
  Tiles tiles{.family = "shared"};
  const Registered registered("shared", by_reference(tiles));
  std::atomic<int> wrong = 0;
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) {
      rigel::register_provider("coming", [](const Contraction&, const KernelPredicate& wanted) {
        const KernelOwner one = rigel::make_kernel(kernel_of("coming", "one", 1));
        return wanted(one->info) ? Kernels{one} : Kernels{};
      });
      rigel::unregister_provider("coming");
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const Matrices x;
      for (int i = 0; i < 50; ++i) {
        const auto problem = rigel::problem_of(Exec{}, s, x.a, x.b, x.c);
        const Pinned pinned(problem);
        const std::string_view family = pinned.kernel()->info.family;
        wrong += family != "shared" && family != "coming" ? 1 : 0;
      }
    });
  for (std::thread& one : threads) one.join();
  ends = true;
  other.join();
  CHECK(wrong == 0);
  CHECK(tiles.count() >= 1);
}

TEST_CASE("candidates(problem, predicate): what it selects, in the order of their predicted times, and why not") {
  Tiles tiles{.family = "found", .rows = {32, 64, 16}};
  const Registered registered("found", by_reference(tiles));
  const Matrices x;
  const auto problem = rigel::problem_of(Exec{}, s, x.a, x.b, x.c);
  const auto select = [&](int rows) {
    return rigel::candidates(problem, [=](const KernelInfo& info) { return info.family == "found" && info.tile.m == rows; });
  };
  const auto none = select(256);
  CHECK(none.kernels.empty());
  CHECK(tiles.count() == 0);  // nothing was made
  const auto registered_ones =
      rigel::kernels({.operation = "contract", .semiring = "plus_times", .element = rigel::Scalar::f32});
  const auto known = std::ranges::count_if(registered_ones, [](const KernelInfo& info) {
    return info.accumulator == rigel::Scalar::f32 && !info.semiring_type;  // other tests register types of that name
  });
  CAPTURE(none.explanation);
  CHECK(none.explanation.starts_with("contract plus_times f32, 2x2x3 on "));
  CHECK(none.explanation.find("(none of " + std::to_string(known + 3) + " kernels of this key: " + std::to_string(known) +
                              " registered or compiled with the call, 3 of provider 'found')\n") != std::string::npos);
  const auto one = select(64);
  REQUIRE(one.kernels.size() == 1);
  CHECK(tiles.count() == 1);
  CHECK(one.kernels[0].chosen);
  CHECK(one.kernels[0].owner.get() == one.kernels[0].kernel);
  CHECK(one.explanation.find("* found.64: ") != std::string::npos);
  CHECK(one.explanation.find("(1 of ") != std::string::npos);
  const auto all = rigel::candidates(
      problem, [](const KernelInfo& info) { return info.family == "found" || info.name == "reference.plus_times.f32"; });
  REQUIRE(all.kernels.size() == 4);
  const auto name = [&](std::size_t i) { return all.kernels[i].kernel->info.name; };
  CHECK(name(0) == "found.16");
  CHECK(name(1) == "found.32");
  CHECK(name(2) == "found.64");
  CHECK(name(3) == "reference.plus_times.f32");
  for (std::size_t i = 0; i < 4; ++i) CHECK(all.kernels[i].chosen == (i == 0));
  for (const auto& candidate : all.kernels) {
    Kokkos::deep_copy(x.c, -1);
    Pinned(candidate.owner, problem).run();
    CHECK(values(x.c) == product);
  }
  // Kernels that do not cover the problem come last, with their reasons.
  const auto accumulated = rigel::problem_of(Exec{}, s, x.a, x.b, x.c, Same{});
  const auto some = rigel::candidates(accumulated, [](const KernelInfo& info) {
    return info.family == "found" ? info.tile.m == 16 : info.family.starts_with("reference");
  });
  REQUIRE(some.kernels.size() >= 2);
  CHECK(some.kernels.front().chosen);
  CHECK_FALSE(some.kernels.back().status);
  CHECK(some.explanation.find("  found.16: C is no f32, or the epilogue a functor\n") != std::string::npos);
  CHECK(caught([&] { rigel::candidates(problem, KernelPredicate{}); }).code == Code::invalid_argument);
  const auto throwing = caught([&] {
    rigel::candidates(problem, [](const KernelInfo&) -> bool { throw rigel::Error(Code::not_found, "no such column"); });
  });
  CHECK(throwing.lacks({"no such column"}) == "");
}

TEST_CASE("verify(kernel): kernels that nobody registered are held to their promises") {
  const auto right = rigel::verify(kernel_of("unknown", "right"), 5);
  CHECK(right.report == "");
  CHECK(right.ok);
  CHECK(right.problems >= 20);
  const KernelOwner made = rigel::make_kernel(kernel_of("unknown", "right"));
  CHECK(rigel::verify(*made, 5).digest == right.digest);
  CHECK(caught([] { rigel::verify("unknown.right"); }).code == Code::not_found);

  // It says that it has the reference's bits.
  const auto lies = rigel::verify(kernel_of<edge::Bug::inaccurate>("unknown", "lies"), 5);
  CHECK_FALSE(lies.ok);
  CHECK(lies.report.find("unknown.lies") != std::string::npos);
  CHECK(lies.report.find("outputs differ") != std::string::npos);
  Kernel<Contraction> bounded = kernel_of<edge::Bug::inaccurate>("unknown", "bounded");
  bounded.info.promises = rigel::Promise::repeatable;
  bounded.info.accuracy = {0x1p13, 1};
  CHECK(rigel::verify(bounded).ok);
  Kernel<Contraction> in_class = bounded;  // of a class that a registered kernel has
  in_class.info.bit_class = "unknown.class";
  in_class.info.promises = rigel::Promise::repeatable | rigel::Promise::batch_invariant;
  Kernel<Contraction> other = in_class;
  other.info.family = "user";  // no other test gets it
  other.info.name = "user.of_class";
  other.run = kernel_of("unknown", "right").run;
  other.supports = edge::host_kernel("of_class").supports;
  rigel::register_kernel(other);
  CHECK(rigel::verify(in_class).report.find("outputs differ from user.of_class's, of the same bit class") !=
        std::string::npos);

  Kernel<Contraction> wrong = kernel_of("unknown", "wrong");
  wrong.info.spaces = 0;
  const auto refused = caught([&] { rigel::verify(wrong); });
  CHECK(refused.code == Code::invalid_argument);
  CHECK(refused.lacks({"verify: 'unknown.wrong' runs in no execution space"}) == "");
  Kernel<Contraction> never = kernel_of("unknown", "never");
  never.supports = [](const Kernel<Contraction>&, const Contraction&) -> Status { return {Decline::other, "never"}; };
  CHECK(caught([&] { rigel::verify(never); }).code == Code::unsupported);
}

TEST_CASE("verify(kernel): of every operation") {
  rigel::Kernel<rigel::Solve> solves = {};
  rigel::Kernel<rigel::Gradient> differentiates = {};
  rigel::Kernel<rigel::Reduction> reduces = {};
  for (KernelInfo* info : {&solves.info, &differentiates.info, &reduces.info}) info->name = info->family = "empty";
  CHECK(caught([&] { rigel::verify(solves); }).code == Code::invalid_argument);
  CHECK(caught([&] { rigel::verify(differentiates); }).code == Code::invalid_argument);
  CHECK(caught([&] { rigel::verify(reduces); }).code == Code::invalid_argument);
}

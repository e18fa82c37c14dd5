// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// register_kernel(): contract() selects users' kernels; inconsistent or duplicate ones are refused; promises and costs decide
// the choice, and explain() shows it.
#include "host_kernel.hpp"

#include <rigel/distance.hpp>

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

using rigel::Code, rigel::Promise;
using support::matrix;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
const rigel::plus_times<float> s;
const rigel::epilogue::Program none;

template <class Change>
Code refusal(const Change& change) {
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel("inconsistent");
  change(k);
  const auto e = support::caught([&] { rigel::register_kernel(k); });
  if (!k.info.name.empty()) CHECK(e.lacks({"register_kernel: ", k.info.name.c_str()}) == "");
  return e.code;
}

// The line of explain() that '*' marks.
std::string marked(const std::string& text) {
  const auto at = text.find("* ");
  REQUIRE(at != std::string::npos);
  CHECK(text.find("* ", at + 1) == std::string::npos);
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST_CASE("register_kernel: contract() picks the user's kernel") {
  rigel::register_kernel(edge::host_kernel("mine"));
  const auto a = matrix<float, Exec>(1, 2, {1, 2}), b = matrix<float, Exec>(2, 1, {3, 4});
  const auto c = matrix<float, Exec>(1, 1, {}, "user.mine"), other = matrix<float, Exec>(1, 1);
  int runs = edge::runs_of_host_kernel;
  rigel::contract(Exec{}, s, a, b, c, rigel::epilogue::scale(2));
  CHECK(edge::runs_of_host_kernel == runs + 1);
  CHECK(support::values(c) == std::vector<double>{22});
  CHECK(marked(rigel::explain(Exec{}, s, a, b, c)).find("user.mine") != std::string::npos);
  // It declines another C, so one of the library's kernels runs.
  rigel::contract(Exec{}, s, a, b, other);
  CHECK(edge::runs_of_host_kernel == runs + 1);
  CHECK(support::values(other) == std::vector<double>{11});
  const std::string text = rigel::explain(Exec{}, s, a, b, other);
  CHECK(text.find("user.mine: C has another label") != std::string::npos);
  CHECK(marked(text).find("user.mine") == std::string::npos);
  // By name, for any C.
  rigel::contract(Exec{}, s, a, b, other, none, {.kernel = "user.mine"});
  CHECK(edge::runs_of_host_kernel == runs + 2);
  // Listed like any other.
  CHECK(rigel::kernels({.name = "user.mine"}).size() == 1);
  CHECK(rigel::kernels({.name = "user.mine", .semiring = "min_plus"}).empty());
}

TEST_CASE("register_kernel: a name is taken once") {
  rigel::register_kernel(edge::host_kernel("twice"));
  const auto e = support::caught([] { rigel::register_kernel(edge::host_kernel("twice")); });
  CHECK(e.code == Code::duplicate);
  CHECK(e.lacks({"user.twice", "registered already"}) == "");
  const auto f = support::caught([] {
    rigel::Kernel<rigel::Contraction> k = edge::host_kernel("x");
    k.info.name = "reference.plus_times.f32", k.info.family = "reference";
    rigel::register_kernel(k);
  });
  CHECK(f.code == Code::duplicate);
}

TEST_CASE("register_kernel: inconsistent information is refused") {
  CHECK(refusal([](auto& k) { k.run = nullptr; }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.cost = nullptr; }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.name.clear(); }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.semiring.clear(); }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.spaces = 0; }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.tile.m = -1; }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.tile.k = -8; }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.stages = 0; }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.shared_memory = -1; }) == Code::invalid_argument);
  CHECK(refusal([](auto& k) { k.info.min_compute_capability = 90, k.info.max_compute_capability = 80; }) ==
        Code::invalid_argument);
  CHECK(rigel::kernels({.name = "user.inconsistent"}).empty());
}

TEST_CASE("require: a kernel that does not promise it is not chosen; without another one the call is refused") {
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel("casual");
  k.info.promises = Promise::repeatable;
  rigel::register_kernel(k);
  const auto a = matrix<float, Exec>(2, 2), b = matrix<float, Exec>(2, 2),
             c = matrix<float, Exec>(2, 2, {7, 7, 7, 7}, "user.casual");
  CHECK(marked(rigel::explain(Exec{}, s, a, b, c)).find("user.casual") != std::string::npos);
  CHECK(marked(rigel::explain(Exec{}, s, a, b, c, none, {.require = Promise::repeatable})).find("user.casual") !=
        std::string::npos);
  const std::string text = rigel::explain(Exec{}, s, a, b, c, none, {.require = Promise::reference_bits});
  CHECK(marked(text).find("user.casual") == std::string::npos);
  CHECK(text.find("user.casual: promises only repeatable") != std::string::npos);
  const auto e = support::caught([&] {
    rigel::contract(Exec{}, s, a, b, c, none,
                    {.require = Promise::reference_bits | Promise::repeatable, .kernel = "user.casual"});
  });
  CHECK(e.code == Code::unsupported);
  CHECK(e.lacks({"plus_times", "f32", "2x2x2", "reference_bits|repeatable", "user.casual: promises only repeatable",
                 "reference.plus_times.f32: "}) == "");
  CHECK(support::values(c) == std::vector<double>{7, 7, 7, 7});
  CHECK(rigel::explain(Exec{}, s, a, b, c, none, {.require = Promise::reference_bits, .kernel = "user.casual"}).find("* ") ==
        std::string::npos);
}

TEST_CASE("require: with batch_invariant the bit class does not depend on M, the kernel in it does") {
  // One kernel is cheaper for few rows, one for many; a third one has the bits of the second.
  rigel::Kernel<rigel::Contraction> few = edge::host_kernel("rows.few"), many = edge::host_kernel("rows.many");
  few.info.promises = many.info.promises = Promise::repeatable | Promise::batch_invariant;
  many.info.bit_class = "user.rows";
  few.supports = many.supports = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p) -> rigel::Status {
    if (p.c.label == "rows") return {};
    return {rigel::Decline::other, "C has another label"};
  };
  few.cost = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, rigel::Plan&) {
    return 1e-12 * static_cast<double>(p.m);
  };
  many.cost = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction&, rigel::Plan&) { return 1e-10; };
  rigel::register_kernel(few);
  rigel::register_kernel(many);
  const auto choice = [&](int m, Promise require) {
    const auto a = matrix<float, Exec>(m, 1), b = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(m, 1, {}, "rows");
    const std::string line = marked(rigel::explain(Exec{}, s, a, b, c, none, {.require = require}));
    return line.substr(0, line.find(':'));
  };
  CHECK(choice(1, Promise::none) == "* user.rows.few");
  CHECK(choice(5000, Promise::none) == "* user.rows.many");
  CHECK(choice(1, Promise::batch_invariant) == "* user.rows.many");
  CHECK(choice(5000, Promise::batch_invariant) == "* user.rows.many");
  rigel::Kernel<rigel::Contraction> one = many;
  one.info.name = "user.rows.one";
  one.cost = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, rigel::Plan&) {
    return p.m == 1 ? 1e-11 : 1e-9;
  };
  rigel::register_kernel(one);
  CHECK(choice(1, Promise::batch_invariant) == "* user.rows.one");
  CHECK(choice(5000, Promise::batch_invariant) == "* user.rows.many");
  const auto a = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(1, 1, {}, "rows");
  CHECK(rigel::explain(Exec{}, s, a, a, c, none, {.require = Promise::batch_invariant})
            .find("user.rows.few: bits of class 'user.rows.few', batch_invariant calls of this N and K have those of "
                  "'user.rows'") != std::string::npos);
}

TEST_CASE_TEMPLATE("explain: every candidate with a time or a reason, one of them marked", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(20, 30), b = matrix<float, Exec>(30, 10), c = matrix<float, Exec>(20, 10);
  const std::string text = rigel::explain(Exec{}, rigel::min_plus<float>{}, a, b, c);
  CHECK(text.find("min_plus f32") != std::string::npos);
  CHECK(text.find("20x10x30") != std::string::npos);
  for (const auto& info : rigel::kernels({.operation = "contract", .semiring = "min_plus", .element = rigel::Scalar::f32})) {
    CAPTURE(info.name);
    CHECK(text.find(' ' + info.name + ": ") != std::string::npos);
  }
  marked(text);
  // explain() runs nothing and checks no overlap; contract() does.
  const std::string named = rigel::explain(Exec{}, rigel::min_plus<float>{}, a, b, c, none, {.kernel = "reference"});
  CHECK(marked(named).find("reference.min_plus.f32") != std::string::npos);
  if (rigel::kernels({.name = "portable"}).size())
    CHECK(named.find("portable.min_plus.f32.tiles: not the kernel that was asked for") != std::string::npos);
}

TEST_CASE("explain: the function that was called, and times in units of their size") {
  const auto x = matrix<float, Exec>(3, 2), d = matrix<float, Exec>(3, 3);
  const auto text = rigel::explain_cdist(Exec{}, x, x, d, rigel::metric::manhattan{});
  CHECK_MESSAGE(text.starts_with("cdist l1 f32, 3x3x2 on "), text);
  CHECK(text.find("v3, v4 of x86-64") != std::string::npos);
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel("slow");
  k.cost = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, rigel::Plan&) {
    return p.m == 1 ? 0.9994 : 0.16;
  };
  rigel::register_kernel(k);
  const auto line = [](int m) {
    const auto a = matrix<float, Exec>(m, 1), b = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(m, 1, {}, "user.slow");
    return rigel::explain(Exec{}, s, a, b, c, {.kernel = "user.slow"});
  };
  CHECK(line(2).find("user.slow: 160 ms predicted") != std::string::npos);
  CHECK(line(1).find("user.slow: 999 ms predicted") != std::string::npos);
}

TEST_CASE_TEMPLATE("kernels(): the filter", Exec, RIGEL_TEST_SPACES) {
  constexpr rigel::Space here = rigel::detail::space_of<Exec>;
  const auto all = rigel::kernels();
  CHECK(all.size() >= 2 * 15);
  const auto some = rigel::kernels({.semiring = "l1", .element = rigel::Scalar::f64, .spaces = rigel::bit(here)});
  CHECK(!some.empty());
  bool reference = false;
  for (const auto& info : some) {
    CHECK(info.semiring == "l1");
    CHECK(info.element == rigel::Scalar::f64);
    CHECK((info.spaces & rigel::bit(here)) != 0);
    CHECK(info.name.starts_with(info.family + ".l1.f64"));
    reference = reference || info.family == "reference";
  }
  CHECK(reference);
  CHECK(rigel::kernels({.name = "refer"}).empty());
  CHECK(rigel::kernels({.semiring = "no such semiring"}).empty());
}

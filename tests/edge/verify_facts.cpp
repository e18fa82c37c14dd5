// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() works from the facts that a semiring states, and reports a missing one as an error.
#include <rigel/backends/reference/contract.hpp>
#include <rigel/contract.hpp>

#include <tests/support/error.hpp>

#include <doctest/doctest.h>

#include <atomic>

using rigel::Code, rigel::Promise;

namespace {

// Σ_k a·b of doubles; each number gives another type.
template <int>
struct Sums {
  using element = double;
  using accumulator = double;
  KOKKOS_FUNCTION static double identity() { return 0; }
  KOKKOS_FUNCTION static double multiply(double a, double b) { return a * b; }
  KOKKOS_FUNCTION static double add(double x, double y) { return x + y; }
};
struct Bounded : Sums<0> {
  static constexpr rigel::ErrorModel errors = rigel::ErrorModel::products;
};
struct WithoutObject : Sums<0> {
  explicit WithoutObject(int) {}
};
struct WithSample : WithoutObject {
  using WithoutObject::WithoutObject;
  static WithSample sample() { return WithSample(1); }
};

std::atomic<int> negative_operands = 0, operands = 0;
struct NonNegative : Sums<0> {
  static constexpr rigel::Domain domain = rigel::Domain::non_negative;
  static double multiply(double a, double b) {
    negative_operands += a < 0 || b < 0;
    ++operands;
    return a * b;
  }
};

// Registers the reference of S under its own name, and again as "user.<name>" with the given promises.
template <class S>
void register_twice(const std::string& name, Promise promises, const rigel::SemiringInfo* facts,
                    const rigel::SemiringInfo* facts_of_reference = &rigel::semiring_info<S>()) {
  rigel::Kernel<rigel::Contraction> k =
      rigel::backends::reference::kernel<S, rigel::detail::ProgramFinish, rigel::detail::compiled_host_spaces>();
  k.info.facts = facts_of_reference;
  rigel::register_kernel(k);
  k.info.name = "user." + name;
  k.info.family = "user";
  k.info.promises = promises;
  k.info.facts = facts;
  rigel::register_kernel(k);
}

constexpr Promise every_promise = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant,
                  without_bits = Promise::repeatable | Promise::batch_invariant;

void check_refused(const std::string& name, std::initializer_list<const char*> words) {
  const auto e = support::caught([&] { rigel::verify("user." + name); });
  CHECK(e.code == Code::unsupported);
  CHECK(e.lacks({("verify: 'user." + name + '\'').c_str()}) == "");
  CHECK(e.lacks(words) == "");
}

}  // namespace

TEST_CASE("verify: a kernel that has no facts is held to those of its semiring's reference") {
  register_twice<Sums<1>>("facts.of_reference", every_promise, nullptr);
  const auto v = rigel::verify("user.facts.of_reference");
  CHECK(v.report == "");
  CHECK(v.problems >= 20);
  register_twice<Sums<2>>("facts.own", every_promise, &rigel::semiring_info<Sums<2>>(), nullptr);
  CHECK(rigel::verify("user.facts.own").ok);
}

TEST_CASE("verify: no facts at all") {
  register_twice<Sums<3>>("facts.none", every_promise, nullptr, nullptr);
  check_refused("facts.none", {"and its reference have no facts of their semiring", "&semiring_info<S>()"});
}

TEST_CASE("verify: facts of another semiring") {
  register_twice<Sums<4>>("facts.other", every_promise, &rigel::semiring_info<rigel::plus_times<float>>());
  check_refused("facts.other", {"has the facts of another semiring, 'plus_times'"});
}

TEST_CASE("verify: a bound needs an error model") {
  register_twice<Sums<5>>("facts.no_model", without_bits, nullptr);
  check_refused("facts.no_model", {"is held to a bound", "Sums", "states no error model", "`errors` of type ErrorModel"});
  register_twice<Bounded>("facts.model", without_bits, nullptr);
  const auto v = rigel::verify("user.facts.model");
  CHECK(v.report == "");
  CHECK(v.problems >= 20);
}

TEST_CASE("verify: a semiring object") {
  register_twice<WithoutObject>("facts.no_object", every_promise, nullptr);
  check_refused("facts.no_object", {"WithoutObject", "there is no object", "a default constructor or a static sample()"});
  register_twice<WithSample>("facts.sample", every_promise, nullptr);
  CHECK(rigel::verify("user.facts.sample").ok);
}

TEST_CASE("verify: operands are in the semiring's domain") {
  register_twice<NonNegative>("facts.domain", every_promise, nullptr);
  CHECK(rigel::verify("user.facts.domain").ok);
  CHECK(operands > 0);
  CHECK(negative_operands == 0);
}

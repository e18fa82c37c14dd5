// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The type of a semiring decides which kernels it gets; neither its name nor its base class does.
#include "host_kernel.hpp"

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <vector>

using rigel::Code;
using support::matrix;

namespace {

// Σ 10·|a − b|: it inherits the name of a base that has another ⊗.
struct TenTimes : rigel::l1<float> {
  KOKKOS_FUNCTION static float multiply(float a, float b) { return 10 * Kokkos::abs(a - b); }
};

// Σ a − b, whose ⊗ does not commute, unlike its base's.
struct Directed : rigel::l1<float> {
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a - b; }
};

// Σ (a + b), under a name of the zoo.
template <const char* const& text>
struct Sums {
  using element = float;
  using accumulator = float;
  static constexpr const char* name = text;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a + b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};
constexpr const char *plus_times = "plus_times", *lp = "lp", *shared = "shared", *shared_too = "shared";

// Σ a·b of elements that Rigel does not know, in two sizes under one name.
template <int bytes>
struct Padded {
  float value;
  char rest[bytes - sizeof(float)];
};
template <class Element>
struct OfPadded {
  using element = Element;
  using accumulator = float;
  static constexpr const char* name = "of_padded";
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(Element a, Element b) { return a.value * b.value; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

// The one output of a product with K = 3, whose pairs are all the same.
template <class S, class Exec>
double of_three_pairs(const S& s) {
  const auto a = matrix<float, Exec>(1, 3, {4, 4, 4}), b = matrix<float, Exec>(3, 1, {3, 3, 3}),
             c = matrix<float, Exec>(1, 1);
  rigel::contract(Exec{}, s, a, b, c);
  Exec{}.fence();
  return support::values(c)[0];
}

using Host = Kokkos::DefaultHostExecutionSpace;

// A kernel "user.<name>" for S that always writes `value`.
template <class S, int value>
rigel::Kernel<rigel::Contraction> writes(const std::string& name) {
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel(name);
  k.info.semiring = S::name;
  k.info.semiring_type = rigel::semiring_type<S>();
  k.info.element = rigel::scalar_of<typename S::element>;
  k.supports = nullptr;
  k.run = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, const rigel::Plan&,
             const rigel::Workspace&) { *static_cast<float*>(p.c.data) = value; };
  return k;
}

template <class S>
double of_one_pair() {
  using Element = typename S::element;
  const Kokkos::View<Element**, Host> a("a", 1, 1), b("b", 1, 1);
  const auto c = matrix<float, Host>(1, 1);
  if constexpr (requires { a(0, 0).value; })
    a(0, 0).value = 2, b(0, 0).value = 3;
  else
    a(0, 0) = 2, b(0, 0) = 3;
  rigel::contract(Host{}, S{}, a, b, c);
  return support::values(c)[0];
}

}  // namespace

TEST_CASE_TEMPLATE("identity: a functor derived from one of the zoo is computed as it says", Exec, RIGEL_TEST_SPACES) {
  CHECK(of_three_pairs<TenTimes, Exec>({}) == 30);
  CHECK(of_three_pairs<rigel::l1<float>, Exec>({}) == 3);
}

TEST_CASE_TEMPLATE("identity: a functor that borrows a name of the zoo is computed as it says", Exec, RIGEL_TEST_SPACES) {
  CHECK(of_three_pairs<Sums<plus_times>, Exec>({}) == 21);
  CHECK(of_three_pairs<Sums<lp>, Exec>({}) == 21);
}

TEST_CASE("identity: a derived functor has the flags of its base only if it names itself") {
  struct Claims : rigel::min_plus<float> {
    using self = Claims;
  };
  static_assert(rigel::is_commutative<rigel::l1<float>> && rigel::takes_lanes<rigel::l1<float>>);
  static_assert(!rigel::is_commutative<TenTimes> && !rigel::takes_lanes<TenTimes> && !rigel::is_exact<TenTimes>);
  static_assert(rigel::is_exact<Claims> && rigel::is_selective<Claims> && rigel::is_idempotent<Claims>);
  CHECK(of_three_pairs<Directed, Host>({}) == 3);
  // The transpose of a product whose ⊗ does not commute: −1 for each pair.
  const auto a = matrix<float, Host>(40, 3, std::vector<double>(120, 3)), b = matrix<float, Host>(3, 1, {4, 4, 4}),
             c = matrix<float, Host>(40, 1);
  rigel::contract(Host{}, Directed{}, a, b, c);
  CHECK(support::values(c) == std::vector<double>(40, -3));
}

// ⊕ = max, ⊗ = +, for integers that a double cannot hold.
struct Longest : rigel::max_plus<std::int64_t> {
  using self = Longest;
};

TEST_CASE_TEMPLATE("identity: integers of a user's semiring do not pass through floating point", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;
  const Kokkos::View<std::int64_t**, Exec> a("a", 1, 1), b("b", 1, 1), c("c", 1, 1);
  Kokkos::deep_copy(a, odd);
  rigel::contract(Exec{}, Longest{}, a, b, c);
  Exec{}.fence();
  CHECK(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, c)(0, 0) == odd);
  const Kokkos::View<std::int64_t**, Exec> no_a("a", 1, 0), no_b("b", 0, 1);
  rigel::contract(Exec{}, Longest{}, no_a, no_b, c);
  Exec{}.fence();
  CHECK(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, c)(0, 0) == Longest::identity());
}

TEST_CASE("identity: messages call a borrower by its own name") {
  CHECK(rigel::semiring_name<TenTimes>().find("TenTimes") != std::string_view::npos);
  CHECK(rigel::semiring_name<Sums<lp>>().find("Sums") != std::string_view::npos);
  CHECK(rigel::semiring_name<Sums<shared>>() == "shared");
}

TEST_CASE("register_kernel: types that share a name keep their kernels apart") {
  rigel::register_kernel(writes<Sums<shared>, 100>("first"));
  rigel::register_kernel(writes<Sums<shared_too>, 200>("second"));
  static_assert(!std::is_same_v<Sums<shared>, Sums<shared_too>>);
  CHECK(of_one_pair<Sums<shared>>() == 100);
  CHECK(of_one_pair<Sums<shared_too>>() == 200);

  using Eight = OfPadded<Padded<8>>;
  using Twelve = OfPadded<Padded<12>>;
  rigel::register_kernel(writes<Eight, 300>("eight"));
  CHECK(of_one_pair<Eight>() == 300);
  CHECK(of_one_pair<Twelve>() == 6);
}

TEST_CASE("register_kernel: a semiring that is neither Rigel's nor a type is refused") {
  const auto refused = [](auto change) {
    rigel::Kernel<rigel::Contraction> k = edge::host_kernel("of nothing");
    change(k.info);
    const auto e = support::caught([&] { rigel::register_kernel(k); });
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"register_kernel: 'user.of nothing'", "none of Rigel's own", "semiring_type<S>()"}) == "");
  };
  refused([](rigel::KernelInfo& info) { info.semiring = "my own"; });
  refused([](rigel::KernelInfo& info) { info.element = rigel::Scalar::i16; });  // Rigel has no plus_times of these
  refused([](rigel::KernelInfo& info) { info.accumulator = rigel::Scalar::f64; });
}

TEST_CASE("verify: a user's type is not held to the semiring whose name it borrows") {
  rigel::register_kernel(writes<Sums<plus_times>, 0>("borrower"));
  const auto e = support::caught([] { rigel::verify("user.borrower"); });
  CHECK(e.code == Code::unsupported);
  CHECK(e.lacks({"'user.borrower' has no registered reference for its semiring"}) == "");
}

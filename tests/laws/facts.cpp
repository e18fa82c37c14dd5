// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// semiring_info(): the facts that a semiring states or inherits, and the defaults of one that states nothing.
#include <rigel/semiring_info.hpp>

#include <doctest/doctest.h>

#include <string>

using rigel::Domain, rigel::ErrorModel, rigel::Join, rigel::Scalar, rigel::semiring_info;

namespace {

// States nothing.
struct Silent {
  using element = float;
  using accumulator = float;
  explicit Silent(float) {}
  static float identity() { return 0; }
  static float multiply(float a, float b) { return a * b; }
  static float add(float x, float y) { return x + y; }
};

// Σ_k w·|a − b| + c, with members between which there are gaps.
struct Weighted {
  using element = std::int8_t;
  using operand = double;
  using accumulator = double;
  static constexpr ErrorModel errors = ErrorModel::non_negative_terms;
  static constexpr Domain domain = Domain::non_negative;
  std::int8_t first = 1;
  double w = 0.5;
  rigel::half c = 2;
  static auto hyperparameters() {
    return std::array{rigel::hyperparameter("w", &Weighted::w), rigel::hyperparameter("c", &Weighted::c)};
  }
  static double identity() { return 0; }
  double multiply(double a, double b) const { return w * (a < b ? b - a : a - b) + c; }
  static double add(double x, double y) { return x + y; }
};

// Inherits facts of its base, which need not hold for it; the next one names itself.
struct Directed : rigel::l1<float> {
  static float multiply(float a, float b) { return a - b; }
};
struct Powers : rigel::lp<float> {
  static float multiply(float a, float b) { return a - b; }
};
struct Words : rigel::xor_and<std::uint32_t> {
  using self = Words;
};

// Members of these names that mean something else.
struct OtherMembers : Silent {
  int domain = 1;
  float errors = 2, join = 3;
  OtherMembers() : Silent(0) {}
  static int hyperparameters() { return 0; }
  static int sample() { return 0; }
};

}  // namespace

TEST_CASE("facts: types, flags and statements of the zoo") {
  const rigel::SemiringInfo& f = semiring_info<rigel::min_plus<rigel::bfloat16>>();
  CHECK(f.name == "min_plus");
  CHECK(f.type == nullptr);
  CHECK(f.element == Scalar::bf16);
  CHECK(f.operand == Scalar::f32);
  CHECK(f.accumulator == Scalar::f32);
  CHECK(f.result == Scalar::f32);
  CHECK((f.commutative && f.idempotent && f.selective && f.exact && !f.transcendental));
  CHECK(f.errors == ErrorModel::exact);
  CHECK(f.domain == Domain::any);
  CHECK(f.join == Join::none);
  CHECK(f.hyperparameters.empty());
  CHECK(f.sample != nullptr);
  CHECK(&f == &semiring_info<rigel::min_plus<rigel::bfloat16>>());

  CHECK(semiring_info<rigel::bit_jaccard<std::uint8_t>>().accumulator == Scalar::other);
  CHECK(semiring_info<rigel::bit_jaccard<std::uint8_t>>().result == Scalar::f32);
  CHECK(semiring_info<rigel::log_plus<double>>().accumulator == Scalar::other);
  CHECK(semiring_info<rigel::log_plus<double>>().result == Scalar::f64);
}

TEST_CASE("facts: domains, error models and joins of the zoo") {
  CHECK(semiring_info<rigel::max_times<float>>().domain == Domain::non_negative);
  CHECK(semiring_info<rigel::or_and<std::uint8_t>>().domain == Domain::truth_values);
  CHECK(semiring_info<rigel::or_and<std::uint64_t>>().domain == Domain::words);
  CHECK(semiring_info<rigel::bit_hamming<std::uint8_t>>().domain == Domain::words);
  CHECK(semiring_info<rigel::plus_times<float>>().errors == ErrorModel::products);
  CHECK(semiring_info<rigel::plus_times<int>>().errors == ErrorModel::exact);
  CHECK(semiring_info<rigel::l2_squared<double>>().errors == ErrorModel::non_negative_terms);
  CHECK(semiring_info<rigel::log_plus<float>>().errors == ErrorModel::logarithmic);
  CHECK(semiring_info<rigel::or_and<std::uint32_t>>().join == Join::any_bit);
  CHECK(semiring_info<rigel::xor_and<std::uint32_t>>().join == Join::parity);
}

TEST_CASE("facts: every rounding semiring of the zoo states its error model") {
  rigel::detail::for_each_of_zoo([]<class List>() {
    const auto one = []<class T>(rigel::type_list<T>) {
      CAPTURE(std::string(T::name));
      CHECK(semiring_info<T>().errors != ErrorModel::unknown);
      CHECK(semiring_info<T>().sample != nullptr);
    };
    [&]<class... S>(rigel::type_list<S...>) { (one(rigel::type_list<S>{}), ...); }(List{});
  });
}

TEST_CASE("facts: hyperparameters, and an object with typical ones") {
  const rigel::SemiringInfo& f = semiring_info<rigel::lp<rigel::half>>();
  REQUIRE(f.hyperparameters.size() == 1);
  const rigel::Hyperparameter& p = f.hyperparameters[0];
  CHECK(p.name == "p");
  CHECK(p.type == Scalar::f32);
  CHECK(p.default_value == 2);
  CHECK(f.size == sizeof(rigel::lp<rigel::half>));
  CHECK(p.get(f.sample) == 1.3125);
  rigel::lp<rigel::half> s;
  p.set(&s, 0.5);
  CHECK(s.p == 0.5f);

  const rigel::SemiringInfo& g = semiring_info<Weighted>();
  REQUIRE(g.hyperparameters.size() == 2);
  CHECK(g.hyperparameters[0].name == "w");
  CHECK(g.hyperparameters[0].type == Scalar::f64);
  CHECK(g.hyperparameters[0].default_value == 0.5);
  CHECK(g.hyperparameters[1].name == "c");
  CHECK(g.hyperparameters[1].type == Scalar::f16);
  CHECK(g.hyperparameters[1].get(g.sample) == 2);
  Weighted w;
  g.hyperparameters[0].set(&w, 0.1);
  g.hyperparameters[1].set(&w, 0.1);
  CHECK(w.first == 1);
  CHECK(w.w == 0.1);
  CHECK(static_cast<float>(w.c) == 0.0999755859375f);  // 0.1 rounded to half: 1638·2^-14
  CHECK(g.hyperparameters[1].get(&w) == 0.0999755859375);
  CHECK(g.domain == Domain::non_negative);
  CHECK(g.errors == ErrorModel::non_negative_terms);
  CHECK(g.type == rigel::semiring_type<Weighted>());
}

TEST_CASE("facts: a semiring that states nothing") {
  const rigel::SemiringInfo& f = semiring_info<Silent>();
  CHECK(f.type != nullptr);
  CHECK(f.domain == Domain::any);
  CHECK(f.errors == ErrorModel::unknown);
  CHECK(f.join == Join::none);
  CHECK(f.hyperparameters.empty());
  CHECK(f.sample == nullptr);
  const rigel::SemiringInfo& g = semiring_info<OtherMembers>();
  CHECK(g.domain == Domain::any);
  CHECK(g.errors == ErrorModel::unknown);
  CHECK(g.join == Join::none);
  CHECK(g.hyperparameters.empty());
  CHECK(g.sample != nullptr);
  CHECK(g.size == sizeof(OtherMembers));
}

TEST_CASE("facts: a derived functor states what its base states only if it names itself") {
  CHECK(semiring_info<Directed>().errors == ErrorModel::unknown);
  CHECK(semiring_info<Powers>().errors == ErrorModel::unknown);
  CHECK(semiring_info<Powers>().hyperparameters.empty());
  CHECK(static_cast<const Powers*>(semiring_info<Powers>().sample)->p == 2);
  CHECK(semiring_info<Words>().domain == Domain::words);
  CHECK(semiring_info<Words>().join == Join::parity);
  CHECK(semiring_info<rigel::with_argument<rigel::max_times<float>>>().domain == Domain::non_negative);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the laws and the claims that a semiring breaks on a list of sample operands.
#pragma once

#include <rigel/semirings.hpp>

#include <tests/support/compare.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace laws {

template <class S>
class Checker {
 public:
  using Operand = rigel::operand_t<S>;
  using Accumulator = typename S::accumulator;

  Checker(const S& s, const std::vector<Operand>& operands) : s_(s), operands_(operands) {
    accumulators_.push_back(S::identity());
    for (const Operand a : operands)
      for (const Operand b : operands) {
        const Accumulator x = product(a, b);
        if (in_domain(x)) accumulators_.push_back(x);
      }
    // About a hundred accumulators are enough. The first ones and every n-th include the special values.
    const std::size_t every = accumulators_.size() / 60 + 1;
    std::vector<Accumulator> fewer;
    for (std::size_t i = 0; i < accumulators_.size(); i += every) fewer.push_back(accumulators_[i]);
    accumulators_ = fewer;
  }

  /// The names of the broken laws.
  std::set<std::string> broken() {
    for (const auto x : accumulators_) {
      expect(equal(s_.add(S::identity(), x), x) && equal(s_.add(x, S::identity()), x), "identity");
      if (rigel::is_idempotent<S>) expect(equal(s_.add(x, x), x), "idempotent");
      for (const auto y : accumulators_) {
        const Accumulator sum = s_.add(x, y);
        expect(equal(sum, s_.add(y, x)), "commutativity of add");
        if (rigel::is_selective<S>) expect(equal(sum, x) || equal(sum, y), "selective");
        if constexpr (rigel::join_of<S> == rigel::Join::any_bit) expect(sum == (x | y), "join");
        if constexpr (rigel::join_of<S> == rigel::Join::parity) expect(sum == (x ^ y), "join");
        for (const auto z : accumulators_) {
          const Accumulator left = s_.add(sum, z), right = s_.add(x, s_.add(y, z));
          expect(close(left, right, {x, y, z}), "associativity of add");
        }
      }
    }
    for (const auto a : operands_)
      for (const auto b : operands_) {
        if (rigel::is_commutative<S>) expect(equal(product(a, b), product(b, a)), "commutative");
        check_errors(a, b);
        check_step(a, b);
        check_distributivity(a, b);
      }
    for (const auto b : operands_) check_constants(b);
    return broken_;
  }

 private:
  void expect(bool holds, const char* law) {
    if (!holds) broken_.insert(law);
  }

  Accumulator product(Operand a, Operand b) const {
    if constexpr (rigel::MultipliesPairs<S>)
      return s_.multiply(a, b);
    else
      return s_.multiply(a, b, 0);
  }

  auto value(Accumulator x) const { return rigel::result(s_, x); }
  bool equal(Accumulator x, Accumulator y) const { return support::same(value(x), value(y)); }
  // Integer infinity is an identity only for numbers within ±infinity, which sums of two infinities are not.
  bool in_domain(Accumulator x) const {
    using Value = decltype(value(x));
    if constexpr (std::is_integral_v<Value> && rigel::is_selective<S> && std::is_signed_v<Value>)
      return value(x) <= rigel::infinity<Value>() && value(x) >= rigel::negative_infinity<Value>();
    else
      return true;
  }

  // Two orders of a sum of three numbers have two roundings each, of partial sums that |x| + |y| + |z| bounds. For log-sum-exp
  // each ⊕ multiplies a sum of exponentials by at most 1 + 5u (exponential, product, sum), and the logarithm adds a rounding
  // of the result: 16u(1 + max |x|) covers two orders.
  bool close(Accumulator left, Accumulator right, std::initializer_list<Accumulator> terms) const {
    if (equal(left, right)) return true;
    using Value = decltype(value(left));
    if constexpr (std::is_floating_point_v<Value>) {
      if (rigel::is_exact<S>) return false;
      const double u = std::numeric_limits<Value>::epsilon() / 2;
      double sum = 0, largest = 0;
      for (const Accumulator x : terms) {
        if (support::kind(value(x)) != 0) continue;
        sum += std::abs(static_cast<double>(value(x)));
        largest = std::fmax(largest, std::abs(static_cast<double>(value(x))));
      }
      if (support::kind(value(left)) != 0 || support::kind(value(right)) != 0)
        return sum >= 0.5 * std::numeric_limits<Value>::max();  // a partial sum of one order overflows
      const double difference = std::abs(static_cast<double>(value(left)) - static_cast<double>(value(right)));
      if constexpr (std::is_same_v<Accumulator, Value>)
        return difference <= 4 * u * sum;
      else
        return difference <= 16 * u * (1 + largest);
    } else {
      return false;
    }
  }

  // Checks the terms against the error model.
  void check_errors(Operand a, Operand b) {
    const auto magnitude = [](auto x) { return x < 0 ? -x : x; };
    if constexpr (rigel::error_model_of<S> == rigel::ErrorModel::non_negative_terms)
      expect(!(value(product(a, b)) < 0), "errors");
    if constexpr (rigel::error_model_of<S> == rigel::ErrorModel::products)
      expect(support::same(magnitude(value(product(a, b))), value(product(magnitude(a), magnitude(b)))), "errors");
  }

  // A fused step has one rounding less than add(x, multiply(a, b)), so they differ by at most three roundings.
  void check_step(Operand a, Operand b) {
    const Accumulator ab = product(a, b);
    for (const auto x : accumulators_) {
      const Accumulator fused = rigel::step(s_, x, a, b, 0), plain = s_.add(x, ab);
      bool agree = close(fused, plain, {x, ab, ab});
      if constexpr (std::is_floating_point_v<Accumulator>) {
        const bool underflow = ab < std::numeric_limits<Accumulator>::min();
        agree = agree || (underflow && std::abs(fused - plain) <= std::numeric_limits<Accumulator>::denorm_min());
        // x + a·b may be finite although a·b alone is not.
        agree = agree || (support::kind(ab) != 0 && support::kind(a) == 0 && support::kind(b) == 0 && !rigel::is_exact<S>);
      }
      expect(agree, "step");
      if constexpr (requires { s_.add_if_ordered(x, ab); })
        if (ab == ab) expect(equal(s_.add_if_ordered(x, ab), plain), "add_if_ordered");
    }
    if constexpr (requires { s_.multiply_if_ordered(a, b); })
      if (a == a && b == b) expect(equal(s_.multiply_if_ordered(a, b), ab), "multiply_if_ordered");
  }

  // a ⊗ (b ⊕ c) = (a ⊗ b) ⊕ (a ⊗ c), for types that claim to be semirings by having a one(); if they round, within the three
  // roundings of either side.
  void check_distributivity(Operand a, Operand b) {
    if constexpr (requires { S::one(); } && std::is_same_v<Operand, Accumulator>) {
      for (const auto c : operands_) {
        const Accumulator ab = product(a, b), ac = product(a, c);
        const bool undefined = (ab != ab || ac != ac) && a == a && b == b && c == c;  // ∞ − ∞, 0 · ∞
        if (undefined || !in_domain(ab) || !in_domain(ac)) continue;
        const Accumulator left = product(a, s_.add(b, c)), right = s_.add(ab, ac);
        bool holds = close(left, right, {ab, ac, ab, ac});
        if constexpr (std::is_floating_point_v<Accumulator>)
          if (!rigel::is_exact<S>) {
            const auto tiny = std::numeric_limits<Accumulator>::denorm_min();
            holds = holds || std::abs(left - right) <= 2 * tiny || support::kind(s_.add(b, c)) != 0 ||
                    support::kind(right) != 0 || support::kind(ab) != 0 || support::kind(ac) != 0;
          }
        expect(holds, "distributivity");
      }
    }
  }

  void check_constants(Operand b) {
    if constexpr (requires { S::one(); })
      expect(support::same(value(product(S::one(), b)), static_cast<decltype(value(S::identity()))>(b)), "one");
    if constexpr (requires { S::annihilator(); }) {
      const Accumulator x = product(S::annihilator(), b);
      const bool undefined = support::kind(b) != 0 && value(x) != value(x);
      if (!undefined) expect(equal(x, S::identity()), "annihilator");
    }
    if constexpr (requires { S::is_no_path(S::identity()); })
      expect(S::is_no_path(S::identity()) && !S::is_no_path(S::one()), "is_no_path");
  }

  S s_;
  std::vector<Operand> operands_;
  std::vector<Accumulator> accumulators_;
  std::set<std::string> broken_;
};

/// The laws that s breaks, separated by commas.
template <class S>
std::string broken_laws(const S& s, const std::vector<rigel::operand_t<S>>& operands) {
  std::string text;
  for (const auto& law : Checker<S>(s, operands).broken()) text += (text.empty() ? "" : ", ") + law;
  return text;
}

}  // namespace laws

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "formulas.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace support {
namespace {

using rigel::Scalar;

Whole wrapped(std::uint64_t v, Scalar type) {
  switch (type) {
    case Scalar::i16: return {static_cast<std::int16_t>(v), type};
    case Scalar::i32: return {static_cast<std::int32_t>(v), type};
    default: return {static_cast<std::int64_t>(v), type};
  }
}
std::uint64_t bits(Whole x) { return static_cast<std::uint64_t>(x.value); }
Whole operator+(Whole x, Whole y) { return wrapped(bits(x) + bits(y), x.type); }
Whole operator-(Whole x, Whole y) { return wrapped(bits(x) - bits(y), x.type); }
Whole operator*(Whole x, Whole y) { return wrapped(bits(x) * bits(y), x.type); }

std::int64_t set_bits(std::uint64_t word) {
  std::int64_t count = 0;
  for (int bit = 0; bit < 64; ++bit) count += static_cast<std::int64_t>(word >> bit & 1);
  return count;
}

bool has_nan(double x, double y) { return x != x || y != y; }
double least(double x, double y) { return has_nan(x, y) ? std::numeric_limits<double>::quiet_NaN() : std::fmin(x, y); }
double most(double x, double y) { return has_nan(x, y) ? std::numeric_limits<double>::quiet_NaN() : std::fmax(x, y); }
double magnitude(double x) { return std::fabs(x); }
double differ(double x, double y) { return x != y; }
Whole least(Whole x, Whole y) { return {std::min(x.value, y.value), x.type}; }
Whole most(Whole x, Whole y) { return {std::max(x.value, y.value), x.type}; }
Whole magnitude(Whole x) { return x.value < 0 ? Whole{0, x.type} - x : x; }
Whole differ(Whole x, Whole y) { return {x.value != y.value, x.type}; }

double log_of_sum(double x, double y) {
  const double larger = most(x, y);
  if (larger != larger || std::isinf(larger)) return larger;
  return larger + std::log(std::exp(x - larger) + std::exp(y - larger));
}
double log_of_sum(double x, double y, double z) { return std::log(std::exp(x) + std::exp(y) + std::exp(z)); }

// ⊗ and ⊕ on doubles, on integers, or (`auto`) on both; ⊗ of lp takes its hyperparameter.
constexpr auto sum = [](auto x, auto y) { return x + y; };
constexpr auto sum_of_numbers = [](double x, double y) { return x + y; };
constexpr auto product = [](auto a, auto b) { return a * b; };
constexpr auto minimum = [](auto x, auto y) { return least(x, y); };
constexpr auto maximum = [](auto x, auto y) { return most(x, y); };
constexpr auto distance = [](auto a, auto b) { return magnitude(a - b); };
constexpr auto square = [](auto a, auto b) { return (a - b) * (a - b); };
constexpr auto power = [](double a, double b, double p) { return std::pow(std::fabs(a - b), p); };
constexpr auto unequal = [](auto a, auto b) { return differ(a, b); };
constexpr auto log_sum = [](double x, double y) { return log_of_sum(x, y); };
constexpr auto bit_and = [](Whole a, Whole b) { return Whole{a.value & b.value, a.type}; };
constexpr auto bit_or = [](Whole x, Whole y) { return Whole{x.value | y.value, x.type}; };
constexpr auto bit_xor = [](Whole x, Whole y) { return Whole{x.value ^ y.value, x.type}; };
constexpr auto unequal_bits = [](Whole a, Whole b) { return Whole{set_bits(bits(a) ^ bits(b)), a.type}; };
// The number of bits set in both (upper half) and in either (lower half).
constexpr auto both_and_either = [](Whole a, Whole b) {
  return Whole{set_bits(bits(a) & bits(b)) << 32 | set_bits(bits(a) | bits(b)), a.type};
};
double jaccard(std::int64_t counts) {
  const std::int64_t both = counts >> 32, either = counts & 0xffffffff;
  return either == 0 ? 0 : static_cast<double>(either - both) / static_cast<double>(either);
}

template <class Multiply, class Add>
Formula row(std::string_view semiring, int identity, std::array<double, 4> by_hand, Multiply, Add, Formula f = {}) {
  f.semiring = semiring;
  f.identity = identity;
  f.by_hand = by_hand;
  if constexpr (std::is_invocable_v<Multiply, double, double, double>)
    f.multiply = [](double a, double b, const double* p) { return Multiply{}(a, b, *p); };
  else if constexpr (std::is_invocable_v<Multiply, double, double>)
    f.multiply = [](double a, double b, const double*) { return Multiply{}(a, b); };
  if constexpr (std::is_invocable_v<Add, double, double>) f.add = [](double x, double y) { return Add{}(x, y); };
  if constexpr (std::is_invocable_v<Multiply, Whole, Whole>) {
    f.multiply_whole = [](Whole a, Whole b) { return Multiply{}(a, b); };
    f.add_whole = [](Whole x, Whole y) { return Add{}(x, y); };
  }
  return f;
}

std::vector<Formula> rows() {
  const double root_of_2 = std::sqrt(2.), root_of_27 = std::sqrt(27.);
  const std::array<double, 4> powers = {1 + 4 * root_of_2, 2, 2 * root_of_2 + root_of_27, 2 * root_of_2 + 2 * root_of_27};
  const std::array<double, 4> logs = {log_of_sum(3, 2, 8), log_of_sum(2, 5, 7), log_of_sum(6, 0, 7), log_of_sum(5, 3, 6)};
  return {
      row("plus_times", 0, {17, 19, 18, 12}, product, sum),
      row("min_plus", 1, {2, 2, 0, 3}, sum, minimum),
      row("max_plus", -1, {8, 7, 7, 6}, sum, maximum),
      row("max_min", -1, {3, 3, 2, 2}, minimum, maximum),
      row("min_max", 1, {2, 1, 0, 3}, maximum, minimum),
      row("max_times", 0, {15, 12, 10, 8}, product, maximum),
      row("min_times", 1, {0, 1, 0, 0}, product, minimum),
      // Bit by bit: 1∧2 = 0, 2∧0 = 0, 3∧5 = 1; 1∧1 = 1, 2∧3 = 2, 3∧4 = 0; 4∧2 = 0, 0, 2∧5 = 0; 4∧1 = 0, 0, 2∧4 = 0.
      row("or_and", 0, {1, 3, 0, 0}, bit_and, bit_or),
      row("xor_and", 0, {1, 3, 0, 0}, bit_and, bit_xor),
      row("log_plus", -1, logs, sum_of_numbers, log_sum),
      row("l1", 0, {5, 2, 5, 8}, distance, sum),
      row("l2_squared", 0, {9, 2, 13, 22}, square, sum),
      row("lp", 0, powers, power, sum_of_numbers, {.hyperparameters = {1.5}}),
      row("linf", 0, {2, 1, 3, 3}, distance, maximum),
      row("hamming", 0, {3, 2, 2, 3}, unequal, sum, {.few_values = true}),
      // 1⊻2 has 2 bits, 2⊻0 one, 3⊻5 2; 1⊻1 none, 2⊻3 one, 3⊻4 3; 4⊻2 has 2, 0⊻0 none, 2⊻5 3; 4⊻1, 0⊻3 and 2⊻4 2 each.
      row("bit_hamming", 0, {5, 4, 5, 6}, unequal_bits, sum),
      // One bit in both of 6 in either; two of 6; none in both, twice.
      row("bit_jaccard", 0, {5.f / 6, 4.f / 6, 1, 1}, both_and_either, sum, {.result = jaccard}),
  };
}

}  // namespace

const Formula& formula(std::string_view semiring) {
  static const std::vector<Formula> table = rows();
  const auto found = std::ranges::find(table, semiring, &Formula::semiring);
  if (found == table.end())
    throw std::runtime_error("the tests have no formula of '" + std::string(semiring) +
                             "': expected a row in tests/support/formulas.cpp");
  return *found;
}

void set_hyperparameters(const rigel::SemiringInfo& facts, void* object) {
  const std::vector<double>& values = formula(facts.name).hyperparameters;
  if (values.size() != facts.hyperparameters.size())
    throw std::runtime_error("the semiring '" + std::string(facts.name) + "' states " +
                             std::to_string(facts.hyperparameters.size()) +
                             " hyperparameters, its row in tests/support has " + std::to_string(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) facts.hyperparameters[i].set(object, values[i]);
}

std::int64_t infinity_of(Scalar type) {
  switch (type) {
    case Scalar::i16: return rigel::infinity<std::int16_t>();
    case Scalar::i32: return rigel::infinity<std::int32_t>();
    default: return rigel::infinity<std::int64_t>();
  }
}

}  // namespace support

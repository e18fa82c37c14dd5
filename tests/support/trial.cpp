// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trial.hpp"

#include "compare.hpp"
#include "covering.hpp"
#include "formulas.hpp"

#include <rigel/detail/arguments.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace support {
namespace {

using rigel::Scalar;

// Calls visit(T{}) for the C++ type of a scalar.
template <class Visit>
void with_type(Scalar type, const Visit& visit) {
  rigel::detail::with_type<std::int64_t>(type, nullptr, [&]<class T>(T*) { visit(T{}); });
}

void set(Bytes& bytes, Scalar type, std::int64_t at, double real, std::int64_t whole) {
  with_type(type, [&]<class T>(T v) {
    if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(whole);
    else if constexpr (std::is_same_v<T, double>)
      v = real;
    else
      v = static_cast<float>(real);
    std::memcpy(bytes.data() + at * static_cast<std::int64_t>(sizeof v), &v, sizeof v);
  });
}

Bytes random_bytes(const Placement& p, const rigel::SemiringInfo& facts, bool few_values, Scalar type, Special special,
                   Random& random) {
  using rigel::Domain;
  Bytes bytes(static_cast<std::size_t>(p.span) * rigel::size_of(type), 0xff);
  const bool narrow = type == Scalar::i8 || type == Scalar::u8, non_negative = facts.domain == Domain::non_negative;
  p.for_each([&](std::int64_t at) {
    double real = random.uniform(non_negative ? 0.1 : -4, 4);
    if (special == Special::nan && random.chance(0.05)) real = std::numeric_limits<double>::quiet_NaN();
    if (special == Special::infinities && random.chance(0.05))
      real = (non_negative || random.chance(0.5) ? 1 : -1) * std::numeric_limits<double>::infinity();
    std::int64_t whole = random.integer(-1000, 1000);
    if (facts.domain == Domain::truth_values)
      whole = random.integer(0, 1);
    else if (facts.domain == Domain::words)
      whole = random.chance(0.2) ? 0 : static_cast<std::int64_t>(random.next() & random.next());
    else if (few_values)
      whole = random.integer(0, 3), real = std::isfinite(real) ? static_cast<double>(whole) : real;
    else if (non_negative)
      whole = random.integer(0, 100);
    else if (narrow)
      whole = random.integer(type == Scalar::u8 ? 0 : -128, type == Scalar::u8 ? 255 : 127);
    // The special values of integers are their infinities.
    else if (special != Special::none && random.chance(0.05))
      whole = random.chance(0.5) ? infinity_of(type) : -infinity_of(type);
    if (facts.domain == Domain::truth_values || facts.domain == Domain::words)
      real = static_cast<double>(whole & 0xff);  // of a C, from which an accumulator of any width starts
    set(bytes, type, at, real, whole);
  });
  if (special == Special::few && is_floating(type) && p.batches * p.rows * p.columns > 0)
    for (int i = 0; i < 3; ++i) {
      const std::int64_t at =
          p.at(random.integer(0, p.batches - 1), random.integer(0, p.rows - 1), random.integer(0, p.columns - 1));
      constexpr double infinity = std::numeric_limits<double>::infinity();
      set(bytes, type, at, random.pick({std::nan(""), infinity, non_negative ? infinity : -infinity}), 0);
    }
  return bytes;
}

// The largest finite magnitude.
double largest(const Placement& p, const Bytes& bytes, Scalar type) {
  double most = 0;
  p.for_each([&](std::int64_t at) {
    const double v = std::fabs(real(bytes, type, at));
    if (std::isfinite(v)) most = std::fmax(most, v);
  });
  return most;
}

double rounded(double v, Scalar type) {
  switch (type) {
    case Scalar::f16: return rigel::half(static_cast<float>(v));
    case Scalar::bf16: return rigel::bfloat16(static_cast<float>(v));
    case Scalar::f32: return static_cast<float>(v);
    default: return v;
  }
}

}  // namespace

Placement place(Order order, std::int64_t batches, std::int64_t rows, std::int64_t columns) {
  Placement p{batches, rows, columns, 0, 0, 0, 0, 0};
  switch (order) {
    case Order::right: p.row = columns, p.column = 1, p.batch = rows * columns; break;
    case Order::left: p.row = 1, p.column = rows, p.batch = rows * columns; break;
    case Order::padded_right: p.row = columns + 3, p.column = 1, p.batch = rows * p.row + 5, p.first = 4; break;
    case Order::padded_left: p.row = 1, p.column = rows + 3, p.batch = columns * p.column + 5, p.first = 4; break;
    case Order::scattered: p.column = 3, p.row = 3 * columns + 2, p.batch = rows * p.row + 1, p.first = 1; break;
    case Order::interleaved: p.batch = 1, p.column = batches, p.row = batches * columns; break;
  }
  p.span = p.first + 1;
  const auto reach = [&](std::int64_t extent, std::int64_t stride) { p.span += extent > 0 ? (extent - 1) * stride : 0; };
  reach(batches, p.batch), reach(rows, p.row), reach(columns, p.column);
  p.span += 7;  // unused elements after the last one
  return p;
}

std::string Trial::text() const {
  constexpr const char* names[] = {"right", "left", "padded right", "padded left", "scattered", "interleaved"};
  constexpr const char* shares[] = {"", ", A shared", ", B shared", ", both shared"};
  constexpr const char* specials[] = {"", ", NaN", ", infinities", ", few of both"};
  return std::to_string(batch) + " x " + std::to_string(m) + 'x' + std::to_string(n) + 'x' + std::to_string(k) + ", A " +
         names[int(a)] + ", B " + names[int(b)] + ", C " + names[int(c)] + shares[int(share)] +
         (index == rigel::Batch::last ? ", batch last" : "") + (accumulate ? ", accumulated" : "") + ", epilogue " +
         std::to_string(epilogue) + specials[int(special)] + ", seed " + std::to_string(seed);
}

rigel::epilogue::Program Trial::program(rigel::Join join) const {
  if (epilogue == 0) return {};
  if (join == rigel::Join::any_bit) return rigel::epilogue::any_bit();
  if (join == rigel::Join::parity) return rigel::epilogue::parity();
  const auto half = rigel::epilogue::scale(0.5);
  return epilogue == 1 ? half : half | rigel::epilogue::add_diagonal(3);
}

std::vector<Trial> trials(std::uint64_t seed) {
  Random random(seed);
  const std::vector<std::int64_t> outer = {1, 3, 8, 17, 31, 33, 67}, inner = {0, 1, 2, 15, 17, 37, 64}, batches = {1, 2, 3};
  const std::vector<int> levels = {7, 7, 7, 3, orders, orders, orders, 4, 2, 2, 3, 3};
  std::vector<Trial> list;
  for (const auto& row : covering_design(levels, random))
    list.push_back({batches[row[3]], outer[row[0]], outer[row[1]], inner[row[2]], Order(row[4]), Order(row[5]),
                    Order(row[6]), Share(row[7]), rigel::Batch(row[8]), row[9] == 1, row[10], Special(row[11]),
                    random.next()});
  for (Trial t : {list[0], list[1], list[2]}) {  // empty results
    (list.size() % 3 == 0 ? t.m : list.size() % 3 == 1 ? t.n : t.batch) = 0;
    list.push_back(t);
  }
  return list;
}

Operands operands_for(const Trial& t, const rigel::SemiringInfo& facts) {
  return operands_for(t, facts, formula(facts.name).few_values);
}
Operands operands_for(const Trial& t, const rigel::SemiringInfo& facts, bool few_values) {
  Random random(t.seed);
  Operands o;
  const bool shares_a = t.share == Share::a || t.share == Share::both,
             shares_b = t.share == Share::b || t.share == Share::both;
  o.a = place(t.a, shares_a ? 1 : t.batch, t.m, t.k);
  o.b = place(t.b, shares_b ? 1 : t.batch, t.k, t.n);
  o.c = place(t.c, t.batch, t.m, t.n);
  o.a_bytes = random_bytes(o.a, facts, few_values, facts.element, t.special, random);
  o.b_bytes = random_bytes(o.b, facts, few_values, facts.element, t.special, random);
  const bool special_c = t.special == Special::few && is_floating(facts.element);
  o.c_bytes = random_bytes(o.c, facts, few_values, facts.result, special_c ? Special::few : Special::none, random);
  return o;
}

double real(const Bytes& bytes, Scalar type, std::int64_t at) {
  double value = 0;
  with_type(type, [&]<class T>(T v) {
    std::memcpy(&v, bytes.data() + at * static_cast<std::int64_t>(sizeof v), sizeof v);
    if constexpr (std::is_arithmetic_v<T>)
      value = static_cast<double>(v);
    else
      value = static_cast<float>(v);
  });
  return value;
}

std::int64_t integer(const Bytes& bytes, Scalar type, std::int64_t at) {
  std::int64_t value = 0;
  with_type(type, [&]<class T>(T v) {
    std::memcpy(&v, bytes.data() + at * static_cast<std::int64_t>(sizeof v), sizeof v);
    if constexpr (std::is_integral_v<T>) value = static_cast<std::int64_t>(v);
  });
  return value;
}

int differences(const Placement& c, Scalar type, const Bytes& x, const Bytes& y) {
  int count = 0;
  c.for_each([&](std::int64_t at) {
    if (is_floating(type)) {
      const double u = real(x, type, at), v = real(y, type, at);
      count += !(u == v || (u != u && v != v));
    } else {
      count += integer(x, type, at) != integer(y, type, at);
    }
  });
  return count;
}

bool same_gaps(const Placement& c, Scalar type, const Bytes& x, const Bytes& y) {
  Bytes u = x, v = y;
  const std::size_t size = rigel::size_of(type);
  c.for_each([&](std::int64_t at) {
    std::memset(u.data() + static_cast<std::size_t>(at) * size, 0, size);
    std::memset(v.data() + static_cast<std::size_t>(at) * size, 0, size);
  });
  return u == v;
}

Model model(const Trial& t, const Operands& o, const rigel::SemiringInfo& facts) {
  const Formula& f = formula(facts.name);
  const Scalar result = facts.result;
  const bool in_double = is_floating(result) && !f.result;
  if (in_double ? !f.multiply || !f.add : !f.multiply_whole || !f.add_whole)
    throw std::runtime_error("the formula of '" + std::string(facts.name) + "' takes no elements of " + name(facts.element));
  Model out;
  const auto add_real = [&](std::int64_t l, std::int64_t m, std::int64_t n) {
    double x = f.identity == 0 ? 0 : f.identity * std::numeric_limits<double>::infinity(), magnitude = 0;
    if (t.accumulate) x = real(o.c_bytes, result, o.c.at(l, m, n)), magnitude = std::fabs(x);
    for (std::int64_t k = 0; k < t.k; ++k) {
      double y = f.multiply(real(o.a_bytes, facts.element, o.a.at(l, m, k)), real(o.b_bytes, facts.element, o.b.at(l, k, n)),
                            f.hyperparameters.data());
      // One rounding to the result's type, since double holds the sum or product with more than twice the digits of that type.
      if (facts.exact) y = rounded(y, result);
      x = f.add(x, y);
      magnitude += std::fabs(y);
    }
    out.value.push_back(x);
    out.magnitude.push_back(magnitude);
  };
  const auto add_whole = [&](std::int64_t l, std::int64_t m, std::int64_t n) {
    Whole x{f.identity == 0 ? 0 : f.identity * infinity_of(result), result};
    if (t.accumulate) x.value = integer(o.c_bytes, result, o.c.at(l, m, n));
    for (std::int64_t k = 0; k < t.k; ++k) {
      const Whole a{integer(o.a_bytes, facts.element, o.a.at(l, m, k)), result},
          b{integer(o.b_bytes, facts.element, o.b.at(l, k, n)), result};
      x = f.add_whole(x, f.multiply_whole(a, b));
    }
    if (!f.result) return out.whole.push_back(x.value);
    // Rounding the quotient to double first changes nothing, because double has more than twice the digits of float.
    out.value.push_back(rounded(f.result(x.value), result));
    out.magnitude.push_back(0);
  };
  for (std::int64_t l = 0; l < t.batch; ++l)
    for (std::int64_t m = 0; m < t.m; ++m)
      for (std::int64_t n = 0; n < t.n; ++n) in_double ? add_real(l, m, n) : add_whole(l, m, n);
  return out;
}

int out_of_bound(const Trial& t, const Operands& o, const rigel::SemiringInfo& facts, const Model& model,
                 const Bytes& actual, const rigel::Accuracy& accuracy) {
  const bool wide = facts.result == Scalar::f64, logarithmic = facts.errors == rigel::ErrorModel::logarithmic;
  // The model computes in f64, so for f64 it rounds as much as the kernel does.
  const double gamma = (wide ? 2 : 1) * accuracy.of(t.k + t.accumulate) * roundoff(wide ? 53 : 24);
  const double exponents = logarithmic ? 1 + largest(o.a, o.a_bytes, facts.element) +
                                             largest(o.b, o.b_bytes, facts.element) + largest(o.c, o.c_bytes, facts.result)
                                       : 0;
  const double factor = t.epilogue ? 0.5 : 1;
  int count = 0;
  std::size_t i = 0;
  o.c.for_each([&](std::int64_t at) {
    const double x = real(actual, facts.result, at), y = factor * model.value[i];
    const double magnitude = logarithmic ? exponents : model.magnitude[i];
    ++i;
    count += kind(x) != kind(y) || (std::isfinite(y) && !(std::fabs(x - y) <= gamma * factor * magnitude));
  });
  return count;
}

}  // namespace support

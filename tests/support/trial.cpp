// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trial.hpp"

#include "covering.hpp"

#include <rigel/detail/arguments.hpp>

#include <cmath>
#include <cstring>
#include <limits>

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

std::int64_t infinity_of(Scalar type) {
  switch (type) {
    case Scalar::i16: return rigel::infinity<std::int16_t>();
    case Scalar::i32: return rigel::infinity<std::int32_t>();
    default: return rigel::infinity<std::int64_t>();
  }
}

bool is_boolean(std::string_view semiring) { return semiring == "or_and" || semiring == "xor_and"; }
bool is_of_codes(std::string_view semiring) { return semiring == "bit_hamming" || semiring == "bit_jaccard"; }
bool is_product_order(std::string_view semiring) { return semiring == "max_times" || semiring == "min_times"; }

Bytes random_bytes(const Placement& p, std::string_view semiring, Scalar type, Special special, Random& random) {
  Bytes bytes(static_cast<std::size_t>(p.span) * rigel::size_of(type), 0xff);
  const bool narrow = type == Scalar::i8 || type == Scalar::u8;
  p.for_each([&](std::int64_t at) {
    double real = random.uniform(is_product_order(semiring) ? 0.1 : -4, 4);
    if (special == Special::nan && random.chance(0.05)) real = std::numeric_limits<double>::quiet_NaN();
    if (special == Special::infinities && random.chance(0.05))
      real = (is_product_order(semiring) || random.chance(0.5) ? 1 : -1) * std::numeric_limits<double>::infinity();
    std::int64_t whole = random.integer(-1000, 1000);
    if (is_boolean(semiring))
      whole = type == Scalar::u8 ? random.integer(0, 1) : static_cast<std::int64_t>(random.next() & random.next());
    else if (is_of_codes(semiring))
      whole = random.chance(0.2) ? 0 : static_cast<std::int64_t>(random.next() & random.next());
    else if (semiring == "hamming")
      whole = random.integer(0, 3), real = std::isfinite(real) ? static_cast<double>(whole) : real;
    else if (is_product_order(semiring))
      whole = random.integer(0, 100);
    else if (narrow)
      whole = random.integer(type == Scalar::u8 ? 0 : -128, type == Scalar::u8 ? 255 : 127);
    // Sums and products wrap; minima and maxima take infinities instead.
    else if (special != Special::none && random.chance(0.05))
      whole = random.chance(0.5) ? infinity_of(type) : -infinity_of(type);
    set(bytes, type, at, real, whole);
  });
  return bytes;
}

std::int64_t wrapped(std::uint64_t v, Scalar type) {
  switch (type) {
    case Scalar::i16: return static_cast<std::int16_t>(v);
    case Scalar::i32: return static_cast<std::int32_t>(v);
    default: return static_cast<std::int64_t>(v);
  }
}

double least(double x, double y) { return x != x || y != y ? std::numeric_limits<double>::quiet_NaN() : std::fmin(x, y); }
double most(double x, double y) { return x != x || y != y ? std::numeric_limits<double>::quiet_NaN() : std::fmax(x, y); }

int count_bits(std::int64_t word) {
  int count = 0;
  for (int bit = 0; bit < 64; ++bit) count += static_cast<std::uint64_t>(word) >> bit & 1;
  return count;
}

double times(std::string_view s, double a, double b, double p) {
  if (s == "plus_times" || s == "max_times" || s == "min_times") return a * b;
  if (s == "min_plus" || s == "max_plus" || s == "log_plus") return a + b;
  if (s == "max_min") return least(a, b);
  if (s == "min_max") return most(a, b);
  if (s == "l1" || s == "linf") return std::fabs(a - b);
  if (s == "l2_squared") return (a - b) * (a - b);
  if (s == "lp") return std::pow(std::fabs(a - b), p);
  return a != b;  // hamming
}

double log_add(double x, double y) {
  const double larger = most(x, y);
  if (larger != larger || std::isinf(larger)) return larger;
  return larger + std::log(std::exp(x - larger) + std::exp(y - larger));
}

double plus(std::string_view s, double x, double y) {
  if (s.starts_with("min")) return least(x, y);
  if (s.starts_with("max") || s == "linf") return most(x, y);
  if (s == "log_plus") return log_add(x, y);
  return x + y;
}

std::int64_t times(std::string_view s, std::int64_t a, std::int64_t b, Scalar type) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  const std::int64_t difference = wrapped(x - y, type);
  if (s == "plus_times" || s == "max_times" || s == "min_times") return wrapped(x * y, type);
  if (s == "min_plus" || s == "max_plus") return wrapped(x + y, type);
  if (s == "max_min") return std::min(a, b);
  if (s == "min_max") return std::max(a, b);
  if (s == "l1" || s == "linf")
    return difference < 0 ? wrapped(0 - static_cast<std::uint64_t>(difference), type) : difference;
  if (s == "l2_squared")
    return wrapped(static_cast<std::uint64_t>(difference) * static_cast<std::uint64_t>(difference), type);
  if (is_boolean(s)) return a & b;
  if (s == "bit_hamming") return count_bits(a ^ b);
  return a != b;
}

std::int64_t plus(std::string_view s, std::int64_t x, std::int64_t y, Scalar type) {
  if (s.starts_with("min")) return std::min(x, y);
  if (s.starts_with("max") || s == "linf") return std::max(x, y);
  if (s == "or_and") return x | y;
  if (s == "xor_and") return x ^ y;
  return wrapped(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y), type);
}

double rounded(double v, Scalar type) {
  switch (type) {
    case Scalar::f16: return rigel::half(static_cast<float>(v));
    case Scalar::bf16: return rigel::bfloat16(static_cast<float>(v));
    case Scalar::f32: return static_cast<float>(v);
    default: return v;
  }
}

double real_identity(std::string_view s) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (s.starts_with("min")) return infinity;
  if (s == "max_plus" || s == "max_min" || s == "log_plus") return -infinity;
  return 0;
}
std::int64_t integer_identity(std::string_view s, Scalar type) {
  if (s.starts_with("min")) return infinity_of(type);
  if (s == "max_plus" || s == "max_min") return -infinity_of(type);
  return 0;
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
  p.span += 7;  // behind the last element
  return p;
}

std::string Trial::text() const {
  constexpr const char* names[] = {"right", "left", "padded right", "padded left", "scattered", "interleaved"};
  constexpr const char* shares[] = {"", ", A shared", ", B shared", ", both shared"};
  constexpr const char* specials[] = {"", ", NaN", ", infinities"};
  return std::to_string(batch) + " x " + std::to_string(m) + 'x' + std::to_string(n) + 'x' + std::to_string(k) + ", A " +
         names[int(a)] + ", B " + names[int(b)] + ", C " + names[int(c)] + shares[int(share)] +
         (index == rigel::Batch::last ? ", batch last" : "") + (accumulate ? ", accumulated" : "") + ", epilogue " +
         std::to_string(epilogue) + specials[int(special)] + ", seed " + std::to_string(seed);
}

rigel::epilogue::Program Trial::program(std::string_view semiring) const {
  if (epilogue == 0) return {};
  if (semiring == "or_and") return rigel::epilogue::any_bit();
  if (semiring == "xor_and") return rigel::epilogue::parity();
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
  for (Trial t : {list[0], list[1], list[2]}) {  // nothing to write
    (list.size() % 3 == 0 ? t.m : list.size() % 3 == 1 ? t.n : t.batch) = 0;
    list.push_back(t);
  }
  return list;
}

Operands operands_for(const Trial& t, std::string_view semiring, Scalar element, Scalar result) {
  Random random(t.seed);
  Operands o;
  const bool shares_a = t.share == Share::a || t.share == Share::both,
             shares_b = t.share == Share::b || t.share == Share::both;
  o.a = place(t.a, shares_a ? 1 : t.batch, t.m, t.k);
  o.b = place(t.b, shares_b ? 1 : t.batch, t.k, t.n);
  o.c = place(t.c, t.batch, t.m, t.n);
  o.a_bytes = random_bytes(o.a, semiring, element, t.special, random);
  o.b_bytes = random_bytes(o.b, semiring, element, t.special, random);
  o.c_bytes = random_bytes(o.c, semiring, result, Special::none, random);
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

Model model(const Trial& t, const Operands& o, std::string_view s, Scalar element, Scalar result, double p) {
  Model out;
  for (std::int64_t l = 0; l < t.batch; ++l)
    for (std::int64_t m = 0; m < t.m; ++m)
      for (std::int64_t n = 0; n < t.n; ++n) {
        if (s == "bit_jaccard") {
          int both = 0, either = 0;
          for (std::int64_t k = 0; k < t.k; ++k) {
            const std::int64_t x = integer(o.a_bytes, element, o.a.at(l, m, k)),
                               y = integer(o.b_bytes, element, o.b.at(l, k, n));
            both += count_bits(x & y);
            either += count_bits(x | y);
          }
          // Rounding a quotient to double first changes nothing: it has more than twice the digits of float.
          out.value.push_back(either == 0 ? 0 : rounded(static_cast<double>(either - both) / either, result));
          out.magnitude.push_back(0);
        } else if (is_floating(result)) {
          double x = real_identity(s), magnitude = 0;
          if (t.accumulate) x = real(o.c_bytes, result, o.c.at(l, m, n)), magnitude = std::fabs(x);
          for (std::int64_t k = 0; k < t.k; ++k) {
            double y = times(s, real(o.a_bytes, element, o.a.at(l, m, k)), real(o.b_bytes, element, o.b.at(l, k, n)), p);
            // One rounding to the result's type, of a sum or product that double holds to more than twice its digits.
            if (s == "linf" || s.starts_with("m")) y = rounded(y, result);
            x = plus(s, x, y);
            magnitude += std::fabs(y);
          }
          out.value.push_back(x);
          out.magnitude.push_back(magnitude);
        } else {
          std::int64_t x = integer_identity(s, result);
          if (t.accumulate) x = integer(o.c_bytes, result, o.c.at(l, m, n));
          for (std::int64_t k = 0; k < t.k; ++k)
            x = plus(
                s, x,
                times(s, integer(o.a_bytes, element, o.a.at(l, m, k)), integer(o.b_bytes, element, o.b.at(l, k, n)), result),
                result);
          out.whole.push_back(x);
        }
      }
  return out;
}

}  // namespace support

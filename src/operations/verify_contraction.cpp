// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify(): a kernel against the reference, over a grid of hostile problems. Types are known at run time
// only, so everything here works on bytes and doubles.
#include "verify.hpp"

#include "../engine/registry.hpp"

#include <rigel/detail/arguments.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/epilogue_views.hpp>
#include <rigel/semiring_info.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

namespace rigel {
namespace {

using Bytes = std::vector<unsigned char>;
using detail::convert;

// Calls visit(T{}) for the C++ type of a scalar.
template <class Visit>
void with_scalar(Scalar type, const Visit& visit) {
  detail::with_type<std::int64_t>(type, nullptr, [&]<class T>(T*) { visit(T{}); });
}

bool is_floating(Scalar s) { return s <= Scalar::f64; }

double unit_roundoff(Scalar s) {
  switch (s) {
    case Scalar::f16: return 0x1p-11;
    case Scalar::bf16: return 0x1p-8;
    case Scalar::f32: return 0x1p-24;
    default: return 0x1p-53;
  }
}

enum class Layout { right, left, strided };
enum class Special { none, nan, infinities };
enum class Steps { none, with_numbers, with_views };  // of the epilogue

struct Case {
  std::int64_t batch, m, n, k;
  Layout a, b, c;
  bool broadcast_a, broadcast_b, accumulate;
  Special special;
  Steps steps = Steps::none;
  std::string text() const {
    constexpr const char* layouts[] = {"right", "left", "strided"};
    constexpr const char* specials[] = {"", ", with NaN", ", with infinities"};
    constexpr const char* epilogues[] = {"", ", with an epilogue", ", with an epilogue that reads memory"};
    return std::to_string(batch) + " x " + std::to_string(m) + 'x' + std::to_string(n) + 'x' + std::to_string(k) +
           ", layouts " + layouts[int(a)] + '/' + layouts[int(b)] + '/' + layouts[int(c)] +
           (broadcast_a ? ", A broadcast" : "") + (broadcast_b ? ", B broadcast" : "") +
           (accumulate ? ", accumulated" : "") + epilogues[int(steps)] + specials[int(special)];
  }
};

// Strides of a batch of matrices, and how many elements they span. Strided ones leave gaps and start unaligned.
struct Shape {
  Operand operand;
  std::int64_t first = 0, span = 0;
};

Shape shape_of(Scalar type, Layout layout, std::int64_t batches, std::int64_t rows, std::int64_t columns) {
  Shape s;
  Operand& o = s.operand;
  o.type = type;
  o.size = size_of(type);
  o.batches = batches;
  o.rows = rows;
  o.columns = columns;
  switch (layout) {
    case Layout::right:
      o.row_stride = columns;
      o.column_stride = 1;
      break;
    case Layout::left:
      o.row_stride = 1;
      o.column_stride = rows;
      break;
    case Layout::strided:
      o.row_stride = 3 * columns + 1;
      o.column_stride = 3;
      s.first = 1;
      break;
  }
  const std::int64_t matrix = layout == Layout::strided ? o.row_stride * rows + 2 : rows * columns;
  if (batches != 1) o.batch_stride = matrix;
  s.span = s.first + matrix * batches;
  return s;
}

template <class Visit>
void for_each_element(const Shape& s, const Visit& visit) {
  const Operand& o = s.operand;
  for (std::int64_t l = 0; l < o.batches; ++l)
    for (std::int64_t i = 0; i < o.rows; ++i)
      for (std::int64_t j = 0; j < o.columns; ++j)
        visit(s.first + l * o.batch_stride + i * o.row_stride + j * o.column_stride);
}

double get(const Bytes& bytes, Scalar type, std::int64_t i) {
  double value = 0;
  with_scalar(type, [&](auto zero) {
    std::memcpy(&zero, bytes.data() + i * sizeof zero, sizeof zero);
    value = static_cast<double>(zero);
  });
  return value;
}

void set(Bytes& bytes, Scalar type, std::int64_t i, double value) {
  with_scalar(type, [&](auto zero) {
    zero = convert<decltype(zero)>(value);
    std::memcpy(bytes.data() + i * sizeof zero, &zero, sizeof zero);
  });
}

// Random operands in the semiring's domain: small numbers, of either sign if it allows that; words of bits; 0 and 1. With specials,
// one element in sixteen is a NaN, or an infinity of either sign.
Bytes random_values(const Shape& s, Domain domain, Special special, std::mt19937_64& random) {
  const Scalar type = s.operand.type;
  Bytes bytes(static_cast<std::size_t>(s.span) * size_of(type), 0xff);
  const bool bits = (domain == Domain::truth_values || domain == Domain::words) && !is_floating(type);
  const bool non_negative = domain == Domain::non_negative;
  std::uniform_real_distribution<double> uniform(non_negative ? 0 : -1, 1);
  for_each_element(s, [&](std::int64_t i) {
    double value = uniform(random);
    if (domain == Domain::truth_values && is_floating(type)) return set(bytes, type, i, value < 0 ? 0 : 1);
    if (bits) {
      std::uint64_t word = random() & random();
      if (domain == Domain::truth_values) word &= 1;
      std::memcpy(bytes.data() + i * size_of(type), &word, size_of(type));
      return;
    }
    if (!is_floating(type)) value = type == Scalar::u8 ? std::floor(std::abs(value) * 255) : std::floor(value * 100);
    if (is_floating(type) && special != Special::none && random() % 16 == 0) {
      const double infinity = std::numeric_limits<double>::infinity();
      value = special == Special::nan        ? std::numeric_limits<double>::quiet_NaN()
              : non_negative || random() % 2 ? infinity
                                             : -infinity;
    }
    set(bytes, type, i, value);
  });
  return bytes;
}

// Memory of an execution space, filled from the host and read back.
template <class Exec>
class Buffer {
  using Device = Kokkos::View<unsigned char*, typename Exec::memory_space>;
  using Host = Kokkos::View<const unsigned char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

 public:
  explicit Buffer(const Bytes& bytes) : memory_("rigel::verify", bytes.size() + padding) {
    Kokkos::deep_copy(Kokkos::subview(memory_, range(bytes.size())), Host(bytes.data(), bytes.size()));
  }
  void* at(std::int64_t byte) const { return memory_.data() + byte; }
  Bytes read(std::size_t size) const {
    Bytes bytes(size);
    Kokkos::View<unsigned char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(bytes.data(), size);
    Kokkos::deep_copy(host, Kokkos::subview(memory_, range(size)));
    return bytes;
  }

 private:
  static constexpr std::size_t padding = 16;
  static Kokkos::pair<std::size_t, std::size_t> range(std::size_t size) { return {0, size}; }
  Device memory_;
};

// What epilogues read: factors of rows and of columns, powers of two up to 1, and a matrix to add.
template <class Exec>
class Sources {
  template <class Data>
  using View = Kokkos::View<Data, Kokkos::LayoutRight, typename Exec::memory_space>;

 public:
  Sources(const Case& c, unsigned seed)
      : row_("rigel::verify", c.batch, c.n),
        column_("rigel::verify", c.batch, c.m),
        matrix_("rigel::verify", c.batch, c.m, c.n) {
    std::mt19937_64 random(seed);
    const auto factor = [&] { return 1 / static_cast<float>(1 << random() % 3); };
    fill(row_, factor);
    fill(column_, factor);
    fill(matrix_, [&] { return static_cast<float>(random() % 7) - 3; });
  }
  epilogue::Program factors() const { return epilogue::scale_row(row_) | epilogue::scale_column(column_); }
  epilogue::Program sum() const { return epilogue::residual(matrix_); }

 private:
  template <class Numbers, class Next>
  static void fill(const Numbers& numbers, const Next& next) {
    const auto host = Kokkos::create_mirror_view(numbers);
    std::generate_n(host.data(), host.size(), next);
    Kokkos::deep_copy(numbers, host);
  }
  View<float**> row_, column_;
  View<float***> matrix_;
};

struct Inputs {
  Shape a, b, c;
  Bytes a_bytes, b_bytes, c_bytes;
};

// The problem on `exec`, run by the kernel of that name with a semiring object, and what it left in C.
template <class Exec>
Bytes solve(const Exec& exec, const Kernel<Contraction>& kernel, const void* object, const Inputs& in, bool accumulate,
            const epilogue::Program& program) {
  const Buffer<Exec> a(in.a_bytes), b(in.b_bytes), c(in.c_bytes);
  Contraction p;
  p.semiring = semiring_of(kernel.info);
  p.element = kernel.info.element;
  p.accumulator = kernel.info.accumulator;
  p.precision = kernel.info.precision;
  const auto place = [](const Shape& s, const Buffer<Exec>& buffer) {
    Operand o = s.operand;
    o.data = buffer.at(s.first * static_cast<std::int64_t>(o.size));
    return o;
  };
  p.a = place(in.a, a);
  p.b = place(in.b, b);
  p.c = place(in.c, c);
  p.batch = p.c.batches;
  p.m = p.c.rows;
  p.n = p.c.columns;
  p.k = p.a.columns;
  p.semiring_object = object;
  p.program = &program;
  p.epilogue_object = &program;
  p.accumulate = accumulate;
  p.kernel = kernel.info.name;
  p.execution = detail::execution_of(exec);
  run(kernel, p);
  exec.fence("rigel::verify");
  return c.read(in.c_bytes.size());
}

// The reference of a semiring with elements of this type, and with accumulators as in `info` if the elements are too.
const Kernel<Contraction>* find_reference(const KernelInfo& info, Scalar element) {
  auto& operation = engine::registry_of<Contraction>();
  const std::shared_lock lock(operation.mutex);
  for (const auto& kernel : operation.registry.all()) {
    const KernelInfo& other = kernel->info;
    if (other.family == "reference" && semiring_of(other) == semiring_of(info) && other.element == element &&
        (element != info.element || other.accumulator == info.accumulator))
      return kernel.get();
  }
  return nullptr;
}

// Another kernel of the same key and bit class, unless that is the reference's; null if there is none.
const Kernel<Contraction>* find_peer(const Kernel<Contraction>& kernel) {
  if (covers(kernel.info.promises, Promise::reference_bits)) return nullptr;
  auto& operation = engine::registry_of<Contraction>();
  const std::shared_lock lock(operation.mutex);
  for (const Kernel<Contraction>* other : operation.registry.find(Contraction::key_of(kernel.info)))
    if (other != &kernel && bit_class_of(other->info) == bit_class_of(kernel.info)) return other;
  return nullptr;
}

// The operands as doubles, for the reference in f64; by absolute value where the bound wants |C| + Σ|a ⊗ b|.
Inputs in_f64(const Inputs& in, bool absolute_operands, bool absolute_start) {
  Inputs out = in;
  const auto widen = [&](Shape& s, const Bytes& from, Bytes& to, bool absolute) {
    const Scalar type = s.operand.type;
    s.operand.type = Scalar::f64;
    s.operand.size = sizeof(double);
    to.assign(static_cast<std::size_t>(s.span) * sizeof(double), 0);
    for_each_element(s, [&](std::int64_t i) {
      const double v = get(from, type, i);
      set(to, Scalar::f64, i, absolute ? std::abs(v) : v);
    });
  };
  widen(out.a, in.a_bytes, out.a_bytes, absolute_operands);
  widen(out.b, in.b_bytes, out.b_bytes, absolute_operands);
  widen(out.c, in.c_bytes, out.c_bytes, absolute_start);
  return out;
}

// The rows of A and C from `first` on, in the same memory.
Inputs last_rows(Inputs in, std::int64_t first) {
  for (Shape* s : {&in.a, &in.c}) {
    s->first += first * s->operand.row_stride;
    s->operand.rows -= first;
  }
  return in;
}

// Largest magnitude among the finite values of an operand.
double largest(const Shape& s, const Bytes& bytes) {
  double most = 0;
  for_each_element(s, [&](std::int64_t i) {
    const double v = std::abs(get(bytes, s.operand.type, i));
    if (std::isfinite(v)) most = std::max(most, v);
  });
  return most;
}

bool equal(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// What the semiring says of itself, by the kernel or else by its reference: all that verify() needs, or an error.
const SemiringInfo& facts_of(const Kernel<Contraction>& kernel, const Kernel<Contraction>& reference) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::unsupported, "verify: '" + kernel.info.name + "' " + what);
  };
  const SemiringInfo* facts = kernel.info.facts ? kernel.info.facts : reference.info.facts;
  if (!facts) refuse("and its reference have no facts of their semiring; expected &semiring_info<S>() as KernelInfo::facts");
  if (SemiringId{facts->name, facts->type} != semiring_of(kernel.info) || facts->element != kernel.info.element ||
      facts->accumulator != kernel.info.accumulator)
    refuse("has the facts of another semiring, '" + std::string(facts->name) + '\'');
  const std::string semiring = "is for the semiring '" + std::string(facts->name) + "', ";
  if (facts->element == Scalar::other || facts->result == Scalar::other)
    refuse(semiring + "whose elements or results are none of Rigel's scalars");
  if (!facts->sample) refuse(semiring + "of which there is no object; expected a default constructor or a static sample()");
  return *facts;
}

template <class Exec>
class Verifier {
 public:
  Verifier(const Kernel<Contraction>& kernel, const Kernel<Contraction>* reference, Verification& result, unsigned seed)
      : kernel_(kernel), has_own_reference_(reference != nullptr), result_(result), seed_(seed) {
    reference_ = reference ? reference : find_reference(kernel.info, kernel.info.element);
    wide_reference_ = find_reference(kernel.info, Scalar::f64);
    peer_ = find_peer(kernel);
    if (!reference_)
      throw Error(Code::unsupported, "verify: '" + kernel.info.name + "' has no registered reference for its semiring");
    facts_ = &facts_of(kernel, *reference_);
    wide_facts_ = facts_;
    if (wide_reference_ && wide_reference_ != reference_) wide_facts_ = &facts_of(*wide_reference_, *wide_reference_);
    if (!bitwise() && facts_->errors == ErrorModel::unknown)
      throw Error(Code::unsupported, "verify: '" + kernel.info.name + "' is held to a bound, but its semiring '" +
                                         std::string(facts_->name) + "' states no error model; expected a static member " +
                                         "`errors` of type ErrorModel");
  }

  void check(Case c) {
    c.accumulate = c.accumulate && kernel_.info.accumulates;
    const unsigned seed = seed_ + static_cast<unsigned>(result_.problems);
    std::mt19937_64 random(seed);
    const Scalar element = facts_->element, result = facts_->result;
    const Sources<Exec> sources(c, seed);
    const epilogue::Program program = program_for(result, c.steps, sources);
    const Scalar value = is_floating(result) || program.size() == program.bit_steps() ? result : Scalar::f64;  // of C
    Inputs in;
    in.a = shape_of(element, c.a, c.broadcast_a ? 1 : c.batch, c.m, c.k);
    in.b = shape_of(element, c.b, c.broadcast_b ? 1 : c.batch, c.k, c.n);
    in.c = shape_of(value, c.c, c.batch, c.m, c.n);
    in.a_bytes = random_values(in.a, facts_->domain, c.special, random);
    in.b_bytes = random_values(in.b, facts_->domain, c.special, random);
    in.c_bytes = random_values(in.c, facts_->domain, Special::none, random);
    if (value != result) make_whole(in.c_bytes);  // chains of integers start with them
    const Exec exec{};
    Bytes actual;
    try {
      actual = solve_by(exec, kernel_, in, c.accumulate, program);
    } catch (const Error& e) {
      if (e.code() != Code::unsupported) throw;
      if (c.steps != Steps::none) return;  // the kernel does not claim this problem
      c.steps = Steps::with_numbers;       // but perhaps this one
      return check(c);
    }
    ++result_.problems;
    computes_ = computes_ || (c.batch > 0 && c.m > 0 && c.n > 0);  // else nothing was asked of the kernel
    add_to_digest(in, actual);
    if (covers(kernel_.info.promises, Promise::repeatable) && solve_by(exec, kernel_, in, c.accumulate, program) != actual)
      fail(c, "two runs gave different bits");
    if (covers(kernel_.info.promises, Promise::batch_invariant) && c.m > 1 &&
        (program.empty() || program.bit_steps() > 0)) {  // others may depend on the row
      // One row alone, or the lower half, in a call of its own.
      const Inputs rows = last_rows(in, result_.problems % 2 ? c.m - 1 : c.m / 2);
      if (const auto alone = solve_part(rows, c.accumulate, program))
        compare_bits(c, rows, actual, *alone, "outputs depend on the number of rows");
    }
    if (peer_) compare_with_peer(c, in, actual, program);
    if (bitwise())
      compare_bits(c, in, actual, solve_by(exec, *reference_, over_others(in, c.accumulate), c.accumulate, program),
                   "outputs differ");
    else
      compare_bound(c, in, actual, program);
    compare_gaps(c, in, actual);
  }

  /// Whether the kernel covered a problem with results.
  bool computes() const { return computes_; }

 private:
  // What the kernel makes of some of the rows. None if C, which it gets transposed where columns are contiguous, must have an
  // aligned number of rows that these are not: such a call gets another kernel of the bit class.
  std::optional<Bytes> solve_part(const Inputs& rows, bool accumulate, const epilogue::Program& program) const {
    const bool aligns_rows = rows.c.operand.row_stride == 1 && kernel_.info.operands[2].alignment > 1;
    try {
      return solve_by(Exec{}, kernel_, rows, accumulate, program);
    } catch (const Error& e) {
      if (!aligns_rows || e.decline() != Decline::layout) throw;
      return {};
    }
  }

  // NaN counts as one value, and so does zero.
  void add_to_digest(const Inputs& in, const Bytes& actual) {
    const Scalar type = in.c.operand.type;
    for_each_element(in.c, [&](std::int64_t i) {
      const double value = get(actual, type, i);
      std::uint64_t bits = 0;
      if (is_floating(type))
        bits = std::isnan(value) ? ~std::uint64_t(0) : std::bit_cast<std::uint64_t>(value + 0.0);
      else
        std::memcpy(&bits, actual.data() + i * static_cast<std::int64_t>(size_of(type)), size_of(type));
      for (int byte = 0; byte < 8; ++byte) result_.digest = (result_.digest ^ (bits >> 8 * byte & 0xff)) * 0x100000001b3;
    });
  }

  // Doubles from 0 to 100 instead.
  static void make_whole(Bytes& doubles) {
    for (std::size_t i = 0; i + sizeof(double) <= doubles.size(); i += sizeof(double)) {
      double value = 0;
      std::memcpy(&value, doubles.data() + i, sizeof value);
      value = std::floor(std::fmod(std::abs(value), 1) * 100);
      std::memcpy(doubles.data() + i, &value, sizeof value);
    }
  }

  // The same inputs over another C, unless its values count: an output that one of two kernels does not write then differs.
  static Inputs over_others(Inputs in, bool accumulate) {
    if (!accumulate)
      for (unsigned char& byte : in.c_bytes) byte = static_cast<unsigned char>(~byte);
    return in;
  }

  bool bitwise() const {
    return has_own_reference_ || covers(kernel_.info.promises, Promise::reference_bits) || !is_floating(facts_->result);
  }

  // Steps that add no rounding of their own where a bound is to be kept.
  epilogue::Program program_for(Scalar value, Steps steps, const Sources<Exec>& sources) const {
    if (steps == Steps::none) return {};
    if (!is_floating(value) && facts_->join != Join::none)
      return facts_->join == Join::any_bit ? epilogue::any_bit() : epilogue::parity();
    epilogue::Program program = epilogue::scale(0.5);
    if (steps == Steps::with_views) program = program | sources.factors();
    if (bitwise()) program = program | epilogue::add_diagonal(3);
    return bitwise() && steps == Steps::with_views ? program | sources.sum() : program;
  }

  void fail(const Case& c, const std::string& what) {
    engine::fail(result_, kernel_.info, detail::space_of<Exec>, seed_, c.text(), what);
  }

  void compare_bits(const Case& c, const Inputs& in, const Bytes& actual, const Bytes& expected, const char* what) {
    const Scalar type = in.c.operand.type;
    const std::size_t size = size_of(type);
    std::int64_t wrong = 0;
    double first = 0, wanted = 0;
    for_each_element(in.c, [&](std::int64_t i) {
      if (std::memcmp(actual.data() + i * size, expected.data() + i * size, size) == 0) return;
      const double x = get(actual, type, i), y = get(expected, type, i);
      if (is_floating(type) && equal(x, y)) return;
      if (wrong++ == 0) first = x, wanted = y;
    });
    if (wrong)
      fail(c,
           std::to_string(wrong) + ' ' + what + ", the first: " + std::to_string(first) + " for " + std::to_string(wanted));
  }

  // The kernels of a bit class give the same bits, if the other one covers the problem.
  void compare_with_peer(const Case& c, const Inputs& in, const Bytes& actual, const epilogue::Program& program) {
    Bytes expected;
    try {
      expected = solve_by(Exec{}, *peer_, over_others(in, c.accumulate), c.accumulate, program);
    } catch (const Error& e) {
      if (e.code() != Code::unsupported) throw;
      return;
    }
    compare_bits(c, in, actual, expected, ("outputs differ from " + peer_->info.name + "'s, of the same bit class").c_str());
  }

  // |error| ≤ (constant + per_term·K)·u·magnitude against the reference in f64, the magnitude by the semiring's error model.
  // What is infinite or NaN there must be the same here.
  void compare_bound(const Case& c, const Inputs& in, const Bytes& actual, const epilogue::Program& program) {
    if (!wide_reference_) return fail(c, "there is no f64 reference to compute the bound from");
    const Exec exec{};
    const Inputs wide = in_f64(in, false, false);
    const Bytes exact = solve_by(exec, *wide_reference_, wide, c.accumulate, program);
    const bool logarithmic = facts_->errors == ErrorModel::logarithmic;
    const bool has_signs = facts_->errors == ErrorModel::products;
    const Bytes magnitudes =
        logarithmic ? exact : solve_by(exec, *wide_reference_, in_f64(in, has_signs, true), c.accumulate, program);
    // A logarithm's error is that of its argument, plus the roundings of exponents as large as the operands.
    const double exponent =
        logarithmic ? 1 + largest(in.a, in.a_bytes) + largest(in.b, in.b_bytes) + largest(in.c, in.c_bytes) : 0;
    const double unit = unit_roundoff(in.c.operand.type), terms = static_cast<double>(c.k + c.accumulate);
    const double gamma = kernel_.info.accuracy.of(c.k + c.accumulate) * unit;
    // A relative error is stated besides what one chain is off by, and not of a result that what C held before may cancel.
    const double relative = c.accumulate ? 0 : kernel_.info.relative_error, chain = (2 + terms) * unit;
    std::int64_t wrong = 0;
    double worst = 0;
    for_each_element(in.c, [&](std::int64_t i) {
      const double x = get(actual, in.c.operand.type, i), y = get(exact, Scalar::f64, i);
      const double magnitude = logarithmic ? exponent : std::abs(get(magnitudes, Scalar::f64, i));
      const double bound = relative > 0 ? std::min(gamma > 0 ? gamma * magnitude : std::numeric_limits<double>::infinity(),
                                                   relative * std::abs(y) + chain * magnitude)
                                        : gamma * magnitude;
      if (equal(x, y) || (std::isfinite(y) && std::abs(x - y) <= bound)) return;
      ++wrong;
      worst = std::max(worst, std::abs(x - y) / bound);
    });
    if (wrong) fail(c, std::to_string(wrong) + " outputs are out of bound, up to " + std::to_string(worst) + " times");
  }

  // Memory of C between its elements is as it was.
  void compare_gaps(const Case& c, const Inputs& in, const Bytes& actual) {
    Bytes after = actual, before = in.c_bytes;
    const std::size_t size = in.c.operand.size;
    for_each_element(in.c, [&](std::int64_t i) {
      std::memset(after.data() + i * size, 0, size);
      std::memset(before.data() + i * size, 0, size);
    });
    if (after != before) fail(c, "memory between the elements of C was written");
  }

  // `kernel` is this one or its reference; the one in f64 has a semiring object of its own type.
  Bytes solve_by(const Exec& exec, const Kernel<Contraction>& kernel, const Inputs& in, bool accumulate,
                 const epilogue::Program& program) const {
    return solve(exec, kernel, (kernel.info.element == facts_->element ? facts_ : wide_facts_)->sample, in, accumulate,
                 program);
  }

  const Kernel<Contraction>& kernel_;
  const bool has_own_reference_;
  const Kernel<Contraction>* reference_;
  const Kernel<Contraction>* wide_reference_;
  const Kernel<Contraction>* peer_;
  const SemiringInfo* facts_;       // of the kernel's semiring
  const SemiringInfo* wide_facts_;  // of wide_reference_'s
  Verification& result_;
  unsigned seed_;
  bool computes_ = false;
};

// Sizes around the tile, the small ones and a prime; every pair of values of two factors occurs in some case.
std::vector<Case> cases_for(const KernelInfo& info, unsigned seed) {
  const std::int64_t tile_m = info.tile.m ? info.tile.m : 16, tile_n = info.tile.n ? info.tile.n : 16,
                     tile_k = info.tile.k ? info.tile.k : 16;
  const auto sizes = [](std::int64_t tile) { return std::vector<std::int64_t>{1, tile - 1, tile, tile + 1, 3, 37}; };
  const std::vector<std::int64_t> m = sizes(tile_m), n = sizes(tile_n);
  const std::vector<std::int64_t> k = {0, 1, tile_k - 1, tile_k, tile_k + 1, 2 * tile_k + 1, 67};
  std::mt19937_64 random(seed);
  const auto pick = [&](const std::vector<std::int64_t>& list) { return list[random() % list.size()]; };
  const auto layout = [&] { return static_cast<Layout>(random() % 3); };
  std::vector<Case> cases = {{1, 0, 5, 3, {}, {}, {}, false, false, false, {}},
                             {1, 5, 0, 3, {}, {}, {}, false, false, false, {}},
                             {0, 5, 5, 3, {}, {}, {}, false, false, false, {}},
                             {1, 5, 7, 0, {}, {}, {}, false, false, false, {}},
                             {1, 1, 1, 1, {}, {}, {}, false, false, false, {}},
                             {2, 5, 7, 0, {}, {}, {}, false, false, true, {}},
                             {1, tile_m, tile_n, tile_k, {}, Layout::left, {}, false, false, false, {}}};
  // Operands that allow vectors, in each pair of layouts.
  for (const Layout a : {Layout::right, Layout::left})
    for (const Layout b : {Layout::right, Layout::left})
      cases.push_back({2, tile_m + 8, tile_n + 8, 5 * tile_k, a, b, Layout::right, a == b, false, false, {}});
  constexpr int random_cases = 20;
  for (int i = 0; i < random_cases; ++i) {
    const std::int64_t batch = i % 3 == 0 ? 3 : 1;
    cases.push_back({batch, pick(m), pick(n), pick(k), layout(), layout(), layout(), batch > 1 && random() % 3 == 0,
                     batch > 1 && random() % 3 == 0, random() % 4 == 0,
                     i % 5 == 0   ? Special::nan
                     : i % 5 == 1 ? Special::infinities
                                  : Special::none,
                     random() % 4 != 0 ? Steps::none
                     : i % 2           ? Steps::with_views
                                       : Steps::with_numbers});
  }
  cases.push_back({2, tile_m + 8, tile_n + 8, tile_k, {}, {}, Layout::right, false, false, false, {}, Steps::with_views});
  cases.push_back({1, tile_m + 1, tile_n + 1, tile_k, {}, {}, Layout::left, false, false, false, {}, Steps::with_views});
  return cases;
}

template <class... Exec>
void verify_on(type_list<Exec...>, const Kernel<Contraction>& kernel, const Kernel<Contraction>* reference, unsigned seed,
               Verification& result) {
  bool computes = false;
  const auto on = [&]<class E>(type_list<E>) {
    if ((kernel.info.spaces & bit(detail::space_of<E>)) == 0) return;
    Verifier<E> verifier(kernel, reference, result, seed);
    for (const Case& c : cases_for(kernel.info, seed)) verifier.check(c);
    computes = computes || verifier.computes();
  };
  (on(type_list<Exec>{}), ...);
  if (!computes) result.problems = 0;
}

}  // namespace

Verification engine::verify(const Kernel<Contraction>& kernel, unsigned seed, const Kernel<Contraction>* reference) {
  Verification result;
  verify_on(detail::compiled_spaces{}, kernel, reference, seed, result);
  return result;
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problems as data, without a template for each type: random ones, and those that a text names, each as a rigel::Contraction
// on the measured execution space. Their subjects are the zoo's semirings and, if a program has any, functors of a user.
//
//     <semiring>,<types>,<L>,<M>,<N>,<K>[,<layouts>[,<options>]]        lp,f32,64,100,100,100,r/c+8/ru,p=1.5
//
// types     as in names of kernels: f32, or f16_f16 if the accumulator has 16 bits
// layouts   of A, B and C: r for row-major or c for column-major, then +<padding of the leading dimension>, u if the base is
//           one element off, b if one matrix serves the whole batch; default "r/r/r"
// options   joined by '+': a precision, reference_bits, batch_invariant, may_cancel, root, any_bit, parity, short_c (C has A's
//           type), accumulate, the data of A and B by name (Data), and the semiring's hyperparameters by name, p=<p>
#pragma once

#include <bench/exec.hpp>
#include <rigel/detail/arguments.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/registry.hpp>
#include <rigel/semiring_info.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct Layout {
  bool by_columns = false, unaligned = false, broadcast = false;
  std::int64_t padding = 0;  // elements
};

enum class Step { none, root, any_bit, parity };
inline constexpr std::array step_names{"", "root", "any_bit", "parity"};

/// A semiring and its types.
struct Subject {
  std::string semiring;         // as a problem's text names it
  rigel::KernelInfo reference;  // the info of its reference kernel: types and facts
  /// For a functor, the same call through the front end, which brings the kernels instantiated for it. It may write 32-bit
  /// integers to `indices`, which has the extents of C. Null: the call itself.
  std::shared_ptr<const rigel::Contraction> (*bind)(const Exec&, const rigel::Contraction&, std::int32_t* indices) = nullptr;
  rigel::Scalar result = rigel::Scalar::other;  // what C holds
  std::size_t bytes_of_index = 0;               // what each output costs in addition to C
};

/// What a problem looks like: one that a text names, or a kind of random problem.
enum class Kind { named, squares, small_batches, few_rows, short_k, few_outputs, medium_batches };
inline constexpr std::array kind_names{"named",       "squares",       "batches of small matrices", "few rows", "short K",
                                       "few outputs", "medium batches"};

/// What A and B hold. Ordinary data are random numbers; all others have made a fast path slow, or might. Where nothing else is said, A
/// alone is special.
enum class Data {
  ordinary,
  nan_in_rows,      // one NaN in each row of A
  nan_in_few_rows,  // one NaN in each hundredth row of A
  nan_in_columns,   // one NaN in each column of B
  nan,              // 1 % NaN
  infinities,       // 1 % infinities of both signs
  overflow,         // half of A near the type's largest value
  near_points,      // A and B: from 1 to 1 + the root of the type's epsilon, so that norms cancel
  subnormals,       // A and B
  zeros,            // A and B
  constants,        // A and B: one value
  extremes          // A and B, of integers and words: the type's least and largest value
};
inline constexpr std::array data_names{"ordinary",   "nan_in_rows", "nan_in_few_rows", "nan_in_columns",
                                       "nan",        "infinities",  "overflow",        "near_points",
                                       "subnormals", "zeros",       "constants",       "extremes"};
inline const char* name(Data data) { return data_names[static_cast<int>(data)]; }

/// The data of a name; throws if there is none.
inline Data data_of(const std::string& name) {
  const auto found = std::ranges::find(data_names, name);
  if (found == data_names.end()) throw std::runtime_error("no data is called '" + name + "'");
  return static_cast<Data>(found - data_names.begin());
}

/// Whether A and B can hold such data.
inline bool can_hold(const Subject& subject, Data data) {
  if (data == Data::ordinary || data == Data::zeros || data == Data::constants) return true;
  if (data == Data::extremes)
    return subject.reference.element > rigel::Scalar::f64 && subject.reference.facts->domain != rigel::Domain::truth_values;
  return subject.reference.element <= rigel::Scalar::f64;
}

struct Spec {
  Subject subject;
  Kind kind = Kind::named;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::array<Layout, 3> layouts;  // of A, B and C
  rigel::Precision precision = rigel::Precision::accumulator;
  rigel::Promise require = rigel::Promise::none;
  bool may_cancel = false, short_c = false, accumulate = false;
  Step step = Step::none;
  Data data = Data::ordinary;
  std::vector<double> hyperparameters;  // all of the semiring's; if empty, those of its sample
};

/// The zoo.
inline std::vector<Subject> zoo() {
  std::vector<Subject> subjects;
  for (const rigel::KernelInfo& info :
       rigel::kernels({.name = "reference", .operation = "contract", .spaces = rigel::bit(rigel::detail::space_of<Exec>)}))
    subjects.push_back({.semiring = info.semiring, .reference = info, .result = info.facts->result});
  return subjects;
}

/// "f32", or "f16_f16" if the accumulator has 16 bits.
inline std::string types_of(const rigel::KernelInfo& info) {
  std::string text = name(info.element);
  if (info.accumulator == rigel::Scalar::f16 || info.accumulator == rigel::Scalar::bf16)
    text += std::string("_") + name(info.accumulator);
  return text;
}

inline std::string text(const Spec& s) {
  std::ostringstream text;
  text << s.subject.semiring << ',' << types_of(s.subject.reference);
  for (const std::int64_t extent : {s.batch, s.m, s.n, s.k}) text << ',' << extent;
  char separator = ',';
  for (const Layout& l : s.layouts) {
    text << separator << (l.by_columns ? 'c' : 'r');
    if (l.padding) text << '+' << l.padding;
    text << (l.unaligned ? "u" : "") << (l.broadcast ? "b" : "");
    separator = '/';
  }
  separator = ',';
  const auto option = [&](bool on, const auto&... words) {
    if (!on) return;
    ((text << separator) << ... << words);
    separator = '+';
  };
  option(s.precision != rigel::Precision::accumulator, name(s.precision));
  option(s.require == rigel::Promise::reference_bits, "reference_bits");
  option(s.require == rigel::Promise::batch_invariant, "batch_invariant");
  option(s.may_cancel, "may_cancel");
  option(s.step != Step::none, step_names[static_cast<int>(s.step)]);
  option(s.short_c, "short_c");
  option(s.accumulate, "accumulate");
  option(s.data != Data::ordinary, name(s.data));
  for (std::size_t i = 0; i < s.hyperparameters.size(); ++i)
    option(true, s.subject.reference.facts->hyperparameters[i].name, '=', s.hyperparameters[i]);
  return text.str();
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

inline Layout parse_layout(const std::string& word) {
  Layout l;
  std::istringstream rest(word + '.');
  const auto next_is = [&](char c) { return rest.peek() == c && rest.get() == c; };
  l.by_columns = next_is('c');
  const bool known = l.by_columns || next_is('r');
  if (next_is('+')) rest >> l.padding;
  l.unaligned = next_is('u');
  l.broadcast = next_is('b');
  if (!known || !next_is('.') || l.padding < 0 || rest.peek() != std::istringstream::traits_type::eof())
    throw std::runtime_error("the layout is '" + word + "', expected r or c, then +<padding>, u and b");
  return l;
}

// Sets a hyperparameter from the word <name>=<value>; the others have the sample's values. False if the word is not of that
// form.
inline bool set_hyperparameter(Spec& s, const std::string& word) {
  const rigel::SemiringInfo& facts = *s.subject.reference.facts;
  for (std::size_t i = 0; i < facts.hyperparameters.size(); ++i) {
    const std::string start = std::string(facts.hyperparameters[i].name) + '=';
    if (!word.starts_with(start)) continue;
    if (s.hyperparameters.empty())
      for (const rigel::Hyperparameter& h : facts.hyperparameters) s.hyperparameters.push_back(h.get(facts.sample));
    s.hyperparameters[i] = std::strtod(word.c_str() + start.size(), nullptr);
    return true;
  }
  return false;
}

inline void parse_option(Spec& s, const std::string& word) {
  for (int i = 0; i <= static_cast<int>(rigel::Precision::operands); ++i)
    if (const auto precision = static_cast<rigel::Precision>(i); word == name(precision))
      return void(s.precision = precision);
  for (std::size_t i = 1; i < step_names.size(); ++i)
    if (word == step_names[i]) return void(s.step = static_cast<Step>(i));
  if (std::ranges::find(data_names, word) != data_names.end()) return void(s.data = data_of(word));
  if (word == "reference_bits")
    s.require = rigel::Promise::reference_bits;
  else if (word == "batch_invariant")
    s.require = rigel::Promise::batch_invariant;
  else if (word == "may_cancel")
    s.may_cancel = true;
  else if (word == "short_c")
    s.short_c = true;
  else if (word == "accumulate")
    s.accumulate = true;
  else if (!set_hyperparameter(s, word))
    throw std::runtime_error("no option is called '" + word + "'");
}

inline Spec parse(const std::string& line, const std::vector<Subject>& subjects) {
  const std::vector<std::string> words = split(line, ',');
  if (words.size() < 6 || words.size() > 8)
    throw std::runtime_error("the problem is '" + line + "', expected semiring,types,L,M,N,K[,layouts[,options]]");
  Spec s;
  for (const Subject& subject : subjects)
    if (subject.semiring == words[0] && types_of(subject.reference) == words[1]) s.subject = subject;
  if (s.subject.semiring.empty()) throw std::runtime_error("no semiring is called " + words[0] + " of " + words[1]);
  std::int64_t* const extents[] = {&s.batch, &s.m, &s.n, &s.k};
  for (int i = 0; i < 4; ++i)
    if ((*extents[i] = std::atoll(words[2 + i].c_str())) < 1)
      throw std::runtime_error("an extent is '" + words[2 + i] + "', expected a number from 1 on");
  const std::vector<std::string> layouts = split(words.size() > 6 ? words[6] : "r/r/r", '/');
  if (layouts.size() != 3) throw std::runtime_error("the layouts are '" + words[6] + "', expected those of A, B and C");
  std::transform(layouts.begin(), layouts.end(), s.layouts.begin(), parse_layout);
  if (words.size() > 7)
    for (const std::string& word : split(words[7], '+')) parse_option(s, word);
  if (!can_hold(s.subject, s.data))
    throw std::runtime_error(words[0] + " of " + words[1] + " has no data that is called '" + name(s.data) + "'");
  return s;
}

/// The largest random problem: its pairs, and the bytes of A, B and C together as doubles.
inline constexpr bool on_gpu = rigel::detail::space_of<Exec> == rigel::Space::cuda;
inline constexpr double most_pairs = on_gpu ? 0x1p33 : 0x1p28, most_bytes = on_gpu ? 0x1p31 : 0x1p28;

// Draws random problems. The i-th problem of a seed depends on the subjects, but on no kernel and no prediction.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t index) : random_(seed * 1000003 + index) {}

  Spec problem(const std::vector<Subject>& subjects) {
    Spec s;
    s.subject = subjects[below(subjects.size())];
    options(s);
    do {
      extents(s);
      for (Layout& l : s.layouts)
        l = {one_in(2), one_in(6), one_in(6) && s.batch > 1, one_in(3) ? std::array{1, 8, 64}[below(3)] : 0};
      s.layouts[2].broadcast = false;
    } while (
        double(s.batch) * s.m * s.n * s.k > most_pairs ||
        8. * s.batch *
                (elements(s.layouts[0], s.m, s.k) + elements(s.layouts[1], s.k, s.n) + elements(s.layouts[2], s.m, s.n)) >
            most_bytes);
    return s;
  }

  /// The data of what problem() returned, special in one of ten problems.
  Data data(const Subject& subject) {
    if (!one_in(10)) return Data::ordinary;
    std::vector<Data> special;
    for (std::size_t i = 1; i < data_names.size(); ++i)
      if (can_hold(subject, static_cast<Data>(i))) special.push_back(static_cast<Data>(i));
    return special[below(special.size())];
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(int n) { return below(n) == 0; }
  static double elements(const Layout& l, double rows, double columns) {
    return rows * columns + l.padding * (l.by_columns ? columns : rows);
  }
  // An extent whose logarithm is uniform. Every second one is a multiple of 16, if it is larger than that.
  std::int64_t between(double least, double most) {
    const double u = static_cast<double>(random_() >> 11) * 0x1p-53;
    const auto n = static_cast<std::int64_t>(least * std::pow((most + 1) / least, u));
    return one_in(2) && n > 16 ? n / 16 * 16 : n;
  }

  void extents(Spec& s) {
    s.batch = 1;
    s.kind = static_cast<Kind>(1 + below(6));
    switch (s.kind) {
      case Kind::squares: s.m = s.n = s.k = between(32, 2048); break;
      case Kind::small_batches:
        s.batch = between(16, 60000), s.m = between(2, 96), s.n = between(2, 96), s.k = between(2, 96);
        break;
      case Kind::few_rows:
        s.m = between(1, 64), s.n = between(1e3, 1e6), s.k = between(8, 4096);
        if (one_in(2)) std::swap(s.m, s.n);
        break;
      case Kind::short_k: s.m = between(64, 16384), s.n = between(64, 16384), s.k = between(1, 8); break;
      case Kind::few_outputs: s.m = between(1, 64), s.n = between(1, 64), s.k = between(1e3, 3e5); break;
      default:  // medium_batches
        s.batch = between(4, 64), s.m = between(100, 1000), s.n = between(100, 1000), s.k = between(100, 1000);
    }
  }

  void options(Spec& s) {
    using enum rigel::Precision;
    const rigel::KernelInfo& of = s.subject.reference;
    const bool short_float = of.element == rigel::Scalar::f16 || of.element == rigel::Scalar::bf16;
    const bool is_distance = of.semiring == "l2_squared";  // the semiring that has the option may_cancel
    const bool is_float = of.element <= rigel::Scalar::f64;
    if (one_in(3) && of.element == rigel::Scalar::f32)
      s.precision = std::array{exact_products, promoted, split, bf16x3, tf32}[below(5)];
    else if (one_in(3) && is_float)
      s.precision = short_float ? operands : promoted;
    if (one_in(6)) s.require = rigel::Promise::reference_bits;
    s.may_cancel = is_distance && one_in(3);
    s.short_c = short_float && one_in(2);
    if (is_distance && is_float && one_in(3)) s.step = Step::root;
    const rigel::Join join = of.facts->join;
    if (join != rigel::Join::none && one_in(2)) s.step = join == rigel::Join::any_bit ? Step::any_bit : Step::parity;
    for (std::size_t i = 0; i < of.facts->hyperparameters.size(); ++i)
      s.hyperparameters.push_back(std::array{1.3, 1.5, 3., 0.7}[below(4)]);
  }

  std::mt19937_64 random_;
};

/// Memory that grows on demand, aligned to 256 bytes. Growing loses its contents.
template <class Space>
class MemoryIn {
 public:
  unsigned char* at_least(std::size_t bytes) {
    constexpr std::size_t alignment = 256;
    if (bytes + alignment > bytes_.size()) {
      bytes_ = {};
      bytes_ = Bytes(Kokkos::view_alloc("bench", Kokkos::WithoutInitializing), bytes + alignment);
    }
    return bytes_.data() + (-reinterpret_cast<std::uintptr_t>(bytes_.data()) & (alignment - 1));
  }

 private:
  using Bytes = Kokkos::View<unsigned char*, Space>;
  Bytes bytes_;
};
using Memory = MemoryIn<Exec::memory_space>;
using HostMemory = MemoryIn<Kokkos::HostSpace>;

/// A random number: floats from 0.25 to 4, signed integers below 64, truth values, and for other types random bits.
template <class T>
KOKKOS_INLINE_FUNCTION T ordinary(std::uint32_t bits, bool truth_values) {
  if constexpr (!std::is_integral_v<T>)
    return static_cast<T>(0.25f + 3.75f * (static_cast<float>(bits >> 8) * 0x1p-24f));
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>(bits >> 26);
  else
    return truth_values ? bits & 1 : static_cast<T>(bits * std::uint64_t{0x9e3779b97f4a7c15} >> 8);
}

/// The largest value of a float, its least normal one, and the root of its epsilon, as numbers that convert to it.
template <class T>
struct Limits {
  using Number = std::conditional_t<sizeof(T) == 8, double, float>;
  static constexpr rigel::Scalar type = rigel::scalar_of<T>;
  static constexpr bool is_half = type == rigel::Scalar::f16, is_bfloat = type == rigel::Scalar::bf16;
  static constexpr Number largest = is_half     ? Number(65504)
                                    : is_bfloat ? Number(0x1.fep127)
                                                : std::numeric_limits<Number>::max();
  static constexpr Number least_normal = is_half ? Number(0x1p-14) : std::numeric_limits<Number>::min();
  static constexpr Number root_of_epsilon = Number(is_half          ? 0x1p-5
                                                   : is_bfloat      ? 0x1p-4
                                                   : sizeof(T) == 8 ? 0x1p-26
                                                                    : 0x1p-12);
};

/// A random number of special data, in whose place `x` would be in ordinary data.
template <class T>
KOKKOS_INLINE_FUNCTION T special(Data data, std::uint32_t bits, T x, bool truth_values) {
  const bool upper_half = bits >> 31 != 0;
  if (data == Data::zeros) return T(0);
  if constexpr (std::is_integral_v<T>) {
    if (data == Data::constants) return truth_values ? 1 : 3;
    if (data != Data::extremes) return x;
    return upper_half ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  } else {
    using Number = typename Limits<T>::Number;
    const Number part = static_cast<Number>(bits >> 8) * Number(0x1p-24);
    const bool one_in_hundred = bits % 100 == 0;
    switch (data) {
      case Data::nan: return one_in_hundred ? static_cast<T>(Number(NAN)) : x;
      case Data::infinities: return one_in_hundred ? static_cast<T>(upper_half ? Number(INFINITY) : -Number(INFINITY)) : x;
      case Data::overflow: return upper_half ? static_cast<T>(Number(0.9) * Limits<T>::largest) : x;
      case Data::near_points: return static_cast<T>(1 + Limits<T>::root_of_epsilon * part);
      case Data::subnormals: return static_cast<T>(Limits<T>::least_normal * part);
      case Data::constants: return static_cast<T>(Number(1.5));
      default: return x;
    }
  }
}

template <class T>
void fill(const Exec& exec, T* to, std::int64_t count, std::uint32_t seed, bool truth_values, Data data) {
  Kokkos::parallel_for(
      "bench::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const auto place = static_cast<std::uint32_t>(i);
        const T x = ordinary<T>(random_bits(place, seed), truth_values);
        to[i] = data == Data::ordinary ? x : special<T>(data, random_bits(place, seed + 100), x, truth_values);
      });
}

/// Makes a random element of each line NaN, or of each `every`-th line: of rows, or of columns.
template <class T>
void put_nans(const Exec& exec, T* to, const rigel::Operand& o, bool in_columns, std::int64_t every) {
  if constexpr (!std::is_integral_v<T>) {
    const std::int64_t lines = in_columns ? o.columns : o.rows, length = in_columns ? o.rows : o.columns;
    const std::int64_t of_line = in_columns ? o.column_stride : o.row_stride,
                       along = in_columns ? o.row_stride : o.column_stride, of_batch = o.batch_stride;
    Kokkos::parallel_for(
        "bench::put_nans", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, o.batches * lines),
        KOKKOS_LAMBDA(const std::int64_t i) {
          const std::int64_t k = random_bits(static_cast<std::uint32_t>(i), 7) % length;
          if (i % every == 0)
            to[i / lines * of_batch + i % lines * of_line + k * along] = static_cast<T>(typename Limits<T>::Number(NAN));
        });
  }
}

inline std::int64_t span(const rigel::Operand& o) {
  return (o.batches - 1) * o.batch_stride + (o.rows - 1) * o.row_stride + (o.columns - 1) * o.column_stride + 1;
}

enum class Side { a, b, neither };

/// Fills a matrix that is A or B, or of which only data of both is known.
inline void fill(const Exec& exec, const rigel::Operand& o, Side side, std::uint32_t seed, bool truth_values, Data data) {
  const bool of_both = data >= Data::near_points;
  rigel::detail::with_type<std::int64_t>(o.type, o.data, [&](auto* to) {
    fill(exec, to, span(o), seed, truth_values, side == Side::a || of_both ? data : Data::ordinary);
    if (data == Data::nan_in_rows && side == Side::a) put_nans(exec, to, o, false, 1);
    if (data == Data::nan_in_few_rows && side == Side::a) put_nans(exec, to, o, false, 100);
    if (data == Data::nan_in_columns && side == Side::b) put_nans(exec, to, o, true, 1);
  });
}

/// The memory of a problem: A, B, C, and the indices that some functors write.
struct Pool {
  std::array<Memory, 3> operands;
  Memory indices;
};

/// A Spec with its matrices: A and B are filled, C only if it is accumulated. It reuses the memory of the previous one.
class Instance {
 public:
  Instance(const Exec& exec, const Spec& s, Pool& pool) : exec_(exec) {
    const rigel::KernelInfo& of = s.subject.reference;
    const rigel::SemiringInfo& facts = *of.facts;
    problem_.semiring = semiring_of(of);
    problem_.element = of.element;
    problem_.accumulator = of.accumulator;
    semiring_.resize(1 + facts.size / sizeof(std::max_align_t));
    std::memcpy(semiring_.data(), facts.sample, facts.size);
    for (std::size_t i = 0; i < s.hyperparameters.size(); ++i)
      facts.hyperparameters[i].set(semiring_.data(), s.hyperparameters[i]);
    problem_.semiring_object = semiring_.data();
    problem_.batch = s.batch;
    problem_.m = s.m;
    problem_.n = s.n;
    problem_.k = s.k;
    problem_.a = operand(of.element, s.layouts[0], s.batch, s.m, s.k, pool.operands[0]);
    problem_.b = operand(of.element, s.layouts[1], s.batch, s.k, s.n, pool.operands[1]);
    problem_.c = operand(s.short_c ? of.element : s.subject.result, s.layouts[2], s.batch, s.m, s.n, pool.operands[2]);
    if (s.step == Step::root) program_ = rigel::epilogue::pow(0.5);
    if (s.step == Step::any_bit) program_ = rigel::epilogue::any_bit();
    if (s.step == Step::parity) program_ = rigel::epilogue::parity();
    problem_.program = &program_;
    problem_.epilogue_object = &program_;
    problem_.require = s.require;
    problem_.precision = s.precision;
    problem_.may_cancel = s.may_cancel;
    problem_.execution = rigel::detail::execution_of(exec_);
    const bool truth_values = facts.domain == rigel::Domain::truth_values;
    fill(exec, problem_.a, Side::a, 1, truth_values, s.data);
    fill(exec, problem_.b, Side::b, 2, truth_values, s.data);
    problem_.accumulate = s.accumulate;
    if (s.accumulate) fill(exec, problem_.c, Side::neither, 3, truth_values, Data::ordinary);
    if (s.subject.bind) bind(s.subject, pool.indices);
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const rigel::Contraction& problem() const { return bound_ ? *bound_ : problem_; }

  /// The bytes of A, B and C, each element once, those of an accumulated C once more, and those of the indices.
  double bytes() const {
    double sum = static_cast<double>(bytes_of_indices_);
    const rigel::Operand& c = problem_.c;
    if (problem_.accumulate) sum += static_cast<double>(c.size) * c.batches * c.rows * c.columns;
    for (const rigel::Operand* o : {&problem_.a, &problem_.b, &problem_.c})
      sum += static_cast<double>(o->size) * o->batches * o->rows * o->columns;
    return sum;
  }

 private:
  void bind(const Subject& subject, Memory& indices) {
    bytes_of_indices_ = subject.bytes_of_index * static_cast<std::size_t>(problem_.batch * problem_.m * problem_.n);
    bound_ = subject.bind(exec_, problem_, reinterpret_cast<std::int32_t*>(indices.at_least(bytes_of_indices_)));
  }

  static rigel::Operand operand(rigel::Scalar type, const Layout& l, std::int64_t batch, std::int64_t rows,
                                std::int64_t columns, Memory& memory) {
    const std::int64_t leading_dimension = (l.by_columns ? rows : columns) + l.padding;
    rigel::Operand o;
    o.type = type;
    o.size = size_of(type);
    o.batches = l.broadcast ? 1 : batch;
    o.rows = rows;
    o.columns = columns;
    o.row_stride = l.by_columns ? 1 : leading_dimension;
    o.column_stride = l.by_columns ? leading_dimension : 1;
    if (o.batches > 1) o.batch_stride = leading_dimension * (l.by_columns ? columns : rows);
    const std::size_t first = l.unaligned ? o.size : 0;
    o.data = memory.at_least(first + o.size * static_cast<std::size_t>(span(o))) + first;
    return o;
  }

  Exec exec_;
  rigel::Contraction problem_;
  std::shared_ptr<const rigel::Contraction> bound_;  // problem_ through the front end
  std::size_t bytes_of_indices_ = 0;
  rigel::epilogue::Program program_;
  std::vector<std::max_align_t> semiring_;  // the object
};

}  // namespace bench

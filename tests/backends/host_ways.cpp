// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ways of the host family (grid.hpp), each forced where a choice would take the fastest: blocks, batches whose lanes are
// matrices, and slices of K. Semirings of the zoo by the registered kernels of every level, and users' functors by kernels that
// this file instantiates. Bits are the reference's; those of a transcendental ⊗, and of slices whose ⊕ rounds, are within the
// bound, and depend neither on the number of threads nor on other rows.
#include <rigel/contract.hpp>
#include <rigel/dissimilarities.hpp>

#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#if RIGEL_BACKEND_HOST && RIGEL_BACKEND_REFERENCE

#include <tests/support/formulas.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/problem.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace host = rigel::backends::host;
using host::Way;
using rigel::Contraction, rigel::Kernel, rigel::Scalar, rigel::SemiringInfo;
using support::Bytes, support::Order, support::Special;

// ---- problems --------------------------------------------------------------------------------------------------------

struct Extents {
  std::int64_t batch, m, n, k;
};
struct List {
  std::vector<Extents> extents;
  std::vector<Way> ways;
};

/// The lanes of a vector of 16, 32 and 64 bytes, by which loops are unlike at their ends.
std::vector<std::int64_t> lanes_of(const SemiringInfo& facts) {
  const bool is_short = facts.operand == Scalar::f16 || facts.operand == Scalar::bf16;  // computed in float
  const auto size = static_cast<std::int64_t>(is_short ? 4 : rigel::size_of(facts.operand));
  const std::int64_t group = facts.transcendental ? 4 : 1;  // of vectors
  return {group * 16 / size, group * 32 / size, group * 64 / size};
}

/// Numbers of matrices that fill lanes, or miss them by one; the smallest matrices.
List batches(const SemiringInfo& facts) {
  constexpr std::int64_t shapes[][3] = {{1, 1, 1},  {2, 3, 5},  {3, 1, 13}, {5, 5, 0}, {1, 17, 2},  {13, 2, 3}, {17, 5, 17},
                                        {5, 33, 1}, {3, 3, 33}, {33, 1, 5}, {2, 2, 2}, {13, 13, 3}, {1, 1, 33}, {5, 3, 7}};
  std::set<std::int64_t> counts = {1};
  for (const std::int64_t lanes : lanes_of(facts)) counts.insert({lanes - 1, lanes, lanes + 1, 3 * lanes + 2});
  counts.erase(0);
  List list{{}, {Way::batches, Way::blocks, Way::slices}};
  std::size_t next = 0;
  for (const std::int64_t count : counts)
    for (int i = 0; i < 4; ++i, ++next) {
      const auto& s = shapes[next % std::size(shapes)];
      list.extents.push_back({count, s[0], s[1], s[2]});
    }
  return list;
}

/// K that fills lanes, or misses them by one; one slice and several; one tile and several, which threads share or do not.
List few_outputs(const SemiringInfo& facts) {
  constexpr std::int64_t outputs[][2] = {{1, 1},  {2, 3},  {4, 1},  {5, 4},  {16, 16},
                                         {17, 2}, {3, 33}, {33, 5}, {1, 16}, {16, 3}};
  std::set<std::int64_t> depths = {0, 1};
  for (const std::int64_t lanes : lanes_of(facts)) depths.insert({lanes - 1, lanes, lanes + 1});
  List list{{}, {Way::slices, Way::blocks}};
  std::size_t next = 0;
  for (const std::int64_t k : depths)
    for (int i = 0; i < 3; ++i, ++next) {
      const auto& o = outputs[next % std::size(outputs)];
      list.extents.push_back({1 + i % 2, o[0], o[1], k});
    }
  for (const Extents& e : {Extents{1, 33, 33, 97},
                           {1, 3, 5, 4095},
                           {1, 1, 17, 4096},
                           {2, 16, 2, 4096},
                           {1, 17, 4, 4097},
                           {5, 5, 1, 4097},
                           {1, 4, 3, 12293},
                           {1, 17, 1, 12293},
                           {1, 2, 1, 70000},
                           {1, 1, 3, 70000}})
    list.extents.push_back(e);
  return list;
}

/// Rows at the edge of a block, and blocks of K.
List edges(const SemiringInfo& facts) {
  constexpr std::int64_t columns[] = {1, 3, 7, 15, 17, 31, 33, 47, 65};
  const std::vector<std::int64_t> depths = facts.transcendental ? std::vector<std::int64_t>{0, 1, 31, 257}
                                                                : std::vector<std::int64_t>{0, 1, 31, 32, 33, 256, 257, 600};
  List list{{}, {Way::blocks}};
  std::size_t next = 0;
  for (std::int64_t m = 1; m <= 13; ++m)
    for (const std::int64_t k : depths) list.extents.push_back({1, m, columns[next++ % std::size(columns)], k});
  return list;
}

// ---- a semiring and its kernels --------------------------------------------------------------------------------------

/// What is computed, and by which kernels.
template <class Exec>
struct Subject {
  SemiringInfo facts;
  bool few_values = true;     // of the operands
  bool nan_has_order = true;  // whether ⊕ gives the same in any order with NaN, too
  bool reorders = true;       // whether kernels may take k in another order
  bool has_formula = true;    // whether the zoo's formula has the object's hyperparameters
  std::vector<Kernel<Contraction>> kernels = {};
  std::function<Bytes(support::Problem<Exec>&)> reference;
  const void* object;                       // the semiring
  bool in_view = false;                     // whether there is one for each matrix of a batch
  const void* functor = nullptr;            // the epilogue, if it is none of the closed set
  bool converts = false;                    // whether C may have any type
  std::shared_ptr<const void> memory = {};  // holds `object`
};

/// Whether a way gives the reference's bits.
bool has_reference_bits(const Kernel<Contraction>& kernel, Way way, const SemiringInfo& facts) {
  return way == Way::slices ? facts.exact : covers(kernel.info.promises, rigel::Promise::reference_bits);
}
/// Whether a kernel computes a problem in a way: kernels for slices alone do in no other, and lanes of a batch share a semiring.
template <class Exec>
bool computes_in(const Kernel<Contraction>& kernel, Way way, const Subject<Exec>& subject, const Contraction& p) {
  const bool only_slices = kernel.info.variant.starts_with("split_k");
  if (way == Way::slices) return only_slices || (subject.facts.exact && subject.reorders);
  return !only_slices && (way == Way::blocks || p.semiring_stride == 0);
}

/// C's bytes after a run of the problem, or of what `part` makes of it, in a way. The workspace begins with unlikely values, and
/// what follows it stays as it was.
template <class Exec, class Part>
Bytes result_in(Way way, const Kernel<Contraction>& kernel, support::Problem<Exec>& problem, int threads, const Part& part) {
  constexpr std::size_t alignment = 256, after = 256;
  rigel::Plan plan;
  plan.keep(way);
  return problem.after([&](const Contraction& whole) {
    Contraction p = part(whole);
    p.execution.concurrency = threads;
    const std::size_t bytes = kernel.workspace(kernel, p, plan).bytes;
    Bytes memory(bytes + after + alignment, 0xff);
    void* first = memory.data();
    std::size_t space = memory.size();
    std::align(alignment, bytes + after, first, space);
    kernel.run(kernel, p, plan, {.data = first, .bytes = bytes});
    const auto* const end = static_cast<const unsigned char*>(first) + bytes;
    CHECK(std::all_of(end, end + after, [](unsigned char byte) { return byte == 0xff; }));
  });
}
const auto whole = [](const Contraction& p) { return p; };

/// Draws operands, C's type and an epilogue for each problem of a list, and runs every kernel in every way that the list names.
template <class Exec>
class Checker {
 public:
  Checker(const Subject<Exec>& subject, std::uint64_t seed) : subject_(subject), random_(seed) {}

  void check(const List& list) {
    for (std::size_t i = 0; i < list.extents.size(); i += step) {
      const Extents& e = list.extents[i];
      const support::Trial trial = drawn(e);
      CAPTURE(trial.text());
      SemiringInfo facts = subject_.facts;
      if (subject_.converts) facts.result = drawn_type(trial.epilogue > 0);
      CAPTURE(std::string(rigel::name(facts.result)));
      support::Problem<Exec> problem(trial, facts, support::operands_for(trial, facts, subject_.few_values));
      problem.p.semiring_object = subject_.object;
      problem.p.semiring_in_view = subject_.in_view;
      problem.p.semiring_stride = subject_.in_view ? 1 : 0;
      if (subject_.functor) problem.p.program = nullptr, problem.p.epilogue_object = subject_.functor;
      const auto row = numbers(e.batch, e.n), column = numbers(1, e.m);
      if (trial.epilogue == 2 && facts.join == rigel::Join::none)
        problem.program = rigel::epilogue::scale(0.5) | rigel::epilogue::add_row(row) | rigel::epilogue::add_column(column);
      run(problem, trial, list.ways);
    }
  }

 private:
  // All host spaces share the loops: some problems will do for the second one.
  static constexpr std::size_t step = std::is_same_v<Exec, Kokkos::DefaultHostExecutionSpace> ? 1 : 5;

  auto numbers(std::int64_t rows, std::int64_t columns) {
    std::vector<double> list;
    for (std::int64_t i = 0; i < rows * columns; ++i) list.push_back(static_cast<double>(random_.integer(-8, 8)));
    return support::matrix<float, Exec>(static_cast<int>(rows), static_cast<int>(columns), list);
  }

  support::Trial drawn(const Extents& e) {
    using enum Order;
    const auto order = [&] {
      return random_.pick({right, right, left, left, padded_right, padded_left, scattered, interleaved});
    };
    using support::Share;
    const bool accumulates = subject_.kernels.front().info.accumulates;
    // A transcendental ⊗ is held to a bound, which other epilogues would change.
    const int epilogues = subject_.functor ? 0 : subject_.facts.transcendental ? 1 : 2;
    return {.batch = e.batch,
            .m = e.m,
            .n = e.n,
            .k = e.k,
            .a = order(),
            .b = order(),
            .c = order(),
            .share = e.batch > 1 ? random_.pick({Share::none, Share::none, Share::a, Share::b, Share::both}) : Share::none,
            .index = rigel::Batch::first,
            .accumulate = accumulates && random_.chance(0.3),
            .epilogue = random_.chance(0.5) ? 0 : static_cast<int>(random_.integer(0, epilogues)),
            .special =
                random_.pick({Special::none, Special::none, Special::few, Special::few, Special::nan, Special::infinities}),
            .seed = random_.next()};
  }

  static bool is_whole(Scalar type) { return !support::is_floating(type); }
  // Of C. Steps turn integers into numbers that not every integer type takes.
  Scalar drawn_type(bool has_steps) {
    using enum Scalar;
    const Scalar own = subject_.facts.result;
    if (!is_whole(own)) return random_.pick({own, own, f16, bf16, f32, f64});
    if (has_steps && subject_.facts.join == rigel::Join::none) return random_.pick({f16, bf16, f32, f64, i8, u8, i32});
    return random_.pick({own, own, own, own, f16, bf16, f32, f64, i8, u8, i16, i32, i64, u32, u64});
  }

  void run(support::Problem<Exec>& problem, const support::Trial& trial, const std::vector<Way>& ways) {
    const SemiringInfo& facts = subject_.facts;
    const support::Placement& c = problem.operands.c;
    const Scalar type = problem.p.c.type;
    const Bytes expected = facts.transcendental ? Bytes() : subject_.reference(problem);
    // The formulas are the zoo's, whose types have no identity of their own.
    const bool has_model = subject_.has_formula && !facts.exact && !facts.type && type == facts.result && trial.epilogue < 2;
    const support::Model model = has_model ? support::model(trial, problem.operands, facts) : support::Model{};
    const bool has_nan = trial.special == Special::nan || trial.special == Special::few;
    for (const Kernel<Contraction>& kernel : subject_.kernels) {
      CAPTURE(kernel.info.name);
      rigel::Plan chosen;
      kernel.cost(kernel, problem.p, chosen);
      CHECK(computes_in(kernel, chosen.get<Way>(), subject_, problem.p));
      Bytes of_chains;  // what blocks and batches compute alike
      for (const Way way : ways) {
        if (!computes_in(kernel, way, subject_, problem.p) || (way == Way::slices && has_nan && !subject_.nan_has_order))
          continue;
        CAPTURE(static_cast<int>(way));
        const int threads = random_.pick({1, 2, 5});
        CAPTURE(threads);
        const Bytes actual = result_in(way, kernel, problem, threads, whole);
        CHECK(support::same_gaps(c, type, actual, problem.operands.c_bytes));
        if (has_reference_bits(kernel, way, facts)) {
          CHECK(support::differences(c, type, actual, expected) == 0);
          continue;
        }
        if (has_model)
          CHECK(support::out_of_bound(trial, problem.operands, facts, model, actual, kernel.info.accuracy) == 0);
        if (way != Way::slices && !of_chains.empty()) CHECK(support::differences(c, type, actual, of_chains) == 0);
        if (way != Way::slices) of_chains = actual;
        if (trial.epilogue == 2) continue;  // it sees places
        const std::int64_t row = random_.integer(0, trial.m - 1);
        const Bytes alone = result_in(way, kernel, problem, 6 - threads, [&](const Contraction& p) {
          return rigel::detail::part_of(p, {0, p.batch}, {row, 1}, {0, p.n});
        });
        support::Placement of_row = c;
        of_row.first += row * c.row;
        of_row.rows = 1;
        CHECK(support::differences(of_row, type, alone, actual) == 0);
      }
    }
  }

  const Subject<Exec>& subject_;
  support::Random random_;
};

template <class Exec>
void check_all(const Subject<Exec>& subject, std::uint64_t seed) {
  CAPTURE(std::string(subject.facts.name));
  REQUIRE(!subject.kernels.empty());
  Checker<Exec> checker(subject, seed);
  checker.check(batches(subject.facts));
  checker.check(few_outputs(subject.facts));
  checker.check(edges(subject.facts));
}

// ---- the zoo's compiled kernels --------------------------------------------------------------------------------------

struct Types {
  const char* semiring;
  Scalar element, accumulator;
};
constexpr Types zoo[] = {{"min_plus", Scalar::f32, Scalar::f32},
                         {"min_plus", Scalar::f16, Scalar::f16},
                         {"max_min", Scalar::bf16, Scalar::bf16},
                         {"min_plus", Scalar::i16, Scalar::i16},
                         {"max_times", Scalar::f64, Scalar::f64},
                         {"plus_times", Scalar::f64, Scalar::f64},
                         {"l1", Scalar::i8, Scalar::i32},
                         {"hamming", Scalar::f16, Scalar::f32},
                         {"or_and", Scalar::u8, Scalar::u8},
                         {"or_and", Scalar::u32, Scalar::u32},
                         {"bit_hamming", Scalar::u8, Scalar::i32},
                         {"bit_hamming", Scalar::u64, Scalar::i32},
                         {"bit_jaccard", Scalar::u32, Scalar::other},
                         {"log_plus", Scalar::f32, Scalar::other},
                         {"lp", Scalar::f32, Scalar::f32}};

/// A semiring by name, with the kernels of all levels that this processor runs.
template <class Exec>
Subject<Exec> compiled(const Types& types) {
  const auto infos = support::kernels_on(Exec{}, types.semiring, types.element, types.accumulator);
  REQUIRE(!infos.empty());
  const SemiringInfo& facts = *infos.front().facts;
  const auto* const sample = static_cast<const unsigned char*>(facts.sample);
  const auto object = std::make_shared<Bytes>(sample, sample + facts.size);
  support::set_hyperparameters(facts, object->data());
  Subject<Exec> subject{.facts = facts,
                        .few_values = support::formula(facts.name).few_values,
                        .reference = [](support::Problem<Exec>& problem) { return problem.result("reference"); },
                        .object = object->data(),
                        .converts = !facts.transcendental,
                        .memory = object};
  support::Trial trial{};
  trial.batch = trial.m = trial.n = trial.k = 1;
  const support::Problem<Exec> any(trial, facts);
  for (const auto& candidate : rigel::candidates(any.p))
    if (candidate.kernel->info.family == "host" && candidate.kernel->supports(*candidate.kernel, any.p))
      subject.kernels.push_back(*candidate.kernel);
  return subject;
}

// ---- kernels of this file --------------------------------------------------------------------------------------------

/// Results with their places.
struct Placed {
  KOKKOS_FUNCTION double operator()(double v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return v + 0x1p20 * static_cast<double>(m) + 0x1p27 * static_cast<double>(n) + 0x1p34 * static_cast<double>(l);
  }
};

/// The value of with_argument's results, or the index.
struct PartOfArgument {
  bool of_index;
  template <class T>
  KOKKOS_FUNCTION double operator()(const rigel::argument<T>& x, std::int64_t, std::int64_t, std::int64_t) const {
    return of_index ? static_cast<double>(x.index) : static_cast<double>(x.value);
  }
};

/// A semiring with an epilogue and a C of `Value`, by the kernels that a call in this file would instantiate.
template <class Exec, class Value, class S, class E>
Subject<Exec> instantiated(const S& s, const E& epilogue) {
  using Finish = rigel::detail::FunctorFinish<E, Value, false>;
  static const Kernel<Contraction> reference = rigel::backends::reference::kernel<S, Finish, rigel::type_list<Exec>>();
  Subject<Exec> subject{.facts = rigel::semiring_info<S>(),
                        .reorders = host::reorders<S>,
                        .reference =
                            [](support::Problem<Exec>& problem) {
                              return problem.after([](const Contraction& p) { reference.run(reference, p, {}, {}); });
                            },
                        .object = &s,
                        .functor = std::is_same_v<E, rigel::epilogue::Program> ? nullptr : &epilogue};
  subject.facts.result = rigel::scalar_of<Value>;
  host::add_kernels<S, Finish, rigel::type_list<Exec>>([&](const Kernel<Contraction>& k) { subject.kernels.push_back(k); });
  return subject;
}

/// A semiring of Rigel's with an epilogue of the closed set.
template <class Exec, class S>
void check_instantiated(const S& s, bool few_values, std::uint64_t seed, bool has_formula = true) {
  Subject<Exec> subject = instantiated<Exec, rigel::result_t<S>>(s, rigel::epilogue::Program{});
  subject.few_values = few_values;
  subject.has_formula = has_formula;
  check_all(subject, seed);
}
template <class Exec, class S>
void check_zoo(std::uint64_t seed) {
  check_instantiated<Exec>(support::with_hyperparameters<S>(), support::formula(S::name).few_values, seed);
}

/// The two least max(a, b) over k; the second is the result.
struct SecondLeast {
  using element = float;
  struct accumulator {
    float least, second;
  };
  static constexpr bool commutative = true, exact = true;
  KOKKOS_FUNCTION static accumulator identity() {
    return {Kokkos::Experimental::infinity_v<float>, Kokkos::Experimental::infinity_v<float>};
  }
  KOKKOS_FUNCTION static accumulator multiply(float a, float b) {
    return {rigel::math::maximum(a, b), Kokkos::Experimental::infinity_v<float>};
  }
  KOKKOS_FUNCTION static accumulator add(accumulator x, accumulator y) {
    const float larger = x.least < y.least ? y.least : x.least, second = x.second < y.second ? x.second : y.second;
    return {x.least < y.least ? x.least : y.least, larger < second ? larger : second};
  }
  KOKKOS_FUNCTION static float result(accumulator x) { return x.second; }
};

/// The largest max(a, b), and the last k of it.
struct LastOfLargest {
  using element = float;
  struct accumulator {
    float value;
    std::int32_t k;
  };
  static constexpr bool exact = true;
  KOKKOS_FUNCTION static accumulator identity() { return {-Kokkos::Experimental::infinity_v<float>, -1}; }
  KOKKOS_FUNCTION static accumulator multiply(float a, float b, std::int64_t k) {
    return {rigel::math::maximum(a, b), static_cast<std::int32_t>(k)};
  }
  KOKKOS_FUNCTION static accumulator add(accumulator x, accumulator y) {
    return x.value > y.value || (x.value == y.value && x.k > y.k) ? x : y;
  }
  KOKKOS_FUNCTION static double result(accumulator x) { return 0x1p20 * static_cast<double>(x.value) + x.k; }
};

/// max_k a − w·b, whose ⊗ does not commute.
struct LargestDifference {
  using element = float;
  using accumulator = float;
  static constexpr bool exact = true;
  float w = 1;
  KOKKOS_FUNCTION static float identity() { return -Kokkos::Experimental::infinity_v<float>; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return a - w * b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x < y ? y : x; }
};

/// The same for vectors, with w = 1.
struct LanesOfDifference {
  using element = float;
  using accumulator = float;
  static constexpr bool exact = true, takes_lanes = true;
  RIGEL_MEMBER static float identity() { return -Kokkos::Experimental::infinity_v<float>; }
  template <rigel::Number T>
  RIGEL_MEMBER static T multiply(T a, T b) {
    return rigel::math::subtract(a, b);
  }
  template <rigel::Number T>
  RIGEL_MEMBER static T add(T x, T y) {
    return rigel::math::select(x < y, y, x);
  }
};

/// max_k (−1)^k·(a − b) of vectors, which share k.
struct LargestAlternating {
  using element = float;
  using accumulator = float;
  static constexpr bool exact = true, takes_lanes = true;
  RIGEL_MEMBER static float identity() { return -Kokkos::Experimental::infinity_v<float>; }
  template <rigel::Number T>
  RIGEL_MEMBER static T multiply(T a, T b, std::int64_t k) {
    return k % 2 == 0 ? rigel::math::subtract(a, b) : rigel::math::subtract(b, a);
  }
  template <rigel::Number T>
  RIGEL_MEMBER static T add(T x, T y) {
    return rigel::math::select(x < y, y, x);
  }
};

/// The largest max(a, b) of each k modulo 20, in an accumulator larger than a cache line; the sum of all is the result.
struct LargestByRemainder {
  using element = float;
  struct accumulator {
    float largest[20];
  };
  static constexpr bool exact = true;
  KOKKOS_FUNCTION static accumulator identity() { return {}; }
  KOKKOS_FUNCTION static accumulator multiply(float a, float b, std::int64_t k) {
    accumulator x{};
    x.largest[k % 20] = rigel::math::maximum(a, b);
    return x;
  }
  KOKKOS_FUNCTION static accumulator add(accumulator x, accumulator y) {
    for (int i = 0; i < 20; ++i) x.largest[i] = x.largest[i] < y.largest[i] ? y.largest[i] : x.largest[i];
    return x;
  }
  KOKKOS_FUNCTION static double result(accumulator x) {
    double sum = 0;
    for (const float largest : x.largest) sum += largest;
    return sum;
  }
};

/// A user's functor with an epilogue that sees places.
template <class Exec, class S>
void check_functor(const S& s, std::uint64_t seed) {
  const Placed placed;
  Subject<Exec> subject = instantiated<Exec, double>(s, placed);
  subject.nan_has_order = false;
  check_all(subject, seed);
}

// ---- steps in C ------------------------------------------------------------------------------------------------------

/// C as residual() takes it.
template <class T, class Exec>
auto view_of_c(const support::Problem<Exec>& problem) {
  const rigel::Operand& c = problem.p.c;
  const auto extent = [](std::int64_t x) { return static_cast<std::size_t>(x); };
  const Kokkos::LayoutStride layout(extent(c.batches), extent(c.batches == 1 ? c.rows * c.columns : c.batch_stride),
                                    extent(c.rows), extent(c.row_stride), extent(c.columns), extent(c.column_stride));
  return Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
      static_cast<T*>(c.data), layout);
}

/// C's bytes after `program` on each of its values.
Bytes applied(const rigel::epilogue::Program& program, const support::Placement& c, Scalar type, Bytes bytes) {
  const auto all = [&]<class T>(T) {
    for (std::int64_t l = 0; l < c.batches; ++l)
      for (std::int64_t i = 0; i < c.rows; ++i)
        for (std::int64_t j = 0; j < c.columns; ++j) {
          unsigned char* const at = bytes.data() + static_cast<std::size_t>(c.at(l, i, j)) * sizeof(T);
          T value;
          std::memcpy(&value, at, sizeof value);
          value = program(value, i, j, l);
          std::memcpy(at, &value, sizeof value);
        }
  };
  type == Scalar::f32 ? all(float()) : all(double());
  return bytes;
}

/// Epilogues where C has the sums' type, which blocks apply in C: edges of blocks and of the columns that take steps at a time,
/// several tiles and blocks of K, both directions of C, C with gaps. A step that an output took twice, or not at all, changes it.
template <class Exec>
void check_steps_in_c(const Subject<Exec>& subject, std::uint64_t seed) {
  namespace steps = rigel::epilogue;
  CAPTURE(std::string(subject.facts.name));
  const Scalar type = subject.facts.result;
  support::Random random(seed);
  constexpr Extents all[] = {{1, 1, 300, 2},  {1, 5, 33, 8},    {1, 6, 16, 1},    {1, 7, 17, 0},      {1, 13, 257, 8},
                             {1, 9, 600, 33}, {2, 14, 255, 3},  {1, 250, 20, 8},  {1, 250, 33, 257},  {1, 20, 300, 600},
                             {3, 12, 64, 65}, {1, 33, 513, 31}, {1, 14, 520, 40}, {1, 13, 530, 1000}, {1, 300, 2, 40}};
  constexpr Order orders[] = {Order::right, Order::left, Order::padded_right, Order::padded_left, Order::scattered};
  constexpr int programs = 6;
  int trials = 0;
  for (const Extents& e : all)
    for (int number = 0; number < programs; ++number, ++trials) {
      const support::Trial trial{.batch = e.batch,
                                 .m = e.m,
                                 .n = e.n,
                                 .k = e.k,
                                 .a = Order::right,
                                 .b = Order::left,
                                 .c = orders[trials % std::size(orders)],
                                 .share = support::Share::none,
                                 .index = rigel::Batch::first,
                                 .accumulate = subject.kernels.front().info.accumulates && random.chance(0.3),
                                 .epilogue = 1,
                                 .special = random.pick({Special::none, Special::none, Special::few}),
                                 .seed = random.next()};
      CAPTURE(trial.text());
      CAPTURE(number);
      support::Problem<Exec> problem(trial, subject.facts, support::operands_for(trial, subject.facts, subject.few_values));
      problem.p.semiring_object = subject.object;
      const auto numbers = [&](std::int64_t count) {
        std::vector<double> list;
        for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<double>(random.integer(-8, 8)));
        return support::matrix<float, Exec>(1, static_cast<int>(count), list);
      };
      const auto row = numbers(e.n), column = numbers(e.m);
      const auto set = [&]<class T>(T) {
        switch (number) {
          case 0: problem.program = steps::scale(0.75) | steps::add(1); break;
          case 1: problem.program = steps::clamp(-1, 2) | steps::add(0.5); break;
          case 2: problem.program = steps::pow(0.5) | steps::exponential(-0.25); break;
          case 3: problem.program = steps::relu() | steps::scale(-2) | steps::add_diagonal(3, 1, 0); break;
          case 4: problem.program = steps::add_row(row) | steps::scale_column(column) | steps::threshold(0.5); break;
          default: problem.program = steps::scale(0.5) | steps::residual(view_of_c<T>(problem)); break;
        }
      };
      type == Scalar::f32 ? set(float()) : set(double());
      const bool has_reference = !subject.facts.transcendental;
      const Bytes expected = has_reference ? subject.reference(problem) : Bytes();
      for (const Kernel<Contraction>& kernel : subject.kernels) {
        if (!computes_in(kernel, Way::blocks, subject, problem.p)) continue;
        CAPTURE(kernel.info.name);
        const int threads = random.pick({1, 2, 5});
        CAPTURE(threads);
        const Bytes actual = result_in(Way::blocks, kernel, problem, threads, whole);
        const support::Placement& c = problem.operands.c;
        CHECK(support::same_gaps(c, type, actual, problem.operands.c_bytes));
        if (has_reference) {
          CHECK(support::differences(c, type, actual, expected) == 0);
        } else if (number != programs - 1) {  // the last one reads C
          const steps::Program program = std::exchange(problem.program, steps::Program{});
          const Bytes sums = result_in(Way::blocks, kernel, problem, threads, whole);
          problem.program = program;
          CHECK(support::differences(c, type, actual, applied(program, c, type, sums)) == 0);
        }
      }
    }
}

/// Calls run.operator()<Exec>() if Exec runs on the host. Nothing is instantiated for a device.
template <class Exec, class Run>
void on_host(const Run& run) {
  if constexpr (support::on_host<Exec>)
    run.template operator()<Exec>();
  else
    support::skip("ways of the host: this execution space is a device's");
}

}  // namespace

TEST_CASE_TEMPLATE("ways of the host: compiled semirings at every level", Exec, RIGEL_TEST_SPACES) {
  on_host<Exec>([]<class Host>() {
    for (const Types& types : zoo) check_all(compiled<Host>(types), 1);
  });
}

TEST_CASE_TEMPLATE("ways of the host: steps are applied once to each output", Exec, RIGEL_TEST_SPACES) {
  on_host<Exec>([]<class Host>() {
    constexpr Types all[] = {{"plus_times", Scalar::f32, Scalar::f32}, {"l2_squared", Scalar::f64, Scalar::f64},
                             {"min_plus", Scalar::f32, Scalar::f32},   {"l1", Scalar::f16, Scalar::f32},
                             {"max_times", Scalar::f64, Scalar::f64},  {"lp", Scalar::f32, Scalar::f32}};
    for (const Types& types : all) check_steps_in_c(compiled<Host>(types), 24);
  });
}

TEST_CASE_TEMPLATE("ways of the host: Rigel's semirings in a user's file", Exec, RIGEL_TEST_SPACES) {
  on_host<Exec>([]<class Host>() {
    check_zoo<Host, rigel::min_plus<float>>(2);
    check_zoo<Host, rigel::min_plus<rigel::half, rigel::half>>(3);
    check_zoo<Host, rigel::max_min<rigel::bfloat16, rigel::bfloat16>>(4);
    check_zoo<Host, rigel::plus_times<double>>(5);
    check_zoo<Host, rigel::l1<std::int8_t>>(6);
    check_zoo<Host, rigel::hamming<rigel::half>>(7);
    check_zoo<Host, rigel::or_and<std::uint8_t>>(8);
    check_zoo<Host, rigel::bit_hamming<std::uint8_t>>(9);
    check_zoo<Host, rigel::bit_jaccard<std::uint32_t>>(10);
    check_zoo<Host, rigel::log_plus<float>>(11);
    check_zoo<Host, rigel::lp<float>>(12);
    for (const float p : {0.5f, 2.5f, 3.f}) {  // products and roots; powers.cpp has their values
      rigel::lp<float> powers;
      powers.p = p;
      check_instantiated<Host>(powers, false, 12, false);
    }
    check_instantiated<Host>(rigel::canberra<float>{}, false, 13);  // has a shorter step
  });
}

TEST_CASE_TEMPLATE("ways of the host: users' functors", Exec, RIGEL_TEST_SPACES) {
  on_host<Exec>([]<class Host>() {
    check_functor<Host>(SecondLeast{}, 14);
    check_functor<Host>(LastOfLargest{}, 15);
    check_functor<Host>(LargestDifference{0.5f}, 16);
    check_functor<Host>(LanesOfDifference{}, 17);
    check_functor<Host>(LargestAlternating{}, 18);
    check_functor<Host>(LargestByRemainder{}, 19);
  });
}

TEST_CASE_TEMPLATE("ways of the host: a functor for each matrix of a batch", Exec, RIGEL_TEST_SPACES) {
  on_host<Exec>([]<class Host>() {
    std::vector<LargestDifference> objects;
    for (int l = 0; l < 64; ++l) objects.push_back({static_cast<float>(l % 5)});
    const Placed placed;
    Subject<Host> subject = instantiated<Host, double>(objects.front(), placed);
    subject.nan_has_order = false;
    subject.in_view = true;
    check_all(subject, 20);
  });
}

TEST_CASE_TEMPLATE("ways of the host: the k that won", Exec, RIGEL_TEST_SPACES) {
  on_host<Exec>([]<class Host>() {
    const rigel::with_argument<rigel::min_plus<float>> shortest{};
    const rigel::with_argument<rigel::max_times<double>> likeliest{};
    const rigel::with_argument<rigel::min_max<std::int16_t, std::int16_t>> lowest{};
    for (const bool of_index : {false, true})
      for (const bool ties : {false, true}) {
        CAPTURE(of_index);
        CAPTURE(ties);
        const PartOfArgument part{of_index};
        const auto check = [&](Subject<Host> subject, std::uint64_t seed) {
          subject.few_values = ties;
          subject.facts.domain = rigel::Domain::any;  // products may be worse than the identity
          check_all(subject, seed);
        };
        check(instantiated<Host, double>(shortest, part), 21);
        check(instantiated<Host, double>(likeliest, part), 22);
        check(instantiated<Host, double>(lowest, part), 23);
      }
  });
}
#else
TEST_CASE("ways of the host") { support::skip("ways of the host: this build lacks the host's or the reference's backend"); }
#endif

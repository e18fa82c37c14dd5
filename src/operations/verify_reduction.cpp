// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() of a kernel of reduce(): problems whose scores are exact, held to plain loops over scores that the reference of contract()
// stored, to the laws of the monoid, and to the kernel's promises. Some rows of scores have NaN, infinities and ties, and some calls have
// ranges.
#include "verify.hpp"

#include <rigel/detail/execution.hpp>
#include <rigel/ranges.hpp>
#include <rigel/reduction_problem.hpp>
#include <rigel/semiring_info.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace rigel {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

struct Case {
  Reducer reducer;
  std::int64_t count, batch, m, n, k, gap;
  std::size_t limit;
  bool self, columns_first, specials;
  bool exponential = false;  // scores are exponentials of `rate` times the exact numbers, and rounded
  bool ranges = false;
  std::string text() const {
    return std::to_string(count) + ' ' + name(reducer) + ", batch " + std::to_string(batch) + ", " + std::to_string(m) +
           'x' + std::to_string(n) + 'x' + std::to_string(k) + ", limit " + std::to_string(limit) +
           (self ? ", self excluded" : "") + (columns_first ? ", by columns" : "") + (specials ? ", special values" : "") +
           (exponential ? ", of exponentials" : "") + (ranges ? ", with ranges" : "");
  }
};

/// A batch of matrices in memory of an execution space, by rows or by columns, with gaps of so many elements.
template <class T, class Exec>
class Matrices {
 public:
  Matrices(const char* argument, std::int64_t batches, std::int64_t rows, std::int64_t columns, bool by_columns, T fill,
           std::int64_t gap = 1)
      : host_(static_cast<std::size_t>(std::max<std::int64_t>(batches * ((rows + gap) * (columns + gap)), 1)), fill) {
    o_.argument = argument;
    o_.type = scalar_of<T>;
    o_.size = sizeof(T);
    o_.batches = batches;
    o_.rows = rows;
    o_.columns = columns;
    o_.batch_stride = batches == 1 ? 0 : (rows + gap) * (columns + gap);
    o_.row_stride = by_columns ? 1 : columns + gap;
    o_.column_stride = by_columns ? rows + gap : 1;
    memory_ = Memory("rigel::verify", host_.size());
    o_.data = memory_.data();
  }
  const Operand& operand() const { return o_; }
  std::vector<T>& all() { return host_; }
  std::size_t place(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(l * o_.batch_stride + i * o_.row_stride + j * o_.column_stride);
  }
  T& at(std::int64_t l, std::int64_t i, std::int64_t j) { return host_[place(l, i, j)]; }
  void put() { Kokkos::deep_copy(memory_, Host(host_.data(), host_.size())); }
  void get() { Kokkos::deep_copy(Host(host_.data(), host_.size()), memory_); }

 private:
  using Memory = Kokkos::View<T*, typename Exec::memory_space>;
  using Host = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  Operand o_;
  std::vector<T> host_;
  Memory memory_;
};

bool same(double x, double y) { return x == y || (x != x && y != y); }

/// What a row of results holds.
struct Results {
  std::vector<double> values;
  std::vector<std::int64_t> indices;
  std::vector<double> sizes = {};  // of weighted sums those of their terms, of a softmax 1 and that of the largest score
  bool operator==(const Results& o) const {
    return indices == o.indices && std::ranges::equal(values, o.values, [](double x, double y) { return same(x, y); });
  }
};

bool keeps_many(Reducer r) { return r == Reducer::smallest || r == Reducer::largest; }
bool finds(Reducer r) { return r <= Reducer::largest; }
bool lists(Reducer r) { return r == Reducer::all_below; }
bool has_indices(Reducer r) { return finds(r) || lists(r); }

/// Numbers of V are integers up to this one.
constexpr int largest_weight = 3;

/// What exponentials multiply exact scores by. Exponents are 27 at most: products of numbers up to 3, K of them.
constexpr double rate = -0.125, largest_exponent = 27;

/// What memory holds where no result is.
constexpr double untouched = -7;

/// exp(score − most), also if both are infinite.
double term(double score, double most) { return score == most ? 1 : std::exp(score - most); }

/// Where bin b of a histogram begins: scores are integers.
double edge(std::int64_t b) { return static_cast<double>(2 * b) - 5; }

/// Which scores of a row are taken: all but that of n = self, and those that no interval has.
struct Taken {
  std::int64_t self = -1;
  const std::vector<detail::GivenInterval>* intervals = nullptr;  // null: all
  bool operator()(std::int64_t n) const {
    return n != self && (!intervals || std::ranges::any_of(*intervals, [n](const detail::GivenInterval& own) {
             return own.first <= n && n < own.end;
           }));
  }
};

/// Intervals of rows, in no order: of length 0, 1 and more, neighbours that meet other columns, and rows in none.
struct RangesOfCase {
  std::vector<detail::GivenInterval> rows;
  std::vector<std::vector<detail::GivenInterval>> columns;  // of each

  RangesOfCase(std::int64_t m, std::int64_t n) {
    // Number r has all but every third of the blocks of columns, counted from block r, which are 1, 40 and 600 long and in no order.
    const std::int64_t ends[] = {m / 3, m / 3, m / 3 + 1, m - m / 4, m - 1};
    std::int64_t first = 0;
    for (const std::int64_t end : ends) {
      const std::int64_t last = std::clamp(end, first, m);
      std::vector<detail::GivenInterval> own;
      const auto r = std::ssize(rows);
      for (std::int64_t at = 0, block = 0; at < n; ++block) {
        constexpr std::int64_t lengths[] = {1, 40, 600};
        const std::int64_t next = std::min(at + lengths[(block + r) % 3], n);
        if (block % 3 != r % 3) own.insert(block % 2 == 0 ? own.begin() : own.end(), {at, block % 5 == 4 ? at : next});
        at = next;
      }
      rows.push_back({first, last});
      columns.push_back(r == 3 ? std::vector<detail::GivenInterval>() : own);
      first = last;
    }
    std::ranges::reverse(rows);
    std::ranges::reverse(columns);
  }
  /// Of the first rows alone.
  detail::RangeTable table(std::int64_t m, std::int64_t n) const {
    std::vector<detail::GivenInterval> of_rows, of_columns;
    std::vector<std::int64_t> slices;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      of_rows.push_back({std::min(rows[r].first, m), std::min(rows[r].end, m)});
      of_columns.insert(of_columns.end(), columns[r].begin(), columns[r].end());
      slices.push_back(std::ssize(of_columns));
    }
    return detail::table_of(m, n, of_rows, slices, of_columns);
  }
  const std::vector<detail::GivenInterval>& columns_of(std::int64_t m) const {
    static const std::vector<detail::GivenInterval> none;
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (rows[r].first <= m && m < rows[r].end) return columns[r];
    return none;
  }
};

/// V's number (n, d) for the matrix at hand.
using Weights = std::function<double(std::int64_t n, std::int64_t d)>;

/// What a row of scores makes of V by a plain loop, relative to the row's maximum.
Results expected_weighted(const Case& c, const std::vector<double>& scores, const Taken& taken, std::int64_t first,
                          const Weights& v) {
  const bool softmax = c.reducer == Reducer::softmax_weighted;
  double most = -infinite, total = 0;
  for (std::int64_t n = 0; n < std::ssize(scores); ++n)
    if (taken(n + first)) most = std::max(most, scores[static_cast<std::size_t>(n)]);
  Results r;
  r.values.resize(static_cast<std::size_t>(c.count));
  r.sizes.resize(r.values.size());
  for (std::int64_t n = 0; n < std::ssize(scores); ++n) {
    if (!taken(n + first)) continue;
    const double score = scores[static_cast<std::size_t>(n)];
    const double weight = !softmax ? score : score == -infinite ? 0 : term(score, most);
    total += weight;
    for (std::int64_t d = 0; d < c.count; ++d) {
      r.values[static_cast<std::size_t>(d)] += weight * v(n + first, d);
      r.sizes[static_cast<std::size_t>(d)] += std::abs(weight * v(n + first, d));
    }
  }
  if (softmax) {
    for (double& value : r.values) value /= total;
    double size = 0;
    for (const double score : scores)
      if (std::abs(score) < infinite) size = std::max(size, std::abs(score));
    std::ranges::fill(r.sizes, 1 + size);
  }
  return r;
}

/// A row of scores by a plain loop, or by a sort.
Results expected_row(const Case& c, const std::vector<double>& scores, const Taken& taken, double threshold,
                     std::int64_t first, const Weights& v) {
  if (is_weighted(c.reducer)) return expected_weighted(c, scores, taken, first, v);
  std::vector<std::int64_t> order;
  for (std::int64_t n = 0; n < static_cast<std::int64_t>(scores.size()); ++n)
    if (taken(n + first)) order.push_back(n);
  const auto score = [&](std::int64_t n) { return scores[static_cast<std::size_t>(n)]; };
  if (c.reducer == Reducer::histogram) {
    Results bins;
    for (std::int64_t b = 0; b < c.count; ++b)
      bins.values.push_back(static_cast<double>(std::ranges::count_if(order, [&](std::int64_t n) {
        return score(n) >= edge(b) && (score(n) < edge(b + 1) || (b + 1 == c.count && score(n) == edge(b + 1)));
      })));
    return bins;
  }
  const bool largest = c.reducer == Reducer::largest || c.reducer == Reducer::maximum;
  Results r;
  if (lists(c.reducer)) {
    for (const std::int64_t n : order)
      if (score(n) < threshold && std::ssize(r.values) < c.count) {
        r.values.push_back(score(n));
        r.indices.push_back(n + first);
      }
    r.values.resize(static_cast<std::size_t>(c.count), untouched);
    r.indices.resize(static_cast<std::size_t>(c.count), static_cast<std::int64_t>(untouched));
    return r;
  }
  if (finds(c.reducer)) {
    const bool many = keeps_many(c.reducer);
    // NaN first for extrema and for the largest.
    const double nan_as = many && !largest ? infinite : -infinite;
    std::ranges::sort(order, [&](std::int64_t x, std::int64_t y) {
      const double a = score(x), b = score(y);
      if (same(a, b)) return x < y;
      if (a != a || b != b) return (a != a) == (nan_as < 0);
      return largest ? a > b : a < b;
    });
    for (std::int64_t i = 0; i < c.count; ++i) {
      const bool there = i < static_cast<std::int64_t>(order.size());
      const std::int64_t n = there ? order[static_cast<std::size_t>(i)] : -1;
      r.values.push_back(there ? score(n) : largest ? -infinite : infinite);
      r.indices.push_back(there ? n + first : -1);
    }
    return r;
  }
  double sum = 0, most = -infinite;
  for (const std::int64_t n : order) most = std::max(most, score(n));
  for (const std::int64_t n : order)
    sum += c.reducer == Reducer::count_below ? score(n) < threshold
           : c.reducer == Reducer::sum       ? score(n)
                                             : term(score(n), most);
  r.values.push_back(c.reducer == Reducer::log_sum_exp ? most + std::log(sum) : sum);
  return r;
}

/// ⊞ of two parts of a row.
Results joined(const Case& c, const Results& x, const Results& y) {
  if (!has_indices(c.reducer)) {
    Results r;
    if (c.reducer != Reducer::log_sum_exp) {
      for (std::size_t i = 0; i < x.values.size(); ++i) r.values.push_back(x.values[i] + y.values[i]);
      for (std::size_t i = 0; i < x.sizes.size(); ++i) r.sizes.push_back(x.sizes[i] + y.sizes[i]);
    } else {
      const double most = std::max(x.values[0], y.values[0]);
      r.values.push_back(most + std::log(term(x.values[0], most) + term(y.values[0], most)));
    }
    return r;
  }
  // As scores, with the places of both.
  std::vector<double> scores;
  std::vector<std::int64_t> places;
  for (const Results* part : {&x, &y})
    for (std::size_t i = 0; i < part->values.size(); ++i)
      if (part->indices[i] >= 0) {
        scores.push_back(part->values[i]);
        places.push_back(part->indices[i]);
      }
  Results r = expected_row(c, scores, {}, infinite, 0, {});
  for (std::int64_t& n : r.indices)
    if (n >= 0) n = places[static_cast<std::size_t>(n)];
  return r;
}

/// Of semirings with elements T and accumulators A.
template <class T, class A, class Exec>
class Verifier {
  static constexpr double threshold = 5;
  using Weight = std::conditional_t<std::is_same_v<A, float>, float, double>;

 public:
  Verifier(const Kernel<Reduction>& kernel, const SemiringInfo& facts, Verification& result, unsigned seed)
      : kernel_(kernel), facts_(facts), result_(result), seed_(seed) {}

  void check(const Case& c) {
    Matrices<T, Exec> a("A", c.batch, c.m, c.k, c.columns_first, T{}, c.gap),
        b("B", 1, c.k, c.n, !c.columns_first, T{}, c.gap);
    fill(c, a, b);
    // Lists have rows of `count` and the gap after them.
    const bool by_columns = c.columns_first && !lists(c.reducer);
    const std::int64_t list = c.count + 1;
    Matrices<double, Exec> values("values", c.batch, c.m, c.count, by_columns, untouched);
    Matrices<std::int64_t, Exec> indices("indices", c.batch, c.m, c.count, !by_columns && !lists(c.reducer),
                                         static_cast<std::int64_t>(untouched)),
        offsets("offsets", 1, c.m + 1, 1, false, 0);
    for (std::int64_t m = 0; m <= c.m; ++m) offsets.at(0, m, 0) = m * list;
    offsets.put();
    Matrices<A, Exec> stored("C", c.batch, c.m, c.n, false, A{});
    Matrices<Weight, Exec> v("V", c.columns_first ? c.batch : 1, c.n, c.count, c.columns_first, Weight{});
    for (std::size_t i = 0; i < v.all().size(); ++i)
      v.all()[i] = static_cast<Weight>(static_cast<int>(i * 5 % 7) - largest_weight);
    v.put();
    a.put();
    b.put();
    values.put();
    indices.put();

    const Exec exec{};
    Matrices<double, Exec> edges("edges", 1, c.count + 1, 1, false, 0);
    for (std::int64_t i = 0; i <= c.count; ++i) edges.at(0, i, 0) = edge(i);
    edges.put();
    Reduction p = problem(c, exec, a, b, values, indices, offsets);
    std::optional<RangesOfCase> of_case;
    Ranges ranges;
    if (c.ranges) {
      of_case.emplace(c.m, c.n);
      ranges = Ranges(exec, of_case->table(c.m, c.n));
      p.ranges = ranges.table();
    }
    if (c.reducer == Reducer::histogram) p.edges = edges.operand();
    if (is_weighted(c.reducer)) {
      p.weights = v.operand();
      if (!std::is_floating_point_v<A>) {
        p.scores.type = Scalar::f64;
        p.scores.size = sizeof(double);
      }
    }
    if (!supports(kernel_, p)) return;
    run(kernel_, p);
    exec.fence("rigel::verify");
    ++result_.problems;
    values.get();
    indices.get();
    const auto before_v = values.all();
    const auto before_i = indices.all();

    Contraction whole = p.contraction();
    whole.c = stored.operand();
    const auto v_of = [&](std::int64_t l) {
      return [&v, l](std::int64_t n, std::int64_t d) { return static_cast<double>(v.at(l, n, d)); };
    };
    whole.kernel = "reference";
    run(whole);
    exec.fence("rigel::verify");
    stored.get();
    std::vector<char> written(before_v.size(), 0), written_i(before_i.size(), 0);
    for (std::int64_t l = 0; l < c.batch; ++l)
      for (std::int64_t m = 0; m < c.m; ++m) {
        std::vector<double> scores;
        for (std::int64_t n = 0; n < c.n; ++n) scores.push_back(static_cast<double>(stored.at(l, m, n)));
        const Taken taken{c.self ? m : -1, of_case ? &of_case->columns_of(m) : nullptr};
        const Results expected = expected_row(c, scores, taken, threshold, 0, v_of(l));
        const Results actual = row(c, values, indices, l, m);
        for (const double v : actual.values)
          result_.digest = (result_.digest ^ std::bit_cast<std::uint64_t>(v + 0.)) * 0x100000001b3;
        if (!agree(c, actual, expected))
          return fail(c, "row " + std::to_string(m) + " is not what a plain loop makes of its scores");
        if (c.reducer != Reducer::softmax_weighted) {
          const std::ptrdiff_t half = c.n / 2;
          const Results both =
              joined(c, expected_row(c, {scores.begin(), scores.begin() + half}, taken, threshold, 0, v_of(l)),
                     expected_row(c, {scores.begin() + half, scores.end()}, taken, threshold, half, v_of(l)));
          if (!agree(c, actual, both)) return fail(c, "row " + std::to_string(m) + " is not what its two halves join to");
        }
        for (std::int64_t i = 0; i < (lists(c.reducer) ? list : c.count); ++i) {
          written[values.place(l, m, i)] = 1;
          if (has_indices(c.reducer)) written_i[indices.place(l, m, i)] = 1;
        }
      }
    for (std::size_t i = 0; i < written.size(); ++i)
      if (!written[i] && before_v[i] != untouched) return fail(c, "memory between the values was written");
    for (std::size_t i = 0; i < written_i.size(); ++i)
      if (!written_i[i] && before_i[i] != static_cast<std::int64_t>(untouched))
        return fail(c, "memory between the indices was written");

    check_promises(c, p, of_case, list, values, before_v);
  }

 private:
  /// Promises, by further runs: `before` are the values of the first.
  void check_promises(const Case& c, const Reduction& p, const std::optional<RangesOfCase>& of_case, std::int64_t list,
                      Matrices<double, Exec>& values, const std::vector<double>& before) {
    const Exec exec{};
    const auto repeats = [&](Reduction again, std::int64_t rows, const char* what) {
      values.all().assign(values.all().size(), untouched);
      values.put();
      again.m = again.a.rows = again.scores.rows = rows;
      again.values.rows = lists(c.reducer) ? rows * list : rows;
      if (has_indices(c.reducer)) again.indices.rows = again.values.rows;
      if (lists(c.reducer)) again.offsets.rows = rows + 1;
      const Ranges ranges = of_case ? Ranges(exec, of_case->table(rows, c.n)) : Ranges();
      again.ranges = ranges.table();
      run(kernel_, again);
      exec.fence("rigel::verify");
      values.get();
      for (std::int64_t l = 0; l < c.batch; ++l)
        for (std::int64_t m = 0; m < rows; ++m)
          for (std::int64_t i = 0; i < c.count; ++i)
            if (!same(values.at(l, m, i), before[values.place(l, m, i)])) return fail(c, what);
    };
    if (covers(kernel_.info.promises, Promise::repeatable)) repeats(p, c.m, "a second run has other bits");
    if (covers(kernel_.info.promises, Promise::batch_invariant) && !c.self && c.m > 1)
      repeats(p, (c.m + 1) / 2, "half of the rows alone have other bits");
    if (covers(kernel_.info.promises, Promise::reference_bits)) {
      Reduction reference = p;
      reference.kernel = "reference";
      values.all().assign(values.all().size(), untouched);
      values.put();
      run(reference);
      exec.fence("rigel::verify");
      values.get();
      for (std::size_t i = 0; i < before.size(); ++i)
        if (!same(values.all()[i], before[i])) return fail(c, "a result has not the reference's bits");
    }
  }

  // Small integers, so that scores are exact, and what is special.
  void fill(const Case& c, Matrices<T, Exec>& a, Matrices<T, Exec>& b) const {
    std::mt19937_64 random(seed_ + static_cast<unsigned>(result_.problems));
    const auto number = [&] { return T(static_cast<float>(std::uniform_int_distribution<int>(-3, 3)(random))); };
    for (T& x : a.all()) x = number();
    for (T& x : b.all()) x = number();
    if constexpr (std::is_floating_point_v<T>)
      if (c.specials && c.k > 0) {
        constexpr T special[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                                 -std::numeric_limits<T>::infinity()};
        for (std::int64_t n = 1; n < c.n; n += 7) b.at(0, n % c.k, n) = special[n % 3];
        for (std::int64_t m = 0; m < c.m; m += 5) a.at(0, m, 0) = special[m % 3];
      }
  }

  // The reduction of a case, by the kernel that is verified.
  Reduction problem(const Case& c, const Exec& exec, Matrices<T, Exec>& a, Matrices<T, Exec>& b,
                    Matrices<double, Exec>& values, Matrices<std::int64_t, Exec>& indices,
                    Matrices<std::int64_t, Exec>& offsets) const {
    Reduction p;
    p.function = "verify";
    p.reducer = c.reducer;
    p.count = c.count;
    p.threshold = threshold;
    p.exclude_self = c.self;
    p.require = kernel_.info.promises;  // which hold if the scores keep them
    p.precision = kernel_.info.precision;
    p.workspace_limit = c.limit;
    p.kernel = kernel_.info.name;
    p.values = values.operand();
    if (has_indices(c.reducer)) p.indices = indices.operand();
    if (lists(c.reducer)) {
      p.offsets = offsets.operand();
      for (Operand* o : {&p.values, &p.indices}) {
        o->rows = c.m * (c.count + 1);
        o->columns = o->row_stride = 1;
      }
    }
    p.execution = detail::execution_of(exec);
    p.semiring = {facts_.name, facts_.type};
    p.element = scalar_of<T>;
    p.accumulator = scalar_of<A>;
    p.semiring_object = facts_.sample;
    p.program = c.exponential ? &exponential_ : &none_;
    p.epilogue_object = p.program;
    p.a = a.operand();
    p.b = b.operand();
    p.scores = {
        .type = scalar_of<A>, .size = sizeof(A), .batches = c.batch, .rows = c.m, .columns = c.n, .argument = "the scores"};
    p.batch = c.batch;
    p.m = c.m;
    p.n = c.n;
    p.k = c.k;
    return p;
  }

  static Results row(const Case& c, Matrices<double, Exec>& values, Matrices<std::int64_t, Exec>& indices, std::int64_t l,
                     std::int64_t m) {
    Results r;
    for (std::int64_t i = 0; i < c.count; ++i) {
      r.values.push_back(values.at(l, m, i));
      if (has_indices(c.reducer)) r.indices.push_back(indices.at(l, m, i));
    }
    return r;
  }

  // All but log-sum-exp, softmax and exponentials is exact. Each term of the first is rescaled and added at most N times, exponential and
  // logarithm are within two units. The bounds of weighted sums are those of docs/numerics.md; exponentials of the reference and of the
  // kernel are off by four units, and by two roundings of the exponent, which weighs no more than 1/e where it is negative. What a kernel
  // states in addition is relative to a score and 1.
  bool agree(const Case& c, const Results& x, const Results& y) const {
    const double n = static_cast<double>(c.n) + 1, chunk = std::min(n, 1024.), chunks = std::ceil(n / 1024),
                 u = std::is_same_v<A, float> ? 0x1p-24 : 0x1p-53, own = kernel_.info.relative_error;
    if (c.exponential) {
      const double of_terms = (chunk + 16 + 4 * largest_exponent) * u + chunks * 0x1p-53 + own;
      for (std::size_t i = 0; i < y.values.size(); ++i)
        if (!same(x.values[i], y.values[i]) &&
            !(std::abs(x.values[i] - y.values[i]) <= of_terms * y.sizes[i] + 4 * largest_weight * n * u))
          return false;
      return true;
    }
    if (c.reducer == Reducer::softmax_weighted) {
      const double bound =
          largest_weight * ((chunk + 10 + 2 * std::log(n)) * u + (2 * std::log(n) + 13 * chunks + chunk / 32 + 7) * 0x1p-53);
      for (std::size_t i = 0; i < y.values.size(); ++i)
        if (!same(x.values[i], y.values[i]) &&
            !(std::abs(x.values[i] - y.values[i]) <= bound + 2 * largest_weight * own * y.sizes[i]))
          return false;
      return true;
    }
    if (c.reducer != Reducer::log_sum_exp) return x == y;
    const double a = x.values[0], b = y.values[0];
    return same(a, b) ||
           std::abs(a - b) <= (8 * static_cast<double>(c.n + 8) + 4 * std::abs(b)) * 0x1p-53 + own * (1 + std::abs(b));
  }

  void fail(const Case& c, const std::string& what) {
    engine::fail(result_, kernel_.info, detail::space_of<Exec>, seed_, std::string(facts_.name) + ", " + c.text(), what);
  }

  const epilogue::Program none_, exponential_ = epilogue::exponential(rate);
  const Kernel<Reduction>& kernel_;
  const SemiringInfo& facts_;
  Verification& result_;
  unsigned seed_;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  // M, N, K, and a gap: 8 with such a K aligns rows to 16 bytes.
  constexpr std::int64_t extents[][4] = {{1, 1, 1, 1},    {5, 0, 3, 1},    {4, 7, 0, 1},    {3, 64, 5, 1},
                                         {7, 65, 4, 1},   {33, 130, 9, 1}, {2, 1031, 3, 1}, {67, 67, 6, 1},
                                         {5, 3000, 2, 1}, {0, 4, 4, 1},    {1, 700, 8, 8},  {9, 1031, 24, 8}};
  constexpr Reducer reducers[] = {Reducer::minimum,      Reducer::maximum,          Reducer::smallest,    Reducer::largest,
                                  Reducer::sum,          Reducer::log_sum_exp,      Reducer::count_below, Reducer::all_below,
                                  Reducer::weighted_sum, Reducer::softmax_weighted, Reducer::histogram};
  constexpr std::int64_t counts[] = {1, 3, 10, 100};
  int number = 0;
  for (const auto& e : extents)
    for (const Reducer r : reducers)
      for (const std::size_t limit : {std::size_t{0}, std::size_t{1}}) {
        const bool square = e[0] == e[1];
        const std::int64_t count = keeps_many(r) || lists(r)                   ? counts[number % 4]
                                   : is_weighted(r) || r == Reducer::histogram ? counts[number % 3]
                                                                               : 1;
        list.push_back({.reducer = r,
                        .count = count,
                        .batch = number % 3 == 1 && !lists(r) ? 3 : 1,
                        .m = e[0],
                        .n = e[1],
                        .k = e[2],
                        .gap = e[3],
                        .limit = limit,
                        .self = square && number % 4 > 0,
                        .columns_first = number % 5 > 2,
                        .specials = number % 3 == 2});
        ++number;
      }
  for (const std::int64_t k : {1, 3, 6, 20, 64})
    for (const std::int64_t n : {0, 70, 2100})
      list.push_back({.reducer = Reducer::weighted_sum,
                      .count = k == 3 ? 1 : 3,
                      .batch = k == 6 ? 3 : 1,
                      .m = 37,
                      .n = n,
                      .k = k,
                      .gap = 1,
                      .limit = 0,
                      .self = false,
                      .columns_first = k == 1,
                      .specials = n == 70,
                      .exponential = true});
  // K of cuda.mma's nearest beyond those of the extents above, which take kernels of their own.
  for (const std::int64_t k : {48, 100})
    for (const Reducer r : {Reducer::minimum, Reducer::smallest})
      list.push_back({.reducer = r,
                      .count = r == Reducer::smallest ? 20 : 1,
                      .batch = 1,
                      .m = 37,
                      .n = 900,
                      .k = k,
                      .gap = 1,
                      .limit = 0,
                      .self = false,
                      .columns_first = false,
                      .specials = false});
  for (const auto& e : {std::array<std::int64_t, 4>{33, 130, 9, 1}, {67, 67, 6, 1}, {9, 2100, 24, 8}, {700, 90, 2, 1}})
    for (const Reducer r : reducers)
      list.push_back({.reducer = r,
                      .count = keeps_many(r) || lists(r) || is_weighted(r) ? 3 : 1,
                      .batch = e[0] == 33 && !lists(r) ? 3 : 1,
                      .m = e[0],
                      .n = e[1],
                      .k = e[2],
                      .gap = e[3],
                      .limit = e[0] == 67 ? std::size_t{1} : 0,
                      .self = e[0] == 67,
                      .columns_first = e[0] == 33,
                      .specials = e[0] != 700,
                      .ranges = true});
  for (const std::int64_t k : {1, 3, 20})
    list.push_back({.reducer = Reducer::weighted_sum,
                    .count = 3,
                    .batch = 1,
                    .m = 600,
                    .n = 700,
                    .k = k,
                    .gap = 1,
                    .limit = 0,
                    .self = false,
                    .columns_first = false,
                    .specials = false,
                    .exponential = true,
                    .ranges = true});
  return list;
}

/// Verifies on the spaces of the list that the kernel serves, if the semiring has the types of S.
template <class S, class... Exec>
void verify_on(type_list<Exec...>, const Kernel<Reduction>& kernel, const SemiringInfo& facts, unsigned seed,
               Verification& result) {
  using T = typename S::element;
  using A = typename S::accumulator;
  if (facts.element != scalar_of<T> || facts.accumulator != scalar_of<A> || !facts.sample) return;
  const auto on = [&]<class E>(type_list<E>) {
    if ((kernel.info.spaces & bit(detail::space_of<E>)) == 0) return;
    Verifier<T, A, E> verifier(kernel, facts, result, seed);
    for (const Case& c : cases())
      if (std::is_floating_point_v<A> || !c.exponential) verifier.check(c);
  };
  (on(type_list<Exec>{}), ...);
}

}  // namespace

Verification engine::verify(const Kernel<Reduction>& kernel, unsigned seed) {
  Verification result;
  const auto verify_semiring = [&](const SemiringInfo& facts) {
    const auto of_types = [&]<class S>(type_list<S>) {
      verify_on<S>(detail::compiled_spaces{}, kernel, facts, seed, result);
    };
    of_types(type_list<plus_times<float>>{});
    of_types(type_list<plus_times<double>>{});
    of_types(type_list<plus_times<half>>{});
    of_types(type_list<plus_times<bfloat16>>{});
    of_types(type_list<l1<std::int32_t>>{});
  };
  if (kernel.info.facts) {
    verify_semiring(*kernel.info.facts);
  } else {  // the semirings of which the kernel has the key
    const auto one = [&]<class S>(type_list<S>) {
      const Reduction::Key key = Reduction::key_of(kernel.info);
      Reduction p;
      p.semiring = {semiring_name<S>(), semiring_type<S>()};
      p.element = scalar_of<typename S::element>;
      p.accumulator = scalar_of<typename S::accumulator>;
      if (key == Reduction::generic_key() || key == p.key()) verify_semiring(semiring_info<S>());
    };
    one(type_list<plus_times<float>>{});
    one(type_list<l2_squared<float>>{});
    one(type_list<max_plus<double>>{});
    one(type_list<l1<std::int32_t>>{});
  }
  return result;
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all kernels of reduce() share: the order of results, the monoids, how results are stored, and which part of the scores is
// computed at a time. No Kokkos here.
#pragma once

#include <rigel/detail/arguments.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/parts.hpp>
#include <rigel/detail/range_table.hpp>
#include <rigel/detail/workspace.hpp>
#include <rigel/elementary.hpp>
#include <rigel/reduction_problem.hpp>
#include <rigel/semirings.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>

namespace rigel::detail {

// ---- order -----------------------------------------------------------------------------------------------------------

/// A score and where it is. Without one, n is `no_place`.
inline constexpr std::int64_t no_place = -1;
template <class T>
struct Found {
  T value;
  std::int64_t n;
};

/// Whether a number precedes another one if NaN counts as larger than all numbers. Equal ones do not precede each other.
template <bool largest, class T>
RIGEL_FUNCTION bool value_precedes(T x, T y) {
  if constexpr (largest)
    return x > y || (x != x && y == y);
  else
    return x < y || (x == x && y != y);
}
/// Whether a result comes before another one: by value, then by place. What is no score comes last.
template <bool largest, class T>
RIGEL_FUNCTION bool precedes(Found<T> x, Found<T> y) {
  if (x.n < 0 || y.n < 0) return x.n >= 0;
  if (value_precedes<largest>(x.value, y.value)) return true;
  return !value_precedes<largest>(y.value, x.value) && x.n < y.n;
}

/// Whether x replaces y as the extremum: NaN replaces numbers.
template <bool largest, class T>
RIGEL_FUNCTION bool value_replaces(T x, T y) {
  if (y != y) return false;
  return largest ? !(x <= y) : !(x >= y);
}
/// The extremum of two, of equal ones the first.
template <bool largest, class T>
RIGEL_FUNCTION Found<T> extremum(Found<T> x, Found<T> y) {
  if (x.n < 0 || y.n < 0) return x.n < 0 ? y : x;
  const bool of_y = value_replaces<largest>(y.value, x.value), of_x = value_replaces<largest>(x.value, y.value);
  return of_y || (!of_x && y.n < x.n) ? y : x;
}

// ---- sums ------------------------------------------------------------------------------------------------------------

/// Sums are formed in so many lanes: lane j takes n = j, j + lanes, … in ascending order, then the upper half of the lanes is added to
/// the lower one until one is left. So the bits depend neither on the kernel nor on how it cuts N. With ranges, the lanes count from the first
/// column of each interval.
inline constexpr int lanes = 32;

/// Σ exp(score) = exp(maximum)·sum. Scores of −∞ add nothing; NaN makes `sum` NaN.
struct ExponentialSum {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;

  RIGEL_MEMBER void add(double score) {
    if (score > maximum) {
      sum = sum * math::exponential(maximum - score) + 1;
      maximum = score;
    } else {
      sum += score == maximum ? 1 : math::exponential(score - maximum);
    }
  }
  RIGEL_MEMBER void add(ExponentialSum other) {
    if (other.maximum > maximum) {
      const ExponentialSum smaller = *this;
      *this = other;
      sum += smaller.sum * math::exponential(smaller.maximum - maximum);
    } else {
      sum += other.maximum == maximum ? other.sum : other.sum * math::exponential(other.maximum - maximum);
    }
  }
  RIGEL_MEMBER double result() const { return maximum + math::logarithm(sum); }
};

/// The type in which scores are added: double, or 64 bits that wrap.
template <class T>
using reduced_sum = std::conditional_t<std::is_floating_point_v<T>, double,
                                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

/// What a lane holds of one row.
template <class T>
struct LaneSum {
  reduced_sum<T> sum = 0;
  RIGEL_MEMBER void add(T score) { sum += static_cast<reduced_sum<T>>(score); }
  RIGEL_MEMBER void add(LaneSum other) { sum += other.sum; }
  RIGEL_MEMBER reduced_sum<T> result() const { return sum; }
};
template <class T>
struct LaneExponentials : ExponentialSum {
  using ExponentialSum::add;
  RIGEL_MEMBER void add(T score) { ExponentialSum::add(static_cast<double>(score)); }
};

/// The state of a user's monoid, and its result as values take it: double, or 64 bits.
template <class M>
using monoid_state = decltype(std::declval<const M&>().identity());
template <class M>
using monoid_result = reduced_sum<std::decay_t<decltype(std::declval<const M&>().result(std::declval<monoid_state<M>>()))>>;

/// Joins the lanes of a row: the result is in the first.
template <class M>
RIGEL_FUNCTION void join_lanes(const M& monoid, monoid_state<M>* states) {
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) states[j] = monoid.join(states[j], states[j + half]);
}

// ---- counts ----------------------------------------------------------------------------------------------------------

/// Which scores count. Integers are compared with an integer, so that none is rounded.
template <class T>
struct Below {
  T threshold = 0;
  bool or_equal = false, all = false, none = false;

  static Below of(const Reduction& p) {
    Below b;
    if constexpr (std::is_floating_point_v<T>) {
      // The scores below a double are those at or below the largest T below it.
      b.threshold = static_cast<T>(p.threshold);
      b.or_equal = p.or_equal;
      if (static_cast<double>(b.threshold) != p.threshold && p.threshold == p.threshold)
        b.or_equal = static_cast<double>(b.threshold) < p.threshold;
    } else {
      const double floor = __builtin_floor(p.threshold);
      // 2^63 or 2^64, and what T begins with.
      const double end = 2 * static_cast<double>(T(1) << (std::numeric_limits<T>::digits - 1)),
                   begin = static_cast<double>(std::numeric_limits<T>::min());
      if (!(p.threshold >= begin)) {
        b.none = true;
      } else if (p.threshold >= end) {
        b.all = true;
      } else {
        b.threshold = static_cast<T>(floor);
        b.or_equal = p.or_equal || floor != p.threshold;
      }
    }
    return b;
  }
  RIGEL_MEMBER bool operator()(T score) const {
    if (all || none) return all;
    return or_equal ? score <= threshold : score < threshold;
  }
};

/// The bins of a histogram: bin b has the scores from edge b on and below edge b + 1, the last one those at its end, too.
struct Bins {
  const double* edges = nullptr;
  std::int64_t stride = 0, count = 0;

  static Bins of(const Reduction& p) {
    return {static_cast<const double*>(p.edges.data), p.edges.row_stride, p.edges.rows - 1};
  }
  /// The bin of a score; −1 of what is in none, and of NaN.
  template <class T>
  RIGEL_MEMBER std::int64_t operator()(T score) const {
    const auto value = static_cast<double>(score);
    if (!(value >= edges[0]) || !(value <= edges[count * stride])) return -1;
    std::int64_t begin = 0, end = count;  // edge(begin) ≤ value, and value < edge(end) or end = count
    while (end - begin > 1) {
      const std::int64_t middle = (begin + end) / 2;
      if (edges[middle * stride] <= value)
        begin = middle;
      else
        end = middle;
    }
    return begin;
  }
};

// ---- results ---------------------------------------------------------------------------------------------------------

/// Where results go. Rows and batches are those of the whole problem.
struct ReducedOutputs {
  void *values, *indices;  // null: not wanted
  Scalar value_type, index_type;
  Strided<char> of_values, of_indices;  // strides
  const std::int64_t* offsets;          // of all_below, so far apart
  std::int64_t offset_stride, length;   // of values and indices

  static ReducedOutputs of(const Reduction& p) {
    const auto strides = [](const Operand& o) {
      return Strided<char>{nullptr, o.batch_stride, o.row_stride, o.column_stride};
    };
    return {p.values.size > 0 ? p.values.data : nullptr,
            p.indices.size > 0 ? p.indices.data : nullptr,
            p.values.type,
            p.indices.type,
            strides(p.values),
            strides(p.indices),
            static_cast<const std::int64_t*>(p.offsets.data),
            p.offsets.row_stride,
            p.values.size > 0 ? p.values.rows : p.indices.rows};
  }

  /// Where the list of row m begins and ends, of all_below. Offsets that are not ascending make nothing that lies beyond the results.
  RIGEL_MEMBER Range list_of(std::int64_t m) const {
    const std::int64_t begin = offsets[m * offset_stride], end = offsets[(m + 1) * offset_stride];
    const std::int64_t last = end < length ? end : length;
    return {begin, begin < 0 || last < begin ? 0 : last - begin};
  }

  /// Stores a value, a floating-point number or an integer.
  template <class V>
  RIGEL_MEMBER void store(V value, std::int64_t l, std::int64_t m, std::int64_t i = 0) const {
    if (!values) return;
    const std::int64_t to = of_values.offset(l, m, i);
    with_type<V>(value_type, values,
                 [&](auto* typed) { typed[to] = convert<std::remove_cvref_t<decltype(*typed)>>(value); });
  }
  /// Stores a score and its place, or the identity of the minimum (of the maximum, if `largest`) and −1.
  template <bool largest, class T>
  RIGEL_MEMBER void store(Found<T> found, std::int64_t l, std::int64_t m, std::int64_t i = 0) const {
    if (found.n >= 0) {
      store(found.value, l, m, i);
    } else if (values) {
      const std::int64_t to = of_values.offset(l, m, i);
      with_type<T>(value_type, values,
                   [&](auto* typed) { typed[to] = identity<largest, std::remove_cvref_t<decltype(*typed)>>(); });
    }
    if (!indices) return;
    const std::int64_t to = of_indices.offset(l, m, i);
    if (index_type == Scalar::i32)
      static_cast<std::int32_t*>(indices)[to] = static_cast<std::int32_t>(found.n < 0 ? -1 : found.n);
    else
      static_cast<std::int64_t*>(indices)[to] = found.n < 0 ? -1 : found.n;
  }

 private:
  template <bool largest, class V>
  RIGEL_MEMBER static V identity() {
    if constexpr (!largest)
      return V(infinity<V>());
    else if constexpr (std::is_unsigned_v<V>)
      return 0;
    else
      return V(negative_infinity<V>());
  }
};

// ---- parts -----------------------------------------------------------------------------------------------------------

/// What kernels that compute scores themselves ask of every call. One that leaves out what ranges leave out says that it takes them.
inline Status computes_scores(const Reduction& p, bool takes_ranges = false) {
  if (p.ranges && !takes_ranges) return {Decline::other, "takes all pairs of rows and columns, the call has ranges"};
  if (!p.score_kernel.empty())
    return {Decline::name, "computes its scores itself, the call names '" + std::string(p.score_kernel) + "' for them"};
  if (!p.program) return {Decline::epilogue, "the epilogue is a functor; this kernel takes those of the closed set"};
  return {};
}

/// Bytes that a call's workspace should not exceed.
inline std::size_t workspace_limit(const Reduction& p) {
  return p.workspace_limit ? p.workspace_limit : std::size_t{64} << 20;
}

/// How many matrices, rows and columns of scores are computed at a time, and their memory.
struct StripShape {
  std::int64_t matrices = 1, rows = 1, columns = 1;
  std::int64_t pitch = 1;        // from row to row, in scores
  std::size_t score_bytes = 0;   // of the scores of a strip
  std::size_t state_bytes = 0;   // of what its rows keep from one chunk of columns to the next
  std::size_t kernel_bytes = 0;  // of the contraction's kernel
  std::size_t bytes() const { return score_bytes + state_bytes + kernel_bytes; }
};

/// A strip's part of the scores as a problem of its own. The functor, if there is one, sees places in the whole.
class ScorePart {
 public:
  ScorePart(const Reduction& p, Range matrices, Range rows, Range columns, const StripShape& shape,
            const Workspace& workspace)
      : problem_(part_of(p.contraction(), matrices, rows, columns)) {
    Contraction& q = problem_;
    auto* const memory = static_cast<std::byte*>(workspace.data);
    for (Operand* o : {&q.a, &q.b})
      if (o->batches == 1) o->batch_stride = 0;
    q.c.data = memory;
    q.c.batches = matrices.count;
    q.c.batch_stride = matrices.count == 1 ? 0 : rows.count * shape.pitch;
    q.c.row_stride = shape.pitch;
    q.c.column_stride = 1;
    if (q.semiring_in_view)
      q.semiring_object = static_cast<const std::byte*>(q.semiring_object) +
                          matrices.first * q.semiring_stride * static_cast<std::int64_t>(p.semiring_bytes);
    const std::size_t own = shape.score_bytes + shape.state_bytes;
    q.workspace = {};
    if (memory) q.workspace = {.data = memory + own, .bytes = shape.kernel_bytes};
    if (p.functor_bytes == 0) return;
    functor_.reset(new (std::align_val_t(functor_alignment)) std::byte[p.functor_bytes]);
    std::memcpy(functor_.get(), p.epilogue_object, p.functor_bytes);
    const std::int64_t first[] = {matrices.first, rows.first, columns.first};
    std::memcpy(functor_.get(), first, sizeof first);
    q.epilogue_object = functor_.get();
  }
  const Contraction& problem() const { return problem_; }

  static constexpr std::size_t functor_alignment = 64;

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t(functor_alignment)); }
  };
  Contraction problem_;
  std::unique_ptr<std::byte[], Free> functor_;
};

/// The columns of a strip's scores, weights by now, times V's rows: sums(l,m,d) = Σ_n scores(l,m,n)·V(l,n,d), in the scores' type. V's
/// rows are those of the strip's columns.
inline Contraction products_of(const Reduction& p, Operand scores, Operand v, Operand sums, const Workspace& workspace) {
  static const plus_times<float> of_float;
  static const plus_times<double> of_double;
  static const epilogue::Program none;
  const bool is_float = scores.type == Scalar::f32;
  Contraction q;
  q.function = p.function;
  q.execution = p.execution;
  q.require = p.require;
  q.precision = p.precision;
  q.workspace = workspace;
  q.semiring = {semiring_name<plus_times<float>>()};
  q.element = q.accumulator = scores.type;
  q.semiring_object = is_float ? static_cast<const void*>(&of_float) : &of_double;
  q.program = &none;
  q.epilogue_object = &none;
  q.batch = sums.batches;
  q.m = sums.rows;
  q.n = sums.columns;
  q.k = scores.columns;
  q.a = std::move(scores);
  q.b = std::move(v);
  q.c = std::move(sums);
  q.instantiated = p.products;
  return q;
}

/// What weighted reducers keep in a strip's state: numbers of each row, sums in double, those of the present chunk, and V's rows in the
/// scores' type if they have another one.
struct WeightedState {
  /// Of one row: the running maximum, the sum of its weights, and what the new maximum multiplied former weights by.
  struct Row {
    double maximum, total, factor;
  };
  std::size_t rows, sums, partial, v, bytes;  // offsets, and all of it

  WeightedState(const Reduction& p, const StripShape& s) {
    const std::int64_t of_rows = s.matrices * s.rows;
    const std::size_t size = size_of(p.scores.type);
    WorkspaceLayout layout;
    rows = layout.add(of_rows, sizeof(Row));
    sums = layout.add(of_rows * p.count, sizeof(double));
    partial = layout.add(of_rows * p.count, size);
    v = layout.add(converts(p) ? matrices_of_v(p, s.matrices) * s.columns * p.count : 0, size);
    bytes = layout.bytes();
  }
  static bool converts(const Reduction& p) { return p.weights.type != p.scores.type; }
  static std::int64_t matrices_of_v(const Reduction& p, std::int64_t matrices) {
    return p.weights.batches == 1 ? 1 : matrices;
  }
  static std::size_t bytes_of_row(const Reduction& p) {
    return sizeof(Row) + static_cast<std::size_t>(p.count) * (sizeof(double) + size_of(p.scores.type));
  }
};

/// Matrices that lie one after the other by rows of `pitch` numbers.
inline Operand dense_operand(void* data, Scalar type, std::int64_t batches, std::int64_t rows, std::int64_t columns,
                             std::int64_t pitch, const char* argument) {
  return {.data = data,
          .type = type,
          .size = size_of(type),
          .batches = batches,
          .rows = rows,
          .columns = columns,
          .batch_stride = batches == 1 ? 0 : rows * pitch,
          .row_stride = pitch,
          .column_stride = 1,
          .argument = argument};
}

/// V's rows of some matrices and columns of the scores, where they are.
inline Operand rows_of_v(const Reduction& p, Range matrices, Range columns) {
  Operand v = p.weights;
  if (v.batches == 1) v.batch_stride = 0;
  const std::int64_t elements = matrices.first * v.batch_stride + columns.first * v.row_stride;
  v.data = static_cast<std::byte*>(v.data) + elements * static_cast<std::int64_t>(v.size);
  if (v.batches > 1) v.batches = matrices.count;
  v.rows = columns.count;
  return v;
}

/// products_of() of a strip whose workspace is at `memory`: scores, state, the contraction's own.
inline Contraction products_of_strip(const Reduction& p, Range matrices, Range rows, Range columns, const StripShape& shape,
                                     void* memory) {
  const WeightedState state(p, shape);
  const Scalar type = p.scores.type;
  auto* const base = static_cast<std::byte*>(memory);
  std::byte* const of_state = base + shape.score_bytes;
  Operand v = rows_of_v(p, matrices, columns);
  if (WeightedState::converts(p))
    v = dense_operand(of_state + state.v, type, WeightedState::matrices_of_v(p, matrices.count), columns.count, p.count,
                      p.count, "V");
  return products_of(p, dense_operand(base, type, matrices.count, rows.count, columns.count, shape.pitch, "the scores"),
                     std::move(v),
                     dense_operand(of_state + state.partial, type, matrices.count, rows.count, p.count, p.count, "the sums"),
                     {.data = of_state + shape.state_bytes, .bytes = shape.kernel_bytes});
}

/// Of the parts of `size` into which an extent is cut, the first one, the second, which may be aligned less, and the last one, which may be
/// shorter. Those that there are not have no extent.
inline std::array<Range, 3> unlike_parts(std::int64_t extent, std::int64_t size) {
  const std::int64_t rest = extent % size;
  return {Range{0, std::min(size, extent)}, Range{size, size <= extent - size ? size : 0},
          Range{extent - rest, size < extent ? rest : 0}};
}

/// What a row meets: all columns, or those of its ranges, perhaps without itself.
struct RowColumns {
  const RowInterval* parts;  // null: no ranges
  std::int64_t part_count, columns;
  const ColumnInterval* intervals;
  bool exclude_self;

  static RowColumns of(const Reduction& p) {
    if (!p.ranges) return {nullptr, 0, p.n, nullptr, p.exclude_self};
    return {p.ranges->parts, p.ranges->part_count, p.n, p.ranges->part_columns, p.exclude_self};
  }
  /// Calls use(n, lane) for each column n of row m, ascending.
  template <class Use>
  RIGEL_MEMBER void for_each(std::int64_t m, const Use& use) const {
    if (!parts) return in(0, columns, m, use);
    const RowInterval& rows = interval_of_row(parts, part_count, m);
    for (std::int64_t i = rows.list; i < rows.list_end; ++i) in(intervals[i].first, intervals[i].end, m, use);
  }

 private:
  template <class Use>
  RIGEL_MEMBER void in(std::int64_t first, std::int64_t end, std::int64_t m, const Use& use) const {
    for (std::int64_t n = first; n < end; ++n)
      if (!exclude_self || n != m) use(n, static_cast<int>((n - first) % lanes));
  }
};

/// Rows and columns of some matrices' scores that are computed at a time; and whether its rows' first, and their last one. Of rows that meet no
/// columns there is one without columns.
struct StripPart {
  Range matrices, rows, columns;
  bool is_first, is_last;
};
/// Calls use(part) for all parts of a call, the columns of some rows in ascending order; until it returns false.
template <class Use>
void for_each_strip_part(const Reduction& p, const StripShape& shape, const Use& use) {
  const RowInterval all_rows{0, p.m, 0, 1, p.n};
  const ColumnInterval all_columns{0, p.n, 0};
  const std::span<const RowInterval> intervals = p.ranges ? std::span(p.ranges->rows) : std::span(&all_rows, 1);
  const ColumnInterval* const columns = p.ranges ? p.ranges->columns.data() : &all_columns;
  const auto of_rows = [&](Range matrices, Range rows, const RowInterval& interval) {
    if (interval.columns == 0) return use(StripPart{matrices, rows, {0, 0}, true, true});
    for (std::int64_t i = interval.list; i < interval.list_end; ++i)
      for (std::int64_t n = columns[i].first; n < columns[i].end; n += shape.columns) {
        const std::int64_t count = std::min(shape.columns, columns[i].end - n);
        const bool is_first = i == interval.list && n == columns[i].first,
                   is_last = i + 1 == interval.list_end && n + count == columns[i].end;
        if (!use(StripPart{matrices, rows, {n, count}, is_first, is_last})) return false;
      }
    return true;
  };
  for (std::int64_t l = 0; l < p.batch; l += shape.matrices)
    for (const RowInterval& interval : intervals)
      for (std::int64_t m = interval.first; m < interval.end; m += shape.rows)
        if (!of_rows({l, std::min(shape.matrices, p.batch - l)}, {m, std::min(shape.rows, interval.end - m)}, interval))
          return;
}

/// What the contraction's kernels say of a strip, and `with_products` of products_of_strip(). Nothing has memory yet.
inline PartNeeds needs_of_strip(const Reduction& p, const StripShape& shape, const StripPart& part, bool with_products) {
  void* const address = reinterpret_cast<void*>(workspace_alignment);  // aligned as workspaces are
  PartNeeds needs = needs_of_part(ScorePart(p, part.matrices, part.rows, part.columns, shape, {.data = address}).problem());
  if (!needs.status || !with_products) return needs;
  const PartNeeds products = needs_of_part(products_of_strip(p, part.matrices, part.rows, part.columns, shape, address));
  return {products.status, needs.seconds + products.seconds, std::max(needs.bytes, products.bytes)};
}

/// The same with ranges: the mean seconds of a strip. Strips are of all sizes. Some of them are asked, evenly spread; all, if the call names the kernel
/// of their scores, since else some kernel covers each of them.
inline PartNeeds needs_of_ranges(const Reduction& p, const StripShape& shape, bool with_products) {
  constexpr std::int64_t most_asked = 64;
  std::int64_t count = 0, asked = 0;
  for_each_strip_part(p, shape, [&](const StripPart& part) {
    count += part.columns.count > 0;
    return true;
  });
  const std::int64_t step = p.score_kernel.empty() ? (count + most_asked - 1) / most_asked : 1;
  PartNeeds needs;
  std::int64_t number = 0;
  for_each_strip_part(p, shape, [&](const StripPart& part) {
    if (part.columns.count == 0 || number++ % step != 0) return true;
    const PartNeeds own = needs_of_strip(p, shape, part, with_products);
    needs.status = own.status;
    needs.seconds += own.seconds;
    needs.bytes = std::max(needs.bytes, own.bytes);
    ++asked;
    return static_cast<bool>(own.status);
  });
  if (asked > 0) needs.seconds /= static_cast<double>(asked);
  return needs;
}

/// What the contraction's kernels say of the strips of a shape: the seconds of a full one, and the bytes that any of them takes.
inline PartNeeds needs_of_strips(const Reduction& p, const StripShape& shape, bool with_products = false) {
  if (p.batch == 0 || p.m == 0 || p.n == 0) return {};
  if (p.ranges) return needs_of_ranges(p, shape, with_products);
  PartNeeds needs;
  for (const Range matrices : unlike_parts(p.batch, shape.matrices))
    for (const Range rows : unlike_parts(p.m, shape.rows))
      for (const Range columns : unlike_parts(p.n, shape.columns)) {
        if (matrices.count == 0 || rows.count == 0 || columns.count == 0) continue;
        const bool is_full = matrices.first == 0 && rows.first == 0 && columns.first == 0;
        const PartNeeds part = needs_of_strip(p, shape, {matrices, rows, columns, true, true}, with_products);
        if (is_full) needs.seconds = part.seconds;
        needs.bytes = std::max(needs.bytes, part.bytes);
        needs.status = part.status;
        if (!needs.status) return needs;
      }
  return needs;
}
/// How many strips a call has, in full ones.
inline double strips_of(const Reduction& p, const StripShape& shape) {
  if (p.ranges) {
    double count = 0;
    for_each_strip_part(p, shape, [&](const StripPart&) {
      ++count;
      return true;
    });
    return count;
  }
  const auto share = [](std::int64_t all, std::int64_t part) {
    return std::max(static_cast<double>(all) / static_cast<double>(part), 1.);
  };
  return share(p.batch, shape.matrices) * share(p.m, shape.rows) * share(p.n, shape.columns);
}
/// Scores of a call.
inline double scores_of(const Reduction& p) {
  const double pairs = p.ranges ? static_cast<double>(p.ranges->pairs) : static_cast<double>(p.m) * static_cast<double>(p.n);
  return static_cast<double>(p.batch) * pairs;
}

/// Where a strip lies: its first matrix, row and column, and its extents.
struct Strip {
  std::int64_t l, m, n, matrices, rows, columns, pitch;
  bool is_first, is_last;  // of its rows' chunks of columns
  RIGEL_MEMBER std::int64_t row_count() const { return matrices * rows; }
};

/// Computes the scores of one strip after the other, the columns of its rows in ascending order, and calls reduce(strip) for each. The
/// scores are at the beginning of the workspace. Rows without columns get one empty strip.
template <class Reduce>
void for_each_strip(const Reduction& p, const StripShape& shape, const Workspace& workspace, const Reduce& reduce) {
  for_each_strip_part(p, shape, [&](const StripPart& part) {
    const auto& [matrices, rows, columns, is_first, is_last] = part;
    if (columns.count > 0) run_part(ScorePart(p, matrices, rows, columns, shape, workspace).problem());
    reduce(Strip{matrices.first, rows.first, columns.first, matrices.count, rows.count, columns.count, shape.pitch, is_first,
                 is_last});
    return true;
  });
}

/// Element (l, n, d) of V, which is exact in double.
struct WeightReader {
  const void* data;
  Scalar type;
  Strided<const char> strides;

  static WeightReader of(const Operand& v) {
    return {v.data, v.type, {nullptr, v.batches == 1 ? 0 : v.batch_stride, v.row_stride, v.column_stride}};
  }
  RIGEL_MEMBER double operator()(std::int64_t l, std::int64_t n, std::int64_t d) const {
    const std::int64_t at = strides.offset(l, n, d);
    double value = 0;
    with_type<double>(type, const_cast<void*>(data), [&](auto* typed) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(*typed)>>)
        value = static_cast<double>(typed[at]);
      else
        value = static_cast<double>(static_cast<float>(typed[at]));
    });
    return value;
  }
};

/// The weight of a score in a softmax relative to the maximum of its row: exp(score − maximum), 1 of what equals it, and 0 of −∞.
template <class T>
RIGEL_FUNCTION T softmax_weight(T score, T maximum) {
  if (score == maximum) return score == -std::numeric_limits<T>::infinity() ? T(0) : T(1);
  return math::exponential(score - maximum);
}
/// The same of a former maximum, and so of all weights relative to it.
RIGEL_FUNCTION double softmax_factor(double former, double maximum) {
  return former == maximum ? 1 : math::exponential(former - maximum);
}

/// Calls visit.operator()<T>() with the type of the scores.
template <class Visit>
void with_scores(const Reduction& p, const Visit& visit) {
  switch (p.scores.type) {
    case Scalar::f32: return visit.template operator()<float>();
    case Scalar::f64: return visit.template operator()<double>();
    case Scalar::i32: return visit.template operator()<std::int32_t>();
    case Scalar::i64: return visit.template operator()<std::int64_t>();
    default: return visit.template operator()<std::uint64_t>();
  }
}

/// Calls visit.operator()<reducer>(), of a reducer of Rigel's that is not weighted.
template <class Visit>
void with_reducer(const Reduction& p, const Visit& visit) {
  switch (p.reducer) {
    case Reducer::minimum: return visit.template operator()<Reducer::minimum>();
    case Reducer::maximum: return visit.template operator()<Reducer::maximum>();
    case Reducer::smallest: return visit.template operator()<Reducer::smallest>();
    case Reducer::largest: return visit.template operator()<Reducer::largest>();
    case Reducer::sum: return visit.template operator()<Reducer::sum>();
    case Reducer::log_sum_exp: return visit.template operator()<Reducer::log_sum_exp>();
    case Reducer::count_below: return visit.template operator()<Reducer::count_below>();
    case Reducer::all_below: return visit.template operator()<Reducer::all_below>();
    case Reducer::histogram: return visit.template operator()<Reducer::histogram>();
    case Reducer::weighted_sum:
    case Reducer::softmax_weighted:
    case Reducer::monoid: return;
  }
}

inline bool keeps_many(const Reduction& p) { return p.reducer == Reducer::smallest || p.reducer == Reducer::largest; }

}  // namespace rigel::detail

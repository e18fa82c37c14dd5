// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kmeans(): Lloyd's iteration (S. P. Lloyd, Least squares quantization in PCM, 1982) from k-means++ seeds (D. Arthur and S. Vassilvitskii,
// k-means++: the advantages of careful seeding, 2007). No atomics: points are listed by their labels in a stable order, and a centre's sum runs
// over its list.
#pragma once

#include <rigel/detail/iteration.hpp>
#include <rigel/neighbors.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rigel {

/// Options of kmeans().
struct KMeansOptions {
  std::uint64_t seed = 0;                      // of the random numbers that choose the first centres
  int iterations = 100;                        // at most so many updates of the centres
  double tolerance = 1e-4;                     // stops when an update reduces the inertia by no more than this part of it
  bool from_centres = false;                   // starts from what centres hold, without seeds
  Promise require = Promise::none;             // of assign(), as in ReduceOptions
  Precision precision = Precision::automatic;  // the same
  bool may_cancel = false;                     // the same
  std::string_view kernel = {};                // the same
  std::string_view score_kernel = {};          // the same
  std::size_t workspace_limit = 0;             // the same
  Workspace workspace = {};                    // kmeans_workspace_size() bytes; else from Rigel's pool
};

/// What kmeans() found.
struct KMeansResult {
  int iterations = 0;      // updates of the centres
  double inertia = 0;      // Σ of squared distances of points from their centres
  bool converged = false;  // the last update reduced it by no more than the tolerance
};

namespace detail {

/// Random number `counter` of a seed, from 0 to 1 − 2^-53: the numbers of splitmix64 (G. L. Steele, D. Lea and C. H. Flood, Fast splittable
/// pseudorandom number generators, 2014), the same on every machine.
inline double random_number(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

/// One call: its arrays and its steps.
template <class Exec, class X, class Centres>
class KMeansCall {
  using Arrays = ArraysAt<Exec>;
  template <class T>
  using Vector = typename Arrays::template Vector<T>;
  using Value = typename view_t<X>::non_const_value_type;
  static constexpr std::int64_t piece = 256;  // points of a centre that one work item adds
  static constexpr double not_chosen = -1;    // the squared distance of a point that is a centre is this

 public:
  KMeansCall(const Exec& exec, const X& x, const Centres& centres, const KMeansOptions& options, std::uintptr_t base,
             std::size_t inner)
      : exec_(exec), x_(x), centres_(centres), options_(options), arrays_(base) {
    const Operand of_x = operand_of(x, Batch::first, "X"), of_centres = operand_of(centres, Batch::first, "centres");
    points_ = strided<Value>(of_x);
    to_ = strided_in<Value>(of_centres);
    m_ = of_x.rows;
    dimensions_ = of_x.columns;
    k_ = of_centres.rows;
    // Blocks of points whose labels are counted by one work item each. Their number depends on k alone.
    blocks_ = std::clamp<std::int64_t>((std::int64_t{1} << 20) / std::max<std::int64_t>(k_, 1), 1, 1024);
    most_pieces_ = m_ / piece + k_;
    distances_ = arrays_.template vector<double>(m_);
    labels_ = arrays_.template vector<std::int32_t>(m_);
    order_ = arrays_.template vector<std::int64_t>(m_);
    places_ = arrays_.template vector<std::int64_t>(blocks_ * k_);
    counts_ = arrays_.template vector<std::int64_t>(k_);
    begins_ = arrays_.template vector<std::int64_t>(k_ + 1);
    first_pieces_ = arrays_.template vector<std::int64_t>(k_ + 1);
    piece_ends_ = arrays_.template vector<std::int64_t>(most_pieces_ + 1);
    piece_sums_ = arrays_.template vector<double>(most_pieces_ * dimensions_);
    chosen_ = arrays_.template vector<std::int64_t>(k_);
    parts_ = arrays_.template vector<double>(ordered_parts);
    inner_ = arrays_.rest(inner);
  }

  std::size_t bytes() const { return arrays_.bytes(); }
  /// What assign() needs in addition.
  std::size_t inner_bytes() const {
    return aligned(reduce_distances_workspace_size(exec_, x_, centres_, metric::squared_euclidean{}, reducer::minimum{},
                                                   distances_, labels_, epilogue::Program{}, options_of_assign({})));
  }

  KMeansResult run(const Call& call) {
    if (!options_.from_centres) seed(call);
    KMeansResult result;
    result.inertia = assign_points();
    while (result.iterations < options_.iterations) {
      const double before = result.inertia;
      update();
      result.inertia = assign_points();
      ++result.iterations;
      if (result.inertia < (1 - options_.tolerance) * before) continue;
      // Not of NaN, and not if distances overflow.
      result.converged = result.inertia <= before && result.inertia < std::numeric_limits<double>::infinity();
      break;
    }
    return result;
  }

  template <class Labels>
  void store(const Labels& to) const {
    const std::int32_t* const labels = labels_.data();
    for_each_index(
        exec_, "rigel::kmeans/labels", m_,
        KOKKOS_LAMBDA(const std::int64_t i) { to(static_cast<std::size_t>(i)) = labels[i]; });
    exec_.fence("rigel::kmeans");
  }

 private:
  ReduceOptions options_of_assign(const Workspace& workspace) const {
    return {.require = options_.require,
            .precision = options_.precision,
            .may_cancel = options_.may_cancel,
            .kernel = options_.kernel,
            .score_kernel = options_.score_kernel,
            .workspace_limit = options_.workspace_limit,
            .workspace = workspace};
  }

  /// Labels, squared distances, and their sum.
  double assign_points() const {
    assign(exec_, x_, centres_, metric::squared_euclidean{}, labels_, distances_, options_of_assign(inner_));
    double* const distances = distances_.data();
    return ordered_sums(
        exec_, "rigel::kmeans/inertia", m_, 1, parts_,
        KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) { return distances[i]; })[0];
  }

  // ---- seeds ---------------------------------------------------------------------------------------------------------

  /// Centre c is point i with the probability of its squared distance from the nearest of those before; the first one is any. Distances are
  /// summed in double with ascending coordinates, without fused operations: they have the same bits everywhere.
  void seed(const Call& call) const {
    double* const distances = distances_.data();
    for_each_index(
        exec_, "rigel::kmeans/seeds", m_,
        KOKKOS_LAMBDA(const std::int64_t i) { distances[i] = std::numeric_limits<double>::infinity(); });
    std::vector<double> parts;
    double total = 0;
    for (std::int64_t c = 0; c < k_; ++c) {
      const double random = random_number(options_.seed, static_cast<std::uint64_t>(c));
      if (c == 0)
        choose(c, std::min(static_cast<std::int64_t>(random * static_cast<double>(m_)), m_ - 1));
      else if (total > 0)
        choose_by_distance(c, random * total, parts);
      else
        choose(c, first_free());
      if (c > 0) {
        copy_row(c);
        if (c + 1 == k_) break;
      }
      reduce_distances_to(c);
      const std::vector<double> sum = ordered_sums(
          exec_, "rigel::kmeans/seeds", m_, 1, parts_, KOKKOS_LAMBDA(const std::int64_t i, std::int64_t) {
            const double d = distances[i];
            return d > 0 || d != d ? d : 0.;
          });
      total = sum[0];
      if (!(total < std::numeric_limits<double>::infinity()))
        refuse(call, "X holds infinities or NaN, or squared distances overflow, expected finite points");
      if (c == 0) copy_row(c);  // distances become no larger: nothing is written before the only refusal
      parts = to_host(exec_, parts_);
    }
  }
  void choose(std::int64_t c, std::int64_t i) const {
    std::int64_t* const chosen = chosen_.data();
    for_each_index(exec_, "rigel::kmeans/seeds", 1, KOKKOS_LAMBDA(const std::int64_t) { chosen[c] = i; });
  }
  /// The first point at which the sum of distances, in the order of ordered_sums(), exceeds `target`.
  void choose_by_distance(std::int64_t c, double target, const std::vector<double>& parts) const {
    std::int64_t part = 0, last = 0;
    double before = 0;
    for (; part < ordered_parts; ++part) {
      const double sum = parts[static_cast<std::size_t>(part)];
      if (sum > 0) last = part;
      if (before + sum > target) break;
      before += sum;
    }
    if (part == ordered_parts) part = last;  // by a rounding
    const double rest = target - before;
    const std::int64_t m = m_;
    double* const distances = distances_.data();
    std::int64_t* const chosen = chosen_.data();
    for_each_index(
        exec_, "rigel::kmeans/seeds", 1, KOKKOS_LAMBDA(const std::int64_t) {
          std::int64_t found = -1;
          double sum = 0;
          for (std::int64_t i = part; i < m; i += ordered_parts) {
            const double d = distances[i];
            if (!(d > 0)) continue;
            sum += d;
            found = i;
            if (sum > rest) break;
          }
          chosen[c] = found;
        });
  }
  /// The first point that is no centre yet.
  std::int64_t first_free() const {
    double* const distances = distances_.data();
    std::int64_t first = 0;
    Kokkos::parallel_reduce(
        "rigel::kmeans/seeds", by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec_, 0, m_)),
        KOKKOS_LAMBDA(const std::int64_t i, std::int64_t& least) {
          if (distances[i] >= 0 && i < least) least = i;
        },
        Kokkos::Min<std::int64_t>(first));
    return first;
  }
  /// The chosen point becomes centre c.
  void copy_row(std::int64_t c) const {
    const Strided<const Value> from = points_;
    const Strided<Value> to = to_;
    std::int64_t* const chosen = chosen_.data();
    for_each_index(
        exec_, "rigel::kmeans/seeds", dimensions_,
        KOKKOS_LAMBDA(const std::int64_t d) { to.at(0, c, d) = from.at(0, chosen[c], d); });
  }
  void reduce_distances_to(std::int64_t c) const {
    const Strided<const Value> from = points_;
    const std::int64_t dimensions = dimensions_;
    double* const distances = distances_.data();
    std::int64_t* const chosen = chosen_.data();
    for_each_index(
        exec_, "rigel::kmeans/seeds", m_, KOKKOS_LAMBDA(const std::int64_t i) {
          const std::int64_t centre = chosen[c];
          double& nearest = distances[i];
          if (i == centre) nearest = not_chosen;
          if (nearest == not_chosen) return;
          double sum = 0;
          for (std::int64_t d = 0; d < dimensions; ++d) {
            const double t =
                math::subtract(static_cast<double>(from.at(0, i, d)), static_cast<double>(from.at(0, centre, d)));
            sum = math::add(sum, math::multiply(t, t));
          }
          if (!(sum >= nearest)) nearest = sum;
        });
  }

  // ---- centres -------------------------------------------------------------------------------------------------------

  /// The points of each label in ascending order: those of label c are order(begins(c)), …, order(begins(c + 1) − 1). Each block of points
  /// counts its own, the counts before a block's make its places, and then each block lists its points.
  std::vector<std::int64_t> list_points() const {
    const std::int64_t k = k_, m = m_, blocks = blocks_, of_block = (m_ + blocks_ - 1) / blocks_;
    const std::int32_t* const labels = labels_.data();
    std::int64_t *const places = places_.data(), *const counts = counts_.data(), *const order = order_.data();
    const std::int64_t* const begins = begins_.data();
    for_each_index(
        exec_, "rigel::kmeans/counts", blocks, KOKKOS_LAMBDA(const std::int64_t b) {
          std::int64_t* const own = places + b * k;
          for (std::int64_t c = 0; c < k; ++c) own[c] = 0;
          for (std::int64_t i = b * of_block; i < m && i < (b + 1) * of_block; ++i) ++own[labels[i]];
        });
    for_each_index(
        exec_, "rigel::kmeans/counts", k, KOKKOS_LAMBDA(const std::int64_t c) {
          std::int64_t before = 0;
          for (std::int64_t b = 0; b < blocks; ++b) {
            const std::int64_t own = places[b * k + c];
            places[b * k + c] = before;
            before += own;
          }
          counts[c] = before;
        });
    const std::vector<std::int64_t> numbers = to_host(exec_, counts_);
    std::vector<std::int64_t> first(numbers.size() + 1, 0);
    std::partial_sum(numbers.begin(), numbers.end(), first.begin() + 1);
    to_space(exec_, first, begins_);
    for_each_index(
        exec_, "rigel::kmeans/lists", blocks, KOKKOS_LAMBDA(const std::int64_t b) {
          std::int64_t* const next = places + b * k;
          for (std::int64_t i = b * of_block; i < m && i < (b + 1) * of_block; ++i) {
            const std::int64_t c = labels[i];
            order[begins[c] + next[c]++] = i;
          }
        });
    return first;
  }

  /// Centres become the means of their points: pieces of a list are added by one work item each, in ascending order, and then the pieces.
  /// Those without points become the points that are farthest from their centres.
  void update() const {
    const std::vector<std::int64_t> first = list_points();
    std::vector<std::int64_t> of_centre(first.size(), 0), ends(static_cast<std::size_t>(most_pieces_ + 1), 0), empty;
    std::int64_t pieces = 0;
    for (std::size_t c = 0; c + 1 < first.size(); ++c) {
      for (std::int64_t at = first[c]; at < first[c + 1]; at += piece)
        ends[static_cast<std::size_t>(++pieces)] = std::min(at + piece, first[c + 1]);
      of_centre[c + 1] = pieces;
      if (first[c] == first[c + 1]) empty.push_back(static_cast<std::int64_t>(c));
    }
    to_space(exec_, of_centre, first_pieces_);
    to_space(exec_, ends, piece_ends_);
    const Strided<const Value> from = points_;
    const Strided<Value> to = to_;
    const std::int64_t dimensions = dimensions_;
    const std::int64_t *const order = order_.data(), *const of_lists = first_pieces_.data(),
                              *const list_ends = piece_ends_.data(), *const begins = begins_.data();
    double* const sums = piece_sums_.data();
    for_each_index(
        exec_, "rigel::kmeans/sums", pieces * dimensions, KOKKOS_LAMBDA(const std::int64_t item) {
          const std::int64_t p = item / dimensions, d = item % dimensions;
          double sum = 0;
          for (std::int64_t at = list_ends[p]; at < list_ends[p + 1]; ++at)
            sum += static_cast<double>(from.at(0, order[at], d));
          sums[item] = sum;
        });
    for_each_index(
        exec_, "rigel::kmeans/centres", k_ * dimensions, KOKKOS_LAMBDA(const std::int64_t item) {
          const std::int64_t c = item / dimensions, d = item % dimensions, points = begins[c + 1] - begins[c];
          if (points == 0) return;
          double sum = 0;
          for (std::int64_t p = of_lists[c]; p < of_lists[c + 1]; ++p) sum += sums[p * dimensions + d];
          to.at(0, c, d) = static_cast<Value>(sum / static_cast<double>(points));
        });
    if (!empty.empty()) fill_empty(empty);
  }

  /// Of points with NaN distances, the last ones, some become centres only if there are no others.
  void fill_empty(const std::vector<std::int64_t>& empty) const {
    const std::vector<double> distances = to_host(exec_, distances_);
    std::vector<std::int64_t> points(distances.size());
    std::iota(points.begin(), points.end(), 0);
    const auto count = static_cast<std::ptrdiff_t>(empty.size());
    std::partial_sort(points.begin(), points.begin() + count, points.end(), [&](std::int64_t i, std::int64_t j) {
      const double a = distances[static_cast<std::size_t>(i)], b = distances[static_cast<std::size_t>(j)];
      if (a == b || (a != a && b != b)) return i < j;
      return a > b || b != b;
    });
    for (std::size_t e = 0; e < empty.size(); ++e) {
      choose(empty[e], points[e]);
      copy_row(empty[e]);
    }
  }

  const Exec& exec_;
  const X& x_;
  const Centres& centres_;
  const KMeansOptions& options_;
  Arrays arrays_;
  Strided<const Value> points_{};
  Strided<Value> to_{};
  std::int64_t m_ = 0, dimensions_ = 0, k_ = 0, blocks_ = 1, most_pieces_ = 0;
  Vector<double> distances_, piece_sums_, parts_;
  Vector<std::int32_t> labels_;
  Vector<std::int64_t> order_, places_, counts_, begins_, first_pieces_, piece_ends_, chosen_;
  Workspace inner_;
};

template <class X, class Centres, class Labels>
constexpr void check_kmeans() {
  using Value = typename view_t<X>::non_const_value_type;
  static_assert(std::is_same_v<Value, float> || std::is_same_v<Value, double>, "kmeans: X holds float or double");
  static_assert(std::is_same_v<typename view_t<Centres>::value_type, Value>,
                "kmeans: centres hold X's type, and are written");
  static_assert(Kokkos::is_view_v<Labels>, "kmeans: labels are a Kokkos view");
  static_assert(Labels::rank() == 1, "kmeans: labels are a view of rank 1");
  using Label = typename Labels::value_type;
  static_assert(std::is_same_v<Label, std::int32_t> || std::is_same_v<Label, std::int64_t>,
                "kmeans: labels are int32 or int64");
}

}  // namespace detail

/// Bytes of workspace that the same call of kmeans() needs.
template <class Exec, class X, class Centres, class Labels>
std::size_t kmeans_workspace_size(const Exec& exec, const X& x, const Centres& centres, const Labels&,
                                  const KMeansOptions& options = {}) {
  const detail::KMeansCall<Exec, X, Centres> call(exec, x, centres, options, detail::nominal_workspace, 0);
  return call.bytes() + call.inner_bytes();
}

/// k centres of the rows of X, and the nearest one of each row, such that the inertia is small:
///
///     labels(m) = argmin_c |X(m,:) − centres(c,:)|²,      inertia = Σ_m |X(m,:) − centres(labels(m),:)|²
///
/// by updates that make each centre the mean of its points, from k-means++ seeds.
///
/// exec, x   M × K numbers of float or double, in any layout
/// k         from 1 to M
/// centres   k × K numbers of x's type. With options.from_centres they are where it starts.
/// labels    M numbers of int32 or int64
/// options   It stops after options.iterations, or when an update reduces the inertia by no more than options.tolerance times it. Labels and
///           inertia are those of the centres that it returns.
/// The same seed chooses the same points on every execution space. Sums of points are in double, in an order that depends on the labels alone;
/// labels are assign()'s, in which points at nearly equal distances may differ from space to space unless options.require asks for the
/// reference's bits. A centre without points becomes the point that is farthest from its own, the smallest of several; several such centres
/// take the farthest ones. Of fewer than k different points some centres are equal.
/// It waits for the space in each update, and refuses a stream that is being captured.
/// Throws Error(invalid_argument) if extents do not fit, k is not from 1 to M, outputs overlap x or each other, or points are not finite (where
/// seeds are chosen); and as assign() does.
template <class Exec, class X, class Centres, class Labels>
KMeansResult kmeans(const Exec& exec, const X& x, std::int64_t k, const Centres& centres, const Labels& labels,
                    const KMeansOptions& options = {}) {
  detail::check_kmeans<X, Centres, Labels>();
  Call call;
  call.function = "kmeans";
  call.execution = detail::execution_of(exec);
  call.workspace = options.workspace;
  const Operand of_x = detail::operand_of(x, Batch::first, "X"),
                of_centres = detail::operand_of(centres, Batch::first, "centres"),
                of_labels = detail::result_operand<false>(labels, Batch::first, "labels");
  for (const Operand* o : {&of_x, &of_centres})
    if (o->batches != 1) detail::refuse(call, detail::describe_argument(*o, " is ") + ", expected a single matrix");
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (k < 1 || k > of_x.rows || k > most)
    detail::refuse(call, "k is " + std::to_string(k) + ", expected 1 to " + std::to_string(std::min(of_x.rows, most)) +
                             ", the rows of " + detail::describe_argument(of_x));
  if (of_centres.rows != k)
    detail::refuse(call, detail::describe_argument(of_centres, " is ") + ", expected k = " + std::to_string(k) + " rows");
  detail::require_extent(call, of_centres, "columns", of_centres.columns, of_x.columns, of_x);
  detail::require_extent(call, of_labels, "numbers", of_labels.rows, of_x.rows, of_x, "the rows of ");
  if (options.iterations < 0)
    detail::refuse(call, "options.iterations is " + std::to_string(options.iterations) + ", expected 0 or more");
  if (!(options.tolerance >= 0 && options.tolerance < 1))
    detail::refuse(call, "options.tolerance is " + std::to_string(options.tolerance) + ", expected 0 or more, and below 1");
  if (of_x.columns > 0)
    for (const Operand* o : {&of_x, &of_centres}) detail::require_data(call, *o);
  detail::require_data(call, of_labels);
  for (const Operand* written : {&of_centres, &of_labels}) {
    detail::require_distinct(call, *written);
    detail::require_disjoint(call, *written, of_x);
  }
  detail::require_disjoint(call, of_centres, of_labels);
  detail::require_waiting(call);
  const detail::KMeansCall<Exec, X, Centres> nominal(exec, x, centres, options, detail::nominal_workspace, 0);
  const std::size_t inner = nominal.inner_bytes();
  const detail::CallMemory memory(call.function, call.execution, call.workspace, nominal.bytes() + inner,
                                  {&of_x, &of_centres, &of_labels});
  detail::KMeansCall<Exec, X, Centres> placed(exec, x, centres, options, memory.address(), inner);
  const KMeansResult result = placed.run(call);
  placed.store(labels);
  return result;
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What people call reductions of distances: nearest(), assign(), radius_neighbors(), logsumexp(). Each is reduce() with the semiring and the last steps of a
// metric, whose rows are prepared as in cdist(); no matrix of distances is stored.
#pragma once

#include <rigel/detail/points.hpp>
#include <rigel/distance.hpp>
#include <rigel/kernel_matrix.hpp>
#include <rigel/reduce.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace rigel {

namespace detail {

// Hands `use` the reduction of the distances of x and z, and the pass that prepares their rows, or null.
template <class Exec, class X, class Z, class M, class R, class V, class I, class E, class Use>
auto with_points(const Exec& exec, const X& x, const Z& z, const M& metric, const R& reducer, const V& values,
                 const I& indices, const E& last, const ReduceOptions& options, const char* function, const Use& use) {
  check_reducer<Exec, R, V, I>();
  using Element = typename decltype(cdist_element<X, Z, M>())::type;
  using Given =
      std::conditional_t<std::is_same_v<prepared_row<Element>, float> && !std::is_integral_v<Element>, float, double>;
  using Score = typename decltype(kept_score<R, Given>())::type;
  Reduction p;
  p.function = function;
  set_reducer(exec, p, reducer, options);
  set_outputs<R>(p, values, indices, options.batch);
  const Operand& output = p.values.size > 0 ? p.values : p.indices;
  // Stands for the distances, without memory.
  using Distances = Kokkos::View<Score***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const auto batches = static_cast<std::size_t>(output.batches),
             m = static_cast<std::size_t>(operand_of(x, options.batch, "X").rows),
             n = static_cast<std::size_t>(operand_of(z, options.batch, "Z").rows);
  const Distances distances(nullptr, options.batch == Batch::first ? Kokkos::LayoutStride(batches, 0, m, 0, n, 0)
                                                                   : Kokkos::LayoutStride(m, 0, n, 0, batches, 0));
  const CdistOptions of_distances{.batch = options.batch,
                                  .require = options.require,
                                  .precision = options.precision,
                                  .may_cancel = options.may_cancel,
                                  .kernel = options.score_kernel};
  std::function<void(const Reduction&)> check_programs;  // those that a functor as epilogue is made of
  return with_cdist(
      exec, x, z, distances, metric, last, of_distances,
      [&](Cdist distances) {
        const RowPass* const pass = distances.pass ? &*distances.pass : nullptr;
        p.set_contraction(std::move(distances.distances));
        if (check_programs) check_programs(p);
        set_instantiated<Exec>(p);
        set_monoid<Exec, Score>(p, reducer);
        return use(std::move(p), pass);
      },
      function,
      [&]<class SemiringOrView, class Functor>(const SemiringOrView&, const Functor& functor) -> decltype(auto) {
        p.semiring_bytes = sizeof(typename semiring_argument<SemiringOrView>::type);
        if constexpr (!std::is_same_v<Functor, epilogue::Program>) {
          p.functor_bytes = sizeof(Placed<Functor>);
          check_programs = [&functor](const Reduction& call) {
            epilogue::for_each_program(functor, [&](const epilogue::Program& program) { call.check_sources(program); });
          };
        }
        return placed(functor);
      });
}

// Whether a metric's values are those of a kernel, most of which are the larger the nearer rows are.
template <class M>
inline constexpr bool is_kernel_over = false;
template <class M, class K>
inline constexpr bool is_kernel_over<WithKernel<M, K>> = true;

}  // namespace detail

/// A metric whose last steps are a kernel, for reduce_distances(): kernel_over(metric::euclidean{}, kernel::gaussian{0.5}). metric and
/// kernel go together as in kernel_matrix().
template <class M, class K>
auto kernel_over(const M& metric, const K& kernel) {
  detail::check_kernel<M, K>();
  return detail::WithKernel<M, K>{metric, kernel, {}};
}

/// reduce() of distances: with D(l,m,n) = last( metric(X(l,m,:), Z(l,n,:)) ), never stored, asynchronously on `exec`,
///
///     values(l,m), indices(l,m) = ⊞_n D(l,m,n)
///
/// exec, x, z, metric, last   as in cdist(): x is M × K, z is N × K; metric may be a kernel_over() one. Distances are in f32 if x holds
///           f16, bf16 or f32, else in f64; those that weight a V of f64 are, too
/// reducer, values, indices, options   as in reduce(); options.exclude_self leaves out n = m of a set with itself, and options.ranges pairs of
///           clusters, say those that are too far apart to matter
/// The number of neighbours within a radius is reducer::count_below{radius, true}; log-sum-exp of −D/ε is logsumexp().
/// Rows that a metric prepares are in the workspace in addition to reduce()'s 64 MiB: K numbers for each row of x and z.
/// Throws as cdist() and reduce() do.
template <class Exec, class X, class Z, class M, class R, class V, class I = NoOutput, class E = epilogue::Program>
void reduce_distances(const Exec& exec, const X& x, const Z& z, const M& metric, const R& reducer, const V& values,
                      const I& indices = {}, const E& last = {}, const ReduceOptions& options = {}) {
  detail::with_points(exec, x, z, metric, reducer, values, indices, last, options, "reduce_distances",
                      [](Reduction p, const detail::RowPass* pass) { detail::run_points(std::move(p), pass); });
}

/// Every kernel that the same call of reduce_distances() could use: predicted time, or the reason why not; '*' marks the choice.
template <class Exec, class X, class Z, class M, class R, class V, class I = NoOutput, class E = epilogue::Program>
std::string explain_reduce_distances(const Exec& exec, const X& x, const Z& z, const M& metric, const R& reducer,
                                     const V& values, const I& indices = {}, const E& last = {},
                                     const ReduceOptions& options = {}) {
  return detail::with_points(
      exec, x, z, metric, reducer, values, indices, last, options, "reduce_distances",
      [](Reduction p, const detail::RowPass* pass) { return detail::explain_points(std::move(p), pass); });
}

/// Bytes of workspace that the same call of reduce_distances() needs. nearest(), assign() and logsumexp() are such calls.
template <class Exec, class X, class Z, class M, class R, class V, class I = NoOutput, class E = epilogue::Program>
std::size_t reduce_distances_workspace_size(const Exec& exec, const X& x, const Z& z, const M& metric, const R& reducer,
                                            const V& values, const I& indices = {}, const E& last = {},
                                            const ReduceOptions& options = {}) {
  return detail::with_points(
      exec, x, z, metric, reducer, values, indices, last, options, "reduce_distances",
      [](Reduction p, const detail::RowPass* pass) { return detail::points_bytes(std::move(p), pass); });
}

/// The k nearest rows of Z for each row of X, by ascending distance, equal ones by ascending index; of metric::inner_product, which is a
/// similarity, the k with the largest products, in descending order:
///
///     indices(l,m,i), distances(l,m,i),  i = 0 … k − 1
///
/// exec, x, z, metric   as in cdist(), not a kernel_over()
/// k         from 1 to 4096. If z has fewer rows, −1 and ∞ follow (−∞ of inner products).
/// indices   M × k, of int32 or int64; with batches L × M × k. Or no_output.
/// distances M × k numbers. Or no_output.
/// options   options.exclude_self: x and z are one set, and no row is its own neighbour; options.ranges: only rows of z that a row of x meets
/// NaN distances come last: a row of x with NaN gets the indices 0 … k − 1 and NaN. It is a call of reduce_distances(), and throws as that does.
template <class Exec, class X, class Z, class M, class I, class D>
void nearest(const Exec& exec, const X& x, const Z& z, const M& metric, std::int64_t k, const I& indices, const D& distances,
             const ReduceOptions& options = {}) {
  static_assert(!detail::is_kernel_over<M>,
                "nearest: values of a kernel are not distances; use reduce_distances() with reducer::largest");
  const auto by = [&](const auto& reducer) {
    detail::with_points(exec, x, z, metric, reducer, distances, indices, epilogue::Program{}, options, "nearest",
                        [](Reduction p, const detail::RowPass* pass) { detail::run_points(std::move(p), pass); });
  };
  if constexpr (std::is_base_of_v<metric::inner_product, M>)
    by(reducer::largest{k});
  else
    by(reducer::smallest{k});
}

/// The nearest of the centres for each row of X, as k-means assigns points to clusters; of equally near ones that of the smallest index,
/// and of metric::inner_product the one with the largest product:
///
///     indices(l,m) = argmin_n metric(X(l,m,:), Z(l,n,:)),      distances(l,m) = the minimum
///
/// indices   M numbers of int32 or int64; with batches L × M. Or no_output.
/// distances M numbers, or none.
/// A NaN distance wins, as in NumPy's argmin. Of no centres: −1 and ∞. It is a call of reduce_distances(), and throws as that does.
template <class Exec, class X, class Z, class M, class I, class D = NoOutput>
void assign(const Exec& exec, const X& x, const Z& z, const M& metric, const I& indices, const D& distances = {},
            const ReduceOptions& options = {}) {
  static_assert(!detail::is_kernel_over<M>,
                "assign: values of a kernel are not distances; use reduce_distances() with reducer::maximum");
  const auto by = [&](const auto& reducer) {
    detail::with_points(exec, x, z, metric, reducer, distances, indices, epilogue::Program{}, options, "assign",
                        [](Reduction p, const detail::RowPass* pass) { detail::run_points(std::move(p), pass); });
  };
  if constexpr (std::is_base_of_v<metric::inner_product, M>)
    by(reducer::maximum{});
  else
    by(reducer::minimum{});
}

/// The number of rows of Z within a radius of each row of X, added up: the offsets of radius_neighbors(),
///
///     offsets(0) = 0,      offsets(m + 1) = offsets(m) + #{n : metric(X(m,:), Z(n,:)) ≤ radius}
///
/// exec, x, z, metric   as in cdist(), of single matrices; metric is no inner_product
/// offsets   a view of M + 1 int64. The last one says how long indices and distances of radius_neighbors() are.
/// NaN distances are within no radius. It is a call of reduce_distances() and a scan, and throws as that does. Kokkos may allocate memory for
/// the first scan on an execution space: run one of these sizes before you capture one in a CUDA graph.
template <class Exec, class X, class Z, class M, class Offsets>
void radius_offsets(const Exec& exec, const X& x, const Z& z, const M& metric, double radius, const Offsets& offsets,
                    const ReduceOptions& options = {}) {
  static_assert(!std::is_base_of_v<metric::inner_product, M>, "radius_offsets: products are not distances");
  static_assert(!detail::is_kernel_over<M>, "radius_offsets: values of a kernel are not distances");
  static_assert(Offsets::rank() == 1 && std::is_same_v<typename Offsets::value_type, std::int64_t>,
                "radius_offsets: offsets are a view of rank 1 of int64");
  const std::int64_t rows = detail::operand_of(x, options.batch, "X").rows,
                     extent = static_cast<std::int64_t>(offsets.extent(0));
  if (extent != rows + 1)
    throw Error(Code::invalid_argument, "radius_offsets: offsets '" + offsets.label() + "' has " + std::to_string(extent) +
                                            " numbers, expected " + std::to_string(rows + 1) + ", one more than X has rows");
  const auto counts = Kokkos::subview(offsets, Kokkos::pair<std::size_t, std::size_t>(1, offsets.extent(0)));
  detail::with_points(exec, x, z, metric, reducer::count_below{radius, true}, counts, no_output, epilogue::Program{},
                      options, "radius_offsets",
                      [](Reduction p, const detail::RowPass* pass) { detail::run_offsets(std::move(p), pass); });
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_scan(
      "rigel::reduce_distances/radius_offsets", detail::by_argument(Policy(exec, 0, extent)),
      KOKKOS_LAMBDA(const std::int64_t m, std::int64_t& sum, const bool is_final) {
        sum += m == 0 ? 0 : offsets(m);
        if (is_final) offsets(m) = sum;
      });
}

/// The rows of Z within a radius of each row of X, as a compressed sparse row matrix: those of row m of X by ascending index,
///
///     indices(i), distances(i),  i = offsets(m) … offsets(m + 1) − 1
///
/// exec, x, z, metric, radius, options   as in radius_offsets(), which made the offsets
/// indices    offsets(M) numbers of int32 or int64. Or no_output.
/// distances  as many numbers. Or no_output.
///
///     rigel::radius_offsets(exec, x, z, metric, radius, offsets);
///     Kokkos::deep_copy(exec, total, Kokkos::subview(offsets, m));      // then a fence, and views of that length
///     rigel::radius_neighbors(exec, x, z, metric, radius, offsets, indices, distances);
///
/// Nothing is written beyond indices and distances, or beyond a row's part, whatever the offsets are. It is a call of reduce_distances(), and
/// throws as that does.
template <class Exec, class X, class Z, class M, class Offsets, class I, class D>
void radius_neighbors(const Exec& exec, const X& x, const Z& z, const M& metric, double radius, const Offsets& offsets,
                      const I& indices, const D& distances, const ReduceOptions& options = {}) {
  static_assert(!std::is_base_of_v<metric::inner_product, M>, "radius_neighbors: products are not distances");
  static_assert(!detail::is_kernel_over<M>, "radius_neighbors: values of a kernel are not distances");
  detail::with_points(exec, x, z, metric, reducer::all_below<Offsets>{radius, offsets, true}, distances, indices,
                      epilogue::Program{}, options, "radius_neighbors",
                      [](Reduction p, const detail::RowPass* pass) { detail::run_points(std::move(p), pass); });
}

/// values(l,m) = log Σ_n exp( last( metric(X(l,m,:), Z(l,n,:)) ) ), relative to the row's maximum, so that nothing overflows. Sinkhorn's
/// potentials, for instance, have last = epilogue::scale(-1 / epsilon) | epilogue::add_row(…).
///
/// values    M numbers; with batches L × M
/// It is a call of reduce_distances(), and throws as that does. For a product of any semiring in place of a metric, call reduce() with
/// reducer::log_sum_exp.
template <class Exec, class X, class Z, class M, class V, class E = epilogue::Program>
void logsumexp(const Exec& exec, const X& x, const Z& z, const M& metric, const V& values, const E& last = {},
               const ReduceOptions& options = {}) {
  detail::with_points(exec, x, z, metric, reducer::log_sum_exp{}, values, no_output, last, options, "logsumexp",
                      [](Reduction p, const detail::RowPass* pass) { detail::run_points(std::move(p), pass); });
}

}  // namespace rigel

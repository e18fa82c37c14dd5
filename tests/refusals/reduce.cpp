// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() with results that a reducer does not have, or that cannot be written, kernels in place of distances, and types that do not fit.
#include <rigel/kernel_solve.hpp>
#include <rigel/kmeans.hpp>
#include <rigel/sinkhorn.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<float**, Kokkos::HostSpace>;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;
using Places = Kokkos::View<int*, Kokkos::HostSpace>;

template <class R, class V, class I>
void reduced(const Matrix& m, const R& reducer, const V& values, const I& indices) {
  rigel::reduce(Exec(), rigel::min_plus<float>{}, m, m, reducer, values, indices);
}

}  // namespace

void calls(const Matrix& m, const Vector& v, const Places& p);
void calls(const Matrix& m, const Vector& v, const Places& p) {
  // expected-error@rigel/reduce.hpp:* {{this reducer has no indices, expected rigel::no_output or none}}
  reduced(m, rigel::reducer::sum{}, v, p);
  // expected-error@rigel/reduce.hpp:* {{reduce: no results are wanted}}
  reduced(m, rigel::reducer::minimum{}, rigel::no_output, rigel::no_output);
  // expected-error@rigel/reduce.hpp:* {{reduce: indices are int32 or int64}}
  reduced(m, rigel::reducer::minimum{}, v, Kokkos::View<short*, Kokkos::HostSpace>());
  // expected-error@rigel/reduce.hpp:* {{reduce: values are written, their elements cannot be const}}
  reduced(m, rigel::reducer::minimum{}, Kokkos::View<const float*, Kokkos::HostSpace>(v), p);
}

void weights(const Matrix& m, const Vector& v, const Places& p);
void weights(const Matrix& m, const Vector& v, const Places& p) {
  // expected-error@rigel/reduce.hpp:* {{reduce: V holds floating-point numbers: f16, bf16, f32 or f64}}
  reduced(m, rigel::reducer::weighted_sum{p}, v, rigel::no_output);
  // expected-error@rigel/reduce.hpp:* {{this reducer has no indices, expected rigel::no_output or none}}
  reduced(m, rigel::reducer::softmax_weighted{v}, v, p);
  // expected-error@rigel/reduce.hpp:* {{reduce: edges are a view of rank 1 of double}}
  reduced(m, rigel::reducer::histogram{v}, m, rigel::no_output);
}

void iterations(const Matrix& m, const Vector& v, const Places& p);
void iterations(const Matrix& m, const Vector& v, const Places& p) {
  // expected-error@rigel/sinkhorn.hpp:* {{sinkhorn: the metric is symmetric, which kl_divergence is not}}
  rigel::sinkhorn(Exec(), m, m, v, v, rigel::metric::kl_divergence{}, v, v, {.epsilon = 1});
  // expected-error@rigel/kmeans.hpp:* {{kmeans: centres hold X's type, and are written}}
  rigel::kmeans(Exec(), m, 2, Kokkos::View<const float**, Kokkos::HostSpace>(m), p);
  // expected-error@rigel/kernel_solve.hpp:* {{kernel_solve: y and alpha hold the same type}}
  rigel::kernel_solve(Exec(), m, Kokkos::View<const double*, Kokkos::HostSpace>(), rigel::metric::euclidean{},
                      rigel::kernel::gaussian{0.5}, 1, v);
}

void near(const Matrix& m, const Places& p, const Kokkos::View<std::int64_t*, Kokkos::HostSpace>& offsets);
void near(const Matrix& m, const Places& p, const Kokkos::View<std::int64_t*, Kokkos::HostSpace>& offsets) {
  const auto similarity = rigel::kernel_over(rigel::metric::euclidean{}, rigel::kernel::gaussian{0.5});
  // expected-error@rigel/neighbors.hpp:* {{nearest: values of a kernel are not distances; use reduce_distances() with reducer::largest}}
  rigel::nearest(Exec(), m, m, similarity, 3, rigel::no_output, m);
  // expected-error@rigel/neighbors.hpp:* {{assign: values of a kernel are not distances; use reduce_distances() with reducer::maximum}}
  rigel::assign(Exec(), m, m, similarity, p);
  // expected-error@rigel/neighbors.hpp:* {{radius_offsets: values of a kernel are not distances}}
  rigel::radius_offsets(Exec(), m, m, similarity, 1, offsets);
  // expected-error@rigel/neighbors.hpp:* {{radius_neighbors: values of a kernel are not distances}}
  rigel::radius_neighbors(Exec(), m, m, similarity, 1, offsets, p, rigel::no_output);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() with results that a reducer does not have, or that cannot be written, and kernels in place of distances.
#include <rigel/neighbors.hpp>

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

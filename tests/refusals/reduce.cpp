// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() with results that a reducer does not have, or that cannot be written.
#include <rigel/reduce.hpp>

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

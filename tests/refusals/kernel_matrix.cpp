// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of what a metric does not give, and a D that is not floating-point.
#include <rigel/kernel_matrix.hpp>

namespace {

using Matrix = Kokkos::View<double**, Kokkos::DefaultHostExecutionSpace>;
using Flags = Kokkos::View<bool**, Kokkos::DefaultHostExecutionSpace>;

template <class M, class K>
void refused(const Matrix& m, const M& metric, const K& kernel) {
  rigel::kernel_matrix(Kokkos::DefaultHostExecutionSpace(), m, m, metric, kernel);
}

}  // namespace

void calls(const Matrix& m, const Flags& flags);
void calls(const Matrix& m, const Flags& flags) {
  // expected-error@rigel/kernel_matrix.hpp:* {{this kernel is one of inner products, expected metric::inner_product}}
  refused(m, rigel::metric::euclidean{}, rigel::kernel::polynomial{2});
  // expected-error@rigel/kernel_matrix.hpp:* {{kernel::cosine takes metric::cosine or metric::correlation}}
  refused(m, rigel::metric::manhattan{}, rigel::kernel::cosine{});
  // expected-error@rigel/kernel_matrix.hpp:* 2 {{this kernel is one of distances, not of their squares or of products}}
  refused(m, rigel::metric::squared_euclidean{}, rigel::kernel::gaussian{1});
  refused(m, rigel::metric::inner_product{}, rigel::kernel::laplace{1});
  // expected-error@rigel/kernel_matrix.hpp:* {{kernel_matrix: D holds floating-point numbers}}
  rigel::kernel_matrix(Kokkos::DefaultHostExecutionSpace(), m, flags, rigel::metric::euclidean{},
                       rigel::kernel::gaussian{1});
}

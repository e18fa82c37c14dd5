// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels and metrics that have no gradient, and views of other types.
#include <rigel/kernel_matrix_gradient.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<double**, Exec>;
using Floats = Kokkos::View<float**, Exec>;
using Constants = Kokkos::View<const double**, Exec>;

template <class M, class K>
void refused(const Matrix& m, const M& metric, const K& kernel) {
  rigel::kernel_matrix_gradient(Exec(), m, m, m, metric, kernel, m, rigel::no_gradient);
}

}  // namespace

void calls(const Matrix& m, const Floats& floats, const Constants& constants, const Kokkos::View<int, Exec>& integer);
void calls(const Matrix& m, const Floats& floats, const Constants& constants, const Kokkos::View<int, Exec>& integer) {
  namespace metric = rigel::metric;
  namespace kernel = rigel::kernel;
  // expected-error@rigel/kernel_matrix_gradient.hpp:* {{expected metric::manhattan, euclidean, minkowski of a number p or inner_product}}
  // expected-error@rigel/kernel_matrix_gradient.hpp:* {{no matching function for call to 'power_of'}}
  refused(m, metric::chebyshev{}, kernel::gaussian{1});
  // expected-error@rigel/kernel_matrix.hpp:* {{this kernel is one of inner products, expected metric::inner_product}}
  refused(m, metric::euclidean{}, kernel::polynomial{2});
  // expected-error@rigel/kernel_matrix_gradient.hpp:* {{dX and dZ are written, their elements cannot be const}}
  rigel::kernel_matrix_gradient(Exec(), m, m, m, metric::euclidean{}, kernel::gaussian{1}, constants, m);
  // expected-error@rigel/kernel_matrix_gradient.hpp:* {{X, Z, G, dX and dZ hold one type, float or double}}
  rigel::kernel_matrix_gradient(Exec(), m, m, floats, metric::euclidean{}, kernel::gaussian{1}, m, m);
  // expected-error@rigel/kernel_matrix_gradient.hpp:* {{the gradients of hyperparameters are members of the same kernel}}
  rigel::kernel_matrix_gradient(Exec(), m, m, m, metric::euclidean{}, kernel::gaussian{1}, m, m, kernel::laplace{1});
  // expected-error@rigel/kernel_matrix_gradient.hpp:* {{gradients of hyperparameters are written to views of float or double}}
  rigel::kernel_matrix_gradient(Exec(), m, m, m, metric::euclidean{}, kernel::gaussian{1}, m, m, kernel::gaussian{integer});
}

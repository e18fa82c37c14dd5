// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A right side of rank 1 is refused in the words of a solve.
#include <rigel/linalg.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<float**, Kokkos::HostSpace>;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;

}  // namespace

// expected-error@rigel/linalg.hpp:* 1 {{a single right side is an n x 1 view}}
void right_side(const Matrix& a, const Vector& b) { rigel::lu_solve(Exec(), a, b, b); }

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On a GPU and on a host, products of the zoo get the tuned family: small or large, light or transcendental. A prediction that
// prefers plain loops would cost a factor of ten, and fail no other test.
#include <rigel/contract.hpp>

#include <tests/support/matrix.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace {

struct Extents {
  int m, n, k;
};

template <class S, class Exec>
rigel::KernelInfo chosen(const S& semiring, Extents e) {
  using support::matrix;
  rigel::KernelInfo info;
  rigel::detail::with_problem(Exec{}, semiring, matrix<float, Exec>(e.m, e.k), matrix<float, Exec>(e.k, e.n),
                              matrix<float, Exec>(e.m, e.n), rigel::epilogue::Program{},
                              rigel::ContractOptions{.precision = rigel::Precision::accumulator},
                              [&](const rigel::Contraction& p) { info = rigel::select(p).info; });
  return info;
}

template <class S, class Exec>
void check(const S& semiring) {
  constexpr bool on_gpu = rigel::detail::space_of<Exec> == rigel::Space::cuda;
  const std::string family = on_gpu ? "cuda.simt." : "host.";
  for (const Extents e : {Extents{1, 1, 3},
                          {7, 492, 5},
                          {14, 2, 3739},
                          {64, 64, 64},
                          {512, 512, 512},
                          {1500, 1, 600},
                          {1, 2000, 2000},
                          {2000, 1800, 7}}) {
    if (!on_gpu && e.m * e.n * e.k < 100000) continue;  // on a host, families are then about equally fast
    CAPTURE(e.m);
    CAPTURE(e.n);
    CAPTURE(e.k);
    const std::string name = chosen<S, Exec>(semiring, e).name;
    CHECK_MESSAGE(name.compare(0, family.size(), family) == 0, name);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("selection: the tuned family", Exec, RIGEL_TEST_SPACES) {
  check<rigel::l1<float>, Exec>({});
  check<rigel::min_plus<float>, Exec>({});
  check<rigel::plus_times<float>, Exec>({});
  check<rigel::lp<float>, Exec>({{}, 1.3f});
  check<rigel::log_plus<float>, Exec>({});
}

// Whoever knows the processor, as the tests under QEMU do, says which level it has.
TEST_CASE("selection: the host's level") {
  const char* const level = std::getenv("RIGEL_TEST_LEVEL");
  if (!level) return support::skip("no RIGEL_TEST_LEVEL says which level this processor has");
  const auto info = chosen<rigel::l1<float>, Kokkos::DefaultHostExecutionSpace>({}, {512, 512, 512});
  CHECK(info.family == "host");
  CHECK(info.variant == level);
}

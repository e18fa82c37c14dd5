// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On a GPU and on a host, products of the zoo get the tuned family: small or large, light or transcendental. A prediction that
// prefers plain loops would cost a factor of ten, and fail no other test.
#include <rigel/contract.hpp>

#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

struct Extents {
  int m, n, k;
};

template <class S, class Exec>
std::string chosen(const S& semiring, Extents e) {
  using support::matrix;
  std::string name;
  rigel::detail::with_problem(Exec{}, semiring, matrix<float, Exec>(e.m, e.k), matrix<float, Exec>(e.k, e.n),
                              matrix<float, Exec>(e.m, e.n), rigel::epilogue::Program{},
                              rigel::ContractOptions{.precision = rigel::Precision::accumulator},
                              [&](const rigel::Contraction& p) { name = rigel::select(p).info.name; });
  return name;
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
    const std::string name = chosen<S, Exec>(semiring, e);
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kinds of views and of memory: const, unmanaged, with memory traits, subviews, memory shared by host and device.
#include <rigel/contract.hpp>

#include <tests/support/matrix.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

using support::matrix;

namespace {

const rigel::plus_times<float> s;
const std::vector<double> product = {17, 19, 18, 12};  // of the 2 × 3 × 2 example

template <class Exec, class Space>
void check_space() {
  const Exec exec;
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> a("a", 2, 3), b("b", 3, 2), c("c", 2, 2);
  const float x[] = {1, 2, 3, 4, 0, 2}, y[] = {2, 1, 0, 3, 5, 4};
  Kokkos::fence();
  for (int i = 0; i < 6; ++i) a.data()[i] = x[i], b.data()[i] = y[i];
  rigel::contract(exec, s, a, b, c);
  exec.fence();
  CHECK(std::vector<double>(c.data(), c.data() + 4) == product);
}

}  // namespace

TEST_CASE_TEMPLATE("views: const, unmanaged, memory traits", Exec, RIGEL_TEST_SPACES) {
  using Space = typename Exec::memory_space;
  const auto a = matrix<float, Exec>(2, 3, {1, 2, 3, 4, 0, 2}), b = matrix<float, Exec>(3, 2, {2, 1, 0, 3, 5, 4}),
             c = matrix<float, Exec>(2, 2);
  using Const = Kokkos::View<const float**, Kokkos::LayoutRight, Space>;
  rigel::contract(Exec{}, s, Const(a), Const(b), c);
  CHECK(support::values(c) == product);
  using Unmanaged =
      Kokkos::View<float**, Kokkos::LayoutRight, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged | Kokkos::Restrict>>;
  using Random = Kokkos::View<const float**, Kokkos::LayoutRight, Space, Kokkos::MemoryTraits<Kokkos::RandomAccess>>;
  support::fill(c, {});
  rigel::contract(Exec{}, s, Unmanaged(a.data(), 2, 3), Random(b), Unmanaged(c.data(), 2, 2));
  CHECK(support::values(c) == product);
}

TEST_CASE_TEMPLATE("views: static extents and subviews", Exec, RIGEL_TEST_SPACES) {
  using Space = typename Exec::memory_space;
  const auto big = matrix<float, Exec>(4, 5, {0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0});
  const auto a = Kokkos::subview(big, Kokkos::pair(1, 3), Kokkos::pair(1, 4));
  const auto b = matrix<float, Exec>(3, 2, {2, 1, 0, 3, 5, 4});
  const auto three = support::batch<float, Exec>(3, 2, 2);
  rigel::contract(Exec{}, s, a, Kokkos::View<float[3][2], Kokkos::LayoutRight, Space>(b),
                  Kokkos::subview(three, 1, Kokkos::ALL, Kokkos::ALL));
  CHECK(support::values(three) == std::vector<double>{0, 0, 0, 0, 17, 19, 18, 12, 0, 0, 0, 0});
}

TEST_CASE_TEMPLATE("views: Kokkos's 16-bit types are taken where they are 16 bits wide", Exec, RIGEL_TEST_SPACES) {
  using Half = Kokkos::Experimental::half_t;
  if constexpr (sizeof(Half) == 2) {
    const auto a = matrix<rigel::half, Exec>(2, 3, {1, 2, 3, 4, 0, 2}),
               b = matrix<rigel::half, Exec>(3, 2, {2, 1, 0, 3, 5, 4});
    const auto c = matrix<rigel::half, Exec>(2, 2);
    using View = Kokkos::View<Half**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
    rigel::contract(Exec{}, rigel::plus_times<rigel::half>{}, View(reinterpret_cast<Half*>(a.data()), 2, 3),
                    View(reinterpret_cast<Half*>(b.data()), 3, 2), View(reinterpret_cast<Half*>(c.data()), 2, 2));
    CHECK(support::values(c) == product);
  } else {
    support::skip("Kokkos's half_t is float in this build");
  }
}

TEST_CASE("views: memory that host and device share") {
#ifdef KOKKOS_ENABLE_CUDA
  check_space<Kokkos::Cuda, Kokkos::SharedSpace>();
  check_space<Kokkos::Cuda, Kokkos::SharedHostPinnedSpace>();
  check_space<Kokkos::DefaultHostExecutionSpace, Kokkos::SharedSpace>();
  check_space<Kokkos::DefaultHostExecutionSpace, Kokkos::SharedHostPinnedSpace>();
#else
  check_space<Kokkos::DefaultHostExecutionSpace, Kokkos::HostSpace>();
  support::skip("memory that host and device share: this build has no device");
#endif
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functors with unusual signatures and constructors, by the kernels of every family.
#include "functors.hpp"

namespace {

// ⊗ takes k as an optional argument.
struct Places {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b, std::int64_t k = 0) {
    return a == b ? static_cast<float>(k + 1) : 0;
  }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

// Default constructors that are explicit and not constexpr.
struct Built {
  using element = float;
  using accumulator = float;
  float w;
  KOKKOS_FUNCTION explicit Built() { w = 2; }
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return w * a * b; }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

// Without a default constructor.
struct Scaled {
  using element = float;
  using accumulator = float;
  float w;
  KOKKOS_FUNCTION explicit Scaled(float weight) : w(weight) {}
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return w * a * b; }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

}  // namespace

TEST_CASE_TEMPLATE("a summation index that is optional", Exec, RIGEL_TEST_SPACES) {
  CHECK(rigel::step(Places{}, 1.f, 2.f, 2.f, 6) == 8);  // 1 + (6 + 1)
  support::check_listed<Places, float, Exec>({}, {1, 2, 3}, 35);
}
TEST_CASE_TEMPLATE("a default constructor that is explicit and no constant's", Exec, RIGEL_TEST_SPACES) {
  support::check_listed<Built, float, Exec>(Built(), {1, -2, 3}, 36);
}

TEST_CASE_TEMPLATE("semirings without a default constructor, one for each batch", Exec, RIGEL_TEST_SPACES) {
  using Space = typename Exec::memory_space;
  const auto semirings = support::on_device<Scaled, Exec>({Scaled(1), Scaled(10), Scaled(-3)});
  const auto a = support::on_device<float, Exec>({1, 2, 3}), b = support::on_device<float, Exec>({4, 5, 6});
  const Kokkos::View<const float**, Kokkos::LayoutRight, Space, Kokkos::MemoryUnmanaged> x(a.data(), 1, 3),
      y(b.data(), 3, 1);
  const auto c = support::on_device<float, Exec>({0, 0, 0});
  const Kokkos::View<float***, Kokkos::LayoutRight, Space, Kokkos::MemoryUnmanaged> z(c.data(), 3, 1, 1);
  std::vector<support::Named> kernels;
  rigel::detail::with_problem(Exec{}, semirings, x, y, z, rigel::epilogue::Program{}, {},
                              [&](const rigel::Contraction& p) { kernels = support::kernels_of(p); });
  for (const auto& [name, precision] : kernels) {
    if ((name == "host" && !support::on_host<Exec>) || (name == "cuda.simt" && support::on_host<Exec>)) continue;
    CAPTURE(name);
    rigel::contract(Exec{}, semirings, x, y, z, rigel::epilogue::Program{}, {.precision = precision, .kernel = name});
    std::vector<float> actual(3);
    support::copy_out<Exec>(actual.data(), c.data(), 3 * sizeof(float));
    CHECK(actual == std::vector<float>{32, 320, -96});  // 1·4 + 2·5 + 3·6, times the weight
  }
}

// The host does not read the objects, since it may not be able to.
TEST_CASE("objects for each batch are not read on the host") {
  rigel::Contraction p;
  p.semiring_object = reinterpret_cast<const void*>(std::uintptr_t{64});  // no memory of the process
  p.semiring_in_view = true;
  CHECK(rigel::detail::semiring_of<Scaled>(p).w == 0);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registry, used by several host threads at once, and from inside a kernel's functions.
#include "host_kernel.hpp"

#include <tests/support/matrix.hpp>
#include <tests/support/skip.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#ifdef KOKKOS_ENABLE_SERIAL

using support::matrix;

namespace {

using Exec = Kokkos::Serial;
const rigel::plus_times<float> s;

// Σ scale·a·b: one type per thread, whose kernels are instantiated at its first use.
template <int scale>
struct Scaled {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return scale * a * b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

template <int thread>
void work(std::atomic<int>& wrong) {
  const Exec exec{Kokkos::NewInstance{}};
  for (int round = 0; round < 20; ++round) {
    rigel::Kernel<rigel::Contraction> k = edge::host_kernel("thread" + std::to_string(thread) + '.' + std::to_string(round));
    k.info.spaces = rigel::bit(rigel::Space::serial);
    rigel::register_kernel(k);
    wrong += rigel::kernels({.name = k.info.name}).size() != 1;
    const auto a = matrix<float, Exec>(1, 2, {1, 2}), b = matrix<float, Exec>(2, 1, {3, 4}), c = matrix<float, Exec>(1, 1);
    rigel::contract(exec, s, a, b, c);
    wrong += support::values(c)[0] != 11;
    rigel::contract(exec, Scaled<thread>{}, a, b, c);
    wrong += support::values(c)[0] != thread * 11;
    wrong += rigel::explain(exec, s, a, b, c).find(k.info.name) == std::string::npos;
  }
}

}  // namespace

TEST_CASE("registry: several threads register, list, choose and instantiate at once") {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  [&]<int... thread>(std::integer_sequence<int, thread...>) {
    (threads.emplace_back([&] { work<thread + 1>(wrong); }), ...);
  }(std::make_integer_sequence<int, 6>{});
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("registry: a kernel's answers may call Rigel, registration included") {
  static int asked = 0;
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel("curious");
  k.info.spaces = rigel::bit(rigel::Space::serial);
  k.supports = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p) -> rigel::Status {
    if (p.c.label != "curious") return {rigel::Decline::other, "C has another label"};
    rigel::register_kernel(edge::host_kernel("found while asked " + std::to_string(asked++)));
    const auto a = matrix<float, Exec>(1, 1, {2}), c = matrix<float, Exec>(1, 1);
    rigel::contract(Exec{}, Scaled<7>{}, a, a, c);
    return support::values(c)[0] == 28 ? rigel::Status{} : rigel::Status{rigel::Decline::other, "wrong"};
  };
  k.run = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, const rigel::Plan&,
             const rigel::Workspace&) { *static_cast<float*>(p.c.data) = 100; };
  rigel::register_kernel(k);
  const auto a = matrix<float, Exec>(1, 1, {2}), c = matrix<float, Exec>(1, 1, {}, "curious");
  rigel::contract(Exec{}, s, a, a, c);
  CHECK(asked == 1);
  CHECK(support::values(c)[0] == 100);
}

#else
TEST_CASE("registry: several threads") {
  support::skip("Kokkos without Serial: host threads have no instances of their own");
}
#endif

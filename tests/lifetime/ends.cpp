// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ways in which a program can end, selected by name. Each comes after a call that leased a workspace from the pool; some make
// further calls while the program ends.
#include "call.hpp"

#include <tests/support/error.hpp>
#include <tests/support/gpu.hpp>

#include <rigel/closure.hpp>
#include <rigel/detail/pool.hpp>
#include <rigel/distance.hpp>
#include <rigel/linalg.hpp>
#include <rigel/linear.hpp>

#include <cstdlib>
#include <optional>
#include <string_view>

namespace {

struct AddOne {
  KOKKOS_FUNCTION float operator()(float v, std::int64_t, std::int64_t, std::int64_t) const { return v + 1; }
};

// The kernels for a functor are instantiated in this file.
bool functor_is_right() {
  const Kokkos::View<float**, Kokkos::HostSpace> a("a", 2, 3), b("b", 3, 1), c("c", 2, 1);
  Kokkos::deep_copy(a, 2);
  Kokkos::deep_copy(b, 3);
  rigel::contract(Kokkos::DefaultHostExecutionSpace(), rigel::plus_times<float>{}, a, b, c, AddOne{});
  return c(0, 0) == 19 && c(1, 0) == 19;
}

bool all_are_right() {
  return lifetime::is_right(Kokkos::DefaultHostExecutionSpace()) && lifetime::is_right(Kokkos::DefaultExecutionSpace()) &&
         functor_is_right();
}

// Whether calls on memory of the program's own are refused, in these words, and write nothing.
bool all_are_refused(const char* words) {
  using View = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  float ones[4] = {1, 1, 1, 1}, result[4] = {7, 7, 7, 7};
  const View a(ones, 2, 2), c(result, 2, 2);
  const auto refused = [&](const auto& call) {
    const support::Caught caught = support::caught(call);
    const bool right = caught.code == rigel::Code::unsupported && caught.lacks({words}).empty() && result[0] == 7;
    if (!right) std::printf("%s\n", caught.message.c_str());
    return right;
  };
  const Kokkos::DefaultHostExecutionSpace exec;
  return refused([&] { rigel::contract(exec, rigel::plus_times<float>{}, a, a, c); }) &&
         refused([&] { rigel::contract(exec, rigel::plus_times<float>{}, a, a, c, AddOne{}); }) &&
         refused([&] { rigel::cdist(exec, a, a, c, rigel::metric::cosine{}); }) &&
         refused([&] { rigel::closure(exec, rigel::min_plus<float>{}, c); }) &&
         refused([&] { rigel::cholesky_solve(exec, a, a, c); }) &&
         refused([&] { rigel::linear_forward(exec, a, a, rigel::no_bias, c); });
}

// While the program ends, main() has already returned its status, so a failure must exit at once.
void expect(bool right) {
  if (!right) std::_Exit(1);
}

struct CallsWhenDestroyed {
  ~CallsWhenDestroyed() { expect(all_are_right()); }
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view end = argc > 1 ? argv[1] : "";
  if (!support::has_gpu()) {
    std::printf("skipped: built for CUDA, no GPU is visible, and Kokkos needs one to start\n");
    return 77;
  }
  if (end == "outside") {
    const bool before = all_are_refused("Kokkos is not initialised, expected a call between Kokkos::initialize() and");
    Kokkos::initialize();
    Kokkos::finalize();
    return !(before && all_are_refused("Kokkos is finalised, expected a call between Kokkos::initialize() and"));
  }
  if (end == "static_guard") {
    static const Kokkos::ScopeGuard kokkos;
    return !all_are_right();
  }
  Kokkos::initialize();
  if (end == "atexit") {
    std::atexit(Kokkos::finalize);
    return !all_are_right();
  }
  if (end == "later_calls") {
    // Handlers and destructors run in the reverse of this order. What the first call creates is destroyed before both run.
    std::atexit(Kokkos::finalize);
    static const CallsWhenDestroyed calls;
    std::atexit([] { expect(all_are_right()); });
    return !all_are_right();
  }
  if (end == "finalize_hook") {
    static int runs = 0;
    Kokkos::push_finalize_hook([] {
      ++runs;
      expect(all_are_right());
    });
    Kokkos::finalize();
    std::printf("the hook ran %d times\n", runs);
    return runs != 1;
  }
  if (end == "late_lease") {
    using rigel::detail::lease, rigel::detail::execution_of;
    std::optional on_host = lease("test", execution_of(Kokkos::DefaultHostExecutionSpace()), 1000);
    std::optional on_default = lease("test", execution_of(Kokkos::DefaultExecutionSpace()), 1000);
    Kokkos::finalize();
    on_host.reset();
    on_default.reset();
    return 0;
  }
  std::printf("no such end: '%s'\n", argc > 1 ? argv[1] : "");
  Kokkos::finalize();
  return 1;
}

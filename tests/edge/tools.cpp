// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Kokkos Tools see of a call: one region that names the kernel, and kernels with labels "rigel::contract/…".
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/recorder.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>

using support::matrix;

namespace {

struct Mine {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a * b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

void check(const support::Recorder::Events& events, const std::string& kernel) {
  CHECK(std::count(events.regions.begin(), events.regions.end(), "rigel::contract[" + kernel + "]") == 1);
  CHECK(events.regions.size() == 1);
  CHECK(events.kernels.size() >= 1);
  for (const auto& label : events.kernels) {
    CAPTURE(label);
    CHECK(label.starts_with("rigel::contract/"));
    CHECK(label.find(kernel) != std::string::npos);
  }
  CHECK(events.open_kernels == 0);
  CHECK(events.open_regions == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("tools: every family's calls are labelled with the kernel's name", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = matrix<float, Exec>(33, 40), b = matrix<float, Exec>(40, 35), c = matrix<float, Exec>(33, 35);
  for (const char* semiring : {"plus_times", "min_plus"}) {
    for (const auto& info : support::kernels_on(exec, semiring, rigel::Scalar::f32)) {
      if (info.family == "user") continue;
      CAPTURE(info.name);
      const rigel::ContractOptions options{.precision = info.precision, .kernel = info.name};
      const support::Recorder recorder;
      const bool ran = support::ran(info, [&] {
        const rigel::epilogue::Program none;
        if (info.semiring == "plus_times")
          rigel::contract(exec, rigel::plus_times<float>{}, a, b, c, none, options);
        else
          rigel::contract(exec, rigel::min_plus<float>{}, a, b, c, none, options);
      });
      if (!ran) continue;
      exec.fence();
      check(recorder.events(), info.name);
    }
  }
}

TEST_CASE_TEMPLATE("tools: a user's functor too", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = matrix<float, Exec>(33, 40), b = matrix<float, Exec>(40, 35), c = matrix<float, Exec>(33, 35);
  const support::Recorder recorder;
  rigel::contract(exec, Mine{}, a, b, c);
  exec.fence();
  const auto events = recorder.events();
  REQUIRE(events.regions.size() == 1);
  const std::string region = events.regions[0];
  CHECK(region.find("Mine") != std::string::npos);
  check(events, region.substr(16, region.size() - 17));
}

TEST_CASE_TEMPLATE("tools: a call that does nothing shows nothing", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(0, 4), b = matrix<float, Exec>(4, 5), c = matrix<float, Exec>(0, 5);
  const support::Recorder recorder;
  rigel::contract(Exec{}, rigel::plus_times<float>{}, a, b, c);
  CHECK(recorder.events().kernels.empty());
}

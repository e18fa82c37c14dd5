// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workspace: workspace_size() announces it, and it comes from the caller or the pool. contract() allocates nothing else.
#include "host_kernel.hpp"

#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/recorder.hpp>
#include <tests/support/spaces.hpp>

#include <set>

using support::matrix;

namespace {

constexpr std::size_t wanted = 10000;
void* given = nullptr;  // the workspace of the last run

void register_hungry() {
  static const bool once = [] {
    rigel::Kernel<rigel::Contraction> k = edge::host_kernel("hungry");
    k.workspace = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction&,
                     const rigel::Plan&) -> rigel::WorkspaceSize { return {.bytes = wanted}; };
    k.run = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, const rigel::Plan&,
               const rigel::Workspace& workspace) {
      given = workspace.data;
      std::memset(workspace.data, 1, wanted);
      *static_cast<float*>(p.c.data) = 1;
    };
    rigel::register_kernel(k);
    return true;
  }();
  (void)once;
}

using Exec = Kokkos::DefaultHostExecutionSpace;
const rigel::plus_times<float> s;
const rigel::epilogue::Program none;

}  // namespace

TEST_CASE("workspace: announced, too small, large enough") {
  register_hungry();
  const auto a = matrix<float, Exec>(1, 1), b = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(1, 1, {7}, "user.hungry");
  CHECK(rigel::workspace_size(Exec{}, s, a, b, c) == wanted);
  alignas(256) static char memory[wanted];
  const auto e = support::caught([&] { rigel::contract(Exec{}, s, a, b, c, none, {.workspace = {memory, wanted - 1}}); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"contract: the workspace has 9999 bytes", "user.hungry", "needs 10000"}) == "");
  CHECK(support::values(c) == std::vector<double>{7});
  alignas(256) static char larger[wanted + 16];
  const auto f = support::caught([&] { rigel::contract(Exec{}, s, a, b, c, none, {.workspace = {larger + 16, wanted}}); });
  CHECK(f.code == rigel::Code::invalid_argument);
  CHECK(f.lacks({"contract: the workspace is not aligned to 256 bytes", "user.hungry"}) == "");
  CHECK(support::values(c) == std::vector<double>{7});
  alignas(256) static float shared[wanted / sizeof(float)] = {1, 1, 7};
  using One = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  const One of_workspace(shared + 2, 1, 1);
  const auto refuse = [&](const auto& x, const auto& y, const auto& z) {
    return support::caught([&] { rigel::contract(Exec{}, s, x, y, z, none, {.workspace = {shared, wanted}}); });
  };
  CHECK(refuse(a, b, of_workspace).lacks({"contract: the workspace 1x10000 overlaps C 1x1"}) == "");
  CHECK(refuse(of_workspace, b, c).lacks({"contract: the workspace 1x10000 overlaps A 1x1"}) == "");
  CHECK(refuse(a, of_workspace, c).lacks({"contract: the workspace 1x10000 overlaps B 1x1"}) == "");
  CHECK(shared[2] == 7);
  const support::Recorder recorder;
  rigel::contract(Exec{}, s, a, b, c, none, {.workspace = {memory, wanted}});
  CHECK(given == memory);
  CHECK(support::values(c) == std::vector<double>{1});
  for (const auto& label : recorder.events().allocations) CHECK(label.empty());
}

TEST_CASE("workspace: from a pool that grows once, aligned, labelled") {
  register_hungry();
  const auto a = matrix<float, Exec>(1, 1), b = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(1, 1, {}, "user.hungry");
  const Exec exec;
  rigel::contract(exec, s, a, b, c);
  CHECK(given != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(given) % 256 == 0);
  const void* first = given;
  support::Recorder recorder;
  for (int i = 0; i < 10; ++i) rigel::contract(exec, s, a, b, c);
  CHECK(given == first);
  CHECK(recorder.events().allocations.empty());
}

TEST_CASE("workspace: an empty call needs none") {
  register_hungry();
  const auto a = matrix<float, Exec>(0, 1), b = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(0, 1, {}, "user.hungry");
  CHECK(rigel::workspace_size(Exec{}, s, a, b, c) == 0);
}

TEST_CASE_TEMPLATE("contract() allocates nothing but the announced workspace", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto a = matrix<float, Exec>(33, 40), b = matrix<float, Exec>(40, 35), c = matrix<float, Exec>(33, 35);
  for (const auto& info : support::kernels_on(exec, "plus_times", rigel::Scalar::f32)) {
    if (info.family == "user") continue;
    CAPTURE(info.name);
    const rigel::ContractOptions options{.precision = info.precision, .kernel = info.name};
    std::size_t bytes = 0;
    if (!support::ran(info, [&] { bytes = rigel::workspace_size(exec, s, a, b, c, none, options); })) continue;
    rigel::contract(exec, s, a, b, c, none, options);  // the pool may grow here
    exec.fence();
    support::Recorder recorder;
    rigel::contract(exec, s, a, b, c, none, options);
    // On the host the pool already has the memory; on CUDA the tools see each lease.
    const std::size_t leases = !support::on_host<Exec> && bytes > 0;
    CHECK(recorder.events().allocations == std::vector<std::string>(leases, "rigel::workspace"));
    CHECK(recorder.events().deallocations == std::vector<std::string>(leases, "rigel::workspace"));
    // The caller's workspace.
    const Kokkos::View<char*, typename Exec::memory_space> own("own", bytes + 256);
    const auto aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(own.data()) + 255) / 256 * 256);
    recorder.clear();
    rigel::contract(exec, s, a, b, c, none,
                    {.precision = info.precision, .kernel = info.name, .workspace = {aligned, bytes}});
    exec.fence();
    CHECK(recorder.events().allocations.empty());
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running a problem: validate, select, workspace, launch, and what Kokkos Tools see of it.
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/pool.hpp>
#include <rigel/registry.hpp>

#include <Kokkos_Core.hpp>

namespace rigel {
namespace {

// A profiling region that carries the kernel's name; around a raw launch also the kernel itself.
class Report {
 public:
  Report(const KernelInfo& info, const Problem& p) : on_(Kokkos::Tools::profileLibraryLoaded()), raw_(info.raw_launch) {
    if (!on_) return;
    Kokkos::Profiling::pushRegion("rigel::contract[" + info.name + "]");
    if (raw_) Kokkos::Tools::beginParallelFor(detail::label_of(info), device_id(p), &id_);
  }
  ~Report() {
    if (!on_) return;
    if (raw_) Kokkos::Tools::endParallelFor(id_);
    Kokkos::Profiling::popRegion();
  }
  Report(const Report&) = delete;

 private:
  static std::uint32_t device_id([[maybe_unused]] const Problem& p) {
#ifdef KOKKOS_ENABLE_CUDA
    if (p.execution.space == Space::cuda)
      return Kokkos::Tools::Experimental::device_id(*static_cast<const Kokkos::Cuda*>(p.execution.instance));
#endif
    return Kokkos::Tools::Experimental::device_id_root<Kokkos::DefaultHostExecutionSpace>();
  }
  bool on_, raw_;
  std::uint64_t id_ = 0;
};

bool is_empty(const Problem& p) { return p.batch == 0 || p.m == 0 || p.n == 0; }

std::size_t workspace_of(const Kernel& kernel, const Problem& p) {
  return kernel.workspace ? kernel.workspace(kernel.info, p) : 0;
}

#ifdef KOKKOS_ENABLE_THREADS
// Where this host thread is, if Kokkos::Threads does not launch from there: a launch would throw a std::runtime_error, or one of
// teams wait forever, perhaps after earlier ones have written. Null: it does. Only Kokkos's implementation can tell.
const char* place_without_launches() {
  using Pool = Kokkos::Impl::ThreadsInternal;
  // Asked earlier, Kokkos takes the asking thread for the one that initialises it.
  if (!Kokkos::is_initialized()) return nullptr;
  if (!Pool::is_process()) return "in another host thread";
  // That thread is the last of the pool, and active while it works on a launch.
  const int last = Kokkos::Threads::impl_thread_pool_size() - 1;
  return Pool::get_thread(last)->state() == Kokkos::Impl::ThreadState::Active ? "inside a parallel region" : nullptr;
}
#endif

}  // namespace

void detail::require_launch([[maybe_unused]] const char* call, [[maybe_unused]] const Execution& execution) {
#ifdef KOKKOS_ENABLE_THREADS
  if (execution.space != Space::threads) return;
  if (const char* place = place_without_launches())
    throw Error(Code::unsupported,
                std::string(call) + ": called " + place +
                    ", expected calls of Kokkos::Threads in the host thread that initialised Kokkos, outside "
                    "of parallel regions");
#endif
}

std::size_t workspace_size(const Problem& p) {
  validate(p);
  return is_empty(p) ? 0 : workspace_of(select(p), p);
}

void run(const Problem& p, Workspace workspace) {
  validate(p);
  if (is_empty(p)) return;
  detail::require_launch(p.names.call, p.execution);
  const Kernel& kernel = select(p);
  const std::size_t bytes = workspace_of(kernel, p);
  detail::PoolLease lease;
  if (workspace.data == nullptr) {
    lease = detail::lease(p.names.call, p.execution, bytes);
    workspace = {lease.data(), bytes};
  } else if (bytes > 0 && reinterpret_cast<std::uintptr_t>(workspace.data) % 256 != 0) {
    throw Error(Code::invalid_argument, std::string(p.names.call) +
                                            ": the workspace is not aligned to 256 bytes, as kernel '" + kernel.info.name +
                                            "' needs it");
  } else if (workspace.bytes < bytes) {
    throw Error(Code::invalid_argument, std::string(p.names.call) + ": the workspace has " +
                                            std::to_string(workspace.bytes) + " bytes, kernel '" + kernel.info.name +
                                            "' needs " + std::to_string(bytes));
  }
  const Report report(kernel.info, p);
  kernel.run(kernel.info, p, workspace.data);
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// require_launch(): whether an execution space can launch here and now.
#include <rigel/detail/execution.hpp>

#include <Kokkos_Core.hpp>

namespace rigel {
namespace {

#ifdef KOKKOS_ENABLE_THREADS
// The place that this host thread is in, if Kokkos::Threads cannot launch from there, else null. Such a launch would throw a
// std::runtime_error, or with teams wait forever, perhaps after earlier launches have written. Only Kokkos's implementation
// knows.
const char* place_without_launches() {
  using Pool = Kokkos::Impl::ThreadsInternal;
  if (!Pool::is_process()) return "in another host thread";
  // The thread that initialised Kokkos is the last of the pool. It is active while it works on a launch.
  const int last = Kokkos::Threads::impl_thread_pool_size() - 1;
  return Pool::get_thread(last)->state() == Kokkos::Impl::ThreadState::Active ? "inside a parallel region" : nullptr;
}
#endif

}  // namespace

void detail::require_launch(const char* call, [[maybe_unused]] const Execution& execution) {
  if (!Kokkos::is_initialized())
    throw Error(Code::unsupported, std::string(call) + ": Kokkos is " +
                                       (Kokkos::is_finalized() ? "finalised" : "not initialised") +
                                       ", expected a call between Kokkos::initialize() and Kokkos::finalize()");
#ifdef KOKKOS_ENABLE_THREADS
  if (execution.space != Space::threads) return;
  if (const char* place = place_without_launches())
    throw Error(Code::unsupported,
                std::string(call) + ": called " + place +
                    ", expected calls of Kokkos::Threads in the host thread that initialised Kokkos, outside "
                    "of parallel regions");
#endif
}

}  // namespace rigel

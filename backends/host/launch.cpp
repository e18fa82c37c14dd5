// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch: one work item per worker; the workers take tiles from a shared counter.
#include <rigel/backends/host/launch.hpp>
#include <rigel/detail/execution.hpp>

namespace rigel::backends::host {

void launch(const Execution& execution, const std::string& label, const Loop& loop, const void* arguments, const Grid& grid,
            void* workspace) {
  *static_cast<std::int64_t*>(workspace) = 0;
  detail::with_instance(detail::compiled_host_spaces{}, execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
    // A host launch is complete when Kokkos returns from it, so the pointers stay valid.
    Kokkos::parallel_for(label, Policy(exec, 0, grid.workers, Kokkos::ChunkSize(1)),
                         [=, work = loop.work, cut = &grid](const int worker) { work(arguments, *cut, worker, workspace); });
  });
}

}  // namespace rigel::backends::host

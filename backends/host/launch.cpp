// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch: one work item per worker; the workers take tiles from a shared counter.
#include <rigel/backends/host/launch.hpp>
#include <rigel/detail/execution.hpp>

#include <cstring>

namespace rigel::backends::host {

void launch(const Execution& execution, const std::string& label, Work work, const void* arguments, const Grid& grid,
            void* workspace) {
  // The counters of tiles and of finished slices.
  std::memset(workspace, 0, grid.partial ? grid.partial : sizeof(std::int64_t));
  detail::with_instance(detail::compiled_host_spaces{}, execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
    // A host launch is complete when Kokkos returns from it, so the pointers stay valid.
    Kokkos::parallel_for(label, Policy(exec, 0, grid.workers, Kokkos::ChunkSize(1)),
                         [=, cut = &grid](const int worker) { work(arguments, *cut, worker, workspace); });
  });
}

}  // namespace rigel::backends::host

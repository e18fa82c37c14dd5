// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// presize(): workspace for calls that are captured in a CUDA graph, or that must not allocate.
#pragma once

#include <rigel/detail/execution.hpp>
#include <rigel/detail/pool.hpp>

namespace rigel {

/// Reserves at least `bytes` bytes of workspace for the calls on `exec` that bring none. `bytes` is the largest of the
/// workspace_size(…), cdist_workspace_size(…), … of these calls.
///
/// On CUDA the memory belongs to the stream of `exec`, and serves its calls while the stream is being captured in a graph:
///
///     rigel::contract(exec, s, a, b, c);                                // once as usual: loads the kernel
///     rigel::presize(exec, rigel::workspace_size(exec, s, a, b, c));
///     cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
///     rigel::contract(exec, s, a, b, c);                                // its kernels hold addresses in the reserved memory
///     cudaStreamEndCapture(stream, &graph);
///
/// - It lives until release_presized(), or the end of the program. Graphs that use it may be replayed until then.
/// - All captured calls on the stream share it, in stream order. So graphs that were captured on one stream must not run at the
///   same time: launch them on one stream, or order them by events. A stream of its own gives a graph memory of its own.
/// - A stream is known by its handle while it is being captured, and a handle may come back: a new stream has to make a call that
///   is not captured, or of presize(), before its first capture, or release_presized() has to come before the old one is destroyed.
/// - cudaStreamPerThread is a stream of each host thread: reserve, capture and release on one thread.
/// - Calls that are not captured do not use it. They may run next to a replay.
/// - If `bytes` is more than before, new memory is reserved, and graphs that hold the old one keep it. While the stream is being
///   captured this is refused. If it is not more, nothing happens.
///
/// On a host, calls are complete when they return and are never captured. There the pool gets a buffer of that size, so that the
/// next call that needs no more allocates nothing; release_workspaces() gives it back.
///
/// Throws Error(invalid_argument) if the stream is being captured and needs more memory, and on an execution space that Rigel
/// does not know; Error(out_of_memory); Error(device) if the CUDA runtime fails.
template <class Exec>
void presize(const Exec& exec, std::size_t bytes) {
  detail::presize(detail::execution_of(exec), bytes);
}

/// Releases what presize() reserved for the stream of `exec`. Graphs that were captured with it must be complete, and must not be
/// launched again. Waits for the device. Does nothing on a host. Throws Error(invalid_argument) if the stream is being captured.
template <class Exec>
void release_presized(const Exec& exec) {
  detail::release_presized(detail::execution_of(exec));
}

}  // namespace rigel

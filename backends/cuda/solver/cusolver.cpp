// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.cusolver: the solves by NVIDIA's library, on packed systems in the workspace. Two kernels for each factorisation and type:
// one system after the other by the 64-bit entries, on up to four streams that events join to the caller's, and a whole batch by one
// call of a batched routine. A call allocates nothing: handles are made when a stream's workspace is first asked for. A call that
// needs host memory waits for the device.
#include <rigel/backends/cuda/costs/solver.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/solver/library.hpp>
#include <rigel/backends/cuda/solver/passes.hpp>
#include <rigel/backends/cuda/solver/register.hpp>
#include <rigel/detail/capture.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <limits>

namespace rigel::backends::solver {
namespace {

using detail::SolveArguments;

#define RIGEL_CALL(name, ...) check_library(p, library().name(__VA_ARGS__), #name)

template <class T>
constexpr cudaDataType type_of = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
constexpr cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
constexpr cusolverEigMode_t with_vectors = CUSOLVER_EIG_MODE_VECTOR;

int streams_of(const Solve& p, bool batched) {
  return batched ? 1 : static_cast<int>(std::min<std::int64_t>(p.batch, Streams::count));
}

cudaStream_t stream_of(const Solve& p) { return static_cast<cudaStream_t>(p.execution.stream); }

/// Device and host memory that a routine asks for.
struct Buffer {
  std::size_t device = 0, host = 0;
};
template <class T>
Buffer buffer_of(const Solve& p, bool batched) {
  Streams& streams = Streams::of(p);
  const auto lock = streams.lock();
  const Handles& h = streams[0];
  Buffer b;
  if (p.task == Solve::Task::substitute) return b;
  constexpr cudaDataType type = type_of<T>;
  switch (p.factorisation) {
    case Factorisation::cholesky:
      if (!batched)
        RIGEL_CALL(cusolverDnXpotrf_bufferSize, h.solver, h.parameters, lower, p.n, type, nullptr, p.n, type, &b.device,
                   &b.host);
      break;
    case Factorisation::lu:
      if (!batched)
        RIGEL_CALL(cusolverDnXgetrf_bufferSize, h.solver, h.parameters, p.n, p.n, type, nullptr, p.n, type, &b.device,
                   &b.host);
      break;
    case Factorisation::eigen:
      if (batched)
        RIGEL_CALL(cusolverDnXsyevBatched_bufferSize, h.solver, h.parameters, with_vectors, lower, p.n, type, nullptr, p.n,
                   type, nullptr, type, &b.device, &b.host, p.batch);
      else
        RIGEL_CALL(cusolverDnXsyevd_bufferSize, h.solver, h.parameters, with_vectors, lower, p.n, type, nullptr, p.n, type,
                   nullptr, type, &b.device, &b.host);
  }
  return b;
}

/// The workspace: what Packed has, pivots, an info that substitution reports, and a buffer for each stream.
template <class T>
struct Arrays {
  Packed<T> packed;
  std::int64_t* pivots;  // 32-bit ones for batched routines
  std::int32_t* unread;
  std::byte *device, *host;
  Buffer buffer;
  WorkspaceSize size;

  Arrays(const Solve& p, bool batched, const Workspace& workspace) : buffer(buffer_of<T>(p, batched)) {
    const std::int64_t n = p.n, l = p.batch;
    buffer.device = detail::aligned(buffer.device);
    buffer.host = detail::aligned(buffer.host);
    const auto streams = static_cast<std::size_t>(streams_of(p, batched));
    detail::WorkspaceLayout layout;
    const auto take = [&, base = reinterpret_cast<std::uintptr_t>(workspace.data)]<class U>(U*& array, std::int64_t count) {
      array = reinterpret_cast<U*>(base + layout.add(count, sizeof(U)));
    };
    const auto take_matrices = [&](detail::Strided<T>& matrices, std::int64_t columns) {
      take(matrices.data, l * n * columns);
      matrices.batch = n * columns;
      matrices.row = 1;
      matrices.column = n;
    };
    take_matrices(packed.factors, n);
    take_matrices(packed.sides, p.right_sides);
    take(packed.values, l * n);
    take(packed.infos, l);
    take(packed.of_factors, l);
    take(packed.of_sides, l);
    packed.by_reciprocals = true;
    take(pivots, p.factorisation == Factorisation::lu ? l * n : 0);
    take(unread, l);
    take(device, static_cast<std::int64_t>(streams * buffer.device));
    host = static_cast<std::byte*>(workspace.host_data);
    size = {.bytes = layout.bytes(), .host_bytes = streams * buffer.host};
  }
};

/// One system by the 64-bit entries.
template <class T>
void solve_one(const Solve& p, const Arrays<T>& w, std::int64_t l, const Handles& h, int stream) {
  constexpr cudaDataType type = type_of<T>;
  T* const f = &w.packed.factors.at(l, 0, 0);
  T* const y = &w.packed.sides.at(l, 0, 0);
  std::int64_t* const pivots = w.pivots + l * p.n;
  std::int32_t* const info = w.packed.infos + l;
  void *const device = w.device + static_cast<std::size_t>(stream) * w.buffer.device,
              *const host = w.host ? w.host + static_cast<std::size_t>(stream) * w.buffer.host : nullptr;
  const bool factors = p.task != Solve::Task::substitute, substitutes = p.task != Solve::Task::factor && p.right_sides > 0;
  switch (p.factorisation) {
    case Factorisation::cholesky:
      if (factors)
        RIGEL_CALL(cusolverDnXpotrf, h.solver, h.parameters, lower, p.n, type, f, p.n, type, device, w.buffer.device, host,
                   w.buffer.host, info);
      if (substitutes)
        RIGEL_CALL(cusolverDnXpotrs, h.solver, h.parameters, lower, p.n, p.right_sides, type, f, p.n, type, y, p.n,
                   w.unread + l);
      break;
    case Factorisation::lu:
      RIGEL_CALL(cusolverDnXgetrf, h.solver, h.parameters, p.n, p.n, type, f, p.n, pivots, type, device, w.buffer.device,
                 host, w.buffer.host, info);
      if (substitutes)
        RIGEL_CALL(cusolverDnXgetrs, h.solver, h.parameters, CUBLAS_OP_N, p.n, p.right_sides, type, f, p.n, pivots, type, y,
                   p.n, w.unread + l);
      break;
    case Factorisation::eigen:
      RIGEL_CALL(cusolverDnXsyevd, h.solver, h.parameters, with_vectors, lower, p.n, type, f, p.n, type,
                 w.packed.values + l * p.n, type, device, w.buffer.device, host, w.buffer.host, info);
  }
}

/// All systems by batched routines, whose extents are ints.
template <class T>
void solve_batch(const Solve& p, const Arrays<T>& w, const Handles& h) {
  constexpr bool single = sizeof(T) == 4;
  const Library& lib = library();
  const auto n = static_cast<int>(p.n), m = static_cast<int>(p.right_sides), l = static_cast<int>(p.batch);
  T *const *const f = w.packed.of_factors, *const *const y = w.packed.of_sides;
  const auto pick = [](auto of_float, auto of_double) {
    if constexpr (single)
      return of_float;
    else
      return of_double;
  };
  const bool substitutes = p.task != Solve::Task::factor && m > 0;
  switch (p.factorisation) {
    case Factorisation::cholesky:
      if (p.task != Solve::Task::substitute)
        check_library(p,
                      pick(lib.cusolverDnSpotrfBatched, lib.cusolverDnDpotrfBatched)(h.solver, lower, n, w.packed.of_factors,
                                                                                     n, w.packed.infos, l),
                      "cusolverDnpotrfBatched");
      for (const cublasOperation_t operation : {CUBLAS_OP_N, CUBLAS_OP_T}) {
        const T one = 1;
        if (substitutes)
          check_library(p,
                        pick(lib.cublasStrsmBatched, lib.cublasDtrsmBatched)(
                            h.blas, CUBLAS_SIDE_LEFT, lower, operation, CUBLAS_DIAG_NON_UNIT, n, m, &one, f, n, y, n, l),
                        "cublastrsmBatched");
      }
      break;
    case Factorisation::lu: {
      int* const pivots = reinterpret_cast<int*>(w.pivots);
      int status = 0;  // of the arguments, in host memory
      check_library(p, pick(lib.cublasSgetrfBatched, lib.cublasDgetrfBatched)(h.blas, n, f, n, pivots, w.packed.infos, l),
                    "cublasgetrfBatched");
      if (substitutes)
        check_library(p,
                      pick(lib.cublasSgetrsBatched, lib.cublasDgetrsBatched)(h.blas, CUBLAS_OP_N, n, m, f, n, pivots, y, n,
                                                                             &status, l),
                      "cublasgetrsBatched");
      break;
    }
    case Factorisation::eigen:
      RIGEL_CALL(cusolverDnXsyevBatched, h.solver, h.parameters, with_vectors, lower, p.n, type_of<T>, w.packed.factors.data,
                 p.n, type_of<T>, w.packed.values, type_of<T>, w.device, w.buffer.device, w.host, w.buffer.host,
                 w.packed.infos, p.batch);
  }
}

template <class T, bool batched>
void run(const Kernel<Solve>& kernel, const Solve& p, const Plan&, const Workspace& workspace) {
  const cuda::CurrentDevice device(p.execution.device);
  const SolveArguments<T> g = detail::solve_arguments<T>(p);
  const Arrays<T> arrays(p, batched, workspace);
  Streams& streams = Streams::of(p);
  const auto lock = streams.lock();
  // The library may use host memory until the stream got there, but the memory is the call's only until that returns.
  const bool needs_host = arrays.buffer.host > 0;
  if (needs_host && detail::is_captured(p.execution, p.function))
    throw Error(Code::unsupported, std::string(p.function) + ": kernel '" + kernel.info.name + "' needs " +
                                       std::to_string(arrays.size.host_bytes) + " bytes of host memory for " + p.summary() +
                                       ", so it cannot be captured in a CUDA graph; expected another one in options.kernel");
  if (batched && p.factorisation == Factorisation::eigen && p.n > 256 && detail::is_captured(p.execution, p.function))
    throw Error(Code::unsupported, std::string(p.function) + ": kernel '" + kernel.info.name +
                                       "' waits for the device for " + p.summary() +
                                       ", so it cannot be captured in a CUDA graph; expected another one in options.kernel");
  pack(g, arrays.packed, stream_of(p));
  const int used = streams_of(p, batched);
  Fork fork(p, streams, used, needs_host);
  if constexpr (batched) {
    solve_batch(p, arrays, streams[0]);
  } else {
    for (std::int64_t l = 0; l < p.batch; ++l) {
      const int stream = static_cast<int>(l % used);
      solve_one(p, arrays, l, streams[stream], stream);
    }
  }
  fork.join();
  unpack(g, arrays.packed, stream_of(p));
}

template <bool batched>
Status supports(const Kernel<Solve>&, const Solve& p) {
  if (!library().missing.empty()) return {Decline::other, library().missing};
  if (p.n < 1) return {Decline::extents, "n is 0"};
  constexpr std::int64_t largest = std::numeric_limits<int>::max();
  if (p.n > largest || p.batch > largest / 64) return {Decline::extents, "n or the batch is beyond a launch"};
  if (batched && (p.right_sides > largest || p.n > 32768))
    return {Decline::extents, "an extent is beyond the batched routines'"};
  return {};
}

template <class T, bool batched>
double cost(const Kernel<Solve>&, const Solve& p, Plan&) {
  return costs::library_seconds(p, batched, streams_of(p, batched), sizeof(T) == 8);
}

template <class T, bool batched>
Kernel<Solve> kernel(Factorisation factorisation) {
  Kernel<Solve> k;
  k.info = detail::solve_info("cuda.cusolver", batched ? "batched" : "", factorisation, scalar_of<T>, bit(Space::cuda));
  k.info.timed_on = 90;
  k.info.promises = Promise::repeatable;
  k.supports = supports<batched>;
  k.cost = cost<T, batched>;
  k.workspace = [](const Kernel<Solve>&, const Solve& p, const Plan&) {
    const cuda::CurrentDevice device(p.execution.device);
    return Arrays<T>(p, batched, {}).size;
  };
  k.run = run<T, batched>;
  return k;
}

}  // namespace

void add_cusolver(Registry<Solve>& registry) {
  for (const Factorisation f : {Factorisation::cholesky, Factorisation::lu, Factorisation::eigen}) {
    registry.add(kernel<float, false>(f));
    registry.add(kernel<float, true>(f));
    registry.add(kernel<double, false>(f));
    registry.add(kernel<double, true>(f));
  }
}

}  // namespace rigel::backends::solver

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuSOLVER and cuBLAS, loaded when they are first asked for: programs start, and everything else works, on machines without them.
#pragma once

#include <rigel/solve.hpp>

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace rigel::backends::solver {

// clang-format off
/// The functions that Rigel calls, by their names in the libraries.
#define RIGEL_CUSOLVER_FUNCTIONS(F)                                                                  \
  F(cusolverDnCreate) F(cusolverDnDestroy) F(cusolverDnSetStream)                                    \
  F(cusolverDnCreateParams) F(cusolverDnDestroyParams)                                               \
  F(cusolverDnXpotrf_bufferSize) F(cusolverDnXpotrf) F(cusolverDnXpotrs)                             \
  F(cusolverDnXgetrf_bufferSize) F(cusolverDnXgetrf) F(cusolverDnXgetrs)                             \
  F(cusolverDnXsyevd_bufferSize) F(cusolverDnXsyevd)                                                 \
  F(cusolverDnXsyevBatched_bufferSize) F(cusolverDnXsyevBatched)                                     \
  F(cusolverDnSpotrfBatched) F(cusolverDnDpotrfBatched)
#define RIGEL_CUBLAS_FUNCTIONS(F)                                                                    \
  F(cublasCreate_v2) F(cublasDestroy_v2) F(cublasSetStream_v2)                                       \
  F(cublasStrsmBatched) F(cublasDtrsmBatched)                                                        \
  F(cublasSgetrfBatched) F(cublasDgetrfBatched) F(cublasSgetrsBatched) F(cublasDgetrsBatched)
// clang-format on

struct Library {
#define RIGEL_MEMBER_FUNCTION(name) decltype(&::name) name = nullptr;
  RIGEL_CUSOLVER_FUNCTIONS(RIGEL_MEMBER_FUNCTION)
  RIGEL_CUBLAS_FUNCTIONS(RIGEL_MEMBER_FUNCTION)
#undef RIGEL_MEMBER_FUNCTION
  std::string missing;  // why it cannot be used; empty: it can
};

/// The libraries whose headers this build was compiled with. Loads them once.
const Library& library();

/// What belongs to one stream: handles, which are used for no other one.
struct Handles {
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t parameters = nullptr;
  cublasHandle_t blas = nullptr;
  cudaStream_t stream = nullptr;
};

/// The caller's stream, and further ones that a call forks to and joins by events.
class Streams {
 public:
  static constexpr int count = 4;

  /// Those of the problem's stream, of the current device. They are made at its first use and kept until the program ends: graphs may use
  /// their memory. Making them allocates, so it throws Error(unsupported) if the stream is being captured then. A stream that has the
  /// address of one that was destroyed takes over its handles. cudaStreamPerThread has its own ones on each host thread.
  static Streams& of(const Solve& p);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  const Handles& operator[](int i) const { return handles_[i]; }
  /// Handles take calls of one host thread at a time.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

 private:
  friend class Fork;
  Streams() = default;
  void make(const Solve& p);
  void take(const Solve& p);
  Handles handles_[count];
  std::mutex mutex_;
  cudaEvent_t begin_ = nullptr, end_[count] = {};
  std::optional<unsigned long long> id_;  // of the caller's stream
};

/// While it lives, the first `used` streams hold a call's work. They begin after what the caller's stream holds, and that one
/// continues after theirs, also if the call throws: its workspace is free for others then. With `waits` the host waits, too.
class Fork {
 public:
  Fork(const Solve& p, const Streams& streams, int used, bool waits);
  ~Fork();
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;

  /// Ends it, and throws Error(device) if that fails.
  void join();

 private:
  cudaError_t end();
  const Solve& p_;
  const Streams& streams_;
  int used_;
  bool waits_, joined_ = false;
};

/// Throws Error(device), with the function, the library's function and the problem, unless a status is 0, success.
void check_library(const Solve& p, int status, const char* function);

}  // namespace rigel::backends::solver

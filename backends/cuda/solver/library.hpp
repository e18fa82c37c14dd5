// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuSOLVER and cuBLAS, loaded when they are first asked for: programs start, and everything else works, on machines without them.
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <memory>
#include <mutex>
#include <string>

namespace rigel::backends::solver {

// clang-format off
/// The functions that Rigel calls, by their names in the libraries.
#define RIGEL_CUSOLVER_FUNCTIONS(F)                                                                  \
  F(cusolverDnCreate) F(cusolverDnSetStream) F(cusolverDnCreateParams)                               \
  F(cusolverDnXpotrf_bufferSize) F(cusolverDnXpotrf) F(cusolverDnXpotrs)                             \
  F(cusolverDnXgetrf_bufferSize) F(cusolverDnXgetrf) F(cusolverDnXgetrs)                             \
  F(cusolverDnXsyevd_bufferSize) F(cusolverDnXsyevd)                                                 \
  F(cusolverDnXsyevBatched_bufferSize) F(cusolverDnXsyevBatched)                                     \
  F(cusolverDnSpotrfBatched) F(cusolverDnDpotrfBatched)
#define RIGEL_CUBLAS_FUNCTIONS(F)                                                                    \
  F(cublasCreate_v2) F(cublasSetStream_v2) F(cublasStrsmBatched) F(cublasDtrsmBatched)               \
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

  /// Those of a stream of the current device. They are made at its first use and kept: call this before the stream is captured.
  static Streams& of(int device, cudaStream_t stream);

  const Handles& operator[](int i) const { return handles_[i]; }
  /// Handles take calls of one host thread at a time.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// Makes the further streams wait for what the caller's stream holds, and the other way round.
  void fork(int used) const;
  void join(int used) const;

 private:
  explicit Streams(cudaStream_t stream);
  Handles handles_[count];
  std::mutex mutex_;
  cudaEvent_t begin_ = nullptr, end_[count] = {};
};

/// Throws Error(device) with the name of the function unless a status is 0, success.
void check_library(int status, const char* function);

}  // namespace rigel::backends::solver

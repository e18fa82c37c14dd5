// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA stream of a test's own.
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

namespace support {

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamDefault) { REQUIRE(cudaStreamCreateWithFlags(&stream_, flags) == cudaSuccess); }
  ~Stream() { CHECK(cudaStreamDestroy(stream_) == cudaSuccess); }
  Stream(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_{};
};

}  // namespace support

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps. The driver encodes them on the host; its function is looked up at run time, so nothing links against it.
#pragma once

#include <rigel/backends/cuda/runtime.hpp>

#include <cuda.h>

#include <cstdint>

namespace rigel::backends::hopper {

/// A batch of matrices as tensor copies see it: rows of `extent` contiguous elements of `size` bytes.
struct Matrices {
  const void* data;
  int size;
  std::int64_t extent, rows, count;
  std::int64_t row_stride, stride;  // in bytes, between rows and between matrices: multiples of 16 if there is more than one
};

/// The swizzling mode: how long the shared-memory rows are whose 16-byte pieces are permuted.
enum class Permuted : std::uint8_t { bytes_64, bytes_128 };

/// The map for boxes of `box_rows` rows of `box_extent` elements. Throws Error(device) if the driver refuses.
inline CUtensorMap tensor_map(const Matrices& m, int box_extent, int box_rows, Permuted permuted,
                              const cuda::Launches& launches) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    constexpr const char* name = "cuTensorMapEncodeTiled";
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    constexpr unsigned version = 12000;  // of CUDA, which introduced the function
    const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
    cuda::check(status, "cudaGetDriverEntryPoint: cuTensorMapEncodeTiled");
    if (found != cudaDriverEntryPointSuccess || !function)
      throw Error(Code::device, "the CUDA driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<Encode>(function);
  }();
  const auto type = m.size == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                    : m.size == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                  : CU_TENSOR_MAP_DATA_TYPE_UINT32;
  const auto u = [](std::int64_t x) { return static_cast<cuuint64_t>(x); };
  // Strides that no copy uses must be valid, too.
  const cuuint64_t row_stride = m.rows > 1 ? u(m.row_stride) : u((m.extent * m.size + 15) / 16 * 16);
  const cuuint64_t extents[] = {u(m.extent), u(m.rows), u(m.count)},
                   strides[] = {row_stride, m.count > 1 ? u(m.stride) : row_stride};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_extent), static_cast<cuuint32_t>(box_rows), 1}, every[] = {1, 1, 1};
  CUtensorMap map;
  const CUresult status =
      encode(&map, type, 3, const_cast<void*>(m.data), extents, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
             permuted == Permuted::bytes_64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw Error(Code::device, launches.text("cuTensorMapEncodeTiled for the launch") + " failed with CUresult " +
                                  std::to_string(static_cast<int>(status)));
  return map;
}

}  // namespace rigel::backends::hopper

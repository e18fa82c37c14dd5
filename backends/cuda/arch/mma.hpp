// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync (PTX ISA, "Warp Level Matrix Instructions: mma", sm_80): x += A·B by the 32 threads of a warp. A has 16 rows, B
// has 8 columns, both have 32 bytes along K. Thread t holds x at rows t/4 and t/4 + 8, columns 2(t mod 4) and 2(t mod 4) +
// 1. Of A it holds, in this order, the four bytes at 4(t mod 4) of rows t/4 and t/4 + 8, then those 16 bytes further along
// K; of B the same for column t/4. For double, a number takes the place of four bytes, which makes 64 bytes along K.
#pragma once

#include <rigel/numeric.hpp>

#include <cstdint>

namespace rigel::arch {

/// The instruction for an operand type.
template <class Element>
struct Mma;

/// m16n8k16, f16 or bf16 in f32.
template <> struct Mma<half> {
  using Accumulator = float;
  __device__ __forceinline__ static void add(float (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

template <> struct Mma<bfloat16> {
  using Accumulator = float;
  __device__ __forceinline__ static void add(float (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/// m16n8k32, bytes in 32-bit integers that wrap around.
template <> struct Mma<std::int8_t> {
  using Accumulator = std::int32_t;
  __device__ __forceinline__ static void add(std::int32_t (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
template <> struct Mma<std::uint8_t> {
  using Accumulator = std::int32_t;
  __device__ __forceinline__ static void add(std::int32_t (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/// m16n8k8, f32 read as tf32: the lower 13 bits of a mantissa are ignored.
template <> struct Mma<float> {
  using Accumulator = float;
  __device__ __forceinline__ static void add(float (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/// m16n8k256, bits: x += the number of k at which both are set.
template <> struct Mma<std::uint32_t> {
  using Accumulator = std::int32_t;
  __device__ __forceinline__ static void add(std::int32_t (&x)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/// m16n8k8, f64, one fma per product (sm_90; four m8n8k4 on older GPUs).
template <> struct Mma<double> {
  using Accumulator = double;
  __device__ __forceinline__ static void add(double (&x)[4], const double (&a)[4], double b0, double b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(x[0]), "+d"(x[1]), "+d"(x[2]), "+d"(x[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
    const auto quarter = [](double& x0, double& x1, double of_a, double of_b) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(x0), "+d"(x1)
          : "d"(of_a), "d"(of_b));
    };
    quarter(x[0], x[1], a[0], b0);
    quarter(x[2], x[3], a[1], b0);
    quarter(x[0], x[1], a[2], b1);
    quarter(x[2], x[3], a[3], b1);
#endif
  }
};

/// ldmatrix (PTX ISA, sm_75): four blocks of 8 rows × 16 bytes from shared memory. Thread t passes the address of row t mod
/// 8 of block t/8 and gets four bytes of each block, from byte 4(t mod 4) of row t/4 on. With `transposed` a block is 8 × 8
/// 16-bit numbers, and thread t gets those of column t/4 in rows 2(t mod 4) and 2(t mod 4) + 1.
template <bool transposed>
__device__ __forceinline__ void load_matrix(std::uint32_t (&x)[4], std::uint32_t shared) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared)
                 : "memory");
}

/// One number, or four bytes, from shared memory.
__device__ __forceinline__ void load_one(std::uint32_t& x, std::uint32_t shared) {
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(shared) : "memory");
}
__device__ __forceinline__ void load_one(double& x, std::uint32_t shared) {
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(shared) : "memory");
}

}  // namespace rigel::arch

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of the portable family by execution space and type: how many outputs a team and a thread compute, how threads lie in a
// tile, and how many k a slab holds. The only table of this family that names vendors.
#pragma once

#include <rigel/semirings.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace rigel::backends::portable {

/// Whether a team is one thread of a host.
template <class Exec>
inline constexpr bool on_host = Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible;

/// Threads that run in lockstep.
template <class Exec>
inline constexpr int wave_of = 32;
#ifdef KOKKOS_ENABLE_HIP
template <>
inline constexpr int wave_of<Kokkos::HIP> = 64;  // gfx90a and gfx942
#endif

/// The type of an operand in scratch memory: whole words for small integers on a device, everything else as it is.
template <class Operand>
using word_of = std::conditional_t<std::is_integral_v<Operand> && sizeof(Operand) < 4,
                                   std::conditional_t<std::is_signed_v<Operand>, std::int32_t, std::uint32_t>, Operand>;

/// Neighbours that a thread reads from scratch memory at a time: at most 16 bytes, a power of two, at most 4.
template <class T>
inline constexpr int vector_of = (sizeof(T) & (sizeof(T) - 1)) != 0 || sizeof(T) > 8 ? 1
                                 : sizeof(T) == 8                                    ? 2
                                                                                     : 4;

template <class T, int N>
struct alignas(N == 1 ? alignof(T) : N * sizeof(T)) Vector {
  T at[N];
};

/// The tile of a team on a device. `Wave` threads form a block of threads with twice as many columns as rows, or as many. A
/// thread computes OutputsM × OutputsN outputs, and a slab holds Depth k. `Teams` of them should fit on a multiprocessor at a
/// time, which bounds their registers.
template <int Wave, int ThreadsM, int ThreadsN, int OutputsM, int OutputsN, int Depth, int Teams>
struct Shape {
  static constexpr int threads_m = ThreadsM, threads_n = ThreadsN, threads = ThreadsM * ThreadsN;
  static constexpr int outputs_m = OutputsM, outputs_n = OutputsN, depth = Depth, teams = Teams;
  static constexpr int m = ThreadsM * OutputsM, n = ThreadsN * OutputsN;

  /// The row and the column of a thread in its team.
  struct Position {
    int row, column;
  };
  static RIGEL_FUNCTION Position position(int rank) {
    constexpr int columns = 8, rows = Wave / columns, waves_n = threads_n / columns;
    const int wave = rank / Wave, lane = rank % Wave;
    return {wave / waves_n * rows + lane / columns, wave % waves_n * columns + lane % columns};
  }
};

/// 32-bit words of the larger one of accumulator and operand.
template <class S>
inline constexpr int words_of = (static_cast<int>(std::max(sizeof(typename S::accumulator), sizeof(operand_t<S>))) + 3) / 4;

/// Whether slabs fit into scratch memory. Larger structs take the narrow kernel's shapes.
template <class S>
inline constexpr bool has_tiles = words_of<S> <= 16;

/// Whether a semiring of the zoo counts bits. Its tiles count those of two words of 32 bits at a time (chain.hpp).
template <class S>
inline constexpr bool counts_bits = false;
template <class Word>
inline constexpr bool counts_bits<bit_hamming<Word>> = true;
template <class Word>
inline constexpr bool counts_bits<bit_jaccard<Word>> = true;

/// For problems that fill a device. Threads hold as many outputs as registers allow. If ⊗ takes dozens of instructions,
/// reading operands is cheap in comparison and unrolled code would be long, so they hold few.
template <class Exec, class S>
constexpr auto large_shape() {
  constexpr int wave = wave_of<Exec>, words = words_of<S>;
  if constexpr (counts_bits<S>)
    return Shape<wave, 16, 16, 4, 4, 8, 2>{};
  else if constexpr (words > 4)
    return Shape<wave, 8, 8, 2, 2, 4, 2>{};
  else if constexpr (words > 2 || is_transcendental<S>)
    return Shape<wave, 16, 16, 4, 4, 8, (words > 2 ? 1 : 2)>{};
  else if constexpr (words == 2)
    return Shape<wave, 16, 8, 8, 8, 8, 2>{};
  else
    return Shape<wave, 16, 8, 8, 8, 8, 3>{};
}

template <class Exec, class S>
using LargeShape = decltype(large_shape<Exec, S>());

/// For problems whose large tiles would leave multiprocessors idle.
template <class Exec, class S>
constexpr auto small_shape() {
  constexpr int wave = wave_of<Exec>, words = words_of<S>;
  if constexpr (counts_bits<S>)
    return Shape<wave, 8, 8, 4, 4, 8, 6>{};
  else if constexpr (words > 4)
    return LargeShape<Exec, S>{};
  else
    return Shape<wave, 8, 8, 4, 4, (words > 1 ? 8 : 16), (words > 2 ? 4 : 8)>{};
}

template <class Exec, class S>
using SmallShape = decltype(small_shape<Exec, S>());

/// Vectors of the instruction set that Kokkos and this file are compiled for: their bytes, and how many are in registers.
#if defined(__AVX512VL__)
inline constexpr int vector_bytes = 32, vector_registers = 32;  // Clang prefers vectors of 256 bits
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32, vector_registers = 16;
#elif defined(__aarch64__)
inline constexpr int vector_bytes = 16, vector_registers = 32;
#else
inline constexpr int vector_bytes = 16, vector_registers = 16;
#endif

/// The tile of a host thread, and the block of outputs that it holds in registers at a time: two vectors of each row, in half of
/// the registers. The panels of both operands take at most 64 KB, if an operand has at most 256 bytes.
template <class S>
struct HostShape {
  static constexpr int rows = vector_registers / 4;
  static constexpr int columns =
      std::clamp(2 * vector_bytes / static_cast<int>(std::bit_floor(sizeof(operand_t<S>))), 4, 32);
  static constexpr int m = 32, n = 64;
  static constexpr int most = 64 * 1024 / ((m + n) * static_cast<int>(sizeof(operand_t<S>)));
  static constexpr int depth = most < 1 ? 1 : most < 128 ? most : 128;
};

}  // namespace rigel::backends::portable

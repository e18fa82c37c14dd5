// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the order in which Z is prepared.
//
// A chunk is 32 columns. Of 16 numbers along K it takes two times 512 bytes: lane by lane 16 bytes, two registers of each of two blocks of
// eight columns. Lane 4·g + q holds column g of a block; its four halves are numbers 4·q to 4·q + 3 of the 16, which lanes read of X at a
// time. Columns are permuted so that those whose bounds come to one lane are `group` neighbours of the order in which they are prepared.
#pragma once

#include <rigel/backends/cuda/mma/nearest_bound.hpp>

#include <bit>
#include <cstdint>

namespace rigel::backends::mma::nearest {

/// What the passes find out of Z, in the workspace. Zeros before.
struct Found {
  unsigned largest;  // the bits of max |z − c|
  unsigned refused;  // z − c is not finite somewhere
  unsigned listed;   // rows of X that are left to the search by subtraction
  unsigned padding;
};

inline constexpr int largest_numbers = 128;  // along K

/// log2 S, at least −122, of the bits of max |z − c|.
RIGEL_FUNCTION int exponent_of_scale(unsigned largest) {
  const int exponent = exponent_of_largest - (static_cast<int>(largest >> 23) - 127);
  return exponent > 100 ? 100 : exponent;
}
RIGEL_FUNCTION float power_of_two_of(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// How the prepared columns are cut. `Steps` times 16 numbers along K.
template <int Steps>
struct Layout {
  static constexpr int steps = Steps, numbers = 16 * Steps;
  static constexpr int chunk = 32;                                    // columns
  static constexpr int group = Steps >= 8 ? 2 : Steps >= 4 ? 4 : 8;   // columns of a lane that are searched together
  static constexpr int groups = 8 / group;                            // of a lane in a chunk
  static constexpr int chunks = Steps >= 8 ? 2 : Steps >= 4 ? 4 : 8;  // of a tile
  static constexpr int columns = chunk * chunks;                      // of a tile
  static constexpr int chunk_bytes = chunk * numbers * 2, norm_bytes = chunk * 8;
  static constexpr int tile_bytes = chunks * (chunk_bytes + norm_bytes);  // first all halves, then all norms
  static std::int64_t tiles(std::int64_t n) { return (n + columns - 1) / columns; }

  /// The column of a chunk that block j of eight has as its column c.
  RIGEL_MEMBER static constexpr int column(int j, int c) {
    const int span = j / (group / 2), within = j % (group / 2);
    return span * 4 * group + c / 2 * group + within * 2 + c % 2;
  }
  /// The first column of a lane's group with this number among all of its groups.
  RIGEL_MEMBER static constexpr std::int64_t first_of_group(std::uint32_t number, int q) {
    return static_cast<std::int64_t>(number / groups) * chunk + static_cast<int>(number % groups) * 4 * group + q * group;
  }
};

}  // namespace rigel::backends::mma::nearest

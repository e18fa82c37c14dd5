// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the k smallest. Columns are prepared and searched strip by strip, as many as the workspace takes. A strip's
// chunks are cut into runs. A part of a row's columns is what a lane sees of a run; the least bounds of parts say how near the k smallest are,
// if these are in different parts. So columns that are neighbours go to different runs: they may be near each other.
#pragma once

#include <rigel/macros.hpp>

#include <algorithm>
#include <cstdint>

namespace rigel::backends::mma::nearest {

/// The order of a strip's columns. Without runs they stay as they are.
struct Order {
  std::int64_t first = 0, columns = 0;  // of the strip
  unsigned chunks = 0, runs = 0;

  /// Run r has the chunks of this number whose remainder by the number of runs is r; the first runs may have one more than others.
  RIGEL_MEMBER unsigned begin_of_run(unsigned run) const {
    const unsigned longer = chunks % runs;
    return run * (chunks / runs) + (run < longer ? run : longer);
  }
  RIGEL_MEMBER unsigned run_of(unsigned chunk) const {
    const unsigned each = chunks / runs, longer = chunks % runs, of_longer = longer * (each + 1);
    return chunk < of_longer ? chunk / (each + 1) : longer + (chunk - of_longer) / each;
  }
  /// Which of the strip's columns a chunk has as column w of 32; not below `columns` if it does not exist.
  RIGEL_MEMBER std::int64_t column(unsigned chunk, int w) const {
    if (runs == 0) return std::int64_t{chunk} * 32 + w;
    const unsigned run = run_of(chunk);
    return std::int64_t{w} * chunks + (chunk - begin_of_run(run)) * runs + run;
  }
};

/// All strips of n columns. Chunks are counted through all of them; only the last strip may have fewer than `chunks`.
struct Strips {
  std::int64_t n = 0;
  unsigned chunks = 0, chunks_of_tile = 1, runs = 0;

  RIGEL_MEMBER unsigned count() const {
    const std::int64_t columns = std::int64_t{chunks} * 32;
    return static_cast<unsigned>((n + columns - 1) / columns);
  }
  RIGEL_MEMBER Order order(unsigned strip) const {
    Order o;
    o.first = std::int64_t{strip} * chunks * 32;
    const std::int64_t rest = n - o.first, most = std::int64_t{chunks} * 32;
    o.columns = rest < most ? rest : most;
    const std::int64_t of_tile = std::int64_t{chunks_of_tile} * 32;
    o.chunks = static_cast<unsigned>((o.columns + of_tile - 1) / of_tile) * chunks_of_tile;
    o.runs = runs < o.chunks ? runs : o.chunks;
    return o;
  }
  /// The column at a position, 32 of which a chunk has.
  RIGEL_MEMBER std::int64_t column(std::uint32_t position) const {
    const unsigned chunk = position / 32, strip = chunk / chunks;
    const Order o = order(strip);
    return o.first + o.column(chunk - strip * chunks, static_cast<int>(position % 32));
  }
  /// How many parts have columns, with `group` neighbours of a chunk to a lane.
  std::int64_t filled_parts(int group) const {
    const Order o = order(0);
    std::int64_t filled = 0;
    for (int q = 0; q < 4; ++q)
      filled += std::clamp<std::int64_t>(o.columns - std::int64_t{q} * group * o.chunks, 0, o.runs);
    return filled;
  }
};

/// What the k smallest know of a row: |x'|² and |dx|², the bound up to which its columns are listed, and how many these are.
struct RowState {
  float square, lost, limit;
  std::uint32_t count;
};

/// The lists of the k smallest. Of each row there are `pitch` words: first the least bounds of its parts as ordered integers, then the
/// positions of the columns that are listed.
struct Lists {
  RowState* rows;
  std::uint32_t* words;
  int pitch, capacity;
  int parts, least;  // of parts; the columns that are surely up to a row's limit
  bool all;          // all columns are listed, and nothing else is there
  Strips strips;
  Order order;           // of the present strip,
  unsigned first_chunk;  // and its place

  /// Whether there are so many parts that lists have room for the columns up to the limits of ordinary rows.
  bool has_parts(int group) const { return strips.filled_parts(group) * 2 >= std::int64_t{least} * 3; }
};

}  // namespace rigel::backends::mma::nearest

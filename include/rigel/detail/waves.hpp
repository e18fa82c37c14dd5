// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model of waves, from which predicted times on GPUs follow: all multiprocessors compute equally many tiles, some at a
// time, and a call takes as long as the one that gets the most.
#pragma once

#include <algorithm>
#include <cmath>

namespace rigel::detail {

/// The tiles of the multiprocessor that gets the most, which holds `resident` at a time.
struct Waves {
  double each, resident;

  Waves(double tiles, double multiprocessors, double resident_tiles)
      : each(std::ceil(tiles / std::max(multiprocessors, 1.))), resident(resident_tiles) {}

  /// How often it is full of tiles, the last time perhaps only in part; and whole rounds.
  double waves() const { return each / resident; }
  double rounds() const { return std::ceil(each / resident); }
  /// Tiles of the rounds in which it is full, and those that are left.
  double full() const { return std::floor(each / resident) * resident; }
  double rest() const { return each - full(); }
  /// Tiles of the last round: from 1 to `resident`.
  double last() const { return each - (rounds() - 1) * resident; }

  /// How many tiles it would compute at full speed in the same time. busy(tiles): the share of it that so many reach.
  template <class Busy>
  double at_full_speed(const Busy& busy) const {
    return full() / busy(resident) + (rest() > 0 ? rest() / busy(rest()) : 0);
  }
};

}  // namespace rigel::detail

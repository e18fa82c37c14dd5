// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What provider.cpp needs of the loops, which host_loops.cpp or cuda_loops.cpp has.
#pragma once

#include <rigel/registry.hpp>

#include <array>
#include <utility>

namespace tiles {

/// The layouts of A, B and C.
using Layouts = std::array<rigel::Layout, 3>;
using Run = decltype(rigel::Kernel<rigel::Contraction>::run);

/// The loop for tiles of tile × tile outputs, 16 or 32.
Run loop(int tile, const Layouts& layouts);

/// Where the loops run, and how many steps of x + a·b they take in a second.
rigel::Spaces spaces();
double steps_per_second(int tile, const rigel::Execution& execution);

/// The loop Loops<tile, a, b, c>::run of the layouts.
template <template <int, rigel::Layout, rigel::Layout, rigel::Layout> class Loops, int tile>
Run loop_of(const Layouts& layouts) {
  using rigel::Layout;
  constexpr Layout r = Layout::row_major, c = Layout::column_major;
  constexpr Run all[] = {Loops<tile, r, r, r>::run, Loops<tile, r, r, c>::run, Loops<tile, r, c, r>::run,
                         Loops<tile, r, c, c>::run, Loops<tile, c, r, r>::run, Loops<tile, c, r, c>::run,
                         Loops<tile, c, c, r>::run, Loops<tile, c, c, c>::run};
  return all[4 * (layouts[0] == c) + 2 * (layouts[1] == c) + (layouts[2] == c)];
}

}  // namespace tiles

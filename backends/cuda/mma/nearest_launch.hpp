// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the launches of a call and their memory.
#pragma once

#include <rigel/backends/cuda/mma/nearest_many.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/detail/workspace.hpp>

#include <string>
#include <type_traits>

namespace rigel::backends::mma::nearest {

/// Calls use(std::integral_constant<int, steps>) with the least number of steps along K that a kernel exists for.
template <class Use>
auto with_steps(std::int64_t k, const Use& use) {
  if (k <= 16) return use(std::integral_constant<int, 1>{});
  if (k <= 32) return use(std::integral_constant<int, 2>{});
  if (k <= 64) return use(std::integral_constant<int, 4>{});
  return use(std::integral_constant<int, 8>{});
}

/// Where what the launches share lies in the workspace. Rows are searched so many at a time.
struct Memory {
  std::size_t centre = 0, tiles = 0, list = 0, keys = 0, bytes = 0;
  std::int64_t rows = 0;

  static Memory of(std::int64_t m, std::int64_t n, std::int64_t k, std::size_t limit) {
    Memory at;
    at.centre = detail::aligned(sizeof(Found));
    at.tiles = at.centre + detail::aligned(largest_numbers * sizeof(float));
    at.list = at.tiles + detail::aligned(with_steps(k, [&](auto steps) {
                using L = Layout<decltype(steps)::value>;
                return static_cast<std::size_t>(L::tiles(n)) * L::tile_bytes;
              }));
    constexpr std::int64_t least = 1 << 16, largest = 1 << 30, block = 128;
    constexpr std::size_t of_row = sizeof(unsigned) + sizeof(unsigned long long);
    const auto fit = static_cast<std::int64_t>(limit > at.list ? (limit - at.list) / of_row : 0) / block * block;
    at.rows = std::min({m, std::max(fit, least), largest});
    at.keys = at.list + detail::aligned(static_cast<std::size_t>(at.rows) * sizeof(unsigned));
    at.bytes = at.keys + detail::aligned(static_cast<std::size_t>(at.rows) * sizeof(unsigned long long));
    return at;
  }
};

/// Enqueues a search. Of `g` it fills in what lies in the workspace.
template <class Element>
void enqueue(Search<Element> g, const Memory& at, void* workspace, int multiprocessors, const cuda::Launches& launches) {
  auto* const memory = static_cast<unsigned char*>(workspace);
  const auto count_of = [](std::int64_t all, std::int64_t each, std::int64_t most) {
    return static_cast<unsigned>(std::min((all + each - 1) / each, most));
  };
  const auto sms = static_cast<unsigned>(std::max(multiprocessors, 1));
  auto* const middle = reinterpret_cast<float*>(memory + at.centre);
  g.centre = middle;
  g.found = reinterpret_cast<Found*>(memory);
  g.tiles = memory + at.tiles;
  g.list = reinterpret_cast<unsigned*>(memory + at.list);
  g.keys = reinterpret_cast<unsigned long long*>(memory + at.keys);
  const auto clear = [&](void* data, std::size_t bytes) {
    launches.check(cudaMemsetAsync(data, 0, bytes, launches.stream()), "cudaMemsetAsync before the launch");
  };
  clear(memory, sizeof(Found));
  const auto launch = [&](const void* function, unsigned blocks, int threads, int bytes, auto&... arguments) {
    void* list[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    launches(function, blocks, threads, static_cast<std::size_t>(bytes), list);
  };
  launch(reinterpret_cast<const void*>(&find_centre<Element>), count_of(g.z.rows, pass_threads / 4, sms), pass_threads, 0,
         g.z, middle, g.found);
  with_steps(g.x.k, [&](auto of_steps) {
    constexpr int steps = decltype(of_steps)::value;
    using G = Shape<steps>;
    const std::int64_t tiles = G::tiles(g.z.rows);
    g.tile_count = static_cast<unsigned>(tiles);
    unsigned blocks_of_eight = static_cast<unsigned>(tiles * (G::columns / 8));
    launch(reinterpret_cast<const void*>(&prepare_points<Element, steps>),
           count_of(blocks_of_eight, pass_threads / 32, 16 * sms), pass_threads, 0, g.z, g.centre, g.found, g.tiles,
           blocks_of_eight);
    using M = ManyShape<steps>;
    const bool many = g.count > 0;
    const auto function = many ? reinterpret_cast<const void*>(&search_nearest_many<Element, steps>)
                               : reinterpret_cast<const void*>(&search_nearest<Element, steps>);
    const int bytes = many ? M::bytes : G::bytes;
    static cuda::LaunchFacts facts[2];
    facts[many].find(function, bytes, launches);
    for (g.first_row = 0; g.first_row < g.x.rows; g.first_row += at.rows) {
      g.row_count = static_cast<unsigned>(std::min(at.rows, g.x.rows - g.first_row));
      if (g.first_row > 0) clear(&g.found->listed, sizeof g.found->listed);
      launch(function, count_of(g.row_count, G::rows, cuda::max_grid), G::threads, bytes, g);
      if (many) {
        launch(reinterpret_cast<const void*>(&search_many_listed<Element>),
               count_of(g.row_count, ManyAgainShape::rows, 4 * sms), ManyAgainShape::threads, 0, g);
      } else {
        enqueue_listed(g, multiprocessors, launches);
      }
    }
  });
}

}  // namespace rigel::backends::mma::nearest

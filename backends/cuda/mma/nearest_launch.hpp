// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nearest points on tensor cores: the launches of a call and their memory.
#pragma once

#include <rigel/backends/cuda/mma/nearest_memory.hpp>
#include <rigel/backends/cuda/mma/nearest_sort.hpp>
#include <rigel/backends/cuda/runtime.hpp>

namespace rigel::backends::mma::nearest {

/// The launches of a search. Of `g`, what lies in the workspace is filled in.
template <class Element>
class SearchLaunches {
 public:
  SearchLaunches(const Search<Element>& search, const Memory& memory, void* workspace, int multiprocessors,
                 const cuda::Launches& launches)
      : g(search), at_(memory), sms_(static_cast<unsigned>(std::max(multiprocessors, 1))), launches_(launches) {
    auto* const data = static_cast<unsigned char*>(workspace);
    g.found = reinterpret_cast<Found*>(data);
    centre_ = reinterpret_cast<float*>(data + at_.centre);
    g.centre = centre_;
    g.tiles = tiles_ = data + at_.tiles;
    g.list = reinterpret_cast<unsigned*>(data + at_.list);
    g.keys = reinterpret_cast<unsigned long long*>(data + at_.keys);
    g.lists = at_.lists;
    g.lists.rows = reinterpret_cast<RowState*>(data + at_.states);
    g.lists.words = reinterpret_cast<std::uint32_t*>(data + at_.words);
  }

  void enqueue() {
    if (at_.lists.all) return for_each_rows([&] { sort(); });
    fill(g.found, 0, sizeof(Found));
    launch(&find_centre<Element>, count_of(g.z.rows, pass_threads / 4, 8 * sms_), pass_threads, 0, g.z, centre_, g.found);
    with_steps(g.x.k, [&](auto of_steps) {
      constexpr int steps = decltype(of_steps)::value;
      if (at_.many)
        for_each_rows([&] { search_many<steps>(); });
      else
        search_least<steps>();
    });
  }

 private:
  static unsigned count_of(std::int64_t all, std::int64_t each, std::int64_t most) {
    return static_cast<unsigned>(std::min((all + each - 1) / each, most));
  }
  void fill(void* data, int byte, std::size_t bytes) const {
    launches_.check(cudaMemsetAsync(data, byte, bytes, launches_.stream()), "cudaMemsetAsync before the launch");
  }
  template <class... Parameters>
  void launch(void (*kernel)(Parameters...), dim3 grid, int threads, int bytes,
              std::type_identity_t<Parameters>... arguments) const {
    launches_(kernel, grid, threads, static_cast<std::size_t>(bytes), arguments...);
  }
  template <class Use>
  void for_each_rows(const Use& use) {
    for (g.first_row = 0; g.first_row < g.x.rows; g.first_row += at_.rows) {
      g.row_count = static_cast<unsigned>(std::min(at_.rows, g.x.rows - g.first_row));
      if (g.first_row > 0 && !at_.lists.all) fill(&g.found->listed, 0, sizeof g.found->listed);
      use();
    }
  }
  template <int Steps>
  void prepare(const Order& order) {
    g.tile_count = order.chunks / Layout<Steps>::chunks;
    launch(&prepare_points<Element, Steps>, count_of(std::int64_t{order.chunks} * 4, pass_threads / 32, 16 * sms_),
           pass_threads, 0, g.z, centre_, g.found, tiles_, order);
  }

  template <int Steps>
  void search_least() {
    using G = Shape<Steps>;
    const auto function = &search_nearest<Element, Steps>;
    static cuda::LaunchFacts facts;
    facts.find(reinterpret_cast<const void*>(function), G::bytes, launches_);
    prepare<Steps>({0, g.z.rows, static_cast<unsigned>(G::tiles(g.z.rows) * G::chunks), 0});
    for_each_rows([&] {
      launch(function, count_of(g.row_count, G::rows, cuda::max_grid), G::threads, G::bytes, g);
      search_least_listed();
    });
  }
  void search_least_listed() const {
    launch(&search_listed<Element>, 2 * sms_, AgainShape::threads, 0, g);
    launch(&store_listed<Element>, count_of(g.row_count, 256, sms_), 256, 0, g);
  }

  /// Some rows. The second sweep takes the strips in descending order, so that the last one need not be prepared again, and the next rows
  /// begin with the first one, which is there.
  template <int Steps>
  void search_many() {
    using G = ManyShape<Steps>;
    const auto parts = &sweep_parts<Element, Steps>, lists = &sweep_lists<Element, Steps>;
    static cuda::LaunchFacts facts[2];
    facts[0].find(reinterpret_cast<const void*>(parts), G::bytes, launches_);
    facts[1].find(reinterpret_cast<const void*>(lists), G::list_bytes, launches_);
    const Strips& strips = g.lists.strips;
    const std::int64_t blocks = (g.row_count + G::rows - 1) / G::rows;
    const auto sweep = [&](unsigned strip, auto kernel, int bytes, int blocks_of_sm) {
      const Order order = strips.order(strip);
      if (strip != prepared_) prepare<Steps>(order);
      prepared_ = strip;
      g.tile_count = order.chunks / G::chunks;
      g.lists.order = order;
      g.lists.first_chunk = strip * strips.chunks;
      const auto slices = static_cast<unsigned>(slices_of(blocks, g.tile_count, std::int64_t{blocks_of_sm} * sms_));
      launch(kernel, dim3(static_cast<unsigned>(blocks), slices), G::threads, bytes, g);
    };
    fill(g.lists.words, 0xff, static_cast<std::size_t>(g.row_count) * static_cast<std::size_t>(g.lists.pitch) * 4);
    for (unsigned strip = 0; strip < strips.count(); ++strip) sweep(strip, parts, G::bytes, G::blocks);
    launch(&find_limits<Element>, count_of(g.row_count, pass_threads / 32, cuda::max_grid), pass_threads, 0, g, G::numbers);
    for (unsigned strip = strips.count(); strip-- > 0;) sweep(strip, lists, G::list_bytes, G::list_blocks);
    sort();
    if (at_.of_minimum)
      search_least_listed();
    else
      launch(&search_many_listed<Element>, count_of(g.row_count, ManyAgainShape::rows, 4 * sms_), ManyAgainShape::threads, 0,
             g);
  }
  void sort() const {
    constexpr int warps = sort_threads / 32;
    launch(&sort_lists<Element>, count_of(g.row_count, warps, cuda::max_grid), sort_threads, warps * g.lists.capacity * 8,
           g);
  }

  Search<Element> g;
  const Memory& at_;
  unsigned sms_;
  const cuda::Launches& launches_;
  float* centre_;
  unsigned char* tiles_;
  unsigned prepared_ = ~0u;  // the strip that is
};

}  // namespace rigel::backends::mma::nearest

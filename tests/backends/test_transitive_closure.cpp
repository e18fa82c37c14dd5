// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// transitive_closure(): compared with results by hand on a small graph, and with elimination on single bits on many.
#include "../support/error.hpp"
#include "../support/layouts.hpp"
#include "../support/random.hpp"
#include "../support/recorder.hpp"
#include "../support/spaces.hpp"

#include <rigel/transitive_closure.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using support::Random, support::download, support::laid_out, support::upload;
using Bits = std::vector<char>;  // n × n, row by row, a byte each

template <class Word>
constexpr std::int64_t width = 8 * sizeof(Word);
template <class Word>
std::int64_t words_of(std::int64_t n) {
  return (n + width<Word> - 1) / width<Word>;
}

// Packs rows into whole words; the unused bits of the last word are `spare`.
template <class Word>
std::vector<Word> pack(const Bits& graph, std::int64_t n, bool spare = false) {
  const std::int64_t words = words_of<Word>(n);
  std::vector<Word> packed(n * words);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < words * width<Word>; ++j)
      if (j < n ? graph[i * n + j] != 0 : spare) packed[i * words + j / width<Word>] |= Word(1) << j % width<Word>;
  return packed;
}

// The closure by textbook elimination, vertex after vertex.
Bits textbook(Bits d, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) d[i * n + i] = 1;
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) d[i * n + j] |= d[i * n + k] & d[k * n + j];
  return d;
}

Bits random_graph(Random& random, std::int64_t n, double density) {
  Bits graph(n * n);
  for (char& arc : graph) arc = random.chance(density);
  return graph;
}

// The number of bits that differ, without those beyond n.
template <class Word>
std::int64_t differences(const std::vector<Word>& packed, const Bits& expected, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      count += (packed[i * words_of<Word>(n) + j / width<Word>] >> j % width<Word> & 1) != Word(expected[i * n + j]);
  return count;
}

template <class Exec, class Word, class Layout = Kokkos::LayoutRight>
void check(const Bits& graph, const Bits& expected, std::int64_t n, std::int64_t block) {
  CAPTURE(n);
  CAPTURE(block);
  CAPTURE(width<Word>);
  const auto d = laid_out<Word, Exec, Layout>(n, words_of<Word>(n));
  upload(d, pack<Word>(graph, n));
  rigel::transitive_closure(Exec(), d, {.block = block});
  CHECK(download(d) == pack<Word>(expected, n));  // zero bits beyond n stay zero
  upload(d, pack<Word>(graph, n, true));
  rigel::transitive_closure(Exec(), d, {.block = block});
  CHECK(differences(download(d), expected, n) == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("transitive closure of a small graph", Exec, RIGEL_TEST_SPACES) {
  // 0 → 1 → 2 → 0, 2 → 3 → 4, 5 → 4; bit j of row i. Nothing leads to 5, nothing leads away from 4.
  const std::vector<std::uint32_t> arcs = {0b000010, 0b000100, 0b001001, 0b010000, 0, 0b010000};
  const auto d = laid_out<std::uint32_t, Exec>(6, 1);
  upload(d, arcs);
  rigel::transitive_closure(Exec(), d);
  CHECK(download(d) == std::vector<std::uint32_t>{0b011111, 0b011111, 0b011111, 0b011000, 0b010000, 0b110000});
}

TEST_CASE_TEMPLATE("transitive closure equals the textbook's", Exec, RIGEL_TEST_SPACES) {
  for (const std::int64_t n : {1, 2, 31, 32, 33, 63, 64, 65, 100, 129, 257})
    // Two arcs per vertex: few or many vertices are reached. Half an arc: short paths only. A third of all arcs.
    for (const double density : {2.0 / static_cast<double>(n), 0.5 / static_cast<double>(n), 0.33}) {
      const std::uint64_t seed = 10 * n + (density < 0.3);
      CAPTURE(seed);
      CAPTURE(density);
      Random random(seed);
      const Bits graph = random_graph(random, n, density), expected = textbook(graph, n);
      check<Exec, std::uint32_t>(graph, expected, n, 32);
      check<Exec, std::uint32_t, Kokkos::LayoutLeft>(graph, expected, n, 64);
      check<Exec, std::uint32_t, Kokkos::LayoutStride>(graph, expected, n, 96);
      check<Exec, std::uint64_t>(graph, expected, n, 128);
      check<Exec, std::uint64_t, Kokkos::LayoutLeft>(graph, expected, n, 64);
      check<Exec, std::uint64_t, Kokkos::LayoutStride>(graph, expected, n, 512);
    }
}

TEST_CASE_TEMPLATE("transitive closure in several of the largest blocks", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t n = 600;
  Random random(8);
  const Bits graph = random_graph(random, n, 1.5 / n), expected = textbook(graph, n);
  check<Exec, std::uint32_t>(graph, expected, n, 256);
  check<Exec, std::uint32_t>(graph, expected, n, 512);
  check<Exec, std::uint64_t>(graph, expected, n, 256);
  check<Exec, std::uint64_t>(graph, expected, n, 512);
}

TEST_CASE_TEMPLATE("transitive closure of one long path, its vertices in any order", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t n = 200;
  Random random(7);
  std::vector<std::int64_t> order(n);
  for (std::int64_t i = 0; i < n; ++i) order[i] = i;
  const auto check_path = [&] {
    Bits graph(n * n), expected(n * n);
    for (std::int64_t i = 0; i < n; ++i) {
      if (i + 1 < n) graph[order[i] * n + order[i + 1]] = 1;
      for (std::int64_t j = i; j < n; ++j) expected[order[i] * n + order[j]] = 1;
    }
    check<Exec, std::uint32_t>(graph, expected, n, 64);
    check<Exec, std::uint64_t>(graph, expected, n, 128);
  };
  check_path();
  std::reverse(order.begin(), order.end());
  check_path();
  for (std::int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[random.integer(0, i)]);
  check_path();
}

TEST_CASE_TEMPLATE("transitive closure of nothing", Exec, RIGEL_TEST_SPACES) {
  using Space = typename Exec::memory_space;
  const Kokkos::View<std::uint32_t**, Space> empty("empty", 0, 0);
  const Kokkos::View<std::uint32_t***, Space> none("none", 0, 40, 2);
  const support::Recorder recorder;
  rigel::transitive_closure(Exec(), empty);
  rigel::transitive_closure(Exec(), none);
  CHECK(recorder.events().kernels.empty());
  CHECK(rigel::transitive_closure_workspace_size(Exec(), empty) == 0);
}

TEST_CASE_TEMPLATE("transitive closure of a batch, its index first or last", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t batches = 3, n = 70, words = 3;
  Random random(9);
  const auto run = [&](auto d, rigel::Batch order) {
    const auto host = Kokkos::create_mirror_view(d);
    const auto at = [&](std::int64_t l, std::int64_t i, std::int64_t j) -> auto& {
      return order == rigel::Batch::first ? host(l, i, j) : host(i, j, l);
    };
    std::vector<Bits> graphs;
    for (std::int64_t l = 0; l < batches; ++l) {
      graphs.push_back(random_graph(random, n, 0.015 * static_cast<double>(l + 1)));
      const auto packed = pack<std::uint32_t>(graphs[l], n);
      for (std::int64_t e = 0; e < n * words; ++e) at(l, e / words, e % words) = packed[e];
    }
    Kokkos::deep_copy(d, host);
    rigel::transitive_closure(Exec(), d, {.block = 32, .batch = order});
    Kokkos::deep_copy(host, d);
    for (std::int64_t l = 0; l < batches; ++l) {
      std::vector<std::uint32_t> found(n * words);
      for (std::int64_t e = 0; e < n * words; ++e) found[e] = at(l, e / words, e % words);
      CHECK(found == pack<std::uint32_t>(textbook(graphs[l], n), n));
    }
  };
  using Space = typename Exec::memory_space;
  run(Kokkos::View<std::uint32_t***, Kokkos::LayoutRight, Space>("d", batches, n, words), rigel::Batch::first);
  run(Kokkos::View<std::uint32_t***, Kokkos::LayoutLeft, Space>("d", n, words, batches), rigel::Batch::last);
}

TEST_CASE_TEMPLATE("transitive closure with the caller's workspace, and with a named kernel", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t n = 150;
  Random random(23);
  const Bits graph = random_graph(random, n, 0.01);
  const auto packed = pack<std::uint64_t>(graph, n), expected = pack<std::uint64_t>(textbook(graph, n), n);
  const auto d = laid_out<std::uint64_t, Exec>(n, words_of<std::uint64_t>(n));
  for (const char* kernel : {"", "reference", "portable"}) {
    CAPTURE(kernel);
    rigel::TransitiveClosureOptions options{.kernel = kernel};
    const std::size_t bytes = rigel::transitive_closure_workspace_size(Exec(), d, options);
    const Kokkos::View<char*, typename Exec::memory_space> memory("workspace", bytes + 256);
    const auto aligned = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
    options.workspace = {reinterpret_cast<void*>(aligned), bytes};
    upload(d, packed);
    {
      const support::Recorder recorder;
      rigel::transitive_closure(Exec(), d, options);
      Exec().fence();
      const auto events = recorder.events();
      CHECK(events.regions.front() == "rigel::transitive_closure");
      for (const auto& label : events.kernels) {
        CAPTURE(label);
        CHECK((label.starts_with("rigel::transitive_closure/") ||
               label.starts_with(std::string("rigel::contract/") + kernel)));
      }
      CHECK(events.open_regions == 0);
    }
    CHECK(download(d) == expected);

    options.workspace.bytes = bytes - 1;
    upload(d, packed);
    CHECK(support::caught([&] { rigel::transitive_closure(Exec(), d, options); }).message ==
          "transitive_closure: the workspace has " + std::to_string(bytes - 1) + " bytes, expected " +
              std::to_string(bytes));
    CHECK(download(d) == packed);
  }
  CHECK_THROWS_AS(rigel::transitive_closure(Exec(), d, {.kernel = "no.such.kernel"}), rigel::Error);
  CHECK(download(d) == packed);
}

TEST_CASE_TEMPLATE("transitive closure says what is wrong, and leaves D as it was", Exec, RIGEL_TEST_SPACES) {
  using Space = typename Exec::memory_space;
  const Exec exec;
  const Kokkos::View<std::uint32_t**, Space> narrow("roads", 33, 1);
  Kokkos::deep_copy(narrow, 2u);
  CHECK(support::caught([&] { rigel::transitive_closure(exec, narrow); }).message ==
        "transitive_closure: D 'roads' is 33x1, expected 33x2: rows of 33 bits in words of 32");
  CHECK(download(narrow) == std::vector<std::uint32_t>(33, 2));
  const Kokkos::View<std::uint64_t***, Space> batch("roads", 5, 64, 2);
  CHECK(support::caught([&] { rigel::transitive_closure(exec, batch); }).message ==
        "transitive_closure: D 'roads' is 5x64x2, expected 5x64x1: rows of 64 bits in words of 64");
  const Kokkos::View<std::uint64_t**, Space> roads("roads", 64, 1);
  for (const int block : {-64, 0, 32, 100, 576})
    CHECK(support::caught([&] { rigel::transitive_closure(exec, roads, {.block = block}); }).message ==
          "transitive_closure: options.block is " + std::to_string(block) + ", expected a multiple of 64 up to 512");
  const Kokkos::View<std::uint32_t**, Kokkos::LayoutStride, Space> folded(narrow.data(), Kokkos::LayoutStride(33, 0, 2, 1));
  CHECK(support::caught([&] { rigel::transitive_closure(exec, folded); }).message ==
        "transitive_closure: D 33x2 overlaps itself (strides 0, 0, 1), expected distinct elements");
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "covering.hpp"

#include <cstddef>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace support {

using Pair = std::tuple<std::size_t, int, std::size_t, int>;  // factor, level, later factor, level

std::vector<std::vector<int>> covering_design(const std::vector<int>& levels, Random& random) {
  const std::size_t factors = levels.size();
  std::set<Pair> open;
  for (std::size_t f = 0; f < factors; ++f)
    for (std::size_t g = f + 1; g < factors; ++g)
      for (int i = 0; i < levels[f]; ++i)
        for (int j = 0; j < levels[g]; ++j) open.insert({f, i, g, j});
  const auto pair = [](std::size_t f, int i, std::size_t g, int j) { return f < g ? Pair{f, i, g, j} : Pair{g, j, f, i}; };

  std::vector<std::vector<int>> rows;
  while (!open.empty()) {
    // Takes the first open pair, then for the other factors, in random order, the level that closes the most pairs.
    std::vector<int> row(factors, -1);
    const auto [f, i, g, j] = *open.begin();
    row[f] = i, row[g] = j;
    std::vector<std::size_t> order(factors);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t k = factors; k > 1; --k)
      std::swap(order[k - 1], order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(k) - 1))]);
    for (const std::size_t h : order) {
      if (row[h] >= 0) continue;
      const int first = static_cast<int>(random.integer(0, levels[h] - 1));
      int most = -1;
      for (int step = 0; step < levels[h]; ++step) {
        const int level = (first + step) % levels[h];
        int closed = 0;
        for (std::size_t o = 0; o < factors; ++o)
          if (row[o] >= 0) closed += static_cast<int>(open.count(pair(h, level, o, row[o])));
        if (closed > most) most = closed, row[h] = level;
      }
    }
    for (std::size_t a = 0; a < factors; ++a)
      for (std::size_t b = a + 1; b < factors; ++b) open.erase({a, row[a], b, row[b]});
    rows.push_back(row);
  }
  return rows;
}

}  // namespace support

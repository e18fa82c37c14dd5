// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What verify() holds the loops of a text to: the same text, output by output and k by k, from the operands as they lie in memory.
#pragma once

#include <rigel/backends/host/text.hpp>

namespace rigel::backends::host {

template <class Level, class S>
void compute_reference(const detail::Arguments<S, TextFinish>& g) {
  using Operand = operand_t<S>;
  using Row = vector<Operand, Level::vector_bytes / static_cast<int>(sizeof(Operand))>;
  using Lanes = SumsOf<S, Row>;
  const auto step = [](const S& s, const typename Lanes::type& x, Row a, Row b, std::int64_t k) {
    if constexpr (sums_powers<S>)
      if (s.has_short_powers()) return host::step_on<true>(s, x, a, b, k);
    return host::step_on<false>(s, x, a, b, k);
  };
  for (std::int64_t l = 0; l < g.batch; ++l) {
    const S s = g.semiring(l);
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        const Place at{l, i, j, g.c_offset(l, i, j), 1, false};
        typename S::accumulator x = S::identity();
        if (g.accumulate) start_row<Level>(s, g.finish, &x, 1, g.c, at);
        typename Lanes::type all = Lanes::all(x);
        for (std::int64_t k = 0; k < g.k; ++k)
          all = step(s, all, splat<Row>(static_cast<Operand>(g.a.at(l, i, k))),
                     splat<Row>(static_cast<Operand>(g.b.at(l, k, j))), k);
        x = Lanes::get(all, 0);
        store_row<Level>(s, g.finish, &x, 1, g.c, at);
      }
  }
}

}  // namespace rigel::backends::host

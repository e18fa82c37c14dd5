// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The portable family's kernels for devices, on a host: what they compute needs no GPU. The reference kernel's
// bits are expected; operands are such that no sum rounds.
#include <rigel/config.hpp>
#if RIGEL_BACKEND_PORTABLE
#include <rigel/backends/portable/contract.hpp>
#include <rigel/contract.hpp>

#include <tests/support/team.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace {

namespace portable = rigel::backends::portable;
using Host = Kokkos::DefaultHostExecutionSpace;
using support::run;

template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutStride, Kokkos::HostSpace>;

// `gap` is what a line of memory has in addition to its elements.
template <class T>
Matrix<T> matrix(int rows, int columns, bool by_rows, int gap) {
  const int line = (by_rows ? columns : rows) + gap;
  return Matrix<T>("m", Kokkos::LayoutStride(rows, by_rows ? line : 1, columns, by_rows ? 1 : line));
}

struct Shape {
  int m, n, k;
};

struct Layouts {
  bool a_by_rows, b_by_rows, c_by_rows;
  int gap;
};

// A value that is exact in each type, and positive; all bits of a word.
template <class T>
T value(int i, int j, int salt) {
  const std::uint64_t x = (static_cast<std::uint64_t>(131 * i + 17 * j + salt) + 1) * 0x9e3779b97f4a7c15;
  if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(x ^ x >> 29);
  else if constexpr (rigel::ShortFloat<T>)
    return static_cast<T>(static_cast<float>(x >> 58) * 0.37f);
  else
    return static_cast<T>(x >> 59);
}

// Runs each kernel of S on one problem.
template <class S, class Result>
void check(Shape e, Layouts layouts, bool accumulate) {
  using T = typename S::element;
  using Finish = rigel::detail::ProgramFinish;
  using Chain = portable::TileChain<S>;
  INFO("of ", S::name, ", ", sizeof(T), " bytes: ", e.m, " x ", e.n, " x ", e.k, ", layouts ", layouts.a_by_rows,
       layouts.b_by_rows, layouts.c_by_rows, ", gap ", layouts.gap, ", accumulate ", accumulate);
  const auto a = matrix<T>(e.m, e.k, layouts.a_by_rows, layouts.gap),
             b = matrix<T>(e.k, e.n, layouts.b_by_rows, layouts.gap);
  for (int i = 0; i < e.m; ++i)
    for (int k = 0; k < e.k; ++k) a(i, k) = value<T>(i, k, 3);
  for (int k = 0; k < e.k; ++k)
    for (int j = 0; j < e.n; ++j) b(k, j) = value<T>(k, j, 7);
  const auto start = [&] {
    auto c = matrix<Result>(e.m, e.n, layouts.c_by_rows, layouts.gap);
    for (int i = 0; i < e.m; ++i)
      for (int j = 0; j < e.n; ++j) c(i, j) = static_cast<Result>(static_cast<float>((3 * i + j) % 11));
    return c;
  };
  const auto expected = start();
  rigel::contract(Host{}, S{}, a, b, expected, rigel::epilogue::Program{},
                  {.accumulate = accumulate, .kernel = "reference"});
  Host{}.fence();
  const auto compare = [&](const char* kernel, const auto& launch) {
    const auto c = start();
    const auto problem = rigel::problem_of(Host{}, S{}, a, b, c, rigel::epilogue::Program{}, {.accumulate = accumulate});
    launch(static_cast<const rigel::Contraction&>(problem));
    int wrong = 0;
    for (int i = 0; i < e.m; ++i)
      for (int j = 0; j < e.n; ++j) wrong += !(c(i, j) == expected(i, j));
    CHECK_MESSAGE(wrong == 0, kernel);
  };

  const auto join = [&](const rigel::Contraction& p, portable::Slices slices, typename S::accumulator* sums, bool joins) {
    using Work = portable::SplitKWork<S, Finish>;
    run(Work{rigel::detail::arguments_of<S, Finish>(p), portable::SliceBlocks::of(p), slices, sums, joins},
        portable::SplitK::threads, Work::bytes + Work::alignment);
  };
  const auto sums_of = [&](const rigel::Contraction& p, portable::Slices slices) {
    return std::vector<std::byte>(portable::slices_workspace<S>(p, slices) + sizeof(typename S::accumulator));
  };
  const auto tiles = [&]<class Tile>(const rigel::Contraction& p, portable::Slices slices) {
    using Work = portable::TileWork<Tile, S, Finish, Chain>;
    const portable::TileOrder order{(p.m + Tile::m - 1) / Tile::m, (p.n + Tile::n - 1) / Tile::n};
    auto workspace = sums_of(p, slices);
    auto* const sums = reinterpret_cast<typename S::accumulator*>(workspace.data());
    run(Work{rigel::detail::arguments_of<S, Finish>(p), order, order.rows * order.columns, portable::SliceBlocks::of(p),
             slices, sums},
        Tile::threads, Work::bytes + Work::alignment);
    if (slices.count > 1) join(p, slices, sums, true);
  };
  using Large = portable::LargeShape<Host, S>;
  using Small = portable::SmallShape<Host, S>;
  compare("large tiles", [&](const rigel::Contraction& p) { tiles.template operator()<Large>(p, {1, p.k}); });
  compare("small tiles", [&](const rigel::Contraction& p) { tiles.template operator()<Small>(p, {1, p.k}); });
  compare("narrow", [&](const rigel::Contraction& p) {
    using Work = portable::NarrowWork<S, Finish>;
    const portable::NarrowShape shape = portable::narrow_shape_of<S>(p);
    const Work work{rigel::detail::arguments_of<S, Finish>(p), shape, shape.tiles_m(p), shape.tiles_n(p), shape.teams(p)};
    run(work, 1 << shape.threads(), work.bytes() + Work::alignment);
  });
  if (e.m * e.n > 1000 || (accumulate && rigel::detail::exact_counts<S> > 0)) return;
  compare("tiles of slices", [&](const rigel::Contraction& p) {
    constexpr int unit = Small::depth * Chain::packed;
    tiles.template operator()<Small>(p, portable::cut_k(p.k, 3, unit, unit));
  });
  compare("split_k", [&](const rigel::Contraction& p) { join(p, {1, p.k}, nullptr, false); });
  compare("split_k in slices", [&](const rigel::Contraction& p) {
    const portable::Slices slices = portable::cut_k(p.k, 3, 32, 32);
    auto workspace = sums_of(p, slices);
    auto* const sums = reinterpret_cast<typename S::accumulator*>(workspace.data());
    join(p, slices, sums, false);
    if (slices.count > 1) join(p, slices, sums, true);
  });
}

// Extents that fill no tile, K in whole and in partial slabs, operands by rows and by columns, words aligned and not.
template <class S, class Result = typename S::accumulator>
void check_all() {
  for (const Shape e : {Shape{1, 1, 1}, {5, 3, 129}, {33, 3, 150}, {35, 33, 75}})
    for (const Layouts layouts : {Layouts{true, false, true, 0}, {false, true, false, 5}})
      check<S, Result>(e, layouts, false);
  if constexpr (rigel::can_accumulate<S>) check<S, Result>({34, 9, 80}, {true, true, true, 8}, true);
  check<S, Result>({2, 3, 0}, {true, true, true, 1}, false);
}

}  // namespace

TEST_CASE("portable teams: numbers") {
  check_all<rigel::plus_times<float>>();
  check_all<rigel::min_plus<double>>();
  check_all<rigel::l1<std::int8_t>>();
  check_all<rigel::hamming<float>>();
}

TEST_CASE("portable teams: 16-bit accumulators") {
  check_all<rigel::min_plus<rigel::half, rigel::half>>();
  check_all<rigel::max_plus<rigel::bfloat16, rigel::bfloat16>>();
  check_all<rigel::max_min<rigel::bfloat16, rigel::bfloat16>>();
  check_all<rigel::min_plus<std::int16_t, std::int16_t>>();
}

TEST_CASE("portable teams: codes") {
  check_all<rigel::bit_hamming<std::uint8_t>>();
  check_all<rigel::bit_hamming<std::uint32_t>>();
  check_all<rigel::bit_hamming<std::uint64_t>>();
  check_all<rigel::bit_jaccard<std::uint8_t>, float>();
  check_all<rigel::bit_jaccard<std::uint32_t>, float>();
  check_all<rigel::bit_jaccard<std::uint64_t>, float>();
}
#endif

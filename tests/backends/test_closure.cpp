// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure(): compared with SciPy on a small graph and with plain elimination on many; every path is followed arc by arc.
#include "../support/error.hpp"
#include "../support/layouts.hpp"
#include "../support/random.hpp"
#include "../support/spaces.hpp"

#include <rigel/closure.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
using support::Random, support::download, support::upload;

// n × n, row by row, on the host.
template <class T>
using Square = std::vector<T>;

// A square matrix of a layout.
template <class T, class Exec, class Layout = Kokkos::LayoutRight>
auto square(std::int64_t n) {
  return support::laid_out<T, Exec, Layout>(n, n);
}

template <class S>
using element_of = typename S::element;

// The closure by textbook elimination, vertex after vertex, in the semiring's own numbers.
template <class S>
Square<element_of<S>> textbook(const S& s, Square<element_of<S>> d, std::int64_t n) {
  using A = typename S::accumulator;
  const auto none = rigel::detail::convert<element_of<S>>(A(S::identity()));
  const auto merge = [&](element_of<S>& x, A y) { x = rigel::detail::convert<element_of<S>>(s.add(static_cast<A>(x), y)); };
  for (std::int64_t i = 0; i < n; ++i) merge(d[i * n + i], S::one());
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        if (d[i * n + k] != none && d[k * n + j] != none)
          merge(d[i * n + j], s.multiply(static_cast<A>(d[i * n + k]), static_cast<A>(d[k * n + j])));
  return d;
}

// A random graph: arcs with the given probability, weights drawn by `weight`.
template <class S, class Weight>
Square<element_of<S>> random_graph(Random& random, std::int64_t n, double density, const Weight& weight) {
  Square<element_of<S>> d(n * n, rigel::detail::convert<element_of<S>>(S::identity()));
  for (auto& x : d)
    if (random.chance(density)) x = element_of<S>(weight());
  return d;
}

template <class T>
std::int64_t differences(const Square<T>& x, const Square<T>& y) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += !(x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]));
  return count;
}

template <class Exec, class Layout, class S, class Weight>
void against_textbook(const S& s, std::int64_t n, std::int64_t block, double density, const Weight& weight) {
  const std::uint64_t seed = 1000 * n + block;
  CAPTURE(seed);
  CAPTURE(std::string(S::name));
  Random random(seed);
  const auto graph = random_graph<S>(random, n, density, [&] { return weight(random); });
  const auto d = square<element_of<S>, Exec, Layout>(n);
  upload(d, graph);
  const auto report = rigel::closure(Exec(), s, d, {.block = block});
  CHECK_FALSE(report.negative_cycle);
  CHECK(differences(download(d), textbook(s, graph, n)) == 0);
}

// SciPy 1.17, scipy.sparse.csgraph.floyd_warshall(W, return_predecessors=True); Johnson's algorithm gives the same.
const std::vector<double> scipy_weights = {inf, 7,   inf, 2,   inf, inf, inf,  //
                                           inf, inf, -3,  inf, 4,   inf, inf,  //
                                           inf, inf, inf, 6,   inf, 1.5, inf,  //
                                           inf, 3,   8,   inf, inf, inf, inf,  //
                                           0.5, inf, inf, -1,  inf, 2,   inf,  //
                                           inf, inf, inf, inf, 5,   inf, inf,  //
                                           inf, 9,   inf, inf, inf, -2,  inf};
const std::vector<double> scipy_distances = {0,   5,   2,  2,   8.5, 3.5,  inf,  //
                                             4,   0,   -3, 2.5, 3.5, -1.5, inf,  //
                                             7,   8.5, 0,  5.5, 6.5, 1.5,  inf,  //
                                             7,   3,   0,  0,   6.5, 1.5,  inf,  //
                                             0.5, 2,   -1, -1,  0,   0.5,  inf,  //
                                             5.5, 7,   4,  4,   5,   0,    inf,  //
                                             3.5, 5,   2,  2,   3,   -2,   0};
const std::vector<int> scipy_predecessors = {-1, 3,  1,  0,  5,  2,  -1,  //
                                             4,  -1, 1,  4,  5,  2,  -1,  //
                                             4,  3,  -1, 4,  5,  2,  -1,  //
                                             4,  3,  1,  -1, 5,  2,  -1,  //
                                             4,  3,  1,  4,  -1, 2,  -1,  //
                                             4,  3,  1,  4,  5,  -1, -1,  //
                                             4,  3,  1,  4,  5,  6,  -1};

template <class T>
Square<T> as(const std::vector<double>& values) {
  Square<T> list;
  for (const double v : values) list.push_back(T(v));
  return list;
}

// Follows P from every j back to i, arc by arc. Returns the number of pairs whose path is broken, has a cycle, or does not add
// up to D(i,j). `tolerance` is relative.
template <class S>
std::int64_t broken_paths(const S& s, const Square<element_of<S>>& graph, const Square<element_of<S>>& d,
                          const Square<int>& p, std::int64_t n, double tolerance = 0) {
  using A = typename S::accumulator;
  std::int64_t broken = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      if (i == j || d[i * n + j] == S::identity()) {
        broken += p[i * n + j] != -1;
        continue;
      }
      A length = S::one();
      std::int64_t at = j, arcs = 0;
      bool good = true;
      while (good && at != i) {
        const int before = p[i * n + at];
        good = before >= 0 && before < n && ++arcs < n && graph[before * n + at] != S::identity();
        if (!good) break;
        length = s.multiply(graph[before * n + at], length);
        at = before;
      }
      const double expected = static_cast<double>(d[i * n + j]), found = static_cast<double>(length);
      broken += !good || !(found == expected || std::abs(found - expected) <= tolerance * std::abs(expected));
    }
  return broken;
}

template <class Exec, class S>
void check_paths(const S& s, const Square<element_of<S>>& graph, std::int64_t n, std::int64_t block, double tolerance = 0) {
  CAPTURE(n);
  CAPTURE(block);
  const auto d = square<element_of<S>, Exec>(n);
  const auto p = square<int, Exec, Kokkos::LayoutLeft>(n);
  upload(d, graph);
  CHECK_FALSE(rigel::closure(Exec(), s, d, p, {.block = block}).negative_cycle);
  const auto lengths = download(d);
  CHECK(broken_paths(s, graph, lengths, download(p), n, tolerance) == 0);
  if (tolerance == 0) CHECK(differences(lengths, textbook(s, graph, n)) == 0);
}

// A user's semiring of integers. Widest paths: 0 absorbs, which annihilator() states.
struct Widest {
  using element = std::int32_t;
  using accumulator = std::int32_t;
  static constexpr bool idempotent = true, selective = true, exact = true;
  KOKKOS_FUNCTION static constexpr std::int32_t identity() { return 0; }
  KOKKOS_FUNCTION static constexpr std::int32_t annihilator() { return 0; }
  KOKKOS_FUNCTION static constexpr std::int32_t one() { return std::numeric_limits<std::int32_t>::max(); }
  KOKKOS_FUNCTION static std::int32_t multiply(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
  KOKKOS_FUNCTION static std::int32_t add(std::int32_t x, std::int32_t y) { return x > y ? x : y; }
};
// Paths whose largest arc is smallest: the largest number absorbs, which is_no_path() states.
template <class T>
struct Bottleneck {
  using element = T;
  using accumulator = T;
  static constexpr bool idempotent = true, selective = true, exact = true;
  KOKKOS_FUNCTION static constexpr T identity() { return std::numeric_limits<T>::max(); }
  KOKKOS_FUNCTION static constexpr bool is_no_path(T x) { return x == identity(); }
  KOKKOS_FUNCTION static constexpr T one() { return 0; }
  KOKKOS_FUNCTION static T multiply(T a, T b) { return a > b ? a : b; }
  KOKKOS_FUNCTION static T add(T x, T y) { return x < y ? x : y; }
};
// Shortest paths with a special infinity, which does not absorb.
struct Penalised {
  using element = std::int32_t;
  using accumulator = std::int32_t;
  static constexpr bool idempotent = true, selective = true, exact = true;
  KOKKOS_FUNCTION static constexpr std::int32_t identity() { return 1000; }
  KOKKOS_FUNCTION static constexpr bool is_no_path(std::int32_t x) { return x > 900; }
  KOKKOS_FUNCTION static constexpr std::int32_t one() { return 0; }
  KOKKOS_FUNCTION static std::int32_t multiply(std::int32_t a, std::int32_t b) { return a + b; }
  KOKKOS_FUNCTION static std::int32_t add(std::int32_t x, std::int32_t y) { return x < y ? x : y; }
};

// Reachability of bools.
struct Reachable {
  using element = bool;
  using accumulator = bool;
  static constexpr bool idempotent = true, exact = true;
  KOKKOS_FUNCTION static constexpr bool identity() { return false; }
  KOKKOS_FUNCTION static constexpr bool annihilator() { return false; }
  KOKKOS_FUNCTION static constexpr bool one() { return true; }
  KOKKOS_FUNCTION static bool multiply(bool a, bool b) { return a && b; }
  KOKKOS_FUNCTION static bool add(bool x, bool y) { return x || y; }
};

// Shortest paths in which no path stays so, whatever follows it.
struct Careful {
  using element = float;
  using accumulator = float;
  static constexpr bool idempotent = true, selective = true;
  KOKKOS_FUNCTION static constexpr float identity() { return std::numeric_limits<float>::infinity(); }
  KOKKOS_FUNCTION static constexpr float annihilator() { return identity(); }
  KOKKOS_FUNCTION static constexpr float one() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a == identity() || b == identity() ? identity() : a + b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x != x || x < y ? x : y; }
};
// Least products, by a functor that does not say whether its identity absorbs.
struct LeastProduct {
  using element = float;
  using accumulator = float;
  static constexpr bool idempotent = true, selective = true;
  KOKKOS_FUNCTION static constexpr float identity() { return std::numeric_limits<float>::infinity(); }
  KOKKOS_FUNCTION static constexpr float one() { return 1; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a * b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x != x || x < y ? x : y; }
};

// The kernels that close a graph on Exec, with predecessors or without.
template <class Exec>
std::vector<std::string> closing_kernels(bool tracks) {
  std::vector<std::string> names = {"", "reference", "portable", support::on_host<Exec> ? "host" : "cuda.simt"};
  if (!tracks) names.emplace_back("closure.small");
  return names;
}

// Closes a graph by blocks of several sizes and by every kernel, with predecessors and without, and compares with the expected paths.
template <class Exec, class S>
void check_closure(const S& s, const Square<element_of<S>>& graph, std::int64_t n, const Square<element_of<S>>& paths,
                   const Square<int>& before) {
  CAPTURE(rigel::semiring_name<S>());
  const auto d = square<element_of<S>, Exec>(n);
  const auto p = square<int, Exec, Kokkos::LayoutLeft>(n);
  for (const bool tracks : {false, true})
    for (const std::string& kernel : closing_kernels<Exec>(tracks))
      for (const std::int64_t block : {1, 2, 3, 4, 64}) {
        CAPTURE(tracks);
        CAPTURE(kernel);
        CAPTURE(block);
        upload(d, graph);
        const rigel::ClosureOptions options{.block = block, .kernel = kernel};
        const auto report = tracks ? rigel::closure(Exec(), s, d, p, options) : rigel::closure(Exec(), s, d, options);
        CHECK_FALSE(report.negative_cycle);
        CHECK(differences(download(d), paths) == 0);
        if (tracks) CHECK(download(p) == before);
      }
}

// Arcs 0 → 1 and 1 → 0, and whatever the graph holds for no arc; `sign` is −1 for longest paths.
template <class Exec, class S>
void check_no_paths(int sign, const std::vector<element_of<S>>& nones) {
  using T = element_of<S>;
  const T to = static_cast<T>(7 * sign), back = static_cast<T>(-3 * sign), none = S::identity();
  const Square<T> paths = {0,    to,   none, none,  //
                           back, 0,    none, none,  //
                           none, none, 0,    none,  //
                           none, none, none, 0};
  const Square<int> before = {-1, 0, -1, -1, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  for (const T x : nones) {
    CAPTURE(x);
    Square<T> graph(16, x);
    graph[1] = to;
    graph[4] = back;
    check_closure<Exec>(S{}, graph, 4, paths, before);
  }
}

// Checks graphs with arcs of the listed weights against textbook elimination, with and without predecessors.
template <class Exec, class S>
void check_others(const std::vector<element_of<S>>& weights) {
  using T = element_of<S>;
  for (const std::int64_t n : {5, 70}) {
    CAPTURE(n);
    Random random(n);
    const auto graph =
        random_graph<S>(random, n, 1.5 / static_cast<double>(n), [&] { return weights[random.next() % weights.size()]; });
    for (const std::int64_t block : {3, 64}) {
      check_paths<Exec>(S{}, graph, n, block);
      const auto d = square<T, Exec>(n);
      upload(d, graph);
      rigel::closure(Exec(), S{}, d, {.block = block});
      CHECK(differences(download(d), textbook(S{}, graph, n)) == 0);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("closure of a small graph equals SciPy's", Exec, RIGEL_TEST_SPACES) {
  for (const int block : {1, 2, 3, 7, 64}) {
    CAPTURE(block);
    const auto d = square<double, Exec>(7);
    upload(d, scipy_weights);
    CHECK_FALSE(rigel::closure(Exec(), rigel::min_plus<double>{}, d, {.block = block}).negative_cycle);
    CHECK(download(d) == scipy_distances);

    const auto f = square<float, Exec, Kokkos::LayoutLeft>(7);
    const auto p = square<int, Exec>(7);
    upload(f, as<float>(scipy_weights));
    CHECK_FALSE(rigel::closure(Exec(), rigel::min_plus<float>{}, f, p, {.block = block}).negative_cycle);
    CHECK(download(f) == as<float>(scipy_distances));
    CHECK(download(p) == scipy_predecessors);
  }
}

TEST_CASE_TEMPLATE("closure equals the textbook's elimination", Exec, RIGEL_TEST_SPACES) {
  using Right = Kokkos::LayoutRight;
  using Left = Kokkos::LayoutLeft;
  using Stride = Kokkos::LayoutStride;
  const auto weight = [](Random& r) { return static_cast<float>(r.integer(0, 50)); };
  for (const std::int64_t n : {1, 2, 5, 63, 64, 65, 131})
    for (const std::int64_t block : {7, 64}) {
      against_textbook<Exec, Right>(rigel::min_plus<float>{}, n, block, 0.1, weight);
      against_textbook<Exec, Left>(rigel::min_plus<float>{}, n, block, 0.1, weight);
      against_textbook<Exec, Stride>(rigel::min_plus<float>{}, n, block, 0.1, weight);
      against_textbook<Exec, Stride>(rigel::max_min<float>{}, n, block, 0.05, weight);
    }
  for (const std::int64_t n : {3, 67}) {
    const std::int64_t block = 32;
    against_textbook<Exec, Left>(rigel::min_plus<rigel::half>{}, n, block, 0.1, weight);
    against_textbook<Exec, Right>(rigel::min_plus<std::int32_t>{}, n, block, 0.1, weight);
    against_textbook<Exec, Left>(rigel::max_min<std::int32_t>{}, n, block, 0.1, weight);
    // Powers of two: products do not round.
    against_textbook<Exec, Right>(rigel::max_times<double>{}, n, block, 0.1,
                                  [](Random& r) { return std::ldexp(1.0, -static_cast<int>(r.integer(0, 4))); });
    against_textbook<Exec, Left>(rigel::or_and<std::uint8_t>{}, n, block, 0.02, [](Random&) { return 1; });
    against_textbook<Exec, Right>(rigel::or_and<std::uint32_t>{}, n, block, 0.05,
                                  [](Random& r) { return static_cast<std::uint32_t>(r.next() & r.next() & r.next()); });
  }
}

TEST_CASE_TEMPLATE("closure of longest paths in a graph without cycles", Exec, RIGEL_TEST_SPACES) {
  const std::int64_t n = 40;
  using S = rigel::max_plus<float>;
  Random random(5);
  auto graph = random_graph<S>(random, n, 0.3, [&] { return static_cast<float>(random.integer(-9, 9)); });
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) graph[i * n + j] = S::identity();
  const auto d = square<float, Exec>(n);
  upload(d, graph);
  CHECK_FALSE(rigel::closure(Exec(), S{}, d, {.block = 16}).negative_cycle);
  CHECK(differences(download(d), textbook(S{}, graph, n)) == 0);
}

TEST_CASE_TEMPLATE("closure of nothing", Exec, RIGEL_TEST_SPACES) {
  const auto d = square<float, Exec>(0);
  CHECK_FALSE(rigel::closure(Exec(), rigel::min_plus<float>{}, d).negative_cycle);
  const Kokkos::View<float***, typename Exec::memory_space> none("none", 0, 4, 4);
  CHECK_FALSE(rigel::closure(Exec(), rigel::min_plus<float>{}, none).negative_cycle);
}

TEST_CASE_TEMPLATE("closure of a batch, its index first or last", Exec, RIGEL_TEST_SPACES) {
  constexpr std::int64_t batches = 3, n = 21;
  using S = rigel::min_plus<float>;
  Random random(9);
  const auto run = [&](const auto& d, const auto& p, rigel::Batch order) {
    const auto d_host = Kokkos::create_mirror_view(d);
    const auto p_host = Kokkos::create_mirror_view(p);
    const auto at = [&](auto& v, std::int64_t l, std::int64_t i, std::int64_t j) -> auto& {
      return order == rigel::Batch::first ? v(l, i, j) : v(i, j, l);
    };
    std::vector<Square<float>> graphs;
    for (std::int64_t l = 0; l < batches; ++l) {
      graphs.push_back(random_graph<S>(random, n, 0.1, [&] { return static_cast<float>(random.integer(0, 9)); }));
      for (std::int64_t e = 0; e < n * n; ++e) at(d_host, l, e / n, e % n) = graphs[l][e];
    }
    Kokkos::deep_copy(d, d_host);
    CHECK_FALSE(rigel::closure(Exec(), S{}, d, p, {.block = 8, .batch = order}).negative_cycle);
    Kokkos::deep_copy(d_host, d);
    Kokkos::deep_copy(p_host, p);
    for (std::int64_t l = 0; l < batches; ++l) {
      Square<float> lengths(n * n);
      Square<int> predecessors(n * n);
      for (std::int64_t e = 0; e < n * n; ++e) {
        lengths[e] = at(d_host, l, e / n, e % n);
        predecessors[e] = at(p_host, l, e / n, e % n);
      }
      CHECK(differences(lengths, textbook(S{}, graphs[l], n)) == 0);
      CHECK(broken_paths(S{}, graphs[l], lengths, predecessors, n) == 0);
    }
  };
  using Space = typename Exec::memory_space;
  run(Kokkos::View<float***, Kokkos::LayoutRight, Space>("d", batches, n, n),
      Kokkos::View<int***, Kokkos::LayoutLeft, Space>("p", batches, n, n), rigel::Batch::first);
  run(Kokkos::View<float***, Kokkos::LayoutLeft, Space>("d", n, n, batches),
      Kokkos::View<int***, Kokkos::LayoutLeft, Space>("p", n, n, batches), rigel::Batch::last);
}

TEST_CASE_TEMPLATE("every path can be followed", Exec, RIGEL_TEST_SPACES) {
  for (const std::int64_t n : {2, 17, 64, 150})
    for (const std::int64_t block : {5, 64}) {
      const std::uint64_t seed = 31 * n + block;
      CAPTURE(seed);
      Random random(seed);
      const auto few = [&] { return static_cast<float>(random.integer(0, 2)); };
      SUBCASE("many ties, many cycles of weight 0") {
        check_paths<Exec>(rigel::min_plus<float>{}, random_graph<rigel::min_plus<float>>(random, n, 0.1, few), n, block);
      }
      SUBCASE("all weights 0") {
        const auto graph = random_graph<rigel::min_plus<float>>(random, n, 0.1, [] { return 0.f; });
        check_paths<Exec>(rigel::min_plus<float>{}, graph, n, block);
      }
      SUBCASE("widest paths, where ties are the rule") {
        check_paths<Exec>(rigel::max_min<float>{}, random_graph<rigel::max_min<float>>(random, n, 0.1, few), n, block);
      }
      SUBCASE("negative weights and cycles of weight 0: w(i,j) + h(i) − h(j)") {
        auto graph = random_graph<rigel::min_plus<float>>(random, n, 0.1, few);
        std::vector<float> height(n);
        for (auto& h : height) h = static_cast<float>(random.integer(-20, 20));
        for (std::int64_t e = 0; e < n * n; ++e) graph[e] += height[e / n] - height[e % n];
        check_paths<Exec>(rigel::min_plus<float>{}, graph, n, block);
      }
      SUBCASE("sums that round") {
        const auto graph = random_graph<rigel::min_plus<float>>(
            random, n, 0.1, [&] { return random.chance(0.3) ? 0.f : static_cast<float>(random.uniform(1e-9, 1)); });
        // Sums in another order: at most n roundings of 2^-24 on either side.
        check_paths<Exec>(rigel::min_plus<float>{}, graph, n, block, 2 * n * 0x1p-24);
      }
    }
}

TEST_CASE_TEMPLATE("integers: infinity stays what it is beside negative arcs", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::min_plus<std::int32_t>;
  const std::int32_t none = rigel::infinity<std::int32_t>();
  // Two parts; no arc leads from the second to the first. Heights make most arcs negative one way.
  const std::int64_t n = 70;
  Random random(3);
  auto graph = random_graph<S>(random, n, 0.2, [&] { return random.integer(0, 3); });
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      auto& w = graph[i * n + j];
      if (i >= n / 2 && j < n / 2) w = none;
      if (w != none) w += static_cast<std::int32_t>(1000 * (i - j));
    }
  const auto d = square<std::int32_t, Exec>(n);
  const auto p = square<int, Exec>(n);
  upload(d, graph);
  CHECK_FALSE(rigel::closure(Exec(), S{}, d, p, {.block = 16}).negative_cycle);
  const auto lengths = download(d);
  CHECK(broken_paths(S{}, graph, lengths, download(p), n) == 0);
  std::int64_t wrong = 0;
  for (std::int64_t i = n / 2; i < n; ++i)
    for (std::int64_t j = 0; j < n / 2; ++j) wrong += lengths[i * n + j] != none;
  CHECK(wrong == 0);

  upload(d, graph);
  rigel::closure(Exec(), S{}, d, {.block = 16});
  CHECK(differences(download(d), lengths) == 0);
}

TEST_CASE_TEMPLATE("integers: all that stands for no path is no path", Exec, RIGEL_TEST_SPACES) {
  using i16 = std::int16_t;
  using i32 = std::int32_t;
  using i64 = std::int64_t;
  // What is nearer to infinity() than to 0. −3 added to it must not become a path, nor may two of them wrap.
  check_no_paths<Exec, rigel::min_plus<i32>>(1, {2147483647, 1 << 30, (1 << 30) - 1, 999'999'999, 536'870'912});
  check_no_paths<Exec, rigel::max_plus<i32>>(-1, {-2147483647 - 1, -2147483647, -(1 << 30), -999'999'999, -536'870'912});
  constexpr i64 most = std::numeric_limits<i64>::max();
  check_no_paths<Exec, rigel::min_plus<i64>>(1, {most, most / 2 + 1, most / 4 + 1});
  check_no_paths<Exec, rigel::max_plus<i64>>(-1, {-most - 1, -most / 2 - 1, -most / 4 - 1});
  check_no_paths<Exec, rigel::min_plus<i16, i16>>(1, {32767, 16384, 8192});
  check_no_paths<Exec, rigel::max_plus<i16, i16>>(-1, {-32768, -16384, -8192});
  check_no_paths<Exec, Penalised>(1, {999, 2000, 2147483647});
}

TEST_CASE_TEMPLATE("integers: any of them in one graph, with negative arcs", Exec, RIGEL_TEST_SPACES) {
  const auto check = [](const auto& s, int sign, const std::vector<std::int32_t>& nones) {
    using S = std::decay_t<decltype(s)>;
    constexpr std::int64_t n = 70;
    Random random(41);
    auto graph = random_graph<S>(random, n, 0.05, [&] { return random.integer(0, 9); }), plain = graph;
    for (std::int64_t e = 0; e < n * n; ++e) {
      // Heights make arcs negative, but no cycle.
      const bool is_arc = graph[e] != S::identity();
      if (is_arc) plain[e] = sign * (plain[e] + static_cast<std::int32_t>(1000 * (e / n - e % n)));
      graph[e] = is_arc ? plain[e] : nones[random.next() % nones.size()];
    }
    const auto expected = textbook(s, plain, n);
    const auto d = square<std::int32_t, Exec>(n);
    const auto p = square<int, Exec>(n);
    for (const std::int64_t block : {1, 7, 64, 100}) {
      CAPTURE(block);
      upload(d, graph);
      CHECK_FALSE(rigel::closure(Exec(), s, d, {.block = block}).negative_cycle);
      CHECK(differences(download(d), expected) == 0);
      upload(d, graph);
      CHECK_FALSE(rigel::closure(Exec(), s, d, p, {.block = block}).negative_cycle);
      CHECK(differences(download(d), expected) == 0);
      CHECK(broken_paths(s, plain, expected, download(p), n) == 0);
    }
  };
  check(rigel::min_plus<std::int32_t>{}, 1, {2147483647, 1 << 30, (1 << 30) - 1, 999'999'999, 536'870'912});
  check(rigel::max_plus<std::int32_t>{}, -1, {-2147483647 - 1, -2147483647, -(1 << 30), -999'999'999, -536'870'912});
}

TEST_CASE_TEMPLATE("integers: no path is the identity alone, where the semiring says no more", Exec, RIGEL_TEST_SPACES) {
  check_others<Exec, Widest>({1, 1 << 29, 2'000'000'000});
  check_others<Exec, Bottleneck<std::int32_t>>({1, 1'500'000'000, 2'147'483'646});
  check_others<Exec, Bottleneck<std::int16_t>>({1, 20'000, 32'766});
}

TEST_CASE_TEMPLATE("integers: a semiring's own is_no_path", Exec, RIGEL_TEST_SPACES) {
  // 0 → 1 → 2, and 3 → 0. The negative arc must not make a path where there is none, as from 2.
  constexpr std::int32_t none = Penalised::identity();
  const Square<std::int32_t> graph = {none, 5,    none, none,  //
                                      none, none, -7,   none,  //
                                      none, none, none, none,  //
                                      2,    none, none, none};
  const Square<std::int32_t> expected = {0,    5,    -2, none,  //
                                         none, 0,    -7, none,  //
                                         none, none, 0,  none,  //
                                         2,    7,    0,  0};
  for (const int block : {1, 3, 64}) {
    const auto d = square<std::int32_t, Exec>(4);
    const auto p = square<int, Exec>(4);
    upload(d, graph);
    rigel::closure(Exec(), Penalised{}, d, {.block = block});
    CHECK(download(d) == expected);
    upload(d, graph);
    rigel::closure(Exec(), Penalised{}, d, p, {.block = block});
    CHECK(download(d) == expected);
    CHECK(download(p) == Square<int>{-1, 0, 1, -1, -1, -1, 1, -1, -1, -1, -1, -1, 3, 0, 1, -1});
  }
}

TEST_CASE_TEMPLATE("closure of bool", Exec, RIGEL_TEST_SPACES) {
  const std::int64_t n = 70;
  Random random(29);
  const auto graph = random_graph<rigel::or_and<std::uint8_t>>(random, n, 0.02, [] { return 1; });
  const auto expected = textbook(rigel::or_and<std::uint8_t>{}, graph, n);
  // std::vector<bool> has no data().
  const Kokkos::View<bool**, Kokkos::LayoutRight, typename Exec::memory_space> d("d", n, n);
  const auto bytes = [&](const auto& from) {
    return Kokkos::View<const bool**, Kokkos::LayoutRight, Kokkos::HostSpace>(reinterpret_cast<const bool*>(from.data()), n,
                                                                              n);
  };
  const auto check = [&](const auto& s) {
    Kokkos::deep_copy(d, bytes(graph));
    rigel::closure(Exec(), s, d, {.block = 32});
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), d);
    const bool equal = std::memcmp(host.data(), expected.data(), expected.size()) == 0;
    CHECK(equal);
  };
  check(rigel::or_and<std::uint8_t>{});
  check(Reachable{});
}

TEST_CASE_TEMPLATE("a negative cycle is reported with a vertex on it", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::min_plus<float>;
  constexpr std::int64_t n = 100;
  Random random(17);
  auto graph = random_graph<S>(random, n, 0.05, [&] { return static_cast<float>(random.integer(1, 9)); });
  const auto d = square<float, Exec>(n);
  const auto p = square<int, Exec>(n);
  const auto report_of = [&](const rigel::ClosureOptions& options) {
    upload(d, graph);
    return rigel::closure(Exec(), S{}, d, options);
  };
  CHECK_FALSE(report_of({}).negative_cycle);
  // Vertex 90 closes 20 → 90 → 33 → 20.
  graph[20 * n + 90] = -5;
  graph[90 * n + 33] = 1;
  graph[33 * n + 20] = 3;
  for (const int block : {8, 64, 100}) {
    const auto report = report_of({.block = block});
    CHECK(report.negative_cycle);
    CHECK(report.vertex == 90);
    CHECK(report.batch == 0);
    upload(d, graph);
    CHECK(rigel::closure(Exec(), S{}, d, p, {.block = block}).vertex == 90);
  }
  CHECK_FALSE(report_of({.report = false}).negative_cycle);
  graph[20 * n + 90] = -4;
  CHECK_FALSE(report_of({}).negative_cycle);
  graph[4 * n + 4] = -1;
  CHECK(report_of({}).vertex == 4);
}

TEST_CASE_TEMPLATE("NaN reaches what its arc reaches", Exec, RIGEL_TEST_SPACES) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Square<float> graph = {inf, 1,   inf, inf,  //
                               inf, inf, nan, inf,  //
                               inf, inf, inf, 1,    //
                               inf, inf, inf, inf};
  const auto d = square<float, Exec>(4);
  const auto p = square<int, Exec>(4);
  for (const int block : {1, 2, 4}) {
    upload(d, graph);
    CHECK_FALSE(rigel::closure(Exec(), rigel::min_plus<float>{}, d, {.block = block}).negative_cycle);
    CHECK(std::isnan(download(d)[0 * 4 + 2]));
    CHECK(std::isnan(download(d)[1 * 4 + 3]));
    upload(d, graph);
    rigel::closure(Exec(), rigel::min_plus<float>{}, d, p, {.block = block});
    CHECK(std::isnan(download(d)[0 * 4 + 3]));
  }
  // ∞ + NaN is NaN: one NaN reaches all.
  const Square<float> all(16, nan);
  const Square<int> none(16, -1);
  check_closure<Exec>(rigel::min_plus<float>{}, graph, 4, all, none);
  // An arc from a vertex to itself is on every path through it.
  for (int vertex = 0; vertex < 4; ++vertex) {
    CAPTURE(vertex);
    Square<float> loop(16, 2);
    loop[vertex * 5] = nan;
    check_closure<Exec>(rigel::min_plus<float>{}, loop, 4, all, none);
    check_closure<Exec>(rigel::max_min<float>{}, loop, 4, all, none);
    check_closure<Exec>(rigel::min_times<float>{}, loop, 4, all, none);
  }
}

TEST_CASE_TEMPLATE("NaN on the diagonal reaches the paths through it", Exec, RIGEL_TEST_SPACES) {
  // 3 → 0 → 1 → 2, and NaN on 1, of semirings whose no path stays so: in every order of the vertices.
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto check = [&](const auto& s, float one) {
    constexpr float none = std::numeric_limits<float>::infinity();
    const Square<float> graph = {none, 2,    none, none,  //
                                 none, nan,  3,    none,  //
                                 none, none, none, none,  //
                                 5,    none, none, none};
    const Square<float> paths = {one,  nan,  nan, none,  //
                                 none, nan,  nan, none,  //
                                 none, none, one, none,  //
                                 5,    nan,  nan, one};
    std::vector<int> place = {0, 1, 2, 3};
    do {
      CAPTURE(place);
      Square<float> arcs(16), expected(16);
      Square<int> before(16, -1);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
          arcs[place[i] * 4 + place[j]] = graph[i * 4 + j];
          expected[place[i] * 4 + place[j]] = paths[i * 4 + j];
        }
      before[place[3] * 4 + place[0]] = place[3];
      check_closure<Exec>(s, arcs, 4, expected, before);
    } while (std::next_permutation(place.begin(), place.end()));
  };
  check(Careful{}, 0);
  check(rigel::min_times<float>{}, 1);
}

TEST_CASE_TEMPLATE("closure of products: an arc of 0, and arcs that are missing", Exec, RIGEL_TEST_SPACES) {
  // 3 → 0 → 1 → 2.
  const auto check = [](const auto& s, float first, float second, float product) {
    using T = element_of<std::decay_t<decltype(s)>>;
    const T none = rigel::infinity<T>(), one = T(1.f), half = T(0.5f), a = T(first), b = T(second), ab = T(product);
    const Square<T> graph = {none, a,    none, none,  //
                             none, none, b,    none,  //
                             none, none, none, none,  //
                             half, none, none, none};
    const Square<T> paths = {one,
                             a,
                             ab,
                             none,  //
                             none,
                             one,
                             b,
                             none,  //
                             none,
                             none,
                             one,
                             none,  //
                             half,
                             T(first / 2),
                             T(product / 2),
                             one};
    check_closure<Exec>(s, graph, 4, paths, {-1, 0, 1, -1, -1, -1, 1, -1, -1, -1, -1, -1, 3, 0, 1, -1});
  };
  check(rigel::min_times<float>{}, 0, 2, 0);
  check(rigel::min_times<float>{}, 0x1p-100f, 0x1p-100f, 0);  // 2^-200, below the least float
  check(rigel::min_times<double>{}, 0, 2, 0);
  check(rigel::min_times<rigel::half>{}, 0, 2, 0);
  check(LeastProduct{}, 0, 2, 0);

  // Powers of two, whose products do not round, along ascending vertices; a fifth of the arcs is 0.
  using S = rigel::min_times<float>;
  constexpr std::int64_t n = 70;
  Random random(43);
  auto graph = random_graph<S>(
      random, n, 0.1, [&] { return random.chance(0.2) ? 0.f : std::ldexp(1.f, static_cast<int>(random.integer(0, 1))); });
  for (std::int64_t e = 0; e < n * n; ++e)
    if (e % n <= e / n) graph[e] = S::identity();
  for (const std::int64_t block : {7, 64, 100}) check_paths<Exec>(S{}, graph, n, block);

  // A cycle with such an arc is better than the empty path.
  const auto d = square<float, Exec>(2);
  upload(d, Square<float>{rigel::infinity<float>(), 0, 3, rigel::infinity<float>()});
  CHECK(rigel::closure(Exec(), S{}, d).vertex == 1);
}

TEST_CASE_TEMPLATE("closure with the caller's workspace, and with a named kernel", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::min_plus<float>;
  constexpr std::int64_t n = 90;
  Random random(23);
  const auto graph = random_graph<S>(random, n, 0.1, [&] { return static_cast<float>(random.uniform(0, 1)); });
  const auto d = square<float, Exec>(n);
  upload(d, graph);
  rigel::closure(Exec(), S{}, d, {.kernel = "reference"});
  const auto expected = download(d);
  for (const char* kernel : {"", "portable"}) {
    rigel::ClosureOptions options{.kernel = kernel};
    const std::size_t bytes = rigel::closure_workspace_size(Exec(), S{}, d, options);
    const Kokkos::View<char*, typename Exec::memory_space> memory("workspace", bytes + 256);
    const auto aligned = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
    options.workspace = {reinterpret_cast<void*>(aligned), bytes};
    upload(d, graph);
    rigel::closure(Exec(), S{}, d, options);
    CHECK(differences(download(d), expected) == 0);

    options.workspace.bytes = bytes - 1;
    upload(d, graph);
    CHECK(support::caught([&] { rigel::closure(Exec(), S{}, d, options); }).message ==
          "closure: the workspace has " + std::to_string(bytes - 1) + " bytes, expected " + std::to_string(bytes));
    CHECK(download(d) == graph);
    // A workspace in which D itself lies: nothing is written.
    const std::size_t room = bytes + n * n * sizeof(float);
    const Kokkos::View<char*, typename Exec::memory_space> shared("shared", room + 256);
    auto* const first = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(shared.data()) + 255) / 256 * 256);
    using Inside = Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
    const Inside inside(reinterpret_cast<float*>(first), n, n);
    Kokkos::deep_copy(inside, d);
    options.workspace = {first, room};
    CHECK(support::caught([&] {
            rigel::closure(Exec(), S{}, inside, options);
          }).lacks({"closure: the workspace", "overlaps D", "90x90"}) == "");
    CHECK(download(inside) == graph);
  }
  CHECK_THROWS_AS(rigel::closure(Exec(), S{}, d, {.kernel = "no.such.kernel"}), rigel::Error);
  CHECK(download(d) == graph);
}

TEST_CASE("closure says what is wrong with a semiring") {
  struct Apart : Widest {
    static constexpr int annihilator() { return -1; }
  };
  struct Denied : Bottleneck<int> {
    static constexpr bool is_no_path(int x) { return x < 0; }
  };
  const Kokkos::DefaultHostExecutionSpace exec;
  const Kokkos::View<int**, Kokkos::HostSpace> roads("roads", 4, 4);
  const auto apart = support::caught([&] { rigel::closure(exec, Apart{}, roads); });
  CHECK(apart.code == rigel::Code::invalid_argument);
  CHECK(apart.lacks({"closure: annihilator() of semiring '", "Apart", "is not its identity()", "is_no_path()"}) == "");
  const auto denied = support::caught([&] { rigel::closure(exec, Denied{}, roads); });
  CHECK(denied.code == rigel::Code::invalid_argument);
  CHECK(denied.lacks({"closure: is_no_path(identity()) of semiring '", "Denied", "expected true"}) == "");
}

TEST_CASE("closure says what is wrong") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Exec::memory_space>;
  const rigel::min_plus<float> s;
  const Exec exec;
  const Matrix oblong("roads", 3, 4), roads("roads", 4, 4);
  CHECK(support::caught([&] { rigel::closure(exec, s, oblong); }).message ==
        "closure: D 'roads' is 3x4, expected a square matrix");
  const Kokkos::View<int**, Exec::memory_space> p("before", 4, 3);
  CHECK(support::caught([&] { rigel::closure(exec, s, roads, p); }).message ==
        "closure: P 'before' is 4x3, expected 4x4 as D 'roads'");
  const rigel::min_plus<int> whole;
  const Kokkos::View<int**, Exec::memory_space> both("both", 4, 4);
  CHECK(support::caught([&] { rigel::closure(exec, whole, both, both); }).message ==
        "closure: D 'both' 4x4 overlaps P 'both' 4x4, expected distinct elements");
  CHECK(support::caught([&] { rigel::closure(exec, s, roads, {.block = 0}); }).message ==
        "closure: options.block is 0, expected at least 1");
  const Kokkos::View<signed char**, Exec::memory_space> narrow("before", 200, 200);
  const Matrix large("roads", 200, 200);
  CHECK(support::caught([&] { rigel::closure(exec, s, large, narrow); }).message ==
        "closure: P 'before' holds integers too narrow for 200 vertices");
  const Kokkos::View<float**, Kokkos::LayoutStride, Exec::memory_space> folded(roads.data(),
                                                                               Kokkos::LayoutStride(3, 1, 3, 1));
  CHECK_THROWS_AS(rigel::closure(exec, s, folded), rigel::Error);
}

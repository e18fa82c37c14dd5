// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results of semirings from text against the compiled semirings: the same bits where both are one chain of the same operations.
#include "texts.hpp"

#include <tests/support/compare.hpp>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

using rigel::Scalar, rigel::runtime::Semiring, rigel::runtime::Texts;
using texts::Batch, texts::Host, texts::Matrix;

namespace {

// As texts::different(), of views in different layouts.
template <class X, class Y>
int different_transposed(const X& x, const Y& y) {
  int count = 0;
  for (std::size_t i = 0; i < x.extent(0); ++i)
    for (std::size_t j = 0; j < x.extent(1); ++j) {
      const auto u = static_cast<double>(x(i, j)), v = static_cast<double>(y(i, j));
      count += u == v || (u != u && v != v) ? 0 : 1;
    }
  return count;
}

// The text must give the bits of S on C = A ⊗ B of these extents, with C of another layout, and accumulated; on each execution space, if
// `by_all` by each of its kernels.
template <class T, class S>
void agrees(const Texts& text, const S& compiled, std::initializer_list<std::array<int, 3>> extents, bool by_all = false) {
  CAPTURE(text.multiply);
  CAPTURE(rigel::name(text.element));
  const Semiring semiring(text);
  constexpr rigel::Promise exact = rigel::Promise::reference_bits;
  for (const auto [m, n, k] : extents) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    const Matrix<T> a("a", m, k), b("b", k, n);
    texts::fill(a, 1);
    texts::fill(b, 2);
    const Matrix<T> c("c", m, n), once("once", m, n), twice("twice", m, n);
    rigel::contract(Host{}, compiled, a, b, once, {.require = exact});
    Kokkos::deep_copy(twice, once);
    rigel::contract(Host{}, compiled, a, b, twice, {.accumulate = true, .require = exact});
    // The same operands in the other layout, into a C in the other layout.
    const Matrix<T, Kokkos::LayoutLeft> at("at", m, k), bt("bt", k, n), ct("ct", m, n);
    Kokkos::deep_copy(at, a);
    Kokkos::deep_copy(bt, b);
    texts::for_each_space([&]<class Exec>() {
      for (const std::string& kernel : texts::kernels_of<Exec>(semiring, by_all)) {
        CAPTURE(kernel);
        texts::contract<Exec>(semiring, a, b, c, rigel::ContractOptions{.kernel = kernel});
        CHECK(texts::different(c, once) == 0);
        texts::contract<Exec>(semiring, at, bt, ct, rigel::ContractOptions{.kernel = kernel});
        CHECK(different_transposed(ct, once) == 0);
        // With an epilogue, where C holds what it makes of results.
        rigel::epilogue::Program epilogue;
        if (!std::is_integral_v<T>) epilogue = rigel::epilogue::scale(1);
        texts::contract<Exec>(semiring, a, bt, c, epilogue, rigel::ContractOptions{.kernel = kernel});
        CHECK(texts::different(c, once) == 0);
        texts::contract<Exec>(semiring, at, b, c, rigel::ContractOptions{.kernel = kernel});
        CHECK(texts::different(c, once) == 0);
        texts::contract<Exec>(semiring, a, b, c,
                              rigel::ContractOptions{.accumulate = true, .require = exact, .kernel = kernel});
        CHECK(texts::different(c, twice) == 0);
      }
    });
  }
}

const std::initializer_list<std::array<int, 3>> shapes = {{1, 1, 1},     {7, 5, 3},   {33, 65, 40}, {70, 130, 600},
                                                          {72, 136, 48}, {3, 200, 0}, {0, 4, 4}};

template <class T>
Texts of(const char* multiply, const char* add, const char* step = "") {
  return {.element = rigel::scalar_of<T>, .multiply = multiply, .add = add, .step = step, .commutative = true};
}

}  // namespace

TEST_CASE_TEMPLATE("text: the bits of compiled semirings, for each element type", T, float, double, rigel::half,
                   rigel::bfloat16, std::int32_t, std::int64_t) {
  if (!texts::can_compile()) return;
  agrees<T>(of<T>("abs(a - b)", "x + y"), rigel::l1<T>{}, shapes, true);
  agrees<T>(of<T>("a + b", "min(x, y)"), rigel::min_plus<T>{}, shapes);
  agrees<T>(of<T>("a * b", "x + y", "fma(a, b, x)"), rigel::plus_times<T>{}, shapes);
}

// The same on GPUs by the kernels of a variant, whose sums of these numbers are exact; with an epilogue from text if the variant takes one.
template <class T, class S>
void agrees_by(std::string_view variant, const Texts& text, const S& compiled,
               std::initializer_list<std::array<int, 3>> extents, bool takes_texts) {
  CAPTURE(text.multiply);
  CAPTURE(rigel::name(text.element));
  const Semiring semiring(text);
  const rigel::runtime::Epilogue own({.argument = semiring.accumulator(), .result = text.element, .body = "x + 4 * m - n"});
  for (const auto [m, n, k] : extents) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    const Matrix<T> a("a", m, k), b("b", k, n), c("c", m, n), once("once", m, n), twice("twice", m, n),
        placed("placed", m, n);
    const Matrix<T, Kokkos::LayoutLeft> at("at", m, k), bt("bt", k, n), ct("ct", m, n);
    texts::fill(a, 1);
    texts::fill(b, 2);
    Kokkos::deep_copy(at, a);
    Kokkos::deep_copy(bt, b);
    constexpr rigel::Promise exact = rigel::Promise::reference_bits;
    rigel::contract(Host{}, compiled, a, b, once, {.require = exact});
    Kokkos::deep_copy(twice, once);
    rigel::contract(Host{}, compiled, a, b, twice, {.accumulate = true, .require = exact});
    rigel::contract(Host{}, semiring, a, b, placed, own);
    texts::for_each_space([&]<class Exec>() {
      const std::string kernel = texts::kernel_of<Exec>(semiring, variant);
      if (kernel.empty()) return;
      const rigel::ContractOptions by{.kernel = kernel};
      texts::contract<Exec>(semiring, a, b, c, by);
      CHECK(texts::different(c, once) == 0);
      texts::contract<Exec>(semiring, at, bt, ct, by);
      CHECK(different_transposed(ct, once) == 0);
      texts::contract<Exec>(semiring, a, bt, c,
                            std::is_integral_v<T> ? rigel::epilogue::Program{} : rigel::epilogue::scale(1), by);
      CHECK(texts::different(c, once) == 0);
      texts::contract<Exec>(semiring, a, b, c, rigel::ContractOptions{.accumulate = true, .kernel = kernel});
      CHECK(texts::different(c, twice) == 0);
      if (!takes_texts) return;
      texts::contract<Exec>(semiring, at, b, c, own, by);
      CHECK(texts::different(c, placed) == 0);
    });
  }
}

TEST_CASE_TEMPLATE("text: a few rows or columns against a large matrix", T, float, double, rigel::half, rigel::bfloat16,
                   std::int32_t, std::int64_t) {
  if (!texts::can_compile()) return;
  const std::initializer_list<std::array<int, 3>> few = {{1, 1000, 70},  {3, 300, 129}, {9, 257, 64}, {16, 33, 300},
                                                         {40, 512, 100}, {300, 5, 130}, {70, 64, 8},  {2, 100, 1}};
  agrees_by<T>("skinny", of<T>("abs(a - b)", "x + y"), rigel::l1<T>{}, few, true);
  agrees_by<T>("skinny", of<T>("a + b", "min(x, y)"), rigel::min_plus<T>{}, few, true);
}

TEST_CASE_TEMPLATE("text: sums over K in slices", T, float, double, std::int32_t, std::int64_t) {
  if (!texts::can_compile()) return;
  const std::initializer_list<std::array<int, 3>> long_k = {{64, 64, 5000}, {7, 9, 3001}, {70, 130, 600}, {1, 1, 40}};
  agrees_by<T>("split_k", of<T>("abs(a - b)", "x + y"), rigel::l1<T>{}, long_k, false);
  agrees_by<T>("split_k", of<T>("a + b", "min(x, y)"), rigel::min_plus<T>{}, long_k, false);
  agrees_by<T>("split_k", of<T>("a + b", "max(x, y)"), rigel::max_plus<T>{}, long_k, false);
}

TEST_CASE_TEMPLATE("text: sums over K in slices that are small matrices", T, float, double, rigel::half, rigel::bfloat16,
                   std::int32_t, std::int64_t) {
  if (!texts::can_compile()) return;
  const std::initializer_list<std::array<int, 3>> few = {
      {64, 64, 500}, {7, 9, 301}, {70, 130, 192}, {1, 1, 130}, {3, 5, 128}};
  agrees_by<T>("small_split_k", of<T>("abs(a - b)", "x + y"), rigel::l1<T>{}, few, false);
  agrees_by<T>("small_split_k", of<T>("a + b", "min(x, y)"), rigel::min_plus<T>{}, few, false);
  agrees_by<T>("small_split_k", of<T>("a + b", "max(x, y)"), rigel::max_plus<T>{}, few, false);
  if constexpr (sizeof(T) >= 4)  // more slices than threads join
    agrees_by<T>("small_split_k", of<T>("abs(a - b)", "x + y"), rigel::l1<T>{}, {{2, 3, 70001}}, false);
}

TEST_CASE_TEMPLATE("text: threads that share an output's K", T, float, double, rigel::half, rigel::bfloat16, std::int32_t,
                   std::int64_t) {
  if (!texts::can_compile()) return;
  const std::initializer_list<std::array<int, 3>> few = {{1, 1, 1},   {5, 3, 40},    {33, 17, 1000}, {200, 3, 70},
                                                         {2, 100, 5}, {64, 64, 333}, {1, 40, 2048}};
  agrees_by<T>("narrow_split_k", of<T>("abs(a - b)", "x + y"), rigel::l1<T>{}, few, true);
  agrees_by<T>("narrow_split_k", of<T>("a + b", "min(x, y)"), rigel::min_plus<T>{}, few, true);
  agrees_by<T>("narrow_split_k", of<T>("a + b", "max(x, y)"), rigel::max_plus<T>{}, few, true);
}

TEST_CASE_TEMPLATE("text: a C of whole tiles, in rows of any stride, in batches", T, float, double, rigel::half,
                   rigel::bfloat16, std::int32_t, std::int64_t) {
  if (!texts::can_compile()) return;
  const Texts text = of<T>("abs(a - b)", "x + y");
  agrees<T>(text, rigel::l1<T>{}, {{64, 64, 32}, {128, 192, 40}, {192, 128, 27}}, true);
  const Semiring semiring(text);
  for (const std::size_t batches : {1, 2}) {
    CAPTURE(batches);
    constexpr std::size_t m = 128, n = 64, k = 24;
    const Batch<T> a("a", batches, m, k), b("b", batches, k, n), once("once", batches, m, n);
    texts::fill(a, 3);
    texts::fill(b, 4);
    rigel::contract(Host{}, rigel::l1<T>{}, a, b, once, {.require = rigel::Promise::reference_bits});
    // Rows that begin at multiples of 16 bytes, and others: C's first element and its stride.
    for (const auto& [first, stride] : {std::pair{0, 96}, {16, 96}, {0, 97}, {1, 96}, {3, 67}}) {
      CAPTURE(first);
      CAPTURE(stride);
      const auto within = [&, first = first](const Batch<T>& around) {
        return Kokkos::subview(around, Kokkos::ALL, std::pair(std::size_t{0}, m),
                               std::pair(static_cast<std::size_t>(first), first + n));
      };
      const Batch<T> around("around", batches, m + 1, static_cast<std::size_t>(stride)),
          expected("expected", batches, m + 1, static_cast<std::size_t>(stride));
      Kokkos::deep_copy(expected, T(5));
      Kokkos::deep_copy(within(expected), once);
      texts::for_each_space([&]<class Exec>() {
        for (const std::string& kernel : texts::kernels_of<Exec>(semiring, true)) {
          CAPTURE(kernel);
          Kokkos::deep_copy(around, T(5));
          texts::contract<Exec>(semiring, a, b, within(around), rigel::ContractOptions{.kernel = kernel});
          CHECK(texts::different(around, expected) == 0);
        }
      });
    }
  }
}

TEST_CASE("text: the bits of more compiled semirings") {
  if (!texts::can_compile()) return;
  agrees<float>(of<float>("min(a, b)", "max(x, y)"), rigel::max_min<float>{}, shapes);
  agrees<double>(of<double>("a + b", "max(x, y)"), rigel::max_plus<double>{}, shapes);
  agrees<float>(of<float>("(a - b) * (a - b)", "x + y", "auto d = a - b; return fma(d, d, x);"), rigel::l2_squared<float>{},
                shapes);
  agrees<float>(of<float>("a != b ? 1 : 0", "x + y"), rigel::hamming<float>{}, shapes);
  Texts linf = of<double>("abs(a - b)", "max(x, y)");
  linf.identity = "0";
  agrees<double>(linf, rigel::linf<double>{}, shapes);
}

TEST_CASE_TEMPLATE("text: NaN and infinities as in compiled semirings", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {0.f, -0.f, 1.f, -2.f, inf, -inf, nan};
  const auto check = [&]<class S>(const Texts& text, const S& compiled) {
    CAPTURE(text.multiply);
    for (int only = 0; only < 7; ++only) {
      const Matrix<float> a("a", 20, 9), b("b", 9, 40), c("c", 20, 40), expected("expected", 20, 40);
      texts::fill(a, 3);
      texts::fill(b, 4);
      for (int i = 0; i < 20; i += 3) a(i, i % 9) = special[(only + i) % 7];
      for (int j = 0; j < 40; j += 5) b(j % 9, j) = special[only];
      texts::contract<Exec>(Semiring(text), a, b, c);
      rigel::contract(Host{}, compiled, a, b, expected, {.require = rigel::Promise::reference_bits});
      CHECK(texts::different(c, expected) == 0);
    }
  };
  check(of<float>("a + b", "min(x, y)"), rigel::min_plus<float>{});
  check(of<float>("a + b", "max(x, y)"), rigel::max_plus<float>{});
  check(of<float>("max(a, b)", "min(x, y)"), rigel::min_max<float>{});
  check(of<float>("abs(a - b)", "x + y"), rigel::l1<float>{});
}

TEST_CASE_TEMPLATE("text: K = 0 gives the identity, or what result and the epilogue make of it", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Matrix<float> a("a", 3, 0), b("b", 0, 5), c("c", 3, 5);
  const auto all_are = [&](float value) {
    for (std::size_t i = 0; i < c.size(); ++i)
      if (c.data()[i] != value) return false;
    return true;
  };
  texts::contract<Exec>(Semiring(of<float>("a + b", "min(x, y)")), a, b, c);
  CHECK(all_are(std::numeric_limits<float>::infinity()));
  texts::contract<Exec>(Semiring({.multiply = "a * b", .add = "x * y", .identity = "1", .result = "x + 2.5"}), a, b, c);
  CHECK(all_are(3.5f));
  texts::contract<Exec>(Semiring({.multiply = "a * b", .add = "x * y", .identity = "1"}), a, b, c,
                        rigel::epilogue::scale(4));
  CHECK(all_are(4));
  const Matrix<float> none("none", 0, 5);
  texts::contract<Exec>(Semiring(of<float>("a + b", "min(x, y)")), Matrix<float>("a", 0, 4), Matrix<float>("b", 4, 5), none);
}

TEST_CASE_TEMPLATE("text: batches, broadcasting and small matrices in lanes", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring text(of<float>("abs(a - b)", "x + y"));
  for (const auto [batches, m, n, k] : {std::array{3, 40, 50, 60}, std::array{100, 4, 5, 6}, std::array{9, 1, 1, 30}}) {
    CAPTURE(batches);
    const Batch<float> a("a", batches, m, k), c("c", batches, m, n), expected("expected", batches, m, n);
    const Matrix<float> b("b", k, n);
    texts::fill(a, 5);
    texts::fill(b, 6);
    for (const bool accumulate : {false, true}) {
      const rigel::ContractOptions options{.accumulate = accumulate, .require = rigel::Promise::reference_bits};
      texts::contract<Exec>(text, a, b, c, rigel::epilogue::scale(0.5), options);
      rigel::contract(Host{}, rigel::l1<float>{}, a, b, expected, rigel::epilogue::scale(0.5), options);
      CHECK(texts::different(c, expected) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("text: C of another type, strided views and transposed ones", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring text(of<float>("a + b", "max(x, y)"));
  const rigel::max_plus<float> compiled;
  const Matrix<float> large("large", 40, 60), other("other", 30, 40);
  texts::fill(large, 7);
  texts::fill(other, 8);
  const auto a = Kokkos::subview(large, std::pair(2, 32), std::pair(3, 33));  // 30 x 30
  const auto b = rigel::transposed(Kokkos::subview(other, Kokkos::ALL, std::pair(5, 35)));
  const Matrix<double> c("c", 30, 30), expected("expected", 30, 30);
  texts::contract<Exec>(text, a, b, c);
  rigel::contract(Host{}, compiled, a, b, expected, {.require = rigel::Promise::reference_bits});
  CHECK(texts::different(c, expected) == 0);
  const Matrix<rigel::half> h("h", 30, 30), expected_h("expected", 30, 30);
  texts::contract<Exec>(text, a, b, h);
  rigel::contract(Host{}, compiled, a, b, expected_h, {.require = rigel::Promise::reference_bits});
  CHECK(texts::different(h, expected_h) == 0);
}

TEST_CASE_TEMPLATE("text: result is applied before the epilogue", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Matrix<double> a("a", 9, 20), b("b", 20, 30), c("c", 9, 30);
  texts::fill(a, 9);
  texts::fill(b, 10);
  Texts text = of<double>("(a - b) * (a - b)", "x + y");
  text.result = "sqrt(x)";
  texts::contract<Exec>(Semiring(text), a, b, c, rigel::epilogue::scale(2));
  bool equal = true;
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 30; ++j) {
      double sum = 0;
      for (int k = 0; k < 20; ++k) sum += (a(i, k) - b(k, j)) * (a(i, k) - b(k, j));
      equal = equal && c(i, j) == 2 * std::sqrt(sum);
    }
  CHECK(equal);
}

TEST_CASE_TEMPLATE("text: a Minkowski distance follows its exponent, and new exponents compile nothing", Exec,
                   RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  Semiring text({.element = Scalar::f32,
                 .multiply = "power(abs(a - b), p)",
                 .add = "x + y",
                 .hyperparameters = {{"p", 2}},
                 .commutative = true});
  const Matrix<float> a("a", 10, 50), b("b", 50, 20), c("c", 10, 20);
  texts::fill(a, 11);
  texts::fill(b, 12);
  texts::contract<Exec>(text, a, b, c);
  const auto before = rigel::runtime::statistics();
  for (int trial = 0; trial < 1000; ++trial) {
    const float p = 0.5f + 0.0075f * static_cast<float>(trial);
    text.set("p", p);
    texts::contract<Exec>(text, a, b, c);
    if (trial % 100 != 0) continue;
    CAPTURE(p);
    double worst = 0;  // in units of the bound: K additions, and 20 units for a power (rigel/elementary.hpp)
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 20; ++j) {
        double sum = 0;
        for (int k = 0; k < 50; ++k) sum += std::pow(std::abs(double{a(i, k)} - double{b(k, j)}), double{p});
        worst = support::larger(worst, std::abs(double{c(i, j)} - sum) / (70 * 0x1p-24 * sum));
      }
    CHECK(worst <= 1);
  }
  const auto after = rigel::runtime::statistics();
  CHECK(after.compiled == before.compiled);
  CHECK(after.from_disk == before.from_disk);
  CHECK(after.from_memory == before.from_memory);
}

TEST_CASE("text: equal texts share one kernel, whatever their blanks and the names of variables and hyperparameters") {
  if (!texts::can_compile()) return;
  Semiring({.multiply = "auto d = a - b; return d * d * 17.25 * p;", .add = "x + y", .hyperparameters = {{"p", 1}}})
      .compile<Host>();
  const auto before = rigel::runtime::statistics();
  const Semiring other({.name = "other",
                        .multiply = "// the same\nauto e = a-b;\n\nreturn e*e * 17.25 * q;",
                        .add = "x+y",
                        .hyperparameters = {{"q", 2}}});
  other.compile<Host>();
  CHECK(rigel::runtime::statistics().compiled == before.compiled);
  CHECK(rigel::runtime::statistics().from_memory == before.from_memory + 1);
  CHECK(texts::product(other, 3.f, 1.f) == 4 * 17.25f * 2);
}

TEST_CASE("text: explain() and workspace_size() know the kernel, and it can be chosen by name") {
  if (!texts::can_compile()) return;
  const Semiring s({.name = "mine", .multiply = "a * b", .add = "x + y"});
  const Matrix<float> a("a", 64, 64), c("c", 64, 64);
  const std::string text = rigel::explain(Host{}, s, a, a, c);
  CHECK(text.find("* host.mine.f32.") != std::string::npos);
  CHECK(rigel::workspace_size(Host{}, s, a, a, c) > 0);
  rigel::contract(Host{}, s, a, a, c, {.kernel = "host"});
  CHECK(support::caught([&] { rigel::contract(Host{}, s, a, a, c, {.kernel = "cuda"}); }).code != rigel::Code::ok);
  CHECK(support::caught([&] { rigel::contract(Host{}, s, a, Matrix<float>("b", 63, 64), c); }).code ==
        rigel::Code::invalid_argument);
}

TEST_CASE("text: threads that want one kernel compile it once, and call at the same time") {
  if (!texts::can_compile()) return;
  const auto before = rigel::runtime::statistics();
  std::vector<std::thread> threads;
  std::vector<int> failures(8, 1);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const Semiring s(
          {.element = Scalar::f64, .multiply = "a * b * 3.75 + 0.125", .add = "x + y", .hyperparameters = {{"p", 1}}});
      s.compile<Host>();
      const auto kernels = s.kernels(rigel::detail::space_of<Host>);
      failures[static_cast<std::size_t>(t)] = kernels.size() == 1 ? 0 : 1;
    });
  for (std::thread& one : threads) one.join();
  CHECK(failures == std::vector<int>(8, 0));
  const auto after = rigel::runtime::statistics();
  CHECK(after.compiled + after.from_disk == before.compiled + before.from_disk + 1);
  CHECK(after.from_memory == before.from_memory + 7);
}

#ifdef KOKKOS_ENABLE_SERIAL
TEST_CASE("text: threads run one kernel at the same time") {
  if (!texts::can_compile()) return;
  const Semiring s(of<float>("abs(a - b)", "x + y"));
  const Matrix<float> a("a", 50, 70), b("b", 70, 60), expected("expected", 50, 60);
  texts::fill(a, 13);
  texts::fill(b, 14);
  rigel::contract(Kokkos::Serial{}, s, a, b, expected);
  std::vector<Matrix<float>> results;
  for (int t = 0; t < 4; ++t) results.emplace_back("c", 50, 60);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) rigel::contract(Kokkos::Serial{}, s, a, b, results[static_cast<std::size_t>(t)]);
    });
  for (std::thread& one : threads) one.join();
  for (const auto& c : results) CHECK(texts::different(c, expected) == 0);
}
#endif

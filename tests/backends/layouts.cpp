// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LayoutLeft, LayoutRight and LayoutStride, transposed or not, of rank 2 and 3. Each kind of one operand meets each kind of
// another. Small integers, so that every kernel must give the exact sums.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/memory.hpp>
#include <tests/support/spaces.hpp>

#include <utility>
#include <vector>

namespace {

constexpr int m = 19, n = 23, depth = 9, batches = 2;
constexpr int kinds = 6;  // three layouts, plain or transposed

template <int kind>
using LayoutOf = std::tuple_element_t<kind % 3, std::tuple<Kokkos::LayoutLeft, Kokkos::LayoutRight, Kokkos::LayoutStride>>;

// A matrix, or a batch of them, that is read as rows × columns. The view holds the transpose if kind ≥ 3.
template <class Exec, int kind, bool batched>
struct Operand {
  static constexpr bool turned = kind >= 3;
  using Layout = LayoutOf<kind>;
  using Data = std::conditional_t<batched, float***, float**>;
  using View = Kokkos::View<Data, Layout, typename Exec::memory_space>;

  Operand(int rows, int columns) : view(make(turned ? columns : rows, turned ? rows : columns)), host(view.span(), -1) {}

  static View make(std::size_t rows, std::size_t columns) {
    const auto label = Kokkos::view_alloc("operand", Kokkos::WithoutInitializing);
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride> && batched)
      return View(label, Layout(batches, 3, rows, 7 * columns + 2, columns, 7));
    else if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride>)
      return View(label, Layout(rows, 2 * columns + 5, columns, 2));
    else if constexpr (batched)
      return View(label, batches, rows, columns);
    else
      return View(label, rows, columns);
  }
  float& at(int l, int i, int j) {
    if (turned) std::swap(i, j);
    if constexpr (batched)
      return host[static_cast<std::size_t>(l) * view.stride(0) + static_cast<std::size_t>(i) * view.stride(1) +
                  static_cast<std::size_t>(j) * view.stride(2)];
    else
      return host[static_cast<std::size_t>(i) * view.stride(0) + static_cast<std::size_t>(j) * view.stride(1)];
  }
  auto argument() const {
    if constexpr (turned)
      return rigel::transposed(view);
    else
      return view;
  }
  void upload() { support::copy_in<Exec>(view.data(), host.data(), host.size() * sizeof(float)); }
  void download() { support::copy_out<Exec>(host.data(), view.data(), host.size() * sizeof(float)); }

  View view;
  std::vector<float> host;
};

int a_value(int l, int i, int k) { return (5 * i + 3 * k + 7 * l) % 11 - 5; }
int b_value(int l, int k, int j) { return (2 * j + 9 * k + 4 * l) % 13 - 6; }

template <class Exec, int kind_a, int kind_b, int kind_c, bool batched_a, bool batched_b>
void check() {
  constexpr bool batched_c = batched_a || batched_b;
  Operand<Exec, kind_a, batched_a> a(m, depth);
  Operand<Exec, kind_b, batched_b> b(depth, n);
  Operand<Exec, kind_c, batched_c> c(m, n);
  for (int l = 0; l < batches; ++l)
    for (int k = 0; k < depth; ++k) {
      for (int i = 0; i < m; ++i) a.at(batched_a * l, i, k) = static_cast<float>(a_value(batched_a * l, i, k));
      for (int j = 0; j < n; ++j) b.at(batched_b * l, k, j) = static_cast<float>(b_value(batched_b * l, k, j));
    }
  a.upload(), b.upload();
  const auto empty = c.host;
  for (const auto& info : support::kernels_on(Exec{}, "plus_times", rigel::Scalar::f32)) {
    CAPTURE(info.name);
    c.host = empty;
    c.upload();
    const bool ran = support::ran(info, [&] {
      rigel::contract(Exec{}, rigel::plus_times<float>{}, a.argument(), b.argument(), c.argument(),
                      rigel::epilogue::Program{}, {.precision = info.precision, .kernel = info.name});
    });
    if (!ran) continue;
    c.download();
    int wrong = 0;
    for (int l = 0; l < (batched_c ? batches : 1); ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          int sum = 0;
          for (int k = 0; k < depth; ++k) sum += a_value(batched_a * l, i, k) * b_value(batched_b * l, k, j);
          wrong += c.at(l, i, j) != static_cast<float>(sum);
        }
    CHECK(wrong == 0);
  }
}

// Kind of A, kind of B, and their sum for C: a Latin square, so any two operands meet in all pairs of kinds.
template <class Exec, std::size_t i>
void check_pair() {
  constexpr int a = i / kinds, b = i % kinds, c = (a + b) % kinds, batch = (a + 2 * b) % 4;
  CAPTURE(a);
  CAPTURE(b);
  CAPTURE(c);
  check<Exec, a, b, c, (batch & 1) != 0, (batch & 2) != 0>();
}

template <class Exec, std::size_t... i>
void check_all(std::index_sequence<i...>) {
  (check_pair<Exec, i>(), ...);
}

}  // namespace

TEST_CASE_TEMPLATE("layouts: every kind of every operand", Exec, RIGEL_TEST_SPACES) {
  check_all<Exec>(std::make_index_sequence<kinds * kinds>{});
}

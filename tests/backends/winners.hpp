// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks with_argument<S>: values and winning k of every kernel of a call, compared with a loop over k that compares products.
// Operands have ties within and across slabs of 8 k, NaN, products that are equal to ⊕'s identity, and late winners.
#pragma once

#include <rigel/contract.hpp>

#include <tests/support/memory.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <limits>
#include <string>
#include <vector>

namespace winners {

/// What A and B hold. `ties`: few values, so most outputs have several winners. `late`: products improve with k. `identities`:
/// mostly values whose products are equal to the identity. `one_value`: every product is the same.
enum class Fill { ties, nan, late, identities, one_value };

/// A batch of matrices in memory of the execution space.
template <class T, class Exec>
class Matrices {
 public:
  using View =
      Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  /// Row-major or column-major; `gap` elements between lines make them unaligned.
  Matrices(int batches, int rows, int columns, bool by_rows, int gap)
      : row_(by_rows ? columns + gap : 1),
        column_(by_rows ? 1 : rows + gap),
        batch_((by_rows ? rows * row_ : columns * column_)),
        host_(static_cast<std::size_t>(std::max(batches * batch_, 1))),
        memory_(Kokkos::view_alloc("winners", Kokkos::WithoutInitializing), host_.size()),
        view(memory_.data(), Kokkos::LayoutStride(size(batches), size(std::max(batch_, 1)), size(rows),
                                                  size(std::max(row_, 1)), size(columns), size(std::max(column_, 1)))) {}
  T& at(int l, int i, int j) { return host_[size(l * batch_ + i * row_ + j * column_)]; }
  void fill(T value) { std::fill(host_.begin(), host_.end(), value); }
  void upload() { support::copy_in<Exec>(memory_.data(), host_.data(), host_.size() * sizeof(T)); }
  void download() { support::copy_out<Exec>(host_.data(), memory_.data(), host_.size() * sizeof(T)); }

 private:
  static std::size_t size(int n) { return static_cast<std::size_t>(n); }
  int row_, column_, batch_;
  std::vector<T> host_;
  Kokkos::View<T*, typename Exec::memory_space> memory_;

 public:
  View view;
};

/// The layouts of one call.
struct Layouts {
  bool a_by_rows, b_by_rows, c_by_rows;
  int gap;
};

/// The winner of an output: the first NaN, else the first of the best products; the identity and −1 if all are worse or K = 0.
template <class S, class Product>
auto winner(const S& s, int k, const Product& product) {
  using Value = typename S::accumulator;
  rigel::argument<Value> best = {S::identity(), -1};
  for (int i = 0; i < k; ++i) {
    const Value x = product(i);
    if (x != x) return rigel::argument<Value>{x, i};
    const bool better = x != best.value && s.add(x, best.value) == x;
    if (better || (x == best.value && best.index < 0)) best = {x, i};
  }
  return best;
}

/// An element of A or B for products with index k. `of_identity` makes products equal to the identity.
template <class T>
T element(Fill fill, support::Random& random, int k, double of_identity, double per_k) {
  switch (fill) {
    case Fill::ties: return static_cast<T>(random.integer(0, 2));
    case Fill::nan:
      if (std::is_integral_v<T> || !random.chance(0.01)) return static_cast<T>(random.integer(0, 2));
      return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    case Fill::late: return static_cast<T>(static_cast<double>(random.integer(0, 2)) + per_k * k);
    case Fill::identities: return static_cast<T>(!random.chance(0.1) ? of_identity : k < 10 ? 1 : 0);
    default: return static_cast<T>(of_identity);
  }
}

/// Runs every kernel of one call. `semirings`: an object, or a view of one for each batch; `s` are the same on the host.
template <class S, class Exec, class Semirings>
void check_call(const Semirings& semirings, const std::vector<S>& s, int m, int n, int k, Layouts layouts, Fill fill,
                double of_identity, double per_k) {
  using T = typename S::element;
  using Value = typename S::accumulator;
  const int batches = static_cast<int>(s.size());
  Matrices<T, Exec> a(batches, m, k, layouts.a_by_rows, layouts.gap), b(batches, k, n, layouts.b_by_rows, layouts.gap);
  Matrices<Value, Exec> c(batches, m, n, layouts.c_by_rows, 0);
  Matrices<int, Exec> indices(batches, m, n, layouts.c_by_rows, 0);
  support::Random random(static_cast<std::uint64_t>(k) + 17);
  for (int l = 0; l < batches; ++l)
    for (int p = 0; p < k; ++p) {
      for (int i = 0; i < m; ++i) a.at(l, i, p) = element<T>(fill, random, p, of_identity, per_k);
      for (int j = 0; j < n; ++j) b.at(l, p, j) = element<T>(fill, random, p, of_identity, 0);
    }
  a.upload();
  b.upload();
  std::vector<rigel::argument<Value>> expected;
  for (int l = 0; l < batches; ++l)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        expected.push_back(winner(s[static_cast<std::size_t>(l)], k, [&](int p) {
          using Operand = rigel::operand_t<S>;
          return s[static_cast<std::size_t>(l)].multiply(static_cast<Operand>(a.at(l, i, p)),
                                                         static_cast<Operand>(b.at(l, p, j)));
        }));
  const auto epilogue = rigel::epilogue::arguments(indices.view);
  for (const auto& candidate : rigel::candidates(rigel::problem_of(Exec{}, semirings, a.view, b.view, c.view, epilogue))) {
    if (!candidate.status) continue;
    CAPTURE(candidate.kernel->info.name);
    c.fill(Value(77));
    indices.fill(-5);
    c.upload();
    indices.upload();
    rigel::contract(Exec{}, semirings, a.view, b.view, c.view, epilogue, {.kernel = candidate.kernel->info.name});
    c.download();
    indices.download();
    int wrong = 0;
    auto e = expected.begin();
    for (int l = 0; l < batches; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j, ++e) {
          const Value value = c.at(l, i, j);
          wrong += indices.at(l, i, j) != e->index;
          wrong += value != e->value && (value == value || e->value == e->value);
        }
    CHECK(wrong == 0);
  }
}

/// Calls of one semiring. Products of `of_identity` and itself are equal to the identity, or as near to it as S gets; adding `per_k`
/// to an element of A improves its products.
template <class S, class Exec>
void check(double of_identity, double per_k) {
  const rigel::with_argument<S> s{};
  const std::vector<S> two(2);
  for (const Fill fill : {Fill::ties, Fill::nan, Fill::late, Fill::identities, Fill::one_value})
    for (const int k : {1, 7, 8, 24, 40, 43}) {
      CAPTURE(int(fill));
      CAPTURE(k);
      check_call<S, Exec>(s, two, 68, 36, k, {true, true, true, 0}, fill, of_identity, per_k);
    }
  for (const bool a_by_rows : {false, true})
    for (const bool b_by_rows : {false, true})
      for (const int gap : {0, 1})
        for (const int k : {0, 32, 35}) {
          CAPTURE(a_by_rows);
          CAPTURE(b_by_rows);
          CAPTURE(gap);
          CAPTURE(k);
          check_call<S, Exec>(s, two, 36, 68, k, {a_by_rows, b_by_rows, gap != 0, gap}, Fill::nan, of_identity, per_k);
        }
  check_call<S, Exec>(s, {S{}}, 1, 1, 200, {true, true, true, 0}, Fill::ties, of_identity, per_k);
  // Where K is cut into slices: whole ones alone, and with a rest. Bytes do not hold the numbers of `late`.
  for (const Fill fill : {Fill::ties, Fill::nan, Fill::late, Fill::identities, Fill::one_value})
    for (const int k : {192, 2115}) {
      if (fill == Fill::late && sizeof(typename S::element) == 1) continue;
      CAPTURE(int(fill));
      CAPTURE(k);
      check_call<S, Exec>(s, {S{}}, 5, 37, k, {true, k == 192, true, 0}, fill, of_identity, per_k);
    }
}

}  // namespace winners

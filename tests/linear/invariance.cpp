// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What does not change bits: the batch around a row, the row's position in it, the run, other work on the device; in Tier::scalar also
// cutting a batch into micro-batches. GPUs run the whole sweep, hosts a part of it.
#include "layer.hpp"

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>
#include <type_traits>

namespace {

using layer::Activation, layer::Values;
using rigel::bfloat16, rigel::Tier;

template <class T, class Exec>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space>;

template <class Exec>
struct Sweep {
  static constexpr bool whole = !support::on_host<Exec>;
  std::vector<int> m = whole ? std::vector{1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500, 1000, 4096}
                             : std::vector{1, 2, 7, 16, 33, 65, 129};
  std::vector<int> k = whole ? std::vector{1, 17, 512, 768, 1000, 1024, 4096} : std::vector{1, 17, 512};
  std::vector<int> n = whole ? std::vector{256, 77} : std::vector{32, 19};
};

template <class T, class Exec>
Matrix<T, Exec> random_matrix(int rows, int columns, std::uint64_t seed) {
  return support::matrix<T, Exec>(rows, columns, layer::random<T>(static_cast<std::size_t>(rows) * columns, seed));
}
template <class View>
View rows_of(const View& v, int first, int count) {
  return Kokkos::subview(v, Kokkos::pair(first, first + count), Kokkos::ALL);
}

/// Whether a tier covers a type here: tensor cores are a GPU's, and floats take them from K = 107 on.
template <class T, class Exec>
bool covers(Tier tier, int k) {
  return tier == Tier::scalar || (!support::on_host<Exec> && (sizeof(T) == 2 || k >= 107));
}

/// Y of the first, and of some other, M rows of X is the same rows of the whole Y; so is dX of dY.
template <class T, class Exec>
void check_rows(Tier tier) {
  const Exec exec;
  const Sweep<Exec> sweep;
  const int most = *std::max_element(sweep.m.begin(), sweep.m.end());
  int calls = 0;
  for (const int k : sweep.k)
    for (const int n : sweep.n) {
      if (!covers<T, Exec>(tier, k)) continue;
      CAPTURE(k);
      CAPTURE(n);
      const auto x = random_matrix<T, Exec>(most, k, 1), w = random_matrix<T, Exec>(k, n, 2),
                 y = Matrix<T, Exec>("y", most, n);
      const Kokkos::View<float*, typename Exec::memory_space> bias("bias", n);
      support::fill(bias, layer::random<float>(n, 3));
      const rigel::LinearOptions options{.tier = tier, .epilogue = Activation::gelu};
      rigel::linear_forward(exec, x, w, bias, y, options);
      const Values whole = support::values(y);
      for (const int m : sweep.m)
        for (const int first : {0, std::min(1, most - m), (most - m) / 2, most - m}) {
          const Matrix<T, Exec> part("part", m, n);
          rigel::linear_forward(exec, rows_of(x, first, m), w, bias, part, options);
          const Values expected(whole.begin() + static_cast<std::ptrdiff_t>(first) * n,
                                whole.begin() + static_cast<std::ptrdiff_t>(first + m) * n);
          CAPTURE(m);
          CAPTURE(first);
          CHECK(support::same(support::values(part), expected));
          ++calls;
        }
      // The same rows as a batch of single rows.
      const int batch = std::min(most, 64);
      const Kokkos::View<T***, Kokkos::LayoutRight, typename Exec::memory_space> of_x(x.data(), batch, 1, k),
          of_y("y", batch, 1, n);
      rigel::linear_forward(exec, of_x, w, bias, of_y, options);
      CHECK(support::same(support::values(of_y),
                          Values(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(batch) * n)));
    }
  CHECK(calls > 0);
  // dX: the sum runs over N.
  const int n = 512, k = 96;
  const auto dy = random_matrix<T, Exec>(most, n, 4), w = random_matrix<T, Exec>(k, n, 5),
             z = random_matrix<T, Exec>(most, k, 6);
  const Matrix<T, Exec> dx("dx", most, k);
  const rigel::LinearOptions options{.tier = tier};
  rigel::linear_backward_input(exec, dy, w, dx, z, Activation::silu, options);
  const Values whole = support::values(dx);
  for (const int m : sweep.m) {
    const Matrix<T, Exec> part("part", m, k);
    rigel::linear_backward_input(exec, rows_of(dy, most - m, m), w, part, rows_of(z, most - m, m), Activation::silu,
                                 options);
    CAPTURE(m);
    CHECK(support::same(support::values(part), Values(whole.end() - static_cast<std::ptrdiff_t>(m) * k, whole.end())));
  }
}

/// dW, db, dX and Y of 100 runs are those of the first one, while another instance is busy.
template <class T, class Exec>
void check_runs(Tier tier) {
  const auto instances = Kokkos::Experimental::partition_space(Exec{}, 1, 1);
  const Exec &exec = instances[0], &other = instances[1];
  const int m = support::on_host<Exec> ? 70 : 1500, n = 130, k = 111, runs = 100, load = support::on_host<Exec> ? 16 : 2048;
  const auto x = random_matrix<T, Exec>(m, k, 1), dy = random_matrix<T, Exec>(m, n, 2), w = random_matrix<T, Exec>(k, n, 3);
  const auto busy = random_matrix<T, Exec>(load, load, 4), busy_too = Matrix<T, Exec>("busy", load, load);
  const rigel::LinearOptions options{.tier = tier};
  std::vector<Values> first;
  for (int run = 0; run < runs; ++run) {
    const Matrix<T, Exec> y("y", m, n), dx("dx", m, k);
    const Matrix<float, Exec> dw("dw", k, n), db("db", 1, n);
    Kokkos::fence();
    rigel::contract(other, rigel::plus_times<T>{}, busy, busy, busy_too);
    rigel::linear_forward(exec, x, w, rigel::no_bias, y, options);
    rigel::linear_backward_weight(exec, x, dy, dw, db, options);
    rigel::linear_backward_input(exec, dy, w, dx, options);
    Kokkos::fence();
    const std::vector<Values> all = {support::values(y), support::values(dw), support::values(db), support::values(dx)};
    if (run == 0) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(support::same(all[i], first[i]));
  }
}

/// dW and db of micro-batches in order are those of the whole batch.
template <class T, class Exec>
void check_micro_batches() {
  const Exec exec;
  const int m = support::on_host<Exec> ? 150 : 1000, n = 37, k = 50;
  const auto x = random_matrix<T, Exec>(m, k, 1), dy = random_matrix<T, Exec>(m, n, 2);
  const auto gradients = [&](const std::vector<int>& cuts) {
    const Matrix<float, Exec> dw("dw", k, n), db("db", 1, n);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      rigel::linear_backward_weight(exec, rows_of(x, cuts[i], cuts[i + 1] - cuts[i]),
                                    rows_of(dy, cuts[i], cuts[i + 1] - cuts[i]), dw, db);
    return std::pair(support::values(dw), support::values(db));
  };
  const auto whole = gradients({0, m});
  for (const std::vector<int>& cuts :
       {std::vector{0, m / 2, m}, {0, 1, 2, 3, m}, {0, 16, 32, 48, m}, {0, m - 1, m - 1, m}}) {
    const auto parts = gradients(cuts);
    CHECK(support::same(parts.first, whole.first));
    CHECK(support::same(parts.second, whole.second));
  }
}

template <class Exec>
bool has_tensor_cores() {
  if (!support::on_host<Exec>) return true;
  support::skip("Tier::tensor runs on GPUs");
  return false;
}

}  // namespace

TEST_CASE_TEMPLATE("linear: a row's bits depend neither on the batch nor on its place, scalar tier", Exec,
                   RIGEL_TEST_SPACES) {
  check_rows<float, Exec>(Tier::scalar);
  check_rows<bfloat16, Exec>(Tier::scalar);
  check_rows<rigel::half, Exec>(Tier::scalar);
}

TEST_CASE_TEMPLATE("linear: a row's bits depend neither on the batch nor on its place, tensor tier", Exec,
                   RIGEL_TEST_SPACES) {
  if (!has_tensor_cores<Exec>()) return;
  check_rows<float, Exec>(Tier::tensor);
  check_rows<bfloat16, Exec>(Tier::tensor);
  check_rows<rigel::half, Exec>(Tier::tensor);
}

TEST_CASE_TEMPLATE("linear: 100 runs give the same bits", Exec, RIGEL_TEST_SPACES) {
  check_runs<float, Exec>(Tier::scalar);
  check_runs<bfloat16, Exec>(Tier::scalar);
  if (!has_tensor_cores<Exec>()) return;
  check_runs<float, Exec>(Tier::tensor);
  check_runs<bfloat16, Exec>(Tier::tensor);
  check_runs<rigel::half, Exec>(Tier::tensor);
}

TEST_CASE_TEMPLATE("linear: micro-batches give the whole batch's bits, scalar tier", Exec, RIGEL_TEST_SPACES) {
  check_micro_batches<float, Exec>();
  check_micro_batches<bfloat16, Exec>();
  check_micro_batches<rigel::half, Exec>();
}

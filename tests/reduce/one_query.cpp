// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The nearest points of one query, or of a few, by sums of differences that are integers, so that every kernel finds the same: points in
// orders that are the worst for lists of the best, equal ones, NaN, fewer than k; batches, rows with gaps, and rows that are not aligned.
#include <tests/reduce/call.hpp>

#include <rigel/neighbors.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

using namespace reduced;
namespace metric = rigel::metric;

enum class Order { falling, rising, equal, not_numbers, of_one_thread, of_last_columns, mixed, last };

/// The distance of point n of `all` from query 0: an integer below 2^20, or NaN.
double distance(Order order, int n, int all) {
  switch (order) {
    case Order::falling: return all - n;
    case Order::rising: return n;
    case Order::equal: return 7;
    case Order::not_numbers: return n % 3 == 1 ? n % 100 : not_a_number;
    case Order::of_one_thread: return n % 128 == 5 ? all - n : 10000 + n % 1000;
    case Order::of_last_columns: return n > all - 40 ? all - n : 5000 + n % 11;
    default: return n * 7919 % 10007;
  }
}

constexpr int k = 32, part = 1024;  // f16 holds integers to 2048

/// Coordinates whose sum is a distance, all of them multiples of 1 and at most 1024.
void write_point(double* point, double d) {
  for (int i = 0; i < k; ++i) {
    const double coordinate = d != d ? (i == 3 ? d : 1) : std::clamp(d - i * part, 0., double{part});
    point[i] = coordinate;
  }
}

/// Query m is −m in the last coordinate, where points of distances up to 31·1024 have 0: m more than from query 0.
template <class T, class Exec>
void check(Order order, int batches, int m, int n, int count, bool exclude_self, int gap, int first) {
  const Exec exec;
  INFO(rigel::name(rigel::scalar_of<T>), ", order ", static_cast<int>(order), ", ", batches, " x ", m, " x ", n, ", ", count,
       ", gap ", gap, ", first ", first);
  const int pitch = k + gap;
  Values points(static_cast<std::size_t>(batches * n * pitch), 9), queries(static_cast<std::size_t>(batches * m * k), 0);
  for (int l = 0; l < batches; ++l) {
    for (int j = 0; j < n; ++j) write_point(points.data() + at(l * n + j, pitch, first), distance(order, (j + l) % n, n));
    for (int i = 0; i < m; ++i) queries[at(l * m + i, k, k - 1)] = -i;
  }
  const auto x = support::batch<T, Exec>(batches, m, k, queries), room = support::batch<T, Exec>(batches, n, pitch, points);
  const auto z = Kokkos::subview(room, Kokkos::ALL, Kokkos::ALL, std::pair(first, first + k));
  const auto indices = support::batch<int, Exec>(batches, m, count);
  const auto distances = support::batch<float, Exec>(batches, m, count);
  rigel::ReduceOptions options{.exclude_self = exclude_self};
  const bool is_aligned = gap % 8 == 0 && first % 8 == 0;
  if (rigel::detail::space_of<Exec> == rigel::Space::cuda && is_aligned && count <= 128)
    options.kernel = rigel::scalar_of<T> == rigel::Scalar::f16 ? "cuda.reduce.l1.f16.few" : "cuda.reduce.l1.f32.few";
  rigel::nearest(exec, x, z, metric::manhattan{}, count, indices, distances, options);
  exec.fence();
  const Values places = support::values(indices), values = support::values(distances);
  int wrong = 0;
  for (int l = 0; l < batches; ++l)
    for (int i = 0; i < m; ++i) {
      std::vector<int> found;
      for (int j = 0; j < n; ++j)
        if (!exclude_self || i != j) found.push_back(j);
      const auto of = [&](int j) { return distance(order, (j + l) % n, n) + i; };
      std::ranges::sort(found, [&](int a, int b) {
        const double x = of(a), y = of(b);
        if (x < y || (x == x && y != y)) return true;
        return (x == y || (x != x && y != y)) && a < b;
      });
      for (int c = 0; c < count; ++c) {
        const std::size_t result = at(l * m + i, count, c);
        const bool exists = c < static_cast<int>(found.size());
        const double right = exists ? of(found[static_cast<std::size_t>(c)]) : infinity;
        wrong += places[result] != (exists ? found[static_cast<std::size_t>(c)] : -1);
        wrong += !(values[result] == right || (values[result] != values[result] && right != right));
      }
    }
  CHECK(wrong == 0);
}

template <class T, class Exec>
void check_orders() {
  constexpr int of_host = support::on_host<Exec> ? 8 : 1;  // hosts have no slices
  for (int i = 0; i < static_cast<int>(Order::last); ++i) {
    const auto order = static_cast<Order>(i);
    for (const int count : {1, 10, 100, 128}) {
      check<T, Exec>(order, 1, 1, 30000 / of_host, count, false, 0, 0);
      check<T, Exec>(order, 1, 8, 9000 / of_host, count, false, 8, 0);
    }
    check<T, Exec>(order, 2, 3, 2100 / of_host, 10, false, 16, 8);
    check<T, Exec>(order, 3, 9, 700, 33, false, 0, 0);
    check<T, Exec>(order, 1, 1, 5, 10, false, 0, 0);
    check<T, Exec>(order, 1, 2, 129, 128, false, 0, 0);
    check<T, Exec>(order, 1, 40, 40, 10, true, 0, 0);
    check<T, Exec>(order, 1, 1, 3000 / of_host, 10, false, 1, 1);
    check<T, Exec>(order, 1, 4, 1000, 12, false, 8, 3);
  }
}

TEST_CASE_TEMPLATE("nearest: one query, or a few", Exec, RIGEL_TEST_SPACES) { check_orders<float, Exec>(); }

TEST_CASE_TEMPLATE("nearest: one query of 16 bits, or a few", Exec, RIGEL_TEST_SPACES) { check_orders<rigel::half, Exec>(); }

}  // namespace

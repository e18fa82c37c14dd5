// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues that have the short form of a Layer, by every kernel of products of floats: a factor, a row to add, an activation, and a
// number of its own for each output, read from C itself, too. Sums come from the same kernel, as floats, times 1 (without any epilogue
// it may choose another order); what the steps make of them is computed here.
#include <rigel/activation.hpp>
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace epilogue = rigel::epilogue;
using Values = std::vector<double>;

template <class T>
Values random_values(int count, std::uint64_t seed) {
  support::Random random(seed);
  Values list;
  while (static_cast<int>(list.size()) < count)
    list.push_back(support::to_double(support::number<T>(random.uniform(-2, 2))));
  return list;
}

/// An epilogue, and what it makes of the sum of output (i, j), of which C held `before`.
struct Task {
  const char* name;
  std::function<float(float sum, int i, int j, float before)> expected;
  double error = 0;       // of the activation, relative, beyond the rounding to C's type
  bool adds_own = false;  // to the activation
};

/// C is a part of a wider matrix from column `first` on, a matrix of its extents one from `first_of_matrix` on: by 4, their groups
/// of four are aligned.
struct Shape {
  int m, n, k, first, first_of_matrix;

  int pitch() const { return pitch_for(first); }
  int pitch_of_matrix() const { return pitch_for(first_of_matrix); }
  /// Element (i, j) of a matrix of C's extents.
  float at(const Values& of_matrix, int i, int j) const {
    return static_cast<float>(of_matrix[i * pitch_of_matrix() + first_of_matrix + j]);
  }

 private:
  int pitch_for(int first_column) const { return (first_column + n + 3) / 4 * 4; }
};

/// Elements of what C is a part of that are not as expected of a task: its own ones from the sums, from what it held `before` and from the
/// task's matrix, others as before.
template <class T>
int count_wrong(const Shape& s, const Task& task, const Values& of_sums, const Values& before, const Values& own,
                const Values& actual) {
  constexpr double unit = std::is_same_v<T, rigel::bfloat16> ? 0x1p-8
                          : std::is_same_v<T, rigel::half>   ? 0x1p-11
                                                             : 0x1p-24,
                   least = 0x1p-25;
  int wrong = 0;
  for (int i = 0; i < s.m; ++i)
    for (int j = 0; j < s.pitch(); ++j) {
      const double is = actual[i * s.pitch() + j], was = before[i * s.pitch() + j];
      if (j < s.first || j >= s.first + s.n) {
        wrong += is != was;
        continue;
      }
      const int column = j - s.first;
      const float exact = task.expected(static_cast<float>(of_sums[i * s.n + column]), i, column, static_cast<float>(was));
      if (task.error == 0) {
        wrong += is != support::to_double(support::number<T>(exact));
      } else {
        const double activation = exact - (task.adds_own ? double{s.at(own, i, column)} : 0);
        // Both the result and what is expected of it are rounded, this one to float.
        wrong += !(std::fabs(is - exact) <=
                   std::fabs(exact) * (unit + 0x1p-24) + std::fabs(activation) * task.error * 1.01 + least);
      }
    }
  return wrong;
}

template <class T, class Exec>
void check(const Shape& s) {
  using Wide = support::Matrix<T, Exec>;
  const Exec exec;
  const int pitch = s.pitch(), pitch_of_matrix = s.pitch_of_matrix();
  const auto part = [&](const auto& wide, int first) {
    return Kokkos::subview(wide, Kokkos::ALL, std::pair(first, first + s.n));
  };
  const auto a = support::matrix<T, Exec>(s.m, s.k, random_values<T>(s.m * s.k, 1)),
             b = support::matrix<T, Exec>(s.k, s.n, random_values<T>(s.k * s.n, 2));
  const Values row = random_values<float>(s.n, 3), column = random_values<float>(s.m, 4),
               before = random_values<T>(s.m * pitch, 7), own = random_values<T>(s.m * pitch_of_matrix, 5),
               floats = random_values<float>(s.m * pitch_of_matrix, 6);
  const Kokkos::View<float*, typename Exec::memory_space> row_view("row", s.n), column_view("column", s.m);
  support::fill(row_view, row);
  support::fill(column_view, column);
  const auto own_matrix = support::matrix<T, Exec>(s.m, pitch_of_matrix, own);
  const auto float_matrix = support::matrix<float, Exec>(s.m, pitch_of_matrix, floats);
  const auto at = [&](const Values& of, int i, int j) { return s.at(of, i, j); };
  const auto relu = [](float v) { return v < 0 ? 0 : v; };
  // 22 + z² units of gelu(), 4 of silu()'s exponential and as many roundings (docs/numerics.md); |z| is below 64.
  const double of_gelu = (22 + 64. * 64) * 0x1p-24, of_silu = 150 * 0x1p-24;

  const auto program = [&](int task, const auto& c) -> epilogue::Program {
    switch (task) {
      case 0: return epilogue::add_row(row_view) | epilogue::relu();
      case 1: return epilogue::scale(0.25) | epilogue::add_row(row_view);
      case 2: return epilogue::residual(part(own_matrix, s.first_of_matrix));
      case 3:
        return epilogue::add_row(row_view) | epilogue::relu() | epilogue::residual(part(float_matrix, s.first_of_matrix));
      case 4: return epilogue::relu() | epilogue::scale_column(column_view);
      case 5: return epilogue::scale(-0.5) | epilogue::relu() | epilogue::scale_row(row_view);
      case 6: return epilogue::add_column(column_view);
      case 7: return epilogue::add_row(row_view) | epilogue::residual(c);
      case 8: return epilogue::add_row(row_view) | epilogue::gelu();
      default:
        return epilogue::add_row(row_view) | epilogue::silu() | epilogue::residual(part(own_matrix, s.first_of_matrix));
    }
  };
  const std::vector<Task> tasks = {
      {"row, relu", [&](float v, int, int j, float) { return relu(v + float(row[j])); }},
      {"factor, row", [&](float v, int, int j, float) { return v * 0.25f + float(row[j]); }},
      {"residual", [&](float v, int i, int j, float) { return v + at(own, i, j); }},
      {"row, relu, residual of floats",
       [&](float v, int i, int j, float) { return relu(v + float(row[j])) + at(floats, i, j); }},
      {"relu, column of factors", [&](float v, int i, int, float) { return relu(v) * float(column[i]); }},
      {"factor, relu, row of factors", [&](float v, int, int j, float) { return relu(v * -0.5f) * float(row[j]); }},
      {"column", [&](float v, int i, int, float) { return v + float(column[i]); }},
      {"row, C itself", [&](float v, int, int j, float before) { return v + float(row[j]) + before; }},
      {"row, gelu",
       [&](float v, int, int j, float) {
         const double z = v + float(row[j]);
         return static_cast<float>(0.5 * z * std::erfc(-z / std::sqrt(2.)));
       },
       of_gelu},
      {"row, silu, residual",
       [&](float v, int i, int j, float) {
         const double z = v + float(row[j]);
         return static_cast<float>(z / (1 + std::exp(-z)) + at(own, i, j));
       },
       of_silu, true}};

  int checked = 0;
  for (const auto& info : support::kernels_on(exec, "plus_times", rigel::scalar_of<T>, rigel::Scalar::f32)) {
    const rigel::ContractOptions options{.precision = info.precision, .kernel = info.name};
    const auto sums = support::matrix<float, Exec>(s.m, s.n);
    if (!support::ran(info, [&] { rigel::contract(exec, rigel::plus_times<T>{}, a, b, sums, epilogue::scale(1), options); }))
      continue;
    const Values of_sums = support::values(sums);
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      const Wide c = support::matrix<T, Exec>(s.m, pitch, before);
      if (!support::ran(info, [&] {
            rigel::contract(exec, rigel::plus_times<T>{}, a, b, part(c, s.first),
                            program(static_cast<int>(task), part(c, s.first)), options);
          }))
        continue;
      CAPTURE(info.name);
      CAPTURE(std::string(tasks[task].name));
      CAPTURE(s.m);
      CAPTURE(s.n);
      CAPTURE(s.first);
      CHECK(count_wrong<T>(s, tasks[task], of_sums, before, own, support::values(c)) == 0);
      ++checked;
    }
  }
  CHECK(checked >= 2 * static_cast<int>(tasks.size()));
}

/// The same into a column-major C, of which kernels may compute the transpose: a row then is a column to add.
template <class T, class C, class Exec>
void check_column_major(int m, int n, int k) {
  const Exec exec;
  const auto a = support::matrix<T, Exec>(m, k, random_values<T>(m * k, 1)),
             b = support::matrix<T, Exec>(k, n, random_values<T>(k * n, 2));
  const Values row = random_values<float>(n, 3), column = random_values<float>(m, 4);
  const Kokkos::View<float*, typename Exec::memory_space> row_view("row", n), column_view("column", m);
  support::fill(row_view, row);
  support::fill(column_view, column);
  int checked = 0;
  for (const auto& info : support::kernels_on(exec, "plus_times", rigel::scalar_of<T>, rigel::Scalar::f32)) {
    const rigel::ContractOptions options{.precision = info.precision, .kernel = info.name};
    const auto values_after = [&](const epilogue::Program& program, auto zero) {
      const auto c = support::matrix<decltype(zero), Exec>(n, m);
      const bool ran = support::ran(
          info, [&] { rigel::contract(exec, rigel::plus_times<T>{}, a, b, rigel::transposed(c), program, options); });
      return ran ? support::values(c) : Values{};
    };
    const Values sums = values_after(epilogue::scale(1), 0.f);
    const Values of_row = values_after(epilogue::scale(2) | epilogue::add_row(row_view) | epilogue::relu(), C{}),
                 of_column = values_after(epilogue::add_column(column_view), C{});
    if (sums.empty() || of_row.empty() || of_column.empty()) continue;
    int wrong = 0;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        const std::size_t at = static_cast<std::size_t>(j) * m + i;
        const float sum = static_cast<float>(sums[at]), layer = sum * 2 + static_cast<float>(row[j]),
                    shifted = sum + static_cast<float>(column[i]);
        wrong += of_row[at] != support::to_double(support::number<C>(layer < 0 ? 0 : layer));
        wrong += of_column[at] != support::to_double(support::number<C>(shifted));
      }
    CAPTURE(info.name);
    CAPTURE(m);
    CAPTURE(n);
    CHECK(wrong == 0);
    ++checked;
  }
  CHECK(checked >= 2);
}

}  // namespace

TEST_CASE_TEMPLATE("layers: every kernel, C by columns", Exec, RIGEL_TEST_SPACES) {
  for (const auto [m, n, k] : {std::array{136, 260, 40}, std::array{256, 128, 24}, std::array{77, 131, 33}}) {
    check_column_major<float, float, Exec>(m, n, k);
    check_column_major<rigel::bfloat16, float, Exec>(m, n, k);
    check_column_major<rigel::half, rigel::half, Exec>(m, n, k);
  }
}

TEST_CASE_TEMPLATE("layers: every kernel of products of floats, their sums rounded to their type", Exec, RIGEL_TEST_SPACES) {
  for (const Shape& s :
       {Shape{1, 12, 40, 0, 0}, Shape{70, 136, 40, 0, 0}, Shape{130, 200, 72, 4, 4}, Shape{77, 260, 64, 1, 1},
        Shape{140, 37, 24, 0, 0}, Shape{66, 132, 40, 4, 1}, Shape{66, 132, 40, 1, 4}, Shape{150, 392, 136, 4, 8}}) {
    check<rigel::bfloat16, Exec>(s);
    check<rigel::half, Exec>(s);
    check<float, Exec>(s);
  }
}

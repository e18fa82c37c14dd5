// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues that read memory, by every kernel: whole tiles and parts of tiles, a C by rows and by columns, of 32 and of 16 bits.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

namespace epilogue = rigel::epilogue;
using Values = std::vector<double>;

struct Shape {
  int batches, m, n, k;
  std::size_t at(int l, int i, int j) const { return (static_cast<std::size_t>(l) * m + i) * n + j; }
};

/// Random numbers as type T holds them.
template <class T>
Values random_values(std::size_t count, double low, double high, std::uint64_t seed) {
  support::Random random(seed);
  Values list;
  while (list.size() < count) list.push_back(support::to_double(support::number<T>(random.uniform(low, high))));
  return list;
}

/// Calls use(c, values) with a C of batches × m × n that is stored by rows or by columns; values() are then in the order
/// (l, m, n).
template <class T, class Exec, class Use>
void with_c(const Shape& s, bool by_rows, const Values& before, const Use& use) {
  Values stored(before.size());
  const auto stored_at = [&](int l, int i, int j) {
    return by_rows ? s.at(l, i, j) : (static_cast<std::size_t>(l) * s.n + j) * s.m + i;
  };
  const auto for_each = [&](const auto& visit) {
    for (int l = 0; l < s.batches; ++l)
      for (int i = 0; i < s.m; ++i)
        for (int j = 0; j < s.n; ++j) visit(s.at(l, i, j), stored_at(l, i, j));
  };
  for_each([&](std::size_t at, std::size_t in_memory) { stored[in_memory] = before[at]; });
  const auto values = [&](const auto& c) {
    const Values all = support::values(c);
    Values list(all.size());
    for_each([&](std::size_t at, std::size_t in_memory) { list[at] = all[in_memory]; });
    return list;
  };
  if (by_rows) {
    const auto c = support::batch<T, Exec>(s.batches, s.m, s.n, stored, "c");
    use(c, [&] { return values(c); });
  } else {
    const auto c = support::batch<T, Exec>(s.batches, s.n, s.m, stored, "c");
    use(rigel::transposed(c), [&] { return values(c); });
  }
}

/// The results in double, and the magnitudes that their bounds are relative to.
struct Exact {
  Values value, magnitude;
};
template <class F>
Exact exact_of(const Shape& s, const Values& a, const Values& b, bool least, bool products, const F& f) {
  Exact exact;
  for (int l = 0; l < s.batches; ++l)
    for (int i = 0; i < s.m; ++i)
      for (int j = 0; j < s.n; ++j) {
        double value = least ? std::numeric_limits<double>::infinity() : 0, magnitude = 0;
        for (int k = 0; k < s.k; ++k) {
          const double term =
              f(a[(static_cast<std::size_t>(l) * s.m + i) * s.k + k], b[(static_cast<std::size_t>(l) * s.k + k) * s.n + j]);
          value = least ? std::fmin(value, term) : value + term;
          magnitude += std::fabs(term);
        }
        exact.value.push_back(value);
        exact.magnitude.push_back(products ? magnitude : std::fabs(value));
      }
  return exact;
}

template <class T>
constexpr double unit = std::is_same_v<T, rigel::bfloat16> ? 0x1p-8
                        : std::is_same_v<T, rigel::half>   ? 0x1p-11
                                                           : 0x1p-24;

/// scale_column(v) | add_row(b) | relu() or silu() | residual(r), r a matrix or C itself.
template <class S, class C, class Exec, class F>
void check(const Shape& s, bool by_rows, bool smooth, bool in_place, bool least, bool products, const F& f) {
  using T = typename S::element;
  const Exec exec;
  const auto outputs = static_cast<std::size_t>(s.batches) * s.m * s.n;
  const Values a = random_values<T>(static_cast<std::size_t>(s.batches) * s.m * s.k, -2, 2, 1);
  Values b = random_values<T>(static_cast<std::size_t>(s.batches) * s.k * s.n, -2, 2, 2);
  // Every third column of B is a row of A: distances of 0, which some kernels compute a second time.
  for (int l = 0; l < s.batches; ++l)
    for (int j = 0; j < std::min(s.m, s.n); j += 3)
      for (int k = 0; k < s.k; ++k)
        b[(static_cast<std::size_t>(l) * s.k + k) * s.n + j] = a[(static_cast<std::size_t>(l) * s.m + j) * s.k + k];
  const Values column = random_values<rigel::bfloat16>(static_cast<std::size_t>(s.batches) * s.m, -2, 2, 3),
               row = random_values<float>(s.n, -3, 3, 4), matrix = random_values<C>(outputs, -4, 4, 5);
  const auto a_view = support::batch<T, Exec>(s.batches, s.m, s.k, a),
             b_view = support::batch<T, Exec>(s.batches, s.k, s.n, b);
  const auto column_view = support::matrix<rigel::bfloat16, Exec>(s.batches, s.m, column);
  const auto row_view = support::matrix<float, Exec>(1, s.n, row);
  const auto matrix_view = support::batch<C, Exec>(s.batches, s.m, s.n, matrix);
  const Exact exact = exact_of(s, a, b, least, products, f);
  const epilogue::Program first =
      epilogue::scale_column(column_view) | epilogue::add_row(row_view) | (smooth ? epilogue::silu() : epilogue::relu());
  const std::string c_type = rigel::name(rigel::scalar_of<C>), shape = std::to_string(s.batches) + " x " +
                                                                       std::to_string(s.m) + 'x' + std::to_string(s.n) +
                                                                       'x' + std::to_string(s.k);
  CAPTURE(c_type);
  CAPTURE(shape);
  CAPTURE(by_rows);
  CAPTURE(smooth);
  CAPTURE(in_place);
  Values reference;
  const auto kernels =
      support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<T>, rigel::scalar_of<typename S::accumulator>);
  REQUIRE(kernels[0].family == "reference");
  for (const auto& info : kernels) {
    CAPTURE(info.name);
    Values actual;
    const bool ran = support::ran(info, [&] {
      with_c<C, Exec>(s, by_rows, in_place ? matrix : Values(outputs, 7.), [&](const auto& c, const auto& values) {
        const auto call = [&](const auto& program) {
          rigel::contract(exec, S{}, a_view, b_view, c, program, {.precision = info.precision, .kernel = info.name});
        };
        if (!in_place)
          call(first | epilogue::residual(matrix_view));
        else if constexpr (requires { c.view; })
          // C's own elements, at their places, through a view that is not turned.
          call(first | epilogue::residual(Kokkos::View<C***, Kokkos::LayoutStride, typename Exec::memory_space>(
                           c.view.data(), Kokkos::LayoutStride(s.batches, s.m * s.n, s.m, 1, s.n, s.m))));
        else
          call(first | epilogue::residual(c));
        exec.fence();
        actual = values();
      });
    });
    if (!ran) continue;
    if (info.family == "reference") reference = actual;
    const bool bitwise = rigel::covers(info.promises, rigel::Promise::reference_bits);
    if (bitwise && info.family != "reference") {
      CHECK(support::same(actual, reference));
      continue;
    }
    const double u = unit<float>, gamma = (info.accuracy.constant + info.accuracy.per_term * s.k) * u;
    int wrong = 0;
    for (int l = 0; l < s.batches; ++l)
      for (int i = 0; i < s.m; ++i)
        for (int j = 0; j < s.n; ++j) {
          const std::size_t at = s.at(l, i, j);
          const double value = exact.value[at], magnitude = exact.magnitude[at];
          double bound = gamma > 0                 ? gamma * magnitude
                         : info.relative_error > 0 ? std::numeric_limits<double>::infinity()
                                                   : u * magnitude;  // of a ⊗ b alone
          if (info.relative_error > 0)
            bound = std::fmin(bound, info.relative_error * std::fabs(value) + (2 + s.k) * u * magnitude);
          const double factor = column[static_cast<std::size_t>(l) * s.m + i], scaled = value * factor,
                       before = scaled + row[j], r = matrix[at];
          // The slope of silu is below 1.1, and exp rounds its argument.
          const double after = smooth ? before / (1 + std::exp(-before)) : std::fmax(before, 0);
          const double slope = smooth ? 1.1 : 1, steps = smooth ? 8 + std::fabs(before) : 0;
          const double sum = std::fabs(scaled) + std::fabs(row[j]);
          const double error = slope * (bound * std::fabs(factor) + 3 * u * (sum + bound * std::fabs(factor))) +
                               u * steps * (std::fabs(after) + bound * std::fabs(factor));
          const double expected = after + r;
          const double total = error + (u + 2 * unit<C>)*(std::fabs(after) + std::fabs(r) + error);
          wrong += !(std::fabs(actual[at] - expected) <= total);
        }
    CHECK(wrong == 0);
  }
}

template <class S, class C, class Exec, class F>
void check_all(bool least, bool products, const F& f) {
  const Shape parts{2, 130, 70, 33}, whole{1, 256, 128, 64}, odd{1, 130, 66, 1024}, few{1, 3, 67, 129};
  for (const bool by_rows : {true, false})
    for (const bool in_place : {false, true}) {
      check<S, C, Exec>(parts, by_rows, in_place, in_place, least, products, f);
      check<S, C, Exec>(whole, by_rows, !in_place, in_place, least, products, f);
    }
  check<S, C, Exec>(odd, true, true, false, least, products, f);
  check<S, C, Exec>(few, false, false, false, least, products, f);
}

double product(double x, double y) { return x * y; }
double sum(double x, double y) { return x + y; }
double square(double x, double y) { return (x - y) * (x - y); }

/// Counts of different bits, scaled by powers of two in memory: exact in every type.
template <class Word, class Exec>
void check_codes() {
  const Shape s{1, 137, 268, 48};
  support::Random random(6);
  const auto words = [&](int count) {
    std::vector<Word> list(static_cast<std::size_t>(count) * s.k);
    for (Word& word : list) word = static_cast<Word>(random.next());
    return list;
  };
  const std::vector<Word> a = words(s.m), b = words(s.n);
  const auto a_view = support::matrix<Word, Exec>(s.m, s.k), b_view = support::matrix<Word, Exec>(s.n, s.k);
  support::copy_in<Exec>(a_view.data(), a.data(), a.size() * sizeof(Word));
  support::copy_in<Exec>(b_view.data(), b.data(), b.size() * sizeof(Word));
  Values row, column, scaled, rounded;
  for (int j = 0; j < s.n; ++j) row.push_back(std::ldexp(1, static_cast<int>(random.integer(-3, 3))));
  for (int i = 0; i < s.m; ++i) column.push_back(std::ldexp(1, static_cast<int>(random.integer(-3, 3))));
  for (int i = 0; i < s.m; ++i)
    for (int j = 0; j < s.n; ++j) {
      int count = 0;
      for (int k = 0; k < s.k; ++k) count += std::popcount(static_cast<Word>(a[i * s.k + k] ^ b[j * s.k + k]));
      scaled.push_back(count * row[j] * column[i] + (j - i == 2 ? 0.5 : 0));
      rounded.push_back(std::nearbyint(scaled.back()));
    }
  const Kokkos::View<float*, typename Exec::memory_space> row_view("row", s.n), column_view("column", s.m);
  support::fill(row_view, row);
  support::fill(column_view, column);
  const epilogue::Program program =
      epilogue::scale_row(row_view) | epilogue::scale_column(column_view) | epilogue::add_diagonal(0.5, 2, 0);
  const auto check_c = [&]<class C>(C, const Values& expected) {
    for (const auto& info : support::kernels_on(Exec{}, "bit_hamming", rigel::scalar_of<Word>))
      for (const bool by_rows : {true, false}) {
        CAPTURE(info.name);
        CAPTURE(by_rows);
        Values actual;
        const bool ran = support::ran(info, [&] {
          with_c<C, Exec>(s, by_rows, Values(expected.size(), 7.), [&](const auto& c, const auto& values) {
            rigel::contract(Exec{}, rigel::bit_hamming<Word>{}, a_view, rigel::transposed(b_view), c, program,
                            {.kernel = info.name});
            actual = values();
          });
        });
        if (ran) CHECK(actual == expected);
      }
  };
  check_c(0.f, scaled);
  check_c(0., scaled);
  check_c(std::int32_t{}, rounded);
}

/// scale(v) with one v for each matrix, and a residual, of small matrices: min_plus over K = 1, so that float has every result exactly.
template <class C, class Exec>
void check_batches(const Shape& s, bool by_rows) {
  const auto outputs = static_cast<std::size_t>(s.batches) * s.m * s.n;
  support::Random random(s.m);
  const auto whole = [&](std::size_t count) {
    Values list;
    while (list.size() < count) list.push_back(static_cast<double>(random.integer(-8, 8)));
    return list;
  };
  const Values a = whole(static_cast<std::size_t>(s.batches) * s.m), b = whole(static_cast<std::size_t>(s.batches) * s.n),
               factor = whole(s.batches), own = whole(outputs);
  const auto a_view = support::batch<float, Exec>(s.batches, s.m, 1, a);
  const auto b_view = support::batch<float, Exec>(s.batches, 1, s.n, b);
  const auto own_view = support::batch<float, Exec>(s.batches, s.m, s.n, own);
  const Kokkos::View<float*, typename Exec::memory_space> factor_view("factor", s.batches);
  support::fill(factor_view, factor);
  for (const bool adds : {false, true}) {
    Values expected(outputs);
    for (int l = 0; l < s.batches; ++l)
      for (int i = 0; i < s.m; ++i)
        for (int j = 0; j < s.n; ++j)
          expected[s.at(l, i, j)] =
              (a[static_cast<std::size_t>(l) * s.m + i] + b[static_cast<std::size_t>(l) * s.n + j]) * factor[l] +
              (adds ? own[s.at(l, i, j)] : 0);
    const epilogue::Program scaled = epilogue::scale(factor_view);
    const epilogue::Program program = adds ? scaled | epilogue::residual(own_view) : scaled;
    for (const auto& info : support::kernels_on(Exec{}, "min_plus", rigel::Scalar::f32)) {
      CAPTURE(info.name);
      CAPTURE(adds);
      Values actual;
      const bool ran = support::ran(info, [&] {
        with_c<C, Exec>(s, by_rows, Values(outputs, 7.), [&](const auto& c, const auto& values) {
          rigel::contract(Exec{}, rigel::min_plus<float>{}, a_view, b_view, c, program, {.kernel = info.name});
          actual = values();
        });
      });
      if (ran) CHECK(actual == expected);
    }
  }
}

/// Whole numbers in memory as parameters: of each batch, row and column, or the same for all.
template <class T, class Exec>
struct Parameters {
  Shape extents;
  Values numbers;
  support::Batch<T, Exec> view;
  epilogue::Source source;

  Parameters(const Shape& s, int which, int low, int high, std::uint64_t seed)
      : extents{which & 1 ? s.batches : 1, which & 2 ? s.m : 1, which & 4 ? s.n : 1, 0} {
    support::Random random(seed);
    const auto& [batches, m, n, k] = extents;
    for (int i = 0; i < batches * m * n; ++i) numbers.push_back(static_cast<double>(random.integer(low, high)));
    view = support::batch<T, Exec>(batches, m, n, numbers);
    source = epilogue::residual(view).source(0);
  }
  double at(int l, int i, int j) const {
    const auto& [batches, m, n, k] = extents;
    return numbers[extents.at(batches == 1 ? 0 : l, m == 1 ? 0 : i, n == 1 ? 0 : j)];
  }
};

/// min(max(v, low), high), then numerator/(offset + v), both parameters of each in memory, of every shape, by every kernel of S. v are
/// whole numbers. The last numerator is C itself, if its columns are neighbours.
template <class S, class C, class Exec, class F>
void check_second_parameters(bool least, const F& f) {
  using T = typename S::element;
  using Kind = epilogue::Kind;
  const Exec exec;
  for (const Shape& s : {Shape{2, 130, 70, 33}, Shape{1, 256, 128, 64}, Shape{1, 3, 67, 129}, Shape{37, 6, 5, 4}}) {
    support::Random random(s.m);
    const auto whole = [&](std::size_t count) {
      Values list;
      while (list.size() < count) list.push_back(static_cast<double>(random.integer(std::is_unsigned_v<T> ? 0 : -2, 2)));
      return list;
    };
    const auto outputs = static_cast<std::size_t>(s.batches) * s.m * s.n;
    const Values a = whole(static_cast<std::size_t>(s.batches) * s.m * s.k),
                 b = whole(static_cast<std::size_t>(s.batches) * s.k * s.n), before = whole(outputs);
    const auto a_view = support::batch<T, Exec>(s.batches, s.m, s.k, a),
               b_view = support::batch<T, Exec>(s.batches, s.k, s.n, b);
    const Values value = exact_of(s, a, b, least, true, f).value;
    const auto kernels =
        support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<T>, rigel::scalar_of<typename S::accumulator>);
    for (int which = 0; which < 9; ++which) {
      const bool in_place = which == 8;
      const Parameters<rigel::bfloat16, Exec> low(s, (5 * which + 2) % 8, -8, 2, 1);
      const Parameters<std::int32_t, Exec> high(s, which % 8, -6, 8, 2);
      const Parameters<float, Exec> offset(s, (3 * which + 5) % 8, 16, 64, 3);
      const Parameters<double, Exec> numerator(s, (which + 4) % 8, 1, 100, 4);
      for (const bool by_rows : {true, false}) {
        if (in_place && !by_rows) continue;
        for (const auto& info : kernels) {
          CAPTURE(info.name);
          CAPTURE(s.m);
          CAPTURE(which);
          CAPTURE(by_rows);
          Values actual;
          const bool ran = support::ran(info, [&] {
            with_c<C, Exec>(s, by_rows, before, [&](const auto& c, const auto& values) {
              epilogue::Source of_numerator = numerator.source;
              if constexpr (Kokkos::is_view_v<std::remove_cvref_t<decltype(c)>>)
                if (in_place) of_numerator = epilogue::residual(c).source(0);
              const epilogue::Program program =
                  epilogue::Program(epilogue::Step(Kind::clamp), low.source, high.source) |
                  epilogue::Program(epilogue::Step(Kind::reciprocal), offset.source, of_numerator);
              rigel::contract(exec, S{}, a_view, b_view, c, program, {.precision = info.precision, .kernel = info.name});
              exec.fence();
              actual = values();
            });
          });
          if (!ran) continue;
          int wrong = 0;
          for (int l = 0; l < s.batches; ++l)
            for (int i = 0; i < s.m; ++i)
              for (int j = 0; j < s.n; ++j) {
                const std::size_t at = s.at(l, i, j);
                const double v = std::fmin(std::fmax(value[at], low.at(l, i, j)), high.at(l, i, j));
                const double expected = (in_place ? before[at] : numerator.at(l, i, j)) / (offset.at(l, i, j) + v);
                // Kernels of distances round v.
                wrong += !(std::fabs(actual[at] - expected) <= (0x1p-12 + 2 * unit<C>)*std::fabs(expected));
              }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("epilogues in memory: both parameters of a step, of every shape, every kernel", Exec, RIGEL_TEST_SPACES) {
  SUBCASE("products") {
    check_second_parameters<rigel::plus_times<float>, float, Exec>(false, product);
    check_second_parameters<rigel::plus_times<float>, rigel::half, Exec>(false, product);
    check_second_parameters<rigel::plus_times<double>, double, Exec>(false, product);
    check_second_parameters<rigel::plus_times<rigel::bfloat16>, float, Exec>(false, product);
    check_second_parameters<rigel::plus_times<rigel::bfloat16>, rigel::bfloat16, Exec>(false, product);
    check_second_parameters<rigel::plus_times<std::int8_t>, float, Exec>(false, product);
  }
  SUBCASE("distances") {
    check_second_parameters<rigel::l2_squared<float>, float, Exec>(false, square);
    check_second_parameters<rigel::l2_squared<double>, double, Exec>(false, square);
    check_second_parameters<rigel::l1<float>, float, Exec>(false, [](double x, double y) { return std::fabs(x - y); });
    check_second_parameters<rigel::bit_hamming<std::uint8_t>, float, Exec>(false, [](double x, double y) {
      return static_cast<double>(std::popcount(static_cast<unsigned>(x) ^ static_cast<unsigned>(y)));
    });
  }
  SUBCASE("paths") {
    check_second_parameters<rigel::min_plus<float>, float, Exec>(true, sum);
    check_second_parameters<rigel::min_plus<rigel::half, rigel::half>, float, Exec>(true, sum);
    check_second_parameters<rigel::min_plus<std::int32_t>, double, Exec>(true, sum);
  }
}

TEST_CASE_TEMPLATE("epilogues in memory: a parameter for each matrix of a batch, every kernel of min_plus", Exec,
                   RIGEL_TEST_SPACES) {
  for (const Shape& s : {Shape{37, 1, 1, 1}, Shape{37, 6, 5, 1}, Shape{40, 3, 18, 1}, Shape{33, 17, 2, 1}})
    for (const bool by_rows : {true, false}) {
      check_batches<float, Exec>(s, by_rows);
      check_batches<double, Exec>(s, by_rows);
      check_batches<rigel::half, Exec>(s, by_rows);
    }
}

TEST_CASE_TEMPLATE("epilogues in memory: every kernel of plus_times", Exec, RIGEL_TEST_SPACES) {
  check_all<rigel::plus_times<float>, float, Exec>(false, true, product);
  check_all<rigel::plus_times<float>, rigel::half, Exec>(false, true, product);
  check_all<rigel::plus_times<rigel::bfloat16>, float, Exec>(false, true, product);
  check_all<rigel::plus_times<rigel::bfloat16>, rigel::bfloat16, Exec>(false, true, product);
}

TEST_CASE_TEMPLATE("epilogues in memory: every kernel of min_plus and l2_squared", Exec, RIGEL_TEST_SPACES) {
  check_all<rigel::min_plus<float>, float, Exec>(true, false, sum);
  check_all<rigel::min_plus<float>, rigel::bfloat16, Exec>(true, false, sum);
  check_all<rigel::l2_squared<float>, float, Exec>(false, false, square);
  check_all<rigel::l2_squared<float>, rigel::half, Exec>(false, false, square);
}

TEST_CASE_TEMPLATE("epilogues in memory: every kernel of bit_hamming", Exec, RIGEL_TEST_SPACES) {
  check_codes<std::uint8_t, Exec>();
  check_codes<std::uint32_t, Exec>();
  check_codes<std::uint64_t, Exec>();
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A column-major C gets what a row-major one gets, from every kernel. Kernels whose info says so compute it as the transposed
// problem; here all kernels of a commutative ⊗ do, so that hosts test it, too. Numbers are small integers: nothing rounds.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <string>
#include <vector>

namespace {

namespace epilogue = rigel::epilogue;
using rigel::Contraction;
using rigel::Transposes;
using Values = std::vector<double>;

struct Shape {
  int batches, m, n, k;
};
// Extents around tiles and groups of four; a row, a column; nothing to sum.
const std::vector<Shape> shapes = {{1, 37, 70, 33}, {3, 64, 24, 16}, {1, 129, 260, 40},
                                   {2, 1, 19, 7},   {1, 23, 1, 7},   {1, 8, 12, 0}};

template <class T>
Values integers(std::size_t count, std::uint64_t seed) {
  support::Random random(seed);
  Values list(count);
  for (double& v : list) v = static_cast<double>(random.integer(std::is_unsigned_v<T> ? 0 : -3, 3));
  return list;
}

std::size_t product(int x, int y, int z) {
  return static_cast<std::size_t>(x) * static_cast<std::size_t>(y) * static_cast<std::size_t>(z);
}

/// v and the place of the output.
struct Placed {
  KOKKOS_FUNCTION float operator()(float v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return v + static_cast<float>(m - 2 * n + 5 * l);
  }
};

/// The views that steps read, with values that differ by place.
template <class Exec>
struct Read {
  support::Matrix<float, Exec> row, column;  // of each batch
  support::Batch<float, Exec> matrix;
  Kokkos::View<float*, typename Exec::memory_space> numbers;
  Kokkos::View<float, typename Exec::memory_space> nine{"nine"};

  explicit Read(const Shape& s)
      : row(support::matrix<float, Exec>(s.batches, s.n, integers<float>(product(s.batches, s.n, 1), 11))),
        column(support::matrix<float, Exec>(s.batches, s.m, integers<float>(product(s.batches, s.m, 1), 12))),
        matrix(support::batch<float, Exec>(s.batches, s.m, s.n, integers<float>(product(s.batches, s.m, s.n), 13))),
        numbers("numbers", static_cast<std::size_t>(s.batches)) {
    support::fill(numbers, integers<float>(static_cast<std::size_t>(s.batches), 14));
    Kokkos::deep_copy(nine, 9.f);
  }

  /// All steps whose parameters or places depend on rows, columns or batches, one by one and together.
  std::vector<epilogue::Program> programs() const {
    const auto first_row = Kokkos::subview(row, 0, Kokkos::ALL), first_column = Kokkos::subview(column, 0, Kokkos::ALL);
    return {{},
            epilogue::scale(2),
            epilogue::add_row(row),
            epilogue::add_row(first_row) | epilogue::relu(),
            epilogue::add_column(column),
            epilogue::add_column(first_column) | epilogue::relu(),
            epilogue::scale_row(row),
            epilogue::scale_column(column),
            epilogue::residual(matrix),
            epilogue::add_diagonal(7, 5, 2),
            epilogue::add_diagonal(numbers, 0, 3),
            epilogue::clamp(numbers, nine),
            epilogue::scale(numbers) | epilogue::scale_column(column) | epilogue::add_row(row) | epilogue::residual(matrix) |
                epilogue::add_diagonal(3, 0, 1)};
  }
};

/// One call by each kernel that covers it: into a row-major C, into a column-major one, and into that as the transposed problem.
template <class S, class C, class Exec>
class Calls {
  using T = typename S::element;

 public:
  explicit Calls(const Shape& s)
      : shape_(s),
        a_(support::batch<T, Exec>(s.batches, s.m, s.k, integers<T>(product(s.batches, s.m, s.k), 1))),
        b_(support::batch<T, Exec>(s.batches, s.k, s.n, integers<T>(product(s.batches, s.k, s.n), 2))),
        before_(integers<C>(product(s.batches, s.m, s.n), 3)) {}

  /// Returns the number of kernels that ran.
  template <class E>
  int check(const E& last, rigel::ContractOptions options = {}) const {
    const auto rows = support::batch<C, Exec>(shape_.batches, shape_.m, shape_.n, before_);
    const auto columns = support::batch<C, Exec>(shape_.batches, shape_.n, shape_.m);
    options.precision = rigel::Precision::tf32;  // the last of those that give exact sums of such integers
    const auto by_rows = rigel::problem_of(Exec{}, S{}, a_, b_, rows, last, options);
    const auto by_columns = rigel::problem_of(Exec{}, S{}, a_, b_, rigel::transposed(columns), last, options);
    int kernels = 0;
    for (const auto& [kernel, status, chosen, seconds, workspace, admission] : rigel::candidates(by_columns)) {
      CAPTURE(kernel->info.name);
      if (!status) continue;
      ++kernels;
      support::fill(rows, before_);
      // A kernel that takes C in fours of its columns may not cover the other C.
      const rigel::Kernel<Contraction>* of_rows = rigel::supports(*kernel, by_rows) ? kernel : &rigel::select(by_rows);
      rigel::run(*of_rows, by_rows);
      const Values expected = turned(support::values(rows));
      CHECK(support::same(run(*kernel, by_columns, columns), expected));
      if (!rigel::is_commutative<S>) CHECK(kernel->info.transposes == Transposes::no);
      // A functor sees places in the transpose unless its kernel swaps them.
      if (!rigel::in_zoo<S> || !std::is_same_v<E, epilogue::Program>) continue;
      rigel::Kernel<Contraction> transposing = *kernel;
      transposing.info.transposes = Transposes::with_same_bits;
      if (!rigel::supports(transposing, by_columns)) continue;  // BLAS, of another layout
      CHECK(support::same(run(transposing, by_columns, columns), expected));
    }
    return kernels;
  }

 private:
  Values run(const rigel::Kernel<Contraction>& kernel, const Contraction& p, const support::Batch<C, Exec>& columns) const {
    support::fill(columns, turned(before_));
    rigel::run(kernel, p);
    return support::values(columns);
  }
  /// The elements column by column.
  Values turned(const Values& rows) const {
    Values list;
    for (int l = 0; l < shape_.batches; ++l)
      for (int j = 0; j < shape_.n; ++j)
        for (int i = 0; i < shape_.m; ++i)
          list.push_back(rows[product(l, shape_.m, shape_.n) + product(i, shape_.n, 1) + static_cast<std::size_t>(j)]);
    return list;
  }

  Shape shape_;
  support::Batch<T, Exec> a_, b_;
  Values before_;
};

template <class S, class C, class Exec>
void check_programs() {
  for (const Shape& s : shapes) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    const Calls<S, C, Exec> calls(s);
    const Read<Exec> read(s);
    int number = 0;
    for (const epilogue::Program& program : read.programs()) {
      CAPTURE(number++);
      CHECK(calls.check(program) > 0);
      if (number % 3 == 0) CHECK(calls.check(program, {.accumulate = true}) > 0);
    }
  }
}

template <class S, class C, class Exec>
void check_plain(const epilogue::Program& program = {}) {
  for (const Shape& s : shapes) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    CHECK((Calls<S, C, Exec>(s).check(program)) > 0);
  }
}

/// Σ_k (a − 2b), which does not commute and does not say that it does.
struct Unequal {
  using element = float;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return a - 2 * b; }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

/// Σ_k |a − b| in a functor that says that it commutes.
struct Apart {
  using self = Apart;
  using element = float;
  using accumulator = float;
  static constexpr bool commutative = true;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(float a, float b) { return Kokkos::abs(a - b); }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

}  // namespace

TEST_CASE_TEMPLATE("column-major C: all steps that tell rows from columns", Exec, RIGEL_TEST_SPACES) {
  check_programs<rigel::plus_times<float>, float, Exec>();
  check_programs<rigel::plus_times<rigel::bfloat16>, float, Exec>();
  check_programs<rigel::l2_squared<float>, float, Exec>();
  check_programs<rigel::min_plus<float>, float, Exec>();
}

TEST_CASE_TEMPLATE("column-major C: semirings and types", Exec, RIGEL_TEST_SPACES) {
  check_plain<rigel::plus_times<rigel::bfloat16>, rigel::bfloat16, Exec>();
  check_plain<rigel::plus_times<rigel::half>, rigel::half, Exec>();
  check_plain<rigel::plus_times<double>, double, Exec>();
  check_plain<rigel::plus_times<std::int8_t>, std::int32_t, Exec>();
  check_plain<rigel::l2_squared<float>, float, Exec>(epilogue::pow(2));
  check_plain<rigel::l2_squared<double>, double, Exec>();
  check_plain<rigel::l1<float>, float, Exec>();
  check_plain<rigel::or_and<std::uint32_t>, std::uint32_t, Exec>(epilogue::any_bit());
  check_plain<rigel::bit_hamming<std::uint32_t>, std::int32_t, Exec>();
  check_plain<rigel::bit_jaccard<std::uint32_t>, float, Exec>();
}

TEST_CASE_TEMPLATE("column-major C: functors get the caller's m and n", Exec, RIGEL_TEST_SPACES) {
  for (const Shape& s : shapes) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    const auto placed = epilogue::functor(Placed{});
    CHECK((Calls<rigel::plus_times<rigel::bfloat16>, float, Exec>(s).check(placed)) > 0);
    CHECK((Calls<rigel::plus_times<float>, float, Exec>(s).check(epilogue::scale(2) | placed)) > 0);
    CHECK((Calls<rigel::l2_squared<float>, float, Exec>(s).check(placed)) > 0);
  }
}

#if RIGEL_BACKEND_REFERENCE
// The same on hosts, by the reference with a functor for kernels that transpose.
TEST_CASE_TEMPLATE("column-major C: a functor in a transposed problem", Exec, RIGEL_TEST_SPACES) {
  using S = rigel::plus_times<float>;
  using Finish = rigel::detail::FunctorFinish<Placed, float, true>;
  rigel::Kernel<Contraction> kernel = rigel::backends::reference::kernel<S, Finish, rigel::type_list<Exec>>();
  kernel.info.transposes = Transposes::with_same_bits;
  const auto a = support::batch<float, Exec>(2, 2, 1, {1, 2, 3, 4}),
             b = support::batch<float, Exec>(2, 1, 3, {1, 2, 3, 4, 5, 6});
  const auto c = support::batch<float, Exec>(2, 3, 2);
  rigel::run(kernel, rigel::problem_of(Exec{}, S{}, a, b, rigel::transposed(c), Placed{}));
  // A(l,m)·B(l,n) + m − 2n + 5l: {1, 2 − 2, 3 − 4}, {2 + 1, 4 − 1, 6 − 3}; {12 + 5, 15 + 3, 18 + 1}, {16 + 6, 20 + 4, 24 + 2}.
  CHECK(support::values(c) == Values{1, 3, 0, 3, -1, 3, 17, 22, 18, 24, 19, 26});
}
#endif

TEST_CASE_TEMPLATE("column-major C: semirings of the user's", Exec, RIGEL_TEST_SPACES) {
  for (const Shape& s : shapes) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    const Read<Exec> read(s);
    for (const epilogue::Program& program : {epilogue::add_row(read.row), epilogue::add_diagonal(7, 5, 2)}) {
      CHECK((Calls<Unequal, float, Exec>(s).check(program)) > 0);
      CHECK((Calls<Apart, float, Exec>(s).check(program)) > 0);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Monoids from text as reducers, against compiled functors of the same operations: the same bits, in one and in several chunks.
#include "texts.hpp"

#include <rigel/neighbors.hpp>
#include <rigel/runtime_monoid.hpp>
#include <rigel/runtime_reduce.hpp>

#include <limits>

using rigel::Scalar, rigel::runtime::Epilogue, rigel::runtime::Monoid, rigel::runtime::Semiring;
using texts::Batch, texts::Host, texts::Matrix;

namespace {

template <class T>
using Results = Kokkos::View<T**, Kokkos::LayoutRight, texts::Memory>;
template <class T>
using Row = Kokkos::View<T*, Kokkos::LayoutRight, texts::Memory>;

template <class T>
struct SumOfSquares {
  RIGEL_MEMBER T identity() const { return 0; }
  RIGEL_MEMBER T of(T score, std::int64_t) const { return score * score; }
  RIGEL_MEMBER T join(T x, T y) const { return x + y; }
  RIGEL_MEMBER T result(T x) const { return x; }
};

/// The variance of the scores, by parts.
template <class T>
struct Variance {
  struct State {
    T count, mean, squares;
  };
  RIGEL_MEMBER State identity() const { return {0, 0, 0}; }
  RIGEL_MEMBER State of(T score, std::int64_t) const { return {1, score, 0}; }
  RIGEL_MEMBER State join(State x, State y) const {
    const T count = x.count + y.count, difference = y.mean - x.mean;
    if (count == 0) return x;
    return {count, x.mean + difference * y.count / count,
            x.squares + y.squares + difference * difference * x.count * y.count / count};
  }
  RIGEL_MEMBER T result(State x) const { return x.squares / x.count; }
};

template <class T>
Monoid sum_of_squares() {
  return Monoid({.score = rigel::scalar_of<T>, .of = "score * score", .join = "x + y"});
}
template <class T>
Monoid variance() {
  const Scalar type = rigel::scalar_of<T>;
  return Monoid({.name = "variance",
                 .score = type,
                 .state = {{"count", type}, {"mean", type}, {"squares", type}},
                 .of = "{1, score, 0}",
                 .join = "auto count = x.count + y.count; auto difference = y.mean - x.mean; if (count == 0) return x;"
                         "return {count, x.mean + difference * y.count / count,"
                         "        x.squares + y.squares + difference * difference * x.count * y.count / count};",
                 .identity = "{0, 0, 0}",
                 .result = "x.squares / x.count"});
}

/// How many results of a monoid from text differ from those of a functor, over the same kernel's scores.
template <class T, class M>
int different(const Monoid& text, const M& compiled, const rigel::ReduceOptions& options, int n) {
  const int m = options.exclude_self ? n : 40;
  const Batch<T> a("a", 2, m, 5), b("b", 2, 5, n);
  texts::fill(a, 1);
  texts::fill(b, 2);
  const Results<T> x("x", 2, m), y("y", 2, m);
  rigel::reduce(Host{}, rigel::l1<T>{}, a, b, text, x, options);
  rigel::reduce(Host{}, rigel::l1<T>{}, a, b, rigel::reducer::monoid{compiled}, y, options);
  return texts::different(x, y);
}

}  // namespace

TEST_CASE_TEMPLATE("text monoids: the bits of compiled functors, in one and in several chunks", T, float, double) {
  if (!texts::can_compile()) return;
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}})
    for (const bool exclude_self : {false, true})
      for (const int n : {1, 31, 33, 95, 250}) {
        CAPTURE(limit);
        CAPTURE(n);
        const rigel::ReduceOptions options{.exclude_self = exclude_self,
                                           .kernel = "portable.strips",
                                           .score_kernel = "reference",
                                           .workspace_limit = limit};
        CHECK(different<T>(sum_of_squares<T>(), SumOfSquares<T>{}, options, n) == 0);
        CHECK(different<T>(variance<T>(), Variance<T>{}, options, n) == 0);
      }
  CHECK(different<T>(variance<T>(), Variance<T>{}, {.kernel = "portable.strips"}, 2500) == 0);
  // Rows 3 to 19 have columns 70 to 199 and 5 to 29, rows 20 to 39 column 0; the others have none.
  using Intervals = Kokkos::View<std::int64_t* [2], Kokkos::LayoutRight, Kokkos::HostSpace>;
  const Intervals rows("rows", 2), columns("columns", 3);
  const Kokkos::View<std::int64_t*, Kokkos::HostSpace> slices("slices", 2);
  rows(0, 0) = 3, rows(0, 1) = 20, rows(1, 0) = 20, rows(1, 1) = 40;
  columns(0, 0) = 70, columns(0, 1) = 200, columns(1, 0) = 5, columns(1, 1) = 30, columns(2, 0) = 0, columns(2, 1) = 1;
  slices(0) = 2, slices(1) = 3;
  const rigel::Ranges ranges(Host{}, 40, 210, rows, slices, columns);
  CHECK(different<T>(variance<T>(), Variance<T>{}, {.ranges = ranges, .kernel = "portable.strips"}, 210) == 0);
}

TEST_CASE("text monoids: integers, places, distances, epilogues and scores from text") {
  if (!texts::can_compile()) return;
  // The last place of an even score.
  const Monoid last({.score = Scalar::i32,
                     .of = "score % 2 == 0 ? int(n) : none",
                     .join = "max(x, y)",
                     .identity = "-9",
                     .hyperparameters = {{"none", -5}}});
  const Matrix<std::int32_t> a("a", 1, 1), b("b", 1, 2500);
  for (int n = 0; n < 2500; ++n) b(0, n) = n % 7 - 3;
  const Row<std::int64_t> place("place", 1);
  rigel::reduce(Host{}, rigel::max_plus<std::int32_t>{}, a, b, last, place);
  CHECK(place(0) == 2497);  // 2497 % 7 - 3 = 2; 3 and -3 follow
  const Semiring text({.element = Scalar::i32, .multiply = "a + b", .add = "max(x, y)"});
  for (const bool from_text : {false, true}) {
    place(0) = 0;
    const auto odd = Kokkos::subview(b, Kokkos::ALL, std::pair(2496, 2497));
    if (from_text)
      rigel::reduce(Host{}, text, a, odd, last, place);
    else
      rigel::reduce(Host{}, rigel::max_plus<std::int32_t>{}, a, odd, last, place);
    CHECK(place(0) == -5);
  }
  rigel::reduce(Host{}, text, a, Kokkos::subview(b, Kokkos::ALL, std::pair(0, 0)), last, place);
  CHECK(place(0) == -9);  // of no scores

  // Scores 0, 2, 4 of doubles after an epilogue from text: sums of squares 0 + 4 + 16.
  const Matrix<double> x("x", 1, 1), y("y", 1, 3);
  for (int n = 0; n < 3; ++n) y(0, n) = n;
  const Row<double> sum("sum", 1);
  const Semiring product({.element = Scalar::f64, .multiply = "a + b", .add = "x + y"});
  rigel::reduce(Host{}, product, x, y, sum_of_squares<double>(), sum, rigel::no_output,
                Epilogue({.argument = Scalar::f64, .body = "2 * x"}));
  CHECK(sum(0) == 20);
  // Distances 0, 1, 2 of points on a line.
  const Matrix<double> points("points", 3, 1);
  for (int n = 0; n < 3; ++n) points(n, 0) = n;
  rigel::reduce_distances(Host{}, x, points, rigel::metric::euclidean{}, sum_of_squares<double>(), sum);
  CHECK(sum(0) == 5);
  CHECK(rigel::explain_reduce(Host{}, rigel::plus_times<double>{}, x, y, sum_of_squares<double>(), sum)
            .find("portable.strips") != std::string::npos);
}

TEST_CASE("text monoids: hyperparameters in numbers and in views compile nothing") {
  if (!texts::can_compile()) return;
  Monoid count({.name = "beyond", .of = "score > t ? w : 0", .join = "x + y", .hyperparameters = {{"t", 2}, {"w", 1}}});
  const Batch<float> a("a", 3, 2, 1);
  const Matrix<float> b("b", 1, 40);
  for (int n = 0; n < 40; ++n) b(0, n) = static_cast<float>(n);
  const Results<float> counts("counts", 3, 2);
  const auto reduce = [&] { rigel::reduce(Host{}, rigel::max_plus<float>{}, a, b, count, counts); };
  reduce();
  CHECK(counts(2, 1) == 37);
  const rigel::runtime::Statistics before = rigel::runtime::statistics();
  const Row<float> t("t", 3);
  t(0) = -1, t(1) = 10, t(2) = 39;
  const Monoid copy = count;
  count.set("t", t);
  count.set("w", 2);
  reduce();
  CHECK(counts(0, 1) == 80);
  CHECK(counts(1, 0) == 58);
  CHECK(counts(2, 0) == 0);
  t(2) = 38;  // read at each call
  reduce();
  CHECK(counts(2, 0) == 2);
  CHECK(rigel::runtime::statistics().compiled == before.compiled);
  CHECK(copy.get("t") == 2);
  rigel::reduce(Host{}, rigel::max_plus<float>{}, a, b, copy, counts);
  CHECK(counts(2, 1) == 37);
}

TEST_CASE("text monoids: what is refused") {
  const auto refused = [](const auto& call, std::initializer_list<const char*> says,
                          rigel::Code code = rigel::Code::invalid_argument) {
    const support::Caught caught = support::caught(call);
    CHECK(caught.code == code);
    CHECK(caught.lacks(says) == "");
  };
  refused([] { Monoid({.of = "scor", .join = "x + y"}); },
          {"runtime::Monoid: of, line 1, column 1: 'scor' is not known here", "\n  scor\n  ^"});
  refused([] { Monoid({.of = "score", .join = "x * y"}); },
          {"runtime::Monoid: identity", "expected the identity of join, a constant", "only if join is"});
  refused([] { Monoid({.score = Scalar::f16, .of = "score", .join = "x + y"}); }, {"the score type is f16"});
  refused([] { Monoid({.state = Scalar::f64, .of = "score", .join = "x + y"}); },
          {"the state type is f64, expected f32, that of scores"});
  refused(
      [] { Monoid({.state = {{"s", Scalar::f64}, {"t", Scalar::f32}}, .of = "{0, 0}", .join = "x", .identity = "{0, 0}"}); },
      {"field 's' of the state has type f64, expected f32 or i32 for scores of f32"});
  refused(
      [] { Monoid({.state = {{"s", Scalar::f32}, {"t", Scalar::f32}}, .of = "{0, 0}", .join = "x", .identity = "{0, 0}"}); },
      {"result is empty, expected what values receive of a state of several fields"});
  refused([] { Monoid({.of = "score", .join = "x + y", .hyperparameters = {{"score", 1}}}); }, {"is called 'score'"});
  if (!texts::can_compile()) return;
  const Matrix<double> x("x", 1, 1), y("y", 1, 3);
  const Row<double> sum("sum", 1);
  const Row<int> whole("whole", 1);
  const Monoid of_floats = sum_of_squares<float>(), of_doubles = sum_of_squares<double>();
  refused([&] { rigel::reduce(Host{}, rigel::plus_times<double>{}, x, y, of_floats, sum); },
          {"reduce: monoid 'text' takes scores of type f32, but these are of type f64"});
  refused([&] { rigel::reduce(Host{}, rigel::plus_times<double>{}, x, y, of_doubles, whole); },
          {"values 'whole' 1x1 of i32, expected f16, bf16, f32 or f64"});
  Monoid many({.name = "many", .score = Scalar::f64, .of = "score * p", .join = "x + y", .hyperparameters = {{"p", 1}}});
  many.set("p", Row<double>("p", 3));
  refused([&] { rigel::reduce(Host{}, rigel::plus_times<double>{}, x, y, many, sum); },
          {"hyperparameter 'p' of 'many' has 3 elements, expected 1, one for each matrix of the batch"});
#ifdef KOKKOS_ENABLE_CUDA
  refused([&] { rigel::reduce(Kokkos::Cuda{}, rigel::plus_times<double>{}, x, y, of_doubles, sum); },
          {"reduce: monoid 'text' is a text, which runs on the host, not on space cuda, expected a functor there"},
          rigel::Code::unsupported);
#endif
}

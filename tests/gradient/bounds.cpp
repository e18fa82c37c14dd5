// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random gradients by every kernel, held to its a-priori bound against sums in double: sizes around tiles, layouts, batches and
// broadcasting, p per batch. And derivatives against central differences of the distance itself.
#include <tests/gradient/problems.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using gradient::Extents;
using gradient::Inputs;
using gradient::Numbers;

namespace {

namespace of = rigel::gradient_of;

// The views of a problem, with its inputs.
template <class T, class Exec, class LayoutIn = Kokkos::LayoutRight, class LayoutOut = LayoutIn>
struct Views {
  decltype(gradient::batch_of<T, Exec, LayoutIn>(0, 0, 0)) a, b, c, d;
  decltype(gradient::outputs_of<T, Exec, LayoutOut>(0, 0, 0, 0)) out;

  explicit Views(const Inputs& in)
      : a(gradient::batch_of<T, Exec, LayoutIn>(in.e.batch, in.e.k, in.e.m)),
        b(gradient::batch_of<T, Exec, LayoutIn>(in.e.batch, in.e.n, in.e.k)),
        c(gradient::batch_of<T, Exec, LayoutIn>(in.e.batch, in.e.outputs, in.e.k)),
        d(gradient::batch_of<T, Exec, LayoutIn>(in.e.batch, in.e.n, in.e.m)),
        out(gradient::outputs_of<T, Exec, LayoutOut>(in.e.batch, in.e.outputs, in.e.n, in.e.m)) {
    gradient::put(a, in.a);
    gradient::put(b, in.b);
    gradient::put(c, in.c);
    gradient::put(d, in.d);
  }
};

// Runs `make`'s problem on views of the layouts by every kernel that covers it.
template <class G, class Exec, class LayoutIn, class LayoutOut, class Power>
void check(const G& functor, const Inputs& in, const Power& power, double epsilon = 0) {
  using T = typename G::element;
  const Exec exec;
  const Extents& e = in.e;
  const auto& [a, b, c, d, out] = Views<T, Exec, LayoutIn, LayoutOut>(in);
  const gradient::Sums sums = gradient::sums_of(in, power, epsilon);
  for (const std::string& name : gradient::kernels_of<G, Exec>()) {
    CAPTURE(name);
    rigel::GradientOptions options;
    options.kernel = name;
    options.precision = rigel::Precision::bf16x3;
    options.may_cancel = true;
    const rigel::Gradient problem = rigel::gradient_problem(exec, functor, a, b, c, d, out, options);
    const auto* kernel = gradient::covering(problem, name);
    if (!kernel) continue;
    Kokkos::deep_copy(out, std::numeric_limits<T>::quiet_NaN());
    rigel::contract_gradient(exec, functor, a, b, c, d, out, options);
    exec.fence();
    CHECK(gradient::worst_ratio(gradient::get(out), sums, sums.sizes_of(kernel->info), kernel->info.accuracy.of(e.k),
                                gradient::unit<T>, e.k) <= 1);
  }
}

template <class T, class Exec>
void check_all(const Extents& e, std::uint64_t seed) {
  CAPTURE(e.batch);
  CAPTURE(e.outputs);
  CAPTURE(e.n);
  CAPTURE(e.m);
  CAPTURE(e.k);
  support::Random random(seed);
  const Inputs in = gradient::random_inputs<T>(random, e);
  using Right = Kokkos::LayoutRight;
  using Left = Kokkos::LayoutLeft;
  using Stride = Kokkos::LayoutStride;
  const auto constant = [](double p) { return [p](int) { return p; }; };
  check<of::manhattan<T>, Exec, Right, Right>({}, in, constant(1));
  check<of::manhattan<T>, Exec, Left, Stride>(of::manhattan<T>(T(0.25)), in, constant(1), 0.25);
  check<of::euclidean<T>, Exec, Stride, Left>({}, in, constant(2));
  check<of::euclidean<T>, Exec, Left, Right>({}, in, constant(2));
  check<of::minkowski<T>, Exec, Left, Right>(of::minkowski<T>(1.3125), in, constant(1.3125));
  check<of::minkowski<T>, Exec, Right, Left>(of::minkowski<T>(4), in, constant(4));
  check<of::minkowski<T>, Exec, Stride, Stride>(of::minkowski<T>(0.5), in, constant(0.5));
}

constexpr Extents extents[] = {{1, 1, 1, 1, 1},      {2, 3, 5, 7, 4},     {1, 4, 33, 17, 31},  {3, 5, 9, 65, 32},
                               {1, 8, 32, 33, 33},   {1, 9, 34, 31, 64},  {2, 16, 3, 129, 65}, {1, 17, 40, 20, 100},
                               {1, 16, 2, 3, 1100},  {2, 1, 1, 40, 2050}, {1, 33, 18, 19, 10}, {1, 16, 32, 32, 96},
                               {2, 20, 17, 36, 160}, {1, 16, 64, 8, 64},  {1, 8, 130, 12, 128}};

template <class T, class Exec>
void check_extents() {
  std::uint64_t seed = 1;
  for (const Extents& e : extents) check_all<T, Exec>(e, seed++);
}

}  // namespace

TEST_CASE_TEMPLATE("gradients keep their bounds, f32", Exec, RIGEL_TEST_SPACES) { check_extents<float, Exec>(); }
TEST_CASE_TEMPLATE("gradients keep their bounds, f64", Exec, RIGEL_TEST_SPACES) { check_extents<double, Exec>(); }

// Infinite weights where points coincide, as distances of 0 give them, and elsewhere; NaN and infinities in C and D: by every kernel as
// the reference has it.
TEST_CASE_TEMPLATE("what is infinite or NaN is so for every kernel", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{1, 10, 5, 40, 70};
  support::Random random(13);
  Inputs in = gradient::random_inputs<float>(random, e);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto weight = [&](int k, int m) -> double& { return in.a[static_cast<std::size_t>(k) * e.m + m]; };
  for (int m = 0; m < e.m; ++m) {  // point m is training point m
    for (int n = 0; n < e.n; ++n) in.d[static_cast<std::size_t>(n) * e.m + m] = in.known(0, n, m);
    weight(m, m) = infinity;
  }
  weight(60, 3) = -infinity;
  weight(61, 4) = std::numeric_limits<double>::quiet_NaN();
  in.c[std::size_t{2} * e.k + 7] = infinity;
  in.d[std::size_t{1} * e.m + 20] = infinity;
  in.b[std::size_t{3} * e.k + 65] = 1e38;
  weight(65, 30) = 1e38;
  const auto& [a, b, c, d, out] = Views<float, Exec>(in);
  const auto check = [&](const auto& functor) {
    const auto by = [&](std::string_view name) {
      const rigel::GradientOptions options{.precision = rigel::Precision::bf16x3, .may_cancel = true, .kernel = name};
      rigel::contract_gradient(exec, functor, a, b, c, d, out, options);
      exec.fence();
      Numbers classes;
      for (const double x : gradient::get(out)) classes.push_back(x != x ? 2 : std::abs(x) < infinity ? 0 : x > 0 ? 1 : -1);
      return classes;
    };
    const Numbers expected = by("reference");
    CHECK(std::ranges::count(expected, 0) > 1000);
    CHECK(std::ranges::count(expected, 2) > 0);
    const rigel::GradientOptions options{.precision = rigel::Precision::bf16x3, .may_cancel = true};
    int others = 0;
    for (const auto& candidate : rigel::candidates(rigel::gradient_problem(exec, functor, a, b, c, d, out, options))) {
      if (!candidate.status) continue;
      CAPTURE(candidate.kernel->info.name);
      CHECK(by(candidate.kernel->info.name) == expected);
      ++others;
    }
    CHECK(others >= 2);
  };
  check(rigel::gradient_of::manhattan<float>());
  check(rigel::gradient_of::euclidean<float>());
  check(rigel::gradient_of::minkowski<float>(1.5));
}

// Data of which many outputs are not finite, so that tiles of them are computed again: by every kernel as the reference has it.
TEST_CASE_TEMPLATE("tiles that are infinite or NaN are so for every kernel", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto classes_of = [](const Numbers& values) {
    Numbers classes;
    for (const double x : values) classes.push_back(x != x ? 2 : std::abs(x) < infinity ? 0 : x > 0 ? 1 : -1);
    return classes;
  };
  const auto compare = [&](const auto& functor, const Inputs& in) {
    for (const bool accumulates : {false, true}) {
      const auto& [a, b, c, d, out] = Views<float, Exec>(in);
      rigel::GradientOptions options{.accumulate = accumulates, .precision = rigel::Precision::bf16x3, .may_cancel = true};
      const auto by = [&](std::string_view name) {
        Kokkos::deep_copy(out, 0.5F);
        rigel::GradientOptions named = options;
        named.kernel = name;
        rigel::contract_gradient(exec, functor, a, b, c, d, out, named);
        exec.fence();
        return classes_of(gradient::get(out));
      };
      const Numbers expected = by("reference");
      int others = 0;
      for (const auto& candidate : rigel::candidates(rigel::gradient_problem(exec, functor, a, b, c, d, out, options))) {
        if (!candidate.status) continue;
        CAPTURE(candidate.kernel->info.name);
        CHECK(by(candidate.kernel->info.name) == expected);
        ++others;
      }
      CHECK(others >= 2);
    }
  };
  for (const Extents& e : {Extents{2, 17, 70, 41, 75}, Extents{1, 3, 130, 20, 200}, Extents{1, 6, 5, 64, 32}}) {
    support::Random random(41);
    const Inputs finite = gradient::random_inputs<float>(random, e);
    const auto check = [&](const char* data, const auto& change) {
      CAPTURE(data);
      Inputs in = finite;
      change(in);
      compare(of::manhattan<float>(), in);
      compare(of::euclidean<float>(), in);
      compare(of::minkowski<float>(1.5), in);
    };
    const auto some = [&](Numbers& of_operand, double share, double x) {
      for (double& to : of_operand)
        if (random.uniform(0, 1) < share) to = x;
    };
    check("a NaN in each column of A", [&](Inputs& in) {
      for (int l = 0; l < e.batch; ++l)
        for (int m = 0; m < e.m; ++m) in.a[(static_cast<std::size_t>(l) * e.k + 11 * m % e.k) * e.m + m] = nan;
    });
    check("NaN in A", [&](Inputs& in) { some(in.a, 0.01, nan); });
    check("infinities of both signs in A", [&](Inputs& in) {
      some(in.a, 0.01, infinity);
      some(in.a, 0.01, -infinity);
    });
    check("only NaN in A", [&](Inputs& in) { some(in.a, 1, nan); });
    check("infinities in C", [&](Inputs& in) { some(in.c, 0.01, infinity); });
    check("only NaN in C", [&](Inputs& in) { some(in.c, 1, nan); });
    check("NaN in C and infinities in A", [&](Inputs& in) {
      some(in.c, 0.01, nan);
      some(in.a, 0.01, infinity);
    });
    check("infinities in D", [&](Inputs& in) { some(in.d, 0.3, infinity); });
    check("infinities in B", [&](Inputs& in) { some(in.b, 0.01, -infinity); });
    check("sums beyond the largest number", [&](Inputs& in) {
      for (double& x : in.c) x = 1;
      for (double& x : in.d) x = 2;
      for (double& x : in.b) x = 1;
      for (double& x : in.a) x = std::abs(x);
      some(in.a, 0.5, 3e38F);
    });
  }
}

// docs/numerics.md: from which K on the default admits products on tensor cores, and for which p.
TEST_CASE_TEMPLATE("the default admits tensor cores from some K on", Exec, RIGEL_TEST_SPACES) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return support::skip("tensor cores: a host has none");
  const Exec exec;
  const auto admits = [&](const auto& functor, int k, const rigel::GradientOptions& options = {},
                          std::string_view variant = ".f32.promoted") {
    const Extents e{1, 16, 64, 8, k};
    support::Random random(29);
    const auto& [a, b, c, d, out] = Views<float, Exec>(gradient::random_inputs<float>(random, e));
    const rigel::Gradient problem = rigel::gradient_problem(exec, functor, a, b, c, d, out, options);
    for (const auto& candidate : rigel::candidates(problem))
      if (candidate.kernel->info.name.ends_with(variant)) return bool{candidate.status};
    return false;
  };
  // Products of points: only for calls that may cancel, and have no epsilon.
  const of::euclidean<float> functor;
  constexpr const char* of_points[] = {".of_points.promoted", ".of_points.split", ".of_points.bf16x3"};
  for (const char* const variant : of_points) {
    CHECK(admits(functor, 100, {.precision = rigel::Precision::bf16x3, .may_cancel = true}, variant));
    CHECK(!admits(functor, 100, {.precision = rigel::Precision::bf16x3}, variant));
    CHECK(!admits(of::euclidean<float>(0.125F), 100, {.precision = rigel::Precision::bf16x3, .may_cancel = true}, variant));
  }
  for (const int k : {331, 332}) CHECK(admits(functor, k, {.may_cancel = true}, of_points[0]) == (k >= 332));
  CHECK(!admits(functor, 100000, {.precision = rigel::Precision::promoted, .may_cancel = true}, of_points[1]));
  CHECK(!admits(functor, 100000, {.precision = rigel::Precision::split, .may_cancel = true}, of_points[2]));
  for (const int k : {55, 56}) CHECK(admits(of::manhattan<float>(), k) == (k >= 56));
  for (const int k : {185, 186}) CHECK(admits(of::euclidean<float>(), k) == (k >= 186));
  for (const int k : {696, 697}) CHECK(admits(of::minkowski<float>(1.5), k) == (k >= 697));
  CHECK(!admits(of::minkowski<float>(2.5), 5000));
}

// Products of points are measured from the mean of each coordinate: an offset of all points changes no bound.
TEST_CASE_TEMPLATE("points far from the origin", Exec, RIGEL_TEST_SPACES) {
  const Extents e{1, 9, 40, 33, 300};
  support::Random random(31);
  Inputs in = gradient::random_inputs<float>(random, e);
  for (Numbers* const points : {&in.b, &in.d})
    for (double& x : *points) x = static_cast<float>(x + 100000);
  check<of::euclidean<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutRight>({}, in, [](int) { return 2.0; });
}

// So many points that the pairs (o, n) are not all in one step: columns here and there, of the first step and of the last.
TEST_CASE_TEMPLATE("products of points in steps", Exec, RIGEL_TEST_SPACES) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return support::skip("tensor cores: a host has none");
  const Exec exec;
  const Extents e{1, 13, 10, 1100000, 3};
  support::Random random(37);
  const Inputs in = gradient::random_inputs<float>(random, e);
  // The same problem of every 997th column.
  constexpr int apart = 997;
  Inputs some = in;
  some.e.m = (e.m + apart - 1) / apart;
  const auto every = [&](const Numbers& of_rows) {
    Numbers kept;
    for (std::size_t i = 0; i < of_rows.size(); ++i)
      if (i % e.m % apart == 0) kept.push_back(of_rows[i]);
    return kept;
  };
  some.a = every(in.a);
  some.d = every(in.d);
  const gradient::Sums sums = gradient::sums_of(some, [](int) { return 2.0; });
  const auto check = [&](const auto& views) {
    const auto& [a, b, c, d, out] = views;
    const rigel::GradientOptions options{
        .precision = rigel::Precision::split, .may_cancel = true, .kernel = "cuda.gradient.euclidean.f32.of_points.split"};
    rigel::contract_gradient(exec, of::euclidean<float>(), a, b, c, d, out, options);
    exec.fence();
    CHECK(gradient::worst_ratio(every(gradient::get(out)), sums, sums.of_points, 469 + 27 * e.k, 0x1p-24, e.k) <= 1);
  };
  check(Views<float, Exec>(in));
  check(Views<float, Exec, Kokkos::LayoutLeft>(in));
}

// Weights that are infinite or NaN where points coincide belong to terms that are 0: the others keep their bounds.
TEST_CASE_TEMPLATE("infinite weights of coinciding points", Exec, RIGEL_TEST_SPACES) {
  for (const Extents& e : {Extents{1, 17, 70, 40, 100}, Extents{2, 5, 3, 9, 33}}) {
    support::Random random(23);
    Inputs in = gradient::random_inputs<float>(random, e);
    for (int l = 0; l < e.batch; ++l)
      for (int m = 0; m < e.m; ++m) {
        const int k = (7 * m + l) % e.k;
        for (int n = 0; n < e.n; ++n) in.d[(static_cast<std::size_t>(l) * e.n + n) * e.m + m] = in.known(l, n, k);
        in.a[(static_cast<std::size_t>(l) * e.k + k) * e.m + m] =
            m % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
      }
    const auto constant = [](double p) { return [p](int) { return p; }; };
    check<of::manhattan<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutRight>({}, in, constant(1));
    check<of::euclidean<float>, Exec, Kokkos::LayoutLeft, Kokkos::LayoutLeft>({}, in, constant(2));
    check<of::euclidean<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutRight>(of::euclidean<float>(0.125F), in,
                                                                                constant(2), 0.125);
    check<of::minkowski<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutRight>(of::minkowski<float>(1.5), in,
                                                                                constant(1.5));
    check<of::minkowski<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutRight>(of::minkowski<float>(0.75), in,
                                                                                constant(0.75));
  }
}

// Training points that coincide, with each other and with a point: several infinite weights of a point belong to terms that are 0.
TEST_CASE_TEMPLATE("infinite weights of training points that coincide", Exec, RIGEL_TEST_SPACES) {
  const Extents e{2, 17, 70, 41, 100};
  constexpr int group = 4;
  support::Random random(43);
  Inputs in = gradient::random_inputs<float>(random, e);
  for (int l = 0; l < e.batch; ++l)
    for (int n = 0; n < e.n; ++n)
      for (int k = 0; k < e.k; ++k)
        in.b[(static_cast<std::size_t>(l) * e.n + n) * e.k + k] = in.known(l, n, k / group * group);
  for (int l = 0; l < e.batch; ++l)
    for (int m = 0; m < e.m; ++m) {
      const int first = (m + l) % (e.k / group) * group;
      for (int n = 0; n < e.n; ++n) in.d[(static_cast<std::size_t>(l) * e.n + n) * e.m + m] = in.known(l, n, first);
      for (int k = first; k <= first + m % group; ++k)
        in.a[(static_cast<std::size_t>(l) * e.k + k) * e.m + m] = std::numeric_limits<double>::infinity();
    }
  const auto constant = [](double p) { return [p](int) { return p; }; };
  check<of::manhattan<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutRight>({}, in, constant(1));
  check<of::euclidean<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutLeft>({}, in, constant(2));
  check<of::euclidean<float>, Exec, Kokkos::LayoutLeft, Kokkos::LayoutRight>({}, in, constant(2));
  check<of::minkowski<float>, Exec, Kokkos::LayoutRight, Kokkos::LayoutRight>(of::minkowski<float>(1.5), in, constant(1.5));
}

// A row of C, a row of B and an element of D that are not finite leave the bits of the outputs that they are no part of.
TEST_CASE_TEMPLATE("points and coefficients that are not finite leave other outputs' bits", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{1, 18, 70, 22, 75};
  support::Random random(47);
  const Inputs in = gradient::random_inputs<float>(random, e);
  Inputs special = in;
  for (int k = 0; k < e.k; k += 2) {
    special.c[std::size_t{3} * e.k + k] = std::numeric_limits<double>::quiet_NaN();
    special.b[std::size_t{66} * e.k + k] = std::numeric_limits<double>::infinity();
  }
  special.d[std::size_t{5} * e.m + 6] = std::numeric_limits<double>::quiet_NaN();
  const auto check = [&](const auto& functor) {
    const rigel::GradientOptions options{.precision = rigel::Precision::bf16x3, .may_cancel = true};
    const auto& [a, b, c, d, out] = Views<float, Exec>(in);
    for (const auto& candidate : rigel::candidates(rigel::gradient_problem(exec, functor, a, b, c, d, out, options))) {
      if (!candidate.status) continue;
      CAPTURE(candidate.kernel->info.name);
      for (const bool accumulates : {false, true}) {
        const auto results = [&](const Inputs& inputs) {
          const auto& [a, b, c, d, out] = Views<float, Exec>(inputs);
          Kokkos::deep_copy(out, 0.5F);
          rigel::GradientOptions named = options;
          named.accumulate = accumulates;
          named.kernel = candidate.kernel->info.name;
          rigel::contract_gradient(exec, functor, a, b, c, d, out, named);
          exec.fence();
          return gradient::get(out);
        };
        const Numbers expected = results(in), found = results(special);
        int different = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
          const auto at = static_cast<int>(i);
          const int m = at % e.m, n = at / e.m % e.n, o = at / e.m / e.n;
          different += o != 3 && n != 66 && !(n == 5 && m == 6) && found[i] != expected[i];
        }
        CHECK(different == 0);
      }
    }
  };
  check(rigel::gradient_of::manhattan<float>());
  check(rigel::gradient_of::euclidean<float>());
  check(rigel::gradient_of::minkowski<float>(1.5));
}

// A column of NaN and one of infinities leave the bits of all others.
TEST_CASE_TEMPLATE("results that are not finite leave their neighbours' bits", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{1, 18, 17, 22, 75};
  support::Random random(17);
  Inputs in = gradient::random_inputs<float>(random, e);
  const auto& [a, b, c, d, out] = Views<float, Exec>(in);
  const auto check = [&](const auto& functor) {
    const rigel::GradientOptions options{.precision = rigel::Precision::bf16x3, .may_cancel = true};
    for (const auto& candidate : rigel::candidates(rigel::gradient_problem(exec, functor, a, b, c, d, out, options))) {
      if (!candidate.status) continue;
      CAPTURE(candidate.kernel->info.name);
      const auto results = [&](const Numbers& weights, bool accumulates) {
        gradient::put(a, weights);
        Kokkos::deep_copy(out, 0.5F);
        rigel::GradientOptions named = options;
        named.accumulate = accumulates;
        named.kernel = candidate.kernel->info.name;
        rigel::contract_gradient(exec, functor, a, b, c, d, out, named);
        exec.fence();
        return gradient::get(out);
      };
      Numbers weights = in.a;
      for (int k = 0; k < e.k; ++k) {
        weights[static_cast<std::size_t>(k) * e.m + 5] = std::numeric_limits<double>::quiet_NaN();
        weights[static_cast<std::size_t>(k) * e.m + 20] = std::numeric_limits<double>::infinity();
      }
      for (const bool accumulates : {false, true}) {
        const Numbers expected = results(in.a, accumulates), found = results(weights, accumulates);
        int finite = 0, different = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
          const std::size_t m = i % e.m;
          if (m == 5 || m == 20)
            finite += std::isfinite(found[i]);
          else
            different += found[i] != expected[i];
        }
        CHECK(finite == 0);
        CHECK(different == 0);
      }
    }
  };
  check(rigel::gradient_of::manhattan<float>());
  check(rigel::gradient_of::euclidean<float>());
  check(rigel::gradient_of::minkowski<float>(1.5));
}

// p from a view with an entry for each batch; A and D are one matrix for all of them, with batches last.
TEST_CASE_TEMPLATE("p per batch, and inputs that broadcast", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{3, 2, 5, 11, 40};
  support::Random random(7);
  Inputs in = gradient::random_inputs<double>(random, e);
  in.a.resize(static_cast<std::size_t>(e.k) * e.m);
  in.d.resize(static_cast<std::size_t>(e.n) * e.m);
  using Space = typename Exec::memory_space;
  const Kokkos::View<double**, Space> a("a", e.k, e.m), d("d", e.n, e.m);
  const Kokkos::View<double***, Space> b("b", e.batch, e.n, e.k), c("c", e.batch, e.outputs, e.k);
  const Kokkos::View<double****, Space> out("out", e.batch, e.outputs, e.n, e.m);
  const Kokkos::View<double*, Space> p("p", e.batch);
  const Numbers powers{1, 1.5, 3};
  gradient::put(a, in.a);
  gradient::put(b, in.b);
  gradient::put(c, in.c);
  gradient::put(d, in.d);
  gradient::put(p, powers);
  const gradient::Sums sums = gradient::sums_of(in, [&](int l) { return powers[l]; });
  rigel::cdist_gradient(exec, p, a, b, c, d, out);
  CHECK(gradient::worst_ratio(gradient::get(out), sums, 32 + e.k, gradient::unit<double>, e.k) <= 1);

  // The same with the batch as the last index.
  const Kokkos::View<double***, Kokkos::LayoutLeft, Space> b_last("b", e.n, e.k, e.batch),
      c_last("c", e.outputs, e.k, e.batch);
  const Kokkos::View<double****, Kokkos::LayoutLeft, Space> out_last("out", e.outputs, e.n, e.m, e.batch);
  Numbers b_values, c_values;
  for (int n = 0; n < e.n; ++n)
    for (int k = 0; k < e.k; ++k)
      for (int l = 0; l < e.batch; ++l) b_values.push_back(in.known(l, n, k));
  for (int o = 0; o < e.outputs; ++o)
    for (int k = 0; k < e.k; ++k)
      for (int l = 0; l < e.batch; ++l) c_values.push_back(in.coefficient(l, o, k));
  gradient::put(b_last, b_values);
  gradient::put(c_last, c_values);
  rigel::cdist_gradient(exec, p, a, b_last, c_last, d, out_last, {.batch = rigel::Batch::last});
  const Numbers found = gradient::get(out_last), first = gradient::get(out);
  const std::size_t all = first.size() / static_cast<std::size_t>(e.batch);
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == first[i % e.batch * all + i / e.batch]);
}

// With A = δ^(1−p) the terms are derivatives of the distances δ = |x − z|_p themselves. Their central difference with step h is off by
// h²/6 times the third derivative, plus 2u·δ/h for the rounding of both distances.
TEST_CASE_TEMPLATE("the derivative of distances against central differences", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{1, 2, 3, 4, 5};
  support::Random random(11);
  Inputs in = gradient::random_inputs<double>(random, e);
  // Coordinates of x and z are at least 1 apart, so that derivatives of all orders are small.
  for (double& x : in.d) x += 2;
  for (double& z : in.b) z -= 2;
  using Space = typename Exec::memory_space;
  const Kokkos::View<double**, Space> a("a", e.k, e.m), b("b", e.n, e.k), c("c", e.outputs, e.k), d("d", e.n, e.m);
  const Kokkos::View<double***, Space> out("out", e.outputs, e.n, e.m);
  for (const double p : {1., 2., 1.5, 3.}) {
    CAPTURE(p);
    const auto distance = [&](int m, int k, int moved, double by) {
      double sum = 0;
      for (int n = 0; n < e.n; ++n)
        sum += std::pow(std::abs(in.point(0, n, m) + (n == moved ? by : 0) - in.known(0, n, k)), p);
      return std::pow(sum, 1 / p);
    };
    for (int k = 0; k < e.k; ++k)
      for (int m = 0; m < e.m; ++m) in.a[static_cast<std::size_t>(k) * e.m + m] = std::pow(distance(m, k, -1, 0), 1 - p);
    gradient::put(a, in.a);
    gradient::put(b, in.b);
    gradient::put(c, in.c);
    gradient::put(d, in.d);
    rigel::cdist_gradient(exec, p, a, b, c, d, out);
    const Numbers found = gradient::get(out);
    constexpr double h = 1e-5;
    std::size_t i = 0;
    for (int o = 0; o < e.outputs; ++o)
      for (int n = 0; n < e.n; ++n)
        for (int m = 0; m < e.m; ++m) {
          double expected = 0, largest = 0;
          for (int k = 0; k < e.k; ++k) {
            expected += in.coefficient(0, o, k) * (distance(m, k, n, h) - distance(m, k, n, -h)) / (2 * h);
            largest = std::max(largest, distance(m, k, -1, 0));
          }
          // |C| ≤ 1; third derivatives are below 3 for coordinates that are 2 to 6 apart.
          CHECK(std::abs(found[i++] - expected) <= e.k * (3 * h * h / 6 + 8 * 0x1p-53 * largest / h));
        }
  }
}

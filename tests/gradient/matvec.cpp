// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of kernel_matvec(), softmax_matvec() and logsumexp(): against torch's values, finite differences and themselves in strips; scores
// of −∞, NaN, extents of 0, workspaces, bad input.
#include <rigel/kernel_matvec.hpp>
#include <rigel/matvec_gradient.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/numbers.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

using rigel::no_gradient;
using support::batch_of, support::caught, support::get, support::matrix, support::Numbers, support::put;
namespace metric = rigel::metric;
namespace kernel = rigel::kernel;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class T, class Exec>
using Vector = Kokkos::View<T*, typename Exec::memory_space>;
template <class T, class Exec>
Vector<T, Exec> vector(const Numbers& values) {
  const Vector<T, Exec> v("vector", values.size());
  put(v, values);
  return v;
}
double farthest(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = support::larger(worst, a[i] == b[i] ? 0 : std::fabs(a[i] - b[i]));
  return worst == worst ? worst : infinity;
}

// Inputs and results of a call in double, and numbers of the inputs.
template <class Exec, class Layout>
struct Case {
  static constexpr int batches = 2, m = 9, n = 7, k = 3, d = 4;
  using Matrices = decltype(batch_of<double, Exec, Layout>(1, 1, 1));
  using Vectors = support::Matrix<double, Exec>;
  Matrices x = batch_of<double, Exec, Layout>(batches, m, k), z = batch_of<double, Exec, Layout>(1, n, k),
           v = batch_of<double, Exec, Layout>(batches, n, d), g = batch_of<double, Exec, Layout>(batches, m, d),
           out = batch_of<double, Exec, Layout>(batches, m, d), dx = batch_of<double, Exec, Layout>(batches, m, k),
           dz = batch_of<double, Exec, Layout>(batches, n, k), dv = batch_of<double, Exec, Layout>(batches, n, d);
  Vectors rows = matrix<double, Exec>(batches, m), columns = matrix<double, Exec>(batches, n),
          sums = matrix<double, Exec>(batches, m), of_sums = matrix<double, Exec>(batches, m),
          drows = matrix<double, Exec>(batches, m), dcolumns = matrix<double, Exec>(batches, n);
  Vector<double, Exec> scale{"scale", batches}, dscale{"dscale", batches};

  Case() {
    support::Random random(11);
    const auto fill = [&](const auto& view) {
      put(view, support::random_numbers<double>(random, std::int64_t(view.size())));
    };
    fill(x), fill(z), fill(v), fill(g), fill(rows), fill(columns), fill(of_sums);
    put(scale, {-0.75, 1.5});
  }
};

// The largest difference of a gradient from the difference quotients of loss(); of what serves all batches, of the sum of its gradients.
template <class View, class Gradient, class Loss>
double error_of(const View& view, const Gradient& gradient, const Loss& loss) {
  constexpr double step = 1e-5;
  Numbers values = get(view), found = get(gradient);
  for (std::size_t i = values.size(); i < found.size(); ++i) found[i % values.size()] += found[i];
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    values[i] = value + step;
    put(view, values);
    const double above = loss();
    values[i] = value - step;
    put(view, values);
    const double below = loss();
    values[i] = value;
    worst = support::larger(worst, std::fabs((above - below) / (2 * step) - found[i]));
  }
  put(view, values);
  return worst;
}
double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
// Third derivatives of a few thousand by step²/6, and roundings of sums of a hundred terms by 1/step.
constexpr double quotient_error = 1e-6;

}  // namespace

TEST_CASE_TEMPLATE("matvec gradients: torch's values", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = matrix<double, Exec>(3, 2, {0.5, -1, 2, 0.25, -0.75, 1.5}),
             z = matrix<double, Exec>(2, 2, {1, 0.5, -0.25, -1.25}), v = matrix<double, Exec>(2, 2, {1, -2, 0.5, 3}),
             g = matrix<double, Exec>(3, 2, {1, 0.5, -1, 2, 0.25, -0.5}), dx = matrix<double, Exec>(3, 2),
             dz = matrix<double, Exec>(2, 2), dv = matrix<double, Exec>(2, 2);
  const auto columns = vector<double, Exec>({0.25, -0.5}), dcolumns = vector<double, Exec>({9, 9}),
             of_sums = vector<double, Exec>({1, -2, 0.5});
  const Kokkos::View<double, typename Exec::memory_space> dscale("dscale");
  const rigel::Scores<double, rigel::NoGradient, Vector<double, Exec>> scores{.scale = -0.5, .of_columns = columns};
  const rigel::Scores<Kokkos::View<double, typename Exec::memory_space>, rigel::NoGradient, Vector<double, Exec>> dscores{
      .scale = dscale, .of_columns = dcolumns};
  const auto number = [&] {
    double value = 0;
    Kokkos::deep_copy(value, dscale);
    return value;
  };
  constexpr double bound = 1e-14;  // some dozens of roundings of terms up to 3
  // torch 2.15, float64: (softmax(-(x - z)²/2 + c) @ v * g).sum()
  rigel::softmax_matvec_gradient(exec, x, z, v, g, metric::squared_euclidean{}, scores, dx, dz, dv, dscores);
  exec.fence();
  CHECK(farthest(get(dx), {-0.6195388628726578, -0.8673544080217208, -0.2614362023464807, -0.36601068328507236,
                           0.20666669512031993, 0.28933337316844865}) <= bound);
  CHECK(farthest(get(dz), {-0.2506667898965688, 0.9610672320127412, 0.9249751599953874, -0.01703551387439667}) <= bound);
  CHECK(farthest(get(dv), {-0.2932924714268623, 1.7197395628921899, 0.5432924714268624, 0.2802604371078099}) <= bound);
  CHECK(std::fabs(number() - -0.2421273679375464) <= bound);
  CHECK(farthest(get(dcolumns), {-0.539446696079054, 0.5394466960790544}) <= bound);
  // (logsumexp(-(x - z)²/2 + c) * [1, -2, 0.5]).sum()
  rigel::logsumexp_gradient(exec, x, z, of_sums, metric::squared_euclidean{}, scores, dx, dz, dscores);
  exec.fence();
  CHECK(farthest(get(dx), {-0.18342268998076733, 0.5432082340269258, 2.0508308833566464, -0.42883676330069426,
                           0.832783318037732, -0.5591033547471755}) <= bound);
  CHECK(farthest(get(dz), {-3.0018628625751997, 0.27616770573577687, 0.3016713511615887, 0.16856417828516723}) <= bound);
  CHECK(std::fabs(number() - 1.25361159413242) <= bound);
  CHECK(farthest(get(dcolumns), {-1.0398467908691105, 0.5398467908691109}) <= bound);
  // (exp(-(x - z)²/(2·1.5²)) @ v * g).sum()
  rigel::kernel_matvec_gradient(exec, x, z, v, g, metric::euclidean{}, kernel::gaussian{1.5}, dx, dz, dv,
                                kernel::gaussian{dscale});
  exec.fence();
  CHECK(farthest(get(dx), {-0.580216483888927, -0.19340549462964232, 0.671858953931592, -1.1607277676373764,
                           0.34033938710362177, 0.07087564876734115}) <= bound);
  CHECK(farthest(get(dz), {-2.149052760159321, 0.6639637733770429, 1.7170709030130342, 0.6192938401226347}) <= bound);
  CHECK(farthest(get(dv), {-0.1145790379923939, 1.6635416278283697, 0.7174641278573199, 0.7408835588688363}) <= bound);
  CHECK(std::fabs(number() - 1.475042498610025) <= bound);
}

TEST_CASE_TEMPLATE("matvec gradients: finite differences of softmax_matvec and logsumexp", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto check = [&]<class Layout>(Layout, const auto& of, std::int64_t block_rows) {
    const Case<Exec, Layout> c;
    const rigel::Scores scores{c.scale, c.rows, c.columns};
    const rigel::Scores dscores{c.dscale, c.drows, c.dcolumns};
    const auto loss = [&] {
      rigel::softmax_matvec(exec, c.x, c.z, c.v, of, c.out, scores.last());
      exec.fence();
      return dot(get(c.out), get(c.g));
    };
    rigel::softmax_matvec_gradient(exec, c.x, c.z, c.v, c.g, of, scores, c.dx, c.dz, c.dv, dscores,
                                   {.block_rows = block_rows});
    exec.fence();
    CHECK(error_of(c.x, c.dx, loss) < quotient_error);
    CHECK(error_of(c.z, c.dz, loss) < quotient_error);
    CHECK(error_of(c.v, c.dv, loss) < quotient_error);
    CHECK(error_of(c.scale, c.dscale, loss) < quotient_error);
    CHECK(error_of(c.rows, c.drows, loss) < quotient_error);
    CHECK(error_of(c.columns, c.dcolumns, loss) < quotient_error);
    const auto loss_of_sums = [&] {
      rigel::logsumexp(exec, c.x, c.z, of, c.sums, scores.last());
      exec.fence();
      return dot(get(c.sums), get(c.of_sums));
    };
    rigel::logsumexp_gradient(exec, c.x, c.z, c.of_sums, of, scores, c.dx, c.dz, dscores, {.block_rows = block_rows});
    exec.fence();
    CHECK(error_of(c.x, c.dx, loss_of_sums) < quotient_error);
    CHECK(error_of(c.z, c.dz, loss_of_sums) < quotient_error);
    CHECK(error_of(c.scale, c.dscale, loss_of_sums) < quotient_error);
    CHECK(error_of(c.rows, c.drows, loss_of_sums) < quotient_error);
    CHECK(error_of(c.columns, c.dcolumns, loss_of_sums) < quotient_error);
  };
  check(Kokkos::LayoutRight{}, metric::inner_product{}, 0);
  check(Kokkos::LayoutLeft{}, metric::squared_euclidean{}, 4);
  check(Kokkos::LayoutStride{}, metric::euclidean{}, 9);
  check(Kokkos::LayoutRight{}, metric::manhattan{}, 2);
  check(Kokkos::LayoutRight{}, metric::minkowski<>{3.5}, 4);
}

TEST_CASE_TEMPLATE("matvec gradients: finite differences of kernel_matvec", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto check = [&]<class Layout>(Layout, const auto& of, const auto& kernel_of, std::int64_t block_rows) {
    const Case<Exec, Layout> c;
    put(c.scale, {1.25, 0.75});
    const auto k = kernel_of(c.scale), dk = kernel_of(c.dscale);
    const auto loss = [&] {
      rigel::kernel_matvec(exec, c.x, c.z, c.v, of, k, c.out);
      exec.fence();
      return dot(get(c.out), get(c.g));
    };
    rigel::kernel_matvec_gradient(exec, c.x, c.z, c.v, c.g, of, k, c.dx, c.dz, c.dv, dk, {.block_rows = block_rows});
    exec.fence();
    CHECK(error_of(c.x, c.dx, loss) < quotient_error);
    CHECK(error_of(c.z, c.dz, loss) < quotient_error);
    CHECK(error_of(c.v, c.dv, loss) < quotient_error);
    CHECK(error_of(c.scale, c.dscale, loss) < quotient_error);
  };
  check(Kokkos::LayoutRight{}, metric::euclidean{}, [](const auto& h) { return kernel::gaussian{h}; }, 0);
  check(Kokkos::LayoutLeft{}, metric::manhattan{}, [](const auto& h) { return kernel::laplace{h}; }, 4);
  check(Kokkos::LayoutStride{}, metric::euclidean{}, [](const auto& h) { return kernel::matern32{h}; }, 2);
  check(Kokkos::LayoutRight{}, metric::euclidean{}, [](const auto& h) { return kernel::matern52{h}; }, 9);
  check(Kokkos::LayoutRight{}, metric::euclidean{}, [](const auto& h) { return kernel::rational_quadratic{h, 1.5}; }, 3);
  check(Kokkos::LayoutRight{}, metric::inner_product{}, [](const auto& h) { return kernel::polynomial{2., 0.5, h}; }, 3);
  check(Kokkos::LayoutRight{}, metric::inner_product{}, [](const auto& h) { return kernel::sigmoid{h, 0.1}; }, 4);
}

TEST_CASE_TEMPLATE("matvec gradients: strips within the workspace's limit, vectors, sums that go on", Exec,
                   RIGEL_TEST_SPACES) {
  constexpr int m = 700, n = 300, k = 5;
  const Exec exec;
  support::Random random(5);
  const auto run = [&]<class T>(T) {
    const auto numbers = [&](int rows, int columns) {
      return matrix<T, Exec>(rows, columns, support::random_numbers<T>(random, rows * columns));
    };
    const auto x = numbers(m, k), z = numbers(n, k), dx = matrix<T, Exec>(m, k), dz = matrix<T, Exec>(n, k),
               wide_v = numbers(n, 1), wide_g = numbers(m, 1);
    const Vector<T, Exec> v(wide_v.data(), n), g(wide_g.data(), m), dv("dv", n);
    const Vector<double, Exec> dscale("dscale", 1);
    const rigel::Scores<double> scores{.scale = -2};
    const rigel::Scores<Vector<double, Exec>> dscores{.scale = dscale};
    const auto softmax = [&](const rigel::MatvecGradientOptions& options) {
      rigel::softmax_matvec_gradient(exec, x, z, v, g, metric::squared_euclidean{}, scores, dx, dz, dv, dscores, options);
      exec.fence();
    };
    const auto kernels = [&](const rigel::MatvecGradientOptions& options) {
      rigel::kernel_matvec_gradient(exec, x, z, v, g, metric::euclidean{}, kernel::gaussian{0.5}, dx, dz, dv,
                                    kernel::gaussian{dscale}, options);
      exec.fence();
    };
    const std::size_t bytes = rigel::softmax_matvec_gradient_workspace_size(
        exec, x, z, v, g, metric::squared_euclidean{}, scores, dx, dz, dv, dscores, {.workspace_limit = 1 << 18});
    // Strips; ones, parts, and what kernels need: a GPU's cut sums into slices, which are kept until they are joined.
    CHECK(bytes <= (1 << 18) + (std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace> ? 1 << 16 : 1 << 18) +
                       8 * sizeof(T) * k * (m + n));
    // Each sum has at most m + n terms of at most 1·4·2, in parts; dscale's m·n of at most 4·5.
    const double bound = 16. * (m + n) * support::unit<T> * 2, bound_of_scale = 40. * m * n * support::unit<T>;
    const auto compare = [&](const auto& call) {
      call({});
      const Numbers whole_x = get(dx), whole_z = get(dz), whole_v = get(dv), whole_scale = get(dscale);
      for (const rigel::MatvecGradientOptions& options :
           {rigel::MatvecGradientOptions{.workspace_limit = 1 << 18}, rigel::MatvecGradientOptions{.block_rows = 1},
            rigel::MatvecGradientOptions{.block_rows = 333}}) {
        call(options);
        CHECK(farthest(get(dx), whole_x) <= bound);
        CHECK(farthest(get(dz), whole_z) <= bound);
        CHECK(farthest(get(dv), whole_v) <= bound);
        CHECK(farthest(get(dscale), whole_scale) <= bound_of_scale);
      }
      const auto twice = [](Numbers values) {
        for (double& value : values) value *= 2;
        return values;
      };
      call({});
      call({.accumulate = true, .block_rows = 400});
      CHECK(farthest(get(dx), twice(whole_x)) <= 2 * bound);
      CHECK(farthest(get(dz), twice(whole_z)) <= 2 * bound);
      CHECK(farthest(get(dv), twice(whole_v)) <= 2 * bound);
      CHECK(farthest(get(dscale), twice(whole_scale)) <= 2 * bound_of_scale);
    };
    compare(softmax);
    compare(kernels);
  };
  run(float{});
  run(double{});
}

TEST_CASE_TEMPLATE("matvec gradients: scores of −∞ and NaN", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = matrix<double, Exec>(2, 1, {1, 2}), z = matrix<double, Exec>(2, 1, {3, 5}),
             v = matrix<double, Exec>(2, 1, {1, 2}), g = matrix<double, Exec>(2, 1, {1, 1}), dx = matrix<double, Exec>(2, 1),
             dz = matrix<double, Exec>(2, 1), dv = matrix<double, Exec>(2, 1);
  const auto of_sums = vector<double, Exec>({1, 10}), rows = vector<double, Exec>({0, 0}),
             columns = vector<double, Exec>({0, 0}), drows = vector<double, Exec>({9, 9}),
             dcolumns = vector<double, Exec>({9, 9});
  const rigel::Scores scores{1., rows, columns};
  const rigel::Scores dscores{0., drows, dcolumns};
  const auto run = [&](const Numbers& of_rows, const Numbers& of_columns) {
    put(rows, of_rows);
    put(columns, of_columns);
    rigel::logsumexp_gradient(exec, x, z, of_sums, metric::inner_product{}, scores, dx, dz, dscores);
    exec.fence();
  };
  // A masked column: all weight is on the other one.
  run({0, 0}, {0, -infinity});
  CHECK(get(dx) == Numbers{3, 30});
  CHECK(get(dz) == Numbers{21, 0});
  CHECK(get(drows) == Numbers{1, 10});
  CHECK(get(dcolumns) == Numbers{11, 0});
  // Rows without weight.
  run({-infinity, 0}, {0, -infinity});
  CHECK(get(dx) == Numbers{0, 30});
  CHECK(get(dz) == Numbers{20, 0});
  CHECK(get(drows) == Numbers{0, 10});
  run({-infinity, -infinity}, {0, 0});
  CHECK(get(dx) == Numbers{0, 0});
  CHECK(get(dz) == Numbers{0, 0});
  CHECK(get(dcolumns) == Numbers{0, 0});
  rigel::softmax_matvec_gradient(exec, x, z, v, g, metric::inner_product{}, scores, dx, dz, dv, dscores);
  exec.fence();
  CHECK(get(dx) == Numbers{0, 0});
  CHECK(get(dv) == Numbers{0, 0});
  // NaN stays in its row of dX.
  run({not_a_number, 0}, {0, -infinity});
  CHECK(get(dx)[0] != get(dx)[0]);
  CHECK(get(dx)[1] == 30);
}

TEST_CASE_TEMPLATE("matvec gradients: extents of 0", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const auto& [m, n] : {std::pair(0, 3), std::pair(4, 0)}) {
    const auto filled = [](int rows, int columns) {
      return matrix<float, Exec>(rows, columns, Numbers(static_cast<std::size_t>(rows * columns), 9));
    };
    const auto zeros = [](int rows, int columns) { return Numbers(static_cast<std::size_t>(rows * columns), 0); };
    const auto x = filled(m, 2), z = filled(n, 2), v = filled(n, 5), g = filled(m, 5), dx = filled(m, 2), dz = filled(n, 2),
               dv = filled(n, 5);
    const auto dscale = vector<double, Exec>({9});
    rigel::softmax_matvec_gradient(exec, x, z, v, g, metric::euclidean{}, rigel::Scores<double>{.scale = 1}, dx, dz, dv,
                                   rigel::Scores<Vector<double, Exec>>{.scale = dscale});
    exec.fence();
    CHECK(get(dx) == zeros(m, 2));
    CHECK(get(dz) == zeros(n, 2));
    CHECK(get(dv) == zeros(n, 5));
    CHECK(get(dscale) == Numbers{0});
    const auto again_x = filled(m, 2), again_z = filled(n, 2), again_v = filled(n, 5);
    rigel::kernel_matvec_gradient(exec, x, z, v, g, metric::euclidean{}, kernel::gaussian{1}, again_x, again_z, again_v);
    exec.fence();
    CHECK(get(again_x) == zeros(m, 2));
    CHECK(get(again_z) == zeros(n, 2));
    CHECK(get(again_v) == zeros(n, 5));
  }
  // V without columns.
  const auto x = matrix<float, Exec>(4, 2, Numbers(8, 1)), z = matrix<float, Exec>(3, 2, Numbers(6, 2)),
             dx = matrix<float, Exec>(4, 2, Numbers(8, 9)), dz = matrix<float, Exec>(3, 2, Numbers(6, 9));
  const auto v = matrix<float, Exec>(3, 0, {}), g = matrix<float, Exec>(4, 0, {});
  rigel::kernel_matvec_gradient(exec, x, z, v, g, metric::euclidean{}, kernel::gaussian{1}, dx, dz, rigel::no_gradient);
  exec.fence();
  CHECK(get(dx) == Numbers(8, 0));
  CHECK(get(dz) == Numbers(6, 0));
}

TEST_CASE_TEMPLATE("matvec gradients refuse bad input", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto x = matrix<float, Exec>(4, 3, {}, "x"), z = matrix<float, Exec>(5, 3, {}, "z"),
             v = matrix<float, Exec>(5, 2, {}, "v"), g = matrix<float, Exec>(4, 2, {}, "g"),
             dx = matrix<float, Exec>(4, 3, Numbers(12, -7), "dx"), dz = matrix<float, Exec>(5, 3),
             dv = matrix<float, Exec>(5, 2);
  const auto refused = [&](std::initializer_list<const char*> texts, const auto& call) {
    const support::Caught error = caught(call);
    CHECK(error.code == rigel::Code::invalid_argument);
    CHECK(error.lacks(texts) == "");
    CHECK(get(dx) == Numbers(12, -7));
  };
  const auto of = [&](const auto& v_, const auto& g_, const auto& dx_, const auto& dz_,
                      const rigel::MatvecGradientOptions& options = {}) {
    return [=] {
      rigel::softmax_matvec_gradient(exec, x, z, v_, g_, metric::euclidean{}, rigel::Scores<double>{.scale = 1}, dx_, dz_,
                                     dv, no_gradient, options);
    };
  };
  refused({"softmax_matvec_gradient: V", "is 4x2, expected 5x2 (N x D) to match X 'x' 4x3 and Z 'z' 5x3"},
          of(matrix<float, Exec>(4, 2), g, dx, dz));
  refused({"V 'v' is 5x2, expected 5x3 (N x D)"}, of(v, matrix<float, Exec>(4, 3), dx, dz));
  refused({"G", "is 5x2, expected 4x2 (M x D)"}, of(v, matrix<float, Exec>(5, 2), dx, dz));
  refused({"dX", "is 4x2, expected 4x3 (M x K)"}, of(v, g, matrix<float, Exec>(4, 2), dz));
  refused({"dZ", "overlaps Z 'z' 5x3"}, of(v, g, dx, z));
  refused({"dX", "is 2x4x3, expected one batch"}, of(v, g, support::batch<float, Exec>(2, 4, 3), dz));
  refused({"options.epsilon is -1"}, of(v, g, dx, dz, {.epsilon = -1}));
  refused({"options.block_rows is -1"}, of(v, g, dx, dz, {.block_rows = -1}));
  refused({"the kernel's bandwidth is 0, expected a positive number"},
          [&] { rigel::kernel_matvec_gradient(exec, x, z, v, g, metric::euclidean{}, kernel::gaussian{0}, dx, dz, dv); });
}

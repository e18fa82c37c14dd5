// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weighted sums, softmax and log-sum-exp over points in few dimensions, against loops in double, within bounds that follow from
// docs/numerics.md: every number of dimensions and columns of V that kernels differ for, on every execution space.
#include <rigel/detail/execution.hpp>
#include <rigel/epilogue_views.hpp>
#include <rigel/kernel_matvec.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace {

using namespace reduced;
namespace metric = rigel::metric;
namespace kernel = rigel::kernel;
namespace epilogue = rigel::epilogue;

constexpr double u = 0x1p-24;
/// The unit roundoff of calls with points of T. The loops are in double, so that those of double have twice its errors.
template <class T>
constexpr double unit = std::is_same_v<T, double> ? 2 * 0x1p-53 : u;

/// What calls name: their own choice, the reference, and the kernels for few dimensions where they are.
template <class Exec>
std::vector<std::string> names() {
  std::vector<std::string> list{"", "reference"};
  if constexpr (rigel::detail::space_of<Exec> == rigel::Space::cuda)
    if (!rigel::kernels({.name = "cuda.points", .operation = "reduce"}).empty()) list.push_back("cuda.points");
  return list;
}

/// Sixteenths, which f16 and bf16 hold, from some centre on.
Values numbers(int count, std::uint64_t seed, double centre = 0) {
  support::Random random(seed);
  Values v(static_cast<std::size_t>(count));
  for (double& x : v) x = centre + static_cast<double>(random.integer(-16, 16)) / 16;
  return v;
}

struct Extents {
  int m, n, k, columns;
};

/// Points and V, as T and as doubles.
struct Sets {
  Extents e;
  Values x, z, v;
  Sets(Extents extents, double centre, bool far = false)
      : e(extents), x(numbers(e.m * e.k, 1, centre)), z(numbers(e.n * e.k, 2, centre)), v(numbers(e.n * e.columns, 3)) {
    if (!far || e.n < 2) return;
    // One row and one column that lie near each other, and far from all others.
    x[at(e.m / 2, e.k, 0)] = 4000;
    z[at(e.n / 2, e.k, 0)] = 4000.0625;
  }
  double square(int row, int column) const {
    double sum = 0;
    for (int i = 0; i < e.k; ++i) {
      const double d = x[at(row, e.k, i)] - z[at(column, e.k, i)];
      sum += d * d;
    }
    return sum;
  }
};

constexpr Extents all_extents[] = {{37, 130, 1, 1},  {5, 31, 2, 3},    {600, 70, 3, 1},    {3, 1100, 3, 4},
                                   {1, 1, 4, 1},     {9, 260, 5, 2},   {40, 129, 7, 1},    {7, 64, 8, 4},
                                   {11, 33, 10, 1},  {20, 300, 16, 1}, {4, 0, 3, 2},       {513, 1500, 3, 1},
                                   {6, 90, 12, 3},   {6, 90, 17, 5},   {70, 200, 17, 1},   {33, 700, 64, 4},
                                   {130, 65, 40, 2}, {20, 400, 3, 9},  {90, 1000, 40, 64}, {5, 100, 33, 5}};

/// Beyond 16 dimensions or four columns of V the GPU's kernels have products on tensor cores, if the call admits them: distances are within 336 units of themselves, and
/// exponents within 512. More than four
/// columns are also off by a share of the largest weight times the largest number.
bool is_expanded(const std::string& name, int k, int columns = 1) {
  return name == "cuda.points" && (k > 16 || columns > 4);
}
rigel::Precision precision_of(const std::string& name, int k, int columns) {
  if (!is_expanded(name, k, columns)) return rigel::Precision::accumulator;
  return columns > 4 ? rigel::Precision::promoted : rigel::Precision::automatic;
}

/// A kernel of distances with its logarithm's slope times its argument: how many times as large an error of the kernel is as that of the
/// distance.
struct Value {
  double value, slope;
};

template <class T, class Exec, class K>
void check_values(const Exec& exec, Extents e, double centre, const K& of,
                  const std::function<Value(double square)>& expected, const std::string& name, bool far = false) {
  const Sets s(e, centre, far);
  const auto x = support::matrix<T, Exec>(e.m, e.k, s.x, "x"), z = support::matrix<T, Exec>(e.n, e.k, s.z, "z"),
             v = support::matrix<T, Exec>(e.n, e.columns, s.v, "v");
  const auto out = support::matrix<std::conditional_t<std::is_same_v<T, double>, double, float>, Exec>(e.m, e.columns);
  rigel::kernel_matvec(exec, x, z, v, metric::euclidean{}, of, out,
                       {.precision = precision_of(name, e.k, e.columns), .kernel = name});
  exec.fence();
  const Values results = support::values(out);
  int wrong = 0;
  for (int row = 0; row < e.m; ++row)
    for (int d = 0; d < e.columns; ++d) {
      double sum = 0, size = 0, of_values = 0;
      for (int j = 0; j < e.n; ++j) {
        const Value value = expected(s.square(row, j));
        const double term = value.value * s.v[at(j, e.columns, d)];
        sum += term;
        size += std::abs(term);
        of_values += std::abs(term) *
                     (12 + (e.k + 6) * value.slope + 107 * std::sqrt(value.slope) +
                      (is_expanded(name, e.k, e.columns) ? 336 * value.slope + 512 : 0)) *
                     unit<T>;
      }
      const double bound = of_values + (std::min(e.n, 1024) + 3) * unit<T> * size + unit<T> * std::abs(sum);
      wrong += !(std::abs(results[at(row, e.columns, d)] - sum) <= bound);
    }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("points: kernels times vectors within their bound", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const double h = 0.75;
  for (const std::string& name : names<Exec>())
    for (const Extents e : all_extents) {
      CAPTURE(name);
      CAPTURE(e.n);
      CAPTURE(e.k);
      const auto gaussian = [&](double square) {
        const double t = square / (2 * h * h);
        return Value{std::exp(-t), t};
      };
      check_values<float>(exec, e, 0, kernel::gaussian{h}, gaussian, name);
      check_values<float>(exec, e, 1000, kernel::gaussian{h}, gaussian, name);  // by subtraction, which is exact here
      check_values<float>(exec, e, 0, kernel::gaussian{h}, gaussian, name, true);
      if (is_expanded(name, e.k, e.columns)) continue;  // of floats and squares alone
      check_values<rigel::half>(exec, e, 0, kernel::gaussian{h}, gaussian, name);
      check_values<rigel::bfloat16>(exec, e, 0, kernel::gaussian{h}, gaussian, name);
      check_values<double>(exec, e, 0, kernel::gaussian{h}, gaussian, name);
      check_values<float>(
          exec, e, 0, kernel::laplace{h},
          [&](double square) {
            const double t = std::sqrt(square) / h;
            return Value{std::exp(-t), t};
          },
          name);
      check_values<float>(
          exec, e, 0, kernel::matern32{h},
          [&](double square) {
            const double t = std::sqrt(3 * square) / h;
            return Value{(1 + t) * std::exp(-t), t};
          },
          name);
      const auto matern52 = [&](double square) {
        const double t = std::sqrt(5 * square) / h;
        return Value{(1 + t + t * t / 3) * std::exp(-t), t};
      };
      check_values<float>(exec, e, 0, kernel::matern52{h}, matern52, name);
      check_values<double>(exec, e, 0, kernel::matern52{h}, matern52, name);
    }
}

/// Scores factor·(d² or d) + bias(n), their log-sum-exp and the means of V that they weight.
template <class T, class Exec, class M>
void check_scores(const Exec& exec, const Sets& s, const M& metric, bool root, double factor, const Values& bias,
                  const std::string& name) {
  const Extents e = s.e;
  const auto x = support::matrix<T, Exec>(e.m, e.k, s.x, "x"), z = support::matrix<T, Exec>(e.n, e.k, s.z, "z"),
             v = support::matrix<T, Exec>(e.n, e.columns, s.v, "v");
  const auto out = support::matrix<float, Exec>(e.m, e.columns);
  const auto logs = vector<double, Exec>(e.m), added = vector<double, Exec>(e.n);
  support::fill(added, bias);
  // factor·(s + bias/factor): what Sinkhorn's steps are.
  const epilogue::Program steps = epilogue::add_row(added) | epilogue::scale(factor);
  const rigel::ReduceOptions options{.precision = precision_of(name, e.k, e.columns), .kernel = name};
  rigel::logsumexp(exec, x, z, metric, logs, steps, {.precision = precision_of(name, e.k, 0), .kernel = name});
  rigel::softmax_matvec(exec, x, z, v, metric, out, steps, options);
  exec.fence();
  const Values of_logs = support::values(logs), means = support::values(out);
  int wrong = 0;
  for (int row = 0; row < e.m; ++row) {
    const auto distance = [&](int j) { return root ? std::sqrt(s.square(row, j)) : s.square(row, j); };
    const auto score = [&](int j) { return factor * (distance(j) + bias[static_cast<std::size_t>(j)]); };
    double most = -infinity, total = 0, of_scores = 0;
    for (int j = 0; j < e.n; ++j) most = std::max(most, score(j));
    for (int j = 0; j < e.n; ++j) {
      const double weight = std::exp(score(j) - most),
                   error = ((e.k + 6) * std::abs(factor) * distance(j) +
                            4 * std::abs(factor) * (std::abs(bias[static_cast<std::size_t>(j)]) + distance(j)) +
                            4 * (most - score(j)) +
                            (is_expanded(name, e.k, e.columns) ? 336 * std::abs(factor) * distance(j) + 512 : 0));
      total += weight;
      if (weight > 0) of_scores += weight * error * u;
    }
    of_scores /= total;
    const double of_sums = (2. * std::min(e.n, 1024) + 16 + 4 * std::log(std::max(e.n, 1))) * u;
    const double log = most + std::log(total);
    wrong += !(std::abs(of_logs[static_cast<std::size_t>(row)] - log) <= of_scores + of_sums + 0x1p-50 * std::abs(log));
    for (int d = 0; d < e.columns; ++d) {
      double sum = 0;
      for (int j = 0; j < e.n; ++j) sum += std::exp(score(j) - most) * s.v[at(j, e.columns, d)];
      wrong += !(std::abs(means[at(row, e.columns, d)] - sum / total) <= 2 * of_scores + of_sums + u);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("points: log-sum-exp and softmax within their bound", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const std::string& name : names<Exec>())
    for (const Extents e : all_extents) {
      if (e.n == 0) continue;
      CAPTURE(name);
      CAPTURE(e.n);
      CAPTURE(e.k);
      Sets s(e, 0);
      const Values bias = numbers(e.n, 4);
      check_scores<float>(exec, s, metric::squared_euclidean{}, false, -3, bias, name);
      if (!is_expanded(name, e.k, e.columns)) {
        check_scores<rigel::half>(exec, s, metric::squared_euclidean{}, false, 0.5, bias, name);
        check_scores<float>(exec, s, metric::euclidean{}, true, -3, bias, name);
      }
      // Columns come nearer and nearer: scores rise by more than a float's range, so that the maximum must follow.
      for (int j = 0; j < e.n; ++j)
        for (int i = 0; i < e.k; ++i) s.z[at(j, e.k, i)] += 2 * (e.n - j);
      check_scores<float>(exec, s, metric::squared_euclidean{}, false, -0.25, bias, name);
    }
}

/// `count` points with these first two coordinates, and zeros.
template <class Exec>
auto plane_points(int count, int k, const Values& two) {
  Values all(static_cast<std::size_t>(count * k));
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < 2; ++j) all[at(i, k, j)] = two[at(i, 2, j)];
  return support::matrix<float, Exec>(count, k, all);
}

template <class Exec>
void check_specials(const Exec& exec, int k) {
  const auto x = plane_points<Exec>(3, k, {0, 0, infinity, 0, not_a_number, 0}),
             z = plane_points<Exec>(4, k, {0, 0, 1, 1, 3, 0, 0, 2});
  const auto v = vector<float, Exec>(4), out = vector<float, Exec>(3);
  const auto bias = vector<double, Exec>(4);
  support::fill(v, {1, 2, 3, infinity});
  for (const std::string& name : names<Exec>()) {
    CAPTURE(name);
    const rigel::ReduceOptions options{.kernel = name};
    rigel::kernel_matvec(exec, x, z, v, metric::euclidean{}, kernel::gaussian{1.0}, out, options);
    exec.fence();
    Values r = support::values(out);
    CHECK(r[0] == infinity);
    for (int i : {1, 2}) CHECK(r[static_cast<std::size_t>(i)] != r[static_cast<std::size_t>(i)]);  // 0·∞, NaN
    // Far away all kernels are 0, and so are those of an infinite distance.
    const auto near = Kokkos::subview(v, Kokkos::pair(0, 3));
    const auto to = Kokkos::subview(z, Kokkos::pair(0, 3), Kokkos::ALL);
    if (!is_expanded(name, k)) {
      rigel::kernel_matvec(exec, x, to, near, metric::euclidean{}, kernel::matern52{0.001}, out, options);
      exec.fence();
      r = support::values(out);
      CHECK(r[0] == 1);
      CHECK(r[1] == 0);
      CHECK(r[2] != r[2]);
    }
    // Columns of no weight, Sinkhorn's: log(e^-2/2 + e^-9/2). Then all of them.
    support::fill(bias, {infinity, 0, 0, infinity});
    const auto logs = vector<double, Exec>(3);
    const auto exponents = epilogue::add_row(bias) | epilogue::scale(-0.5);
    rigel::logsumexp(exec, x, z, metric::squared_euclidean{}, logs, exponents, options);
    exec.fence();
    r = support::values(logs);
    CHECK(std::abs(r[0] + 0.97024958172737943) <= (24 + (k > 16 ? 336 * 1.01 + 512 : 0)) * u);
    CHECK(r[1] == -infinity);
    CHECK(r[2] != r[2]);
    support::fill(bias, Values(4, infinity));
    rigel::logsumexp(exec, x, z, metric::squared_euclidean{}, logs, exponents, options);
    exec.fence();
    CHECK(support::values(logs)[0] == -infinity);
    // A score of +∞ is all that counts.
    support::fill(bias, {0, -infinity, 0, 0});
    rigel::logsumexp(exec, x, z, metric::squared_euclidean{}, logs, exponents, options);
    rigel::softmax_matvec(exec, Kokkos::subview(x, Kokkos::pair(0, 1), Kokkos::ALL), to, near, metric::squared_euclidean{},
                          Kokkos::subview(out, Kokkos::pair(0, 1)),
                          epilogue::add_row(Kokkos::subview(bias, Kokkos::pair(0, 3))) | epilogue::scale(-0.5), options);
    exec.fence();
    CHECK(support::values(logs)[0] == infinity);
    CHECK(support::values(out)[0] == 2);
    // Of no columns.
    const auto none = support::matrix<float, Exec>(0, k);
    if (is_expanded(name, k)) continue;
    rigel::logsumexp(exec, x, none, metric::squared_euclidean{}, logs, epilogue::Program{}, options);
    exec.fence();
    CHECK(support::values(logs)[0] == -infinity);
  }
}

TEST_CASE_TEMPLATE("points: infinities, NaN and nothing", Exec, RIGEL_TEST_SPACES) {
  for (const int k : {2, 20}) {
    CAPTURE(k);
    check_specials(Exec(), k);
  }
}

TEST_CASE_TEMPLATE("points: batches, layouts, alone the same bits", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int m = 700, n = 9000, k = 3, batches = 2;
  const auto x = support::batch<float, Exec>(m, k, batches, numbers(m * k * batches, 1)),
             z = support::batch<float, Exec>(n, k, 1, numbers(n * k, 2)),
             v = support::batch<float, Exec>(n, 2, batches, numbers(n * 2 * batches, 3));
  for (const std::string& name : names<Exec>()) {
    if (name == "reference") continue;
    CAPTURE(name);
    const rigel::ReduceOptions options{.batch = rigel::Batch::last,
                                       .require = rigel::Promise::batch_invariant | rigel::Promise::repeatable,
                                       .kernel = name};
    const auto result = [&](int rows) {
      const auto out = support::batch<double, Exec>(rows, 2, batches);
      rigel::kernel_matvec(exec, Kokkos::subview(x, Kokkos::pair(0, rows), Kokkos::ALL, Kokkos::ALL), z, v,
                           metric::euclidean{}, kernel::gaussian{0.5}, out, options);
      exec.fence();
      return support::values(out);
    };
    const Values whole = result(m), again = result(m), alone = result(1);
    CHECK(whole == again);
    CHECK(Values(whole.begin(), whole.begin() + 2 * batches) == alone);
    // Without the promise slices join to the same within their bound; a matrix by itself.
    const auto out = support::matrix<double, Exec>(m, 2);
    const auto first = [](const auto& of) { return Kokkos::subview(of, Kokkos::ALL, Kokkos::ALL, 0); };
    rigel::kernel_matvec(exec, first(x), first(z), first(v), metric::euclidean{}, kernel::gaussian{0.5}, out,
                         {.kernel = name});
    exec.fence();
    const Values single = support::values(out);
    int wrong = 0;
    for (std::size_t i = 0; i < single.size(); ++i) wrong += !(std::abs(single[i] - whole[i * batches]) <= n * 1100 * u);
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("points: many columns of V of any size, some infinite", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int n = 150, k = 3, columns = 7;
  const auto x = support::matrix<float, Exec>(2, k, numbers(2 * k, 1)),
             z = support::matrix<float, Exec>(n, k, numbers(n * k, 2));
  Values of_v = numbers(n * columns, 3);
  for (int j = 0; j < n; ++j) {
    of_v[at(j, columns, 1)] *= 1e30;
    of_v[at(j, columns, 2)] *= 1e-35;
    of_v[at(j, columns, 5)] = 0;
  }
  of_v[at(7, columns, 3)] = infinity;
  of_v[at(9, columns, 4)] = not_a_number;
  const auto v = support::matrix<float, Exec>(n, columns, of_v), out = support::matrix<float, Exec>(2, columns);
  const Values xs = support::values(x), zs = support::values(z), vs = support::values(v);
  for (const std::string& name : names<Exec>())
    for (const bool softmax : {false, true}) {
      CAPTURE(name);
      CAPTURE(softmax);
      if (softmax)
        rigel::softmax_matvec(exec, x, z, v, metric::squared_euclidean{}, out, epilogue::scale(-0.5), {.kernel = name});
      else
        rigel::kernel_matvec(exec, x, z, v, metric::euclidean{}, kernel::gaussian{1.0}, out,
                             {.precision = precision_of(name, k, columns), .kernel = name});
      exec.fence();
      const Values results = support::values(out);
      for (int row = 0; row < 2; ++row)
        for (int d = 0; d < columns; ++d) {
          double sum = 0, size = 0, total = 0;
          for (int j = 0; j < n; ++j) {
            double square = 0;
            for (int i = 0; i < k; ++i) square += std::pow(xs[at(row, k, i)] - zs[at(j, k, i)], 2);
            const double weight = std::exp(-square / 2);
            total += weight;
            sum += weight * vs[at(j, columns, d)];
            size += std::abs(weight * vs[at(j, columns, d)]);
          }
          const double part = softmax ? total : 1, result = results[at(row, columns, d)];
          CAPTURE(d);
          if (d == 3)
            CHECK(result == infinity);
          else if (d == 4)
            CHECK(result != result);
          else
            CHECK(std::abs(result - sum / part) <= 4000 * u * size / part);
        }
    }
}

TEST_CASE_TEMPLATE("points: large numbers of V while scores rise", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  constexpr int n = 130, columns = 2;
  for (const int k : {3, 20})
    for (const std::string& name : names<Exec>()) {
      CAPTURE(name);
      CAPTURE(k);
      // Weights of the first 64 columns are e^-32 of the others; e^32 times 1e30 is more than a float holds.
      Values of_z(static_cast<std::size_t>(n * k)), of_v(static_cast<std::size_t>(n * columns));
      for (int j = 0; j < n; ++j) {
        if (j < 64) of_z[at(j, k, 0)] = 8;
        of_v[at(j, columns, 0)] = 0x1p100;
        of_v[at(j, columns, 1)] = j % 2 == 0 ? 0x1p100 : -0x1p100;
      }
      const auto x = support::matrix<float, Exec>(1, k), z = support::matrix<float, Exec>(n, k, of_z),
                 v = support::matrix<float, Exec>(n, columns, of_v), out = support::matrix<float, Exec>(1, columns);
      rigel::softmax_matvec(exec, x, z, v, metric::squared_euclidean{}, out, epilogue::scale(-0.5), {.kernel = name});
      exec.fence();
      const Values r = support::values(out);
      CHECK(std::abs(r[0] - 0x1p100) <= 4000 * u * 0x1p100);
      CHECK(std::abs(r[1]) <= 4000 * u * 0x1p100);
    }
}

TEST_CASE("points: what the kernels decline") {
  using Exec = Kokkos::DefaultExecutionSpace;
  if (names<Exec>().size() < 3) return;
  const Exec exec;
  const auto refused = [&](int k, int columns, const auto& last, const rigel::ReduceOptions& given = {}) {
    rigel::ReduceOptions options = given;
    options.kernel = "cuda.points";
    const auto x = support::matrix<float, Exec>(8, k), v = support::matrix<float, Exec>(8, columns),
               out = support::matrix<float, Exec>(8, columns);
    return support::caught([&] { rigel::softmax_matvec(exec, x, x, v, metric::squared_euclidean{}, out, last, options); });
  };
  const auto row = vector<float, Exec>(8, 0);
  CHECK(refused(16, 4, epilogue::add_row(row)).code == rigel::Code::ok);
  CHECK(refused(65, 1, epilogue::scale(1)).lacks({"takes K from 1 to 16", "takes K from 17 to 64"}) == "");
  CHECK(refused(17, 1, epilogue::scale(1)).code == rigel::Code::ok);
  CHECK(refused(17, 1, epilogue::scale(1), {.precision = rigel::Precision::accumulator}).lacks({"precision promoted"}) ==
        "");
  CHECK(refused(17, 1, epilogue::scale(1), {.workspace_limit = 1000}).lacks({"more than the 1000"}) == "");
  CHECK(refused(3, 64, epilogue::scale(1)).code == rigel::Code::ok);
  CHECK(refused(3, 65, epilogue::scale(1)).lacks({"at most 4 columns of V", "takes 5 to 64 columns of V"}) == "");
  CHECK(refused(3, 1, epilogue::add_column(row)).lacks({"one add_row()"}) == "");
  CHECK(refused(3, 1, epilogue::scale(0)).lacks({"moderate"}) == "");
  CHECK(refused(3, 1, epilogue::scale(1), {.exclude_self = true}).code == rigel::Code::ok);
  CHECK(refused(17, 1, epilogue::scale(1), {.exclude_self = true}).lacks({"leaves out no scores"}) == "");
  CHECK(refused(3, 5, epilogue::scale(1), {.exclude_self = true}).lacks({"leaves out no scores"}) == "");
  CHECK(refused(3, 1, epilogue::scale(1), {.score_kernel = "reference"}).lacks({"names 'reference'"}) == "");
  const auto x = support::matrix<float, Exec>(8, 3);
  const auto v = support::matrix<double, Exec>(8, 1), out = support::matrix<double, Exec>(8, 1);
  CHECK(support::caught([&] {
          rigel::kernel_matvec(exec, x, x, v, metric::euclidean{}, kernel::gaussian{1.0}, out, {.kernel = "cuda.points"});
        }).code == rigel::Code::unsupported);
}

}  // namespace

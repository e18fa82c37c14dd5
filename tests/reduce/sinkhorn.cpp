// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sinkhorn() and sinkhorn_barycentre() against a dense loop in double, and by their marginals.
#include <rigel/sinkhorn.hpp>

#include <tests/reduce/call.hpp>
#include <tests/support/random.hpp>

#include <algorithm>
#include <cmath>

namespace {

using namespace reduced;
namespace metric = rigel::metric;

constexpr int dimensions = 2;

Values numbers(int count, std::uint64_t seed, double low, double high) {
  support::Random random(seed);
  Values v(static_cast<std::size_t>(count));
  for (double& x : v) x = static_cast<float>(random.uniform(low, high));
  return v;
}
Values normalised(Values v) {
  double sum = 0;
  for (const double x : v) sum += x;
  for (double& x : v) x /= sum;
  return v;
}

/// Two sets of points, their weights and costs in double.
struct Sets {
  Values x, z, a, b;
  int m() const { return static_cast<int>(a.size()); }
  int n() const { return static_cast<int>(b.size()); }
  double cost(int i, int j) const {
    double sum = 0;
    for (int d = 0; d < dimensions; ++d) {
      const double t = x[at(i, dimensions, d)] - z[at(j, dimensions, d)];
      sum += t * t;
    }
    return sum;
  }
};

/// The plan of potentials.
Values plan(const Sets& s, const Values& f, const Values& g, double epsilon) {
  const Values a = normalised(s.a), b = normalised(s.b);
  Values p;
  for (int i = 0; i < s.m(); ++i)
    for (int j = 0; j < s.n(); ++j) {
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
      p.push_back(a[row] * b[column] * std::exp((f[row] + g[column] - s.cost(i, j)) / epsilon));
    }
  return p;
}

/// Plan by a dense loop: kernels times vectors of factors, until nothing changes.
Values dense_plan(const Sets& s, double epsilon) {
  const Values a = normalised(s.a), b = normalised(s.b);
  Values u(a.size(), 0), v(b.size(), 0);  // logarithms
  const auto update = [&](Values& to, const Values& from, const Values& weights, bool rows) {
    double change = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      double most = -infinity, sum = 0;
      const auto exponent = [&](std::size_t j) {
        const double c =
            rows ? s.cost(static_cast<int>(i), static_cast<int>(j)) : s.cost(static_cast<int>(j), static_cast<int>(i));
        return std::log(weights[j]) + from[j] - c / epsilon;
      };
      for (std::size_t j = 0; j < from.size(); ++j) most = std::max(most, exponent(j));
      for (std::size_t j = 0; j < from.size(); ++j) sum += std::exp(exponent(j) - most);
      const double next = -(most + std::log(sum));
      change = std::max(change, std::abs(next - to[i]));
      to[i] = next;
    }
    return change;
  };
  for (int i = 0; i < 20000; ++i) {
    update(u, v, b, true);
    if (update(v, u, a, false) < 1e-14) break;
  }
  for (double& x : u) x *= epsilon;
  for (double& x : v) x *= epsilon;
  return plan(s, u, v, epsilon);
}

struct Solved {
  Values f, g, barycentre;
  rigel::SinkhornResult result;
};
template <class T, class Exec>
Solved solved(const Exec& exec, const Sets& s, const rigel::SinkhornOptions& options) {
  const auto x = support::matrix<T, Exec>(s.m(), dimensions, s.x), z = support::matrix<T, Exec>(s.n(), dimensions, s.z),
             means = support::matrix<T, Exec>(s.m(), dimensions);
  const auto a = vector<T, Exec>(s.m()), b = vector<T, Exec>(s.n());
  const auto f = vector<double, Exec>(s.m()), g = vector<double, Exec>(s.n());
  support::fill(a, s.a);
  support::fill(b, s.b);
  Solved all;
  all.result = rigel::sinkhorn(exec, x, z, a, b, metric::squared_euclidean{}, f, g, options);
  rigel::sinkhorn_barycentre(exec, x, z, b, g, z, metric::squared_euclidean{}, means, options);
  exec.fence();
  all.f = support::values(f);
  all.g = support::values(g);
  all.barycentre = support::values(means);
  return all;
}

double marginal_error(const Sets& s, const Values& p) {
  const Values a = normalised(s.a), b = normalised(s.b);
  double of_rows = 0, of_columns = 0;
  for (int i = 0; i < s.m(); ++i) {
    double sum = 0;
    for (int j = 0; j < s.n(); ++j) sum += p[at(i, s.n(), j)];
    of_rows += std::abs(sum - a[static_cast<std::size_t>(i)]);
  }
  for (int j = 0; j < s.n(); ++j) {
    double sum = 0;
    for (int i = 0; i < s.m(); ++i) sum += p[at(i, s.n(), j)];
    of_columns += std::abs(sum - b[static_cast<std::size_t>(j)]);
  }
  return std::max(of_rows, of_columns);
}

Sets sets(int m, int n, bool equal_weights) {
  Sets s{numbers(m * dimensions, 1, 0, 1), numbers(n * dimensions, 2, 0.5, 1.5), Values(static_cast<std::size_t>(m), 1),
         Values(static_cast<std::size_t>(n), 1)};
  if (!equal_weights) {
    s.a = numbers(m, 3, 0.1, 4);
    s.b = numbers(n, 4, 0.1, 4);
  }
  return s;
}

TEST_CASE_TEMPLATE("sinkhorn: the plan of a dense loop, its marginals and barycentres", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const bool symmetric : {true, false})
    for (const double epsilon : {1., 0.05}) {
      CAPTURE(symmetric);
      CAPTURE(epsilon);
      const Sets s = sets(20, 30, false);
      const Solved of =
          solved<double>(exec, s, {.epsilon = epsilon, .tolerance = 1e-10, .iterations = 5000, .symmetric = symmetric});
      CHECK(of.result.converged);
      CHECK(of.result.error <= 1e-10);
      const Values p = plan(s, of.f, of.g, epsilon), expected = dense_plan(s, epsilon);
      // What the call says of its plan, and what the plan says.
      CHECK(std::abs(marginal_error(s, p) - of.result.error) <= 1e-12);
      double apart = 0;
      for (std::size_t i = 0; i < p.size(); ++i) apart += std::abs(p[i] - expected[i]);
      CHECK(apart <= 1e-7);
      for (int i = 0; i < s.m(); ++i)
        for (int d = 0; d < dimensions; ++d) {
          double sum = 0, total = 0;
          for (int j = 0; j < s.n(); ++j) {
            sum += p[at(i, s.n(), j)] * s.z[at(j, dimensions, d)];
            total += p[at(i, s.n(), j)];
          }
          CHECK(std::abs(of.barycentre[at(i, dimensions, d)] - sum / total) <= 1e-12);
        }
    }
}

TEST_CASE_TEMPLATE("sinkhorn: floats, and what epsilon scaling is for", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Sets s = sets(40, 30, true);
  const Solved of = solved<float>(exec, s, {.epsilon = 0.1, .tolerance = 1e-4});
  CHECK(of.result.converged);
  // Exponents up to 4/0.1 are in float: each is off by some 40·2^-23.
  CHECK(marginal_error(s, plan(s, of.f, of.g, 0.1)) <= 1e-4 + 2e-5);
  const rigel::SinkhornOptions few{.epsilon = 0.01, .tolerance = 0, .iterations = 30, .symmetric = false};
  rigel::SinkhornOptions at_once = few;
  at_once.scaling = 1;
  CHECK(solved<double>(exec, s, few).result.error < solved<double>(exec, s, at_once).result.error);
  CHECK(solved<double>(exec, s, few).result.iterations == 30);
}

TEST_CASE_TEMPLATE("sinkhorn: zero weights, one point, identical points", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  Sets s = sets(12, 9, false);
  for (int i = 0; i < 12; i += 3) s.a[static_cast<std::size_t>(i)] = 0;
  s.b[4] = 0;
  const Solved of = solved<double>(exec, s, {.epsilon = 0.2, .tolerance = 1e-9, .iterations = 3000});
  CHECK(of.result.converged);
  CHECK(marginal_error(s, plan(s, of.f, of.g, 0.2)) <= 1.1e-9);
  for (const double f : of.f) CHECK(std::isfinite(f));
  for (const double g : of.g) CHECK(std::isfinite(g));

  Sets one = sets(1, 9, false);
  const Solved of_one = solved<double>(exec, one, {.epsilon = 0.2, .tolerance = 1e-12});
  CHECK(of_one.result.converged);
  CHECK(marginal_error(one, plan(one, of_one.f, of_one.g, 0.2)) <= 2e-12);

  // Of identical points all plans of the right marginals cost the same: a·b is the one of the most entropy.
  Sets same = sets(5, 7, false);
  for (double& x : same.x) x = 0.5;
  for (double& z : same.z) z = 0.5;
  const Solved of_same = solved<double>(exec, same, {.epsilon = 1e-3, .tolerance = 1e-12});
  CHECK(of_same.result.converged);
  const Values p = plan(same, of_same.f, of_same.g, 1e-3), a = normalised(same.a), b = normalised(same.b);
  for (std::size_t i = 0; i < p.size(); ++i) CHECK(std::abs(p[i] - a[i / 7] * b[i % 7]) <= 1e-11);

  // A set with itself: both potentials are the same.
  Sets self = sets(10, 10, false);
  self.z = self.x;
  self.b = self.a;
  const Solved of_self = solved<double>(exec, self, {.epsilon = 0.1});
  CHECK(of_self.result.converged);
  for (std::size_t i = 0; i < 10; ++i) CHECK(std::abs(of_self.f[i] - of_self.g[i]) <= 1e-12);
}

TEST_CASE("sinkhorn: errors and workspace") {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  const Exec exec;
  const auto x = support::matrix<float, Exec>(4, 2, {1, 2, 3, 4, 5, 6, 7, 8}, "from"),
             z = support::matrix<float, Exec>(3, 2, {1, 2, 3, 4, 5, 7}, "to");
  const auto a = vector<float, Exec>(4, 1), b = vector<float, Exec>(3, 1), f = vector<float, Exec>(4),
             g = vector<float, Exec>(3);
  const metric::squared_euclidean squares;
  const auto check = [&](const auto& call, std::initializer_list<const char*> texts) {
    const auto e = support::caught(call);
    CHECK(e.code == rigel::Code::invalid_argument);
    CHECK(e.lacks(texts) == "");
  };
  check([&] { rigel::sinkhorn(exec, x, z, a, b, squares, f, g, {}); }, {"sinkhorn: options.epsilon is 0"});
  check([&] { rigel::sinkhorn(exec, x, z, a, b, squares, f, g, {.epsilon = 1, .scaling = 1.5}); },
        {"options.scaling is 1.5"});
  for (const auto& [tolerance, text] :
       {std::pair(-1., "options.tolerance is -1"), std::pair(not_a_number, "options.tolerance is nan")})
    check([&] { rigel::sinkhorn(exec, x, z, a, b, squares, f, g, {.epsilon = 1, .tolerance = tolerance}); }, {text});
  check([&] { rigel::sinkhorn(exec, x, z, b, b, squares, f, g, {.epsilon = 1}); },
        {"a 'vector' is 3x1, expected 4 numbers to match the rows of X 'from' 4x2"});
  check([&] { rigel::sinkhorn(exec, x, z, a, b, squares, f, b, {.epsilon = 1}); }, {"g 'vector'", "overlaps b"});
  const auto negative = vector<float, Exec>(3, -1), none = vector<float, Exec>(3, 0),
             nan = vector<float, Exec>(3, not_a_number);
  check([&] { rigel::sinkhorn(exec, x, z, a, negative, squares, f, g, {.epsilon = 1}); },
        {"b 'vector' 3x1 holds 3 numbers that are negative"});
  check([&] { rigel::sinkhorn(exec, x, z, a, nan, squares, f, g, {.epsilon = 1}); }, {"holds 3 numbers", "NaN"});
  check([&] { rigel::sinkhorn(exec, x, z, a, none, squares, f, g, {.epsilon = 1}); }, {"b 'vector' 3x1 has no weight"});
  const auto huge = vector<double, Exec>(3, 1e308);
  check([&] { rigel::sinkhorn(exec, x, z, a, huge, squares, f, g, {.epsilon = 1}); },
        {"b 'vector' 3x1 has an infinite sum"});
  check(
      [&] { rigel::sinkhorn(exec, support::matrix<float, Exec>(4, 2, {infinity}), z, a, b, squares, f, g, {.epsilon = 1}); },
      {"costs are infinite or NaN"});
  check([&] { rigel::sinkhorn(exec, x, support::matrix<float, Exec>(3, 1, {}, "to"), a, b, squares, f, g, {.epsilon = 1}); },
        {"Z 'to' is 3x1, expected 2 columns"});
  CHECK(support::values(f) == Values{-7, -7, -7, -7});

  rigel::SinkhornOptions options{.epsilon = 1};
  const std::size_t bytes = rigel::sinkhorn_workspace_size(exec, x, z, a, b, squares, f, g, options);
  const Kokkos::View<char*, Exec> memory("memory", bytes + 256);
  const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  options.workspace = {.data = reinterpret_cast<void*>(address), .bytes = bytes};
  CHECK(rigel::sinkhorn(exec, x, z, a, b, squares, f, g, options).converged);
  CHECK(rigel::sinkhorn_barycentre_workspace_size(exec, x, z, b, g, z, squares, support::matrix<float, Exec>(4, 2),
                                                  options) <= bytes);
  using InWorkspace = Kokkos::View<float*, Exec, Kokkos::MemoryUnmanaged>;
  const InWorkspace first(reinterpret_cast<float*>(address), 4), last(reinterpret_cast<float*>(address + bytes) - 3, 3);
  check([&] { rigel::sinkhorn(exec, x, z, a, b, squares, first, g, options); }, {"sinkhorn: the workspace", "overlaps f"});
  check([&] { rigel::sinkhorn(exec, x, z, a, b, squares, f, last, options); }, {"sinkhorn: the workspace", "overlaps g"});
  check([&] { rigel::sinkhorn(exec, x, z, first, b, squares, f, g, options); }, {"sinkhorn: the workspace", "overlaps a"});
  const Kokkos::View<float**, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged> means(first.data(), 4, 2);
  check([&] { rigel::sinkhorn_barycentre(exec, x, z, b, g, z, squares, means, options); },
        {"sinkhorn_barycentre: the workspace", "overlaps out"});
  options.workspace.bytes = bytes - 1;
  check([&] { rigel::sinkhorn(exec, x, z, a, b, squares, f, g, options); }, {"sinkhorn: the workspace has", "expected"});
}

}  // namespace

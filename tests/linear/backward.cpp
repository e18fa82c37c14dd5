// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// linear_backward_weight() and linear_backward_input() by Tier::scalar: chains in plain C++ bit for bit. The chain's error against
// double is that of contract(), which tests/backends bounds.
#include "layer.hpp"

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/spaces.hpp>

namespace {

using layer::Activation, layer::Stored, layer::Tensor, layer::Values;
using rigel::bfloat16;

struct Case {
  std::size_t batches, m, n, k;
  Stored x, dy, out;
  bool sums_batches;  // dW and db have one matrix
};
constexpr Stored rows = Stored::by_rows, columns = Stored::by_columns, gaps = Stored::with_gaps;
constexpr Case cases[] = {{1, 5, 7, 9, rows, rows, rows, false},        {1, 40, 18, 33, rows, columns, columns, false},
                          {3, 17, 6, 21, gaps, rows, rows, false},      {3, 17, 6, 21, gaps, rows, gaps, true},
                          {4, 8, 9, 10, rows, rows, rows, true},        {5, 1, 9, 10, gaps, gaps, rows, true},
                          {1, 1, 1, 1, rows, rows, rows, false},        {2, 0, 3, 4, rows, rows, rows, true},
                          {1, 300, 33, 20, columns, rows, rows, false}, {1, 3, 0, 4, rows, rows, rows, false},
                          {1, 3, 4, 0, rows, rows, rows, false}};

/// dW and db of a case, with what they hold before.
struct Gradients {
  Values weight, bias;
};
Gradients chains(const Case& c, const Values& x, const Values& dy, const Gradients& before) {
  const std::size_t sums = c.sums_batches ? c.batches : 1, outputs = c.sums_batches ? 1 : c.batches;
  const auto row = [&](std::size_t l, std::size_t m) { return (l * sums + m / c.m) * c.m + m % c.m; };  // of all batches
  Gradients g = before;
  layer::Product{outputs, c.k, c.n, sums * c.m}.chains(
      [&](auto l, auto i, auto m) { return x[row(l, m) * c.k + i]; },
      [&](auto l, auto m, auto j) { return dy[row(l, m) * c.n + j]; },
      [&](auto l, auto i, auto j) { return before.weight[(l * c.k + i) * c.n + j]; },
      [&](std::size_t at, float chain, double, double) { g.weight[at] = chain; });
  layer::Product{outputs, 1, c.n, sums * c.m}.chains(
      [](auto, auto, auto) { return 1.; }, [&](auto l, auto m, auto j) { return dy[row(l, m) * c.n + j]; },
      [&](auto l, auto, auto j) { return before.bias[l * c.n + j]; },
      [&](std::size_t at, float chain, double, double) { g.bias[at] = chain; });
  return g;
}

Values rounded_to(double (*round)(float), Values values) {
  for (double& v : values) v = round(static_cast<float>(v));
  return values;
}

/// dW and db of chains that start at zero, in place of what dW and db hold: of f32, and of T if one chain sums all.
template <class T, class X, class DY, class Exec>
void check_overwritten(const Case& c, const X& x, const DY& dy, const Exec& exec, const Gradients& expected) {
  const std::size_t outputs = c.sums_batches ? 1 : c.batches;
  const Values of_weight(outputs * c.k * c.n, NAN), of_bias(outputs * c.n, NAN);
  const rigel::LinearOptions overwrite{.overwrite = true};
  const Tensor<float, Exec> dw(outputs, c.k, c.n, c.out, "dw", of_weight);
  const auto db = layer::rows<Exec>(outputs, c.n, of_bias);
  rigel::linear_backward_weight(exec, x, dy, dw.view(), db, overwrite);
  CHECK(support::same(dw.values(), expected.weight));
  CHECK(support::same(support::values(db), expected.bias));
  const Tensor<T, Exec> rounded(outputs, c.k, c.n, c.out, "dw", of_weight);
  const auto rounded_bias = support::matrix<T, Exec>(static_cast<int>(outputs), static_cast<int>(c.n), of_bias, "db");
  const auto call = [&] { rigel::linear_backward_weight(exec, x, dy, rounded.view(), rounded_bias, overwrite); };
  const bool has_gaps = c.sums_batches && c.m > 1 && (c.x == gaps || c.dy == gaps);
  if (has_gaps && !std::is_same_v<T, float>) {
    CHECK(support::caught(call).lacks({"expected f32 for sums of batches that do not follow each other"}) == "");
    return;
  }
  call();
  CHECK(support::same(rounded.values(), rounded_to(layer::rounded<T>, expected.weight)));
  CHECK(support::same(support::values(rounded_bias), rounded_to(layer::rounded<T>, expected.bias)));
}

template <class T, class Exec>
void check_weight(const Case& c, std::uint64_t seed) {
  const Exec exec;
  const std::size_t outputs = c.sums_batches ? 1 : c.batches;
  const Values x = layer::random<T>(c.batches * c.m * c.k, seed), dy = layer::random<T>(c.batches * c.m * c.n, seed + 1);
  const Gradients before{layer::random<float>(outputs * c.k * c.n, seed + 2), layer::random<float>(outputs * c.n, seed + 3)};
  const Gradients expected = chains(c, x, dy, before);
  const Tensor<T, Exec> of_x(c.batches, c.m, c.k, c.x, "x", x), of_dy(c.batches, c.m, c.n, c.dy, "dy", dy);
  const Tensor<float, Exec> dw(outputs, c.k, c.n, c.out, "dw", before.weight);
  const auto db = layer::rows<Exec>(outputs, c.n, before.bias);
  rigel::linear_backward_weight(exec, of_x.view(), of_dy.view(), dw.view(), db);
  CHECK(support::same(dw.values(), expected.weight));
  CHECK(support::same(support::values(db), expected.bias));
  // Without db, and once more on top of it.
  const Gradients twice = chains(c, x, dy, expected);
  rigel::linear_backward_weight(exec, of_x.view(), of_dy.view(), dw.view(), rigel::no_bias);
  CHECK(support::same(dw.values(), twice.weight));
  check_overwritten<T>(c, of_x.view(), of_dy.view(), exec,
                       chains(c, x, dy, {Values(outputs * c.k * c.n), Values(outputs * c.n)}));
}

template <class T, class X, class Z, class Exec>
void check_input(const Case& c, std::uint64_t seed) {
  const Exec exec;
  const Values dy = layer::random<T>(c.batches * c.m * c.n, seed), w = layer::random<T>(c.k * c.n, seed + 1),
               z = layer::random<Z>(c.batches * c.m * c.k, seed + 2);
  const Tensor<T, Exec> of_dy(c.batches, c.m, c.n, c.dy, "dy", dy), of_w(1, c.k, c.n, c.x, "w", w);
  const Tensor<Z, Exec> of_z(c.batches, c.m, c.k, c.out, "z", z);
  for (const Activation a : layer::activations) {
    const std::string activation = rigel::name(a);
    CAPTURE(activation);
    Values expected;
    layer::Product{c.batches, c.m, c.k, c.n}.chains(
        [&](auto l, auto i, auto n) { return dy[(l * c.m + i) * c.n + n]; },
        [&](auto, auto n, auto j) { return w[j * c.n + n]; }, [](auto, auto, auto) { return 0.; },
        [&](std::size_t at, float chain, double, double) {
          const auto before = static_cast<float>(z[at]);
          expected.push_back(
              layer::rounded<X>(chain * rigel::activation::with(a, [&]<class A>() { return A::derivative(before); })));
        });
    const Tensor<X, Exec> dx(c.batches, c.m, c.k, c.out, "dx");
    rigel::linear_backward_input(exec, of_dy.view(), of_w.view(), dx.view(), of_z.view(), a);
    CHECK(support::same(dx.values(), expected));
    if (a != Activation::none) continue;
    const Tensor<X, Exec> bare(c.batches, c.m, c.k, c.out, "dx");
    rigel::linear_backward_input(exec, of_dy.view(), of_w.view(), bare.view());
    CHECK(support::same(bare.values(), expected));
  }
}

template <class Use>
void for_each_case(const Use& use) {
  std::uint64_t seed = 100;
  for (const Case& c : cases) {
    CAPTURE(seed);
    use(c, seed += 4);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("linear_backward: worked out by hand", T, float, rigel::half, bfloat16) {
  using Exec = Kokkos::DefaultExecutionSpace;
  const auto x = support::matrix<T, Exec>(2, 2, {1, 2, 3, 4}), w = support::matrix<T, Exec>(2, 3, {1, 0, -1, 2, 1, 0}),
             dy = support::matrix<T, Exec>(2, 3, {1, 2, 3, 4, 5, 6});
  const auto dw = support::matrix<float, Exec>(2, 3, {1, 1, 1, 1, 1, 1});
  const Kokkos::View<float*, typename Exec::memory_space> db("db", 3);
  rigel::linear_backward_weight(Exec{}, x, dy, dw, db);
  CHECK(support::values(dw) == Values{14, 18, 22, 19, 25, 31});
  CHECK(support::values(db) == Values{5, 7, 9});
  const auto of_type = support::matrix<T, Exec>(2, 3, {7, 7, 7, 7, 7, 7});
  const Kokkos::View<T*, typename Exec::memory_space> bias("db", 3);
  rigel::linear_backward_weight(Exec{}, x, dy, of_type, bias, {.overwrite = true});
  CHECK(support::values(of_type) == Values{13, 17, 21, 18, 24, 30});
  CHECK(support::values(bias) == Values{5, 7, 9});
  const auto dx = support::matrix<T, Exec>(2, 2), z = support::matrix<T, Exec>(2, 2, {1, -1, 0, 2});
  rigel::linear_backward_input(Exec{}, dy, w, dx);
  CHECK(support::values(dx) == Values{-2, 4, -2, 13});
  rigel::linear_backward_input(Exec{}, dy, w, dx, z, Activation::relu);
  CHECK(support::values(dx) == Values{-2, 0, 0, 13});
  // dX may be Z.
  rigel::linear_backward_input(Exec{}, dy, w, z, z, Activation::relu);
  CHECK(support::values(z) == Values{-2, 0, 0, 13});
}

TEST_CASE_TEMPLATE("linear_backward_weight: the scalar tier is the chain that starts with dW", Exec, RIGEL_TEST_SPACES) {
  for_each_case(check_weight<float, Exec>);
  for_each_case(check_weight<rigel::half, Exec>);
  for_each_case(check_weight<bfloat16, Exec>);
}

TEST_CASE_TEMPLATE("linear_backward_input: the scalar tier is the chain times the derivative", Exec, RIGEL_TEST_SPACES) {
  for_each_case(check_input<float, float, float, Exec>);
  for_each_case(check_input<rigel::half, rigel::half, float, Exec>);
  for_each_case(check_input<bfloat16, bfloat16, bfloat16, Exec>);
  for_each_case(check_input<bfloat16, float, rigel::half, Exec>);
}

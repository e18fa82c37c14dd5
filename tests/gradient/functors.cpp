// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_gradient() with functors of the user's: another ⊕, state, an epilogue, hyperparameters per batch, 16-bit elements. And
// verify() of the kernels that the library carries.
#include <tests/gradient/problems.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using gradient::Extents;
using gradient::Inputs;
using gradient::Numbers;

namespace {

// The largest |c|·(|d − b| + a), plus 1: all in integers.
struct Largest {
  using element = std::int32_t;
  using accumulator = std::int32_t;
  static constexpr const char* name = "largest";
  RIGEL_MEMBER static accumulator identity() { return -1000000; }
  RIGEL_MEMBER static accumulator multiply(accumulator d, accumulator b, accumulator a) {
    return (d < b ? b - d : d - b) + a;
  }
  RIGEL_MEMBER static accumulator accumulate(accumulator x, accumulator c, accumulator v) {
    const accumulator term = (c < 0 ? -c : c) * v;
    return add(x, term);
  }
  RIGEL_MEMBER static accumulator add(accumulator x, accumulator y) { return x < y ? y : x; }
  RIGEL_MEMBER static accumulator result(accumulator x) { return x + 1; }
};

// One of Rigel's functors, with the largest term in place of the sum.
struct LargestSlope : rigel::gradient_of::manhattan<float> {
  static constexpr const char* name = "largest_slope";
  RIGEL_MEMBER static float identity() { return -1000; }
  RIGEL_MEMBER static float accumulate(float x, float c, float v) { return add(x, c * v); }
  RIGEL_MEMBER static float add(float x, float y) { return x < y ? y : x; }
};

// Laplace's kernel exp(−|t|/b) of one coordinate: the derivative with the bandwidth of the batch, which lies in memory of the device.
struct Laplace {
  using element = rigel::half;
  using accumulator = float;
  const float* bandwidths;
  float bandwidth;
  RIGEL_MEMBER Laplace at(std::int64_t l) const { return {nullptr, bandwidths[l]}; }
  RIGEL_MEMBER static float identity() { return 0; }
  RIGEL_MEMBER float multiply(float d, float b, float a) const {
    const float t = d - b;
    return t == 0 ? 0 : a * (t < 0 ? 1.f : -1.f) * rigel::math::exponential(-rigel::math::abs(t) / bandwidth) / bandwidth;
  }
  RIGEL_MEMBER static float accumulate(float x, float c, float v) { return rigel::math::fma(c, v, x); }
  RIGEL_MEMBER static float add(float x, float y) { return x + y; }
};

}  // namespace

TEST_CASE_TEMPLATE("a functor with another sum and an epilogue, by every kernel", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  for (const Extents& e : {Extents{1, 3, 5, 7, 4}, Extents{1, 17, 33, 70, 65}, Extents{1, 2, 3, 4, 1000}}) {
    support::Random random(3);
    const auto numbers = [&](int count) {
      Numbers values;
      for (int i = 0; i < count; ++i) values.push_back(static_cast<double>(random.integer(-100, 100)));
      return values;
    };
    const Inputs in{e, numbers(e.k * e.m), numbers(e.n * e.k), numbers(e.outputs * e.k), numbers(e.n * e.m)};
    const auto a = support::matrix<std::int32_t, Exec>(e.k, e.m, in.a),
               b = support::matrix<std::int32_t, Exec>(e.n, e.k, in.b),
               c = support::matrix<std::int32_t, Exec>(e.outputs, e.k, in.c),
               d = support::matrix<std::int32_t, Exec>(e.n, e.m, in.d);
    Numbers expected;
    for (int o = 0; o < e.outputs; ++o)
      for (int n = 0; n < e.n; ++n)
        for (int m = 0; m < e.m; ++m) {
          double largest = -1000000;
          for (int k = 0; k < e.k; ++k)
            largest = std::max(largest, std::abs(in.coefficient(0, o, k)) *
                                            (std::abs(in.point(0, n, m) - in.known(0, n, k)) + in.weight(0, k, m)));
          expected.push_back(largest + 1);
        }
    const Largest functor;
    const auto out = support::batch<std::int32_t, Exec>(e.outputs, e.n, e.m);
    int ran = 0;
    for (const auto& candidate : rigel::candidates(rigel::gradient_problem(exec, functor, a, b, c, d, out))) {
      if (!candidate.status) continue;
      CAPTURE(candidate.kernel->info.name);
      support::fill(out, {});
      rigel::run(*candidate.kernel, rigel::gradient_problem(exec, functor, a, b, c, d, out));
      CHECK(support::values(out) == expected);
      ++ran;
    }
    CHECK(ran >= 2);
    CHECK(rigel::explain_gradient(exec, functor, a, b, c, d, out).find("* ") != std::string::npos);
  }
}

TEST_CASE_TEMPLATE("a functor that derives from one of Rigel's, with another sum, by every kernel", Exec,
                   RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{1, 9, 5, 20, 600};
  support::Random random(15);
  const auto numbers = [&](int count) {
    Numbers values;
    for (int i = 0; i < count; ++i) values.push_back(static_cast<double>(random.integer(-100, 100)));
    return values;
  };
  const Inputs in{e, numbers(e.k * e.m), numbers(e.n * e.k), numbers(e.outputs * e.k), numbers(e.n * e.m)};
  const auto a = support::matrix<float, Exec>(e.k, e.m, in.a), b = support::matrix<float, Exec>(e.n, e.k, in.b),
             c = support::matrix<float, Exec>(e.outputs, e.k, in.c), d = support::matrix<float, Exec>(e.n, e.m, in.d);
  const auto out = support::batch<float, Exec>(e.outputs, e.n, e.m);
  Numbers expected;
  for (int o = 0; o < e.outputs; ++o)
    for (int n = 0; n < e.n; ++n)
      for (int m = 0; m < e.m; ++m) {
        double largest = -1000;
        for (int k = 0; k < e.k; ++k) {
          const double t = in.point(0, n, m) - in.known(0, n, k), slope = t > 0 ? 1 : t < 0 ? -1 : 0;
          largest = std::max(largest, in.coefficient(0, o, k) * in.weight(0, k, m) * slope);
        }
        expected.push_back(largest);
      }
  const LargestSlope functor;
  const rigel::GradientOptions options{.precision = rigel::Precision::promoted};
  int ran = 0;
  for (const auto& candidate : rigel::candidates(rigel::gradient_problem(exec, functor, a, b, c, d, out, options))) {
    if (!candidate.status) continue;
    CAPTURE(candidate.kernel->info.name);
    support::fill(out, {});
    rigel::run(*candidate.kernel, rigel::gradient_problem(exec, functor, a, b, c, d, out, options));
    CHECK(support::values(out) == expected);
    ++ran;
  }
  CHECK(ran >= 2);
}

TEST_CASE_TEMPLATE("a functor of 16-bit elements with a hyperparameter per batch", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{2, 3, 4, 35, 50};
  support::Random random(5);
  const Inputs in = gradient::random_inputs<rigel::half>(random, e);
  using Right = Kokkos::LayoutRight;
  const auto a = gradient::batch_of<rigel::half, Exec, Right>(e.batch, e.k, e.m),
             b = gradient::batch_of<rigel::half, Exec, Right>(e.batch, e.n, e.k),
             c = gradient::batch_of<rigel::half, Exec, Right>(e.batch, e.outputs, e.k),
             d = gradient::batch_of<rigel::half, Exec, Right>(e.batch, e.n, e.m);
  const auto out = gradient::outputs_of<float, Exec, Right>(e.batch, e.outputs, e.n, e.m);
  gradient::put(a, in.a);
  gradient::put(b, in.b);
  gradient::put(c, in.c);
  gradient::put(d, in.d);
  const Kokkos::View<float*, typename Exec::memory_space> bandwidths("bandwidths", e.batch);
  gradient::put(bandwidths, {0.5, 2});
  rigel::contract_gradient(exec, Laplace{bandwidths.data(), 0}, a, b, c, d, out);
  const Numbers found = gradient::get(out);
  std::size_t i = 0;
  for (int l = 0; l < e.batch; ++l)
    for (int o = 0; o < e.outputs; ++o)
      for (int n = 0; n < e.n; ++n)
        for (int m = 0; m < e.m; ++m) {
          double sum = 0, size = 0;
          for (int k = 0; k < e.k; ++k) {
            const double t = in.point(l, n, m) - in.known(l, n, k), bandwidth = l == 0 ? 0.5 : 2;
            if (t == 0) continue;
            const double term = in.coefficient(l, o, k) * in.weight(l, k, m) * std::copysign(1, -t) *
                                std::exp(-std::abs(t) / bandwidth) / bandwidth;
            sum += term;
            size += std::abs(term);
          }
          // The exponential is within 2 units in the last place, and its argument, of size 4 at most, has two roundings.
          CHECK(std::abs(found[i++] - sum) <= (e.k + 4 + 8 + 3) * 0x1p-24 * size);
        }
}

TEST_CASE_TEMPLATE("half and bfloat16 have gradients in float", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const Extents e{1, 2, 3, 20, 30};
  support::Random random(9);
  const Inputs in = gradient::random_inputs<rigel::bfloat16>(random, e);
  const auto a = support::matrix<rigel::bfloat16, Exec>(e.k, e.m, in.a),
             b = support::matrix<rigel::bfloat16, Exec>(e.n, e.k, in.b),
             c = support::matrix<rigel::bfloat16, Exec>(e.outputs, e.k, in.c),
             d = support::matrix<rigel::bfloat16, Exec>(e.n, e.m, in.d);
  const auto out = support::batch<float, Exec>(e.outputs, e.n, e.m);
  for (const double p : {1., 2., 1.5}) {
    rigel::cdist_gradient(exec, p, a, b, c, d, out);
    const gradient::Sums sums = gradient::sums_of(in, [&](int) { return p; });
    CHECK(gradient::worst_ratio(gradient::get(out), sums, 120 + e.k, 0x1p-24, e.k) <= 1);
  }
}

TEST_CASE("verify() of every gradient kernel") {
  int kernels = 0;
  for (const rigel::KernelInfo& info : rigel::kernels({.operation = "gradient"})) {
    CAPTURE(info.name);
    rigel::Verification result;
    try {
      result = rigel::verify(info.name);
    } catch (const rigel::Error& error) {  // instructions that this processor lacks
      CHECK(error.code() == rigel::Code::unsupported);
      continue;
    }
    CHECK_MESSAGE(result.ok, result.report);
    ++kernels;
  }
  CHECK(kernels >= 12);
}

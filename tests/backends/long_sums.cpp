// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few outputs of many values of k, where a kernel may cut K into parts: within the bound of any order of summation, in the
// reference's bits where no order rounds or where they are required, and the same in every run.
#include <rigel/contract.hpp>

#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

constexpr int m = 3, n = 67, k = 20011;

std::vector<double> random_floats(int count, std::uint64_t seed) {
  support::Random random(seed);
  std::vector<double> list(count);
  for (double& v : list) v = static_cast<float>(random.uniform(-4, 4));
  return list;
}

template <class Exec, class S>
struct Product {
  std::vector<double> a = random_floats(m * k, 1), b = random_floats(k * n, 2), c = random_floats(m * n, 3);

  // C ⊕ A ⊗ B of the kernel that options ask for; its name, where one is wanted.
  std::vector<double> operator()(const rigel::ContractOptions& options, std::string* name = nullptr) const {
    const auto c_view = support::matrix<float, Exec>(m, n, c);
    const auto with = [&](const auto& use) {
      use(Exec{}, S{}, support::matrix<float, Exec>(m, k, a), support::matrix<float, Exec>(k, n, b), c_view,
          rigel::epilogue::Program{}, options);
    };
    if (name)
      with([&](const auto&... arguments) {
        rigel::detail::with_problem(arguments..., [&](const rigel::Problem& p) { *name = rigel::select(p).info.name; });
      });
    with([](const auto&... arguments) { rigel::contract(arguments...); });
    return support::values(c_view);
  }
};

/// The kernels that cut K: on a GPU two, elsewhere what contract() takes.
template <class Exec>
std::vector<std::string> cutting(const std::string& semiring) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return {""};
  return {"cuda.simt." + semiring + ".f32.split_k", "cuda.simt." + semiring + ".f32.narrow_split_k"};
}

// On a GPU contract() takes one of them unasked.
template <class Exec>
bool is_cutting(const std::string& name) {
  return rigel::detail::space_of<Exec> != rigel::Space::cuda || name.ends_with("split_k");
}

}  // namespace

TEST_CASE_TEMPLATE("many values of k: sums that round", Exec, RIGEL_TEST_SPACES) {
  const Product<Exec, rigel::l1<float>> product;
  std::string name;
  product({.accumulate = true}, &name);
  CHECK_MESSAGE(is_cutting<Exec>(name), name);
  for (const std::string& kernel : cutting<Exec>("l1")) {
    CAPTURE(kernel);
    const auto actual = product({.accumulate = true, .kernel = kernel});
    double worst = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double exact = product.c[i * n + j], magnitude = std::fabs(exact);
        for (int l = 0; l < k; ++l) {
          const double term = std::fabs(product.a[i * k + l] - product.b[l * n + j]);
          exact += term, magnitude += term;
        }
        worst = std::max(worst, std::fabs(actual[i * n + j] - exact) / magnitude);
      }
    CHECK(worst <= (k + 2) * 0x1p-24);
    CHECK(product({.accumulate = true, .kernel = kernel}) == actual);
  }
  CHECK(product({.accumulate = true, .require = rigel::Promise::reference_bits}) ==
        product({.accumulate = true, .kernel = "reference"}));
}

TEST_CASE_TEMPLATE("many values of k: minima, which do not", Exec, RIGEL_TEST_SPACES) {
  const Product<Exec, rigel::min_plus<float>> product;
  std::string name;
  product({.accumulate = true, .require = rigel::Promise::reference_bits}, &name);
  CHECK_MESSAGE(is_cutting<Exec>(name), name);
  for (const std::string& kernel : cutting<Exec>("min_plus")) {
    CAPTURE(kernel);
    CHECK(product({.accumulate = true, .require = rigel::Promise::reference_bits, .kernel = kernel}) ==
          product({.accumulate = true, .kernel = "reference"}));
    CHECK(product({.kernel = kernel}) == product({.kernel = "reference"}));
  }
}

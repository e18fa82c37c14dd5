// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few outputs and long K, for which kernels may use split K. Results are within the bound of any order of summation, have the
// reference's bits if no order rounds or if the call requires them, and are the same in every run.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
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

  // C ⊕ A ⊗ B with these options; also the info of the kernel that ran, if `info` is given.
  std::vector<double> operator()(const rigel::ContractOptions& options, rigel::KernelInfo* info = nullptr) const {
    const auto c_view = support::matrix<float, Exec>(m, n, c);
    const auto with = [&](const auto& use) {
      use(Exec{}, S{}, support::matrix<float, Exec>(m, k, a), support::matrix<float, Exec>(k, n, b), c_view,
          rigel::epilogue::Program{}, options);
    };
    if (info)
      with([&](const auto&... arguments) {
        rigel::detail::with_problem(arguments..., [&](const rigel::Contraction& p) { *info = rigel::select(p).info; });
      });
    with([](const auto&... arguments) { rigel::contract(arguments...); });
    return support::values(c_view);
  }
};

/// The kernels that cut K on a GPU; elsewhere the chosen kernel. `portable` is the variant of that family.
template <class Exec>
std::vector<std::string> cutting(const std::string& semiring, [[maybe_unused]] const char* portable) {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda) return {""};
  std::vector<std::string> kernels = {"cuda.simt." + semiring + ".f32.split_k",
                                      "cuda.simt." + semiring + ".f32.small_split_k",
                                      "cuda.simt." + semiring + ".f32.narrow_split_k"};
#if RIGEL_BACKEND_PORTABLE
  kernels.push_back("portable." + semiring + ".f32." + portable);
#endif
  return kernels;
}

// Whether contract() chose a kernel that cuts K, as it must on a GPU.
template <class Exec>
bool is_cutting(const rigel::KernelInfo& info) {
  return rigel::detail::space_of<Exec> != rigel::Space::cuda || info.variant == "split_k" ||
         info.variant == "split_k_slices" || info.variant == "narrow_split_k" || info.variant == "small_split_k";
}

}  // namespace

TEST_CASE_TEMPLATE("many values of k: sums that round", Exec, RIGEL_TEST_SPACES) {
  const Product<Exec, rigel::l1<float>> product;
  rigel::KernelInfo info;
  product({.accumulate = true}, &info);
  CHECK_MESSAGE(is_cutting<Exec>(info), info.name);
  for (const std::string& kernel : cutting<Exec>("l1", "split_k_slices")) {
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
        worst = support::larger(worst, std::fabs(actual[i * n + j] - exact) / magnitude);
      }
    CHECK(worst <= (k + 2) * 0x1p-24);
    CHECK(product({.accumulate = true, .kernel = kernel}) == actual);
  }
  CHECK(product({.accumulate = true, .require = rigel::Promise::reference_bits}) ==
        product({.accumulate = true, .kernel = "reference"}));
}

TEST_CASE_TEMPLATE("many values of k: minima, which do not", Exec, RIGEL_TEST_SPACES) {
  const Product<Exec, rigel::min_plus<float>> product;
  rigel::KernelInfo info;
  product({.accumulate = true, .require = rigel::Promise::reference_bits}, &info);
  CHECK_MESSAGE(is_cutting<Exec>(info), info.name);
  for (const std::string& kernel : cutting<Exec>("min_plus", "split_k")) {
    CAPTURE(kernel);
    CHECK(product({.accumulate = true, .require = rigel::Promise::reference_bits, .kernel = kernel}) ==
          product({.accumulate = true, .kernel = "reference"}));
    CHECK(product({.kernel = kernel}) == product({.kernel = "reference"}));
  }
}

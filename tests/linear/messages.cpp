// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the linear layer refuses, and how it says so; its workspace; explain.
#include "layer.hpp"

#include <tests/support/error.hpp>
#include <tests/support/spaces.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using layer::Values;
using rigel::Activation, rigel::Code, rigel::Tier;
using support::caught, support::matrix;

const auto x = [](int m = 4, int k = 3) { return matrix<float, Exec>(m, k, {}, "x"); };
const auto w = [](int k = 3, int n = 5) { return matrix<float, Exec>(k, n, {}, "w"); };
const auto y = [](int m = 4, int n = 5) {
  return matrix<float, Exec>(m, n, Values(static_cast<std::size_t>(m) * n, 7), "y");
};
using Bias = Kokkos::View<float*, Exec::memory_space>;

template <class F>
void check_refused(Code code, std::initializer_list<const char*> texts, const F& call) {
  const auto e = caught(call);
  CHECK(e.code == code);
  CHECK(e.lacks(texts) == "");
}

}  // namespace

TEST_CASE("linear_forward: extents that do not match") {
  const auto good = y();
  check_refused(Code::invalid_argument, {"linear_forward: W 'w' is 4x5, expected 3 rows to match the columns of X 'x' 4x3"},
                [&] { rigel::linear_forward(Exec{}, x(), w(4), rigel::no_bias, good); });
  check_refused(Code::invalid_argument, {"linear_forward: Y 'y' is 5x5, expected 4 rows to match X 'x' 4x3"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, y(5)); });
  check_refused(Code::invalid_argument, {"linear_forward: Y 'y' is 4x6, expected 5 columns to match W 'w' 3x5"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, y(4, 6)); });
  check_refused(Code::invalid_argument,
                {"linear_forward: bias 'b' is 1x4, expected 5 elements to match the columns of W 'w' 3x5"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), Bias("b", 4), good); });
  check_refused(Code::invalid_argument, {"linear_forward: Z 'y' is 4x4, expected 5 columns to match Y 'y' 4x5"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, good, y(4, 4)); });
  const auto batches = support::batch<float, Exec>(3, 4, 5, {}, "y"), two = support::batch<float, Exec>(2, 4, 3, {}, "x");
  check_refused(Code::invalid_argument, {"linear_forward: X 'x' is 2x4x3, expected 3 batches or one to match Y 'y' 3x4x5"},
                [&] { rigel::linear_forward(Exec{}, two, w(), rigel::no_bias, batches); });
  CHECK(support::values(good) == Values(20, 7));
}

TEST_CASE("linear_forward: memory that overlaps") {
  const auto both = matrix<float, Exec>(8, 5, {}, "both");
  const auto upper = Kokkos::subview(both, Kokkos::pair(0, 4), Kokkos::ALL),
             lower = Kokkos::subview(both, Kokkos::pair(3, 7), Kokkos::ALL);
  check_refused(Code::invalid_argument, {"linear_forward: Z 'both' 4x5 overlaps Y 'both' 4x5"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, upper, lower); });
  check_refused(Code::invalid_argument, {"linear_forward: Y 'both' 4x5 overlaps W 'both' 4x5"},
                [&] { rigel::linear_forward(Exec{}, x(4, 4), upper, rigel::no_bias, lower); });
  const Bias bias(both.data(), 5);
  check_refused(Code::invalid_argument, {"linear_forward: the view of bias, step 1", "overlaps Y 'both'"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), bias, upper); });
  check_refused(Code::invalid_argument, {"linear_forward: the view of bias, step 1", "overlaps Z 'both'"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), bias, y(), upper); });
  const rigel::Workspace workspace{.data = both.data(), .bytes = 40 * sizeof(float)};
  check_refused(Code::invalid_argument, {"linear_forward: the workspace", "overlaps bias"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), bias, y(), {.workspace = workspace}); });
  check_refused(Code::invalid_argument, {"linear_backward_weight: the workspace", "overlaps transposed X 'both' 5x4"},
                [&] { rigel::linear_backward_weight(Exec{}, upper, y(), w(5), rigel::no_bias, {.workspace = workspace}); });
  check_refused(Code::invalid_argument, {"linear_backward_input: the workspace", "overlaps dY 'both' 4x5"},
                [&] { rigel::linear_backward_input(Exec{}, upper, w(), x(), {.workspace = workspace}); });
}

TEST_CASE("linear_backward: extents and memory") {
  const auto dw = matrix<float, Exec>(3, 5, {}, "dw");
  check_refused(Code::invalid_argument, {"linear_backward_weight: dY 'y' is 5x5, expected 4 rows to match X 'x' 4x3"},
                [&] { rigel::linear_backward_weight(Exec{}, x(), y(5), dw, rigel::no_bias); });
  check_refused(Code::invalid_argument,
                {"linear_backward_weight: dW 'w' is 4x5, expected 3 rows to match the columns of X 'x' 4x3"},
                [&] { rigel::linear_backward_weight(Exec{}, x(), y(), w(4), rigel::no_bias); });
  check_refused(Code::invalid_argument,
                {"linear_backward_weight: db 'db' is 1x3, expected 5 elements to match the columns of dY 'y' 4x5"},
                [&] { rigel::linear_backward_weight(Exec{}, x(), y(), dw, Bias("db", 3)); });
  check_refused(Code::invalid_argument, {"linear_backward_weight: db", "overlaps dW 'dw' 3x5"},
                [&] { rigel::linear_backward_weight(Exec{}, x(), y(), dw, Bias(dw.data(), 5)); });
  const auto half = matrix<rigel::half, Exec>(3, 5, {}, "dw");
  check_refused(
      Code::invalid_argument,
      {"linear_backward_weight: dW 'dw' is 3x5 of f16, expected f32, which sums are added to, or options.overwrite"},
      [&] { rigel::linear_backward_weight(Exec{}, x(), y(), half, rigel::no_bias); });
  check_refused(Code::invalid_argument,
                {"linear_forward: options.overwrite is true, expected false: it is for dW and db, and Y is written"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, y(), {.overwrite = true}); });
  check_refused(Code::invalid_argument, {"linear_backward_input: options.overwrite is true", "and dX is written"},
                [&] { rigel::linear_backward_input(Exec{}, y(), w(), x(), {.overwrite = true}); });
  const Kokkos::View<rigel::half*, Exec::memory_space> bias("db", 5);
  check_refused(Code::invalid_argument,
                {"linear_backward_weight: db 'db' is 1x5 of f16, expected f32, which sums are added to"},
                [&] { rigel::linear_backward_weight(Exec{}, x(), y(), dw, bias); });
  check_refused(Code::invalid_argument, {"linear_backward_input: W 'w' is 3x4, expected 5 columns to match dY 'y' 4x5"},
                [&] { rigel::linear_backward_input(Exec{}, y(), w(3, 4), x()); });
  check_refused(Code::invalid_argument,
                {"linear_backward_input: dX 'x' is 4x2, expected 3 columns to match the rows of W 'w' 3x5"},
                [&] { rigel::linear_backward_input(Exec{}, y(), w(), x(4, 2)); });
  check_refused(Code::invalid_argument, {"linear_backward_input: Z 'x' is 5x3, expected 4 rows to match dX 'x' 4x3"},
                [&] { rigel::linear_backward_input(Exec{}, y(), w(), x(), x(5), Activation::gelu); });
}

TEST_CASE("linear: what a tier does not cover") {
  check_refused(Code::unsupported,
                {"linear_forward: Tier::tensor runs on tensor cores, expected the execution space cuda, got"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, y(), {.tier = Tier::tensor}); });
  check_refused(Code::unsupported, {"linear_backward_input: Tier::tensor"},
                [&] { rigel::linear_backward_input(Exec{}, y(), w(), x(), {.tier = Tier::tensor}); });
  check_refused(
      Code::invalid_argument, {"linear_forward: options.precision is split, expected automatic or accumulator"},
      [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, y(), {.precision = rigel::Precision::split}); });
  check_refused(Code::not_found, {"no kernel is named 'nothing'"},
                [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, y(), {.kernel = "nothing"}); });
  if (!rigel::kernels({.name = "host.blas"}).empty())
    check_refused(Code::unsupported, {"host.blas", "promises only repeatable"},
                  [&] { rigel::linear_forward(Exec{}, x(), w(), rigel::no_bias, y(), {.kernel = "host.blas"}); });
}

#ifdef KOKKOS_ENABLE_CUDA
TEST_CASE("linear: what the tensor tier does not cover on a GPU") {
  using Cuda = Kokkos::Cuda;
  const auto a = matrix<float, Cuda>(4, 3), b = matrix<float, Cuda>(3, 5), c = matrix<float, Cuda>(4, 5);
  check_refused(Code::unsupported, {"options.precision automatic does not allow it"},
                [&] { rigel::linear_forward(Cuda{}, a, b, rigel::no_bias, c, {.tier = Tier::tensor}); });
  check_refused(
      Code::unsupported, {"linear_forward: options.kernel is 'cuda.simt', expected kernels of cuda.hopper or cuda.mma"},
      [&] { rigel::linear_forward(Cuda{}, a, b, rigel::no_bias, c, {.tier = Tier::tensor, .kernel = "cuda.simt"}); });
  for (const char* list : {"cuda.mma|cuda.simt", "cuda.hopper|"})
    check_refused(Code::unsupported, {list, "expected kernels of cuda.hopper or cuda.mma"},
                  [&] { rigel::linear_forward(Cuda{}, a, b, rigel::no_bias, c, {.tier = Tier::tensor, .kernel = list}); });
  // Batches with gaps between them, which one dW sums.
  const Kokkos::View<rigel::half***, Kokkos::LayoutRight, Kokkos::CudaSpace> x("x", 2, 5, 8), dy("dy", 2, 5, 8);
  const auto rows = Kokkos::pair(0, 4);
  const auto part_x = Kokkos::subview(x, Kokkos::ALL, rows, Kokkos::ALL),
             part = Kokkos::subview(dy, Kokkos::ALL, rows, Kokkos::ALL);
  const auto dw = matrix<float, Cuda>(8, 8);
  check_refused(Code::unsupported, {"linear_backward_weight: X 'x' 2x4x8", "Tier::tensor sums rows of one matrix only"},
                [&] { rigel::linear_backward_weight(Cuda{}, part_x, part, dw, rigel::no_bias, {.tier = Tier::tensor}); });
}
#endif

TEST_CASE_TEMPLATE("linear: the workspace is what was announced", Space, RIGEL_TEST_SPACES) {
  const Space exec;
  const auto a = matrix<rigel::half, Space>(40, 24), b = matrix<rigel::half, Space>(24, 33),
             c = matrix<rigel::half, Space>(40, 33), z = matrix<rigel::half, Space>(40, 33);
  const auto dw = matrix<float, Space>(24, 33), db = matrix<float, Space>(1, 33);
  const rigel::LinearOptions gelu{.epilogue = Activation::gelu};
  // Sums of f32; a row of ones; derivatives.
  CHECK(rigel::linear_forward_workspace_size(exec, a, b, rigel::no_bias, c, gelu) >= 40 * 33 * sizeof(float));
  CHECK(rigel::linear_backward_weight_workspace_size(exec, a, c, dw, db) >= 40 * sizeof(rigel::half));
  CHECK(rigel::linear_backward_input_workspace_size(exec, c, b, a, a, Activation::silu) >= 40 * 24 * sizeof(float));
  if (support::on_host<Space>) {
    CHECK(rigel::linear_forward_workspace_size(exec, a, b, rigel::no_bias, c, {.kernel = "reference"}) == 0);
    CHECK(rigel::linear_forward_workspace_size(exec, matrix<rigel::half, Space>(0, 24), b, rigel::no_bias,
                                               matrix<rigel::half, Space>(0, 33), gelu) == 0);
  }
  const auto check = [&](std::size_t bytes, const auto& call) {
    const Kokkos::View<char*, typename Space::memory_space> own("own", bytes + 256);
    const auto aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(own.data()) + 255) / 256 * 256);
    call(rigel::Workspace{.data = aligned, .bytes = bytes});
    const auto e = caught([&] { call(rigel::Workspace{.data = aligned, .bytes = bytes - 1}); });
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"the workspace has", "expected"}) == "");
    exec.fence();
  };
  check(rigel::linear_forward_workspace_size(exec, a, b, rigel::no_bias, c, z, gelu), [&](const rigel::Workspace& own) {
    rigel::linear_forward(exec, a, b, rigel::no_bias, c, z, {.epilogue = Activation::gelu, .workspace = own});
  });
  check(rigel::linear_backward_weight_workspace_size(exec, a, c, dw, db),
        [&](const rigel::Workspace& own) { rigel::linear_backward_weight(exec, a, c, dw, db, {.workspace = own}); });
  check(rigel::linear_backward_input_workspace_size(exec, c, b, a, a, Activation::silu), [&](const rigel::Workspace& own) {
    rigel::linear_backward_input(exec, c, b, a, a, Activation::silu, {.workspace = own});
  });
}

TEST_CASE("linear: explain names the tier, the passes and each product") {
  const auto dw = matrix<float, Exec>(3, 5);
  const auto forward = rigel::explain_linear_forward(Exec{}, x(), w(), rigel::no_bias, y(), {.epilogue = Activation::gelu});
  CHECK(support::Caught{.message = forward}.lacks({"linear_forward, Tier::scalar", "a pass applies the epilogue",
                                                   "Y: linear_forward plus_times f32, 4x5x3", "* "}) == "");
  const auto weight = rigel::explain_linear_backward_weight(Exec{}, x(), y(), dw, Bias("db", 5));
  CHECK(support::Caught{.message = weight}.lacks(
            {"dW: linear_backward_weight plus_times f32, 3x5x4", "db: linear_backward_weight plus_times f32, 1x5x4"}) == "");
  CHECK(weight.find("(names of host kernels") == weight.rfind("(names of host kernels"));
  const auto input = rigel::explain_linear_backward_input(Exec{}, y(), w(), x(), x(), Activation::silu);
  CHECK(support::Caught{.message = input}.lacks(
            {"the derivative of silu", "dX: linear_backward_input plus_times f32, 4x3x5"}) == "");
}

TEST_CASE("kernels are named by several families, too") {
  const auto count = [](const char* name) { return rigel::kernels({.name = name}).size(); };
  CHECK(count("reference") > 0);
  CHECK(count("portable|reference") == count("portable") + count("reference"));
  CHECK(count("reference|nothing") == count("reference"));
  CHECK(count("reference|") == count("reference"));
  CHECK(count("nothing|none") == 0);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of Rigel's own with epilogues from text, against the same formula in plain C++: on GPUs the kernels of tensor cores that are
// compiled with the text. Numbers are small enough for sums to be exact.
#include "ptx.hpp"

#ifdef KOKKOS_ENABLE_CUDA
#include <rigel/backends/cuda/hopper/text.hpp>
#include <rigel/backends/cuda/text_code.hpp>
#endif

#include <array>
#include <string>

using rigel::runtime::Epilogue;
using texts::Batch, texts::has, texts::Matrix;

namespace {

// Whole numbers from -2 to 2.
template <class View>
void fill_small(const View& view, unsigned seed) {
  using T = typename View::non_const_value_type;
  for (std::size_t i = 0; i < view.size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    view.data()[i] = static_cast<T>(static_cast<float>(static_cast<int>(seed >> 20) % 5 - 2));
  }
}

// x · scale + 2·m − n + 8·batch of a product, added to what C holds or not, is what each output of C is. `scales`: one for each matrix.
template <class A, class B, class C>
int wrong_in(const A& a, const B& b, const C& before, const C& c, bool accumulates, const std::array<float, 3>& scales) {
  using T = typename C::non_const_value_type;
  int wrong = 0;
  for (std::size_t l = 0; l < c.extent(0); ++l)
    for (std::size_t i = 0; i < c.extent(1); ++i)
      for (std::size_t j = 0; j < c.extent(2); ++j) {
        float x = accumulates ? static_cast<float>(before(l, i, j)) : 0.f;
        for (std::size_t k = 0; k < a.extent(2); ++k) x += static_cast<float>(a(l, i, k)) * static_cast<float>(b(k, j));
        const float y = x * scales[l] + 2 * static_cast<float>(i) - static_cast<float>(j) + 8 * static_cast<float>(l);
        wrong += static_cast<float>(c(l, i, j)) != static_cast<float>(static_cast<T>(y));
      }
  return wrong;
}

constexpr const char* formula = "x * scale + 2 * m - n + 8 * batch";

template <class Exec, class Element, class Value, class LayoutA, class LayoutB, class LayoutC>
void check(const Epilogue& e, std::array<int, 4> extents, bool accumulates, const std::array<float, 3>& scales) {
  const auto [batches, m, n, k] = extents;
  CAPTURE(batches);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(accumulates);
  const Batch<Element, LayoutA> a("a", batches, m, k);
  const Matrix<Element, LayoutB> b("b", k, n);
  const Batch<Value, LayoutC> c("c", batches, m, n), before("before", batches, m, n);
  fill_small(a, 1);
  fill_small(b, 2);
  fill_small(c, 3);
  Kokkos::deep_copy(before, c);
  texts::contract<Exec>(rigel::plus_times<Element>{}, a, b, c, e, rigel::ContractOptions{.accumulate = accumulates});
  CHECK(wrong_in(a, b, before, c, accumulates, scales) == 0);
}

template <class Exec, class Element, class Value>
void check_all() {
  using Right = Kokkos::LayoutRight;
  using Left = Kokkos::LayoutLeft;
  Epilogue e({.result = rigel::scalar_of<Value>, .body = formula, .hyperparameters = {{"scale", 0.5}}});
  for (const float scale : {0.5f, -2.f}) {
    e.set("scale", scale);
    const std::array<float, 3> scales{scale, scale, scale};
    for (const bool accumulates : {false, true}) {
      check<Exec, Element, Value, Right, Right, Right>(e, {1, 256, 192, 128}, accumulates, scales);  // whole tiles
      check<Exec, Element, Value, Right, Left, Right>(e, {2, 131, 205, 72}, accumulates, scales);
      check<Exec, Element, Value, Right, Right, Right>(e, {3, 37, 45, 19}, accumulates, scales);
      check<Exec, Element, Value, Left, Right, Left>(e, {1, 67, 70, 33}, accumulates, scales);
      check<Exec, Element, Value, Right, Right, Right>(e, {1, 5, 7, 0}, accumulates, scales);
    }
  }
  // A number for each matrix, which the kernel reads.
  const Kokkos::View<float*, texts::Memory> view("scales", 3);
  const std::array<float, 3> scales{1, -0.5f, 4};
  for (std::size_t l = 0; l < 3; ++l) view(l) = scales[l];
  e.set("scale", view);
  check<Exec, Element, Value, Right, Right, Right>(e, {3, 40, 70, 24}, false, scales);
}

}  // namespace

TEST_CASE_TEMPLATE("text epilogue: of products of 16-bit numbers and of floats", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  check_all<Exec, rigel::bfloat16, rigel::bfloat16>();
  check_all<Exec, rigel::bfloat16, float>();
  check_all<Exec, rigel::half, float>();
  check_all<Exec, float, float>();
}

TEST_CASE_TEMPLATE("text epilogue: of a product with sums that are cut into parts", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  Epilogue e({.body = formula, .hyperparameters = {{"scale", 1}}});
  check<Exec, rigel::bfloat16, float, Kokkos::LayoutRight, Kokkos::LayoutRight, Kokkos::LayoutRight>(e, {1, 20, 30, 4200},
                                                                                                     true, {1, 1, 1});
}

TEST_CASE_TEMPLATE("text epilogue: of a product compiles once for a thousand values", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  Epilogue e({.body = "x * p + 0.8125", .hyperparameters = {{"p", 1}}});
  const Matrix<rigel::bfloat16> a("a", 3, 8), b("b", 8, 8);
  const Matrix<float> c("c", 3, 8);
  Kokkos::deep_copy(a, rigel::bfloat16(1.f));
  Kokkos::deep_copy(b, rigel::bfloat16(1.f));
  texts::contract<Exec>(rigel::plus_times<rigel::bfloat16>{}, a, b, c, e);
  const auto before = rigel::runtime::statistics();
  for (int i = 0; i < 1000; ++i) {
    e.set("p", i);
    texts::contract<Exec>(rigel::plus_times<rigel::bfloat16>{}, a, b, c, e);
    REQUIRE(c(2, 7) == 8 * static_cast<float>(i) + 0.8125f);
  }
  const auto after = rigel::runtime::statistics();
  CHECK(after.compiled == before.compiled);
  CHECK(after.from_disk == before.from_disk);
}

TEST_CASE("text epilogue: PTX of the tiles of tensor cores") {
  if (!texts::compiles_for_gpus()) return;
  const std::string source =
      "extern \"C\" __attribute__((always_inline)) float rigel_text_epilogue(float x, long m, long n, long batch, "
      "const float* parameters) noexcept {\n"
      "  return x * parameters[1] + (m - n) * batch;\n}\n";
  const struct {
    const char *tiles, *level, *instruction;
    std::size_t count;
  } families[] = {{"hopper_bf16", "sm_90a", "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16", 8},
                  {"hopper_f16", "sm_90a", "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16", 8},
                  {"mma_bf16", "sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16},
                  {"mma_f16", "sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16},
                  {"mma_f32", "sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 2}};
  for (const auto& family : families) {
    CAPTURE(family.tiles);
    const auto ptx_of = [&](std::size_t kernel) { return texts::ptx_of_source(source, family.tiles, family.level, kernel); };
    const texts::Ptx ptx = ptx_of(0), last = ptx_of(family.count - 1), none = ptx_of(family.count);
    REQUIRE_MESSAGE(!ptx.failed, ptx.messages);
    CHECK(has(ptx.text, (".target " + std::string(family.level)).c_str()));
    CHECK(has(ptx.text, ".entry rigel_text_kernel("));
    CHECK(has(ptx.text, family.instruction));
    CHECK(!has(ptx.text, ".extern .func"));
    CHECK(!has(ptx.text, "rigel_text_epilogue"));
    CHECK_MESSAGE(!last.failed, last.messages);
    CHECK(none.failed);
    CHECK(has(none.messages, "the kernels for texts are of another build of Rigel"));
  }
}

#ifdef KOKKOS_ENABLE_CUDA
TEST_CASE("text epilogue: products on a GPU take tensor cores, and what these do not take is named") {
  if (!texts::can_compile()) return;
  const Kokkos::Cuda exec;
  constexpr int large = 4096;  // wgmma pays
  const Matrix<rigel::bfloat16> a("a", large, large), b("b", large, large);
  const Matrix<float> c("c", large, large);
  const Matrix<rigel::half> other("other", large, large);
  const Epilogue e({.body = "max(x, 0)"}), of_half({.result = rigel::Scalar::f16, .body = "max(x, 0)"});
  const rigel::plus_times<rigel::bfloat16> product;
  const std::string text = rigel::explain(exec, product, a, b, c, e);
  CAPTURE(text);
  const auto& properties = exec.cuda_device_prop();
  const bool has_wgmma = properties.major == 9 && properties.minor == 0;
  CHECK(has(text, has_wgmma ? "* cuda.hopper.plus_times.bf16.text.128x192x64" : "* cuda.mma.plus_times.bf16.text."));
  CHECK(has(rigel::explain(exec, product, a, b, other, of_half), "C ('other') holds f16, expected f32 or bf16"));
  const Matrix<float> f("f", 8, 8), g("g", 8, 8);
  const auto caught = support::caught([&] { rigel::contract(exec, rigel::min_plus<float>{}, f, f, g, e); });
  CHECK(caught.code == rigel::Code::unsupported);
  CHECK(has(caught.message, "takes those of the closed set"));
  const Epilogue wide({.argument = rigel::Scalar::f64, .body = "x"});
  const auto types = support::caught([&] { rigel::contract(exec, product, a, b, c, wide); });
  CHECK(types.code == rigel::Code::invalid_argument);
  CHECK(types.lacks({"f64", "f32"}) == "");
}

TEST_CASE("text epilogue: kernels of wgmma keep all sums in registers") {
  if (!texts::can_compile()) return;
  const rigel::Execution execution = rigel::detail::execution_of(Kokkos::Cuda());
  if (execution.compute_capability != 90) return support::skip("no wgmma on this GPU");
  using Kernels = rigel::backends::hopper::TextKernels<rigel::bfloat16>;
  const Epilogue e({.body = "tanh(x * p) + m", .hyperparameters = {{"p", 1}}});
  const auto& kernel = e.products(rigel::Scalar::bf16).front();
  REQUIRE(kernel.info.family == "cuda.hopper");
  for (const auto& [number, bytes] : rigel::backends::tensor::text_needs(Kernels{}, rigel::Scalar::f32)) {
    CAPTURE(number);
    cudaFuncAttributes attributes;
    const void* const function = rigel::backends::cuda::text_functions_of(kernel)(number, execution, bytes);
    REQUIRE(cudaFuncGetAttributes(&attributes, function) == cudaSuccess);
    CHECK(attributes.localSizeBytes == 0);
  }
}

TEST_CASE("text epilogue: of a product in a captured stream") {
  if (!texts::can_compile()) return;
  const Epilogue fresh({.name = "captured", .body = "x * 1.6875"});
  const Matrix<rigel::bfloat16> a("a", 64, 64), b("b", 64, 64);
  const Matrix<float> c("c", 64, 64);
  Kokkos::deep_copy(a, rigel::bfloat16(1.f));
  Kokkos::deep_copy(b, rigel::bfloat16(1.f));
  const rigel::plus_times<rigel::bfloat16> product;
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    const Kokkos::Cuda exec(stream);
    rigel::contract(exec, product, a, b, c, Epilogue({.body = "x"}));  // whatever else a first call does
    exec.fence();
    const auto captured = [&](cudaGraph_t& graph) {
      REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      const auto caught = support::caught([&] { rigel::contract(exec, product, a, b, c, fresh, {.kernel = "cuda.mma"}); });
      CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      return caught;
    };
    cudaGraph_t graph = nullptr;
    const auto refused = captured(graph);
    CHECK(refused.code == rigel::Code::unsupported);
    CHECK(refused.lacks({"'captured'", "expected such a call before, or compile()"}) == "");
    cudaGraphDestroy(graph);
    fresh.compile(exec, rigel::Scalar::bf16);
    graph = nullptr;
    CHECK(captured(graph).code == rigel::Code::ok);
    cudaGraphExec_t replay;
    REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    CHECK(cudaGraphLaunch(replay, stream) == cudaSuccess);
    exec.fence();
    CHECK(c(63, 63) == 64 * 1.6875f);
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
}
#endif

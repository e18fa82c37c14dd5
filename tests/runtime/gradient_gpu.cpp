// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients from text for GPUs: the PTX that is made of a text, where there need be no GPU; and what only GPUs do with it.
#include "ptx.hpp"

#include <rigel/runtime_gradient.hpp>

#include <src/runtime/parameters.hpp>
#include <src/runtime/text.hpp>

#include <string>

using rigel::Scalar, rigel::runtime::DerivativeTexts;
using texts::compiles_for_gpus, texts::count, texts::has, texts::Ptx;

namespace {

// What the compiler makes of a text for one of its kernels.
Ptx ptx_of(const DerivativeTexts& texts, const char* level, std::size_t kernel, std::uint64_t layout = 0) {
  const Scalar number = rigel::runtime::accumulator_of(texts.element);
  const std::string source = rigel::runtime::source_of(rigel::runtime::parse(texts, number), number, 0);
  return texts::ptx_of_source(source, std::string("gradient_") + rigel::name(texts.element), level, kernel, layout);
}

// Kernels of short texts and then of those that call functions: of 4 bytes three tiles and the join, of 8 two and the join.
constexpr std::size_t kernels_of(Scalar element) { return element == Scalar::f64 || element == Scalar::i64 ? 6 : 8; }

}  // namespace

TEST_CASE("text gradient: each kernel in PTX, for each element type and architecture") {
  if (!compiles_for_gpus()) return;
  for (const Scalar element : {Scalar::f32, Scalar::f64, Scalar::i32, Scalar::i64, Scalar::f16, Scalar::bf16}) {
    CAPTURE(rigel::name(element));
    const DerivativeTexts text{.element = element,
                               .multiply = "a * (d < b ? p : q)",
                               .result = "x + r",
                               .hyperparameters = {{"p", 1}, {"q", 2}, {"r", 3}}};
    for (std::size_t kernel = 0; kernel < kernels_of(element); ++kernel)
      for (const char* level : {"sm_80", "sm_90"}) {
        CAPTURE(kernel);
        CAPTURE(level);
        const Ptx ptx = ptx_of(text, level, kernel);
        CHECK_MESSAGE(!ptx.failed, ptx.messages);
        CHECK(has(ptx.text, (".target " + std::string(level)).c_str()));
        CHECK(has(ptx.text, ".entry rigel_text_kernel("));
        CHECK(!has(ptx.text, ".extern .func"));
        CHECK(!has(ptx.text, "rigel_text_multiply"));
        CHECK(!has(ptx.text, ".local"));  // hyperparameters are in registers
      }
    CHECK(has(ptx_of(text, "sm_80", kernels_of(element)).messages, "the kernels for texts are of another build of Rigel"));
    CHECK(has(ptx_of(text, "sm_80", 0, 1).messages, "the kernels for texts are of another build of Rigel"));
  }
}

TEST_CASE("text gradient: PTX rounds where the text does, and has powers by special functions") {
  if (!compiles_for_gpus()) return;
  // The tile for most outputs: 16 o and 2 x 2 of n and m for a thread, two k a round and one in a remainder.
  const Ptx plain = ptx_of({.multiply = "a * (d - b)"}, "sm_90", 0);
  CHECK(count(plain.text, "mul.rn.f32") >= 4);
  CHECK(count(plain.text, "fma.rn.f32") == 16 * count(plain.text, "mul.rn.f32"));
  CHECK(count(plain.text, "mul.f32") == 0);
  const Ptx power = ptx_of({.multiply = "a * power(abs(d - b), p)", .hyperparameters = {{"p", 1}}}, "sm_90", 4);
  CHECK(count(power.text, "lg2.approx.ftz.f32") == count(power.text, "ex2.approx.ftz.f32"));
  CHECK(has(power.text, "lg2.approx.ftz.f32"));
  CHECK(!has(power.text, ".extern .func"));
}

#ifdef KOKKOS_ENABLE_CUDA
using rigel::runtime::Derivative;

TEST_CASE("text gradient: nothing is compiled while a stream is captured, and a replayed graph sees new values of views") {
  if (!compiles_for_gpus()) return;
  const Kokkos::View<float, texts::Memory> scale("scale");
  scale() = 1;
  Derivative fresh({.name = "captured", .multiply = "a * (d - b) * 1.625 * scale", .hyperparameters = {{"scale", 0}}});
  fresh.set("scale", scale);
  const texts::Matrix<float> a("a", 1, 8), b("b", 8, 1), c("c", 1, 1), d("d", 8, 8);
  const texts::Batch<float> out("out", 1, 8, 8);
  for (const auto& view : {a, c, d}) Kokkos::deep_copy(view, 2.f);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    const Kokkos::Cuda exec(stream);
    rigel::contract_gradient(exec, Derivative({.multiply = "a"}), a, b, c, d, out);  // whatever else a first call does
    exec.fence();
    const auto captured = [&](cudaGraph_t& graph) {
      REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      const auto caught = support::caught([&] { rigel::contract_gradient(exec, fresh, a, b, c, d, out); });
      CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      return caught;
    };
    cudaGraph_t empty = nullptr, graph = nullptr;
    const auto refused = captured(empty);
    CHECK(refused.code == rigel::Code::unsupported);
    CHECK(refused.lacks({"runtime::Derivative 'captured'", "captured; expected such a call before, or compile()"}) == "");
    fresh.compile(exec);
    const auto before = rigel::runtime::statistics();
    CHECK(captured(graph).code == rigel::Code::ok);
    cudaGraphExec_t ready = nullptr;
    REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
    for (const float value : {1.f, -3.f}) {
      scale() = value;
      REQUIRE(cudaGraphLaunch(ready, stream) == cudaSuccess);
      exec.fence();
      CHECK(out(0, 7, 7) == 2 * 2 * 2 * 1.625f * value);
    }
    CHECK(rigel::runtime::statistics().compiled == before.compiled);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    cudaGraphDestroy(empty);
  }
  cudaStreamDestroy(stream);
}

TEST_CASE("text gradient: verify() refuses hyperparameters that the host cannot read, as that of semirings does") {
  if (!texts::can_compile()) return;
  const Kokkos::View<float, Kokkos::CudaSpace> p("p");
  Derivative text({.multiply = "a * p", .hyperparameters = {{"p", 1}}});
  rigel::runtime::Semiring semiring({.multiply = "a * b * p", .add = "x + y", .hyperparameters = {{"p", 1}}});
  text.set("p", p);
  semiring.set("p", p);
  for (const auto& refused : {support::caught([&] { static_cast<void>(rigel::verify(text)); }),
                              support::caught([&] { static_cast<void>(rigel::verify(semiring)); })}) {
    CHECK(refused.code == rigel::Code::invalid_argument);
    CHECK(refused.lacks({"hyperparameter 'p'", "is in memory that space", "cannot read"}) == "");
  }
}
#endif

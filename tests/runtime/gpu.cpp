// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels from text for GPUs: the PTX that is made of a text, where there need be no GPU; and what only GPUs do with it.
#include "texts.hpp"

#include <src/runtime/library.hpp>
#include <src/runtime/text.hpp>

#include <algorithm>
#include <string>
#include <vector>

using rigel::Scalar, rigel::runtime::Semiring, rigel::runtime::Texts;

namespace {

// What the compiler makes of a text for one of its kernels.
struct Ptx {
  bool failed;
  std::string text, messages;
};
Ptx ptx_of(const Texts& texts, Scalar accumulator, const char* level, std::size_t kernel, std::uint64_t layout = 0) {
  std::string reason;
  const RigelRuntime& runtime = *rigel::runtime::library(reason);
  const std::string source = rigel::runtime::source_of(rigel::runtime::parse(texts, accumulator), accumulator, 0);
  const RigelSource request{source.data(), source.size(), rigel::name(texts.element), level, nullptr, 0, kernel, layout};
  RigelBytes bytes = {}, said = {};
  const bool failed = runtime.compile(&request, &bytes, &said) != 0;
  Ptx result{failed, {bytes.data ? bytes.data : "", bytes.size}, {said.data ? said.data : "", said.size}};
  runtime.release(&bytes);
  runtime.release(&said);
  return result;
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// Whether this librigel_runtime.so has kernels for GPUs; else the test is skipped.
bool compiles_for_gpus() {
  if (!texts::can_compile()) return false;
  const bool can =
      !has(ptx_of({.multiply = "a * b", .add = "x + y"}, Scalar::f32, "sm_80", 0).messages, "no kernels for GPUs");
  if (!can) support::skip("librigel_runtime.so was built where no CUDA toolkit is");
  return can;
}

}  // namespace

TEST_CASE("text: a kernel in PTX for each element type and architecture") {
  if (!compiles_for_gpus()) return;
  const struct {
    Scalar element, accumulator;
  } types[] = {{Scalar::f32, Scalar::f32}, {Scalar::f64, Scalar::f64}, {Scalar::i32, Scalar::i32},
               {Scalar::i64, Scalar::i64}, {Scalar::f16, Scalar::f32}, {Scalar::bf16, Scalar::f32}};
  for (const auto [element, accumulator] : types) {
    CAPTURE(rigel::name(element));
    for (const char* level : {"sm_80", "sm_90"}) {
      CAPTURE(level);
      const Ptx ptx = ptx_of({.element = element,
                              .multiply = "a < b ? a * b + p : a - b",
                              .add = "max(x, y)",
                              .result = "x + 1",
                              .hyperparameters = {{"p", 1}}},
                             accumulator, level, 0);
      CHECK_MESSAGE(!ptx.failed, ptx.messages);
      CHECK(has(ptx.text, (".target " + std::string(level)).c_str()));
      CHECK(has(ptx.text, ".entry rigel_text_kernel("));
      CHECK(!has(ptx.text, ".extern .func"));
      CHECK(!has(ptx.text, "rigel_text_step"));
    }
  }
}

TEST_CASE("text: PTX rounds where the text does, and fuses nothing") {
  if (!compiles_for_gpus()) return;
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  const Ptx apart = ptx_of({.multiply = "a * b", .add = "x + y"}, Scalar::f32, "sm_90", 0);
  CHECK(count(apart.text, "fma.rn.f32") == 0);
  CHECK(count(apart.text, "mul.rn.f32") >= 128);  // a thread has 128 outputs
  CHECK(count(apart.text, "mul.rn.f32") == count(apart.text, "add.rn.f32"));
  CHECK(count(apart.text, "mul.f32") == 0);
  const Ptx fused = ptx_of({.multiply = "a * b", .add = "x + y", .step = "fma(a, b, x)"}, Scalar::f32, "sm_90", 0);
  CHECK(count(fused.text, "fma.rn.f32") == count(apart.text, "mul.rn.f32"));
  CHECK(count(fused.text, "mul.rn.f32") == 0);
  const Ptx least = ptx_of({.multiply = "a + b", .add = "min(x, y)"}, Scalar::f32, "sm_90", 0);
  CHECK(count(least.text, "min.NaN.f32") == count(apart.text, "add.rn.f32"));
}

TEST_CASE("text: functions on GPUs come with the kernel") {
  if (!compiles_for_gpus()) return;
  const Texts text = {.multiply =
                          "exp(a) + exp2(a) + expm1(a) + log(b) + log2(b) + log1p(b) + sin(a) + cos(a) + tanh(b) + "
                          "pow(a, b) + power(abs(a), p) + fast::exp2(a) + fast::log2(b)",
                      .add = "x + y",
                      .hyperparameters = {{"p", 1}}};
  for (const Scalar type : {Scalar::f32, Scalar::f64}) {
    Texts own = text;
    own.element = type;
    const Ptx ptx = ptx_of(own, type, "sm_80", type == Scalar::f32 ? 28 : 6);  // the first tile for such texts
    CHECK_MESSAGE(!ptx.failed, ptx.messages);
    CHECK(!has(ptx.text, ".extern .func"));
    CHECK(!has(ptx.text, "__nvvm_reflect"));
  }
}

TEST_CASE("text: a kernel that the bitcode does not have, or of another layout, is refused") {
  if (!compiles_for_gpus()) return;
  const Texts text = {.multiply = "a * b", .add = "x + y"};
  for (const auto& [kernel, layout] : {std::pair{std::size_t{1000}, std::uint64_t{0}}, {std::size_t{0}, std::uint64_t{1}}}) {
    const Ptx ptx = ptx_of(text, Scalar::f32, "sm_80", kernel, layout);
    CHECK(ptx.failed);
    CHECK(has(ptx.messages, "the kernels for texts are of another build of Rigel"));
  }
}

TEST_CASE("text: what GPUs have no kernels for") {
  const auto reason = [](const Texts& texts) {
    return rigel::detail::text_gpu_supports(rigel::runtime::parse(texts, Scalar::f32).form).reason;
  };
  CHECK(reason({.multiply = "abs(a - b)", .add = "x + y"}) == "");
  CHECK(reason({.multiply = "abs(a - b)", .add = "max(x, y)"}) == "");
  CHECK(reason({.multiply = "exp(a - b)", .add = "x + y"}) == "");
  CHECK(reason({.multiply = "exp(a - b)", .add = "x + y", .result = "log(x)"}) == "");
  CHECK(has(reason({.multiply = "k < 4 ? a * b : 0", .add = "x + y"}), "the text reads k"));
  CHECK(has(reason({.accumulator = {{"u", Scalar::f32}, {"v", Scalar::f32}},
                    .multiply = "{a, b}",
                    .add = "x",
                    .identity = "{0, 0}",
                    .result = "x.u"}),
            "the accumulator has several fields"));
}

#ifdef KOKKOS_ENABLE_CUDA
TEST_CASE("text: nothing is compiled while a stream is captured") {
  if (!compiles_for_gpus()) return;
  const Semiring fresh({.name = "captured", .multiply = "abs(a - b) * 1.625", .add = "x + y"});
  const texts::Matrix<float> a("a", 8, 8), b("b", 8, 8), c("c", 8, 8);
  texts::fill(a, 1);
  texts::fill(b, 2);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    const Kokkos::Cuda exec(stream);
    rigel::contract(exec, Semiring({.multiply = "a * b", .add = "x + y"}), a, b, c);  // whatever else a first call does
    exec.fence();
    const auto captured = [&] {
      cudaGraph_t graph = nullptr;
      REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      const auto caught = support::caught([&] { rigel::contract(exec, fresh, a, b, c); });
      CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      cudaGraphDestroy(graph);
      return caught;
    };
    const auto refused = captured();
    CHECK(refused.code == rigel::Code::unsupported);
    CHECK(has(refused.message, "'captured'"));
    CHECK(has(refused.message, "captured; expected such a call before, or compile()"));
    fresh.compile(exec);
    CHECK(captured().code == rigel::Code::ok);
  }
  cudaStreamDestroy(stream);
}

TEST_CASE("text: calls of what GPUs have no kernels for are refused, and say why") {
  if (!compiles_for_gpus()) return;
  const texts::Matrix<float> a("a", 8, 8), c("c", 8, 8);
  const Kokkos::Cuda exec;
  const auto refuses = [&](const auto& call, std::initializer_list<const char*> says) {
    const support::Caught caught = support::caught(call);
    CHECK(caught.code == rigel::Code::unsupported);
    CHECK(caught.lacks(says) == "");
  };
  const Semiring indexed({.name = "mine", .multiply = "a * b * k", .add = "x + y"});
  refuses([&] { rigel::contract(exec, indexed, a, a, c); }, {"the text reads k"});
  refuses([&] { indexed.compile(exec); }, {"'mine'", "the text reads k"});
  const Semiring fields({.name = "mine",
                         .accumulator = {{"u", Scalar::f32}, {"v", Scalar::f32}},
                         .multiply = "{a, b}",
                         .add = "x",
                         .identity = "{0, 0}",
                         .result = "x.u"});
  refuses([&] { rigel::contract(exec, fields, a, a, c); }, {"the accumulator has several fields"});
  refuses([&] { fields.compile(exec); }, {"'mine'", "the accumulator has several fields"});
  Semiring read({.multiply = "a * b * p", .add = "x + y", .hyperparameters = {{"p", 1}}});
  read.set("p", Kokkos::View<float, Kokkos::HostSpace>("p"));
  refuses([&] { rigel::contract(exec, read, a, a, c); }, {"a hyperparameter is a view"});
  read.set("p", 2);
  CHECK(support::caught([&] { rigel::contract(exec, read, a, a, c); }).code == rigel::Code::ok);
  const rigel::runtime::Epilogue epilogue({.name = "last", .body = "x + 1"});
  refuses([&] { rigel::contract(exec, read, a, a, c, epilogue); }, {"GPUs have no epilogues from text"});
  exec.fence();
}
#endif

TEST_CASE_TEMPLATE("text: explain() names the kernels of a space", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring s({.name = "mine", .multiply = "a * b", .add = "x + y"});
  const texts::Matrix<float> a("a", 64, 64), c("c", 64, 64);
  const std::string text = rigel::explain(Exec{}, s, a, a, c);
  CHECK(has(text, support::on_host<Exec> ? "* host.mine.f32." : "* cuda.simt.mine.f32."));
}

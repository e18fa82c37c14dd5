// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels from text for GPUs: the PTX that is made of a text, where there need be no GPU; and what only GPUs do with it.
#include "ptx.hpp"

#include <src/runtime/parameters.hpp>
#include <src/runtime/text.hpp>

#include <algorithm>
#include <string>
#include <vector>

using rigel::Scalar, rigel::runtime::accumulator_of, rigel::runtime::Semiring, rigel::runtime::Texts;
using texts::compiles_for_gpus, texts::count, texts::has, texts::Ptx;

namespace {

// Numbers of kernels in the bitcode's table: the first tile for texts that call functions, for epilogues from text, and for two fields.
constexpr std::size_t calling_f32 = 45, calling_f64 = 16, with_epilogue_f32 = 27;
// Those of powers of one exponent: the large tile, with operands in vectors, and the small one for whole tiles.
constexpr std::size_t powers_f32 = 88, whole_powers_f32 = 102;
constexpr std::size_t two_fields(Scalar element) {
  switch (element) {
    case Scalar::f32: return 57;
    case Scalar::i32: return 40;
    case Scalar::f64:
    case Scalar::i64: return 28;
    default: return 38;
  }
}
// The kernels of whole tiles: the first, how many there are before those of two fields, and the general kernel of the first one's tile and
// operands.
struct Whole {
  std::size_t first, many, general;
};
constexpr Whole whole_tiles(Scalar element) {
  switch (element) {
    case Scalar::f32: return {81, 4, 6};
    case Scalar::i32: return {64, 2, 5};
    case Scalar::f64:
    case Scalar::i64: return {46, 2, 1};
    default: return {62, 2, 3};
  }
}
// The first kernel for a few rows, and how many there are without an epilogue from text.
constexpr std::pair<std::size_t, std::size_t> few_rows(Scalar element) {
  switch (element) {
    case Scalar::f32: return {20, 6};
    case Scalar::i32: return {14, 2};
    case Scalar::f64:
    case Scalar::i64: return {6, 2};
    default: return {10, 4};
  }
}

// The one in which threads share an output's K comes after them.
constexpr std::size_t shared_k(Scalar element) { return few_rows(element).first + few_rows(element).second; }

// What the compiler makes of a text for one of its kernels, with what stores results: an epilogue or nothing.
Ptx ptx_of(const Texts& texts, Scalar accumulator, const char* level, std::size_t kernel, std::uint64_t layout = 0,
           const std::string& store = "") {
  const std::string source = rigel::runtime::source_of(rigel::runtime::parse(texts, accumulator), accumulator, 0);
  return texts::ptx_of_source(source, rigel::name(texts.element), level, kernel, layout, store);
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
    const Ptx ptx = ptx_of(own, type, "sm_80", type == Scalar::f32 ? calling_f32 : calling_f64);
    CHECK_MESSAGE(!ptx.failed, ptx.messages);
    CHECK(!has(ptx.text, ".extern .func"));
    CHECK(!has(ptx.text, "__nvvm_reflect"));
  }
}

TEST_CASE("text: powers of one exponent by products, a table and calls; of a known one by what it takes alone") {
  if (!compiles_for_gpus()) return;
  const auto of = [](const std::string& multiply, std::size_t kernel) {
    const Texts texts{.multiply = multiply, .add = "x + y", .hyperparameters = {{"p", 3}}};
    const Ptx ptx = ptx_of(texts, Scalar::f32, "sm_80", kernel);
    CHECK_MESSAGE(!ptx.failed, ptx.messages);
    CHECK(!has(ptx.text, ".extern .func"));
    return ptx.text;
  };
  // A thread of the large tile has 64 outputs.
  const std::string any = of("power(abs(a - b), p)", powers_f32);
  CHECK(count(any, "sub.rn.f32") >= 6 * 64);
  CHECK(count(any, "fma.rn.f32") >= 3 * 64 + 5 * 64);  // a product is fused with the sum, and a table's term has five
  CHECK(count(any, "call.uni (retval0)") >= 64);
  CHECK(count(any, "lg2.approx") == 1);  // in the function that is called
  const std::string by_table = of("power(abs(a - b), 1.3)", powers_f32);
  CHECK(count(by_table, "fma.rn.f32") >= 5 * 64);
  CHECK(!has(by_table, "lg2.approx"));
  CHECK(!has(by_table, "call.uni (retval0)"));
  const std::string root = of("power(abs(a - b), 1.5)", whole_powers_f32);
  CHECK(count(root, "sqrt.approx.ftz.f32") == 16);
  CHECK(count(root, "fma.rn.f32") == 16);
  CHECK(!has(root, "fma.rn.f64"));  // no table is filled
  // A known whole exponent has the tiles of short texts.
  const rigel::runtime::Parsed cubes =
      rigel::runtime::parse({.multiply = "power(abs(a - b), 3) + power(abs(a), 2.0f)", .add = "x + y"}, Scalar::f32);
  CHECK(cubes.long_operations_on_gpus() == 0);
  const std::string cube = of("power(abs(a - b), 3)", 0);
  CHECK(count(cube, "fma.rn.f32") == count(cube, "sub.rn.f32"));
  CHECK(count(cube, "mul.f32") == count(cube, "sub.rn.f32"));
  for (const char* other : {"power(abs(a), p) * power(abs(b), 1.3)", "power(abs(a), p + 1)", "power(abs(a), p) + exp(b)"}) {
    CAPTURE(other);
    const rigel::runtime::Parsed parsed =
        rigel::runtime::parse({.multiply = other, .add = "x + y", .hyperparameters = {{"p", 3}}}, Scalar::f32);
    CHECK(parsed.exponent.code.empty());
    CHECK(parsed.long_operations_on_gpus() > 0);
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

TEST_CASE("text: accumulators of fields, k and results of other types in PTX") {
  if (!compiles_for_gpus()) return;
  for (const Scalar element : {Scalar::f32, Scalar::f64, Scalar::i32, Scalar::i64, Scalar::f16, Scalar::bf16}) {
    CAPTURE(rigel::name(element));
    const bool wide = element == Scalar::f64 || element == Scalar::i64;
    const Scalar number = accumulator_of(element), index = wide ? Scalar::i64 : Scalar::i32;
    const Texts text{.element = element,
                     .accumulator = {{"value", number}, {"index", index}},
                     .multiply = "{a + b, k}",
                     .add = "y.value < x.value ? y : x",
                     .identity = "{infinity, -1}",
                     .result = "x.index",
                     .result_type = index};
    const std::string store = rigel::runtime::store_of_results(wide ? rigel::runtime::Type::i64 : rigel::runtime::Type::i32);
    for (std::size_t kernel = two_fields(element); kernel < two_fields(element) + 6; ++kernel) {
      const Ptx ptx = ptx_of(text, number, "sm_80", kernel, 0, store);
      CHECK_MESSAGE(!ptx.failed, ptx.messages);
      CHECK(!has(ptx.text, ".extern .func"));
      CHECK(!has(ptx.text, ".local"));  // accumulators are in registers
      // ptxas would call a function.
      for (const char* division : {"div.s64", "div.u64", "rem.s64", "rem.u64"}) CHECK(!has(ptx.text, division));
    }
  }
}

TEST_CASE("text: PTX selects fields by the comparison of the text") {
  if (!compiles_for_gpus()) return;
  const Texts text{.accumulator = {{"value", Scalar::f32}, {"index", Scalar::i32}},
                   .multiply = "{a + b, k}",
                   .add = "y.value < x.value ? y : x",
                   .identity = "{infinity, -1}",
                   .result = "x.value"};
  // The large tile: 64 outputs of a thread.
  const Ptx ptx = ptx_of(text, Scalar::f32, "sm_90", two_fields(Scalar::f32));
  REQUIRE_MESSAGE(!ptx.failed, ptx.messages);
  CHECK(count(ptx.text, "setp.lt.f32") == 64);
  CHECK(!has(ptx.text, "setp.geu.f32"));
}

TEST_CASE("text: a few rows against a large matrix in PTX") {
  if (!compiles_for_gpus()) return;
  for (const Scalar element : {Scalar::f32, Scalar::f64, Scalar::i32, Scalar::i64, Scalar::f16, Scalar::bf16}) {
    CAPTURE(rigel::name(element));
    const Scalar number = accumulator_of(element);
    const Texts text{.element = element, .multiply = "abs(a - b) + k", .add = "x + y"};
    const auto [first, many] = few_rows(element);
    for (std::size_t kernel = first; kernel < first + many; ++kernel) {
      const Ptx ptx = ptx_of(text, number, "sm_80", kernel);
      CHECK_MESSAGE(!ptx.failed, ptx.messages);
      CHECK(has(ptx.text, "cp.async.cg.shared.global"));  // a ring in dynamic shared memory
      CHECK(has(ptx.text, ".extern .shared"));
      CHECK(!has(ptx.text, ".extern .func"));
    }
  }
}

TEST_CASE("text: threads that share an output's K in PTX") {
  if (!compiles_for_gpus()) return;
  for (const Scalar element : {Scalar::f32, Scalar::f64, Scalar::i32, Scalar::i64, Scalar::f16, Scalar::bf16}) {
    CAPTURE(rigel::name(element));
    const Scalar number = accumulator_of(element);
    const Ptx ptx =
        ptx_of({.element = element, .multiply = "abs(a - b)", .add = "x + y"}, number, "sm_80", shared_k(element));
    CHECK_MESSAGE(!ptx.failed, ptx.messages);
    CHECK(has(ptx.text, "shfl.sync.bfly"));
    CHECK(!has(ptx.text, ".extern .func"));
    CHECK(!has(ptx.text, ".local"));
  }
  // Two rows by four k, and then what joins accumulators.
  const Ptx least = ptx_of({.multiply = "a + b", .add = "min(x, y)"}, Scalar::f32, "sm_80", shared_k(Scalar::f32));
  CHECK(count(least.text, "min.NaN.f32") > 8);
}

TEST_CASE("text: kernels of whole tiles are shorter than the general ones, in PTX") {
  if (!compiles_for_gpus()) return;
  for (const Scalar element : {Scalar::f32, Scalar::f64, Scalar::i32, Scalar::i64, Scalar::f16, Scalar::bf16}) {
    CAPTURE(rigel::name(element));
    const Scalar number = accumulator_of(element);
    const Texts text{.element = element, .multiply = "abs(a - b)", .add = "x + y"};
    const auto [first, many, general] = whole_tiles(element);
    const auto instructions = [](const Ptx& ptx) { return count(ptx.text, ";\n"); };
    const Ptx all = ptx_of(text, number, "sm_90", general);
    CHECK_MESSAGE(!all.failed, all.messages);
    for (std::size_t kernel = first; kernel < first + many; ++kernel) {
      const Ptx ptx = ptx_of(text, number, "sm_90", kernel);
      CHECK_MESSAGE(!ptx.failed, ptx.messages);
      CHECK(!has(ptx.text, ".local"));
      CHECK(has(ptx.text, "st.global.v"));  // in vectors
      if (kernel == first) CHECK(10 * instructions(ptx) < 9 * instructions(all));
    }
    const bool wide = element == Scalar::f64 || element == Scalar::i64;
    const Texts two{.element = element,
                    .accumulator = {{"value", number}, {"index", wide ? Scalar::i64 : Scalar::i32}},
                    .multiply = "{a + b, k}",
                    .add = "y.value < x.value ? y : x",
                    .identity = "{infinity, -1}",
                    .result = "x.value"};
    const Ptx ptx = ptx_of(two, number, "sm_90", first + many),
              longer = ptx_of(two, number, "sm_90", two_fields(element) + 1);
    CHECK_MESSAGE(!ptx.failed, ptx.messages);
    CHECK(has(ptx.text, "st.global.v"));
    CHECK(10 * instructions(ptx) < 9 * instructions(longer));
  }
}

TEST_CASE("text: which sums may be cut along K") {
  using enum rigel::detail::TextJoin;
  const auto join_of = [](const Texts& texts) { return rigel::runtime::parse(texts, Scalar::f32).join; };
  CHECK(join_of({.multiply = "a * b", .add = "x + y"}) == sum);
  CHECK(join_of({.multiply = "a * b", .add = "y + x", .identity = "0", .step = "fma(a, b, x)"}) == sum);
  CHECK(join_of({.multiply = "a + b", .add = "min(x, y)"}) == minimum);
  CHECK(join_of({.multiply = "a + b", .add = "max( y, x )", .identity = "-infinity"}) == maximum);
  CHECK(join_of({.multiply = "a + b", .add = "max(x, y)", .identity = "0"}) == none);
  CHECK(join_of({.multiply = "a + k", .add = "x + y"}) == none);
  CHECK(join_of({.multiply = "a * b", .add = "x + y", .result = "x + 1"}) == none);
  CHECK(join_of({.multiply = "a * b", .add = "x + y + 0", .identity = "0"}) == none);
  CHECK(join_of({.accumulator = {{"u", Scalar::f32}, {"v", Scalar::f32}},
                 .multiply = "{a, b}",
                 .add = "{x.u + y.u, x.v + y.v}",
                 .identity = "{0, 0}",
                 .result = "x.u"}) == none);
}

TEST_CASE("text: an epilogue in PTX, for elements of each type") {
  if (!compiles_for_gpus()) return;
  using rigel::runtime::Epilogue;
  const Texts sum{.multiply = "abs(a - b)", .add = "x + y"};
  for (const auto& [element, stored] : {std::pair{Scalar::f32, "st.global.b32"},
                                        {Scalar::f64, "st.global.b64"},
                                        {Scalar::i32, "st.global.b32"},
                                        {Scalar::i64, "st.global.b64"},
                                        {Scalar::f16, "st.global.b16"},
                                        {Scalar::bf16, "st.global.b16"}}) {
    CAPTURE(rigel::name(element));
    const bool whole = element == Scalar::i32 || element == Scalar::i64;
    const Epilogue e(
        {.result = element, .body = whole ? "batch + int(x * p + m)" : "x * p + m * n", .hyperparameters = {{"p", 2}}});
    const Ptx ptx = ptx_of(sum, Scalar::f32, "sm_80", with_epilogue_f32, 0, e.source().text);
    CHECK_MESSAGE(!ptx.failed, ptx.messages);
    CHECK(!has(ptx.text, ".extern .func"));
    CHECK(has(ptx.text, stored));
    CHECK(count(ptx.text, "fma.rn.f32") == 0);
  }
  // One that is missing, and one that does not compile.
  CHECK(has(ptx_of(sum, Scalar::f32, "sm_80", with_epilogue_f32).text, ".extern .func rigel_text_store"));
  CHECK(has(ptx_of(sum, Scalar::f32, "sm_80", with_epilogue_f32, 0, "nothing").messages, "text.cpp:1:"));
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

TEST_CASE("text: a call whose last slice of K lacks its kernel enqueues nothing while a stream is captured") {
  if (!compiles_for_gpus()) return;
  const Semiring fresh({.name = "sliced", .multiply = "abs(a - b) * 1.6875", .add = "x + y"});
  // All slices of the first K are whole slabs. One of the second is not: its elements come one by one, by another kernel.
  const texts::Matrix<float> a("a", 64, 4096), longer("longer", 64, 4100), c("c", 64, 64);
  texts::fill(a, 1);
  texts::fill(longer, 2);
  const auto transposed = [](const texts::Matrix<float>& of) {
    return Kokkos::View<float**, Kokkos::LayoutLeft, texts::Matrix<float>::memory_space>(of.data(), of.extent(1),
                                                                                         of.extent(0));
  };
  const auto from = transposed(a), longer_from = transposed(longer);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    const Kokkos::Cuda exec(stream);
    const std::string kernel = texts::kernel_of<Kokkos::Cuda>(fresh, "split_k");
    rigel::ContractOptions by{.kernel = kernel};
    rigel::contract(exec, fresh, a, from, c, by);
    exec.fence();
    const std::size_t bytes = rigel::workspace_size(exec, fresh, longer, longer_from, c, {}, by);
    constexpr std::size_t alignment = 256;  // a view's memory has less
    const Kokkos::View<std::byte*, Kokkos::CudaSpace> memory("workspace", bytes + alignment);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    by.workspace = {.data = memory.data() + (alignment - address % alignment) % alignment, .bytes = bytes};
    exec.fence();
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    const auto refused = support::caught([&] { rigel::contract(exec, fresh, longer, longer_from, c, by); });
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    CHECK(refused.code == rigel::Code::unsupported);
    CHECK(has(refused.message, "'sliced'"));
    std::size_t nodes = 1;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
    CHECK(nodes == 0);
    cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
}

TEST_CASE("text: a replayed graph sees what views hold then, in memory of a GPU, of semirings and of epilogues") {
  if (!compiles_for_gpus()) return;
  using Device = Kokkos::View<float*, Kokkos::CudaSpace>;
  const Device p("p", 2), q("q", 1);
  Semiring text({.multiply = "a * b * p", .add = "x + y", .hyperparameters = {{"p", 1}}});
  rigel::runtime::Epilogue e({.body = "x + 100 * batch + q", .hyperparameters = {{"q", 0}}});
  text.set("p", p);
  e.set("q", q);
  CHECK(has(support::caught([&] { static_cast<void>(e.get("q")); }).message, "is in memory that the host cannot read"));
  const texts::Batch<float> a("a", 2, 70, 9), b("b", 2, 9, 33), c("c", 2, 70, 33);
  Kokkos::deep_copy(a, 1.f);
  Kokkos::deep_copy(b, 1.f);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  {
    const Kokkos::Cuda exec(stream);
    const std::size_t bytes = rigel::workspace_size(exec, text, a, b, c, e);
    CHECK(bytes >= 3 * 16 * sizeof(float));
    constexpr std::size_t alignment = 256;  // a view's memory has less
    const Kokkos::View<std::byte*, Kokkos::CudaSpace> memory("workspace", bytes + alignment);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const rigel::ContractOptions options{
        .workspace = {.data = memory.data() + (alignment - address % alignment) % alignment, .bytes = bytes}};
    rigel::contract(exec, text, a, b, c, e, options);  // compiles
    exec.fence();
    const auto before = rigel::runtime::statistics();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    rigel::contract(exec, text, a, b, c, e, options);
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
    for (const float value : {3.f, -5.f}) {
      const auto at_p = Kokkos::create_mirror_view(p), at_q = Kokkos::create_mirror_view(q);
      at_p(0) = value, at_p(1) = 2 * value, at_q(0) = value - 1;
      Kokkos::deep_copy(p, at_p);
      Kokkos::deep_copy(q, at_q);
      REQUIRE(cudaGraphLaunch(ready, stream) == cudaSuccess);
      exec.fence();
      int wrong = 0;
      for (int l = 0; l < 2; ++l)
        for (int i = 0; i < 70; ++i)
          for (int j = 0; j < 33; ++j) wrong += c(l, i, j) != 9 * (l + 1) * value + static_cast<float>(100 * l) + value - 1;
      CHECK(wrong == 0);
    }
    CHECK(rigel::runtime::statistics().compiled == before.compiled);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
}

TEST_CASE("text: with an epilogue, compile() leaves nothing to a captured call; memory of the host is refused") {
  if (!compiles_for_gpus()) return;
  Semiring text({.name = "mine",
                 .accumulator = {{"u", Scalar::f32}, {"v", Scalar::f32}},
                 .multiply = "{a, b * p}",
                 .add = "{x.u + y.u, x.v + y.v}",
                 .identity = "{0, 0}",
                 .result = "x.u + x.v",
                 .hyperparameters = {{"p", 1}}});
  const rigel::runtime::Epilogue e({.name = "own", .body = "x * 1.375 + m"});
  const texts::Matrix<float> a("a", 8, 8), c("c", 8, 8);
  Kokkos::deep_copy(a, 1.f);
  const Kokkos::Cuda exec;
  text.compile(exec, e);
  const auto before = rigel::runtime::statistics();
  rigel::contract(exec, text, a, a, c, e);
  exec.fence();
  CHECK(c(3, 2) == 16 * 1.375f + 3);
  const auto after = rigel::runtime::statistics();
  CHECK(after.compiled + after.from_disk + after.from_memory == before.compiled + before.from_disk + before.from_memory);
  const support::Caught alone = support::caught([&] { e.compile<Kokkos::Cuda>(); });
  CHECK(alone.code == rigel::Code::unsupported);
  CHECK(alone.lacks({"'own'", "expected Semiring::compile(exec, epilogue)"}) == "");
  text.set("p", Kokkos::View<float, Kokkos::HostSpace>("p"));
  const support::Caught refused = support::caught([&] { rigel::contract(exec, text, a, a, c); });
  CHECK(refused.code == rigel::Code::invalid_argument);
  CHECK(refused.lacks({"hyperparameter 'p' of 'mine' is in memory that space cuda cannot read"}) == "");
}
#endif

TEST_CASE_TEMPLATE("text: explain() names the kernels of a space", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile()) return;
  const Semiring s({.name = "mine", .multiply = "a * b", .add = "x + y"});
  const texts::Matrix<float> a("a", 64, 64), c("c", 64, 64);
  const std::string text = rigel::explain(Exec{}, s, a, a, c);
  CHECK(has(text, support::on_host<Exec> ? "* host.mine.f32." : "* cuda.simt.mine.f32."));
}

TEST_CASE_TEMPLATE("text: kernels for a few rows and for slices of K say what they do not take", Exec, RIGEL_TEST_SPACES) {
  if (!texts::can_compile() || support::on_host<Exec>) return;
  const Semiring plain({.multiply = "a - b", .add = "x + y"}), minimum({.multiply = "a + b", .add = "min(x, y)"}),
      with_result({.multiply = "a * b", .add = "x + y", .result = "x / 2"});
  const texts::Matrix<float> a("a", 300, 64), b("b", 64, 4), c("c", 300, 4);
  const std::string skinny = texts::kernel_of<Exec>(plain, "skinny"), split = texts::kernel_of<Exec>(plain, "split_k");
  const auto refused =
      support::caught([&] { texts::contract<Exec>(plain, a, b, c, rigel::ContractOptions{.kernel = skinny}); });
  CHECK(refused.code == rigel::Code::unsupported);
  CHECK(refused.lacks({"C has more rows than columns", "commutative"}) == "");
  const rigel::runtime::Epilogue e({.body = "x"});
  const auto without =
      support::caught([&] { texts::contract<Exec>(plain, a, b, c, e, rigel::ContractOptions{.kernel = split}); });
  CHECK(without.lacks({"the epilogue is from text"}) == "");
  const auto short_k = support::caught([&] {
    texts::contract<Exec>(plain, a, b, c, rigel::ContractOptions{.kernel = texts::kernel_of<Exec>(plain, "small_split_k")});
  });
  CHECK(short_k.lacks({"K is too short for several slices"}) == "");
  for (const char* variant : {"split_k", "small_split_k", "narrow_split_k"}) {
    CHECK(texts::kernel_of<Exec>(with_result, variant).empty());
    // Minima have the bits of one chain, sums of floats do not.
    const auto promises = [&](const Semiring& s) {
      for (const auto& kernel : s.kernels(rigel::detail::space_of<Exec>))
        if (kernel.info.variant == variant) return kernel.info.promises;
      return rigel::Promise::none;
    };
    CHECK(covers(promises(minimum), rigel::Promise::reference_bits));
    CHECK(!covers(promises(plain), rigel::Promise::reference_bits));
  }
}

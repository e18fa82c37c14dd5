// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients from text that are refused, and what explains a call.
#include "texts.hpp"

#include <rigel/runtime_gradient.hpp>

#include <string>

using rigel::Scalar, rigel::runtime::Derivative, rigel::runtime::DerivativeTexts;
using texts::Host;

namespace {

// The text must be refused at that place.
void refuses(const DerivativeTexts& texts, const char* function, const char* place, const char* says) {
  const auto caught = support::caught([&] { Derivative derivative(texts); });
  CHECK(caught.code == rigel::Code::invalid_argument);
  const std::string begin = std::string("runtime::Derivative: ") + function + ", " + place + ": ";
  CHECK(caught.message.starts_with(begin));
  CHECK(caught.lacks({says, "^"}) == "");
}
void refuses(const DerivativeTexts& texts, const char* says) {
  const auto caught = support::caught([&] { Derivative derivative(texts); });
  CHECK(caught.code == rigel::Code::invalid_argument);
  CHECK(caught.lacks({"runtime::Derivative: ", says}) == "");
}

}  // namespace

TEST_CASE("text gradient: texts that are refused, with the place") {
  refuses({}, "multiply", "line 1, column 1", "expected an expression");
  refuses({.multiply = "a * (d -\n b - k)"}, "multiply", "line 2, column 6", "'k' is not known here");
  refuses({.multiply = "a * (d - b"}, "multiply", "line 1, column 11", "expected ')'");
  refuses({.multiply = "a + x"}, "multiply", "line 1, column 5", "'x' is not known here, expected");
  refuses({.multiply = "a", .accumulate = "x + c * a"}, "accumulate", "line 1, column 9", "'a' is not known here");
  refuses({.multiply = "a", .accumulate = "x + c * v", .add = "x + v", .identity = "0"}, "add", "line 1, column 5",
          "'v' is not known here");
  refuses({.multiply = "a", .accumulate = "x + c * v"}, "identity", "line 1, column 1",
          "it may be empty only if add is `x + y`");
  refuses({.multiply = "a", .identity = "a"}, "identity", "line 1, column 1", "'a' is not known here");
  refuses({.multiply = "a", .result = "c"}, "result", "line 1, column 1", "'c' is not known here");
  refuses({.multiply = "a", .result = "system(x)"}, "result", "line 1, column 1", "is no function");
  refuses({.multiply = "a + {a, b}"}, "multiply", "line 1, column 1", "'a' cannot be assigned");
}

TEST_CASE("text gradient: types, names and hyperparameters that are refused") {
  refuses({.element = Scalar::u8, .multiply = "a"}, "the element type is u8, expected f32, f64, i32, i64, f16 or bf16");
  refuses({.element = Scalar::f16, .accumulator = Scalar::f16, .multiply = "a"},
          "the accumulator type is f16, expected f32 for elements of f16");
  refuses({.name = "no name", .multiply = "a"}, "the name 'no name' is none");
  for (const char* name : {"a", "b", "c", "d", "v", "x", "y", "abs", "float", "1st", ""})
    refuses({.multiply = "a", .hyperparameters = {{name, 1}}}, "hyperparameter 1 is called");
  refuses({.multiply = "a * p", .hyperparameters = {{"p", 1}, {"p", 2}}}, "two hyperparameters are called 'p'");
  refuses({.element = Scalar::i32, .multiply = "a * p", .hyperparameters = {{"p", 0.5}}}, "'p' of 'text' cannot be 0.5");
  Derivative text({.name = "mine", .multiply = "a * p", .hyperparameters = {{"p", 1}}});
  const auto unknown = support::caught([&] { text.set("q", 1); });
  CHECK(unknown.lacks({"runtime::Derivative: 'mine' has no hyperparameter 'q', expected one of p"}) == "");
  CHECK(support::caught([&] { static_cast<void>(text.get("q")); }).code == rigel::Code::invalid_argument);
  const Kokkos::View<double, texts::Memory> wide("wide");
  CHECK(support::caught([&] {
          text.set("p", wide);
        }).lacks({"hyperparameter 'p' of 'mine' holds elements of type f64, expected f32"}) == "");
  CHECK(text.get("p") == 1);
  CHECK(text.name() == "mine");
  CHECK(Derivative({.element = Scalar::bf16, .multiply = "a"}).accumulator() == Scalar::f32);
}

TEST_CASE("text gradient: calls that are refused leave Out as it was, and name what they were given") {
  if (!texts::can_compile()) return;
  const Derivative text({.name = "mine", .multiply = "a * (d - b)"});
  const texts::Matrix<float> a("a", 3, 5), b("b", 4, 3), c("c", 2, 3), d("d", 4, 5);
  const texts::Batch<float> out("out", 2, 4, 5);
  Kokkos::deep_copy(out, 7.f);
  const auto says = [&](const auto& call, rigel::Code code, std::initializer_list<const char*> words) {
    const auto caught = support::caught(call);
    CHECK(caught.code == code);
    CHECK(caught.lacks(words) == "");
    CHECK(out(1, 3, 4) == 7);
  };
  texts::for_each_space([&]<class Exec>() {
    const Exec exec;
    constexpr auto invalid = rigel::Code::invalid_argument;
    says([&] { rigel::contract_gradient(exec, text, texts::Matrix<double>("wide", 3, 5), b, c, d, out); }, invalid,
         {"contract_gradient: A ('wide') holds elements of type f64, expected f32, that of the derivative 'mine'"});
    says([&] { rigel::contract_gradient(exec, text, a, b, c, d, texts::Batch<double>("wide", 2, 4, 5)); }, invalid,
         {"Out ('wide') holds elements of type f64, expected f32, that of the accumulators of the derivative 'mine'"});
    says([&] { rigel::contract_gradient(exec, text, a, b, c, texts::Matrix<float>("d", 4, 6), out); }, invalid,
         {"D 'd' is 4x6, expected 4x5 (N x M)"});
    says([&] { rigel::contract_gradient(exec, text, a, b, texts::Matrix<float>("c", 2, 4), d, out); }, invalid,
         {"C 'c' is 2x4, expected 2x3 (O x K)"});
    says(
        [&] {
          const texts::Matrix<float> inside(out.data(), 4, 5);
          rigel::contract_gradient(exec, text, a, b, c, inside, out);
        },
        invalid, {"overlaps"});
    says([&] { rigel::contract_gradient(exec, text, a, b, c, d, out, {.kernel = "none"}); }, rigel::Code::not_found,
         {"none"});
    exec.fence();
    // Nothing to compute, nothing wrong.
    rigel::contract_gradient(exec, text, a, texts::Matrix<float>("b", 0, 3), c, texts::Matrix<float>("d", 0, 5),
                             texts::Batch<float>("out", 2, 0, 5));
    exec.fence();
  });
}

TEST_CASE("text gradient: a call is explained, and knows its workspace") {
  if (!texts::can_compile()) return;
  const Derivative text({.name = "mine", .multiply = "a * (d - b)"});
  const texts::Matrix<float> a("a", 4000, 5), b("b", 4, 4000), c("c", 2, 4000), d("d", 4, 5);
  const texts::Batch<float> out("out", 2, 4, 5);
  texts::for_each_space([&]<class Exec>() {
    const Exec exec;
    const std::string explained = rigel::explain_gradient(exec, text, a, b, c, d, out);
    const bool on_gpu = rigel::detail::space_of<Exec> == rigel::Space::cuda;
    CHECK(explained.find("mine f32, 2x4x5, k 4000") != explained.npos);
    CHECK(explained.find(on_gpu ? "cuda.gradient.mine.f32.split_k" : "host.mine.f32.v") != explained.npos);
    const rigel::GradientOptions options{.kernel = on_gpu ? "cuda.gradient.mine.f32.split_k" : "host"};
    CHECK(rigel::gradient_workspace_size(exec, text, a, b, c, d, out, options) > 0);
    rigel::contract_gradient(exec, text, a, b, c, d, out, options);
    exec.fence();
  });
  // Equal texts of other names and blanks share code.
  const auto before = rigel::runtime::statistics();
  const Derivative same({.name = "other", .multiply = "a*(d  -  b)  // as above"});
  same.compile<Host>();
  CHECK(rigel::runtime::statistics().compiled == before.compiled);
  CHECK(rigel::runtime::statistics().from_memory == before.from_memory + 1);
}

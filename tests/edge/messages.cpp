// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every refusal of contract() names the argument, its label, its extents and what was expected, and leaves C untouched.
#include <rigel/contract.hpp>

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/spaces.hpp>

#ifdef KOKKOS_ENABLE_CUDA
#include <rigel/backends/cuda/runtime.hpp>
#endif

using rigel::Code;
using support::batch, support::matrix;

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
const rigel::plus_times<float> s;
const rigel::epilogue::Program none;

struct Identity {
  template <class T>
  KOKKOS_FUNCTION T operator()(T v, std::int64_t, std::int64_t, std::int64_t) const {
    return v;
  }
};

// The error of a call with a C of sevens, which it must leave untouched.
template <class S, class A, class B, class C>
support::Caught refusal(const S& semiring, const A& a, const B& b, const C& c, const rigel::ContractOptions& options = {}) {
  const std::vector<double> sevens(c.size(), 7);
  support::fill(c, sevens);
  const auto error = support::caught([&] { rigel::contract(Exec{}, semiring, a, b, c, none, options); });
  CHECK(support::values(c) == sevens);
  return error;
}

}  // namespace

TEST_CASE("messages: an epilogue whose results C cannot hold") {
  const auto a = matrix<std::int8_t, Exec>(2, 3, {}, "left"), b = matrix<std::int8_t, Exec>(3, 2, {}, "right");
  const auto c = matrix<std::int16_t, Exec>(2, 2, {7, 7, 7, 7}, "out");
  const auto refused = [&](const rigel::epilogue::Program& program) {
    const auto e = support::caught([&] { rigel::contract(Exec{}, rigel::plus_times<std::int8_t>{}, a, b, c, program); });
    CHECK(support::values(c) == std::vector<double>(4, 7));
    return e;
  };
  for (const auto& program : {rigel::epilogue::scale(0.5), rigel::epilogue::any_bit() | rigel::epilogue::scale(2),
                              rigel::epilogue::parity() | rigel::epilogue::any_bit()}) {
    const auto e = refused(program);
    CHECK(e.code == Code::unsupported);
    CHECK(e.lacks({"contract: ", "C 'out' 2x2 of i16", "expected f16, bf16, f32 or f64", "or i8, u8 or i32"}) == "");
  }
  const auto e = refused(rigel::epilogue::any_bit() | rigel::epilogue::parity());
  CHECK(e.code == Code::invalid_argument);
  CHECK(e.lacks({"contract: ", "step 2 is parity(), expected as the first one, of integers"}) == "");
  const auto floats = support::caught([&] {
    rigel::contract(Exec{}, s, matrix<float, Exec>(2, 3), matrix<float, Exec>(3, 2), matrix<float, Exec>(2, 2),
                    rigel::epilogue::parity());
  });
  CHECK(floats.code == Code::invalid_argument);
}

TEST_CASE("messages: extents that do not fit") {
  const auto a = matrix<float, Exec>(4, 6, {}, "left"), b = matrix<float, Exec>(6, 5, {}, "right");
  const auto c = matrix<float, Exec>(4, 5, {}, "out");
  SUBCASE("rows of B") {
    const auto e = refusal(s, a, matrix<float, Exec>(7, 5, {}, "weights"), c);
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"contract: ", "B 'weights'", "7x5", "expected 6 rows", "to match A 'left' 4x6"}) == "");
  }
  SUBCASE("rows of C") {
    const auto e = refusal(s, a, b, matrix<float, Exec>(3, 5, {}, "result"));
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"contract: ", "C 'result'", "3x5", "expected 4 rows", "to match A 'left' 4x6"}) == "");
  }
  SUBCASE("columns of C") {
    const auto e = refusal(s, a, b, matrix<float, Exec>(4, 9, {}, "result"));
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"contract: ", "C 'result'", "4x9", "expected 5 columns", "to match B 'right' 6x5"}) == "");
  }
  SUBCASE("a transposed view is named with the extents that it is read with") {
    const auto e = refusal(s, rigel::transposed(a), b, c);
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"B 'right'", "6x5", "expected 4 rows", "A 'left' 6x4"}) == "");
  }
  SUBCASE("even where nothing would be written") {
    const auto e =
        refusal(s, matrix<float, Exec>(0, 6, {}, "left"), matrix<float, Exec>(5, 5, {}, "right"), matrix<float, Exec>(0, 5));
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"B 'right'", "5x5", "expected 6 rows"}) == "");
  }
}

TEST_CASE("messages: batches") {
  const auto a = batch<float, Exec>(3, 2, 2, {}, "left"), b = batch<float, Exec>(3, 2, 2, {}, "right");
  SUBCASE("of A") {
    const auto e = refusal(s, batch<float, Exec>(2, 2, 2, {}, "few"), b, batch<float, Exec>(3, 2, 2, {}, "out"));
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"contract: ", "A 'few'", "2x2x2", "expected 3 batches or one", "C 'out' 3x2x2"}) == "");
  }
  SUBCASE("of B") {
    const auto e = refusal(s, a, batch<float, Exec>(4, 2, 2, {}, "many"), batch<float, Exec>(3, 2, 2, {}, "out"));
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"contract: ", "B 'many'", "4x2x2", "expected 3 batches or one", "C 'out' 3x2x2"}) == "");
  }
  SUBCASE("C does not broadcast") {
    const auto e = refusal(s, a, b, matrix<float, Exec>(2, 2, {}, "out"));
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"A 'left'", "3x2x2", "expected 1 batches or one", "C 'out' 2x2"}) == "");
  }
  SUBCASE("of the semirings") {
    using S = rigel::lp<float>;
    const Kokkos::View<S*, Exec::memory_space> semirings("metrics", 2);
    const auto e = refusal(semirings, a, b, batch<float, Exec>(3, 2, 2, {}, "out"));
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"contract: ", "'metrics'", "2", "expected 3", "one for each batch of C"}) == "");
  }
}

TEST_CASE("messages: accumulate needs a number to start from") {
  using S = rigel::with_argument<rigel::min_plus<float>>;
  struct Value {
    KOKKOS_FUNCTION float operator()(rigel::argument<float> x, std::int64_t, std::int64_t, std::int64_t) const {
      return x.value;
    }
  };
  const auto a = matrix<float, Exec>(1, 1), b = matrix<float, Exec>(1, 1), c = matrix<float, Exec>(1, 1, {7});
  const auto e = support::caught([&] { rigel::contract(Exec{}, S{}, a, b, c, Value{}, {.accumulate = true}); });
  CHECK(e.code == Code::invalid_argument);
  CHECK(e.lacks({"contract: accumulate is not defined", "with_argument", "struct"}) == "");
  CHECK(support::values(c) == std::vector<double>{7});
}

TEST_CASE("messages: the view of epilogue::arguments()") {
  const rigel::with_argument<rigel::min_plus<std::int32_t>> least;
  const auto a = batch<std::int32_t, Exec>(2, 3, 5, {}, "left"), b = batch<std::int32_t, Exec>(2, 5, 4, {}, "right"),
             c = batch<std::int32_t, Exec>(2, 3, 4, std::vector<double>(24, 7), "out");
  const auto refused = [&](const auto& view, const rigel::ContractOptions& options = {}) {
    const auto e =
        support::caught([&] { rigel::contract(Exec{}, least, a, b, c, rigel::epilogue::arguments(view), options); });
    CHECK(e.code == Code::invalid_argument);
    CHECK(support::values(c) == std::vector<double>(24, 7));
    return e;
  };
  using Space = Exec::memory_space;
  using Unmanaged = Kokkos::View<std::int32_t***, Kokkos::LayoutStride, Space, Kokkos::MemoryUnmanaged>;
  const auto at = [](std::int32_t* data, std::size_t column = 1) {
    return Unmanaged(data, Kokkos::LayoutStride(2, 12, 3, 4, 4, column));
  };
  SUBCASE("extents") {
    const char* name = "contract: the view of arguments() 'winners' ";
    CHECK(refused(batch<int, Exec>(2, 4, 3, {}, "winners")).lacks({name, "2x4x3, expected the extents of C 'out' 2x3x4"}) ==
          "");
    CHECK(refused(batch<int, Exec>(1, 3, 4, {}, "winners")).lacks({name, "3x4, expected the extents of C 'out' 2x3x4"}) ==
          "");
    CHECK(refused(matrix<int, Exec>(3, 4, {}, "winners")).lacks({name, "3x4, expected the extents of C 'out' 2x3x4"}) == "");
    // The batch index is in the same position as C's.
    CHECK(refused(batch<int, Exec>(3, 4, 2, {}, "winners")).lacks({name, "3x4x2, expected the extents of C 'out' 2x3x4"}) ==
          "");
    // The same before further steps.
    const auto e = support::caught([&] {
      rigel::contract(Exec{}, least, a, b, batch<double, Exec>(2, 3, 4, {}, "out"),
                      rigel::epilogue::arguments(matrix<int, Exec>(3, 4, {}, "winners")) | rigel::epilogue::scale(2));
    });
    CHECK(e.lacks({name, "3x4, expected the extents of C 'out' 2x3x4"}) == "");
  }
  SUBCASE("integers that are too narrow") {
    const auto tall = matrix<float, Exec>(1, 129, {}), wide = matrix<float, Exec>(129, 1, {}),
               one = matrix<float, Exec>(1, 1, {7});
    const auto e = support::caught([&] {
      rigel::contract(Exec{}, rigel::with_argument<rigel::min_plus<float>>{}, tall, wide, one,
                      rigel::epilogue::arguments(matrix<std::int8_t, Exec>(1, 1, {}, "bytes")));
    });
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"the view of arguments() 'bytes' 1x1 of integers of 8 bits, expected such that hold K - 1 = 128"}) == "");
    CHECK(support::values(one) == std::vector<double>{7});
    const auto shorter = support::caught([&] {
      rigel::contract(Exec{}, rigel::with_argument<rigel::min_plus<float>>{}, matrix<float, Exec>(1, 128),
                      matrix<float, Exec>(128, 1), one, rigel::epilogue::arguments(matrix<std::int8_t, Exec>(1, 1)));
      Kokkos::fence();
    });
    CHECK(shorter.code == Code::ok);
  }
  SUBCASE("overlaps, and no memory") {
    CHECK(refused(at(c.data())).lacks({"the view of arguments() 2x3x4 overlaps C 'out' 2x3x4"}) == "");
    CHECK(refused(at(a.data())).lacks({"the view of arguments() 2x3x4 overlaps A 'left' 2x3x5"}) == "");
    CHECK(refused(at(b.data())).lacks({"the view of arguments() 2x3x4 overlaps B 'right' 2x5x4"}) == "");
    const auto own = batch<std::int32_t, Exec>(2, 3, 5);
    CHECK(refused(at(own.data(), 0)).lacks({"the view of arguments() 2x3x4 overlaps itself"}) == "");
    CHECK(refused(at(nullptr)).lacks({"the view of arguments() 2x3x4 has no data"}) == "");
  }
}

TEST_CASE("messages: what an epilogue reads") {
  namespace epilogue = rigel::epilogue;
  using Space = Exec::memory_space;
  const auto a = batch<float, Exec>(2, 3, 5, {}, "left"), b = batch<float, Exec>(2, 5, 4, {}, "right"),
             c = batch<float, Exec>(2, 3, 4, std::vector<double>(24, 7), "out");
  const auto refused = [&](const auto& program) {
    const auto e = support::caught([&] { rigel::contract(Exec{}, s, a, b, c, program); });
    CHECK(e.code == Code::invalid_argument);
    CHECK(support::values(c) == std::vector<double>(24, 7));
    return e;
  };
  const auto vector = [](int count) { return Kokkos::View<float*, Space>("vector", count); };
  const auto extents = [](const char* function, int step, const char* actual, const char* expected) {
    return "contract: the view of " + std::string(function) + ", step " + std::to_string(step) +
           " of the epilogue, has extents " + actual + " (batches, rows, columns), expected " + expected +
           " to match C 'out' 2x3x4";
  };
  const epilogue::Program first = epilogue::relu();
  SUBCASE("extents of rows and columns") {
    CHECK(refused(epilogue::add_row(vector(3))).message == extents("add_row()", 1, "1 x 1 x 3", "1 x 1 x 4"));
    CHECK(refused(first | epilogue::scale_row(vector(5))).message == extents("scale_row()", 2, "1 x 1 x 5", "1 x 1 x 4"));
    CHECK(refused(epilogue::add_column(vector(4))).message == extents("add_column()", 1, "1 x 4 x 1", "1 x 3 x 1"));
    CHECK(refused(first | first | epilogue::scale_column(vector(2))).message ==
          extents("scale_column()", 3, "1 x 2 x 1", "1 x 3 x 1"));
    CHECK(refused(epilogue::add_row(matrix<float, Exec>(3, 4))).message ==
          extents("add_row()", 1, "3 x 1 x 4", "2 x 1 x 4"));
    CHECK(refused(epilogue::add_row(vector(0))).message == extents("add_row()", 1, "1 x 1 x 0", "1 x 1 x 4"));
  }
  SUBCASE("extents of residuals") {
    CHECK(refused(epilogue::residual(matrix<float, Exec>(4, 3))).message ==
          extents("residual()", 1, "1 x 4 x 3", "1 x 3 x 4"));
    CHECK(refused(epilogue::residual(batch<float, Exec>(3, 3, 4))).message ==
          extents("residual()", 1, "3 x 3 x 4", "2 x 3 x 4"));
    CHECK(refused(epilogue::residual(batch<float, Exec>(2, 3, 4), rigel::Batch::last)).message ==
          extents("residual()", 1, "4 x 2 x 3", "2 x 3 x 4"));
  }
  SUBCASE("extents of parameters") {
    CHECK(refused(epilogue::scale(vector(3))).message == extents("scale()", 1, "3 x 1 x 1", "2 x 1 x 1"));
    const auto one = vector(1);
    CHECK(refused(epilogue::clamp(one, vector(4))).message == extents("clamp()", 1, "4 x 1 x 1", "2 x 1 x 1"));
  }
  SUBCASE("before and after a functor") {
    const auto identity = epilogue::functor(Identity{});
    CHECK(refused(epilogue::add_row(vector(3)) | identity).message == extents("add_row()", 1, "1 x 1 x 3", "1 x 1 x 4"));
    CHECK(refused(identity | epilogue::add_row(vector(3))).message == extents("add_row()", 1, "1 x 1 x 3", "1 x 1 x 4"));
  }
  SUBCASE("no data") {
    using Unmanaged = Kokkos::View<float*, Space, Kokkos::MemoryUnmanaged>;
    CHECK(refused(first | epilogue::add_row(Unmanaged(nullptr, 4))).message ==
          "contract: the view of add_row(), step 2 of the epilogue, has no data");
  }
  SUBCASE("overlaps") {
    const std::string overlaps =
        "contract: the view of residual(), step 1 of the epilogue, overlaps C 'out' 2x3x4, expected distinct elements, or "
        "the same view";
    const auto matrix_of = [&](int l) { return Kokkos::subview(c, l, Kokkos::ALL, Kokkos::ALL); };
    CHECK(refused(epilogue::residual(matrix_of(0))).message == overlaps);
    CHECK(refused(epilogue::residual(matrix_of(1))).message == overlaps);
    using Unmanaged = Kokkos::View<float***, Kokkos::LayoutStride, Space, Kokkos::MemoryUnmanaged>;
    const Unmanaged exchanged(c.data(), Kokkos::LayoutStride(2, 12, 3, 1, 4, 3));
    CHECK(refused(epilogue::residual(exchanged)).message == overlaps);
    CHECK(refused(epilogue::add_row(Kokkos::subview(c, 1, 2, Kokkos::ALL)))
              .lacks({"the view of add_row(), step 1 of the epilogue, overlaps C 'out' 2x3x4"}) == "");
  }
  SUBCASE("a fifth one") {
    const auto row = epilogue::add_row(vector(4));
    const auto four = row | row | row | row;
    const auto e = support::caught([&] { four | row; });
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"epilogue: more than 4 parameters", "in memory", "functor"}) == "");
    CHECK((four | first).size() == 5);
  }
  SUBCASE("arguments() writes what a step reads") {
    const rigel::with_argument<rigel::min_plus<float>> least;
    const auto index = batch<std::int32_t, Exec>(2, 3, 4, {}, "winners");
    const auto e = support::caught(
        [&] { rigel::contract(Exec{}, least, a, b, c, epilogue::arguments(index) | epilogue::residual(index)); });
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"the view of residual(), step 1 of the epilogue, overlaps the view of arguments() 'winners' 2x3x4"}) ==
          "");
  }
}

TEST_CASE("messages: a view without memory") {
  using View = Kokkos::View<float**, Kokkos::LayoutRight, Exec::memory_space>;
  const auto a = matrix<float, Exec>(2, 2), b = matrix<float, Exec>(2, 2);
  const auto e = support::caught([&] {
    rigel::contract(Exec{}, s, a, b,
                    Kokkos::View<float**, Kokkos::LayoutRight, Exec::memory_space, Kokkos::MemoryUnmanaged>(nullptr, 2, 2));
  });
  CHECK(e.code == Code::invalid_argument);
  CHECK(e.lacks({"C 2x2", "has no data"}) == "");
  const auto f = refusal(
      s, Kokkos::View<const float**, Kokkos::LayoutRight, Exec::memory_space, Kokkos::MemoryUnmanaged>(nullptr, 2, 2), b,
      View("out", 2, 2));
  CHECK(f.code == Code::invalid_argument);
  CHECK(f.lacks({"A 2x2", "has no data"}) == "");
}

TEST_CASE("messages: kernels that do not exist, or do not cover the call") {
  const auto a = matrix<float, Exec>(2, 2), b = matrix<float, Exec>(2, 2), c = matrix<float, Exec>(2, 2);
  SUBCASE("no kernel of that name") {
    const auto e = refusal(s, a, b, c, {.kernel = "fastest"});
    CHECK(e.code == Code::not_found);
    CHECK(e.lacks({"contract", "no kernel is named 'fastest'", "reference"}) == "");
#if !RIGEL_BACKEND_CUDA_SIMT
    CHECK(e.lacks({"this build has no CUDA"}) == "");
#endif
  }
  SUBCASE("part of a word is no name") { CHECK(refusal(s, a, b, c, {.kernel = "refer"}).code == Code::not_found); }
  SUBCASE("a kernel of another semiring") {
    const auto e = refusal(s, a, b, c, {.kernel = "reference.min_plus.f32"});
    CHECK(e.code == Code::unsupported);
    CHECK(e.lacks({"plus_times", "f32", "2x2x2", "reference.min_plus.f32", "reference.plus_times.f32: "}) == "");
  }
}

#ifdef KOKKOS_ENABLE_CUDA
TEST_CASE("messages: a launch that failed names the function that was called, and the kernel") {
  const rigel::Call call{.function = "cdist", .execution = {.device = Kokkos::Cuda{}.cuda_device()}};
  const std::string kernel = "cuda.simt.l1.f32.64x64x8";
  const rigel::backends::cuda::Launches launches(call, kernel);
  CHECK_NOTHROW(launches.check(cudaSuccess));
  const auto e = support::caught([&] { launches.check(cudaErrorInvalidValue); });
  CHECK(e.code == Code::device);
  CHECK(e.lacks({"cdist: launch of cuda.simt.l1.f32.64x64x8: ", cudaGetErrorString(cudaErrorInvalidValue)}) == "");
}
#endif

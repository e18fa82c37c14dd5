// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Empty extents, accumulation, the order of the chain, integer infinity, batches.
#include "call.hpp"

using by_hand::contracted, by_hand::Values, by_hand::accumulating, by_hand::reference;
using support::matrix;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
}

TEST_CASE_TEMPLATE("K = 0 gives the epilogue of the identity", Exec, RIGEL_TEST_SPACES) {
  namespace epilogue = rigel::epilogue;
  const auto a = matrix<float, Exec>(2, 0), b = matrix<float, Exec>(0, 2);
  const auto c = matrix<float, Exec>(2, 2, {5, 6, 7, 8});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, c) == Values{0, 0, 0, 0});
  CHECK(contracted(Exec{}, rigel::min_plus<float>{}, a, b, c) == Values{inf, inf, inf, inf});
  CHECK(contracted(Exec{}, rigel::max_plus<float>{}, a, b, c) == Values{-inf, -inf, -inf, -inf});
  CHECK(contracted(Exec{}, rigel::log_plus<float>{}, a, b, c) == Values{-inf, -inf, -inf, -inf});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, c, epilogue::add_diagonal(3)) == Values{3, 0, 0, 3});
  CHECK(contracted(Exec{}, rigel::min_plus<float>{}, a, b, c, epilogue::clamp(0, 5)) == Values{5, 5, 5, 5});
  const auto i = matrix<std::int32_t, Exec>(2, 0), j = matrix<std::int32_t, Exec>(0, 1),
             k = matrix<std::int32_t, Exec>(2, 1);
  CHECK(contracted(Exec{}, rigel::min_plus<std::int32_t>{}, i, j, k) == Values{0x3fffffff, 0x3fffffff});
}

TEST_CASE_TEMPLATE("K = 0, accumulated, gives the epilogue of C", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(2, 0), b = matrix<float, Exec>(0, 2);
  const auto c = matrix<float, Exec>(2, 2, {5, 6, 7, 8});
  CHECK(contracted(Exec{}, rigel::min_plus<float>{}, a, b, c, rigel::epilogue::scale(2), accumulating) ==
        Values{10, 12, 14, 16});
}

TEST_CASE_TEMPLATE("M = 0, N = 0 or no batches is a no-op", Exec, RIGEL_TEST_SPACES) {
  const rigel::plus_times<float> s;
  const Exec exec;
  rigel::contract(exec, s, matrix<float, Exec>(0, 3), matrix<float, Exec>(3, 2), matrix<float, Exec>(0, 2), {}, reference);
  rigel::contract(exec, s, matrix<float, Exec>(2, 3), matrix<float, Exec>(3, 0), matrix<float, Exec>(2, 0), {}, reference);
  rigel::contract(exec, s, matrix<float, Exec>(0, 0), matrix<float, Exec>(0, 0), matrix<float, Exec>(0, 0), {}, reference);
  const auto none = support::batch<float, Exec>(0, 2, 2);
  rigel::contract(exec, s, none, none, none, {}, reference);
  rigel::contract(exec, s, matrix<float, Exec>(2, 2), none, support::batch<float, Exec>(0, 2, 2), {}, reference);
  exec.fence();
}

TEST_CASE_TEMPLATE("accumulate: the chain starts with C, k ascends", Exec, RIGEL_TEST_SPACES) {
  const auto ones = matrix<float, Exec>(1, 3, {1, 1, 1}), column = matrix<float, Exec>(3, 1, {1, 1, 1});
  // 2^24 + 1 is a tie and rounds to 2^24, three times. 2^24 + 3 would round to 2^24 + 4.
  const auto c = matrix<float, Exec>(1, 1, {0x1p24});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, ones, column, c, rigel::epilogue::Program{}, accumulating) ==
        Values{0x1p24});
  // 1 + 1 + 2^24 is exact, 2^24 + 1 + 1 is not.
  const auto ascending = matrix<float, Exec>(3, 1, {1, 1, 0x1p24}), descending = matrix<float, Exec>(3, 1, {0x1p24, 1, 1});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, ones, ascending, c) == Values{0x1p24 + 2});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, ones, descending, c) == Values{0x1p24});
}

TEST_CASE_TEMPLATE("plus_times and l2_squared round once a step, l1 after the subtraction", Exec, RIGEL_TEST_SPACES) {
  const double x = 1 + 0x1p-12;  // x² = 1 + 2^-11 + 2^-24; rounding x² to float loses the last term
  const auto a = matrix<float, Exec>(1, 2, {-1, x}), b = matrix<float, Exec>(2, 1, {1, x});
  const auto c = matrix<float, Exec>(1, 1);
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, c) == Values{0x1p-11 + 0x1p-24});
  const auto d = matrix<float, Exec>(1, 1, {-1}), zero = matrix<float, Exec>(1, 1), e = matrix<float, Exec>(1, 1, {x});
  CHECK(contracted(Exec{}, rigel::l2_squared<float>{}, e, zero, d, rigel::epilogue::Program{}, accumulating) ==
        Values{0x1p-11 + 0x1p-24});
  CHECK(contracted(Exec{}, rigel::l1<float>{}, e, matrix<float, Exec>(1, 1, {0x1p-30}), c) == Values{x});
}

TEST_CASE_TEMPLATE("accumulate: C is read as an accumulator, then the epilogue", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(1, 2, {1, 2}), b = matrix<float, Exec>(2, 2, {3, 1, 1, 5});
  const auto half = [](auto v) { return matrix<rigel::half, Exec>(1, 2, v); };
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, matrix<float, Exec>(1, 2, {10, 20}), rigel::epilogue::scale(2),
                   accumulating) == Values{30, 62});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, half(Values{10, 20}), rigel::epilogue::scale(2),
                   accumulating) == Values{30, 62});
  CHECK(contracted(Exec{}, rigel::min_plus<float>{}, a, b, matrix<double, Exec>(1, 2, {1, 20}), rigel::epilogue::Program{},
                   accumulating) == Values{1, 2});
  // log(exp(c) + Σ exp) with three equal terms: 2 + log 3.
  const auto zeros = matrix<double, Exec>(1, 2), column = matrix<double, Exec>(2, 1), c = matrix<double, Exec>(1, 1);
  CHECK(contracted(Exec{}, rigel::log_plus<double>{}, zeros, column, c, rigel::epilogue::Program{}, accumulating)[0] ==
        doctest::Approx(std::log(3)).epsilon(1e-15));
}

TEST_CASE_TEMPLATE("integer infinity: two of them add without wrapping, and min keeps the smaller", Exec,
                   RIGEL_TEST_SPACES) {
  const auto infinity = static_cast<double>(rigel::infinity<std::int32_t>());
  const auto a = matrix<std::int32_t, Exec>(2, 2, {infinity, 3, infinity, infinity}),
             b = matrix<std::int32_t, Exec>(2, 1, {infinity, 4});
  const auto c = matrix<std::int32_t, Exec>(2, 1);
  const auto actual = contracted(Exec{}, rigel::min_plus<std::int32_t>{}, a, b, c);
  CHECK(actual[0] == 7);
  CHECK(actual[1] == infinity);  // the identity, below infinity + 4
  const auto minus = matrix<std::int32_t, Exec>(1, 1, {-infinity}), d = matrix<std::int32_t, Exec>(1, 1);
  CHECK(contracted(Exec{}, rigel::max_plus<std::int32_t>{}, minus, minus, d) == Values{-infinity});
}

TEST_CASE_TEMPLATE("integers wrap, and go into any C", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<std::int32_t, Exec>(1, 1, {65536}), b = matrix<std::int32_t, Exec>(1, 1, {65536 + 3});
  CHECK(contracted(Exec{}, rigel::plus_times<std::int32_t>{}, a, b, matrix<std::int32_t, Exec>(1, 1)) == Values{3 * 65536});
  const auto c = matrix<std::int8_t, Exec>(1, 2, {100, -100}), d = matrix<std::int8_t, Exec>(2, 1, {100, -100});
  CHECK(contracted(Exec{}, rigel::plus_times<std::int8_t>{}, c, d, matrix<float, Exec>(1, 1)) == Values{20000});
  CHECK(contracted(Exec{}, rigel::plus_times<std::int8_t>{}, c, d, matrix<std::int64_t, Exec>(1, 1)) == Values{20000});
  CHECK(contracted(Exec{}, rigel::plus_times<std::int8_t>{}, c, d, matrix<std::uint8_t, Exec>(1, 1)) == Values{20000 % 256});
}

TEST_CASE_TEMPLATE("float results go into any floating-point C, rounded to nearest even", Exec, RIGEL_TEST_SPACES) {
  const auto a = matrix<float, Exec>(1, 1, {1}), b = matrix<float, Exec>(1, 3, {1 + 0x1p-11, 1 + 0x1.8p-10, 70000});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, matrix<double, Exec>(1, 3)) ==
        Values{1 + 0x1p-11, 1 + 0x1.8p-10, 70000});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, matrix<rigel::half, Exec>(1, 3)) == Values{1, 1 + 0x1p-9, inf});
  CHECK(contracted(Exec{}, rigel::plus_times<float>{}, a, b, matrix<rigel::bfloat16, Exec>(1, 3)) == Values{1, 1, 70144});
}

TEST_CASE_TEMPLATE("batches: equal, broadcast by extent 1 or a missing rank, first or last", Exec, RIGEL_TEST_SPACES) {
  const rigel::plus_times<float> s;
  // Two products of 1 × 2 × 1: (1 2)·(1 1)ᵀ = 3 and (3 4)·(10 1)ᵀ = 34; with either operand shared, 3 and 7, 3 and 12.
  const auto a = support::batch<float, Exec>(2, 1, 2, {1, 2, 3, 4}), b = support::batch<float, Exec>(2, 2, 1, {1, 1, 10, 1});
  const auto c = support::batch<float, Exec>(2, 1, 1);
  CHECK(contracted(Exec{}, s, a, b, c) == Values{3, 34});
  CHECK(contracted(Exec{}, s, a, support::batch<float, Exec>(1, 2, 1, {1, 1}), c) == Values{3, 7});
  CHECK(contracted(Exec{}, s, a, matrix<float, Exec>(2, 1, {1, 1}), c) == Values{3, 7});
  CHECK(contracted(Exec{}, s, support::batch<float, Exec>(1, 1, 2, {1, 2}), b, c) == Values{3, 12});
  CHECK(contracted(Exec{}, s, matrix<float, Exec>(1, 2, {1, 2}), b, c) == Values{3, 12});
  CHECK(contracted(Exec{}, s, matrix<float, Exec>(1, 2, {1, 2}), matrix<float, Exec>(2, 1, {1, 1}), c) == Values{3, 3});
  // The same numbers with the batch index last: element (i, j, l) is at 2·(2·i + j) + l.
  const auto a_last = support::batch<float, Exec>(1, 2, 2, {1, 3, 2, 4}),
             b_last = support::batch<float, Exec>(2, 1, 2, {1, 10, 1, 1});
  const auto c_last = support::batch<float, Exec>(1, 1, 2);
  const rigel::ContractOptions last{.batch = rigel::Batch::last, .kernel = "reference"};
  CHECK(contracted(Exec{}, s, a_last, b_last, c_last, rigel::epilogue::Program{}, last) == Values{3, 34});
  CHECK(contracted(Exec{}, s, a_last, matrix<float, Exec>(2, 1, {1, 1}), c_last, rigel::epilogue::Program{}, last) ==
        Values{3, 7});
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C may overlap neither A, B nor itself, as sets of elements.
#include <rigel/contract.hpp>

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <set>

using rigel::Code;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Strided = Kokkos::View<float**, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
const rigel::plus_times<float> s;

Strided strided(float* data, std::size_t rows, std::size_t row_stride, std::size_t columns, std::size_t column_stride) {
  return Strided(data, Kokkos::LayoutStride(rows, row_stride, columns, column_stride));
}

template <class A, class B, class C>
support::Caught outcome(const A& a, const B& b, const C& c) {
  return support::caught([&] {
    rigel::contract(Exec{}, s, a, b, c);
    Kokkos::fence();
  });
}

}  // namespace

TEST_CASE("overlap: interleaved columns and rows of one allocation are accepted, and right") {
  float memory[32] = {};
  // Columns 0 and 2 are A = (1 2; 3 4), columns 1 and 3 are C; B has its own memory.
  float b_memory[] = {1, 10, 100, 1000};
  const auto b = strided(b_memory, 2, 2, 2, 1);
  SUBCASE("columns") {
    const auto a = strided(memory, 2, 4, 2, 2), c = strided(memory + 1, 2, 4, 2, 2);
    a(0, 0) = 1, a(0, 1) = 2, a(1, 0) = 3, a(1, 1) = 4;
    CHECK(outcome(a, b, c).code == Code::ok);
    CHECK(std::vector<float>(memory, memory + 8) == std::vector<float>{1, 201, 2, 2010, 3, 403, 4, 4030});
    CHECK(outcome(b, a, c).code == Code::ok);
  }
  SUBCASE("rows") {
    const auto a = strided(memory, 2, 8, 2, 1), c = strided(memory + 4, 2, 8, 2, 1);
    a(0, 0) = 1, a(0, 1) = 2, a(1, 0) = 3, a(1, 1) = 4;
    CHECK(outcome(a, b, c).code == Code::ok);
    CHECK(c(0, 0) == 201);
    CHECK(c(1, 1) == 4030);
  }
  SUBCASE("the two triangles of a band: row stride and column stride that never meet") {
    // A: 0, 5, 10, 15 (diagonal of a 4 × 4); C: 1, 6, 11 and so on.
    const auto a = strided(memory, 1, 1, 4, 5), c = strided(memory + 1, 1, 1, 3, 5);
    float column[12] = {};
    CHECK(outcome(a, strided(column, 4, 3, 3, 1), c).code == Code::ok);
  }
}

TEST_CASE("overlap: true overlaps are refused, and name both") {
  const auto whole = support::matrix<float, Exec>(6, 6, {}, "whole");
  const auto other = support::matrix<float, Exec>(6, 6, {}, "other");
  const auto e = outcome(whole, other, whole);
  CHECK(e.code == Code::invalid_argument);
  CHECK(e.lacks({"contract: ", "C 'whole' 6x6", "overlaps A 'whole' 6x6"}) == "");
  const auto f = outcome(other, whole, whole);
  CHECK(f.code == Code::invalid_argument);
  CHECK(f.lacks({"C 'whole' 6x6", "overlaps B 'whole' 6x6"}) == "");
  CHECK(outcome(rigel::transposed(whole), other, whole).code == Code::invalid_argument);
  float* const m = whole.data();
  const auto b = strided(other.data(), 2, 6, 2, 1);
  CHECK(outcome(strided(m, 2, 6, 2, 1), b, strided(m + 7, 2, 6, 2, 1)).code == Code::invalid_argument);  // a shared corner
  CHECK(outcome(strided(m, 2, 6, 2, 1), b, strided(m + 2, 2, 6, 2, 1)).code == Code::ok);                // neighbours
  CHECK(outcome(strided(m, 2, 6, 2, 1), b, strided(m + 12, 2, 6, 2, 1)).code == Code::ok);
  CHECK(outcome(strided(m, 2, 6, 2, 2), b, strided(m + 1, 2, 7, 2, 3)).code == Code::invalid_argument);  // 8 = 6 + 2 = 1 + 7
}

TEST_CASE("overlap: C may not overlap itself") {
  float memory[64] = {}, operand[64] = {};
  const auto a = strided(operand, 3, 3, 3, 1);
  const auto e = outcome(a, a, strided(memory, 3, 0, 3, 1));
  CHECK(e.code == Code::invalid_argument);
  CHECK(e.lacks({"C 3x3", "overlaps itself", "strides"}) == "");
  CHECK(outcome(a, a, strided(memory, 3, 1, 3, 1)).code == Code::invalid_argument);
  CHECK(outcome(a, a, strided(memory, 3, 2, 3, 1)).code == Code::invalid_argument);
  CHECK(outcome(a, a, strided(memory, 3, 2, 3, 4)).code == Code::invalid_argument);  // (2, 0) and (0, 1)
  CHECK(outcome(a, a, strided(memory, 3, 2, 3, 5)).code == Code::ok);                // 0 2 4, 5 7 9, 10 12 14
  // The stride of a single row or column does not matter.
  CHECK(outcome(strided(operand, 1, 0, 3, 1), a, strided(memory, 1, 0, 3, 1)).code == Code::ok);
  // Batches with stride 0.
  using Batches = Kokkos::View<float***, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  CHECK(outcome(a, a, Batches(memory, Kokkos::LayoutStride(2, 0, 3, 3, 3, 1))).code == Code::invalid_argument);
  CHECK(outcome(a, a, Batches(memory, Kokkos::LayoutStride(2, 9, 3, 3, 3, 1))).code == Code::ok);
  CHECK(outcome(a, a, Batches(memory, Kokkos::LayoutStride(2, 8, 3, 3, 3, 1))).code == Code::invalid_argument);
}

TEST_CASE("overlap: A and B may overlap each other and themselves") {
  float operand[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, memory[9] = {};
  const auto c = strided(memory, 3, 3, 3, 1);
  CHECK(outcome(strided(operand, 3, 0, 3, 1), strided(operand, 3, 3, 3, 1), c).code == Code::ok);
  for (int i = 0; i < 3; ++i) CHECK(c(i, 0) == 1 + 2 * 4 + 3 * 7);
  CHECK(outcome(strided(operand, 3, 1, 3, 1), strided(operand, 3, 1, 3, 2), c).code == Code::ok);
  CHECK(c(2, 2) == 3 * 5 + 4 * 6 + 5 * 7);
}

TEST_CASE("overlap: empty matrices overlap nothing") {
  float memory[16] = {};
  CHECK(outcome(strided(memory, 2, 4, 0, 1), strided(memory, 0, 4, 2, 1), strided(memory, 2, 4, 2, 1)).code == Code::ok);
}

// Random strided sets of bytes, checked by comparing all pairs.
TEST_CASE("overlap: equal to the comparison of all elements") {
  support::Random random(21);
  const auto draw = [&](std::int64_t batches, std::int64_t rows, std::int64_t columns, std::int64_t size) {
    rigel::Operand o;
    o.batches = batches, o.rows = rows, o.columns = columns, o.size = static_cast<std::size_t>(size);
    o.type = size == 4 ? rigel::Scalar::f32 : rigel::Scalar::f64;
    o.batch_stride = random.integer(0, 40), o.row_stride = random.integer(0, 12), o.column_stride = random.integer(0, 12);
    if (batches == 1) o.batch_stride = 0;
    o.data = reinterpret_cast<void*>(4096 + 4 * random.integer(0, 40));
    return o;
  };
  // Collects the bytes of all elements; false if two elements share one.
  const auto bytes_of = [](const rigel::Operand& o, std::set<std::int64_t>& bytes) {
    bool distinct = true;
    for (std::int64_t l = 0; l < o.batches; ++l)
      for (std::int64_t i = 0; i < o.rows; ++i)
        for (std::int64_t j = 0; j < o.columns; ++j) {
          const auto first =
              static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(o.data)) +
              (l * o.batch_stride + i * o.row_stride + j * o.column_stride) * static_cast<std::int64_t>(o.size);
          for (std::int64_t b = 0; b < static_cast<std::int64_t>(o.size); ++b)
            distinct = bytes.insert(first + b).second && distinct;
        }
    return distinct;
  };
  int accepted = 0, wrong = 0, first_wrong = -1;
  constexpr int trials = 20000;
  for (int t = 0; t < trials; ++t) {
    rigel::Contraction p;
    p.batch = random.integer(1, 3), p.m = random.integer(1, 4), p.n = random.integer(1, 4), p.k = random.integer(1, 4);
    p.c = draw(p.batch, p.m, p.n, random.pick({4, 8}));
    p.a = draw(random.pick({std::int64_t{1}, p.batch}), p.m, p.k, random.pick({4, 8}));
    p.b = draw(1, p.k, p.n, 4);
    p.b.data = reinterpret_cast<void*>(1 << 20);
    std::set<std::int64_t> a, b, c;
    const bool distinct = bytes_of(p.c, c);
    bytes_of(p.a, a), bytes_of(p.b, b);
    bool expected = distinct;
    for (const std::int64_t byte : c) expected = expected && !a.contains(byte) && !b.contains(byte);
    const bool actual = support::caught([&] { p.check(); }).code == Code::ok;
    accepted += actual;
    if (actual != expected && ++wrong == 1) first_wrong = t;
  }
  CAPTURE(first_wrong);
  CHECK(wrong == 0);
  CHECK(accepted > trials / 50);  // both outcomes occur
  CHECK(accepted < trials / 2);
}

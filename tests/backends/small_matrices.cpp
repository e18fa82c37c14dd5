// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches of small matrices by the kernel for them (cuda.simt, small), forced by name: its bits are the reference's, whatever
// the layouts, the types and the number of matrices. The problems are the smallest ones, those around a thread's outputs and a
// warp, whole blocks of matrices and a rest, and matrices that are cut into parts.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/problem.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using support::Order;

constexpr rigel::Scalar types[] = {rigel::Scalar::f32,  rigel::Scalar::f64, rigel::Scalar::f16,
                                   rigel::Scalar::bf16, rigel::Scalar::i32, rigel::Scalar::i64,
                                   rigel::Scalar::i8,   rigel::Scalar::u8,  rigel::Scalar::i16};
constexpr const char* semirings[] = {"plus_times", "min_plus", "l1", "hamming"};

struct Extents {
  std::int64_t batch, m, n, k;
};
constexpr Extents shapes[] = {{1, 1, 1, 1},     {300, 1, 1, 5},  {257, 2, 3, 4},   {100, 8, 8, 8},   {33, 16, 16, 16},
                              {9, 32, 32, 32},  {3, 64, 64, 64}, {40, 6, 80, 2},   {37, 10, 32, 3},  {21, 46, 13, 16},
                              {17, 44, 12, 76}, {5, 7, 64, 33},  {2, 130, 70, 40}, {50, 16, 49, 29}, {64, 4, 4, 300},
                              {7, 64, 1, 64},   {7, 1, 64, 64},  {12, 5, 5, 0}};

/// Checks the named kernel's C on a problem against the reference's.
template <class Exec>
void check(const rigel::KernelInfo& info, const rigel::KernelInfo& reference, const Extents& e, Order a, Order b, Order c,
           support::Share share, bool accumulate, int epilogue, std::uint64_t seed) {
  support::Problem<Exec> problem({.batch = e.batch,
                                  .m = e.m,
                                  .n = e.n,
                                  .k = e.k,
                                  .a = a,
                                  .b = b,
                                  .c = c,
                                  .share = share,
                                  .index = rigel::Batch::first,
                                  .accumulate = accumulate,
                                  .epilogue = epilogue,
                                  .special = support::Special::none,
                                  .seed = seed},
                                 *reference.facts);
  const support::Bytes expected = problem.result("reference"), actual = problem.result(info.name);
  CHECK(support::differences(problem.operands.c, problem.p.c.type, actual, expected) == 0);
  CHECK(support::same_gaps(problem.operands.c, problem.p.c.type, actual, problem.operands.c_bytes));
}

/// visit(the kernel's info, the reference's) for each kernel "small" of the semirings and types above on this machine.
template <class Exec, class Visit>
void for_each_kernel(const Visit& visit) {
  int kernels = 0;
  for (const char* semiring : semirings)
    for (const rigel::Scalar type : types)
      for (const rigel::KernelInfo& info : support::kernels_on(Exec{}, semiring, type)) {
        if (info.family != "cuda.simt" || info.variant != "small") continue;
        for (const rigel::KernelInfo& reference : support::kernels_on(Exec{}, semiring, type, info.accumulator))
          if (reference.family == "reference") {
            CAPTURE(info.name);
            visit(info, reference);
            ++kernels;
          }
      }
  if (kernels == 0) support::skip("small matrices: no kernel of cuda.simt runs on this execution space");
}

// A user's semiring with a struct as accumulator: the number of terms, and the last k of the largest.
struct LargestTerm {
  using element = float;
  struct accumulator {
    float value;
    std::int32_t k;
  };
  KOKKOS_FUNCTION static accumulator identity() { return {-1e30f, -1}; }
  KOKKOS_FUNCTION static accumulator multiply(float a, float b, std::int64_t k) {
    return {a - b, static_cast<std::int32_t>(k)};
  }
  KOKKOS_FUNCTION static accumulator add(accumulator x, accumulator y) { return y.value >= x.value ? y : x; }
  KOKKOS_FUNCTION static float result(accumulator x) { return static_cast<float>(x.k); }
};

}  // namespace

TEST_CASE_TEMPLATE("small matrices: the reference's bits for every type and shape", Exec, RIGEL_TEST_SPACES) {
  constexpr support::Share shares[] = {support::Share::none, support::Share::a, support::Share::b};
  for_each_kernel<Exec>([&](const rigel::KernelInfo& info, const rigel::KernelInfo& reference) {
    // Steps make numbers of integers that a C of 64 bits or of words does not take.
    using enum rigel::Scalar;
    const rigel::Scalar result = reference.facts->result;
    const bool takes_steps = result != i64 && result != u32 && result != u64 && result != i16;
    std::uint64_t i = 0;
    for (const Extents& e : shapes) {
      CAPTURE(e.batch);
      CAPTURE(e.m);
      CAPTURE(e.n);
      CAPTURE(e.k);
      // Each order of each operand, with different ones of the others.
      for (int order = 0; order < support::orders; ++order, ++i) {
        CAPTURE(order);
        const auto turned = [&](int by) {
          return static_cast<Order>((order + by * static_cast<int>(i % 5)) % support::orders);
        };
        check<Exec>(info, reference, e, static_cast<Order>(order), turned(1), turned(2), shares[i % 3],
                    info.accumulates && i % 4 == 1, static_cast<int>(takes_steps && i % 7 == 2), i + 1);
      }
    }
  });
}

TEST_CASE_TEMPLATE("small matrices: batches first and last, all operands alike", Exec, RIGEL_TEST_SPACES) {
  for_each_kernel<Exec>([&](const rigel::KernelInfo& info, const rigel::KernelInfo& reference) {
    for (const Order order : {Order::right, Order::left, Order::interleaved})
      for (const std::int64_t batch : {1, 31, 32, 33, 1000}) {
        CAPTURE(static_cast<int>(order));
        CAPTURE(batch);
        check<Exec>(info, reference, {batch, 8, 8, 8}, order, order, order, support::Share::none, false, 0, 7);
        check<Exec>(info, reference, {batch, 12, 4, 20}, order, order, order, support::Share::none, false, 0, 8);
      }
  });
}

TEST_CASE_TEMPLATE("small matrices: a user's functor with a struct as accumulator", Exec, RIGEL_TEST_SPACES) {
  if constexpr (rigel::detail::space_of<Exec> == rigel::Space::cuda) {
    for (const int batch : {1, 40, 129})
      for (const int extent : {1, 5, 8, 33}) {
        CAPTURE(batch);
        CAPTURE(extent);
        std::vector<double> a, b, expected;
        const auto value_a = [](int l, int i, int k) { return (5 * i + 3 * k + l) % 7 - 3; };
        const auto value_b = [](int l, int k, int j) { return (2 * j + 9 * k + 4 * l) % 5 - 2; };
        for (int l = 0; l < batch; ++l)
          for (int i = 0; i < extent; ++i)
            for (int j = 0; j < extent; ++j) {
              a.push_back(value_a(l, i, j));
              b.push_back(value_b(l, i, j));
              auto x = LargestTerm::identity();
              for (int k = 0; k < extent; ++k)
                x = LargestTerm::add(
                    x, LargestTerm::multiply(static_cast<float>(value_a(l, i, k)), static_cast<float>(value_b(l, k, j)), k));
              expected.push_back(LargestTerm::result(x));
            }
        const auto da = support::batch<float, Exec>(batch, extent, extent, a),
                   db = support::batch<float, Exec>(batch, extent, extent, b),
                   dc = support::batch<float, Exec>(batch, extent, extent);
        const std::string kernel = "cuda.simt." + std::string(rigel::semiring_name<LargestTerm>()) + ".f32.small";
        rigel::contract(Exec{}, LargestTerm{}, da, db, dc, rigel::epilogue::Program{}, {.kernel = kernel});
        CHECK(support::values(dc) == expected);
      }
  } else {
    support::skip("small matrices: users' functors get this kernel on CUDA only");
  }
}

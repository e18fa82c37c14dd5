// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which kernels random problems get, on hosts and on GPUs of any architecture. Nothing runs, so this needs no GPU and does not
// initialise Kokkos.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "problems.hpp"

#include <doctest/doctest.h>

using namespace selection;

TEST_CASE("batch_invariant: the bit class follows from N, K, types, options and architecture alone") {
  constexpr std::array<std::int64_t, 12> rows = {1, 2, 7, 8, 63, 64, 100, 511, 1023, 1024, 5000, 200000};
  for (const rigel::Space space : spaces()) {
    Random random(17);
    int changed = 0;
    std::string first;
    for (int i = 0; i < calls; ++i) {
      const Call call = random_call(random, space);
      const auto invariant = [](Contraction p) {
        p.require = Promise::batch_invariant;
        return class_of(p);
      };
      const std::string expected = invariant(problem(call, 1));
      bool differs = false;
      for (const std::int64_t m : rows) differs = differs || invariant(problem(call, m)) != expected;
      // Nor does the class depend on layouts, the number of matrices or the size of the card.
      Call other = call;
      other.a = other.b = other.c = Layout::right;
      other.batch = 1;
      other.broadcast_a = other.broadcast_b = false;
      other.execution.multiprocessors *= 2;
      other.execution.concurrency *= 2;
      differs = differs || invariant(problem(other, 300)) != expected;
      if (differs && changed++ == 0) first = call.text();
    }
    CHECK_MESSAGE(changed == 0, changed << " of " << calls << " calls, the first: " << first);
  }
}

TEST_CASE("kernels that need more shared memory than a block can have decline") {
  for (const rigel::Scalar element : {rigel::Scalar::f32, rigel::Scalar::f64}) {
    Call call = on_hopper("plus_times", element, 4096, 4096);
    call.execution.shared_memory = 48 << 10;
    for (const auto& [kernel, status, chosen, seconds, workspace, admission] : candidates(problem(call, 4096))) {
      if (status.decline == rigel::Decline::space || status.decline == rigel::Decline::architecture) continue;
      CHECK((status.decline == rigel::Decline::memory) == (kernel->info.shared_memory > call.execution.shared_memory));
    }
  }
}

TEST_CASE("explain() says where a predicted time was measured, if not on this architecture") {
  if (rigel::kernels({.name = "cuda.simt"}).empty()) return;  // this build has none
  Call call = on_hopper("min_plus", rigel::Scalar::f32, 4096, 4096);
  const auto borrows = [&] { return explain(problem(call, 4096)).find("from measurements on sm_90") != std::string::npos; };
  CHECK_FALSE(borrows());
  call.execution.compute_capability = 80;
  CHECK(borrows());
}

TEST_CASE("batches of small matrices get the kernel for them, large products do not") {
  if (rigel::kernels({.name = "cuda.simt"}).empty()) return;  // this build has none
  struct Shape {
    std::int64_t batch, extent;
  };
  for (const char* semiring : {"plus_times", "min_plus", "l1"})
    for (const rigel::Scalar element : {rigel::Scalar::f32, rigel::Scalar::f64}) {
      for (const auto& [batch, extent] : {Shape{65536, 8}, Shape{16384, 16}})
        for (const Layout layout : {Layout::right, Layout::left}) {
          Call call = on_hopper(semiring, element, extent, extent);
          call.batch = batch;
          call.a = call.b = call.c = layout;
          Contraction p = problem(call, extent);
          CHECK_MESSAGE(select(p).info.variant == "small", explain(p));
          // Batches last: each element's matrices are neighbours in memory.
          for (Operand* o : {&p.a, &p.b, &p.c})
            o->batch_stride = 1, o->row_stride = batch * extent, o->column_stride = batch;
          CHECK_MESSAGE(select(p).info.variant == "small", explain(p));
        }
      const Call of_large = on_hopper(semiring, element, 4096, 4096);
      const Contraction large = problem(of_large, 4096);
      CHECK_MESSAGE(select(large).info.variant != "small", explain(large));
    }
}

TEST_CASE("batch_invariant: the kernel within the class follows from M") {
  const auto found = rigel::kernels({.name = "cuda.hopper", .semiring = "plus_times", .element = rigel::Scalar::bf16});
  if (found.empty()) return;  // this build has no kernels for this architecture
  const Call call = on_hopper("plus_times", rigel::Scalar::bf16, 4096, 4096);
  const auto chosen = [&](std::int64_t m) {
    Contraction p = problem(call, m);
    p.require = Promise::batch_invariant;
    return &select(p).info;
  };
  CHECK(bit_class_of(*chosen(1)) == "cuda.hopper");
  CHECK(bit_class_of(*chosen(8192)) == "cuda.hopper");
  for (const std::int64_t m : {1, 64, 100}) CHECK((chosen(m)->variant == "once" && chosen(m)->tile.m == 64));
  CHECK(chosen(1) != chosen(8192));
}

TEST_CASE("long sums of 16-bit numbers get tiles that cut them") {
  if (rigel::kernels({.name = "cuda.hopper"}).empty()) return;  // this build has no kernels for this architecture
  const Call call = on_hopper("plus_times", rigel::Scalar::bf16, 8192, 8192);
  for (const std::int64_t m : {1, 200, 8192}) {
    Contraction p = problem(call, m);
    p.require = Promise::batch_invariant;
    const rigel::KernelInfo& info = select(p).info;
    CHECK(bit_class_of(info) == "cuda.hopper");
    CHECK(info.accuracy.part > 0);
  }
  CHECK(select(problem(call, 8192)).info.variant == "long");
}

TEST_CASE("defaults: tensor cores where their bound is no larger than a chain's, or distances are guarded") {
  if (rigel::kernels({.name = "cuda.mma"}).empty()) return;  // this build has none
  using rigel::Precision, rigel::Scalar;
  const auto chosen = [](const Call& call, std::int64_t m, Promise require = Promise::none) -> const rigel::KernelInfo& {
    Contraction p = problem(call, m);
    p.require = require;
    return select(p).info;
  };
  // The bound of promoted sums of six products is 105 + K/32 units, that of a chain 2 + K: no larger from K = 107 on.
  CHECK(chosen(on_hopper("plus_times", Scalar::f32, 8192, 8192), 8192).precision == Precision::promoted);
  CHECK(chosen(on_hopper("plus_times", Scalar::f32, 8192, 107), 8192).precision > Precision::accumulator);
  CHECK(chosen(on_hopper("plus_times", Scalar::f32, 8192, 106), 8192).precision == Precision::accumulator);
  CHECK(chosen(on_hopper("plus_times", Scalar::f32, 8192, 8192), 8192, Promise::reference_bits).precision ==
        Precision::accumulator);
  CHECK(chosen(on_hopper("l2_squared", Scalar::f32, 30000, 1024), 30000).precision == Precision::promoted);
  CHECK(chosen(on_hopper("l2_squared", Scalar::f64, 30000, 1024), 30000).precision == Precision::accumulator);
  for (const char* semiring : {"plus_times", "l2_squared"}) {
    Call call = on_hopper(semiring, Scalar::f32, 8192, 8192);
    call.precision = Precision::accumulator;
    CHECK(chosen(call, 8192).precision == Precision::accumulator);
    call.precision = Precision::automatic;
    CHECK(explain(problem(call, 8192)).find("; rounds terms (precision promoted), but ") != std::string::npos);
  }
}

TEST_CASE("predictions: none lies below the bytes of A, B and C over the bandwidth") {
  for (const rigel::Space space : spaces()) {
    Random random(9);
    int below = 0;
    for (int i = 0; i < calls; ++i) {
      Call call = random_call(random, space);
      call.broadcast_a = call.broadcast_b = false;
      const Contraction p = problem(call, extent(random, 1e6));
      double bandwidth = host_bandwidth;
      for (const Gpu& gpu : gpus)
        if (gpu.compute_capability == p.execution.compute_capability) bandwidth = gpu.bandwidth;
      const double floor = (bytes_of(p.a) + bytes_of(p.b) + bytes_of(p.c)) / bandwidth;
      below += !(predicted_seconds(select(p), p) >= floor);
    }
    CHECK(below == 0);
  }
}

// Small and narrow problems may well be the portable family's: there it has kernels that the tuned ones lack.
TEST_CASE("choice: on a GPU that has a tuned family, the portable one hardly ever computes what fills the card") {
  if (rigel::kernels({.name = "cuda.simt"}).empty()) return;  // this build has none
  Random random(99);
  int portable = 0;
  std::string first;
  for (int i = 0; i < calls; ++i) {
    Call call = random_call(random, rigel::Space::cuda);
    call.n = 8192 + extent(random, 8192);
    call.k = 256 + extent(random, 8192);
    const Contraction p = problem(call, 8192 + extent(random, 1e5));
    if (family_of(p) == "portable" && portable++ == 0) first = explain(p);
  }
  CHECK_MESSAGE(portable <= calls / 100, portable << " of " << calls << ", the first: " << first);
}

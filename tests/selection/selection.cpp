// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which kernels random problems get, on hosts and on GPUs of any architecture. Nothing runs, so this needs no GPU and does not
// initialise Kokkos: the problems are built as the views of a caller would give them.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <rigel/registry.hpp>
#include <rigel/semiring_info.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

using rigel::Operand, rigel::Contraction, rigel::Promise;

namespace {

/// The facts of a GPU on which choices depend (CUDA C++ Programming Guide, table of technical specifications; data sheets):
/// the shared memory of a thread block, and the bandwidth of memory in bytes per second.
struct Gpu {
  int compute_capability, shared_memory;
  double bandwidth;
};
constexpr std::array<Gpu, 6> gpus = {{{80, 163 << 10, 2.04e12},
                                      {86, 99 << 10, 0.94e12},
                                      {89, 99 << 10, 1.01e12},
                                      {90, 227 << 10, 4.8e12},
                                      {100, 227 << 10, 8e12},
                                      {120, 99 << 10, 1.8e12}}};
constexpr double host_bandwidth = 1e12;

enum class Layout { right, left, padded, unaligned };

/// What a call keeps when M changes.
struct Call {
  rigel::KernelInfo key;  // of the semiring's reference
  std::int64_t batch = 1, n = 1, k = 1;
  Layout a = Layout::right, b = Layout::right, c = Layout::right;
  bool broadcast_a = false, broadcast_b = false;
  rigel::Precision precision = rigel::Precision::automatic;
  rigel::epilogue::Program epilogue = {}, epilogue_of_one_row = {};  // a view of one row has no stride along rows
  bool accumulate = false;
  rigel::Execution execution = {};

  std::string text() const {
    return key.semiring + ' ' + name(key.element) + ", batch " + std::to_string(batch) + ", N " + std::to_string(n) +
           ", K " + std::to_string(k) + ", layouts " + std::to_string(int(a)) + std::to_string(int(b)) +
           std::to_string(int(c)) + (broadcast_a ? ", A broadcast" : "") + (broadcast_b ? ", B broadcast" : "") +
           ", precision " + name(precision) + (epilogue.empty() ? "" : ", with an epilogue") +
           (accumulate ? ", accumulated" : "") + ", on " + name(execution.space) + ' ' +
           std::to_string(execution.compute_capability) + " with " + std::to_string(execution.multiprocessors);
  }
};

using Random = std::mt19937_64;

template <class List>
auto pick(Random& random, const List& list) {
  return list[random() % std::size(list)];
}

/// Between 1 and `most`, each order of magnitude as likely as another; often a multiple of eight.
std::int64_t extent(Random& random, double most) {
  const auto e = static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0, std::log(most))(random)));
  return random() % 2 && e >= 8 ? e / 8 * 8 : e;
}

Operand operand(rigel::Scalar type, Layout layout, std::int64_t address, std::int64_t batches, std::int64_t rows,
                std::int64_t columns) {
  Operand o;
  o.type = type;
  o.size = size_of(type);
  o.data = reinterpret_cast<void*>(address + (layout == Layout::unaligned ? static_cast<std::int64_t>(o.size) : 0));
  o.batches = batches;
  o.rows = rows;
  o.columns = columns;
  const std::int64_t lead = (layout == Layout::left ? rows : columns) + (layout == Layout::padded ? 3 : 0);
  o.row_stride = layout == Layout::left ? 1 : lead;
  o.column_stride = layout == Layout::left ? lead : 1;
  o.batch_stride = batches == 1 ? 0 : lead * (layout == Layout::left ? columns : rows);
  return o;
}

/// A residual of n columns, as epilogue::residual() makes it of a view that starts `offset` bytes from an aligned address. Nothing
/// reads it.
rigel::epilogue::Program residual(std::int64_t n, std::int64_t row_stride, std::int64_t offset = 0) {
  rigel::epilogue::Source source;
  source.data = reinterpret_cast<const void*>((std::int64_t{4} << 40) + offset);
  source.type = rigel::Scalar::f32;
  source.row_stride = row_stride;
  source.column_stride = 1;
  source.columns = n;
  return {rigel::epilogue::Step{rigel::epilogue::Kind::add}, source};
}

/// The call's problem with M rows. Nothing reads its addresses.
Contraction problem(const Call& call, std::int64_t m) {
  Contraction p;
  const rigel::Scalar sums = call.key.accumulator,
                      numbers = call.key.element == rigel::Scalar::f64 ? rigel::Scalar::f64 : rigel::Scalar::f32;
  p.semiring = semiring_of(call.key);
  p.element = call.key.element;
  p.accumulator = sums;
  p.batch = call.batch;
  p.m = m;
  p.n = call.n;
  p.k = call.k;
  p.a = operand(p.element, call.a, std::int64_t{1} << 40, call.broadcast_a ? 1 : call.batch, m, call.k);
  p.b = operand(p.element, call.b, std::int64_t{2} << 40, call.broadcast_b ? 1 : call.batch, call.k, call.n);
  p.c = operand(sums == rigel::Scalar::other ? numbers : sums, call.c, std::int64_t{3} << 40, call.batch, m, call.n);
  p.semiring_object = call.key.facts->sample;
  p.program = m == 1 ? &call.epilogue_of_one_row : &call.epilogue;
  p.epilogue_object = p.program;
  p.accumulate = call.accumulate && call.key.accumulates;
  p.precision = call.precision;
  p.execution = call.execution;
  return p;
}

/// The spaces of problems in this build: a host space, and CUDA if there are kernels for it.
std::vector<rigel::Space> spaces() {
  std::vector<rigel::Space> list;
  for (const rigel::Space s : {rigel::Space::serial, rigel::Space::openmp, rigel::Space::threads, rigel::Space::cuda})
    if (!rigel::kernels({.name = "reference", .spaces = rigel::bit(s)}).empty()) list.push_back(s);
  return list;
}

Call random_call(Random& random, rigel::Space space) {
  static const std::vector<rigel::KernelInfo> keys = rigel::kernels({.name = "reference", .operation = "contract"});
  constexpr std::array<std::int64_t, 5> batches = {1, 1, 1, 3, 8};
  Call call;
  call.key = pick(random, keys);
  call.batch = pick(random, batches);
  call.n = extent(random, 8192);
  call.k = extent(random, 8192);
  call.a = static_cast<Layout>(random() % 4);
  call.b = static_cast<Layout>(random() % 4);
  call.c = static_cast<Layout>(random() % 4);
  call.broadcast_a = random() % 4 == 0;
  call.broadcast_b = random() % 4 == 0;
  if (random() % 2) call.precision = static_cast<rigel::Precision>(random() % 8);
  if (call.key.element <= rigel::Scalar::f64) {
    const auto kind = random() % 8;
    if (kind == 0) call.epilogue = call.epilogue_of_one_row = rigel::epilogue::scale(0.5);
    if (kind == 1) {
      call.epilogue = residual(call.n, call.n);
      call.epilogue_of_one_row = residual(call.n, 0);
    }
    if (kind == 2) {
      const std::int64_t row_stride = call.n + static_cast<std::int64_t>(random() % 2), offset = random() % 2 ? 4 : 0;
      call.epilogue = rigel::epilogue::relu() | residual(call.n, row_stride, offset);
      call.epilogue_of_one_row = rigel::epilogue::relu() | residual(call.n, 0, offset);
    }
  }
  call.accumulate = random() % 8 == 0;
  call.execution.space = space;
  if (space == rigel::Space::cuda) {
    const Gpu gpu = pick(random, gpus);
    call.execution.compute_capability = gpu.compute_capability;
    call.execution.shared_memory = gpu.shared_memory;
    call.execution.multiprocessors = 20 + static_cast<int>(random() % 140);
  } else {
    call.execution.concurrency = 1 + static_cast<int>(random() % 64);
  }
  return call;
}

std::string class_of(const Contraction& p) { return std::string(bit_class_of(select(p).info)); }

std::string family_of(const Contraction& p) { return select(p).info.family; }

/// Bytes of memory that an operand takes.
double bytes_of(const Operand& o) {
  return static_cast<double>(o.batches) * static_cast<double>(o.rows) * static_cast<double>(o.columns) *
         static_cast<double>(o.size);
}

constexpr int calls = 3000;  // drawn for each space

}  // namespace

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

namespace {

/// A call on a card like an H200, A and B K-major.
Call on_hopper(const char* semiring, rigel::Scalar element, std::int64_t n, std::int64_t k) {
  Call call;
  call.key = rigel::kernels({.name = "reference", .semiring = semiring, .element = element})[0];
  call.n = n;
  call.k = k;
  call.b = Layout::left;
  call.execution = {
      .space = rigel::Space::cuda, .compute_capability = 90, .multiprocessors = 132, .shared_memory = 227 << 10};
  return call;
}

}  // namespace

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

TEST_CASE("explain() says whose rates a predicted time borrows") {
  if (rigel::kernels({.name = "cuda.simt"}).empty()) return;  // this build has none
  Call call = on_hopper("min_plus", rigel::Scalar::f32, 4096, 4096);
  const auto borrows = [&] { return explain(problem(call, 4096)).find("by the rates of sm_90") != std::string::npos; };
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

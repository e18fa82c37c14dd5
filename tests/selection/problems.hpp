// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random problems on hosts and on GPUs of any architecture, as the views of a caller would give them. Nothing runs.
#pragma once

#include <rigel/registry.hpp>
#include <rigel/semiring_info.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace selection {

using rigel::Operand, rigel::Contraction, rigel::Promise;

/// The facts of a GPU on which choices depend (CUDA C++ Programming Guide, table of technical specifications; data sheets):
/// the shared memory of a thread block, and the bandwidth of memory in bytes per second.
struct Gpu {
  int compute_capability, shared_memory;
  double bandwidth;
};
inline constexpr std::array<Gpu, 6> gpus = {{{80, 163 << 10, 2.04e12},
                                             {86, 99 << 10, 0.94e12},
                                             {89, 99 << 10, 1.01e12},
                                             {90, 227 << 10, 4.8e12},
                                             {100, 227 << 10, 8e12},
                                             {120, 99 << 10, 1.8e12}}};
inline constexpr double host_bandwidth = 1e12;

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
inline std::int64_t extent(Random& random, double most) {
  const auto e = static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0, std::log(most))(random)));
  return random() % 2 && e >= 8 ? e / 8 * 8 : e;
}

inline Operand operand(rigel::Scalar type, Layout layout, std::int64_t address, std::int64_t batches, std::int64_t rows,
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
inline rigel::epilogue::Program residual(std::int64_t n, std::int64_t row_stride, std::int64_t offset = 0) {
  rigel::epilogue::Source source;
  source.data = reinterpret_cast<const void*>((std::int64_t{4} << 40) + offset);
  source.type = rigel::Scalar::f32;
  source.row_stride = row_stride;
  source.column_stride = 1;
  source.columns = n;
  return {rigel::epilogue::Step{rigel::epilogue::Kind::add}, source};
}

/// The call's problem with M rows. Nothing reads its addresses.
inline Contraction problem(const Call& call, std::int64_t m) {
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
inline std::vector<rigel::Space> spaces() {
  std::vector<rigel::Space> list;
  for (const rigel::Space s : {rigel::Space::serial, rigel::Space::openmp, rigel::Space::threads, rigel::Space::cuda})
    if (!rigel::kernels({.name = "reference", .spaces = rigel::bit(s)}).empty()) list.push_back(s);
  return list;
}

inline Call random_call(Random& random, rigel::Space space) {
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

inline std::string class_of(const Contraction& p) { return std::string(bit_class_of(select(p).info)); }

inline std::string family_of(const Contraction& p) { return select(p).info.family; }

/// Bytes of memory that an operand takes.
inline double bytes_of(const Operand& o) {
  return static_cast<double>(o.batches) * static_cast<double>(o.rows) * static_cast<double>(o.columns) *
         static_cast<double>(o.size);
}

inline constexpr int calls = 3000;  // drawn for each space

/// A call on a card like an H200, A and B K-major.
inline Call on_hopper(const char* semiring, rigel::Scalar element, std::int64_t n, std::int64_t k) {
  Call call;
  call.key = rigel::kernels({.name = "reference", .semiring = semiring, .element = element})[0];
  call.n = n;
  call.k = k;
  call.b = Layout::left;
  call.execution = {
      .space = rigel::Space::cuda, .compute_capability = 90, .multiprocessors = 132, .shared_memory = 227 << 10};
  return call;
}

}  // namespace selection

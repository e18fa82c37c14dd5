// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call of contract() as the engine sees it, on the operands of a Trial in an execution space's memory. Types are known at run
// time only.
#pragma once

#include "memory.hpp"
#include "trial.hpp"

#include <rigel/detail/execution.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace support {

template <class Exec>
struct Problem {
  using Memory = Kokkos::View<unsigned char*, typename Exec::memory_space>;

  rigel::Contraction p;
  rigel::epilogue::Program program;
  Operands operands;
  Memory a, b, c;

  /// For the semiring of these facts, by its sample object. C holds `facts.result`.
  Problem(const Trial& trial, const rigel::SemiringInfo& facts) : Problem(trial, facts, operands_for(trial, facts)) {}
  Problem(const Trial& trial, const rigel::SemiringInfo& facts, Operands on)
      : program(trial.program(facts.join)),
        operands(std::move(on)),
        a(brought("A", operands.a_bytes)),
        b(brought("B", operands.b_bytes)),
        c(brought("C", operands.c_bytes)) {
    p.semiring = {facts.name, facts.type};
    p.element = facts.element;
    p.accumulator = facts.accumulator;
    p.batch = trial.batch;
    p.m = trial.m;
    p.n = trial.n;
    p.k = trial.k;
    set(p.a, operands.a, a.data(), facts.element);
    set(p.b, operands.b, b.data(), facts.element);
    set(p.c, operands.c, c.data(), facts.result);
    p.semiring_object = facts.sample;
    p.program = &program;
    p.epilogue_object = &program;
    p.accumulate = trial.accumulate;
    p.execution = rigel::detail::execution_of(exec_);
  }
  Problem(const Problem&) = delete;  // p points to its members
  Problem& operator=(const Problem&) = delete;

  /// C's bytes after run(p).
  template <class Run>
  Bytes after(const Run& run) {
    copy_in<Exec>(c.data(), operands.c_bytes.data(), operands.c_bytes.size());
    run(std::as_const(p));
    exec_.fence();
    Bytes bytes(operands.c_bytes.size());
    copy_out<Exec>(bytes.data(), c.data(), bytes.size());
    return bytes;
  }
  /// C's bytes after a run of the kernel of this name.
  Bytes result(const std::string& kernel) {
    return after([&](rigel::Contraction named) {
      named.kernel = kernel;
      rigel::run(named);
    });
  }

 private:
  Exec exec_;

  static Memory brought(const std::string& label, const Bytes& bytes) {
    Memory memory(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), bytes.size());
    copy_in<Exec>(memory.data(), bytes.data(), bytes.size());
    return memory;
  }
  static void set(rigel::Operand& o, const Placement& at, unsigned char* data, rigel::Scalar type) {
    o.type = type;
    o.size = size_of(type);
    o.data = data + at.first * static_cast<std::int64_t>(o.size);
    o.batches = at.batches;
    o.rows = at.rows;
    o.columns = at.columns;
    o.batch_stride = at.batches == 1 ? 0 : at.batch;
    o.row_stride = at.row;
    o.column_stride = at.column;
  }
};

}  // namespace support

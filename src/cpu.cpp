// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/card.hpp>
#include <rigel/contraction.hpp>
#include <rigel/cpu.hpp>

namespace rigel {

const Cpu& table_cpu() {
  static constexpr Cpu row;
  return row;
}

const Cpu& cpu_of(const Execution& execution) {
  if (execution.card && execution.card->cpu) return *execution.card->cpu;
  return table_cpu();
}

double detail::seconds_on_host(const Contraction& p, double pairs_per_cycle) {
  const Cpu& cpu = cpu_of(p.execution);
  const double pairs = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(p.k < 1 ? 1 : p.k);
  return cpu.launch_seconds + pairs / (pairs_per_cycle * cpu.clock * p.execution.concurrency);
}

}  // namespace rigel

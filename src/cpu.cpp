// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/contraction.hpp>
#include <rigel/cpu.hpp>
#include <rigel/profile.hpp>

#include <fstream>

namespace rigel {

const Cpu& table_cpu() {
  static constexpr Cpu row;
  return row;
}

// The processor's name in the contents of /proc/cpuinfo. On AArch64 these have numbers instead: of who made it, and of what.
namespace detail {
std::string cpu_name_in(std::istream& info);
}
std::string detail::cpu_name_in(std::istream& info) {
  std::string maker, part;
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) return line.substr(colon + 2);
    if (line.starts_with("CPU implementer") && maker.empty()) maker = line.substr(colon + 2);
    if (line.starts_with("CPU part") && part.empty()) part = line.substr(colon + 2);
  }
  return maker.empty() || part.empty() ? "host" : "CPU implementer " + maker + ", part " + part;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  return detail::cpu_name_in(info);
}

const Cpu& cpu_of(const Execution& execution) {
  if (execution.card && execution.card->cpu) return *execution.card->cpu;
  if ((bit(execution.space) & host_spaces) == 0) return table_cpu();
  // Never destroyed: calls may come as late as from destructors of static objects.
  static const Cpu& machine = *[] {
    const FoundProfile found = find_profile(cpu_name(), 0);
    auto* const cpu = new Cpu(found.is_used ? with_profile(table_cpu(), found.profile) : table_cpu());
    static const std::string& note = *new std::string(found.note);
    cpu->profile = note;
    return cpu;
  }();
  return machine;
}

double detail::seconds_on_host(const Contraction& p, double pairs_per_cycle) {
  const Cpu& cpu = cpu_of(p.execution);
  const double pairs = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(p.k < 1 ? 1 : p.k);
  return cpu.launch_seconds + pairs / (pairs_per_cycle * cpu.clock * p.execution.concurrency);
}

}  // namespace rigel

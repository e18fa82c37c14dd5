// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times the kernels that cover a problem, by name, back to back on the same matrices. The time is that of the device, or of
// the host if it enqueues more slowly. Reads the options of the programs that do so.
#pragma once

#include <bench/machine.hpp>
#include <bench/parts.hpp>
#include <bench/problems.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace bench {

/// An option of a program, and where its value goes: one that goes to a bool has none, and one to a vector may be repeated.
struct Option {
  std::string name;
  std::variant<bool*, int*, double*, std::uint64_t*, std::string*, std::vector<std::string>*,
               std::function<void(const std::string&)>>
      to;
  bool has_value() const { return !std::holds_alternative<bool*>(to); }
  void set(const std::string& value) const {
    std::visit(
        [&]<class To>(const To& target) {
          if constexpr (std::is_same_v<To, bool*>)
            *target = true;
          else if constexpr (std::is_same_v<To, int*>)
            *target = std::stoi(value);
          else if constexpr (std::is_same_v<To, double*>)
            *target = std::stod(value);
          else if constexpr (std::is_same_v<To, std::uint64_t*>)
            *target = std::stoull(value);
          else if constexpr (std::is_same_v<To, std::string*>)
            *target = value;
          else if constexpr (std::is_same_v<To, std::vector<std::string>*>)
            target->push_back(value);
          else
            target(value);
        },
        to);
  }
};

/// Reads a program's options. Throws if one is unknown or lacks its value.
inline void read_options(int argc, char** argv, std::span<const Option> options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto option = std::ranges::find(options, name, &Option::name);
    const bool is_known = option != options.end(), has_value = !is_known || option->has_value();
    if (has_value && i + 1 == argc) throw std::runtime_error("the option " + name + " has no value");
    if (!is_known) throw std::runtime_error("no option is called '" + name + "'");
    option->set(has_value ? argv[++i] : "");
  }
}

using Clock = std::chrono::steady_clock;

inline constexpr double unknown = -1;

struct Row {
  const rigel::Kernel<rigel::Contraction>* kernel = nullptr;
  double predicted = unknown;
  Parts parts = {};
  rigel::WorkspaceSize workspace = {};
  double seconds = unknown;
  std::string error = {};
};

/// A problem, kernels that cover it, and which of them is chosen and which is fastest.
struct Outcome {
  Spec spec;
  std::string problem;
  double bytes = 0;  // of A, B and C, each element once
  double floor = 0;  // seconds
  std::vector<Row> rows;
  std::size_t chosen = 0, best = 0;
  bool is_complete() const { return !rows.empty() && rows[chosen].seconds > 0; }
  double loss() const { return rows[chosen].seconds / rows[best].seconds; }
};

/// Which kernels of a problem are timed.
enum class Which { all, chosen };

class Runner {
 public:
  explicit Runner(const Exec& exec) : exec_(exec), watch_(exec), bandwidth_(copy_bandwidth(exec)) {}
  const Stopwatch& watch() const { return watch_; }
  double bandwidth() const { return bandwidth_; }

  /// Times kernels of a problem. With a family, only its kernels count, and the chosen one is that of the least predicted
  /// time. If the loss is above 1.1, the chosen and the fastest kernel are timed again, and the smaller time of each counts. A short call
  /// far above its prediction is timed again, too, up to three times: another program's turn on the host can last for all rounds.
  /// Kernels whose prediction is_too_slow() are left out. Returns nothing if the deadline passes before all are timed.
  std::optional<Outcome> run(const Spec& spec, Which which, const std::string& family, Clock::time_point deadline) {
    Outcome o;
    o.spec = spec;
    o.problem = text(spec);
    const Instance instance(exec_, spec, pool_);
    o.bytes = instance.bytes();
    find_kernels(o, instance, family);
    if (o.rows.empty()) return o;
    if (which == Which::chosen) o.rows = {o.rows[std::exchange(o.chosen, 0)]};
    const double least = std::ranges::min(o.rows, {}, &Row::predicted).predicted;
    for (Row& row : o.rows) {
      if (Clock::now() > deadline) return {};
      if (is_too_slow(row.predicted, least)) continue;
      time(row, instance);
      for (int again = 0; again < 3 && row.seconds < 100e-6 && row.seconds > 2.5 * row.predicted && Clock::now() < deadline;
           ++again) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        time(row, instance);
      }
    }
    find_best(o);
    if (o.is_complete() && o.loss() > 1.1) {
      time(o.rows[o.chosen], instance);
      time(o.rows[o.best], instance);
      find_best(o);
    }
    return o;
  }

 private:
  static void find_kernels(Outcome& o, const Instance& instance, const std::string& family) {
    for (const auto& candidate : rigel::candidates(instance.problem())) {
      if (!candidate.status || !(family.empty() || candidate.kernel->info.family == family)) continue;
      if (candidate.chosen) o.chosen = o.rows.size();
      o.rows.push_back({.kernel = candidate.kernel,
                        .predicted = candidate.seconds,
                        .parts = parts_of(*candidate.kernel, instance.problem()),
                        .workspace = candidate.workspace});
    }
    if (!family.empty()) o.chosen = std::ranges::min_element(o.rows, {}, &Row::predicted) - o.rows.begin();
  }

  static void find_best(Outcome& o) {
    const auto order = [](const Row& row) { return row.seconds > 0 ? row.seconds : INFINITY; };
    o.best = std::ranges::min_element(o.rows, {}, order) - o.rows.begin();
  }

  // Times a call, and keeps the smaller of this and earlier times.
  void time(Row& row, const Instance& instance) {
    try {
      rigel::Contraction p = instance.problem();
      p.workspace = {.data = workspace_.at_least(row.workspace.bytes),
                     .bytes = row.workspace.bytes,
                     .host_data = host_workspace_.at_least(row.workspace.host_bytes),
                     .host_bytes = row.workspace.host_bytes};
      const auto call = [&] { rigel::run(*row.kernel, p); };
      const double seconds = seconds_of(watch_, call);
      row.seconds = row.seconds > 0 ? std::min(row.seconds, seconds) : seconds;
    } catch (const std::exception& e) {
      row.error = e.what();
    }
  }

  Exec exec_;
  Stopwatch watch_;
  double bandwidth_;
  Pool pool_;
  Memory workspace_;
  HostMemory host_workspace_;
};

/// Writes one row per problem and kernel. `context` holds members of a JSON object, after the program and the machine.
inline void write_json(const std::string& path, const char* program, const std::string& context, const Exec& exec,
                       const std::vector<Outcome>& outcomes) {
  std::ofstream file(path);
  file << "{\"context\": {\"program\": " << quoted(program) << ", " << context << ", " << machine(exec) << "},\n\"rows\": [";
  const auto number = [](double x) { return x < 0 ? std::string("null") : (std::ostringstream() << x).str(); };
  const char* separator = "\n";
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    for (std::size_t r = 0; r < outcomes[i].rows.size(); ++r) {
      const Outcome& o = outcomes[i];
      const Row& row = o.rows[r];
      file << separator << "{\"index\": " << i << ", \"problem\": " << quoted(o.problem)
           << ", \"kind\": " << quoted(kind_names[static_cast<int>(o.spec.kind)])
           << ", \"data\": " << quoted(name(o.spec.data)) << ", \"floor\": " << o.floor
           << ", \"kernel\": " << quoted(row.kernel->info.name) << ", \"family\": " << quoted(row.kernel->info.family)
           << ", \"chosen\": " << (r == o.chosen ? "true" : "false") << ", \"predicted\": " << number(row.predicted)
           << ", \"seconds\": " << number(row.seconds) << ", \"error\": " << quoted(row.error) << json_of(row.parts) << '}';
      separator = ",\n";
    }
  file << "\n]}\n";
  if (!file.flush()) throw std::runtime_error("the file '" + path + "' cannot be written");
}

/// The value at a share of the sorted values, as bench/report.py takes it.
inline double quantile(const std::vector<double>& sorted, double share) {
  return sorted[std::min(static_cast<std::size_t>(share * static_cast<double>(sorted.size())), sorted.size() - 1)];
}

}  // namespace bench

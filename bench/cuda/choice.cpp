// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures how good choices and predictions of kernels are, on the default CUDA device, for random problems or named ones:
//
//     loss = seconds of the chosen kernel / least seconds of all kernels that cover the problem
//     byte floor = bytes of A, B and C, each once / bandwidth of a copy + a launch
//
//     bench_choice [--seed 1] [--count 300] [--seconds 60] [--json <file>] [--commit <hash>]
//     bench_choice --shape <problem> [--shape <problem>]… | --only <file of problems, one a line>
//
// problems.hpp defines how a problem is written. For named problems the program prints all kernels. Random problems depend on
// the seed and the zoo, but on no prediction, so two versions of the library get the same ones.
//
// The program calls every kernel by name, back to back on the same matrices, between two events. The time is that of the
// device, or of the host if it enqueues more slowly. If the loss is above 1.1, it times the chosen and the fastest kernel
// again and keeps the smaller time of each. It skips kernels whose prediction is above 20 ms and 30 times the least one, or
// above 50 ms and four times the least one. The exit status is 1 if a call fails, 77 if there is no GPU.
#include <bench/cuda/machine.hpp>
#include <bench/cuda/problems.hpp>

#include <chrono>
#include <fstream>
#include <map>
#include <optional>

namespace {

using bench::Exec, bench::Instance, bench::Spec;
using Clock = std::chrono::steady_clock;

constexpr double unknown = -1;
constexpr double long_enough = 5e-3;  // seconds; one measurement of such a call is enough

// Whether a kernel's predicted time is too long to measure. The least prediction never is.
bool is_too_slow(double predicted, double least) {
  return (predicted > 20e-3 && predicted > 30 * least) || (predicted > 50e-3 && predicted > 4 * least);
}

__global__ void empty() {}

struct Row {
  const rigel::Kernel<rigel::Contraction>* kernel = nullptr;
  double predicted = unknown;
  std::size_t workspace = 0;
  double seconds = unknown;
  std::string error = {};
};

/// A problem, the kernels that cover it, and which of them is chosen and which is fastest.
struct Outcome {
  std::string problem;
  double floor = 0;
  std::vector<Row> rows;
  std::size_t chosen = 0, best = 0;
  bool is_complete() const { return !rows.empty() && rows[chosen].seconds > 0; }
  double loss() const { return rows[chosen].seconds / rows[best].seconds; }
};

class Runner {
 public:
  explicit Runner(const Exec& exec) : exec_(exec), watch_(exec) {
    constexpr std::size_t gibibyte = 1 << 30;
    unsigned char *const to = memory_[0].at_least(gibibyte), *const from = memory_[1].at_least(gibibyte);
    const auto copy = [&] { cudaMemcpyAsync(to, from, gibibyte, cudaMemcpyDeviceToDevice, exec_.cuda_stream()); };
    bandwidth_ = 2 * gibibyte / median_seconds(copy, 20);
    launch_ = median_seconds([&] { empty<<<1, 32, 0, exec_.cuda_stream()>>>(); }, 100);
  }
  double bandwidth() const { return bandwidth_; }
  double launch() const { return launch_; }

  /// Times the kernels of a problem. Returns nothing if the deadline passes before all of them are timed.
  std::optional<Outcome> run(const Spec& spec, Clock::time_point deadline) {
    Outcome o;
    o.problem = text(spec);
    const Instance instance(exec_, spec, memory_);
    o.floor = instance.bytes() / bandwidth_ + launch_;
    double least = INFINITY;
    for (const auto& candidate : rigel::candidates(instance.problem())) {
      if (!candidate.status) continue;
      if (candidate.chosen) o.chosen = o.rows.size();
      o.rows.push_back({candidate.kernel, candidate.seconds, candidate.workspace.bytes});
      least = std::min(least, candidate.seconds);
    }
    if (o.rows.empty()) return o;
    for (Row& row : o.rows) {
      if (Clock::now() > deadline) return {};
      if (!is_too_slow(row.predicted, least)) time(row, instance);
    }
    const auto order = [](const Row& row) { return row.seconds > 0 ? row.seconds : INFINITY; };
    const auto find_best = [&] { o.best = std::ranges::min_element(o.rows, {}, order) - o.rows.begin(); };
    find_best();
    if (o.is_complete() && o.loss() > 1.1) {
      time(o.rows[o.chosen], instance);
      time(o.rows[o.best], instance);
      find_best();
    }
    return o;
  }

 private:
  template <class Call>
  double median_seconds(const Call& call, int calls) const {
    std::array<double, 3> rounds;
    for (double& seconds : rounds)
      seconds = watch_.seconds([&] {
        for (int i = 0; i < calls; ++i) call();
      }) / calls;
    std::ranges::sort(rounds);
    return rounds[1];
  }

  // Times a call, and keeps the smaller of this and earlier times.
  void time(Row& row, const Instance& instance) {
    try {
      rigel::Contraction p = instance.problem();
      p.workspace.data = workspace_.at_least(row.workspace);
      p.workspace.bytes = row.workspace;
      const auto call = [&] { rigel::run(*row.kernel, p); };
      call();
      double seconds = watch_.seconds(call);
      if (seconds < long_enough) seconds = median_seconds(call, std::clamp(static_cast<int>(200e-6 / seconds), 1, 20));
      if (const cudaError_t status = cudaGetLastError()) throw rigel::Error(rigel::Code::device, cudaGetErrorString(status));
      row.seconds = row.seconds > 0 ? std::min(row.seconds, seconds) : seconds;
    } catch (const std::exception& e) {
      row.error = e.what();
    }
  }

  Exec exec_;
  bench::Stopwatch watch_;
  std::array<bench::Memory, 3> memory_;
  bench::Memory workspace_;
  double bandwidth_ = 0, launch_ = 0;
};

void print_row(const char* what, const Row& row) {
  std::printf("  %-7s %-52s %10.1f %10.1f us%s%s\n", what, row.kernel->info.name.c_str(), 1e6 * row.predicted,
              1e6 * row.seconds, row.error.empty() ? "" : "  failed: ", row.error.c_str());
}

void print_quantiles(const char* what, std::vector<double> values) {
  if (values.empty()) return;
  std::ranges::sort(values);
  const auto quantile = [&](double q) { return values[static_cast<std::size_t>(q * (values.size() - 1) + 0.5)]; };
  std::printf("%-28s %8.3f %8.3f %8.3f %8.3f %8.3f %8.3f\n", what, values.front(), quantile(.1), quantile(.5), quantile(.9),
              quantile(.99), values.back());
}

void print_all_kernels(const Outcome& o) {
  std::printf("%s: byte floor %.1f us; predicted and measured:\n", o.problem.c_str(), 1e6 * o.floor);
  for (std::size_t i = 0; i < o.rows.size(); ++i)
    print_row(i == o.chosen ? (i == o.best ? "* best" : "*") : i == o.best ? "best" : "", o.rows[i]);
}

void print_worst(std::vector<const Outcome*> outcomes, std::size_t count) {
  std::ranges::sort(outcomes, std::greater{}, &Outcome::loss);
  outcomes.resize(std::min(count, outcomes.size()));
  std::printf("\nthe worst: loss, problem, chosen and best kernel, each with predicted and measured us\n");
  for (const Outcome* o : outcomes) {
    const Row &chosen = o->rows[o->chosen], &best = o->rows[o->best];
    std::printf("%7.3f  %s  %s %.1f %.1f  %s %.1f %.1f\n", o->loss(), o->problem.c_str(), chosen.kernel->info.name.c_str(),
                1e6 * chosen.predicted, 1e6 * chosen.seconds, best.kernel->info.name.c_str(), 1e6 * best.predicted,
                1e6 * best.seconds);
  }
}

/// Returns how many kernels failed.
int print_summary(const std::vector<Outcome>& outcomes) {
  std::vector<const Outcome*> complete;
  std::vector<double> losses, predictions, floors;
  std::map<std::string, int> families;
  long kernels = 0, untimed = 0, failed = 0, uncovered = 0;
  for (const Outcome& o : outcomes) {
    for (const Row& row : o.rows) {
      ++kernels;
      failed += !row.error.empty();
      untimed += row.error.empty() && row.seconds < 0;
      if (!row.error.empty())
        std::printf("failed: %s %s: %s\n", o.problem.c_str(), row.kernel->info.name.c_str(), row.error.c_str());
    }
    uncovered += o.rows.empty();
    if (!o.is_complete()) continue;
    const Row& chosen = o.rows[o.chosen];
    complete.push_back(&o);
    losses.push_back(o.loss());
    predictions.push_back(chosen.predicted / chosen.seconds);
    floors.push_back(chosen.seconds / o.floor);
    ++families[chosen.kernel->info.family];
  }
  std::printf(
      "%zu problems, %ld of them covered by no kernel; %ld kernels: %ld not timed, since predicted too slow, %ld failed\n",
      outcomes.size(), uncovered, kernels, untimed, failed);
  const auto above = [&](double limit) { return std::ranges::count_if(losses, [=](double x) { return x > limit; }); };
  std::printf("loss above 1.2: %td, above 1.5: %td\nchosen:", above(1.2), above(1.5));
  families.insert({{"portable", 0}, {"reference", 0}});
  for (const auto& [family, count] : families) std::printf(" %s %d", family.c_str(), count);
  std::printf("\n%-28s %8s %8s %8s %8s %8s %8s\n", "", "least", "10 %", "50 %", "90 %", "99 %", "most");
  print_quantiles("loss", losses);
  print_quantiles("predicted / measured", predictions);
  print_quantiles("measured / byte floor", floors);
  print_worst(complete, 40);
  return static_cast<int>(failed);
}

struct Options {
  std::uint64_t seed = 1;
  int count = 300;
  double seconds = 60;
  std::string json, commit;
  std::vector<std::string> named;
};

// Writes one row per problem and kernel.
void write_json(const Options& options, const Exec& exec, const Runner& runner, const std::vector<Outcome>& outcomes) {
  std::ofstream file(options.json);
  file << "{\"context\": {\"program\": \"bench_choice\", \"commit\": " << bench::quoted(options.commit)
       << ", \"seed\": " << options.seed << ", \"bytes_per_second\": " << runner.bandwidth()
       << ", \"launch_seconds\": " << runner.launch() << ", " << bench::machine(exec) << "},\n\"rows\": [";
  const auto number = [](double x) { return x < 0 ? std::string("null") : (std::ostringstream() << x).str(); };
  const char* separator = "\n";
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    for (std::size_t r = 0; r < outcomes[i].rows.size(); ++r) {
      const Row& row = outcomes[i].rows[r];
      file << separator << "{\"index\": " << i << ", \"problem\": " << bench::quoted(outcomes[i].problem)
           << ", \"byte_floor\": " << outcomes[i].floor << ", \"kernel\": " << bench::quoted(row.kernel->info.name)
           << ", \"family\": " << bench::quoted(row.kernel->info.family)
           << ", \"chosen\": " << (r == outcomes[i].chosen ? "true" : "false")
           << ", \"predicted\": " << number(row.predicted) << ", \"seconds\": " << number(row.seconds)
           << ", \"error\": " << bench::quoted(row.error) << '}';
      separator = ",\n";
    }
  file << "\n]}\n";
  if (!file.flush()) throw std::runtime_error("the file '" + options.json + "' cannot be written");
}

Options read(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc) throw std::runtime_error("the option " + option + " has no value");
    const std::string value = argv[i + 1];
    if (option == "--seed")
      o.seed = std::stoull(value);
    else if (option == "--count")
      o.count = std::stoi(value);
    else if (option == "--seconds")
      o.seconds = std::stod(value);
    else if (option == "--json")
      o.json = value;
    else if (option == "--commit")
      o.commit = value;
    else if (option == "--shape")
      o.named.push_back(value);
    else if (option == "--only") {
      std::ifstream file(value);
      if (!file) throw std::runtime_error("the file '" + value + "' cannot be read");
      for (std::string line; std::getline(file, line);)
        if (!line.empty()) o.named.push_back(line);
    } else
      throw std::runtime_error("no option is called '" + option + "'");
  }
  return o;
}

/// Returns how many kernels failed.
int measure(const Options& options) {
  const Exec exec;
  Runner runner(exec);
  std::printf("%s, %s; copies %.0f GB/s, a launch %.2f us; seed %llu\n", exec.cuda_device_prop().name, __VERSION__,
              1e-9 * runner.bandwidth(), 1e6 * runner.launch(), static_cast<unsigned long long>(options.seed));
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  const std::vector<rigel::KernelInfo> references = bench::references();
  const int count = options.named.empty() ? options.count : static_cast<int>(options.named.size());
  std::vector<Outcome> outcomes;
  for (int i = 0; i < count; ++i) {
    const bool is_named = !options.named.empty();
    const Spec spec = is_named ? bench::parse(options.named[i]) : bench::Draw(options.seed, i).problem(references);
    const std::optional<Outcome> outcome = runner.run(spec, deadline);
    if (!outcome) break;
    if (is_named) print_all_kernels(*outcome);
    outcomes.push_back(*outcome);
  }
  std::printf("reached %zu of %d problems in %g s\n", outcomes.size(), count, options.seconds);
  const int failed = print_summary(outcomes);
  if (!options.json.empty()) write_json(options, exec, runner, outcomes);
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::has_gpu("bench_choice")) return 77;
  const Kokkos::ScopeGuard kokkos;
  try {
    return measure(read(argc, argv)) == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_choice: %s\n", e.what());
    return 1;
  }
}

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
// runner.hpp says how kernels are timed, and which ones are left out. The exit status is 1 if a call fails, 77 if there is no
// GPU.
#include <bench/cuda/device.hpp>
#include <bench/runner.hpp>

#include <map>

namespace {

using bench::Clock, bench::Exec, bench::Outcome, bench::Row, bench::Runner;

__global__ void empty() {}

double launch_seconds(const Exec& exec, const bench::Stopwatch& watch) {
  return bench::seconds_of(watch, [&] { empty<<<1, 32, 0, exec.cuda_stream()>>>(); });
}

void print_row(const char* what, const Row& row) {
  std::printf("  %-7s %-52s %10.1f %10.1f us%s%s\n", what, row.kernel->info.name.c_str(), 1e6 * row.predicted,
              1e6 * row.seconds, row.error.empty() ? "" : "  failed: ", row.error.c_str());
}

void print_quantiles(const char* what, std::vector<double> values) {
  if (values.empty()) return;
  std::ranges::sort(values);
  const auto quantile = [&](double share) { return bench::quantile(values, share); };
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

Options read(int argc, char** argv) {
  Options o;
  const auto read_lines = [&](const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("the file '" + path + "' cannot be read");
    for (std::string line; std::getline(file, line);)
      if (!line.empty()) o.named.push_back(line);
  };
  const bench::Option options[] = {{"--seed", &o.seed},   {"--count", &o.count},   {"--seconds", &o.seconds},
                                   {"--json", &o.json},   {"--commit", &o.commit}, {"--shape", &o.named},
                                   {"--only", read_lines}};
  bench::read_options(argc, argv, options);
  return o;
}

/// Returns how many kernels failed.
int measure(const Options& options) {
  const Exec exec;
  Runner runner(exec);
  const double launch = launch_seconds(exec, runner.watch());
  std::printf("%s, %s; copies %.0f GB/s, a launch %.2f us; seed %llu\n", exec.cuda_device_prop().name, __VERSION__,
              1e-9 * runner.bandwidth(), 1e6 * launch, static_cast<unsigned long long>(options.seed));
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  const std::vector<bench::Subject> zoo = bench::zoo();
  const int count = options.named.empty() ? options.count : static_cast<int>(options.named.size());
  std::vector<Outcome> outcomes;
  for (int i = 0; i < count; ++i) {
    const bool is_named = !options.named.empty();
    const bench::Spec spec = is_named ? bench::parse(options.named[i], zoo) : bench::Draw(options.seed, i).problem(zoo);
    std::optional<Outcome> outcome = runner.run(spec, bench::Which::all, "", deadline);
    if (!outcome) break;
    outcome->floor = outcome->bytes / runner.bandwidth() + launch;
    if (is_named) print_all_kernels(*outcome);
    outcomes.push_back(*outcome);
  }
  std::printf("reached %zu of %d problems in %g s\n", outcomes.size(), count, options.seconds);
  const int failed = print_summary(outcomes);
  if (!options.json.empty()) {
    std::ostringstream context;
    context << "\"commit\": " << bench::quoted(options.commit) << ", \"seed\": " << options.seed
            << ", \"bytes_per_second\": " << runner.bandwidth() << ", \"launch_seconds\": " << launch;
    write_json(options.json, "bench_choice", context.str(), exec, outcomes);
  }
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

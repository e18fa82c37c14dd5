// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A random walk through the problems that calls with default options can have: all semirings and types, with_argument and a
// functor of a user, all layouts, six kinds of shape. For each problem it compares the time of the chosen kernel with a floor
// (floor.hpp).
//
//     bench_walk [--seed 1] [--count 500] [--seconds 120] [--kernel <family>] [--forced] [--accumulate] [--data <name>] [--json <file>]
//                [--commit <hash>]
//
// --kernel  takes the kernel of the least predicted time from that family, such as portable, instead of the chosen one
// --forced  times all kernels that cover a problem, and compares the chosen one with the fastest
// --accumulate  adds to C where a semiring can and there is no epilogue
// --data  data for all problems whose type can hold it, such as nan_in_rows or ordinary (Data in problems.hpp); the others' is ordinary.
//         Without it, one problem of ten has special data
//
// It runs on Kokkos's default execution space: a GPU, or the threads of the host. Problems are those of bench_choice
// (problems.hpp) with default options, on the host smaller ones; runner.hpp says how kernels are timed. It prints quantiles of
// time / floor, and the worst problems of ordinary and of special data; floors do not know of data. Matrices that fit into a cache stay there, so small times can be below the floor. The
// exit status is 1 if a call fails, 77 if Kokkos is built for a GPU and there is none.
#include <bench/functors.hpp>
#include <bench/runner.hpp>
#ifdef KOKKOS_ENABLE_CUDA
#include <bench/cuda/floor.hpp>
#else
#include <bench/host/floor.hpp>
#endif

#include <map>

namespace {

using bench::Clock, bench::Exec, bench::Outcome, bench::Row, bench::Runner, bench::Spec;

struct Options {
  std::uint64_t seed = 1;
  int count = 500;
  double seconds = 120;
  std::string family, json, commit;
  std::optional<bench::Data> data;
  bool forced = false, accumulate = false;
};

Options read(int argc, char** argv) {
  Options o;
  const bench::Option options[] = {{"--forced", &o.forced},
                                   {"--accumulate", &o.accumulate},
                                   {"--seed", &o.seed},
                                   {"--count", &o.count},
                                   {"--seconds", &o.seconds},
                                   {"--kernel", &o.family},
                                   {"--data", [&](const std::string& name) { o.data = bench::data_of(name); }},
                                   {"--json", &o.json},
                                   {"--commit", &o.commit}};
  bench::read_options(argc, argv, options);
  return o;
}

/// The i-th random problem, with the options that a call has by default.
Spec problem(const Options& options, int i, const std::vector<bench::Subject>& subjects) {
  bench::Draw draw(options.seed, static_cast<std::uint64_t>(i));
  Spec s = draw.problem(subjects);
  s.data = options.data.value_or(draw.data(s.subject));
  if (!bench::can_hold(s.subject, s.data)) s.data = bench::Data::ordinary;
  s.precision = rigel::Precision::automatic;
  s.require = rigel::Promise::none;
  s.may_cancel = false;
  s.accumulate = options.accumulate && s.subject.reference.accumulates && s.step == bench::Step::none && !s.subject.bind;
  return s;
}

double floor_of(const Outcome& o, const Runner& runner, const bench::Rates& rates) {
  const auto& work = bench::work_of<bench::Unit>(bench::work, o.spec);
  const double seconds = bench::pairs(o.spec) * work.instructions / rates.of(work.unit);
  return std::max(o.bytes / runner.bandwidth(), seconds) + bench::call_seconds;
}

double ratio(const Outcome& o) { return o.rows[o.chosen].seconds / o.floor; }

void print_quantiles(const std::string& what, std::vector<double> values) {
  std::ranges::sort(values);
  std::printf("%-28s %8zu", what.c_str(), values.size());
  for (const double share : {0.5, 0.9, 0.99, 1.}) std::printf(" %8.3f", bench::quantile(values, share));
  std::printf("\n");
}

/// Quantiles of time / floor by what `group` returns.
template <class Group>
void print_groups(const std::vector<const Outcome*>& outcomes, const Group& group) {
  std::map<std::string, std::vector<double>> ratios;
  for (const Outcome* o : outcomes) ratios[group(*o)].push_back(ratio(*o));
  for (const auto& [name, values] : ratios) print_quantiles(name, values);
}

bool is_special(const Outcome& o) { return o.spec.data != bench::Data::ordinary; }

void print_worst(std::vector<const Outcome*> outcomes, bool special) {
  std::erase_if(outcomes, [&](const Outcome* o) { return is_special(*o) != special; });
  if (outcomes.empty()) return;
  std::ranges::sort(outcomes, std::greater{}, [](const Outcome* o) { return ratio(*o); });
  outcomes.resize(std::min<std::size_t>(50, outcomes.size()));
  std::printf("\nthe worst of %s data: time / floor, problem, chosen kernel, us predicted, measured, and of the floor\n",
              special ? "special" : "ordinary");
  for (const Outcome* o : outcomes) {
    const Row& chosen = o->rows[o->chosen];
    std::printf("%8.2f  %-48s %-44s %10.1f %10.1f %10.1f\n", ratio(*o), o->problem.c_str(), chosen.kernel->info.name.c_str(),
                1e6 * chosen.predicted, 1e6 * chosen.seconds, 1e6 * o->floor);
  }
}

void print_losses(const std::vector<const Outcome*>& outcomes) {
  std::vector<double> losses;
  for (const Outcome* o : outcomes) losses.push_back(o->loss());
  const auto near = std::ranges::count_if(losses, [](double loss) { return loss <= 1.2; });
  std::printf("\n");
  print_quantiles("chosen / fastest kernel", losses);
  std::printf("within 1.2 of the fastest: %.1f %%\n", 100. * static_cast<double>(near) / static_cast<double>(losses.size()));
}

/// Returns how many kernels failed.
int print_summary(const std::vector<Outcome>& outcomes, bool forced) {
  std::vector<const Outcome*> complete;
  int failed = 0;
  std::size_t uncovered = 0;
  for (const Outcome& o : outcomes) {
    uncovered += o.rows.empty();
    if (o.is_complete()) complete.push_back(&o);
    for (const Row& row : o.rows) {
      if (row.error.empty()) continue;
      ++failed;
      std::printf("failed: %s %s: %s\n", o.problem.c_str(), row.kernel->info.name.c_str(), row.error.c_str());
    }
  }
  std::printf("%zu problems: %zu timed, %zu covered by no kernel; %d kernels failed\n", outcomes.size(), complete.size(),
              uncovered, failed);
  if (complete.empty()) return failed;
  std::printf("%-28s %8s %8s %8s %8s %8s\n", "time / floor", "problems", "50 %", "90 %", "99 %", "worst");
  print_groups(complete, [](const Outcome&) { return std::string("all"); });
  print_groups(complete, [](const Outcome& o) { return std::string(is_special(o) ? "special data" : "ordinary data"); });
  if (std::ranges::any_of(complete, [](const Outcome* o) { return is_special(*o); }))
    print_groups(complete, [](const Outcome& o) { return std::string("data: ") + bench::name(o.spec.data); });
  print_groups(complete, [](const Outcome& o) { return std::string(bench::kind_names[static_cast<int>(o.spec.kind)]); });
  print_groups(complete, [](const Outcome& o) { return o.spec.subject.semiring; });
  if (forced) print_losses(complete);
  for (const bool special : {false, true}) print_worst(complete, special);
  return failed;
}

/// Times problems until there are enough of them or the time is over.
std::vector<Outcome> walk(const Options& options, Runner& runner, const bench::Rates& rates) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  std::vector<bench::Subject> subjects = bench::zoo();
  for (const bench::Subject& functor : bench::functors()) subjects.push_back(functor);
  const auto which = options.forced ? bench::Which::all : bench::Which::chosen;
  std::vector<Outcome> outcomes;
  for (int i = 0; i < options.count; ++i) {
    std::optional<Outcome> outcome = runner.run(problem(options, i, subjects), which, options.family, deadline);
    if (!outcome) break;
    outcome->floor = floor_of(*outcome, runner, rates);
    outcomes.push_back(std::move(*outcome));
  }
  std::printf("reached %zu of %d problems in %g s\n", outcomes.size(), options.count, options.seconds);
  return outcomes;
}

/// Returns how many kernels failed.
int measure(const Options& options) {
  const Exec exec;
  Runner runner(exec);
  const bench::Rates rates(exec);
  std::printf("%s; copies %.0f GB/s; seed %llu\n", bench::machine(exec).c_str(), 1e-9 * runner.bandwidth(),
              static_cast<unsigned long long>(options.seed));
  const std::vector<Outcome> outcomes = walk(options, runner, rates);
  const int failed = print_summary(outcomes, options.forced);
  if (!options.json.empty()) {
    std::ostringstream context;
    context << "\"commit\": " << bench::quoted(options.commit) << ", \"seed\": " << options.seed
            << ", \"family\": " << bench::quoted(options.family)
            << ", \"data\": " << bench::quoted(options.data ? bench::name(*options.data) : "drawn")
            << ", \"bytes_per_second\": " << runner.bandwidth();
    write_json(options.json, "bench_walk", context.str(), exec, outcomes);
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef KOKKOS_ENABLE_CUDA
  if (!bench::has_gpu("bench_walk")) return 77;
#endif
  try {
    const Options options = read(argc, argv);
    const Kokkos::ScopeGuard kokkos;
    return measure(options) == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_walk: %s\n", e.what());
    return 1;
  }
}

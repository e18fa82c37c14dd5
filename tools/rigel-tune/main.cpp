// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel-tune: measures a GPU and the host, prints what it found next to the tables, and writes profiles (rigel/profile.hpp).
#include "check.hpp"
#include "host.hpp"
#ifdef KOKKOS_ENABLE_CUDA
#include "gpu.hpp"
#endif

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <unistd.h>

namespace {

constexpr const char* usage =
    R"(rigel-tune [option]...: measures devices, and writes a profile for each, which the library then reads

  --gpu              only Kokkos's default GPU
  --host             only the host: all threads that Kokkos has
  --dry-run          prints, and writes nothing
  --output <file>    the profile goes there, with --gpu or --host; else to $XDG_CONFIG_HOME/rigel/<device>.json or ~/.config/rigel
  --seconds <time>   for problems that compare the choices of the profile with those of the table: 30; 0 for none
  --seed <number>    of these problems: 1
  --help             this text

A profile whose choices are worse than the table's is not written. The whole takes less than three minutes on an idle machine.
)";

struct Options {
  bool gpu = false, host = false, dry_run = false;
  std::string output;
  double seconds = 30;
  std::uint64_t seed = 1;
};

Options read(int argc, char** argv) {
  Options o;
  const bench::Option options[] = {{"--gpu", &o.gpu},       {"--host", &o.host},       {"--dry-run", &o.dry_run},
                                   {"--output", &o.output}, {"--seconds", &o.seconds}, {"--seed", &o.seed}};
  bench::read_options(argc, argv, options);
  if (!o.gpu && !o.host) o.gpu = o.host = true;
  if (o.gpu && o.host && !o.output.empty()) throw std::runtime_error("--output needs one of --gpu and --host");
  return o;
}

void write(const Options& o, const rigel::Profile& profile) {
  const std::string text = text_of(profile);
  rigel::parse_profile(text);  // what it would refuse is not written
  if (o.dry_run) {
    std::printf("%s", text.c_str());
    return;
  }
  const std::filesystem::path path = o.output.empty() ? rigel::profile_path(profile.device) : o.output;
  if (path.empty()) throw std::runtime_error("neither XDG_CONFIG_HOME nor HOME is a folder, expected --output");
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    throw std::runtime_error("'" + path.string() + "' is no file, expected the name of one");
  // Programs that read the profile meanwhile see the former or this one, whole.
  const std::filesystem::path temporary = path.string() + "." + std::to_string(getpid());
  std::ofstream file(temporary);
  file << text;
  file.close();
  if (file) std::filesystem::rename(temporary, path, error);
  if (!file || error) {
    std::filesystem::remove(temporary, error);
    throw std::runtime_error("the file '" + path.string() + "' cannot be written");
  }
  std::printf("wrote %s\n", path.c_str());
}

/// Whether the profile's choices are as good as the table's, on the problems of --seconds.
bool is_as_good(const Options& o, const rigel::Card& table, const rigel::Card& tuned) {
  constexpr double noise = 1.01;
  if (o.seconds == 0) return true;
  const tune::Check check = tune::check(table, tuned, o.seconds, o.seed);
  if (check.table.losses.empty()) throw std::runtime_error("no problem was timed in that many seconds, expected more");
  std::printf("%zu problems, all kernels timed:\n  %-10s %22s %26s\n", check.table.losses.size(), "choices by",
              "within 1.2 of the best", "geometric mean of the loss");
  for (const auto& [name, quality] : {std::pair{"table", &check.table}, std::pair{"profile", &check.profile}})
    std::printf("  %-10s %20.1f %% %26.4f\n", name, 100 * quality->within(1.2), quality->geometric_mean());
  return check.profile.geometric_mean() <= noise * check.table.geometric_mean();
}

/// Prints a device's rates and writes its profile, unless `is_good` says that the table is better. Returns whether all is well.
template <class IsGood>
bool finish(const Options& o, const rigel::Profile& table, const std::vector<tune::Rate>& rates, const IsGood& is_good) {
  const rigel::Profile profile = tune::profile_with(table, rates);
  tune::print(table, rates);
  std::fflush(stdout);
  if (!is_good(profile)) {
    std::printf("the table's rates choose better: no profile is written\n");
    return false;
  }
  write(o, profile);
  return true;
}

bool tune_host(const Options& o) {
  const std::string name = rigel::cpu_name();
  std::printf("%s, %d threads:\n", name.c_str(), tune::Host().concurrency());
  const rigel::Cpu& table = rigel::table_cpu();
  return finish(o, profile_of(name, table), tune::rates_of_host(), [&](const rigel::Profile& profile) {
    if constexpr (bench::on_gpu) return true;  // problems run on Kokkos's default space
    const rigel::Cpu tuned = with_profile(table, profile);
    return is_as_good(o, {.cpu = &table}, {.cpu = &tuned});
  });
}

#ifdef KOKKOS_ENABLE_CUDA
bool tune_gpu(const Options& o) {
  const bench::Exec exec;
  const rigel::Card& card = rigel::detail::card_of_device(exec.cuda_device());
  const std::string name = exec.cuda_device_prop().name, row(card.name);
  std::printf("%s, sm_%d, %d multiprocessors; the table's row: %s\n", name.c_str(), card.compute_capability,
              card.multiprocessors, row.empty() ? "its architecture's, scaled by what the driver says" : row.c_str());
  return finish(o, profile_of(name, card), tune::rates_of_gpu(exec, card),
                [&](const rigel::Profile& profile) { return is_as_good(o, card, with_profile(card, profile)); });
}
#endif

bool tune_all(const Options& o) {
  bool ok = true;
  if (o.host) ok = tune_host(o) && ok;
#ifdef KOKKOS_ENABLE_CUDA
  if (o.gpu) ok = tune_gpu(o) && ok;
#else
  if (o.gpu && !o.host) throw std::runtime_error("this Kokkos is built without CUDA");
#endif
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::fputs(usage, stdout);
    return 0;
  }
  setenv("RIGEL_PROFILE", "off", 1);  // measurements are compared with the tables
#ifdef KOKKOS_ENABLE_CUDA
  if (!bench::has_gpu("rigel-tune")) return 77;
#endif
  try {
    const Options options = read(argc, argv);
    const Kokkos::ScopeGuard kokkos;
    return tune_all(options) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rigel-tune: %s\n", e.what());
    return 1;
  }
}

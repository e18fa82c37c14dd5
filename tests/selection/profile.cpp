// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Profiles: what is read, what is refused and in which words, where files are looked for, and what a profile changes.
#include "problems.hpp"

#include <rigel/profile.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using rigel::Card, rigel::Contraction, rigel::Cpu, rigel::Kernel, rigel::Profile;
using namespace selection;

namespace {

const Card& h200() { return rigel::card_of_architecture(90); }

/// The text with `by` in place of `what`, which must occur.
std::string with(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::string gpu_text() { return text_of(rigel::profile_of("NVIDIA H200", h200())); }
std::string host_text() { return text_of(rigel::profile_of("a processor", rigel::table_cpu())); }

std::string refusal(const std::string& text) {
  try {
    rigel::parse_profile(text);
  } catch (const rigel::Error& e) {
    CHECK(e.code() == rigel::Code::invalid_argument);
    return e.what();
  }
  return "";
}

/// A folder of its own, for the time of a test.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rigel-profile-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    const auto file = path / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }
};

/// Runs `report` in a child process, whose environment has only these variables of those that profiles read. Rates are read once in a
/// process, so each case needs one of its own.
template <class Report>
std::string in_child(const std::vector<std::pair<std::string, std::string>>& environment, const Report& report) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const char* name : {"RIGEL_PROFILE", "XDG_CONFIG_HOME", "HOME"}) unsetenv(name);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::string text;
    try {
      text = report();
    } catch (const rigel::Error& e) {
      text = std::string("refused: ") + e.what();
    }
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t count; (count = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return text;
}

/// A product on one thread, as a host's call sees it.
Contraction on_host(std::int64_t m, std::int64_t n, std::int64_t k) {
  static Call call;  // the problem refers to its epilogue
  call = on_hopper("min_plus", rigel::Scalar::f32, n, k);
  call.b = Layout::right;
  call.execution = {.space = rigel::Space::serial};
  return problem(call, m);
}

std::string heading() {
  const std::string text = explain(on_host(512, 512, 512));
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("profiles: a text is read to the numbers that were written") {
  Card card = h200();
  card.clock = 1.7543219876543e9;
  card.launch_seconds = 2.71828e-6;
  card.next_launch_seconds /= 3;
  const Profile profile = rigel::parse_profile(text_of(rigel::profile_of("NVIDIA \"H200\" \\ x", card)));
  CHECK(profile.device == "NVIDIA \"H200\" \\ x");
  CHECK(profile.compute_capability == 90);
  CHECK(profile.rates == rigel::profile_of("", card).rates);
  const Card merged = with_profile(h200(), profile);
  CHECK(merged.clock == card.clock);
  CHECK(merged.launch_seconds == card.launch_seconds);
  CHECK(merged.next_launch_seconds == card.next_launch_seconds);
  CHECK(merged.multiprocessors == h200().multiprocessors);
  CHECK(merged.l2_bytes == h200().l2_bytes);
  // Each rate goes to its own member: all times a prime, each another.
  Profile primes = rigel::profile_of("", rigel::table_cpu());
  double factor = 1;
  for (auto& rate : primes.rates) rate.second *= factor += 2;
  CHECK(rigel::profile_of("", with_profile(rigel::table_cpu(), primes)).rates == primes.rates);
  primes = rigel::profile_of("", h200());
  for (auto& rate : primes.rates) rate.second *= factor += 2;
  CHECK(rigel::profile_of("", with_profile(h200(), primes)).rates == primes.rates);
  // Members in any order, and any white space.
  const std::string compact = host_text();
  std::string spread;
  for (const char c : compact) spread += c == ',' || c == '{' ? std::string(1, c) + "\t\r\n " : std::string(1, c);
  CHECK(rigel::parse_profile(spread).rates == rigel::parse_profile(compact).rates);
  for (const Card& row : rigel::cards())
    CHECK(rigel::parse_profile(text_of(rigel::profile_of(row.name, row))).rates == rigel::profile_of("", row).rates);
}

TEST_CASE("profiles: what is not exactly a profile is refused with a sentence") {
  const std::string gpu = gpu_text(), host = host_text();
  const std::string clock = "\"clock\": 2e+09", launch = "\"launch_seconds\": 1e-06";
  struct Bad {
    std::string text, sentence;
  };
  const Bad table[] = {
      {"", "expected '{', the text ends"},
      {"[]", "expected '{', got '['"},
      {"{}", "\"rigel_profile\" is missing"},
      {host.substr(0, host.size() / 2), "line "},
      {host.substr(0, host.size() - 3), "expected '}', the text ends"},
      {host + "x", "something follows the object"},
      {host + host, "something follows the object"},
      {std::string(70 << 10, ' ') + host, "longer than 65536 bytes"},
      {with(host, "\"rigel_profile\": 1,", ""), "\"rigel_profile\" is missing"},
      {with(host, "\"rigel_profile\": 1", "\"rigel_profile\": 2"), "line 2: rigel_profile is 2, expected 1"},
      {with(host, "\"rigel_profile\": 1", "\"rigel_profile\": \"1\""), "rigel_profile is no number"},
      {with(host, "\"device\": \"a processor\",", ""), "\"device\" is missing"},
      {with(host, "\"a processor\"", "\"\""), "device is empty"},
      {with(host, "\"a processor\"", "7"), "expected '\"', got '7'"},
      {with(host, "\"a processor\"", "\"a\\u0041\""), "an escape other than"},
      {with(host, "\"a processor\"", "\"a\nb\""), "a control character"},
      {with(host, "\"a processor\"", '"' + std::string(300, 'a') + '"'), "longer than 256 characters"},
      {with(host, "\"a processor\"", "\"a processor"), "line "},
      {with(host, "\"compute_capability\": 0,", ""), "\"compute_capability\" is missing"},
      {with(host, "\"compute_capability\": 0", "\"compute_capability\": -90"), "compute_capability is -90"},
      {with(host, "\"compute_capability\": 0", "\"compute_capability\": 9.5"), "compute_capability is 9.5"},
      {with(host, "\"compute_capability\": 0", "\"compute_capability\": 90"),
       "no rate of this device is called \"cache_bytes"},
      {with(gpu, "\"compute_capability\": 90", "\"compute_capability\": 0"), "no rate of this device is called"},
      {with(host, "\"rates\"", "\"speeds\""), "no member of a profile is called \"speeds\""},
      {with(host, clock + ",", ""), "the rate \"clock\" is missing"},
      {with(host, clock, clock + ", " + clock), "\"clock\" comes twice"},
      {with(host, clock, "\"clock\": -2e9"), "clock is -2e+09, expected 2e+06 to 2e+12"},
      {with(host, clock, "\"clock\": 0"), "clock is 0, expected"},
      {with(host, clock, "\"clock\": 1e15"), "clock is 1e+15, expected"},
      {with(host, clock, "\"clock\": 1e999"), "clock is 1e999, which no double holds"},
      {with(host, clock, "\"clock\": NaN"), "clock is no number"},
      {with(host, clock, "\"clock\": inf"), "clock is no number"},
      {with(host, clock, "\"clock\": -nan"), "clock is no number"},
      {with(host, clock, "\"clock\": null"), "clock is no number"},
      {with(host, clock, "\"clock\": 02e9"), "clock is no number"},
      {with(host, clock, "\"clock\": 2.e9"), "clock is no number"},
      {with(host, clock, "\"clock\": +2e9"), "clock is no number"},
      {with(host, clock, "\"clock\": 2e9e"), "clock is no number"},
      {with(host, clock, "\"clock\": [2e9]"), "clock is no number"},
      {with(host, clock, "\"clock\" 2e9"), "expected ':', got '2'"},
      {with(host, launch, "\"launch_seconds\": 1"), "launch_seconds is 1, expected 1e-09 to 0.001"},
      {with(host, launch, "\"launches\": 1e-6"), "no rate of this device is called \"launches\""},
      {with(host, "\"rates\": {", "\"rates\": {,"), "expected '\"', got ','"},
      {with(gpu, "\"warpgroup_products\": 2048", "\"warpgroup_products\": 0"), "warpgroup_products is 0, expected"},
      {with(with(gpu, "\"compute_capability\": 90", "\"compute_capability\": 80"), "tensor_products", "tensor_products"),
       "warpgroup_products is 2048, expected 0"},
  };
  static_assert(std::size(table) >= 30);
  for (const auto& [text, sentence] : table) {
    const std::string why = refusal(text);
    CHECK_MESSAGE(why.find(sentence) != std::string::npos, "'" << why << "' has no '" << sentence << "' for " << text);
  }
}

TEST_CASE("profiles: a file's name is the device's, in the user's configuration") {
  const auto path = [](const std::vector<std::pair<std::string, std::string>>& environment, std::string_view device) {
    return in_child(environment, [&] { return rigel::profile_path(device); });
  };
  CHECK(path({{"HOME", "/home/a"}}, "NVIDIA H200") == "/home/a/.config/rigel/nvidia-h200.json");
  CHECK(path({{"HOME", "/home/a"}, {"XDG_CONFIG_HOME", "/etc/x"}}, "Intel(R) Xeon(R) CPU @ 2.50GHz") ==
        "/etc/x/rigel/intel-r-xeon-r-cpu-2-50ghz.json");
  CHECK(path({{"HOME", "/home/a"}, {"XDG_CONFIG_HOME", "relative"}}, "../../x/") == "/home/a/.config/rigel/x.json");
  CHECK(path({}, "NVIDIA H200").empty());
}

// src/cpu.cpp defines it.
namespace rigel::detail {
std::string cpu_name_in(std::istream& info);
}

TEST_CASE("profiles: a processor has its model's name, or its maker's and its own numbers") {
  const auto name = [](const std::string& text) {
    std::istringstream info(text);
    return rigel::detail::cpu_name_in(info);
  };
  CHECK(name("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.50GHz\n") ==
        "Intel(R) Xeon(R) CPU @ 2.50GHz");
  CHECK(name("processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\n"
             "CPU part\t: 0xd40\nCPU revision\t: 1\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n") ==
        "CPU implementer 0x41, part 0xd40");
  CHECK(name("processor\t: 0\n") == "host");
  CHECK(name("") == "host");
}

TEST_CASE("profiles: the host reads its own once; a bad one is ignored, unless RIGEL_PROFILE names it") {
  const Folder folder;
  const std::string name = rigel::cpu_name(), file = std::filesystem::path(rigel::profile_path(name)).filename().string();
  Cpu cpu = rigel::table_cpu();
  cpu.clock = 4e9;
  const std::string good = text_of(rigel::profile_of(name, cpu)), foreign = text_of(rigel::profile_of("a tractor", cpu)),
                    gpu = gpu_text();
  const auto clock = [] { return std::to_string(rigel::cpu_of({}).clock) + ' ' + std::string(rigel::cpu_of({}).profile); };
  const std::string tuned = std::to_string(4e9) + ' ', table = std::to_string(2e9) + ' ';
  const std::string other = folder.write("other.json", good);
  const auto home = [&] { return std::pair<std::string, std::string>{"XDG_CONFIG_HOME", folder.path.string()}; };
  CHECK(in_child({home()}, clock) == table);  // no file
  const std::string own = folder.write("rigel/" + file, good);
  CHECK(in_child({home()}, clock) == tuned + "rates of " + own);
  CHECK(in_child({home()}, heading).ends_with(" on serial (rates of " + own + "):"));
  CHECK(in_child({home(), {"RIGEL_PROFILE", "off"}}, clock) == table);
  CHECK(in_child({home(), {"RIGEL_PROFILE", "off"}}, heading).ends_with(" on serial:"));
  CHECK(in_child({home(), {"RIGEL_PROFILE", ""}}, clock) == tuned + "rates of " + own);
  CHECK(in_child({home(), {"RIGEL_PROFILE", other}}, clock) == tuned + "rates of " + other);
  // Once: a file that is gone or becomes bad later changes nothing.
  CHECK(in_child({home()}, [&] {
          const std::string before = clock();
          folder.write("rigel/" + file, "{");
          return before == clock() ? std::string("same") : clock();
        }) == "same");
  // Bad and foreign files.
  const auto ends_with = [](const std::string& text, const std::string& end) {
    CHECK_MESSAGE(text.ends_with(end), text << " does not end with " << end);
  };
  ends_with(in_child({home()}, clock), table + own + " is ignored: line 1: expected '\"', the text ends");
  ends_with(in_child({home()}, heading), own + " is ignored: line 1: expected '\"', the text ends):");
  for (const std::string& text : {foreign, gpu}) {
    folder.write("rigel/" + file, text);
    CHECK(in_child({home()}, clock).find(own + " is ignored: it is the profile of \"") != std::string::npos);
  }
  const std::string bad = folder.write("bad.json", "{\"rigel_profile\": 3}"), wrong = folder.write("foreign.json", foreign),
                    of_gpu = folder.write("gpu.json", gpu);
  ends_with(in_child({home(), {"RIGEL_PROFILE", bad}}, heading),
            "refused: RIGEL_PROFILE names '" + bad +
                "', which is refused: line 1: rigel_profile is 3, expected 1, the version of the format");
  ends_with(in_child({home(), {"RIGEL_PROFILE", wrong}}, heading),
            "it is the profile of \"a tractor\", expected \"" + name + '"');
  ends_with(in_child({home(), {"RIGEL_PROFILE", "/no/such/file"}}, heading), "it is no file that can be read");
  ends_with(in_child({home(), {"RIGEL_PROFILE", folder.path.string()}}, heading), "it is no file that can be read");
  ends_with(in_child({home(), {"RIGEL_PROFILE", "/dev/zero"}}, heading), "it is no file that can be read");
  // Every call says so, not only the first one.
  const auto twice = [] {
    std::string said;
    for (int call = 0; call < 2; ++call) try {
        said += heading();
      } catch (const rigel::Error& e) {
        said += std::string(e.what()) + '\n';
      }
    return said;
  };
  const std::string said = in_child({{"RIGEL_PROFILE", bad}}, twice), line = said.substr(0, said.size() / 2);
  CHECK(said == line + line);
  CHECK(line.ends_with("the version of the format\n"));
  // A GPU's leaves the host its table.
  CHECK(in_child({home(), {"RIGEL_PROFILE", of_gpu}}, clock) == table);
}

TEST_CASE("profiles: a GPU gets its own, by the driver's name") {
  const Folder folder;
  Card card = h200();
  card.memory_bytes_per_second /= 2;
  const std::string file = folder.write("gpu.json", text_of(rigel::profile_of("NVIDIA H200", card)));
  const auto found = [](const char* device, int compute_capability) {
    return [=] {
      Card row = rigel::card_of_architecture(compute_capability);
      row.compute_capability = compute_capability;
      const Card tuned = rigel::tuned(row, device);
      return std::to_string(tuned.memory_bytes_per_second * 1e-12) + ' ' + std::string(tuned.profile);
    };
  };
  CHECK(in_child({{"RIGEL_PROFILE", file}}, found("NVIDIA H200", 90)) == std::to_string(2.4) + " rates of " + file);
  CHECK(in_child({}, found("NVIDIA H200", 90)) == std::to_string(4.8) + ' ');
  Card named = h200();
  named.profile = "rates of a file";
  Contraction p = on_host(8, 8, 8);
  p.execution = {.space = rigel::Space::cuda, .compute_capability = 90, .multiprocessors = 132, .card = &named};
  CHECK(explain(p).find(" on cuda (rates of a file):\n") != std::string::npos);
  for (const auto& [device, capability] : {std::pair{"NVIDIA H100", 90}, std::pair{"NVIDIA H200", 100}})
    CHECK(in_child({{"RIGEL_PROFILE", file}}, found(device, capability)).starts_with("refused: RIGEL_PROFILE names '"));
}

TEST_CASE("profiles: a made-up card changes choices as it should") {
  if (rigel::kernels({.name = "cuda.simt"}).empty()) return;  // this build has none
  // As tests/selection/card.cpp has it of a Card: with launches twice as long one launch beats two.
  Card card = h200();
  card.launch_seconds *= 2;
  card.next_launch_seconds *= 2;
  const Card slow = with_profile(h200(), rigel::parse_profile(text_of(rigel::profile_of("a card", card))));
  Call call = on_hopper("min_plus", rigel::Scalar::f32, 32, 16384);
  call.precision = rigel::Precision::accumulator;
  Contraction p = problem(call, 16);
  CHECK(select(p).info.variant == "small_split_k");
  p.execution.card = &slow;
  CHECK(select(p).info.variant == "narrow_split_k");
  // Half the bandwidth: what waits for memory takes twice as long.
  card = h200();
  card.memory_bytes_per_second /= 2;
  const Card narrow = with_profile(h200(), rigel::parse_profile(text_of(rigel::profile_of("a card", card))));
  const Call product = on_hopper("plus_times", rigel::Scalar::f32, 16384, 16384);
  Contraction q = problem(product, 8);
  const Kernel<Contraction>& kernel = select(q);
  const double seconds = predicted_seconds(kernel, q);
  q.execution.card = &narrow;
  CHECK(predicted_seconds(kernel, q) / seconds == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("profiles: a made-up processor changes choices as it should") {
  // Where a vector's step takes a thousand cycles, loops that take numbers one by one win.
  const auto on = [](const Cpu& cpu, Contraction p, const auto& use) {
    const Cpu parsed =
        with_profile(rigel::table_cpu(), rigel::parse_profile(text_of(rigel::profile_of("a processor", cpu))));
    const Card card{.cpu = &parsed};
    p.execution.card = &card;
    return use(p);
  };
  const auto chosen = [](const Contraction& p) { return select(p).info.family; };
  Cpu slow = rigel::table_cpu();
  slow.clock /= 2;
  slow.launch_seconds *= 2;
  slow.cache_bytes_per_second /= 2;
  slow.memory_bytes_per_second /= 2;
  Cpu without = rigel::table_cpu();
  without.vectors_16 = without.vectors_32 = without.vectors_64 = 1e-3;
  const Contraction p = on_host(512, 512, 512);
  CHECK(on(rigel::table_cpu(), p, chosen) == "host");
  CHECK(on(slow, p, chosen) == "host");
  CHECK(on(without, p, chosen) == "portable");
  // Half the clock and bandwidths and twice the launch double every predicted time: no seconds are left in the kernels.
  Random random(29);
  int others = 0, compared = 0;
  std::string first;
  for (int i = 0; i < 1000; ++i) {
    const Call call = random_call(random, rigel::Space::serial);
    const Contraction q = problem(call, extent(random, 8192));
    const auto seconds = [](const Contraction& of) {
      std::vector<double> list;
      for (const auto& candidate : candidates(of))
        if (candidate.status) list.push_back(candidate.seconds);
      return list;
    };
    const std::vector<double> fast_seconds = on(rigel::table_cpu(), q, seconds), slow_seconds = on(slow, q, seconds);
    REQUIRE(fast_seconds.size() == slow_seconds.size());
    for (std::size_t c = 0; c < fast_seconds.size(); ++c) {
      ++compared;
      if (std::abs(slow_seconds[c] / fast_seconds[c] - 2) > 1e-9 && others++ == 0) first = call.text();
    }
  }
  CHECK_MESSAGE(others == 0, others << " of " << compared << ", the first: " << first);
}

TEST_CASE("profiles: no bit class of a batch_invariant call depends on one") {
  // Cards and processors far from the table's.
  Card card = h200();
  card.launch_seconds *= 30;
  card.clock /= 3;
  card.memory_bytes_per_second /= 20;
  card.tensor_products /= 50;
  card.warpgroup_products /= 50;
  card.tensor_double_products /= 50;
  Cpu cpu = rigel::table_cpu();
  cpu.launch_seconds *= 30;
  cpu.vectors_16 = cpu.vectors_32 = cpu.vectors_64 = 0.02;
  cpu.products_16 = cpu.products_32 = cpu.products_64 = 0.1;
  const Card host{.cpu = &cpu};
  for (const rigel::Space space : spaces()) {
    Random random(31);
    int changed = 0, others = 0;
    std::string first;
    for (int i = 0; i < calls; ++i) {
      const Call call = random_call(random, space);
      Contraction p = problem(call, extent(random, 8192));
      Card made_up =
          with_profile(rigel::card_of_architecture(call.execution.compute_capability), rigel::profile_of("a card", card));
      made_up.architecture = &rigel::card_of_architecture(call.execution.compute_capability);
      const auto name_of = [&](const Card* on) {
        p.execution.card = on;
        return select(p).info.name;
      };
      const Card* const tuned = space == rigel::Space::cuda ? &made_up : &host;
      others += name_of(nullptr) != name_of(tuned);
      p.require = Promise::batch_invariant;
      const auto class_on = [&](const Card* on) {
        p.execution.card = on;
        return class_of(p);
      };
      if (class_on(nullptr) != class_on(tuned) && changed++ == 0) first = call.text();
    }
    CHECK_MESSAGE(changed == 0, changed << " of " << calls << " calls, the first: " << first);
    CHECK(others > 0);  // what requires less gets other kernels
  }
}

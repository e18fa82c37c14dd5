// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings and epilogues from text against the same compiled ones, on Kokkos's default execution space: the first call of a process to
// its result, what a call costs beyond the compiled one's when the kernel is in memory, and the time of large products.
//
//     bench_texts [--part first|memory|product] [--subject <name>] [--size <M = N = K of products>] [--rounds <of products>]
//                 [--repeats <of first calls>] [--seconds 50] [--json <file>] [--commit <hash>]
//
// first    1024³, from the text to the result: read, compiled, run, waited for. Each is a process of its own, which has made the
//          device's context and called the compiled product before. `cold`: the caches are empty, Rigel's and the driver's; `disk`: they
//          are those that the cold process left. The library's own account of the time (RIGEL_DEBUG=runtime) follows.
// memory   What the host spends on a call, on a GPU of 1024³ to enqueue it, on a host of 8³ with its work: of the compiled product,
//          of the same object of the text, and of a new object of the same text. Rounds of the three alternate.
// product  8192³ on a GPU, 2048³ on a host: seconds of the text's and of the compiled kernel. Calls alternate, medians count.
//
// Subjects: l1, min_plus and lp by power() as the library compiles them, with p = 3 and p = 1.3 (lp_by_table) as a hyperparameter and 3 as a
// number in the text (lp_of_number); nearest, the place of a minimum in an accumulator of
// two fields, and scaled, a product of bfloat16 with an epilogue, as functors of this file. Results are compared.
// Rounds end early when --seconds are over. The exit status is 1 if a call fails or results differ, 77 if Kokkos is built for a GPU and
// there is none.
#include <bench/runner.hpp>
#include <rigel/runtime.hpp>
#ifdef KOKKOS_ENABLE_CUDA
#include <bench/cuda/device.hpp>
#endif

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using bench::Clock, bench::Exec, rigel::Scalar;
namespace runtime = rigel::runtime;

#ifdef KOKKOS_ENABLE_CUDA
constexpr int first_size = 1024, call_size = 1024, product_size = 8192, product_rounds = 11;
#else
constexpr int first_size = 1024, call_size = 8, product_size = 2048, product_rounds = 7;
#endif
constexpr int call_rounds = 51, calls_per_round = 20;

// ---- what is measured ------------------------------------------------------------------------------------------------

/// What contract() takes in addition to matrices.
template <class S, class E = rigel::epilogue::Program>
struct Call {
  S semiring;
  E epilogue = {};
};

struct L1 {
  using Element = float;
  using Result = float;
  using LayoutOfB = Kokkos::LayoutLeft;
  static constexpr const char* name = "l1";
  static auto compiled() { return Call<rigel::l1<float>>{}; }
  static auto text() {
    return Call<runtime::Semiring>{
        runtime::Semiring({.name = name, .multiply = "abs(a - b)", .add = "x + y", .commutative = true})};
  }
};

struct MinPlus {
  using Element = float;
  using Result = float;
  using LayoutOfB = Kokkos::LayoutRight;
  static constexpr const char* name = "min_plus";
  static auto compiled() { return Call<rigel::min_plus<float>>{}; }
  static auto text() {
    return Call<runtime::Semiring>{
        runtime::Semiring({.name = name, .multiply = "a + b", .add = "min(x, y)", .commutative = true})};
  }
};

template <int tenths>
struct LpOf {
  using Element = float;
  using Result = float;
  using LayoutOfB = Kokkos::LayoutLeft;
  static constexpr float p = static_cast<float>(tenths) / 10;
  static auto compiled() { return Call<rigel::lp<float>>{{.p = p}}; }
  static auto text_of(const char* name, const char* exponent) {
    return Call<runtime::Semiring>{runtime::Semiring({.name = name,
                                                      .multiply = std::string("power(abs(a - b), ") + exponent + ")",
                                                      .add = "x + y",
                                                      .hyperparameters = {{"p", static_cast<double>(p)}},
                                                      .commutative = true})};
  }
};
struct Lp : LpOf<30> {
  static constexpr const char* name = "lp";
  static auto text() { return text_of(name, "p"); }
};
struct LpByTable : LpOf<13> {
  static constexpr const char* name = "lp_by_table";
  static auto text() { return text_of(name, "p"); }
};
struct LpOfNumber : LpOf<30> {
  static constexpr const char* name = "lp_of_number";
  static auto text() { return text_of(name, "3"); }
};

/// The k of the least A(m,k) + B(k,n).
struct Place {
  struct accumulator {
    float value;
    std::int32_t index;
  };
  using element = float;
  static constexpr const char* name = "place";
  static constexpr bool commutative = true;
  KOKKOS_FUNCTION static accumulator identity() { return {rigel::infinity<float>(), -1}; }
  KOKKOS_FUNCTION accumulator multiply(float a, float b, std::int64_t k) const {
    return {a + b, static_cast<std::int32_t>(k)};
  }
  KOKKOS_FUNCTION accumulator add(accumulator x, accumulator y) const { return y.value < x.value ? y : x; }
  KOKKOS_FUNCTION static std::int32_t result(accumulator x) { return x.index; }
};

struct Nearest {
  using Element = float;
  using Result = std::int32_t;
  using LayoutOfB = Kokkos::LayoutRight;
  static constexpr const char* name = "nearest";
  static auto compiled() { return Call<Place>{}; }
  static auto text() {
    return Call<runtime::Semiring>{runtime::Semiring({.name = name,
                                                      .accumulator = {{"value", Scalar::f32}, {"index", Scalar::i32}},
                                                      .multiply = "{a + b, k}",
                                                      .add = "y.value < x.value ? y : x",
                                                      .identity = "{infinity, -1}",
                                                      .result = "x.index",
                                                      .result_type = Scalar::i32,
                                                      .commutative = true})};
  }
};

/// An epilogue as an application has it.
struct Scale {
  float factor;
  KOKKOS_FUNCTION float operator()(float x, std::int64_t, std::int64_t, std::int64_t) const {
    return x > 0 ? x : factor * x;
  }
};

struct Scaled {
  using Element = rigel::bfloat16;
  using Result = rigel::bfloat16;
  using LayoutOfB = Kokkos::LayoutLeft;
  static constexpr const char* name = "scaled";
  static auto compiled() { return Call<rigel::plus_times<Element>, Scale>{{}, {0.01f}}; }
  static auto text() {
    return Call<rigel::plus_times<Element>, runtime::Epilogue>{{},
                                                               runtime::Epilogue({.name = name,
                                                                                  .result = Scalar::bf16,
                                                                                  .body = "x > 0 ? x : factor * x",
                                                                                  .hyperparameters = {{"factor", 0.01}}})};
  }
};

using Subjects = std::tuple<L1, MinPlus, Lp, LpByTable, LpOfNumber, Nearest, Scaled>;

template <class Subject>
struct Matrices {
  using Space = Exec::memory_space;
  using Element = typename Subject::Element;
  Kokkos::View<Element**, Kokkos::LayoutRight, Space> a;
  Kokkos::View<Element**, typename Subject::LayoutOfB, Space> b;
  Kokkos::View<typename Subject::Result**, Kokkos::LayoutRight, Space> c, other;

  Matrices(const Exec& exec, int n) : a(raw("A"), n, n), b(raw("B"), n, n), c(raw("C"), n, n), other(raw("other"), n, n) {
    fill(exec, a, 1);
    fill(exec, b, 2);
    exec.fence();
  }

  /// Numbers of [-1/2, 1/2).
  template <class View>
  static void fill(const Exec& exec, const View& view, std::uint32_t seed) {
    auto* const to = view.data();
    Kokkos::parallel_for(
        "bench::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, std::int64_t(view.size())),
        KOKKOS_LAMBDA(const std::int64_t i) {
          const std::uint32_t bits = bench::random_bits(static_cast<std::uint32_t>(i), seed);
          to[i] = Element(static_cast<float>(bits >> 8) * 0x1p-24f - 0.5f);
        });
  }

  /// How many elements of both results differ by more than a thousandth, a few units of a bfloat16.
  std::int64_t different(const Exec& exec) const {
    std::int64_t count = 0;
    const auto x = c, y = other;
    const auto n = static_cast<std::int64_t>(c.extent(1));
    Kokkos::parallel_reduce(
        "bench::different", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, std::int64_t(c.size())),
        KOKKOS_LAMBDA(const std::int64_t i, std::int64_t& sum) {
          const double u = static_cast<double>(static_cast<float>(x(i / n, i % n))),
                       v = static_cast<double>(static_cast<float>(y(i / n, i % n)));
          const double most = std::is_same_v<Element, rigel::bfloat16>       ? 0x1p-6
                              : std::is_integral_v<typename Subject::Result> ? 0
                                                                             : 1e-4;
          if (!(Kokkos::abs(u - v) <= most * Kokkos::abs(v))) ++sum;
        },
        count);
    return count;
  }

 private:
  static auto raw(const char* label) { return Kokkos::view_alloc(std::string(label), Kokkos::WithoutInitializing); }
};

template <class Call, class M, class C>
void enqueue(const Exec& exec, const Call& call, const M& m, const C& c) {
  rigel::contract(exec, call.semiring, m.a, m.b, c, call.epilogue);
}

/// The kernel that a call gets.
template <class Call, class M>
std::string kernel_of(const Exec& exec, const Call& call, const M& m) {
  const std::string all = rigel::explain(exec, call.semiring, m.a, m.b, m.c, call.epilogue);
  const auto mark = all.find('*');
  if (mark == all.npos) return "";
  const auto begin = all.find_first_not_of(' ', mark + 1);
  return all.substr(begin, all.find_first_of(": \n", begin) - begin);
}

// ---- rows of the report ----------------------------------------------------------------------------------------------

double median(std::vector<double> list) {
  std::ranges::sort(list);
  return list.empty() ? 0 : list[list.size() / 2];
}

struct Options {
  std::string part, subject, json, commit, child;
  int size = product_size, rounds = product_rounds, repeats = 2;
  double seconds = 50;
  Clock::time_point begin = Clock::now();
  bool has(const char* one) const { return part.empty() || part == one; }
  bool is_over() const { return std::chrono::duration<double>(Clock::now() - begin).count() > seconds; }
};

/// What all parts found.
struct Report {
  std::ostringstream rows;
  const char* separator = "\n";
  bool failed = false;
  void add(const std::string& members) {
    rows << separator << '{' << members << '}';
    separator = ",\n";
  }
};

/// Calls part.operator()<Subject>() for those that are wanted; what one throws is printed, and the next follows.
template <class Part>
void for_each_subject(const Options& options, Report& report, const Part& part) {
  const auto one = [&]<class Subject>(const Subject&) {
    if (!options.subject.empty() && options.subject != Subject::name) return;
    try {
      part.template operator()<Subject>();
    } catch (const std::exception& e) {
      std::printf("%-9s failed: %s\n", Subject::name, e.what());
      report.failed = true;
    }
    std::fflush(stdout);
  };
  std::apply([&](const auto&... subjects) { (one(subjects), ...); }, Subjects());
}

// ---- first calls -----------------------------------------------------------------------------------------------------

/// The begin of the line that such a process prints.
constexpr std::string_view result_line = "first call: ";

/// The body of a process that makes a first call: prints its seconds, those of the next call, and where the kernel came from.
template <class Subject>
void first_call(const Exec& exec) {
  const Matrices<Subject> m(exec, first_size);
  enqueue(exec, Subject::compiled(), m, m.other);
  exec.fence();
  const auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto begin = Clock::now();
  const auto text = Subject::text();
  enqueue(exec, text, m, m.c);
  exec.fence();
  const double first = seconds_since(begin);
  const auto again = Clock::now();
  enqueue(exec, text, m, m.c);
  exec.fence();
  const double second = seconds_since(again);
  const runtime::Statistics statistics = runtime::statistics();
  std::ostringstream line;
  line << result_line << first << ' ' << second << ' ' << statistics.compiled << ' ' << statistics.from_disk << ' '
       << m.different(exec);
  std::puts(line.str().c_str());
}

struct FirstCall {
  double first = 0, second = 0;
  std::uint64_t compiled = 0, from_disk = 0;
  std::int64_t different = 0;
  std::string said;  // by the library, or the reason of a failure
};

/// A folder for both caches and for what a process prints, empty at first, while an object lives.
class Caches {
 public:
  explicit Caches(int number)
      : path_(std::filesystem::temp_directory_path() /
              ("bench_texts-" + std::to_string(getpid()) + "-" + std::to_string(number))) {
    std::filesystem::create_directories(path_);
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
    setenv("RIGEL_CACHE_DIR", (path_ / "rigel").c_str(), 1);
    setenv("CUDA_CACHE_PATH", (path_ / "driver").c_str(), 1);
    setenv("RIGEL_DEBUG", "runtime", 1);
    unsetenv("RIGEL_CACHE");
  }
  ~Caches() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
    unsetenv("RIGEL_DEBUG");
  }
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;
  std::string said() const { return path_ / "said"; }

 private:
  std::filesystem::path path_;
};

/// Runs this program again for a first call, with the caches' folders in the environment. What it prints goes through a file.
void spawn(const char* subject, const std::string& said) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string arguments[] = {program, "--child", subject};
  char* const list[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed = posix_spawn(&child, program.c_str(), &files, nullptr, list, environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  if (failed || waitpid(child, &status, 0) != child) throw std::runtime_error("no process for a first call can be made");
}

FirstCall run_process(const char* subject, const Caches& caches) {
  spawn(subject, caches.said());
  FirstCall call;
  std::string others;
  bool is_complete = false;
  std::ifstream file(caches.said());
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(result_line)) {
      std::istringstream numbers(line.substr(result_line.size()));
      is_complete =
          static_cast<bool>(numbers >> call.first >> call.second >> call.compiled >> call.from_disk >> call.different);
    } else if (line.starts_with("rigel runtime: ")) {
      call.said += (call.said.empty() ? "" : "; ") + line.substr(line.find(": ") + 2);
    } else {
      others += line + ' ';
    }
  }
  if (!is_complete) throw std::runtime_error("the process of a first call says: " + others);
  return call;
}

template <class Subject>
void measure_first(const Options& options, Report& report) {
  std::vector<double> cold, disk;
  FirstCall last[2];
  for (int i = 0; i < options.repeats && (i == 0 || !options.is_over()); ++i) {
    const Caches caches(i);
    last[0] = run_process(Subject::name, caches);
    last[1] = run_process(Subject::name, caches);
    cold.push_back(last[0].first);
    disk.push_back(last[1].first);
    if (last[0].compiled < 1 || last[1].compiled != 0 || last[1].from_disk < 1)
      throw std::runtime_error("the caches were not those of this program");
    if (last[0].different + last[1].different != 0) throw std::runtime_error("results differ");
  }
  const auto print = [&](const char* how, const std::vector<double>& seconds, const FirstCall& call) {
    std::printf("first   %-9s %-5s %8.1f ms, least %8.1f; the next call %8.3f ms\n    %s\n", Subject::name, how,
                1e3 * median(seconds), 1e3 * std::ranges::min(seconds), 1e3 * call.second, call.said.c_str());
    std::ostringstream row;
    row << "\"part\": \"first\", \"subject\": " << bench::quoted(Subject::name) << ", \"size\": " << first_size
        << ", \"from\": \"" << how << "\", \"seconds\": " << median(seconds) << ", \"least\": " << std::ranges::min(seconds)
        << ", \"next_call\": " << call.second << ", \"said\": " << bench::quoted(call.said);
    report.add(row.str());
  };
  print("cold", cold, last[0]);
  print("disk", disk, last[1]);
}

// ---- calls of kernels that are in memory -----------------------------------------------------------------------------

/// The host's seconds of a call, on average over a round. The wait for a device is outside.
template <class Enqueue>
double seconds_of_call(const Exec& exec, const Enqueue& enqueue) {
  const auto begin = Clock::now();
  for (int i = 0; i < calls_per_round; ++i) enqueue();
  const auto end = Clock::now();
  exec.fence();
  return std::chrono::duration<double>(end - begin).count() / calls_per_round;
}

template <class Subject>
void measure_memory(const Exec& exec, const Options& options, Report& report) {
  const Matrices<Subject> m(exec, call_size);
  const auto compiled = Subject::compiled();
  const auto text = Subject::text();
  const auto by_compiled = [&] { enqueue(exec, compiled, m, m.other); };
  const auto by_text = [&] { enqueue(exec, text, m, m.c); };
  const auto by_new_object = [&] { enqueue(exec, Subject::text(), m, m.c); };
  by_compiled();
  by_text();
  exec.fence();
  std::vector<double> own, same, fresh, beyond, fresh_beyond;
  for (int round = 0; round < call_rounds && !options.is_over(); ++round) {
    own.push_back(seconds_of_call(exec, by_compiled));
    same.push_back(seconds_of_call(exec, by_text));
    fresh.push_back(seconds_of_call(exec, by_new_object));
    beyond.push_back(same.back() - own.back());
    fresh_beyond.push_back(fresh.back() - own.back());
  }
  std::printf("memory  %-9s compiled %8.2f us, text %8.2f (beyond %6.2f), new object of the text %8.2f (beyond %6.2f)\n",
              Subject::name, 1e6 * median(own), 1e6 * median(same), 1e6 * median(beyond), 1e6 * median(fresh),
              1e6 * median(fresh_beyond));
  std::ostringstream row;
  row << "\"part\": \"memory\", \"subject\": " << bench::quoted(Subject::name) << ", \"size\": " << call_size
      << ", \"compiled\": " << median(own) << ", \"text\": " << median(same) << ", \"new_object\": " << median(fresh)
      << ", \"beyond\": " << median(beyond) << ", \"new_object_beyond\": " << median(fresh_beyond);
  report.add(row.str());
}

// ---- large products --------------------------------------------------------------------------------------------------

template <class Subject>
void measure_product(const Exec& exec, const Options& options, Report& report) {
  const Matrices<Subject> m(exec, options.size);
  const bench::Stopwatch watch(exec);
  const auto compiled = Subject::compiled();
  const auto text = Subject::text();
  const auto by_compiled = [&] { enqueue(exec, compiled, m, m.other); };
  const auto by_text = [&] { enqueue(exec, text, m, m.c); };
  by_compiled();
  by_text();
  exec.fence();
  const std::int64_t different = m.different(exec);
  std::vector<double> own, texts;
  for (int round = 0; round < options.rounds && (round < 2 || !options.is_over()); ++round) {
    const bool text_first = round % 2 == 1;  // the first of two finds another temperature and clock
    if (text_first) texts.push_back(watch.seconds(by_text));
    own.push_back(watch.seconds(by_compiled));
    if (!text_first) texts.push_back(watch.seconds(by_text));
  }
  const double ratio = median(texts) / median(own);
  const std::string kernel = kernel_of(exec, compiled, m), kernel_of_text = kernel_of(exec, text, m);
  std::printf("product %-9s %d^3 compiled %10.4f ms, text %10.4f, text / compiled %.4f  %s, %s\n", Subject::name,
              options.size, 1e3 * median(own), 1e3 * median(texts), ratio, kernel.c_str(), kernel_of_text.c_str());
  std::ostringstream row;
  row << "\"part\": \"product\", \"subject\": " << bench::quoted(Subject::name) << ", \"size\": " << options.size
      << ", \"compiled\": " << median(own) << ", \"text\": " << median(texts) << ", \"ratio\": " << ratio
      << ", \"kernel\": " << bench::quoted(kernel) << ", \"kernel_of_text\": " << bench::quoted(kernel_of_text)
      << ", \"different\": " << different;
  report.add(row.str());
  if (different != 0) throw std::runtime_error(std::to_string(different) + " results differ");
}

// ---- the program -----------------------------------------------------------------------------------------------------

constexpr const char* usage =
    "bench_texts [--part first|memory|product] [--subject <name>] [--size <M = N = K of products>] [--rounds <of "
    "products>]\n"
    "            [--repeats <of first calls>] [--seconds 50] [--json <file>] [--commit <hash>]\n";

Options read(int argc, char** argv) {
  Options o;
  const bench::Option options[] = {{"--part", &o.part},     {"--subject", &o.subject}, {"--size", &o.size},
                                   {"--rounds", &o.rounds}, {"--repeats", &o.repeats}, {"--seconds", &o.seconds},
                                   {"--json", &o.json},     {"--commit", &o.commit},   {"--child", &o.child}};
  bench::read_options(argc, argv, options);
  const auto is_part = [&](const char* part) { return o.part == part; };
  if (!o.part.empty() && !is_part("first") && !is_part("memory") && !is_part("product"))
    throw std::runtime_error("no part is called '" + o.part + "'");
  if (o.size < 1 || o.rounds < 1 || o.repeats < 1) throw std::runtime_error("--size, --rounds and --repeats are at least 1");
  return o;
}

void run_child(const std::string& subject, const Exec& exec) {
  const auto one = [&]<class Subject>(const Subject&) {
    if (subject == Subject::name) first_call<Subject>(exec);
  };
  std::apply([&](const auto&... subjects) { (one(subjects), ...); }, Subjects());
}

int measure(const Options& options) {
  Report report;
  // Before this process makes a context of its own.
  if (options.has("first"))
    for_each_subject(options, report, [&]<class Subject>() { measure_first<Subject>(options, report); });
  const Kokkos::ScopeGuard kokkos;
  const Exec exec;
  const Caches caches(options.repeats);
  unsetenv("RIGEL_DEBUG");
  if (options.has("memory"))
    for_each_subject(options, report, [&]<class Subject>() { measure_memory<Subject>(exec, options, report); });
  if (options.has("product"))
    for_each_subject(options, report, [&]<class Subject>() { measure_product<Subject>(exec, options, report); });
  std::printf("%s; %.1f s\n", bench::machine(exec).c_str(),
              std::chrono::duration<double>(Clock::now() - options.begin).count());
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << "{\"context\": {\"program\": \"bench_texts\", \"commit\": " << bench::quoted(options.commit) << ", "
         << bench::machine(exec) << "},\n\"rows\": [" << report.rows.str() << "\n]}\n";
    if (!file.flush()) throw std::runtime_error("the file '" + options.json + "' cannot be written");
  }
  return report.failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--help") {
      std::fputs(usage, stdout);
      return 0;
    }
#ifdef KOKKOS_ENABLE_CUDA
  if (!bench::has_gpu("bench_texts")) return 77;
#endif
  try {
    const Options options = read(argc, argv);
    if (options.child.empty()) return measure(options);
    const Kokkos::ScopeGuard kokkos;
    run_child(options.child, Exec());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_texts: %s\n%s", e.what(), usage);
    return 1;
  }
}

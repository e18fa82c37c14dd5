// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rigel-info: prints the version of this build, the devices that it sees, its families of kernels, and the table of kernels.
// It can also verify kernels and print digests of their results.
#include <rigel/profile.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr const char* usage = R"(rigel-info [option]...: Rigel's version, devices, families and kernels

  --operation <name>   only kernels of this operation: contract, solve, gradient, reduce
  --semiring <name>    only kernels of this semiring or factorisation: min_plus, l1, cholesky, ...
  --type <name>        only kernels of this element type: f16 bf16 f32 f64 i8 u8 i32 i64 u32 u64
  --family <name>      only kernels of this family: reference, portable, host, cuda.simt, ...
  --name <prefix>      only kernels whose name begins so
  --space <name>       only kernels that run here: serial, openmp, threads, cuda
  --arch <number>      only kernels that run on this CUDA architecture: 80, 90, ...
  --verify <kernel>    hold the kernel to its promises, against the reference; ends with 1 where it breaks one
  --cache              where the disk cache of kernels from text is, how many it has, and of how many bytes
  --clear-cache        removes them
  --digests            a digest of the results of every kernel listed that runs here: equal in two builds whose results are equal
  --help               this text
)";

struct Options {
  rigel::Filter filter;
  std::string family, verify;
  bool digests = false;
};

// The value among the first `count` of an enumeration whose name is `text`.
template <class Enum>
std::optional<Enum> parse(const std::string& text, int count) {
  for (int i = 0; i < count; ++i)
    if (text == rigel::name(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return {};
}

// Reads the options, whose texts stay in argv. Returns false if one is unknown or malformed.
bool read(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--digests") {
      o.digests = true;
      --i;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[i + 1];
    if (option == "--semiring") {
      o.filter.semiring = argv[i + 1];
    } else if (option == "--name") {
      o.filter.name = argv[i + 1];
    } else if (option == "--family") {
      o.family = value;
    } else if (option == "--operation") {
      o.filter.operation = argv[i + 1];
    } else if (option == "--verify") {
      o.verify = value;
    } else if (option == "--type") {
      const auto type = parse<rigel::Scalar>(value, static_cast<int>(rigel::Scalar::other));
      if (!type) return false;
      o.filter.element = *type;
    } else if (option == "--space") {
      const auto space = parse<rigel::Space>(value, static_cast<int>(rigel::Space::other));
      if (!space) return false;
      o.filter.spaces = rigel::bit(*space);
    } else if (option == "--arch") {
      const char* const end = value.data() + value.size();
      const auto [rest, error] = std::from_chars(value.data(), end, o.filter.compute_capability);
      o.filter.spaces = rigel::bit(rigel::Space::cuda);
      if (error != std::errc{} || rest != end || o.filter.compute_capability <= 0) return false;
    } else {
      return false;
    }
  }
  return true;
}

void print_version() {
  std::printf("Rigel %s, Kokkos %d.%d.%d, Clang %s\n", RIGEL_VERSION_STRING, KOKKOS_VERSION / 10000,
              KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100, __clang_version__);
  std::printf("execution spaces:");
#ifdef KOKKOS_ENABLE_SERIAL
  std::printf(" %s", Kokkos::Serial::name());
#endif
#ifdef KOKKOS_ENABLE_OPENMP
  std::printf(" %s", Kokkos::OpenMP::name());
#endif
#ifdef KOKKOS_ENABLE_THREADS
  std::printf(" %s", Kokkos::Threads::name());
#endif
#ifdef KOKKOS_ENABLE_CUDA
  std::printf(" %s", Kokkos::Cuda::name());
#endif
  std::printf("\n");
}

// Says which profile a device has (rigel/profile.hpp), or why one is refused.
void print_profile(const std::string& device, int compute_capability) {
  std::string text;
  try {
    text = rigel::find_profile(device, compute_capability).note;
  } catch (const rigel::Error& e) {
    text = e.what();
  }
  if (!text.empty()) std::printf("    %s\n", text.c_str());
}

// Prints the devices; returns the number of GPUs.
int print_devices() {
  std::printf("devices:\n  host: %s, %u hardware threads\n", rigel::cpu_name().c_str(), std::thread::hardware_concurrency());
  print_profile(rigel::cpu_name(), 0);
  int count = 0;
#ifdef KOKKOS_ENABLE_CUDA
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    std::printf("  no GPU: %s\n", cudaGetErrorString(error));
    return 0;
  }
  for (int d = 0; d < count; ++d) {
    cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, d) != cudaSuccess) continue;
    std::printf("  cuda %d: %s, compute capability %d.%d, %d multiprocessors, %.1f GiB\n", d, p.name, p.major, p.minor,
                p.multiProcessorCount, static_cast<double>(p.totalGlobalMem) / (1 << 30));
    print_profile(p.name, 10 * p.major + p.minor);
  }
#else
  std::printf("  no GPU: this Kokkos is built without CUDA\n");
#endif
  return count;
}

void print_families(const std::vector<rigel::KernelInfo>& kernels) {
  std::vector<std::string> families;
  for (const auto& k : kernels)
    if (std::find(families.begin(), families.end(), k.family) == families.end()) families.push_back(k.family);
  std::printf("families:\n");
  for (const auto& f : families)
    std::printf("  %-12s %td kernels\n", f.c_str(),
                std::count_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k.family == f; }));
}

std::string spaces_of(const rigel::KernelInfo& k) {
  std::string text;
  for (int s = 0; s <= static_cast<int>(rigel::Space::other); ++s)
    if (k.spaces & rigel::bit(static_cast<rigel::Space>(s)))
      text += (text.empty() ? "" : ",") + std::string(rigel::name(static_cast<rigel::Space>(s)));
  return text;
}

std::string architectures_of(const rigel::KernelInfo& k) {
  if ((k.spaces & rigel::bit(rigel::Space::cuda)) == 0) return "-";
  if (k.min_compute_capability == 0 && k.max_compute_capability == 0) return "any";
  const std::string least = std::to_string(k.min_compute_capability);
  if (k.max_compute_capability == 0) return least + '+';
  return least + '-' + std::to_string(k.max_compute_capability);
}

std::string tile_of(const rigel::KernelInfo& k) {
  if (k.tile.m == 0) return "-";
  std::string text = std::to_string(k.tile.m) + 'x' + std::to_string(k.tile.n) + 'x' + std::to_string(k.tile.k);
  if (k.stages > 1) text += ".s" + std::to_string(k.stages);
  return text;
}

// A CUDA block's threads and shared memory: "256,45056B"; "-" if they depend on the problem or there is no such block.
std::string block_of(const rigel::KernelInfo& k) {
  if (k.threads == 0) return "-";
  return std::to_string(k.threads) + ',' + std::to_string(k.shared_memory) + 'B';
}

// A kernel's requirements on its operands, in their order: "any,any,row_major:4", with the alignment in elements; "any" if it
// has none.
std::string operands_of(const rigel::KernelInfo& k) {
  std::string text;
  std::size_t asked = 0;
  for (const rigel::OperandNeeds& needs : k.operands) {
    text += (text.empty() ? "" : ",") + std::string(name(needs.layout));
    if (needs.alignment > 1) text += ':' + std::to_string(needs.alignment);
    if (needs.layout != rigel::Layout::any || needs.alignment > 1) asked = text.size();
  }
  return asked == 0 ? "any" : text.substr(0, asked);
}

std::string accuracy_of(const rigel::KernelInfo& k) {
  if (k.accuracy.constant == 0 && k.accuracy.per_term == 0) return "exact";
  char text[64];
  std::snprintf(text, sizeof text, "%g+%gK", k.accuracy.constant, k.accuracy.per_term);
  if (k.accuracy.part > 0)
    std::snprintf(text, sizeof text, "%g+%g*min(K,%d)+K/%d", k.accuracy.constant, k.accuracy.per_term, k.accuracy.part,
                  k.accuracy.part);
  return text;
}

// A kernel's promises, followed by what a caller must accept: a precision that is not the accumulator's, truncated sums.
std::string promises_of(const rigel::KernelInfo& k) {
  std::string text = rigel::describe(k.promises);
  if (k.precision != rigel::Precision::accumulator) text += std::string(", precision ") + name(k.precision);
  if (k.truncates) text += ", truncates sums";
  return text;
}

void print_kernels(const std::vector<rigel::KernelInfo>& kernels) {
  std::printf("kernels (error bound in units of roundoff times the sum of |a*b|):\n");
  std::vector<std::vector<std::string>> table = {
      {"name", "operation", "semiring", "type", "sum", "spaces", "arch", "tile", "block", "operands", "error", "promises"}};
  for (const auto& k : kernels) {
    const bool any = k.semiring.empty();  // a kernel that serves every semiring
    table.push_back({k.name, std::string(k.operation), any ? "any" : k.semiring, any ? "any" : name(k.element),
                     any                                     ? "any"
                     : k.accumulator == rigel::Scalar::other ? "struct"
                                                             : name(k.accumulator),
                     spaces_of(k), architectures_of(k), tile_of(k), block_of(k), operands_of(k), any ? "-" : accuracy_of(k),
                     promises_of(k)});
  }
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& row : table)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  for (const auto& row : table) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += "  " + row[c];
      if (c + 1 < row.size()) line.append(widths[c] - row[c].size(), ' ');
    }
    std::printf("%s\n", line.c_str());
  }
}

// Prints a line per kernel: its name, the number of problems it solved, and the digest of its results. Returns the exit status.
int print_digests(const std::vector<rigel::KernelInfo>& kernels) {
  bool ok = true;
  for (const auto& k : kernels) {
    try {
      const auto result = rigel::verify(k.name);
      std::printf("%s %d %016llx%s\n", k.name.c_str(), result.problems, static_cast<unsigned long long>(result.digest),
                  result.ok ? "" : " FAILS");
      ok = ok && result.ok;
    } catch (const rigel::Error& e) {
      std::printf("%s: %s\n", k.name.c_str(), e.what());
      ok = ok && e.code() == rigel::Code::unsupported;
    }
    std::fflush(stdout);
  }
  return ok ? 0 : 1;
}

// Prints the disk cache of kernels from text, or clears it. Returns the exit status.
int print_cache(bool clears) {
  try {
    const rigel::runtime::CacheState state = rigel::runtime::cache_state();
    if (clears) {
      std::printf("removed %llu kernels from %s\n", static_cast<unsigned long long>(rigel::runtime::clear_cache()),
                  state.folder.empty() ? "no folder" : state.folder.c_str());
      return 0;
    }
    std::printf("folder: %s%s\n", state.folder.empty() ? "none" : state.folder.c_str(),
                state.unused.empty() ? "" : (", not used: " + state.unused).c_str());
    std::printf("kernels: %llu\nbytes: %llu\nlimit: %llu bytes\n", static_cast<unsigned long long>(state.entries),
                static_cast<unsigned long long>(state.bytes), static_cast<unsigned long long>(state.limit));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rigel-info: %s\n", e.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::fputs(usage, stdout);
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "--cache") return print_cache(false);
  if (argc == 2 && std::string(argv[1]) == "--clear-cache") return print_cache(true);
  Options options;
  if (!read(argc, argv, options)) {
    std::fputs(usage, stderr);
    return 2;
  }
  print_version();
  [[maybe_unused]] const int gpus = print_devices();
  try {
    auto kernels = rigel::kernels(options.filter);
    if (!options.family.empty()) std::erase_if(kernels, [&](const auto& k) { return k.family != options.family; });
    if (options.verify.empty() && !options.digests) {
      print_families(rigel::kernels());
      print_kernels(kernels);
      return 0;
    }
#ifdef KOKKOS_ENABLE_CUDA
    if (gpus == 0) {
      std::printf("skipped: Kokkos is built with CUDA and needs a GPU to run anything\n");
      return 77;
    }
#endif
    const Kokkos::ScopeGuard kokkos;
    if (options.digests) return print_digests(kernels);
    const auto result = rigel::verify(options.verify);
    std::printf("%s: %s on %d problems\n%s", options.verify.c_str(), result.ok ? "keeps its promises" : "FAILS",
                result.problems, result.report.c_str());
    return result.ok ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rigel-info: %s\n", e.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times the linear layer on the default CUDA device: forward with bias and GELU, the weight gradient with and without the bias
// gradient, the input gradient with and without the derivative of GELU.
//
//     bench_linear [--repetitions 20] [--shape MxKxN]… [--json <file>] [--commit <hash>]
//
// Tier::tensor runs by cuda.hopper and by cuda.mma, on bf16 and f16; Tier::scalar on f32, bf16 and f16. A time is the median of single
// calls, each after a fill of a gibibyte, so that the L2 cache holds no operand and the host is ahead of the device. Calls bring their
// workspace. The exit status is 1 if a call fails, 77 if there is no GPU.
#include <bench/cuda/device.hpp>
#include <bench/machine.hpp>
#include <rigel/linear.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using bench::Exec, bench::Matrix;
using rigel::Activation, rigel::Tier;

struct Shape {
  int m, k, n;
};
const std::vector<Shape> all_shapes = {{2048, 768, 3072},  {4096, 1536, 3072}, {2048, 768, 512}, {4096, 4096, 4096},
                                       {8192, 8192, 8192}, {1, 4096, 4096},    {7, 4096, 4096},  {32, 4096, 4096},
                                       {64, 4096, 4096},   {100, 1000, 500}};

/// The calls whose times make a row.
constexpr const char* calls[] = {"forward", "dW, db", "dW", "dX", "dX, gelu'"};

struct Row {
  Shape shape;
  const char *type, *tier;
  std::string kernels;  // the leading part of their names; empty: all of the tier's
  std::vector<double> seconds;
  std::string error;
};

class Bench {
 public:
  Bench(const Exec& exec, int repetitions)
      : exec_(exec),
        watch_(exec),
        repetitions_(repetitions),
        filler_(Kokkos::view_alloc("filler", Kokkos::WithoutInitializing), std::size_t{1} << 30) {}

  template <class T>
  Row row(const Shape& s, Tier tier, const char* kernels) {
    Row row{s, rigel::name(rigel::scalar_of<T>), rigel::name(tier), kernels, {}, {}};
    try {
      fill_row<T>(row, s, tier);
    } catch (const std::exception& e) {
      row.error = e.what();
    }
    return row;
  }

 private:
  template <class T>
  void fill_row(Row& row, const Shape& s, Tier tier) {
    const auto x = bench::uninitialized<T>(s.m, s.k), w = bench::uninitialized<T>(s.k, s.n),
               dy = bench::uninitialized<T>(s.m, s.n), y = bench::uninitialized<T>(s.m, s.n),
               dx = bench::uninitialized<T>(s.m, s.k), z = bench::uninitialized<T>(s.m, s.k);
    const auto dw = bench::uninitialized<float>(s.k, s.n), vectors = bench::uninitialized<float>(2, s.n);
    std::uint32_t seed = 1;
    for (const auto& matrix : {x, w, dy, z}) bench::fill(exec_, matrix, seed++, bench::Numbers::normal);
    for (const auto& matrix : {dw, vectors}) bench::fill(exec_, matrix, seed++, bench::Numbers::normal);
    const auto bias = Kokkos::subview(vectors, 0, Kokkos::ALL), db = Kokkos::subview(vectors, 1, Kokkos::ALL);
    rigel::LinearOptions options{.tier = tier, .kernel = row.kernels};
    rigel::LinearOptions gelu = options;
    gelu.epilogue = Activation::gelu;
    const auto time = [&](std::size_t bytes, const auto& call) { row.seconds.push_back(seconds(bytes, call)); };
    time(rigel::linear_forward_workspace_size(exec_, x, w, bias, y, gelu), [&](const rigel::Workspace& own) {
      gelu.workspace = own;
      rigel::linear_forward(exec_, x, w, bias, y, gelu);
    });
    time(rigel::linear_backward_weight_workspace_size(exec_, x, dy, dw, db, options), [&](const rigel::Workspace& own) {
      options.workspace = own;
      rigel::linear_backward_weight(exec_, x, dy, dw, db, options);
    });
    time(rigel::linear_backward_weight_workspace_size(exec_, x, dy, dw, rigel::no_bias, options),
         [&](const rigel::Workspace& own) {
           options.workspace = own;
           rigel::linear_backward_weight(exec_, x, dy, dw, rigel::no_bias, options);
         });
    time(rigel::linear_backward_input_workspace_size(exec_, dy, w, dx, options), [&](const rigel::Workspace& own) {
      options.workspace = own;
      rigel::linear_backward_input(exec_, dy, w, dx, options);
    });
    time(rigel::linear_backward_input_workspace_size(exec_, dy, w, dx, z, Activation::gelu, options),
         [&](const rigel::Workspace& own) {
           options.workspace = own;
           rigel::linear_backward_input(exec_, dy, w, dx, z, Activation::gelu, options);
         });
  }

  /// The median of single calls. The memory is aligned to 256 bytes, as cudaMalloc gives it.
  template <class Call>
  double seconds(std::size_t bytes, const Call& call) const {
    const Kokkos::View<char*, Kokkos::CudaSpace> memory(Kokkos::view_alloc("workspace", Kokkos::WithoutInitializing),
                                                        bytes + 256);
    const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
    const rigel::Workspace own{.data = reinterpret_cast<void*>(address), .bytes = bytes};
    call(own);
    std::vector<double> times;
    for (int r = 0; r < repetitions_; ++r) {
      bench::require(cudaMemsetAsync(filler_.data(), r, filler_.size(), exec_.cuda_stream()));
      times.push_back(watch_.seconds([&] { call(own); }));
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  Exec exec_;
  bench::Stopwatch watch_;
  int repetitions_;
  Kokkos::View<unsigned char*, Kokkos::CudaSpace> filler_;
};

void print(const Row& r) {
  char shape[48];
  std::snprintf(shape, sizeof shape, "%d x %d x %d", r.shape.m, r.shape.k, r.shape.n);
  std::printf("%-20s %-5s %-7s %-12s", shape, r.type, r.tier, r.kernels.c_str());
  for (const double s : r.seconds) std::printf(" %10.2f", 1e6 * s);
  std::printf("%s%s\n", r.error.empty() ? "" : "  failed: ", r.error.substr(0, r.error.find('\n')).c_str());
  std::fflush(stdout);
}

std::string json(const Exec& exec, const std::string& commit, int repetitions, const std::vector<Row>& rows) {
  std::ostringstream out;
  out << "{" << bench::machine(exec) << ", \"commit\": " << bench::quoted(commit) << ", \"repetitions\": " << repetitions
      << ", \"rows\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    out << (i ? ",\n" : "\n") << "{\"m\": " << r.shape.m << ", \"k\": " << r.shape.k << ", \"n\": " << r.shape.n
        << ", \"type\": \"" << r.type << "\", \"tier\": \"" << r.tier << "\", \"kernels\": \"" << r.kernels << "\"";
    for (std::size_t c = 0; c < r.seconds.size(); ++c) out << ", " << bench::quoted(calls[c]) << ": " << r.seconds[c];
    if (!r.error.empty()) out << ", \"error\": " << bench::quoted(r.error);
    out << "}";
  }
  out << "\n]}\n";
  return out.str();
}

int run(const std::vector<Shape>& shapes, int repetitions, const std::string& file, const std::string& commit) {
  const Exec exec;
  Bench bench(exec, repetitions);
  std::vector<Row> rows;
  std::printf("M x K x N            type  tier    kernels     ");
  for (const char* call : calls) std::printf(" %10s", call);
  std::printf("  [us]\n");
  const auto add = [&](Row row) {
    print(row);
    rows.push_back(std::move(row));
  };
  const auto& device = exec.cuda_device_prop();
  const bool hopper = device.major == 9 && device.minor == 0;
  for (const Shape& s : shapes) {
    if (hopper) {
      add(bench.row<rigel::bfloat16>(s, Tier::tensor, "cuda.hopper"));
      add(bench.row<rigel::half>(s, Tier::tensor, "cuda.hopper"));
    }
    add(bench.row<rigel::bfloat16>(s, Tier::tensor, "cuda.mma"));
    add(bench.row<rigel::half>(s, Tier::tensor, "cuda.mma"));
    add(bench.row<float>(s, Tier::scalar, ""));
    add(bench.row<rigel::bfloat16>(s, Tier::scalar, ""));
    add(bench.row<rigel::half>(s, Tier::scalar, ""));
  }
  if (!file.empty()) std::ofstream(file) << json(exec, commit, repetitions, rows);
  return std::ranges::any_of(rows, [](const Row& r) { return !r.error.empty(); }) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Shape> shapes;
  std::string file, commit;
  int repetitions = 20;
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    Shape s{};
    if (word == "--repetitions" && std::atoi(value.c_str()) > 0) {
      repetitions = std::atoi(value.c_str());
    } else if (word == "--shape" && std::sscanf(value.c_str(), "%dx%dx%d", &s.m, &s.k, &s.n) == 3) {
      shapes.push_back(s);
    } else if (word == "--json" && !value.empty()) {
      file = value;
    } else if (word == "--commit" && !value.empty()) {
      commit = value;
    } else {
      std::fputs("bench_linear [--repetitions 20] [--shape MxKxN]... [--json <file>] [--commit <hash>]\n", stderr);
      return 2;
    }
  }
  if (!bench::has_gpu("bench_linear")) return 77;
  const Kokkos::ScopeGuard kokkos;
  try {
    return run(shapes.empty() ? all_shapes : shapes, repetitions, file, commit);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_linear: %s\n", e.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs products and distances on matrices in files, on the default CUDA device, so that a script can compare them with other
// libraries on the same numbers. The library chooses the kernels, from all or from some.
//
//     bench_serve <file of jobs>            one job per line; "-" is the standard input; # begins a comment
//
//     <operation> <type of A and B> <type of C> <precision> <M> <N> <K> <layout of A> <layout of B> <file of A> <file of B>
//         <file of C> <repetitions> [<rows of C> [<kernels>]]
//
// operation   a semiring of the zoo, C = A ⊗ B: plus_times, min_plus, max_plus, max_min, min_max, max_times, min_times,
//             log_plus, l1, l2_squared, linf, hamming, or lp:<p>; or cdist:<p>, Minkowski distances between the rows of A
//             and the columns of B, root included
// types       f32 and f32; for plus_times also f16 or bf16 and the same or f32, i8 and i32
// precision   the least precise terms: accumulator, exact_products, promoted, split, bf16x3, tf32 or operands
// layout      rows or columns: whether A (M × K) and B (K × N) are row-major or column-major. C is row-major.
// files       raw little-endian numbers; "=" for A or B takes those of the previous job, which has as many bytes; "-" for C
//             writes nothing
// rows of C   the rows to write, in this order, separated by commas; "all", the default, writes all
// kernels     the leading part of the names of the kernels to choose from, such as cuda.mma; default: all kernels
//
// It prints lines of JSON: first the machine, then for each job its line, the name of the kernel and the median device seconds
// of the repetitions. A fill of a gibibyte precedes each call, so that the L2 cache does not hold its matrices and the host is
// ahead of the device. For a job that fails it prints the error and goes on; the exit status is then 1. It is 77 if there is
// no GPU.
#include <bench/cuda/device.hpp>
#include <bench/machine.hpp>
#include <rigel/contract.hpp>
#include <rigel/distance.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using bench::Exec, bench::Matrix;

struct Job {
  std::string operation, element, result;
  rigel::Precision precision = rigel::Precision::accumulator;
  double p = 0;
  std::int64_t m = 0, n = 0, k = 0;
  bool a_by_rows = true, b_by_rows = true;
  std::string a, b, c;
  int repetitions = 0;
  std::vector<std::int64_t> rows_of_c;
  bool all_rows_of_c = true;
  std::string kernels;
};

template <class T>
T number(const std::string& what, const std::string& word, T least) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !(value >= least))
    throw std::runtime_error(what + " is '" + word + "', expected a number from " + std::to_string(least) + " on");
  return value;
}

bool by_rows(const std::string& what, const std::string& word) {
  if (word != "rows" && word != "columns")
    throw std::runtime_error("the layout of " + what + " is '" + word + "', expected rows or columns");
  return word == "rows";
}

rigel::Precision precision(const std::string& word) {
  using enum rigel::Precision;
  for (const auto p : {automatic, accumulator, exact_products, promoted, split, bf16x3, tf32, operands})
    if (word == name(p)) return p;
  throw std::runtime_error("the precision is '" + word +
                           "', expected automatic, accumulator, exact_products, promoted, split, bf16x3, tf32 or operands");
}

Job parse(const std::string& line) {
  std::istringstream stream(line);
  const std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
  if (words.size() < 13 || words.size() > 15)
    throw std::runtime_error("the job has " + std::to_string(words.size()) +
                             " words, expected 13 to 15: operation type-of-A-and-B type-of-C precision M N K layout-of-A "
                             "layout-of-B A B C repetitions [rows-of-C [kernels]]");
  Job job;
  const std::size_t colon = words[0].find(':');
  job.operation = words[0].substr(0, colon);
  const bool has_p = colon != std::string::npos, needs_p = job.operation == "lp" || job.operation == "cdist";
  if (has_p != needs_p)
    throw std::runtime_error("the operation is '" + words[0] + "', expected " + job.operation + (needs_p ? ":<p>" : ""));
  if (has_p) job.p = number("p", words[0].substr(colon + 1), 0.);
  job.element = words[1];
  job.result = words[2];
  job.precision = precision(words[3]);
  job.m = number<std::int64_t>("M", words[4], 0);
  job.n = number<std::int64_t>("N", words[5], 0);
  job.k = number<std::int64_t>("K", words[6], 0);
  job.a_by_rows = by_rows("A", words[7]);
  job.b_by_rows = by_rows("B", words[8]);
  job.a = words[9];
  job.b = words[10];
  job.c = words[11];
  job.repetitions = number("the number of repetitions", words[12], 1);
  if (words.size() > 13 && words[13] != "all") {
    job.all_rows_of_c = false;
    std::istringstream rows(words[13]);
    for (std::string row; std::getline(rows, row, ',');) {
      job.rows_of_c.push_back(number<std::int64_t>("a row of C", row, 0));
      if (job.rows_of_c.back() >= job.m)
        throw std::runtime_error("a row of C is " + row + ", expected less than M, which is " + std::to_string(job.m));
    }
  }
  if (words.size() > 14) job.kernels = words[14];
  return job;
}

/// The numbers of a matrix on the device, which the next job may reuse.
class Numbers {
 public:
  explicit Numbers(const char* what) : what_(what) {}

  /// A matrix of `lines` rows of `length` numbers, in the order of the file.
  template <class T>
  Matrix<T> read(const std::string& path, std::int64_t lines, std::int64_t length) {
    const std::int64_t expected = static_cast<std::int64_t>(sizeof(T)) * lines * length;
    const auto check = [&](const std::string& where, std::int64_t bytes) {
      if (bytes != expected)
        throw std::runtime_error(std::string(what_) + ": " + where + " has " + std::to_string(bytes) + " bytes, expected " +
                                 std::to_string(expected) + " of " + std::to_string(lines) + " x " + std::to_string(length) +
                                 ' ' + name(rigel::scalar_of<T>));
    };
    if (path == "=")
      check("the job before", static_cast<std::int64_t>(bytes_.size()));
    else
      fill(path, check);
    return Matrix<T>(reinterpret_cast<T*>(bytes_.data()), lines, length);
  }

 private:
  template <class Check>
  void fill(const std::string& path, const Check& check) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error(std::string(what_) + ": the file '" + path + "' cannot be read");
    const auto size = static_cast<std::size_t>(file.tellg());
    check("the file '" + path + "'", static_cast<std::int64_t>(size));
    bytes_ = {};
    bytes_ = Kokkos::View<std::byte*, Kokkos::CudaSpace>(Kokkos::view_alloc("numbers", Kokkos::WithoutInitializing), size);
    file.seekg(0);
    for (std::size_t at = 0; at < size; at += part_.size()) {
      const std::size_t count = std::min(part_.size(), size - at);
      if (!file.read(reinterpret_cast<char*>(part_.data()), static_cast<std::streamsize>(count)))
        throw std::runtime_error(std::string(what_) + ": the file '" + path + "' cannot be read to its end");
      Kokkos::deep_copy(Kokkos::subview(bytes_, std::pair{at, at + count}),
                        Kokkos::subview(part_, std::pair{std::size_t{0}, count}));
    }
  }

  const char* what_;
  Kokkos::View<std::byte*, Kokkos::CudaSpace> bytes_;
  Kokkos::View<std::byte*, Kokkos::CudaHostPinnedSpace> part_{"a part of a file", 16 << 20};
};

/// Writes some rows of C, or all of it.
template <class T>
void write(const Job& job, const Matrix<T>& c) {
  std::ofstream file(job.c, std::ios::binary);
  const auto put = [&](const auto& part) {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, part);
    file.write(reinterpret_cast<const char*>(host.data()), static_cast<std::streamsize>(sizeof(T) * host.size()));
  };
  if (job.all_rows_of_c) put(c);
  for (const std::int64_t row : job.rows_of_c) put(Kokkos::subview(c, row, Kokkos::ALL));
  if (!file.flush()) throw std::runtime_error("C: the file '" + job.c + "' cannot be written");
}

// Calls `use` with the arguments of contract() that compute the job's operation on A and B.
template <class T, class AView, class BView, class CView, class Use>
void with_operation(const Exec& exec, const Job& job, const AView& a, const BView& b, const CView& c, const Use& use) {
  rigel::ContractOptions options;
  options.precision = job.precision;
  options.kernel = job.kernels;
  const auto product = [&](const auto& semiring) { use(exec, semiring, a, b, c, rigel::epilogue::Program{}, options); };
  const std::string& name = job.operation;
  if (name == "plus_times") return product(rigel::plus_times<T>{});
  if constexpr (!std::is_same_v<T, float>)
    throw std::runtime_error("the operation is '" + name + "', expected plus_times for " + job.element);
  else if (name == "cdist")
    rigel::metric::minkowski{job.p}.with<float>(job.k, [&](const auto& semiring, const rigel::epilogue::Program& root) {
      use(exec, semiring, a, b, c, root, options);
    });
  else if (name == "lp")
    product(rigel::lp<float>{{}, static_cast<float>(job.p)});
  else if (name == "min_plus")
    product(rigel::min_plus<float>{});
  else if (name == "max_plus")
    product(rigel::max_plus<float>{});
  else if (name == "max_min")
    product(rigel::max_min<float>{});
  else if (name == "min_max")
    product(rigel::min_max<float>{});
  else if (name == "max_times")
    product(rigel::max_times<float>{});
  else if (name == "min_times")
    product(rigel::min_times<float>{});
  else if (name == "log_plus")
    product(rigel::log_plus<float>{});
  else if (name == "l1")
    product(rigel::l1<float>{});
  else if (name == "l2_squared")
    product(rigel::l2_squared<float>{});
  else if (name == "linf")
    product(rigel::linf<float>{});
  else if (name == "hamming")
    product(rigel::hamming<float>{});
  else
    throw std::runtime_error("the operation is '" + name + "', expected cdist:<p> or the name of a semiring on f32");
}

// Calls `use` with a value of the type of A and B, and one of the type of C.
template <class Use>
auto with_types(const Job& job, const Use& use) {
  const auto are = [&](const char* element, const char* result) { return job.element == element && job.result == result; };
  if (are("f32", "f32")) return use(float{}, float{});
  if (are("f64", "f64")) return use(double{}, double{});
  if (are("f16", "f16")) return use(rigel::half{}, rigel::half{});
  if (are("f16", "f32")) return use(rigel::half{}, float{});
  if (are("bf16", "bf16")) return use(rigel::bfloat16{}, rigel::bfloat16{});
  if (are("bf16", "f32")) return use(rigel::bfloat16{}, float{});
  if (are("i8", "i32")) return use(std::int8_t{}, std::int32_t{});
  throw std::runtime_error("the types are " + job.element + " and " + job.result +
                           ", expected f32 or f64 and the same, f16 or bf16 and the same or f32, or i8 and i32");
}

class Server {
 public:
  explicit Server(const Exec& exec)
      : exec_(exec), watch_(exec), filler_(Kokkos::view_alloc("filler", Kokkos::WithoutInitializing), 1 << 30) {}

  /// Runs a job and returns its results as members of a JSON object.
  std::string run(const Job& job) {
    return with_types(job, [&]<class T, class C>(T, C) { return run_on<T, C>(job); });
  }

 private:
  template <class T, class C>
  std::string run_on(const Job& job) {
    const auto a = a_.read<T>(job.a, job.a_by_rows ? job.m : job.k, job.a_by_rows ? job.k : job.m);
    const auto b = b_.read<T>(job.b, job.b_by_rows ? job.k : job.n, job.b_by_rows ? job.n : job.k);
    const auto c = bench::uninitialized<C>(job.m, job.n);
    std::string kernel;
    std::vector<double> seconds;
    const auto measure = [&](const auto&... arguments) {
      rigel::detail::with_problem(arguments..., [&](const rigel::Contraction& p) { kernel = rigel::select(p).info.name; });
      rigel::contract(arguments...);
      for (int r = 0; r < job.repetitions; ++r) {
        cudaMemsetAsync(filler_.data(), r, filler_.size(), exec_.cuda_stream());
        seconds.push_back(watch_.seconds([&] { rigel::contract(arguments...); }));
      }
    };
    if (job.a_by_rows && job.b_by_rows)
      with_operation<T>(exec_, job, a, b, c, measure);
    else if (job.a_by_rows)
      with_operation<T>(exec_, job, a, rigel::transposed(b), c, measure);
    else if (job.b_by_rows)
      with_operation<T>(exec_, job, rigel::transposed(a), b, c, measure);
    else
      with_operation<T>(exec_, job, rigel::transposed(a), rigel::transposed(b), c, measure);
    exec_.fence();
    if (job.c != "-") write(job, c);
    std::sort(seconds.begin(), seconds.end());
    std::ostringstream json;
    json << "\"kernel\": \"" << kernel << "\", \"seconds\": " << seconds[seconds.size() / 2]
         << ", \"repetitions\": " << job.repetitions;
    return json.str();
  }

  Exec exec_;
  bench::Stopwatch watch_;
  Numbers a_{"A"}, b_{"B"};
  Kokkos::View<unsigned char*, Kokkos::CudaSpace> filler_;
};

/// Returns the exit status.
int serve(std::istream& jobs) {
  const Exec exec;
  Server server(exec);
  std::cout << "{" << bench::machine(exec) << "}" << std::endl;
  int status = 0, number = 0;
  for (std::string line; std::getline(jobs, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::cout << "{\"line\": " << number << ", ";
    try {
      std::cout << server.run(parse(line));
    } catch (const std::exception& e) {
      status = 1;
      std::cout << "\"error\": " << bench::quoted(e.what());
      std::cerr << "bench_serve: line " << number << ": " << e.what() << '\n';
    }
    std::cout << "}" << std::endl;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bench_serve <file of jobs, or - for the standard input>\n";
    return 1;
  }
  if (!bench::has_gpu("bench_serve")) return 77;
  const Kokkos::ScopeGuard kokkos;
  try {
    if (std::string_view(argv[1]) == "-") return serve(std::cin);
    std::ifstream file(argv[1]);
    if (!file) throw std::runtime_error("the file of jobs '" + std::string(argv[1]) + "' cannot be read");
    return serve(file);
  } catch (const std::exception& e) {
    std::cerr << "bench_serve: " << e.what() << '\n';
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures cuda.mma and, if the GPU has its instructions, cuda.hopper on the default CUDA device, compared with the rate of
// mma.sync on registers (program.hpp). Numbers are normal, of mean 0 and variance 1; in integers and words all bits are random.
//
//     bench_mma --benchmark_out=mma.json --benchmark_context=commit=$(git rev-parse --short HEAD)
#include <bench/cuda/check.hpp>
#include <bench/cuda/mma_ceiling.hpp>
#include <bench/cuda/program.hpp>
#include <rigel/distance.hpp>

namespace {

using bench::add_products;
using bench::B, bench::Exec, bench::State;
using rigel::bfloat16, rigel::half;
using rigel::bit_hamming, rigel::bit_jaccard, rigel::l2_squared, rigel::log_plus;
using rigel::or_and, rigel::plus_times, rigel::xor_and;
namespace pair = bench::pair;
namespace epilogue = rigel::epilogue;

/// Distances of points from themselves. If `near`, the points form two groups on either side of the origin, so half of the
/// outputs cancel.
template <class Pair, class T>
void self_distances(State& state, const Exec& exec, int n, int k, bool near, rigel::Precision precision) {
  const auto x = bench::uninitialized<T>(n, k), d = bench::uninitialized<T>(n, n);
  bench::fill(exec, x, 1, bench::Numbers::normal);
  if (near)
    Kokkos::parallel_for(
        "bench::groups", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {n, k}), KOKKOS_LAMBDA(int i, int c) {
          const T group = static_cast<unsigned>(i) * 2654435761u >> 31 ? T(100) : T(-100);
          x(i, c) = group + T(1e-3) * x(i, c);
        });
  const rigel::CdistOptions options{.precision = precision, .kernel = "cuda.mma"};
  const double seconds = bench::time_calls(
      state, exec, [&](std::int64_t) { rigel::cdist(exec, x, x, d, rigel::metric::euclidean{}, options); });
  bench::set_rate<Pair>(state, exec, double(n) * n * k / seconds);
}

/// Distances between two sets of points, all near each other. The centre is far from them: it is the median of eight points of
/// the first set, four of which are on its other side. So all outputs cancel except those of these four points.
void near_distances(State& state, const Exec& exec, int n, int k, const rigel::CdistOptions& options) {
  const auto x = bench::uninitialized<float>(n, k), z = bench::uninitialized<float>(n, k),
             d = bench::uninitialized<float>(n, n);
  bench::fill(exec, x, 1, bench::Numbers::normal);
  bench::fill(exec, z, 2, bench::Numbers::normal);
  const int apart = n / 8;
  Kokkos::parallel_for(
      "bench::near", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {n, k}), KOKKOS_LAMBDA(int i, int c) {
        x(i, c) = (i % apart == 0 && i / apart < 4 ? -100.f : 100.f) + 1e-3f * x(i, c);
        z(i, c) = 100.f + 1e-3f * z(i, c);
      });
  const double seconds = bench::time_calls(
      state, exec, [&](std::int64_t) { rigel::cdist(exec, x, z, d, rigel::metric::euclidean{}, options); });
  bench::set_rate<pair::tensor_halves>(state, exec, double(n) * n * k / seconds);
}

// log_plus of rows whose maxima are at the first k and columns whose maxima are at the last, so far above the rest that every
// output is recomputed: with a gap of 40 by products of floats in two parts, with 200 directly.
void add_log_sums_apart(const Exec& exec, int n, float gap) {
  const std::string name =
      "log_plus/f32/" + std::to_string(n) + "^3/maxima apart by " + std::to_string(static_cast<int>(gap));
  bench::add(name, benchmark::kMillisecond, [=](benchmark::State& state) {
    const auto a = bench::uninitialized<float>(n, n), b = bench::uninitialized<float>(n, n);
    const auto c = bench::uninitialized<float>(n, n);
    bench::fill(exec, a, 1, bench::Numbers::normal);
    bench::fill(exec, b, 2, bench::Numbers::normal);
    Kokkos::parallel_for(
        "bench::maxima_apart", Kokkos::RangePolicy<Exec>(exec, 0, n), KOKKOS_LAMBDA(const int i) {
          a(i, 0) += gap;
          b(n - 1, i) += gap;
        });
    const rigel::ContractOptions options{.precision = rigel::Precision::split, .kernel = "cuda.mma"};
    const double seconds = bench::time_calls(
        state, exec, [&](std::int64_t) { rigel::contract(exec, log_plus<float>{}, a, b, c, epilogue::Program{}, options); });
    bench::set_rate<pair::tensor_halves>(state, exec, double(n) * n * n / seconds);
  });
}

// Sums of 20,000 products of positive numbers, whose rounding errors do not cancel; "relative error" is the largest one.
template <class T>
void add_long_sums(const bench::Setting& setting, const std::string& name,
                   rigel::Precision precision = rigel::Precision::accumulator) {
  bench::add(name, benchmark::kMillisecond, [=](State& state) {
    const Exec& exec = setting.exec;
    constexpr int n = 2048, k = 20000;
    const auto a = bench::uninitialized<T>(n, k), b = bench::uninitialized<T>(n, k);
    const auto wide_a = bench::uninitialized<double>(n, k), wide_b = bench::uninitialized<double>(n, k);
    const auto c = bench::uninitialized<float>(n, n);
    const auto exact = bench::uninitialized<double>(n, n);
    bench::fill(exec, a, 1, bench::Numbers::uniform);
    bench::fill(exec, b, 2, bench::Numbers::uniform);
    Kokkos::parallel_for(
        "bench::widen", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {n, k}), KOKKOS_LAMBDA(int i, int l) {
          wide_a(i, l) = static_cast<float>(a(i, l));
          wide_b(i, l) = static_cast<float>(b(i, l));
        });
    rigel::contract(exec, plus_times<double>{}, wide_a, rigel::transposed(wide_b), exact);
    const rigel::ContractOptions options{.precision = precision, .kernel = setting.kernels};
    const auto call = [&](const auto& use) {
      return use(exec, plus_times<T>{}, a, rigel::transposed(b), c, epilogue::Program{}, options);
    };
    call([&](const auto&... arguments) {
      rigel::detail::with_problem(arguments...,
                                  [&](const rigel::Contraction& p) { state.SetLabel(rigel::select(p).info.name); });
    });
    const double seconds = bench::time_calls(
        state, exec, [&](std::int64_t) { call([](const auto&... arguments) { rigel::contract(arguments...); }); });
    double error = 0;
    Kokkos::parallel_reduce(
        "bench::relative_error", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {n, n}),
        KOKKOS_LAMBDA(int i, int j, double& most) {
          most = Kokkos::max(most, Kokkos::abs(static_cast<double>(c(i, j)) - exact(i, j)) / exact(i, j));
        },
        Kokkos::Max<double>(error));
    state.counters["relative error"] = error;
    bench::set_rate<pair::tensor_f16>(state, exec, double(n) * n * k / seconds);
  });
}

// Products with a bias and GELU, as a layer of a network has them.
template <class Pair, class Value, class S>
void add_layers(const bench::Setting& setting, const std::string& name, const S& s, const std::vector<bench::Task>& tasks) {
  for (const bench::Task& t : tasks)
    bench::add(name + '/' + bench::describe(t), benchmark::kMillisecond, [=](State& state) {
      const auto bias = bench::uninitialized<float>(1, t.n);
      bench::fill(setting.exec, bias, 3, setting.numbers);
      bench::product<Pair, Value>(state, setting, s, t,
                                  epilogue::add_row(Kokkos::subview(bias, 0, Kokkos::ALL)) | epilogue::gelu());
    });
}

// Products that are scaled by the closed set's step, and by a functor as an application has it.
struct Scaled {
  float factor;
  KOKKOS_FUNCTION float operator()(float v, std::int64_t, std::int64_t, std::int64_t) const { return v * factor; }
};
void add_scaled(const bench::Setting& setting, const std::string& name, const bench::Task& t) {
  using S = plus_times<bfloat16>;
  const auto add = [&](const char* how, const auto& epilogue) {
    bench::add(name + '/' + how + '/' + bench::describe(t), benchmark::kMillisecond,
               [=](State& state) { bench::product<pair::tensor_bf16, bfloat16>(state, setting, S{}, t, epilogue); });
  };
  add("scaled", epilogue::scale(0.5));
  add("scaled by a functor", Scaled{0.5f});
}

// clang-format off
constexpr B rows = B::by_rows, columns = B::by_columns;
constexpr bool unaligned = false;
constexpr auto tf32 = rigel::Precision::tf32, split = rigel::Precision::split, automatic = rigel::Precision::automatic,
               promoted = rigel::Precision::promoted, bf16x3 = rigel::Precision::bf16x3,
               exact_products = rigel::Precision::exact_products;
const std::vector<bench::Task> layers = {{4096, 3072, 1536, columns}, {2048, 3072, 768, columns}, {8192, 8192, 8192, columns}};

// The limiting pair, the semiring, M, N and K. Small products come first, because the card's clock is lower for a while after 8192³.
void add_sums_of_products(const bench::Setting& setting) {
  add_products<pair::tensor_bf16>(setting, "plus_times/bf16", plus_times<bfloat16>{}, {
      {4096, 3072, 1536, columns},
      {4096, 3072, 1536, rows},
      {2048, 3072, 768, columns},
      {2048, 3072, 768, rows},
      {2048, 512, 768, columns},
      {2048, 512, 768, rows},
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, columns, unaligned},
      {8192, 8192, 8192, rows, unaligned}});
  add_products<pair::tensor_bf16, bfloat16>(setting, "plus_times/bf16/C in bf16", plus_times<bfloat16>{}, {
      {4096, 3072, 1536, columns},
      {2048, 3072, 768, columns},
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, rows}});
  add_layers<pair::tensor_bf16, bfloat16>(setting, "plus_times/bf16/C in bf16, bias and GELU", plus_times<bfloat16>{}, layers);
  add_scaled(setting, "plus_times/bf16/C in bf16", {8192, 8192, 8192, columns});
  add_products<pair::tensor_f16>(setting, "plus_times/f16", plus_times<half>{}, {
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, rows}});
  add_long_sums<half>(setting, "positive numbers/f16/2048x2048x20000");
  add_long_sums<bfloat16>(setting, "positive numbers/bf16/2048x2048x20000");
  add_products<pair::tensor_tf32>(setting, "plus_times/f32", plus_times<float>{}, {
      {8192, 8192, 8192, columns, true, nullptr, tf32},
      {8192, 8192, 8192, rows, true, nullptr, tf32}});
  add_products<pair::tensor_split>(setting, "plus_times/f32", plus_times<float>{}, {
      {8192, 8192, 8192, columns, true, nullptr, split},
      {8192, 8192, 8192, rows, true, nullptr, split},
      {8192, 8192, 8192, columns, true, nullptr, promoted},
      {8192, 8192, 8192, columns, true, nullptr, bf16x3},
      {8192, 8192, 8192, columns, true, nullptr, exact_products},
      {8192, 8192, 8192, columns, true, "cuda.mma.plus_times.f32.split", split},
      {8192, 8192, 8192, columns, true, "cuda.mma.plus_times.f32.promoted", promoted},
      {8192, 8192, 8192, columns, true, "cuda.mma.plus_times.f32.bf16x9_split", split}});
}

void add_log_sums(const Exec& exec, const bench::Setting& setting) {
  add_products<pair::tensor_halves>(setting, "log_plus/f32", log_plus<float>{}, {
      {1024, 1024, 1024, rows, true, nullptr, split},
      {1024, 1024, 1024, columns, true, nullptr, promoted},
      {4096, 4096, 4096, rows, true, nullptr, split},
      {4096, 4096, 4096, columns, true, nullptr, promoted}});
  add_products<pair::tensor_f64>(setting, "log_plus/f64", log_plus<double>{}, {
      {1024, 1024, 1024, rows, true, nullptr, promoted},
      {4096, 4096, 4096, rows, true, nullptr, promoted},
      {4096, 4096, 4096, columns, true, nullptr, promoted}});
  for (const float gap : {40.f, 200.f}) {
    add_log_sums_apart(exec, 1024, gap);
    add_log_sums_apart(exec, 4096, gap);
  }
}

void add_exact_products(const bench::Setting& setting) {
  add_products<pair::tensor_f64>(setting, "plus_times/f64", plus_times<double>{}, {
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, rows}});
  add_products<pair::tensor_s8>(setting, "plus_times/s8", plus_times<std::int8_t>{}, {
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, rows}});
}

void add_distances(const Exec& exec, const bench::Setting& setting) {
  add_products<pair::tensor_halves>(setting, "l2_squared/f32/root", l2_squared<float>{}, {
      {30000, 30000, 1024, columns, true, nullptr, promoted},
      {8192, 8192, 64, columns, true, nullptr, promoted},
      {2048, 2048, 256, columns, true, nullptr, promoted}}, epilogue::pow(0.5));
  for (const int k : {64, 1024})
    for (const bool near : {false, true})
      bench::add("distances of a matrix's rows to themselves/f32/30000x30000x" + std::to_string(k) + (near ? "/half of them near" : ""),
                 benchmark::kMillisecond, [=](State& state) { self_distances<pair::tensor_halves, float>(state, exec, 30000, k, near, promoted); });
  for (const int k : {64, 1024}) {
    const std::string name = "distances of near points/f32/30000x30000x" + std::to_string(k);
    bench::add(name, benchmark::kMillisecond, [=](State& state) {
      near_distances(state, exec, 30000, k, {.precision = promoted, .kernel = "cuda.mma"});
    });
    bench::add(name + "/cuda.simt", benchmark::kMillisecond,
               [=](State& state) { near_distances(state, exec, 30000, k, {.kernel = "cuda.simt"}); });
  }
  // Euclidean distances of doubles.
  add_products<pair::tensor_f64>(setting, "l2_squared/f64/root", l2_squared<double>{}, {
      {30000, 30000, 1024, columns, true, nullptr, promoted},
      {8192, 8192, 64, columns, true, nullptr, promoted}}, epilogue::pow(0.5));
  add_products<pair::tensor_f64>(setting, "l2_squared/f32/root", l2_squared<float>{}, {
      {30000, 30000, 1024, columns, true, nullptr, exact_products},
      {8192, 8192, 64, columns, true, nullptr, exact_products}}, epilogue::pow(0.5));
  bench::add("distances of a matrix's rows to themselves/f64/30000x30000x1024", benchmark::kMillisecond, [=](State& state) {
    self_distances<pair::tensor_f64, double>(state, exec, 30000, 1024, false, promoted); });
  bench::add("distances of a matrix's rows to themselves/f32 as doubles/30000x30000x1024", benchmark::kMillisecond, [=](State& state) {
    self_distances<pair::tensor_f64, float>(state, exec, 30000, 1024, false, exact_products); });
}

void add_codes(const bench::Setting& setting) {
  // 2048 words of 32 bits along K; C takes 17 GB.
  add_products<pair::tensor_b1>(setting, "or_and/words along k", or_and<std::uint32_t>{}, {{65536, 65536, 2048, columns}},
                                epilogue::any_bit());
  // Codes of 1024 and 8192 bits; C of the first takes 17 GB.
  const std::vector<bench::Task> codes = {{65536, 65536, 32, columns}, {8192, 8192, 256, columns}};
  add_products<pair::tensor_b1>(setting, "bit_hamming/u32", bit_hamming<std::uint32_t>{}, codes);
  add_products<pair::tensor_b1, float>(setting, "bit_hamming/u32/part of 1024 bits", bit_hamming<std::uint32_t>{}, {codes[0]},
                                       epilogue::scale(1 / 1024.0));
  add_products<pair::tensor_b1>(setting, "bit_jaccard/u32", bit_jaccard<std::uint32_t>{}, codes);
}

void add_of_all_families(const bench::Setting& any) {
  // C column-major, as Kokkos::LayoutLeft makes it: alone, and with both operands.
  using bench::Left;
  constexpr auto accumulator = rigel::Precision::accumulator;
  add_products<pair::tensor_bf16>(any, "layouts/plus_times/bf16", plus_times<bfloat16>{}, {
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, rows, true, nullptr, accumulator, Left::c},
      {8192, 8192, 8192, columns, true, nullptr, accumulator, Left::a_and_c}});
  add_products<pair::tensor_split>(any, "layouts/plus_times/f32", plus_times<float>{}, {
      {8192, 8192, 8192, rows, true, nullptr, promoted},
      {8192, 8192, 8192, rows, true, nullptr, promoted, Left::c},
      {8192, 8192, 8192, columns, true, nullptr, promoted, Left::a_and_c}});
  add_products<pair::tensor_f64>(any, "layouts/plus_times/f64", plus_times<double>{}, {
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, rows, true, nullptr, accumulator, Left::c},
      {8192, 8192, 8192, columns, true, nullptr, accumulator, Left::a_and_c}});
  add_products<pair::tensor_halves>(any, "layouts/l2_squared/f32/root", l2_squared<float>{}, {
      {16384, 16384, 512, columns, true, nullptr, promoted},
      {16384, 16384, 512, columns, true, nullptr, promoted, Left::c},
      {16384, 16384, 512, rows, true, nullptr, promoted, Left::a_and_c}}, epilogue::pow(0.5));
  // Default options, hence kernels of all families.
  add_products<pair::tensor_split>(any, "defaults/plus_times/f32", plus_times<float>{}, {
      {8192, 8192, 8192, columns, true, nullptr, automatic},
      {8192, 8192, 8192, rows, true, nullptr, automatic}});
  add_products<pair::tensor_halves>(any, "defaults/l2_squared/f32/root", l2_squared<float>{}, {
      {30000, 30000, 1024, columns, true, nullptr, automatic}}, epilogue::pow(0.5));
  add_products<pair::tensor_halves>(any, "defaults/l2_squared/f32", l2_squared<float>{}, {
      {30000, 30000, 1024, columns, true, nullptr, automatic}});
  add_products<pair::tensor_halves>(any, "defaults/l2_squared/f32/gaussian", l2_squared<float>{}, {
      {30000, 30000, 1024, columns, true, nullptr, automatic}}, epilogue::gaussian(30));
  add_products<pair::tensor_halves>(any, "defaults/l2_squared/f32/matern52", l2_squared<float>{}, {
      {30000, 30000, 1024, columns, true, nullptr, automatic}}, epilogue::pow(0.5) | epilogue::matern52(30));
}

void add_hopper(const bench::Setting& setting, const bench::Setting& hopper) {
  add_products<pair::tensor_bf16>(hopper, "hopper/plus_times/bf16", plus_times<bfloat16>{}, {
      {8192, 8192, 8192, columns},
      {8192, 8192, 8192, rows},
      {8192, 8192, 8192, columns, unaligned},
      {4096, 3072, 1536, columns},
      {2048, 3072, 768, columns},
      {2048, 512, 768, columns}});
  add_products<pair::tensor_bf16, bfloat16>(hopper, "hopper/plus_times/bf16/C in bf16", plus_times<bfloat16>{}, {
      {8192, 8192, 8192, columns},
      {4096, 3072, 1536, columns},
      {2048, 3072, 768, columns},
      {2048, 512, 768, columns}});
  add_layers<pair::tensor_bf16, bfloat16>(hopper, "hopper/plus_times/bf16/C in bf16, bias and GELU", plus_times<bfloat16>{}, layers);
  add_scaled(hopper, "hopper/plus_times/bf16/C in bf16", {8192, 8192, 8192, columns});
  add_products<pair::tensor_f16>(hopper, "hopper/plus_times/f16", plus_times<half>{}, {{8192, 8192, 8192, columns}});
  add_long_sums<half>(setting, "positive numbers/f16/2048x2048x20000/rounded", rigel::Precision::rounded);
  add_long_sums<half>(hopper, "hopper/positive numbers/f16/2048x2048x20000");
  add_long_sums<bfloat16>(hopper, "hopper/positive numbers/bf16/2048x2048x20000");
  add_products<pair::tensor_tf32>(hopper, "hopper/plus_times/f32", plus_times<float>{}, {
      {8192, 8192, 8192, columns, true, nullptr, tf32},
      {8192, 8192, 8192, rows, true, nullptr, tf32}});
  add_products<pair::tensor_split>(hopper, "hopper/plus_times/f32", plus_times<float>{}, {
      {8192, 8192, 8192, columns, true, nullptr, bf16x3},
      {8192, 8192, 8192, columns, true, nullptr, split},
      {8192, 8192, 8192, rows, true, nullptr, split},
      {8192, 8192, 8192, columns, true, nullptr, promoted},
      {8192, 8192, 8192, columns, true, nullptr, exact_products}});
  add_products<pair::tensor_s8>(hopper, "hopper/plus_times/s8", plus_times<std::int8_t>{}, {{8192, 8192, 8192, columns}});
}
// clang-format on

void add_tasks(const Exec& exec) {
  const bench::Setting setting{exec, "cuda.mma", bench::Numbers::normal};
  bench::add_ceilings<pair::tensor_f16, pair::tensor_halves, pair::tensor_bf16, pair::tensor_tf32, pair::tensor_split,
                      pair::tensor_s8, pair::tensor_b1, pair::tensor_f64>(exec);
  add_sums_of_products(setting);
  add_log_sums(exec, setting);
  add_exact_products(setting);
  add_distances(exec, setting);
  add_codes(setting);
  add_of_all_families({exec, "", bench::Numbers::normal});
  const int capability = rigel::detail::execution_of(exec).compute_capability;
  if (!rigel::kernels({.name = "cuda.hopper", .compute_capability = capability}).empty())
    add_hopper(setting, {exec, "cuda.hopper", bench::Numbers::normal});
}

int wrong_checks(const Exec& exec) {
  bench::Checks check(exec, bench::Numbers::normal);
  const auto all_kernels = [&]<class C = void, class S>(const S& s, const epilogue::Program& first = {}) {
    for (const char* family : {"cuda.mma", "cuda.hopper"}) {
      const rigel::Filter filter{.name = family,
                                 .semiring = {S::name},
                                 .element = rigel::scalar_of<typename S::element>,
                                 .compute_capability = rigel::detail::execution_of(exec).compute_capability};
      for (const rigel::KernelInfo& kernel : rigel::kernels(filter))
        check.kernel<C>(s, kernel.name, kernel.precision, first);
    }
  };
  all_kernels(plus_times<half>{});
  all_kernels(plus_times<bfloat16>{});
  all_kernels.operator()<bfloat16>(plus_times<bfloat16>{});
  all_kernels(plus_times<float>{});
  all_kernels(log_plus<float>{});
  all_kernels(plus_times<double>{});
  all_kernels(l2_squared<float>{});
  all_kernels(l2_squared<double>{});
  all_kernels(plus_times<std::int8_t>{});
  all_kernels(or_and<std::uint32_t>{}, epilogue::any_bit());
  all_kernels(xor_and<std::uint32_t>{}, epilogue::parity());
  all_kernels(bit_hamming<std::uint8_t>{});
  all_kernels(bit_hamming<std::uint32_t>{});
  all_kernels.operator()<float>(bit_hamming<std::uint64_t>{});
  all_kernels(bit_jaccard<std::uint8_t>{});
  all_kernels(bit_jaccard<std::uint32_t>{});
  all_kernels(bit_jaccard<std::uint64_t>{});
  return check.wrong();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program<pair::tensor_bf16>("bench_mma", argc, argv, wrong_checks, add_tasks);
}

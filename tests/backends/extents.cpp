// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Extents and strides that do not fit into 16, 24 or 32 bits, in little memory.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <sys/mman.h>

#include <map>
#include <string>
#include <utility>

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RIGEL_TEST_SANITIZED 1
#endif
#endif

// Memory whose pages are committed only when they are touched.
template <class T>
struct Lazy {
  explicit Lazy(std::size_t elements) : bytes(elements * sizeof(T)) {
    void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data = p == MAP_FAILED ? nullptr : static_cast<T*>(p);
  }
  ~Lazy() {
    if (data) munmap(data, bytes);
  }
  Lazy(const Lazy&) = delete;
  std::size_t bytes;
  T* data;
};

using Host = Kokkos::DefaultHostExecutionSpace;
using Strided = Kokkos::View<float**, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

}  // namespace

TEST_CASE("strides beyond 2^31 elements") {
  constexpr std::size_t stride = (std::size_t{1} << 31) + 5, m = 3, n = 2, depth = 3;
  const Lazy<float> a_memory(m * stride), b_memory(depth * stride), c_memory(n * stride);
  if (!a_memory.data || !b_memory.data || !c_memory.data)
    return support::skip("64-bit strides: this machine maps no memory ahead of its use");
  const Strided a(a_memory.data, Kokkos::LayoutStride(m, stride, depth, 1)),
      b(b_memory.data, Kokkos::LayoutStride(depth, stride, n, 1)), c(c_memory.data, Kokkos::LayoutStride(m, 1, n, stride));
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t i = 0; i < m; ++i) a(i, k) = static_cast<float>(10 * i + k);
    for (std::size_t j = 0; j < n; ++j) b(k, j) = static_cast<float>(k + 3 * j);
  }
  for (const auto& info : support::kernels_on(Host{}, "plus_times", rigel::Scalar::f32)) {
    CAPTURE(info.name);
    const bool ran = support::ran(info, [&] {
      rigel::contract(Host{}, rigel::plus_times<float>{}, a, b, c, rigel::epilogue::Program{}, {.kernel = info.name});
    });
    if (!ran) continue;
    Host{}.fence();
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < depth; ++k) sum += a(i, k) * b(k, j);
        CHECK(c(i, j) == sum);
        c(i, j) = -1;
      }
  }
}

// By the reference only, since a tile of outputs would take minutes.
TEST_CASE("K beyond 2^31") {
#ifdef RIGEL_TEST_SANITIZED
  support::skip("K beyond 2^31: too slow with sanitizers");
#else
  // One output. Both operands repeat one element, so the result is the sum of 1 · 1, modulo 2^32.
  constexpr std::size_t depth = (std::size_t{1} << 31) + 3;
  std::int8_t one = 1;
  std::int32_t sum = 0;
  using Operand = Kokkos::View<std::int8_t**, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Result = Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  rigel::contract(Host{}, rigel::plus_times<std::int8_t>{}, Operand(&one, Kokkos::LayoutStride(1, 0, depth, 0)),
                  Operand(&one, Kokkos::LayoutStride(depth, 0, 1, 0)), Result(&sum, 1, 1), rigel::epilogue::Program{},
                  {.kernel = "reference"});
  Host{}.fence();
  CHECK(sum == std::numeric_limits<std::int32_t>::min() + 3);
#endif
}

// Such sums take hours. What a call decides of them first is how K is cut, how much memory that takes, and its predicted time: which grows
// with K, from one that has many slices and blocks already.
TEST_CASE_TEMPLATE("K beyond 2^39", Exec, RIGEL_TEST_SPACES) {
  const auto check = [](const auto& s, auto element, auto result) {
    using Operand =
        Kokkos::View<decltype(element)**, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
    const auto one = support::matrix<decltype(element), Exec>(1, 1, {1});
    const auto c = support::matrix<decltype(result), Exec>(3, 2);
    // By kernel, the bytes and the seconds of a smaller K.
    std::map<std::string, std::pair<std::size_t, double>> before;
    for (const std::int64_t k :
         {std::int64_t{1} << 31, (std::int64_t{1} << 39) - 256, std::int64_t{1} << 39, std::int64_t{1} << 40,
          (std::int64_t{1} << 40) + 256, std::int64_t{1} << 50, std::int64_t{1} << 59, std::int64_t{1} << 61}) {
      CAPTURE(k);
      const auto depth = static_cast<std::size_t>(k);
      const Operand a(one.data(), Kokkos::LayoutStride(3, 0, depth, 0)), b(one.data(), Kokkos::LayoutStride(depth, 0, 2, 0));
      const auto problem = rigel::problem_of(Exec(), s, a, b, c);
      for (const auto& candidate : rigel::candidates(problem)) {
        const std::string& name = candidate.kernel->info.name;
        if (!candidate.status || !name.starts_with("host")) continue;
        CAPTURE(name);
        const std::size_t bytes = rigel::workspace_size(Exec(), s, a, b, c, rigel::epilogue::Program{}, {.kernel = name});
        const auto [last, is_first] = before.try_emplace(name, bytes, candidate.seconds);
        if (is_first) continue;
        CHECK(bytes == last->second.first);
        CHECK(candidate.seconds > last->second.second);
        last->second.second = candidate.seconds;
      }
    }
    CHECK(before.empty() == !support::on_host<Exec>);
  };
#if RIGEL_BACKEND_HOST
  check(rigel::plus_times<float>{}, float{}, float{});
  check(rigel::plus_times<std::int8_t>{}, std::int8_t{}, std::int32_t{});
  check(rigel::min_plus<double>{}, double{}, double{});
  check(rigel::log_plus<float>{}, float{}, float{});
#else
  support::skip("K beyond 2^39: no host kernels in this build");
#endif
}

namespace {

// Checks that each of many outputs is 2 · 3; C holds T.
template <class T, class Exec, class View>
void check_many(const Exec& exec, const rigel::KernelInfo& info, const View& a, const View& b,
                const rigel::epilogue::Program& epilogue, double on_diagonal) {
  const std::size_t l = a.extent(0), m = a.extent(1), n = b.extent(2), size = l * m * n;
  CAPTURE(size);
  CAPTURE(on_diagonal);
  const auto c = support::batch<T, Exec>(static_cast<int>(l), static_cast<int>(m), static_cast<int>(n));
  const bool ran = support::ran(
      info, [&] { rigel::contract(exec, rigel::plus_times<std::int8_t>{}, a, b, c, epilogue, {.kernel = info.name}); });
  if (!ran) return;
  std::vector<T> host(size);
  support::copy_out<Exec>(host.data(), c.data(), size * sizeof(T));
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < size; ++at) wrong += host[at] != (at % (m * n) == 0 ? on_diagonal : 6);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("more than 65,535 batches, rows or columns of tiles", Exec, RIGEL_TEST_SPACES) {
  const Exec exec;
  const auto two = support::batch<std::int8_t, Exec>(1, 1, 1, {2}), three = support::batch<std::int8_t, Exec>(1, 1, 1, {3});
  using View = Kokkos::View<std::int8_t***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  for (const auto& info : support::kernels_on(exec, "plus_times", rigel::Scalar::i8)) {
    CAPTURE(info.name);
    // A grid's y and z end at 65,535, and tiles have up to 128 rows; a host has no such limit.
    constexpr std::size_t many = 70001, rows = support::on_host<Exec> ? 70001 : 9000001;
    for (const auto& [l, m, n] :
         {std::tuple<std::size_t, std::size_t, std::size_t>{many, 1, 1}, {1, rows, 1}, {1, 1, rows}}) {
      const View a(two.data(), Kokkos::LayoutStride(l, 0, m, 0, 1, 0)),
          b(three.data(), Kokkos::LayoutStride(1, 0, 1, 0, n, 0));  // for all batches
      check_many<std::int8_t>(exec, info, a, b, {}, 6);
      // Only the first output of each matrix is on the diagonal. A kernel that computes C in parts must not count from 0 in
      // each.
      check_many<float>(exec, info, a, b, rigel::epilogue::add_diagonal(1), 7);
    }
  }
}

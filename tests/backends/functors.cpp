// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's functors through the kernels of every family that their own translation unit instantiates: the reference
// against loops on the host, the others against the reference.
#include <rigel/contract.hpp>

#include <tests/support/error.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>
#include <tests/support/trial.hpp>

#include <cmath>

namespace {

// Σ_k w·(k+1)·|a − b|: a hyperparameter, and the summation index.
struct Weighted {
  using element = float;
  using accumulator = float;
  float w = 0.75f;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b, std::int64_t k) const {
    return w * static_cast<float>(k + 1) * Kokkos::abs(a - b);
  }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

// Σ_k |a − b| of floats that are read as doubles.
struct Wide {
  using element = float;
  using operand = double;
  using accumulator = float;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION static float multiply(double a, double b) { return static_cast<float>(Kokkos::abs(a - b)); }
  KOKKOS_FUNCTION static float add(float x, float y) { return x + y; }
};

// Complex numbers: an element that is none of Rigel's scalars, and so are the accumulator and C.
struct Complex {
  struct element {
    double re, im;
    bool operator==(const element&) const = default;
  };
  using accumulator = element;
  KOKKOS_FUNCTION static element identity() { return {0, 0}; }
  KOKKOS_FUNCTION static element multiply(element a, element b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  KOKKOS_FUNCTION static element add(element x, element y) { return {x.re + y.re, x.im + y.im}; }
  KOKKOS_FUNCTION static element lift(element c) { return c; }
};

// The smallest sum and its index, both into one number for the test: 1000·value + index.
struct Joined {
  KOKKOS_FUNCTION double operator()(rigel::argument<float> x, std::int64_t, std::int64_t, std::int64_t) const {
    return 1000 * static_cast<double>(x.value) + static_cast<double>(x.index);
  }
};
struct Kept {
  KOKKOS_FUNCTION float operator()(float v, std::int64_t m, std::int64_t n, std::int64_t l) const {
    return v + static_cast<float>(m - 2 * n + 5 * l);
  }
};
struct Same {
  KOKKOS_FUNCTION Complex::element operator()(Complex::element v, std::int64_t, std::int64_t, std::int64_t) const {
    return v;
  }
};

const std::vector<const char*> families = {
    "reference",
#if RIGEL_BACKEND_PORTABLE
    "portable",
#endif
#if RIGEL_BACKEND_HOST
    "host",
#endif
#if RIGEL_BACKEND_CUDA_SIMT
    "cuda.simt",
#endif
};

template <class T>
T draw(support::Random& random) {
  if constexpr (std::is_same_v<T, Complex::element>)
    return {static_cast<double>(random.integer(-9, 9)), static_cast<double>(random.integer(-9, 9))};
  else
    return static_cast<T>(random.integer(-20, 20)) / 4;  // ties occur; sums are exact
}

template <class T>
std::vector<T> filled(const support::Placement& p, support::Random& random) {
  std::vector<T> list(static_cast<std::size_t>(p.span));
  p.for_each([&](std::int64_t at) { list[static_cast<std::size_t>(at)] = draw<T>(random); });
  return list;
}

template <class T, class Exec>
auto on_device(const std::vector<T>& host) {
  const Kokkos::View<T*, typename Exec::memory_space> memory(Kokkos::view_alloc("operand", Kokkos::WithoutInitializing),
                                                             host.size());
  support::copy_in<Exec>(memory.data(), host.data(), host.size() * sizeof(T));
  return memory;
}
template <class Exec, class T>
auto strided(T* data, const support::Placement& p) {
  const auto u = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  return Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
      data + p.first, Kokkos::LayoutStride(u(p.batches), u(p.batch), u(p.rows), u(p.row), u(p.columns), u(p.column)));
}

// All families on a few trials of the covering design.
template <class S, class C, class Exec, class E>
void check(const S& s, const E& epilogue, std::uint64_t seed) {
  using T = typename S::element;
  int runs = 0;
  for (support::Trial t : support::trials(seed)) {
    if (t.seed % 3 != 0) continue;
    if (!rigel::can_accumulate<S>) t.accumulate = false;
    CAPTURE(t.text());
    support::Random random(t.seed);
    const bool shares_a = t.share == support::Share::a || t.share == support::Share::both,
               shares_b = t.share == support::Share::b || t.share == support::Share::both;
    const auto pa = support::place(t.a, shares_a ? 1 : t.batch, t.m, t.k),
               pb = support::place(t.b, shares_b ? 1 : t.batch, t.k, t.n), pc = support::place(t.c, t.batch, t.m, t.n);
    const auto a = filled<T>(pa, random), b = filled<T>(pb, random);
    std::vector<C> before(static_cast<std::size_t>(pc.span));
    pc.for_each([&](std::int64_t at) { before[static_cast<std::size_t>(at)] = draw<C>(random); });

    std::vector<C> expected = before;
    for (std::int64_t l = 0; l < t.batch; ++l)
      for (std::int64_t m = 0; m < t.m; ++m)
        for (std::int64_t n = 0; n < t.n; ++n) {
          C& c = expected[static_cast<std::size_t>(pc.at(l, m, n))];
          typename S::accumulator x = S::identity();
          if constexpr (rigel::can_accumulate<S>)
            if (t.accumulate) x = rigel::lift(s, c);
          for (std::int64_t k = 0; k < t.k; ++k)
            x = rigel::step(s, x, static_cast<rigel::operand_t<S>>(a[static_cast<std::size_t>(pa.at(l, m, k))]),
                            static_cast<rigel::operand_t<S>>(b[static_cast<std::size_t>(pb.at(l, k, n))]), k);
          c = static_cast<C>(epilogue(rigel::result(s, x), m, n, l));
        }

    const auto device_a = on_device<T, Exec>(a), device_b = on_device<T, Exec>(b);
    const auto with = [&](C* c, const std::string& kernel, const auto& use) {
      use(Exec{}, s, strided<Exec, const T>(device_a.data(), pa), strided<Exec, const T>(device_b.data(), pb),
          strided<Exec, C>(c, pc), epilogue, rigel::ContractOptions{.accumulate = t.accumulate, .kernel = kernel});
    };
    // The families, and each of this file's own kernels for a GPU: tiles, too, where the prediction prefers others.
    std::vector<std::string> kernels(families.begin(), families.end());
    const auto untouched = on_device<C, Exec>(before);
    with(untouched.data(), "", [&](const auto&... arguments) {
      rigel::detail::with_problem(arguments..., [&](const rigel::Problem& p) {
        for (const rigel::Kernel& kernel : p.instantiated)
          if (kernel.info.family == "cuda.simt") kernels.push_back(kernel.info.name);
      });
    });
    for (const std::string& kernel : kernels) {
      CAPTURE(kernel);
      const auto device_c = on_device<C, Exec>(before);
      const auto e = support::caught(
          [&] { with(device_c.data(), kernel, [](const auto&... arguments) { rigel::contract(arguments...); }); });
      const bool elsewhere =
          (kernel == "host" && !support::on_host<Exec>) || (kernel == "cuda.simt" && support::on_host<Exec>);
      if (elsewhere && t.batch > 0 && t.m > 0 && t.n > 0) {
        CHECK((e.code == rigel::Code::unsupported || e.code == rigel::Code::not_found));
        continue;
      }
      if (elsewhere) continue;
      CHECK(e.message == "nothing was thrown");
      std::vector<C> actual(before.size());
      support::copy_out<Exec>(actual.data(), device_c.data(), actual.size() * sizeof(C));
      CHECK(actual == expected);
      ++runs;
    }
  }
  CHECK(runs > 20);
}

}  // namespace

// Sums of multiples of a quarter: exact in any order, so that fused multiply-adds in a file of the user's do no harm.
TEST_CASE_TEMPLATE("a user's semiring through every family", Exec, RIGEL_TEST_SPACES) {
  check<Weighted, float, Exec>(Weighted{}, rigel::epilogue::Program{}, 11);
}
TEST_CASE_TEMPLATE("operands wider than their elements", Exec, RIGEL_TEST_SPACES) {
  check<Wide, float, Exec>(Wide{}, rigel::epilogue::Program{}, 15);
}
TEST_CASE_TEMPLATE("elements and accumulators that are structs", Exec, RIGEL_TEST_SPACES) {
  check<Complex, Complex::element, Exec>(Complex{}, Same{}, 12);
}
TEST_CASE_TEMPLATE("with_argument through every family", Exec, RIGEL_TEST_SPACES) {
  check<rigel::with_argument<rigel::min_plus<float>>, double, Exec>({}, Joined{}, 13);
}
TEST_CASE_TEMPLATE("a user's epilogue on one of the zoo, through every family", Exec, RIGEL_TEST_SPACES) {
  check<rigel::max_plus<float>, float, Exec>({}, rigel::epilogue::scale(0.5) | rigel::epilogue::functor(Kept{}), 14);
}

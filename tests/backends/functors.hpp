// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a user's functor: the kernels of every family that its translation unit instantiates, compared with loops on the host.
#pragma once

#include <rigel/contract.hpp>

#include <tests/support/error.hpp>
#include <tests/support/memory.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>
#include <tests/support/trial.hpp>

#include <string>
#include <vector>

namespace support {

template <class T, class Exec>
auto on_device(const std::vector<T>& host) {
  const Kokkos::View<T*, typename Exec::memory_space> memory(Kokkos::view_alloc("on device", Kokkos::WithoutInitializing),
                                                             host.size());
  copy_in<Exec>(memory.data(), host.data(), host.size() * sizeof(T));
  return memory;
}
template <class Exec, class T>
auto strided(T* data, const Placement& p) {
  const auto u = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  return Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
      data + p.first, Kokkos::LayoutStride(u(p.batches), u(p.batch), u(p.rows), u(p.row), u(p.columns), u(p.column)));
}

/// A kernel or a family, and the precision of calls that get it.
struct Named {
  std::string name;
  rigel::Precision precision = rigel::Precision::automatic;
};

/// The families, and each instantiated kernel of those that have several by name, so that tiles run that the prediction would
/// not choose.
inline std::vector<Named> kernels_of(const rigel::Contraction& p) {
  std::vector<Named> names = {{"reference"}};
#if RIGEL_BACKEND_PORTABLE
  names.push_back({"portable"});
#endif
#if RIGEL_BACKEND_HOST
  names.push_back({"host"});
#endif
  bool has_tiles = p.execution.space != rigel::Space::cuda;  // on a host, calls must refuse the family
  for (const rigel::Kernel<rigel::Contraction>& kernel : p.instantiated) {
    const rigel::KernelInfo& info = kernel.info;
    // with_argument's slices of K are for one product.
    if (info.family == "cuda.simt" && info.variant == "split_k" && (p.batch != 1 || p.semiring_in_view)) continue;
    const int capability = p.execution.compute_capability;
    const bool on_tensor_cores = (info.family == "cuda.mma" || info.family == "cuda.hopper") &&
                                 capability >= info.min_compute_capability &&
                                 (info.max_compute_capability == 0 || capability <= info.max_compute_capability);
    if (info.family == "cuda.simt" || info.family == "portable" || on_tensor_cores)
      names.push_back({info.name, info.precision});
    has_tiles = has_tiles || kernel.info.family == "cuda.simt";
  }
  if (has_tiles) names.push_back({"cuda.simt"});
  return names;
}

/// Runs one trial on all kernels. elements.a(random, l, m, k), elements.b(random, l, k, n) and elements.c(random) give the
/// elements; T{} fills the gaps between them. elements.check() follows each run. Returns how many kernels ran.
template <class S, class C, class Exec, class E, class Elements>
int check_trial(const S& s, const E& epilogue, const Trial& t, const Elements& elements) {
  using T = typename S::element;
  CAPTURE(t.text());
  Random random(t.seed);
  const bool shares_a = t.share == Share::a || t.share == Share::both,
             shares_b = t.share == Share::b || t.share == Share::both;
  const auto pa = place(t.a, shares_a ? 1 : t.batch, t.m, t.k), pb = place(t.b, shares_b ? 1 : t.batch, t.k, t.n),
             pc = place(t.c, t.batch, t.m, t.n);
  const auto filled = [&]<class Value>(const Placement& p, Value, const auto& draw) {
    std::vector<Value> list(static_cast<std::size_t>(p.span));
    for (std::int64_t l = 0; l < p.batches; ++l)
      for (std::int64_t i = 0; i < p.rows; ++i)
        for (std::int64_t j = 0; j < p.columns; ++j) list[static_cast<std::size_t>(p.at(l, i, j))] = draw(l, i, j);
    return list;
  };
  const auto a = filled(pa, T{}, [&](auto l, auto i, auto j) { return elements.a(random, l, i, j); });
  const auto b = filled(pb, T{}, [&](auto l, auto i, auto j) { return elements.b(random, l, i, j); });
  const auto before = filled(pc, C{}, [&](auto, auto, auto) { return elements.c(random); });

  std::vector<C> expected = before;
  for (std::int64_t l = 0; l < t.batch; ++l)
    for (std::int64_t m = 0; m < t.m; ++m)
      for (std::int64_t n = 0; n < t.n; ++n) {
        C& c = expected[static_cast<std::size_t>(pc.at(l, m, n))];
        typename S::accumulator x = S::identity();
        if constexpr (rigel::can_accumulate<S>)
          if (t.accumulate) x = rigel::lift(elements.on_host(s), c);
        for (std::int64_t k = 0; k < t.k; ++k)
          x = rigel::step(elements.on_host(s), x,
                          static_cast<rigel::operand_t<S>>(a[static_cast<std::size_t>(pa.at(l, m, k))]),
                          static_cast<rigel::operand_t<S>>(b[static_cast<std::size_t>(pb.at(l, k, n))]), k);
        c = static_cast<C>(epilogue(rigel::result(elements.on_host(s), x), m, n, l));
      }

  const auto device_a = on_device<T, Exec>(a), device_b = on_device<T, Exec>(b);
  const auto with = [&](C* c, const Named& kernel, const auto& use) {
    use(Exec{}, s, strided<Exec, const T>(device_a.data(), pa), strided<Exec, const T>(device_b.data(), pb),
        strided<Exec, C>(c, pc), epilogue,
        rigel::ContractOptions{.accumulate = t.accumulate, .precision = kernel.precision, .kernel = kernel.name});
  };
  std::vector<Named> kernels;
  const auto untouched = on_device<C, Exec>(before);
  with(untouched.data(), {""}, [&](const auto&... arguments) {
    rigel::detail::with_problem(arguments..., [&](const rigel::Contraction& p) { kernels = kernels_of(p); });
  });
  int runs = 0;
  for (const Named& kernel : kernels) {
    CAPTURE(kernel.name);
    const auto device_c = on_device<C, Exec>(before);
    const auto e =
        caught([&] { with(device_c.data(), kernel, [](const auto&... arguments) { rigel::contract(arguments...); }); });
    const bool elsewhere = (kernel.name == "host" && !on_host<Exec>) || (kernel.name == "cuda.simt" && on_host<Exec>);
    if (elsewhere && t.batch > 0 && t.m > 0 && t.n > 0) {
      CHECK((e.code == rigel::Code::unsupported || e.code == rigel::Code::not_found));
      continue;
    }
    if (elsewhere) continue;
    CHECK(e.message == "nothing was thrown");
    std::vector<C> actual(before.size());
    copy_out<Exec>(actual.data(), device_c.data(), actual.size() * sizeof(C));
    CHECK(actual == expected);
    elements.check();
    ++runs;
  }
  return runs;
}

/// Runs a few trials of the covering design.
template <class S, class C, class Exec, class E, class Elements>
void check_functor(const S& s, const E& epilogue, std::uint64_t seed, const Elements& elements) {
  int runs = 0;
  for (Trial t : trials(seed)) {
    if (t.seed % 3 != 0) continue;
    if (!rigel::can_accumulate<S>) t.accumulate = false;
    runs += check_trial<S, C, Exec>(s, epilogue, t, elements);
  }
  CHECK(runs > 20);
}

// Elements from a list, the same for A, B and C.
template <class S, class C>
struct Listed {
  using T = typename S::element;
  std::vector<T> values;
  S host;  // the equivalent of `s` for host memory
  T a(Random& random, std::int64_t, std::int64_t, std::int64_t) const {
    return values[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(values.size()) - 1))];
  }
  T b(Random& random, std::int64_t l, std::int64_t i, std::int64_t j) const { return a(random, l, i, j); }
  static C c(Random& random) { return static_cast<C>(random.integer(-9, 9)); }
  const S& on_host(const S&) const { return host; }
  static void check() {}
};
template <class S, class C, class Exec>
void check_listed(const S& s, const std::vector<typename S::element>& values, std::uint64_t seed) {
  check_functor<S, C, Exec>(s, rigel::epilogue::Program{}, seed, Listed<S, C>{values, s});
}

}  // namespace support

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several host threads at once, each on its own instance; and threads from which Kokkos::Threads cannot launch.
#include <rigel/closure.hpp>
#include <rigel/contract.hpp>
#include <rigel/distance.hpp>
#include <rigel/transitive_closure.hpp>

#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <atomic>
#include <thread>

using support::matrix;

TEST_CASE_TEMPLATE("instances: several host threads on several instances at once", Exec, RIGEL_TEST_SPACES) {
  constexpr int threads = 2, rounds = 20, m = 40, n = 33, depth = 50;
  constexpr bool one_thread = rigel::detail::space_of<Exec> == rigel::Space::threads;
  if (one_thread)
    support::skip(
        "instances: several host threads: Kokkos::Threads launches for one only, which then has all the instances");
  const std::vector<Exec> instances = Kokkos::Experimental::partition_space(Exec{}, std::vector<int>(threads, 1));
  for (const auto& info : support::kernels_on(Exec{}, "min_plus", rigel::Scalar::f32)) {
    CAPTURE(info.name);
    const auto tiny = matrix<float, Exec>(1, 1), result = matrix<float, Exec>(1, 1);
    const auto once = [&] {
      rigel::contract(Exec{}, rigel::min_plus<float>{}, tiny, tiny, result, rigel::epilogue::Program{},
                      {.kernel = info.name});
    };
    if (!support::ran(info, once)) continue;
    // Thread t: A(m, k) = m + t, B(k, n) = |k − n|: the minimum is m + t.
    std::vector<support::Matrix<float, Exec>> a, b, c;
    for (int t = 0; t < threads; ++t) {
      std::vector<double> x, y;
      for (int i = 0; i < m * depth; ++i) x.push_back(i / depth + t);
      for (int i = 0; i < depth * n; ++i) y.push_back(std::abs(i / n - i % n));
      a.push_back(matrix<float, Exec>(m, depth, x));
      b.push_back(matrix<float, Exec>(depth, n, y));
      c.push_back(matrix<float, Exec>(m, n));
    }
    std::atomic<int> thrown = 0;
    const auto calls = [&](int t) {
      try {
        const rigel::ContractOptions options{.kernel = info.name};
        for (int r = 0; r < rounds; ++r)
          rigel::contract(instances[t], rigel::min_plus<float>{}, a[t], b[t], c[t], rigel::epilogue::scale(2), options);
        instances[t].fence();
      } catch (...) {
        ++thrown;
      }
    };
    if (one_thread) {
      for (int t = 0; t < threads; ++t) calls(t);
    } else {
      std::vector<std::thread> running;
      for (int t = 0; t < threads; ++t) running.emplace_back(calls, t);
      for (auto& thread : running) thread.join();
    }
    CHECK(thrown == 0);
    for (int t = 0; t < threads; ++t) {
      const auto actual = support::values(c[t]);
      int wrong = 0;
      for (int i = 0; i < m * n; ++i) wrong += actual[i] != 2 * (i / n + t);
      CHECK(wrong == 0);
    }
  }
}

#ifdef KOKKOS_ENABLE_THREADS

namespace {

using Exec = Kokkos::Threads;

// Every function that launches, each on its own operands, which a refused call must leave untouched.
struct Calls {
  support::Matrix<float, Exec> a = support::matrix<float, Exec>(2, 2, {1, 2, 3, 4}),
                               c = support::matrix<float, Exec>(2, 2, {7, 7, 7, 7}),
                               rows = support::matrix<float, Exec>(2, 2, {7, 7, 7, 7}),
                               d = support::matrix<float, Exec>(2, 2, {3, 5, 7, 9});
  support::Matrix<std::int32_t, Exec> p = support::matrix<std::int32_t, Exec>(2, 2, {7, 7, 7, 7});
  support::Matrix<std::uint32_t, Exec> bits = support::matrix<std::uint32_t, Exec>(2, 1, {2, 1});

  // Calls visit(name, call) for each of them.
  template <class Visit>
  void for_each(const Visit& visit) const {
    visit("contract", [&] { rigel::contract(Exec{}, rigel::min_plus<float>{}, a, a, c); });
    visit("cdist", [&] { rigel::cdist(Exec{}, a, a, c, rigel::metric::manhattan{}); });
    visit("cdist", [&] { rigel::cdist(Exec{}, a, a, rows, rigel::metric::cosine{}); });
    visit("closure", [&] { rigel::closure(Exec{}, rigel::min_plus<float>{}, d); });
    visit("closure", [&] { rigel::closure(Exec{}, rigel::min_plus<float>{}, d, p); });
    visit("transitive_closure", [&] { rigel::transitive_closure(Exec{}, bits); });
    visit("verify", [&] { rigel::verify("reference.min_plus.f32"); });
  }
  void check_untouched() const {
    const std::vector<double> sevens(4, 7);
    CHECK(support::values(c) == sevens);
    CHECK(support::values(rows) == sevens);
    CHECK(support::values(p) == sevens);
    CHECK(support::values(d) == std::vector<double>{3, 5, 7, 9});
    CHECK(support::values(bits) == std::vector<double>{2, 1});
  }
};

void check_refused(const std::string& name, const support::Caught& e, const char* where) {
  CAPTURE(name);
  CHECK(e.code == rigel::Code::unsupported);
  CHECK(e.lacks({(name + ": called ").c_str(), where, "expected", "initialised Kokkos", "Kokkos::Threads"}) == "");
}

}  // namespace

TEST_CASE("instances: Kokkos::Threads refuses calls of another host thread") {
  const Calls calls;
  calls.for_each([](const std::string& name, const auto& call) {
    support::Caught e;
    std::thread([&] { e = support::caught(call); }).join();
    check_refused(name, e, "in another host thread");
  });
  calls.check_untouched();
}

TEST_CASE("instances: Kokkos::Threads refuses calls inside a parallel region") {
  const Calls calls;
  calls.for_each([](const std::string& name, const auto& call) {
    const int threads = Exec{}.concurrency();
    std::vector<support::Caught> caught(threads);
    // One call by each thread, including the one that initialised Kokkos.
    Kokkos::parallel_for(
        Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Static>>(Exec{}, 0, threads, Kokkos::ChunkSize(1)),
        [&](int t) { caught[t] = support::caught(call); });
    int inside = 0;
    for (const auto& e : caught) {
      const bool is_inside = e.message.find("inside") != std::string::npos;
      check_refused(name, e, is_inside ? "inside a parallel region" : "in another host thread");
      inside += is_inside;
    }
    CHECK(inside == 1);
  });
  calls.check_untouched();
}

TEST_CASE("instances: what does not launch may be asked in any host thread, and later calls run") {
  const Calls calls;
  std::string explained;
  std::size_t bytes = 1;
  std::thread([&] {
    explained = rigel::explain(Exec{}, rigel::min_plus<float>{}, calls.a, calls.a, calls.c);
    bytes = rigel::workspace_size(Exec{}, rigel::min_plus<float>{}, calls.a, calls.a, calls.c, {}, {.kernel = "reference"});
  }).join();
  CHECK(explained.find('*') != std::string::npos);
  CHECK(bytes == 0);
  calls.for_each([](const std::string& name, const auto& call) {
    CAPTURE(name);
    CHECK(support::caught(call).code == rigel::Code::ok);
  });
}

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel such as a user would register: plus_times of floats in plain loops on the host. One parameter makes it wrong.
#pragma once

#include <rigel/contract.hpp>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>

namespace edge {

enum class Bug {
  none,
  last_term,
  last_column,
  accumulate,
  epilogue,
  strides,
  gap,
  drops_nan,
  loses_infinity,
  unrepeatable,
  depends_on_rows,
  inaccurate
};

inline std::atomic<int> runs_of_host_kernel = 0;

template <Bug bug>
void run_host_kernel(const rigel::KernelInfo&, const rigel::Problem& p, void*) {
  const int run = runs_of_host_kernel++;
  static_cast<const Kokkos::DefaultHostExecutionSpace*>(p.execution.instance)->fence();
  const auto at = []<class T>(T*, const rigel::Operand& o, std::int64_t l, std::int64_t i, std::int64_t j) -> T& {
    return static_cast<T*>(o.data)[l * o.batch_stride + i * o.row_stride + j * o.column_stride];
  };
  float* const f = nullptr;
  const rigel::plus_times<float> s;
  for (std::int64_t l = 0; l < p.batch; ++l)
    for (std::int64_t m = 0; m < p.m; ++m)
      for (std::int64_t n = 0; n < p.n; ++n) {
        if (bug == Bug::last_column && n == p.n - 1 && p.n > 16) continue;
        float& c = at(f, p.c, l, m, n);
        float x = p.accumulate && bug != Bug::accumulate ? c : 0;
        const std::int64_t terms = bug == Bug::last_term && p.k > 16 ? p.k - 1 : p.k;
        for (std::int64_t k = 0; k < terms; ++k) {
          const bool backwards = bug == Bug::depends_on_rows && p.m > 3;
          const std::int64_t i = backwards ? terms - 1 - k : k;
          const float b =
              bug == Bug::strides ? static_cast<float*>(p.b.data)[l * p.b.batch_stride + i * p.n + n] : at(f, p.b, l, i, n);
          const float a = at(f, p.a, l, m, i);
          if (bug == Bug::drops_nan && (a != a || b != b)) continue;
          x = s.step(x, a, b);
        }
        if (bug == Bug::loses_infinity && std::isinf(x)) x = 0;
        if (bug == Bug::unrepeatable) x = std::nextafter(x, run % 2 ? 1e30f : -1e30f);
        if (bug == Bug::inaccurate) x *= 1.0001f;
        c = bug == Bug::epilogue ? x : (*p.program)(x, m, n, l);
        if (bug == Bug::gap && p.c.column_stride > 1) (&c)[1] = 0;
      }
}

/// Named "user.<name>"; covers f32 problems of a closed epilogue, and only those whose C has the label `label`, if one is given.
template <Bug bug = Bug::none>
rigel::Kernel host_kernel(const std::string& name) {
  using rigel::Promise;
  rigel::Kernel k;
  k.info.name = "user." + name;
  k.info.family = "user";
  k.info.semiring = "plus_times";
  k.info.element = k.info.accumulator = rigel::Scalar::f32;
  k.info.spaces = rigel::bit(rigel::detail::space_of<Kokkos::DefaultHostExecutionSpace>);
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = {2, 1};
  k.supports = [](const rigel::KernelInfo& info, const rigel::Problem& p) -> rigel::Status {
    // Only when it is asked for by name or by label, so that the other tests of this program do not meet it.
    if (p.kernel.empty() && p.c.label != info.name) return {rigel::Code::unsupported, "C has another label"};
    if (!p.program || p.c.type != rigel::Scalar::f32)
      return {rigel::Code::unsupported, "C is no f32, or the epilogue a functor"};
    return {};
  };
  k.cost = [](const rigel::KernelInfo&, const rigel::Problem&) { return 1e-9; };
  k.run = run_host_kernel<bug>;
  return k;
}

}  // namespace edge

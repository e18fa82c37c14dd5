// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel that a user might register: plus_times of floats in plain loops on the host. A parameter makes it wrong.
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
  column_of_epilogue,
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
void run_host_kernel(const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction& p, const rigel::Plan&,
                     const rigel::Workspace&) {
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
        c = bug == Bug::epilogue ? x : (*p.program)(x, m, bug == Bug::column_of_epilogue ? 0 : n, l);
        if (bug == Bug::gap && p.c.column_stride > 1) (&c)[1] = 0;
      }
}

/// A kernel "user.<name>" for f32 problems with an epilogue of the closed set.
template <Bug bug = Bug::none>
rigel::Kernel<rigel::Contraction> host_kernel(const std::string& name) {
  using rigel::Promise;
  rigel::Kernel<rigel::Contraction> k;
  k.info.name = "user." + name;
  k.info.family = "user";
  k.info.semiring = "plus_times";
  k.info.element = k.info.accumulator = rigel::Scalar::f32;
  k.info.spaces = rigel::bit(rigel::detail::space_of<Kokkos::DefaultHostExecutionSpace>);
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = {2, 1};
  k.supports = [](const rigel::Kernel<rigel::Contraction>& kernel, const rigel::Contraction& p) -> rigel::Status {
    // It covers only calls that name it, or whose C has its name as label, so that other tests of this program never get it.
    if (p.kernel.empty() && p.c.label != kernel.info.name) return {rigel::Decline::other, "C has another label"};
    if (!p.program || p.c.type != rigel::Scalar::f32)
      return {rigel::Decline::other, "C is no f32, or the epilogue a functor"};
    return {};
  };
  k.cost = [](const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction&, rigel::Plan&) { return 1e-9; };
  k.run = run_host_kernel<bug>;
  return k;
}

}  // namespace edge

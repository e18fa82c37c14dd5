// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks every registered kernel of a semiring by contract(), on the trials of the covering design: the reference is compared
// with the test's own loops, the others with the reference.
#pragma once

#include <rigel/contract.hpp>

#include <tests/support/formulas.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/memory.hpp>
#include <tests/support/spaces.hpp>
#include <tests/support/trial.hpp>

#include <functional>

namespace backends {

struct Call {
  const rigel::SemiringInfo& facts;
  bool accumulates;
  std::vector<rigel::KernelInfo> kernels;
  /// C's memory after the call.
  std::function<support::Bytes(const support::Trial&, const support::Operands&, const std::string& kernel)> run;
};

/// Runs all trials and checks them.
void check(const Call& call);

template <class T, class Exec>
using Strided = Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;

template <class T, class Exec>
Strided<T, Exec> view(const Kokkos::View<unsigned char*, typename Exec::memory_space>& memory, const support::Placement& p,
                      rigel::Batch index) {
  const auto u = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  const auto data = reinterpret_cast<T*>(memory.data()) + p.first;
  if (index == rigel::Batch::first)
    return Strided<T, Exec>(data,
                            Kokkos::LayoutStride(u(p.batches), u(p.batch), u(p.rows), u(p.row), u(p.columns), u(p.column)));
  return Strided<T, Exec>(data,
                          Kokkos::LayoutStride(u(p.rows), u(p.row), u(p.columns), u(p.column), u(p.batches), u(p.batch)));
}

template <class Exec>
Kokkos::View<unsigned char*, typename Exec::memory_space> on_device(const support::Bytes& bytes) {
  const Kokkos::View<unsigned char*, typename Exec::memory_space> memory(
      Kokkos::view_alloc("operand", Kokkos::WithoutInitializing), bytes.size());
  support::copy_in<Exec>(memory.data(), bytes.data(), bytes.size());
  return memory;
}

template <class S, class Exec>
void check_semiring() {
  using T = typename S::element;
  using R = rigel::result_t<S>;
  Call call{rigel::semiring_info<S>(),
            rigel::can_accumulate<S>,
            support::kernels_on(Exec{}, S::name, rigel::scalar_of<T>, rigel::scalar_of<typename S::accumulator>),
            {}};
  call.run = [](const support::Trial& t, const support::Operands& o, const std::string& kernel) {
    const S s = support::with_hyperparameters<S>();
    const auto a = on_device<Exec>(o.a_bytes), b = on_device<Exec>(o.b_bytes), c = on_device<Exec>(o.c_bytes);
    const Exec exec;
    rigel::contract(exec, s, view<const T, Exec>(a, o.a, t.index), view<const T, Exec>(b, o.b, t.index),
                    view<R, Exec>(c, o.c, t.index), t.program(rigel::join_of<S>),
                    {.accumulate = t.accumulate,
                     .batch = t.index,
                     .precision = rigel::Precision::operands,  // admits any named kernel
                     .kernel = kernel});
    support::Bytes after(o.c_bytes.size());
    support::copy_out<Exec>(after.data(), c.data(), after.size());
    return after;
  };
  check(call);
}

template <class Exec, class... S>
void check_all(rigel::type_list<S...>) {
  (check_semiring<S, Exec>(), ...);
}

}  // namespace backends

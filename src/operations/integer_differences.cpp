// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for cdist() of integers of 64 bits, with epilogues of the closed set: on a GPU those of the portable family.
#include <rigel/config.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/integer_differences.hpp>

#if RIGEL_BACKEND_REFERENCE
#include <rigel/backends/reference/contract.hpp>
#endif
#if RIGEL_BACKEND_PORTABLE
#include <rigel/backends/portable/contract.hpp>
#endif
#if RIGEL_BACKEND_HOST
#include <rigel/backends/host/register.hpp>
#endif

namespace rigel::detail {

template <class S>
std::span<const Kernel<Contraction>> kernels_in_library() {
  static const std::span<const Kernel<Contraction>> kernels = keep([] {
    std::vector<Kernel<Contraction>> list;
    [[maybe_unused]] const auto add = [&](Kernel<Contraction> kernel) { list.push_back(std::move(kernel)); };
#if RIGEL_BACKEND_REFERENCE
    add(backends::reference::kernel<S, ProgramFinish, compiled_spaces>());
#endif
#if RIGEL_BACKEND_PORTABLE
    backends::portable::add_kernels<S, ProgramFinish, compiled_spaces>(add);
#endif
#if RIGEL_BACKEND_HOST
    backends::host::add_differences<S>(list);
#endif
    return list;
  }());
  return kernels;
}

template std::span<const Kernel<Contraction>> kernels_in_library<integer_differences<l1<double>>>();
template std::span<const Kernel<Contraction>> kernels_in_library<integer_differences<l2_squared<double>>>();
template std::span<const Kernel<Contraction>> kernels_in_library<integer_differences<lp<double>>>();
template std::span<const Kernel<Contraction>> kernels_in_library<integer_differences<linf<double>>>();

}  // namespace rigel::detail

namespace rigel {

template <>
const void* semiring_type<detail::integer_differences<l1<double>>>() {
  return &detail::type_tag<detail::integer_differences<l1<double>>>;
}
template <>
const void* semiring_type<detail::integer_differences<l2_squared<double>>>() {
  return &detail::type_tag<detail::integer_differences<l2_squared<double>>>;
}
template <>
const void* semiring_type<detail::integer_differences<lp<double>>>() {
  return &detail::type_tag<detail::integer_differences<lp<double>>>;
}
template <>
const void* semiring_type<detail::integer_differences<linf<double>>>() {
  return &detail::type_tag<detail::integer_differences<linf<double>>>;
}

}  // namespace rigel

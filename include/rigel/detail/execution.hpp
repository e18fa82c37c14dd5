// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The translation between Kokkos's execution spaces and `Execution`, which the engine knows them by.
#pragma once

#include <rigel/card.hpp>
#include <rigel/registry.hpp>
#include <rigel/semirings.hpp>

#include <Kokkos_Core.hpp>

#ifdef KOKKOS_ENABLE_CUDA
namespace rigel::detail {
const Card& card_of_device(int device);  // found once, with its profile; it lives until the program ends
}
#endif

namespace rigel::detail {

template <class Exec>
inline constexpr Space space_of = Space::other;
#ifdef KOKKOS_ENABLE_SERIAL
template <> inline constexpr Space space_of<Kokkos::Serial> = Space::serial;
#endif
#ifdef KOKKOS_ENABLE_OPENMP
template <> inline constexpr Space space_of<Kokkos::OpenMP> = Space::openmp;
#endif
#ifdef KOKKOS_ENABLE_THREADS
template <> inline constexpr Space space_of<Kokkos::Threads> = Space::threads;
#endif
#ifdef KOKKOS_ENABLE_CUDA
template <> inline constexpr Space space_of<Kokkos::Cuda> = Space::cuda;
#endif

template <class... List>
struct concatenated;
template <class... T>
struct concatenated<type_list<T...>> {
  using type = type_list<T...>;
};
template <class... T, class... U, class... Rest>
struct concatenated<type_list<T...>, type_list<U...>, Rest...> : concatenated<type_list<T..., U...>, Rest...> {};

// clang-format off
/// The execution spaces that this Kokkos has and the library is compiled for: those of the host, and all of them.
using compiled_host_spaces = concatenated<type_list<>
#ifdef KOKKOS_ENABLE_SERIAL
                                          , type_list<Kokkos::Serial>
#endif
#ifdef KOKKOS_ENABLE_OPENMP
                                          , type_list<Kokkos::OpenMP>
#endif
#ifdef KOKKOS_ENABLE_THREADS
                                          , type_list<Kokkos::Threads>
#endif
                                          >::type;
using compiled_spaces = concatenated<compiled_host_spaces
#ifdef KOKKOS_ENABLE_CUDA
                                     , type_list<Kokkos::Cuda>
#endif
                                     >::type;
// clang-format on

template <class... Exec>
constexpr Spaces bits_of(type_list<Exec...>) {
  return (0u | ... | bit(space_of<Exec>));
}

/// Calls visit(instance) with the Kokkos instance that `execution` describes, if its type is in the list.
template <class... Exec, class Visit>
void with_instance(type_list<Exec...>, const Execution& execution, const Visit& visit) {
  const auto try_one = [&]<class E>(const E* instance) {
    if (execution.space == space_of<E>) visit(*instance);
  };
  (try_one(static_cast<const Exec*>(execution.instance)), ...);
}

/// The Execution of a Kokkos instance, which must outlive the result.
template <class Exec>
Execution execution_of(const Exec& exec) {
  Execution e;
  e.space = space_of<Exec>;
  e.instance = &exec;
  e.concurrency = exec.concurrency();
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) {
    // Not exec.cuda_device_prop(): Kokkos keeps the properties of one device only.
    e.device = exec.cuda_device();
    e.card = &card_of_device(e.device);
    e.compute_capability = e.card->compute_capability;
    e.multiprocessors = e.card->multiprocessors;
    e.shared_memory = e.card->shared_memory_of_block();
    e.stream = exec.cuda_stream();
  }
#endif
  return e;
}

/// Throws Error(unsupported), with the name of the call, unless this host thread can launch on the execution space here and
/// now. Callers ask before they write anything.
void require_launch(const char* call, const Execution& execution);

}  // namespace rigel::detail

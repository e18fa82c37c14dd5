// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the host family: every semiring of the zoo at every level, and BLAS.
#include <rigel/backends/host/blas.hpp>
#include <rigel/backends/host/contract.hpp>
#include <rigel/backends/host/register.hpp>

namespace rigel::backends {

namespace host {

/// Source of the Loop of one semiring at a level: here the translation units of that level.
template <class Level, class List, std::size_t Index>
struct Compiled {
  static const Loop& get() { return loops<Level, List>()[Index]; }
};

#if defined(__x86_64__)
// Whether this processor can run code of a level.
template <class Level>
bool runs();
template <> bool runs<v2>() { return __builtin_cpu_supports("x86-64-v2"); }
template <> bool runs<v3>() { return __builtin_cpu_supports("x86-64-v3"); }
template <> bool runs<v4>() { return __builtin_cpu_supports("x86-64-v4"); }
#endif

template <class Level>
Status level_supports(const Contraction& p) {
#if defined(__x86_64__)
  if (!runs<Level>()) return {Decline::processor, "this processor lacks instructions of x86-64-" + std::string(Level::name)};
#endif
  return detail::finish_supports<detail::ProgramFinish>(p);
}

template <class Level, class List, std::size_t... Index, class... S>
void add_list(Registry<Contraction>& registry, std::index_sequence<Index...>, type_list<S...>) {
  const auto add = [&](Kernel<Contraction> kernel) {
    kernel.supports = detail::supports_by<level_supports<Level>>;
    registry.add(kernel);
  };
  (add(kernel_from<Level, S, detail::ProgramFinish, Compiled<Level, List, Index>>(
       detail::bits_of(detail::compiled_host_spaces{}))),
   ...);
}

template <class Level, class... S>
void add(Registry<Contraction>& registry, type_list<S...> list) {
  add_list<Level, type_list<S...>>(registry, std::index_sequence_for<S...>{}, list);
}

template <class Level>
void add_level(Registry<Contraction>& registry) {
  detail::for_each_of_zoo([&]<class List>() { add<Level>(registry, List{}); });
}

}  // namespace host

void register_host(Registry<Contraction>& registry) {
#if defined(__x86_64__)
  host::add_level<host::v4>(registry);
  host::add_level<host::v3>(registry);
  host::add_level<host::v2>(registry);
#else
  host::add_level<host::native>(registry);
#endif
  host::add_blas(registry);
}

}  // namespace rigel::backends

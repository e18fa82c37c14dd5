// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the host family: every semiring of the zoo, every gradient and nearest points at every level, and BLAS.
#include <rigel/backends/host/blas.hpp>
#include <rigel/backends/host/contract.hpp>
#include <rigel/backends/host/gradient.hpp>
#include <rigel/backends/host/nearest.hpp>
#include <rigel/backends/host/register.hpp>
#include <rigel/backends/host/runs.hpp>
#include <rigel/detail/integer_differences.hpp>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace rigel::backends {

namespace host {

/// Source of the Loop of one semiring at a level: here the translation units of that level.
template <class Level, class List, std::size_t Index>
struct Compiled {
  static const Loop& get() { return loops<Level, List>()[Index]; }
};

/// The levels of this build (CMake's RIGEL_HOST_LEVELS), the widest first.
using Levels = type_list<RIGEL_HOST_LEVELS>;

#if defined(__x86_64__)
template <> bool runs<v2>() { return __builtin_cpu_supports("x86-64-v2"); }
template <> bool runs<v3>() { return __builtin_cpu_supports("x86-64-v3"); }
template <> bool runs<v4>() { return __builtin_cpu_supports("x86-64-v4"); }
#elif defined(__aarch64__) && defined(__linux__)

// The bytes of an SVE vector of this process; 0 if the processor has no SVE.
int sve_bytes() {
  static const int bytes = getauxval(AT_HWCAP) & HWCAP_SVE ? prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK : 0;
  return bytes;
}
template <> bool runs<neon>() { return true; }
template <> bool runs<sve256>() { return sve_bytes() == sve256::vector_bytes; }
template <> bool runs<sve512>() { return sve_bytes() == sve512::vector_bytes; }
#else
template <> bool runs<native>() { return true; }
#endif

template <class Level>
Status level_supports(const Contraction& p) {
  if (!runs<Level>()) return {Decline::processor, std::string("this processor lacks ") + Level::needs};
  return detail::finish_supports<detail::ProgramFinish>(p);
}

template <class Level, class S, class List, std::size_t index, class Add>
void add_compiled(const Add& add) {
  add_kernels_from<Level, S, detail::ProgramFinish, Compiled<Level, List, index>>(
      detail::bits_of(detail::compiled_host_spaces{}), [&](Kernel<Contraction> kernel) {
        kernel.supports = detail::supports_by<level_supports<Level>>;
        add(kernel);
      });
}

template <class Level, class List, std::size_t... Index, class... S>
void add_list(Registry<Contraction>& registry, std::index_sequence<Index...>, type_list<S...>) {
  (add_compiled<Level, S, List, Index>([&](const Kernel<Contraction>& kernel) { registry.add(kernel); }), ...);
}

template <class Level, class... S>
void add(Registry<Contraction>& registry, type_list<S...> list) {
  add_list<Level, type_list<S...>>(registry, std::index_sequence_for<S...>{}, list);
}

template <class... Level>
void add_levels(Registry<Contraction>& registry, type_list<Level...>) {
  const auto add_level = [&]<class L>(type_list<L>) {
    detail::for_each_of_zoo([&]<class List>() { add<L>(registry, List{}); });
  };
  (add_level(type_list<Level>{}), ...);
}

template <class S, class... T>
constexpr std::size_t index_in(type_list<T...>) {
  std::size_t index = 0;
  static_cast<void>(((std::is_same_v<S, T> || (++index, false)) || ...));
  return index;
}

template <class S>
void add_differences(std::vector<Kernel<Contraction>>& kernels) {
  using List = detail::compiled_integer_differences;
  const auto add = [&](const Kernel<Contraction>& kernel) { kernels.push_back(kernel); };
  [&]<class... Level>(type_list<Level...>) { (add_compiled<Level, S, List, index_in<S>(List{})>(add), ...); }(Levels{});
}
template void add_differences<detail::integer_differences<l1<double>>>(std::vector<Kernel<Contraction>>&);
template void add_differences<detail::integer_differences<l2_squared<double>>>(std::vector<Kernel<Contraction>>&);
template void add_differences<detail::integer_differences<lp<double>>>(std::vector<Kernel<Contraction>>&);
template void add_differences<detail::integer_differences<linf<double>>>(std::vector<Kernel<Contraction>>&);

/// Source of the loop of one gradient at a level.
template <class Level, class G>
struct CompiledGradient {
  static const GradientLoop& get() { return compiled_gradient_loop<Level, G>(); }
};

template <class... Level>
void add_gradients(Registry<Gradient>& registry, type_list<Level...>) {
  const auto add_level = [&]<class L>(type_list<L>) {
    detail::for_each(detail::gradient_functors{}, [&]<class G>() {
      Kernel<Gradient> kernel = gradient_kernel<L, G, CompiledGradient<L, G>, detail::compiled_host_spaces>();
      kernel.supports = [](const Kernel<Gradient>&, const Gradient&) -> Status {
        if (runs<L>()) return {};
        return {Decline::processor, std::string("this processor lacks ") + L::needs};
      };
      registry.add(kernel);
    });
  };
  (add_level(type_list<Level>{}), ...);
}

template <class... Level>
void add_nearest(Registry<Reduction>& registry, type_list<Level...>) {
  const auto add_one = [&]<class L, class Element>(type_list<L, Element>) {
    Kernel<Reduction> kernel = nearest::kernel<L, Element>(detail::bits_of(detail::compiled_host_spaces{}));
    kernel.supports = [](const Kernel<Reduction>&, const Reduction& p) -> Status {
      if (!runs<L>()) return {Decline::processor, std::string("this processor lacks ") + L::needs};
      return nearest::supports(p, nearest::compiled_loop<L, Element>().geometry);
    };
    registry.add(kernel);
  };
  (add_one(type_list<Level, float>{}), ...);
  (add_one(type_list<Level, double>{}), ...);
  (add_one(type_list<Level, half>{}), ...);
  (add_one(type_list<Level, bfloat16>{}), ...);
}

}  // namespace host

void register_host(Registry<Contraction>& registry) {
  host::add_levels(registry, host::Levels{});
  host::add_blas(registry);
}

void register_host(Registry<Gradient>& registry);
void register_host(Registry<Gradient>& registry) { host::add_gradients(registry, host::Levels{}); }

void register_host(Registry<Reduction>& registry);
void register_host(Registry<Reduction>& registry) { host::add_nearest(registry, host::Levels{}); }

}  // namespace rigel::backends

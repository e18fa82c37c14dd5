// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host family's kernels for semirings from text: the table of what their loops call, and a Kernel from compiled loops.
#include <rigel/backends/host/contract.hpp>
#include <rigel/backends/host/text.hpp>
#include <rigel/detail/text.hpp>

#include <optional>

namespace rigel::backends::host {

// register.cpp defines it.
template <class Level>
bool runs();
#if defined(__x86_64__)
template <> bool runs<v2>();
template <> bool runs<v3>();
template <> bool runs<v4>();
#elif defined(__aarch64__) && defined(__linux__)
template <> bool runs<neon>();
template <> bool runs<sve256>();
template <> bool runs<sve512>();
#else
template <> bool runs<native>();
#endif

namespace {

/// What a kernel keeps.
struct State {
  Loop loop;
  std::shared_ptr<const void> code;
};
const Loop& loop_of(const Kernel<Contraction>& kernel) { return static_cast<const State*>(kernel.state.get())->loop; }

template <class Level, class T>
constexpr detail::Specials (*specials())(const T*, std::int64_t) {
  if constexpr (std::is_floating_point_v<T>)
    return &specials_of<Level, T>;
  else
    return nullptr;
}

template <class Level, class S>
constexpr TextSupport<Level, S> support = {
    &pack<Level, TextSupport<Level, S>::M::rows, typename S::element, operand_t<S>>,
    &pack<Level, TextSupport<Level, S>::M::columns, typename S::element, operand_t<S>>,
    &interleave<Level, TextSupport<Level, S>::lanes, typename S::element, operand_t<S>>,
    &store_values<Level, row_t<S>>,
    &store_batch<Level, row_t<S>>,
    &read_row<Level, row_t<S>>,
    &read_row<Level, double>,
    &apply_in_place<Level, float>,
    &apply_in_place<Level, double>,
    specials<Level, operand_t<S>>()};

template <class Level, class S>
Kernel<Contraction> kernel_of(const detail::TextFacts& facts, const detail::TextCode& code) {
  using L = Lanewise<Level, S>;
  using M = microkernel_for<Level, S>;
  const auto work = [&](std::size_t i) { return reinterpret_cast<Work>(code.functions[i]); };
  const double pairs = pairs_of<Level, S>() / (facts.calls_functions ? 4 : 1);
  const Geometry geometry{M::rows,
                          M::columns,
                          L::lanes,
                          sizeof(operand_t<S>),
                          sizeof(typename S::accumulator),
                          sizeof(typename L::Sums),
                          sizeof(row_t<S>),
                          facts.info->commutative,
                          Level::has_half,
                          bytes_of_vectors<Level, S>,
                          pairs,
                          cycles_of_joined<S>};
  Kernel<Contraction> k;
  k.info = detail::make_info("host", Level::name, {}, detail::bits_of(detail::compiled_host_spaces{}), *facts.info);
  k.info.tile = {M::rows, M::columns, 0};
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  if (!facts.calls_functions) k.info.promises = k.info.promises | Promise::reference_bits;
  k.info.bit_class = std::string("host.") + Level::name;
  k.info.accuracy = detail::chain_accuracy<S>();
  k.state = std::make_shared<const State>(State{{{work(0), work(1), nullptr}, geometry}, code.code});
  k.supports = detail::supports_by<detail::text_finish_supports>;
  k.cost = [](const Kernel<Contraction>& kernel, const Contraction& p, Plan& plan) {
    const auto [way, seconds] = way_of(p, loop_of(kernel).geometry, false);
    plan.keep(way);
    return seconds;
  };
  k.workspace = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan) -> WorkspaceSize {
    return {.bytes = grid_of(plan.get<Way>(), p, loop_of(kernel).geometry).workspace()};
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
    const auto arguments = detail::arguments_of<S, detail::ProgramFinish>(p);
    const Loop& loop = loop_of(kernel);
    const Way way = plan.get<Way>();
    launch(p.execution, detail::label_of(kernel.info), loop.work[static_cast<std::size_t>(way)], &arguments,
           grid_of(way, p, loop.geometry), workspace.data);
  };
  return k;
}

template <class Level, class E>
detail::TextLoops loops_of(TextForm form) {
  using A = accumulator_for<E>;
  using Plain = TextSemiring<Level, E, A, TextForm::plain>;
  using Result = TextSemiring<Level, E, A, TextForm::result>;
  constexpr int lanes = Level::vector_bytes / static_cast<int>(sizeof(A));
  const void* const table = &support<Level, Plain>;  // of each form
  constexpr std::uint64_t layout = text_layout<Level, Plain>;
  if (form == TextForm::result)
    return {Level::name, lanes,  {"rigel_text_result_blocks", "rigel_text_result_batches"},
            table,       layout, &kernel_of<Level, Result>};
  if (form == TextForm::ordered && std::is_floating_point_v<A>)
    return {Level::name, lanes,  {"rigel_text_ordered_blocks", "rigel_text_ordered_batches"},
            table,       layout, &kernel_of<Level, Plain>};
  return {Level::name, lanes, {"rigel_text_blocks", "rigel_text_batches"}, table, layout, &kernel_of<Level, Plain>};
}

template <class Level>
detail::TextLoops loops_of(Scalar element, TextForm form) {
  switch (element) {
    case Scalar::f64: return loops_of<Level, double>(form);
    case Scalar::f16: return loops_of<Level, half>(form);
    case Scalar::bf16: return loops_of<Level, bfloat16>(form);
    case Scalar::i32: return loops_of<Level, std::int32_t>(form);
    case Scalar::i64: return loops_of<Level, std::int64_t>(form);
    default: return loops_of<Level, float>(form);
  }
}

}  // namespace

/// The loops of the widest level that this processor runs, of those of this build.
std::optional<detail::TextLoops> text_loops(Scalar element, TextForm form);
std::optional<detail::TextLoops> text_loops(Scalar element, TextForm form) {
  std::optional<detail::TextLoops> found;
  [&]<class... Level>(type_list<Level...>) {
    ((found || !runs<Level>() ? void() : void(found = loops_of<Level>(element, form))), ...);
  }(type_list<RIGEL_HOST_LEVELS>{});
  return found;
}

}  // namespace rigel::backends::host

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host family's kernels for semirings from text: the table of what their loops call, and a Kernel from compiled loops. This file is
// compiled for any processor, so it must not instantiate the loops of a level: it includes no header that defines them.
#include <rigel/backends/host/launch.hpp>
#include <rigel/backends/host/runs.hpp>
#include <rigel/backends/host/text.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/text.hpp>

#include <optional>

namespace rigel::backends::host {

namespace {

/// What a kernel keeps.
struct State {
  Loop loop;
  Scalar result;  // the type of what the text's result makes
  std::shared_ptr<const void> code;
  void (*reference)(const void* arguments) = nullptr;  // of the reference, which has no loop
};
const Loop& loop_of(const Kernel<Contraction>& kernel) { return static_cast<const State*>(kernel.state.get())->loop; }

template <class Level, class T>
constexpr detail::Specials (*specials())(const T*, std::int64_t) {
  if constexpr (std::is_floating_point_v<T>)
    return &specials_of<Level, T>;
  else
    return nullptr;
}

// Stores `count` numbers of type `type` by the finish of the library.
template <class Level>
void store_as(Scalar type, const detail::ProgramFinish& finish, void* v, int count, void* c, const Place& at) {
  switch (type) {
    case Scalar::f64: return store_values<Level>(finish, static_cast<double*>(v), count, c, at);
    case Scalar::i32: return store_values<Level>(finish, static_cast<std::int32_t*>(v), count, c, at);
    case Scalar::i64: return store_values<Level>(finish, static_cast<std::int64_t*>(v), count, c, at);
    default: return store_values<Level>(finish, static_cast<float*>(v), count, c, at);
  }
}

template <class Level, class Value>
void store_text_values(const TextFinish& finish, Value* v, int count, void* c, const Place& at) {
  const detail::TextEpilogue& e = finish.epilogue;
  if (!e.function) return store_as<Level>(finish.result, finish, v, count, c, at);
  const std::int64_t row = at.row + (at.transposed ? finish.first_column : finish.first_row),
                     column = at.column + (at.transposed ? finish.first_row : finish.first_column);
  const detail::TextPlace place = at.transposed ? detail::TextPlace{column, row, 1, 0, at.batch + finish.first_batch}
                                                : detail::TextPlace{row, column, 0, 1, at.batch + finish.first_batch};
  alignas(8) std::byte made[most_values * sizeof(double)];
  e.function(v, count, made, place, e.parameters + place.batch * e.stride);
  store_as<Level>(e.result, finish, made, count, c, at);
}

template <class Level, class Value>
void store_text_batch(const TextFinish& finish, Value* results, Value* values, void* c, const BatchOutputs& o) {
  if (!finish.epilogue.function && finish.result == scalar_of<Value>)
    return store_batch<Level>(static_cast<const detail::ProgramFinish&>(finish), results, values, c, o);
  using Word = word_t<sizeof(Value)>;
  const std::int64_t count = o.lines * o.length;
  deinterleave<Level>(reinterpret_cast<const Word*>(results), o.lanes, o.lines, o.length, o.matrices,
                      Matrices<Word>{reinterpret_cast<Word*>(values), count, o.length, 1});
  for (int lane = 0; lane < o.matrices; ++lane)
    for (std::int64_t line = 0; line < o.lines; ++line)
      for (std::int64_t j = 0; j < o.length; j += most_values) {
        const std::int64_t l = o.batch + lane, left = o.length - j,
                           offset = l * o.batch_stride + line * o.line_stride + j * o.stride;
        store_text_values<Level>(finish, values + lane * count + line * o.length + j,
                                 static_cast<int>(left < most_values ? left : most_values), c,
                                 {l, line, j, offset, o.stride, o.transposed});
      }
}

template <class Level, class S>
constexpr auto interleave_groups() -> decltype(TextSupport<Level, S>::interleave_groups) {
  if constexpr (std::is_floating_point_v<operand_t<S>>)
    return &interleave<Level, 4 * TextSupport<Level, S>::lanes, typename S::element, operand_t<S>>;
  else
    return nullptr;
}

template <class Level, class S>
constexpr TextSupport<Level, S> support = {
    &pack<Level, TextSupport<Level, S>::M::rows, typename S::element, operand_t<S>>,
    &pack<Level, TextSupport<Level, S>::few_rows, typename S::element, operand_t<S>>,
    &pack<Level, TextSupport<Level, S>::M::columns, typename S::element, operand_t<S>>,
    &interleave<Level, TextSupport<Level, S>::lanes, typename S::element, operand_t<S>>,
    interleave_groups<Level, S>(),
    &store_text_values<Level, row_t<S>>,
    &store_text_batch<Level, row_t<S>>,
    &read_row<Level, row_t<S>>,
    &read_row<Level, double>,
    &apply_in_place<Level, float>,
    &apply_in_place<Level, double>,
    specials<Level, operand_t<S>>()};

}  // namespace

}  // namespace rigel::backends::host

namespace rigel::detail {

/// The Finish of a problem: its `program`, or the TextEpilogue that epilogue_object points to. Whoever runs it sets `result`.
template <>
backends::host::TextFinish finish_of<backends::host::TextFinish>(const Product& p, Scalar type) {
  if (p.program) return {finish_of<ProgramFinish>(p, type), Scalar::other, {}, 0, 0, 0};
  const ProgramFinish plain{epilogue::Program{}, type, false, true, false, epilogue::Layer{}};
  return {plain,         Scalar::other, *static_cast<const TextEpilogue*>(p.epilogue_object),
          p.first.batch, p.first.row,   p.first.column};
}

}  // namespace rigel::detail

namespace rigel::backends::host {

namespace {

// Calls use(arguments) with what a kernel gets. Views of hyperparameters are read now: hosts' spaces run one call after the other.
template <class S, class Use>
void with_arguments(const Kernel<Contraction>& kernel, const Contraction& p, const Use& use) {
  auto arguments = detail::arguments_of<S, TextFinish>(p);
  arguments.finish.result = static_cast<const State*>(kernel.state.get())->result;
  const auto& values = *static_cast<const detail::TextValues*>(p.semiring_object);
  std::vector<std::byte> objects;
  if (!values.views.empty()) {
    objects = values.read(sizeof(S), p.first.batch, p.batch);
    arguments.semirings = reinterpret_cast<const S*>(objects.data());
    arguments.shares_semiring = !values.differ();
  }
  use(arguments);
}

Status supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  return detail::text_finish_supports(p, static_cast<const State*>(kernel.state.get())->result);
}

template <class Level, class S>
Kernel<Contraction> kernel_of(const detail::TextFacts& facts, const detail::TextCode& code) {
  using L = Lanewise<Level, S>;
  using M = microkernel_for<Level, S>;
  const auto work = [&](std::size_t i) { return reinterpret_cast<Work>(code.functions[i]); };
  const double pairs = pairs_of<Level, S>() / (facts.calls_functions && !is_transcendental<S> ? 4 : 1);
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
  k.info.accumulates = can_accumulate<S>;
  k.state = std::make_shared<const State>(State{{{work(0), work(1), nullptr}, geometry}, facts.info->result, code.code});
  k.supports = supports;
  k.cost = [](const Kernel<Contraction>& kernel, const Contraction& p, Plan& plan) {
    const auto [way, seconds] = way_of(p, loop_of(kernel).geometry, false);
    plan.keep(way);
    return seconds;
  };
  k.workspace = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan) -> WorkspaceSize {
    return {.bytes = grid_of(plan.get<Way>(), p, loop_of(kernel).geometry).workspace()};
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
    with_arguments<S>(kernel, p, [&](const auto& arguments) {
      const Loop& loop = loop_of(kernel);
      const Way way = plan.get<Way>();
      launch(p.execution, detail::label_of(kernel.info), loop.work[static_cast<std::size_t>(way)], &arguments,
             grid_of(way, p, loop.geometry), workspace.data);
    });
  };
  return k;
}

// The kernel of text_reference.hpp, which runs on the thread of the call.
template <class S>
Kernel<Contraction> reference_of(const detail::TextFacts& facts, const detail::TextCode& code) {
  using Compute = void (*)(const void*);
  Kernel<Contraction> k;
  k.info = detail::make_info("reference", {}, {}, detail::bits_of(detail::compiled_host_spaces{}), *facts.info);
  k.info.promises = Promise::repeatable | Promise::batch_invariant | Promise::reference_bits;
  k.info.bit_class = "reference";
  k.info.accumulates = can_accumulate<S>;
  k.state =
      std::make_shared<const State>(State{{}, facts.info->result, code.code, reinterpret_cast<Compute>(code.functions[0])});
  k.supports = supports;
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) { return detail::seconds_on_host(p, 0.1); };
  k.workspace = [](const Kernel<Contraction>&, const Contraction&, const Plan&) -> WorkspaceSize { return {}; };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    with_arguments<S>(kernel, p,
                      [&](const auto& arguments) { static_cast<const State*>(kernel.state.get())->reference(&arguments); });
  };
  return k;
}

template <class Level, class E>
detail::TextLoops loops_of(TextForm form) {
  using A = accumulator_for<E>;
  using Plain = text_semiring_t<Level, E, TextForm::plain>;
  const auto loops = [&]<TextForm own>(const char* blocks, const char* batches, const char* reference) -> detail::TextLoops {
    using S = text_semiring_t<Level, E, own>;
    constexpr int lanes = (own == TextForm::grouped ? 4 : 1) * Level::vector_bytes / static_cast<int>(sizeof(A));
    // The table and the layout are those of each form.
    return {{Level::name, lanes, {blocks, batches}, &support<Level, Plain>, text_layout<Level, Plain>},
            &kernel_of<Level, S>,
            reference,
            &reference_of<S>};
  };
#define RIGEL_LOOPS(form, prefix) \
  loops.template operator()<TextForm::form>(prefix "_blocks", prefix "_batches", prefix "_reference")
  switch (form) {
    case TextForm::grouped:
      if constexpr (std::is_floating_point_v<A>)
        return RIGEL_LOOPS(grouped, "rigel_text_grouped");
      else
        return RIGEL_LOOPS(result, "rigel_text_result");
    case TextForm::result: return RIGEL_LOOPS(result, "rigel_text_result");
    case TextForm::indexed: return RIGEL_LOOPS(indexed, "rigel_text_indexed");
    case TextForm::two_fields: return RIGEL_LOOPS(two_fields, "rigel_text_fields_2");
    case TextForm::three_fields: return RIGEL_LOOPS(three_fields, "rigel_text_fields_3");
    case TextForm::four_fields: return RIGEL_LOOPS(four_fields, "rigel_text_fields_4");
    case TextForm::ordered:
      if constexpr (std::is_floating_point_v<A>) return RIGEL_LOOPS(plain, "rigel_text_ordered");
      [[fallthrough]];
    default: return RIGEL_LOOPS(plain, "rigel_text");
  }
#undef RIGEL_LOOPS
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
  return of_widest<detail::TextLoops, RIGEL_HOST_LEVELS>([&]<class L>() { return loops_of<L>(element, form); });
}

}  // namespace rigel::backends::host

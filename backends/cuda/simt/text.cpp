// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.simt kernels of semirings from text: which one a problem gets, its code, and its launch.
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/simt/split.hpp>
#include <rigel/backends/cuda/simt/text.hpp>
#include <rigel/backends/cuda/text_code.hpp>
#include <rigel/detail/text.hpp>

#include <cstring>
#include <vector>

namespace rigel::detail {
namespace {

// Without what a kernel's facts say: text_arguments() adds that.
template <bool may_copy>
backends::simt::TextFinish<may_copy> text_finish_of(const Product& p, Scalar type) {
  backends::simt::TextFinish<may_copy> finish = {};
  if (p.program) {
    finish.program = finish_of<ProgramFinish>(p, type);
  } else {
    finish.program = {epilogue::Program{}, type, false, true, false, epilogue::Layer{}};
    finish.first_batch = p.first.batch;
    finish.first_row = p.first.row;
    finish.first_column = p.first.column;
  }
  return finish;
}

}  // namespace

template <>
backends::simt::TextFinish<false> finish_of(const Product& p, Scalar type) {
  return text_finish_of<false>(p, type);
}
template <>
backends::simt::TextFinish<true> finish_of(const Product& p, Scalar type) {
  return text_finish_of<true>(p, type);
}

}  // namespace rigel::detail

namespace rigel::backends::simt {
namespace {

// The epilogue from text, or null if it is of the closed set.
const detail::TextEpilogue* epilogue_of(const Product& p) {
  return p.program ? nullptr : static_cast<const detail::TextEpilogue*>(p.epilogue_object);
}

// What a kernel keeps: the semiring's facts and the code of its CUDA kernels. All kernels of a semiring share it.
struct TextState {
  TextState(const detail::TextFacts& of, const detail::TextCompiler& by, std::uint64_t of_arguments)
      : facts(of), compile(by), layout(of_arguments), codes("runtime::Semiring '" + std::string(of.info->name) + "'") {}

  detail::TextFacts facts;
  detail::TextCompiler compile;
  std::uint64_t layout;
  cuda::TextCodes codes;

  // A kernel's number, and the dynamic shared memory that it may take.
  struct Need {
    int number, bytes;
  };
  // The function of a kernel with an epilogue from text or none, compiled if it is not yet.
  const void* function(Need need, const Execution& execution, const detail::TextSource* epilogue) {
    return codes.function(
        need.number, epilogue ? epilogue->digest : cuda::TextCodes::Digest{}, execution, [&](const detail::TextGpu& gpu) {
          detail::TextCode code = compile(static_cast<std::size_t>(need.number), layout, gpu, epilogue);
          if (need.bytes > 0)
            cuda::check(cudaFuncSetAttribute(code.functions[0], cudaFuncAttributeMaxDynamicSharedMemorySize, need.bytes),
                        codes.what() + ": cudaFuncSetAttribute");
          return code;
        });
  }
  // That of a problem's kernel.
  const void* function(Need need, const Contraction& p) {
    const detail::TextEpilogue* const epilogue = epilogue_of(p);
    return function(need, p.execution, epilogue ? epilogue->source : nullptr);
  }
};
template <class S, class Kernel>
inline constexpr TextState::Need text_need{text_kernel_index<S, Kernel>, text_shared_memory<S, Kernel>()};

TextState& state_of(const Kernel<Contraction>& kernel) {
  return *static_cast<TextState*>(const_cast<void*>(kernel.state.get()));
}

// ---- hyperparameters that are views ----------------------------------------------------------------------------------

// Where hyperparameters of `Word` bits are: numbers, or memory that the GPU reads.
template <class Word>
struct Scattered {
  Word numbers[most_text_parameters];
  const Word* memory[most_text_parameters];  // null: a number
  std::int64_t stride[most_text_parameters], first;
};

// Writes those of `matrices` matrices to memory, one after the other.
template <class Word>
__global__ void gather_numbers(const __grid_constant__ Scattered<Word> from, Word* to, std::int64_t matrices) {
  const std::int64_t l = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (l >= matrices) return;
#pragma unroll
  for (int i = 0; i < most_text_parameters; ++i)
    to[l * most_text_parameters + i] = from.memory[i] ? from.memory[i][(from.first + l) * from.stride[i]] : from.numbers[i];
}

template <class Word>
void gather(const detail::TextValues& values, void* to, std::int64_t first, std::int64_t matrices,
            const cuda::Launches& launches) {
  Scattered<Word> from = {};
  from.first = first;
  std::memcpy(from.numbers, values.numbers.data(), sizeof from.numbers);
  for (const detail::TextView& view : values.views) {
    from.memory[view.index] = static_cast<const Word*>(view.data);
    from.stride[view.index] = view.count > 1 ? view.stride : 0;
  }
  constexpr int threads = 128;
  launches(&gather_numbers<Word>, dim3(static_cast<unsigned>((matrices + threads - 1) / threads)), threads, 0, from,
           static_cast<Word*>(to), matrices);
}

// The bytes that the hyperparameters of a problem's matrices take in the workspace: none if all are numbers. Each has `size`.
std::size_t gathered_bytes(const detail::TextValues& values, std::size_t size, std::int64_t matrices) {
  return values.views.empty() ? 0 : static_cast<std::size_t>(values.differ() ? matrices : 1) * most_text_parameters * size;
}
const detail::TextValues& values_of(const Product& p) { return *static_cast<const detail::TextValues*>(p.semiring_object); }
std::size_t semiring_bytes(const detail::TextFacts& facts, const Contraction& p) {
  return (gathered_bytes(values_of(p), size_of(facts.info->operand), p.batch) + 15) / 16 * 16;
}
// A kernel may read 8 bytes for each number of the last matrix, whatever its type.
std::size_t epilogue_bytes(const Contraction& p) {
  const detail::TextEpilogue* const epilogue = epilogue_of(p);
  if (!epilogue || epilogue->values->views.empty()) return 0;
  const std::size_t size = size_of(epilogue->number);
  return gathered_bytes(*epilogue->values, size, p.batch) + most_text_parameters * (8 - size);
}

// Writes the hyperparameters to `to`, by a kernel of the stream, so that a replayed graph reads what views hold then. Returns where they are,
// or null if all are numbers.
void* gather(const detail::TextValues& values, Scalar type, void* to, const Contraction& p, const cuda::Launches& launches) {
  if (values.views.empty()) return nullptr;
  const std::int64_t matrices = values.differ() ? p.batch : 1;
  if (size_of(type) == 4)
    gather<std::uint32_t>(values, to, p.first.batch, matrices, launches);
  else
    gather<std::uint64_t>(values, to, p.first.batch, matrices, launches);
  return to;
}

// ---- arguments -------------------------------------------------------------------------------------------------------

template <class S, class Finish>
detail::Arguments<S, Finish> arguments_for(const Contraction& p) {
  if constexpr (std::is_same_v<Finish, CopyFinish<S>>) {
    const auto g = detail::arguments_of<S, detail::ProgramFinish>(p);
    return {g, g.c, g.c_strides, g.one_semiring, g.semirings, {{}, p.c.type}, g.accumulate, g.shares_semiring};
  } else {
    return detail::arguments_of<S, Finish>(p);
  }
}

// The arguments of a problem's kernel, which read the hyperparameters in the workspace if some are views.
template <class S, class Finish>
detail::Arguments<S, Finish> text_arguments(const Kernel<Contraction>& kernel, const Contraction& p,
                                            const Workspace& workspace) {
  const cuda::Launches launches(p, kernel.info.name);
  const detail::TextFacts& facts = state_of(kernel).facts;
  auto g = arguments_for<S, Finish>(p);
  const detail::TextValues& values = values_of(p);
  g.semirings = static_cast<const S*>(gather(values, facts.info->operand, workspace.data, p, launches));
  g.shares_semiring = !values.differ();
  if constexpr (!std::is_same_v<Finish, detail::ProgramFinish>) {
    Scalar type;
    const bool copies = copies_results<S>(p, facts.info->result, type);
    g.finish.type = type;
    if constexpr (!std::is_same_v<Finish, CopyFinish<S>>) {
      g.finish.copies = copies;
      if (const detail::TextEpilogue* const epilogue = epilogue_of(p)) {
        const std::size_t size = size_of(epilogue->number);
        std::memcpy(g.finish.numbers, epilogue->values->numbers.data(), most_text_parameters * size);
        g.finish.memory = static_cast<const std::uint64_t*>(
            gather(*epilogue->values, epilogue->number, static_cast<std::byte*>(workspace.data) + semiring_bytes(facts, p),
                   p, launches));
        if (epilogue->values->differ()) g.finish.stride = static_cast<std::int64_t>(most_text_parameters * size / 8);
      }
    }
  }
  return g;
}

// Calls visit.operator()<Finish>() with that of a problem's kernels which are not in tiles.
template <class S, class Visit>
auto with_finish(const Contraction& p, const Visit& visit) {
  if constexpr (has_fields<S>)
    return visit.template operator()<TextFinish<true>>();
  else
    return p.program ? visit.template operator()<detail::ProgramFinish>() : visit.template operator()<TextFinish<false>>();
}

// Calls use.operator()<Finish>(function) with the CUDA kernel of a tile that a problem gets, compiled if it is not yet.
template <class S, class Shape, class Use>
void with_text_tile(const Kernel<Contraction>& kernel, const Contraction& p, const Use& use) {
  const Ways ways = text_ways<S, Shape>(p);
  Scalar type;
  const bool copies = copies_results<S>(p, state_of(kernel).facts.info->result, type);
  const auto use_if = [&]<class Of, class Tile, class Finish>() {
    if (Tile::ways.a != ways.a || Tile::ways.b != ways.b) return false;
    const cuda::CurrentDevice current(p.execution.device);
    use.template operator()<Finish>(state_of(kernel).function(text_need<Of, Tile>, p));
    return true;
  };
  if constexpr (std::is_same_v<Shape, SmallTile<S>> && has_whole<S>)
    if (copies && goes_out_whole<S, Shape>(p)) {
      using Whole = typename S::Whole;
      static_assert(std::is_same_v<SmallTile<Whole>, Shape> &&
                    sizeof(detail::Arguments<Whole, CopyFinish<Whole>>) == sizeof(detail::Arguments<S, CopyFinish<S>>));
      bool found = false;
      detail::for_each(TextKernels<Whole>{},
                       [&]<class Tile>() { found = found || use_if.template operator()<Whole, Tile, CopyFinish<S>>(); });
      if (found) return;
    }
  detail::for_each(TextKernels<S>{}, [&]<class Tile>() {
    if constexpr (requires { typename Tile::Shape; })
      if constexpr (std::is_same_v<typename Tile::Shape, Shape>) {
        using Finish = typename Tile::Finish;
        constexpr bool copying = std::is_same_v<Finish, CopyFinish<S>>,
                       of_programs = std::is_same_v<Finish, detail::ProgramFinish>;
        if (copying != copies) return;
        if (!has_fields<S> && !copying && of_programs != (p.program != nullptr)) return;
        use_if.template operator()<S, Tile, Finish>();
      }
  });
}

// What the host passes to the steps of a problem's tiles: of powers the exponent, NaN if it is in memory, with what a table needs of it.
template <class S>
auto step_parameters(const Kernel<Contraction>& kernel, const Contraction& p) {
  if constexpr (S::work == TextWork::powers) {
    const detail::TextExponent exponent = *state_of(kernel).facts.exponent;
    const detail::TextValues& values = values_of(p);
    float number = exponent.number;
    if (exponent.hyperparameter >= 0)
      std::memcpy(&number, values.numbers.data() + static_cast<std::size_t>(exponent.hyperparameter) * sizeof number,
                  sizeof number);
    for (const detail::TextView& view : values.views)
      if (static_cast<int>(view.index) == exponent.hyperparameter) number = std::numeric_limits<float>::quiet_NaN();
    typename PowersByTable<S>::Parameters parameters(PowersByTable<S>::supports(number) ? number : 2);
    parameters.p = number;
    return parameters;
  } else {
    return NoParameters{};
  }
}

template <class S, class Shape>
void text_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
  const tile::Raster raster{0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<S, Shape>(p))};
  with_text_tile<S, Shape>(kernel, p, [&]<class Finish>(const void* function) {
    launch_tiles(kernel.info, p, function, raster, Shape::threads, text_arguments<S, Finish>(kernel, p, workspace),
                 step_parameters<S>(kernel, p));
  });
}

template <class S>
void text_small_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& kept, const Workspace& workspace) {
  constexpr SmallFacts facts = small_facts<S>();
  const auto plan = kept.get<SmallPlan>();
  with_finish<S>(p, [&]<class Finish>() {
    SmallShape shape = small_shape(p, plan, facts, small_vector_bits_of_c<S, Finish>(p));
    const auto bytes = static_cast<std::size_t>(boxes_of(p, plan, facts).bytes);
    const cuda::Launches launches(p, kernel.info.name);
    const void* const function = state_of(kernel).function(text_need<S, TextSmall<Finish>>, p);
    detail::Arguments<S, Finish> arguments = text_arguments<S, Finish>(kernel, p, workspace);
    void* list[] = {&arguments, &shape};
    cuda::for_each_launch(plan.groups(p), max_grid / shape.parts, [&](std::int64_t first, std::int64_t count) {
      shape.first_group = static_cast<unsigned>(first);
      launches(function, dim3(static_cast<unsigned>(count * shape.parts)), plan.threads, bytes, list);
    });
  });
}

template <class S>
void text_narrow_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
  const auto shape = plan.get<Narrow>();
  with_finish<S>(p, [&]<class Finish>() {
    const cuda::CurrentDevice current(p.execution.device);
    const void* const function = state_of(kernel).function(text_need<S, TextNarrow<Finish>>, p);
    launch_tiles(kernel.info, p, function, raster_of(p, shape), 1 << shape.outputs(),
                 text_arguments<S, Finish>(kernel, p, workspace), shape);
  });
}

template <class S>
void text_skinny_run(const Kernel<Contraction>& kernel, const Contraction& problem, const Plan& plan,
                     const Workspace& workspace) {
  const auto choice = plan.get<SkinnyChoice>();
  const SkinnyProblem p(problem);
  with_finish<S>(problem, [&]<class Finish>() {
    for_each_skinny_shape<S>(p, [&]<class Shape, int index>() {
      if (index != choice.shape) return;
      const SkinnyWay way = skinny_way<Shape>(p);
      const cuda::Launches launches(problem, kernel.info.name);
      const void* const function = state_of(kernel).function(
          way.k_major ? text_need<S, TextSkinny<Shape, Finish, true>> : text_need<S, TextSkinny<Shape, Finish, false>>,
          problem);
      launch_skinny<S, Shape>(launches, function, text_arguments<S, Finish>(kernel, problem, workspace), p, way,
                              choice.count, problem.execution.multiprocessors);
    });
  });
}

// Whether a kernel covers a problem, if its tile does.
template <Status (*fits)(const Contraction&)>
Status text_supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  const Status status = detail::text_finish_supports(p, state_of(kernel).facts.info->result);
  return status ? fits(p) : status;
}
template <class S>
Status text_narrow_fits(const Contraction& p) {
  return narrow_fits(p, slab_values<S>);
}
template <class S>
Status text_small_fits(const Contraction& p) {
  return small_supports<S, TextFinish<false>>(p);
}
template <class S>
Status text_skinny_supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  if (SkinnyProblem(p).swapped && !kernel.info.facts->commutative)
    return {Decline::extents, "C has more rows than columns, and the text does not say that ⊗ is commutative"};
  return text_supports<skinny_supports<S, TextFinish<false>>>(kernel, p);
}
template <class S>
double text_small_cost(const Kernel<Contraction>& kernel, const Contraction& p, Plan& plan) {
  return with_finish<S>(p, [&]<class Finish>() { return small_cost<S, Finish>(kernel, p, plan); });
}

// Without the CUDA kernel that narrow_kernel() instantiates.
template <class S>
Kernel<Contraction> text_narrow_kernel() {
  Kernel<Contraction> k;
  k.info = narrow_info<S>();
  k.supports = text_supports<text_narrow_fits<S>>;
  k.cost = narrow_cost<S>;
  k.run = text_narrow_run<S>;
  return k;
}

// The same of small_kernel().
template <class S>
Kernel<Contraction> text_small_kernel() {
  Kernel<Contraction> k;
  k.info = small_info<S>();
  k.supports = text_supports<text_small_fits<S>>;
  k.cost = text_small_cost<S>;
  k.run = text_small_run<S>;
  return k;
}

// The same of skinny_kernel().
template <class S>
Kernel<Contraction> text_skinny_kernel() {
  Kernel<Contraction> k;
  k.info = skinny_info<S>();
  k.supports = text_skinny_supports<S>;
  k.cost = skinny_cost<S>;
  k.run = text_skinny_run<S>;
  return k;
}

// ---- K in slices -----------------------------------------------------------------------------------------------------
//
// split_kernel() with the tile of the text. Kernels of compiled semirings with the text's ⊕ join slices: they need no code of the text.

template <class S>
inline constexpr bool has_text_split = has_text_slices<S> && sizeof(typename S::element) >= 4;

template <class S>
Status text_split_supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  if (!p.program) return {Decline::epilogue, "the epilogue is from text; slices are joined with one of the closed set"};
  const Status status = slices_fit(p);
  return status ? text_supports<supports<S, detail::ProgramFinish, SmallTile<S>>>(kernel, p) : status;
}

template <class S>
WorkspaceSize text_split_workspace(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan) {
  WorkspaceSize size = split_workspace<S>(kernel, p, plan);
  size.bytes += semiring_bytes(state_of(kernel).facts, p);
  return size;
}

// Calls join.operator()<Joined>(problem) with the compiled semiring over E whose ⊕ is the text's, and the problem as one of it.
template <class E, class Join>
void with_join(const detail::TextFacts& facts, Contraction p, const Join& join) {
  const auto with = [&]<class Joined>() {
    static const Joined semiring{};
    p.semiring_object = &semiring;
    join.template operator()<Joined>(p);
  };
  if (facts.join == detail::TextJoin::minimum)
    with.template operator()<min_plus<E>>();
  else if (facts.join == detail::TextJoin::maximum)
    with.template operator()<max_plus<E>>();
  else
    with.template operator()<plus_times<E>>();
}

template <class S>
void text_split_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan, const Workspace& workspace) {
  const auto slices = plan.get<Slices>();
  const detail::TextFacts& facts = state_of(kernel).facts;
  auto* const first =
      reinterpret_cast<typename S::accumulator*>(static_cast<std::byte*>(workspace.data) + semiring_bytes(facts, p));
  // The last slice may need another kernel, as its K is no multiple of a slab: both are there before anything is enqueued.
  for_each_slice(p, slices, first, [&](const Contraction& batch) {
    with_text_tile<S, SmallTile<S>>(kernel, batch, []<class Finish>(const void*) {});
  });
  for_each_slice(p, slices, first,
                 [&](const Contraction& batch) { text_run<S, SmallTile<S>>(kernel, batch, plan, workspace); });
  with_join<typename S::element>(facts, p, [&]<class Joined>(const Contraction& q) {
    launch_join(kernel.info, q, join_parts<Joined>, 256, 256, detail::arguments_of<Joined, detail::ProgramFinish>(q), first,
                static_cast<int>(slices.count()));
  });
}

template <class S>
Kernel<Contraction> text_split_kernel() {
  Kernel<Contraction> k;
  k.info = tile_info<S, SmallTile<S>>("split_k");
  k.info.shared_memory = shared_memory_of<S, SmallTile<S>>();
  k.supports = text_split_supports<S>;
  k.cost = split_cost<S>;
  k.run = text_split_run<S>;
  return k;
}

// small_split_k_kernel() in the same way. The last k, which make no slice, are computed as one of their own.

template <class S>
Status text_small_split_supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  if (!p.program) return {Decline::epilogue, "the epilogue is from text; slices are joined with one of the closed set"};
  if (const Status status = text_supports<small_split_k_supports<S>>(kernel, p); !status) return status;
  // Boxes of the last k may be deeper than those of whole slices, and reach further.
  const Slices slices = small_slices_of(p.k);
  if (slices.rest == 0) return {};
  return small_supports<S, detail::ProgramFinish>(
      as_batch<typename S::accumulator>(p, slices.whole * slices.length, slices.rest, 1, p.c.data));
}

template <class S>
double text_small_split_cost(const Kernel<Contraction>& kernel, const Contraction& p, Plan& plan) {
  const Slices slices = small_slices_of(p.k);
  const auto seconds_of = [&](std::int64_t length, std::int64_t count) {
    return small_cost<S, detail::ProgramFinish>(kernel, as_batch<typename S::accumulator>(p, 0, length, count, p.c.data),
                                                plan);
  };
  return seconds_of(slices.length, slices.whole) + (slices.rest > 0 ? seconds_of(slices.rest, 1) : 0) +
         costs::small_join_seconds(p, static_cast<double>((p.m * p.n + Join::outputs - 1) / Join::outputs),
                                   static_cast<double>(p.m * p.n * slices.count()) * sizeof(typename S::accumulator), false);
}

template <class S>
WorkspaceSize text_small_split_workspace(const Kernel<Contraction>& kernel, const Contraction& p, const Plan&) {
  WorkspaceSize size = workspace_of_slices<typename S::accumulator>(p, small_slices_of(p.k).count());
  size.bytes += semiring_bytes(state_of(kernel).facts, p);
  return size;
}

template <class S>
void text_small_split_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
  const Slices slices = small_slices_of(p.k);
  const detail::TextFacts& facts = state_of(kernel).facts;
  auto* const first =
      reinterpret_cast<typename S::accumulator*>(static_cast<std::byte*>(workspace.data) + semiring_bytes(facts, p));
  for_each_slice(p, slices, first, [&](const Contraction& batch) {
    Plan plan;
    plan.keep(small_plan(batch, small_facts<S>()));
    text_small_run<S>(kernel, batch, plan, workspace);
  });
  with_join<typename S::element>(facts, p, [&]<class Joined>(const Contraction& q) {
    launch_join(kernel.info, q, join_slices<Joined>, Join::outputs, Join::threads,
                detail::arguments_of<Joined, detail::ProgramFinish>(q), first, static_cast<int>(slices.count()), q.k);
  });
}

template <class S>
Kernel<Contraction> text_small_split_kernel() {
  Kernel<Contraction> k;
  k.info = small_info<S>();
  detail::set_variant(k.info, "small_split_k");
  k.supports = text_small_split_supports<S>;
  k.cost = text_small_split_cost<S>;
  k.run = text_small_split_run<S>;
  return k;
}

// narrow_split_k_kernel(), whose threads join what they have of an output by the text's ⊕.

Status text_narrow_split_fits(const Contraction& p) { return split_k_fits(p); }

template <class S>
double text_narrow_split_cost(const Kernel<Contraction>&, const Contraction& p, Plan& plan) {
  const auto [shape, seconds] = costs::split_k_choice(p, semiring_facts<S>, split_k_threads<S>());
  plan.keep(shape);
  return seconds;
}

template <class S>
void text_narrow_split_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan& plan,
                           const Workspace& workspace) {
  auto shape = plan.get<SplitKShape>();
  with_finish<S>(p, [&]<class Finish>() {
    constexpr int rows = SplitK<S>::rows;
    const cuda::Launches launches(p, kernel.info.name);
    const void* const function = state_of(kernel).function(text_need<S, TextNarrowSplit<Finish>>, p);
    auto arguments = text_arguments<S, Finish>(kernel, p, workspace);
    if (shape.swapped) exchange_operands(arguments);
    std::int64_t x = (arguments.m + rows - 1) / rows, y = blocks_of(arguments.n, shape.columns);
    if (shape.flipped) std::swap(x, y);
    const int joined = std::clamp(5 - (shape.k_first ? 0 : shape.columns), 0, shape.parts);
    const std::size_t bytes = sizeof(typename S::accumulator) * rows << (shape.columns + shape.parts - joined);
    void* list[] = {&shape, &arguments};
    cuda::for_each_launch(p.batch, cuda::max_grid_yz, [&](std::int64_t l, std::int64_t batches) {
      cuda::for_each_launch(y, cuda::max_grid_yz, [&](std::int64_t first, std::int64_t count) {
        shape.first_batch = static_cast<unsigned>(l);
        shape.first_y = static_cast<unsigned>(first);
        launches(function, dim3(static_cast<unsigned>(x), static_cast<unsigned>(count), static_cast<unsigned>(batches)),
                 1 << shape.threads(), bytes, list);
      });
    });
  });
}

template <class S>
Kernel<Contraction> text_narrow_split_kernel() {
  Kernel<Contraction> k;
  k.info = tile_info<S, SmallTile<S>>("narrow_split_k");
  k.info.tile = {SplitK<S>::rows, 16, SplitK<S>::depth << 5};  // one of its shapes
  k.info.stages = 1;
  k.info.threads = k.info.shared_memory = 0;
  k.supports = text_supports<text_narrow_split_fits>;
  k.cost = text_narrow_split_cost<S>;
  k.run = text_narrow_split_run<S>;
  return k;
}

template <class S>
std::vector<Kernel<Contraction>> text_kernels_of(const detail::TextFacts& facts, const detail::TextCompiler& compile) {
  const auto state = std::make_shared<TextState>(facts, compile, text_layout<typename S::element>);
  std::vector<Kernel<Contraction>> list;
  const auto add = [&](Kernel<Contraction> k, std::string_view tile) {
    k.info.semiring = facts.info->name;
    k.info.semiring_type = facts.info->type;
    k.info.facts = facts.info;
    detail::set_name(k.info, tile);
    k.info.accuracy = detail::chain_accuracy<S>();
    k.info.promises = Promise::repeatable | Promise::batch_invariant;
    if (!facts.calls_functions) k.info.promises = k.info.promises | Promise::reference_bits;
    k.info.accumulates = can_accumulate<S>;
    k.workspace = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&) -> WorkspaceSize {
      return {.bytes = semiring_bytes(state_of(kernel).facts, p) + epilogue_bytes(p)};
    };
    k.state = state;
    list.push_back(std::move(k));
  };
  detail::for_each(Tiles<S>{}, [&]<class Shape>() {
    Kernel<Contraction> k;
    k.info = tile_info<S, Shape>();
    k.info.shared_memory = shared_memory_of<S, Shape>();
    k.supports = text_supports<supports<S, TextFinish<false>, Shape>>;
    k.cost = detail::cost_by<cost<S, Shape>>;
    k.run = text_run<S, Shape>;
    const Tile& tile = k.info.tile;
    add(std::move(k), std::to_string(tile.m) + 'x' + std::to_string(tile.n) + 'x' + std::to_string(tile.k));
  });
  add(text_narrow_kernel<S>(), {});
  add(text_small_kernel<S>(), {});
  if constexpr (has_text_skinny<S>) add(text_skinny_kernel<S>(), {});
  const auto add_slices = [&](Kernel<Contraction> k, decltype(k.workspace) workspace = nullptr) {
    if (facts.join == detail::TextJoin::none) return;
    add(std::move(k), {});
    if (workspace) list.back().workspace = workspace;
    if (facts.join == detail::TextJoin::sum && !std::is_integral_v<typename S::element>) set_own_bits(list.back().info);
  };
  if constexpr (has_text_split<S>) add_slices(text_split_kernel<S>(), text_split_workspace<S>);
  if constexpr (has_text_slices<S>) {
    add_slices(text_small_split_kernel<S>(), text_small_split_workspace<S>);
    add_slices(text_narrow_split_kernel<S>());
  }
  return list;
}

// Visits the semiring from text whose element type, number of fields and functions are those of `facts`.
template <class Visit>
auto with_text(const detail::TextFacts& facts, const Visit& visit) {
  const auto with_fields = [&]<class E, int fields>() {
    using A = accumulator_for<E>;
    using Powers = TextSemiring<E, A, fields, TextWork::powers>;
    if constexpr (text_place<Powers>(TextSemirings<E>{}) >= 0)
      if (facts.exponent) return visit.template operator()<Powers>();
    using Calling = TextSemiring<E, A, fields, TextWork::calls>;
    if constexpr (text_place<Calling>(TextSemirings<E>{}) >= 0)
      if (facts.has_long_operations) return visit.template operator()<Calling>();
    return visit.template operator()<TextSemiring<E, A, fields, TextWork::light>>();
  };
  const auto with = [&]<class E>() {
    switch (facts.form) {
      case detail::TextForm::two_fields: return with_fields.template operator()<E, 2>();
      case detail::TextForm::three_fields: return with_fields.template operator()<E, 3>();
      case detail::TextForm::four_fields: return with_fields.template operator()<E, 4>();
      default: return with_fields.template operator()<E, 1>();
    }
  };
  switch (facts.info->element) {
    case Scalar::f64: return with.template operator()<double>();
    case Scalar::f16: return with.template operator()<half>();
    case Scalar::bf16: return with.template operator()<bfloat16>();
    case Scalar::i32: return with.template operator()<std::int32_t>();
    case Scalar::i64: return with.template operator()<std::int64_t>();
    default: return with.template operator()<float>();
  }
}

// The kernels that calls may need: with an epilogue from text those that store its results.
template <class S>
std::vector<TextState::Need> needs_of(bool has_epilogue) {
  std::vector<TextState::Need> needs;
  const auto add = [&]<class Of>() {
    using Finish = typename Of::Finish;
    constexpr bool stores = !std::is_same_v<Finish, CopyFinish<S>> && !std::is_same_v<Finish, detail::ProgramFinish>;
    if (has_epilogue ? stores : text_place<Of>(PlainTextKernels<S>{}) >= 0) needs.push_back(text_need<S, Of>);
  };
  detail::for_each(TextKernels<S>{}, add);
  if constexpr (has_whole<S>)
    if (!has_epilogue)
      detail::for_each(TextKernels<typename S::Whole>{},
                       [&]<class Of>() { needs.push_back(text_need<typename S::Whole, Of>); });
  return needs;
}

}  // namespace

std::vector<Kernel<Contraction>> text_kernels(const detail::TextFacts& facts, const detail::TextCompiler& compile) {
  return with_text(facts, [&]<class S>() { return text_kernels_of<S>(facts, compile); });
}

void compile_text_kernels(const Kernel<Contraction>& kernel, const Execution& execution,
                          const detail::TextSource* epilogue) {
  TextState& state = state_of(kernel);
  auto needs = with_text(state.facts, [&]<class S>() { return needs_of<S>(epilogue != nullptr); });
  std::erase_if(needs, [&](const TextState::Need& need) { return need.bytes > execution.shared_memory; });
  cuda::in_parallel(needs.size(), [&](std::size_t i) { state.function(needs[i], execution, epilogue); });
}

}  // namespace rigel::backends::simt

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.mma kernels for epilogues from text: their facts and their launch.
#include <rigel/backends/cuda/mma/text.hpp>

namespace rigel::backends::mma {
namespace {

template <class Tile>
Status text_supports(const Kernel<Contraction>&, const Contraction& p) {
  using S = typename Tile::Semiring;
  if (Status status = tensor::text_supports<typename S::element>(p); !status) return status;
  return supports<S, typename Tile::Factor, typename Tile::Shape, Tile::decomposition, tensor::TextFinish<float>>(p);
}

// use.operator()<of_a, of_b>() with the directions in which a tile reads the operands.
template <class Tile, class Use>
void with_directions(std::optional<Direction> a, std::optional<Direction> b, const Use& use) {
  if constexpr (Tile::lines) {
    const bool a_lines = a == Direction::along_lines, b_lines = b == Direction::along_lines;
    if (a_lines && b_lines) return use.template operator()<Direction::along_lines, Direction::along_lines>();
    if (a_lines) return use.template operator()<Direction::along_lines, Direction::along_k>();
    if (b_lines) return use.template operator()<Direction::along_k, Direction::along_lines>();
  }
  use.template operator()<Direction::along_k, Direction::along_k>();
}

// As run() says, with code from text.
template <class Tile, class Value>
void text_run_to(const Kernel<Contraction>& kernel, const Contraction& p, void* workspace) {
  using S = typename Tile::Semiring;
  using Factor = typename Tile::Factor;
  using Shape = typename Tile::Shape;
  constexpr int planes = Tile::decomposition.planes;
  const cuda::Launches launches(p, kernel.info.name);
  auto* memory = static_cast<std::byte*>(workspace);
  tensor::Passes passes;
  const auto source = [&](const Lines& g, std::optional<Direction> direction) {
    const Operand& o = *g.operand;
    if constexpr (planes > 1) return cut_source<Factor, planes>(g, memory, passes);
    if (direction)
      return Source<Factor>{static_cast<const Factor*>(o.data), o.batch_stride,
                            direction == Direction::along_k ? g.line_stride : g.k_stride};
    return packed_source<Factor>(g, memory, passes);
  };
  const Lines lines_a = lines_of_a(p), lines_b = lines_of_b(p);
  const std::optional<Direction> direction_a = direction_of(lines_a, Tile::lines),
                                 direction_b = direction_of(lines_b, Tile::lines);
  with_directions<Tile>(direction_a, direction_b, [&]<Direction of_a, Direction of_b>() {
    constexpr int number =
        tensor::text_place<tensor::TextKernel<Tile, Value, of_a, of_b>>(TextKernels<typename S::element>{});
    constexpr int bytes = Tile::bytes;
    const void* const function = cuda::text_functions_of(kernel)(number, p.execution, bytes);  // before anything is enqueued
    Operands<Factor> operands{source(lines_a, direction_a), source(lines_b, direction_b), static_cast<int>(p.k)};
    if constexpr (planes > 1)
      tensor::cut_operands<planes, PlaneLayout::alternating>(passes, launches);
    else
      tensor::pack_operands(passes, launches);
    auto arguments = tensor::text_arguments<S, Value>(p);
    Sums result;
    typename Tile::Raster raster;
    if constexpr (planes > 1)
      raster = {0, static_cast<unsigned>(rows_of<Shape>(p)), static_cast<unsigned>(columns_of<Shape>(p))};
    else
      raster = {rows_of<Shape>(p), columns_of<Shape>(p)};
    auto tiles = static_cast<unsigned>(p.batch * raster.rows * raster.columns);
    if (tiles == 0) return;
    void* list[] = {&operands, &arguments, &result, &raster, &tiles};
    // The bitcode is that of the least architecture, whose code does not wait for the launch before it.
    launch_tiles<Shape>(function, tiles, bytes, list, p, false, launches);
  });
}
template <class Tile>
void text_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
  using Element = typename Tile::Semiring::element;
  if constexpr (ShortFloat<Element>)
    if (p.c.type == scalar_of<Element>) return text_run_to<Tile, Element>(kernel, p, workspace.data);
  text_run_to<Tile, float>(kernel, p, workspace.data);
}

// As kernel() says.
template <class Tile>
Kernel<Contraction> text_kernel(std::shared_ptr<const void> state) {
  using S = typename Tile::Semiring;
  using Own = typename S::element;
  using Factor = typename Tile::Factor;
  using Shape = typename Tile::Shape;
  constexpr Decomposition decomposition = Tile::decomposition;
  constexpr bool cuts = decomposition.planes > 1;
  constexpr int depth = cuts ? slab_of_planes : 128 / static_cast<int>(sizeof(Own));
  constexpr int terms = 32 / static_cast<int>(cuts ? sizeof(Factor) : sizeof(Own));
  Kernel<Contraction> k;
  k.info = info_of_tile<S, Shape>("cuda.mma", Tile::precision, depth, variant_of(decomposition), "text");
  k.info.shared_memory = Tile::bytes;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = accuracy_of(decomposition, terms, Tile::precision == Precision::tf32 ? cut_to_tf32 : 0);
  k.info.truncates = ShortFloat<Own> && decomposition.promoted == 0;
  if constexpr (decomposition.products == 1) k.info.transposes = Transposes::with_same_bits;
  k.state = std::move(state);
  k.supports = text_supports<Tile>;
  k.cost = detail::cost_by<cost<Shape, decomposition.products, Tile::lines, decomposition>>;
  k.workspace = detail::workspace_by<workspace<Tile::lines, decomposition>>;
  k.run = text_run<Tile>;
  return k;
}

template <class Element>
std::vector<Kernel<Contraction>> text_kernels_of(const std::string& epilogue, const detail::TextTileCompiler& compile) {
  const auto state =
      std::make_shared<cuda::TextFunctions>(epilogue, compile, scalar_of<Element>, text_layout_of<Element>, "mma_");
  std::vector<Kernel<Contraction>> list;
  detail::for_each(typename TextTiles<Element>::List{}, [&]<class Tile>() { list.push_back(text_kernel<Tile>(state)); });
  return list;
}

}  // namespace

std::vector<Kernel<Contraction>> text_kernels(Scalar element, const std::string& epilogue,
                                              const detail::TextTileCompiler& compile) {
  if (element == Scalar::f16) return text_kernels_of<half>(epilogue, compile);
  if (element == Scalar::bf16) return text_kernels_of<bfloat16>(epilogue, compile);
  if (element == Scalar::f32) return text_kernels_of<float>(epilogue, compile);
  return {};
}

int compile_text_kernels(const Kernel<Contraction>& kernel, Scalar c, const Execution& execution) {
  const Scalar element = kernel.info.element;
  const auto needs = element == Scalar::f16    ? tensor::text_needs(TextKernels<half>{}, c)
                     : element == Scalar::bf16 ? tensor::text_needs(TextKernels<bfloat16>{}, c)
                                               : tensor::text_needs(TextKernels<float>{}, c);
  return cuda::text_functions_of(kernel).compile(needs, execution);
}

}  // namespace rigel::backends::mma

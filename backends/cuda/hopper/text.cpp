// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cuda.hopper kernel for epilogues from text: its facts and its launch.
#include <rigel/backends/cuda/hopper/text.hpp>

namespace rigel::backends::hopper {
namespace {

template <class Element>
Status text_supports(const Kernel<Contraction>&, const Contraction& p) {
  using Tile = TextTile<Element>;
  if (Status status = tensor::text_supports<Element>(p); !status) return status;
  if (Status status = supports_cut_sums<typename Tile::Semiring>(p.k); !status) return status;
  return supports<typename Tile::Shape, tensor::TextFinish<float>>(p);
}

// As run() says, with code from text.
template <class Element, class Value>
void text_run_to(const Kernel<Contraction>& kernel, const Contraction& p, void* workspace) {
  using Tile = TextTile<Element>;
  using Shape = typename Tile::Shape;
  using Parts = typename Tile::Parts;
  const cuda::Launches launches(p, kernel.info.name);
  const tile::PersistentRaster raster(rows_of<Shape>(p), columns_of<Shape>(p));
  const auto tiles = static_cast<unsigned>(p.batch * raster.rows * raster.columns);
  if (tiles == 0) return;
  const unsigned clusters =
      std::min(tiles, static_cast<unsigned>(std::max(p.execution.multiprocessors / Shape::cluster, 1)));
  auto arguments = tensor::text_arguments<typename Tile::Semiring, Value>(p);
  with_directions<Element, Parts>(p, [&]<Direction of_a, Direction of_b>() {
    constexpr int number = tensor::text_place<tensor::TextKernel<Tile, Value, of_a, of_b>>(TextKernels<Element>{});
    constexpr int bytes = Tile::bytes;
    const void* const function = cuda::text_functions_of(kernel)(number, p.execution, bytes);  // before anything is enqueued
    Operands operands = operands_of<Element, Parts, Shape, 1, Shape::cluster>(p, workspace, launches);
    Schedule schedule{raster, tiles, clusters, Slabs<Element, Parts, Shape, of_a, of_b>::count(operands.k)};
    void* list[] = {&operands, &arguments, &schedule};
    launches(function, clusters * Shape::cluster, Shape::threads, bytes, list, tensor::starts_early(tiles, clusters),
             Shape::cluster);
  });
}
template <class Element>
void text_run(const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace& workspace) {
  if (p.c.type == Scalar::f32)
    text_run_to<Element, float>(kernel, p, workspace.data);
  else
    text_run_to<Element, Element>(kernel, p, workspace.data);
}

// As kernel() says.
template <class Element>
Kernel<Contraction> text_kernel(std::shared_ptr<const void> state) {
  using Tile = TextTile<Element>;
  using Shape = typename Tile::Shape;
  constexpr int depth = Tile::Parts::row_bytes / static_cast<int>(sizeof(Element));
  Kernel<Contraction> k;
  k.info = tensor::info_of_tile<typename Tile::Semiring, Shape>("cuda.hopper", Precision::accumulator, depth, {}, "text");
  k.info.min_compute_capability = k.info.max_compute_capability = 90;
  k.info.shared_memory = Tile::bytes;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = accuracy_of_cut_sums();
  k.info.truncates = true;  // in long parts
  k.info.transposes = Transposes::with_same_bits;
  k.state = std::move(state);
  k.supports = text_supports<Element>;
  k.cost = detail::cost_by<cost<Element, typename Tile::Parts, Shape>>;
  k.workspace = detail::workspace_by<workspace<typename Tile::Parts>>;
  k.run = text_run<Element>;
  return k;
}

template <class Element>
std::vector<Kernel<Contraction>> text_kernels_of(const std::string& epilogue, const detail::TextTileCompiler& compile) {
  return {text_kernel<Element>(std::make_shared<cuda::TextFunctions>(
      epilogue, compile, scalar_of<Element>, text_layout_of<Element>, "hopper_", "sm_90a", cuda::TextImage::loaded))};
}

}  // namespace

std::vector<Kernel<Contraction>> text_kernels(Scalar element, const std::string& epilogue,
                                              const detail::TextTileCompiler& compile) {
  if (element == Scalar::f16) return text_kernels_of<half>(epilogue, compile);
  if (element == Scalar::bf16) return text_kernels_of<bfloat16>(epilogue, compile);
  return {};
}

int compile_text_kernels(const Kernel<Contraction>& kernel, Scalar c, const Execution& execution) {
  const auto needs = kernel.info.element == Scalar::f16 ? tensor::text_needs(TextKernels<half>{}, c)
                                                        : tensor::text_needs(TextKernels<bfloat16>{}, c);
  return cuda::text_functions_of(kernel).compile(needs, execution);
}

}  // namespace rigel::backends::hopper

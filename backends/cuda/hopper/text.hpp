// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile of cuda.hopper for epilogues from text: that for functors (add_functor_kernels()), which takes sums of any length.
#pragma once

#include <rigel/backends/cuda/hopper/contract.hpp>
#include <rigel/backends/cuda/tensor/text.hpp>

namespace rigel::backends::hopper {

template <ShortFloat Element>
struct TextTile {
  using Semiring = plus_times<Element>;
  using Shape = hopper::Shape<Tiles::shared, 1, 192, 5, 2, true>;
  using Parts = hopper::Parts<1, 1, false>;
  static constexpr int bytes = sizeof(SharedStorage<Shape, Parts, typename arch::WgmmaTypes<Element>::Accumulator>);
};
/// All kernels of an element type, in the order of the bitcode's table.
template <class Element>
using TextKernels = decltype(tensor::text_kernels_of_tile<TextTile<Element>, Element, true>());
template <class Element>
inline constexpr std::uint64_t text_layout_of = tensor::text_layout<plus_times<Element>>(TextKernels<Element>{});

/// The CUDA kernel, in the bitcode.
template <class Kernel, class Tile = typename Kernel::Tile, class S = typename Tile::Semiring>
inline constexpr auto text_root =
    &multiply<S, typename S::element, typename Tile::Parts, tensor::TextFinish<typename Kernel::Value>, typename Tile::Shape,
              Kernel::of_a, Kernel::of_b>;

/// The kernels for products of an element type with an epilogue from text, whose code `compile` gives; none, if there are none of that type.
std::vector<Kernel<Contraction>> text_kernels(Scalar element, const std::string& epilogue,
                                              const detail::TextTileCompiler& compile);

/// Compiles all that calls with a C of type `c` may need of those, of which `kernel` is one. Returns how many there are.
int compile_text_kernels(const Kernel<Contraction>& kernel, Scalar c, const Execution& execution);

}  // namespace rigel::backends::hopper

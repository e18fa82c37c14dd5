// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tiles of cuda.mma for epilogues from text: those for functors (add_functor_kernels()).
#pragma once

#include <rigel/backends/cuda/mma/contract.hpp>
#include <rigel/backends/cuda/tensor/text.hpp>

namespace rigel::backends::mma {

/// A tile whose steps multiply numbers of type `Multiplied`.
template <class Element, class Multiplied, Precision of_precision, class OfShape>
struct TextTile {
  using Semiring = plus_times<Element>;
  using Factor = Multiplied;
  using Shape = OfShape;
  static constexpr Precision precision = of_precision;
  static constexpr Decomposition decomposition = decomposition_at<Element, Multiplied>(precision);
  static constexpr bool lines = decomposition.planes == 1 && takes_lines<Semiring, Multiplied, Shape>;
  static constexpr int bytes = shared_bytes<Shape, typename arch::Mma<Multiplied>::Accumulator, decomposition.planes>;
  using Raster = std::conditional_t<(decomposition.planes > 1), tile::Raster, tile::PersistentRaster>;
};
/// The tiles of an element type.
template <class Element>
struct TextTiles {
  using List = type_list<TextTile<Element, Element, Precision::accumulator, Shape<2, 4, 64, 64, 3, 1>>,
                         TextTile<Element, Element, Precision::accumulator, Shape<2, 2, 64, 32, 3, 2>>>;
};
template <>
struct TextTiles<float> {
  using List = type_list<TextTile<float, bfloat16, Precision::promoted, Shape<2, 4, 64, 32, 3, 1>>,
                         TextTile<float, float, Precision::tf32, Shape<2, 4, 64, 64, 3, 1>>>;
};

template <class Element, class... Tile>
constexpr auto text_kernels_of_all(type_list<Tile...>) {
  using tensor::operator+;
  return (tensor::text_kernels_of_tile<Tile, Element, Tile::lines>() + ...);
}
/// All kernels of an element type, in the order of the bitcode's table.
template <class Element>
using TextKernels = decltype(text_kernels_of_all<Element>(typename TextTiles<Element>::List{}));
template <class Element>
inline constexpr std::uint64_t text_layout_of = tensor::text_layout<plus_times<Element>>(TextKernels<Element>{});

/// The CUDA kernel, in the bitcode.
template <class Kernel, class Tile = typename Kernel::Tile>
inline constexpr auto text_root = &multiply<typename Tile::Semiring, typename Tile::Factor, Tile::decomposition,
                                            tensor::TextFinish<typename Kernel::Value>, typename Tile::Shape, Kernel::of_a,
                                            Kernel::of_b, Sums, typename Tile::Raster>;

/// The kernels for products of an element type with an epilogue from text, whose code `compile` gives; none, if there are none of that type.
std::vector<Kernel<Contraction>> text_kernels(Scalar element, const std::string& epilogue,
                                              const detail::TextTileCompiler& compile);

/// Compiles all that calls with a C of type `c` may need of those, of which `kernel` is one. Returns how many there are.
int compile_text_kernels(const Kernel<Contraction>& kernel, Scalar c, const Execution& execution);

}  // namespace rigel::backends::mma

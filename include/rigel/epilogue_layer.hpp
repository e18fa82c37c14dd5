// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The short form of the epilogues that layers of neural networks and kernel matrices have.
#pragma once

#include <rigel/epilogue.hpp>

#include <cmath>
#include <optional>

namespace rigel::epilogue {

/// What layers of neural networks and kernel matrices apply to each output, v ↦ φ(v·factor + shift(n)), then perhaps · or + a number of
/// its own (a residual, a derivative): a short form of some programs, for kernels that can then do without decoding steps.
struct Layer {
  bool scales = false, shifts = false, shift_in_memory = false;
  float factor = 1, number = 0;           // number: a shift that is not in memory
  Source shift;                           // the same for all rows; cuda.simt also takes one for all columns
  Kind activation = Kind::scale;          // scale: there is none
  float rate = 0;                         // of Kind::exponential
  bool multiplies = false, adds = false;  // by or to the numbers of `matrix`
  Source matrix;                          // read in groups of four columns

  /// The layer that gives what a program gives, if there is one: at most a scale() by a number; an add() of a number or of one for each
  /// column; one of relu(), silu(), gelu(), gelu_tanh() and exponential() by a number; and a scale() or add() by a matrix that
  /// read_fours() takes, in this order. `of_one_row`: a shift that differs by rows counts as one.
  static constexpr std::optional<Layer> of(const Program& program, bool of_one_row = false) {
    Layer layer;
    int i = 0;
    const auto next_is = [&](Kind kind) { return i < program.size() && program[i].kind == kind; };
    const auto source = [&]() -> const Source& { return program.source(program[i].x_from); };
    if (next_is(Kind::scale) && !program[i].reads_memory()) {
      layer.scales = true;
      layer.factor = static_cast<float>(program[i++].x);
    }
    if (next_is(Kind::add) && (!program[i].reads_memory() || source().row_stride == 0 || of_one_row)) {
      layer.shifts = true;
      layer.shift_in_memory = program[i].reads_memory();
      layer.number = static_cast<float>(program[i].x);
      if (layer.shift_in_memory) layer.shift = source();
      ++i;
    }
    if (next_is(Kind::relu) || next_is(Kind::silu) || next_is(Kind::gelu) || next_is(Kind::gelu_tanh) ||
        (next_is(Kind::exponential) && !program[i].reads_memory())) {
      layer.activation = program[i].kind;
      layer.rate = static_cast<float>(program[i++].x);
    }
    if ((next_is(Kind::scale) || next_is(Kind::add)) && program[i].reads_memory() && source().is_in_fours()) {
      layer.multiplies = program[i].kind == Kind::scale;
      layer.adds = !layer.multiplies;
      layer.matrix = source();
      ++i;
    }
    return i == program.size() ? std::optional(layer) : std::nullopt;
  }
  RIGEL_MEMBER constexpr bool has_matrix() const { return multiplies || adds; }

  /// The shifts of outputs (l, ·, n + i).
  template <int width>
  RIGEL_MEMBER void read_shift(float (&x)[width], std::int64_t l, std::int64_t n) const {
#pragma unroll
    for (int i = 0; i < width; ++i) x[i] = number;
    if (shift_in_memory) shift.read(x, l, 0, n, 0, 1);
  }

  RIGEL_MEMBER float with_matrix(float v, float x) const { return multiplies ? v * x : v + x; }

  /// Applies all but the matrix to groups of neighbours in a row, all with the same shifts.
  template <int groups, int width>
  RIGEL_MEMBER void apply(float (&values)[groups][width], const float (&x)[width]) const {
    if (scales) detail::for_each_value(values, [&](float& v, int) __attribute__((always_inline)) { v *= factor; });
    if (shifts) detail::for_each_value(values, [&](float& v, int i) __attribute__((always_inline)) { v += x[i]; });
    activate(values);
  }
  /// The same without shifts.
  template <int groups, int width>
  RIGEL_MEMBER void apply(float (&values)[groups][width]) const {
    if (scales) detail::for_each_value(values, [&](float& v, int) __attribute__((always_inline)) { v *= factor; });
    activate(values);
  }

 private:
  template <int groups, int width>
  RIGEL_MEMBER void activate(float (&values)[groups][width]) const {
    const auto to_all = [&](const auto& use) __attribute__((always_inline)) { detail::for_each_value(values, use); };
    auto& all = reinterpret_cast<float (&)[groups * width]>(values);
    switch (activation) {
      case Kind::relu: return to_all([](float& v, int) __attribute__((always_inline)) { v = v < 0 ? 0 : v; });
      case Kind::silu: return detail::activate<Kind::silu>(all);
      case Kind::gelu: return detail::activate<Kind::gelu>(all);
      case Kind::gelu_tanh: return detail::activate<Kind::gelu_tanh>(all);
      case Kind::exponential: return to_all([&](float& v, int) __attribute__((always_inline)) { v = std::exp(v * rate); });
      default: return;
    }
  }
};

}  // namespace rigel::epilogue

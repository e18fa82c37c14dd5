// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The short form of the epilogues that layers of neural networks and kernel matrices have.
#pragma once

#include <rigel/epilogue.hpp>

#include <cmath>
#include <optional>

namespace rigel::epilogue {

/// What layers of neural networks and kernel matrices apply to each output, v ↦ φ(v·factor + shift(n)): a short form of some
/// programs, for kernels that can then do without decoding steps.
struct Layer {
  bool scales = false, shifts = false, shift_in_memory = false;
  float factor = 1, number = 0;   // number: a shift that is not in memory
  Source shift;                   // the same for all rows
  Kind activation = Kind::scale;  // scale: there is none
  float rate = 0;                 // of Kind::exponential

  /// The layer that gives what a program gives, if there is one: at most a scale() by a number, an add(), and one of relu(), silu(),
  /// gelu(), gelu_tanh() and exponential() by a number, in this order. `of_one_row`: a shift that differs by rows counts as one.
  static constexpr std::optional<Layer> of(const Program& program, bool of_one_row = false) {
    Layer layer;
    int i = 0;
    const auto next_is = [&](Kind kind) { return i < program.size() && program[i].kind == kind; };
    if (next_is(Kind::scale) && !program[i].reads_memory()) {
      layer.scales = true;
      layer.factor = static_cast<float>(program[i++].x);
    }
    if (next_is(Kind::add)) {
      const Step& step = program[i++];
      layer.shifts = true;
      layer.shift_in_memory = step.reads_memory();
      layer.number = static_cast<float>(step.x);
      if (step.reads_memory()) layer.shift = program.source(step.x_from);
      if (layer.shift.row_stride != 0 && !of_one_row) return std::nullopt;
    }
    if (next_is(Kind::relu) || next_is(Kind::silu) || next_is(Kind::gelu) || next_is(Kind::gelu_tanh) ||
        (next_is(Kind::exponential) && !program[i].reads_memory())) {
      layer.activation = program[i].kind;
      layer.rate = static_cast<float>(program[i++].x);
    }
    return i == program.size() ? std::optional(layer) : std::nullopt;
  }

  /// The shifts of outputs (l, ·, n + i).
  template <int width>
  RIGEL_MEMBER void read_shift(float (&x)[width], std::int64_t l, std::int64_t n) const {
#pragma unroll
    for (int i = 0; i < width; ++i) x[i] = number;
    if (shift_in_memory) shift.read(x, l, 0, n, 0, 1);
  }

  /// Applies it to groups of neighbours in a row, all with the same shifts.
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

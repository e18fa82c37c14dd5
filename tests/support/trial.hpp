// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One problem of the covering design: extents, the placement of elements in memory, and operands as bytes. Types are known at
// run time only, so that a hundred semirings share this code.
#pragma once

#include "random.hpp"

#include <rigel/contract.hpp>
#include <rigel/semiring_info.hpp>

#include <string>
#include <vector>

namespace support {

/// The order of a matrix in memory: rows or columns contiguous, with gaps, scattered with an odd offset, batches innermost.
enum class Order { right, left, padded_right, padded_left, scattered, interleaved };
constexpr int orders = 6;

/// Element (l, i, j) is at first + l·batch + i·row + j·column. The memory has `span` elements.
struct Placement {
  std::int64_t batches, rows, columns, first, batch, row, column, span;
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t l = 0; l < batches; ++l)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) visit(at(l, i, j));
  }
  std::int64_t at(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return first + (batches == 1 ? 0 : l * batch) + i * row + j * column;
  }
};
Placement place(Order order, std::int64_t batches, std::int64_t rows, std::int64_t columns);

enum class Share { none, a, b, both };  // which operands all batches share
/// Which NaN and infinities occur: none, one kind in one of twenty elements of A and B, or three of any kind in each operand and C.
enum class Special { none, nan, infinities, few };

struct Trial {
  std::int64_t batch, m, n, k;
  Order a, b, c;
  Share share;
  rigel::Batch index;  // the position of the views' batch index
  bool accumulate;
  int epilogue;  // 0: none, 1: one exact step, 2: two steps
  Special special;
  std::uint64_t seed;  // of the operands
  std::string text() const;
  rigel::epilogue::Program program(rigel::Join join) const;
};
/// Trials in which any two levels of any two factors occur together. Sizes are 0, 1, primes and numbers around vectors and
/// tiles.
std::vector<Trial> trials(std::uint64_t seed);

using Bytes = std::vector<unsigned char>;

struct Operands {
  Placement a, b, c;
  Bytes a_bytes, b_bytes, c_bytes;
};
/// Random operands in the semiring's domain. The bytes between elements are 0xff, which is NaN or a number far off.
/// `few_values`: from few of them, so that some are equal; else as the semiring's formula says.
Operands operands_for(const Trial& trial, const rigel::SemiringInfo& facts, bool few_values);
Operands operands_for(const Trial& trial, const rigel::SemiringInfo& facts);

/// An element as a double, or as an integer.
double real(const Bytes& bytes, rigel::Scalar type, std::int64_t at);
std::int64_t integer(const Bytes& bytes, rigel::Scalar type, std::int64_t at);
constexpr bool is_floating(rigel::Scalar s) { return s <= rigel::Scalar::f64; }

/// The number of elements of C with different values (docs/numerics.md: any NaN equals any NaN, zeros are equal).
int differences(const Placement& c, rigel::Scalar type, const Bytes& x, const Bytes& y);
/// Whether the memory between C's elements is the same.
bool same_gaps(const Placement& c, rigel::Scalar type, const Bytes& x, const Bytes& y);

/// The product by the semiring's formula (formulas.hpp), in separate loops without an epilogue, in double (`value`) or in
/// wrapping integers of the accumulator's width (`whole`); and for each output the sum of |a ⊗ b| over k, and of |C| if it
/// accumulates.
struct Model {
  std::vector<double> value, magnitude;
  std::vector<std::int64_t> whole;
};
Model model(const Trial& trial, const Operands& operands, const rigel::SemiringInfo& facts);

/// The number of outputs that differ from the model by more than a kernel's a-priori bound, or are of another kind (finite,
/// infinite, NaN). The epilogue is none, or a scale by one half.
int out_of_bound(const Trial& trial, const Operands& operands, const rigel::SemiringInfo& facts, const Model& model,
                 const Bytes& actual, const rigel::Accuracy& accuracy);

}  // namespace support

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How reduce() by strips cuts a call.
#pragma once

#include <rigel/detail/reduction.hpp>

#include <algorithm>

namespace rigel::backends::portable {

/// The strips of a call: on a host as many scores as stay in the threads' caches, on a device as many as fill it. Columns depend on N
/// and on the call's limit alone, so that a row's bits do not depend on M.
class Strips {
 public:
  Strips(const Reduction& p, bool on_device, std::size_t bytes_of_row_state)
      : problem_(p), on_device_(on_device), limit_(detail::workspace_limit(p)), state_(bytes_of_row_state) {
    const std::size_t fits =
        on_device ? device_bytes : host_bytes * static_cast<std::size_t>(std::max(p.execution.concurrency, 1));
    const std::size_t budget = std::min(fits, limit_ / 2);
    const std::int64_t most_columns = on_device && !is_weighted(p.reducer) ? device_columns : host_columns;
    shape_.columns = std::min(whole(std::max<std::int64_t>(p.n, 1)), most_columns);
    while (shape_.columns > vector && row_bytes() > budget) shape_.columns = whole(shape_.columns / 2);
    const std::int64_t all_rows = std::max<std::int64_t>(p.m, 1);
    const auto rows_that_fit = static_cast<std::int64_t>(budget / row_bytes());
    shape_.rows = rows_that_fit < all_rows ? aligned_rows(rows_that_fit) : all_rows;
    if (shape_.rows >= p.m)
      shape_.matrices =
          std::clamp<std::int64_t>(static_cast<std::int64_t>(budget / (row_bytes() * static_cast<std::size_t>(shape_.rows))),
                                   1, std::max<std::int64_t>(p.batch, 1));
    measure();
  }
  const detail::StripShape& shape() const { return shape_; }
  detail::PartNeeds needs() const { return detail::needs_of_strips(problem_, shape_, is_weighted(problem_.reducer)); }

  /// Makes strips smaller until the contraction's kernel has room, too, or none computes them.
  detail::PartNeeds fit() {
    while (true) {
      const detail::PartNeeds needs = this->needs();
      shape_.kernel_bytes = needs.bytes;
      if (!needs.status || shape_.bytes() <= limit_ || !shrink()) return needs;
    }
  }

 private:
  static constexpr std::size_t device_bytes = 32 << 20, host_bytes = 512 << 10;
  static constexpr std::int64_t vector = 64;  // scores: rows of strips begin at multiples of it, and lanes of sums divide it
  // Those of weighted reducers are host_columns everywhere: so many products are added in the scores' type.
  static constexpr std::int64_t device_columns = 16384, host_columns = 1024;
  static_assert(vector % detail::lanes == 0);
  static std::int64_t whole(std::int64_t columns) { return (columns + vector - 1) / vector * vector; }
  /// At most so many rows, but one: strips of a multiple of 16 keep the alignment of column-major operands, and those of 64 fill a device's
  /// tiles, too.
  std::int64_t aligned_rows(std::int64_t rows) const {
    const std::int64_t multiple = on_device_ && rows >= 64 ? 64 : rows >= 16 ? 16 : 1;
    return std::max<std::int64_t>(rows / multiple * multiple, 1);
  }

  std::size_t row_bytes() const { return static_cast<std::size_t>(shape_.columns) * size_of(problem_.scores.type) + state_; }
  bool shrink() {
    if (shape_.matrices > 1)
      shape_.matrices = (shape_.matrices + 1) / 2;
    else if (shape_.rows > 1)
      shape_.rows = aligned_rows((shape_.rows + 1) / 2);
    else if (shape_.columns > vector)
      shape_.columns = whole(shape_.columns / 2);
    else
      return false;
    measure();
    return true;
  }
  void measure() {
    const auto rows = static_cast<std::size_t>(shape_.matrices * shape_.rows);
    shape_.pitch = shape_.columns;
    shape_.score_bytes = detail::aligned(rows * static_cast<std::size_t>(shape_.pitch) * size_of(problem_.scores.type));
    shape_.state_bytes =
        is_weighted(problem_.reducer) ? detail::WeightedState(problem_, shape_).bytes : detail::aligned(rows * state_);
  }

  const Reduction& problem_;
  bool on_device_;
  std::size_t limit_, state_;
  detail::StripShape shape_;
};

}  // namespace rigel::backends::portable

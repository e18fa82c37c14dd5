// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pairs of rows and columns reductions take.
#pragma once

#include "calls.hpp"

#include <vector>

namespace rigel::python {

/// Intervals of rows and columns as rigel_ranges_create() takes them, and what it makes of them on each device that a call has been on. A call
/// on a GPU may read them after the last reference in Python is gone: those of GPUs are destroyed when others are made there, which waits
/// for the device.
class Ranges {
 public:
  /// `rows`, `slices` and `columns`: contiguous int64 of shapes (R, 2), (R,) and (P, 2). Raises if they do not fit.
  Ranges(nb::handle m, nb::handle n, nb::handle rows, nb::handle slices, nb::handle columns);
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;
  ~Ranges();

  /// Those on the device of an array.
  const rigel_ranges* on(const Array& array);

 private:
  struct Made {
    std::int32_t device;
    rigel_ranges* ranges;
  };
  const rigel_ranges* find(std::int32_t device) const;

  std::int64_t m_, n_;
  std::vector<std::int64_t> rows_, slices_, columns_;
  std::vector<Made> made_;
};

/// The ranges of a call, a _core.Ranges or None, on the device of an array of its arguments.
const rigel_ranges* ranges_of(nb::handle given, const Array& array);

/// Defines _core.Ranges.
void define_ranges(nb::module_& m);

}  // namespace rigel::python

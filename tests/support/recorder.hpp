// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records what Kokkos Tools see while an object of this type lives: names of kernels, regions and allocations.
#pragma once

#include <string>
#include <vector>

namespace support {

class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;

  struct Events {
    std::vector<std::string> kernels, regions, allocations, deallocations;  // in the order in which they began
    int open_kernels = 0, open_regions = 0;                                 // begun and not ended
    int fences = 0;                                                         // except those that the tools cause
  };
  /// Everything since the construction, or the last call of clear().
  Events events() const;
  void clear();
};

}  // namespace support

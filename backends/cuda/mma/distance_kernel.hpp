// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( |x_m|² + |z_n|² − 2 Σ_k x_m(k)·z_n(k) ) on tensor cores: the epilogue and the store, from sums of
// products of x and z as distance_pass.hpp prepares them. Outputs that cancel are listed and left to distance_again.hpp.
#pragma once

#include <rigel/backends/cuda/mma/distance_store.hpp>

namespace rigel::backends::mma {

template <class Shape, class Line>
inline constexpr int distance_shared_bytes =
    Shape::stages * (Shape::m + Shape::n) * 128 + Shape::warps * DistanceBuffer<Shape, Line>::bytes;

/// The epilogue and the store of distances.
template <class Line>
struct Distances {
  Guard<Line> guard;
  Rejected rejected;
  bool mirrored;

  template <class Shape>
  static constexpr int bytes = DistanceBuffer<Shape, Line>::bytes;

  /// Starts to copy the norms of a warp's rows and columns, from (l, m) and (l, n) on, as far as they exist.
  template <class Shape>
  __device__ __forceinline__ void begin(std::int64_t l, std::int64_t m, std::int64_t n, std::int64_t last_m,
                                        std::int64_t last_n, unsigned char* shared, int lane) const {
    Line* const to = reinterpret_cast<Line*>(shared);
    const auto copy = [&](Line* place, const Line* from, int count, std::int64_t left) __attribute__((always_inline)) {
#pragma unroll
      for (int e = 0; e < count; e += 32)
        if (e + lane < left && (count - e >= 32 || lane < count - e))
          arch::copy_async<sizeof(Line)>(place + e + lane, from + e + lane);
    };
    copy(to, guard.x + l * guard.batch_x + m, Shape::outputs_m, last_m - m);
    copy(to + Shape::outputs_m, guard.z + l * guard.batch_z + n, Shape::outputs_n, last_n - n);
  }

  /// Stores a warp's outputs; `number` is that of its tile.
  template <class Shape, class S, class Finish, int rows, int columns>
  __device__ __forceinline__ void store(const detail::Arguments<S, Finish>& g,
                                        const typename Guard<Line>::Sum (&sums)[rows][columns][4], std::int64_t l,
                                        std::int64_t m, std::int64_t n, unsigned number, unsigned char* shared,
                                        int lane) const {
    DistanceStore<Line, Shape, S, Finish, rows, columns>(guard, rejected, mirrored, g, sums, l, m, n, number, shared, lane)
        .run();
  }
};

}  // namespace rigel::backends::mma

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of columns, to(l,n) = Σ_m x(l,m,n), of which a layer's db are some. The rows are cut into parts, whose size follows from the numbers
// of rows and columns alone; each part is summed in ascending order by one thread, and then the parts are. So bits do not depend on the layout,
// the run or the GPU.
#pragma once

#include <rigel/call.hpp>
#include <rigel/detail/call.hpp>

#include <algorithm>
#include <cstdint>

namespace rigel::detail {

/// `x` holds f32, f16 or bf16, and so does `to`, one row for each batch of x; or one for all, which sums their rows in the order (l, m).
struct ColumnSums {
  Operand x, to;
  void* parts = nullptr;    // floats; part_bytes() of them, unless there is one part
  bool accumulate = false;  // adds to what `to` holds

  std::int64_t rows() const { return x.rows * (to.batches == x.batches ? 1 : x.batches); }
  /// The rows of a part, 32 or more, and a multiple of what a thread reads at a time.
  std::int64_t rows_of_part() const {
    const std::int64_t most = std::clamp<std::int64_t>(65536 / std::max<std::int64_t>(to.columns, 1), 64, 512);
    return std::max<std::int64_t>(32, ((rows() + most - 1) / most + 7) / 8 * 8);
  }
  std::int64_t count() const { return std::max<std::int64_t>(1, (rows() + rows_of_part() - 1) / rows_of_part()); }
  std::size_t part_bytes() const {
    return count() == 1 ? 0 : sizeof(float) * static_cast<std::size_t>(to.batches * count() * to.columns);
  }
};

/// Where sums go: rounded once, after they are added to what is there.
struct SumsOf {
  Scalar type;
  Strided<char> strides;
  bool accumulate;
  RIGEL_MEMBER void set(std::int64_t l, std::int64_t n, float sum) const {
    with_type<float>(type, strides.data, [&](auto* typed) {
      auto& place = typed[strides.offset(l, 0, n)];
      place = convert<std::remove_cvref_t<decltype(place)>>(accumulate ? static_cast<float>(place) + sum : sum);
    });
  }
};

/// Sums of a part: of four neighbouring columns where these are neighbours in memory, else of one.
template <class T, int width>
struct PartSums {
  static constexpr int at_a_time = 4, deep = 8;
  struct alignas(at_a_time * sizeof(T)) Neighbours {
    T value[at_a_time];
  };

  Strided<const T> x;
  std::int64_t rows, columns, of_part, count, groups;
  bool is_shared;  // rows of all batches
  std::int64_t all_rows;
  float* parts;  // (l, part, n), or null: the only part goes to `to`
  SumsOf to;

  RIGEL_MEMBER void operator()(std::int64_t item) const {
    const std::int64_t of_all = item / groups, n = (item - of_all * groups) * width, l = of_all / count,
                       part = of_all - l * count;
    const std::int64_t last = part * of_part + of_part < all_rows ? part * of_part + of_part : all_rows;
    const int existing = static_cast<int>(columns - n < width ? columns - n : width);
    float sums[width] = {};
    for (std::int64_t r = part * of_part; r < last;) {
      const std::int64_t batch = is_shared ? r / rows : l, m = is_shared ? r - batch * rows : r,
                         some = last - r < rows - m ? last - r : rows - m;
      add(&x.at(batch, m, n), some, existing, sums);
      r += some;
    }
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= existing) break;
      if (parts)
        parts[(l * count + part) * columns + n + i] = sums[i];
      else
        to.set(l, n + i, sums[i]);
    }
  }

 private:
  RIGEL_MEMBER static bool is_aligned(const T* p) { return reinterpret_cast<std::uintptr_t>(p) % sizeof(Neighbours) == 0; }

  RIGEL_MEMBER void add(const T* p, std::int64_t some, int existing, float (&sums)[width]) const {
    std::int64_t m = 0;
    if constexpr (width == at_a_time) {
      if (existing == width && is_aligned(p) && x.row % at_a_time == 0)
        for (; m + deep <= some; m += deep) {
          Neighbours all[deep];  // loaded before the first is added
#pragma unroll
          for (int q = 0; q < deep; ++q) all[q] = *reinterpret_cast<const Neighbours*>(p + (m + q) * x.row);
#pragma unroll
          for (int q = 0; q < deep; ++q)
#pragma unroll
            for (int i = 0; i < width; ++i) sums[i] += static_cast<float>(all[q].value[i]);
        }
    } else if (x.row == 1) {
      for (; m < some && !is_aligned(p + m); ++m) sums[0] += static_cast<float>(p[m]);
      for (; m + deep <= some; m += deep) {
        Neighbours all[deep / at_a_time];
#pragma unroll
        for (int q = 0; q < deep / at_a_time; ++q) all[q] = *reinterpret_cast<const Neighbours*>(p + m + q * at_a_time);
#pragma unroll
        for (int q = 0; q < deep; ++q) sums[0] += static_cast<float>(all[q / at_a_time].value[q % at_a_time]);
      }
    }
    for (; m < some; ++m) {
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (i < existing) sums[i] += static_cast<float>(p[m * x.row + i * x.column]);
    }
  }
};

template <class Exec, class T, int width>
void sum_parts(const Exec& exec, const ColumnSums& pass, const SumsOf& to) {
  const std::int64_t groups = (pass.to.columns + width - 1) / width;
  const PartSums<T, width> kernel{.x = strided_in<const T>(pass.x),
                                  .rows = pass.x.rows,
                                  .columns = pass.to.columns,
                                  .of_part = pass.rows_of_part(),
                                  .count = pass.count(),
                                  .groups = groups,
                                  .is_shared = pass.to.batches != pass.x.batches,
                                  .all_rows = pass.rows(),
                                  .parts = pass.count() == 1 ? nullptr : static_cast<float*>(pass.parts),
                                  .to = to};
  Kokkos::parallel_for("rigel::column_sums/parts",
                       by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(
                           exec, 0, pass.to.batches * kernel.count * groups)),
                       kernel);
}

template <class Exec>
void sum_columns(const Exec& exec, const ColumnSums& pass) {
  const SumsOf to{pass.to.type, strided_in<char>(pass.to), pass.accumulate};
  const auto of_type = [&]<class T>() {
    if (pass.x.column_stride == 1 && pass.x.columns > 1)
      sum_parts<Exec, T, PartSums<T, 1>::at_a_time>(exec, pass, to);
    else
      sum_parts<Exec, T, 1>(exec, pass, to);
  };
  if (pass.x.type == Scalar::f16)
    of_type.template operator()<half>();
  else if (pass.x.type == Scalar::bf16)
    of_type.template operator()<bfloat16>();
  else
    of_type.template operator()<float>();
  const std::int64_t count = pass.count(), columns = pass.to.columns;
  if (count == 1) return;
  const auto* const parts = static_cast<const float*>(pass.parts);
  Kokkos::parallel_for(
      "rigel::column_sums/sums",
      by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, pass.to.batches * columns)),
      KOKKOS_LAMBDA(const std::int64_t item) {
        const std::int64_t l = item / columns, n = item - l * columns;
        float sum = 0;
#pragma unroll 8
        for (std::int64_t part = 0; part < count; ++part) sum += parts[(l * count + part) * columns + n];
        to.set(l, n, sum);
      });
}

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches of contract_backward() (rigel/detail/contract_backward.hpp). All but the sums of winners is computed in double and
// rounded once. No sum is added atomically: each belongs to one thread, which adds in ascending order.
#pragma once

#include <rigel/detail/call.hpp>
#include <rigel/detail/contract_backward.hpp>
#include <rigel/detail/quotient.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rigel::detail {

template <class T>
RIGEL_FUNCTION double number_of(T x) {
  if constexpr (ShortFloat<T>)
    return static_cast<double>(static_cast<float>(x));
  else
    return static_cast<double>(x);
}

/// A matrix of f16, bf16, f32 or f64, whose type is known at run time; without data it is absent.
struct NumbersOf {
  Scalar type = Scalar::other;
  Strided<char> strides = {};  // in elements; the data are of `type`
  explicit NumbersOf(const Operand& o)
      : type(o.type), strides{static_cast<char*>(o.data), o.batch_stride, o.row_stride, o.column_stride} {}
  RIGEL_MEMBER bool exists() const { return strides.data != nullptr; }
  RIGEL_MEMBER double at(std::int64_t l, std::int64_t i, std::int64_t j) const {
    double value = 0;
    with_type<double>(type, strides.data, [&](auto* typed) { value = number_of(typed[strides.offset(l, i, j)]); });
    return value;
  }
  RIGEL_MEMBER void set(std::int64_t l, std::int64_t i, std::int64_t j, double value) const {
    with_type<double>(type, strides.data, [&](auto* typed) {
      typed[strides.offset(l, i, j)] = convert<std::remove_cvref_t<decltype(*typed)>>(value);
    });
  }
};

RIGEL_FUNCTION bool is_number(double x) { return x - x == 0; }

/// work(l, i, j) for all elements of a matrix; neighbours in memory go to neighbouring threads.
template <class Exec, class Work>
void for_each_element(const Exec& exec, const char* label, const Operand& of, const Work& work) {
  const bool along_rows = of.column_stride <= of.row_stride || of.rows <= 1;
  const std::int64_t inner = along_rows ? of.columns : of.rows, matrix = of.rows * of.columns;
  Kokkos::parallel_for(
      label, by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, of.batches * matrix)),
      KOKKOS_LAMBDA(const std::int64_t item) {
        const std::int64_t l = quotient(item, matrix), element = item - l * matrix, outer = quotient(element, inner),
                           place = element - outer * inner;
        work(l, along_rows ? outer : place, along_rows ? place : outer);
      });
}

template <class Exec>
void copy_numbers(const Exec& exec, const CopyPass& pass) {
  const NumbersOf to(pass.to), from(pass.from);
  const double value = pass.value;
  const bool accumulate = pass.accumulate;
  for_each_element(
      exec, "rigel::contract_backward/copy", pass.to,
      KOKKOS_LAMBDA(const std::int64_t l, const std::int64_t i, const std::int64_t j) {
        const double x = from.exists() ? from.at(l, i, j) : value;
        to.set(l, i, j, accumulate ? to.at(l, i, j) + x : x);
      });
}

// ---- winners ---------------------------------------------------------------------------------------------------------

/// The sums of rows. On a device a team takes `block` rows, whose winners pass through scratch memory, where the sums are, too, if they
/// fit. On CUDA a warp owns a row: its lanes add 32 neighbours at once, those of one k in turn. Elsewhere a thread owns the k of a residue
/// class. Each sum is added in ascending j. On a host a thread owns whole rows: one, or a block of them if these lie next to each other.
template <class Exec, class T>
struct ScatterWinners {
  static constexpr int most_rows = 8, lanes = 32, chunk = 128, of_thread = chunk / lanes,
                       pitch = chunk + 4;  // of a row in scratch memory, so that eight rows lie in different banks
  static constexpr std::size_t scratch_of_row = pitch * (sizeof(T) + sizeof(std::int32_t)), alignment = 48,
                               most_scratch = 40960;
  using Team = typename Kokkos::TeamPolicy<Exec>::member_type;

  Strided<const std::int32_t> winners;
  NumbersOf g, a, b;
  Strided<T> to;
  std::int64_t batches, rows, columns, k_extent;
  WinnerSlope slope;
  bool is_first, accumulate;
  int block = most_rows;
  bool in_scratch = false;

  void launch(const Exec& exec) {
    constexpr const char* label = "rigel::contract_backward/winners";
    if constexpr (runs_on_host<Exec>) {
      const std::int64_t height = winners.column == 1 || rows == 1 ? 1 : 16, blocks = (rows + height - 1) / height;
      const ScatterWinners self = *this;
      Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, batches * blocks),
                           [self, height, blocks](std::int64_t item) {
                             const std::int64_t l = item / blocks, first = (item - l * blocks) * height;
                             self.add_rows(l, first, std::min(first + height, self.rows));
                           });
    } else {
      const std::size_t row = scratch_of_row + static_cast<std::size_t>(k_extent) * sizeof(T);
      while (block > 1 && block * row + alignment > most_scratch) block /= 2;
      in_scratch = block * row + alignment <= most_scratch;
      if (!in_scratch) block = most_rows;
      const std::int64_t teams = batches * ((rows + block - 1) / block);
      if (teams == 0) return;
      Kokkos::TeamPolicy<Exec> policy(exec, static_cast<int>(std::min<std::int64_t>(teams, std::numeric_limits<int>::max())),
                                      block * lanes);
      policy.set_scratch_size(0, Kokkos::PerTeam(block * (in_scratch ? row : scratch_of_row) + alignment));
      Kokkos::parallel_for(label, by_argument(policy), *this);
    }
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    auto* const k_of =
        static_cast<std::int32_t*>(team.team_scratch(0).get_shmem_aligned(block * pitch * sizeof(std::int32_t), 16));
    auto* const g_of = static_cast<T*>(team.team_scratch(0).get_shmem_aligned(block * pitch * sizeof(T), 16));
    auto* const sums =
        in_scratch ? static_cast<T*>(team.team_scratch(0).get_shmem_aligned(block * k_extent * sizeof(T), 16)) : nullptr;
    const int rank = team.team_rank(), row = rank / lanes, own = rank % lanes;
    T* const sums_of_row = in_scratch ? sums + row * k_extent : nullptr;
    const std::int64_t blocks = (rows + block - 1) / block;
    for (std::int64_t item = team.league_rank(); item < batches * blocks; item += team.league_size()) {
      const std::int64_t l = item / blocks, first = (item - l * blocks) * block, i = first + row;
      if (i < rows && (in_scratch || !accumulate))
        for (std::int64_t k = own; k < k_extent; k += lanes)
          (in_scratch ? sums_of_row[k] : to.at(l, i, k)) = accumulate ? to.at(l, i, k) : T(0);
      const Places places = places_of(rank, l, first);
      Loaded next = load(places, 0);
      for (std::int64_t begin = 0; begin < columns; begin += chunk) {
        team.team_barrier();
#pragma unroll
        for (int t = 0; t < of_thread; ++t) {
          k_of[places.scratch[t]] = next.k[t];
          g_of[places.scratch[t]] = next.g[t];
        }
        team.team_barrier();
        if (begin + chunk < columns) next = load(places, begin + chunk);
        const int count = static_cast<int>(columns - begin < chunk ? columns - begin : chunk);
        add_chunk(count, own, k_of + row * pitch, [&](int s, std::int32_t k) {
          add(in_scratch ? sums_of_row[k] : to.at(l, i, k), l, i, begin + s, k, g_of[row * pitch + s]);
        });
      }
      if (in_scratch && i < rows)
        for (std::int64_t k = own; k < k_extent; k += lanes) to.at(l, i, k) = sums_of_row[k];
    }
  }

 private:
  /// The elements of a team's rows and first chunk that a thread reads, neighbours in memory for threads that are neighbours: where they lie
  /// in scratch memory and in the matrices, and their columns, or, where there is no such row, the number of columns.
  struct Places {
    int scratch[of_thread];
    std::int64_t winner[of_thread], gradient[of_thread], column[of_thread];
  };
  RIGEL_MEMBER Places places_of(int rank, std::int64_t l, std::int64_t first) const {
    const bool along = winners.column <= winners.row;
    Places of;
#pragma unroll
    for (int t = 0; t < of_thread; ++t) {
      const int e = rank + t * block * lanes, r = along ? e / chunk : e % block, s = along ? e % chunk : e / block;
      of.scratch[t] = r * pitch + s;
      of.winner[t] = winners.offset(l, first + r, s);
      of.gradient[t] = g.strides.offset(l, first + r, s);
      of.column[t] = first + r < rows ? s : columns;
    }
    return of;
  }
  /// What they hold, `begin` columns further on.
  struct Loaded {
    std::int32_t k[of_thread];
    T g[of_thread];
  };
  RIGEL_MEMBER Loaded load(const Places& of, std::int64_t begin) const {
    Loaded loaded;
    with_type<double>(g.type, g.strides.data, [&](const auto* typed) {
      using Given = std::remove_cvref_t<decltype(*typed)>;
#pragma unroll
      for (int t = 0; t < of_thread; ++t) {
        const bool exists = begin + of.column[t] < columns;
        loaded.k[t] = exists ? winners.data[of.winner[t] + begin * winners.column] : -1;
        const Given value = exists ? typed[of.gradient[t] + begin * g.strides.column] : Given();
        loaded.g[t] = static_cast<T>(number_of(value));
      }
    });
    return loaded;
  }
  /// add_one(s, k) for each s < count that has a winner k_of[s], those of one k in ascending order; called by all lanes of a row.
  template <class AddOne>
  RIGEL_MEMBER static void add_chunk(int count, int own, const std::int32_t* k_of, const AddOne& add_one) {
#if defined(__CUDA_ARCH__)
    constexpr unsigned all = 0xffffffffU;
    for (int first = 0; first < count; first += lanes) {
      const int s = first + own;
      const std::int32_t k = s < count ? k_of[s] : -1;
      const unsigned before = __match32_any_sync(all, static_cast<unsigned>(k)) &
                              ((1U << own) - 1);  // lanes with the same k, whose turn is earlier
      const int turns = k < 0 ? 0 : __popc(before) + 1;
      const int most = static_cast<int>(__reduce_max_sync(all, static_cast<unsigned>(turns)));
      for (int turn = 1; turn <= most; ++turn) {
        if (turn == turns) add_one(s, k);
        __syncwarp();
      }
    }
#else
    for (int s = 0; s < count; ++s)
      if (const std::int32_t k = k_of[s]; k >= 0 && k % lanes == own) add_one(s, k);
#endif
  }
  RIGEL_MEMBER void add(T& sum, std::int64_t l, std::int64_t i, std::int64_t j, std::int64_t k, T gradient) const {
    if (slope == WinnerSlope::one)
      sum += gradient;
    else
      add_slope(sum, a.at(l, i, k), b.at(l, k, j), gradient);
  }
  RIGEL_MEMBER void add_slope(T& sum, double x, double y, T gradient) const {
    switch (slope) {
      case WinnerSlope::one: break;
      case WinnerSlope::lesser:
      case WinnerSlope::larger:
        if (wins(x, y)) sum += gradient;
        break;
      case WinnerSlope::other_factor: sum += gradient * static_cast<T>(y); break;
      case WinnerSlope::sign:
        if (x > y)
          sum += gradient;
        else if (x < y)
          sum -= gradient;
        else if (x != x || y != y)
          sum += static_cast<T>(x + y);  // NaN
        break;
    }
  }
  /// Whether ⊗ took x. A NaN is taken before a number; of two equal ones A's.
  RIGEL_MEMBER bool wins(double x, double y) const {
    if (x != x || y != y) return is_first ? x != x : x != x && y == y;
    if (x == y) return is_first;
    return (slope == WinnerSlope::lesser) == (x < y);
  }
  void add_rows(std::int64_t l, std::int64_t first, std::int64_t last) const {
    if (!accumulate)
      for (std::int64_t i = first; i < last; ++i)
        for (std::int64_t k = 0; k < k_extent; ++k) to.at(l, i, k) = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = first; i < last; ++i) {
        const std::int32_t k = winners.at(l, i, j);
        if (k >= 0) add(to.at(l, i, k), l, i, j, k, static_cast<T>(g.at(l, i, j)));
      }
  }
};

// ---- exponentials ----------------------------------------------------------------------------------------------------

/// Maxima of rows. On a device a team takes a few rows, whose threads read neighbours in memory.
template <class Exec>
struct FiniteMaxima {
  static constexpr int threads = 512, block = 8, of_row = threads / block;
  static constexpr std::size_t scratch = threads * sizeof(double) + 16;
  using Team = typename Kokkos::TeamPolicy<Exec>::member_type;

  NumbersOf x;
  Strided<double> maxima;
  std::int64_t batches, rows, columns;

  void launch(const Exec& exec) const {
    constexpr const char* label = "rigel::contract_backward/maxima";
    if constexpr (runs_on_host<Exec>) {
      const FiniteMaxima self = *this;
      Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, batches * rows),
                           [self](std::int64_t item) {
                             const std::int64_t l = item / self.rows, i = item - l * self.rows;
                             self.set(l, i, self.maximum_of(l, i, 0, 1));
                           });
    } else {
      const std::int64_t teams = batches * ((rows + block - 1) / block);
      if (teams == 0) return;
      Kokkos::TeamPolicy<Exec> policy(exec, static_cast<int>(std::min<std::int64_t>(teams, std::numeric_limits<int>::max())),
                                      threads);
      policy.set_scratch_size(0, Kokkos::PerTeam(scratch));
      Kokkos::parallel_for(label, by_argument(policy), *this);
    }
  }

  RIGEL_MEMBER void operator()(const Team& team) const {
    auto* const shared = static_cast<double*>(team.team_scratch(0).get_shmem_aligned(threads * sizeof(double), 16));
    const int rank = team.team_rank(), row = along() ? rank / of_row : rank % block,
              part = along() ? rank % of_row : rank / block;
    const std::int64_t blocks = (rows + block - 1) / block;
    for (std::int64_t item = team.league_rank(); item < batches * blocks; item += team.league_size()) {
      const std::int64_t l = item / blocks, first = (item - l * blocks) * block;
      shared[row * of_row + part] = first + row < rows ? maximum_of(l, first + row, part, of_row) : least();
      team.team_barrier();
      if (rank < block && first + rank < rows) {
        double most = least();
        for (int q = 0; q < of_row; ++q) most = shared[rank * of_row + q] > most ? shared[rank * of_row + q] : most;
        set(l, first + rank, most);
      }
      team.team_barrier();
    }
  }

 private:
  RIGEL_MEMBER bool along() const { return x.strides.column <= x.strides.row; }
  RIGEL_MEMBER static constexpr double least() { return -std::numeric_limits<double>::infinity(); }
  // The type is asked outside of the loop, so that several numbers are on their way at a time.
  RIGEL_MEMBER double maximum_of(std::int64_t l, std::int64_t i, int part, int parts) const {
    double most = least();
    with_type<double>(x.type, x.strides.data, [&](const auto* typed) {
#pragma unroll 8
      for (std::int64_t j = part; j < columns; j += parts) {
        const double value = number_of(typed[x.strides.offset(l, i, j)]);
        if (is_number(value) && value > most) most = value;
      }
    });
    return most;
  }
  RIGEL_MEMBER void set(std::int64_t l, std::int64_t i, double most) const {
    maxima.at(l, i, 0) = most == least() ? 0 : most;
  }
};

template <class Exec, class T>
void exponentials(const Exec& exec, const ExponentialsPass& pass) {
  const NumbersOf x(pass.x);
  const auto maxima = strided_in<const double>(pass.maxima);
  const auto to = strided_in<T>(pass.to);
  for_each_element(
      exec, "rigel::contract_backward/exponentials", pass.to,
      KOKKOS_LAMBDA(const std::int64_t l, const std::int64_t i, const std::int64_t j) {
        const double value = x.at(l, i, j);
        to.at(l, i, j) = is_number(value) ? static_cast<T>(Kokkos::exp(value - maxima.at(l, i, 0))) : T(0);
      });
}

/// What becomes of an element (m,n) of log_plus.
enum class ExponentialCase : std::uint8_t { none, product, terms };
template <class T>
RIGEL_FUNCTION ExponentialCase exponential_case(double g, double c, double exponent) {
  using Limits = ExponentialLimits<T>;
  if (c == -std::numeric_limits<double>::infinity()) return ExponentialCase::none;
  const bool within = Kokkos::abs(exponent) <= Limits::exponent && Kokkos::abs(g) <= Limits::gradient;
  return within ? ExponentialCase::product : ExponentialCase::terms;
}

template <class Exec, class T>
void exponential_weights(const Exec& exec, const ExponentialWeightsPass& pass) {
  const NumbersOf g(pass.g), c(pass.c);
  const auto of_rows = strided_in<const double>(pass.of_rows), of_columns = strided_in<const double>(pass.of_columns);
  const auto rejected_rows = strided_in<float>(pass.rejected_rows),
             rejected_columns = strided_in<float>(pass.rejected_columns);
  const auto to = strided_in<T>(pass.to);
  for_each_element(
      exec, "rigel::contract_backward/weights", pass.to,
      KOKKOS_LAMBDA(const std::int64_t l, const std::int64_t m, const std::int64_t n) {
        const double gradient = g.at(l, m, n), value = c.at(l, m, n),
                     exponent = of_rows.at(l, m, 0) + of_columns.at(l, n, 0) - value;
        const ExponentialCase is = exponential_case<T>(gradient, value, exponent);
        to.at(l, m, n) = is == ExponentialCase::product ? static_cast<T>(gradient * Kokkos::exp(exponent)) : T(0);
        if (is == ExponentialCase::terms) {
          Kokkos::atomic_store(&rejected_rows.at(l, m, 0), 1.f);
          Kokkos::atomic_store(&rejected_columns.at(l, n, 0), 1.f);
        }
      });
}

/// Exponentials of smaller numbers are 0.
inline constexpr double least_exponent = -745.133;

template <class Exec, class T>
void exponential_result(const Exec& exec, const ExponentialResultPass& pass) {
  const NumbersOf x(pass.x), y(pass.y), g(pass.g), c(pass.c), to(pass.to);
  const auto of_rows = strided_in<const double>(pass.of_rows), of_columns = strided_in<const double>(pass.of_columns);
  const auto rejected = strided_in<const float>(pass.rejected);
  const auto sums = strided_in<const T>(pass.sums);
  const std::int64_t columns = pass.g.columns;
  const bool accumulate = pass.accumulate;
  for_each_element(
      exec, "rigel::contract_backward/result", pass.to,
      KOKKOS_LAMBDA(const std::int64_t l, const std::int64_t i, const std::int64_t k) {
        const double value = x.at(l, i, k), maximum = of_rows.at(l, i, 0);
        double sum = is_number(value) ? Kokkos::exp(value - maximum) * static_cast<double>(sums.at(l, i, k)) : 0;
        const std::int64_t count = rejected.at(l, i, 0) != 0 ? columns : 0;
        for (std::int64_t j = 0; j < count; ++j) {
          const double of = c.at(l, i, j), terms = value + y.at(l, k, j), exponent = terms - of;
          // Most exponentials are 0 if terms lie far apart, and then so is the term, whatever g is. Those that −∞ makes 0 are likewise.
          if (exponent < least_exponent || terms == -std::numeric_limits<double>::infinity()) continue;
          const double gradient = g.at(l, i, j);
          if (exponential_case<T>(gradient, of, maximum + of_columns.at(l, j, 0) - of) == ExponentialCase::terms)
            sum += gradient * Kokkos::exp(exponent);
        }
        to.set(l, i, k, accumulate ? to.at(l, i, k) + sum : sum);
      });
}

// ---- all of them -----------------------------------------------------------------------------------------------------

template <class Use>
void with_computed(Scalar type, const Use& use) {
  if (type == Scalar::f64)
    use.template operator()<double>();
  else
    use.template operator()<float>();
}

template <class Exec, class T>
void scatter_winners(const Exec& exec, const ScatterPass& pass) {
  ScatterWinners<Exec, T>{.winners = strided_in<const std::int32_t>(pass.winners),
                          .g = NumbersOf(pass.g),
                          .a = NumbersOf(pass.a),
                          .b = NumbersOf(pass.b),
                          .to = strided_in<T>(pass.to),
                          .batches = pass.to.batches,
                          .rows = pass.to.rows,
                          .columns = pass.g.columns,
                          .k_extent = pass.to.columns,
                          .slope = pass.slope,
                          .is_first = pass.is_first,
                          .accumulate = pass.accumulate}
      .launch(exec);
}

/// The launches on the spaces of a list.
template <class Spaces>
BackwardPasses backward_passes() {
  return {
      .copy = [](const Execution& e,
                 const CopyPass& pass) { with_instance(Spaces{}, e, [&](const auto& exec) { copy_numbers(exec, pass); }); },
      .scatter =
          [](const Execution& e, Scalar type, const ScatterPass& pass) {
            with_instance(Spaces{}, e, [&]<class Exec>(const Exec& exec) {
              with_computed(type, [&]<class T>() { scatter_winners<Exec, T>(exec, pass); });
            });
          },
      .maxima =
          [](const Execution& e, const MaximaPass& pass) {
            with_instance(Spaces{}, e, [&]<class Exec>(const Exec& exec) {
              FiniteMaxima<Exec>{.x = NumbersOf(pass.x),
                                 .maxima = strided_in<double>(pass.maxima),
                                 .batches = pass.maxima.batches,
                                 .rows = pass.x.rows,
                                 .columns = pass.x.columns}
                  .launch(exec);
            });
          },
      .exponentials =
          [](const Execution& e, Scalar type, const ExponentialsPass& pass) {
            with_instance(Spaces{}, e, [&]<class Exec>(const Exec& exec) {
              with_computed(type, [&]<class T>() { exponentials<Exec, T>(exec, pass); });
            });
          },
      .weights =
          [](const Execution& e, Scalar type, const ExponentialWeightsPass& pass) {
            with_instance(Spaces{}, e, [&]<class Exec>(const Exec& exec) {
              with_computed(type, [&]<class T>() { exponential_weights<Exec, T>(exec, pass); });
            });
          },
      .result =
          [](const Execution& e, Scalar type, const ExponentialResultPass& pass) {
            with_instance(Spaces{}, e, [&]<class Exec>(const Exec& exec) {
              with_computed(type, [&]<class T>() { exponential_result<Exec, T>(exec, pass); });
            });
          }};
}

}  // namespace rigel::detail

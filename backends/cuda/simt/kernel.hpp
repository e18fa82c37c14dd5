// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) on CUDA cores, for any semiring. A block computes one tile of C, a thread a
// block of outputs in registers. Slabs of A and B are prefetched to shared memory. Each output is one chain in ascending k.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/simt/steps.hpp>
#include <rigel/backends/cuda/simt/sum.hpp>

#include <limits>

namespace rigel::backends::simt {

/// Stores a tile that is inside of C straight from registers, a chunk at a time along n or along m. result(x, c) is what C
/// receives, from an accumulator and C's previous value, which is read only if `reads`.
template <bool along_n, int chunk, class Shape, class Accumulator, class Value, class Result>
__device__ __forceinline__ void copy_out(const Accumulator (&x)[Shape::outputs_m][Shape::outputs_n], Value* c,
                                         std::int64_t stride, tile::Place<Shape> place, bool reads, const Result& result) {
  constexpr int outer = along_n ? Shape::outputs_m : Shape::outputs_n, inner = along_n ? Shape::outputs_n : Shape::outputs_m;
  constexpr int outer_threads = along_n ? Shape::threads_m : Shape::threads_n;
  constexpr int inner_threads = along_n ? Shape::threads_n : Shape::threads_m;
  const int outer_place = along_n ? place.m : place.n, inner_place = along_n ? place.n : place.m;
#pragma unroll
  for (int o = 0; o < outer; ++o) {
    Value* const line = c + tile::line_of<outer_threads, chunk>(o, outer_place) * stride;
#pragma unroll
    for (int i = 0; i < inner; i += chunk) {
      Value* const at = line + tile::line_of<inner_threads, chunk>(i, inner_place);
      auto values = reads ? tile::Chunk<Value, chunk>::load(at) : tile::Chunk<Value, chunk>{};
#pragma unroll
      for (int v = 0; v < chunk; ++v) values.value[v] = result(along_n ? x[o][i + v] : x[i + v][o], values.value[v]);
      values.store(at);
    }
  }
}

/// What C receives: an output itself, its square root, or its power with an exponent below 1.
enum class Output { copy, root, power };
/// Whether a semiring's kernels have a short path for `power`: sums of powers, whose roots are distances.
template <class S>
inline constexpr bool has_roots = sums_powers<S> && std::is_same_v<result_t<S>, float>;

/// Whether its square roots are distances. rounded_root() takes them for all outputs of a thread before the store in aligned
/// tiles inside of C, rounded_roots() row by row in other tiles.
template <class S>
inline constexpr bool has_square_roots = std::is_same_v<S, l2_squared<float>>;

/// √x rounded as IEEE 754 requires, without a branch (P. Markstein, IA-64 and Elementary Functions, 2000, chapter 9): r is
/// the special-function unit's reciprocal root, y = x·r, and √x = y + (x − y²)·r/2. Small x are scaled by 2^64 to avoid
/// underflow.
__device__ __forceinline__ float rounded_root(float x) {
  const bool small = x < 0x1p-64f;
  const float scaled = x * (small ? 0x1p64f : 1.f);
  const float r = __nvvm_rsqrt_approx_ftz_f(scaled);  // inline assembly would keep loops around it from being unrolled
  const float y = scaled * r, rest = math::fma(-y, y, scaled);
  const float root = math::fma(rest, 0.5f * r, y) * (small ? 0x1p-32f : 1.f);
  return x == 0 || x == std::numeric_limits<float>::infinity() ? x : root;
}

/// The same for several numbers, in fewer instructions. Returns false if any of them is below 2^-101, as zeros are, or not
/// finite: the caller then needs rounded_root().
template <int M, int N>
__device__ __forceinline__ bool rounded_roots(float (&x)[M][N]) {
  constexpr std::uint32_t least = 0x0d000000,
                          normal = 0x7f800000 - least;  // bits of 2^-101; how many there are from there up to infinity
  bool are_normal = true;
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int j = 0; j < N; ++j) {
      are_normal &= __builtin_bit_cast(std::uint32_t, x[i][j]) - least < normal;
      const float r = __nvvm_rsqrt_approx_ftz_f(x[i][j]), y = x[i][j] * r;
      x[i][j] = math::fma(math::fma(-y, y, x[i][j]), 0.5f * r, y);
    }
  return are_normal;
}

/// Stores results in C. The three cases of Output skip the per-output dispatch on epilogue and type.
template <class S, class Finish>
class Store {
 public:
  using Accumulator = typename S::accumulator;
  using Value = result_t<S>;

  __device__ __forceinline__ explicit Store(const detail::Arguments<S, Finish>& g)
      : g_(g),
        roots_(g.finish.template power<Value>() == 0.5),
        powers_(has_roots<S> && g.finish.template power<Value>() > 0 && g.finish.template power<Value>() < 1),
        plain_(roots_ || powers_ || g.finish.template is_copy<Value>()) {}

  __device__ __forceinline__ bool is_plain() const { return plain_; }
  __device__ __forceinline__ bool is_power() const { return powers_ && !roots_; }
  /// use.template operator()<output>() with the case that applies, if is_plain().
  template <class Use>
  __device__ __forceinline__ void with_output(const Use& use) const {
    if (std::is_floating_point_v<Value> && roots_) return use.template operator()<Output::root>();
    if constexpr (has_roots<S>)
      if (powers_) return use.template operator()<Output::power>();
    return use.template operator()<Output::copy>();
  }
  /// What C receives in that case.
  template <Output output>
  __device__ __forceinline__ Value plain(const S& s, const Accumulator& x) const {
    const Value value = rigel::result(s, x);
    if constexpr (output == Output::root && has_square_roots<S>)
      return rounded_root(value);
    else if constexpr (output == Output::root && std::is_floating_point_v<Value>)
      return __builtin_elementwise_sqrt(value);
    else if constexpr (output == Output::power)
      return value < 0 ? std::numeric_limits<Value>::quiet_NaN()
                       : math::power_by_parts(value, static_cast<float>(g_.finish.template power<Value>()));
    else
      return value;
  }
  __device__ __forceinline__ void operator()(const S& s, const Accumulator& x, std::int64_t l, std::int64_t m,
                                             std::int64_t n) const {
    if constexpr (Number<Value>)
      if (plain_) [[likely]] {
        Value& to = static_cast<Value*>(g_.c)[g_.c_offset(l, m, n)];
        return with_output([&]<Output output>() __attribute__((always_inline)) { to = plain<output>(s, x); });
      }
    g_.store(s, x, l, m, n);
  }

 private:
  const detail::Arguments<S, Finish>& g_;
  bool roots_, powers_, plain_;
};

/// Whether ⊕'s identity is known to leave every value of C as it is, and ⊕ to give the same in any order: infinite
/// identities of numbers, and bits. C may then join its chains at their end.
template <class S>
constexpr bool joins_at_the_end() {
  using Accumulator = typename S::accumulator;
  if constexpr (!is_exact<S>)
    return false;
  else if constexpr (std::is_floating_point_v<Accumulator> && requires { typename std::bool_constant<(S::identity() > 0)>; })
    return S::identity() > std::numeric_limits<Accumulator>::max() ||
           S::identity() < std::numeric_limits<Accumulator>::lowest();
  else
    return std::is_same_v<S, or_and<Accumulator>> || std::is_same_v<S, xor_and<Accumulator>>;
}

/// Whether outputs that cannot be stored straight from registers are stored row by row: of semirings on floats, except in
/// kernels for aligned operands, where ptxas would allocate the main loop's registers differently: plus_times took 4 % more.
template <class S, tile::Way way>
inline constexpr bool leaves_by_rows =
    (way == tile::Way::single || way == tile::Way::shifted_k) && std::is_same_v<typename S::element, float> &&
    std::is_same_v<typename S::accumulator, float> && std::is_same_v<result_t<S>, float> &&
    tile::chunk_of<tile::stored_t<operand_t<S>>> == 4;

/// Whether steps of an epilogue are applied to several outputs of a thread at a time: of floats whose results are distances or
/// products, in tiles inside of C. (Other kernels would grow by 9 KB each.)
template <class S>
inline constexpr bool runs_steps = false;
template <class E> inline constexpr bool runs_steps<l1<E, float>> = true;
template <class E> inline constexpr bool runs_steps<l2_squared<E, float>> = true;
template <class E> inline constexpr bool runs_steps<linf<E, float>> = true;
template <class E> inline constexpr bool runs_steps<lp<E, float>> = true;
template <class E> inline constexpr bool runs_steps<plus_times<E, float>> = true;

/// Bytes of static shared memory that a block may take, and whether a tile of S fits.
inline constexpr int most_shared_bytes = 48 * 1024;
template <class S, class Shape>
inline constexpr bool fits_in_shared_memory =
    TileSum<S, Shape, Steps<OnPairs<S>>, tile::Way::single, tile::Way::single>::bytes <= most_shared_bytes;

template <class S, class Finish, class Shape, class Step, tile::Way WayA, tile::Way WayB>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    contract(const __grid_constant__ detail::Arguments<S, Finish> g, const __grid_constant__ tile::Raster raster,
             const __grid_constant__ typename Step::Parameters parameters) {
  using W = OnPairs<S>;
  using Sum = TileSum<S, Shape, Step, WayA, WayB>;
  using Accumulator = typename Sum::Accumulator;
  using Stored = typename Sum::Stored;
  using Exchange = typename Sum::Exchange;
  constexpr bool singly = Sum::singly;
  constexpr int bytes = Sum::bytes;
  static_assert(bytes <= most_shared_bytes, "cuda.simt: the semiring's types are too large for a tile in shared memory");
  __shared__ __attribute__((aligned(16))) unsigned char shared[bytes];
  Stored* const slabs = reinterpret_cast<Stored*>(shared);
  Accumulator* const exchange = reinterpret_cast<Accumulator*>(shared);
  __shared__ typename Step::Table table;

  // Computed twice, before and after the loop, so that it takes no registers in between.
  const auto origin = [&] { return raster.origin(arch::block_index(), Shape::m, outputs_of<S> * Shape::n); };
  const bool along_n = g.c_strides.column <= g.c_strides.row;
  const auto start = origin();
  const int thread = static_cast<int>(threadIdx.x);
  tile::Place<Shape> place(thread);
  const S s = g.semiring(start.batch);
  const W w{s};
  const Step step(w, parameters, table, thread, Shape::threads);

  Accumulator x[Shape::outputs_m][Shape::outputs_n];
#pragma unroll
  for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
    for (int j = 0; j < Shape::outputs_n; ++j) x[i][j] = W::identity();
  // With joins_late C joins at the store, with the same bits. (Kernels that take any operands have no registers left for
  // that.)
  constexpr bool joins_late = !singly && joins_at_the_end<S>();
  if constexpr (can_accumulate<S> && !joins_late)
    if (g.accumulate)
      Exchange::fill(x, exchange, place, thread, along_n, [&](int m, int n) {
        const auto value = [&](int column) {
          const std::int64_t i = start.m + m, j = start.n + column;
          return i < g.m && j < g.n ? g.start(s, start.batch, i, j) : typename S::accumulator(S::identity());
        };
        if constexpr (is_packed<S>)
          return paired<typename S::accumulator>(value(2 * n), value(2 * n + 1));
        else
          return value(n);
      });

  if (g.k > 0) {
    Stored* const staging = slabs + Sum::slabs_size;
    typename Sum::LoaderA a(&g.a.at(start.batch, start.m, 0), g.a.row, g.a.column, g.m - start.m, g.k, staging, threadIdx.x);
    typename Sum::LoaderB b(&g.b.at(start.batch, 0, start.n), g.b.column, g.b.row, g.n - start.n, g.k,
                            staging + Sum::LoaderA::staging_size, threadIdx.x);
    typename Sum::Operand fragment_a[2][Shape::outputs_m], fragment_b[2][Shape::outputs_n];
    if constexpr (std::is_same_v<Step, PowersOfView<S>>)
      step.choose([&](const auto& chosen) __attribute__((always_inline)) {
        TileSum<S, Shape, std::remove_cvref_t<decltype(chosen)>, WayA, WayB>::add(x, a, b, fragment_a, fragment_b, g, chosen,
                                                                                  place, slabs);
      });
    else
      Sum::add(x, a, b, fragment_a, fragment_b, g, step, place, slabs);
  }

  const auto [l, m0, n0] = origin();
  const std::int64_t rows = g.m - m0, columns = g.n - n0;  // from the tile's origin on
  using Value = typename Store<S, Finish>::Value;
  if constexpr (Number<Value> && Sum::chunk * sizeof(Value) <= 16) {
    const std::int64_t stride = along_n ? g.c_strides.row : g.c_strides.column;
    Value* const c = static_cast<Value*>(g.c) + g.c_offset(l, m0, n0);
    const bool unit = (along_n ? g.c_strides.column : g.c_strides.row) == 1;
    constexpr int chunk_bytes = Sum::chunk * outputs_of<S> * sizeof(Value);
    const bool aligned =
        (reinterpret_cast<std::uintptr_t>(c) | static_cast<std::uintptr_t>(stride) * sizeof(Value)) % chunk_bytes == 0;
    const bool roots = has_square_roots<S> && !singly && g.finish.template power<Value>() == 0.5;
    if ((roots || g.finish.template is_copy<Value>()) && unit && aligned && rows >= Shape::m &&
        columns >= outputs_of<S> * Shape::n) {
      if constexpr (is_packed<S>) {
        if (along_n) {
          copy_out<true, Sum::chunk, Shape>(x, reinterpret_cast<Accumulator*>(c), stride / 2, place, false,
                                            [](Accumulator value, Accumulator) { return value; });
        } else {
#pragma unroll
          for (int h = 0; h < 2; ++h)
            copy_out<false, Sum::chunk, Shape>(x, c + h * stride, 2 * stride, place, false,
                                               [&](Accumulator value, Value) { return half_of<Value>(value, h); });
        }
        return;
      } else {
        if constexpr (has_square_roots<S> && !singly)
          if (roots) {
#pragma unroll
            for (int i = 0; i < Shape::outputs_m; ++i)
#pragma unroll
              for (int j = 0; j < Shape::outputs_n; ++j) x[i][j] = rounded_root(x[i][j]);
          }
        const bool reads = joins_late && g.accumulate;
        const auto result = [&](const Accumulator& value, Value before) {
          if constexpr (joins_late)
            return rigel::result(s, reads ? s.add(rigel::lift(s, before), value) : value);
          else
            return rigel::result(s, value);
        };
        if (along_n)
          copy_out<true, Sum::chunk, Shape>(x, c, stride, place, reads, result);
        else
          copy_out<false, Sum::chunk, Shape>(x, c, stride, place, reads, result);
        return;
      }
    }
  }
  const Store<S, Finish> store(g);
  if constexpr (leaves_by_rows<S, WayA>) {  // not powers: their long code exists once
    using Rows = tile::WarpExchange<Accumulator, Shape, Sum::chunk>;
    static_assert(Rows::size * sizeof(Accumulator) <= Sum::slabs_size * sizeof(Stored));
    if (store.is_plain() && !store.is_power() && g.c_strides.column == 1) {
      const std::int64_t stride = g.c_strides.row;
      Value* const c = static_cast<Value*>(g.c) + g.c_offset(l, m0, n0);
      const int last_m = static_cast<int>(std::min<std::int64_t>(rows, Shape::m));
      const int last_n = static_cast<int>(std::min<std::int64_t>(columns, Shape::n));
      const bool whole = last_m == Shape::m && last_n == Shape::n;
      using View = typename Rows::View;
      const auto put = [&]<Output output, bool reads>(const View& view) __attribute__((always_inline)) {
        Value* const first = c + view.m * stride + view.n;
        const auto at = [&](int r, int q) -> Value& { return first[View::row(r) * stride + View::column(q)]; };
        const auto exists = [&](int r, int q) {
          return view.m + View::row(r) < last_m && view.n + View::column(q) < last_n;
        };
        if constexpr (!reads && (output == Output::copy || (output == Output::root && has_square_roots<S>))) {
          Value values[View::rows][View::columns];
#pragma unroll
          for (int r = 0; r < View::rows; ++r)
#pragma unroll
            for (int q = 0; q < View::columns; ++q) values[r][q] = rigel::result(s, view(r, q));
          bool done = true;
          if constexpr (output == Output::root) {
            if (!whole)  // values beyond C must not cause the slow path
#pragma unroll
              for (int r = 0; r < View::rows; ++r)
#pragma unroll
                for (int q = 0; q < View::columns; ++q)
                  if (!exists(r, q)) values[r][q] = 1;
            done = rounded_roots(values);
          }
          if (done) [[likely]] {
#pragma unroll
            for (int r = 0; r < View::rows; ++r)
#pragma unroll
              for (int q = 0; q < View::columns; ++q)
                if (exists(r, q)) at(r, q) = values[r][q];
            return;
          }
        }
        // Long code, not unrolled.
#pragma unroll 1
        for (int i = 0; i < View::rows * View::columns; ++i) {
          const int r = i / View::columns, q = i % View::columns;
          if (!exists(r, q)) continue;
          Accumulator one = view(r, q);
          if constexpr (reads) one = s.add(rigel::lift(s, at(r, q)), one);
          at(r, q) = store.template plain<output>(s, one);
        }
      };
      store.with_output([&]<Output output>() __attribute__((always_inline)) {
        if constexpr (output != Output::power) {
          if constexpr (joins_late)
            if (g.accumulate)
              return Rows::template for_each<false>(
                  x, exchange, place, thread,
                  [&](const View& view) __attribute__((always_inline)) { put.template operator()<output, true>(view); });
          // Roots in small tiles are not unrolled: so many copies would have to be fetched.
          constexpr bool unrolled_rows = output == Output::copy || (in_vectors<S> && std::is_same_v<Shape, LargeTile<S>>);
          Rows::template for_each<unrolled_rows>(
              x, exchange, place, thread,
              [&](const View& view) __attribute__((always_inline)) { put.template operator()<output, false>(view); });
        }
      });
      return;
    }
  }
  // The largest tile of operands that lie along M and N has no registers left for steps, nor for the tile's origin.
  constexpr bool tight =
      WayA == tile::Way::along_lines && WayB == tile::Way::along_lines && Shape::outputs_m * Shape::outputs_n >= 128;
  if constexpr (runs_steps<S> && !tight)
    if (!store.is_plain() && g.finish.template runs_short<float>() && rows >= Shape::m && columns >= Shape::n &&
        !(joins_late && g.accumulate))
      return Exchange::for_each(x, exchange, place, thread, [&](const auto& piece) __attribute__((always_inline)) {
        constexpr int together = Exchange::together;
        piece.template for_each_group<together>(along_n, [&](const Accumulator(&of_group)[together], int m, int n,
                                                             int apart_m, int apart_n) __attribute__((always_inline)) {
          float values[together][1];
#pragma unroll
          for (int v = 0; v < together; ++v) values[v][0] = rigel::result(s, of_group[v]);
          g.finish.run_short(values, 0, l, m0 + m, n0 + n, apart_m, apart_n);
          float* const to = static_cast<float*>(g.c) + g.c_offset(l, m0 + m, n0 + n);
          const std::int64_t apart = apart_m * g.c_strides.row + apart_n * g.c_strides.column;
#pragma unroll
          for (int v = 0; v < together; ++v) to[v * apart] = values[v][0];
        });
      });
  Exchange::for_each(x, exchange, place, thread, [&](const auto& piece) __attribute__((always_inline)) {
    if constexpr (Number<Value>)
      if (store.is_plain()) {
        Value* const c = static_cast<Value*>(g.c) + g.c_offset(l, m0, n0);
        constexpr int halves = outputs_of<S>;
        const int last_m = static_cast<int>(std::min<std::int64_t>(rows, Shape::m));
        const int last_n = static_cast<int>(std::min<std::int64_t>(columns, halves * Shape::n));
        const auto put = [&]<Output output>() __attribute__((always_inline)) {
#pragma unroll
          for (int h = 0; h < halves; ++h)
            piece.for_each(c + h * g.c_strides.column, g.c_strides.row, halves * g.c_strides.column, last_m,
                           (last_n - h + halves - 1) / halves, along_n,
                           [&](const Accumulator& value, Value& to) __attribute__((always_inline)) {
                             typename S::accumulator one;
                             if constexpr (is_packed<S>)
                               one = half_of<typename S::accumulator>(value, h);
                             else
                               one = value;
                             if constexpr (joins_late)
                               if (g.accumulate) one = s.add(rigel::lift(s, to), one);
                             to = store.template plain<output>(s, one);
                           });
        };
        return store.with_output(put);
      }
    piece.for_each(along_n, [&](const Accumulator& value, int m, int column) __attribute__((always_inline)) {
      const auto put = [&](typename S::accumulator one, int n) {
        const tile::Origin o = tight ? origin() : tile::Origin{l, m0, n0};
        if (o.m + m >= g.m || o.n + n >= g.n) return;
        if constexpr (joins_late)
          if (g.accumulate) one = s.add(g.start(s, o.batch, o.m + m, o.n + n), one);
        g.store(s, one, o.batch, o.m + m, o.n + n);
      };
      if constexpr (is_packed<S>) {
#pragma unroll 1
        for (int h = 0; h < 2; ++h) put(half_of<typename S::accumulator>(value, h), 2 * column + h);
      } else {
        put(value, column);
      }
    });
  });
}

}  // namespace rigel::backends::simt

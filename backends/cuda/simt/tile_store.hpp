// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a block stores its tile of C: straight from registers in vectors, or through shared memory in rows, with the steps of
// an epilogue applied to several outputs at a time, or one by one.
#pragma once

#include <rigel/backends/cuda/arch/index.hpp>
#include <rigel/backends/cuda/simt/store.hpp>
#include <rigel/backends/cuda/simt/sum.hpp>

#include <algorithm>
#include <limits>

namespace rigel::backends::simt {

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

/// Whether whole tiles also apply short layers in registers: of sums of products in float.
template <class S, class Finish> inline constexpr bool applies_layers = false;
template <class E> inline constexpr bool applies_layers<plus_times<E, float>, detail::ProgramFinish> = true;
/// Whether they apply this one: a scale(), an add() and a relu(), or some of them.
RIGEL_FUNCTION bool applies_in_registers(const epilogue::Layer& layer) {
  return !layer.has_matrix() && (layer.activation == epilogue::Kind::scale || layer.activation == epilogue::Kind::relu);
}

/// Stores a block's tile in one of four ways: the first that takes it.
template <class S, class Finish, class Shape, class Sum, tile::Way WayA, tile::Way WayB>
class TileStore {
  using Accumulator = typename Sum::Accumulator;
  using Registers = typename Sum::Registers;
  using Exchange = typename Sum::Exchange;
  using One = Store<S, Finish>;
  using Value = typename One::Value;
  using Short = typename S::element;                      // of C, if it receives rounded results
  static constexpr int width = outputs_of<S> * Shape::n;  // of the tile, in columns

 public:
  /// Whether C joins at the store, with the same bits. (Kernels that take any operands have no registers left for that.)
  static constexpr bool joins_late = !Sum::singly && joins_at_the_end<S>();

  __device__ __forceinline__ TileStore(const detail::Arguments<S, Finish>& g, const tile::Raster& raster, const S& s,
                                       tile::Place<Shape> place, int thread, bool along_n, void* shared)
      : g_(g),
        raster_(raster),
        s_(s),
        place_(place),
        thread_(thread),
        along_n_(along_n),
        exchange_(static_cast<Accumulator*>(shared)),
        origin_(origin(raster)),
        rows_(g.m - origin_.m),
        columns_(g.n - origin_.n) {}

  /// Where a block's tile starts.
  __device__ static tile::Origin origin(const tile::Raster& raster) {
    return raster.origin(arch::block_index(), Shape::m, width);
  }

  /// Decides how the tile goes out. (Conditions of its own function, as `bool`, would cost instructions.)
  __device__ __forceinline__ void operator()(Registers& x) const {
    // In vectors: aligned tiles inside of a C that receives results as they are, square roots, or short layers.
    if constexpr (Number<Value> && Sum::chunk * sizeof(Value) <= 16) {
      constexpr int chunk_bytes = Sum::chunk * outputs_of<S> * sizeof(Value);
      const std::int64_t stride = line_stride();
      Value* const c = tile_of_c();
      const bool unit = (along_n_ ? g_.c_strides.column : g_.c_strides.row) == 1;
      const bool aligned =
          (reinterpret_cast<std::uintptr_t>(c) | static_cast<std::uintptr_t>(stride) * sizeof(Value)) % chunk_bytes == 0;
      const bool roots = has_root_vectors && g_.finish.template power<Value>() == 0.5;
      if ((roots || takes_results_as<Value>()) && unit && aligned && rows_ >= Shape::m && columns_ >= width) {
        apply_layer(x);
        return store_vectors(x, c, stride, roots);
      }
      // Not one function for both types of C: with it the large tile of l1 of floats spilled.
      if constexpr (shortens<S>) {
        Short* const rounded = tile_of_c<Short>();
        const auto places = reinterpret_cast<std::uintptr_t>(rounded) | static_cast<std::uintptr_t>(stride) * sizeof(Short);
        const bool fits = unit && places % (Sum::chunk * sizeof(Short)) == 0;
        if (fits && takes_results_as<Short>() && rows_ >= Shape::m && columns_ >= width && !(joins_late && g_.accumulate)) {
          apply_layer(x);
          return store_rounded(x, rounded, stride);
        }
      }
    }
    const One one(g_);
    // In rows: tiles of a row-major C of any extents. Not powers: their long code exists once.
    if constexpr (leaves_by_rows<S, WayA>)
      if constexpr (rows_fit<Sum>)
        if (one.is_plain() && !one.is_power() && g_.c_strides.column == 1) return store_rows(x, one);
    // Steps of a short epilogue.
    if constexpr (tuning<S>.runs_steps && !tight && !shifted)
      if (!one.is_plain()) {
        const auto takes = [&]<class To>() {
          return g_.finish.template runs_short<To>() && (cuts_steps || (rows_ >= Shape::m && columns_ >= Shape::n)) &&
                 !(joins_late && g_.accumulate);
        };
        if (takes.template operator()<float>()) return store_steps<float>(x);
        if constexpr (shortens<S>)
          if (takes.template operator()<Short>()) return store_steps<Short>(x);
      }
    store_pieces(x, one);
  }

 private:
  static constexpr bool has_root_vectors = has_square_roots<S> && !Sum::singly;
  // Whether the slabs' memory holds what warps exchange to store rows: not those of users' transcendental semirings. Only asked of
  // semirings that leave by rows.
  template <class Of>
  static constexpr bool rows_fit = tile::WarpExchange<Accumulator, Shape, Of::chunk>::size * sizeof(Accumulator) <=
                                   Of::slabs_size * sizeof(typename Of::Stored);
  // Tiles of unaligned operands have no registers left for steps on sm_80. The largest tile of operands that lie along M and N
  // has none for the tile's origin, either.
  static constexpr bool shifted = WayA == tile::Way::shifted_k || WayB == tile::Way::shifted_k;
  static constexpr bool tight =
      WayA == tile::Way::along_lines && WayB == tile::Way::along_lines && Shape::outputs_m * Shape::outputs_n >= 128;

  // Whether tiles at C's edges apply steps, too. A functor, unlike a Program, must not get a number that is no output, as the second
  // of CutGroups::choose() is; and large tiles of l1 have no registers left for it.
  static constexpr bool cuts_steps =
      std::is_same_v<Finish, detail::ProgramFinish> && std::is_same_v<S, plus_times<Short, float>>;

  // How many rows and columns of the tile exist, C's element at its origin, and the stride from one row (`along_n`) or column
  // to the next.
  __device__ __forceinline__ int last_m() const { return static_cast<int>(std::min<std::int64_t>(rows_, Shape::m)); }
  __device__ __forceinline__ int last_n() const { return static_cast<int>(std::min<std::int64_t>(columns_, width)); }
  template <class To = Value>
  __device__ __forceinline__ To* tile_of_c() const {
    return static_cast<To*>(g_.c) + g_.c_offset(origin_.batch, origin_.m, origin_.n);
  }
  __device__ __forceinline__ std::int64_t line_stride() const { return along_n_ ? g_.c_strides.row : g_.c_strides.column; }

  // Whether C receives results as they are, or after a short layer.
  template <class To>
  __device__ __forceinline__ bool takes_results_as() const {
    if constexpr (applies_layers<S, Finish>)
      if (g_.finish.is_layer && applies_in_registers(g_.finish.layer)) return g_.finish.type == scalar_of<To>;
    return g_.finish.template is_copy<To>();
  }

  // Applies a short layer to all outputs of the thread, which exist. Its shifts may differ by rows instead (shift_by_rows()).
  __device__ __forceinline__ void apply_layer([[maybe_unused]] Registers& x) const {
    if constexpr (applies_layers<S, Finish>) {
      const epilogue::Layer& layer = g_.finish.layer;
      if (!g_.finish.is_layer) return;
      constexpr int chunk = Sum::chunk, rows = Shape::outputs_m, columns = Shape::outputs_n;
      using epilogue::detail::for_each_value;
      if (layer.scales) for_each_value(x, [&](float& value, int) __attribute__((always_inline)) { value *= layer.factor; });
      if (layer.shifts && layer.shift_in_memory && layer.shift.row_stride != 0) {
#pragma unroll
        for (int i = 0; i < rows; i += chunk) {
          float shift[chunk];
          layer.shift.read(shift, origin_.batch, origin_.m + tile::line_of<Shape::threads_m, chunk>(i, place_.m), 0, 1, 0);
#pragma unroll
          for (int v = 0; v < chunk; ++v)
#pragma unroll
            for (int j = 0; j < columns; ++j) x[i + v][j] += shift[v];
        }
      } else if (layer.shifts) {
#pragma unroll
        for (int j = 0; j < columns; j += chunk) {
          float shift[chunk];
          layer.read_shift(shift, origin_.batch, origin_.n + tile::line_of<Shape::threads_n, chunk>(j, place_.n));
#pragma unroll
          for (int v = 0; v < chunk; ++v)
#pragma unroll
            for (int i = 0; i < rows; ++i) x[i][j + v] += shift[v];
        }
      }
      if (layer.activation == epilogue::Kind::relu)
        for_each_value(x, [](float& value, int) __attribute__((always_inline)) { value = value < 0 ? 0 : value; });
    }
  }

  __device__ __forceinline__ void store_rounded(const Registers& x, Short* c, std::int64_t stride) const {
    copy_tile(x, c, stride, false,
              [&](const Accumulator& value, Short) { return detail::convert<Short>(rigel::result(s_, value)); });
  }

  __device__ __forceinline__ void store_vectors(Registers& x, Value* c, std::int64_t stride,
                                                [[maybe_unused]] bool roots) const {
    if constexpr (is_packed<S>) {
      if (along_n_) {
        copy_out<true, Sum::chunk, Shape>(x, reinterpret_cast<Accumulator*>(c), stride / 2, place_, false,
                                          [](Accumulator value, Accumulator) { return value; });
      } else {
#pragma unroll
        for (int h = 0; h < 2; ++h)
          copy_out<false, Sum::chunk, Shape>(x, c + h * stride, 2 * stride, place_, false,
                                             [&](Accumulator value, Value) { return half_of<Value>(value, h); });
      }
    } else {
      if constexpr (has_root_vectors)
        if (roots) for_each_value(x, [](Accumulator& value, int, int) { value = rounded_root(value); });
      const bool reads = joins_late && g_.accumulate;
      copy_tile(x, c, stride, reads, [&](const Accumulator& value, Value before) {
        if constexpr (joins_late)
          return rigel::result(s_, reads ? s_.add(rigel::lift(s_, before), value) : value);
        else
          return rigel::result(s_, value);
      });
    }
  }

  // copy_out() along the lines of C.
  template <class To, class Result>
  __device__ __forceinline__ void copy_tile(const Registers& x, To* c, std::int64_t stride, bool reads,
                                            const Result& result) const {
    if (along_n_)
      copy_out<true, Sum::chunk, Shape>(x, c, stride, place_, reads, result);
    else
      copy_out<false, Sum::chunk, Shape>(x, c, stride, place_, reads, result);
  }

  // The rows of C that the tile covers.
  struct Rows {
    Value* c;
    std::int64_t stride;
    int last_m, last_n;
    __device__ __forceinline__ bool whole() const { return last_m == Shape::m && last_n == Shape::n; }
  };

  __device__ __forceinline__ void store_rows(const Registers& x, const One& one) const {
    using Warps = tile::WarpExchange<Accumulator, Shape, Sum::chunk>;
    using View = typename Warps::View;
    const Rows to{tile_of_c(), g_.c_strides.row, last_m(), last_n()};
    one.with_output([&]<Output output>() __attribute__((always_inline)) {
      if constexpr (output != Output::power) {
        if constexpr (joins_late)
          if (g_.accumulate)
            return Warps::template for_each<false>(
                x, exchange_, place_, thread_,
                [&](const View& view) __attribute__((always_inline)) { put_rows<output, true>(view, to, one); });
        // Roots in small tiles are not unrolled: so many copies would have to be fetched.
        constexpr bool unrolled = output == Output::copy || (in_vectors<S> && Shape::role == tile::Role::large);
        Warps::template for_each<unrolled>(x, exchange_, place_, thread_,
                                           [&](const View& view)
                                               __attribute__((always_inline)) { put_rows<output, false>(view, to, one); });
      }
    });
  }

  // What a thread sees of a warp's rows; `reads` if C's values join.
  template <Output output, bool reads, class View>
  __device__ __forceinline__ void put_rows(const View& view, const Rows& to, const One& one) const {
    Value* const first = to.c + view.m * to.stride + view.n;
    const auto at = [&](int r, int q) -> Value& { return first[View::row(r) * to.stride + View::column(q)]; };
    const auto exists = [&](int r, int q) {
      return view.m + View::row(r) < to.last_m && view.n + View::column(q) < to.last_n;
    };
    if constexpr (!reads && (output == Output::copy || (output == Output::root && has_square_roots<S>))) {
      Value values[View::rows][View::columns];
      for_each_value(values, [&](Value& value, int r, int q) { value = rigel::result(s_, view(r, q)); });
      bool done = true;
      if constexpr (output == Output::root) {
        if (!to.whole())  // values beyond C must not cause the slow path
          for_each_value(values, [&](Value& value, int r, int q) { value = exists(r, q) ? value : 1; });
        done = rounded_roots(values);
      }
      if (done) [[likely]]
        return for_each_value(values, [&](Value value, int r, int q) {
          if (exists(r, q)) at(r, q) = value;
        });
    }
    // Long code, not unrolled.
#pragma unroll 1
    for (int i = 0; i < View::rows * View::columns; ++i) {
      const int r = i / View::columns, q = i % View::columns;
      if (!exists(r, q)) continue;
      Accumulator value = view(r, q);
      if constexpr (reads) value = s_.add(rigel::lift(s_, at(r, q)), value);
      at(r, q) = one.template plain<output>(s_, value);
    }
  }

  // Where a thread's outputs of a piece lie, as Program::run_on() takes them.
  using Groups = std::conditional_t<cuts_steps, typename Exchange::CutGroups, typename Exchange::Groups>;
  struct Outputs : Groups {
    const tile::Origin& origin;
    __device__ __forceinline__ epilogue::Place place(int group) const {
      const int number = this->first + group;
      return {origin.batch, origin.m + (this->m + number * this->next_m), origin.n + (this->n + number * this->next_n)};
    }
  };
  template <class To>
  __device__ __forceinline__ void store_steps(const Registers& x) const {
    Exchange::for_each(x, exchange_, place_, thread_, [&](const auto& piece) __attribute__((always_inline)) {
      Outputs outputs{{piece.groups(along_n_)}, origin_};
      if constexpr (cuts_steps) outputs.left = piece.count_of(outputs.m, outputs.n, last_m(), last_n(), along_n_);
      constexpr int width = Outputs::width, together = Outputs::together;
      const std::int64_t apart = outputs.apart_m * g_.c_strides.row + outputs.apart_n * g_.c_strides.column;
      const epilogue::Place at = outputs.place(0);
      To* to = static_cast<To*>(g_.c) + g_.c_offset(at.l, at.m, at.n);
#pragma unroll 1
      while (outputs.choose()) {
        const int count = outputs.count();
        float values[together][width];
        outputs.load(values);
        g_.finish.run_on(values, outputs);
#pragma unroll
        for (int t = 0; t < together; ++t)
#pragma unroll
          for (int v = 0; v < width; ++v)
            if (outputs.exists(t, v)) to[(t * width + v) * apart] = detail::convert<To>(values[t][v]);
        outputs.advance();
        to += count * apart;
      }
    });
  }

  __device__ __forceinline__ void store_pieces(const Registers& x, const One& one) const {
    Exchange::for_each(x, exchange_, place_, thread_, [&](const auto& piece) __attribute__((always_inline)) {
      if constexpr (Number<Value>)
        if (one.is_plain())
          return one.with_output([&]<Output output>() __attribute__((always_inline)) { put_plain<output>(piece, one); });
      if constexpr (shortens<S>)
        if (one.is_rounded() && !(joins_late && g_.accumulate))
          return piece.template for_each<std::is_same_v<Short, bfloat16>>(
              tile_of_c<Short>(), g_.c_strides.row, g_.c_strides.column, last_m(), last_n(), along_n_,
              [&](const Accumulator& value, Short& to) __attribute__((always_inline)) { to = one.rounded(s_, value); });
      put_any(piece);
    });
  }

  // A piece of what C receives as it is, as roots or as powers.
  template <Output output, class Piece>
  __device__ __forceinline__ void put_plain(const Piece& piece, const One& one) const {
    constexpr int halves = outputs_of<S>;
#pragma unroll
    for (int h = 0; h < halves; ++h)
      piece.template for_each<output == Output::power>(
          tile_of_c() + h * g_.c_strides.column, g_.c_strides.row, halves * g_.c_strides.column, last_m(),
          (last_n() - h + halves - 1) / halves, along_n_,
          [&](const Accumulator& of_piece, Value& to) __attribute__((always_inline)) {
            typename S::accumulator value;
            if constexpr (is_packed<S>)
              value = half_of<typename S::accumulator>(of_piece, h);
            else
              value = of_piece;
            if constexpr (joins_late)
              if (g_.accumulate) value = s_.add(rigel::lift(s_, to), value);
            to = one.template plain<output>(s_, value);
          });
  }

  // A piece with any epilogue, for C of any type.
  template <class Piece>
  __device__ __forceinline__ void put_any(const Piece& piece) const {
    piece.for_each(along_n_, [&](const Accumulator& of_piece, int m, int column) __attribute__((always_inline)) {
      const auto put = [&](typename S::accumulator value, int n) {
        const tile::Origin o = tight || shifted ? origin(raster_) : origin_;
        if (o.m + m >= g_.m || o.n + n >= g_.n) return;
        if constexpr (joins_late)
          if (g_.accumulate) value = s_.add(g_.start(s_, o.batch, o.m + m, o.n + n), value);
        g_.store(s_, value, o.batch, o.m + m, o.n + n);
      };
      if constexpr (is_packed<S>) {
#pragma unroll 1
        for (int h = 0; h < 2; ++h) put(half_of<typename S::accumulator>(of_piece, h), 2 * column + h);
      } else {
        put(of_piece, column);
      }
    });
  }

  const detail::Arguments<S, Finish>& g_;
  const tile::Raster& raster_;
  const S& s_;
  tile::Place<Shape> place_;
  int thread_;
  bool along_n_;
  Accumulator* exchange_;
  tile::Origin origin_;
  std::int64_t rows_, columns_;  // from the tile's origin on
};

}  // namespace rigel::backends::simt

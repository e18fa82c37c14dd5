// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The outlets of cuda.reduce, on a host: emulated blocks of threads take tiles of scores that a test makes, in slices of the columns, and
// must find what the reference's loop finds, bit for bit.
#if __has_include(<rigel/backends/cuda/reduce/lists.hpp>)
#include <rigel/backends/cuda/reduce/extrema.hpp>
#include <rigel/backends/cuda/reduce/lanes.hpp>
#include <rigel/backends/cuda/reduce/lists.hpp>
#include <rigel/backends/reference/reduce.hpp>

#include <tests/support/random.hpp>

#include <doctest/doctest.h>

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

namespace {

namespace reduce = rigel::backends::reduce;
using rigel::Reducer;

/// A block whose threads are coroutines. They take turns in a random order, so that a missing barrier shows.
class Block {
 public:
  class Thread {
   public:
    Thread(Block& block, int thread) : block_(block), thread_(thread) {}
    int thread() const { return thread_; }
    void sync() const { block_.all_.arrive(block_); }
    int count(bool value) const {
      sync();
      block_.counted_ = 0;
      sync();
      block_.counted_ += value;
      sync();
      return block_.counted_;
    }
    void sync_warp() const { block_.warps_[static_cast<std::size_t>(thread_ / 32)].arrive(block_); }
    unsigned ballot(bool value) const {
      unsigned& votes = block_.votes_[static_cast<std::size_t>(thread_ / 32)];
      sync_warp();
      votes = 0;
      sync_warp();
      votes |= unsigned{value} << (thread_ % 32);
      sync_warp();
      return votes;
    }
    int add_one(int* number) const { return (*number)++; }

   private:
    Block& block_;
    int thread_;
  };

  Block(int threads, std::uint64_t seed, std::function<void(const Thread&)> work)
      : work_(std::move(work)),
        random_(seed),
        coroutines_(static_cast<std::size_t>(threads)),
        stacks_(std::make_unique_for_overwrite<char[]>(stack_bytes * coroutines_.size())),
        all_{.size = threads},
        warps_(coroutines_.size() / 32, {.size = 32}),
        votes_(coroutines_.size() / 32) {
    running_ = this;
    std::vector<std::size_t> order(coroutines_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i : order) {
      ucontext_t& context = coroutines_[i].context;
      getcontext(&context);
      context.uc_stack.ss_sp = stacks_.get() + stack_bytes * i;
      context.uc_stack.ss_size = stack_bytes;
      context.uc_link = &scheduler_;
      makecontext(&context, [] { running_->start(); }, 0);
    }
    for (std::size_t ended = 0; ended < coroutines_.size();) {
      const auto first = static_cast<std::ptrdiff_t>(random_.integer(0, threads - 1));
      std::ranges::rotate(order, order.begin() + first);
      if (random_.integer(0, 1) != 0) std::ranges::reverse(order);
      ended = 0;
      for (const std::size_t i : order) {
        at_ = i;
        if (!coroutines_[i].ended) swapcontext(&scheduler_, &coroutines_[i].context);
        ended += coroutines_[i].ended;
      }
    }
  }

 private:
  static constexpr std::size_t stack_bytes = 64 * 1024;
  struct Coroutine {
    ucontext_t context;
    bool ended = false;
  };
  struct Barrier {
    int size, arrived = 0;
    unsigned generation = 0;
    void arrive(Block& block) {
      const unsigned mine = generation;
      if (++arrived == size) {
        arrived = 0;
        ++generation;
      }
      do block.yield();
      while (generation == mine);
    }
  };
  void start() {
    const std::size_t i = at_;
    work_(Thread(*this, static_cast<int>(i)));
    coroutines_[i].ended = true;
  }
  void yield() { swapcontext(&coroutines_[at_].context, &scheduler_); }

  static inline Block* running_ = nullptr;
  std::function<void(const Thread&)> work_;
  support::Random random_;
  std::vector<Coroutine> coroutines_;
  std::unique_ptr<char[]> stacks_;
  Barrier all_;
  std::vector<Barrier> warps_;
  std::vector<unsigned> votes_;
  int counted_ = 0;
  ucontext_t scheduler_{};
  std::size_t at_ = 0;
};

/// A tile of `m` × `n` scores, whose pieces have `rows` × `columns`, as Exchange makes them.
template <int Threads, int M, int N, int PieceRows, int PieceColumns>
struct Tile {
  static constexpr int threads = Threads, m = M, n = N, rows = PieceRows, columns = PieceColumns, groups = M / PieceRows,
                       most = PieceRows * PieceColumns / Threads;
};
using Tall = Tile<64, 32, 64, 16, 32>;   // four threads have a row
using Long = Tile<64, 128, 32, 64, 16>;  // one thread has a row

using Flat = Tile<64, 2, 256, 1, 256>;  // all threads have each row, as where rows are few
template <class Tile>
inline constexpr bool shares_rows = Tile::rows == 1;
/// Bytes of an outlet's shared memory.
template <class Outlet>
std::size_t shared_bytes(int count) {
  if constexpr (requires { Outlet::shared_bytes(count); })
    return Outlet::shared_bytes(count);
  else
    return Outlet::shared_bytes;
}

template <class T, Reducer reducer, class Tile>
auto outlet_of(void* shared, std::byte* lists, int count) {
  constexpr int m = Tile::m, threads = Tile::threads, groups = Tile::groups;
  if constexpr (reducer == Reducer::minimum || reducer == Reducer::maximum)
    return reduce::Extremum<T, reducer == Reducer::maximum, m, threads, groups>{static_cast<reduce::Kept<T>*>(shared)};
  else if constexpr (reducer == Reducer::count_below)
    return reduce::Counter<T, m, threads, groups>{static_cast<std::int32_t*>(shared)};
  else if constexpr (reducer == Reducer::sum)
    return reduce::Lanes<T, rigel::detail::LaneSum<T>, m, threads>{static_cast<rigel::detail::LaneSum<T>*>(shared)};
  else if constexpr (reducer == Reducer::log_sum_exp)
    return reduce::Lanes<T, rigel::detail::LaneExponentials<T>, m, threads>{
        static_cast<rigel::detail::LaneExponentials<T>*>(shared)};
  else if constexpr (shares_rows<Tile>) {
    return reduce::BestOfBlock<T, m, threads>(reducer == Reducer::largest, shared, count);
  } else {
    using Best = reduce::Best<T, m, threads>;
    return Best(reducer == Reducer::largest, shared, reinterpret_cast<typename Best::One*>(lists), count);
  }
}
constexpr bool keeps_many(Reducer r) { return r == Reducer::smallest || r == Reducer::largest; }

template <class T>
struct Scores {
  std::vector<T> values;
  std::int64_t rows, columns;
  const T* row(std::int64_t m) const { return values.data() + m * columns; }
};

struct Found {
  std::vector<double> values;
  std::vector<std::int64_t> indices;
  Found(std::int64_t rows, std::int64_t count)
      : values(static_cast<std::size_t>(rows * count), -7), indices(static_cast<std::size_t>(rows * count), -7) {}
  rigel::Reduction problem(Reducer reducer, std::int64_t count) {
    rigel::Reduction p;
    p.reducer = reducer;
    p.count = count;
    p.threshold = 0;
    p.values = {.data = values.data(), .type = rigel::Scalar::f64, .size = 8, .row_stride = count, .column_stride = 1};
    if (reducer <= Reducer::largest)
      p.indices = {.data = indices.data(), .type = rigel::Scalar::i64, .size = 8, .row_stride = count, .column_stride = 1};
    return p;
  }
};

template <class T, Reducer reducer>
Found expected(const Scores<T>& scores, int count, bool exclude_self) {
  Found found(scores.rows, count);
  const rigel::Reduction p = found.problem(reducer, count);
  const rigel::backends::reference::ReduceRow<T, reducer> row{
      .outputs = rigel::detail::ReducedOutputs::of(p),
      .below = rigel::detail::Below<T>::of(p),
      .bins = {},
      .count = count,
      .columns = {
          .parts = nullptr, .part_count = 0, .columns = scores.columns, .intervals = nullptr, .exclude_self = exclude_self}};
  std::vector<rigel::detail::Found<T>> list(static_cast<std::size_t>(count));
  for (std::int64_t m = 0; m < scores.rows; ++m) row(scores.row(m), 0, m, list.data());
  return found;
}

template <class T, Reducer reducer, class Tile>
Found actual(const Scores<T>& scores, int count, int slices, bool exclude_self) {
  Found found(scores.rows, count);
  const rigel::Reduction p = found.problem(reducer, count);
  const auto tiles = static_cast<int>((scores.columns + Tile::n - 1) / Tile::n);
  const int slice_tiles = (tiles + slices - 1) / slices;
  slices = slice_tiles == 0 ? 1 : (tiles + slice_tiles - 1) / slice_tiles;
  const auto units = static_cast<std::uint32_t>((scores.rows + Tile::m - 1) / Tile::m);
  constexpr std::size_t most_state = 16;
  const std::int64_t states = std::int64_t{units} * slices * Tile::m;
  const auto allocate = [](std::size_t bytes) { return std::vector<std::uint64_t>(bytes / 8 + 2, 0xa5a5a5a5a5a5a5a5u); };
  const auto aligned = [](std::vector<std::uint64_t>& v) {
    void* data = v.data();
    std::size_t space = v.size() * 8;
    return static_cast<std::byte*>(std::align(16, 16, data, space));
  };
  auto state_memory = allocate(static_cast<std::size_t>(states * count) * most_state);
  std::byte* const state_bytes = aligned(state_memory);
  reduce::Launch<T> launch{.outputs = rigel::detail::ReducedOutputs::of(p),
                           .below = rigel::detail::Below<T>::of(p),
                           .reducer = reducer,
                           .exclude_self = exclude_self,
                           .count = count,
                           .slices = slices,
                           .slice_tiles = slice_tiles,
                           .rows = scores.rows,
                           .row_tiles = units,
                           .first = 0,
                           .units = units,
                           .states = state_bytes};
  using Outlet = decltype(outlet_of<T, reducer, Tile>(nullptr, nullptr, count));
  constexpr std::size_t entry = sizeof(typename reduce::Best<T, 32, 32>::One);
  for (std::uint32_t unit = 0; unit < units; ++unit)
    for (int slice = 0; slice < slices; ++slice) {
      const std::int64_t m0 = std::int64_t{unit} * Tile::m, state = (std::int64_t{slice} * units + unit) * Tile::m;
      auto shared = allocate(shared_bytes<Outlet>(count));
      const Outlet outlet =
          outlet_of<T, reducer, Tile>(aligned(shared), state_bytes + static_cast<std::size_t>(state * count) * entry, count);
      Block(Tile::threads, static_cast<std::uint64_t>(unit + slice), [&](const Block::Thread& block) {
        const int t = block.thread();
        outlet.begin(block);
        for (int tile = slice * slice_tiles; tile < std::min((slice + 1) * slice_tiles, tiles); ++tile)
          for (int group = 0; group < Tile::groups; ++group)
            for (int piece = 0; piece < Tile::n; piece += Tile::columns) {
              block.sync();
              const int row = group * Tile::rows + t % Tile::rows, step = Tile::threads / Tile::rows;
              const std::int64_t m = m0 + row, n = std::int64_t{tile} * Tile::n + piece + t / Tile::rows,
                                 left = scores.columns - n;
              const auto present = static_cast<int>(std::clamp<std::int64_t>((left + step - 1) / step, 0, Tile::most));
              const reduce::Part<T, Tile::most> part{
                  .first = scores.values.data() + (m < scores.rows ? m * scores.columns + n : 0),
                  .apart = step,
                  .count = m < scores.rows ? present : 0,
                  .group = group,
                  .row = row,
                  .n = static_cast<std::int32_t>(n),
                  .step = step,
                  .self = exclude_self ? m : -1};
              if constexpr (reducer == Reducer::count_below)
                outlet.take(block, part, launch.below);
              else
                outlet.take(block, part);
            }
        const reduce::Rows at{0, m0, static_cast<int>(std::min<std::int64_t>(scores.rows - m0, Tile::m)), state};
        if constexpr (requires { outlet.end(block, launch, at, Tile::rows); })
          outlet.end(block, launch, at, Tile::rows);
        else
          outlet.end(block, launch, at);
      });
    }
  if (slices == 1) return found;
  const std::int64_t apart = std::int64_t{units} * Tile::m;
  for (std::int64_t m = 0; m < scores.rows; ++m) {
    if constexpr (reducer != Reducer::sum && reducer != Reducer::log_sum_exp) {
      constexpr int threads = keeps_many(reducer) ? 64 : 32;
      using Joined = reduce::BestOfBlock<T, 1, threads>;
      auto shared = allocate(keeps_many(reducer) ? shared_bytes<Joined>(count) : shared_bytes<Outlet>(count));
      Block(threads, static_cast<std::uint64_t>(m), [&](const Block::Thread& block) {
        if constexpr (keeps_many(reducer))
          Joined::join(block, launch, m, apart, 0, m, aligned(shared));
        else
          Outlet::join(block, launch, m, apart, 0, m, reinterpret_cast<typename Outlet::State*>(aligned(shared)));
      });
    }
  }
  return found;
}

enum class Data { ties, special, zeros, falling, rising, equal, not_numbers, of_one_thread, of_one_slice };

template <class T>
Scores<T> make(std::int64_t rows, std::int64_t columns, Data data) {
  support::Random random(static_cast<std::uint64_t>(rows + columns) + static_cast<std::uint64_t>(data));
  Scores<T> s{std::vector<T>(static_cast<std::size_t>(rows * columns)), rows, columns};
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    const auto n = static_cast<T>(i % static_cast<std::size_t>(columns));
    T& score = s.values[i];
    score = data == Data::falling       ? -n
            : data == Data::rising      ? n
            : data == Data::equal       ? T(3)
            : data == Data::zeros       ? (random.integer(0, 1) != 0 ? T(0) : -T(0))
            : data == Data::not_numbers ? std::numeric_limits<T>::quiet_NaN()
            : data == Data::of_one_thread
                ? (i % static_cast<std::size_t>(columns) % 64 == 5 ? -n : T(random.integer(0, 1000)))
            : data == Data::of_one_slice
                ? (2 * i % static_cast<std::size_t>(2 * columns) / static_cast<std::size_t>(columns) != 0 ? -n : n)
                : static_cast<T>(random.integer(-40, 40));
    if (data != Data::special) continue;
    switch (random.integer(0, 9)) {
      case 0: score = std::numeric_limits<T>::quiet_NaN(); break;
      case 1: score = std::numeric_limits<T>::infinity(); break;
      case 2: score = -std::numeric_limits<T>::infinity(); break;
      case 3: score = -T(0); break;
      case 4: score = T(0); break;
      case 5: score = std::numeric_limits<T>::denorm_min(); break;
      default: break;
    }
  }
  return s;
}

template <class T, Reducer reducer, class Tile>
void check(std::int64_t rows, std::int64_t columns, int count, Data data, bool exclude_self) {
  const Scores<T> scores = make<T>(rows, columns, data);
  const Found right = expected<T, reducer>(scores, count, exclude_self);
  constexpr bool in_one_order = reducer == Reducer::sum || reducer == Reducer::log_sum_exp;
  for (const int slices : {1, 5}) {
    if (slices > 1 && in_one_order) continue;
    CAPTURE(rigel::name(reducer));
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(count);
    CAPTURE(static_cast<int>(data));
    CAPTURE(exclude_self);
    CAPTURE(slices);
    const Found found = actual<T, reducer, Tile>(scores, count, slices, exclude_self);
    int wrong = 0;
    for (std::size_t i = 0; i < right.values.size(); ++i) {
      const double x = right.values[i], y = found.values[i];
      const bool same = x == y ? std::signbit(x) == std::signbit(y) : x != x && y != y;
      wrong += !same || right.indices[i] != found.indices[i];
    }
    CHECK(wrong == 0);
  }
}

template <class T, Reducer reducer, class Tile>
void check_all(std::initializer_list<int> counts) {
  for (const int count : counts) {
    for (const std::int64_t columns : {0, 1, 65}) check<T, reducer, Tile>(7, columns, count, Data::ties, false);
    check<T, reducer, Tile>(35, 150, count, Data::special, true);
    for (const Data data : {Data::zeros, Data::falling, Data::rising, Data::equal, Data::not_numbers})
      check<T, reducer, Tile>(9, 140, count, data, true);
    check<T, reducer, Tile>(3, 700, count, Data::special, false);
  }
}

TEST_CASE("outlets: which reducers have one") {
  for (int i = 0; i <= static_cast<int>(Reducer::monoid); ++i) {
    const auto reducer = static_cast<Reducer>(i);
    CAPTURE(rigel::name(reducer));
    CHECK(reduce::has_outlet(reducer) == (reducer <= Reducer::count_below));
  }
}

TEST_CASE("outlets: extrema") {
  check_all<float, Reducer::minimum, Tall>({1});
  check_all<float, Reducer::maximum, Long>({1});
  check_all<double, Reducer::minimum, Long>({1});
  check_all<double, Reducer::maximum, Tall>({1});
  check_all<float, Reducer::minimum, Flat>({1});
}

TEST_CASE("outlets: sums in the reference's order") {
  check_all<float, Reducer::sum, Tall>({1});
  check_all<double, Reducer::sum, Long>({1});
  check_all<float, Reducer::log_sum_exp, Long>({1});
  check_all<double, Reducer::log_sum_exp, Tall>({1});
}

TEST_CASE("outlets: counts") {
  check_all<float, Reducer::count_below, Tall>({1});
  check_all<double, Reducer::count_below, Long>({1});
  check_all<float, Reducer::count_below, Flat>({1});
}

TEST_CASE("outlets: the k best") {
  check_all<float, Reducer::smallest, Tall>({10, 128});
  check_all<float, Reducer::largest, Long>({33});
  check_all<double, Reducer::smallest, Long>({32});
  check_all<double, Reducer::largest, Tall>({3});
  check_all<float, Reducer::smallest, Flat>({10});
}

TEST_CASE("outlets: the k best of rows that all threads share") {
  for (const Data data : {Data::special, Data::zeros, Data::falling, Data::rising, Data::equal, Data::not_numbers,
                          Data::of_one_thread, Data::of_one_slice}) {
    check<float, Reducer::smallest, Flat>(2, 1100, 10, data, true);
    check<double, Reducer::largest, Flat>(1, 1100, 64, data, false);
  }
  for (const int count : {1, 65, 128}) check<float, Reducer::largest, Flat>(1, 1100, count, Data::rising, false);
}

}  // namespace

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() by strips: the scores of some rows and a chunk of columns are computed into the workspace by whatever contraction kernel
// the engine chooses for them, and then reduced into what each row keeps. Chunks go in ascending order of columns, so results do not
// depend on their size.
//
//   host     one work item takes one row. Blocks of scores are compared with what the row keeps, vectorised; only those that
//            change it are looked at one by one. The k best are a heap.
//   device   a team takes one row. The k best are a sorted list: scores that may enter it are gathered in scratch memory, sorted,
//            and merged with it when the scratch memory is full.
#pragma once

#include <rigel/backends/portable/launch.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/call.hpp>
#include <rigel/detail/heap.hpp>
#include <rigel/detail/reduction.hpp>

#include <cmath>

namespace rigel::backends::portable {

constexpr bool finds_one(Reducer r) { return r == Reducer::minimum || r == Reducer::maximum; }
constexpr bool finds_many(Reducer r) { return r == Reducer::smallest || r == Reducer::largest; }
constexpr bool counts(Reducer r) { return r == Reducer::count_below || r == Reducer::all_below; }
constexpr bool finds_largest(Reducer r) { return r == Reducer::maximum || r == Reducer::largest; }

template <class T, Reducer reducer>
using LaneOf = std::conditional_t<reducer == Reducer::log_sum_exp, detail::LaneExponentials<T>, detail::LaneSum<T>>;

/// What both ways know of a call.
template <class T, Reducer reducer>
struct Reduced {
  static constexpr bool largest = finds_largest(reducer);
  using Found = detail::Found<T>;
  using Lane = LaneOf<T, reducer>;

  detail::ReducedOutputs outputs;
  detail::Below<T> below;
  std::int64_t count;
  bool exclude_self;
  detail::Strip strip;
  const T* scores;
  std::byte* states;        // of the strip's rows,
  std::size_t state_bytes;  // so many for each
  detail::Bins bins = {};

  RIGEL_MEMBER std::int64_t matrix(std::int64_t r) const { return strip.l + r / strip.rows; }
  RIGEL_MEMBER std::int64_t row(std::int64_t r) const { return strip.m + r % strip.rows; }
  RIGEL_MEMBER const T* scores_of(std::int64_t r) const { return scores + r * strip.pitch; }
  template <class State>
  RIGEL_MEMBER State* state_of(std::int64_t r) const {
    return reinterpret_cast<State*>(states + static_cast<std::size_t>(r) * state_bytes);
  }
  /// The column of the strip that row r leaves out, or −1.
  RIGEL_MEMBER std::int64_t self_of(std::int64_t r) const {
    const std::int64_t self = row(r) - strip.n;
    return exclude_self && self >= 0 && self < strip.columns ? self : -1;
  }
  /// Whether a score may become one of the k best, of which `last` is the last, and all of which have smaller n.
  RIGEL_MEMBER static bool enters(T score, Found last) {
    return last.n < 0 || detail::value_precedes<largest>(score, last.value);
  }
};

// ---- host ------------------------------------------------------------------------------------------------------------

/// What a work item does with row r of a strip.
template <class T, Reducer reducer>
struct HostRow : Reduced<T, reducer> {
  using Base = Reduced<T, reducer>;
  using Found = typename Base::Found;
  using Lane = typename Base::Lane;
  static constexpr bool largest = Base::largest;

  static std::size_t bytes(std::int64_t count) {
    if constexpr (finds_one(reducer))
      return sizeof(Found);
    else if constexpr (finds_many(reducer))
      return sizeof(Found) * static_cast<std::size_t>(count);
    else if constexpr (counts(reducer))
      return sizeof(std::int64_t);
    else if constexpr (reducer == Reducer::histogram)
      return sizeof(std::int64_t) * static_cast<std::size_t>(count);
    else
      return sizeof(Lane) * detail::lanes;
  }

  RIGEL_FUNCTION void operator()(std::int64_t r) const {
    const std::int64_t self = this->self_of(r), columns = this->strip.columns;
    const auto in_parts = [&](const auto& take) {
      if (self < 0) return take(std::int64_t{0}, columns);
      take(std::int64_t{0}, self);
      take(self + 1, columns);
    };
    const T* const scores = this->scores_of(r);
    if constexpr (finds_one(reducer))
      find_one(r, scores, in_parts);
    else if constexpr (finds_many(reducer))
      find_many(r, scores, in_parts);
    else if constexpr (reducer == Reducer::count_below)
      count_scores(r, scores, in_parts);
    else if constexpr (reducer == Reducer::all_below)
      list_scores(r, scores, in_parts);
    else if constexpr (reducer == Reducer::histogram)
      fill_bins(r, scores, in_parts);
    else
      sum(r, scores, in_parts);
  }

 private:
  static constexpr int block = 64;  // scores that are compared at a time

  /// Calls use(n) for the scores of a part of which may_change(score) is true, and perhaps for others near them.
  template <class MayChange, class Use>
  RIGEL_FUNCTION static void for_each_change(const T* scores, std::int64_t begin, std::int64_t end,
                                             const MayChange& may_change, const Use& use) {
    std::int64_t n = begin;
    for (; n + block <= end; n += block) {
      const auto changes = may_change();
      bool any = false;
      for (int j = 0; j < block; ++j) any |= changes(scores[n + j]);
      if (!any) continue;
      for (int j = 0; j < block; ++j) use(n + j);
    }
    for (; n < end; ++n) use(n);
  }

  template <class Parts>
  RIGEL_FUNCTION void find_one(std::int64_t r, const T* scores, const Parts& in_parts) const {
    Found* const state = this->template state_of<Found>(r);
    Found best = this->strip.is_first ? Found{0, detail::no_place} : *state;
    in_parts([&](std::int64_t begin, std::int64_t end) {
      for_each_change(
          scores, begin, end,
          [&] {
            return [none = best.n < 0, value = best.value](T score) {
              return none || detail::value_replaces<largest>(score, value);
            };
          },
          [&](std::int64_t n) {
            if (best.n < 0 || detail::value_replaces<largest>(scores[n], best.value)) best = {scores[n], this->strip.n + n};
          });
    });
    if (this->strip.is_last)
      this->outputs.template store<largest>(best, this->matrix(r), this->row(r));
    else
      *state = best;
  }

  template <class Parts>
  RIGEL_FUNCTION void find_many(std::int64_t r, const T* scores, const Parts& in_parts) const {
    Found* const heap = this->template state_of<Found>(r);
    const std::int64_t size = this->count;
    if (this->strip.is_first)
      for (std::int64_t i = 0; i < size; ++i) heap[i] = {0, detail::no_place};
    in_parts([&](std::int64_t begin, std::int64_t end) {
      for_each_change(
          scores, begin, end, [&] { return [last = heap[0]](T score) { return Base::enters(score, last); }; },
          [&](std::int64_t n) {
            if (Base::enters(scores[n], heap[0]))
              detail::replace_root<largest>(heap, size, Found{scores[n], this->strip.n + n});
          });
    });
    if (!this->strip.is_last) return;
    detail::sort_heap<largest>(heap, size);
    for (std::int64_t i = 0; i < size; ++i) this->outputs.template store<largest>(heap[i], this->matrix(r), this->row(r), i);
  }

  template <class Parts>
  RIGEL_FUNCTION void count_scores(std::int64_t r, const T* scores, const Parts& in_parts) const {
    auto* const state = this->template state_of<std::int64_t>(r);
    std::int64_t counted = this->strip.is_first ? 0 : *state;
    in_parts([&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) counted += this->below(scores[n]);
    });
    if (this->strip.is_last)
      this->outputs.store(counted, this->matrix(r), this->row(r));
    else
      *state = counted;
  }

  template <class Parts>
  RIGEL_FUNCTION void fill_bins(std::int64_t r, const T* scores, const Parts& in_parts) const {
    auto* const state = this->template state_of<std::int64_t>(r);
    if (this->strip.is_first)
      for (std::int64_t i = 0; i < this->count; ++i) state[i] = 0;
    in_parts([&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const std::int64_t bin = this->bins(scores[n]);
        if (bin >= 0) ++state[bin];
      }
    });
    if (!this->strip.is_last) return;
    for (std::int64_t i = 0; i < this->count; ++i) this->outputs.store(state[i], this->matrix(r), this->row(r), i);
  }

  template <class Parts>
  RIGEL_FUNCTION void list_scores(std::int64_t r, const T* scores, const Parts& in_parts) const {
    auto* const state = this->template state_of<std::int64_t>(r);
    const detail::Range of_row = this->outputs.list_of(this->row(r));
    std::int64_t listed = this->strip.is_first ? 0 : *state;
    in_parts([&](std::int64_t begin, std::int64_t end) {
      for_each_change(
          scores, begin, end, [&] { return this->below; },
          [&](std::int64_t n) {
            if (!this->below(scores[n]) || listed >= of_row.count) return;
            this->outputs.template store<false>(Found{scores[n], this->strip.n + n}, 0, of_row.first + listed++);
          });
    });
    if (!this->strip.is_last) *state = listed;
  }

  template <class Parts>
  RIGEL_FUNCTION void sum(std::int64_t r, const T* scores, const Parts& in_parts) const {
    constexpr int lanes = detail::lanes;
    Lane* const state = this->template state_of<Lane>(r);
    Lane sums[lanes];
    if (!this->strip.is_first)
      for (int j = 0; j < lanes; ++j) sums[j] = state[j];
    in_parts([&](std::int64_t begin, std::int64_t end) {
      std::int64_t n = begin;
      for (; n < end && n % lanes != 0; ++n) sums[n % lanes].add(scores[n]);
      for (; n + lanes <= end; n += lanes)
        for (int j = 0; j < lanes; ++j) sums[j].add(scores[n + j]);
      for (; n < end; ++n) sums[n % lanes].add(scores[n]);
    });
    if (!this->strip.is_last) {
      for (int j = 0; j < lanes; ++j) state[j] = sums[j];
      return;
    }
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) sums[j].add(sums[j + half]);
    this->outputs.store(sums[0].result(), this->matrix(r), this->row(r));
  }
};

// ---- device ----------------------------------------------------------------------------------------------------------

/// What a team does with the rows of a strip. Sums have a thread for each lane.
template <class T, Reducer reducer>
struct TeamRows : Reduced<T, reducer> {
  using Base = Reduced<T, reducer>;
  using Found = typename Base::Found;
  using Lane = typename Base::Lane;
  static constexpr bool largest = Base::largest;
  static constexpr int threads = finds_many(reducer) ? 128 : detail::lanes;
  static constexpr int each = 4;         // scores that a thread tests between two barriers
  static constexpr int capacity = 1024;  // scores that wait to be merged: a power of two
  static_assert(capacity >= 2 * threads * each || !finds_many(reducer));

  using Shared = std::conditional_t<finds_one(reducer) || finds_many(reducer), Found,
                                    std::conditional_t<counts(reducer), std::int64_t, Lane>>;
  static constexpr int alignment = 16;
  static constexpr std::size_t shared_bytes = sizeof(Shared) * (finds_many(reducer) ? capacity : threads);
  static constexpr std::size_t scratch = shared_bytes + 2 * alignment;  // room for a counter after it, and for alignment

  static std::size_t bytes(std::int64_t count) {
    if constexpr (finds_many(reducer))  // which of two lists is the row's, and the lists
      return alignment + 2 * sizeof(Found) * static_cast<std::size_t>(count);
    else
      return HostRow<T, reducer>::bytes(count);
  }

  template <class Team>
  RIGEL_FUNCTION void operator()(const Team& team) const {
    auto* const shared = static_cast<Shared*>(team.team_scratch(0).get_shmem_aligned(shared_bytes + alignment, alignment));
    if (shared == nullptr) return;  // as in tiles.hpp
    auto* const waiting = reinterpret_cast<int*>(reinterpret_cast<std::byte*>(shared) + shared_bytes);
    for (std::int64_t r = team.league_rank(); r < this->strip.row_count(); r += team.league_size()) {
      if constexpr (finds_one(reducer))
        find_one(team, r, shared);
      else if constexpr (finds_many(reducer))
        find_many(team, r, shared, waiting);
      else if constexpr (reducer == Reducer::count_below)
        count_scores(team, r, shared);
      else if constexpr (reducer == Reducer::all_below)
        list_scores(team, r, shared);
      else if constexpr (reducer == Reducer::histogram)
        fill_bins(team, r);
      else
        sum(team, r, shared);
      team.team_barrier();
    }
  }

 private:
  /// Joins the threads' values: thread 0 has the result in shared[0].
  template <class Team, class Join>
  RIGEL_FUNCTION static void join(const Team& team, Shared* shared, const Join& join_two) {
    team.team_barrier();
    for (int half = threads / 2; half > 0; half /= 2) {
      const int rank = team.team_rank();
      if (rank < half) shared[rank] = join_two(shared[rank], shared[rank + half]);
      team.team_barrier();
    }
  }

  template <class Team>
  RIGEL_FUNCTION void find_one(const Team& team, std::int64_t r, Shared* shared) const {
    const T* const scores = this->scores_of(r);
    const std::int64_t self = this->self_of(r);
    Found best{0, detail::no_place};
    for (std::int64_t n = team.team_rank(); n < this->strip.columns; n += threads)
      if (n != self) best = detail::extremum<largest>(best, Found{scores[n], this->strip.n + n});
    shared[team.team_rank()] = best;
    join(team, shared, [](Found x, Found y) { return detail::extremum<largest>(x, y); });
    if (team.team_rank() != 0) return;
    Found* const state = this->template state_of<Found>(r);
    best = this->strip.is_first ? shared[0] : detail::extremum<largest>(*state, shared[0]);
    if (this->strip.is_last)
      this->outputs.template store<largest>(best, this->matrix(r), this->row(r));
    else
      *state = best;
  }

  template <class Team>
  RIGEL_FUNCTION void count_scores(const Team& team, std::int64_t r, Shared* shared) const {
    const T* const scores = this->scores_of(r);
    const std::int64_t self = this->self_of(r);
    std::int64_t counted = 0;
    for (std::int64_t n = team.team_rank(); n < this->strip.columns; n += threads)
      if (n != self) counted += this->below(scores[n]);
    shared[team.team_rank()] = counted;
    join(team, shared, [](std::int64_t x, std::int64_t y) { return x + y; });
    if (team.team_rank() != 0) return;
    auto* const state = this->template state_of<std::int64_t>(r);
    counted = shared[0] + (this->strip.is_first ? 0 : *state);
    if (this->strip.is_last)
      this->outputs.store(counted, this->matrix(r), this->row(r));
    else
      *state = counted;
  }

  template <class Team>
  RIGEL_FUNCTION void fill_bins(const Team& team, std::int64_t r) const {
    const T* const scores = this->scores_of(r);
    const std::int64_t self = this->self_of(r);
    auto* const state = this->template state_of<std::int64_t>(r);
    if (this->strip.is_first)
      for (std::int64_t i = team.team_rank(); i < this->count; i += threads) state[i] = 0;
    team.team_barrier();
    for (std::int64_t n = team.team_rank(); n < this->strip.columns; n += threads) {
      const std::int64_t bin = n == self ? -1 : this->bins(scores[n]);
      if (bin >= 0) Kokkos::atomic_add(state + bin, std::int64_t{1});
    }
    team.team_barrier();
    if (!this->strip.is_last) return;
    for (std::int64_t i = team.team_rank(); i < this->count; i += threads)
      this->outputs.store(state[i], this->matrix(r), this->row(r), i);
  }

  /// A thread's place in the list is how many threads of smaller n have a score to list.
  template <class Team>
  RIGEL_FUNCTION void list_scores(const Team& team, std::int64_t r, Shared* shared) const {
    const int rank = team.team_rank();
    const T* const scores = this->scores_of(r);
    const std::int64_t self = this->self_of(r);
    auto* const state = this->template state_of<std::int64_t>(r);
    const detail::Range of_row = this->outputs.list_of(this->row(r));
    std::int64_t listed = this->strip.is_first ? 0 : *state;
    for (std::int64_t first = 0; first < this->strip.columns; first += threads) {
      const std::int64_t n = first + rank;
      const bool lists = n < this->strip.columns && n != self && this->below(scores[n]);
      shared[rank] = lists;
      team.team_barrier();
      std::int64_t before = 0, all = 0;
      for (int j = 0; j < threads; ++j) {
        before += j < rank ? shared[j] : 0;
        all += shared[j];
      }
      if (lists && listed + before < of_row.count)
        this->outputs.template store<false>(Found{scores[n], this->strip.n + n}, 0, of_row.first + listed + before);
      listed += all;
      team.team_barrier();
    }
    if (!this->strip.is_last && rank == 0) *state = listed;
  }

  template <class Team>
  RIGEL_FUNCTION void sum(const Team& team, std::int64_t r, Shared* shared) const {
    const T* const scores = this->scores_of(r);
    const std::int64_t self = this->self_of(r);
    Lane* const state = this->template state_of<Lane>(r) + team.team_rank();
    Lane mine;
    if (!this->strip.is_first) mine = *state;
    for (std::int64_t n = team.team_rank(); n < this->strip.columns; n += threads)
      if (n != self) mine.add(scores[n]);
    if (!this->strip.is_last) {
      *state = mine;
      return;
    }
    shared[team.team_rank()] = mine;
    join(team, shared, [](Lane x, Lane y) {
      x.add(y);
      return x;
    });
    if (team.team_rank() == 0) this->outputs.store(shared[0].result(), this->matrix(r), this->row(r));
  }

  template <class Team>
  RIGEL_FUNCTION void find_many(const Team& team, std::int64_t r, Found* gathered, int* waiting) const {
    const int rank = team.team_rank();
    const T* const scores = this->scores_of(r);
    const std::int64_t self = this->self_of(r), size = this->count, columns = this->strip.columns;
    auto* const which = this->template state_of<std::int64_t>(r);
    auto* const lists = reinterpret_cast<Found*>(reinterpret_cast<std::byte*>(which) + alignment);
    std::int64_t current = this->strip.is_first ? 0 : *which;
    if (this->strip.is_first)
      for (std::int64_t i = rank; i < size; i += threads) lists[i] = {0, detail::no_place};
    if (rank == 0) *waiting = 0;
    team.team_barrier();
    for (std::int64_t n = 0; n < columns; n += threads * each) {
      const Found last = lists[current * size + size - 1];
      for (int e = 0; e < each; ++e) {
        const std::int64_t at = n + e * threads + rank;
        if (at < columns && at != self && Base::enters(scores[at], last))
          gathered[Kokkos::atomic_fetch_add(waiting, 1)] = {scores[at], this->strip.n + at};
      }
      team.team_barrier();
      const int gathered_count = *waiting;
      team.team_barrier();
      const bool is_end = n + threads * each >= columns;
      if (gathered_count > 0 && (is_end || gathered_count > capacity - threads * each)) {
        merge(team, lists + current * size, lists + (1 - current) * size, size, gathered, gathered_count);
        current = 1 - current;
        if (rank == 0) *waiting = 0;
        team.team_barrier();
      }
    }
    if (this->strip.is_last) {
      for (std::int64_t i = rank; i < size; i += threads)
        this->outputs.template store<largest>(lists[current * size + i], this->matrix(r), this->row(r), i);
    } else if (rank == 0) {
      *which = current;
    }
  }

  /// How many elements of an ordered list precede x.
  RIGEL_FUNCTION static std::int64_t before(const Found* list, std::int64_t size, Found x) {
    std::int64_t begin = 0, end = size;
    while (begin < end) {
      const std::int64_t middle = (begin + end) / 2;
      if (detail::precedes<largest>(list[middle], x))
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }

  /// to = the first `size` of what `from` and the gathered scores hold, in order.
  template <class Team>
  RIGEL_FUNCTION static void merge(const Team& team, const Found* from, Found* to, std::int64_t size, Found* gathered,
                                   int count) {
    sort(team, gathered, count);
    const int rank = team.team_rank();
    for (std::int64_t i = rank; i < size; i += threads) {
      const std::int64_t place = i + before(gathered, count, from[i]);
      if (place < size) to[place] = from[i];
    }
    for (int i = rank; i < count; i += threads) {
      const std::int64_t place = i + before(from, size, gathered[i]);
      if (place < size) to[place] = gathered[i];
    }
    team.team_barrier();
  }

  /// Sorts by bitonic merges (K. E. Batcher, Sorting networks and their applications, 1968), padded to a power of two.
  template <class Team>
  RIGEL_FUNCTION static void sort(const Team& team, Found* list, int count) {
    const int rank = team.team_rank();
    int size = 1;
    while (size < count) size *= 2;
    for (int i = count + rank; i < size; i += threads) list[i] = {0, detail::no_place};
    team.team_barrier();
    for (int run = 2; run <= size; run *= 2)
      for (int distance = run / 2; distance > 0; distance /= 2) {
        for (int pair = rank; pair < size / 2; pair += threads) {
          const int low = pair / distance * 2 * distance + pair % distance, high = low + distance;
          const bool ascends = (low & run) == 0;
          const Found x = list[low], y = list[high];
          if (ascends ? detail::precedes<largest>(y, x) : detail::precedes<largest>(x, y)) {
            list[low] = y;
            list[high] = x;
          }
        }
        team.team_barrier();
      }
  }
};

// ---- the kernel ------------------------------------------------------------------------------------------------------

template <class T, Reducer reducer, bool by_teams>
using RowsOf = std::conditional_t<by_teams, TeamRows<T, reducer>, HostRow<T, reducer>>;

/// Bytes that a row keeps from one chunk to the next.
template <bool by_teams>
std::size_t state_bytes(const Reduction& p) {
  std::size_t bytes = 0;
  detail::with_scores(p, [&]<class T>() {
    detail::with_reducer(p, [&]<Reducer reducer>() { bytes = RowsOf<T, reducer, by_teams>::bytes(p.count); });
  });
  return bytes;
}

/// Reduces a strip.
template <class T, Reducer reducer, class Exec>
static void reduce_strip(const Exec& exec, const std::string& label, const Reduced<T, reducer>& all) {
  if constexpr (detail::runs_on_host<Exec>) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    const HostRow<T, reducer> work{all};
    Kokkos::parallel_for(label, detail::by_argument(Policy(exec, 0, all.strip.row_count())), work);
  } else {
    using Work = TeamRows<T, reducer>;
    const Work work{all};
    launch<Kokkos::LaunchBounds<Work::threads>>(exec, label, work, all.strip.row_count(), Work::threads, Work::scratch);
  }
}

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

/// Predicted seconds of the reducing launches.
inline double reducing_seconds(const Reduction& p, const detail::StripShape& s) {
  const auto number = [](std::int64_t i) { return static_cast<double>(i); };
  const double scores = detail::scores_of(p), rows = number(s.matrices) * number(s.rows);
  const double strips = p.ranges
                            ? detail::strips_of(p, s)
                            : std::ceil(number(p.batch) / number(s.matrices)) * std::ceil(number(p.m) / number(s.rows)) *
                                  std::max(std::ceil(number(p.n) / number(s.columns)), 1.);
  const bool exponentials = p.reducer == Reducer::log_sum_exp;
  if (p.execution.space == Space::cuda) {
    // A launch; a row's thread waits for memory at each of its scores; bytes, of which the L2 cache delivers so many.
    constexpr double launch = 5e-6, wait = 4e-7, bytes_per_second = 3e12;
    const double steps = number(s.columns) / (detail::keeps_many(p) ? 512 : detail::lanes);
    const double waves = std::ceil(rows / (32. * std::max(p.execution.multiprocessors, 1)));
    return strips * std::max(launch, waves * steps * wait * (exponentials ? 2 : 1) / (detail::keeps_many(p) ? 1 : 8)) +
           scores * number(static_cast<std::int64_t>(size_of(p.scores.type))) / bytes_per_second;
  }
  constexpr double launches = 2, exponential = 20, score = 1.2;  // the latter in cycles of a thread
  const Cpu& cpu = cpu_of(p.execution);
  return strips * launches * cpu.launch_seconds +
         cpu.seconds(scores * (exponentials ? exponential : score) / std::max(p.execution.concurrency, 1));
}

/// Strips for all semirings and reducers, on the spaces of the list. `chains`: with scores that have the reference's bits, for calls that ask
/// for these.
template <class Spaces, bool chains>
struct StripsKernel {
  /// The problem as this kernel computes it.
  static Reduction form(const Reduction& p) {
    Reduction q = p;
    if (chains) q.require = q.require | Promise::reference_bits;
    return q;
  }

  static Strips strips_of(const Reduction& p) {
    std::size_t bytes = 0;
    bool on_device = false;
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec&) {
      on_device = !detail::runs_on_host<Exec>;
      bytes = state_bytes<!detail::runs_on_host<Exec>>(p);
    });
    return {p, on_device, bytes};
  }

  static Status supports(const Kernel<Reduction>&, const Reduction& p) {
    if (chains && !covers(p.require, Promise::reference_bits))
      return {Decline::promises, "serves calls that require reference_bits"};
    if (is_weighted(p.reducer)) return {Decline::other, "reduces scores alone, not rows of V"};
    if (p.reducer == Reducer::monoid) return {Decline::other, "has no functors of yours"};
    const Reduction q = form(p);
    return strips_of(q).needs().status;
  }

  static double cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
    const Reduction q = form(p);
    Strips strips = strips_of(q);
    const detail::PartNeeds needs = strips.fit();
    const detail::StripShape& s = strips.shape();
    plan.keep(s);
    if (!needs.status) return std::numeric_limits<double>::infinity();
    return needs.seconds * detail::strips_of(p, s) + reducing_seconds(p, s);
  }

  static WorkspaceSize workspace(const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return {.bytes = plan.get<detail::StripShape>().bytes()};
  }

  static void run(const Kernel<Reduction>& kernel, const Reduction& given, const Plan& plan, const Workspace& workspace) {
    const Reduction p = form(given);
    const auto shape = plan.get<detail::StripShape>();
    const std::string label = "rigel::reduce/" + kernel.info.name;
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      detail::with_scores(p, [&]<class T>() {
        detail::with_reducer(p, [&]<Reducer reducer>() {
          Reduced<T, reducer> all{.outputs = detail::ReducedOutputs::of(p),
                                  .below = detail::Below<T>::of(p),
                                  .count = p.count,
                                  .exclude_self = p.exclude_self,
                                  .strip = {},
                                  .scores = static_cast<const T*>(workspace.data),
                                  .states = static_cast<std::byte*>(workspace.data) + shape.score_bytes,
                                  .state_bytes = RowsOf<T, reducer, !detail::runs_on_host<Exec>>::bytes(p.count),
                                  .bins = detail::Bins::of(p)};
          detail::for_each_strip(p, shape, workspace, [&](const detail::Strip& strip) {
            all.strip = strip;
            reduce_strip(exec, label, all);
          });
        });
      });
    });
  }

  static Kernel<Reduction> make(const char* variant) {
    Kernel<Reduction> k;
    k.info.family = "portable";
    k.info.variant = variant;
    k.info.name = k.info.family + '.' + variant;
    k.info.spaces = detail::bits_of(Spaces{});
    k.info.promises = Promise::repeatable | Promise::batch_invariant;
    if (chains) k.info.promises = k.info.promises | Promise::reference_bits;
    k.supports = supports;
    k.cost = cost;
    k.workspace = workspace;
    k.run = run;
    return k;
  }
};

}  // namespace rigel::backends::portable

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of a strip on a device: a team takes one row. The k best are a sorted list: scores that may enter it are gathered in scratch memory,
// sorted, and merged with it when the scratch memory is full.
#pragma once

#include <rigel/backends/portable/strip_rows.hpp>

#include <Kokkos_Core.hpp>

namespace rigel::backends::portable {

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
      return Base::bytes(count);
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

}  // namespace rigel::backends::portable

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of a strip on a host: one work item takes one row. Blocks of scores are compared with what the row keeps, vectorised; only those
// that change it are looked at one by one. The k best are a heap.
#pragma once

#include <rigel/backends/portable/strip_rows.hpp>
#include <rigel/detail/heap.hpp>

namespace rigel::backends::portable {

/// What a work item does with row r of a strip.
template <class T, Reducer reducer>
struct HostRow : Reduced<T, reducer> {
  using Base = Reduced<T, reducer>;
  using Found = typename Base::Found;
  using Lane = typename Base::Lane;
  static constexpr bool largest = Base::largest;

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

}  // namespace rigel::backends::portable

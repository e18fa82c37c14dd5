// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() of weighted reducers, by strips as in reduce.hpp: the scores of some rows and a chunk of columns are computed into the workspace,
//
//   weights    for a softmax, each score becomes exp(score − maximum) in place, the maximum being that of its row so far
//   products   the strip times the chunk's rows of V, by the contraction kernel that the engine chooses for plus_times
//   joining    the products are added to the row's sums in double, which a greater maximum has multiplied by exp(former − maximum)
//
// V's rows are converted to the scores' type first if they have another one.
#pragma once

#include <rigel/backends/portable/reduce.hpp>

namespace rigel::backends::portable {

/// What the launches of a strip know of a call.
template <class T>
struct WeightedStrip {
  using Row = detail::WeightedState::Row;

  detail::ReducedOutputs outputs;
  detail::WeightReader v;
  std::int64_t count;
  bool exclude_self;
  detail::Strip strip;
  T* scores;
  Row* rows;
  double* sums;
  const T* partial;

  RIGEL_MEMBER std::int64_t matrix(std::int64_t r) const { return strip.l + r / strip.rows; }
  RIGEL_MEMBER std::int64_t row(std::int64_t r) const { return strip.m + r % strip.rows; }
  /// The column of the strip that row r leaves out, or −1.
  RIGEL_MEMBER std::int64_t self_of(std::int64_t r) const {
    const std::int64_t self = row(r) - strip.n;
    return exclude_self && self >= 0 && self < strip.columns ? self : -1;
  }
};

// ---- weights ---------------------------------------------------------------------------------------------------------

/// The score of n = m becomes 0.
template <class T>
struct LeaveOutSelf : WeightedStrip<T> {
  RIGEL_FUNCTION void operator()(std::int64_t r) const {
    const std::int64_t self = this->self_of(r);
    if (self >= 0) this->scores[r * this->strip.pitch + self] = 0;
  }
};

/// Makes weights of a row's scores, by one thread, or by a team whose threads are the lanes of the sum.
template <class T>
struct SoftmaxRow : WeightedStrip<T> {
  using Row = typename WeightedStrip<T>::Row;
  static constexpr int threads = detail::lanes;
  static constexpr int alignment = 16;
  static constexpr std::size_t shared_bytes = sizeof(double) * threads;
  static constexpr std::size_t scratch = shared_bytes + alignment;

  /// On a host.
  RIGEL_FUNCTION void operator()(std::int64_t r) const {
    T* const scores = this->scores + r * this->strip.pitch;
    const std::int64_t columns = this->strip.columns, self = this->self_of(r);
    T most = begin(r, self);
    for (std::int64_t n = 0; n < columns; ++n) most = scores[n] > most ? scores[n] : most;
    double sums[threads] = {};
    for (std::int64_t n = 0; n < columns; ++n) {
      scores[n] = detail::softmax_weight(scores[n], most);
      sums[n % threads] += static_cast<double>(scores[n]);
    }
    for (int half = threads / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
    end(r, most, sums[0]);
  }

  /// On a device.
  template <class Team>
    requires requires(const Team& team) { team.team_barrier(); }
  RIGEL_FUNCTION void operator()(const Team& team) const {
    auto* const shared = static_cast<double*>(team.team_scratch(0).get_shmem_aligned(shared_bytes, alignment));
    if (shared == nullptr) return;  // as in tiles.hpp
    const int rank = team.team_rank();
    for (std::int64_t r = team.league_rank(); r < this->strip.row_count(); r += team.league_size()) {
      T* const scores = this->scores + r * this->strip.pitch;
      const std::int64_t columns = this->strip.columns, self = this->self_of(r);
      const T before = begin(r, self < 0 || self % threads == rank ? self : -1);
      T most = before;
      for (std::int64_t n = rank; n < columns; n += threads) most = scores[n] > most ? scores[n] : most;
      shared[rank] = static_cast<double>(most);
      join(team, shared, [](double x, double y) { return x > y ? x : y; });
      most = static_cast<T>(shared[0]);
      team.team_barrier();
      double sum = 0;
      for (std::int64_t n = rank; n < columns; n += threads) {
        scores[n] = detail::softmax_weight(scores[n], most);
        sum += static_cast<double>(scores[n]);
      }
      shared[rank] = sum;
      join(team, shared, [](double x, double y) { return x + y; });
      if (rank == 0) end(r, most, shared[0]);
      team.team_barrier();
    }
  }

 private:
  /// The maximum of the row's former chunks. The score of n = m becomes −∞.
  RIGEL_FUNCTION T begin(std::int64_t r, std::int64_t self) const {
    constexpr T least = -std::numeric_limits<T>::infinity();
    if (self >= 0) this->scores[r * this->strip.pitch + self] = least;
    return this->strip.is_first ? least : static_cast<T>(this->rows[r].maximum);
  }
  RIGEL_FUNCTION void end(std::int64_t r, T most, double total) const {
    Row& row = this->rows[r];
    const auto maximum = static_cast<double>(most);
    row.factor = this->strip.is_first ? 0 : detail::softmax_factor(row.maximum, maximum);
    row.total = (this->strip.is_first ? 0 : row.total * row.factor) + total;
    row.maximum = maximum;
  }
  /// All threads find the result in shared[0].
  template <class Team, class Join>
  RIGEL_FUNCTION static void join(const Team& team, double* shared, const Join& join_two) {
    team.team_barrier();
    for (int half = threads / 2; half > 0; half /= 2) {
      const int rank = team.team_rank();
      if (rank < half) shared[rank] = join_two(shared[rank], shared[rank + half]);
      team.team_barrier();
    }
  }
};

// ---- joining ---------------------------------------------------------------------------------------------------------

/// Adds the products of a chunk to the sums of row r and column d; after the last chunk, stores the result.
template <class T, bool softmax>
struct JoinProducts : WeightedStrip<T> {
  RIGEL_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t r = i / this->count, d = i % this->count;
    double sum = this->strip.columns > 0 ? static_cast<double>(this->partial[i]) : 0;
    // The row that is left out weighs 0, but 0 times what is not finite is NaN.
    if (sum != sum && this->self_of(r) >= 0) sum = without_self(r, d);
    if (!this->strip.is_first) sum += softmax ? this->sums[i] * this->rows[r].factor : this->sums[i];
    if (!this->strip.is_last)
      this->sums[i] = sum;
    else
      this->outputs.store(softmax ? sum / total_of(r) : sum, this->matrix(r), this->row(r), d);
  }

 private:
  RIGEL_FUNCTION double total_of(std::int64_t r) const {
    return this->strip.is_first && this->strip.columns == 0 ? 0 : this->rows[r].total;
  }
  RIGEL_FUNCTION double without_self(std::int64_t r, std::int64_t d) const {
    const T* const weights = this->scores + r * this->strip.pitch;
    const std::int64_t self = this->self_of(r);
    double sum = 0;
    for (std::int64_t n = 0; n < this->strip.columns; ++n)
      if (n != self) sum += static_cast<double>(weights[n]) * this->v(this->matrix(r), this->strip.n + n, d);
    return sum;
  }
};

/// V's rows of a chunk in the scores' type, by rows.
template <class T>
struct ConvertRows {
  detail::WeightReader v;
  T* to;
  std::int64_t first_matrix, first_row, rows, columns;
  RIGEL_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t of_matrix = rows * columns, in_matrix = i % of_matrix;
    to[i] = static_cast<T>(v(first_matrix + i / of_matrix, first_row + in_matrix / columns, in_matrix % columns));
  }
};

// ---- the kernel ------------------------------------------------------------------------------------------------------

// Of internal linkage for the reason given at launch() in launch.hpp.
template <class Exec, class Work>
static void for_each_index(const Exec& exec, const std::string& label, std::int64_t count, const Work& work) {
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, detail::by_argument(Policy(exec, 0, count)), work);
}

/// Makes weights of a strip's scores, multiplies V by them and joins the products.
template <bool softmax, class T, class Exec>
static void reduce_weighted_strip(const Exec& exec, const std::string& label, const Reduction& p,
                                  const detail::StripShape& shape, const WeightedStrip<T>& all, T* v, void* memory) {
  const detail::Strip& strip = all.strip;
  if (strip.columns > 0) {
    if constexpr (softmax) {
      using Work = SoftmaxRow<T>;
      const Work work{all};
      if constexpr (detail::runs_on_host<Exec>)
        for_each_index(exec, label, strip.row_count(), work);
      else
        launch<Kokkos::LaunchBounds<Work::threads>>(exec, label, work, strip.row_count(), Work::threads, Work::scratch);
    } else if (all.exclude_self) {
      for_each_index(exec, label, strip.row_count(), LeaveOutSelf<T>{all});
    }
    if (detail::WeightedState::converts(p)) {
      const bool one = p.weights.batches == 1;
      const ConvertRows<T> convert{all.v, v, one ? 0 : strip.l, strip.n, strip.columns, p.count};
      for_each_index(exec, label, (one ? 1 : strip.matrices) * strip.columns * p.count, convert);
    }
    detail::run_part(detail::products_of_strip(p, {strip.l, strip.matrices}, {strip.m, strip.rows}, {strip.n, strip.columns},
                                               shape, memory));
  }
  for_each_index(exec, label, strip.row_count() * p.count, JoinProducts<T, softmax>{all});
}

/// Strips for weighted reducers of all semirings, on the spaces of the list.
template <class Spaces>
struct WeightedStripsKernel {
  static Strips strips_of(const Reduction& p) {
    bool on_device = false;
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec&) { on_device = !detail::runs_on_host<Exec>; });
    return {p, on_device, detail::WeightedState::bytes_of_row(p)};
  }

  static Status supports(const Kernel<Reduction>&, const Reduction& p) {
    if (!is_weighted(p.reducer)) return {Decline::other, "serves weighted reducers"};
    return strips_of(p).needs().status;
  }

  static double cost(const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
    Strips strips = strips_of(p);
    const detail::PartNeeds needs = strips.fit();
    const detail::StripShape& s = strips.shape();
    plan.keep(s);
    if (!needs.status) return std::numeric_limits<double>::infinity();
    // Seconds of a strip's other launches, and of a score that becomes a weight.
    const bool device = p.execution.space == Space::cuda;
    const double launches = device ? 1.5e-5 : 4e-6;
    const double weights = p.reducer != Reducer::softmax_weighted ? 0 : device ? 5e-12 : 3e-9 / p.execution.concurrency;
    return detail::strips_of(p, s) * (needs.seconds + launches) + weights * detail::scores_of(p);
  }

  static WorkspaceSize workspace(const Kernel<Reduction>&, const Reduction&, const Plan& plan) {
    return {.bytes = plan.get<detail::StripShape>().bytes()};
  }

  static void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
    const auto shape = plan.get<detail::StripShape>();
    const detail::WeightedState state(p, shape);
    const std::string label = "rigel::reduce/" + kernel.info.name;
    auto* const of_state = static_cast<std::byte*>(workspace.data) + shape.score_bytes;
    const auto run_on = [&]<class T, class Exec>(std::type_identity<T>, const Exec& exec) {
      WeightedStrip<T> all{.outputs = detail::ReducedOutputs::of(p),
                           .v = detail::WeightReader::of(p.weights),
                           .count = p.count,
                           .exclude_self = p.exclude_self,
                           .strip = {},
                           .scores = static_cast<T*>(workspace.data),
                           .rows = reinterpret_cast<typename WeightedStrip<T>::Row*>(of_state + state.rows),
                           .sums = reinterpret_cast<double*>(of_state + state.sums),
                           .partial = reinterpret_cast<const T*>(of_state + state.partial)};
      auto* const v = reinterpret_cast<T*>(of_state + state.v);
      detail::for_each_strip(p, shape, workspace, [&](const detail::Strip& strip) {
        all.strip = strip;
        if (p.reducer == Reducer::softmax_weighted)
          reduce_weighted_strip<true>(exec, label, p, shape, all, v, workspace.data);
        else
          reduce_weighted_strip<false>(exec, label, p, shape, all, v, workspace.data);
      });
    };
    detail::with_instance(Spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      if (p.scores.type == Scalar::f32)
        run_on(std::type_identity<float>{}, exec);
      else
        run_on(std::type_identity<double>{}, exec);
    });
  }

  static Kernel<Reduction> make() {
    Kernel<Reduction> k;
    k.info.family = "portable";
    k.info.variant = "weighted_strips";
    k.info.name = "portable.weighted_strips";
    k.info.spaces = detail::bits_of(Spaces{});
    k.info.promises = Promise::repeatable | Promise::batch_invariant;
    k.supports = supports;
    k.cost = cost;
    k.workspace = workspace;
    k.run = run;
    return k;
  }
};

/// Calls add(kernel) for the kernels of this family.
template <class Spaces, class Add>
void add_reductions(const Add& add) {
  add(StripsKernel<Spaces, false>::make("strips"));
  add(StripsKernel<Spaces, true>::make("strips_of_chains"));
  add(WeightedStripsKernel<Spaces>::make());
}

}  // namespace rigel::backends::portable

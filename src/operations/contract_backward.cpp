// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contract_backward() on operands. What is summed over k, m or n is a product, a sum of differences or a sum of winners; passes before and
// after it are those of rigel/detail/contract_backward_passes.hpp. A factor that serves all batches gets the sum of their gradients, one
// batch after the other.
#include "chosen.hpp"
#include "driver.hpp"

#include <rigel/detail/contract_backward_passes.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace rigel::detail {
namespace {

constexpr std::uintptr_t nominal_address = workspace_alignment;  // stands in for memory that is aligned as workspaces are

// One batch of an operand, or what serves all.
Operand batch_of(Operand o, std::int64_t l) {
  if (o.batches == 1) return o;
  o.data = static_cast<std::byte*>(o.data) + l * o.batch_stride * static_cast<std::int64_t>(o.size);
  o.batches = 1;
  o.batch_stride = 0;
  return o;
}
bool has_elements(const Operand& o) { return o.batches > 0 && o.rows > 0 && o.columns > 0; }

// What a driver does, in order: problems of the engine, and passes of its own.
class Steps {
 public:
  virtual ~Steps() = default;
  virtual void problem(const Contraction& p) = 0;
  virtual void problem(const Gradient& p) = 0;
  virtual bool runs() const { return false; }
};
class Bytes : public Steps {
 public:
  std::size_t most = 0;
  std::vector<Chosen> chosen;  // for each contraction, in order
  void problem(const Contraction& p) override {
    chosen.push_back(choose(p));
    most = std::max(most, chosen.back().bytes);
  }
  void problem(const Gradient& p) override {
    if (!p.is_empty()) most = std::max(most, workspace_of(p));
  }
};
class Run : public Steps {
 public:
  explicit Run(const std::vector<Chosen>& chosen) : next_(chosen.begin()) {}
  void problem(const Contraction& p) override { detail::run(*next_++, p); }
  void problem(const Gradient& p) override { rigel::run(p); }
  bool runs() const override { return true; }

 private:
  std::vector<Chosen>::const_iterator next_;
};
class Listing : public Steps {
 public:
  std::string text;
  void problem(const Contraction& p) override { add(p, p.c); }
  void problem(const Gradient& p) override { add(p, p.out); }

 private:
  void add(const auto& p, const Operand& written) {
    if (!p.is_empty()) text += std::string(written.argument) + ": " + listing(p);
  }
};

class Driver {
 public:
  explicit Driver(const ContractBackward& call) : call_(call), given_(std::exchange(call_.call.workspace, {})) {
    batches_ = call_.dc.batches;
    check();
    if (!call_.passes.copy) call_.passes = backward_passes<compiled_spaces>();
    place(nominal_address);
    if (call_.wide_products && call_.call.precision == Precision::automatic && !is_empty()) choose_type();
  }

  std::size_t bytes() {
    if (is_empty()) return 0;
    Bytes all;
    walk(all);
    inner_.bytes = all.most;
    chosen_ = std::move(all.chosen);
    return own_bytes_ + all.most;
  }
  std::string explanation() {
    std::string text = "contract_backward, " + std::to_string(bytes()) + " bytes of workspace\n";
    if (is_empty()) return text + "nothing to compute\n";
    Listing all;
    walk(all);
    Contraction any;
    static_cast<Call&>(any) = call_.call;
    return text + all.text + legend(any);
  }
  void run() {
    const std::size_t needed = bytes();  // before anything is enqueued: throws if a part has no kernel
    if (is_empty()) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::contract_backward");
    const auto pointer = [](const std::optional<Operand>& o) { return o ? &*o : nullptr; };
    const CallMemory memory(call_.call.function, call_.call.execution, given_, needed,
                            {&call_.a, &call_.b, &call_.c, &call_.dc, pointer(call_.da), pointer(call_.db)});
    place(memory.address());
    Run all(chosen_);
    walk(all);
  }

 private:
  // ---- checks --------------------------------------------------------------------------------------------------------

  bool is_empty() const {
    const auto wants = [](const std::optional<Operand>& o) { return o && has_elements(*o); };
    return !wants(call_.da) && !wants(call_.db);
  }
  void require_shape(const Operand& o, std::int64_t rows, std::int64_t columns, std::int64_t batches, const char* names,
                     const Operand& match) const {
    if (o.rows == rows && o.columns == columns && o.batches == batches) return;
    refuse(call_.call, describe_argument(o, " is ") + ", expected " +
                           (batches != 1 ? std::to_string(batches) + 'x' : std::string()) + std::to_string(rows) + 'x' +
                           std::to_string(columns) + " (" + names + ") to match " + describe_argument(match));
  }
  void check() const {
    const Operand &a = call_.a, &b = call_.b, &dc = call_.dc;
    require_extent(call_.call, b, "rows", b.rows, a.columns, a, "the columns of ");
    require_extent(call_.call, dc, "rows", dc.rows, a.rows, a);
    require_extent(call_.call, dc, "columns", dc.columns, b.columns, b);
    require_batches(call_.call, a, dc);
    require_batches(call_.call, b, dc);
    if (call_.c.size > 0) require_shape(call_.c, dc.rows, dc.columns, dc.batches, "M x N", dc);
    std::vector<const Operand*> inputs = {&a, &b, &dc}, results;
    if (call_.rule == BackwardRule::exponentials) inputs.push_back(&call_.c);
    if (call_.da) {
      require_shape(*call_.da, a.rows, a.columns, a.batches, "as A", a);
      results.push_back(&*call_.da);
    }
    if (call_.db) {
      require_shape(*call_.db, b.rows, b.columns, b.batches, "as B", b);
      results.push_back(&*call_.db);
    }
    if (call_.rule == BackwardRule::winners && a.columns > std::numeric_limits<std::int32_t>::max())
      refuse(call_.call, describe_argument(a, " is ") + ", expected at most 2147483647 columns");
    for (const Operand* o : inputs)
      if (has_elements(*o)) require_data(call_.call, *o);
    for (const Operand* o : results) {
      if (!has_elements(*o)) continue;
      require_data(call_.call, *o);
      require_distinct(call_.call, *o);
      for (const Operand* input : inputs)
        if (has_elements(*input)) require_disjoint(call_.call, *o, *input);
      for (const Operand* other : results) {
        if (other == o) break;
        if (has_elements(*other)) require_disjoint(call_.call, *o, *other);
      }
    }
  }

  // ---- memory --------------------------------------------------------------------------------------------------------

  // A matrix in the workspace, by rows.
  Operand placed(Scalar type, std::int64_t batches, std::int64_t rows, std::int64_t columns, const char* argument) {
    const Operand like{.type = type, .size = size_of(type), .batches = batches};
    const std::int64_t pitch = columns == 1 ? 1 : (columns + 31) / 32 * 32;
    Operand o;
    next_ = place_matrices(o, next_, like, rows, columns, pitch, true);
    o.argument = argument;
    return o;
  }
  Operand widened(const Operand& o) {
    return o.type == factor_type() ? o : placed(factor_type(), o.batches, o.rows, o.columns, o.argument);
  }
  // The type of the operands of products, sums of differences, and winners.
  Scalar factor_type() const {
    return call_.products ? call_.products->element : call_.winners ? call_.winners->element : call_.computed;
  }
  // Where the sums of a result go: into itself, unless they would be rounded to 16 bits on the way.
  Operand sums_of(const Operand& result) {
    const bool adds = call_.rule == BackwardRule::differences || call_.rule == BackwardRule::winners ||
                      (result.batches == 1 && batches_ > 1);
    if (!adds || result.type == call_.computed) return result;
    return placed(call_.computed, result.batches, result.rows, result.columns, result.argument);
  }

  // A part of the marks: numbers for each batch.
  Operand marks(std::int64_t first, std::int64_t count) const {
    Operand o = rejected_;
    o.data = static_cast<float*>(rejected_.data) + first;
    o.batches = batches_;
    o.rows = count;
    o.columns = 1;
    o.batch_stride = batches_ == 1 ? 0 : count;
    o.row_stride = 1;
    return o;
  }

  void place(std::uintptr_t base) {
    next_ = base;
    const Operand &a = call_.a, &b = call_.b, &dc = call_.dc;
    if (call_.da) sums_of_a_ = sums_of(*call_.da);
    if (call_.db) sums_of_b_ = sums_of(*call_.db);
    const auto largest_sums = [&] {
      const auto of = [&](const std::optional<Operand>& result) {
        return result ? (result->batches == batches_ ? batches_ : 1) * result->rows * ((result->columns + 31) / 32 * 32) : 0;
      };
      return std::max(of(call_.da), of(call_.db));
    };
    switch (call_.rule) {
      case BackwardRule::products:
        a_ = widened(a);
        b_ = widened(b);
        dc_ = widened(dc);
        break;
      case BackwardRule::differences:
        a_ = widened(a);
        b_ = widened(b);
        dc_ = widened(dc);
        factors_ = placed(call_.computed, 1, 1, std::max(dc.rows, dc.columns), "the factor");
        break;
      case BackwardRule::winners:
        a_ = widened(a);
        b_ = widened(b);
        dc_ = dc;
        winners_ = placed(Scalar::i32, batches_, dc.rows, dc.columns, "the winning k");
        break;
      case BackwardRule::exponentials:
        weights_ = placed(call_.computed, batches_, dc.rows, dc.columns, "weights");
        if (call_.db) exp_a_ = placed(call_.computed, a.batches, a.rows, a.columns, "exponentials of A");
        if (call_.da) exp_b_ = placed(call_.computed, b.batches, b.rows, b.columns, "exponentials of B");
        maxima_a_ = placed(Scalar::f64, a.batches, a.rows, 1, "maxima");
        maxima_b_ = placed(Scalar::f64, b.batches, b.columns, 1, "maxima");
        rejected_ = placed(Scalar::f32, 1, 1, batches_ * (a.rows + b.columns), "marks");
        rejected_a_ = marks(0, a.rows);
        rejected_b_ = marks(batches_ * a.rows, b.columns);
        exp_sums_ = placed(call_.computed, 1, 1, largest_sums(), "sums");
        break;
    }
    own_bytes_ = next_ - base;
    inner_.data = reinterpret_cast<void*>(next_);
  }

  // Exponentials of floats are multiplied in double if that takes at most four times as long: of terms that lie far apart, fewer are then
  // summed one by one.
  void choose_type() {
    const ContractBackward of_floats = call_;
    const double seconds = seconds_of_product();
    call_.products = call_.wide_products;
    call_.computed = Scalar::f64;
    place(nominal_address);
    if (seconds_of_product() <= 4 * seconds) return;
    call_ = of_floats;
    place(nominal_address);
  }
  double seconds_of_product() const {
    Contraction p;
    if (call_.da)
      p = product(weights_, transpose(exp_b_), found_of(*call_.da, batches_), false);
    else if (call_.db)
      p = product(transpose(exp_a_), weights_, found_of(*call_.db, batches_), false);
    return p.is_empty() ? 0 : predicted_seconds(select(p), p);
  }
  // The sums of exponentials of a result, or of one of its batches.
  Operand found_of(const Operand& result, std::int64_t batches) const {
    Operand found = exp_sums_;
    const Operand like{.type = found.type, .size = found.size, .batches = result.batches == batches_ ? batches : 1};
    place_matrices(found, reinterpret_cast<std::uintptr_t>(exp_sums_.data), like, result.rows, result.columns,
                   (result.columns + 31) / 32 * 32, true);
    found.argument = result.argument;
    return found;
  }

  // ---- steps ---------------------------------------------------------------------------------------------------------

  void walk(Steps& steps) {
    switch (call_.rule) {
      case BackwardRule::products:
      case BackwardRule::differences: widen(steps); break;
      case BackwardRule::winners:
        widen(steps);
        find_winners(steps);
        break;
      case BackwardRule::exponentials: exponentiate(steps); break;
    }
    if (call_.da) add_up(steps, *call_.da, sums_of_a_, true);
    if (call_.db) add_up(steps, *call_.db, sums_of_b_, false);
  }

  // The sums of a result: of all batches at a time, or of one after the other.
  void add_up(Steps& steps, const Operand& result, const Operand& sums, bool of_a) {
    if (!has_elements(result)) return;
    const bool is_itself = sums.data == result.data;
    bool accumulate = is_itself && call_.accumulate;
    if (result.batches == batches_) {
      add_batches(steps, sums, of_a, accumulate, -1);
    } else {
      for (std::int64_t l = 0; l < batches_; ++l) {
        add_batches(steps, sums, of_a, accumulate, l);
        accumulate = true;
      }
      if (batches_ == 0) {
        if (steps.runs() && !call_.accumulate) call_.passes.copy(call_.call.execution, {.to = result, .from = {}});
        return;
      }
    }
    if (!is_itself && steps.runs())
      call_.passes.copy(call_.call.execution, {.to = result, .from = sums, .accumulate = call_.accumulate});
  }

  // dA, or dB as that of the transposed product, of batch l; of all if l is −1.
  void add_batches(Steps& steps, const Operand& sums, bool of_a, bool accumulate, std::int64_t l) {
    const auto part = [&](const Operand& o) { return l < 0 ? o : batch_of(o, l); };
    const auto turned = [&](const Operand& o) { return of_a ? part(o) : transpose(part(o)); };
    const Operand to = of_a ? sums : transpose(sums);
    const Execution& execution = call_.call.execution;
    switch (call_.rule) {
      case BackwardRule::products:
        // dA = dC·Bᵀ, dB = Aᵀ·dC
        steps.problem(of_a ? product(part(dc_), transpose(part(b_)), sums, accumulate)
                           : product(transpose(part(a_)), part(dc_), sums, accumulate));
        break;
      case BackwardRule::differences:
        steps.problem(differences(turned(dc_), turned(of_a ? b_ : a_), turned(of_a ? a_ : b_), to, accumulate));
        break;
      case BackwardRule::winners:
        if (steps.runs())
          call_.passes.scatter(execution, call_.computed,
                               {.winners = turned(winners_),
                                .g = turned(call_.dc),
                                .a = turned(of_a ? call_.a : call_.b),
                                .b = turned(of_a ? call_.b : call_.a),
                                .to = to,
                                .slope = call_.slope,
                                .is_first = of_a,
                                .accumulate = accumulate});
        break;
      case BackwardRule::exponentials: {
        const Operand found = found_of(sums, l < 0 ? batches_ : 1);
        steps.problem(of_a ? product(part(weights_), transpose(part(exp_b_)), found, false)
                           : product(transpose(part(exp_a_)), part(weights_), found, false));
        if (steps.runs())
          call_.passes.result(execution, call_.computed,
                              {.x = turned(of_a ? call_.a : call_.b),
                               .y = turned(of_a ? call_.b : call_.a),
                               .g = turned(call_.dc),
                               .c = turned(call_.c),
                               .of_rows = part(of_a ? maxima_a_ : maxima_b_),
                               .of_columns = part(of_a ? maxima_b_ : maxima_a_),
                               .rejected = part(of_a ? rejected_a_ : rejected_b_),
                               .sums = of_a ? found : transpose(found),
                               .to = to,
                               .accumulate = accumulate});
        break;
      }
    }
  }

  void widen(Steps& steps) {
    if (!steps.runs()) return;
    const auto copy = [&](const Operand& to, const Operand& from) {
      if (to.data != from.data && has_elements(to)) call_.passes.copy(call_.call.execution, {.to = to, .from = from});
    };
    copy(a_, call_.a);
    copy(b_, call_.b);
    copy(dc_, call_.dc);
    if (call_.rule == BackwardRule::differences && has_elements(factors_))
      call_.passes.copy(call_.call.execution, {.to = factors_, .from = {}, .value = call_.factor});
  }

  void find_winners(Steps& steps) {
    if (!call_.winners) return;
    Contraction p = *call_.winners;
    p.a = a_;
    p.b = b_;
    p.c = winners_;
    set_extents(p);
    if (!p.is_empty()) steps.problem(p);
  }

  void exponentiate(Steps& steps) {
    if (!steps.runs() || batches_ == 0) return;
    const Execution& execution = call_.call.execution;
    const Operand b = transpose(call_.b);
    // Marks are of all batches, maxima of those that a factor has.
    if (has_elements(rejected_)) call_.passes.copy(execution, {.to = rejected_, .from = {}});
    call_.passes.maxima(execution, {.x = call_.a, .maxima = maxima_a_});
    call_.passes.maxima(execution, {.x = b, .maxima = maxima_b_});
    if (call_.db) call_.passes.exponentials(execution, call_.computed, {.x = call_.a, .maxima = maxima_a_, .to = exp_a_});
    if (call_.da)
      call_.passes.exponentials(execution, call_.computed, {.x = b, .maxima = maxima_b_, .to = transpose(exp_b_)});
    call_.passes.weights(execution, call_.computed,
                         {.g = call_.dc,
                          .c = call_.c,
                          .of_rows = maxima_a_,
                          .of_columns = maxima_b_,
                          .to = weights_,
                          .rejected_rows = rejected_a_,
                          .rejected_columns = rejected_b_});
  }

  // ---- problems ------------------------------------------------------------------------------------------------------

  void set_extents(Contraction& p) const {
    p.batch = p.c.batches;
    p.m = p.c.rows;
    p.n = p.c.columns;
    p.k = p.a.columns;
    p.workspace = inner_;
  }
  Contraction product(const Operand& a, const Operand& b, const Operand& c, bool accumulate) const {
    return weighted_product(call_.products.value_or(Contraction{}), a, b, c, accumulate, inner_);
  }
  Gradient differences(const Operand& weights, const Operand& others, const Operand& own, const Operand& out,
                       bool accumulate) const {
    return sum_of_differences(call_.differences.value_or(Gradient{}), weights, transpose(others), own, out, factors_,
                              accumulate, inner_);
  }

  ContractBackward call_;
  Workspace given_, inner_;
  std::int64_t batches_ = 1;
  Operand a_, b_, dc_, factors_, winners_, weights_, exp_a_, exp_b_, exp_sums_, maxima_a_, maxima_b_, rejected_, rejected_a_,
      rejected_b_, sums_of_a_, sums_of_b_;
  std::vector<Chosen> chosen_;
  std::uintptr_t next_ = 0;
  std::size_t own_bytes_ = 0;
};

}  // namespace

void run_contract_backward(const ContractBackward& call) { Driver(call).run(); }

std::size_t contract_backward_bytes(const ContractBackward& call) { return Driver(call).bytes(); }

std::string explain_contract_backward(const ContractBackward& call) { return Driver(call).explanation(); }

}  // namespace rigel::detail

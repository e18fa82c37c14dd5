// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure() on operands: checks, workspace, the sequence of launches, the report.
#include "driver.hpp"

#include <rigel/closure.hpp>
#include <rigel/detail/capture.hpp>
#include <rigel/detail/checks.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace rigel::detail {
namespace {

constexpr const char* function = "closure";

class Closure {
 public:
  explicit Closure(ClosureCall call)
      : call_(std::move(call)), given_(std::exchange(call_.update.workspace, {})), c_type_(call_.update.c.type) {
    check();
    Operand& d = arrays_.d;
    block_ = std::min(call_.block, d.rows);
    is_small_ = takes_small();
    d.label.clear();  // the contractions are not of the caller's views
    arrays_.by_rows = d.column_stride <= d.row_stride;
    update_.batch = d.batches;
    update_.m = d.rows;
  }

  Closure(const Closure&) = delete;

  /// Of the closure's own arrays, followed by the contractions' workspace.
  std::size_t bytes() {
    const std::uintptr_t end = place(0);
    if (is_small_) return end;
    std::size_t inner = 0;
    if (is_one_block() && call_.kernel.empty()) return end;
    for (std::int64_t k0 = 0; k0 < n(); k0 += block_)
      contractions(k0, [&] { inner = std::max(inner, workspace_of(update_)); });
    update_.workspace.bytes = inner;
    return end + inner;
  }

  ClosureReport run() {
    if (is_empty()) return {};
    if (call_.report) require_no_capture(update_.execution, function, "no report, which waits");
    const Kokkos::Profiling::ScopedRegion region("rigel::closure");
    const CallMemory memory(function, update_.execution, given_, bytes(), {&arrays_.d, &arrays_.p});
    place(memory.address());

    if (is_small_)
      call_.steps.small(update_.execution, arrays_, block_);
    else
      eliminate();
    if (!call_.report) return {};
    const std::int64_t first = call_.steps.cycle(update_.execution, arrays_);
    if (first == std::numeric_limits<std::int64_t>::max()) return {};
    return {true, first % n(), first / n()};
  }

 private:
  std::int64_t n() const { return arrays_.d.rows; }
  bool is_empty() const { return arrays_.d.batches == 0 || n() == 0; }
  bool tracks() const { return call_.epilogue != nullptr; }
  /// Whether the first step closes the whole graph, without contractions. A kernel that the call names is looked up nevertheless.
  bool is_one_block() const { return block_ == n(); }
  /// Of the block that begins with vertex k0.
  std::int64_t width(std::int64_t k0) const { return std::min(block_, n() - k0); }

  /// Whether the call takes the one launch for small graphs.
  bool takes_small() const {
    const ClosureSteps& steps = call_.steps;
    const bool covers = steps.small && n() <= steps.small_vertices && block_ <= steps.small_block;
    if (call_.kernel != small_closure) return covers && call_.kernel.empty() && steps.small_is_default;
    const auto limit = [](std::int64_t value) { return "at most " + std::to_string(value); };
    if (!covers && !is_empty())
      throw Error(Code::unsupported, std::string(function) + ": kernel '" + std::string(small_closure) +
                                         "' does not cover " + describe_argument(arrays_.d, " ") +
                                         ", options.block = " + std::to_string(call_.block) +
                                         (tracks() ? ": it keeps no predecessors"
                                                   : ": expected " + limit(steps.small_vertices) +
                                                         " vertices, of which a block has " + limit(steps.small_block)));
    return true;
  }

  void eliminate() {
    const ClosureSteps& steps = call_.steps;
    steps.begin(update_.execution, arrays_);
    for (std::int64_t k0 = 0; k0 < n(); k0 += block_) {
      steps.eliminate(update_.execution, arrays_, k0, width(k0));
      if (!is_one_block()) contractions(k0, [&] { rigel::run(update_); });
    }
    if (steps.end) steps.end(update_.execution, arrays_);
  }

  void check() const {
    const Call call{.function = function};
    const Operand& d = arrays_.d;
    const auto semiring = [&] { return "semiring '" + std::string(call_.semiring) + '\''; };
    if (d.rows != d.columns) refuse(call, describe_argument(d, " is ") + ", expected a square matrix");
    if (!call_.identity_is_no_path) refuse(call, "is_no_path(identity()) of " + semiring() + " is false, expected true");
    if (!call_.identity_absorbs)
      refuse(call, "annihilator() of " + semiring() +
                       " is not its identity(), which then need not absorb; expected them equal, or is_no_path()");
    if (call_.block < 1) refuse(call, "options.block is " + std::to_string(call_.block) + ", expected at least 1");
    if (!is_empty()) {
      require_data(call, d);
      require_distinct(call, d);
    }
    if (tracks()) check_predecessors(call);
  }

  void check_predecessors(const Call& call) const {
    const Operand &d = arrays_.d, &p = arrays_.p;
    if (const int bits = 8 * static_cast<int>(p.size) - 1; bits < 63 && (p.rows - 1) >> bits > 0)
      refuse(call, "P '" + p.label + "' holds integers too narrow for " + std::to_string(p.rows) + " vertices");
    if (p.batches != d.batches || p.rows != d.rows || p.columns != d.columns)
      refuse(call, describe_argument(p, " is ") + ", expected " + extents(d) + " as D" +
                       (d.label.empty() ? "" : " '" + d.label + '\''));
    if (is_empty()) return;
    require_data(call, p);
    require_disjoint(call, d, p);
    require_distinct(call, p);
  }

  /// Returns the end of the closure's own arrays.
  std::uintptr_t place(std::uintptr_t base) {
    const auto take = [&](Operand& o, const Operand& like, std::int64_t rows, std::int64_t columns) {
      base = place_matrices(o, base, like, rows, columns, arrays_.by_rows ? columns : rows, arrays_.by_rows);
    };
    if (is_small_ && !call_.report) return base;
    if (!is_small_ && (!is_one_block() || tracks() || !call_.kernel.empty())) {
      take(arrays_.square, arrays_.d, block_, block_);
      take(arrays_.left, arrays_.d, n(), block_);
      take(arrays_.right, arrays_.d, block_, n());
      if (tracks()) take(arrays_.right_p, arrays_.p, block_, n());
    }
    arrays_.cycle = reinterpret_cast<std::int64_t*>(base);
    base += aligned(sizeof(std::int64_t));
    update_.workspace.data = reinterpret_cast<void*>(base);
    return base;
  }

  /// The columns [first, first + count) of an operand.
  static Operand columns_of(Operand o, std::int64_t first, std::int64_t count) {
    o.data = static_cast<std::byte*>(o.data) + first * o.column_stride * static_cast<std::int64_t>(o.size);
    o.columns = count;
    return o;
  }
  static Operand rows_of(Operand o, std::int64_t count) {
    o.rows = count;
    return o;
  }

  /// Makes `update_` one after the other the contractions that eliminate the block that begins with vertex k0, and calls use().
  template <class Use>
  void contractions(std::int64_t k0, const Use& use) {
    const std::int64_t b = width(k0);
    const auto& [semiring, by_rows, d, p, square, left, right, right_p, cycle] = arrays_;
    if (tracks()) {
      call_.steps.aim(call_.epilogue, arrays_, k0, b);
    } else {
      set_operands(columns_of(d, k0, b), columns_of(rows_of(square, b), 0, b), columns_of(left, 0, b));
      update_.accumulate = false;
      use();
      update_.accumulate = true;
    }
    set_operands(columns_of(left, 0, b), rows_of(right, b), d);
    use();
  }
  void set_operands(Operand a, Operand b, Operand c) {
    a.argument = "A";
    b.argument = "B";
    c.argument = "C";
    c.type = c_type_;
    update_.n = b.columns;
    update_.k = a.columns;
    update_.a = std::move(a);
    update_.b = std::move(b);
    update_.c = std::move(c);
  }

  ClosureCall call_;
  Contraction& update_ = call_.update;
  ClosureArrays& arrays_ = call_.arrays;
  Workspace given_;
  Scalar c_type_;
  std::int64_t block_;
  bool is_small_ = false;
};

}  // namespace

ClosureReport run_closure(ClosureCall call) { return Closure(std::move(call)).run(); }

std::size_t closure_bytes(ClosureCall call) { return Closure(std::move(call)).bytes(); }

}  // namespace rigel::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// transitive_closure() on operands: checks, workspace, the sequence of launches.
#include "driver.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/detail/transitive_closure.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <utility>

namespace rigel::detail {
namespace {

constexpr const char* function = "transitive_closure";

class TransitiveClosure {
 public:
  TransitiveClosure(Contraction update, std::int64_t block, EliminateBlock own)
      : given_(std::exchange(update.workspace, {})),
        update_(std::move(update)),
        bits_(8 * static_cast<std::int64_t>(update_.c.size)) {
    Operand& d = arrays_.d = update_.c;
    check(block);
    update_.c.argument = "C";
    update_.c.label.clear();
    block_ = std::min(block, words_of(d.rows) * bits_);
    eliminate_ = own           ? own
                 : d.size == 4 ? eliminate_block<compiled_spaces, std::uint32_t>
                               : eliminate_block<compiled_spaces, std::uint64_t>;
  }

  /// Of the closure's own arrays, followed by the contractions' workspace.
  std::size_t bytes() {
    if (update_.is_empty()) return 0;
    const std::uintptr_t end = place(0);
    // All blocks but the last have the same size.
    const std::int64_t n = arrays_.d.rows;
    for (const std::int64_t b : {std::min(block_, n), (n - 1) % block_ + 1}) {
      set_block(b);
      update_.workspace.bytes = std::max(update_.workspace.bytes, workspace_of(update_));
    }
    return end + update_.workspace.bytes;
  }

  void run() {
    if (update_.is_empty()) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::transitive_closure");
    const CallMemory memory(function, update_.execution, given_, bytes(), {&arrays_.d});
    place(memory.address());
    const std::int64_t n = arrays_.d.rows;
    for (std::int64_t k0 = 0; k0 < n; k0 += block_) {
      const std::int64_t b = std::min(block_, n - k0);
      eliminate_(update_.execution, arrays_, k0, b);
      set_block(b);
      rigel::run(update_);
    }
  }

 private:
  std::int64_t words_of(std::int64_t n) const { return (n + bits_ - 1) / bits_; }

  void check(std::int64_t block) const {
    const Call call{.function = function};
    const Operand& d = arrays_.d;
    const std::string bits = std::to_string(bits_);
    if (d.columns != words_of(d.rows)) {
      Operand expected = d;
      expected.columns = words_of(d.rows);
      refuse(call, describe_argument(d, " is ") + ", expected " + extents(expected) + ": rows of " + std::to_string(d.rows) +
                       " bits in words of " + bits);
    }
    if (block < 1 || block > max_reachability_block || block % bits_ != 0)
      refuse(call, "options.block is " + std::to_string(block) + ", expected a multiple of " + bits + " up to " +
                       std::to_string(max_reachability_block));
    if (update_.is_empty()) return;
    require_data(call, d);
    require_distinct(call, d);
  }

  /// Returns the end of the closure's own arrays.
  std::uintptr_t place(std::uintptr_t base) {
    const Operand& d = arrays_.d;
    // Row-major, each row aligned to vectors.
    const auto take = [&](Operand& o, std::int64_t rows, std::int64_t columns) {
      base = place_matrices(o, base, d, rows, columns, (columns + 3) / 4 * 4, true);
    };
    take(arrays_.square, block_, words_of(block_));
    take(arrays_.left, d.rows, block_);
    take(arrays_.right, block_, d.columns);
    update_.a = arrays_.left;
    update_.b = arrays_.right;
    update_.a.argument = "A";
    update_.b.argument = "B";
    update_.workspace.data = reinterpret_cast<void*>(base);
    return base;
  }

  /// D = D ∨ W ∧ R for a block of b vertices.
  void set_block(std::int64_t b) { update_.k = update_.a.columns = update_.b.rows = b; }

  Workspace given_;
  Contraction update_;
  std::int64_t bits_, block_;
  EliminateBlock eliminate_;
  ReachabilityArrays arrays_;
};

}  // namespace

void run_transitive_closure(Contraction update, std::int64_t block, EliminateBlock own) {
  TransitiveClosure(std::move(update), block, own).run();
}

std::size_t transitive_closure_bytes(Contraction update, std::int64_t block, EliminateBlock own) {
  return TransitiveClosure(std::move(update), block, own).bytes();
}

}  // namespace rigel::detail

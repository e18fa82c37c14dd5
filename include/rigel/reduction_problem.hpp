// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem of reduce() (rigel/reduce.hpp), as the engine sees it: scores that are never stored as a whole,
//
//     score(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ),
//
// and ⊞_n of each row of them, for a commutative monoid ⊞.
#pragma once

#include <rigel/detail/range_table.hpp>
#include <rigel/registry.hpp>

namespace rigel {

/// What becomes of a row of scores. More may come: a kernel's supports() declines all that it does not know.
enum class Reducer : std::uint8_t {
  minimum,
  maximum,
  smallest,
  largest,
  sum,
  log_sum_exp,
  count_below,
  all_below,
  weighted_sum,
  softmax_weighted,
  histogram,
  monoid
};
constexpr const char* name(Reducer r) {
  constexpr const char* names[] = {"minimum",      "maximum",          "smallest",    "largest",
                                   "sum",          "log_sum_exp",      "count_below", "all_below",
                                   "weighted_sum", "softmax_weighted", "histogram",   "monoid"};
  return names[static_cast<int>(r)];
}
/// Whether scores, or what becomes of them, weight the rows of a matrix V.
constexpr bool is_weighted(Reducer r) { return r == Reducer::weighted_sum || r == Reducer::softmax_weighted; }

/// One call as plain data: everything that a kernel needs to know. The product is that of the scores.
struct Reduction : Product {
  static constexpr const char* operation = "reduce";
  /// The largest number of results in a row.
  static constexpr std::int64_t most = 4096;
  /// The same for weighted reducers: the columns of V.
  static constexpr std::int64_t most_columns = 512;

  Reducer reducer = Reducer::minimum;
  std::int64_t count =
      1;  // results in a row: the k of smallest and largest, V's columns of weighted ones, bins of histogram, else 1
  double threshold = 0;                        // of count_below and all_below
  bool or_equal = false;                       // of these: scores that equal the threshold count
  bool exclude_self = false;                   // the scores of n = m are left out
  const detail::RangeTable* ranges = nullptr;  // which scores there are, of each matrix; null: all
  Operand scores{.argument = "the scores"};    // m × n: extents and type (f32, f64, i32, i64 or u64), no memory
  std::string_view score_kernel;               // selects, by name, the kernel that computes parts of them as contract() does
  std::span<const Kernel<Contraction>> score_kernels;  // such kernels, instantiated in the caller's translation unit
  std::size_t functor_bytes = 0;   // of the functor at epilogue_object, a detail::Placed; 0: the epilogue is a Program
  std::size_t semiring_bytes = 0;  // of a semiring object, of those in a view
  Operand values{.argument = "values"}, indices{.argument = "indices"};  // m × count each; of size 0: not wanted
  Operand offsets{.argument = "offsets"};  // all_below: m + 1 of int64; row m's results are from its offset to the next one
  std::size_t workspace_limit = 0;         // bytes that the workspace should not exceed; 0: the kernel's own limit
  std::span<const Kernel<Reduction>> instantiated;  // kernels instantiated in the caller's translation unit
  Operand weights{.argument = "V"};                 // of weighted reducers: n × count of f16, bf16, f32 or f64
  std::span<const Kernel<Contraction>> products;    // instantiated for them: plus_times of the scores' type
  const void* monoid = nullptr;                     // a user's functor, which kernels in `instantiated` take
  bool whole_results = false;                       // its results are integers
  Operand edges{.argument = "edges"};               // of histogram: count + 1 of f64, ascending

  /// The contraction that computes the scores, of this call's execution space, promises and precision. Its C has no memory: kernels have
  /// parts of it computed one after the other.
  Contraction contraction() const;
  /// Makes the scores those of a contraction, and its kernel theirs. All else of the call stays, but for the execution space.
  void set_contraction(Contraction q);

  /// What a kernel and a problem must have in common before the kernel is asked anything.
  struct Key {
    const void* semiring_type;
    std::string_view semiring;  // empty for a user's type, whose name need not be unique
    Scalar element, accumulator;
    auto operator<=>(const Key&) const = default;
  };
  Key key() const;
  /// The key of kernels that serve every semiring: they have a contraction's kernel compute the scores.
  static Key generic_key() { return {nullptr, {}, Scalar::other, Scalar::other}; }
  static Key key_of(const KernelInfo& info);
  /// Any kernel can be registered for this operation.
  static Status accepts(const KernelInfo&) { return {}; }

  /// Throws Error(invalid_argument) unless the problem is well formed: what contract() requires of A, B and the epilogue, and
  ///   - values and indices have the rows and batches of the scores and `count` columns;
  ///   - values hold what the reducer makes of the scores, indices hold N − 1, and counts hold N;
  ///   - both overlap neither A, B, what the epilogue reads, each other nor themselves, and the workspace none of the operands;
  ///   - count is from 1 to `most`; with exclude_self, M = N; ranges are those of M × N scores;
  ///   - of all_below there are M + 1 offsets, and no batches; values and indices may be of any length;
  ///   - of weighted reducers V is N × count, of as many batches as the scores or one, count is at most `most_columns`, scores are f32 or
  ///     f64, and not narrower than V;
  ///   - of histogram there are count + 1 edges.
  void check() const;
  /// The part of it that concerns what one Program of the epilogue reads.
  void check_sources(const epilogue::Program& program) const;
  /// Whether there is nothing to compute. N = 0 gives the identity.
  bool is_empty() const { return batch == 0 || m == 0; }
  /// Why a kernel's info rules it out for this problem: it rounds terms more than the call accepts.
  Decline admits(const KernelInfo& info) const;
  std::string why_not(Decline why, const KernelInfo& info) const;
  std::string admission(const KernelInfo& info) const;
  /// A lower bound of the bytes that memory reads and writes: no scores.
  double memory_bytes() const;
  /// The nominal problem under Promise::batch_invariant: that of the scores, of the same N.
  Reduction nominal() const;
  /// The problem in words: "10 smallest of l2_squared f32, 1000x2000x64".
  std::string summary() const;
};

/// As for Contraction, in rigel/registry.hpp. A kernel whose info names no semiring serves all of them.
void register_kernel(const Kernel<Reduction>& kernel);
Status supports(const Kernel<Reduction>& kernel, const Reduction& problem);
double predicted_seconds(const Kernel<Reduction>& kernel, const Reduction& problem);
const Kernel<Reduction>& select(const Reduction& problem);
std::vector<Candidate<Reduction>> candidates(const Reduction& problem);
std::string explain(const Reduction& problem);
void run(const Reduction& problem);
void run(const Kernel<Reduction>& kernel, const Reduction& problem);
WorkspaceSize workspace_size(const Reduction& problem);

namespace detail {

/// As for Contraction, in rigel/detail/keep.hpp.
std::span<const Kernel<Reduction>> keep(std::vector<Kernel<Reduction>> kernels);

}  // namespace detail

}  // namespace rigel

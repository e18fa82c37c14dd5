// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of two operands, and the problem of contract(), which stores it: C(l,m,n) = epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ), as
// the engine sees it.
#pragma once

#include <rigel/call.hpp>
#include <rigel/epilogue.hpp>

#include <array>
#include <compare>
#include <span>

namespace rigel {

/// Identifies a semiring: Rigel's own by name, a user's by type. The name of a user's semiring is for messages only.
struct SemiringId {
  std::string_view name;
  const void* type = nullptr;  // semiring_type<S>() (rigel/semirings.hpp): null for Rigel's own

  friend constexpr bool operator==(const SemiringId& x, const SemiringId& y) {
    return x.type == y.type && (x.type || x.name == y.name);
  }
};

template <class P>
struct Kernel;
struct KernelInfo;

/// The results epilogue( ⊕_k A(l,m,k) ⊗ B(l,k,n) ) of a call, wherever they go: what loaders, sums and predicted times need to know. A
/// Contraction stores them in its C; a Reduction (rigel/reduction_problem.hpp) keeps what a row of them comes to.
struct Product : Call {
  SemiringId semiring;
  Scalar element = Scalar::other, accumulator = Scalar::other;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Operand a{.argument = "A"}, b{.argument = "B"};  // a: m × k, b: k × n
  const void* semiring_object = nullptr;
  bool semiring_in_view = false;               // the object is in memory of the execution space, where only kernels read it
  std::int64_t semiring_stride = 0;            // in objects, from batch to batch: 1, or 0 if one serves all
  const epilogue::Program* program = nullptr;  // null: a functor of the user's
  struct {
    std::int64_t batch = 0, row = 0, column = 0;
  } first = {};                           // where the first result lies in the matrices whose places the program's steps see
  const void* epilogue_object = nullptr;  // the user's functor
  bool of_transpose = false;              // a Transposed's problem: the functor gets C's columns as m and its rows as n
  bool of_one_row = false;                // a nominal problem: what steps read by rows counts as the same in all of them
  bool may_cancel = false;                // l2_squared: results that lose digits in |x|² + |z|² − 2x·z are kept
};

/// One call of contract() as plain data: everything that a kernel needs to know.
struct Contraction : Product {
  static constexpr const char* operation = "contract";

  Operand c{.argument = "C"};  // m × n
  bool accumulate = false;
  const Operand* indices = nullptr;                   // what epilogue::arguments() writes, m × n; or null
  std::span<const Kernel<Contraction>> instantiated;  // kernels instantiated in the caller's translation unit

  // What the engine asks every problem type. Defined in src/operations/contraction.cpp.

  /// What a kernel and a problem must have in common before the kernel is asked anything.
  struct Key {
    const void* semiring_type;
    std::string_view semiring;  // empty for a user's type, whose name need not be unique
    Scalar element, accumulator;
    auto operator<=>(const Key&) const = default;
  };
  Key key() const;
  static Key key_of(const KernelInfo& info);
  /// Whether a kernel can be registered for this operation: it must name a semiring.
  static Status accepts(const KernelInfo& info);

  /// Throws Error(invalid_argument) unless the problem is well formed:
  ///   - extents match, and batches are equal or broadcast;
  ///   - C overlaps neither A, B nor itself, as sets of elements;
  ///   - what epilogue::arguments() writes has C's extents, holds K − 1, and overlaps neither A, B, C nor itself;
  ///   - parity() is the first step of its epilogue, and applies to integers;
  ///   - what the epilogue reads fits C, can be read from the execution space, and overlaps C at most element by element.
  /// Throws Error(unsupported) if C holds integers and compiled kernels would write floating-point numbers.
  void check() const;
  /// The last of these checks, for one Program of the epilogue.
  void check_sources(const epilogue::Program& program) const;
  /// Whether there is nothing to compute.
  bool is_empty() const { return batch == 0 || m == 0 || n == 0; }
  /// Why a kernel's info rules it out for this problem (accumulate, precision, layouts of operands), or Decline::none.
  Decline admits(const KernelInfo& info) const;
  /// The answer of admits() in words.
  std::string why_not(Decline why, const KernelInfo& info) const;
  /// The rule by which options.precision admits a kernel that rounds terms; empty for kernels that round none.
  std::string admission(const KernelInfo& info) const;
  /// A lower bound of the bytes that memory reads and writes: each distinct element once, C's twice if it accumulates.
  double memory_bytes() const;
  /// The nominal problem under Promise::batch_invariant, which stands for all with the same N, K, types, options and
  /// architecture: one matrix of 1024 rows, contiguous and aligned, A and B K-major, on a card of 132 multiprocessors. Its epilogue
  /// counts as that of a single row, where nothing differs by rows. Kernels never read its addresses.
  Contraction nominal() const;
  struct Transposed;
  /// Whether the engine hands a kernel the transposed problem in place of this one: C is column-major, and the kernel's info says so.
  bool is_transposed_for(const KernelInfo& info) const;
  /// The problem in words, "min_plus f32, 64x64x64": what explain() prints after the operation's name.
  std::string summary() const;
};

/// The transposed problem Cᵀ(l,n,m) = epilogue( ⊕_k Bᵀ(l,n,k) ⊗ Aᵀ(l,k,m) ), if ⊗ commutes: a column-major C is row-major in it. Its
/// program reads what the program of C reads.
struct Contraction::Transposed {
  explicit Transposed(const Contraction& p);
  Transposed(const Transposed&) = delete;
  Transposed& operator=(const Transposed&) = delete;

  epilogue::Program program;
  Contraction problem;
};

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the calls of all operations share: where they run, what they require of the kernel, and how operands are described.
// Nothing here is a template, and nothing needs Kokkos.
#pragma once

#include <rigel/error.hpp>
#include <rigel/numeric.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rigel {

/// Where a kernel runs. `other` is an execution space for which the library carries no compiled kernels.
enum class Space : std::uint8_t { serial, openmp, threads, cuda, other };
constexpr const char* name(Space s) {
  constexpr const char* names[] = {"serial", "openmp", "threads", "cuda", "other"};
  return names[static_cast<int>(s)];
}
/// A set of spaces, one bit each.
using Spaces = unsigned;
constexpr Spaces bit(Space s) { return 1u << static_cast<unsigned>(s); }
inline constexpr Spaces host_spaces = bit(Space::serial) | bit(Space::openmp) | bit(Space::threads);

struct Card;

/// An execution space instance. `instance` points to the Kokkos object, which outlives the call.
struct Execution {
  Space space = Space::serial;
  const void* instance = nullptr;
  int concurrency = 1;         // host: threads of the instance
  int device = -1;             // CUDA device ordinal
  int compute_capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  int shared_memory = 0;       // largest number of bytes for a thread block
  void* stream = nullptr;      // cudaStream_t
  const Card* card = nullptr;  // a GPU's rates (rigel/card.hpp); null: those of its architecture
};

/// A batch of strided matrices: element (l, i, j) is at data + (l·batch_stride + i·row_stride + j·column_stride)·size.
struct Operand {
  void* data = nullptr;
  Scalar type = Scalar::other;
  std::size_t size = 0;  // bytes of an element
  std::int64_t batches = 1, rows = 0, columns = 0;
  std::int64_t batch_stride = 0, row_stride = 0,
               column_stride = 0;  // in elements; a single matrix has batch stride 0 and broadcasts
  const char* argument = "";       // the name of the function's parameter ("A"), for messages
  std::string label = {};          // the view's label, for messages
};

/// What a kernel promises of its results, and what a caller may require: a set of bits.
enum class Promise : unsigned {
  none = 0,
  reference_bits = 1,  // the reference's values, bit for bit: one chain per output with ascending k, or nothing rounds
  repeatable = 2,      // the same bits in every run with as many threads
  batch_invariant = 4  // a row's bits depend neither on the other rows nor on M
};
constexpr Promise operator|(Promise a, Promise b) { return Promise(unsigned(a) | unsigned(b)); }
constexpr bool covers(Promise has, Promise wants) { return (unsigned(wants) & ~unsigned(has)) == 0; }
/// The promises as text: "reference_bits|repeatable".
std::string describe(Promise promise);

/// An a-priori error bound: |error| ≤ (constant + per_term·K) · u · Σ_k |a ⊗ b|, where u is the unit roundoff of the
/// accumulator. Both are 0 if nothing rounds. If sums are cut into parts of `part` terms, each summed by itself and then added
/// to those before, per_term counts the terms of one part, and each part adds 1.
struct Accuracy {
  double constant = 0, per_term = 0;
  int part = 0;
  /// The bound of a sum of `terms` terms, in units of u · Σ_k |a ⊗ b|.
  constexpr double of(std::int64_t terms) const {
    if (part == 0 || terms <= part) return constant + per_term * static_cast<double>(terms);
    return constant + per_term * part + static_cast<double>(terms) / part;
  }
};

/// How the terms a ⊗ b are rounded before they are summed. A kernel states what it does; a call states the least that it
/// accepts. After `automatic` the values go from the most to the least precise, and a call admits its own value and all before
/// it. docs/numerics.md has the bounds.
///
/// Kernels of l2_squared at `promoted` compute |x|² + |z|² − 2x·z and recompute the results that lose too many digits by that.
enum class Precision : std::uint8_t {
  automatic,    // calls only, the default: `accumulator`, and kernels whose bound for this problem is no larger
  rounded,      // calls only: as `accumulator`, without kernels that truncate sums (see KernelInfo::truncates), which drift
  accumulator,  // terms as the semiring defines them, in the accumulator's type
  exact_products,  // exact products of floats on tensor cores, from three bfloat16 parts, summed as in promoted; or double
  promoted,  // products of floats, each the sum of two or more shorter numbers, within 2^-19; sums of 32 k added in float
  split,     // the same products; the sums stay on tensor cores, which truncate where float rounds
  bf16x3,    // products of floats, each the sum of two bfloat16 numbers, within 2^-15
  tf32,      // products of floats truncated to 11 bits, within 2^-9
  operands   // terms rounded to the operands' 16-bit type, a few summed in it; each up to a quarter of its largest value
};
constexpr const char* name(Precision p) {
  constexpr const char* names[] = {"automatic", "rounded", "accumulator", "exact_products", "promoted",
                                   "split",     "bf16x3",  "tf32",        "operands"};
  return names[static_cast<int>(p)];
}

/// Scratch memory that the caller brings. `data` is memory of the execution space, aligned to 256 bytes, and in use until the
/// call's work is complete. `host_data` is host memory, aligned to 64 bytes, and in use until the call returns.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
  void* host_data = nullptr;
  std::size_t host_bytes = 0;
};

/// How much scratch memory a call needs.
struct WorkspaceSize {
  std::size_t bytes = 0;       // in memory of the execution space
  std::size_t host_bytes = 0;  // in host memory
};

/// What every call has. An operation's problem type adds its operands and options.
struct Call {
  const char* function = "contract";  // the function's name, for messages
  Execution execution = {};
  Promise require = Promise::none;
  Precision precision = Precision::automatic;
  std::string_view kernel = {};  // selects by name: a whole name or its leading part up to a '.', as in "cuda.simt"
  Workspace workspace = {};      // the caller's; if there is none, the call leases one from the pool
};

}  // namespace rigel

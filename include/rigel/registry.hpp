// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registry: which kernels exist, what each one promises, and which one a problem gets. Nothing here is a template
// and nothing needs Kokkos: views, and later C and Python, all arrive here as a Problem.
#pragma once

#include <rigel/epilogue.hpp>
#include <rigel/error.hpp>
#include <rigel/numeric.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rigel {

enum class Operation : std::uint8_t { contract };
constexpr const char* name(Operation) { return "contract"; }

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

/// An execution space instance: `instance` points to the Kokkos object, which outlives the call.
struct Execution {
  Space space = Space::serial;
  const void* instance = nullptr;
  int concurrency = 1;         // host: threads that the instance has
  int device = -1;             // CUDA device ordinal
  int compute_capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  int shared_memory = 0;   // bytes that a thread block may have at most
  void* stream = nullptr;  // cudaStream_t
};

/// A batch of matrices: element (l, i, j) stands at data + (l·batch_stride + i·row_stride + j·column_stride)·size.
struct Operand {
  void* data = nullptr;
  Scalar type = Scalar::other;
  std::size_t size = 0;  // bytes of an element
  std::int64_t batches = 1, rows = 0, columns = 0;
  std::int64_t batch_stride = 0, row_stride = 0,
               column_stride = 0;  // in elements; one batch alone has stride 0 and broadcasts
  std::string label = {};          // of the view, for messages
};

/// What a kernel may promise, and a caller may require: a set of bits.
enum class Promise : unsigned {
  none = 0,
  reference_bits = 1,  // equal to the reference's values, bit for bit: one ascending chain per output, or nothing rounds
  repeatable = 2,      // the same bits in every run
  batch_invariant = 4  // a row's bits depend neither on the other rows nor on M
};
constexpr Promise operator|(Promise a, Promise b) { return Promise(unsigned(a) | unsigned(b)); }
constexpr bool covers(Promise has, Promise wants) { return (unsigned(wants) & ~unsigned(has)) == 0; }
/// The promises as text: "reference_bits|repeatable".
std::string describe(Promise promise);

/// |error| ≤ (constant + per_term·K) · u · Σ_k |a ⊗ b|, u the unit roundoff of the accumulator; 0, 0 where nothing rounds.
struct Accuracy {
  double constant = 0, per_term = 0;
};

/// How terms a ⊗ b may be rounded before they are summed, the most precise first. Of l2_squared, whose elements are floats or doubles,
/// `promoted` is |x|² + |z|² − 2x·z in products of its own, for results that lose few digits so (docs/numerics.md).
enum class Precision : std::uint8_t {
  accumulator,  // as the semiring has them: in the accumulator's type
  exact_products,  // products of floats on tensor cores, but exact: in three parts of 8 bits each, sums as promoted; or in doubles
  promoted,        // products of floats, each float the sum of two shorter numbers or more: within 2^-19 of themselves
  split,           // the same, and sums on tensor cores, which cut where float rounds
  bf16x3,          // products of floats, each float the sum of two of 8 bits: within 2^-15
  tf32,            // products of floats cut to 11 bits: within 2^-9
  operands  // to the operands' own 16-bit type, a few of them added up there; terms up to a quarter of its largest number
};
constexpr const char* name(Precision p) {
  constexpr const char* names[] = {"accumulator", "exact_products", "promoted", "split", "bf16x3", "tf32", "operands"};
  return names[static_cast<int>(p)];
}

/// Which semiring: one of Rigel's own by its name, a user's by its type. Its name is for messages then, and decides nothing.
struct SemiringId {
  std::string_view name;
  const void* type = nullptr;  // semiring_type<S>() (rigel/semirings.hpp): null for Rigel's own

  friend constexpr bool operator==(const SemiringId& x, const SemiringId& y) {
    return x.type == y.type && (x.type || x.name == y.name);
  }
};

struct Kernel;

/// What messages call the function and its arguments.
struct Names {
  const char *call = "contract", *a = "A", *b = "B", *c = "C";
};

/// One call, without a template: everything that a kernel needs to know.
struct Problem {
  Operation operation = Operation::contract;
  SemiringId semiring;
  Scalar element = Scalar::other, accumulator = Scalar::other;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Operand a, b, c;                        // a: m × k, b: k × n, c: m × n
  const void* semiring_object = nullptr;  // one object, or `batch` of them in memory that the execution space reads
  bool semiring_per_batch = false;
  const epilogue::Program* program = nullptr;  // null: a functor of the user's
  const void* epilogue_object = nullptr;       // the user's functor
  bool accumulate = false;
  Promise require = Promise::none;
  Precision precision = Precision::accumulator;  // the least that the caller accepts
  bool may_cancel = false;                       // l2_squared: results that lose digits in |x|² + |z|² − 2x·z may stay
  std::string_view kernel;                       // selection by name: a whole name or a leading part of it, "cuda.simt"
  Execution execution;
  std::span<const Kernel> instantiated;  // kernels that the caller's own translation unit brings along
  Names names;
  const Operand* indices = nullptr;  // what epilogue::arguments() writes, m × n; null: nothing
};

struct Tile {
  int m = 0, n = 0, k = 0;
};

/// What a kernel says of itself.
struct KernelInfo {
  std::string name;    // family.semiring.type.tile: "cuda.simt.min_plus.f32.128x128x8"
  std::string family;  // "reference", "portable", "host", "cuda.simt"
  Operation operation = Operation::contract;
  std::string semiring;                 // its name
  const void* semiring_type = nullptr;  // semiring_type<S>(): null for Rigel's own
  Scalar element = Scalar::other, accumulator = Scalar::other;
  Spaces spaces = 0;
  Tile tile = {};
  int stages = 1;
  int min_compute_capability = 0, max_compute_capability = 0;  // 0: any
  Promise promises = Promise::none;
  Precision precision = Precision::accumulator;
  Accuracy accuracy = {};
  std::string bit_class;         // see bit_class_of()
  const void* sample = nullptr;  // a semiring object for verify(), where ⊗ has hyperparameters
  bool accumulates = true;       // a value of C can be continued
  bool raw_launch = false;       // not launched through Kokkos: contract() reports it to Kokkos Tools as a kernel
};

/// The kernels of one class give the same bits for the same operands, whatever their tiles: "reference" if they promise the
/// reference's bits, else `bit_class`, else their own name.
std::string_view bit_class_of(const KernelInfo& info);

inline SemiringId semiring_of(const KernelInfo& info) { return {info.semiring, info.semiring_type}; }

/// A kernel: what it says of itself, and what it can be asked.
struct Kernel {
  KernelInfo info;
  /// Beyond what `info` says (semiring, type, space, architecture): does it cover the problem? Null: yes. Neither this nor `cost` reads
  /// the operands' elements: under batch_invariant both are also asked of a nominal problem, which has none.
  Status (*supports)(const KernelInfo&, const Problem&) = nullptr;
  /// Predicted time in seconds.
  double (*cost)(const KernelInfo&, const Problem&) = nullptr;
  /// Bytes of workspace, in memory of the execution space, aligned to 256. Null: none.
  std::size_t (*workspace)(const KernelInfo&, const Problem&) = nullptr;
  /// Enqueues the work on the problem's execution space instance.
  void (*run)(const KernelInfo&, const Problem&, void* workspace) = nullptr;
};

/// What to list; empty fields match all.
struct Filter {
  std::string_view name = {};  // a leading part
  std::string_view semiring = {};
  Scalar element = Scalar::other, accumulator = Scalar::other;
  Spaces spaces = ~0u;
  int compute_capability = 0;
};

/// The registered kernels that match, in the order of their registration.
std::vector<KernelInfo> kernels(const Filter& filter = {});

/// Where backends put their kernels when the library first needs them.
class Registry {
 public:
  /// Throws as register_kernel() does. Kernels stay where they are for the life of the registry.
  void add(const Kernel& kernel);
  /// The kernels of one semiring, operation, element and accumulator.
  std::span<const Kernel* const> find(SemiringId semiring, Operation operation, Scalar element, Scalar accumulator) const;
  /// All kernels in the order of their registration.
  std::span<const std::unique_ptr<const Kernel>> all() const { return kernels_; }

 private:
  struct Key {
    const void* semiring_type;
    std::string_view semiring;  // empty for a user's type, which its name does not tell from others
    Operation operation;
    Scalar element, accumulator;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(SemiringId semiring, Operation operation, Scalar element, Scalar accumulator);
  std::vector<std::unique_ptr<const Kernel>> kernels_;
  std::map<Key, std::vector<const Kernel*>> by_key_;
};

/// Adds a kernel, which contract() then considers like any other: for calls with the semiring that `info` names, if that is one of
/// Rigel's own with these types, or with the user's type `info.semiring_type`. Throws Error(invalid_argument) if its info is
/// inconsistent (no run function, no space, a tile of negative extents, a semiring that is neither, …), Error(duplicate) if the
/// name is taken.
void register_kernel(const Kernel& kernel);

/// A candidate's own answer: does it cover the problem, all conditions taken together?
Status supports(const Kernel& kernel, const Problem& problem);

/// The time that a kernel predicts for a problem that it covers, in seconds, but no less than memory takes to deliver each of the
/// operands' bytes once and to take those of C.
double predicted_seconds(const Kernel& kernel, const Problem& problem);

/// Every candidate for the problem with its predicted time or the reason why not, the chosen one marked by '*'.
std::string explain(const Problem& problem);

/// The chosen kernel: of those that cover the problem, the one with the least predicted time. Under Promise::batch_invariant it is one
/// of the bit class that the fastest kernel has for a nominal problem of the same N, K, types, options and architecture: the class then
/// depends neither on M, nor on batches, layouts or the number of multiprocessors, while its tile is chosen by the real M. Throws
/// Error(unsupported) with every candidate's reason if there is none, or under batch_invariant none of that class: other bits are no
/// fallback.
const Kernel& select(const Problem& problem);

/// What `verify` found.
struct Verification {
  bool ok = true;
  int problems = 0;         // how many were run
  std::string report = {};  // the first failures, each with its seed and extents
};

/// Holds a registered kernel to its promises, on the problem grid described in docs/design.md: sizes 0, 1, tile ± 1 and
/// primes, layouts, batches, accumulation, epilogues, NaN and infinities; against the reference. Throws
/// Error(not_found) where no kernel has that name, Error(unsupported) where none of its spaces exists here, and as contract() does
/// where Kokkos's host space is Kokkos::Threads.
Verification verify(std::string_view kernel, unsigned seed = 1);

/// Throws Error(invalid_argument) unless the problem is well formed: extents that fit each other, batches that are equal
/// or broadcast, a C that overlaps neither A nor B nor itself as sets of elements, nor does what epilogue::arguments() writes, which
/// is as large as C and holds k; parity() as an epilogue's first step, of integers. Throws Error(unsupported) for a C of integers where compiled kernels write floating-point numbers.
void validate(const Problem& problem);

/// Caller-owned scratch memory, in the memory of the execution space, aligned to 256 bytes.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Validates, selects and runs; Error(unsupported) if the execution space does not launch from here (Kokkos::Threads, see
/// contract()). A workspace of the caller's is used if it is large enough, else Error(invalid_argument).
/// Without one the memory comes from Rigel's pool, which has memory of the host and of CUDA devices; Error(out_of_memory) if
/// the system has no more. A stream that is being captured in a CUDA graph gets none, since the graph would use it after the
/// call: a call that needs a workspace there and brings none is refused, Error(invalid_argument).
void run(const Problem& problem, Workspace workspace = {});

/// Bytes that `run` would need for this problem.
std::size_t workspace_size(const Problem& problem);

/// Gives the pool's memory back to the system, except what calls are using; on CUDA also except that of calls whose end the
/// host has not waited for. Any thread may call it at any time; it waits for no device and throws nothing. Kokkos::finalize()
/// does not call it. The pool is emptied at the end of the program, and when the shared object that contains it is unloaded.
void release_workspaces() noexcept;

}  // namespace rigel

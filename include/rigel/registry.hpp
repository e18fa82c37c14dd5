// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engine as users see it: which kernels exist, what each one promises, and which one a problem gets. Each operation has a
// problem type P (Contraction, in rigel/contraction.hpp). Registry, selection, explain() and run() are templates on it,
// compiled once per operation in src/. Front ends turn their arguments into a problem; everything here starts from one.
#pragma once

#include <rigel/call.hpp>
#include <rigel/contraction.hpp>
#include <rigel/error.hpp>

#include <array>
#include <concepts>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rigel {

struct SemiringInfo;

/// The requirements on an operation's problem type: it derives from Call, has a key by which the registry finds kernels, and
/// gives the answers below. rigel/contraction.hpp documents each.
template <class P>
concept Problem = std::derived_from<P, Call> && requires(const P& p, const KernelInfo& info) {
  { P::operation } -> std::convertible_to<std::string_view>;
  { p.key() } -> std::same_as<typename P::Key>;
  { P::key_of(info) } -> std::same_as<typename P::Key>;
  { P::accepts(info) } -> std::same_as<Status>;
  p.check();
  { p.is_empty() } -> std::same_as<bool>;
  { p.admits(info) } -> std::same_as<Decline>;
  { p.why_not(Decline{}, info) } -> std::same_as<std::string>;
  { p.admission(info) } -> std::same_as<std::string>;
  { p.memory_bytes() } -> std::same_as<double>;
  { p.nominal() } -> std::same_as<P>;
  { p.summary() } -> std::same_as<std::string>;
  { p.instantiated } -> std::convertible_to<std::span<const Kernel<P>>>;
};

/// The block of C that one thread block, team or worker computes, and how many k it takes at a time. 0: no fixed tile.
struct Tile {
  int m = 0, n = 0, k = 0;
};

/// The strides that a kernel needs of an operand: any; a unit stride along rows or along columns; or a unit stride along a
/// given one.
enum class Layout : std::uint8_t { any, contiguous, row_major, column_major };
constexpr const char* name(Layout l) {
  constexpr const char* names[] = {"any", "contiguous", "row_major", "column_major"};
  return names[static_cast<int>(l)];
}

/// A kernel's requirements on one operand. Its address, its other strides and its contiguous extent are multiples of
/// `alignment` elements.
struct OperandNeeds {
  Layout layout = Layout::any;
  int alignment = 1;
};

/// Whether the engine hands a kernel the transposed problem if C is column-major (Contraction::Transposed), and whether outputs
/// then have the bits that they have in a row-major C. If they do not, it does so only without batch_invariant.
enum class Transposes : std::uint8_t { no, with_other_bits, with_same_bits };

/// A kernel's facts.
struct KernelInfo {
  std::string name;     // family.semiring.type[.variant][.tile]: "cuda.simt.min_plus.f32.128x128x8"
  std::string family;   // "reference", "portable", "host", "cuda.simt", …
  std::string variant;  // what tells apart the family's kernels for one semiring and type, other than the tile: "split_k"
  std::string_view operation;           // P::operation; register_kernel() sets it
  std::string semiring;                 // the semiring's name; empty for operations that have none
  const void* semiring_type = nullptr;  // semiring_type<S>(): null for Rigel's own
  Scalar element = Scalar::other, accumulator = Scalar::other;
  std::array<OperandNeeds, 5> operands = {};  // in the order in which the problem type declares them
  Spaces spaces = 0;
  Tile tile = {};
  int stages = 1;
  int threads = 0, shared_memory = 0;  // of a CUDA block, the latter in bytes; 0: they depend on the problem
  int min_compute_capability = 0, max_compute_capability = 0;  // 0: any
  int timed_on = 0;  // the compute capability on which what cost() adds to a Card was measured; 0: on each
  Promise promises = Promise::none;
  Precision precision = Precision::accumulator;
  bool truncates = false;  // sums of 16-bit products stay on tensor cores, which truncate, for more than 512 k
  Accuracy accuracy = {};
  double relative_error = 0;  // of each result, in addition to one chain's error, even if terms cancel; 0: not stated
  std::string bit_class;      // see bit_class_of()
  const SemiringInfo* facts =
      nullptr;              // &semiring_info<S>() (rigel/semiring_info.hpp); null: register_kernel() takes the key's
  bool accumulates = true;  // a chain can start from a value of C
  Transposes transposes = Transposes::no;
  bool raw_launch = false;  // a raw CUDA launch, which run() reports to Kokkos Tools
};

/// A kernel's bit class: "reference" if it promises the reference's bits, else `bit_class`, else its own name. Kernels of one
/// class give identical bits for identical operands, whatever their tiles.
std::string_view bit_class_of(const KernelInfo& info);

inline SemiringId semiring_of(const KernelInfo& info) { return {info.semiring, info.semiring_type}; }

/// What a kernel's cost() determined about a problem, for reuse by its workspace() and run(): one trivially copyable value of
/// up to 64 bytes, of a type that only the kernel knows.
class Plan {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void keep(const T& value) {
    static_assert(sizeof(T) <= sizeof bytes_, "Plan: a plan has at most 64 bytes");
    std::memcpy(bytes_, &value, sizeof(T));
  }
  /// The value that keep() was given, a T.
  template <class T>
  T get() const {
    T value;
    std::memcpy(&value, bytes_, sizeof(T));
    return value;
  }

 private:
  std::byte bytes_[64] = {};
};

/// A kernel for the problems of one operation: its facts, and its functions. Each function gets the kernel itself, hence
/// `info` and `state`.
template <class P>
struct Kernel {
  KernelInfo info;
  /// What its functions need in addition to the problem. It lives until the program ends, after Kokkos::finalize(): release
  /// views in it before, for example in a hook of Kokkos::push_finalize_hook().
  std::shared_ptr<const void> state = {};
  /// Whether it covers the problem, beyond what `info` says (semiring, types, space, architecture, …). Null: it does.
  /// Neither this function nor `cost` reads elements: under batch_invariant the engine also asks about a nominal problem,
  /// which has none.
  Status (*supports)(const Kernel&, const P&) = nullptr;
  /// The predicted time in seconds for a problem that it supports. It may fill the plan.
  double (*cost)(const Kernel&, const P&, Plan&) = nullptr;
  /// The scratch memory that run() needs, given the plan of cost(). Null: none.
  WorkspaceSize (*workspace)(const Kernel&, const P&, const Plan&) = nullptr;
  /// Enqueues the work on the problem's execution space instance, given the plan of cost() and the workspace. The workspace's
  /// host part is valid until it returns.
  void (*run)(const Kernel&, const P&, const Plan&, const Workspace&) = nullptr;
};

/// Selects which kernels to list; default fields match all.
struct Filter {
  std::string_view name = {};  // a whole name or its leading part up to a '.'
  std::string_view operation = {};
  std::string_view semiring = {};
  Scalar element = Scalar::other, accumulator = Scalar::other;
  Spaces spaces = ~0u;
  int compute_capability = 0;
};

/// The registered kernels that match the filter, operation by operation, in the order of their registration.
std::vector<KernelInfo> kernels(const Filter& filter = {});

/// The kernels of one operation. Backends fill it when the library first needs them.
template <class P>
class Registry {
 public:
  /// Adds a kernel, whose address is then fixed for the life of the registry. Throws as register_kernel() does.
  void add(const Kernel<P>& kernel);
  /// The kernels of one key, in the order of their registration.
  std::span<const Kernel<P>* const> find(const typename P::Key& key) const;
  /// All kernels in the order of their registration.
  std::span<const std::unique_ptr<const Kernel<P>>> all() const { return kernels_; }

 private:
  std::vector<std::unique_ptr<const Kernel<P>>> kernels_;
  std::map<typename P::Key, std::vector<const Kernel<P>*>> by_key_;
};

// ---- for each operation: contract() ----------------------------------------------------------------------------------

/// Adds a kernel, which contract() then considers like any other. It serves calls with the semiring that `info` names, if that
/// is one of Rigel's own with these types, or with the user's type `info.semiring_type`. Throws Error(invalid_argument) if its
/// info is inconsistent (no run or cost function, no space, a tile of negative extents, an unknown semiring, …), and
/// Error(duplicate) if a kernel has that name already.
void register_kernel(const Kernel<Contraction>& kernel);

/// Whether a kernel covers a problem: all conditions together but the bit class, which the choice of other kernels decides.
Status supports(const Kernel<Contraction>& kernel, const Contraction& problem);

/// The predicted time in seconds of a kernel for a problem that it covers. It is at least the time that memory takes to
/// deliver each byte of A and B once and to take each byte of C.
double predicted_seconds(const Kernel<Contraction>& kernel, const Contraction& problem);

/// The chosen kernel: the one with the least predicted time among those that cover the problem.
///
/// Under Promise::batch_invariant only kernels of one bit class count, that of the fastest kernel for the nominal problem
/// (Contraction::nominal()). So the class depends neither on M, nor on batches, layouts or the number of multiprocessors; the
/// real M decides which tile of the class runs.
///
/// Throws Error(unsupported) with every candidate's reason if no kernel covers the problem; under batch_invariant also if none
/// of the class does, since other bits are no fallback. Throws Error(not_found) if no kernel has the name that the problem
/// asks for.
const Kernel<Contraction>& select(const Contraction& problem);

/// A kernel and its answer to one problem.
template <class P>
struct Candidate {
  const Kernel<P>* kernel = nullptr;
  Status status = {};   // whether select() considers it, or why not
  bool chosen = false;  // whether select() returns it
  double seconds = 0;   // predicted_seconds(), if select() considers it
  WorkspaceSize workspace = {};
  std::string admission =
      {};  // the rule by which options.precision admits a kernel that rounds terms; empty: it rounds none
};

/// Every kernel of the problem's key in the order of registration, then those instantiated in the caller's translation unit, then those of
/// providers (rigel/outside_kernels.hpp).
std::vector<Candidate<Contraction>> candidates(const Contraction& problem);

/// candidates() as text, a line each; '*' marks the chosen one.
std::string explain(const Contraction& problem);

/// Checks the problem, selects a kernel and enqueues it. Throws as check() and select() do, and
///   - Error(unsupported) if the execution space cannot launch from here (Kokkos::Threads, see contract());
///   - Error(invalid_argument) if the caller's workspace is too small or misaligned;
///   - Error(out_of_memory) if the pool, which serves calls without a workspace, gets no memory from the system;
///   - Error(invalid_argument) if a call without a workspace needs one and the pool cannot serve it: on an execution space
///     that is neither the host's nor CUDA's, and on a stream that is being captured in a CUDA graph, if presize()
///     (rigel/presize.hpp) has not reserved enough memory for it.
void run(const Contraction& problem);

/// The same with a kernel of the caller's choice. Throws Error(unsupported) with the reason if it does not cover the problem, or
/// under batch_invariant is not of the class that a choice would have. A kernel that delegates to another one clears `require` and
/// `kernel` in its copy of the problem.
void run(const Kernel<Contraction>& kernel, const Contraction& problem);

/// The scratch memory that run() needs for this problem.
WorkspaceSize workspace_size(const Contraction& problem);

// ---- for all operations ----------------------------------------------------------------------------------------------

/// The result of verify().
struct Verification {
  bool ok = true;
  int problems = 0;  // how many were run
  /// FNV-1a of all results: equal if a kernel gives the same values for the same seed.
  std::uint64_t digest = 0xcbf29ce484222325;
  std::string report = {};  // the first failures, each with its seed and extents
};

/// Holds a registered kernel to its promises, against the reference, on the problem grid that docs/design.md describes: sizes
/// 0, 1, tile ± 1 and primes, layouts, batches, accumulation, epilogues, NaN and infinities. rigel/outside_kernels.hpp takes any kernel.
///
/// Throws Error(not_found) if no kernel has that name, and Error(unsupported) if the kernel covers no problem in any of this
/// machine's execution spaces, or if its semiring lacks a fact that is needed (semiring_info.hpp): a sample object, or an
/// error model if the kernel is held to a bound. If Kokkos's host space is Kokkos::Threads, it throws where contract() does.
Verification verify(std::string_view kernel, unsigned seed = 1);

/// Returns the pool's memory to the system, except memory that calls are using. On CUDA it also keeps the memory of calls
/// whose end the host has not waited for. Any thread may call it at any time; it waits for no device and never throws.
/// Kokkos::finalize() does not call it. The pool is also emptied at the end of the program, and when the shared object that
/// contains it is unloaded.
void release_workspaces() noexcept;

}  // namespace rigel

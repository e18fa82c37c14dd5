// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem of the solves (rigel/linalg.hpp): a batch of n × n matrices is factorised, and systems with these matrices are
// solved, as the engine sees it.
#pragma once

#include <rigel/registry.hpp>

namespace rigel {

namespace detail {
struct Refinement;
}

/// How a matrix is factorised: A = L·Lᵀ, P·A = L·U, or A = V·diag(w)·Vᵀ.
enum class Factorisation : std::uint8_t { cholesky, lu, eigen };
/// The name by which a KernelInfo of this operation says what its kernel does, in its member `semiring`.
constexpr const char* name(Factorisation f) {
  constexpr const char* names[] = {"cholesky", "lu", "eigen"};
  return names[static_cast<int>(f)];
}

/// The triangle of a symmetric matrix that is read. The other one is not.
enum class Triangle : std::uint8_t { lower, upper };

/// One call as plain data: everything that a kernel needs to know.
struct Solve : Call {
  static constexpr const char* operation = "solve";

  enum class Task : std::uint8_t {
    factor,      // X = the factor L (or U = Lᵀ, in the upper triangle), zeros elsewhere; eigen: X = V and W = w
    substitute,  // X = (L·Lᵀ)⁻¹·B, A holds the factor
    solve        // X = A⁻¹·B
  };

  Factorisation factorisation = Factorisation::cholesky;
  Task task = Task::solve;
  Triangle triangle = Triangle::lower;
  Scalar element = Scalar::other;
  std::int64_t batch = 1, n = 0, right_sides = 0;
  Operand a{.argument = "A"}, b{.argument = "B"}, x{.argument = "X"};  // n × n; n × right_sides; as the task says
  Operand values{.argument = "W"};                                     // eigen: n × 1, ascending
  Operand infos{.argument = "info"};               // int32, 1 × 1 for each system; without data: nobody wants them
  bool overwrite_a = false;                        // A's memory may be used: X may be A, or A is unspecified afterwards
  bool overwrite_b = false;                        // X may be B
  int refine = 0;                                  // sweeps of refinement in double, of a solution in float
  const detail::Refinement* refinement = nullptr;  // for a space that the library is not compiled for; else null
  std::span<const Kernel<Solve>> instantiated;     // kernels instantiated in the caller's translation unit

  /// What a kernel and a problem must have in common before the kernel is asked anything.
  struct Key {
    std::string_view factorisation;
    Scalar element;
    auto operator<=>(const Key&) const = default;
  };
  Key key() const { return {name(factorisation), element}; }
  static Key key_of(const KernelInfo& info) { return {info.semiring, info.element}; }
  /// Whether a kernel can be registered for this operation: it must name a factorisation.
  static Status accepts(const KernelInfo& info);

  /// Throws Error(invalid_argument) unless the problem is well formed: extents and batches match, and what is written overlaps
  /// neither itself nor anything else, unless it is A or B itself and may overwrite it.
  void check() const;
  /// Whether there is nothing to compute. n = 0 still sets the infos.
  bool is_empty() const { return batch == 0; }
  /// Every kernel of the key rounds as its element type does, and takes all layouts.
  Decline admits(const KernelInfo&) const { return Decline::none; }
  std::string why_not(Decline, const KernelInfo&) const { return {}; }
  std::string admission(const KernelInfo&) const { return {}; }
  /// A lower bound of the bytes that memory reads and writes.
  double memory_bytes() const;
  /// The nominal problem under Promise::batch_invariant: one contiguous system with one right side.
  Solve nominal() const;
  /// The problem in words: "cholesky f32, 64x64, 16 right sides".
  std::string summary() const;
};

/// As for Contraction, in rigel/registry.hpp.
void register_kernel(const Kernel<Solve>& kernel);
Status supports(const Kernel<Solve>& kernel, const Solve& problem);
double predicted_seconds(const Kernel<Solve>& kernel, const Solve& problem);
const Kernel<Solve>& select(const Solve& problem);
std::vector<Candidate<Solve>> candidates(const Solve& problem);
std::string explain(const Solve& problem);
void run(const Solve& problem);
void run(const Kernel<Solve>& kernel, const Solve& problem);
WorkspaceSize workspace_size(const Solve& problem);

namespace detail {

/// As for Contraction, in rigel/detail/keep.hpp.
std::span<const Kernel<Solve>> keep(std::vector<Kernel<Solve>> kernels);

/// Throws Error(invalid_argument) if a system failed, by the infos of a call that is complete, as host memory.
void require_solved(const Solve& problem, const std::int32_t* infos);

/// A KernelInfo with factorisation, type and name: "family.cholesky.f32[.variant]".
KernelInfo solve_info(std::string_view family, std::string_view variant, Factorisation factorisation, Scalar element,
                      Spaces spaces);

/// Additions and multiplications of a call: n³/3 for Cholesky, 2n³/3 for LU, 9n³ for eigenvectors by tridiagonal matrices, and
/// 2n² for each right side (G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed.).
double solve_operations(const Solve& problem);

}  // namespace detail

}  // namespace rigel

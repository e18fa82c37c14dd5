// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem of contract_gradient() (rigel/gradient.hpp), as the engine sees it:
//
//     Out(l,o,n,m) = ⊕_k accumulate(C(l,o,k), multiply(D(l,n,m), B(l,n,k), A(l,k,m)))
#pragma once

#include <rigel/registry.hpp>

namespace rigel {

/// One call as plain data: everything that a kernel needs to know.
struct Gradient : Call {
  static constexpr const char* operation = "gradient";

  SemiringId functor;  // Rigel's own by name, a user's by type
  Scalar element = Scalar::other, accumulator = Scalar::other;
  std::int64_t batch = 1, outputs = 0, n = 0, m = 0, k = 0;  // outputs: the index o
  Operand a{.argument = "A"}, b{.argument = "B"}, c{.argument = "C"},
      d{.argument = "D"};          // k × m, n × k, outputs × k, n × m
  Operand out{.argument = "Out"};  // n × m matrices of one o, a batch of them …
  std::int64_t out_stride = 0;     // … for each o, this many elements apart
  const void* functor_object = nullptr;
  bool accumulate = false;
  bool may_cancel = false;  // p = 2: sums that are relative to the points' distances from a mean point are kept
  std::span<const Kernel<Gradient>> instantiated;  // kernels instantiated in the caller's translation unit

  /// What a kernel and a problem must have in common before the kernel is asked anything.
  struct Key {
    const void* functor_type;
    std::string_view functor;  // empty for a user's type, whose name need not be unique
    Scalar element, accumulator;
    auto operator<=>(const Key&) const = default;
  };
  Key key() const { return {functor.type, functor.type ? std::string_view{} : functor.name, element, accumulator}; }
  static Key key_of(const KernelInfo& info) {
    return {info.semiring_type, info.semiring_type ? std::string_view{} : std::string_view(info.semiring), info.element,
            info.accumulator};
  }
  /// Whether a kernel can be registered for this operation: it must name a functor.
  static Status accepts(const KernelInfo& info);

  /// Throws Error(invalid_argument) unless the problem is well formed: extents match, batches are equal or broadcast, and Out
  /// overlaps neither an input nor itself.
  void check() const;
  /// Whether there is nothing to compute. K = 0 gives the identity.
  bool is_empty() const { return batch == 0 || outputs == 0 || n == 0 || m == 0; }
  /// Why a kernel's info rules it out for this problem: it rounds terms more than the call accepts.
  Decline admits(const KernelInfo& info) const;
  std::string why_not(Decline why, const KernelInfo& info) const;
  std::string admission(const KernelInfo& info) const;
  /// A lower bound of the bytes that memory reads and writes.
  double memory_bytes() const;
  /// The nominal problem under Promise::batch_invariant, which stands for all with the same N, K and outputs: one contiguous matrix
  /// of 1024 columns m.
  Gradient nominal() const;
  /// The problem in words: "manhattan f32, 16x512x1024, k 8192".
  std::string summary() const;
};

/// As for Contraction, in rigel/registry.hpp.
void register_kernel(const Kernel<Gradient>& kernel);
Status supports(const Kernel<Gradient>& kernel, const Gradient& problem);
double predicted_seconds(const Kernel<Gradient>& kernel, const Gradient& problem);
const Kernel<Gradient>& select(const Gradient& problem);
std::vector<Candidate<Gradient>> candidates(const Gradient& problem);
std::string explain(const Gradient& problem);
void run(const Gradient& problem);
void run(const Kernel<Gradient>& kernel, const Gradient& problem);
WorkspaceSize workspace_size(const Gradient& problem);

namespace detail {

/// As for Contraction, in rigel/detail/keep.hpp.
std::span<const Kernel<Gradient>> keep(std::vector<Kernel<Gradient>> kernels);

}  // namespace detail

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels from outside that are not registered one by one: providers, which make kernels when a problem needs them; candidates that a
// condition of the caller's selects; and verify() of any kernel. registry.hpp has register_kernel().
#pragma once

#include <rigel/registry.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rigel {

struct Solve;
struct Gradient;
struct Reduction;

/// A kernel that lives as long as anything uses it.
using KernelOwner = std::shared_ptr<const Kernel<Contraction>>;

/// A condition on a kernel's facts.
using KernelPredicate = std::function<bool(const KernelInfo&)>;

/// The same kernel on its own, complete and checked as register_kernel() would check it. Throws Error(invalid_argument) as that does.
KernelOwner make_kernel(const Kernel<Contraction>& kernel);

/// Makes kernels for a problem: those that cover it and whose facts are wanted. What is not wanted need not be made, so a provider that
/// compiles writes down a kernel's facts first, asks, and compiles then. The engine leaves out what it did not want, and kernels of other
/// semirings or types.
///
/// It reads no elements, and none of the problem's addresses but to see how they are aligned: under batch_invariant the engine also asks about
/// a nominal problem. Each call of contract() without a kernel of its own asks, from several threads at once, so a provider keeps what it has
/// made and returns the same object for the same kernel. Calls that a provider makes ask no provider.
using Provider = std::function<std::vector<KernelOwner>(const Contraction& problem, const KernelPredicate& wanted)>;

/// Adds a provider, whose kernels contract() then considers after the registered ones. Its name is the family of its kernels: a call that names
/// kernels of other families (`options.kernel`) does not ask it.
///
/// A call throws Error with the provider's name if the provider throws: with the code of that Error, or else `unsupported`; and
/// Error(invalid_argument) or Error(duplicate) if it yields a null pointer, a kernel with inconsistent facts or of another family, or two
/// kernels of one name.
///
/// Throws Error(invalid_argument) if the name is empty or has a '|', or if there is no function; Error(duplicate) if a provider has that name.
void register_provider(const std::string& name, Provider provider);

/// Removes a provider. Calls that run finish with its kernels. Kernels live on in what holds them: a Pinned, a Discovery; and for the rest of the
/// program in what select() and candidates(problem) have returned. Returns whether there was one.
bool unregister_provider(std::string_view name);

/// The providers' names, in the order of their registration.
std::vector<std::string> providers();

/// A kernel's answer to a problem, with the kernel.
struct OwnedCandidate : Candidate<Contraction> {
  KernelOwner
      owner;  // of `kernel`; a kernel of Rigel's, a registered one, and one that came with the problem live on without it
};

/// The kernels that a predicate selects.
struct Discovery {
  /// Those that cover the problem, the one with the least predicted time first, which is `chosen`; then the others.
  std::vector<OwnedCandidate> kernels;
  /// The problem, a line for each kernel as in explain(), and how many kernels there are to select from.
  std::string explanation;
};

/// The kernels for a problem that a predicate selects among those that are registered, came with the problem, or that providers offer, which make
/// only these.
///
///     const auto found = rigel::candidates(problem, [](const rigel::KernelInfo& info) { return info.tile.m == 256; });
///     if (!found.kernels.empty() && found.kernels[0].chosen) rigel::Pinned(found.kernels[0].owner, problem).run();
///
/// Throws Error(invalid_argument) if the predicate is empty, and as providers do.
Discovery candidates(const Contraction& problem, const KernelPredicate& predicate);

/// verify() of a kernel, registered or not. Throws Error(invalid_argument) if its facts are inconsistent, and as the other one does.
Verification verify(const Kernel<Contraction>& kernel, unsigned seed = 1);
Verification verify(const Kernel<Solve>& kernel, unsigned seed = 1);
Verification verify(const Kernel<Gradient>& kernel, unsigned seed = 1);
Verification verify(const Kernel<Reduction>& kernel, unsigned seed = 1);

}  // namespace rigel

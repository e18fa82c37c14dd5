// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Providers of kernels, and what they make for one problem.
#pragma once

#include "registry.hpp"

#include <rigel/outside_kernels.hpp>

#include <span>
#include <string>
#include <vector>

namespace rigel::engine {

/// The kernels that providers make for one contraction, of its key. They live as long as this object.
class Provided {
 public:
  /// A provider's name, and the names of the kernels that it asked about or made.
  struct Offer {
    std::string provider;
    std::vector<std::string> names;
  };

  /// Asks the providers, unless they have been asked. Throws as register_provider() says of calls.
  void ask(const Contraction& p, const KernelPredicate& wanted) {
    if (!asked_) ask(p, wanted, nullptr);
  }
  /// The same, which has not been done yet, and notes what they offer.
  void ask(const Contraction& p, const KernelPredicate& wanted, std::vector<Offer>* offers);

  std::span<const KernelOwner> kernels() const { return kernels_; }
  /// The owner of one of the kernels; of another kernel a pointer that owns nothing.
  KernelOwner owner_of(const Kernel<Contraction>* kernel) const;

  /// Keeps a kernel of another problem's, which is no candidate, for as long.
  void keep(const Provided& other, const Kernel<Contraction>* kernel) {
    if (!other.kernels_.empty()) kept_.push_back(other.owner_of(kernel));
  }
  /// Keeps no other kernel.
  void keep_only(const Kernel<Contraction>* kernel);
  /// Keeps a kernel, or all, for the rest of the program.
  void keep_for_ever(const Kernel<Contraction>* kernel = nullptr) const;

 private:
  bool asked_ = false;
  std::vector<KernelOwner> kernels_, kept_;
};

}  // namespace rigel::engine

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functors of gradients from text.
#pragma once

#include "calls.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <string>

namespace rigel::python {

/// The texts of a functor, and one object of librigel_c's for each type of elements that it has been used with. Values of hyperparameters go
/// with each call, so that the objects never change.
class TextDerivative {
 public:
  /// `texts`: multiply, accumulate, add, identity, result.
  TextDerivative(nb::handle name, nb::handle texts, nb::handle parameters);
  rigel_derivative* of(rigel_type type);
  /// For the device of an array, or for the host.
  void compile(rigel_type type, nb::handle like);

 private:
  struct Destroy {
    void operator()(rigel_derivative* derivative) const { rigel_derivative_destroy(derivative); }
  };
  rigel_derivative* create(rigel_type type) const;

  std::string name_;
  std::array<std::string, 5> texts_;
  Parameters parameters_;
  std::mutex mutex_;
  std::array<std::unique_ptr<rigel_derivative, Destroy>, RIGEL_U64 + 1> objects_;
};

/// Defines _core.TextDerivative.
void define_derivatives(nb::module_& m);

}  // namespace rigel::python

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functors of gradients of distances, with a type that is known at run time.
#pragma once

#include "operands.hpp"

#include <rigel/gradient_of.hpp>
#include <rigel/gradient_problem.hpp>

namespace rigel::c {

/// A problem with a functor, which outlives it.
template <class Functor>
Gradient with_functor(Gradient p, const Functor& functor) {
  static_assert(detail::is_compiled_gradient<Functor>);
  p.functor = {gradient_name<Functor>(), gradient_type<Functor>()};
  p.element = rigel::scalar_of<typename Functor::element>;
  p.accumulator = rigel::scalar_of<typename Functor::accumulator>;
  p.functor_object = &functor;
  return p;
}

/// use.template operator()<T>() with float or double, as the type says.
template <class Use>
void with_float_or_double(Scalar type, const Use& use) {
  if (type == Scalar::f32)
    use.template operator()<float>();
  else
    use.template operator()<double>();
}

/// Throws Error(invalid_argument) unless epsilon is a finite number, 0 or more.
void require_epsilon(double epsilon);

}  // namespace rigel::c

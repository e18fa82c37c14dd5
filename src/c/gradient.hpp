// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functors of gradients of distances, with a type that is known at run time, and the parts that gradients of kernels share.
#pragma once

#include "kernel_functions.hpp"
#include "operands.hpp"

#include <rigel/gradient.hpp>

#include <utility>

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

/// Sets the operands of a problem and its extents. `output_stride`: elements of Out from one o to the next; 0: those of a matrix.
void set_operands(Gradient& p, const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                  const rigel_matrix* out, std::int64_t output_stride);

/// Throws Error(invalid_argument) unless epsilon is a finite number, 0 or more.
void require_epsilon(double epsilon);

/// The hyperparameters of a kernel, and where their gradients go.
void set_hyperparameters(detail::KernelMatrixGradient& call, const NamedKernel& kernel,
                         const rigel_hyperparameter_gradient* gradients, std::int32_t count);

/// The distances of X and Z, and p, of a metric that has gradients. `distances` outlives the call.
void set_gradient_distances(detail::KernelMatrixGradient& call, Distances& distances, const rigel_handle& handle,
                            const rigel_options& options, const MetricName& metric, const char* function);

/// The options of a call whose parts have kernels of their own.
void require_no_kernel(const rigel_options& options);

/// use(call) with the patterns of its sums of differences, or products.
template <class Use>
void with_sums(const detail::KernelMatrixGradient& call, double epsilon, bool may_cancel, const Use& use) {
  // Patterns: the driver sets operands and workspaces.
  detail::KernelMatrixGradient whole = call;
  Call part = call.distances;
  part.workspace = {};
  if (call.p == 0) {
    const Semiring semiring = semiring_of("plus_times", call.x.type, 0, {});
    const epilogue::Program none;
    Contraction& product = whole.of_product.emplace();
    static_cast<Call&>(product) = part;
    semiring.set_in(product);
    product.program = &none;
    product.epilogue_object = &none;
    return use(whole);
  }
  with_float_or_double(call.x.type, [&]<class Element>() {
    detail::with_gradient_of<Kokkos::DefaultHostExecutionSpace, Element>(call.p, epsilon, 0, [&](const auto& functor) {
      Gradient differences;
      static_cast<Call&>(differences) = part;
      differences.may_cancel = may_cancel;
      whole.of_distance = with_functor(differences, functor);
      use(whole);
    });
  });
}

}  // namespace rigel::c

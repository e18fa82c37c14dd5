// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The facts that a semiring states, as data for code that knows types at run time only, such as verify(), tools and bindings.
#pragma once

#include <rigel/semirings.hpp>

#include <span>

namespace rigel {

/// The facts of one semiring type S.
struct SemiringInfo {
  std::string_view name;       // semiring_name<S>()
  const void* type = nullptr;  // semiring_type<S>(): null for Rigel's own
  Scalar element = Scalar::other, operand = Scalar::other, accumulator = Scalar::other,
         result = Scalar::other;  // Scalar::other stands for a struct or a type that Rigel does not know
  Domain domain = Domain::any;
  ErrorModel errors = ErrorModel::unknown;
  Join join = Join::none;
  bool commutative = false, idempotent = false, selective = false, exact = false, transcendental = false;
  std::span<const Hyperparameter> hyperparameters = {};
  std::size_t size = 0;          // bytes of an object
  const void* sample = nullptr;  // an object with typical hyperparameters; null if there is none
};

namespace detail {

// The hyperparameters of S, in static storage.
template <class S>
std::span<const Hyperparameter> hyperparameters_of() {
  if constexpr (speaks_for_itself<S> && requires { std::span<const Hyperparameter>(S::hyperparameters()); }) {
    static const auto list = S::hyperparameters();
    return list;
  } else {
    return {};
  }
}

// S::sample(), or a default-constructed S, in static storage; null if S has neither.
template <class S>
const void* sample_of() {
  if constexpr (speaks_for_itself<S> && requires {
                  { S::sample() } -> std::same_as<S>;
                }) {
    static const S object = S::sample();
    return &object;
  } else if constexpr (std::is_default_constructible_v<S>) {
    static const S object{};
    return &object;
  } else {
    return nullptr;
  }
}

}  // namespace detail

/// The facts of S: what S states, and defaults for the rest. The reference stays valid for the life of the program.
template <Semiring S>
const SemiringInfo& semiring_info() {
  static const SemiringInfo info{.name = semiring_name<S>(),
                                 .type = semiring_type<S>(),
                                 .element = scalar_of<typename S::element>,
                                 .operand = scalar_of<operand_t<S>>,
                                 .accumulator = scalar_of<typename S::accumulator>,
                                 .result = scalar_of<result_t<S>>,
                                 .domain = domain_of<S>,
                                 .errors = error_model_of<S>,
                                 .join = join_of<S>,
                                 .commutative = is_commutative<S>,
                                 .idempotent = is_idempotent<S>,
                                 .selective = is_selective<S>,
                                 .exact = is_exact<S>,
                                 .transcendental = is_transcendental<S>,
                                 .hyperparameters = detail::hyperparameters_of<S>(),
                                 .size = sizeof(S),
                                 .sample = detail::sample_of<S>()};
  return info;
}

}  // namespace rigel

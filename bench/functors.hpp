// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a user brings, as subjects of random problems: a functor whose accumulator is a struct, and with_argument. Their kernels
// are instantiated here.
#pragma once

#include <bench/problems.hpp>
#include <rigel/contract.hpp>

namespace bench {

/// C(m,n) = the second-least A(m,k) + B(k,n) over k.
struct second_least {
  struct accumulator {
    float least, second;
  };
  using element = float;
  static constexpr const char* name = "second_least";
  static constexpr bool commutative = true, exact = true;
  KOKKOS_FUNCTION static accumulator identity() { return {rigel::infinity<float>(), rigel::infinity<float>()}; }
  KOKKOS_FUNCTION accumulator multiply(float a, float b) const { return {a + b, rigel::infinity<float>()}; }
  KOKKOS_FUNCTION accumulator add(accumulator x, accumulator y) const {
    const float larger = Kokkos::max(x.least, y.least);
    return {Kokkos::min(x.least, y.least), Kokkos::min(larger, Kokkos::min(x.second, y.second))};
  }
  KOKKOS_FUNCTION static float result(accumulator x) { return x.second; }
};

namespace detail {

// An operand as a view of rank 3.
template <class T>
auto view_of(const rigel::Operand& o) {
  using View = Kokkos::View<T***, Kokkos::LayoutStride, Exec::memory_space, Kokkos::MemoryUnmanaged>;
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  return View(static_cast<T*>(o.data),
              Kokkos::LayoutStride(size(o.batches), size(std::max<std::int64_t>(o.batch_stride, 1)), size(o.rows),
                                   size(o.row_stride), size(o.columns), size(o.column_stride)));
}

// The call p of S through the front end.
template <class S, class Epilogue>
std::shared_ptr<const rigel::Contraction> bind(const Exec& exec, const rigel::Contraction& p, const Epilogue& epilogue) {
  using Element = typename S::element;
  const auto a = view_of<const Element>(p.a), b = view_of<const Element>(p.b);
  const auto c = view_of<Element>(p.c);
  return std::shared_ptr<const rigel::Contraction>(
      new auto(rigel::problem_of(exec, S{}, a, b, c, epilogue, {.require = p.require, .precision = p.precision})));
}

template <class S>
Subject subject(const char* semiring) {
  rigel::KernelInfo info;
  info.semiring = semiring;
  info.semiring_type = rigel::semiring_type<S>();
  info.element = rigel::scalar_of<typename S::element>;
  info.facts = &rigel::semiring_info<S>();
  return {.semiring = semiring, .reference = info, .result = info.element};
}

}  // namespace detail

/// The subjects that the zoo lacks.
inline std::vector<Subject> functors() {
  using Nearest = rigel::with_argument<rigel::min_plus<float>>;
  Subject own = detail::subject<second_least>("second_least"), nearest = detail::subject<Nearest>("with_argument(min_plus)");
  own.bind = [](const Exec& exec, const rigel::Contraction& p, std::int32_t*) {
    return detail::bind<second_least>(exec, p, rigel::epilogue::Program{});
  };
  nearest.bytes_of_index = sizeof(std::int32_t);
  nearest.bind = [](const Exec& exec, const rigel::Contraction& p, std::int32_t* indices) {
    using Indices = Kokkos::View<std::int32_t***, Kokkos::LayoutRight, Exec::memory_space, Kokkos::MemoryUnmanaged>;
    const Indices view(indices, static_cast<std::size_t>(p.batch), static_cast<std::size_t>(p.m),
                       static_cast<std::size_t>(p.n));
    return detail::bind<Nearest>(exec, p, rigel::epilogue::arguments(view));
  };
  return {own, nearest};
}

}  // namespace bench

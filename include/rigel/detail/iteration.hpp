// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sinkhorn(), kmeans() and kernel_solve() share: iterations that a host drives on an execution space. Arrays in one workspace, sums whose
// order does not depend on the space, and numbers that travel to the host.
#pragma once

#include <rigel/detail/call.hpp>
#include <rigel/detail/call_memory.hpp>
#include <rigel/detail/capture.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rigel::detail {

/// Where arrays stand whose memory is not known yet: aligned as workspaces are, and overlapping no operand.
inline constexpr std::uintptr_t nominal_workspace = (std::uintptr_t{1} << 61) + workspace_alignment;

/// Arrays one after the other from an address on, as views of an execution space.
template <class Exec>
class ArraysAt {
 public:
  template <class T>
  using Vector = Kokkos::View<T*, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;
  template <class T>
  using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, typename Exec::memory_space, Kokkos::MemoryUnmanaged>;

  explicit ArraysAt(std::uintptr_t base) : base_(base) {}
  template <class T>
  Vector<T> vector(std::int64_t count) {
    return {place<T>(count), static_cast<std::size_t>(count)};
  }
  template <class T>
  Matrix<T> matrix(std::int64_t rows, std::int64_t columns) {
    return {place<T>(rows * columns), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  }
  std::size_t bytes() const { return layout_.bytes(); }
  /// So many bytes after the arrays.
  Workspace rest(std::size_t bytes_of_rest) const {
    return {.data = reinterpret_cast<void*>(base_ + bytes()), .bytes = bytes_of_rest};
  }

 private:
  template <class T>
  T* place(std::int64_t count) {
    return reinterpret_cast<T*>(base_ + layout_.add(count, sizeof(T)));
  }
  std::uintptr_t base_;
  WorkspaceLayout layout_;
};

/// Refuses a stream that is being captured.
inline void require_waiting(const Call& call) {
  require_no_capture(call.execution, call.function, "another one, as the call waits in each step");
}

/// Calls work(i) for i < count.
template <class Exec, class Work>
void for_each_index(const Exec& exec, const char* label, std::int64_t count, const Work& work) {
  Kokkos::parallel_for(label, by_argument(Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count)), work);
}

/// The numbers of a contiguous view on the host, once the work before them is complete.
template <class Exec, class T>
std::vector<std::remove_const_t<T>> to_host(
    const Exec& exec, const Kokkos::View<T*, typename Exec::memory_space, Kokkos::MemoryUnmanaged>& from) {
  using Value = std::remove_const_t<T>;
  std::vector<Value> numbers(from.extent(0));
  if (numbers.empty()) return numbers;
  Kokkos::deep_copy(exec, Kokkos::View<Value*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(numbers.data(), numbers.size()),
                    from);
  exec.fence("rigel: numbers for the host");
  return numbers;
}
/// The same from the host. The numbers may change when it returns.
template <class Exec, class T>
void to_space(const Exec& exec, const std::vector<T>& numbers,
              const Kokkos::View<T*, typename Exec::memory_space, Kokkos::MemoryUnmanaged>& to) {
  if (numbers.empty()) return;
  Kokkos::deep_copy(exec, to,
                    Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(numbers.data(), numbers.size()));
  exec.fence("rigel: numbers of the host");
}

/// ⊞_i term(i, c), i < count, for columns c < columns, in double, where join is ⊞ and `identity` its identity: part j joins i = j,
/// j + ordered_parts, … in ascending order, then the parts are joined in ascending order. So the bits depend on the terms alone. `parts` holds
/// ordered_parts·columns numbers.
inline constexpr std::int64_t ordered_parts = 1024;
template <class Exec, class Term, class Join>
std::vector<double> ordered_reduction(const Exec& exec, const char* label, std::int64_t count, std::int64_t columns,
                                      const typename ArraysAt<Exec>::template Vector<double>& parts, const Term& term,
                                      double identity, const Join& join) {
  for_each_index(
      exec, label, ordered_parts * columns, KOKKOS_LAMBDA(const std::int64_t item) {
        const std::int64_t column = item / ordered_parts;
        double all = identity;
        for (std::int64_t i = item % ordered_parts; i < count; i += ordered_parts) all = join(all, term(i, column));
        parts(static_cast<std::size_t>(item)) = all;
      });
  const std::vector<double> all = to_host(exec, typename ArraysAt<Exec>::template Vector<double>(
                                                    parts.data(), static_cast<std::size_t>(ordered_parts * columns)));
  std::vector<double> results(static_cast<std::size_t>(columns), identity);
  for (std::size_t i = 0; i < all.size(); ++i) results[i / ordered_parts] = join(results[i / ordered_parts], all[i]);
  return results;
}

struct Sum {
  RIGEL_MEMBER double operator()(double x, double y) const { return x + y; }
};
/// NaN stays.
struct Largest {
  RIGEL_MEMBER double operator()(double x, double y) const { return y > x || y != y ? y : x; }
};

/// Σ_i term(i, c).
template <class Exec, class Term>
std::vector<double> ordered_sums(const Exec& exec, const char* label, std::int64_t count, std::int64_t columns,
                                 const typename ArraysAt<Exec>::template Vector<double>& parts, const Term& term) {
  return ordered_reduction(exec, label, count, columns, parts, term, 0, Sum{});
}

}  // namespace rigel::detail

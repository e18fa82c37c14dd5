// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// closure() refuses semirings of integers that do not define "no path", and a D of bool whose bytes could become other than 0
// and 1.
#include <rigel/closure.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::HostSpace>;

// Widest paths, without annihilator().
struct Widest {
  using element = int;
  using accumulator = int;
  static constexpr bool idempotent = true, selective = true, exact = true;
  KOKKOS_FUNCTION static int identity() { return 0; }
  KOKKOS_FUNCTION static int one() { return 1 << 30; }
  KOKKOS_FUNCTION static int multiply(int a, int b) { return a < b ? a : b; }
  KOKKOS_FUNCTION static int add(int x, int y) { return x > y ? x : y; }
};
// A user may take the name of one of Rigel's semirings. This one defines "no path".
struct Named : Widest {
  static constexpr const char* name = "min_times";
  KOKKOS_FUNCTION static bool is_no_path(int x) { return x == 0; }
};
struct Bytes {
  using element = unsigned char;
  using accumulator = unsigned char;
  static constexpr bool idempotent = true, exact = true;
  KOKKOS_FUNCTION static unsigned char identity() { return 0; }
  KOKKOS_FUNCTION static unsigned char annihilator() { return 0; }
  KOKKOS_FUNCTION static unsigned char one() { return 255; }
  KOKKOS_FUNCTION static unsigned char multiply(unsigned char a, unsigned char b) { return a & b; }
  KOKKOS_FUNCTION static unsigned char add(unsigned char x, unsigned char y) { return x | y; }
};

}  // namespace

// expected-error@rigel/closure.hpp:* 2 {{by annihilator() where identity() absorbs, else by is_no_path(x)}}
void no_path(const Matrix<int>& d) {
  rigel::closure(Exec(), Widest{}, d);
  rigel::closure(Exec(), rigel::min_times<int>{}, d);
  rigel::closure(Exec(), Named{}, d);
}

// expected-error@rigel/closure.hpp:* 1 {{D of bool is read and written as bytes, which only or_and<std::uint8_t> keeps 0 or 1}}
void bools(const Matrix<bool>& d) {
  rigel::closure(Exec(), Bytes{}, d);
  rigel::closure(Exec(), rigel::or_and<std::uint8_t>{}, d);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Digests of Tier::scalar for fixed inputs. They are the same on every execution space, host and GPU.
#include "layer.hpp"

#include <tests/support/spaces.hpp>

#include <cstdio>

namespace {

using layer::Activation, layer::Stored, layer::Tensor, layer::Values;
using rigel::bfloat16;

struct Digests {
  std::uint64_t forward[5];  // Y for each activation
  std::uint64_t input[5];    // dX for each
  std::uint64_t weight, bias, preactivation;
  bool operator==(const Digests&) const = default;
};

template <class T, class Exec>
Digests digests() {
  constexpr std::size_t m = 67, n = 45, k = 203;
  const Exec exec;
  const Tensor<T, Exec> x(1, m, k, Stored::by_rows, "x", layer::random<T>(m * k, 11)),
      w(1, k, n, Stored::by_columns, "w", layer::random<T>(k * n, 12)),
      dy(1, m, n, Stored::by_rows, "dy", layer::random<T>(m * n, 13)),
      before(1, m, k, Stored::by_rows, "before", layer::random<T>(m * k, 14));
  const auto bias = layer::rows<Exec>(1, n, layer::random<float>(n, 15)),
             db = layer::rows<Exec>(1, n, layer::random<float>(n, 16));
  const Tensor<float, Exec> dw(1, k, n, Stored::by_rows, "dw", layer::random<float>(k * n, 17));
  Digests d{};
  for (int i = 0; i < 5; ++i) {
    const Activation a = layer::activations[i];
    const Tensor<T, Exec> y(1, m, n, Stored::by_rows, "y"), z(1, m, n, Stored::by_rows, "z"),
        dx(1, m, k, Stored::by_rows, "dx");
    rigel::linear_forward(exec, x.view(), w.view(), bias, y.view(), z.view(), {.epilogue = a});
    d.forward[i] = layer::digest(y.values());
    d.preactivation = layer::digest(z.values());
    rigel::linear_backward_input(exec, dy.view(), w.view(), dx.view(), before.view(), a);
    d.input[i] = layer::digest(dx.values());
  }
  rigel::linear_backward_weight(exec, x.view(), dy.view(), dw.view(), db);
  d.weight = layer::digest(dw.values());
  d.bias = layer::digest(support::values(db));
  return d;
}

/// The digests as the lines below, for whoever has a reason to change them.
std::string text(const Digests& d) {
  std::string lines;
  const auto add = [&](std::uint64_t x) {
    char number[32];
    std::snprintf(number, sizeof number, "0x%016llx, ", static_cast<unsigned long long>(x));
    lines += number;
  };
  for (const auto x : d.forward) add(x);
  for (const auto x : d.input) add(x);
  add(d.weight), add(d.bias), add(d.preactivation);
  return lines;
}

template <class T>
constexpr Digests stored = {};
// Computed once, by Kokkos::OpenMP on x86-64; the tests of forward and backward hold such results to chains in plain C++.
template <>
constexpr Digests stored<float> = {
    {0x24f909b50d8c3441, 0xf79a7cc6b6c57172, 0xe3d682f516ab5f81, 0x2270d40f077bfb6b, 0x45a9846932d148ad},
    {0x316d322d1899615d, 0x1bb37202f86edd76, 0x25e76b2106afca1c, 0x564a7554a65f7607, 0xa098a67599c70e1b},
    0xaea1c566ff49b5ba,
    0xffc52c3a39653e73,
    0x24f909b50d8c3441};
template <>
constexpr Digests stored<rigel::half> = {
    {0x1183e39e9ffbf32d, 0x37ac0a015b2a9206, 0x33e44f9f29ab087d, 0xce181798aa4f62e3, 0xc4662dd617646146},
    {0x9fb0daa96e5031aa, 0xf33299c563aa71d8, 0xed0758c16c7b4a8e, 0x285711a8e993871f, 0xc27d51e4664a470e},
    0xeb40f496a5d42126,
    0x8d726cbd15df34f7,
    0x1183e39e9ffbf32d};
template <>
constexpr Digests stored<bfloat16> = {
    {0x2c343e77f0c8125f, 0x6df48cd8d3f7d045, 0x6da3d87a1ae5591c, 0xf4f401ecdcbb4995, 0xdc6d11127103a539},
    {0x25d69244856d7e99, 0x83fcb7e1fcfa5644, 0x15f7e4c29e9fb334, 0x5fcb4a77941f4c17, 0xf5e39dd44e7b2185},
    0xa1a1fd445989bf8a,
    0x5707a63ebde4a35d,
    0x2c343e77f0c8125f};

template <class T, class Exec>
void check() {
  const Digests d = digests<T, Exec>();
  const std::string type = rigel::name(rigel::scalar_of<T>), actual = text(d);
  CAPTURE(type);
  CAPTURE(actual);
  CHECK(d == stored<T>);
}

}  // namespace

TEST_CASE_TEMPLATE("linear: stored digests of the scalar tier", Exec, RIGEL_TEST_SPACES) {
  check<float, Exec>();
  check<rigel::half, Exec>();
  check<bfloat16, Exec>();
}

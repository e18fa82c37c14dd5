// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps of texts that call powers of one exponent, in tiles: blocks choose how to compute them by the exponent, which may be in memory.
// Only the bitcode has them (text.cpp.in).
#pragma once

#include <rigel/backends/cuda/simt/text.hpp>

/// A text's exponent, whether it is a number in the text, and its step: with powers by products, by a table, or by calls.
extern "C" {
[[gnu::pure, clang::noconvergent]] __device__ float rigel_text_exponent(const float* parameters) noexcept;
[[gnu::const, clang::noconvergent]] __device__ bool rigel_text_exponent_is_number() noexcept;
#define RIGEL_STEP(name)                                                                                                \
  [[gnu::pure, clang::noconvergent]] __device__ float rigel_text_step_##name(float x, float a, float b, std::int64_t k, \
                                                                             const float* parameters) noexcept;
RIGEL_STEP(of_power_1)
RIGEL_STEP(of_power_2)
RIGEL_STEP(of_power_3)
RIGEL_STEP(of_power_4)
RIGEL_STEP(by_calls)
#undef RIGEL_STEP
[[gnu::pure, clang::noconvergent]] __device__ float rigel_text_step_by_table(float x, float a, float b, std::int64_t k,
                                                                             const float* parameters, const void* table,
                                                                             const float* coefficients) noexcept;
}

namespace rigel::backends::simt {

/// The host passes the exponent, unless that is in memory, with the table's coefficients: FFMA reads them as constants, and three registers
/// are more than the register file delivers.
template <class S>
class TextPowers : public PlainSteps {
 public:
  using ByTable = PowersByTable<S>;
  using Parameters = typename ByTable::Parameters;
  using Table = typename ByTable::Table;

  __device__ __forceinline__ TextPowers(const S& s, const Parameters& of_table, Table& table, int thread, int threads)
      : s_(s), exponent_(rigel_text_exponent(s.parameters)), of_table_(of_table), table_(table) {
    if (takes_table()) ByTable::fill(table, of_table, thread, threads);
  }

  /// use(step) with the steps for the exponent, which every slab asks for: so the copies of slabs stand once.
  template <class Use>
  __device__ __forceinline__ void choose(const Use& use) const {
    const float* const parameters = s_.parameters;
    const auto use_products = [&]<int exponent>() __attribute__((always_inline)) {
      use([=](float x, float a, float b, std::int64_t k) { return by_products<exponent>(x, a, b, k, parameters); });
    };
    const float p = exponent_;
    if (p == 1)
      use_products.template operator()<1>();
    else if (p == 2)
      use_products.template operator()<2>();
    else if (p == 3)
      use_products.template operator()<3>();
    else if (p == 4)
      use_products.template operator()<4>();
    else if (takes_table())
      use([&](float x, float a, float b, std::int64_t k) {
        return rigel_text_step_by_table(x, a, b, k, parameters, &table_, of_table_.coefficient);
      });
    else
      use([=](float x, float a, float b, std::int64_t k) { return rigel_text_step_by_calls(x, a, b, k, parameters); });
  }

 private:
  /// Whether the host knows the exponent, and the table covers it, with an error within that of special functions.
  __device__ __forceinline__ bool takes_table() const {
    return exponent_ <= 3.25f && ByTable::supports(exponent_) &&
           (rigel_text_exponent_is_number() || exponent_ == of_table_.p);
  }

  template <int exponent>
  __device__ __forceinline__ static float by_products(float x, float a, float b, std::int64_t k, const float* parameters) {
    if constexpr (exponent == 1)
      return rigel_text_step_of_power_1(x, a, b, k, parameters);
    else if constexpr (exponent == 2)
      return rigel_text_step_of_power_2(x, a, b, k, parameters);
    else if constexpr (exponent == 3)
      return rigel_text_step_of_power_3(x, a, b, k, parameters);
    else
      return rigel_text_step_of_power_4(x, a, b, k, parameters);
  }

  const S& s_;
  float exponent_;
  const Parameters& of_table_;
  const Table& table_;
};

}  // namespace rigel::backends::simt

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data that is not finite, or overflows: what kernels that compute with parts, exponentials or norms of numbers have to recompute.
#pragma once

#include <tests/support/random.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace special {

/// Lines of `k` numbers each.
struct Lines {
  std::vector<double>& list;
  int lines, k;
};

/// A change of the rows of A and of the columns of B. `large`: a number twice which overflows.
struct Data {
  const char* name;
  void (*change)(Lines a, Lines b, double large, support::Random& random);
};

inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Replaces numbers, each with this probability, by make().
template <class Make>
void replace(Lines lines, double probability, support::Random& random, const Make& make) {
  for (double& v : lines.list)
    if (random.chance(probability)) v = make();
}

inline const std::vector<Data>& all() {
  static const std::vector<Data> list = {
      {"a NaN in every row of A",
       [](Lines a, Lines, double, support::Random& random) {
         for (int i = 0; i < a.lines; ++i) a.list[i * a.k + random.integer(0, a.k - 1)] = not_a_number;
       }},
      {"a NaN in every 16th row of A and 32nd column of B",
       [](Lines a, Lines b, double, support::Random& random) {
         for (int i = 5; i < a.lines; i += 16) a.list[i * a.k + random.integer(0, a.k - 1)] = not_a_number;
         for (int j = 3; j < b.lines; j += 32) b.list[j * b.k + random.integer(0, b.k - 1)] = not_a_number;
       }},
      {"1 % NaN",
       [](Lines a, Lines b, double, support::Random& random) {
         for (const Lines& x : {a, b}) replace(x, 0.01, random, [] { return not_a_number; });
       }},
      {"1 % infinities of either sign in A",
       [](Lines a, Lines, double, support::Random& random) {
         replace(a, 0.01, random, [&] { return random.chance(0.5) ? infinity : -infinity; });
       }},
      {"1 % infinities of either sign",
       [](Lines a, Lines b, double, support::Random& random) {
         for (const Lines& x : {a, b}) replace(x, 0.01, random, [&] { return random.chance(0.5) ? infinity : -infinity; });
       }},
      {"10 % infinities of either sign",
       [](Lines a, Lines b, double, support::Random& random) {
         for (const Lines& x : {a, b}) replace(x, 0.1, random, [&] { return random.chance(0.5) ? infinity : -infinity; });
       }},
      {"+∞ in A, −∞ in B, seldom at one k",
       [](Lines a, Lines b, double, support::Random& random) {
         for (int i = 0; i < a.lines; ++i) a.list[i * a.k + random.integer(0, a.k - 1)] = infinity;
         for (int j = 0; j < b.lines; ++j) b.list[j * b.k + random.integer(0, b.k - 1)] = -infinity;
       }},
      {"90 % −∞",
       [](Lines a, Lines b, double, support::Random& random) {
         for (const Lines& x : {a, b}) replace(x, 0.9, random, [] { return -infinity; });
       }},
      {"lines of −∞ alone and lines of +∞ alone",
       [](Lines a, Lines b, double, support::Random&) {
         for (const Lines& x : {a, b})
           for (int i = 0; i < x.lines; ++i)
             for (int l = 0; l < x.k; ++l)
               if (i % 7 < 3)
                 x.list[i * x.k + l] = i % 7 == 0 ? infinity : i % 7 == 1 ? -infinity : l % 2 ? infinity : -infinity;
       }},
      {"half of A large",
       [](Lines a, Lines, double large, support::Random& random) { replace(a, 0.5, random, [=] { return large; }); }},
      {"half of either large, of either sign",
       [](Lines a, Lines b, double large, support::Random& random) {
         for (const Lines& x : {a, b}) replace(x, 0.5, random, [&] { return random.chance(0.5) ? large : -large; });
       }},
      {"large at different k",
       [](Lines a, Lines b, double large, support::Random& random) {
         for (int i = 0; i < a.lines; ++i) a.list[i * a.k] = large;
         for (int j = 0; j < b.lines; ++j) b.list[j * b.k + b.k - 1] = large;
         replace(a, 0.01, random, [] { return infinity; });
       }},
  };
  return list;
}

}  // namespace special

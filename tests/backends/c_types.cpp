// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What C may hold: floating-point results any floating-point type, integers any type; read back where accumulated.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

namespace {

constexpr int m = 13, n = 37, depth = 21;

template <class T>
std::vector<double> random_values(int count, std::uint64_t seed) {
  support::Random random(seed);
  std::vector<double> list;
  for (int i = 0; i < count; ++i)
    list.push_back(std::is_floating_point_v<T> ? random.uniform(-2, 2) : static_cast<double>(random.integer(-100, 100)));
  return list;
}

// Every kernel against the reference, with and without accumulation and an epilogue.
template <class S, class C, class Exec>
void check() {
  using T = typename S::element;
  const Exec exec;
  const auto a = support::matrix<T, Exec>(m, depth, random_values<T>(m * depth, 1)),
             b = support::matrix<T, Exec>(depth, n, random_values<T>(depth * n, 2));
  const auto before = random_values<std::int8_t>(m * n, 3);
  CAPTURE(std::string(rigel::name(rigel::scalar_of<C>)));
  for (const bool accumulate : {false, true}) {
    for (const auto& program :
         {rigel::epilogue::Program{}, rigel::epilogue::scale(0.25) | rigel::epilogue::add_diagonal(2)}) {
      if (std::is_integral_v<C> && !program.empty()) continue;  // refused (tests/edge/messages.cpp)
      std::vector<double> expected;
      for (const auto& info : support::kernels_on(exec, rigel::semiring_name<S>(), rigel::scalar_of<T>,
                                                  rigel::scalar_of<typename S::accumulator>)) {
        CAPTURE(info.name);
        CAPTURE(accumulate);
        CAPTURE(program.size());
        const auto c = support::matrix<C, Exec>(m, n, before);
        const bool ran = support::ran(info, [&] {
          rigel::contract(exec, S{}, a, b, c, program,
                          {.accumulate = accumulate, .require = rigel::Promise::reference_bits, .kernel = info.name});
        });
        if (!ran) continue;
        const auto actual = support::values(c);
        if (info.family == "reference") {
          expected = actual;
          int changed = 0;
          for (std::size_t i = 0; i < actual.size(); ++i) changed += actual[i] != before[i];
          CHECK(changed > m * n / 2);
        } else {
          CHECK(actual == expected);
        }
      }
    }
  }
}

template <class S, class Exec, class... C>
void check_all() {
  (check<S, C, Exec>(), ...);
}

}  // namespace

TEST_CASE_TEMPLATE("C holds any floating-point type for floating-point results", Exec, RIGEL_TEST_SPACES) {
  check_all<rigel::min_plus<float>, Exec, rigel::half, rigel::bfloat16, float, double>();
  check_all<rigel::max_min<double>, Exec, rigel::half, float, double>();
  check_all<rigel::min_plus<rigel::half, rigel::half>, Exec, rigel::half, rigel::bfloat16, float, double>();
}

TEST_CASE_TEMPLATE("C holds any type for integer results", Exec, RIGEL_TEST_SPACES) {
  check_all<rigel::max_plus<std::int16_t>, Exec, std::int8_t, std::int16_t, float>();
  check_all<rigel::plus_times<std::int8_t>, Exec, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint32_t,
            rigel::half, float, double>();
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products on tensor cores: their errors, bits, special values and overflow. The zoo's trials and verify() cover all shapes
// and layouts.
#include <rigel/contract.hpp>

#include <tests/support/compare.hpp>
#include <tests/support/error.hpp>
#include <tests/support/kernels.hpp>
#include <tests/support/matrix.hpp>
#include <tests/support/random.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/spaces.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace {

using rigel::Precision;
using Values = std::vector<double>;

/// The kernels of plus_times on tensor cores.
template <class T, class Exec>
std::vector<rigel::KernelInfo> tensor_core_kernels() {
  std::vector<rigel::KernelInfo> list;
  for (const auto& info : support::kernels_on(Exec{}, "plus_times", rigel::scalar_of<T>))
    if (info.family == "cuda.mma" || info.family == "cuda.hopper") list.push_back(info);
  return list;
}

// On a GPU with tensor cores, each case must find their kernels; those of cuda.hopper only if the library was built with them.
template <class Exec>
void check_met(int kernels, const std::string& family = "cuda.mma") {
  if (rigel::detail::space_of<Exec> != rigel::Space::cuda)
    support::skip("tensor cores: a host has none");
  else if (kernels == 0 && family == "cuda.hopper")
    support::skip("cuda.hopper: another GPU, or a library without sm_90a");
  else
    CHECK(kernels > 0);
}

/// A·B by one kernel; a: m × k, b: k × n, both row-major.
template <class T, class Exec>
Values product(const rigel::KernelInfo& info, int m, int n, int k, const Values& a, const Values& b) {
  using C = typename rigel::plus_times<T>::accumulator;
  const auto c = support::matrix<C, Exec>(m, n);
  rigel::contract(Exec{}, rigel::plus_times<T>{}, support::matrix<T, Exec>(m, k, a), support::matrix<T, Exec>(k, n, b), c,
                  rigel::epilogue::Program{}, {.precision = info.precision, .kernel = info.name});
  return support::values(c);
}

/// Whether a kernel takes sums of k products: the largest tiles of cuda.hopper decline long sums of 16-bit numbers.
template <class T, class Exec>
bool takes(const rigel::KernelInfo& info, int k) {
  const auto e = support::caught([&] { product<T, Exec>(info, 4, 4, k, Values(4 * k), Values(4 * k)); });
  return e.decline != rigel::Decline::extents;
}

/// Random numbers of T that use all of its digits.
template <class T>
Values random_numbers(int count, std::uint64_t seed) {
  support::Random random(seed);
  Values list(count);
  for (double& v : list) v = support::to_double(support::number<T>(random.uniform(-4, 4)));
  return list;
}

// The order of a sum depends on K only, so every tile gives the same bits, and so does a row by itself. Split-K kernels are in
// other bit classes.
template <class T, class Exec>
void check_bits(int k) {
  constexpr int m = 70, n = 48;
  const Values a = random_numbers<T>(m * k, 1), b = random_numbers<T>(k * n, 2);
  std::map<std::string, Values> of;
  for (const auto& info : tensor_core_kernels<T, Exec>()) {
    CAPTURE(info.name);
    CHECK(covers(info.promises, rigel::Promise::repeatable));
    const bool in_parts = info.bit_class.empty();
    CHECK(covers(info.promises, rigel::Promise::batch_invariant) == !in_parts);
    if (!takes<T, Exec>(info, k)) continue;
    const Values c = product<T, Exec>(info, m, n, k, a, b);
    const auto& first = of.emplace(bit_class_of(info), c).first->second;
    CHECK(c == first);
    CHECK(product<T, Exec>(info, m, n, k, a, b) == c);
    const Values row = product<T, Exec>(info, 1, n, k, Values(a.begin() + 5 * k, a.begin() + 6 * k), b);
    CHECK(row == Values(c.begin() + 5 * n, c.begin() + 6 * n));
  }
  check_met<Exec>(static_cast<int>(of.size()));
}

// The bits do not depend on layouts either: K-major operands, M- or N-major ones, and operands that cannot be copied 16 bytes
// at a time.
template <class T, class Exec>
void check_bits_of_layouts() {
  constexpr int m = 80, n = 48, k = 112;
  const Values a = random_numbers<T>(m * k, 5), b = random_numbers<T>(k * n, 6);
  using C = typename rigel::plus_times<T>::accumulator;
  const auto turned = [](const Values& rows, int count, int length) {
    Values columns;
    for (int j = 0; j < length; ++j)
      for (int i = 0; i < count; ++i) columns.push_back(rows[i * length + j]);
    return columns;
  };
  const auto a_rows = support::matrix<T, Exec>(m, k, a), b_rows = support::matrix<T, Exec>(k, n, b);
  const auto a_columns = support::matrix<T, Exec>(k, m, turned(a, m, k)),
             b_columns = support::matrix<T, Exec>(n, k, turned(b, k, n));
  int kernels = 0;
  for (const auto& info : tensor_core_kernels<T, Exec>()) {
    ++kernels;
    CAPTURE(info.name);
    const auto run = [&](const auto& of_a, const auto& of_b) {
      const auto c = support::matrix<C, Exec>(m, n);
      rigel::contract(Exec{}, rigel::plus_times<T>{}, of_a, of_b, c, rigel::epilogue::Program{},
                      {.precision = info.precision, .kernel = info.name});
      return support::values(c);
    };
    const Values c = run(a_rows, b_rows);
    CHECK(run(a_rows, rigel::transposed(b_columns)) == c);
    CHECK(run(rigel::transposed(a_columns), b_rows) == c);
    CHECK(run(rigel::transposed(a_columns), rigel::transposed(b_columns)) == c);
    // 79 rows and 47 columns are not the multiples that tiles which store sums without conversion need.
    if (info.operands[2].layout == rigel::Layout::row_major) continue;
    const auto part = support::matrix<C, Exec>(m - 1, n - 1);
    rigel::contract(Exec{}, rigel::plus_times<T>{},
                    rigel::transposed(Kokkos::subview(a_columns, Kokkos::ALL, std::pair(1, m))),
                    Kokkos::subview(b_rows, Kokkos::ALL, std::pair(1, n)), part, rigel::epilogue::Program{},
                    {.precision = info.precision, .kernel = info.name});
    const Values found = support::values(part);
    for (int i = 0; i < m - 1; ++i)
      for (int j = 0; j < n - 1; ++j) CHECK(found[i * (n - 1) + j] == c[(i + 1) * n + j + 1]);
  }
  check_met<Exec>(kernels);
}

// |error| ≤ bound·Σ|a·b|, by hand. An instruction aligns an accumulator and blocks of at least 4 products to the largest of
// them and truncates each at 2^-23 of it, then their sum: 3·2^-24 for each of its `terms` products. There are `products`
// instructions for each k. With `slab`, sums of so many k are added in float. `rounding` is the error of a product, in 2^-24.
template <class T, class Exec>
void check_error(const std::string& family, const std::string& variant, int terms, double products, double rounding,
                 int slab = 0) {
  // The same k-steps in other schedules.
  const std::string single_tile = variant + (variant.empty() ? "once" : ".once"), cut = variant.empty() ? "long" : variant;
  constexpr int m = 33, n = 20;
  int kernels = 0;
  for (const auto& info : tensor_core_kernels<T, Exec>()) {
    if (info.family != family || (info.variant != variant && info.variant != single_tile && info.variant != cut)) continue;
    ++kernels;
    CAPTURE(info.name);
    for (const int k : {1, 2, 8, 32, 1001, 5001}) {
      if (!takes<T, Exec>(info, k)) continue;
      CAPTURE(k);
      const Values a = random_numbers<T>(m * k, 3), b = random_numbers<T>(k * n, 4);
      const Values c = product<T, Exec>(info, m, n, k, a, b);
      const int steps = ((slab > 0 ? std::min(k, slab) : k) + terms - 1) / terms;
      const double sums = slab > 0 ? (k + slab - 1) / slab : 0;
      const double bound = (3.0 * products * steps * terms + sums + rounding) * 0x1p-24;
      double squares = 0;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double exact = 0, magnitude = 0;
          for (int l = 0; l < k; ++l) {
            const double term = a[i * k + l] * b[l * n + j];
            exact += term, magnitude += std::fabs(term);
          }
          const double error = std::fabs(c[i * n + j] - exact) / magnitude;
          CHECK(error <= bound);
          squares += error * error;
        }
      // On average, errors are at most half of the bound.
      CHECK(std::sqrt(squares / (m * n)) <= bound / 2);
    }
  }
  check_met<Exec>(kernels, family);
}

}  // namespace

TEST_CASE_TEMPLATE("tensor cores: the same bits in every tile", Exec, RIGEL_TEST_SPACES) {
  check_bits<rigel::half, Exec>(203);
  check_bits<rigel::bfloat16, Exec>(203);
  check_bits<float, Exec>(203);
  check_bits<double, Exec>(203);
  check_bits<rigel::half, Exec>(8300);
  check_bits<rigel::bfloat16, Exec>(8300);
}

TEST_CASE_TEMPLATE("tensor cores: the same bits however operands lie", Exec, RIGEL_TEST_SPACES) {
  check_bits_of_layouts<rigel::half, Exec>();
  check_bits_of_layouts<rigel::bfloat16, Exec>();
  check_bits_of_layouts<float, Exec>();
  check_bits_of_layouts<double, Exec>();
}

// A float truncated to 11 bits is off by at most 2^-10 of itself. `split` loses the product of two rests, at most 2^-20, and
// the last two of the 13 bits of each rest, 3/4 of 2^-21. A float rounded to 8 bits is off by at most 2^-8, and the rest,
// rounded to 8 bits, by 2^-17. With three such numbers the products of 2^-8 and 2^-17 are lost; with two the product of 2^-8
// and 2^-8, and 2^-17 of each number.
TEST_CASE_TEMPLATE("tensor cores: errors, for few values of k too", Exec, RIGEL_TEST_SPACES) {
  // In promoted sums, a slab's products of both first numbers come last, with at most 1 + 2^-6 of |a·b| in the sum then. The
  // others are truncated at little more than 2^-7 of it.
  const auto promoted = [](int products) { return 1 + 0x1p-6 + (products - 1) * 1.03 * 0x1p-7; };
  check_error<float, Exec>("cuda.mma", "split", 8, 3, 16 + 2 * 6);
  check_error<float, Exec>("cuda.mma", "promoted", 8, 3, 16 + 2 * 6, 32);
  check_error<float, Exec>("cuda.mma", "bf16x6_split", 16, 6, 1.01);
  check_error<float, Exec>("cuda.mma", "bf16x6_promoted", 16, promoted(6), 1.01, 32);
  check_error<float, Exec>("cuda.hopper", "split", 16, 6, 1.01);
  check_error<float, Exec>("cuda.hopper", "promoted", 16, promoted(6), 1.01, 32);
  check_error<rigel::half, Exec>("cuda.mma", "", 16, 1, 0);
  check_error<rigel::bfloat16, Exec>("cuda.mma", "", 16, 1, 0);
  check_error<rigel::half, Exec>("cuda.hopper", "", 16, 1, 0, 4096);
  check_error<rigel::bfloat16, Exec>("cuda.hopper", "", 16, 1, 0, 4096);
  for (const char* family : {"cuda.mma", "cuda.hopper"}) {
    check_error<float, Exec>(family, "bf16x9", 16, promoted(9), 0, 32);
    check_error<float, Exec>(family, "bf16x9_split", 16, 9, 0);
    check_error<float, Exec>(family, "bf16x3", 16, 3, 0x1p8 + 2 * 0x1p7 + 1);
    check_error<float, Exec>(family, "tf32", 8, 1, 2 * 0x1p14);
  }
  for (const int parts : {2, 4}) {  // whose sums are added in float
    const std::string in_parts = "split_k" + std::to_string(parts);
    check_error<rigel::half, Exec>("cuda.hopper", in_parts, 16, 1, parts);
    check_error<rigel::bfloat16, Exec>("cuda.hopper", in_parts, 16, 1, parts);
    check_error<float, Exec>("cuda.hopper", "tf32." + in_parts, 8, 1, 2 * 0x1p14 + parts);
  }
}

// Of a long sum of products of one sign, tensor cores lose a part that grows with the number of its terms. cuda.hopper cuts
// sums of 16-bit numbers, so five parts lose no more than one, but for a little that their sum is rounded.
TEST_CASE_TEMPLATE("tensor cores: long sums of 16-bit numbers do not drift", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 16, n = 24, part = 4096, all = 5 * part;
  support::Random random(9);
  Values a(m * all), b(all * n);
  for (double& v : a) v = support::to_double(support::number<rigel::half>(random.uniform(0, 1)));
  for (double& v : b) v = support::to_double(support::number<rigel::half>(random.uniform(0, 1)));
  const auto mean_error = [&](const rigel::KernelInfo& info, int k) {
    Values of_a(m * k);
    for (int i = 0; i < m; ++i) std::copy_n(a.begin() + i * all, k, of_a.begin() + i * k);
    const Values c = product<rigel::half, Exec>(info, m, n, k, of_a, Values(b.begin(), b.begin() + k * n));
    double sum = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double exact = 0;
        for (int l = 0; l < k; ++l) exact += of_a[i * k + l] * b[l * n + j];
        sum += std::fabs(c[i * n + j] - exact) / exact;
      }
    return sum / (m * n);
  };
  int kernels = 0;
  for (const auto& info : tensor_core_kernels<rigel::half, Exec>()) {
    if (info.family != "cuda.hopper" || info.bit_class.empty() || !takes<rigel::half, Exec>(info, all)) continue;
    ++kernels;
    CAPTURE(info.name);
    CHECK(mean_error(info, all) < 1.5 * mean_error(info, part));
  }
  check_met<Exec>(kernels, "cuda.hopper");
}

// A long sum of products of one sign. Tensor cores truncate it, float rounds it, and promoted sums are closer than a chain of
// fma.
TEST_CASE_TEMPLATE("tensor cores: promoted sums err less than a chain", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 16, n = 24, k = 8192;
  support::Random random(9);
  Values a(m * k), b(k * n);
  for (double& v : a) v = static_cast<float>(random.uniform(0, 1));
  for (double& v : b) v = static_cast<float>(random.uniform(0, 1));
  const auto mean_error = [&](const Values& c) {
    double sum = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double exact = 0;
        for (int l = 0; l < k; ++l) exact += a[i * k + l] * b[l * n + j];
        sum += std::fabs(c[i * n + j] - exact) / exact;
      }
    return sum / (m * n);
  };
  rigel::KernelInfo chain;
  chain.name = "reference";
  double of_chain = 0;
  for (const auto& info : tensor_core_kernels<float, Exec>()) {
    if (info.precision != Precision::promoted && info.precision != Precision::exact_products) continue;
    CAPTURE(info.name);
    if (of_chain == 0) of_chain = mean_error(product<float, Exec>(chain, m, n, k, a, b));
    CHECK(mean_error(product<float, Exec>(info, m, n, k, a, b)) < of_chain);
  }
  check_met<Exec>(of_chain > 0);
}

// Products of two floats, each the sum of three positive numbers of 8 bits, x = x₀ + x₁ + x₂. All nine products together are
// truncated, as tensor cores do, to the next float below. Each of the first eight products is larger than what is truncated
// here, so leaving it out would give a smaller float. x₂y₂ is at most 2^-34 of the product, which no float shows.
TEST_CASE_TEMPLATE("tensor cores: nine products of three numbers each", Exec, RIGEL_TEST_SPACES) {
  const auto rounded = [](float x) {  // to 8 bits
    const float scale = std::ldexp(1.f, std::ilogb(x) - 7);
    return std::nearbyint(x / scale) * scale;
  };
  struct Parts {
    float x, first, second, third;
  };
  support::Random random(17);
  const auto number = [&] {
    for (;;) {
      const auto x = static_cast<float>(random.uniform(1, 2));
      const float first = rounded(x), second = x > first ? rounded(x - first) : 0, third = x - first - second;
      if (second > 0 && third > 0x1p-19f) return Parts{x, first, second, third};
    }
  };
  constexpr int count = 64;
  Values a, b;
  while (a.size() < count) {
    const Parts x = number(), y = number();
    const double product = static_cast<double>(x.x) * y.x, last = std::ldexp(1., std::ilogb(product) - 23);
    const double left_off = std::fmod(product, last);
    const double least = std::min(double{x.second} * y.third, double{x.third} * y.second);
    if (left_off < last / 64 || left_off > least - last / 64) continue;
    a.push_back(x.x), b.push_back(y.x);
  }
  int kernels = 0;
  for (const auto& info : tensor_core_kernels<float, Exec>()) {
    if (info.precision != Precision::exact_products) continue;
    ++kernels;
    CAPTURE(info.name);
    const Values c = product<float, Exec>(info, count, count, 1, a, b);
    for (int i = 0; i < count; ++i) {
      const double exact = a[i] * b[i];
      CHECK(std::fabs(c[i * count + i] - exact) < std::ldexp(1., std::ilogb(exact) - 23));
    }
  }
  check_met<Exec>(kernels);
}

TEST_CASE_TEMPLATE("tensor cores: rounded floats are asked for", Exec, RIGEL_TEST_SPACES) {
  const auto kernels = tensor_core_kernels<float, Exec>();
  const auto one = support::matrix<float, Exec>(1, 1, {1});
  const auto c = support::matrix<float, Exec>(1, 1);
  const auto call = [&](const rigel::ContractOptions& options) {
    rigel::contract(Exec{}, rigel::plus_times<float>{}, one, one, c, rigel::epilogue::Program{}, options);
  };
  for (const auto& info : kernels) {
    CAPTURE(info.name);
    support::check_asked_for<rigel::ContractOptions>(info, call);
    CHECK(support::values(c) == Values{1});
  }
  check_met<Exec>(static_cast<int>(kernels.size()));
}

// A row of A with columns of B, K = 2, and the results that FFMA gives. 1 and 2 have a rest of 0, whose product with infinity
// would be NaN. Products with the rest of the largest float must not overflow. The smallest float is below the numbers of tf32
// and bfloat16.
TEST_CASE_TEMPLATE("tensor cores: infinities, NaN, the largest and the smallest floats", Exec, RIGEL_TEST_SPACES) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
  struct Case {
    double a[2], b[2], expected;
  };
  const std::vector<Case> cases = {{{infinity, 1}, {1, 1}, infinity},
                                   {{infinity, 1}, {-2, 1}, -infinity},
                                   {{infinity, 1}, {0, 1}, nan},
                                   {{infinity, infinity}, {1, -1}, nan},
                                   {{1.1f, infinity}, {1.3f, smallest}, infinity},
                                   {{-infinity, 1}, {1.1f, 1}, -infinity},
                                   {{nan, 1}, {0, 1}, nan},
                                   {{largest, 1}, {1, 0}, largest},
                                   {{largest, largest}, {1, -1}, 0},
                                   {{largest, 0}, {2, 0}, infinity},
                                   {{largest, largest}, {1, 1}, infinity},
                                   {{0x1p100, 0}, {0x1p27, 0}, 0x1p127},
                                   {{0x1.008p0, 0}, {0x1.008p0, 0}, 0x1.01004p0},  // a product of two rests
                                   {{0x1.00804p0, 0}, {1, 0}, 0x1.00804p0},        // a rest of a rest
                                   {{0x1p-60, 0}, {0x1p-60, 0}, 0x1p-120},
                                   {{smallest, 0}, {0x1p100, 0}, 0}};
  for (const auto& info : tensor_core_kernels<float, Exec>()) {
    CAPTURE(info.name);
    for (const Case& c : cases) {
      CAPTURE(c.a[0]);
      CAPTURE(c.a[1]);
      CAPTURE(c.b[0]);
      CAPTURE(c.b[1]);
      // In both orders, so that each operand takes each role.
      for (const auto& [x, y] : {std::pair{c.a, c.b}, std::pair{c.b, c.a}}) {
        const double actual = product<float, Exec>(info, 1, 1, 2, {x[0], x[1]}, {y[0], y[1]})[0];
        const double relative = info.precision == Precision::tf32             ? 0x1p-9
                                : info.precision == Precision::bf16x3         ? 0x1p-15
                                : info.precision == Precision::exact_products ? 0x1p-22
                                                                              : 0x1p-19;
        CHECK_MESSAGE((support::same(actual, c.expected) ||
                       (std::isfinite(c.expected) && std::fabs(actual - c.expected) <= relative * std::fabs(c.expected))),
                      actual);
      }
    }
  }
}

// Whole tiles of sums that are not finite, and single ones. Rows 2, 40 and 69 of A and columns 7 and 88 of B get numbers of which
// every sum is ±∞ or NaN, as a chain of fma finds them; all other outputs keep the bits that they have without.
TEST_CASE_TEMPLATE("tensor cores: sums that are not finite, among others", Exec, RIGEL_TEST_SPACES) {
  constexpr int m = 70, n = 90, k = 77;
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Values plain_a = random_numbers<float>(m * k, 7);
  Values plain_b = random_numbers<float>(k * n, 8);
  for (double& v : plain_b) v = std::fabs(v) + 1;
  const auto is_special = [](int i, int j) { return i == 2 || i == 40 || i == 69 || j == 7 || j == 88; };
  Values a = plain_a, b = plain_b, everywhere = plain_a;
  for (int l = 0; l < k; ++l) {
    a[2 * k + l] = 3e38f;
    if (l % 9 == 4) b[l * n + 88] = -infinity;
  }
  a[40 * k + 76] = nan, a[69 * k] = infinity, b[38 * n + 7] = infinity;
  for (int i = 0; i < m; ++i) everywhere[i * k + (5 * i) % k] = i % 3 == 0 ? nan : i % 3 == 1 ? infinity : -infinity;
  const auto chain = [&](const Values& x, int i, int j) {
    float sum = 0;
    for (int l = 0; l < k; ++l) sum = std::fma(static_cast<float>(x[i * k + l]), static_cast<float>(b[l * n + j]), sum);
    return static_cast<double>(sum);
  };
  int kernels = 0;
  for (const auto& info : tensor_core_kernels<float, Exec>()) {
    ++kernels;
    CAPTURE(info.name);
    const Values plain = product<float, Exec>(info, m, n, k, plain_a, plain_b);
    const Values mixed = product<float, Exec>(info, m, n, k, a, b), all = product<float, Exec>(info, m, n, k, everywhere, b);
    // The same with operands and C in other layouts, after an epilogue, and added to C.
    const auto other = support::matrix<float, Exec>(n, m, Values(m * n, 1.0));
    Values columns_a, columns_b;
    for (int l = 0; l < k; ++l)
      for (int i = 0; i < m; ++i) columns_a.push_back(a[i * k + l]);
    for (int j = 0; j < n; ++j)
      for (int l = 0; l < k; ++l) columns_b.push_back(b[l * n + j]);
    rigel::contract(Exec{}, rigel::plus_times<float>{}, rigel::transposed(support::matrix<float, Exec>(k, m, columns_a)),
                    rigel::transposed(support::matrix<float, Exec>(n, k, columns_b)), rigel::transposed(other),
                    rigel::epilogue::scale(-1), {.accumulate = true, .precision = info.precision, .kernel = info.name});
    const Values turned = support::values(other);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        CAPTURE(i);
        CAPTURE(j);
        const double expected = is_special(i, j) ? chain(a, i, j) : plain[i * n + j];
        if (is_special(i, j)) CHECK(!std::isfinite(expected));
        CHECK(support::same(mixed[i * n + j], expected));
        CHECK(support::same(all[i * n + j], chain(everywhere, i, j)));
        if (!std::isfinite(expected)) CHECK(support::same(turned[j * m + i], -expected));
      }
  }
  check_met<Exec>(kernels);
}

TEST_CASE_TEMPLATE("tensor cores: a NaN whose bits tf32 does not see", Exec, RIGEL_TEST_SPACES) {
  const auto hidden = support::matrix<float, Exec>(1, 1), one = support::matrix<float, Exec>(1, 1, {1});
  const std::uint32_t bits = 0x7f800001u;
  support::copy_in<Exec>(hidden.data(), &bits, sizeof bits);
  for (const auto& info : tensor_core_kernels<float, Exec>()) {
    CAPTURE(info.name);
    for (const bool in_a : {false, true}) {
      const auto c = support::matrix<float, Exec>(1, 1);
      rigel::contract(Exec{}, rigel::plus_times<float>{}, in_a ? hidden : one, in_a ? one : hidden, c,
                      rigel::epilogue::Program{}, {.precision = info.precision, .kernel = info.name});
      CHECK(std::isnan(support::values(c)[0]));
    }
  }
}

// Sums of the largest products of bytes exceed 2^31 and wrap, as int32 does.
TEST_CASE_TEMPLATE("tensor cores: sums of bytes wrap", Exec, RIGEL_TEST_SPACES) {
  constexpr int k = 131072 + 32;
  for (const auto& info : tensor_core_kernels<std::int8_t, Exec>()) {
    CAPTURE(info.name);
    const double sum = 16384. * k - 0x1p32;
    CHECK(product<std::int8_t, Exec>(info, 1, 4, k, Values(k, -128), Values(4 * k, -128)) == Values(4, sum));
  }
  for (const auto& info : tensor_core_kernels<std::uint8_t, Exec>()) {
    CAPTURE(info.name);
    CHECK(product<std::uint8_t, Exec>(info, 1, 4, 33030, Values(33030, 255), Values(4 * 33030, 255)) ==
          Values(4, 65025. * 33030 - 0x1p32));
  }
}

TEST_CASE_TEMPLATE("tensor cores: words of bits want an epilogue that joins them", Exec, RIGEL_TEST_SPACES) {
  using Word = std::uint32_t;
  int kernels = 0;
  for (const auto& info : support::kernels_on(Exec{}, "or_and", rigel::Scalar::u32)) {
    if (info.family != "cuda.mma") continue;
    CAPTURE(info.name);
    const auto a = support::matrix<Word, Exec>(1, 1, {6}), b = support::matrix<Word, Exec>(1, 2, {9, 12});
    const auto c = support::matrix<Word, Exec>(1, 2, {7, 7});
    const auto numbers = support::matrix<float, Exec>(1, 2, {7, 7});
    const auto call = [&](const auto& to, const rigel::epilogue::Program& program) {
      rigel::contract(Exec{}, rigel::or_and<Word>{}, a, b, to, program, {.kernel = info.name});
    };
    const auto check_refused = [&](const auto& to, const rigel::epilogue::Program& program) {
      const auto e = support::caught([&] { call(to, program); });
      CHECK(e.code == rigel::Code::unsupported);
      CHECK(e.lacks({info.name.c_str(), "has to begin with any_bit()"}) == "");
      CHECK(support::values(to) == Values{7, 7});
    };
    check_refused(c, {});
    check_refused(c, rigel::epilogue::parity());
    check_refused(numbers, rigel::epilogue::scale(2));
    call(c, rigel::epilogue::any_bit());
    CHECK(support::values(c) == Values{0, 1});
    ++kernels;
  }
  check_met<Exec>(kernels);
}

// The other semiring's epilogue reads the words themselves, not the number of set bits: 6 ∨ 6 has two, 3 ⊻ 0 some.
TEST_CASE_TEMPLATE("words of bits: an epilogue of the other semiring", Exec, RIGEL_TEST_SPACES) {
  using Word = std::uint32_t;
  const auto c = support::matrix<Word, Exec>(1, 1);
  const auto six = support::matrix<Word, Exec>(1, 1, {6}), three = support::matrix<Word, Exec>(1, 1, {3});
  rigel::contract(Exec{}, rigel::or_and<Word>{}, six, six, c, rigel::epilogue::parity());
  CHECK(support::values(c) == Values{0});
  rigel::contract(Exec{}, rigel::xor_and<Word>{}, three, three, c, rigel::epilogue::any_bit());
  CHECK(support::values(c) == Values{1});
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of columns (rigel/detail/column_sums.hpp), bit by bit against their order in plain C++: in every layout, of one batch or over all,
// added or stored, of rows that fill no part.
#include "layer.hpp"

#include <rigel/detail/column_sums.hpp>

#include <tests/support/spaces.hpp>

namespace {

using layer::Stored, layer::Tensor, layer::Values;
using rigel::detail::ColumnSums;

struct Case {
  std::size_t batches, m, n;
  bool shared;
  int part, parts;  // computed by hand: rows of a part, and how many there are
};
// 65536 / N parts at most, 64 to 512; of 32 rows at least, and of a multiple of eight.
constexpr Case cases[] = {{1, 1, 1, false, 32, 1},       {1, 32, 5, false, 32, 1},       {1, 33, 4, false, 32, 2},
                          {3, 70, 7, false, 32, 3},      {3, 70, 7, true, 32, 7},        {2, 45, 8, true, 32, 3},
                          {1, 17000, 3, false, 40, 425}, {1, 4100, 1024, false, 72, 57}, {1, 0, 6, false, 32, 1}};

template <class To, class T, class Exec>
void check(const Case& c, Stored stored, bool accumulate) {
  const Exec exec;
  support::Random random(1);
  Values x(c.batches * c.m * c.n), before((c.shared ? 1 : c.batches) * c.n);
  for (double& value : x) value = support::to_double(support::number<T>(random.uniform(-1, 1)));
  for (double& value : before) value = support::to_double(support::number<To>(random.uniform(-1, 1)));
  const Tensor<T, Exec> of_x(c.batches, c.m, c.n, stored, "x", x);
  const Tensor<To, Exec> to(c.shared ? 1 : c.batches, 1, c.n, Stored::by_rows, "to", before);
  ColumnSums pass{.x = rigel::detail::operand_of(of_x.view(), {}, "x"),
                  .to = rigel::detail::operand_of(to.view(), {}, "to"),
                  .accumulate = accumulate};
  CHECK(pass.rows_of_part() == c.part);
  CHECK(pass.count() == c.parts);
  const Kokkos::View<float*, typename Exec::memory_space> parts("parts", pass.part_bytes() / sizeof(float));
  pass.parts = parts.data();
  rigel::detail::sum_columns(exec, pass);
  const Values found = to.values();
  int wrong = 0;
  const std::size_t rows = c.shared ? c.batches * c.m : c.m;
  for (std::size_t at = 0; at < found.size(); ++at) {
    const std::size_t l = at / c.n, n = at % c.n;
    float sum = 0;
    for (std::size_t first = 0; first < rows; first += static_cast<std::size_t>(c.part)) {
      float of_part = 0;
      for (std::size_t r = first; r < std::min(rows, first + static_cast<std::size_t>(c.part)); ++r)
        of_part += static_cast<float>(x[(l * c.m + r) * c.n + n]);
      sum += of_part;
    }
    if (accumulate) sum += static_cast<float>(before[at]);
    wrong += found[at] != support::to_double(support::number<To>(sum));
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("linear: sums of columns are in one order", Exec, RIGEL_TEST_SPACES) {
  for (const Case& c : cases)
    for (const Stored stored : {Stored::by_rows, Stored::by_columns, Stored::with_gaps})
      for (const bool accumulate : {false, true}) {
        CAPTURE(c.m);
        CAPTURE(c.n);
        CAPTURE(static_cast<int>(stored));
        check<float, float, Exec>(c, stored, accumulate);
        check<float, rigel::bfloat16, Exec>(c, stored, accumulate);
        check<rigel::bfloat16, rigel::bfloat16, Exec>(c, stored, accumulate);
        check<rigel::half, rigel::half, Exec>(c, stored, accumulate);
      }
}

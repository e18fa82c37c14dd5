// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of a user's for reduce(): of one semiring, whose key other semirings do not have, and of all of them.
#include <tests/reduce/call.hpp>

namespace {

using namespace reduced;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Kernel = rigel::Kernel<rigel::Reduction>;

// Writes 42 to the values. Nobody chooses it unless it is named.
Kernel writes_42(const char* name) {
  Kernel k;
  k.info.family = "user";
  k.info.name = name;
  k.info.spaces = rigel::host_spaces;
  k.info.promises = rigel::Promise::repeatable;
  k.supports = [](const Kernel&, const rigel::Reduction& p) -> rigel::Status {
    if (p.reducer != rigel::Reducer::sum) return {rigel::Decline::other, "adds only"};
    return {};
  };
  k.cost = [](const Kernel&, const rigel::Reduction&, rigel::Plan&) { return 1e6; };
  k.run = [](const Kernel&, const rigel::Reduction& p, const rigel::Plan&, const rigel::Workspace&) {
    for (std::int64_t m = 0; m < p.m; ++m) static_cast<float*>(p.values.data)[m * p.values.row_stride] = 42;
  };
  return k;
}

template <class S, class R>
support::Caught call(const S& s, const R& reducer, const char* kernel, Values* values = nullptr) {
  using T = typename S::element;
  const auto a = support::matrix<T, Exec>(2, 1, {1, 2}), b = support::matrix<T, Exec>(1, 2, {3, 4});
  const auto sums = vector<float, Exec>(2);
  const auto e = support::caught([&] { rigel::reduce(Exec{}, s, a, b, reducer, sums, {.kernel = kernel}); });
  if (values) *values = support::values(sums);
  return e;
}

TEST_CASE("reduce: a user's kernel of one semiring and of all") {
  Kernel one = writes_42("user.sums_of_products");
  one.info.semiring = "plus_times";
  one.info.element = one.info.accumulator = rigel::Scalar::f32;
  rigel::register_kernel(one);
  rigel::register_kernel(writes_42("user.sums"));
  const rigel::plus_times<float> products;
  const rigel::max_plus<double> longest;
  Values values;
  CHECK(call(products, rigel::reducer::sum{}, "user.sums_of_products", &values).code == rigel::Code::ok);
  CHECK(values == Values{42, 42});
  CHECK(call(products, rigel::reducer::sum{}, "user.sums", &values).code == rigel::Code::ok);
  CHECK(call(longest, rigel::reducer::sum{}, "user.sums", &values).code == rigel::Code::ok);
  CHECK(values == Values{42, 42});
  CHECK(call(longest, rigel::reducer::sum{}, "user.sums_of_products").code == rigel::Code::unsupported);
  const auto adds = call(products, rigel::reducer::minimum{}, "user.sums");
  CHECK(adds.code == rigel::Code::unsupported);
  CHECK(adds.lacks({"user.sums: adds only"}) == "");
  CHECK(call(products, rigel::reducer::sum{}, "", &values).code == rigel::Code::ok);
  CHECK(values == Values{7, 14});
}

TEST_CASE("reduce: kernels of unknown semirings are refused") {
  Kernel k = writes_42("user.of_nothing");
  k.info.semiring = "plus_times";
  k.info.element = k.info.accumulator = rigel::Scalar::u64;
  const auto e = support::caught([&] { rigel::register_kernel(k); });
  CHECK(e.code == rigel::Code::invalid_argument);
  CHECK(e.lacks({"user.of_nothing", "'plus_times'", "u64", "none of Rigel's own"}) == "");
  CHECK(support::caught([&] { rigel::register_kernel(writes_42("reference.reduce")); }).code ==
        rigel::Code::invalid_argument);
}

}  // namespace

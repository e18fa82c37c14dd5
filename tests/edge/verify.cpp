// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() catches kernels that are wrong in various ways, and passes those that are right.
#include "host_kernel.hpp"

#include <tests/support/error.hpp>

#include <doctest/doctest.h>

using edge::Bug;

namespace {

rigel::Verification verified(const rigel::Kernel<rigel::Contraction>& kernel) {
  rigel::register_kernel(kernel);
  return rigel::verify(kernel.info.name, 5);
}

template <Bug bug>
void check_caught(const std::string& name) {
  const auto v = verified(edge::host_kernel<bug>("wrong." + name));
  CAPTURE(name);
  CHECK_FALSE(v.ok);
  CHECK(v.problems > 0);
  CHECK(v.report.find("user.wrong." + name) != std::string::npos);
  CHECK(v.report.find("seed 5") != std::string::npos);
}

}  // namespace

TEST_CASE("verify: a right kernel is right") {
  const auto v = verified(edge::host_kernel("right"));
  CHECK(v.report == "");
  CHECK(v.ok);
  CHECK(v.problems >= 20);
}

TEST_CASE("verify: a wrong kernel is caught") {
  check_caught<Bug::last_term>("last_term");
  check_caught<Bug::last_column>("last_column");
  check_caught<Bug::accumulate>("accumulate");
  check_caught<Bug::strides>("strides");
  check_caught<Bug::gap>("gap");
  check_caught<Bug::drops_nan>("drops_nan");
  check_caught<Bug::loses_infinity>("loses_infinity");
  check_caught<Bug::unrepeatable>("unrepeatable");
  check_caught<Bug::inaccurate>("inaccurate");
  check_caught<Bug::epilogue>("epilogue");
  check_caught<Bug::column_of_epilogue>("column_of_epilogue");
}

namespace {

// The same for kernels that do not promise the reference's bits and are held to their bound.
template <Bug bug>
rigel::Verification by_bound(const std::string& name) {
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel<bug>("bound." + name);
  k.info.promises = rigel::Promise::repeatable | rigel::Promise::batch_invariant;
  return verified(k);
}

}  // namespace

TEST_CASE("verify: a kernel that promises a bound is held to it") {
  CHECK(by_bound<Bug::none>("right").ok);
  CHECK_FALSE(by_bound<Bug::last_term>("last_term").ok);
  CHECK_FALSE(by_bound<Bug::inaccurate>("inaccurate").ok);
  CHECK_FALSE(by_bound<Bug::drops_nan>("drops_nan").ok);
  CHECK_FALSE(by_bound<Bug::loses_infinity>("loses_infinity").ok);
  CHECK_FALSE(by_bound<Bug::unrepeatable>("unrepeatable").ok);
  const auto v = by_bound<Bug::column_of_epilogue>("column_of_epilogue");
  CHECK_FALSE(v.ok);
  CHECK(v.report.find("with an epilogue that reads memory") != std::string::npos);
  CHECK(v.report.find("with an epilogue:") == std::string::npos);
}

TEST_CASE("verify: a kernel that states an error of each result is held to that, too") {
  const auto stated = [](const char* name, double relative_error) {
    rigel::Kernel<rigel::Contraction> k = edge::host_kernel<Bug::inaccurate>(name);
    k.info.promises = rigel::Promise::repeatable;
    k.info.accuracy = {0x1p13, 1};
    k.info.relative_error = relative_error;
    return verified(k).ok;
  };
  CHECK(stated("relative.none", 0));
  CHECK_FALSE(stated("relative.small", 1e-6));
}

TEST_CASE("verify: a kernel whose bits depend on M does not keep batch_invariant") {
  CHECK_FALSE(by_bound<Bug::depends_on_rows>("depends_on_rows").ok);
  rigel::Kernel<rigel::Contraction> k = edge::host_kernel<Bug::depends_on_rows>("bound.says_so");
  k.info.promises = rigel::Promise::repeatable;
  CHECK(verified(k).ok);
}

TEST_CASE("verify: the kernels of a bit class are held to each other") {
  const auto in_class = [](rigel::Kernel<rigel::Contraction> k, const char* bit_class) {
    k.info.promises = rigel::Promise::repeatable | rigel::Promise::batch_invariant;
    k.info.bit_class = bit_class;
    k.info.accuracy = {0x1p13, 1};  // both are within it
    return k;
  };
  rigel::register_kernel(in_class(edge::host_kernel("class.right"), "user.class"));
  CHECK(verified(in_class(edge::host_kernel("class.same"), "user.class")).ok);
  const auto other = verified(in_class(edge::host_kernel<Bug::inaccurate>("class.other"), "user.class"));
  CHECK_FALSE(other.ok);
  CHECK(other.report.find("outputs differ from user.class.right's, of the same bit class") != std::string::npos);
  CHECK(verified(in_class(edge::host_kernel<Bug::inaccurate>("class.own"), "user.own")).ok);
}

TEST_CASE("verify: a kernel that does not exist") {
  const auto e = support::caught([] { rigel::verify("user.nobody"); });
  CHECK(e.code == rigel::Code::not_found);
  CHECK(e.lacks({"verify: ", "'user.nobody'"}) == "");
}

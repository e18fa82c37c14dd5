// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "zoo.hpp"

#include <tests/support/compare.hpp>

#include <cmath>

namespace backends {
namespace {

constexpr std::uint64_t design_seed = 1;

struct Bound {
  double gamma;        // (constant + per_term·K)·u
  double logarithmic;  // 1 + the largest exponents, if errors are relative to them; else 0
};

double largest(const support::Placement& p, const support::Bytes& bytes, rigel::Scalar type) {
  double most = 0;
  p.for_each([&](std::int64_t at) {
    const double v = std::fabs(support::real(bytes, type, at));
    if (std::isfinite(v)) most = std::fmax(most, v);
  });
  return most;
}

// The number of outputs that differ from the model by more than the bound, or are of another kind (finite, infinite, NaN). The
// epilogue is none, or a scale by one half.
int out_of_bound(const support::Trial& t, const support::Operands& o, const Call& call, const support::Model& model,
                 const support::Bytes& actual, const Bound& bound) {
  int count = 0;
  std::size_t i = 0;
  const double factor = t.epilogue ? 0.5 : 1;
  o.c.for_each([&](std::int64_t at) {
    const double x = support::real(actual, call.facts.result, at), y = factor * model.value[i];
    const double magnitude = bound.logarithmic > 0 ? bound.logarithmic : model.magnitude[i];
    ++i;
    if (support::kind(x) != support::kind(y))
      ++count;
    else if (std::isfinite(y) && !(std::fabs(x - y) <= bound.gamma * factor * magnitude))
      ++count;
  });
  return count;
}

int differences_from_model(const support::Operands& o, const Call& call, const support::Model& model,
                           const support::Bytes& actual) {
  int count = 0;
  std::size_t i = 0;
  o.c.for_each([&](std::int64_t at) {
    if (support::is_floating(call.facts.result))
      count += !support::same(support::real(actual, call.facts.result, at), model.value[i]);
    else
      count += support::integer(actual, call.facts.result, at) != model.whole[i];
    ++i;
  });
  return count;
}

}  // namespace

void check(const Call& call) {
  CAPTURE(std::string(call.facts.name));
  CAPTURE(std::string(rigel::name(call.facts.element)));
  REQUIRE(!call.kernels.empty());
  CHECK(call.kernels[0].family == "reference");
  for (support::Trial t : support::trials(design_seed)) {
    t.accumulate = t.accumulate && call.accumulates;
    if (call.facts.transcendental && t.epilogue == 2)
      t.epilogue = 1;  // a step that rounds nothing, so the bound still holds
    // Only the joins of bits turn integers into integers. verify() checks other epilogues of integers, in a C of doubles.
    if (!support::is_floating(call.facts.result) && call.facts.join == rigel::Join::none) t.epilogue = 0;
    CAPTURE(t.text());
    const support::Operands o = support::operands_for(t, call.facts);
    const support::Model model = support::model(t, o, call.facts);
    const double u = support::roundoff(call.facts.result == rigel::Scalar::f64 ? 53 : 24);
    const double logarithmic = call.facts.errors == rigel::ErrorModel::logarithmic
                                   ? 1 + largest(o.a, o.a_bytes, call.facts.element) +
                                         largest(o.b, o.b_bytes, call.facts.element) +
                                         largest(o.c, o.c_bytes, call.facts.result)
                                   : 0;
    const auto bound_of = [&](const rigel::KernelInfo& info) {
      // The model computes in f64, so for f64 it rounds as much as the kernel does.
      const double twice = call.facts.result == rigel::Scalar::f64 ? 2 : 1;
      return Bound{twice * info.accuracy.of(t.k + t.accumulate) * u, logarithmic};
    };

    support::Bytes expected;
    for (const rigel::KernelInfo& info : call.kernels) {
      CAPTURE(info.name);
      support::Bytes actual;
      if (!support::ran(info, [&] { actual = call.run(t, o, info.name); })) continue;
      CHECK(support::same_gaps(o.c, call.facts.result, actual, o.c_bytes));
      if (info.family == "reference") {
        expected = actual;
        if (call.facts.exact && t.epilogue == 0) CHECK(differences_from_model(o, call, model, actual) == 0);
        if (!call.facts.exact && t.epilogue < 2) CHECK(out_of_bound(t, o, call, model, actual, bound_of(info)) == 0);
      } else if (call.facts.exact || covers(info.promises, rigel::Promise::reference_bits)) {
        CHECK(support::differences(o.c, call.facts.result, actual, expected) == 0);
      } else if (t.epilogue < 2) {
        CHECK(out_of_bound(t, o, call, model, actual, bound_of(info)) == 0);
      }
    }
  }
}

}  // namespace backends

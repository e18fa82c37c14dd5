// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "zoo.hpp"

#include <tests/support/compare.hpp>

namespace backends {
namespace {

constexpr std::uint64_t design_seed = 1;

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
    const auto out_of_bound = [&](const support::Bytes& actual, const rigel::KernelInfo& info) {
      return support::out_of_bound(t, o, call.facts, model, actual, info.accuracy);
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
        if (!call.facts.exact && t.epilogue < 2) CHECK(out_of_bound(actual, info) == 0);
      } else if (call.facts.exact || covers(info.promises, rigel::Promise::reference_bits)) {
        CHECK(support::differences(o.c, call.facts.result, actual, expected) == 0);
      } else if (t.epilogue < 2) {
        CHECK(out_of_bound(actual, info) == 0);
      }
    }
  }
}

}  // namespace backends

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The candidates that a predicate selects.
#include "select.hpp"

#include <rigel/outside_kernels.hpp>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rigel {
namespace {

// How many kernels there were to select from, in words.
std::string counted(std::size_t selected, std::size_t known, const std::vector<engine::Provided::Offer>& offers) {
  std::size_t all = known;
  std::string of_providers;
  for (const auto& offer : offers) {
    all += offer.names.size();
    of_providers += ", " + std::to_string(offer.names.size()) + " of provider '" + offer.provider + '\'';
  }
  return "(" + (selected == 0 ? "none" : std::to_string(selected)) + " of " + std::to_string(all) +
         " kernels of this key: " + std::to_string(known) + " registered or compiled with the call" + of_providers + ")\n";
}

}  // namespace

Discovery candidates(const Contraction& problem, const KernelPredicate& predicate) {
  if (!predicate) throw Error(Code::invalid_argument, "candidates: the predicate is empty");
  const engine::Forms<Contraction> unconditional(problem);
  const std::optional<std::string_view> bit_class = engine::class_for(unconditional);
  const engine::Forms<Contraction> forms(problem, predicate);
  std::vector<engine::Provided::Offer> offers;
  forms.made().ask(problem, predicate, &offers);
  struct Ranked {
    bool covers;
    double cost;  // by which select() chooses, and which may be less than what memory takes
    OwnedCandidate candidate;
    std::size_t place;
  };
  std::vector<Ranked> list;
  std::size_t known = 0;
  engine::for_each_candidate(forms, [&](const Kernel<Contraction>& kernel) {
    KernelOwner owner = forms.made().owner_of(&kernel);
    known += owner.use_count() == 0 ? 1 : 0;
    if (!predicate(kernel.info)) return;
    OwnedCandidate one{engine::candidate_of(kernel, forms, bit_class), std::move(owner)};
    Plan plan;
    const double cost = one.status ? kernel.cost(kernel, forms.of(kernel.info), plan) : 0;
    list.push_back({static_cast<bool>(one.status), cost, std::move(one), list.size()});
  });
  std::ranges::sort(list, [](const Ranked& x, const Ranked& y) {
    return std::tuple(!x.covers, x.cost, x.place) < std::tuple(!y.covers, y.cost, y.place);
  });
  Discovery found;
  found.explanation = engine::heading(problem) + ", kernels that a predicate selects:\n";
  for (Ranked& ranked : list) {
    OwnedCandidate& one = ranked.candidate;
    one.chosen = found.kernels.empty() && ranked.covers;
    found.explanation += engine::line_of<Contraction>(one, problem);
    found.kernels.push_back(std::move(one));
  }
  found.explanation += counted(list.size(), known, offers);
  return found;
}

}  // namespace rigel

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch of teams that all kernels of this family share.
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace rigel::backends::portable {

/// Launches `count` pieces of work on teams of `threads`: a team calls work(team) once, and takes every league_size()-th piece.
///
/// Of internal linkage, as are then Kokkos's functions for this functor: Clang inlines those that are called once, however long
/// they are. Otherwise `team` would be an object in memory, and the pointer to scratch memory one that may point anywhere.
template <class Bounds, class Exec, class Work>
static void launch(const Exec& exec, const std::string& label, const Work& work, std::int64_t count, int threads,
                   std::size_t scratch) {
  using Policy = Kokkos::TeamPolicy<Exec, Bounds>;
  constexpr std::int64_t max_league = 1 << 30;
  const auto policy = Kokkos::Experimental::require(
      Policy(exec, static_cast<int>(std::min(count, max_league)), threads).set_scratch_size(0, Kokkos::PerTeam(scratch)),
      Kokkos::Experimental::WorkItemProperty::HintLightWeight);
  const auto of_team = KOKKOS_LAMBDA(const typename Policy::member_type& team) { work(team); };
  Kokkos::parallel_for(label, policy, of_team);
}

}  // namespace rigel::backends::portable

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device's measured rates next to the table's.
#pragma once

#include <rigel/profile.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

/// A measurement. `share`: what this program measures of the table's rate on the device for which the table's row was measured; a loop that
/// keeps one unit busy does not reach all of it, and a copy not all of a data sheet's bandwidth. So the rate is value / share, and a device
/// like that one gets the table's.
struct Rate {
  std::string_view name;  // of Card's or Cpu's member
  double value = 0, share = 1;
  double rate() const { return value / share; }
};

inline double of(const rigel::Profile& profile, std::string_view name) {
  return std::ranges::find(profile.rates, name, &std::pair<std::string, double>::first)->second;
}

/// The table's rates with the measured ones in their place.
inline rigel::Profile profile_with(rigel::Profile table, const std::vector<Rate>& measured) {
  for (const Rate& one : measured)
    std::ranges::find(table.rates, one.name, &std::pair<std::string, double>::first)->second = one.rate();
  return table;
}

inline void print(const rigel::Profile& table, const std::vector<Rate>& measured) {
  std::printf("  %-24s %12s %8s %12s %12s %8s\n", "rate", "measured", "share", "profile", "table", "ratio");
  for (const auto& [name, row] : table.rates) {
    const auto found = std::ranges::find(measured, std::string_view(name), &Rate::name);
    if (found == measured.end())
      std::printf("  %-24s %12s %8s %12.5g %12.5g\n", name.c_str(), "", "", row, row);
    else
      std::printf("  %-24s %12.5g %8.4f %12.5g %12.5g %8.3f\n", name.c_str(), found->value, found->share, found->rate(), row,
                  found->rate() / row);
  }
}

}  // namespace tune

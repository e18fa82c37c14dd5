// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of a predicted time: by how much it grows with each of the constants that bench/fit.py fits. Only a build with RIGEL_FIT knows
// them, in which they are variables.
#pragma once

#include <rigel/contraction.hpp>
#include <rigel/registry.hpp>

#ifdef RIGEL_FIT
#include <rigel/backends/cuda/fitted/sm_90.hpp>
#endif

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// A kernel's own prediction, and for each constant on which it depends the derivative by the constant's logarithm, in seconds.
struct Parts {
  double cost = 0;
  std::vector<std::pair<const char*, double>> parts = {};
};

#ifdef RIGEL_FIT

inline Parts parts_of(const rigel::Kernel<rigel::Contraction>& kernel, const rigel::Contraction& p) {
  constexpr double step = 1e-4, least = 1e-4;  // of a logarithm; of the cost
  const auto cost = [&](const rigel::Contraction& form) {
    rigel::Plan plan;
    return kernel.cost(kernel, form, plan);
  };
  const auto parts = [&](const rigel::Contraction& form) {
    Parts all{.cost = cost(form)};
    for (const auto& [name, value] : rigel::backends::cuda::fitted::sm_90::fitted_constants()) {
      const double constant = *value;
      *value = constant * std::exp(step);
      const double above = cost(form);
      *value = constant * std::exp(-step);
      const double below = cost(form);
      *value = constant;
      const double part = (above - below) / (2 * step);
      if (std::abs(part) > least * all.cost) all.parts.emplace_back(name, part);
    }
    return all;
  };
  return p.is_transposed_for(kernel.info) ? parts(rigel::Contraction::Transposed(p).problem) : parts(p);
}

/// The last members of a row, for bench/fit.py.
inline std::string json_of(const Parts& parts) {
  std::ostringstream json;
  json.precision(9);
  json << ", \"cost\": " << parts.cost << ", \"parts\": {";
  const char* separator = "";
  for (const auto& [name, part] : parts.parts) {
    json << separator << '"' << name << "\": " << part;
    separator = ", ";
  }
  json << '}';
  return json.str();
}

#else

inline Parts parts_of(const rigel::Kernel<rigel::Contraction>&, const rigel::Contraction&) { return {}; }
inline std::string json_of(const Parts&) { return {}; }

#endif

}  // namespace bench

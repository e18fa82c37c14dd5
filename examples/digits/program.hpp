// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the programs on the digits have in common: their options, their figures, and their exit status.
#pragma once

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace digits {

/// The file of the digits, and the figures that the caller expects, by their names.
struct Options {
  std::filesystem::path data;
  std::map<std::string, std::string> expected;
};

/// What a program found, by the name under which the caller expects it.
struct Figure {
  const char* name;
  double value;
  double tolerance;  // relative; 0 for counts
  const char* what;
};

/// Prints figures, each in a line: what it is, in so many characters, and its value, of so many digits. Returns whether those that are
/// expected are as expected, and there is no other.
inline bool are_as_expected(std::span<const Figure> figures, std::map<std::string, std::string> expected, int characters,
                            int digits) {
  bool good = true;
  for (const Figure& figure : figures) {
    std::printf("%-*s %.*g\n", characters, figure.what, digits, figure.value);
    if (const auto entry = expected.extract(figure.name)) {
      const double wanted = std::stod(entry.mapped());
      if (std::fabs(figure.value - wanted) <= figure.tolerance * std::fabs(wanted)) continue;
      std::printf("FAILS: %s = %.15g is expected\n", figure.name, wanted);
      good = false;
    }
  }
  for (const auto& [name, value] : expected) {
    std::printf("FAILS: there is no figure %s\n", name.c_str());
    good = false;
  }
  return good;
}

inline bool has_device() {
#ifdef KOKKOS_ENABLE_CUDA
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
#else
  return true;
#endif
}

/// The body of main(): run(options) returns whether all figures are right. Returns the exit status: 0 if they are, 1 if not or
/// after an exception, 2 for a wrong command line, 77 without a GPU where the program is built for one.
template <class Run>
int run_program(int argc, char** argv, const char* usage, const Run& run) {
  const std::filesystem::path program = argv[0];
  Options options{program.parent_path() / "digits.csv", {}};
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const auto equals = value.rfind('=');
    if (word == "--data" && !value.empty()) {
      options.data = value;
    } else if (word == "--expect" && equals != std::string::npos) {
      options.expected[value.substr(0, equals)] = value.substr(equals + 1);
    } else {
      std::fputs(usage, word == "--help" ? stdout : stderr);
      return word == "--help" ? 0 : 2;
    }
  }
  if (!has_device()) {
    std::printf("skipped: this program is built for CUDA, and no GPU is visible\n");
    return 77;
  }
  try {
    const Kokkos::ScopeGuard kokkos;
    return run(options) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program.filename().c_str(), e.what());
    return 1;
  }
}

}  // namespace digits

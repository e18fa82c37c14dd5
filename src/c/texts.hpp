// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Semirings and epilogues from text.
#pragma once

#include "guard.hpp"

#include <rigel/contraction.hpp>
#include <rigel/runtime.hpp>
#include <rigel/runtime_gradient.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct rigel_semiring {
  rigel::runtime::Semiring semiring;
};
struct rigel_epilogue {
  rigel::runtime::Epilogue epilogue;
};
struct rigel_derivative {
  rigel::runtime::Derivative derivative;
};

namespace rigel::c {

/// Hyperparameters of a call: numbers, and those that are in memory, whose member of args is `name_of_views`.
struct TextParameters {
  std::span<const rigel_parameter> numbers;
  std::span<const rigel_parameter_view> views;
  const char* name_of_views;
};

/// A copy of a semiring from text, with these hyperparameters. Throws Error(not_found) for a name that it does not have. Memory is that of
/// `space`.
runtime::Semiring semiring_of(const rigel_semiring& given, const TextParameters& parameters, Space space);

/// Makes a semiring from text, which outlives the problem, the problem's: A and B must hold its elements, and `accumulator`, 0 for its own, be its
/// accumulator. Compiles it if it is not yet.
void set_in(Contraction& p, const runtime::Semiring& semiring, rigel_type accumulator);

/// The epilogue from text of a call, which outlives the problem: the epilogue with these hyperparameters, and what kernels read.
class TextEpilogueOfCall {
 public:
  /// Makes it the problem's. `from_text` is the problem's semiring, or null if that is one of the zoo's, of which plus_times takes epilogues from
  /// text. Throws Error(unsupported) for another one on hosts, and Error(not_found) for a hyperparameter that it does not have.
  TextEpilogueOfCall(Contraction& p, const rigel_epilogue& given, const TextParameters& parameters,
                     const runtime::Semiring* from_text);
  TextEpilogueOfCall(const TextEpilogueOfCall&) = delete;

 private:
  runtime::Epilogue epilogue_;
  std::optional<runtime::detail::EpilogueCall> call_;
};

/// A copy of a derivative from text, with these hyperparameters. Throws Error(not_found) for a name that it does not have.
runtime::Derivative derivative_of(const rigel_derivative& given, std::span<const rigel_parameter> parameters);

/// Runs `body`, whose errors name the class of C++ where those of C name the struct or nothing.
template <class Body>
auto in_words_of_c(const Body& body) {
  try {
    return body();
  } catch (const Error& e) {
    constexpr std::pair<std::string_view, std::string_view> names[] = {
        {"runtime::Semiring", "semiring"}, {"runtime::Epilogue", "epilogue"}, {"runtime::Derivative", "derivative"}};
    const std::string_view message = e.what();
    for (const auto& [of_cpp, of_c] : names) {
      if (!message.starts_with(of_cpp)) continue;
      const std::string_view rest = message.substr(of_cpp.size());
      throw Error(e.code(), rest.starts_with(": ") ? std::string(rest.substr(2)) : std::string(of_c) + std::string(rest));
    }
    throw;
  }
}

}  // namespace rigel::c

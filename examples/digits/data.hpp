// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file of digits: lines of 64 pixels and the digit.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

constexpr int features = 64;

struct Data {
  std::vector<int> pixels;  // `features` per digit
  std::vector<int> digits;
  int size() const { return static_cast<int>(digits.size()); }
};

inline Data read(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read '" + path.string() + "': name the data with --data <file>");
  Data data;
  int value = 0;
  for (std::size_t at = 0; file >> value; ++at) {
    (at % (features + 1) == features ? data.digits : data.pixels).push_back(value);
    if (file.peek() == ',') file.get();
  }
  if (data.digits.empty() || data.pixels.size() != data.digits.size() * features)
    throw std::runtime_error("'" + path.string() + "' does not hold lines of 65 integers");
  return data;
}

}  // namespace digits

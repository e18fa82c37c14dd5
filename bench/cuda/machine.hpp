// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The description of the machine in the JSON that programs write themselves.
#pragma once

#include <bench/cuda/device.hpp>

#include <sstream>
#include <string>

namespace bench {

/// A text as a JSON string, on one line.
inline std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c == '\n' ? ' ' : c;
  }
  return json + '"';
}

/// Compiler, GPU and CUDA as members of a JSON object.
inline std::string machine(const Exec& exec) {
  int runtime = 0, driver = 0, kilohertz = 0;
  cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, exec.cuda_device());
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  const auto& device = exec.cuda_device_prop();
  std::ostringstream json;
  json << "\"compiler\": " << quoted(__VERSION__) << ", \"gpu\": " << quoted(device.name)
       << ", \"multiprocessors\": " << device.multiProcessorCount << ", \"largest_sm_clock_mhz\": " << kilohertz / 1000
       << ", \"cuda_runtime\": " << runtime << ", \"cuda_driver\": " << driver;
  return json.str();
}

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The description of the machine in the JSON that programs write themselves.
#pragma once

#include <bench/exec.hpp>

#include <fstream>
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

/// The processor's name.
inline std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  return "unknown";
}

#ifdef KOKKOS_ENABLE_CUDA

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

#else

/// Compiler, processor and threads as members of a JSON object.
inline std::string machine(const Exec& exec) {
  return "\"compiler\": " + quoted(__VERSION__) + ", \"processor\": " + quoted(processor()) +
         ", \"threads\": " + std::to_string(exec.concurrency());
}

#endif

}  // namespace bench

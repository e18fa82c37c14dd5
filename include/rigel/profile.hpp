// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Profiles: a device's measured rates, in place of those of the tables (rigel/card.hpp, rigel/cpu.hpp). rigel-tune writes one to
// $XDG_CONFIG_HOME/rigel/<device>.json, or ~/.config/rigel/<device>.json, and the library reads it once, when it first needs the
// device's rates. The environment variable RIGEL_PROFILE names another file, the only one that is then read, or is `off`.
//
// A profile decides which kernel a call gets, never whether its results are right. It changes no bit of calls that require
// `batch_invariant` or `reference_bits`; of others it may, as another GPU may.
#pragma once

#include <rigel/card.hpp>
#include <rigel/cpu.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rigel {

/// Rates of one device, by the names of Card's or Cpu's members.
struct Profile {
  std::string device;          // a GPU as its driver names it, or cpu_name()
  int compute_capability = 0;  // of a GPU: 90 for sm_90; 0: a host
  std::vector<std::pair<std::string, double>> rates = {};
};

/// The profile that a text is, a JSON object of at most 64 KiB:
///
///     {"rigel_profile": 1, "device": "NVIDIA H200", "compute_capability": 90, "rates": {"clock": 1.98e9, …}}
///
/// Throws Error(invalid_argument) with the line, unless the text is exactly that: version 1 of the format, each member once and no other,
/// and for each rate of a GPU or of a host a positive number within a factor of 1000 of the table's (0, if the table's is).
Profile parse_profile(std::string_view text);

/// The text of a profile, which parse_profile() reads to the same numbers.
std::string text_of(const Profile& profile);

/// The rates of a device as a profile, and a device with a profile's rates. What a profile does not hold (multiprocessors, the size of
/// memories, the architecture) stays.
Profile profile_of(std::string_view device, const Card& card);
Profile profile_of(std::string_view device, const Cpu& cpu);
Card with_profile(Card card, const Profile& profile);
Cpu with_profile(Cpu cpu, const Profile& profile);

/// The path of a device's profile in the user's configuration; empty if neither XDG_CONFIG_HOME nor HOME is an absolute path. The file's
/// name is the device's in lower case, with one dash for whatever is neither letter nor digit: nvidia-h200.json.
std::string profile_path(std::string_view device);

/// The profile for a device, if there is one.
struct FoundProfile {
  bool is_used = false;
  Profile profile = {};
  std::string note = {};  // for explain(): "rates of <path>", or "<path> is ignored: <why>"; empty if there is no file
};
/// Throws Error(invalid_argument) if RIGEL_PROFILE names a file that cannot be read, is no profile, or is that of another device of the
/// same kind (GPUs, or hosts; devices of the other kind have no profile then). Such a file in the user's configuration is ignored, and the
/// note says why.
FoundProfile find_profile(std::string_view device, int compute_capability);

/// The Card with what find_profile() finds for the device.
Card tuned(Card card, std::string_view device);

}  // namespace rigel

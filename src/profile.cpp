// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads, checks and finds profiles.
#include <rigel/error.hpp>
#include <rigel/profile.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <forward_list>
#include <fstream>
#include <mutex>
#include <span>

namespace rigel {
namespace {

constexpr int version = 1;
constexpr std::size_t most_bytes = 64 << 10, most_characters = 256;  // of a file; of a string
constexpr double most_times = 1000;                                  // that a rate is the table's

template <class Device>
struct Rate {
  std::string_view name;
  double Device::* member;
};
constexpr std::array<Rate<Card>, 14> card_rates = {{{"clock", &Card::clock},
                                                    {"memory_bytes_per_second", &Card::memory_bytes_per_second},
                                                    {"launch_seconds", &Card::launch_seconds},
                                                    {"next_launch_seconds", &Card::next_launch_seconds},
                                                    {"l2_bytes_per_second", &Card::l2_bytes_per_second},
                                                    {"shared_bytes", &Card::shared_bytes},
                                                    {"float_lanes", &Card::float_lanes},
                                                    {"integer_lanes", &Card::integer_lanes},
                                                    {"double_lanes", &Card::double_lanes},
                                                    {"special_lanes", &Card::special_lanes},
                                                    {"bit_count_lanes", &Card::bit_count_lanes},
                                                    {"tensor_products", &Card::tensor_products},
                                                    {"warpgroup_products", &Card::warpgroup_products},
                                                    {"tensor_double_products", &Card::tensor_double_products}}};
constexpr std::array<Rate<Cpu>, 11> cpu_rates = {{{"clock", &Cpu::clock},
                                                  {"launch_seconds", &Cpu::launch_seconds},
                                                  {"cache_bytes_per_second", &Cpu::cache_bytes_per_second},
                                                  {"memory_bytes_per_second", &Cpu::memory_bytes_per_second},
                                                  {"l2_bytes", &Cpu::l2_bytes},
                                                  {"vectors_16", &Cpu::vectors_16},
                                                  {"vectors_32", &Cpu::vectors_32},
                                                  {"vectors_64", &Cpu::vectors_64},
                                                  {"products_16", &Cpu::products_16},
                                                  {"products_32", &Cpu::products_32},
                                                  {"products_64", &Cpu::products_64}}};

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::invalid_argument, why); }

std::string text_of(double number) {
  char text[32];  // the shortest text that is read back as this number, in any locale
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

// A number in a message.
std::string brief(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return json + '"';
}

// ---- reading ----------------------------------------------------------------------------------------------------------------

/// The part of JSON (RFC 8259) that a profile has: objects, strings without other escapes than \" and \\, and numbers.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  /// Calls member(name) for each member; it reads the value.
  template <class Member>
  void object(const Member& member) {
    std::vector<std::string> names;
    expect('{');
    if (next() == '}') return expect('}');
    for (;;) {
      std::string name = string();
      if (std::ranges::find(names, name) != names.end()) fail("the member \"" + name + "\" comes twice");
      expect(':');
      member(name);
      names.push_back(std::move(name));
      if (next() != ',') return expect('}');
      expect(',');
    }
  }

  std::string string() {
    expect('"');
    std::string text;
    for (;;) {
      if (rest_.empty()) fail("the text ends within a string");
      char c = take();
      if (c == '"') return text;
      if (static_cast<unsigned char>(c) < 0x20) fail("a string holds a control character");
      if (c == '\\' && (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\\')))
        fail("a string holds an escape other than \\\" and \\\\");
      if (c == '\\') c = take();
      text += c;
      if (text.size() > most_characters) fail("a string is longer than " + std::to_string(most_characters) + " characters");
    }
  }

  double number(const std::string& name) {
    next();
    const auto end = std::min(rest_.find_first_not_of("+-.0123456789eE"), rest_.size());
    const std::string_view text = rest_.substr(0, end);
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
    const auto is_digit = [&](std::size_t i) { return i < digits.size() && digits[i] >= '0' && digits[i] <= '9'; };
    const auto point = digits.find('.');
    const bool is_json =
        is_digit(0) && !(digits[0] == '0' && is_digit(1)) && (point == std::string_view::npos || is_digit(point + 1));
    if (!is_json || stop != text.data() + text.size() || error == std::errc::invalid_argument) fail(name + " is no number");
    if (error != std::errc{} || !std::isfinite(value)) fail(name + " is " + std::string(text) + ", which no double holds");
    rest_.remove_prefix(end);
    return value;
  }

  void end() {
    if (next() != 0) fail("something follows the object");
  }

  [[noreturn]] void fail(const std::string& why) const { refuse("line " + std::to_string(line_) + ": " + why); }

 private:
  char take() {
    const char c = rest_.front();
    line_ += c == '\n';
    rest_.remove_prefix(1);
    return c;
  }
  // The next character that is no white space; 0 at the end.
  char next() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_.front()) != std::string_view::npos) take();
    return rest_.empty() ? '\0' : rest_.front();
  }
  void expect(char c) {
    if (next() == c && !rest_.empty()) return static_cast<void>(take());
    fail(std::string("expected '") + c + "', " +
         (rest_.empty() ? "the text ends" : std::string("got '") + rest_.front() + "'"));
  }

  std::string_view rest_;
  int line_ = 1;
};

// ---- rates ------------------------------------------------------------------------------------------------------------------

/// Throws unless the profile has all of a device's rates and no other, each of them plausible.
template <class Device>
void check(const Profile& profile, std::span<const Rate<Device>> rates, const Device& row) {
  for (const auto& [name, value] : profile.rates) {
    const auto known = std::ranges::find(rates, std::string_view(name), &Rate<Device>::name);
    if (known == rates.end()) refuse("no rate of this device is called \"" + name + "\"");
    const double expected = row.*(known->member);
    if (expected == 0 && value != 0) refuse(name + " is " + brief(value) + ", expected 0");
    if (expected != 0 && !(value >= expected / most_times && value <= expected * most_times))
      refuse(name + " is " + brief(value) + ", expected " + brief(expected / most_times) + " to " +
             brief(expected * most_times));
  }
  for (const Rate<Device>& rate : rates)
    if (std::ranges::find(profile.rates, rate.name, &std::pair<std::string, double>::first) == profile.rates.end())
      refuse("the rate \"" + std::string(rate.name) + "\" is missing");
}

template <class Device>
Device merged(Device device, const Profile& profile, std::span<const Rate<Device>> rates) {
  for (const Rate<Device>& rate : rates)
    for (const auto& [name, value] : profile.rates)
      if (name == rate.name) device.*(rate.member) = value;
  return device;
}

template <class Device>
Profile profile_of(std::string_view name, int compute_capability, const Device& device,
                   std::span<const Rate<Device>> rates) {
  Profile profile{.device = std::string(name), .compute_capability = compute_capability};
  for (const Rate<Device>& rate : rates) profile.rates.emplace_back(rate.name, device.*(rate.member));
  return profile;
}

// ---- files ------------------------------------------------------------------------------------------------------------------

std::string read(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) refuse("it is no file that can be read");
  std::ifstream file(path, std::ios::binary);
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) refuse("it is no file that can be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string kind_of(const Profile& profile) {
  return profile.compute_capability == 0 ? "" : " of sm_" + std::to_string(profile.compute_capability);
}

bool are_of_one_kind(int compute_capability, int other) { return (compute_capability == 0) == (other == 0); }

void require_device(const Profile& profile, std::string_view device, int compute_capability) {
  if (profile.device == device && profile.compute_capability == compute_capability) return;
  refuse("it is the profile of \"" + profile.device + '"' + kind_of(profile) + ", expected \"" + std::string(device) + '"' +
         kind_of({.device = {}, .compute_capability = compute_capability}));
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

Profile parse_profile(std::string_view text) {
  if (text.size() > most_bytes) refuse("it is longer than " + std::to_string(most_bytes) + " bytes");
  Profile profile;
  bool has_version = false, has_device = false, has_capability = false, has_rates = false;
  Reader reader(text);
  reader.object([&](const std::string& name) {
    if (name == "rigel_profile") {
      const double number = reader.number(name);
      if (number != version)
        reader.fail("rigel_profile is " + brief(number) + ", expected " + std::to_string(version) +
                    ", the version of the format");
      has_version = true;
    } else if (name == "device") {
      profile.device = reader.string();
      has_device = true;
    } else if (name == "compute_capability") {
      const double number = reader.number(name);
      if (!(number >= 0 && number < 1000 && number == std::floor(number)))
        reader.fail("compute_capability is " + brief(number) + ", expected 0 for a host, or as in 90 for sm_90");
      profile.compute_capability = static_cast<int>(number);
      has_capability = true;
    } else if (name == "rates") {
      reader.object([&](const std::string& rate) { profile.rates.emplace_back(rate, reader.number(rate)); });
      has_rates = true;
    } else {
      reader.fail("no member of a profile is called \"" + name + "\"");
    }
  });
  reader.end();
  for (const auto& [has, name] : {std::pair{has_version, "rigel_profile"}, std::pair{has_device, "device"},
                                  std::pair{has_capability, "compute_capability"}, std::pair{has_rates, "rates"}})
    if (!has) refuse(std::string("the member \"") + name + "\" is missing");
  if (profile.device.empty()) refuse("device is empty, expected the device's name");
  if (profile.compute_capability == 0)
    check<Cpu>(profile, cpu_rates, table_cpu());
  else
    check<Card>(profile, card_rates, card_of_architecture(profile.compute_capability));
  return profile;
}

std::string text_of(const Profile& profile) {
  std::string text = "{\n  \"rigel_profile\": " + std::to_string(version) +
                     ",\n  \"device\": " + json_string(profile.device) +
                     ",\n  \"compute_capability\": " + std::to_string(profile.compute_capability) + ",\n  \"rates\": {";
  const char* separator = "\n";
  for (const auto& [name, value] : profile.rates) {
    text += separator + ("    " + json_string(name)) + ": " + text_of(value);
    separator = ",\n";
  }
  return text + "\n  }\n}\n";
}

Profile profile_of(std::string_view device, const Card& card) {
  return profile_of<Card>(device, card.compute_capability, card, card_rates);
}
Profile profile_of(std::string_view device, const Cpu& cpu) { return profile_of<Cpu>(device, 0, cpu, cpu_rates); }
Card with_profile(Card card, const Profile& profile) { return merged<Card>(card, profile, card_rates); }
Cpu with_profile(Cpu cpu, const Profile& profile) { return merged<Cpu>(cpu, profile, cpu_rates); }

std::string profile_path(std::string_view device) {
  std::filesystem::path folder = variable("XDG_CONFIG_HOME");
  if (!folder.is_absolute()) {
    const std::filesystem::path home = variable("HOME");
    if (!home.is_absolute()) return {};
    folder = home / ".config";
  }
  std::string name;
  for (const char c : device) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      name += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  if (name.ends_with('-')) name.pop_back();
  return folder / "rigel" / (name + ".json");
}

FoundProfile find_profile(std::string_view device, int compute_capability) {
  const std::string named = variable("RIGEL_PROFILE"), path = named.empty() ? profile_path(device) : named;
  std::error_code error;
  if (named == "off" || (named.empty() && (path.empty() || !std::filesystem::exists(path, error)))) return {};
  try {
    const Profile profile = parse_profile(read(path));
    // The one file that RIGEL_PROFILE names is for a GPU or for the host; the other gets none.
    if (!named.empty() && !are_of_one_kind(profile.compute_capability, compute_capability)) return {};
    require_device(profile, device, compute_capability);
    return {.is_used = true, .profile = profile, .note = "rates of " + path};
  } catch (const Error& e) {
    if (!named.empty()) refuse("RIGEL_PROFILE names '" + path + "', which is refused: " + e.what());
    return {.note = path + " is ignored: " + e.what()};
  }
}

Card tuned(Card card, std::string_view device) {
  const FoundProfile found = find_profile(device, card.compute_capability);
  if (found.is_used) card = with_profile(card, found.profile);
  static std::mutex mutex;
  static auto& notes = *new std::forward_list<std::string>;  // as long as any card: until the program ends
  const std::lock_guard lock(mutex);
  card.profile = notes.emplace_front(found.note);
  return card;
}

}  // namespace rigel

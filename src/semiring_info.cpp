// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/semiring_info.hpp>

#include <rigel/detail/arguments.hpp>

#include <cstring>

namespace rigel {

double Hyperparameter::get(const void* object) const {
  double value = 0;
  detail::with_type<std::int64_t>(type, nullptr, [&]<class T>(T*) {
    T typed;
    std::memcpy(&typed, static_cast<const std::byte*>(object) + offset, sizeof typed);
    value = static_cast<double>(typed);
  });
  return value;
}

void Hyperparameter::set(void* object, double value) const {
  detail::with_type<std::int64_t>(type, nullptr, [&]<class T>(T*) {
    const T typed = detail::convert<T>(value);
    std::memcpy(static_cast<std::byte*>(object) + offset, &typed, sizeof typed);
  });
}

}  // namespace rigel

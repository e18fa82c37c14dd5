// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From exceptions to codes: the body of every function of rigel.h runs in guarded().
#pragma once

#include <rigel/rigel.h>
#include <rigel/error.hpp>

#include <exception>
#include <new>
#include <string>

namespace rigel::c {

/// Keeps the message of a function of rigel.h for rigel_last_error() and returns the code.
rigel_code failed(rigel_code code, const char* function, const char* message) noexcept;

/// A GPU that the library does not run on.
class UnsupportedArchitecture : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs `body`. The message begins with the function's name, which Rigel's own messages do already.
template <class Body>
rigel_code guarded(const char* function, const Body& body) noexcept {
  try {
    body();
    return RIGEL_OK;
  } catch (const Error& e) {
    return failed(static_cast<rigel_code>(e.code()), function, e.what());
  } catch (const UnsupportedArchitecture& e) {
    return failed(RIGEL_UNSUPPORTED_ARCH, function, e.what());
  } catch (const std::bad_alloc&) {
    return failed(RIGEL_OUT_OF_MEMORY, function, "out of memory");
  } catch (const std::exception& e) {
    return failed(RIGEL_INTERNAL, function, e.what());
  } catch (...) {
    return failed(RIGEL_INTERNAL, function, "an exception that is no std::exception");
  }
}

/// Throws Error(invalid_argument).
[[noreturn]] inline void refuse(const std::string& message) { throw Error(Code::invalid_argument, message); }

/// A struct of the caller's that begins with its size, of which `reserved` numbers must be 0.
template <class Struct>
const Struct& checked(const Struct* given, const char* name) {
  if (!given) refuse(std::string(name) + " is NULL");
  if (given->size != sizeof(Struct))
    refuse(std::string(name) + ".size is " + std::to_string(given->size) + ", expected " + std::to_string(sizeof(Struct)));
  return *given;
}
template <class Integer, std::size_t count>
void require_zero(const Integer (&reserved)[count], const char* name) {
  for (const Integer r : reserved)
    if (r != 0) refuse(std::string(name) + ".reserved has a number other than 0");
}
template <class Integer>
void require_zero(Integer reserved, const std::string& name) {
  if (reserved != 0) refuse(name + " is " + std::to_string(reserved) + ", expected 0");
}
/// A flag, 0 or 1.
inline bool flag(std::int64_t value, const char* name) {
  if (value != 0 && value != 1) refuse(std::string(name) + " is " + std::to_string(value) + ", expected 0 or 1");
  return value == 1;
}
/// Where a function puts what it returns.
template <class T>
T& result(T* given, const char* name) {
  if (!given) refuse(std::string(name) + " is NULL");
  return *given;
}

}  // namespace rigel::c

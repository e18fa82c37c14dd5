// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How functions of librigel_c are called: options, parameters and epilogues as Python has them, the thread's handle, and errors.
#pragma once

#include "arrays.hpp"

#include <deque>
#include <optional>
#include <type_traits>

namespace rigel::python {

/// A number of Python's. Raises if it is none, or out of T's range.
template <class T>
T number_of(nb::handle given, const char* name) {
  T value = {};
  if (!nb::try_cast(given, value, true))
    raise(RIGEL_UNSUPPORTED, std::string(name) + " is " + nb::repr(given).c_str() + ", expected " +
                                 (std::is_floating_point_v<T> ? "a number" : "an integer"));
  return value;
}

/// Names and numbers, from a dict or None, for as long as this lives.
class Parameters {
 public:
  explicit Parameters(nb::handle given);
  const rigel_parameter* data() const { return list_.empty() ? nullptr : list_.data(); }
  std::int32_t count() const { return static_cast<std::int32_t>(list_.size()); }

 private:
  std::deque<std::string> names_;
  std::vector<rigel_parameter> list_;
};

/// (kernel, require, precision), or None for the defaults; the name lives as long as the object does.
rigel_options options_of(nb::handle given);

/// Text, which lives as long as the object does.
const char* text_of(nb::handle text, const char* name);
/// Text, or NULL for None.
inline const char* optional_text_of(nb::handle text, const char* name) {
  return text.is_none() ? nullptr : text_of(text, name);
}

/// What is true or false.
struct Flag {
  bool value = false;
  operator bool() const { return value; }
};

/// An epilogue: a sequence of steps (kind, x, y, offset), in which x and y are numbers or arrays that broadcast to the results, or None.
class Epilogue {
 public:
  explicit Epilogue(nb::handle steps);
  /// Whether a step makes numbers of integers, other than bits.
  bool computes() const;
  /// The batch of the results that its arrays take part in.
  void broadcast(Batch& batch) const;
  void add_to(Matrices& matrices);
  /// Sets the program, of the part of the batch that the matrices are at.
  void set(rigel_program& program) const;

 private:
  double number(nb::handle given, std::int32_t& source);

  std::vector<rigel_step> steps_;
  std::vector<Array> arrays_;
  std::vector<const rigel_matrix*> matrices_;
};

/// While it lives in a thread, calls of this thread are explained, not run.
class Explaining {
 public:
  static bool is_active();
  static void add(char* json);
  static void begin();
  static nb::list end();
};

/// The handle of the calling thread, on the host. Raises if there is none, and in a child of a process that forked during a call.
rigel_handle* thread_handle();

/// Marks that a call runs, for children of the process.
class Running {
 public:
  Running();
  ~Running();
};

/// Raises for the last error, which `function` names in place of the one of rigel.h that has failed.
[[noreturn]] void raise_last_error(rigel_code code, const char* function = nullptr);

/// Runs a call for each part of the batch without the GIL, or explains the first part.
template <class Run, class Explain>
void perform(Matrices& matrices, const Run& run, const Explain& explain) {
  rigel_handle* const handle = thread_handle();
  char* json = nullptr;
  const bool explains = Explaining::is_active();
  const rigel_code code = [&] {
    const nb::gil_scoped_release without_gil;
    const Running running;
    return matrices.run([&] { return !explains ? run(handle) : json ? RIGEL_OK : explain(handle, &json); });
  }();
  if (code != RIGEL_OK) raise_last_error(code);
  if (json) Explaining::add(json);
}

/// Of a function without candidates.
inline constexpr auto not_explained = [](rigel_handle*, char**) -> rigel_code { return RIGEL_OK; };

}  // namespace rigel::python

namespace nanobind::detail {

template <>
struct type_caster<rigel::python::Flag> {
  NB_TYPE_CASTER(rigel::python::Flag, const_name("bool"))
  template <class Flags>
  bool from_python(handle given, Flags, cleanup_list*) noexcept {
    const int truth = PyObject_IsTrue(given.ptr());
    if (truth < 0) PyErr_Clear();
    value.value = truth == 1;
    return truth >= 0;
  }
};

}  // namespace nanobind::detail

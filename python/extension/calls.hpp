// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How functions of librigel_c are called: options, parameters and epilogues as Python has them, the thread's handle, and errors.
#pragma once

#include "arrays.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

namespace rigel::python {

/// A number of Python's. Raises if it is none, or out of T's range.
template <class T>
T number_of(nb::handle given, const char* name) {
  T value = {};
  if (!PyFloat_Check(given.ptr()) && !PyLong_Check(given.ptr())) require_no_gradient(given, name);
  if (nb::try_cast(given, value, true)) return value;
  const bool is_number = std::is_floating_point_v<T>;
  using Limits = std::numeric_limits<T>;
  const bool is_out_of_range = !is_number && PyLong_Check(given.ptr());
  raise(RIGEL_UNSUPPORTED,
        std::string(name) + " is " + nb::repr(given).c_str() + ", expected " + (is_number ? "a number" : "an integer") +
            (is_out_of_range ? " from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()) : ""));
}

/// The dict that a call has of parameters, an empty one for None.
nb::dict dict_of_parameters(nb::handle given);

/// Names and numbers, from a dict or None, for as long as this lives.
class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(nb::handle given);
  void add(nb::handle name, nb::handle value);
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

/// What a call says of its metric, and of a kernel over it or None. It lives as long as the objects do.
class Metric {
 public:
  Metric(nb::handle metric, nb::handle parameters, nb::handle matrix, nb::handle kernel = nb::none(),
         nb::handle hyperparameters = nb::none());

  /// Sets what args have of it. The metric's matrix, of two dimensions, or a row, serves all of a batch.
  template <class Args>
  void set(Args& args, Matrices& matrices) const {
    args.metric = name_;
    args.parameters = parameters_.data();
    args.parameters_count = parameters_.count();
    if constexpr (requires { args.metric_matrix; })
      args.metric_matrix = matrix_ ? matrices.add(*matrix_, matrix_->dimensions) : nullptr;
    if constexpr (requires { args.kernel; }) {
      args.kernel = kernel_;
      args.hyperparameters = hyperparameters_.data();
      args.hyperparameters_count = hyperparameters_.count();
    }
  }

 private:
  const char *name_, *kernel_;
  Parameters parameters_, hyperparameters_;
  std::optional<Array> matrix_;
};

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
/// The same without the GIL: RIGEL_OK, or another code and a message.
rigel_code find_thread_handle(rigel_handle*& handle, std::string& message);

/// The handle of a GPU's stream. It and the stream serve one thread at a time, and so whichever thread has its turn.
struct StreamHandle {
  rigel_handle* handle = nullptr;
  std::recursive_mutex turn;  // a function that kernel_solve() tells of steps may call, too
  StreamHandle() = default;
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;
  ~StreamHandle() { rigel_destroy(handle); }
};
/// That of the place of an array; NULL if it is on the host. Raises if this library has no code for the device.
std::shared_ptr<StreamHandle> handle_of(const Array& array);

/// Marks that a call runs, for children of the process.
class Running {
 public:
  Running();
  ~Running();
};

/// A message of librigel_c without the name of the function that has failed.
std::string without_function(std::string message);
/// A message of librigel_c with the name that Python knows the function by.
std::string without_prefix(std::string message);

/// Raises for the last error, which `function` names in place of the one of rigel.h that has failed.
[[noreturn]] void raise_last_error(rigel_code code, const char* function = nullptr);

/// The handle that a call runs on, and what it waits for. A call on a GPU is asynchronous if all its arrays are on one stream and their
/// libraries reuse memory in its order. Then an array that Python lets go while the call runs is safe: what comes into its memory comes
/// later on the stream. That is so of torch and cupy, whose own functions rely on it. Else it waits for the other streams before it
/// starts, and for its end.
class Queue {
 public:
  explicit Queue(const Matrices& matrices);

  /// Runs call(handle) without the GIL. Raises if it fails.
  template <class Call>
  void run(const Call& call, bool computes = true) {
    const rigel_code code = [&] {
      const nb::gil_scoped_release without_gil;
      const Running running;
      if (!of_stream_) return call(host_);
      if (computes)
        if (const rigel_code failed = wait_for_others(); failed != RIGEL_OK) return failed;
      const std::lock_guard turn(of_stream_->turn);
      const rigel_code result = call(of_stream_->handle);
      return result == RIGEL_OK && computes && waits_ ? rigel_synchronize(of_stream_->handle) : result;
    }();
    if (code != RIGEL_OK) raise_last_error(code);
  }

  /// Whether the stream is being captured in a graph, so that workspace has to come from the arrays' library.
  bool is_capturing() const;
  /// Workspace of that library, while it lives.
  Array workspace(std::size_t bytes, rigel_options& options) const;

 private:
  rigel_code wait_for_others() const;

  const Matrices& matrices_;
  rigel_handle* host_ = nullptr;
  std::shared_ptr<StreamHandle> of_stream_;
  std::vector<std::shared_ptr<StreamHandle>> others_;
  bool waits_ = false;
};

/// Runs a call for each part of the batch without the GIL, or explains the first part.
template <class Run, class Explain>
void perform(Queue& queue, Matrices& matrices, const Run& run, const Explain& explain) {
  char* json = nullptr;
  const bool explains = Explaining::is_active();
  queue.run(
      [&](rigel_handle* h) {
        return matrices.run([&] { return !explains ? run(h) : json ? RIGEL_OK : explain(h, &json); });
      },
      !explains);
  if (json) Explaining::add(json);
}
template <class Run, class Explain>
void perform(Matrices& matrices, const Run& run, const Explain& explain) {
  Queue queue(matrices);
  perform(queue, matrices, run, explain);
}

/// The same with size(handle, &bytes), which says how much workspace a part needs. It checks the arguments of a batch of no matrices, and
/// sees to workspace while a stream is captured: `options` are those of the call.
template <class Run, class Size, class Explain>
void perform(Matrices& matrices, rigel_options& options, const Run& run, const Size& size, const Explain& explain) {
  Queue queue(matrices);
  Array memory;
  if (matrices.is_empty() || queue.is_capturing()) {
    std::size_t most = 0;
    queue.run(
        [&](rigel_handle* h) {
          return matrices.check([&] {
            std::size_t bytes = 0;
            const rigel_code code = size(h, &bytes);
            most = std::max(most, bytes);
            return code;
          });
        },
        false);
    if (most > 0 && !matrices.is_empty()) memory = queue.workspace(most, options);
  }
  perform(queue, matrices, run, explain);
}

/// The same of a function of librigel_c, and those of its workspace and its candidates, or NULL: call(function, handle, more...) calls one
/// with the same arguments, and more.
template <class Call, class Function, class Size, class Explain>
void perform(Matrices& matrices, rigel_options& options, const Call& call, Function function, Size size, Explain explain) {
  perform(
      matrices, options, [&](rigel_handle* h) { return call(function, h); },
      [&](rigel_handle* h, std::size_t* bytes) { return call(size, h, bytes); },
      [&](rigel_handle* h, char** json) -> rigel_code {
        if constexpr (std::is_null_pointer_v<Explain>)
          return RIGEL_OK;
        else
          return call(explain, h, json);
      });
}

/// Of a function without candidates.
inline constexpr auto not_explained = [](rigel_handle*, char**) -> rigel_code { return RIGEL_OK; };

/// Defines a function whose arguments may be None.
template <class Result, class... Argument>
void define(nb::module_& m, const char* name, Result (*function)(Argument...)) {
  m.def(name, function, (static_cast<void>(sizeof(std::type_identity<Argument>)), nb::arg().none())...);
}

/// The functions of gradients.cpp.
void define_gradients(nb::module_& m);

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

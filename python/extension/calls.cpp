// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "calls.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

namespace rigel::python {
namespace {

struct ThreadHandle {
  rigel_handle* handle = nullptr;
  ~ThreadHandle() { rigel_destroy(handle); }
};
thread_local ThreadHandle of_thread;

std::atomic<int> running = 0;
bool is_broken =
    false;  // in a child that was forked while another thread was in the library, whose locks it may hold for ever

struct Explained {
  bool is_active = false;
  std::vector<std::string> texts;
};
thread_local Explained explained;

// The handles of streams of GPUs, the one used last first. As many as a process has streams in use; one of a stream that is gone is not
// used again, or serves another stream at its address.
using StreamHandles = std::vector<std::pair<std::pair<std::int32_t, void*>, std::shared_ptr<StreamHandle>>>;
constexpr std::size_t most_stream_handles = 64;
StreamHandles& stream_handles() {
  static StreamHandles& all = *new StreamHandles;  // never destroyed: CUDA may be gone before
  return all;
}

}  // namespace

const char* text_of(nb::handle text, const char* name) {
  if (!PyUnicode_Check(text.ptr()))
    raise(RIGEL_UNSUPPORTED, std::string(name) + " is " + nb::repr(text).c_str() + ", expected a str");
  const char* const utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), nullptr);
  if (!utf8) throw nb::python_error();
  return utf8;
}

nb::dict dict_of_parameters(nb::handle given) {
  if (given.is_none()) return {};
  if (!PyDict_Check(given.ptr()))
    raise(RIGEL_UNSUPPORTED,
          std::string("parameters are ") + nb::repr(given).c_str() + ", expected a dict of names and numbers");
  return nb::borrow<nb::dict>(given);
}

Parameters::Parameters(nb::handle given) {
  for (const auto [name, value] : dict_of_parameters(given)) add(name, value);
}

void Parameters::add(nb::handle name, nb::handle value) {
  names_.emplace_back(text_of(name, "the name of a parameter"));
  list_.push_back({names_.back().c_str(), number_of<double>(value, names_.back().c_str())});
}

rigel_options options_of(nb::handle given) {
  rigel_options options = {};
  if (given.is_none()) return options;
  options.kernel = optional_text_of(given[0], "kernel");
  options.require = nb::cast<std::uint32_t>(given[1]);
  options.precision = nb::cast<std::int32_t>(given[2]);
  return options;
}

Metric::Metric(nb::handle metric, nb::handle parameters, nb::handle matrix, nb::handle kernel, nb::handle hyperparameters)
    : name_(text_of(metric, "metric")),
      kernel_(optional_text_of(kernel, "kernel")),
      parameters_(parameters),
      hyperparameters_(hyperparameters) {
  if (matrix.is_none()) return;
  matrix_ = input(matrix, "the metric's matrix", 1);
  if (matrix_->dimensions > 2) refuse(described(*matrix_, "the metric's matrix") + ", expected one or two dimensions");
}

Epilogue::Epilogue(nb::handle steps) {
  if (steps.is_none()) return;
  arrays_.reserve(RIGEL_MOST_SOURCES);
  for (const nb::handle given : steps) {
    const auto part = [&](Py_ssize_t i) { return nb::handle(PyTuple_GetItem(given.ptr(), i)); };
    rigel_step step = {};
    step.kind = number_of<std::int32_t>(part(0), "the kind of a step");
    step.x = number(part(1), step.x_source);
    step.y = number(part(2), step.y_source);
    if (step.y_source != 0 && step.x_source == 0)
      refuse("a step of the epilogue has a number and an array, expected two numbers, or two arrays");
    step.offset = number_of<std::int64_t>(part(3), "offset");
    steps_.push_back(step);
  }
  if (steps_.size() > RIGEL_MOST_STEPS)
    refuse("the epilogue has " + std::to_string(steps_.size()) + " steps, expected at most " +
           std::to_string(RIGEL_MOST_STEPS));
}

double Epilogue::number(nb::handle given, std::int32_t& source) {
  double value = 0;
  const bool is_number = PyFloat_Check(given.ptr()) || PyLong_Check(given.ptr()) || !nb::hasattr(given, "__dlpack__");
  if (is_number && nb::try_cast(given, value, true)) return value;
  if (arrays_.size() == RIGEL_MOST_SOURCES)
    refuse("the epilogue reads more than " + std::to_string(RIGEL_MOST_SOURCES) + " arrays");
  arrays_.push_back(input(given, "an array of the epilogue", 0));
  source = static_cast<std::int32_t>(arrays_.size());
  return 0;
}

bool Epilogue::computes() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const rigel_step& step) { return step.kind != RIGEL_ANY_BIT && step.kind != RIGEL_PARITY; });
}

void Epilogue::broadcast(Batch& batch) const {
  for (const Array& array : arrays_) batch.broadcast(array, "an array of the epilogue", 2);
}

void Epilogue::add_to(Matrices& matrices) {
  for (const Array& array : arrays_) matrices_.push_back(matrices.add(array, std::min(array.dimensions, 2)));
}

void Epilogue::set(rigel_program& program) const {
  program.steps_count = static_cast<std::int32_t>(steps_.size());
  program.sources_count = static_cast<std::int32_t>(matrices_.size());
  std::copy(steps_.begin(), steps_.end(), program.steps);
  for (std::size_t i = 0; i < matrices_.size(); ++i) program.sources[i] = *matrices_[i];
}

bool Explaining::is_active() { return explained.is_active; }
void Explaining::begin() { explained = {.is_active = true, .texts = {}}; }
void Explaining::add(char* json) {
  explained.texts.emplace_back(json);
  rigel_free(json);
}
nb::list Explaining::end() {
  nb::list texts;
  for (const std::string& text : explained.texts) texts.append(nb::str(text.c_str()));
  explained = {};
  return texts;
}

Running::Running() { ++running; }
Running::~Running() { --running; }

rigel_code find_thread_handle(rigel_handle*& handle, std::string& message) {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    is_broken = is_broken || running != 0;
    running = 0;
  });
  if (is_broken) {
    message = "this process was forked while another thread was in a call of Rigel, expected a fork between calls";
    return RIGEL_UNSUPPORTED;
  }
  if (!of_thread.handle && registered == 0)
    if (const rigel_code code = rigel_create(-1, nullptr, &of_thread.handle); code != RIGEL_OK) {
      message = without_prefix(rigel_last_error());
      return code;
    }
  handle = of_thread.handle;
  return RIGEL_OK;
}

rigel_handle* thread_handle() {
  rigel_handle* handle = nullptr;
  std::string message;
  if (const rigel_code code = find_thread_handle(handle, message); code != RIGEL_OK) raise(code, message);
  return handle;
}

std::shared_ptr<StreamHandle> handle_of(const Array& array) {
  if (array.place.device < 0) return nullptr;
  const auto handle_for = [&](void* stream) {
    StreamHandles& all = stream_handles();
    const auto key = std::pair(array.place.device, stream);
    const auto known = [&]() -> std::shared_ptr<StreamHandle> {
      const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == key; });
      if (found == all.end()) return nullptr;
      std::rotate(all.begin(), found, found + 1);
      return all.front().second;
    };
    if (const auto handle = known()) return handle;
    if (nb::cast<bool>(package().is_capturing(array.object)))
      refuse(std::string(array.name) + " is on a stream of CUDA device " + std::to_string(array.place.device) +
             " that is being captured in a graph, expected a call on this stream before the capture");
    // While Python asked for that, another thread may have made it: two handles would not take turns.
    if (const auto handle = known()) return handle;
    const auto fresh = std::make_shared<StreamHandle>();
    if (const rigel_code code = rigel_create(array.place.device, stream, &fresh->handle); code != RIGEL_OK)
      raise(code, std::string(array.name) + " is on CUDA device " + std::to_string(array.place.device) + ": " +
                      without_function(rigel_last_error()));
    all.insert(all.begin(), {key, fresh});
    if (all.size() > most_stream_handles) all.pop_back();
    return fresh;
  };
  StreamHandles& all = stream_handles();
  const bool is_first =
      std::none_of(all.begin(), all.end(), [&](const auto& one) { return one.first.first == array.place.device; });
  const std::shared_ptr<StreamHandle> result = handle_for(array.place.stream);
  // A handle cannot be made while its stream is captured.
  if (is_first)
    for (const nb::handle stream : package().capture_streams(array.object, array.place.device))
      handle_for(reinterpret_cast<void*>(nb::cast<std::uintptr_t>(stream)));
  return result;
}

Queue::Queue(const Matrices& matrices) : matrices_(matrices) {
  of_stream_ = handle_of(matrices.first());
  if (!of_stream_) {
    host_ = thread_handle();
    return;
  }
  const Place& first = matrices.first().place;
  for (const Place& place : matrices.places()) {
    waits_ = waits_ || place.stream != first.stream || !place.is_stream_ordered;
    if (place.stream == first.stream) continue;
    Array on_it = matrices.first();
    on_it.place = place;
    others_.push_back(handle_of(on_it));
  }
}

rigel_code Queue::wait_for_others() const {
  for (const std::shared_ptr<StreamHandle>& other : others_) {
    const std::lock_guard turn(other->turn);
    if (const rigel_code code = rigel_synchronize(other->handle); code != RIGEL_OK) return code;
  }
  return RIGEL_OK;
}

bool Queue::is_capturing() const { return of_stream_ && nb::cast<bool>(package().is_capturing(matrices_.first().object)); }

Array Queue::workspace(std::size_t bytes, rigel_options& options) const {
  constexpr std::uintptr_t alignment = 256;
  const nb::object memory =
      package().empty(matrices_.first().object, nb::make_tuple(bytes + alignment - 1), int{RIGEL_U8}, false);
  Array array = input(memory, "workspace", 1);
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(array.data);
  options.workspace = reinterpret_cast<void*>((begin + alignment - 1) / alignment * alignment);
  options.workspace_bytes = bytes;
  return array;
}

std::string without_function(std::string message) {
  const std::size_t end = message.find(": ");
  if (message.starts_with("rigel_") && end != std::string::npos) message.erase(0, end + 2);
  return message;
}

std::string without_prefix(std::string message) {
  constexpr std::string_view prefix = "rigel_", suffix = "_workspace_size";
  if (message.starts_with(prefix)) message.erase(0, prefix.size());
  if (const std::size_t at = message.find(suffix); at < message.find(':')) {
    const std::string called = message.substr(0, at) + ": ";
    message.erase(0, at + suffix.size() + 2);
    if (!message.starts_with(called)) message.insert(0, called);
  }
  return message;
}

void raise_last_error(rigel_code code, const char* function) {
  const std::string message = rigel_last_error();
  raise(code, function ? function + (": " + without_function(message)) : without_prefix(message));
}

}  // namespace rigel::python

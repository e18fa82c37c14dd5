// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "texts.hpp"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rigel::python {
namespace {

// The texts of a semiring, and one object of librigel_c's for each type of elements that it has been used with. Values of hyperparameters go
// with each call, so that the objects never change.
class Text {
 public:
  /// `texts`: multiply, add, identity, step, result. `fields`: pairs of names and whether they are integers; `result_kind`: 0, 1 for a
  /// floating-point number, 2 for an integer.
  Text(nb::handle name, nb::handle texts, nb::handle parameters, Flag commutative, nb::handle fields, int result_kind)
      : name_(text_of(name, "name")), parameters_(parameters), commutative_(commutative), result_kind_(result_kind) {
    for (std::size_t i = 0; i < texts_.size(); ++i) texts_[i] = text_of(texts[i], "a text");
    for (const nb::handle field : fields)
      fields_.emplace_back(text_of(field[0], "the name of a field"), nb::cast<bool>(field[1]));
  }

  // Of elements of a type: results that are as much as the sums have the elements' own.
  rigel_type result(rigel_type element) const {
    const bool is_integer = element == RIGEL_I32 || element == RIGEL_I64;
    return result_kind_ == 0 || (result_kind_ == 2) == is_integer ? element : of_size(element, result_kind_ == 2);
  }

  const rigel_semiring* of(rigel_type type) {
    const std::lock_guard lock(mutex_);
    auto& own = objects_.at(static_cast<std::size_t>(type));
    if (!own) own.reset(create(type));
    return own.get();
  }

  // For the device of an array, or for the host.
  void compile(rigel_type type, nb::handle like) {
    const std::shared_ptr<StreamHandle> of_stream = like.is_none() ? nullptr : handle_of(input(like, "like", 0));
    rigel_handle* const handle = of_stream ? of_stream->handle : thread_handle();
    auto* const semiring = const_cast<rigel_semiring*>(of(type));
    const rigel_code code = [&] {
      const nb::gil_scoped_release without_gil;
      const Running running;
      std::unique_lock<std::recursive_mutex> turn;
      if (of_stream) turn = std::unique_lock(of_stream->turn);
      return rigel_semiring_compile(semiring, handle);
    }();
    if (code != RIGEL_OK) raise_last_error(code, "Semiring.compile");
  }

 private:
  // The floating-point number or integer with as many bytes as sums of elements of a type.
  static rigel_type of_size(rigel_type element, bool is_integer) {
    const bool is_long = element == RIGEL_F64 || element == RIGEL_I64;
    return is_integer ? (is_long ? RIGEL_I64 : RIGEL_I32) : (is_long ? RIGEL_F64 : RIGEL_F32);
  }

  struct Destroy {
    void operator()(rigel_semiring* semiring) const { rigel_semiring_destroy(semiring); }
  };

  rigel_semiring* create(rigel_type type) {
    rigel_semiring_args args = {};
    args.size = sizeof args;
    args.name = name_.c_str();
    args.element = type;
    args.commutative = commutative_;
    args.multiply = texts_[0].c_str();
    args.add = texts_[1].c_str();
    args.identity = texts_[2].c_str();
    args.step = texts_[3].c_str();
    args.result = texts_[4].c_str();
    args.parameters = parameters_.data();
    args.parameters_count = parameters_.count();
    std::vector<rigel_field> fields;
    for (const auto& [name, is_integer] : fields_) fields.push_back({name.c_str(), of_size(type, is_integer), 0});
    args.fields = fields.data();
    args.fields_count = static_cast<std::int32_t>(fields.size());
    args.result_type = result_kind_ == 0 ? 0 : of_size(type, result_kind_ == 2);
    rigel_semiring* made = nullptr;
    if (const rigel_code code = rigel_semiring_create(&args, &made); code != RIGEL_OK) raise_last_error(code, "Semiring");
    return made;
  }

  std::string name_;
  std::array<std::string, 5> texts_;
  Parameters parameters_;
  bool commutative_;
  int result_kind_;
  std::vector<std::pair<std::string, bool>> fields_;
  std::mutex mutex_;
  std::array<std::unique_ptr<rigel_semiring, Destroy>, RIGEL_U64 + 1> objects_;
};

// The text of an epilogue, and one object of librigel_c's for each pair of types that it has been used with.
class TextEpilogue {
 public:
  TextEpilogue(nb::handle name, nb::handle body, nb::handle parameters)
      : name_(text_of(name, "name")), body_(text_of(body, "body")), parameters_(parameters) {}

  rigel_epilogue* of(rigel_type argument, rigel_type result) {
    const std::lock_guard lock(mutex_);
    auto& own = objects_[{argument, result}];
    if (!own) own.reset(create(argument, result));
    return own.get();
  }

  // With a semiring, or with plus_times of elements of a type.
  void compile(nb::handle semiring, rigel_type type, nb::handle like) {
    const std::shared_ptr<StreamHandle> of_stream = like.is_none() ? nullptr : handle_of(input(like, "like", 0));
    rigel_handle* const handle = of_stream ? of_stream->handle : thread_handle();
    const rigel_semiring* const text = semiring.is_none() ? nullptr : nb::cast<Text&>(semiring).of(type);
    const rigel_type results = text ? nb::cast<Text&>(semiring).result(type) : type;
    rigel_epilogue* const epilogue = of(number_type(results), results);
    const rigel_code code = [&] {
      const nb::gil_scoped_release without_gil;
      const Running running;
      std::unique_lock<std::recursive_mutex> turn;
      if (of_stream) turn = std::unique_lock(of_stream->turn);
      return rigel_epilogue_compile(epilogue, handle, text, text ? 0 : type);
    }();
    if (code != RIGEL_OK) raise_last_error(code, "Epilogue.compile");
  }

 private:
  struct Destroy {
    void operator()(rigel_epilogue* epilogue) const { rigel_epilogue_destroy(epilogue); }
  };

  rigel_epilogue* create(rigel_type argument, rigel_type result) {
    rigel_epilogue_args args = {};
    args.size = sizeof args;
    args.name = name_.c_str();
    args.body = body_.c_str();
    args.argument = argument;
    args.result = result;
    args.parameters = parameters_.data();
    args.parameters_count = parameters_.count();
    rigel_epilogue* made = nullptr;
    if (const rigel_code code = rigel_epilogue_create(&args, &made); code != RIGEL_OK) raise_last_error(code, "Epilogue");
    return made;
  }

  std::string name_, body_;
  Parameters parameters_;
  std::mutex mutex_;
  std::map<std::pair<rigel_type, rigel_type>, std::unique_ptr<rigel_epilogue, Destroy>> objects_;
};

nb::tuple statistics() {
  rigel_statistics s = {};
  s.size = sizeof s;
  if (const rigel_code code = rigel_semiring_statistics(&s); code != RIGEL_OK) raise_last_error(code);
  return nb::make_tuple(s.compiled, s.from_disk, s.from_memory);
}

}  // namespace

void set_semiring(rigel_contract_args& args, nb::handle given, rigel_type type) {
  if (is_text(given))
    args.from_text = nb::cast<Text&>(given).of(type);
  else
    args.semiring = text_of(given, "semiring");
}

bool is_text(nb::handle given) { return nb::isinstance<Text>(given); }

TextParameters::TextParameters(nb::handle given) {
  for (const auto [name, value] : dict_of_parameters(given)) {
    if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()) || !nb::hasattr(value, "__dlpack__")) {
      numbers_.add(name, value);
      continue;
    }
    names_.emplace_back(text_of(name, "the name of a parameter"));
    arrays_.push_back(input(value, names_.back().c_str(), 0));
  }
}

void TextParameters::broadcast(Batch& batch) const {
  for (const Array& array : arrays_) batch.broadcast(array, array.name, 0);
}

void TextParameters::add_to(Matrices& matrices) {
  for (const Array& array : arrays_) matrices_.push_back(matrices.add(array, 0));
}

std::span<const rigel_parameter_view> TextParameters::views() {
  views_.clear();
  for (std::size_t i = 0; i < matrices_.size(); ++i) views_.push_back({names_[i].c_str(), *matrices_[i]});
  return views_;
}

rigel_type text_result_type(nb::handle given, rigel_type element) {
  return is_text(given) ? nb::cast<Text&>(given).result(element) : 0;
}

bool TextEpilogueCall::is(nb::handle given) {
  return PyTuple_Check(given.ptr()) && PyTuple_Size(given.ptr()) == 2 && nb::isinstance<TextEpilogue>(given[0]);
}
TextEpilogueCall::TextEpilogueCall(nb::handle given) : epilogue_(nb::borrow(given[0])), parameters_(given[1]) {}

void TextEpilogueCall::set(rigel_contract_args& args, rigel_type argument, rigel_type out) const {
  args.epilogue_from_text = nb::cast<TextEpilogue&>(epilogue_).of(number_type(argument), out);
  args.epilogue_parameters = parameters_.numbers().data();
  args.epilogue_parameters_count = parameters_.numbers().count();
}

void define_texts(nb::module_& m) {
  nb::class_<TextEpilogue>(m, "TextEpilogue")
      .def(nb::init<nb::handle, nb::handle, nb::handle>())
      .def("check", [](TextEpilogue& text, rigel_type argument, rigel_type result) { text.of(argument, result); })
      .def("compile", &TextEpilogue::compile, nb::arg().none(), nb::arg(), nb::arg().none());
  nb::class_<Text>(m, "Text")
      .def(nb::init<nb::handle, nb::handle, nb::handle, Flag, nb::handle, int>())
      .def("result_type", [](const Text& text, rigel_type type) { return text.result(type); })
      .def("check", [](Text& text, rigel_type type) { text.of(type); })
      .def("compile", &Text::compile, nb::arg(), nb::arg().none());
  m.def("text_statistics", statistics);
}

}  // namespace rigel::python

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "derivatives.hpp"

namespace rigel::python {

TextDerivative::TextDerivative(nb::handle name, nb::handle texts, nb::handle parameters)
    : name_(text_of(name, "name")), parameters_(parameters) {
  for (std::size_t i = 0; i < texts_.size(); ++i) texts_[i] = text_of(texts[i], "a text");
}

rigel_derivative* TextDerivative::of(rigel_type type) {
  const std::lock_guard lock(mutex_);
  auto& own = objects_.at(static_cast<std::size_t>(type));
  if (!own) own.reset(create(type));
  return own.get();
}

void TextDerivative::compile(rigel_type type, nb::handle like) {
  const std::shared_ptr<StreamHandle> of_stream = like.is_none() ? nullptr : handle_of(input(like, "like", 0));
  rigel_handle* const handle = of_stream ? of_stream->handle : thread_handle();
  rigel_derivative* const derivative = of(type);
  const rigel_code code = [&] {
    const nb::gil_scoped_release without_gil;
    const Running running;
    std::unique_lock<std::recursive_mutex> turn;
    if (of_stream) turn = std::unique_lock(of_stream->turn);
    return rigel_derivative_compile(derivative, handle);
  }();
  if (code != RIGEL_OK) raise_last_error(code, "Derivative.compile");
}

rigel_derivative* TextDerivative::create(rigel_type type) const {
  rigel_derivative_args args = {};
  args.size = sizeof args;
  args.name = name_.c_str();
  args.element = type;
  args.multiply = texts_[0].c_str();
  args.accumulate = texts_[1].c_str();
  args.add = texts_[2].c_str();
  args.identity = texts_[3].c_str();
  args.result = texts_[4].c_str();
  args.parameters = parameters_.data();
  args.parameters_count = parameters_.count();
  rigel_derivative* made = nullptr;
  if (const rigel_code code = rigel_derivative_create(&args, &made); code != RIGEL_OK) raise_last_error(code, "Derivative");
  return made;
}

void define_derivatives(nb::module_& m) {
  nb::class_<TextDerivative>(m, "TextDerivative")
      .def(nb::init<nb::handle, nb::handle, nb::handle>())
      .def("check", [](TextDerivative& text, rigel_type type) { text.of(type); })
      .def("compile", &TextDerivative::compile, nb::arg(), nb::arg().none());
}

}  // namespace rigel::python

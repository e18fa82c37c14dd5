// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "texts.hpp"

#include <array>
#include <memory>
#include <mutex>

namespace rigel::python {
namespace {

// The texts of a semiring, and one object of librigel_c's for each type of elements that it has been used with. Values of hyperparameters go
// with each call, so that the objects never change.
class Text {
 public:
  /// `texts`: multiply, add, identity, step, result.
  Text(nb::handle name, nb::handle texts, nb::handle parameters, Flag commutative)
      : name_(text_of(name, "name")), parameters_(parameters), commutative_(commutative) {
    for (std::size_t i = 0; i < texts_.size(); ++i) texts_[i] = text_of(texts[i], "a text");
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
      std::unique_lock<std::mutex> turn;
      if (of_stream) turn = std::unique_lock(of_stream->turn);
      return rigel_semiring_compile(semiring, handle);
    }();
    if (code != RIGEL_OK) raise_last_error(code, "Semiring.compile");
  }

 private:
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
    rigel_semiring* made = nullptr;
    if (const rigel_code code = rigel_semiring_create(&args, &made); code != RIGEL_OK) raise_last_error(code, "Semiring");
    return made;
  }

  std::string name_;
  std::array<std::string, 5> texts_;
  Parameters parameters_;
  bool commutative_;
  std::mutex mutex_;
  std::array<std::unique_ptr<rigel_semiring, Destroy>, RIGEL_U64 + 1> objects_;
};

nb::tuple statistics() {
  rigel_statistics s = {};
  s.size = sizeof s;
  if (const rigel_code code = rigel_semiring_statistics(&s); code != RIGEL_OK) raise_last_error(code);
  return nb::make_tuple(s.compiled, s.from_disk, s.from_memory);
}

}  // namespace

void set_semiring(rigel_contract_args& args, nb::handle given, rigel_type type) {
  if (nb::isinstance<Text>(given))
    args.from_text = nb::cast<Text&>(given).of(type);
  else
    args.semiring = text_of(given, "semiring");
}

void define_texts(nb::module_& m) {
  nb::class_<Text>(m, "Text")
      .def(nb::init<nb::handle, nb::handle, nb::handle, Flag>())
      .def("check", [](Text& text, rigel_type type) { text.of(type); })
      .def("compile", &Text::compile, nb::arg(), nb::arg().none());
  m.def("text_statistics", statistics);
}

}  // namespace rigel::python

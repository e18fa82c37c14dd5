// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Array arguments by DLPack, and the batches of matrices that a call of librigel_c takes of them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <rigel/rigel.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace rigel::python {

/// The most dimensions of an array.
inline constexpr int most_dimensions = 16;

/// What the package provides: functions of its module _arrays, and exception classes.
struct Package {
  nb::object empty;  // empty(like, shape, type, is_bool): a new array of the library of `like`, on its device
  nb::object
      convert;  // convert(object, name): an array that can be imported in place of one that cannot be; raises if there is none
  nb::object copy;             // copy(array): a contiguous copy
  nb::object traits_of;        // traits_of(type): (on the host alone, immutable, of torch, masked)
  nb::object stream_of;        // stream_of(array, device): (stream, whether freed memory is reused in its order)
  nb::object is_capturing;     // is_capturing(array): whether the current stream of its library is being captured in a graph
  nb::object capture_streams;  // capture_streams(array, device): streams of its library that captures will be on
  nb::object last;             // last(array): the last of its integers, once it is computed
  nb::object errors;           // {code: class}
};
Package& package();

/// Bytes of an element.
std::int64_t size_of(rigel_type type);

/// Raises the exception class of a code.
[[noreturn]] void raise(rigel_code code, const std::string& message);
[[noreturn]] inline void refuse(const std::string& message) { raise(RIGEL_INVALID_ARGUMENT, message); }

/// Where memory is, and the stream that has the work of its library.
struct Place {
  std::int32_t device = -1;  // a CUDA device's ordinal, or -1: the host
  void* stream = nullptr;    // a cudaStream_t; NULL: the legacy default stream
  /// Memory that the library frees is reused in the stream's order. Else a call is complete when it returns.
  bool is_stream_ordered = true;
};

/// An array.
struct Array {
  const char* name = "";  // of the argument
  Place place;
  nb::object object;                    // the caller's, or what stands in for it
  nb::ndarray<nb::ro> memory;           // what keeps the memory alive, by __dlpack__() or the buffer protocol,
  std::shared_ptr<const void> managed;  // or by DLPack's exchange API
  void* data = nullptr;
  rigel_type type = 0;
  bool is_bool = false;
  int dimensions = 0;
  std::array<std::int64_t, most_dimensions> shape = {}, strides = {};

  std::int64_t rows() const { return shape[static_cast<std::size_t>(dimensions - 2)]; }
  std::int64_t columns() const { return shape[static_cast<std::size_t>(dimensions - 1)]; }
};

/// An argument that is read, of at least so many dimensions. Arrays with negative strides, and those that DLPack cannot describe, are
/// copied; lists are converted. `name` outlives the array.
Array input(nb::handle given, const char* name, int least_dimensions);

/// Raises for a tensor of torch whose gradient a call would lose.
void require_no_gradient(nb::handle given, const char* name);

/// "A of shape (2, 3)".
std::string described(const Array& array, const char* name);

/// Raises unless an array is on the device of the first one of a call, whose name it says.
void require_device(const Array& array, const Place& first, const char* first_name);

/// The leading dimensions of a call, all but the last two of its arguments, broadcast as in NumPy; arguments are on one device.
struct Batch {
  int dimensions = 0;
  std::array<std::int64_t, most_dimensions> shape = {};
  const char* first = nullptr;  // the name of the first argument, and where it is
  Place place;
  void broadcast(const Array& array, const char* name, int own_dimensions);
};

/// A result: a new array, or the caller's.
class Output {
 public:
  /// `object`: the caller's `out`, or None for a new array of the batch and these dimensions, of a type. The package may pass arrays that
  /// it has made, `may_be_immutable`.
  Output(nb::handle object, const char* name, const Array& like, const Batch& batch, const std::vector<std::int64_t>& own,
         rigel_type type, bool is_bool, bool may_be_immutable = false);
  Array& array() { return array_; }
  /// The array that the caller gets, when the call is done.
  nb::object finished();

 private:
  nb::object original_;
  Array array_;
  bool is_copy_ = false;  // results go to a copy first
};

/// The matrices of one call, each a place in the arguments of a function of librigel_c. It runs once, or for each part of the batch that
/// has one stride.
class Matrices {
 public:
  /// `repeats`: a matrix that serves several of a batch is passed as so many matrices at one place, which linear systems ask for.
  explicit Matrices(const Batch& batch, bool repeats = false) : batch_(batch), repeats_(repeats) {}
  /// The matrix of an array's last two dimensions. `own_dimensions` 1: the last one is a row, or with `as_column` a column; 0: one number.
  /// The reference stays valid.
  rigel_matrix* add(const Array& array, int own_dimensions = 2, bool transposed = false, bool as_column = false);

  /// Whether the batch has no matrix. check() then calls with one of each argument, whose memory is not there.
  bool is_empty() const;

  template <class Call>
  rigel_code run(const Call& call) {
    plan();
    if (is_empty()) return RIGEL_OK;
    return each(call);
  }
  template <class Call>
  rigel_code check(const Call& call) {
    plan();
    return each(call);
  }

  /// The places of the arrays, the first one's first; those of the host are all one.
  const std::vector<Place>& places() const { return places_; }
  /// The first array.
  const Array& first() const { return first_; }

 private:
  struct Given {
    rigel_matrix matrix;
    char* data;
    std::array<std::int64_t, most_dimensions> strides;  // of the batch's dimensions, in elements
  };
  template <class Call>
  rigel_code each(const Call& call) {
    for (;;) {
      const rigel_code code = call();
      if (code != RIGEL_OK || !next()) return code;
    }
  }
  void plan();
  bool next();  // moves on to the next part

  Batch batch_;
  bool repeats_;
  std::deque<Given> given_;
  std::vector<Place> places_;
  Array first_;
  int outer_ = 0;  // the number of dimensions that are looped over
  std::array<std::int64_t, most_dimensions> place_ = {};
};

}  // namespace rigel::python

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arrays.hpp"

#include "calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace rigel::python {
namespace {

using Size = std::size_t;

std::string text_of(const std::int64_t* shape, int dimensions) {
  std::string text = "(";
  for (int i = 0; i < dimensions; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (dimensions == 1 ? ",)" : ")");
}

std::string text_of(const nb::dlpack::dtype& type) {
  const char* kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const std::string kind = type.code < std::size(kinds) ? kinds[type.code] : "a type with code " + std::to_string(type.code);
  return kind + std::to_string(type.bits) + (type.lanes == 1 ? "" : " x " + std::to_string(type.lanes));
}

void set_type(Array& a, const nb::dlpack::dtype& type, const char* name) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) {
    return type.lanes == 1 && type.code == static_cast<std::uint8_t>(code) && type.bits == bits;
  };
  a.is_bool = is(Code::Bool, 8);
  a.type = is(Code::Float, 32)    ? RIGEL_F32
           : is(Code::Float, 64)  ? RIGEL_F64
           : is(Code::Float, 16)  ? RIGEL_F16
           : is(Code::Bfloat, 16) ? RIGEL_BF16
           : is(Code::Int, 8)     ? RIGEL_I8
           : is(Code::Int, 16)    ? RIGEL_I16
           : is(Code::Int, 32)    ? RIGEL_I32
           : is(Code::Int, 64)    ? RIGEL_I64
           : is(Code::UInt, 8)    ? RIGEL_U8
           : is(Code::UInt, 32)   ? RIGEL_U32
           : is(Code::UInt, 64)   ? RIGEL_U64
           : a.is_bool            ? RIGEL_U8
                                  : 0;
  if (a.type == 0)
    raise(RIGEL_UNSUPPORTED, std::string(name) + " holds " + text_of(type) +
                                 ", expected float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint32, "
                                 "uint64 or bool");
}

// The types of devices in dlpack.h.
enum { on_host = 1, on_cuda = 2, pinned = 3, managed = 13 };

// The ordinal of a CUDA device, or -1 for the host.
std::int32_t device_of(std::int32_t type, std::int32_t id, const char* name) {
  if (type == on_host || type == pinned) return -1;
  if (type != on_cuda && type != managed)
    raise(RIGEL_UNSUPPORTED, std::string(name) + " is on a device of DLPack's type " + std::to_string(type) +
                                 ", expected an array on the host or on a CUDA device");
  return id;
}

std::string text_of(const Place& place) {
  return place.device < 0 ? "on the host" : "on CUDA device " + std::to_string(place.device);
}

// Sets what a tensor of DLPack says. Whether its memory can be used.
bool set(Array& a, const nb::dlpack::dltensor& tensor, nb::handle object, const char* name) {
  if (tensor.ndim > most_dimensions)
    refuse(std::string(name) + " has " + std::to_string(tensor.ndim) + " dimensions, expected at most " +
           std::to_string(most_dimensions));
  set_type(a, tensor.dtype, name);
  a.object = nb::borrow(object);
  a.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  a.dimensions = tensor.ndim;
  std::int64_t contiguous = 1;
  for (Size i = static_cast<Size>(tensor.ndim); i-- > 0;) {
    a.shape[i] = tensor.shape[i];
    a.strides[i] = a.shape[i] <= 1 ? 0 : tensor.strides ? tensor.strides[i] : contiguous;
    contiguous *= a.shape[i];
  }
  return reinterpret_cast<std::uintptr_t>(a.data) % static_cast<Size>(size_of(a.type)) == 0;
}

// DLPack's exchange API, which a type may have in __dlpack_c_exchange_api__ (dlpack.h, version 1).
struct ManagedTensor {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedTensor*);
  std::uint64_t flags;  // 1: read-only
  nb::dlpack::dltensor tensor;
};
struct ExchangeApi {
  std::uint32_t major, minor;
  ExchangeApi* previous;
  void* allocate;
  int (*import)(void* object, ManagedTensor** tensor);
  void* wrap;
  int (*view)(void* object, nb::dlpack::dltensor* tensor);  // NULL if there is none
  int (*stream_of)(std::int32_t device_type, std::int32_t device, void** stream);
};

// What is known of a type of arrays. Types are few: each is asked once.
struct Type {
  PyTypeObject* type = nullptr;
  const ExchangeApi* api = nullptr;  // or NULL
  bool is_host_only = false, is_immutable = false, is_torch = false, is_masked = false, is_plain_tensor = false;
};

Type type_of(nb::handle object) {
  static std::vector<Type>& known = *new std::vector<Type>;
  PyTypeObject* const type = Py_TYPE(object.ptr());
  for (const Type& one : known)
    if (one.type == type) return one;
  const nb::handle of(reinterpret_cast<PyObject*>(type));
  Py_INCREF(of.ptr());  // no other type gets its address
  Type fresh{.type = type};
  const nb::object capsule = nb::getattr(of, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api"))
    fresh.api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (fresh.api && fresh.api->major != 1) fresh.api = nullptr;
  const nb::object traits = package().traits_of(of);
  fresh.is_host_only = nb::cast<bool>(traits[0]);
  fresh.is_immutable = nb::cast<bool>(traits[1]);
  fresh.is_torch = nb::cast<bool>(traits[2]);
  fresh.is_masked = nb::cast<bool>(traits[3]);
  fresh.is_plain_tensor = fresh.is_torch && fresh.api && of.is(nb::module_::import_("torch").attr("Tensor"));
  if (known.size() == 32) known.clear();
  known.push_back(fresh);
  return fresh;
}

// The place of an array of a type without the exchange API: what it says of its device, and what the package knows of its stream.
Place place_of(nb::handle object, const char* name) {
  Place place;
  nb::object device;
  try {
    device = object.attr("__dlpack_device__")();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // an interrupt
    raise(RIGEL_UNSUPPORTED, std::string(name) + " cannot be exported by DLPack: " + nb::str(error.value()).c_str());
  }
  place.device = device_of(nb::cast<std::int32_t>(nb::int_(device[0])), nb::cast<std::int32_t>(nb::int_(device[1])), name);
  if (place.device < 0) return place;
  const nb::object stream = package().stream_of(object, place.device);
  place.stream = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(stream[0]));
  place.is_stream_ordered = nb::cast<bool>(stream[1]);
  return place;
}

// What DLPack exports of an array on a CUDA device, whose memory is then in order on its stream. DLPack has numbers for streams, in which
// the legacy default one is 1.
nb::object exported(nb::handle object, const Place& place, const char* name) {
  const auto stream = reinterpret_cast<std::uintptr_t>(place.stream);
  const nb::object export_ = object.attr("__dlpack__");
  try {
    try {
      return export_(nb::arg("stream") = stream == 0 ? 1 : stream, nb::arg("max_version") = nb::make_tuple(1, 1));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_TypeError)) throw;  // libraries before DLPack 1 know no max_version
      return export_(nb::arg("stream") = stream == 0 ? 1 : stream);
    }
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // an interrupt
    raise(RIGEL_UNSUPPORTED, std::string(name) + " cannot be exported by DLPack: " + nb::str(error.value()).c_str());
  }
}

// By the exchange API. Tensors that are only read are viewed: a.object keeps them.
bool import(Array& a, const Type& type, nb::handle object, const char* name, bool writable) {
  nb::dlpack::dltensor tensor = {};
  if (!writable && type.api->view) {
    if (type.api->view(object.ptr(), &tensor) != 0) {
      PyErr_Clear();
      return false;
    }
  } else {
    ManagedTensor* exported = nullptr;
    if (type.api->import(object.ptr(), &exported) != 0) {
      PyErr_Clear();
      return false;
    }
    a.managed = std::shared_ptr<ManagedTensor>(exported, [](ManagedTensor* one) {
      if (one->deleter) one->deleter(one);
    });
    if (writable && (exported->flags & 1) != 0) return false;
    tensor = exported->tensor;
  }
  a.place.device = device_of(tensor.device.device_type, tensor.device.device_id, name);
  if (a.place.device >= 0) {
    if (type.api->stream_of(tensor.device.device_type, tensor.device.device_id, &a.place.stream) != 0)
      throw nb::python_error();
    a.place.is_stream_ordered = type.is_torch || nb::cast<bool>(package().stream_of(object, a.place.device)[1]);
  }
  return set(a, tensor, object, name);
}

// Whether an object is an array whose memory can be used; sets it.
bool import(Array& a, nb::handle object, const char* name, bool writable = false) {
  a.name = name;
  const Type type = type_of(object);
  if (type.is_masked) return false;
  if (type.api) return import(a, type, object, name, writable);
  if (!type.is_host_only) a.place = place_of(object, name);
  const nb::object memory_of = a.place.device < 0 ? nb::borrow(object) : exported(object, a.place, name);
  if (writable) {
    nb::ndarray<> memory;
    if (!nb::try_cast(memory_of, memory, false)) return false;
    a.memory = nb::ndarray<nb::ro>(memory);
  } else if (!nb::try_cast(memory_of, a.memory, false)) {
    return false;
  }
  nb::dlpack::dltensor tensor;
  tensor.data = const_cast<void*>(static_cast<const void*>(a.memory.data()));
  tensor.device = {a.memory.device_type(), a.memory.device_id()};
  tensor.ndim = static_cast<std::int32_t>(a.memory.ndim());
  tensor.dtype = a.memory.dtype();
  tensor.shape = const_cast<std::int64_t*>(a.memory.shape_ptr());
  tensor.strides = const_cast<std::int64_t*>(a.memory.stride_ptr());
  return set(a, tensor, object, name);
}

// Whether torch records gradients now.
bool records_gradients() {
  // Not a guarded initialisation: while one thread imports, another may have the GIL, and would wait for it for ever.
  static PyObject* is_grad_enabled = nullptr;
  if (!is_grad_enabled) {
    nb::object found = nb::module_::import_("torch").attr("is_grad_enabled");
    if (!is_grad_enabled) is_grad_enabled = found.release().ptr();
  }
  return nb::cast<bool>(nb::handle(is_grad_enabled)());
}

// The object, or what it means of a torch tensor that is negated lazily; raises for one whose gradient the call would lose. One that needs a
// gradient that is not recorded now is exported by the exchange API, but not by __dlpack__().
nb::object resolved(nb::handle object, const char* name) {
  const Type type = type_of(object);
  if (!type.is_torch) return nb::borrow(object);
  const bool is_usable = (!nb::cast<bool>(object.attr("requires_grad")) || (type.api && !records_gradients())) &&
                         !nb::cast<bool>(object.attr("is_neg")());
  return is_usable ? nb::borrow(object) : package().convert(object, name);
}

// A new array of the library of `like`, on its device.
nb::object empty(const Array& like, nb::handle sizes, rigel_type type, bool is_bool) {
  const bool is_alike = type == like.type && is_bool == like.is_bool && type_of(like.object).is_plain_tensor;
  return is_alike ? like.object.attr("new_empty")(sizes) : package().empty(like.object, sizes, type, is_bool);
}

// CuPy exports the bytes of a negative stride as a number without a sign, over the size of an element: more than memory has.
bool has_negative_strides(const Array& a) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  return std::any_of(a.strides.begin(), a.strides.begin() + a.dimensions,
                     [](std::int64_t stride) { return stride < 0 || stride > most; });
}

void require_import(Array& a, nb::handle object, const char* name) {
  if (!import(a, object, name)) raise(RIGEL_INTERNAL, std::string(name) + " cannot be imported by DLPack");
}

// Whether two elements of an array are at one place. Strides of which each is beyond what the smaller ones reach are of distinct elements; of
// others all offsets are looked at.
bool overlaps_itself(const Array& a) {
  struct Axis {
    std::int64_t stride, extent;
  };
  std::vector<Axis> axes;
  std::int64_t count = 1, reach = 0;
  bool is_nested = true;
  for (Size i = 0; i < static_cast<Size>(a.dimensions); ++i) {
    count *= a.shape[i];
    if (a.shape[i] > 1) axes.push_back({std::abs(a.strides[i]), a.shape[i]});
  }
  if (count == 0) return false;
  std::sort(axes.begin(), axes.end(), [](const Axis& x, const Axis& y) { return x.stride < y.stride; });
  for (const Axis& axis : axes) {
    is_nested = is_nested && axis.stride > reach;
    reach += axis.stride * (axis.extent - 1);
  }
  if (is_nested) return false;
  if (count > reach + 1) return true;
  std::vector<std::int64_t> offsets = {0};
  offsets.reserve(static_cast<Size>(count));
  for (const Axis& axis : axes)
    for (Size i = 0, before = offsets.size(); i < before * static_cast<Size>(axis.extent - 1); ++i)
      offsets.push_back(offsets[i] + axis.stride);
  std::sort(offsets.begin(), offsets.end());
  return std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end();
}

std::string dimensions_expected(int least) {
  return least == 2 ? "at least 2: (..., rows, columns)" : "at least " + std::to_string(least);
}

}  // namespace

std::int64_t size_of(rigel_type type) {
  switch (type) {
    case RIGEL_I8:
    case RIGEL_U8: return 1;
    case RIGEL_F16:
    case RIGEL_BF16:
    case RIGEL_I16: return 2;
    case RIGEL_F32:
    case RIGEL_I32:
    case RIGEL_U32: return 4;
    default: return 8;
  }
}

Package& package() {
  static Package& all = *new Package;  // never destroyed: Python may be gone before
  return all;
}

void raise(rigel_code code, const std::string& message) {
  const nb::object error = package().errors.attr("get")(code, package().errors[nb::int_(int{RIGEL_INTERNAL})]);
  PyErr_SetString(error.ptr(), message.c_str());
  throw nb::python_error();
}

Array input(nb::handle given, const char* name, int least_dimensions) {
  const nb::object object = resolved(given, name);
  Array a;
  if (!import(a, object, name)) require_import(a, package().convert(object, name), name);
  if (a.dimensions < least_dimensions)
    refuse(std::string(name) + " has the shape " + text_of(a.shape.data(), a.dimensions) + ", expected dimensions, " +
           dimensions_expected(least_dimensions));
  if (has_negative_strides(a)) {
    Array copy;
    require_import(copy, package().copy(a.object), name);
    return copy;
  }
  return a;
}

void require_no_gradient(nb::handle given, const char* name) {
  if (type_of(given).is_torch && nb::cast<bool>(given.attr("requires_grad"))) package().convert(given, name);
}

std::string described(const Array& array, const char* name) {
  return std::string(name) + " of shape " + text_of(array.shape.data(), array.dimensions);
}

void require_device(const Array& array, const Place& first, const char* first_name) {
  if (array.place.device == first.device) return;
  refuse(std::string(array.name) + " is " + text_of(array.place) + " and " + first_name + " " + text_of(first) +
         ", expected all arrays on one device");
}

void Batch::broadcast(const Array& array, const char* name, int own_dimensions) {
  if (!first) {
    first = array.name;
    place = array.place;
  }
  require_device(array, place, first);
  const int count = array.dimensions - own_dimensions;
  if (count <= 0) return;
  if (count > dimensions) {
    std::copy_backward(shape.begin(), shape.begin() + dimensions, shape.begin() + count);
    std::fill(shape.begin(), shape.begin() + (count - dimensions), 1);
    dimensions = count;
  }
  for (int i = 0; i < count; ++i) {
    const int at = dimensions - count + i;
    std::int64_t& extent = shape[static_cast<Size>(at)];
    const std::int64_t own = array.shape[static_cast<Size>(i)];
    if (extent == 1)
      extent = own;
    else if (own != 1 && own != extent)
      refuse(described(array, name) + " does not broadcast with the batch " + text_of(shape.data(), dimensions));
  }
}

Output::Output(nb::handle object, const char* name, const Array& like, const Batch& batch,
               const std::vector<std::int64_t>& own, rigel_type type, bool is_bool, bool may_be_immutable) {
  handle_of(like);  // refuses a device that this library has no code for
  std::vector<std::int64_t> shape(batch.shape.begin(), batch.shape.begin() + batch.dimensions);
  shape.insert(shape.end(), own.begin(), own.end());
  if (object.is_none()) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
    if (!tuple) throw nb::python_error();
    const nb::object sizes = nb::steal(tuple);
    for (Size i = 0; i < shape.size(); ++i)
      PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
    original_ = empty(like, sizes, type, is_bool);
    require_import(array_, original_, name);
    return;
  }
  const nb::object target = resolved(object, name);
  if (type_of(object).is_torch && nb::cast<bool>(object.attr("is_neg")()))
    refuse(std::string(name) + " is a tensor that is negated lazily, expected " + name + ".resolve_neg()");
  original_ = nb::borrow(object);
  if (!import(array_, target, name, true)) {
    if (!import(array_, target, name)) {
      package().convert(object, name);
      refuse(std::string(name) + " is no array that results can be written to, expected one that is aligned and writable");
    }
    refuse(std::string(name) + " is read-only, expected an array that can be written");
  }
  if (type_of(object).is_immutable && !may_be_immutable)
    refuse(std::string(name) + " is immutable, expected an array that can be written");
  require_device(array_, like.place, like.name);
  const bool fits =
      static_cast<Size>(array_.dimensions) == shape.size() && std::equal(shape.begin(), shape.end(), array_.shape.begin());
  if (!fits)
    refuse(std::string(name) + " has the shape " + text_of(array_.shape.data(), array_.dimensions) + ", expected " +
           text_of(shape.data(), static_cast<int>(shape.size())));
  if (array_.is_bool && !is_bool) refuse(std::string(name) + " holds bool, expected numbers");
  // Results of a batch without one stride come from several calls, of which each would see what those before wrote.
  const auto leading = batch.shape.begin() + batch.dimensions;
  const bool may_take_several =
      std::count_if(batch.shape.begin(), leading, [](std::int64_t extent) { return extent > 1; }) > 1;
  if (has_negative_strides(array_) || may_take_several) {
    if (overlaps_itself(array_))
      refuse(std::string(name) + " overlaps itself (strides " + text_of(array_.strides.data(), array_.dimensions) +
             " of shape " + text_of(array_.shape.data(), array_.dimensions) + "), expected distinct elements");
    is_copy_ = true;
    Array copy;
    require_import(copy, package().copy(array_.object), name);
    array_ = std::move(copy);
  }
}

nb::object Output::finished() {
  if (is_copy_) original_[nb::ellipsis()] = array_.object;
  return original_;
}

rigel_matrix* Matrices::add(const Array& array, int own_dimensions, bool transposed, bool as_column) {
  if (given_.empty()) first_ = array;
  if (array.place.device >= 0 || given_.empty()) places_.push_back(array.place);
  require_device(array, first_.place, first_.name);
  const int leading = std::max(array.dimensions - own_dimensions, 0);
  const auto extent = [&](int from_last) {
    return array.dimensions >= from_last ? array.shape[static_cast<Size>(array.dimensions - from_last)] : 1;
  };
  const auto stride = [&](int from_last) {
    return array.dimensions >= from_last ? array.strides[static_cast<Size>(array.dimensions - from_last)] : 0;
  };
  Given g = {};
  g.data = static_cast<char*>(array.data);
  g.matrix.size = sizeof g.matrix;
  g.matrix.data = g.data;
  g.matrix.type = array.type;
  g.matrix.batches = g.matrix.rows = g.matrix.columns = 1;
  if (own_dimensions >= 1) {
    g.matrix.columns = extent(1);
    g.matrix.column_stride = stride(1);
  }
  if (own_dimensions >= 2) {
    g.matrix.rows = extent(2);
    g.matrix.row_stride = stride(2);
  }
  if (transposed || as_column) {
    std::swap(g.matrix.rows, g.matrix.columns);
    std::swap(g.matrix.row_stride, g.matrix.column_stride);
  }
  // Of an extent of 1 the stride is one that the library takes for distinct elements.
  for (std::int64_t* one : {&g.matrix.row_stride, &g.matrix.column_stride})
    if ((one == &g.matrix.row_stride ? g.matrix.rows : g.matrix.columns) <= 1) *one = 1;
  for (int i = 0; i < leading; ++i) {
    const int at = batch_.dimensions - leading + i;
    const auto from = static_cast<Size>(i);
    g.strides[static_cast<Size>(at)] = array.shape[from] == 1 ? 0 : array.strides[from];
  }
  given_.push_back(g);
  return &given_.back().matrix;
}

bool Matrices::is_empty() const {
  const auto leading = batch_.shape.begin() + batch_.dimensions;
  return std::find(batch_.shape.begin(), leading, 0) != leading;
}

// Joins the batch's dimensions, the last ones first, as far as every matrix has one stride for all of them. A batch of no matrices is
// planned as one of one that is contiguous, at addresses far apart.
void Matrices::plan() {
  place_ = {};
  std::uintptr_t nowhere = 0;
  for (Given& g : given_) {
    g.matrix.data = g.data;
    if (!is_empty()) continue;
    g.matrix.data = reinterpret_cast<void*>(++nowhere << 40);
    g.matrix.row_stride = std::max<std::int64_t>(g.matrix.columns, 1);
    g.matrix.column_stride = 1;
  }
  if (batch_.dimensions == 0 || is_empty()) return;
  int inner = -1;  // the dimension whose strides are those of the joined ones
  std::int64_t count = 1;
  outer_ = batch_.dimensions;
  for (int i = batch_.dimensions - 1; i >= 0; --i) {
    const auto at = static_cast<Size>(i);
    const std::int64_t extent = batch_.shape[at];
    if (extent != 1 && inner >= 0 && !std::all_of(given_.begin(), given_.end(), [&](const Given& g) {
          return g.strides[at] == g.strides[static_cast<Size>(inner)] * count;
        }))
      break;
    if (extent != 1 && inner < 0) inner = i;
    count *= extent;
    outer_ = i;
  }
  if (inner < 0) return;
  for (Given& g : given_) {
    const std::int64_t stride = g.strides[static_cast<Size>(inner)];
    g.matrix.batches = stride == 0 && !repeats_ ? 1 : count;
    g.matrix.batch_stride = stride;
  }
}

bool Matrices::next() {
  int i = outer_ - 1;
  for (; i >= 0; --i) {
    const auto at = static_cast<Size>(i);
    if (++place_[at] < batch_.shape[at]) break;
    place_[at] = 0;
  }
  if (i < 0) return false;
  for (Given& g : given_) {
    std::int64_t offset = 0;
    for (Size d = 0; d < static_cast<Size>(outer_); ++d) offset += place_[d] * g.strides[d];
    g.matrix.data = g.data + offset * size_of(g.matrix.type);
  }
  return true;
}

}  // namespace rigel::python

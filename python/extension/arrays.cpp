// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arrays.hpp"

#include <algorithm>

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

// Sets what a tensor of DLPack says. Whether its memory can be used.
bool set(Array& a, const nb::dlpack::dltensor& tensor, nb::handle object, const char* name) {
  if (tensor.device.device_type != nb::device::cpu::value)
    raise(RIGEL_UNSUPPORTED, std::string(name) + " is in memory of a device, expected an array on the host");
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
};

const ExchangeApi* exchange_api_of(PyTypeObject* type) {
  static PyTypeObject* last_type = nullptr;
  static const ExchangeApi* last = nullptr;
  if (type == last_type) return last;
  const nb::object capsule = nb::getattr(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__", nb::none());
  const ExchangeApi* api = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api"))
    api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  Py_INCREF(reinterpret_cast<PyObject*>(type));  // no other type gets its address
  last_type = type;
  last = api && api->major == 1 ? api : nullptr;
  return last;
}

// Whether an object is an array whose memory can be used; sets it.
bool import(Array& a, nb::handle object, const char* name, bool writable = false) {
  if (const ExchangeApi* const api = exchange_api_of(Py_TYPE(object.ptr()))) {
    ManagedTensor* tensor = nullptr;
    if (api->import(object.ptr(), &tensor) != 0) {
      PyErr_Clear();
      return false;
    }
    a.managed = std::shared_ptr<ManagedTensor>(tensor, [](ManagedTensor* one) {
      if (one->deleter) one->deleter(one);
    });
    return !(writable && (tensor->flags & 1) != 0) && set(a, tensor->tensor, object, name);
  }
  if (writable) {
    nb::ndarray<> memory;
    if (!nb::try_cast(object, memory, false)) return false;
    a.memory = nb::ndarray<nb::ro>(memory);
  } else if (!nb::try_cast(object, a.memory, false)) {
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

// The object, or what it means of a torch tensor that is negated lazily; raises for one whose gradient the call would lose. A type without
// gradients is asked once.
nb::object resolved(nb::handle object, const char* name) {
  static PyTypeObject* without = nullptr;
  if (Py_TYPE(object.ptr()) == without) return nb::borrow(object);
  const nb::object requires_grad = nb::getattr(object, "requires_grad", nb::none());
  if (requires_grad.is_none()) {
    Py_INCREF(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
    without = Py_TYPE(object.ptr());
    return nb::borrow(object);
  }
  const bool is_usable =
      !nb::cast<bool>(requires_grad) && !(nb::hasattr(object, "is_neg") && nb::cast<bool>(object.attr("is_neg")()));
  return is_usable ? nb::borrow(object) : package().convert(object, name);
}

bool has_negative_strides(const Array& a) {
  return std::any_of(a.strides.begin(), a.strides.begin() + a.dimensions, [](std::int64_t stride) { return stride < 0; });
}

void require_import(Array& a, nb::handle object, const char* name) {
  if (!import(a, object, name)) raise(RIGEL_INTERNAL, std::string(name) + " cannot be imported by DLPack");
}

std::string dimensions_expected(int least) {
  return least == 2 ? "at least 2: (..., rows, columns)" : "at least " + std::to_string(least);
}

}  // namespace

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

std::string described(const Array& array, const char* name) {
  return std::string(name) + " of shape " + text_of(array.shape.data(), array.dimensions);
}

void Batch::broadcast(const Array& array, const char* name, int own_dimensions) {
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
               const std::vector<std::int64_t>& own, rigel_type type, bool is_bool) {
  std::vector<std::int64_t> shape(batch.shape.begin(), batch.shape.begin() + batch.dimensions);
  shape.insert(shape.end(), own.begin(), own.end());
  if (object.is_none()) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
    if (!tuple) throw nb::python_error();
    const nb::object sizes = nb::steal(tuple);
    for (Size i = 0; i < shape.size(); ++i)
      PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
    original_ = package().empty(like.object, sizes, type, is_bool);
    require_import(array_, original_, name);
    return;
  }
  if (!resolved(object, name).is(object))
    refuse(std::string(name) + " is a tensor that is negated lazily, expected " + name + ".resolve_neg()");
  original_ = nb::borrow(object);
  if (!import(array_, object, name, true)) {
    if (!import(array_, object, name)) {
      package().convert(object, name);
      refuse(std::string(name) + " is no array that results can be written to, expected one that is aligned and writable");
    }
    refuse(std::string(name) + " is read-only, expected an array that can be written");
  }
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

// Joins the batch's dimensions, the last ones first, as far as every matrix has one stride for all of them.
void Matrices::plan() {
  if (batch_.dimensions == 0) return;
  int inner = -1;  // the dimension whose strides are those of the joined ones
  std::int64_t count = 1;
  outer_ = batch_.dimensions;
  for (int i = batch_.dimensions - 1; i >= 0; --i) {
    const auto at = static_cast<Size>(i);
    const std::int64_t extent = batch_.shape[at];
    is_empty_ = is_empty_ || extent == 0;
    if (extent != 1 && inner >= 0 && !std::all_of(given_.begin(), given_.end(), [&](const Given& g) {
          return g.strides[at] == g.strides[static_cast<Size>(inner)] * count;
        }))
      break;
    if (extent != 1 && inner < 0) inner = i;
    count *= extent;
    outer_ = i;
  }
  for (int i = 0; i < outer_; ++i) is_empty_ = is_empty_ || batch_.shape[static_cast<Size>(i)] == 0;
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

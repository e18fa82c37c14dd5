# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New arrays for results, arrays in place of arguments that DLPack cannot describe, and the streams that libraries work on.

Results are arrays of the library of the first argument, on its device: torch's, NumPy's, CuPy's, or of one that has the functions of Python's
array API, as JAX has. No library is imported before it is needed.
"""

import sys

from ._errors import InvalidArgument, Unsupported

# The types of rigel.h.
F16, BF16, F32, F64, I8, U8, I16, I32, I64, U32, U64 = range(1, 12)
NAMES = {F16: "float16", BF16: "bfloat16", F32: "float32", F64: "float64", I8: "int8", U8: "uint8", I16: "int16", I32: "int32",
         I64: "int64", U32: "uint32", U64: "uint64"}
CODES = {name: code for code, name in NAMES.items()}

_numpy_types = {}
_torch_types = {}


def numpy():
    """NumPy, and the types of its arrays, once an argument or a result needs them."""
    module = sys.modules.get("numpy")
    if module is None or not _numpy_types:
        import numpy as module

        _numpy_types.update({code: module.dtype(name) for code, name in NAMES.items() if code != BF16})
    return module


def is_torch(array):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def traits_of(kind):
    """Of a type of arrays: whether they are on the host alone, immutable, torch's, masked."""
    numpy_, jax, torch = (sys.modules.get(name) for name in ("numpy", "jax", "torch"))
    return (not hasattr(kind, "__dlpack_device__") or (numpy_ is not None and kind is numpy_.ndarray),
            jax is not None and issubclass(kind, jax.Array), torch is not None and issubclass(kind, torch.Tensor),
            _is_masked(kind))


def _is_masked(kind):
    module = sys.modules.get("numpy.ma")
    return module is not None and issubclass(kind, module.MaskedArray)


def require_mutable(array, name):
    if array is not None and traits_of(type(array))[1]:
        raise InvalidArgument(f"{name} is immutable, expected an array that can be written")
    require_no_gradient(array, name)
    module = sys.modules.get("numpy")
    if module is not None and isinstance(array, module.ndarray) and not array.flags.writeable:
        raise InvalidArgument(f"{name} is read-only, expected an array that can be written")


def _cupy(array):
    """CuPy, if the array is one of its arrays."""
    cupy = sys.modules.get("cupy")
    return cupy if cupy is not None and isinstance(array, cupy.ndarray) else None


def namespace(array):
    """The functions of an array's library by NumPy's names."""
    if is_torch(array):
        return sys.modules["torch"]
    return _cupy(array) or (array.__array_namespace__() if hasattr(array, "__array_namespace__") else numpy())


def empty(like, shape, code, is_bool):
    """A new array of the library of `like`, on its device."""
    if is_torch(like):
        torch = sys.modules["torch"]
        if not _torch_types:
            _torch_types.update({code: getattr(torch, name) for code, name in NAMES.items() if hasattr(torch, name)})
        return torch.empty(shape, dtype=torch.bool if is_bool else _torch_types[code], device=like.device)
    module = numpy()
    if cupy := _cupy(like):
        if code == BF16:
            raise Unsupported("results in bfloat16 have no CuPy type, expected torch tensors, or out=")
        with like.device:
            return cupy.empty(shape, bool if is_bool else _numpy_types[code])
    if isinstance(like, module.ndarray) or not hasattr(like, "__array_namespace__"):
        if code == BF16:
            raise Unsupported("results in bfloat16 have no NumPy type, expected torch tensors, or out=")
        if hasattr(like, "__dlpack_device__") and like.__dlpack_device__()[0] not in (_ON_HOST, _PINNED):
            raise Unsupported(f"results would be arrays of {type(like).__name__} on a device, whose library is unknown, expected out=")
        return module.empty(shape, bool if is_bool else _numpy_types[code])
    namespace = like.__array_namespace__()
    dtype = namespace.bool if is_bool else getattr(namespace, NAMES[code])
    if "jax" in sys.modules:  # which has no 64 bits unless told
        dtype = sys.modules["jax"].dtypes.canonicalize_dtype(dtype)
    return namespace.empty(shape, dtype=dtype, device=like.device)


def zeros(like, shape, code):
    """The same, of zeros."""
    new = empty(like, shape, code, False)
    if is_torch(new):
        return new.zero_()
    if isinstance(new, numpy().ndarray) or _cupy(new):
        new.fill(0)
        return new
    return new.__array_namespace__().zeros_like(new)


def copy(array):
    """A contiguous copy, of its library."""
    if is_torch(array):
        return array.clone(memory_format=sys.modules["torch"].contiguous_format)
    if cupy := _cupy(array):
        with array.device:
            return cupy.array(array, order="C")
    module = numpy()
    if isinstance(array, module.ndarray) or not hasattr(array, "__array_namespace__"):
        return module.array(array, order="C")
    return array.__array_namespace__().asarray(array, copy=True)


def require_no_gradient(value, name):
    if is_torch(value) and value.requires_grad:
        convert(value, name)


def on_host(array, name):
    """A NumPy array of what any array of as_array() holds; raises for a gradient, which it would lose."""
    if is_torch(array):
        if array.requires_grad or array.is_neg():
            array = convert(array, name)
        array = array.cpu()
        return (array.float() if array.dtype == sys.modules["torch"].bfloat16 else array).numpy()
    try:
        if _cupy(array):
            return array.get()
        return numpy().asarray(array) if hasattr(array, "__array__") else numpy().from_dlpack(array)
    except (TypeError, RuntimeError, BufferError) as error:  # of JAX, say a tracer's
        raise Unsupported(f"{name} is a {type(array).__name__} whose numbers cannot be read: {str(error).partition(chr(10))[0]}") from None


def last(array):
    """The last element of an array of integers, once it is computed."""
    return int(on_host(array[-1:], "offsets")[0])


def moved(array, like):
    """What a NumPy array holds, as an array of the library of `like`, on its device."""
    if is_torch(like):
        return sys.modules["torch"].as_tensor(array, device=like.device)
    if cupy := _cupy(like):
        with like.device:
            return cupy.asarray(array)
    if isinstance(like, numpy().ndarray) or not hasattr(like, "__array_namespace__"):
        return array
    return like.__array_namespace__().asarray(array, device=like.device)


# ---- streams of GPUs ----

_ON_HOST, _PINNED = 1, 3  # types of devices of DLPack


def stream_of(array, device):
    """The stream that an array's library works on, and whether memory that it frees is reused in that stream's order.

    Of unknown libraries it is the legacy default stream, 0, which they let wait for their own when they export.
    """
    if is_torch(array):
        return sys.modules["torch"].cuda.current_stream(device).cuda_stream, True
    if cupy := _cupy(array):
        with cupy.cuda.Device(device):
            return cupy.cuda.get_current_stream().ptr, True
    return 0, False


def is_capturing(array):
    """Whether that stream is being captured in a graph."""
    if is_torch(array):
        return sys.modules["torch"].cuda.is_current_stream_capturing()
    cupy = _cupy(array)
    return cupy is not None and cupy.cuda.get_current_stream().is_capturing()


def capture_streams(array, device):
    """Streams that captures will be on, besides the current one.

    ``torch.cuda.graph`` makes one for all captures when the first begins, which is too late: handles of streams cannot be made during a
    capture. So it is made in the same way at the first call on the device.
    """
    if not is_torch(array):
        return []
    cuda = sys.modules["torch"].cuda
    if cuda.graph.default_capture_stream is None and cuda.current_device() == device:
        cuda.graph.default_capture_stream = cuda.Stream()
    stream = cuda.graph.default_capture_stream
    return [stream.cuda_stream] if stream is not None and stream.device.index == device else []


def convert(given, name):
    """An array in place of an argument that cannot be imported; raises if there is none."""
    if is_torch(given):
        torch = sys.modules["torch"]
        if given.requires_grad and torch.is_grad_enabled():
            raise Unsupported(f"{name} requires a gradient, which this call does not record, expected {name}.detach(), or a function of "
                              "rigel_semirings.torch")
        is_dense = given.layout is torch.strided and not given.is_meta
        if is_dense and (given.requires_grad or given.is_neg()):
            return given.detach().resolve_neg()
        raise Unsupported(f"{name} is a tensor of {given.dtype}, {given.layout}, on {given.device}, expected a strided one of a type of "
                          "real numbers, on the host or on a CUDA device")
    if _is_masked(type(given)):
        raise Unsupported(f"{name} is a masked array, whose mask a call does not see, expected {name}.filled(…)")
    module = numpy()
    if not isinstance(given, module.ndarray):
        if hasattr(given, "__dlpack__"):
            raise Unsupported(f"{name} is a {type(given).__name__} that DLPack cannot export to other libraries, expected one that is dense, "
                              "of a type of real numbers, and aligned")
        if not isinstance(given, (list, tuple, int, float, bool, module.generic)):
            raise Unsupported(f"{name} is a {type(given).__name__}, expected an array with __dlpack__, such as a NumPy array or a torch "
                              "tensor")
        try:
            given = module.asarray(given)
        except ValueError as error:
            raise InvalidArgument(f"{name} is no array: {error}") from None
    if not given.dtype.isnative:
        raise Unsupported(f"{name} holds {given.dtype.str!r}, numbers in the byte order of another machine, expected "
                          f"{name}.astype({given.dtype.newbyteorder('=').str!r})")
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        raise Unsupported(f"{name} holds {given.dtype}, expected {', '.join(NAMES.values())} or bool")
    return module.array(given, order="C")


def type_code(dtype, name):
    """The code of a type's name, of a NumPy or a torch type; 0 for None."""
    if dtype is None:
        return 0
    text = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    if text not in CODES:
        try:
            text = str(numpy().dtype(dtype))
        except TypeError:
            pass
    if text not in CODES:
        raise Unsupported(f"{name} is {dtype!r}, expected one of {', '.join(CODES)}")
    return CODES[text]


def as_array(given, name):
    """The argument, or an array of NumPy of lists and numbers; raises for a masked array, and for a tensor that is not dense."""
    is_array = hasattr(given, "__dlpack__") and not _is_masked(type(given))
    if is_array and is_torch(given):
        is_array = given.layout is sys.modules["torch"].strided and not given.is_meta
    return given if is_array else convert(given, name)


def floats_on_host(given, name):
    """A NumPy array of float64 of what an array of real numbers or a list holds."""
    array = on_host(as_array(given, name), name)
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise Unsupported(f"{name} holds {array.dtype}, expected real numbers")
    return array.astype("float64")


def as_floats(array, name):
    """The array, as float64 if it holds integers or bool."""
    if is_torch(array):
        return array if array.is_floating_point() or array.is_complex() else array.double()
    array = as_array(array, name)
    if str(array.dtype).startswith(("float", "bfloat")):
        return array
    integers = on_host(array, name)
    return moved(integers.astype("float64"), array) if integers.dtype.kind in "biu" else array

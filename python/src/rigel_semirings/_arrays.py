# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""New arrays for results, and arrays in place of arguments that DLPack cannot describe.

Results are arrays of the library of the first argument: torch tensors for a torch tensor, else NumPy arrays. Neither library is imported
before it is needed.
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


def empty(like, shape, code, is_bool):
    """A new array of the library of `like`."""
    if is_torch(like):
        torch = sys.modules["torch"]
        if not _torch_types:
            _torch_types.update({code: getattr(torch, name) for code, name in NAMES.items() if hasattr(torch, name)})
        return torch.empty(shape, dtype=torch.bool if is_bool else _torch_types[code], device="cpu")
    module = numpy()
    if is_bool:
        return module.empty(shape, bool)
    if code == BF16:
        raise Unsupported("results in bfloat16 have no NumPy type, expected torch tensors, or out=")
    return module.empty(shape, _numpy_types[code])


def copy(array):
    """A contiguous copy, of an array with negative strides: a NumPy one."""
    return numpy().array(array, order="C")


def convert(given, name):
    """An array in place of an argument that cannot be imported; raises if there is none."""
    if is_torch(given):
        if given.requires_grad:
            raise Unsupported(f"{name} requires a gradient, which this call does not record, expected {name}.detach()")
        if given.is_neg():
            return given.resolve_neg()
        raise Unsupported(f"{name} is a tensor of {given.dtype}, {given.layout}, on {given.device}, expected a strided one on the host "
                          "of a type of real numbers")
    module = numpy()
    if not isinstance(given, module.ndarray):
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
        text = str(numpy().dtype(dtype))
    if text not in CODES:
        raise Unsupported(f"{name} is {dtype!r}, expected one of {', '.join(CODES)}")
    return CODES[text]


def as_array(given):
    """The argument, or an array of NumPy of what has no shape."""
    return given if hasattr(given, "shape") else numpy().asarray(given)


def as_floats(array):
    """The array as float64, unless it holds floating-point numbers."""
    if is_torch(array):
        return array if array.is_floating_point() else array.double()
    array = as_array(array)
    return array if str(array.dtype).startswith(("float", "bfloat")) else numpy().asarray(array, dtype="float64")

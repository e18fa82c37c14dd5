# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that say that they are on a GPU, and are not: what the package does of devices and streams shows without one."""

import ctypes

import numpy as np

CUDA, ROCM = 2, 10

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Fake:
    """An array of a library that has DLPack, on a device; its memory is NumPy's."""

    def __init__(self, array, device=0, kind=CUDA):
        self.array, self.on = np.asarray(array), (kind, device)
        self.exports = []  # the arguments of each

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    device = property(lambda self: self.on)

    def __dlpack_device__(self):
        return self.on

    def __dlpack__(self, **asked):
        self.exports.append(asked)
        capsule = self.array.__dlpack__()
        # The tensor begins with its data, and the device follows.
        device = ctypes.cast(pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int32))
        device[0], device[1] = self.on
        return capsule


class OldFake(Fake):
    """Of a library before DLPack 1."""

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__(stream=stream)


class FakeOfNamespace(Fake):
    """Of a library that has the array API, too."""

    def __array_namespace__(self):
        return Namespace

    def __getitem__(self, at):
        return self.array[at]


class Namespace:
    """The functions of that library."""

    bool = np.dtype(bool)
    made = []  # every array that empty() has made

    @classmethod
    def empty(cls, shape, dtype, device):
        cls.made.append(FakeOfNamespace(np.empty(shape, dtype), device[1]))
        return cls.made[-1]

    @staticmethod
    def asarray(array, copy=None, device=None):
        if isinstance(array, Fake):
            return FakeOfNamespace(array.array.copy(), array.on[1])
        return FakeOfNamespace(array, device[1])


for _name in ("float16", "float32", "float64", "int32", "int64", "uint8"):
    setattr(Namespace, _name, np.dtype(_name))

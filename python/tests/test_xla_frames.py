# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The handlers of jax.ffi through XLA's C interface, with call frames built here: without JAX, on the host and, where torch finds one, on a GPU."""

import ctypes
import importlib.util
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import rigel_semirings as rs
from rigel_semirings import _core

# Structs of xla/ffi/api/c_api.h, version 0.3.
word, pointer = ctypes.c_size_t, ctypes.c_void_p
TYPES = {"float32": 11, "float64": 12, "bfloat16": 16}
SCALAR, STRING, DICTIONARY = 3, 4, 2


class Buffer(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("type", ctypes.c_int32), ("data", pointer), ("rank", ctypes.c_int64),
                ("extents", ctypes.POINTER(ctypes.c_int64))]


class Span(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", word)]


class Scalar(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("value", pointer)]


class Buffers(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("count", ctypes.c_int64), ("types", ctypes.POINTER(ctypes.c_int32)),
                ("list", ctypes.POINTER(pointer))]


class Attributes(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("count", ctypes.c_int64), ("types", ctypes.POINTER(ctypes.c_int32)),
                ("names", ctypes.POINTER(pointer)), ("list", ctypes.POINTER(pointer))]


class ErrorArgs(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("message", ctypes.c_char_p), ("code", ctypes.c_int32)]


class StreamArgs(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("context", pointer), ("stream", pointer)]


class DeviceArgs(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("context", pointer), ("device", ctypes.c_int32)]


class Version(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class Api(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("version", Version), ("internal", pointer), ("create_error", pointer),
                ("others", 3 * pointer), ("get_stream", pointer), ("more", 12 * pointer), ("get_device", pointer)]


class Frame(ctypes.Structure):
    _fields_ = [("size", word), ("extensions", pointer), ("api", ctypes.POINTER(Api)), ("context", pointer), ("stage", ctypes.c_int32),
                ("operands", Buffers), ("results", Buffers), ("attributes", Attributes)]


EXECUTE, CONTEXT = 3, 0x1234
handler_type = ctypes.CFUNCTYPE(pointer, ctypes.POINTER(Frame))
address_of = ctypes.pythonapi.PyCapsule_GetPointer
address_of.restype, address_of.argtypes = pointer, [ctypes.py_object, ctypes.c_char_p]


class Call:
    """One call of a handler. Arrays are (address, shape, type); `stream` and `device` are what XLA tells of a GPU."""

    def __init__(self, name, operands, results, attributes, stream=None, device=0):
        self.kept, self.refusals, self.asked = [], [], []
        frame = self.keep(Frame(size=ctypes.sizeof(Frame), context=CONTEXT, stage=EXECUTE))
        frame.api = ctypes.pointer(self.api(stream, device))
        frame.operands, frame.results = self.buffers(operands), self.buffers(results)
        frame.attributes = self.dictionary(attributes)
        handler = handler_type(address_of(_core.jax_handlers()[name][stream is not None], None))
        self.failed = handler(ctypes.byref(frame)) is not None

    def keep(self, one):
        self.kept.append(one)
        return one

    def api(self, stream, device):
        def create_error(args):
            self.refusals.append((args.contents.code, args.contents.message.decode()))
            return 1

        def get_stream(args):
            self.asked.append(args.contents.context)
            args.contents.stream = stream

        def get_device(args):
            self.asked.append(args.contents.context)
            args.contents.device = device

        def function(struct, call):
            return ctypes.cast(self.keep(ctypes.CFUNCTYPE(pointer, ctypes.POINTER(struct))(call)), pointer)

        version = Version(size=ctypes.sizeof(Version), major=0, minor=3)
        return self.keep(Api(size=ctypes.sizeof(Api), version=version, create_error=function(ErrorArgs, create_error),
                             get_stream=function(StreamArgs, get_stream), get_device=function(DeviceArgs, get_device)))

    def list_of(self, kind, values):
        return self.keep((kind * len(values))(*values))

    def buffers(self, arrays):
        one = [self.keep(Buffer(size=ctypes.sizeof(Buffer), type=TYPES[kind], data=address, rank=len(shape),
                                extents=self.list_of(ctypes.c_int64, shape))) for address, shape, kind in arrays]
        return Buffers(size=ctypes.sizeof(Buffers), count=len(one), types=self.list_of(ctypes.c_int32, [1] * len(one)),
                       list=self.list_of(pointer, [ctypes.addressof(each) for each in one]))

    def span(self, text):
        return ctypes.addressof(self.keep(Span(data=text.encode(), size=len(text.encode()))))

    def attribute(self, value):
        if isinstance(value, str):
            return STRING, self.span(value)
        if isinstance(value, dict):
            return DICTIONARY, ctypes.addressof(self.keep(self.dictionary(value)))
        number = self.keep(ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_double(value))
        return SCALAR, ctypes.addressof(self.keep(Scalar(type=5 if isinstance(value, int) else 12, value=ctypes.addressof(number))))

    def dictionary(self, values):
        types, addresses = zip(*(self.attribute(values[name]) for name in sorted(values)), strict=True) if values else ((), ())
        return Attributes(size=ctypes.sizeof(Attributes), count=len(values), types=self.list_of(ctypes.c_int32, types),
                          names=self.list_of(pointer, [self.span(name) for name in sorted(values)]), list=self.list_of(pointer, addresses))


OPTIONS = {"kernel_name": "", "require": 0, "precision": 0, "may_cancel": 0}


def cdist(x, z, out, metric="minkowski", stream=None, device=0):
    return Call("cdist", (x, z), (out,), {**OPTIONS, "metric": metric, "parameters": {"p": 3.0}}, stream, device)


def of(array):
    return array.ctypes.data, array.shape, str(array.dtype)


def test_on_the_host(rng):
    x, z, out = rng.random((3, 7, 5)), rng.random((1, 4, 5)), np.zeros((3, 7, 4))
    call = cdist(of(x), of(z), of(out))
    assert not call.failed and not call.asked
    np.testing.assert_array_equal(out, rs.cdist(x, z, "minkowski", p=3.0))


def test_refusals(rng):
    x = rng.random((3, 5))
    call = cdist(of(x), of(x), of(np.zeros((3, 3))), "nothing")
    assert call.failed and call.refusals[0][0] == 5 and call.refusals[0][1].startswith("cdist: ") and "'nothing'" in call.refusals[0][1]


@pytest.mark.skipif(any("cuda" in kernel["spaces"] for kernel in rs.kernels("cuda")), reason="librigel_c has CUDA")
def test_a_gpu_without_cuda(rng):
    """XLA is asked for the call's stream and device, which this library cannot use."""
    x = rng.random((3, 5))
    call = cdist(of(x), of(x), of(np.zeros((3, 3))), stream=0x5678, device=2)
    assert call.asked == [CONTEXT, CONTEXT]
    assert call.failed and call.refusals[0][0] == 12 and "device is 2, and this library was built without CUDA" in call.refusals[0][1]


def test_structs_are_those_of_jaxlib(tmp_path):
    """What extension/xla_ffi.hpp declares is what jaxlib's header does, if it is here."""
    jaxlib = importlib.util.find_spec("jaxlib")
    compiler = next(filter(shutil.which, ("clang++-22", "clang++", "g++")), None)
    header = pathlib.Path(__file__).parents[1] / "extension" / "xla_ffi.hpp"
    include = pathlib.Path(jaxlib.origin).parent / "include" if jaxlib else None
    if compiler is None or not header.exists() or include is None or not (include / "xla/ffi/api/c_api.h").exists():
        pytest.skip("jaxlib's header, a compiler or the extension's source is not here")
    if "XLA_FFI_DeviceOrdinal_Get_Args" not in (include / "xla/ffi/api/c_api.h").read_text():
        pytest.skip("this jaxlib has an older interface, without what GPUs need")
    members = {
        ("XLA_FFI_Api", "Api"): "api_version version, XLA_FFI_Error_Create create_error, XLA_FFI_Stream_Get get_stream, "
                                "XLA_FFI_DeviceOrdinal_Get get_device",
        ("XLA_FFI_CallFrame", "Frame"): "api api, ctx context, stage stage, args operands, rets results, attrs attributes",
        ("XLA_FFI_Args", "Buffers"): "size count, types types, args list",
        ("XLA_FFI_Rets", "Buffers"): "size count, types types, rets list",
        ("XLA_FFI_Attrs", "Attributes"): "size count, types types, names names, attrs list",
        ("XLA_FFI_Buffer", "Buffer"): "dtype type, data data, rank rank, dims extents",
        ("XLA_FFI_Scalar", "Scalar"): "dtype type, value value",
        ("XLA_FFI_ByteSpan", "Span"): "ptr data, len size",
        ("XLA_FFI_Stream_Get_Args", "StreamArgs"): "ctx context, stream stream",
        ("XLA_FFI_DeviceOrdinal_Get_Args", "DeviceArgs"): "ctx context, device_ordinal device",
        ("XLA_FFI_Error_Create_Args", "ErrorArgs"): "message message, errc code",
        ("XLA_FFI_Metadata", "Metadata"): "api_version version, traits traits",
        ("XLA_FFI_Metadata_Extension", "MetadataExtension"): "metadata metadata",
    }
    lines = ["#include <cstddef>", '#include "xla/ffi/api/c_api.h"', f'#include "{header}"', "using namespace rigel::python;"]
    for (theirs, ours), pairs in members.items():
        for pair in pairs.split(", "):
            one, other = pair.split()
            lines.append(f"static_assert(offsetof({theirs}, {one}) == offsetof(xla::{ours}, {other}) && "
                         f"sizeof({theirs}::{one}) == sizeof(xla::{ours}::{other}));")
    for theirs, ours in (("ExecutionStage_EXECUTE", "execute_stage"), ("Extension_Metadata", "metadata_extension"), ("ArgType_BUFFER", "1"),
                         ("RetType_BUFFER", "1"), ("AttrType_DICTIONARY", "dictionary"), ("AttrType_SCALAR", "scalar"),
                         ("AttrType_STRING", "string"), *((f"DataType_{one.upper()}", one) for one in
                                                          "pred s8 s16 s32 s64 u8 u32 u64 f16 f32 f64 bf16".split())):
        lines.append(f"static_assert(int(XLA_FFI_{theirs}) == int({ours if ours == '1' else 'xla::' + ours}));")
    source = tmp_path / "structs.cpp"
    source.write_text("\n".join(lines))
    result = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{include}", str(source)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


# ---- on a GPU, whose memory and streams are torch's ----


def on_a_gpu():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available() or not any("cuda" in kernel["spaces"] for kernel in rs.kernels("cuda")):
        pytest.skip("torch or librigel_c finds no GPU")
    return torch


def of_torch(tensor):
    assert tensor.is_contiguous()
    return tensor.data_ptr(), tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")


def test_distances_on_a_gpu():
    torch = on_a_gpu()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)  # what comes next on the stream has to wait for it
        x, z = torch.rand(3, 70, 5, device="cuda"), torch.rand(1, 40, 5, device="cuda")
        out = torch.zeros(3, 70, 40, device="cuda")
        call = cdist(of_torch(x), of_torch(z), of_torch(out), stream=stream.cuda_stream, device=stream.device_index)
        copy = out.clone()
    assert not call.failed, call.refusals
    stream.synchronize()
    torch.testing.assert_close(copy, torch.cdist(x, z, p=3.0), rtol=1e-5, atol=1e-6)


def test_products_on_a_gpu():
    torch = on_a_gpu()
    stream = torch.cuda.Stream()
    for kind in (torch.float32, torch.bfloat16):
        with torch.cuda.stream(stream):
            a, b = torch.rand(130, 64, device="cuda").to(kind), torch.rand(64, 48, device="cuda").to(kind)
            c = torch.zeros(130, 48, device="cuda", dtype=kind)
            attributes = {**OPTIONS, "semiring": "min_plus", "text": "", "parameters": {}}
            call = Call("contract", (of_torch(a), of_torch(b)), (of_torch(c),), attributes, stream.cuda_stream, stream.device_index)
            expected = (a.float()[:, :, None] + b.float()).amin(1).to(kind)
        assert not call.failed, call.refusals
        stream.synchronize()
        assert torch.equal(c, expected)


def test_refusals_on_a_gpu():
    torch = on_a_gpu()
    stream = torch.cuda.Stream()
    x, out = torch.rand(7, 5, device="cuda"), torch.zeros(7, 7, device="cuda")
    call = cdist(of_torch(x), of_torch(x), of_torch(out), "nothing", stream.cuda_stream, stream.device_index)
    assert call.failed and call.refusals[0][0] == 5 and "'nothing'" in call.refusals[0][1]

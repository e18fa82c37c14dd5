# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams and devices of calls. test_devices.py runs it in a process in which handles of GPUs are those of the host."""

import ctypes
import os
import sys
import threading
import types

import numpy as np
import pytest
from arrays_on_fake_gpus import Fake, FakeOfNamespace, Namespace, OldFake, pointer

import rigel_semirings as rs
from rigel_semirings import _arrays

gpu = ctypes.CDLL(os.environ["RIGEL_FAKE_GPU"])
gpu.fake_gpu_log.restype = ctypes.c_char_p
x, z = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 1.0]])
d = np.array([[1.0], [np.sqrt(18.0)]])


@pytest.fixture(autouse=True)
def log():
    gpu.fake_gpu_clear()
    return lambda: gpu.fake_gpu_log().decode()


class FakeCupy(types.ModuleType):
    """CuPy, as far as the package uses it."""

    class ndarray(Fake):  # noqa: N801
        device = property(lambda self: FakeCupy.Device(self.on[1]))
        get = property(lambda self: lambda: self.array)

        def __dlpack__(self, **asked):
            """Strides are bytes without a sign over the size of elements, as in CuPy."""
            capsule = super().__dlpack__(**asked)
            size = self.array.itemsize
            strides = ctypes.cast(ctypes.cast(pointer(capsule, b"dltensor") + 32, ctypes.POINTER(ctypes.c_void_p))[0],
                                  ctypes.POINTER(ctypes.c_int64))
            for i, stride in enumerate(self.array.strides):
                strides[i] = stride % 2**64 // size
            return capsule

        def __setitem__(self, at, value):
            self.array[at] = value.array

        def fill(self, value):
            self.array.fill(value)

    class Device:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            FakeCupy.current.append(self.device)

        def __exit__(self, *error):
            FakeCupy.current.pop()

    class Stream:
        ptr, captures = 77, False

        def is_capturing(self):
            return self.captures

    current = [0]
    stream = Stream()

    def __init__(self):
        super().__init__("cupy")
        self.cuda = types.SimpleNamespace(Device=self.Device, get_current_stream=lambda: self.stream)

    def empty(self, shape, dtype):
        return self.ndarray(np.empty(shape, dtype), self.current[-1])

    def array(self, given, order):
        return self.ndarray(np.array(given.array, order=order), self.current[-1])

    def asarray(self, given):
        return self.ndarray(given, self.current[-1])


@pytest.fixture
def cupy(monkeypatch):
    module = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    yield module
    module.stream.ptr, module.stream.captures = 77, False


def test_an_array_of_an_unknown_library(log):
    a, b = Fake(x, 1), Fake(z, 1)
    out = Fake(np.zeros((2, 1)), 1)
    assert rs.cdist(a, b, out=out) is out
    np.testing.assert_allclose(out.array, d, rtol=1e-15)
    assert a.exports == b.exports == out.exports == [{"stream": 1, "max_version": (1, 1)}]
    assert log() == "create 1:0;wait 1:0;"  # its memory may come back on another stream
    with pytest.raises(TypeError, match="arrays of Fake on a device, whose library is unknown, expected out="):
        rs.cdist(a, b)


def test_a_library_before_dlpack_1():
    out = OldFake(np.zeros((2, 1)))
    rs.cdist(OldFake(x), OldFake(z), out=out)
    np.testing.assert_allclose(out.array, d, rtol=1e-15)
    assert out.exports == [{"stream": 1}]


def test_results_are_of_the_library_and_on_the_device(log):
    result = rs.cdist(FakeOfNamespace(x, 2), FakeOfNamespace(z, 2))
    assert result is Namespace.made[-1] and result.on == (2, 2)
    np.testing.assert_allclose(result.array, d, rtol=1e-15)
    assert log() == "create 2:0;wait 2:0;"
    near = rs.nearest(FakeOfNamespace(x, 2), FakeOfNamespace(z, 2))
    assert near.indices.array.tolist() == [[0], [0]] and near.indices.on == (2, 2)
    found = rs.radius_neighbors(FakeOfNamespace(x), FakeOfNamespace(z), radius=2.0)
    assert found.offsets.array.tolist() == [0, 1, 1] and found.indices.array.tolist() == [0]
    # What the package computes of arguments goes to the device, too.
    np.testing.assert_allclose(rs.cdist(FakeOfNamespace(x), FakeOfNamespace(z), "seuclidean", V=[1.0, 4.0]).array,
                               [[0.5], [np.sqrt(9 + 9 / 4)]], rtol=1e-15)
    assert rs.closure(FakeOfNamespace(np.full((2, 2), np.inf))).array.tolist() == [[0, np.inf], [np.inf, 0]]


def test_streams_of_cupy(log, cupy):
    a, b = cupy.ndarray(x, 3), cupy.ndarray(z, 3)
    result = rs.cdist(a, b)
    assert isinstance(result, cupy.ndarray) and result.on == (2, 3)
    np.testing.assert_allclose(result.array, d, rtol=1e-15)
    assert a.exports == [{"stream": 77, "max_version": (1, 1)}]
    rs.cdist(a, b)
    cupy.stream.ptr = 78
    rs.cdist(a, b)
    cupy.stream.ptr = 0
    rs.cdist(a, b)
    assert a.exports[-1]["stream"] == 1
    assert log() == "create 3:77;create 3:78;create 3:0;"  # one each, and asynchronous


def test_what_the_package_makes_of_arrays_of_cupy(cupy):
    a = cupy.ndarray(x, 2)
    scaled = rs.cdist(a, metric="seuclidean")
    np.testing.assert_allclose(scaled.array, rs.cdist(x, metric="seuclidean"), rtol=1e-15)
    assert scaled.on == (2, 2)
    np.testing.assert_array_equal(rs.closure(cupy.ndarray(np.full((2, 2), np.inf), 2)).array, [[0, np.inf], [np.inf, 0]])
    floats = cupy.ndarray(x.astype("float32"), 2)
    assert rs.linear_backward_weight(floats, floats)[0].array.tolist() == (x.T @ x).tolist()
    reversed_ = cupy.ndarray(x[::-1], 2)
    np.testing.assert_array_equal(rs.cdist(reversed_, cupy.ndarray(z, 2)).array, rs.cdist(x[::-1], z))
    out = cupy.ndarray(np.zeros((2, 3, 2, 2)), 2)  # a batch of several calls goes to a copy first
    rs.cdist(cupy.ndarray(np.broadcast_to(x, (2, 3, 2, 2)).copy(), 2), out=out)
    np.testing.assert_array_equal(out.array[1, 2], rs.cdist(x))
    counts = rs.cdist(cupy.ndarray(x.astype("int32"), 2), metric="canberra")
    np.testing.assert_array_equal(counts.array, rs.cdist(x, metric="canberra"))


def test_hyperparameters_in_arrays_of_cupy(log, cupy, compiles):
    cupy.stream.ptr = 80
    p, many = np.array([1.0, 2.0, 4.0]), np.arange(6.0).reshape(2, 3)
    s = rs.Semiring("a * b * p", "x + y", p=cupy.ndarray(p[::-1], 3))
    a, b = cupy.ndarray(x, 3), cupy.ndarray(z.T, 3)
    np.testing.assert_array_equal(rs.contract(a, b, s).array, p[::-1, None, None] * (x @ z.T))
    e = rs.Epilogue("x + q", q=cupy.ndarray(many[:, ::-2], 3))
    np.testing.assert_array_equal(rs.contract(a, b, "plus_times", epilogue=e).array, x @ z.T + many[:, ::-2, None, None])
    assert log() == "create 3:80;"  # asynchronous
    s.p = FakeOfNamespace(p, 3)
    rs.contract(a, b, s)
    assert log().endswith("wait 3:0;wait 3:80;")


def test_arrays_of_two_libraries(log, cupy):
    rs.cdist(cupy.ndarray(x, 3), FakeOfNamespace(z, 3))
    assert log() == "wait 3:0;wait 3:77;"


def test_a_batch_of_several_calls(cupy):
    a = np.arange(48.0).reshape(2, 3, 2, 4)[:, :2]
    np.testing.assert_array_equal(rs.contract(cupy.ndarray(a), cupy.ndarray(np.swapaxes(a, 2, 3))).array,
                                  rs.contract(a, np.swapaxes(a, 2, 3)))


def test_workspace_during_a_capture(log, cupy, rng=np.random.default_rng(1)):
    a = rng.random((40, 40)) + 40 * np.eye(40)
    rs.lu_solve(cupy.ndarray(a, 1), cupy.ndarray(np.ones((40, 2)), 1))  # makes the handle
    made = []
    empty = cupy.empty
    cupy.empty = lambda shape, dtype: made.append((shape, np.dtype(dtype))) or empty(shape, dtype)
    cupy.stream.captures = True
    result = rs.lu_solve(cupy.ndarray(a, 1), cupy.ndarray(np.ones((40, 2)), 1))
    np.testing.assert_array_equal(result.array, rs.lu_solve(a, np.ones((40, 2))))
    assert len(made) == 2 and made[0] == ((40, 2), np.float64)
    for (size,), dtype in made[1:]:
        assert size > 0 and dtype == np.uint8
    cupy.stream.ptr = 99
    with pytest.raises(ValueError, match="b is on a stream of CUDA device 1 that is being captured in a graph, expected a call on this"):
        rs.lu_solve(cupy.ndarray(a, 1), cupy.ndarray(np.ones((40, 2)), 1))
    assert "1:99" not in log()


def test_many_streams(log, cupy):
    for stream in range(1000, 1080):
        cupy.stream.ptr = stream
        rs.cdist(cupy.ndarray(x), cupy.ndarray(z))
    cupy.stream.ptr = 1079
    gpu.fake_gpu_clear()
    rs.cdist(cupy.ndarray(x), cupy.ndarray(z))
    assert log() == ""


def test_streams_of_torch(log, monkeypatch):
    """A tensor without the exchange API, as before torch 2.10."""
    made = []

    class FakeTensor(FakeOfNamespace):
        requires_grad = False
        device = property(lambda self: self.on)

        def is_neg(self):
            return False

    class FakeStream:
        cuda_stream = 55
        device = types.SimpleNamespace(index=0)

    class Graph:
        default_capture_stream = None

    torch = types.ModuleType("torch")
    torch.Tensor, torch.bool, torch.float64 = FakeTensor, bool, np.float64
    torch.empty = lambda shape, dtype, device: made.append(device) or FakeTensor(np.empty(shape, dtype), device[1])
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=200 + device), Stream=FakeStream,
                                       current_device=lambda: 0, graph=Graph, is_current_stream_capturing=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(_arrays, "_torch_types", {_arrays.F64: np.float64})
    result = rs.cdist(FakeTensor(x), FakeTensor(z))
    assert isinstance(result, FakeTensor) and made == [(2, 0)]
    np.testing.assert_allclose(result.array, d, rtol=1e-15)
    assert "create 0:200;" in log() and "wait" not in log()


def test_ranges(log, cupy):
    """They are made once on each device that a call is on, and last until others are made there: the device may read them still."""
    ranges = rs.Ranges(2, 1, [[1, 2]], [1], [[0, 1]])
    assert log() == ""
    for stream, device in ((77, 1), (78, 1), (78, 2)):
        cupy.stream.ptr = stream
        near = rs.nearest(cupy.ndarray(x, device), cupy.ndarray(z, device), ranges=ranges)
        assert near.indices.array.tolist() == [[-1], [0]]
    made = [word for word in log().split(";") if word.startswith(("ranges", "destroy"))]
    assert made == ["ranges 1:77", "ranges 2:78"]
    assert rs.nearest(x, z, ranges=ranges).indices.tolist() == [[-1], [0]]
    gpu.fake_gpu_clear()
    del ranges
    assert log() == "destroy ranges;"  # those on the host
    other = rs.Ranges(2, 1, [], [], [])
    cupy.stream.ptr, cupy.stream.captures = 78, True
    with pytest.raises(ValueError, match="ranges are not on CUDA device 2 yet, whose stream is being captured in a graph, expected a call with"):
        rs.nearest(cupy.ndarray(x, 2), cupy.ndarray(z, 2), ranges=other)
    assert log() == "destroy ranges;"
    cupy.stream.captures = False
    rs.nearest(cupy.ndarray(x, 2), cupy.ndarray(z, 2), ranges=other)
    assert log() == "destroy ranges;destroy ranges;ranges 2:78;"
    cupy.stream.captures = True
    rs.nearest(cupy.ndarray(x, 2), cupy.ndarray(z, 2), ranges=other)


def test_a_function_that_is_told_of_steps_calls_on_the_same_stream(cupy):
    points, seen = cupy.ndarray(np.random.default_rng(1).random((40, 2)), 1), []
    found = rs.kernel_solve(points, cupy.ndarray(np.ones(40), 1), bandwidth=0.3, regularisation=0.1, rank=0,
                            progress=lambda i, r: seen.append(rs.cdist(points).array.shape))
    assert found.iterations == len(seen) > 0 and set(seen) == {(40, 40)}


def test_clusters_of_halves(cupy):
    """They become float64 on the device."""
    points = np.array([[0, 0], [0, 1], [9, 9], [9, 8]], "float16")
    found = rs.kmeans(cupy.ndarray(points, 2), 2, [[0.0, 0.0], [9.0, 9.0]])
    assert found.centres.on == (2, 2) and found.centres.array.tolist() == [[0, 0.5], [9, 8.5]]


def test_a_stream_has_one_handle(log, cupy):
    """Another thread makes the handle of the same stream while this one asks whether the stream is captured."""
    cupy.stream.ptr = 4242
    asks, points = type(cupy.stream).is_capturing, cupy.ndarray(x, 1)

    def is_capturing(stream):
        type(cupy.stream).is_capturing = asks
        other = threading.Thread(target=rs.cdist, args=(points,))
        other.start()
        other.join()
        return False

    type(cupy.stream).is_capturing = is_capturing
    rs.cdist(points)
    assert log() == "create 1:4242;"

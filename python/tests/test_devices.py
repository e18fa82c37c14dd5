# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays on GPUs: errors, and what the package does of devices and streams, without a GPU. test_cuda.py needs one."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from arrays_on_fake_gpus import ROCM, Fake, FakeOfNamespace

import rigel_semirings as rs

TESTS = pathlib.Path(__file__).parent
has_cuda = any("cuda" in kernel["spaces"] for kernel in rs.kernels("cuda"))

x = np.ones((2, 3))


@pytest.mark.skipif(has_cuda, reason="librigel_c has CUDA")
@pytest.mark.parametrize("call", [
    lambda: rs.cdist(Fake(x)), lambda: rs.cdist(FakeOfNamespace(x), FakeOfNamespace(x)), lambda: rs.nearest(Fake(x)),
    lambda: rs.contract(Fake(x), Fake(x.T.copy()), out=Fake(np.zeros((2, 2)))), lambda: rs.closure(FakeOfNamespace(np.ones((2, 2)))),
    lambda: rs.lu_solve(Fake(np.eye(2)), Fake(np.ones(2))), lambda: rs.linear_forward(Fake(x.astype("float32")), Fake(x.astype("float32")))
])
def test_a_library_without_cuda(call):
    with pytest.raises(TypeError, match="(x|a|b|weights) is on CUDA device 0: device is 0, and this library was built without CUDA"):
        call()


def test_arrays_on_several_devices():
    for first, second, message in (
        (Fake(x), x, "z is on the host and x on CUDA device 0, expected all arrays on one device"),
        (x, Fake(x, 1), "z is on CUDA device 1 and x on the host, expected all arrays on one device"),
        (Fake(x, 1), Fake(x), "z is on CUDA device 0 and x on CUDA device 1, expected all arrays on one device"),
    ):
        with pytest.raises(ValueError, match=message):
            rs.cdist(first, second)
    with pytest.raises(ValueError, match="out is on CUDA device 0 and x on the host"):
        rs.cdist(x, out=Fake(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="weight is on CUDA device 0 and x on the host"):
        rs.linear_forward(x.astype("float32"), Fake(x.astype("float32")))
    with pytest.raises(ValueError, match="an array of the epilogue is on CUDA device 2 and x on the host"):
        rs.cdist(x, epilogue=rs.epilogue.add(Fake(np.ones((2, 2)), 2)))
    with pytest.raises(ValueError, match="p is on CUDA device 1 and a on the host, expected all arrays on one device"):
        rs.contract(x, x.T, rs.Semiring("a * b * p", p=Fake(np.ones(()), 1)))
    with pytest.raises(ValueError, match="q is on CUDA device 0 and a on the host, expected all arrays on one device"):
        rs.contract(x, x.T, "plus_times", epilogue=rs.Epilogue("x * q", q=Fake(np.ones(1))))
    with pytest.raises(ValueError, match="p is on the host and a on CUDA device 0, expected all arrays on one device"):
        rs.contract(Fake(x), Fake(x.T.copy()), rs.Semiring("a * b * p", p=np.ones(())), out=Fake(np.zeros((2, 2))))


def test_other_devices():
    with pytest.raises(TypeError, match="x is on a device of DLPack's type 10, expected an array on the host or on a CUDA device"):
        rs.cdist(Fake(x, 0, ROCM))
    pinned = Fake(x, 0, 3)
    assert rs.cdist(pinned).tolist() == [[0, 0], [0, 0]]


def test_an_array_that_cannot_be_exported():
    class Refusing(Fake):
        def __dlpack__(self, **asked):
            raise BufferError("it is sharded")

    with pytest.raises(TypeError, match="x cannot be exported by DLPack: it is sharded"):
        rs.cdist(Refusing(x))
    with pytest.raises(TypeError, match="x holds complex128"):
        rs.cdist(Fake(x + 0j))


def test_with_fake_gpus(tmp_path):
    compiler = next((found for name in ("cc", "gcc", "clang", "clang-22") if (found := shutil.which(name))), None)
    include = TESTS.parents[1] / "include"
    if not compiler:
        pytest.skip("there is no C compiler")
    if not (include / "rigel" / "rigel.h").exists():
        pytest.skip("rigel.h is not there")
    if has_cuda:
        pytest.skip("librigel_c has CUDA")
    library = tmp_path / "libfake_gpu.so"
    name = next(pathlib.Path(rs.__file__).parent.glob("librigel_c.so.*")).name
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", f'-DLIBRARY="{name}"', f"-I{include}", "-o", library, TESTS / "fake_gpu.c", "-ldl"],
                   check=True)
    environment = os.environ | {"LD_PRELOAD": str(library), "RIGEL_FAKE_GPU": str(library)}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS / "cases_of_fake_gpus.py"], text=True,
                          env=environment, capture_output=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


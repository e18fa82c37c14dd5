# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package in a process: listings, errors, threads, forks, import, and arrays of torch."""

import doctest
import importlib
import os
import pathlib
import pkgutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import rigel_semirings as rs


# Shared libraries next to the modules look like modules, too.
@pytest.mark.parametrize("module", ["rigel_semirings"] + [f"rigel_semirings.{m.name}" for m in pkgutil.iter_modules(rs.__path__)
                                                          if (pathlib.Path(rs.__path__[0]) / f"{m.name}.py").exists()])
def test_examples_of_docstrings(module):
    for library, name in (("torch", "torch"), ("jax", "JAX")):
        if module.endswith("." + library):
            pytest.importorskip(library, reason=f"{name} is not installed")
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_every_function_has_an_example():
    for name in rs.__all__:
        thing = getattr(rs, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, name


def test_version():
    assert rs.__version__.count(".") == 2


def test_explain(rng):
    a, b = rng.random((30, 40)), rng.random((40, 20))
    why = rs.explain(rs.contract, a, b, "max_plus")
    assert why.problem == "max_plus f64, 30x20x40"
    assert sum(one["chosen"] for one in why.candidates) == 1
    assert f"* {why.chosen}" in str(why) and f"<td>{why.chosen}</td>" in why._repr_html_()
    np.testing.assert_array_equal(rs.contract(a, b, kernel=rs.explain(rs.contract, a, b).chosen), rs.contract(a, b))
    assert "smallest of l2_squared" in rs.explain(rs.nearest, a, a, 3).problem
    assert rs.explain(rs.radius_neighbors, a, radius=1.0).chosen
    assert rs.explain(rs.cdist, a, metric="mahalanobis", VI=np.eye(40)).chosen
    assert rs.explain(rs.cholesky_solve, np.eye(3), np.ones(3)).chosen
    assert rs.explain(rs.kernel_matrix, a, bandwidth=1.0).chosen
    with pytest.raises(ValueError, match="closure has no candidates"):
        rs.explain(rs.closure, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="B is 30x40"):
        rs.explain(rs.contract, a, a)
    assert rs.contract(a, b).shape == (30, 20)  # an explanation that failed keeps no state


def test_kernels():
    names = [kernel["name"] for kernel in rs.kernels()]
    assert "reference.min_plus.f32" in names and "reference.reduce" in names
    assert {kernel["family"] for kernel in rs.kernels("reference")} == {"reference"}
    with pytest.raises(TypeError, match="name is 3, expected a str"):
        rs.kernels(3)


def test_error_classes():
    for one, base in ((rs.InvalidArgument, ValueError), (rs.NotFound, ValueError), (rs.Unsupported, TypeError), (rs.OutOfMemory, MemoryError)):
        assert issubclass(one, rs.Error) and issubclass(one, base)


def test_threads(rng):
    x = rng.random((200, 50))
    expected = rs.contract(x, x.T)
    results = []

    def work():
        for _ in range(20):
            results.append(np.array_equal(rs.contract(x, x.T), expected))
        try:
            rs.contract(x, x)
        except ValueError as error:
            results.append("B is 200x50" in str(error))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 126 and all(results)


def test_the_gil_is_released(rng):
    x = rng.random((300, 300))
    done = threading.Event()
    counts = []

    def work():
        rs.contract(x, x, "log_plus", kernel="reference")
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        counts.append(1)
        time.sleep(0)
    thread.join()
    assert len(counts) > 10


def in_child(work):
    if any("cuda" in kernel["spaces"] for kernel in rs.kernels("cuda")):
        pytest.skip("CUDA, which this library has, does not survive a fork")
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_fork(rng):
    x = rng.random((300, 60))
    expected = rs.contract(x, x.T), rs.nearest(x, k=3).indices

    def work():
        return int(not (np.array_equal(rs.contract(x, x.T), expected[0]) and np.array_equal(rs.nearest(x, k=3).indices, expected[1])))

    assert in_child(work) == 0
    assert in_child(lambda: in_child(work)) == 0
    assert work() == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_during_a_call(rng):
    x = rng.random((500, 500))
    begun = threading.Event()

    def compute():
        begun.set()
        rs.contract(x, x, "log_plus", kernel="reference")

    def refused():
        try:
            rs.contract(x[:2], x)
        except TypeError as error:
            return 0 if "forked while another thread" in str(error) else 2
        return 3

    thread = threading.Thread(target=compute)
    thread.start()
    begun.wait()
    time.sleep(0.02)
    status = in_child(refused)
    thread.join()
    assert status == 0
    assert rs.contract(x[:2], x).shape == (2, 500)


def test_import_is_lean():
    code = ("import sys, rigel_semirings; assert not {'numpy', 'torch', 'scipy'} & set(sys.modules), 'imported'; "
            "rigel_semirings.kernels('reference')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---- torch ----


def test_torch(torch):
    x, z = torch.randn(2, 6, 3), torch.randn(5, 3)
    d = rs.cdist(x, z)
    assert isinstance(d, torch.Tensor) and d.dtype == torch.float32
    torch.testing.assert_close(d, torch.cdist(x, z.expand(2, 5, 3)))
    out = torch.empty(5, 5)
    assert rs.cdist(z, out=out) is out
    torch.testing.assert_close(out, rs.cdist(z))
    assert isinstance(rs.nearest(z, k=2).indices, torch.Tensor)
    assert rs.shortest_paths(torch.rand(4, 4).double()).distances.dtype == torch.float64
    reach = torch.tensor([[False, True], [False, False]])
    assert rs.closure(reach, "or_and").tolist() == [[True, True], [False, True]]
    torch.testing.assert_close(rs.cdist(z.double(), metric="mahalanobis", VI=torch.eye(3)), torch.cdist(z.double(), z.double()))
    torch.testing.assert_close(rs.cdist((10 * z).int(), metric="seuclidean", V=torch.ones(3)),
                               torch.cdist((10 * z).int().double(), (10 * z).int().double()))
    torch.testing.assert_close(rs.contract(z.T, z, "plus_times"), z.T @ z)


def test_torch_bfloat16(torch):
    a, b = torch.randn(4, 8).bfloat16(), torch.randn(8, 3).bfloat16()
    c = rs.contract(a, b, "plus_times")
    assert c.dtype == torch.bfloat16
    torch.testing.assert_close(c, (a.float() @ b.float()).bfloat16())
    torch.testing.assert_close(rs.linear_forward(a, b.T.contiguous()), c)
    assert rs.contract(a, b, "plus_times", dtype="float32").dtype == torch.float32


def test_torch_views(torch):
    negated = torch.randn(3, 3, dtype=torch.complex64).conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(rs.contract(negated, torch.eye(3), "plus_times"), negated.resolve_neg())
    with pytest.raises(ValueError, match="out is a tensor that is negated lazily"):
        rs.contract(torch.eye(3), torch.eye(3), out=negated)
    torch.testing.assert_close(rs.contract(torch.ones(1, 1).expand(4, 3), torch.ones(3, 2), "plus_times"), torch.full((4, 2), 3.0))
    wide = torch.arange(24.0).reshape(4, 6)
    torch.testing.assert_close(rs.contract(wide[:, ::2], wide[1:, 1].reshape(3, 1), "plus_times"), wide[:, ::2] @ wide[1:, 1:2])
    assert rs.contract(torch.zeros(0, 3), torch.zeros(3, 2)).shape == (0, 2)


def test_torch_refusals(torch):
    x = torch.randn(4, 3)
    with pytest.raises(TypeError, match=r"x requires a gradient, which this call does not record, expected x.detach\(\)"):
        rs.cdist(x.clone().requires_grad_())
    with pytest.raises(TypeError, match="out requires a gradient"):
        rs.cdist(x, out=torch.zeros(4, 4, requires_grad=True))
    with pytest.raises(TypeError, match="torch.sparse_coo"):
        rs.cdist(x.to_sparse())
    with pytest.raises(TypeError, match="a holds complex64"):
        rs.contract(x + 0j, x.T)


def test_the_page():
    page = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
    examples = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, "python.md", str(page), 0)
    assert len(examples.examples) > 6
    assert doctest.DocTestRunner().run(examples).failed == 0


# ---- JAX ----


def test_jax(rng):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.default_device(jax.devices("cpu")[0]):
        x = jax.numpy.asarray(rng.random((6, 3)).astype("float32"))
        d = rs.cdist(x)
        assert isinstance(d, jax.Array) and d.dtype == "float32"
        np.testing.assert_array_equal(d, rs.cdist(np.asarray(x)))
        assert rs.nearest(x, k=1).indices.flatten().tolist() == list(range(6))
        assert isinstance(rs.contract(x > 0.5, x.T > 0.5, "or_and"), jax.Array)
        assert rs.contract(x.astype("bfloat16"), x.T.astype("bfloat16"), "plus_times").dtype == "bfloat16"
        np.testing.assert_array_equal(rs.closure(jax.numpy.full((2, 2), np.inf)), [[0, np.inf], [np.inf, 0]])
        assert isinstance(rs.linear_backward_weight(x, x)[0], jax.Array)
        assert rs.sinkhorn(x, x + 1, epsilon=1.0).converged
        centres = np.asarray(x[:2])
        np.testing.assert_array_equal(rs.kmeans(x, 2, x[:2]).centres, rs.kmeans(np.asarray(x), 2, centres).centres)
        np.testing.assert_array_equal(x[:2], centres)
        for call in (lambda: rs.cdist(x, out=jax.numpy.zeros((6, 6))), lambda: rs.closure(d, out=d),
                     lambda: rs.linear_backward_weight(x, x, d[:3, :3])):
            with pytest.raises(ValueError, match="(out|dw) is immutable, expected an array that can be written"):
                call()

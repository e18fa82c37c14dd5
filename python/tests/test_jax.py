# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX on the host: the results of the NumPy way, gradients against finite differences, jit and vmap, refusals."""

import importlib
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import rigel_semirings as rs

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
rj = importlib.import_module("rigel_semirings.jax")
check_grads = importlib.import_module("jax.test_util").check_grads

DTYPES = ["float32", "float64", "float16", "bfloat16"]


@pytest.fixture(autouse=True)
def on_the_host():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def same(one, other):
    """Equal bits and types, of what JAX and NumPy have."""
    one = np.asarray(one)
    assert one.dtype == other.dtype and one.shape == other.shape
    np.testing.assert_array_equal(one, other)


# ---- values ----


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_min", "log_plus", "l1", "l2_squared", "linf"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_contract(rng, x64, semiring, dtype):
    a, b = rng.random((3, 1, 7, 5)).astype(dtype), rng.random((2, 5, 6)).astype(dtype)
    same(rj.contract(a, b, semiring), rs.contract(a, b, semiring))
    same(jax.jit(lambda a, b: rj.contract(a, b, semiring))(a, b), rs.contract(a, b, semiring))
    transposed = jnp.swapaxes(jnp.asarray(np.swapaxes(b, -1, -2)), -1, -2)
    same(rj.contract(a, transposed, semiring), rs.contract(a, b, semiring))


def test_contract_of_other_types(rng, x64):
    a, b = rng.integers(0, 9, (7, 5)), rng.integers(0, 9, (5, 6))
    for dtype in ("int8", "uint8", "int32", "int64"):
        same(rj.contract(a.astype(dtype), b.astype(dtype), "plus_times"), rs.contract(a.astype(dtype), b.astype(dtype), "plus_times"))
    same(rj.contract(a > 4, b > 4, "or_and"), rs.contract(a > 4, b > 4, "or_and"))
    half = rng.random((7, 5)).astype("float16")
    same(rj.contract(half, half.T, "plus_times", dtype="float32"), rs.contract(half, half.T, "plus_times", dtype="float32"))
    low = jnp.asarray(half, jnp.bfloat16)
    assert rj.contract(low, low.T, "max_plus").dtype == jnp.bfloat16
    same(rj.contract(low, low.T, "plus_times", dtype="float32"), np.asarray(rs.contract(low, low.T, "plus_times", dtype="float32")))
    same(rj.contract(half, half.T, "lp", parameters={"p": 3}), rs.contract(half, half.T, "lp", parameters={"p": 3}))
    same(rj.contract(half, half.T, kernel="reference", require="reference_bits"), rs.contract(half, half.T, kernel="reference"))


@pytest.mark.parametrize("metric, p", [("euclidean", None), ("sqeuclidean", None), ("cityblock", None), ("minkowski", 1.5), ("chebyshev", None),
                                       ("cosine", None), ("correlation", None), ("inner_product", None)])
def test_cdist(rng, x64, metric, p):
    for dtype in ("float32", "float64", "float16", "int32"):
        x, z = (9 * rng.random((2, 6, 4))).astype(dtype), (9 * rng.random((5, 4))).astype(dtype)
        same(rj.cdist(x, z, metric, p=p), rs.cdist(x, z, metric, p=p))
    x = rng.random((6, 4))
    same(rj.cdist(x, metric=metric, p=p), rs.cdist(x, metric=metric, p=p))


@pytest.mark.parametrize("kernel, hyperparameters", [("gaussian", {"bandwidth": 0.7}), ("laplace", {"length": 2}), ("cosine", {}),
                                                     ("matern32", {"length": 2}), ("polynomial", {"degree": 2, "scale": 1, "offset": 0.5})])
def test_kernel_matvec(rng, x64, kernel, hyperparameters):
    x, z = rng.random((2, 6, 4)), rng.random((5, 4))
    for v in (rng.random((5, 3)), rng.random(5), rng.random((2, 5, 1))):
        same(rj.kernel_matvec(x, z, v, kernel, **hyperparameters), rs.kernel_matvec(x, z, v, kernel, **hyperparameters))
    x = rng.random((6, 4)).astype("float32")
    same(rj.kernel_matvec(x, v=x, kernel=kernel, **hyperparameters), rs.kernel_matvec(x, v=x, kernel=kernel, **hyperparameters))


def test_nearest(rng):
    x, z = rng.random((2, 9, 3)).astype("float32"), rng.random((7, 3)).astype("float32")
    for metric in ("euclidean", "cityblock", "inner_product"):
        one, other = rj.nearest(x, z, 3, metric), rs.nearest(x, z, 3, metric)
        same(one.distances, other.distances)
        same(one.indices, other.indices.astype("int32"))
    same(rj.nearest(z, k=2, exclude_self=True).indices, rs.nearest(z, k=2, exclude_self=True).indices.astype("int32"))


def test_numbers_below_the_normal_ones(rng, x64):
    """XLA's threads take them for 0, and kernels that compare with 0 see it."""
    a, b = 5e-324 * rng.integers(0, 9, (7, 5)), 5e-324 * rng.integers(0, 9, (5, 6))
    for semiring in ("min_plus", "l1", "plus_times"):
        same(jax.jit(lambda a, b, semiring=semiring: rj.contract(a, b, semiring))(a, b), rs.contract(a, b, semiring))
    x = rng.random((4, 3))
    gradient = jax.grad(lambda x, z: rj.cdist(x, z, "manhattan").sum(), 1)(x, x)
    np.testing.assert_allclose(gradient, np.sign(x[None] - x[:, None]).sum(0))  # where points coincide the term is 0


def test_empty(rng):
    x = np.zeros((0, 4), "float32")
    assert rj.cdist(x, np.ones((3, 4), "float32")).shape == (0, 3)
    assert rj.contract(np.ones((0, 2, 3), "float32"), np.ones((3, 4), "float32")).shape == (0, 2, 4)
    same(rj.contract(np.ones((2, 0), "float32"), np.ones((0, 1), "float32")), np.full((2, 1), np.inf, "float32"))


@pytest.mark.skipif("RIGEL_TEST_RUNTIME" not in os.environ, reason="there is no librigel_runtime.so")
def test_semirings_from_text(rng, x64):
    soft = rs.Semiring(multiply="sqrt((a - b)**2 + eps)", add="x + y", eps=9.0)
    for dtype in ("float32", "float64"):
        a, b = rng.random((4, 5)).astype(dtype), rng.random((5, 3)).astype(dtype)
        same(jax.jit(lambda a, b: rj.contract(a, b, soft))(a, b), rs.contract(a, b, soft))
        same(rj.contract(a, b, soft, parameters={"eps": 1.0}), rs.contract(a, b, soft, parameters={"eps": 1.0}))
    soft.eps = 4.0
    same(rj.contract(a, b, soft), rs.contract(a, b, soft))
    with pytest.raises(TypeError, match="contract over 'a text' has no gradient"):
        jax.grad(lambda a: rj.contract(a, b, soft).sum())(a)


@pytest.mark.skipif("RIGEL_TEST_RUNTIME" not in os.environ, reason="there is no librigel_runtime.so")
def test_semirings_of_fields(rng):
    members = {"add": "y.value < x.value ? y : x", "identity": "{infinity, -1}", "result": "int(x.index)", "result_type": int}
    nearest = rs.Semiring("{a + b, k}", fields={"value": float, "index": int}, **members)
    a, b = (jnp.asarray(rng.integers(0, 50, shape), "float32") for shape in ((3, 6, 9), (9, 5)))
    expected = jnp.argmin(a[..., :, None] + b, axis=-2)
    found = jax.jit(lambda a, b: rj.contract(a, b, nearest))(a, b)
    assert found.dtype == "int32"
    np.testing.assert_array_equal(found, expected)
    # The same texts with other fields are another semiring.
    other = rs.Semiring("{a + b, k}", fields={"value": float, "index": float}, **members)
    same(rj.contract(a, b, other), found)
    assert rs.jax._key(nearest, a) != rs.jax._key(other, a)


# ---- gradients ----


@pytest.mark.parametrize("semiring, parameters", [("plus_times", None), ("log_plus", None), ("min_plus", None), ("max_plus", None),
                                                  ("max_min", None), ("min_max", None), ("l1", None), ("l2_squared", None), ("lp", {"p": 3})])
def test_gradients_of_contract(rng, x64, semiring, parameters):
    a, b = rng.random((2, 4, 3)), rng.random((3, 5))
    order = 2 if semiring == "plus_times" else 1
    for other in (b, rng.random((2, 3, 5)), rng.random((1, 3, 5))):
        check_grads(lambda a, b: rj.contract(a, b, semiring, parameters=parameters), (a, other), order, ["rev"], eps=1e-6)


@pytest.mark.parametrize("metric, p", [("euclidean", None), ("squared_euclidean", None), ("manhattan", None), ("minkowski", 3.0),
                                       ("minkowski", None), ("inner_product", None)])
def test_gradients_of_cdist(rng, x64, metric, p):
    x, z = rng.random((2, 4, 3)), rng.random((5, 3))
    order = 1 if metric == "manhattan" or p == 3 else 2
    check_grads(lambda x, z: rj.cdist(x, z, metric, p=p), (x, z), order, ["rev"], eps=1e-6)
    check_grads(lambda x: rj.cdist(x, x[::-1], metric, p=p), (x[0],), 1, ["rev"], eps=1e-6)


def test_hessian_of_distances(rng, x64):
    """Of the sum of distances, against JAX's own of the formula."""
    x, z = rng.random((3, 2)), rng.random((4, 2))

    def own(x):
        return (rj.cdist(x, z)**2 + rj.cdist(x, z)).sum()

    def formula(x):
        squares = ((x[:, None] - z)**2).sum(-1)
        return (squares + jnp.sqrt(squares)).sum()

    np.testing.assert_allclose(jax.jacrev(jax.grad(own))(x), jax.jacrev(jax.grad(formula))(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel, hyperparameters", [("gaussian", {"bandwidth": 0.7}), ("laplace", {"length": 2}), ("matern52", {"length": 2}),
                                                     ("rational_quadratic", {"length": 1, "alpha": 2}),
                                                     ("polynomial", {"degree": 2, "scale": 1, "offset": 0.5})])
def test_gradients_of_kernel_matvec(rng, x64, kernel, hyperparameters):
    x, z = rng.random((2, 4, 3)), rng.random((5, 3))
    for v in (rng.random((5, 2)), rng.random(5), rng.random((2, 5, 2))):
        check_grads(lambda x, z, v: rj.kernel_matvec(x, z, v, kernel, **hyperparameters), (x, z, v), 1, ["rev"], eps=1e-6)
    # A learned length scales the points.
    check_grads(lambda length: rj.kernel_matvec(x / length, z / length, z, "laplace", length=1), (1.3,), 1, ["rev"], eps=1e-6)


def test_gradients_of_low_precision(rng):
    x, z = (jnp.asarray(rng.random((n, 4)), jnp.bfloat16) for n in (6, 5))
    dx, dz = jax.grad(lambda x, z: rj.cdist(x, z).sum(), (0, 1))(x, z)
    ex, ez = jax.grad(lambda x, z: jnp.sqrt(((x[:, None] - z)**2).sum(-1)).sum(), (0, 1))(x.astype("float32"), z.astype("float32"))
    assert dx.dtype == dz.dtype == jnp.bfloat16
    # One rounding to bfloat16, half of 2^-7 of the value, of a sum in float32.
    np.testing.assert_allclose(dx.astype("float32"), ex, rtol=2**-8 + 1e-4, atol=1e-5)
    np.testing.assert_allclose(dz.astype("float32"), ez, rtol=2**-8 + 1e-4, atol=1e-5)
    da = jax.grad(lambda a: rj.contract(a, z.T, "min_plus").astype("float32").sum())(x)
    assert da.dtype == jnp.bfloat16 and da.astype("float32").sum() == 6 * 5


def test_points_that_coincide():
    x = jnp.zeros((1, 2))
    assert jax.grad(lambda x: rj.cdist(x).sum())(x).tolist() == [[0, 0]]


# ---- transformations ----


def test_vmap(rng, x64):
    x, z = rng.random((7, 4, 3)), rng.random((6, 5, 3))

    def each(function, *batched):
        return np.stack([function(*one) for one in zip(*batched, strict=True)])

    same(jax.vmap(lambda x: rj.cdist(x, z[0]))(x), each(lambda x: rs.cdist(x, z[0]), x))
    same(jax.vmap(lambda z: rj.cdist(x[0], z))(z), each(lambda z: rs.cdist(x[0], z), z))
    same(jax.vmap(lambda x: rj.cdist(x, z))(x), rs.cdist(x[:, None], z))
    same(jax.vmap(jax.vmap(rj.cdist, (0, None)), (None, 0))(x, z), rs.cdist(x[None], z[:, None]))
    same(jax.vmap(lambda x: rj.contract(x, z[0].T), in_axes=1)(np.swapaxes(x, 0, 1)), each(lambda x: rs.contract(x, z[0].T), x))
    same(jax.vmap(lambda v: rj.kernel_matvec(x[0], z[0], v, bandwidth=1.0))(z), rs.kernel_matvec(x[0], z[0], z, bandwidth=1.0))
    one = jax.vmap(lambda x: rj.nearest(x, z[0], 2))(x)
    same(one.indices, each(lambda x: rs.nearest(x, z[0], 2).indices, x))
    # Gradients of a batch, and those of many outputs at once.
    for function in (lambda x: rj.cdist(x, z[0]), lambda x: rj.contract(x, z[0].T, "log_plus"), lambda x: rj.contract(x, z[0].T, "plus_times"),
                     lambda x: rj.kernel_matvec(x, z[0], z[0], bandwidth=1.0)):
        gradient = jax.grad(lambda x, function=function: function(x).sum())
        np.testing.assert_allclose(jax.vmap(gradient)(x), each(gradient, x), rtol=1e-13)
        jacobian = jax.jacrev(function)(x[0])
        rows = [jax.grad(lambda x, i=i, function=function: function(x).ravel()[i])(x[0]) for i in range(function(x[0]).size)]
        np.testing.assert_allclose(jacobian.reshape(-1, 4, 3), np.stack(rows), rtol=1e-13)


def test_in_programs(rng):
    """In a loop, in a scan, and with other work round it."""
    d = np.full((8, 8), np.inf, "float32")
    d[np.arange(8), (np.arange(8) + 1) % 8] = 1
    d[np.arange(8), np.arange(8)] = 0
    paths = jax.jit(lambda d: jax.lax.fori_loop(0, 3, lambda i, d: rj.contract(d, d, "min_plus"), d))(d)
    same(paths, rs.closure(d))

    def step(x, _):
        x = x - 0.05 * jax.grad(lambda x: (rj.cdist(x)**2).sum())(x)
        return x, rj.cdist(x).max()

    _, largest = jax.jit(lambda x: jax.lax.scan(step, x, length=5))(rng.random((6, 2)).astype("float32"))
    assert (np.diff(largest) < 0).all()
    compiled = jax.jit(rj.cdist, static_argnames="metric").lower(jnp.ones((3, 2)), jnp.ones((4, 2)), metric="cityblock").compile()
    same(compiled(jnp.ones((3, 2)), jnp.zeros((4, 2))), np.full((3, 4), 2, "float32"))


def test_threads(rng):
    x = rng.random((8, 40, 5)).astype("float32")
    expected = [rs.cdist(one) for one in x]
    results = [None] * 8

    def work(i):
        for _ in range(20):
            results[i] = rj.cdist(x[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for one, other in zip(results, expected, strict=True):
        same(one, other)


# ---- refusals ----


def test_refusals_have_the_words_of_the_package(rng):
    a, b = np.ones((4, 5), "float32"), np.ones((5, 3), "float32")
    calls = [(rj.contract, rs.contract, (a, a)), (rj.contract, rs.contract, (a, b, "nonsense")), (rj.contract, rs.contract, (a[0], b)),
             (rj.contract, rs.contract, (a, b.astype("float16"))), (rj.contract, rs.contract, (np.ones((2, 4, 5), "f"), np.ones((3, 5, 4), "f"))),
             (rj.cdist, rs.cdist, (a, b)), (rj.cdist, rs.cdist, (a, a, "nonsense")), (rj.nearest, rs.nearest, (a, a, 0))]
    for own, numpy, arguments in calls:
        with pytest.raises(rs.Error) as expected:
            numpy(*arguments)
        for function in (own, lambda *arrays, own=own, rest=arguments[2:]: jax.jit(lambda x, z: own(x, z, *rest))(*arrays[:2])):
            with pytest.raises(type(expected.value)) as raised:
                function(*arguments)
            assert str(raised.value) == str(expected.value)
    with pytest.raises(ValueError, match="kernel_matvec: .*the kernel's length is -1, expected a positive number"):
        rj.kernel_matvec(a, v=a, kernel="laplace", length=-1)
    with pytest.raises(ValueError, match="v is None, expected an array"):
        rj.kernel_matvec(a)
    with pytest.raises(TypeError, match="a holds complex64, expected float16"):
        rj.contract(a + 1j, b)
    with pytest.raises(ValueError, match="precision is 'vague', expected one of automatic"):
        rj.cdist(a, precision="vague")


def test_refusals_of_jax(rng):
    x = rng.random((4, 3)).astype("float32")
    with pytest.raises(TypeError, match="results are float64, which JAX has with jax.config.update"):
        rj.cdist(np.ones((2, 3), "int32"))
    with pytest.raises(TypeError, match="expected a number that is known when the call is traced"):
        jax.grad(lambda length: rj.kernel_matvec(x, v=x, kernel="laplace", length=length).sum())(1.0)
    with pytest.raises(TypeError, match="cdist of 'cosine' has no gradient, expected one of euclidean"):
        jax.grad(lambda x: rj.cdist(x, metric="cosine").sum())(x)
    with pytest.raises(TypeError, match="contract over 'max_times' has no gradient, expected one of plus_times"):
        jax.grad(lambda x: rj.contract(x, x.T, "max_times").sum())(x)
    with pytest.raises(TypeError, match="kernel_matvec of 'cosine' over 'cosine' has no gradient"):
        jax.grad(lambda x: rj.kernel_matvec(x, v=x, kernel="cosine").sum())(x)
    with pytest.raises(TypeError, match="nearest has no gradient"):
        jax.grad(lambda x: rj.nearest(x).distances.sum())(x)
    with pytest.raises(TypeError, match="contract has second derivatives over plus_times alone"):
        jax.jacrev(jax.grad(lambda x: rj.contract(x, x.T, "log_plus").sum()))(x)
    with pytest.raises(TypeError, match="kernel_matvec has no second derivative here"):
        jax.jacrev(jax.grad(lambda x: rj.kernel_matvec(x, v=x, bandwidth=1.0).sum()))(x)


def test_what_the_device_refuses_has_the_same_words():
    with pytest.raises(Exception, match="contract: no kernel is named 'nonsense', expected a kernel's name"):
        jax.block_until_ready(rj.contract(jnp.ones((2, 2)), jnp.ones((2, 2)), kernel="nonsense"))


def test_import_of_the_package_imports_no_jax():
    code = "import sys, rigel_semirings; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=pathlib.Path(rs.__file__).parents[1], check=False).returncode == 0


def test_arrays_that_hold_no_numbers_yet():
    points, deleted = jnp.ones((4, 3)), jnp.ones((4, 3))
    deleted.delete()
    with pytest.raises(rs.Unsupported, match="x (cannot be exported by DLPack|is a)"):
        rs.cdist(deleted)
    for call, name in ((lambda w: rs.cdist(points, metric="minkowski", w=w), "w"), (lambda w: rs.cdist(w[:, None], metric="seuclidean"), "x"),
                       (lambda w: rs.closure(w[:, None]), "weights")):
        with pytest.raises(rs.Unsupported, match=f"{name} is a .*Tracer"):
            jax.jit(call)(jnp.ones(3))

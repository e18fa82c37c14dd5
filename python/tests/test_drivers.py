# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernel matrices times vectors, k-means, Sinkhorn, kernel systems and gradients, against NumPy and SciPy."""

import numpy as np
import pytest
from scipy.spatial import distance
from scipy.special import logsumexp, softmax

import rigel_semirings as rs
from rigel_semirings import epilogue

KERNELS = {
    "laplace": ({"length": 0.7}, lambda d: np.exp(-d / 0.7)),
    "gaussian": ({"bandwidth": 0.7}, lambda d: np.exp(-d**2 / (2 * 0.49))),
    "matern52": ({"length": 0.7}, lambda d: (1 + 5**0.5 * d / 0.7 + 5 * d**2 / (3 * 0.49)) * np.exp(-(5**0.5) * d / 0.7)),
    "rational_quadratic": ({"length": 0.7, "alpha": 2.0}, lambda d: (1 + d**2 / (4 * 0.49))**-2.0),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_kernel_matvec(rng, kernel, metric):
    x, z, v = rng.random((23, 3)), rng.random((31, 3)), rng.random((31, 4)) - 0.5
    numbers, of = KERNELS[kernel]
    k = of(distance.cdist(x, z, metric))
    # A sum of 31 products, each kernel within some roundings.
    bound = 60 * 2.0**-53 * (np.abs(k) @ np.abs(v))
    assert (np.abs(rs.kernel_matvec(x, z, v, kernel, metric=metric, **numbers) - k @ v) <= bound).all()
    assert (np.abs(rs.kernel_matvec(x, z, v[:, 0], kernel, metric=metric, **numbers) - k @ v[:, 0]) <= bound[:, 0]).all()


def test_matvec_shapes_and_types(rng):
    x, z, v = rng.random((2, 5, 3)), rng.random((7, 3)), rng.random((2, 7, 4))
    of_batches = rs.kernel_matvec(x, z, v, bandwidth=1.0)
    assert of_batches.shape == (2, 5, 4)
    for i in range(2):
        np.testing.assert_allclose(of_batches[i], np.exp(-distance.cdist(x[i], z, "sqeuclidean") / 2) @ v[i], rtol=1e-13)
    assert rs.kernel_matvec(x, z, v[0, :, 0], bandwidth=1.0).shape == (2, 5)
    floats = z.astype("float32")
    assert rs.kernel_matvec(floats, v=v[0].astype("float32"), bandwidth=1.0).dtype == np.float32
    of_doubles = rs.kernel_matvec(floats, v=v[0], bandwidth=1.0, exclude_self=True)
    assert of_doubles.dtype == np.float64
    k = np.exp(-distance.cdist(floats.astype(float), floats.astype(float), "sqeuclidean") / 2) - np.eye(7)
    np.testing.assert_allclose(of_doubles, k @ v[0], rtol=8 * 2.0**-24)  # distances are sums of three floats
    out = np.empty((5, 4), "float32")
    assert rs.kernel_matvec(x[0], z, v[0], bandwidth=1.0, out=out) is out
    products = rs.kernel_matvec(z, v=v[0], kernel="polynomial", degree=2.0)
    np.testing.assert_allclose(products, (z @ z.T + 1)**2 @ v[0], rtol=1e-13)
    scaled = rs.kernel_matvec(x[0], z, v[0], metric="seuclidean", V=np.array([1.0, 4.0, 9.0]), bandwidth=1.0)
    d = distance.cdist(x[0], z, "seuclidean", V=[1.0, 4.0, 9.0])
    np.testing.assert_allclose(scaled, np.exp(-d**2 / 2) @ v[0], rtol=1e-13)


def test_softmax_matvec(rng):
    x, z, v = rng.random((9, 4)), rng.random((20, 4)), rng.random((20, 3))
    expected = softmax(x @ z.T / 2, axis=1) @ v
    np.testing.assert_allclose(rs.softmax_matvec(x, z, v, epilogue=epilogue.scale(0.5)), expected, rtol=1e-13)
    bias = rng.random(20)
    expected = softmax(-10 * distance.cdist(x, z, "sqeuclidean") + bias, axis=1) @ v[:, 0]
    smooth = rs.softmax_matvec(x, z, v[:, 0], "sqeuclidean", epilogue=epilogue.scale(-10) | epilogue.add(bias))
    np.testing.assert_allclose(smooth, expected, rtol=1e-12)
    assert rs.explain(rs.softmax_matvec, x, z, v).chosen
    assert rs.explain(rs.kernel_matvec, x, z, v, bandwidth=1.0).chosen


def test_matvec_refusals(rng):
    x, v = rng.random((6, 3)), rng.random((6, 2))
    with pytest.raises(rs.InvalidArgument, match="v is None"):
        rs.kernel_matvec(x, bandwidth=1.0)
    with pytest.raises(ValueError, match="no 'bandwidth'"):
        rs.kernel_matvec(x, v=v)
    with pytest.raises(ValueError, match="V is 5x2, expected 6 rows"):
        rs.kernel_matvec(x, v=v[:5], bandwidth=1.0)
    with pytest.raises(TypeError, match="kernel is None, expected a str"):
        rs.kernel_matvec(x, v=v, kernel=None, metric="euclidean")
    with pytest.raises(ValueError, match="1 to 512"):
        rs.kernel_matvec(x, v=np.ones((6, 513)), bandwidth=1.0)


# ---- k-means ----


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kmeans(rng, dtype):
    means = np.array([[0, 0], [10, 0], [0, 10], [10, 10]])
    x = (means[rng.integers(0, 4, 400)] + rng.normal(size=(400, 2))).astype(dtype)
    found = rs.kmeans(x, 4, seed=2)
    assert found.converged and found.centres.dtype == dtype and found.labels.shape == (400,)
    d = distance.cdist(x, found.centres, "sqeuclidean")
    np.testing.assert_array_equal(found.labels, d.argmin(1))
    u = 2.0**-24 if dtype == "float32" else 2.0**-53
    np.testing.assert_allclose(found.inertia, d.min(1).sum(), rtol=500 * u)
    assert np.abs(distance.cdist(means, found.centres)).min(1).max() < 1  # each mean has a centre
    again = rs.kmeans(x, 4, seed=2)
    np.testing.assert_array_equal(again.centres, found.centres)


def test_kmeans_from_centres():
    x = np.array([[0.0], [1.0], [2.0], [9.0], [10.0]])
    start = np.array([[0.0], [1.0]])
    found = rs.kmeans(x, 2, start, tolerance=0)
    np.testing.assert_array_equal(found.centres, [[1.0], [9.5]])
    np.testing.assert_array_equal(found.labels, [0, 0, 0, 1, 1])
    assert found.inertia == 2.5
    np.testing.assert_array_equal(start, [[0.0], [1.0]])
    assert rs.kmeans([[0], [1], [5]], 1).centres.tolist() == [[2.0]]


def test_kmeans_refusals(rng):
    x = rng.random((6, 3))
    with pytest.raises(rs.InvalidArgument, match="k is 7, expected 1 to 6"):
        rs.kmeans(x, 7)
    with pytest.raises(ValueError, match=r"centres has the shape \(2, 2\), expected \(2, 3\)"):
        rs.kmeans(x, 2, x[:2, :2])
    with pytest.raises(ValueError, match="iterations is 0"):
        rs.kmeans(x, 2, iterations=0)
    with pytest.raises(ValueError, match="infinities or NaN"):
        rs.kmeans(np.full((3, 1), np.nan), 2)
    with pytest.raises(ValueError, match="single matrix"):
        rs.kmeans(np.zeros((2, 3, 4)), 1)


# ---- optimal transport ----


def plan_of(x, z, a, b, f, g, epsilon):
    return a[:, None] * b * np.exp((f[:, None] + g - distance.cdist(x, z, "sqeuclidean")) / epsilon)


def dense_plan(x, z, a, b, epsilon):
    cost, f, g = distance.cdist(x, z, "sqeuclidean"), np.zeros(len(a)), np.zeros(len(b))
    for _ in range(3000):
        f = -epsilon * logsumexp((g - cost) / epsilon, b=b, axis=1)
        g = -epsilon * logsumexp((f[:, None] - cost) / epsilon, b=a[:, None], axis=0)
    return plan_of(x, z, a, b, f, g, epsilon)


@pytest.mark.parametrize("symmetric", [True, False])
def test_sinkhorn(rng, symmetric):
    x, z, a, b = rng.random((12, 2)), rng.random((15, 2)), rng.random(12) + 0.1, rng.random(15) + 0.1
    found = rs.sinkhorn(x, z, a, b, epsilon=0.1, tolerance=1e-10, symmetric=symmetric)
    assert found.converged and found.error <= 1e-10
    a, b = a / a.sum(), b / b.sum()
    plan = plan_of(x, z, a, b, found.f, found.g, 0.1)
    assert np.abs(plan.sum(1) - a).sum() <= 1.1e-10 and np.abs(plan.sum(0) - b).sum() <= 1.1e-10
    np.testing.assert_allclose(plan, dense_plan(x, z, a, b, 0.1), atol=1e-9)
    np.testing.assert_allclose(found.value, a @ found.f + b @ found.g, rtol=1e-13)
    v = rng.random((15, 3))
    moved = rs.sinkhorn_barycentre(x, z, found.g, v, b, epsilon=0.1)
    np.testing.assert_allclose(moved, plan @ v / plan.sum(1, keepdims=True), rtol=1e-11)
    assert rs.sinkhorn_barycentre(x, z, found.g, b=b, epsilon=0.1).shape == (12, 2)


def test_sinkhorn_refusals(rng):
    x, z = rng.random((4, 2)), rng.random((5, 2))
    with pytest.raises(ValueError, match="a is 5x1, expected 4 numbers"):
        rs.sinkhorn(x, z, np.ones(5), epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon is 0"):
        rs.sinkhorn(x, z, epsilon=0.0)
    with pytest.raises(ValueError, match="negative"):
        rs.sinkhorn(x, z, -np.ones(4), epsilon=1.0)
    with pytest.raises(ValueError, match="'kl_divergence' is not symmetric"):
        rs.sinkhorn(x, z, metric="kl_divergence", epsilon=1.0)
    assert not rs.sinkhorn(x, z, epsilon=0.001, iterations=1).converged


# ---- kernel systems ----


@pytest.mark.parametrize("rank", [0, 20])
def test_kernel_solve(rng, rank):
    x, y = rng.random((150, 3)), rng.random((150, 2)) - 0.5
    k = np.exp(-distance.cdist(x, x, "sqeuclidean") / (2 * 0.25)) + 0.1 * np.eye(150)
    found = rs.kernel_solve(x, y, bandwidth=0.5, regularisation=0.1, tolerance=1e-12, rank=rank)
    assert found.converged and found.rank <= rank
    # |difference| is at most residual·|y| / λ, and that of NumPy's.
    expected = np.linalg.solve(k, y)
    assert (np.linalg.norm(found.alpha - expected, axis=0) <= 1e-12 * 10 * np.linalg.norm(y, axis=0) + 1e-10).all()
    one = rs.kernel_solve(x, y[:, 1], bandwidth=0.5, regularisation=0.1, tolerance=1e-12, rank=rank)
    assert one.alpha.shape == (150,)
    np.testing.assert_allclose(one.alpha, expected[:, 1], atol=1e-9)
    huge = rs.kernel_solve(x, 1e200 * y, bandwidth=0.5, regularisation=0.1, tolerance=1e-10, rank=rank)
    assert huge.converged
    np.testing.assert_allclose(huge.alpha, 1e200 * expected, atol=1e192)


def test_kernel_solve_progress(rng):
    x, y = rng.random((100, 2)), rng.random(100)
    seen = []
    found = rs.kernel_solve(x, y, bandwidth=0.3, regularisation=1e-3, rank=0, progress=lambda i, r: seen.append((i, r)))
    assert found.converged and [i for i, _ in seen] == list(range(1, found.iterations + 1))
    stopped = rs.kernel_solve(x, y, bandwidth=0.3, regularisation=1e-3, rank=0, progress=lambda i, r: i < 3)
    assert stopped.iterations == 3 and not stopped.converged

    of_numpy = rs.kernel_solve(x, y, bandwidth=0.3, regularisation=1e-3, rank=0, progress=lambda i, r: np.bool_(i < 3))
    assert of_numpy.iterations == 3

    def fail(error):
        def progress(iteration, residual):
            raise error

        return progress

    for error in (KeyError, KeyboardInterrupt):
        with pytest.raises(error):
            rs.kernel_solve(x, y, bandwidth=0.3, regularisation=1e-3, rank=0, progress=fail(error))


def test_kernel_solve_refusals(rng):
    x, y = rng.random((6, 2)), rng.random(6)
    with pytest.raises(ValueError, match="y is 5x1, expected 6 rows"):
        rs.kernel_solve(x, y[:5], bandwidth=1.0)
    with pytest.raises(ValueError, match="regularisation is -1"):
        rs.kernel_solve(x, y, bandwidth=1.0, regularisation=-1)
    with pytest.raises(ValueError, match="tolerance is 0"):
        rs.kernel_solve(x, y, bandwidth=1.0, tolerance=0)


# ---- gradients ----


@pytest.mark.parametrize("kernel, numbers", [("gaussian", {"bandwidth": 0.7}), ("matern32", {"length": 0.6}),
                                             ("rational_quadratic", {"length": 0.7, "alpha": 1.5}),
                                             ("polynomial", {"degree": 2.0, "scale": 0.5, "offset": 1.0})])
def test_kernel_matrix_gradient(rng, kernel, numbers):
    x, z, g = rng.random((5, 2)), rng.random((4, 2)), rng.random((5, 4)) - 0.5
    found = rs.kernel_matrix_gradient(x, z, g, kernel, wrt=list(numbers), **numbers)
    step = 1e-6

    def loss(x, z, numbers):
        return (g * rs.kernel_matrix(x, z, kernel, **numbers)).sum()

    for name in numbers:
        up, down = numbers | {name: numbers[name] + step}, numbers | {name: numbers[name] - step}
        np.testing.assert_allclose(found.hyperparameters[name], (loss(x, z, up) - loss(x, z, down)) / (2 * step), atol=1e-8)
    for array, gradient, at in ((x, found.x, lambda e: (x + e, z)), (z, found.z, lambda e: (x, z + e))):
        for place in np.ndindex(array.shape):
            e = np.zeros_like(array)
            e[place] = step
            difference = (loss(*at(e), numbers) - loss(*at(-e), numbers)) / (2 * step)
            np.testing.assert_allclose(gradient[place], difference, atol=1e-8)
    own = rs.kernel_matrix_gradient(x, g=np.ones((5, 5)), kernel=kernel, **numbers)
    assert own.z is None and own.x.shape == x.shape and own.hyperparameters == {}


def test_kernel_matrix_gradient_of_batches(rng):
    x, g = rng.random((3, 5, 2)), rng.random((3, 5, 5))
    found = rs.kernel_matrix_gradient(x, g=g, wrt="bandwidth", points=False, bandwidth=0.5)
    assert found.x is None and found.hyperparameters["bandwidth"].shape == (3,)
    for i in range(3):
        one = rs.kernel_matrix_gradient(x[i], g=g[i], wrt="bandwidth", points=False, bandwidth=0.5)
        np.testing.assert_allclose(found.hyperparameters["bandwidth"][i], one.hyperparameters["bandwidth"], rtol=1e-13)


def test_kernel_matrix_gradient_refusals(rng):
    x, g = rng.random((5, 2)), np.ones((5, 5))
    with pytest.raises(ValueError, match="'bandwidth' twice"):
        rs.kernel_matrix_gradient(x, g=g, wrt=["bandwidth"] * 40, bandwidth=0.5)
    with pytest.raises(TypeError, match="kernel is None, expected a str"):
        rs.kernel_matrix_gradient(x, g=g, kernel=None)
    with pytest.raises(ValueError, match="kernel_matrix_gradient has no candidates to explain"):
        rs.explain(rs.kernel_matrix_gradient, x, g=g, bandwidth=0.5)

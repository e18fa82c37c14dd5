# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distances, kernel matrices and reductions over them against SciPy."""

import numpy as np
import pytest
from scipy.spatial import distance
from scipy.special import logsumexp

import rigel_semirings as rs
from rigel_semirings import epilogue

NUMBERS = ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "cosine", "correlation", "hamming", "canberra", "braycurtis",
           "seuclidean", "mahalanobis", "jensenshannon"]
BOOLEANS = ["hamming", "jaccard", "dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]


@pytest.mark.parametrize("metric", NUMBERS)
def test_scipy_numbers(rng, metric):
    x, z = rng.random((9, 5)) + 0.1, rng.random((7, 5)) + 0.1
    z[:, 1] = x[0, 1]  # for hamming
    np.testing.assert_allclose(rs.cdist(x, z, metric), distance.cdist(x, z, metric), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(rs.cdist(x, metric=metric), distance.cdist(x, x, metric), rtol=1e-12, atol=1e-7)
    np.testing.assert_allclose(rs.cdist(x.astype("float32"), z.astype("float32"), metric), distance.cdist(x, z, metric), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("metric", BOOLEANS)
def test_scipy_booleans(rng, metric):
    x, z = rng.random((9, 40)) < 0.4, rng.random((7, 40)) < 0.4
    d = rs.cdist(x, z, metric)
    assert d.dtype == "float64"
    np.testing.assert_allclose(d, distance.cdist(x, z, metric), rtol=1e-14)


def test_scipy_arguments(rng):
    x, z, w = rng.random((9, 5)), rng.random((7, 5)), rng.random(5)
    np.testing.assert_allclose(rs.cdist(x, z, "minkowski", p=3), distance.cdist(x, z, "minkowski", p=3), rtol=1e-13)
    np.testing.assert_allclose(rs.cdist(x, z, "minkowski", p=1.5, w=w), distance.cdist(x, z, "minkowski", p=1.5, w=w), rtol=1e-13)
    np.testing.assert_allclose(rs.cdist(x, z, "minkowski", p=np.inf), distance.cdist(x, z, "chebyshev"), rtol=1e-15)
    np.testing.assert_allclose(rs.cdist(x, z, "seuclidean", V=w), distance.cdist(x, z, "seuclidean", V=w), rtol=1e-13)
    factor = rng.random((5, 5))
    VI = factor @ factor.T
    np.testing.assert_allclose(rs.cdist(x, z, "mahalanobis", VI=VI), distance.cdist(x, z, "mahalanobis", VI=VI), rtol=1e-12)
    np.testing.assert_allclose(rs.cdist(x, z, "jensenshannon", base=2), [[distance.jensenshannon(a, b, base=2) for b in z] for a in x],
                               rtol=1e-12)
    integers = rng.integers(0, 50, (6, 4))
    for metric in ("euclidean", "cityblock", "seuclidean", "canberra", "jensenshannon"):
        np.testing.assert_allclose(rs.cdist(integers, metric=metric), distance.cdist(integers, integers, metric), rtol=1e-12, atol=1e-7)


def test_own_metrics(rng):
    x, z = rng.random((3, 4)), rng.random((5, 4))
    np.testing.assert_allclose(rs.cdist(x, z, "inner_product"), x @ z.T, rtol=1e-15)
    near = abs(x[:, None] - z[None])
    np.testing.assert_allclose(rs.cdist(x, z, "minkowski_with_epsilon", p=1, epsilon=0.25), np.where(near < 0.25, 0, near).sum(-1), rtol=1e-14)
    words = rng.integers(0, 2**32, (4, 3), dtype="uint32")
    bits = np.unpackbits(words.view("uint8"), axis=1)
    np.testing.assert_allclose(rs.cdist(words, metric="bit_hamming"), distance.cdist(bits, bits, "hamming"), rtol=1e-15)
    np.testing.assert_allclose(rs.cdist(words, metric="bit_jaccard"), distance.cdist(bits.astype(bool), bits.astype(bool), "jaccard"), rtol=1e-7)
    places = np.radians(np.array([[52.52, 13.405], [48.8566, 2.3522]]))
    assert abs(rs.cdist(places, metric="haversine")[0, 1] * 6371 - 877.46) < 0.01


def test_self_is_symmetric(rng):
    x = rng.random((20, 6)).astype("float32")
    d = rs.cdist(x)
    np.testing.assert_array_equal(d, d.T)
    np.testing.assert_array_equal(np.diag(d), np.zeros(20, "float32"))


def test_batches_epilogue_and_out(rng):
    x, z = rng.random((3, 1, 4, 5)), rng.random((2, 6, 5))
    expected = np.sqrt(((x[..., :, None, :] - z[..., None, :, :])**2).sum(-1))
    np.testing.assert_allclose(rs.cdist(x, z), expected, rtol=1e-13)
    out = np.empty((3, 2, 4, 6), "float32")
    assert rs.cdist(x, z, out=out, epilogue=epilogue.scale(2)) is out
    np.testing.assert_allclose(out, 2 * expected, rtol=1e-6)
    np.testing.assert_allclose(rs.cdist(x[..., ::-1], z[..., ::-1]), expected, rtol=1e-13)


def test_hostile_points():
    x = np.array([[np.nan, 0], [np.inf, 0], [0, 0]])
    d = rs.cdist(x, np.zeros((1, 2)))
    np.testing.assert_array_equal(d, [[np.nan], [np.inf], [0]])
    np.testing.assert_array_equal(rs.cdist(np.zeros((2, 0)), np.zeros((3, 0))), np.zeros((2, 3)))
    assert rs.cdist(np.zeros((0, 2)), np.zeros((3, 2))).shape == (0, 3)
    np.testing.assert_array_equal(rs.cdist(np.zeros((1, 3)), np.ones((1, 3)), "cosine"), [[np.nan]])


def test_refusals(rng):
    x = rng.random((4, 3))
    with pytest.raises(rs.NotFound, match="'nothing' is no metric, expected one of manhattan"):
        rs.cdist(x, metric="nothing")
    with pytest.raises(rs.InvalidArgument, match="Z is 4x2, expected 3 columns"):
        rs.cdist(x, x[:, :2])
    with pytest.raises(rs.InvalidArgument, match="p is not None, which metric 'euclidean' does not take; minkowski"):
        rs.cdist(x, p=3)
    with pytest.raises(rs.InvalidArgument, match="V is not None"):
        rs.cdist(x, metric="cosine", V=np.ones(3))
    with pytest.raises(rs.InvalidArgument, match="VI is None, and the covariance matrix of 4 rows is singular in 5 dimensions"):
        rs.cdist(rng.random((2, 5)), metric="mahalanobis")
    with pytest.raises(rs.InvalidArgument, match=r"VI has the shape \(3, 2\)"):
        rs.cdist(x, metric="mahalanobis", VI=np.ones((3, 2)))
    with pytest.raises(rs.InvalidArgument, match="VI has the eigenvalue -1"):
        rs.cdist(x, metric="mahalanobis", VI=-np.eye(3))
    with pytest.raises(rs.InvalidArgument, match=r"V has the shape \(2,\), expected \(3,\) for x of shape \(4, 3\)"):
        rs.cdist(x, metric="seuclidean", V=np.ones(2))
    with pytest.raises(rs.InvalidArgument, match="V is None, and x or z are no single matrices"):
        rs.cdist(rng.random((2, 4, 3)), metric="seuclidean")
    with pytest.raises(rs.InvalidArgument, match="base is 1, expected a number above 1"):
        rs.cdist(x, metric="jensenshannon", base=1)
    with pytest.raises(TypeError, match="metric is None, expected a str"):
        rs.cdist(x, metric=None)
    with pytest.raises(TypeError, match="radius is 'x', expected a number"):
        rs.radius_neighbors(x, radius="x")
    with pytest.raises(rs.InvalidArgument, match="kernel is None, and bandwidth would be hyperparameters of one"):
        rs.reduce_distances(x, bandwidth=1.0)
    with pytest.raises(rs.InvalidArgument, match="overlap"):
        rs.cdist(x[:3], out=x[1:])


KERNELS = {
    "laplace": (dict(length=0.7), lambda d: np.exp(-d / 0.7)), "gaussian": (dict(bandwidth=0.5), lambda d: np.exp(-d**2 / 0.5)),
    "matern12": (dict(length=2), lambda d: np.exp(-d / 2)), "matern32": (dict(length=2), lambda d: (1 + 3**0.5 * d / 2) * np.exp(-3**0.5 * d / 2)),
    "matern52": (dict(length=2), lambda d: (1 + 5**0.5 * d / 2 + 5 * d**2 / 12) * np.exp(-5**0.5 * d / 2)),
    "rational_quadratic": (dict(length=0.5, alpha=1.5), lambda d: (1 + d**2 / 0.75)**-1.5),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_of_distances(rng, kernel):
    x, z = rng.random((6, 3)), rng.random((4, 3))
    numbers, of = KERNELS[kernel]
    np.testing.assert_allclose(rs.kernel_matrix(x, z, kernel, **numbers), of(distance.cdist(x, z)), rtol=1e-13)
    np.testing.assert_allclose(rs.kernel_matrix(x, z, kernel, metric="cityblock", **numbers), of(distance.cdist(x, z, "cityblock")), rtol=1e-13)
    sums = rs.reduce_distances(x, z, reducer="sum", kernel=kernel, **numbers).values
    np.testing.assert_allclose(sums, of(distance.cdist(x, z)).sum(1), rtol=1e-13)


def test_kernels_of_products(rng):
    x = rng.random((6, 3))
    np.testing.assert_allclose(rs.kernel_matrix(x, kernel="polynomial", degree=3, offset=2), (x @ x.T + 2)**3, rtol=1e-13)
    np.testing.assert_allclose(rs.kernel_matrix(x, kernel="sigmoid", scale=0.3), np.tanh(0.3 * (x @ x.T)), rtol=1e-13)
    np.testing.assert_allclose(rs.kernel_matrix(x, kernel="cosine"), 1 - distance.cdist(x, x, "cosine"), rtol=1e-12)
    k = rs.kernel_matrix(x, bandwidth=1.0, regularisation=0.5, threshold=0.9)
    np.testing.assert_array_equal(np.diag(k), np.full(6, 1.5))
    assert ((k == 0) | (k >= 0.9)).all()


def test_kernel_refusals(rng):
    x = rng.random((6, 3))
    with pytest.raises(rs.InvalidArgument, match="no 'bandwidth', expected one"):
        rs.kernel_matrix(x)
    with pytest.raises(rs.NotFound, match="kernel 'gaussian' has no hyperparameter 'lenght', expected bandwidth"):
        rs.kernel_matrix(x, lenght=1.0)
    with pytest.raises(rs.NotFound, match="'rbf' is no kernel, expected one of laplace"):
        rs.kernel_matrix(x, kernel="rbf", gamma=1.0)
    with pytest.raises(rs.InvalidArgument, match="does not go with kernel 'gaussian'"):
        rs.kernel_matrix(x, bandwidth=1.0, metric="inner_product")
    with pytest.raises(ValueError, match="bandwidth"):
        rs.kernel_matrix(x, bandwidth=-1.0)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine", "seuclidean", "mahalanobis", "jensenshannon"])
def test_nearest(rng, metric):
    x, z = rng.random((8, 4)), rng.random((30, 4))
    d = rs.cdist(x, z, metric)
    distances, indices = rs.nearest(x, z, 5, metric)
    np.testing.assert_array_equal(indices, np.argsort(d, kind="stable")[:, :5])
    np.testing.assert_allclose(distances, np.sort(d)[:, :5], rtol=1e-13)
    distances, indices = rs.assign(x, z, metric)
    np.testing.assert_array_equal(indices, d.argmin(1))
    np.testing.assert_allclose(distances, d.min(1), rtol=1e-13)


def test_nearest_of_a_set(rng):
    x = rng.random((12, 3))
    distances, indices = rs.nearest(x, k=3, exclude_self=True)
    assert (indices != np.arange(12)[:, None]).all()
    d = distance.cdist(x, x) + np.diag(np.full(12, np.inf))
    np.testing.assert_allclose(distances, np.sort(d)[:, :3], rtol=1e-13)
    largest = rs.nearest(x, k=2, metric="inner_product")
    np.testing.assert_array_equal(largest.indices, np.argsort(-(x @ x.T), kind="stable")[:, :2])
    assert rs.nearest(rng.random((2, 5, 3)), rng.random((7, 3)), 4).indices.shape == (2, 5, 4)
    assert rs.assign(rng.random((2, 5, 3)), rng.random((2, 7, 3))).indices.shape == (2, 5)
    few = rs.nearest(x[:2], x[:1], 2)
    np.testing.assert_array_equal(few.indices[:, 1], [-1, -1])
    np.testing.assert_array_equal(few.distances[:, 1], [np.inf, np.inf])
    none = rs.assign(x, x[:0])
    np.testing.assert_array_equal(none.indices, np.full(12, -1))
    spoiled = x.copy()
    spoiled[3, 1] = np.nan
    assert rs.assign(x[:1], spoiled).indices[0] == 3  # as NumPy's argmin
    assert 3 not in rs.nearest(x[:1], spoiled, 11).indices


def test_refused_before_memory_is_taken(rng):
    x = rng.random((5, 3))
    with pytest.raises(ValueError, match="expected 1 to 4096"):
        rs.nearest(x, k=10**12)
    with pytest.raises(ValueError, match="base is 2, which kernels of distances do not take"):
        rs.reduce_distances(x, x, "jensenshannon", "sum", base=2, kernel="laplace", length=1.0)


def test_radius_neighbors(rng):
    x, z = rng.random((9, 2)), rng.random((40, 2))
    d = distance.cdist(x, z)
    offsets, indices, distances = rs.radius_neighbors(x, z, 0.3)
    np.testing.assert_array_equal(offsets, np.concatenate([[0], (d <= 0.3).sum(1).cumsum()]))
    rows, columns = np.nonzero(d <= 0.3)
    np.testing.assert_array_equal(indices, columns)
    np.testing.assert_allclose(distances, d[rows, columns], rtol=1e-13)
    assert rs.radius_neighbors(x, z, 0.3, return_distances=False).distances is None
    empty = rs.radius_neighbors(x, z[:0], 0.3)
    np.testing.assert_array_equal(empty.offsets, np.zeros(10))
    assert empty.indices.shape == (0,)
    assert rs.radius_neighbors(x[:0], z, 0.3).offsets.tolist() == [0]
    own = rs.radius_neighbors(x, radius=10.0, exclude_self=True)
    assert len(own.indices) == 72
    with pytest.raises(ValueError, match="'inner_product' has products"):
        rs.radius_neighbors(x, z, 0.3, "inner_product")
    with pytest.raises(ValueError, match=r"x of shape \(2, 3, 4\).*expected single matrices"):
        rs.radius_neighbors(np.zeros((2, 3, 4)), radius=1.0)


def test_logsumexp(rng):
    x, z, potentials = rng.random((9, 2)), rng.random((40, 2)), rng.random(40)
    d = distance.cdist(x, z, "sqeuclidean")
    values = rs.logsumexp(x, z, epilogue=epilogue.scale(-100) | epilogue.add(potentials))
    np.testing.assert_allclose(values, logsumexp(-100 * d + potentials, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(rs.logsumexp(x, z[:0]), np.full(9, -np.inf))
    counts = rs.reduce_distances(x, z, "sqeuclidean", "count_below", threshold=0.1, or_equal=True).values
    np.testing.assert_array_equal(counts, (d <= 0.1).sum(1))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Paths against SciPy, solves against NumPy, and the linear layer."""

import numpy as np
import pytest
from scipy.sparse import csgraph

import rigel_semirings as rs


def graph(rng, n, density=0.3):
    weights = np.where(rng.random((n, n)) < density, rng.random((n, n)), np.inf)
    np.fill_diagonal(weights, np.inf)
    return weights


def test_shortest_paths(rng):
    weights = graph(rng, 70)
    paths = rs.shortest_paths(weights)
    expected = csgraph.floyd_warshall(csgraph.csgraph_from_dense(weights, null_value=np.inf))
    np.testing.assert_allclose(paths.distances, expected, rtol=1e-14)
    for target in range(0, 70, 7):
        path = paths.path(3, target)
        assert path[0] == 3 and path[-1] == target
        np.testing.assert_allclose(sum(weights[i, j] for i, j in zip(path, path[1:])), expected[3, target], rtol=1e-13)
    assert paths.path(5, 5) == [5]
    np.testing.assert_array_equal(weights, graph(np.random.default_rng(1), 70))  # untouched
    without = rs.shortest_paths(weights, predecessors=False)
    np.testing.assert_array_equal(without.distances, paths.distances)
    with pytest.raises(ValueError, match="predecessors are None"):
        without.path(0, 1)
    with pytest.raises(ValueError, match="target is 70, expected a vertex from 0 to 69"):
        paths.path(0, 70)


def test_no_path():
    paths = rs.shortest_paths([[np.inf, 1.0], [np.inf, np.inf]])
    assert paths.path(0, 1) == [0, 1] and paths.path(1, 0) == []


def test_negative_cycles():
    weights = np.full((2, 3, 3), np.inf)
    weights[0, 0, 1] = 1
    weights[1, 1, 2], weights[1, 2, 1] = -3, 2
    with pytest.raises(rs.InvalidArgument, match=r"vertex [12] of graph 1 lies on a cycle"):
        rs.shortest_paths(weights)
    with pytest.raises(ValueError, match=r"vertex [12] lies on a cycle"):
        rs.closure(weights[1])


def test_closures(rng):
    reach = rng.random((40, 40)) < 0.05
    expected = reach | np.eye(40, dtype=bool)
    for _ in range(6):
        expected = (expected.astype(int) @ expected.astype(int)) > 0
    c = rs.closure(reach, "or_and")
    assert c.dtype == bool
    np.testing.assert_array_equal(c, expected)
    widths = rng.random((2, 3, 9, 9))
    wide = rs.closure(widths, "max_min")
    for _ in range(4):
        widths = np.maximum(widths, np.minimum(widths[..., :, :, None], widths[..., None, :, :]).max(-2))
    off = ~np.eye(9, dtype=bool)
    np.testing.assert_array_equal(wide[..., off], widths[..., off])
    weights = graph(rng, 20)
    copy = weights.copy()
    assert rs.closure(copy, out=copy) is copy
    np.testing.assert_array_equal(copy, rs.closure(weights))
    flipped = np.empty((20, 20))[::-1]
    np.testing.assert_array_equal(rs.closure(weights, out=flipped), copy)
    with pytest.raises(ValueError, match="expected"):
        rs.closure(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="plus_times"):
        rs.closure(weights, "plus_times")
    with pytest.raises(ValueError, match=r"out has the shape \(2, 2\), expected \(20, 20\)"):
        rs.closure(weights, out=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="out holds int32, expected float64"):
        rs.closure(weights, out=np.zeros((20, 20), "int32"))
    untouched = np.full((20, 20), 7.0)
    with pytest.raises(ValueError, match="plus_times"):
        rs.closure(weights, "plus_times", out=untouched)
    assert (untouched == 7).all()


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-4), ("float64", 1e-12)])
def test_solves(rng, dtype, tolerance):
    factor = rng.random((3, 8, 8))
    a = (factor @ np.swapaxes(factor, 1, 2) + np.eye(8)).astype(dtype)
    b = rng.random((3, 8, 2)).astype(dtype)
    for solve in (rs.cholesky_solve, rs.lu_solve):
        x = solve(a, b)
        assert x.dtype == dtype
        np.testing.assert_allclose(x, np.linalg.solve(a.astype(float), b), rtol=tolerance)
        np.testing.assert_allclose(solve(a[0], b[0, :, 0]), np.linalg.solve(a[0].astype(float), b[0, :, 0]), rtol=tolerance)
        np.testing.assert_allclose(solve(a[::-1, ::-1, ::-1], b), np.linalg.solve(a[::-1, ::-1, ::-1].astype(float), b), rtol=tolerance)
        np.testing.assert_allclose(solve(a[0], b), np.linalg.solve(a[:1].astype(float), b), rtol=tolerance)
        np.testing.assert_allclose(solve(a, b[1]), np.linalg.solve(a.astype(float), b[1]), rtol=tolerance)
        np.testing.assert_allclose(solve(a, b[1, :, 0]), np.linalg.solve(a.astype(float), b[1])[..., 0], rtol=tolerance)
    lower = rs.cholesky_factor(a)
    np.testing.assert_allclose(lower, np.linalg.cholesky(a.astype(float)), rtol=10 * tolerance, atol=tolerance)
    np.testing.assert_allclose(rs.cholesky_factor(a, triangle="upper"), np.swapaxes(lower, 1, 2), rtol=10 * tolerance, atol=tolerance)
    np.testing.assert_allclose(rs.cholesky_solve_factored(lower, b), np.linalg.solve(a.astype(float), b), rtol=tolerance)
    np.testing.assert_allclose(rs.log_determinant(lower), np.linalg.slogdet(a.astype(float))[1], rtol=tolerance)
    w, v = rs.eigh(a)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a.astype(float)), rtol=10 * tolerance)
    np.testing.assert_allclose(v * w[:, None] @ np.swapaxes(v, 1, 2), a, rtol=10 * tolerance, atol=tolerance)


def test_solve_refusals():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(rs.InvalidArgument, match="cholesky_solve"):
        rs.cholesky_solve(-np.eye(2), np.ones(2))
    with pytest.raises(rs.InvalidArgument, match="lu_solve"):
        rs.lu_solve(singular, np.ones(2))
    assert np.isnan(rs.lu_solve(singular, np.ones(2), check=False)).all()
    with pytest.raises(ValueError, match="B is 3x1, expected 2x1"):
        rs.lu_solve(np.eye(2), np.ones(3))
    with pytest.raises(ValueError, match="A.type is i64, expected f32 or f64"):
        rs.lu_solve(np.eye(2, dtype=int), np.ones(2))
    with pytest.raises(ValueError, match="triangle is 'left', expected 'lower' or 'upper'"):
        rs.cholesky_factor(np.eye(2), triangle="left")
    with pytest.raises(ValueError, match="A is 2x3"):
        rs.eigh(np.ones((2, 3)))


def test_linear_layer(rng):
    x, weight, bias = rng.random((6, 4)).astype("float32"), rng.random((3, 4)).astype("float32"), rng.random(3).astype("float32")
    y, z = rs.linear_forward(x - 0.5, weight, bias, activation="relu", return_preactivation=True)
    np.testing.assert_allclose(z, (x - 0.5) @ weight.T + bias, rtol=1e-5)
    np.testing.assert_array_equal(y, np.maximum(z, 0))
    dy = rng.random((6, 3)).astype("float32")
    dw, db = rs.linear_backward_weight(x, dy)
    np.testing.assert_allclose(dw, dy.T @ x, rtol=1e-6)
    np.testing.assert_allclose(db, dy.sum(0), rtol=1e-6)
    parts = rs.linear_backward_weight(x[:2], dy[:2])
    parts = rs.linear_backward_weight(x[2:], dy[2:], *parts)
    np.testing.assert_array_equal(parts[0], dw)  # micro-batches have the bits of the whole
    np.testing.assert_array_equal(parts[1], db)
    before = rng.random((6, 4)).astype("float32") - 0.5
    np.testing.assert_allclose(rs.linear_backward_input(dy, weight, before, activation="relu"), (dy @ weight) * (before > 0), rtol=1e-6)
    np.testing.assert_array_equal(rs.linear_forward(x[3:4], weight, bias), rs.linear_forward(x, weight, bias)[3:4])
    with pytest.raises(ValueError, match="activation is 'softmax', expected None"):
        rs.linear_forward(x, weight, activation="softmax")
    with pytest.raises(ValueError, match="tier is 'fast', expected one of scalar, tensor"):
        rs.linear_forward(x, weight, tier="fast")
    with pytest.raises(TypeError, match="tensor"):
        rs.linear_forward(x, weight, tier="tensor")
    with pytest.raises(ValueError, match="f64"):
        rs.linear_forward(x.astype(float), weight.astype(float))

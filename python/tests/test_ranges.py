# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of pairs in ranges, against NumPy on a mask of all pairs."""

import pickle
import threading

import numpy as np
import pytest
from scipy.spatial import distance

import rigel_semirings as rs
from rigel_semirings import epilogue

inf = np.inf


def mask_of(ranges):
    """Which pairs are taken, by the definition."""
    mask, first = np.zeros(ranges.shape, bool), 0
    for (begin, end), last in zip(ranges.rows, ranges.slices, strict=True):
        for left, right in ranges.columns[first:last]:
            mask[begin:end, left:right] = True
        first = last
    return mask


def random_ranges(rng, m, n, count=5):
    """Intervals in no order, with gaps, empty ones, and rows that meet nothing."""
    def intervals(extent):
        edges = np.sort(rng.integers(0, extent + 1, 2 * count)).reshape(-1, 2)
        return rng.permutation(edges)

    rows = intervals(m)
    columns = [intervals(n)[: rng.integers(0, count + 1)] for _ in rows]
    return rs.Ranges(m, n, rows, np.cumsum([len(one) for one in columns]), np.concatenate(columns))


def points_and_ranges(rng, m=60, n=45):
    x, z = rng.integers(-4, 5, (m, 3)).astype(float), rng.integers(-4, 5, (n, 3)).astype(float)
    ranges = random_ranges(rng, m, n)
    mask = mask_of(ranges)
    assert not mask.all(1).any() and not mask.any(1).all() and mask.any()
    return x, z, ranges, mask


@pytest.mark.parametrize("reducer, of", [
    ("minimum", lambda s, mask: np.where(mask, s, inf).min(1)), ("maximum", lambda s, mask: np.where(mask, s, -inf).max(1)),
    ("sum", lambda s, mask: np.where(mask, s, 0).sum(1)), ("count_below", lambda s, mask: ((s < 6) & mask).sum(1)),
    ("smallest", lambda s, mask: np.sort(np.where(mask, s, inf), axis=1)[:, :7]),
    ("largest", lambda s, mask: -np.sort(np.where(mask, -s, inf), axis=1)[:, :7])])
@pytest.mark.parametrize("seed", range(4))
def test_exact_reductions(reducer, of, seed):
    x, z, ranges, mask = points_and_ranges(np.random.default_rng(seed))
    more = {"k": 7} if reducer in ("smallest", "largest") else {"threshold": 6} if reducer == "count_below" else {}
    d = distance.cdist(x, z, "cityblock")
    found = rs.reduce_distances(x, z, "cityblock", reducer, ranges=ranges, **more)
    np.testing.assert_array_equal(found.values, of(d, mask))
    product = rs.reduce(x, z.T, "l1", reducer, ranges=ranges, **more)
    np.testing.assert_array_equal(product.values, of(d, mask))
    for one in (found, product):
        if one.indices is not None:
            places = one.indices.reshape(len(x), -1)
            there = places >= 0
            np.testing.assert_array_equal(there.sum(1), np.minimum(mask.sum(1), places.shape[1]))
            rows = np.broadcast_to(np.arange(len(x))[:, None], places.shape)
            assert mask[rows[there], places[there]].all()
            np.testing.assert_array_equal(d[rows[there], places[there]], one.values.reshape(places.shape)[there])


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_kernels(seed):
    rng = np.random.default_rng(seed)
    x, z, ranges, mask = points_and_ranges(rng)
    v = rng.random((len(z), 3)) - 0.5
    k = np.exp(-distance.cdist(x, z, "sqeuclidean") / 8) * mask
    # A sum of at most 45 products, each kernel within some roundings.
    bound = 80 * 2.0**-53 * (k @ np.abs(v))
    assert (np.abs(rs.kernel_matvec(x, z, v, bandwidth=2.0, ranges=ranges) - k @ v) <= bound).all()
    assert (np.abs(rs.kernel_matvec(x, z, v[:, 0], bandwidth=2.0, ranges=ranges) - k @ v[:, 0]) <= bound[:, 0]).all()
    scores = np.where(mask, -distance.cdist(x, z, "sqeuclidean") / 8, -inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected, weights = np.log(np.exp(scores).sum(1)), np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    found = rs.logsumexp(x, z, epilogue=epilogue.scale(-0.125), ranges=ranges)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert (found[~mask.any(1)] == -inf).all()
    smooth = rs.softmax_matvec(x, z, v, "sqeuclidean", epilogue=epilogue.scale(-0.125), ranges=ranges)
    np.testing.assert_allclose(smooth, weights @ v, rtol=1e-12, atol=1e-14)
    assert np.isnan(smooth[~mask.any(1)]).all()


def test_neighbours(rng):
    x, z, ranges, mask = points_and_ranges(rng)
    d = np.where(mask, distance.cdist(x, z), inf)
    near = rs.nearest(x, z, 4, ranges=ranges)
    order = np.argsort(d, axis=1, kind="stable")[:, :4]
    np.testing.assert_allclose(near.distances, np.take_along_axis(d, order, 1), rtol=1e-15)
    np.testing.assert_array_equal(near.indices, np.where(np.take_along_axis(d, order, 1) < inf, order, -1))
    own = rs.assign(x, z, ranges=ranges)
    np.testing.assert_array_equal(own.indices, np.where(mask.any(1), d.argmin(1), -1))
    found = rs.radius_neighbors(x, z, 4.0, ranges=ranges)
    within = d <= 4.0
    np.testing.assert_array_equal(found.offsets, np.concatenate([[0], within.sum(1).cumsum()]))
    np.testing.assert_array_equal(found.indices, within.nonzero()[1])
    np.testing.assert_allclose(found.distances, d[within], rtol=1e-15)
    largest = rs.nearest(x, z, 1, "inner_product", ranges=ranges)
    np.testing.assert_array_equal(largest.distances[:, 0], np.where(mask, x @ z.T, -inf).max(1))


def test_batches_types_and_sets_with_themselves(rng):
    x = rng.integers(-4, 5, (3, 2, 30, 4)).astype("float32")
    ranges = random_ranges(rng, 30, 30)
    mask = mask_of(ranges) & ~np.eye(30, dtype=bool)
    d = np.abs(x[..., :, None, :] - x[..., None, :, :]).sum(-1)
    expected = np.where(mask, d, inf).min(-1)
    found = rs.reduce_distances(x, metric="cityblock", ranges=ranges, exclude_self=True)
    assert found.values.dtype == np.float32
    np.testing.assert_array_equal(found.values, expected)
    strided = x.swapaxes(0, 1)[..., ::2]  # of several calls
    sums = rs.reduce_distances(strided, metric="cityblock", reducer="sum", ranges=ranges, exclude_self=True)
    np.testing.assert_array_equal(sums.values, (np.abs(strided[..., :, None, :] - strided[..., None, :, :]).sum(-1) * mask).sum(-1))
    for dtype in ("float16", "float64", "int32"):
        one, nothing = x[0, 0].astype(dtype), (2**31 - 1) // 2 if dtype == "int32" else inf
        found = rs.reduce(one, one.T, "l1", ranges=ranges, exclude_self=True).values
        np.testing.assert_array_equal(found, np.where(mask.any(1), expected[0, 0].astype(float), nothing))
    v, out = rng.random((30, 2)), np.empty((30, 2))
    assert rs.kernel_matvec(x[0, 0].astype(float), v=v, bandwidth=1.0, ranges=ranges, out=out) is out
    np.testing.assert_allclose(out, (np.exp(-distance.cdist(x[0, 0], x[0, 0], "sqeuclidean") / 2) * mask_of(ranges)) @ v, rtol=1e-13)
    assert rs.kernel_matvec(np.empty((0, 30, 4)), v=v, bandwidth=1.0, ranges=ranges).shape == (0, 30, 2)


def test_nothing(rng):
    x, z, v = rng.random((4, 2)), rng.random((5, 2)), np.ones(5)
    none, empty = rs.Ranges(4, 5, [], [], []), rs.Ranges(4, 5, [[0, 4], [2, 2]], [1, 2], [[3, 3], [0, 5]])
    for ranges in (none, empty):
        assert ranges.pairs == 0 and ranges.shape == (4, 5)
        assert rs.nearest(x, z, 2, ranges=ranges).indices.tolist() == [[-1, -1]] * 4
        assert rs.kernel_matvec(x, z, v, bandwidth=1.0, ranges=ranges).tolist() == [0] * 4
        assert rs.logsumexp(x, z, ranges=ranges).tolist() == [-inf] * 4
        assert rs.radius_neighbors(x, z, 9.0, ranges=ranges).offsets.tolist() == [0] * 5
    no_rows = rs.Ranges(0, 5, [[0, 0]], [1], [[0, 5]])
    assert rs.kernel_matvec(x[:0], z, v, bandwidth=1.0, ranges=no_rows).shape == (0,)
    no_columns = rs.Ranges(4, 0, [[0, 4]], [1], [[0, 0]])
    assert rs.kernel_matvec(x, z[:0], v[:0], bandwidth=1.0, ranges=no_columns).tolist() == [0] * 4
    everything = rs.Ranges(4, 5, [[0, 4]], [1], [[0, 5]])
    np.testing.assert_array_equal(rs.nearest(x, z, 3, ranges=everything).distances, rs.nearest(x, z, 3).distances)
    assert rs.Ranges(4, 5, np.empty((0, 2), int), np.empty(0, int), np.empty((0, 2), int)).pairs == 0


def test_what_a_row_without_pairs_holds_is_not_read():
    x, z = np.array([[0.0], [np.nan]]), np.array([[1.0], [np.nan], [2.0]])
    ranges = rs.Ranges(2, 3, [[0, 1]], [2], [[2, 3], [0, 1]])
    assert rs.nearest(x, z, 3, ranges=ranges).distances.tolist() == [[1, 2, inf], [inf] * 3]
    assert rs.kernel_matvec(x, z, np.array([1.0, np.nan, 1.0]), bandwidth=1.0, ranges=ranges)[1] == 0


# ---- the object ----


def test_from_mask(rng):
    mask = rng.random((4, 6)) < 0.5
    mask[1], mask[2] = False, True
    of_rows, of_columns = [0, 3, 3, 7, 10], [0, 2, 5, 5, 6, 9, 12]
    ranges = rs.Ranges.from_mask(mask, of_rows, of_columns)
    dense = np.repeat(np.repeat(mask, np.diff(of_rows), axis=0), np.diff(of_columns), axis=1)
    np.testing.assert_array_equal(mask_of(ranges), dense)
    assert ranges.shape == (10, 12) and ranges.pairs == dense.sum()
    assert ranges.columns[ranges.slices[1]:ranges.slices[2]].tolist() == [[0, 12]]  # blocks side by side
    assert rs.Ranges.from_mask(np.eye(2, dtype=bool), (0, 3, 4)).rows.tolist() == [[0, 3], [3, 4]]
    assert rs.Ranges.from_mask(np.empty((0, 0), bool), [0]).shape == (0, 0)


def test_from_labels(rng):
    labels, others = np.sort(rng.integers(0, 6, 20)), np.sort(rng.integers(0, 8, 15))
    np.testing.assert_array_equal(mask_of(rs.Ranges.from_labels(labels)), labels[:, None] == labels)
    np.testing.assert_array_equal(mask_of(rs.Ranges.from_labels(labels, others)), labels[:, None] == others)
    mask = rng.random((6, 9)) < 0.5
    np.testing.assert_array_equal(mask_of(rs.Ranges.from_labels(labels, others, mask)), mask[labels[:, None], others])
    assert rs.Ranges.from_labels([0, 0, 10**12]).pairs == 5
    assert rs.Ranges.from_labels([]).shape == (0, 0)
    assert rs.Ranges.from_labels([], [0, 1], np.ones((1, 2), bool)).shape == (0, 2)


def test_the_object(rng):
    rows = np.array([[0, 2], [2, 3]])
    ranges = rs.Ranges(np.int32(4), 4, rows, [1, 2], [[0, 1], [1, 4]])
    rows[:] = 0
    assert ranges.rows.tolist() == [[0, 2], [2, 3]] and ranges.pairs == 5
    assert repr(ranges) == "Ranges(4 x 4: 5 pairs in 2 intervals of rows)"
    with pytest.raises(ValueError, match="read-only"):
        ranges.rows[0] = 1
    with pytest.raises(AttributeError):
        ranges.rows = rows
    again = pickle.loads(pickle.dumps(ranges))
    np.testing.assert_array_equal(mask_of(again), mask_of(ranges))
    x = rng.random((4, 2))
    np.testing.assert_array_equal(rs.nearest(x, ranges=again).distances, rs.nearest(x, ranges=ranges).distances)
    for dtype in ("int8", "uint64", ">i4"):
        assert rs.Ranges(4, 4, np.array([[1, 2]], dtype), np.array([1], dtype), np.array([[0, 9, 2]], dtype)[:, ::2]).pairs == 2
    assert "5 pairs in ranges" in rs.explain(rs.nearest, x, ranges=ranges).problem
    assert rs.explain(rs.kernel_matvec, x, v=x, bandwidth=1.0, ranges=ranges).chosen


def test_threads(rng):
    x, z, ranges, _ = points_and_ranges(rng)
    expected, right = rs.nearest(x, z, 3, ranges=ranges).indices, []

    def work():
        for _ in range(30):
            own = rs.Ranges(*ranges.shape, ranges.rows, ranges.slices, ranges.columns)
            right.append(np.array_equal(rs.nearest(x, z, 3, ranges=own).indices, expected))
            right.append(np.array_equal(rs.nearest(x, z, 3, ranges=ranges).indices, expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 240 and all(right)


@pytest.mark.parametrize("given, message", [
    ((4, 5, [[0, 5]], [0], []), r"Ranges: rows\[0\] from 0 to 5, expected 0 <= first <= end <= 4"),
    ((4, 5, [[-1, 2]], [0], []), r"rows\[0\] from -1 to 2"),
    ((4, 5, [[3, 2]], [0], []), r"rows\[0\] from 3 to 2"),
    ((4, 5, [[0, 2], [1, 3]], [0, 0], []), r"rows\[1\] from 1 to 3 overlaps rows\[0\] from 0 to 2"),
    ((4, 5, [[0, 2]], [2], [[0, 3], [2, 4]]), r"columns\[1\] from 2 to 4 overlaps columns\[0\]"),
    ((4, 5, [[0, 2]], [1], [[0, 6]]), r"columns\[0\] from 0 to 6, expected .* <= 5"),
    ((4, 5, [[0, 2], [2, 3]], [1, 0], [[0, 1]]), r"slices\[1\] is 0, expected at least 1"),
    ((4, 5, [[0, 2]], [1], []), "slices ends with 1, expected 0"),
    ((4, 5, [[0, 2]], [], []), "slices has 0 numbers, expected 1"),
    ((4, 5, [[0, 2]], [0, 0], []), "slices has 2 numbers, expected 1"),
    ((4, 5, [[0, 2, 3]], [0], []), r"rows has the shape \(1, 3\), expected \(…, 2\)"),
    ((4, 5, [0, 2], [0], []), r"rows has the shape \(2,\)"),
    ((4, 5, [[0, 2]], [[0]], []), r"slices has the shape \(1, 1\), expected one dimension"),
    ((-1, 5, [], [], []), "the scores are -1x5"),
    ((2**40, 2**40, [], [], []), r"expected fewer than 2\^63"),
    ((4, 5, [[0, 2**63 - 1]], [0], []), r"rows\[0\] from 0 to 9223372036854775807"),
    ((4, 5, [[0, 2], [1]], [0], []), "rows is no array"),
])
def test_refusals(given, message):
    with pytest.raises(rs.InvalidArgument, match=message):
        rs.Ranges(*given)


@pytest.mark.parametrize("call, message", [
    (lambda: rs.Ranges(4, 5, [[0.0, 2.0]], [0], []), "rows holds float64, expected integers"),
    (lambda: rs.Ranges(4, 5, [[0, 2]], [True], [[0, 1]]), "slices holds bool, expected integers"),
    (lambda: rs.Ranges(4.5, 5, [], [], []), "m is 4.5, expected an integer"),
    (lambda: rs.Ranges(4, None, [], [], []), "n is None, expected an integer"),
    (lambda: rs.Ranges(4, 5, "all", [], []), "rows is a str, expected an array"),
    (lambda: rs.Ranges(4, 5, np.ma.array([[0, 2]], mask=[[0, 1]]), [0], []), "rows is a masked array"),
    (lambda: rs.Ranges.from_mask(np.ones((2, 2)), [0, 1, 2]), "mask holds float64, expected bool"),
    (lambda: rs.nearest(np.ones((4, 2)), ranges=([[0, 4]], [1], [[0, 4]])), "ranges is a tuple, expected a rigel_semirings.Ranges"),
])
def test_refusals_of_types(call, message):
    with pytest.raises(rs.Unsupported, match=message):
        call()


@pytest.mark.parametrize("call, message", [
    (lambda: rs.Ranges.from_mask(np.ones((2, 3), bool), [0, 1, 2]), r"column_offsets is None and mask has the shape \(2, 3\)"),
    (lambda: rs.Ranges.from_mask(np.ones((2, 3), bool), [0, 1], [0, 1, 2, 3]), r"row_offsets has the shape \(2,\), expected \(3,\)"),
    (lambda: rs.Ranges.from_mask(np.ones((1, 1), bool), [1, 2]), r"row_offsets is \[1, 2\], expected ascending numbers from 0 on"),
    (lambda: rs.Ranges.from_mask(np.ones((2, 2), bool), [0, 3, 2]), r"row_offsets is \[0, 3, 2\], expected ascending"),
    (lambda: rs.Ranges.from_mask(np.ones(2, bool), [0, 3, 2]), r"mask has the shape \(2,\)"),
    (lambda: rs.Ranges.from_labels([0, 1, 0]), r"row_labels\[2\] is 0 after 1, expected ascending labels"),
    (lambda: rs.Ranges.from_labels([0, 1], [1, 0]), r"column_labels\[1\] is 0 after 1"),
    (lambda: rs.Ranges.from_labels([-1, 1]), r"row_labels\[0\] is -1, expected labels from 0 on"),
    (lambda: rs.Ranges.from_labels([[0, 1]]), r"row_labels has the shape \(1, 2\)"),
    (lambda: rs.Ranges.from_labels([0, 2], mask=np.ones((2, 3), bool)), r"mask has the shape \(2, 3\), expected at least \(3, 3\)"),
])
def test_refusals_of_blocks(call, message):
    with pytest.raises(rs.InvalidArgument, match=message):
        call()


def test_ranges_of_other_extents(rng):
    ranges, x, v = rs.Ranges(4, 5, [[0, 4]], [1], [[0, 5]]), rng.random((4, 2)), rng.random(4)
    for call, name in ((lambda: rs.nearest(x, ranges=ranges), "reduce_distances"), (lambda: rs.reduce(x, x.T, ranges=ranges), "reduce"),
                       (lambda: rs.kernel_matvec(x, v=v, bandwidth=1.0, ranges=ranges), "kernel_matvec"),
                       (lambda: rs.radius_neighbors(x, ranges=ranges), "radius_offsets"),
                       (lambda: rs.softmax_matvec(x, x, v, ranges=ranges), "softmax_matvec")):
        with pytest.raises(rs.InvalidArgument, match=f"^{name}: options.ranges are of 4x5 scores, expected those of 4x4|4x4"):
            call()
    out = np.full(4, 7.0)
    with pytest.raises(rs.InvalidArgument):
        rs.kernel_matvec(x, v=v, bandwidth=1.0, ranges=ranges, out=out)
    assert (out == 7).all()

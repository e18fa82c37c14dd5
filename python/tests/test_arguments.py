# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that no call takes: each is refused by name, by an exception of the package."""

import numpy as np
import pytest

import rigel_semirings as rs

x = np.random.default_rng(1).random((5, 3))
square = np.ones((2, 2))
paths = rs.shortest_paths(np.ones((3, 3)))
read_only = np.empty((2, 2))
read_only.flags.writeable = False


def masked(array):
    return np.ma.array(array, mask=np.zeros(np.shape(array), bool))


@pytest.mark.parametrize("call, message", [
    # What would be lost on the way: masks and imaginary parts.
    (lambda: rs.closure(masked(square)), "weights is a masked array"),
    (lambda: rs.shortest_paths(masked(square)), "weights is a masked array"),
    (lambda: rs.cdist(x, metric="seuclidean", V=masked(np.ones(3))), "V is a masked array"),
    (lambda: rs.cdist(x, metric="minkowski", w=masked(np.ones(3))), "w is a masked array"),
    (lambda: rs.cdist(x, metric="mahalanobis", VI=masked(np.eye(3))), "VI is a masked array"),
    (lambda: rs.cdist(masked([[1, 2]]), metric="canberra"), "x is a masked array"),
    (lambda: rs.kmeans(masked(np.ones((3, 2), int)), 1), "x is a masked array"),
    (lambda: rs.kmeans(x, 2, masked(x[:2])), "centres is a masked array"),
    (lambda: rs.sinkhorn(x, x, masked(np.ones(5, int)), epsilon=1.0), "a is a masked array"),
    (lambda: rs.cdist(x + 1j, metric="canberra"), "x holds complex128"),
    (lambda: rs.cdist(x, metric="minkowski", w=np.ones(3) + 1j), "w holds complex128, expected real numbers"),
    (lambda: rs.cdist(x, metric="seuclidean", V=np.ones(3) + 1j), "V holds complex128, expected real numbers"),
    (lambda: rs.cdist(x, metric="mahalanobis", VI=np.eye(3) + 1j), "VI holds complex128, expected real numbers"),
    (lambda: rs.kmeans(x, 2, x[:2] + 1j), "centres holds complex128, expected real numbers"),
    (lambda: rs.kmeans(x + 1j, 2), "x holds complex128"),
    (lambda: rs.sinkhorn(x, x, np.ones(5) + 1j, epsilon=1.0), "a holds complex128"),
    # Objects that are no arrays, numbers or names.
    (lambda: rs.closure("abc"), "weights is a str"),
    (lambda: rs.closure(np.array([[None, 1], [1, None]])), "weights holds object"),
    (lambda: rs.kmeans("abc", 2), "x is a str"),
    (lambda: rs.kmeans(x, "2"), "k is '2', expected a number"),
    (lambda: rs.kmeans(x, None), "k is None, expected a number"),
    (lambda: rs.kmeans(x, 2, iterations=None), "iterations is None, expected a number"),
    (lambda: rs.kmeans(x, 2, tolerance=None), "tolerance is None, expected a number"),
    (lambda: rs.kmeans(x, 2, seed=-1), "seed is -1, expected an integer from 0 to 18446744073709551615"),
    (lambda: rs.sinkhorn(x, x, epsilon=1.0, tolerance="a"), "tolerance is 'a', expected a number"),
    (lambda: rs.nearest(x, k=2**70), "k is 1180591620717411303424, expected an integer from -9223372036854775808 to 9223372036854775807"),
    (lambda: rs.kernel_solve(x, x, bandwidth=1.0, progress=5), "progress is 5, expected a function"),
    (lambda: rs.cdist(x, metric=["euclidean"]), r"metric is \['euclidean'\], expected a str"),
    (lambda: rs.kernel_matrix(x, kernel=["gaussian"], bandwidth=1.0), r"kernel is \['gaussian'\], expected a str"),
    (lambda: rs.kernel_matvec(x, v=x, kernel=["gaussian"], bandwidth=1.0), r"kernel is \['gaussian'\], expected a str"),
    (lambda: rs.nearest(x, exclude_self=np.array([1, 2])), r"exclude_self is array\(\[1, 2\]\), expected True or False"),
    (lambda: rs.reduce(x, x.T, reducer="count_below", threshold=1, or_equal=np.array([1, 2])), r"or_equal is array\(\[1, 2\]\)"),
    (lambda: rs.contract(x, x.T, dtype="real"), "dtype is 'real', expected one of float16"),
    (lambda: rs.contract(x, x.T, dtype=5), "dtype is 5, expected one of float16"),
    (lambda: rs.contract(x, x.T, accumulator="real"), "accumulator is 'real', expected one of float16"),
    (lambda: rs.contract(x, x.T, require=5), "require is 5, expected a str or several"),
    (lambda: rs.cdist(x, metric="jensenshannon", base="2"), "base is '2', expected a number"),
    (lambda: rs.kernel_matrix_gradient(x, g=np.ones((5, 5)), wrt=5, bandwidth=1.0), "wrt is 5, expected a str or several"),
    (lambda: paths.path(0.5, 1), "source is 0.5, expected an integer"),
    (lambda: paths.path(0, "1"), "target is '1', expected an integer"),
    (lambda: rs.explain(5), "function is 5, expected a function"),
])
def test_types(call, message):
    with pytest.raises(rs.Unsupported, match=message):
        call()


@pytest.mark.parametrize("call, message", [
    (lambda: rs.cdist(x, metric="minkowski", w=[1, 2]), r"w has the shape \(2,\), expected \(3,\) for x of shape \(5, 3\)"),
    (lambda: rs.cdist(x, metric="minkowski", w=2.0), r"w has the shape \(\), expected \(3,\)"),
    (lambda: rs.cdist(x, metric="minkowski", w=[[1], [1, 2]]), "w is no array"),
    (lambda: rs.cdist(x, metric="seuclidean", V=np.ones((3, 3))), r"V has the shape \(3, 3\), expected \(3,\)"),
    (lambda: rs.cdist(x, metric="mahalanobis", VI=np.eye(2)), r"VI has the shape \(2, 2\), expected \(3, 3\)"),
    (lambda: rs.cdist(x, metric="mahalanobis", VI=np.full((3, 3), np.nan)), "VI has infinities or NaN"),
    (lambda: rs.cdist(np.ones((9, 2)), metric="mahalanobis"), "the covariance matrix of the rows is singular, expected VI"),
    (lambda: rs.cdist(x, x[:, :2], "mahalanobis"), r"z has the shape \(5, 2\), expected as many columns as x has"),
    (lambda: rs.cdist(x, x[:, :2], "seuclidean"), r"z has the shape \(5, 2\), expected as many columns as x has"),
    (lambda: rs.linear_forward(x, x, activation=["relu"]), r"activation is \['relu'\], expected None, 'relu'"),
    (lambda: rs.kmeans(5.0, 1), r"x has the shape \(\)"),
    (lambda: rs.sinkhorn(1.0, x, epsilon=1.0), r"x has the shape \(\)"),
    (lambda: rs.closure(square, out=read_only), "out is read-only"),
    (lambda: rs.shortest_paths(square, out=read_only), "out is read-only"),
])
def test_shapes_and_values(call, message):
    with pytest.raises(rs.InvalidArgument, match=message):
        call()


def test_weights_of_one_row():
    np.testing.assert_array_equal(rs.cdist(x, metric="minkowski", w=[[1.0, 2.0, 3.0]]), rs.cdist(x, metric="minkowski", w=[1, 2, 3]))


def test_numbers_whose_gradient_would_be_lost(torch):
    points, one = torch.rand(4, 3), torch.tensor(1.5, requires_grad=True)
    for call, name in (
        (lambda: rs.kernel_matrix(points, bandwidth=one), "bandwidth"), (lambda: rs.cdist(points, metric="minkowski", p=one), "p"),
        (lambda: rs.cdist(points, metric="jensenshannon", base=one), "base"), (lambda: rs.sinkhorn(points, points, epsilon=one), "epsilon"),
        (lambda: rs.radius_neighbors(points, radius=one), "radius"), (lambda: rs.contract(points, points.T, "lp", parameters={"p": one}), "p"),
        (lambda: rs.kernel_solve(points, points, bandwidth=1.0, regularisation=one), "regularisation"),
        (lambda: rs.reduce(points, points.T, reducer="count_below", threshold=one), "threshold"),
        (lambda: rs.Semiring("abs(a - b)**p", p=one), "p"),
    ):
        with pytest.raises(rs.Unsupported, match=f"{name} requires a gradient"):
            call()
    with torch.no_grad():
        assert rs.kernel_matrix(points, bandwidth=one).shape == (4, 4)
    rt = pytest.importorskip("rigel_semirings.torch")
    for call, name in ((lambda: rt.kernel_matrix(points, bandwidth=one), "bandwidth"), (lambda: rt.cdist(points, metric="minkowski", p=one), "p"),
                       (lambda: rt.contract(points, points.T, "lp", parameters={"p": one}), "p")):
        with pytest.raises(rs.Unsupported, match=f"{name} requires a gradient, which operators do not have by numbers"):
            call()
    for call, name in ((lambda: rt.kernel_matrix(points, kernel=["gaussian"]), "kernel"), (lambda: rt.cdist(points, metric=["euclidean"]), "metric")):
        with pytest.raises(rs.Unsupported, match=f"{name} is .*, expected a str"):
            call()


def test_tensors_that_are_not_dense(torch):
    points = torch.rand(3, 3)
    for made in (torch.ones(3).to_sparse(), torch.ones(3, device="meta")):
        with pytest.raises(rs.Unsupported, match="w is a tensor of torch.float32.*expected a strided one"):
            rs.cdist(points, metric="minkowski", w=made)
    for made in (points.to_sparse(), points.to("meta")):
        with pytest.raises(rs.Unsupported, match="weights is a tensor of torch.float32.*expected a strided one"):
            rs.closure(made)
    with pytest.raises(rs.Unsupported, match="out requires a gradient"):
        rs.closure(points, out=torch.zeros(3, 3, requires_grad=True))


def test_weights_whose_gradient_would_be_lost(torch):
    points, w = torch.rand(4, 3), torch.ones(3, requires_grad=True)
    for arguments in ({"metric": "minkowski", "w": w}, {"metric": "seuclidean", "V": w},
                      {"metric": "mahalanobis", "VI": torch.eye(3, requires_grad=True)}):
        with pytest.raises(rs.Unsupported, match="^(w|V|VI) requires a gradient, which this call does not record"):
            rs.cdist(points, **arguments)
        with torch.no_grad():
            assert rs.cdist(points, **arguments).shape == (4, 4)
    with pytest.raises(rs.Unsupported, match="centres requires a gradient"):
        rs.kmeans(points, 2, points[:2].clone().requires_grad_())
    with pytest.raises(rs.Unsupported, match="v requires a gradient"):
        rs.kernel_matvec(points, v=torch.ones(4, requires_grad=True), bandwidth=1.0, ranges=rs.Ranges(4, 4, [], [], []))


def test_interrupts_pass():
    class Interrupted:
        def __dlpack_device__(self):
            raise KeyboardInterrupt

        def __dlpack__(self, **options):
            raise AssertionError("the device comes first")

    with pytest.raises(KeyboardInterrupt):
        rs.cdist(Interrupted())


def test_arrays_that_have_dlpack_alone():
    class Array:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

    x, v = np.arange(6.0).reshape(3, 2), np.array([1.0, 4.0])
    np.testing.assert_array_equal(rs.cdist(x, x, "seuclidean", V=Array(v)), rs.cdist(x, x, "seuclidean", V=v))
    labels = np.array([0, 0, 1])
    for given in (labels, Array(labels)):
        assert rs.nearest(x, k=1, exclude_self=True, ranges=rs.Ranges.from_labels(given)).indices.tolist() == [[1], [0], [-1]]


def test_vertices_are_numbers():
    p = rs.shortest_paths(np.array([[0.0, 1.0], [np.inf, 0.0]]))
    assert p.path(False, True) == p.path(0, 1)


def test_integers_that_no_double_holds():
    with pytest.raises(rs.Unsupported, match="p is 9007199254740993, expected a number that a double holds"):
        rs.Semiring("p * a * b", p=2**53 + 1)
    assert rs.Semiring("p * a * b", p=2**60).p == 2**60

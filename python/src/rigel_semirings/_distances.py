# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distances, kernel matrices, and reductions over them."""

import math
from typing import NamedTuple

from . import _core
from . import epilogue as steps
from ._arrays import as_floats, floats_on_host, moved, numpy, type_code
from ._errors import InvalidArgument
from ._options import number, options, text
from ._products import Reduced, reduction
from ._ranges import of_call as ranges_of_call
from .epilogue import steps_of

# SciPy's names for metrics that have another one here.
_SCIPY = {"cityblock": "manhattan", "sqeuclidean": "squared_euclidean"}
# Those that take floating-point numbers alone.
_OF_FLOATS = {"seuclidean", "minkowski_with_epsilon", "haversine", "canberra", "kl_divergence", "jensenshannon", "weighted_minkowski"}
_METRICS_OF_KERNELS = {"polynomial": "inner_product", "sigmoid": "inner_product", "cosine": "cosine"}
# Whose values are the larger the nearer rows are.
_SIMILARITIES = {"inner_product"}


class Neighbors(NamedTuple):
    """The nearest rows: distances, and their places."""

    distances: object
    indices: object


class RadiusNeighbors(NamedTuple):
    """Neighbours as a compressed sparse row matrix: those of row m are from offsets[m] to offsets[m + 1] − 1.

    ``scipy.sparse.csr_matrix((distances, indices, offsets), shape)`` takes them.
    """

    offsets: object
    indices: object
    distances: object


class _Metric(NamedTuple):
    x: object
    z: object
    name: str
    parameters: object
    matrix: object
    last: object  # a step that follows the metric's own, or None


def _stacked(x, z, name):
    module = numpy()
    if len(x.shape) != 2 or (z is not None and len(z.shape) != 2):
        raise InvalidArgument(f"{name} is None, and x or z are no single matrices, expected {name} for all of them")
    if z is not None and x.shape[1] != z.shape[1]:
        raise InvalidArgument(f"z has the shape {tuple(z.shape)}, expected as many columns as x has, of shape {tuple(x.shape)}")
    x = floats_on_host(x, "x")
    return module.vstack([x, x if z is None else floats_on_host(z, "z")])


def _variances(x, z, V):
    return numpy().var(_stacked(x, z, "V"), axis=0, ddof=1) if V is None else floats_on_host(V, "V")


def _factor(x, z, VI):
    """L of the inverse covariance matrix VI = L·Lᵀ."""
    module = numpy()
    if VI is None:
        rows = _stacked(x, z, "VI")
        if rows.shape[0] <= rows.shape[1]:
            raise InvalidArgument(f"VI is None, and the covariance matrix of {rows.shape[0]} rows is singular in {rows.shape[1]} dimensions, "
                                  "expected more rows, or VI")
        try:
            VI = module.linalg.inv(module.atleast_2d(module.cov(rows.T)))
        except module.linalg.LinAlgError:
            raise InvalidArgument("VI is None, and the covariance matrix of the rows is singular, expected VI") from None
    VI = floats_on_host(VI, "VI")
    if VI.ndim != 2 or VI.shape[0] != VI.shape[1]:
        raise InvalidArgument(f"VI has the shape {VI.shape}, expected a square matrix")
    if not module.isfinite(VI).all():
        raise InvalidArgument("VI has infinities or NaN, expected finite numbers")
    values, vectors = module.linalg.eigh((VI + VI.T) / 2)
    if values.size and values[0] < -1e-12 * abs(values[-1]):
        raise InvalidArgument(f"VI has the eigenvalue {values[0]}, expected a matrix without negative ones")
    return vectors * module.sqrt(module.maximum(values, 0))


def _metric(metric, x, z, p, w, V, VI, base, epsilon):
    """What C's functions take of the arguments that SciPy's cdist has."""
    name = _SCIPY.get(text(metric, "metric"), metric)
    if p is w is V is VI is base is epsilon is None and name not in _OF_FLOATS and name != "mahalanobis":
        return _Metric(x, z, name, None, None, None)
    if name == "minkowski" and w is not None:
        name = "weighted_minkowski"
    for value, argument, takers in ((p, "p", ("minkowski", "weighted_minkowski", "minkowski_with_epsilon")), (w, "w", ("weighted_minkowski",)),
                                    (V, "V", ("seuclidean",)), (VI, "VI", ("mahalanobis",)), (base, "base", ("jensenshannon",)),
                                    (epsilon, "epsilon", ("minkowski_with_epsilon",))):
        if value is not None and name not in takers:
            raise InvalidArgument(f"{argument} is not None, which metric {metric!r} does not take; {' and '.join(takers)} do")
    if name == "weighted_minkowski" and w is None:
        raise InvalidArgument("w is None, expected the weights of metric 'weighted_minkowski'")
    if name in _OF_FLOATS or name == "mahalanobis":
        x, z = as_floats(x, "x"), None if z is None else as_floats(z, "z")
    parameters = {key: value for key, value in (("p", p), ("epsilon", epsilon)) if value is not None} or None
    if base is not None and not number(base, "base") > 1:
        raise InvalidArgument(f"base is {base}, expected a number above 1")
    matrix = floats_on_host(w, "w") if name == "weighted_minkowski" else None
    if name == "seuclidean":
        matrix = _variances(x, z, V)
    elif name == "mahalanobis":
        matrix = _factor(x, z, VI)
    if matrix is not None:
        argument, columns = {"weighted_minkowski": "w", "seuclidean": "V", "mahalanobis": "VI"}[name], tuple(x.shape[-1:])
        expected = 2 * columns if argument == "VI" else columns
        if columns and matrix.shape not in (expected, (1, *expected)):
            raise InvalidArgument(f"{argument} has the shape {matrix.shape}, expected {expected} for x of shape {tuple(x.shape)}")
        matrix = moved(matrix.astype("float64" if str(x.dtype).endswith("float64") else "float32"), x)
    return _Metric(x, z, name, parameters, matrix, None if base is None else steps.scale(1 / math.sqrt(math.log(base))))


def _last(of, epilogue):
    if of.last is None:
        return steps_of(epilogue)
    return steps_of(of.last if epilogue is None else of.last | epilogue)


def cdist(x, z=None, metric="euclidean", *, out=None, p=None, w=None, V=None, VI=None, base=None, epsilon=None, epilogue=None, dtype=None,
          may_cancel=False, kernel=None, require=(), precision="automatic"):
    """D(…,m,n) = epilogue( metric(X(…,m,:), Z(…,n,:)) ), with SciPy's names and defaults.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of one type
        Without z, x with itself: D is symmetric with a diagonal of exactly 0.
    metric : str
        SciPy's euclidean, sqeuclidean, cityblock, chebyshev, minkowski, cosine, correlation, hamming, mahalanobis, seuclidean, canberra,
        braycurtis, jensenshannon, jaccard, dice, rogerstanimoto, russellrao, sokalsneath, yule; and squared_euclidean, manhattan,
        inner_product, hellinger, kl_divergence, haversine (radians), minkowski_with_epsilon, bit_hamming, bit_jaccard, bit_dice,
        bit_rogerstanimoto, bit_russellrao, bit_sokalsneath, bit_yule of packed words.
    p : the power of minkowski, 2 by default
    w : K weights of minkowski
    V : K variances of seuclidean; by default those of all rows of x and z
    VI : K × K inverse covariance matrix of mahalanobis; by default that of all rows
    base : of jensenshannon's logarithm, e by default
    epsilon : differences below it count 0, of minkowski_with_epsilon
    out, epilogue, dtype, may_cancel, kernel, require, precision : as in `contract`

    Returns
    -------
    An array of shape (…, M, N), or `out`: float32 of x in float16, bfloat16 and float32, else float64.

    Raises
    ------
    As `contract`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.cdist(np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 4.0]]))
    array([[4.],
           [5.]])
    """
    of = _metric(metric, x, z, p, w, V, VI, base, epsilon)
    return _core.cdist(of.x, of.z, out, of.name, of.parameters, of.matrix, may_cancel, False, _last(of, epilogue),
                       0 if dtype is None else type_code(dtype, "dtype"), options(kernel, require, precision))


def kernel_matrix(x, z=None, kernel="gaussian", *, metric=None, p=None, w=None, V=None, VI=None, out=None, regularisation=0.0,
                  threshold=0.0, dtype=None, may_cancel=False, compute_kernel=None, require=(), precision="automatic", **hyperparameters):
    """D(…,m,n) = k(X(…,m,:), Z(…,n,:)): a kernel of each distance, which is stored nowhere.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of one type
        Without z, x with itself: D is symmetric.
    kernel : str, with its hyperparameters by name
        ======================================  =====================================
        laplace, matern12 (length)              exp(−d / length)
        gaussian (bandwidth)                    exp(−d² / (2·bandwidth²))
        matern32 (length)                       (1 + u)·exp(−u), u = √3·d / length
        matern52 (length)                       (1 + u + u²/3)·exp(−u), u = √5·d / length
        rational_quadratic (length, alpha)      (1 + d² / (2·alpha·length²))^−alpha
        polynomial (degree, scale, offset)      (scale·x·z + offset)^degree
        sigmoid (scale, offset)                 tanh(scale·x·z + offset)
        cosine                                  x·z / (‖x‖·‖z‖)
        ======================================  =====================================
    metric : str
        As in `cdist`; by default euclidean, and what polynomial, sigmoid and cosine are kernels of.
    regularisation : number that is added to the diagonal
    threshold : kernels of a smaller magnitude become 0, before the regularisation
    compute_kernel : the kernel that computes, as `kernel` in `contract`
    p, w, V, VI, out, dtype, may_cancel, require, precision : as in `cdist`

    Returns
    -------
    An array of shape (…, M, N), or `out`.

    Raises
    ------
    As `contract`; NotFound for a hyperparameter that is not the kernel's, InvalidArgument for one that is missing or out of range.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.kernel_matrix(np.array([[0.0], [2.0]]), kernel="laplace", length=2.0).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    of = _metric(_METRICS_OF_KERNELS.get(text(kernel, "kernel"), "euclidean") if metric is None else metric, x, z, p, w, V, VI, None, None)
    return _core.kernel_matrix(of.x, of.z, out, kernel, hyperparameters or None, of.name, of.parameters, of.matrix, regularisation,
                               threshold, may_cancel, 0 if dtype is None else type_code(dtype, "dtype"),
                               options(compute_kernel, require, precision))


def reduce_distances(x, z=None, metric="euclidean", reducer="minimum", *, k=None, threshold=None, or_equal=False, exclude_self=False, ranges=None,
                     p=None, w=None, V=None, VI=None, base=None, epsilon=None, kernel=None, epilogue=None, may_cancel=False, compute_kernel=None,
                     require=(), precision="automatic", **hyperparameters):
    """⊞_n of the distances metric(X(…,m,:), Z(…,n,:)) of each row m, or of kernels of them, without a matrix.

    Parameters
    ----------
    x, z, metric, p, w, V, VI, base, epsilon, epilogue : as in `cdist`
    reducer, k, threshold, or_equal, exclude_self, ranges : as in `reduce`
    kernel : a kernel of the distances, with its hyperparameters by name, as in `kernel_matrix`
    compute_kernel : a kernel of reductions by name

    Returns
    -------
    Reduced(values, indices), as `reduce` does.

    Raises
    ------
    As `reduce` and `kernel_matrix`.

    Examples
    --------
    A kernel density:

    >>> import numpy as np, rigel_semirings as rs
    >>> x = np.array([[0.0], [1.0]])
    >>> rs.reduce_distances(x, x, reducer="sum", kernel="laplace", length=1.0).values.round(3)
    array([1.368, 1.368])
    """
    if kernel is not None and base is not None:
        raise InvalidArgument(f"base is {base}, which kernels of distances do not take; divide their length by sqrt(log(base))")
    of = _metric(metric, x, z, p, w, V, VI, base, epsilon)
    reducing = reduction(reducer, k, threshold, or_equal, exclude_self)
    if kernel is None and hyperparameters:
        raise InvalidArgument(f"kernel is None, and {', '.join(hyperparameters)} would be hyperparameters of one")
    return Reduced(*_core.reduce_distances(of.x, of.z, of.name, of.parameters, of.matrix, kernel, hyperparameters or None, reducing, True,
                                           reducing[0] <= 4, may_cancel, _last(of, epilogue), ranges_of_call(ranges),
                                           options(compute_kernel, require, precision)))


def nearest(x, z=None, k=1, metric="euclidean", *, exclude_self=False, ranges=None, p=None, w=None, V=None, VI=None, base=None,
            epsilon=None, may_cancel=False, require=(), precision="automatic"):
    """The k nearest rows of z for each row of x, by ascending distance, equal ones by ascending index.

    Parameters
    ----------
    x, z, metric, p, w, V, VI, base, epsilon : as in `cdist`; of inner_product the largest products are the nearest
    k : 1 to 4096
    exclude_self : bool
        No row is its own neighbour, of x and z that are one set.
    ranges : as in `reduce`: which rows of z are looked at for which of x

    Returns
    -------
    Neighbors(distances, indices), both of shape (…, M, k). If there are fewer rows, ∞ and −1 follow. NaN comes last.

    Raises
    ------
    As `cdist`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.nearest(np.array([[0.0]]), np.array([[3.0], [1.0], [2.0]]), k=2)
    Neighbors(distances=array([[1., 2.]]), indices=array([[1, 2]]))
    """
    of = _metric(metric, x, z, p, w, V, VI, base, epsilon)
    reducing = reduction("largest" if of.name in _SIMILARITIES else "smallest", k, None, False, exclude_self)
    return Neighbors(*_core.reduce_distances(of.x, of.z, of.name, of.parameters, of.matrix, None, None, reducing, True, True, may_cancel,
                                             _last(of, None), ranges_of_call(ranges), options(None, require, precision)))


def assign(x, centres, metric="euclidean", *, ranges=None, p=None, w=None, V=None, VI=None, base=None, epsilon=None, may_cancel=False,
           require=(), precision="automatic"):
    """The nearest of the centres for each row of x, as k-means assigns points; of equally near ones the first.

    Parameters
    ----------
    x, centres : arrays of shapes (…, M, K) and (…, N, K)
    metric, p, w, V, VI, base, epsilon : as in `cdist`; of inner_product the centre with the largest product
    ranges : as in `reduce`: which centres are looked at for which of x

    Returns
    -------
    Neighbors(distances, indices), both of shape (…, M). NaN wins, as in NumPy's argmin. Of no centres: ∞ and −1.

    Raises
    ------
    As `cdist`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.assign(np.array([[0.0], [9.0]]), np.array([[1.0], [8.0]])).indices
    array([0, 1])
    """
    of = _metric(metric, x, centres, p, w, V, VI, base, epsilon)
    reducing = reduction("maximum" if of.name in _SIMILARITIES else "minimum", None, None, False, False)
    return Neighbors(*_core.reduce_distances(of.x, of.z, of.name, of.parameters, of.matrix, None, None, reducing, True, True, may_cancel,
                                             _last(of, None), ranges_of_call(ranges), options(None, require, precision)))


def radius_neighbors(x, z=None, radius=1.0, metric="euclidean", *, exclude_self=False, ranges=None, return_distances=True, p=None, w=None,
                     V=None, VI=None, epsilon=None, may_cancel=False, require=(), precision="automatic"):
    """All rows of z within a radius of each row of x: metric(X(m,:), Z(n,:)) ≤ radius, by ascending n.

    Parameters
    ----------
    x, z : arrays of shapes (M, K) and (N, K)
    metric, p, w, V, VI, epsilon : as in `cdist`, but inner_product
    exclude_self : bool
        No row is its own neighbour, of x and z that are one set.
    ranges : as in `nearest`
    return_distances : bool
        If not, distances are None.

    Returns
    -------
    RadiusNeighbors(offsets, indices, distances), a compressed sparse row matrix. NaN is within no radius.

    Raises
    ------
    As `cdist`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.radius_neighbors(np.array([[0.0], [5.0]]), np.array([[1.0], [-2.0], [4.5]]), radius=2.0)
    RadiusNeighbors(offsets=array([0, 2, 3]), indices=array([0, 1, 2]), distances=array([1. , 2. , 0.5]))
    """
    of = _metric(metric, x, z, p, w, V, VI, None, epsilon)
    return RadiusNeighbors(*_core.radius_neighbors(of.x, of.z, of.name, of.parameters, of.matrix, radius, exclude_self, return_distances,
                                                   may_cancel, ranges_of_call(ranges), options(None, require, precision)))


def logsumexp(x, z=None, metric="sqeuclidean", *, epilogue=None, exclude_self=False, ranges=None, p=None, w=None, V=None, VI=None,
              base=None, epsilon=None, may_cancel=False, require=(), precision="automatic"):
    """log Σ_n exp( epilogue( metric(X(…,m,:), Z(…,n,:)) ) ) of each row m, relative to its maximum, so that nothing overflows.

    Parameters
    ----------
    x, z, metric, p, w, V, VI, base, epsilon, epilogue : as in `cdist`
        With ``epilogue=scale(-1 / eps) | add(potentials)`` it is half a step of Sinkhorn's iteration.
    exclude_self, ranges : as in `reduce`

    Returns
    -------
    An array of shape (…, M). Of no rows of z: −∞.

    Raises
    ------
    As `cdist`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> from rigel_semirings.epilogue import scale
    >>> rs.logsumexp(np.array([[0.0]]), np.array([[0.0], [1.0]]), epilogue=scale(-1)).round(3)
    array([0.313])
    """
    return reduce_distances(x, z, metric, "log_sum_exp", exclude_self=exclude_self, ranges=ranges, p=p, w=w, V=V, VI=VI, base=base,
                            epsilon=epsilon, epilogue=epilogue, may_cancel=may_cancel, require=require, precision=precision).values

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands on reductions of distances: kernel matrices times vectors, clusters, optimal transport, kernel systems, gradients."""

from typing import NamedTuple

from . import _core
from ._arrays import as_array, as_floats, floats_on_host, is_torch, moved, numpy
from ._distances import _METRICS_OF_KERNELS, _last, _metric
from ._errors import InvalidArgument, Unsupported
from ._options import number, options, text, texts
from ._ranges import of_call as ranges_of_call


class Clusters(NamedTuple):
    """Centres, the nearest one of each point, the sum of squared distances from them, updates, and whether the last one reduced it little."""

    centres: object
    labels: object
    inertia: float
    iterations: int
    converged: bool


class Potentials(NamedTuple):
    """Potentials of a transport plan, the error of its marginals, its dual value, updates, and whether the error is at most the tolerance."""

    f: object
    g: object
    error: float
    value: float
    iterations: int
    converged: bool


class KernelSolution(NamedTuple):
    """The solution, its largest residual relative to a right side, steps, the preconditioner's rank, and whether the tolerance is met."""

    alpha: object
    residual: float
    iterations: int
    rank: int
    converged: bool


class KernelGradients(NamedTuple):
    """Gradients by points, or None, and by hyperparameters."""

    x: object
    z: object
    hyperparameters: dict


def _metric_of(kernel, metric):
    return _METRICS_OF_KERNELS.get(text(kernel, "kernel"), "euclidean") if metric is None else metric


def _positive(value, name):
    """A number of steps or a tolerance, which C takes for its default if it is 0."""
    if not number(value, name) > 0:
        raise InvalidArgument(f"{name} is {value}, expected a number above 0")
    return value


def kernel_matvec(x, z=None, v=None, kernel="gaussian", *, metric=None, p=None, w=None, V=None, VI=None, out=None, exclude_self=False,
                  ranges=None, may_cancel=False, compute_kernel=None, require=(), precision="automatic", **hyperparameters):
    """Σ_n k(X(…,m,:), Z(…,n,:))·V(…,n,:): a kernel matrix times V, without the matrix.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of one type
        Without z, x with itself.
    v : array of shape (…, N, D), D ≤ 512, or (N,), of floating-point numbers
    kernel, metric, p, w, V, VI : as in `kernel_matrix`, with hyperparameters by name
    exclude_self : bool
        The term of n = m is left out, of x and z that are one set.
    ranges : Ranges
        Which terms (m, n) there are, say those of clusters that are near one another; by default all.
    compute_kernel : a kernel of reductions by name
    out, may_cancel, require, precision : as in `contract`

    Returns
    -------
    An array of shape (…, M, D), or (…, M) of a v of one dimension: float32 if x is float16, bfloat16 or float32 and v not float64, else
    float64.

    Raises
    ------
    As `kernel_matrix`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.kernel_matvec(np.array([[0.0], [2.0]]), v=np.array([1.0, 2.0]), kernel="laplace", length=2.0).round(3)
    array([1.736, 2.368])
    """
    if v is None:
        raise InvalidArgument("v is None, expected an array of numbers to multiply by")
    of = _metric(_metric_of(kernel, metric), x, z, p, w, V, VI, None, None)
    return _core.kernel_matvec(of.x, of.z, v, out, kernel, hyperparameters or None, of.name, of.parameters, of.matrix, exclude_self,
                               may_cancel, ranges_of_call(ranges), options(compute_kernel, require, precision))


def softmax_matvec(x, z, v, metric="inner_product", *, epilogue=None, out=None, exclude_self=False, ranges=None, p=None, w=None, V=None,
                   VI=None, base=None, epsilon=None, may_cancel=False, compute_kernel=None, require=(), precision="automatic"):
    """Σ_n w(n)·V(…,n,:) / Σ_n w(n), w(n) = exp(epilogue(metric(X(…,m,:), Z(…,n,:)))): rows of V weighted by a softmax, as in attention.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of one type
    v : array of shape (…, N, D), D ≤ 512, or (N,), of floating-point numbers
    metric, p, w, V, VI, base, epsilon, epilogue : as in `cdist`. Attention is inner_product with epilogue.scale(1 / √K); smoothing by a
        Gaussian is sqeuclidean with a negative factor.
    exclude_self, ranges, compute_kernel, out, may_cancel, require, precision : as in `kernel_matvec`

    Returns
    -------
    As `kernel_matvec`. Rows whose scores are all −∞, those without scores, and those with NaN, are NaN.

    Raises
    ------
    As `cdist`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> x, v = np.array([[0.0], [3.0]]), np.array([[1.0], [5.0]])
    >>> rs.softmax_matvec(x, x, v).round(3)
    array([[3.],
           [5.]])
    """
    of = _metric(metric, x, z, p, w, V, VI, base, epsilon)
    return _core.softmax_matvec(of.x, of.z, v, out, of.name, of.parameters, of.matrix, exclude_self, may_cancel, _last(of, epilogue),
                                ranges_of_call(ranges), options(compute_kernel, require, precision))


def kmeans(x, k, centres=None, *, seed=0, iterations=100, tolerance=1e-4, may_cancel=False, kernel=None, require=(),
           precision="automatic"):
    """k centres of the rows of x with a small Σ_m ‖X(m,:) − centres(labels(m),:)‖², by k-means++ seeds and Lloyd's updates.

    Parameters
    ----------
    x : array of shape (M, K), of finite numbers; other types than float32 become float64
    k : 1 to M
    centres : array of shape (k, K)
        Where it starts, in place of seeds.
    seed : int
        It chooses the same points on every machine.
    iterations, tolerance : it stops after so many updates, or when one reduces the inertia by no more than `tolerance` times it
    may_cancel, kernel, require, precision : as in `contract`, of the distances

    Returns
    -------
    Clusters(centres, labels, inertia, iterations, converged). A centre without points becomes the point that is farthest from its own.

    Raises
    ------
    InvalidArgument if k is not from 1 to M, points are not finite, or a number is out of its range.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> rs.kmeans(np.array([[0.0], [1.0], [10.0], [11.0]]), 2).inertia
    1.0
    """
    x = as_floats(x, "x")
    if str(x.dtype).rsplit(".", 1)[-1] not in ("float32", "float64"):
        x = moved(floats_on_host(x, "x"), x) if not is_torch(x) else x.double() if x.is_floating_point() else x
    start = None
    if centres is not None:
        centres = floats_on_host(centres, "centres")
        if centres.shape != (k, *x.shape[1:]):
            raise InvalidArgument(f"centres has the shape {centres.shape}, expected {(k, *x.shape[1:])}")
        start = moved(centres.astype(str(x.dtype).rsplit(".", 1)[-1]), x)
    elif len(x.shape) == 2 and not 1 <= number(k, "k") <= x.shape[0]:
        raise InvalidArgument(f"k is {k}, expected 1 to {x.shape[0]}, the rows of x")
    return Clusters(*_core.kmeans(x, k, start, start is not None, seed, _positive(iterations, "iterations"),
                                  number(tolerance, "tolerance") or 5e-324, may_cancel, options(kernel, require, precision)))


def _weights(weights, like, name):
    if weights is not None:
        return as_floats(weights, name)
    return moved(numpy().ones(like.shape[:1] or 1), like)


def sinkhorn(x, z, a=None, b=None, metric="sqeuclidean", *, epsilon, tolerance=1e-6, iterations=1000, scaling=0.5, symmetric=True, p=None,
             w=None, V=None, VI=None, may_cancel=False, require=(), precision="automatic"):
    """Potentials f, g of the plan P(m,n) = a(m)·b(n)·exp((f(m) + g(n) − C(m,n)) / ε) between points x and z whose marginals are a and b.

    P has the least cost Σ P·C plus ε times its relative entropy, C(m,n) = metric(X(m,:), Z(n,:)). Neither C nor P is stored: each update of
    a potential is a `logsumexp`.

    Parameters
    ----------
    x, z : arrays of shapes (M, K) and (N, K), of one type
    a, b : M and N weights, 0 or more, which are divided by their sums; by default all equal
    metric, p, w, V, VI : as in `cdist`, a symmetric one
    epsilon : the regularisation ε > 0, in the units of C
    tolerance : of Σ_m abs(Σ_n P(m,n) − a(m)), and of columns
    iterations : at most so many updates of both potentials
    scaling : ε begins at the largest cost and is multiplied by this for each update; 1: it is constant
    symmetric : bool
        Both potentials are updated at the same time and averaged with the former ones; else one after the other, which takes fewer updates.
    may_cancel, require, precision : as in `contract`

    Returns
    -------
    Potentials(f, g, error, value, iterations, converged); f and g are float64.

    Raises
    ------
    InvalidArgument if shapes do not fit, weights are negative, not finite or all 0, or a number is out of its range.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> plan = rs.sinkhorn(np.array([[0.0], [1.0]]), np.array([[2.0], [3.0]]), epsilon=0.5)
    >>> plan.converged, round(plan.value, 3)
    (True, 4.283)
    """
    of = _metric(metric, as_array(x, "x"), as_array(z, "z"), p, w, V, VI, None, None)
    return Potentials(*_core.sinkhorn(of.x, of.z, _weights(a, of.x, "a"), _weights(b, of.z, "b"), of.name, of.parameters, of.matrix,
                                      epsilon, _positive(tolerance, "tolerance"), _positive(iterations, "iterations"),
                                      _positive(scaling, "scaling"), not symmetric, may_cancel, options(None, require, precision)))


def sinkhorn_barycentre(x, z, g, v=None, b=None, metric="sqeuclidean", *, epsilon, out=None, p=None, w=None, V=None, VI=None,
                        may_cancel=False, require=(), precision="automatic"):
    """Σ_n P(m,n)·V(n,:) / Σ_n P(m,n) of a plan of `sinkhorn`: where it moves the points of x to, if V is z.

    Parameters
    ----------
    x, z, b, metric, p, w, V, VI, epsilon : those of `sinkhorn`
    g : what it returned
    v : array of shape (N, D) or (N,); by default z
    out, may_cancel, require, precision : as in `contract`

    Returns
    -------
    An array of shape (M, D), or (M,).

    Raises
    ------
    As `sinkhorn`.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> x, z = np.array([[0.0], [1.0]]), np.array([[2.0], [3.0]])
    >>> rs.sinkhorn_barycentre(x, z, rs.sinkhorn(x, z, epsilon=0.1).g, epsilon=0.1).round(3)
    array([[2.],
           [3.]])
    """
    of = _metric(metric, as_array(x, "x"), as_array(z, "z"), p, w, V, VI, None, None)
    return _core.sinkhorn_barycentre(of.x, of.z, _weights(b, of.z, "b"), g, of.z if v is None else v, out, of.name, of.parameters, of.matrix,
                                     epsilon, may_cancel, options(None, require, precision))


def kernel_solve(x, y, kernel="gaussian", *, regularisation=0.0, metric=None, p=None, w=None, V=None, VI=None, tolerance=1e-6,
                 iterations=1000, rank=100, progress=None, out=None, may_cancel=False, require=(), precision="automatic", **hyperparameters):
    """α with (K + λI)·α = y, K(m,n) = k(X(m,:), X(n,:)), without K: kernel ridge regression, by preconditioned conjugate gradients.

    Parameters
    ----------
    x : array of shape (M, K)
    y : array of shape (M, R), R ≤ 512, or (M,), of float32 or float64
    kernel, metric, p, w, V, VI : as in `kernel_matrix`, with hyperparameters by name
    regularisation : λ ≥ 0
    tolerance : of ‖y − (K + λI)·α‖ / ‖y‖ for each right side. With α of float32 it does not get much below 2⁻²⁴·‖K‖·‖α‖/‖y‖.
    iterations : at most so many steps, each a `kernel_matvec` of all right sides
    rank : of the preconditioner, a pivoted partial Cholesky factor: 8·rank·M bytes; 0: none
    progress : function of (iteration, residual), called after each step; it ends the steps by returning False
    out, may_cancel, require, precision : as in `contract`

    Returns
    -------
    KernelSolution(alpha, residual, iterations, rank, converged). If K + λI is not positive definite, or something is NaN, `converged` is
    False and alpha is where the steps ended.

    Raises
    ------
    As `kernel_matrix`; and what `progress` raises.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> x, y = np.array([[0.0], [1.0]]), np.array([1.0, 2.0])
    >>> rs.kernel_solve(x, y, "laplace", regularisation=1.0, length=1 / np.log(2)).alpha.round(3)
    array([0.267, 0.933])
    """
    of = _metric(_metric_of(kernel, metric), x, None, p, w, V, VI, None, None)
    if progress is not None and not callable(progress):
        raise Unsupported(f"progress is {progress!r}, expected a function of (iteration, residual)")
    return KernelSolution(*_core.kernel_solve(of.x, y, out, kernel, hyperparameters or None, of.name, of.parameters, of.matrix,
                                              regularisation, _positive(tolerance, "tolerance"), _positive(iterations, "iterations"),
                                              -1 if rank == 0 else rank, progress, may_cancel, options(None, require, precision)))


def kernel_matrix_gradient(x, z=None, g=None, kernel="gaussian", *, metric=None, p=None, wrt=(), points=True, epsilon=0.0,
                           may_cancel=False, **hyperparameters):
    """Gradients of a loss whose gradient by `kernel_matrix(x, z, kernel)` is G: dX(…,m,:) = Σ_n G(…,m,n)·∂k/∂x, and so on.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of float32 or float64
        Without z, x with itself: dX is the sum of both gradients.
    g : array of shape (…, M, N)
    kernel, metric, p : as in `kernel_matrix`, with hyperparameters by name: those over euclidean, manhattan and minkowski, polynomial and
        sigmoid
    wrt : names of hyperparameters
        Gradients by these, Σ_mn G(…,m,n)·∂k/∂θ, of shape (…).
    points : bool
        Whether dX and dZ are wanted.
    epsilon : differences of coordinates below it count as 0 in dX and dZ

    Returns
    -------
    KernelGradients(x, z, hyperparameters); z is None without z. Points that coincide have the subgradient 0.

    Raises
    ------
    As `kernel_matrix`; Unsupported for other metrics.

    Examples
    --------
    >>> import numpy as np, rigel_semirings as rs
    >>> x, ones = np.array([[0.0], [1.0]]), np.ones((2, 2))
    >>> float(rs.kernel_matrix_gradient(x, g=ones, kernel="laplace", wrt=["length"], length=1.0).hyperparameters["length"].round(4))
    0.7358
    """
    if g is None:
        raise InvalidArgument("g is None, expected the gradient by the kernel matrix")
    name = _metric_of(kernel, metric)
    of = _metric(name, x, z, p, None, None, None, None, None)
    names = texts(wrt, "wrt")
    return KernelGradients(*_core.kernel_matrix_gradient(of.x, of.z, g, kernel, hyperparameters or None, of.name, of.parameters, points,
                                                         points and z is not None, names, epsilon, may_cancel))

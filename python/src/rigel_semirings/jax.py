# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX, with gradients, by `jax.ffi`: XLA calls the extension, in compiled programs as well.

`jax.jit` takes them, and `jax.vmap` makes one call of a batch. Gradients are those of reverse mode: `jax.grad`, `jax.vjp`, `jax.jacrev`. Shapes,
types and names are checked when JAX traces a call; what only the device can refuse is an error of XLA's at run time, with the same words.
Hyperparameters and all arguments but arrays are numbers and names, which programs are compiled for. On a GPU calls are on XLA's stream. The
extension is the same as that of `rigel_semirings.contract` and the like, whose arguments are explained there.

>>> import jax, jax.numpy as jnp, rigel_semirings.jax as rj
>>> x = jnp.array([[0.0, 0.0], [3.0, 4.0]])
>>> jax.grad(lambda x: rj.cdist(x, jnp.zeros((1, 2))).sum())(x).round(3).tolist()
[[0.0, 0.0], [0.6000000238418579, 0.800000011920929]]
"""

import functools
from typing import NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from . import _core
from ._arrays import CODES, NAMES
from ._distances import _METRICS_OF_KERNELS, _SCIPY, _SIMILARITIES, Neighbors
from ._errors import InvalidArgument, Unsupported
from ._options import options
from ._semiring import Semiring, of_call

__all__ = ["cdist", "contract", "kernel_matvec", "nearest"]

# The semirings and metrics that have gradients; of metrics with the power p of |x − z|_p, None: the one that the call gives.
_SEMIRINGS_WITH_GRADIENTS = ("plus_times", "log_plus", "min_plus", "max_plus", "max_min", "min_max", "l1", "l2_squared", "lp")
_POWERS = {"euclidean": 2.0, "squared_euclidean": 2.0, "manhattan": 1.0, "minkowski": None}


def _register():
    for name, handlers in _core.jax_handlers().items():
        for platform, handler in zip(("cpu", "CUDA"), handlers, strict=True):
            try:
                jax.ffi.register_ffi_target(f"rigel_{name}", handler, platform=platform)
            except Exception as error:
                raise Unsupported(f"jaxlib {jax.lib.__version__} does not take handlers of this package: {error}") from None


_register()


class _Options(NamedTuple):
    """The options of a call, as attributes: names and numbers that a program is compiled for."""

    kernel_name: str
    require: int
    precision: int


def _options(kernel, require, precision):
    given = options(kernel, require, precision)
    return _Options("", 0, 0) if given is None else _Options(given[0] or "", given[1], given[2])


def _numbers(parameters):
    """A dict as part of a static argument."""
    found = []
    for name, value in sorted((parameters or {}).items()):
        try:
            found.append((name, float(value)))
        except (TypeError, ValueError):
            raise Unsupported(f"{name} is {value!r}, expected a number that is known when the call is traced; a length that is learned scales the "
                              "points instead") from None
    return tuple(found)


def _attributes(**given):
    """Attributes of a call: text, whole numbers, options, and dictionaries of numbers."""
    all_ = {}
    for name, value in given.items():
        if isinstance(value, _Options):
            all_.update(_attributes(**value._asdict()))
        elif isinstance(value, tuple):
            all_[name] = {key: np.float64(number) for key, number in value}
        else:
            all_[name] = value if isinstance(value, str) else np.int64(value)
    return all_


# ---- shapes ----


def _code(array, name):
    text = str(array.dtype)
    if text not in CODES and text != "bool":
        raise Unsupported(f"{name} holds {text}, expected {', '.join(NAMES.values())} or bool")
    return CODES.get(text, CODES["uint8"])


def _nowhere(array, name):
    """What stands for the matrices of an array while a call is checked."""
    if array.ndim < 2:
        raise InvalidArgument(f"{name} has the shape {array.shape}, expected dimensions, at least 2: (..., rows, columns)")
    return _core.nowhere(*array.shape[-2:], _code(array, name), array.dtype == bool)


def _result(rows, columns, code):
    return _core.nowhere(rows, columns, code, False)


def _batch(**arrays):
    """The leading dimensions of a call."""
    batch = ()
    for name, array in arrays.items():
        try:
            batch = np.broadcast_shapes(batch, array.shape[:-2])
        except ValueError:
            raise InvalidArgument(f"{name} of shape {array.shape} does not broadcast with the batch {batch}") from None
    return batch


def _call(name, results, *operands, **attributes):
    """One call of a handler. Operands get as many leading dimensions as results have."""
    leading = max(len(shape) for shape, _ in results)
    operands = [one.reshape((1,) * (leading - one.ndim) + one.shape) for one in operands]
    return jax.ffi.ffi_call(f"rigel_{name}", [jax.ShapeDtypeStruct(*one) for one in results], vmap_method="expand_dims")(
        *operands, **_attributes(**attributes))


def _summed(gradient, like):
    """The gradient by an argument that was broadcast, in its type."""
    extra = gradient.ndim - like.ndim
    axes = tuple(range(extra)) + tuple(i + extra for i, extent in enumerate(like.shape) if extent == 1 and gradient.shape[i + extra] != 1)
    return (gradient.sum(axes) if axes else gradient).reshape(like.shape).astype(like.dtype)


def _transposed(array):
    return jnp.swapaxes(array, -1, -2)


def _distance_type(x):
    return np.dtype("float32") if str(x.dtype) in ("float16", "bfloat16", "float32") else np.dtype("float64")


def _float64_or_refused(dtype):
    if dtype == np.float64 and not jax.config.jax_enable_x64:
        raise Unsupported("results are float64, which JAX has with jax.config.update('jax_enable_x64', True), expected float32 arguments")
    return dtype


# ---- contract ----


class _Contract(NamedTuple):
    semiring: str
    text: str  # the key of a semiring from text, and `semiring` is ""
    parameters: tuple
    dtype: object  # of the results, or None
    may_cancel: bool
    options: _Options


_texts = {}  # stays, as programs of XLA's do


def _key(semiring, array):
    """The name of a semiring from text in programs of XLA's: its texts."""
    texts = {member: getattr(semiring, member) for member in ("multiply", "add", "identity", "step", "result")}
    key = repr((semiring.name, texts, semiring.parameters, semiring.commutative, semiring.fields, semiring.result_type))
    _texts[key] = semiring._core
    _core.keep_text(key, semiring._core, _code(array, "a"))
    return key


def _contract_type(call, a):
    """The type of results, and whether they are bool."""
    if call.dtype is not None:
        return np.dtype(call.dtype)
    if call.text:
        own = _code(a, "a")
        code = _texts[call.text].result_type(own)
        return a.dtype if code == own else np.dtype(NAMES[code])
    if jnp.issubdtype(a.dtype, jnp.floating):
        return a.dtype
    code = _core.result_type(call.semiring, _code(a, "a"))
    return a.dtype if a.dtype == bool and code == CODES["uint8"] else np.dtype(NAMES[code])


def _contract_call(call, a, b):
    dtype = _contract_type(call, a)
    of_a, of_b = _nowhere(a, "a"), _nowhere(b, "b")
    batch = _batch(a=a, b=b)
    code = CODES.get(str(dtype), CODES["uint8"])
    _core.contract(of_a, of_b, _result(a.shape[-2], b.shape[-1], code), _texts[call.text] if call.text else call.semiring,
                   dict(call.parameters) or None, 0, False, call.may_cancel, None, code, None)
    return _call("contract", [((*batch, a.shape[-2], b.shape[-1]), dtype)], a, b, semiring=call.semiring, text=call.text,
                 parameters=call.parameters, may_cancel=call.may_cancel, options=call.options)[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _contract(call, a, b):
    return _contract_call(call, a, b)


def _contract_forward(call, a, b):
    if call.semiring not in _SEMIRINGS_WITH_GRADIENTS:
        name = call.semiring or "a text"
        raise Unsupported(f"contract over {name!r} has no gradient, expected one of {', '.join(_SEMIRINGS_WITH_GRADIENTS)}")
    c = _contract(call, a, b)  # not the bare call, so that derivatives of the gradient see what depends on it
    return c, (a, b, c if call.semiring == "log_plus" else None)


def _contract_backward(call, saved, dc):
    a, b, c = saved
    if call.semiring == "plus_times":
        plain = call._replace(dtype=None, parameters=(), options=_Options("", 0, 0))
        da, db = _contract(plain, dc, _transposed(b).astype(dc.dtype)), _contract(plain, _transposed(a).astype(dc.dtype), dc)
    else:
        da, db = _contract_gradients(call, a, b, dc, c)
    return _summed(da, a), _summed(db, b)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _contract_gradients(call, a, b, dc, c):
    wide = jnp.promote_types(a.dtype, jnp.float32)
    dc, c = dc.astype(wide), None if c is None else c.astype(wide)
    shape = a.shape
    if b.ndim == 2 and a.ndim > 2:  # rows of a batch with one B are rows of one product
        a, dc, c = (None if one is None else one.reshape(-1, one.shape[-1]) for one in (a, dc, c))
    batch = _batch(a=a, b=b)
    da, db = _call("contract_backward", [((*batch, *a.shape[-2:]), wide), ((*batch, *b.shape[-2:]), wide)], a, b, dc,
                   *(() if c is None else (c,)), semiring=call.semiring, parameters=call.parameters)
    return da.reshape(shape) if b.ndim == 2 else da, db


def _no_second_gradient(call, *operands):
    raise Unsupported("contract has second derivatives over plus_times alone")


_contract_gradients.defvjp(_no_second_gradient, _no_second_gradient)
_contract.defvjp(_contract_forward, _contract_backward)
_compiled_contract = jax.jit(_contract, static_argnums=0)


def contract(a, b, semiring="min_plus", *, parameters=None, dtype=None, may_cancel=False, kernel=None, require=(), precision="automatic"):
    """C(…,m,n) = ⊕_k A(…,m,k) ⊗ B(…,k,n), as `rigel_semirings.contract`, of JAX arrays.

    Parameters
    ----------
    a, b : arrays of shapes (…, M, K) and (…, K, N), of one type; leading dimensions broadcast
    semiring, parameters, dtype, may_cancel, kernel, require, precision : as of `rigel_semirings.contract`

    Returns
    -------
    An array of shape (…, M, N). It has gradients over plus_times, of any order, and of the first over log_plus, min_plus, max_plus, max_min,
    min_max, l1, l2_squared and lp. Of equal candidates of a minimum or maximum the first gets the gradient.

    Raises
    ------
    As `rigel_semirings.contract`, when the call is traced; Unsupported (a TypeError) for the gradient over another semiring.

    Examples
    --------
    >>> import jax.numpy as jnp, rigel_semirings.jax as rj
    >>> rj.contract(jnp.array([[1.0, 4.0]]), jnp.array([[5.0], [1.0]]), "min_plus")
    Array([[5.]], dtype=float32)
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    own = semiring
    semiring, parameters = of_call(semiring, parameters)
    text = _key(own, a) if isinstance(own, Semiring) else ""
    call = _Contract("" if text else semiring, text, _numbers(parameters), None if dtype is None else np.dtype(dtype).name, bool(may_cancel),
                     _options(kernel, require, precision))
    return _compiled_contract(call, a, b)


# ---- cdist ----


class _Distance(NamedTuple):
    metric: str
    parameters: tuple
    may_cancel: bool
    options: _Options

    @property
    def power(self):
        p = _POWERS.get(self.metric)
        return dict(self.parameters).get("p", 2.0) if p is None else p


def _distance(metric, p, may_cancel, kernel, require, precision):
    return _Distance(_SCIPY.get(metric, metric), _numbers({} if p is None else {"p": p}), bool(may_cancel), _options(kernel, require, precision))


def _cdist_call(call, x, z):
    dtype = _distance_type(x)
    of_x, of_z = _nowhere(x, "x"), _nowhere(z, "z")
    batch = _batch(x=x, z=z)
    _core.cdist(of_x, of_z, _result(x.shape[-2], z.shape[-2], CODES[dtype.name]), call.metric, dict(call.parameters) or None, None,
                call.may_cancel, False, None, 0, None)
    return _call("cdist", [((*batch, x.shape[-2], z.shape[-2]), _float64_or_refused(dtype))], x, z, metric=call.metric,
                 parameters=call.parameters, may_cancel=call.may_cancel, options=call.options)[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _cdist(call, x, z):
    return _cdist_call(call, x, z)


def _cdist_forward(call, x, z):
    if call.metric not in _POWERS and call.metric != "inner_product":
        raise Unsupported(f"cdist of {call.metric!r} has no gradient, expected one of {', '.join(_POWERS)}, inner_product")
    d = _cdist(call, x, z)
    return d, (x, z, d)


def _cdist_backward(call, saved, grad):
    x, z, d = saved
    wide_x, wide_z = x.astype(d.dtype), z.astype(d.dtype)
    if call.metric == "inner_product":
        return _summed(grad @ wide_z, x), _summed(_transposed(grad) @ wide_x, z)
    p = call.power
    # Of |x − z|_p the weight of a pair is G·d^(1−p). Points that coincide have the subgradient 0.
    if call.metric == "squared_euclidean":
        weights = 2 * grad
    elif p == 1:
        weights = grad
    else:
        apart = d != 0
        weights = jnp.where(apart, grad * jnp.where(apart, d, 1)**(1 - p), 0)
    of = (p, call.may_cancel)
    return _summed(_cdist_gradient(of, weights, wide_x, wide_z), x), _summed(_cdist_gradient(of, _transposed(weights), wide_z, wide_x), z)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _cdist_gradient(of, weights, x, z):
    """Y(m,:) = Σ_n A(m,n)·s(X(m,:) − Z(n,:)), s(t) = sign(t)·|t|^(p−1)."""
    p, may_cancel = of
    batch = _batch(weights=weights, x=x, z=z)
    ones = jnp.ones((1, z.shape[-2]), x.dtype)
    return _call("cdist_gradient", [((*batch, *x.shape[-2:]), x.dtype)], weights, x, z, ones, parameters=(("p", p),), may_cancel=may_cancel)[0]


def _cdist_gradient_forward(of, weights, x, z):
    if of[0] != 2:
        raise Unsupported(f"distances with p = {of[0]} have no second derivative here, expected euclidean or squared_euclidean")
    return _cdist_gradient(of, weights, x, z), (weights, x, z)


def _cdist_gradient_backward(of, saved, grad):
    """It is linear in each argument."""
    weights, x, z = saved
    by_weights = (grad * x).sum(-1, keepdims=True) - grad @ _transposed(z)
    return (_summed(by_weights, weights), _summed(grad * weights.sum(-1, keepdims=True), x), _summed(-(_transposed(weights) @ grad), z))


_cdist_gradient.defvjp(_cdist_gradient_forward, _cdist_gradient_backward)
_cdist.defvjp(_cdist_forward, _cdist_backward)
_compiled_cdist = jax.jit(_cdist, static_argnums=0)


def cdist(x, z=None, metric="euclidean", *, p=None, may_cancel=False, kernel=None, require=(), precision="automatic"):
    """D(…,m,n) = metric(X(…,m,:), Z(…,n,:)), as `rigel_semirings.cdist`, of JAX arrays.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of one type; leading dimensions broadcast. Without z, x with itself
    metric : str
        All but seuclidean, mahalanobis and weighted minkowski, which have arrays of their own.
    p, may_cancel, kernel, require, precision : as of `rigel_semirings.cdist`

    Returns
    -------
    An array of shape (…, M, N), float32 of x in float16, bfloat16 and float32, else float64. It has gradients of euclidean, squared_euclidean,
    manhattan, minkowski and inner_product; those of euclidean, squared_euclidean and inner_product have gradients, too. Points that coincide
    have the subgradient 0.

    Raises
    ------
    As `rigel_semirings.cdist`, when the call is traced; Unsupported (a TypeError) for the gradient of another metric, and for results in
    float64 without jax_enable_x64.

    Examples
    --------
    >>> import jax.numpy as jnp, rigel_semirings.jax as rj
    >>> rj.cdist(jnp.array([[0.0, 0.0]]), jnp.array([[3.0, 4.0]]), "cityblock")
    Array([[7.]], dtype=float32)
    """
    x = jnp.asarray(x)
    return _compiled_cdist(_distance(metric, p, may_cancel, kernel, require, precision), x, x if z is None else jnp.asarray(z))


# ---- kernel_matvec ----


class _Matvec(NamedTuple):
    kernel: str
    hyperparameters: tuple
    metric: str
    parameters: tuple
    may_cancel: bool
    options: _Options


def _matvec_call(call, x, z, v):
    dtype = np.dtype("float64") if v.dtype == np.float64 else _distance_type(x)
    of_x, of_z, of_v = _nowhere(x, "x"), _nowhere(z, "z"), _nowhere(v, "v")
    batch = _batch(x=x, z=z, v=v)
    _core.kernel_matvec(of_x, of_z, of_v, _result(x.shape[-2], v.shape[-1], CODES[dtype.name]), call.kernel, dict(call.hyperparameters) or None,
                        call.metric, dict(call.parameters) or None, None, False, call.may_cancel, None, None)
    return _call("kernel_matvec", [((*batch, x.shape[-2], v.shape[-1]), _float64_or_refused(dtype))], x, z, v, **call._asdict())[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _matvec(call, x, z, v):
    return _matvec_call(call, x, z, v)


def _matvec_forward(call, x, z, v):
    of_products = call.kernel in ("polynomial", "sigmoid")
    metrics = ("inner_product",) if of_products else ("euclidean", "manhattan", "minkowski")
    if call.kernel == "cosine" or call.metric not in metrics:
        raise Unsupported(f"kernel_matvec of {call.kernel!r} over {call.metric!r} has no gradient, expected polynomial or sigmoid over "
                          "inner_product, or a kernel of euclidean, manhattan or minkowski")
    return _matvec(call, x, z, v), (x, z, v)


def _matvec_backward(call, saved, g):
    wide = [one.astype(g.dtype) for one in saved]
    return tuple(_summed(one, of) for one, of in zip(_matvec_gradients(call, *wide, g), saved, strict=True))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _matvec_gradients(call, x, z, v, g):
    batch = _batch(x=x, z=z, v=v, g=g)
    return _call("kernel_matvec_gradient", [((*batch, *one.shape[-2:]), g.dtype) for one in (x, z, v)], x, z, v, g, kernel=call.kernel,
                 hyperparameters=call.hyperparameters, metric=call.metric, parameters=call.parameters, may_cancel=call.may_cancel)


def _no_second_derivative(call, *operands):
    raise Unsupported("kernel_matvec has no second derivative here, expected rigel_semirings.jax.cdist and JAX's own functions of it")


_matvec_gradients.defvjp(_no_second_derivative, _no_second_derivative)
_matvec.defvjp(_matvec_forward, _matvec_backward)
_compiled_matvec = jax.jit(_matvec, static_argnums=0)


def kernel_matvec(x, z=None, v=None, kernel="gaussian", *, metric=None, p=None, may_cancel=False, compute_kernel=None, require=(),
                  precision="automatic", **hyperparameters):
    """Σ_n k(X(…,m,:), Z(…,n,:))·V(…,n,:), as `rigel_semirings.kernel_matvec`, of JAX arrays.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of one type; leading dimensions broadcast. Without z, x with itself
    v : array of shape (…, N, D), D ≤ 512, or (N,), of floating-point numbers
    kernel, metric, p, may_cancel, compute_kernel, require, precision : as of `rigel_semirings.kernel_matvec`, with hyperparameters by name, which
        are numbers. A length that is learned scales the points instead: ``kernel_matvec(x / length, v=v, kernel="laplace", length=1)``.

    Returns
    -------
    An array of shape (…, M, D), or (…, M) of a v of one dimension: float32 if x is float16, bfloat16 or float32 and v not float64, else
    float64. It has gradients of the first order by x, z and v, of all kernels but cosine, over euclidean, manhattan and minkowski, and
    inner_product of polynomial and sigmoid; no M × N matrix is stored for them.

    Raises
    ------
    As `rigel_semirings.kernel_matvec`, when the call is traced; Unsupported (a TypeError) for other gradients, for hyperparameters that are
    traced, and for results in float64 without jax_enable_x64.

    Examples
    --------
    >>> import jax.numpy as jnp, rigel_semirings.jax as rj
    >>> rj.kernel_matvec(jnp.array([[0.0], [2.0]]), v=jnp.array([1.0, 2.0]), kernel="laplace", length=2.0).round(2)
    Array([1.74, 2.37], dtype=float32)
    """
    if v is None:
        raise InvalidArgument("v is None, expected an array of numbers to multiply by")
    x, v = jnp.asarray(x), jnp.asarray(v)
    metric = _METRICS_OF_KERNELS.get(kernel, "euclidean") if metric is None else _SCIPY.get(metric, metric)
    call = _Matvec(kernel, _numbers(hyperparameters), metric, _numbers({} if p is None else {"p": p}), bool(may_cancel),
                   _options(compute_kernel, require, precision))
    result = _compiled_matvec(call, x, x if z is None else jnp.asarray(z), v[:, None] if v.ndim == 1 else v)
    return result[..., 0] if v.ndim == 1 else result


# ---- nearest ----


class _Nearest(NamedTuple):
    distance: _Distance
    k: int
    exclude_self: bool


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _nearest(call, x, z):
    of, dtype = call.distance, _distance_type(x)
    index = np.dtype("int64" if jax.config.jax_enable_x64 else "int32")
    of_x, of_z = _nowhere(x, "x"), _nowhere(z, "z")
    batch = _batch(x=x, z=z)
    reducer = 4 if of.metric in _SIMILARITIES else 3
    _core.reduce_distances(of_x, of_z, of.metric, dict(of.parameters) or None, None, None, None,
                           (reducer, call.k, 0.0, False, call.exclude_self), True, True, of.may_cancel, None, None, None)
    shape = (*batch, x.shape[-2], call.k)
    return _call("nearest", [(shape, _float64_or_refused(dtype)), (shape, index)], x, z, metric=of.metric, parameters=of.parameters,
                 may_cancel=of.may_cancel, reducer=reducer, k=call.k, exclude_self=call.exclude_self, options=of.options)


def _no_gradient(call, *operands):
    raise Unsupported("nearest has no gradient, expected distances of the rows that it finds, such as jnp.linalg.norm(x[:, None] - z[indices], "
                      "axis=-1)")


_nearest.defvjp(_no_gradient, _no_gradient)
_compiled_nearest = jax.jit(_nearest, static_argnums=0)


def nearest(x, z=None, k=1, metric="euclidean", *, exclude_self=False, p=None, may_cancel=False, require=(), precision="automatic"):
    """The k nearest rows of z for each row of x, as `rigel_semirings.nearest`, of JAX arrays.

    Parameters
    ----------
    x, z : arrays of shapes (…, M, K) and (…, N, K), of one type; leading dimensions broadcast
    k : 1 to 4096
    metric, exclude_self, p, may_cancel, require, precision : as of `rigel_semirings.nearest`, but metrics with arrays of their own

    Returns
    -------
    Neighbors(distances, indices), both of shape (…, M, k); indices are int32, or int64 with jax_enable_x64. They have no gradient.

    Raises
    ------
    As `rigel_semirings.nearest`, when the call is traced; Unsupported (a TypeError) for results in float64 without jax_enable_x64.

    Examples
    --------
    >>> import jax.numpy as jnp, rigel_semirings.jax as rj
    >>> rj.nearest(jnp.array([[0.0]]), jnp.array([[3.0], [1.0], [2.0]]), k=2).indices
    Array([[1, 2]], dtype=int32)
    """
    call = _Nearest(_distance(metric, p, may_cancel, None, require, precision), k, bool(exclude_self))
    x = jnp.asarray(x)
    return Neighbors(*_compiled_nearest(call, x, x if z is None else jnp.asarray(z)))

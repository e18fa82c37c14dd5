# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch, with gradients: `torch.ops.rigel`, functions that call them, and a layer.

`torch.compile` takes them without a graph break, `torch.vmap` without a loop; `torch.func.grad` takes no operators of libraries. On a GPU calls
are on torch's current stream, so that ``torch.cuda.graph`` captures them. The extension is the same as that of `rigel_semirings.contract` and the
like, whose arguments are explained there.

>>> import torch, rigel_semirings.torch as rt
>>> x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
>>> rt.cdist(x, torch.zeros(1, 2)).sum().backward()
>>> x.grad
tensor([[0.0000, 0.0000],
        [0.6000, 0.8000]])
"""

import functools
import math

import torch

from . import _core
from ._arrays import CODES, NAMES
from ._distances import _METRICS_OF_KERNELS, _SCIPY
from ._errors import InvalidArgument, Unsupported
from ._linear import _TIERS, _activation
from ._options import chosen, options, text

__all__ = ["Linear", "cdist", "contract", "kernel_matrix", "linear"]

_library = torch.library.Library("rigel", "FRAGMENT")


def _define(name, schema, run, fake, setup=None, backward=None, own=()):
    """An operator, with its function for tensors, one for shapes, its gradient and, if its first arguments are matrices and rows, its batching
    rule (`_batched`). Returns the function that calls it."""
    _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    torch.library.register_fake(f"rigel::{name}", fake, lib=_library)
    torch.library.register_autograd(f"rigel::{name}", backward, setup_context=setup, lib=_library)
    operator = getattr(torch.ops.rigel, name).default
    torch.library.register_vmap(f"rigel::{name}", _batched(operator, *own), lib=_library)
    tensors = len(own)

    def forward(ctx, *args):
        output = run(*args)
        setup(ctx, args, output)
        return output

    function = type(f"{name}_recorded", (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    recorded = super(torch.autograd.Function, function).apply  # without what it does for transforms

    def call(*args):
        first = args[:tensors]
        if not _are_plain(first):
            return operator(*args)
        if _is_recording():
            for tensor in first:
                if tensor is not None and tensor.requires_grad:
                    return recorded(*args)
        return run(*args)

    return call


# What the dispatcher knows of tensors that are nothing but memory of a device.
_plain_keys, _learned = set(), set()


def _learn_plain_keys(device):
    _learned.add(device)
    for mode in (False, True):
        with torch.inference_mode(mode):
            _plain_keys.add(torch._C._dispatch_keys(torch.empty(0, device=device)).raw_repr())


_learn_plain_keys("cpu")
_mode_count, _has_function_mode, _transform = (torch._C._len_torch_dispatch_stack, torch._C._is_torch_function_mode_enabled,
                                               torch._C._functorch.peek_interpreter_stack)
_tracing, _is_profiled, _keys_of = torch._C._get_tracing_state, torch._C._autograd._profiler_enabled, torch._C._dispatch_keys
_is_compiling, _is_recording = torch.compiler.is_compiling, torch.is_grad_enabled
_kinds = (torch.Tensor, torch.nn.Parameter)


def _are_plain(tensors):
    """Whether a call on these tensors, or None, needs nothing of torch's dispatcher, which takes longer than a small call: no compiler, mode,
    transform, trace or profiler has to see it."""
    if _is_compiling() or _mode_count() or _has_function_mode() or _transform() is not None or _tracing() is not None or _is_profiled():
        return False
    for tensor in tensors:
        if tensor is None:
            continue
        if type(tensor) not in _kinds:
            return False
        if tensor.is_cuda and "cuda" not in _learned:
            _learn_plain_keys("cuda")
        if _keys_of(tensor).raw_repr() not in _plain_keys:
            return False
    return True


def _torch_type(code):
    return getattr(torch, NAMES[code])


def _code(dtype):
    name = str(dtype).removeprefix("torch.")
    if dtype is not torch.bool and name not in CODES:
        raise Unsupported(f"dtype is {dtype}, expected one of {', '.join(CODES)}")
    return CODES.get(name, CODES["uint8"])


def _batch(*matrices, row=None):
    if all(matrix.dim() == 2 for matrix in matrices) and (row is None or row.dim() == 1):
        return ()
    rows = [] if row is None else [row.shape[:-1]]
    return torch.broadcast_shapes(*(matrix.shape[:-2] for matrix in matrices), *rows)


def _extents(x, z, columns_of_z, names):
    """Refuses what the extension would, of shapes."""
    for tensor, name in zip((x, z), names, strict=True):
        if tensor.dim() < 2:
            raise InvalidArgument(f"{name} has the shape {tuple(tensor.shape)}, expected dimensions, at least 2: (..., rows, columns)")
    torch._check(x.shape[-1] == z.shape[columns_of_z], lambda: f"{names[1]} of shape {tuple(z.shape)} does not fit {names[0]} of shape "
                 f"{tuple(x.shape)}")


def _pairs(names, values):
    return dict(zip(names, values, strict=True)) or None


def _scalar(value, name):
    """The argument, a number; raises for a tensor whose gradient would be lost."""
    if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled():
        raise Unsupported(f"{name} requires a gradient, which operators do not have by numbers, expected {name}.detach()")
    return value


def _flat(parameters):
    """A dict as an operator takes it: names, values."""
    parameters = parameters or {}
    return list(parameters), [float(_scalar(value, name)) for name, value in parameters.items()]


def _summed(gradient, shape, dtype=None):
    """The gradient by an argument that was broadcast, of its type."""
    if gradient.shape != shape:
        gradient = gradient.sum_to_size(shape)
    return gradient if dtype is None or gradient.dtype == dtype else gradient.to(dtype)


def _batched(operator, *own):
    """A batching rule: so many of the first arguments are matrices or, where `own` is 1, rows; their leading dimensions broadcast, and get the
    mapped one in front."""

    def rule(info, in_dims, *args, **kwargs):
        tensors = len(own)
        leading = [0 if args[i] is None else args[i].dim() - (in_dims[i] is not None) - own[i] for i in range(tensors)]
        mapped = []
        for i in range(tensors):
            tensor = args[i]
            if tensor is not None and in_dims[i] is not None:
                tensor = tensor.movedim(in_dims[i], 0)
                tensor = tensor.reshape(tensor.shape[:1] + (1,) * (max(leading) - leading[i]) + tensor.shape[1:])
            mapped.append(tensor)
        result = operator(*mapped, *args[tensors:], **kwargs)
        return (result, 0) if isinstance(result, torch.Tensor) else (result, (0,) * len(result))

    return rule


# ---- contract ----


def _contract_run(a, b, semiring, names, values, dtype, may_cancel, kernel, require, precision):
    return _core.contract(a, b, None, semiring, _pairs(names, values) if names else None, 0, False, may_cancel, None,
                          0 if dtype is None else _code(dtype), options(kernel, require, precision))


def _contract_fake(a, b, semiring, names, values, dtype, may_cancel, kernel, require, precision):
    _extents(a, b, -2, ("a", "b"))
    if dtype is None:
        dtype = a.dtype
        if not dtype.is_floating_point:
            code = _core.result_type(semiring, _code(dtype))
            if dtype is not torch.bool or code != CODES["uint8"]:
                dtype = _torch_type(code)
    return a.new_empty((*_batch(a, b), a.shape[-2], b.shape[-1]), dtype=dtype)


def _gradients_of_plus_times(grad, a, b, c, needs, parameters):
    """dA = G·Bᵀ and dB = Aᵀ·G."""
    return (contract(grad, b.mT.to(grad.dtype), "plus_times") if needs[0] else None,
            contract(a.mT.to(grad.dtype), grad, "plus_times") if needs[1] else None)


def _contract_backward_run(grad, a, b, c, semiring, names, values):
    return _core.contract_backward(a, b, c, grad, semiring, _pairs(names, values), True, True)


def _contract_backward_fake(grad, a, b, c, semiring, names, values):
    batch = _batch(grad, a, b)
    return grad.new_empty((*batch, *a.shape[-2:])), grad.new_empty((*batch, *b.shape[-2:]))


def _no_second_gradient(ctx, *grads):
    raise Unsupported("contract has second derivatives over plus_times alone")


_contract_gradients = _define(
    "contract_backward", "(Tensor grad, Tensor a, Tensor b, Tensor? c, str semiring, str[] names, float[] values) -> (Tensor, Tensor)",
    _contract_backward_run, _contract_backward_fake, lambda ctx, inputs, output: None, _no_second_gradient,
    own=(2, 2, 2, 2))


def _by_the_extension(semiring):
    """Those of contract_backward(), whose gradients are float32 of 16 bits. Rows of a batch with one B are rows of one product."""

    def gradients(grad, a, b, c, needs, parameters):
        wide = torch.promote_types(a.dtype, torch.float32)
        grad, c = grad.to(wide), c.to(wide) if semiring == "log_plus" else None
        shape = a.shape
        if b.dim() == 2 and a.dim() > 2:
            a, grad, c = (None if one is None else one.reshape(-1, one.shape[-1]) for one in (a, grad, c))
        if not _is_recording() and _are_plain((grad, a, b, c)):
            da, db = _core.contract_backward(a, b, c, grad, semiring, parameters, *needs)
        else:
            da, db = _contract_gradients(grad, a, b, c, semiring, *_flat(parameters))
        return da if da is None or b.dim() > 2 else da.reshape(shape), db

    return gradients


# Gradients of products, by the semiring: function(grad, a, b, c, needs, parameters) -> (dA or None, dB or None), of the broadcast batch. `c`
# are the results, `needs` says which gradients are wanted.
GRADIENTS = {"plus_times": _gradients_of_plus_times} | {
    semiring: _by_the_extension(semiring) for semiring in ("log_plus", "min_plus", "max_plus", "max_min", "min_max", "l1", "l2_squared", "lp")}


def _contract_setup(ctx, inputs, output):
    a, b, ctx.semiring, ctx.names, ctx.values = inputs[:5]
    ctx.save_for_backward(a, b, output)


def _contract_backward(ctx, grad):
    if ctx.semiring not in GRADIENTS:
        raise Unsupported(f"contract over {ctx.semiring!r} has no gradient, expected one of {', '.join(GRADIENTS)}")
    a, b, c = ctx.saved_tensors
    da, db = GRADIENTS[ctx.semiring](grad, a, b, c, ctx.needs_input_grad[:2], _pairs(ctx.names, ctx.values))
    return (None if da is None else _summed(da, a.shape).to(a.dtype), None if db is None else _summed(db, b.shape).to(b.dtype),
            *[None] * 8)


_contract = _define(
    "contract", "(Tensor a, Tensor b, str semiring, str[] names, float[] values, ScalarType? dtype, bool may_cancel, str? kernel, "
    "str[] require, str precision) -> Tensor", _contract_run, _contract_fake, _contract_setup, _contract_backward,
    own=(2, 2))


def _required(require):
    return [require] if isinstance(require, str) else list(require or ())


def contract(a, b, semiring="min_plus", *, parameters=None, dtype=None, may_cancel=False, kernel=None, require=(), precision="automatic"):
    """C(…,m,n) = ⊕_k A(…,m,k) ⊗ B(…,k,n), as `rigel_semirings.contract`; an operator of torch.

    It has gradients over plus_times, of any order, and of the first order over the semirings of `GRADIENTS`. Of equal candidates of a minimum or
    maximum the first gets the gradient.

    >>> import torch, rigel_semirings.torch as rt
    >>> rt.contract(torch.tensor([[1.0, 4.0]]), torch.tensor([[5.0], [1.0]]), "min_plus")
    tensor([[5.]])
    """
    names, values = _flat(parameters)
    return _contract(a, b, semiring, names, values, dtype, may_cancel, kernel, _required(require), precision)


# ---- cdist ----

# The metrics that have gradients, with the power p of |x − z|_p.
_POWERS = {"euclidean": 2.0, "squared_euclidean": 2.0, "manhattan": 1.0}
_WITH_GRADIENTS = ("euclidean", "squared_euclidean", "manhattan", "minkowski", "inner_product")


def _distance_type(x):
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16, torch.float32) else torch.float64


def _cdist_run(x, z, metric, p, may_cancel, kernel, require, precision):
    return _core.cdist(x, z, None, metric, None if p is None else {"p": p}, None, may_cancel, False, None, 0,
                       options(kernel, require, precision))


def _cdist_fake(x, z, metric, p, may_cancel, kernel, require, precision):
    _extents(x, z, -1, ("x", "z"))
    return x.new_empty((*_batch(x, z), x.shape[-2], z.shape[-2]), dtype=_distance_type(x))


def _cdist_setup(ctx, inputs, output):
    x, z, ctx.metric, ctx.p, ctx.may_cancel = inputs[:5]
    ctx.save_for_backward(x, z, output)


def _cdist_backward(ctx, grad):
    x, z, d = ctx.saved_tensors
    if ctx.metric not in _WITH_GRADIENTS:
        raise Unsupported(f"cdist of {ctx.metric!r} has no gradient, expected one of {', '.join(_WITH_GRADIENTS)}")
    needs_x, needs_z = ctx.needs_input_grad[:2]
    wide_x, wide_z = x.to(d.dtype), z.to(d.dtype)
    if ctx.metric == "inner_product":
        dx, dz = grad @ wide_z if needs_x else None, grad.mT @ wide_x if needs_z else None
    else:
        p = _POWERS.get(ctx.metric, 2.0 if ctx.p is None else ctx.p)
        # Of |x − z|_p the weight of a pair is G·d^(1−p). Points that coincide have the subgradient 0.
        if ctx.metric == "squared_euclidean":
            weights = 2 * grad
        elif p == 1:
            weights = grad
        else:
            apart = d != 0
            weights = torch.where(apart, grad * torch.where(apart, d, 1)**(1 - p), 0)
        dx = _cdist_gradient(weights, wide_x, wide_z, p, ctx.may_cancel) if needs_x else None
        dz = _cdist_gradient(weights.mT, wide_z, wide_x, p, ctx.may_cancel) if needs_z else None
    return (None if dx is None else _summed(dx, x.shape).to(x.dtype), None if dz is None else _summed(dz, z.shape).to(z.dtype),
            *[None] * 6)


_cdist = _define("cdist", "(Tensor x, Tensor z, str metric, float? p, bool may_cancel, str? kernel, str[] require, str precision) -> Tensor",
                 _cdist_run, _cdist_fake, _cdist_setup, _cdist_backward, own=(2, 2))


def _cdist_gradient_run(a, x, z, p, may_cancel):
    out = _cdist_gradient_fake(a, x, z, p, may_cancel)
    _core.cdist_gradient(a.mT, z.mT, x.new_ones(1).expand(1, z.shape[-2]), x.mT, out.mT.unsqueeze(-3), p, 0.0, may_cancel)
    return out


def _cdist_gradient_fake(a, x, z, p, may_cancel):
    return x.new_empty((*_batch(a, x, z), *x.shape[-2:]))


def _cdist_gradient_setup(ctx, inputs, output):
    a, x, z, ctx.p, _ = inputs
    ctx.save_for_backward(a, x, z)


def _cdist_gradient_backward(ctx, grad):
    """Of Y(m,:) = Σ_n A(m,n)·s(X(m,:) − Z(n,:)), s(t) = sign(t)·|t|^(p−1)."""
    a, x, z = ctx.saved_tensors
    needs_a, needs_x, needs_z = ctx.needs_input_grad[:3]
    da = _slopes(x, z, grad, None, ctx.p) if needs_a else None
    dx, dz = _curvatures(a, x, z, grad, None, ctx.p) if needs_x or needs_z else (None, None)
    return (*(None if one is None else _summed(one, of.shape) for one, of in ((da, a), (dx, x), (dz, z))), None, None)


# Second derivatives by x and z of sums of A(m,n)·s(X(m,:) − Z(n,:)): how they change along W, of rows of x, and V, of rows of z or None. They
# consist of torch's own operations, which have derivatives again.

_ELEMENTS = 1 << 24  # of a block of differences, points of x × points of z × coordinates


def _differences(x, z, w, v):
    """(X(m,k) − Z(n,k), W(m,k) − V(n,k)) for some rows m at a time, of shape (…, rows, N, K)."""
    rows = max(1, _ELEMENTS // max(1, z.shape[-2] * z.shape[-1]))
    for first in range(0, x.shape[-2], rows):
        part = slice(first, first + rows)
        along = w[..., part, None, :]
        yield part, x[..., part, None, :] - z[..., None, :, :], along if v is None else along - v[..., None, :, :]


def _powers(t, p):
    """|t|^p where t is not 0, else 0."""
    apart = t != 0
    return torch.where(apart, torch.where(apart, t, 1).abs()**p, 0)


def _slopes(x, z, w, v, p):
    """Q(m,n) = Σ_k s(X(m,k) − Z(n,k))·(W(m,k) − V(n,k))."""
    if p == 2:
        q = (w * x).sum(-1, keepdim=True) - w @ z.mT
        return q if v is None else q - x @ v.mT + (v * z).sum(-1).unsqueeze(-2)
    blocks = [(t.sign() * _powers(t, p - 1) * along).sum(-1) for _, t, along in _differences(x, z, w, v)]
    return torch.cat(blocks, -2) if blocks else w.new_zeros((*_batch(w, x, z), 0, z.shape[-2]))


def _curvatures(a, x, z, w, v, p):
    """Σ_n A(m,n)·s'(X(m,:) − Z(n,:))·(W(m,:) − V(n,:)) of each m, and minus the same sum over m of each n."""
    if p == 2:
        by_x, by_z = w * a.sum(-1, keepdim=True), a.mT @ w
        return (by_x, -by_z) if v is None else (by_x - a @ v, v * a.sum(-2).unsqueeze(-1) - by_z)
    if p == 1:
        return torch.zeros_like(w), torch.zeros_like(z)
    by_x, by_z = [], 0
    for part, t, along in _differences(x, z, w, v):
        one = a[..., part, :, None] * ((p - 1) * _powers(t, p - 2) * along)
        by_x.append(one.sum(-2))
        by_z = by_z - one.sum(-3)
    return (torch.cat(by_x, -2), by_z) if by_x else (torch.zeros_like(w), torch.zeros_like(z))


_cdist_gradient = _define("cdist_gradient", "(Tensor a, Tensor x, Tensor z, float p, bool may_cancel) -> Tensor", _cdist_gradient_run,
                          _cdist_gradient_fake, _cdist_gradient_setup, _cdist_gradient_backward,
                          own=(2, 2, 2))


def cdist(x, z=None, metric="euclidean", *, p=None, may_cancel=False, kernel=None, require=(), precision="automatic"):
    """D(…,m,n) = metric(X(…,m,:), Z(…,n,:)), as `rigel_semirings.cdist`; an operator of torch.

    Metrics without arrays of their own are operators: all but seuclidean, mahalanobis and weighted minkowski. It has gradients of euclidean,
    squared_euclidean, manhattan, minkowski and inner_product, of any order. Points that coincide have the subgradient 0. Second derivatives of
    manhattan and minkowski go through blocks of 2²⁴ differences of coordinates, in torch. With `may_cancel` those of euclidean distances in float32 may be matrix products.

    >>> import torch, rigel_semirings.torch as rt
    >>> rt.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]), "cityblock")
    tensor([[7.]])
    """
    return _cdist(x, x if z is None else z, _SCIPY.get(text(metric, "metric"), metric), _scalar(p, "p"), may_cancel, kernel, _required(require), precision)


# ---- kernel matrices ----


def _kernel_matrix_run(x, z, kernel, names, values, metric, p, may_cancel, precision):
    return _core.kernel_matrix(x, z, None, kernel, _pairs(names, values), metric, None if p is None else {"p": p}, None, 0.0, 0.0,
                               may_cancel, 0, options(None, (), precision))


def _kernel_matrix_fake(x, z, kernel, names, values, metric, p, may_cancel, precision):
    _extents(x, z, -1, ("x", "z"))
    return x.new_empty((*_batch(x, z), x.shape[-2], z.shape[-2]), dtype=_distance_type(x))


def _kernel_matrix_setup(ctx, inputs, output):
    x, z, *ctx.others = inputs
    ctx.save_for_backward(x, z)


def _kernel_matrix_backward(ctx, grad):
    x, z = ctx.saved_tensors
    kernel, names, values, metric, p, may_cancel, _ = ctx.others
    needs_x, needs_z = ctx.needs_input_grad[:2]
    dx, dz = _kernel_matrix_gradient(grad, x.to(grad.dtype), z.to(grad.dtype), kernel, names, values, metric, p, may_cancel)
    return (_summed(dx, x.shape).to(x.dtype) if needs_x else None, _summed(dz, z.shape).to(z.dtype) if needs_z else None, *[None] * 7)


_kernel_matrix = _define(
    "kernel_matrix", "(Tensor x, Tensor z, str kernel, str[] names, float[] values, str metric, float? p, bool may_cancel, str precision) "
    "-> Tensor", _kernel_matrix_run, _kernel_matrix_fake, _kernel_matrix_setup, _kernel_matrix_backward,
    own=(2, 2))


def _kernel_matrix_gradient_run(g, x, z, kernel, names, values, metric, p, may_cancel):
    batch = _batch(g, x, z)
    return _core.kernel_matrix_gradient(x.expand(*batch, *x.shape[-2:]), z.expand(*batch, *z.shape[-2:]), g, kernel, _pairs(names, values),
                                        metric, None if p is None else {"p": p}, True, True, [], 0.0, may_cancel)[:2]


def _kernel_matrix_gradient_fake(g, x, z, kernel, names, values, metric, p, may_cancel):
    batch = _batch(g, x, z)
    return x.new_empty((*batch, *x.shape[-2:])), z.new_empty((*batch, *z.shape[-2:]))


def _kernel_matrix_gradient_setup(ctx, inputs, output):
    g, x, z, *ctx.others = inputs
    ctx.save_for_backward(g, x, z)


def _kernel_matrix_gradient_backward(ctx, w, v):
    """Of dX(m,:) = Σ_n G(m,n)·∂k/∂x and dZ(n,:) = Σ_m G(m,n)·∂k/∂z, along W and V."""
    g, x, z = ctx.saved_tensors
    kernel, names, values, metric, p, may_cancel = ctx.others
    parameters = dict(zip(names, values, strict=True))
    if metric == "inner_product":
        products = x @ z.mT
        first, second = _PROFILES_OF_PRODUCTS[kernel](products, **parameters)
        q, weights = w @ z.mT + x @ v.mT, g * first
        curved = g * second * q
        by_g, by_x, by_z = first * q, curved @ z + weights @ v, curved.mT @ x + weights.mT @ w
    else:
        p = _POWERS.get(metric, 2.0 if p is None else p)
        d = _cdist(x, z, metric, p if metric == "minkowski" else None, may_cancel, None, [], "automatic")
        # ∂k/∂x = k'(d)·d^(1−p)·s(x − z), in terms of k'(d)/d and its derivative divided by d.
        first, second = _PROFILES[kernel](d, **parameters)
        slope = first * _powers(d, 2 - p) if p != 2 else first
        change = second if p == 2 else second * _powers(d, 4 - 2 * p) + (2 - p) * first * _powers(d, 2 - 2 * p)
        q = _slopes(x, z, w, v, p)
        curved = g * change * q
        by_x, by_z = _curvatures(g * slope, x, z, w, v, p)
        by_g, by_x = slope * q, by_x + _cdist_gradient(curved, x, z, p, may_cancel)
        by_z = by_z + _cdist_gradient(curved.mT, z, x, p, may_cancel)
    return (*(_summed(one, of.shape) for one, of in ((by_g, g), (by_x, x), (by_z, z))), *[None] * 6)


def _over(d, value):
    """value / d where points are apart, else 0."""
    apart = d != 0
    return torch.where(apart, value / torch.where(apart, d, 1), 0)


def _laplace(d, length):
    k = torch.exp(-d / length)
    first = -_over(d, k) / length
    return first, -_over(d, first / length + _over(d, first))


def _matern32(d, length):
    rate = math.sqrt(3) / length
    k = rate**2 * torch.exp(-rate * d)
    return -k, rate * _over(d, k)


def _matern52(d, length):
    rate = math.sqrt(5) / length
    k = rate**2 / 3 * torch.exp(-rate * d)
    return -k * (1 + rate * d), rate**2 * k


def _gaussian(d, bandwidth):
    k = torch.exp(-d * d / (2 * bandwidth**2)) / bandwidth**2
    return -k, k / bandwidth**2


def _rational_quadratic(d, length, alpha):
    base = 1 + d * d / (2 * alpha * length**2)
    return -base**(-alpha - 1) / length**2, (alpha + 1) / (alpha * length**4) * base**(-alpha - 2)


# Of kernels of distances k'(d)/d and its derivative divided by d. Where points coincide it is the limit, or 0 if there is none, or if what it is
# multiplied by is 0 there.
_PROFILES = {"gaussian": _gaussian, "laplace": _laplace, "matern12": _laplace, "matern32": _matern32, "matern52": _matern52,
             "rational_quadratic": _rational_quadratic}


def _polynomial(product, degree, scale=1.0, offset=1.0):
    base = scale * product + offset
    second = degree * (degree - 1) * scale**2
    return degree * scale * base**(degree - 1), second * base**(degree - 2) if second else torch.zeros_like(base)


def _sigmoid(product, scale, offset=0.0):
    k = torch.tanh(scale * product + offset)
    first = scale * (1 - k * k)
    return first, -2 * scale * k * first


# Of kernels of products the first and second derivative.
_PROFILES_OF_PRODUCTS = {"polynomial": _polynomial, "sigmoid": _sigmoid}


_kernel_matrix_gradient = _define(
    "kernel_matrix_gradient", "(Tensor g, Tensor x, Tensor z, str kernel, str[] names, float[] values, str metric, float? p, "
    "bool may_cancel) -> (Tensor, Tensor)", _kernel_matrix_gradient_run, _kernel_matrix_gradient_fake, _kernel_matrix_gradient_setup,
    _kernel_matrix_gradient_backward, own=(2, 2, 2))


def kernel_matrix(x, z=None, kernel="gaussian", *, metric=None, p=None, may_cancel=False, precision="automatic", **hyperparameters):
    """D(…,m,n) = k(X(…,m,:), Z(…,n,:)), as `rigel_semirings.kernel_matrix`; an operator of torch.

    It has gradients by x and z, of any order, of all kernels but cosine, over euclidean, manhattan and minkowski, and inner_product of
    polynomial and sigmoid. Where points coincide, derivatives that do not exist, as of laplace, are 0. Hyperparameters are numbers. A length that is learned scales the points instead: ``kernel_matrix(x / length, kernel="laplace", length=1)``.

    >>> import torch, rigel_semirings.torch as rt
    >>> rt.kernel_matrix(torch.tensor([[0.0], [2.0]]), kernel="laplace", length=2.0)[0, 1]
    tensor(0.3679)
    """
    metric = _METRICS_OF_KERNELS.get(text(kernel, "kernel"), "euclidean") if metric is None else _SCIPY.get(text(metric, "metric"), metric)
    return _kernel_matrix(x, x if z is None else z, kernel, *_flat(hyperparameters), metric, _scalar(p, "p"), may_cancel, precision)


# ---- the linear layer ----

_NONE = _activation(None)


@functools.cache
def _known_tier(tier, precision):
    return chosen(tier, _TIERS, "tier"), options(None, (), precision)


def _tier(tier, precision):
    """What the extension takes of a layer's options."""
    # What cannot be hashed is none of the names: the uncached function says which are.
    of = _known_tier if isinstance(tier, str) and isinstance(precision, str) else _known_tier.__wrapped__
    return of(tier, precision)


_TYPES = {torch.float32: CODES["float32"], torch.bfloat16: CODES["bfloat16"], torch.float16: CODES["float16"]}  # of the layer's numbers


def _bias(bias):
    return bias if bias is None or bias.dtype in _TYPES else bias.to(torch.float32)


def _linear_run(x, weight, bias, tier, precision):
    code, given = _tier(tier, precision)
    return _core.linear_forward(x, weight, _bias(bias), None, False, code, _NONE, given)[0]


def _linear_fake(x, weight, bias, tier, precision):
    _extents(x, weight, -1, ("x", "weight"))
    return x.new_empty((*_batch(x, weight, row=bias), x.shape[-2], weight.shape[-2]))


def _linear_setup(ctx, inputs, output):
    x, weight, bias, ctx.tier, ctx.precision = inputs
    ctx.save_for_backward(x, weight)
    ctx.bias = (None, None) if bias is None else (bias.shape, bias.dtype)


def _linear_gradients(ctx, x, weight, grad):
    needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
    shape, dtype = ctx.bias
    # What was saved was plain, unless a hook made something else of it.
    if (x.dim() == weight.dim() == grad.dim() == 2 and (not needs_bias or dtype in _TYPES) and not _is_recording()
            and type(x) in _kinds and type(weight) in _kinds and _are_plain((grad,))):
        return _core.linear_gradients(x, weight, grad, needs_x, needs_weight, _TYPES[dtype] if needs_bias else 0,
                                      *_tier(ctx.tier, ctx.precision))
    dx = _summed(_linear_backward_input(grad, weight, ctx.tier, ctx.precision), x.shape) if needs_x else None
    dw = db = None
    if needs_weight or needs_bias:
        if weight.dim() == 2 and (shape is None or len(shape) == 1) and x.dim() > 2:  # one layer for the rows of all batches
            x, grad = x.reshape(-1, x.shape[-1]), grad.reshape(-1, grad.shape[-1])
        # What is summed over a batch is rounded after that.
        is_single = x.dim() == 2 and grad.dim() == 2
        of_bias = None if not needs_bias else dtype if is_single and dtype in _TYPES else torch.float32
        dw, db = _linear_backward_weight(x, grad, weight.dtype if is_single else torch.float32, of_bias, ctx.tier, ctx.precision)
        dw = _summed(dw, weight.shape, weight.dtype) if needs_weight else None
        db = _summed(db, shape, dtype) if needs_bias else None
    return dx, dw, db


def _linear_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    return *_linear_gradients(ctx, x, weight, grad.contiguous()), None, None


_linear = _define("linear", "(Tensor x, Tensor weight, Tensor? bias, str tier, str precision) -> Tensor", _linear_run, _linear_fake,
                  _linear_setup, _linear_backward, own=(2, 2, 1))


def _linear_activated_run(x, weight, bias, activation, tier, precision):
    code, given = _tier(tier, precision)
    return _core.linear_forward(x, weight, _bias(bias), None, True, code, _activation(activation), given)


def _linear_activated_fake(x, weight, bias, activation, tier, precision):
    y = _linear_fake(x, weight, bias, tier, precision)
    return y, torch.empty_like(y)


def _linear_activated_setup(ctx, inputs, output):
    x, weight, bias, ctx.activation, ctx.tier, ctx.precision = inputs
    ctx.save_for_backward(x, weight, output[1])
    ctx.set_materialize_grads(False)
    ctx.bias = (None, None) if bias is None else (bias.shape, bias.dtype)


def _silu_derivative(grad, z):
    """torch's own has no derivative."""
    if not torch.is_grad_enabled():
        return torch.ops.aten.silu_backward(grad, z)
    share = torch.sigmoid(z)
    return grad * share * (1 + z * (1 - share))


_DERIVATIVES = {
    "relu": lambda grad, z: grad * (z > 0),
    "gelu": lambda grad, z: torch.ops.aten.gelu_backward(grad, z),
    "gelu_tanh": lambda grad, z: torch.ops.aten.gelu_backward(grad, z, approximate="tanh"),
    "silu": _silu_derivative,
}


def _linear_activated_backward(ctx, grad, grad_of_z):
    x, weight, z = ctx.saved_tensors
    total = grad_of_z if grad is None else _DERIVATIVES[ctx.activation](grad, z)
    if grad is not None and grad_of_z is not None:
        total = total + grad_of_z
    return *_linear_gradients(ctx, x, weight, total.contiguous()), None, None, None


_linear_activated = _define("linear_activated", "(Tensor x, Tensor weight, Tensor? bias, str activation, str tier, str precision) -> "
                            "(Tensor, Tensor)", _linear_activated_run, _linear_activated_fake, _linear_activated_setup,
                            _linear_activated_backward, own=(2, 2, 1))


def _linear_backward_input_run(dy, weight, tier, precision):
    code, given = _tier(tier, precision)
    return _core.linear_backward_input(dy, weight, None, None, code, _NONE, given)


def _linear_backward_input_fake(dy, weight, tier, precision):
    return dy.new_empty((*_batch(dy, weight), dy.shape[-2], weight.shape[-1]))


def _linear_backward_input_setup(ctx, inputs, output):
    dy, weight, ctx.tier, ctx.precision = inputs
    ctx.save_for_backward(dy, weight)


def _linear_backward_input_backward(ctx, grad):
    """Of dY·W: the layer itself, and its gradient by the weight."""
    dy, weight = ctx.saved_tensors
    by_dy = _linear(grad.contiguous(), weight, None, ctx.tier, ctx.precision) if ctx.needs_input_grad[0] else None
    by_weight = None
    if ctx.needs_input_grad[1]:
        own = weight.dtype if grad.dim() == 2 and dy.dim() == 2 else torch.float32
        by_weight = _summed(_linear_backward_weight(grad, dy, own, None, ctx.tier, ctx.precision)[0], weight.shape).to(weight.dtype)
    return None if by_dy is None else _summed(by_dy, dy.shape), by_weight, None, None


_linear_backward_input = _define("linear_backward_input", "(Tensor dy, Tensor weight, str tier, str precision) -> Tensor",
                                 _linear_backward_input_run, _linear_backward_input_fake, _linear_backward_input_setup,
                                 _linear_backward_input_backward,
                                 own=(2, 2))


def _linear_backward_weight_run(x, dy, dtype, of_bias, tier, precision):
    dw, db = _linear_backward_weight_fake(x, dy, dtype, of_bias, tier, precision)
    _core.linear_backward_weight(x, dy, dw, None if of_bias is None else db, True, *_tier(tier, precision))
    return dw, db


def _linear_backward_weight_fake(x, dy, dtype, of_bias, tier, precision):
    """dW and db of these types; without a type of db it is empty."""
    batch = _batch(x, dy)
    return (dy.new_empty((*batch, dy.shape[-1], x.shape[-1]), dtype=dtype),
            dy.new_empty((0,)) if of_bias is None else dy.new_empty((*batch, dy.shape[-1]), dtype=of_bias))


def _linear_backward_weight_setup(ctx, inputs, output):
    x, dy, _, of_bias, ctx.tier, ctx.precision = inputs
    ctx.has_bias = of_bias is not None
    ctx.save_for_backward(x, dy)


def _linear_backward_weight_backward(ctx, grad, grad_of_bias):
    """Of dYᵀ·X and the sums of dY's columns."""
    x, dy = ctx.saved_tensors
    by_x = _linear_backward_input(dy, grad.to(dy.dtype), ctx.tier, ctx.precision) if ctx.needs_input_grad[0] else None
    by_dy = None
    if ctx.needs_input_grad[1]:
        by_dy = _linear(x, grad.to(x.dtype), grad_of_bias if ctx.has_bias else None, ctx.tier, ctx.precision)
    return None if by_x is None else _summed(by_x, x.shape), None if by_dy is None else _summed(by_dy, dy.shape), *[None] * 4


_linear_backward_weight = _define(
    "linear_backward_weight", "(Tensor x, Tensor dy, ScalarType dtype, ScalarType? of_bias, str tier, str precision) -> (Tensor, Tensor)",
    _linear_backward_weight_run, _linear_backward_weight_fake, _linear_backward_weight_setup, _linear_backward_weight_backward, own=(2, 2))


def linear(x, weight, bias=None, *, activation=None, tier="scalar", precision="automatic"):
    """Y = activation( X·Wᵀ + bias ), as `rigel_semirings.linear_forward`; an operator of torch.

    Gradients are those of `linear_backward_weight` and `linear_backward_input`, of the same tier, of any order; that of the activation is
    torch's. x has the shape (K,) or (…, K), weight (N, K), as in `torch.nn.functional.linear`; bias may have any floating-point type. Under
    `torch.autocast` x and weight get its type.

    >>> import torch, rigel_semirings.torch as rt
    >>> rt.linear(torch.tensor([1.0, -1.0]), torch.tensor([[2.0, 1.0], [0.0, 3.0]]), activation="relu")
    tensor([1., 0.])
    """
    if weight.dim() != 2 or x.dim() < 1:
        raise InvalidArgument(f"x and weight have the shapes {tuple(x.shape)} and {tuple(weight.shape)}, expected (..., K) and (N, K)")
    device = "cuda" if x.is_cuda else x.device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        x, weight = x.to(dtype), weight.to(dtype)
    rows = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    if activation is None:
        y = _linear(rows, weight, bias, tier, precision)
    else:
        y = _linear_activated(rows, weight, bias, activation, tier, precision)[0]
    return y if x.dim() == 2 else y.reshape(*x.shape[:-1], weight.shape[0])


class Linear(torch.nn.Module):
    """torch.nn.Linear whose bits are part of the contract: one chain of fused multiply-adds for each output, the same on every machine, and the
    same for a row whatever rows come with it.

    Parameters
    ----------
    in_features, out_features, bias, device, dtype : as of torch.nn.Linear, which initialises in the same way
    activation : None, "relu", "gelu", "gelu_tanh" or "silu", applied to the sums before they are stored
    tier : "scalar", or "tensor": tensor cores of GPUs, whose bits depend neither on other rows nor on the run
    precision : as in `rigel_semirings.linear_forward`

    Parameters and their names are those of torch.nn.Linear, so that either loads the other's state.

    >>> import torch, rigel_semirings.torch as rt
    >>> layer = rt.Linear.from_torch(torch.nn.Linear(3, 2), activation="relu")
    >>> layer
    Linear(in_features=3, out_features=2, bias=True, activation='relu', tier='scalar')
    """

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None, *, activation=None, tier="scalar",
                 precision="automatic"):
        super().__init__()
        _activation(activation)
        chosen(tier, _TIERS, "tier")
        self.in_features, self.out_features = in_features, out_features
        self.activation, self.tier, self.precision = activation, tier, precision
        self.weight = torch.nn.Parameter(torch.empty((out_features, in_features), device=device, dtype=dtype))
        self.bias = torch.nn.Parameter(torch.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self):
        """As torch.nn.Linear does."""
        torch.nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            torch.nn.init.uniform_(self.bias, -bound, bound)

    @classmethod
    def from_torch(cls, layer, *, activation=None, tier="scalar", precision="automatic"):
        """A layer with the parameters of a torch.nn.Linear, which both then share."""
        new = cls(layer.in_features, layer.out_features, layer.bias is not None, "meta", layer.weight.dtype, activation=activation, tier=tier,
                  precision=precision)
        new.weight, new.bias = layer.weight, layer.bias
        return new

    def forward(self, x):
        return linear(x, self.weight, self.bias, activation=self.activation, tier=self.tier, precision=self.precision)

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
                f"activation={self.activation!r}, tier={self.tier!r}")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kermac's functions: `cdist`, `run_kernel` of a descriptor, `cdist_grad`, and `linalg`.

Shapes are kermac's: a (M, K) or (L, M, K), b (N, K) or (L, N, K); a new result has a batch in front, (L, M, N), of one matrix, too. What differs:
`try_to_align` and `debug` do nothing, arrays may be on the host and in float64, and points that coincide have the subgradient 0 in
`cdist_grad` (in kermac sign(0) is 1).

>>> import numpy as np
>>> from rigel_semirings.compat import kermac
>>> kermac.cdist(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), p=1.0)
array([[[7.]]])
"""

from enum import Enum, auto

from ... import _core, epilogue
from ..._errors import InvalidArgument
from ..._products import contract
from ..._semiring import Semiring
from .._arrays import batch_of, batch_of_out, matrices, numbers, of_matrices, result, spread
from .._timer import CudaTimer

__all__ = ["CudaTimer", "FillMode", "InnerOperator", "KernelDescriptor", "KernelType", "PowerType", "Symmetry", "cdist", "cdist_grad",
           "kernel_descriptor_l1_norm", "kernel_descriptor_l2_norm", "kernel_descriptor_laplace_l1", "kernel_descriptor_laplace_l2",
           "kernel_descriptor_mma", "kernel_descriptor_p_norm", "linalg", "pre_compile_descriptors", "run_kernel"]


class FillMode(Enum):
    UPPER = auto()
    LOWER = auto()


class InnerOperator(Enum):
    DIFF = auto()
    DOT = auto()


class PowerType(Enum):
    NOOP = auto()
    ABS = auto()
    SQUARE = auto()
    SQRT = auto()
    POW = auto()


class KernelType(Enum):
    NONE = auto()
    LAPLACE = auto()
    GAUSSIAN = auto()


class Symmetry(Enum):
    NonSymmetric = auto()
    Symmetric = auto()


class KernelDescriptor:
    """What `run_kernel` computes: kernel_type( outer_power( Σ_k inner_power( inner_operator(b(n,k), a(m,k)) ) ) ).

    The inner power POW is |v|^p. Sums of differences to the power ABS, SQUARE and POW, and of products, are Rigel's own; Rigel compiles the
    others, in a moment, when they are first called.
    """

    def __init__(self, inner_operator, inner_power, outer_power, kernel_type):
        self._inner_operator = inner_operator
        self._inner_power = inner_power
        self._outer_power = outer_power
        self._kernel_type = kernel_type


def _descriptor(inner, outer, kernel, operator=InnerOperator.DIFF):
    return KernelDescriptor(operator, inner, outer, kernel)


kernel_descriptor_laplace_l1 = _descriptor(PowerType.ABS, PowerType.NOOP, KernelType.LAPLACE)
kernel_descriptor_laplace_l2 = _descriptor(PowerType.SQUARE, PowerType.SQRT, KernelType.LAPLACE)
kernel_descriptor_p_norm = _descriptor(PowerType.POW, PowerType.POW, KernelType.NONE)
kernel_descriptor_l1_norm = _descriptor(PowerType.ABS, PowerType.NOOP, KernelType.NONE)
kernel_descriptor_l2_norm = _descriptor(PowerType.SQUARE, PowerType.SQRT, KernelType.NONE)
kernel_descriptor_mma = _descriptor(PowerType.NOOP, PowerType.NOOP, KernelType.NONE, InnerOperator.DOT)

_SEMIRINGS = {(InnerOperator.DIFF, PowerType.ABS): "l1", (InnerOperator.DIFF, PowerType.SQUARE): "l2_squared",
              (InnerOperator.DIFF, PowerType.POW): "lp", (InnerOperator.DOT, PowerType.NOOP): "plus_times"}
_INNER = {InnerOperator.DIFF: "(b - a)", InnerOperator.DOT: "(a * b)"}
_POWERS = {PowerType.NOOP: "{0}", PowerType.ABS: "abs({0})", PowerType.SQUARE: "{0} * {0}", PowerType.SQRT: "sqrt({0})",
           PowerType.POW: "power(abs({0}), p)"}
_compiled = {}


def _semiring_of(descriptor):
    """The semiring of the sums, and whether its texts apply the outer power, too: of sums that may be negative, which steps do not take."""
    inner, power, outer = descriptor._inner_operator, descriptor._inner_power, descriptor._outer_power
    is_signed = power is PowerType.NOOP
    is_outer = is_signed and outer in (PowerType.ABS, PowerType.SQRT)
    name = _SEMIRINGS.get((inner, power))
    if name is not None and not is_outer:
        return name, is_signed, False
    key = (inner, power, outer if is_outer else None)
    if key not in _compiled:
        _compiled[key] = Semiring(multiply=_POWERS[power].format(_INNER[inner]), result=_POWERS[outer].format("x") if is_outer else "",
                                  name="kermac", commutative=inner is InnerOperator.DOT, **({"p": 1.0} if power is PowerType.POW else {}))
    return _compiled[key], is_signed and not is_outer, is_outer


def _require_given(descriptor, p, inner_p, outer_p, bandwidth, epsilon, regularization):
    """What a descriptor takes, as kermac has it."""
    for which, power, own in (("inner_power", descriptor._inner_power, inner_p), ("outer_power", descriptor._outer_power, outer_p)):
        name = which.split("_")[0] + "_p"
        if power is PowerType.POW and p is None and own is None:
            raise InvalidArgument(f"p and {name} are None, expected one of them: the descriptor's {which} is POW")
        if power is not PowerType.POW and (p is not None or own is not None):
            raise InvalidArgument(f"p or {name} is given, expected None: the descriptor's {which} is {power.name}")
        if p is not None and own is not None:
            raise InvalidArgument(f"p and {name} are given, expected one of them")
    if descriptor._kernel_type is KernelType.NONE:
        if bandwidth is not None or epsilon is not None or regularization is not None:
            raise InvalidArgument("bandwidth, epsilon or regularization is given, expected None: the descriptor's kernel_type is NONE")
    elif bandwidth is None:
        raise InvalidArgument(f"bandwidth is None, expected a number: the descriptor's kernel_type is {descriptor._kernel_type.name}")


def _outer_steps(power, outer_p):
    if power in (PowerType.NOOP, PowerType.ABS):  # sums are not negative
        return epilogue.Program()
    return epilogue.power({PowerType.SQUARE: 2.0, PowerType.SQRT: 0.5}.get(power, None if outer_p is None else of_matrices(outer_p)))


def run_kernel(kernel_descriptor, a, b, out=None, p=None, inner_p=None, outer_p=None, bandwidth=None, epsilon=None, regularization=None,
               regularization_offset_x=0, regularization_offset_y=0, try_to_align=False, debug=False):
    """out(l,m,n) = kernel_type( outer_power( Σ_k inner_power( inner_operator(b(l,n,k), a(l,m,k)) ) ) ), in one pass.

    Parameters
    ----------
    kernel_descriptor : a `KernelDescriptor`, such as kernel_descriptor_laplace_l2
    a, b : arrays of shapes (M, K) or (L, M, K) and (N, K) or (L, N, K)
    out : array of shape (M, N) or (L, M, N); by default a new one of shape (L, M, N)
    p, inner_p, outer_p : powers, for POW; p stands for inner_p = p and outer_p = 1/p
    bandwidth : of LAPLACE, exp(−v/bandwidth), and GAUSSIAN, exp(−v/(2·bandwidth²))
    epsilon : smaller values become 0 before the kernel; 1e-5 by default
    regularization : is added where n + regularization_offset_x = m + regularization_offset_y. kermac stores 1 + regularization there, which is
        the same on the diagonal of points with themselves.
    Powers, bandwidth and regularization are numbers, or one for each of a batch.

    Returns
    -------
    out

    Raises
    ------
    InvalidArgument (a ValueError) if shapes do not fit, or arguments and descriptor do not.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat import kermac
    >>> x = np.array([[0.0], [2.0]])
    >>> kermac.run_kernel(kermac.kernel_descriptor_laplace_l1, x, x, bandwidth=2.0).round(3)
    array([[[1.   , 0.368],
            [0.368, 1.   ]]])
    """
    _require_given(kernel_descriptor, p, inner_p, outer_p, bandwidth, epsilon, regularization)
    semiring, may_be_negative, has_outer_power = _semiring_of(kernel_descriptor)
    given = {"p": p, "inner_p": inner_p, "outer_p": outer_p, "bandwidth": bandwidth, "regularization": regularization}
    given = {name: None if value is None else numbers(value, name) for name, value in given.items()}
    a, b = matrices(a, "a"), matrices(b, "b")
    batch = batch_of({**given, "a": a, "b": b, "out": batch_of_out(out, 2)})
    inner = given["p"] if p is not None else given["inner_p"]
    outer = 1 / given["p"] if p is not None else given["outer_p"]
    steps = epilogue.Program() if has_outer_power else _outer_steps(kernel_descriptor._outer_power, outer)
    if kernel_descriptor._kernel_type is not KernelType.NONE:
        least = 1e-5 if epsilon is None else float(epsilon)
        if may_be_negative:
            steps = steps | epilogue.relu()
        of_kernel = epilogue.laplace if kernel_descriptor._kernel_type is KernelType.LAPLACE else epilogue.gaussian
        steps = steps | epilogue.threshold(least) | of_kernel(of_matrices(given["bandwidth"]))
        if given["regularization"] is not None:
            steps = steps | epilogue.add_diagonal(of_matrices(given["regularization"]), regularization_offset_y - regularization_offset_x)
    whole, places = result(out, a, (batch, a.shape[-2], b.shape[-2]))
    a, transposed = spread(a, batch, b.shape[0]), b.swapaxes(-1, -2)
    if isinstance(inner, float) or inner is None:
        contract(a, transposed, semiring, epilogue=steps, out=places, parameters=None if inner is None else {"p": inner})
        return whole
    if any(not isinstance(value, float) for value in (outer, given["bandwidth"], given["regularization"]) if value is not None):
        for i in range(batch):
            one = {name: value if value is None or isinstance(value, float) else float(value[i]) for name, value in given.items()}
            run_kernel(kernel_descriptor, a[i % a.shape[0]], b[i % b.shape[0]], places[i], epsilon=epsilon,
                       regularization_offset_x=regularization_offset_x, regularization_offset_y=regularization_offset_y, **one)
        return whole
    for i in range(batch):
        contract(a[i % a.shape[0]], transposed[i % b.shape[0]], semiring, epilogue=steps, out=places[i], parameters={"p": float(inner[i])})
    return whole


def cdist(a, b, out=None, p=2.0, skip_epilogue=False, try_to_align=False, debug=False):
    """out(l,m,n) = ( Σ_k |b(l,n,k) − a(l,m,k)|^p )^(1/p), with skip_epilogue without the root.

    Parameters, result and errors are those of `run_kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat import kermac
    >>> kermac.cdist(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), skip_epilogue=True)
    array([[[25.]]])
    """
    p = numbers(p, "p")
    outer = PowerType.NOOP if skip_epilogue else PowerType.POW
    if not isinstance(p, float):
        if skip_epilogue:
            return run_kernel(_descriptor(PowerType.POW, outer, KernelType.NONE), a, b, out, inner_p=p)
        return run_kernel(kernel_descriptor_p_norm, a, b, out, p=p)
    if p == 1:
        return run_kernel(kernel_descriptor_l1_norm, a, b, out)
    if p == 2:
        return run_kernel(_descriptor(PowerType.SQUARE, PowerType.NOOP if skip_epilogue else PowerType.SQRT, KernelType.NONE), a, b, out)
    if skip_epilogue:
        return run_kernel(_descriptor(PowerType.POW, PowerType.NOOP, KernelType.NONE), a, b, out, inner_p=p)
    return run_kernel(kernel_descriptor_p_norm, a, b, out, p=p)


def cdist_grad(a, b, c, d, out=None, p=2.0, eps=1e-8, debug=False):
    """out(l,o,n,m) = Σ_k c(l,o,k)·a(l,k,m)·sign(t)·|t|^(p−1), t = d(l,n,m) − b(l,n,k).

    Parameters
    ----------
    a : (K, M), the gradient by the kernel matrix; b : (N, K), the points x; c : (O, K), coefficients; d : (N, M), the points z; each with a
        batch in front, or without
    out : array of shape (O, N, M) or (L, O, N, M); by default a new one of shape (L, O, N, M)
    p : above 0, a number, or one for each of a batch
    eps : differences below it count as 0 unless p is 1 or 2

    Returns
    -------
    out

    Raises
    ------
    InvalidArgument (a ValueError) if shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from rigel_semirings.compat import kermac
    >>> kermac.cdist_grad(np.array([[2.0]]), np.array([[1.0]]), np.array([[3.0]]), np.array([[5.0]]))
    array([[[[24.]]]])
    """
    a, b, c, d = matrices(a, "a"), matrices(b, "b"), matrices(c, "c"), matrices(d, "d")
    p = numbers(p, "p")
    batch = batch_of({"p": p, "a": a, "b": b, "c": c, "d": d, "out": batch_of_out(out, 3)})
    whole, places = result(out, a, (batch, c.shape[-2], d.shape[-2], d.shape[-1]))
    if isinstance(p, float):
        a = spread(a, batch, max(one.shape[0] for one in (b, c, d)))
        a, b, c, d = ((one[0] if one.shape[0] == 1 else one) for one in (a, b, c, d))
        _core.cdist_gradient(a, b, c, d, places if any(len(one.shape) == 3 for one in (a, b, c, d)) else places[0], p,
                             0.0 if p in (1.0, 2.0) else eps, False)
        return whole
    for i in range(batch):
        of = [one[i % one.shape[0]] for one in (a, b, c, d)]
        _core.cdist_gradient(*of, places[i], float(p[i]), eps, False)
    return whole


def pre_compile_descriptors(device, descriptors, try_to_align=False, debug=False):
    """Compiles what `run_kernel` would compile at the first call with these descriptors, for float32 arrays of a torch device, or of "cpu".

    Examples
    --------
    >>> from rigel_semirings.compat import kermac
    >>> kermac.pre_compile_descriptors("cpu", [kermac.kernel_descriptor_l1_norm, kermac.kernel_descriptor_mma])
    """
    semirings = [_semiring_of(descriptor)[0] for descriptor in descriptors]
    like = None
    if str(device) != "cpu":
        import torch

        like = torch.empty(0, device=device)
    for semiring in semirings:
        if isinstance(semiring, Semiring):
            semiring.compile("float32", like)


from . import linalg  # noqa: E402  it takes FillMode from here
